//! Folders that are written as a whole or not at all: under a hidden name beside their place, then renamed into it.
//!
//! A crash, a full disk or a killed process leaves either what was there before or what is new, never a mixture or a part. A killed
//! process can leave the hidden folder `.NAME.partial-XXXXXX` behind, which [`partial`] removes later.

use std::fs::{self, File};
use std::io;
use std::path::{self, Path, PathBuf};

use tempfile::TempDir;

use crate::partial::{self, plain};

/// The real name of a folder, so that a link to one stays a link; where there is none yet, the name it will have. A link to nothing is not found.
///
/// # Errors
/// If the system refuses.
pub fn place(dir: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !dir.is_symlink() => path::absolute(dir),
        other => other,
    }
}

/// Whether a folder by its real name is the working directory or above it, and so cannot be replaced.
pub fn holds_working_directory(dir: &Path) -> bool {
    std::env::current_dir().is_ok_and(|current| current.starts_with(dir))
}

/// How the hidden names begin under which a folder is written.
pub fn prefix(dir: &Path) -> String {
    format!(".{}.partial-", dir.file_name().unwrap_or_default().to_string_lossy())
}

/// A hidden folder in `parent`, for what shall become `dir`; it removes itself unless it is put in place. With it what marks it as being
/// written, as long as that lives.
///
/// # Errors
/// If the system refuses.
pub fn temporary_in(parent: &Path, dir: &Path) -> io::Result<(TempDir, Option<File>)> {
    let prefix = prefix(dir);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    // As readable as any folder its user makes, not private like a temporary one.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    partial::make(parent, || builder.tempdir_in(parent), TempDir::path).map_err(|error| plain(&error))
}

/// Gives a folder its place, where none is or an empty one. With `replaces` it takes the place of one that is there, which is removed, also
/// if that has appeared this moment.
///
/// # Errors
/// If the system refuses; what was there stays.
pub fn put_in_place(folder: TempDir, dir: &Path, replaces: bool) -> io::Result<()> {
    // Renaming a folder onto another succeeds only if that is empty, so nothing that appeared since is lost.
    match fs::rename(folder.path(), dir) {
        Ok(()) => {
            let _ = folder.keep();
            Ok(())
        }
        Err(error) if replaces && is_taken(&error) => {
            // The former folder takes the hidden name, and is removed with it. If that fails, the new one is in place all the same.
            exchange(folder.path(), dir)?;
            let _ = folder.close();
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Whether a folder could not be renamed because another one is there.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// Swaps two folders in one step where the file system can, in two where not.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return other.map_err(io::Error::from),
        }
    }
    exchange_in_steps(new, old)
}

/// Moves the old folder aside, the new one in its place, and the old one to the new one's name. Between the first
/// two steps no outcome has the target's name; if the second fails, the old one is moved back.
fn exchange_in_steps(new: &Path, old: &Path) -> io::Result<()> {
    let mut aside = new.as_os_str().to_owned();
    aside.push(".former");
    fs::rename(old, &aside)?;
    if let Err(error) = fs::rename(new, old) {
        fs::rename(&aside, old)?;
        return Err(error);
    }
    fs::rename(&aside, new)
}

/// Makes the entries of a folder durable, where the system can.
///
/// # Errors
/// If the disk fails.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match File::open(path).and_then(|folder| folder.sync_all()) {
        Err(error) if !matches!(error.kind(), InvalidInput | Unsupported | PermissionDenied) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn file_systems_that_cannot_exchange_folders_take_three_steps() {
        let root = tempfile::tempdir().unwrap();
        let (new, old) = (root.path().join("new"), root.path().join("old"));
        fs::create_dir(&new).unwrap();
        fs::create_dir(&old).unwrap();
        fs::write(new.join("1"), "").unwrap();
        fs::write(old.join("2"), "").unwrap();
        exchange_in_steps(&new, &old).unwrap();
        assert_eq!((names(&new), names(&old)), (vec!["2".to_owned()], vec!["1".to_owned()]));
        assert!(exchange_in_steps(&root.path().join("absent"), &old).is_err());
        assert_eq!(names(&old), ["1"], "the old folder is back");
    }
}
