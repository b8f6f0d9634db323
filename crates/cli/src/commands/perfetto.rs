//! `netloom perfetto`: what happened when, as a trace that Perfetto and chrome://tracing open.

use std::io::Write;

use netloom_record::Outcome;

use crate::args::PerfettoArgs;
use crate::failure::Failure;
use crate::files::write_file;
use crate::input::scenario_of;

/// Writes the trace of an outcome.
pub(crate) fn perfetto(args: &PerfettoArgs) -> Result<(), Failure> {
    let outcome = Outcome::read(&args.dir)?;
    let scenario = scenario_of(&args.dir, &outcome)?.scenario;
    let timeline = netloom_export::perfetto(&outcome, scenario.measure.sample)?;
    let out = args.out.clone().unwrap_or_else(|| args.dir.with_extension("perfetto.json"));
    write_file(&out, timeline.text.as_bytes())?;
    let mut line = format!("{} events in {}", timeline.events, out.display());
    if timeline.left_out > 0 {
        line +=
            &format!("; the {} flows are left out, which are more than a browser shows", timeline.left_out);
    }
    writeln!(crate::show::out(), "{line}")?;
    Ok(())
}
