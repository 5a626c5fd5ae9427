//! Which recording a stream takes part in.

use std::num::NonZeroU32;

/// A recording of streams into a graph. Streams that record into the same graph are told by the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording(NonZeroU32);

impl Recording {
    /// Some recording: the vendor does not tell which.
    pub const UNKNOWN: Self = Self(NonZeroU32::MIN);

    /// That of a vendor's number, which no other recording of the process has.
    #[must_use]
    pub const fn of(id: u64) -> Self {
        // Vendors count, so what differs is in the lower half.
        let folded = (id ^ (id >> 32)) as u32;
        match NonZeroU32::new(folded) {
            Some(number) if number.get() > 1 => Self(number),
            _ => Self(NonZeroU32::MAX),
        }
    }

    /// As the contract has it.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_vendors_number_is_unknown() {
        assert_eq!(Recording::UNKNOWN.number(), 1);
        for id in [0, 1, 1 << 32, u64::MAX] {
            assert!(Recording::of(id).number() > 1, "{id:#x}");
        }
        assert_eq!(Recording::of(7).number(), 7);
        assert_ne!(Recording::of(7 << 32), Recording::of(8 << 32));
    }
}
