//! Cells that are done elsewhere: all that the work needs goes there in a parcel, and the result's files come back.
//!
//! The other machine shares no files with this one. What a scenario names is sent along and laid into a folder of its own there; the
//! result still names the files as they are called here, so that it has the bytes of one that was made here.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::{fs, io};

use netloom_scenario::{Node, Problem, Problems, Scenario, Source, Value};

use crate::analysis::Analysis;
use crate::folder::write_folder;
use crate::work::{Work, WorkError};

/// Some work and all that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Whether it is a run of a scenario rather than a measurement.
    pub is_run: bool,
    /// The work as TOML.
    pub text: String,
    /// The files that it names, with what they hold.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// The files of a result, by name.
pub type ResultFiles = Vec<(String, Vec<u8>)>;

impl Work {
    /// The work with all that it needs.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn parcel(&self) -> Result<Parcel, Problem> {
        let read = |file: PathBuf| match fs::read(&file) {
            Ok(content) => Ok((file, content)),
            Err(error) => Err(Problem::new("", format!("cannot read {}: {error}", file.display()))),
        };
        let files = self.files().into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Parcel { is_run: matches!(self, Work::Run(..)), text: self.to_toml()?, files })
    }
}

impl Parcel {
    /// Does the work in a temporary folder.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn perform(&self) -> Result<ResultFiles, WorkError> {
        let unwritable =
            |error: io::Error| WorkError::Unwritable(format!("no room for a cell's files: {error}"));
        let folder = tempfile::tempdir().map_err(unwritable)?;
        let mut moved = Vec::with_capacity(self.files.len());
        for (file, content) in &self.files {
            // In folders like those where they came from: files may name others by their prefix, or relative to themselves.
            let here = below(folder.path(), file);
            let of_its_own = here.parent().unwrap_or(folder.path());
            fs::create_dir_all(of_its_own).and_then(|()| fs::write(&here, content)).map_err(unwritable)?;
            moved.push((file.display().to_string(), here.display().to_string()));
        }
        let work = self.read(&moved).map_err(|problems| WorkError::Failed(problems.to_string()))?;
        let result = folder.path().join("result");
        work.perform_as(&self.text, &result, &AtomicBool::new(false), &|_| ())?;
        read_folder(&result)
            .map_err(|error| WorkError::Failed(format!("its result cannot be read back: {error}")))
    }

    /// The work, with files where they lie here.
    fn read(&self, moved: &[(String, String)]) -> Result<Work, Problems> {
        let mut document = Node::parse(&Source::new("cell", self.text.as_str()))?;
        redirect(&mut document, moved);
        Ok(match self.is_run {
            true => Work::Run(Box::new(Scenario::read(&document)?), document),
            false => Work::Measure(Box::new(Analysis::read(&document)?), document),
        })
    }
}

/// Where a file of another machine lies here.
fn below(folder: &Path, file: &Path) -> PathBuf {
    let names = file.components().filter(|part| matches!(part, Component::Normal(_)));
    folder.join("files").join(names.collect::<PathBuf>())
}

/// A name where it lies here: of a file, or the prefix of execution traces.
fn here<'a>(text: &str, moved: &'a [(String, String)]) -> Option<&'a str> {
    let of_file = |(file, here): &'a (String, String)| {
        let rest = file.strip_prefix(text)?;
        let is_prefix = rest.starts_with('.') && rest.ends_with(".et") && text.len() > 1;
        (rest.is_empty() || is_prefix).then(|| here.strip_suffix(rest)).flatten()
    };
    moved.iter().find_map(of_file)
}

/// Puts the new names of files in place of the old ones. The old ones are absolute, so nothing else is called so.
fn redirect(node: &mut Node, moved: &[(String, String)]) {
    match &mut node.value {
        Value::String(text) => {
            if let Some(here) = here(text, moved) {
                *text = here.to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, moved)),
        Value::Table(table) => table.0.iter_mut().for_each(|entry| redirect(&mut entry.node, moved)),
        _ => {}
    }
}

fn read_folder(folder: &Path) -> io::Result<ResultFiles> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

/// Puts a result that was made elsewhere into a cell's folder, as a whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub fn store(folder: &Path, files: &ResultFiles) -> io::Result<()> {
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    write_folder(folder, &files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(text: &str) -> Work {
        let document = Node::parse(&Source::new("s.toml", text)).unwrap();
        Work::Run(Box::new(Scenario::read(&document).unwrap()), document)
    }

    #[test]
    fn a_parcel_gives_the_files_that_the_work_gives_here() {
        let root = tempfile::tempdir().unwrap();
        let net = root.path().join("net.txt");
        fs::write(&net, "a s\nb s\nc s\n").unwrap();
        let net = net.display();
        let work = work(&format!(
            "topology = {{ kind = \"edge-list\", path = \"{net}\" }}\nworkload = {{ size = \"10KB\" }}\n"
        ));
        let parcel = work.parcel().unwrap();
        assert_eq!(parcel.files.len(), 1);

        let (here, there) = (root.path().join("here"), root.path().join("there"));
        work.perform(&here, &AtomicBool::new(false), &|_| ()).unwrap();
        // Where the parcel is opened there is no such file.
        fs::remove_file(root.path().join("net.txt")).unwrap();
        store(&there, &parcel.perform().unwrap()).unwrap();
        let (here, there) = (read_folder(&here).unwrap(), read_folder(&there).unwrap());
        assert!(here.len() > 4 && here.len() == there.len());
        for (a, b) in here.iter().zip(&there).filter(|(a, _)| a.0 != "performance.json") {
            assert!(a == b, "{}", a.0);
        }
        assert!(work.parcel().unwrap_err().message.contains("cannot read"));
    }
}
