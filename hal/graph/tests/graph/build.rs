//! Building: what is refused, and that order does not matter.

use proptest::prelude::*;
use unisono_graph::{
    Builder, CapacityGroup, Device, DeviceClass, DeviceId, GraphError, LinkGraph, LinkType,
    NewLink, Node, NodeId, Source, Switch, Vertex, VertexId, VertexKind,
};

use crate::random;

fn device(number: u8, rank: Option<u32>) -> Vertex {
    Vertex {
        name: format!("device {number}"),
        node: None,
        kind: VertexKind::Device(Device {
            id: DeviceId([number; 16]),
            plugin: "host".into(),
            class: DeviceClass::Cpu,
            rank,
            numa: None,
            pci: None,
            memory_bytes: 0,
        }),
    }
}

fn link(from: VertexId, to: VertexId) -> NewLink {
    NewLink {
        from,
        to,
        plugin: "host".into(),
        kind: "shm".into(),
        link_type: LinkType::Mapped,
        bytes_per_second: 10,
        written_bytes_per_second: None,
        latency_ns: 5,
        shared: None,
        rail: 0,
        source: Source::Plugin,
    }
}

/// Two devices, with something done to them.
fn build(change: impl FnOnce(&mut Builder, VertexId, VertexId)) -> Result<LinkGraph, GraphError> {
    let mut builder = Builder::new();
    let a = builder.vertex(device(1, Some(0)));
    let b = builder.vertex(device(2, Some(1)));
    change(&mut builder, a, b);
    builder.build()
}

/// The identity of a vertex that no small builder has.
fn stranger() -> VertexId {
    let mut other = Builder::new();
    for number in 0..9 {
        other.vertex(device(number, None));
    }
    other.vertex(device(9, None))
}

#[test]
fn what_cannot_be_is_refused() {
    let bad = |change: &dyn Fn(&mut NewLink)| {
        build(|builder, a, b| {
            let mut link = link(a, b);
            change(&mut link);
            builder.link(link);
        })
        .unwrap_err()
    };
    assert!(matches!(
        bad(&|link| link.to = stranger()),
        GraphError::DanglingLink { .. }
    ));
    assert!(matches!(
        bad(&|link| link.to = link.from),
        GraphError::SelfLink { .. }
    ));
    assert!(matches!(
        bad(&|link| link.bytes_per_second = 0),
        GraphError::Bandwidth {
            bytes_per_second: 0,
            ..
        }
    ));
    assert!(matches!(
        bad(&|link| link.bytes_per_second = u64::MAX),
        GraphError::Bandwidth { .. }
    ));
    for written in [0, 10, 11] {
        let error = bad(&|link| link.written_bytes_per_second = Some(written));
        assert!(matches!(error, GraphError::Written { .. }), "{error}");
    }
    let of_posted = bad(&|link| {
        link.written_bytes_per_second = Some(5);
        link.link_type = LinkType::Posted;
    });
    assert!(
        matches!(of_posted, GraphError::Written { .. }),
        "{of_posted}"
    );
    assert!(matches!(
        bad(&|link| link.latency_ns = u64::MAX),
        GraphError::Latency { .. }
    ));
    assert!(matches!(
        bad(&|link| link.kind = String::new()),
        GraphError::Name {
            what: "link kind",
            ..
        }
    ));
    assert!(matches!(
        bad(&|link| link.kind = "a\u{1b}[31m".into()),
        GraphError::Name { .. }
    ));
    assert!(matches!(
        bad(&|link| link.plugin = "x".repeat(65)),
        GraphError::Name {
            what: "plugin",
            max: 64,
            ..
        }
    ));
    let text = bad(&|link| link.bytes_per_second = 0).to_string();
    assert!(text.contains("rank 0 -> rank 1 (shm)"), "{text}");
}

#[test]
fn vertices_and_groups_that_cannot_be_are_refused() {
    let twice = build(|builder, _, _| {
        builder.vertex(device(3, Some(1)));
    });
    assert!(matches!(
        twice,
        Err(GraphError::DuplicateRank { rank: 1, .. })
    ));
    let same = build(|builder, _, _| {
        builder.vertex(device(3, None));
        builder.vertex(device(3, None));
    });
    assert!(matches!(same, Err(GraphError::Conflict { .. })));
    let homeless = build(|builder, _, _| {
        builder.vertex(Vertex {
            node: Some(NodeId([7; 16])),
            ..device(3, None)
        });
    });
    assert!(matches!(homeless, Err(GraphError::UnknownNode { .. })));
    let nodes = build(|builder, _, _| {
        for name in ["a", "b"] {
            builder.node(Node {
                id: NodeId([1; 16]),
                name: name.into(),
                memory_bytes: 0,
            });
        }
    });
    assert!(matches!(nodes, Err(GraphError::Conflict { .. })));
    let empty = build(|builder, _, _| {
        builder.capacity_group(CapacityGroup {
            name: "card".into(),
            bytes_per_second: 0,
        });
    });
    assert!(matches!(empty, Err(GraphError::CapacityGroup { .. })));
    let switches = build(|builder, _, _| {
        for reduces in [false, true] {
            let kind = VertexKind::Switch(Switch { reduces });
            builder.vertex(Vertex {
                name: "leaf".into(),
                node: None,
                kind,
            });
        }
    });
    assert!(matches!(switches, Err(GraphError::Conflict { .. })));
}

#[test]
fn parallel_links_are_kept_the_best_first() {
    let graph = build(|builder, a, b| {
        builder.link(NewLink {
            bytes_per_second: 5,
            ..link(a, b)
        });
        builder.link(link(b, a));
        builder.link(NewLink {
            bytes_per_second: 20,
            ..link(a, b)
        });
        builder.link(NewLink {
            kind: "other".into(),
            ..link(a, b)
        });
    })
    .unwrap();
    let seen: Vec<_> = (graph.links().iter())
        .map(|link| (&*link.kind, link.bytes_per_second, link.index))
        .collect();
    assert_eq!(
        seen,
        [
            ("other", 10, 0),
            ("shm", 20, 0),
            ("shm", 5, 1),
            ("shm", 10, 0)
        ]
    );
    let (a, b) = (graph.rank(0).unwrap(), graph.rank(1).unwrap());
    assert_eq!(graph.links_between(a, b).count(), 3);
    assert_eq!(graph.links_from(b).count(), 1);
    assert_eq!(graph.rank(2), None);
}

/// The same on every host: if this changes, hosts of two versions no longer agree.
#[test]
fn the_hash_is_what_it_always_was() {
    let graph = build(|builder, a, b| {
        builder.node(Node {
            id: NodeId([3; 16]),
            name: "alpha".into(),
            memory_bytes: 1 << 40,
        });
        let group = builder.capacity_group(CapacityGroup {
            name: "card".into(),
            bytes_per_second: 7,
        });
        builder.link(NewLink {
            shared: Some(group),
            ..link(a, b)
        });
        builder.link(NewLink {
            source: Source::Overlay("file:3".into()),
            ..link(b, a)
        });
    })
    .unwrap();
    assert_eq!(
        graph.hash().to_string(),
        "320e8143be66229d928d656689d95650fa79036e054fbd0d79c96a7839929504"
    );
}

proptest! {
    #[test]
    fn order_does_not_matter(parts in random::parts(), seed in any::<u64>()) {
        let straight = parts.build(|len| (0..len).collect());
        // A permutation of its own for each length.
        let shuffled = parts.build(|len| {
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by_key(|place| (*place as u64 + 1).wrapping_mul(seed | 1).rotate_left(23));
            order
        });
        prop_assert_eq!(&straight, &shuffled);
        prop_assert_eq!(straight.hash(), shuffled.hash());
    }

    #[test]
    fn a_graph_taken_apart_is_the_same_again(graph in random::graph()) {
        let again = Builder::from(&graph).build().unwrap();
        prop_assert_eq!(graph.hash(), again.hash());
        prop_assert_eq!(graph, again);
    }

    #[test]
    fn a_figure_changed_is_a_hash_changed(parts in random::parts(), place in any::<prop::sample::Index>()) {
        prop_assume!(!parts.links.is_empty());
        let mut other = parts.clone();
        let link = &mut other.links[place.index(parts.links.len())].3;
        link.latency_ns += 1;
        let build = |parts: &random::Parts| parts.build(|len| (0..len).collect()).hash();
        prop_assert_ne!(build(&parts), build(&other));
    }
}
