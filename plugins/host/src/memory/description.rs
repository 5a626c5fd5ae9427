//! The description of exported memory, as it travels to the importer.

use unisono_plugin::{Error, Result};

/// Proves that what was mapped is what was exported.
pub(super) type Nonce = [u8; 16];

/// First bytes of a description: what it is, and its version.
const MAGIC: [u8; 8] = *b"unshost\x01";
/// Bytes of a description.
const LENGTH: usize = 64;
/// A description as it travels, and as it stands behind the data.
pub(super) type Packed = [u8; LENGTH];

/// Where exported memory is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// The exporting process, as it sees itself.
    pub(super) pid: u32,
    /// Its memory file.
    pub(super) fd: i32,
    /// When it started, in clock ticks since boot: another process with its id differs.
    pub(super) started: u64,
    /// Bytes of data.
    pub(super) bytes: u64,
    /// Alignment of the exporter's mapping.
    pub(super) align: u64,
    /// Random.
    pub(super) nonce: Nonce,
    /// It is a process's bell.
    pub(super) bell: bool,
    /// Pages are to appear only when touched.
    pub(super) lazy: bool,
}

impl Description {
    /// The packed form, little-endian.
    pub(super) fn pack(&self) -> Packed {
        let mut out = [0; LENGTH];
        let fields: [&[u8]; 8] = [
            &MAGIC,
            &self.pid.to_le_bytes(),
            &self.fd.to_le_bytes(),
            &self.started.to_le_bytes(),
            &self.bytes.to_le_bytes(),
            &self.align.to_le_bytes(),
            &self.nonce,
            &[u8::from(self.bell), u8::from(self.lazy)],
        ];
        for (place, byte) in out.iter_mut().zip(fields.into_iter().flatten()) {
            *place = *byte;
        }
        out
    }

    /// From the packed form, which came from elsewhere.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let foreign = || {
            Error::invalid(format!(
                "{} bytes are no description of memory that this version of the host plugin \
                 exported: run the same version on all ranks",
                bytes.len()
            ))
        };
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or_else(foreign)?;
        if bytes.len() != LENGTH {
            return Err(foreign());
        }
        let this = Self {
            pid: u32::from_le_bytes(take(&mut rest).ok_or_else(foreign)?),
            fd: i32::from_le_bytes(take(&mut rest).ok_or_else(foreign)?),
            started: u64::from_le_bytes(take(&mut rest).ok_or_else(foreign)?),
            bytes: u64::from_le_bytes(take(&mut rest).ok_or_else(foreign)?),
            align: u64::from_le_bytes(take(&mut rest).ok_or_else(foreign)?),
            nonce: take(&mut rest).ok_or_else(foreign)?,
            bell: take::<1>(&mut rest).ok_or_else(foreign)? != [0],
            lazy: take::<1>(&mut rest).ok_or_else(foreign)? != [0],
        };
        if this.pack() != bytes || this.fd < 0 || this.bytes == 0 || !this.align.is_power_of_two() {
            return Err(foreign());
        }
        Ok(this)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: Description = Description {
        pid: 17,
        fd: 4,
        started: 99,
        bytes: 1 << 20,
        align: 64,
        nonce: *b"0123456789abcdef",
        bell: false,
        lazy: true,
    };

    #[test]
    fn survives_packing() {
        assert_eq!(Description::parse(&EXAMPLE.pack()), Ok(EXAMPLE));
    }

    #[test]
    fn refuses_what_it_did_not_pack() {
        let good = EXAMPLE.pack();
        for cut in 0..good.len() {
            assert!(Description::parse(&good[..cut]).is_err(), "{cut} bytes");
        }
        let longer = [good.as_slice(), &[0]].concat();
        assert!(Description::parse(&longer).is_err());
        let other = [&[good[0] ^ 1], &good[1..]].concat();
        assert_eq!(other.len(), good.len());
        assert!(Description::parse(&other).is_err());
        let negative = Description { fd: -1, ..EXAMPLE };
        assert!(Description::parse(&negative.pack()).is_err());
        let crooked = Description {
            align: 48,
            ..EXAMPLE
        };
        assert!(Description::parse(&crooked.pack()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..80), magic: bool, whole: bool) {
            let mut bytes = if magic { [&MAGIC[..], &bytes].concat() } else { bytes };
            if whole {
                bytes.resize(LENGTH, 0);
            }
            if let Ok(description) = Description::parse(&bytes) {
                prop_assert_eq!(&description.pack()[..], bytes);
            }
        }

        #[test]
        fn a_changed_bit_is_another_description_or_none(at in 0..LENGTH, bit in 0..8u32) {
            let mut bytes = EXAMPLE.pack();
            bytes[at] ^= 1 << bit;
            if let Ok(other) = Description::parse(&bytes) {
                prop_assert_ne!(other, EXAMPLE);
                prop_assert_eq!(other.pack(), bytes);
            }
        }
    }
}
