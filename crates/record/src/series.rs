//! Rows of a run that may be more than memory holds: time series, what flows leave behind at their ends, and what is measured of every flow on request.
//!
//! While a run goes on, its nodes hand in rows in any order ([`SeriesWriter::append`]). Whenever many have come together they are
//! sorted and put into an unnamed temporary file (in the folder that `TMPDIR` names); [`Series::rows`] merges these files. So memory
//! is bounded, and the order of the rows depends on nothing but the rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io, slice, vec};

use netloom_parquet::{Error, Table};
use netloom_units::Time;

use crate::node_records::{
    DecisionRow, FlowObservationRecord, PacketStatisticsRow, ReceiverRecord, SenderRecord, WindowRow,
};
use crate::packets::{FlowPacketRecord, TraceRecord};
use crate::records::{
    FlowRecord, FlowSampleRecord, FlowletRecord, GapRecord, PartRecord, SampleRecord, SenderSampleRecord,
    WindowRecord,
};
use crate::tables::{self, Names, Row};

/// Bytes of rows that wait in memory before they are put into the first file, so that short runs need no memory for long series.
const FIRST_RUN_BYTES: usize = if cfg!(test) { 1 << 12 } else { 1 << 23 };

/// Bytes of rows that wait in memory before they are put into a file, at most.
const MOST_RUN_BYTES: usize = 1 << 26;

/// Later files have this share of the rows that are in files already, so that there are few files.
const SHARE_OF_EARLIER: u64 = 8;

/// Bytes of rows of each file that are in memory while the files are merged.
const MERGED_BYTES: usize = 1 << 18;

/// No series is longer than this: more rows would need too many files, and nobody looks at them.
pub const MOST_ROWS: u64 = 1_000_000_000;

/// A row of a series.
pub trait SeriesRow: Row {
    /// Its place in the order.
    type Key: Ord;

    /// Where it belongs. Rows of the same key come in any order; in that in which they came if all rows came in order, [one by one](Gathered).
    fn key(&self) -> Self::Key;

    /// A run has ended before the interval of the row, if it is of one: the row is of that instant.
    fn end_by(&mut self, _: Time) {}
}

/// The order of rows by some of their fields; the field that says when a row's interval ends, if it is of one.
macro_rules! in_order {
    ($($Row:ident: ($($field:ident: $Field:ty),+) $(until $time:ident)?,)+) => {
        $(
            impl SeriesRow for $Row {
                type Key = ($($Field),+);

                fn key(&self) -> Self::Key {
                    ($(self.$field),+)
                }

                $(fn end_by(&mut self, end: Time) {
                    self.$time = self.$time.min(end);
                })?
            }
        )+
    };
}

/// The order of rows by flows, each of which leaves one: as one number, which is compared faster than two.
macro_rules! by_flow {
    ($($Row:ident),+) => {
        $(
            impl SeriesRow for $Row {
                type Key = u64;

                fn key(&self) -> u64 {
                    u64::from(self.src) << 32 | u64::from(self.flow)
                }
            }
        )+
    };
}

by_flow!(SenderRecord, ReceiverRecord, DecisionRow);

in_order! {
    WindowRow: (src: u32, flow: u32, window: u32),
    PacketStatisticsRow: (src: u32, flow: u32, quantity: u8, place: u32),
    FlowObservationRecord: (src: u32, flow: u32, switch: u32, number: u32, first: Time),
    FlowRecord: (src: u32, flow: u32, dst: u32),
    PartRecord: (server: u32, flow: u32, rail: u32),
    SampleRecord: (time: Time, channel: u32) until time,
    FlowSampleRecord: (time: Time, src: u32, flow: u32) until time,
    SenderSampleRecord: (time: Time, src: u32, flow: u32, subflow: u32) until time,
    GapRecord: (src: u32, flow: u32, base_rtts: u32, from: Time, count: u64),
    // Switches follow each other by their numbers, which are not here.
    FlowletRecord: (src: u32, flow: u32),
    WindowRecord: (window: u16, src: u32, flow: u32),
    FlowPacketRecord: (src: u32, flow: u32),
    TraceRecord: (time: Time, channel: u32),
}

/// Why there is no series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// It grew too long.
    #[error(
        "a series got more than {MOST_ROWS} rows: expected a longer interval, fewer channels to sample, or fewer flows"
    )]
    TooLong,
    /// It could not be kept.
    #[error("cannot keep what was seen in a temporary file in {dir} (TMPDIR): {0}", dir = std::env::temp_dir().display())]
    File(String),
}

impl From<Error> for SeriesError {
    fn from(error: Error) -> Self {
        SeriesError::File(error.to_string())
    }
}

impl From<io::Error> for SeriesError {
    fn from(error: io::Error) -> Self {
        SeriesError::File(error.to_string())
    }
}

/// Takes the rows of a series, from any thread.
#[derive(Debug, Default)]
pub struct SeriesWriter<R> {
    growing: Mutex<Growing<R>>,
    is_broken: AtomicBool,
}

#[derive(Debug, Default)]
struct Growing<R> {
    waiting: Vec<R>,
    runs: Vec<File>,
    rows: u64,
    error: Option<SeriesError>,
}

impl<R: SeriesRow> SeriesWriter<R> {
    /// Takes all of `rows`.
    pub fn extend(&self, rows: impl IntoIterator<Item = R>) {
        self.extend_up_to(rows, FIRST_RUN_BYTES / size_of::<R>());
    }

    /// The same with this many rows in the first file.
    fn extend_up_to(&self, rows: impl IntoIterator<Item = R>, first_run: usize) {
        let mut growing = self.growing();
        let earlier = growing.rows - growing.waiting.len() as u64;
        let most = (MOST_RUN_BYTES / size_of::<R>()).max(first_run);
        let run = usize::try_from(earlier / SHARE_OF_EARLIER).map_or(most, |run| run.clamp(first_run, most));
        let before = growing.waiting.len();
        growing.waiting.extend(rows);
        growing.rows += (growing.waiting.len() - before) as u64;
        let is_too_long = growing.rows > MOST_ROWS;
        if growing.waiting.len() < run && !is_too_long {
            return;
        }
        let mut full = std::mem::take(&mut growing.waiting);
        if growing.error.is_some() {
            return;
        }
        // Other threads need not wait for the file.
        drop(growing);
        let spilled = if is_too_long { Err(SeriesError::TooLong) } else { spill(&mut full) };
        let mut growing = self.growing();
        match spilled {
            Ok(file) => {
                growing.runs.push(file);
                if growing.waiting.is_empty() {
                    full.clear();
                    growing.waiting = full;
                }
            }
            Err(error) => {
                // The series is lost; the run should end soon.
                growing.error.get_or_insert(error);
                self.is_broken.store(true, Ordering::Relaxed);
            }
        }
    }

    /// How many rows it has taken.
    pub fn rows(&self) -> u64 {
        self.growing().rows
    }

    /// Whether [`Self::finish`] will fail, so that there is no use in going on.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Ends the series; what comes later begins another.
    ///
    /// # Errors
    /// If it grew too long, or could not be kept.
    pub fn finish(&self) -> Result<Series<R>, SeriesError> {
        self.finish_by(Time::MAX)
    }

    /// The same for a run that ended at `end`: rows of intervals that would have ended later are of that instant.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_by(&self, end: Time) -> Result<Series<R>, SeriesError> {
        let Growing { mut waiting, runs, rows, error } = std::mem::take(&mut *self.growing());
        if let Some(error) = error {
            return Err(error);
        }
        sort(&mut waiting);
        waiting.shrink_to_fit();
        Ok(Series { waiting, runs: runs.into(), rows, end })
    }

    fn growing(&self) -> MutexGuard<'_, Growing<R>> {
        // A thread that panicked left rows behind, nothing half done.
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows that come one by one.
#[derive(Debug, Default)]
pub struct Gathered<R> {
    series: SeriesWriter<R>,
    waiting: Vec<R>,
}

impl<R: SeriesRow> Gathered<R> {
    /// Rows that go to the series together.
    const TOGETHER: usize = 1 << 8;

    /// The next.
    pub fn push(&mut self, row: R) {
        self.waiting.push(row);
        if self.waiting.len() == Self::TOGETHER {
            self.series.extend(self.waiting.drain(..));
        }
    }

    /// They have all come.
    ///
    /// # Errors
    /// If they were too many, or could not be kept.
    pub fn finish(mut self) -> Result<Series<R>, SeriesError> {
        self.series.extend(self.waiting.drain(..));
        self.series.finish()
    }
}

/// Brings rows into order, and leaves them as they are where they have one.
fn sort<R: SeriesRow>(rows: &mut [R]) {
    /// Rows of at least this many bytes cost more to move than a list of keys.
    const LARGE: usize = 64;
    if rows.is_sorted_by_key(R::key) {
        return;
    }
    match size_of::<R>() < LARGE {
        true => rows.sort_unstable_by_key(R::key),
        false => rows.sort_by_cached_key(R::key),
    }
}

/// Sorts rows into a file.
fn spill<R: SeriesRow>(rows: &mut [R]) -> Result<File, SeriesError> {
    sort(rows);
    let mut file = tempfile::tempfile()?;
    tables::write_temporary(rows, MERGED_BYTES / size_of::<R>(), io::BufWriter::new(&mut file))?;
    Ok(file)
}

/// The rows of a series in canonical order.
#[derive(Clone)]
pub struct Series<R> {
    /// Sorted.
    waiting: Vec<R>,
    /// Tables, each sorted.
    runs: Arc<[File]>,
    rows: u64,
    /// No row is of a later instant.
    end: Time,
}

impl<R> Default for Series<R> {
    fn default() -> Self {
        Series { waiting: Vec::new(), runs: Arc::new([]), rows: 0, end: Time::MAX }
    }
}

impl<R> Series<R> {
    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl<R: SeriesRow> Series<R> {
    /// Goes through the rows.
    ///
    /// # Errors
    /// If a temporary file cannot be read; so for every row.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<R, Error>> + '_, Error> {
        let runs = self.runs.iter().map(|file| Run::open(file.try_clone()?));
        let mut runs = runs.collect::<Result<Vec<_>, Error>>()?;
        runs.push(Run { waiting: self.waiting.iter(), ..Run::default() });
        let end_by = |mut row: R| {
            row.end_by(self.end);
            row
        };
        Ok(Merge::new(runs)?.map(move |row| row.map(end_by)))
    }

    /// All rows at once; for series that are known to be short.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub fn to_vec(&self) -> Result<Vec<R>, Error> {
        self.rows()?.collect()
    }
}

impl<R: SeriesRow> From<Vec<R>> for Series<R> {
    fn from(mut rows: Vec<R>) -> Self {
        sort(&mut rows);
        Series { rows: rows.len() as u64, waiting: rows, ..Series::default() }
    }
}

impl<R: SeriesRow + PartialEq> PartialEq for Series<R> {
    fn eq(&self, other: &Self) -> bool {
        let equal = || {
            let pairs = self.rows()?.zip(other.rows()?);
            pairs
                .map(|(a, b)| Ok(a? == b?))
                .try_fold(true, |all, equal: Result<bool, Error>| Ok(all && equal?))
        };
        self.rows == other.rows && matches!(equal(), Ok::<_, Error>(true))
    }
}

/// Shows the rows, wherever they are kept: that depends on how many threads ran.
impl<R: SeriesRow + fmt::Debug> fmt::Debug for Series<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_vec() {
            Ok(rows) => rows.fmt(f),
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// Sorted rows: in memory, or in a file and partly read.
struct Run<'s, R> {
    waiting: slice::Iter<'s, R>,
    table: Option<Table>,
    next_group: usize,
    rows: vec::IntoIter<R>,
}

impl<R> Default for Run<'_, R> {
    fn default() -> Self {
        Run { waiting: [].iter(), table: None, next_group: 0, rows: Vec::new().into_iter() }
    }
}

impl<R: Row> Run<'_, R> {
    fn open(file: File) -> Result<Self, Error> {
        Ok(Run { table: Some(Table::open(file)?), ..Run::default() })
    }

    fn next(&mut self) -> Result<Option<R>, Error> {
        if let Some(row) = self.waiting.next().cloned().or_else(|| self.rows.next()) {
            return Ok(Some(row));
        }
        let Some(table) = self.table.as_ref().filter(|table| self.next_group < table.groups()) else {
            return Ok(None);
        };
        self.rows = R::read(&table.row_group(self.next_group)?, &Names::numbers())?.into_iter();
        self.next_group += 1;
        Ok(self.rows.next())
    }
}

/// Merges sorted rows.
struct Merge<'s, R: SeriesRow> {
    runs: Vec<Run<'s, R>>,
    /// The first row of each run that has any left.
    heads: Vec<Option<R>>,
    order: BinaryHeap<Reverse<(R::Key, usize)>>,
}

impl<'s, R: SeriesRow> Merge<'s, R> {
    fn new(mut runs: Vec<Run<'s, R>>) -> Result<Self, Error> {
        let heads = runs.iter_mut().map(Run::next).collect::<Result<Vec<_>, _>>()?;
        let key = |(run, head): (usize, &Option<R>)| Some(Reverse((head.as_ref()?.key(), run)));
        let order = heads.iter().enumerate().filter_map(key).collect();
        Ok(Merge { runs, heads, order })
    }
}

impl<R: SeriesRow> Iterator for Merge<'_, R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut first = self.order.peek_mut()?;
        let Reverse((key, run)) = &mut *first;
        let following = match self.runs[*run].next() {
            Ok(following) => following,
            Err(error) => return Some(Err(error)),
        };
        let head = &mut self.heads[*run];
        let row = match following {
            // Often it comes first again.
            Some(following) => {
                *key = following.key();
                head.replace(following)
            }
            None => {
                let row = head.take();
                PeekMut::pop(first);
                row
            }
        };
        row.map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample((time, channel): (u64, u32)) -> SampleRecord {
        SampleRecord { time: Time(time), channel, queue: time ^ 5, bytes: 7, paused: Time(time / 3) }
    }

    /// Some keys, each once, in any order.
    fn keys() -> impl Strategy<Value = Vec<(u64, u32)>> {
        let keys = prop::collection::btree_set((0..50u64, 0..5u32), 0..200);
        keys.prop_map(|keys| keys.into_iter().collect::<Vec<_>>()).prop_shuffle()
    }

    proptest! {
        #[test]
        fn rows_come_back_in_order_however_they_came_and_wherever_they_were(
            keys in keys(),
            at_once in 1..20usize,
            run in 1..100usize,
        ) {
            let writer = SeriesWriter::default();
            for keys in keys.chunks(at_once) {
                writer.extend_up_to(keys.iter().copied().map(sample), run);
            }
            let series = writer.finish().unwrap();
            let in_memory = Series::from(keys.iter().copied().map(sample).collect::<Vec<_>>());
            prop_assert_eq!(series.runs.is_empty(), keys.len() < run);
            prop_assert_eq!((series.len(), series.is_empty()), (keys.len() as u64, keys.is_empty()));
            prop_assert_eq!(&series, &in_memory);
            prop_assert_eq!(format!("{series:?}"), format!("{in_memory:?}"));
            let mut expected: Vec<_> = keys.into_iter().map(sample).collect();
            expected.sort_by_key(SeriesRow::key);
            prop_assert_eq!(series.to_vec().unwrap(), expected);
        }
    }

    #[test]
    fn kinds_of_traffic_and_windows_come_back_from_files_by_their_numbers() {
        let row = |i: u32| WindowRecord {
            window: (i % 300) as u16,
            src: i,
            group: (i / 7) as u16,
            ..WindowRecord::default()
        };
        let mut rows = Gathered::default();
        (0..2000).for_each(|i| rows.push(row(i)));
        let series = rows.finish().unwrap();
        assert!(!series.runs.is_empty());
        assert_eq!(series, Series::from((0..2000).map(row).collect::<Vec<_>>()));
    }

    #[test]
    fn rows_of_the_same_key_keep_their_order_where_all_come_in_order() {
        let row = |i: u32| FlowletRecord { flow: i / 700, flowlets: i, ..FlowletRecord::default() };
        let mut rows = Gathered::default();
        (0..2000).for_each(|i| rows.push(row(i)));
        let series = rows.finish().unwrap();
        assert!(series.runs.len() > 1);
        assert_eq!(series.to_vec().unwrap(), (0..2000).map(row).collect::<Vec<_>>());
    }

    #[test]
    fn files_grow_with_what_is_in_files_already() {
        let writer = SeriesWriter::default();
        (0..2000).for_each(|i| writer.extend_up_to([sample((i, 0))], 10));
        let rows = |file: &File| {
            let table = Table::open(file.try_clone().unwrap()).unwrap();
            table.row_groups().map(|group| group.unwrap().rows() as u64).sum::<u64>()
        };
        let files: Vec<u64> = writer.finish().unwrap().runs.iter().map(rows).collect();
        let mut earlier = 0;
        for &rows in &files {
            assert_eq!(rows, (earlier / SHARE_OF_EARLIER).max(10));
            earlier += rows;
        }
        assert_eq!((files.len(), earlier), (35, 1848));
    }

    #[test]
    fn series_that_differ_in_a_row_are_not_equal() {
        let series = |last| Series::from(vec![sample((1, 0)), sample((2, last))]);
        assert_eq!(series(3), series(3));
        assert_ne!(series(3), series(4));
        assert_ne!(series(3), Series::from(vec![sample((1, 0))]));
    }

    #[test]
    fn a_series_that_is_too_long_is_given_up() {
        let writer = SeriesWriter::default();
        writer.growing().rows = MOST_ROWS;
        assert!(!writer.is_broken());
        writer.extend_up_to([sample((1, 1))], 1);
        assert!(writer.is_broken());
        assert_eq!(writer.finish().unwrap_err(), SeriesError::TooLong);
    }
}
