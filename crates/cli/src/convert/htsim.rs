//! The command line of a main program of htsim as a scenario: of csg-htsim (`htsim_ndp`, `htsim_roce`, `htsim_eqds`, `htsim_swift`, `htsim_tcp`), of uet-htsim
//! (`htsim_uec`), and of the Flowcut artefact (`htsim_ndp_entry_modern`).
//!
//! What the programs do whatever the command says (headers, thresholds, who paces what) becomes a field, too; what is not given has the program's default.

use std::path::Path;

use netloom_scenario::Problem;
use netloom_units::names::{shorten, suggest};

use super::htsim_flags::{Flags, Program};
use super::{Draft, find_file, quoted, table};

/// Headers of NDP, RoCE, EQDS and UEC, and the size of what they trim to.
const HEADER: u64 = 64;

/// Reads a command: the name of a program and its flags.
///
/// # Errors
/// What the command says that makes no sense or has no counterpart.
pub(crate) fn convert(command: &[String]) -> Result<Draft, Problem> {
    let (name, words) = command.split_first().ok_or_else(|| Problem::new("", "expected a command of htsim, found nothing"))?;
    let program = Program::named(name)?;
    let flags = Flags::read(program, words)?;
    let mut converter = Converter { program, flags, draft: Draft::default() };
    match program {
        Program::Tcp => converter.tcp()?,
        Program::Flowcut => converter.flowcut()?,
        _ => converter.usual()?,
    }
    let Converter { flags, mut draft, .. } = converter;
    for rest in flags.rest() {
        draft.remark(format!("{rest}: it has no counterpart"));
    }
    if !flags.outputs.is_empty() {
        draft.remark(format!("{}: an outcome has files of its own", flags.outputs.join(", ")));
    }
    Ok(draft)
}

/// A packet of the program.
#[derive(Clone, Copy)]
struct Packet {
    /// What `-mtu` says.
    mtu: u64,
    payload: u64,
    header: u64,
}

impl Packet {
    fn wire(self) -> u64 {
        self.payload + self.header
    }
}

struct Converter {
    program: Program,
    flags: Flags,
    draft: Draft,
}

impl Converter {
    /// All but TCP and the artefact.
    fn usual(&mut self) -> Result<(), Problem> {
        let (nodes, mtu) = match self.program {
            Program::Swift => (128, 4000),
            Program::Eqds | Program::Uec => (128, 4150),
            _ => (432, 9000),
        };
        let packet = self.packet(mtu)?;
        let radix = self.network(nodes)?;
        self.matrix("ps")?;
        self.balancer(radix)?;
        match self.program {
            Program::Ndp => self.ndp(packet)?,
            Program::Roce => self.roce(packet)?,
            Program::Eqds => self.eqds(packet)?,
            Program::Swift => self.swift(packet)?,
            _ => self.uec(packet)?,
        }
        let end = self.flags.number::<f64>("-end")?.unwrap_or(match self.program {
            Program::Swift => 1200.0,
            _ => 1000.0,
        });
        self.draft.text("measure.until", format!("{end}us"));
        let seed = self.flags.number("-seed")?.unwrap_or(13u64);
        self.draft.set("seed", seed);
        if self.flags.take("-host_queue_type").is_some_and(|words| words[0] == "prio") {
            self.draft.text("transport.nic_queue", "fifo");
        }
        // A program with a matrix sends what that says.
        self.flags.take("-conns");
        Ok(())
    }

    fn packet(&mut self, default: u64) -> Result<Packet, Problem> {
        let mtu = self.flags.number("-mtu")?.unwrap_or(default);
        // Some count headers in, Swift's packets have none.
        let (inside, header) = match self.program {
            Program::Eqds | Program::Uec => (HEADER, HEADER),
            Program::Swift => (0, 0),
            _ => (0, HEADER),
        };
        match mtu.checked_sub(inside) {
            Some(payload) if payload > 0 => Ok(Packet { mtu, payload, header }),
            _ => Err(Problem::new("-mtu", format!("expected more than {inside} bytes, found {mtu}"))),
        }
    }

    /// The tree: a file's, or one without oversubscription. How many paths there are between two pods, where that is known.
    fn network(&mut self, default: u64) -> Result<Option<u64>, Problem> {
        let nodes = self.flags.number("-nodes")?.unwrap_or(default);
        let tiers: u64 = self.flags.number("-tiers")?.unwrap_or(3);
        // The artefact counts latencies in nanoseconds.
        let unit = if self.program == Program::Flowcut { "ns" } else { "us" };
        let hop: f64 = self.flags.number("-hop_latency")?.unwrap_or(if unit == "ns" { 1000.0 } else { 1.0 });
        let switch: f64 = self.flags.number("-switch_latency")?.unwrap_or(0.0);
        let rate: f64 = self.flags.number("-linkspeed")?.unwrap_or(100_000.0);
        if let Some(file) = self.file("-topo")? {
            self.draft.set("topology", table(&[("kind", quoted(&"htsim-topo")), ("path", file)]));
            return Ok(None);
        }
        let mut fields = vec![];
        let paths = match tiers {
            3 => {
                let k = (2u64..).step_by(2).find(|k| k.pow(3) / 4 >= nodes).unwrap_or(2);
                if k.pow(3) / 4 != nodes {
                    return Err(no_tree("k³/4 hosts: 16, 54, 128, 250, 432, 686, 1024, …", nodes));
                }
                fields.extend([("kind", quoted(&"fat-tree")), ("k", k.to_string())]);
                k * k / 4
            }
            2 => {
                let k = (2u64..).step_by(2).find(|k| k.pow(2) / 2 >= nodes).unwrap_or(2);
                if k.pow(2) / 2 != nodes {
                    return Err(no_tree("k²/2 hosts with two tiers: 8, 18, 32, 50, 72, 98, 128, …", nodes));
                }
                fields.extend([
                    ("kind", quoted(&"leaf-spine")),
                    ("leaves", k.to_string()),
                    ("spines", (k / 2).to_string()),
                    ("hosts_per_leaf", (k / 2).to_string()),
                ]);
                k / 2
            }
            _ => return Err(Problem::new("-tiers", format!("expected 2 or 3, found {tiers}"))),
        };
        fields.extend([("rate", format!("\"{rate}Mbps\"")), ("latency", format!("\"{hop}{unit}\""))]);
        self.draft.set("topology", table(&fields));
        if switch > 0.0 {
            self.draft.text("fabric.switch_latency", format!("{switch}{unit}"));
        }
        Ok(Some(paths))
    }

    /// A file that a flag names, as TOML writes it.
    fn file(&self, flag: &str) -> Result<Option<String>, Problem> {
        let found = self.flags.take(flag).map(|words| find_file(&words[0], Path::new("")));
        let found = found.transpose().map_err(|problem| Problem::new(flag, problem.message))?;
        Ok(found.map(|file| quoted(&file.display())))
    }

    /// The connection matrix.
    fn matrix(&mut self, unit: &str) -> Result<(), Problem> {
        let file = self.file("-tm")?;
        let absent = || Problem::new("-tm", "expected a connection matrix in a file, found none: standard input cannot be read again");
        let mut fields = vec![("kind", quoted(&"htsim-matrix")), ("file", file.ok_or_else(absent)?)];
        if unit != "ps" {
            fields.push(("start_unit", quoted(&unit)));
        }
        self.draft.set("workload", table(&fields));
        Ok(())
    }

    /// Who chooses paths: `-strat`.
    fn balancer(&mut self, paths: Option<u64>) -> Result<(), Problem> {
        const NAMES: [&str; 12] = [
            "perm",
            "rand",
            "pull",
            "ecmp",
            "single",
            "ecmp_host",
            "ecmp_rr",
            "ecmp_ar",
            "ecmp_host_ar",
            "ecmp_host_ecn",
            "rr_ecmp",
            "reactive_ecn",
        ];
        // Swift draws a path for every flow.
        let default = match self.program {
            Program::Swift => "single",
            Program::Eqds | Program::Uec => "ecmp_host",
            _ => "",
        };
        let strategy = self.flags.word("-strat", default);
        let labels = self.flags.number::<u64>("-paths")?;
        let entropies = || labels.ok_or_else(|| Problem::new("-paths", format!("expected a number of paths beside -strat {strategy}, found none")));
        let list = |count: u64, penalty: &str, selector: Option<&str>| {
            let granularity = [("paths", count.to_string()), ("penalty", penalty.to_owned())];
            let mut fields = vec![("preset", quoted(&"path-list")), ("granularity", table(&granularity))];
            fields.extend(selector.map(|selector| ("selector", quoted(&selector))));
            table(&fields)
        };
        // No path is ever left out with such a penalty.
        const NEVER: &str = "1e9";
        let of_tree = paths.unwrap_or(64);
        let missing = match strategy.as_str() {
            "perm" => {
                self.draft.set("routing", list(of_tree, NEVER, None));
                None
            }
            "pull" => {
                self.draft.set("routing", list(of_tree, "1.25", None));
                self.draft.remark("-strat pull: paths are left out by their share of trims, and for how long it says, not by the first 100 answers and 30%");
                None
            }
            "ecmp" | "ecmp_host" => {
                let count = if self.program == Program::Eqds || self.program == Program::Uec {
                    labels.unwrap_or(64)
                } else {
                    entropies()?
                };
                self.draft.set("routing", list(count, NEVER, Some("random")));
                None
            }
            "rand" => {
                self.draft.text("routing.preset", "spray");
                None
            }
            "single" if self.program != Program::Ndp => {
                self.draft.text("routing.preset", "ecmp");
                None
            }
            "single" => Some("htsim_ndp stops on an assertion with it"),
            "ecmp_rr" => {
                self.draft.text("routing.preset", "spray-round-robin");
                None
            }
            "ecmp_ar" => {
                self.adaptive()?;
                None
            }
            "ecmp_host_ar" => Some("switches that leave the hash's port with a probability of 1/2 have no counterpart"),
            "ecmp_host_ecn" | "rr_ecmp" => Some("hosts that leave out labels whose packets were marked have no counterpart"),
            "reactive_ecn" => Some("a label per flow that a single mark or trim changes has no counterpart"),
            "" => Some("the program stops without one"),
            _ => {
                let message = format!("expected a strategy of the program, found \"{}\"", shorten(&strategy));
                return Err(Problem::new("-strat", message).help(suggest(&strategy, NAMES)));
            }
        };
        match missing {
            None => Ok(()),
            Some(why) => {
                let message = format!("expected perm, rand, pull, ecmp, ecmp_host, ecmp_rr or ecmp_ar, found \"{strategy}\": {why}");
                Err(Problem::new("-strat", message))
            }
        }
    }

    /// `ecmp_ar`: by load, per packet or for a while.
    fn adaptive(&mut self) -> Result<(), Problem> {
        let gap = self.flags.number::<f64>("-ar_sticky_delta")?.unwrap_or(10.0);
        let per_packet = self.flags.word("-ar_granularity", if self.program == Program::Roce { "flow" } else { "packet" }) == "packet";
        let method = self.flags.word("-ar_method", "queue");
        if method != "queue" {
            self.draft.remark(format!("-ar_method {method}: ports are compared by their queues"));
        }
        if per_packet {
            self.draft.text("routing.preset", "adaptive");
        } else {
            self.draft.text("routing.preset", "flowlet-adaptive");
            self.draft.text("routing.granularity.gap", format!("{gap}us"));
            self.draft.remark("-ar_granularity flow: a flowlet takes the least loaded port, not another one with a probability of 1/2 if that is better");
        }
        Ok(())
    }

    /// A queue of `-q` packets by `-mtu`, the one that is being sent counted in: what may wait beside it.
    fn waiting(&mut self, packet: Packet, default: u64) -> Result<(u64, u64), Problem> {
        let queue = self.flags.number::<u64>("-q")?.unwrap_or(default);
        let bytes = queue.saturating_mul(packet.mtu);
        match (bytes / packet.wire()).checked_sub(1) {
            Some(packets) if packets > 0 => Ok((bytes, packets * packet.wire())),
            _ => Err(Problem::new("-q", format!("expected room for two packets of {} bytes, found {bytes} bytes", packet.wire()))),
        }
    }

    /// Queues that trim, headers before data.
    fn trimming(&mut self, packet: Packet, default: u64) -> Result<(), Problem> {
        let kind = self.flags.word("-queue_type", "composite");
        if kind != "composite" {
            let message = format!("expected composite (queues that trim), found \"{}\"", shorten(&kind));
            return Err(Problem::new("-queue_type", message));
        }
        let (bytes, waiting) = self.waiting(packet, default)?;
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        let fields = [
            ("kind", quoted(&"trimming")),
            ("control_weight", "100000".to_owned()),
            ("header_size", quoted(&format!("{HEADER}B"))),
            ("control_buffer", quoted(&format!("{}B", 2 * bytes))),
            ("return_to_sender", "false".to_owned()),
        ];
        self.draft.set("fabric.queue", table(&fields));
        Ok(())
    }

    fn sizes(&mut self, preset: &str, packet: Packet, ack: u64) {
        self.draft.text("transport.preset", preset);
        self.draft.text("transport.mtu", format!("{}B", packet.payload));
        self.draft.text("transport.header", format!("{}B", packet.header));
        self.draft.text("transport.ack_size", format!("{ack}B"));
    }

    fn ndp(&mut self, packet: Packet) -> Result<(), Problem> {
        self.trimming(packet, 15)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(15);
        self.draft.set("transport.congestion", table(&[("kind", quoted(&"pulls")), ("initial_window", window.to_string())]));
        self.draft.remark("sizes of the matrix: htsim_ndp rounds them up to whole packets");
        if self.flags.has("-oversubscribed_cc") {
            self.draft.remark("-oversubscribed_cc: receivers ask for a packet per packet, whatever is trimmed");
        }
        // Only for strategies and queues that have no counterpart.
        for unused in ["-ecn_thresh", "-pfc_thresholds", "-ar_sticky_delta", "-ar_method", "-ar_granularity"] {
            self.flags.take(unused);
        }
        Ok(())
    }

    fn eqds(&mut self, packet: Packet) -> Result<(), Problem> {
        self.trimming(packet, 35)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(50);
        self.draft.set("transport.congestion", table(&[("kind", quoted(&"pulls")), ("initial_window", window.to_string())]));
        self.draft.remark("EQDS: receivers ask for packets as NDP's do; there they give credit by bytes, and one ACK answers up to 16,384 bytes");
        if self.flags.has("-oversubscribed_cc") {
            self.draft.remark("-oversubscribed_cc: receivers ask for a packet per packet, whatever is trimmed");
        }
        Ok(())
    }

    fn roce(&mut self, packet: Packet) -> Result<(), Problem> {
        let kind = self.flags.word("-queue_type", "lossless_input");
        if kind != "lossless_input" {
            let message = format!("expected lossless_input (PFC at the inputs), found \"{}\"", shorten(&kind));
            return Err(Problem::new("-queue_type", message));
        }
        let thresholds = self.flags.take("-pfc_thresholds");
        let threshold = |at: usize, default: u64| match &thresholds {
            None => Ok(default),
            Some(words) => words[at].parse().map_err(|_| {
                Problem::new("-pfc_thresholds", format!("expected two numbers of packets, found \"{}\"", shorten(&words[at])))
            }),
        };
        let (low, high) = (threshold(0, 12)?, threshold(1, 15)?);
        if low >= high {
            return Err(Problem::new("-pfc_thresholds", format!("expected the lower one first, found {low} and {high}")));
        }
        // What may come after a pause has been asked for; there inputs hold whatever does.
        const HEADROOM: u64 = 1 << 20;
        let fields = [
            ("kind", quoted(&"pfc")),
            ("buffer", quoted(&format!("{}B", high * packet.mtu + HEADROOM))),
            ("headroom", quoted(&format!("{HEADROOM}B"))),
            ("resume", quoted(&format!("{}B", (high - low) * packet.mtu))),
        ];
        self.draft.set("fabric.flow_control", table(&fields));
        self.sizes("roce", packet, HEADER);
        self.draft.text("transport.congestion", "none");
        if self.flags.take("-q").is_some() {
            self.draft.remark("-q: with PFC at the inputs outputs have no limit");
        }
        Ok(())
    }

    fn swift(&mut self, packet: Packet) -> Result<(), Problem> {
        let (_, waiting) = self.waiting(packet, 8)?;
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        self.draft.remark("queues drop their tail; there a packet in ten of those that meet the last three places is dropped, too");
        self.sizes("tcp", packet, 40);
        self.draft.text("transport.rto_min", "100us");
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(15);
        self.draft.set("transport.congestion", table(&[("kind", quoted(&"swift")), ("initial_window", window.to_string())]));
        if let Some(subflows) = self.flags.number::<u64>("-subflows")? {
            self.draft.set("transport.subflows", subflows);
        }
        if let Some(packets) = self.flags.number::<u64>("-flowsize")? {
            let bytes = (packets + 1) * packet.payload;
            self.draft.remark(format!("-flowsize {packets}: sizes are those of the matrix; htsim_swift sends {bytes} bytes for each"));
        }
        let plb = self.flags.word("-plb", "off");
        match plb.as_str() {
            "off" => {}
            "on" => self.draft.remark("-plb on: a flow keeps its path"),
            _ => return Err(Problem::new("-plb", format!("expected on or off, found \"{}\"", shorten(&plb)))),
        }
        Ok(())
    }

    fn tcp(&mut self) -> Result<(), Problem> {
        let nodes = self.flags.number::<u64>("-nodes")?.unwrap_or(16);
        let k = (2u64..).step_by(2).find(|k| k.pow(3) / 4 >= nodes).unwrap_or(2);
        if k.pow(3) / 4 != nodes {
            return Err(no_tree("k³/4 hosts: 16, 54, 128, 250, 432, 686, 1024, …", nodes));
        }
        let tree = [("kind", quoted(&"fat-tree")), ("k", k.to_string()), ("rate", quoted(&"100Gbps")), ("latency", quoted(&"1us"))];
        self.draft.set("topology", table(&tree));
        // Endless flows of its own permutation, for four seconds.
        self.draft.set("workload", table(&[("kind", quoted(&"permutation")), ("size", quoted(&"1TB"))]));
        self.draft.text("measure.until", "4s");
        self.draft.text("routing.preset", "ecmp");
        let packet = Packet { mtu: 1500, payload: 1500, header: 0 };
        self.draft.text("fabric.buffer", format!("{}B", 7 * packet.wire()));
        self.draft.remark("queues drop their tail; there a packet in ten of those that meet the last three places is dropped, too");
        self.sizes("tcp", packet, 40);
        self.draft.set("transport.handshake", true);
        self.draft.text("transport.rto_min", "250ms");
        self.draft.text("transport.rto_initial", "3s");
        self.draft.remark("the way of ACKs: they go by the network; there they arrive at once");
        let subflows = self.flags.number::<u64>("-sub")?.unwrap_or(1);
        if subflows > 1 {
            self.draft.set("transport.subflows", subflows);
        }
        let couplings = ["COUPLED_INC", "FULLY_COUPLED", "COUPLED_TCP", "COUPLED_SCALABLE_TCP", "COUPLED_EPSILON"];
        let coupling = couplings.into_iter().find(|flag| self.flags.has(flag));
        self.flags.take("UNCOUPLED");
        if let Some(coupling) = coupling
            && subflows > 1
        {
            self.draft.set("transport.congestion.coupled", true);
            if coupling != "COUPLED_INC" {
                self.draft.remark(format!("{coupling}: subflows are coupled by LIA (RFC 6356)"));
            }
        }
        self.flags.take("-conns");
        Ok(())
    }

    fn uec(&mut self, packet: Packet) -> Result<(), Problem> {
        if self.flags.has("-disable_trim") {
            return Err(Problem::new("-disable_trim", "a fabric that marks and drops has no counterpart of UEC's loss recovery here"));
        }
        let receiver_only = self.flags.has("-receiver_cc_only");
        let algorithm = self.flags.word("-sender_cc_algo", "nscc");
        if !receiver_only && algorithm != "constant" {
            let message = format!(
                "expected -receiver_cc_only, or -sender_cc_algo constant: {} has no counterpart here",
                if algorithm == "dctcp" { "a DCTCP that is told of trimmed packets" } else { "NSCC" }
            );
            return Err(Problem::new("-sender_cc_algo", message));
        }
        self.trimming(packet, 35)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.filter(|&window| window > 0);
        let congestion = match (receiver_only, window) {
            (true, Some(window)) => table(&[("kind", quoted(&"pulls")), ("initial_window", window.to_string())]),
            (true, None) => table(&[("kind", quoted(&"pulls")), ("initial_bdp", "1.5".to_owned())]),
            (false, Some(window)) => table(&[("kind", quoted(&"fixed-window")), ("bytes", quoted(&format!("{}B", window * packet.payload)))]),
            (false, None) => table(&[("kind", quoted(&"fixed-window")), ("bdp", "1.5".to_owned())]),
        };
        self.draft.set("transport.congestion", congestion);
        let balancing = self.flags.word("-load_balancing_algo", "mixed");
        if balancing != "oblivious" {
            self.draft.remark(format!("-load_balancing_algo {balancing}: labels are drawn at random, as with oblivious"));
        }
        for unused in ["-sender_cc_only", "-sender_cc", "-receiver_cc"] {
            self.flags.take(unused);
        }
        Ok(())
    }

    /// The Flowcut artefact's hosts have a first window of 1.2 products whatever `-cwnd` says, and hash over labels whatever `-strat` says.
    fn flowcut(&mut self) -> Result<(), Problem> {
        self.network(128)?;
        self.matrix("us")?;
        self.draft.text("transport.preset", "flowcut-artefact-ft");
        let mtu = self.flags.number::<u64>("-mtu")?.unwrap_or(2048);
        self.draft.text("transport.mtu", format!("{mtu}B"));
        let scheme = self.flags.word("-routing_sc", "ecmp");
        let gap = self.flags.number::<u64>("-flowlet_value")?;
        let ratio = self.flags.number::<f64>("-rtt_ratio")?.unwrap_or(2.0);
        let alpha = self.flags.number::<f64>("-alpha_flowcut")?.unwrap_or(0.12);
        match scheme.as_str() {
            "ecmp" => self.draft.text("routing.preset", "ecmp"),
            "random" => self.draft.text("routing.preset", "spray-nic"),
            "flowlet" => {
                let gap = gap.ok_or_else(|| Problem::new("-flowlet_value", "expected a gap in ps beside -routing_sc flowlet, found none"))?;
                self.draft.text("routing.preset", "letflow");
                self.draft.text("routing.placement", "nic");
                self.draft.text("routing.granularity.gap", format!("{gap}ps"));
            }
            "flowcut" => {
                self.draft.text("routing.preset", "flowcut-artefact-ft");
                self.draft.set("routing.granularity.threshold", format!("{ratio:?}"));
                self.draft.set("routing.granularity.alpha", format!("{alpha:?}"));
            }
            _ => {
                let message = format!("expected ecmp, random, flowlet or flowcut, found \"{}\"", shorten(&scheme));
                let help = suggest(&scheme, ["ecmp", "random", "flowlet", "flowcut"]);
                return Err(Problem::new("-routing_sc", message).help(help));
            }
        }
        match self.flags.number::<u64>("-flowcut_mode")? {
            None | Some(0) => {}
            Some(mode) => {
                let message = format!("expected 0 (at the NIC), found {mode}: use `routing.preset = \"flowcut-ingress\"` (1) or \"flowcut\" (2)");
                return Err(Problem::new("-flowcut_mode", message));
            }
        }
        if let Some(entropies) = self.flags.number::<u64>("-number_entropies")? {
            self.draft.set("routing.entropy_values", entropies);
        }
        // Bytes; the later one holds.
        let queue = self.flags.number::<u64>("-q")?;
        let queue = self.flags.number::<u64>("-max_queue_size")?.filter(|&bytes| bytes > 0).or(queue);
        if let Some(queue) = queue {
            self.draft.remark(format!("queues of {queue} bytes: they have no limit; this transport is for queues in which nothing is lost"));
        }
        if let Some(every) = self.flags.number::<u64>("-failure_link")?.filter(|&every| every > 0) {
            self.draft.remark(format!("-failure_link {every}: name the slow links in `faults`, as {{ kind = \"degrade\", share = 0.01, fraction = 0.1 }}"));
        }
        if let Some(seed) = self.flags.number::<u64>("-seed")? {
            self.draft.set("seed", seed);
        }
        for unused in ["-strat", "-cwnd", "-conns", "-sub", "-topology", "-interdc_delay", "-os_border", "-k", "-ratio_os_stage_1", "-kmin", "-kmax", "-flowsize"] {
            self.flags.take(unused);
        }
        Ok(())
    }
}

fn no_tree(expected: &str, nodes: u64) -> Problem {
    Problem::new("-nodes", format!("expected as many hosts as a tree without oversubscription has, {expected}, found {nodes}"))
}
