//! Ports that trim what finds no room.

use netloom_units::Time;
use rand::Rng;

use super::enqueue::Admission;
use super::just_after;
use super::start::{Output, Transmitter};
use crate::faults::DropCause;
use crate::packet::{Packet, PacketKind};
use crate::port::{Fate, LAST_RANK, Wire};
use crate::rules::{CONTROL, DATA, Step, Trims};

/// A data packet without room loses its payload. Afterwards the packet that came is the one that had no room and is dropped, trimmed or sent back.
pub(super) struct Trimming<'a>(pub(super) &'a Trims);

impl Admission for Trimming<'_> {
    const COUNTS_CONTROL: bool = true;

    #[inline(always)]
    fn admit(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Result<usize, Fate> {
        let Transmitter { port, at, .. } = &output.transmitter;
        let is_sound = !at.rules.has_faults || port.faults().is_none();
        if is_sound && self.has_room(output, packet, queue, at.now) {
            output.mark_arrival(packet, queue, random);
            count_early(output, queue);
            return Ok(queue);
        }
        self.admit_exactly(&mut output.again(), packet, queue, random)
    }
}

/// A packet is about to wait in a queue. Control packets that were handed on early, and begin from now on, are sent while data wait if it is the first one of these: they are counted as if they waited, too.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most u8::MAX")]
fn count_early<W: Wire>(output: &mut Output<'_, W>, queue: usize) {
    let Output { service, transmitter: Transmitter { port, index, at, .. }, .. } = output;
    if port.early > 0 && queue >= DATA && port.occupied >> DATA == 0 {
        service[*index].control_sent = port.early_from(at.now) as u32;
    }
}

impl Trimming<'_> {
    /// Sends a control packet that comes to a port which has been advanced to this instant: at once if the port is idle, or else [early](crate::port::Port::start_early); `false`: nothing has been done with it. It goes before all that may
    /// still come if no other control packet waits, no more of them are on their way out than may go in a row before data, and there is room for all of these. Where data wait, it is counted at once among
    /// those that go before them; where none do, nothing is counted.
    // Not a part of how packets come to any queue: where nothing is trimmed, the compiler made more of that.
    #[inline(always)]
    pub(super) fn sends_control(&self, output: &mut Output<'_, impl Wire>, packet: &mut Packet) -> bool {
        let Output { service, transmitter: Transmitter { port, index, at, .. }, .. } = output;
        if u32::from(port.early) >= self.0.most_early {
            return false;
        }
        if port.occupied == 0 {
            if let Some(departure) = port.start_control(packet, at.now) {
                at.wire.depart(departure);
                return true;
            }
        } else if port.occupied >> CONTROL & 1 == 0
            && service[*index].control_sent < self.0.control_weight
            && let Some(departure) = port.start_early(packet, at.now)
        {
            at.wire.depart(departure);
            service[*index].control_sent += 1;
            return true;
        }
        false
    }

    /// Admits a packet for which there is no room, or which a cut of the channel may take.
    #[inline(never)]
    fn admit_exactly(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) -> Result<usize, Fate> {
        let now = output.transmitter.at.now;
        if output.transmitter.port.faults().is_some() && output.is_taken(packet) {
            return Err(Fate::Dropped);
        }
        let mut has_room = self.has_room(output, packet, queue, now);
        if !has_room {
            output.start_all_before(just_after(now));
            output.transmitter.port.forget_early_before(just_after(now));
            has_room = self.has_room(output, packet, queue, just_after(now));
        }
        if has_room {
            output.mark_arrival(packet, queue, random);
            count_early(output, queue);
            return Ok(queue);
        }
        if packet.is_data() {
            self.trim(output, packet, queue, random);
            let queue = output.transmitter.at.rules.queue_out(packet, || Step::Next);
            if self.has_room(output, packet, queue, just_after(now)) {
                return Ok(queue);
            }
        }
        Err(self.reject(output, packet))
    }

    /// Whether a packet fits its queue. An empty queue takes one of any size: a port that is idle would send it at once. A NIC keeps no queue of
    /// data, and its own signals always fit. `from`: what was handed on early waits if it begins then or later.
    #[inline(always)]
    fn has_room(&self, output: &Output<'_, impl Wire>, packet: &Packet, queue: usize, from: Time) -> bool {
        let Transmitter { port, at, is_host, trims_plainly, .. } = &output.transmitter;
        let (buffer, control_buffer) = (at.rules.buffer, self.0.control_buffer);
        let limit = match queue {
            CONTROL => control_buffer,
            _ if *trims_plainly || packet.is_data() => buffer,
            // Without a queue of their own, control packets have their room beside that of the data.
            _ => buffer.saturating_add(control_buffer),
        };
        let mut queued = output.bytes(queue);
        if queue == CONTROL && port.early > 0 {
            queued += port.early_from(from) * u64::from(port.early_size);
        }
        *is_host || queued == 0 || queued + u64::from(packet.size) <= limit
    }

    /// A data packet finds no room: it loses its payload, or the last one in the queue does and leaves its place to it.
    fn trim(
        &self,
        output: &mut Output<'_, impl Wire>,
        packet: &mut Packet,
        queue: usize,
        random: &mut impl Rng,
    ) {
        let takes_last = random.next_u32() & 1 == 1;
        let place = output.transmitter.port.number(queue);
        let last = output.queues.last(place);
        if last.is_some_and(|last| takes_last && last.is_data() && last.size >= packet.size) {
            output.mark_arrival(packet, queue, random);
            let last = output.queues.replace_last(place, packet);
            let Transmitter { port, at, .. } = &mut output.transmitter;
            port.note_exchange(last.size, packet.size, at.now);
            *packet = last;
        }
        let port = &mut output.transmitter.port;
        port.losses().trims += 1;
        packet.flags.set_at_last_hop(port.rank == LAST_RANK);
        packet.trim(self.0.header_size);
    }

    /// A packet without payload finds no room: a header goes back to its sender, once, and everything else is lost.
    fn reject(&self, output: &mut Output<'_, impl Wire>, packet: &mut Packet) -> Fate {
        let Transmitter { port, dropped, .. } = &mut output.transmitter;
        let losses = port.losses();
        if self.0.return_to_sender && packet.is_header() {
            losses.returned_to_sender += 1;
            packet.turn_round(PacketKind::Returned);
            return Fate::Returned;
        }
        losses.drops += 1;
        dropped.get_or_insert_default().note(packet, DropCause::Full);
        Fate::Dropped
    }
}
