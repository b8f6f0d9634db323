use super::*;
use crate::detail::Detail;
use crate::source::Source;
use netloom_record::{Existing, Outcome};

fn document(text: &str) -> Node {
    Node::parse(&Source::new("s.toml", text)).unwrap()
}

/// What is wrong with a scenario; it is the same whether it is to run or only checked.
fn problem(text: &str) -> String {
    let document = document(text);
    let scenario = Scenario::read(&document).unwrap();
    let said = |refused: Option<Problems>| refused.map_or("no problem".to_owned(), |it| it.to_string());
    let problem = said(prepare(&scenario, &document).err());
    assert_eq!(said(check(&scenario, &document).err()), problem);
    problem
}

#[test]
fn a_scenario_becomes_an_outcome_that_says_what_was_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let document =
        document("topology = { kind = \"crossbar\", hosts = 4 }\nworkload = { size = \"10KB\" }\n");
    let writer = OutcomeWriter::prepare(&out, Existing::Refuse).unwrap();
    let ran = run(&document, 1, &writer, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(ran.summary.flows.completed, 4);
    let outcome = Outcome::read(&out).unwrap();
    assert_eq!(outcome.summary, ran.summary);
    let again = Node::parse(&Source::new("scenario.toml", outcome.scenario)).unwrap();
    assert_eq!(Scenario::read(&again), Scenario::read(&document));
}

/// Flows that go into their table while they come make the same outcome as flows that are in memory until the end.
#[test]
fn an_outcome_is_the_same_byte_by_byte_when_its_flows_were_never_all_in_memory() {
    let measures = "measure = { warm_up = \"2us\", size_bins = [\"2KB\"], packets = true, gaps = true, switch_gaps = true }";
    let scenarios = [
        format!(
            "topology = {{ kind = \"fat-tree\", k = 4 }}\nrouting = \"flowcut-nic\"\nfabric = {{ buffer = \"20KB\" }}\n{measures}\n"
        ),
        "topology = { kind = \"fat-tree\", k = 4 }\nservers = {}\n".to_owned(),
    ];
    let work = "[workload]\nkind = \"mix\"\nparts = [\n  { kind = \"poisson\", name = \"small\", size = \"1KiB\", load = 0.5, duration = \"10us\" },\n  \
                { kind = \"poisson\", name = \"large\", size = \"9KB\", load = 0.5, duration = \"20us\" },\n]\n";
    for scenario in scenarios {
        let folder = tempfile::tempdir().unwrap();
        let document = document(&(scenario + work));
        let scenario = Scenario::read(&document).unwrap();
        let write = |name| OutcomeWriter::prepare(&folder.path().join(name), Existing::Refuse).unwrap();
        let ready = || prepare(&scenario, &document).unwrap();
        let go_on = |_| ControlFlow::Continue(());
        let ran = finish(&scenario, ready(), 2, &write("streamed"), go_on).unwrap();
        let (of_memory, records) = simulate(&scenario, ready(), 1, go_on).unwrap();
        let text = scenario.to_toml().unwrap();
        write("at-once").write(&text, &of_memory.summary, &records, &of_memory.performance).unwrap();

        assert!(records.flows.len() > 100 && ran.summary.flows.completed > 100);
        assert_eq!(
            Summary::new(&records, &summary_options(&scenario), Status::Complete).unwrap(),
            Summary { warnings: Vec::new(), ..ran.summary }
        );
        let names = |name: &str| {
            let entries = std::fs::read_dir(folder.path().join(name)).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names("streamed"), names("at-once"));
        for name in names("streamed").into_iter().filter(|name| *name != *"performance.json") {
            let bytes = |of: &str| std::fs::read(folder.path().join(of).join(&name)).unwrap();
            assert!(bytes("streamed") == bytes("at-once"), "{name:?}");
        }
    }
}

/// The failure of a matrix is the fault that says the same.
#[test]
fn failures_of_a_connection_matrix_cut_links() {
    let folder = tempfile::tempdir().unwrap();
    let run = |failures: &str, faults: &str| {
        let file = folder.path().join("f.cm");
        std::fs::write(&file, format!("Nodes 16\nConnections 1\n0->12 start 0 size 9000000\n{failures}"))
            .unwrap();
        let document = document(&format!(
            "topology = {{ kind = \"fat-tree\", k = 4 }}\nrouting = \"spray\"\n{faults}\n\
             [workload]\nkind = \"htsim-matrix\"\nfile = \"{}\"\n",
            file.display()
        ));
        let scenario = Scenario::read(&document).unwrap();
        let ready = prepare(&scenario, &document).unwrap();
        let (_, records) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
        let sent = |from: &str, to: &str| {
            let channel = records.channels.iter().find(|c| (&*c.from, &*c.to) == (from, to));
            channel.map(|channel| channel.packets)
        };
        [sent("s8", "s16"), sent("s8", "s17"), sent("s9", "s18"), sent("s9", "s19")]
    };
    let whole = run("", "");
    assert!(whole.iter().all(|&sent| sent > Some(0)), "{whole:?}");
    let failed = run("Failures 1\nfailure switch_type AGG switch_id 1 link_id 0\n", "");
    assert!(failed[2].is_none_or(|sent| sent == 0) && failed[3] > Some(0), "{failed:?}");
    assert_eq!(
        failed,
        run("", "faults = [{ kind = \"cut\", channels = [{ from = \"s9\", to = \"s18\" }] }]")
    );
}

#[test]
fn what_does_not_fit_is_placed_where_it_is_written() {
    let cases = [
        ("[topology]\nk = 5\n", "s.toml:2:5: topology.k: expected an even number"),
        ("[workload]\nranks = 1\n", "s.toml:2:9: workload.ranks: expected 2 to 1024"),
        (
            "[workload]\nkind = \"mix\"\n[[workload.parts]]\nkind = \"bursty\"\nload = 0.3\n[[workload.parts]]\nkind = \"bernoulli\"\nload = 1.5\n",
            "s.toml:8:8: workload.parts.1.load: expected a number above 0, at most 1, found 1.5",
        ),
        (
            "[workload]\nkind = \"mix\"\nparts = [\"bursty\"]\nclass = 1\n",
            "s.toml:4:9: workload.class: expected it in the parts of a mix",
        ),
        (
            "[routing]\nselector = \"drill\"\nplacement = \"nic\"\n",
            "s.toml:2:12: routing.selector: expected \"hash\", \"random\"",
        ),
        ("[servers]\nnics = 3\n", "s.toml:2:8: servers.nics: expected a divisor of the network's 1024 hosts"),
        (
            "[servers]\nnics = 1\n",
            "s.toml:2:8: servers.nics: expected 2 to 64; leave the table `servers` out",
        ),
        (
            "servers = { wiring = \"rail-optimised\" }\n[workload]\nkind = \"worst-case\"\n",
            "s.toml:3:8: workload.kind: expected another pattern where a server's NICs are at several switches",
        ),
        (
            "servers = {}\nworkload = { ranks = 129 }\n",
            "workload.ranks: expected 2 to 128, the servers of the network",
        ),
        (
            "[topology]\nkind = \"crossbar\"\nhosts = 6\n[servers]\nnics = 2\nwiring = \"rail-optimised\"\n",
            "s.toml:6:10: servers.wiring: expected \"side-by-side\", or a network in which the 1 switches with hosts",
        ),
        (
            "servers.nics = 2\nservers.nic_selection = \"least-outstanding\"\nworkload = { kind = \"bernoulli\", load = 0.1, until = \"1us\" }\n",
            "servers.nic_selection: expected another one for frames of open loops",
        ),
        (
            "[servers]\nnics = 2\n[servers.bond]\n",
            "s.toml:3:1: servers.bond: expected ports of a NIC to choose among: planes = 2 or more, or ports = 2 or more",
        ),
        (
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n[servers]\nnics = 2\nports = 2\n",
            "s.toml:8:9: servers.ports: expected 1, or a table `bond` beside it",
        ),
        (
            "routing.preset = \"ecmp\"\n[servers]\nnics = 2\nplanes = 2\n[servers.bond]\nport_selection = \"entropy\"\n",
            "s.toml:6:18: servers.bond.port_selection: expected another one, or packets with entropy values",
        ),
        (
            "routing.preset = \"flowcut\"\n[servers]\nnics = 2\nplanes = 2\n[servers.bond]\nport_selection = \"round-robin\"\n",
            "s.toml:6:18: servers.bond.port_selection: expected \"flow\" with routing.granularity \"flowcut\"",
        ),
        (
            "servers.nics = 2\ntransport = { reliability = \"none\", congestion = \"none\" }\n",
            "transport.reliability: expected a reliability with ACKs where servers have several NICs",
        ),
        ("transport = { mtu = \"0B\" }\n", "s.toml:1:21: transport.mtu: expected at least 1B, found 0B"),
        ("[transport]\nack_every = 0\n", "s.toml:2:13: transport.ack_every: expected at least 1"),
        ("[fabric]\nbuffer = \"100B\"\n", "s.toml:2:10: fabric.buffer: expected room for a packet"),
        (
            "[routing]\npreset = \"switch-ar\"\n",
            "routing.selector: switch-ar learns of congestion from notifications only",
        ),
        (
            "[transport]\ncongestion = \"qcn\"\n",
            "s.toml:2:14: transport.congestion: a rate limiter learns of congestion",
        ),
        (
            "[[faults]]\nkind = \"cut\"\n",
            "faults.0.links: expected one of `links`, `link_fraction`, `channels` or `switches`",
        ),
        (
            "[[faults]]\nkind = \"cut\"\nlinks = 1\nfrom = \"0ps\"\nreroute_after = \"1us\"\n",
            "faults.0.reroute_after: expected none where a cut lasts for the whole run, of which routing knows; or a `from` above 0, found 1us",
        ),
        (
            "[workload]\nsize = \"1000000GB\"\n",
            "s.toml:2:8: workload.size: expected at most 17179869180KiB, whose packets",
        ),
        ("[topology]\nlatency = \"17s\"\n", "topology: link 0 has a latency of 17s; expected at most 16s"),
        (
            "[workload]\nkind = \"poisson\"\nduration = \"1us\"\nload = 1e300\n",
            "s.toml:4:8: workload.load: expected a number above 0, at most 100, found 1",
        ),
        (
            "[measure]\nsample = \"1ps\"\nuntil = \"10s\"\n",
            "s.toml:2:10: measure.sample: expected a longer interval: 61440000000000000 rows",
        ),
        ("[measure]\nsample = \"0us\"\n", "s.toml:2:10: measure.sample: expected more than 0"),
        (
            "[measure]\nwindows = [{ name = \"w\", from = \"2us\", until = \"1us\" }]\n",
            "s.toml:2:48: measure.windows.0.until: expected a time after from = 2us",
        ),
        (
            "[[measure.channels]]\nname = \"c\"\nfrom = \"s0\"\nto = \"h2000\"\n",
            "s.toml:4:6: measure.channels.0.to: expected a node, h0 to h1023 or s0 to s319, found \"h2000\"; did you mean `h1023`?",
        ),
    ];
    for (text, expected) in cases {
        let found = problem(text);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn the_nearest_written_table_stands_for_a_field_nobody_wrote() {
    let text = "[topology]\nkind = \"crossbar\"\nhosts = 2\n[workload]\nkind = \"incast\"\nsenders = 5\n";
    assert!(problem(text).starts_with("s.toml:6:11: workload.senders"), "{}", problem(text));
    let text = "[topology]\nkind = \"complete\"\nswitches = 5\n[routing]\npreset = \"d-mod-k\"\n";
    assert!(problem(text).starts_with("s.toml:4:1: routing.selector: expected a tree"), "{}", problem(text));
}

/// What only packets have is refused by name, whether it comes from the scenario or from the flow level's own crate.
#[test]
fn what_only_packets_have_is_refused_at_the_level_of_flows() {
    let cases = [
        ("fast = true\n", "s.toml:2:8: fast: expected false, as nothing is calculated packet by packet"),
        (
            "[servers]\nnics = 2\nplanes = 2\nbond = { failover_after = \"1us\" }\n",
            "servers.bond: expected none at the level of flows",
        ),
        (
            "[measure]\ntrace = { flows = [{ src = 0, dst = 9 }] }\n",
            "measure.trace: expected none at the level of flows",
        ),
        ("[measure]\npackets = true\n", "s.toml:3:11: measure.packets: expected none at the level of flows"),
        ("[measure]\nsample_senders = \"1us\"\n", "s.toml:3:18: measure.sample_senders: expected none"),
        ("[routing]\nmax_flow_entries = 10\n", "s.toml:3:20: routing.max_flow_entries: expected none"),
        ("[transport]\nsubflows = 4\n", "s.toml:3:12: transport.subflows: expected 1 at the level of flows"),
        (
            "routing = \"letflow\"\n",
            "routing.selector: expected one that keeps a flow on one path or divides it among its paths packet by packet",
        ),
        (
            "[routing]\npreset = \"ugal-l\"\ngranularity = \"flow\"\n[topology]\nkind = \"dragonfly\"\n",
            "found \"ugal\" per flow",
        ),
        (
            "[routing]\npreset = \"adaptive\"\n[topology]\nkind = \"torus\"\n",
            "routing.selector: expected one that does not go by the state of the network",
        ),
        (
            "routing = \"reps\"\n[topology]\nkind = \"torus\"\n[fabric]\necn = { kmin = \"10KB\", kmax = \"20KB\" }\n",
            "routing.granularity: expected one that does not go by the state of the network (\"packet\", say) or a network",
        ),
        (
            "routing = \"drill\"\nfaults = [{ kind = \"degrade\", link_fraction = 0.1, rate_factor = 0.5 }]\n",
            "found \"drill\" per packet with faults that change links or routes",
        ),
        (
            "[[faults]]\nkind = \"loss\"\nlink_fraction = 0.1\nprobability = 0.1\n",
            "s.toml:3:8: faults.0.kind: expected \"cut\" or \"degrade\" at the level of flows",
        ),
        (
            "[topology]\nkind = \"fat-tree\"\nk = 4\n[workload]\nkind = \"sharp-like\"\n",
            "workload.kind: expected another algorithm at the level of flows",
        ),
        ("[workload]\nkind = \"bernoulli\"\n", "workload.kind: expected another kind at the level of flows"),
    ];
    for (text, expected) in cases {
        let found = problem(&format!("detail = \"flow\"\n{text}"));
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let misspelt = Scenario::read(&document("detail = \"flows\"\n")).unwrap_err().to_string();
    assert!(misspelt.contains("s.toml:1:10: detail: there is no detail `flows`"), "{misspelt}");
}

/// Between two leaf switches the links up and those down are loaded alike.
#[test]
fn schemes_that_avoid_congestion_run_at_the_level_of_flows_on_two_leaves() {
    let fct = |leaves: u32, routing: &str| {
        let text = format!(
            "detail = \"flow\"\nrouting = \"{routing}\"\n\
             topology = {{ kind = \"leaf-spine\", leaves = {leaves}, spines = 4, hosts_per_leaf = 4, rate = \"100Gbps\", latency = \"1us\" }}\n\
             fabric = {{ ecn = {{ kmin = \"40KB\", kmax = \"160KB\" }} }}\nworkload = {{ kind = \"off-diagonal\", offset = 4, size = \"1MB\" }}\n"
        );
        let document = document(&text);
        let ready = prepare(&Scenario::read(&document).unwrap(), &document);
        let ready = ready.unwrap_or_else(|problems| panic!("{text}: {problems}"));
        let scenario = Scenario::read(&document).unwrap();
        let (ran, _) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
        ran.summary.slowdown.unwrap().max
    };
    for routing in ["spray", "adaptive", "reps"] {
        for leaves in [2, 3] {
            assert!((fct(leaves, routing) - 1.0).abs() < 1e-9, "{routing} on {leaves}");
        }
    }
}

#[test]
fn fields_that_only_packets_have_are_named() {
    let warnings = |text: &str| {
        let document = document(text);
        check(&Scenario::read(&document).unwrap(), &document).unwrap().warnings.join("\n")
    };
    let text = "routing = { preset = \"adaptive\", selector = { refresh = \"1us\" } }\n\
                transport = { preset = \"dctcp\", mtu = 1024, rto_min = \"1ms\" }\nfabric = { buffer = \"1MB\", switch_latency = \"1us\" }\n";
    let found = warnings(&format!("detail = \"flow\"\n{text}"));
    let named =
        "fabric.buffer, transport.rto_min, routing.selector.refresh: without effect at the level of flows";
    assert!(found.contains(named), "{found}");
    assert!(!warnings(text).contains("level of flows"));
}

/// The outcome has the same tables, says how it came about, and has the same bytes each time.
#[test]
fn an_outcome_of_flows_says_so_and_is_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let text = "detail = \"flow\"\ntopology = { kind = \"fat-tree\", k = 4 }\nworkload = { kind = \"uniform\", size = \"100KB\", messages_per_host = 5 }\n";
    let document = document(text);
    let write = |name: &str, threads| {
        let writer = OutcomeWriter::prepare(&folder.path().join(name), Existing::Refuse).unwrap();
        run(&document, threads, &writer, |_| ControlFlow::Continue(())).unwrap().summary
    };
    let summary = write("one", 1);
    assert!(summary.flow_level);
    assert_eq!(summary.flows.completed, 16 * 5);
    assert_eq!(write("three", 3), summary);
    for entry in std::fs::read_dir(folder.path().join("one")).unwrap() {
        let name = entry.unwrap().file_name();
        let bytes = |of: &str| std::fs::read(folder.path().join(of).join(&name)).unwrap();
        assert!(name == *"performance.json" || bytes("one") == bytes("three"), "{name:?}");
    }
}

const TWO_JOBS: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
    [[jobs]]\nname = \"a\"\nranks = 8\nplacement = \"round-robin-leaves\"\nworkload = { kind = \"collective\", size = \"1MB\" }\n\
    [[jobs]]\nname = \"b\"\nworkload = { kind = \"uniform\", size = \"100KB\", messages_per_host = 5 }\n";

#[test]
fn a_region_that_cannot_be_run_is_refused_where_it_is_written() {
    let problem = |text: &str| {
        let document = document(text);
        let scenario = match Scenario::read(&document) {
            Ok(scenario) => scenario,
            Err(problems) => return problems.to_string(),
        };
        let found = prepare(&scenario, &document).unwrap_err().to_string();
        assert_eq!(check(&scenario, &document).unwrap_err().to_string(), found);
        found
    };
    let of_a = "detail = { packets = { jobs = [\"a\"] } }\n";
    let with = |more: &str| format!("{of_a}{more}\n{TWO_JOBS}");
    for (text, expected) in [
        (
            format!("detail = {{ packets = {{ jobs = [\"a\", \"c\"] }} }}\n{TWO_JOBS}"),
            "s.toml:1:37: detail.packets.jobs.1: expected one of a, b, found \"c\"",
        ),
        (
            format!("detail = {{ packets = {{ hosts = [0, 1, 99] }} }}\n{TWO_JOBS}"),
            "s.toml:1:39: detail.packets.hosts.2: expected one of the 16 hosts, by its number from 0 to 15, found 99",
        ),
        (
            format!("detail = {{ packets = {{ hosts = [0, 1] }} }}\n{TWO_JOBS}"),
            "detail.packets.hosts: expected the hosts of all ranks of `a` or of none",
        ),
        (
            format!("detail = {{ packets = {{}} }}\n{TWO_JOBS}"),
            "detail.packets.hosts: expected it or `jobs`, found neither",
        ),
        (
            format!("detail = {{ packets = {{ host = [1] }} }}\n{TWO_JOBS}"),
            "detail.packets.host: unknown field `host` (did you mean `hosts`?",
        ),
        (
            format!("detail = {{ packet = {{ hosts = [1] }} }}\n{TWO_JOBS}"),
            "detail.packet: unknown field `packet` (did you mean `packets`?",
        ),
        (with("fast = true"), "s.toml:2:8: fast: expected false"),
        (
            with("fabric = { flow_control = \"pfc\" }"),
            "fabric.flow_control: expected \"lossy\" where only a region is run in packets",
        ),
        (
            with("fabric = { flow_control = \"credits\" }"),
            "fabric.flow_control: expected \"lossy\" where only a region is run in packets",
        ),
        (
            with("routing = \"flowcut\""),
            "routing.selector: expected one that keeps a flow on one path or divides it among its paths packet by packet (\"hash\" per flow, \"random\" or \"least-loaded\" per packet, say) where all but a region is at the level of flows",
        ),
        (with("transport = { subflows = 4 }"), "transport.subflows: expected 1 where all but a region"),
        (
            with("faults = [{ kind = \"loss\", link_fraction = 0.1, probability = 0.1 }]"),
            "faults.0.kind: expected \"cut\" or \"degrade\" where all but a region",
        ),
    ] {
        let found = problem(&text);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    // What is measured of packets is measured of those of the region.
    let measured = with("measure = { sample = \"1us\", packets = true, gaps = true }");
    let document = document(&measured);
    assert!(prepare(&Scenario::read(&document).unwrap(), &document).is_ok());
}

/// The outcome says how many flows had no packets, and has the same bytes on any number of threads.
#[test]
fn an_outcome_of_a_region_says_so_and_is_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "detail = {{ packets = {{ jobs = [\"a\"] }} }}\nmeasure = {{ activities = true }}\n{TWO_JOBS}"
    );
    let document = document(&text);
    let write = |name: &str, threads| {
        let writer = OutcomeWriter::prepare(&folder.path().join(name), Existing::Refuse).unwrap();
        run(&document, threads, &writer, |_| ControlFlow::Continue(())).unwrap().summary
    };
    let summary = write("1", 1);
    assert_eq!((summary.flow_level, summary.background_flows), (false, Some(8 * 5)));
    assert_eq!(summary.flows.completed, 8 * 5 + 8 * 14);
    assert!(summary.totals.data.sent > 0 && summary.totals.makespan.is_some());
    for threads in ["2", "3"] {
        assert_eq!(write(threads, threads.parse().unwrap()), summary);
        for entry in std::fs::read_dir(folder.path().join("1")).unwrap() {
            let name = entry.unwrap().file_name();
            let bytes = |of: &str| std::fs::read(folder.path().join(of).join(&name)).unwrap();
            assert!(name == *"performance.json" || bytes("1") == bytes(threads), "{name:?}");
        }
    }
}

#[test]
fn a_region_that_turns_out_to_be_empty_or_everything_is_suspicious() {
    let found = |hosts: u32, duration: &str, seed: u64| {
        let text = format!(
            "seed = {seed}\ndetail = {{ packets = {{ hosts = {:?} }} }}\ntopology = {{ kind = \"fat-tree\", k = 4 }}\n\
             workload = {{ kind = \"poisson\", size = \"10KB\", load = 0.1, duration = \"{duration}\" }}\n",
            (0..hosts).collect::<Vec<u32>>()
        );
        let document = document(&text);
        let scenario = Scenario::read(&document).unwrap();
        let ready = prepare(&scenario, &document).unwrap();
        let (ran, _) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
        ran.summary.warnings.join("\n")
    };
    let some = |hosts, expected| (1..20).any(|seed| found(hosts, "1us", seed).contains(expected));
    assert!(some(2, "detail.packets: no flow began inside the region, and no packet was sent"));
    assert!(some(15, "detail.packets: no flow began outside of the region"));
    assert!(!found(6, "200us", 1).contains("detail.packets"));
}

/// A level of detail takes the place of another one, whichever is a table.
#[test]
fn a_region_can_be_set_over_a_level_and_a_level_over_a_region() {
    let hosts = |numbers: &[u32]| {
        let hosts = numbers.iter().map(|&host| netloom_workload::HostName::Number(host)).collect();
        Detail::Region(netloom_workload::Region { hosts, ..Default::default() })
    };
    for (text, over, expected) in [
        ("detail = { packets = { hosts = [1, 2] } }", "detail=flow", Detail::Flow),
        ("detail = { packets = { hosts = [1, 2] } }", "detail=packets", Detail::Packets),
        ("detail = \"flow\"", "detail={packets={hosts=[3]}}", hosts(&[3])),
        ("detail = \"flow\"", "detail.packets.hosts=[3, 4]", hosts(&[3, 4])),
        ("", "detail.packets.hosts=[5]", hosts(&[5])),
        ("detail = { packets = { hosts = [1, 2] } }", "detail.packets.hosts=[6]", hosts(&[6])),
    ] {
        let mut document = document(text);
        crate::document::apply_override(&mut document, over).unwrap();
        assert_eq!(Scenario::read(&document).unwrap().detail, expected, "{text} {over}");
    }
}
