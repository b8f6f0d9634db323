//! What a sender may do: between what a flow has to send and its NIC stands a gate.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Rate, Time};

/// Lets the packets of one flow out as far as its congestion control allows:
///
/// ```text
///   window    that many bytes on the wire may be unacknowledged at once
///   credit    that many packets more may leave; the receiver grants them one by one
///   rate      that many bits per second leave; what left ahead of that is a debt that time pays, or else keeps a distance that is fixed as it leaves
///   spacing   nothing leaves before an instant, a part of a round trip after the packet before, say
/// ```
///
/// Several may hold at once; what a congestion control never sets limits nothing and costs a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// `u64::MAX`: as much as one likes.
    window: u64,
    /// Packets that may leave. `u32::MAX`: as many as one likes.
    credit: u32,
    /// Earliest departure of the next packet.
    opens: Time,
    limit: Option<Box<Limit>>,
}

impl Recur for Gate {
    fn recur(&mut self, walk: &mut Walk) {
        let Gate { window, credit, opens, limit } = self;
        walk.exact(*window);
        walk.exact(*credit);
        walk.since(opens);
        match limit.as_deref_mut() {
            None => walk.exact(0u32),
            // What has been sent ahead is a number of bits, which comes back only where the rate divides evenly: then it does.
            Some(Limit::Paid(RateLimit { rate, debt, settled, ready })) => {
                walk.exact(*rate);
                walk.exact(*debt);
                walk.time(settled);
                walk.time(ready);
            }
            Some(Limit::Fixed(rate)) => walk.exact(rate.0),
        }
    }
}

/// How a rate spaces packets.
#[derive(Clone, Debug)]
enum Limit {
    /// What left ahead of the rate is a debt.
    Paid(RateLimit),
    /// The distance after a packet is fixed as it leaves.
    Fixed(Rate),
}

impl Gate {
    /// A gate that lets everything out from `now` on.
    pub(crate) fn new(now: Time) -> Self {
        Gate { window: u64::MAX, credit: u32::MAX, opens: now, limit: None }
    }

    /// From now on that many bytes on the wire may be unacknowledged.
    #[inline]
    pub(crate) fn set_window(&mut self, bytes: u64) {
        self.window = bytes;
    }

    /// Bytes on the wire that may be unacknowledged.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// From now on only that many packets more may leave.
    pub(crate) fn set_credit(&mut self, packets: u32) {
        self.credit = packets.min(u32::MAX - 1);
    }

    /// Packets that may leave.
    pub(crate) fn credit(&self) -> u32 {
        self.credit
    }

    /// More packets may leave.
    #[inline]
    pub(crate) fn grant(&mut self, packets: u32) {
        if self.credit != u32::MAX {
            self.credit = self.credit.saturating_add(packets).min(u32::MAX - 1);
        }
    }

    /// A packet leaves that needs credit, or that leaves whatever the gate says.
    pub(crate) fn spend(&mut self) {
        self.credit = self.credit.saturating_sub(1);
    }

    /// The rate at which packets leave, if there is one.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.limit.as_deref().map(|limit| match limit {
            Limit::Paid(limit) => limit.rate(),
            Limit::Fixed(rate) => *rate,
        })
    }

    /// From now on packets leave at this rate, which must not be zero.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate) {
        match &mut **self.limit.get_or_insert_with(|| Box::new(Limit::Paid(RateLimit::new(rate)))) {
            Limit::Paid(limit) => {
                limit.set_rate(now, rate);
                self.opens = limit.ready_at();
            }
            Limit::Fixed(current) => *current = rate,
        }
    }

    /// From now on packets leave at this rate, which must not be zero, and what [`set_rate`](Self::set_rate) says later acts on packets that leave
    /// after that.
    pub(crate) fn space_by_rate(&mut self, rate: Rate) {
        self.limit = Some(Box::new(Limit::Fixed(rate)));
    }

    /// Whether one more packet of this size may join those in flight, each counted as that large. A window that holds less than a packet lets a
    /// single one be in flight, now and then.
    #[inline]
    pub(crate) fn admits(&self, in_flight: u32, packet: u64) -> bool {
        self.credit > 0 && u64::from(in_flight) * packet + packet <= self.window.max(packet)
    }

    /// From when on the next packet may leave, if the window admits it.
    #[inline]
    pub(crate) fn opens_at(&self) -> Time {
        self.opens
    }

    /// A packet of that many bytes on the wire leaves; what does not limit the rate need not call it.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64) {
        match self.limit.as_deref_mut() {
            Some(Limit::Paid(limit)) => {
                limit.on_sent(now, bytes);
                self.opens = limit.ready_at();
            }
            Some(Limit::Fixed(rate)) => {
                let nanoseconds = bytes.saturating_mul(8_000_000_000) / rate.0;
                self.opens = now.saturating_add(Time(nanoseconds.saturating_mul(1000)));
            }
            None => {}
        }
    }

    /// The packet after the one that leaves now follows no sooner than `gap` later.
    pub(crate) fn space(&mut self, now: Time, gap: Time) {
        self.opens = self.opens.max(now).saturating_add(gap);
    }
}

/// A debt of one bit: one bit per second pays one unit per picosecond.
const BIT: u64 = 1_000_000_000_000;

/// A rate in whole bits per second, kept exactly however often it changes: each packet is owed until the rates since have paid for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    rate: u64,
    /// What has been sent ahead of the rate: bits, in units of 10⁻¹² bit.
    debt: u64,
    /// When the debt was that.
    settled: Time,
    /// When it will have been paid at the present rate.
    ready: Time,
}

impl RateLimit {
    /// A rate, which must not be zero, and no debt.
    pub(crate) fn new(rate: Rate) -> Self {
        RateLimit { rate: rate.0, debt: 0, settled: Time::ZERO, ready: Time::ZERO }
    }

    /// The present rate.
    pub(crate) fn rate(&self) -> Rate {
        Rate(self.rate)
    }

    /// The earliest instant for the next packet.
    #[inline]
    pub(crate) fn ready_at(&self) -> Time {
        self.ready
    }

    /// The rate changes.
    pub(crate) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.settle(now);
        self.rate = rate.0;
        self.update();
    }

    /// A packet of that many bytes leaves; not before [`ready_at`](Self::ready_at).
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64) {
        self.settle(now);
        self.debt = self.debt.saturating_add(bytes.saturating_mul(8 * BIT));
        self.update();
    }

    /// Pays at the rate that held until now.
    fn settle(&mut self, now: Time) {
        let elapsed = now.saturating_sub(self.settled).0;
        self.debt = self.debt.saturating_sub(self.rate.saturating_mul(elapsed));
        self.settled = self.settled.max(now);
    }

    /// The debt or the rate has changed.
    fn update(&mut self) {
        self.ready = Time(self.settled.0.saturating_add(self.debt.div_ceil(self.rate)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_admits_whole_packets_and_at_least_one() {
        let mut gate = Gate::new(Time::ZERO);
        assert!(gate.admits(u32::MAX, 1000));
        gate.set_window(2999);
        assert_eq!([0, 1, 2].map(|in_flight| gate.admits(in_flight, 1000)), [true, true, false]);
        gate.set_window(10);
        assert_eq!([0, 1].map(|in_flight| gate.admits(in_flight, 1000)), [true, false]);
    }

    #[test]
    fn what_waits_longer_than_there_is_time_never_leaves() {
        let mut gate = Gate::new(Time(7));
        gate.space(Time(8), Time::MAX);
        assert_eq!(gate.opens_at(), Time::MAX);
    }

    #[test]
    fn credit_is_spent_packet_by_packet() {
        let mut gate = Gate::new(Time::ZERO);
        gate.grant(1);
        assert_eq!(gate.credit(), u32::MAX);
        gate.set_credit(1);
        gate.spend();
        assert!(!gate.admits(0, 1000));
        // The most that can be said is not "as many as one likes", which no packet uses up.
        let mut most = Gate::new(Time::ZERO);
        most.set_credit(u32::MAX);
        most.grant(5);
        most.spend();
        assert_eq!(most.credit(), u32::MAX - 2);
        // What leaves all the same leaves no debt.
        gate.spend();
        gate.grant(2);
        assert!(gate.admits(5, 1000));
        assert_eq!(gate.credit(), 2);
    }

    #[test]
    fn packets_at_a_rate_leave_size_over_rate_apart() {
        let mut gate = Gate::new(Time(7));
        gate.set_rate(Time(7), Rate(8_000_000_000));
        assert_eq!(gate.opens_at(), Time(7));
        for _ in 0..10 {
            let now = gate.opens_at();
            gate.on_sent(now, 1250);
            assert_eq!(gate.opens_at() - now, Time::from_ns(1250));
        }
    }

    #[test]
    fn a_packet_that_leaves_late_moves_all_that_follow() {
        let mut gate = Gate::new(Time::ZERO);
        gate.set_rate(Time::ZERO, Rate(8_000_000_000));
        gate.on_sent(Time::ZERO, 1000);
        gate.on_sent(Time::from_us(5), 1000);
        assert_eq!(gate.opens_at(), Time::from_us(6));
    }

    #[test]
    fn what_is_owed_is_paid_at_the_rates_that_held() {
        let mut gate = Gate::new(Time::ZERO);
        gate.set_rate(Time::ZERO, Rate(8_000_000_000));
        gate.on_sent(Time::ZERO, 1000);
        // 400 bytes are paid in 400 ns, the other 600 at half the rate.
        gate.set_rate(Time::from_ns(400), Rate(4_000_000_000));
        assert_eq!(gate.opens_at(), Time::from_ns(400 + 1200));
        gate.set_rate(Time::from_ns(1000), Rate(80_000_000_000));
        assert_eq!(gate.opens_at(), Time::from_ns(1000 + 30));
    }

    /// 1250 B at 8 Gb/s take 1250 ns, whatever the rate becomes meanwhile; at 3 Gb/s they take 3333 ns and a third.
    #[test]
    fn a_fixed_gap_is_that_of_the_departure_in_whole_nanoseconds() {
        let mut gate = Gate::new(Time::ZERO);
        gate.space_by_rate(Rate(8_000_000_000));
        gate.on_sent(Time::from_ns(100), 1250);
        gate.set_rate(Time::from_ns(200), Rate(3_000_000_000));
        assert_eq!(gate.opens_at(), Time::from_ns(1350));
        gate.on_sent(Time::from_ns(1350), 1250);
        assert_eq!(gate.opens_at(), Time::from_ns(1350 + 3333));
    }

    #[test]
    fn spacing_counts_from_the_departure() {
        let mut gate = Gate::new(Time::ZERO);
        gate.space(Time(100), Time(10));
        gate.space(Time(105), Time(10));
        assert_eq!(gate.opens_at(), Time(120));
    }
}
