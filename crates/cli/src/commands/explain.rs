//! `netloom explain`: the scenario with nothing left unsaid.

use std::io::Write;

use netloom_scenario::prepare;

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::input::load;

/// Prints a scenario that gives the same run as the one read, after checking that it can be run.
pub(crate) fn explain(args: &ScenarioArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &args.changes)?.warn();
    let ready = prepare(&loaded.scenario, &loaded.document)?;
    let mut text = loaded.scenario.explained()?;
    if !ready.work.is_empty() {
        text += "\n# The workload:\n";
        ready.work.iter().for_each(|line| text += &format!("# {line}\n"));
    }
    if loaded.scenario.fast {
        text += "\n# fast: ";
        text += &match ready.simulation.skips_nothing_because_of() {
            Some(what) => format!("nothing is skipped, because of {what}\n"),
            None => "what recurs is skipped, with the same outcome\n".to_owned(),
        };
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
