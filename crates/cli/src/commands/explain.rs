//! `netloom explain`: the scenario with nothing left unsaid.

use std::io::Write;

use netloom_scenario::prepare;

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::input::load;

/// Prints a scenario that gives the same run as the one read, after checking that it can be run.
pub(crate) fn explain(args: &ScenarioArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &args.changes)?.warn();
    prepare(&loaded.scenario, &loaded.document)?;
    std::io::stdout().write_all(loaded.scenario.explained()?.as_bytes())?;
    Ok(())
}
