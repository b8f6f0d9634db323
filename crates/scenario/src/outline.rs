//! Which numbers a run will have, computed before it runs.

use netloom_record::{
    ChannelRecord, ChannelWindowRecord, CollectiveRecord, DecisionCount, FlowRecord, JobNames, JobRecord,
    JobRecords, NamedChannel, PacketStatistics, Records, Series, Status, SteadySkipped, Summary, Window,
};
use netloom_sim::Fast;
use netloom_topology::{Network, REDUCTION_TIER};
use netloom_units::{Time, narrow};
use netloom_workload::Plan;

use crate::run::summary_options;
use crate::scenario::Scenario;

/// The summary of a run in which every group completes a flow of every size bin, every tier has a channel, and every window and
/// named channel was measured.
pub(crate) fn outline(scenario: &Scenario, network: &Network, plan: &Plan) -> Summary {
    let groups = plan.groups.as_slice();
    let options = summary_options(scenario);
    let measure = &scenario.measure;
    // The smallest flow of every bin.
    let sizes: Vec<u64> = [0]
        .into_iter()
        .chain(options.size_bins.iter().map(|end| end.0))
        .map(|above| above.saturating_add(1))
        .collect();
    // Different times, so that there is something beyond every percentile.
    let flow = |(fct, (group, bytes)): (u64, (u16, u64))| FlowRecord {
        group,
        bytes,
        start: options.warm_up,
        fct: Some(Time(fct)),
        sender_fct: Some(Time(fct)),
        ideal_fct: Time(1),
        ..FlowRecord::default()
    };
    let channel = |(channel, tier): (u32, &str)| ChannelRecord {
        channel,
        tier: tier.into(),
        ..ChannelRecord::default()
    };
    let of_units = plan.units.map(|_| REDUCTION_TIER);
    let window_channel = |window: u16| ChannelWindowRecord { window, ..ChannelWindowRecord::default() };
    let classes = narrow::<u8>(scenario.fabric.options.classes.len().max(1));
    let mut records = Records {
        groups: groups.to_vec(),
        windows: measure
            .windows
            .iter()
            // Only names matter here, and what was written has not been checked yet.
            .map(|window| Window { name: window.name.clone(), from: Time::ZERO, until: Time(1) })
            .collect(),
        named_channels: measure
            .channels
            .iter()
            .map(|named| NamedChannel { name: named.name.clone(), channel: 0 })
            .collect(),
        flows: (1..)
            .zip((0..=u16::MAX).take(groups.len()).flat_map(|group| {
                // Two of each.
                sizes.iter().flat_map(move |&size| [(group, size); 2])
            }))
            .map(flow)
            .collect(),
        gaps: measure.gaps.then(Series::default),
        switch_gaps: measure.switch_gaps.then(Series::default),
        channels: (0..)
            .zip(network.tiers().iter().map(String::as_str).chain(of_units))
            .map(channel)
            .collect(),
        packets: (0..=u16::MAX)
            .take(if measure.packets { groups.len() } else { 0 })
            .flat_map(|group| (0..classes).map(move |class| ((group, class), packets())))
            .collect(),
        jobs: jobs(plan),
        window_channels: (0..narrow::<u16>(measure.windows.len())).map(window_channel).collect(),
        ..Records::default()
    };
    records.totals.simulated = Time(options.warm_up.0.saturating_add(1));
    (records.totals.makespan, records.totals.active_from) =
        (Some(records.totals.simulated), Some(options.warm_up));
    records.totals.decisions.insert(scenario.routing.selector_name().to_owned(), DecisionCount::default());
    let summary = Summary::new(&records, &options, Status::Complete).expect("so few flows stay in memory");
    let error = Some(0.0);
    let audited = || SteadySkipped {
        error_mean: error,
        error_plus_minus: error,
        error_p99: error,
        error_max: error,
        ..Default::default()
    };
    Summary { steady: matches!(scenario.fast, Fast::Steady(_)).then(audited), ..summary }
}

/// Jobs that took some time, with a collective each if they have any that moves data.
fn jobs(plan: &Plan) -> JobRecords {
    let mut records = JobRecords::default();
    for (number, job) in (0..).zip(&plan.jobs) {
        records.jobs.push(JobNames { name: job.name.clone(), ranks: 1, repetitions: 1 });
        records.repetitions.push(JobRecord { job: number, end: Some(Time(1)), ..JobRecord::default() });
        if let Some(factor) = job.collectives().iter().find_map(|one| one.kind.bus_factor(one.ranks)) {
            let mut collective = CollectiveRecord { job: number, ..CollectiveRecord::default() };
            collective.complete(Time(1), Some(factor));
            records.collectives.push(collective);
        }
    }
    records
}

/// Packets over every number of channels that is likely.
fn packets() -> PacketStatistics {
    const MOST_HOPS: u16 = 64;
    let mut packets = PacketStatistics::default();
    (1..=MOST_HOPS).for_each(|hops| packets.add(Time(1), hops));
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Node;
    use crate::run::{prepare, run};
    use crate::source::Source;
    use netloom_record::{Existing, OutcomeWriter};
    use serde_json::Value;
    use std::ops::ControlFlow;

    /// The path of every number.
    fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| paths(value, &format!("{path}.{key}"), found))
            }
            Value::Array(items) => items.iter().for_each(|item| {
                let name =
                    ["tier", "up_to_bytes"].map(|key| item.get(key).unwrap_or(&Value::Null).to_string());
                paths(item, &format!("{path}.{}", name.concat()), found);
            }),
            Value::Number(_) => found.push(path.to_owned()),
            _ => {}
        }
    }

    #[test]
    fn a_run_has_no_number_that_its_outline_does_not_name() {
        let scenarios = [
            "topology = { kind = 'fat-tree', k = 4 }\nworkload = { size = '20KB' }",
            "fast = { max_error = 0.01 }\ntopology = { kind = 'crossbar', hosts = 4 }\nrouting = 'spray'\nworkload = { size = '64MiB' }",
            "topology = { kind = 'fat-tree', k = 4 }\nrouting = 'flowcut-nic'\n[workload]\nkind = 'mix'\nparts = ['permutation', { kind = 'incast', name = 'in' }]\n\
             [measure]\npackets = true\ngaps = true\nswitch_gaps = true\nwarm_up = '1us'\nsize_bins = ['1KB', '10MB']\nwindows = [{ name = 'early', from = '0us', until = '20us' }]\n\
             channels = [{ name = 'c', from = 'h0', to = 's0' }]",
            "topology = { kind = 'fat-tree', k = 4 }\n[[jobs]]\nname = 'a'\nranks = 4\nrepetitions = 2\nworkload = { kind = 'collective', compute = '1us' }\n\
             [[jobs]]\nname = 'b'\nranks = 3\nworkload = { kind = 'all-to-all', size = '10KB' }",
            "topology = { kind = 'fat-tree', k = 4 }\nworkload = { kind = 'sharp-like', size = '20KB' }",
        ];
        for text in scenarios {
            let document = Node::parse(&Source::new("s", text)).unwrap();
            let ready = prepare(&Scenario::read(&document).unwrap(), &document).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let writer = OutcomeWriter::prepare(&folder.path().join("out"), Existing::Refuse).unwrap();
            let ran = run(&document, 1, &writer, |_| ControlFlow::Continue(())).unwrap();
            let (mut known, mut found) = (Vec::new(), Vec::new());
            paths(&serde_json::to_value(&ready.outline).unwrap(), "", &mut known);
            paths(&serde_json::to_value(&ran.summary).unwrap(), "", &mut found);
            assert!(found.len() > 50);
            for path in found {
                assert!(known.contains(&path), "{path}");
            }
        }
    }
}
