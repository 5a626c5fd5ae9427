//! Copies and fills.

use std::ffi::c_void;
use std::sync::Arc;

use unisono_emulator::{Op, Stream};

use crate::answer::{Answer, driver};
use crate::code;
use crate::context::{machine, synchronise};
use crate::host::pinned_at;
use crate::stream;

/// The device's address of what a copy names: pinned memory may be named by the CPU's address, with
/// unified addressing. Pageable memory has none.
fn unified(address: u64) -> Answer<Option<u64>> {
    let machine = machine()?;
    if machine.space.find(address).is_some() {
        return Ok(Some(address));
    }
    if let Some((start, base)) = pinned_at(address) {
        return Ok(Some(base + (address - start)));
    }
    if machine.space.is_reserved(address) {
        return Err(code::INVALID_VALUE);
    }
    Ok(None)
}

/// Memory of the process's, as a device would see it for one call.
fn wait_for(stream: &Arc<Stream>) -> Answer {
    loop {
        match stream.is_done() {
            Ok(true) => return Ok(()),
            Ok(false) => std::thread::sleep(std::time::Duration::from_micros(50)),
            Err(broken) => return Err(code::of(broken)),
        }
    }
}

/// A copy with pageable memory at one end: the stream is waited for, as with the real driver, so it is none
/// that can be recorded.
fn pageable(stream: &Arc<Stream>, dst: u64, src: u64, bytes: u64) -> Answer {
    let machine = machine()?;
    stream::not_recording(stream)?;
    wait_for(stream)?;
    let at = |address: u64, known: Option<u64>| match known {
        Some(address) => {
            let found = machine.space.resolve(stream.device.index, address, bytes);
            found
                .map(|found| (found.at, Some(found.range)))
                .map_err(|_| code::INVALID_VALUE)
        }
        None => Ok((address as usize as *mut u8, None)),
    };
    let (to, _to) = at(dst, unified(dst)?)?;
    let (from, _from) = at(src, unified(src)?)?;
    // SAFETY: device memory was resolved and is kept; the rest is the caller's.
    unsafe { std::ptr::copy(from, to, bytes as usize) };
    Ok(())
}

fn copy(handle: u64, dst: u64, src: u64, bytes: u64) -> Answer {
    let stream = stream::of(handle)?;
    if bytes == 0 {
        return Ok(());
    }
    match (unified(dst)?, unified(src)?) {
        (Some(dst), Some(src)) => {
            let op = Op::Copy {
                dst,
                src,
                bytes,
                rows: 1,
                dst_pitch: 0,
                src_pitch: 0,
            };
            stream::submit(&stream, op)
        }
        _ => pageable(&stream, dst, src, bytes),
    }
}

driver! {
    fn cuMemcpyAsync(dst: u64, src: u64, bytes: usize, handle: u64) {
        copy(handle, dst, src, bytes as u64)
    }

    fn cuMemcpyDtoDAsync_v2(dst: u64, src: u64, bytes: usize, handle: u64) {
        copy(handle, dst, src, bytes as u64)
    }

    fn cuMemcpyHtoDAsync_v2(dst: u64, src: *const c_void, bytes: usize, handle: u64) {
        copy(handle, dst, src as u64, bytes as u64)
    }

    fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: u64, bytes: usize, handle: u64) {
        copy(handle, dst as u64, src, bytes as u64)
    }

    fn cuMemcpyHtoD_v2(dst: u64, src: *const c_void, bytes: usize) {
        synchronise("cuMemcpyHtoD")?;
        pageable(&stream::of(0)?, dst, src as u64, bytes as u64)
    }

    fn cuMemcpyDtoH_v2(dst: *mut c_void, src: u64, bytes: usize) {
        synchronise("cuMemcpyDtoH")?;
        pageable(&stream::of(0)?, dst as u64, src, bytes as u64)
    }

    fn cuMemsetD8Async(dst: u64, value: u8, bytes: usize, handle: u64) {
        let stream = stream::of(handle)?;
        let dst = unified(dst)?.ok_or(code::INVALID_VALUE)?;
        stream::submit(&stream, Op::Fill { dst, value, bytes: bytes as u64 })
    }
}
