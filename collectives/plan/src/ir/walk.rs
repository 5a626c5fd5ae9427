//! The steps of a program one by one, loops unrolled on the way; and in the order in which they run on pieces.

use super::{Blocks, Drift, Program, Step};

/// A place in the steps of a program. Small and plain: an executor keeps one for each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The index in [`Program::steps`].
    step: u32,
    /// The iteration of the loop around the step.
    iteration: u32,
    /// The loop around the step, or the next one.
    next_loop: u32,
    /// How many steps came before.
    number: u32,
}

impl Cursor {
    /// The first step.
    pub const START: Cursor = Cursor {
        step: 0,
        iteration: 0,
        next_loop: 0,
        number: 0,
    };

    /// The number of the step, counting every iteration of loops.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The index of the step in [`Program::steps`].
    #[must_use]
    pub const fn step(self) -> u32 {
        self.step
    }
}

/// Where a rank stands in its program: at which step, in which round of which leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramCounter {
    /// The round of the leg.
    round: u64,
    step: Cursor,
    /// The first step of the leg.
    leg: Cursor,
}

impl ProgramCounter {
    /// At the first step, in the first round.
    pub const START: ProgramCounter = ProgramCounter {
        round: 0,
        step: Cursor::START,
        leg: Cursor::START,
    };

    /// The round of its leg, from 0.
    #[must_use]
    pub const fn round(self) -> u64 {
        self.round
    }

    /// The step.
    #[must_use]
    pub const fn step(self) -> Cursor {
        self.step
    }
}

impl Program {
    /// The step at which a rank stands whose message is cut into so many pieces, at least 1, and the piece on which it runs,
    /// from 0. Steps without a piece in their round are skipped. None at the end, also when asked again.
    #[must_use]
    pub fn seek(&self, counter: &mut ProgramCounter, pieces: u64) -> Option<(Step, u64)> {
        let rounds = pieces + u64::from(self.max_skew);
        loop {
            let step = self.at(counter.step);
            match step {
                Some(step) if !step.begins || counter.step == counter.leg => {
                    let piece = counter.round.checked_sub(step.skew.into());
                    match piece.filter(|piece| *piece < pieces) {
                        Some(piece) => return Some((step, piece)),
                        None => self.advance(&mut counter.step),
                    }
                }
                _ if counter.round + 1 < rounds => {
                    counter.round += 1;
                    counter.step = counter.leg;
                }
                Some(_) => {
                    counter.round = 0;
                    counter.leg = counter.step;
                }
                None => return None,
            }
        }
    }

    /// Goes past the step.
    pub fn pass(&self, counter: &mut ProgramCounter) {
        self.advance(&mut counter.step);
    }

    /// Goes to the next step. None if that is of another leg, or there is none.
    pub fn follow(&self, cursor: &mut Cursor) -> Option<Step> {
        self.advance(cursor);
        self.at(*cursor).filter(|step| !step.begins)
    }

    /// Whether it has more than one leg.
    #[must_use]
    pub fn has_legs(&self) -> bool {
        self.walk().skip(1).any(|step| step.begins)
    }

    /// The first step of the leg of a step.
    #[must_use]
    pub fn leg_of(&self, of: Cursor) -> Cursor {
        let (mut at, mut leg) = (Cursor::START, Cursor::START);
        while at.number < of.number {
            self.advance(&mut at);
            if self.at(at).is_some_and(|step| step.begins) {
                leg = at;
            }
        }
        leg
    }

    /// How many steps there are, counting every iteration of loops.
    #[must_use]
    pub fn len(&self) -> usize {
        let more = |l: &super::Loop| l.len as usize * (l.times as usize).saturating_sub(1);
        self.steps.len() + self.loops.iter().map(more).sum::<usize>()
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The step at a cursor: ranks by their numbers, the drift of its loop applied. None at the
    /// end. Takes no memory and a few instructions.
    #[must_use]
    pub fn at(&self, cursor: Cursor) -> Option<Step> {
        let step = *self.steps.get(cursor.step as usize)?;
        let still = cursor.iteration == 0 || step.drift == Drift::NONE;
        if still && self.order.is_none() {
            return Some(step);
        }
        Some(self.moved(step, cursor.iteration))
    }

    /// Goes to the next step.
    pub fn advance(&self, cursor: &mut Cursor) {
        cursor.number = cursor.number.wrapping_add(1);
        cursor.step += 1;
        let Some(around) = self.loops.get(cursor.next_loop as usize) else {
            return;
        };
        if cursor.step == around.first.saturating_add(around.len) {
            if cursor.iteration + 1 < around.times {
                cursor.iteration += 1;
                cursor.step = around.first;
            } else {
                cursor.iteration = 0;
                cursor.next_loop += 1;
            }
        }
    }

    /// All steps in order.
    pub fn walk(&self) -> impl Iterator<Item = Step> + '_ {
        let mut cursor = Cursor::START;
        std::iter::from_fn(move || {
            let step = self.at(cursor)?;
            self.advance(&mut cursor);
            Some(step)
        })
    }

    /// The same program without loops and positions: as long as its steps are many.
    #[must_use]
    pub fn expanded(&self) -> Program {
        let still = |step: Step| Step {
            drift: Drift::NONE,
            ..step
        };
        Program {
            steps: self.walk().map(still).collect(),
            loops: Vec::new(),
            order: None,
            ..self.clone()
        }
    }

    /// A step in an iteration of its loop.
    fn moved(&self, step: Step, iteration: u32) -> Step {
        let ranks = u64::from(self.ranks.max(1));
        let by = |drift: u32, modulus: u64| u64::from(drift) * u64::from(iteration) % modulus;
        let block = by(step.drift.block, u64::from(self.section.max(1))) as u32;
        let rank = |drift: u32| {
            let further = by(drift, ranks);
            move |rank: u32| {
                let position = ((u64::from(rank) + further) % ranks) as u32;
                match &self.order {
                    None => position,
                    Some(order) => order.get(position as usize).copied().unwrap_or(position),
                }
            }
        };
        let blocks = |set: Blocks| set.shifted(block, self.section);
        Step {
            action: (step.action).map(rank(step.drift.to), rank(step.drift.from), blocks),
            ..step
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::Layout;
    use crate::builder::{Builder, input, out};
    use crate::ir::{Blocks, Op};
    use crate::{Algorithm, Shape};

    use super::*;

    /// The numbers of the steps and the pieces, in the order in which they run.
    fn run(program: &Program, pieces: u64) -> Vec<(u32, u64)> {
        let mut counter = ProgramCounter::START;
        std::iter::from_fn(|| {
            let (_, piece) = program.seek(&mut counter, pieces)?;
            let number = counter.step().number();
            program.pass(&mut counter);
            Some((number, piece))
        })
        .collect()
    }

    fn program(build: impl FnOnce(&mut Builder)) -> Program {
        let shape = Shape {
            op: Op::AllReduce,
            ranks: 4,
            rank: 1,
            windowed: false,
            turns: false,
        };
        let of = Layout::of(Algorithm::MeshOneShot, Op::AllReduce, 4);
        let mut builder = Builder::new(&shape, of);
        build(&mut builder);
        builder.finish()
    }

    fn copy(b: &mut Builder) {
        b.copy(out(Blocks::one(0)), input(Blocks::one(0)));
    }

    #[test]
    fn pieces_follow_each_other_through_a_leg_and_are_through_it_before_the_next() {
        let one = program(|b| {
            copy(b);
            b.skew(1);
            copy(b);
        });
        assert_eq!(run(&one, 2), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert!(!one.has_legs());
        let three = program(|b| {
            copy(b);
            // Two turns of a loop are two legs.
            b.repeat(2, |b| {
                b.leg().skew(0);
                copy(b);
                b.skew(1);
                copy(b);
            });
        });
        let leg = |first: u32| [(first, 0), (first, 1), (first + 1, 0), (first + 1, 1)];
        let wanted = [&[(0, 0), (0, 1)][..], &leg(1), &leg(3)].concat();
        assert_eq!(run(&three, 2), wanted);
        assert!(three.has_legs());
        assert_eq!(run(&three.expanded(), 2), wanted);
        assert_eq!(run(&three, 1), [0, 1, 2, 3, 4].map(|step| (step, 0)));
        assert_eq!(run(&program(|_| ()), 3), []);
    }

    #[test]
    fn what_looks_ahead_stops_at_the_end_of_a_leg() {
        let program = program(|b| {
            copy(b);
            copy(b);
            b.leg();
            copy(b);
            copy(b);
        });
        let mut at = Cursor::START;
        let legs: Vec<_> = (0..4)
            .map(|_| {
                let leg = program.leg_of(at).number();
                (leg, program.follow(&mut at).is_some())
            })
            .collect();
        assert_eq!(legs, [(0, true), (0, false), (2, true), (2, false)]);
    }
}
