//! Until when flows in the send queue certainly wait for their pace: what is held back by its rate is not asked again with every packet of others, and none is while
//! all are.

use netloom_fabric::Packet;
use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use crate::message::Message;
use crate::protocol::concerns_arrivals;
use crate::protocol::packets::ACK;

/// What is known of the flows in the send queue.
#[derive(Debug, Default)]
pub(crate) struct Paces {
    /// By slot, from when on the flow may send, as it was when it was last asked. What has passed, or was never noted, says nothing: the flow must be
    /// asked.
    from: Box<[Time]>,
    /// Before then none in the send queue may send, unless it is `changed`.
    quiet_until: Time,
    /// The flow to which something has happened since.
    changed: Option<u32>,
    /// The only flow in the send queue may send, but not before then, and nothing has happened since that could change it. `Time::ZERO`: that is not known.
    rests_until: Time,
}

/// Who may be able to send.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Eligible {
    /// Any flow in the send queue.
    All,
    /// This one, all others not before then.
    One(u32, Time),
    /// None of them before then.
    None(Time),
}

impl Recur for Paces {
    fn recur(&mut self, walk: &mut Walk) {
        let Paces { from, quiet_until, changed, rests_until } = self;
        walk.count(from.len());
        from.iter_mut().for_each(|from| walk.since(from));
        walk.since(quiet_until);
        walk.exact(changed.map_or(u64::MAX, u64::from));
        // It is found again.
        *rests_until = Time::ZERO;
    }
}

impl Paces {
    /// When a flow may send, if it certainly may not at `at`.
    #[inline(always)]
    pub(crate) fn later(&self, slot: u32, at: Time) -> Option<Time> {
        self.from.get(slot as usize).copied().filter(|&from| from > at)
    }

    /// A flow that was asked at `at` may send from `from` on, unless something happens to it.
    #[inline(always)]
    pub(crate) fn note(&mut self, slot: u32, at: Time, from: Time) {
        if from > at {
            let slot = slot as usize;
            if slot >= self.from.len() {
                self.make_room(slot);
            }
            self.from[slot] = from;
        }
    }

    #[cold]
    fn make_room(&mut self, slot: usize) {
        let mut from = std::mem::take(&mut self.from).into_vec();
        from.resize((slot + 1).next_power_of_two(), Time::ZERO);
        self.from = from.into_boxed_slice();
    }

    /// Which flows may be able to send at `at`.
    #[inline(always)]
    pub(crate) fn eligible(&self, at: Time) -> Eligible {
        match self.changed {
            _ if self.quiet_until <= at => Eligible::All,
            Some(slot) => Eligible::One(slot, self.quiet_until),
            None => Eligible::None(self.quiet_until),
        }
    }

    /// None in the send queue may send before then. `Time::ZERO`: that is not known.
    #[inline(always)]
    pub(crate) fn note_quiet(&mut self, quiet_until: Time) {
        self.quiet_until = quiet_until;
        self.changed = None;
    }

    /// The only flow in the send queue may send, but not before then.
    #[inline(always)]
    pub(crate) fn rest(&mut self, until: Time) {
        self.rests_until = until;
    }

    /// Whether the flows certainly send nothing before `now`.
    #[inline(always)]
    pub(crate) fn rests(&self, now: Time) -> bool {
        self.rests_until >= now
    }

    /// Something happens to the flow in a slot.
    #[inline(always)]
    pub(crate) fn forget(&mut self, slot: u32) {
        self.rests_until = Time::ZERO;
        self.forget_pace(slot);
    }

    /// The same, except that what it means for [`Self::rests`] is still to be said.
    #[inline(always)]
    fn forget_pace(&mut self, slot: u32) {
        if let Some(from) = self.from.get_mut(slot as usize) {
            *from = Time::ZERO;
        }
        if self.quiet_until > Time::ZERO && self.changed.replace(slot).is_some_and(|other| other != slot) {
            self.quiet_until = Time::ZERO;
        }
    }

    /// Something may happen to any flow.
    pub(crate) fn forget_all(&mut self) {
        self.from.fill(Time::ZERO);
        self.quiet_until = Time::ZERO;
        self.rests_until = Time::ZERO;
    }

    /// A timer is about to be handled.
    pub(crate) fn forget_by_timer(&mut self, timer: &Message) {
        match timer {
            Message::FlowTimer { slot, .. } | Message::PauseLimit { slot, .. } => self.forget(*slot),
            _ => self.forget_all(),
        }
    }

    /// A packet is about to be handled. Whether an ACK ends the [rest](Self::rest) is for its handler to say.
    #[inline(always)]
    pub(crate) fn forget_by_packet(&mut self, packet: &Packet) {
        if !concerns_arrivals(packet.kind) {
            match packet.kind {
                ACK => self.forget_pace(packet.slot),
                _ => self.forget(packet.slot),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netloom_fabric::PacketKind;

    use super::*;
    use crate::protocol::packets::{
        CNP, NACK, PATH_PROBE, PATH_PROBE_ANSWER, PROBE, PROBE_ANSWER, PULL, REQUEST, UNREACHABLE_ACK,
    };

    #[test]
    fn a_flow_is_asked_again_when_its_pace_lets_it_or_something_happens_to_it() {
        let packet = |kind, slot| Packet { kind, slot, ..Packet::EMPTY };
        let asked_after = |happens: &dyn Fn(&mut Paces)| {
            let mut paces = Paces::default();
            for slot in [1, 2] {
                paces.note(slot, Time(5), Time(9));
            }
            happens(&mut paces);
            [1, 2].map(|slot| paces.later(slot, Time(8)).is_none())
        };
        let after_packet = |packet: Packet| asked_after(&|paces| paces.forget_by_packet(&packet));
        let after_timer = |timer: Message| asked_after(&|paces| paces.forget_by_timer(&timer));
        // The slot is one of the host from which it comes, and may be beyond all slots here.
        for kind in [PacketKind::Data, PacketKind::Header, REQUEST, PROBE, PATH_PROBE, UNREACHABLE_ACK] {
            assert_eq!(after_packet(packet(kind, 1)), [false, false], "{kind:?}");
        }
        for kind in [ACK, NACK, CNP, PULL, PROBE_ANSWER, PATH_PROBE_ANSWER, PacketKind::Returned] {
            assert_eq!(after_packet(packet(kind, 1)), [true, false], "{kind:?}");
        }
        assert_eq!(after_timer(Message::FlowTimer { slot: 2, flow: 7 }), [false, true]);
        assert_eq!(after_timer(Message::Start), [true, true]);
        assert_eq!(asked_after(&|paces| paces.forget_all()), [true, true]);

        let mut paces = Paces::default();
        paces.note(3, Time(5), Time(5));
        assert_eq!([0, 3, 9].map(|slot| paces.later(slot, Time(4))), [None; 3]);
        paces.note(3, Time(5), Time(9));
        assert_eq!([5, 8, 9].map(|at| paces.later(3, Time(at))), [Some(Time(9)), Some(Time(9)), None]);
    }

    #[test]
    fn nobody_is_asked_while_all_wait_but_the_one_to_whom_something_happened() {
        let mut paces = Paces::default();
        assert_eq!(paces.eligible(Time(4)), Eligible::All);
        paces.note_quiet(Time(9));
        assert_eq!(
            [4, 8, 9].map(|at| paces.eligible(Time(at))),
            [Eligible::None(Time(9)), Eligible::None(Time(9)), Eligible::All]
        );
        for _ in 0..2 {
            paces.forget(3);
            assert_eq!(paces.eligible(Time(4)), Eligible::One(3, Time(9)));
        }
        paces.forget(2);
        assert_eq!(paces.eligible(Time(4)), Eligible::All);
        paces.note_quiet(Time(9));
        assert_eq!(paces.eligible(Time(4)), Eligible::None(Time(9)));
        paces.forget_by_timer(&Message::Start);
        assert_eq!(paces.eligible(Time(4)), Eligible::All);
    }

    #[test]
    fn a_flow_rests_until_something_happens_that_could_let_it_send_earlier() {
        let rests_after = |happens: &dyn Fn(&mut Paces)| {
            let mut paces = Paces::default();
            paces.rest(Time(9));
            happens(&mut paces);
            [9, 10].map(|now| paces.rests(Time(now)))
        };
        let after_packet =
            |kind| rests_after(&|paces| paces.forget_by_packet(&Packet { kind, slot: 1, ..Packet::EMPTY }));
        for kind in [PacketKind::Data, ACK] {
            assert_eq!(after_packet(kind), [true, false], "{kind:?}");
        }
        for kind in [CNP, NACK, PULL] {
            assert_eq!(after_packet(kind), [false, false], "{kind:?}");
        }
        assert_eq!(rests_after(&|paces| paces.forget(2)), [false, false]);
        for timer in [Message::FlowTimer { slot: 2, flow: 7 }, Message::Start] {
            assert_eq!(rests_after(&|paces| paces.forget_by_timer(&timer)), [false, false]);
        }
    }
}
