//! What travels between nodes, what nodes set timers for, and the channels that packets leave by.

use netloom_engine::{DRIVER, Due, Scheduler, source_in_order};
use netloom_fabric::{Credit, Departure, Packet, Wire};
use netloom_topology::PortId;
use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Time};

use crate::protocol::{Timer, numbers_of};

/// What travels, and what nodes set timers for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Message {
    /// Crosses a channel.
    Packet(Packet),
    /// The next message of the workload starts.
    #[default]
    Start,
    /// A flow that was ordered from outside starts.
    Order { dst: u32, bytes: Bytes, ticket: u32, class: u8 },
    /// The timer of a flow's sender: a packet may be lost, or a rate may rise.
    FlowTimer { slot: u32, flow: u32 },
    /// The host looks at what has come.
    Interrupt,
    /// A packet has waited for its ACK long enough.
    AckDelay { receiver: u32 },
    /// The NIC has processed what a data packet causes, so that it may leave.
    Answer { is_cnp: bool },
    /// The time limit of a flow that its path selector has paused.
    PauseLimit { slot: u32, flow: u32 },
    /// How long a host holds packets of a flow back from its transport.
    Reorder { src: u32, flow: u32 },
    /// Under flow control: the link of a port is cut, or repaired.
    Link { port: PortId, is_cut: bool },
    /// Crosses a channel when its link has been repaired: credit for all the room at its end. No event of the run, as it may come of no work.
    Grant(Credit),
    /// A timer of a protocol.
    Protocol(Timer),
    /// A timer of a server's NIC is due.
    Nic { rail: u32 },
    /// A calculation of a server ends.
    Wake,
    /// A server has a message, or a part of one, for a NIC to send.
    Part { dst: u32, bytes: Bytes, number: u32, group: u16, class: u8, is_stream: bool },
}

impl Message {
    /// Where it stands among what is due at a host at `at`: which timers come before it.
    pub(crate) fn due(&self, at: Time) -> Due {
        let source = match self {
            Message::Packet(_) | Message::Grant(_) => 0,
            Message::FlowTimer { slot, .. } => source_in_order(*slot),
            // Other timers: those of flows come before, and those that are set now behind them.
            _ => DRIVER,
        };
        Due { at, source }
    }

    /// Whether it is due at an instant that the workload or the network has set, rather than some time after something.
    pub(crate) fn is_at_a_fixed_time(&self) -> bool {
        use Message::{Link, Order, Part, Start, Wake};
        matches!(self, Start | Order { .. } | Wake | Part { .. } | Link { .. })
    }

    /// Whether it wakes a flow that looks then whether something is due: when it does makes no difference, as long as it is not too late. It comes from `source`.
    pub(crate) fn is_alarm(&self, source: u32) -> bool {
        match self {
            Message::FlowTimer { .. } => true,
            // Those of a server's NICs stand where alarms do if they are alarms.
            Message::Nic { .. } => source < DRIVER,
            _ => false,
        }
    }

    /// [Recurs](netloom_units::recurrence). What is due at a fixed time stays the same until then.
    pub(crate) fn recur(&mut self, walk: &mut Walk) {
        match self {
            Message::Packet(packet) => packet.recur(numbers_of, walk),
            Message::Interrupt => walk.exact(1u64 << u32::BITS),
            Message::AckDelay { receiver } => walk.exact(*receiver),
            Message::Protocol(Timer::Pulls(_)) => walk.exact(2u64 << u32::BITS),
            // That of a server's NIC which is no alarm: what it is of says the NIC.
            Message::Nic { rail } => walk.exact(3u64 << u32::BITS | u64::from(*rail)),
            Message::Answer { .. } => walk.refuse("answers that a NIC processes"),
            Message::Start
            | Message::Order { .. }
            | Message::Wake
            | Message::Part { .. }
            | Message::Link { .. } => {}
            // An alarm.
            Message::FlowTimer { .. } => {}
            Message::PauseLimit { .. }
            | Message::Reorder { .. }
            | Message::Grant(_)
            | Message::Protocol(_) => walk.refuse("a protocol with timers of its own"),
        }
    }

    /// An alarm of a flow of the host `id` becomes that of the flow that takes its place, if one does.
    pub(crate) fn follow(&mut self, id: u32, walk: &Walk) {
        if let Message::FlowTimer { flow, .. } = self {
            *flow = walk.successor(id, *flow, walk.periods_to_move());
        }
    }

    /// The packet, if it is one that crosses the channel rather than something beside it.
    pub(crate) fn packet(&self) -> Option<&Packet> {
        match self {
            Message::Packet(packet) if !packet.kind.is_beside_data() => Some(packet),
            _ => None,
        }
    }
}

const _: () = assert!(size_of::<Message>() == size_of::<Packet>(), "an event fills one cache line");

/// What goes beside a channel is a source of its own: that and its packets have no order among each other.
pub(crate) const BESIDE: u32 = 1 << 29;

/// Puts departed packets and credits on their channels.
pub(crate) struct Channels<'a, S>(pub(crate) &'a mut S);

impl<S: Scheduler<Message>> Wire for Channels<'_, S> {
    // A closure would not be inlined at each of the places where a packet may leave.
    #[inline(always)]
    fn depart(&mut self, departure: Departure<'_>) {
        let Departure { to, channel, arrival, packet } = departure;
        self.0.send_with(to, channel, arrival, || Message::Packet(*packet));
    }

    #[inline(always)]
    fn credit(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit) {
        self.0.send_with(to, channel | BESIDE, arrival, || Message::Packet(credit.to_packet()));
    }

    #[cold]
    fn miss(&mut self, to: u32, channel: u32, arrival: Time, room: Credit) {
        self.0.send(to, channel | BESIDE, arrival, Message::Packet(room.to_missed()));
    }

    #[cold]
    fn grant(&mut self, to: u32, channel: u32, arrival: Time, credit: Credit) {
        self.0.send(to, channel | BESIDE, arrival, Message::Grant(credit));
    }
}
