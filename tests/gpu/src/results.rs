//! Whether results are right on the device, to the element: every collective, type and reduction, and random calls.

use std::time::Duration;

use unisono::InitOptions;
use unisono_emulated_tests::{all_of_all_types, attempts};
use unisono_tests::threads;

use crate::{Scale, first_device};

/// Elements of a message, but for the random ones: some that fill no vector, one, and more than one kernel takes of most
/// types.
const LENGTHS: [usize; 3] = [301, 1, 5000];
/// How long a call may take: what hangs is to be an error.
const PATIENCE: Duration = Duration::from_secs(20);

fn patient(options: &mut InitOptions) {
    first_device(options);
    options.timeouts.op = PATIENCE;
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
