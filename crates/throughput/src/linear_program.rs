//! A thin layer over the interior-point solver.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

/// Maximise one variable subject to linear rows over non-negative variables.
#[derive(Debug, Default)]
pub(crate) struct LinearProgram {
    variables: usize,
    /// Rows `Σ a x = 0`, then rows `Σ a x ≤ b`, as sparse (variable, coefficient) lists.
    equalities: Vec<Vec<(usize, f64)>>,
    inequalities: Vec<(Vec<(usize, f64)>, f64)>,
}

/// A solution: values of the variables and prices of the inequality rows.
#[derive(Debug)]
pub(crate) struct Solution {
    pub(crate) values: Vec<f64>,
    pub(crate) prices: Vec<f64>,
}

impl LinearProgram {
    /// Adds a non-negative variable and returns its number.
    pub(crate) fn variable(&mut self) -> usize {
        self.variables += 1;
        self.variables - 1
    }

    pub(crate) fn equal_zero(&mut self, row: Vec<(usize, f64)>) {
        self.equalities.push(row);
    }

    /// Adds `Σ a x ≤ bound` and returns the row's number among the inequalities.
    pub(crate) fn at_most(&mut self, row: Vec<(usize, f64)>, bound: f64) -> usize {
        self.inequalities.push((row, bound));
        self.inequalities.len() - 1
    }

    /// Solves for the largest value of `objective`; an error names the solver's status.
    pub(crate) fn maximise(&self, objective: usize) -> Result<Solution, String> {
        let rows = self.equalities.len() + self.inequalities.len() + self.variables;
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.variables];
        let all = self.equalities.iter().chain(self.inequalities.iter().map(|(row, _)| row));
        for (index, row) in all.enumerate() {
            for &(variable, coefficient) in row {
                columns[variable].push((index, coefficient));
            }
        }
        let first_bound = self.equalities.len() + self.inequalities.len();
        for (variable, column) in columns.iter_mut().enumerate() {
            column.push((first_bound + variable, -1.0));
        }
        let mut starts = vec![0];
        for column in &columns {
            starts.push(starts[starts.len() - 1] + column.len());
        }
        let (row_indices, coefficients) = columns.into_iter().flatten().unzip();
        let matrix = CscMatrix::new(rows, self.variables, starts, row_indices, coefficients);
        let mut bounds = vec![0.0; rows];
        for (bound, (_, limit)) in bounds[self.equalities.len()..].iter_mut().zip(&self.inequalities) {
            *bound = *limit;
        }
        let mut costs = vec![0.0; self.variables];
        costs[objective] = -1.0;
        let cones = [
            SupportedConeT::ZeroConeT(self.equalities.len()),
            SupportedConeT::NonnegativeConeT(rows - self.equalities.len()),
        ];
        let settings = DefaultSettings { verbose: false, max_iter: 500, ..Default::default() };
        let quadratic = CscMatrix::zeros((self.variables, self.variables));
        let mut solver = DefaultSolver::new(&quadratic, &costs, &matrix, &bounds, &cones, settings)
            .map_err(|error| error.to_string())?;
        solver.solve();
        match solver.solution.status {
            SolverStatus::Solved | SolverStatus::AlmostSolved => Ok(Solution {
                prices: solver.solution.z[self.equalities.len()..first_bound].to_vec(),
                values: std::mem::take(&mut solver.solution.x),
            }),
            status => Err(status.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_by_hand() {
        // Largest t with t = x + y, x ≤ 2, x + 2y ≤ 4: x = 2, y = 1.
        let mut program = LinearProgram::default();
        let [t, x, y] = [(); 3].map(|()| program.variable());
        program.equal_zero(vec![(t, 1.0), (x, -1.0), (y, -1.0)]);
        program.at_most(vec![(x, 1.0)], 2.0);
        program.at_most(vec![(x, 1.0), (y, 2.0)], 4.0);
        let solution = program.maximise(t).unwrap();
        assert!((solution.values[t] - 3.0).abs() < 1e-7);
        assert!((solution.prices[0] - 0.5).abs() < 1e-6 && (solution.prices[1] - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_program_without_limit_is_an_error() {
        let mut program = LinearProgram::default();
        let t = program.variable();
        assert!(program.maximise(t).is_err());
    }
}
