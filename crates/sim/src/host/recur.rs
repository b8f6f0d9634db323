//! How the state of a host recurs: what each field of it means to the [walk](netloom_units::recurrence).

use std::ops::Range;

use netloom_fabric::{Packet, flow_number};
use netloom_transport::Transport;
use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};
use netloom_workload::HostWork;

use crate::host::coalescing::Interrupts;
use crate::host::ends::hand_in_sent;
use crate::host::flow::Flow;
use crate::host::reorder_buffer::Reordering;
use crate::host::sent::Sent;
use crate::host::{DelayedAck, Host, Rare, Reports};
use crate::protocol::numbers_of;
use crate::world::World;

impl Host {
    /// The host `id` must have come to `now`. What its work has it do next is looked at only where flows may be succeeded by others: else no period recurs in which a flow begins or ends, or the
    /// program wakes. That is the work `of_server`, if it is a NIC of one.
    pub(crate) fn recur(
        &mut self,
        world: &World,
        (id, now): (u32, Time),
        of_server: Option<&HostWork>,
        walk: &mut Walk,
    ) {
        let Host {
            nic,
            port_selector,
            path_selector,
            random,
            work,
            upcoming: _,
            has_begun,
            flows,
            free_slots,
            next_flow,
            // The same is found again.
            last_idle: _,
            send_queue,
            paces,
            queue,
            leaving,
            paused_classes,
            departed,
            checked,
            receivers,
            protocols,
            rare,
            reports,
            connections,
            reordering,
            sent,
            control_sent,
            control_received,
            sampler,
            meters,
            last_event,
        } = self;
        if walk.has_successors() && of_server.is_none() {
            work.recur(id, false, walk);
        }
        nic.recur(now, numbers_of, walk);
        if port_selector.is_some() {
            walk.refuse("NICs with several ports that are one");
        }
        if path_selector.as_ref().is_some_and(|path_selector| path_selector.listens()) {
            walk.refuse("a routing scheme that learns from ACKs at hosts");
        }
        walk.stream(random);
        walk.exact(*has_begun);
        walk.count(flows.len());
        for flow in flows.iter_mut() {
            if walk.is_some(flow)
                && let Some(flow) = flow
            {
                flow.recur(&world.transport, walk);
            }
        }
        free_slots.recur(walk);
        walk.exact(*next_flow);
        send_queue.recur(walk);
        paces.recur(walk);
        if queue.is_some() {
            walk.refuse("a NIC with a queue");
        }
        if leaving.is_some() {
            walk.pass_over();
        }
        walk.exact(*paused_classes);
        if meters.is_some() {
            walk.refuse("samples of senders");
        }
        if walk.is_some(departed)
            && let Some(departed) = departed
        {
            departed.recur(walk);
        }
        walk.since(checked);
        receivers.recur(&world.recorder, walk);
        protocols.recur(walk);
        if walk.is_some(rare)
            && let Some(rare) = rare
        {
            rare.recur((id, of_server.unwrap_or(work)), walk);
        }
        if let Some(reports) = reports {
            let Reports { events, ending } = &**reports;
            walk.count(events.len());
            walk.count(ending.len());
        }
        if connections.is_some() {
            walk.refuse("flows of several subflows");
        }
        if walk.is_some(reordering)
            && let Some(reordering) = reordering
        {
            reordering.recur(walk);
        } else if walk.counts() {
            // There may be some by the time of the next walk.
            Reordering::default().recur(walk);
        }
        // Which of several paths a flow takes may depend on its number.
        let is_another = |flow: &&Flow| walk.successor(id, flow.at.key.flow, 1) != flow.at.key.flow;
        let mut others = flows.iter().flatten().filter(is_another);
        if others.any(|flow| !world.has_one_path(id, flow.dst)) {
            walk.pass_over();
        }
        if let Some(ended) = walk.log(sent.len()) {
            follow(world, (id, sent), ended, of_server.unwrap_or(work), walk);
        }
        walk.sum(control_sent);
        walk.sum(control_received);
        if sampler.is_some() {
            walk.refuse("samples and traces");
        }
        walk.last(last_event);
    }
}

/// What is kept of flows that have `ended` in the period is kept again for those that succeed them.
fn follow(
    world: &World,
    (id, sent): (u32, &mut Vec<Sent>),
    ended: Range<usize>,
    work: &HostWork,
    walk: &mut Walk,
) {
    if walk.periods_to_move() == 0 {
        let mut last = None;
        for sent in &sent[ended] {
            match work.succession(sent.flow, walk) {
                // It is not known which flow follows.
                0 => walk.pass_over(),
                moved => walk.succeed(id, sent.flow, moved),
            }
            // Which of several paths that one takes may depend on its number.
            if last.replace(sent.dst()) != Some(sent.dst()) && !world.has_one_path(id, sent.dst()) {
                walk.pass_over();
            }
        }
        return;
    }
    let ended = sent[ended].to_vec();
    for period in 1..=walk.periods_to_move() {
        let later =
            |ended: &Sent| ended.later(walk.successor(id, ended.flow, period), walk.period() * period);
        sent.extend(ended.iter().map(later));
        // There may be many of them.
        if sent.len() >= world.recorder.kept() {
            hand_in_sent(sent, world, id);
        }
    }
}

impl Flow {
    /// [Recurs](Recur).
    fn recur(&mut self, transport: &Transport, walk: &mut Walk) {
        let Flow {
            at,
            dst,
            group,
            class,
            queue,
            is_stream,
            cnms,
            bytes,
            start,
            ideal_fct,
            sender,
            settled,
            is_queued,
            timer,
            pause,
            departures,
        } = self;
        walk.exact(at.key.src);
        walk.begin_flow(at.key.src, &mut at.key.flow);
        let number = flow_number(at.key.src, at.key.flow);
        walk.exact(at.slot);
        walk.exact(*dst);
        walk.exact(*group);
        walk.exact(*class);
        walk.exact(*queue);
        walk.exact(*is_stream);
        walk.events(cnms);
        walk.exact(bytes.0);
        walk.start(start);
        walk.exact(ideal_fct.0);
        sender.recur(transport, number, walk);
        match settled {
            Some(tag) => walk.exact(tag.bits()),
            None if sender.next() == 0 => walk.pass_over(),
            None => walk.refuse("a choice of paths by hosts, packet by packet"),
        }
        walk.exact(*is_queued);
        // It fires when the sender's deadline comes or before, which is found to be too early: nothing else follows from it.
        walk.alarm(timer);
        if pause.is_some() {
            walk.refuse("a protocol that stops flows");
        }
        if walk.is_some(departures)
            && let Some(departures) = departures
        {
            departures.recur(walk);
        }
        walk.end_flow();
    }
}

impl Rare {
    fn recur(&mut self, (id, work): (u32, &HostWork), walk: &mut Walk) {
        let Rare { streams, calculations, calculated, delayed_acks, late_returns, interrupts, processed } =
            self;
        if !processed.acks.is_empty() || !processed.cnps.is_empty() {
            walk.refuse("answers that a NIC processes");
        }
        if !streams.is_empty() {
            walk.refuse("a stream of frames");
        }
        calculations.recur((id, work), walk);
        if walk.is_some(calculated)
            && let Some(at) = calculated
        {
            walk.last(at);
        }
        let mut receivers: Vec<u32> = delayed_acks.keys().copied().collect();
        receivers.sort_unstable();
        for receiver in receivers {
            walk.exact(receiver);
            let Some(DelayedAck { packet, timer }) = delayed_acks.get_mut(&receiver) else { continue };
            if walk.is_some(packet)
                && let Some((packet, due)) = packet
            {
                packet.recur(numbers_of, walk);
                walk.time(due);
            }
            if walk.is_some(timer)
                && let Some(at) = timer
            {
                walk.time(at);
            }
        }
        walk.count(late_returns.len());
        let Interrupts { coalesced, opens } = interrupts;
        walk.count(coalesced.len());
        coalesced.iter_mut().for_each(|packet: &mut Packet| packet.recur(numbers_of, walk));
        walk.since(opens);
    }
}

impl Recur for Reordering {
    fn recur(&mut self, walk: &mut Walk) {
        let Reordering { waiting, buffer, taken, overflows, timeouts, nacks, duplicates, refused } = self;
        if !waiting.is_empty() {
            walk.refuse("hosts that put packets in order");
        }
        buffer.recur(walk);
        taken.recur(walk);
        [overflows, timeouts, nacks, duplicates, refused].into_iter().for_each(|packets| walk.sum(packets));
    }
}
