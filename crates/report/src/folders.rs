//! Which runs the folders of a report hold, and by which labels they are told apart.

use std::fs;
use std::path::{Path, PathBuf};

use netloom_record::OutcomeError;
use serde::{Deserialize, Serialize};

/// Written by `netloom study`: one row per cell.
const RESULTS: &str = "results.csv";
/// Written by `netloom study`: the claims as they were judged, and more.
const STUDY: &str = "study.json";
/// The file of a cell that measured a network.
const QUANTITIES: &str = "quantities.json";
/// Every outcome has it.
const SUMMARY: &str = "summary.json";

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A folder holds nothing that could be shown.
    #[error("{} is neither an outcome nor a study: it holds neither {SUMMARY} nor {RESULTS}{hint}", dir.display())]
    NothingThere {
        /// The folder.
        dir: PathBuf,
        /// What else could have been meant.
        hint: String,
    },
    /// A file of a study does not hold what it should.
    #[error("{}: {problem}", path.display())]
    Study {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// An outcome cannot be read.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
}

/// Everything that the folders hold.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// What each of the studies shows, in its own words.
    pub(crate) titles: Vec<String>,
    /// Names of the axes along which runs differ, in order.
    pub(crate) axes: Vec<String>,
    /// Every run.
    pub(crate) runs: Vec<Run>,
    /// The claims of all studies.
    pub(crate) claims: Vec<Claim>,
    /// Numbers of studies that measure networks without a packet: the table as it is.
    pub(crate) measured: Vec<Vec<String>>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) folder: PathBuf,
    /// Label by axis, in the order of the axes; empty where the run is not varied along it.
    pub(crate) labels: Vec<String>,
}

/// What a report takes from [`STUDY`].
#[derive(Default, Deserialize)]
struct Judged {
    title: Option<String>,
    claims: Vec<Claim>,
}

/// A claim as `netloom study` judged it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    id: String,
    text: String,
    holds: Option<bool>,
    /// Absent in studies of earlier versions.
    #[serde(default)]
    verdict: Option<String>,
    #[serde(default)]
    needs: Option<String>,
    #[serde(default)]
    mean_holds: Option<bool>,
    measured: String,
    published: String,
    gate: bool,
    source: String,
    note: String,
}

impl Folders {
    /// Looks into every folder. Where there are several, which one a run comes from is an axis too.
    pub(crate) fn read(dirs: &[PathBuf]) -> Result<Self, ReportError> {
        let mut all = Folders::default();
        let names = names(dirs);
        for (dir, name) in dirs.iter().zip(&names) {
            let folder = Folders::one(dir)?;
            all.add(folder, (dirs.len() > 1).then_some(name));
        }
        Ok(all)
    }

    fn one(dir: &Path) -> Result<Self, ReportError> {
        if dir.join(RESULTS).is_file() {
            study(dir)
        } else if dir.join(SUMMARY).is_file() {
            let run = Run { folder: dir.to_owned(), labels: Vec::new() };
            Ok(Folders { runs: vec![run], ..Folders::default() })
        } else {
            Err(ReportError::NothingThere { dir: dir.to_owned(), hint: hint(dir) })
        }
    }

    /// Adds what another folder holds; `name` becomes its runs' label on the axis `run`.
    fn add(&mut self, other: Folders, name: Option<&String>) {
        const RUN: &str = "run";
        let mut theirs = other.axes;
        if name.is_some() {
            theirs.insert(0, RUN.to_owned());
        }
        for axis in &theirs {
            if !self.axes.contains(axis) {
                self.axes.push(axis.clone());
            }
        }
        for run in &mut self.runs {
            run.labels.resize(self.axes.len(), String::new());
        }
        for run in other.runs {
            let named = name.cloned().into_iter().chain(run.labels);
            let mut labels = vec![String::new(); self.axes.len()];
            for (axis, label) in theirs.iter().zip(named) {
                if let Some(place) = self.axes.iter().position(|known| known == axis) {
                    labels[place] = label;
                }
            }
            self.runs.push(Run { folder: run.folder, labels });
        }
        self.titles.extend(other.titles);
        self.claims.extend(other.claims);
        self.measured.extend(other.measured);
    }
}

/// Names by which folders are told apart: their own, or the whole path where two have the same.
fn names(dirs: &[PathBuf]) -> Vec<String> {
    let short = |dir: &PathBuf| dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
    let is_clear =
        dirs.iter().enumerate().all(|(i, dir)| dirs[..i].iter().all(|other| short(other) != short(dir)));
    dirs.iter().map(|dir| if is_clear { short(dir) } else { dir.display().to_string() }).collect()
}

/// The axes and cells of a study stand in its table of results, before and behind the column of seeds.
fn study(dir: &Path) -> Result<Folders, ReportError> {
    let path = dir.join(RESULTS);
    let wrong = |problem: String| ReportError::Study { path: path.clone(), problem };
    let mut reader = csv::Reader::from_path(&path).map_err(|error| wrong(error.to_string()))?;
    let heading = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    let rows: Vec<csv::StringRecord> =
        reader.records().collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    let Judged { title, claims } = match fs::read_to_string(dir.join(STUDY)) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| ReportError::Study { path: dir.join(STUDY), problem: error.to_string() })?,
        Err(_) => Judged::default(),
    };
    let titles: Vec<String> = title.into_iter().collect();
    let column = |name: &str| heading.iter().position(|column| column == name);
    let (Some(seed), Some(folder)) = (column("seed"), column("folder")) else {
        return Err(wrong("it has no columns `seed` and `folder`".to_owned()));
    };
    // Cells that measured a network have no outcome.
    if rows.first().is_some_and(|row| dir.join(&row[folder]).join(QUANTITIES).is_file()) {
        let measured = std::iter::once(&heading).chain(&rows);
        let shown = |row: &csv::StringRecord| {
            let cells = row.iter().enumerate().filter(|(column, _)| *column != folder);
            cells.map(|(_, cell)| cell.to_owned()).collect()
        };
        return Ok(Folders { titles, claims, measured: measured.map(shown).collect(), ..Folders::default() });
    }
    let run = |row: &csv::StringRecord| Run {
        folder: dir.join(&row[folder]),
        labels: row.iter().take(seed).map(str::to_owned).collect(),
    };
    let axes = heading.iter().take(seed).map(str::to_owned).collect();
    Ok(Folders { titles, axes, runs: rows.iter().map(run).collect(), claims, measured: Vec::new() })
}

/// What else could have been meant by a folder that holds nothing that could be shown: a sentence's end, beginning with `;`, or nothing.
pub fn hint(dir: &Path) -> String {
    const MOST: usize = 3;
    let Ok(entries) = fs::read_dir(dir) else {
        return if dir.exists() {
            "; it is no folder".to_owned()
        } else {
            "; there is no such folder".to_owned()
        };
    };
    let below = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        below.filter(|path| path.join(RESULTS).is_file() || path.join(SUMMARY).is_file()).collect();
    found.sort();
    let more = if found.len() > MOST { ", …" } else { "" };
    let names: Vec<String> = found.iter().take(MOST).map(|path| format!("`{}`", path.display())).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}{more}?", names.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_cells_of_a_study_carry_their_labels() {
        let root = tempfile::tempdir().unwrap();
        write(
            &root.path().join(RESULTS),
            "scheme,load,seed,folder,fct.p99\necmp,0.5,1,cells/a,7\nflowcut,,1,cells/b,3\n",
        );
        let folders = Folders::read(&[root.path().to_owned()]).unwrap();
        assert_eq!(folders.axes, ["scheme", "load"]);
        let labels: Vec<_> = folders.runs.iter().map(|run| run.labels.join("|")).collect();
        assert_eq!(labels, ["ecmp|0.5", "flowcut|"]);
        assert_eq!(folders.runs[1].folder, root.path().join("cells/b"));
    }

    #[test]
    fn runs_of_several_folders_are_told_apart_by_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| root.path().join(name);
        write(&dir("one").join(SUMMARY), "{}");
        write(&dir("two").join(RESULTS), "scheme,seed,folder\necmp,1,cells/a\n");
        let folders = Folders::read(&[dir("one"), dir("two")]).unwrap();
        assert_eq!(folders.axes, ["run", "scheme"]);
        assert_eq!(folders.runs[0].labels, ["one", ""]);
        assert_eq!(folders.runs[1].labels, ["two", "ecmp"]);
        write(&dir("x/one").join(SUMMARY), "{}");
        assert!(names(&[dir("one"), dir("x/one")])[1].ends_with("x/one"));
    }

    #[test]
    fn measurements_of_networks_are_shown_as_they_are() {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join(RESULTS), "network,seed,folder,paths_tail\nsf,1,cells/a,3\n");
        write(&root.path().join("cells/a").join(QUANTITIES), "{}");
        let folders = Folders::read(&[root.path().to_owned()]).unwrap();
        assert!(folders.runs.is_empty());
        assert_eq!(folders.measured[1], ["sf", "1", "3"]);
    }

    #[test]
    fn a_folder_that_is_no_outcome_gets_one_clear_message() {
        let root = tempfile::tempdir().unwrap();
        let message = |path: &Path| Folders::read(&[path.to_owned()]).unwrap_err().to_string();
        assert!(message(root.path()).ends_with("it holds neither summary.json nor results.csv"));
        assert!(message(&root.path().join("nowhere")).ends_with("there is no such folder"));
        write(&root.path().join("runs/a").join(SUMMARY), "{}");
        assert!(
            message(&root.path().join("runs")).contains("did you mean `"),
            "{}",
            message(&root.path().join("runs"))
        );
        assert!(message(&root.path().join("runs/a").join(SUMMARY)).ends_with("it is no folder"));
    }
}
