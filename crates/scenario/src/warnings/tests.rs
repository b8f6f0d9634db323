use std::ops::ControlFlow;

use netloom_record::Summary;

use crate::document::Node;
use crate::run::{prepare, simulate};
use crate::scenario::Scenario;
use crate::source::Source;

/// The summary of a run, with what is said about it before and after.
fn run(text: &str) -> Summary {
    let document = Node::parse(&Source::new("s.toml", text)).unwrap();
    let scenario = Scenario::read(&document).unwrap();
    let ready = prepare(&scenario, &document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
    let (ran, _) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
    ran.summary
}

/// What is said about a scenario before the run and after it.
fn warnings(text: &str) -> Vec<String> {
    run(text).warnings
}

/// A warning shows where it should, and the same scenario without the mistake has none at all.
fn check(wrong: &str, right: &str, expected: &str) {
    let found = warnings(wrong);
    assert!(found.iter().any(|warning| warning.contains(expected)), "{expected}\n{found:#?}");
    assert_eq!(warnings(right), Vec::<String>::new(), "{right}");
}

const TREE: &str = "topology = { kind = \"fat-tree\", k = 4, rate = \"10Gbps\" }\n";

/// Two servers send to one.
const INCAST_OF_TWO: &str = "workload = { kind = \"incast\", senders = 2, size = \"1MiB\" }\n";

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
    check(&dctcp("100MB"), &dctcp("30KB"), "DCTCP had no effect");
    let roce = |ecn: &str| {
        let ecn = format!("ecn = {{ kmin = \"{ecn}\", kmax = \"{ecn}\" }}");
        format!(
            "{TREE}{INCAST}transport = \"roce\"\nfabric = {{ {ecn}, flow_control = {{ kind = \"pfc\", buffer = \"200KB\" }} }}\n"
        )
    };
    check(&roce("100MB"), &roce("30KB"), "DCQCN had no effect");
    let quiet =
        format!("{TREE}routing = \"flowcut-nic\"\nworkload = {{ kind = \"permutation\", size = \"1KB\" }}\n");
    let busy = format!("{TREE}routing = \"flowcut-nic\"\n{INCAST}");
    check(&quiet, &busy, "flowcut drained no flow");
}

#[test]
fn fields_that_nobody_reads_are_named() {
    let with = |fields: &str| format!("{TREE}workload = {{ size = \"64KiB\" }}\n{fields}\n");
    let ageing = |scheme: &str, granularity: &str| {
        with(&format!(
            "routing = {{ preset = \"{scheme}\", granularity = \"{granularity}\", flow_timeout = \"50us\" }}"
        ))
    };
    let (flowlets, unused) = ("no longer than the gap of a flowlet", "routing.flow_timeout: changes nothing");
    check(&ageing("letflow", "flowlet"), &ageing("flowlet-adaptive", "flowcell"), flowlets);
    check(&ageing("spray", "packet"), &ageing("spray", "flow"), unused);
    let entropy = |scheme: &str| with(&format!("routing = {{ preset = \"{scheme}\", entropy_values = 9 }}"));
    check(&entropy("ecmp"), &entropy("spray-nic"), "routing.entropy_values: changes nothing");
    check(&entropy("presto"), &entropy("spray-nic"), "routing.entropy_values: changes nothing");
    let values = |scheme: &str, count: u32| {
        with(&format!("routing = {{ preset = \"{scheme}\", entropy_values = {count} }}"))
    };
    let one_path = "routing.entropy_values: with a single value all packets of a flow take one path";
    check(&values("spray-nic", 1), &values("spray-nic", 2), one_path);
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
    check(
        &acks(1),
        &acks(2),
        "transport.ack_delay: changes nothing, as every packet is acknowledged at once",
    );
    let uet = |delay: &str| {
        with(&format!(
            "transport = {{ preset = \"uet\", {delay}reliability = {{ ack_bytes = \"8KB\" }} }}\n\
             fabric = {{ queue = \"trimming\", buffer = \"200KB\", ecn = {{ kmin = \"40KB\", kmax = \"160KB\" }} }}"
        ))
    };
    let found = warnings(&uet("ack_delay = \"3us\", "));
    let of_delay: Vec<_> = found.iter().filter(|warning| warning.contains("ack_delay")).collect();
    assert_eq!(of_delay.len(), 1, "{found:?}");
    assert!(of_delay[0].contains("changes nothing, as no timer makes a receiver under \"pds\" send an ACK"));
    assert!(warnings(&uet("")).iter().all(|warning| !warning.contains("ack_delay")));
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
    check(&with("tail-drop"), &with("trimming"), "transport.reliability: \"trimmed\" learns of losses from");
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
    let by_port = |selection: &str| {
        format!(
            "topology = {{ kind = \"crossbar\", hosts = 4, rate = \"10Gbps\" }}\nrouting = \"ecmp\"\ntransport = {{ reliability = \"go-back-n\" }}\n\
             servers = {{ nics = 1, planes = 2, bond = {{ port_selection = \"{selection}\" }} }}\n{INCAST_OF_TWO}"
        )
    };
    check(&by_port("least-loaded"), &by_port("flow"), expected);
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
    check(&with("1us"), &with("50us"), "routing.granularity.target: PLB's target over 6 hops, 1us, is below");
}

#[test]
fn timeouts_below_the_round_trip_are_named() {
    let with = |rto: &str| {
        format!(
            "{TREE}workload = {{ kind = \"permutation\", size = \"64KiB\" }}\nfabric = {{ buffer = \"10MB\" }}\ntransport = {{ rto_min = \"{rto}\" }}\n"
        )
    };
    check(&with("10us"), &with("1ms"), "transport.rto_min: 10us is below the idle round trip from h0 to h15");
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
    let by_rate = "ecn_by_rate = [{ rate = \"10Gbps\", kmin = \"1MB\", kmax = \"2MB\" }], buffer = \"100KB\"";
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
    let expected = "sends every trimmed packet again with all that follow, and \"";
    let has = |text: &str| warnings(text).iter().any(|warning| warning.contains(expected));
    assert!(has(&with("1MB", "dcqcn")) && has(&with("1KB", "none")));
    assert!(!has(&with("1KB", "dcqcn")) && !has(&with("1MB", "swift")));
    assert!(!has(&with("1MB", "dcqcn").replace("trimming", "tail-drop")));
}

/// Each header that arrives makes go-back-N repeat what follows, on its way or not: of 800 packets here 1,478 are sent again under RoCE, 399 where the queue drops.
#[test]
fn trimming_before_go_back_n_is_named() {
    let with = |transport: &str, fabric: &str| {
        format!(
            "topology = {{ kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 4, rate = \"100Gbps\", latency = \"1us\" }}\n\
             workload = {{ kind = \"incast\", senders = 4, size = \"200KB\" }}\ntransport = \"{transport}\"\n\
             fabric = {{ buffer = \"200KB\", ecn = {{ kmin = \"10KB\", kmax = \"40KB\" }}, {fabric} }}\n"
        )
    };
    let expected = "\"go-back-n\" sends every trimmed packet again with all that follow";
    let has = |transport: &str, fabric: &str| {
        warnings(&with(transport, fabric)).iter().any(|warning| warning.contains(expected))
    };
    for transport in ["roce", "theta-powertcp"] {
        assert!(has(transport, "queue = \"trimming\""), "{transport}");
        assert!(has(transport, "queue = \"trimming\", control_priority = false"), "{transport}");
        assert!(!has(transport, "queue = \"tail-drop\""), "{transport}");
    }
    assert!(!has("ndp", "queue = \"trimming\"") && !has("uet", "queue = \"trimming\""));
}

/// A window has to hold what waits for a shared ACK; credit comes as packets do.
#[test]
fn shared_acks_on_short_paths_are_named_where_a_window_waits_for_them() {
    let lone = |preset: &str| {
        format!(
            "topology = {{ kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 4, rate = \"100Gbps\", latency = \"100ns\" }}\n\
             workload = {{ kind = \"incast\", senders = 1, size = \"2MB\" }}\ntransport = \"{preset}\"\n\
             fabric = {{ queue = \"trimming\", buffer = \"200KB\", ecn = {{ kmin = \"40KB\", kmax = \"160KB\" }} }}\n"
        )
    };
    for (preset, is_slow) in [("uet-nscc", true), ("uet-nscc-rccc", true), ("uet-rccc", false)] {
        let ran = run(&lone(preset));
        let is_named =
            ran.warnings.iter().any(|warning| warning.contains("reliability.ack_bytes: an ACK is due"));
        let slowdown = ran.slowdown.unwrap().max;
        assert_eq!(
            (is_named, slowdown > 1.02),
            (is_slow, is_slow),
            "{preset}: {slowdown} {:?}",
            ran.warnings
        );
    }
}

#[test]
fn a_balancer_that_never_moved_a_flow_is_named() {
    let with = |preset: &str| {
        format!(
            "{TREE}routing = \"{preset}\"\nworkload = {{ size = \"64KiB\" }}\nfabric = {{ ecn = {{ kmin = \"1MB\", kmax = \"2MB\" }} }}\n"
        )
    };
    for preset in ["plb", "flowbender"] {
        let found = warnings(&with(preset));
        assert!(found.contains(&format!("routing: `{preset}` never moved a flow")), "{found:?}");
    }
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
    // A second plane carries as much as it is offered in addition.
    let planes =
        |load: f64, spines: u32| with(load, spines) + "servers = { nics = 1, planes = 2, bond = {} }\n";
    check(&planes(0.8, 2), &planes(0.8, 4), "workload.load: a load of 0.8 offers the tier leaf-spine 128%");
}

#[test]
fn a_load_that_the_links_of_other_networks_cannot_carry_is_named() {
    let with = |topology: &str, load: f64, destination: &str| {
        format!(
            "topology = {topology}\nworkload = {{ kind = \"poisson\", load = {load}, size = \"10KB\", messages_per_host = 1, destination = \"{destination}\" }}\n"
        )
    };
    // A line of four switches, four hosts each. Uniform traffic of 16 hosts at 0.4 of 200 Gb/s: 8 · 8/15 of them send over the middle link, 341 Gb/s.
    let line = "{ kind = \"hyperx\", dimensions = 1, switches_per_dimension = [2], hosts_per_switch = 8 }";
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
fn activities_without_a_program_are_named() {
    for field in ["activities", "operations"] {
        let with = |kind: &str| {
            format!(
                "{TREE}workload = {{ kind = \"{kind}\", size = \"64KiB\" }}\nmeasure = {{ {field} = true }}\n"
            )
        };
        let expected = format!("measure.{field}: changes nothing");
        check(&with("permutation"), &with("collective"), &expected);
    }
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
        check(&with(1), &with(2), &format!("routing: {named} had no effect"));
    }
    assert_eq!(
        warnings("topology = { kind = \"crossbar\", hosts = 4 }\nworkload = { size = \"64KiB\" }\n"),
        Vec::<String>::new()
    );
}
