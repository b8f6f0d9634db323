//! What is asked for: the PULLs that the receivers of a host owe, in turn, and the requests of flows.

use std::collections::VecDeque;

use netloom_fabric::{Packet, flow_number};
use netloom_transport::{CreditQueue, HostBus, PullWindow, Pulls, ReceiverRate};
use netloom_units::memory::push_few;
use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Time, narrow};

use crate::protocol::numbers_of;
use crate::protocol::packets::REQUEST;
use crate::protocol::state::HostState;

/// What a host keeps. Absent until first needed, so that an idle host stays small.
#[derive(Debug, Default)]
pub(crate) struct AtHost {
    pub(crate) queue: Option<Box<PullQueue>>,
    pub(crate) credit: Option<Box<CreditPulls>>,
    pub(crate) requests: Option<Box<Requests>>,
}

impl HostState for AtHost {
    fn recur(&mut self, walk: &mut Walk) {
        let AtHost { queue, credit, requests } = self;
        if credit.is_some() {
            walk.refuse("receivers that grant credit");
        }
        // They leave at the instant at which they come.
        if requests.as_ref().is_some_and(|requests| !requests.waiting.is_empty()) {
            walk.pass_over();
        }
        if walk.is_some(queue)
            && let Some(queue) = queue
        {
            queue.recur(walk);
        }
    }

    #[inline(always)]
    fn next_wake(&self) -> Option<Time> {
        self.requests.as_ref()?.next()
    }
}

/// The next PULL may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PullDue;

/// What the receivers of a host owe to their senders.
#[derive(Debug, Default)]
pub(crate) struct PullQueue {
    /// By receiver.
    pub(crate) credits: Vec<PullCredits>,
    /// By receiver, where windows are adaptive.
    pub(crate) windows: Vec<PullWindow>,
    /// The receivers that owe something, in turn, and some that owe nothing any more.
    pub(crate) pending: VecDeque<u32>,
    pub(crate) pacer: Pacer,
    /// How long a PULL waits for the one before it, once that is known where it is the same for all.
    pub(crate) interval: Option<Time>,
}

impl Recur for PullQueue {
    fn recur(&mut self, walk: &mut Walk) {
        let PullQueue { credits, windows, pending, pacer, interval } = self;
        walk.count(credits.len());
        credits.iter_mut().for_each(|credits| credits.recur(walk));
        walk.count(windows.len());
        windows.iter_mut().for_each(|window| window.recur(walk));
        walk.count(pending.len());
        pending.iter().for_each(|&receiver| walk.exact(receiver));
        pacer.recur(walk);
        if walk.is_some(interval) {
            walk.exact(interval.unwrap_or_default().0);
        }
    }
}

/// What spaces PULLs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// The earliest moment for the next PULL.
    pub(crate) opens: Time,
    /// When the timer for it fires.
    timer: Option<Time>,
}

impl Recur for Pacer {
    fn recur(&mut self, walk: &mut Walk) {
        let Pacer { opens, timer } = self;
        walk.since(opens);
        if walk.is_some(timer)
            && let Some(timer) = timer
        {
            walk.time(timer);
        }
    }
}

impl Pacer {
    /// The timer to set, if none is set already.
    pub(crate) fn arm(&mut self, now: Time) -> Option<Time> {
        if self.timer.is_some() {
            return None;
        }
        self.timer = Some(self.opens.max(now));
        self.timer
    }

    /// A timer fires: whether it is the one that counts.
    pub(crate) fn fires(&mut self, now: Time) -> bool {
        self.timer.take_if(|timer| *timer == now).is_some()
    }
}

/// What the receivers of a host grant to their senders, where PULLs are for credit.
#[derive(Debug)]
pub(crate) struct CreditPulls {
    pub(crate) queue: CreditQueue,
    /// By receiver, the last packet that came: whom to grant it.
    pub(crate) whom: Vec<Packet>,
    pub(crate) pacer: Pacer,
    /// The pace by what is marked and trimmed, where that matters.
    pub(crate) rate: ReceiverRate,
    /// What waits for the host's bus, where that matters.
    pub(crate) bus: HostBus,
}

impl CreditPulls {
    /// Those of a host at which something arrives for the first time.
    pub(crate) fn new(now: Time) -> Self {
        CreditPulls {
            queue: CreditQueue::default(),
            whom: Vec::new(),
            pacer: Pacer::default(),
            rate: ReceiverRate::new(now),
            bus: HostBus::default(),
        }
    }
}

/// The PULLs of one receiver.
#[derive(Clone, Debug)]
pub(crate) struct PullCredits {
    /// The last packet that came: whom to ask.
    packet: Packet,
    /// PULLs to send.
    pulls: u32,
    /// Those sent.
    sent: u32,
    is_pending: bool,
}

impl Recur for PullCredits {
    fn recur(&mut self, walk: &mut Walk) {
        let PullCredits { packet, pulls, sent, is_pending } = self;
        walk.exact(*is_pending);
        walk.exact(*pulls);
        walk.exact(*sent > 0);
        // What came last of a flow that has ended says nothing.
        if *pulls == 0 && *sent == 0 {
            return;
        }
        walk.exact(packet.src);
        let mut flow = packet.flow;
        let is_successor = walk.flow(packet.src, &mut flow);
        // Where nothing is owed, another packet comes before anything is.
        if *pulls > 0 {
            packet.recur(numbers_of, walk);
        }
        packet.flow = flow;
        walk.pulls(flow_number(packet.src, flow), is_successor, sent);
    }
}

const NOTHING: PullCredits = PullCredits { packet: Packet::EMPTY, pulls: 0, sent: 0, is_pending: false };

impl PullQueue {
    /// A packet, or its header, has come for a receiver, which can make use of no more than `most` packets.
    #[inline(always)]
    pub(crate) fn add(&mut self, pulls: &Pulls, receiver: u32, packet: &Packet, most: u32) {
        let index = receiver as usize;
        while index >= self.credits.len() {
            push_few(&mut self.credits, NOTHING);
        }
        let credits = &mut self.credits[index];
        credits.packet = *packet;
        let worth = match &pulls.adaptive {
            // A request is no packet of the window: it has its PULL in any case.
            Some(adaptive) if packet.kind != REQUEST => {
                while index >= self.windows.len() {
                    push_few(&mut self.windows, PullWindow::new(pulls));
                }
                let is_whole = packet.is_data();
                self.windows[index].on_arrival(adaptive, is_whole, most, credits.pulls > 0)
            }
            _ => 1,
        };
        credits.pulls = (credits.pulls + worth).min(most);
        if credits.pulls > 0 && !credits.is_pending {
            credits.is_pending = true;
            self.pending.push_back(receiver);
        }
    }

    /// A receiver has got everything; its number may be given to another flow, which has no place in the line yet.
    pub(crate) fn clear(&mut self, pulls: &Pulls, receiver: u32) {
        if let Some(credits) = self.credits.get_mut(receiver as usize) {
            if credits.is_pending
                && let Some(place) = self.pending.iter().position(|&other| other == receiver)
            {
                self.pending.remove(place);
            }
            (credits.pulls, credits.sent, credits.is_pending) = (0, 0, false);
        }
        if let Some(window) = self.windows.get_mut(receiver as usize) {
            *window = PullWindow::new(pulls);
        }
    }

    /// Takes the next PULL out: the packet whose sender is asked, and the number of PULLs that it has been sent with this one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(&Packet, u32)> {
        let PullQueue { credits, pending, .. } = self;
        let receiver = loop {
            let receiver = pending.pop_front()? as usize;
            if credits[receiver].pulls > 0 {
                break receiver;
            }
            credits[receiver].is_pending = false;
        };
        let of_receiver = &mut credits[receiver];
        of_receiver.pulls -= 1;
        of_receiver.sent += 1;
        of_receiver.is_pending = of_receiver.pulls > 0;
        if of_receiver.is_pending {
            pending.push_back(narrow(receiver));
        }
        Some((&of_receiver.packet, of_receiver.sent))
    }
}

/// The requests that a host has to send: of flows that begin where nothing can leave yet, or that lack credit.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By slot and number of the flow, how many, all at one instant.
    pub(crate) waiting: Vec<(u32, u32, u32)>,
    pub(crate) at: Time,
}

impl Requests {
    /// A flow asks for `count` packets, or once for credit.
    pub(crate) fn add(&mut self, slot: u32, flow: u32, count: u32, now: Time) {
        self.waiting.push((slot, flow, count));
        self.at = now;
    }

    /// When they leave, if there are any.
    pub(crate) fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flow: u32) -> Packet {
        Packet { flow, ..Packet::EMPTY }
    }

    fn order(queue: &mut PullQueue) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| queue.pop().map(|(packet, count)| (packet.flow, count))).collect()
    }

    #[test]
    fn flows_take_turns_whatever_they_are_owed() {
        let mut queue = PullQueue::default();
        for receiver in [0, 0, 0, 1, 2, 2] {
            queue.add(&Pulls::default(), receiver, &of(receiver), u32::MAX);
        }
        assert_eq!(order(&mut queue), [(0, 1), (1, 1), (2, 1), (0, 2), (2, 2), (0, 3)]);
    }

    #[test]
    fn nobody_is_asked_for_what_has_come_and_a_new_flow_counts_from_one() {
        let mut queue = PullQueue::default();
        for _ in 0..5 {
            queue.add(&Pulls::default(), 0, &of(7), u32::MAX);
        }
        queue.add(&Pulls::default(), 0, &of(7), 2);
        assert_eq!(queue.pop().map(|(_, count)| count), Some(1));
        queue.clear(&Pulls::default(), 0);
        assert_eq!(order(&mut queue), []);
        queue.add(&Pulls::default(), 0, &of(8), 9);
        assert_eq!(order(&mut queue), [(8, 1)]);
    }

    #[test]
    fn a_new_flow_does_not_take_the_place_of_one_that_has_ended() {
        let mut queue = PullQueue::default();
        for receiver in [0, 1, 2] {
            queue.add(&Pulls::default(), receiver, &of(receiver), u32::MAX);
        }
        queue.clear(&Pulls::default(), 0);
        queue.add(&Pulls::default(), 0, &of(3), u32::MAX);
        assert_eq!(order(&mut queue), [(1, 1), (2, 1), (3, 1)]);
    }

    /// Whether a queue is the same as another one a period of ten before, after what was done to each.
    fn recurs(before: impl Fn(&mut PullQueue), after: impl Fn(&mut PullQueue)) -> bool {
        let (mut first, mut second) = (PullQueue::default(), PullQueue::default());
        before(&mut first);
        let mut walk = Walk::note(Time(100));
        first.recur(&mut walk);
        after(&mut second);
        walk.begin_to_compare(Time(110));
        second.recur(&mut walk);
        walk.recurs()
    }

    /// Packets of flow 7 that were sent from this instant on, one after the other, and as many PULLs as were popped.
    fn with(queue: &mut PullQueue, (from, packets): (u64, u64), popped: usize) {
        for sent in (0..packets).map(|packet| Time(from + packet)) {
            queue.add(&Pulls::default(), 0, &Packet { sent, seq: narrow(sent.0), ..of(7) }, u32::MAX);
        }
        (0..popped).for_each(|_| _ = queue.pop());
    }

    #[test]
    fn what_is_owed_recurs_with_the_packet_that_came_last() {
        let before = |queue: &mut PullQueue| with(queue, (90, 3), 2);
        assert!(recurs(before, |queue| with(queue, (98, 5), 4)));
        assert!(!recurs(before, |queue| with(queue, (98, 6), 4)), "more is owed");
        assert!(!recurs(before, |queue| with(queue, (97, 5), 4)), "it was sent at another time");
        // While nothing is owed it is of no use.
        assert!(recurs(|queue| with(queue, (90, 3), 3), |queue| with(queue, (97, 5), 5)));
        let ended = |from, packets| {
            move |queue: &mut PullQueue| {
                with(queue, (from, packets), 0);
                queue.clear(&Pulls::default(), 0);
            }
        };
        assert!(recurs(ended(90, 3), ended(50, 7)));
    }

    #[test]
    fn what_spaces_pulls_moves_with_the_time() {
        let at =
            |opens, timer| move |queue: &mut PullQueue| queue.pacer = Pacer { opens: Time(opens), timer };
        assert!(recurs(at(105, Some(Time(105))), at(115, Some(Time(115)))));
        assert!(!recurs(at(105, Some(Time(105))), at(116, Some(Time(116)))));
        assert!(!recurs(at(105, Some(Time(105))), at(115, None)));
        assert!(recurs(at(80, None), at(95, None)), "it may be that it opened at any time");
    }
}
