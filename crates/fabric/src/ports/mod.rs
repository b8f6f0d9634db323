//! Output ports without events: queues that are advanced when touched.

mod advance;
mod cuts;
mod departures;
mod enqueue;
mod flow_control;
mod links;
mod observe;
mod order;
mod start;
mod trimming;

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use self::departures::Departures;
use self::start::{Output, Transmitter};
use crate::buffers::Buffers;
use crate::faults::Dropped;
use crate::inputs::Inputs;
use crate::packet::{NumbersOf, Packet};
use crate::port::{LAST_RANK, Port, PortQueue, PortSpec, RING, Wire};
use crate::queues::Queues;
use crate::round_robin::RoundRobin;
use crate::rules::{DATA, KnownRules, Rules, Step};

/// Before when a transmission must begin that leaves its room to a packet which arrives at `now`: the transmission before it is over by then, so it
/// begins at `now` at the latest. Only a packet that would find no room otherwise makes its port choose so early; see [`Ports::enqueue`].
#[inline(always)]
fn just_after(now: Time) -> Time {
    now + Time(1)
}

/// When something happens at a node, by which rules, and what takes what leaves there.
#[derive(Debug)]
pub struct At<'a, W> {
    /// The instant.
    pub now: Time,
    /// What all ports have in common.
    pub rules: &'a Rules,
    /// Takes packets and credits that leave.
    pub wire: &'a mut W,
}

impl<'a, W> At<'a, W> {
    /// What happens at `now`.
    #[inline(always)]
    pub fn new(now: Time, rules: &'a Rules, wire: &'a mut W) -> Self {
        At { now, rules, wire }
    }

    /// A copy to hand on.
    #[inline(always)]
    fn again(&mut self) -> At<'_, W> {
        At { now: self.now, rules: self.rules, wire: self.wire }
    }
}

/// How far a port has come with the queues that it serves in turn.
#[derive(Clone, Debug)]
struct ServiceState {
    /// Among the data queues that share the link.
    round_robin: RoundRobin,
    /// Control packets sent since data last was, or last had nothing to send. Counted only where they must not starve data.
    control_sent: u32,
}

/// The output side of a node, and the accounts of its input buffers.
#[derive(Clone, Debug)]
pub struct Ports {
    ports: Vec<Port>,
    queues: Queues,
    /// One bit per port: something may be ready to go. Set by an enqueue, cleared at the end of the node's turn.
    waiting: Vec<u64>,
    /// Per port, the state of the queues served in turn. Empty if there are none.
    service: Box<[ServiceState]>,
    buffers: Buffers,
    /// What was dropped here, or lost on the channels that these ports feed.
    dropped: Option<Box<Dropped>>,
    /// If output queues are bounded although nothing is lost: what waits at the inputs.
    inputs: Option<Box<Inputs>>,
    /// Any departure at one port may cause something at another: a packet waits at its input, a link is cut some time, or an input buffer is paused where packets may wait at inputs.
    is_ordered: bool,
    /// No departure before this instant causes anything at another port. [`Time::ZERO`] while ports are ordered or packets may have to wait at their inputs; [`Time::MAX`] if
    /// these are not, and no input buffer is paused.
    apart_until: Time,
    /// The ports in order of their next departures. Made when ports are ordered for the first time, and right while they are.
    departures: Option<Box<Departures>>,
    /// Under flow control: the link of some port is cut some time.
    has_cuts: bool,
    /// A host: its NIC pulls data instead of queueing it, and its input takes whatever comes.
    is_host: bool,
    /// What is known of it where ports are advanced.
    known: KnownOfPorts,
}

/// What is [known](crate::Known) of a switch's ports where they are advanced, if there is code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownOfPorts {
    /// [`crate::PlainCredits`]; no port concerns another.
    PlainCredits,
    /// [`crate::CreditsOfChannels`]; no port concerns another.
    CreditsOfChannels,
    Nothing,
}

impl KnownOfPorts {
    fn new(rules: &Rules, is_ordered: bool, is_host: bool) -> Self {
        let known = match rules.known() {
            KnownRules::PlainCredits => KnownOfPorts::PlainCredits,
            KnownRules::CreditsOfChannels => KnownOfPorts::CreditsOfChannels,
            _ => KnownOfPorts::Nothing,
        };
        if is_ordered || is_host { KnownOfPorts::Nothing } else { known }
    }
}

impl Ports {
    /// [Recur](netloom_units::recurrence). They must have [come](Self::advance) to `now`.
    pub fn recur(&mut self, now: Time, numbers_of: NumbersOf, walk: &mut Walk) {
        let Ports {
            ports,
            queues,
            waiting,
            service,
            buffers,
            dropped,
            inputs,
            is_ordered,
            apart_until: _,
            departures: _,
            has_cuts,
            is_host: _,
            known: _,
        } = self;
        if walk.counts() {
            ports.iter_mut().for_each(|port| port.recur(now, walk));
            return match dropped {
                Some(dropped) => dropped.recur(walk),
                // There may be some by the time of the next walk.
                None => Dropped::default().recur(walk),
            };
        }
        for port in ports {
            port.recur(now, walk);
            if !walk.goes_on() {
                return;
            }
        }
        queues.recur(numbers_of, walk);
        waiting.iter().for_each(|&bits| walk.exact(bits));
        for ServiceState { round_robin, control_sent } in service {
            round_robin.recur(walk);
            walk.exact(*control_sent);
        }
        buffers.recur(walk);
        if walk.is_some(dropped)
            && let Some(dropped) = dropped
        {
            dropped.recur(walk);
        }
        if let Some(inputs) = inputs {
            inputs.recur(numbers_of, walk);
        }
        walk.exact(*is_ordered);
        if *has_cuts {
            walk.refuse("links that are cut under flow control");
        }
        if *is_ordered {
            // They follow from the ports.
            self.is_ordered = false;
            self.order();
        } else {
            // Until when they are apart was found out some time before; to find it out again is always right.
            self.look_again(now);
        }
    }

    /// Idle ports of a switch or a host, in the order of the specs.
    pub fn new(specs: impl IntoIterator<Item = PortSpec>, rules: &Rules, is_host: bool) -> Self {
        let specs: Vec<PortSpec> = specs.into_iter().collect();
        let buffers = Buffers::new(&specs, rules, is_host);
        let count = specs.len();
        let service = ServiceState { round_robin: RoundRobin::new(rules.quanta.len()), control_sent: 0 };
        let scheduled = if rules.first_scheduled < rules.queues { count } else { 0 };
        let service = vec![service; scheduled].into();
        let inputs = (!is_host && rules.may_wait_at_inputs())
            .then(|| Box::new(Inputs::new(count, rules.data_queues(), rules.buffer)));
        let is_cut = |spec: &PortSpec| spec.faults.as_ref().is_some_and(|faults| faults.has_cuts());
        let has_cuts = rules.is_lossless && specs.iter().any(is_cut);
        let mut ports = Ports {
            apart_until: if inputs.is_some() { Time::ZERO } else { Time::MAX },
            is_ordered: false,
            departures: None,
            has_cuts,
            ports: specs.into_iter().enumerate().map(|(index, spec)| Port::new(index, spec, rules)).collect(),
            queues: Queues::new(count * rules.queues),
            waiting: vec![0; count.div_ceil(64)],
            service,
            buffers,
            dropped: None,
            is_host,
            known: KnownOfPorts::new(rules, has_cuts || inputs.is_some(), is_host),
            inputs,
        };
        if has_cuts {
            ports.order();
        }
        ports
    }

    /// A port with what of its node takes part in what happens there.
    #[inline(always)]
    fn output<'a, W>(&'a mut self, port: u16, is_lossless: bool, at: At<'a, W>) -> Output<'a, W> {
        let Ports { ports, queues, service, waiting, buffers, dropped, is_host, .. } = self;
        let index = usize::from(port);
        let port = &mut ports[index];
        let is_host = *is_host;
        let transmitter = Transmitter {
            port,
            index,
            buffers,
            dropped,
            is_host,
            is_lossless,
            has_plain_queues: false,
            has_channels: false,
            trims_plainly: false,
            accounting: None,
            hands_on_early: true,
            may_stamp: true,
            at,
        };
        Output { queues, service, waiting, transmitter }
    }

    /// The queue by which a packet leaves through a port, where packets are not trimmed.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn port_queue(&self, port: u16, packet: &Packet, rules: &Rules) -> PortQueue {
        PortQueue::new(port, self.queue_out(usize::from(port), packet, rules) as u16)
    }

    /// The same of a data packet where ports have several data queues.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub fn data_port_queue(&self, port: u16, packet: &Packet, rules: &Rules) -> PortQueue {
        PortQueue::new(port, rules.data_queue_out(packet, || self.step(port.into(), packet)) as u16)
    }

    /// The data queue, from 0, in which a data packet leaves through a port.
    pub fn data_queue_out(&self, port: u16, packet: &Packet, rules: &Rules) -> usize {
        self.queue_out(usize::from(port), packet, rules) - DATA
    }

    /// The queue in which a packet leaves through a port.
    #[inline(always)]
    fn queue_out(&self, index: usize, packet: &Packet, rules: &Rules) -> usize {
        rules.queue_out(packet, || self.step(index, packet))
    }

    /// Which virtual channel a packet takes after its present one.
    #[inline(always)]
    fn step(&self, index: usize, packet: &Packet) -> Step {
        let rank = |port: usize| self.ports.get(port).map_or(0, |port| port.rank);
        match rank(index) {
            LAST_RANK => Step::First,
            to if to & RING != 0 => match rank(usize::from(packet.ingress)) {
                from if (from ^ to) >> 1 != 0 => Step::First,
                from if from & 1 == 1 => Step::Next,
                _ => Step::Same,
            },
            to if to > rank(usize::from(packet.ingress)) => Step::Same,
            _ => Step::Next,
        }
    }

    /// Sends a data packet at `at` through an idle port at which nothing waits and whose queue is open, when that instant is over: a
    /// NIC that pulls its data needs no queue.
    #[inline(always)]
    pub fn send_now(
        &mut self,
        port: u16,
        packet: &mut Packet,
        at: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        match rules.is_lossless {
            true => {
                let queue = self.queue_out(usize::from(port), packet, rules);
                self.output(port, true, At::new(at, rules, wire)).send_now(packet, queue);
            }
            false => self.output(port, false, At::new(at, rules, wire)).send_now(packet, DATA),
        }
    }
}
