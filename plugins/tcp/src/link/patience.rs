//! How long bytes stay in the socket until the host says where they shall lie.
//!
//! What comes before the host has asked for it lies in its window, from which the host copies it. Where ranks share cores
//! most peers are ahead of a rank, and most of their bytes would be copied once more. So once the host has asked too late,
//! long frames that it has not asked for wait for some turns. If it does not ask for one of them, none waits any more until
//! it has asked too late again, and again, the more often the more of them waited in vain: of what goes to slots to be
//! added up, nothing is ever asked for.
//!
//! `unisono bench all_to_all --ranks 8 -b 4M -e 4M --dirty --without-links shm`, on two cores: 6.1 ms without, 5.4 ms with.

/// Turns of its link that a frame waits: one in a poll, or some where the poll moves bytes. A rank that shares its core polls
/// as often as that has come to it again, and is in its next call within a few of them.
const TURNS: u32 = 8;
/// Copying fewer bytes costs no more than a turn.
const LONG: u64 = 32 << 10;
/// Asked too late so often before another frame waits, at most.
const DISTRUST_MAX: u32 = 64;

/// Whether frames wait.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    is_worth: bool,
    /// So often the host must ask too late before it is.
    distrust: u32,
    /// What that becomes when a frame has waited in vain.
    next: u32,
}

impl Patience {
    /// Whether a frame of so many bytes that has waited for so many turns waits on.
    pub(crate) const fn waits(&self, length: u64, waited: u32) -> bool {
        self.is_worth && length >= LONG && waited < TURNS
    }

    /// The host asked for what lies in the window already.
    pub(crate) const fn came_late(&mut self) {
        self.is_worth |= self.distrust == 0;
        self.distrust = self.distrust.saturating_sub(1);
    }

    /// The host has asked for a frame that waited.
    pub(crate) const fn paid(&mut self) {
        self.next /= 2;
    }

    /// A frame has waited, and the host has not asked for it.
    pub(crate) fn in_vain(&mut self) {
        if std::mem::take(&mut self.is_worth) {
            self.next = (2 * self.next + 1).min(DISTRUST_MAX);
            self.distrust = self.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_frames_wait_and_not_for_ever() {
        let mut patience = Patience::default();
        assert!(!patience.waits(LONG, 0), "nobody asked too late");
        patience.came_late();
        assert!(patience.waits(LONG, 0) && patience.waits(LONG, TURNS - 1));
        assert!(!patience.waits(LONG - 1, 0) && !patience.waits(LONG, TURNS));
    }

    #[test]
    fn the_more_wait_in_vain_the_rarer_they_wait() {
        let mut patience = Patience::default();
        let asked = |patience: &mut Patience| {
            let mut asked = 0;
            while !patience.waits(LONG, 0) {
                patience.came_late();
                asked += 1;
            }
            asked
        };
        let mut often = Vec::new();
        for _ in 0..9 {
            often.push(asked(&mut patience));
            patience.in_vain();
            patience.in_vain(); // of the same time: it counts once
        }
        assert_eq!(often, [1, 2, 4, 8, 16, 32, 64, 65, 65]);
        asked(&mut patience);
        (0..7).for_each(|_| patience.paid());
        patience.in_vain();
        assert_eq!(asked(&mut patience), 2);
    }
}
