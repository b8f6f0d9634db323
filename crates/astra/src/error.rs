//! What is wrong with the files of a training job.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Why a training job cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
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
        /// The line, counted from 1.
        line: u64,
        /// What is wrong and what was expected.
        problem: String,
    },
}

impl JobError {
    pub(crate) fn file(file: &Path, problem: impl Display) -> Self {
        JobError::File { file: file.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn line(file: &Path, line: u64, problem: impl Display) -> Self {
        JobError::Line { file: file.to_owned(), line, problem: problem.to_string() }
    }

    pub(crate) fn read(file: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        |source| JobError::Read { file: file.to_owned(), source }
    }
}
