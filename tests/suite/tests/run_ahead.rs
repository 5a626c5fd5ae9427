//! Rooted calls of few bytes, of which a rank that needs nothing of the others runs ahead: right
//! results whatever comes next, and nobody waits for a rank that has left.

use std::thread::sleep;
use std::time::Duration;

use unisono::{Communicator, InitOptions, ReduceOp};
use unisono_tests::{threads, watchdog};

const LIMIT: Duration = Duration::from_secs(120);

/// More than there are flags between two ranks.
const CALLS: u32 = 100;

/// Rank 0 calls at once, the others are late, again and again.
fn late(world: &Communicator, round: u32) {
    if world.rank() > 0 && round.is_multiple_of(10) {
        sleep(Duration::from_micros(u64::from(world.rank()) * 300));
    }
}

fn broadcasts(world: &Communicator) {
    for round in 0..CALLS {
        late(world, round);
        let mut data = [if world.rank() == 0 { round } else { u32::MAX }; 2];
        world.broadcast(&mut data, 0).expect("broadcast");
        assert_eq!(data, [round; 2]);
    }
}

fn reduces(world: &Communicator) {
    for round in 0..CALLS {
        late(world, round);
        let mut sum = [0; 3];
        world
            .reduce(&[round + world.rank(); 3], &mut sum, ReduceOp::Sum, 0)
            .expect("reduce");
        if world.rank() == 0 {
            let ranks = (0..world.size()).sum::<u32>();
            assert_eq!(sum, [round * world.size() + ranks; 3]);
        }
    }
}

fn gathers_and_scatters(world: &Communicator) {
    let ranks = world.size() as usize;
    for round in 0..CALLS {
        late(world, round);
        let mut all = vec![0; ranks];
        world
            .gather(&[round ^ world.rank()], &mut all, 0)
            .expect("gather");
        if world.rank() == 0 {
            let expected: Vec<_> = (0..world.size()).map(|rank| round ^ rank).collect();
            assert_eq!(all, expected);
        }
        let mut own = [0];
        world.scatter(&all, &mut own, 0).expect("scatter");
        assert_eq!(own, [round ^ world.rank()]);
    }
}

/// Every order of two of these, with other calls behind.
fn all_in_turn(world: &Communicator) {
    let kinds = [broadcasts, reduces, gathers_and_scatters];
    for first in kinds {
        for second in kinds {
            first(world);
            second(world);
        }
        let mut sum = [1_u64; 5];
        world
            .all_reduce_in_place(&mut sum, ReduceOp::Sum)
            .expect("all_reduce");
        assert_eq!(sum, [u64::from(world.size()); 5]);
        // A long message, which the stream carries, behind what is owed.
        first(world);
        let mut long = vec![world.rank() + 7; 1 << 20];
        world.broadcast(&mut long, 0).expect("broadcast");
        assert!(long.iter().all(|element| *element == 7));
        // Messages beside each other.
        first(world);
        messages(world);
        world.barrier().expect("barrier");
    }
    // The last calls: whoever is through leaves.
    broadcasts(world);
}

/// From each rank to the next, and from the next to it, at once.
fn messages(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
    let (to_next, to_before) = ([rank; 4], [rank + 100; 4]);
    let (mut from_before, mut from_next) = ([0; 4], [0; 4]);
    world
        .group(|group| {
            group.send(&to_next, next)?;
            group.send(&to_before, before)?;
            group.recv(&mut from_before, before)?;
            group.recv(&mut from_next, next)
        })
        .expect("a group");
    let expected = match size {
        // The next is the one before: its two messages come in the order in which it sent them.
        2 => [[next; 4], [next + 100; 4]],
        _ => [[before; 4], [next + 100; 4]],
    };
    assert_eq!([from_before, from_next], expected);
}

fn run(ranks: u32, adjust: impl Fn(&mut InitOptions) + Send + Sync + 'static) {
    let _limit = watchdog("run_ahead", LIMIT);
    threads(ranks, adjust, |world| all_in_turn(&world));
}

#[test]
fn two_ranks() {
    run(2, |_| {});
}

#[test]
fn five_ranks() {
    run(5, |_| {});
}

#[test]
fn two_slots() {
    run(3, |options| options.memory.slots = 2);
}

#[test]
fn many_slots() {
    run(3, |options| options.memory.slots = 33);
}
