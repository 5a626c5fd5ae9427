//! What a plan moves from rank to rank.

use std::collections::{BTreeMap, BTreeSet};

use crate::geometry::Geometry;
use crate::ir::{Action, Place, Program, Value};

/// Elements from one rank to another.
pub type Traffic = BTreeMap<(u32, u32), u64>;

/// Adds what a program moves, with the message cut as `geometry` says: what it puts, and what it
/// reads and writes in windows. Signals move nothing.
///
/// Linear in the program's length, loops unrolled.
///
/// Puts that are `shown`, of a program that [shows](crate::ir) some, move nothing until they are read, and then what is read.
pub fn add_traffic(traffic: &mut Traffic, program: &Program, geometry: &Geometry, shown: bool) {
    let me = program.rank;
    let is_shown = |from, blocks| shown && program.shows(from, blocks);
    // The ranks whose current put is a shown one.
    let mut showing = BTreeSet::new();
    let read = |place: Place, showing: &BTreeSet<u32>| match place {
        Place::Peer { rank, .. } => Some((rank, place)),
        Place::Slot { from, .. } if showing.contains(&from) => Some((from, place)),
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
                match operands[0] {
                    Some(place) if !is_shown(me, value.blocks()) => {
                        add(traffic, geometry, (me, to), place);
                    }
                    _ => {}
                }
                (operands, None)
            }
            Action::Wait { from, blocks } => {
                match is_shown(from, blocks) {
                    true => showing.insert(from),
                    false => showing.remove(&from),
                };
                continue;
            }
            Action::Release { .. } => continue,
        };
        for place in operands.into_iter().flatten() {
            if let Some((rank, place)) = read(place, &showing) {
                add(traffic, geometry, (rank, me), place);
            }
        }
        if let Some(place @ Place::Peer { rank, .. }) = written {
            add(traffic, geometry, (me, rank), place);
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
            add_traffic(&mut traffic, &program, &geometry, algorithm.shows_puts());
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
        for op in [Op::ReduceScatter, Op::AllToAll] {
            let [shown, other] = [Algorithm::MeshShared, Algorithm::MeshOneShot]
                .map(|algorithm| of(algorithm, op, false, 4000));
            assert_eq!(shown, other, "{op}: a block of each input");
        }
        let ring = of(Algorithm::RingShared, Op::AllReduce, false, 4000);
        assert_eq!(ring[&(1, 2)], 3000 + 1000, "sums on their way, and one");
        assert_eq!(ring[&(2, 1)], 1000, "one, that all read");
    }

    #[test]
    fn what_is_read_and_written_in_windows_counts() {
        let windows = of(Algorithm::MeshTwoShot, Op::AllReduce, true, 4000);
        let busy = windows.values().filter(|elements| **elements > 0);
        assert_eq!(busy.sum::<u64>(), 12 * 2000, "{windows:?}");
    }
}
