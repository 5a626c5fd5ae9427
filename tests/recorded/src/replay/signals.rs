//! What commands do to flags, counters and the slots that these speak of.

use super::known::knows;
use super::slots::Said;
use super::{Fault, Machine, Raised};
use crate::program::{Flag, Line, Raise, Step};

impl Machine<'_> {
    pub(super) fn raise(&mut self, queue: usize, raise: Raise) -> Result<(), Fault> {
        let flag = self.program.flags[raise.flag as usize];
        let state = &mut self.flags[raise.flag as usize];
        let before = state.raised.len() as u64;
        if let Some(counter) = raise.counter {
            let counter = &mut self.counters[counter as usize];
            *counter += 1;
            if *counter != before + 1 {
                return Err(Fault::Counter { flag });
            }
        }
        let known = &self.queues[queue].known;
        let last = state.raised.last();
        if last.is_some_and(|last| !knows(&known.all, &last.known.all)) {
            return Err(Fault::Writers { flag });
        }
        state.raised.push(Raised {
            known: known.snapshot(),
            words: raise.words,
        });
        match flag.line {
            Line::Data(number) => {
                let slot = self.slot(flag, number);
                self.channels.put(flag.peer, flag.owner, slot, true);
                self.say(queue, flag, slot, Said::Filled)
            }
            Line::Shown(group) => {
                // What is nothing but a flag needs no slot: there are more of these.
                let waits = self.has_shown(queue);
                let ranks = 0..self.program.case.ranks;
                for to in ranks.filter(|to| *to != flag.owner) {
                    let place = self.channels.place(flag.owner, to, group);
                    self.channels.put(flag.owner, to, place, waits);
                    self.say(queue, flag, place, Said::Filled)?;
                }
                Ok(())
            }
            Line::Credit => self.give_back(queue, flag, before),
            Line::Doorbell | Line::Done | Line::Bell => Ok(()),
        }
    }

    /// Whether a queue's step before its last wrote something that its rank shows.
    fn has_shown(&self, queue: usize) -> bool {
        let lane = &self.program.queues[queue];
        match lane.steps[..self.queues[queue].at - 1].last() {
            Some(Step::Copy { dst, .. } | Step::Reduce { dst, .. }) => {
                self.program.memory.is_shown_by(*dst, lane.rank)
            }
            _ => false,
        }
    }

    /// The slot of this number which the peer of a data flag fills on its owner.
    fn slot(&self, flag: Flag, number: u32) -> u32 {
        (self.program.memory).slot_number(flag.owner, flag.peer, number)
    }

    /// A flag says the next thing of a slot, or of a place in which something is shown.
    fn say(&mut self, queue: usize, flag: Flag, slot: u32, what: Said) -> Result<(), Fault> {
        match (self.slots).say(slot, what, queue, &self.queues[queue].known.all) {
            true => Ok(()),
            false => Err(Fault::Slot { flag, slot }),
        }
    }

    /// A slot is its sender's again, or a receiver is through with what was shown.
    fn give_back(&mut self, queue: usize, flag: Flag, before: u64) -> Result<(), Fault> {
        let put = self.channels.nth(flag.owner, flag.peer, before);
        let slot = put.ok_or(Fault::Unput { flag })?;
        self.say(queue, flag, slot, Said::Free)?;
        for cell in self.program.memory.nth_slot(slot) {
            self.write(queue, cell)?;
            self.values[cell as usize] = None;
        }
        Ok(())
    }

    pub(super) fn waited(
        &mut self,
        queue: usize,
        flag: u32,
        counter: u32,
        words: Option<[u64; 3]>,
    ) -> Result<(), Fault> {
        let state = &mut self.flags[flag as usize];
        let counter = &mut self.counters[counter as usize];
        let raised = &state.raised[*counter as usize];
        if words.is_some() && words != raised.words {
            let flag = self.program.flags[flag as usize];
            return Err(Fault::Words { flag });
        }
        *counter += 1;
        state.waits += 1;
        let flag = self.program.flags[flag as usize];
        match flag.line {
            Line::Data(number) => self.say(queue, flag, self.slot(flag, number), Said::Held),
            Line::Shown(group) => {
                let to = self.program.queues[queue].rank;
                let place = self.channels.place(flag.owner, to, group);
                self.say(queue, flag, place, Said::Held)
            }
            Line::Credit | Line::Doorbell | Line::Done | Line::Bell => Ok(()),
        }
    }
}
