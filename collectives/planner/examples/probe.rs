use unisono_network::*;
use unisono_plan::Op;
use unisono_planner::{Request, plan};
fn main() {
    let text = std::fs::read_to_string("/work/shared/fixtures/known_answers.json").unwrap();
    let v: serde_json::Value = serde_json::from_str(&text).unwrap();
    let only: Option<String> = std::env::args().nth(1);
    let bytes: u64 = std::env::args()
        .nth(2)
        .map_or(1 << 30, |s| s.parse().unwrap());
    for g in v["graphs"].as_array().unwrap() {
        let name = g["name"].as_str().unwrap();
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let n = Network::from_json(&g["graph"].to_string()).unwrap();
        println!("{name}");
        for op in [
            Op::AllGather,
            Op::ReduceScatter,
            Op::AllReduce,
            Op::Broadcast { root: 0 },
            Op::Reduce { root: 0 },
            Op::AllToAll,
            Op::Gather { root: 0 },
            Op::Scatter { root: 0 },
            Op::Barrier,
            Op::Send { to: n.ranks() - 1 },
        ] {
            match plan(&n, &Request::new(op, bytes)) {
                Ok(p) => {
                    let share = p
                        .bound
                        .as_ref()
                        .map_or(1.0, |b| b.seconds(bytes) * 1e12 / p.timeline.end_ps);
                    println!(
                        "  {:16} {:12} {:?} steps {} {:.1} us share {share:.4} {:.2} s   {:?}",
                        op.to_string(),
                        p.algorithm,
                        p.knob,
                        p.schedule.steps.len(),
                        p.predicted_us(),
                        p.seconds,
                        p.candidates
                            .iter()
                            .map(|c| format!("{} {:.1}", c.source.name(), c.ps / 1e6))
                            .collect::<Vec<_>>()
                    );
                }
                Err(e) => println!("  {op} {e}"),
            }
        }
    }
}
