//! Drawings: their structure, and, where `UNISONO_DRAWINGS` names a folder, the files to look at.

use crate::samples::{BOX, Machine, cores, fleet, known_answers, reports};
use unisono_graph::{Endpoint, LinkGraph, LinkType, Overlay, OverlayAction, draw, merge};

/// Everything that is drawn here, by name.
fn drawn() -> Vec<(String, LinkGraph)> {
    let one = |machine: Machine| merge(&reports(&[machine])).unwrap();
    let pair = Overlay {
        origin: "cluster.yaml:12".into(),
        from: Endpoint::Rank(0),
        to: Endpoint::Rank(13),
        both_directions: true,
        kind: "cable".into(),
        action: OverlayAction::Set {
            plugin: "roce".into(),
            link_type: LinkType::Posted,
            bytes_per_second: 25_000_000_000,
            latency_ns: 2_000,
            shared: None,
        },
    };
    let mut all = vec![
        ("box8".to_owned(), one(BOX)),
        (
            "pair".to_owned(),
            one(Machine {
                devices: 2,
                numa: 1,
                ..BOX
            }),
        ),
        ("four".to_owned(), one(Machine { devices: 4, ..BOX })),
        ("sixteen".to_owned(), one(Machine { devices: 16, ..BOX })),
        (
            "fleet".to_owned(),
            merge(&fleet()).unwrap().overlay(&[pair]).unwrap(),
        ),
        ("cores4".to_owned(), cores(4)),
        ("cores1".to_owned(), cores(1)),
        (
            "hosts4".to_owned(),
            merge(&reports(&[0, 1, 2, 3].map(|number| Machine {
                number,
                name: ["alpha", "beta", "gamma", "delta"][usize::from(number)],
                devices: 4,
                ..BOX
            })))
            .unwrap(),
        ),
        ("empty".to_owned(), merge(&[]).unwrap()),
    ];
    let answers = known_answers();
    for graph in answers
        .iter()
        .flat_map(|answers| answers["graphs"].as_array().unwrap())
    {
        let name = graph["name"].as_str().unwrap().to_owned();
        all.push((
            name,
            LinkGraph::from_json(&graph["graph"].to_string()).unwrap(),
        ));
    }
    all
}

#[test]
fn files_to_look_at() {
    let Some(folder) = std::env::var_os("UNISONO_DRAWINGS") else {
        println!("skipped: UNISONO_DRAWINGS names no folder");
        return;
    };
    let folder = std::path::Path::new(&folder);
    for (name, graph) in drawn() {
        std::fs::write(folder.join(format!("{name}.svg")), draw::svg(&graph)).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), draw::table(&graph)).unwrap();
        std::fs::write(folder.join(format!("{name}.dot")), draw::dot(&graph)).unwrap();
    }
}

/// A box of the drawing: left, top, right, bottom.
type Box4 = [f64; 4];

fn boxes(document: &roxmltree::Document<'_>, class: &str) -> Vec<Box4> {
    let number = |node: &roxmltree::Node<'_, '_>, name| {
        node.attribute(name).unwrap().parse::<f64>().unwrap()
    };
    (document.descendants())
        .filter(|node| node.has_tag_name("rect") || node.tag_name().name() == "rect")
        .filter(|node| {
            node.attribute("class")
                .is_some_and(|classes| classes.split(' ').any(|c| c == class))
        })
        .map(|node| {
            let (x, y) = (number(&node, "x"), number(&node, "y"));
            [
                x,
                y,
                x + number(&node, "width"),
                y + number(&node, "height"),
            ]
        })
        .collect()
}

fn overlap(a: &Box4, b: &Box4) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

fn inside(inner: &Box4, outer: &Box4) -> bool {
    inner[0] >= outer[0] && inner[1] >= outer[1] && inner[2] <= outer[2] && inner[3] <= outer[3]
}

/// What must hold of every drawing.
fn check(name: &str, graph: &LinkGraph) {
    let svg = draw::svg(graph);
    assert_eq!(
        svg,
        draw::svg(graph),
        "{name}: the same graph gives the same drawing"
    );
    let document =
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}\n{svg}"));
    let root = document.root_element();
    let size: Vec<f64> = root
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .map(|n| n.parse().unwrap())
        .collect();
    let canvas = [size[0], size[1], size[2], size[3]];
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("<desc id=\"description\">"));

    let (panels, cards, hubs) = (
        boxes(&document, "panel"),
        boxes(&document, "card"),
        boxes(&document, "hub"),
    );
    let devices = graph
        .vertices()
        .iter()
        .filter(|vertex| vertex.device().is_some())
        .count();
    assert_eq!(cards.len(), devices, "{name}: a card for each device");
    assert!(
        cards
            .iter()
            .all(|card| panels.iter().any(|panel| inside(card, panel))),
        "{name}: cards in panels"
    );
    let solid: Vec<Box4> = [
        &cards[..],
        &hubs,
        &boxes(&document, "label"),
        &boxes(&document, "chip"),
    ]
    .concat();
    for group in [&panels, &solid] {
        for (place, one) in group.iter().enumerate() {
            assert!(inside(one, &canvas), "{name}: {one:?} leaves the canvas");
            let other = group[place + 1..].iter().find(|other| overlap(one, other));
            assert!(other.is_none(), "{name}: {one:?} overlaps {other:?}");
        }
    }
    // Every number that a line is made of is one.
    let paths = document
        .descendants()
        .filter_map(|node| node.attribute("d"));
    assert!(
        paths
            .clone()
            .all(|path| !path.contains("NaN") && !path.contains("inf")),
        "{name}: lines of numbers"
    );
    assert!(graph.links().is_empty() || paths.count() > 0);
}

#[test]
fn nothing_overlaps_and_everything_is_there() {
    for (name, graph) in drawn() {
        check(&name, &graph);
    }
    for hosts in 1..=4u8 {
        for devices in [1, 2, 3, 4] {
            for numa in [1, 2, 3, 4] {
                let machine = |number| Machine {
                    number,
                    devices,
                    numa,
                    ..BOX
                };
                let graph = merge(&reports(&(0..hosts).map(machine).collect::<Vec<_>>())).unwrap();
                check(
                    &format!("{hosts} hosts of {devices} devices on {numa} NUMA nodes"),
                    &graph,
                );
            }
        }
    }
    for devices in 5..=16 {
        check(
            &format!("{devices} devices"),
            &merge(&reports(&[Machine { devices, ..BOX }])).unwrap(),
        );
    }
}

#[test]
fn few_links_bear_a_label_each() {
    let edges = [
        (0, 1, 40),
        (1, 0, 10),
        (1, 2, 20),
        (2, 1, 20),
        (2, 3, 41),
        (3, 2, 11),
        (0, 3, 30),
        (3, 0, 12),
        (0, 2, 5),
    ];
    let nodes = (0..4)
        .map(|id| format!("{{\"id\": {id}, \"compute\": true}}"))
        .collect::<Vec<_>>()
        .join(",");
    let edges = edges
        .map(|(src, dst, speed)| format!("{{\"src\": {src}, \"dst\": {dst}, \"GBps\": {speed}}}"))
        .join(",");
    let graph =
        LinkGraph::from_json(&format!("{{\"nodes\": [{nodes}], \"edges\": [{edges}]}}")).unwrap();
    check("asymmetric", &graph);
    let svg = draw::svg(&graph);
    for speed in [40, 10, 20, 41, 11, 30, 12, 5] {
        let label = format!("class=\"text middle\">{speed} GB/s</text>");
        assert!(svg.contains(&label), "{speed} GB/s is not labelled");
    }
}

#[test]
fn every_trunk_bears_its_label() {
    let texts = |graph: &LinkGraph| -> Vec<String> {
        let svg = draw::svg(graph);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts = document
            .descendants()
            .filter(|node| node.tag_name().name() == "text");
        texts
            .filter_map(|node| node.text().map(str::to_owned))
            .collect()
    };
    let of_kind =
        |texts: &[String], text: &str| texts.iter().filter(|found| *found == text).count();
    let all = drawn();
    let find = |name: &str| &all.iter().find(|(found, _)| found == name).unwrap().1;
    assert_eq!(of_kind(&texts(find("hosts4")), "4 × 12.5 GB/s · 7.5 µs"), 4);
    let fleet = texts(find("fleet"));
    for label in [
        "8 × 12.5 GB/s · 7.5 µs",
        "4 × 12.5 GB/s · 7.5 µs",
        "2 × 12.5 GB/s · 7.5 µs",
    ] {
        assert_eq!(of_kind(&fleet, label), 1, "{label}");
    }
    assert_eq!(
        of_kind(
            &fleet,
            "rank 0 ↔ rank 13 · 25 GB/s · 2 µs · cluster.yaml:12"
        ),
        1
    );
    assert_eq!(
        of_kind(&fleet, "fabric · 64 GB/s · 700 ns · each to each"),
        1
    );
}

#[test]
fn names_cannot_break_a_drawing() {
    let name = "</text><script>alert('1')</script>&\"\\ \u{202e}\u{ffff}";
    let mut reports = reports(&[Machine { devices: 2, ..BOX }]);
    for report in &mut reports {
        report.host = name.into();
        report.plugins[0]
            .devices
            .iter_mut()
            .for_each(|device| device.name = name.into());
        report.plugins[0].links[0].kind = name.into();
    }
    let graph = merge(&reports).unwrap();
    check("bad names", &graph);
    assert!(!draw::svg(&graph).contains("<script"));
    let dot = draw::dot(&graph);
    assert!(dot.contains(r#"&\"\\ "#), "{dot}");
    assert!(
        dot.lines().all(|line| line
            .replace("\\\\", "")
            .replace("\\\"", "")
            .matches('"')
            .count()
            % 2
            == 0),
        "{dot}"
    );
}

#[test]
fn tables_fit_the_screen_and_say_it_all() {
    for (name, graph) in drawn() {
        let table = draw::table(&graph);
        assert_eq!(table, draw::table(&graph));
        let wide = table
            .lines()
            .find(|line| line.chars().count() > 130 || line.ends_with(' '));
        assert_eq!(wide, None, "{name}");
    }
    let graph = merge(&reports(&[Machine { devices: 2, ..BOX }])).unwrap();
    let table = draw::table(&graph);
    let body = table.split_once('\n').unwrap().1;
    assert_eq!(
        body,
        "
Node alpha  2 sockets, 2 NUMA nodes, 64 cores, 512 GiB
  rank  device   plugin  class  numa  pci           memory
     0  Model X  accel   gpu       0  0000:10:00.0  80 GiB
     1  Model X  accel   gpu       1  0000:11:00.0  80 GiB
  nics: docker0 (virtual, down), eth0 12.5 GB/s

Switches: tcp

Best way from rank (down) to rank (across), GB/s
          0    1
     0    ·  64a
     1  64a    ·
     a  fabric, mapped, 700 ns

Links
  kind    count  plugin  type    bandwidth  latency  shared  source  joins
  fabric      2  accel   mapped    64 GB/s   700 ns          plugin  ranks 0-1, each to each
  tcp         2  tcp     posted  12.5 GB/s   7.5 µs  yes     plugin  switch tcp to ranks 0-1
  tcp         2  tcp     posted  12.5 GB/s   7.5 µs  yes     plugin  ranks 0-1 to switch tcp
"
    );
}

#[test]
fn dot_has_a_line_for_each_vertex_and_each_pair() {
    let graph = merge(&reports(&[BOX])).unwrap();
    let dot = draw::dot(&graph);
    assert_eq!(dot.matches(" -> ").count(), 28 + 8);
    assert_eq!(dot.matches("dir=both").count(), 28 + 8);
    assert_eq!(dot.matches("[label=\"rank ").count(), 8);
    assert!(dot.starts_with("digraph link_graph {") && dot.ends_with("}\n"));
}
