//! Memory of this rank's device that posted links read and write by themselves, and what ranks tell
//! each other of it.
//!
//! Each end decides for itself, for each plugin whose links it uses: what it sends is read from the
//! device's memory or from the host's, what it gets is written to the one or to the other. The other
//! end need not know: a window is a window. So a pair may go directly at one end and staged at the other.

use std::collections::BTreeSet;
use std::fmt;

use unisono_abi::reach;
use unisono_hal::{Dmabufs, LinkedMemory, Memory};

use super::wire::{Reader, put_bytes};
use crate::world::World;

/// Where a link finds the bytes of a rank, or leaves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinkEnd {
    /// In the rank's own memory: its device is the CPU.
    Host,
    /// In the device's memory, by dma-buf.
    Device,
    /// In host memory, from or to which the device copies.
    Staged,
}

/// The two ends of a rank's links of one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub sends: LinkEnd,
    pub receives: LinkEnd,
}

/// What a rank tells the others: the ends of its links, by their plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told(Vec<(String, Ends)>);

/// What links know of this rank's device, by their plugin.
#[derive(Default)]
pub(super) struct Linked {
    all: Vec<(String, LinkedMemory)>,
    /// Whether links may write there: the device sees what they wrote.
    receives: bool,
}

impl Ends {
    pub(super) const HOST: Self = Self {
        sends: LinkEnd::Host,
        receives: LinkEnd::Host,
    };
    pub(super) const STAGED: Self = Self {
        sends: LinkEnd::Staged,
        receives: LinkEnd::Staged,
    };

    pub(super) fn are(self, end: LinkEnd) -> bool {
        self.sends == end && self.receives == end
    }
}

/// What of some plugins offers to read and write the device's memory.
pub(super) fn offered(world: &World, plugins: &[&str]) -> Vec<(String, Dmabufs)> {
    if !world.device.info().reaches(reach::DMABUF) {
        return Vec::new();
    }
    let plugins: BTreeSet<&str> = plugins.iter().copied().collect();
    // Who has refused once is not asked for each communicator: that takes memory of the device, and freeing
    // it may wait for what is under way there.
    let asked = plugins
        .into_iter()
        .filter(|name| !world.has_said(&line(name, REFUSED)));
    let plugins = asked.filter_map(|name| {
        let dmabufs = Dmabufs::of(&world.plugin(name)?.instance)?;
        Some((name.to_owned(), dmabufs))
    });
    plugins.collect()
}

impl Linked {
    /// Makes memory of the device known to those that offer it. Who refuses has it staged, and that is
    /// said.
    pub(super) fn new(world: &World, offered: Vec<(String, Dmabufs)>, memory: &Memory) -> Self {
        let mut all = Vec::new();
        for (plugin, dmabufs) in offered {
            match dmabufs.add(memory) {
                Ok(linked) => all.push((plugin, linked)),
                Err(error) => say(world, &plugin, REFUSED, &error),
            }
        }
        let flushed = match all.is_empty() {
            true => Ok(()),
            false => world.device.flush_remote_writes(),
        };
        if let Err(error) = &flushed {
            let name = &world.device.info().name;
            say(
                world,
                name,
                "what links bring is staged in the host's memory",
                error,
            );
        }
        Self {
            all,
            receives: flushed.is_ok(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where links of a plugin find this rank's bytes.
    pub(super) fn ends(&self, plugin: &str) -> Ends {
        match self.all.iter().any(|(name, _)| name == plugin) {
            false => Ends::STAGED,
            true => Ends {
                sends: LinkEnd::Device,
                receives: match self.receives {
                    true => LinkEnd::Device,
                    false => LinkEnd::Staged,
                },
            },
        }
    }

    /// What is to be kept until the links are gone.
    pub(super) fn into_memories(self) -> impl Iterator<Item = LinkedMemory> {
        self.all.into_iter().map(|(_, memory)| memory)
    }
}

/// What is said of a plugin whose links do not take the device's memory.
const REFUSED: &str = "device memory is staged in the host's";

/// Says why, once for each plugin and each reason.
fn say(world: &World, who: &str, what: &str, error: &unisono_hal::Error) {
    let line = line(who, what);
    if world.says_first(&line) {
        log::warn!("rank {}: {line}: {error}", world.rank);
    }
}

fn line(who: &str, what: &str) -> String {
    format!("{who}: {what}")
}

impl Told {
    pub(super) fn new(ends: impl Iterator<Item = (String, Ends)>) -> Self {
        let mut all: Vec<_> = ends.collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|a, b| a.0 == b.0);
        all.truncate(usize::from(u8::MAX));
        Self(all)
    }

    /// The ends of its links of a plugin.
    pub(super) fn ends(&self, plugin: &str) -> Option<Ends> {
        let found = self.0.iter().find(|(name, _)| name == plugin);
        found.map(|(_, ends)| *ends)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.0.len() as u8);
        for (plugin, ends) in &self.0 {
            put_bytes(out, plugin.as_bytes());
            out.extend([code(ends.sends), code(ends.receives)]);
        }
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u8()?;
        let one = |reader: &mut Reader<'_>| {
            let plugin = String::from_utf8(reader.bytes()?.to_vec()).ok()?;
            let [sends, receives] = [reader.u8()?, reader.u8()?].map(from_code);
            let (sends, receives) = (sends?, receives?);
            Some((plugin, Ends { sends, receives }))
        };
        let all: Option<Vec<_>> = (0..count).map(|_| one(reader)).collect();
        all.map(Self)
    }
}

const fn code(end: LinkEnd) -> u8 {
    match end {
        LinkEnd::Host => 0,
        LinkEnd::Device => 1,
        LinkEnd::Staged => 2,
    }
}

const fn from_code(code: u8) -> Option<LinkEnd> {
    match code {
        0 => Some(LinkEnd::Host),
        1 => Some(LinkEnd::Device),
        2 => Some(LinkEnd::Staged),
        _ => None,
    }
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host memory",
            Self::Device => "device memory (dma-buf)",
            Self::Staged => "device memory staged in the host's",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end() -> impl Strategy<Value = LinkEnd> {
        (0..3_u8).prop_map(|code| from_code(code).expect("there are three"))
    }

    proptest! {
        #[test]
        fn what_is_told_travels(all in prop::collection::vec(("[a-z]{1,9}", end(), end()), 0..5)) {
            let ends = all.into_iter().map(|(name, sends, receives)| (name, Ends { sends, receives }));
            let told = Told::new(ends);
            let mut bytes = Vec::new();
            told.put(&mut bytes);
            prop_assert_eq!(Told::parse(&mut Reader(&bytes)), Some(told));
            prop_assert_eq!(Told::parse(&mut Reader(&bytes[..bytes.len() - 1])), None);
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(told) = Told::parse(&mut Reader(&bytes)) {
                let mut out = Vec::new();
                told.put(&mut out);
                prop_assert!(bytes.starts_with(&out));
            }
        }
    }
}
