//! Which recording a stream takes part in.

use std::num::NonZeroU32;

/// A recording of streams into a graph.
#[derive(Clone, Copy, Debug)]
pub struct Recording(NonZeroU32);

impl Recording {
    /// As a plugin of this minor says it: 0 is none, 1 one that it cannot tell from others. Before 1.5 anything but 0
    /// said no more than that.
    pub(crate) fn from_number(number: u32, abi_minor: u16) -> Option<Self> {
        let number = if abi_minor < 5 { number.min(1) } else { number };
        NonZeroU32::new(number).map(Self)
    }

    /// Whether the plugin can tell it from others. If so, its streams record events, too.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.0.get() > 1
    }

    /// Whether both are known to be the same.
    #[must_use]
    pub fn is_same(self, other: Self) -> bool {
        self.is_known() && self.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_tell_is_never_the_same() {
        let of = |number| Recording::from_number(number, 5).expect("a recording");
        assert!(Recording::from_number(0, 5).is_none());
        assert!(!of(1).is_known() && !of(1).is_same(of(1)));
        assert!(of(2).is_known() && of(2).is_same(of(2)));
        assert!(!of(2).is_same(of(3)) && !of(1).is_same(of(2)));
        // A spoilt one, as a plugin may have passed on its vendor's word.
        let old = Recording::from_number(2, 4).expect("a recording");
        assert!(!old.is_known() && Recording::from_number(0, 4).is_none());
    }
}
