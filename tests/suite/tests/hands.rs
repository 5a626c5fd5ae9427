//! Slots that change hands, and messages that go by a shuttle: whatever is called in what order, at whatever pace, by the
//! calling threads or by streams, all get what was sent.

use std::time::Duration;

use unisono::{Communicator, ReduceOp};
use unisono_tests::{Count, Job, threads, watchdog};

/// Bytes around the bounds between lines, small places, halves of slots and slots, and of a shuttle.
const SIZES: [usize; 14] = [
    1, 4, 8, 9, 64, 256, 257, 1024, 4096, 16_384, 16_385, 40_000, 65_536, 70_001,
];
const CALLS: u32 = 400;
const SEEDS: Count = Count::new(1, 12);
const LIMIT: Duration = Duration::from_secs(120);

/// What a rank gives at a place in a call.
fn given(call: u32, rank: u32, at: usize) -> u32 {
    (call << 20) ^ (rank << 16) ^ at as u32
}

/// The same random numbers on all ranks.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// One of what ranks call.
fn call(world: &Communicator, call: u32, random: &mut Random) {
    let (rank, ranks) = (world.rank(), world.size());
    let kind = random.below(8);
    let count = SIZES[random.below(SIZES.len())];
    let root = random.below(ranks as usize) as u32;
    let other = (root + 1) % ranks;
    let of = |rank, count| -> Vec<u32> { (0..count).map(|at| given(call, rank, at)).collect() };
    let what = || format!("call {call} of kind {kind}, {count} elements, rank {rank}");
    match kind {
        0 => {
            let mut all = vec![0; count * ranks as usize];
            (world.all_gather(&of(rank, count), &mut all)).expect("all_gather");
            for (from, part) in (0..).zip(all.chunks(count)) {
                assert!(part == of(from, count), "{} from {from}", what());
            }
        }
        1 => {
            let mut sums = vec![0; count];
            (world.all_reduce(&of(rank, count), &mut sums, ReduceOp::Sum)).expect("all_reduce");
            let sum = |at| (0..ranks).fold(0_u32, |sum, of| sum.wrapping_add(given(call, of, at)));
            assert!((0..count).all(|at| sums[at] == sum(at)), "{}", what());
        }
        2 => {
            let whole = count * ranks as usize;
            let mut got = vec![0; whole];
            (world.all_to_all(&of(rank, whole), &mut got)).expect("all_to_all");
            let own = rank as usize * count;
            for (from, part) in (0..).zip(got.chunks(count)) {
                let sent = &of(from, whole)[own..][..count];
                assert!(part == sent, "{} from {from}", what());
            }
        }
        3 => {
            let mut data = of(rank, count);
            world.broadcast(&mut data, root).expect("broadcast");
            assert!(data == of(root, count), "{}", what());
        }
        // A message, and an answer to it.
        4 | 5 => {
            let mut got = vec![0; count];
            for (from, to) in [(root, other), (other, root)] {
                if rank == from {
                    world.send(&of(rank, count), to).expect("send");
                } else if rank == to {
                    world.recv(&mut got, from).expect("recv");
                    assert!(got == of(from, count), "{}", what());
                }
            }
        }
        // Messages that nobody answers.
        6 => {
            for message in 0..3 {
                let sent = &of(root, count + message)[message..];
                if rank == root {
                    world.send(sent, other).expect("send");
                } else if rank == other {
                    let mut got = vec![0; count];
                    world.recv(&mut got, root).expect("recv");
                    assert!(got == sent, "{}", what());
                }
            }
        }
        // Messages to and from all beside each other.
        _ => {
            let before = (rank + ranks - 1) % ranks;
            let mut got = vec![0; count];
            let sent = of(rank, count);
            world
                .group(|group| {
                    group.send(&sent, (rank + 1) % ranks)?;
                    group.recv(&mut got, before)
                })
                .expect("a group");
            assert!(got == of(before, count), "{}", what());
        }
    }
}

fn calls(world: &Communicator, seed: u64) {
    let mut random = Random(seed);
    // Each at its own pace.
    let mut own = Random(seed ^ u64::from(world.rank()) << 40);
    for number in 0..CALLS {
        if own.below(50) == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
        call(world, number, &mut random);
    }
}

/// Which ranks' calls run directly.
#[derive(Clone, Copy, Debug)]
enum Directly {
    All,
    None,
    Some,
}

#[test]
fn threads_get_what_was_sent() {
    for seed in 0..SEEDS.get() {
        for swaps in [true, false] {
            for directly in [Directly::All, Directly::None, Directly::Some] {
                for ranks in [2, 3, 5] {
                    threads(
                        ranks,
                        move |options| {
                            options.memory.swap_slots = Some(swaps);
                            options.direct = match directly {
                                Directly::All => true,
                                Directly::None => false,
                                Directly::Some => options.rank % 2 == 0,
                            };
                        },
                        move |world| {
                            calls(&world, seed);
                            world.finalize().expect("finalize");
                        },
                    );
                }
            }
        }
    }
}

#[test]
fn processes_get_what_was_sent() {
    let test = "processes_get_what_was_sent";
    let _limit = watchdog(test, LIMIT);
    // One rank that does not want to is enough; few and small slots, of which no half is left for a shuttle.
    for (slots, swaps) in [(8, [true, true]), (8, [true, false]), (3, [true, true])] {
        let job = Job::new(test, 2).start(move |rank| {
            let world = rank.init(|options| {
                options.memory.swap_slots = Some(swaps[options.rank as usize]);
                options.memory.slots = slots;
                options.memory.slot = Some(64 << 10);
            });
            calls(&world, 7);
            world.finalize().expect("finalize");
        });
        let _exits = job.succeed();
    }
}
