//! A sender and a receiver joined by a pipe that loses and delays what a test wants.
#![allow(unreachable_pub)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use netloom_transport::{
    Ack, Answer, Arrival, Cause, PathFacts, Receiver, Reply, SendCounts, Sender, Transport,
};
use netloom_units::{Bytes, Rate, Time};

/// Serialisation of any packet. ACKs take none.
pub const PACKET: Time = Time::from_us(1);
/// One way, without serialisation.
pub const DELAY: Time = Time::from_us(10);
/// From the departure of a packet to its ACK.
pub const RTT: Time = Time::from_us(21);

/// What befalls packets, by the number of their departure.
#[derive(Default)]
pub struct Pipe {
    /// Departures that never arrive.
    pub lost: BTreeSet<u64>,
    /// Departures that take longer.
    pub late: BTreeMap<u64, Time>,
    /// ACKs that never arrive, by the number of the departure that they answer.
    pub lost_acks: BTreeSet<u64>,
    /// Whether the sender knows that packets overtake each other.
    pub reorders: bool,
}

/// How a flow went.
#[derive(Debug)]
pub struct Run {
    /// When the last byte was delivered.
    pub fct: Time,
    pub counts: SendCounts,
    /// Why and when the sender learnt of losses, and whether it cut its window.
    pub feedback: Vec<(Time, Cause, u32, bool)>,
    /// When which packet departed.
    pub departures: Vec<(Time, u32)>,
}

enum Event {
    Data { departure: u64, arrival: Arrival, sent: Time },
    Back { kind: Reply, seq: u32, sent: Time },
}

impl Pipe {
    pub fn losing(lost: impl IntoIterator<Item = u64>) -> Self {
        Pipe { lost: lost.into_iter().collect(), ..Pipe::default() }
    }

    /// Sends this many full packets through the pipe.
    pub fn run(&self, transport: &Transport, packets: u64) -> Run {
        let path = PathFacts {
            base_rtt: RTT,
            rate: Rate::from_gbps(100),
            lossy: true,
            reorders: self.reorders,
            trims: false,
        };
        let size = Bytes(packets * transport.options.mtu.0);
        let mut sender = Sender::new(transport, size, path, Time::ZERO);
        let mut receiver = Receiver::default();
        let mut events: BinaryHeap<Reverse<(Time, u64)>> = BinaryHeap::new();
        let mut contents: Vec<Event> = Vec::new();
        let (mut all_feedback, mut departures) = (Vec::new(), Vec::new());
        let (mut free, mut now) = (Time::ZERO, Time::ZERO);
        while !sender.is_done() {
            let ready = sender.ready(transport).map(|at| at.max(free).max(now));
            let event = events.peek().map(|Reverse((at, _))| *at);
            let deadline = sender.deadline(transport);
            let next = [event, deadline, ready].into_iter().flatten().min();
            now = next.expect("an unfinished flow waits for something");
            assert!(now < Time::from_ms(100_000), "the flow makes no progress: {all_feedback:?}");
            if event == Some(now) {
                let Some(Reverse((_, index))) = events.pop() else { break };
                match contents[index as usize] {
                    Event::Data { departure, arrival, sent } => {
                        let Answer { earlier, reply, .. } = receiver.on_data(transport, arrival);
                        assert_eq!(earlier, None);
                        if reply != Reply::None && !self.lost_acks.contains(&departure) {
                            events.push(Reverse((now + DELAY, contents.len() as u64)));
                            contents.push(Event::Back { kind: reply, seq: arrival.seq, sent });
                        }
                    }
                    Event::Back { kind, seq, sent } => {
                        let answer = |cumulative| Ack {
                            now,
                            seq,
                            cumulative,
                            sent,
                            serialisation: Time::ZERO,
                            hops: 1,
                            marked: false,
                            tag: 0,
                            at_last_hop: false,
                        };
                        match kind {
                            Reply::Ack(cumulative) => {
                                sender.on_ack(transport, answer(cumulative));
                                let losses = sender.find_losses(transport, now);
                                all_feedback.extend(losses.map(|f| (now, f.cause, f.seq, f.window_cut)));
                            }
                            Reply::Nack(expected) => {
                                let f = sender.on_nack(transport, answer(expected));
                                all_feedback.push((now, f.cause, f.seq, f.window_cut));
                            }
                            Reply::None => {}
                        }
                    }
                }
            } else if deadline == Some(now) {
                let feedback = sender.on_timer(transport, now);
                all_feedback.extend(feedback.map(|f| (now, f.cause, f.seq, f.window_cut)));
            } else if let Some(packet) = sender.take(transport, now) {
                free = now + PACKET;
                let departure = departures.len() as u64;
                departures.push((now, packet.seq));
                if !self.lost.contains(&departure) {
                    let late = self.late.get(&departure).copied().unwrap_or(Time::ZERO);
                    let at = free + DELAY + late;
                    let arrival = Arrival {
                        now: at,
                        seq: packet.seq,
                        payload: packet.payload,
                        last: packet.last,
                        marked: false,
                        path: 0,
                    };
                    events.push(Reverse((at, contents.len() as u64)));
                    contents.push(Event::Data { departure, arrival, sent: now });
                }
            }
        }
        assert_eq!((sender.in_flight(), sender.deadline(transport)), (0, None));
        assert_eq!(receiver.seen.delivered, size.0);
        assert_eq!(sender.counts.packets, packets + sender.counts.retransmissions);
        let fct = receiver.seen.completed.expect("the flow is complete");
        Run { fct, counts: sender.counts, feedback: all_feedback, departures }
    }
}
