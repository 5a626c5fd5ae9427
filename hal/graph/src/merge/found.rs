//! Links as they are found, those that several ranks report joined to one.

use std::collections::BTreeMap;

use crate::{Builder, CapacityGroup, GroupId, LinkReport, LinkType, NewLink, Source, VertexId};

/// What a link is known by while reports are joined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    from: VertexId,
    to: VertexId,
    plugin: String,
    kind: String,
    rail: u32,
    /// Its number among the parallel links of one report.
    index: usize,
}

/// What is known of it so far.
struct Figures {
    link_type: LinkType,
    /// Where the sender writes, and by whichever end is faster.
    written: u64,
    bytes_per_second: u64,
    latency_ns: u64,
    group: Option<String>,
}

/// The links of a job.
#[derive(Default)]
pub(super) struct Links {
    found: BTreeMap<Key, Figures>,
    /// Networks, by plugin, kind and rail.
    pub(super) switches: BTreeMap<(String, String, u32), VertexId>,
}

impl Links {
    /// One more report of a link: the lower bandwidth and the higher latency count.
    pub(super) fn put(
        &mut self,
        from: VertexId,
        to: VertexId,
        plugin: &str,
        link: &LinkReport,
        index: usize,
        group: Option<String>,
    ) {
        let (plugin, kind) = (plugin.to_owned(), link.kind.clone());
        let figures = self.found.entry(Key {
            from,
            to,
            plugin,
            kind,
            rail: link.rail,
            index,
        });
        // A link's puts are nobody's reads.
        let bytes_per_second = match link.link_type {
            LinkType::Mapped => link.bytes_per_second.max(link.read_bytes_per_second),
            LinkType::Posted => link.bytes_per_second,
        };
        let figures = figures.or_insert(Figures {
            link_type: link.link_type,
            written: link.bytes_per_second,
            bytes_per_second,
            latency_ns: link.latency_ns,
            group,
        });
        figures.written = figures.written.min(link.bytes_per_second);
        figures.bytes_per_second = figures.bytes_per_second.min(bytes_per_second);
        figures.latency_ns = figures.latency_ns.max(link.latency_ns);
        figures.link_type = figures.link_type.max(link.link_type);
    }

    pub(super) fn finish(self, builder: &mut Builder) {
        let mut capacities: BTreeMap<&str, u64> = BTreeMap::new();
        for figures in self.found.values() {
            if let Some(group) = &figures.group {
                let capacity = capacities.entry(group).or_default();
                *capacity = figures.bytes_per_second.max(*capacity);
            }
        }
        let groups: BTreeMap<&str, GroupId> = capacities
            .into_iter()
            .map(|(name, bytes_per_second)| {
                (
                    name,
                    builder.capacity_group(CapacityGroup {
                        name: name.to_owned(),
                        bytes_per_second,
                    }),
                )
            })
            .collect();
        for (key, figures) in &self.found {
            let is_mapped = figures.link_type == LinkType::Mapped;
            builder.link(NewLink {
                from: key.from,
                to: key.to,
                plugin: key.plugin.clone(),
                kind: key.kind.clone(),
                link_type: figures.link_type,
                // One rank may have it as a posted link.
                bytes_per_second: match is_mapped {
                    true => figures.bytes_per_second,
                    false => figures.written,
                },
                written_bytes_per_second: Some(figures.written)
                    .filter(|written| is_mapped && *written < figures.bytes_per_second),
                latency_ns: figures.latency_ns,
                shared: figures
                    .group
                    .as_deref()
                    .and_then(|group| groups.get(group).copied()),
                rail: key.rail,
                source: Source::Plugin,
            });
        }
    }
}
