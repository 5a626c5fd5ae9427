//! Packing programs whose columns are found as they are needed.
//!
//! Maximise the sum of `value · x` under `A x ≤ b`, `x ≥ 0`, where `b ≥ 0` and a column is a tree
//! (or a pair of trees): there are far too many to list, but the best one for given prices is
//! easily found. The revised simplex method asks for just that. Rows are edges, so few; the
//! inverse of the basis is kept dense.
//!
//! Results are used as proportions only: what is packed in the end is made of whole numbers and
//! checked exactly, so that rounding here can cost a little bandwidth and never correctness.

/// A column: the rows that it uses, and how much of each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) value: f64,
    pub(crate) uses: Vec<(usize, f64)>,
}

impl Column {
    /// What the column is worth above what its rows cost.
    pub(crate) fn gain(&self, prices: &[f64]) -> f64 {
        let cost: f64 = self
            .uses
            .iter()
            .map(|&(row, use_)| prices[row] * use_)
            .sum();
        self.value - cost
    }
}

fn slack(row: usize) -> Column {
    Column {
        value: 0.0,
        uses: vec![(row, 1.0)],
    }
}

/// The program and its present solution.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    rows: usize,
    inverse: Vec<f64>,
    level: Vec<f64>,
    /// For each row of the basis the column in it.
    basis: Vec<usize>,
    /// First each row's slack, then what was added.
    columns: Vec<Column>,
}

/// Below this a number counts as zero.
const ZERO: f64 = 1e-9;

impl Program {
    /// No columns yet. The limits are disturbed by less than one in 100,000, since equal ones make
    /// the method walk in circles.
    pub(crate) fn new(limits: &[f64]) -> Self {
        let rows = limits.len();
        let mut inverse = vec![0.0; rows * rows];
        for row in 0..rows {
            inverse[row * rows + row] = 1.0;
        }
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let level = limits.iter().map(|&limit| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            limit * (1.0 - 1e-5 * (seed >> 11) as f64 / (1u64 << 53) as f64)
        });
        Self {
            rows,
            inverse,
            level: level.collect(),
            basis: (0..rows).collect(),
            columns: (0..rows).map(slack).collect(),
        }
    }

    /// What a little more of each row would be worth; not negative once [`known`](Self::known)
    /// finds nothing.
    pub(crate) fn prices(&self) -> Vec<f64> {
        let mut prices = vec![0.0; self.rows];
        for (place, &column) in self.basis.iter().enumerate() {
            let value = self.columns[column].value;
            if value != 0.0 {
                let row = &self.inverse[place * self.rows..(place + 1) * self.rows];
                for (price, inverse) in prices.iter_mut().zip(row) {
                    *price += value * inverse;
                }
            }
        }
        for price in &mut prices {
            if price.abs() < ZERO {
                *price = 0.0;
            }
        }
        prices
    }

    /// What the solution is worth.
    pub(crate) fn value(&self) -> f64 {
        let used = self.basis.iter().zip(&self.level);
        used.map(|(&column, &level)| self.columns[column].value * level)
            .sum()
    }

    /// The columns in use, as [`add`](Self::add) named them, and how much of each.
    pub(crate) fn solution(&self) -> impl Iterator<Item = (usize, f64)> {
        let used = self.basis.iter().zip(&self.level);
        let used = used.map(|(&column, &level)| (column, level.max(0.0)));
        used.filter(|(column, _)| *column >= self.rows)
    }

    /// The best of the columns that are there (a row's slack is one), if one gains at these prices.
    pub(crate) fn known(&self, prices: &[f64]) -> Option<usize> {
        let gains = self.columns.iter().map(|column| column.gain(prices));
        let best = gains
            .enumerate()
            .max_by(|one, other| one.1.total_cmp(&other.1))?;
        (best.1 > 1e-7).then_some(best.0)
    }

    /// Adds a column, without using it; its name.
    pub(crate) fn add(&mut self, column: Column) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// Uses a column as far as its rows allow; false if no row limits it.
    pub(crate) fn enter(&mut self, column: usize) -> bool {
        let rows = self.rows;
        let mut direction = vec![0.0; rows];
        for &(row, use_) in &self.columns[column].uses {
            for (place, direction) in direction.iter_mut().enumerate() {
                *direction += self.inverse[place * rows + row] * use_;
            }
        }
        let mut leaving: Option<(f64, usize)> = None;
        for place in 0..rows {
            if direction[place] <= ZERO {
                continue;
            }
            let ratio = self.level[place].max(0.0) / direction[place];
            let better = leaving.is_none_or(|(least, at)| {
                ratio < least - ZERO || (ratio <= least + ZERO && direction[place] > direction[at])
            });
            if better {
                leaving = Some((ratio, place));
            }
        }
        let Some((step, leaving)) = leaving else {
            return false;
        };
        let pivot = direction[leaving];
        for inverse in &mut self.inverse[leaving * rows..(leaving + 1) * rows] {
            *inverse /= pivot;
        }
        let row = self.inverse[leaving * rows..(leaving + 1) * rows].to_vec();
        for (place, factor) in direction.into_iter().enumerate() {
            if place == leaving || factor == 0.0 {
                continue;
            }
            self.level[place] -= factor * step;
            for (inverse, row) in self.inverse[place * rows..].iter_mut().zip(&row) {
                *inverse -= factor * row;
            }
        }
        self.level[leaving] = step;
        self.basis[leaving] = column;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_is_solved() {
        // Two goods from two stocks: 3x + 5y, x + y <= 4, x + 3y <= 6: 14 at (3, 1).
        let mut program = Program::new(&[4.0, 6.0]);
        for (value, uses) in [(3.0, [1.0, 1.0]), (5.0, [1.0, 3.0])] {
            let uses = uses.into_iter().enumerate().collect();
            program.add(Column { value, uses });
        }
        for _ in 0..10 {
            match program.known(&program.prices()) {
                Some(column) => assert!(program.enter(column)),
                None => break,
            }
        }
        assert!((program.value() - 14.0).abs() < 1e-3, "{}", program.value());
        let used: Vec<usize> = program.solution().map(|(column, _)| column).collect();
        assert_eq!(used.len(), 2);
    }
}
