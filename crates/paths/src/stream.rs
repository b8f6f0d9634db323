//! Random streams that are independent of each other although they come from one seed.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// The random stream of one purpose under a seed.
///
/// A network, its layers and a sample of its routers are often drawn with the same seed. Were they drawn from the same
/// stream, the sampled pairs of a random graph would be the very pairs that its generator linked.
pub fn stream(seed: u64, purpose: &str) -> Pcg64Mcg {
    // FNV-1a over the purpose, then the seed.
    let bytes = purpose.bytes().chain(seed.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Pcg64Mcg::seed_from_u64(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_by_purpose_and_seed() {
        let first = |seed, purpose| stream(seed, purpose).next_u64();
        assert_eq!(first(1, "pairs"), first(1, "pairs"));
        assert_ne!(first(1, "pairs"), first(2, "pairs"));
        assert_ne!(first(1, "pairs"), first(1, "pattern"));
        assert_ne!(first(1, "pairs"), Pcg64Mcg::seed_from_u64(1).next_u64());
    }
}
