//! From a plan to moves.

use std::collections::HashMap;

use unisono_plan::{Action, Blocks, Buffer, Place, Step, Value, ir};

use super::{Direct, Move, Space, Spot};
use crate::execute::op::Planned;
use crate::execute::place::{Resolved, merged};

/// Bytes of a put at most: beyond, the time is that of moving them.
const PUT: u64 = 4 << 10;
/// Bytes of the message at most, so that no copy beside the puts is long.
const MESSAGE: u64 = 64 << 10;
/// Moves at most: beyond, the time is that of the peers.
const MOVES: usize = 1024;

impl Direct {
    /// The moves of a short plan; `None` for one that is not short, or not of a kind that runs so.
    pub(crate) fn of(planned: &Planned) -> Option<Self> {
        let message = planned.geometry.count().checked_mul(planned.element)?;
        if planned.windowed || planned.scaled || planned.geometry.pieces() != 1 || message > MESSAGE
        {
            return None;
        }
        let mut resolving = Resolving {
            planned,
            current: HashMap::new(),
            moves: Vec::new(),
        };
        // One piece: a step with a skew comes that many rounds later, alone.
        for round in 0..=planned.program.max_skew {
            let mut cursor = ir::Cursor::START;
            while let Some(step) = planned.program.at(cursor) {
                if step.skew == round {
                    resolving.step(&step)?;
                }
                if resolving.moves.len() > MOVES {
                    return None;
                }
                planned.program.advance(&mut cursor);
            }
        }
        Some(Self(resolving.moves.into()))
    }
}

struct Resolving<'a> {
    planned: &'a Planned,
    /// The blocks of the current put of each rank.
    current: HashMap<u32, Blocks>,
    moves: Vec<Move>,
}

impl Resolving<'_> {
    fn step(&mut self, step: &Step) -> Option<()> {
        match &step.action {
            Action::Put { to, value } => self.put(*to, value)?,
            Action::Wait { from, blocks } => {
                self.current.insert(*from, *blocks);
                let bytes = self.short(*blocks)?;
                self.moves.push(Move::Wait {
                    from: *from,
                    bytes,
                    blocks: *blocks,
                });
            }
            Action::Release { from } => self.moves.push(Move::Release { from: *from }),
            Action::Copy { dst, src } => {
                let (dst, src) = (self.place(dst)?, self.place(src)?);
                self.copy(&dst, &src);
            }
            Action::Reduce { dst, a, b, last } => {
                let dst = self.place(dst)?;
                self.reduce(&dst, [a, b], *last)?;
            }
        }
        Some(())
    }

    fn put(&mut self, to: u32, value: &Value) -> Option<()> {
        let blocks = value.blocks();
        let bytes = self.short(blocks)?;
        self.moves.push(Move::Begin { to, bytes });
        let fill = Resolved::packed(Space::Fill.base(), blocks);
        match value {
            Value::Empty => {}
            Value::Copy(src) => {
                let src = self.place(src)?;
                self.copy(&fill, &src);
            }
            Value::Reduce { a, b, last } => self.reduce(&fill, [a, b], *last)?,
        }
        self.moves.push(Move::Raise { to });
        Some(())
    }

    fn copy(&mut self, dst: &Resolved, src: &Resolved) {
        merged(self.planned, [dst, src], 0, |[dst, src], bytes| {
            if dst != src {
                self.moves.push(Move::Copy {
                    dst: Spot(dst),
                    src: Spot(src),
                    bytes: bytes as u32,
                });
            }
        });
    }

    fn reduce(&mut self, dst: &Resolved, operands: [&Place; 2], last: bool) -> Option<()> {
        let [a, b] = [self.place(operands[0])?, self.place(operands[1])?];
        merged(self.planned, [dst, &a, &b], 0, |[dst, a, b], bytes| {
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
    fn short(&self, blocks: Blocks) -> Option<u32> {
        let bytes = self.planned.packed(blocks, 0);
        (bytes <= PUT).then_some(bytes as u32)
    }

    fn place(&self, place: &Place) -> Option<Resolved> {
        let planned = self.planned;
        let program = &planned.program;
        Some(match *place {
            Place::Slot { from, blocks } => {
                let within = *self.current.get(&from)?;
                Resolved::part(planned, Space::Slot(from).base(), within, blocks, 0)
            }
            Place::Local {
                buffer: Buffer::Scratch,
                blocks,
            } => Resolved::scratch(planned, Space::Scratch.base(), program.scratch, blocks, 0),
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
