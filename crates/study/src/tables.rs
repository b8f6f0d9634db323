//! Results in files, for people, other programs and `netloom show`.
//!
//! | file | content |
//! | --- | --- |
//! | `results.csv` | a row per cell that is done: its label on every axis, its seed, its folder, every metric; times end in `_us` |
//! | `results.parquet` | the same; `units` in the file's metadata is a JSON object with the unit of every metric |
//! | `study.json` | what is shown: [`Findings`] |

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use netloom_parquet::{Field, Writer};
use netloom_scenario::Problem;

use crate::cell::Cell;
use crate::cells::CellReport;
use crate::findings::{self, Findings};
use crate::folder::write_file;
use crate::numbers::unit;
use crate::results::Results;
use crate::work::Numbers;

/// A file of results that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct Unwritable {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Writes `results.csv`, `results.parquet` and `study.json` into the study's folder.
///
/// # Errors
/// If a file cannot be written.
pub fn write_results(
    folder: &Path,
    cells: &[Cell],
    reports: &[CellReport],
    results: &Results,
    findings: &Findings,
) -> Result<(), Unwritable> {
    let write = |name: &str, content: io::Result<Vec<u8>>| {
        let path = folder.join(name);
        content.and_then(|content| write_file(&path, &content)).map_err(|source| Unwritable { path, source })
    };
    let table = CellTable::new(folder, cells, reports, results);
    write("results.csv", table.csv())?;
    write("results.parquet", table.parquet().map_err(io::Error::other))?;
    write(findings::FILE, serde_json::to_vec_pretty(findings).map_err(io::Error::from))
}

/// What times end in in `results.csv`, which has no metadata that could say their unit. Other names say it (`_bps`, `_bytes`, `dollars_`).
const MICROSECONDS: &str = "_us";

/// A metric's column in `results.csv`.
fn csv_name(metric: &str) -> String {
    if unit(metric) == "us" { format!("{metric}{MICROSECONDS}") } else { metric.to_owned() }
}

/// The metric of a column of `results.csv`.
fn metric_of(column: &str) -> String {
    let time = column.strip_suffix(MICROSECONDS).filter(|metric| unit(metric) == "us");
    time.unwrap_or(column).to_owned()
}

/// The numbers of every cell in `results.csv`, by the cell's folder.
pub(crate) fn read_cells(folder: &Path) -> Result<BTreeMap<String, Numbers>, Problem> {
    let path = folder.join("results.csv");
    let failed = |error: csv::Error| Problem::new("", format!("cannot read {}: {error}", path.display()));
    let mut reader = csv::Reader::from_path(&path).map_err(failed)?;
    let headings = reader.headers().map_err(failed)?.clone();
    let mut cells = BTreeMap::new();
    for row in reader.records() {
        let row = row.map_err(failed)?;
        let fields = || headings.iter().zip(&row);
        let Some((_, place)) = fields().find(|(heading, _)| *heading == "folder") else { continue };
        // Labels, seed and folder stand before the numbers.
        let numbers = fields().skip_while(|(heading, _)| *heading != "folder").skip(1);
        let numbers = numbers.filter_map(|(heading, value)| Some((metric_of(heading), value.parse().ok()?)));
        cells.insert(place.to_owned(), numbers.collect());
    }
    Ok(cells)
}

/// The cells that are done, as a table.
struct CellTable<'a> {
    axes: Vec<&'a str>,
    metrics: Vec<&'a str>,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    cell: &'a Cell,
    place: String,
    numbers: &'a Numbers,
}

impl Row<'_> {
    fn label(&self, axis: &str) -> Option<&str> {
        self.cell.point.labels.iter().find(|(name, _)| name == axis).map(|(_, label)| label.as_str())
    }
}

impl<'a> CellTable<'a> {
    fn new(folder: &Path, cells: &'a [Cell], reports: &'a [CellReport], results: &'a Results) -> Self {
        let row = |(cell, report): (&'a Cell, &'a CellReport)| {
            Some(Row { cell, place: report.place(folder), numbers: report.numbers()? })
        };
        let rows = cells.iter().zip(reports).filter_map(row).collect();
        CellTable { axes: results.axes().collect(), metrics: results.occurring(), rows }
    }

    fn csv(&self) -> io::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let axes = self.axes.iter().chain(&["seed", "folder"]).map(|name| (*name).to_owned());
        writer.write_record(axes.chain(self.metrics.iter().map(|metric| csv_name(metric))))?;
        for row in &self.rows {
            for axis in &self.axes {
                writer.write_field(row.label(axis).unwrap_or_default())?;
            }
            writer.write_field(row.cell.seed().to_string())?;
            writer.write_field(&row.place)?;
            for metric in &self.metrics {
                writer.write_field(row.numbers.get(*metric).map(f64::to_string).unwrap_or_default())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.into_inner().map_err(|error| error.into_error())
    }

    fn parquet(&self) -> Result<Vec<u8>, netloom_parquet::Error> {
        let labels = self.axes.iter().map(|axis| Field::optional::<String>((*axis).to_owned()));
        let named = [Field::of::<u64>("seed"), Field::of::<String>("folder")];
        let numbers = self.metrics.iter().map(|metric| Field::optional::<f64>((*metric).to_owned()));
        let fields: Vec<Field> = labels.chain(named).chain(numbers).collect();
        let units: BTreeMap<&str, &str> = self.metrics.iter().map(|metric| (*metric, unit(metric))).collect();
        let units = serde_json::to_string(&units).unwrap_or_default();
        let mut bytes = Vec::new();
        let mut writer = Writer::with_metadata(&mut bytes, &fields, &[("units", &units)])?;
        let mut group = writer.row_group()?;
        for axis in &self.axes {
            group.optional_column(self.rows.iter().map(|row| row.label(axis).map(str::to_owned)))?;
        }
        group.column(self.rows.iter().map(|row| row.cell.seed()))?;
        group.column(self.rows.iter().map(|row| row.place.clone()))?;
        for metric in &self.metrics {
            group.optional_column(self.rows.iter().map(|row| row.numbers.get(*metric).copied()))?;
        }
        group.close()?;
        writer.close()?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::testing::{cell, report};

    #[test]
    fn every_row_names_its_labels_seed_and_folder() {
        let cells = [
            cell(&[("scheme", "ecmp"), ("gap", "1us, or 2")], 3),
            cell(&[("scheme", "spray")], 3),
            cell(&[("scheme", "letflow")], 3),
        ];
        let numbers =
            |p99| Numbers::from([("fct.p99".to_owned(), p99), ("packets.ooo_share".to_owned(), 0.25)]);
        let reports = [report(0, Some(Ok(numbers(1.5)))), report(1, Some(Ok(numbers(2.0)))), report(2, None)];
        let results = Results::new(cells.iter().zip(reports.iter().map(CellReport::numbers)));
        let table = CellTable::new(Path::new("out"), &cells, &reports, &results);

        let expected = "scheme,gap,seed,folder,fct.p99_us,packets.ooo_share\n\
                        ecmp,\"1us, or 2\",3,cells/0,1.5,0.25\nspray,,3,cells/1,2,0.25\n";
        assert_eq!(String::from_utf8(table.csv().unwrap()).unwrap(), expected);

        let bytes = table.parquet().unwrap();
        let units = br#"{"fct.p99":"us","packets.ooo_share":"1"}"#;
        assert!(bytes.windows(units.len()).any(|window| window == units));
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &bytes).unwrap();
        let columns = netloom_parquet::read(file, |table| {
            let group = table.row_groups().next().unwrap()?;
            let gap = group.optional_column::<String>("gap")?;
            Ok::<_, netloom_parquet::Error>((
                gap,
                group.column::<u64>("seed")?,
                group.optional_column::<f64>("fct.p99")?,
            ))
        });
        let gap = vec![Some("1us, or 2".to_owned()), None];
        assert_eq!(columns.unwrap(), (gap, vec![3, 3], vec![Some(1.5), Some(2.0)]));
    }
}
