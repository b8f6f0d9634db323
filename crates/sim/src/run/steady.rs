//! Runs that skip what is steady: an outcome with an error, which is measured in the run itself.
//!
//! Where all flows make the same progress in two successive *windows*, and queues do not drift, they are taken to go on so. A stretch of as many such windows as end before the next event from
//! outside is then *jumped*: the clock of the workload and of records is set ahead of that of the network, what every flow has left to send becomes less by what it would have sent, and all that was
//! counted in the windows is counted as many times again. The network itself stays as it is, with all that is in flight, queued or remembered, whatever the transport and the routing are.
//!
//! Some stretches are *audited*: they are run in packets, and the progress of each flow is compared with what a jump would have predicted. Nothing is jumped before an audit
//! has shown an error that is small enough, nor by a stretch that is much longer than those audited so far.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use netloom_engine::Session;
use netloom_fabric::{DropCause, Ports};
use netloom_record::{Estimate, SteadySkipped};
use netloom_routing::FlowKey;
use netloom_transport::{Receiver, SendCounts};
use netloom_units::random::{self, Stream};
use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Time, narrow};
use rand::RngExt;
use rustc_hash::FxHashMap;

use crate::config::{Beyond, Steady};
use crate::host::Host;
use crate::host::flow::Flow;
use crate::node::Node;
use crate::run::error::RunError;
use crate::run::skip_walk::{Jump, packet_hops, pause_cost};
use crate::world::World;

/// A window lasts as many idle round-trip times as these at least,
const LEAST_RTTS: u64 = 16;

/// and as long as the slowest flow takes for so many packets.
const LEAST_PACKETS: u64 = 64;

/// How many times as far as the mean of all flows a single one may be off.
const MOST_OF_ONE: f64 = 4.0;

/// How often windows are compared before they become longer.
const TRIES: u32 = 2;

/// Windows become at most 2 to the power of this times as long as the least.
const MOST_DOUBLINGS: u32 = 10;

/// The first stretch that is audited, in pairs of windows.
const FIRST_STRETCH: u64 = 4;

/// A stretch is jumped if it is at most this many times as long as the longest that was audited,
const LONGEST_JUMP: u64 = 4;

/// and audited if it is at most this many times as long.
const LONGEST_AUDIT: u64 = 2;

/// A shorter stretch, in pairs of windows, is not worth it.
const SHORTEST: u64 = 2;

/// Audits without any jump behind them that may fail before nothing is tried any more. Each makes windows longer.
const MOST_FAILURES: u32 = 3;

/// What a run may spend on looking at its state before it has handled anything, in messages handled.
const CREDIT: u64 = 100_000;

/// It may spend one part in this number of what it has handled,
const SHARE: u64 = 25;

/// and one part in this number of what it has skipped.
const SHARE_OF_SKIPPED: u64 = 4;

/// The mean queue of a port may differ by so many packets between two windows, whatever it sends.
const FEW_PACKETS: f64 = 4.0;

/// While no flow is under way the run pauses after one part in this number of the time for which none has been.
const IDLE_SHARE: u64 = 16;

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Progress {
    key: FlowKey,
    /// Payload that has arrived.
    delivered: u64,
    /// Packets that have not been sent for the first time.
    left: u32,
}

/// What a port has sent, and the time integral of what has waited there.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    bytes: u64,
    queue: u128,
}

/// What is known of a state: one end of a window.
#[derive(Debug)]
struct State {
    at: Time,
    messages: u64,
    /// The flows that have not ended, in the order of hosts.
    flows: Vec<Progress>,
    ports: Vec<Traffic>,
    /// Data packets dropped, by node, source and flow.
    dropped: BTreeMap<(u32, u32, u32), u64>,
    /// The longest of the flows' idle round-trip times.
    rtt: Time,
    /// All that has been counted.
    walk: Walk,
}

/// A stretch that is run in packets.
#[derive(Debug)]
struct Audit {
    time: Time,
    /// The flows at its beginning, and the bytes that each is predicted to deliver.
    flows: Vec<(Progress, u64)>,
}

/// Where packets are.
#[derive(Debug, Default)]
struct Accounts {
    /// What the senders of flows have sent.
    sent: FxHashMap<FlowKey, SendCounts>,
    /// Packets of each flow that are not under way any more.
    ended: FxHashMap<FlowKey, u64>,
    /// Packets of control that were sent, and those that are not under way any more.
    control_sent: u64,
    control_ended: u64,
}

impl Accounts {
    fn of(session: &mut Session<World>) -> Self {
        let mut accounts = Accounts::default();
        for node in 0..session.nodes() {
            let of_node = session.node(node);
            if let Node::Switch(switch) = of_node {
                accounts.control_sent += switch.control_sent;
                accounts.control_ended += switch.control_received;
            }
            for (_, host) in of_node.hosts_mut(node) {
                accounts.control_sent += host.control_sent;
                accounts.control_ended += host.control_received;
                for flow in host.flows.iter().flatten() {
                    let counts = flow.sender.counts;
                    accounts.sent.insert(flow.at.key, counts);
                    *accounts.ended.entry(flow.at.key).or_default() += u64::from(counts.returned_to_sender);
                }
                for (key, Receiver { seen, .. }) in host.receivers.under_way() {
                    *accounts.ended.entry(key).or_default() += seen.packets + u64::from(seen.headers);
                }
            }
            for ports in of_node.ports_mut() {
                let dropped = ports.dropped();
                accounts.control_ended += [DropCause::Full, DropCause::Fault]
                    .map(|cause| dropped.control(cause))
                    .iter()
                    .sum::<u64>();
                for (&(src, flow), packets) in &dropped.flows {
                    *accounts.ended.entry(FlowKey { src, flow }).or_default() += packets;
                }
            }
        }
        accounts
    }
}

/// What two successive windows are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Steady,
    /// Some flow has sent too little to tell.
    Coarse,
    Changing,
}

/// The search for stretches to skip.
#[derive(Debug)]
pub(super) struct Search {
    config: Steady,
    /// Where the run pauses next.
    pub(super) next: Time,
    lookahead: Time,
    pause_cost: u64,
    spent: u64,
    /// The ends of the last windows, and how often these have been made twice as long.
    states: Vec<State>,
    doublings: u32,
    tries: u32,
    /// Since when no flow has been under way at any pause.
    idle_since: Option<Time>,
    /// The stretch that is run in packets until the next pause.
    audit: Option<Audit>,
    /// The longest stretch of which an audit has shown a small error.
    trusted: Time,
    failures: u32,
    random: Stream,
    /// Which of each group of stretches is audited.
    turn: u64,
    /// The errors of all flows in all audits, and their mean in each audit.
    errors: Vec<f64>,
    means: Vec<f64>,
    /// What an audit has shown that ends the run: a larger error than was allowed.
    pub(super) failure: Option<String>,
    skipped: SteadySkipped,
    before: Before,
}

/// What there was of the search when the present [component](super::components) began.
#[derive(Debug, Default)]
struct Before {
    jumps: u64,
    stretches: u64,
    audited: u64,
    packet_hops: u64,
    errors: usize,
    means: usize,
    /// The longest time that was skipped in any, and why one was stopped.
    time: Time,
    stopped: Option<String>,
}

impl Search {
    pub(super) fn new(config: Steady, seed: u64, lookahead: Time, nodes: usize) -> Self {
        Search {
            config,
            next: lookahead,
            lookahead,
            pause_cost: pause_cost(nodes),
            spent: 0,
            states: Vec::new(),
            doublings: 0,
            tries: 0,
            idle_since: None,
            audit: None,
            trusted: Time::ZERO,
            failures: 0,
            random: random::Node::Audits.stream(seed, 0),
            turn: 0,
            errors: Vec::new(),
            means: Vec::new(),
            failure: None,
            skipped: SteadySkipped { max_error: config.max_error, ..SteadySkipped::default() },
            before: Before::default(),
        }
    }

    /// Another component begins, at the beginning of time.
    pub(super) fn begin_component(&mut self) {
        let SteadySkipped { stretches, jumps, time, packet_hops, audited, ref mut stopped, .. } =
            self.skipped;
        self.before = Before {
            jumps,
            stretches,
            audited,
            packet_hops,
            errors: self.errors.len(),
            means: self.means.len(),
            time: self.before.time.max(time),
            stopped: self.before.stopped.take().or_else(|| stopped.take()),
        };
        self.skipped.time = Time::ZERO;
        (self.spent, self.doublings, self.tries, self.failures) = (0, 0, 0, 0);
        (self.trusted, self.idle_since) = (Time::ZERO, None);
        self.begin_anew(Time::ZERO);
    }

    /// What the run reports of it in the end.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the number of errors"
    )]
    ///
    /// # Errors
    /// If the error was larger than allowed, and the run is to fail then.
    pub(super) fn finish(mut self) -> Result<SteadySkipped, RunError> {
        if let Some(failure) = self.failure {
            return Err(RunError::Inaccurate(failure));
        }
        self.errors.sort_unstable_by(f64::total_cmp);
        let count = self.errors.len();
        let of_rank =
            |share: f64| self.errors.get(((count as f64 * share).ceil() as usize).saturating_sub(1));
        Ok(SteadySkipped {
            time: self.skipped.time.max(self.before.time),
            stopped: self.before.stopped.or(self.skipped.stopped),
            audited_flows: count as u64,
            error_mean: (count > 0).then(|| self.errors.iter().sum::<f64>() / count as f64),
            error_plus_minus: Estimate::of(&self.means).and_then(|estimate| estimate.plus_minus),
            error_p99: of_rank(0.99).copied(),
            error_max: of_rank(1.0).copied(),
            ..self.skipped
        })
    }

    /// The time has moved otherwise: windows begin anew.
    pub(super) fn begin_anew(&mut self, now: Time) {
        self.states.clear();
        self.audit = None;
        self.next = now + self.lookahead;
    }

    fn has_credit(&self, session: &Session<World>) -> bool {
        let skipped = self.skipped.packet_hops - self.before.packet_hops;
        self.spent < CREDIT + session.messages() / SHARE + skipped / SHARE_OF_SKIPPED
    }

    fn window(&self, rtt: Time) -> Time {
        rtt.max(self.lookahead) * (LEAST_RTTS << self.doublings)
    }

    /// The run has paused at the planned instant: looks at the state there, and plans the next pause. The run is over at `end`.
    pub(super) fn step(&mut self, world: &World, session: &mut Session<World>, end: Time) -> Option<Jump> {
        let now = session.reached();
        self.spent += self.pause_cost;
        if !self.has_credit(session) && self.audit.is_none() {
            self.states.clear();
            self.next = now + self.window(self.lookahead) * 4;
            return None;
        }
        let state = match look(world, session) {
            Ok(state) => state,
            Err(what) => {
                self.skipped.stopped = Some(format!("there is {what}"));
                self.next = Time::MAX;
                return None;
            }
        };
        self.spent += (state.flows.len() + state.ports.len()) as u64 / 4 + state.walk.passed_by() as u64 / 16;
        if let Some(audit) = self.audit.take() {
            self.compare(&audit, &state, world.transport.options.mtu);
            if self.skipped.stopped.is_some() {
                self.next = Time::MAX;
                return None;
            }
        }
        if state.flows.is_empty() {
            self.states.clear();
            let since = *self.idle_since.get_or_insert(now);
            self.next = now + self.lookahead.max(Time((now - since).0 / IDLE_SHARE));
            return None;
        }
        self.idle_since = None;
        if self.states.last().is_some_and(|last| !last.has_flows_of(&state)) {
            self.states.clear();
            self.doublings = self.doublings.saturating_sub(1);
            self.tries = 0;
        }
        let rtt = state.rtt;
        self.states.push(state);
        self.next = now + self.window(rtt);
        let [first, second, third] = &self.states[..] else { return None };
        match compare_windows([first, second, third], world.transport.options.mtu, self.config.tolerance()) {
            Verdict::Steady => {
                self.tries = 0;
                return self.begin_stretch(world, session, end);
            }
            Verdict::Changing if self.tries + 1 < TRIES => {
                self.tries += 1;
                self.states.remove(0);
            }
            Verdict::Coarse | Verdict::Changing => {
                // Two short windows are a longer one.
                self.lengthen();
                self.states.remove(1);
                self.next = now + (now - self.states[0].at);
            }
        }
        None
    }

    fn lengthen(&mut self) {
        self.tries = 0;
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// All is steady: audits what follows, or jumps over it.
    fn begin_stretch(&mut self, world: &World, session: &mut Session<World>, end: Time) -> Option<Jump> {
        let now = session.reached();
        let third = self.states.pop()?;
        let mut first = self.states.swap_remove(0);
        self.states.clear();
        let period = third.at - first.at;
        first.walk.begin_to_compare(now);
        pass(world, session, &mut first.walk);
        let mtu = world.transport.options.mtu.0;
        let gains: Vec<u64> = first
            .flows
            .iter()
            .zip(&third.flows)
            .map(|(first, third)| third.delivered - first.delivered)
            .collect();
        let is_known = first.walk.recurs() && gains.iter().all(|gain| gain % mtu == 0);
        let most = third
            .flows
            .iter()
            .zip(&gains)
            .map(|(flow, gain)| (u64::from(flow.left) * mtu / gain.max(&1)).saturating_sub(1));
        let until = first_from_outside(session).min(first.walk.until()).min(end);
        let in_time = until.saturating_sub(now + Time(1)).0 / period.0;
        let most = most.chain([in_time, first.walk.periods()]).min().unwrap_or(0);
        if most < SHORTEST || !is_known {
            self.states.push(third);
            return None;
        }
        let trusted = self.trusted.0;
        let times_trusted = |times: u64| trusted * times / period.0;
        let is_audited = self.is_turn_of_audit() || times_trusted(LONGEST_JUMP) < SHORTEST;
        let periods = most.min(match is_audited {
            true => times_trusted(LONGEST_AUDIT).max(FIRST_STRETCH),
            false => times_trusted(LONGEST_JUMP),
        });
        let time = period * periods;
        self.skipped.stretches += 1;
        let flows = third.flows.iter().zip(gains);
        let flows: Vec<_> = flows.map(|(&flow, gain)| (flow, gain * periods)).collect();
        if is_audited {
            self.audit = Some(Audit { time, flows });
            self.next = now + time;
            return None;
        }
        let messages = (third.messages - first.messages) * periods;
        let before = packet_hops(world, session);
        go_on_by(world, session, (first, &third), (periods, time, messages), &flows);
        let jump = Jump::new((world, session), time, (messages, before));
        self.skipped.jumps += 1;
        self.skipped.time += time;
        self.skipped.packet_hops += jump.packet_hops;
        self.next = now + self.lookahead;
        Some(jump)
    }

    /// Whether the stretch that begins is to be audited: the first one, and one of each further group of stretches, which one is drawn.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of stretches")]
    fn is_turn_of_audit(&mut self) -> bool {
        let group = (1.0 / self.config.audits).round() as u64;
        let place = self.skipped.stretches % group;
        if place == 0 {
            let is_first = self.skipped.stretches == 0;
            self.turn = if is_first { 0 } else { self.random.random_range(0..group) };
        }
        place == self.turn
    }

    /// An audited stretch is over: compares the progress of each flow with what was predicted.
    fn compare(&mut self, audit: &Audit, state: &State, mtu: Bytes) {
        let now: FxHashMap<FlowKey, u64> =
            state.flows.iter().map(|flow| (flow.key, flow.delivered)).collect();
        let errors = audit.flows.iter().map(|(before, predicted)| {
            // One that has ended was to have something left.
            let delivered =
                now.get(&before.key).map_or(u64::from(before.left) * mtu.0, |now| now - before.delivered);
            delivered.abs_diff(*predicted) as f64 / *predicted as f64
        });
        let errors: Vec<f64> = errors.collect();
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        self.skipped.audited += 1;
        if mean <= self.config.max_error {
            self.trusted = self.trusted.max(audit.time);
            self.means.push(mean);
            return self.errors.extend(errors);
        }
        if self.skipped.jumps == self.before.jumps && self.failures < MOST_FAILURES {
            // Nothing depends on it yet: longer windows may tell more.
            self.failures += 1;
            self.trusted = Time::ZERO;
            (self.skipped.stretches, self.skipped.audited) = (self.before.stretches, self.before.audited);
            self.errors.truncate(self.before.errors);
            self.means.truncate(self.before.means);
            return self.lengthen();
        }
        self.errors.extend(errors);
        self.means.push(mean);
        let what = format!("an audit showed an error of {:.2}%, more than `max_error`", 100.0 * mean);
        self.failure = (self.config.beyond == Beyond::Fail && self.skipped.jumps > 0).then(|| what.clone());
        self.skipped.stopped = Some(what);
    }
}

impl State {
    /// Whether the same flows are under way in another state, and nothing has reached a node that nothing had reached before.
    fn has_flows_of(&self, other: &State) -> bool {
        self.flows.len() == other.flows.len()
            && self.ports.len() == other.ports.len()
            && self.flows.iter().zip(&other.flows).all(|(one, other)| one.key == other.key)
    }
}

/// What two windows are to each other that lie between three states.
fn compare_windows([first, second, third]: [&State; 3], mtu: Bytes, tolerance: f64) -> Verdict {
    let (mut sum, mut count) = (0.0, 0);
    let (mut is_coarse, mut is_off) = (false, false);
    for ((first, second), third) in first.flows.iter().zip(&second.flows).zip(&third.flows) {
        // One of which all has arrived is near its end.
        is_off |= third.delivered < second.delivered;
        let before = second.delivered.saturating_sub(first.delivered);
        let after = third.delivered.saturating_sub(second.delivered);
        is_coarse |= before.min(after) < LEAST_PACKETS * mtu.0;
        // A packet more or less says nothing.
        let difference =
            before.abs_diff(after).saturating_sub(mtu.0) as f64 / before.max(after).max(1) as f64;
        is_off |= difference > MOST_OF_ONE * tolerance;
        (sum, count) = (sum + difference, count + 1);
    }
    is_off |= sum > tolerance * f64::from(count);
    if is_coarse {
        return Verdict::Coarse;
    }
    let time = |from: &State, to: &State| (to.at - from.at).0 as f64;
    let times = (time(first, second), time(second, third));
    for ((first, second), third) in first.ports.iter().zip(&second.ports).zip(&third.ports) {
        let before = second.queue.wrapping_sub(first.queue) as f64 / times.0;
        let after = third.queue.wrapping_sub(second.queue) as f64 / times.1;
        // What comes to wait has been sent by flows, and has not arrived.
        let most = tolerance * (third.bytes - second.bytes) as f64 + FEW_PACKETS * mtu.0 as f64;
        is_off |= (after - before).abs() > most;
    }
    if is_off { Verdict::Changing } else { Verdict::Steady }
}

/// The state of now. Says what it is if there is something of which it is not known how it goes on.
fn look(world: &World, session: &mut Session<World>) -> Result<State, &'static str> {
    let (now, messages) = (session.reached(), session.messages());
    let mut delivered: FxHashMap<FlowKey, u64> = FxHashMap::default();
    let mut state = State {
        at: now,
        messages,
        flows: Vec::new(),
        ports: Vec::new(),
        dropped: BTreeMap::new(),
        rtt: Time::ZERO,
        walk: Walk::note_counts(now),
    };
    for node in 0..session.nodes() {
        let of_node = session.node(node);
        for (_, host) in of_node.hosts_mut(node) {
            delivered
                .extend(host.receivers.under_way().map(|(key, receiver)| (key, receiver.seen.delivered)));
            for flow in host.flows.iter().flatten() {
                if flow.is_stream {
                    return Err("a stream of frames");
                }
                state.rtt = state.rtt.max(flow.sender.base_rtt());
                state.flows.push(Progress { key: flow.at.key, delivered: 0, left: flow.sender.left() });
            }
        }
        for ports in of_node.ports_mut() {
            for port in 0..narrow::<u16>(ports.len()) {
                let stats = ports.stats_of(port, now);
                state.ports.push(Traffic { bytes: stats.bytes, queue: stats.queue_integral() });
            }
            let dropped = ports.dropped_flows_mut().into_iter().flatten();
            state.dropped.extend(dropped.map(|(&(src, flow), &mut packets)| ((node, src, flow), packets)));
        }
    }
    for flow in &mut state.flows {
        // One of which all has arrived is not among them any more, nor has it anything left to send.
        flow.delivered = delivered.get(&flow.key).copied().unwrap_or(0);
    }
    pass(world, session, &mut state.walk);
    Ok(state)
}

/// The walk passes through all nodes.
fn pass(world: &World, session: &mut Session<World>, walk: &mut Walk) {
    let now = session.reached();
    for node in 0..session.nodes() {
        session.node(node).recur(world, (node, now), walk);
    }
}

/// When something is due first that comes from outside of the network, as far as the engine knows.
fn first_from_outside(session: &Session<World>) -> Time {
    let mut first = Time::MAX;
    session.look_at_pending(|_, due, message| {
        if message.is_at_a_fixed_time() {
            first = first.min(due.at);
        }
    });
    first
}

/// Repeats what has happened between two states, of which the second one is the present one, `periods` times: that takes `time` and `messages`, and each of `flows` delivers the bytes beside it.
fn go_on_by(
    world: &World,
    session: &mut Session<World>,
    (mut first, now): (State, &State),
    (periods, time, messages): (u64, Time, u64),
    flows: &[(Progress, u64)],
) {
    let gains: FxHashMap<FlowKey, u64> = flows.iter().map(|(flow, gain)| (flow.key, *gain)).collect();
    let before = Accounts::of(session);
    first.walk.begin_to_move(periods);
    pass(world, session, &mut first.walk);
    for (&(node, src, flow), packets) in &now.dropped {
        let more = packets - first.dropped.get(&(node, src, flow)).copied().unwrap_or(0);
        // What is left of a flow that has ended is not dropped again.
        if more > 0 && gains.contains_key(&FlowKey { src, flow }) {
            let of_node = session.node(node).ports_mut();
            let mut dropped = of_node.into_iter().filter_map(Ports::dropped_flows_mut);
            let entry = dropped.find_map(|dropped| dropped.get_mut(&(src, flow)));
            entry.into_iter().for_each(|packets| *packets += more * periods);
        }
    }
    let mtu = world.transport.options.mtu.0;
    let after = Accounts::of(session);
    let ended = |key: &FlowKey| after.ended.get(key).unwrap_or(&0) - before.ended.get(key).unwrap_or(&0);
    for node in 0..session.nodes() {
        for (_, host) in session.node(node).hosts_mut(node) {
            for Flow { at, sender, .. } in host.flows.iter_mut().flatten() {
                let Some(gain) = gains.get(&at.key) else { continue };
                let new = narrow::<u32>(gain / mtu);
                sender.shorten(&world.transport, new);
                // As much of it is under way as before, so all else that was sent has come to an end.
                let SendCounts { packets, retransmissions, .. } = before.sent[&at.key];
                sender.counts.packets = packets + ended(&at.key);
                sender.counts.retransmissions = retransmissions + ended(&at.key) - u64::from(new);
            }
        }
    }
    // So it is with packets of control, for which accounts are kept of all hosts together.
    let sent = before.control_sent + (after.control_ended - before.control_ended);
    let hosts = |session: &mut Session<World>, each: &mut dyn FnMut(&mut Host)| {
        for node in 0..session.nodes() {
            session.node(node).hosts_mut(node).into_iter().for_each(|(_, host)| each(host));
        }
    };
    let mut most = 0;
    hosts(session, &mut |host| most = most.max(host.control_sent));
    let mut wrong = Some(sent.wrapping_sub(after.control_sent));
    hosts(session, &mut |host| {
        if host.control_sent == most {
            host.control_sent = host.control_sent.wrapping_add(wrong.take().unwrap_or(0));
        }
    });
    let mut pending = session.pending(0..session.nodes());
    for event in pending.iter_mut().filter(|event| event.payload.is_at_a_fixed_time()) {
        event.due.at = event.due.at - time;
    }
    world.ahead.fetch_add(time.0, Ordering::Relaxed);
    session.jump(session.reached(), (messages, 0), &pending);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: Bytes = Bytes(1000);

    /// A state in which each flow has delivered so many packets, and a port has sent them all and kept so many bytes waiting on average.
    fn state(at: u64, delivered: &[u64], queue: u64) -> State {
        let flow = |(flow, &packets): (u32, &u64)| Progress {
            key: FlowKey { src: 0, flow },
            delivered: packets * MTU.0,
            left: 1_000_000,
        };
        State {
            at: Time(at),
            messages: 0,
            flows: (0..).zip(delivered).map(flow).collect(),
            ports: vec![Traffic {
                bytes: delivered.iter().sum::<u64>() * MTU.0,
                queue: u128::from(queue) * u128::from(at),
            }],
            dropped: BTreeMap::new(),
            rtt: Time(1),
            walk: Walk::note_counts(Time(at)),
        }
    }

    fn verdict(delivered: [[u64; 4]; 2]) -> Verdict {
        let [first, second] = delivered;
        let third: Vec<u64> = first.iter().zip(second).map(|(first, second)| first + second).collect();
        compare_windows([&state(0, &[0; 4], 0), &state(100, &first, 0), &state(200, &third, 0)], MTU, 0.02)
    }

    #[test]
    fn windows_are_steady_if_flows_come_equally_far_in_them() {
        assert_eq!(verdict([[1000, 2000, 500, 400], [1000, 2000, 500, 400]]), Verdict::Steady);
        // One of them by a little, or all of them by less.
        assert_eq!(verdict([[1000, 2000, 500, 400], [1060, 2000, 500, 400]]), Verdict::Steady);
        assert_eq!(verdict([[1000, 2000, 500, 400], [1100, 2000, 500, 400]]), Verdict::Changing);
        assert_eq!(verdict([[1000, 2000, 500, 400], [1015, 1970, 507, 396]]), Verdict::Steady);
        assert_eq!(verdict([[1000, 2000, 500, 400], [1030, 1940, 515, 385]]), Verdict::Changing);
        // A packet more or less says nothing, and a few packets do not either.
        assert_eq!(verdict([[64, 64, 64, 64], [65, 65, 64, 65]]), Verdict::Steady);
        assert_eq!(verdict([[1000, 2000, 500, 63], [1000, 2000, 500, 63]]), Verdict::Coarse);
    }

    #[test]
    fn states_before_and_after_something_reaches_a_further_node_are_not_compared() {
        let (before, mut after) = (state(100, &[1000], 0), state(200, &[2000], 0));
        assert!(before.has_flows_of(&after));
        after.ports.insert(0, Traffic { bytes: 0, queue: 0 });
        assert!(!before.has_flows_of(&after));
    }

    #[test]
    fn queues_that_drift_are_not_steady() {
        let with_queues = |second, third| {
            let states = [state(0, &[0], 0), state(100, &[1000], second), state(200, &[2000], third)];
            compare_windows([&states[0], &states[1], &states[2]], MTU, 0.02)
        };
        // In the second window the mean is that of the whole and as much again.
        assert_eq!(with_queues(50_000, 60_000), Verdict::Steady);
        assert_eq!(with_queues(50_000, 65_000), Verdict::Changing);
        assert_eq!(with_queues(50_000, 35_000), Verdict::Changing);
    }

    /// A search that has audited a stretch in which flows were predicted to deliver 100 packets each, and have delivered so many.
    fn audited(search: Search, delivered: &[u64]) -> Search {
        let mut search = search;
        let before = state(0, &vec![0; delivered.len()], 0);
        let flows = before.flows.into_iter().map(|flow| (flow, 100 * MTU.0)).collect();
        search.skipped.stretches += 1;
        search.compare(&Audit { time: Time(500), flows }, &state(500, delivered, 0), MTU);
        search
    }

    fn search() -> Search {
        Search::new(Steady::default(), 1, Time(1), 1)
    }

    #[test]
    fn errors_are_those_of_the_audited_flows() {
        let search = audited(audited(search(), &[100, 101, 99]), &[100, 100, 102]);
        assert_eq!(search.trusted, Time(500));
        let skipped = search.finish().unwrap();
        assert_eq!((skipped.stretches, skipped.audited, skipped.audited_flows), (2, 2, 6));
        assert!((skipped.error_mean.unwrap() - 0.04 / 6.0).abs() < 1e-12);
        // The two audits have the same mean.
        assert!(skipped.error_plus_minus.unwrap() < 1e-12);
        assert_eq!((skipped.error_p99, skipped.error_max), (Some(0.02), Some(0.02)));
        assert_eq!(skipped.stopped, None);
    }

    #[test]
    fn a_large_error_ends_it_once_something_has_been_skipped() {
        let mut good = audited(search(), &[100, 100]);
        good.skipped.jumps = 1;
        let bad = audited(good, &[104, 100]);
        assert!(bad.skipped.stopped.as_ref().is_some_and(|why| why.contains("2.00%")), "{:?}", bad.skipped);
        assert_eq!(bad.finish().unwrap().error_max, Some(0.04));
    }

    #[test]
    fn a_large_error_fails_where_that_is_asked_for_and_something_was_skipped() {
        let config = Steady { beyond: Beyond::Fail, ..Steady::default() };
        let good = || audited(Search::new(config, 1, Time(1), 1), &[101, 100]);
        // Nothing depends on it yet.
        assert_eq!(audited(good(), &[104, 100]).failure, None);
        let mut skipping = good();
        skipping.skipped.jumps = 1;
        let bad = audited(skipping, &[104, 100]);
        assert!(bad.failure.is_some());
        let failure = bad.finish().unwrap_err().to_string();
        assert!(failure.starts_with("fast: an audit showed an error of 2.00%"), "{failure}");
    }

    /// Student's t for two audits with means of 0.5% and 0%.
    #[test]
    fn the_interval_is_that_of_the_means_of_audits() {
        let skipped = audited(audited(search(), &[101, 100]), &[100, 100]);
        let skipped = skipped.finish().unwrap();
        assert_eq!(skipped.error_mean, Some(0.0025));
        assert!((skipped.error_plus_minus.unwrap() - 12.706_205 * 0.0025).abs() < 1e-9, "{skipped:?}");
        assert_eq!(audited(search(), &[101, 100]).finish().unwrap().error_plus_minus, None);
    }

    #[test]
    fn a_large_error_makes_windows_longer_before_that() {
        let mut search = audited(search(), &[100, 100]);
        for doublings in 1..=MOST_FAILURES {
            search = audited(search, &[110, 100]);
            assert_eq!((search.doublings, search.trusted), (doublings, Time::ZERO));
            assert_eq!((search.skipped.stretches, search.errors.len()), (0, 0));
        }
        assert!(audited(search, &[110, 100]).skipped.stopped.is_some());
    }

    #[test]
    fn a_flow_that_has_ended_has_come_as_far_as_it_had_to() {
        let mut search = search();
        let mut flow = state(0, &[0], 0).flows[0];
        flow.left = 150;
        search.compare(
            &Audit { time: Time(500), flows: vec![(flow, 100 * MTU.0)] },
            &state(500, &[], 0),
            MTU,
        );
        assert!(search.skipped.stopped.is_none() && search.failures == 1, "{search:?}");
    }
}
