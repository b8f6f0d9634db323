//! The configuration of an HPCC, ConWeave or SimAI ns-3 simulation as a scenario.
//!
//! ConWeave's simulator and SimAI's grew out of HPCC's; SimAI's names its topology and its workload on the command line. A configuration is ConWeave's if it has one of the keys that only ConWeave's reads. What both do whatever the
//! file says (timeouts, sizes of ACKs, thresholds of PFC) becomes a field, too.

mod config;
mod congestion;
mod switches;

use std::path::Path;

use netloom_scenario::{Problem, Source};
use netloom_topology::{BuildContext, Network, Ns3, SimAi, Topology};
use netloom_units::Bytes;

use self::config::{Config, KEYS_OF_CONTROLS};
use super::{Draft, find_file, quoted, table};

/// Keys that only ConWeave's simulator reads.
const CONWEAVES: [&str; 6] = [
    "LB_MODE",
    "ENABLE_PFC",
    "ENABLE_IRN",
    "FLOWGEN_START_TIME",
    "FLOWGEN_STOP_TIME",
    "CONWEAVE_TX_EXPIRY_TIME",
];

/// Reads a configuration file.
///
/// # Errors
/// What cannot be read or makes no sense, with its line.
pub(crate) fn convert(path: &Path) -> Result<Draft, Problem> {
    let config = Config::read(Source::read(path)?)?;
    let is_conweave = CONWEAVES.iter().any(|key| config.has(key));
    let mut draft = Draft::default();
    let network = files(&config, &mut draft)?;
    convert_with(config, draft, network, is_conweave)
}

/// Reads a configuration of SimAI, beside its topology and its workload.
///
/// # Errors
/// What cannot be read or makes no sense, with its line.
pub(crate) fn convert_simai(path: &Path, topology: &Path, workload: &Path) -> Result<Draft, Problem> {
    let config = Config::read(Source::read(path)?)?;
    let mut draft = Draft::default();
    let kind = Topology::SimAi(SimAi::new(topology));
    let network = kind.build(&BuildContext { seed: 1, base_dir: Path::new("") });
    let network = network.map_err(|error| Problem::new("", error.to_string()))?;
    let path = [("kind", quoted(&"simai-topology")), ("path", quoted(&topology.display()))];
    draft.set("topology", table(&path));
    if network.links_per_host() > 1 {
        draft.set("servers", table(&[("nics", network.links_per_host().to_string())]));
    }
    draft.set("workload", table(&[("kind", quoted(&"simai")), ("file", quoted(&workload.display()))]));
    for key in ["FLOW_FILE", "SIMULATOR_STOP_TIME"] {
        if config.take(key).is_some() {
            draft.remark(format!("{key}: SimAI does not use it either"));
        }
    }
    if let Some(entry) = config.take("LINK_DOWN")
        && entry.words.first().is_some_and(|after| after.parse() != Ok(0.0))
    {
        let message = "expected `LINK_DOWN 0 0 0` for none: a GPU has several ports here, whose links `faults` of the scenario can cut";
        return Err(entry.wrong(message));
    }
    convert_with(config, draft, network, false)
}

/// What is not in files of their own.
fn convert_with(config: Config, draft: Draft, network: Network, is_conweave: bool) -> Result<Draft, Problem> {
    let outputs = config.outputs();
    let payload = config.word("PACKET_PAYLOAD_SIZE", "a number of bytes")?.unwrap_or(1000);
    if payload == 0 {
        return Err(Problem::new("PACKET_PAYLOAD_SIZE", "expected at least 1 byte, found 0"));
    }
    let marks = config.flag("ENABLE_QCN")?.unwrap_or(true);
    let mut converter = Converter { config, draft, network, payload: Bytes(payload), is_conweave, marks };
    converter.transport()?;
    converter.balancer()?;
    converter.switches()?;
    converter.faults()?;
    converter.run()?;
    let Converter { config, mut draft, .. } = converter;
    for rest in config.rest() {
        draft.remark(format!("{rest}: it has no counterpart"));
    }
    if !outputs.is_empty() {
        let files = outputs.join(", ");
        draft.remark(format!(
            "{files}: without effect on what is simulated; `netloom fct DIR` writes an outcome's fct.txt"
        ));
    }
    Ok(draft)
}

/// The network and the flows.
fn files(config: &Config, draft: &mut Draft) -> Result<Network, Problem> {
    let folder = config.source.folder();
    let find = |key: &str| {
        let absent = || {
            Problem::new(key, format!("expected a line `{key} FILE` in {}, found none", config.source.name()))
        };
        let entry = config.take(key).ok_or_else(absent)?;
        let name: String = entry.value("the name of a file")?;
        find_file(&name, folder).map_err(|problem| entry.wrong(problem.message))
    };
    let topology = find("TOPOLOGY_FILE")?;
    // Hosts may have several links, which only the file says.
    let build = |nics| {
        let topology = Topology::Ns3(Ns3 { nics, ..Ns3::new(&topology) });
        topology.build(&BuildContext { seed: 1, base_dir: Path::new("") })
    };
    const MOST_NICS: u32 = 8;
    let network = match build(1) {
        Ok(network) => Ok((1, network)),
        Err(error) => (2..=MOST_NICS).find_map(|nics| Some((nics, build(nics).ok()?))).ok_or(error),
    };
    let (nics, network) = network.map_err(|error| Problem::new("", error.to_string()))?;
    let mut fields = vec![("kind", quoted(&"ns3-topology")), ("path", quoted(&topology.display()))];
    if nics > 1 {
        fields.push(("nics", nics.to_string()));
        draft.set("servers", table(&[("nics", nics.to_string()), ("nic_selection", quoted(&"hash"))]));
    }
    draft.set("topology", table(&fields));
    let flows = find("FLOW_FILE")?;
    draft.set("workload", table(&[("kind", quoted(&"ns3-flows")), ("file", quoted(&flows.display()))]));
    Ok(network)
}

/// What is read, and what is made of it.
struct Converter {
    config: Config,
    draft: Draft,
    network: Network,
    payload: Bytes,
    is_conweave: bool,
    /// Whether switches mark packets.
    marks: bool,
}

impl Converter {
    /// Sizes on the wire, reliability, congestion control.
    fn transport(&mut self) -> Result<(), Problem> {
        let config = &self.config;
        let cc_mode = config.take("CC_MODE");
        let mode: u32 = cc_mode.as_ref().map_or(Ok(1), |entry| entry.value("a number"))?;
        let irn = config.flag("ENABLE_IRN")?.unwrap_or(false);
        let window = config.flag("HAS_WIN")?.unwrap_or(true);
        let global = config.flag("GLOBAL_T")?.unwrap_or(true);
        let var_window = config.flag("VAR_WIN")?.unwrap_or(false);
        if irn && mode != 1 {
            self.draft.remark(format!(
                "CC_MODE {mode} with ENABLE_IRN 1: what becomes of a loss there has not been compared"
            ));
        }
        let preset = match (irn, self.is_conweave) {
            (true, _) => "irn",
            // NACKs every 4 us, which count as congestion, and a timeout of 4 ms.
            (false, true) => "roce-conweave",
            (false, false) => "roce",
        };
        self.draft.text("transport.preset", preset);
        if self.is_conweave && !irn && (mode != 1 || !self.marks) {
            self.draft.set("transport.reliability.nack_congestion", false);
        }
        if !self.is_conweave {
            self.draft.text("transport.reliability.nack_interval", "500us");
        }
        self.draft.text("transport.mtu", self.payload);
        // IPv4, UDP and the sequence's header; TIMELY's packets carry when they left.
        self.draft.text("transport.header", Bytes(if mode == 7 { 56 } else { 48 }));
        self.draft.text("transport.ack_size", "60B");
        match config.word("L2_ACK_INTERVAL", "a number of packets")? {
            None | Some(1) => {}
            Some(0) => {
                self.draft.remark("L2_ACK_INTERVAL 0: flows end by ACKs here, so every packet has one")
            }
            Some(packets) => self.draft.set("transport.ack_every", packets),
        }
        if config.flag("L2_BACK_TO_ZERO")? == Some(true) {
            self.draft.remark(
                "L2_BACK_TO_ZERO 1: what is sent again begins with the missing packet, not with its chunk",
            );
        }
        // The size of the chunk that L2_BACK_TO_ZERO goes back to.
        config.take("L2_CHUNK_SIZE");
        match mode {
            1 if !self.marks => self.without_marks(irn || window),
            1 => self.dcqcn(irn, window, var_window)?,
            3 => self.hpcc(global, window, var_window)?,
            7 => self.timely(window)?,
            8 if !self.marks => {
                return Err(Problem::new(
                    "CC_MODE",
                    "expected another one than 8 (DCTCP) with ENABLE_QCN 0, which has switches mark nothing",
                ));
            }
            8 => self.dctcp()?,
            10 => {
                let entry = cc_mode.as_ref().expect("it names the mode");
                return Err(entry.wrong("HPCC-PINT has no counterpart here: expected 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP)"));
            }
            _ => {
                let entry = cc_mode.as_ref().expect("it names the mode");
                return Err(entry
                    .wrong(format!("expected 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP), found {mode}")));
            }
        }
        let config = &self.config;
        if config.flag("RATE_BOUND")? == Some(false) {
            self.draft.remark("RATE_BOUND 0: rates bound what is sent");
        }
        // What belongs to other modes has no effect there either.
        for key in KEYS_OF_CONTROLS {
            config.take(key);
        }
        Ok(())
    }

    /// The load balancer.
    fn balancer(&mut self) -> Result<(), Problem> {
        let entry = self.config.take("LB_MODE");
        let mode: u32 = entry.as_ref().map_or(Ok(0), |entry| entry.value("a number"))?;
        let preset = match mode {
            0 => "ecmp",
            2 => "drill",
            3 => "conga-rdma",
            6 => "letflow",
            9 => "conweave",
            _ => {
                let entry = entry.as_ref().expect("it names the mode");
                let expected = "0 (ECMP), 2 (DRILL), 3 (CONGA), 6 (LetFlow) or 9 (ConWeave)";
                return Err(entry.wrong(format!("expected {expected}, found {mode}")));
            }
        };
        self.draft.text("routing.preset", preset);
        for (key, field) in [
            ("CONWEAVE_TX_EXPIRY_TIME", "inactive"),
            ("CONWEAVE_REPLY_TIMEOUT_EXTRA", "reply_slack"),
            ("CONWEAVE_PATH_PAUSE_TIME", "path_pause"),
            ("CONWEAVE_EXTRA_VOQ_FLUSH_TIME", "flush_slack"),
            ("CONWEAVE_DEFAULT_VOQ_WAITING_TIME", "flush_default"),
        ] {
            // Without ConWeave they have no effect there either.
            if let Some(time) = self.config.microseconds(key)?
                && mode == 9
            {
                self.draft.set(&format!("routing.granularity.{field}"), time);
            }
        }
        Ok(())
    }

    /// Links that are cut or lose packets.
    fn faults(&mut self) -> Result<(), Problem> {
        let start: f64 = self.config.word("FLOWGEN_START_TIME", "a number of seconds")?.unwrap_or(2.0);
        let mut faults = Vec::new();
        if let Some(entry) = self.config.take("LINK_DOWN") {
            let numbers: Option<Vec<f64>> = entry.words.iter().map(|word| word.parse().ok()).collect();
            let Some([after, _, _]) = numbers.as_deref() else {
                return Err(entry.wrong(
                    "expected microseconds and the ids of two nodes, as in `LINK_DOWN 0 0 0` for none",
                ));
            };
            if *after > 0.0 {
                let ends = table(&[("from", quoted(&entry.words[1])), ("to", quoted(&entry.words[2]))]);
                let from = quoted(&format!("{}us", start * 1e6 + after));
                let fields = [
                    ("kind", quoted(&"cut")),
                    ("channels", format!("[{ends}]")),
                    ("from", from),
                    ("reroute_after", quoted(&"0ps")),
                ];
                faults.push(table(&fields));
            }
        }
        if let Some(probability) = self.config.word::<f64>("ERROR_RATE_PER_LINK", "a probability")?
            && probability > 0.0
        {
            for tier in self.network.tiers() {
                let fields = [
                    ("kind", quoted(&"loss")),
                    ("tier", quoted(tier)),
                    ("link_fraction", "1.0".to_owned()),
                    ("probability", format!("{probability:?}")),
                ];
                faults.push(table(&fields));
            }
        }
        if !faults.is_empty() {
            self.draft.set("faults", format!("[{}]", faults.join(", ")));
        }
        Ok(())
    }

    /// When the run ends, and its seed.
    fn run(&mut self) -> Result<(), Problem> {
        // ConWeave's run ends ten seconds after the last flow has started, or when all is done.
        let stop =
            self.config.word::<f64>("FLOWGEN_STOP_TIME", "a number of seconds")?.map(|stop| stop + 10.0);
        let stop = self.config.word::<f64>("SIMULATOR_STOP_TIME", "a number of seconds")?.or(stop);
        if let Some(stop) = stop {
            self.draft.text("measure.until", format!("{stop}s"));
        }
        if let Some(seed) = self.config.word::<u64>("RANDOM_SEED", "a whole number")? {
            self.draft.set("seed", seed);
        }
        Ok(())
    }
}
