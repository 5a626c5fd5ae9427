//! Memory on a communicator's device, which the bench fills and checks.

use anyhow::Result;
use unisono::{Buffer, Communicator, Window};

/// A buffer of the bench.
pub struct Block {
    held: Held,
    /// What the CPU fills and checks, where it does not see the device's memory.
    mirror: Vec<u8>,
}

enum Held {
    /// Ordinary memory of the device.
    Plain(Buffer<u8>),
    /// Memory that the peers can reach.
    Window(Window<u8>),
}

impl Block {
    /// Zeroed memory. With `window` every rank must ask for as much.
    pub fn new(communicator: &Communicator, bytes: u64, window: bool) -> Result<Self> {
        let bytes = bytes.max(1) as usize;
        let held = if window {
            Held::Window(communicator.alloc(bytes)?)
        } else {
            Held::Plain(communicator.buffer(bytes)?)
        };
        let seen = held.as_slice().is_some();
        let mirror = vec![0; if seen { 0 } else { bytes }];
        Ok(Self { held, mirror })
    }

    /// The address, as the device sees it.
    pub fn address(&self) -> u64 {
        match &self.held {
            Held::Plain(buffer) => buffer.address(),
            Held::Window(window) => window.address(),
        }
    }

    /// Whether peers reach it directly.
    pub fn is_direct(&self) -> bool {
        matches!(&self.held, Held::Window(window) if window.is_direct())
    }

    /// The first bytes. No call may be using them.
    pub fn bytes(&mut self, len: u64) -> Result<&[u8]> {
        match &self.held {
            Held::Plain(buffer) if buffer.as_slice().is_none() => buffer.read(&mut self.mirror)?,
            Held::Window(window) if window.as_slice().is_none() => window.read(&mut self.mirror)?,
            _ => {}
        }
        let bytes = self.held.as_slice().unwrap_or(&self.mirror);
        Ok(&bytes[..len as usize])
    }

    /// Fills the first bytes. No call may be using them.
    pub fn fill(&mut self, len: u64, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        if let Some(bytes) = self.held.as_mut_slice() {
            fill(&mut bytes[..len as usize]);
            return Ok(());
        }
        fill(&mut self.mirror[..len as usize]);
        match &mut self.held {
            Held::Plain(buffer) => buffer.write(&self.mirror)?,
            Held::Window(window) => window.write(&self.mirror)?,
        }
        Ok(())
    }

    /// Writes a byte of each cache line of the first bytes, where the CPU makes what is sent.
    pub fn touch(&mut self, len: u64) {
        let seen = self.held.as_mut_slice();
        for line in seen
            .into_iter()
            .flat_map(|all| all[..len as usize].chunks_mut(64))
        {
            line[0] = std::hint::black_box(line[0]);
        }
    }
}

impl Held {
    fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(buffer) => buffer.as_slice(),
            Self::Window(window) => window.as_slice(),
        }
    }

    fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Plain(buffer) => buffer.as_mut_slice(),
            Self::Window(window) => window.as_mut_slice(),
        }
    }
}
