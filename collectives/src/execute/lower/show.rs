//! Puts that are shown: what lowering makes of them.

use unisono_plan::Value;

use super::Lowering;
use crate::execute::op::Op;
use crate::execute::place::Resolved;

impl Lowering<'_> {
    /// Before a put that is shown is told of: writes it, for all, if it is the first of its group.
    pub(super) fn show(&mut self, op: &Op, to: u32, value: &Value, piece: u64) {
        let (own, me) = (self.own, self.own.rank as usize);
        let shown = self.peers[me].shown;
        self.peers[me].has_shown(&own, false);
        let Some(slot) = own.shown_slot(self.peers[to as usize].near, shown) else {
            return;
        };
        self.signal_late();
        for other in (0..own.arena.ranks).filter(|other| *other != own.rank) {
            self.await_credits(other, own.arena.depth);
        }
        let dst = Resolved::packed(slot, value.blocks());
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
