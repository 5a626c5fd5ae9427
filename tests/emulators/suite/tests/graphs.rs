//! Calls that are repeated run as graphs of the vendor's runtime, and give what they give without.

use std::sync::Barrier;
use std::time::Duration;

use unisono::plan::Op;
use unisono::{Communicator, InitOptions, PluginRequest, RawCall, ReduceOp, Sizes};
use unisono_emulated_tests::{Calls, Driver, Emulated, Values, all_done, call};
use unisono_tests::{Exit, Rank, Rng, threads};

/// Vendors' plugins, and a machine of the devices of each.
const VENDORS: [(&str, &str); 2] = [("cuda", "h100x8"), ("rocm", "mi300x8")];
const DELAYS: &str = "delays: {one_in: 16, longest_us: 50}\n";
/// Rounds behind which every shape of a repeated call has its graph: there are up to sixteen.
const WARM: usize = 80;

/// A device of its own for each rank, with graphs or without.
fn with_graphs(plugin: &str, graphs: bool) -> impl Fn(&mut InitOptions) + Send + Sync + use<> {
    let plugin = plugin.to_owned();
    move |options| {
        let mut request = PluginRequest::named(&plugin);
        request.params = vec![("graphs".to_owned(), graphs.to_string())];
        options.plugins = vec![request];
        options.device = Some((plugin.clone(), options.rank));
        options.timeouts.op = Duration::from_secs(10);
    }
}

/// What a test tells its ranks' processes.
fn told(name: &str) -> String {
    std::env::var(name).expect(name)
}

/// What a rank gives in a round.
fn given(rank: u32, round: usize, at: usize) -> i32 {
    (rank as usize * 1009 + round * 7919 + at * 31) as i32
}

/// An all_reduce in place, of other values each round: what its call asked of the runtime, and the graphs
/// among it.
fn all_reduce(
    world: &Communicator,
    calls: &Calls,
    data: &Values<i32>,
    len: usize,
    round: usize,
) -> (u64, u64) {
    let mine: Vec<i32> = (0..len).map(|at| given(world.rank(), round, at)).collect();
    data.write(&mine);
    let before = (calls.work(), calls.launches());
    let sum = Some(ReduceOp::Sum.into());
    call(world, Op::AllReduce, (data, data), len, sum);
    let after = (calls.work(), calls.launches());
    for (at, found) in data.read().into_iter().enumerate() {
        let sum: i32 = (0..world.size()).map(|rank| given(rank, round, at)).sum();
        assert_eq!(found, sum, "element {at} of round {round}");
    }
    (after.0 - before.0, after.1 - before.1)
}

/// The number behind a word that a rank has said.
fn number(exit: &Exit, word: &str) -> u64 {
    let mut words = exit.lines.iter().flat_map(|line| line.split(' '));
    let found = words
        .find(|found| *found == word)
        .and_then(|_| words.next());
    let found = found.unwrap_or_else(|| panic!("{word}: {exit:?}"));
    found.parse().expect("a number")
}

/// All calls of the rounds behind the first ones: work handed over, and graphs launched.
fn repeat(rank: &Rank) {
    const ROUNDS: usize = 40;
    let plugin = told("TEST_PLUGIN");
    let len = told("TEST_LEN").parse().expect("a number");
    let world = rank.init(with_graphs(&plugin, told("TEST_GRAPHS") == "true"));
    let calls = Calls::of(&plugin);
    let mut random = Rng::new(Rng::seed() ^ u64::from(world.rank()));
    let data = Values::<i32>::new(world.device(), len);
    let (mut work, mut launches) = (0, 0);
    for round in 0..WARM + ROUNDS {
        if random.below(16) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(2000)));
        }
        let (more, graphs) = all_reduce(&world, &calls, &data, len, round);
        if round >= WARM {
            work += more;
            launches += graphs;
        }
    }
    rank.say(&format!(
        "work {} launches {launches}",
        work / ROUNDS as u64
    ));
    rank.say("done");
}

/// On eight devices, a short one and one of several puts a pair, with random delays: right with graphs and
/// without, and with them a tenth of the calls at most, unless a kernel does all of a short one without.
#[test]
fn a_repeated_call_is_a_graph() {
    let test = "a_repeated_call_is_a_graph";
    for (plugin, name) in VENDORS {
        for len in [300, 50_000] {
            let [without, with] = [false, true].map(|graphs| {
                let machine = Emulated::new(test, name, |text| text + DELAYS)?;
                let job = machine.job(test, 8).env("TEST_PLUGIN", plugin);
                let job = job.env("TEST_LEN", len).env("TEST_GRAPHS", graphs);
                let exits = job.start(|rank| repeat(&rank)).finish();
                all_done(&exits);
                Some(exits)
            });
            let (Some(without), Some(with)) = (without, with) else {
                return;
            };
            for (without, with) in without.iter().zip(&with) {
                let calls = [without, with].map(|exit| number(exit, "work"));
                assert_eq!(number(without, "launches"), 0, "{without:?}");
                assert!(number(with, "launches") >= 30, "{with:?}");
                let together = plugin == "cuda" && len == 300;
                let most = if together { 1 } else { calls[0] / 10 };
                assert!(calls[1] <= most, "{plugin}, {len}: {calls:?}");
            }
            let calls = [&without[0], &with[0]].map(|exit| number(exit, "work"));
            eprintln!(
                "{plugin}: an all_reduce of {len} takes {calls:?} calls, without graphs and with"
            );
        }
    }
}

/// They share a driver, and what one of them frees waits for the others.
#[test]
fn threads_of_one_process_repeat_calls() {
    let test = "threads_of_one_process_repeat_calls";
    for (plugin, name) in VENDORS {
        let adjust = |text: String| text + DELAYS;
        let Some(machine) = Emulated::new(test, name, adjust) else {
            return;
        };
        let ranks = machine
            .job(test, 1)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let plugin = told("TEST_PLUGIN");
                let of = plugin.clone();
                let ready = Barrier::new(4);
                threads(4, with_graphs(&plugin, true), move |world| {
                    let calls = Calls::of(&of);
                    for round in 0..WARM {
                        // Freed while others are at their calls.
                        let spare =
                            (round % 8 == 0).then(|| Values::<i32>::new(world.device(), 100));
                        let data = Values::<i32>::new(world.device(), 500);
                        for round in 0..4 {
                            all_reduce(&world, &calls, &data, 500, round);
                        }
                        drop(spare);
                    }
                    let data = Values::<i32>::new(world.device(), 500);
                    for round in 0..WARM {
                        // Each in turn has a moment when the others are quiet.
                        ready.wait();
                        if round % 4 != world.rank() as usize {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                        all_reduce(&world, &calls, &data, 500, round);
                    }
                    world.finalize().expect("finalize");
                });
                rank.say(&format!("launches {}", Calls::of(&plugin).launches()));
                rank.say("done");
            });
        let exits = ranks.finish();
        all_done(&exits);
        assert!(number(&exits[0], "launches") > 0, "{exits:?}");
    }
}

/// Calls in the order of a program's stream go the usual way, between blocking ones that are graphs: they
/// use the same counters.
#[test]
#[allow(
    unsafe_code,
    reason = "calls the driver, and hands addresses to collectives"
)]
fn calls_on_a_programs_stream() {
    const LEN: usize = 1000;
    let test = "calls_on_a_programs_stream";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text + DELAYS) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| {
        let world = rank.init(with_graphs("cuda", true));
        let (driver, calls) = (Driver::open(), Calls::of("cuda"));
        driver.enter(world.rank() as i32);
        let native = driver.stream();
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { world.wrap_stream(native as u64) }.expect("a stream");
        let data = Values::<i32>::new(world.device(), LEN);
        for round in 0..2 * WARM {
            if round % 4 != 3 {
                all_reduce(&world, &calls, &data, LEN, round);
                continue;
            }
            let launched = calls.launches();
            let mine: Vec<i32> = (0..LEN).map(|at| given(world.rank(), round, at)).collect();
            data.write(&mine);
            let call = RawCall {
                op: Op::AllReduce,
                input: data.address(),
                output: data.address(),
                sizes: Sizes::Equal(LEN as u64),
                dtype: unisono::DataType::I32,
                reduction: Some(ReduceOp::Sum.into()),
            };
            // SAFETY: device memory that lives until the stream has been waited for.
            drop(unsafe { world.on(&stream).start_raw(call) }.expect("it starts"));
            driver.synchronise(native);
            assert_eq!(calls.launches(), launched, "a graph");
            for (at, found) in data.read().into_iter().enumerate() {
                let sum: i32 = (0..world.size()).map(|rank| given(rank, round, at)).sum();
                assert_eq!(found, sum, "element {at} of round {round}");
            }
        }
        stream.synchronize().expect("no error");
        assert!(calls.launches() > 0, "no graph");
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Memory that lies where other memory was gets graphs of its own: the emulator ends a device whose graph
/// copies what it was not made for.
#[test]
fn memory_in_place_of_other_memory() {
    const LIVES: usize = 6;
    const LEN: usize = 3000;
    let test = "memory_in_place_of_other_memory";
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let ranks = machine
            .job(test, 2)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let plugin = told("TEST_PLUGIN");
                let world = rank.init(with_graphs(&plugin, true));
                let calls = Calls::of(&plugin);
                let (mut places, mut launches) = (Vec::new(), Vec::new());
                for life in 0..LIVES {
                    let data = Values::<i32>::new(world.device(), LEN);
                    places.push(data.address());
                    let before = calls.launches();
                    for round in 0..WARM {
                        all_reduce(&world, &calls, &data, LEN, life * WARM + round);
                    }
                    launches.push(calls.launches() - before);
                }
                assert!(launches.iter().all(|count| *count > 0), "{launches:?}");
                places.sort_unstable();
                places.dedup();
                assert!(
                    places.len() < LIVES,
                    "no memory came in place of other: {places:x?}"
                );
                rank.say("done");
            });
        all_done(&ranks.finish());
    }
}

/// More shapes than a stream keeps graphs: not more than so many are there, and none in the end.
#[test]
fn graphs_are_bounded_and_ended() {
    const SHAPES: usize = 20;
    const ROUNDS: usize = 64;
    /// That of one stream; the communicator's is the only one that repeats anything.
    const MOST: u64 = 64;
    let test = "graphs_are_bounded_and_ended";
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let ranks = machine
            .job(test, 2)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let plugin = told("TEST_PLUGIN");
                let world = rank.init(with_graphs(&plugin, true));
                let calls = Calls::of(&plugin);
                let data = Values::<i32>::new(world.device(), 300);
                let mut most = 0;
                for shape in 0..SHAPES {
                    let data = Values::<i32>::new(world.device(), shape + 1);
                    for round in 0..ROUNDS {
                        all_reduce(&world, &calls, &data, shape + 1, round);
                        most = most.max(calls.graphs());
                    }
                }
                let made = calls.count("GraphInstantiate");
                assert!(made > MOST && most <= MOST, "{made} made, {most} at once");
                assert!(calls.count("StreamCreate") < MOST, "one for each graph");
                // New ones come in place of the oldest.
                let before = calls.launches();
                for round in 0..4 * WARM {
                    all_reduce(&world, &calls, &data, 300, round);
                }
                assert!(calls.launches() > before, "nothing new has a graph");
                assert!(calls.graphs() <= MOST);
                drop(data);
                world.finalize().expect("finalize");
                assert_eq!(calls.graphs(), 0, "left behind");
                rank.say("done");
            });
        all_done(&ranks.finish());
    }
}

/// Calls until one fails.
fn until_it_fails(rank: &Rank, world: &Communicator, data: &Values<i32>) {
    let calls = Calls::of(&told("TEST_PLUGIN"));
    for _ in 0..100_000 {
        let before = calls.launches();
        let call = RawCall {
            op: Op::AllReduce,
            input: data.address(),
            output: data.address(),
            sizes: Sizes::Equal(1000),
            dtype: unisono::DataType::I32,
            reduction: Some(ReduceOp::Sum.into()),
        };
        #[allow(unsafe_code, reason = "hands an address to a collective")]
        // SAFETY: device memory that lives until the call is complete, and nobody else uses.
        let done = unsafe { world.call_raw(call) };
        if let Err(error) = done {
            let last = calls.launches() - before;
            rank.say(&format!("launches {before} last {last}"));
            rank.say(&format!("error: {error}"));
            return;
        }
    }
    rank.say("nothing fails");
}

fn says(exits: &[Exit], text: &str) {
    for exit in exits {
        let mut errors = exit.lines.iter().filter(|line| line.starts_with("error: "));
        assert!(
            errors.any(|error| error.contains(text)) && !exit.late,
            "{exit:?}"
        );
        assert!(number(exit, "launches") > 0, "{exit:?}");
    }
}

#[test]
fn a_device_that_is_lost_under_a_graph_is_an_error() {
    let test = "a_device_that_is_lost_under_a_graph_is_an_error";
    for (plugin, name) in VENDORS {
        let lost = |text: String| {
            text + "finds_races: false\nfaults: [{kind: lost, device: 1, after: 4000}]\n"
        };
        let Some(machine) = Emulated::new(test, name, lost) else {
            return;
        };
        let ranks = machine
            .job(test, 3)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let world = rank.init(with_graphs(&told("TEST_PLUGIN"), true));
                let data = Values::<i32>::new(world.device(), 1000);
                until_it_fails(&rank, &world, &data);
            });
        says(&ranks.finish(), "");
    }
}

/// One rank calls no more, and aborts while the graphs of the others wait for it.
#[test]
fn an_abort_ends_a_graph_that_waits() {
    let test = "an_abort_ends_a_graph_that_waits";
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text + DELAYS) else {
            return;
        };
        let ranks = machine
            .job(test, 3)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let plugin = told("TEST_PLUGIN");
                let world = rank.init(with_graphs(&plugin, true));
                let (data, calls) = (Values::<i32>::new(world.device(), 1000), Calls::of(&plugin));
                for round in 0..WARM {
                    all_reduce(&world, &calls, &data, 1000, round);
                }
                if world.rank() == 2 {
                    std::thread::sleep(Duration::from_millis(300));
                    world.abort_handle().abort("to see what happens");
                    return;
                }
                until_it_fails(&rank, &world, &data);
            });
        let exits = ranks.finish();
        says(&exits[..2], "to see what happens");
        for exit in &exits[..2] {
            assert_eq!(number(exit, "last"), 1, "the call that failed: {exit:?}");
        }
    }
}

/// A runtime that cannot make any is asked a few times, and all goes the usual way.
#[test]
fn where_graphs_cannot_be_made_nothing_changes() {
    let test = "where_graphs_cannot_be_made_nothing_changes";
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text + "lacks: [graphs]\n") else {
            return;
        };
        let ranks = machine
            .job(test, 2)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let plugin = told("TEST_PLUGIN");
                let world = rank.init(with_graphs(&plugin, true));
                let (data, calls) = (Values::<i32>::new(world.device(), 1000), Calls::of(&plugin));
                for round in 0..WARM {
                    all_reduce(&world, &calls, &data, 1000, round);
                }
                let tried = calls.count("GraphInstantiate");
                assert!((1..=8).contains(&tried), "{tried} times");
                assert_eq!(calls.launches(), 0);
                rank.say("done");
            });
        all_done(&ranks.finish());
    }
}

/// A kernel that waits would keep the device from the process that it waits for.
#[test]
fn processes_that_share_a_device_use_none() {
    let test = "processes_that_share_a_device_use_none";
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let ranks = machine
            .job(test, 2)
            .env("TEST_PLUGIN", plugin)
            .start(|rank| {
                let plugin = told("TEST_PLUGIN");
                let adjust = with_graphs(&plugin, true);
                let world = rank.init(|options| {
                    adjust(options);
                    options.device = Some((plugin.clone(), 0));
                });
                let (data, calls) = (Values::<i32>::new(world.device(), 1000), Calls::of(&plugin));
                for round in 0..WARM {
                    all_reduce(&world, &calls, &data, 1000, round);
                }
                assert_eq!(calls.count("GraphInstantiate"), 0);
                rank.say("done");
            });
        all_done(&ranks.finish());
    }
}

/// Nor do ranks that are threads of one process, for the same reason.
#[test]
fn threads_that_share_a_device_use_none() {
    let test = "threads_that_share_a_device_use_none";
    for (plugin, name) in VENDORS {
        // Queues for the streams of both.
        let adjust = |text: String| text.replace("queues: 4\n", "queues: 16\n");
        let Some(machine) = Emulated::new(test, name, adjust) else {
            return;
        };
        let job = machine.job(test, 1).env("TEST_PLUGIN", plugin);
        let ranks = job.env("GPU_MAX_HW_QUEUES", 16).start(|rank| {
            let plugin = told("TEST_PLUGIN");
            let (adjust, of) = (with_graphs(&plugin, true), plugin.clone());
            let on_one = move |options: &mut InitOptions| {
                adjust(options);
                options.device = Some((of.clone(), 0));
            };
            let ready = Barrier::new(2);
            threads(2, on_one, move |world| {
                let data = Values::<i32>::new(world.device(), 1000);
                // What was registered for it waits for all that the device has under way.
                ready.wait();
                for round in 0..WARM {
                    all_reduce(&world, &Calls::of(&told("TEST_PLUGIN")), &data, 1000, round);
                }
                world.finalize().expect("finalize");
            });
            assert_eq!(Calls::of(&plugin).count("GraphInstantiate"), 0);
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}
