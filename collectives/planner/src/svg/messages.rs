//! Who sends to whom.

use unisono_graph::units;

use super::MARGIN;
use super::axis::{Axis, time};
use super::paint::{Curve, Paint};
use crate::Plan;
use crate::schedule::{Kind, Step};

/// The most ranks, and the most messages between them, that are drawn.
const MOST_RANKS: u32 = 64;
const MOST_MESSAGES: usize = 1200;

/// The messages of a plan that are drawn.
pub(super) struct Messages<'a> {
    plan: &'a Plan,
    ranks: u32,
    /// The numbers of the steps.
    drawn: Vec<usize>,
    /// How many messages there are.
    all: usize,
}

/// Whether a step sends bytes.
pub(super) fn is_message(step: &Step) -> bool {
    step.kind == Kind::Put
}

impl<'a> Messages<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let ranks = plan.schedule.ranks.min(MOST_RANKS);
        let all = (plan.schedule.steps.iter().enumerate()).filter(|(_, step)| is_message(step));
        let between: Vec<usize> = all
            .clone()
            .filter(|(_, step)| step.rank.max(step.peer) < ranks)
            .map(|(number, _)| number)
            .collect();
        let every = between.len().div_ceil(MOST_MESSAGES).max(1);
        Self {
            plan,
            ranks,
            all: all.count(),
            drawn: between.into_iter().step_by(every).collect(),
        }
    }

    pub(super) fn left_out(&self) -> usize {
        self.all - self.drawn.len()
    }

    pub(super) fn ranks_left_out(&self) -> usize {
        (self.plan.schedule.ranks - self.ranks) as usize
    }

    pub(super) fn height(&self) -> f64 {
        f64::from(self.ranks) * self.row()
    }

    /// Few ranks have more room, so that curves are not flat.
    fn row(&self) -> f64 {
        match self.ranks {
            0..=4 => 52.0,
            5..=8 => 40.0,
            9..=16 => 32.0,
            _ => 22.0,
        }
    }

    pub(super) fn draw(&self, paint: &mut Paint, axis: &Axis, top: f64) {
        let y = |rank: u32| top + (f64::from(rank) + 0.5) * self.row();
        for rank in 0..self.ranks {
            let (start, end) = (axis.left(), axis.left() + axis.width());
            paint.line((start, y(rank)), (end, y(rank)), "rail");
            paint.dot((MARGIN + 5.0, y(rank)), 5.0, rank);
            paint.text(
                MARGIN + 18.0,
                y(rank) + 4.5,
                "text",
                &format!("rank {rank}"),
            );
        }
        let steps = &self.plan.schedule.steps;
        let most = self.drawn.iter().map(|&number| steps[number].bytes).max();
        for &number in &self.drawn {
            let (step, span) = (&steps[number], self.plan.timeline.steps[number]);
            let title = format!(
                "{} from rank {} to rank {}, {} to {}",
                units::size(step.bytes),
                step.rank,
                step.peer,
                time(span.start_ps),
                time(span.end_ps)
            );
            paint.curve(
                &Curve {
                    from: (axis.at(span.start_ps), y(step.rank)),
                    to: (axis.at(span.end_ps), y(step.peer)),
                    colour: step.rank,
                    width: width(step.bytes, most.unwrap_or(0), self.drawn.len()),
                    crowded: self.drawn.len() > 150,
                },
                &title,
            );
        }
    }
}

/// How thick a message is drawn: by its bytes on a logarithmic scale, and finer where there are many.
fn width(bytes: u64, most: u64, count: usize) -> f64 {
    let thickest = match count {
        0..=60 => 2.6,
        61..=300 => 1.8,
        _ => 1.1,
    };
    // What is 256 times smaller is a hair.
    let part = 1.0 - (most.max(1) as f64 / bytes.max(1) as f64).log2() / 8.0;
    (thickest * part).max(0.6)
}
