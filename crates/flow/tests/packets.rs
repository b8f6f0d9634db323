//! Flows beside their packets, where both are to be close to each other.

mod support;

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_flow::RegionRun;
use netloom_record::Records;
use netloom_sim::{ChannelEnds, Degrade, Fault, SimConfig, Simulation};
use netloom_topology::Network;
use netloom_transport::{Reliability, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{
    Algorithm, AllToAll, Collective, GpuCollective, HostName, Incast, Job, JobPlacement, Method,
    NicSelection, Pattern, PlanContext, Region, ScaleUp, ScaleUpWiring, Servers, Wiring, Workload,
};
use support::common::*;
use support::{flow_by_flow, free, laid, messages};

fn mean_slowdown(records: &Records) -> f64 {
    let slowdown = |flow| fct(flow).0 as f64 / flow.ideal_fct.0 as f64;
    records.flows.iter().map(slowdown).sum::<f64>() / records.flows.len() as f64
}

/// A permutation of large messages where flows have one path each and share links. DCTCP, the default, keeps queues short and shares links evenly.
#[test]
fn a_permutation_on_single_paths_is_as_slow_as_that_of_packets() {
    let network = fat_tree(8);
    for name in ["ecmp", "s-mod-k"] {
        let plan = || permutation(1 << 20, &network, 1);
        let flows = mean_slowdown(&flow_by_flow(&network, scheme(name), plan()));
        let packets = mean_slowdown(&run(network.clone(), scheme(name), plan()));
        assert!((flows / packets - 1.0).abs() < 0.05, "{name}: {flows} instead of {packets}");
    }
}

/// A fat tree is rearrangeably non-blocking, so a permutation that divides evenly among all paths is as fast as a lone flow. Packets wait for each other
/// all the same.
#[test]
fn a_divided_permutation_has_the_network_for_itself() {
    let network = fat_tree(8);
    for name in ["spray", "spray-paths", "adaptive", "reps"] {
        let config = || SimConfig { transport: Transport::default(), ..free(name) };
        let plan = || permutation(1 << 20, &network, 1);
        let flows = flow_by_flow(&network, config(), plan()).flows;
        assert!(flows.iter().all(|flow| fct(flow).0.abs_diff(flow.ideal_fct.0) <= 1), "{name}");
        assert!(mean_slowdown(&run(network.clone(), config(), plan())) >= 1.0, "{name}");
    }
}

/// A run with an end ends there if a message is to start later or a rank still calculates, whether anything is under way then or not. So it does beside a region.
#[test]
fn a_run_with_work_left_ends_when_it_is_to_end() {
    let network = crossbar(4);
    let until = Time::from_us(50);
    let cut = || {
        let mut config = free("ecmp");
        config.measure.until = Some(until);
        config
    };
    let late = || messages(&network, &[(0, 1, 4096, 0), (2, 3, 4096, 0), (0, 1, 4096, 90_000_000)]);
    let calculating = || {
        let collective =
            Collective { compute: Time::from_us(30), size: Some(Bytes(1000)), ..Collective::default() };
        laid(&network, &[job("a", 2, Pattern::Collective(collective))])
    };
    for plan in [late(), calculating()] {
        let flows = flow_by_flow(&network, cut(), plan.clone());
        let packets = run(network.clone(), cut(), plan);
        for records in [&flows, &packets] {
            assert_eq!((records.totals.simulated, records.totals.makespan), (until, None));
            assert!(records.jobs.ranks.iter().all(|rank| rank.end.is_some_and(|end| end < until)
                || rank.computation + rank.exposed + rank.waiting == until - rank.start));
        }
        assert_eq!(flows.totals.active_until, packets.totals.active_until);
        assert!(flows.totals.active_until < until);
    }
    // Inside of a region something is left, or outside.
    for hosts in [[0, 1], [2, 3]] {
        let region = Region { hosts: hosts.map(HostName::Number).into(), ..Region::default() };
        let run = RegionRun::new(network.clone(), cut(), late(), &region).unwrap();
        let totals =
            run.run(1, &mut |_| ControlFlow::Continue(()), &mut Records::default()).unwrap().records.totals;
        assert_eq!((totals.simulated, totals.makespan), (until, None), "{hosts:?}");
        assert!(totals.active_until < until, "{hosts:?}");
    }
}

fn job(name: &str, ranks: u32, workload: Pattern) -> Job {
    Job { ranks: Some(ranks), repetitions: 2, ..support::job(name, JobPlacement::Packed, workload) }
}

/// Collectives in which no two messages share a link take as long as packet by packet, rank by rank: to the picosecond where no ACKs take their part of the links.
#[test]
fn programs_without_contention_take_as_long_as_with_packets() {
    use Algorithm::*;
    let network = crossbar(8);
    for algorithm in [
        RingAllreduce,
        RecursiveDoublingAllreduce,
        RecursiveDoublingAllgather,
        Rabenseifner,
        BruckAllToAll,
        PairwiseAllToAll,
        BinomialBroadcast,
        DisseminationBarrier,
    ] {
        let pattern = Collective {
            algorithm,
            size: Some(Bytes(8 * 10 * 4096)),
            compute: Time::from_us(3),
            ..Collective::default()
        };
        let jobs = [job("collective", 8, Pattern::Collective(pattern))];
        let both = |reliability| {
            let config = SimConfig { transport: Transport { reliability, ..unlimited() }, ..scheme("ecmp") };
            let flows = flow_by_flow(&network, config.clone(), laid(&network, &jobs));
            let packets = Simulation::new(network.clone(), config, laid(&network, &jobs)).unwrap();
            (flows.jobs, packets.run(1).unwrap().records.jobs)
        };
        let (flows, packets) = both(Reliability::None(Default::default()));
        assert_eq!(flows.repetitions, packets.repetitions, "{algorithm:?}");
        assert_eq!(flows.ranks, packets.ranks, "{algorithm:?}");
        assert_eq!(flows.collectives, packets.collectives, "{algorithm:?}");
        let (flows, packets) = both(Transport::default().reliability);
        for (flow, packet) in flows.ranks.iter().zip(&packets.ranks) {
            let (flow, packet) = (flow.end.unwrap().0 as f64, packet.end.unwrap().0 as f64);
            assert!((flow / packet - 1.0).abs() < 0.02, "{algorithm:?}: {flow} instead of {packet}");
        }
    }
}

/// All to all, one message of each host after the other.
#[test]
fn an_all_to_all_takes_about_as_long_as_with_packets() {
    let network = leaf_spine(4, 4, 4);
    let pattern = || Pattern::AllToAll(AllToAll { size: Bytes(100 * 4096).into(), ..AllToAll::default() });
    let end = |records: &Records| records.totals.makespan.unwrap().0 as f64;
    let flows = end(&flow_by_flow(&network, free("spray"), plan(pattern(), &network, 1)));
    let packets = end(&run(network.clone(), free("spray"), plan(pattern(), &network, 1)));
    assert!((flows / packets - 1.0).abs() < 0.05, "{flows} instead of {packets}");
}

fn railed(servers: &Servers) -> (Network, PlanContext) {
    let network = servers.network(leaf_spine(4, 2, 4)).unwrap();
    let rails = servers.build(&network, 1).unwrap();
    (network, PlanContext { rails: Some(Arc::new(rails)), ..PlanContext::new(1) })
}

/// A message leaves by the same NICs as packet by packet, in the same parts, and takes as long.
#[test]
fn servers_send_by_the_nics_that_they_choose_for_packets() {
    let mut parts = 0;
    let selections =
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding];
    for nic_selection in selections {
        for (nics, planes) in [(4, 1), (2, 2), (2, 1)] {
            let (network, context) = railed(&Servers {
                nics,
                planes,
                nic_selection,
                wiring: Wiring::RailOptimised,
                ..Servers::default()
            });
            let size = Bytes(100 * 4096).into();
            let incast = Incast { senders: Some(1), size, repeat: 3, ..Incast::default() };
            let plan = || Workload::new(Pattern::Incast(incast.clone())).plan(&network, &context).unwrap();
            let flows = flow_by_flow(&network, free("ecmp"), plan());
            let packets = run(network.clone(), free("ecmp"), plan());
            let of = |records: &Records| {
                let parts = records.parts.as_ref().unwrap().to_vec().unwrap();
                parts
                    .iter()
                    .map(|p| (p.server, p.flow, p.rail, p.bytes, p.start, p.fct, p.ideal_fct))
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(&flows), of(&packets), "{nic_selection:?} {nics} {planes}");
            parts += of(&flows).len();
        }
    }
    assert!(parts > 3 * 3 * 4, "some are of several parts: {parts}");
}

/// GPUs whose messages stay inside their server or leave by their NICs: a ring, rank by rank.
#[test]
fn a_ring_of_gpus_takes_about_as_long_as_with_packets() {
    for wiring in [ScaleUpWiring::Switch, ScaleUpWiring::AllToAll, ScaleUpWiring::Ideal] {
        let (network, context) = railed(&Servers {
            nics: 4,
            gpus: Some(4),
            wiring: Wiring::RailOptimised,
            scale_up: Some(ScaleUp { wiring, ..ScaleUp::default() }),
            ..Servers::default()
        });
        let pattern =
            Pattern::GpuCollective(GpuCollective { size: Bytes(16 << 20), ..GpuCollective::default() });
        let plan = || Workload::new(pattern.clone()).plan(&network, &context).unwrap();
        let flows = flow_by_flow(&network, free("spray"), plan());
        let packets = run(network.clone(), free("spray"), plan());
        let end = |records: &Records| records.totals.makespan.unwrap().0 as f64;
        let ratio = end(&flows) / end(&packets);
        assert!((ratio - 1.0).abs() < 0.05, "{wiring:?}: {ratio}");
    }
}

/// A host sends slowly for a while, in the middle of many repetitions. When it does not any more, the ring is as fast as before: what has been held up does not go on leaving all at once.
#[test]
fn a_ring_recovers_when_a_link_does() {
    let network = crossbar(8);
    let collective = GpuCollective {
        size: Bytes(4 << 20),
        repeat: 40,
        algorithm: Method::Ring,
        ..GpuCollective::default()
    };
    let degrade = Fault::Degrade(Degrade {
        channels: vec![ChannelEnds { from: "h0".into(), to: "s0".into(), parallel: 0 }],
        rate_factor: 0.25,
        from: Time::from_ms(3),
        until: Some(Time::from_ms(6)),
        ..Degrade::default()
    });
    let plan = || {
        Workload::new(Pattern::GpuCollective(collective.clone()))
            .plan(&network, &PlanContext::new(1))
            .unwrap()
    };
    let config = || SimConfig { faults: vec![degrade.clone()], ..free("ecmp") };
    for records in [flow_by_flow(&network, config(), plan()), run(network.clone(), config(), plan())] {
        let times: Vec<u64> =
            records.jobs.repetitions.iter().map(|repetition| repetition.time.unwrap().0).collect();
        assert!(times.iter().max().unwrap() > &(2 * times[0]), "it is slow for a while: {times:?}");
        let behind = times[30..].iter().sum::<u64>() / 10;
        assert!(behind < times[0] * 5 / 4, "{} {behind}", times[0]);
    }
}
