//! Holding the claims against the results.

mod expression;
mod parser;
mod term;

use serde::{Deserialize, Serialize};

pub(crate) use term::FUNCTIONS;

pub use expression::{Binding, Expression, ExpressionError, Metrics, Outcome, Sample, significant};

use crate::file::{Claim, Use};

/// What the results say about a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim's name.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Whether it holds; absent if it could not be computed, e.g. because a cell is not done.
    pub holds: Option<bool>,
    /// The measured number, or both sides of the comparison; or why there is none.
    pub measured: String,
    /// What the source reports.
    pub published: String,
    /// Whether a failure fails the study.
    pub gate: bool,
    /// Paper, section, figure.
    pub source: String,
    /// What a reader should know beside it.
    pub note: String,
}

impl Verdict {
    /// Whether the study fails because of this claim.
    pub fn fails(&self) -> bool {
        self.gate && self.holds != Some(true)
    }
}

/// Holds every claim against the results, in order.
pub fn judge(claims: &[Claim], metrics: &dyn Metrics) -> Vec<Verdict> {
    claims.iter().map(|claim| judge_one(claim, metrics)).collect()
}

fn judge_one(claim: &Claim, metrics: &dyn Metrics) -> Verdict {
    let holds = match claim.expression.expression.evaluate(metrics) {
        Ok(Outcome::Truth(holds)) => Ok(holds),
        Ok(Outcome::Number(_)) => Err("the expression is no comparison".to_owned()),
        Err(error) => Err(error.message),
    };
    let shown = match &claim.value {
        Some(value) => value.expression.evaluate(metrics).map(|value| show(&value, claim.decimals)),
        None => claim.expression.expression.sides(metrics),
    };
    let (holds, measured) = match (holds, shown) {
        (Ok(holds), Ok(shown)) => (Some(holds), shown),
        (Ok(holds), Err(error)) => (Some(holds), error.message),
        (Err(message), _) => (None, message),
    };
    Verdict {
        id: claim.id.clone(),
        text: claim.text.clone(),
        holds,
        measured,
        published: claim.published.clone(),
        gate: claim.role == Use::Gate,
        source: claim.source.clone(),
        note: claim.note.clone(),
    }
}

/// A number as it stands beside a published one: at least as many digits behind the point.
fn show(value: &Outcome, decimals: Option<usize>) -> String {
    let brief = value.to_string();
    match (value, decimals) {
        (Outcome::Number(number), Some(decimals)) => {
            let exact = format!("{number:.decimals$}");
            if exact.len() > brief.len() { exact } else { brief }
        }
        _ => brief,
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

    fn verdict(claim: &str) -> Verdict {
        let text = format!("title = \"t\"\nscenario = {{}}\n[[claims]]\nid = \"c\"\ntext = \"c\"\n{claim}");
        let study = Study::read(&Node::parse(&Source::new("s", text)).unwrap(), Form::Middle).unwrap();
        judge(&study.claims, &Fixed).remove(0)
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
        let shown = |number, decimals| show(&Outcome::Number(number), decimals);
        assert_eq!(shown(55.814_399_9, Some(4)), "55.8144");
        assert_eq!(shown(55.814_399_9, None), "55.81");
        // Four significant digits are shown in any case.
        assert_eq!(shown(0.012_34, Some(2)), "0.01234");
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
