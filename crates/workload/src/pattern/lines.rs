//! Reading text files line by line, so that large ones need little memory.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::WorkloadError;

/// The lines of a file that hold something, with their numbers.
pub(super) struct Lines<'a> {
    file: &'a Path,
    reader: BufReader<File>,
    text: String,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn open(file: &'a Path) -> Result<Self, WorkloadError> {
        let input =
            File::open(file).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
        Ok(Lines { file, reader: BufReader::new(input), text: String::new(), number: 0 })
    }

    /// The next line, without the spaces around it; empty lines and comments (`#`) are skipped.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &str)>, WorkloadError> {
        loop {
            self.text.clear();
            let read = self.reader.read_line(&mut self.text);
            let read = read.map_err(|source| WorkloadError::Read { file: self.file.to_owned(), source })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let line = self.text.trim();
            if !line.is_empty() && !line.starts_with('#') {
                break;
            }
        }
        Ok(Some((self.number, self.text.trim())))
    }
}
