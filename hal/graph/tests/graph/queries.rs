//! Routes against a search that tries everything; islands and symmetry.

use proptest::prelude::*;
use unisono_graph::{GraphError, LinkGraph, Symmetry, VertexId, islands, merge};

use crate::random;
use crate::samples::{BOX, Machine, fleet, known_answers, reports};

/// What decides between routes, the lowest first: relays, links, narrowness, latency.
type Cost = (u32, usize, std::cmp::Reverse<u64>, u64);

/// The best cost of all simple paths, by trying each.
fn try_all(
    graph: &LinkGraph,
    at: VertexId,
    to: VertexId,
    seen: &mut Vec<VertexId>,
    so_far: Cost,
    best: &mut Option<Cost>,
) {
    if at == to {
        *best = Some(best.map_or(so_far, |best| best.min(so_far)));
        return;
    }
    let (relays, links, width, latency) = so_far;
    let relays = relays + u32::from(seen.len() > 1 && graph.vertex(at).device().is_some());
    for (_, link) in graph.links_from(at).filter(|(_, link)| link.from == at) {
        if !seen.contains(&link.to) {
            seen.push(link.to);
            let width = std::cmp::Reverse(width.0.min(link.bytes_per_second));
            try_all(
                graph,
                link.to,
                to,
                seen,
                (relays, links + 1, width, latency + link.latency_ns),
                best,
            );
            seen.pop();
        }
    }
}

proptest! {
    #[test]
    fn routes_are_the_best_there_are(graph in random::graph()) {
        for (from, _) in graph.vertex_ids() {
            for (to, _) in graph.vertex_ids().filter(|(to, _)| *to != from) {
                let mut best = None;
                try_all(&graph, from, to, &mut vec![from], (0, 0, std::cmp::Reverse(u64::MAX), 0), &mut best);
                let route = graph.route_between(from, to);
                let cost = route.as_ref().map(|route| {
                    (route.relays, route.links.len(), std::cmp::Reverse(route.bytes_per_second), route.latency_ns)
                });
                prop_assert_eq!(cost, best);
                let Some(route) = route else { continue };
                let links: Vec<_> = route.links.iter().map(|id| graph.link(*id)).collect();
                prop_assert!(links[0].from == from && links[links.len() - 1].to == to);
                prop_assert!(links.windows(2).all(|pair| pair[0].to == pair[1].from));
            }
        }
    }

    #[test]
    fn each_rank_is_on_one_island(graph in random::graph()) {
        let mut ranks: Vec<u32> = islands(&graph).into_iter().flat_map(|island| island.ranks).collect();
        ranks.sort_unstable();
        prop_assert_eq!(ranks, graph.ranks().collect::<Vec<_>>());
    }
}

#[test]
fn a_route_prefers_switches_to_devices() {
    let text = r#"{"nodes": [{"id": 0, "compute": true}, {"id": 1, "compute": true}, {"id": 2, "compute": true},
            {"id": "a", "compute": false}, {"id": "b", "compute": false}],
        "edges": [{"src": 0, "dst": 1, "GBps": 90}, {"src": 1, "dst": 2, "GBps": 90},
            {"src": 0, "dst": "a", "GBps": 5, "latency_us": 1}, {"src": "a", "dst": "b", "GBps": 4},
            {"src": "b", "dst": 2, "GBps": 9}]}"#;
    let graph = LinkGraph::from_json(text).unwrap();
    let route = graph.route(0, 2).unwrap();
    assert_eq!(
        (
            route.relays,
            route.links.len(),
            route.bytes_per_second,
            route.latency_ns
        ),
        (0, 3, 4_000_000_000, 1_000)
    );
    assert_eq!(graph.route(2, 0), None);
    assert_eq!(graph.route(0, 0), None);
    assert_eq!(graph.route(0, 7), None);
    let way = &graph.ways(0, 2)[..];
    assert!(
        matches!(way, [way] if way.hops == 3 && way.bytes_per_second == 4_000_000_000),
        "{way:?}"
    );
}

#[test]
fn a_subset_keeps_its_ranks_and_what_forwards() {
    let graph = merge(&fleet()).unwrap();
    let subset = graph.subset(&[13, 0, 1]).unwrap();
    assert_eq!(subset.ranks().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(subset.node_of_rank(0), graph.node_of_rank(13));
    assert_eq!(subset.ways(1, 2), graph.ways(0, 1));
    assert_eq!(subset.ways(0, 2), graph.ways(13, 1));
    let same = graph.subset(&graph.ranks().collect::<Vec<_>>()).unwrap();
    assert_eq!(same.hash(), graph.hash());
    assert!(matches!(
        graph.subset(&[0, 99]),
        Err(GraphError::UnknownRank { rank: 99 })
    ));
    assert!(matches!(
        graph.subset(&[5, 5]),
        Err(GraphError::DuplicateRank { rank: 1, .. })
    ));
}

#[test]
fn symmetry_tells_alike_from_mirrored_from_uneven() {
    let graph = merge(&reports(&[BOX])).unwrap();
    assert_eq!(islands(&graph)[0].symmetry(&graph), Symmetry::Uniform);
    let fleet = merge(&fleet()).unwrap();
    assert_eq!(
        fleet.symmetry(&fleet.ranks().collect::<Vec<_>>()),
        Symmetry::Mirrored
    );
    let one_way = r#"{"nodes": [{"id": 0, "compute": true}, {"id": 1, "compute": true}],
        "edges": [{"src": 0, "dst": 1, "GBps": 2}]}"#;
    assert_eq!(
        LinkGraph::from_json(one_way).unwrap().symmetry(&[0, 1]),
        Symmetry::Uneven
    );
    let lonely = merge(&reports(&[Machine { devices: 1, ..BOX }])).unwrap();
    assert_eq!(islands(&lonely)[0].symmetry(&lonely), Symmetry::Uniform);
}

#[test]
fn known_graphs_have_their_symmetries() {
    let Some(answers) = known_answers() else {
        return;
    };
    let symmetry = |name: &str| {
        let graphs = answers["graphs"].as_array().unwrap();
        let graph = &graphs.iter().find(|graph| graph["name"] == name).unwrap()["graph"];
        let graph = LinkGraph::from_json(&graph.to_string()).unwrap();
        graph.symmetry(&graph.ranks().collect::<Vec<_>>())
    };
    assert_eq!(symmetry("mi300x_mesh8_64"), Symmetry::Uniform);
    assert_eq!(symmetry("mi300x_mesh8_link01_down"), Symmetry::Mirrored);
    assert_eq!(symmetry("dgx_h100_nvswitch8_450"), Symmetry::Uniform);
    assert_eq!(symmetry("asym4"), Symmetry::Uneven);
}

proptest! {
    #[test]
    fn ways_to_each_are_the_ways(mut parts in random::parts()) {
        // Few classes of links, so that ways lead through switches.
        for (.., link) in &mut parts.links {
            link.kind = "a".into();
            link.rail = 0;
        }
        let graph = parts.build(|count| (0..count).collect());
        let ranks: Vec<u32> = graph.ranks().chain([1_000_000]).collect();
        for &from in &ranks {
            let all = graph.ways_to_each(from, &ranks);
            for (&to, ways) in ranks.iter().zip(&all).filter(|(to, _)| **to != from) {
                prop_assert_eq!(ways, &graph.ways(from, to), "{} to {}", from, to);
            }
        }
    }
}
