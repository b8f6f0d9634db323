//! The greatest common divisor.

/// The greatest number that divides both; the other number, if one is 0.
pub fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_both_and_0_leaves_the_other() {
        let pairs = [(12, 18), (18, 12), (7, 5), (0, 9), (9, 0), (u64::MAX, u64::MAX)];
        assert_eq!(pairs.map(|(one, other)| greatest_common_divisor(one, other)), [6, 6, 1, 9, 9, u64::MAX]);
    }
}
