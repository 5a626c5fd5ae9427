//! From the frozen link graph to what the cost model asks: the same on every rank.

use std::collections::BTreeMap;

use unisono_graph::{LinkType, Way};
use unisono_plan::cost::{Fabric, Link, Node, Port, Rate, Reads, Speeds};

use super::fetched::Fetches;
use super::packed::Pair;
use super::refused::Refused;
use super::templates::templates;
use super::ways::Ports;
use crate::ground;
use crate::tune::LinkFigures;
use crate::world::World;

/// What a rank spends on one message besides the bytes: commands, flags, a poll.
///
/// Measured as a tenth of an 8 B all_reduce of two ranks in shared memory (`unisono bench`), which
/// puts, waits, combines and waits for a line to come from another core; a calibration per cluster
/// replaces it where there is one.
const MESSAGE_PS: u64 = 30_000;
/// What a core spends at each end of a message that the operating system carries: a call into the kernel, which on one
/// machine does the other end's part of the protocol too. A third of an exchange of 4 B of two ranks over TCP on loopback
/// (`unisono bench all_reduce --without-links shm`), which is one such message each way.
const SOCKET_PS: u64 = 2_500_000;
/// The rest of that exchange.
const LOOPBACK_PS: u64 = 1_500_000;
/// What a core moves through a socket of its own machine (`unisono bench broadcast --without-links shm`, 64 MiB).
const LOOPBACK_BYTES_PER_SECOND: u64 = 4_000_000_000;
/// One switch between two ranks that share a core, by yielding: `sched_yield` between two processes.
const SWITCH_PS: u64 = 1_200_000;

/// What the ranks told each other of themselves when the communicator was formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankSpeed {
    /// Result bytes a second of one reduction, 0 if unknown.
    pub reduce: u64,
    /// Cores of which the rank gets the time.
    pub cores: u32,
}

/// The fabric of a communicator of `members`: as the plugins report it, or as it was measured.
pub(super) fn fabric(
    world: &World,
    members: &[u32],
    speeds: &[RankSpeed],
    refused: &Refused,
    fetches: Fetches,
    reads: Result<Reads, String>,
    shares: Result<(), String>,
) -> Fabric {
    let with_links =
        |measured: &BTreeMap<_, _>| with_links(world, members, speeds, refused, fetches, measured);
    let reported = with_links(&BTreeMap::new());
    let calibration = &world.calibration;
    let measured = calibration.fabric(reported.fingerprint());
    let fabric = if calibration.links.is_empty() {
        reported
    } else {
        with_links(&calibration.links).in_place_of(&reported)
    };
    let fabric = fabric.with_reads(reads).with_shared_memory(shares);
    match measured {
        Some(measured) => fabric.with_measurements(measured),
        None => fabric,
    }
}

/// By rank of `members` a number of the core to which it was bound as it joined; empty if one was bound to no single core.
pub(super) fn bound_to(world: &World, members: &[u32]) -> Vec<u32> {
    let mut known = Vec::new();
    let number = |member: &u32| {
        let cores = world.table.get(*member)?.cores;
        if cores.count != 1 {
            return None;
        }
        let at = known.iter().position(|id| *id == cores.id);
        Some(at.unwrap_or_else(|| {
            known.push(cores.id);
            known.len() - 1
        }) as u32)
    };
    let all: Option<Vec<u32>> = members.iter().map(number).collect();
    all.unwrap_or_default()
}

/// What can leave a node in all, where that is less than its ways together: ways share network
/// cards, and the links from a rank to a switch.
///
/// A measured link proves that at least that much can.
fn exit(
    world: &World,
    members: &[u32],
    node_of: &[u32],
    node: u32,
    measured: &BTreeMap<String, LinkFigures>,
) -> Rate {
    let graph = &world.graph;
    // Ranks of one node are reached by the same cards: one of each is enough.
    let mut others: BTreeMap<u32, u32> = BTreeMap::new();
    for (&there, &member) in node_of.iter().zip(members).filter(|(n, _)| **n != node) {
        others.entry(there).or_insert(member);
    }
    let (mut groups, mut links) = (BTreeMap::new(), BTreeMap::new());
    let mut least = 0;
    let here = node_of.iter().zip(members).filter(|(n, _)| **n == node);
    for from in here.map(|(_, member)| *member) {
        for to in others.values().copied() {
            let Some(way) = graph.ways(from, to).into_iter().next() else {
                continue;
            };
            if let Some(figures) = measured.get(&way.kind) {
                least = least.max(figures.bytes_per_second);
            }
            let first = (graph.rank(from).into_iter())
                .flat_map(|start| graph.links_from(start))
                .filter(|(_, link)| {
                    let class = (&link.plugin, &link.kind, link.rail);
                    let is_switch = graph.vertex(link.to).device().is_none();
                    class == (&way.plugin, &way.kind, way.rail)
                        && (is_switch || Some(link.to) == graph.rank(to))
                });
            for (id, link) in first {
                let is_switch = graph.vertex(link.to).device().is_none();
                match link.shared {
                    Some(group) => {
                        let capacity = &graph.capacity_groups()[group.index()];
                        groups.insert(group, capacity.bytes_per_second);
                    }
                    None if is_switch => {
                        links.insert(id, link.bytes_per_second);
                    }
                    // It has a way of its own.
                    None => return Rate::UNKNOWN,
                }
            }
        }
    }
    let all = groups.values().chain(links.values()).copied();
    Rate::bytes_per_second(all.fold(0, u64::saturating_add).max(least))
}

/// The fabric with measured figures for some kinds of links.
fn with_links(
    world: &World,
    members: &[u32],
    speeds: &[RankSpeed],
    refused: &Refused,
    fetches: Fetches,
    measured: &BTreeMap<String, LinkFigures>,
) -> Fabric {
    let nodes = world.table.nodes();
    let node = |member: u32| world.table.get(member).map(|entry| entry.node);
    let node_of: Vec<u32> = members
        .iter()
        .map(|member| {
            let at = nodes.iter().position(|n| Some(*n) == node(*member));
            at.unwrap_or(0) as u32
        })
        .collect();
    let mut ports = Ports::new(&world.graph);
    let described: Vec<Node> = (0..nodes.len() as u32)
        .map(|node| Node {
            cores: cores(world, node, members, &node_of, speeds, &ports),
            exit: exit(world, members, &node_of, node, measured),
        })
        .collect();
    let reduce = speeds
        .iter()
        .map(|speed| speed.reduce)
        .filter(|r| *r > 0)
        .min();
    let reduce = reduce.map_or(Rate::UNKNOWN, Rate::bytes_per_second);
    let ranks = Speeds {
        message_ps: MESSAGE_PS,
        switch_ps: SWITCH_PS,
        reduce,
        copy: reduce,
        port: Rate::UNKNOWN,
    };
    let of_kind = |kind: &str, latency_ns: u64, bytes_per_second: u64, by_core: bool, port| {
        match measured.get(kind) {
            None => Link {
                alpha_ps: latency_ns.saturating_mul(1000),
                rate: Rate::bytes_per_second(bytes_per_second),
                by_core,
                message_ps: 0,
                port,
            },
            Some(figures) => Link {
                // What both ends spend on the message is counted apart.
                alpha_ps: figures.latency_ps().saturating_sub(2 * MESSAGE_PS),
                rate: Rate::bytes_per_second(figures.bytes_per_second),
                by_core,
                message_ps: 0,
                port: port.map(|port| at_least(port, figures.bytes_per_second)),
            },
        }
    };
    let staged = |ports: &mut Ports<'_>, from: u32| {
        let port = ports.of_host(from, ground::BYTES_PER_SECOND);
        let (latency_ns, rate) = (ground::LATENCY_NS, ground::BYTES_PER_SECOND);
        let by_core = ports.is_cpu(from);
        Pair {
            link: of_kind(ground::KIND, latency_ns, rate, by_core, port),
            direct: by_core,
            leaves_by: port,
        }
    };
    let of_way = |ports: &mut Ports<'_>, from: u32, to: u32, way: Option<&Way>| {
        match way {
            // Forming has already failed if a pair has no link.
            None => Pair {
                link: Link {
                    alpha_ps: 0,
                    rate: Rate::UNKNOWN,
                    by_core: false,
                    message_ps: 0,
                    port: None,
                },
                direct: false,
                leaves_by: None,
            },
            Some(way) => {
                let by_core = way.link_type == LinkType::Mapped && ports.is_cpu(from);
                let port = ports.of_way(from, to, way);
                let rate = fetches.rate(&world.graph, from, to, way);
                let latency_ns = way.latency_ns;
                let mut link = of_kind(&way.kind, latency_ns, rate, by_core, port);
                if way.link_type == LinkType::Posted && ports.is_cpu(from) {
                    let is_here = node(from) == node(to);
                    link = posted(link, is_here, measured.contains_key(&way.kind));
                }
                Pair {
                    link,
                    // A way through what others use is no link of the pair's own.
                    direct: way.hops == 1 && port.is_none(),
                    leaves_by: ports.leaving(from, to, way).map(|port| {
                        match measured.get(&way.kind) {
                            None => port,
                            Some(figures) => at_least(port, figures.bytes_per_second),
                        }
                    }),
                }
            }
        }
    };
    // Each pair is asked about more often than the graph should be searched.
    let count = members.len() as u32;
    let mut pairs: Vec<Pair> = Vec::with_capacity(members.len() * members.len());
    let mut written = Rate::UNKNOWN;
    for (place, &from) in (0..).zip(members) {
        let ways = world.graph.ways_to_each(from, members);
        for ((other, &to), ways) in (0..).zip(members).zip(&ways) {
            let fetched = |way: &&Way| fetches.has(&world.graph, from, to, way);
            if let Some(rate) =
                (ways.first().filter(fetched)).and_then(|way| way.written_bytes_per_second)
            {
                written = written.min(Rate::bytes_per_second(rate));
            }
            pairs.push(if refused.has(place, other) {
                staged(&mut ports, from)
            } else {
                of_way(&mut ports, from, to, ways.first())
            });
        }
    }
    let pair = |from: u32, to: u32| pairs[from as usize * members.len() + to as usize];
    let link = |from: u32, to: u32| pair(from, to).link;
    let found = templates(count, pair);
    Fabric::new(&node_of, &described, ranks, link)
        .and_then(|fabric| fabric.with_templates(found, &node_of, &described, ranks, link))
        .map(|fabric| fabric.with_written(written))
        .expect("a communicator has a rank, and each is on a node of the table")
}

/// A posted link of a rank whose device is the CPU: its core serves it. `is_here`: both ends are on one machine, where
/// cores do all of it, cards nothing.
fn posted(link: Link, is_here: bool, is_measured: bool) -> Link {
    if !is_here {
        // Cards that are served without the kernel are as much faster in all.
        let message_ps = SOCKET_PS.min(link.alpha_ps / 10);
        let alpha_ps = link.alpha_ps - 2 * message_ps;
        return Link {
            alpha_ps,
            message_ps,
            ..link
        };
    }
    // What is reported is of the network.
    let (alpha_ps, rate) = match is_measured {
        true => (link.alpha_ps.saturating_sub(2 * SOCKET_PS), link.rate),
        false => (
            LOOPBACK_PS,
            Rate::bytes_per_second(LOOPBACK_BYTES_PER_SECOND),
        ),
    };
    Link {
        alpha_ps,
        rate,
        by_core: true,
        message_ps: SOCKET_PS,
        port: None,
    }
}

/// A port that a single link was measured to fill.
fn at_least(port: Port, bytes_per_second: u64) -> Port {
    let reported = port.rate.get().unwrap_or(u64::MAX);
    Port {
        rate: Rate::bytes_per_second(reported.max(bytes_per_second)),
        ..port
    }
}

/// The cores that the ranks of a node have together; 0, which is enough, where devices do their work. Those of all that are
/// bound to some, unless the system gives them the time of fewer.
fn cores(
    world: &World,
    node: u32,
    members: &[u32],
    node_of: &[u32],
    speeds: &[RankSpeed],
    ports: &Ports<'_>,
) -> u32 {
    let here = || (node_of.iter().zip(members).zip(speeds)).filter(|((n, _), _)| **n == node);
    if here().all(|((_, member), _)| !ports.is_cpu(*member)) {
        return 0;
    }
    let share = here().map(|(_, speed)| speed.cores).min().unwrap_or(0);
    let mut sets = BTreeMap::new();
    for ((_, member), speed) in here() {
        match world.table.get(*member).map(|entry| entry.cores) {
            Some(cores) if cores.count == speed.cores => sets.insert(cores.id, cores.count),
            _ => return share,
        };
    }
    sets.into_values().fold(0, u32::saturating_add)
}
