//! Communicators over devices that do not reach each other: ranks on emulated devices beside ranks on
//! the CPU.

use unisono::bootstrap::NodeId;
use unisono::plan::Op;
use unisono::{DataType, InitOptions, PluginRequest};
use unisono_emulated_tests::{Emulated, attempts};
use unisono_emulator::Place;
use unisono_tests::{Count, Exit, threads};

/// Every other rank has a device of its own, the others are the CPU.
fn interleaved(options: &mut InitOptions) {
    options.plugins = vec![PluginRequest::named("host"), PluginRequest::named("cuda")];
    options.device = Some(match options.rank % 2 {
        0 => ("cuda".to_owned(), options.rank / 2),
        _ => ("host".to_owned(), 0),
    });
}

fn all_said_the_same(exits: &[Exit]) {
    let first = exits[0].lines.last();
    let same = exits.iter().all(|exit| exit.lines.last() == first);
    assert!(
        same && first.is_some_and(|line| line.starts_with("done")),
        "{exits:?}"
    );
}

#[test]
fn devices_and_cpus_in_processes() {
    let test = "devices_and_cpus_in_processes";
    let count = Count::new(2, 100);
    for seed in 0..count.get() {
        let delays = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
        let Some(machine) = Emulated::new(test, "h100x8", delays) else {
            return;
        };
        let machine = machine.seeded(seed);
        let ranks = machine.job(test, 4).env("TEST_SALT", seed).start(|rank| {
            let seed = std::env::var("TEST_SALT")
                .ok()
                .and_then(|text| text.parse().ok());
            let world = rank.init(interleaved);
            let done = attempts(&world, 40, seed.unwrap_or(0));
            world.finalize().expect("finalize");
            rank.say(&format!("done {done}"));
        });
        all_said_the_same(&ranks.finish());
    }
}

#[test]
fn devices_and_cpus_in_threads() {
    let test = "devices_and_cpus_in_threads";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let done = threads(4, interleaved, |world| attempts(&world, 40, 7));
        assert!(done.iter().all(|count| *count == done[0]), "{done:?}");
        rank.say("done");
    });
    all_said_the_same(&ranks.finish());
}

/// Two machines, each with a device and a CPU: between them bytes go over the network, which does not
/// read the memory of devices.
#[test]
fn devices_and_cpus_of_two_nodes() {
    let test = "devices_and_cpus_of_two_nodes";
    let lacking = |text: String| text + "lacks: [host_pointer]\n";
    for adjust in [|text: String| text, lacking] {
        let Some(machine) = Emulated::new(test, "h100x8", adjust) else {
            return;
        };
        let ranks = machine.job(test, 1).start(|rank| {
            let two_nodes = |options: &mut InitOptions| {
                interleaved(options);
                options.plugins.push(PluginRequest::named("tcp"));
                options.node_id = Some(NodeId([options.rank as u8 / 2 + 1; 16]));
            };
            let done = threads(4, two_nodes, |world| attempts(&world, 40, 11));
            assert!(done.iter().all(|count| *count == done[0]), "{done:?}");
            rank.say("done");
        });
        all_said_the_same(&ranks.finish());
        let traffic = machine.traffic();
        let between = traffic.data(Place::Device(0), Place::Device(1));
        assert_eq!(between, 0, "they are on two nodes");
    }
}

/// The graph says that two devices reach each other, but a mapping is refused: the pair goes through host
/// memory, the others don't, and `explain` says why.
#[test]
fn devices_whose_mapping_is_refused() {
    let test = "devices_whose_mapping_is_refused";
    let boxes = [
        ("h100x8", "cuda"),
        ("mi300x8", "rocm"),
        ("ascend910bx8", "ascend"),
    ];
    for (name, plugin) in boxes {
        let refused = |text: String| text + "faults: [{kind: mapping, device: 0, peer: 2}]\n";
        let Some(machine) = Emulated::new(test, name, refused) else {
            return;
        };
        let job = machine.job(test, 3).env("TEST_PLUGIN", plugin);
        let ranks = job.start(|rank| {
            let plugin = std::env::var("TEST_PLUGIN").expect("a plugin");
            let world = rank.init(|options| {
                let names = [plugin.as_str(), "host"];
                options.plugins = names.map(PluginRequest::named).to_vec();
                options.device = Some((plugin.clone(), options.rank));
            });
            let done = attempts(&world, 20, 3);
            let explained = world.explain(Op::AllReduce, 1 << 20, DataType::F32);
            let explained = explained.expect("a plan").to_string();
            let why = "ranks 0 and 2 go through host memory (staged): rank 0 cannot map the memory of rank 2: ";
            assert!(explained.contains(why), "{explained}");
            assert!(!explained.contains("ranks 0 and 1"), "{explained}");
            world.finalize().expect("finalize");
            rank.say(&format!("done {done}"));
        });
        all_said_the_same(&ranks.finish());
        let traffic = machine.traffic();
        let between = |a, b| traffic.data(Place::Device(a), Place::Device(b));
        assert_eq!(between(0, 2) + between(2, 0), 0, "{name}");
        assert!(between(0, 1) > 0 && between(2, 1) > 0, "{name}");
    }
}
