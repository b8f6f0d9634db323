//! Finite fields GF(pᵐ), as Slim Fly needs them.
//!
//! An element is a number below q whose base-p digits are the coefficients of a polynomial over GF(p). Products go
//! through the powers of a primitive element ξ, which is x modulo a primitive polynomial (for m = 1: a primitive
//! root). That ξ has order exactly q − 1 is what the search checks, and it proves the polynomial irreducible as well:
//! q − 1 distinct powers are all non-zero residues, so each of these has an inverse.

use netloom_units::narrow;

/// The prime p and the exponent m with pᵐ = q, if q is a prime power.
pub(crate) fn prime_power(q: u32) -> Option<(u32, u32)> {
    if q < 2 {
        return None;
    }
    let p = (2..).take_while(|d| d * d <= u64::from(q)).find(|&d| u64::from(q).is_multiple_of(d));
    let p = p.map_or(q, |p| narrow::<u32>(p));
    let (mut rest, mut m) = (q, 0);
    while rest.is_multiple_of(p) {
        rest /= p;
        m += 1;
    }
    (rest == 1).then_some((p, m))
}

/// The field with q elements.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    q: u32,
    p: u32,
    /// `powers[e]` is ξ to the power e, for e below q − 1.
    powers: Vec<u32>,
    /// The inverse of `powers`; entry 0 is unused.
    logs: Vec<u32>,
}

impl Field {
    /// The field with q elements, if there is one. Takes memory and, but for the search of ξ, time linear in q.
    pub(crate) fn new(q: u32) -> Option<Field> {
        let (p, m) = prime_power(q)?;
        let powers = (1..q).find_map(|candidate| {
            // For m = 1 the candidate is ξ itself, otherwise it is xᵐ written with lower powers of x.
            let times_xi = |e: u32| {
                if m == 1 {
                    narrow::<u32>(u64::from(e) * u64::from(candidate) % u64::from(p))
                } else {
                    let place = q / p;
                    let overflow = scale(candidate, e / place, p);
                    add(e % place * p, overflow, p)
                }
            };
            all_powers(q, times_xi)
        })?;
        let mut logs = vec![0; q as usize];
        for (exponent, &element) in (0..).zip(&powers) {
            logs[element as usize] = exponent;
        }
        Some(Field { q, p, powers, logs })
    }

    /// ξ to the power `exponent`.
    pub(crate) fn power(&self, exponent: u32) -> u32 {
        self.powers[(exponent % (self.q - 1)) as usize]
    }

    /// Sum of two elements.
    pub(crate) fn add(&self, a: u32, b: u32) -> u32 {
        if self.p == self.q {
            let sum = a + b;
            if sum >= self.q { sum - self.q } else { sum }
        } else {
            add(a, b, self.p)
        }
    }

    /// Product of two elements.
    pub(crate) fn mul(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 { 0 } else { self.power(self.logs[a as usize] + self.logs[b as usize]) }
    }
}

/// The powers 1, ξ, ξ², … if there are exactly q − 1 different ones.
fn all_powers(q: u32, times_xi: impl Fn(u32) -> u32) -> Option<Vec<u32>> {
    let mut powers = vec![1];
    loop {
        let next = times_xi(*powers.last()?);
        if next == 1 {
            return (narrow::<u32>(powers.len()) == q - 1).then_some(powers);
        }
        if next == 0 || narrow::<u32>(powers.len()) == q - 1 {
            return None;
        }
        powers.push(next);
    }
}

/// Digit-wise sum modulo p.
fn add(mut a: u32, mut b: u32, p: u32) -> u32 {
    let (mut sum, mut place) = (0, 1);
    while a > 0 || b > 0 {
        sum += (a % p + b % p) % p * place;
        (a, b, place) = (a / p, b / p, place * p);
    }
    sum
}

/// Digit-wise product with a factor below p, modulo p.
fn scale(mut a: u32, factor: u32, p: u32) -> u32 {
    let (mut scaled, mut place) = (0, 1);
    while a > 0 {
        scaled += a % p * factor % p * place;
        (a, place) = (a / p, place * p);
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prime_powers_are_recognised() {
        let found: Vec<u32> = (0..50).filter(|&q| prime_power(q).is_some()).collect();
        assert_eq!(
            found,
            [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 43, 47, 49]
        );
        assert_eq!(prime_power(3u32.pow(7)), Some((3, 7)));
        assert_eq!(prime_power(u32::MAX), None);
    }

    #[test]
    fn field_axioms_hold() {
        for q in [2, 3, 4, 5, 8, 9, 16, 25, 27, 32, 49] {
            let field = Field::new(q).unwrap();
            let mut seen: Vec<u32> = (0..q - 1).map(|e| field.power(e)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(1..q), "the primitive element of GF({q}) generates every unit");
            for a in 0..q {
                assert_eq!((field.add(a, 0), field.mul(a, 1)), (a, a));
                assert!((0..q).any(|b| field.add(a, b) == 0));
                for b in 0..q {
                    assert_eq!(field.mul(a, b), field.mul(b, a));
                    for c in 0..q.min(9) {
                        let left = field.mul(c, field.add(a, b));
                        assert_eq!(left, field.add(field.mul(c, a), field.mul(c, b)), "GF({q})");
                    }
                }
            }
        }
    }
}
