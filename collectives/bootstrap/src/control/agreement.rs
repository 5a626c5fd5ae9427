//! How survivors agree on who they are. No input or output.
//!
//! The lowest survivor leads. Each of the others tells it "I am here" ([`Act::Follow`]) and from then on accepts no
//! decision of a lower rank, for it holds that one for dead. Once all that live are here the leader decides, by a
//! flood that every rank passes on. If it dies first, everyone follows the next lowest. That one cannot decide alone:
//! a rank that has accepted an earlier decision never says that it is here. So a leader first asks all others
//! ([`Act::Ask`]); whoever knows a decision, or comes to know one, tells those that asked and those that follow it.

use std::collections::BTreeSet;

/// One agreement, as one rank sees it.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// Who follows this rank.
    here: BTreeSet<u32>,
    /// Who leads or led, and wants to know of decisions.
    askers: BTreeSet<u32>,
    following: Option<u32>,
    /// The members that are not among the survivors.
    decided: Option<Vec<u32>>,
}

/// What a rank that wants the agreement does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing: wait for this rank's decision, or (as leader) for these to come.
    Wait(Vec<u32>),
    /// Tell this rank "I am here".
    Follow(u32),
    /// As the new leader, ask these whether they know of a decision.
    Ask(Vec<u32>),
    /// Tell all that these are excluded.
    Decide(Vec<u32>),
    /// It is decided: these are excluded.
    Done(Vec<u32>),
}

impl Agreement {
    /// A rank says that it is here; what to tell it if all is decided.
    pub(super) fn hear_here(&mut self, rank: u32) -> Option<Vec<u32>> {
        self.here.insert(rank);
        self.decided.clone()
    }

    /// A leader asks; what to tell it if all is decided.
    pub(super) fn hear_question(&mut self, rank: u32) -> Option<Vec<u32>> {
        self.askers.insert(rank);
        self.decided.clone()
    }

    /// A decision came from `origin`; whom this rank must tell of it.
    pub(super) fn hear_decision(&mut self, me: u32, origin: u32, excluded: &[u32]) -> Vec<u32> {
        let overruled = self
            .following
            .is_some_and(|leader| leader != me && origin < leader);
        if self.decided.is_some() || overruled {
            return Vec::new();
        }
        self.decided = Some(excluded.to_vec());
        self.here
            .union(&self.askers)
            .copied()
            .filter(|rank| *rank != me && *rank != origin)
            .collect()
    }

    /// What `me` does next, when `alive` of `members` (both ascending) are believed to live.
    pub(super) fn act(&mut self, me: u32, members: &[u32], alive: &[u32]) -> Act {
        if let Some(excluded) = &self.decided {
            return Act::Done(excluded.clone());
        }
        let leader = alive.first().copied().unwrap_or(me);
        let is_new = self.following.replace(leader) != Some(leader);
        if leader != me {
            return if is_new {
                Act::Follow(leader)
            } else {
                Act::Wait(vec![leader])
            };
        }
        let absent: Vec<u32> = alive
            .iter()
            .copied()
            .filter(|rank| *rank != me && !self.here.contains(rank))
            .collect();
        if !absent.is_empty() {
            return if is_new {
                Act::Ask(absent)
            } else {
                Act::Wait(absent)
            };
        }
        let excluded: Vec<u32> = members
            .iter()
            .copied()
            .filter(|rank| !alive.contains(rank))
            .collect();
        self.decided = Some(excluded.clone());
        Act::Decide(excluded)
    }
}

#[cfg(test)]
mod tests;
