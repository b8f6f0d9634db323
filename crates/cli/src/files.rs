//! Writing a file: as a whole or not at all, and only where a file is.
//!
//! A regular file is replaced by renaming a complete new one onto it. That must not happen to anything else: renamed
//! over, a symbolic link no longer leads anywhere, and a device is gone for everyone on the machine. So links are
//! followed to what they mean, and devices and FIFOs are written to.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use netloom_record::partial;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Output(format!("cannot write {}: {error}", path.display()))
}

/// Writes a regular file as a whole or not at all, following links; writes to a device, a FIFO or an open standard
/// stream what it is given.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    write(path, content).map_err(|error| unwritable(path, &error))
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) => {
            if let Some(mut stream) = standard_stream(&there)? {
                return stream.write_all(content);
            }
            match there.file_type() {
                kind if kind.is_file() => replace(&fs::canonicalize(path)?, content, Some(&there)),
                kind if kind.is_dir() => Err(io::Error::other("it is a folder")),
                kind if kind.is_socket() => Err(io::Error::other("it is a socket")),
                _ => OpenOptions::new().write(true).open(path)?.write_all(content),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(&end_of_links(path)?, content, None),
        Err(error) => Err(error),
    }
}

/// Puts a complete new file in the place of a regular one, or where none is.
fn replace(path: &Path, content: &[u8], former: Option<&Metadata>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As readable as any file that its user makes, or as the one it replaces; not private like a temporary one.
    let fresh = fs::Permissions::from_mode(0o666);
    partial::remove_abandoned(folder, partial::PREFIX);
    let mut builder = tempfile::Builder::new();
    builder.prefix(partial::PREFIX).permissions(fresh);
    let made = partial::make(folder, || builder.tempfile_in(folder), NamedTempFile::path);
    let (mut file, _claim) = made.map_err(|error| partial::plain(&error))?;
    file.write_all(content).map_err(|error| partial::plain(&error))?;
    if let Some(former) = former {
        file.as_file().set_permissions(former.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// Where a link leads that leads to nothing yet; the path itself if it is no link.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    // As many links as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// The standard stream that a path such as `/dev/stdout` stands for, even where it leads to a regular file: what this
/// process prints besides goes to the same open file, which must not be replaced under it.
fn standard_stream(there: &Metadata) -> io::Result<Option<File>> {
    for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
        let file = File::from(stream.try_clone_to_owned()?);
        let of_stream = file.metadata()?;
        if (of_stream.dev(), of_stream.ino()) == (there.dev(), there.ino()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_regular_file_is_replaced_and_stays_as_readable_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        write(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let (former, inode) = (File::open(&file).unwrap(), fs::metadata(&file).unwrap().ino());
        write(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(io::read_to_string(former).unwrap(), "one", "whoever reads the old file reads it whole");
        let now = fs::metadata(&file).unwrap();
        assert!(now.ino() != inode && now.permissions().mode() & 0o777 == 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn links_lead_to_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("b", at("a")).unwrap();
        symlink(at("file"), at("b")).unwrap();
        for text in ["one", "two"] {
            // The first time the links lead to nothing.
            write(&at("a"), text.as_bytes()).unwrap();
            assert!(at("a").is_symlink() && at("b").is_symlink() && !at("file").is_symlink());
            assert_eq!(fs::read_to_string(at("file")).unwrap(), text);
        }
        symlink("loop", at("loop")).unwrap();
        assert!(write(&at("loop"), b"").is_err());
        assert!(write(&at("."), b"").unwrap_err().to_string().contains("folder"));
    }
}
