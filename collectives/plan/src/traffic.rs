//! What a plan moves from rank to rank.

use std::collections::BTreeMap;

use crate::geometry::Geometry;
use crate::ir::{Action, Place, Program, Value};

/// Elements from one rank to another.
pub type Traffic = BTreeMap<(u32, u32), u64>;

/// Adds what a program moves, with the message cut as `geometry` says: what it puts, and what it
/// reads and writes in windows. Signals move nothing.
///
/// Linear in the program's length, loops unrolled.
pub fn add_traffic(traffic: &mut Traffic, program: &Program, geometry: &Geometry) {
    let me = program.rank;
    let mut add = |from, to, place| self::add(traffic, geometry, (from, to), place);
    let read = |place: Place| match place {
        Place::Peer { rank, .. } => Some((rank, place)),
        _ => None,
    };
    for step in program.walk() {
        let (operands, written) = match step.action {
            Action::Copy { dst, src } => ([Some(src), None], Some(dst)),
            Action::Reduce { dst, a, b, .. } => ([Some(a), Some(b)], Some(dst)),
            Action::Put { to, value } => {
                let operands = match value {
                    Value::Empty => [None, None],
                    Value::Copy(place) => [Some(place), None],
                    Value::Reduce { a, b, .. } => [Some(a), Some(b)],
                };
                if let Some(place) = operands[0] {
                    add(me, to, place);
                }
                (operands, None)
            }
            Action::Wait { .. } | Action::Release { .. } => ([None, None], None),
        };
        for (rank, place) in operands.into_iter().flatten().filter_map(read) {
            add(rank, me, place);
        }
        if let Some((rank, place)) = written.and_then(read) {
            add(me, rank, place);
        }
    }
}

/// The same of a program whose puts are [shown](crate::ir): these move nothing until they are read, and then what is read.
pub fn add_shown_traffic(traffic: &mut Traffic, program: &Program, geometry: &Geometry) {
    for step in program.walk() {
        let operands = match step.action {
            Action::Copy { src, .. } => [Some(src), None],
            Action::Reduce { a, b, .. } => [Some(a), Some(b)],
            Action::Put { .. } | Action::Wait { .. } | Action::Release { .. } => [None, None],
        };
        for place in operands.into_iter().flatten() {
            if let Place::Slot { from, .. } = place {
                add(traffic, geometry, (from, program.rank), place);
            }
        }
    }
}

/// Adds the elements of a place, in all pieces.
fn add(traffic: &mut Traffic, geometry: &Geometry, pair: (u32, u32), place: Place) {
    let of_piece = |piece: u64| geometry.packed(place.blocks(), piece);
    let elements = (0..geometry.pieces()).map(of_piece);
    let sum = traffic.entry(pair).or_default();
    *sum = elements.fold(*sum, u64::saturating_add);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{Algorithm, Shape, generate};
    use crate::geometry::Sizes;
    use crate::ir::Op;

    fn of(algorithm: Algorithm, op: Op, windowed: bool, count: u64) -> Traffic {
        let mut traffic = Traffic::new();
        for rank in 0..4 {
            let program = generate(
                algorithm,
                &Shape {
                    op,
                    ranks: 4,
                    rank,
                    windowed,
                    turns: false,
                },
            );
            let program = program.unwrap();
            let geometry = Geometry::of(&program, Sizes::Equal(count)).unwrap();
            let geometry = geometry.in_pieces(3).unwrap();
            match algorithm.shows_puts() {
                true => add_shown_traffic(&mut traffic, &program, &geometry),
                false => add_traffic(&mut traffic, &program, &geometry),
            }
        }
        traffic
    }

    #[test]
    fn a_ring_uses_one_way_and_a_mesh_all() {
        let ring = of(Algorithm::Ring, Op::AllGather, false, 4000);
        let busy = ring.iter().filter(|(_, elements)| **elements > 0);
        let busy: Vec<(u32, u32)> = busy.map(|(pair, _)| *pair).collect();
        assert_eq!(busy, [(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(ring[&(1, 2)], 3000, "all blocks but the receiver's own");
        let mesh = of(Algorithm::MeshTwoShot, Op::AllReduce, false, 4000);
        assert_eq!(mesh.len(), 12);
        assert!(mesh.values().all(|elements| *elements == 2000), "{mesh:?}");
    }

    #[test]
    fn of_what_is_shown_counts_what_is_read() {
        let shown = of(Algorithm::MeshShared, Op::AllReduce, false, 4000);
        let other = of(Algorithm::MeshTwoShot, Op::AllReduce, false, 4000);
        assert_eq!(
            shown, other,
            "a block of each input, and the result of each"
        );
    }

    #[test]
    fn what_is_read_and_written_in_windows_counts() {
        let windows = of(Algorithm::MeshTwoShot, Op::AllReduce, true, 4000);
        let busy = windows.values().filter(|elements| **elements > 0);
        assert_eq!(busy.sum::<u64>(), 12 * 2000, "{windows:?}");
    }
}
