//! Buffers as the other libraries of a benchmark get them: private pages of 4 KiB, unless asked
//! otherwise.

#![allow(unsafe_code, reason = "advice on pages is a system call on an address")]

use std::env;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use rustix::mm::{Advice, madvise};
use unisono::{Communicator, Window};

/// Whole pages of any size that the system may choose.
const HUGE: usize = 2 << 20;

/// A send and a receive buffer of one rank.
pub enum Buffers {
    /// The program's own memory.
    Private { send: Pages, recv: Pages },
    /// The library's memory.
    Windows {
        send: Window<f32>,
        recv: Window<f32>,
    },
}

/// Private memory that starts so many bytes behind a huge page's boundary.
pub struct Pages {
    memory: Vec<f32>,
    start: usize,
    len: usize,
}

impl Pages {
    fn new(elements: usize) -> Result<Self> {
        let extra = HUGE / size_of::<f32>();
        let behind = offset()? / size_of::<f32>();
        let len = elements.next_multiple_of(extra);
        let mut memory: Vec<f32> = vec![0.0; len + 2 * extra];
        let start = memory.as_ptr().align_offset(HUGE);
        let advice = if env::var("PEERS_THP").is_ok_and(|v| v == "1") {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        let range = &mut memory[start..start + len + extra];
        // SAFETY: the range lies in the vector, and this advice changes no contents.
        unsafe { madvise(range.as_mut_ptr().cast(), size_of_val(range), advice) }?;
        Ok(Self {
            memory,
            start: start + behind,
            len,
        })
    }

    fn get(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// How many bytes behind a page private buffers begin.
fn offset() -> Result<usize> {
    let text = env::var("PEERS_OFFSET").unwrap_or_default();
    let bytes = match text.is_empty() {
        true => 0,
        false => text.parse().context("PEERS_OFFSET")?,
    };
    ensure!(
        bytes < HUGE && bytes.is_multiple_of(size_of::<f32>()),
        "PEERS_OFFSET: {bytes} bytes are no whole elements of less than 2 MiB"
    );
    Ok(bytes)
}

/// Whether buffers are the library's memory.
pub fn is_own() -> bool {
    static IS_OWN: OnceLock<bool> = OnceLock::new();
    *IS_OWN.get_or_init(|| env::var("PEERS_WINDOWS").is_ok_and(|v| v == "1"))
}

impl Buffers {
    /// Buffers of at least this many elements. Collective where the memory is the library's.
    pub fn of(communicator: &Communicator, elements: usize) -> Result<Self> {
        if is_own() {
            let send = communicator.alloc::<f32>(elements)?;
            let recv = communicator.alloc::<f32>(elements)?;
            return Ok(Self::Windows { send, recv });
        }
        Self::private(elements)
    }

    /// Buffers of at least this many elements, of the program's own.
    pub fn private(elements: usize) -> Result<Self> {
        Ok(Self::Private {
            send: Pages::new(elements)?,
            recv: Pages::new(elements)?,
        })
    }

    /// Both buffers.
    pub fn slices(&mut self) -> (&mut [f32], &mut [f32]) {
        match self {
            Self::Private { send, recv } => (send.get(), recv.get()),
            Self::Windows { send, recv } => (send, recv),
        }
    }
}
