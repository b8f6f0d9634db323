//! What routing reads of a packet, what it may ask of the place where it decides, and what it answers.

use netloom_topology::{ChannelId, HostId, PortId};
use netloom_units::Time;

use crate::tag::Tag;

/// A flow, as switches and receivers know it: its source and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
}

impl FlowKey {
    /// Both numbers in one.
    #[inline(always)]
    pub(crate) fn name(self) -> u64 {
        u64::from(self.src) << 32 | u64::from(self.flow)
    }
}

/// A flow as one place knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRef {
    /// Its name.
    pub key: FlowKey,
    /// At its source: where its state is kept. At a switch: on which of its passes there, as its packets may come by more than once.
    pub slot: u32,
}

impl FlowRef {
    /// A flow at a switch by which its packets come once.
    #[inline(always)]
    pub(crate) fn passing(key: FlowKey) -> Self {
        FlowRef { key, slot: 0 }
    }
}

// One multiplication instead of one per part.
impl std::hash::Hash for FlowRef {
    #[inline(always)]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.key.name() ^ u64::from(self.slot).rotate_right(16));
    }
}

/// What kind of packet asks for its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Payload.
    Data,
    /// An ACK or another signal.
    Control,
    /// A congestion notification, from which switches on its way learn.
    Notification,
}

/// What routing reads of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Source host of this packet (of an ACK: the data's receiver).
    pub src: u32,
    /// Destination host of this packet.
    pub dst: u32,
    /// Number of the flow at the data's source.
    pub flow: u32,
    /// What it says of its path.
    pub tag: Tag,
    /// Its size on the wire in bytes.
    pub bytes: u32,
    /// Its payload in bytes; 0 unless it carries data.
    pub payload: u32,
    /// Channels it has crossed, if it carries data: 1 at its first switch.
    pub hops: u16,
    /// What it carries.
    pub carries: Carries,
}

impl Header {
    /// The flow it belongs to.
    #[inline(always)]
    pub fn key(&self) -> FlowKey {
        FlowKey { src: self.src, flow: self.flow }
    }

    /// What a hash sees of it: its two ends, and its flow and tag, the first of both in the lower half.
    #[inline(always)]
    pub fn seen_by_hash(&self) -> [u64; 2] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << u32::BITS;
        [pair(self.src, self.dst), pair(self.flow, self.tag.bits())]
    }

    /// Whether it is a data packet at its first switch.
    #[inline(always)]
    pub fn is_first(&self) -> bool {
        self.hops == 1 && self.carries == Carries::Data
    }
}

/// The ports that a packet may take.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// In ascending order; never none.
    pub ports: &'a [PortId],
    /// Number of this set of ports in the route table: equal sets of one switch have equal numbers.
    pub set: u32,
}

/// What a switch's path selector may read at an instant.
pub trait View {
    /// The instant.
    fn now(&self) -> Time;
    /// Bytes that wait at a port now or are being sent there.
    fn load(&mut self, port: PortId) -> u64;
    /// Bytes that wait at a port now; what is being sent there does not.
    fn waiting(&mut self, port: PortId) -> u64 {
        self.load(port)
    }
    /// Rate of a port's link in bit/s.
    fn rate(&self, port: PortId) -> u64;
    /// How much of its link's rate a port has used lately, in 65,536ths; 0 where it is not estimated.
    fn utilisation(&mut self, _: PortId) -> u64 {
        0
    }
    /// Bytes that a port has sent and for which no credit has come back; 0 where there are no credits.
    fn unreturned(&mut self, _: PortId) -> u64 {
        0
    }
    /// The load of a channel of another switch, as last reported; 0 where there are no reports.
    fn reported(&self, _: ChannelId) -> u64 {
        0
    }
    /// How many flowlets of which flows have begun here, of which nothing has been said before and none has begun lately.
    fn flowlets(&mut self, _: Vec<(FlowKey, u32)>) {}
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The output port.
    pub port: PortId,
    /// The tag that the packet carries on.
    pub tag: Tag,
}

/// How often an adaptive or random scheme decided, and how often the outcome was another than without adaptation: at a switch than the
/// header's hash would have given or, under Switch AR, the uncongested choice; at a NIC than the flow's first path, or where it draws one of numbered
/// paths or layers for a flow that begins, than the first of these. A scheme that never deviates is inert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Decisions among two or more candidates.
    pub taken: u64,
    /// Those whose outcome differs from that.
    pub deviating: u64,
}

impl Decisions {
    /// One more decision.
    #[inline(always)]
    pub(crate) fn count(&mut self, deviates: bool) {
        self.taken += 1;
        self.deviating += u64::from(deviates);
    }

    /// The decisions of both.
    pub(crate) fn add(&mut self, other: Decisions) {
        self.taken += other.taken;
        self.deviating += other.deviating;
    }
}

/// A congestion notification, as the switch that sends it or that it passes sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The destination of the sampled frame: traffic to this host met congestion.
    pub destination: HostId,
    /// Made here: the output port whose queue was sampled. Passing through: the port it came in by.
    pub port: PortId,
    /// Quantised feedback of 802.1Qau, 1 to 63.
    pub feedback: u8,
    /// Whether this switch made it.
    pub is_local: bool,
}

/// The acknowledgement of a data packet by its last switch to those before it (Flowcut Switching, §II-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The packet's flow.
    pub flow: FlowKey,
    /// Channels that the packet had crossed when it came to the switch that is notified.
    pub pass: u32,
    /// When the packet left its host.
    pub sent: Time,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// Its serialisation time so far.
    pub serialisation: Time,
    /// Channels it had crossed.
    pub hops: u32,
    /// Whether its source has enough left to send that draining the flow may be worth it.
    pub has_more: bool,
    /// At the packet's first switch: the delay of the link by which it came there. Absent elsewhere.
    pub access: Option<Time>,
}

/// A switch's signal to the source of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Send no more than your credit until the next signal (XOFF).
    Stop,
    /// Go on (XON).
    GoOn,
    /// Go on, but until everything that you have sent is acknowledged run no further than this ahead of the oldest packet that is not; and
    /// turn, so that the switch sees which packets you send from now on.
    RunAhead(u32),
}

/// How a data packet came to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// By this port.
    pub back: PortId,
    /// It had left its host at this time.
    pub sent: Time,
    /// Its serialisation time on the channels it had crossed.
    pub serialisation: Time,
    /// Its source had turned an odd number of times ([`Signal::RunAhead`]).
    pub turned: bool,
}

/// How full a table was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Most entries at a time.
    pub peak: usize,
    entries: usize,
    since: Time,
    /// Entries × picoseconds until `since`.
    area: u128,
}

impl Occupancy {
    /// From now on there are this many entries.
    pub(crate) fn is(&mut self, entries: usize, now: Time) {
        self.area += self.entries as u128 * u128::from((now - self.since).0);
        (self.entries, self.since, self.peak) = (entries, now, self.peak.max(entries));
    }

    /// Mean number of entries over time, from the beginning until `end`.
    pub fn mean(&self, end: Time) -> f64 {
        let mut until = *self;
        until.is(self.entries, end.max(self.since));
        if until.since == Time::ZERO { 0.0 } else { until.area as f64 / until.since.0 as f64 }
    }
}

/// What a sender should do upon feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Go on.
    Continue,
    /// Stop sending new data ([`crate::NicPathSelector::may_send`]) and call [`crate::NicPathSelector::on_deadline`] at that time.
    PauseUntil(Time),
    /// Send the probes for which [`crate::NicPathSelector::probe`] names paths.
    Probe,
}

/// What a NIC's path selector did with a flow that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Decisions of its NIC. Which path a flow begins on is one where the NIC draws it among numbered paths or layers.
    pub decisions: Decisions,
    /// Drains begun.
    pub drains: u32,
    /// Time spent draining.
    pub drain_time: Time,
}

#[cfg(test)]
mod tests {
    use std::hash::{Hash, Hasher};

    use super::*;

    fn header(hops: u16, carries: Carries) -> Header {
        let tag = Tag::from_bits(0x0d0e_0f10);
        Header {
            src: 0x0102_0304,
            dst: 0x0506_0708,
            flow: 0x090a_0b0c,
            tag,
            bytes: 64,
            payload: 0,
            hops,
            carries,
        }
    }

    #[test]
    fn a_hash_sees_the_four_numbers_source_and_flow_in_the_lower_halves() {
        let seen = header(1, Carries::Data).seen_by_hash();
        assert_eq!(seen, [0x0506_0708_0102_0304, 0x0d0e_0f10_090a_0b0c]);
        assert_eq!(header(1, Carries::Data).key(), FlowKey { src: 0x0102_0304, flow: 0x090a_0b0c });
    }

    #[test]
    fn data_at_its_first_switch_has_crossed_one_channel() {
        let is_first = |hops, carries| header(hops, carries).is_first();
        assert!(is_first(1, Carries::Data));
        assert!(!is_first(0, Carries::Data) && !is_first(2, Carries::Data));
        assert!(!is_first(1, Carries::Control) && !is_first(1, Carries::Notification));
    }

    /// What a hash map makes of it.
    #[derive(Default)]
    struct Written(Vec<u64>);

    impl Hasher for Written {
        fn finish(&self) -> u64 {
            0
        }

        fn write(&mut self, _: &[u8]) {}

        fn write_u64(&mut self, word: u64) {
            self.0.push(word);
        }
    }

    #[test]
    fn a_flow_at_one_of_its_passes_is_one_word() {
        let written = |src, flow, slot| {
            let mut written = Written::default();
            FlowRef { key: FlowKey { src, flow }, slot }.hash(&mut written);
            written.0
        };
        assert_eq!(written(0x0102_0304, 0x0506_0708, 0), [0x0102_0304_0506_0708]);
        // The pass lies over the source's upper half, which is mostly 0, and changes what is there.
        assert_eq!(written(0x0102_0304, 0x0506_0708, 3), [0x0101_0304_0506_0708]);
        assert_eq!(
            FlowRef::passing(FlowKey { src: 4, flow: 5 }),
            FlowRef { key: FlowKey { src: 4, flow: 5 }, slot: 0 }
        );
    }

    #[test]
    fn a_mean_counts_entries_over_time() {
        let mut occupancy = Occupancy::default();
        assert_eq!(occupancy.mean(Time(0)), 0.0);
        occupancy.is(3, Time(10));
        occupancy.is(1, Time(20));
        occupancy.is(2, Time(60));
        // 0 · 10 + 3 · 10 + 1 · 40 + 2 · 40 of 100.
        assert_eq!((occupancy.peak, occupancy.mean(Time(100))), (3, 1.5));
        // What was before the last change counts whole.
        assert_eq!(occupancy.mean(Time(5)), 70.0 / 60.0);
    }

    #[test]
    fn decisions_add_up() {
        let mut decisions = Decisions { taken: 5, deviating: 2 };
        decisions.count(false);
        decisions.count(true);
        assert_eq!(decisions, Decisions { taken: 7, deviating: 3 });
        decisions.add(Decisions { taken: 10, deviating: 4 });
        assert_eq!(decisions, Decisions { taken: 17, deviating: 7 });
    }

    #[test]
    fn a_view_that_knows_no_more_than_loads_says_so() {
        let mut view = crate::testing::Loads(|port| 10 * u64::from(port));
        assert_eq!((view.load(7), view.waiting(7)), (70, 70));
        assert_eq!((view.utilisation(7), view.unreturned(7), view.reported(7)), (0, 0, 0));
    }
}
