//! Every algorithm, every operation, every number of ranks that the project promises.
//!
//! `UNISONO_SOAK=1` adds the largest numbers of ranks, and all cases for the middling ones:
//! `cargo xtask soak plans`.

use unisono_plan::verify::{self, Settings, check, check_unanswered};
use unisono_plan::{Action, Algorithm, Op, Program, Shape, Step, generate, generate_reduce_alone};

/// All cases of every plan.
const ALL_CASES: std::ops::RangeInclusive<u32> = 1..=17;
/// The other numbers of ranks: a part of the cases unless soaking.
const SOME_CASES: [u32; 20] = [
    18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 48, 64, 100, 128,
];
/// A part of the cases, in a soak only.
const SOAK: [u32; 2] = [384, 1024];

fn soaking() -> bool {
    std::env::var_os("UNISONO_SOAK").is_some()
}

fn ranks() -> Vec<u32> {
    let soak = SOAK.into_iter().filter(|_| soaking());
    ALL_CASES.chain(SOME_CASES).chain(soak).collect()
}

/// The cases for a number of ranks. The fewest slots are the hardest; a message of two pieces is in
/// the middle of every pipeline and at both its ends.
fn cases(ranks: u32, max_skew: u16) -> Vec<Settings> {
    let all = Settings::all(max_skew);
    let few = |case: &Settings| case.slots == 2 && case.pieces == 2;
    match ranks {
        _ if ALL_CASES.contains(&ranks) => all.collect(),
        ..=128 if soaking() => all.collect(),
        ..=128 => all.filter(few).collect(),
        // The two placements one after the other would be twice the time.
        _ => all.filter(|case| few(case) && case.in_place).collect(),
    }
}

/// Verifies the same without answers: the same result.
fn unanswered(algorithm: Algorithm, op: Op, ranks: u32) {
    let report = check_unanswered(algorithm, op, ranks, |skew| cases(ranks, skew))
        .unwrap_or_else(|error| panic!("unanswered: {error}"));
    if algorithm == Algorithm::MeshOneShot && ranks > 1 {
        assert!(report.is_some(), "{op} {ranks}: it has answers");
    }
}

/// Verifies an operation with every algorithm that has it, and says how many those are. In a soak it
/// also prints what was verified, for the page of results.
fn verify_all(op: impl Fn(u32) -> Vec<Op>) -> usize {
    let start = std::time::Instant::now();
    let (mut plans, mut proofs, mut puts) = (0, 0, 0);
    let mut name = "";
    for ranks in ranks() {
        for op in op(ranks) {
            name = op.name();
            for algorithm in Algorithm::ALL {
                for windowed in [false, true] {
                    if algorithm.supports(op, ranks, windowed).is_err() {
                        continue;
                    }
                    let mut count = 0;
                    let cases = |skew| {
                        let cases = cases(ranks, skew);
                        count = cases.len();
                        cases
                    };
                    let report = check(algorithm, op, ranks, windowed, cases)
                        .unwrap_or_else(|error| panic!("windowed {windowed}: {error}"));
                    if algorithm.folds_in_rank_order(op) {
                        assert!(report.folds_in_rank_order, "{algorithm} {op} {ranks}");
                    } else if ranks > 3 {
                        assert!(!report.folds_in_rank_order, "{algorithm} {op} {ranks}");
                    }
                    plans += 1;
                    proofs += count;
                    puts += report.puts;
                    if op.root().is_some() && !windowed {
                        unanswered(algorithm, op, ranks);
                    }
                }
            }
        }
    }
    if soaking() {
        let most = ranks().into_iter().max().unwrap_or(0);
        println!(
            "soak: {name}: {plans} plans of up to {most} ranks proved in {proofs} cases, {puts} puts in the \
             last ones, {:.0?}",
            start.elapsed()
        );
    }
    plans
}

/// Verifies an operation without a root; there must be so many plans for each number of ranks.
fn verify(op: Op, plans: usize) {
    assert_eq!(verify_all(|_| vec![op]), ranks().len() * plans);
}

fn roots(ranks: u32) -> Vec<u32> {
    let mut roots = vec![0, ranks / 2, ranks - 1];
    roots.dedup();
    if !ALL_CASES.contains(&ranks) {
        roots.truncate(2);
        roots.reverse();
        roots.truncate(1);
    }
    roots
}

/// Verifies an operation with a root at several roots; there must be so many plans for each.
fn verify_rooted(op: impl Fn(u32) -> Op, plans: usize) {
    let roots_in_all: usize = ranks().iter().map(|&ranks| roots(ranks).len()).sum();
    let all = verify_all(|ranks| roots(ranks).into_iter().map(&op).collect());
    assert_eq!(all, roots_in_all * plans);
}

#[test]
fn all_reduce() {
    verify(Op::AllReduce, 14);
}

#[test]
fn reduce_scatter() {
    verify(Op::ReduceScatter, 10);
}

#[test]
fn all_gather() {
    verify(Op::AllGather, 10);
}

#[test]
fn broadcast() {
    verify_rooted(|root| Op::Broadcast { root }, 9);
}

#[test]
fn reduce() {
    verify_rooted(|root| Op::Reduce { root }, 6);
}

/// Over windows, where only the root reaches its output: what the others do is what they do elsewhere without the
/// reductions.
#[test]
fn reduce_by_the_root_alone() {
    for ranks in ranks().into_iter().filter(|&ranks| ranks > 1) {
        for root in roots(ranks) {
            let op = Op::Reduce { root };
            let shape = |rank| Shape {
                op,
                ranks,
                rank,
                windowed: true,
                turns: false,
            };
            let all = (0..ranks).map(|rank| generate_reduce_alone(&shape(rank)).expect("a plan"));
            let alone: Vec<Program> = all.collect();
            for program in alone.iter().filter(|program| program.rank != root) {
                let usual = generate(Algorithm::MeshTwoShot, &shape(program.rank));
                let usual = usual.expect("a plan");
                let reduces = |step: &Step| matches!(step.action, Action::Reduce { .. });
                let left: Vec<Step> = usual.walk().filter(|step| !reduces(step)).collect();
                assert_eq!(left, program.walk().collect::<Vec<Step>>());
                assert_eq!(usual.max_skew, program.max_skew);
            }
            let skew = alone.iter().map(|program| program.max_skew).max();
            let cases = cases(ranks, skew.unwrap_or(0)).into_iter();
            for settings in cases.filter(|case| !case.in_place) {
                let report =
                    verify::verify(&alone, settings).unwrap_or_else(|error| panic!("{error}"));
                assert!(report.folds_in_rank_order, "{ranks}");
            }
        }
    }
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
    verify(Op::AllToAll, 6);
}

#[test]
fn barrier() {
    assert_eq!(verify_all(|_| vec![Op::Barrier]), 5 * ranks().len());
}

#[test]
fn send_and_receive() {
    for ranks in ranks().into_iter().filter(|&ranks| ranks > 1) {
        for op in [Op::Send { to: ranks / 2 }, Op::Recv { from: ranks - 1 }] {
            let report = check(Algorithm::Direct, op, ranks, false, Settings::all);
            assert!(report.is_ok(), "{report:?}");
        }
    }
}

/// A ring or a mesh is as long for a thousand ranks as for sixteen, and what is like a tree grows
/// with the logarithm.
#[test]
fn programs_stay_short() {
    let steps = |algorithm: Algorithm, op: Op, ranks: u32| {
        let of = |rank| {
            let shape = Shape {
                op,
                ranks,
                rank,
                windowed: false,
                turns: false,
            };
            generate(algorithm, &shape).unwrap().steps.len()
        };
        [0, 1, ranks / 2, ranks - 1]
            .into_iter()
            .map(of)
            .max()
            .unwrap()
    };
    let ops = [
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::AllToAll,
        Op::Broadcast { root: 0 },
        Op::Reduce { root: 0 },
        Op::Gather { root: 0 },
        Op::Scatter { root: 0 },
        Op::Barrier,
    ];
    let mut compared = 0;
    for algorithm in Algorithm::ALL {
        for op in ops {
            // Of ranks of one machine, who read each other's blocks one by one.
            let is_listed = algorithm.reads_peers() && op == Op::AllToAll;
            if algorithm.supports(op, 16, false).is_err() || is_listed {
                continue;
            }
            let (few, many) = (steps(algorithm, op, 16), steps(algorithm, op, 16_384));
            let grows = match algorithm {
                Algorithm::RecursiveDoubling
                | Algorithm::HalvingDoubling
                | Algorithm::Dissemination
                | Algorithm::Nhr
                | Algorithm::Bruck
                | Algorithm::Binomial
                | Algorithm::ScatterAllGather => 4,
                _ => 1,
            };
            assert!(many <= grows * few + 2, "{algorithm} {op}: {few}, {many}");
            compared += 1;
        }
    }
    assert!(compared > 35, "{compared}");
}

/// Where ranks are dealt to two cores in turns, both have about as much to hand on.
#[test]
fn odd_and_even_ranks_that_share_cores_have_as_much_to_hand_on() {
    for ranks in [4, 8, 16, 32, 64, 128] {
        let programs = turned(Op::Broadcast { root: 0 }, ranks);
        let puts = |parity: u32| -> usize {
            let carries = |step: &Step| match step.action {
                Action::Put { value, .. } => !value.blocks().is_empty(),
                _ => false,
            };
            let some = programs.iter().filter(|program| program.rank % 2 == parity);
            some.map(|program| program.walk().filter(carries).count())
                .sum()
        };
        let [even, odd] = [puts(0), puts(1)];
        assert_eq!(even + odd, ranks as usize - 1);
        assert!(
            even.abs_diff(odd) <= ranks as usize / 3,
            "{ranks}: {even}, {odd}"
        );
    }
}

/// Every operation of such a tree.
#[test]
fn binomial_trees_of_ranks_that_share_cores() {
    for ranks in ranks().into_iter().filter(|&ranks| ranks > 1) {
        let rooted = roots(ranks).into_iter().flat_map(|root| {
            [
                Op::Broadcast { root },
                Op::Reduce { root },
                Op::Gather { root },
                Op::Scatter { root },
            ]
        });
        let others = [Op::AllReduce, Op::AllGather, Op::ReduceScatter, Op::Barrier];
        for op in rooted.chain(others) {
            let programs = turned(op, ranks);
            let skew = programs.iter().map(|program| program.max_skew).max();
            for settings in cases(ranks, skew.unwrap_or(0)) {
                let proof = verify::verify(&programs, settings);
                proof.unwrap_or_else(|error| panic!("{op} of {ranks}: {error}"));
            }
        }
    }
}

fn turned(op: Op, ranks: u32) -> Vec<Program> {
    let of_rank = |rank: u32| {
        let shape = Shape {
            op,
            ranks,
            rank,
            windowed: false,
            turns: true,
        };
        generate(Algorithm::Binomial, &shape).expect("a plan")
    };
    (0..ranks).map(of_rank).collect()
}
