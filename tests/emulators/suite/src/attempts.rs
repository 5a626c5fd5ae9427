//! Collectives over devices of which not all can do everything.

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
    let done = (0..total)
        .filter(|step| {
            attempt(world, &mut rng).unwrap_or_else(|error| panic!("step {step}: {error}"))
        })
        .count() as u64;
    assert!(done >= total / 2, "{done} of {total} were done");
    done
}

/// Makes one random collective and checks every element. Says whether it was done: what a device has
/// not must be refused on all ranks, and harms nothing.
///
/// # Errors
/// What else the call says.
///
/// # Panics
/// If a result is wrong, anything but a function of the program's is refused, or a refusal does not name a
/// device.
pub fn attempt(world: &Communicator, rng: &mut Rng) -> Result<bool, Error> {
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
    is_done(world, &attempt, dtype)
}

/// Makes every collective of every type and every reduction that it has, of `count` elements. Says how
/// many were done, and how many a device has not.
///
/// # Panics
/// As [`attempts`].
#[must_use]
pub fn all_of_all_types(world: &Communicator, count: usize) -> [u64; 2] {
    let mut outcomes = [0; 2];
    for dtype in DataType::ALL {
        let folds: Vec<_> = Fold::all().filter(|fold| fold.applies_to(dtype)).collect();
        for collective in Collective::all(world.size()) {
            let of = if collective.reduces() { folds.len() } else { 1 };
            for (salt, op) in (0..).zip(&folds[..of]) {
                let attempt = Try {
                    collective,
                    count,
                    op: *op,
                    in_place: salt % 2 == 0,
                    salt,
                };
                let done = is_done(world, &attempt, dtype);
                let done = done.unwrap_or_else(|error| panic!("{attempt:?} of {dtype}: {error}"));
                outcomes[usize::from(!done)] += 1;
            }
        }
    }
    outcomes
}

fn is_done(world: &Communicator, attempt: &Try, dtype: DataType) -> Result<bool, Error> {
    match attempt.run_as(world, dtype) {
        Ok(Ok(())) => Ok(true),
        Ok(Err(wrong)) => panic!("{attempt:?} of {dtype}: {wrong}"),
        Err(error @ Error::Unsupported { .. }) => {
            let text = error.to_string();
            let named = text.contains("device `") && text.contains("` of rank ");
            assert!(named, "{text}");
            // A program's own function is the host's to call. All else each of these devices has.
            let own = matches!(attempt.op, Fold::Larger | Fold::First);
            assert!(
                own && attempt.collective.reduces(),
                "{attempt:?} of {dtype}: {text}"
            );
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
