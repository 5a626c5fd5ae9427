//! Files: round trips, and errors that point at what is wrong.

use proptest::prelude::*;
use unisono_graph::{LinkGraph, VertexKind, merge};

use crate::random;
use crate::samples::{fleet, known_answers};

/// A line of four, as planners draw it.
const LINE: &str = r#"{
  "nodes": [{"id": 0, "compute": true}, {"id": 1, "compute": true}, {"id": 2, "compute": true}],
  "edges": [
    {"src": 0, "dst": 1, "GBps": 10.0},
    {"src": 1, "dst": 2, "GBps": 0.5, "latency_us": 1.5}
  ]
}"#;

/// Two boxes behind switches, with ids of all kinds.
const SWITCHED: &str = r#"{"nodes": [
    {"id": [0, 0], "compute": true}, {"id": [1, 0], "compute": true},
    {"id": ["sw", 0], "compute": false, "reduces": true}, {"id": "net", "compute": false}],
  "edges": [{"src": [0, 0], "dst": ["sw", 0], "GBps": 450}, {"src": ["sw", 0], "dst": "net", "GBps": 25},
    {"src": "net", "dst": [1, 0], "GBps": 25}]}"#;

#[test]
fn the_planning_format_is_read() {
    let graph = LinkGraph::from_json(LINE).unwrap();
    assert_eq!(graph.rank_count(), 3);
    let figures: Vec<_> = graph
        .links()
        .iter()
        .map(|link| (link.bytes_per_second, link.latency_ns))
        .collect();
    assert_eq!(figures, [(10_000_000_000, 0), (500_000_000, 1_500)]);
    let graph = LinkGraph::from_json(SWITCHED).unwrap();
    let names: Vec<&str> = graph
        .vertices()
        .iter()
        .map(|vertex| vertex.name.as_str())
        .collect();
    assert_eq!(names, ["0.0", "1.0", "net", "sw.0"]);
    assert!(matches!(graph.vertices()[3].kind, VertexKind::Switch(switch) if switch.reduces));
    assert_eq!(graph.route(0, 1).unwrap().links.len(), 3);
}

#[test]
fn all_known_graphs_are_read() {
    let Some(answers) = known_answers() else {
        return;
    };
    let graphs = answers["graphs"].as_array().unwrap();
    assert_eq!(graphs.len(), 19);
    for known in graphs {
        let graph = LinkGraph::from_json(&known["graph"].to_string()).unwrap();
        let switches = graph.vertices().len() - graph.rank_count();
        let seen = [graph.rank_count(), switches, graph.links().len()].map(|count| count as u64);
        let expected = ["N", "switches", "directed_edges"].map(|key| known[key].as_u64().unwrap());
        assert_eq!(seen, expected, "{}", known["name"]);
        assert_eq!(LinkGraph::from_json(&graph.to_json()).unwrap(), graph);
    }
}

/// A change to a good text, and the error that it must give.
#[track_caller]
fn fails(text: &str, change: (&str, &str), expected: &str) {
    let changed = text.replacen(change.0, change.1, 1);
    assert_ne!(text, changed, "nothing was changed");
    assert_eq!(
        LinkGraph::from_json(&changed).unwrap_err().to_string(),
        expected
    );
}

#[test]
fn errors_in_planning_files_say_line_column_and_field() {
    fails(
        LINE,
        ("\"dst\": 1", "\"dst\": 7"),
        "line 4, column 23, field `edges[0].dst`: there is no node 7: add it to `nodes`",
    );
    fails(
        LINE,
        ("10.0", "0"),
        "line 4, column 5, field `edges[0]`: link rank 0 -> rank 1 (link) has a bandwidth of 0 B/s: give 1 to 1000000000000000, or leave the link out",
    );
    fails(
        LINE,
        ("10.0", "-1"),
        "line 4, column 34, field `edges[0].GBps`: -1.0 is out of range",
    );
    fails(
        LINE,
        ("10.0", "1e300"),
        "line 4, column 34, field `edges[0].GBps`: 1e300 is out of range",
    );
    fails(
        LINE,
        ("\"dst\": 1", "\"dst\": 0"),
        "line 4, column 5, field `edges[0]`: link rank 0 -> rank 0 (link) joins rank 0 to itself: a link needs two ends",
    );
    fails(
        LINE,
        ("\"id\": 1", "\"id\": 0"),
        "line 2, column 48, field `nodes[1].id`: a second node `0`: ids must differ",
    );
    fails(
        LINE,
        ("\"id\": 1", "\"id\": 1.5"),
        "line 2, column 48, field `nodes[1].id`: an id is a number, a text, or a list of those",
    );
    fails(
        LINE,
        ("true}", "true, \"reduces\": true}"),
        "line 2, column 51, field `nodes[0].reduces`: only a switch (\"compute\": false) can reduce what passes",
    );
    fails(
        LINE,
        ("latency_us", "latency"),
        "line 5, column 47, field `edges[1].latency`: unknown field `latency`, expected one of `src`, `dst`, `GBps`, `latency_us`",
    );
    fails(
        LINE,
        ("true", "1"),
        "line 2, column 34, field `nodes[0].compute`: invalid type: integer `1`, expected a boolean",
    );
}

#[test]
fn errors_in_full_files_say_line_column_and_field() {
    let text = merge(&fleet()).unwrap().to_json();
    let place = |needle: &str| {
        let before = &text[..text.find(needle).unwrap()];
        (
            before.matches('\n').count() + 1,
            before.len() - before.rfind('\n').unwrap(),
        )
    };
    let (line, _) = place("\"from\": 0");
    let vertex = text
        .split_once("\"from\": 0")
        .unwrap()
        .1
        .split_once("\"to\": ")
        .unwrap()
        .1
        .split_once(',')
        .unwrap()
        .0;
    fails(
        &text,
        ("\"from\": 0", "\"from\": 4000"),
        &format!("line {line}, column 15, field `links[0].from`: there is no vertex 4000"),
    );
    assert!(vertex.parse::<u32>().is_ok());
    let (line, _) = place("\"rank\": 1");
    fails(
        &text,
        ("\"rank\": 1", "\"rank\": 0"),
        &format!(
            "line {line}, column 15, field `devices[1].rank`: rank 0 is on devices[0] already: a rank uses one"
        ),
    );
    let (line, _) = place("\"version\": 1");
    fails(
        &text,
        ("\"version\": 1", "\"version\": 2"),
        &format!("line {line}, column 14, field `version`: version 2, this library reads 1"),
    );
    fails(
        &text,
        ("unisono-link-graph", "other"),
        "line 2, column 13, field `format`: `other` is not `unisono-link-graph`",
    );
    let (line, _) = place("\"shared\": \"");
    let error =
        LinkGraph::from_json(&text.replacen("\"shared\": \"", "\"shared\": \"x", 1)).unwrap_err();
    assert_eq!((error.line, error.column), (line, 17), "{error}");
    assert!(
        error.message.starts_with("there is no capacity group `x"),
        "{error}"
    );
}

#[test]
fn text_that_is_no_json_is_an_error_with_a_place() {
    for (text, place) in [
        ("", (1, 0)),
        ("{\n  \"nodes\": [,]}", (2, 13)),
        ("[]", (1, 2)),
        ("{} x", (1, 4)),
    ] {
        let error = LinkGraph::from_json(text).unwrap_err();
        assert_eq!((error.line, error.column), place, "{text}: {error}");
    }
    assert!(LinkGraph::from_json(&"[".repeat(100_000)).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(graph in random::graph()) {
        let text = graph.to_json();
        let again = LinkGraph::from_json(&text).unwrap();
        prop_assert_eq!(again.hash(), graph.hash());
        prop_assert_eq!(again.to_json(), text);
        prop_assert_eq!(again, graph);
    }

    #[test]
    fn a_file_cut_or_bitten_does_no_harm(cut in any::<prop::sample::Index>(), with in "[{}\\[\\],:\"0-9a]{0,3}") {
        let text = merge(&fleet()).unwrap().to_json();
        let at = cut.index(text.len());
        let bitten = format!("{}{with}{}", &text[..at], &text[(at + 1).min(text.len())..]);
        for text in [&text[..at], &bitten] {
            if let Err(error) = LinkGraph::from_json(text) {
                prop_assert!(error.line >= 1 && !error.message.is_empty());
            }
        }
    }
}
