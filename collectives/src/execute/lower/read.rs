//! Plans whose ranks read each other's buffers: where these are is told by the first signal between two ranks.
//!
//! A put of nothing leaves room in its flag's line, and a plan that reads begins with such puts. So the two addresses
//! lie there, behind the words. Who waits for the signal keeps them for the rest of the call, as the line is soon
//! another put's.

use unisono_hal::Read;
use unisono_plan::{Blocks, Buffer, Place};

use super::Lowering;
use crate::execute::op::{Op, PEER_ENDS};
use crate::execute::peer::Room;
use crate::execute::place::{Resolved, merged};

/// Bytes of a rank's two addresses: of its input and its output.
const TOLD: u64 = PEER_ENDS;

impl Lowering<'_> {
    /// Before the first signal to a peer: tells it where this rank's buffers are.
    pub(super) fn tell_ends(&mut self, op: &Op, to: u32) {
        if let Some(ends) = op.ends.as_ref().filter(|_| !op.planned.points) {
            self.tell(to, ends);
        }
    }

    /// Two words into the flag's line of the next signal to a peer, which outlive the op.
    pub(super) fn tell(&mut self, to: u32, words: &[u64; 2]) {
        let line = self.peers[to as usize].next_slot(&self.own, Room::Line);
        self.stream.copy(line, words.as_ptr() as u64, TOLD);
    }

    /// Behind the first signal of a peer: keeps what it told.
    pub(super) fn keep_ends(&mut self, op: &Op, from: u32) {
        if op.planned.reads {
            let line = self.peers[from as usize].current_line(&self.own);
            self.stream.copy(self.told(op, from), line, TOLD);
        }
    }

    /// Copies blocks of a peer's buffer.
    pub(super) fn read(
        &mut self,
        op: &Op,
        dst: &Resolved,
        (rank, buffer, blocks): (u32, Buffer, Blocks),
        piece: u64,
    ) {
        let planned = &op.planned;
        let process = self.peers[rank as usize].process;
        let base = match buffer {
            Buffer::In => self.told(op, rank),
            _ => self.told(op, rank) + TOLD / 2,
        };
        // Its addresses are offsets from there.
        let src = Resolved::buffer(planned, 0, rank, buffer, blocks);
        merged(planned, [dst, &src], piece, |[dst, offset], bytes| {
            self.settle(dst, bytes);
            self.stream.read(&Read {
                process,
                base,
                offset,
                dst,
                bytes,
            });
        });
    }

    /// An operand of a reduction: where it lies, or where it has been read to.
    pub(super) fn operand(&mut self, op: &Op, place: &Place, operand: u32, piece: u64) -> Resolved {
        match *place {
            Place::Peer {
                rank,
                buffer,
                blocks,
            } if op.planned.reads => {
                let dst = self.scratch + op.planned.operand_offset(operand);
                let dst = Resolved::packed(dst, blocks);
                self.read(op, &dst, (rank, buffer, blocks), piece);
                dst
            }
            _ => self.resolve(op, place, piece),
        }
    }

    /// Where this rank keeps what a peer told.
    fn told(&self, op: &Op, rank: u32) -> u64 {
        self.scratch + op.planned.told_offset() + TOLD * u64::from(rank)
    }
}
