//! After the run: what switches have handed in of the flows that came to them comes together, flow by flow and switch by switch.

use std::sync::Arc;

use netloom_record::{FlowObservationRecord, FlowletRecord, GapRecord, Gathered, Records};
use netloom_routing::FlowKey;
use netloom_routing::granularity::flowlet::Flowlet;

use crate::node::Node;
use crate::observe::intervals::Intervals;
use crate::run::error::RunError;
use crate::run::rows::rows;
use crate::switch::view::hand_in_flowlets;
use crate::world::World;

/// What switches saw of flowlets and gaps, where they looked; flowlets also where routing distinguishes them.
pub(crate) fn collect_flow_observations(
    world: &World,
    nodes: &mut [Node],
    records: &mut Records,
) -> Result<(), RunError> {
    let (mut look, mut tell_apart) = (false, false);
    for (id, node) in (0..).zip(nodes) {
        let Node::Switch(switch) = node else { continue };
        if let Some(mut gap_monitor) = switch.gap_monitor.take() {
            look = true;
            gap_monitor.hand_in_all(world, id);
        } else if let Some(flowlets) = switch.path_selector.take_flowlets() {
            tell_apart = true;
            hand_in_flowlets(world, id, flowlets);
        }
    }
    if look || tell_apart {
        let network = &world.network;
        let names = (network.hosts()..network.nodes()).map(|switch| network.node_name(switch).into());
        let names: Vec<Arc<str>> = names.collect();
        let mut flowlets = Gathered::default();
        // Where nobody looks, each flowlet was counted by itself.
        let threshold = world.gaps.flowlet.as_ref().filter(|_| look);
        let joined = Joined {
            add: |seen: Seen| {
                flowlets.push(FlowletRecord {
                    switch: names[(seen.switch - network.hosts()) as usize].clone(),
                    src: seen.src,
                    flow: seen.flow,
                    packets: look.then_some(seen.packets),
                    flowlets: seen.flowlets,
                });
            },
            between: |gap| world.recorder.switch_gaps.extend([gap]),
        };
        joined.join(rows(&world.recorder.observations.finish()?)?, threshold)?;
        records.flowlets = Some(flowlets.finish()?);
    }
    if look {
        let mut gaps = Gathered::default();
        let whole = |gap: GapRecord| GapRecord { flow: world.numbering.flow(gap.flow), ..gap };
        add_up(rows(&world.recorder.switch_gaps.finish()?)?, |gap| gaps.push(whole(gap)))?;
        records.switch_gaps = Some(gaps.finish()?);
    }
    Ok(())
}

/// All that a switch has seen of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    src: u32,
    flow: u32,
    switch: u32,
    packets: u64,
    flowlets: u32,
}

/// Who gets what results.
struct Joined<A, B> {
    /// What a switch has seen of a flow, in order of flows and of switches' numbers.
    add: A,
    /// A gap in which the flow's first switch had forgotten it, by the number of the subflow.
    between: B,
}

impl<A: FnMut(Seen), B: FnMut(GapRecord)> Joined<A, B> {
    /// Goes through what switches have handed in, which is in order; gaps of `threshold` separate flowlets.
    fn join(
        mut self,
        observations: impl Iterator<Item = Result<FlowObservationRecord, RunError>>,
        threshold: Option<&Flowlet>,
    ) -> Result<(), RunError> {
        let mut joined: Option<(Seen, FlowObservationRecord)> = None;
        for observation in observations {
            let observation = observation?;
            let FlowObservationRecord { src, flow, switch, packets, mut flowlets, .. } = observation;
            let seen = match joined.take() {
                Some((seen, before)) if (seen.src, seen.flow, seen.switch) == (src, flow, switch) => {
                    if before.number == observation.number {
                        flowlets -= self.continue_from(&before, &observation, threshold);
                    }
                    seen
                }
                other => {
                    other.into_iter().for_each(|(seen, _)| (self.add)(seen));
                    Seen { src, flow, switch, ..Seen::default() }
                }
            };
            let (packets, flowlets) = (seen.packets + u64::from(packets), seen.flowlets + flowlets);
            joined = Some((Seen { packets, flowlets, ..seen }, observation));
        }
        joined.into_iter().for_each(|(seen, _)| (self.add)(seen));
        Ok(())
    }

    /// A flow comes again that the switch had forgotten. Returns how many flowlets fewer there are than were counted: none, or the first one, which is
    /// not one of its own.
    fn continue_from(
        &mut self,
        before: &FlowObservationRecord,
        observation: &FlowObservationRecord,
        threshold: Option<&Flowlet>,
    ) -> u32 {
        let mut between = Intervals::new(observation.base_rtt);
        between.pass(before.last, None, false);
        between.pass(observation.first, threshold, observation.is_first_hop);
        between
            .records(FlowKey { src: observation.src, flow: observation.number })
            .for_each(&mut self.between);
        u32::from(threshold.is_some()) - between.flowlets
    }
}

/// Adds up rows of the same gaps of the same subflow, which follow each other.
fn add_up(
    gaps: impl Iterator<Item = Result<GapRecord, RunError>>,
    mut add: impl FnMut(GapRecord),
) -> Result<(), RunError> {
    let mut sum: Option<GapRecord> = None;
    let of = |gap: &GapRecord| (gap.src, gap.flow, gap.base_rtts, gap.from);
    for gap in gaps {
        let gap = gap?;
        match &mut sum {
            Some(sum) if of(sum) == of(&gap) => sum.count += gap.count,
            _ => sum.replace(gap).into_iter().for_each(&mut add),
        }
    }
    sum.into_iter().for_each(add);
    Ok(())
}

#[cfg(test)]
mod tests {
    use netloom_record::Series;
    use netloom_units::Time;
    use proptest::prelude::*;

    use super::*;
    use crate::observe::gap_monitor::{Arriving, FlowObservation, GapMonitor};

    /// Flow numbers have a bit that distinguishes two subflows.
    const SUBFLOW: u32 = 1 << 30;

    /// A data packet that comes some time after the one before it.
    #[derive(Clone, Copy, Debug)]
    struct Arrival {
        after: u64,
        switch: usize,
        key: FlowKey,
        is_first_hop: bool,
    }

    /// Flows of host 0 begin at switch 0, where packets may come by again; those of host 1 begin at switch 1.
    fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
        let after = prop_oneof![Just(0), 1..20u64, 1..2000u64];
        let arrival = (after, 0..2usize, 0..2u32, 0..4u32, any::<bool>(), prop::bool::weighted(0.9));
        let arrival = arrival.prop_map(|(after, switch, src, flow, is_second, comes_first)| {
            let key = FlowKey { src, flow: flow | if is_second { SUBFLOW } else { 0 } };
            Arrival { after, switch, key, is_first_hop: comes_first && switch == src as usize }
        });
        prop::collection::vec(arrival, 0..200)
    }

    fn flowlet() -> impl Strategy<Value = Option<Flowlet>> {
        let flowlet = (1..50u64, any::<bool>());
        prop::option::of(flowlet.prop_map(|(gap, age_bit)| Flowlet { gap: Time(gap), age_bit }))
    }

    /// What two switches have seen that remember a `few` flows of which nothing comes, and how many rows they have handed in.
    fn see(
        arrivals: &[Arrival],
        flowlet: Option<&Flowlet>,
        few: usize,
        base_rtt: u64,
    ) -> (Vec<Seen>, Vec<GapRecord>, usize) {
        let mut monitors = [0, 1].map(|_| GapMonitor::new(few, Time::ZERO));
        let (mut observations, mut gaps) = (Vec::new(), Vec::new());
        let mut hand_in = |flows: Vec<(FlowKey, FlowObservation)>, switch: usize| {
            for (key, observation) in flows {
                observations.push(observation.record(key, key.flow & !SUBFLOW, switch as u32));
                gaps.extend(observation.intervals.records(key));
            }
        };
        let mut now = Time::ZERO;
        for &Arrival { after, switch, key, is_first_hop } in arrivals {
            now += Time(after);
            let base_rtt = || Time(if switch == key.src as usize { base_rtt } else { 0 });
            let coming = Arriving { key, now, is_first_hop };
            hand_in(monitors[switch].pass(coming, flowlet, base_rtt), switch);
        }
        for (switch, gap_monitor) in monitors.iter_mut().enumerate() {
            hand_in(gap_monitor.take_all(), switch);
        }
        let rows_handed_in = observations.len();
        let (mut seen, mut all) = (Vec::new(), Vec::new());
        let joined = Joined { add: |at| seen.push(at), between: |gap| gaps.push(gap) };
        joined.join(rows(&Series::from(observations)).unwrap(), flowlet).unwrap();
        add_up(rows(&Series::from(gaps)).unwrap(), |gap| all.push(gap)).unwrap();
        (seen, all, rows_handed_in)
    }

    proptest! {
        /// It cannot be seen in the results what was forgotten, and when.
        #[test]
        fn flows_that_were_forgotten_are_whole_again(
            arrivals in arrivals(),
            flowlet in flowlet(),
            base_rtt in 1..1000u64,
        ) {
            let (seen, gaps, rows) = see(&arrivals, flowlet.as_ref(), usize::MAX, base_rtt);
            let (seen_again, gaps_again, more_rows) = see(&arrivals, flowlet.as_ref(), 1, base_rtt);
            prop_assert!(more_rows >= rows);
            prop_assert_eq!(seen_again, seen);
            prop_assert_eq!(gaps_again, gaps);
        }
    }

    #[test]
    fn one_flow_that_comes_again_and_again_is_one_row() {
        let of = |flow| FlowKey { src: 0, flow };
        let arrivals = (0..10).flat_map(|_| [of(0), of(1)]);
        let arrivals = arrivals.map(|key| Arrival { after: 60, switch: 0, key, is_first_hop: true });
        let threshold = Flowlet { gap: Time(100), age_bit: false };
        let (seen, gaps, rows) = see(&arrivals.collect::<Vec<_>>(), Some(&threshold), 1, 50);
        assert!(rows > 4, "{rows}: they were forgotten");
        let at = |flow| Seen { src: 0, flow, switch: 0, packets: 10, flowlets: 10 };
        assert_eq!(seen, [at(0), at(1)]);
        let counts: Vec<_> = gaps.iter().map(|gap| (gap.flow, gap.base_rtts, gap.count)).collect();
        assert_eq!(counts, [(0, 2, 9), (1, 2, 9)]);
    }
}
