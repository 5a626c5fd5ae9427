//! Calls that are repeated run as graphs of the vendor's runtime, and give what they give without.

use std::time::Duration;

use unisono::plan::Op;
use unisono::{Communicator, InitOptions, PluginRequest, ReduceOp};
use unisono_emulated_tests::{Calls, Emulated, Values, all_done, call};
use unisono_tests::{Rng, threads};

/// A vendor's plugin, a machine of its devices, and how its functions' names begin.
const VENDORS: [(&str, &str, &str); 2] = [("cuda", "h100x8", "cu"), ("rocm", "mi300x8", "hip")];

/// A device of its own for each rank, with graphs or without.
fn with_graphs(plugin: &str, graphs: bool) -> impl Fn(&mut InitOptions) + Send + Sync + use<> {
    let plugin = plugin.to_owned();
    move |options| {
        let mut request = PluginRequest::named(&plugin);
        request.params = vec![("graphs".to_owned(), graphs.to_string())];
        options.plugins = vec![request];
        options.device = Some((plugin.clone(), options.rank));
    }
}

/// What a rank gives in a round.
fn given(rank: u32, round: usize, at: usize) -> i32 {
    (rank as usize * 1009 + round * 7919 + at * 31) as i32
}

/// An all_reduce in place, of values of its own each round.
fn all_reduce(world: &Communicator, data: &Values<i32>, len: usize, round: usize) {
    let mine: Vec<i32> = (0..len).map(|at| given(world.rank(), round, at)).collect();
    data.write(&mine);
    call(
        world,
        Op::AllReduce,
        (data, data),
        len,
        Some(ReduceOp::Sum.into()),
    );
    for (at, found) in data.read().into_iter().enumerate() {
        let sum: i32 = (0..world.size()).map(|rank| given(rank, round, at)).sum();
        assert_eq!(found, sum, "element {at} of round {round}");
    }
}

/// Environment of a rank's process.
fn told(name: &str) -> String {
    std::env::var(name).expect(name)
}

#[test]
fn a_repeated_call_is_a_graph() {
    const WARM: usize = 80;
    const ROUNDS: usize = 80;
    let test = "a_repeated_call_is_a_graph";
    for (plugin, name, begin) in VENDORS {
        for len in [300, 50_000] {
            let mut work = Vec::new();
            for graphs in [false, true] {
                let delays = |text: String| text + "delays: {one_in: 16, longest_us: 50}\n";
                let Some(machine) = Emulated::new(test, name, delays) else {
                    return;
                };
                let job = machine.job(test, 8);
                let job = job.env("TEST_PLUGIN", plugin).env("TEST_BEGIN", begin);
                let job = job.env("TEST_LEN", len).env("TEST_GRAPHS", graphs);
                let ranks = job.start(|rank| {
                    let plugin = told("TEST_PLUGIN");
                    let len = told("TEST_LEN").parse().expect("a number");
                    let graphs = told("TEST_GRAPHS") == "true";
                    let world = rank.init(with_graphs(&plugin, graphs));
                    let calls = Calls::of(&plugin);
                    let mut random = Rng::new(Rng::seed() ^ u64::from(world.rank()));
                    let data = Values::<i32>::new(world.device(), len);
                    let launch = told("TEST_BEGIN") + "GraphLaunch";
                    let (mut work, mut launches, mut all) = (0, 0, 0);
                    for round in 0..WARM + ROUNDS {
                        if random.below(16) == 0 {
                            std::thread::sleep(Duration::from_micros(random.below(2000)));
                        }
                        let count = || {
                            (
                                calls.work(&plugin),
                                calls.count(&launch),
                                calls.count(&told("TEST_BEGIN")),
                            )
                        };
                        let mine: Vec<i32> =
                            (0..len).map(|at| given(world.rank(), round, at)).collect();
                        data.write(&mine);
                        let before = count();
                        call(
                            &world,
                            Op::AllReduce,
                            (&data, &data),
                            len,
                            Some(ReduceOp::Sum.into()),
                        );
                        let after = count();
                        for (at, found) in data.read().into_iter().enumerate() {
                            let sum: i32 =
                                (0..world.size()).map(|rank| given(rank, round, at)).sum();
                            assert_eq!(found, sum, "element {at} of round {round}");
                        }
                        if round >= WARM {
                            work += after.0 - before.0;
                            launches += after.1 - before.1;
                            all += after.2 - before.2;
                        }
                    }
                    rank.say(&format!("work {work} launches {launches} all {all}"));
                    rank.say("done");
                });
                let exits = ranks.finish();
                all_done(&exits);
                eprintln!("{plugin} {len} graphs={graphs} {:?}", exits[0].lines);
                work.push(exits);
            }
        }
    }
}
