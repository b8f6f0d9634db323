//! Checking the claims against the results.

mod certainty;
mod expression;
mod parser;
mod term;

use netloom_record::Estimate;
use serde::{Deserialize, Serialize};

pub(crate) use term::FUNCTIONS;

pub use expression::{
    Binding, Counting, Expression, ExpressionError, Metrics, Outcome, Sample, significant, two_digits,
};

use crate::file::{Claim, Needs, Use};

/// The level of the intervals by which claims are judged.
pub const LEVEL: f64 = 0.95;

/// What the results say about a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim's name.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// What the seeds say of it.
    pub verdict: Judgement,
    /// The verdict as a truth; absent if it cannot be told or computed.
    pub holds: Option<bool>,
    /// Whether the means over the seeds satisfy the comparison; absent if it could not be computed, e.g. because a cell is not done.
    pub mean_holds: Option<bool>,
    /// The level of the intervals by which it was judged; absent with one seed, which has none.
    pub level: Option<f64>,
    /// The measured number, or both sides of the comparison; or why there is none.
    pub measured: String,
    /// What the source reports.
    pub published: String,
    /// Whether a failure fails the study.
    pub gate: bool,
    /// What it takes for the gate to hold.
    pub needs: Needs,
    /// Paper, section, figure.
    pub source: String,
    /// A remark for the reader.
    pub note: String,
}

/// What the seeds say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The comparison holds: over the whole interval, or in the one run.
    Holds,
    /// It does not: nowhere in the interval, or not in the one run.
    DoesNotHold,
    /// The interval allows both.
    CannotBeTold,
    /// It cannot be computed, e.g. because a cell is not done.
    NotComputed,
}

impl Verdict {
    /// Whether the study fails because of this claim.
    pub fn fails(&self) -> bool {
        let meets = match self.needs {
            Needs::Interval => self.verdict == Judgement::Holds,
            Needs::Mean => self.mean_holds == Some(true),
        };
        self.gate && !meets
    }
}

/// Checks every claim against the results, in order.
pub fn judge(claims: &[Claim], metrics: &dyn Metrics) -> Vec<Verdict> {
    claims.iter().map(|claim| judge_one(claim, metrics)).collect()
}

fn judge_one(claim: &Claim, metrics: &dyn Metrics) -> Verdict {
    let expression = &claim.expression.expression;
    let of_means = match expression.evaluate(metrics) {
        Ok(Outcome::Truth(holds)) => Ok(holds),
        Ok(Outcome::Number(_)) => Err("the expression is not a comparison".to_owned()),
        Err(error) => Err(error.message),
    };
    let judged = of_means.and_then(|of_means| match expression.judge(metrics) {
        Ok(judged) => Ok((of_means, judged)),
        Err(error) => Err(error.message),
    });
    let shown = match &claim.value {
        Some(value) => value.expression.estimate(metrics).map(|value| show(value, claim.decimals)),
        None => expression.sides(metrics),
    };
    let (verdict, measured) = match (&judged, shown) {
        (Ok((_, judged)), shown) => {
            let verdict = match judged {
                Some(true) => Judgement::Holds,
                Some(false) => Judgement::DoesNotHold,
                None => Judgement::CannotBeTold,
            };
            (verdict, shown.unwrap_or_else(|error| error.message))
        }
        (Err(message), _) => (Judgement::NotComputed, message.clone()),
    };
    let judged = judged.ok();
    Verdict {
        id: claim.id.clone(),
        text: claim.text.clone(),
        verdict,
        holds: judged.and_then(|(_, judged)| judged),
        mean_holds: judged.map(|(of_means, _)| of_means),
        level: (judged.is_some() && metrics.seeds() > 1).then_some(LEVEL),
        measured,
        published: claim.published.clone(),
        gate: claim.role == Use::Gate,
        needs: claim.needs,
        source: claim.source.clone(),
        note: claim.note.clone(),
    }
}

/// A number as it stands beside a published one: at least as many digits behind the point.
fn show(value: Estimate, decimals: Option<usize>) -> String {
    let Estimate { mean, plus_minus } = value;
    let brief = significant(mean);
    let exact = decimals.map(|decimals| format!("{mean:.decimals$}"));
    let number = exact.filter(|exact| exact.len() > brief.len()).unwrap_or(brief);
    match plus_minus {
        Some(half) if half > 0.0 => format!("{number} ± {}", two_digits(half)),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Form, Study};
    use netloom_scenario::{Node, Source};

    struct Fixed;

    impl Metrics for Fixed {
        fn samples(&self, metric: &str, _: &[String], _: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
            match metric {
                "fct" => Ok(vec![Sample { label: String::new(), runs: vec![2.0, 4.0] }]),
                _ => Err(format!("there is no metric `{metric}`")),
            }
        }

        fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
            Err(format!("there is no axis `{axis}`"))
        }
    }

    fn claims(claim: &str) -> Vec<Claim> {
        let text = format!("title = \"t\"\nscenario = {{}}\n[[claims]]\nid = \"c\"\ntext = \"c\"\n{claim}");
        Study::read(&Node::parse(&Source::new("s", text)).unwrap(), Form::Middle).unwrap().claims
    }

    fn verdict(claim: &str) -> Verdict {
        judge(&claims(claim), &Fixed).remove(0)
    }

    #[test]
    fn a_claim_shows_both_sides_or_the_number_asked_for() {
        let plain = verdict("expression = 'fct() < 2 * 2'");
        assert_eq!((plain.holds, plain.measured.as_str()), (Some(true), "3 < 4"));
        let value = verdict("expression = 'fct() < 2'\nvalue = 'fct() / 2'\npublished = \"about 1.5\"");
        assert_eq!((value.holds, value.measured.as_str()), (Some(false), "1.5"));
        assert_eq!(value.published, "about 1.5");
    }

    #[test]
    fn a_number_beside_a_published_one_has_its_digits() {
        let shown = |number, decimals| show(Estimate { mean: number, plus_minus: None }, decimals);
        assert_eq!(shown(55.814_399_9, Some(4)), "55.8144");
        assert_eq!(shown(55.814_399_9, None), "55.81");
        // Four significant digits are shown in any case.
        assert_eq!(shown(0.012_34, Some(2)), "0.01234");
    }

    /// Of a claim over two seeds, 2 and 4: 3 ± 12.7.
    #[test]
    fn a_gate_says_whether_the_means_or_the_interval_decide() {
        struct Two;
        impl Metrics for Two {
            fn samples(&self, metric: &str, a: &[String], b: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
                Fixed.samples(metric, a, b)
            }

            fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
                Fixed.axis(axis)
            }

            fn seeds(&self) -> usize {
                2
            }
        }
        let verdict = |claim: &str| judge(&claims(claim), &Two).remove(0);
        let unsure = verdict("expression = 'fct() < 5'");
        assert_eq!(
            (unsure.verdict, unsure.holds, unsure.mean_holds),
            (Judgement::CannotBeTold, None, Some(true))
        );
        assert_eq!((unsure.measured.as_str(), unsure.level), ("3 < 5 (difference -2 ± 13)", Some(LEVEL)));
        assert!(unsure.fails());
        assert!(!verdict("expression = 'fct() < 5'\nneeds = \"mean\"").fails());
        assert!(verdict("expression = 'fct() < 2'\nneeds = \"mean\"").fails());
        assert!(!verdict("expression = 'fct() < 100'").fails());
        assert_eq!(verdict("expression = 'fct() < 5'\nvalue = 'fct()'").measured, "3 ± 13");
        let none = verdict("expression = 'fcd() < 5'\nneeds = \"mean\"");
        assert!(none.fails() && none.level.is_none());
    }

    #[test]
    fn only_gates_fail_a_study() {
        assert!(verdict("expression = 'fct() < 2'").fails());
        assert!(!verdict("expression = 'fct() < 2'\nuse = \"report\"").fails());
    }

    #[test]
    fn a_gate_that_cannot_be_computed_fails() {
        let verdict = verdict("expression = 'fcd() < 2'");
        assert!(verdict.fails() && verdict.holds.is_none());
        assert_eq!(verdict.measured, "there is no metric `fcd`");
        let verdict = self::verdict("expression = 'fct() / (fct() - 3) > 1'");
        assert!(verdict.fails() && verdict.holds.is_none());
        assert_eq!(verdict.measured, "division by zero");
    }
}
