//! READ: another process's memory, read with the system's leave.
#![allow(unsafe_code, reason = "commands carry addresses")]

use unisono_plugin::Result;
use unisono_plugin::abi::CommandRead;

use super::transfer::{Progress, at};
use crate::memory::process::Process;

/// Goes on with a READ; `true` when it is complete.
///
/// # Safety
/// The process is the base of memory that stands for one and is not freed, where its buffer begins has been told, the
/// destination is mapped, and nobody else uses that.
pub(super) unsafe fn read(
    command: &CommandRead,
    progress: &mut Progress,
    budget: &mut u64,
) -> Result<bool> {
    // SAFETY: the caller's promise.
    let (process, base) = unsafe {
        let process = &*(command.process as usize as *const Process);
        (process, (command.base as usize as *const u64).read())
    };
    let from = base.wrapping_add(command.offset);
    let mut read = Ok(());
    let done = progress.advance(1, command.bytes, budget, |_, offset, length| {
        let to = at(command.dst, 0, 0, offset);
        if read.is_err() {
            return;
        }
        // SAFETY: the caller's promise.
        read = unsafe { process.read(to, from.wrapping_add(offset), length as usize) };
    });
    read.map(|()| done)
}
