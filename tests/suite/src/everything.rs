//! Every operation, type and reduction of one communicator.

use unisono::{Communicator, DataType, Error};

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
    let [done, _] = each(world, counts, types, false)?;
    Ok(done)
}

/// As [`everything`], where devices cannot do all of it: what is refused must be refused on all ranks
/// and name a device. The numbers of calls that were done, and refused.
///
/// # Errors
/// As [`everything`].
pub fn everything_there_is(
    world: &Communicator,
    counts: &[usize],
    types: &[DataType],
) -> Result<[u64; 2], String> {
    each(world, counts, types, true)
}

fn each(
    world: &Communicator,
    counts: &[usize],
    types: &[DataType],
    may_refuse: bool,
) -> Result<[u64; 2], String> {
    let (mut salt, mut refused) = (0, 0);
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
                        match attempt.run_as(world, dtype) {
                            Err(error) if may_refuse && names_a_device(&error) => refused += 1,
                            done => {
                                done.map_err(|error| format!("{attempt:?} of {dtype}: {error}"))??
                            }
                        }
                    }
                }
            }
        }
    }
    Ok([salt - refused, refused])
}

/// Whether a call was refused since a device of some rank cannot do it.
fn names_a_device(error: &Error) -> bool {
    let text = error.to_string();
    matches!(error, Error::Unsupported { .. })
        && text.contains("device `")
        && text.contains("` of rank ")
}
