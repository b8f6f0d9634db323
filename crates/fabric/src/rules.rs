//! A checked fabric in the form that ports work with: queues, quanta, thresholds as numbers.

use netloom_units::{Bytes, Time};
use rand::Rng;

use crate::config::{Ecn, Fabric, MOST_CLASSES, Mark};
use crate::flow_control::FlowControl;
use crate::packet::{Packet, PacketKind};
use crate::port::LARGEST_EARLY;
use crate::queue::Queue;
use crate::queue::tail_drop::TailDrop;

/// The queue of PAUSE frames, before everything else.
pub(crate) const LINK: usize = 0;
/// The queue of ACKs and congestion notifications.
pub(crate) const CONTROL: usize = 1;
/// The first data queue.
pub(crate) const DATA: usize = 2;

/// How packets are trimmed.
#[derive(Clone, Debug)]
pub(crate) struct Trims {
    /// Control packets per data packet while both wait; 0 where nothing is trimmed.
    pub(crate) control_weight: u32,
    /// Most bytes in the control queue.
    pub(crate) control_buffer: u64,
    /// Most packets on their way out that were [handed on early](crate::port::Port::start_early): no more than go in a row before data, and than the control queue holds however large they are.
    pub(crate) most_early: u32,
    pub(crate) header_size: u16,
    pub(crate) return_to_sender: bool,
}

impl Trims {
    /// Nothing is trimmed.
    const NONE: Self = Trims {
        control_weight: 0,
        control_buffer: 0,
        most_early: 0,
        header_size: 0,
        return_to_sender: false,
    };

    fn are_there(&self) -> bool {
        self.control_weight > 0
    }
}

/// How a switch counts what its input buffers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// Against fixed thresholds.
    Fixed,
    /// Against thresholds that move with the free memory.
    Shared,
    /// By credits.
    Credits,
}

/// The rules for which there is code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRules {
    /// [`PlainPfc`] or [`PacedPfc`].
    Pfc,
    /// [`PlainPfcShared`] or [`PacedPfcShared`].
    PfcShared,
    /// [`PlainCredits`].
    PlainCredits,
    /// [`CreditsOfChannels`].
    CreditsOfChannels,
    /// [`Anything`].
    Anything,
}

/// What is known of the [`Rules`] of a lossless fabric where code is made for them, so that no packet asks for it.
pub trait Known {
    /// [`Rules::has_plain_queues`]; `false`: it is not known.
    const HAS_PLAIN_QUEUES: bool = false;
    /// [`Rules::has_channels`]; `false`: it is not known.
    const HAS_CHANNELS: bool = false;
    /// How switches count, and packets do not [wait at their inputs](Rules::may_wait_at_inputs); none: it is not known.
    const ACCOUNTING: Option<Accounting> = None;
    /// What happens at a port never concerns another one, but at switches of which links are cut: nothing is paused.
    const IS_NEVER_ENTANGLED: bool = matches!(Self::ACCOUNTING, Some(Accounting::Credits));
    /// A control packet before which nothing goes may be handed on early. Under PFC that asks for a bound of what comes into an input buffer.
    const HANDS_ON_EARLY: bool = matches!(Self::ACCOUNTING, Some(Accounting::Credits));
}

/// Nothing is [`Known`].
#[derive(Debug)]
pub struct Anything;

/// One data queue, under PFC with fixed thresholds.
#[derive(Debug)]
pub struct PlainPfc;

/// The same, and what comes into an input buffer is what its link carries.
#[derive(Debug)]
pub struct PacedPfc;

/// One data queue, under PFC with a shared buffer.
#[derive(Debug)]
pub struct PlainPfcShared;

/// The same, and what comes into an input buffer is what its link carries.
#[derive(Debug)]
pub struct PacedPfcShared;

/// One data queue, under credits.
#[derive(Debug)]
pub struct PlainCredits;

/// Data queues that are virtual channels, under credits.
#[derive(Debug)]
pub struct CreditsOfChannels;

impl Known for Anything {}

impl Known for PlainPfc {
    const HAS_PLAIN_QUEUES: bool = true;
    const ACCOUNTING: Option<Accounting> = Some(Accounting::Fixed);
}

impl Known for PacedPfc {
    const HAS_PLAIN_QUEUES: bool = true;
    const ACCOUNTING: Option<Accounting> = Some(Accounting::Fixed);
    const HANDS_ON_EARLY: bool = true;
}

impl Known for PlainPfcShared {
    const HAS_PLAIN_QUEUES: bool = true;
    const ACCOUNTING: Option<Accounting> = Some(Accounting::Shared);
}

impl Known for PacedPfcShared {
    const HAS_PLAIN_QUEUES: bool = true;
    const ACCOUNTING: Option<Accounting> = Some(Accounting::Shared);
    const HANDS_ON_EARLY: bool = true;
}

impl Known for PlainCredits {
    const HAS_PLAIN_QUEUES: bool = true;
    const ACCOUNTING: Option<Accounting> = Some(Accounting::Credits);
}

impl Known for CreditsOfChannels {
    const HAS_CHANNELS: bool = true;
    const ACCOUNTING: Option<Accounting> = Some(Accounting::Credits);
}

/// What the ports of all nodes have in common.
///
/// A port has several *queues*: one for PAUSE frames, one for control packets, then one per traffic class and virtual channel: strict
/// classes in their order, then those that share by deficit round robin. The virtual channels of a class take turns.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Queues of a port.
    pub(crate) queues: usize,
    has_one_data_queue: bool,
    /// First data queue that is served in turn; those before are served by strict priority.
    pub(crate) first_shared: usize,
    /// First queue that does not simply go before all that follow: the same, or that of control packets if they may have to wait for data.
    pub(crate) first_scheduled: usize,
    /// Bytes per turn of the queues served in turn.
    pub(crate) quanta: Vec<u32>,
    /// The same where all of them have as many; otherwise 0.
    pub(crate) even_quantum: u32,
    /// The queue of each kind of packet; the first one of data. One look instead of several questions per packet.
    queue_of_kind: [u8; PacketKind::MOST],
    /// Whether control packets go before data.
    pub(crate) has_control_priority: bool,
    /// First queue of each class.
    queue_of_class: [u8; MOST_CLASSES],
    /// Virtual channels per class.
    vcs: u8,
    /// Most bytes in an output queue.
    pub(crate) buffer: u64,
    /// Bytes in an output queue up to which nothing is dropped: the same, or less where some packets are dropped before it is full, each with the probability, in units of 2⁻³².
    pub(crate) safe: u64,
    early_drop: u64,
    pub(crate) ecn: Option<Ecn>,
    /// No data packet is marked that leaves this many bytes or fewer behind in its queue as its transmission starts: the least threshold of all
    /// ports, or the greatest number where packets are not marked then.
    pub(crate) unmarked_departure: u64,
    /// Whether data packets sum up what serialisation adds to their way.
    pub(crate) sums_serialisation: bool,
    /// The seed of the draws that this takes.
    pub(crate) seed: u64,
    /// Whether it matters to a packet that arrives how long an output queue is, or whether its channel is cut.
    pub(crate) watches_queues: bool,
    /// Whether packets are marked on arrival.
    pub(crate) marks_arrivals: bool,
    /// Whether some channels are cut or lose packets.
    pub(crate) has_faults: bool,
    /// Bytes after which a packet is forwarded.
    pub(crate) cut_through: Option<Bytes>,
    /// The largest packet.
    pub(crate) packet: u64,
    pub(crate) flow_control: FlowControl,
    known: KnownRules,
    pub(crate) is_lossless: bool,
    /// Whether a data packet without room is simply dropped.
    pub(crate) drops_tail: bool,
    /// See [`Self::trims`].
    pub(crate) trims: Trims,
    /// PAUSE frames: added to their arrival.
    pub(crate) response: Time,
}

/// The virtual channel that a packet takes on its next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first one, on the hop to a host or to a ring.
    First,
    /// Its present one, to a channel of higher rank or along a ring.
    Same,
    /// The one after it.
    Next,
}

impl Rules {
    /// The rules of a checked fabric. `packet` is the largest packet, `vcs` the number of virtual channels per class.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn new(fabric: &Fabric, packet: Bytes, vcs: u8) -> Self {
        let options = &fabric.options;
        let (classes, vcs) = (fabric.classes(), if fabric.is_lossless() { vcs.max(1) } else { 1 });
        let share = |class: usize| options.classes.get(class).and_then(|class| class.share);
        let mut order: Vec<usize> = (0..classes).collect();
        order.sort_by_key(|&class| share(class).is_some());
        let mut queue_of_class = [DATA as u8; MOST_CLASSES];
        for (rank, &class) in order.iter().enumerate() {
            queue_of_class[class] = (DATA + rank * usize::from(vcs)) as u8;
        }
        let queues = DATA + classes * usize::from(vcs);
        let strict = (0..classes).filter(|&class| share(class).is_none()).count();
        let first_shared = if vcs > 1 { DATA } else { DATA + strict };
        // The least share gets a packet per turn, so that every turn sends something.
        let shares: Vec<u64> = order.iter().filter_map(|&class| share(class)).map(u64::from).collect();
        let least = shares.iter().copied().min().unwrap_or(1);
        let quanta = match vcs {
            1 => shares
                .iter()
                .map(|&share| (packet.0 * share / least).min(u64::from(u32::MAX)) as u32)
                .collect(),
            _ => vec![packet.0 as u32; queues - DATA],
        };
        let even_quantum =
            quanta.first().copied().filter(|first| quanta.iter().all(|quantum| quantum == first));
        let mut queue_of_kind =
            [if options.control_priority { CONTROL } else { DATA } as u8; PacketKind::MOST];
        queue_of_kind[PacketKind::Data.index()] = DATA as u8;
        for kind in [PacketKind::Pause, PacketKind::Credit, PacketKind::Missed, PacketKind::Report] {
            queue_of_kind[kind.index()] = LINK as u8;
        }
        let buffer = fabric.queue_room(packet).map_or(u64::MAX, |room| room.0);
        let mut trims = Trims::NONE;
        if let Queue::Trimming(config) = &fabric.queue {
            let control_buffer = config.control_buffer.map_or(buffer.saturating_mul(2), |buffer| buffer.0);
            let most_early = (control_buffer / LARGEST_EARLY).min(config.control_weight.into());
            trims = Trims {
                control_weight: config.control_weight,
                control_buffer,
                most_early: most_early as u32,
                header_size: config.header_size.0 as u16,
                return_to_sender: config.return_to_sender,
            };
        }
        let marks = |when| options.ecn.as_ref().is_some_and(|ecn| ecn.mark == when);
        let (mut safe, mut early_drop) = (buffer, 0);
        if let Queue::TailDrop(TailDrop { random: Some(random) }) = &fabric.queue {
            safe = buffer.saturating_sub(u64::from(random.packets).saturating_mul(packet.0));
            early_drop = (random.probability * (1u64 << 32) as f64) as u64;
        }
        let mut rules = Rules {
            queues,
            has_one_data_queue: queues == DATA + 1,
            first_shared,
            first_scheduled: if trims.are_there() { CONTROL } else { first_shared },
            quanta,
            even_quantum: even_quantum.unwrap_or(0),
            queue_of_kind,
            has_control_priority: options.control_priority,
            queue_of_class,
            vcs,
            buffer,
            safe,
            early_drop,
            ecn: options.ecn.clone(),
            unmarked_departure: if marks(Mark::Departure) { fabric.least_kmin().0 } else { u64::MAX },
            sums_serialisation: true,
            seed: 0,
            watches_queues: marks(Mark::Arrival) || options.buffer.is_some(),
            marks_arrivals: marks(Mark::Arrival),
            has_faults: false,
            cut_through: options.cut_through,
            packet: packet.0,
            is_lossless: fabric.is_lossless(),
            drops_tail: !trims.are_there() && !fabric.is_lossless(),
            trims,
            response: match &fabric.flow_control {
                FlowControl::Pfc(pfc) => pfc.response,
                FlowControl::PfcShared(pfc) => pfc.response,
                FlowControl::Lossy(_) | FlowControl::Credits(_) => Time::ZERO,
            },
            flow_control: fabric.flow_control.clone(),
            known: KnownRules::Anything,
        };
        rules.known = rules.find_known();
        rules
    }

    fn find_known(&self) -> KnownRules {
        let accounting = self.accounting().filter(|_| !self.may_wait_at_inputs());
        match (self.has_plain_queues(), self.has_channels(), accounting) {
            (true, _, Some(Accounting::Fixed)) => KnownRules::Pfc,
            (true, _, Some(Accounting::Shared)) => KnownRules::PfcShared,
            (true, _, Some(Accounting::Credits)) => KnownRules::PlainCredits,
            (_, true, Some(Accounting::Credits)) => KnownRules::CreditsOfChannels,
            _ => KnownRules::Anything,
        }
    }

    /// What is known of them in a lossless fabric.
    #[inline(always)]
    pub fn known(&self) -> KnownRules {
        self.known
    }

    /// The same under a run's seed, for what ports draw by themselves.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Rules { seed, ..self }
    }

    /// The same where data packets say something else, as [a pull target](crate::Packet::pull_target), instead of what serialisation has added to their way.
    #[must_use]
    pub fn without_serialisation(self) -> Self {
        Rules { sums_serialisation: false, ..self }
    }

    /// The same for channels of which some are cut or lose packets.
    #[must_use]
    pub fn with_faults(self) -> Self {
        Rules { watches_queues: true, has_faults: true, ..self }
    }

    /// Whether a packet with which an output queue holds more than what is safe is dropped.
    #[cold]
    #[inline(never)]
    pub(crate) fn drops(&self, bytes: u64, random: &mut impl Rng) -> bool {
        bytes > self.buffer || u64::from(random.next_u32()) < self.early_drop
    }

    /// How switches count what their input buffers hold; none where nothing does.
    #[inline(always)]
    pub fn accounting(&self) -> Option<Accounting> {
        match self.flow_control {
            FlowControl::Lossy(_) => None,
            FlowControl::Pfc(_) => Some(Accounting::Fixed),
            FlowControl::PfcShared(_) => Some(Accounting::Shared),
            FlowControl::Credits(_) => Some(Accounting::Credits),
        }
    }

    /// Whether what happens at one port of a switch never makes a difference at another, as long as no packet goes from one to the other. It does where they share memory or random numbers; and where input
    /// buffers are paused, as all that comes to the switch at one instant then takes part in the choice of what starts.
    pub fn ports_are_apart(&self) -> bool {
        let draws = self.marks_arrivals || self.early_drop > 0 || self.trims.are_there();
        !draws
            && matches!(self.flow_control, FlowControl::Lossy(_) | FlowControl::Credits(_))
            && !self.may_wait_at_inputs()
    }

    /// Whether output queues are bounded although no packet is lost, so that one may have to wait at its input.
    #[inline(always)]
    pub fn may_wait_at_inputs(&self) -> bool {
        self.is_lossless && self.buffer != u64::MAX
    }

    /// Whether flow control keeps data packets from being lost.
    #[inline(always)]
    pub fn is_lossless(&self) -> bool {
        self.is_lossless
    }

    /// Whether ports have one data queue, which comes after all control packets: it takes no look at a packet to know its data queue, and which queue is served next is plain.
    #[inline(always)]
    pub fn has_plain_queues(&self) -> bool {
        self.has_one_data_queue && self.first_scheduled > DATA
    }

    /// How packets are trimmed, if they are.
    pub(crate) fn trims(&self) -> Option<&Trims> {
        self.trims.are_there().then_some(&self.trims)
    }

    /// Whether data queues are the virtual channels of one class, of which there are several: a packet's virtual channel is its data queue, and all are served in turn.
    #[inline(always)]
    pub fn has_channels(&self) -> bool {
        self.vcs > 1 && self.data_queues() == usize::from(self.vcs)
    }

    /// Whether packets are trimmed and ports have one queue of control packets and one of data, which differ by what a packet is unless it is data that hurry.
    #[inline(always)]
    pub fn trims_plainly(&self) -> bool {
        self.trims.are_there()
            && self.has_one_data_queue
            && self.first_shared > DATA
            && self.has_control_priority
    }

    /// Data queues of a port.
    pub fn data_queues(&self) -> usize {
        self.queues - DATA
    }

    /// The data queue, from 0, in which a packet of a class leaves its host.
    pub fn first_queue(&self, class: u8) -> usize {
        usize::from(self.queue_of_class[usize::from(class)]) - DATA
    }

    /// In how many data queues, from 0, packets leave a host: one per class, as they leave by the first virtual channel.
    pub fn host_queues(&self) -> usize {
        self.data_queues() / usize::from(self.vcs)
    }

    /// Those of a [host's data queues](Self::host_queues), from 0, that are served in turn, and the bytes per turn of each.
    pub fn shared_host_queues(&self) -> (usize, &[u32]) {
        match self.vcs {
            1 => (self.first_shared - DATA, &self.quanta),
            _ => (self.host_queues(), &[]),
        }
    }

    /// Size of the largest packet.
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds packets by 65,535 bytes")]
    pub fn packet_size(&self) -> u32 {
        self.packet as u32
    }

    /// The class and virtual channel of a data queue.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn describe_queue(&self, queue: usize) -> (u8, u8) {
        let vcs = usize::from(self.vcs);
        let start = (DATA + queue / vcs * vcs) as u8;
        let class = self.queue_of_class.iter().position(|&first| first == start).unwrap_or(0);
        (class as u8, (queue % vcs) as u8)
    }

    /// The queue of a kind of packet; the first one of data.
    #[inline(always)]
    fn queue_of_kind(&self, kind: PacketKind) -> usize {
        usize::from(self.queue_of_kind[kind.index() % PacketKind::MOST])
    }

    /// The queue in which packets of a kind leave every port, where packets are not trimmed; none if there are several.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn only_queue(&self, kind: PacketKind) -> Option<u16> {
        let queue = self.queue_of_kind(kind);
        (self.has_one_data_queue || queue < DATA).then_some(queue as u16)
    }

    /// The queue in which data leave every port; none if there are several.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn only_data_queue(&self) -> Option<u16> {
        self.has_one_data_queue.then_some(DATA as u16)
    }

    /// The queue in which control packets that go on to another node leave every port; none if there are several.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn only_control_queue(&self) -> Option<u16> {
        if self.has_control_priority { Some(CONTROL as u16) } else { self.only_data_queue() }
    }

    /// Whether the packet waits in a data queue.
    #[inline(always)]
    pub(crate) fn is_in_data_queue(&self, packet: &Packet) -> bool {
        self.queue_of_kind(packet.kind) >= DATA
    }

    /// Whether a data packet without room is simply dropped: nothing is trimmed, and no flow control keeps room for it.
    pub fn drops_tail(&self) -> bool {
        self.drops_tail
    }

    /// The queue in which a packet leaves a node; `step` says which virtual channel it takes after its present one.
    #[inline(always)]
    pub(crate) fn queue_out(&self, packet: &Packet, step: impl FnOnce() -> Step) -> usize {
        let queue = self.queue_of_kind(packet.kind);
        // One data queue is the rule, and then there is nothing more to look up.
        if self.has_one_data_queue || queue < DATA {
            return queue;
        }
        self.data_queue_out(packet, step)
    }

    /// The same of a data packet where there are several data queues.
    #[inline(always)]
    pub(crate) fn data_queue_out(&self, packet: &Packet, step: impl FnOnce() -> Step) -> usize {
        debug_assert!(!self.has_one_data_queue && self.is_in_data_queue(packet));
        let vc = match packet.trail.vc() {
            None => 0,
            Some(vc) => match step() {
                Step::First => 0,
                Step::Same => vc,
                Step::Next => (vc + 1).min(self.vcs - 1),
            },
        };
        usize::from(self.queue_of_class[usize::from(packet.flags.class())] + vc)
    }

    /// The queue in which a packet leaves a node where packets are trimmed: data that hurry in that of control packets, others in the `queue` where they leave elsewhere.
    #[inline(always)]
    pub(crate) fn trimming_queue(&self, packet: &Packet, queue: usize) -> usize {
        match packet.is_data() && packet.flags.is_urgent() && self.has_control_priority {
            true => CONTROL,
            false => queue,
        }
    }

    /// The data queue, from 0, whose input buffer a data packet occupies.
    pub fn data_queue_in(&self, packet: &Packet) -> usize {
        self.queue_in(packet)
    }

    /// The data queue, from 0, whose input buffer a packet occupies.
    #[inline(always)]
    pub(crate) fn queue_in(&self, packet: &Packet) -> usize {
        if self.has_one_data_queue {
            return 0;
        }
        let vc = packet.trail.vc_or_first();
        usize::from(self.queue_of_class[usize::from(packet.flags.class())] + vc) - DATA
    }

    /// The virtual channel of a queue.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub(crate) fn vc_of(&self, queue: usize) -> u8 {
        if self.vcs == 1 { 0 } else { ((queue - DATA) % usize::from(self.vcs)) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FabricOptions, TrafficClass};
    use crate::flow_control::credits::Credits;
    use crate::flow_control::pfc::Pfc;
    use crate::flow_control::pfc_shared::PfcShared;
    use crate::packet::{Flags, Trail};
    use crate::queue::tail_drop::RandomDrop;
    use crate::queue::trimming::Trimming;

    fn rules(classes: &[Option<u32>], vcs: u8) -> Rules {
        let classes = classes.iter().map(|&share| TrafficClass { share }).collect();
        let options = FabricOptions { classes, ..FabricOptions::default() };
        let flow_control = FlowControl::Credits(Credits::default());
        Rules::new(&Fabric { options, flow_control, ..Fabric::default() }, Bytes(4096), vcs)
    }

    #[test]
    fn a_data_queue_is_that_of_a_class_and_a_virtual_channel() {
        let one_class = rules(&[], 3);
        assert_eq!([0, 1, 2].map(|queue| one_class.describe_queue(queue)), [(0, 0), (0, 1), (0, 2)]);
        // Strict classes come first, whatever their number.
        let classes = rules(&[Some(1), None, Some(2)], 1);
        assert_eq!([0, 1, 2].map(|queue| classes.describe_queue(queue)), [(1, 0), (0, 0), (2, 0)]);
        assert_eq!([0, 1, 2].map(|class| classes.first_queue(class)), [1, 0, 2]);
    }

    #[test]
    fn ports_are_apart_where_they_share_neither_memory_nor_draws_nor_pauses() {
        let fabric = |flow_control, queue, ecn: Option<Mark>| {
            let marks = |mark| Ecn { kmin: Bytes(1), kmax: Bytes(9), pmax: 1.0, mark };
            let options = FabricOptions { ecn: ecn.map(marks), ..FabricOptions::default() };
            Rules::new(&Fabric { options, flow_control, queue }, Bytes(4096), 1)
        };
        let lossy = || FlowControl::Lossy(Default::default());
        let drops = |random| Queue::TailDrop(TailDrop { random });
        let apart = [
            fabric(lossy(), drops(None), None),
            fabric(lossy(), drops(None), Some(Mark::Departure)),
            fabric(FlowControl::Credits(Credits::default()), drops(None), None),
        ];
        assert!(apart.iter().all(Rules::ports_are_apart));
        let early = Some(RandomDrop { packets: 2, probability: 0.5 });
        let together = [
            fabric(lossy(), drops(None), Some(Mark::Arrival)),
            fabric(lossy(), Queue::Trimming(Trimming::default()), None),
            fabric(FlowControl::Pfc(Pfc::default()), drops(None), None),
            fabric(FlowControl::PfcShared(PfcShared::default()), drops(None), None),
        ];
        assert!(!together.iter().any(Rules::ports_are_apart));
        let options = FabricOptions { buffer: Some(Bytes(100_000)), ..FabricOptions::default() };
        let early = Fabric { options, flow_control: lossy(), queue: drops(early) };
        assert!(!Rules::new(&early, Bytes(4096), 1).ports_are_apart());
    }

    #[test]
    fn a_packet_leaves_in_the_queue_of_its_class_by_the_virtual_channel_that_it_takes_next() {
        let (classes, channels) = (rules(&[Some(1), None, Some(2)], 1), rules(&[], 3));
        let packet = |class, vc| {
            let trail = Trail::START.by(vc);
            Packet { flags: Flags::new(class, false), trail, ..Packet::EMPTY }
        };
        let of_class = |class| classes.queue_out(&packet(class, 0), || Step::Same) - DATA;
        assert_eq!([0, 1, 2].map(of_class), [1, 0, 2]);
        let next = |vc, step| channels.queue_out(&packet(0, vc), || step) - DATA;
        assert_eq!([next(1, Step::First), next(1, Step::Same), next(1, Step::Next)], [0, 1, 2]);
        assert_eq!(next(2, Step::Next), 2, "there is no further one");
        assert_eq!(channels.queue_in(&packet(0, 2)), 2);
    }
}
