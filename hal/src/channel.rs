//! The authenticated control channel that a link's plugin may use, as a trait and as a C struct.

#![allow(
    unsafe_code,
    reason = "hands a Rust object to C as functions and a context"
)]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use unisono_abi as abi;

use crate::Status;

/// The control channel of one communicator, seen from one rank. A plugin may call it from any
/// thread. No call may block.
pub trait Channel: Send + Sync {
    /// This process's rank in the communicator.
    fn rank(&self) -> u32;

    /// Ranks in the communicator.
    fn size(&self) -> u32;

    /// The same on all ranks, unique in the job.
    fn id(&self) -> u64;

    /// Signs a transcript as this rank.
    ///
    /// # Errors
    /// If it cannot be signed.
    fn prove(&self, transcript: &[u8]) -> Result<[u8; 64], Status>;

    /// Checks that `rank` signed the transcript.
    ///
    /// # Errors
    /// [`Status::Auth`] if it did not.
    fn verify(&self, rank: u32, transcript: &[u8], signature: &[u8; 64]) -> Result<(), Status>;

    /// Sends at most 64 KiB to a rank: reliable, and in order for one tag and pair.
    ///
    /// # Errors
    /// [`Status::Invalid`] for a rank that does not exist or too much data; what the channel says.
    fn send(&self, rank: u32, tag: u64, data: &[u8]) -> Result<(), Status>;

    /// Takes the next message of a rank and tag into the buffer, if it has come and fits.
    ///
    /// # Errors
    /// What the channel says.
    fn recv(&self, rank: u32, tag: u64, buffer: &mut [u8]) -> Result<Received, Status>;
}

/// What [`Channel::recv`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// No message has come.
    Nothing,
    /// A message of this many bytes is in the buffer.
    Message(usize),
    /// The next message has this many bytes, too many for the buffer. It stays.
    TooLong(usize),
}

/// A channel as a plugin sees it. It must outlive the link that was made with it.
pub(crate) struct RawChannel {
    raw: abi::Channel,
    /// Shared, so that `raw.context` has one address for good.
    _channel: Arc<Arc<dyn Channel>>,
}

// SAFETY: `raw.context` points to the shared channel, which is `Send + Sync`; nothing changes.
unsafe impl Send for RawChannel {}
// SAFETY: as above.
unsafe impl Sync for RawChannel {}

impl RawChannel {
    pub(crate) fn new(channel: Arc<dyn Channel>) -> Arc<Self> {
        let channel = Arc::new(channel);
        let raw = abi::Channel {
            struct_size: size_of::<abi::Channel>() as u32,
            rank: channel.rank(),
            size: channel.size(),
            reserved: 0,
            id: channel.id(),
            context: Arc::as_ptr(&channel).cast_mut().cast(),
            prove: Some(prove),
            verify: Some(verify),
            send: Some(send),
            recv: Some(recv),
        };
        Arc::new(Self {
            raw,
            _channel: channel,
        })
    }

    pub(crate) const fn raw(&self) -> *const abi::Channel {
        &raw const self.raw
    }
}

/// Runs one call of the channel; a panic becomes an internal error.
///
/// # Safety
/// `context` is that of a live [`RawChannel`].
unsafe fn guarded(
    context: *mut c_void,
    call: impl FnOnce(&dyn Channel) -> Result<abi::Status, Status>,
) -> abi::Status {
    // SAFETY: the caller's promise.
    let channel = unsafe { &*context.cast::<Arc<dyn Channel>>() };
    match catch_unwind(AssertUnwindSafe(|| call(&**channel))) {
        Ok(Ok(status)) => status,
        Ok(Err(status)) => status.to_raw(),
        Err(_) => abi::status::INTERNAL,
    }
}

/// A borrowed array, empty if there is none.
///
/// # Safety
/// If `len` is not 0, `data` points to `len` bytes that live for `'a`.
unsafe fn bytes<'a>(data: *const c_void, len: u64) -> &'a [u8] {
    if len == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), len as usize) }
}

unsafe extern "C" fn prove(
    context: *mut c_void,
    transcript: *const c_void,
    len: u64,
    signature: *mut u8,
) -> abi::Status {
    // SAFETY: the contract of `unisono_channel`: valid context, `len` bytes, 64 bytes to write.
    unsafe {
        guarded(context, |channel| {
            let signed = channel.prove(bytes(transcript, len))?;
            signature.cast::<[u8; 64]>().write(signed);
            Ok(abi::status::OK)
        })
    }
}

unsafe extern "C" fn verify(
    context: *mut c_void,
    rank: u32,
    transcript: *const c_void,
    len: u64,
    signature: *const u8,
) -> abi::Status {
    // SAFETY: the contract of `unisono_channel`: valid context, `len` bytes, 64 bytes to read.
    unsafe {
        guarded(context, |channel| {
            let signature = &*signature.cast::<[u8; 64]>();
            channel.verify(rank, bytes(transcript, len), signature)?;
            Ok(abi::status::OK)
        })
    }
}

unsafe extern "C" fn send(
    context: *mut c_void,
    rank: u32,
    tag: u64,
    data: *const c_void,
    len: u64,
) -> abi::Status {
    // SAFETY: the contract of `unisono_channel`: valid context, `len` bytes.
    unsafe {
        guarded(context, |channel| {
            channel.send(rank, tag, bytes(data, len))?;
            Ok(abi::status::OK)
        })
    }
}

unsafe extern "C" fn recv(
    context: *mut c_void,
    rank: u32,
    tag: u64,
    data: *mut c_void,
    cap: u64,
    len: *mut u64,
) -> abi::Status {
    // SAFETY: the contract of `unisono_channel`: valid context, `cap` bytes to write, a length to
    // write.
    unsafe {
        guarded(context, |channel| {
            // A plugin asks often, and mostly nothing has come: its buffer is not touched for that.
            let length = match channel.recv(rank, tag, &mut [])? {
                Received::Nothing => return Ok(abi::status::AGAIN),
                Received::Message(length) | Received::TooLong(length) => length,
            };
            *len = length as u64;
            if length == 0 {
                return Ok(abi::status::OK);
            }
            if data.is_null() || length as u64 > cap {
                return Ok(abi::status::INVALID);
            }
            // Initialised for Rust before the channel sees them as a slice.
            data.cast::<u8>().write_bytes(0, length);
            let buffer = std::slice::from_raw_parts_mut(data.cast(), length);
            match channel.recv(rank, tag, buffer)? {
                // Another thread has taken it.
                Received::Nothing => Ok(abi::status::AGAIN),
                Received::Message(n) => {
                    *len = n as u64;
                    Ok(abi::status::OK)
                }
                Received::TooLong(n) => {
                    *len = n as u64;
                    Ok(abi::status::INVALID)
                }
            }
        })
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
