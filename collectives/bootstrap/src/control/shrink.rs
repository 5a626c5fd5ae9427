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
                    // If it died just now it is no longer the one to follow, which the next round sees.
                    let _ = state.send(
                        leader,
                        Lane::Shrink,
                        tag,
                        &Writer::new().ranks(&dead).finish(),
                    );
                    absent = vec![leader];
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

    /// A rank says that it wants this agreement, and whom it knows to be dead.
    pub(super) fn hear_here(&mut self, from: u32, tag: Tag, bytes: &[u8]) {
        for dead in Reader::new(bytes).ranks().unwrap_or_default() {
            self.bury(dead, from, "told when survivors gathered".to_owned());
        }
        if let Some(excluded) = self.agreement(tag).hear_here(from) {
            self.originate(News::Survivors { tag, excluded });
        }
    }

    /// A decision came by.
    pub(super) fn hear_decision(&mut self, origin: u32, tag: Tag, excluded: &[u32]) {
        let me = self.rank;
        if origin != me && self.agreement(tag).hear_decision(me, origin, excluded) {
            self.originate(News::Survivors {
                tag,
                excluded: excluded.to_vec(),
            });
        }
    }
}
