//! Drawings: their structure, and, where `UNISONO_DRAWINGS` names a folder, the files to look at.

mod samples;

use samples::{BOX, Machine, cores, fleet, known_answers, reports};
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
        },
    };
    let mut all = vec![
        ("box8".to_owned(), one(BOX)),
        ("pair".to_owned(), one(Machine { devices: 2, numa: 1, ..BOX })),
        ("four".to_owned(), one(Machine { devices: 4, ..BOX })),
        ("sixteen".to_owned(), one(Machine { devices: 16, ..BOX })),
        ("fleet".to_owned(), merge(&fleet()).unwrap().overlay(&[pair]).unwrap()),
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
    for graph in answers.iter().flat_map(|answers| answers["graphs"].as_array().unwrap()) {
        let name = graph["name"].as_str().unwrap().to_owned();
        all.push((name, LinkGraph::from_json(&graph["graph"].to_string()).unwrap()));
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
