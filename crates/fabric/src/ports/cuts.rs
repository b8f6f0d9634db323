//! Cuts of channels, where there is no flow control: what waits is lost when the port is next touched, or goes back to its source in time.

use netloom_units::Time;

use super::Ports;
use super::start::{Output, Transmitter};
use crate::faults::{DropCause, Dropped};
use crate::packet::{Packet, PacketKind};
use crate::port::{Port, Wire};
use crate::queues::{Popped, Queues};
use crate::rules::Rules;

impl Ports {
    /// Whether the channel of a port is cut.
    pub fn is_cut(&self, port: u16, now: Time) -> bool {
        self.ports[usize::from(port)].faults().is_some_and(|faults| faults.is_within_a_cut(now))
    }

    /// What is left of a data packet, or of a header, or an answer turns back to its source as a packet of `kind`, as the channel of a port is cut:
    /// the caller sends it on its way.
    #[cold]
    pub fn turn_back(&mut self, port: u16, packet: &mut Packet, kind: PacketKind, header_size: u16) {
        self.ports[usize::from(port)].losses().returned_to_sender += 1;
        if kind == PacketKind::Unreachable {
            packet.trim(header_size);
        }
        packet.turn_round(kind);
    }

    /// The channel of a port is cut at `cut`, and nothing has been done yet of what happens from then on: of the packets that wait for it, returns those that are to go back, and
    /// loses the others.
    #[cold]
    pub fn take_from_cut(
        &mut self,
        port: u16,
        cut: Time,
        goes_back: impl Fn(&Packet) -> bool,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> Vec<Packet> {
        self.advance_port(port, cut, rules, wire);
        let Ports { ports, queues, dropped, .. } = self;
        let state = &mut ports[usize::from(port)];
        let mut back = Vec::new();
        // If another cut of the channel lasts since before, it has taken what waited.
        if let Some(from) = state.faults_mut().and_then(|faults| faults.take_flush(cut)) {
            let leaves = |_: usize, packet: &Packet| {
                let leaves = from == cut && goes_back(packet);
                back.extend(leaves.then_some(*packet));
                leaves
            };
            throw_away(state, queues, from, rules, dropped, leaves);
        }
        back
    }

    /// A packet ends here, as no route leads on.
    #[cold]
    pub fn discard(&mut self, packet: &Packet) {
        self.dropped.get_or_insert_default().note(packet, DropCause::Fault);
    }
}

impl<W: Wire> Output<'_, W> {
    /// Whether a cut of the channel takes a packet that comes now.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, packet: &Packet) -> bool {
        let Transmitter { port, dropped, at, .. } = &mut self.transmitter;
        is_taken(port, packet, at.now, self.queues, at.rules, dropped)
    }

    /// A packet has been lost that has waited: if that was because of a cut which the port has met too late, what waits is lost, too.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        let Transmitter { port, dropped, at, .. } = &mut self.transmitter;
        if let Some(cut) = port.faults_mut().and_then(|faults| faults.flush.take()) {
            throw_away(port, self.queues, cut, at.rules, dropped, |_, _| false);
        }
    }
}

/// Whether a cut of the channel takes a packet that comes to a port which is not idle. If one has come since the port was last touched,
/// it has taken what waited.
#[cold]
#[inline(never)]
fn is_taken(
    state: &mut Port,
    packet: &Packet,
    now: Time,
    queues: &mut Queues,
    rules: &Rules,
    dropped: &mut Option<Box<Dropped>>,
) -> bool {
    let Some(faults) = state.faults_mut() else { return false };
    let (flush, is_cut) = (faults.take_flush(now), faults.is_cut(now));
    if let Some(cut) = flush {
        throw_away(state, queues, cut, rules, dropped, |_, _| false);
    }
    if is_cut {
        state.losses().lost += 1;
        dropped.get_or_insert_default().note(packet, DropCause::Fault);
    } else if state.occupied == 0 {
        state.free_at = state.free_at.max(now);
    }
    is_cut
}

/// A cut takes what waits at a port in its queues, but for what `leaves`. Signals of the link are not counted.
#[cold]
#[inline(never)]
pub(super) fn throw_away(
    state: &mut Port,
    queues: &mut Queues,
    cut: Time,
    rules: &Rules,
    dropped: &mut Option<Box<Dropped>>,
    mut leaves: impl FnMut(usize, &Packet) -> bool,
) {
    let free_at = std::mem::replace(&mut state.free_at, cut);
    for queue in 0..rules.queues {
        while state.occupied >> queue & 1 == 1 {
            let Popped { packet, is_last, .. } = queues.pop(state.number(queue));
            state.note_start(packet.size, queue, is_last);
            if !leaves(queue, packet) && !packet.is_of_the_link() {
                state.losses().lost += 1;
                dropped.get_or_insert_default().note(packet, DropCause::Fault);
            }
        }
    }
    state.free_at = free_at;
}
