//! One rank's iteration, written as one exchange after the other.

use netloom_units::{Bytes, Time};

use crate::pattern::collective::Operation;
use crate::program::{Accept, RankBuilder};

/// Messages of this size in bytes and above are announced first, where any are.
const RENDEZVOUS: u64 = 4_000;
/// Announcement and clearance.
const CONTROL: Bytes = Bytes(16);

const DATA: u32 = 0;
const ANNOUNCEMENT: u32 = 1;
const CLEARANCE: u32 = 2;

/// The operations of one rank.
pub(super) struct Script {
    builder: RankBuilder,
    /// The last operations, after which the next exchange may begin.
    last: Vec<u32>,
    factor: f64,
    /// Size in bytes, before scaling, from which messages are announced.
    rendezvous: u64,
    /// What the rank sends in all.
    sent: Bytes,
}

/// A message: the other rank, and the size before scaling.
pub(super) type Part = (u32, u64);

impl Script {
    /// A script whose sizes are multiplied by a factor; whether it announces large messages.
    pub(super) fn new(factor: f64, announces: bool) -> Self {
        let rendezvous = if announces { RENDEZVOUS } else { u64::MAX };
        Script { builder: RankBuilder::default(), last: Vec::new(), factor, rendezvous, sent: Bytes(0) }
    }

    /// Sends and receives at the same time, each message as soon as it can.
    pub(super) fn exchange(&mut self, sends: &[Part], recvs: &[Part]) {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for &(dst, bytes) in sends {
            let data = self.send(dst, Bytes(bytes), DATA);
            last.push(data);
            first.push(self.announced(data, bytes, |script| {
                let announcement = script.send(dst, CONTROL, ANNOUNCEMENT);
                (announcement, script.builder.recv(Accept::Only(dst), Accept::Only(CLEARANCE)))
            }));
        }
        for &(src, bytes) in recvs {
            let data = self.builder.recv(Accept::Only(src), Accept::Only(DATA));
            last.push(data);
            first.push(self.announced(data, bytes, |script| {
                let announcement = script.builder.recv(Accept::Only(src), Accept::Only(ANNOUNCEMENT));
                (announcement, script.send(src, CONTROL, CLEARANCE))
            }));
        }
        if !first.is_empty() {
            self.builder.after_all(&first, &self.last);
            self.last = last;
        }
    }

    /// Puts announcement and clearance before a large message; returns what begins first.
    fn announced(&mut self, data: u32, bytes: u64, control: impl FnOnce(&mut Script) -> (u32, u32)) -> u32 {
        if bytes < self.rendezvous {
            return data;
        }
        let (announcement, clearance) = control(self);
        self.builder.requires(clearance, announcement);
        self.builder.requires(data, clearance);
        announcement
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 on; saturates, and plan.rs refuses messages that the transport cannot number"
    )]
    fn send(&mut self, dst: u32, bytes: Bytes, tag: u32) -> u32 {
        let bytes = Bytes((bytes.0 as f64 * self.factor).round() as u64);
        self.sent = Bytes(self.sent.0.saturating_add(bytes.0));
        self.builder.send(dst, bytes, tag)
    }

    /// A collective operation of some ranks, of which this one is number `index`; `member` gives the rank of a number.
    pub(super) fn collective(&mut self, operation: Operation, index: u32, member: impl Fn(u32) -> u32) {
        for step in 0..operation.steps() {
            let (to, from) = operation.step(index, step);
            let part = |(index, Bytes(bytes))| (member(index), bytes);
            self.exchange(to.map(part).as_slice(), from.map(part).as_slice());
        }
    }

    /// Ends the iteration with a calculation, the duration of which may follow from what the rank sends.
    pub(super) fn compute(mut self, duration: impl FnOnce(Bytes) -> Time) -> RankBuilder {
        let duration = duration(self.sent);
        if duration > Time::ZERO {
            let calc = self.builder.calc(duration);
            self.builder.after_all(&[calc], &self.last);
        }
        self.builder
    }
}
