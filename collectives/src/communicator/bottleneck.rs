//! Where the time of a call goes, in words: the parts of its predicted time, the link that has most to
//! do, and how many of its links each device uses at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use unisono_graph::{LinkGraph, LinkId, Way, units};
use unisono_plan::cost::{Cost, Picoseconds};
use unisono_plan::geometry::Sizes;
use unisono_plan::traffic::{Traffic, add_traffic};
use unisono_plan::{Geometry, Program, Shape};

use super::{Communicator, Explanation};
use crate::error::{Error, Result};

/// Above so many ranks only what this rank itself sends is looked at.
const MOST_RANKS: u32 = 64;

/// Where the time of a call goes. Its `Display` is a few sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// The predicted time in its parts.
    pub cost: Cost,
    /// What carries bytes longest, if any bytes move.
    pub busiest: Option<Busiest>,
    /// How many links devices have and use; one entry if all are alike, none if no bytes move.
    pub links: BTreeSet<LinkUse>,
    /// Of which rank alone this is what it sends; none if of all.
    pub of_rank: Option<u32>,
}

/// The link, or the links that share one capacity, with most to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busiest {
    /// What it is: "tcp from rank 0 to rank 3", "what leaves node a by tcp".
    pub what: String,
    /// Bytes that go over it in one call.
    pub bytes: u64,
    /// How many it carries a second.
    pub bytes_per_second: u64,
}

impl Busiest {
    /// How long that takes at least.
    #[must_use]
    pub fn time(&self) -> Picoseconds {
        let rate = u128::from(self.bytes_per_second.max(1));
        Picoseconds(u128::from(self.bytes) * 1_000_000_000_000 / rate)
    }
}

/// The links that leave a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkUse {
    /// Their kind.
    pub kind: String,
    /// How many there are.
    pub all: usize,
    /// How many of them the plan uses.
    pub used: usize,
    /// How many lead to devices of ranks that are not in this communicator.
    pub outside: usize,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.cost.total();
        let mut parts: Vec<(&str, u128)> = (self.cost.parts().into_iter())
            .map(|(name, part)| (name, (part.0 * 100 + total.0 / 2) / total.0.max(1)))
            .filter(|(_, percent)| *percent > 0)
            .collect();
        parts.sort_by_key(|(_, percent)| std::cmp::Reverse(*percent));
        let parts: Vec<String> = (parts.iter())
            .map(|(name, percent)| format!("{percent} % {name}"))
            .collect();
        write!(f, "Of {total} predicted")?;
        match parts.is_empty() {
            true => write!(f, ", nothing takes long.")?,
            false => write!(f, ": {}.", parts.join(", "))?,
        }
        if let Some(rank) = self.of_rank {
            write!(f, " As rank {rank} sees it:")?;
        }
        if let Some(busiest) = &self.busiest {
            write!(
                f,
                " The busiest is {}: {} at {}, {}.",
                busiest.what,
                units::size(busiest.bytes),
                units::bandwidth(busiest.bytes_per_second),
                busiest.time()
            )?;
        }
        for links in &self.links {
            let each = match self.links.len() {
                1 => "each device's",
                _ => "some devices'",
            };
            write!(f, " The plan uses {} of {each} {}", links.used, links.all)?;
            if !links.kind.is_empty() {
                write!(f, " {}", links.kind)?;
            }
            write!(f, " {}", if links.all == 1 { "link" } else { "links" })?;
            let idle = links.all - links.used - links.outside.min(links.all - links.used);
            match (links.outside, idle) {
                (0, 0) => write!(f, ".")?,
                (0, idle) => write!(f, "; {idle} are idle.")?,
                (outside, 0) => write!(f, "; {outside} lead to ranks outside.")?,
                (outside, idle) => {
                    write!(f, "; {outside} lead to ranks outside, {idle} are idle.")?;
                }
            }
        }
        Ok(())
    }
}

impl Communicator {
    /// Where the time of an explained call goes.
    ///
    /// # Errors
    /// If the explanation is of another communicator.
    pub fn bottleneck(&self, explanation: &Explanation) -> Result<Bottleneck> {
        let selection = explanation.selection();
        let (winner, request) = (selection.winner(), &selection.request);
        let wrong = |why: String| Error::invalid("explain", why);
        if selection.ranks != self.size() {
            let (theirs, ours) = (selection.ranks, self.size());
            return Err(wrong(format!(
                "the explanation is of {theirs} ranks, this communicator has {ours}"
            )));
        }
        let alone = self.size() > MOST_RANKS || !request.op.is_collective();
        let shape = |rank| Shape {
            op: request.op,
            ranks: self.size(),
            rank,
            windowed: winner.windowed,
        };
        let programs: Vec<Program> = match alone {
            true => vec![winner.template.generate(&shape(self.rank()))],
            false => (0..self.size())
                .map(|rank| winner.template.generate(&shape(rank)))
                .collect(),
        }
        .into_iter()
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))?;
        let element = u64::from(request.element_bytes.max(1));
        let mut traffic = Traffic::new();
        for program in &programs {
            let count = Sizes::Equal(request.bytes / element);
            let geometry = Geometry::of(program, count).map_err(|e| wrong(e.to_string()))?;
            add_traffic(&mut traffic, program, &geometry);
        }
        traffic.retain(|_, elements| *elements > 0);
        let bytes = traffic.into_iter();
        let bytes = bytes.map(|(pair, elements)| (pair, elements.saturating_mul(element)));
        let loads = Loads::new(self.graph(), self.members(), bytes.collect());
        Ok(Bottleneck {
            cost: winner.cost,
            busiest: loads.busiest(),
            links: loads.links(),
            of_rank: alone.then(|| self.rank()),
        })
    }
}

/// What goes over the links of a graph.
struct Loads<'a> {
    graph: &'a LinkGraph,
    members: &'a [u32],
    /// By ranks of the communicator: bytes, and the way that they go.
    pairs: BTreeMap<(u32, u32), (u64, Way)>,
}

impl<'a> Loads<'a> {
    fn new(graph: &'a LinkGraph, members: &'a [u32], bytes: Traffic) -> Self {
        let way = |((from, to), bytes): ((u32, u32), u64)| {
            let (a, b) = (members.get(from as usize)?, members.get(to as usize)?);
            let way = graph.ways(*a, *b).into_iter().next()?;
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

    fn busiest(&self) -> Option<Busiest> {
        let pairs = self.pairs.iter().map(|((from, to), (bytes, way))| Busiest {
            what: format!("{} from rank {from} to rank {to}", named(&way.kind)),
            bytes: *bytes,
            bytes_per_second: way.bytes_per_second,
        });
        // What shares a capacity, and links that several pairs go over.
        let mut shared: BTreeMap<String, (u64, u64)> = BTreeMap::new();
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
                (None, _) if way.hops > 1 => {
                    let what = format!("{} of rank {from}", named(&way.kind));
                    (what, link.bytes_per_second)
                }
                _ => continue,
            };
            let (sum, _) = shared.entry(what).or_insert((0, capacity));
            *sum = sum.saturating_add(*bytes);
        }
        let shared = shared.into_iter().map(|(what, (bytes, rate))| Busiest {
            what,
            bytes,
            bytes_per_second: rate,
        });
        pairs
            .chain(shared)
            .filter(|busiest| busiest.bytes_per_second > 0)
            .reduce(|a, b| if b.time() > a.time() { b } else { a })
    }

    fn links(&self) -> BTreeSet<LinkUse> {
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

/// A kind of link in a sentence; links of planning graphs have none.
fn named(kind: &str) -> &str {
    match kind {
        "" => "the link",
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let loads = Loads::new(&graph, &[1, 3, 5, 7], bytes.collect());
        let text = bottleneck(&loads).to_string();
        assert!(text.contains("75 % transfer, 25 % latency"), "{text}");
        assert!(text.contains("uses 3 of each device's 7 links"), "{text}");
        assert!(text.contains("4 lead to ranks outside"), "{text}");
    }

    #[test]
    fn a_ring_leaves_links_idle_and_the_fullest_link_is_named() {
        let graph = mesh();
        let mut bytes: Traffic = (0..8)
            .map(|rank| ((rank, (rank + 1) % 8), 1 << 20))
            .collect();
        bytes.insert((2, 3), 28_000_000);
        let members: Vec<u32> = (0..8).collect();
        let found = bottleneck(&Loads::new(&graph, &members, bytes));
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
