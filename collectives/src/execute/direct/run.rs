//! Running moves.
#![allow(
    unsafe_code,
    reason = "copies, combines and raises flags at the addresses of calls and arenas"
)]

use unisono_hal::{Cpu, Reduce};

use super::{Direct, Move, Space, Spot, flag};
use crate::arena::Counter;
use crate::execute::op::Op;
use crate::execute::peer::{Own, Peer, Way};

/// A call that runs directly.
#[derive(Debug, Default)]
pub(in crate::execute) struct Running {
    /// The next move.
    next: usize,
    /// Where the put lies that is being filled.
    fill: u64,
}

/// What running came to.
#[derive(Debug)]
pub(in crate::execute) enum Ran {
    /// All moves are done.
    Done,
    /// A peer has not come so far; whether there was any progress.
    Waits(bool),
    /// The plugin does not combine elements that it said it supports.
    Failed(unisono_hal::Error),
}

/// What a wait in the stream does in place of the move that waits.
pub(in crate::execute) enum Handed {
    /// The move is done once the stream has waited.
    Done,
    /// It is to be run again then.
    Again,
}

/// The lane's part.
pub(in crate::execute) struct Around<'a> {
    pub own: Own,
    pub peers: &'a mut [Peer],
    pub cpu: &'a Cpu,
    /// The number of the op, to tell the first signal between two ranks.
    pub number: u64,
    pub scratch: u64,
    /// Bells to ring for flags that were raised; empty between runs.
    pub bells: &'a mut Vec<u64>,
}

impl Running {
    /// Goes on until all is done or a peer is to be waited for.
    pub(in crate::execute) fn run(&mut self, op: &Op, direct: &Direct, around: Around<'_>) -> Ran {
        let mut around = around;
        let before = self.next;
        let ran = self.moves(op, direct, &mut around);
        if !around.bells.is_empty() {
            // SAFETY: bells of peers whose memory the lane keeps imported.
            unsafe { around.cpu.ring(around.bells) };
            around.bells.clear();
        }
        match ran {
            Ran::Waits(_) => Ran::Waits(self.next != before),
            other => other,
        }
    }

    fn moves(&mut self, op: &Op, direct: &Direct, around: &mut Around<'_>) -> Ran {
        while let Some(next) = direct.0.get(self.next) {
            match *next {
                Move::Begin { to, bytes } => match around.begin(to, bytes) {
                    Some(fill) => self.fill = fill,
                    None => return Ran::Waits(false),
                },
                Move::Raise { to } => around.raise(op, to),
                Move::Wait {
                    from,
                    bytes,
                    blocks,
                } => {
                    if !around.wait(op, from) {
                        return Ran::Waits(false);
                    }
                    around.peers[from as usize].take(blocks, u64::from(bytes));
                }
                Move::Release { from } => around.release(from),
                Move::Copy { dst, src, bytes } => {
                    let (dst, src) = (self.at(op, around, dst), self.at(op, around, src));
                    if dst != src {
                        // SAFETY: the call's buffers, scratch and slots, which are plain memory here;
                        // the plan's verifier has shown that nothing else uses the destination now.
                        // Two places of one plan are equal or apart.
                        unsafe {
                            std::ptr::copy_nonoverlapping(
                                src as usize as *const u8,
                                dst as usize as *mut u8,
                                bytes as usize,
                            );
                        }
                    }
                }
                Move::Reduce {
                    dst,
                    a,
                    b,
                    elements,
                    last,
                } => {
                    let planned = &op.planned;
                    let reduce = Reduce {
                        dst: self.at(op, around, dst),
                        a: self.at(op, around, a),
                        b: self.at(op, around, b),
                        elements: u64::from(elements),
                        repeat: 1,
                        dst_stride: 0,
                        a_stride: 0,
                        b_stride: 0,
                        dtype: planned.dtype,
                        reduction: planned.reduction,
                        divisor: if last { planned.divisor } else { 0 },
                        streaming: false,
                    };
                    // SAFETY: as above.
                    if let Err(error) = unsafe { around.cpu.reduce(&reduce) } {
                        return Ran::Failed(error);
                    }
                }
            }
            self.next += 1;
        }
        Ran::Done
    }

    #[inline]
    fn at(&self, op: &Op, around: &Around<'_>, spot: Spot) -> u64 {
        let base = match spot.space() {
            Space::In => op.input,
            Space::Out => op.output,
            Space::Scratch => around.scratch,
            Space::Fill => self.fill,
            Space::Slot(rank) => around.peers[rank as usize].current_slot(&around.own),
        };
        base + spot.offset()
    }

    /// The wait at which the run stands, as what the stream is to do: `write` puts it into a batch.
    pub(in crate::execute) fn hand_over(
        &mut self,
        direct: &Direct,
        write: impl FnOnce(Pending) -> Handed,
    ) {
        let pending = match direct.0.get(self.next) {
            Some(Move::Begin { to, bytes }) => Pending::Credits {
                to: *to,
                bytes: u64::from(*bytes),
            },
            Some(Move::Wait {
                from,
                bytes,
                blocks,
            }) => Pending::Data {
                from: *from,
                blocks: *blocks,
                bytes: u64::from(*bytes),
            },
            _ => return,
        };
        if let Handed::Done = write(pending) {
            self.next += 1;
        }
    }
}

/// What a run waits for.
pub(in crate::execute) enum Pending {
    /// Room for a put of so many bytes.
    Credits { to: u32, bytes: u64 },
    /// A put.
    Data {
        from: u32,
        blocks: unisono_plan::Blocks,
        bytes: u64,
    },
}

impl Around<'_> {
    /// Where a put is to be filled, once there is room.
    #[inline]
    fn begin(&mut self, to: u32, bytes: u32) -> Option<u64> {
        let own = &self.own;
        let peer = &mut self.peers[to as usize];
        let inline = peer.is_inline(u64::from(bytes));
        if let Some(credits) = peer.lacks_credits(own, inline) {
            let home = peer.near.signal_host;
            let flag = home + own.arena.credit_flag(to);
            let counter = home + own.arena.counter(to, Counter::CreditWait);
            // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
            if !unsafe { flag::pass(flag, counter, credits - peer.credits(), None) } {
                return None;
            }
            peer.have_credits(credits);
        }
        Some(peer.next_slot(own, inline))
    }

    #[inline]
    fn raise(&mut self, op: &Op, to: u32) {
        let own = &self.own;
        let peer = &mut self.peers[to as usize];
        let Way::Mapped { signal, bell, .. } = peer.way else {
            unreachable!("only mapped peers are reached directly");
        };
        let number = peer.next_flag(own);
        let words = (peer.signed != self.number).then(|| op.words_to(to));
        peer.signed = self.number;
        peer.sent += 1;
        let flag = signal + own.arena.data_flag(own.rank, number);
        let counter = peer.near.signal_host + own.arena.counter(to, Counter::DataSignal(number));
        // SAFETY: the flag is in the peer's arena, which the lane keeps imported; else as above.
        unsafe { flag::raise(flag, counter, words) };
        self.note(bell);
    }

    #[inline]
    fn wait(&mut self, op: &Op, from: u32) -> bool {
        let own = &self.own;
        let peer = &mut self.peers[from as usize];
        let number = peer.next_data(own);
        let words = (peer.compared != self.number).then(|| op.words_from(from));
        let home = peer.near.signal_host;
        let flag = home + own.arena.data_flag(from, number);
        let counter = home + own.arena.counter(from, Counter::DataWait(number));
        // SAFETY: as in `begin`.
        let passed = unsafe { flag::pass(flag, counter, 1, words) };
        if passed {
            peer.compared = self.number;
        }
        passed
    }

    #[inline]
    fn release(&mut self, from: u32) {
        let own = &self.own;
        let peer = &mut self.peers[from as usize];
        if !peer.give_back(own) {
            return;
        }
        let Way::Mapped { signal, bell, .. } = peer.way else {
            unreachable!("only mapped peers are reached directly");
        };
        let flag = signal + own.arena.credit_flag(own.rank);
        let counter = peer.near.signal_host + own.arena.counter(from, Counter::CreditSignal);
        // SAFETY: as in `raise`.
        unsafe { flag::raise(flag, counter, None) };
        self.note(bell);
    }

    #[inline]
    fn note(&mut self, bell: u64) {
        if bell != 0 {
            self.bells.push(bell);
        }
    }
}
