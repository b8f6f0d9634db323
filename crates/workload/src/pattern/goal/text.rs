//! GOAL text as statements: decompression, lines, comments, words.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::binary::MAGIC;
use crate::WorkloadError;

/// Bytes of the longest line that is read; what is longer is no schedule.
const LONGEST_LINE: u64 = 1 << 16;

/// Opens a file, compressed by gzip or not.
pub(super) fn open(file: &Path) -> Result<Box<dyn BufRead>, WorkloadError> {
    let fail = |source| WorkloadError::Read { file: file.to_owned(), source };
    let mut reader = BufReader::with_capacity(1 << 16, File::open(file).map_err(fail)?);
    let compressed = reader.fill_buf().map_err(fail)?.starts_with(&[0x1f, 0x8b]);
    Ok(if compressed { Box::new(BufReader::new(MultiGzDecoder::new(reader))) } else { Box::new(reader) })
}

/// Whether a file is a schedule in the binary form.
pub(super) fn is_binary(file: &Path) -> Result<bool, WorkloadError> {
    let fail = |source| WorkloadError::Read { file: file.to_owned(), source };
    // What is no regular file, such as a pipe, cannot be read twice.
    if !std::fs::metadata(file).map_err(fail)?.is_file() {
        return Ok(false);
    }
    let mut first = Vec::new();
    let head = File::open(file).map_err(fail)?.take(MAGIC.len() as u64);
    BufReader::new(head).read_to_end(&mut first).map_err(fail)?;
    Ok(first == MAGIC)
}

/// The lines of a text, one at a time, without comments.
pub(super) struct Statements<'a, R> {
    file: &'a Path,
    reader: R,
    /// The line as it is read.
    raw: Vec<u8>,
    /// The line without comments, braces standing alone.
    text: String,
    /// Counted from 1.
    line: u64,
    in_comment: bool,
}

impl<'a, R: BufRead> Statements<'a, R> {
    pub(super) fn new(reader: R, file: &'a Path) -> Self {
        Statements { file, reader, raw: Vec::new(), text: String::new(), line: 0, in_comment: false }
    }

    /// The number of the line that was read last.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Why the line that was read last is wrong.
    pub(super) fn fail(&self, problem: impl std::fmt::Display) -> WorkloadError {
        WorkloadError::line(self.file, self.line, problem)
    }

    /// Reads the next line that holds something; false at the end of the text. [`words`](Self::words) are what it
    /// holds.
    pub(super) fn advance(&mut self) -> Result<bool, WorkloadError> {
        loop {
            self.raw.clear();
            let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut self.raw);
            let read =
                read.map_err(|source| WorkloadError::Read { file: self.file.to_owned(), source })? as u64;
            if read == 0 {
                return Ok(false);
            }
            self.line += 1;
            if read == LONGEST_LINE && !self.raw.ends_with(b"\n") {
                return Err(self.fail(format!("expected a line of less than {LONGEST_LINE} bytes")));
            }
            self.strip()?;
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The words of the line that was read last.
    pub(super) fn words(&self) -> std::str::SplitAsciiWhitespace<'_> {
        self.text.split_ascii_whitespace()
    }

    /// Takes the comments out of the line. Lines without any, nearly all of them, are looked at once.
    fn strip(&mut self) -> Result<(), WorkloadError> {
        self.text.clear();
        let raw = std::str::from_utf8(&self.raw)
            .map_err(|_| WorkloadError::line(self.file, self.line, "expected text in UTF-8"))?;
        let mut rest = raw;
        loop {
            if self.in_comment {
                let Some(end) = rest.find("*/") else { return Ok(()) };
                (self.in_comment, rest) = (false, &rest[end + 2..]);
            }
            let Some(at) = rest.find(['/', '{', '}']) else {
                self.text.push_str(rest);
                return Ok(());
            };
            self.text.push_str(&rest[..at]);
            rest = &rest[at..];
            if rest.starts_with("//") {
                return Ok(());
            }
            self.in_comment = rest.starts_with("/*");
            if !self.in_comment {
                self.text.push(' ');
                self.text.push_str(&rest[..1]);
            }
            // A word of its own either way.
            self.text.push(' ');
            rest = &rest[1 + usize::from(self.in_comment)..];
        }
    }
}
