//! Names for cells: the same work done by the same program has the same name.

use std::path::PathBuf;

use netloom_scenario::Problem;

/// A name for the result of some work done by this program: a hash of the work as it is written out, of the files it names, and of
/// `program`, whatever identifies the program's build.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn fingerprint(work: &str, files: &[PathBuf], program: &[u8]) -> Result<String, Problem> {
    let mut hash = Fnv::new();
    hash.add(program);
    hash.add(work.as_bytes());
    for file in files {
        let bytes = std::fs::read(file)
            .map_err(|error| Problem::new("", format!("cannot read {}: {error}", file.display())))?;
        hash.add(&bytes);
    }
    // Half of the bits: two of a million cells share them once in 37 million studies.
    Ok(format!("{:016x}", (hash.0 >> 64) as u64 ^ hash.0 as u64))
}

/// A short stand-in for a long text, e.g. the program's own executable.
pub fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut hash = Fnv::new();
    hash.add(bytes);
    hash.0.to_le_bytes()
}

/// FNV-1a with 128 bits (Fowler, Noll, Vo), eight bytes at a time: enough that cells of a lifetime do not collide by
/// accident.
struct Fnv(u128);

impl Fnv {
    fn new() -> Self {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a part and its length, so that parts cannot be confused with their concatenation.
    fn add(&mut self, part: &[u8]) {
        for chunk in part.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add_word(u64::from_le_bytes(word));
        }
        self.add_word(part.len() as u64);
    }

    fn add_word(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        // Multiplication moves bits up only; this brings the upper ones back down.
        self.0 ^= self.0 >> 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_work_files_or_programs_have_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sizes");
        std::fs::write(&file, "1").unwrap();
        let name = |work, program| fingerprint(work, std::slice::from_ref(&file), program).unwrap();
        let first = name("a", b"1");
        assert_eq!(first.len(), 16);
        assert_eq!(name("a", b"1"), first);
        assert_ne!(name("a", b"2"), first);
        assert_ne!(name("b", b"1"), first);
        std::fs::write(&file, "2").unwrap();
        assert_ne!(name("a", b"1"), first);
        std::fs::remove_file(&file).unwrap();
        assert!(
            fingerprint("a", std::slice::from_ref(&file), b"1").unwrap_err().message.contains("cannot read")
        );
    }

    #[test]
    fn every_byte_counts() {
        let base = vec![7u8; 100];
        let mut seen = std::collections::BTreeSet::from([digest(&base)]);
        for i in 0..base.len() {
            let mut changed = base.clone();
            changed[i] ^= 0x80;
            assert!(seen.insert(digest(&changed)), "{i}");
        }
        assert!(seen.insert(digest(&base[..99])));
    }
}
