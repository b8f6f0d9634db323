//! QCN's congestion point: samples a queue and says how congested it is.
//!
//! Every output queue has one. It counts down the bytes that arrive; when an interval is over it looks at the queue, and
//! if the queue stands above its set point or grows fast, the source of the frame that ended the interval is notified.
//! The worse the congestion, the shorter the next interval.

use netloom_units::{Bytes, Invalid};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::queue::check_packet_size;

/// Quantized congestion notification, the switches' part (IEEE 802.1Qau). A sampled frame finds q bytes queued, itself included;
/// with q' at the sample before, the severity (q − q_eq) + w (q − q') is cut to 0 … (2 w + 1) q_eq and quantised to 6 bits. Above 0, its
/// source is sent a congestion notification (CNM) that carries it.
///
/// The defaults are Table I of "Comparative Evaluation of CEE-based Switch Adaptive Routing" (Crisan, Gusat, Minkenberg).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Qcn {
    /// Where the default of `q_eq` comes from: `switch-ar` (the paper above) or `802.1qau` (the standard's MIB).
    pub preset: QcnPreset,
    /// Set point of the queue, bytes; if absent 20 KB with preset `switch-ar`, 26 KB with `802.1qau`.
    pub q_eq: Option<Bytes>,
    /// Weight of the queue's growth since the sample before against its distance from `q_eq`.
    pub w: u32,
    /// Bytes from one sample to the next at the lowest severity.
    pub sample_base: Bytes,
    /// How the interval shrinks as the severity grows: `table` (the standard's, to 18.5 / 150 of `sample_base`) or `linear` (the paper's
    /// sampling probability, to 1 / 10).
    pub sampling: Sampling,
    /// Each interval is drawn uniformly from 1 − jitter to 1 + jitter times its nominal length.
    pub jitter: f64,
    /// Size of a notification on the wire, bytes.
    pub cnm_size: Bytes,
}

/// Published settings of the congestion point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QcnPreset {
    /// Table I of "Comparative Evaluation of CEE-based Switch Adaptive Routing".
    #[default]
    #[serde(rename = "switch-ar")]
    SwitchAr,
    /// The defaults of IEEE 802.1Qau.
    #[serde(rename = "802.1qau")]
    Ieee8021Qau,
}

/// How the sampling interval follows the severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The table of IEEE 802.1Qau, by the upper three bits of the severity: 150, 75, 50, 37.5, 30, 25, 21.5 and 18.5 KB if `sample_base`
    /// is 150 KB.
    #[default]
    Table,
    /// The probability that a frame is sampled grows linearly with the severity, to ten times the lowest: from 1 in 100 frames of 1500 B to
    /// 1 in 10 if `sample_base` is 150 KB.
    Linear,
}

/// Severity at full scale: 6 bits.
const FULL_SCALE: u8 = 63;
/// The standard's table in 300ths of its first entry.
const TABLE: [u64; 8] = [300, 150, 100, 75, 60, 50, 43, 37];

impl Default for Qcn {
    fn default() -> Self {
        Qcn {
            preset: QcnPreset::SwitchAr,
            q_eq: None,
            w: 2,
            sample_base: Bytes(150_000),
            sampling: Sampling::Table,
            jitter: 0.15,
            cnm_size: Bytes(64),
        }
    }
}

impl Qcn {
    /// Set point of the queue.
    pub fn set_point(&self) -> Bytes {
        self.q_eq.unwrap_or(match self.preset {
            QcnPreset::SwitchAr => Bytes(20_000),
            QcnPreset::Ieee8021Qau => Bytes(26_000),
        })
    }

    /// Refuses values without meaning.
    ///
    /// # Errors
    /// Names the field to change.
    pub fn check(&self) -> Result<(), Invalid> {
        let sizes = Bytes(1)..=Bytes(1 << 40);
        Invalid::unless(sizes.contains(&self.set_point()), "q_eq", "1 B to 1 TiB", self.set_point())?;
        Invalid::unless(sizes.contains(&self.sample_base), "sample_base", "1 B to 1 TiB", self.sample_base)?;
        Invalid::unless(
            (0.0..1.0).contains(&self.jitter),
            "jitter",
            "a number from 0 to below 1",
            self.jitter,
        )?;
        check_packet_size("cnm_size", self.cnm_size)
    }

    /// The severity, 0 to 63, of a sample that finds `queued` bytes where the one before found `before`.
    #[expect(clippy::cast_possible_truncation, reason = "a share of FULL_SCALE")]
    fn quantise(&self, queued: u64, before: u64) -> u8 {
        let q_eq = i128::from(self.set_point().0);
        let [queued, before, w] = [queued.into(), before.into(), i128::from(self.w)];
        let limit = q_eq * (2 * w + 1);
        let severity = ((queued - q_eq) + w * (queued - before)).clamp(0, limit);
        (severity * i128::from(FULL_SCALE) / limit) as u8
    }

    /// Nominal bytes to the next sample after one of this severity.
    fn interval(&self, severity: u8) -> u64 {
        let base = self.sample_base.0;
        match self.sampling {
            Sampling::Table => base * TABLE[usize::from(severity) / 8] / TABLE[0],
            // base / (1 + 9 severity / 63)
            Sampling::Linear => base * 7 / (7 + u64::from(severity)),
        }
    }
}

/// The congestion point of one queue. Hot: every data frame that joins the queue counts down the bytes to the next sample, and
/// looks at nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CongestionPoint {
    /// What the last sample found queued.
    q_old: u64,
    /// Bytes to the next sample.
    bytes_to_sample: i64,
}

impl CongestionPoint {
    /// The congestion point of an empty queue.
    pub fn new(config: &Qcn) -> Self {
        CongestionPoint { q_old: 0, bytes_to_sample: config.sample_base.0 as i64 }
    }

    /// A data frame of `size` bytes joins the queue, in which `queued` bytes wait with it. Returns the severity, 1 to 63, if its source
    /// must be notified. Notifications themselves are never sampled.
    #[inline]
    pub fn on_arrival(&mut self, config: &Qcn, size: u64, queued: u64, random: &mut impl Rng) -> Option<u8> {
        self.bytes_to_sample -= size as i64;
        if self.bytes_to_sample > 0 { None } else { self.sample(config, queued, random) }
    }

    #[cold]
    fn sample(&mut self, config: &Qcn, queued: u64, random: &mut impl Rng) -> Option<u8> {
        let severity = config.quantise(queued, self.q_old);
        self.q_old = queued;
        self.bytes_to_sample = jittered(config.interval(severity), config.jitter, random) as i64;
        (severity > 0).then_some(severity)
    }
}

/// A whole number from (1 − jitter) to (1 + jitter) times the nominal one, uniformly.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share of a number and a product shifted down to one factor's size"
)]
fn jittered(nominal: u64, jitter: f64, random: &mut impl Rng) -> u64 {
    let spread = (nominal as f64 * jitter) as u64;
    let choices = u128::from(2 * spread + 1);
    nominal - spread + ((u128::from(random.next_u64()) * choices) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn random() -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(1)
    }

    #[test]
    fn the_quantiser_steps_at_63rds_of_five_set_points() {
        let config = Qcn::default();
        for step in 1..=63u8 {
            // Steady queue: the severity is its distance from 20 KB. 100 KB is full scale.
            let boundary = 20_000 + (u64::from(step) * 100_000).div_ceil(63);
            assert_eq!(config.quantise(boundary, boundary), step);
            assert_eq!(config.quantise(boundary - 1, boundary - 1), step - 1);
        }
        assert_eq!([0, 20_000, 120_000, 1 << 50].map(|q| config.quantise(q, q)), [0, 0, 63, 63]);
    }

    #[test]
    fn growth_weighs_twice_as_much_as_distance() {
        let config = Qcn::default();
        // At the set point, 10 KB more than before count as 20 KB too many.
        assert_eq!(config.quantise(20_000, 10_000), config.quantise(40_000, 40_000));
        // A queue that shrinks by half its excess is no congestion.
        assert_eq!(config.quantise(40_000, 50_000), 0);
        assert_eq!(Qcn { w: 0, ..config }.quantise(20_000, 10_000), 0);
    }

    #[test]
    fn a_steady_queue_of_twice_the_set_point_has_severity_12_and_half_the_interval() {
        let config = Qcn::default();
        let severity = config.quantise(40_000, 40_000);
        assert_eq!((severity, config.interval(severity)), (12, 75_000));
    }

    #[test]
    fn intervals_are_the_tables() {
        let table = Qcn::default();
        let intervals: Vec<u64> = (0..64).step_by(8).map(|severity| table.interval(severity)).collect();
        assert_eq!(intervals, [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500]);
        for severity in 0..64 {
            assert_eq!(table.interval(severity), table.interval(severity / 8 * 8));
        }
        let linear = Qcn { sampling: Sampling::Linear, ..table };
        assert_eq!([0, 7, 14, 28, 63].map(|s| linear.interval(s)), [150_000, 75_000, 50_000, 30_000, 15_000]);
    }

    /// Mean frames of 1500 B per notification while the queue holds `queued` bytes.
    fn frames_per_notification(sampling: Sampling, queued: u64) -> f64 {
        let config = Qcn { sampling, ..Qcn::default() };
        let (mut point, mut random) = (CongestionPoint::new(&config), random());
        let frames = 1_000_000;
        let notified =
            (0..frames).filter(|_| point.on_arrival(&config, 1500, queued, &mut random).is_some()).count();
        f64::from(frames) / notified as f64
    }

    #[test]
    fn a_source_is_notified_every_100_frames_at_low_severity_and_every_10_or_12_at_the_highest() {
        // Intervals end with a whole frame: half a frame more on average.
        for (sampling, queued, frames) in [
            (Sampling::Table, 22_000, 100.5),
            (Sampling::Table, 200_000, 12.83),
            (Sampling::Linear, 22_000, 88.0),
            (Sampling::Linear, 200_000, 10.5),
        ] {
            let mean = frames_per_notification(sampling, queued);
            assert!((mean - frames).abs() < 0.01 * frames, "{sampling:?} at {queued} B: {mean}");
        }
    }

    #[test]
    fn a_queue_at_its_set_point_notifies_nobody() {
        let config = Qcn::default();
        let (mut point, mut random) = (CongestionPoint::new(&config), random());
        // The first sample sees the queue grow from nothing.
        let notified: Vec<u8> =
            (0..10_000).filter_map(|_| point.on_arrival(&config, 1500, 20_000, &mut random)).collect();
        assert_eq!(notified, [25]);
    }

    #[test]
    fn an_interval_ends_with_the_frame_that_fills_it() {
        let config = Qcn { jitter: 0.0, ..Qcn::default() };
        let mut point = CongestionPoint::new(&config);
        let sampled = |_| point.on_arrival(&config, 1500, 40_000, &mut random()).is_some();
        let sampled: Vec<bool> = (0..190).map(sampled).collect();
        // 100 frames; then severity 63 · 100 / 100 (growth from nothing) asks for 18.5 KB; then a steady queue for 75 KB.
        let at: Vec<usize> =
            (1..).zip(sampled).filter_map(|(frame, sampled)| sampled.then_some(frame)).collect();
        assert_eq!(at, [100, 113, 163]);
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_bounds(nominal in 1..1u64 << 41, jitter in 0.0..0.999f64, seed: u64) {
            let drawn = jittered(nominal, jitter, &mut Pcg64Mcg::seed_from_u64(seed));
            prop_assert!(drawn.abs_diff(nominal) as f64 <= nominal as f64 * jitter);
        }

        #[test]
        fn severity_grows_with_the_queue_and_with_its_growth(
            q_eq in 1..1u64 << 40, w in 0..9u32, queued in 0..1u64 << 41, before in 0..1u64 << 41, more in 0..1u64 << 30,
        ) {
            let config = Qcn { q_eq: Some(Bytes(q_eq)), w, ..Qcn::default() };
            let severity = config.quantise(queued, before);
            prop_assert!(severity <= 63);
            prop_assert!(config.quantise(queued + more, before) >= severity);
            prop_assert!(config.quantise(queued, before + more) <= severity);
        }
    }

    #[test]
    fn jitter_uses_its_whole_range() {
        let mut random = random();
        let drawn: Vec<u64> = (0..2000).map(|_| jittered(100, 0.15, &mut random)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&85), Some(&115)));
    }

    #[test]
    fn a_preset_gives_way_to_what_is_written() {
        let standard = Qcn { preset: QcnPreset::Ieee8021Qau, ..Qcn::default() };
        assert_eq!([Qcn::default().set_point(), standard.set_point()], [Bytes(20_000), Bytes(26_000)]);
        assert_eq!(Qcn { q_eq: Some(Bytes(5)), ..standard }.set_point(), Bytes(5));
    }

    #[test]
    fn senseless_values_name_their_field() {
        let field = |config: Qcn| config.check().unwrap_err().field;
        assert_eq!(field(Qcn { q_eq: Some(Bytes(0)), ..Qcn::default() }), "q_eq");
        assert_eq!(field(Qcn { sample_base: Bytes(0), ..Qcn::default() }), "sample_base");
        assert_eq!(field(Qcn { jitter: 1.0, ..Qcn::default() }), "jitter");
        assert_eq!(field(Qcn { jitter: f64::NAN, ..Qcn::default() }), "jitter");
        assert_eq!(field(Qcn { cnm_size: Bytes(65_536), ..Qcn::default() }), "cnm_size");
        assert_eq!(Qcn::default().check(), Ok(()));
    }
}
