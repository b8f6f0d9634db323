//! Names for cells: the same scenario run by the same program has the same name.

use crate::scenario::Scenario;
use crate::source::Problem;

/// A name for the outcome of a scenario run by this program: a hash of the expanded scenario, of the files it names,
/// and of `program`, whatever identifies the program's build.
///
/// # Errors
/// A file that cannot be read.
pub fn fingerprint(scenario: &Scenario, program: &[u8]) -> Result<String, Problem> {
    let mut hash = Fnv::new();
    hash.add(program);
    hash.add(scenario.to_toml()?.as_bytes());
    for file in scenario.files() {
        let bytes = std::fs::read(&file)
            .map_err(|error| Problem::new("", format!("cannot read {}: {error}", file.display())))?;
        hash.add(&bytes);
    }
    Ok(format!("{:032x}", hash.0))
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
    fn another_scenario_or_program_has_another_name() {
        let scenario = Scenario::default();
        let name = fingerprint(&scenario, b"1").unwrap();
        assert_eq!(name.len(), 32);
        assert_eq!(fingerprint(&scenario, b"1").unwrap(), name);
        assert_ne!(fingerprint(&scenario, b"2").unwrap(), name);
        assert_ne!(fingerprint(&Scenario { seed: 2, ..scenario }, b"1").unwrap(), name);
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
