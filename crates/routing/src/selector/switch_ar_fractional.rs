//! Switch AR with fractional split ratios: a destination's traffic is divided among its ports.

use netloom_units::{Invalid, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::{FULL_SCALE, PerDestination, Uncongested};
use super::kind::{Facts, PortContext, PortSelector, Query, SelectorConfig, SwitchContext};
use crate::header::{Notice, View};

/// Switch AR with fractional split ratios instead of the binary one. Each usable port has a share of a destination's packets. A
/// notification with feedback F takes the part gain · F/64 of the share of the port it is about and gives it to the other ports in
/// equal parts; over time, shares return to the uncongested choice at the rate of one whole per `recovery`. Packets
/// follow the shares in turn, weighted by their bytes. Our reading of the fractional split ratios that Crisan, Gusat and Minkenberg
/// name as future work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchArFractional {
    /// Part of its share that a port loses at full feedback; more than 0, at most 1.
    pub gain: f64,
    /// Time in which all traffic of a destination is back on the uncongested choice if no notification comes.
    pub recovery: Time,
    /// The choice before any notification: the port of D-mod-k (`d-mod-k`, on trees), the first (`lowest`), or by the header's hash
    /// (`hash`), to which equal shares correspond.
    pub uncongested: Uncongested,
}

impl Default for SwitchArFractional {
    /// Half of the share, as QCN's sources halve their rate; recovery in the time after which Switch AR's marks are forgotten.
    fn default() -> Self {
        SwitchArFractional { gain: 0.5, recovery: Time::from_ms(250), uncongested: Uncongested::DModK }
    }
}

/// A whole in units of shares.
const WHOLE: u64 = 1 << 20;

/// How one destination's packets are divided.
#[derive(Clone, Debug)]
struct Shares {
    ports: Box<[Share]>,
    /// Up to when recovery is accounted for.
    since: Time,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    /// Of the destination's bytes; all shares sum to [`WHOLE`].
    now: u64,
    /// The share without congestion.
    home: u64,
    /// Bytes that the port is behind its share, in units of one byte / [`WHOLE`].
    behind: i64,
}

impl Shares {
    /// The shares of the uncongested choice: all for the port at `home`, equal ones if each flow has its own.
    fn new(ports: usize, home: Option<usize>) -> Self {
        let mut seen = 0;
        let share = |place: usize| match home {
            Some(home) => WHOLE * u64::from(place == home),
            None => part(WHOLE, &mut seen, 1, ports as u64),
        };
        let ports = (0..ports).map(share).map(|home| Share { now: home, home, behind: 0 });
        Shares { ports: ports.collect(), since: Time::ZERO }
    }

    /// Shares as a fraction of one, for tests.
    #[cfg(test)]
    fn fractions(&self) -> Vec<f64> {
        self.ports.iter().map(|share| share.now as f64 / WHOLE as f64).collect()
    }
}

/// The part of `amount` that falls to the next weight, `seen` being the weights before and `total` all of them. The parts are whole
/// numbers and sum to the amount.
fn part(amount: u64, seen: &mut u64, weight: u64, total: u64) -> u64 {
    let before = amount * *seen / total;
    *seen += weight;
    amount * *seen / total - before
}

impl SelectorConfig for SwitchArFractional {
    type State = State;

    fn state(&self, _: SwitchContext) -> State {
        State { config: self.clone(), rows: PerDestination::default() }
    }

    fn facts(&self) -> Facts<'_> {
        self.uncongested.facts()
    }

    fn check(&self) -> Result<(), Invalid> {
        let is_share = self.gain > 0.0 && self.gain <= 1.0;
        Invalid::unless(is_share, "gain", "more than 0 and at most 1", self.gain)?;
        Invalid::at_least("recovery", self.recovery, Time::from_us(2))
    }
}

impl SwitchArFractional {
    /// A notification about the port at `place`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most WHOLE: check bounds the gain by 1"
    )]
    fn add(&self, shares: &mut Shares, place: usize, feedback: u8, now: Time) {
        self.recover(shares, now);
        let gain = (self.gain * WHOLE as f64) as u64;
        let lost = shares.ports[place].now * gain / WHOLE * u64::from(feedback) / FULL_SCALE;
        let (mut seen, others) = (0, shares.ports.len() as u64 - 1);
        for (at, share) in shares.ports.iter_mut().enumerate() {
            match at == place {
                true => share.now -= lost,
                false => share.now += part(lost, &mut seen, 1, others),
            }
        }
    }

    /// The position of the port for a packet of `bytes`: the one furthest behind its share, the first of several. `home` is that of
    /// the packet's uncongested choice.
    #[expect(clippy::cast_possible_wrap, reason = "shares are at most WHOLE, 2²⁰, and packets 65,535 bytes")]
    fn pick(&self, shares: &mut Shares, home: usize, bytes: u32, now: Time) -> usize {
        self.recover(shares, now);
        if shares.ports.iter().all(|share| share.now == share.home) {
            return home;
        }
        let bytes = i64::from(bytes);
        let (mut place, mut most) = (0, i64::MIN);
        for (at, share) in shares.ports.iter_mut().enumerate() {
            share.behind += share.now as i64 * bytes;
            if share.behind > most {
                (place, most) = (at, share.behind);
            }
        }
        shares.ports[place].behind -= WHOLE as i64 * bytes;
        place
    }

    /// Moves shares towards home, by one whole per `recovery`: each port gives in proportion to what it has beyond its share at home, and
    /// takes in proportion to what it lacks.
    fn recover(&self, shares: &mut Shares, now: Time) {
        let per_unit = self.recovery.0 / WHOLE;
        let units = now.saturating_sub(shares.since).0 / per_unit;
        shares.since += Time(units * per_unit);
        let away = shares.ports.iter().map(|share| share.now.saturating_sub(share.home)).sum();
        let moved = units.min(away);
        if moved == 0 {
            return;
        }
        let (mut giving, mut taking) = (0, 0);
        for share in &mut shares.ports {
            let (above, below) = (share.now.saturating_sub(share.home), share.home.saturating_sub(share.now));
            share.now -= part(moved, &mut giving, above, away);
            share.now += part(moved, &mut taking, below, away);
        }
    }
}

/// What one switch has learnt.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: SwitchArFractional,
    rows: PerDestination<Shares>,
}

impl PortSelector for State {
    #[inline]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        let Query { header, home, now, .. } = query;
        let row = self.rows.get_mut(header.dst);
        row.map_or(home, |shares| self.config.pick(shares, home, header.bytes, now))
    }

    fn notice(&mut self, notice: &Notice, context: PortContext) {
        let PortContext { place, ports, home, now } = context;
        let shares = self.rows.get_or_insert_with(notice.destination, || Shares::new(ports, home));
        self.config.add(shares, place, notice.feedback, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_notification_moves_a_part_of_its_ports_share_to_the_others_alike() {
        let config = SwitchArFractional::default();
        let mut shares = Shares::new(4, Some(2));
        config.add(&mut shares, 2, 32, Time::ZERO);
        let expected = [1.0 / 12.0, 1.0 / 12.0, 0.75, 1.0 / 12.0];
        for (share, expected) in shares.fractions().into_iter().zip(expected) {
            assert!((share - expected).abs() < 2.0 / WHOLE as f64, "{:?}", shares.fractions());
        }
        config.add(&mut shares, 3, 63, Time::ZERO);
        assert!(shares.fractions()[3] > 0.04 && shares.fractions()[3] < 0.05);
    }

    #[test]
    fn shares_are_home_again_after_the_recovery_time() {
        let config = SwitchArFractional::default();
        for home in [Some(2), None] {
            let mut shares = Shares::new(3, home);
            let initial = shares.fractions();
            (0..50).for_each(|_| config.add(&mut shares, 2, 63, Time::ZERO));
            assert!(shares.fractions()[2] < 0.001);
            let away = 1.0 - home.map_or(2.0 / 3.0, |_| 0.0);
            config.pick(&mut shares, 2, 1500, Time::from_secs_f64(0.25 * away));
            assert!((shares.fractions()[2] - initial[2]).abs() < 0.001, "{:?}", shares.fractions());
        }
    }

    #[test]
    fn packets_follow_the_shares_by_bytes() {
        let config = SwitchArFractional::default();
        let mut shares = Shares::new(3, Some(0));
        config.add(&mut shares, 0, 60, Time::ZERO);
        config.add(&mut shares, 1, 60, Time::ZERO);
        let mut bytes = [0u64; 3];
        for packet in 0..10_000u32 {
            let size = if packet % 3 == 0 { 9000 } else { 64 };
            bytes[config.pick(&mut shares, 0, size, Time::ZERO)] += u64::from(size);
        }
        let total: u64 = bytes.iter().sum();
        for (sent, share) in bytes.into_iter().zip(shares.fractions()) {
            let wanted = share * total as f64;
            assert!((sent as f64 - wanted).abs() < 3.0 * 9000.0, "{bytes:?} {:?}", shares.fractions());
        }
    }

    proptest! {
        #[test]
        fn shares_always_sum_to_the_whole(
            ports in 2..9usize,
            has_home in any::<bool>(),
            gain in 0.01..1.0f64,
            steps in prop::collection::vec((0..9usize, 1..64u8, 0..20_000u64), 1..60),
        ) {
            let config = SwitchArFractional { gain, ..SwitchArFractional::default() };
            let mut shares = Shares::new(ports, has_home.then_some(ports - 1));
            let mut now = Time::ZERO;
            for (place, feedback, wait) in steps {
                now += Time::from_us(wait);
                config.add(&mut shares, place % ports, feedback, now);
                config.pick(&mut shares, 0, 1500, now);
                prop_assert_eq!(shares.ports.iter().map(|share| share.now).sum::<u64>(), WHOLE);
                prop_assert_eq!(shares.ports.iter().map(|share| share.behind).sum::<i64>(), 0);
            }
        }
    }
}
