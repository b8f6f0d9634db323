//! Where a word stands, and what is wrong with it.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use netloom_units::memory;
use netloom_units::names::shorten;

/// Bytes of the largest file that is read as TOML. Every word of it is kept with its place.
const LARGEST: u64 = 4 << 20;

/// Text that a user wrote: a file, or an override on the command line.
#[derive(Clone, Debug)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    text: String,
    folder: PathBuf,
}

impl Source {
    /// Text under the name by which errors call it, e.g. `--set`; relative paths in it start from the working
    /// directory.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source(Arc::new(Inner { name: name.into(), text: text.into(), folder: PathBuf::new() }))
    }

    /// Reads a file; relative paths in it start from its folder.
    ///
    /// # Errors
    /// A file that cannot be read, or is no UTF-8 text.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let name = path.display().to_string();
        let fail = |why: String| Problem::new("", format!("cannot read {name}: {why}"));
        let file = std::fs::File::open(path).map_err(|error| fail(error.to_string()))?;
        let mut bytes = Vec::new();
        let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
        read.map_err(|error| fail(error.to_string()))?;
        if bytes.len() as u64 > LARGEST {
            let most = memory::in_words(LARGEST);
            return Err(fail(format!(
                "it is larger than {most}; lists of flows and of sizes have files of their own"
            )));
        }
        let text = String::from_utf8(bytes).map_err(|_| fail("it is no UTF-8 text".to_owned()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Source(Arc::new(Inner { name, text, folder })))
    }

    /// The name by which errors call it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Where relative paths written in the text start from.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A span of a [`Source`].
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The text it lies in.
    pub source: Source,
    /// Byte range in that text.
    pub span: Range<usize>,
}

impl Place {
    /// Line and column, counted from 1, columns in characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = self.source.text().get(..self.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    /// The place as `name:line:column`.
    pub fn describe(&self) -> String {
        let (line, column) = self.line_and_column();
        format!("{}:{line}:{column}", self.source.name())
    }
}

/// One thing that is wrong with what a user wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What is wrong: what was expected and what was found.
    pub message: String,
    /// Dotted path of the field, e.g. `routing.granularity.gap`; empty where no field is to blame.
    pub field: String,
    /// What to do about it, e.g. the nearest valid name.
    pub help: Option<String>,
    /// Where it is written.
    pub place: Option<Place>,
    /// Whether nothing is wrong but that there is no such field.
    pub is_unknown_field: bool,
}

impl Problem {
    /// A problem without a place.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Problem {
            message: message.into(),
            field: field.into(),
            help: None,
            place: None,
            is_unknown_field: false,
        }
    }

    /// The same problem at a place.
    pub fn at(self, place: &Place) -> Self {
        Problem { place: Some(place.clone()), ..self }
    }

    /// The same problem with advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Problem { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", shorten(&self.field))?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Everything found wrong with what a user wrote; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Problems in the order of reading: those of one text together, from top to bottom, each once.
    pub fn in_order(mut problems: Vec<Problem>) -> Self {
        let key = |problem: &Problem| {
            problem.place.as_ref().map(|place| (place.source.name().to_owned(), place.span.start))
        };
        problems.sort_by_key(key);
        problems.dedup();
        Problems(problems)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            if let Some(place) = &problem.place {
                write!(f, "{}: ", place.describe())?;
            }
            write!(f, "{problem}")?;
            if let Some(help) = &problem.help {
                write!(f, " ({help})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
