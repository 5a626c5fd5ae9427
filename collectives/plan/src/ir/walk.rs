//! The steps of a program one by one, loops unrolled on the way.

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

impl Program {
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
