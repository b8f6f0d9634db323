//! Axes of figures: where values stand, and ticks in plain numbers.

/// An axis from `low` to `high` in data, from `from` to `to` on paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) is_log: bool,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Scale {
    /// Where a value stands on paper; values beyond an end stand at it.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let map = |value: f64| if self.is_log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (low, high) = (map(self.low), map(self.high));
        let share = if high > low { (map(value) - low) / (high - low) } else { 0.5 };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values that have a tick, about as many as wanted.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.is_log {
            log_ticks(self.low, self.high, wanted)
        } else {
            even_ticks(self.low, self.high, wanted)
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn even_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    if rough <= 0.0 || !rough.is_finite() {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).max(0.0);
    let mut ticks = Vec::new();
    let mut number = 0.0;
    while number <= count {
        ticks.push((first + number) * step);
        number += 1.0;
    }
    ticks
}

/// Powers of ten, and numbers between them where there are few; a short axis has the ticks of a linear one.
fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let decades = |steps: &[f64]| -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(low.log10().floor());
        while power <= high * 1.001 {
            let all = steps.iter().map(|step| step * power);
            ticks.extend(all.filter(|tick| (low * 0.999..=high * 1.001).contains(tick)));
            power *= 10.0;
        }
        ticks
    };
    for steps in [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
        let ticks = decades(steps);
        if ticks.len() <= wanted && ticks.len() > 2 {
            return ticks;
        }
    }
    let powers = decades(&[1.0]);
    if powers.len() <= 2 {
        return even_ticks(low, high, wanted.min(4));
    }
    // Many powers of ten: every second, third, … of them.
    let each = powers.len().div_ceil(wanted.max(1));
    powers.into_iter().step_by(each).collect()
}

/// A number as it is read: no exponents, digits in groups of three, four significant ones.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let mut decimals = 0usize;
    while decimals < 12 && value.abs() * 10f64.powi(i32::try_from(decimals).unwrap_or(0)) < 999.5 {
        decimals += 1;
    }
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain() {
        let numbers = [0.0, 0.0001, 0.25, 1.0, 12.5, 1000.0, 1_234_567.0, 2e9, -1500.0, 28.4567];
        let expected =
            ["0", "0.0001", "0.25", "1", "12.5", "1,000", "1,234,567", "2,000,000,000", "-1,500", "28.46"];
        assert_eq!(numbers.map(plain), expected);
    }

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let ticks = |low, high, is_log| Scale { low, high, is_log, from: 0.0, to: 1.0 }.ticks(6);
        assert_eq!(ticks(0.0, 52.0, false), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(ticks(10.0, 160.0, true), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(1.0, 1e6, true).len(), 4, "every second power: {:?}", ticks(1.0, 1e6, true));
        assert_eq!(ticks(15.0, 28.0, true), [15.0, 20.0, 25.0]);
        assert_eq!(ticks(3.0, 3.0, false), [3.0]);
        assert_eq!(ticks(0.0, 1.0, false), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
    }

    #[test]
    fn values_stand_in_proportion() {
        let scale = Scale { low: 1.0, high: 100.0, is_log: true, from: 0.0, to: 200.0 };
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!((scale.at(0.0), scale.at(1e9)), (0.0, 200.0));
    }
}
