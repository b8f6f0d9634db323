//! Gap stretching: a few of a flow's pauses are made long enough for the next packet to be taken for a new flowlet.
//!
//! RDMA hosts pace in hardware and leave hardly any gap that a flowlet switch could use. HF²T holds a packet back whose gap is among
//! the longest of its host anyway, until the gap is as long as the flowlet threshold:
//!
//! ```text
//!   gap < T α(x)              leaves at once
//!   T α(x) ≤ gap < F_th       waits until F_th after the packet before; x ← 0
//!   F_th ≤ gap                leaves at once: a gap by itself
//! ```
//!
//! T is a percentile of the gaps seen in a training phase, x counts the packets since the last gap, and α makes early gaps rarer, so that flowlets
//! do not become too short, and late ones more frequent, so that they do not become too long.

use netloom_units::{Histogram, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Facts, ShapingConfig, Spacing};
/// HF²T (APNet'24): stretches a flow's longer gaps to the flowlet threshold, so that flowlets begin where an RDMA host would leave no such
/// gaps. Only the flow itself waits. The defaults that the paper leaves open (`scope`, the training's length, `margin`, `natural_gaps`) are
/// ours.
///
/// Works with every transport, with flowlets at switches or at the NIC. `measure.gaps` counts a flow's gaps at its NIC,
/// `measure.switch_gaps` at switches; `flowlets` and `stretched` in `flows.parquet` show the effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hf2t {
    /// The smallest gap that begins a new flowlet, F_th; absent: one picosecond more than `routing.granularity.gap`, at which the path is kept.
    pub flowlet: Option<Time>,
    /// Added to a stretched gap, against jitter on the first hop.
    pub margin: Time,
    /// T is this percentile of the gaps. The paper recommends 97.5 to 99.
    pub percentile: f64,
    /// T itself; takes the place of the training.
    pub threshold: Option<Time>,
    /// Whose gaps T comes from: `host` or `flow`.
    pub scope: Scope,
    /// Training ends after this many gaps; before that nothing is stretched.
    pub training_gaps: u64,
    /// Training ends after this time at the latest, counted from the first gap.
    pub training_time: Time,
    /// Whether T is multiplied by α(x): `short_run` / x up to this many packets since the last gap, `long_run` / x from this many on, 1 between. Off: the
    /// paper's "No Dynamic T".
    pub dynamic: bool,
    /// Packets since the last gap below which gaps are stretched more rarely (the paper's min_thr).
    pub short_run: u32,
    /// Packets since the last gap above which gaps are stretched more often (the paper's max_thr).
    pub long_run: u32,
    /// Whether gaps that are long enough by themselves end a run of packets, too. The paper's text continues to count across them.
    pub natural_gaps: bool,
}

/// Whose gaps a threshold comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All flows of a host learn together.
    #[default]
    Host,
    /// Each flow learns for itself.
    Flow,
}

impl Default for Hf2t {
    fn default() -> Self {
        Hf2t {
            flowlet: None,
            margin: Time::ZERO,
            percentile: 99.0,
            threshold: None,
            scope: Scope::Host,
            training_gaps: 100_000,
            training_time: Time::from_ms(10),
            dynamic: true,
            short_run: 20,
            long_run: 80,
            natural_gaps: true,
        }
    }
}

impl Hf2t {
    /// F_th. Known once the configuration [fits](Self::fit) its routing.
    fn flowlet(&self) -> Time {
        self.flowlet.unwrap_or(Time::MAX)
    }

    /// α after this many packets since the last gap, as a fraction; `None`: infinite.
    fn alpha(&self, run: u32) -> Option<(u32, u32)> {
        match run {
            _ if !self.dynamic => Some((1, 1)),
            0 => None,
            run if run <= self.short_run => Some((self.short_run, run)),
            run if run >= self.long_run => Some((self.long_run, run)),
            _ => Some((1, 1)),
        }
    }

    /// Whether a gap is to be stretched if T is this.
    fn stretches(&self, threshold: Time, gap: Time, run: u32) -> bool {
        let is_long = self.alpha(run).is_some_and(|(above, below)| {
            u128::from(threshold.0) * u128::from(above) <= u128::from(gap.0) * u128::from(below)
        });
        is_long && gap < self.flowlet()
    }
}

impl ShapingConfig for Hf2t {
    #[inline(always)]
    fn facts(&self) -> Facts<'_> {
        Facts { spacing: Spacing::None, stretching: Some(self) }
    }

    fn check(&self) -> Result<(), Invalid> {
        let percentile = self.percentile;
        let is_share = percentile > 0.0 && percentile < 100.0;
        Invalid::unless(is_share, "percentile", "a number above 0 and below 100", percentile)?;
        Invalid::at_least("training_gaps", self.training_gaps, 1)?;
        Invalid::at_least("training_time", self.training_time, Time(1))?;
        Invalid::at_least("short_run", self.short_run, 1)?;
        Invalid::at_least("long_run", self.long_run, self.short_run)?;
        Invalid::at_least("threshold", self.threshold.unwrap_or(Time(1)), Time(1))?;
        match (self.threshold, self.flowlet) {
            (Some(threshold), Some(flowlet)) => {
                let expected = format!("less than the flowlet threshold of {flowlet}");
                Invalid::unless(threshold < flowlet, "threshold", expected, threshold)
            }
            _ => Ok(()),
        }
    }

    /// A threshold that is absent is that of routing.
    fn fit(&mut self, gap: Option<Time>) -> Result<(), Invalid> {
        let least = gap.map(|gap| gap + Time(1));
        match (self.flowlet, least) {
            (None, None) => {
                let expected = "a time, as routing has no flowlets to take it from";
                return Err(Invalid::new("flowlet", expected, "none"));
            }
            (Some(flowlet), Some(least)) => {
                let expected = format!("more than routing.granularity.gap = {}", least - Time(1));
                Invalid::unless(flowlet >= least, "flowlet", expected, flowlet)?;
            }
            (None, least) => self.flowlet = least,
            (Some(_), None) => {}
        }
        self.check()
    }
}

/// What a host, or a flow, knows of its gaps.
#[derive(Clone, Debug)]
pub struct Training {
    threshold: Option<Time>,
    gaps: Histogram<4>,
    since: Option<Time>,
}

impl Training {
    /// Nothing is known yet, unless the threshold is given.
    pub fn new(config: &Hf2t) -> Self {
        Training { threshold: config.threshold, gaps: Histogram::default(), since: None }
    }

    /// T, once it is known.
    pub fn threshold(&self) -> Option<Time> {
        self.threshold
    }

    /// A packet left so long after the one before.
    fn learn(&mut self, config: &Hf2t, gap: Time, now: Time) {
        if self.threshold.is_some() {
            return;
        }
        let since = *self.since.get_or_insert(now);
        self.gaps.add(gap.0);
        if self.gaps.total() >= config.training_gaps || now - since >= config.training_time {
            self.threshold = self.gaps.bound(config.percentile / 100.0).map(Time);
            self.gaps = Histogram::default();
        }
    }
}

/// What HF²T remembers of one flow.
#[derive(Clone, Debug)]
pub struct Stretcher {
    /// Packets since the last gap, the paper's x.
    run: u32,
    /// The next packet leaves then, not before.
    held: Option<Time>,
    /// What the flow has learnt for itself.
    own: Option<Box<Training>>,
    /// Gaps that were stretched.
    pub stretched: u32,
}

impl Stretcher {
    /// A flow that has sent nothing.
    pub fn new(config: &Hf2t) -> Self {
        let own = (config.scope == Scope::Flow).then(|| Box::new(Training::new(config)));
        Stretcher { run: 0, held: None, own, stretched: 0 }
    }

    /// The next packet could leave at `now`, the one before left at `last`. Returns when it shall leave.
    pub fn leaves_at(&mut self, config: &Hf2t, host: &Training, last: Time, now: Time) -> Time {
        if let Some(held) = self.held {
            return held;
        }
        let threshold = self.own.as_deref().unwrap_or(host).threshold();
        let stretch = threshold.is_some_and(|threshold| config.stretches(threshold, now - last, self.run));
        if !stretch {
            return now;
        }
        let until = last + config.flowlet() + config.margin;
        self.held = Some(until);
        self.run = 0;
        self.stretched += 1;
        until
    }

    /// A packet leaves at `now`, so long after the one before; the first one after nothing.
    pub fn on_sent(&mut self, config: &Hf2t, host: &mut Training, gap: Option<Time>, now: Time) {
        let was_held = self.held.take().is_some();
        if let Some(gap) = gap {
            self.own.as_deref_mut().unwrap_or(host).learn(config, gap, now);
            if config.natural_gaps && !was_held && gap >= config.flowlet() {
                self.run = 0;
            }
        }
        self.run = self.run.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    fn config() -> Hf2t {
        Hf2t { flowlet: Some(Time::from_us(100)), threshold: Some(Time::from_us(1)), ..Hf2t::default() }
    }

    /// Lets a flow send packets so long after each other if nobody holds them; returns the gaps that became of it.
    fn send(config: &Hf2t, gaps: impl IntoIterator<Item = Time>) -> (Vec<Time>, Stretcher) {
        let (mut host, mut flow) = (Training::new(config), Stretcher::new(config));
        let mut last = Time::ZERO;
        flow.on_sent(config, &mut host, None, last);
        let gaps = gaps.into_iter().map(|gap| {
            let mut now = last + gap;
            loop {
                let at = flow.leaves_at(config, &host, last, now);
                if at <= now {
                    break;
                }
                now = at;
            }
            let gap = now - last;
            flow.on_sent(config, &mut host, Some(gap), now);
            last = now;
            gap
        });
        (gaps.collect(), flow)
    }

    #[test]
    fn alpha_is_that_of_the_paper() {
        let config = config();
        let alpha = [1, 19, 20, 21, 79, 80, 81, 200].map(|run| config.alpha(run).unwrap());
        let value = alpha.map(|(above, below)| f64::from(above) / f64::from(below));
        assert_eq!(value, [20.0, 20.0 / 19.0, 1.0, 1.0, 1.0, 1.0, 80.0 / 81.0, 0.4]);
        assert_eq!(config.alpha(0), None);
        let fixed = Hf2t { dynamic: false, ..config };
        assert_eq!([0, 1, 20, 200].map(|run| fixed.alpha(run)), [Some((1, 1)); 4]);
    }

    #[test]
    fn the_threshold_falls_with_every_packet_to_the_picosecond() {
        let config = config();
        let least = |run: u32| (1..).map(Time).find(|&gap| config.stretches(Time(1_000), gap, run)).unwrap();
        let expected = [20_000, 1_053, 1_000, 1_000, 988, 400].map(Time);
        assert_eq!([1, 19, 20, 80, 81, 200].map(least), expected);
        assert!(!config.stretches(Time(1_000), Time::from_us(50), 0), "the first gap is never stretched");
    }

    #[test]
    fn a_gap_is_stretched_to_the_threshold_of_flowlets_and_no_further() {
        let us = Time::from_us;
        let short = std::iter::repeat_n(Time::from_ns(80), 25);
        let (gaps, flow) = send(&config(), short.chain([us(2), us(2), us(99), us(100), us(300)]));
        assert_eq!(gaps[..25], [Time::from_ns(80); 25]);
        // After 26 packets 2 us are long; after one they are not (α = 20), nor are those that are long enough by themselves.
        assert_eq!(gaps[25..], [us(100), us(2), us(100), us(100), us(300)]);
        assert_eq!(flow.stretched, 2);
        let margin = Hf2t { margin: us(7), ..config() };
        let (gaps, _) = send(&margin, std::iter::repeat_n(us(2), 25));
        assert_eq!(gaps.iter().filter(|&&gap| gap == us(107)).count(), 2);
    }

    #[test]
    fn without_dynamic_thresholds_every_long_gap_is_stretched() {
        let fixed = Hf2t { dynamic: false, ..config() };
        let (gaps, flow) = send(&fixed, [1, 2, 3].map(Time::from_us));
        assert_eq!((gaps, flow.stretched), (vec![Time::from_us(100); 3], 3));
        assert_eq!(send(&fixed, [Time(US - 1)]).1.stretched, 0);
    }

    #[test]
    fn natural_gaps_end_a_run_unless_the_paper_is_taken_by_its_word() {
        let run = |natural_gaps| {
            let config = Hf2t { natural_gaps, ..config() };
            let short = std::iter::repeat_n(Time::from_ns(80), 30);
            send(&config, short.chain([Time::from_us(150), Time::from_us(2)])).1
        };
        assert_eq!((run(true).run, run(true).stretched), (2, 0));
        assert_eq!(run(false).stretched, 1);
    }

    #[test]
    fn training_ends_by_gaps_or_by_time_and_leaves_one_gap_in_a_hundred_above() {
        let config = Hf2t { threshold: None, training_gaps: 1000, ..config() };
        let mut training = Training::new(&config);
        for gap in 1..1000 {
            training.learn(&config, Time(gap * 1000), Time(gap));
            assert_eq!(training.threshold(), None);
        }
        training.learn(&config, Time(1_000_000), Time(1000));
        let threshold = training.threshold().unwrap();
        assert!((Time(990_000)..=Time(1_048_576)).contains(&threshold), "{threshold}");
        let mut early = Training::new(&config);
        early.learn(&config, Time(500), Time::from_us(5));
        early.learn(&config, Time(700), Time::from_us(5) + config.training_time);
        assert!(early.threshold().is_some_and(|threshold| threshold > Time(700)));
    }

    #[test]
    fn flows_may_learn_for_themselves() {
        let config = Hf2t { threshold: None, training_gaps: 10, scope: Scope::Flow, ..config() };
        let (mut host, mut flow) = (Training::new(&config), Stretcher::new(&config));
        for packet in 0..=10 {
            let gap = (packet > 0).then_some(Time::from_ns(80));
            flow.on_sent(&config, &mut host, gap, Time(packet));
        }
        assert_eq!(host.threshold(), None);
        assert!(flow.own.is_some_and(|own| own.threshold().is_some()));
    }

    #[test]
    fn thresholds_that_make_no_sense_name_their_field() {
        let field = |config: Hf2t| config.check().unwrap_err().field;
        assert_eq!(field(Hf2t { percentile: 100.0, ..config() }), "percentile");
        assert_eq!(field(Hf2t { short_run: 90, ..config() }), "long_run");
        assert_eq!(field(Hf2t { training_gaps: 0, ..config() }), "training_gaps");
        // T above the flowlets' threshold would never stretch anything.
        assert_eq!(field(Hf2t { threshold: Some(Time::from_us(100)), ..config() }), "threshold");
        let fit = |flowlet, gap| {
            let mut config = Hf2t { flowlet, ..config() };
            config.fit(gap).map(|()| config.flowlet)
        };
        let us = Time::from_us;
        assert_eq!(fit(None, Some(us(50))), Ok(Some(us(50) + Time(1))));
        assert_eq!(fit(Some(us(60)), None), Ok(Some(us(60))));
        assert_eq!(fit(None, None).unwrap_err().field, "flowlet");
        // A gap of exactly the routing's keeps the path.
        assert_eq!(fit(Some(us(50)), Some(us(50))).unwrap_err().field, "flowlet");
    }
}
