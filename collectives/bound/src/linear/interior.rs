//! An interior-point method on floating-point numbers: clarabel.
//!
//! It is a well-kept conic solver in plain Rust that gives prices as well as variables, which simplex
//! crates do not, and it ends in the middle of what is best, not in a corner: rows and columns that
//! are added one after the other then soon suffice.

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::NonnegativeConeT;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus};

use super::Program;

/// Nearly the best that a program allows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nearly {
    /// The variables; none is negative.
    pub(crate) variables: Vec<f64>,
    /// What one more of each row's limit would be worth, about; none is negative.
    pub(crate) prices: Vec<f64>,
}

impl Program {
    /// Nearly the best there is. `None` if the solver gives up.
    pub(crate) fn nearly(&self) -> Option<Nearly> {
        let variables = self.goal.len();
        let rows = self.rows.len();
        // Limits are taken by the largest, so that numbers are of one size.
        let scale = self
            .rows
            .iter()
            .map(|row| row.limit)
            .max()
            .unwrap_or(1)
            .max(1) as f64;
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); variables];
        for (place, row) in self.rows.iter().enumerate() {
            for &(variable, coefficient) in &row.coefficients {
                columns[variable].push((place, coefficient as f64));
            }
        }
        let (mut starts, mut places, mut values) = (vec![0], Vec::new(), Vec::new());
        for (variable, column) in columns.iter().enumerate() {
            for &(place, value) in column.iter().chain([&(rows + variable, -1.0)]) {
                places.push(place);
                values.push(value);
            }
            starts.push(places.len());
        }
        let matrix = CscMatrix::new(rows + variables, variables, starts, places, values);
        let limits: Vec<f64> = self
            .rows
            .iter()
            .map(|row| row.limit as f64 / scale)
            .chain(vec![0.0; variables])
            .collect();
        let goal: Vec<f64> = self.goal.iter().map(|value| -(*value as f64)).collect();
        let settings = DefaultSettings {
            verbose: false,
            max_iter: 100,
            max_threads: 1,
            ..DefaultSettings::default()
        };
        let cones = [NonnegativeConeT(rows + variables)];
        let square = CscMatrix::zeros((variables, variables));
        let mut solver =
            DefaultSolver::new(&square, &goal, &matrix, &limits, &cones, settings).ok()?;
        solver.solve();
        let solution = &solver.solution;
        let usable = matches!(
            solution.status,
            SolverStatus::Solved | SolverStatus::AlmostSolved | SolverStatus::InsufficientProgress
        );
        usable.then(|| Nearly {
            variables: solution
                .x
                .iter()
                .map(|value| (value * scale).max(0.0))
                .collect(),
            prices: solution.z[..rows]
                .iter()
                .map(|price| price.max(0.0))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_near_the_exact_answer() {
        let mut program = Program::new([3, 5]);
        program.row([(0, 1)], 4_000_000_000);
        program.row([(1, 2)], 12_000_000_000);
        program.row([(0, 3), (1, 2)], 18_000_000_000);
        let near = program.nearly().unwrap();
        let exact = program.maximise(10).unwrap();
        assert_eq!(exact.value, &exact.denominator * 36_000_000_000u64);
        assert!((near.variables[0] - 2e9).abs() < 1e4 && (near.variables[1] - 6e9).abs() < 1e4);
        assert!((near.prices[1] - 1.5).abs() < 1e-6 && (near.prices[2] - 1.0).abs() < 1e-6);
    }
}
