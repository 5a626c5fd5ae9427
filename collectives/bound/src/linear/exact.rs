//! The simplex method on whole numbers.
//!
//! All entries share one denominator, the last pivot, and every division comes out even (Edmonds;
//! Bareiss). Solvers on floating-point numbers are faster, and leave it open whether two bounds are
//! equal.

use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

use super::Program;

/// The best that a program allows: numerators over one denominator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Best {
    /// What all the numbers are divided by; positive.
    pub(crate) denominator: BigInt,
    /// The goal.
    pub(crate) value: BigInt,
    /// The variables.
    pub(crate) variables: Vec<BigInt>,
    /// What one more of each row's limit would be worth.
    pub(crate) prices: Vec<BigInt>,
}

impl Program {
    /// The best there is. `None` if the goal has no limit, or after `pivots` steps.
    pub(crate) fn maximise(&self, pivots: usize) -> Option<Best> {
        let mut table = Table::new(self);
        for step in 0..pivots {
            // The steepest column is fast and may go in circles; the first one never does.
            let Some(column) = table.entering(step > pivots / 2) else {
                return Some(table.best());
            };
            let row = table.leaving(column)?;
            table.pivot(row, column);
        }
        None
    }
}

/// The simplex tableau, without the columns of what is basic.
struct Table {
    /// The rows, the last one that of the goal; in each the limit is last.
    entries: Vec<Vec<BigInt>>,
    /// What is basic in each row and what is not in each column: variables, then slacks of rows.
    basic: Vec<usize>,
    free: Vec<usize>,
    denominator: BigInt,
}

impl Table {
    fn new(program: &Program) -> Self {
        let variables = program.goal.len();
        let mut entries: Vec<Vec<BigInt>> = Vec::with_capacity(program.rows.len() + 1);
        for row in &program.rows {
            let mut dense = vec![BigInt::zero(); variables + 1];
            for &(variable, coefficient) in &row.coefficients {
                dense[variable] = coefficient.into();
            }
            dense[variables] = row.limit.into();
            entries.push(dense);
        }
        let goal = program.goal.iter().map(|value| BigInt::from(-value));
        entries.push(goal.chain([BigInt::zero()]).collect());
        Self {
            entries,
            basic: (variables..variables + program.rows.len()).collect(),
            free: (0..variables).collect(),
            denominator: BigInt::one(),
        }
    }

    /// A column by which the goal grows.
    fn entering(&self, first: bool) -> Option<usize> {
        let goal = &self.entries[self.basic.len()];
        let columns = (0..self.free.len()).filter(|column| goal[*column].is_negative());
        if first {
            columns.min_by_key(|column| self.free[*column])
        } else {
            columns.min_by_key(|column| (&goal[*column], self.free[*column]))
        }
    }

    /// The row that stops a column first. `None` if none does.
    fn leaving(&self, column: usize) -> Option<usize> {
        let last = self.free.len();
        let rows = (0..self.basic.len()).filter(|row| self.entries[*row][column].is_positive());
        rows.min_by(|one, other| {
            // limit / entry, compared without dividing
            let (one_row, other_row) = (&self.entries[*one], &self.entries[*other]);
            let left = &one_row[last] * &other_row[column];
            let right = &other_row[last] * &one_row[column];
            left.cmp(&right)
                .then(self.basic[*one].cmp(&self.basic[*other]))
        })
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let pivot = self.entries[row][column].clone();
        let before = std::mem::replace(&mut self.denominator, pivot.clone());
        let mut pivot_row = std::mem::take(&mut self.entries[row]);
        for (place, entries) in self.entries.iter_mut().enumerate() {
            if place == row {
                continue;
            }
            let factor = std::mem::take(&mut entries[column]);
            for (other, entry) in entries.iter_mut().enumerate() {
                if other == column {
                    continue;
                }
                if !entry.is_zero() {
                    *entry *= &pivot;
                }
                if !factor.is_zero() && !pivot_row[other].is_zero() {
                    *entry -= &factor * &pivot_row[other];
                }
                if !entry.is_zero() && !before.is_one() {
                    *entry /= &before;
                }
            }
            entries[column] = -factor;
        }
        pivot_row[column] = before;
        self.entries[row] = pivot_row;
        std::mem::swap(&mut self.basic[row], &mut self.free[column]);
    }

    fn best(mut self) -> Best {
        let variables = self.free.len();
        let last = self.free.len();
        let mut found = vec![BigInt::zero(); variables];
        for (row, basic) in self.basic.iter().enumerate() {
            if *basic < variables {
                found[*basic] = self.entries[row][last].clone();
            }
        }
        let mut goal = self.entries.pop().unwrap_or_default();
        let mut prices = vec![BigInt::zero(); self.basic.len()];
        for (column, free) in self.free.iter().enumerate() {
            if let Some(row) = free.checked_sub(variables) {
                prices[row] = std::mem::take(&mut goal[column]);
            }
        }
        Best {
            denominator: self.denominator,
            value: std::mem::take(&mut goal[last]),
            variables: found,
            prices,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_textbook_program_comes_out() {
        // 3x + 5y with x ≤ 4, 2y ≤ 12, 3x + 2y ≤ 18: 36 at (2, 6), prices 0, 3/2, 1.
        let mut program = Program::new([3, 5]);
        program.row([(0, 1)], 4);
        program.row([(1, 2)], 12);
        program.row([(0, 3), (1, 2)], 18);
        let best = program.maximise(100).unwrap();
        let over = |value: &BigInt| (value * 2, best.denominator.clone());
        assert_eq!(best.value, &best.denominator * 36);
        let expected = [0, 3, 2].map(|twice| &best.denominator * twice);
        assert_eq!(
            best.prices
                .iter()
                .map(|price| over(price).0)
                .collect::<Vec<_>>(),
            expected
        );
        assert_eq!(
            best.variables,
            [2, 6].map(|value| &best.denominator * value)
        );
    }

    #[test]
    fn no_limit_is_no_answer() {
        let mut program = Program::new([1, 0]);
        program.row([(0, -1), (1, 1)], 3);
        assert_eq!(program.maximise(100), None);
    }

    proptest! {
        /// Variables keep the rows, prices are a proof that nothing is better: both values meet.
        #[test]
        fn the_answer_proves_itself(
            goal in prop::collection::vec(-3..9i128, 4),
            rows in prop::collection::vec((prop::collection::vec(-2..6i128, 4), 0..20u128), 1..7),
        ) {
            let mut program = Program::new(goal.iter().copied());
            for (row, limit) in &rows {
                program.row(row.iter().copied().enumerate(), *limit);
            }
            program.row((0..4).map(|variable| (variable, 1)), 50);
            let best = program.maximise(1000).unwrap();
            prop_assert!(best.denominator.is_positive());
            let all: Vec<_> = rows.iter().cloned().chain([(vec![1; 4], 50)]).collect();
            let mut value = BigInt::zero();
            for (price, (row, limit)) in best.prices.iter().zip(&all) {
                prop_assert!(!price.is_negative());
                value += price * limit;
                let used: BigInt = row.iter().zip(&best.variables).map(|(a, x)| a * x).sum();
                prop_assert!(used <= limit * &best.denominator);
            }
            prop_assert_eq!(&value, &best.value);
            for (variable, wanted) in goal.iter().enumerate() {
                prop_assert!(!best.variables[variable].is_negative());
                let paid: BigInt = all.iter().zip(&best.prices).map(|((row, _), price)| price * row[variable]).sum();
                prop_assert!(paid >= BigInt::from(*wanted) * &best.denominator);
            }
        }
    }
}
