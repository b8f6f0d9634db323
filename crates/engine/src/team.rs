//! The team of threads of a run: which partition each of them runs, and how nodes are partitioned anew when some threads have more to do than others.
//!
//! The work of nodes depends on the traffic, which is not known before a run. So each thread counts the events of its nodes. After 2ⁿ epochs, for every n
//! from some on, the threads' sums since the last such check are compared. Where they differ, all threads end, the nodes are partitioned anew by what was counted, and new threads continue. Results cannot depend on
//! it, as they do not depend on which thread runs a node.
//!
//! A run that pauses soon is done before threads have started. Then one thread runs all partitions, one after the other.

use std::collections::BTreeSet;
use std::num::Wrapping;
use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_units::{Time, narrow};

use crate::batch_order::BatchOrder;
use crate::engine::{Division, Progress, Run};
use crate::exchange::{Exchange, Outbox};
use crate::local::{LocalScheduler, NodeLocation};
use crate::model::{DRIVER, Model, NodeIndex, is_timer};
use crate::partition::{contiguous, deferred_nodes, ranks};
use crate::setup::Setup;
use crate::sort::EventSorter;
use crate::wheel::{Event, Wheel};
use crate::window_plan::WindowPlan;
use crate::worker::{How, P, Pause, Worker};

/// When the work of threads is compared, so that nodes are partitioned anew.
#[derive(Clone, Debug)]
pub struct Rebalance {
    /// After how many epochs, a power of two, it is first compared.
    pub first_check: u64,
}

impl Default for Rebalance {
    /// The first check comes when enough epochs have passed to average out the fluctuations of one.
    fn default() -> Self {
        Rebalance { first_check: 64 }
    }
}

impl Rebalance {
    /// Whether work is compared after this many epochs.
    pub(crate) fn is_checked_after(&self, epochs: u64) -> bool {
        epochs >= self.first_check && epochs.is_power_of_two()
    }
}

/// The work of a thread, in batches and events, in windows of either side of the bipartition. That of fused windows counts for the even side.
pub(crate) type Work = [u64; 2];

/// What could be saved if all threads had equal work, in units of [`Work`]: while a side is run, all wait for the thread with most work. And the mean work of a thread.
pub(crate) fn imbalance(work: impl Iterator<Item = Work>) -> (u64, u64) {
    let (mut most, mut total, mut threads) = ([0; 2], [0; 2], 0);
    for of_thread in work {
        threads += 1;
        for side in 0..2 {
            most[side] = of_thread[side].max(most[side]);
            total[side] += of_thread[side];
        }
    }
    let mean = total.map(|total| total / threads.max(1));
    (most.iter().sum::<u64>() - mean.iter().sum::<u64>(), mean.iter().sum())
}

/// Whether moving this many nodes pays off: what it saves is more than a twentieth and, on the assumption that as much work is to come as was
/// counted, more than the move costs, about the work of one message per node.
pub(crate) fn pays_off((saved, mean): (u64, u64), nodes: usize) -> bool {
    saved > mean / 20 && saved > nodes as u64
}

/// So few nodes are compared one by one with those of events far ahead.
const FEW_NODES: usize = 2;

/// The work that is done while a thread starts, in batches and events: about 0.1 ms.
const THREAD_START: u64 = 4_000;

/// Why all threads have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// There is nothing left to do, or the observer has stopped the run.
    Finished,
    /// Some threads have more to do than others.
    Imbalanced,
}

pub(crate) struct Team<M: Model> {
    model: Arc<M>,
    setup: Setup,
    plan: WindowPlan,
    /// Windows of a bipartition, for the time between two pauses that are far apart; the others during that time.
    other_plan: Option<WindowPlan>,
    /// Per thread.
    workers: Vec<Worker<M>>,
    locations: Arc<[NodeLocation]>,
    is_stopped: bool,
    rebalance_count: u32,
}

impl<M: Model> Team<M> {
    pub(crate) fn new(model: Arc<M>, setup: Setup, nodes: Vec<M::Node>) -> Self {
        let partition = setup.partition.clone().unwrap_or_else(|| vec![0; nodes.len()]);
        let threads = partition.iter().max().map_or(1, |&last| usize::from(last) + 1);
        let mut team = Team {
            model,
            plan: WindowPlan::new(&setup),
            other_plan: None,
            setup,
            workers: Vec::new(),
            locations: Arc::new([]),
            is_stopped: false,
            rebalance_count: 0,
        };
        team.place(threads, &partition, nodes);
        team
    }

    /// Puts every node into its partition, and makes the workers.
    fn place(&mut self, threads: usize, partition: &[u16], nodes: Vec<M::Node>) {
        let mut locations = Vec::with_capacity(nodes.len());
        let mut members: Vec<(Vec<NodeIndex>, Vec<M::Node>)> =
            (0..threads).map(|_| Default::default()).collect();
        for (id, (node, &partition)) in nodes.into_iter().zip(partition).enumerate() {
            let (ids, nodes) = &mut members[usize::from(partition)];
            locations.push(NodeLocation { partition: u32::from(partition), local: narrow::<u32>(ids.len()) });
            ids.push(narrow::<NodeIndex>(id));
            nodes.push(node);
        }
        self.locations = locations.into();
        let members = members.into_iter().enumerate();
        self.workers =
            members.map(|(partition, (ids, nodes))| self.worker(threads, partition, ids, nodes)).collect();
    }

    /// The worker of a partition.
    fn worker(
        &self,
        threads: usize,
        partition: usize,
        ids: Vec<NodeIndex>,
        nodes: Vec<M::Node>,
    ) -> Worker<M> {
        let Team { model, setup, plan, locations, .. } = self;
        let partition = narrow::<u32>(partition);
        let is_odd = setup.bipartition.as_ref().map(|sides| &*sides.is_odd);
        let local = |id: NodeIndex| {
            let location = locations[id as usize];
            (location.partition == partition).then_some(location.local)
        };
        let batch_order = BatchOrder::new(&**model, setup.order.as_deref(), is_odd, &ids, local);
        let ranks = ranks(&batch_order.nodes);
        let wheel = Wheel::new(ranks, threads == 1, plan.windows, plan.slots, plan.epoch);
        let locations = (threads > 1).then(|| Arc::clone(locations));
        let counts_loads = threads > 1 && setup.rebalance.is_some();
        Worker {
            model: Arc::clone(model),
            loads: vec![0; if counts_loads { ids.len() } else { 0 }],
            scheduler: LocalScheduler::new(partition, locations, wheel, threads),
            nodes,
            ids,
            batch_order,
            limit: plan.limit,
            start: Time::ZERO,
            waiting_past_limit: BTreeSet::new(),
            events: Vec::new(),
            sorter: EventSorter::new(plan.windows.length()),
            windows: plan.windows,
            large_order: Vec::new(),
            past_limit: Vec::new(),
            is_cut: false,
            goes_on: false,
            ran_until: Time::ZERO,
            handled: 0,
            has_started: false,
            epochs: 0,
            division: Division::default(),
            work: [0; 2],
        }
    }

    /// Runs until nothing is left to happen, the observer stops the run, or the work of threads differs too much.
    pub(crate) fn run(
        &mut self,
        pause: Pause,
        observe: &mut impl FnMut(Progress) -> ControlFlow<()>,
    ) -> RunEnd {
        let exchange = Exchange::new(self.workers.len());
        let rebalance = self.setup.rebalance.as_ref().filter(|_| self.workers.len() > 1);
        let how = How { plan: self.plan, setup: &self.setup, pause, rebalance };
        let end = if self.workers.len() == 1 || self.is_short(pause) {
            Worker::run_all(&mut self.workers, &exchange, how, observe)
        } else {
            let (first, rest) = self.workers.split_first_mut().expect("there is at least one thread");
            std::thread::scope(|scope| {
                let exchange = &exchange;
                let threads: Vec<_> = rest
                    .iter_mut()
                    .map(|worker| {
                        let observe = None::<fn(Progress) -> ControlFlow<()>>;
                        scope.spawn(move || worker.run(exchange, how, observe))
                    })
                    .collect();
                let end = first.run(exchange, how, Some(observe));
                for thread in threads {
                    if let Err(panic) = thread.join() {
                        std::panic::resume_unwind(panic);
                    }
                }
                end
            })
        };
        self.is_stopped = exchange.is_stopped() && end == RunEnd::Finished;
        end
    }

    /// Whether a pause comes so soon that one thread has come to it before others have started, by what epochs have been like so far.
    fn is_short(&self, pause: Pause) -> bool {
        let Worker { division, ran_until, .. } = &self.workers[0];
        let epoch = self.plan.windows.length().saturating_mul(self.plan.epoch);
        let epochs = pause.until.saturating_sub(*ran_until).0 / epoch + 1;
        let of_epoch = division.work.checked_div(division.epochs).unwrap_or(0).max(1);
        let others = self.workers.len() as u64 - 1;
        pause.until < self.plan.limit && epochs.saturating_mul(of_epoch) < THREAD_START * others
    }

    /// Partitions the nodes anew by what was counted, if that pays off.
    pub(crate) fn rebalance(&mut self) {
        let Team { model, setup, plan, locations, workers, .. } = self;
        let mut loads = vec![0; locations.len()];
        for worker in workers.iter() {
            worker
                .ids
                .iter()
                .zip(&worker.loads)
                .for_each(|(&id, &load)| loads[id as usize] = u64::from(load));
        }
        let threads = workers.len();
        let order =
            setup.order.clone().unwrap_or_else(|| (0..narrow::<NodeIndex>(locations.len())).collect());
        let is_odd = setup.bipartition.as_ref().filter(|_| plan.windows.step() > 1);
        let deferred = is_odd.map(|sides| deferred_nodes(&**model, &order, &sides.is_odd, threads));
        // One more each, so that idle nodes are shared, too.
        let partition = contiguous(&order, deferred.as_deref(), |node| loads[node as usize] + 1, threads);
        let mut work = vec![Work::default(); threads];
        for (node, &partition) in partition.iter().enumerate() {
            let is_deferred = deferred.as_ref().is_some_and(|deferred| deferred[node]);
            work[usize::from(partition)][usize::from(is_deferred)] += loads[node];
        }
        let (now, _) = imbalance(self.workers.iter().map(|worker| worker.work));
        let (then, mean) = imbalance(work.into_iter());
        if pays_off((now.saturating_sub(then), mean), partition.len()) {
            self.move_nodes(&partition);
            self.rebalance_count += 1;
        }
    }

    /// Moves all nodes, with their pending events, to new workers, which continue with the next window.
    fn move_nodes(&mut self, partition: &[u16]) {
        let old = std::mem::take(&mut self.workers);
        let threads = old.len();
        let (current, epochs) = (old[0].scheduler.wheel.current(), old[0].epochs);
        let (ran_until, division) = (old[0].ran_until, old[0].division);
        let mut rest = Vec::with_capacity(threads);
        let mut nodes: Vec<Option<M::Node>> = (0..partition.len()).map(|_| None).collect();
        for Worker { ids, nodes: of, scheduler, waiting_past_limit, past_limit, is_cut, handled, .. } in old {
            ids.iter().zip(of).for_each(|(&id, node)| nodes[id as usize] = Some(node));
            rest.push((ids, scheduler, waiting_past_limit, past_limit, is_cut, handled));
        }
        self.place(
            threads,
            partition,
            nodes.into_iter().map(|node| node.expect("every node is in a partition")).collect(),
        );
        let Team { workers, locations, .. } = self;
        workers[0].division = division;
        for worker in workers.iter_mut() {
            worker.scheduler.wheel.begin_at(current);
            worker.epochs = epochs;
            worker.has_started = true;
            worker.ran_until = ran_until;
        }
        for (ids, mut scheduler, waiting_past_limit, mut past_limit, is_cut, handled) in rest {
            // The counts are sums over all threads.
            let first = &mut workers[0];
            first.scheduler.tally += scheduler.tally;
            first.scheduler.timers += scheduler.timers;
            first.handled += handled;
            first.is_cut |= is_cut;
            first.past_limit.append(&mut past_limit);
            let location = |local: u32| locations[ids[local as usize] as usize];
            for &local in &scheduler.reports {
                let NodeLocation { partition, local } = location(local);
                let to = &mut workers[partition as usize].scheduler;
                to.reports.push(local);
                to.pauses |= scheduler.pauses;
            }
            for local in waiting_past_limit {
                let NodeLocation { partition, local } = location(local);
                workers[partition as usize].waiting_past_limit.insert(local);
            }
            if let Some(events) = scheduler.wheel.take_aside() {
                // Without events, too: something is left inside nodes.
                workers[0].scheduler.wheel.put_aside(std::iter::empty());
                for event in events {
                    let NodeLocation { partition, local } = location(event.node);
                    let wheel = &mut workers[partition as usize].scheduler.wheel;
                    wheel.put_aside(std::iter::once(Event { node: local, ..event }));
                }
            }
            debug_assert!(
                scheduler.batch_timers.is_empty() && scheduler.outboxes.iter().all(Outbox::is_empty),
                "between two epochs"
            );
            scheduler.wheel.drain(|window, local, events| {
                let NodeLocation { partition, local } = location(local);
                let wheel = &mut workers[partition as usize].scheduler.wheel;
                if events.is_empty() {
                    wheel.wake(local, window);
                }
                events.iter().for_each(|&event| wheel.insert_into(window, Event { node: local, ..event }));
            });
        }
    }

    /// Starts the nodes of a run whose threads meet after every window, so that it can pause there.
    pub(crate) fn start_session(&mut self) {
        let plan = WindowPlan { epoch: 1, ..WindowPlan::of_all(&self.setup) };
        let joint = std::mem::replace(&mut self.plan, plan);
        self.other_plan = Some(joint).filter(|joint| joint.windows.step() > 1);
        let Team { setup, plan, workers, .. } = self;
        let threads = workers.len();
        for worker in workers {
            worker.scheduler.wheel = worker.new_wheel(*plan, threads);
            worker.start_nodes(setup);
        }
    }

    /// From now on windows are those of a bipartition, if there is one, or they are so no more. Everything before `now` has been run.
    pub(crate) fn change_windows(&mut self, now: Time) {
        let Some(other) = self.other_plan.as_mut().filter(|other| now < other.limit) else { return };
        std::mem::swap(other, &mut self.plan);
        let Team { setup, plan, workers, .. } = self;
        let threads = workers.len();
        for worker in workers {
            let wheel = worker.new_wheel(*plan, threads);
            let mut before = std::mem::replace(&mut worker.scheduler.wheel, wheel);
            let mut events = before.take_aside().unwrap_or_default();
            before.drain(|_, node, of_node| {
                events.extend(of_node.iter().map(|&event| Event { node, ..event }))
            });
            worker.go_on_at(now, setup, events);
        }
    }

    /// Whether the last run has been stopped, by its observer or by a report.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The end of the last window that has been run, or where a pause has cut it.
    pub(crate) fn ran_until(&self) -> Time {
        self.workers[0].ran_until
    }

    /// Whether nothing is left to happen before the limit.
    pub(crate) fn is_done(&self) -> bool {
        let is_done = |scheduler: &LocalScheduler<_>| {
            scheduler.wheel.is_empty() && scheduler.outboxes.iter().all(Outbox::is_empty)
        };
        self.workers.iter().all(|worker| is_done(&worker.scheduler))
    }

    /// Messages handled so far, timers not counted.
    pub(crate) fn messages(&self) -> u64 {
        self.workers.iter().fold(0, |sum, worker| sum.wrapping_add(worker.messages()))
    }

    /// Sum of all [`Scheduler::tally`](crate::Scheduler::tally) calls.
    pub(crate) fn tally(&self) -> u64 {
        self.workers.iter().map(|worker| worker.scheduler.tally).sum()
    }

    /// Sets a timer of a node, between two runs, at an instant from that on to which all has been run. Nodes must have [started](Model::start), and there is no bipartition.
    pub(crate) fn set_timer(&mut self, node: NodeIndex, at: Time, payload: P<M>) {
        let NodeLocation { partition, local } = self.locations[node as usize];
        let Worker { scheduler, limit, is_cut, .. } = &mut self.workers[partition as usize];
        if at >= *limit {
            *is_cut = true;
            return;
        }
        scheduler.timers += 1;
        scheduler.wheel.insert_between_epochs(Event { at, source: DRIVER, node: local, payload }, 0);
    }

    /// All that is pending for some nodes between two runs, in the order of (time, source, order of sending), with the nodes in the order given.
    pub(crate) fn pending(&self, nodes: &[NodeIndex]) -> Vec<Event<P<M>>> {
        let (Some(&first), Some(&last)) = (nodes.iter().min(), nodes.iter().max()) else { return Vec::new() };
        let is_asked = |node: NodeIndex| match nodes.len() > FEW_NODES {
            true => (first..=last).contains(&node),
            false => nodes.contains(&node),
        };
        // What is far ahead is not kept by node: it is gone through once for all of them.
        let mut far: Vec<(NodeIndex, &Event<P<M>>)> = Vec::new();
        for worker in &self.workers {
            let far_ahead = worker.scheduler.wheel.far_ahead();
            let named = far_ahead.map(|event| (worker.ids[event.node as usize], event));
            far.extend(named.filter(|&(node, _)| is_asked(node)));
        }
        far.sort_by_key(|&(node, _)| node);
        let busy: Vec<Vec<u64>> =
            self.workers.iter().map(|worker| worker.scheduler.wheel.busy().collect()).collect();
        let mut count = 0;
        if nodes.len() > FEW_NODES {
            self.look_at_pending(|node, _| count += usize::from(is_asked(node)));
        }
        let mut events = Vec::with_capacity(count);
        let (mut of_node, mut order) = (Vec::new(), Vec::new());
        for &node in nodes {
            let NodeLocation { partition, local } = self.locations[node as usize];
            let wheel = &self.workers[partition as usize].scheduler.wheel;
            of_node.clear();
            for &window in &busy[partition as usize] {
                wheel.look_at(window, local, |event| of_node.push(*event));
            }
            let far_ahead =
                far[far.partition_point(|&(of, _)| of < node)..].iter().take_while(|&&(of, _)| of == node);
            of_node.extend(far_ahead.map(|&(_, event)| *event));
            // Not the events themselves, which are large. One source's events of an instant are in one inbox.
            order.clear();
            order.extend((0u32..).zip(&of_node).map(|(index, event)| (event.at, event.source, index)));
            order.sort_unstable();
            events.extend(order.iter().map(|&(.., index)| Event { node, ..of_node[index as usize] }));
        }
        events
    }

    /// Shows all that is pending for all nodes between two runs: the node and the event, in no particular order.
    pub(crate) fn look_at_pending(&self, mut each: impl FnMut(NodeIndex, &Event<P<M>>)) {
        for Worker { scheduler, ids, .. } in &self.workers {
            for window in scheduler.wheel.busy() {
                for (local, &node) in (0..).zip(ids) {
                    scheduler.wheel.look_at(window, local, |event| each(node, event));
                }
            }
            scheduler.wheel.far_ahead().for_each(|event| each(ids[event.node as usize], event));
        }
    }

    /// Shows a node, which is brought to the instant to which all has been run, so that its state depends on no window.
    pub(crate) fn settled(&mut self, node: NodeIndex, now: Time) -> &mut M::Node {
        let NodeLocation { partition, local } = self.locations[node as usize];
        let worker = &mut self.workers[partition as usize];
        worker.settle(local, now);
        &mut worker.nodes[local as usize]
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> NodeIndex {
        narrow::<NodeIndex>(self.locations.len())
    }

    /// Continues at `now`, for [`Session::jump`](crate::Session::jump).
    pub(crate) fn go_on_at(&mut self, now: Time, (messages, tally): (u64, u64), events: &[Event<P<M>>]) {
        let Team { setup, plan, workers, locations, .. } = self;
        let threads = workers.len();
        workers[0].handled += messages;
        workers[0].scheduler.tally += tally;
        let mut by_worker: Vec<Vec<Event<P<M>>>> = (0..threads).map(|_| Vec::new()).collect();
        for &event in events {
            let NodeLocation { partition, local } = locations[event.node as usize];
            by_worker[partition as usize].push(Event { node: local, ..event });
        }
        for (worker, events) in workers.iter_mut().zip(by_worker) {
            worker.scheduler.wheel = worker.new_wheel(*plan, threads);
            worker.go_on_at(now, setup, events);
        }
    }

    /// Whether nodes have [reported](crate::Scheduler::report) something that pauses the run and has not been [taken](Self::take_reports).
    pub(crate) fn pauses(&self) -> bool {
        self.workers.iter().any(|worker| worker.scheduler.pauses)
    }

    /// Calls `each` with every node that has [reported](crate::Scheduler::report) something since the last call.
    pub(crate) fn take_reports(&mut self, mut each: impl FnMut(NodeIndex, &mut M::Node)) {
        for Worker { scheduler, nodes, ids, .. } in &mut self.workers {
            scheduler.pauses = false;
            for local in scheduler.reports.drain(..) {
                each(ids[local as usize], &mut nodes[local as usize]);
            }
        }
    }

    /// The outcome of a run that has ended.
    pub(crate) fn finish(self) -> Run<M::Node, M::Payload> {
        let Team { workers, locations, plan, setup, is_stopped, rebalance_count, .. } = self;
        let is_idle = |worker: &Worker<M>| {
            worker.scheduler.wheel.is_empty() && worker.waiting_past_limit.is_empty() && !worker.is_cut
        };
        let out_of_time = !is_stopped && setup.until > plan.limit && !workers.iter().all(is_idle);
        let (mut messages, mut tally) = (Wrapping(0), 0);
        let mut pending = Vec::new();
        let mut states = Vec::with_capacity(workers.len());
        let division = workers[0].division;
        for worker in workers {
            let Worker { nodes, mut past_limit, scheduler, handled, .. } = worker;
            let LocalScheduler { wheel, timers, tally: of_worker, .. } = scheduler;
            tally += of_worker;
            let events = wheel.into_events();
            let all = events.len();
            // In place: the iterator reuses the memory of the events.
            let mut payloads: Vec<P<M>> = events
                .into_iter()
                .filter(|event| !is_timer(event.source))
                .map(|event| event.payload)
                .collect();
            // Timers that are still pending have not been handled.
            let waiting = (all - payloads.len()) as u64;
            messages += Wrapping(handled + waiting) - timers;
            payloads.append(&mut past_limit);
            match pending.is_empty() {
                true => pending = payloads,
                false => pending.append(&mut payloads),
            }
            states.push(nodes.into_iter());
        }
        let nodes = locations
            .iter()
            .map(|at| states[at.partition as usize].next().expect("every node is in its partition"))
            .collect();
        let messages = messages.0;
        Run { nodes, messages, tally, pending, stopped: is_stopped, out_of_time, rebalance_count, division }
    }
}
