//! Two switches and the cable between them: the upstream one sends from its port 0, the downstream one receives at its port 0 and forwards
//! through its port 1.

use std::collections::BTreeMap;

use netloom_fabric::{Credit, Fabric, Fate, Packet, PacketKind, PortSpec};
use netloom_units::{Bytes, Rate, Time};

use super::{Node, pause, spec};

/// The cable and what crosses it.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    pub packet: u64,
    pub down: (Time, Rate),
    pub up: (Time, Rate),
}

impl Cable {
    pub fn headroom(&self, pause: u64, response: Time) -> u64 {
        let cable = netloom_fabric::flow_control::Cable {
            round_trip: self.down.0 + self.up.0,
            inward: self.down.1,
            outward: self.up.1,
        };
        cable.headroom(Bytes(self.packet), Bytes(pause), response).0
    }

    /// No less passes between a departure and its arrival.
    fn lookahead(&self) -> Time {
        let of = |(delay, rate): (Time, Rate)| delay + rate.serialize(Bytes(1));
        of(self.down).min(of(self.up))
    }
}

/// What will happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// Reaches the upstream switch, for its port 0 if it is data.
    Up(Packet),
    /// Reaches the downstream switch, for the port given if it is data.
    Down(u16, Packet),
}

pub struct Link {
    pub cable: Cable,
    pub up: Node,
    pub down: Node,
    agenda: BTreeMap<(Time, u8, u64), Event>,
    number: u64,
    taken: (usize, usize, usize),
    /// Data that is on its way down per queue, and credits on their way up.
    pub on_way: BTreeMap<usize, u64>,
    pub credits_on_way: BTreeMap<usize, u64>,
    /// Changes of the queues that the upstream port must not use.
    pub pauses: Vec<(Time, u32)>,
    pub lost: usize,
}

impl Link {
    pub fn new(fabric: &Fabric, vcs: u8, cable: Cable) -> Self {
        let port = |outward: (Time, Rate), inward: (Time, Rate)| PortSpec {
            latency: outward.0,
            rate: outward.1,
            inward,
            cut_through_from: Some(outward.1),
            peer: 0,
            ..spec(0)
        };
        let up = vec![port(cable.down, cable.up), spec(1)];
        let down = vec![port(cable.up, cable.down), spec(1)];
        let check = netloom_fabric::Rules::new(fabric, Bytes(cable.packet), vcs);
        netloom_fabric::check_switch(&down[..1], &check).unwrap();
        Link {
            cable,
            up: Node::with_packets(fabric, vcs, up, cable.packet),
            down: Node::with_packets(fabric, vcs, down, cable.packet),
            agenda: BTreeMap::new(),
            number: 0,
            taken: (0, 0, 0),
            on_way: BTreeMap::new(),
            credits_on_way: BTreeMap::new(),
            pauses: vec![(Time::ZERO, 0)],
            lost: 0,
        }
    }

    pub fn plan(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.agenda.insert((at, matches!(event, Event::Down(..)) as u8, self.number), event);
    }

    /// The downstream switch's way on is stopped, or free.
    pub fn stop(&mut self, at: Time, queues: u32) {
        self.plan(at, Event::Down(1, pause(1, queues)));
    }

    /// Goes on until `end`, and calls `look` whenever both switches have come to the same instant.
    pub fn run(&mut self, end: Time, mut look: impl FnMut(&Link, Time)) {
        let mut now = Time::ZERO;
        while now < end {
            now = (now + self.cable.lookahead()).min(end);
            while let Some(first) = self.agenda.first_entry().filter(|first| first.key().0 < now) {
                let ((at, _, _), event) = first.remove_entry();
                // Whatever the upstream or downstream switch starts before this instant must not be overtaken.
                self.handle(at, event);
            }
            self.up.advance(now);
            self.down.advance(now);
            self.collect();
            look(self, now);
        }
    }

    fn handle(&mut self, at: Time, event: Event) {
        match event {
            Event::Up(packet) => {
                if packet.kind == PacketKind::Pause {
                    self.pauses.push((at, packet.paused_queues()));
                }
                if packet.kind == PacketKind::Credit {
                    let queue = usize::from(packet.trail.vc().unwrap());
                    *self.credits_on_way.get_mut(&queue).unwrap() -=
                        u64::from(Credit::from_packet(&packet).bytes);
                }
                self.up.put(at, 0, packet);
            }
            Event::Down(port, packet) => {
                if packet.kind == PacketKind::Data && port == 1 {
                    *self.on_way.get_mut(&usize::from(packet.flags.class())).unwrap() -=
                        u64::from(packet.size);
                }
                self.lost += usize::from(self.down.put(at, port, packet) == Fate::Dropped);
            }
        }
    }

    /// Puts what has left one switch on its way to the other.
    fn collect(&mut self) {
        for index in self.taken.0..self.up.left.packets.len() {
            let (channel, at, packet) = self.up.left.packets[index];
            if channel == 10 {
                *self.on_way.entry(usize::from(packet.flags.class())).or_default() += u64::from(packet.size);
                self.plan(at, Event::Down(1, packet));
            }
        }
        self.taken.0 = self.up.left.packets.len();
        for index in self.taken.1..self.down.left.packets.len() {
            let (channel, at, packet) = self.down.left.packets[index];
            if channel == 10 && packet.kind == PacketKind::Pause {
                self.plan(at, Event::Up(packet));
            }
        }
        self.taken.1 = self.down.left.packets.len();
        for index in self.taken.2..self.down.left.credits.len() {
            let (channel, at, credit) = self.down.left.credits[index];
            if channel == 10 {
                *self.credits_on_way.entry(usize::from(credit.queue)).or_default() += u64::from(credit.bytes);
                self.plan(at, Event::Up(credit.to_packet()));
            }
        }
        self.taken.2 = self.down.left.credits.len();
    }

    /// When each data packet left the upstream switch, and its class. Store and forward only.
    pub fn starts(&self) -> Vec<(Time, Packet)> {
        let (delay, rate) = self.cable.down;
        let here = self.up.left.packets.iter().filter(|left| left.0 == 10);
        here.map(|&(_, at, packet)| (at - delay - rate.serialize(Bytes(u64::from(packet.size))), packet))
            .collect()
    }
}
