//! Where results lie: one folder per cell, named by what the cell is, each written as a whole or not at all.
//!
//! ```text
//! cells/scheme=ecmp_seed=1.3f2a9c01b2d4e6f8/     labels for people, a fingerprint of the work for the program
//! cells/.scheme=spray_seed=1.….partial-k2jx9A/   being written
//! .cells.lock                                    held while a study runs
//! ```
//!
//! A process that runs a study holds a shared lock on `.cells.lock`, which the system drops when the process ends, however it ends. So a process
//! that gets the lock for itself alone knows that every partial folder was left behind by one that was killed.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use netloom_record::{outcome_around, partial, whole};

/// Part of the names of what is being written.
const PARTIAL: &str = ".partial-";

/// The files that are written beside the cells.
const RESULTS: [&str; 3] = ["results.csv", "results.parquet", "study.json"];

/// Characters of a fingerprint.
const FINGERPRINT: usize = 16;

/// The folder of a study's cells, in use.
#[derive(Debug)]
pub struct CellFolders {
    dir: PathBuf,
    /// Held until the end.
    lock: File,
    /// What is there, by fingerprint.
    found: BTreeMap<String, String>,
}

impl CellFolders {
    /// Opens the folder, making it if needed, and removes what killed processes left behind unless others are at work in it.
    ///
    /// # Errors
    /// If the folder cannot be read or written; a full disk is noticed here and not after the first cell.
    pub fn open(dir: &Path) -> io::Result<Self> {
        if let Some(outcome) = outcome_around(dir) {
            let message =
                format!("it is inside the outcome {}; choose a folder next to it", outcome.display());
            return Err(io::Error::other(message));
        }
        fs::create_dir_all(dir)?;
        let name = format!(".{}.lock", dir.file_name().unwrap_or_default().to_string_lossy());
        let lock = File::options().create(true).truncate(false).write(true).open(dir.with_file_name(name))?;
        // Others that begin wait here until nothing is removed any more, and while one is at work nothing is.
        if is_alone(&lock)? {
            remove_partial(dir)?;
            remove_partial_files(dir.parent().unwrap_or(dir))?;
        }
        lock.lock_shared().or_else(without_locks)?;
        probe(dir).map_err(|error| partial::plain(&error))?;
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some((_, fingerprint)) = split(&name) {
                found.insert(fingerprint.to_owned(), name);
            }
        }
        Ok(CellFolders { dir: dir.to_owned(), lock, found })
    }

    /// The folder of a cell: the one that has its fingerprint already, whatever its labels were then, or a new one.
    pub(crate) fn of(&self, labels: &str, fingerprint: &str) -> PathBuf {
        match self.found.get(fingerprint) {
            Some(name) => self.dir.join(name),
            None => self.dir.join(format!("{}.{fingerprint}", plain(labels))),
        }
    }

    /// Folders that belong to none of the cells, in order.
    pub fn stale<'a>(&self, cells: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
        let used: std::collections::BTreeSet<&Path> = cells.into_iter().collect();
        let mut stale: Vec<PathBuf> = self
            .found
            .values()
            .map(|name| self.dir.join(name))
            .filter(|path| !used.contains(path.as_path()))
            .collect();
        stale.sort();
        stale
    }

    /// Removes folders, unless another process works here: they may be its cells.
    ///
    /// # Errors
    /// If another process works here, or a folder cannot be removed.
    pub fn remove(&self, stale: &[PathBuf]) -> io::Result<()> {
        self.lock.unlock().or_else(without_locks)?;
        let removed = match is_alone(&self.lock) {
            Ok(true) => stale.iter().try_for_each(fs::remove_dir_all),
            Ok(false) => Err(io::Error::other("another process runs a study in this folder")),
            Err(error) => Err(error),
        };
        self.lock.lock_shared().or_else(without_locks)?;
        removed
    }
}

/// Whether no other process holds the lock. If so, it is held for this one alone, until it is shared or given back. Where the file
/// system has no locks, it cannot be told.
fn is_alone(lock: &File) -> io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => without_locks(error).map(|()| false),
    }
}

/// A file system without locks is no reason not to run.
fn without_locks(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    }
}

fn remove_partial(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && name.contains(PARTIAL) {
            let path = entry.path();
            if entry.file_type()?.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
    }
    Ok(())
}

/// Tables of results that were being written; folders beside the cells are not the study's.
fn remove_partial_files(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_file()
            && RESULTS.iter().any(|file| is_partial(&name.to_string_lossy(), file))
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_partial(name: &str, file: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|name| name.strip_prefix(file))
        .is_some_and(|rest| rest.starts_with(PARTIAL))
}

/// Fails if there is no room for even a small result.
fn probe(dir: &Path) -> io::Result<()> {
    const ROOM: usize = 64 << 10;
    let mut file = tempfile::Builder::new().prefix(&format!(".probe{PARTIAL}")).tempfile_in(dir)?;
    file.write_all(&[0; ROOM])?;
    file.as_file().sync_all()?;
    file.close()
}

/// Labels and fingerprint of a folder's name.
fn split(name: &str) -> Option<(&str, &str)> {
    let (labels, fingerprint) = name.rsplit_once('.')?;
    let is_fingerprint =
        fingerprint.len() == FINGERPRINT && fingerprint.bytes().all(|b| b.is_ascii_hexdigit());
    (!labels.is_empty() && !labels.starts_with('.') && is_fingerprint).then_some((labels, fingerprint))
}

/// A text as a part of a file's name that no shell and no system stumbles over.
fn plain(text: &str) -> String {
    /// Most systems allow 255 bytes; the outcome's temporary folder adds to the name.
    const LONGEST: usize = 160;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=,.+-_".contains(c);
    let text: String = text.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A leading dot would hide the folder.
    text.strip_prefix('.').map_or(text.clone(), |rest| format!("_{rest}"))
}

/// Writes a folder of files, as a whole or not at all; one of that name is replaced.
pub(crate) fn write_folder(folder: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
    let Some(parent) = folder.parent() else {
        return Err(io::Error::other("it has no name"));
    };
    let (partial, _claim) = whole::temporary_in(parent, folder)?;
    for (name, content) in files {
        let mut file = File::create_new(partial.path().join(name))?;
        file.write_all(content)?;
        file.sync_all()?;
    }
    whole::put_in_place(partial, folder, true)
}

/// Writes a file, as a whole or not at all.
///
/// # Errors
/// If it cannot be written; a former file stays then.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut builder = tempfile::Builder::new();
    let prefix = format!(".{name}{PARTIAL}");
    builder.prefix(&prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINT: &str = "0123456789abcdef";

    #[test]
    fn folders_are_found_by_their_fingerprint_and_named_by_their_labels() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("cells");
        let name = |labels: &str| {
            let folders = CellFolders::open(&dir).unwrap();
            folders.of(labels, PRINT).file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(name("scheme=ecmp_seed=1"), format!("scheme=ecmp_seed=1.{PRINT}"));
        assert_eq!(name("../x y"), format!("_._x_y.{PRINT}"));
        assert!(name(&"é".repeat(1000)).len() < 200);
        fs::create_dir(dir.join(format!("once.{PRINT}"))).unwrap();
        assert_eq!(name("now"), format!("once.{PRINT}"), "a label that changes its name runs nothing anew");
    }

    #[test]
    fn what_was_left_behind_is_removed_unless_somebody_is_at_work() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("cells");
        let partial = dir.join(format!(".a.{PRINT}.partial-123456"));
        let (result, other) = (root.path().join(".results.csv.partial-1"), root.path().join(".x.partial-1"));
        let foreign = dir.join(".keep");
        let first = CellFolders::open(&dir).unwrap();
        fs::create_dir(&partial).unwrap();
        [&foreign, &result, &other].iter().for_each(|file| fs::write(file, "").unwrap());
        let second = CellFolders::open(&dir).unwrap();
        assert!(partial.exists() && result.exists(), "the first may be writing it");
        drop((first, second));
        drop(CellFolders::open(&dir).unwrap());
        assert!(!partial.exists() && !result.exists() && foreign.exists() && other.exists());
    }

    /// Sixteen that begin in one folder, each with something left behind there: one of them removes it, and none what others write.
    #[test]
    fn those_that_begin_together_do_each_other_no_harm() {
        let root = tempfile::tempdir().unwrap();
        for round in 0..8 {
            let dir = root.path().join(round.to_string()).join("cells");
            fs::create_dir_all(dir.join(format!(".old.{PRINT}.partial-1"))).unwrap();
            std::thread::scope(|scope| {
                for number in 0..16 {
                    let dir = &dir;
                    scope.spawn(move || {
                        let folders = CellFolders::open(dir).unwrap();
                        // Each its own cell, and one that is everybody's.
                        for cell in [format!("{number:016x}"), PRINT.to_owned()] {
                            let folder = folders.of("a", &cell);
                            write_folder(&folder, &[("result", cell.as_bytes())]).unwrap();
                        }
                    });
                }
            });
            let mut names: Vec<String> = fs::read_dir(&dir)
                .unwrap()
                .map(|it| it.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            assert!(names.len() == 17 && names.iter().all(|name| !name.starts_with('.')), "{names:?}");
        }
    }

    #[test]
    fn stale_cells_are_those_that_no_cell_uses() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("cells");
        let cells = ["a.0000000000000001", "b.0000000000000002", "notes", "x.png"].map(|name| dir.join(name));
        cells.iter().for_each(|cell| fs::create_dir_all(cell).unwrap());
        let folders = CellFolders::open(&dir).unwrap();
        let stale = folders.stale([cells[1].as_path()]);
        assert_eq!(stale, [cells[0].clone()]);
        let other = CellFolders::open(&dir).unwrap();
        assert!(folders.remove(&stale).unwrap_err().to_string().contains("another process"));
        drop(other);
        folders.remove(&stale).unwrap();
        assert!(!cells[0].exists() && cells[1].exists() && cells[2].exists());
    }

    #[test]
    fn a_folder_is_written_as_a_whole_and_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cell");
        write_folder(&folder, &[("a", b"1"), ("b", b"2")]).unwrap();
        write_folder(&folder, &[("a", b"3")]).unwrap();
        let names: Vec<_> =
            fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["cell"]);
        assert_eq!((fs::read(folder.join("a")).unwrap(), folder.join("b").exists()), (b"3".to_vec(), false));
        write_file(&root.path().join("file"), b"1").unwrap();
        write_file(&root.path().join("file"), b"2").unwrap();
        assert_eq!(fs::read(root.path().join("file")).unwrap(), b"2");
    }
}
