//! Linear programs.
//!
//! Those over few classes are solved exactly ([`exact`]): their answers are fractions that people
//! expect to see as such and that hosts of different architectures must agree on. Larger ones are
//! solved by floating-point numbers ([`interior`]); what comes out is then only a proposal, and
//! whoever asked proves both ends of an interval with it.

mod exact;
mod interior;

pub(crate) use exact::Best;
pub(crate) use interior::Nearly;

/// Maximise `goal · x` over `x ≥ 0` with `row · x ≤ limit` for each row; no limit is negative.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    goal: Vec<i128>,
    rows: Vec<Row>,
}

/// The coefficients that are not zero, by variable, and the limit.
#[derive(Clone, Debug)]
struct Row {
    coefficients: Vec<(usize, i128)>,
    limit: u128,
}

impl Program {
    /// A goal, and no rows yet.
    pub(crate) fn new(goal: impl IntoIterator<Item = i128>) -> Self {
        Self {
            goal: goal.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, from coefficients that add up where a variable has several.
    pub(crate) fn row(
        &mut self,
        coefficients: impl IntoIterator<Item = (usize, i128)>,
        limit: u128,
    ) {
        let mut coefficients: Vec<_> = coefficients.into_iter().collect();
        coefficients.sort_unstable();
        coefficients.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        coefficients.retain(|(_, coefficient)| *coefficient != 0);
        self.rows.push(Row {
            coefficients,
            limit,
        });
    }
}
