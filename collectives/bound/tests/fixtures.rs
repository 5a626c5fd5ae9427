//! Known answers, to four digits.

use serde_json::Value;
use unisono_bound::{Op, bound};
use unisono_network::{Network, to_f64};

fn check(graph: &Value, answers: &Value, name: &str) -> usize {
    let network = Network::from_json(&graph.to_string()).unwrap();
    let mut checked = 0;
    let mut same = |op: Op, path: &str| {
        let Some(expected) = answers.pointer(path).and_then(Value::as_f64) else {
            return;
        };
        let found = bound(&network, op).unwrap();
        let high = to_f64(found.limit.high().unwrap()) / 1e9;
        println!(
            "{name} {op:?} {high} {expected} {} exact {}",
            found.certificate,
            found.limit.is_exact()
        );
        assert!(
            (high - expected).abs() <= 0.6e-4,
            "{name} {op:?} {high} {expected}"
        );
        checked += 1;
    };
    same(Op::AllGather, "/ag/algbw_GBps");
    same(Op::ReduceScatter, "/rs/algbw_GBps");
    same(Op::Broadcast { root: 0 }, "/broadcast/root0_GBps");
    same(Op::Reduce { root: 0 }, "/reduce/root0_GBps");
    same(Op::Scatter { root: 0 }, "/scatter/root0_algbw_GBps");
    same(Op::Gather { root: 0 }, "/gather/root0_algbw_GBps");
    if name != "asym4" {
        same(
            Op::AllReduce { in_network: false },
            "/allreduce_lp/algbw_GBps",
        );
    }
    same(Op::AllToAll, "/alltoall/algbw_GBps");
    let mut graph = graph.clone();
    for node in graph["nodes"].as_array_mut().unwrap() {
        node["reduces"] = (!node["compute"].as_bool().unwrap()).into();
    }
    let reducing = Network::from_json(&graph.to_string()).unwrap();
    let Some(expected) = answers
        .pointer("/allreduce_lp_in_network/algbw_GBps")
        .and_then(Value::as_f64)
    else {
        return checked;
    };
    let op = Op::AllReduce { in_network: true };
    let start = std::time::Instant::now();
    let found = bound(&reducing, op).unwrap();
    let high = found.limit.high().map_or(f64::INFINITY, to_f64) / 1e9;
    println!(
        "{name} {op:?} {high} {expected} {} exact {} {:?}",
        found.certificate,
        found.limit.is_exact(),
        start.elapsed()
    );
    assert!(
        (high - expected).abs() <= 0.6e-4,
        "{name} {op:?} {high} {expected}"
    );
    checked
}

#[test]
fn shared() {
    let Ok(text) = std::fs::read_to_string("../../../shared/fixtures/known_answers.json") else {
        return;
    };
    let all: Value = serde_json::from_str(&text).unwrap();
    let mut count = 0;
    for graph in all["graphs"].as_array().unwrap() {
        count += check(&graph["graph"], graph, graph["name"].as_str().unwrap());
    }
    println!("{count}");
}
