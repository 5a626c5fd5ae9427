//! Flag lines and counters, and other memory that a link or a signal writes: in memory of the
//! plugin's device, or of this process where the plugin has no device.

#![allow(
    unsafe_code,
    reason = "reads and writes by address what a plugin writes too"
)]

use std::sync::atomic::{AtomicU64, Ordering};

use unisono_hal::{Device, Memory, MemoryKind, MemoryRequest};

use crate::outcome::{Checked, Stop, ensure};

/// Bytes of a flag line.
pub const LINE: u64 = size_of::<unisono_abi::FlagLine>() as u64;

/// Memory that the processor and the plugin reach, aligned to a line.
pub struct Region {
    at: u64,
    host: u64,
    lines: u64,
    keep: Keep,
}

enum Keep {
    Memory(Memory),
    Own(#[allow(dead_code, reason = "frees when dropped")] Vec<Line>),
}

/// Zeros aligned as flag lines are.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code, reason = "accessed by address alone")] [u64; 8]);

impl Region {
    /// Of the device, or of this process if there is none.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn new(device: Option<&Device>, kind: MemoryKind, bytes: u64) -> Checked<Self> {
        let bytes = bytes.next_multiple_of(LINE);
        if let Some(device) = device {
            return Self::of(device.alloc(&MemoryRequest::new(kind, bytes))?);
        }
        let mut own = vec![Line([0; 8]); (bytes / LINE) as usize];
        let at = own.as_mut_ptr().expose_provenance() as u64;
        Ok(Self {
            at,
            host: at,
            lines: bytes / LINE,
            keep: Keep::Own(own),
        })
    }

    /// Memory that is already there.
    ///
    /// # Errors
    /// If the processor cannot reach it.
    pub fn of(memory: Memory) -> Checked<Self> {
        let host = memory.host_ptr();
        let host = host.ok_or_else(|| Stop::failed("there is no address for the processor"))?;
        Ok(Self {
            at: memory.base(),
            host: host as u64,
            lines: memory.len() / LINE,
            keep: Keep::Memory(memory),
        })
    }

    /// Its address for commands.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Its address for the processor, and for links.
    #[must_use]
    pub fn host(&self) -> u64 {
        self.host
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.lines * LINE
    }

    /// The plugin's handle of it.
    ///
    /// # Errors
    /// If it is this process's own memory.
    pub fn memory(&self) -> Checked<&Memory> {
        match &self.keep {
            Keep::Memory(memory) => Ok(memory),
            Keep::Own(_) => Err(Stop::unsupported("the plugin has no memory")),
        }
    }

    /// Writes bytes at an offset, which no command uses now.
    ///
    /// # Panics
    /// If they do not fit: the check is wrong.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(offset + bytes.len() as u64 <= self.len());
        let to = (self.host + offset) as *mut u8;
        // SAFETY: in bounds of memory that lives as long as `self`; checks write only what no
        // command uses at that time.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Reads bytes at an offset, which no command writes now.
    ///
    /// # Panics
    /// If there are not so many: the check is wrong.
    #[must_use]
    pub fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        assert!(offset + len <= self.len());
        let mut out = vec![0; len as usize];
        let from = (self.host + offset) as *const u8;
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        out
    }

    /// One word of one line, for atomic access.
    fn word(&self, line: u64, word: u64) -> &AtomicU64 {
        assert!(line < self.lines && word < LINE / 8);
        let at = (self.host + line * LINE + word * 8) as *mut u64;
        // SAFETY: in bounds of memory that lives as long as `self`, aligned to 8, and accessed
        // atomically here and by the contract's rules for flags and counters elsewhere.
        unsafe { AtomicU64::from_ptr(at) }
    }
}

/// Flag lines, and as many counters behind them, one a line.
pub struct Flags {
    region: Region,
    lines: u64,
}

impl Flags {
    /// `lines` flags and counters in signal memory of the device.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn new(device: &Device, lines: u64) -> Checked<Self> {
        Self::anywhere(Some(device), lines)
    }

    /// As [`Flags::new`], or in memory of this process if there is no device.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn anywhere(device: Option<&Device>, lines: u64) -> Checked<Self> {
        let region = Region::new(device, MemoryKind::Signal, 2 * lines * LINE)?;
        Ok(Self { region, lines })
    }

    /// As [`Flags::new`], for other processes to map.
    ///
    /// # Errors
    /// What the plugin says.
    pub fn shared(device: &Device, lines: u64) -> Checked<Self> {
        let request = MemoryRequest::new(MemoryKind::Signal, 2 * lines * LINE);
        let region = Region::of(device.alloc(&request.exportable())?)?;
        ensure!(
            region.len() >= 2 * lines * LINE,
            "too little memory for {lines} flags"
        );
        Ok(Self { region, lines })
    }

    /// The memory.
    #[must_use]
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Address of a flag line for commands.
    #[must_use]
    pub fn flag(&self, line: u64) -> u64 {
        self.region.at() + line * LINE
    }

    /// Address of a counter for commands.
    #[must_use]
    pub fn counter(&self, line: u64) -> u64 {
        self.region.at() + (self.lines + line) * LINE
    }

    /// The counter word of a flag.
    #[must_use]
    pub fn value(&self, line: u64) -> u64 {
        self.region.word(line, 0).load(Ordering::Acquire)
    }

    /// The words of a flag.
    #[must_use]
    pub fn words(&self, line: u64) -> [u64; 3] {
        [1, 2, 3].map(|word| self.region.word(line, word).load(Ordering::Acquire))
    }

    /// `value` and `seen` of a counter.
    #[must_use]
    pub fn counted(&self, line: u64) -> (u64, u64) {
        let load = |word| {
            self.region
                .word(self.lines + line, word)
                .load(Ordering::Acquire)
        };
        (load(0), load(1))
    }

    /// Sets a flag and its words, as a peer's signal would.
    pub fn set(&self, line: u64, value: u64, words: [u64; 3]) {
        for (word, number) in (1..).zip(words) {
            self.region
                .word(line, word)
                .store(number, Ordering::Relaxed);
        }
        self.region.word(line, 0).store(value, Ordering::Release);
    }

    /// Adds to a flag, as an abort does.
    pub fn add(&self, line: u64, step: u64) {
        self.region.word(line, 0).fetch_add(step, Ordering::SeqCst);
    }

    /// Sets a counter that no command uses now.
    pub fn set_counter(&self, line: u64, value: u64) {
        for word in [0, 1] {
            let word = self.region.word(self.lines + line, word);
            word.store(value, Ordering::Release);
        }
    }
}
