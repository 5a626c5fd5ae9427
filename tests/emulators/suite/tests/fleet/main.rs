//! A machine with devices of all vendors, and the CPU beside them: one communicator over all, ranks
//! interleaved.

#[path = "../../../../../unisono/examples/devices.rs"]
#[allow(dead_code, reason = "a program of its own, too")]
mod devices_example;
mod faults;
mod one_device;

use std::time::Duration;

use unisono::{Communicator, InitOptions, PluginRequest};
use unisono_emulated_tests::{Emulated, all_of_all_types, attempts};
use unisono_emulator::Place;
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

/// What disturbs the order of things in a box.
const DELAYS: &str = "delays: {one_in: 8, longest_us: 100}\n";

/// A machine of boxes that `adjust` changes.
fn machine_of(test: &str, adjust: impl FnMut(String) -> String) -> Option<Emulated> {
    let others = [
        ("acl", "ascend910bx8"),
        ("hip", "mi300x8"),
        ("rsmi", "mi300x8"),
    ];
    Emulated::of_several(test, "h100x8", &others, adjust)
}

fn machine(test: &str) -> Option<Emulated> {
    machine_of(test, |text| text + DELAYS)
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
    attempts(world, TRIES, seed)
}

/// Random collectives of one job.
const TRIES: u64 = 30;

#[test]
fn devices_of_all_vendors_and_cpus() {
    let test = "devices_of_all_vendors_and_cpus";
    let count = Count::new(2, 100);
    let mut done = 0;
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
        let exits = ranks.finish();
        all_said_the_same(&exits);
        done += exits[0].answer("done").parse::<u64>().expect("a number");
    }
    println!(
        "soak: {RANKS} ranks on devices of {} vendors and CPUs, interleaved, {count} seeds: {done} of {} random \
         collectives right, the others refused by all ranks alike",
        PLUGINS.len() - 1,
        count.get() * TRIES,
    );
}

/// Not by chance: each collective, of each type, by each reduction.
#[test]
fn every_collective_of_every_type() {
    let test = "every_collective_of_every_type";
    let Some(machine) = machine(test) else {
        return;
    };
    let lengths = Count::new(1, 3);
    let ranks = machine.job(test, RANKS).limit(Duration::from_secs(300));
    let ranks = ranks.env("TEST_LENGTHS", lengths.get()).start(|rank| {
        let lengths = std::env::var("TEST_LENGTHS").ok();
        let lengths = lengths.and_then(|text| text.parse().ok());
        let world = rank.init(interleaved);
        let (mut done, mut refused) = (0, 0);
        for length in [67, 1, 5000].into_iter().take(lengths.unwrap_or(1)) {
            let [did, did_not] = all_of_all_types(&world, length);
            (done, refused) = (done + did, refused + did_not);
        }
        world.finalize().expect("finalize");
        rank.say(&format!("done {done} {refused}"));
    });
    let exits = ranks.finish();
    all_said_the_same(&exits);
    let (done, refused) = exits[0]
        .answer("done")
        .split_once(' ')
        .expect("two numbers");
    println!(
        "soak: every collective of every type and reduction, {lengths} lengths: {done} right; {refused} that a \
         device has not, refused by all ranks alike"
    );
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

/// The example that holds a device of each vendor and the CPU, and copies from one to the next.
#[test]
fn one_program_moves_data_between_devices_of_all_vendors() {
    let test = "one_program_moves_data_between_devices_of_all_vendors";
    let Some(machine) = machine(test) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let devices = PLUGINS.map(|plugin| format!("{plugin}:0"));
        devices_example::run(&devices).expect("it runs");
        rank.say("done");
    });
    all_said_the_same(&ranks.finish());
}

fn fleets_file() -> String {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    examples.join("emulated-fleet.yaml").display().to_string()
}

/// The example of the fleet starts such a job with one command, as many ranks as it has devices for.
#[test]
fn the_fleets_file_starts_its_job() {
    let test = "the_fleets_file_starts_its_job";
    let Some(machine) = machine(test) else {
        return;
    };
    let file = fleets_file();
    let run = [
        "run",
        "--timeout",
        "60s",
        "--cluster",
        &file,
        "--",
        "unisono",
    ];
    let explain = ["explain", "all_reduce", "--bytes", "64K", "--measure"];
    let text = machine.command(&[&run[..], &explain[..]].concat());
    says_what_runs_and_where(&text);
    // The bench checks every element.
    let bench = ["bench", "all_reduce,all_gather", "-b", "64K", "-e", "64K"];
    let shortly = ["-n", "1", "-w", "0", "--rounds", "1"];
    let text = machine.command(&[&run[..], &bench[..], &shortly[..]].concat());
    assert!(text.contains("all_gather"), "{text}");
}

/// What `explain` says of the fleet: each vendor's devices are an island with links of its own, all else is
/// staged, and one algorithm is chosen that makes sense of that.
fn says_what_runs_and_where(text: &str) {
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("[0] "))
        .collect();
    assert_eq!(lines[0], "all_reduce of 65536 bytes on 8 ranks", "{text}");
    let name = |line: &str| line[2..].split(' ').next().map(str::to_owned);
    let rows = || {
        lines
            .iter()
            .filter(|line| line.starts_with("* ") || line.starts_with("  "))
    };
    let names: Vec<String> = rows().filter_map(|line| name(line)).collect();
    // Islands were found, and their order: ranks are interleaved.
    for found in [
        "hierarchical:mesh_one_shot",
        "hierarchical:ring",
        "ring:ordered",
    ] {
        assert!(names.iter().any(|name| name == found), "no {found}: {text}");
    }
    let chosen: Vec<String> = (rows().filter(|line| line.starts_with("* ")))
        .filter_map(|line| name(line))
        .collect();
    assert_eq!(chosen.len(), 1, "{text}");
    // How fast the CPU's ranks are is this machine's matter: flat or level by level.
    let fits = ["mesh_one_shot", "mesh_two_shot", "hierarchical:"];
    assert!(fits.iter().any(|fit| chosen[0].starts_with(fit)), "{text}");
    let why = format!("{}: the lowest predicted time;", chosen[0]);
    assert!(lines.iter().any(|line| line.starts_with(&why)), "{text}");
    // Each device has one other of its vendor here, and reaches the rest through the host's memory.
    for kind in ["nvlink", "xgmi", "hccs"] {
        let used = format!("uses 1 of some devices' 7 {kind} links; 6 lead to ranks outside.");
        assert!(text.contains(&used), "{text}");
    }
    assert!(text.contains("staged of rank "), "{text}");
}

/// Ranks of a machine share its devices out, and the bench runs over windows of their memory.
#[test]
fn ranks_that_name_no_device_have_one_each() {
    let test = "ranks_that_name_no_device_have_one_each";
    let Some(machine) = machine(test) else {
        return;
    };
    let bench = ["bench", "all_reduce", "--ranks", "3", "--plugin", "cuda"];
    let shortly = [
        "-b", "256K", "-e", "256K", "-n", "1", "-w", "0", "--rounds", "1",
    ];
    let _ = machine.command(&[&bench[..], &shortly[..], &["--windows"]].concat());
    let traffic = machine.traffic();
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let moved = traffic.data(Place::Device(from), Place::Device(to));
        assert!(moved > 0, "from device {from} to device {to}");
    }
}
