//! Reading text files line by line, so that large ones need little memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::WorkloadError;

/// Bytes of the longest line that is read; what is longer is no list of flows.
const LONGEST_LINE: u64 = 1 << 16;

/// The lines of a file that hold something, with their numbers.
pub(crate) struct Lines<'a> {
    file: &'a Path,
    reader: BufReader<File>,
    text: String,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn open(file: &'a Path) -> Result<Self, WorkloadError> {
        let input =
            File::open(file).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
        Ok(Lines { file, reader: BufReader::new(input), text: String::new(), number: 0 })
    }

    /// The next line, without the spaces around it; empty lines and comments (`#`) are skipped.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &str)>, WorkloadError> {
        loop {
            self.text.clear();
            let read = self.reader.by_ref().take(LONGEST_LINE).read_line(&mut self.text);
            let read = read.map_err(|source| WorkloadError::Read { file: self.file.to_owned(), source })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 == LONGEST_LINE && !self.text.ends_with('\n') {
                let problem = format!("expected a line of less than {LONGEST_LINE} bytes");
                return Err(WorkloadError::line(self.file, self.number, problem));
            }
            let line = self.text.trim();
            if !line.is_empty() && !line.starts_with('#') {
                break;
            }
        }
        Ok(Some((self.number, self.text.trim())))
    }
}

/// A reader that fails where a line is too long, for parsers that would keep all of it.
pub(super) struct ShortLines<R> {
    reader: R,
    /// Bytes since the line began.
    length: u64,
}

impl<R: Read> ShortLines<R> {
    pub(super) fn new(reader: R) -> Self {
        ShortLines { reader, length: 0 }
    }
}

impl<R: Read> Read for ShortLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        // Buffers are shorter than lines may be, so a line that is too long spans several.
        self.length = match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(end) => (read - end - 1) as u64,
            None => self.length + read as u64,
        };
        if self.length > LONGEST_LINE {
            return Err(io::Error::other(format!("expected lines of less than {LONGEST_LINE} bytes")));
        }
        Ok(read)
    }
}
