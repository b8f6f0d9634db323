//! What is being written lies under a hidden name until it is whole; what was left behind there by processes that were killed is removed.
//!
//! The process that writes holds a lock on the file or folder, which the system drops when the process ends, however it ends. So what can be locked
//! was left behind. In the moment between making it and locking it, its maker shares a lock on the folder that it lies in: what is to be
//! removed is looked for only by a process that holds that lock exclusively. If another program holds it, only what is old enough is removed.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Begins the hidden names of files and folders that commands write at the user's wish.
pub const PREFIX: &str = ".netloom-partial-";

/// What is younger may not be locked yet, where its folder could not be.
const YOUNG: Duration = Duration::from_secs(60);

/// Makes a file or folder in `folder` and marks it as being written, as long as the second thing that is returned lives. Where a file system
/// has no locks there is nothing to hold.
///
/// # Errors
/// If it cannot be made.
pub fn make<T>(
    folder: &Path,
    make: impl FnOnce() -> io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> io::Result<(T, Option<File>)> {
    let _making = File::open(folder).ok().filter(|folder| folder.lock_shared().is_ok());
    let made = make()?;
    let claim = claim(path(&made));
    Ok((made, claim))
}

fn claim(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    file.lock().ok().map(|()| file)
}

/// Removes files and folders in `folder` whose names begin with `prefix` and that nobody writes any more. What cannot be removed stays.
pub fn remove_abandoned(folder: &Path, prefix: &str) {
    let of_folder = File::open(folder).ok();
    let is_nothing_made = of_folder.as_ref().is_some_and(|folder| folder.try_lock().is_ok());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix)
            && is_abandoned(&entry.path(), is_nothing_made)
        {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }
}

fn is_abandoned(path: &Path, is_nothing_made: bool) -> bool {
    let age = |path: &Path| -> io::Result<Duration> {
        fs::symlink_metadata(path)?.modified()?.elapsed().map_err(io::Error::other)
    };
    (is_nothing_made || age(path).is_ok_and(|age| age > YOUNG))
        && File::open(path).is_ok_and(|file| file.try_lock().is_ok())
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
        // Another process has made one this moment.
        let making = File::open(folder.path()).unwrap();
        making.lock_shared().unwrap();
        remove_abandoned(folder.path(), ".a.partial-");
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".a.partial-1", ".a.partial-2", ".b.partial-1", "a"], "written, young, of others");
        drop((writing, making));
        remove_abandoned(folder.path(), ".a.partial-");
        assert!(
            !at(".a.partial-1").exists() && !at(".a.partial-2").exists(),
            "young, but no process is writing it"
        );
        let path = at(".a.partial-5");
        let (path, claim) =
            make(folder.path(), || fs::create_dir(&path).map(|()| path.clone()), |path| path).unwrap();
        remove_abandoned(folder.path(), ".a.partial-");
        assert!(claim.is_some() && path.exists());
        remove_abandoned(&at("nowhere"), "");
    }
}
