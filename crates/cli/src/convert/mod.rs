//! Configurations and command lines of other simulators as scenarios.

pub(crate) mod htsim;
pub(crate) mod ns3;
pub(crate) mod standalone;

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use netloom_scenario::{Node, Problem, Scenario, Source, check};

use crate::failure::{Failure, complain};

/// A scenario while it is put together.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Fields as lines of TOML.
    fields: Vec<String>,
    /// What the original says and the scenario does not, one sentence each.
    remarks: Vec<String>,
}

impl Draft {
    /// Sets a field to a value that is written without quotes: a number, a table, a list.
    pub(crate) fn set(&mut self, field: &str, value: impl Display) {
        self.fields.push(format!("{field} = {value}"));
    }

    /// Sets a field to a text.
    pub(crate) fn text(&mut self, field: &str, value: impl Display) {
        self.set(field, quoted(&value));
    }

    /// Says what the scenario leaves out, or does otherwise than the original.
    pub(crate) fn remark(&mut self, what: impl Into<String>) {
        self.remarks.push(what.into());
    }

    /// The scenario as TOML, what it leaves out as comments.
    pub(crate) fn toml(&self) -> String {
        let remarks = self.remarks.iter().map(|remark| format!("# not carried over: {remark}"));
        self.fields.iter().cloned().chain(remarks).map(|line| line + "\n").collect()
    }

    /// Prints the scenario, and on standard error what it leaves out.
    ///
    /// # Errors
    /// A scenario that would be refused, as where the original has values that make no sense.
    pub(crate) fn print(&self) -> Result<(), Failure> {
        let text = self.toml();
        let document = Node::parse(&Source::new("the scenario made of it", text.clone()))?;
        check(&Scenario::read(&document)?, &document)?;
        std::io::stdout().lock().write_all(text.as_bytes())?;
        for remark in &self.remarks {
            complain(&format!("not carried over: {remark}\n"));
        }
        Ok(())
    }
}

/// A text as TOML writes it.
pub(crate) fn quoted(text: &dyn Display) -> String {
    toml::Value::from(text.to_string()).to_string()
}

/// Fields of a table in one line.
pub(crate) fn table(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Finds a file that a simulator looks for from its own folder: in one of `folders` and what is above it, or in the working directory.
///
/// # Errors
/// That there is none, and where it was looked for.
pub(crate) fn find_file(name: &str, folder: &Path) -> Result<PathBuf, Problem> {
    // An empty folder is the working directory.
    let above = folder.ancestors().filter(|above| !above.as_os_str().is_empty());
    let places = above.chain([Path::new("")]).map(|place| place.join(name));
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Problem::new(
            "",
            format!(
                "there is no file {name} in {}, in a folder above it or in the working directory",
                place.display()
            ),
        )
    })
}
