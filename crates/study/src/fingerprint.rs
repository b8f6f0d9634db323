//! Names for cells: the same work done by the same program has the same name.

use std::path::PathBuf;

use netloom_scenario::Problem;

use crate::fnv::Fnv;

/// A name for the result of some work done by this program: a hash of the work as it is written out, of the files it names, and of
/// `program`, whatever identifies the program's build.
///
/// # Errors
/// A file that cannot be read.
#[expect(clippy::cast_possible_truncation, reason = "the two words of a number")]
pub(crate) fn fingerprint(work: &str, files: &[PathBuf], program: &str) -> Result<String, Problem> {
    let mut hash = Fnv::new();
    hash.add(program.as_bytes());
    hash.add(work.as_bytes());
    for file in files {
        let bytes = std::fs::read(file)
            .map_err(|error| Problem::new("", format!("cannot read {}: {error}", file.display())))?;
        hash.add(&bytes);
    }
    // The halves folded upon each other, as its authors advise: two of a million cells share them once in 37 million studies.
    Ok(format!("{:016x}", (hash.0 >> 64) as u64 ^ hash.0 as u64))
}

/// What identifies this build of netloom, the same for the command and the Python package: its version and all sources that a cell's
/// result depends on. Cells of another build run anew.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("NETLOOM_SOURCES"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_work_files_or_programs_have_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sizes");
        std::fs::write(&file, "1").unwrap();
        let name = |work, program| fingerprint(work, std::slice::from_ref(&file), program).unwrap();
        let first = name("a", "1");
        assert_eq!(first.len(), 16);
        assert_eq!(name("a", "1"), first);
        assert_ne!(name("a", "2"), first);
        assert_ne!(name("b", "1"), first);
        std::fs::write(&file, "2").unwrap();
        assert_ne!(name("a", "1"), first);
        std::fs::remove_file(&file).unwrap();
        assert!(
            fingerprint("a", std::slice::from_ref(&file), "1").unwrap_err().message.contains("cannot read")
        );
    }

    /// The vectors of the hash's authors.
    #[test]
    fn the_hash_is_what_its_name_says() {
        for (text, expected) in [
            ("", 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128),
            ("a", 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964),
            ("foobar", 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18),
        ] {
            let mut hash = Fnv::new();
            hash.write(text.as_bytes());
            assert_eq!(hash.0, expected, "{text}");
        }
    }

    #[test]
    fn every_byte_counts() {
        let digest = |bytes: &[u8]| {
            let mut hash = Fnv::new();
            hash.add(bytes);
            hash.0
        };
        let base = vec![7u8; 100];
        let mut seen = std::collections::BTreeSet::from([digest(&base)]);
        for i in 0..base.len() {
            let mut changed = base.clone();
            changed[i] ^= 0x80;
            assert!(seen.insert(digest(&changed)), "{i}");
        }
        assert!(seen.insert(digest(&base[..99])));
    }

    #[test]
    fn the_program_is_known_by_its_sources() {
        let (version, sources) = PROGRAM.split_once(' ').unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        assert!(sources.len() == 32 && sources.chars().all(|c| c.is_ascii_hexdigit()), "{sources}");
    }
}
