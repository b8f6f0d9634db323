//! Who takes part in a phase of a collective operation, and in which order.

use std::sync::Arc;

use netloom_units::narrow;

/// The ranks of a phase, numbered from 0.
#[derive(Clone, Debug)]
pub(crate) enum Members {
    /// Every `stride`-th rank from `first` on: those that differ in one logical dimension.
    Strided { first: u32, stride: u32, count: u32 },
    /// Those of a group.
    Listed(Arc<[u32]>),
}

impl Members {
    pub(crate) fn count(&self) -> u32 {
        match self {
            Members::Strided { count, .. } => *count,
            Members::Listed(ranks) => narrow::<u32>(ranks.len()),
        }
    }

    pub(crate) fn rank(&self, place: u32) -> u32 {
        match self {
            Members::Strided { first, stride, .. } => first + place * stride,
            Members::Listed(ranks) => ranks[place as usize],
        }
    }

    /// The place of a rank that is one of them.
    pub(crate) fn place(&self, rank: u32) -> u32 {
        match self {
            Members::Strided { first, stride, .. } => (rank - first) / stride,
            Members::Listed(ranks) => {
                narrow::<u32>(ranks.iter().position(|&member| member == rank).unwrap_or(0))
            }
        }
    }
}

/// One of the two trees over 2^k places: its root has one child, and below that the tree is a whole one, numbered from left to right.
/// The root of the first tree is the last place, of the second the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreePlace {
    pub(crate) parent: Option<u32>,
    pub(crate) children: [Option<u32>; 2],
}

impl TreePlace {
    pub(crate) fn new(place: u32, count: u32, root_is_last: bool) -> Self {
        let (root, base) = if root_is_last { (count - 1, 0) } else { (0, 1) };
        let levels = count.trailing_zeros();
        // Below the root places are counted from 1, so that a place's trailing zeros are its height.
        let outside = |number: u32| number - 1 + base;
        if place == root {
            let child = (count > 1).then(|| outside(1 << (levels - 1)));
            let children = if root_is_last { [child, None] } else { [None, child] };
            return TreePlace { parent: None, children };
        }
        let number = place + 1 - base;
        let height = number.trailing_zeros();
        let children = match height {
            0 => [None, None],
            _ => {
                let half = 1 << (height - 1);
                [Some(outside(number - half)), Some(outside(number + half))]
            }
        };
        let step = 1 << height;
        // A left child has an even place among those of its height.
        let parent = match height + 1 == levels {
            true => root,
            false if (number >> height) & 3 == 1 => outside(number + step),
            false => outside(number - step),
        };
        TreePlace { parent: Some(parent), children }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.parent.is_some() && self.children == [None, None]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_whole_below_their_roots() {
        // Seven places below the root: 4 above 2 and 6, these above 1, 3 and 5, 7.
        let of = |place, last| TreePlace::new(place, 8, last);
        assert_eq!(of(7, true), TreePlace { parent: None, children: [Some(3), None] });
        assert_eq!(of(3, true), TreePlace { parent: Some(7), children: [Some(1), Some(5)] });
        assert_eq!(of(5, true), TreePlace { parent: Some(3), children: [Some(4), Some(6)] });
        assert_eq!(of(6, true), TreePlace { parent: Some(5), children: [None, None] });
        assert_eq!(of(0, false), TreePlace { parent: None, children: [None, Some(4)] });
        assert_eq!(of(4, false), TreePlace { parent: Some(0), children: [Some(2), Some(6)] });
        assert_eq!(of(1, false), TreePlace { parent: Some(2), children: [None, None] });
        assert_eq!(TreePlace::new(0, 2, true), TreePlace { parent: Some(1), children: [None, None] });
        for count in [2, 4, 16, 64] {
            for last in [true, false] {
                for place in 0..count {
                    for child in TreePlace::new(place, count, last).children.into_iter().flatten() {
                        assert_eq!(TreePlace::new(child, count, last).parent, Some(place));
                    }
                }
            }
        }
    }
}
