//! Bundles: links that are drawn as one line.
//!
//! Links between the same two sites that look alike are one bundle; if as many run back as run
//! there, it is drawn as a double line. A site is a vertex inside a panel, and a whole panel or a
//! switch outside.

use std::collections::{BTreeMap, BTreeSet};

use crate::{LinkGraph, LinkType, Source, VertexId, units};

/// What people see of a link. Links whose figures read alike look alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look {
    /// Place in [`Kinds`].
    pub(super) kind: usize,
    pub(super) link_type: LinkType,
    pub(super) bandwidth: String,
    pub(super) latency: String,
    /// The overlay that it comes from, if one.
    pub(super) origin: String,
}

/// Links drawn as one line.
#[derive(Clone, Debug)]
pub(super) struct Bundle<S> {
    /// Its sites; bytes run from the first to the second.
    pub(super) ends: [S; 2],
    /// Whether as many links run back.
    pub(super) both: bool,
    /// How many links in one direction.
    pub(super) count: usize,
    pub(super) look: Look,
    /// Of one link, in bytes a second.
    pub(super) bytes_per_second: u64,
    /// What the links join at either end.
    pub(super) vertices: [BTreeSet<VertexId>; 2],
}

impl<S> Bundle<S> {
    /// Its figures: `8 × 12.5 GB/s · 10 µs`.
    pub(super) fn figures(&self) -> String {
        let count = if self.count > 1 {
            format!("{} × ", self.count)
        } else {
            String::new()
        };
        let rest: String = [&self.look.latency, &self.look.origin]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(|text| format!(" · {text}"))
            .collect();
        format!("{count}{}{rest}", self.look.bandwidth)
    }
}

/// Names of kinds, in order; each has a colour.
pub(super) struct Kinds(pub(super) Vec<(String, String)>);

impl Kinds {
    pub(super) fn of(graph: &LinkGraph) -> Self {
        let kinds: BTreeSet<_> = graph
            .links()
            .iter()
            .map(|link| (link.kind.clone(), link.plugin.clone()))
            .collect();
        Self(kinds.into_iter().collect())
    }

    fn place(&self, kind: &str, plugin: &str) -> usize {
        self.0
            .iter()
            .position(|(k, p)| k == kind && p == plugin)
            .unwrap_or(0)
    }

    pub(super) fn name(&self, place: usize) -> &str {
        self.0.get(place).map_or("", |(kind, _)| kind)
    }
}

/// A link's ends, and its bandwidth in bytes a second.
type Seen = (VertexId, VertexId, u64);

/// The links between different sites, bundled. `site` says where a vertex is; links of vertices
/// that are nowhere are left out.
pub(super) fn bundles<S: Copy + Ord>(
    graph: &LinkGraph,
    kinds: &Kinds,
    site: impl Fn(VertexId) -> Option<S>,
) -> Vec<Bundle<S>> {
    let mut found: BTreeMap<(S, S, Look), [Vec<Seen>; 2]> = BTreeMap::new();
    for link in graph.links() {
        let (Some(from), Some(to)) = (site(link.from), site(link.to)) else {
            continue;
        };
        if from == to {
            continue;
        }
        let look = Look {
            kind: kinds.place(&link.kind, &link.plugin),
            link_type: link.link_type,
            bandwidth: units::bandwidth(link.bytes_per_second),
            latency: if link.latency_ns > 0 {
                units::latency(link.latency_ns)
            } else {
                String::new()
            },
            origin: match &link.source {
                Source::Overlay(origin) => origin.clone(),
                Source::Plugin | Source::Given => String::new(),
            },
        };
        let back = usize::from(from > to);
        let ways = found.entry((from.min(to), from.max(to), look)).or_default();
        ways[back].push((link.from, link.to, link.bytes_per_second));
    }
    let mut bundles = Vec::new();
    for ((low, high, look), [there, back]) in found {
        let both = there.len() == back.len();
        let bundle = |ends, links: &[Seen]| Bundle {
            ends,
            both,
            count: links.len(),
            look: look.clone(),
            bytes_per_second: links.iter().map(|(.., bytes)| *bytes).max().unwrap_or(0),
            vertices: [
                links.iter().map(|(from, ..)| *from).collect(),
                links.iter().map(|(_, to, _)| *to).collect(),
            ],
        };
        if !there.is_empty() {
            bundles.push(bundle([low, high], &there));
        }
        if !back.is_empty() && !both {
            bundles.push(bundle([high, low], &back));
        }
    }
    bundles
}
