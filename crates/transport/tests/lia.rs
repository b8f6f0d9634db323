//! MPTCP's linked increases on a bottleneck that its subflows share with a TCP flow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use netloom_transport::{
    Ack, Answer, Arrival, Cause, Congestion, Connection, Feedback, PathFacts, Receiver, Reply, Sender,
    Transport, preset,
};
use netloom_units::{Bytes, Rate, Time};

/// Serialisation of a packet at the bottleneck, and the round trip without waiting.
const PACKET: Time = Time::from_us(1);
const RTT: Time = Time::from_us(100);
/// Packets that wait at most: as many as a round trip holds.
const BUFFER: u64 = 100;

/// The senders that share the bottleneck: the subflows of one connection, then a TCP flow.
struct Shared<'a> {
    transport: &'a Transport,
    connection: Connection,
    senders: Vec<Sender>,
    receivers: [Receiver; 2],
    /// When the bottleneck has sent all that waits.
    free: Time,
    /// ACKs on their way: when they come, whose they are, and what they say.
    acks: BinaryHeap<Reverse<(Time, u64)>>,
    contents: BTreeMap<u64, (usize, Ack)>,
    sent: u64,
}

impl<'a> Shared<'a> {
    fn new(transport: &'a Transport) -> Self {
        let path = PathFacts {
            base_rtt: RTT,
            rate: Rate::from_gbps(100),
            lossy: true,
            reorders: false,
            trims: false,
        };
        let (bytes, subflows) = (Bytes(1 << 40), transport.options.subflows);
        let mut senders: Vec<Sender> =
            (0..subflows).map(|_| Sender::subflow(transport, path, Time::ZERO)).collect();
        senders.push(Sender::new(transport, bytes, path, Time::ZERO));
        let mut connection = Connection::new(transport, bytes, subflows);
        (0..subflows).for_each(|subflow| connection.see(subflow, senders[0].window(), RTT));
        senders[..subflows as usize].iter_mut().for_each(|sender| sender.offer(transport, bytes));
        Shared {
            transport,
            connection,
            senders,
            receivers: Default::default(),
            free: Time::ZERO,
            acks: BinaryHeap::new(),
            contents: BTreeMap::new(),
            sent: 0,
        }
    }

    fn is_subflow(&self, index: usize) -> bool {
        index + 1 < self.senders.len()
    }

    /// The share of the connection in what arrives until `end`, from its half on.
    fn share(mut self, end: Time) -> f64 {
        let mut now = Time::ZERO;
        let mut halfway = [0, 0];
        while now < end {
            if now < end / 2 {
                halfway = [0, 1].map(|receiver: usize| self.receivers[receiver].seen.delivered);
            }
            for index in 0..self.senders.len() {
                while self.senders[index].ready(self.transport).is_some_and(|at| at <= now) {
                    self.send(index, now);
                }
            }
            let deadlines = (0..self.senders.len())
                .filter_map(|index| Some((self.senders[index].deadline(self.transport)?, index)));
            let deadline = deadlines.min();
            let ack = self.acks.peek().map(|Reverse((at, _))| *at);
            now = ack.into_iter().chain(deadline.map(|(at, _)| at)).min().unwrap().max(now);
            if ack == Some(now) {
                self.on_feedback();
            } else if let Some((_, index)) = deadline {
                let feedback = self.senders[index].on_timer(self.transport, now);
                self.note(index, feedback);
            }
        }
        let [ours, theirs] = [0, 1]
            .map(|receiver: usize| (self.receivers[receiver].seen.delivered - halfway[receiver]) as f64);
        ours / (ours + theirs)
    }

    fn send(&mut self, index: usize, now: Time) {
        let (transport, is_subflow) = (self.transport, self.is_subflow(index));
        let mut packet = self.senders[index].take(transport, now).unwrap();
        if is_subflow {
            packet = self.connection.take(transport, index as u32, packet);
            let unsent = self.connection.unsent(transport, index as u32);
            self.senders[index].offer(transport, unsent);
        }
        self.sent += 1;
        if self.free.saturating_sub(now) >= PACKET * BUFFER {
            return;
        }
        self.free = self.free.max(now) + PACKET;
        // Round trips of a host's flows are not alike to the nanosecond.
        let jitter = Time::from_ns(self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
        let at = self.free + RTT + jitter;
        let (seq, payload) = (packet.seq, packet.payload);
        let arrival = Arrival { now: at, seq, payload, last: packet.last, marked: false, path: 0 };
        let Answer { reply, .. } = self.receivers[usize::from(!is_subflow)].on_data(transport, arrival);
        let Reply::Ack(cumulative) = reply else { panic!("every packet has its ACK") };
        let (serialisation, hops, marked, tag) = (Time::ZERO, 1, false, 0);
        let ack =
            Ack { now: at, seq, cumulative, sent: now, serialisation, hops, marked, tag, at_last_hop: false };
        self.acks.push(Reverse((at, self.sent)));
        self.contents.insert(self.sent, (index, ack));
    }

    fn on_feedback(&mut self) {
        let Some(Reverse((now, number))) = self.acks.pop() else { return };
        let Some((index, ack)) = self.contents.remove(&number) else { return };
        let transport = self.transport;
        let mut told = Some(ack);
        if self.is_subflow(index) {
            told = self.connection.on_answer(index as u32, ack, true);
            if transport.is_coupled() {
                let increase = self.connection.increase(transport.packet_size());
                self.senders[index].couple(increase);
            }
        }
        let Some(told) = told else { return };
        self.senders[index].on_ack(transport, told);
        let losses = self.senders[index].find_losses(transport, now);
        self.note(index, losses);
    }

    fn note(&mut self, index: usize, feedback: Option<Feedback>) {
        if !self.is_subflow(index) {
            return;
        }
        let (window, rtt) = (self.senders[index].window(), self.senders[index].rtt());
        self.connection.see(index as u32, window, rtt);
        if feedback.is_some_and(|feedback| feedback.cause == Cause::Timeout) {
            self.connection.on_timeout(index as u32);
        }
        for (subflow, sender) in (0..).zip(&mut self.senders[..self.transport.options.subflows as usize]) {
            if let Some(until) = self.connection.overtaken(subflow) {
                sender.forgo(until);
            }
            sender.offer(self.transport, self.connection.unsent(self.transport, subflow));
        }
    }
}

fn mptcp(subflows: u32, coupled: bool) -> Transport {
    let mut transport = preset::find("mptcp").unwrap().transport();
    transport.options.subflows = subflows;
    let Congestion::NewReno(newreno) = &mut transport.congestion else { panic!("LIA is NewReno's") };
    newreno.coupled = coupled;
    transport
}

/// RFC 6356, section 2, goal 2: on a shared bottleneck a connection takes no more than one TCP flow.
#[test]
fn linked_subflows_take_the_share_of_one_tcp_flow() {
    for subflows in [1, 2, 4, 8] {
        let share = Shared::new(&mptcp(subflows, true)).share(Time::from_ms(1000));
        assert!((0.5 * 0.85..=0.5 * 1.15).contains(&share), "{subflows} subflows take {share}");
    }
}

#[test]
fn subflows_that_are_not_linked_take_the_share_of_as_many_flows() {
    for (subflows, fair) in [(2, 2.0 / 3.0), (8, 8.0 / 9.0)] {
        let share = Shared::new(&mptcp(subflows, false)).share(Time::from_ms(1000));
        assert!((share - fair).abs() < 0.1, "{subflows} subflows take {share}");
    }
}
