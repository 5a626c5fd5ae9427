//! Blocks and pieces partition the message exactly, whatever its size.

use std::sync::Arc;

use proptest::prelude::*;
use unisono_plan::geometry::{GeometryError, Sizes};
use unisono_plan::template::{Ring, Rings};
use unisono_plan::{Algorithm, Blocks, Geometry, Op, Shape, Shares, Template, generate};

/// Small counts, and counts far beyond 4 GiB.
fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![0..100u64, 0..1_000_000u64, any::<u64>()]
}

fn shares(blocks: u32) -> impl Strategy<Value = Shares> {
    let weights = proptest::collection::vec(0..=u64::from(u32::MAX), blocks as usize);
    let weighted = weights.prop_map(|weights| {
        let mut sum = 0;
        let mut ends: Vec<u64> = weights
            .into_iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        if let Some(last) = ends.last_mut() {
            *last = (*last).max(1);
        }
        Shares::Cumulative(ends.into())
    });
    prop_oneof![Just(Shares::Equal), weighted]
}

prop_compose! {
    fn geometries()(count in counts(), blocks in 1..40u32)
        (count in Just(count), blocks in Just(blocks), pieces in 1..20u64, shares in shares(blocks))
        -> Geometry {
        Geometry::new(count, blocks, shares, pieces).unwrap()
    }
}

proptest! {
    #[test]
    fn blocks_partition_the_message(g in geometries()) {
        let mut at = 0;
        for block in 0..g.blocks() {
            let range = g.block(block);
            prop_assert_eq!(range.start, at);
            prop_assert!(range.end >= at);
            at = range.end;
        }
        prop_assert_eq!(at, g.count());
        prop_assert!(g.block(g.blocks()).is_empty());
    }

    #[test]
    fn pieces_partition_each_block(g in geometries()) {
        for block in 0..g.blocks() {
            let whole = g.block(block);
            let mut at = whole.start;
            for piece in 0..g.pieces() {
                let range = g.piece(block, piece);
                prop_assert_eq!(range.start, at);
                at = range.end;
            }
            prop_assert_eq!(at, whole.end);
            prop_assert!(g.piece(block, g.pieces()).is_empty());
        }
    }

    #[test]
    fn equal_blocks_differ_by_one_element(count in counts(), blocks in 1..300u32) {
        let g = Geometry::new(count, blocks, Shares::Equal, 1).unwrap();
        for block in 0..blocks {
            let range = g.block(block);
            let (size, floor) = (range.end - range.start, count / u64::from(blocks));
            prop_assert!(size == floor || size == floor + 1);
        }
    }

    #[test]
    fn packed_blocks_lie_one_after_the_other(g in geometries(), first in 0..40u32, n in 0..40u32) {
        let first = first.min(g.blocks());
        let blocks = Blocks::new(first, n.min(g.blocks() - first));
        for piece in 0..g.pieces() {
            let mut at = 0;
            for (position, block) in (0..).zip(blocks.iter(g.section())) {
                prop_assert_eq!(g.packed_offset(blocks, position, piece), at);
                at += g.packed(Blocks::one(block), piece);
            }
            prop_assert_eq!(g.packed(blocks, piece), at);
            prop_assert!(at <= g.room(blocks.count));
        }
    }

    #[test]
    fn puts_fit_into_their_slots(
        count in counts(),
        ranks in 1..40u32,
        bytes in prop_oneof![Just(1u32), Just(2), Just(4), Just(8)],
        slot in 1024..10_000_000u64,
    ) {
        // Cutting fewer than 2^64 elements into slots takes fewer than 2^64 pieces.
        for algorithm in [Algorithm::MeshTwoShot, Algorithm::HalvingDoubling, Algorithm::Ring] {
            let mut pieces = None;
            for rank in 0..ranks {
                let shape = Shape { op: Op::AllReduce, ranks, rank, windowed: false, turns: false, };
                let program = generate(algorithm, &shape).unwrap();
                let g = Geometry::for_program(&program, Sizes::Equal(count), bytes, slot).unwrap();
                prop_assert_eq!(*pieces.get_or_insert(g.pieces()), g.pieces(), "ranks agree");
                let room = g.room(program.max_put_blocks);
                prop_assert!(u128::from(room) * u128::from(bytes) <= u128::from(slot));
            }
        }
    }
}

#[test]
fn a_small_message_is_one_piece() {
    let shape = Shape {
        op: Op::AllReduce,
        ranks: 4,
        rank: 0,
        windowed: false,
        turns: false,
    };
    let program = generate(Algorithm::MeshTwoShot, &shape).unwrap();
    let pieces = |count| {
        let cut = Geometry::for_program(&program, Sizes::Equal(count), 4, 1024);
        cut.unwrap().pieces()
    };
    assert_eq!([0, 1024, 1025].map(pieces), [1, 1, 2]);
}

/// Two cycles, each with a section of its own, of blocks that are not all as large.
#[test]
fn blocks_in_scratch_lie_beside_each_other_also_over_sections() {
    let cycle = |by: u32| Ring::new((0..5).map(|at| at * by % 5).collect::<Vec<_>>(), 1).unwrap();
    let rings = Rings::new([cycle(1), cycle(1), cycle(2)]).unwrap();
    let template = Template::Rings(Arc::new(rings));
    for rank in 0..5 {
        let shape = Shape {
            op: Op::ReduceScatter,
            ranks: 5,
            rank,
            windowed: false,
            turns: false,
        };
        let program = template.generate(&shape).unwrap();
        let scratch = program.scratch;
        assert!(scratch.count > program.section, "it needs several sections");
        let g = Geometry::of(&program, Sizes::Equal(67)).unwrap();
        let mut at = 0;
        for name in scratch.first..scratch.end() {
            assert_eq!(g.scratch_offset(scratch, name, 0), at, "block {name}");
            at += g.packed(Blocks::one(name), 0);
        }
    }
}

#[test]
fn impossible_cuts_are_refused() {
    let nothing = Geometry::new(1, 0, Shares::Equal, 1);
    assert!(matches!(nothing, Err(GeometryError::Nothing { .. })));
    let nothing = Geometry::new(1, 1, Shares::Equal, 0);
    assert!(matches!(nothing, Err(GeometryError::Nothing { .. })));
    for ends in [vec![], vec![1], vec![2, 1], vec![0, 0]] {
        let shares = Shares::Cumulative(Arc::from(ends));
        let refused = Geometry::new(1, 2, shares, 1);
        assert!(matches!(refused, Err(GeometryError::Shares { .. })));
    }
    let g = Geometry::new(1000, 4, Shares::Equal, 1).unwrap();
    let refused = g.pieces_for(4, 8, 31);
    assert!(matches!(refused, Err(GeometryError::SlotTooSmall { .. })));
}
