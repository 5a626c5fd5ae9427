//! Known answers, to four digits: nineteen networks and the algbw of every op on them, in GB/s.
//!
//! `graphs.json` holds ranks first, then switches; edges are `[from, to, GB/s]`. The answers were found
//! by other means: linear programs over all flows, and cuts one by one.

use std::path::Path;

use serde_json::Value;
use unisono_bound::{Bound, Op, bound};
use unisono_network::{Builder, Network, Rational, to_f64};

/// An op and where its answer is: in `graphs.json`, and in the file of the planning issue.
const OPS: [(Op, &str, &str); 8] = [
    (Op::AllGather, "/all_gather", "/ag/algbw_GBps"),
    (Op::ReduceScatter, "/reduce_scatter", "/rs/algbw_GBps"),
    (
        Op::Broadcast { root: 0 },
        "/broadcast",
        "/broadcast/root0_GBps",
    ),
    (Op::Reduce { root: 0 }, "/reduce", "/reduce/root0_GBps"),
    (
        Op::Scatter { root: 0 },
        "/scatter",
        "/scatter/root0_algbw_GBps",
    ),
    (
        Op::Gather { root: 0 },
        "/gather",
        "/gather/root0_algbw_GBps",
    ),
    (Op::AllToAll, "/all_to_all", "/alltoall/algbw_GBps"),
    (
        Op::AllReduce { in_network: false },
        "/all_reduce",
        "/allreduce_lp/algbw_GBps",
    ),
];

fn graphs() -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("graphs.json")).unwrap();
    all.as_array().unwrap().clone()
}

/// The network, with switches that reduce or not.
fn network(graph: &Value, reduces: bool) -> Network {
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let mut builder = Builder::new(number(&graph["ranks"]));
    for _ in 0..number(&graph["switches"]) {
        builder.switch(reduces);
    }
    let edges = |name: &str| graph[name].as_array().unwrap().clone();
    let wide = |edge: &Value| (edge[2].as_f64().unwrap() * 1e9) as u64;
    for edge in edges("both_ways") {
        builder.duplex(number(&edge[0]), number(&edge[1]), wide(&edge), 0);
    }
    for edge in edges("one_way") {
        builder.edge(number(&edge[0]), number(&edge[1]), wide(&edge), 0);
    }
    builder.build().unwrap()
}

/// Checks a bound against what is known to four digits.
fn same(name: &str, found: &Bound, expected: f64) {
    let high = to_f64(found.limit.high().unwrap()) / 1e9;
    assert!(
        (high - expected).abs() <= 0.6e-4,
        "{name}: {:?} {high}, not {expected}",
        found.op
    );
    assert!(
        found.limit.is_exact(),
        "{name}: {:?} {:?}",
        found.op,
        found.limit
    );
}

#[test]
fn every_known_answer_comes_out_exactly() {
    let mut checked = 0;
    for graph in graphs() {
        let name = graph["name"].as_str().unwrap();
        for (op, place, _) in OPS {
            let expected = graph["answers"]
                .pointer(place)
                .and_then(Value::as_f64)
                .unwrap();
            same(name, &bound(&network(&graph, false), op).unwrap(), expected);
            checked += 1;
        }
        let inside = graph["answers"]["all_reduce_in_network"].as_f64();
        let found = bound(&network(&graph, true), Op::AllReduce { in_network: true }).unwrap();
        if let Some(expected) = inside {
            same(name, &found, expected);
            checked += 1;
        } else {
            // Without switches there is nothing in the network to reduce.
            let plain = bound(&network(&graph, true), Op::AllReduce { in_network: false }).unwrap();
            assert_eq!(found.limit, plain.limit, "{name}");
        }
    }
    assert_eq!(checked, 160);
}

#[test]
fn the_share_of_all_gather_is_the_known_fraction() {
    for graph in graphs() {
        let network = network(&graph, false);
        let (numerator, denominator) = graph["all_gather_share"]
            .as_str()
            .unwrap()
            .split_once('/')
            .unwrap();
        let share = Rational::new(numerator.parse().unwrap(), denominator.parse().unwrap());
        let expected = share * Rational::from_integer(1_000_000_000 * i128::from(network.ranks()));
        assert_eq!(
            bound(&network, Op::AllGather).unwrap().limit.high(),
            Some(expected),
            "{}",
            graph["name"]
        );
    }
}

#[test]
fn a_switch_that_may_reduce_does_not_unless_asked() {
    let graph = graphs()
        .into_iter()
        .find(|graph| graph["name"] == "dgx_h100_nvswitch8_450")
        .unwrap();
    let op = |in_network| Op::AllReduce { in_network };
    let high = |reduces, in_network| {
        bound(&network(&graph, reduces), op(in_network))
            .unwrap()
            .limit
            .high()
    };
    assert_eq!(high(true, false), high(false, true));
    assert!(high(true, true) > high(true, false));
}

/// The same from the graphs in the planning format, where that file is at hand.
#[test]
fn graphs_read_from_the_planning_format_agree() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/known_answers.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: there is no {}", path.display());
        return;
    };
    let all: Value = serde_json::from_str(&text).unwrap();
    for graph in all["graphs"].as_array().unwrap() {
        let network = Network::from_json(&graph["graph"].to_string()).unwrap();
        for (op, _, place) in OPS {
            let expected = graph.pointer(place).and_then(Value::as_f64).unwrap();
            same(
                graph["name"].as_str().unwrap(),
                &bound(&network, op).unwrap(),
                expected,
            );
        }
    }
}
