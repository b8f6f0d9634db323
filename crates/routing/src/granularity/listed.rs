//! What granularities have in common that keep a list of a flow's paths.

use netloom_units::Invalid;

use crate::tag::Tag;

/// Most paths of a list.
const MOST: u32 = 1024;

/// Checks the field `paths`, the length of a list.
pub(super) fn check_paths(paths: u32) -> Result<(), Invalid> {
    Invalid::unless((1..=MOST).contains(&paths), "paths", format!("1 to {MOST}"), paths)
}

/// The place of a path in a list that is sorted by tags: numbers of paths and labels mostly follow each other, entropy values have gaps.
#[inline]
pub(super) fn place_of<P>(tag: Tag, paths: &[P], tag_of: impl Fn(&P) -> Tag) -> Option<usize> {
    let number = |path: &P| tag_of(path).bits();
    debug_assert!(paths.is_sorted_by(|one, next| number(one) < number(next)), "a list of paths is sorted");
    let guess = tag.bits().wrapping_sub(number(paths.first()?)) as usize;
    if paths.get(guess).is_some_and(|path| tag_of(path) == tag) {
        return Some(guess);
    }
    paths.binary_search_by_key(&tag.bits(), number).ok()
}
