//! The bells that a direct run is to ring in one go.

use super::peer::{Peer, Way};

/// Bells of peers that are due, as flags were raised for which they may sleep.
pub(super) struct DueBells {
    /// Of all peers whose memory is mapped.
    all: Box<[u64]>,
    is_all_due: bool,
    /// Those that are due, if not all are.
    due: Vec<u64>,
}

impl DueBells {
    /// Of these peers, none of them due.
    pub(super) fn of(peers: &[Peer]) -> Self {
        let mut all = Self {
            all: Box::default(),
            is_all_due: false,
            due: Vec::new(),
        };
        for peer in peers {
            if let Way::Mapped { bell, .. } = peer.way {
                all.note(bell);
            }
        }
        Self {
            all: std::mem::take(&mut all.due).into(),
            ..all
        }
    }

    /// One is due, if it was not noted just before. Of zero there is none.
    #[inline]
    pub(super) fn note(&mut self, bell: u64) {
        if bell != 0 && self.due.last() != Some(&bell) {
            self.due.push(bell);
        }
    }

    /// All are due.
    #[inline]
    pub(super) fn note_all(&mut self) {
        self.is_all_due = true;
    }

    /// Those that are due, if there are any.
    #[inline]
    pub(super) fn due(&self) -> Option<&[u64]> {
        match self.is_all_due {
            true => Some(&*self.all),
            false => Some(&*self.due),
        }
        .filter(|bells| !bells.is_empty())
    }

    /// They were rung.
    #[inline]
    pub(super) fn rung(&mut self) {
        self.is_all_due = false;
        self.due.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::peer::{Fetch, Near};

    fn peer(rank: u32, bell: u64) -> Peer {
        let way = Way::Mapped {
            signal: 0,
            slots: 0,
            bell,
            inline: true,
            fetch: Fetch::default(),
        };
        Peer::new(rank, way, Near::default())
    }

    #[test]
    fn bells_are_due_until_they_were_rung() {
        // Two ranks of one process have one bell, and a stream rings for the last.
        let peers = [peer(0, 64), peer(1, 64), peer(2, 128), peer(3, 0)];
        let mut bells = DueBells::of(&peers);
        assert_eq!(bells.due(), None);
        bells.note(128);
        bells.note(128);
        bells.note(0);
        assert_eq!(bells.due(), Some(&[128][..]));
        bells.note_all();
        assert_eq!(bells.due(), Some(&[64, 128][..]));
        bells.rung();
        assert_eq!(bells.due(), None);
    }
}
