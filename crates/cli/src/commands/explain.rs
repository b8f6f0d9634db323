//! `netloom explain`: the scenario with nothing left unsaid.

use std::io::Write;

use netloom_scenario::{Fast, Run, Steady, prepare};

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::input::load;
use crate::show;

/// Prints a scenario that gives the same run as the one read, after checking that it can be run.
pub(crate) fn explain(args: &ScenarioArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &args.changes)?.warn();
    let ready = prepare(&loaded.scenario, &loaded.document)?;
    let mut text = loaded.scenario.explained()?;
    if !ready.work.is_empty() {
        text += "\n# The workload:\n";
        ready.work.iter().for_each(|line| text += &format!("# {line}\n"));
    }
    if let Run::Packets(simulation) = &ready.run
        && loaded.scenario.fast != Fast::Nothing
    {
        let skipped = match (simulation.skips_nothing_because_of(), loaded.scenario.fast) {
            (Some(_), Fast::Auto) => None,
            (Some(what), _) => Some(format!("nothing is skipped, because of {what}")),
            (None, Fast::Steady(Steady { max_error, .. })) => Some(format!(
                "what recurs or is steady is skipped, with an error that is measured and is to be at most {}",
                show::percent(max_error)
            )),
            (None, _) => Some("what recurs is skipped, with the same outcome".to_owned()),
        };
        skipped.iter().for_each(|what| text += &format!("\n# fast: {what}\n"));
    }
    let text = match show::width() {
        Some(width) => fit_comments(&text, width),
        None => text,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Breaks comments that are wider than the terminal; what is broken is still TOML.
fn fit_comments(text: &str, width: usize) -> String {
    let fit = |line: &str| match line.strip_prefix("# ") {
        Some(comment) => {
            let broken = show::wrap_within(comment, width.saturating_sub(2).max(20), 2);
            format!("# {}\n", broken.replace('\n', "\n# "))
        }
        None => format!("{line}\n"),
    };
    text.lines().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::fit_comments;

    #[test]
    fn comments_are_broken_and_stay_comments() {
        let text = "# until: not set; the run ends at this instant even if flows are unfinished\nseed = 1\n";
        let fitted = fit_comments(text, 40);
        let expected =
            "# until: not set; the run ends at this\n#   instant even if flows are unfinished\nseed = 1\n";
        assert_eq!(fitted, expected);
        assert_eq!(fit_comments(text, 80), text);
    }
}
