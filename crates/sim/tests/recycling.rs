//! FlowBender, PLB and REPS: senders that leave marked or slow paths.

mod common;

use common::*;
use netloom_record::Records;
use netloom_routing::Placement;
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, SimConfig, SimError, Simulation};
use netloom_transport::congestion::fixed_window::FixedWindow;
use netloom_transport::{Congestion, Reliability};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

/// Packets of one flow in all, and those among them on the first of four uplinks.
fn uplinks(records: &Records) -> (u64, u64) {
    let up = records.channels.iter().filter(|channel| &*channel.from == "s0" && &*channel.tier != "host");
    let packets: Vec<u64> = up.map(|channel| channel.packets).collect();
    (packets.iter().sum(), packets[0])
}

/// One flow over four spines, the uplink to the first of which has a fiftieth of its rate, in a fabric that marks.
fn beside_a_slow_link(name: &str, seed: u64) -> Records {
    let marks =
        netloom_fabric::Ecn { kmin: Bytes(8_000), kmax: Bytes(8_001), pmax: 1.0, mark: Default::default() };
    on_a_slow_link(name, seed, |sim| sim.fabric.options.ecn = Some(marks.clone()))
}

/// The same in another fabric.
fn on_a_slow_link(name: &str, seed: u64, change: impl Fn(&mut SimConfig)) -> Records {
    let network = leaf_spine(2, 4, 1);
    let channels = vec![ChannelEnds { from: "s0".into(), to: "s2".into(), parallel: 0 }];
    let slow = Fault::Degrade(Degrade { channels, rate_factor: 0.02, ..Degrade::default() });
    let mut sim = SimConfig { faults: vec![slow], seed, ..scheme(name) };
    // Half of the line's rate, so that nothing waits where the paths meet again.
    sim.transport.congestion = Congestion::FixedWindow(FixedWindow { bdp: 0.5, ..FixedWindow::default() });
    change(&mut sim);
    run(network, sim, Plan::of_messages(2, [(0, Message::new(1, Bytes(40_000_000), Time(0)))]))
}

#[test]
fn they_leave_a_slow_path_and_keep_a_good_one() {
    for name in ["flowbender", "plb", "plb-reps-artefact", "plb-htsim"] {
        let (mut began_slow, mut stayed) = (0, 0);
        for seed in 0..24 {
            let records = beside_a_slow_link(name, seed);
            let ((all, slow), flow) = (uplinks(&records), &records.flows[0]);
            // A round trip there takes two windows of a dozen packets, again for each of the eight values that leads there; PLB stays for twelve.
            assert!(slow * 10 < all, "{name}, seed {seed}: {slow} of {all}");
            began_slow += u32::from(slow > 0);
            stayed += u32::from(slow == 0 && flow.decisions == 0);
        }
        assert!(began_slow > 2 && stayed > 10, "{name}: {began_slow} {stayed}");
    }
}

/// By the delay that congestion control goes by, too, and without a mark.
#[test]
fn plb_by_delay_works_with_swift_and_without_marks() {
    for seed in 0..12 {
        let swift = |sim: &mut SimConfig| sim.transport.congestion = Congestion::Swift(Default::default());
        let (all, slow) = uplinks(&on_a_slow_link("plb-htsim", seed, swift));
        assert!(slow * 10 < all, "seed {seed}: {slow} of {all}");
    }
}

/// Nothing comes back from a dead path, so that only a timeout tells.
#[test]
fn plb_leaves_a_dead_path_by_a_timeout() {
    let mut had_timeouts = 0;
    for seed in 0..12 {
        let channels = vec![ChannelEnds { from: "s0".into(), to: "s2".into(), parallel: 0 }];
        let repair = Time::from_ms(50);
        let cut =
            Fault::Cut(Cut { channels, from: Time::from_us(100), until: Some(repair), ..Cut::default() });
        let mut sim = SimConfig { faults: vec![cut], seed, ..scheme("plb") };
        sim.transport.options.rto_min = Time::from_us(100);
        sim.transport.options.rto_initial = Time::from_us(100);
        sim.fabric.options.ecn = schemes::ecn_for(&sim.routing);
        let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(10_000_000), Time(0)))]);
        let records = run(leaf_spine(2, 4, 1), sim, plan);
        let fct = records.flows[0].fct.unwrap();
        assert!(fct < repair, "seed {seed}: {fct}");
        had_timeouts += u32::from(records.flows[0].timeouts > 0);
    }
    assert!((1..12).contains(&had_timeouts), "{had_timeouts}");
}

#[test]
fn reps_takes_a_slow_path_only_to_explore() {
    for seed in 0..6 {
        let (all, sprayed) = uplinks(&beside_a_slow_link("spray-nic", seed));
        assert!(sprayed.abs_diff(all / 4) < all / 20, "{sprayed} of {all}");
        let (all, slow) = uplinks(&beside_a_slow_link("reps", seed));
        assert!(slow * 20 < all, "seed {seed}: {slow} of {all}");
        assert!(slow > 0, "the first window goes everywhere");
    }
}

/// A fabric that trims need not mark: what loses its payload brings no ACK, so that its path is not taken again.
#[test]
fn reps_leaves_a_path_that_trims() {
    let trims = |sim: &mut SimConfig| {
        sim.fabric.queue = netloom_fabric::Queue::Trimming(Default::default());
        sim.transport.reliability = Reliability::Trimmed(Default::default());
    };
    for seed in 0..6 {
        let (all, sprayed) = uplinks(&on_a_slow_link("spray-nic", seed, trims));
        let (recycled_all, recycled) = uplinks(&on_a_slow_link("reps", seed, trims));
        let told = format!("seed {seed}: {sprayed} of {all}, {recycled} of {recycled_all}");
        assert!(sprayed * 5 > all && recycled > 0 && recycled * 8 < recycled_all, "{told}");
    }
}

/// A link is cut; what is lost there has to be found by a timeout, after which only paths that are known to work are taken.
#[test]
fn reps_freezes_on_the_paths_that_work_while_a_link_is_gone() {
    let lost = |name: &str| {
        let channels = vec![ChannelEnds { from: "s0".into(), to: "s2".into(), parallel: 0 }];
        let cut = Fault::Cut(Cut {
            channels,
            from: Time::from_us(100),
            until: Some(Time::from_ms(50)),
            ..Cut::default()
        });
        let mut sim = SimConfig { faults: vec![cut], ..scheme(name) };
        sim.fabric.options.ecn = Some(netloom_fabric::Ecn {
            kmin: Bytes(8_000),
            kmax: Bytes(8_001),
            pmax: 1.0,
            mark: Default::default(),
        });
        sim.transport.options.rto_min = Time::from_us(100);
        sim.transport.options.rto_initial = Time::from_us(100);
        // Only timers find losses.
        sim.transport.reliability = Reliability::Trimmed(Default::default());
        if let Reliability::Trimmed(trimmed) = &mut sim.transport.reliability {
            trimmed.priority = false;
        }
        let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(100_000_000), Time(0)))]);
        let records = run(leaf_spine(2, 4, 1), sim, plan);
        assert!(records.flows[0].fct.is_some());
        records.totals.data.lost
    };
    let (sprayed, recycled) = (lost("spray-nic"), lost("reps"));
    assert!(sprayed > 1000 && recycled < sprayed / 10, "{recycled} against {sprayed}");
}

#[test]
fn they_need_marks_acks_and_a_sender() {
    let network = leaf_spine(2, 2, 1);
    for name in ["flowbender", "plb", "plb-htsim", "reps"] {
        let simulation = |sim: SimConfig| Simulation::new(network.clone(), sim, permutation(1, &network, 1));
        let refusal = |sim: SimConfig| simulation(sim).unwrap_err();
        match simulation(scheme(name)) {
            Err(SimError::Unmarked { refused, .. }) => {
                assert!(refused.to_string().starts_with("routing.granularity"), "{refused}");
            }
            other => assert!(other.is_ok() && name == "plb-htsim", "{name}: delays need no marks"),
        }
        let mut sim = scheme(name);
        sim.fabric.options.ecn = schemes::ecn_for(&sim.routing);
        sim.transport = unlimited();
        sim.transport.reliability = Reliability::None(Default::default());
        sim.fabric.flow_control = netloom_fabric::FlowControl::Pfc(Default::default());
        let error = refusal(sim).to_string();
        assert!(error.starts_with("transport.reliability") && error.contains("watches ACKs"), "{error}");
        let mut routing = scheme(name).routing;
        routing.placement = Placement::Ingress;
        assert_eq!(routing.check().unwrap_err().field, "placement");
    }
}
