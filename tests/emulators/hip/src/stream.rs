//! Streams, and what they write to memory and wait for.

use std::ffi::c_void;

use unisono_emulator::{Capability, Compare, Op};
use unisono_emulator_cuda::answer::give;
use unisono_emulator_cuda::code;
use unisono_emulator_cuda::stream::{
    STREAMS, cuCtxGetStreamPriorityRange, cuLaunchHostFunc, cuStreamCreateWithPriority,
    cuStreamDestroy_v2, cuStreamQuery, cuStreamSynchronize, of, submit,
};
use unisono_emulator_cuda::stream_memory::cuStreamWriteValue64_v2;

use crate::answer::{from, hip};
use crate::device::{machine, release};
use crate::memory::is_signal;

/// A stream that there is, whatever device is current.
fn there(stream: u64) -> unisono_emulator_cuda::answer::Answer<i32> {
    machine()?;
    if stream == 0 {
        return Ok(of(0)?.device.index.cast_signed());
    }
    Ok(STREAMS.get(stream)?.device.index.cast_signed())
}

hip! {
    current fn hipStreamCreateWithPriority(stream: *mut u64, flags: u32, priority: i32) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamCreateWithPriority(stream, flags, priority) })
    }

    current fn hipStreamCreateWithFlags(stream: *mut u64, flags: u32) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamCreateWithPriority(stream, flags, 0) })
    }

    current fn hipDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) {
        // SAFETY: the caller's.
        from(unsafe { cuCtxGetStreamPriorityRange(least, greatest) })
    }

    current fn hipStreamDestroy(stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamDestroy_v2(stream) })
    }

    current fn hipStreamQuery(stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamQuery(stream) })
    }

    current fn hipStreamSynchronize(stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuStreamSynchronize(stream) })
    }

    current fn hipStreamGetFlags(stream: u64, flags: *mut u32) {
        there(stream)?;
        // SAFETY: the caller's.
        unsafe { give(flags, 1) }
    }

    /// Since ROCm 6.
    current fn hipStreamGetDevice(stream: u64, device: *mut i32) {
        let found = there(stream)?;
        if release()? < 6 {
            return Err(code::NOT_SUPPORTED);
        }
        // SAFETY: the caller's.
        unsafe { give(device, found) }
    }

    current fn hipLaunchHostFunc(
        stream: u64,
        call: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        // SAFETY: the caller's.
        from(unsafe { cuLaunchHostFunc(stream, call, data) })
    }

    current fn hipStreamWriteValue64(stream: u64, address: u64, value: u64, flags: u32) {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's.
        from(unsafe { cuStreamWriteValue64_v2(stream, address, value, 0) })
    }

    /// For signal memory alone, as the manual has it. Of masks only the one that masks nothing.
    current fn hipStreamWaitValue64(stream: u64, address: u64, value: u64, flags: u32, mask: u64) {
        let stream = of(stream)?;
        if !machine()?.facts.has(Capability::StreamMemory) {
            return Err(code::NOT_SUPPORTED);
        }
        let compare = match flags {
            0 => Compare::GreaterOrEqual,
            1 => Compare::Equal,
            2 => Compare::And,
            3 => Compare::Nor,
            _ => return Err(code::INVALID_VALUE),
        };
        if !is_signal(address) || mask != u64::MAX {
            return Err(code::INVALID_VALUE);
        }
        submit(&stream, Op::Wait { address, value, compare, wide: true })
    }
}
