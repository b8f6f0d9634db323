//! From axes to cells.

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_scenario::{Place, Problem, Problems, Scenario, Settled};

use crate::analysis::Analysis;
use crate::cell::{Cell, Point};
use crate::columns;
use crate::file::{Axis, Base, Case, Study, apply};
use crate::results::Results;
use crate::warnings::Warnings;
use crate::work::Work;

/// A study whose cells are known to be sound.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every cell: all combinations of the axes' values, each with every seed.
    pub cells: Vec<Cell>,
    /// About how much work each cell is: bytes that hosts send, an estimate; 1 for each measurement.
    pub costs: Vec<f64>,
    /// What is probably a mistake, each in one sentence with the points that it is about: fields that a point's kinds do not have, and what
    /// a run of the point would warn of before it begins.
    pub warnings: Vec<String>,
    /// How much memory each cell needs at least, in bytes: its network, routes and hosts. What a run has in flight is not in it.
    pub memory: Vec<u64>,
    /// The same warnings by point, to tell them from those of the runs.
    pub(crate) by_point: Vec<Vec<String>>,
    /// The numbers that each point will have, by name; they have no values yet.
    pub(crate) outline: Results,
}

/// The greatest whole number that TOML has.
const MAX_SEED: u64 = i64::MAX as u64;

impl Study {
    /// Lays out all cells, and finds before the first of them runs what is wrong with any of them or with a claim.
    ///
    /// # Errors
    /// More cells than the study may have; what is wrong with the work of a cell, where what several cells share is told once; what is
    /// wrong with a claim.
    pub fn plan(&self) -> Result<Plan, Problems> {
        self.check_count()?;
        let points = self.points()?;
        let mut problems = Vec::new();
        let mut outlines = Vec::with_capacity(points.len());
        let mut costs = Vec::new();
        let mut memory = Vec::new();
        let mut warnings = Warnings::default();
        let mut by_point = Vec::with_capacity(points.len());
        for point in &points {
            warnings.add(&point.left_out, &point.name());
            let mut of_point = point.left_out.clone();
            match point.work.check() {
                Ok(checked) => {
                    warnings.add(&checked.warnings, &point.name());
                    of_point.extend(checked.warnings);
                    outlines.push((Arc::clone(point), checked.names));
                    costs.extend(std::iter::repeat_n(checked.cost, self.repetitions as usize));
                    memory.extend(std::iter::repeat_n(checked.memory, self.repetitions as usize));
                }
                Err(found) => problems.extend(found.0),
            }
            by_point.push(of_point);
        }
        if !problems.is_empty() {
            return Err(Problems::in_order(problems));
        }
        let outline = Results::outline(outlines);
        self.check_claims(&outline)?;
        self.check_columns(&outline)?;
        let repetitions = 0..self.repetitions;
        let cells = points.iter().flat_map(|point| {
            repetitions.clone().map(|repetition| Cell { point: Arc::clone(point), repetition })
        });
        let mut warnings = warnings.of_points(points.len());
        if self.has_no_such_form {
            let small = "the study has no small form, so all of it is run; `[small]`, `small` in a case and `small_values` of an axis say what is smaller there";
            warnings.insert(0, small.to_owned());
        }
        Ok(Plan { cells: cells.collect(), costs, memory, warnings, by_point, outline })
    }

    /// Refuses more cells than are likely to be meant, before any of them takes up room.
    fn check_count(&self) -> Result<(), Problem> {
        if self.max_cells == 0 {
            return Err(Problem::new("max_cells", "expected at least 1, found 0").at(&self.max_cells_place));
        }
        let factors: Vec<String> =
            self.axes.iter().map(|axis| format!("{} {}", axis.cases.len(), axis.name)).collect();
        let points =
            self.axes.iter().fold(1u128, |product, axis| product.saturating_mul(axis.cases.len() as u128));
        let repetitions = u128::from(self.repetitions);
        let most = points.saturating_mul(repetitions);
        if most <= u128::from(self.max_cells) {
            return Ok(());
        }
        // Where an axis does not apply to all points there are fewer than the product.
        let mut count = 0u128;
        let _ = self.each_combination(&mut |_| {
            count += repetitions;
            if count > u128::from(self.max_cells) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if count <= u128::from(self.max_cells) {
            return Ok(());
        }
        let message = format!(
            "expected at most {} cells, found up to {most} ({} × {} seeds)",
            self.max_cells,
            factors.join(" × "),
            self.repetitions
        );
        Err(Problem::new("axis", message)
            .at(&self.place)
            .help("`max_cells` at the top of the study allows more"))
    }

    fn points(&self) -> Result<Vec<Arc<Point>>, Problems> {
        let mut points = Vec::new();
        let mut problems: Vec<Problem> = Vec::new();
        let mut without_effect = self.overridden.clone();
        let _ = self.each_combination(&mut |chosen| {
            match self.point(chosen, &mut without_effect) {
                Ok(point) => points.push(Arc::new(point)),
                Err(found) => problems.extend(found.0),
            }
            ControlFlow::Continue(())
        });
        problems.extend(without_effect.iter().map(|(path, place)| {
            Problem::new(
                path.join("."),
                "the axes of this study set it in every cell, so that this value would not be used",
            )
            .at(place)
            .help("leave it out, or change the values of the axis in the study's file")
        }));
        if problems.is_empty() { Ok(points) } else { Err(Problems::in_order(problems)) }
    }

    /// The point of some cases. Of `without_effect`, takes out the fields set from outside that keep their values there.
    fn point(
        &self,
        chosen: &[(&Axis, &Case)],
        without_effect: &mut Vec<(Vec<String>, Place)>,
    ) -> Result<Point, Problems> {
        let (Base::Scenario(base) | Base::Analysis(base)) = &self.base;
        let mut document = base.clone();
        let mut problems = Vec::new();
        for (_, case) in chosen {
            apply(&mut document, &case.set, &mut problems);
        }
        without_effect.retain(|(path, place)| {
            document.at(path.iter().map(String::as_str)).is_none_or(|node| node.place != *place)
        });
        let document_place = document.nearest_place(["seed"]);
        let work = match &self.base {
            Base::Scenario(_) => Scenario::settle(&document).map(|Settled { value, document, left_out }| {
                (Work::Run(Box::new(value), document), left_out)
            }),
            Base::Analysis(_) => Analysis::settle(&document).map(|Settled { value, document, left_out }| {
                (Work::Measure(Box::new(value), document), left_out)
            }),
        };
        match work {
            Ok((work, left_out)) => {
                let most = MAX_SEED - u64::from(self.repetitions - 1);
                if work.seed() > most {
                    let message = format!(
                        "expected at most {most}, so that the seeds of all {} repetitions fit, found {}",
                        self.repetitions,
                        work.seed()
                    );
                    problems.push(Problem::new("seed", message).at(&document_place));
                }
                problems.extend(chosen.iter().filter_map(|(axis, case)| undone(axis, case, &left_out)));
                if !problems.is_empty() {
                    return Err(Problems(problems));
                }
                let labels = chosen.iter().map(|(axis, case)| (axis.name.clone(), case.label.clone()));
                let left_out = left_out.iter().map(Problem::to_string).collect();
                Ok(Point { labels: labels.collect(), work, left_out })
            }
            Err(found) => {
                problems.extend(found.0);
                Err(Problems(problems))
            }
        }
    }

    /// Finds every chosen column by name.
    fn check_columns(&self, outline: &Results) -> Result<(), Problems> {
        let mut problems = Vec::new();
        for (i, (name, place)) in self.columns.iter().flatten().enumerate() {
            if let Err(problem) = columns::chosen(outline, std::slice::from_ref(name)) {
                problems.push(Problem { field: format!("columns.{i}"), ..problem.at(place) });
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Problems::in_order(problems)) }
    }

    /// Evaluates every claim on names alone.
    fn check_claims(&self, outline: &Results) -> Result<(), Problems> {
        let mut problems = Vec::new();
        for claim in &self.claims {
            let formulas = [(Some(&claim.expression), true), (claim.value.as_ref(), false)];
            for (formula, is_comparison) in formulas {
                if let Some(formula) = formula
                    && let Err(error) = formula.expression.check(outline, is_comparison)
                {
                    let message = format!("claim {}: {}", claim.id, error.message);
                    problems.push(formula.problem(message, &error.span));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Problems::in_order(problems)) }
    }
}

/// A case of which nothing is left, because kinds that later axes choose have none of its fields: its label would say what does not hold. A
/// case that means something else, too, may lose a field.
fn undone(axis: &Axis, case: &Case, left_out: &[Problem]) -> Option<Problem> {
    let note_at = |place: &Place| left_out.iter().find(|note| note.place.as_ref() == Some(place));
    let notes: Vec<&Problem> =
        case.set.iter().map(|setting| note_at(&setting.path_place)).collect::<Option<_>>()?;
    let note = notes.first()?;
    let message = format!("{} = {} has no effect: it is {}", axis.name, case.label, note.message);
    let help = format!(
        "write the axis {} after the one that chooses, with an `only` of the labels that have the field",
        axis.name
    );
    Some(Problem { message, help: Some(help), ..(*note).clone() })
}
