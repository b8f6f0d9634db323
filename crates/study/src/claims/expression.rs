//! The language of claims: `p99_fct("flowcut") <= 0.75 * p99_fct("ecmp")`.
//!
//! | written | meaning |
//! | --- | --- |
//! | `metric("a", "load=0.5")` | a number of the summary, of the cells that carry all these labels, mean over the seeds |
//! | `+ - * /`, `( )` | arithmetic |
//! | `< <= > >= == !=` | comparison; `a < b < c` means both |
//! | `and`, `or`, `not` | logic |
//! | `abs(x)` | absolute value |
//! | `within(x, y, r)`, `near(x, y, d)` | whether x differs from y by at most r times y, by at most d |
//! | `min(…)`, `max(…)`, `mean(…)`, `spread(…)` | over several numbers, or over all cells that one metric selects; spread is (max − min) / mean |
//! | `seed_spread(metric(…))` | (max − min) / mean over the seeds of one cell |
//! | `min_over("axis", x)`, `max_over`, `mean_over` | of the values that x takes along the axis, label by label |
//! | `count_over("axis", a < b)` | how many labels of the axis the comparison holds for |

use std::fmt;
use std::ops::Range;

use netloom_record::Estimate;

use super::certainty::estimate;
use super::parser::parse;
use super::term::{Form, Term};

/// A metric's value at one point of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The point's labels, for messages.
    pub label: String,
    /// One number per seed; never empty.
    pub runs: Vec<f64>,
}

impl Sample {
    /// Mean over the seeds.
    pub fn mean(&self) -> f64 {
        self.runs.iter().sum::<f64>() / self.runs.len() as f64
    }
}

/// Where an expression finds its metrics.
pub trait Metrics {
    /// The values of a metric at every point that carries all the labels, and at which the bound axes have their labels.
    ///
    /// A bound axis does not concern a metric that has a label of this axis itself, nor points that are not varied along
    /// the axis.
    ///
    /// # Errors
    /// A name or label that does not exist, said so that a user can mend it.
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String>;

    /// The labels of an axis.
    ///
    /// # Errors
    /// If there is no such axis, said so that a user can mend it.
    fn axis(&self, axis: &str) -> Result<Vec<String>, String>;

    /// Whether there are only names yet and no numbers: then what a number comes to is no mistake.
    fn is_outline(&self) -> bool {
        false
    }

    /// How many seeds every point was run with.
    fn seeds(&self) -> usize {
        1
    }

    /// Which comparisons `count_over` counts.
    fn counting(&self) -> Counting {
        Counting::Means
    }
}

/// Which comparisons `count_over` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Those that the means satisfy.
    Means,
    /// Those that hold at the level of the intervals.
    Certain,
    /// Those that are not refuted at that level.
    Possible,
}

/// An axis at one of its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding<'a> {
    /// The axis.
    pub axis: &'a str,
    /// One of its labels.
    pub label: &'a str,
}

/// What an expression comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// A number.
    Number(f64),
    /// The answer to a comparison.
    Truth(bool),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Number(number) => f.write_str(&significant(*number)),
            Outcome::Truth(truth) => truth.fmt(f),
        }
    }
}

/// A number with four significant digits, as tables show it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "−4 to 5, so that 0 to 7 are left"
)]
pub fn significant(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor();
    if !(-4.0..6.0).contains(&magnitude) {
        return format!("{number:.3e}");
    }
    let decimals = (3 - magnitude as i32).max(0) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Half of an interval, which needs no more than two digits.
#[expect(clippy::cast_possible_truncation, reason = "−324 to 308, as the number is finite and not zero")]
pub fn two_digits(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scale = 10f64.powi(number.abs().log10().floor() as i32 - 1);
    significant((number / scale).round() * scale)
}

/// An expression that cannot be read or computed, and which part is to blame.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What is wrong.
    pub message: String,
    /// Byte range in the expression's text.
    pub span: Range<usize>,
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    root: Term,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// A word that does not belong where it stands.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Ok(Expression { root: parse(text)? })
    }

    /// Computes the expression.
    ///
    /// # Errors
    /// A metric or label that does not exist, a metric that selects several points where one number is needed,
    /// or a number where an answer is needed and the reverse.
    pub fn evaluate(&self, metrics: &dyn Metrics) -> Result<Outcome, ExpressionError> {
        self.root.evaluate(metrics)
    }

    /// Whether the comparison holds over the seeds, at the 95% level; `None` where the intervals allow both answers. With one seed it is
    /// what [`evaluate`](Self::evaluate) says.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn judge(&self, metrics: &dyn Metrics) -> Result<Option<bool>, ExpressionError> {
        self.root.judge(metrics)
    }

    /// The number that the expression comes to, with its 95% interval over the seeds.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate); a comparison.
    pub fn estimate(&self, metrics: &dyn Metrics) -> Result<Estimate, ExpressionError> {
        estimate(metrics, |metrics| self.root.number(metrics))
    }

    /// The values on both sides of the comparison, e.g. `12.3 <= 14.1`, and the difference with its interval where seeds differ; for a
    /// conjunction all of them.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn sides(&self, metrics: &dyn Metrics) -> Result<String, ExpressionError> {
        self.root.sides(metrics)
    }

    /// Finds mistakes before there are numbers: every metric, label and axis is there, every function has what it takes, one number is
    /// one number, and the whole is a comparison if it has to be.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self, outline: &dyn Metrics, is_comparison: bool) -> Result<(), ExpressionError> {
        match (self.evaluate(outline)?, is_comparison) {
            (Outcome::Number(_), true) => {
                let message = "expected a comparison, found a number".to_owned();
                Err(ExpressionError { message, span: self.root.span.clone() })
            }
            (Outcome::Truth(_), false) => {
                let message = "expected a number, found a comparison".to_owned();
                Err(ExpressionError { message, span: self.root.span.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether a metric is a published value up to a tolerance by `function` (`near` or `within`), and the metric alone.
    pub(crate) fn compared(
        function: &str,
        metric: &str,
        labels: Vec<String>,
        value: f64,
        tolerance: f64,
    ) -> (Self, Self) {
        let term = |form| Term { span: 0..0, form };
        let labels = labels.into_iter().map(|label| term(Form::Text(label))).collect();
        let metric = term(Form::Call(metric.to_owned(), labels));
        let numbers = [value, tolerance].map(|number| term(Form::Number(number)));
        let arguments = std::iter::once(metric.clone()).chain(numbers).collect();
        (Expression { root: term(Form::Call(function.to_owned(), arguments)) }, Expression { root: metric })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `p99_fct` of ecmp is 8 and 12 over two seeds, of flowcut 7; `ooo` is 0 everywhere.
    struct Table;

    impl Metrics for Table {
        fn samples(
            &self,
            metric: &str,
            labels: &[String],
            bound: &[Binding<'_>],
        ) -> Result<Vec<Sample>, String> {
            let labels: Vec<&str> =
                labels.iter().map(String::as_str).chain(bound.iter().map(|binding| binding.label)).collect();
            let all = match metric {
                "p99_fct" => vec![("ecmp", vec![8.0, 12.0]), ("flowcut", vec![7.0])],
                "ooo" => vec![("ecmp", vec![0.0]), ("flowcut", vec![0.0])],
                _ => return Err(format!("there is no metric `{metric}`")),
            };
            Ok(all
                .into_iter()
                .filter(|(label, _)| labels.iter().all(|wanted| wanted == label))
                .map(|(label, runs)| Sample { label: label.to_owned(), runs })
                .collect())
        }

        fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
            match axis {
                "scheme" => Ok(["ecmp", "flowcut"].map(str::to_owned).to_vec()),
                _ => Err(format!("there is no axis `{axis}`")),
            }
        }
    }

    /// Four seeds: `a` is 10 to 13, `b` always 1 more than `a`, `c` 8 to 20, `same` 0.1 in every seed, and `zero` 0.
    struct Seeds;

    impl Metrics for Seeds {
        fn samples(&self, metric: &str, _: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
            let runs = match (metric, bound.first().map(|binding| binding.label)) {
                ("a", _) | ("of", Some("a")) => [10.0, 11.0, 12.0, 13.0],
                ("b", _) | ("of", Some("b")) => [11.0, 12.0, 13.0, 14.0],
                ("c", _) | ("of", Some("c")) => [20.0, 8.0, 14.0, 11.0],
                ("same", _) => [0.1; 4],
                ("zero", _) => [0.0; 4],
                _ => return Err(format!("there is no metric `{metric}`")),
            };
            Ok(vec![Sample { label: metric.to_owned(), runs: runs.to_vec() }])
        }

        fn axis(&self, _: &str) -> Result<Vec<String>, String> {
            Ok(["a", "b", "c"].map(str::to_owned).to_vec())
        }

        fn seeds(&self) -> usize {
            4
        }
    }

    fn judged(text: &str) -> Option<bool> {
        Expression::parse(text).unwrap().judge(&Seeds).unwrap()
    }

    #[test]
    fn a_comparison_over_seeds_holds_does_not_hold_or_cannot_be_told() {
        // Their intervals overlap, but seed by seed b is larger by 1.
        assert_eq!([judged("a() < b()"), judged("a() > b()")], [Some(true), Some(false)]);
        assert_eq!([judged("b() < a() + 1"), judged("b() == a() + 1")], [Some(false), Some(true)]);
        // The difference is -1.75 ± 9.4.
        assert_eq!([judged("a() < c()"), judged("a() > c()"), judged("a() == c()")], [None; 3]);
        assert_eq!(
            [judged("a() != c()"), judged("c() < 30"), judged("c() > 30")],
            [None, Some(true), Some(false)]
        );
        assert_eq!([judged("c() / a() < 3"), judged("c() / a() > 1.2")], [Some(true), None]);
    }

    #[test]
    fn logic_has_three_values() {
        assert_eq!(
            [judged("a() < c() and a() < b()"), judged("a() < c() and a() > b()")],
            [None, Some(false)]
        );
        assert_eq!([judged("a() < c() or a() < b()"), judged("a() < c() or a() > b()")], [Some(true), None]);
        assert_eq!([judged("not a() < c()"), judged("not a() < b()")], [None, Some(false)]);
        assert_eq!(
            [judged("5 < a() < b()"), judged("5 < a() < c()"), judged("20 < a() < c()")],
            [Some(true), None, Some(false)]
        );
    }

    #[test]
    fn near_and_within_are_certain_if_the_whole_interval_is() {
        // a is 11.5 ± 2.05.
        assert_eq!(
            [judged("near(a(), 11, 3)"), judged("near(a(), 11, 1)"), judged("near(a(), 20, 3)")],
            [Some(true), None, Some(false)]
        );
        assert_eq!(
            [judged("within(a(), 11, 0.3)"), judged("within(a(), 11, 0.1)"), judged("within(a(), 20, 0.1)")],
            [Some(true), None, Some(false)]
        );
        assert_eq!(judged("within(b(), a(), 0.2)"), Some(true));
    }

    #[test]
    fn what_is_the_same_in_every_seed_is_exact() {
        assert_eq!(
            [judged("same() == 0.1"), judged("zero() == 0"), judged("zero() > 0")],
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!(
            [judged("same() * 3 <= 0.1 * 3"), judged("seed_spread(same()) == 0")],
            [Some(true), Some(true)]
        );
        // Without a value when a seed is left out: 1 / 0.
        assert_eq!(judged("1 / (a() - 11) > 0"), None);
    }

    #[test]
    fn counts_are_as_sure_as_what_they_count() {
        // a and b are below 15, c cannot be told.
        assert_eq!(judged("count_over('scheme', of() < 15) >= 2"), Some(true));
        assert_eq!(judged("count_over('scheme', of() < 15) >= 3"), None);
        assert_eq!(judged("count_over('scheme', of() < 15) == 2"), None);
        assert_eq!(judged("count_over('scheme', of() < 15) > 3"), Some(false));
        assert_eq!(judged("min_over('scheme', of()) > 3"), Some(true));
    }

    #[test]
    fn intervals_are_shown() {
        let sides = |text: &str| Expression::parse(text).unwrap().sides(&Seeds).unwrap();
        assert_eq!(sides("a() < b()"), "11.5 < 12.5");
        assert_eq!(sides("a() < c()"), "11.5 < 13.25 (difference -1.75 ± 9.4)");
        let estimate = |text: &str| Expression::parse(text).unwrap().estimate(&Seeds).unwrap();
        let half = estimate("2 * a()").plus_minus.unwrap();
        assert!(
            (half - 2.0 * Estimate::of(&[10.0, 11.0, 12.0, 13.0]).unwrap().plus_minus.unwrap()).abs() < 1e-9
        );
        assert_eq!(estimate("b() - a()").plus_minus, Some(0.0));
        assert_eq!(
            Expression::parse("p99_fct('flowcut')").unwrap().estimate(&Table).unwrap().plus_minus,
            None
        );
    }

    fn evaluate(text: &str) -> Result<Outcome, ExpressionError> {
        Expression::parse(text)?.evaluate(&Table)
    }

    fn number(text: &str) -> f64 {
        match evaluate(text).unwrap() {
            Outcome::Number(number) => number,
            Outcome::Truth(truth) => panic!("{truth}"),
        }
    }

    fn holds(text: &str) -> bool {
        evaluate(text).unwrap() == Outcome::Truth(true)
    }

    fn message(text: &str) -> (String, String) {
        let error = evaluate(text).unwrap_err();
        (error.message, text[error.span].to_owned())
    }

    #[test]
    fn arithmetic_binds_as_on_paper() {
        assert_eq!(number("1 + 2 * 3 - 4 / 2"), 5.0);
        assert_eq!(number("(1 + 2) * -3"), -9.0);
        assert_eq!(number("10 - 4 - 3"), 3.0);
        assert_eq!(number("1e3 + 2.5e-1"), 1000.25);
        assert_eq!(number("--2"), 2.0);
        assert_eq!(number("abs(-2) + max(1, 5, 3) + min(4, 2)"), 9.0);
    }

    #[test]
    fn a_claim_compares_means_over_seeds() {
        assert_eq!(number("p99_fct(\"ecmp\")"), 10.0);
        assert!(holds("p99_fct(\"flowcut\") <= 0.75 * p99_fct('ecmp')"));
        assert!(!holds("p99_fct(\"ecmp\") / p99_fct(\"flowcut\") > 2"));
        assert_eq!(number("seed_spread(p99_fct(\"ecmp\"))"), 0.4);
    }

    #[test]
    fn comparisons_chain_and_logic_joins_them() {
        assert!(holds("1 < 2 <= 2 < 3"));
        assert!(!holds("1 < 2 < 2"));
        assert!(holds("not 1 > 2 and (2 > 1 or 1 > 2)"));
        assert!(holds("within(10.1, 10, 0.02) and not within(11, 10, 0.02)"));
    }

    #[test]
    fn aggregates_run_over_all_selected_cells() {
        assert_eq!(number("min(p99_fct())"), 7.0);
        assert_eq!(number("max(p99_fct())"), 10.0);
        assert_eq!(number("mean(p99_fct())"), 8.5);
        assert_eq!(number("spread(p99_fct())"), 3.0 / 8.5);
        assert_eq!(number("spread(ooo())"), 0.0);
    }

    #[test]
    fn an_axis_is_gone_along_label_by_label() {
        // 2 x 10 - 10 and 2 x 7 - 7: both metrics are those of the same label.
        assert_eq!(number("min_over('scheme', 2 * p99_fct() - p99_fct())"), 7.0);
        assert_eq!(number("max_over('scheme', p99_fct() / 2)"), 5.0);
        assert_eq!(number("mean_over('scheme', p99_fct())"), 8.5);
        assert_eq!(number("count_over('scheme', p99_fct() < 8 and ooo() == 0)"), 1.0);
        assert_eq!(number("mean_over('scheme', max_over('scheme', p99_fct()))"), 10.0);
    }

    #[test]
    fn both_sides_of_a_claim_are_shown() {
        let sides = |text: &str| Expression::parse(text).unwrap().sides(&Table).unwrap();
        assert_eq!(sides("p99_fct(\"flowcut\") <= 0.75 * p99_fct(\"ecmp\")"), "7 <= 7.5");
        assert_eq!(sides("ooo(\"ecmp\") == 0 and 1 < 2"), "0 == 0 and 1 < 2");
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let (text, word) = message("p99_fct() < 1");
        assert!(text.starts_with("this selects 2 cells (ecmp; flowcut)"), "{text}");
        assert_eq!(word, "p99_fct()");
        assert_eq!(
            message("p98(\"ecmp\") < 1"),
            ("there is no metric `p98`".to_owned(), "p98(\"ecmp\")".to_owned())
        );
        assert_eq!(
            message("1 < "),
            ("expected a number, a metric or `(`, found the end".to_owned(), String::new())
        );
        assert_eq!(message("ooo < 1").1, "<");
        assert_eq!(message("(1 < 2) + 1").0, "expected a number, found a comparison");
        assert_eq!(message("1 and 2").0, "expected a comparison, found a number");
        assert_eq!(message("1 $ 2"), ("`$` means nothing here".to_owned(), "$".to_owned()));
        assert_eq!(message("ooo(\"ecmp)").0, "a closing \" is missing");
        assert_eq!(message("1 2").0, "expected an operator or the end, found `2`");
        assert_eq!(message("ooo(\"zebra\") < 1").0, "no cell carries all these labels");
        assert_eq!(message("abs(1, 2)").0, "`abs` takes one number");
        assert_eq!(
            message("min_over(\"load\", ooo())"),
            ("there is no axis `load`".to_owned(), "min_over(\"load\", ooo())".to_owned())
        );
        assert_eq!(message("min_over(ooo())").0, "`min_over` takes an axis in quotes and a number");
        assert_eq!(message("count_over(\"scheme\", ooo())").0, "expected a comparison, found a number");
        assert_eq!(message("1.2.3").0, "`1.2.3` is not a number");
    }

    #[test]
    fn what_comes_to_no_number_is_no_claim() {
        assert_eq!(
            message("1 / ooo(\"ecmp\") > 1"),
            ("division by zero".to_owned(), "1 / ooo(\"ecmp\")".to_owned())
        );
        assert_eq!(message("not ooo(\"ecmp\") / ooo(\"ecmp\") < 1").0, "division by zero");
        assert_eq!(message("spread(-1, 1) > 0").0, "the mean is zero, so there is no spread");
        assert_eq!(message("1e300 * 1e300 > 1").0, "this comes to inf");
        assert_eq!(message("1e999 > 1"), ("`1e999` is too large".to_owned(), "1e999".to_owned()));
        assert_eq!(number("spread(0, 0)"), 0.0);
    }

    #[test]
    fn published_values_are_rounded() {
        assert!(holds("near(0.91, 0.89, 0.02) and near(0.87, 0.89, 0.02) and not near(0.9101, 0.89, 0.02)"));
        let (claim, metric) = Expression::compared("near", "p99_fct", vec!["ecmp".to_owned()], 10.5, 0.4);
        assert_eq!(claim.evaluate(&Table), Ok(Outcome::Truth(false)));
        assert_eq!(metric.evaluate(&Table), Ok(Outcome::Number(10.0)));
    }

    /// The names of [`Table`] without its numbers.
    struct Names;

    impl Metrics for Names {
        fn samples(
            &self,
            metric: &str,
            labels: &[String],
            bound: &[Binding<'_>],
        ) -> Result<Vec<Sample>, String> {
            let mut samples = Table.samples(metric, labels, bound)?;
            samples.iter_mut().for_each(|sample| sample.runs = vec![f64::NAN]);
            Ok(samples)
        }

        fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
            Table.axis(axis)
        }

        fn is_outline(&self) -> bool {
            true
        }
    }

    #[test]
    fn mistakes_are_found_without_numbers() {
        let check =
            |text: &str| Expression::parse(text).unwrap().check(&Names, true).map_err(|error| error.message);
        assert_eq!(check("1 / (p99_fct('ecmp') - ooo('ecmp')) > min(ooo()) or spread(ooo()) < 1"), Ok(()));
        for (text, message) in [
            ("p99_fct('ecmp')", "expected a comparison, found a number"),
            ("1 < 2 and p98('ecmp') > 1", "there is no metric `p98`"),
            ("within(1, 2)", "`within` takes three numbers"),
            (
                "count_over('scheme', ooo() < 1 or p99_fct('zebra') > 1) > 1",
                "no cell carries all these labels",
            ),
        ] {
            assert_eq!(check(text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn brackets_without_end_are_refused() {
        assert!(evaluate(&"(".repeat(1000)).unwrap_err().message.contains("at most 100 opening"));
    }

    #[test]
    fn chains_without_end_are_refused() {
        for sign in ["+", "and", "or", "*"] {
            let error = evaluate(&format!("1 {sign} ").repeat(1_000_000)).unwrap_err();
            assert_eq!(error.message, "an expression has at most 2000 words");
        }
        assert!(evaluate(&format!("{}1 > 0", "1 + ".repeat(900))).is_ok());
    }

    #[test]
    fn numbers_are_shown_with_four_digits() {
        let shown = [12.3456, 0.000_123_46, 1234.56, 100.0, 0.0, 1.5e9, 2e-7].map(significant);
        assert_eq!(shown, ["12.35", "0.0001235", "1235", "100", "0", "1.500e9", "2.000e-7"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[-+*/()<>=!a-z0-9.,\"' é]{0,40}") {
            let _ = evaluate(&text);
        }
    }
}
