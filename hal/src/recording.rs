//! Which recording a stream takes part in.

use std::num::NonZeroU32;

/// A recording of streams into a graph.
#[derive(Clone, Copy, Debug)]
pub struct Recording(NonZeroU32);

impl Recording {
    /// As a plugin says it: 0 is none, 1 one that it cannot tell from others.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
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
        let of = |number| Recording::from_number(number).expect("a recording");
        assert!(Recording::from_number(0).is_none());
        assert!(!of(1).is_known() && !of(1).is_same(of(1)));
        assert!(of(2).is_known() && of(2).is_same(of(2)));
        assert!(!of(2).is_same(of(3)) && !of(1).is_same(of(2)));
    }
}
