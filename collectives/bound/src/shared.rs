//! Shared capacities, as part of the network.
//!
//! Where all edges of a group begin at one vertex, or all end at one, the group is a vertex of its own
//! that they pass, with one arc of the shared capacity. For flows that nobody copies that is exact, and
//! so it is where the balance of switches counts. A cut by itself does not see that such a vertex may
//! not copy: what is copied must also be sent, each copy by some rank.
//!
//! Other groups (a bus that both ways share, a memory that all links cross) are no cut of any network:
//! for those there is one network that leaves them out, which no plan exceeds. In any case plans can
//! reach what they reach if each edge has its part of its group for itself.

use unisono_network::{Builder, Group, Network, NetworkError, Rational, Vertex};

use crate::Op;

/// A network without groups, or two that enclose the one there is.
pub(crate) struct Unshared {
    /// What is not slower.
    pub(crate) above: Network,
    /// What is not faster, if that is another one.
    pub(crate) below: Option<Network>,
    /// What no op is faster than that brings everything to everybody, in bytes a second.
    pub(crate) copies: Option<Rational>,
}

/// How a group is turned into vertices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// It never limits its edges.
    Wide,
    /// Its edges begin at one vertex.
    Out,
    /// Its edges end at one vertex.
    In,
    /// It is left out.
    Other,
    /// Each edge has its part of it.
    Parts,
}

/// Takes groups apart, for an op.
///
/// # Errors
/// Only if the network with vertices for groups is too large.
pub(crate) fn unshare(network: &Network, op: Op) -> Result<Unshared, NetworkError> {
    let shapes: Vec<Shape> = network
        .groups()
        .iter()
        .map(|group| shape(network, group))
        .collect();
    let above = rebuild(network, &shapes)?;
    let copied = matches!(
        op,
        Op::AllGather | Op::ReduceScatter | Op::Broadcast { .. } | Op::Reduce { .. }
    );
    let gates = shapes.iter().any(|shape| *shape != Shape::Wide);
    if !(shapes.contains(&Shape::Other) || copied && gates) {
        return Ok(Unshared {
            above,
            below: None,
            copies: None,
        });
    }
    let parts: Vec<Shape> = shapes
        .iter()
        .map(|shape| match shape {
            Shape::Wide => Shape::Wide,
            _ => Shape::Parts,
        })
        .collect();
    Ok(Unshared {
        above,
        below: Some(rebuild(network, &parts)?),
        copies: copied.then(|| copies(network)),
    })
}

/// What all ranks can send, and receive, by what each of the others must get.
fn copies(network: &Network) -> Rational {
    let ranks = 0..network.ranks();
    let sent: u128 = ranks
        .clone()
        .map(|rank| together(network, network.out_edges(rank)))
        .sum();
    let received: u128 = ranks
        .map(|rank| together(network, network.in_edges(rank)))
        .sum();
    Rational::new(sent.min(received) as i128, i128::from(network.ranks()) - 1)
}

/// What edges can carry at once, as far as each group by itself allows.
fn together(network: &Network, edges: &[u32]) -> u128 {
    let mut sums = vec![0u128; network.groups().len()];
    let mut free = 0;
    for edge in edges.iter().map(|edge| network.edge(*edge)) {
        match edge.group {
            Some(group) => sums[group as usize] += u128::from(edge.bytes_per_second),
            None => free += u128::from(edge.bytes_per_second),
        }
    }
    let shared = network.groups().iter().zip(sums);
    free + shared
        .map(|(group, sum)| sum.min(group.bytes_per_second.into()))
        .sum::<u128>()
}

fn shape(network: &Network, group: &Group) -> Shape {
    let edges = || group.edges.iter().map(|edge| network.edge(*edge));
    let sum: u128 = edges().map(|edge| u128::from(edge.bytes_per_second)).sum();
    let first = network.edge(group.edges[0]);
    if sum <= u128::from(group.bytes_per_second) {
        Shape::Wide
    } else if edges().all(|edge| edge.from == first.from) {
        Shape::Out
    } else if edges().all(|edge| edge.to == first.to) {
        Shape::In
    } else {
        Shape::Other
    }
}

/// The network without groups, each turned as its shape says.
fn rebuild(network: &Network, shapes: &[Shape]) -> Result<Network, NetworkError> {
    let mut builder = Builder::new(network.ranks());
    for vertex in network.vertices() {
        if let Vertex::Switch { reduces } = vertex {
            builder.switch(*reduces);
        }
    }
    let gates: Vec<Option<u32>> = network
        .groups()
        .iter()
        .zip(shapes)
        .map(|(group, shape)| {
            let first = network.edge(group.edges[0]);
            let gated = matches!(shape, Shape::Out | Shape::In);
            gated.then(|| {
                let gate = builder.switch(false);
                let (from, to) = if *shape == Shape::Out {
                    (first.from, gate)
                } else {
                    (gate, first.to)
                };
                builder.edge(from, to, group.bytes_per_second, 0);
                gate
            })
        })
        .collect();
    for edge in network.edges() {
        let (mut from, mut to, mut wide) = (edge.from, edge.to, edge.bytes_per_second);
        if let Some(group) = edge.group.map(|group| group as usize) {
            match (shapes[group], gates[group]) {
                (Shape::Out, Some(gate)) => from = gate,
                (Shape::In, Some(gate)) => to = gate,
                (Shape::Parts, _) => wide = part(network, group, wide),
                _ => {}
            }
        }
        builder.edge(from, to, wide, edge.latency_ns);
    }
    builder.build()
}

/// What an edge has of its group if all share in proportion; at least one byte a second.
fn part(network: &Network, group: usize, wide: u64) -> u64 {
    let group = &network.groups()[group];
    let edges = group
        .edges
        .iter()
        .map(|edge| u128::from(network.edge(*edge).bytes_per_second));
    let sum: u128 = edges.sum();
    let part = u128::from(wide) * u128::from(group.bytes_per_second) / sum.max(1);
    u64::try_from(part).unwrap_or(wide).clamp(1, wide)
}
