//! With whom a call exchanges data: the pairs of ranks whose slots change hands as it begins
//! ([`Peer::swap_slots`](super::peer::Peer::swap_slots)).
//!
//! Both ranks of a pair must come to the same answer, each from its own program: so it hangs on what they put each other
//! alone, which both know, and on nothing that one does by itself.

use unisono_plan::{Action, Geometry, Op, Program, ir};

use crate::arena::INLINE;

/// The ranks to which a program puts data that takes room, and which put it some, in order.
///
/// Not of a call with a root: there signals may be owed beyond its end, and whoever only sends runs ahead by what credits
/// say. Nor of one whose puts all lie in their flags' lines.
///
/// Puts that are `shown`, of a program that shows some, lie elsewhere.
pub(crate) fn of(program: &Program, geometry: &Geometry, element: u64, shown: bool) -> Box<[u32]> {
    let exchanges = match program.op {
        Op::AllReduce | Op::ReduceScatter | Op::AllGather | Op::AllToAll => program.ranks > 1,
        _ => false,
    };
    if !exchanges {
        return Box::default();
    }
    // Of each rank the longest put to it, and the longest from it, among the first pieces.
    let mut longest = vec![[0, 0]; program.ranks as usize];
    let mut counter = ir::ProgramCounter::START;
    while let Some((step, piece)) = program.seek(&mut counter, 1) {
        let put = match &step.action {
            Action::Put { to, value } => Some((*to, program.rank, 0, value.blocks())),
            Action::Wait { from, blocks } => Some((*from, *from, 1, *blocks)),
            _ => None,
        };
        let put = put.filter(|&(_, from, _, blocks)| !(shown && program.shows(from, blocks)));
        if let Some((rank, _, way, blocks)) = put {
            let known = &mut longest[rank as usize][way];
            *known = (*known).max(geometry.packed(blocks, piece) * element);
        }
        program.pass(&mut counter);
    }
    let takes_room = |[to, from]: [u64; 2]| to.min(from) > 0 && to.max(from) > INLINE;
    (longest.into_iter().zip(0..))
        .filter(|(bytes, _)| takes_room(*bytes))
        .map(|(_, rank)| rank)
        .collect()
}
