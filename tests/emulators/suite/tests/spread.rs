//! Long copies to several devices go out over all of their links at once.

use std::time::{Duration, Instant};

use unisono::{InitOptions, ReduceOp};
use unisono_emulated_tests::{Emulated, Values, all_done, all_reduce, call, others, own_device};
use unisono_tests::{Count, threads};

/// Elements a rank has for each other, in puts of some 100 KiB.
const SHARE: usize = 1 << 17;

/// A gather on a mesh, on whose links each copy takes its time: the best of a few, of the slowest rank.
fn gathers(
    test: &str,
    (name, plugin): (&str, &'static str),
    ranks: u32,
    rate: u64,
) -> Option<Duration> {
    let paced = format!("copy_bytes_per_second: {rate}");
    gathers_so(test, (name, plugin), ranks, &paced, "")
}

/// The same, with the links' pace in the machine's words, and a parameter of the plugin's.
fn gathers_so(
    test: &str,
    (name, plugin): (&str, &'static str),
    ranks: u32,
    paced: &str,
    parameter: &str,
) -> Option<Duration> {
    let paced = |text: String| format!("{text}\n{paced}\ndelays: {{one_in: 0, longest_us: 0}}\n");
    let machine = Emulated::new(test, name, paced)?;
    let job = machine
        .job(test, 1)
        .env("TEST_RANKS", ranks)
        .env("TEST_PLUGIN", plugin)
        .env("TEST_PARAMETER", parameter);
    let exits = job.start(|rank| {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let (ranks, plugin) = (
            variable("TEST_RANKS").parse().unwrap_or(1),
            variable("TEST_PLUGIN").leak() as &str,
        );
        let own = own_device(plugin);
        let parameter = variable("TEST_PARAMETER");
        let options = move |options: &mut InitOptions| {
            own(options);
            let parameter = parameter.split_once('=');
            let parameter = parameter.map(|(name, value)| (name.to_owned(), value.to_owned()));
            options.plugins[0].params.extend(parameter);
        };
        let times = threads(ranks, options, move |world| {
            let device = world.device();
            let part = Values::<f32>::new(device, SHARE);
            let whole = Values::<f32>::new(device, SHARE * ranks as usize);
            let once = || {
                world.barrier().expect("a barrier");
                let start = Instant::now();
                let count = SHARE * ranks as usize;
                call(&world, unisono::Op::AllGather, (&part, &whole), count, None);
                start.elapsed()
            };
            (0..8).map(|_| once()).min().unwrap_or(Duration::MAX)
        });
        let slowest = times.into_iter().max().unwrap_or(Duration::MAX);
        rank.say(&format!("took {}", slowest.as_micros()));
    });
    let exits = exits.finish();
    let took = exits[0].answer("took").parse().expect("a number");
    Some(Duration::from_micros(took))
}

/// One after the other, the copies to seven devices would take seven times what a link needs for one.
#[test]
fn a_mesh_uses_its_links_at_once() {
    let test = "a_mesh_uses_its_links_at_once";
    let rate = 10_000_000;
    let link = Duration::from_secs_f64((SHARE * size_of::<f32>()) as f64 / rate as f64);
    let Some(took) = gathers(test, ("ascend910bx8", "ascend"), 8, rate) else {
        return;
    };
    println!("all_gather over seven links: {took:?}, a link alone {link:?}");
    assert!(took >= link, "{took:?}: a link takes {link:?}");
    assert!(took < link * 3, "{took:?}: a link takes {link:?}");
}

/// Where links carry more for who reads, receivers read, over all links at once.
#[test]
fn a_mesh_is_read_where_reads_are_faster() {
    let test = "a_mesh_is_read_where_reads_are_faster";
    let (written, read) = (4_000_000, 20_000_000);
    let paced = format!("copy_bytes_per_second: {written}\nread_bytes_per_second: {read}");
    let took = |parameter| gathers_so(test, ("ascend910bx8", "ascend"), 8, &paced, parameter);
    let Some(reading) = took("") else {
        return;
    };
    // No faster, as this says: so senders write.
    let writing = took("hccs_bytes_per_second=28000000000").expect("it is the same machine");
    let link = |rate| Duration::from_secs_f64((SHARE * size_of::<f32>()) as f64 / f64::from(rate));
    println!("all_gather over seven links, by reads: {reading:?}, by writes {writing:?}");
    assert!(reading >= link(read), "{reading:?}");
    assert!(reading < link(read) * 3, "{reading:?}: {:?}", link(read));
    assert!(writing >= link(written), "{writing:?}");
    assert!(reading < writing / 2, "{reading:?}, {writing:?}");
}

/// Its devices have four queues, which streams need for themselves: a kernel copies to all seven at once.
#[test]
fn a_mesh_without_queues_to_spare_uses_its_links_at_once() {
    let test = "a_mesh_without_queues_to_spare_uses_its_links_at_once";
    // Slow enough for what the kernel itself takes here not to count.
    let rate = 4_000_000;
    let link = Duration::from_secs_f64((SHARE * size_of::<f32>()) as f64 / rate as f64);
    let Some(took) = gathers(test, ("mi300x8", "rocm"), 8, rate) else {
        return;
    };
    println!("all_gather over seven links by a kernel: {took:?}, a link alone {link:?}");
    assert!(took >= link, "{took:?}: a link takes {link:?}");
    assert!(took < link * 3, "{took:?}: a link takes {link:?}");
}

/// Three others of a device with eight queues.
#[test]
fn as_many_links_as_there_are_queues() {
    let test = "as_many_links_as_there_are_queues";
    let rate = 10_000_000;
    let link = Duration::from_secs_f64((SHARE * size_of::<f32>()) as f64 / rate as f64);
    let Some(took) = gathers(test, ("h100x8", "cuda"), 4, rate) else {
        return;
    };
    // Two of its streams may be dealt out to one queue; one after the other, it would be three times a link's.
    assert!(
        took >= link && took < link * 5 / 2,
        "{took:?}: a link takes {link:?}"
    );
}

/// Long messages, whose copies overlap in every order: no bit is wrong, and no two touch the same bytes.
#[test]
fn long_messages_under_many_seeds() {
    let test = "long_messages_under_many_seeds";
    let count = Count::new(2, 30);
    for seed in 0..count.get() {
        for (name, plugin) in [
            ("ascend910bx8", "ascend"),
            ("v100x8", "cuda"),
            ("mi300x8", "rocm"),
        ] {
            let adjust =
                |text: String| text + "finds_races: true\ndelays: {one_in: 8, longest_us: 300}\n";
            let Some(machine) = Emulated::new(test, name, adjust) else {
                return;
            };
            let machine = machine.seeded(seed);
            let job = machine
                .job(test, 1)
                .env("TEST_PLUGIN", plugin)
                .env("TEST_SALT", seed);
            let ranks = job.start(|rank| {
                let plugin = std::env::var("TEST_PLUGIN").unwrap_or_default();
                let plugin: &str = plugin.leak();
                let salt = std::env::var("TEST_SALT").ok();
                let salt: u64 = salt.and_then(|text| text.parse().ok()).unwrap_or(0);
                let own = own_device(plugin);
                // Also with so few slots that a device reads from one peer after the other.
                let options = move |options: &mut InitOptions| {
                    own(options);
                    options.memory.slots = 2 + salt as u32 % 3;
                };
                threads(4, options, move |world| {
                    all_reduce::<f32>(&world, 700_001, ReduceOp::Sum, salt);
                    others::<i32>(&world, 150_001, salt);
                });
                rank.say("done");
            });
            all_done(&ranks.finish());
        }
    }
}
