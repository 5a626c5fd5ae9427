//! What a posted link may be given later, so that it goes out together: each call of the operating system costs more than a
//! short message, and wakes the other rank.
//!
//! Where calls of one plan repeat, three things may lie in a link's batch for a while:
//!
//! - *Answers*: bare signals for which the other rank leaves its wait owed, to say that both called the same. That rank does
//!   not stop for one: it runs ahead, by as much as it has room and may owe. Most short calls have none
//!   ([`Planned::of_call`]).
//! - *Credits* of puts that needed no slot, of messages and of calls that are answered later or not at all: of such there is
//!   room for many, and half of them are told of at once.
//! - *Puts* to ranks that answer later or not at all, those of a broadcast say, while they come quickly one after the other:
//!   the other ranks have those before them to go on with.
//!
//! They go out when one of these comes first:
//!
//! - Enough are together, or something else goes to that rank. No rank ever waits for want of what is held: what may be
//!   owed ([`most`](super::owed::most)) and what there is room for is more.
//! - This rank begins a call of another plan, or waits. Then all go out where puts are held, whatever it waits for
//!   ([`held`](crate::execute::held)). Of answers and credits alone: those to the rank that it waits for, and those to
//!   others if they are many. Others do not stop for them, and with many ranks there is always one to be waited for.
//! - It makes no call, or waits for long: the progress thread looks for them as long as calls come, each millisecond, or up
//!   to five times as often where puts may be among them, and sends them if no call has begun since it looked last: a rank
//!   that computes holds up another for two looks.
//!
//! Where holding answers back was in vain, as the progress thread sent them or a call ran in the stream, the next ones go at
//! once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::execute::op::Planned;

/// What may be held back now.
#[derive(Default)]
pub(in crate::execute) struct Answers {
    /// The plan of the last calls, if it has anything to hold back.
    by: Option<Arc<Planned>>,
    /// So much in favour of holding them back.
    score: u8,
    /// The number of the last op when the progress thread looked for what is held, and how often it had moved on.
    looked: u64,
    moved_on: u8,
    /// Whether anything may lie in a batch, and whether puts may.
    pub held: bool,
    pub puts: bool,
    /// When the last call began, and whether the current one came quickly behind it.
    began: Option<Instant>,
    is_quick: bool,
    /// Calls for which puts are not held.
    barred: u8,
}

/// Between two calls of which the second comes quickly behind the first, for each put of a call: about what a call of the
/// operating system takes, which it costs to send a put by itself.
const QUICK: Duration = Duration::from_micros(10);

/// How soon the progress thread looks again where puts may be held. Looking costs some microseconds.
const SOON: Duration = Duration::from_micros(200);

/// As [`SOON`], where answers alone may be held: the other rank needs them for its next plan, for which it needs this rank
/// in most cases, too.
pub(in crate::execute) const LATER: Duration = Duration::from_millis(1);

/// Looks in vain for which the time between two grows by [`SOON`].
const GROWS: u32 = 8;

/// Calls of one plan before anything is held back.
const REPEATS: u8 = 8;

/// Calls for which puts go at once, where they were held by a thread that then waited for another communicator: as if it
/// sends over one and receives over the other.
const BARRED: u8 = 64;

impl Answers {
    /// A call of this plan begins; whether those that are held back must go first.
    #[inline]
    pub(in crate::execute) fn begin(&mut self, planned: &Arc<Planned>) -> bool {
        if self.by.as_ref().is_some_and(|by| by.is_like(planned)) {
            self.score = (self.score + 1).min(2 * REPEATS);
            self.barred = self.barred.saturating_sub(1);
            self.is_quick = false;
            let puts = planned.direct.as_ref().map_or(0, |direct| direct.ahead);
            if self.score >= REPEATS && self.barred == 0 && puts > 0 {
                let now = Instant::now();
                let before = self.began.replace(now);
                self.is_quick = before.is_some_and(|before| now - before < QUICK * puts);
            }
            return false;
        }
        let holds = planned.direct.as_ref().is_some_and(|direct| direct.holds);
        self.is_quick = false;
        self.by = holds.then(|| planned.clone());
        self.score = 0;
        self.held
    }

    /// Whether one of the current call's may be held back.
    #[inline]
    pub(super) fn may_wait(&self) -> bool {
        self.score >= REPEATS
    }

    /// A put was sent, which took its time.
    pub(super) fn pushed(&mut self) {
        if let Some(began) = &mut self.began {
            *began = Instant::now();
        }
    }

    /// Whether calls come quickly.
    #[inline]
    pub(in crate::execute) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// A call runs in a stream: what comes behind it is no quick call until the next begins.
    pub(in crate::execute) fn lowered(&mut self) {
        self.is_quick = false;
    }

    /// Holding them back was in vain.
    pub(in crate::execute) fn in_vain(&mut self) {
        self.score = self.score.saturating_sub(REPEATS);
    }

    /// Puts were held by a thread that waited elsewhere.
    pub(in crate::execute) fn held_puts_in_vain(&mut self) {
        self.barred = BARRED;
    }

    /// How soon to look for what is held. The longer calls have come one behind the other, the longer: what the last of them
    /// hold is late by a small part of the time that all took.
    pub(in crate::execute) fn look_after(&self) -> Duration {
        match self.by.as_ref().and_then(|by| by.direct.as_ref()) {
            Some(direct) if direct.ahead > 0 => pause(self.moved_on),
            _ => LATER,
        }
    }

    /// Whether no op has begun since this was last asked, where `number` is the last one's.
    pub(in crate::execute) fn is_left_alone(&mut self, number: u64) -> bool {
        let is_left = std::mem::replace(&mut self.looked, number) == number;
        self.moved_on = match is_left {
            true => 0,
            false => self.moved_on.saturating_add(1),
        };
        is_left
    }
}

/// How soon to look for puts, after so many looks in vain.
fn pause(moved_on: u8) -> Duration {
    LATER.min(SOON * (1 + u32::from(moved_on) / GROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_calls_for_long_is_looked_at_less_often() {
        let mut answers = Answers::default();
        let mut waited = Duration::ZERO;
        for number in 1..100 {
            assert!(!answers.is_left_alone(number));
            let after = pause(answers.moved_on);
            assert!(after <= SOON + waited / 4, "{after:?} after {waited:?}");
            waited += after;
        }
        assert_eq!(pause(answers.moved_on), LATER);
        assert!(answers.is_left_alone(99));
        assert_eq!(pause(answers.moved_on), SOON, "the next calls may be few");
    }

    #[test]
    fn answers_wait_once_calls_repeat_and_not_where_that_was_in_vain() {
        let plan = Planned::nothing().expect("a plan");
        let mut answers = Answers {
            by: Some(plan.clone()),
            ..Answers::default()
        };
        let calls = |answers: &mut Answers, count| {
            for _ in 0..count {
                assert!(!answers.begin(&plan));
            }
        };
        calls(&mut answers, REPEATS - 1);
        assert!(!answers.may_wait());
        calls(&mut answers, 1);
        assert!(answers.may_wait());
        answers.in_vain();
        assert!(!answers.may_wait());
        calls(&mut answers, 100);
        answers.in_vain();
        assert!(answers.may_wait(), "now and then is no reason");
    }
}
