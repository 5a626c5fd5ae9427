//! How survivors agree on who they are. No input or output.
//!
//! The lowest survivor coordinates. Each of the others tells it "I am here" ([`Agreement::follow`]) and from then on
//! accepts no decision of a lower rank, for it holds that one for dead. Once all that live are here the coordinator
//! decides, by a flood that every rank passes on. If it dies first, everyone follows the next lowest. That one cannot
//! decide alone: a rank that already accepted an earlier decision never says "I am here" again, and its passed-on
//! flood reaches the new coordinator, which adopts it and repeats it in its own name for those that follow it.

use std::collections::BTreeSet;

/// One agreement, as one rank sees it.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    here: BTreeSet<u32>,
    following: Option<u32>,
    /// The members that are not among the survivors.
    decided: Option<Vec<u32>>,
}

/// What a rank that wants the agreement does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing: wait for this rank's decision, or (as coordinator) for these to come.
    Wait(Vec<u32>),
    /// Tell this rank "I am here".
    Follow(u32),
    /// Tell all that these are excluded.
    Decide(Vec<u32>),
    /// It is decided: these are excluded.
    Done(Vec<u32>),
}

impl Agreement {
    /// A rank says that it is here; what to repeat to it if all is decided.
    pub(super) fn hear_here(&mut self, rank: u32) -> Option<Vec<u32>> {
        self.here.insert(rank);
        self.decided.clone()
    }

    /// A decision came from `origin`; whether this rank must repeat it in its own name.
    pub(super) fn hear_decision(&mut self, me: u32, origin: u32, excluded: &[u32]) -> bool {
        let overruled = self
            .following
            .is_some_and(|leader| leader != me && origin < leader);
        if self.decided.is_some() || overruled {
            return false;
        }
        self.decided = Some(excluded.to_vec());
        origin != me && !self.here.is_empty()
    }

    /// What `me` does next, when `alive` of `members` (both ascending) are believed to live.
    pub(super) fn act(&mut self, me: u32, members: &[u32], alive: &[u32]) -> Act {
        if let Some(excluded) = &self.decided {
            return Act::Done(excluded.clone());
        }
        let leader = alive.first().copied().unwrap_or(me);
        if leader != me {
            if self.following == Some(leader) {
                return Act::Wait(vec![leader]);
            }
            self.following = Some(leader);
            return Act::Follow(leader);
        }
        self.following = Some(me);
        let absent: Vec<u32> = alive
            .iter()
            .copied()
            .filter(|rank| *rank != me && !self.here.contains(rank))
            .collect();
        if !absent.is_empty() {
            return Act::Wait(absent);
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
