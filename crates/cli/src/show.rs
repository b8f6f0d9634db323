//! Tables and numbers as people read them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use console::Term;
use netloom_study::significant;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::peaker::Priority;
use tabled::settings::{Alignment, Style, Width};

/// A text without what a terminal would obey: control characters of names, say, as `\x1b`; lines and tabulators stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            let _ = write!(visible, "\\x{:02x}", u32::from(c));
        } else {
            visible.push(c);
        }
    }
    visible.into()
}

/// Standard output for people: whatever is printed is [`visible`].
pub(crate) fn out() -> Visible<io::StdoutLock<'static>> {
    Visible(io::stdout().lock())
}

/// What is written to it is written on as text that no terminal obeys.
pub(crate) struct Visible<W>(W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A character may be cut in two here; both of its parts are written on.
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(visible(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Rows as a table whose first row is the header; all columns but the first are numbers. Where it would be wider than the terminal, it
/// becomes several tables, one below the other.
pub(crate) fn table(rows: Vec<Vec<String>>) -> String {
    let of_block = |columns: Vec<usize>| {
        let row = |row: &Vec<String>| {
            let cell = |&column: &usize| row.get(column).map_or("", String::as_str);
            columns.iter().map(|column| visible(cell(column)).into_owned()).collect::<Vec<_>>()
        };
        let mut table = Builder::from_iter(rows.iter().map(row)).build();
        table.with(Style::rounded()).modify(Columns::new(1..), Alignment::right());
        table.to_string()
    };
    blocks(&rows, width()).into_iter().map(of_block).collect::<Vec<_>>().join("\n")
}

/// Which columns stand in which table, so that none is wider than `width` characters: each table has the first column and as many of the
/// others as fit, but at least one.
fn blocks(rows: &[Vec<String>], width: Option<usize>) -> Vec<Vec<usize>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    // A border before every column, a space on both of its sides.
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| console::measure_text_width(cell) + 3).max().unwrap_or(3)
    };
    let all = width.unwrap_or(usize::MAX).saturating_sub(wide(0) + 1);
    let (mut blocks, mut room) = (vec![vec![0]], all);
    for column in 1..columns {
        let needed = wide(column);
        if needed > room && blocks.last().is_some_and(|block| block.len() > 1) {
            blocks.push(vec![0]);
            room = all;
        }
        blocks.last_mut().expect("there is a first").push(column);
        room = room.saturating_sub(needed);
    }
    blocks
}

/// Rows of words as a table whose first row is the header, wrapped where it would be wider than the terminal.
pub(crate) fn text_table(rows: Vec<Vec<String>>) -> String {
    text_table_within(rows, width())
}

fn text_table_within(rows: Vec<Vec<String>>, width: Option<usize>) -> String {
    let visible = |row: Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect::<Vec<_>>();
    let mut table = Builder::from_iter(rows.into_iter().map(visible)).build();
    table.with(Style::rounded());
    if let Some(width) = width {
        table.with(Width::wrap(width).priority(Priority::max(true)).keep_words(true));
    }
    table.to_string()
}

/// How wide a line of standard output may be: as wide as the terminal, or as `COLUMNS` says; `None` where it goes elsewhere.
pub(crate) fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.or_else(|| Term::stdout().size_checked().map(|(_, width)| usize::from(width)))
}

/// A text of which no line is wider than the terminal: lines are broken at spaces and go on below where their text begins, behind a name and
/// two spaces or more. Tables stay as they are.
pub(crate) fn fit(text: &str) -> String {
    match width() {
        Some(width) => fit_within(text, width),
        None => text.to_owned(),
    }
}

pub(crate) fn fit_within(text: &str, width: usize) -> String {
    let mut fitted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_table = line.starts_with(['│', '╭', '├', '╰']);
        if is_table || console::measure_text_width(line.trim_end()) <= width {
            fitted += line;
            continue;
        }
        let start = line.len() - line.trim_start().len();
        // Behind `name   text`; a gap further on is not one between a name and its text.
        let gap = line[start..].find("  ").filter(|at| *at < 24).map(|at| {
            let gap = start + at;
            gap + line[gap..].len() - line[gap..].trim_start().len()
        });
        let hang = gap.unwrap_or(start + 2).min(width / 2);
        let head = gap.unwrap_or(start);
        fitted += &line[..head];
        let mut column = console::measure_text_width(&line[..head]);
        let mut is_first = true;
        for word in line[head..].split_whitespace() {
            let wide = console::measure_text_width(word);
            if !is_first && column + 1 + wide > width {
                fitted += &format!("\n{:hang$}", "");
                column = hang;
            } else if !is_first {
                fitted.push(' ');
                column += 1;
            }
            is_first = false;
            fitted += word;
            column += wide;
        }
        if line.ends_with('\n') {
            fitted.push('\n');
        }
    }
    fitted
}

/// A line broken between words where it is wider than the terminal; it goes on behind `hang` spaces.
pub(crate) fn wrap(line: &str, hang: usize) -> String {
    width().map_or_else(|| line.to_owned(), |width| wrap_within(line, width, hang))
}

pub(crate) fn wrap_within(line: &str, width: usize, hang: usize) -> String {
    let hang = hang.min(width / 2);
    let mut wrapped = String::with_capacity(line.len());
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let wide = console::measure_text_width(word.trim_end());
        if column + wide > width && column > hang && wide > 0 {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped += &format!("\n{:hang$}", "");
            column = hang;
        }
        wrapped += word;
        column += console::measure_text_width(word);
    }
    wrapped
}

/// Seconds in the unit that suits them.
pub(crate) fn time(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| seconds >= *scale).unwrap_or((1e-9, "ns"));
    format!("{} {unit}", significant(seconds / scale))
}

/// A large number with k, M or G.
pub(crate) fn count(number: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(scale, _)| number >= *scale) {
        Some((scale, unit)) => format!("{}{unit}", significant(number / scale)),
        None => significant(number),
    }
}

/// A size with KiB, MiB or GiB.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(scale, _)| bytes >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(bytes as f64 / scale as f64)),
        None => format!("{bytes} B"),
    }
}

/// Bits per second in the unit that suits them.
pub(crate) fn rate(bps: f64) -> String {
    let units = [(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s")];
    match units.into_iter().find(|(scale, _)| bps >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(bps / scale)),
        None => format!("{} bit/s", significant(bps)),
    }
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        let name = "a\x1b[31mred\u{9b}2J\r\u{7}\tü\n";
        let expected = "a\\x1b[31mred\\x9b2J\\x0d\\x07\tü\n";
        assert_eq!(visible(name), expected);
        assert!(matches!(visible("plain │ text\n"), Cow::Borrowed(_)));
        let mut written = Visible(Vec::new());
        write!(written, "{name}").unwrap();
        assert_eq!(written.0, expected.as_bytes());
        let rows = || vec![vec![name.to_owned()], vec![name.to_owned()]];
        assert!(![table(rows()), text_table(rows())].concat().contains('\x1b'));
    }

    #[test]
    fn columns_that_do_not_fit_stand_in_another_table() {
        let rows: Vec<Vec<String>> =
            vec![["name", "12345", "1", "1234567890", "12"].map(str::to_owned).to_vec()];
        // Widths with borders: 7, 8, 4, 13, 5, and one for the last border.
        assert_eq!(blocks(&rows, None), [[0, 1, 2, 3, 4]]);
        assert_eq!(blocks(&rows, Some(38)), [[0, 1, 2, 3, 4]]);
        assert_eq!(blocks(&rows, Some(37)), [vec![0, 1, 2, 3], vec![0, 4]]);
        assert_eq!(blocks(&rows, Some(21)), [vec![0, 1, 2], vec![0, 3], vec![0, 4]]);
        assert_eq!(blocks(&rows, Some(5)), [[0, 1], [0, 2], [0, 3], [0, 4]]);
    }

    #[test]
    fn lines_are_broken_between_words_and_go_on_below_their_text() {
        let text = "packets    1 sent, 2 out of order, 3 lost\n│ a long row of a table stays │\nshort\nplain words only here too\n";
        let expected = "packets    1 sent, 2\n           out of\n           order, 3\n           lost\n\
                        │ a long row of a table stays │\nshort\nplain words only here\n  too\n";
        assert_eq!(fit_within(text, 22), expected);
        assert_eq!(fit_within("unbreakableword\n", 5), "unbreakableword\n");
    }

    #[test]
    fn words_are_wrapped_to_the_width() {
        let rows = vec![
            ["a", "a long statement that goes on and on for more than a line"].map(str::to_owned).to_vec(),
        ];
        for width in [20, 40, 80] {
            let text = text_table_within(rows.clone(), Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn numbers_get_the_unit_that_suits_them() {
        assert_eq!([time(3.4567e-4), time(12.0), time(0.0)], ["345.7 us", "12 s", "0 ns"]);
        assert_eq!([count(16_300_000.0), count(999.0)], ["16.3M", "999"]);
        assert_eq!([bytes(8 << 20), bytes(12)], ["8 MiB", "12 B"]);
    }
}
