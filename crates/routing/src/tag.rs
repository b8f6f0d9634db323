//! The 32 bits that describe a packet's path to switches.

/// What a packet says of its path: an entropy value that switches hash, a path label, a layer, a path, or an intermediate switch. Which of them it
/// is depends on the scheme, which is the same everywhere in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Tag(u32);

/// Where a packet with an intermediate switch stands on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// On the way to an intermediate switch, or to its group. Switches with hosts are named by their index in the route table.
    Towards(u32),
    /// On a minimal path to its destination.
    Minimal,
}

/// Set once the intermediate switch has been passed.
const PASSED: u32 = 1 << 31;

impl Tag {
    /// There is no layer; switches forward by the hash among minimal ports.
    pub const NO_LAYER: Tag = Tag(u32::MAX);
    /// There is no intermediate switch.
    pub const DIRECT: Tag = Tag(u32::MAX);

    /// An entropy value: switches hash it with the rest of the header.
    #[inline(always)]
    pub const fn entropy(value: u32) -> Self {
        Tag(value)
    }

    /// A path label: every switch of a tree reads its digit.
    pub const fn label(label: u32) -> Self {
        Tag(label)
    }

    /// A layer, in whose table switches look.
    pub const fn layer(layer: u32) -> Self {
        Tag(layer)
    }

    /// A path by its number among those between two switches.
    pub const fn path(number: u32) -> Self {
        Tag(number)
    }

    /// Over an intermediate switch.
    pub const fn towards(edge: u32) -> Self {
        Tag(edge)
    }

    /// The same, the intermediate switch being passed.
    #[must_use]
    pub const fn passed(self) -> Self {
        Tag(self.0 | PASSED)
    }

    /// Where a packet with an intermediate switch stands.
    #[inline]
    pub const fn phase(self) -> Phase {
        if self.0 & PASSED == 0 { Phase::Towards(self.0) } else { Phase::Minimal }
    }

    /// As it is written in a packet.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// As it is read from a packet.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Tag(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_over_an_intermediate_switch_says_whether_that_is_passed() {
        let tag = Tag::towards(41);
        assert_eq!((tag.bits(), tag.phase()), (41, Phase::Towards(41)));
        // Once passed, it stays so.
        assert_eq!((tag.passed().bits(), tag.passed().phase()), (0x8000_0029, Phase::Minimal));
        assert_eq!(tag.passed().passed(), tag.passed());
        assert_eq!((Tag::DIRECT.phase(), Tag::DIRECT.passed()), (Phase::Minimal, Tag::DIRECT));
    }

    #[test]
    fn whatever_a_tag_stands_for_it_is_written_as_its_number() {
        let of = [Tag::entropy, Tag::label, Tag::layer, Tag::path, Tag::towards, Tag::from_bits];
        assert_eq!(of.map(|of| of(300).bits()), [300; 6]);
    }
}
