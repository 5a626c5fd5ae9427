//! What must hold when a call, and when everything, has ended.

use super::{Fault, Machine};
use crate::case::Wanted;
use crate::job::SLOTS;
use crate::program::{Flag, Line, Step};

impl Machine<'_> {
    /// Everybody who must have entered a call has, as far as its end on this rank can know.
    pub(super) fn heard(&self, queue: usize, call: u32) -> Result<(), Fault> {
        let rank = self.program.queues[queue].rank;
        for (index, lane) in self.program.queues.iter().enumerate() {
            if lane.peer.is_some() || !self.program.case.must_hear(call, rank, lane.rank) {
                continue;
            }
            let begin = lane.steps.iter().position(|step| match step {
                Step::End(ended) => *ended + 1 == call,
                _ => false,
            });
            let entered = begin.map_or(0, |end| end + 1);
            if (self.queues[queue].known.firm[index] as usize) <= entered {
                let other = lane.rank;
                return Err(Fault::Unheard { other, call });
            }
        }
        Ok(())
    }

    /// Outputs are right, signals and slots are even.
    pub(super) fn check(&self) -> Result<(), Fault> {
        for (call, ranks) in (0..).zip(&self.program.calls) {
            for (rank, ends) in (0..).zip(ranks) {
                for (i, cell) in (0..).zip(ends.output.clone()) {
                    self.output(call, rank, i, cell)?;
                }
            }
        }
        for (index, flag) in self.program.flags.iter().enumerate() {
            self.balance(index, *flag)?;
        }
        Ok(())
    }

    fn output(&self, call: u32, rank: u32, i: u32, cell: u32) -> Result<(), Fault> {
        let case = &self.program.case;
        let value = self.values[cell as usize];
        let wrong = |got: String| {
            Err(Fault::Output {
                place: self.place(cell),
                got,
            })
        };
        let Some(value) = value else {
            return wrong("nothing".to_owned());
        };
        let is_right = match case.wanted(rank, i) {
            Wanted::Of(from, element) => self.expressions.is_input(value, call, from, element),
            Wanted::Sum(element) => self.expressions.is_all(value, (call, element), case.ranks),
        };
        if !is_right {
            return wrong(self.expressions.text(value));
        }
        // Who all get the same sums must get the same bits.
        if case.op == unisono::Op::AllReduce {
            let first = self.program.calls[call as usize][0].output.start + i;
            if self.values[first as usize] != Some(value) {
                return wrong("the same sum as on rank 0, in another order".to_owned());
            }
        }
        Ok(())
    }

    /// Each signal was waited for once; credits may be left, one for each slot that is free.
    fn balance(&self, index: usize, flag: Flag) -> Result<(), Fault> {
        let state = &self.flags[index];
        let (signals, waits) = (state.raised.len() as u64, state.waits);
        let even = match flag.line {
            Line::Credit => {
                let [puts, waited] = self.channels.count(flag.owner, flag.peer);
                signals == puts && waits == waited.saturating_sub(u64::from(SLOTS))
            }
            Line::Shown(_) => signals * u64::from(self.program.case.ranks - 1) == waits,
            Line::Bell => waits == 0,
            Line::Data(_) | Line::Doorbell | Line::Done => signals == waits,
        };
        if even {
            Ok(())
        } else {
            Err(Fault::Unbalanced {
                flag,
                signals,
                waits,
            })
        }
    }
}
