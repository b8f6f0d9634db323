//! `netloom schema`: what editors need to know of scenarios.

use std::io::Write;

use crate::failure::Failure;

/// Prints the JSON schema of scenario files.
pub(crate) fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&netloom_scenario::schema()).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
