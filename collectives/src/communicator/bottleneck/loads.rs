//! How much goes over each link.

use std::collections::{BTreeMap, BTreeSet};

use unisono_graph::{LinkGraph, LinkId, NodeId, Way};
use unisono_plan::traffic::Traffic;

use super::{Busiest, LinkUse};

/// What goes over the links of a graph.
pub(super) struct Loads<'a> {
    graph: &'a LinkGraph,
    members: &'a [u32],
    /// By ranks of the communicator: bytes, and the way that they go.
    pairs: BTreeMap<(u32, u32), (u64, Way)>,
}

impl<'a> Loads<'a> {
    /// `rate` is what the way between two ranks of the job carries, in bytes a second.
    pub(super) fn new(
        graph: &'a LinkGraph,
        members: &'a [u32],
        bytes: Traffic,
        rate: impl Fn(u32, u32, &Way) -> u64,
    ) -> Self {
        let way = |((from, to), bytes): ((u32, u32), u64)| {
            let (a, b) = (members.get(from as usize)?, members.get(to as usize)?);
            let mut way = graph.ways(*a, *b).into_iter().next()?;
            way.bytes_per_second = rate(*a, *b, &way);
            Some(((from, to), (bytes, way)))
        };
        Self {
            graph,
            members,
            pairs: bytes.into_iter().filter_map(way).collect(),
        }
    }

    /// The first links of a way: straight to the peer, or to a switch.
    fn first(&self, from: u32, to: u32, way: &Way) -> Vec<LinkId> {
        let vertex = |rank: u32| self.graph.rank(self.members[rank as usize]);
        let (Some(start), Some(end)) = (vertex(from), vertex(to)) else {
            return Vec::new();
        };
        let links = self.graph.links_from(start).filter(|(_, link)| {
            let class = (&link.plugin, &link.kind, link.rail);
            let is_switch = self.graph.vertex(link.to).device().is_none();
            let leads = link.to == end || (way.hops > 1 && is_switch);
            class == (&way.plugin, &way.kind, way.rail) && leads
        });
        links.map(|(id, _)| id).collect()
    }

    pub(super) fn busiest(&self) -> Option<Busiest> {
        let pairs = self.pairs.iter().map(|((from, to), (bytes, way))| Busiest {
            what: format!("{} from rank {from} to rank {to}", named(&way.kind)),
            bytes: *bytes,
            bytes_per_second: way.bytes_per_second,
        });
        // What shares a capacity, and links that several pairs go over.
        // By node as well as by what they are called: several nodes may have one name.
        let mut shared: BTreeMap<(String, Option<NodeId>), (u64, u64)> = BTreeMap::new();
        for ((from, to), (bytes, way)) in &self.pairs {
            let Some(link) = self.first(*from, *to, way).first().copied() else {
                continue;
            };
            let link = self.graph.link(link);
            let node = |rank: u32| self.graph.node_of_rank(self.members[rank as usize]);
            let leaves = node(*from).filter(|here| node(*to) != Some(*here));
            let (what, capacity) = match (link.shared, leaves) {
                // Cards count for what leaves the machine.
                (Some(group), Some(here)) => {
                    let group = &self.graph.capacity_groups()[group.index()];
                    let name = self.graph.node(here).map_or("", |node| &node.name);
                    let what = format!("what leaves node {name} by {}", named(&way.kind));
                    (what, group.bytes_per_second)
                }
                // What a device sends to all others leaves by one way.
                (Some(group), None) => {
                    let group = &self.graph.capacity_groups()[group.index()];
                    let what = format!("{} of rank {from}", named(&way.kind));
                    (what, group.bytes_per_second)
                }
                (None, _) if way.hops > 1 => {
                    let what = format!("{} of rank {from}", named(&way.kind));
                    (what, link.bytes_per_second)
                }
                _ => continue,
            };
            let (sum, _) = shared.entry((what, leaves)).or_insert((0, capacity));
            *sum = sum.saturating_add(*bytes);
        }
        let shared = shared
            .into_iter()
            .map(|((what, _), (bytes, rate))| Busiest {
                what,
                bytes,
                bytes_per_second: rate,
            });
        pairs
            .chain(shared)
            .filter(|busiest| busiest.bytes_per_second > 0)
            .reduce(|a, b| if b.time() > a.time() { b } else { a })
    }

    pub(super) fn links(&self) -> BTreeSet<LinkUse> {
        let mut of_device: BTreeMap<(u32, &str), BTreeSet<LinkId>> = BTreeMap::new();
        for ((from, to), (_, way)) in &self.pairs {
            let used = of_device.entry((*from, &way.kind)).or_default();
            used.extend(self.first(*from, *to, way));
        }
        let of_device = of_device.into_iter().filter(|(_, used)| !used.is_empty());
        let links = of_device.filter_map(|((rank, kind), used)| {
            let start = self.graph.rank(self.members[rank as usize])?;
            let links = self.graph.links_from(start);
            let all: Vec<_> = links.filter(|(_, link)| link.kind == kind).collect();
            let is_outside = |to| {
                let device = self.graph.vertex(to).device();
                device.is_some_and(|device| {
                    device.rank.is_none_or(|rank| !self.members.contains(&rank))
                })
            };
            Some(LinkUse {
                kind: kind.to_owned(),
                all: all.len(),
                used: used.len(),
                outside: all.iter().filter(|(_, link)| is_outside(link.to)).count(),
            })
        });
        links.collect()
    }
}

/// A kind of link in a sentence.
fn named(kind: &str) -> &str {
    if is_plain(kind) { "the link" } else { kind }
}

/// Whether a kind says nothing, as those of planning graphs.
pub(super) fn is_plain(kind: &str) -> bool {
    matches!(kind, "" | "link")
}

#[cfg(test)]
mod tests {
    use unisono_plan::cost::{Cost, Picoseconds};

    use super::super::Bottleneck;
    use super::*;

    fn reported(_: u32, _: u32, way: &Way) -> u64 {
        way.bytes_per_second
    }

    /// Eight devices, each joined to each.
    fn mesh() -> LinkGraph {
        let nodes: Vec<String> = (0..8)
            .map(|id| format!("{{\"id\": {id}, \"compute\": true}}"))
            .collect();
        let pairs = (0..8).flat_map(|a| (0..8).map(move |b| (a, b)));
        let edges: Vec<String> = pairs
            .filter(|(a, b)| a != b)
            .map(|(a, b)| format!("{{\"src\": {a}, \"dst\": {b}, \"GBps\": 28.0}}"))
            .collect();
        let text = format!(
            "{{\"nodes\": [{}], \"edges\": [{}]}}",
            nodes.join(","),
            edges.join(",")
        );
        LinkGraph::from_json(&text).unwrap()
    }

    fn bottleneck(loads: &Loads<'_>) -> Bottleneck {
        Bottleneck {
            cost: Cost {
                transfer: Picoseconds(3_000_000),
                latency: Picoseconds(1_000_000),
                ..Cost::default()
            },
            busiest: loads.busiest(),
            links: loads.links(),
            of_rank: None,
        }
    }

    #[test]
    fn groups_of_four_on_a_mesh_of_eight_use_three_of_seven_links() {
        let graph = mesh();
        let pairs = (0..4).flat_map(|a| (0..4).map(move |b| (a, b)));
        let bytes = pairs.filter(|(a, b)| a != b).map(|pair| (pair, 1 << 20));
        let loads = Loads::new(&graph, &[1, 3, 5, 7], bytes.collect(), reported);
        let text = bottleneck(&loads).to_string();
        assert!(text.contains("75 % transfer, 25 % latency"), "{text}");
        assert!(text.contains("uses 3 of each device's 7 links"), "{text}");
        assert!(text.contains("4 lead to ranks outside"), "{text}");
    }

    /// Three devices on a switch: each has one way to both others.
    #[test]
    fn what_leaves_a_device_by_one_way_is_one() {
        use unisono_graph::{CapacityGroup, LinkType, NewLink, Source};
        let graph = mesh();
        let mut builder = unisono_graph::Builder::from(&graph);
        let group = builder.capacity_group(CapacityGroup {
            name: "of rank 0".into(),
            bytes_per_second: 50_000_000_000,
        });
        for to in [1, 2] {
            builder.link(NewLink {
                from: graph.rank(0).unwrap(),
                to: graph.rank(to).unwrap(),
                plugin: "some".into(),
                kind: "wide".into(),
                link_type: LinkType::Mapped,
                bytes_per_second: 50_000_000_000,
                written_bytes_per_second: None,
                latency_ns: 1,
                shared: Some(group),
                rail: 0,
                source: Source::Plugin,
            });
        }
        let graph = builder.build().unwrap();
        let bytes = [((0, 1), 1_000_000), ((0, 2), 1_000_000)];
        let found = Loads::new(&graph, &[0, 1, 2], bytes.into(), reported).busiest();
        let found = found.unwrap();
        assert_eq!(
            (found.what.as_str(), found.bytes),
            ("wide of rank 0", 2_000_000)
        );
        assert_eq!(found.time(), Picoseconds(40_000_000));
    }

    #[test]
    fn a_ring_leaves_links_idle_and_the_fullest_link_is_named() {
        let graph = mesh();
        let mut bytes: Traffic = (0..8)
            .map(|rank| ((rank, (rank + 1) % 8), 1 << 20))
            .collect();
        bytes.insert((2, 3), 28_000_000);
        let members: Vec<u32> = (0..8).collect();
        let found = bottleneck(&Loads::new(&graph, &members, bytes, reported));
        let busiest = found.busiest.as_ref().unwrap();
        assert!(
            busiest.what.ends_with("from rank 2 to rank 3"),
            "{busiest:?}"
        );
        assert_eq!(busiest.time(), Picoseconds(1_000_000_000));
        let text = found.to_string();
        assert!(text.contains("uses 1 of each device's 7 links"), "{text}");
        assert!(text.contains("6 are idle"), "{text}");
    }
}
