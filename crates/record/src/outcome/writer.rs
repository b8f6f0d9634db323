//! Writing an outcome: beside its place, then into it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use netloom_parquet::GROUP_ROWS;
use serde::Serialize;
use tempfile::TempDir;

use super::{
    ACTIVITIES, COLLECTIVES, FILES, FLOW_SERIES, FLOWLETS, FLOWS, GAPS, JOBS, LATENCY, LINKS, OPERATIONS,
    OutcomeError, PACKETS, PARTS, PERFORMANCE, RANKS, SCENARIO, SENDER_SERIES, SERIES, SUMMARY, SWITCH_GAPS,
    TRACE, WINDOWS, outcome_around,
};
use crate::partial;
use crate::performance::Performance;
use crate::records::{ChannelRecord, FlowRecord, Records, Sink};
use crate::series::{Series, SeriesRow};
use crate::summary::Summary;
use crate::tables::{self, Names, Row};
use crate::whole::{self, prefix, sync_folder};

/// Bytes that even a small outcome needs: where they cannot be written, nothing is run.
const ROOM: usize = 32 << 10;

/// What to do if the folder holds an outcome already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Replace it, atomically.
    Replace,
    /// Refuse to write.
    Refuse,
}

/// Writes one outcome folder.
#[derive(Clone, Debug)]
pub struct OutcomeWriter {
    dir: PathBuf,
    existing: Existing,
    create: fn(&Path) -> io::Result<File>,
}

impl OutcomeWriter {
    /// Removes what killed processes left behind of an outcome in `dir`, and of what was being written into it.
    pub fn tidy(dir: &Path) {
        // A name alone lies in the working directory.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        partial::remove_abandoned(&dir, partial::PREFIX);
        if let Some(parent) = dir.parent() {
            partial::remove_abandoned(parent, &prefix(&dir));
        }
    }

    /// Checks that an outcome can be written to `dir`, so that a bad folder is known before the run and not after it.
    ///
    /// # Errors
    /// If the folder exists and may not be replaced, is no outcome, or cannot be written to; if the disk is full.
    pub fn prepare(dir: &Path, existing: Existing) -> Result<Self, OutcomeError> {
        let write_error = |source| OutcomeError::Write { path: dir.to_owned(), source };
        let dir = whole::place(dir).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if dir.is_symlink() => {
                OutcomeError::NoFolder { path: dir.to_owned(), is: "a link to nothing" }
            }
            _ => write_error(error),
        })?;
        if whole::holds_working_directory(&dir) {
            return Err(OutcomeError::NoFolder { path: dir, is: "the working directory or above it" });
        }
        let writer = OutcomeWriter { dir, existing, create: |path| File::create_new(path) };
        writer.inspect()?;
        if let Some(outcome) = outcome_around(&writer.dir) {
            return Err(OutcomeError::Inside { path: writer.dir, outcome });
        }
        let parent = writer.dir.ancestors().skip(1).find(|path| path.exists()).unwrap_or(Path::new("/"));
        let (probe, _claim) = writer.temporary_in(parent)?;
        fs::write(probe.path().join("room"), [0; ROOM]).map_err(write_error)?;
        probe.close().map_err(write_error)?;
        Ok(writer)
    }

    /// Writes the outcome.
    ///
    /// # Errors
    /// If the disk is full or anything else fails; nothing is left behind then, and a former outcome stays.
    pub fn write(
        &self,
        scenario: &str,
        summary: &Summary,
        records: &Records,
        performance: &Performance,
    ) -> Result<(), OutcomeError> {
        let mut draft = self.draft(&records.groups);
        records.flows.iter().for_each(|flow| draft.flow(flow.clone()));
        records.channels.iter().for_each(|channel| draft.channel(channel.clone()));
        draft.finish(scenario, summary, records, performance)
    }

    /// Begins an outcome whose flows and channels come one by one; the flows are of these kinds of traffic.
    pub fn draft(&self, groups: &[String]) -> Draft<'_> {
        let names = Names { groups: groups.to_vec(), ..Names::default() };
        Draft { writer: self, names, open: None, error: None }
    }

    /// A hidden folder with the table of flows, still without any.
    fn open(&self) -> Result<Open, OutcomeError> {
        let parents = Parents::create(self.parent())?;
        let (folder, _claim) = self.temporary_in(self.parent())?;
        let growing = Growing::Flows(self.begin(&folder, FLOWS)?);
        Ok(Open { growing, _claim, folder, parents })
    }

    /// A table without rows.
    fn begin<R: Row>(&self, folder: &TempDir, name: &'static str) -> Result<Table<R>, OutcomeError> {
        let file = self.create(folder, name)?;
        let rows = || Ok(tables::Rows::new(BufWriter::new(file.try_clone()?))?);
        let rows = rows().map_err(|error: io::Error| self.of(name, error))?;
        Ok(Table { name, rows, file })
    }

    /// Ends a table.
    fn end<R: Row>(&self, table: Table<R>, names: &Names) -> Result<(), OutcomeError> {
        let Table { name, rows, file } = table;
        let closed = rows.close(names).map_err(io::Error::from);
        closed.and_then(|()| file.sync_all()).map_err(|error| self.of(name, error))
    }

    /// Writes all tables but those of flows and channels; what was not asked for leaves none.
    fn write_tables(&self, folder: &TempDir, records: &Records) -> Result<(), OutcomeError> {
        let names = Names::of(records);
        if let Some(parts) = &records.parts {
            self.series(folder, PARTS, parts, &names)?;
        }
        if !records.samples.is_empty() {
            self.series(folder, SERIES, &records.samples, &names)?;
        }
        if !records.flow_samples.is_empty() {
            self.series(folder, FLOW_SERIES, &records.flow_samples, &names)?;
        }
        if !records.sender_samples.is_empty() {
            self.series(folder, SENDER_SERIES, &records.sender_samples, &names)?;
        }
        if let Some(gaps) = &records.gaps {
            self.series(folder, GAPS, gaps, &names)?;
        }
        if let Some(gaps) = &records.switch_gaps {
            self.series(folder, SWITCH_GAPS, gaps, &names)?;
        }
        if let Some(flowlets) = &records.flowlets {
            self.series(folder, FLOWLETS, flowlets, &names)?;
        }
        if !records.windows.is_empty() {
            self.series(folder, WINDOWS, &records.window_flows, &names)?;
        }
        if !records.packets.is_empty() {
            self.series(folder, PACKETS, &records.flow_packets, &names)?;
            self.table(folder, LATENCY, &records.latencies, &names)?;
        }
        if !records.trace.is_empty() {
            self.series(folder, TRACE, &records.trace, &names)?;
        }
        let jobs = &records.jobs;
        if !jobs.is_empty() {
            self.table(folder, JOBS, &jobs.repetitions, &names)?;
            self.table(folder, RANKS, &jobs.ranks, &names)?;
        }
        if !jobs.collectives.is_empty() {
            self.table(folder, COLLECTIVES, &jobs.collectives, &names)?;
        }
        if !jobs.activities.is_empty() {
            self.table(folder, ACTIVITIES, &jobs.activities, &names)?;
        }
        if !jobs.operations.is_empty() {
            self.table(folder, OPERATIONS, &jobs.operations, &names)?;
        }
        Ok(())
    }

    /// Whether there is an outcome to replace.
    fn inspect(&self) -> Result<bool, OutcomeError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(OutcomeError::NoFolder { path: self.dir.clone(), is: "a file" });
            }
            Err(source) => return Err(self.write_error(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(|source| self.write_error(source))?.file_name());
        }
        names.sort();
        match names.iter().find(|name| !FILES.iter().any(|file| *name == file)) {
            Some(name) => Err(OutcomeError::Foreign {
                dir: self.dir.clone(),
                found: name.to_string_lossy().into_owned(),
            }),
            None if names.is_empty() => Ok(false),
            None if self.existing == Existing::Refuse => Err(OutcomeError::Exists(self.dir.clone())),
            None => Ok(true),
        }
    }

    fn parent(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    fn write_error(&self, source: io::Error) -> OutcomeError {
        OutcomeError::Write { path: self.dir.clone(), source }
    }

    /// A folder beside the target that removes itself unless it is put in place, and what marks it as being written.
    fn temporary_in(&self, parent: &Path) -> Result<(TempDir, Option<File>), OutcomeError> {
        whole::temporary_in(parent, &self.dir).map_err(|source| self.write_error(source))
    }

    fn create(&self, folder: &TempDir, name: &str) -> Result<File, OutcomeError> {
        (self.create)(&folder.path().join(name)).map_err(|error| self.of(name, error))
    }

    /// An error of a file.
    fn of(&self, name: &str, error: impl Into<io::Error>) -> OutcomeError {
        OutcomeError::Write { path: self.dir.join(name), source: error.into() }
    }

    fn table<R: Row>(
        &self,
        folder: &TempDir,
        name: &str,
        rows: &[R],
        names: &Names,
    ) -> Result<(), OutcomeError> {
        self.file(folder, name, |file| Ok(tables::write(rows, names, GROUP_ROWS, file)?))
    }

    fn series<R: SeriesRow>(
        &self,
        folder: &TempDir,
        name: &str,
        series: &Series<R>,
        names: &Names,
    ) -> Result<(), OutcomeError> {
        self.file(folder, name, |file| {
            let mut table = tables::Rows::new(file)?;
            for row in series.rows()? {
                table.push(row?, names)?;
            }
            Ok(table.close(names)?)
        })
    }

    fn file(
        &self,
        folder: &TempDir,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutcomeError> {
        let mut file = BufWriter::new(self.create(folder, name)?);
        let end =
            |file: BufWriter<File>| file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all();
        write(&mut file).and_then(|()| end(file)).map_err(|error| self.of(name, error))
    }

    fn put_in_place(&self, folder: TempDir) -> Result<(), OutcomeError> {
        self.inspect()?;
        let replaces = self.existing == Existing::Replace;
        whole::put_in_place(folder, &self.dir, replaces).map_err(|source| self.write_error(source))
    }
}

/// An outcome that is being written: flows and channels while they come, all else in the end. Until then it lies hidden beside its place, and
/// goes when the draft goes.
pub struct Draft<'w> {
    writer: &'w OutcomeWriter,
    names: Names,
    /// From the first flow on.
    open: Option<Open>,
    error: Option<OutcomeError>,
}

/// What is removed again comes last.
struct Open {
    growing: Growing,
    _claim: Option<File>,
    folder: TempDir,
    parents: Parents,
}

/// The table to which rows come.
enum Growing {
    Flows(Table<FlowRecord>),
    /// The flows have all come.
    Links(Table<ChannelRecord>),
}

struct Table<R> {
    name: &'static str,
    rows: tables::Rows<'static, R>,
    /// The same file.
    file: File,
}

/// Writes rows as they come. Errors are returned at the end.
impl Sink for Draft<'_> {
    /// # Panics
    /// If a channel came before.
    fn flow(&mut self, flow: FlowRecord) {
        if self.error.is_none() {
            self.error = self.try_flow(flow).err();
        }
    }

    fn channel(&mut self, channel: ChannelRecord) {
        if self.error.is_none() {
            self.error = self.try_channel(channel).err();
        }
    }
}

impl Draft<'_> {
    fn try_flow(&mut self, flow: FlowRecord) -> Result<(), OutcomeError> {
        let Draft { writer, names, open, .. } = self;
        let open = match open {
            Some(open) => open,
            None => open.insert(writer.open()?),
        };
        let Growing::Flows(table) = &mut open.growing else { panic!("a flow came after a channel") };
        table.rows.push(flow, names).map_err(|error| writer.of(FLOWS, error))
    }

    fn try_channel(&mut self, channel: ChannelRecord) -> Result<(), OutcomeError> {
        let Draft { writer, names, open, .. } = self;
        if let Some(Open { growing: Growing::Links(table), .. }) = open {
            return table.rows.push(channel, names).map_err(|error| writer.of(LINKS, error));
        }
        let before = open.take().map_or_else(|| writer.open(), Ok)?;
        *open = Some(before.begin_links(writer, names)?);
        self.try_channel(channel)
    }

    /// Writes all else and puts the outcome in its place. Flows and channels of `records`, if it holds any, have come before.
    ///
    /// # Errors
    /// If the disk is full or anything else fails or has failed; nothing is left behind then, and a former outcome stays.
    pub fn finish(
        self,
        scenario: &str,
        summary: &Summary,
        records: &Records,
        performance: &Performance,
    ) -> Result<(), OutcomeError> {
        let Draft { writer, names, open, error } = self;
        if let Some(error) = error {
            return Err(error);
        }
        // On an error the folder goes before its parents do.
        let open = open.map_or_else(|| writer.open(), Ok)?;
        let Open { parents, folder, _claim, growing } = open.begin_links(writer, &names)?;
        if let Growing::Links(links) = growing {
            writer.end(links, &names)?;
        }
        writer.write_tables(&folder, records)?;
        writer.file(&folder, SCENARIO, |file| file.write_all(scenario.as_bytes()))?;
        writer.file(&folder, SUMMARY, |file| write_json(file, summary))?;
        writer.file(&folder, PERFORMANCE, |file| write_json(file, performance))?;
        sync_folder(folder.path()).map_err(|source| writer.write_error(source))?;
        writer.put_in_place(folder)?;
        parents.keep();
        sync_folder(writer.parent()).map_err(|source| writer.write_error(source))
    }
}

impl Open {
    /// Ends the table of flows and begins that of channels, if that has not been done.
    fn begin_links(self, writer: &OutcomeWriter, names: &Names) -> Result<Self, OutcomeError> {
        // On an error the folder goes before its parents do.
        let Open { parents, folder, _claim, growing } = self;
        let growing = match growing {
            Growing::Flows(flows) => {
                writer.end(flows, names)?;
                Growing::Links(writer.begin(&folder, LINKS)?)
            }
            links => links,
        };
        Ok(Open { growing, _claim, folder, parents })
    }
}

/// Folders that had to be made on the way to the target; removed again unless kept.
struct Parents(Vec<PathBuf>);

impl Parents {
    fn create(parent: &Path) -> Result<Self, OutcomeError> {
        let missing: Vec<_> = parent.ancestors().take_while(|path| !path.exists()).collect();
        let mut made = Parents(Vec::new());
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => made.0.push(path.to_owned()),
                // Another run of the same study was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(OutcomeError::Write { path: path.to_owned(), source }),
            }
        }
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // Not empty if another run has put its outcome there meanwhile: then it stays.
            let _ = fs::remove_dir(path);
        }
    }
}

fn write_json(file: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *file, value)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::partial::age;
    use crate::summary::{Status, SummaryOptions};
    use crate::testing::records;

    fn write_with(writer: &OutcomeWriter, records: &Records) -> Result<(), OutcomeError> {
        let summary = Summary::new(records, &SummaryOptions::default(), Status::Complete).unwrap();
        writer.write("[topology]\n", &summary, records, &Performance::new("1.0.0", 2, 0.5, 240))
    }

    fn write(dir: &Path, existing: Existing, records: &Records) -> Result<(), OutcomeError> {
        write_with(&OutcomeWriter::prepare(dir, existing)?, records)
    }

    #[test]
    fn what_killed_runs_left_behind_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let left = [folder.path().join(".out.partial-abc"), out.join(".netloom-partial-report")];
        for path in &left {
            fs::create_dir_all(path).unwrap();
            age(path);
        }
        OutcomeWriter::tidy(&out);
        write(&out, Existing::Refuse, &records()).unwrap();
        assert!(left.iter().all(|path| !path.exists()));
        assert_eq!(names(folder.path()), ["out"]);
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_written_reads_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("deep/down/outcome");
        write(&dir, Existing::Refuse, &records()).unwrap();
        let outcome = Outcome::read(&dir).unwrap();
        assert_eq!(outcome.scenario, "[topology]\n");
        assert_eq!(
            outcome.summary,
            Summary::new(&records(), &SummaryOptions::default(), Status::Complete).unwrap()
        );
        assert_eq!(outcome.performance.threads, 2);
        assert_eq!(outcome.flows().unwrap(), records().flows);
        assert_eq!(Some(outcome.parts().unwrap().into()), records().parts);
        assert_eq!(outcome.channels().unwrap(), records().channels);
        assert_eq!(outcome.samples().unwrap(), records().samples.to_vec().unwrap());
        assert_eq!(outcome.flow_samples().unwrap(), records().flow_samples.to_vec().unwrap());
        assert_eq!(Some(outcome.gaps().unwrap().into()), records().gaps);
        assert_eq!(Series::from(outcome.window_flows().unwrap()), records().window_flows);
        assert_eq!(names(dir.parent().unwrap()), ["outcome"]);
    }

    #[test]
    fn equal_runs_give_equal_bytes() {
        let root = tempfile::tempdir().unwrap();
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        write(&a, Existing::Refuse, &records()).unwrap();
        write(&b, Existing::Refuse, &records()).unwrap();
        for file in [SCENARIO, SUMMARY, FLOWS, PARTS, LINKS, SERIES, FLOW_SERIES, GAPS, WINDOWS] {
            assert_eq!(fs::read(a.join(file)).unwrap(), fs::read(b.join(file)).unwrap(), "{file}");
        }
    }

    #[test]
    fn a_run_without_flows_or_samples_has_an_outcome() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("empty");
        write(&dir, Existing::Refuse, &Records::default()).unwrap();
        assert_eq!(names(&dir), [FLOWS, LINKS, PERFORMANCE, SCENARIO, SUMMARY]);
        let outcome = Outcome::read(&dir).unwrap();
        assert!(outcome.flows().unwrap().is_empty() && outcome.samples().unwrap().is_empty());
        assert!(outcome.flow_samples().unwrap().is_empty() && outcome.window_flows().unwrap().is_empty());
    }

    #[test]
    fn an_outcome_is_replaced_as_a_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("outcome");
        write(&dir, Existing::Refuse, &records()).unwrap();
        let error = write(&dir, Existing::Refuse, &records()).unwrap_err();
        assert!(matches!(error, OutcomeError::Exists(_)), "{error}");

        write(&dir, Existing::Replace, &Records::default()).unwrap();
        assert!(!names(&dir).contains(&SERIES.to_owned()), "no file of the former outcome stays");
        assert_eq!(names(root.path()), ["outcome"]);
    }

    #[test]
    fn a_draft_that_is_given_up_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/outcome");
        let writer = OutcomeWriter::prepare(&dir, Existing::Refuse).unwrap();
        let mut draft = writer.draft(&records().groups);
        records().flows.into_iter().for_each(|flow| draft.flow(flow));
        records().channels.into_iter().for_each(|channel| draft.channel(channel));
        assert_eq!(names(root.path()), ["a"], "it is being written beside its place");
        assert!(!dir.exists());
        drop(draft);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn folders_that_are_no_outcomes_are_never_touched() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("home");
        fs::create_dir(&dir).unwrap();
        write(&dir, Existing::Refuse, &records()).unwrap();
        let error = write(&dir.join("a/b"), Existing::Refuse, &records()).unwrap_err().to_string();
        assert!(error.contains("is inside the outcome") && !dir.join("a").exists(), "{error}");
        fs::write(dir.join("thesis.tex"), "").unwrap();
        let error = write(&dir, Existing::Replace, &records()).unwrap_err().to_string();
        assert!(error.contains("thesis.tex"), "{error}");
        let error = write(&dir.join("thesis.tex"), Existing::Replace, &records()).unwrap_err().to_string();
        assert!(error.contains("is a file"), "{error}");
        let error = write(&std::env::current_dir().unwrap(), Existing::Replace, &records()).unwrap_err();
        assert!(error.to_string().contains("working directory"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_leaves_nothing_behind() {
        // /dev/full takes no byte: every write to it fails with the error of a full disk.
        let full = |name: &'static str| -> fn(&Path) -> io::Result<File> {
            match name {
                FLOWS => |_| full_disk(),
                SCENARIO => {
                    |path| if path.ends_with(SCENARIO) { full_disk() } else { File::create_new(path) }
                }
                _ => |path| if path.ends_with(PERFORMANCE) { full_disk() } else { File::create_new(path) },
            }
        };
        fn full_disk() -> io::Result<File> {
            File::options().write(true).open("/dev/full")
        }
        for name in [FLOWS, SCENARIO, PERFORMANCE] {
            let root = tempfile::tempdir().unwrap();
            let dir = root.path().join("a/b/outcome");
            let mut writer = OutcomeWriter::prepare(&dir, Existing::Refuse).unwrap();
            writer.create = full(name);
            let error = write_with(&writer, &records()).unwrap_err().to_string();
            assert!(error.contains(&*dir.join(name).to_string_lossy()), "{error}");
            assert!(error.contains("No space left on device"), "{error}");
            assert!(names(root.path()).is_empty(), "{:?}", names(root.path()));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_unwritable_folder_is_known_before_the_run() {
        // Nobody, root included, makes folders in /proc.
        let error =
            OutcomeWriter::prepare(Path::new("/proc/x/outcome"), Existing::Refuse).unwrap_err().to_string();
        assert!(error.starts_with("cannot write /proc/x/outcome: "), "{error}");
        assert!(!error.contains("partial"), "{error}");
    }
}
