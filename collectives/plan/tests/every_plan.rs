//! Every algorithm, every operation, every number of ranks that the project promises.

use unisono_plan::verify::{Settings, check};
use unisono_plan::{Algorithm, Op};

const RANKS: [u32; 23] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 48, 64, 100, 128,
];

/// Verifies an operation with every algorithm that has it, and says how many those are.
fn verify_all(op: impl Fn(u32) -> Vec<Op>) -> usize {
    let mut plans = 0;
    for ranks in RANKS {
        for op in op(ranks) {
            for algorithm in Algorithm::ALL {
                for windowed in [false, true] {
                    if algorithm.supports(op, ranks, windowed).is_err() {
                        continue;
                    }
                    let report = check(algorithm, op, ranks, windowed, Settings::all)
                        .unwrap_or_else(|error| panic!("windowed {windowed}: {error}"));
                    if algorithm.folds_in_rank_order(op) {
                        assert!(report.folds_in_rank_order, "{algorithm} {op} {ranks}");
                    } else if ranks > 3 {
                        assert!(!report.folds_in_rank_order, "{algorithm} {op} {ranks}");
                    }
                    plans += 1;
                }
            }
        }
    }
    plans
}

fn roots(ranks: u32) -> Vec<u32> {
    let mut roots = vec![0, ranks / 2, ranks - 1];
    roots.dedup();
    roots
}

/// Verifies an operation with a root at several roots; there must be so many plans for each.
fn verify_rooted(op: impl Fn(u32) -> Op, plans: usize) {
    let roots_in_all: usize = RANKS.iter().map(|&ranks| roots(ranks).len()).sum();
    let all = verify_all(|ranks| roots(ranks).into_iter().map(&op).collect());
    assert_eq!(all, roots_in_all * plans);
}

#[test]
fn all_reduce() {
    assert_eq!(verify_all(|_| vec![Op::AllReduce]), RANKS.len() * 10);
}

#[test]
fn reduce_scatter() {
    assert_eq!(verify_all(|_| vec![Op::ReduceScatter]), RANKS.len() * 7);
}

#[test]
fn all_gather() {
    assert_eq!(verify_all(|_| vec![Op::AllGather]), RANKS.len() * 7);
}

#[test]
fn broadcast() {
    verify_rooted(|root| Op::Broadcast { root }, 7);
}

#[test]
fn reduce() {
    verify_rooted(|root| Op::Reduce { root }, 5);
}

#[test]
fn gather() {
    verify_rooted(|root| Op::Gather { root }, 2);
}

#[test]
fn scatter() {
    verify_rooted(|root| Op::Scatter { root }, 2);
}

#[test]
fn all_to_all() {
    assert_eq!(verify_all(|_| vec![Op::AllToAll]), RANKS.len() * 3);
}

#[test]
fn barrier() {
    assert_eq!(verify_all(|_| vec![Op::Barrier]), RANKS.len() * 2);
}

#[test]
fn send_and_receive() {
    for ranks in RANKS.into_iter().filter(|&ranks| ranks > 1) {
        for op in [Op::Send { to: ranks / 2 }, Op::Recv { from: ranks - 1 }] {
            let report = check(Algorithm::Direct, op, ranks, false, Settings::all);
            assert!(report.is_ok(), "{report:?}");
        }
    }
}
