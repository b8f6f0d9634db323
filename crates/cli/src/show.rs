//! Tables and numbers as people read them.

use netloom_study::significant;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

/// Rows as a table whose first row is the header; all columns but the first are numbers.
pub(crate) fn table(rows: Vec<Vec<String>>) -> String {
    let mut table = Builder::from_iter(rows).build();
    table.with(Style::rounded()).modify(Columns::new(1..), Alignment::right());
    table.to_string()
}

/// Rows of words as a table whose first row is the header.
pub(crate) fn text_table(rows: Vec<Vec<String>>) -> String {
    Builder::from_iter(rows).build().with(Style::rounded()).to_string()
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
    fn numbers_get_the_unit_that_suits_them() {
        assert_eq!([time(3.4567e-4), time(12.0), time(0.0)], ["345.7 us", "12 s", "0 ns"]);
        assert_eq!([count(16_300_000.0), count(999.0)], ["16.3M", "999"]);
        assert_eq!([bytes(8 << 20), bytes(12)], ["8 MiB", "12 B"]);
    }
}
