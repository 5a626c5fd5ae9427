//! A batch of short steps is done by one kernel, one step after the other.
//!
//! Each call of a runtime costs the host some microseconds, and its device some more between two of them; a short message is
//! made of many. So where the runtime has a kernel for it, a batch that waits, raises flags and moves little is handed over as
//! one launch. Flags alone go the usual way: the runtime's own calls take no place on the device.
//!
//! A kernel that waits takes such a place, and time. So nothing is done together where another process of the job uses the
//! device too, in turns, nor what waits for a flag of this process alone, as such a flag is raised by a program's stream whose
//! kernels may need the whole device. And only what a stream is given while it has nothing under way, so that it has one such
//! kernel at most: with several queued behind each other, four ranks of one process on one device were seen to hang (an H200,
//! driver 580), and long messages, which are many batches, gain nothing.
#![allow(
    unsafe_code,
    reason = "calls the runtime with the addresses of commands"
)]

use std::sync::atomic::Ordering;

use unisono_plugin::Result;

use super::AcceleratorStream;
use super::lower::size;
use super::step::{Purpose, Script, Step};
use crate::state::Tenure;
use crate::{MemoryOperation, Runtime};

/// What one block of threads moves sooner than a copy of the runtime's, or a kernel of many blocks, begins.
const SHORT: u64 = 64 << 10;
/// The same of what does not lie at a multiple of [`WHOLE`].
const SHORT_APART: u64 = 4 << 10;
/// What a thread moves at once.
const WHOLE: u64 = 16;

impl<R: Runtime> AcceleratorStream<R> {
    /// Steps are written down from here on, if they may be done together.
    pub(super) fn begin_together(&mut self) {
        let device = &*self.device;
        let may = device.runtime.steps_at_once() > 0
            && self.completed >= self.accepted
            && self.tenure != Tenure::Common
            && self.recorded.is_empty()
            && !self.waits_for_own
            && !device.takes_turns.load(Ordering::Relaxed);
        if may {
            let mut steps = std::mem::take(&mut self.spare);
            steps.clear();
            let purpose = Purpose::Together;
            self.script = Some(Script { steps, purpose });
        }
    }

    /// Whether one kernel does such steps.
    pub(super) fn goes_together(&self, steps: &[Step]) -> bool {
        let most = self.device.runtime.steps_at_once();
        together(steps, self.shared.line.address(), most).is_some()
    }

    /// Hands over what was written down to be done together, the whole batch: by a kernel if that can be.
    pub(super) fn end_together(&mut self) -> Result<()> {
        let Some(steps) = self.take_together() else {
            return Ok(());
        };
        let runtime = &*self.device.runtime;
        let together = together(&steps, self.shared.line.address(), runtime.steps_at_once());
        // SAFETY: checked to be memory of the device; the submitter's promise keeps it.
        let done = unsafe {
            match &together {
                Some(together) => runtime.run_steps(self.native, together),
                None => one_by_one(runtime, self.native, &steps),
            }
        };
        self.spare = steps;
        done
    }

    /// Hands over what was written down one by one, as something comes that cannot be, and so what comes behind.
    pub(super) fn not_together(&mut self) -> Result<()> {
        let Some(steps) = self.take_together() else {
            return Ok(());
        };
        // SAFETY: as above.
        let done = unsafe { one_by_one(&*self.device.runtime, self.native, &steps) };
        self.spare = steps;
        done
    }

    fn take_together(&mut self) -> Option<Vec<Step>> {
        let together = |script: &mut Script| script.purpose == Purpose::Together;
        self.script.take_if(together).map(|script| script.steps)
    }
}

/// The steps that one kernel does, of at most so many, if there is something to move and all are short. `own` is where the
/// stream writes how far it is.
fn together(steps: &[Step], own: u64, most: usize) -> Option<Vec<Step>> {
    let moves = |step: &Step| matches!(step, Step::Copy(_) | Step::Reduce(_));
    if !steps.iter().any(moves) || !are_short(steps) {
        return None;
    }
    let all = in_order(steps, own);
    (all.len() <= most).then_some(all)
}

/// Hands steps over one by one, flags that follow each other by one call.
///
/// # Safety
/// As for [`Step::run`].
unsafe fn one_by_one<R: Runtime>(runtime: &R, stream: R::Stream, steps: &[Step]) -> Result<()> {
    let mut flags = Vec::with_capacity(steps.len());
    // SAFETY: the caller's promise.
    unsafe {
        for step in steps {
            if let Step::Memory(operation) = step {
                flags.push(*operation);
                continue;
            }
            if !flags.is_empty() {
                runtime.operate(stream, &flags)?;
                flags.clear();
            }
            step.run(runtime, stream)?;
        }
        match flags.is_empty() {
            true => Ok(()),
            false => runtime.operate(stream, &flags),
        }
    }
}

/// Whether each step is one that a kernel does beside others.
fn are_short(steps: &[Step]) -> bool {
    steps.iter().enumerate().all(|(at, step)| match step {
        Step::Memory(_) => true,
        // It compares the words of the flag that it has waited for.
        Step::Check(check) => at.checked_sub(1).is_some_and(|before| {
            let wait = MemoryOperation::Wait {
                address: check.flag,
                value: check.value,
            };
            matches!(steps[before], Step::Memory(found) if found == wait)
        }),
        Step::Copy(copy) => copy.repeat == 1 && is_short(copy.dst | copy.src, copy.bytes),
        Step::Reduce(reduce) => {
            let bytes = reduce.elements.saturating_mul(size(reduce.dtype));
            reduce.repeat == 1 && is_short(reduce.dst | reduce.a | reduce.b, bytes)
        }
        Step::Scale(_) => false,
    })
}

fn is_short(places: u64, bytes: u64) -> bool {
    let most = match places.is_multiple_of(WHOLE) {
        true => SHORT,
        false => SHORT_APART,
    };
    bytes <= most
}

/// The same steps, in an order in which more of them are done at once: words before the flags among which they stand, and
/// of the numbers that the stream writes to its own line the last.
fn in_order(steps: &[Step], own: u64) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::with_capacity(steps.len());
    let is_own = |step: &Step| matches!(step, Step::Memory(MemoryOperation::Write { address, .. }) if *address == own);
    // Where the flags begin that nothing but words and flags stands behind.
    let mut flags: Option<usize> = None;
    for (at, step) in steps.iter().enumerate() {
        if is_own(step) && steps[at + 1..].iter().any(is_own) {
            continue;
        }
        match step {
            Step::Memory(MemoryOperation::Word { address, .. }) => {
                // Of a flag that is raised twice the second words must not come before the first flag.
                let again = flags
                    .is_some_and(|from| all[from..].iter().any(|step| is_of_line(step, *address)));
                match flags {
                    Some(from) if !again => {
                        all.insert(from, *step);
                        flags = Some(from + 1);
                    }
                    _ => {
                        all.push(*step);
                        flags = None;
                    }
                }
            }
            Step::Memory(MemoryOperation::Write { .. }) => {
                flags.get_or_insert(all.len());
                all.push(*step);
            }
            _ => {
                flags = None;
                all.push(*step);
            }
        }
    }
    all
}

/// Bytes of a flag line.
const LINE: u64 = 64;

/// Whether a step writes to the line of an address.
fn is_of_line(step: &Step, of: u64) -> bool {
    match step {
        Step::Memory(
            MemoryOperation::Word { address, .. } | MemoryOperation::Write { address, .. },
        ) => address / LINE == of / LINE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use unisono_plugin::abi::{CommandCopy, CommandReduce};

    use super::*;
    use crate::FlagCommand;

    const OWN: u64 = 0x9000;

    fn wait(address: u64) -> Step {
        Step::Memory(MemoryOperation::Wait { address, value: 1 })
    }

    fn word(address: u64) -> Step {
        Step::Memory(MemoryOperation::Word { address, value: 2 })
    }

    fn flag(address: u64) -> Step {
        Step::Memory(MemoryOperation::Write { address, value: 3 })
    }

    fn check(flag: u64) -> Step {
        Step::Check(FlagCommand {
            flag,
            value: 1,
            ..FlagCommand::default()
        })
    }

    fn copy(src: u64, bytes: u64) -> Step {
        Step::Copy(CommandCopy {
            src,
            bytes,
            repeat: 1,
            ..CommandCopy::zeroed()
        })
    }

    /// Steps by a letter and the address that they write to or wait for.
    fn names(steps: &[Step]) -> Vec<(char, u64)> {
        let name = |step: &Step| match step {
            Step::Memory(MemoryOperation::Wait { address, .. }) => ('w', *address),
            Step::Memory(MemoryOperation::Word { address, .. }) => ('o', *address),
            Step::Memory(MemoryOperation::Write { address, .. }) => ('f', *address),
            Step::Check(on) => ('c', on.flag),
            _ => ('d', 0),
        };
        steps.iter().map(name).collect()
    }

    #[test]
    fn words_come_before_the_flags_among_which_they_stand() {
        let steps = [copy(0, 8), word(8), flag(0), word(72), flag(64), flag(OWN)];
        let found = names(&in_order(&steps, OWN));
        let expected = [
            ('d', 0),
            ('o', 8),
            ('o', 72),
            ('f', 0),
            ('f', 64),
            ('f', OWN),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_stands_behind_a_wait_stays_there() {
        let steps = [flag(0), wait(64), word(136), flag(128)];
        assert_eq!(names(&in_order(&steps, OWN)), names(&steps));
    }

    #[test]
    fn words_of_a_flag_that_is_raised_again_come_behind_it() {
        let steps = [word(8), flag(0), word(8), flag(0), word(72), flag(64)];
        let found = names(&in_order(&steps, OWN));
        let expected = [('o', 8), ('f', 0), ('o', 8), ('o', 72), ('f', 0), ('f', 64)];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_the_last_of_its_own_numbers_is_written() {
        let steps = [
            wait(0),
            flag(OWN),
            wait(64),
            flag(OWN),
            copy(0, 8),
            flag(OWN),
        ];
        let found = names(&in_order(&steps, OWN));
        assert_eq!(found, [('w', 0), ('w', 64), ('d', 0), ('f', OWN)]);
    }

    fn are_together(steps: &[Step]) -> bool {
        together(steps, OWN, 8).is_some()
    }

    #[test]
    fn long_steps_and_those_at_odd_places_are_none_of_it() {
        for (step, fits) in [
            (copy(0, SHORT), true),
            (copy(0, SHORT + 1), false),
            (copy(4, SHORT_APART), true),
            (copy(4, SHORT_APART + 1), false),
            (Step::Reduce(CommandReduce::zeroed()), false),
        ] {
            assert_eq!(are_together(&[wait(0), step, flag(0)]), fits, "{step:?}");
        }
    }

    #[test]
    fn flags_alone_and_more_than_a_kernel_takes_go_the_usual_way() {
        assert!(!are_together(&[wait(0), flag(64)]));
        assert!(are_together(&[copy(0, 8); 8]));
        assert!(!are_together(&[copy(0, 8); 9]));
        // What is left out of its own numbers does not count.
        let mut marked = vec![flag(OWN); 7];
        marked.extend([copy(0, 8); 7]);
        marked.push(flag(OWN));
        assert!(are_together(&marked));
    }

    /// A kernel that waits for a flag compares its words, too.
    #[test]
    fn a_comparison_goes_with_its_wait() {
        let with = |steps: &[Step]| are_together(&[steps, &[copy(0, 8)]].concat());
        assert!(with(&[wait(0), check(0), wait(64), check(64)]));
        assert!(!with(&[wait(64), check(0)]));
        assert!(!with(&[check(0)]));
    }
}
