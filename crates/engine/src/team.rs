//! The threads of a run: which nodes each of them runs, and who gets which when some have more to do than others.
//!
//! What nodes have to do depends on the traffic, and nobody knows that of a run that has not begun. So each thread counts what its nodes handle. After 2ⁿ epochs, for every n
//! from some on, the threads' sums since the last such look are compared; where they differ, all threads end, the nodes are cut anew by what was counted, and other threads go on. Results cannot depend on
//! it, as they do not depend on who runs a node.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_units::{Time, narrow};

use crate::engine::{Grid, Home, Outbox, P, Progress, Run, Running, Setup, Worker};
use crate::exchange::{Exchange, Letters};
use crate::inboxes::Ahead;
use crate::model::{Model, NodeIndex, TIMER};
use crate::order::Order;
use crate::partition::{contiguous, late, places};
use crate::turns::Sequence;
use crate::wheel::{Event, Wheel};

/// How nodes are given to other threads.
#[derive(Clone, Debug)]
pub struct Balance {
    /// After how many epochs, a power of two, it is first looked at.
    pub first_look: u64,
}

impl Default for Balance {
    /// The first look comes when enough epochs have passed to average out the chances of one.
    fn default() -> Self {
        Balance { first_look: 64 }
    }
}

impl Balance {
    /// Whether it is looked at after this many epochs.
    pub(crate) fn looks_after(&self, epochs: u64) -> bool {
        epochs >= self.first_look && epochs.is_power_of_two()
    }
}

/// What threads have had to do in windows of either side: all that is swept together counts for the even one.
pub(crate) type Work = [u64; 2];

/// What could be saved if all threads had as much to do, in units of [`Work`]: while a side is run, all wait for the one that has most. With it, what one of them has to do.
pub(crate) fn excess(work: impl Iterator<Item = Work>) -> (u64, u64) {
    let (mut most, mut total, mut threads) = ([0; 2], [0; 2], 0);
    for of in work {
        threads += 1;
        for side in 0..2 {
            most[side] = of[side].max(most[side]);
            total[side] += of[side];
        }
    }
    let mean = total.map(|total| total / threads.max(1));
    (most.iter().sum::<u64>() - mean.iter().sum::<u64>(), mean.iter().sum())
}

/// Whether so much could be saved that this many nodes should be moved for it: more than a twentieth, and, as nothing is known but that as much is to come as was
/// counted, more than moving them costs, about as much as handling a message each.
pub(crate) fn is_worth_it((saved, mean): (u64, u64), nodes: usize) -> bool {
    saved > mean / 20 && saved > nodes as u64
}

/// Why all threads have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// There is nothing left to do, or the observer has stopped the run.
    Over,
    /// Some have more to do than others.
    Uneven,
}

pub(crate) struct Team<'e, M: Model> {
    model: &'e M,
    setup: &'e Setup,
    grid: Grid,
    /// Per thread.
    workers: Vec<Worker<'e, M>>,
    homes: Arc<[Home]>,
    is_stopped: bool,
    regroupings: u32,
}

impl<'e, M: Model> Team<'e, M> {
    pub(crate) fn new(model: &'e M, setup: &'e Setup, parts: &[u16], nodes: Vec<M::Node>) -> Self {
        let threads = parts.iter().max().map_or(1, |&part| usize::from(part) + 1);
        let mut team = Team {
            model,
            setup,
            grid: Grid::new(setup),
            workers: Vec::new(),
            homes: Arc::new([]),
            is_stopped: false,
            regroupings: 0,
        };
        team.place(threads, parts, nodes);
        team
    }

    /// Puts every node where it is to be run.
    fn place(&mut self, threads: usize, parts: &[u16], nodes: Vec<M::Node>) {
        let mut homes = Vec::with_capacity(nodes.len());
        let mut members: Vec<(Vec<NodeIndex>, Vec<M::Node>)> =
            (0..threads).map(|_| Default::default()).collect();
        for (id, (node, &part)) in nodes.into_iter().zip(parts).enumerate() {
            let (ids, nodes) = &mut members[usize::from(part)];
            homes.push(Home { part: u32::from(part), local: narrow::<u32>(ids.len()) });
            ids.push(narrow::<NodeIndex>(id));
            nodes.push(node);
        }
        self.homes = homes.into();
        let Team { model, setup, grid, .. } = *self;
        let homes = &self.homes;
        let sides = setup.sides.as_ref().map(|sides| &*sides.of).filter(|_| grid.windows.step() > 1);
        let counts = threads > 1 && setup.balance.is_some();
        let worker = |(part, (ids, nodes)): (usize, (Vec<NodeIndex>, Vec<_>))| {
            let local = |id: NodeIndex| {
                let home = homes[id as usize];
                (home.part == narrow::<u32>(part)).then_some(home.local)
            };
            let sequence = Sequence::new(model, setup.order.as_deref(), sides, &ids, local);
            Worker {
                model,
                loads: vec![0; if counts { ids.len() } else { 0 }],
                outbox: Outbox {
                    part: narrow::<u32>(part),
                    homes: (threads > 1).then(|| Arc::clone(homes)),
                    wheel: Wheel::new(
                        places(&sequence.nodes),
                        threads == 1,
                        grid.windows,
                        grid.slots,
                        grid.epoch,
                    ),
                    mail: (0..threads).map(|_| Letters::default()).collect(),
                    mail_first: u64::MAX,
                    soon: Default::default(),
                    next_timer: Time::MAX,
                    soon_sequence: 0,
                    running: Running { local: 0, window_end: Time::ZERO },
                    ahead: Ahead::default(),
                    now: Time::ZERO,
                    timers: 0,
                    tally: 0,
                },
                nodes,
                ids,
                sequence,
                sides,
                limit: grid.limit,
                start: Time::ZERO,
                beyond: BTreeSet::new(),
                events: Vec::new(),
                order: Order::new(grid.windows.length()),
                windows: grid.windows,
                long_order: Vec::new(),
                late: Vec::new(),
                is_cut: false,
                handled: 0,
                epochs: 0,
                work: [0; 2],
            }
        };
        self.workers = members.into_iter().enumerate().map(worker).collect();
    }

    /// Runs until nothing is left to happen, the observer stops the run, or threads have too different amounts to do.
    pub(crate) fn run(&mut self, observe: &mut impl FnMut(Progress) -> ControlFlow<()>) -> End {
        let exchange = Exchange::new(self.workers.len());
        let grid = self.grid;
        let balance = self.setup.balance.as_ref().filter(|_| self.workers.len() > 1);
        let (first, rest) = self.workers.split_first_mut().expect("there is at least one thread");
        let end = std::thread::scope(|scope| {
            let exchange = &exchange;
            let handles: Vec<_> = rest
                .iter_mut()
                .map(|worker| {
                    let observe = None::<fn(Progress) -> ControlFlow<()>>;
                    scope.spawn(move || worker.run(exchange, grid, balance, observe))
                })
                .collect();
            let end = first.run(exchange, grid, balance, Some(observe));
            for handle in handles {
                if let Err(panic) = handle.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            end
        });
        self.is_stopped = exchange.is_stopped() && end == End::Over;
        end
    }

    /// Gives nodes to other threads by what was counted, if that makes a difference.
    pub(crate) fn regroup(&mut self) {
        let Team { model, setup, ref homes, ref workers, .. } = *self;
        let mut loads = vec![0; homes.len()];
        for worker in workers {
            worker
                .ids
                .iter()
                .zip(&worker.loads)
                .for_each(|(&id, &load)| loads[id as usize] = u64::from(load));
        }
        let threads = workers.len();
        let order = setup.order.clone().unwrap_or_else(|| (0..narrow::<NodeIndex>(homes.len())).collect());
        let late = workers[0].sides.map(|sides| late(model, &order, sides, threads));
        // One more each, so that idle nodes are shared, too.
        let parts = contiguous(&order, late.as_deref(), |node| loads[node as usize] + 1, threads);
        let mut work = vec![Work::default(); threads];
        for (node, &part) in parts.iter().enumerate() {
            let is_late = late.as_ref().is_some_and(|late| late[node]);
            work[usize::from(part)][usize::from(is_late)] += loads[node];
        }
        let (now, _) = excess(self.workers.iter().map(|worker| worker.work));
        let (then, mean) = excess(work.into_iter());
        if is_worth_it((now.saturating_sub(then), mean), parts.len()) {
            self.move_nodes(&parts);
            self.regroupings += 1;
        }
    }

    /// Has other threads run the nodes, from the next window on.
    fn move_nodes(&mut self, parts: &[u16]) {
        let old = std::mem::take(&mut self.workers);
        let threads = old.len();
        let (current, epochs) = (old[0].outbox.wheel.current(), old[0].epochs);
        let mut rest = Vec::with_capacity(threads);
        let mut nodes: Vec<Option<M::Node>> = (0..parts.len()).map(|_| None).collect();
        for Worker { ids, nodes: of, outbox, beyond, late, is_cut, handled, .. } in old {
            ids.iter().zip(of).for_each(|(&id, node)| nodes[id as usize] = Some(node));
            rest.push((ids, outbox, beyond, late, is_cut, handled));
        }
        self.place(
            threads,
            parts,
            nodes.into_iter().map(|node| node.expect("every node lives somewhere")).collect(),
        );
        let Team { workers, homes, .. } = self;
        for worker in workers.iter_mut() {
            worker.outbox.wheel.begin_at(current);
            worker.epochs = epochs;
        }
        for (ids, outbox, beyond, mut late, is_cut, handled) in rest {
            // The counts are sums of all threads.
            let first = &mut workers[0];
            first.outbox.tally += outbox.tally;
            first.outbox.timers += outbox.timers;
            first.handled += handled;
            first.is_cut |= is_cut;
            first.late.append(&mut late);
            let home = |local: u32| homes[ids[local as usize] as usize];
            for local in beyond {
                let Home { part, local } = home(local);
                workers[part as usize].beyond.insert(local);
            }
            debug_assert!(
                outbox.soon.is_empty() && outbox.mail.iter().all(Letters::is_empty),
                "between two epochs"
            );
            outbox.wheel.hand_over(|window, local, events| {
                let Home { part, local } = home(local);
                let wheel = &mut workers[part as usize].outbox.wheel;
                if events.is_empty() {
                    wheel.wake(local, window);
                }
                events.iter().for_each(|&event| wheel.insert_into(window, Event { node: local, ..event }));
            });
        }
    }

    /// What is left when nobody runs any more.
    pub(crate) fn disband(self) -> Run<M::Node, M::Payload> {
        let Team { workers, homes, grid, setup, is_stopped, regroupings, .. } = self;
        let is_idle = |worker: &Worker<'_, M>| {
            worker.outbox.wheel.is_empty() && worker.beyond.is_empty() && !worker.is_cut
        };
        let out_of_time = !is_stopped && setup.until > grid.limit && !workers.iter().all(is_idle);
        let (mut messages, mut tally) = (0, 0);
        let mut pending = Vec::new();
        let mut states = Vec::with_capacity(workers.len());
        for worker in workers {
            let Worker { nodes, mut late, outbox, handled, .. } = worker;
            let Outbox { wheel, timers, tally: tallied, .. } = outbox;
            tally += tallied;
            let events = wheel.into_events();
            let all = events.len();
            // Where they lie already.
            let mut under_way: Vec<P<M>> =
                events.into_iter().filter(|event| event.source != TIMER).map(|event| event.payload).collect();
            // Timers that still wait have not been handled. They may have been counted by another thread.
            let waiting = (all - under_way.len()) as u64;
            messages = (messages + handled + waiting).wrapping_sub(timers);
            under_way.append(&mut late);
            match pending.is_empty() {
                true => pending = under_way,
                false => pending.append(&mut under_way),
            }
            states.push(nodes.into_iter());
        }
        let nodes = homes
            .iter()
            .map(|home| states[home.part as usize].next().expect("every node lives in its part"))
            .collect();
        Run { nodes, messages, tally, pending, stopped: is_stopped, out_of_time, regroupings }
    }
}
