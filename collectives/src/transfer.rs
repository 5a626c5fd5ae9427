//! Between a program's ordinary memory and a device whose memory the CPU cannot see.
//!
//! Devices copy from and to pinned memory. So bytes pass through two pinned halves: the device
//! copies one while the CPU fills or empties the other. Pinning and freeing wait for all that a device
//! has under way, which may itself wait for this rank; hence the halves are pinned once, when the
//! rank joins, and device memory that was lent for a call is kept for the next.
#![allow(
    unsafe_code,
    reason = "copies between slices and memory that the plugin gave"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unisono_hal::{Batch, Device, Memory, MemoryKind, MemoryRequest, Queue, State, Stream};

use crate::error::{Error, Result};

/// Bytes of one half: long enough that a copy takes longer than what it costs to begin one.
const HALF: u64 = 1 << 20;
/// Alignment of lent memory: that of the widest loads of any device.
const ALIGN: u64 = 256;
/// Looks at the stream without giving up the core, and then by yielding.
const SPINS: u32 = 100;
const YIELDS: u32 = 1000;
/// Between looks after that.
const PAUSE: Duration = Duration::from_micros(50);

/// Copies for one device. Any thread; one copy at a time.
pub(crate) struct Transfer {
    device: Device,
    engine: Mutex<Engine>,
    /// Device memory that nobody uses now.
    free: Mutex<Vec<Memory>>,
    /// Memory of calls that failed, which something may still touch. Freed with the rank's world.
    doubtful: Mutex<Vec<Memory>>,
}

/// The stream and the halves that it copies from and to.
struct Engine {
    stream: Stream,
    staging: Memory,
    host: *mut u8,
    /// Copies given to the stream so far, each one command.
    given: u64,
}

// SAFETY: the pointer is that of memory which lives as long as the engine.
unsafe impl Send for Engine {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transfer {
    /// Copies for a device; `None` if the CPU sees its memory, so that nothing need be copied. May block:
    /// pins memory.
    pub(crate) fn new(device: &Device) -> Result<Option<Arc<Self>>> {
        if device.info().reaches(unisono_abi::reach::HOST) {
            return Ok(None);
        }
        let request = MemoryRequest::new(MemoryKind::Staging, 2 * HALF).align(ALIGN);
        let staging = device.alloc(&request)?;
        let host = staging.host_ptr().ok_or_else(|| Error::Unsupported {
            call: "init",
            why: format!(
                "the CPU sees neither the memory of device `{}` nor its staging memory",
                device.info().name
            ),
        })?;
        Ok(Some(Arc::new(Self {
            engine: Mutex::new(Engine {
                stream: device.stream(0)?,
                staging,
                host,
                given: 0,
            }),
            device: device.clone(),
            free: Mutex::default(),
            doubtful: Mutex::default(),
        })))
    }

    /// Device memory of at least `bytes` bytes, full of anything.
    pub(crate) fn lend(&self, bytes: u64) -> Result<Memory> {
        let mut free = lock(&self.free);
        let fitting = (0..free.len())
            .filter(|at| free[*at].len() >= bytes)
            .min_by_key(|at| free[*at].len());
        if let Some(at) = fitting {
            return Ok(free.swap_remove(at));
        }
        drop(free);
        // Powers of two, so that calls of many sizes share few pieces.
        let rounded = bytes.max(ALIGN).checked_next_power_of_two();
        let bytes = rounded.unwrap_or(bytes);
        let request = MemoryRequest::new(MemoryKind::Data, bytes).align(ALIGN);
        Ok(self.device.alloc(&request)?)
    }

    /// Gives lent memory back that no queue uses any more.
    pub(crate) fn give_back(&self, memory: Memory) {
        lock(&self.free).push(memory);
    }

    /// Keeps lent memory away from others that a queue may still use.
    pub(crate) fn keep_away(&self, memory: Memory) {
        lock(&self.doubtful).push(memory);
    }

    /// Copies `bytes` bytes at `from`, in this process's ordinary memory, to the device's address `to`.
    /// Blocks until they are there.
    ///
    /// # Safety
    /// `from` can be read and `to` is memory of the device that lives as long as this, both for so many
    /// bytes, and nobody uses it meanwhile.
    ///
    /// # Errors
    /// What the plugin says.
    pub(crate) unsafe fn copy_in(&self, to: u64, from: *const u8, bytes: u64) -> Result<()> {
        let mut engine = lock(&self.engine);
        let first = engine.given;
        for (turn, (offset, length)) in (0..).zip(pieces(bytes)) {
            // The copy before the last has read this half.
            engine.until((first + turn).saturating_sub(1))?;
            let half = turn % 2 * HALF;
            // SAFETY: `from` is the caller's promise; the half is this engine's, and free.
            unsafe {
                let source = from.add(offset as usize);
                let target = engine.host.add(half as usize);
                unisono_copy::copy(target, source, length as usize);
            }
            let staged = engine.staging.base() + half;
            engine.give(to + offset, staged, length)?;
        }
        let all = engine.given;
        engine.until(all)
    }

    /// Copies `bytes` bytes from the device's address `from` to this process's ordinary memory.
    ///
    /// # Safety
    /// As [`copy_in`](Self::copy_in), with the sides exchanged.
    ///
    /// # Errors
    /// What the plugin says.
    pub(crate) unsafe fn copy_out(&self, to: *mut u8, from: u64, bytes: u64) -> Result<()> {
        let mut engine = lock(&self.engine);
        let mut before: Option<(u64, u64, u64, u64)> = None;
        for (turn, (offset, length)) in (0..).zip(pieces(bytes)) {
            let half = turn % 2 * HALF;
            let staged = engine.staging.base() + half;
            engine.give(staged, from + offset, length)?;
            // While the device copies, what came before is taken out.
            if let Some(piece) = before.replace((engine.given, half, offset, length)) {
                // SAFETY: the caller's promise.
                unsafe { engine.empty(piece, to) }?;
            }
        }
        match before {
            // SAFETY: as above.
            Some(piece) => unsafe { engine.empty(piece, to) },
            None => Ok(()),
        }
    }
}

/// Offsets and lengths of the pieces that a half holds.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = (0..bytes.div_ceil(HALF)).map(|turn| turn * HALF);
    starts.map(move |offset| (offset, HALF.min(bytes - offset)))
}

impl Engine {
    /// Puts a copy on the stream.
    fn give(&mut self, dst: u64, src: u64, bytes: u64) -> Result<()> {
        // SAFETY: one side is a half, the other memory of the caller's promise; both stay until the copy
        // was waited for, or the device is lost.
        let mut batch = unsafe { Batch::new() };
        batch.copy(dst, src, bytes);
        self.given += 1;
        let mut looks = 0;
        while !batch.is_empty() {
            if self.stream.submit(&mut batch)? == 0 {
                self.stream.poll(u64::MAX)?;
                pause(&mut looks);
            }
        }
        Ok(())
    }

    /// Waits until the stream has done so many copies in all. Ends with an error when the device is lost.
    fn until(&mut self, copies: u64) -> Result<()> {
        let mut looks = 0;
        loop {
            let state = self.stream.poll(u64::MAX)?;
            if state.completed >= copies || state.state == State::Idle {
                return Ok(());
            }
            pause(&mut looks);
        }
    }

    /// Waits for a copy and takes out what it brought.
    ///
    /// # Safety
    /// `to` is that of [`Transfer::copy_out`].
    unsafe fn empty(
        &mut self,
        (copy, half, offset, length): (u64, u64, u64, u64),
        to: *mut u8,
    ) -> Result<()> {
        self.until(copy)?;
        // SAFETY: the caller's promise; the device is done with the half.
        unsafe {
            let source = self.host.add(half as usize);
            let target = to.add(offset as usize);
            unisono_copy::copy(target, source, length as usize);
        }
        Ok(())
    }
}

fn pause(looks: &mut u32) {
    *looks += 1;
    match *looks {
        0..SPINS => std::hint::spin_loop(),
        SPINS..YIELDS => std::thread::yield_now(),
        _ => std::thread::sleep(PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_bytes_once() {
        for bytes in [0, 1, HALF - 1, HALF, HALF + 1, 5 * HALF + 7] {
            let mut next = 0;
            for (offset, length) in pieces(bytes) {
                assert_eq!(offset, next);
                assert!((1..=HALF).contains(&length));
                next += length;
            }
            assert_eq!(next, bytes);
        }
    }
}
