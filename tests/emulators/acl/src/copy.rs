//! Copies, fills and reductions. A copy's direction must be what its addresses are.

use std::sync::Arc;

use unisono_emulator::space::Kind;
use unisono_emulator::{Op, Stream};

use crate::answer::{Answer, FEATURE_NOT_SUPPORT, PARAM_INVALID, runtime};
use crate::context::machine;
use crate::host::pinned_at;
use crate::{fold, stream};

/// Directions.
const HOST_TO_HOST: i32 = 0;
const HOST_TO_DEVICE: i32 = 1;
const DEVICE_TO_HOST: i32 = 2;
const DEVICE_TO_DEVICE: i32 = 3;

/// A device's memory at an address, which may be another's if it is copied between devices.
fn on_device(stream: &Stream, address: u64, between: bool) -> Answer<u64> {
    let range = machine()?.space.find(address).ok_or(PARAM_INVALID)?;
    let near = match &range.kind {
        Kind::Own(backing) => backing.owner() == stream.device.index,
        Kind::Imported(_) | Kind::Host(_) => false,
    };
    let far = range.backing().is_some();
    if near || between && far {
        Ok(address)
    } else {
        Err(PARAM_INVALID)
    }
}

/// What the host's memory is to a copy: where the device finds it if it is pinned.
fn on_host(stream: &Stream, address: u64, bytes: u64) -> Answer<Option<u64>> {
    let space = &machine()?.space;
    if space.is_reserved(address) || address == 0 {
        return Err(PARAM_INVALID);
    }
    Ok(pinned_at(stream.device.index, address, bytes))
}

/// A copy with pageable memory at one end: behind all of the stream, and done when the call returns.
fn pageable(stream: &Stream, device: u64, host: u64, bytes: u64, up: bool) -> Answer {
    stream::settle(stream, None)?;
    let found = machine()?.space.resolve(stream.device.index, device, bytes);
    let found = found.map_err(|_| PARAM_INVALID)?;
    let host = host as *mut u8;
    // SAFETY: device memory was resolved and is kept; the host's is the caller's.
    unsafe {
        if up {
            std::ptr::copy(found.at, host, bytes as usize);
        } else {
            std::ptr::copy(host, found.at, bytes as usize);
        }
    }
    Ok(())
}

fn copy(stream: &Arc<Stream>, dst: u64, src: u64, bytes: u64, kind: i32) -> Answer {
    let (dst, src) = match kind {
        HOST_TO_DEVICE => {
            let dst = on_device(stream, dst, false)?;
            match on_host(stream, src, bytes)? {
                Some(src) => (dst, src),
                None => return pageable(stream, dst, src, bytes, false),
            }
        }
        DEVICE_TO_HOST => {
            let src = on_device(stream, src, false)?;
            match on_host(stream, dst, bytes)? {
                Some(dst) => (dst, src),
                None => return pageable(stream, src, dst, bytes, true),
            }
        }
        DEVICE_TO_DEVICE => (on_device(stream, dst, true)?, on_device(stream, src, true)?),
        HOST_TO_HOST => return Err(FEATURE_NOT_SUPPORT),
        _ => return Err(PARAM_INVALID),
    };
    let op = Op::Copy {
        dst,
        src,
        bytes,
        rows: 1,
        dst_pitch: 0,
        src_pitch: 0,
    };
    stream::submit(stream, op)
}

runtime! {
    fn aclrtMemcpyAsync(dst: u64, room: usize, src: u64, bytes: usize, kind: i32, handle: u64) {
        let stream = stream::of(handle)?;
        if bytes > room || bytes == 0 {
            return Err(PARAM_INVALID);
        }
        copy(&stream, dst, src, bytes as u64, kind)
    }

    fn aclrtMemsetAsync(dst: u64, room: usize, value: i32, bytes: usize, handle: u64) {
        let stream = stream::of(handle)?;
        let value = u8::try_from(value).map_err(|_| PARAM_INVALID)?;
        if bytes > room || bytes == 0 {
            return Err(PARAM_INVALID);
        }
        let dst = on_device(&stream, dst, false)?;
        stream::submit(&stream, Op::Fill { dst, value, bytes: bytes as u64 })
    }

    /// Counts bytes. Both ends are memory of the stream's own device.
    fn aclrtReduceAsync(dst: u64, src: u64, bytes: u64, kind: i32, dtype: i32, handle: u64, more: u64) {
        let stream = stream::of(handle)?;
        let (dst, src) = (on_device(&stream, dst, false)?, on_device(&stream, src, false)?);
        if bytes == 0 || more != 0 {
            return Err(PARAM_INVALID);
        }
        let first = machine()?.facts.generation[0] < 2;
        let (fold, size) = fold::of(dtype, kind, first).ok_or(FEATURE_NOT_SUPPORT)?;
        let aligned = [dst, src, bytes].iter().all(|n| n.is_multiple_of(size));
        if !aligned {
            return Err(PARAM_INVALID);
        }
        stream::submit(&stream, Op::Fold { dst, src, bytes, fold })
    }
}
