//! Through what memory bytes go between two ranks, as was settled when the communicator was formed.

use std::collections::BTreeMap;
use std::fmt;

use unisono_graph::LinkType;

use super::Communicator;
use super::linked::LinkEnd;
use super::shared::Shared;
use crate::ground;

/// Ranks of which all pairs are told; of more, those with the first one.
const ALL: u32 = 32;
/// Pairs that a line names, at most.
const NAMED: usize = 6;

/// How bytes get from one rank's memory to another's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemoryPath {
    /// The sender writes the receiver's memory, which it has mapped.
    Mapped,
    /// The receiver reads the sender's memory, which it has mapped, since that is faster over their link. Into windows
    /// senders write nevertheless.
    Fetched,
    /// Through memory of the host, which both devices reach.
    Staged,
    /// A link of a plugin carries them.
    Link {
        /// Whose link it is.
        plugin: String,
        /// Where it finds them at the sender.
        from: LinkEnd,
        /// Where it leaves them at the receiver.
        to: LinkEnd,
    },
}

/// The paths between the ranks of a communicator. Its `Display` is a line for each kind of path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPaths {
    by_path: BTreeMap<MemoryPath, Vec<(u32, u32)>>,
}

impl MemoryPaths {
    /// Each kind of path with the pairs that take it, as sender and receiver. Of more than 32 ranks there
    /// are only the pairs with rank 0.
    pub fn iter(&self) -> impl Iterator<Item = (&MemoryPath, &[(u32, u32)])> {
        let all = self.by_path.iter();
        all.map(|(path, pairs)| (path, pairs.as_slice()))
    }

    /// The path from one rank to another.
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> Option<&MemoryPath> {
        let mut all = self.by_path.iter();
        all.find(|(_, pairs)| pairs.contains(&(from, to)))
            .map(|(path, _)| path)
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapped => f.write_str("the sender writes the receiver's memory, which is mapped"),
            Self::Fetched => f.write_str("the receiver reads the sender's memory, which is mapped"),
            Self::Staged => f.write_str("staged in memory of the host, which both devices reach"),
            Self::Link { plugin, from, to } => write!(f, "by {plugin}, from {from} to {to}"),
        }
    }
}

impl fmt::Display for MemoryPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, pairs) in &self.by_path {
            let named = pairs.iter().take(NAMED);
            let named: Vec<String> = named.map(|(a, b)| format!("{a} to {b}")).collect();
            let ranks = if pairs.len() == 1 { "Rank" } else { "Ranks" };
            write!(f, "{ranks} {}", named.join(", "))?;
            if let more @ 1.. = pairs.len().saturating_sub(NAMED) {
                write!(f, " and {more} more")?;
            }
            writeln!(f, ": {path}.")?;
        }
        Ok(())
    }
}

impl Shared {
    fn path(&self, from: u32, to: u32) -> Option<MemoryPath> {
        if self.refused.has(from, to) {
            return Some(MemoryPath::Staged);
        }
        let [start, end] = [from, to].map(|rank| self.members[rank as usize]);
        let ways = self.world.graph.ways(start, end);
        let way = ways.first()?;
        Some(match way.link_type {
            LinkType::Mapped if way.plugin == ground::PLUGIN => MemoryPath::Staged,
            LinkType::Mapped if self.fetches.has(&self.world.graph, start, end, way) => {
                MemoryPath::Fetched
            }
            LinkType::Mapped => MemoryPath::Mapped,
            LinkType::Posted => {
                let ends = |rank: u32| self.linked[rank as usize].ends(&way.plugin);
                MemoryPath::Link {
                    plugin: way.plugin.clone(),
                    from: ends(from)?.sends,
                    to: ends(to)?.receives,
                }
            }
        })
    }
}

impl Communicator {
    /// Through what memory bytes go between the ranks. No message is exchanged: the ranks told each other
    /// when they formed the communicator.
    #[must_use]
    pub fn memory_paths(&self) -> MemoryPaths {
        let mut paths = MemoryPaths::default();
        let size = self.size();
        for from in 0..size {
            for to in (0..size).filter(|to| *to != from) {
                let told = size <= ALL || from == 0 || to == 0;
                if let Some(path) = told.then(|| self.shared.path(from, to)).flatten() {
                    paths.by_path.entry(path).or_default().push((from, to));
                }
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_kind_of_path() {
        let link = |from, to| MemoryPath::Link {
            plugin: "some".to_owned(),
            from,
            to,
        };
        let by_path = BTreeMap::from([
            (MemoryPath::Mapped, (1..9).map(|to| (0, to)).collect()),
            (link(LinkEnd::Device, LinkEnd::Staged), vec![(0, 9)]),
        ]);
        let paths = MemoryPaths { by_path };
        assert_eq!(
            paths.to_string(),
            "Ranks 0 to 1, 0 to 2, 0 to 3, 0 to 4, 0 to 5, 0 to 6 and 2 more: the sender writes the \
             receiver's memory, which is mapped.\n\
             Rank 0 to 9: by some, from device memory (dma-buf) to device memory staged in the host's.\n"
        );
        let found = paths.between(0, 9);
        assert_eq!(found, Some(&link(LinkEnd::Device, LinkEnd::Staged)));
        assert_eq!(paths.between(9, 0), None);
    }
}
