//! Flow lists in CSV.

use std::path::Path;

use csv::{Position, ReaderBuilder, StringRecord, Trim};
use netloom_units::{Bytes, Time};

use crate::WorkloadError;
use crate::pattern::flows::{Flows, Speaks};
use crate::pattern::lines::ShortLines;

pub(super) fn read(file: &Path, flows: &mut Flows) -> Result<(), WorkloadError> {
    let reader =
        std::fs::File::open(file).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
    let mut reader =
        ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(ShortLines::new(reader));
    let csv_error = |error: csv::Error| match error.position().map(Position::line) {
        Some(line) => WorkloadError::line(file, line, error),
        None => WorkloadError::file(file, error),
    };
    let header = reader.headers().map_err(csv_error)?.clone();
    let column = |name: &str| header.iter().position(|h| h == name);
    let required = |name: &str| {
        let found = header.iter().collect::<Vec<_>>().join(", ");
        column(name).ok_or_else(|| {
            WorkloadError::line(
                file,
                1,
                format!("expected a header line with a column `{name}`, found: {found}"),
            )
        })
    };
    let (src, dst, bytes) = (required("src")?, required("dst")?, required("bytes")?);
    let (start_ps, start) = (column("start_ps"), column("start"));
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(csv_error)? {
        let line = record.position().map_or(0, Position::line);
        let fail = |column: usize, expected: &str| {
            let problem = format!("{}: expected {expected}, found \"{}\"", &header[column], &record[column]);
            WorkloadError::line(file, line, problem)
        };
        let host = |column: usize| flows.rank(line, &header[column], &record[column], Speaks::InNumbers);
        let size = record[bytes].parse::<u64>().map(Bytes).or_else(|_| record[bytes].parse::<Bytes>());
        let size = size.map_err(|_| fail(bytes, "a number of bytes or a size such as \"64KiB\""))?;
        let start = match (start_ps, start) {
            (Some(start), _) => {
                let time = record[start].parse().map_err(|_| fail(start, "a whole number of picoseconds"))?;
                Some(Time(time))
            }
            (None, Some(start)) => {
                Some(record[start].parse().map_err(|_| fail(start, "a time such as \"10us\""))?)
            }
            (None, None) => None,
        };
        let (src, dst) = (host(src)?, host(dst)?);
        flows.add_entry(line, src, dst, size, start)?;
    }
    Ok(())
}
