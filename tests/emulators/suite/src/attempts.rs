//! Random collectives over devices of which not all can do everything.

use unisono::{Communicator, DataType, Error};
use unisono_tests::{Collective, Fold, Rng, Try};

/// Makes so many random collectives of any type and reduction and checks every element. Says how many
/// were not refused: of all types and reductions most are common to all devices.
///
/// # Panics
/// If a result is wrong, a call fails, or a refusal does not name a device.
#[must_use]
pub fn attempts(world: &Communicator, total: u64, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let done = (0..total).filter(|_| attempt(world, &mut rng)).count() as u64;
    assert!(done >= total / 2, "{done} of {total} were done");
    done
}

/// What a device has not must be refused on all ranks, and harms nothing.
fn attempt(world: &Communicator, rng: &mut Rng) -> bool {
    let dtype = *rng.pick(&DataType::ALL);
    let folds: Vec<_> = Fold::all().filter(|fold| fold.applies_to(dtype)).collect();
    let most = *rng.pick(&[1, 16, 300, 5_000, 60_000]);
    let attempt = Try {
        collective: *rng.pick(&Collective::all(world.size())),
        count: rng.below(most + 1) as usize,
        op: *rng.pick(&folds),
        in_place: rng.below(2) == 0,
        salt: rng.below(1 << 20),
    };
    match attempt.run_as(world, dtype) {
        Ok(Ok(())) => true,
        Ok(Err(wrong)) => panic!("{attempt:?} of {dtype}: {wrong}"),
        Err(error @ Error::Unsupported { .. }) => {
            let text = error.to_string();
            let named = text.contains("device `") && text.contains("` of rank ");
            assert!(named, "{text}");
            false
        }
        Err(error) => panic!("{attempt:?} of {dtype}: {error}"),
    }
}
