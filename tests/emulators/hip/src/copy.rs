//! Copies and fills: the direction that is said must be the one that it is.

use unisono_emulator_cuda::answer::Answer;
use unisono_emulator_cuda::code;
use unisono_emulator_cuda::copy::{cuMemcpyAsync, cuMemsetD8Async};

use crate::answer::{from, hip};
use crate::device::{machine, release};

/// `hipErrorInvalidMemcpyDirection`.
const INVALID_DIRECTION: u32 = 21;
/// `hipMemcpyDeviceToDeviceNoCU`, since ROCm 6.
const BY_DMA: u32 = 1024;

/// Whether an address is a device's memory.
fn is_device(address: u64) -> Answer<bool> {
    let range = machine()?.space.find(address);
    Ok(range.is_some_and(|range| range.backing().is_some()))
}

fn check(dst: u64, src: u64, kind: u32) -> Answer {
    let found = (is_device(src)?, is_device(dst)?);
    let right = match kind {
        0 => found == (false, false),
        1 => found == (false, true),
        2 => found == (true, false),
        3 => found == (true, true),
        4 => true,
        BY_DMA if release()? >= 6 => found == (true, true),
        _ => return Err(code::INVALID_VALUE),
    };
    if right {
        Ok(())
    } else {
        Err(INVALID_DIRECTION)
    }
}

hip! {
    current fn hipMemcpyAsync(dst: u64, src: u64, bytes: usize, kind: u32, stream: u64) {
        check(dst, src, kind)?;
        // SAFETY: the caller's.
        from(unsafe { cuMemcpyAsync(dst, src, bytes, stream) })
    }

    current fn hipMemsetAsync(dst: u64, value: i32, bytes: usize, stream: u64) {
        // SAFETY: the caller's.
        from(unsafe { cuMemsetD8Async(dst, value as u8, bytes, stream) })
    }
}
