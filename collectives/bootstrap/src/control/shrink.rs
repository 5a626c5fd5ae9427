//! Agreement on who survives: the messages around [`Agreement`](super::agreement::Agreement).

use crate::error::{BootstrapError, Result};
use crate::wait::Wait;
use crate::wire::codec::{Reader, Writer};

use super::agreement::{Act, Agreement};
use super::message::{Lane, News};
use super::state::{Gone, State};
use super::{Control, Tag};

/// How many agreements are remembered; the oldest tags go first.
const REMEMBERED: usize = 64;

/// Agrees with the surviving `members` on who they are: all that live return the same ascending list, also when the
/// rank that coordinates dies meanwhile. All survivors must call it with the same `members` and a fresh `tag`.
/// `known_dead` adds what this rank knows to what [`Control::dead`] says; it is told to all. A rank that dies during
/// the call may still be on the list, the same on every survivor; shrink again then.
///
/// # Errors
/// [`BootstrapError::Deadline`] naming the ranks that live and did not call (on the lowest survivor; the others name
/// that one); [`BootstrapError::Expelled`] if the others took this rank for dead; [`BootstrapError::BadOption`] if it
/// is no member.
pub fn shrink(
    control: &Control,
    tag: Tag,
    members: &[u32],
    known_dead: &[u32],
    wait: &Wait,
) -> Result<Vec<u32>> {
    let me = control.rank();
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup();
    if !members.contains(&me) {
        let why = format!("rank {me}, this one, is not among them");
        return Err(BootstrapError::BadOption {
            option: "members",
            why,
        });
    }
    for &rank in known_dead.iter().filter(|rank| **rank != me) {
        control.declare_dead(rank, "its peer in a communicator found it dead")?;
    }
    let mut absent = Vec::new();
    let outcome = control
        .shared
        .block(wait, "shrinking to the survivors", &[], |state| {
            let alive: Vec<u32> = members
                .iter()
                .copied()
                .filter(|rank| !state.gone.contains_key(rank))
                .collect();
            if let Some(Gone::Dead { by, reason }) = state.gone.get(&me) {
                return Err(BootstrapError::Expelled {
                    rank: me,
                    by: *by,
                    reason: reason.clone(),
                });
            }
            let act = state.agreement(tag).act(me, &members, &alive);
            match act {
                Act::Done(excluded) => return Ok(Some(excluded)),
                Act::Wait(ranks) => absent = ranks,
                Act::Follow(leader) => {
                    let dead = state
                        .gone
                        .iter()
                        .filter(|(_, gone)| matches!(gone, Gone::Dead { .. }));
                    let dead: Vec<u32> = dead.map(|(&rank, _)| rank).collect();
                    state.say(leader, tag, &Word::Here(dead));
                    absent = vec![leader];
                }
                Act::Ask(ranks) => {
                    ranks
                        .iter()
                        .for_each(|&rank| state.say(rank, tag, &Word::Question));
                    absent = ranks;
                }
                Act::Decide(excluded) => {
                    state.originate(News::Survivors {
                        tag,
                        excluded: excluded.clone(),
                    });
                    return Ok(Some(excluded));
                }
            }
            Ok(None)
        });
    let excluded = outcome.map_err(|error| match error {
        BootstrapError::Deadline { what, waited, .. } => BootstrapError::Deadline {
            what,
            waited,
            waiting_for: absent,
        },
        other => other,
    })?;
    control.flush(wait);
    if excluded.contains(&me) {
        let by = members
            .iter()
            .copied()
            .find(|rank| !excluded.contains(rank))
            .unwrap_or(me);
        return Err(BootstrapError::Expelled {
            rank: me,
            by,
            reason: "the survivors agreed without it".to_owned(),
        });
    }
    members.retain(|rank| !excluded.contains(rank));
    Ok(members)
}

impl State {
    fn agreement(&mut self, tag: Tag) -> &mut Agreement {
        while self.agreements.len() >= REMEMBERED && !self.agreements.contains_key(&tag) {
            self.agreements.pop_first();
        }
        self.agreements.entry(tag).or_default()
    }

    /// Says something to one rank. If that one died just now, the agreement's next step sees it.
    fn say(&mut self, to: u32, tag: Tag, word: &Word) {
        let _ = self.send(to, Lane::Shrink, tag, &word.encode());
    }

    /// A rank says something about this agreement.
    pub(super) fn hear_word(&mut self, from: u32, tag: Tag, bytes: &[u8]) {
        let answer = match Word::decode(bytes) {
            Some(Word::Here(dead)) => {
                for rank in dead {
                    self.bury(rank, from, "told when survivors gathered".to_owned());
                }
                self.agreement(tag).hear_here(from)
            }
            Some(Word::Question) => self.agreement(tag).hear_question(from),
            Some(Word::Decision(excluded)) => return self.hear_decision(from, tag, &excluded),
            None => None,
        };
        if let Some(excluded) = answer {
            self.say(from, tag, &Word::Decision(excluded));
        }
    }

    /// A decision came by.
    pub(super) fn hear_decision(&mut self, origin: u32, tag: Tag, excluded: &[u32]) {
        let me = self.rank;
        if origin != me {
            let told = self.agreement(tag).hear_decision(me, origin, excluded);
            told.into_iter()
                .for_each(|rank| self.say(rank, tag, &Word::Decision(excluded.to_vec())));
        }
    }
}

/// What ranks tell each other alone.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// "I am here, and these are dead."
    Here(Vec<u32>),
    /// "Do you know of a decision?"
    Question,
    /// "These are excluded."
    Decision(Vec<u32>),
}

impl Word {
    fn encode(&self) -> Vec<u8> {
        match self {
            Word::Here(dead) => Writer::new().u8(0).ranks(dead).finish(),
            Word::Question => Writer::new().u8(1).finish(),
            Word::Decision(excluded) => Writer::new().u8(2).ranks(excluded).finish(),
        }
    }

    /// Total: `None` for whatever is no word.
    fn decode(bytes: &[u8]) -> Option<Word> {
        let mut reader = Reader::new(bytes);
        let word = match reader.u8()? {
            0 => Word::Here(reader.ranks()?),
            1 => Word::Question,
            2 => Word::Decision(reader.ranks()?),
            _ => return None,
        };
        reader.end(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_come_back_the_same() {
        for word in [
            Word::Here(vec![1, 2]),
            Word::Question,
            Word::Decision(Vec::new()),
        ] {
            assert_eq!(Word::decode(&word.encode()), Some(word));
        }
    }

    proptest! {
        #[test]
        fn decoding_is_total(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(word) = Word::decode(&bytes) {
                prop_assert_eq!(word.encode(), bytes);
            }
        }
    }
}
