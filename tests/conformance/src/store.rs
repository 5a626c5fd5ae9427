//! Data memory of a check that the processor can fill and read, whatever device it lies on.

#![allow(
    unsafe_code,
    reason = "reads and writes memory of a plugin by its address"
)]

use unisono_hal::{Device, Memory, MemoryKind, MemoryRequest};

use crate::outcome::{Checked, Stop, ensure};
use crate::queue;

/// Data memory. Where the processor cannot reach it, the device's copies carry it.
pub struct Store {
    device: Device,
    memory: Memory,
    /// Reachable memory beside it.
    staging: Option<Memory>,
}

impl Store {
    /// Zeroed data memory of the device.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn new(device: &Device, bytes: u64) -> Checked<Self> {
        Self::of(
            device,
            device.alloc(&MemoryRequest::new(MemoryKind::Data, bytes))?,
        )
    }

    /// Memory that is already there.
    ///
    /// # Errors
    /// If it needs staging and there is none.
    pub fn of(device: &Device, memory: Memory) -> Checked<Self> {
        let staging = match memory.host_ptr() {
            Some(_) => None,
            None => {
                let request = MemoryRequest::new(MemoryKind::Staging, memory.len());
                let staging = device.alloc(&request)?;
                ensure!(
                    staging.host_ptr().is_some(),
                    "staging memory has no address for the processor"
                );
                Some(staging)
            }
        };
        Ok(Self {
            device: device.clone(),
            memory,
            staging,
        })
    }

    /// Its address for commands.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.memory.base()
    }

    /// The memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// What the plugin says, where a device carries them.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Checked {
        let to = self.reach(offset, bytes.len() as u64)?;
        // SAFETY: `reach` checked the bounds; the memory lives as long as `self`, and no command
        // that touches it is under way when a check writes it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        if self.staging.is_some() {
            self.carry(self.at() + offset, self.staged(offset), bytes.len() as u64)?;
        }
        Ok(())
    }

    /// Reads bytes at an offset.
    ///
    /// # Errors
    /// What the plugin says, where a device carries them.
    pub fn read(&self, offset: u64, len: u64) -> Checked<Vec<u8>> {
        let from = self.reach(offset, len)?;
        if self.staging.is_some() {
            self.carry(self.staged(offset), self.at() + offset, len)?;
        }
        let mut out = vec![0; len as usize];
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        Ok(out)
    }

    fn reach(&self, offset: u64, len: u64) -> Checked<*mut u8> {
        let inside = offset
            .checked_add(len)
            .is_some_and(|end| end <= self.memory.len());
        ensure!(inside, "the check reaches outside its own memory");
        let memory = self.staging.as_ref().unwrap_or(&self.memory);
        let base = memory
            .host_ptr()
            .ok_or_else(|| Stop::failed("no address for the processor"))?;
        Ok(base.wrapping_add(offset as usize))
    }

    /// The device's address of the staging memory, which need not be the processor's.
    fn staged(&self, offset: u64) -> u64 {
        self.staging.as_ref().map_or(0, Memory::base) + offset
    }

    fn carry(&self, dst: u64, src: u64, bytes: u64) -> Checked {
        let mut stream = self.device.stream(0)?;
        let mut batch = queue::batch();
        batch.copy(dst, src, bytes);
        queue::run(&mut stream, &mut batch)
    }
}
