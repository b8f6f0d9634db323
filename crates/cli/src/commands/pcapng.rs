//! `netloom pcapng`: a trace of packets as a capture that Wireshark and tshark open.

use std::collections::BTreeMap;
use std::io::Write;

use netloom_record::Outcome;

use crate::args::PcapngArgs;
use crate::failure::Failure;
use crate::files::{unwritable, write_file};

/// Writes the trace of an outcome as a capture.
pub(crate) fn pcapng(args: &PcapngArgs) -> Result<(), Failure> {
    let outcome = Outcome::read(&args.dir)?;
    let trace = outcome.trace()?;
    if trace.is_empty() {
        let message = format!(
            "{} holds no trace: expected a run with `measure.trace`, such as --set 'measure.trace.flows=[{{ src = 0, dst = 1 }}]'",
            args.dir.display()
        );
        return Err(Failure::Output(message));
    }
    let names: BTreeMap<u32, String> = outcome
        .channels()?
        .into_iter()
        .map(|channel| (channel.channel, format!("{} > {}", channel.from, channel.to)))
        .collect();
    let out = args.out.clone().unwrap_or_else(|| args.dir.with_extension("pcapng"));
    let bytes = netloom_export::pcapng(&trace, &names).map_err(|error| unwritable(&out, &error))?;
    write_file(&out, &bytes)?;
    writeln!(crate::show::out(), "{} packets in {}", trace.len(), out.display())?;
    Ok(())
}
