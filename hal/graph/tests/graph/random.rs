//! Random graphs.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use unisono_graph::{
    Builder, CapacityGroup, Device, DeviceClass, DeviceId, LinkGraph, LinkType, NewLink, Nic,
    NicClass, Node, NodeId, Numa, Source, Switch, Vertex, VertexKind,
};

/// What a builder is filled with, so that it can be filled in any order.
#[derive(Clone, Debug)]
pub struct Parts {
    pub nodes: Vec<Node>,
    pub vertices: Vec<Vertex>,
    pub groups: Vec<CapacityGroup>,
    /// Ends and group as places in the lists above.
    pub links: Vec<(usize, usize, Option<usize>, NewLink)>,
}

impl Parts {
    /// Builds with everything in the order that `order` gives for a list of a length.
    pub fn build(&self, order: impl Fn(usize) -> Vec<usize>) -> LinkGraph {
        let mut builder = Builder::new();
        for place in order(self.nodes.len()) {
            builder.node(self.nodes[place].clone());
        }
        let mut vertices = vec![None; self.vertices.len()];
        for place in order(self.vertices.len()) {
            vertices[place] = Some(builder.vertex(self.vertices[place].clone()));
        }
        let mut groups = vec![None; self.groups.len()];
        for place in order(self.groups.len()) {
            groups[place] = Some(builder.capacity_group(self.groups[place].clone()));
        }
        for place in order(self.links.len()) {
            let (from, to, group, link) = &self.links[place];
            builder.link(NewLink {
                from: vertices[*from].unwrap(),
                to: vertices[*to].unwrap(),
                shared: group.and_then(|group| groups[group]),
                ..link.clone()
            });
        }
        builder.build().unwrap()
    }
}

fn text() -> impl Strategy<Value = String> {
    "[ -~\u{e0}-\u{ff}\u{4e00}-\u{4eff}]{1,12}"
}

fn vertex(place: usize, nodes: usize) -> impl Strategy<Value = Vertex> {
    let index = u32::try_from(place).unwrap();
    let node = if nodes == 0 {
        Just(None).boxed()
    } else {
        option::of(0..nodes).boxed()
    };
    (
        node,
        0..4u8,
        text(),
        option::of(0..4u32),
        any::<bool>(),
        0..1u64 << 50,
    )
        .prop_map(move |(node, kind, name, numa, flag, bytes)| {
            let kind = match kind {
                0 => VertexKind::Nic(Nic {
                    class: if flag {
                        NicClass::Physical
                    } else {
                        NicClass::Virtual
                    },
                    bytes_per_second: numa.map(|_| bytes),
                    numa,
                    up: flag,
                }),
                1 => VertexKind::Switch(Switch { reduces: flag }),
                2 => VertexKind::Numa(Numa {
                    index,
                    socket: numa,
                    cores: 3,
                    threads: 7,
                    memory_bytes: bytes,
                }),
                _ => VertexKind::Device(Device {
                    id: DeviceId([u8::try_from(place).unwrap(); 16]),
                    plugin: if flag { name.clone() } else { String::new() },
                    class: if flag {
                        DeviceClass::Gpu
                    } else {
                        DeviceClass::Cpu
                    },
                    rank: flag.then_some(index),
                    numa,
                    pci: numa.map(|numa| format!("0000:{numa:02x}:00.0")),
                    memory_bytes: bytes,
                }),
            };
            // Names of cards and switches must differ on a node.
            let node = node.map(|node| NodeId([u8::try_from(node).unwrap(); 16]));
            Vertex {
                name: format!("{place} {name}"),
                node,
                kind,
            }
        })
}

/// A link between two of these vertices: a start, and how much further the end is.
fn link(
    vertices: usize,
    groups: usize,
) -> impl Strategy<Value = (usize, usize, Option<usize>, NewLink)> {
    let group = if groups == 0 {
        Just(None).boxed()
    } else {
        option::of(0..groups).boxed()
    };
    let source = prop_oneof![
        Just(Source::Plugin),
        Just(Source::Given),
        text().prop_map(Source::Overlay)
    ];
    let ends = (0..vertices, 1..vertices);
    // Few figures too, so that parallel links differ in one of them only.
    let figures = prop_oneof![
        (1..1_000_000_000_000_000u64, 0..1_000_000_000_000u64),
        (1..3u64, 0..3u64)
    ];
    (
        ends,
        group,
        "[ab]",
        "a?",
        any::<bool>(),
        figures,
        0..3u32,
        source,
    )
        .prop_map(
            move |(
                (from, further),
                group,
                kind,
                plugin,
                posted,
                (bytes_per_second, latency_ns),
                rail,
                source,
            )| {
                let some = Builder::new().vertex(Vertex {
                    name: "placeholder".into(),
                    node: None,
                    kind: VertexKind::Switch(Switch::default()),
                });
                let link = NewLink {
                    from: some,
                    to: some,
                    plugin,
                    kind,
                    link_type: if posted {
                        LinkType::Posted
                    } else {
                        LinkType::Mapped
                    },
                    bytes_per_second,
                    written_bytes_per_second: Some(bytes_per_second / 2)
                        .filter(|written| !posted && written % 2 == 1),
                    latency_ns,
                    shared: None,
                    rail,
                    source,
                };
                (from, (from + further) % vertices, group, link)
            },
        )
}

/// Valid content of a graph.
pub fn parts() -> impl Strategy<Value = Parts> {
    (0..3usize, 2..10usize, 0..3usize).prop_flat_map(|(nodes, vertices, groups)| {
        let all_nodes = (0..nodes)
            .map(|place| Node {
                id: NodeId([u8::try_from(place).unwrap(); 16]),
                name: format!("host <{place}> & \"co\""),
                memory_bytes: place as u64 * 1000,
            })
            .collect();
        let all_groups = (0..groups)
            .map(|place| CapacityGroup {
                name: format!("group {place}"),
                bytes_per_second: 1 + place as u64,
            })
            .collect();
        let all_vertices = (0..vertices)
            .map(|place| vertex(place, nodes))
            .collect::<Vec<_>>();
        (
            Just(all_nodes),
            all_vertices,
            Just(all_groups),
            vec(link(vertices, groups), 0..24),
        )
            .prop_map(|(nodes, vertices, groups, links)| Parts {
                nodes,
                vertices,
                groups,
                links,
            })
    })
}

/// A valid graph.
pub fn graph() -> impl Strategy<Value = LinkGraph> {
    parts().prop_map(|parts| parts.build(|len| (0..len).collect()))
}
