//! From a plan to moves.

use std::collections::HashMap;

use unisono_plan::{Action, Blocks, Buffer, Op, Place, Step, Value, ir};

use super::{Answered, Direct, Move, Space, Spot, at_once, in_place, owed};
use crate::execute::op::Planned;
use crate::execute::place::{Resolved, merged};

/// Bytes of a put at most: beyond, the stream's fixed cost is a small part of moving them.
const PUT: u64 = 128 << 10;
/// Bytes of the message at most, so that nobody waits for the lane's lock for long.
const MESSAGE: u64 = 1 << 20;
/// The same where posted links may read puts: these are copied first, which a stream's need not be.
const POSTED: u64 = 128 << 10;
/// The same of calls that only deal out shares, each in one put: none waits for another, and the stream has nothing to do
/// beside them (`unisono bench scatter --ranks 8 --without-links shm`, and all_to_all, 64 KiB to 2 MiB). Of an all_to_all
/// both buffers count.
const DEALT: u64 = 512 << 10;
/// Bytes of such a put where all put something to all.
const DEALT_BY_ALL: u32 = 64 << 10;
/// Moves at most: beyond, the time is that of the peers.
const MOVES: usize = 1024;

impl Direct {
    /// The moves of a short plan, whose puts may be `posted`; `None` for one that is not short, or not of a kind that
    /// runs so.
    pub(crate) fn of(planned: &Planned, posted: bool, answered: Answered) -> Option<Self> {
        let message = planned.geometry.count().checked_mul(planned.element)?;
        let op = planned.program.op;
        let (is_long, most) = match posted {
            true => (message > POSTED, DEALT),
            false => (false, MESSAGE),
        };
        if planned.windowed || planned.reads || planned.scaled || message > most {
            return None;
        }
        let mut resolving = Resolving {
            planned,
            current: HashMap::new(),
            moves: Vec::new(),
            steps: Vec::new(),
            shown: 0,
        };
        let (program, geometry) = (&planned.program, &planned.geometry);
        let mut counter = ir::ProgramCounter::START;
        while let Some((step, piece)) = program.seek(&mut counter, geometry.pieces()) {
            if piece < geometry.pieces_of(&step.action, program.ranks) {
                resolving.step(&step, piece)?;
                (resolving.steps).resize(resolving.moves.len(), counter.step().number());
            }
            if resolving.moves.len() > MOVES {
                return None;
            }
            program.pass(&mut counter);
        }
        let (mut moves, mut steps) = (resolving.moves, resolving.steps);
        if is_long && (geometry.pieces() > 1 || !deals(op, &moves)) {
            return None;
        }
        let rooted = matches!(
            op,
            Op::Broadcast { .. } | Op::Scatter { .. } | Op::Reduce { .. } | Op::Gather { .. }
        );
        let owes = rooted && owed::defer(&mut moves);
        let puts = |step: &Move| matches!(step, Move::Begin { bytes, .. } | Move::Show { bytes } if *bytes > 0);
        let waits = |step: &Move| matches!(step, Move::Wait { bytes, .. } if *bytes > 0);
        let takes = moves.iter().any(waits) && !moves.iter().any(puts);
        if posted {
            moves = in_place::landing(in_place::lending(moves, matches!(op, Op::Send { .. })));
            (moves, steps) = in_place::settled(moves, steps);
            if answered == Answered::Always {
                owed::mark_last(&mut moves);
            }
            owed::mark_rides(&mut moves);
            let unanswered = answered == Answered::Elsewhere;
            if owes || unanswered || matches!(op, Op::Send { .. }) {
                owed::mark_ahead(&mut moves);
            }
            // Credits may be told of later: there is room for more.
            if unanswered || matches!(op, Op::Recv { .. }) {
                owed::mark_held(&mut moves, |_| true);
            }
        } else {
            (moves, steps) = at_once::shorten(&moves, &steps, takes);
        }
        let mut takes_from: Vec<_> = moves.iter().filter_map(taken_from).collect();
        takes_from.sort_unstable();
        takes_from.dedup();
        let mut direct = Self {
            takes,
            gives_way_at: usize::MAX,
            is_alike: op.is_collective() && !rooted,
            moves: moves.into(),
            takes_from: takes_from.into(),
            steps: steps.into(),
            owes,
            scratch: planned.scratch_bytes(),
            holds: false,
            ahead: 0,
        };
        direct.set_holds();
        Some(direct)
    }
}

/// Whose put a move waits for, and whether that is shown.
fn taken_from(step: &Move) -> Option<(u32, bool)> {
    match *step {
        Move::Wait { from, shown, .. } => Some((from, shown)),
        _ => None,
    }
}

/// Whether a call only deals out shares: what is put comes from the input, and nothing is combined.
fn deals(op: Op, moves: &[Move]) -> bool {
    let is_in = |spot: &Spot, space: Space| spot.space_index() == space.index();
    moves.iter().all(|step| match step {
        Move::Begin { bytes, .. } => op.root().is_some() || *bytes <= DEALT_BY_ALL,
        Move::Fill { src, .. } => is_in(src, Space::In),
        Move::Copy { dst, src, .. } => !is_in(dst, Space::Fill) || is_in(src, Space::In),
        Move::Reduce { .. } => false,
        _ => true,
    })
}

struct Resolving<'a> {
    planned: &'a Planned,
    /// The blocks of the current put of each rank.
    current: HashMap<u32, Blocks>,
    moves: Vec<Move>,
    steps: Vec<u32>,
    /// Puts that were shown.
    shown: u32,
}

impl Resolving<'_> {
    fn step(&mut self, step: &Step, piece: u64) -> Option<()> {
        match &step.action {
            Action::Put { to, value } => self.put(*to, value, piece)?,
            Action::Wait { from, blocks } => {
                self.current.insert(*from, *blocks);
                let bytes = self.short(*blocks, piece)?;
                self.moves.push(Move::Wait {
                    from: *from,
                    bytes,
                    blocks: *blocks,
                    land: None,
                    shown: self.planned.shows(*from, *blocks),
                });
                if self.planned.says_where() && piece == 0 {
                    self.moves.push(Move::Look { from: *from });
                }
            }
            Action::Release { from } => self.moves.push(Move::Release {
                from: *from,
                rides: false,
                held: None,
            }),
            Action::Copy { dst, src } => {
                let (dst, src) = (self.place(dst, piece)?, self.place(src, piece)?);
                self.copy(&dst, &src, piece);
            }
            Action::Reduce { dst, a, b, last } => {
                let dst = self.place(dst, piece)?;
                self.reduce(&dst, [a, b], *last, piece)?;
            }
        }
        Some(())
    }

    fn put(&mut self, to: u32, value: &Value, piece: u64) -> Option<()> {
        let blocks = value.blocks();
        let bytes = self.short(blocks, piece)?;
        let is_shown = self.planned.shows(self.planned.program.rank, blocks);
        if !is_shown {
            self.moves.push(Move::Begin { to, bytes });
        } else if self.is_first_shown() {
            let program = &self.planned.program;
            let others = (0..program.ranks).filter(|other| *other != program.rank);
            self.moves.extend(others.map(|to| Move::Room { to, bytes }));
            self.moves.push(Move::Show { bytes });
        } else {
            return Some(());
        }
        let fill = Resolved::packed(Space::Fill.base(), blocks);
        match value {
            Value::Empty => {}
            Value::Copy(src) => {
                let src = self.place(src, piece)?;
                let first = self.moves.len();
                self.copy(&fill, &src, piece);
                if !is_shown
                    && let [Move::Copy { src, bytes, .. }] = self.moves[first..]
                    && u64::from(bytes) >= in_place::WORTH
                {
                    self.moves[first] = Move::Fill {
                        to,
                        src,
                        bytes,
                        awaited: true,
                    };
                }
            }
            Value::Reduce { a, b, last } => self.reduce(&fill, [a, b], *last, piece)?,
        }
        self.moves.push(match is_shown {
            true => Move::Tell,
            false => Move::Raise {
                to,
                last: false,
                answer: false,
                ahead: false,
            },
        });
        Some(())
    }

    /// Counts a put that is shown: whether it is the first of its group.
    fn is_first_shown(&mut self) -> bool {
        let others = self.planned.program.ranks - 1;
        self.shown += 1;
        (self.shown - 1).is_multiple_of(others)
    }

    fn copy(&mut self, dst: &Resolved, src: &Resolved, piece: u64) {
        merged(self.planned, [dst, src], piece, |[dst, src], bytes| {
            if dst != src {
                self.moves.push(Move::Copy {
                    dst: Spot(dst),
                    src: Spot(src),
                    bytes: bytes as u32,
                });
            }
        });
    }

    fn reduce(
        &mut self,
        dst: &Resolved,
        operands: [&Place; 2],
        last: bool,
        piece: u64,
    ) -> Option<()> {
        let [a, b] = [
            self.place(operands[0], piece)?,
            self.place(operands[1], piece)?,
        ];
        merged(self.planned, [dst, &a, &b], piece, |[dst, a, b], bytes| {
            self.moves.push(Move::Reduce {
                dst: Spot(dst),
                a: Spot(a),
                b: Spot(b),
                elements: (bytes / self.planned.element) as u32,
                last,
            });
        });
        Some(())
    }

    /// Bytes of a put, if it is short.
    fn short(&self, blocks: Blocks, piece: u64) -> Option<u32> {
        let bytes = self.planned.packed(blocks, piece);
        (bytes <= PUT).then_some(bytes as u32)
    }

    fn place(&self, place: &Place, piece: u64) -> Option<Resolved> {
        let planned = self.planned;
        let program = &planned.program;
        Some(match *place {
            Place::Slot { from, blocks } => {
                let within = *self.current.get(&from)?;
                Resolved::part(planned, Space::Slot(from).base(), within, blocks, piece)
            }
            Place::Local {
                buffer: Buffer::Scratch,
                blocks,
            } => {
                let instance = piece % u64::from(program.scratch_instances());
                let base = Space::Scratch.base() + instance * planned.scratch_instance_bytes();
                Resolved::scratch(planned, base, program.scratch, blocks, piece)
            }
            Place::Local { buffer, blocks } => {
                let space = match buffer {
                    Buffer::In => Space::In,
                    _ => Space::Out,
                };
                Resolved::buffer(planned, space.base(), program.rank, buffer, blocks)
            }
            Place::Peer { .. } => return None,
        })
    }
}
