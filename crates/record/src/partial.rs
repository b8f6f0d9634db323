//! What is being written lies under a hidden name until it is whole; what was left behind there by processes that were killed is removed.
//!
//! Whoever writes holds a lock on the file or folder, which the system drops when the process ends, however it ends. So what can be locked
//! was left behind. The moment between making it and locking it is bridged by its age.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Begins the hidden names of files and folders that commands write at the user's wish.
pub const PREFIX: &str = ".netloom-partial-";

/// What is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Marks a file or folder as being written, as long as what is returned lives. Where a file system has no locks there is nothing to hold.
pub fn claim(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    file.lock().ok().map(|()| file)
}

/// Removes files and folders in `folder` whose names begin with `prefix` and that nobody writes any more. What cannot be removed stays.
pub fn remove_abandoned(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) && is_abandoned(&entry.path()) {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }
}

fn is_abandoned(path: &Path) -> bool {
    let age = |path: &Path| -> io::Result<Duration> {
        fs::symlink_metadata(path)?.modified()?.elapsed().map_err(io::Error::other)
    };
    age(path).is_ok_and(|age| age > YOUNG) && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// An error without the temporary name that `tempfile` adds: the user knows only what it would have become.
pub fn plain(error: &io::Error) -> io::Error {
    let text = error.to_string();
    io::Error::new(error.kind(), text.split(" at path ").next().unwrap_or(&text))
}

/// Makes something old enough to be taken for abandoned.
#[cfg(test)]
pub(crate) fn age(path: &Path) {
    let long_ago = std::time::SystemTime::now() - 2 * YOUNG;
    File::open(path).unwrap().set_modified(long_ago).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_writes_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".a.partial-1", ".a.partial-2", ".a.partial-3", ".b.partial-1", "a"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "").unwrap();
            age(&at(name));
        }
        fs::write(at(".a.partial-4"), "").unwrap();
        age(&at(".a.partial-4"));
        let writing = claim(&at(".a.partial-1"));
        assert!(writing.is_some());
        fs::write(at(".a.partial-2").join("new"), "").unwrap();
        remove_abandoned(folder.path(), ".a.partial-");
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".a.partial-1", ".a.partial-2", ".b.partial-1", "a"], "written, young, of others");
        drop(writing);
        remove_abandoned(folder.path(), ".a.partial-");
        assert!(!at(".a.partial-1").exists());
        remove_abandoned(&at("nowhere"), "");
    }
}
