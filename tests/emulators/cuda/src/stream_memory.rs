//! Streams write to memory and wait for it.

use unisono_emulator::{Capability, Compare, Op};

use crate::answer::{Answer, driver};
use crate::code;
use crate::context::machine;
use crate::stream;

/// Kinds in a batch.
const WAIT_32: u32 = 1;
const WRITE_32: u32 = 2;
const FLUSH: u32 = 3;
const WAIT_64: u32 = 4;
const WRITE_64: u32 = 5;
const BARRIER: u32 = 6;

/// A batch of the driver's: the most that it takes.
const BATCH: u32 = 256;

fn checked(address: u64, wide: bool) -> Answer {
    let machine = machine()?;
    if wide && !machine.facts.has(Capability::StreamMemory) {
        return Err(code::NOT_SUPPORTED);
    }
    let bytes = if wide { 8 } else { 4 };
    let known = machine.space.find(address).is_some();
    if !address.is_multiple_of(bytes) || !known {
        return Err(code::INVALID_VALUE);
    }
    Ok(())
}

fn write(address: u64, value: u64, flags: u32, wide: bool) -> Answer<Op> {
    checked(address, wide)?;
    if flags & !1 != 0 {
        return Err(code::INVALID_VALUE);
    }
    Ok(Op::Write {
        address,
        value,
        wide,
    })
}

fn wait(address: u64, value: u64, flags: u32, wide: bool) -> Answer<Op> {
    checked(address, wide)?;
    let compare = match flags {
        0 => Compare::GreaterOrEqual,
        1 => Compare::Equal,
        2 => Compare::And,
        3 => Compare::Nor,
        // FLUSH needs hardware that this machine does not have.
        _ => return Err(code::NOT_SUPPORTED),
    };
    Ok(Op::Wait {
        address,
        value,
        compare,
        wide,
    })
}

driver! {
    fn cuStreamWriteValue64_v2(handle: u64, address: u64, value: u64, flags: u32) {
        stream::submit(&stream::of(handle)?, write(address, value, flags, true)?)
    }

    fn cuStreamWriteValue32_v2(handle: u64, address: u64, value: u32, flags: u32) {
        stream::submit(&stream::of(handle)?, write(address, value.into(), flags, false)?)
    }

    fn cuStreamWaitValue64_v2(handle: u64, address: u64, value: u64, flags: u32) {
        stream::submit(&stream::of(handle)?, wait(address, value, flags, true)?)
    }

    fn cuStreamWaitValue32_v2(handle: u64, address: u64, value: u32, flags: u32) {
        stream::submit(&stream::of(handle)?, wait(address, value.into(), flags, false)?)
    }

    fn cuStreamBatchMemOp_v2(handle: u64, count: u32, params: *const [u64; 6], flags: u32) {
        let stream = stream::of(handle)?;
        if count > BATCH || flags != 0 || (params.is_null() && count > 0) {
            return Err(code::INVALID_VALUE);
        }
        let mut ops = Vec::new();
        for index in 0..count as usize {
            // SAFETY: the caller says that there are `count`.
            let [kind, address, value, flags, ..] = unsafe { *params.add(index) };
            let (kind, flags) = (kind as u32, flags as u32);
            ops.push(match kind {
                WAIT_64 => wait(address, value, flags, true)?,
                WRITE_64 => write(address, value, flags, true)?,
                WAIT_32 => wait(address, value & 0xffff_ffff, flags, false)?,
                WRITE_32 => write(address, value & 0xffff_ffff, flags, false)?,
                // Memory here is in order.
                BARRIER => continue,
                FLUSH => return Err(code::NOT_SUPPORTED),
                _ => return Err(code::INVALID_VALUE),
            });
        }
        ops.into_iter().try_for_each(|op| stream::submit(&stream, op))
    }
}
