//! Canonical order: what makes two builders with the same content give the same graph.

use std::cmp::Reverse;

use super::{NewLink, number};
use crate::graph::Parts;
use crate::{
    CapacityGroup, DeviceId, GraphError, GroupId, Link, Node, NodeId, Vertex, VertexId, VertexKind,
};

/// What a vertex is known by; vertices stand in this order: ranks first, then devices that no rank
/// uses, network cards, switches, NUMA nodes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    class: u8,
    rank: Option<u32>,
    node: Option<NodeId>,
    number: u32,
    text: &'a str,
    id: DeviceId,
}

fn key(vertex: &Vertex) -> Key<'_> {
    let none = Key {
        class: 0,
        rank: None,
        node: vertex.node,
        number: 0,
        text: "",
        id: DeviceId::default(),
    };
    match &vertex.kind {
        VertexKind::Device(device) => Key {
            class: if device.rank.is_some() { 0 } else { 1 },
            rank: device.rank,
            text: &device.plugin,
            id: device.id,
            ..none
        },
        VertexKind::Nic(_) => Key {
            class: 2,
            text: &vertex.name,
            ..none
        },
        VertexKind::Switch(_) => Key {
            class: 3,
            text: &vertex.name,
            ..none
        },
        VertexKind::Numa(numa) => Key {
            class: 4,
            number: numa.index,
            ..none
        },
    }
}

pub(super) fn canonical(
    mut nodes: Vec<Node>,
    vertices: Vec<Vertex>,
    links: Vec<NewLink>,
    groups: Vec<CapacityGroup>,
) -> Result<Parts, GraphError> {
    nodes.sort_by_key(|node| node.id);
    if let Some([first, second]) = twice(&nodes, |a, b| a.id == b.id) {
        return Err(conflict(format!("node {}", first.id), first, second));
    }
    let (vertices, vertex_places) = sorted(vertices, |a, b| key(a).cmp(&key(b)));
    check_vertices(&nodes, &vertices)?;
    let (groups, group_places) = sorted(groups, |a, b| a.name.cmp(&b.name));
    if let Some([first, second]) = twice(&groups, |a, b| a.name == b.name) {
        return Err(conflict(
            format!("capacity group {}", first.name),
            first,
            second,
        ));
    }
    let links = links
        .into_iter()
        .map(|link| NewLink {
            from: VertexId(vertex_places[link.from.index()]),
            to: VertexId(vertex_places[link.to.index()]),
            shared: link
                .shared
                .map(|group| GroupId(group_places[group.index()])),
            ..link
        })
        .collect();
    Ok(Parts {
        nodes,
        vertices,
        links: numbered(links),
        groups,
    })
}

fn check_vertices(nodes: &[Node], vertices: &[Vertex]) -> Result<(), GraphError> {
    if let Some([first, second]) =
        twice(vertices, |a, b| a.rank().is_some() && a.rank() == b.rank())
    {
        return Err(GraphError::DuplicateRank {
            rank: first.rank().unwrap_or_default(),
            first: first.name.clone(),
            second: second.name.clone(),
        });
    }
    if let Some([first, second]) = twice(vertices, |a, b| key(a) == key(b)) {
        return Err(conflict(first.label(), first, second));
    }
    for vertex in vertices {
        if let Some(node) = vertex.node
            && nodes.binary_search_by_key(&node, |node| node.id).is_err()
        {
            return Err(GraphError::UnknownNode {
                vertex: vertex.label(),
                node,
            });
        }
    }
    Ok(())
}

/// Puts links in order and counts parallel ones.
fn numbered(mut links: Vec<NewLink>) -> Vec<Link> {
    links.sort_by(|a, b| rank_link(a).cmp(&rank_link(b)));
    let mut numbered: Vec<Link> = Vec::with_capacity(links.len());
    for link in links {
        let index = match numbered.last() {
            Some(last)
                if (last.from, last.to) == (link.from, link.to)
                    && (&last.plugin, &last.kind) == (&link.plugin, &link.kind) =>
            {
                last.index + 1
            }
            _ => 0,
        };
        numbered.push(Link {
            from: link.from,
            to: link.to,
            plugin: link.plugin,
            kind: link.kind,
            link_type: link.link_type,
            bytes_per_second: link.bytes_per_second,
            written_bytes_per_second: link.written_bytes_per_second,
            latency_ns: link.latency_ns,
            shared: link.shared,
            rail: link.rail,
            index,
            source: link.source,
        });
    }
    numbered
}

/// The order of links: by ends, then by name, then the better of parallel ones first.
fn rank_link(link: &NewLink) -> impl Ord + '_ {
    (
        (link.from, link.to, &link.plugin, &link.kind, link.rail),
        (
            Reverse((link.bytes_per_second, link.written_bytes_per_second)),
            link.latency_ns,
            link.link_type,
            link.shared,
            &link.source,
        ),
    )
}

/// Sorts, and says for each old place which the new one is.
fn sorted<T>(items: Vec<T>, compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> (Vec<T>, Vec<u32>) {
    let mut numbered: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    numbered.sort_by(|(_, a), (_, b)| compare(a, b));
    let mut places = vec![0; numbered.len()];
    for (new, (old, _)) in numbered.iter().enumerate() {
        places[*old] = number(new);
    }
    (numbered.into_iter().map(|(_, item)| item).collect(), places)
}

/// The first two neighbours that are the same in a sorted list.
fn twice<T>(items: &[T], same: impl Fn(&T, &T) -> bool) -> Option<[&T; 2]> {
    items
        .windows(2)
        .find(|pair| same(&pair[0], &pair[1]))
        .map(|pair| [&pair[0], &pair[1]])
}

fn conflict<T: std::fmt::Debug>(what: String, first: &T, second: &T) -> GraphError {
    GraphError::Conflict {
        what,
        first: format!("{first:?}"),
        second: format!("{second:?}"),
    }
}
