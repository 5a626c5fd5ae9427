//! Where the root of a reduce over windows has its output.
//!
//! The others add their shares right into it, but only the root knows where it is. It tells with its first signal: the
//! number of a window and the offset there, or no window, and then it reduces alone. So who is told writes its program no
//! further than to its first reduction until its stream is past that signal (`Lowering::run`).

use unisono_plan::Action;

use crate::error::{Error, Result};

/// A window of the root's, as this rank sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub number: u64,
    pub base: u64,
    pub bytes: u64,
}

/// Of one call, on a rank that is told.
#[derive(Debug)]
pub(crate) struct Target {
    pub root: u32,
    /// The bytes of the output.
    bytes: u64,
    windows: Box<[Seen]>,
    /// Where it is; or that it is out of reach.
    at: Option<Option<u64>>,
}

impl Target {
    pub(crate) fn new(root: u32, bytes: u64, windows: Box<[Seen]>) -> Self {
        Self {
            root,
            bytes,
            windows,
            at: None,
        }
    }

    /// Whether a step has to wait until the root has told.
    pub(super) fn holds(&self, action: &Action) -> bool {
        self.at.is_none() && matches!(action, Action::Reduce { .. })
    }

    /// Whether the root does a step instead.
    pub(super) fn leaves(&self, action: &Action) -> bool {
        self.at == Some(None) && matches!(action, Action::Reduce { .. })
    }

    /// Where the output is, once that is told.
    pub(super) fn output(&self) -> u64 {
        self.at.flatten().unwrap_or(0)
    }

    /// The root has told the number of a window, 0 for none, and an offset there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such window, or the output does not fit there.
    pub(super) fn tell(&mut self, [number, offset]: [u64; 2]) -> Result<()> {
        self.at = Some(match number {
            0 => None,
            _ => {
                let window = self.windows.iter().find(|window| window.number == number);
                let fits = |window: &&Seen| {
                    let end = offset.checked_add(self.bytes);
                    end.is_some_and(|end| end <= window.bytes)
                };
                let Some(window) = window.filter(fits) else {
                    let why = format!(
                        "rank {} has its output of {} bytes at {offset} of window {number}, which is not here: it must \
                         stay allocated on all ranks",
                        self.root, self.bytes
                    );
                    return Err(Error::invalid("reduce", why));
                };
                Some(window.base + offset)
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use unisono_plan::{Blocks, Buffer, Place};

    use super::*;

    fn target() -> Target {
        let seen = |number, base| Seen {
            number,
            base,
            bytes: 4096,
        };
        Target::new(0, 1024, Box::new([seen(3, 0x1000), seen(7, 0x10_0000)]))
    }

    fn sum() -> Action {
        let place = Place::Local {
            buffer: Buffer::Scratch,
            blocks: Blocks::one(0),
        };
        Action::Reduce {
            dst: place,
            a: place,
            b: place,
            last: false,
        }
    }

    #[test]
    fn what_is_told_decides_who_reduces() {
        let (mut told, sum) = (target(), sum());
        assert!(told.holds(&sum) && !told.leaves(&sum));
        assert!(!told.holds(&Action::Release { from: 0 }));
        told.tell([7, 3072]).expect("it fits");
        assert!(!told.holds(&sum) && !told.leaves(&sum));
        assert_eq!(told.output(), 0x10_0c00);
        let mut alone = target();
        alone.tell([0, 0]).expect("no window");
        assert!(!alone.holds(&sum) && alone.leaves(&sum));
    }

    #[test]
    fn an_output_outside_of_all_windows_is_an_error() {
        for wrong in [[2, 0], [3, 3073], [7, u64::MAX]] {
            let error = target().tell(wrong).expect_err("it is not there");
            assert!(
                error.to_string().contains("rank 0 has its output"),
                "{error}"
            );
        }
    }
}
