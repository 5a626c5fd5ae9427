//! The windows of a link: ours, which the peer writes, and the peer's, which we write.

use unisono_plugin::abi::FlagLine;
use unisono_plugin::{Error, HostRange, Result};

const TOKEN_MAGIC: u32 = 0x574e_4955;
const TOKEN_BYTES: usize = 16;
const FLAG_BYTES: u64 = size_of::<FlagLine>() as u64;

/// Windows by id. A link has a handful: a search beats a table.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    exported: Vec<(u32, HostRange)>,
    imported: Vec<(u32, Imported)>,
}

/// A window of the peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Imported {
    /// Its id at the peer.
    pub(crate) id: u32,
    bytes: u64,
}

impl Windows {
    pub(crate) fn export(&mut self, id: u32, range: HostRange) -> Result<Vec<u8>> {
        if self.exported.iter().any(|(other, _)| *other == id) {
            return Err(Error::invalid(format!("window {id} is exported already")));
        }
        self.exported.push((id, range));
        let mut token = Vec::with_capacity(TOKEN_BYTES);
        token.extend(TOKEN_MAGIC.to_le_bytes());
        token.extend(id.to_le_bytes());
        token.extend(range.bytes.to_le_bytes());
        Ok(token)
    }

    pub(crate) fn import(&mut self, id: u32, token: &[u8]) -> Result<()> {
        let strange = || Error::invalid("the window's token is not one of the tcp plugin");
        let token: &[u8; TOKEN_BYTES] = token.try_into().map_err(|_| strange())?;
        let [m0, m1, m2, m3, i0, i1, i2, i3, bytes @ ..] = *token;
        if u32::from_le_bytes([m0, m1, m2, m3]) != TOKEN_MAGIC {
            return Err(strange());
        }
        self.imported.retain(|(other, _)| *other != id); // the peer exported another one
        let window = Imported {
            id: u32::from_le_bytes([i0, i1, i2, i3]),
            bytes: u64::from_le_bytes(bytes),
        };
        self.imported.push((id, window));
        Ok(())
    }

    /// Ends an exported window.
    pub(crate) fn close(&mut self, id: u32) -> Result<()> {
        let before = self.exported.len();
        self.exported.retain(|(other, _)| *other != id);
        if self.exported.len() == before {
            return Err(Error::invalid(format!("there is no window {id} to close")));
        }
        Ok(())
    }

    /// The peer's window, if `bytes` at `offset` lie in it.
    pub(crate) fn target(&self, id: u32, offset: u64, bytes: u64) -> Result<Imported> {
        let (_, window) = self
            .imported
            .iter()
            .find(|(other, _)| *other == id)
            .ok_or_else(|| Error::invalid(format!("window {id} was not imported")))?;
        match offset.checked_add(bytes) {
            Some(end) if end <= window.bytes => Ok(*window),
            _ => Err(Error::invalid(format!(
                "{bytes} bytes at {offset} are not in window {id} of {} bytes",
                window.bytes
            ))),
        }
    }

    /// The peer's window for a flag line.
    pub(crate) fn target_flag(&self, id: u32, offset: u64) -> Result<Imported> {
        self.target(id, offset, FLAG_BYTES)
    }

    /// The address of `bytes` bytes in a window of ours, if they lie in it.
    pub(crate) fn place(&self, id: u32, offset: u64, bytes: u64) -> Option<*mut u8> {
        let (_, range) = self.exported.iter().find(|(other, _)| *other == id)?;
        let end = offset.checked_add(bytes)?;
        (end <= range.bytes).then(|| (range.address + offset) as *mut u8)
    }

    /// The address of a flag line in a window of ours, if it lies in it and is aligned.
    pub(crate) fn flag(&self, id: u32, offset: u64) -> Option<*mut FlagLine> {
        let flag = self.place(id, offset, FLAG_BYTES)?.cast::<FlagLine>();
        flag.is_aligned().then_some(flag)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_leads_to_the_window_and_its_bounds_hold() {
        let mut here = Windows::default();
        let mut there = Windows::default();
        let range = HostRange {
            address: 4096,
            bytes: 256,
        };
        let token = here.export(3, range).unwrap();
        assert!(here.export(3, range).is_err());
        there.import(9, &token).unwrap();
        there.import(9, &token).unwrap();
        assert!(there.import(1, &token[1..]).is_err());
        assert!(there.import(1, &[0; 16]).is_err());

        assert_eq!(there.target(9, 0, 256).unwrap().id, 3);
        assert!(there.target(9, 1, 256).is_err());
        assert!(there.target(9, u64::MAX, 2).is_err());
        assert!(there.target(3, 0, 1).is_err());
        assert!(there.target_flag(9, 192).is_ok());
        assert!(there.target_flag(9, 200).is_err());

        assert_eq!(here.place(3, 255, 1), Some(4351 as *mut u8));
        assert_eq!(here.place(3, 256, 1), None);
        assert_eq!(here.place(3, u64::MAX, 1), None);
        assert_eq!(here.place(4, 0, 1), None);
        assert!(here.flag(3, 64).is_some());
        assert!(here.flag(3, 65).is_none());
        here.close(3).unwrap();
        assert!(here.close(3).is_err());
        assert_eq!(here.place(3, 0, 1), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_a_token(
            bytes in prop::collection::vec(any::<u8>(), 0..40), rest: [u8; TOKEN_BYTES - 4],
            at: u64, length: u64,
        ) {
            let looks_valid = [&TOKEN_MAGIC.to_le_bytes()[..], &rest].concat();
            for token in [bytes, looks_valid] {
                let mut there = Windows::default();
                let imported = there.import(9, &token).is_ok();
                prop_assert_eq!(imported, token.len() == TOKEN_BYTES && token[..4] == TOKEN_MAGIC.to_le_bytes());
                // Whatever it claims, nothing beyond its claim is let through.
                if let Ok(window) = there.target(9, at, length) {
                    prop_assert!(at.checked_add(length).is_some_and(|end| end <= window.bytes));
                }
                let _ = there.target_flag(9, at);
            }
        }

        #[test]
        fn a_changed_byte_is_another_window_or_none(
            id: u32, bytes: u64, at in 0..TOKEN_BYTES, change in 1_u8..,
        ) {
            let range = HostRange { address: 4096, bytes };
            let mut token = Windows::default().export(id, range).unwrap();
            token[at] ^= change;
            let mut there = Windows::default();
            match there.import(9, &token) {
                Err(_) => prop_assert!(at < 4),
                Ok(()) => {
                    let (_, window) = &there.imported[0];
                    prop_assert_ne!((window.id, window.bytes), (id, bytes));
                }
            }
        }
    }
}
