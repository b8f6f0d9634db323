//! How a packet comes to its queue, or to the wire at once: one way for all ports, and what differs by what keeps queues from overflowing.

use netloom_units::Time;
use rand::Rng;

use super::start::{Origin, Output, Transmitter};
use super::trimming::Trimming;
use super::{At, Ports};
use crate::buffers::{Buffers, Charge};
use crate::faults::DropCause;
use crate::packet::{NO_INGRESS, Packet};
use crate::port::{Fate, Port, PortQueue, Wire};
use crate::queues::Queues;
use crate::rules::{Accounting, Anything, CONTROL, DATA, Known, LINK, Trims};

/// What keeps a port's queues from overflowing, as far as a packet that comes has to know.
pub(super) trait Admission {
    /// What goes before all else may be [handed on early](Port::start_early).
    const HANDS_ON_EARLY: bool = false;
    /// Control packets sent before data are counted.
    const COUNTS_CONTROL: bool = false;

    /// What a packet is that starts at once.
    #[inline(always)]
    fn origin(&self) -> Origin {
        Origin::Arrival
    }

    /// Charges the input buffer by which the packet came, or only looks whether it could if the packet `passes`: it starts at once. `false`: more may follow from that than this way can do.
    #[inline(always)]
    fn charge(&self, _: &mut Output<'_, impl Wire>, _: &Packet, _: usize, _passes: bool) -> bool {
        true
    }

    /// Whether a packet that finds its port idle may start at once.
    #[inline(always)]
    fn starts_at_once(&self, _: &Port, _: usize) -> bool {
        true
    }

    /// Whether a packet that finds its port idle may start at once even if its queue is served in turn: nothing else comes to the node, and could have a turn, in this instant.
    #[inline(always)]
    fn may_take_turn(&self) -> bool {
        false
    }

    /// Whether nothing can come before a control packet that begins when the port is free.
    #[inline(always)]
    fn stays_first(&self, _: &Output<'_, impl Wire>) -> bool {
        true
    }

    /// Finds room for a packet that has to wait, and marks it. Returns its queue, which is another one if it has been trimmed, or what else became of it.
    fn admit(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Result<usize, Fate>;
}

/// A data packet without room is dropped. `HANDS_ON_EARLY`: [`Admission::HANDS_ON_EARLY`].
struct TailDrop<const HANDS_ON_EARLY: bool>;

impl<const HANDS_ON_EARLY: bool> Admission for TailDrop<HANDS_ON_EARLY> {
    const HANDS_ON_EARLY: bool = HANDS_ON_EARLY;

    #[inline(always)]
    fn admit(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Result<usize, Fate> {
        let rules = output.transmitter.at.rules;
        if !rules.watches_queues {
            return Ok(queue);
        }
        if output.transmitter.port.faults().is_some() && output.is_taken(packet) {
            return Err(Fate::Dropped);
        }
        if packet.kind.is_data() {
            let mut queued = output.bytes(queue);
            if queued + u64::from(packet.size) > rules.safe && output.sends_data_now(queued) {
                output.start_next();
                queued = output.bytes(queue);
            }
            let bytes = queued + u64::from(packet.size);
            if bytes > rules.safe && rules.drops(bytes, random) {
                output.transmitter.port.losses().drops += 1;
                output.transmitter.dropped.get_or_insert_default().note(packet, DropCause::Full);
                return Err(Fate::Dropped);
            }
            output.transmitter.port.mark_arrival(packet, queued, rules, random);
        }
        Ok(queue)
    }
}

/// Flow control keeps packets from being lost, and nothing that happens at a port concerns another one. `HANDS_ON_EARLY`: [`Known::HANDS_ON_EARLY`].
struct Lossless<const HANDS_ON_EARLY: bool> {
    /// Nothing else comes to the node in this instant.
    is_alone: bool,
}

impl Lossless<false> {
    /// Something else may come.
    const AMONG_OTHERS: Self = Lossless { is_alone: false };
}

impl<const HANDS_ON_EARLY: bool> Admission for Lossless<HANDS_ON_EARLY> {
    const HANDS_ON_EARLY: bool = HANDS_ON_EARLY;

    #[inline(always)]
    fn origin(&self) -> Origin {
        Origin::Passing
    }

    #[inline(always)]
    fn charge(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &Packet,
        queue: usize,
        passes: bool,
    ) -> bool {
        // A control packet is not looked at for it.
        let from = if queue < DATA { 0 } else { output.transmitter.queue_in(packet) };
        let (accounting, to) = (output.transmitter.accounting, (output.transmitter.index, queue));
        fits(output.transmitter.buffers, accounting, packet, (from, to), passes)
    }

    #[inline(always)]
    fn starts_at_once(&self, port: &Port, queue: usize) -> bool {
        port.paused >> queue & 1 == 0
    }

    #[inline(always)]
    fn may_take_turn(&self) -> bool {
        self.is_alone
    }

    #[inline(always)]
    fn stays_first(&self, output: &Output<'_, impl Wire>) -> bool {
        let Transmitter { port, index, accounting, buffers, at, .. } = &output.transmitter;
        *accounting == Some(Accounting::Credits)
            || port.occupied >> LINK & 1 == 0
                && buffers.stays_quiet(*accounting, *index, port.free_at - at.now)
    }

    #[inline(always)]
    fn admit(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Result<usize, Fate> {
        output.mark_arrival(packet, queue, random);
        Ok(queue)
    }
}

/// Charges the input buffer by which a packet came, that of data queue `from` (from 0), if any counts it, or only looks whether it could if the packet `passes`. It leaves by a port and `queue`. `false`: what follows from that is still to be done.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a node has at most 65,535 ports: NetworkBuilder::build")]
fn fits(
    buffers: &mut Buffers,
    accounting: Option<Accounting>,
    packet: &Packet,
    (from, (port, queue)): (usize, (usize, usize)),
    passes: bool,
) -> bool {
    queue < DATA
        || packet.ingress == NO_INGRESS
        || buffers.charge(accounting, (packet.ingress, from), (packet.size, port as u16), passes)
            == Charge::Fits
}

/// The same where what happens at one port may concern others, which have all come to this instant.
struct Ordered {
    /// The packet has been charged already.
    is_charged: bool,
    /// What follows from a departure is for all ports to see in their order, so that no packet starts at once.
    is_ordered: bool,
}

impl Admission for Ordered {
    #[inline(always)]
    fn origin(&self) -> Origin {
        if self.is_charged { Origin::Arrival } else { Origin::Passing }
    }

    #[inline(always)]
    fn charge(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &Packet,
        queue: usize,
        passes: bool,
    ) -> bool {
        self.is_charged || Lossless::<false>::AMONG_OTHERS.charge(output, packet, queue, passes)
    }

    #[inline(always)]
    fn starts_at_once(&self, port: &Port, queue: usize) -> bool {
        !self.is_ordered && Lossless::<false>::AMONG_OTHERS.starts_at_once(port, queue)
    }

    #[inline(always)]
    fn admit(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Result<usize, Fate> {
        Lossless::<false>::AMONG_OTHERS.admit(output, packet, queue, random)
    }
}

impl Ports {
    /// Puts a packet into its queue, marking, dropping or trimming it as configured and charging the input buffer by which it came.
    ///
    /// The packet starts at once if the port is idle. Where a transmission ends at `now` and others wait, all that arrives at `now` takes part in
    /// the choice of what starts then, and counts in its mark; but if there is no room for the packet, the choice comes first, so that it
    /// finds the room of what starts free.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        port: u16,
        packet: &mut Packet,
        random: &mut impl Rng,
        mut at: At<'_, impl Wire>,
    ) -> Fate {
        match at.rules.drops_tail {
            true => {
                let to = self.port_queue(port, packet, at.rules);
                self.enqueue_or_drop::<true, false, false>(to, packet, random, at)
            }
            false => self.enqueue_specially(port, packet, random, &mut at.again()),
        }
    }

    /// [`Self::enqueue`] of a control packet that a host makes. `is_watched`: the host's loads may be read before the run is over, or what is being sent matters to it; otherwise the packet may be handed on early.
    #[inline(always)]
    pub fn enqueue_control(
        &mut self,
        port: u16,
        packet: &mut Packet,
        is_watched: bool,
        random: &mut impl Rng,
        mut at: At<'_, impl Wire>,
    ) -> Fate {
        debug_assert!(self.is_host && !packet.kind.is_data() && !packet.is_of_the_link());
        let state = &mut self.ports[usize::from(port)];
        if state.occupied == 0
            && !is_watched
            && !self.is_ordered
            && at.rules.has_control_priority
            && let Some(departure) = state.start_control(packet, at.now)
        {
            at.wire.depart(departure);
            return Fate::Queued;
        }
        self.enqueue_control_exactly(port, packet, random, &mut at.again())
    }

    /// [`Self::enqueue_control`] of a packet that has to wait, or to be looked at.
    #[inline(never)]
    fn enqueue_control_exactly(
        &mut self,
        port: u16,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: &mut At<'_, impl Wire>,
    ) -> Fate {
        self.enqueue(port, packet, random, at.again())
    }

    /// [`Self::enqueue`] where a packet for which there is no room is [simply dropped](crate::Rules::drops_tail). `MAY_STAMP`: telemetry may be written on packets. `HANDS_ON_EARLY`: what goes before
    /// all else may be [handed on early](Self::handed_on_early). `HAS_PLAIN_QUEUES`: [`crate::Rules::has_plain_queues`]; `false` where it is not known.
    #[inline(always)]
    pub fn enqueue_or_drop<
        const MAY_STAMP: bool,
        const HANDS_ON_EARLY: bool,
        const HAS_PLAIN_QUEUES: bool,
    >(
        &mut self,
        to: PortQueue,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: At<'_, impl Wire>,
    ) -> Fate {
        let queue = usize::from(to.queue());
        let now = at.now;
        let mut output = self.output(to.port(), false, at);
        debug_assert!(!HAS_PLAIN_QUEUES || output.transmitter.at.rules.has_plain_queues());
        (output.transmitter.may_stamp, output.transmitter.has_plain_queues) = (MAY_STAMP, HAS_PLAIN_QUEUES);
        output.start_all_before(now);
        output.enqueue(&TailDrop::<HANDS_ON_EARLY>, packet, queue, random).unwrap_or(Fate::Queued)
    }

    /// [`Self::enqueue`] where packets are trimmed or flow control keeps them from being lost, for callers that do not know which.
    #[inline(never)]
    fn enqueue_specially(
        &mut self,
        port: u16,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: &mut At<'_, impl Wire>,
    ) -> Fate {
        match at.rules.trims() {
            Some(_) => {
                let to = self.port_queue(port, packet, at.rules);
                match self.is_host {
                    true => self.enqueue_or_trim::<true, false, false>(to, packet, random, at.again()),
                    false => self.enqueue_or_trim::<false, false, false>(to, packet, random, at.again()),
                }
            }
            None if self.is_host => self.enqueue_at_host(port, packet, random, at),
            None => {
                let to = self.port_queue(port, packet, at.rules);
                self.enqueue_lossless::<Anything>((to, false), packet, random, at.again())
            }
        }
    }

    /// [`Self::enqueue`] where packets are trimmed. `to` is [where the packet leaves](Self::port_queue), but for data that hurry. `IS_HOST`: the node is a host. `HANDS_ON_EARLY`: as for [`Self::enqueue_or_drop`].
    /// `TRIMS_PLAINLY`: [`crate::Rules::trims_plainly`]; `false` where it is not known.
    #[inline(always)]
    pub fn enqueue_or_trim<const IS_HOST: bool, const HANDS_ON_EARLY: bool, const TRIMS_PLAINLY: bool>(
        &mut self,
        to: PortQueue,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: At<'_, impl Wire>,
    ) -> Fate {
        let trims = &at.rules.trims;
        debug_assert!(at.rules.trims().is_some());
        debug_assert_eq!(self.is_host, IS_HOST);
        debug_assert!(!TRIMS_PLAINLY || at.rules.trims_plainly());
        let (now, rules) = (at.now, at.rules);
        let mut output = self.output(to.port(), false, at);
        let transmitter = &mut output.transmitter;
        (transmitter.is_host, transmitter.trims_plainly) = (IS_HOST, TRIMS_PLAINLY);
        output.start_all_before(now);
        // What is known of a packet's kind and queue is known to all that follows.
        let queue = match (TRIMS_PLAINLY, packet.is_data()) {
            (true, true) => rules.trimming_queue(packet, DATA),
            (true, false) => CONTROL,
            (false, _) => rules.trimming_queue(packet, to.queue().into()),
        };
        if HANDS_ON_EARLY && queue == CONTROL {
            return match !packet.is_data() && Trimming(trims).sends_control(&mut output, packet) {
                true => Fate::Queued,
                false => output.again().enqueue_control(trims, packet, random),
            };
        }
        output.enqueue(&Trimming(trims), packet, queue, random).unwrap_or(Fate::Queued)
    }

    /// [`Self::enqueue`] at a host where flow control keeps packets from being lost: no input buffer counts what it sends.
    #[inline(always)]
    fn enqueue_at_host(
        &mut self,
        port: u16,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: &mut At<'_, impl Wire>,
    ) -> Fate {
        if self.is_ordered {
            return self.enqueue_exactly(port, packet, random, at);
        }
        let (now, rules) = (at.now, at.rules);
        self.advance_under_flow_control(port, now, rules, at.wire);
        let queue = self.queue_out(usize::from(port), packet, rules);
        let mut output = self.output(port, true, at.again());
        (output.transmitter.is_host, output.transmitter.may_stamp) = (true, false);
        output.enqueue(&Lossless::<false>::AMONG_OTHERS, packet, queue, random).unwrap_or(Fate::Queued)
    }

    /// [`Self::enqueue`] at a switch where flow control keeps packets from being lost, after [`Self::settle_if_ordered`]. `is_alone`: nothing else comes
    /// to the node at this instant.
    #[inline(always)]
    pub fn enqueue_lossless<K: Known>(
        &mut self,
        (to, is_alone): (PortQueue, bool),
        packet: &mut Packet,
        random: &mut impl Rng,
        at: At<'_, impl Wire>,
    ) -> Fate {
        match !K::IS_NEVER_ENTANGLED && self.is_together(at.now, is_alone) {
            true => self.enqueue_together((to, is_alone), packet, random, at),
            false => self.enqueue_apart::<K>((to, is_alone), packet, random, at),
        }
    }

    /// [`Self::enqueue_lossless`] where a packet concerned [more than the port](Self::is_together) by which it leaves until ports were [settled](Self::settle).
    #[inline(always)]
    pub fn enqueue_together(
        &mut self,
        (to, is_alone): (PortQueue, bool),
        packet: &mut Packet,
        random: &mut impl Rng,
        mut at: At<'_, impl Wire>,
    ) -> Fate {
        self.enqueue_in_order(to, is_alone, packet, random, &mut at.again())
    }

    /// [`Self::enqueue_lossless`] where a packet concerns [only the port](Self::is_together) by which it leaves.
    #[inline(always)]
    pub fn enqueue_apart<K: Known>(
        &mut self,
        (to, is_alone): (PortQueue, bool),
        packet: &mut Packet,
        random: &mut impl Rng,
        mut at: At<'_, impl Wire>,
    ) -> Fate {
        debug_assert!(!self.is_host && self.apart_until > at.now, "a switch's port by itself");
        debug_assert!(!K::IS_NEVER_ENTANGLED || !self.is_entangled());
        debug_assert!(!K::HAS_PLAIN_QUEUES || at.rules.has_plain_queues());
        debug_assert!(!K::HAS_CHANNELS || at.rules.has_channels());
        debug_assert!(K::ACCOUNTING.is_none() || K::ACCOUNTING == at.rules.accounting());
        let now = at.now;
        let mut output = self.output(to.port(), true, at.again());
        output.transmitter.know::<K>();
        output.start_all_before(now);
        let queue = usize::from(to.queue());
        debug_assert!(queue != LINK && (!K::HAS_PLAIN_QUEUES || queue <= DATA));
        // What is known of a packet's queue is known to all that follows.
        let fate = match K::HAS_PLAIN_QUEUES || K::HAS_CHANNELS {
            true if queue < DATA => output.enqueue_known::<K>(is_alone, packet, CONTROL, random),
            true if K::HAS_PLAIN_QUEUES => output.enqueue_known::<K>(is_alone, packet, DATA, random),
            _ => output.enqueue_known::<K>(is_alone, packet, queue, random),
        };
        if let Some(fate) = fate {
            return fate;
        }
        self.enqueue_exactly(to.port(), packet, random, &mut at.again())
    }

    /// [`Self::enqueue_together`] as far as nothing but the order of what starts is in the way.
    #[inline(never)]
    fn enqueue_in_order(
        &mut self,
        to: PortQueue,
        is_alone: bool,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: &mut At<'_, impl Wire>,
    ) -> Fate {
        debug_assert!(!self.is_ordered || self.first_departure(at.now).is_none(), "ports are settled");
        if !self.is_ordered && self.inputs.is_none() {
            let now = at.now;
            let is_ordered = self.is_together(now, is_alone);
            let ordered = Ordered { is_charged: false, is_ordered };
            let mut output = self.output(to.port(), true, at.again());
            output.start_all_before(now);
            if let Some(fate) = output.enqueue(&ordered, packet, to.queue().into(), random) {
                return fate;
            }
        }
        self.enqueue_exactly(to.port(), packet, random, at)
    }

    /// [`Self::enqueue_lossless`] where a departure at one port may cause something at another, or this packet may.
    #[inline(never)]
    fn enqueue_exactly(
        &mut self,
        port: u16,
        packet: &mut Packet,
        random: &mut impl Rng,
        at: &mut At<'_, impl Wire>,
    ) -> Fate {
        let (now, rules) = (at.now, at.rules);
        self.advance_under_flow_control(port, now, rules, at.wire);
        let queue = self.queue_out(usize::from(port), packet, rules);
        if self.has_cuts && self.is_lost_to_cut(port, packet, now, rules, at.wire) {
            return Fate::Dropped;
        }
        let (from, to) = (rules.queue_in(packet), (usize::from(port), queue));
        if !fits(&mut self.buffers, None, packet, (from, to), false)
            && self.charge_exactly(packet, port, now, rules, at.wire) == Fate::Dropped
        {
            return Fate::Dropped;
        }
        if self.inputs.is_some() && self.waits_at_input((port.into(), queue), packet, random, at.again()) {
            return Fate::Queued;
        }
        let is_ordered = self.is_ordered || self.buffers.is_paused();
        let charged = Ordered { is_charged: true, is_ordered };
        let fate = self
            .output(port, true, at.again())
            .enqueue(&charged, packet, queue, random)
            .unwrap_or(Fate::Queued);
        self.note_departure(port.into());
        fate
    }
}

impl<W: Wire> Output<'_, W> {
    /// Lets a packet start at once or wait in a queue of a port that has been advanced to this instant, or says what else becomes of it. `None`: it could not be charged, and nothing has been done with it.
    #[inline(always)]
    fn enqueue<A: Admission>(
        &mut self,
        admission: &A,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Option<Fate> {
        let (now, rules) = (self.transmitter.at.now, self.transmitter.at.rules);
        let is_idle = self.ready() == 0;
        let port = &mut *self.transmitter.port;
        let has_plain_queues = self.transmitter.has_plain_queues || self.transmitter.trims_plainly;
        let first_shared = if self.transmitter.has_channels { DATA } else { rules.first_shared };
        let is_in_turn = !has_plain_queues && queue >= first_shared;
        if is_idle
            && port.free_at <= now
            && (!is_in_turn || admission.may_take_turn())
            && admission.starts_at_once(port, queue)
        {
            if !admission.charge(self, packet, queue, true) {
                return None;
            }
            if is_in_turn {
                self.take_turn(packet, queue, random);
            }
            if A::COUNTS_CONTROL {
                self.service[self.transmitter.index].control_sent = 0;
            }
            self.start_at_once(packet, queue, admission.origin());
            return Some(Fate::Queued);
        }
        // Where nothing is paused, nothing waits at a port that is idle; said here, it keeps the two ways apart: 2 instructions per packet-hop less.
        if A::HANDS_ON_EARLY
            && queue == CONTROL
            && (is_idle || port.occupied >> queue & 1 == 0)
            && admission.stays_first(self)
            && let Some(departure) = self.transmitter.port.start_early(packet, now)
        {
            self.transmitter.at.wire.depart(departure);
            return Some(Fate::Queued);
        }
        if !admission.charge(self, packet, queue, false) {
            return None;
        }
        if is_idle {
            note_waiting(self.transmitter.port, self.waiting, self.transmitter.index, now);
        }
        match admission.admit(self, packet, queue, random) {
            Ok(queue) => {
                let Transmitter { port, is_host, is_lossless, .. } = &mut self.transmitter;
                let is_host = is_lossless.then_some(*is_host);
                join(port, self.queues, packet, queue, (now, is_host));
                Some(Fate::Queued)
            }
            Err(fate) => Some(fate),
        }
    }

    /// [`Self::enqueue`] at a switch with flow control where nothing that happens at a port concerns another one.
    #[inline(always)]
    fn enqueue_known<K: Known>(
        &mut self,
        is_alone: bool,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Option<Fate> {
        match K::HANDS_ON_EARLY {
            true => self.enqueue(&Lossless::<true> { is_alone }, packet, queue, random),
            false => self.enqueue(&Lossless::<false> { is_alone }, packet, queue, random),
        }
    }

    /// [`Self::enqueue`] of what goes by the control queue where packets are trimmed, and [was not sent](Trimming::sends_control).
    #[inline(never)]
    fn enqueue_control(&mut self, trims: &Trims, packet: &mut Packet, random: &mut impl Rng) -> Fate {
        self.enqueue(&Trimming(trims), packet, CONTROL, random).unwrap_or(Fate::Queued)
    }

    /// Does what a packet of a queue that is served in turn passes through otherwise before it starts: it comes to wait in its queue, which is empty, and has the next turn, as no other queue has anything to send.
    #[inline(always)]
    fn take_turn(&mut self, packet: &mut Packet, queue: usize, random: &mut impl Rng) {
        self.mark_arrival(packet, queue, random);
        let Output { service, transmitter, .. } = self;
        let (rules, size) = (transmitter.at.rules, u32::from(packet.size));
        let (robin, queue) = (&mut service[transmitter.index].round_robin, queue - rules.first_shared);
        match robin.begin_turn(1 << queue) {
            Some(_) => robin.take_off(size, rules.even_quantum, &rules.quanta),
            None => robin.serve_only(queue, &rules.quanta, size),
        }
    }

    /// Bytes in a queue.
    #[inline(always)]
    pub(super) fn bytes(&self, queue: usize) -> u64 {
        self.queues.bytes(self.transmitter.port.number(queue))
    }

    /// Whether what a port begins to send at this instant is of a data queue that holds `queued` bytes.
    #[inline(always)]
    fn sends_data_now(&self, queued: u64) -> bool {
        let Transmitter { port, at, .. } = &self.transmitter;
        port.free_at == at.now && queued > 0 && port.occupied & ((1 << DATA) - 1) == 0
    }

    /// Marks a data packet that comes to wait in a queue, where packets are marked on arrival.
    #[inline(always)]
    pub(super) fn mark_arrival(&mut self, packet: &mut Packet, queue: usize, random: &mut impl Rng) {
        let rules = self.transmitter.at.rules;
        if rules.marks_arrivals && packet.kind.is_data() {
            let queued = self.bytes(queue);
            self.transmitter.port.mark_arrival(packet, queued, rules, random);
        }
    }
}

/// Something comes to wait at a port at which nothing could go: it was idle from its last transmission until now.
#[inline(always)]
pub(super) fn note_waiting(port: &mut Port, waiting: &mut [u64], index: usize, now: Time) {
    waiting[index / 64] |= 1 << (index % 64);
    port.free_at = port.free_at.max(now);
}

/// Puts a packet at the end of a queue. `is_host`: whether a port whose queues flow control may pause is a host's.
#[inline(always)]
pub(super) fn join(
    port: &mut Port,
    queues: &mut Queues,
    packet: &Packet,
    queue: usize,
    (now, is_host): (Time, Option<bool>),
) {
    port.note_arrival(packet.size, queue, now);
    if let Some(is_host) = is_host
        && port.paused != 0
    {
        port.note_pause(now, is_host);
    }
    queues.push(port.number(queue), packet);
}
