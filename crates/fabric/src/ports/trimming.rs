//! Ports that trim what finds no room.

use netloom_units::Time;
use rand::Rng;

use super::{Ports, after, is_taken, start_at_once};
use crate::faults::DropCause;
use crate::packet::{Packet, PacketKind};
use crate::port::{Fate, Wire};
use crate::rules::{CONTROL, Rules, Trims};

impl Ports {
    /// [`Self::enqueue`] where packets are trimmed. Afterwards `packet` is the one that had no room and is dropped, trimmed or sent back.
    #[expect(clippy::too_many_arguments, reason = "those of enqueue")]
    #[inline(never)]
    pub(super) fn enqueue_trimming(
        &mut self,
        port: u16,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        trims: &Trims,
        random: &mut impl Rng,
        wire: &mut impl Wire,
    ) -> Fate {
        let index = usize::from(port);
        self.advance_port(port, now, rules, wire);
        let lane = rules.trimming_lane(packet);
        let state = &mut self.ports[index];
        let is_alone = state.occupied == 0 && state.free_at <= now;
        if is_alone && lane < rules.first_shared {
            self.turns[index].control = 0;
            start_at_once(state, packet, now, &mut self.dropped, wire);
            return Fate::Queued;
        }
        if state.faults().is_some()
            && is_taken(state, packet, now, &mut self.queues, rules, &mut self.dropped)
        {
            return Fate::Dropped;
        }
        let mut has_room = self.has_room(index, lane, packet, rules, trims);
        if !has_room {
            self.advance_port(port, after(now), rules, wire);
            has_room = self.has_room(index, lane, packet, rules, trims);
        }
        if has_room {
            if packet.is_data() {
                let state = &mut self.ports[index];
                state.mark_arrival(packet, self.queues.bytes(state.lane(lane)), rules, random);
            }
            self.append(index, lane, packet, now);
            return Fate::Queued;
        }
        if packet.is_data() {
            self.trim(index, lane, packet, now, rules, trims, random);
            let lane = rules.trimming_lane(packet);
            if self.has_room(index, lane, packet, rules, trims) {
                self.append(index, lane, packet, now);
                return Fate::Queued;
            }
        }
        self.refuse(index, packet, trims)
    }

    /// Whether a packet fits its lane. An empty lane takes one of any size: a port that is idle would send it at once. A NIC keeps no queue of
    /// data, and its own signals always fit.
    fn has_room(&self, index: usize, lane: usize, packet: &Packet, rules: &Rules, trims: &Trims) -> bool {
        let limit = match lane {
            CONTROL => trims.control_buffer,
            _ if packet.is_data() => rules.buffer,
            // Without a lane of their own, control packets have their room beside that of the data.
            _ => rules.buffer.saturating_add(trims.control_buffer),
        };
        let queued = self.queues.bytes(self.ports[index].lane(lane));
        self.is_host || queued == 0 || queued + u64::from(packet.size) <= limit
    }

    /// A data packet finds no room: it loses its payload, or the last one in the queue does and leaves its place to it.
    #[expect(clippy::too_many_arguments, reason = "those of enqueue")]
    fn trim(
        &mut self,
        index: usize,
        lane: usize,
        packet: &mut Packet,
        now: Time,
        rules: &Rules,
        trims: &Trims,
        random: &mut impl Rng,
    ) {
        let Ports { ports, queues, .. } = self;
        let state = &mut ports[index];
        let place = state.lane(lane);
        let queued = queues.bytes(place);
        let takes_last = random.next_u32() & 1 == 1;
        let last = queues.last(place).filter(|last| takes_last && last.is_data() && last.size >= packet.size);
        if last.is_some() {
            state.mark_arrival(packet, queued, rules, random);
            let last = queues.replace_last(place, packet);
            state.note_exchange(last.size, packet.size, now);
            *packet = last;
        }
        state.losses().trims += 1;
        packet.trim(trims.header_size);
    }

    /// A packet without payload finds no room: a header goes back to its sender, once, and everything else is lost.
    fn refuse(&mut self, index: usize, packet: &mut Packet, trims: &Trims) -> Fate {
        let losses = self.ports[index].losses();
        if trims.return_to_sender && packet.is_header() {
            losses.returned_to_sender += 1;
            packet.turn_round(PacketKind::Returned);
            return Fate::Returned;
        }
        losses.drops += 1;
        self.dropped.get_or_insert_default().note(packet, DropCause::Full);
        Fate::Dropped
    }
}
