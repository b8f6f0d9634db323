//! What granularities have in common that keep a list of a flow's paths.

use netloom_units::Invalid;

use crate::tag::Tag;

/// Most paths of a list.
const MOST: u32 = 1024;

/// Checks the field `paths`, the length of a list.
pub(super) fn check_paths(paths: u32) -> Result<(), Invalid> {
    Invalid::unless((1..=MOST).contains(&paths), "paths", format!("1 to {MOST}"), paths)
}

/// The place of a path in a list of `count` paths, of which `at` gives the tags. In it they stand by their numbers: paths and labels mostly one after the other, entropy values with
/// gaps.
#[inline]
pub(super) fn place_of(tag: Tag, count: usize, at: impl Fn(usize) -> Tag) -> Option<usize> {
    if count == 0 {
        return None;
    }
    debug_assert!(
        (1..count).all(|place| at(place - 1).bits() < at(place).bits()),
        "paths stand by their numbers"
    );
    let guess = tag.bits().wrapping_sub(at(0).bits()) as usize;
    if guess < count && at(guess) == tag {
        return Some(guess);
    }
    let (mut first, mut behind) = (0, count);
    while first < behind {
        let middle = first.midpoint(behind);
        if at(middle).bits() < tag.bits() {
            first = middle + 1;
        } else {
            behind = middle;
        }
    }
    (first < count && at(first) == tag).then_some(first)
}
