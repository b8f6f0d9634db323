//! A run that is driven from outside gives what the same flows from a list give.

mod common;

use common::*;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Fabric, FabricOptions, Queue};
use netloom_record::{FlowRecord, Records};
use netloom_sim::{Completion, Driven, Milestone, Order, SimConfig, Simulation, Ticket};
use netloom_topology::{Dragonfly, Network, Topology};
use netloom_transport::{Reliability, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{Idle, Message, Pattern, Plan};

fn driven(network: &Network, config: &SimConfig) -> Driven {
    let idle = plan(Pattern::Idle(Idle::default()), network, 1);
    Simulation::new(network.clone(), config.clone(), idle).unwrap().drive()
}

fn listed(network: &Network, config: &SimConfig, orders: &[Order], threads: usize) -> Records {
    let messages = orders.iter().map(|order| {
        (order.src, Message { class: order.class, ..Message::new(order.dst, order.bytes, order.at) })
    });
    let plan = Plan::of_messages(network.hosts(), messages);
    Simulation::new(network.clone(), config.clone(), plan).unwrap().run(threads).unwrap().records
}

/// What arrives is answered to another host at the same instant, so that everything depends on the network.
fn chain(network: &Network, config: &SimConfig, answers: usize) -> (Vec<Order>, Records) {
    chain_after(Time::ZERO, driven(network, config), answers)
}

/// What arrives is answered so long after.
fn chain_after(reaction: Time, mut run: Driven, answers: usize) -> (Vec<Order>, Records) {
    let hosts = run.hosts();
    let mut orders: Vec<Order> = Vec::new();
    for src in 0..hosts {
        let dst = (src + hosts / 2) % hosts;
        // All at once, and two of them at a later time.
        let at = if src < 2 { Time::from_us(3) } else { Time::ZERO };
        orders.push(Order { src, dst, bytes: Bytes(30_000 + u64::from(src) * 777), at, class: 0 });
        run.start(orders[src as usize]).unwrap();
    }
    while let Some(Completion { ticket, at, .. }) = run.next_completion(Time::MAX, |_| true) {
        assert_eq!(run.now(), at);
        if orders.len() < answers {
            let done = orders[ticket.0 as usize];
            let dst = (done.dst + 1 + ticket.0 * 7 % (hosts - 1)) % hosts;
            let bytes = Bytes(1 + done.bytes.0 * 3 / 2 % 90_000);
            let order = Order { src: done.dst, dst, bytes, at: at + reaction, class: 0 };
            assert_eq!(run.start(order).unwrap().0 as usize, orders.len());
            orders.push(order);
        }
    }
    (orders, run.finish().unwrap().records)
}

#[test]
fn the_driven_run_equals_the_listed_one() {
    // Losses and retransmissions, too.
    let shallow = Fabric {
        options: FabricOptions { buffer: Some(Bytes(40_000)), ..Default::default() },
        ..Fabric::default()
    };
    for name in ["ecmp", "spray", "flowcut-nic", "letflow", "adaptive"] {
        for (network, fabric) in [
            (leaf_spine(3, 2, 3), Fabric::default()),
            (fat_tree(4), Fabric::default()),
            (fat_tree(4), shallow.clone()),
        ] {
            let config = SimConfig { fabric, ..scheme(name) };
            let (orders, records) = chain(&network, &config, 100);
            assert_eq!((orders.len(), records.flows.len()), (100, 100));
            for threads in [1, 2] {
                let listed = listed(&network, &config, &orders, threads);
                assert_eq!(difference(&records, &listed), None, "{name} on {}", network.name());
            }
        }
    }
}

fn dragonfly() -> Network {
    build(Topology::Dragonfly(Dragonfly {
        hosts_per_switch: Some(2),
        switches_per_group: Some(4),
        global_links_per_switch: Some(2),
        ..Dragonfly::default()
    }))
}

/// Whether answers take a picosecond, less than a window or several of them: windows give what one event after the other does.
#[test]
fn windows_give_what_events_give() {
    let shallow = Fabric {
        options: FabricOptions { buffer: Some(Bytes(40_000)), ..Default::default() },
        ..Fabric::default()
    };
    let held = |name: &str| {
        let mut config = scheme(name);
        config.transport.options.interrupt_interval = Some(Time::from_us(2));
        config
    };
    for (network, config) in [
        (leaf_spine(3, 2, 3), scheme("ecmp")),
        (fat_tree(4), SimConfig { fabric: shallow.clone(), ..scheme("spray") }),
        (fat_tree(4), held("flowcut-nic")),
        (dragonfly(), SimConfig { fabric: shallow.clone(), ..scheme("ugal-l") }),
    ] {
        for reaction in [Time(1), Time::from_ns(10), Time::from_ns(700), Time::from_us(3), Time::from_us(90)]
        {
            let expected = chain_after(reaction, driven(&network, &config), 80);
            for threads in [1, 2] {
                // Windows as short as that on several threads would take all day.
                if threads > 1 && reaction < Time::from_ns(10) {
                    continue;
                }
                let mut run = driven(&network, &config);
                run.set_reaction(reaction).unwrap();
                run.set_threads(threads).unwrap();
                let found = chain_after(reaction, run, 80);
                assert_eq!(found.0, expected.0, "{reaction} {threads} on {}", network.name());
                assert_eq!(difference(&found.1, &expected.1), None, "{reaction} {threads}");
            }
        }
    }
}

#[test]
fn an_answer_before_the_reaction_time_is_refused() {
    let (network, config) = (fat_tree(4), scheme("ecmp"));
    let mut run = driven(&network, &config);
    let order = Order { src: 0, dst: 9, bytes: Bytes(10_000), at: Time::ZERO, class: 0 };
    assert!(run.set_threads(2).is_err(), "threads need a reaction time");
    run.set_reaction(Time::from_us(2)).unwrap();
    run.start(order).unwrap();
    assert!(run.set_reaction(Time::from_us(2)).is_err(), "the run has begun");
    let done = run.next_completion(Time::MAX, |_| true).unwrap();
    let early = Order { at: done.at + Time::from_us(2) - Time(1), ..order };
    let expected = format!(
        "at: expected {} or later, 2us after the last completion at {}, found {}",
        done.at + Time::from_us(2),
        done.at,
        early.at
    );
    assert_eq!(run.start(early).unwrap_err().to_string(), expected);
    assert_eq!(run.earliest_start(), done.at + Time::from_us(2));
    run.start(Order { at: run.earliest_start(), ..order }).unwrap();
    assert!(run.next_completion(Time::MAX, |_| true).is_some());
}

/// Everything before an instant has happened, and nothing after it, wherever that lies in a window.
#[test]
fn windows_end_where_a_run_is_to_pause() {
    let (network, mut config) = (fat_tree(4), scheme("flowcut-nic"));
    let orders: Vec<Order> = (0..16)
        .map(|src| Order { src, dst: 15 - src, bytes: Bytes(1_000_000), at: Time::ZERO, class: 0 })
        .collect();
    for until in [Time(17_000_001), Time(17_345_678), Time::from_us(18)] {
        let mut run = driven(&network, &config);
        run.set_reaction(Time::from_us(5)).unwrap();
        orders.iter().for_each(|&order| _ = run.start(order).unwrap());
        for part in 1..=7 {
            assert!(run.run_until(until * part / 7, |_| true));
        }
        let records = run.finish().unwrap().records;
        config.measure.until = Some(until);
        assert_eq!(difference(&records, &listed(&network, &config, &orders, 2)), None);
        config.measure.until = None;
        assert!(records.totals.data.in_flight > 0);
    }
}

#[test]
fn a_run_that_is_paused_goes_on_as_if_nothing_had_been() {
    let (network, config) = (fat_tree(4), scheme("ecmp"));
    let orders: Vec<Order> = (0..16)
        .map(|src| Order {
            src,
            dst: 15 - src,
            bytes: Bytes(100_000),
            at: Time::from_us(u64::from(src)),
            class: 0,
        })
        .collect();
    let mut run = driven(&network, &config);
    for &order in &orders {
        // At its very instant: everything before it has happened.
        assert!(run.run_until(order.at, |_| true));
        assert_eq!(run.now(), order.at);
        run.start(order).unwrap();
    }
    assert!(run.run_until(Time::MAX, |_| true));
    let mut completions: Vec<_> = std::iter::from_fn(|| run.next_completion(Time::MAX, |_| true)).collect();
    let records = run.finish().unwrap().records;
    assert_eq!(difference(&records, &listed(&network, &config, &orders, 1)), None);
    assert!(completions.is_sorted_by_key(|completion| completion.at));
    completions.sort_by_key(|completion| completion.ticket);
    for (flow, completion) in records.flows.iter().zip(completions) {
        assert_eq!(flow.start + fct(flow), completion.at);
    }
}

#[test]
fn a_run_may_end_with_work_left() {
    let (network, mut config) = (fat_tree(4), scheme("flowcut-nic"));
    let orders: Vec<Order> = (0..16)
        .map(|src| Order { src, dst: 15 - src, bytes: Bytes(1_000_000), at: Time::ZERO, class: 0 })
        .collect();
    let mut run = driven(&network, &config);
    orders.iter().for_each(|&order| _ = run.start(order).unwrap());
    let until = Time::from_us(17);
    assert!(run.run_until(until, |_| true));
    assert_eq!(run.next_completion(until, |_| true), None);
    let records = run.finish().unwrap().records;
    config.measure.until = Some(until);
    assert_eq!(difference(&records, &listed(&network, &config, &orders, 2)), None);
    assert!(records.totals.data.in_flight > 0);
}

#[test]
fn what_drives_may_stop_it_and_go_on() {
    let (network, config) = (fat_tree(4), scheme("ecmp"));
    let mut run = driven(&network, &config);
    let order = Order { src: 0, dst: 9, bytes: Bytes(50_000_000), at: Time::ZERO, class: 0 };
    let ticket = run.start(order).unwrap();
    assert!(!run.run_until(Time::MAX, |_| false));
    assert_eq!(run.next_completion(Time::MAX, |_| false), None);
    assert_eq!(run.next_completion(Time::MAX, |_| true).unwrap().ticket, ticket);
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let network = fat_tree(4);
    let mut run = driven(&network, &scheme("ecmp"));
    run.run_until(Time::from_us(5), |_| true);
    let order = Order { src: 0, dst: 1, bytes: Bytes(1), at: Time::from_us(5), class: 0 };
    let refused = |run: &mut Driven, order: Order| run.start(order).unwrap_err().to_string();
    assert_eq!(refused(&mut run, Order { src: 16, ..order }), "src: expected a host from 0 to 15, found 16");
    assert_eq!(
        refused(&mut run, Order { at: Time::from_us(4), ..order }),
        "at: expected 5us or later, found 4us"
    );
    assert!(refused(&mut run, Order { class: 1, ..order }).starts_with("traffic_class: expected"));
    // Its packets would have the numbers of a flow of one packet.
    let mtu = scheme("ecmp").transport.options.mtu.0;
    let refusal = refused(&mut run, Order { bytes: Bytes(mtu << 32 | 1), ..order });
    assert!(refusal.starts_with("size: expected at most"), "{refusal}");
    assert!(run.start(order).is_ok());
}

/// As [`chain_after`], and every third acknowledgement is answered, too. Returns everything that completed.
fn both_ends(reaction: Time, mut run: Driven, answers: usize) -> (Vec<Completion>, Records) {
    run.report_acknowledged().unwrap();
    let hosts = run.hosts();
    let mut orders: Vec<Order> = (0..hosts)
        .map(|src| {
            let bytes = Bytes(20_000 + u64::from(src) * 777);
            Order { src, dst: (src + hosts / 2) % hosts, bytes, at: Time::ZERO, class: 0 }
        })
        .collect();
    assert_eq!(run.start_all(&orders), Ok(Ticket(0)));
    let mut completions = Vec::new();
    while let Some(completion) = run.next_completion(Time::MAX, |_| true) {
        completions.push(completion);
        let Completion { ticket, milestone, at } = completion;
        let is_answered = milestone == Milestone::Arrived || ticket.0.is_multiple_of(3);
        if orders.len() < answers && is_answered {
            let done = orders[ticket.0 as usize];
            let src = if milestone == Milestone::Arrived { done.dst } else { done.src };
            let dst = (src + 1 + ticket.0 * 7 % (hosts - 1)) % hosts;
            let order = Order {
                src,
                dst,
                bytes: Bytes(1 + done.bytes.0 * 3 / 2 % 50_000),
                at: at + reaction,
                class: 0,
            };
            run.start(order).unwrap();
            orders.push(order);
        }
    }
    assert_eq!(completions.len(), 2 * orders.len());
    (completions, run.finish().unwrap().records)
}

/// Senders' ends in windows are those of one event after the other, and those of the records: with losses, answers that are held back, paths that reorder, subflows, pulls.
#[test]
fn senders_report_when_all_is_acknowledged() {
    let shallow = Fabric {
        options: FabricOptions { buffer: Some(Bytes(40_000)), ..Default::default() },
        ..Fabric::default()
    };
    let transport = |name: &str| netloom_transport::preset::find(name).unwrap().transport();
    let mut held = scheme("flowcut-nic");
    held.transport.options.interrupt_interval = Some(Time::from_us(2));
    let mut seldom = scheme("ecmp");
    seldom.transport.options.ack_every = 4;
    let mut sacks = SimConfig { transport: transport("uet-nscc"), ..scheme("spray") };
    sacks.fabric.queue = Queue::Trimming(Trimming::default());
    sacks.fabric.options.buffer = Some(Bytes(40_000));
    sacks.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(10_000), kmax: Bytes(30_000), pmax: 1.0, mark: Default::default() });
    for (name, config) in [
        ("ecmp", scheme("ecmp")),
        ("sacks", sacks),
        ("losses", SimConfig { fabric: shallow, ..scheme("spray") }),
        ("held", held),
        ("seldom", seldom),
        ("subflows", SimConfig { transport: transport("mptcp"), ..scheme("k-shortest") }),
    ] {
        let network = fat_tree(4);
        let (expected, records) = {
            let reaction = Time::from_ns(10);
            both_ends(reaction, driven(&network, &config), 70)
        };
        for threads in [1, 2] {
            let mut run = driven(&network, &config);
            run.set_reaction(Time::from_ns(10)).unwrap();
            run.set_threads(threads).unwrap();
            let found = both_ends(Time::from_ns(10), run, 70);
            assert_eq!(found.0, expected, "{name} {threads}");
            assert_eq!(difference(&found.1, &records), None, "{name} {threads}");
        }
        let ends = |milestone: Milestone| {
            let of_kind = expected.iter().filter(move |completion| completion.milestone == milestone);
            let mut ends: Vec<Time> = of_kind.map(|completion| completion.at).collect();
            ends.sort();
            ends
        };
        let mut arrivals: Vec<Time> = records.flows.iter().map(|flow| flow.start + fct(flow)).collect();
        arrivals.sort();
        assert_eq!(ends(Milestone::Arrived), arrivals, "{name}");
        let sent = |flow: &FlowRecord| flow.start + flow.sender_fct.unwrap();
        let mut acknowledged: Vec<Time> = records.flows.iter().map(sent).collect();
        acknowledged.sort();
        assert_eq!(ends(Milestone::Acknowledged), acknowledged, "{name}");
    }
}

#[test]
fn acknowledgements_are_asked_for_in_time_and_of_a_transport_that_has_them() {
    let (network, mut config) = (fat_tree(4), scheme("ecmp"));
    let mut run = driven(&network, &config);
    run.run_until(Time::from_us(1), |_| true);
    run.start(Order { src: 0, dst: 1, bytes: Bytes(1), at: Time::from_us(1), class: 0 }).unwrap();
    let refusal = run.report_acknowledged().unwrap_err().to_string();
    assert_eq!(
        refusal,
        "acknowledged: expected to be asked for before flows start or time passes, found it afterwards"
    );
    config.transport = Transport { reliability: Reliability::None(Default::default()), ..unlimited() };
    let refusal = driven(&network, &config).report_acknowledged().unwrap_err().to_string();
    assert_eq!(refusal, "acknowledged: expected a transport with ACKs, found one without");
}

/// A program that has something to do at an instant gets no completion at or after it, and may send then.
#[test]
fn what_completes_later_is_not_given_before() {
    let (network, config) = (fat_tree(4), scheme("ecmp"));
    // To hosts of other switches, so that all arrive at one instant.
    let order = |src| Order { src, dst: 15 - src, bytes: Bytes(10_000), at: Time::ZERO, class: 0 };
    let second = Order { at: Time::from_ns(1), ..order(2) };
    let mut run = driven(&network, &config);
    run.set_reaction(Time::from_ns(10)).unwrap();
    run.start_all(&[order(0), second]).unwrap();
    let first = run.next_completion(Time::MAX, |_| true).unwrap();
    // The other one is in the same window, a nanosecond later.
    let timer = first.at + Time(1);
    assert_eq!(run.next_completion(timer, |_| true), None);
    assert_eq!(run.now(), timer);
    let due = first.at + Time::from_ns(10);
    let other = run.next_completion(due, |_| true).unwrap();
    assert_eq!((other.ticket, other.at), (Ticket(1), first.at + Time::from_ns(1)));
    // What answers the first is not too early because the other has come since.
    assert_eq!(run.earliest_start(), due);
    run.start(Order { at: due, ..order(5) }).unwrap();
    assert!(run.start(Order { at: due - Time(1), ..order(6) }).is_err());
    assert_eq!(run.next_completion(Time::MAX, |_| true).unwrap().ticket, Ticket(2));
}

#[test]
fn messages_of_no_bytes_are_a_packet_and_those_to_oneself_arrive_at_once() {
    let (network, config) = (fat_tree(4), scheme("ecmp"));
    for reaction in [Time::ZERO, Time::from_ns(10)] {
        let mut run = driven(&network, &config);
        run.set_reaction(reaction).unwrap();
        run.report_acknowledged().unwrap();
        let order = |dst, bytes, at| Order { src: 3, dst, bytes: Bytes(bytes), at, class: 0 };
        let later = Time::from_us(50);
        let orders = [
            order(3, 1 << 40, later),
            order(9, 0, Time::ZERO),
            order(3, 5, Time::from_ns(7)),
            order(10, 1, later),
        ];
        run.start_all(&orders).unwrap();
        let mut found: Vec<(u32, Milestone, Time)> = Vec::new();
        while let Some(done) = run.next_completion(Time::MAX, |_| true) {
            found.push((done.ticket.0, done.milestone, done.at));
        }
        let at = |ticket, milestone| {
            found.iter().find(|found| (found.0, found.1) == (ticket, milestone)).unwrap().2
        };
        assert_eq!(found.len(), 8);
        assert!(found.is_sorted_by_key(|found| found.2));
        for milestone in [Milestone::Arrived, Milestone::Acknowledged] {
            assert_eq!((at(0, milestone), at(2, milestone)), (later, Time::from_ns(7)));
            assert_eq!(at(1, milestone) + later, at(3, milestone), "no bytes take as long as one");
        }
        let records = run.finish().unwrap().records;
        assert_eq!(records.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(), [1, 1]);
    }
    // Alone, and up to where a run is to pause.
    let mut run = driven(&network, &config);
    run.start(Order { src: 3, dst: 3, bytes: Bytes(1), at: Time::from_us(2), class: 0 }).unwrap();
    assert_eq!(run.next_completion(Time::from_us(2), |_| true), None);
    assert!(run.run_until(Time::MAX, |_| true));
    assert_eq!(run.now(), Time::from_us(2));
    assert_eq!(run.next_completion(Time::MAX, |_| true).unwrap().at, Time::from_us(2));
    assert_eq!(run.next_completion(Time::MAX, |_| true), None);
}

#[test]
fn of_many_flows_all_start_or_none() {
    let (network, config) = (fat_tree(4), scheme("ecmp"));
    let mut run = driven(&network, &config);
    let order =
        |n: u32| Order { src: n % 16, dst: (n + 5) % 16, bytes: Bytes(100), at: Time::ZERO, class: 0 };
    let mut orders: Vec<Order> = (0..5000).map(order).collect();
    orders[4321].dst = 16;
    let (place, refusal) = run.start_all(&orders).unwrap_err();
    assert_eq!(
        (place, refusal.to_string()),
        (4321, "dst: expected a host from 0 to 15, found 16".to_owned())
    );
    assert_eq!(run.start(order(0)), Ok(Ticket(0)), "none of them has a ticket");
    orders[4321].dst = 15;
    orders[4321].src = 0;
    assert_eq!(run.start_all(&orders), Ok(Ticket(1)));
    assert_eq!(std::iter::from_fn(|| run.next_completion(Time::MAX, |_| true)).count(), 5001);
}
