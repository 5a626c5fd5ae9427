//! The authenticated control channel of one communicator, for setting up links.
#![allow(
    unsafe_code,
    reason = "function pointers and a context, all the host's"
)]

use std::fmt;

use unisono_abi::status;

use crate::{Error, Result, Status};

/// Bytes of a signature.
pub const SIGNATURE: usize = 64;

/// The control channel. The job's secret stays with the host: a plugin asks it to prove and to
/// verify. Valid until the link that got it is dropped; any thread may use it.
#[derive(Clone, Copy)]
pub struct Channel {
    raw: unisono_abi::Channel,
}

// SAFETY: the contract lets any thread call the channel.
unsafe impl Send for Channel {}
// SAFETY: as above; calling it does not change the record.
unsafe impl Sync for Channel {}

impl Channel {
    /// Takes the host's channel.
    ///
    /// # Safety
    /// Its functions may be called with its context, from any thread, as long as it is kept.
    #[must_use]
    pub const unsafe fn from_raw(raw: unisono_abi::Channel) -> Self {
        Self { raw }
    }

    /// This process's rank in the communicator.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.raw.rank
    }

    /// Ranks in the communicator.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.raw.size
    }

    /// The communicator's number: the same on all ranks, unique in the job.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.raw.id
    }

    /// Signs a transcript as this rank.
    ///
    /// # Errors
    /// What the host says.
    pub fn prove(&self, transcript: &[u8]) -> Result<[u8; SIGNATURE]> {
        let call = self.raw.prove.ok_or_else(|| missing("prove"))?;
        let mut signature = [0; SIGNATURE];
        // SAFETY: `from_raw`'s caller promised that it may be called; both slices live through it.
        let code = unsafe {
            call(
                self.raw.context,
                transcript.as_ptr().cast(),
                transcript.len() as u64,
                signature.as_mut_ptr(),
            )
        };
        done(code, "prove")?;
        Ok(signature)
    }

    /// Checks that `rank` signed the transcript.
    ///
    /// # Errors
    /// [`Status::Auth`] if it did not.
    pub fn verify(&self, rank: u32, transcript: &[u8], signature: &[u8; SIGNATURE]) -> Result<()> {
        let call = self.raw.verify.ok_or_else(|| missing("verify"))?;
        // SAFETY: as in `prove`.
        let code = unsafe {
            call(
                self.raw.context,
                rank,
                transcript.as_ptr().cast(),
                transcript.len() as u64,
                signature.as_ptr(),
            )
        };
        done(code, "verify")
    }

    /// Sends at most 64 KiB to a rank: reliable, and in order for one (tag, pair).
    ///
    /// # Errors
    /// What the host says.
    pub fn send(&self, rank: u32, tag: u64, data: &[u8]) -> Result<()> {
        let call = self.raw.send.ok_or_else(|| missing("send"))?;
        // SAFETY: as in `prove`.
        let code = unsafe {
            call(
                self.raw.context,
                rank,
                tag,
                data.as_ptr().cast(),
                data.len() as u64,
            )
        };
        done(code, "send")
    }

    /// The next message's length, once it is in `data`; `None` if none has come.
    ///
    /// # Errors
    /// Invalid if it is longer than `data`; then it stays.
    pub fn recv(&self, rank: u32, tag: u64, data: &mut [u8]) -> Result<Option<usize>> {
        let call = self.raw.recv.ok_or_else(|| missing("recv"))?;
        let mut len = 0;
        // SAFETY: as in `prove`; the host writes at most `data.len()` bytes.
        let code = unsafe {
            call(
                self.raw.context,
                rank,
                tag,
                data.as_mut_ptr().cast(),
                data.len() as u64,
                &raw mut len,
            )
        };
        if code == status::AGAIN {
            return Ok(None);
        }
        if code == status::INVALID && len > data.len() as u64 {
            return Err(Error::invalid(format!(
                "the message from rank {rank} has {len} bytes, the buffer {}",
                data.len()
            )));
        }
        done(code, "recv")?;
        Ok(Some((len as usize).min(data.len())))
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("rank", &self.raw.rank)
            .field("size", &self.raw.size)
            .field("id", &self.raw.id)
            .finish_non_exhaustive()
    }
}

#[cold]
fn missing(what: &str) -> Error {
    Error::unsupported(format!("the host's channel has no {what}"))
}

fn done(code: unisono_abi::Status, what: &str) -> Result<()> {
    match Status::from_code(code) {
        None => Ok(()),
        Some(status) => Err(Error::new(
            status,
            format!("the control channel's {what} failed"),
        )),
    }
}
