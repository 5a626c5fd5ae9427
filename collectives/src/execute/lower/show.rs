//! Puts that are shown: what lowering makes of them.

use unisono_plan::Value;

use super::Lowering;
use crate::execute::op::Op;
use crate::execute::peer::{Line, Way};
use crate::execute::place::Resolved;

impl Lowering<'_> {
    /// A put that is shown. The first of its group writes it, and tells all; with each of them its peer's bell is rung.
    pub(super) fn show(&mut self, op: &Op, to: u32, value: &Value, piece: u64) {
        let (own, me) = (self.own, self.own.rank as usize);
        let bytes = op.planned.packed(value.blocks(), piece);
        let (place, line) = self.peers[me].shows_next(&own, bytes);
        let is_first = self.peers[me].begins_group(&own);
        let raised = match is_first {
            true => {
                self.signal_late();
                for other in (0..own.arena.ranks).filter(|other| *other != own.rank) {
                    let rooms = self.peers[other as usize].rooms_to_show(&own, bytes);
                    self.await_credits(other, rooms);
                }
                self.write_shown(op, place, value, piece);
                line
            }
            false => self.peers[me].nobodys(&own),
        };
        let peer = &mut self.peers[to as usize];
        peer.sent += 1;
        peer.signed = self.number;
        let bell = match peer.way {
            Way::Mapped { bell, .. } => bell,
            Way::Own | Way::Posted(_) => 0,
        };
        if !is_first && bell == 0 {
            return;
        }
        let Line { flag, counter } = raised;
        // With each group, as some peer may have heard nothing of this call.
        let words = is_first.then(|| op.words_to(to));
        self.stream.signal(flag, counter, bell, words);
    }

    fn write_shown(&mut self, op: &Op, place: u64, value: &Value, piece: u64) {
        let dst = Resolved::packed(place, value.blocks());
        match value {
            Value::Empty => {}
            Value::Copy(src) => {
                let src = self.resolve(op, src, piece);
                self.copy(op, &dst, &src, piece, false);
            }
            Value::Reduce { a, b, last } => self.reduce(op, &dst, [a, b], [*last, false], piece),
        }
    }
}
