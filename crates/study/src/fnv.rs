// A hash for names; the build script has it too.

/// FNV-1a with 128 bits (Fowler, Noll, Vo; RFC 9923), a byte at a time: enough that cells of a lifetime do not collide by accident.
pub(crate) struct Fnv(pub(crate) u128);

impl Fnv {
    pub(crate) fn new() -> Self {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// Adds a part and its length, so that parts cannot be confused with their concatenation.
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.write(part);
        self.write(&(part.len() as u64).to_le_bytes());
    }
}
