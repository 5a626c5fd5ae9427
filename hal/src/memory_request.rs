//! Memory that is asked for.

use unisono_abi as abi;

/// Memory that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequest {
    /// What it is for.
    pub kind: MemoryKind,
    /// Bytes.
    pub bytes: u64,
    /// Alignment in bytes, a power of two; 0 means 64.
    pub align: u64,
    /// Whether other processes shall import it.
    pub exportable: bool,
    /// Whether pages may appear only when they are touched.
    pub lazy: bool,
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// The elements of messages.
    Data,
    /// Flags and counters: host and device see each other's writes.
    Signal,
    /// A bell, the same for the whole process.
    Bell,
    /// Pinned host memory, for copies in and out.
    Staging,
    /// All memory of the process, for READs of those that import it. Plugins before 1.7 have none.
    Process,
}

impl MemoryRequest {
    /// Memory of a kind, aligned to 64 bytes, for this process only.
    #[must_use]
    pub const fn new(kind: MemoryKind, bytes: u64) -> Self {
        Self {
            kind,
            bytes,
            align: 64,
            exportable: false,
            lazy: false,
        }
    }

    /// The same, importable by other processes.
    #[must_use]
    pub const fn exportable(mut self) -> Self {
        self.exportable = true;
        self
    }

    /// The same, with pages that appear when they are touched.
    #[must_use]
    pub const fn lazy(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// The same, with another alignment.
    #[must_use]
    pub const fn align(mut self, align: u64) -> Self {
        self.align = align;
        self
    }

    pub(crate) const fn raw(&self) -> abi::MemoryRequest {
        let mut flags = 0;
        if self.exportable {
            flags |= abi::memory_flag::EXPORTABLE;
        }
        if self.lazy {
            flags |= abi::memory_flag::LAZY;
        }
        abi::MemoryRequest {
            struct_size: size_of::<abi::MemoryRequest>() as u32,
            kind: match self.kind {
                MemoryKind::Data => abi::memory_kind::DATA,
                MemoryKind::Signal => abi::memory_kind::SIGNAL,
                MemoryKind::Bell => abi::memory_kind::BELL,
                MemoryKind::Staging => abi::memory_kind::STAGING,
                MemoryKind::Process => abi::memory_kind::PROCESS,
            },
            bytes: self.bytes,
            align: self.align,
            flags,
        }
    }
}
