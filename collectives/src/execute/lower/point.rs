//! Long messages that lie in a window of their sender's: see [`crate::execute::pointed`].

use unisono_hal::CopyPieces;
use unisono_plan::{Action, Blocks, Buffer, Op as PlanOp, Place};

use super::{Lowering, Waiting, is_past};
use crate::execute::op::Op;
use crate::execute::pointed::Message;

impl Lowering<'_> {
    /// Before the first signal of a message: says where it lies.
    pub(super) fn point(&mut self, op: &Op, to: u32) {
        let peer = &self.peers[to as usize];
        if op.planned.says_where() && peer.may_point() {
            let told = op.ends.as_deref().unwrap_or_else(|| peer.says());
            self.tell(to, told);
        }
    }

    /// Behind all that is put of a message: where it lies in a window, until it was copied.
    pub(super) fn await_taken(&mut self, op: &Op) {
        let PlanOp::Send { to } = op.planned.program.op else {
            return;
        };
        if op.planned.windowed {
            let peer = &mut self.peers[to as usize];
            let credits = peer.skip_sent(&self.own);
            let beside = self.deferred.is_some();
            peer.await_credits(&self.own, self.stream, credits, beside);
            // The last of the waits: credits of earlier messages may come before.
            self.waiting.push_back(Waiting {
                command: self.emitted + self.stream.len() as u64 - 1,
                peer: to,
                step: Some(self.step),
            });
        }
    }

    /// Whether a step hangs on where the message lies, which its sender has not said yet.
    pub(super) fn hangs_on_message(&self, op: &Op, action: &Action) -> bool {
        matches!(op.message, Message::Untold)
            && op.planned.says_where()
            && !matches!(action, Action::Wait { .. })
            && matches!(op.planned.program.op, PlanOp::Recv { from } if self.peers[from as usize].may_point())
    }

    /// Copies a message from a window.
    pub(super) fn copy_message(&mut self, op: &Op, address: u64) {
        let out = Place::Local {
            buffer: Buffer::Out,
            blocks: Blocks::new(0, op.planned.program.blocks),
        };
        let bytes = op.planned.bytes_of_buffer();
        self.settle(op.output, bytes);
        self.stream.copy_strided(&CopyPieces {
            dst: op.output,
            src: address,
            bytes,
            repeat: 1,
            dst_stride: 0,
            src_stride: 0,
            streaming: is_past(op, &out),
        });
    }

    /// Gives such a message back, and tells how long it `took`.
    pub(super) fn give_message_back(&mut self, op: &Op, took: [u64; 3]) {
        if let PlanOp::Recv { from } = op.planned.program.op {
            let peer = &mut self.peers[from as usize];
            peer.skip_received(&self.own);
            peer.release_with(&self.own, self.stream, Some(took));
        }
    }
}
