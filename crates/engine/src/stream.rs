//! Random streams that depend on the seed and the node alone.

/// The generator of every stream: 16 bytes of state, so that an idle node costs little.
pub type Stream = rand_pcg::Pcg64Mcg;

/// The random stream of `index` (a node, say) for one `purpose`, under a run's seed.
///
/// Streams of different (seed, purpose, index) are independent for all practical ends: the triple is mixed through
/// SplitMix64's finaliser before it becomes the generator's 128-bit state.
pub fn stream(seed: u64, purpose: u64, index: u64) -> Stream {
    let a = mix(seed ^ mix(purpose ^ mix(index)));
    let b = mix(a ^ seed.rotate_left(32));
    Stream::new((u128::from(a) << 64) | u128::from(b))
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_in_every_coordinate() {
        let first = |seed, purpose, index| stream(seed, purpose, index).next_u64();
        let mut seen = std::collections::HashSet::new();
        for seed in 0..10 {
            for purpose in 0..10 {
                for index in 0..10 {
                    assert!(seen.insert(first(seed, purpose, index)));
                }
            }
        }
    }
}
