//! Ways: what one plugin's links offer from one rank to another, with no device in between.
//!
//! This is what a communicator asks when it opens a channel: a link straight to the peer, or one
//! plugin's links through switches.

use std::collections::BTreeSet;

use super::route::search;
use crate::{Link, LinkGraph, LinkType};

/// One plugin's way from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The plugin that drives it; empty in planning graphs.
    pub plugin: String,
    /// Its kind: "shm", "tcp".
    pub kind: String,
    /// How bytes are moved over it.
    pub link_type: LinkType,
    /// The rail it belongs to, 0 if there are none.
    pub rail: u32,
    /// Bandwidth in bytes a second: of the narrowest link, or of all parallel links where they go
    /// straight.
    pub bytes_per_second: u64,
    /// What straight mapped links carry where the sender writes, in bytes a second, if that is less than where the
    /// receiver reads.
    pub written_bytes_per_second: Option<u64>,
    /// Latency in nanoseconds.
    pub latency_ns: u64,
    /// How many links one after the other; 1 is straight.
    pub hops: u32,
}

impl LinkGraph {
    /// The ways from one rank to another, the best first: mapped before posted, then by bandwidth,
    /// latency, number of links and name. Empty if a rank is unknown or nothing joins them.
    pub fn ways(&self, from: u32, to: u32) -> Vec<Way> {
        let (Some(start), Some(end)) = (self.rank(from), self.rank(to)) else {
            return Vec::new();
        };
        let classes: BTreeSet<_> = self
            .links_from(start)
            .map(|(_, link)| (&*link.plugin, &*link.kind, link.link_type, link.rail))
            .collect();
        let mut ways: Vec<Way> = classes
            .into_iter()
            .filter_map(|class @ (plugin, kind, link_type, rail)| {
                let straight = || {
                    let links = self.links_between(start, end).map(|(_, link)| link);
                    links.filter(|link| {
                        (&*link.plugin, &*link.kind, link.link_type, link.rail) == class
                    })
                };
                let mut written = 0;
                let (bytes_per_second, latency_ns, hops) = if straight().next().is_some() {
                    let sum =
                        |rate: fn(&Link) -> u64| straight().map(rate).fold(0, u64::saturating_add);
                    written = sum(Link::written);
                    let latency_ns = straight().map(|link| link.latency_ns).min()?;
                    (sum(|link| link.bytes_per_second), latency_ns, 1)
                } else {
                    let route = search(self, start, end, |link| {
                        let ends_here = link.to == end || self.vertex(link.to).device().is_none();
                        ends_here
                            && (&*link.plugin, &*link.kind, link.link_type, link.rail) == class
                    })?;
                    (
                        route.bytes_per_second,
                        route.latency_ns,
                        u32::try_from(route.links.len()).ok()?,
                    )
                };
                let (plugin, kind) = (plugin.to_owned(), kind.to_owned());
                Some(Way {
                    plugin,
                    kind,
                    link_type,
                    rail,
                    bytes_per_second,
                    written_bytes_per_second: Some(written)
                        .filter(|written| (1..bytes_per_second).contains(written)),
                    latency_ns,
                    hops,
                })
            })
            .collect();
        sort(&mut ways);
        ways
    }
}

/// The best first.
pub(super) fn sort(ways: &mut [Way]) {
    ways.sort_by(|a, b| {
        (a.link_type.cmp(&b.link_type))
            .then(b.bytes_per_second.cmp(&a.bytes_per_second))
            .then(a.latency_ns.cmp(&b.latency_ns))
            .then(a.hops.cmp(&b.hops))
            .then_with(|| (&a.plugin, &a.kind, a.rail).cmp(&(&b.plugin, &b.kind, b.rail)))
    });
}
