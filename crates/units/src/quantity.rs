//! The three quantities: time, rate, size.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A point in simulated time or a duration, in whole picoseconds.
///
/// `u64` picoseconds last 213 days, far beyond any run. What people write is at most [`Time::LONGEST`], so that sums of a few such
/// times do not wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A data rate of one direction of a link, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Text that is not a quantity: what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found \"{}\"", crate::names::shorten(found))]
pub struct ParseQuantityError {
    expected: &'static str,
    found: String,
}

const PS_PER_S: u64 = 1_000_000_000_000;

impl Time {
    /// The start of every run.
    pub const ZERO: Time = Time(0);
    /// Later than everything.
    pub const MAX: Time = Time(u64::MAX);
    /// Where simulated time ends: nothing happens at it or after it.
    pub const END: Time = Time(1 << 63);

    /// The longest time that can be read from text: 20 hours.
    pub const LONGEST: Time = Time(72_000 * PS_PER_S);

    /// Whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }

    /// Whole microseconds.
    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000_000)
    }

    /// Whole milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Time(ms * 1_000_000_000)
    }

    /// The nearest picosecond to a number of seconds; negative numbers and NaN give zero, those beyond [`Time::MAX`] that.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as documented")]
    pub fn from_secs_f64(s: f64) -> Self {
        Time((s * PS_PER_S as f64).round() as u64)
    }

    /// Seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// For messages: in the unit that leaves at most three digits before the point (seconds may have more), with at most three behind it. What must be read back exactly is the time's own
    /// [`Display`](fmt::Display).
    ///
    /// ```
    /// use netloom_units::Time;
    ///
    /// assert_eq!(Time(9_348_480).rounded().to_string(), "9.348us");
    /// assert_eq!(Time(9_348_480).to_string(), "9348.48ns");
    /// ```
    pub fn rounded(self) -> impl fmt::Display {
        Rounded(self)
    }

    /// The difference, or zero if `earlier` is later.
    pub fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// The sum, or [`Time::MAX`] if it is later than that.
    pub fn saturating_add(self, more: Time) -> Time {
        Time(self.0.saturating_add(more.0))
    }
}

/// A time for people; see [`Time::rounded`].
#[derive(Clone, Copy, Debug)]
struct Rounded(Time);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0.0;
        // From the smallest unit on, until one has fewer than four digits before the point after rounding.
        for &(names, scale) in TIME_UNITS.iter().rev() {
            let step = (scale / 1000).max(1);
            let steps = ps / step + u64::from(ps % step >= step.div_ceil(2) && step > 1);
            let (whole, rest) = (steps / (scale / step), steps % (scale / step));
            if whole < 1000 || scale == PS_PER_S {
                let decimals = format!("{rest:03}");
                let decimals = decimals.trim_end_matches('0');
                let point = if decimals.is_empty() { "" } else { "." };
                return write!(f, "{whole}{point}{decimals}{}", names[0]);
            }
        }
        unreachable!("seconds take any time")
    }
}

impl Rate {
    /// The highest rate that can be read from text: 100 Tb/s, sixty times the fastest Ethernet. The rates of 180,000 such links
    /// can be added up.
    pub const HIGHEST: Rate = Rate(100_000_000_000_000);

    /// Whole gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }

    /// Time that `size` occupies a channel of this rate, rounded up to a whole picosecond.
    ///
    /// At most [`Time::END`]: what would take longer never ends.
    ///
    /// Rounding up is the one rule used everywhere, so a rate that does not divide evenly behaves alike in the
    /// switch, the NIC and the analytic formulas.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub fn serialize(self, size: Bytes) -> Time {
        // 8 × 10¹² × bytes fits 64 bits up to 2.3 MB, which covers every packet.
        match size.0.checked_mul(8 * PS_PER_S) {
            Some(work) => Time(work.div_ceil(self.0)),
            None => {
                let took = (u128::from(size.0) * u128::from(8 * PS_PER_S)).div_ceil(u128::from(self.0));
                u64::try_from(took).map_or(Time::END, |took| Time(took).min(Time::END))
            }
        }
    }

    /// Bytes that this rate carries in `time`, rounded down; `u64::MAX` if they are more, which no [`Rate::HIGHEST`] carries in a run.
    pub fn bytes_in(self, time: Time) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(time.0) / u128::from(8 * PS_PER_S);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// This rate times a fraction, rounded to the nearest bit per second; zero if that is negative or no number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as documented")]
    pub fn scale(self, fraction: f64) -> Rate {
        Rate((self.0 as f64 * fraction).round() as u64)
    }
}

impl Bytes {
    /// The largest size that can be read from text: 8 PiB. Sizes up to here are exact as floating-point numbers too, and
    /// two thousand of them can be added up.
    pub const LARGEST: Bytes = Bytes(1 << 53);
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, rhs: Time) -> Time {
        Time(self.0 + rhs.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, rhs: Time) {
        self.0 += rhs.0;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, rhs: Time) -> Time {
        Time(self.0 - rhs.0)
    }
}

/// [`Time::MAX`] if the product is later than that.
impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, rhs: u64) -> Time {
        Time(self.0.saturating_mul(rhs))
    }
}

impl Div<u64> for Time {
    type Output = Time;
    #[inline]
    fn div(self, rhs: u64) -> Time {
        Time(self.0 / rhs)
    }
}

impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Time>>(iter: I) -> Time {
        iter.fold(Time::ZERO, Add::add)
    }
}

/// A unit's names (the first is the one written) and its size in base units.
type Unit = (&'static [&'static str], u64);

const TIME_UNITS: [Unit; 5] = [
    (&["s"], PS_PER_S),
    (&["ms"], 1_000_000_000),
    (&["us", "µs"], 1_000_000),
    (&["ns"], 1_000),
    (&["ps"], 1),
];
const RATE_UNITS: [Unit; 5] = [
    (&["Tbps", "Tb/s"], 1_000_000_000_000),
    (&["Gbps", "Gb/s"], 1_000_000_000),
    (&["Mbps", "Mb/s"], 1_000_000),
    (&["kbps", "Kbps", "kb/s", "Kb/s"], 1_000),
    (&["bps", "b/s"], 1),
];
const BYTE_UNITS: [Unit; 7] = [
    (&["GiB"], 1 << 30),
    (&["GB"], 1_000_000_000),
    (&["MiB"], 1 << 20),
    (&["MB"], 1_000_000),
    (&["KiB"], 1 << 10),
    (&["KB", "kB"], 1_000),
    (&["B"], 1),
];

const TIME_EXPECTED: &str = "a time such as \"10us\" (units: s, ms, us, ns, ps)";
const TOO_LONG: &str = "a time of at most 20 hours (72000s)";
const RATE_EXPECTED: &str = "a rate such as \"200Gbps\" (units: Tbps, Gbps, Mbps, kbps, bps)";
const TOO_FAST: &str = "a rate of at most 100Tbps";
const TOO_MUCH: &str = "a size of at most 8PiB (9007199254740992 bytes)";
const BYTES_EXPECTED: &str =
    "a size such as \"8MiB\" (units: GiB, GB, MiB, MB, KiB, KB, B) or a whole number of bytes";

/// Reads `"<decimal> <unit>"` exactly: the decimal is scaled with integers, and a value that is not a whole number
/// of base units is refused rather than rounded.
fn parse(text: &str, units: &[Unit], expected: &'static str) -> Result<u64, ParseQuantityError> {
    let fail = || ParseQuantityError { expected, found: text.to_owned() };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    let scale = units.iter().find(|(names, _)| names.contains(&unit)).ok_or_else(fail)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 15 {
        return Err(fail());
    }
    let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| fail())?;
    let divisor = 10u128.pow(crate::narrow(fraction.len()));
    let scaled = digits.checked_mul(u128::from(scale)).ok_or_else(fail)?;
    if scaled % divisor != 0 {
        return Err(fail());
    }
    u64::try_from(scaled / divisor).map_err(|_| fail())
}

/// Writes the value in the largest unit in which it is a short decimal, otherwise in base units; reading it back is exact
/// either way.
///
/// Short is a whole number, or in decimal units a number below 10 000 with at most three decimals.
fn write(value: u64, units: &[Unit], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for &(names, scale) in units {
        let (whole, rest) = (value / scale, value % scale);
        if whole > 0 && rest == 0 {
            return write!(f, "{whole}{}", names[0]);
        }
        // Decimal fractions are exact only in decimal units.
        let decimal = scale.is_multiple_of(1000) && rest.is_multiple_of(scale / 1000);
        if (1..10_000).contains(&whole) && decimal {
            let decimals = format!("{:03}", rest / (scale / 1000));
            return write!(f, "{whole}.{}{}", decimals.trim_end_matches('0'), names[0]);
        }
    }
    write!(f, "{value}{}", units[units.len() - 1].0[0])
}

impl FromStr for Time {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = parse(text, &TIME_UNITS, TIME_EXPECTED).map(Time)?;
        if time > Time::LONGEST {
            return Err(ParseQuantityError { expected: TOO_LONG, found: text.to_owned() });
        }
        Ok(time)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rate = parse(text, &RATE_UNITS, RATE_EXPECTED).map(Rate)?;
        if rate > Rate::HIGHEST {
            return Err(ParseQuantityError { expected: TOO_FAST, found: text.to_owned() });
        }
        Ok(rate)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = parse(text, &BYTE_UNITS, BYTES_EXPECTED).map(Bytes)?;
        if size > Bytes::LARGEST {
            return Err(ParseQuantityError { expected: TOO_MUCH, found: text.to_owned() });
        }
        Ok(size)
    }
}

macro_rules! quantity {
    ($type:ident, $units:ident, $expected:ident, plain_number: $plain:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(self.0, &$units, f)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        match u64::try_from(number) {
                            Ok(number) if $plain => self.visit_u64(number),
                            _ => Err(E::invalid_type(de::Unexpected::Signed(number), &self)),
                        }
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        if $plain {
                            return format!("{number}{}", $units[$units.len() - 1].0[0]).parse().map_err(E::custom);
                        }
                        Err(E::invalid_type(de::Unexpected::Unsigned(number), &self))
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let types: &[&str] = if $plain { &["string", "integer"] } else { &["string"] };
                schemars::json_schema!({ "type": types, "format": stringify!($type) })
            }
        }
    };
}

quantity!(Time, TIME_UNITS, TIME_EXPECTED, plain_number: false);
quantity!(Rate, RATE_UNITS, RATE_EXPECTED, plain_number: false);
quantity!(Bytes, BYTE_UNITS, BYTES_EXPECTED, plain_number: true);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_units_in_many_ways() {
        assert_eq!("200Gbps".parse(), Ok(Rate::from_gbps(200)));
        assert_eq!("1.6 Tbps".parse(), Ok(Rate::from_gbps(1600)));
        assert_eq!("166.4ns".parse(), Ok(Time(166_400)));
        assert_eq!("0us".parse(), Ok(Time::ZERO));
        assert_eq!("8MiB".parse(), Ok(Bytes(8 << 20)));
        assert_eq!("0.5KiB".parse(), Ok(Bytes(512)));
    }

    #[test]
    fn a_wrong_unit_says_what_was_expected() {
        let error = "10 parsecs".parse::<Time>().unwrap_err().to_string();
        assert!(error.contains("10 parsecs") && error.contains("units: s, ms, us"), "{error}");
        assert!("".parse::<Time>().is_err());
        assert!("1.2.3us".parse::<Time>().is_err());
        assert!("-1us".parse::<Time>().is_err());
        assert!("0.5ps".parse::<Time>().is_err(), "a fraction of the base unit is not silently rounded");
        assert!("99999999999999999999s".parse::<Time>().is_err());
    }

    #[test]
    fn round_numbers_are_written_short_and_all_others_in_base_units() {
        let rates = [200_000_000_000, 12_500_000_000, 1_500_000, 12_494_999_999_999, 166_400_001, 999];
        let written = ["200Gbps", "12.5Gbps", "1.5Mbps", "12494999999999bps", "166400001bps", "999bps"];
        assert_eq!(rates.map(|bps| Rate(bps).to_string()), written);
        assert_eq!(Time(166_400).to_string(), "166.4ns");
        assert_eq!(Time(12_494_999_999_999).to_string(), "12494999999999ps");
        assert_eq!(
            [8 << 20, 1536, 1500, 123_456_789].map(|n| Bytes(n).to_string()),
            ["8MiB", "1.536KB", "1.5KB", "123456789B"]
        );
    }

    #[test]
    fn a_rounded_time_has_three_digits_before_the_point_and_three_behind() {
        let times = [0, 999, 1000, 1499, 9_348_480, 81_348_480, 85_899_356_000, 999_999_499, 999_999_500];
        let written =
            ["0ps", "999ps", "1ns", "1.499ns", "9.348us", "81.348us", "85.899ms", "999.999us", "1ms"];
        assert_eq!(times.map(|ps| Time(ps).rounded().to_string()), written);
        assert_eq!(Time(1_000_000_500_000_000).rounded().to_string(), "1000.001s");
        assert_eq!(Time::MAX.rounded().to_string(), "18446744.074s");
    }

    #[test]
    fn serialisation_rounds_up() {
        assert_eq!(Rate::from_gbps(200).serialize(Bytes(4160)), Time(166_400));
        assert_eq!(Rate(3).serialize(Bytes(1)), Time(2_666_666_666_667));
        assert_eq!(Rate::from_gbps(8).serialize(Bytes(1 << 40)), Time((1 << 40) * 1000));
    }

    #[test]
    fn no_time_is_longer_than_a_run_can_add_up() {
        assert_eq!("72000s".parse(), Ok(Time::LONGEST));
        for text in ["72000.000000000001s", "1000000s", "18446744.07s"] {
            let error = text.parse::<Time>().unwrap_err().to_string();
            assert_eq!(error, format!("expected a time of at most 20 hours (72000s), found \"{text}\""));
        }
    }

    #[test]
    fn no_rate_and_no_size_is_beyond_what_can_be_added_up() {
        assert_eq!("100Tbps".parse(), Ok(Rate::HIGHEST));
        assert_eq!("8388608GiB".parse(), Ok(Bytes::LARGEST));
        let error = "101Tbps".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error, "expected a rate of at most 100Tbps, found \"101Tbps\"");
        let error = "9007199254740993B".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.starts_with("expected a size of at most 8PiB"), "{error}");
        assert!(serde_json::from_str::<Bytes>("9007199254740993").is_err());
        assert_eq!(serde_json::from_str::<Bytes>("1500").unwrap(), Bytes(1500));
    }

    #[test]
    fn what_takes_longer_than_there_is_time_never_ends() {
        // 2⁶⁴ ps and a little more, of which the lower 64 bits would be 44 s.
        let size = Bytes(2_305_848_500_000);
        assert!(u128::from(size.0) * 8_000_000_000_000 / 1_000_000 > u128::from(u64::MAX));
        assert_eq!(Rate(1_000_000).serialize(size), Time::END);
        assert_eq!(Rate(1).serialize(Bytes::LARGEST), Time::END);
        assert_eq!(Rate(u64::MAX).bytes_in(Time::MAX), Bytes(u64::MAX));
        assert_eq!((Time::from_secs_f64(f64::MAX), Time::from_secs_f64(-1.0)), (Time::MAX, Time::ZERO));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in prop_oneof![0..5000u64, any::<u64>(), (0..10_000u64).prop_map(|x| x * 100_000)]) {
            let time = Time(value.min(Time::LONGEST.0));
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            let (rate, size) = (Rate(value.min(Rate::HIGHEST.0)), Bytes(value.min(Bytes::LARGEST.0)));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
