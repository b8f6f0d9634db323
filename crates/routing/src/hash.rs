//! The hash functions by which switches spread flows (ECMP).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::header::Header;

/// Which hash a switch applies to a packet's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashFunction {
    /// 32-bit FNV-1a over the header's bytes (Fowler, Noll, Vo; named by FatPaths, SC'20).
    Fnv1a,
    /// Murmur3's 64-bit finaliser over the header's words: every input bit reaches every output bit.
    #[default]
    Mix,
}

const FNV_OFFSET: u32 = 2_166_136_261;
const FNV_PRIME: u32 = 16_777_619;

impl HashFunction {
    /// Hash of a header under a switch's salt.
    #[inline]
    pub fn apply(self, header: &Header, salt: u32) -> u32 {
        self.apply_to(header.seen_by_hash(), salt)
    }

    /// Hash of [what it sees](Header::seen_by_hash) of a header.
    #[inline(always)]
    pub(crate) fn apply_to(self, seen: [u64; 2], salt: u32) -> u32 {
        match self {
            HashFunction::Mix => mix_seen(seen, salt),
            HashFunction::Fnv1a => fnv1a_seen(seen[0], seen[1], salt),
        }
    }
}

/// A hash function with the salt of one switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchHash {
    pub(crate) function: HashFunction,
    pub(crate) salt: u32,
}

impl SwitchHash {
    /// Hash of a header.
    #[inline]
    pub(crate) fn of(self, header: &Header) -> u32 {
        self.function.apply(header, self.salt)
    }

    /// The position among some ports that it names for a header.
    #[inline(always)]
    pub(crate) fn position(self, header: &Header, ports: usize) -> usize {
        region(self.of(header), ports)
    }
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME))
}

/// [`HashFunction::Fnv1a`] of [what a hash sees](Header::seen_by_hash) of a header.
// Not as an array, which would lie in memory where the other function is used, too.
#[inline(never)]
fn fnv1a_seen(first: u64, second: u64, salt: u32) -> u32 {
    // In the order of a header: source, destination, flow, tag.
    let words = [first, second].into_iter().flat_map(u64::to_le_bytes);
    fnv1a(words.chain(salt.to_le_bytes()))
}

/// [`HashFunction::Mix`] of [what a hash sees](Header::seen_by_hash) of a header.
#[inline(always)]
pub(crate) fn mix_seen(seen: [u64; 2], salt: u32) -> u32 {
    // The source and the flow come first in it.
    let [ends, labels] = seen.map(|word| word.rotate_left(u32::BITS));
    (mix(mix(ends ^ (u64::from(salt) << 17)).wrapping_add(labels)) >> 32) as u32
}

/// Murmur3's 64-bit finaliser.
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Maps a hash to one of `count` regions of equal size (RFC 2992's hash-threshold).
#[inline]
pub fn region(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

/// What the hash of a header is made of.
pub fn hash_in_words(header: &Header) -> String {
    format!("hash of source, destination, flow and entropy value {}", header.tag.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Carries;
    use crate::tag::Tag;

    fn header(flow: u32) -> Header {
        Header {
            src: 1,
            dst: 2,
            flow,
            tag: Tag::default(),
            bytes: 4160,
            payload: 4096,
            hops: 1,
            carries: Carries::Data,
        }
    }

    #[test]
    fn fnv1a_matches_the_published_vectors() {
        assert_eq!(fnv1a("a".bytes()), 0xe40c_292c);
        assert_eq!(fnv1a("foobar".bytes()), 0xbf9c_f968);
    }

    /// The values were computed by the two functions' definitions: Murmur3's finaliser twice, over (source, destination) and then
    /// (flow, entropy value), the salt 17 bits up in the first; FNV-1a over the five numbers in this order, least byte first.
    #[test]
    fn a_header_and_a_salt_have_a_hash_that_can_be_computed_elsewhere() {
        let of = |[src, dst, flow, tag]: [u32; 4], salt| {
            let header = Header { src, dst, tag: Tag::from_bits(tag), ..header(flow) };
            [HashFunction::Mix, HashFunction::Fnv1a].map(|function| {
                let switch = SwitchHash { function, salt };
                assert_eq!(function.apply(&header, salt), switch.of(&header));
                (switch.of(&header), switch.position(&header, 8))
            })
        };
        assert_eq!(of([1, 2, 3, 4], 5), [(0xfe38_af51, 7), (0x17db_1404, 0)]);
        let far = of([70_000, 9, 0x0102_0304, 0x8000_0001], 0xdead_beef);
        assert_eq!(far, [(0xbfa1_6fa2, 5), (0x6be6_8c41, 3)]);
        assert_eq!(of([0; 4], 0), [(0, 0), (0xb9fe_e455, 5)]);
    }

    #[test]
    fn regions_are_of_equal_size() {
        let quarters =
            [0, 0x3fff_ffff, 0x4000_0000, 0x8000_0000, 0xbfff_ffff, u32::MAX].map(|hash| region(hash, 4));
        assert_eq!(quarters, [0, 0, 1, 2, 2, 3]);
        assert_eq!([0, u32::MAX].map(|hash| region(hash, 1)), [0, 0]);
    }

    #[test]
    fn the_words_name_what_is_hashed() {
        let header = Header { tag: Tag::entropy(17), ..header(3) };
        assert_eq!(hash_in_words(&header), "hash of source, destination, flow and entropy value 17");
    }

    #[test]
    fn flows_spread_like_balls_into_bins() {
        for function in [HashFunction::Fnv1a, HashFunction::Mix] {
            let mut bins = [0u32; 8];
            for flow in 0..80_000 {
                bins[region(function.apply(&header(flow), 77), 8)] += 1;
            }
            for bin in bins {
                // Six standard deviations of a binomial(80000, 1/8).
                assert!((f64::from(bin) - 10_000.0).abs() < 6.0 * 93.5, "{function:?}: {bins:?}");
            }
        }
    }

    #[test]
    fn a_salt_makes_switches_independent() {
        let same = (0..8_000)
            .filter(|&flow| {
                let choice = |salt| region(HashFunction::Mix.apply(&header(flow), salt), 8);
                choice(1) == choice(2)
            })
            .count();
        assert!((800..1200).contains(&same), "{same} of 8000 chose alike; 1000 are expected");
    }
}
