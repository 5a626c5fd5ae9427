//! Merging reports, and overlays on the result.

use proptest::prelude::*;
use unisono_graph::{
    DeviceId, Endpoint, GraphError, LinkReport, LinkType, NodeReport, Overlay, OverlayAction,
    Scope, Source, VertexKind, Way, draw, islands, merge,
};

use crate::samples::{BOX, Machine, cores, device, fleet, link, reports};

#[test]
fn ranks_that_share_a_device_are_a_vertex_each() {
    let graph = cores(4);
    assert_eq!(graph.ranks().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let shm = graph
        .links()
        .iter()
        .filter(|link| link.kind == "shm")
        .count();
    let tcp = graph
        .links()
        .iter()
        .filter(|link| link.kind == "tcp")
        .count();
    assert_eq!((shm, tcp), (12, 8), "each to each, and each up and down");
    let best = &graph.ways(0, 3)[0];
    assert_eq!((&*best.kind, best.hops, best.latency_ns), ("shm", 1, 200));
    let network = &graph.ways(0, 3)[1];
    assert_eq!(
        (&*network.kind, network.hops, network.latency_ns),
        ("tcp", 2, 9_000)
    );
    assert!(network.link_type == LinkType::Posted);
}

#[test]
fn a_fleet_is_three_islands_on_one_network() {
    let graph = merge(&fleet()).unwrap();
    let found: Vec<_> = islands(&graph)
        .into_iter()
        .map(|island| (island.plugin, island.ranks))
        .collect();
    let expected = [
        ("accel", (0..8).collect()),
        ("npu", (8..12).collect()),
        ("host", vec![12, 13]),
    ];
    assert_eq!(
        found,
        expected.map(|(plugin, ranks)| (plugin.to_owned(), ranks))
    );
    assert_eq!(graph.nodes().len(), 3);
    assert_eq!(graph.ways(0, 13).len(), 1, "the network alone");
    // One card each way on each node.
    assert_eq!(graph.capacity_groups().len(), 6);
    let numa = graph
        .vertices()
        .iter()
        .filter(|vertex| matches!(vertex.kind, VertexKind::Numa(_)))
        .count();
    assert_eq!(
        numa,
        2 + 4 + 1,
        "the one rank that saw the machine is enough"
    );
}

#[test]
fn where_reports_differ_the_rule_is_fixed() {
    let mut reports = reports(&[Machine { devices: 2, ..BOX }]);
    reports[0].plugins[0].devices[0].name = "as rank 0 says".into();
    reports[1].plugins[0].links[0].bytes_per_second = 5;
    reports[1].plugins[0].links[0].latency_ns = 900;
    let graph = merge(&reports).unwrap();
    assert_eq!(graph.vertices()[0].name, "as rank 0 says");
    for link in graph.links().iter().filter(|link| link.kind == "fabric") {
        assert_eq!(
            (link.bytes_per_second, link.latency_ns),
            (5, 900),
            "the worse of both, in both directions"
        );
    }
}

#[test]
fn a_link_needs_both_ends() {
    let mut reports = reports(&[Machine { devices: 3, ..BOX }]);
    reports[2].plugins[0].links.clear();
    let graph = merge(&reports).unwrap();
    let way = |from, to| graph.ways(from, to)[0].kind.clone();
    assert_eq!([way(0, 1), way(0, 2), way(2, 1)], ["fabric", "tcp", "tcp"]);
}

#[test]
fn whoever_moves_the_bytes_faster_counts() {
    let mut reports = reports(&[Machine { devices: 2, ..BOX }]);
    for (report, read) in reports.iter_mut().zip([50, 60]) {
        let pair = |from, to, read_bytes_per_second| LinkReport {
            from,
            to,
            read_bytes_per_second,
            ..link("cable", Scope::Pair, 40, 10)
        };
        let (a, b) = (device(0, 0), device(0, 1));
        // Twice in parallel, as both ranks report; and back, where nobody reads faster.
        report.plugins[0].links = vec![pair(a, b, read), pair(a, b, read), pair(b, a, 40)];
    }
    let graph = merge(&reports).unwrap();
    let way = |from, to| graph.ways(from, to)[0].clone();
    let rates = |way: Way| (way.bytes_per_second, way.written_bytes_per_second);
    assert_eq!(rates(way(0, 1)), (100, Some(80)));
    assert_eq!(rates(way(1, 0)), (40, None));
    assert_eq!(graph.ways_to_each(0, &[1])[0][0], way(0, 1));
    let table = draw::table(&graph);
    assert!(table.contains("50 B/s read, 40 B/s written"), "{table}");
}

#[test]
fn pairs_join_the_devices_named_used_or_not() {
    let pair = |from, to| LinkReport {
        from,
        to,
        ..link("cable", Scope::Pair, 40, 10)
    };
    let mut reports = reports(&[Machine { devices: 3, ..BOX }]);
    for report in &mut reports {
        report.plugins[0].links = vec![
            pair(device(0, 0), device(0, 1)),
            pair(device(0, 0), device(0, 1)),
            pair(device(0, 1), device(0, 2)),
        ];
    }
    let graph = merge(&reports).unwrap();
    let cables: Vec<_> = graph
        .links()
        .iter()
        .filter(|link| link.kind == "cable")
        .map(|link| link.index)
        .collect();
    assert_eq!(
        cables,
        [0, 1, 0],
        "two in parallel, however many ranks report them"
    );
    assert_eq!(graph.ways(0, 1)[0].bytes_per_second, 80);
    reports.pop();
    let graph = merge(&reports).unwrap();
    let unused = graph
        .vertices()
        .iter()
        .filter(|v| v.device().is_some() && v.rank().is_none())
        .count();
    assert_eq!((graph.rank_count(), unused), (2, 1));
    assert_eq!(
        graph
            .links()
            .iter()
            .filter(|link| link.kind == "cable")
            .count(),
        3
    );
    reports[0].plugins[0].links[0].to = DeviceId([99; 16]);
    assert!(matches!(
        merge(&reports),
        Err(GraphError::UnknownDevice { rank: 0, .. })
    ));
}

#[test]
fn a_look_at_a_machine_joins_all_its_devices() {
    let mut report = reports(&[BOX]).swap_remove(0);
    report.uses = None;
    let graph = merge(&[report]).unwrap();
    assert_eq!(graph.rank_count(), 0);
    assert_eq!(
        graph
            .links()
            .iter()
            .filter(|link| link.kind == "fabric")
            .count(),
        56
    );
}

#[test]
fn reports_that_contradict_themselves_are_refused() {
    let mut twice = reports(&[BOX]);
    twice[3].rank = 0;
    assert!(matches!(
        merge(&twice),
        Err(GraphError::DuplicateReport { rank: 0 })
    ));
    let mut unknown = reports(&[BOX]);
    unknown[3].uses = Some(("accel".into(), DeviceId([9; 16])));
    assert!(matches!(
        merge(&unknown),
        Err(GraphError::UnknownDevice {
            rank: 3,
            field: "uses",
            ..
        })
    ));
    let mut silent = reports(&[BOX]);
    silent
        .iter_mut()
        .for_each(|report| report.plugins[0].links[0].bytes_per_second = 0);
    assert!(matches!(merge(&silent), Err(GraphError::Bandwidth { .. })));
    assert_eq!(merge(&[]).unwrap().vertices(), []);
}

fn overlay(to: Endpoint, action: OverlayAction) -> Overlay {
    let (from, kind) = (Endpoint::Rank(0), "fabric".to_owned());
    Overlay {
        origin: "cluster.yaml:12".into(),
        from,
        to,
        both_directions: false,
        kind,
        action,
    }
}

#[test]
fn overlays_have_the_last_word_and_are_marked() {
    let graph = merge(&reports(&[BOX])).unwrap();
    let slower = OverlayAction::Adjust {
        bytes_per_second: Some(7),
        latency_ns: None,
        shared: None,
    };
    let changed = graph
        .overlay(&[overlay(Endpoint::Rank(1), slower)])
        .unwrap();
    assert_ne!(graph.hash(), changed.hash());
    let link = |from, to| {
        let (from, to) = (changed.rank(from).unwrap(), changed.rank(to).unwrap());
        changed.links_between(from, to).next().unwrap().1.clone()
    };
    let there = link(0, 1);
    assert_eq!((there.bytes_per_second, there.latency_ns), (7, 700));
    assert_eq!(there.source, Source::Overlay("cluster.yaml:12".into()));
    assert_eq!(link(1, 0).source, Source::Plugin, "one direction was meant");

    let cut = Overlay {
        both_directions: true,
        ..overlay(Endpoint::Rank(1), OverlayAction::Remove)
    };
    let cut = graph.overlay(&[cut]).unwrap();
    assert_eq!(graph.links().len() - cut.links().len(), 2);
}

#[test]
fn links_of_an_overlay_share_a_capacity_each_way() {
    let graph = merge(&reports(&[BOX])).unwrap();
    let port = |rank, bytes_per_second| {
        let set = OverlayAction::Set {
            plugin: "roce".into(),
            link_type: LinkType::Posted,
            bytes_per_second,
            latency_ns: 2_000,
            shared: Some("card".into()),
        };
        Overlay {
            both_directions: true,
            kind: "roce".into(),
            ..overlay(Endpoint::Rank(rank), set)
        }
    };
    let changed = graph.overlay(&[port(1, 500), port(2, 500)]).unwrap();
    let shared = |from, to| {
        let (from, to) = (changed.rank(from).unwrap(), changed.rank(to).unwrap());
        let mut links = changed.links_between(from, to);
        let (_, link) = links.find(|(_, link)| link.kind == "roce").unwrap();
        let group = changed.capacity_group(link.shared.unwrap());
        (group.name.clone(), group.bytes_per_second)
    };
    assert_eq!(shared(0, 1), ("card".to_owned(), 500));
    assert_eq!(shared(0, 2), shared(0, 1));
    assert_eq!(shared(1, 0), ("card/back".to_owned(), 500));
    assert_eq!(shared(2, 0), shared(1, 0));

    // A link that a plugin reports joins in.
    let adjust = OverlayAction::Adjust {
        bytes_per_second: Some(500),
        latency_ns: None,
        shared: Some("card".into()),
    };
    let joined = graph
        .overlay(&[port(1, 500), overlay(Endpoint::Rank(2), adjust)])
        .unwrap();
    let (from, to) = (joined.rank(0).unwrap(), joined.rank(2).unwrap());
    let (_, link) = joined.links_between(from, to).next().unwrap();
    assert_eq!(joined.capacity_group(link.shared.unwrap()).name, "card");

    let error = graph.overlay(&[port(1, 500), port(2, 400)]).unwrap_err();
    assert!(error.to_string().contains("500"), "{error}");
}

#[test]
fn overlays_that_miss_say_so() {
    let graph = merge(&reports(&[BOX])).unwrap();
    let fail = |to, kind: &str, action| {
        let overlay = Overlay {
            kind: kind.into(),
            ..overlay(to, action)
        };
        graph.overlay(&[overlay]).unwrap_err()
    };
    let named = |name: &str| Endpoint::Named {
        host: None,
        name: name.into(),
    };
    assert!(matches!(
        fail(Endpoint::Rank(99), "fabric", OverlayAction::Remove),
        GraphError::Endpoint { found: 0, .. }
    ));
    assert!(matches!(
        fail(named("Model X"), "fabric", OverlayAction::Remove),
        GraphError::Endpoint { found: 8, .. }
    ));
    let text = fail(Endpoint::Rank(1), "none", OverlayAction::Remove).to_string();
    assert_eq!(
        text,
        "cluster.yaml:12: there is no link rank 0 -> rank 1 (none) to remove"
    );
    let same = OverlayAction::Set {
        plugin: "x".into(),
        link_type: LinkType::Posted,
        bytes_per_second: 1,
        latency_ns: 0,
        shared: None,
    };
    assert!(matches!(
        fail(Endpoint::Rank(0), "x", same),
        GraphError::SelfLink { .. }
    ));
}

proptest! {
    #[test]
    fn the_order_of_reports_does_not_matter(order in Just((0..14).collect::<Vec<usize>>()).prop_shuffle()) {
        let reports = fleet();
        let shuffled: Vec<NodeReport> = order.iter().map(|place| reports[*place].clone()).collect();
        prop_assert_eq!(merge(&reports).unwrap().hash(), merge(&shuffled).unwrap().hash());
    }
}
