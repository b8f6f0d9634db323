//! `netloom schema`: what editors need to know of scenarios and studies.

use std::io::Write;

use crate::args::{SchemaArgs, SchemaOf};
use crate::failure::Failure;

/// Prints the JSON schema of scenario or study files.
pub(crate) fn schema(args: &SchemaArgs) -> Result<(), Failure> {
    let schema = match args.of {
        SchemaOf::Scenario => netloom_scenario::schema(),
        SchemaOf::Study => netloom_study::schema(),
    };
    let text = serde_json::to_string_pretty(&schema).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
