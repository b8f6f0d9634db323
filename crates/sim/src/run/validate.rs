//! Whether the parts of a simulation fit each other, as far as that can be said before routes are built.

use std::sync::Arc;

use netloom_fabric::{Fabric, FlowControl};
use netloom_record::NamedChannel;
use netloom_routing::{Placement, Routing};
use netloom_topology::{Network, NodeId};
use netloom_transport::Transport;
use netloom_transport::congestion::Marks;
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Invalid, Rate, narrow};
use netloom_workload::{Bond, NicSelection, Plan, PortSelection};

use crate::config::SimConfig;
use crate::fault::Faults;
use crate::numbering::Numbering;
use crate::observe::measure::Measure;
use crate::observe::packet_trace::PacketTrace;
use crate::protocol::declaration::Parts;
use crate::protocol::largest_queued;
use crate::run::error::SimError;
use crate::run::lengths::{check_channels, check_lengths};

/// A configuration whose parts fit each other, but for what depends on the routes.
pub(crate) struct Validated {
    pub(crate) fabric: Fabric,
    pub(crate) routing: Routing,
    pub(crate) transport: Transport,
    pub(crate) faults: Faults,
    pub(crate) measure: Measure,
    pub(crate) seed: u64,
    pub(crate) named_channels: Vec<NamedChannel>,
    /// What is traced, and the numbers of the channels among it.
    pub(crate) traced: Option<(Arc<PacketTrace>, Vec<u32>)>,
    pub(crate) is_lossy: bool,
    pub(crate) numbering: Numbering,
    /// What a buffer must have room for to take any packet.
    pub(crate) largest: Bytes,
}

impl Validated {
    /// Refuses what does not fit.
    pub(crate) fn new(network: &Network, config: SimConfig, plan: &Plan) -> Result<Self, SimError> {
        let SimConfig { fabric, routing, transport, faults, measure, seed, fast: _ } = config;
        transport.check().map_err(SimError::Transport)?;
        let mut transport = transport.on_the_wire();
        let parts = Parts { fabric: &fabric, routing: &routing, transport: &transport };
        let largest = largest_queued(parts);
        fabric.check(largest).map_err(SimError::Fabric)?;
        routing.check().map_err(SimError::Routing)?;
        check_lengths(network)?;
        check_channels(network.channels())?;
        let gap = routing.granularity.flowlet().map(|flowlet| flowlet.longest_kept());
        transport.shaping.fit(gap).map_err(|error| SimError::Transport(error.within("shaping")))?;
        let named_channels = measure.check(network).map_err(SimError::Measure)?;
        let traced = match &measure.trace {
            Some(trace) => {
                let channels = trace.check(network).map_err(SimError::Measure)?;
                Some((Arc::new(trace.clone().by_ports(plan.rails.as_deref())), channels))
            }
            None => None,
        };
        if routing.needs_every_ack() && !transport.acknowledges_each() {
            let name = routing.granularity_name();
            let error = match transport.reliability.facts().sack_bytes {
                None => {
                    let expected = format!("1, as {name} needs an ACK for every packet");
                    Invalid::new("ack_every", expected, transport.options.ack_every)
                }
                Some(bytes) => {
                    let expected = format!("0B, as {name} needs an ACK for every packet");
                    Invalid::new("reliability.ack_bytes", expected, bytes)
                }
            };
            return Err(SimError::Transport(error));
        }
        let has_sacks = transport.has_sacks();
        if has_sacks && routing.counted_flowcuts().is_some() {
            let expected = format!(
                "\"nic\" with transport.reliability \"{}\": Flowcut at switches and UET's packet delivery use the same header field; use `flowcut-nic` with `ack_bytes = 0`",
                transport.reliability.name()
            );
            let found = format!("\"{}\"", routing.placement.name());
            return Err(SimError::Routing(Invalid::new("placement", expected, found)));
        }
        if transport.replaces_serialisation() && routing.uses_serialisation() {
            let what = match transport.credit() {
                Some(_) => "the pull target",
                None => "the increment flag",
            };
            let (granularity, congestion) = (routing.granularity_name(), transport.congestion.name());
            let title = transport.congestion.facts().title;
            let expected = format!(
                "another one with transport.congestion \"{congestion}\": `{granularity}` needs the serialisation delay in the packet header, where {title} puts {what}; they cannot \
                 be combined"
            );
            let found = format!("\"{granularity}\"");
            return Err(SimError::Routing(Invalid::new("granularity", expected, found)));
        }
        if routing.sends_probes() && fabric.options.control_priority {
            let expected = format!(
                "false with routing.granularity \"{}\": its probes are to wait where data wait",
                routing.granularity_name()
            );
            return Err(SimError::Fabric(Invalid::new("control_priority", expected, true)));
        }
        let has_control_queue = fabric.queue.trims() && fabric.options.control_priority;
        if transport.hurries() && !has_control_queue {
            let expected = "false without a control queue in which to hurry: fabric.queue = \"trimming\" and fabric.control_priority";
            return Err(SimError::Transport(Invalid::new("reliability.priority", expected, true)));
        }
        let congestion = transport.congestion.facts();
        if let Some(field) = congestion.needs_trimming.filter(|_| !fabric.queue.trims()) {
            let expected = "none without a fabric that trims (fabric.queue = \"trimming\")";
            return Err(SimError::Transport(Invalid::new(field, expected, "a table").within("congestion")));
        }
        let faults = Faults::build(&faults, network, plan.rails.as_deref(), seed).map_err(SimError::Fault)?;
        faults.check(measure.until).map_err(SimError::Fault)?;
        let is_lossy = fabric.is_lossy() || faults.lose_packets();
        if transport.options.reorder.has_cells() {
            let numbers_cells = routing.numbers_flowcells() && transport.options.subflows == 1;
            let name = transport.options.reorder.name();
            let expected = format!(
                "a reorder other than \"{name}\", or flowcells at the NIC over path labels in turn (routing.preset = \"presto\")"
            );
            Invalid::unless(numbers_cells, "reorder", expected, format!("\"{name}\""))
                .map_err(SimError::Transport)?;
        }
        let runs_ahead = routing.counted_flowcuts().is_some_and(|flowcut| flowcut.max_ood > 0);
        if !transport.has_acks() && (is_lossy || routing.uses_acks() || runs_ahead) {
            let who = match is_lossy {
                true => "packets can get lost".to_owned(),
                false => format!("{} watches ACKs", routing.granularity_name()),
            };
            let expected = format!("a reliability with ACKs, as {who}");
            return Err(SimError::Transport(Invalid::new("reliability", expected, "\"none\"")));
        }
        if let Some(rails) = &plan.rails {
            let expected = "a reliability with ACKs where servers have several NICs";
            let has_acks = transport.has_acks();
            Invalid::unless(has_acks, "reliability", expected, "\"none\"").map_err(SimError::Transport)?;
            let has_ends = rails.nic_selection() != NicSelection::LeastOutstanding || !plan.has_streams();
            let expected = "another one for frames of open loops, which have no end";
            Invalid::unless(has_ends, "nic_selection", expected, "\"least-outstanding\"")
                .map_err(SimError::Servers)?;
            if let Some(bond) = rails.bond() {
                check_bond(bond, &routing, &transport)?;
            }
            if rails.ports_are_joined() {
                check_joined(&routing, &faults, network)?;
            }
        }
        if transport.chooses_paths() {
            check_entropy(&routing, &transport)?;
        }
        if transport.telemetry().is_some() && routing.scatters() {
            let expected = format!(
                "one that keeps a flow's path for a while with transport.congestion \"{}\", which compares what the links of a path say with \
                 what the same links said before",
                transport.congestion.name()
            );
            let found = format!("\"{}\"", routing.granularity_name());
            return Err(SimError::Routing(Invalid::new("granularity", expected, found)));
        }
        for (i, own) in fabric.options.ecn_by_rate.iter().enumerate() {
            let mut rates: Vec<Rate> = network.links().iter().map(|link| link.rate).collect();
            rates.sort_unstable();
            rates.dedup();
            let known: Vec<String> = rates.iter().map(Rate::to_string).collect();
            let expected = format!("a rate of the network's links ({})", known.join(", "));
            Invalid::unless(rates.contains(&own.rate), format!("ecn_by_rate.{i}.rate"), expected, own.rate)
                .map_err(SimError::Fabric)?;
        }
        if congestion.marks == Marks::Required && fabric.options.ecn.is_none() {
            let expected =
                format!("a fabric that marks packets (fabric.ecn) with \"{}\"", transport.congestion.name());
            let refused = SimError::Transport(Invalid::new("congestion", expected, "none"));
            return Err(unmarked(refused, &fabric, &transport));
        }
        let (uses_trims, trims) = (routing.uses_trims(), fabric.queue.trims());
        if routing.uses_marks() && fabric.options.ecn.is_none() && !(uses_trims && trims) {
            let name = routing.granularity_name();
            let or_trims = if uses_trims { " or trims them (fabric.queue = \"trimming\")" } else { "" };
            let expected = format!("a fabric that marks packets (fabric.ecn){or_trims} with \"{name}\"");
            let refused = SimError::Routing(Invalid::new("granularity", expected, "none"));
            return Err(unmarked(refused, &fabric, &transport));
        }
        routing.fits(network).map_err(SimError::Routing)?;
        if plan.units.is_some() {
            routing.fits_reduction_units().map_err(SimError::Routing)?;
        }
        if routing.needs_credits() && !matches!(fabric.flow_control, FlowControl::Credits(_)) {
            let name = fabric.flow_control.name();
            let expected = format!(
                "\"queue\" where fabric.flow_control is \"{name}\": only \"credits\" has credits to count"
            );
            return Err(SimError::Routing(Invalid::new(
                "selector.load",
                expected,
                "one that counts credits",
            )));
        }
        let counts_off_trees = routing.counted_flowcuts().is_some() && !network.is_tree();
        if counts_off_trees && fabric.is_lossless() && !fabric.options.control_priority {
            // On a tree the path back is as free of cycles as the path there.
            let expected = "\"nic\" for flowcuts in a lossless fabric that is not a tree and where fabric.control_priority is false: \
                            acknowledgements that return among the data could wait for each other in a cycle";
            let found = format!("\"{}\"", routing.placement.name());
            return Err(SimError::Routing(Invalid::new("placement", expected, found)));
        }
        faults.check_scheme(&routing, &transport).map_err(SimError::Fault)?;
        let numbering = Numbering::new(transport.options.subflows);
        if plan.numbers() > numbering.flows() {
            let expected = "as many as leave the messages of the workload's programs their numbers";
            return Err(SimError::Transport(Invalid::new("subflows", expected, transport.options.subflows)));
        }
        if plan.own_messages() > numbering.flows() {
            let most = numbering.flows();
            let expected = format!(
                "fewer: a host that sends more than {most} messages needs the bits that distinguish subflows"
            );
            return Err(SimError::Transport(Invalid::new("subflows", expected, transport.options.subflows)));
        }
        if let Some(conga) = routing.conga() {
            let (most, paths) = (conga.layout().most_paths(), most_paths(network));
            let expected = format!(
                "another one where more than {most} paths join two leaves, which its labels cannot distinguish"
            );
            let found = format!("\"{}\" and up to {paths} paths", routing.selector_name());
            Invalid::unless(paths <= most, "selector", expected, found).map_err(SimError::Routing)?;
        }
        Ok(Validated {
            fabric,
            routing,
            transport,
            faults,
            measure,
            seed,
            named_channels,
            traced,
            is_lossy,
            numbering,
            largest,
        })
    }
}

/// What is refused as no switch marks. Queues that trim are wanted besides by a transport that learns of losses by that.
fn unmarked(refused: SimError, fabric: &Fabric, transport: &Transport) -> SimError {
    let wants_trimming = !fabric.is_lossless() && transport.reliability.facts().relies_on_trimming;
    SimError::Unmarked { refused: Box::new(refused), wants_trimming }
}

/// How many paths may join two leaves of a tree, at most: those of different up ports, times those of different links down to the same switch.
fn most_paths(network: &Network) -> u32 {
    let switches = || network.hosts()..network.nodes();
    let top = switches().map(|switch| network.level(switch)).max().unwrap_or(0);
    let mut bundles = vec![1u32; usize::from(top) + 1];
    for switch in switches() {
        let level = network.level(switch);
        let ends = network.ports(switch).iter().map(|&channel| network.channel(channel).to);
        let mut children: Vec<NodeId> =
            ends.filter(|&end| !network.is_host(end) && network.level(end) < level).collect();
        children.sort_unstable();
        let most = children.chunk_by(|a, b| a == b).map(|links| narrow::<u32>(links.len())).max();
        let bundle = &mut bundles[usize::from(level)];
        *bundle = most.unwrap_or(1).max(*bundle);
    }
    bundles.into_iter().fold(network.up_stride(top), u32::saturating_mul)
}

/// Refuses transports and routing that cannot do with a NIC that has several ports.
fn check_bond(bond: Bond, routing: &Routing, transport: &Transport) -> Result<(), SimError> {
    if transport.options.nic_queue.exists() {
        let expected = "none with servers.bond: packets wait at the NIC until a port of theirs is free";
        return Err(SimError::Transport(Invalid::new("nic_queue", expected, "one")));
    }
    if routing.sends_probes() {
        let expected = "another one with servers.bond: its probes leave by the port of what has come last, not by that of the data";
        let found = format!("\"{}\"", routing.granularity_name());
        return Err(SimError::Routing(Invalid::new("granularity", expected, found)));
    }
    let selection = bond.port_selection;
    let refuse = |expected: String| {
        let found = format!("\"{}\"", selection.name());
        Err(SimError::Servers(Invalid::new("bond.port_selection", expected, found)))
    };
    let draws = transport.chooses_paths() || routing.placement == Placement::Nic && routing.draws_entropy();
    if selection == PortSelection::Entropy && !draws {
        return refuse(
            "another one, or packets with entropy values: routing at NICs by these (routing.preset = \"spray-nic\") or a transport that chooses them"
                .to_owned(),
        );
    }
    if !selection.is_per_packet() {
        if transport.pulls() {
            return refuse(format!(
                "one by packets with transport.congestion \"{}\": a receiver asks for packets at the rate of all ports, and a flow that keeps to one of them cannot take that",
                transport.congestion.name()
            ));
        }
        return Ok(());
    }
    if routing.granularity.keeps_order() {
        return refuse(format!(
            "\"flow\" with routing.granularity \"{}\", which keeps packets in order: those on several ports overtake each other",
            routing.granularity.name()
        ));
    }
    if transport.options.reorder.has_cells() {
        return refuse(format!(
            "\"flow\" with transport.reorder \"{}\", which takes flowcells to come in order",
            transport.options.reorder.name()
        ));
    }
    if transport.telemetry().is_some() {
        return refuse(format!(
            "\"flow\" with transport.congestion \"{}\", which compares what the links of a path say with what the same links said before",
            transport.congestion.name()
        ));
    }
    Ok(())
}

/// Refuses routing that knows one way to a NIC, where several ports of it are in one network and packets arrive by any of them.
fn check_joined(routing: &Routing, faults: &Faults, network: &Network) -> Result<(), SimError> {
    if routing.placement == Placement::Nic && !routing.draws_entropy() {
        let expected = "one at NICs that draws entropy values (\"hash\", \"random\"), or a choice at switches, where a NIC has several ports in one network \
                        (servers.ports): numbered paths lead to one of them";
        let found = format!("\"{}\"", routing.selector_name());
        return Err(SimError::Routing(Invalid::new("selector", expected, found)));
    }
    let fails = (0..network.hosts()).any(|host| faults.cuts_at(network, host).next().is_some());
    if fails && routing.switches_keep_ports() {
        let expected = "one by which switches keep nothing of a flow (routing by hash, or granularity \"packet\"), or no cut of a host's link, where a NIC has several ports in \
                        one network (servers.ports): packets of a flow that leave a dead port go another way, which a switch that keeps theirs does not see";
        let found = format!("\"{}\"", routing.granularity_name());
        return Err(SimError::Routing(Invalid::new("granularity", expected, found)));
    }
    Ok(())
}

/// Refuses routing for a transport that chooses among entropy values itself, if something else would choose too.
fn check_entropy(routing: &Routing, transport: &Transport) -> Result<(), SimError> {
    let Routing { placement, granularity, selector, ecmp_every, .. } = routing;
    if let Some(every) = ecmp_every {
        let name = transport.congestion.name();
        let expected = format!(
            "nothing with transport.congestion \"{name}\", which chooses among entropy values itself"
        );
        return Err(SimError::Routing(Invalid::new("ecmp_every", expected, every)));
    }
    let (field, what, found) = match placement {
        Placement::Nic if !granularity.is_per_packet() => ("granularity", "packet", granularity.name()),
        Placement::Nic if selector.is_uniform() => return Ok(()),
        Placement::Nic => ("selector", "random", selector.name()),
        Placement::Ingress | Placement::Switch => ("placement", "nic", placement.name()),
    };
    let name = transport.congestion.name();
    let expected = format!(
        "\"{what}\" with transport.congestion \"{name}\", which chooses among entropy values itself (routing \"spray-nic\")"
    );
    Err(SimError::Routing(Invalid::new(field, expected, format!("\"{found}\""))))
}
