//! What a stream knows of the ways to write memory that several ranks map: see [`Ways`].

use std::ops::Range;

use unisono_copy::{WORTH, Ways};

use crate::memory;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Copied = 0,
    Reduced = 1,
}

/// The ways to memory that others have, too: what is written there is handed on.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Of the process's shared memories when they were listed.
    epoch: u64,
    /// By address.
    memories: Vec<Memory>,
    /// The one that was written to last.
    last: usize,
}

#[derive(Debug)]
struct Memory {
    range: Range<u64>,
    /// By what is written.
    ways: [Ways; 2],
}

impl Handed {
    /// Writes `bytes` bytes at `dst` by `write`, which is told whether to write past the caches.
    #[inline]
    pub(super) fn write(&mut self, what: What, dst: u64, bytes: u64, write: impl FnOnce(bool)) {
        if bytes < WORTH {
            return write(false);
        }
        match self.memory(dst) {
            None => write(false),
            Some(memory) => memory.ways[what as usize].write(bytes, write),
        }
    }

    /// The shared memory at an address, if it lies in one.
    fn memory(&mut self, address: u64) -> Option<&mut Memory> {
        if self.epoch != memory::shared_epoch() {
            self.list();
        }
        let at = |memory: &Memory| memory.range.contains(&address);
        if !self.memories.get(self.last).is_some_and(at) {
            let behind = (self.memories).partition_point(|memory| memory.range.start <= address);
            let last = behind.checked_sub(1)?;
            if !at(&self.memories[last]) {
                return None;
            }
            self.last = last;
        }
        self.memories.get_mut(self.last)
    }

    /// Lists the memories; what is known of those that were there stays.
    #[cold]
    fn list(&mut self) {
        let (epoch, ranges) = memory::shared_ranges();
        let mut known = std::mem::take(&mut self.memories).into_iter().peekable();
        let memories = ranges.into_iter().map(|range| {
            while known
                .next_if(|known| known.range.start < range.start)
                .is_some()
            {}
            let known = known.next_if(|known| known.range == range);
            known.unwrap_or(Memory {
                range,
                ways: Default::default(),
            })
        });
        *self = Self {
            epoch,
            memories: memories.collect(),
            last: 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use unisono_plugin::{DeviceId, Memory as _, MemoryKind, MemoryRequest};

    use super::*;
    use crate::memory::HostMemory;

    fn memory(exportable: bool) -> HostMemory {
        let request = MemoryRequest {
            kind: MemoryKind::Data,
            bytes: 1 << 20,
            align: 4096,
            exportable,
            lazy: true,
        };
        HostMemory::alloc(&request, DeviceId([0; 16])).unwrap()
    }

    /// Whether bytes there are handed on.
    fn is_shared(handed: &mut Handed, address: u64) -> bool {
        handed.memory(address).is_some()
    }

    #[test]
    fn what_several_ranks_map_is_handed_on_and_nothing_else() {
        let mut handed = Handed::default();
        let (own, shared) = (memory(false), memory(true));
        let first = shared.view().base;
        let last = first + shared.view().bytes - 1;
        assert!(is_shared(&mut handed, first) && is_shared(&mut handed, last));
        assert!(!is_shared(&mut handed, first - 1) && !is_shared(&mut handed, last + 1));
        assert!(!is_shared(&mut handed, own.view().base));
        // Imported by a rank of this process, and let go of by both.
        let told = shared
            .export(unisono_plugin::MemoryExport::Process)
            .unwrap();
        let imported = HostMemory::import(&told, DeviceId([0; 16])).unwrap();
        assert_eq!(imported.view().base, first);
        drop(shared);
        assert!(is_shared(&mut handed, first));
        drop(imported);
        assert!(!is_shared(&mut handed, first));
    }

    #[test]
    fn what_is_known_outlives_other_memories() {
        let mut handed = Handed::default();
        let shared = memory(true);
        let base = shared.view().base;
        let bytes = 1 << 20;
        handed.write(What::Copied, base, bytes, |past| assert!(!past));
        let others = [memory(true), memory(true)];
        // The second way is tried next, since the first is known.
        handed.write(What::Copied, base, bytes, |past| {
            assert_eq!(past, unisono_copy::can_stream());
        });
        handed.write(What::Reduced, base, bytes, |past| assert!(!past));
        drop(others);
        assert!(is_shared(&mut handed, base));
    }
}
