//! A signal in 32 bits, where it fits: most do.

use unisono_plugin::abi::FlagLine;

const LINE: u64 = size_of::<FlagLine>() as u64;
const LINES: u64 = 1 << 24;
const WINDOWS: u32 = 1 << 8;

/// A flag line of one of the receiver's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Immediate {
    pub(crate) window: u32,
    pub(crate) offset: u64,
}

impl Immediate {
    /// `None` if the window's number is too high, or the line too far into it.
    pub(crate) const fn encode(self) -> Option<u32> {
        let (line, rest) = (self.offset / LINE, self.offset % LINE);
        if self.window >= WINDOWS || line >= LINES || rest != 0 {
            return None;
        }
        Some(self.window << 24 | line as u32)
    }

    pub(crate) const fn decode(code: u32) -> Self {
        Self {
            window: code >> 24,
            offset: (code as u64 & (LINES - 1)) * LINE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_fit_is_not_cut() {
        let at = |window, offset| Immediate { window, offset }.encode();
        assert_eq!(at(0, 0), Some(0));
        assert_eq!(at(255, 64 * (LINES - 1)), Some(u32::MAX));
        assert_eq!(at(256, 0), None);
        assert_eq!(at(0, 64 * LINES), None);
        assert_eq!(at(0, 8), None);
    }

    proptest! {
        #[test]
        fn each_code_is_one_signal(code: u32) {
            prop_assert_eq!(Immediate::decode(code).encode(), Some(code));
        }
    }
}
