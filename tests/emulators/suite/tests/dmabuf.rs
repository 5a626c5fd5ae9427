//! Links between machines that read and write the memory of devices by themselves: emulated NVIDIA devices
//! behind the stand-in for libibverbs, whose cards map the devices' memory by its dma-buf.

#[path = "../../../../plugins/roce/tests/common/devices.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod devices;

use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use devices::Devices;
use unisono::bootstrap::NodeId;
use unisono::{Communicator, InitOptions, LinkEnd, MemoryPath, PluginRequest};
use unisono_emulated_tests::{Calls, Emulated, Values, all_done, built, every_collective};
use unisono_emulator::{Mover, Place, TRAFFIC, Traffic};
use unisono_tests::{Job, free_address, threads};

/// Lengths of messages: what lies in a flag's word, less and more than a slot, several slots.
const LENGTHS: [usize; 4] = [1, 300, 30_001, 200_003];

/// Bytes of all messages of a rank are more than these.
const MESSAGES: u64 = 8 << 20;

fn same_box(text: String) -> String {
    text
}

/// A job whose ranks find the cards.
fn job(machine: &Emulated, cards: &Devices, test: &str, ranks: u32) -> Job {
    let job = machine.job(test, ranks).limit(Duration::from_secs(240));
    let root = free_address().to_string();
    job.env("UNISONO_FAKE_VERBS", cards.path("").display())
        .root(&root, "this job's secret, thirty-two bytes or more")
}

/// Each rank on a machine of its own, with its own device and card; a card per `ranks` of a machine.
fn apart(options: &mut InitOptions) {
    near(options, 1);
}

/// `each` ranks on a machine, with a card for both.
fn near(options: &mut InitOptions, each: u32) {
    let node = options.rank / each;
    let param = |name: &str, value: String| (name.to_owned(), value);
    let mut roce = PluginRequest::named("roce");
    roce.params = vec![
        param("library", devices::library()),
        param("devices", format!("fake{node}")),
        param("ack_timeout", "8ms".to_owned()),
    ];
    options.plugins = vec![PluginRequest::named("cuda"), roce];
    options.device = Some(("cuda".to_owned(), options.rank));
    options.node_id = Some(NodeId([node as u8 + 1; 16]));
}

/// Links of odd ranks know nothing of devices.
fn odd_ones_stage(options: &mut InitOptions) {
    apart(options);
    if options.rank % 2 == 1 {
        let param = ("dmabuf".to_owned(), "false".to_owned());
        options.plugins[1].params.push(param);
    }
}

fn link(from: LinkEnd, to: LinkEnd) -> MemoryPath {
    MemoryPath::Link {
        plugin: "roce".to_owned(),
        from,
        to,
    }
}

/// Every collective of a few types, short and long.
fn all(world: &Communicator) {
    for (salt, len) in (0..).zip(LENGTHS) {
        every_collective::<f32>(world, len, salt);
        every_collective::<u8>(world, len, salt + 1);
        every_collective::<half::bf16>(world, len, salt + 2);
        every_collective::<i64>(world, len, salt + 3);
    }
}

/// What a device has copied to the host's memory and from it, by copies and by kernels.
fn over_the_host(traffic: &Traffic, device: u32) -> u64 {
    let device = Place::Device(device);
    let both_ways = |mover| {
        let up = traffic.bytes(device, Place::Host, mover);
        traffic.bytes(Place::Host, device, mover) + up
    };
    both_ways(Mover::Copy) + both_ways(Mover::Kernel)
}

/// Makes all calls; bytes of the calls' own that crossed the host's memory.
/// At each `meet` the ranks of this process are quiet.
fn crossed(world: &Communicator, devices: std::ops::Range<u32>, meet: impl Fn()) -> u64 {
    let path = std::env::var_os(TRAFFIC).expect("the machine's");
    let traffic = Traffic::open(Some(path.as_ref())).expect("counts");
    let count = || {
        meet();
        let each = devices
            .clone()
            .map(|device| over_the_host(&traffic, device));
        let all = each.sum::<u64>();
        let own = Values::<u8>::copied();
        meet();
        (all, own[0] + own[1])
    };
    let (before, own) = count();
    all(world);
    let (after, now) = count();
    let (more, given) = (after - before, now - own);
    assert!(more >= given, "the test's own are counted");
    more - given
}

/// The same for a rank that has a process and a device of its own.
fn crossed_by(world: &Communicator, rank: u32) -> u64 {
    crossed(world, rank..rank + 1, || {})
}

/// All go by cards, from the memory of devices to that of devices.
fn assert_direct(world: &Communicator) {
    let paths = world.memory_paths();
    let direct = link(LinkEnd::Device, LinkEnd::Device);
    assert_eq!(
        paths.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        [&direct]
    );
}

#[test]
fn cards_carry_what_devices_hold() {
    let test = "cards_carry_what_devices_hold";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(3);
    let ranks = job(&machine, &cards, test, 3).start(|rank| {
        let world = rank.init(apart);
        assert_direct(&world);
        let copied = crossed_by(&world, rank.rank);
        assert_eq!(copied, 0, "bytes that a device copied by way of the host");
        assert!(Calls::of("cuda").count("FlushGPUDirectRDMAWrites") > 100);
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

#[test]
fn cards_carry_what_devices_of_one_process_hold() {
    let test = "cards_carry_what_devices_of_one_process_hold";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(3);
    let ranks = job(&machine, &cards, test, 1).start(|rank| {
        static QUIET: Barrier = Barrier::new(3);
        let copied = threads(3, apart, |world| {
            assert_direct(&world);
            let meet = || {
                QUIET.wait();
            };
            crossed(&world, 0..3, meet)
        });
        assert_eq!(copied, [0; 3]);
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// The same where devices export no dma-buf: the same results, and all that is sent crosses the host's
/// memory. So the count above would have found it.
#[test]
fn devices_without_are_staged() {
    let test = "devices_without_are_staged";
    let lacking = |text: String| text + "lacks: [dmabuf]\n";
    let Some(machine) = Emulated::new(test, "h100x8", lacking) else {
        return;
    };
    let cards = Devices::apart(3);
    let ranks = job(&machine, &cards, test, 3).start(|rank| {
        let world = rank.init(apart);
        let paths = world.memory_paths();
        let staged = link(LinkEnd::Staged, LinkEnd::Staged);
        assert_eq!(paths.between(0, 2), Some(&staged), "{paths}");
        let copied = crossed_by(&world, rank.rank);
        assert!(copied > MESSAGES, "{copied}");
        assert_eq!(Calls::of("cuda").count("FlushGPUDirectRDMAWrites"), 0);
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Each end decides for itself.
#[test]
fn one_end_is_direct_and_the_other_staged() {
    let test = "one_end_is_direct_and_the_other_staged";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(4);
    let ranks = job(&machine, &cards, test, 4).start(|rank| {
        let world = rank.init(odd_ones_stage);
        let paths = world.memory_paths();
        let (device, staged) = (LinkEnd::Device, LinkEnd::Staged);
        assert_eq!(paths.between(0, 1), Some(&link(device, staged)), "{paths}");
        assert_eq!(paths.between(1, 0), Some(&link(staged, device)), "{paths}");
        assert_eq!(paths.between(1, 3), Some(&link(staged, staged)), "{paths}");
        assert_eq!(paths.between(0, 2), Some(&link(device, device)), "{paths}");
        let copied = crossed_by(&world, rank.rank);
        assert_eq!(copied == 0, rank.rank.is_multiple_of(2), "{copied}");
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Nothing makes visible what a card writes: it reads the device's memory, and writes the host's.
#[test]
fn a_device_that_cannot_flush_is_not_written() {
    let test = "a_device_that_cannot_flush_is_not_written";
    let lacking = |text: String| text + "lacks: [flush]\n";
    let Some(machine) = Emulated::new(test, "h100x8", lacking) else {
        return;
    };
    let cards = Devices::apart(2);
    let ranks = job(&machine, &cards, test, 2).start(|rank| {
        let world = rank.init(apart);
        let paths = world.memory_paths();
        let half = link(LinkEnd::Device, LinkEnd::Staged);
        assert_eq!(paths.between(0, 1), Some(&half), "{paths}");
        all(&world);
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Two ranks on each of two machines: within a machine they map each other's memory.
#[test]
fn machines_of_several_devices() {
    let test = "machines_of_several_devices";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(2);
    let ranks = job(&machine, &cards, test, 4).start(|rank| {
        let world = rank.init(|options| near(options, 2));
        let paths = world.memory_paths();
        let direct = link(LinkEnd::Device, LinkEnd::Device);
        assert_eq!(paths.between(0, 1), Some(&MemoryPath::Mapped), "{paths}");
        assert_eq!(paths.between(1, 2), Some(&direct), "{paths}");
        let copied = crossed_by(&world, rank.rank);
        assert_eq!(copied, 0, "bytes that a device copied by way of the host");
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// What was said as a warning.
struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0
                .lock()
                .expect("a list")
                .push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// One card registers no dma-buf: its rank stages, and says so once, however many communicators it forms.
#[test]
fn a_card_that_refuses() {
    let test = "a_card_that_refuses";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(3);
    cards.set("fake1", "no_dmabuf", "");
    let ranks = job(&machine, &cards, test, 3).start(|rank| {
        log::set_logger(&WARNINGS).expect("the only one");
        log::set_max_level(log::LevelFilter::Warn);
        let world = rank.init(apart);
        let again = world.duplicate().expect("another");
        for world in [&world, &again] {
            let paths = world.memory_paths();
            let (device, staged) = (LinkEnd::Device, LinkEnd::Staged);
            assert_eq!(paths.between(0, 1), Some(&link(device, staged)), "{paths}");
            assert_eq!(paths.between(1, 2), Some(&link(staged, device)), "{paths}");
        }
        all(&again);
        all(&world);
        let said = WARNINGS.0.lock().expect("a list").clone();
        let of_staging = said
            .iter()
            .filter(|line| line.contains("staged in the host's"));
        let expected = usize::from(rank.rank == 1);
        assert_eq!(of_staging.count(), expected, "{said:?}");
        let named = said
            .iter()
            .any(|line| line.contains("fake1") && line.contains("roce"));
        assert_eq!(named, rank.rank == 1, "{said:?}");
        again.finalize().expect("finalize");
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// The cards' paths die again and again; what was on its way is sent again out of the devices' memory.
#[test]
fn paths_that_die_under_way() {
    let test = "paths_that_die_under_way";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(2);
    let ranks = job(&machine, &cards, test, 2).start(|rank| {
        let world = rank.init(apart);
        rank.say("begins");
        let end = Instant::now() + Duration::from_secs(8);
        let mut enough = false;
        while !enough {
            all(&world);
            let links = world.peer_links().expect("links");
            let recovered: u64 = links
                .iter()
                .filter_map(|link| Some(link.statistics?.recovered))
                .sum();
            // All ranks are to stop in the same turn.
            let late = u64::from(Instant::now() > end);
            let mut all_say = [recovered.min(2), late];
            world
                .all_reduce_in_place(&mut all_say, unisono::ReduceOp::Max)
                .expect("all_reduce");
            enough = all_say == [2, 1];
        }
        assert_direct(&world);
        world.finalize().expect("finalize");
        rank.say("done");
    });
    let _ = ranks.wait_for(0, "begins");
    for _ in 0..4 {
        cards.cut("fake0");
        std::thread::sleep(Duration::from_millis(700));
        cards.mend("fake0");
        std::thread::sleep(Duration::from_millis(900));
    }
    all_done(&ranks.finish());
}

/// What the commands say of it.
#[test]
fn it_is_told() {
    let test = "it_is_told";
    let Some(machine) = Emulated::new(test, "h100x8", same_box) else {
        return;
    };
    let cards = Devices::apart(1);
    let cluster = cards.path("").join("cluster.yaml");
    let text = format!(
        "plugins: [{{name: cuda}}, {{name: roce, params: {{library: {}}}}}]\n",
        devices::library()
    );
    std::fs::write(&cluster, text).expect("a file");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(built().join("unisono"));
        command
            .args(arguments)
            .args(["--without-links", "nvlink,pcie"])
            .args(["--ranks", "2", "--cluster-file"]);
        command.arg(&cluster).envs(machine.environment());
        command.env("UNISONO_FAKE_VERBS", cards.path(""));
        let output = command.output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let line =
        "Ranks 0 to 1, 1 to 0: by roce, from device memory (dma-buf) to device memory (dma-buf).";
    for arguments in [&["topo"][..], &["explain", "all_reduce", "--bytes", "1M"]] {
        let text = run(arguments);
        assert!(text.contains(line), "{arguments:?}: {text}");
    }
}
