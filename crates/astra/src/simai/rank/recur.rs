//! How the state of a rank recurs: after a period of the run it is some steps further, which are the same as those before but for the layer.

use std::collections::BTreeMap;

use netloom_units::recurrence::Walk;
use netloom_units::{Time, narrow};

use super::{Issued, Running, SimAiRank, Todo, from_tag, tag};
use crate::rank::Envelope;
use crate::simai::file::Step;
use crate::simai::flows::Flow;
use crate::simai::report::LayerTimes;

/// The names of what moves by as much in every period, as [sequence numbers](Walk::seq): a job's own, those of its operations, and of layers.
#[derive(Clone, Copy, Debug)]
struct Names {
    operations: u64,
    layers: u64,
}

impl Names {
    fn of(job: u64) -> Self {
        Names { operations: job, layers: job | 1 }
    }
}

/// A time that moves by a period, in nanoseconds.
fn recur_time(at: &mut u64, walk: &mut Walk) {
    let mut time = Time::from_ns(*at);
    walk.time(&mut time);
    *at = time.0 / Time::from_ns(1).0;
}

fn recur_flow(Flow { channel, step }: &Flow, walk: &mut Walk) {
    walk.exact(*channel);
    walk.exact(*step);
}

impl Step {
    fn recur(&mut self, names: Names, walk: &mut Walk) {
        let Step { layer, kind } = self;
        walk.seq(names.layers, layer);
        walk.exact(*kind as u32);
    }
}

impl Todo {
    fn recur(&mut self, names: Names, walk: &mut Walk) {
        match self {
            Todo::Begin => walk.exact(0u32),
            Todo::Communicate => walk.exact(1u32),
            Todo::Send(flow) => {
                walk.exact(2u32);
                recur_flow(flow, walk);
            }
            Todo::Over { of, created, done } => {
                walk.exact(3u32);
                of.recur(names, walk);
                recur_time(created, walk);
                recur_time(done, walk);
            }
        }
    }
}

impl Issued {
    fn recur(&mut self, names: Names, walk: &mut Walk) {
        // Its flows follow from the step, which is compared where it is asked how many periods follow.
        let Issued { number, of, created, flows: _ } = self;
        walk.seq(names.operations, number);
        of.recur(names, walk);
        recur_time(created, walk);
    }
}

impl SimAiRank {
    /// [Recurs](netloom_units::recurrence) in a walk with successors, as a rank of the `job` of this name, which may be used with its last bit set, too; `messages` is the name of the numbers of its messages.
    pub(crate) fn recur(&mut self, (job, messages): (u64, u64), walk: &mut Walk) {
        let SimAiRank {
            step,
            rank: _,
            // Set before it is looked at.
            now: _,
            at,
            again,
            timers,
            issued,
            running,
            waiting,
            open,
            early,
            waits_since,
            has_passed,
            next_message,
            computed,
            end,
            times,
            repetition,
        } = self;
        let names = Names::of(job);
        let numbers = waiting.iter().chain(running.iter().map(|running| &running.issued));
        let oldest = numbers.map(|issued| issued.number).min();
        let (issued_now, oldest) = (*issued, oldest.unwrap_or(*issued).min(issued.saturating_sub(1)));
        walk.seq(names.operations, issued);
        walk.seq(messages, next_message);
        at.recur(names, walk);
        if walk.is_some(again)
            && let Some(layer) = again
        {
            walk.seq(names.layers, layer);
        }
        walk.count(timers.len());
        for (mut at, mut list) in std::mem::take(timers) {
            recur_time(&mut at, walk);
            walk.count(list.len());
            list.iter_mut().for_each(|todo| todo.recur(names, walk));
            timers.insert(at, list);
        }
        if walk.is_some(running)
            && let Some(Running { issued, unsent, unreceived }) = running
        {
            issued.recur(names, walk);
            walk.exact(*unsent);
            walk.exact(*unreceived);
        }
        walk.count(waiting.len());
        waiting.iter_mut().for_each(|issued| issued.recur(names, walk));
        walk.exact(*open);
        let sorted: BTreeMap<u32, Vec<Flow>> = early.drain().collect();
        walk.count(sorted.len());
        for (mut number, flows) in sorted {
            walk.seq(names.operations, &mut number);
            walk.count(flows.len());
            flows.iter().for_each(|flow| recur_flow(flow, walk));
            early.insert(number, flows);
        }
        walk.exact(waits_since.unwrap_or(u64::MAX));
        walk.exact(*has_passed);
        walk.sum(computed);
        walk.exact(end.is_some());
        let (each, layers) = (walk.moved(names.operations), walk.moved(names.layers));
        if walk.is_some(repetition)
            && let Some((since, lasted)) = repetition
        {
            match each {
                0 => walk.exact(Time::from_ns(*since).0),
                _ => recur_time(since, walk),
            }
            walk.exact(lasted.unwrap_or(u64::MAX));
        }
        recur_times(times, layers, walk);
        if each == 0 || walk.periods_to_move() > 0 || !walk.goes_on() {
            return;
        }
        // Steps from the oldest one that was under way when the state was noted.
        let from = oldest.checked_sub(each).filter(|_| !*has_passed && issued_now < step.sequence.len());
        let periods = from.map_or(0, |from| {
            let last = step.sequence.alike_until(&step.file, from, each).saturating_sub(1);
            last.saturating_sub(issued_now) / each
        });
        walk.at_most(periods.into());
    }
}

/// What was noted of layers in the period is noted again for those that are `further` in each.
fn recur_times(times: &mut [LayerTimes], further: u32, walk: &mut Walk) {
    let numbers: Vec<u64> = times.iter().flat_map(LayerTimes::numbers).collect();
    let Some(noted) = walk.list(&numbers) else { return };
    let further = i64::from(further.cast_signed());
    let added: Vec<u64> = numbers.iter().zip(&noted).map(|(now, then)| now - then).collect();
    let (periods, last) = (walk.periods_to_move(), i64::from(narrow::<u32>(times.len())) - 1);
    for (layer, added) in (0i64..).zip(added.chunks(LayerTimes::NUMBERS)) {
        if added.iter().all(|&ns| ns == 0) {
            continue;
        }
        if periods == 0 {
            let room = if further < 0 { layer } else { last - layer };
            if let Some(most) = room.checked_div(further.abs()) {
                walk.at_most(most.cast_unsigned());
            }
        }
        for period in 1..=periods.cast_signed() {
            let later = usize::try_from(layer + period * further).ok();
            if let Some(later) = later.and_then(|later| times.get_mut(later)) {
                later.add(added);
            }
        }
    }
}

/// A message of a rank of the `job` of this name that is under way [recurs](netloom_units::recurrence).
pub(crate) fn recur_message(envelope: &mut Envelope, job: u64, walk: &mut Walk) {
    let Envelope { tag: of, bytes, number } = envelope;
    let (mut operation, flow) = from_tag(*of);
    walk.seq(Names::of(job).operations, &mut operation);
    recur_flow(&flow, walk);
    *of = tag(operation, flow);
    walk.exact(*bytes);
    walk.exact(*number);
}
