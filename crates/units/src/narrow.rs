//! The one way in which a number loses bits outside the hot paths.

use std::any::type_name;
use std::fmt::Display;

/// The same number in another integer type, mostly a narrower one, where set-up has made sure that it fits: because a parameter was
/// checked, or because as many of what is counted take more memory than there is (2³² nodes, links, flows or messages).
///
/// It looks all the same, which costs an instruction or two. Code that runs per packet or per event has a cast instead, with
/// `#[expect(clippy::cast_possible_truncation, reason = "…")]` that names the bound.
///
/// ```
/// use netloom_units::narrow;
/// assert_eq!(narrow::<u16>(65_535usize), u16::MAX);
/// ```
///
/// # Panics
/// If it does not fit.
#[inline]
#[track_caller]
pub fn narrow<Narrow>(number: impl Copy + Display + TryInto<Narrow>) -> Narrow {
    match number.try_into() {
        Ok(number) => number,
        Err(_) => panic!("{number} is more than a {} can be", type_name::<Narrow>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_the_same() {
        assert_eq!(narrow::<u32>(0xffff_ffffusize), u32::MAX);
        assert_eq!(narrow::<u8>(255u16), 255);
    }

    #[test]
    #[should_panic(expected = "4294967296 is more than a u32 can be")]
    fn what_does_not_fit_never_wraps() {
        narrow::<u32>(1u64 << 32);
    }
}
