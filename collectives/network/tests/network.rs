//! From graphs to networks, and from networks to smaller ones.

use proptest::prelude::*;
use unisono_network::{Builder, Edge, Network, NetworkError, Vertex};

const PLANNING: &str = r#"{
  "nodes": [{"id": "sw", "compute": false, "reduces": true}, {"id": 7, "compute": true},
            {"id": 3, "compute": true}],
  "edges": [{"src": 7, "dst": "sw", "GBps": 50.0, "latency_us": 1.0}, {"src": "sw", "dst": 7, "GBps": 25.0},
            {"src": "sw", "dst": 3, "GBps": 12.5}, {"src": 3, "dst": 7, "GBps": 1.0}]
}"#;

#[test]
fn the_planning_format_becomes_ranks_first_then_switches() {
    let network = Network::from_json(PLANNING).unwrap();
    assert_eq!(network.ranks(), 2);
    assert_eq!(
        network.vertices(),
        [
            Vertex::Compute { rank: 0 },
            Vertex::Compute { rank: 1 },
            Vertex::Switch { reduces: true }
        ]
    );
    assert!(network.reduces(2) && !network.reduces(0));
    assert_eq!(
        (network.vertex_of(1), network.rank_of(1), network.rank_of(2)),
        (1, Some(1), None)
    );
    let out: Vec<&Edge> = network
        .out_edges(0)
        .iter()
        .map(|id| network.edge(*id))
        .collect();
    let [edge] = out[..] else { panic!("{out:?}") };
    assert_eq!(
        (edge.to, edge.bytes_per_second, edge.latency_ns),
        (2, 50_000_000_000, 1000)
    );
    assert_eq!(network.in_edges(0).len(), 2);
    assert!((0..4).all(|edge| network.link_of(edge).is_some()));
}

#[test]
fn bad_texts_and_empty_graphs_are_errors_that_say_so() {
    let error = Network::from_json("{").unwrap_err();
    assert!(error.to_string().starts_with("line 1"), "{error}");
    let error =
        Network::from_json(r#"{"nodes": [{"id": 0, "compute": false}], "edges": []}"#).unwrap_err();
    assert_eq!(error, NetworkError::NoRanks);
}

#[test]
fn a_builder_refuses_what_cannot_be() {
    let built = |fill: fn(&mut Builder)| {
        let mut builder = Builder::new(2);
        fill(&mut builder);
        builder.build().unwrap_err()
    };
    assert_eq!(Builder::new(0).build().unwrap_err(), NetworkError::NoRanks);
    let error = built(|builder| {
        builder.edge(0, 2, 1, 0);
    });
    assert_eq!(
        error,
        NetworkError::UnknownVertex {
            edge: 0,
            vertex: 2,
            vertices: 2
        }
    );
    let error = built(|builder| {
        builder.edge(1, 1, 1, 0);
    });
    assert_eq!(error, NetworkError::SelfLoop { edge: 0, vertex: 1 });
    for wide in [0, Network::MAX_CAPACITY + 1] {
        let mut builder = Builder::new(2);
        builder.edge(0, 1, wide, 0);
        let error = builder.build().unwrap_err();
        assert!(
            matches!(error, NetworkError::Capacity { bytes_per_second, .. } if bytes_per_second == wide)
        );
    }
}

#[test]
fn devices_outside_vanish_with_their_edges_and_switches_stay() {
    let mut builder = Builder::new(4);
    let switch = builder.switch(false);
    let mut shared = Vec::new();
    for rank in 0..4 {
        shared.push(builder.duplex(rank, switch, 10, 5)[0]);
    }
    builder.edge(1, 3, 7, 0);
    builder.group(20, &shared);
    let network = builder.build().unwrap();
    let some = network.restrict(&[3, 1]).unwrap();
    assert_eq!(
        (some.ranks(), some.vertices().len(), some.edges().len()),
        (2, 3, 5)
    );
    // Rank 1 of four is rank 1 of two, rank 3 is rank 0.
    assert!(
        some.edges()
            .iter()
            .any(|edge| (edge.from, edge.to, edge.bytes_per_second) == (1, 0, 7))
    );
    assert_eq!((some.groups().len(), some.groups()[0].edges.len()), (1, 2));
    assert_eq!(some.groups()[0].bytes_per_second, 20);
    assert_eq!(network.restrict(&[]).unwrap_err(), NetworkError::NoRanks);
    assert_eq!(
        network.restrict(&[0, 0]).unwrap_err(),
        NetworkError::DuplicateRank { rank: 0 }
    );
    assert_eq!(
        network.restrict(&[4]).unwrap_err(),
        NetworkError::UnknownRank { rank: 4, ranks: 4 }
    );
}

proptest! {
    #[test]
    fn adjacency_holds_every_edge_once_and_turning_twice_changes_nothing(
        edges in prop::collection::vec((0..6u32, 0..6u32, 1..9u64), 0..30),
    ) {
        let mut builder = Builder::new(4);
        builder.switch(false);
        builder.switch(true);
        for (from, to, wide) in edges.into_iter().filter(|(from, to, _)| from != to) {
            builder.edge(from, to, wide, 1);
        }
        let network = builder.build().unwrap();
        let mut seen = vec![[0; 2]; network.edges().len()];
        for vertex in 0..6 {
            for &edge in network.out_edges(vertex) {
                prop_assert_eq!(network.edge(edge).from, vertex);
                seen[edge as usize][0] += 1;
            }
            for &edge in network.in_edges(vertex) {
                prop_assert_eq!(network.edge(edge).to, vertex);
                seen[edge as usize][1] += 1;
            }
        }
        prop_assert!(seen.iter().all(|count| *count == [1, 1]));
        let turned = network.reversed();
        prop_assert_eq!(turned.out_edges(2), network.in_edges(2));
        prop_assert_eq!(&turned.reversed(), &network);
        prop_assert_eq!(&network.restrict(&[0, 1, 2, 3]).unwrap(), &network);
    }
}
