//! The windows of a link: ours, which the peer writes, and the peer's, which we write.

use std::sync::Arc;

use unisono_plugin::abi::FlagLine;
use unisono_plugin::{Error, HostRange, Result};

use crate::memory::Memory;
use crate::wire::Token;

const LINE: u64 = size_of::<FlagLine>() as u64;

/// Windows by number. A link has a handful: a search beats a table.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    exported: Vec<Exported>,
    imported: Vec<(u32, Arc<Imported>)>,
}

#[derive(Debug)]
struct Exported {
    id: u32,
    range: HostRange,
    /// `None` once the link is over: the peer cannot write it any more.
    memory: Option<Arc<Memory>>,
}

/// A window of the peer's.
#[derive(Debug)]
pub(crate) struct Imported {
    /// Its number at the peer.
    pub(crate) id: u32,
    address: u64,
    bytes: u64,
    /// Whether the peer's CPU can write it.
    pub(crate) host: bool,
    /// By the peer's rails.
    keys: Vec<u32>,
}

impl Imported {
    /// Where a device finds a place in it over one of the peer's rails: address and key.
    pub(crate) fn place(&self, offset: u64, rail: usize) -> (u64, u32) {
        let key = self.keys.get(rail).copied().unwrap_or(0);
        (self.address + offset, key)
    }
}

impl Windows {
    /// Whether a number is free to export.
    pub(crate) fn check_free(&self, id: u32) -> Result<()> {
        if self.exported.iter().any(|window| window.id == id) {
            return Err(Error::invalid(format!("window {id} is exported already")));
        }
        Ok(())
    }

    /// Takes note of a window and makes the peer's token.
    pub(crate) fn export(&mut self, id: u32, range: HostRange, memory: Arc<Memory>) -> Vec<u8> {
        let token = Token {
            id,
            address: range.address,
            bytes: range.bytes,
            host: memory.is_host(),
            keys: memory.remote_keys(),
        };
        self.exported.push(Exported {
            id,
            range,
            memory: Some(memory),
        });
        token.encode()
    }

    pub(crate) fn import(&mut self, id: u32, token: &[u8]) -> Result<()> {
        let token = Token::decode(token)
            .map_err(|error| Error::invalid(format!("the token of window {id}: {error}")))?;
        self.imported.retain(|(other, _)| *other != id); // the peer exported another one
        let window = Imported {
            id: token.id,
            address: token.address,
            bytes: token.bytes,
            host: token.host,
            keys: token.keys,
        };
        self.imported.push((id, Arc::new(window)));
        Ok(())
    }

    /// Ends an exported window: once nothing uses it, the peer's writes to it fail.
    pub(crate) fn close(&mut self, id: u32) -> Result<()> {
        let before = self.exported.len();
        self.exported.retain(|window| window.id != id);
        if self.exported.len() == before {
            return Err(Error::invalid(format!("there is no window {id} to close")));
        }
        Ok(())
    }

    /// Takes all of them from the peer; their numbers stay in use.
    pub(crate) fn withdraw(&mut self) {
        for window in &mut self.exported {
            window.memory = None;
        }
    }

    /// Makes what has landed in windows in devices' memory visible to these.
    ///
    /// # Errors
    /// What a device says.
    pub(crate) fn flush(&self) -> Result<()> {
        let memories = self.exported.iter().filter_map(|w| w.memory.as_ref());
        let flushes = memories.filter_map(|memory| memory.flush());
        flushes.into_iter().try_for_each(|flush| flush.call())
    }

    /// The registered memory of a window of ours that holds these bytes.
    pub(crate) fn source(&self, address: u64, bytes: u64) -> Option<&Arc<Memory>> {
        self.exported
            .iter()
            .filter_map(|window| window.memory.as_ref())
            .find(|memory| memory.holds(address, bytes))
    }

    /// The peer's window, if `bytes` at `offset` lie in it.
    pub(crate) fn target(&self, id: u32, offset: u64, bytes: u64) -> Result<&Arc<Imported>> {
        let (_, window) = self
            .imported
            .iter()
            .find(|(other, _)| *other == id)
            .ok_or_else(|| Error::invalid(format!("window {id} was not imported")))?;
        match offset.checked_add(bytes) {
            Some(end) if end <= window.bytes => Ok(window),
            _ => Err(Error::invalid(format!(
                "{bytes} bytes at {offset} are not in window {id} of {} bytes",
                window.bytes
            ))),
        }
    }

    /// The peer's window for a flag line.
    pub(crate) fn target_flag(&self, id: u32, offset: u64) -> Result<&Arc<Imported>> {
        self.target(id, offset, LINE)
    }

    /// The address of bytes in a window of ours that the CPU can write, if they lie in it.
    pub(crate) fn place(&self, id: u32, offset: u64, bytes: u64) -> Option<u64> {
        let window = self.exported.iter().find(|window| window.id == id)?;
        let end = offset.checked_add(bytes)?;
        let is_host = window
            .memory
            .as_ref()
            .is_some_and(|memory| memory.is_host());
        let fits = end <= window.range.bytes && is_host;
        fits.then(|| window.range.address + offset)
    }

    /// The address of a flag line in a window of ours, if it lies in it and is aligned.
    pub(crate) fn flag(&self, id: u32, offset: u64) -> Option<u64> {
        let flag = self.place(id, offset, LINE)?;
        flag.is_multiple_of(align_of::<FlagLine>() as u64)
            .then_some(flag)
    }
}
