//! How finely plans of few ranks are cut, beside every cut.

use unisono_network::{Builder, Network};
use unisono_plan::Op;
use unisono_planner::{Request, plan, sweep};

const GB: u64 = 1_000_000_000;

/// Two boxes of eight chips as AMD's MI250 are wired: pairs at 200 GB/s, some pairs two links of 50, others one; six
/// links of 50 from box to box.
fn two_boxes() -> Network {
    let pairs = (0..4).map(|pair| (2 * pair, 2 * pair + 1, 200));
    let inside = pairs.chain([(0, 4, 100), (3, 7, 100)]);
    let single = [(1, 5), (2, 6), (4, 6), (5, 6), (5, 7)];
    let inside: Vec<_> = inside.chain(single.map(|(a, b)| (a, b, 50))).collect();
    let second = inside.iter().map(|&(a, b, rate)| (8 + a, 8 + b, rate));
    let across = [(0, 8), (1, 9), (1, 10), (2, 9), (2, 10), (3, 11)];
    let across = across.map(|(a, b)| (a, b, 50));
    let all = inside.iter().copied().chain(second).chain(across);
    let mut both: Vec<_> = all
        .flat_map(|(a, b, rate)| [(a, b, rate), (b, a, rate)])
        .collect();
    both.sort_unstable();
    let mut builder = Builder::new(16);
    for (from, to, rate) in both {
        builder.edge(from, to, rate * GB, 1000);
    }
    builder.build().unwrap()
}

/// Times of two: of what is planned, and of the best of all candidates in all cuts.
fn planned_and_best(op: Op, bytes: u64) -> [f64; 2] {
    let network = two_boxes();
    let request = Request::new(op, bytes);
    let planned = plan(&network, &request).unwrap().predicted_us();
    let swept = Request {
        most_final_steps: 60_000,
        ..request
    };
    let all = sweep::sweep(&network, &swept).unwrap();
    [planned, all[0].ps / 1e6]
}

/// Routes in four chunks take longer there than in one, those in 32 half as long.
#[test]
fn few_large_chunks_say_nothing_of_many_small_ones() {
    for op in [Op::Scatter { root: 0 }, Op::Gather { root: 0 }] {
        for bytes in [4 << 20, 64 << 20, 1 << 30] {
            let [planned, best] = planned_and_best(op, bytes);
            assert!(
                planned <= best * 1.03,
                "{op} of {bytes}: {planned} us, of {best}"
            );
        }
    }
}
