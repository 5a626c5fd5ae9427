//! What commands do to flags, counters and the slots that these speak of.

use super::known::knows;
use super::slots::Said;
use super::{Fault, Machine, Raised};
use crate::job::SLOTS;
use crate::program::{Flag, Line, Raise};

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
            Line::Data(number) => self.say(queue, flag, number, Said::Filled),
            Line::Credit => self.give_back(queue, flag, before),
            Line::Doorbell | Line::Done => Ok(()),
        }
    }

    /// The flag of a pair says the next thing of a slot: `number`, which the peer of a data flag
    /// fills on its owner.
    fn say(&mut self, queue: usize, flag: Flag, number: u32, what: Said) -> Result<(), Fault> {
        let (owner, from) = match flag.line {
            Line::Credit => (flag.peer, flag.owner),
            _ => (flag.owner, flag.peer),
        };
        let slot = self.program.memory.slot_number(owner, from, number);
        match (self.slots).say(slot, what, queue, &self.queues[queue].known.all) {
            true => Ok(()),
            false => Err(Fault::Slot { flag, number }),
        }
    }

    /// A slot is its sender's again.
    fn give_back(&mut self, queue: usize, flag: Flag, before: u64) -> Result<(), Fault> {
        let number = (before % u64::from(SLOTS)) as u32;
        self.say(queue, flag, number, Said::Free)?;
        for cell in self.program.memory.slot(flag.peer, flag.owner, number) {
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
            Line::Data(number) => self.say(queue, flag, number, Said::Held),
            Line::Credit | Line::Doorbell | Line::Done => Ok(()),
        }
    }
}
