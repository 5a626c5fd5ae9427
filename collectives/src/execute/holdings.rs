//! What a lane keeps for its channels: memory, and the bells of peers that its own stream cannot ring.

use unisono_hal::{Cpu, LinkedMemory, Memory};

/// What a lane keeps until its streams and links are gone.
#[derive(Default)]
pub(crate) struct Holdings {
    pub kept: Kept,
    /// Bytes of this rank's arenas.
    pub arena_bytes: u64,
    /// Bells that the host rings for the stream.
    pub bells: Option<Bells>,
}

/// What is freed when a lane is gone, or later.
#[derive(Default)]
pub(crate) struct Kept {
    /// What links know of the arenas.
    #[expect(dead_code, reason = "held, and taken back with the lane")]
    pub linked: Vec<LinkedMemory>,
    /// What peers gave to map, then this rank's arenas: freed in this order.
    #[expect(dead_code, reason = "held, and freed with the lane")]
    pub memories: Vec<Memory>,
}

impl Holdings {
    /// What outlives the lane.
    pub(super) fn take(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }
}

/// Bells of peers that sleep on one, where the stream that signals them rings none: whoever sees that
/// the stream has come further rings all of them. That costs one look at each where nobody sleeps.
pub(crate) struct Bells {
    cpu: Cpu,
    bells: Vec<u64>,
}

impl Bells {
    /// The bells of memory that lives as long as the lane; `None` if there is none.
    pub(crate) fn new(cpu: Option<Cpu>, memories: &[Memory]) -> Option<Self> {
        let bells: Vec<u64> = memories.iter().map(Memory::base).collect();
        let cpu = cpu.filter(|_| !bells.is_empty())?;
        Some(Self { cpu, bells })
    }

    /// Wakes whoever sleeps at one.
    #[allow(unsafe_code, reason = "bells are addresses")]
    pub(super) fn ring(&self) {
        // SAFETY: bases of bell memory that the lane holds.
        unsafe { self.cpu.ring(&self.bells) };
    }
}
