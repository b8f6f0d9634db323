//! Adaptive routing by local queues.

use netloom_topology::PortId;
use netloom_units::{Bytes, Invalid, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Selector;
use super::estimator::Estimator;
use super::kind::{
    Choice, Digits, Facts, PathSet, Places, PortSelector, Query, SelectorConfig, Signals, SwitchContext,
};
use super::random::below;
use crate::header::View;

/// The candidate port with the fewest queued bytes (all classes, the packet being sent included), ties at random: adaptive
/// up-routing as in fat trees of InfiniBand and Slingshot, and Flowcut's switch variant. Or, with `by`, the one with the lowest recent use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeastLoaded {
    /// What counts as load: the bytes in the `queue`, the port's recent `rate` as a share of its link's, or `both`: the queue, and
    /// among equal queues the rate.
    pub by: By,
    /// How ports measure that rate.
    pub estimator: Estimator,
    /// Queues are compared by levels: those shorter than the first of these are equal, those at least as long as the first and shorter than the
    /// second are equal, and so on.
    /// csg-htsim's `ecmp_ar` has levels of 5, 10 and 20% of a queue (`BaseQueue::quantized_queuesize` in `sim/queue.cpp`). Empty: to the byte.
    pub levels: Vec<Bytes>,
    /// For this time after a queue was read its length is not read again, and the old value counts. csg-htsim's `ecmp_ar` has 100 ns.
    pub refresh: Time,
}

/// What counts as load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Bytes that wait or are being sent.
    #[default]
    Queue,
    /// The port's rate estimate.
    Rate,
    /// The queue, then the rate.
    Both,
}

impl Selector {
    /// The queues and rates by which it chooses, if it takes the least loaded port.
    pub fn least_loaded(&self) -> Option<&LeastLoaded> {
        match self {
            Selector::LeastLoaded(least) => Some(least),
            _ => None,
        }
    }
}

/// The least loaded candidate.
#[inline(never)]
fn pick(by: By, ports: &[PortId], view: &mut impl View, random: &mut impl Rng) -> usize {
    match by {
        By::Queue => least(ports, |port| view.load(port), random),
        By::Rate => least(ports, |port| view.utilisation(port), random),
        By::Both => least(ports, |port| (view.load(port), view.utilisation(port)), random),
    }
}

/// The candidate with the least load.
#[inline(always)]
fn least<L: Ord>(ports: &[PortId], mut load: impl FnMut(PortId) -> L, random: &mut impl Rng) -> usize {
    // Starting at a random place and keeping the first minimum would favour ports behind loaded ones, so ties are
    // drawn properly: the n-th equal candidate replaces the choice with probability 1/n.
    let (mut best, mut least, mut ties) = (0, load(ports[0]), 1);
    for (place, &port) in ports.iter().enumerate().skip(1) {
        let load = load(port);
        if load < least {
            (best, least, ties) = (place, load, 1);
        } else if load == least {
            ties += 1;
            if below(ties, random) == 0 {
                best = place;
            }
        }
    }
    best
}

/// How ports are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    by: By,
    /// Only where queues are not looked at anew each time, and to the byte.
    coarse: Option<Coarse>,
}

/// Queues by levels, as they were a while ago.
#[derive(Clone, Debug)]
struct Coarse {
    levels: Box<[u64]>,
    refresh: Time,
    /// By port, the level and when it was looked at.
    seen: Vec<Option<(Time, u64)>>,
}

/// What a switch knows of its ports through such looks.
struct Levels<'a, V> {
    coarse: &'a mut Coarse,
    view: &'a mut V,
    now: Time,
}

impl<V: View> View for Levels<'_, V> {
    fn now(&self) -> Time {
        self.now
    }

    fn load(&mut self, port: PortId) -> u64 {
        let Levels { coarse: Coarse { levels, refresh, seen }, view, now } = self;
        let place = usize::from(port);
        if seen.len() <= place {
            seen.resize(place + 1, None);
        }
        match seen[place] {
            Some((at, level)) if *now <= at + *refresh && *refresh > Time::ZERO => level,
            _ => {
                let bytes = view.load(port);
                let below = |levels: &[u64]| levels.partition_point(|&level| level <= bytes) as u64;
                let level = if levels.is_empty() { bytes } else { below(levels) };
                seen[place] = Some((*now, level));
                level
            }
        }
    }

    fn utilisation(&mut self, port: PortId) -> u64 {
        self.view.utilisation(port)
    }

    fn rate(&self, port: PortId) -> u64 {
        self.view.rate(port)
    }
}

impl SelectorConfig for LeastLoaded {
    type State = Looks;

    fn state(&self, _: SwitchContext) -> Looks {
        let is_coarse = !self.levels.is_empty() || self.refresh > Time::ZERO;
        let levels = self.levels.iter().map(|level| level.0).collect();
        let coarse = is_coarse.then_some(Coarse { levels, refresh: self.refresh, seen: Vec::new() });
        Looks { by: self.by, coarse }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Adaptive,
            decides_control: true,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals { rates: (self.by != By::Queue).then_some(&self.estimator), ..Signals::NONE },
            paths: PathSet::Minimal,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let rises =
            self.levels.windows(2).all(|two| two[0] < two[1]) && self.levels.first() != Some(&Bytes(0));
        Invalid::unless(
            rises,
            "levels",
            "sizes above 0, each above the one before",
            format!("{:?}", self.levels),
        )?;
        let has_queues = self.by != By::Rate;
        let (levels, refresh) = (self.levels.is_empty(), self.refresh == Time::ZERO);
        let expected = "nothing with by = \"rate\", which looks at no queues";
        Invalid::unless(has_queues || levels, "levels", expected, "a value")?;
        Invalid::unless(has_queues || refresh, "refresh", expected, self.refresh)?;
        self.estimator.check()
    }
}

impl PortSelector for Looks {
    #[inline]
    fn pick(&mut self, query: Query<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
        let ports = query.candidates.ports;
        match &mut self.coarse {
            None => pick(self.by, ports, view, random),
            Some(coarse) => pick(self.by, ports, &mut Levels { coarse, view, now: query.now }, random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Loads;

    #[test]
    fn ties_are_uniform_and_loaded_ports_avoided() {
        let mut random = rand_pcg::Pcg64Mcg::new(1);
        let mut hits = [0u32; 5];
        for _ in 0..30_000 {
            hits[pick(By::Queue, &[0, 1, 2, 3, 4], &mut Loads(|port| u64::from(port % 2)), &mut random)] += 1;
        }
        assert_eq!((hits[1], hits[3]), (0, 0));
        for port in [0, 2, 4] {
            assert!((f64::from(hits[port]) - 10_000.0).abs() < 6.0 * 82.0, "{hits:?}");
        }
    }

    /// Ports of which the queue and the rate are known.
    struct Ports([(u64, u64); 4]);

    impl View for Ports {
        fn now(&self) -> Time {
            Time::ZERO
        }

        fn load(&mut self, port: PortId) -> u64 {
            self.0[usize::from(port)].0
        }

        fn utilisation(&mut self, port: PortId) -> u64 {
            self.0[usize::from(port)].1
        }

        fn rate(&self, _: PortId) -> u64 {
            25
        }
    }

    #[test]
    fn load_is_the_queue_or_the_rate_or_the_rate_among_equal_queues() {
        let mut random = rand_pcg::Pcg64Mcg::new(1);
        let mut ports = Ports([(10, 3), (0, 9), (500, 1), (0, 8)]);
        let mut choices =
            |by| (0..50).map(|_| pick(by, &[0, 1, 2, 3], &mut ports, &mut random)).collect::<Vec<_>>();
        assert!(choices(By::Queue).iter().all(|place| [1, 3].contains(place)));
        assert!(choices(By::Rate).iter().all(|&place| place == 2));
        assert!(choices(By::Both).iter().all(|&place| place == 3));
    }

    #[test]
    fn queues_of_a_level_are_alike_and_count_as_they_were_when_they_were_looked_at() {
        let levels: Vec<Bytes> = [3600, 7200, 14_400].map(Bytes).to_vec();
        let config = LeastLoaded { levels, refresh: Time(100), ..LeastLoaded::default() };
        let mut coarse = config.state(SwitchContext { stride: 1 }).coarse.unwrap();
        let mut loads = [0u64; 4];
        let level = |coarse: &mut Coarse, loads: [u64; 4], port: u16, now: u64| {
            Levels { coarse, view: &mut Loads(|port| loads[usize::from(port)]), now: Time(now) }.load(port)
        };
        for (bytes, of) in
            [(0, 0), (3599, 0), (3600, 1), (7199, 1), (7200, 2), (14_399, 2), (14_400, 3), (99_999, 3)]
        {
            loads[0] = bytes;
            coarse.seen.clear();
            assert_eq!(level(&mut coarse, loads, 0, 5), of, "{bytes}");
        }
        loads = [0, 20_000, 0, 0];
        assert_eq!((level(&mut coarse, loads, 1, 500), level(&mut coarse, loads, 2, 520)), (3, 0));
        loads = [0, 0, 20_000, 0];
        assert_eq!(
            (level(&mut coarse, loads, 1, 600), level(&mut coarse, loads, 2, 600)),
            (3, 0),
            "as before"
        );
        assert_eq!((level(&mut coarse, loads, 1, 601), level(&mut coarse, loads, 2, 601)), (0, 0));
        assert_eq!(level(&mut coarse, loads, 2, 621), 3);
    }

    #[test]
    fn all_but_queues_is_seen_as_it_is() {
        let config = LeastLoaded { refresh: Time(100), ..LeastLoaded::default() };
        let mut coarse = config.state(SwitchContext { stride: 1 }).coarse.unwrap();
        let mut ports = Ports([(10, 3), (0, 9), (500, 1), (0, 8)]);
        let mut levels = Levels { coarse: &mut coarse, view: &mut ports, now: Time(700) };
        assert_eq!(
            (levels.now(), levels.load(2), levels.utilisation(1), levels.rate(1)),
            (Time(700), 500, 9, 25)
        );
    }

    #[test]
    fn levels_without_meaning_are_refused_by_field() {
        let refusal = |config: LeastLoaded| config.check().unwrap_err().field;
        let levels = |levels: &[u64]| levels.iter().copied().map(Bytes).collect();
        assert_eq!(refusal(LeastLoaded { levels: levels(&[5, 5]), ..LeastLoaded::default() }), "levels");
        assert_eq!(refusal(LeastLoaded { levels: levels(&[0, 5]), ..LeastLoaded::default() }), "levels");
        let rate = LeastLoaded { by: By::Rate, ..LeastLoaded::default() };
        assert_eq!(refusal(LeastLoaded { levels: levels(&[5]), ..rate.clone() }), "levels");
        assert_eq!(refusal(LeastLoaded { refresh: Time(5), ..rate }), "refresh");
    }
}
