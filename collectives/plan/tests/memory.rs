//! What the program of one rank takes in memory, at 64, 1,024 and 16,384 ranks.

use unisono_plan::{Algorithm, Op, Shape, Template};

const RANKS: [u32; 3] = [64, 1024, 16_384];

/// Bytes of the largest program of some ranks at the ends and in the middle.
fn bytes(template: &Template, op: Op, ranks: u32) -> usize {
    let of = |rank| {
        let shape = Shape {
            op,
            ranks,
            rank,
            windowed: false,
            turns: false,
        };
        template.generate(&shape).expect("a program").memory_bytes()
    };
    let some = [0, 1, 2, ranks / 3, ranks / 2, ranks - 2, ranks - 1];
    some.into_iter().map(of).max().unwrap_or(0)
}

fn ops() -> [Op; 9] {
    [
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::AllToAll,
        Op::Broadcast { root: 1 },
        Op::Reduce { root: 1 },
        Op::Gather { root: 1 },
        Op::Scatter { root: 1 },
        Op::Barrier,
    ]
}

/// How much the program may grow from the first number of ranks to another.
fn grows(algorithm: Algorithm, ranks: u32) -> usize {
    match algorithm {
        // Rounds are loops, and who sends to everybody does that in a loop.
        Algorithm::Ring
        | Algorithm::BidirectionalRing
        | Algorithm::Chain
        | Algorithm::Pairwise
        | Algorithm::MeshOneShot
        | Algorithm::MeshTwoShot
        | Algorithm::MeshRead
        | Algorithm::MeshShared
        | Algorithm::MeshSharedOneShot
        | Algorithm::RingShared
        // A rank has a parent and two children in each tree.
        | Algorithm::DoubleBinaryTree => 0,
        // A few steps for each level.
        _ => 2 * 1024 * (ranks.ilog2() - RANKS[0].ilog2()) as usize,
    }
}

#[test]
fn programs_grow_with_the_logarithm_of_the_ranks_at_most() {
    println!("bytes of one rank's program at {RANKS:?} ranks:");
    let mut compared = 0;
    for algorithm in Algorithm::ALL {
        for op in ops() {
            // Of ranks of one machine, who read each other's blocks one by one.
            let is_listed = algorithm.reads_peers() && op == Op::AllToAll;
            if algorithm.supports(op, RANKS[0], false).is_err() || is_listed {
                continue;
            }
            let all = RANKS.map(|ranks| bytes(&algorithm.into(), op, ranks));
            println!("{algorithm:20} {:15} {all:?}", op.name());
            for (ranks, bytes) in RANKS.into_iter().zip(all) {
                let most = all[0] + grows(algorithm, ranks);
                assert!(
                    bytes <= most,
                    "{algorithm} {op} at {ranks}: {bytes}, at most {most}"
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 35, "{compared}");
}
