//! A machine with devices of all vendors, and the CPU beside them: one communicator over all, ranks
//! interleaved.

use unisono::{Communicator, InitOptions, PluginRequest};
use unisono_emulated_tests::{Emulated, attempts};
use unisono_tests::{Count, Exit};

/// The plugins, in the order in which ranks take their devices in turn.
const PLUGINS: [&str; 4] = ["cuda", "rocm", "ascend", "host"];
/// Ranks of each.
const EACH: u32 = 2;
const RANKS: u32 = PLUGINS.len() as u32 * EACH;

/// Every rank has another vendor's device than its neighbours.
fn interleaved(options: &mut InitOptions) {
    let vendors = PLUGINS.len() as u32;
    let plugin = PLUGINS[(options.rank % vendors) as usize];
    let device = if plugin == "host" {
        0
    } else {
        options.rank / vendors
    };
    let of_all = PLUGINS.iter().rev();
    options.plugins = of_all.map(|name| PluginRequest::named(*name)).collect();
    options.device = Some((plugin.to_owned(), device));
}

fn machine(test: &str) -> Option<Emulated> {
    let disturbed =
        |text: String| text + "finds_races: true\ndelays: {one_in: 8, longest_us: 100}\n";
    let others = [
        ("acl", "ascend910bx8"),
        ("hip", "mi300x8"),
        ("rsmi", "mi300x8"),
    ];
    Emulated::of_several(test, "h100x8", &others, disturbed)
}

fn all_said_the_same(exits: &[Exit]) {
    let first = exits[0].lines.last();
    let same = exits.iter().all(|exit| exit.lines.last() == first);
    assert!(
        same && first.is_some_and(|line| line.starts_with("done")),
        "{exits:?}"
    );
}

fn tries(world: &Communicator, seed: u64) -> u64 {
    attempts(world, 30, seed)
}

#[test]
fn devices_of_all_vendors_and_cpus() {
    let test = "devices_of_all_vendors_and_cpus";
    let count = Count::new(2, 100);
    for seed in 0..count.get() {
        let Some(machine) = machine(test) else {
            return;
        };
        let machine = machine.seeded(seed);
        let ranks = machine.job(test, RANKS).env("TEST_SALT", seed);
        let ranks = ranks.start(|rank| {
            let seed = std::env::var("TEST_SALT")
                .ok()
                .and_then(|text| text.parse().ok());
            let world = rank.init(interleaved);
            let done = tries(&world, seed.unwrap_or(0));
            world.finalize().expect("finalize");
            rank.say(&format!("done {done}"));
        });
        all_said_the_same(&ranks.finish());
    }
}

/// The same as threads: one program that holds a device of every vendor at once.
#[test]
fn one_program_with_devices_of_all_vendors() {
    let test = "one_program_with_devices_of_all_vendors";
    let Some(machine) = machine(test) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let done = unisono_tests::threads(RANKS, interleaved, |world| tries(&world, 3));
        assert!(done.iter().all(|count| *count == done[0]), "{done:?}");
        rank.say("done");
    });
    all_said_the_same(&ranks.finish());
}

/// The example of the fleet starts such a job with one command, as many ranks as it has devices for.
#[test]
fn the_fleets_file_starts_its_job() {
    let test = "the_fleets_file_starts_its_job";
    let Some(machine) = machine(test) else {
        return;
    };
    let built = std::env::current_exe().expect("this program");
    let built = built
        .ancestors()
        .find(|folder| folder.join("unisono").is_file());
    let program = built
        .expect("the command: build the workspace first")
        .join("unisono");
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let mut command = std::process::Command::new(&program);
    command
        .args(["run", "--timeout", "60s", "--cluster"])
        .arg(examples.join("emulated-fleet.yaml"))
        .arg("--")
        .arg(&program)
        .args(["explain", "all_reduce", "--bytes", "64K", "--measure"])
        .envs(machine.environment());
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("8 ranks"), "{text}\n{errors}");
}
