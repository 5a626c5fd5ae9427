use std::time::Instant;
use unisono_network::*;
use unisono_plan::Op;
use unisono_planner::{schedule::Schedule, timing::*, trees::*};
fn main() {
    let text = std::fs::read_to_string("/work/shared/fixtures/known_answers.json").unwrap();
    let v: serde_json::Value = serde_json::from_str(&text).unwrap();
    let only: Option<String> = std::env::args().nth(1);
    let bytes = 1u64 << 30;
    for g in v["graphs"].as_array().unwrap() {
        let name = g["name"].as_str().unwrap();
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let n = Network::from_json(&g["graph"].to_string()).unwrap();
        let t0 = Instant::now();
        let ag = unisono_pack::all_gather(&n);
        let t1 = t0.elapsed();
        let ar = unisono_pack::all_reduce(&n);
        let t2 = t0.elapsed();
        let rs = unisono_pack::reduce_scatter(&n);
        let bc = unisono_pack::broadcast(&n, 0);
        let rd = unisono_pack::reduce(&n, 0);
        println!("{name}: pack ag {t1:?} ar {:?}", t2 - t1);
        let run = |what: &str, bound: f64, bps: f64, make: &dyn Fn(Cutting) -> Option<Schedule>| {
            let mut line = format!("  {what:4} bound {:.2} pack {:.2}:", bound, bps / 1e9);
            for win in [
                Lanes::Path,
                Lanes::Share { most: 1 },
                Lanes::Share { most: 64 },
                Lanes::Share { most: 256 },
            ] {
                line += &format!("\n    w {win:?}");
                for div in [256u64, 1024, 4096, 16384] {
                    let t = Instant::now();
                    let Some(s) = make(Cutting {
                        chunk: bytes / div,
                        slots: std::env::var("SLOTS").map_or(8, |s| s.parse().unwrap()),
                        lanes: win,
                    }) else {
                        println!("{line} none");
                        return;
                    };
                    if s.steps.len() > 600_000 {
                        break;
                    }
                    let tl = simulate_schedule(&s, &n, Speeds::default()).unwrap();
                    line += &format!(
                        " {:.4}[{}k {:.1}s]",
                        bytes as f64 / tl.end_ps * 1e3 / bound,
                        s.steps.len() / 1000,
                        t.elapsed().as_secs_f64()
                    );
                }
            }
            println!("{line}");
        };
        match &ag {
            Ok(p) => run(
                "ag",
                g["ag"]["algbw_GBps"].as_f64().unwrap(),
                to_f64(p.bytes_per_second()),
                &|c| packing(Op::AllGather, &n, p, bytes, c),
            ),
            Err(e) => println!("  ag {e}"),
        }
        match &rs {
            Ok(p) => run(
                "rs",
                g["rs"]["algbw_GBps"].as_f64().unwrap(),
                to_f64(p.bytes_per_second()),
                &|c| packing(Op::ReduceScatter, &n, p, bytes, c),
            ),
            Err(e) => println!("  rs {e}"),
        }
        match &bc {
            Ok(p) => run(
                "bc",
                g["broadcast"]["root0_GBps"].as_f64().unwrap(),
                to_f64(p.bytes_per_second()),
                &|c| packing(Op::Broadcast { root: 0 }, &n, p, bytes, c),
            ),
            Err(e) => println!("  bc {e}"),
        }
        match &rd {
            Ok(p) => run(
                "red",
                g["reduce"]["root0_GBps"].as_f64().unwrap(),
                to_f64(p.bytes_per_second()),
                &|c| packing(Op::Reduce { root: 0 }, &n, p, bytes, c),
            ),
            Err(e) => println!("  red {e}"),
        }
        match &ar {
            Ok(p) => run(
                "ar",
                g["allreduce_lp"]["algbw_GBps"].as_f64().unwrap(),
                to_f64(p.bytes_per_second()),
                &|c| pairs(&n, p, bytes, c),
            ),
            Err(e) => println!("  ar {e}"),
        }
    }
}
