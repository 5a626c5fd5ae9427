//! Puts that the receiver fetches: what lowering makes of the waits for them.
//!
//! Behind the wait the bytes are copied from the sender's slot to this rank's, and all that comes is as if the sender had
//! written them. But a put that is only copied to its place is copied there at once, from the sender's slot.
//!
//! A device that reads from one peer after the other uses one link at a time. So waits for large puts that follow each
//! other, with nothing but this rank's own work between them, come first, then all their copies, by which a device reads
//! over all of its links at once.
//!
//! *Why nobody waits for ever so.* What such a group holds back are releases of its own puts, one for each peer, of which
//! all others were given back before it. Take an order in which all ranks run the plan with the two slots of the
//! verifier's proof. What a wait of the group needs comes before that wait in it, hence before the second next put of any
//! peer of the group can have been waited for here, and needs of a peer at most the two puts that come behind its put in
//! the group. With three slots or more, which is asked for, those need no release that is held back. So what was proved
//! to go on goes on. The verifier proves as much of every plan, by running it so (`Settings::early_waits`).

use unisono_plan::{Action, Place, Step, Value, ir};

use super::{Lowering, TOGETHER, WORTH, is_past};
use crate::execute::op::Op;
use crate::execute::peer::Lies;

/// Steps that are looked at for what becomes of a put. In a program that has more between its wait and its release it
/// lies in this rank's slot meanwhile.
const SIGHT: usize = 64;
/// Puts that a channel holds at least where releases are held back: see above.
const ROOM: u32 = 3;

/// A put that is fetched.
struct Put {
    from: u32,
    bytes: u64,
    /// Its wait.
    wait: ir::Cursor,
    taken: Taken,
    /// The copy that is made of it can come at once.
    at_once: bool,
}

/// What is done with a put between its wait and its release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing: it need not be read.
    Not,
    /// One copy is made of it, to a place of this rank's: by this step.
    Once(ir::Cursor),
    /// It is an operand, or is copied several times, or nobody looked so far.
    Often,
}

/// What is fetched together.
#[derive(Default)]
struct Group {
    puts: Vec<Put>,
    /// The copies that come at once, in their order.
    copies: Vec<Step>,
}

impl Group {
    fn of(&mut self, from: u32) -> Option<&mut Put> {
        self.puts.iter_mut().find(|put| put.from == from)
    }
}

impl Lowering<'_> {
    /// At a wait for a put that this rank fetches, or the first of several: writes the waits and the copies.
    pub(super) fn fetch(&mut self, op: &Op, first: &Step, at: ir::Cursor, piece: u64) {
        let Action::Wait { from, blocks } = first.action else {
            return;
        };
        let peer = &self.peers[from as usize];
        if !peer.is_fetched() || peer.early {
            return;
        }
        let is_signal = op.planned.packed(blocks, piece) == 0;
        if is_signal {
            return;
        }
        // A wait for a peer that waits for what was not told.
        self.signal_late();
        let group = self.group(op, first, at, piece);
        for put in &group.puts {
            let Some(Action::Wait { blocks, .. }) =
                op.planned.program.at(put.wait).map(|step| step.action)
            else {
                continue;
            };
            self.step = put.wait.number();
            self.await_data(op, put.from, blocks, piece);
            self.peers[put.from as usize].early = true;
        }
        let is_alone = group.puts.len() == 1;
        for put in &group.puts {
            let peer = &mut self.peers[put.from as usize];
            match put.taken {
                Taken::Not => {}
                Taken::Once(_) if put.at_once || is_alone => peer.lies = Lies::There,
                Taken::Once(_) | Taken::Often => {
                    let (slot, far) = (peer.current_slot(&self.own), peer.far_slot(&self.own));
                    self.stream.copy(slot, far, put.bytes);
                }
            }
        }
        for step in &group.copies {
            if let Action::Copy { dst, src } = &step.action
                && let Place::Slot { from, .. } = *src
            {
                let past = is_past(op, dst);
                let (dst, src) = (self.resolve(op, dst, piece), self.resolve(op, src, piece));
                self.copy(op, &dst, &src, piece, past);
                self.peers[from as usize].lies = Lies::Copied;
            }
        }
    }

    /// The put of a wait, and those of the waits that can come with it.
    fn group(&self, op: &Op, first: &Step, mut at: ir::Cursor, piece: u64) -> Group {
        let program = &op.planned.program;
        let mut group = Group::default();
        let takes_more = self.late.is_some() && self.own.arena.depth >= ROOM;
        // Whether all of this rank's work so far comes at once.
        let mut at_once = true;
        let mut next = Some(*first);
        while let Some(step) = next {
            if step.skew != first.skew {
                break;
            }
            let runs = piece < op.planned.geometry.pieces_of(&step.action, program.ranks);
            match &step.action {
                _ if !runs => {}
                Action::Wait { from, blocks } => {
                    let peer = &self.peers[*from as usize];
                    let bytes = op.planned.packed(*blocks, piece);
                    let joins = takes_more
                        && bytes >= WORTH
                        && peer.is_fetched()
                        && peer.holds_nothing()
                        && group.puts.len() < TOGETHER
                        && group.of(*from).is_none();
                    if !joins && !group.puts.is_empty() {
                        break;
                    }
                    group.puts.push(Put {
                        from: *from,
                        bytes,
                        wait: at,
                        taken: self.taken(op, *from, at, piece),
                        at_once: false,
                    });
                    if !joins {
                        break;
                    }
                }
                Action::Copy {
                    src: Place::Slot { from, .. },
                    ..
                } if at_once
                    && let Some(put) = group.of(*from)
                    && matches!(put.taken, Taken::Once(_)) =>
                {
                    put.at_once = true;
                    group.copies.push(step);
                }
                Action::Copy { .. } | Action::Reduce { .. } => at_once = false,
                Action::Release { from } if group.of(*from).is_some() => {}
                Action::Release { .. } | Action::Put { .. } => break,
            }
            next = program.follow(&mut at);
        }
        group
    }

    /// What is done with the put of a wait.
    pub(super) fn taken(&self, op: &Op, from: u32, wait: ir::Cursor, piece: u64) -> Taken {
        let program = &op.planned.program;
        let is_it =
            |place: &Place| matches!(place, Place::Slot { from: slot, .. } if *slot == from);
        let (mut at, mut taken) = (wait, Taken::Not);
        for _ in 0..SIGHT {
            let Some(step) = program.follow(&mut at) else {
                return Taken::Often;
            };
            if piece >= op.planned.geometry.pieces_of(&step.action, program.ranks) {
                continue;
            }
            match &step.action {
                Action::Release { from: released } if *released == from => return taken,
                Action::Wait { from: other, .. } if *other == from => return Taken::Often,
                Action::Copy { dst, src } if is_it(src) => {
                    if taken != Taken::Not || !matches!(dst, Place::Local { .. }) {
                        return Taken::Often;
                    }
                    taken = Taken::Once(at);
                }
                Action::Reduce { a, b, .. }
                | Action::Put {
                    value: Value::Reduce { a, b, .. },
                    ..
                } if is_it(a) || is_it(b) => return Taken::Often,
                Action::Put {
                    value: Value::Copy(src),
                    ..
                } if is_it(src) => return Taken::Often,
                _ => {}
            }
        }
        Taken::Often
    }
}
