//! Every operation, type and reduction of one communicator.

use unisono::{Communicator, DataType};

use crate::typed::{Collective, Try};
use crate::values::Fold;

/// Calls everything there is on messages of these many elements, in place and out, and compares
/// every element; the number of calls. All ranks call it alike.
///
/// # Errors
/// The first call that failed or gave wrong elements, as text.
pub fn everything(
    world: &Communicator,
    counts: &[usize],
    types: &[DataType],
) -> Result<u64, String> {
    let mut salt = 0;
    for collective in Collective::all(world.size()) {
        for &count in counts {
            for &dtype in types {
                // What moves without a reduction is tried once.
                let folds = Fold::all().filter(|fold| fold.applies_to(dtype));
                for op in folds.take(if collective.reduces() { 20 } else { 1 }) {
                    for in_place in [false, true] {
                        if in_place && !collective.in_place() {
                            continue;
                        }
                        salt += 1;
                        let attempt = Try {
                            collective,
                            count,
                            op,
                            in_place,
                            salt,
                        };
                        let done = attempt.run_as(world, dtype);
                        done.map_err(|error| format!("{attempt:?} of {dtype}: {error}"))??;
                    }
                }
            }
        }
    }
    Ok(salt)
}
