//! Why a workload cannot be built for a network.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use netloom_units::Invalid;

/// Why a workload cannot be built for a network.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A parameter has a value that makes no sense, by itself or on this network.
    #[error(transparent)]
    Parameter(#[from] Invalid),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file's content is wrong.
    #[error("{}: {problem}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A line of a file is wrong.
    #[error("{}:{line}: {problem}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1 (the row of a Parquet file).
        line: u64,
        /// What is wrong and what was expected.
        problem: String,
    },
}

impl WorkloadError {
    pub(crate) fn parameter(
        field: impl Into<Cow<'static, str>>,
        expected: impl Into<String>,
        found: impl std::fmt::Display,
    ) -> Self {
        Invalid::new(field, expected, found).into()
    }

    /// As the error of a part of the workload.
    pub(crate) fn within(self, part: &str) -> Self {
        match self {
            WorkloadError::Parameter(invalid) => invalid.within(part).into(),
            other => other,
        }
    }

    pub(crate) fn file(file: &Path, problem: impl std::fmt::Display) -> Self {
        WorkloadError::File { file: file.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn line(file: &Path, line: u64, problem: impl std::fmt::Display) -> Self {
        WorkloadError::Line { file: file.to_owned(), line, problem: problem.to_string() }
    }
}
