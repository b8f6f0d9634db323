//! Configurations and commands of other simulators as scenarios, and flows in their columns.

use std::path::Path;
use std::process::{Command, Output};

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).current_dir(folder).args(args).output().unwrap()
}

/// What a command prints, and what it says on standard error.
fn printed(folder: &Path, args: &[&str]) -> (String, String) {
    let output = netloom(folder, args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{args:?}: {errors}");
    (out, errors)
}

/// What a command that is refused says.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = netloom(folder, args);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes a scenario that a command printed and runs it.
fn runs(folder: &Path, scenario: &str, out: &str) {
    std::fs::write(folder.join("scenario.toml"), scenario).unwrap();
    printed(folder, &["run", "scenario.toml", "--quiet", "--out", out]);
}

/// Two leaves of two hosts below two spines, as ConWeave's generator writes networks; hosts first.
const TOPOLOGY: &str = "8 4 8\n4 5 6 7\n0 4 100Gbps 1000ns 0.0\n1 4 100Gbps 1000ns 0.0\n2 5 100Gbps 1000ns 0.0\n3 5 100Gbps 1000ns 0.0\n\
    4 6 100Gbps 1000ns 0.0\n4 7 100Gbps 1000ns 0.0\n5 6 100Gbps 1000ns 0.0\n5 7 100Gbps 1000ns 0.0\n\nFirst line: total node #, switch node #, link #\n";

const FLOWS: &str = "3\n0 2 3 100000 2.000001000\n1 3 3 5000 2.000002000\n2 1 3 20000 2.000002000\n";

/// As ConWeave's run.py makes them, shortened by files that it only writes.
fn conweave(lb_mode: u32, irn: bool) -> String {
    let pfc = u32::from(!irn);
    format!(
        "TOPOLOGY_FILE config/topology.txt\nFLOW_FILE config/flow.txt\n\nFCT_OUTPUT_FILE mix/output/1/1_out_fct.txt\nQLEN_MON_START 2.0\n\
         FLOWGEN_START_TIME 2.0\nFLOWGEN_STOP_TIME 2.1\nBUFFER_SIZE 9\n\nCC_MODE 1\nLB_MODE {lb_mode}\nENABLE_PFC {pfc}\nENABLE_IRN {irn}\n\n\
         CONWEAVE_TX_EXPIRY_TIME 300\nCONWEAVE_REPLY_TIMEOUT_EXTRA 4\nCONWEAVE_PATH_PAUSE_TIME 16\nCONWEAVE_EXTRA_VOQ_FLUSH_TIME 16\n\
         CONWEAVE_DEFAULT_VOQ_WAITING_TIME 200\n\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 300 \n\
         FAST_RECOVERY_TIMES 1\nEWMA_GAIN 0.00390625\nRATE_AI 40.0Mb/s\nRATE_HAI 100.0Mb/s\nMIN_RATE 100Mb/s\nDCTCP_RATE_AI 1000Mb/s\n\n\
         ERROR_RATE_PER_LINK 0.0000\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\n\nRATE_BOUND 1\nHAS_WIN 0\nVAR_WIN 0\n\
         FAST_REACT 0\nMI_THRESH 0\nINT_MULTI 1\nGLOBAL_T 1\nU_TARGET 0.95\nMULTI_RATE 0\nSAMPLE_FEEDBACK 0\n\nENABLE_QCN 1\n\
         USE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE 1000\n\nLINK_DOWN 0 0 0\nKMAX_MAP 2 100000000000 400 200000000000 400\n\
         KMIN_MAP 2 100000000000 100 200000000000 100\nPMAX_MAP 2 100000000000 0.2 200000000000 0.20\nLOAD 50\nRANDOM_SEED 1\n",
        irn = u32::from(irn)
    )
}

/// A folder as ConWeave's simulator is laid out: the configuration lies below the files that it names.
fn simulator(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("config")).unwrap();
    std::fs::create_dir_all(folder.path().join("mix/output/1")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("config/topology.txt", TOPOLOGY);
    write("config/flow.txt", FLOWS);
    write("mix/output/1/config.txt", config);
    folder
}

const CONFIG: &str = "mix/output/1/config.txt";

#[test]
fn the_five_schemes_of_conweave_are_five_scenarios_that_run() {
    let schemes = [(0, "ecmp"), (2, "drill"), (3, "conga-rdma"), (6, "letflow"), (9, "conweave")];
    let mut scenarios = std::collections::BTreeSet::new();
    for (mode, preset) in schemes {
        let folder = simulator(&conweave(mode, false));
        let (scenario, remarks) = printed(folder.path(), &["from-ns3", CONFIG]);
        assert!(scenario.contains(&format!("routing.preset = \"{preset}\"")), "{scenario}");
        for field in [
            "fabric.flow_control = { kind = \"pfc-shared\", buffer = \"9MiB\", alpha = 0.0625, reserve = \"2096B\" }",
            "alpha_timer = \"1us\", cut_timer = \"4us\", increase_timer = \"300us\", g = 0.00390625, fast_recovery = 1, r_ai = \"40000000bps\", \
             r_hai = \"100000000bps\", min_rate = \"100000000bps\", clamp_target = false }",
            "fabric.ecn = { kmin = \"100KB\", kmax = \"400KB\", pmax = 0.2 }",
            "fabric.control_priority = true",
            "transport.preset = \"roce-conweave\"",
            "measure.until = \"12.1s\"",
        ] {
            assert!(scenario.contains(field), "{field}\n{scenario}");
        }
        // What ConWeave alone has is set for it alone; nothing is left out but outputs.
        assert_eq!(scenario.contains("routing.granularity.inactive = \"300us\""), mode == 9);
        assert_eq!(remarks.lines().count(), 1, "{remarks}");
        assert!(
            remarks.contains("FCT_OUTPUT_FILE, QLEN_MON_START, LOAD: without effect on what is simulated"),
            "{remarks}"
        );
        runs(folder.path(), &scenario, "out");
        printed(folder.path(), &["fct", "out"]);
        let flows = std::fs::read_to_string(folder.path().join("out/fct.txt")).unwrap();
        let columns: Vec<Vec<&str>> = flows.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(columns.len(), 3);
        let long = columns.iter().find(|row| row[..2] == ["0", "2"]).unwrap();
        // The folder is still an outcome, which may be replaced.
        printed(folder.path(), &["run", "scenario.toml", "--quiet", "--out", "out", "--force"]);
        assert!(!folder.path().join("out/fct.txt").exists());
        // 8320 ns and 104,800 bytes at 100 Gb/s.
        assert_eq!(long[2..6], ["10000", "100", "100000", "2000001000"]);
        assert_eq!(long[7], "16704");
        assert!(scenarios.insert(scenario));
    }
}

#[test]
fn losses_and_windows_are_those_of_the_configuration() {
    let config = conweave(0, true).replace("HAS_WIN 0", "HAS_WIN 1")
        + "LINK_DOWN 100 4 6\nERROR_RATE_PER_LINK 0.001\nENABLE_QCN 0\n";
    let folder = simulator(&config);
    let (scenario, remarks) = printed(folder.path(), &["from-ns3", CONFIG]);
    for field in [
        "transport.preset = \"irn\"",
        "transport.congestion = { kind = \"fixed-window\", bdp = 1.0 }",
        "fabric.buffer = \"4608KiB\"",
        "faults = [{ kind = \"cut\", channels = [{ from = \"4\", to = \"6\" }], from = \"2000100us\", reroute_after = \"0ps\" }, { kind = \"loss\"",
    ] {
        assert!(scenario.contains(field), "{field}\n{scenario}");
    }
    assert!(!scenario.contains("fabric.ecn"), "{scenario}");
    assert!(remarks.contains("BUFFER_SIZE 9: an output queue may hold half of it"), "{remarks}");
}

/// HPCC's own configuration, shortened: it has no switch for PFC, and its files may announce less than they hold.
#[test]
fn hpccs_configuration_runs() {
    let config = "TOPOLOGY_FILE config/topology.txt\nFLOW_FILE config/flow.txt\nSIMULATOR_STOP_TIME 4.00\nCC_MODE 3\nRATE_AI 50Mb/s\nMIN_RATE 100Mb/s\n\
        U_TARGET 0.95\nMI_THRESH 0\nHAS_WIN 1\nGLOBAL_T 1\nVAR_WIN 1\nFAST_REACT 1\nMULTI_RATE 1\nACK_HIGH_PRIO 0\nENABLE_QCN 1\nBUFFER_SIZE 32\n\
        KMAX_MAP 1 100000000000 1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\nPINT_PROB 1.0\nNIC_COLOUR red\n";
    let folder = simulator(config);
    std::fs::write(folder.path().join("config/flow.txt"), "1\n0 2 3 100 100000 2\n1 3 3 100 5000 2\n")
        .unwrap();
    let (scenario, remarks) = printed(folder.path(), &["from-ns3", CONFIG]);
    for field in [
        "transport.congestion = { kind = \"hpcc\", eta = 0.95, max_stage = 0, base_rtt = \"8320ns\", flows = 100, min_rate = \"100000000bps\" }",
        "fabric.flow_control = { kind = \"pfc-shared\", buffer = \"32MiB\", alpha = 0.125, reserve = \"4KiB\" }",
        "fabric.control_priority = false",
        "measure.until = \"4s\"",
    ] {
        assert!(scenario.contains(field), "{field}\n{scenario}");
    }
    assert!(
        remarks.contains("MULTI_RATE 1: a flow has one rate")
            && remarks.contains("NIC_COLOUR red: it has no counterpart"),
        "{remarks}"
    );
    runs(folder.path(), &scenario, "out");
    assert!(
        printed(folder.path(), &["fct", "out", "--columns", "hpcc"]).0.starts_with("1 flows in out/fct.txt")
    );
}

#[test]
fn mistakes_in_configurations_name_their_line() {
    let good = conweave(0, false);
    for (change, expected) in [
        (("LB_MODE 0", "LB_MOD 0"), &["config.txt:11:1", "found \"LB_MOD\"", "did you mean `LB_MODE`?"][..]),
        (("LB_MODE 0", "LB_MODE 4"), &["LB_MODE: expected 0 (ECMP), 2 (DRILL)", "found 4"]),
        (("CC_MODE 1", "CC_MODE 10"), &["CC_MODE: HPCC-PINT has no counterpart"]),
        (("RATE_AI 40.0Mb/s", "RATE_AI fast"), &["RATE_AI: expected a rate such as 50Mb/s, found \"fast\""]),
        (("ENABLE_PFC 1", "ENABLE_PFC yes"), &["ENABLE_PFC: expected 0 or 1, found \"yes\""]),
        (("KMAX_MAP 2", "KMAX_MAP 3"), &["KMAX_MAP: expected 3 rates with their values, found 4 words"]),
        (("KMIN_MAP 2 100000000000", "KMIN_MAP 2 50000000000"), &["KMIN_MAP: expected a value for 100Gbps"]),
        (
            ("KMIN_MAP 2 100000000000 100", "KMIN_MAP 2 100000000000 -100"),
            &["expected a number of at least 0, found \"-100\""],
        ),
        (("config/flow.txt", "config/flows.txt"), &["FLOW_FILE: there is no file config/flows.txt"]),
        (("LINK_DOWN 0 0 0", "LINK_DOWN 5"), &["LINK_DOWN: expected microseconds and the ids of two nodes"]),
        (("EWMA_GAIN 0.00390625", "EWMA_GAIN 7"), &["congestion.g: ", "g = 7.0"]),
        (("BUFFER_SIZE 9", "BUFFER_SIZE"), &["BUFFER_SIZE: expected a value, found none"]),
    ] {
        assert!(good.contains(change.0), "{change:?}");
        let folder = simulator(&good.replacen(change.0, change.1, 1));
        let error = refused(folder.path(), &["from-ns3", CONFIG]);
        assert!(expected.iter().all(|part| error.contains(part)), "{change:?}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(refused(folder.path(), &["from-ns3", "nowhere.txt"]).contains("cannot read nowhere.txt"));
}

const MATRIX: &str = "Nodes 16\nConnections 3\nTriggers 1\n0->5 id 1 start 0 size 90000 send_done_trigger 1\n0->9 id 2 trigger 1 size 30000\n\
    3->12 id 3 start 0 size 20000\ntrigger id 1 multishot\n";

fn matrix() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.cm"), MATRIX).unwrap();
    folder
}

#[test]
fn commands_of_htsim_become_scenarios_that_run() {
    let folder = matrix();
    let (at, tm) = (folder.path(), "-tm a.cm -nodes 16");
    for (number, (command, fields)) in [
        (
            format!(
                "./htsim_ndp -strat perm {tm} -q 8 -cwnd 30 -mtu 9000 -linkspeed 10000 -hop_latency 1 -end 100000 -seed 7"
            ),
            &[
                "topology = { kind = \"fat-tree\", k = 4, rate = \"10000Mbps\", latency = \"1us\" }",
                // 72,000 bytes hold seven packets of 9064, one of which is being sent.
                "fabric.buffer = \"54384B\"",
                "control_buffer = \"144000B\"",
                "routing = { preset = \"path-list\", granularity = { paths = 4, penalty = 1e9 } }",
                "transport.mtu = \"9000B\"",
                "initial_window = 30, pace = 0.99 }",
                "measure.until = \"100000us\"",
                "seed = 7",
            ][..],
        ),
        (
            format!("htsim_ndp -strat ecmp_host -paths 16 {tm}"),
            &["paths = 16, penalty = 1e9 }, selector = \"random\"", "measure.until = \"1000us\""],
        ),
        (
            format!("htsim_ndp -strat ecmp_ar -ar_granularity flow {tm}"),
            &["\"flowlet-adaptive\"", "gap = \"10us\""],
        ),
        (format!("htsim_ndp -strat rand {tm}"), &["\"spray\""]),
        (
            format!("htsim_roce -strat single {tm}"),
            &["\"ecmp\"", "kind = \"pfc\"", "resume = \"27000B\"", "transport.congestion = \"none\""],
        ),
        (
            format!("htsim_eqds {tm} -q 8 -mtu 4160"),
            // 50 packets of 4160 bytes in 1.19 products of 12 us and 6 links, there and back; 150 us and six queues of 8 packets.
            &[
                "transport.preset = \"eqds\"",
                "transport.mtu = \"4096B\"",
                "fabric.buffer = \"29120B\"",
                "network_rtt = \"14.02752us\", max_window = 1.186",
                "transport.rto_min = \"165.9744us\"",
            ],
        ),
        (
            format!("htsim_swift {tm} -q 100"),
            &[
                "transport.header = \"0B\"",
                "fabric.buffer = \"396000B\"",
                "kind = \"swift\", initial_window = 15, hop_delay",
            ],
        ),
        (
            format!("htsim_swift {tm} -q 100 -plb on"),
            &["routing.preset = \"plb-htsim\"", "kind = \"swift\", initial_window = 15"],
        ),
        (
            format!("htsim_swift {tm} -q 100 -plb on -subflows 4"),
            &["routing.preset = \"plb-htsim\"", "transport.subflows = 4"],
        ),
        (
            format!("htsim_swift {tm} -q 100 -plb off -subflows 4"),
            &[
                "routing = { preset = \"path-list\", granularity = \"flow\" }",
                "transport.subflows = 4",
            ],
        ),
        (
            format!("htsim_uec {tm} -sender_cc_algo constant -load_balancing_algo oblivious"),
            // A round trip of 12 us, 6 links for 4150 and 64 bytes at 100 Gb/s: 43 packets of 4150 bytes, one of which is being sent; 1.5 times as many,
            // 63 whole ones of 4086 bytes of payload, under way.
            &[
                "kind = \"fixed-window\", bytes = \"257418B\"",
                "fabric.buffer = \"174300B\"",
                "preset = \"uet-oblivious\", granularity = { paths = 64 }",
            ],
        ),
        (
            format!("htsim_uec {tm} -sender_cc_only -paths 128"),
            // What studies/references/uet.toml says for the same network: marks from 20 to 80% of 43 packets, a packet less each; 15 us and six full queues.
            &[
                "fabric.queue = { kind = \"trimming\", control_weight = 100000, header_size = \"64B\", control_buffer = \"356900B\", return_to_sender = false }",
                "fabric.ecn = { kmin = \"33200B\", kmax = \"141100B\", pmax = 1.0 }",
                "transport.preset = \"uet-nscc\"",
                "transport.rto_min = \"100.656us\"",
                "transport.congestion = { kind = \"nscc\", network_rtt = \"14.02272us\" }",
                "routing = { preset = \"uet-mixed\", granularity = { paths = 128 } }",
            ],
        ),
        (
            format!("htsim_uec {tm} -receiver_cc_only -pcie 1.1 -load_balancing_algo bitmap"),
            &[
                "transport.preset = \"uet-rccc\"",
                "fabric.ecn_last_hop = false",
                "{ kind = \"rccc\", network_rtt = \"14.02272us\", pcie = { rate = 1.1 } }",
            ],
        ),
        (
            format!(
                "htsim_uec {tm} -sender_cc -receiver_cc -target_q_delay 7 -qa_gate 2 -cwnd 20 -sack_threshold 4000 -load_balancing_algo reps"
            ),
            &[
                "network_rtt = \"14.02272us\", nscc = { target_delay = \"7us\", quick_adapt_gate = 2, initial_window = 20 }",
                "transport.reliability = { kind = \"pds\", ack_bytes = \"4000B\" }",
                "{ preset = \"reps\", entropy_values = 64, granularity = { spare_last_hop = true } }",
            ],
        ),
        (
            format!("htsim_uec {tm} -disable_trim -ecn 10 100 -failed 3"),
            // A queue of 5 times 43 packets.
            &[
                "fabric.buffer = \"888100B\"",
                "kmin = \"37350B\", kmax = \"410850B\"",
                // The two cores of the first aggregation switch, and one of the second.
                "channels = [{ from = \"s16\", to = \"s8\" }, { from = \"s17\", to = \"s8\" }, { from = \"s18\", to = \"s9\" }]",
            ],
        ),
        (
            format!(
                "/x/htsim_ndp_entry_modern {tm} -mtu 4096 -linkspeed 200000 -hop_latency 1000 -routing_sc flowcut -rtt_ratio 4 -cwnd 2500000"
            ),
            &[
                "start_unit = \"us\"",
                "latency = \"1000ns\"",
                "\"flowcut-artefact-ft\"",
                "threshold = 4.0",
                "alpha = 0.12",
            ],
        ),
        (
            format!("htsim_ndp_entry_modern {tm} -routing_sc flowlet -flowlet_value 1580000"),
            &["routing.placement = \"nic\"", "gap = \"1580000ps\""],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let words: Vec<&str> = std::iter::once("from-htsim").chain(command.split(' ')).collect();
        let (scenario, _) = printed(at, &words);
        assert!(fields.iter().all(|field| scenario.contains(field)), "{command}\n{scenario}");
        runs(at, &scenario, &format!("out/{number}"));
    }
    let (scenario, _) = printed(at, &["from-htsim", "htsim_tcp", "-nodes", "16", "-sub", "8", "COUPLED_INC"]);
    assert!(
        scenario.contains("transport.subflows = 8")
            && scenario.contains("transport.congestion.coupled = true"),
        "{scenario}"
    );
    let (scenario, _) = printed(
        at,
        &["from-htsim", "htsim_ndp", "-strat", "perm", "-tm", "a.cm", "-nodes", "18", "-tiers", "2"],
    );
    assert!(
        scenario.contains("kind = \"leaf-spine\", leaves = 6, spines = 3, hosts_per_leaf = 3"),
        "{scenario}"
    );
}

#[test]
fn what_is_left_out_of_a_command_is_listed() {
    let folder = matrix();
    let command = [
        "from-htsim",
        "htsim_ndp",
        "-strat",
        "perm",
        "-tm",
        "a.cm",
        "-nodes",
        "16",
        "-path_burst",
        "4",
        "-o",
        "log",
        "-oversubscribed_cc",
    ];
    let (scenario, remarks) = printed(folder.path(), &command);
    for remark in [
        "-path_burst 4: it has no counterpart",
        "-oversubscribed_cc: receivers ask",
        "-o: an outcome has files of its own",
    ] {
        assert!(remarks.contains(&format!("not carried over: {remark}")), "{remarks}");
        assert!(scenario.contains(&format!("# not carried over: {remark}")), "{scenario}");
    }
    let (_, remarks) =
        printed(folder.path(), &["from-htsim", "htsim_swift", "-tm", "a.cm", "-nodes", "16", "-plb", "on"]);
    assert!(remarks.contains("-plb on: a flow takes its paths in turn"), "{remarks}");
}

#[test]
fn mistakes_in_commands_are_named() {
    let folder = matrix();
    for (command, expected) in [
        ("htsim_dnp -tm a.cm", "did you mean `htsim_ndp`?"),
        ("htsim_ndp -strat perm -tm a.cm -node 16", "did you mean `-nodes`?"),
        ("htsim_ndp -strat perm -tm a.cm -subflows 2", "expected a flag of the program, found \"-subflows\""),
        ("htsim_swift -tm a.cm -nodes 16 -plb yes", "-plb: expected on or off, found \"yes\""),
        ("htsim_swift -tm a.cm -nodes 16 -strat perm", "expected a flag of the program, found \"-strat\""),
        ("htsim_ndp -strat perm -tm b.cm -nodes 16", "-tm: there is no file b.cm"),
        ("htsim_ndp -strat perm -nodes 16", "-tm: expected a connection matrix in a file, found none"),
        ("htsim_ndp -strat perm -tm a.cm -nodes 17", "-nodes: expected as many hosts as a tree"),
        ("htsim_ndp -strat perm -tm a.cm -nodes", "-nodes: expected 1 values behind it, found 0"),
        ("htsim_ndp -strat perm -tm a.cm -nodes many", "-nodes: expected a number, found \"many\""),
        ("htsim_ndp -tm a.cm -nodes 16", "-strat: expected perm, rand"),
        ("htsim_ndp -strat prem -tm a.cm -nodes 16", "did you mean `perm`?"),
        ("htsim_ndp -strat single -tm a.cm -nodes 16", "stops on an assertion"),
        ("htsim_ndp -strat reactive_ecn -tm a.cm -nodes 16", "has no counterpart"),
        ("htsim_ndp -strat ecmp_host -tm a.cm -nodes 16", "-paths: expected a number of paths"),
        (
            "htsim_ndp -strat perm -tm a.cm -nodes 16 -q 1",
            "-q: expected room for two packets of 9064 bytes, found 9000 bytes",
        ),
        ("htsim_ndp -strat perm -tm a.cm -nodes 16 -queue_type lossless", "-queue_type: expected composite"),
        ("htsim_eqds -tm a.cm -nodes 16 -mtu 64", "-mtu: expected more than 64 bytes, found 64"),
        (
            "htsim_uec -tm a.cm -nodes 16 -sender_cc_algo dctcp",
            "its DCTCP with trimmed packets has no counterpart",
        ),
        (
            "htsim_uec -tm a.cm -nodes 16 -receiver_cc_only -sender_cc",
            "-receiver_cc_only: expected no -sender_cc",
        ),
        (
            "htsim_uec -tm a.cm -nodes 16 -q 20",
            "within a queue of 20 packets, found 9 and 35: the program stops",
        ),
        ("htsim_uec -tm a.cm -nodes 16 -paths 100", "-paths: expected a power of two, found 100"),
        ("htsim_uec -tm a.cm -nodes 16 -failed 17", "-failed: expected at most 16, found 17"),
        ("htsim_uec -tm a.cm -nodes 16 -planes 2", "-planes: expected 1, found 2"),
        ("htsim_uec -tm a.cm -nodes 16 -load_balancing_algo bitmaps", "did you mean `bitmap`?"),
        ("htsim_ndp_entry_modern -tm a.cm -nodes 16 -routing_sc flowlet", "-flowlet_value: expected a gap"),
        ("htsim_ndp_entry_modern -tm a.cm -nodes 16 -routing_sc flowct", "did you mean `flowcut`?"),
    ] {
        let words: Vec<&str> = std::iter::once("from-htsim").chain(command.split(' ')).collect();
        let error = refused(folder.path(), &words);
        assert!(error.contains(expected), "{command}: {error}");
    }
}

/// Host 5's connection starts when all of host 0's has arrived at 9: a message of one byte carries the firing, whatever the number of threads.
#[test]
fn triggers_reach_other_hosts_by_messages() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = "Nodes 16\nConnections 2\nTriggers 1\n0->9 id 1 start 0 size 90000 recv_done_trigger 1\n5->1 id 2 trigger 1 size 30000\ntrigger id 1 oneshot\n";
    std::fs::write(at.join("a.cm"), text).unwrap();
    std::fs::write(at.join("s.toml"), "topology = { kind = \"fat-tree\", k = 4 }\nworkload = { kind = \"htsim-matrix\", file = \"a.cm\" }\n").unwrap();
    let flows = ["1", "3"].map(|threads| {
        printed(at, &["run", "s.toml", "--quiet", "--threads", threads, "--out", threads]);
        std::fs::read(at.join(threads).join("flows.parquet")).unwrap()
    });
    assert_eq!(flows[0], flows[1]);
    printed(at, &["fct", "1"]);
    let text = std::fs::read_to_string(at.join("1/fct.txt")).unwrap();
    let rows: Vec<Vec<u64>> =
        text.lines().map(|row| row.split(' ').map(|word| word.parse().unwrap()).collect()).collect();
    let row = |src: u64| rows.iter().find(|row| row[0] == src).unwrap();
    // Source, destination and size; starts and ends in nanoseconds.
    assert_eq!((rows.len(), row(9)[1], row(9)[4]), (3, 5, 1));
    assert!(row(9)[5] > row(0)[7] / 2 && row(5)[5] > row(9)[5], "{text}");
}

/// Two servers of two GPUs, as SimAI's generator writes them: NVSwitches 4 and 5, a leaf for each rail and a spine.
const SIMAI_TOPOLOGY: &str = "9 2 2 3 10 H100\n4 5 6 7 8 \n\
    0 4 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 4 2880Gbps 0.000025ms 0\n1 7 400Gbps 0.0005ms 0\n\
    2 5 2880Gbps 0.000025ms 0\n2 6 400Gbps 0.0005ms 0\n3 5 2880Gbps 0.000025ms 0\n3 7 400Gbps 0.0005ms 0\n\
    6 8 400Gbps 0.0005ms 0\n7 8 400Gbps 0.0005ms 0\n";

/// A step of two layers, of which one has weights to add up.
const SIMAI_WORKLOAD: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n2\n\
    embedding_layer -1 1000 ALLREDUCE 1048576 500 NONE 0 1 NONE 0 100\n\
    mlp -1 2000 ALLGATHER 524288 2000 REDUCESCATTER 524288 2000 ALLREDUCE 2097152 100\n";

/// Keys of SimAI's own configuration, some of them its own, and one that it does not know.
const SIMAI_CONF: &str = "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\n\nPACKET_PAYLOAD_SIZE 9000\n\nFLOW_FILE /etc/astra-sim/simulation/flow1.txt\n\
    TRACE_FILE /etc/astra-sim/simulation/trace1.txt\nSIMULATOR_STOP_TIME 40000000000000.00\n\nCC_MODE 1\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\n\
    CLAMP_TARGET_RATE 0\nRP_TIMER 900 \nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nMIN_RATE 100Mb/s\n\
    DCTCP_RATE_AI 1000Mb/s\n\nERROR_RATE_PER_LINK 0.0000\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\n\nHAS_WIN 1\nGLOBAL_T 0\n\
    VAR_WIN 1\nFAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 0\nRATE_BOUND 1\nACK_HIGH_PRIO 0\nLINK_DOWN 0 0 0\nENABLE_TRACE 1\n\
    KMAX_MAP 2 100000000000 1600 400000000000 3200\nKMIN_MAP 2 100000000000 400 400000000000 800\nPMAX_MAP 2 100000000000 0.2 400000000000 0.2\n\
    BUFFER_SIZE 32\nQLEN_MON_FILE /etc/astra-sim/q.txt\nBW_MON_FILE /etc/astra-sim/b.txt\nMON_START 0\nMON_END 20000\nQP_MON_INTERVAL 100\nWATERMARK 7\n";

const SIMAI_ARGS: [&str; 7] = ["from-simai", "-w", "w.txt", "-n", "topo", "-c", "SimAI.conf"];

fn simai(conf: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("topo", SIMAI_TOPOLOGY), ("w.txt", SIMAI_WORKLOAD), ("SimAI.conf", conf)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn the_files_of_simai_are_a_scenario_that_runs_and_has_its_table() {
    let folder = simai(SIMAI_CONF);
    let (scenario, remarks) = printed(folder.path(), &SIMAI_ARGS);
    for line in [
        "topology = { kind = \"simai-topology\", path = \"topo\" }",
        "servers = { nics = 2 }",
        "workload = { kind = \"simai\", file = \"w.txt\" }",
        "transport.mtu = \"9KB\"",
        "routing.preset = \"ecmp\"",
        "fabric.flow_control = { kind = \"pfc-shared\", buffer = \"32MiB\", alpha = 0.125, reserve = \"4KiB\" }",
        "fabric.ecn = { kmin = \"800KB\", kmax = \"3.2MB\", pmax = 0.2 }",
        // NVSwitches mark nothing.
        "fabric.ecn_by_rate = [{ rate = \"2.88Tbps\", kmin = \"1024GiB\", kmax = \"1024GiB\", pmax = 0.0 }]",
    ] {
        assert!(scenario.contains(line), "{line} is not in\n{scenario}");
    }
    for remark in [
        "not carried over: FLOW_FILE: SimAI does not use it either",
        "not carried over: SIMULATOR_STOP_TIME: SimAI does not use it either",
        "not carried over: WATERMARK 7: it has no counterpart",
        "BW_MON_FILE, MON_START, MON_END, QP_MON_INTERVAL: without effect on what is simulated",
    ] {
        assert!(remarks.contains(remark), "{remark} is not in\n{remarks}");
    }
    std::fs::write(folder.path().join("s.toml"), scenario).unwrap();
    let table = |threads: &str| {
        let args = ["run", "s.toml", "--quiet", "--force", "--threads", threads, "--simai-csv", "layers.csv"];
        printed(folder.path(), &args);
        std::fs::read_to_string(folder.path().join("layers.csv")).unwrap()
    };
    let text = table("1");
    assert_eq!(table("2"), text);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[0][0] == "File name" && lines[2][0] == "layer_name" && lines[5][0] == "SUM", "{text}");
    let number = |row: usize, column: usize| lines[row][column].parse::<f64>().unwrap();
    // Forward, weights, input: computation in microseconds.
    assert_eq!((number(4, 2), number(4, 3), number(4, 4)), (2.0, 2.0, 2.0));
    // Forward and back are waited for; the weights' all-reduce is not the first layer's.
    assert!(number(3, 5) > 0.0 && number(4, 5) > 0.0 && number(4, 7) > 0.0, "{text}");
    assert!(number(4, 11) > 0.0 && number(4, 6) == 0.0, "{text}");
    // busbw of an all-reduce of two is algbw.
    assert_eq!(number(3, 9), number(3, 10));
    let (end, total) = (number(3, 17), lines[6][5].parse::<f64>().unwrap());
    assert_eq!(end, total);
}

#[test]
fn what_of_simai_cannot_be_converted_is_refused_by_name() {
    for (conf, expected) in [
        (SIMAI_CONF.replace("CC_MODE 1", "CC_MODE 10"), "CC_MODE: HPCC-PINT has no counterpart here"),
        (
            SIMAI_CONF
                .replace("KMAX_MAP 2 100000000000 1600 400000000000 3200", "KMAX_MAP 1 100000000000 1600"),
            "KMAX_MAP: expected a value for 400Gbps",
        ),
        (SIMAI_CONF.replace("BUFFER_SIZE 32", "BUFFERSIZE 32"), "did you mean `BUFFER_SIZE`?"),
    ] {
        let folder = simai(&conf);
        let message = refused(folder.path(), &SIMAI_ARGS);
        assert!(message.contains(expected), "{message}");
    }
    let folder = simai(SIMAI_CONF);
    std::fs::write(folder.path().join("w.txt"), SIMAI_WORKLOAD.replace("ALLGATHER", "ALLGATHERS")).unwrap();
    let message = refused(folder.path(), &SIMAI_ARGS);
    assert!(message.contains("w.txt:4: expected a collective operation, found \"ALLGATHERS\""), "{message}");
}

#[test]
fn the_table_of_simai_is_that_of_its_workload_and_lies_beside_the_outcome() {
    let folder = simai(SIMAI_CONF);
    let (of_simai, _) = printed(folder.path(), &SIMAI_ARGS);
    let write = |text: &str| std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let run = |table: &str| {
        refused(folder.path(), &["run", "s.toml", "--out", "out/a", "--force", "--simai-csv", table])
    };
    let crossbar = "topology = { kind = \"crossbar\", hosts = 4 }\n";
    write(&format!("{crossbar}workload = {{ kind = \"permutation\" }}\n"));
    let message = run("l.csv");
    let expected = "--simai-csv l.csv: expected a workload of kind \"simai\", found \"permutation\"";
    assert!(message.contains(expected), "{message}");

    let job = "[[jobs]]\nname = \"a\"\nworkload = { kind = \"simai\", file = \"w.txt\" }\n";
    write(&format!("{crossbar}{job}"));
    let message = run("l.csv");
    let expected = "--simai-csv l.csv: expected [workload] of kind \"simai\" and no [[jobs]], whose times are in jobs.parquet";
    assert!(message.contains(expected), "{message}");
    let message = refused(folder.path(), &["run", "s.toml", "--astra-sim"]);
    assert!(
        message
            .contains("--astra-sim: expected [workload] of kind \"astra-sim\" or \"simai\" and no [[jobs]]"),
        "{message}"
    );

    write(&of_simai);
    let message = run("none/l.csv");
    assert!(message.contains("expected the name of a file in a folder that exists"), "{message}");
    // The one would be where the outcome's folder is to be made, the other in it.
    let message = run("out");
    assert!(message.contains("--simai-csv out: expected a file outside the outcome's folder"), "{message}");
    std::fs::create_dir_all(folder.path().join("out/a")).unwrap();
    let message = run("out/a/l.csv");
    assert!(message.contains("--simai-csv out/a/l.csv: expected a file outside the outcome's"), "{message}");
    printed(folder.path(), &["run", "s.toml", "--out", "out/a", "--quiet", "--simai-csv", "out/l.csv"]);
    assert!(folder.path().join("out/l.csv").is_file() && folder.path().join("out/a/flows.parquet").is_file());
}
