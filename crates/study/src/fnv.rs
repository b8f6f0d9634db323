// A hash for names; the build script has it too.

/// FNV-1a with 128 bits (Fowler, Noll, Vo), eight bytes at a time: enough that cells of a lifetime do not collide by
/// accident.
pub(crate) struct Fnv(pub(crate) u128);

impl Fnv {
    pub(crate) fn new() -> Self {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a part and its length, so that parts cannot be confused with their concatenation.
    pub(crate) fn add(&mut self, part: &[u8]) {
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
