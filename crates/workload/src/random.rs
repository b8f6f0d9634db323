//! Random streams, one per purpose and host.

pub(crate) use rand::RngExt;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// What a stream is for; streams of different purposes are unrelated.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Placement = 1,
    Partners = 2,
    Host = 3,
    Start = 4,
    Phase = 5,
    Source = 6,
    Part = 7,
}

/// The stream of one host (or of the whole run, with `index` 0) for one purpose.
pub(crate) fn stream(seed: u64, purpose: Purpose, index: u32) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(part_seed(seed, purpose, index))
}

/// The seed of a part of a run, whose streams are unrelated to those of the whole and of other parts.
pub(crate) fn part_seed(seed: u64, purpose: Purpose, index: u32) -> u64 {
    mix(seed ^ mix((purpose as u64) << 32 | u64::from(index)))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection in which every input bit reaches
/// every output bit.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A uniform shuffle (Fisher–Yates).
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Pcg64Mcg) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}
