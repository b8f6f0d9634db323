//! How a transmission starts: one way, whether a packet has waited or not, with flow control and without.

use netloom_units::Time;

use super::{At, ServiceState, links};
use crate::buffers::{Buffers, Effect};
use crate::faults::{DropCause, Dropped};
use crate::packet::{ByKind, NO_INGRESS, Packet};
use crate::port::{Contents, Port, Wire};
use crate::queues::{Popped, Queues};
use crate::rules::{Accounting, CONTROL, DATA, Known, LINK, Rules, Trims};

/// One output port with its queues: the parts of [`Ports`](super::Ports) that a packet touches there, each found once. It lives in registers
/// wherever what it is handed to is inlined.
pub(super) struct Output<'a, W> {
    pub(super) queues: &'a mut Queues,
    /// Of all ports.
    pub(super) service: &'a mut Box<[ServiceState]>,
    pub(super) waiting: &'a mut Vec<u64>,
    pub(super) transmitter: Transmitter<'a, W>,
}

/// What sends the packets of one output port, apart from its queues: a packet that is sent may lie in one of them.
pub(super) struct Transmitter<'a, W> {
    pub(super) port: &'a mut Port,
    pub(super) index: usize,
    pub(super) buffers: &'a mut Buffers,
    pub(super) dropped: &'a mut Option<Box<Dropped>>,
    pub(super) is_host: bool,
    /// Flow control keeps packets from being lost, and may pause queues. Known where an output is made, so that nothing is asked for it.
    pub(super) is_lossless: bool,
    /// [`Rules::has_plain_queues`]; `false` where it is not known.
    pub(super) has_plain_queues: bool,
    /// [`Rules::has_channels`]; `false` where it is not known.
    pub(super) has_channels: bool,
    /// [`Rules::trims_plainly`]; `false` where it is not known.
    pub(super) trims_plainly: bool,
    /// How its node counts what its input buffers hold; none where it is not known.
    pub(super) accounting: Option<Accounting>,
    /// Control packets may have been [handed on early](crate::port::Port::start_early). Known there, too.
    pub(super) hands_on_early: bool,
    /// Data packets may have telemetry written on them. Known there, too.
    pub(super) may_stamp: bool,
    pub(super) at: At<'a, W>,
}

/// Where a packet comes from whose transmission starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It has waited in a queue, and leaves this many bytes behind there.
    Queue { left: u64 },
    /// It has just come, and its port is idle.
    Arrival,
    /// The same, and it has not been charged to its input buffer, as it only passes.
    Passing,
    /// A NIC has pulled it: it counts in no queue.
    Pulled,
}

impl<W: Wire> Output<'_, W> {
    /// A copy to hand on to what is not inlined: see [`Transmitter::again`].
    #[inline(always)]
    pub(super) fn again(&mut self) -> Output<'_, W> {
        Output {
            queues: self.queues,
            service: self.service,
            waiting: self.waiting,
            transmitter: self.transmitter.again(),
        }
    }

    /// Queues that could send, as bits.
    #[inline(always)]
    pub(super) fn ready(&self) -> u32 {
        let Transmitter { port, is_lossless, .. } = &self.transmitter;
        if *is_lossless { port.ready() } else { port.occupied }
    }

    /// Starts every transmission that begins before `until`. With flow control only while ports are not ordered: then nothing follows at other ports.
    #[inline(always)]
    pub(super) fn start_all_before(&mut self, until: Time) {
        while self.ready() != 0 && self.transmitter.port.free_at < until {
            let effect = self.start_next();
            debug_assert_eq!(effect, Effect::None);
        }
    }

    /// Starts the next transmission of a port that has one ready. Returns what follows from it at another port.
    #[inline(always)]
    pub(super) fn start_next(&mut self) -> Effect {
        let ready = self.ready();
        let Output { queues, service, transmitter, .. } = self;
        if transmitter.hands_on_early {
            transmitter.port.forget_early();
        }
        let Transmitter { index, is_lossless, has_channels, at, .. } = transmitter;
        let (index, rules) = (*index, at.rules);
        let (queue, begins_turn) = match (transmitter.has_plain_queues, transmitter.trims_plainly) {
            (true, _) => (ready.trailing_zeros() as usize, false),
            (_, true) => (service[index].next_of_two(ready, &rules.trims), false),
            _ if *is_lossless => {
                let first = if *has_channels { DATA } else { rules.first_shared };
                next_in_turn(ready, (index, first), queues, service, rules)
            }
            _ => (next_queue(ready, index, queues, service, rules), false),
        };
        let Popped { packet, is_last, left } = queues.pop(transmitter.port.number(queue));
        if begins_turn {
            let robin = &mut service[index].round_robin;
            robin.take_off(packet.size.into(), rules.even_quantum, &rules.quanta);
        }
        transmitter.port.note_start(packet.size, queue, is_last);
        let effect = transmitter.start(packet, queue, Origin::Queue { left });
        if effect == Effect::Lost {
            self.flush();
            return Effect::None;
        }
        effect
    }

    /// Sends a packet at the present instant that a NIC has pulled: its port is idle, and its queue not paused.
    #[inline(always)]
    pub(super) fn send_now(&mut self, packet: &mut Packet, queue: usize) {
        debug_assert!(self.ready() == 0 && self.transmitter.port.free_at <= self.transmitter.at.now);
        self.transmitter.port.forget_early();
        self.transmitter.port.free_at = self.transmitter.at.now;
        self.transmitter.may_stamp = false;
        let effect = self.transmitter.start(packet, queue, Origin::Pulled);
        debug_assert_eq!(effect, Effect::None);
    }

    /// Starts the transmission of a packet that finds its port idle: an [arrival](Origin::Arrival) or one that [passes](Origin::Passing).
    #[inline(always)]
    pub(super) fn start_at_once(&mut self, packet: &mut Packet, queue: usize, origin: Origin) {
        let Transmitter { port, at, is_lossless, hands_on_early, .. } = &mut self.transmitter;
        if *hands_on_early {
            port.forget_early();
        }
        if *is_lossless {
            // Paused queues may hold something.
            port.stats.note_queue(port.queued + u64::from(packet.size));
        }
        port.free_at = at.now;
        let effect = self.transmitter.start(packet, queue, origin);
        debug_assert_eq!(effect, Effect::None);
    }
}

impl<W: Wire> Transmitter<'_, W> {
    /// It is a switch's, of which this is known.
    #[inline(always)]
    pub(super) fn know<K: Known>(&mut self) {
        self.is_host = false;
        // Where that is not known, other packets may have been.
        self.hands_on_early = K::HANDS_ON_EARLY || K::ACCOUNTING.is_none();
        (self.has_plain_queues, self.has_channels) = (K::HAS_PLAIN_QUEUES, K::HAS_CHANNELS);
        self.accounting = K::ACCOUNTING;
    }

    /// A copy to hand on to what is not inlined: only the copy has to lie in memory, and only where that is called.
    #[inline(always)]
    fn again(&mut self) -> Transmitter<'_, W> {
        Transmitter {
            port: self.port,
            index: self.index,
            buffers: self.buffers,
            dropped: self.dropped,
            is_host: self.is_host,
            is_lossless: self.is_lossless,
            has_plain_queues: self.has_plain_queues,
            has_channels: self.has_channels,
            trims_plainly: self.trims_plainly,
            accounting: self.accounting,
            hands_on_early: self.hands_on_early,
            may_stamp: self.may_stamp,
            at: self.at.again(),
        }
    }

    /// Starts the transmission of a packet of a queue at the port's `free_at`. Under flow control it is paid for downstream, and its room at the input is
    /// given back. Returns what follows from that at another port: nothing while ports are not ordered.
    // Control packets and data are sent apart under flow control: together they cost 8 instructions more per packet-hop there (docs/decisions/079).
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub(super) fn start(&mut self, packet: &mut Packet, queue: usize, origin: Origin) -> Effect {
        let (at, size) = (self.port.free_at, packet.size);
        if !self.is_lossless || queue < DATA {
            if self.is_lossless && queue == LINK {
                send_pause(self.port, self.index, packet, self.buffers, self.at.rules, self.at.wire);
            } else if !self.send(
                packet,
                origin,
                if self.is_lossless { Contents::Control } else { self.contents() },
            ) {
                return self.lose(packet, at, origin);
            }
            return Effect::None;
        }
        let mut from = (NO_INGRESS, 0);
        if !self.is_host {
            from = (packet.ingress, self.queue_in(packet));
            self.buffers.note_left(self.accounting, (at, size), from);
            let vc = match (self.has_plain_queues, self.has_channels) {
                (true, _) => 0,
                (_, true) => (queue - DATA) as u8,
                _ => self.at.rules.vc_of(queue),
            };
            packet.trail = packet.trail.by(vc);
        }
        let passes = origin == Origin::Passing;
        if !self.send(packet, origin, self.contents()) {
            return links::lose(self.again(), packet, passes, (queue, at, from));
        }
        let to = (self.index as u16, queue - DATA);
        let effect = self.buffers.on_departure(self.accounting, size, passes, from, to);
        if effect == Effect::OutOfCredit {
            self.port.pause_queue(queue, at, self.is_host);
            return Effect::None;
        }
        effect
    }

    /// What is known of a packet that goes by any queue.
    #[inline(always)]
    fn contents(&self) -> Contents {
        if self.may_stamp { Contents::Any } else { Contents::Unstamped }
    }

    /// The data queue, from 0, whose input buffer a packet occupies.
    #[inline(always)]
    pub(super) fn queue_in(&self, packet: &Packet) -> usize {
        match (self.has_plain_queues, self.has_channels) {
            (true, _) => 0,
            (_, true) => usize::from(packet.trail.vc_or_first()),
            _ => self.at.rules.queue_in(packet),
        }
    }

    /// Puts a packet on the channel; returns whether no fault takes it.
    #[inline(always)]
    fn send(&mut self, packet: &mut Packet, origin: Origin, contents: Contents) -> bool {
        let has_waited = matches!(origin, Origin::Queue { .. });
        let Some(arrival) = self.port.start(packet, has_waited, contents) else { return false };
        match origin {
            Origin::Queue { left } if left > self.at.rules.unmarked_departure => {
                self.port.mark_departure(packet, left, self.at.rules);
            }
            Origin::Arrival if !self.is_lossless => {
                self.port.stats.note_queue(u64::from(packet.size));
            }
            Origin::Queue { .. } | Origin::Arrival | Origin::Passing | Origin::Pulled => {}
        }
        self.at.wire.depart(self.port.departure(packet, arrival));
        true
    }

    /// A packet that should have started at an instant is lost, and leaves no input buffer: its channel loses it, or has been cut.
    #[inline(always)]
    fn lose(&mut self, packet: &Packet, at: Time, origin: Origin) -> Effect {
        self.dropped.get_or_insert_default().note(packet, DropCause::Fault);
        match origin {
            _ if self.is_lossless => {}
            Origin::Queue { .. } => return Effect::Lost,
            Origin::Arrival | Origin::Passing => {
                // At a channel that is cut it does not even wait.
                if self.port.free_at > at {
                    self.port.stats.note_queue(u64::from(packet.size));
                }
            }
            Origin::Pulled => self.port.pass(packet, at),
        }
        Effect::None
    }
}

impl ServiceState {
    /// The queue that sends next where there are two besides [`LINK`], of those with a bit in `ready`, and packets are trimmed.
    #[inline(always)]
    fn next_of_two(&mut self, ready: u32, trims: &Trims) -> usize {
        if ready & (ready - 1) != 0 && self.control_sent != trims.control_weight {
            self.control_sent += 1;
            return CONTROL;
        }
        self.control_sent = 0;
        ready.ilog2() as usize
    }
}

/// The queue that sends next, of those with a bit in `ready`, where nothing is trimmed: those from the `first` on are served in turn. Whether it [begins its turn](crate::RoundRobin::begin_turn).
#[inline(always)]
fn next_in_turn(
    ready: u32,
    (index, first): (usize, usize),
    queues: &Queues,
    service: &mut [ServiceState],
    rules: &Rules,
) -> (usize, bool) {
    let queue = ready.trailing_zeros() as usize;
    if queue < first {
        return (queue, false);
    }
    match service[index].round_robin.begin_turn(ready >> first) {
        Some(queue) => (first + queue, true),
        None => (schedule_data(ready, index, queues, service, rules), false),
    }
}

/// The queue that sends next, of those with a bit in `ready`.
#[inline(always)]
fn next_queue(
    ready: u32,
    index: usize,
    queues: &Queues,
    service: &mut [ServiceState],
    rules: &Rules,
) -> usize {
    let queue = ready.trailing_zeros() as usize;
    if queue < rules.first_scheduled {
        return queue;
    }
    // Where control packets are counted, one queue alone has no other to wait for.
    if ready & (ready - 1) == 0 && queue < rules.first_shared {
        service[index].control_sent = 0;
        return queue;
    }
    schedule(ready, index, queues, service, rules)
}

/// Which of several queues sends next that do not simply go one before the other.
#[inline(never)]
fn schedule(ready: u32, index: usize, queues: &Queues, service: &mut [ServiceState], rules: &Rules) -> usize {
    // Where control packets are counted, it is mostly their turn.
    if let Some(trims) = rules.trims()
        && ready >> CONTROL & 1 == 1
        && service[index].control_sent != trims.control_weight
    {
        service[index].control_sent += 1;
        return CONTROL;
    }
    schedule_data(ready, index, queues, service, rules)
}

/// Which of the data queues sends next.
#[inline(never)]
fn schedule_data(
    mut ready: u32,
    index: usize,
    queues: &Queues,
    service: &mut [ServiceState],
    rules: &Rules,
) -> usize {
    let service = &mut service[index];
    if rules.trims().is_some() {
        service.control_sent = 0;
        ready &= !(1 << CONTROL);
        let queue = ready.trailing_zeros() as usize;
        if queue < rules.first_shared {
            return queue;
        }
    }
    let first = rules.first_shared;
    let first_of_port = index * rules.queues + first;
    first
        + service
            .round_robin
            .pick(ready >> first, &rules.quanta, |queue| queues.first_size(first_of_port + queue))
}

/// Sends a PAUSE frame, which is obeyed when its last bit has come.
#[inline(never)]
#[expect(clippy::cast_possible_truncation, reason = "a node has at most 65,535 ports: NetworkBuilder::build")]
fn send_pause(
    port: &mut Port,
    index: usize,
    frame: &mut Packet,
    buffers: &Buffers,
    rules: &Rules,
    wire: &mut impl Wire,
) {
    frame.by_kind = ByKind::new(buffers.paused_queues(index as u16));
    let late = port.latency + rules.response;
    let start = port.free_at;
    if port.start(frame, true, Contents::Control).is_some() {
        let arrival = port.free_at + late;
        // One that has come and is not obeyed yet goes with the link, too.
        if port.faults().is_none_or(|faults| !faults.is_cut_between(start, arrival)) {
            wire.depart(port.departure(frame, arrival));
        }
    }
}
