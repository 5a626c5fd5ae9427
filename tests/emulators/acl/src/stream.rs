//! Streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use unisono_emulator::{Op, Stream};
use unisono_emulator_cuda::stream::STREAMS;

use crate::answer::{
    Answer, Code, MEMORY_ALLOCATION, NO_STREAM_RESOURCE, PARAM_INVALID, give, runtime,
};
use crate::context::{current, machine, same};

/// Streams of this process on each device.
static ALIVE: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

/// A stream of the current context.
pub fn of(handle: u64) -> Answer<Arc<Stream>> {
    let stream = STREAMS.get(handle)?;
    same(stream.device.index)?;
    Ok(stream)
}

/// Hands an operation over.
pub fn submit(stream: &Arc<Stream>, op: Op) -> Answer {
    Ok(stream.submit(op)?)
}

/// Waits for a stream, for ever or so long.
pub fn settle(stream: &Stream, limit: Option<Duration>) -> Answer {
    let end = limit.map(|limit| Instant::now() + limit);
    while !stream.is_done()? {
        if end.is_some_and(|end| Instant::now() > end) {
            return Err(Code(507_046));
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

runtime! {
    fn aclrtCreateStreamWithConfig(handle: *mut u64, priority: u32, flags: u32) {
        let (machine, device) = (machine()?, current()?);
        if priority > 7 || flags & !3 != 0 {
            return Err(PARAM_INVALID);
        }
        let alive = &ALIVE[device.index as usize % ALIVE.len()];
        // Each has a hardware queue of its own: there are no more.
        if alive.fetch_add(1, Ordering::AcqRel) >= machine.facts.queues {
            alive.fetch_sub(1, Ordering::AcqRel);
            return Err(NO_STREAM_RESOURCE);
        }
        let made = STREAMS.add(device.stream(machine).map_err(|_| MEMORY_ALLOCATION)?)?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn aclrtCreateStream(handle: *mut u64) {
        // SAFETY: the caller's.
        match unsafe { aclrtCreateStreamWithConfig(handle, 0, 0) } {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// Waits for what it was given, as the real one does.
    fn aclrtDestroyStream(handle: u64) {
        let stream = of(handle)?;
        let ended = settle(&stream, Some(Duration::from_secs(60)));
        STREAMS.remove(handle)?;
        ALIVE[stream.device.index as usize % ALIVE.len()].fetch_sub(1, Ordering::AcqRel);
        ended
    }

    /// 0 if it is done, 1 if not.
    fn aclrtStreamQuery(handle: u64, status: *mut i32) {
        let done = of(handle)?.is_done()?;
        // SAFETY: the caller's.
        unsafe { give(status, i32::from(!done)) }
    }

    fn aclrtSynchronizeStream(handle: u64) {
        settle(&*of(handle)?, None)
    }

    fn aclrtSynchronizeStreamWithTimeout(handle: u64, milliseconds: i32) {
        let limit = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        settle(&*of(handle)?, limit)
    }
}
