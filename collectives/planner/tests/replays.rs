//! Plans, run again from their files of steps by somebody who knows only the format.

mod graphs;
mod replay;

use unisono_graph::LinkGraph;
use unisono_network::Network;
use unisono_plan::Op;
use unisono_planner::names::Names;
use unisono_planner::{Plan, Request, plan, steps};

use replay::{Graph, Memory};

fn written(text: &str, op: Op, bytes: u64, algorithm: Option<&str>) -> Option<(Plan, String)> {
    let graph = LinkGraph::from_json(text).unwrap();
    let network = Network::from_graph(&graph).unwrap();
    let request = Request {
        algorithm: algorithm.map(str::to_owned),
        ..Request::new(op, bytes)
    };
    let plan = match algorithm {
        None => plan(&network, &request).unwrap(),
        Some(_) => plan(&network, &request).ok()?,
    };
    let mut out = Vec::new();
    steps::write(&mut out, &plan.schedule, &Names::new(&graph, &network)).unwrap();
    Some((plan, String::from_utf8(out).unwrap()))
}

/// Runs the steps again: the contributions in several orders, and the time.
fn replayed(text: &str, op: Op, plan: &Plan, file: &str) {
    let graph = Graph::new(text);
    let steps = replay::read(file, &graph);
    let befores = replay::befores(&steps);
    let (ranks, bytes) = (u64::from(plan.schedule.ranks), plan.schedule.message.bytes);
    let root = u64::from(op.root().unwrap_or(0));
    for chance in [1, 2, 3] {
        let memory = Memory::run(&steps, &befores, chance);
        replay::check(op.name(), ranks, root, bytes, &memory);
    }
    let us = graph.seconds(&steps, &befores) * 1e6;
    let predicted = plan.predicted_us();
    let near = (us - predicted).abs() <= 1e-6 * predicted.max(1e-3);
    assert!(near, "{op} by {}: {us} us, not {predicted}", plan.algorithm);
    let least = bytes / 4096 / ranks;
    for step in steps.iter().filter(|step| step.kind == "put") {
        let (bytes, text) = (
            step.bytes(),
            format!("{op} by {}: {:?}", plan.algorithm, plan.knob),
        );
        assert!(
            least == 0 || bytes >= 4096,
            "{text}: a chunk of {bytes} bytes"
        );
    }
}

fn ops(ranks: u32) -> [Op; 10] {
    let root = ranks / 2;
    [
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::Broadcast { root },
        Op::Reduce { root },
        Op::Gather { root },
        Op::Scatter { root },
        Op::AllToAll,
        Op::Barrier,
        Op::Send { to: ranks - 1 },
    ]
}

#[test]
fn the_fastest_plan_does_what_it_says_in_the_time_it_says() {
    for (ranks, text) in graphs::all() {
        for op in ops(ranks) {
            for bytes in [1001, 200_000] {
                let (plan, file) = written(&text, op, bytes, None).unwrap();
                replayed(&text, op, &plan, &file);
            }
        }
    }
}

/// Rings that share links keep sums in scratch, those of each ring in a section of its own; blocks of a message that
/// they don't divide have two sizes.
#[test]
fn rings_that_share_links_keep_their_sums_apart() {
    let (_, text) = graphs::interleaved();
    for bytes in [4096, 5000] {
        let op = Op::ReduceScatter;
        let (plan, file) = written(&text, op, bytes, Some("rings")).unwrap();
        replayed(&text, op, &plan, &file);
    }
}

#[test]
fn so_does_every_candidate() {
    for (ranks, text) in graphs::all().into_iter().take(4) {
        for op in ops(ranks) {
            let (best, _) = written(&text, op, 60_000, None).unwrap();
            for candidate in &best.candidates {
                let name = candidate.source.name();
                let (plan, file) = written(&text, op, 60_000, Some(name)).unwrap();
                replayed(&text, op, &plan, &file);
            }
        }
    }
}

#[test]
fn a_script_that_knows_the_format_finds_the_same() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay.py");
    let there = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no python3");
        return;
    }
    let folder = std::env::temp_dir().join(format!("unisono-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (ranks, text) in graphs::all().into_iter().take(3) {
        for op in ops(ranks) {
            let (plan, file) = written(&text, op, 100_000, None).unwrap();
            let (graph, steps) = (folder.join("graph.json"), folder.join("steps.json"));
            std::fs::write(&graph, &text).unwrap();
            std::fs::write(&steps, &file).unwrap();
            let output = std::process::Command::new("python3")
                .arg(script)
                .args([&graph, &steps])
                .args([op.name(), "100000"])
                .args([ranks.to_string(), op.root().unwrap_or(0).to_string()])
                .output()
                .unwrap();
            let out = String::from_utf8_lossy(&output.stdout);
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{op} by {}: {out}{err}",
                plan.algorithm
            );
            let us: f64 = out.trim().parse().unwrap();
            let predicted = plan.predicted_us();
            let near = (us - predicted).abs() <= 1e-6 * predicted.max(1e-3);
            assert!(near, "{op} by {}: {us} us, not {predicted}", plan.algorithm);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
