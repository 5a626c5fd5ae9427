//! The description of exported memory, as it travels to the importer.

use unisono_plugin::{DeviceId, Error, Result};

use crate::process::Nonce;

/// First bytes: what it is, and its version.
const MAGIC: [u8; 8] = *b"unsaccl\x01";
/// Bytes of a vendor's handle, at most.
const HANDLE: usize = 96;
const LENGTH: usize = 8 + 8 + 4 + 4 + 8 + 8 + 8 + 8 + 16 + 16 + 1 + 1 + HANDLE;

/// Where exported memory is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// The plugin that exported it, cut to 8 bytes.
    pub(crate) plugin: [u8; 8],
    /// The exporting process, as it sees itself.
    pub(crate) pid: u32,
    /// The descriptor of its memory file; of host memory.
    pub(crate) descriptor: i32,
    /// When the process started.
    pub(crate) started: u64,
    /// Bytes of data.
    pub(crate) bytes: u64,
    /// Where the data begins in the vendor's block.
    pub(crate) offset: u64,
    /// Where the proof lies in the vendor's block.
    pub(crate) proof: u64,
    /// Random.
    pub(crate) nonce: Nonce,
    /// The device that it is memory of.
    pub(crate) device: DeviceId,
    /// The vendor's handle; empty for host memory.
    pub(crate) handle: Vec<u8>,
}

/// A plugin's name in 8 bytes.
pub(crate) fn plugin(name: &str) -> [u8; 8] {
    let mut out = [0; 8];
    for (to, from) in out.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    out
}

impl Description {
    /// The packed form, little-endian.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LENGTH);
        let length = [self.handle.len() as u8];
        let fields: [&[u8]; 12] = [
            &MAGIC,
            &self.plugin,
            &self.pid.to_le_bytes(),
            &self.descriptor.to_le_bytes(),
            &self.started.to_le_bytes(),
            &self.bytes.to_le_bytes(),
            &self.offset.to_le_bytes(),
            &self.proof.to_le_bytes(),
            &self.nonce,
            &self.device.0,
            &length,
            &self.handle,
        ];
        out.extend(fields.concat());
        out.resize(LENGTH, 0);
        out
    }

    /// From the packed form, which came from elsewhere.
    pub(crate) fn parse(bytes: &[u8], plugin: [u8; 8]) -> Result<Self> {
        let foreign = || {
            Error::invalid(format!(
                "{} bytes are no description of memory that this version of the plugin exported: \
                 run the same version on all ranks",
                bytes.len()
            ))
        };
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or_else(foreign)?;
        let this = (|| {
            Some(Self {
                plugin: take(&mut rest)?,
                pid: u32::from_le_bytes(take(&mut rest)?),
                descriptor: i32::from_le_bytes(take(&mut rest)?),
                started: u64::from_le_bytes(take(&mut rest)?),
                bytes: u64::from_le_bytes(take(&mut rest)?),
                offset: u64::from_le_bytes(take(&mut rest)?),
                proof: u64::from_le_bytes(take(&mut rest)?),
                nonce: take(&mut rest)?,
                device: DeviceId(take(&mut rest)?),
                handle: {
                    let [length] = take(&mut rest)?;
                    rest.get(..length.into())
                        .filter(|h| h.len() <= HANDLE)?
                        .to_vec()
                },
            })
        })();
        let this = this.ok_or_else(foreign)?;
        let fits = this.offset.checked_add(this.bytes).is_some();
        if this.pack() != bytes || this.plugin != plugin || this.bytes == 0 || !fits {
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
    use super::*;

    fn example(handle: usize) -> Description {
        Description {
            plugin: plugin("example"),
            pid: 17,
            descriptor: 4,
            started: 99,
            bytes: 1 << 20,
            offset: 64,
            proof: (2 << 20) - 64,
            nonce: *b"0123456789abcdef",
            device: DeviceId([3; 16]),
            handle: vec![5; handle],
        }
    }

    #[test]
    fn survives_packing() {
        for handle in [0, 1, 64, HANDLE] {
            let packed = example(handle).pack();
            assert!(packed.len() <= 256);
            assert_eq!(
                Description::parse(&packed, plugin("example")),
                Ok(example(handle))
            );
        }
    }

    #[test]
    fn refuses_what_it_did_not_pack() {
        let (good, name) = (example(64).pack(), plugin("example"));
        for cut in 0..good.len() {
            assert!(
                Description::parse(&good[..cut], name).is_err(),
                "{cut} bytes"
            );
        }
        assert!(Description::parse(&[good.as_slice(), &[0]].concat(), name).is_err());
        assert!(Description::parse(&good, plugin("other")).is_err());
        assert!(Description::parse(&[0xff; 256], name).is_err());
    }
}
