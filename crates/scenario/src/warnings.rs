//! What can be run, but is probably a mistake: before the run from the scenario and its network, after it from what happened.
//!
//! A warning is one sentence that begins with the field it is about. It is no error: there are good reasons to run any of these.

mod overload;
mod windows;

use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{FlowControl, Queue};
use netloom_record::Summary;
use netloom_routing::Placement;
use netloom_routing::selector::estimator::Estimator;
use netloom_sim::Fault;
use netloom_topology::{Network, NodeId};
use netloom_transport::congestion::{Marks, Signal, SlowedBy};
use netloom_transport::shaping::Spacing;
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Overlap, Pattern, Plan};

use crate::scenario::Scenario;

/// What is suspicious before anything has run.
pub(crate) fn before(scenario: &Scenario, network: &Network, plan: &Plan) -> Vec<String> {
    let farthest = Farthest::of(scenario, network);
    let mut found = Vec::new();
    found.extend(expected_marks(scenario));
    found.extend(conweave_without_ecn(scenario));
    found.extend(trimmed_without_trimming(scenario));
    found.extend(scattered_go_back_n(scenario, network));
    found.extend(impossible_marks(scenario));
    found.extend(unslowed_go_back_n(scenario));
    found.extend(early_timeouts(scenario, network, &farthest));
    found.extend(windows::below_the_product(scenario, &farthest));
    found.extend(windows::target_below_idle(scenario, &farthest));
    found.extend(windows::plb_below_idle(scenario, &farthest));
    found.extend(windows::faster_than_one_path(scenario, network));
    found.extend(small_pause_buffers(scenario, &farthest));
    found.extend(overload::warning(scenario, network));
    found.extend(no_messages(scenario, plan));
    found.extend(plan.overlaps.iter().map(shared_hosts));
    found.extend(unread(scenario, network));
    found.extend(high_ceiling(scenario, network));
    found
}

/// What is suspicious about what happened; `traced` is whether a packet was.
pub(crate) fn after(scenario: &Scenario, switches: u32, summary: &Summary, traced: bool) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(late_warm_up(summary));
    found.extend(empty_trace(scenario, traced));
    found.extend(unfinished(summary));
    found.extend(no_decision(scenario, switches, summary));
    found.extend(no_reaction(scenario, summary));
    found
}

/// Fields that were set although others say that nothing looks at them.
fn unread(scenario: &Scenario, network: &Network) -> Vec<String> {
    let Scenario { routing, transport, fabric, .. } = scenario;
    let usual = Scenario::default();
    let mut found = Vec::new();
    let mut note = |is_set: bool, is_read: bool, field: &str, why: &str| {
        found.extend((is_set && !is_read).then(|| format!("{field}: changes nothing, as {why}")));
    };
    note(
        routing.flow_timeout != usual.routing.flow_timeout,
        routing.ages(),
        "routing.flow_timeout",
        "switches remember no flows by this scheme, or no longer than the gap of a flowlet",
    );
    note(
        routing.entropy_values != usual.routing.entropy_values,
        routing.draws_entropy(),
        "routing.entropy_values",
        "this scheme draws none",
    );
    let by = format!("\"{}\" does not hash", routing.selector_name());
    note(routing.hash != usual.routing.hash, routing.hashes(), "routing.hash", &by);
    note(routing.salt != usual.routing.salt, routing.hashes(), "routing.salt", &by);
    if let Some(least) = routing.selector.least_loaded() {
        note(
            least.estimator != Estimator::default(),
            routing.estimator().is_some(),
            "routing.selector.estimator",
            "`by = \"queue\"` looks at queues alone",
        );
    }
    note(
        transport.options.ack_delay != usual.transport.options.ack_delay,
        transport.options.ack_every > 1,
        "transport.ack_delay",
        "every packet is acknowledged at once (`ack_every = 1`)",
    );
    if let Some(detection) = transport.reliability.facts().loss_detection {
        let may_lose = fabric.is_lossy() || !scenario.faults.is_empty();
        note(!detection.sack, may_lose, "transport.reliability.sack", "nothing is lost");
    }
    if let Spacing::Rate(rate) = transport.shaping.facts().spacing {
        let is_slower = (0..network.hosts()).any(|host| rate < network.host_rate(host));
        note(true, is_slower, "transport.shaping.rate", "no host's link is faster");
    }
    if let Queue::Trimming(trimming) = &fabric.queue {
        let usual = Trimming::default();
        let fields = [
            ("control_weight", trimming.control_weight != usual.control_weight),
            ("control_buffer", trimming.control_buffer.is_some()),
            ("return_to_sender", trimming.return_to_sender != usual.return_to_sender),
        ];
        for (field, is_set) in fields {
            let field = format!("fabric.queue.{field}");
            let why = "headers wait with data (`fabric.control_priority = false`)";
            note(is_set, fabric.options.control_priority, &field, why);
        }
    }
    found
}

/// A rate that no host's link allows is no ceiling.
fn high_ceiling(scenario: &Scenario, network: &Network) -> Option<String> {
    let (field, most) = scenario.transport.congestion.facts().max_rate?;
    let line = (0..network.hosts()).map(|host| network.host_rate(host)).max()?;
    (most >= line).then(|| {
        format!("transport.congestion.{field}: changes nothing, as {most} is no less than the hosts' links, {line}")
    })
}

/// ConWeave learns which paths are busy from marks.
fn conweave_without_ecn(scenario: &Scenario) -> Option<String> {
    (scenario.routing.conweave().is_some() && scenario.fabric.options.ecn.is_none()).then(|| {
        "routing.granularity: conweave calls paths busy where packets are marked, and no switch marks; set `fabric.ecn`"
            .to_owned()
    })
}

/// Without trimming nothing but timeouts tells the sender of a loss.
fn trimmed_without_trimming(scenario: &Scenario) -> Option<String> {
    let is_blind = scenario.transport.reliability.facts().relies_on_trimming
        && scenario.fabric.is_lossy()
        && !scenario.fabric.queue.trims();
    is_blind.then(|| {
        format!(
            "transport.reliability: \"{}\" hears of losses by trimmed packets, and no switch trims, so that only timeouts find them; set \
             `fabric.queue = \"trimming\"`",
            scenario.transport.reliability.name()
        )
    })
}

/// Go-back-N takes nothing that does not come in order, and packets that take several ways at once do not.
fn scattered_go_back_n(scenario: &Scenario, network: &Network) -> Option<String> {
    let transport = &scenario.transport;
    let is_hurt = scenario.routing.scatters()
        && network.switches() > 1
        && transport.reliability.facts().takes.is_in_order()
        && !transport.options.reorder.holds();
    is_hurt.then(|| {
        format!(
            "transport.reliability: \"{}\" discards packets that come before others of their flow, and routing.granularity \"{}\" sends a \
             flow's packets over several ways at once; set `transport.reorder = \"buffer\"` (the preset \"left\"), or another reliability",
            transport.reliability.name(),
            scenario.routing.granularity_name()
        )
    })
}

/// Marks are the only signal of congestion, besides losses, of some congestion controls.
fn expected_marks(scenario: &Scenario) -> Option<String> {
    let facts = scenario.transport.congestion.facts();
    let lacks_marks = facts.marks == Marks::Expected && scenario.fabric.options.ecn.is_none();
    lacks_marks.then(|| {
        format!(
            "transport.congestion: {} reacts to ECN marks, and no switch marks; set `fabric.ecn`",
            facts.title
        )
    })
}

/// The thresholds of marking that no queue exceeds, each with the room of a queue.
fn unreachable_thresholds(scenario: &Scenario) -> (Vec<(String, Bytes)>, Option<Bytes>) {
    let options = &scenario.fabric.options;
    let room = scenario.fabric.queue_room(scenario.transport.clone().on_the_wire().packet_size());
    let own = options.ecn_by_rate.iter().enumerate();
    let own = own.map(|(i, ecn)| (format!("fabric.ecn_by_rate.{i}.kmin"), ecn.kmin));
    let usual = options.ecn.iter().map(|ecn| ("fabric.ecn.kmin".to_owned(), ecn.kmin));
    let unreachable = usual.chain(own).filter(|(_, kmin)| room.is_some_and(|room| *kmin >= room));
    (unreachable.collect(), room)
}

/// A queue marks when more than `kmin` wait, and no more wait than there is room for.
fn impossible_marks(scenario: &Scenario) -> Option<String> {
    let (unreachable, room) = unreachable_thresholds(scenario);
    let (room, (_, kmin)) = (room?, unreachable.first()?);
    let fields: Vec<&str> = unreachable.iter().map(|(field, _)| field.as_str()).collect();
    Some(format!(
        "{}: {kmin} is as much as a queue holds ({room}), or more: no packet is ever marked there",
        fields.join(", ")
    ))
}

/// With go-back-N every trimmed packet is sent again with all that follow. If only marks slow a flow down, and none come, it may go on so
/// for ever.
fn unslowed_go_back_n(scenario: &Scenario) -> Option<String> {
    let Scenario { fabric, transport, .. } = scenario;
    let thresholds = usize::from(fabric.options.ecn.is_some()) + fabric.options.ecn_by_rate.len();
    let never_marks = unreachable_thresholds(scenario).0.len() == thresholds;
    let slowed_by = transport.congestion.facts().slowed_by;
    let slows_down = match slowed_by {
        SlowedBy::Nothing => false,
        SlowedBy::Marks => !never_marks,
        SlowedBy::MoreThanMarks => true,
    };
    let is_stuck = fabric.queue.trims() && transport.reliability.facts().takes.is_in_order() && !slows_down;
    is_stuck.then(|| {
        format!(
            "transport.reliability: \"{}\" sends every trimmed packet again with all that follow, and \"{}\" slows no flow down for that{}, so \
             that flows may make no progress; set `transport.reliability = \"trimmed\"`, or `fabric.queue = \"tail-drop\"`",
            transport.reliability.name(),
            transport.congestion.name(),
            if slowed_by == SlowedBy::Marks { " without marks" } else { "" }
        )
    })
}

/// A list that holds nothing, say.
fn no_messages(scenario: &Scenario, plan: &Plan) -> Option<String> {
    let is_meant = matches!(scenario.workload.pattern, Pattern::Idle(_));
    (plan.total_messages == Some(0) && !is_meant).then(|| {
        format!("workload: nothing is sent, as \"{}\" has no message", scenario.workload.pattern.name())
    })
}

/// Parts of a mix are not laid beside each other.
fn shared_hosts(overlap: &Overlap) -> String {
    let fields = overlap.parts.each_ref().map(|part| format!("workload.{part}"));
    format!(
        "{}: their ranks are on the same {}, as a placement is the same for all parts of a mix",
        fields.join(", "),
        overlap.shared
    )
}

/// A timeout below the round trip of an idle network sends again what has not been lost.
fn early_timeouts(scenario: &Scenario, network: &Network, farthest: &Farthest) -> Option<String> {
    let is_armed = scenario.fabric.is_lossy()
        || scenario.transport.refuses()
        || scenario.faults.iter().any(Fault::loses_packets)
        || !network.error_rates().is_empty();
    let options = &scenario.transport.options;
    let (field, timeout) = [("rto_min", options.rto_min), ("rto_initial", options.rto_initial)]
        .into_iter()
        .find(|(_, timeout)| *timeout < farthest.round_trip)?;
    is_armed.then(|| {
        format!(
            "transport.{field}: {timeout} is below the idle round trip from h0 to h{}, {}: packets are sent again that were not lost",
            farthest.host, farthest.round_trip
        )
    })
}

/// The part of a sender's bandwidth-delay product that a buffer does not hold is paused before any congestion control has heard of it.
fn small_pause_buffers(scenario: &Scenario, farthest: &Farthest) -> Option<String> {
    let buffer = match &scenario.fabric.flow_control {
        FlowControl::Pfc(pfc) => pfc.buffer,
        _ => return None,
    };
    let product = farthest.rate.bytes_in(farthest.round_trip);
    (buffer < product).then(|| {
        format!(
            "fabric.flow_control.buffer: {buffer} is below the bandwidth-delay product from h0 to h{}, {product}: \
             switches pause before any congestion control can react",
            farthest.host
        )
    })
}

/// The host that is the most hops away from the first, and what lies between.
struct Farthest {
    host: NodeId,
    /// Links on the way there.
    hops: u32,
    /// Of a full packet there and its ACK back, on the idle network.
    round_trip: Time,
    /// Rate of the first host's link.
    rate: Rate,
}

impl Farthest {
    fn of(scenario: &Scenario, network: &Network) -> Self {
        let transport = scenario.transport.clone().on_the_wire();
        let (packet, ack) = (transport.packet_size(), transport.options.ack_size);
        let cut = scenario.fabric.options.cut_through;
        let mut reached: Vec<Option<(Time, u32)>> = vec![None; network.nodes() as usize];
        reached[0] = Some((Time::ZERO, 0));
        let mut queue = std::collections::VecDeque::from([0]);
        let mut host = 0;
        // Breadth first: the last host reached is one of the farthest.
        while let Some(node) = queue.pop_front() {
            let (so_far, hops) = reached[node as usize].unwrap_or_default();
            if network.is_host(node) {
                host = node;
            }
            for &port in network.ports(node) {
                let channel = network.channel(port);
                if reached[channel.to as usize].is_none() {
                    // A switch that cuts through waits for a part of the packet only.
                    let waits = |size: Bytes| match cut {
                        Some(part) if !network.is_host(channel.to) => Bytes(size.0.min(part.0)),
                        _ => size,
                    };
                    let there = channel.rate.serialize(waits(packet)).saturating_add(channel.latency);
                    let back = channel.rate.serialize(waits(ack)).saturating_add(channel.latency);
                    let switching = if network.is_host(channel.to) {
                        Time::ZERO
                    } else {
                        scenario.fabric.options.switch_latency
                    };
                    let hop = there.saturating_add(back).saturating_add(switching).saturating_add(switching);
                    reached[channel.to as usize] = Some((so_far.saturating_add(hop), hops + 1));
                    queue.push_back(channel.to);
                }
            }
        }
        let (round_trip, hops) = reached[host as usize].unwrap_or_default();
        Farthest { host, hops, round_trip, rate: network.host_rate(0) }
    }
}

fn late_warm_up(summary: &Summary) -> Option<String> {
    let (flows, end) = (&summary.flows, summary.totals.simulated);
    let warm_up = flows.warm_up;
    if warm_up > Time::ZERO && warm_up >= end {
        return Some(format!(
            "measure.warm_up: {warm_up} is beyond the end of the run at {end}: no flow counts"
        ));
    }
    let excluded = flows.excluded_by_warm_up;
    (excluded > 0 && flows.completed + flows.unfinished + flows.streams == 0).then(|| {
        format!(
            "measure.warm_up: all flows ({excluded}) started before {warm_up}: none counts in FCT or slowdown"
        )
    })
}

/// Nothing came by where a trace was asked for.
fn empty_trace(scenario: &Scenario, traced: bool) -> Option<String> {
    (scenario.measure.trace.is_some() && !traced).then(|| {
        "measure.trace: no packet was traced: none of these flows sent anything, and nothing crossed these channels".to_owned()
    })
}

/// The flows that did not finish are not a random sample: they are the slow and the large ones.
fn unfinished(summary: &Summary) -> Option<String> {
    let flows = &summary.flows;
    (flows.unfinished > 0).then(|| {
        format!(
            "measure: {} of {} flows did not finish and are in no FCT or slowdown; those are the slowest, so mean and percentiles are too low",
            flows.unfinished,
            flows.unfinished + flows.completed
        )
    })
}

/// A scheme that never had anything to choose. One switch has no paths to choose from, and a function of the header decides nothing.
fn no_decision(scenario: &Scenario, switches: u32, summary: &Summary) -> Option<String> {
    let (decisions, routing) = (&summary.totals.decisions, &scenario.routing);
    // What a NIC draws for a whole flow is the flow's first path, and a decision only where paths have numbers.
    let is_idle = !routing.selector.is_static()
        && !routing.draws_first_paths_only()
        && switches > 1
        && summary.totals.data.sent > 0
        && decisions.values().all(|count| count.taken == 0);
    is_idle.then(|| {
        let selectors: Vec<&str> = decisions.keys().map(String::as_str).collect();
        let reason = match scenario.routing.placement {
            Placement::Nic => "no flow was given another path than its first, or had several",
            Placement::Ingress | Placement::Switch => "no packet had several ways to go",
        };
        format!("routing: {} took no decision: {reason}", selectors.join(", "))
    })
}

/// A control loop that could have acted and never did: what is compared is then something else.
fn no_reaction(scenario: &Scenario, summary: &Summary) -> Option<String> {
    if summary.totals.data.sent == 0 {
        return None;
    }
    let packets = &summary.packets;
    let facts = scenario.transport.congestion.facts();
    let missing = match facts.acts_on {
        // That no switch marks is said before the run.
        Some(Signal::MarksOrLosses) => {
            let may_mark = scenario.fabric.options.ecn.is_some();
            (may_mark && packets.ecn_marks == 0 && packets.retransmissions == 0)
                .then_some("no packet was marked or lost")
        }
        Some(Signal::Cnms) => (packets.cnms == 0).then_some("no congestion notification arrived"),
        Some(Signal::Cnps) => (packets.cnps == 0).then_some("no packet was marked"),
        None => None,
    };
    if let Some(missing) = missing {
        return Some(format!("transport.congestion: {} never acted: {missing}", facts.title));
    }
    if summary.totals.weaving.is_some_and(|weaving| weaving.late_replies == 0) {
        return Some("routing.granularity: conweave never acted: every reply came in time".to_owned());
    }
    if scenario.routing.granularity.flowcut().is_some() && summary.draining.drains == 0 {
        return Some(
            "routing.granularity: flowcut never drained a path: no flow was found congested".to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use crate::document::Node;
    use crate::run::{prepare, simulate};
    use crate::scenario::Scenario;
    use crate::source::Source;

    /// What is said about a scenario before the run and after it.
    fn warnings(text: &str) -> Vec<String> {
        let document = Node::parse(&Source::new("s.toml", text)).unwrap();
        let scenario = Scenario::read(&document).unwrap();
        let ready = prepare(&scenario, &document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
        let (ran, _) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
        ran.summary.warnings
    }

    /// A warning shows where it should, and the same scenario without the mistake has none at all.
    fn check(wrong: &str, right: &str, expected: &str) {
        let found = warnings(wrong);
        assert!(found.iter().any(|warning| warning.contains(expected)), "{expected}\n{found:#?}");
        assert_eq!(warnings(right), Vec::<String>::new(), "{right}");
    }

    const TREE: &str = "topology = { kind = \"fat-tree\", k = 4, rate = \"10Gbps\" }\n";

    /// Three hosts send to one, so that queues grow and marks occur.
    const INCAST: &str = "workload = { kind = \"incast\", senders = 8, size = \"1MiB\" }\n";

    #[test]
    fn a_ceiling_is_below_the_line() {
        let with = |rate: &str| {
            let dcqcn = format!("congestion = {{ kind = \"dcqcn\", max_rate = \"{rate}\" }}");
            let ecn = "ecn = { kmin = \"30KB\", kmax = \"30KB\" }";
            format!("{TREE}{INCAST}transport = {{ {dcqcn} }}\nfabric = {{ {ecn} }}\n")
        };
        check(&with("1600Gbps"), &with("5Gbps"), "transport.congestion.max_rate: changes nothing, as");
    }

    #[test]
    fn dctcp_needs_ecn() {
        let wrong = format!("{TREE}{INCAST}transport = {{ congestion = \"dctcp\" }}\n");
        let right = format!("{wrong}fabric = {{ ecn = {{ kmin = \"30KB\", kmax = \"30KB\" }} }}\n");
        check(&wrong, &right, "transport.congestion: DCTCP reacts to ECN marks");
    }

    #[test]
    fn a_loop_that_never_acts_is_named() {
        let dctcp = |ecn: &str| {
            format!(
                "{TREE}{INCAST}transport = {{ congestion = \"dctcp\" }}\nfabric = {{ ecn = {{ kmin = \"{ecn}\", kmax = \"{ecn}\" }} }}\n"
            )
        };
        check(&dctcp("100MB"), &dctcp("30KB"), "DCTCP never acted");
        let roce = |ecn: &str| {
            let ecn = format!("ecn = {{ kmin = \"{ecn}\", kmax = \"{ecn}\" }}");
            format!(
                "{TREE}{INCAST}transport = \"roce\"\nfabric = {{ {ecn}, flow_control = {{ kind = \"pfc\", buffer = \"200KB\" }} }}\n"
            )
        };
        check(&roce("100MB"), &roce("30KB"), "DCQCN never acted");
        let quiet = format!(
            "{TREE}routing = \"flowcut-nic\"\nworkload = {{ kind = \"permutation\", size = \"1KB\" }}\n"
        );
        let busy = format!("{TREE}routing = \"flowcut-nic\"\n{INCAST}");
        check(&quiet, &busy, "flowcut never drained");
    }

    #[test]
    fn fields_that_nobody_reads_are_named() {
        let with = |fields: &str| format!("{TREE}workload = {{ size = \"64KiB\" }}\n{fields}\n");
        let ageing = |scheme: &str, granularity: &str| {
            with(&format!(
                "routing = {{ preset = \"{scheme}\", granularity = \"{granularity}\", flow_timeout = \"50us\" }}"
            ))
        };
        let (flowlets, nobody) =
            ("no longer than the gap of a flowlet", "routing.flow_timeout: changes nothing");
        check(&ageing("letflow", "flowlet"), &ageing("flowlet-adaptive", "flowcell"), flowlets);
        check(&ageing("spray", "packet"), &ageing("spray", "flow"), nobody);
        let entropy =
            |scheme: &str| with(&format!("routing = {{ preset = \"{scheme}\", entropy_values = 9 }}"));
        check(&entropy("ecmp"), &entropy("spray-nic"), "routing.entropy_values: changes nothing");
        check(&entropy("presto"), &entropy("spray-nic"), "routing.entropy_values: changes nothing");
        for field in ["hash = \"fnv1a\"", "salt = false"] {
            let scheme = |name: &str| with(&format!("routing = {{ preset = \"{name}\", {field} }}"));
            check(&scheme("d-mod-k"), &scheme("ecmp"), "changes nothing, as \"d-mod-k\" does not hash");
        }
        let estimator = |by: &str| {
            with(&format!(
                "routing = {{ preset = \"adaptive\", selector = {{ by = \"{by}\", estimator = {{ discount = 0.5 }} }} }}"
            ))
        };
        check(&estimator("queue"), &estimator("both"), "routing.selector.estimator: changes nothing");
        let acks = |every: u32| with(&format!("transport = {{ ack_every = {every}, ack_delay = \"3us\" }}"));
        check(&acks(1), &acks(2), "transport.ack_delay: changes nothing");
        let newreno = |buffer: &str| {
            let reliability = "reliability = { rack = false, sack = false }";
            with(&format!(
                "transport = {{ preset = \"flowcut-evaluation\", {reliability} }}\nfabric = {{ {buffer} }}"
            ))
        };
        check(&newreno(""), &newreno("buffer = \"1MB\""), "transport.reliability.sack: changes nothing");
        let paced = |gbps: u32| {
            with(&format!("transport = {{ shaping = {{ kind = \"paced\", rate = \"{gbps}Gbps\" }} }}"))
        };
        check(&paced(10), &paced(9), "transport.shaping.rate: changes nothing, as no host's link is faster");
        for field in ["control_weight = 3", "control_buffer = \"1KB\"", "return_to_sender = false"] {
            let trimming = |priority: bool| {
                with(&format!(
                    "transport = \"ndp\"\nfabric = {{ control_priority = {priority}, queue = {{ kind = \"trimming\", {field} }} }}"
                ))
            };
            check(&trimming(false), &trimming(true), "changes nothing, as headers wait with data");
        }
    }

    #[test]
    fn trimming_that_nobody_does_is_named() {
        let with = |queue: &str| {
            format!(
                "{TREE}workload = {{ kind = \"permutation\", size = \"64KiB\" }}\nfabric = {{ buffer = \"1MB\", queue = \"{queue}\" }}\ntransport = \"ndp\"\n"
            )
        };
        check(&with("tail-drop"), &with("trimming"), "transport.reliability: \"trimmed\" hears of losses by");
    }

    #[test]
    fn packets_that_scatter_before_a_go_back_n_nic_are_named() {
        let with = |routing: &str, transport: &str| {
            let ecn = "ecn = { kmin = \"10KB\", kmax = \"20KB\" }";
            format!(
                "{TREE}{INCAST}routing = \"{routing}\"\nfabric = {{ {ecn}, flow_control = {{ kind = \"pfc\", buffer = \"200KB\" }} }}\n\
                 transport = \"{transport}\"\n"
            )
        };
        let expected = "transport.reliability: \"go-back-n\" discards packets that come before others";
        check(&with("left", "roce"), &with("left", "left"), expected);
        check(&with("reps", "roce"), &with("reps", "irn"), expected);
        assert_eq!(warnings(&with("letflow", "roce")), Vec::<String>::new());
    }

    #[test]
    fn targets_of_plb_that_no_path_meets_are_named() {
        let with = |target: &str| {
            format!(
                "{TREE}{INCAST}routing = {{ preset = \"plb-htsim\", granularity = {{ target = \"{target}\" }} }}\n"
            )
        };
        check(
            &with("1us"),
            &with("50us"),
            "routing.granularity.target: PLB's target over 6 hops, 1us, is below",
        );
    }

    #[test]
    fn timeouts_below_the_round_trip_are_named() {
        let with = |rto: &str| {
            format!(
                "{TREE}workload = {{ kind = \"permutation\", size = \"64KiB\" }}\nfabric = {{ buffer = \"10MB\" }}\ntransport = {{ rto_min = \"{rto}\" }}\n"
            )
        };
        check(
            &with("10us"),
            &with("1ms"),
            "transport.rto_min: 10us is below the idle round trip from h0 to h15",
        );
    }

    #[test]
    fn timeouts_below_the_round_trip_are_named_where_faults_lose_packets() {
        let with = |rto: &str, fault: &str| {
            format!(
                "{TREE}workload = {{ kind = \"permutation\", size = \"64KiB\" }}\ntransport = {{ rto_min = \"{rto}\" }}\nfaults = [{fault}]\n"
            )
        };
        let expected = "transport.rto_min: 10us is below the idle round trip";
        for fault in [
            "{ kind = \"loss\", link_fraction = 1.0, probability = 1e-9 }",
            "{ kind = \"cut\", links = 1, from = \"1s\", until = \"2s\" }",
        ] {
            check(&with("10us", fault), &with("1ms", fault), expected);
        }
        // Nothing is lost by these, and no timer runs.
        for fault in ["", "{ kind = \"cut\", links = 1 }", "{ kind = \"degrade\", links = 1 }"] {
            assert_eq!(warnings(&with("10us", fault)), Vec::<String>::new(), "{fault}");
        }
    }

    #[test]
    fn marks_that_can_never_come_are_named() {
        let with = |fabric: &str, kmin: &str| {
            format!(
                "{TREE}{INCAST}transport = {{ preset = \"tcp\", congestion = {{ initial_window = 30 }} }}\nfabric = {{ {fabric}, ecn = {{ kmin = \"{kmin}\", kmax = \"1MB\" }} }}\n"
            )
        };
        let buffer = "buffer = \"100KB\"";
        check(
            &with(buffer, "100KB"),
            &with(buffer, "90KB"),
            "fabric.ecn.kmin: 100KB is as much as a queue holds",
        );
        // Eight of the largest packets.
        let trimming = "queue = \"trimming\"";
        check(&with(trimming, "12KB"), &with(trimming, "11KB"), "as a queue holds (12KB)");
        let by_rate =
            "ecn_by_rate = [{ rate = \"10Gbps\", kmin = \"1MB\", kmax = \"2MB\" }], buffer = \"100KB\"";
        let found = warnings(&with(by_rate, "30KB"));
        assert!(found[0].starts_with("fabric.ecn_by_rate.0.kmin: 1MB"), "{found:?}");
    }

    #[test]
    fn trimming_before_go_back_n_that_nothing_slows_down_is_named() {
        let with = |kmin: &str, congestion: &str| {
            format!(
                "{TREE}{INCAST}transport = {{ preset = \"roce\", congestion = \"{congestion}\" }}\n\
                 fabric = {{ queue = \"trimming\", buffer = \"100KB\", ecn = {{ kmin = \"{kmin}\", kmax = \"2MB\" }} }}\nmeasure = {{ until = \"100us\" }}\n"
            )
        };
        let expected = "\"go-back-n\" sends every trimmed packet again with all that follow";
        let has = |text: &str| warnings(text).iter().any(|warning| warning.contains(expected));
        assert!(has(&with("1MB", "dcqcn")) && has(&with("1KB", "none")));
        assert!(!has(&with("1KB", "dcqcn")) && !has(&with("1MB", "swift")));
        assert!(!has(&with("1MB", "dcqcn").replace("trimming", "tail-drop")));
    }

    #[test]
    fn a_list_without_flows_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let with = |flows: &str| {
            let file = folder.path().join(format!("{}.csv", flows.len()));
            std::fs::write(&file, format!("src,dst,bytes,start_ps\n{flows}")).unwrap();
            format!("{TREE}workload = {{ kind = \"flow-list\", file = \"{}\" }}\n", file.display())
        };
        check(&with(""), &with("0,1,1000,0\n"), "workload: nothing is sent, as \"flow-list\" has no message");
        assert_eq!(warnings(&format!("{TREE}workload = \"idle\"\n")), Vec::<String>::new());
    }

    #[test]
    fn parts_of_a_mix_on_the_same_hosts_are_named() {
        let part = |name: &str| {
            format!("{{ kind = \"collective\", ranks = 8, name = \"{name}\", placement = \"random\" }}")
        };
        let with = |parts: &str| format!("{TREE}workload = {{ kind = \"mix\", parts = [{parts}] }}\n");
        check(
            &with(&format!("{}, {}", part("a"), part("b"))),
            &with(&part("a")),
            "workload.parts.0, workload.parts.1: their ranks are on the same 8 hosts",
        );
    }

    #[test]
    fn pause_buffers_below_the_bandwidth_delay_product_are_named() {
        let with = |buffer: &str| {
            format!(
                "{TREE}workload = {{ kind = \"permutation\", size = \"64KiB\" }}\nfabric = {{ flow_control = {{ kind = \"pfc\", buffer = \"{buffer}\" }} }}\n"
            )
        };
        check(
            &with("20KB"),
            &with("200KB"),
            "fabric.flow_control.buffer: 20KB is below the bandwidth-delay product",
        );
    }

    #[test]
    fn a_load_that_an_oversubscribed_tier_cannot_carry_is_named() {
        let with = |load: f64, spines: u32| {
            format!(
                "topology = {{ kind = \"leaf-spine\", leaves = 4, spines = {spines}, hosts_per_leaf = 4 }}\n\
                 workload = {{ kind = \"poisson\", load = {load}, size = \"10KB\", messages_per_host = 3 }}\n"
            )
        };
        check(&with(0.8, 2), &with(0.8, 4), "workload.load: a load of 0.8 offers the tier leaf-spine 128%");
        assert_eq!(warnings(&with(0.5, 2)), Vec::<String>::new());
    }

    #[test]
    fn a_load_that_the_links_of_other_networks_cannot_carry_is_named() {
        let with = |topology: &str, load: f64, destination: &str| {
            format!(
                "topology = {topology}\nworkload = {{ kind = \"poisson\", load = {load}, size = \"10KB\", messages_per_host = 1, destination = \"{destination}\" }}\n"
            )
        };
        // A line of four switches, four hosts each. Uniform traffic of 16 hosts at 0.4 of 200 Gb/s: 8 · 8/15 of them send over the middle link, 341 Gb/s.
        let line =
            "{ kind = \"hyperx\", dimensions = 1, switches_per_dimension = [2], hosts_per_switch = 8 }";
        check(
            &with(line, 0.4, "any"),
            &with(line, 0.2, "any"),
            "workload.load: a load of 0.4 offers the links between s0 and the other switches 171% of what they carry",
        );
        // Each of two switches sends all that it has to the other one.
        check(&with(line, 0.2, "other-rack"), &with(line, 0.1, "other-rack"), "160% of what they carry");
        // Four groups of 256 hosts, 48 links of each lead to others: 256 · 768/1023 · 0.3 of them are asked for, 57.7. Two groups have 64 links to the other
        // two, and 512 · 512/1023 · 0.3 = 76.9 are asked for.
        let dragonfly = "{ kind = \"dragonfly\", preset = \"flowcut-1024\" }";
        check(
            &with(dragonfly, 0.3, "any"),
            &with(dragonfly, 0.2, "any"),
            "offers the links between s0 to s15 and the other switches 120% of what they carry",
        );
        // A ring is short of links in all: 40 switches have 80 channels of 200 Gb/s, and a packet crosses 10 · 40/39 on average.
        let mut ring = String::new();
        (0..40).for_each(|switch| ring += &format!("s{switch} s{}\n", (switch + 1) % 40));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring");
        std::fs::write(&path, ring).unwrap();
        let ring = format!("{{ kind = \"edge-list\", path = \"{}\", hosts_per_switch = 1 }}", path.display());
        check(
            &with(&ring, 0.25, "any"),
            &with(&ring, 0.19, "any"),
            "offers all links between switches together 128% of what they carry, as a packet crosses 10.26 of them on a shortest path on average",
        );
        // A Slim Fly carries what it was built for.
        let slim_fly = "{ kind = \"slim-fly\", q = 5 }";
        assert_eq!(warnings(&with(slim_fly, 0.9, "any")), Vec::<String>::new());
    }

    #[test]
    fn a_warm_up_beyond_the_end_is_named() {
        let with = |warm_up: &str| {
            format!("{TREE}workload = {{ size = \"64KiB\" }}\nmeasure = {{ warm_up = \"{warm_up}\" }}\n")
        };
        check(&with("1s"), &with("0us"), "measure.warm_up: 1s is beyond the end of the run");
    }

    #[test]
    fn a_warm_up_before_which_all_flows_start_is_named() {
        let with = |warm_up: &str| {
            format!("{TREE}workload = {{ size = \"1MiB\" }}\nmeasure = {{ warm_up = \"{warm_up}\" }}\n")
        };
        check(&with("10us"), &with("0us"), "measure.warm_up: all flows (16) started before 10us");
    }

    #[test]
    fn a_trace_of_nothing_is_named() {
        let with = |dst: u32| {
            format!(
                "{TREE}workload = {{ kind = \"off-diagonal\", offset = 9, size = \"64KiB\" }}\n\
                 measure = {{ trace = {{ flows = [{{ src = 0, dst = {dst} }}] }} }}\n"
            )
        };
        check(&with(8), &with(9), "measure.trace: no packet was traced");
    }

    #[test]
    fn the_loads_of_a_mix_are_added_up() {
        let with = |a: f64, b: f64| {
            let part = |load: f64, name: &str| {
                format!(
                    "{{ kind = \"poisson\", load = {load}, size = \"10KB\", messages_per_host = 3, name = \"{name}\" }}"
                )
            };
            format!(
                "topology = {{ kind = \"leaf-spine\", leaves = 4, spines = 2, hosts_per_leaf = 4 }}\n\
                 workload = {{ kind = \"mix\", parts = [{}, {}] }}\n",
                part(a, "a"),
                part(b, "b")
            )
        };
        let expected = "workload.parts.0.load, workload.parts.1.load: a load of 0.8 together offers the tier leaf-spine 128%";
        check(&with(0.1, 0.7), &with(0.1, 0.4), expected);
    }

    #[test]
    fn unfinished_flows_and_their_bias_are_named() {
        let with = |until: &str| {
            format!("{TREE}workload = {{ size = \"1MiB\" }}\nmeasure = {{ until = \"{until}\" }}\n")
        };
        check(&with("100us"), &with("1s"), "16 of 16 flows did not finish and are in no FCT or slowdown");
    }

    #[test]
    fn a_scheme_without_a_choice_is_named() {
        for (scheme, named) in [("spray", "random"), ("k-shortest", "k-shortest")] {
            let with = |spines: u32| {
                format!(
                    "topology = {{ kind = \"leaf-spine\", leaves = 4, spines = {spines}, hosts_per_leaf = 4 }}\nrouting = \"{scheme}\"\nworkload = {{ size = \"64KiB\" }}\n"
                )
            };
            check(&with(1), &with(2), &format!("routing: {named} took no decision"));
        }
        assert_eq!(
            warnings("topology = { kind = \"crossbar\", hosts = 4 }\nworkload = { size = \"64KiB\" }\n"),
            Vec::<String>::new()
        );
    }
}
