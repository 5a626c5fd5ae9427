//! Puts of posted links that land where they are to be copied to.
//!
//! A put lies in a slot, from which it is mostly copied to its place, once. Where the link can, it is told of that place
//! before the put comes: then nothing is copied. It may come long before the stream has come to the wait for it. So the
//! place must be free from now on: nothing that was called before is still under way, and no step of the plan that is
//! before the copy touches it. Pieces lie beside each other, and are all alike: one is looked at.
//!
//! After a failure nothing lands any more: links are aborted before anybody hears of it.

use unisono_plan::{Action, Buffer, Place, Step, Value, ir};

use super::Lowering;
use super::fetch::Taken;
use crate::execute::op::Op;
use crate::execute::peer::Lies;
use crate::execute::place::{Run, merged};

/// Shorter puts are copied as fast.
const WORTH: u64 = 8 << 10;
/// Plans of more steps are not looked at: it takes the square of them.
const STEPS: usize = 256;

/// What is known of the places of one op's puts, by the number of the wait.
#[derive(Debug, Default)]
pub(in crate::execute) struct Lands(Vec<Option<bool>>);

impl Lands {
    /// At an op's start: whether anything may land at its place before the stream has come to it.
    pub(in crate::execute) fn begin(&mut self, op: &Op, is_alone: bool) {
        let planned = &op.planned;
        let steps = planned.program.len();
        let is_free = is_alone
            && op.before.is_empty()
            && op.aside.is_none()
            && !planned.scaled
            && !planned.windowed
            && !planned.reads
            && steps <= STEPS;
        self.0.clear();
        self.0.resize(if is_free { steps } else { 0 }, None);
    }
}

impl Lowering<'_> {
    /// At a wait for a put that a link brings: lets it land at its place, if that is free.
    pub(super) fn land(&mut self, op: &Op, step: &Step, at: ir::Cursor, piece: u64) {
        let Action::Wait { from, blocks } = step.action else {
            return;
        };
        let number = at.number() as usize;
        let known = self.lands.as_ref().and_then(|lands| lands.0.get(number));
        let Some(known) = known.copied().filter(|known| *known != Some(false)) else {
            return;
        };
        let peer = &self.peers[from as usize];
        let bytes = op.planned.packed(blocks, piece);
        if bytes < WORTH || !peer.can_land() || !peer.holds_nothing() {
            return;
        }
        let place = match self.taken(op, from, at, piece) {
            Taken::Once(copy) => self.place_of(op, copy, blocks, piece),
            Taken::Not | Taken::Often => None,
        };
        let free = place.filter(|(copy, place)| {
            place.bytes == bytes && (known.is_some() || self.is_free(op, *copy, *place, piece))
        });
        if let Some(lands) = &mut self.lands {
            lands.0[number] = Some(free.is_some());
        }
        let Some((_, place)) = free else { return };
        if self.peers[from as usize].land(&self.own, place.address, bytes) {
            self.peers[from as usize].lies = Lies::Copied;
        }
    }

    /// The place to which a step copies a put of these blocks, if it takes the whole to one run.
    fn place_of(
        &self,
        op: &Op,
        copy: ir::Cursor,
        blocks: unisono_plan::Blocks,
        piece: u64,
    ) -> Option<(ir::Cursor, Run)> {
        let Action::Copy {
            dst,
            src: Place::Slot { blocks: taken, .. },
        } = op.planned.program.at(copy)?.action
        else {
            return None;
        };
        if taken != blocks || !is_of_callers(&dst) {
            return None;
        }
        let dst = self.resolve(op, &dst, piece);
        let (mut runs, mut place) = (0, Run::NONE);
        merged(&op.planned, [&dst], piece, |[address], bytes| {
            (runs, place) = (runs + 1, Run { address, bytes });
        });
        (runs == 1).then_some((copy, place))
    }

    /// Whether no step before the copy touches the place.
    fn is_free(&self, op: &Op, copy: ir::Cursor, place: Run, piece: u64) -> bool {
        let program = &op.planned.program;
        let Some(last) = program.at(copy) else {
            return false;
        };
        let leg = program.leg_of(copy).number();
        let is_before =
            |step: &Step, at: u32| at < leg || (step.skew, at) < (last.skew, copy.number());
        let mut at = ir::Cursor::START;
        while let Some(step) = program.at(at) {
            if step.begins && at.number() > copy.number() {
                break;
            }
            if is_before(&step, at.number()) && self.touches(op, &step.action, place, piece) {
                return false;
            }
            program.advance(&mut at);
        }
        true
    }

    fn touches(&self, op: &Op, action: &Action, place: Run, piece: u64) -> bool {
        let is_touched = |of: &Place| {
            let mut touched = false;
            if is_of_callers(of) {
                let of = self.resolve(op, of, piece);
                merged(&op.planned, [&of], piece, |[address], bytes| {
                    let (end, far) = (address + bytes, place.address + place.bytes);
                    touched |= address < far && place.address < end;
                });
            }
            touched
        };
        match action {
            Action::Copy { dst, src } => is_touched(dst) || is_touched(src),
            Action::Reduce { dst, a, b, .. } => [dst, a, b].into_iter().any(is_touched),
            Action::Put { value, .. } => match value {
                Value::Empty => false,
                Value::Copy(src) => is_touched(src),
                Value::Reduce { a, b, .. } => is_touched(a) || is_touched(b),
            },
            Action::Wait { .. } | Action::Release { .. } => false,
        }
    }
}

/// Whether a place is in the caller's buffers.
fn is_of_callers(place: &Place) -> bool {
    matches!(place, Place::Local { buffer, .. } if *buffer != Buffer::Scratch)
}
