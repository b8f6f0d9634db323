//! The simplest network that runs programs: every message takes a random time, and none waits for another.

use std::collections::BTreeMap;

use netloom_topology::HostId;
use netloom_units::{Bytes, Time, narrow};

use super::{Action, OpKind};
use crate::random::{RngExt, Work};
use crate::{HostWork, Plan};

/// What the network sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Sent {
        src: HostId,
        dst: HostId,
        bytes: Bytes,
        number: u32,
        class: u8,
        group: u16,
    },
    Arrived {
        src: HostId,
        dst: HostId,
        number: u32,
    },
    /// The transport is done with a message.
    Acknowledged {
        src: HostId,
    },
    /// A call to the host has ended.
    Settled {
        host: HostId,
    },
}

enum Call {
    Begin,
    Wake(u32),
    Sent(u32),
    Received(HostId, u32),
}

/// Runs a plan until nothing is left to do; when the last call was. Messages take up to `latency`.
pub(crate) fn execute(
    plan: &mut Plan,
    seed: u64,
    latency: Time,
    mut watch: impl FnMut(&Plan, Time, Event),
) -> Time {
    let mut rng = Work::Host.stream(seed, 0);
    let hosts = plan.hosts.len() as u64;
    // Keyed by time, then by order of scheduling.
    let mut calls: BTreeMap<(Time, u64), (HostId, Call)> =
        (0..hosts).map(|host| ((Time::ZERO, host), (narrow::<HostId>(host), Call::Begin))).collect();
    let (mut scheduled, mut actions, mut end) = (hosts, Vec::new(), Time::ZERO);
    while let Some(((now, _), (host, call))) = calls.pop_first() {
        end = now;
        let work = &mut plan.hosts[host as usize];
        match call {
            Call::Begin => work.begin(now, &mut actions),
            Call::Wake(op) => work.on_wake(now, op, &mut actions),
            Call::Sent(number) => {
                work.on_sent(now, number, &mut actions);
                watch(plan, now, Event::Acknowledged { src: host });
            }
            Call::Received(src, number) => {
                work.on_received(now, src, number, &mut actions);
                watch(plan, now, Event::Arrived { src, dst: host, number });
            }
        }
        watch(plan, now, Event::Settled { host });
        for action in actions.drain(..) {
            let mut schedule = |at, host, call| {
                scheduled += 1;
                calls.insert((at, scheduled), (host, call));
            };
            match action {
                Action::Wake { at, op } => schedule(at, host, Call::Wake(op)),
                Action::Send { dst, bytes, number, class, group, nic: _ } => {
                    let mut later = || Time(now.0 + rng.random_range(0..=latency.0));
                    let (arrival, departure) = (later(), later());
                    schedule(arrival, dst, Call::Received(host, number));
                    schedule(departure, host, Call::Sent(number));
                    watch(plan, now, Event::Sent { src: host, dst, bytes, number, class, group });
                }
            }
        }
    }
    end
}

/// How many operations of a kind a host has finished in this round.
pub(crate) fn finished(work: &HostWork, kind: OpKind) -> usize {
    work.programs().map(|program| program.finished(kind)).sum()
}

/// What is sent when, on a network without latency, and when the last rank ends.
pub(crate) fn sends(mut plan: Plan) -> (Vec<(Time, HostId, HostId, Bytes)>, Time) {
    let mut sent = Vec::new();
    let end = execute(&mut plan, 1, Time::ZERO, |_, now, event| {
        if let Event::Sent { src, dst, bytes, .. } = event {
            sent.push((now, src, dst, bytes));
        }
    });
    assert!(plan.hosts.iter().all(|host| host.is_finished()));
    (sent, end)
}
