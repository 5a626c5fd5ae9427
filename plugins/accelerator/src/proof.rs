//! That memory is what was exported.
//!
//! Memory that can be exported has a proof: a nonce behind the data, which its description repeats. An
//! importer that finds it has mapped what was exported, whatever became of process ids and descriptors
//! meanwhile.
#![allow(unsafe_code, reason = "copies memory by address")]

use unisono_plugin::{Error, Result, Status};

use crate::process::Nonce;
use crate::state::State;
use crate::{Block, Runtime};

/// Bytes behind the data for the proof.
pub(crate) const PROOF: u64 = 64;

/// A new one.
pub(crate) fn nonce() -> Result<Nonce> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| {
        let what = format!("the system gives no random bytes: {error}");
        Error::new(Status::Device, what)
    })?;
    Ok(nonce)
}

/// Writes a proof, or reads it.
pub(crate) fn proof_of<R: Runtime>(
    device: &State<R>,
    block: &R::Block,
    offset: u64,
    write: Option<&Nonce>,
) -> Result<Nonce> {
    let line = device.line()?;
    let (near, far) = (line.address(), block.base() + offset);
    if let Some(nonce) = write {
        line.put(nonce);
    }
    let (dst, src) = if write.is_some() {
        (far, near)
    } else {
        (near, far)
    };
    device.run("the proof of shared memory", |runtime, stream| {
        // SAFETY: both are kept for the call, which waits; the block has so many bytes there.
        unsafe { runtime.copy(stream, dst, src, PROOF) }
    })?;
    Ok(line.get())
}
