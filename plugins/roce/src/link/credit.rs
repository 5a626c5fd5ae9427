//! What this end owes the peer to know: how many of its messages it has taken off each lane.
//!
//! A message needs a posted receive, or the peer's device would have to try again and again. So each
//! end counts what it sent against what the other says that it has taken. It says so with records that
//! go anyway, and else by a message of its own, for which there is always a receive: an end that waits
//! for credits sends nothing that could make more than two of those for each lane.

/// Receives that are there beyond the credits: for messages about credits, and the last word.
pub(crate) const fn extra_receives(lanes: usize) -> u32 {
    2 * lanes as u32 + 2
}

/// What was taken off each lane, and what the peer knows of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credits {
    window: u32,
    lanes: Vec<(u32, u32)>,
}

impl Credits {
    pub(crate) fn new(lanes: usize, window: u32) -> Self {
        Self {
            window,
            lanes: vec![(0, 0); lanes],
        }
    }

    /// One more message was taken off a lane.
    pub(crate) fn take(&mut self, lane: usize) {
        if let Some((taken, _)) = self.lanes.get_mut(lane) {
            *taken = taken.wrapping_add(1);
        }
    }

    /// The peer has got all that it had credit for on a lane at once, with a new queue pair.
    pub(crate) fn renew(&mut self, lane: usize) {
        if let Some((taken, told)) = self.lanes.get_mut(lane) {
            *told = *taken;
        }
    }

    /// Whether the peer must hear of it, by a message of its own if need be.
    pub(crate) fn is_due(&self) -> bool {
        self.owed() >= self.window / 2
    }

    /// What to say with a record that goes anyway, if it is worth the bytes.
    pub(crate) fn passenger(&mut self) -> Vec<u32> {
        if self.owed() >= self.window / 4 {
            self.say()
        } else {
            Vec::new()
        }
    }

    /// What to say.
    pub(crate) fn say(&mut self) -> Vec<u32> {
        self.lanes
            .iter_mut()
            .map(|(taken, told)| {
                *told = *taken;
                *taken
            })
            .collect()
    }

    fn owed(&self) -> u32 {
        let owed = self
            .lanes
            .iter()
            .map(|(taken, told)| taken.wrapping_sub(*told));
        owed.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_hears_of_it_before_it_runs_dry() {
        let mut credits = Credits::new(2, 8);
        assert!(credits.passenger().is_empty());
        for _ in 0..2 {
            credits.take(1);
        }
        assert!(!credits.is_due());
        assert_eq!(credits.passenger(), [0, 2]);
        for _ in 0..4 {
            credits.take(0);
        }
        assert!(credits.is_due());
        assert_eq!(credits.say(), [4, 2]);
        assert!(!credits.is_due());
        credits.take(0);
        credits.take(0);
        credits.renew(0);
        assert!(credits.passenger().is_empty());
    }
}
