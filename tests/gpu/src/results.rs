//! Whether results are right on the device, to the element: every collective, type and reduction, and random calls.

use std::time::Duration;

use unisono::{Communicator, InitOptions, ReduceOp};
use unisono_emulated_tests::{all_of_all_types, attempts};
use unisono_tests::threads;

use crate::{Scale, first_device};

/// Elements of a message, but for the random ones: some that fill no vector, one, and more than one kernel takes of most
/// types.
const LENGTHS: [usize; 3] = [301, 1, 5000];
/// How long a call may take: what hangs is to be an error.
const PATIENCE: Duration = Duration::from_secs(20);

/// How late a rank comes: longer than the others need to hand all over.
const LATE: Duration = Duration::from_millis(200);

fn patient(options: &mut InitOptions) {
    options.timeouts.op = PATIENCE;
    // It may have been asked for less, or more.
    first_device(options);
}

/// Ranks that are threads, all on the device: how many calls were right.
///
/// # Panics
/// If an element is wrong, or a call fails.
pub fn check(ranks: u32, scale: Scale) -> u64 {
    let lengths = &LENGTHS[..scale.lengths];
    let right = threads(ranks, patient, move |world| {
        // What is refused is a program's own function alone.
        let all = lengths
            .iter()
            .map(|count| all_of_all_types(&world, *count)[0]);
        let all: u64 = all.sum();
        let random = attempts(&world, scale.random_calls, 11);
        world.finalize().expect("finalize");
        random + all
    });
    right.into_iter().min().unwrap_or_default()
}

/// Long calls of ranks that are threads, to which each of them comes late in turn: the others have handed over copies
/// that wait for it before it hands over its first one. How many there were.
///
/// # Panics
/// If an element is wrong, or a call fails.
pub fn check_late(ranks: u32, scale: Scale) -> u64 {
    let all = threads(ranks, patient, move |world| {
        (0..ranks).for_each(|late| sum_with(&world, late, scale.long / size_of::<u32>()));
        world.finalize().expect("finalize");
        u64::from(ranks)
    });
    all.into_iter().min().unwrap_or_default()
}

fn sum_with(world: &Communicator, late: u32, len: usize) {
    let mut values = vec![world.rank() + 1; len];
    let mut buffer = world.buffer::<u32>(len).expect("a buffer");
    buffer.write(&values).expect("written");
    world.barrier().expect("a barrier");
    if world.rank() == late {
        std::thread::sleep(LATE);
    }
    let sum = world.start_all_reduce(buffer, ReduceOp::Sum);
    let sum = sum.expect("started").wait().expect("done");
    sum.read(&mut values).expect("read");
    let expected = world.size() * (world.size() + 1) / 2;
    assert!(values.iter().all(|found| *found == expected));
    // Freeing waits for what the others have under way, which may need this rank.
    world.barrier().expect("a barrier");
}
