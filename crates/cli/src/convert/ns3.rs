//! The configuration of an HPCC or ConWeave ns-3 simulation as a scenario.
//!
//! ConWeave's simulator grew out of HPCC's. A configuration is ConWeave's if it has one of the keys that only ConWeave's reads. What both do whatever the
//! file says (timeouts, sizes of ACKs, thresholds of PFC) becomes a field, too.

use std::path::Path;

use netloom_scenario::{Problem, Source};
use netloom_topology::{BuildContext, Network, Ns3, Topology};
use netloom_units::{Bytes, Rate};

use super::ns3_config::Config;
use super::{Draft, find_file, quoted, standalone, table};

/// Keys that only ConWeave's simulator reads.
const CONWEAVES: [&str; 6] =
    ["LB_MODE", "ENABLE_PFC", "ENABLE_IRN", "FLOWGEN_START_TIME", "FLOWGEN_STOP_TIME", "CONWEAVE_TX_EXPIRY_TIME"];

/// Reads a configuration file.
///
/// # Errors
/// What cannot be read or makes no sense, with its line.
pub(crate) fn convert(path: &Path) -> Result<Draft, Problem> {
    let config = Config::read(Source::read(path)?)?;
    let is_conweave = CONWEAVES.iter().any(|key| config.has(key));
    let outputs = config.outputs();
    let mut draft = Draft::default();
    let payload = config.word("PACKET_PAYLOAD_SIZE", "a number of bytes")?.unwrap_or(1000);
    if payload == 0 {
        return Err(Problem::new("PACKET_PAYLOAD_SIZE", "expected at least 1 byte, found 0"));
    }
    let network = files(&config, &mut draft)?;
    let mut converter = Converter { config, draft, network, payload: Bytes(payload), is_conweave };
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
        draft.remark(format!("{files}: an outcome has files of its own; `netloom fct DIR` writes its fct.txt"));
    }
    Ok(draft)
}

/// The network and the flows.
fn files(config: &Config, draft: &mut Draft) -> Result<Network, Problem> {
    let folder = config.source.folder();
    let find = |key: &str| {
        let absent = || Problem::new(key, format!("expected a line `{key} FILE` in {}, found none", config.source.name()));
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
        draft.set("servers", table(&[("nics", nics.to_string()), ("spread", quoted(&"hash"))]));
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
            self.draft.remark(format!("CC_MODE {mode} with ENABLE_IRN 1: what becomes of a loss there has not been compared"));
        }
        self.draft.text("transport.preset", if irn { "irn" } else { "roce" });
        self.draft.text("transport.mtu", self.payload);
        // IPv4, UDP and the sequence's header; TIMELY's packets carry when they left.
        self.draft.text("transport.header", Bytes(if mode == 7 { 56 } else { 48 }));
        self.draft.text("transport.ack_size", "60B");
        match config.word("L2_ACK_INTERVAL", "a number of packets")? {
            None | Some(1) => {}
            Some(0) => self.draft.remark("L2_ACK_INTERVAL 0: flows end by ACKs here, so every packet has one"),
            Some(packets) => self.draft.set("transport.ack_every", packets),
        }
        if config.flag("L2_BACK_TO_ZERO")? == Some(true) {
            self.draft.remark("L2_BACK_TO_ZERO 1: what is sent again begins with the missing packet, not with its chunk");
        }
        // The size of the chunk that L2_BACK_TO_ZERO goes back to.
        config.take("L2_CHUNK_SIZE");
        if self.is_conweave && !irn {
            for field in ["rto_min", "rto_initial", "rto_max"] {
                self.draft.text(&format!("transport.{field}"), "4ms");
            }
        }
        match mode {
            1 => self.dcqcn(irn, window, var_window)?,
            3 => self.hpcc(global, window, var_window)?,
            7 => self.timely(window)?,
            8 => self.dctcp()?,
            10 => {
                let entry = cc_mode.as_ref().expect("it names the mode");
                return Err(entry.wrong("HPCC-PINT has no counterpart here: expected 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP)"));
            }
            _ => {
                let entry = cc_mode.as_ref().expect("it names the mode");
                return Err(entry.wrong(format!("expected 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP), found {mode}")));
            }
        }
        let config = &self.config;
        if config.flag("RATE_BOUND")? == Some(false) {
            self.draft.remark("RATE_BOUND 0: rates bound what is sent");
        }
        // What belongs to other modes has no effect there either.
        for key in [
            "ALPHA_RESUME_INTERVAL",
            "RATE_DECREASE_INTERVAL",
            "CLAMP_TARGET_RATE",
            "RP_TIMER",
            "EWMA_GAIN",
            "FAST_RECOVERY_TIMES",
            "RATE_AI",
            "RATE_HAI",
            "MIN_RATE",
            "DCTCP_RATE_AI",
            "FAST_REACT",
            "U_TARGET",
            "MI_THRESH",
            "INT_MULTI",
            "MULTI_RATE",
            "SAMPLE_FEEDBACK",
            "PINT_LOG_BASE",
            "PINT_PROB",
        ] {
            config.take(key);
        }
        Ok(())
    }

    fn dcqcn(&mut self, irn: bool, window: bool, var_window: bool) -> Result<(), Problem> {
        let config = &self.config;
        let preset = if self.is_conweave { "conweave" } else { "hpcc" };
        let mut fields = vec![("kind", quoted(&"dcqcn")), ("preset", quoted(&preset))];
        for (key, field) in [
            ("ALPHA_RESUME_INTERVAL", "alpha_timer"),
            ("RATE_DECREASE_INTERVAL", "cut_timer"),
            ("RP_TIMER", "increase_timer"),
        ] {
            fields.extend(config.microseconds(key)?.map(|time| (field, time)));
        }
        fields.extend(config.word::<f64>("EWMA_GAIN", "a number")?.map(|gain| ("g", format!("{gain:?}"))));
        let cycles = config.word::<u32>("FAST_RECOVERY_TIMES", "a number")?;
        fields.extend(cycles.map(|cycles| ("fast_recovery", cycles.to_string())));
        for (key, field) in [("RATE_AI", "r_ai"), ("RATE_HAI", "r_hai"), ("MIN_RATE", "min_rate")] {
            fields.extend(config.rate(key)?.map(|(_, rate)| (field, rate)));
        }
        fields.extend(config.flag("CLAMP_TARGET_RATE")?.map(|clamp| ("clamp_target", clamp.to_string())));
        // IRN has a window of its own.
        if window || irn {
            fields.push(("window_bdp", "1.0".to_owned()));
        }
        if window && var_window {
            self.draft.remark("VAR_WIN 1: the window stays as it is when the rate falls");
        }
        self.draft.set("transport.congestion", table(&fields));
        Ok(())
    }

    fn hpcc(&mut self, global: bool, window: bool, var_window: bool) -> Result<(), Problem> {
        let config = &self.config;
        let eta = config.word("U_TARGET", "a number")?.unwrap_or(0.95);
        let stages: u32 = config.word("MI_THRESH", "a number")?.unwrap_or(5);
        let mut fields =
            vec![("kind", quoted(&"hpcc")), ("eta", format!("{eta:?}")), ("max_stage", stages.to_string())];
        if global {
            let longest = standalone::longest_base_rtt(&self.network, self.payload);
            fields.push(("base_rtt", format!("\"{longest}ns\"")));
        }
        if let Some((step, _)) = config.rate("RATE_AI")? {
            // There a step is a rate, here one of so many parts of what the target leaves of the line's rate.
            let line = (0..self.network.hosts()).map(|host| self.network.host_rate(host)).max().unwrap_or(Rate(0));
            let flows = (1.0 - eta) * line.0 as f64 / step;
            let whole = flows.round().max(1.0);
            if (flows - whole).abs() > 1e-6 * flows {
                self.draft.remark(format!("RATE_AI: the step is {:.4} of it, as `flows` is a whole number", flows / whole));
            }
            fields.push(("flows", format!("{whole}")));
        }
        fields.extend(config.rate("MIN_RATE")?.map(|(_, rate)| ("min_rate", rate)));
        for (key, usual, otherwise) in [
            ("FAST_REACT", 1, "every ACK moves the window"),
            ("INT_MULTI", 1, "telemetry is exact"),
            ("MULTI_RATE", 0, "a flow has one rate, that of its fullest link"),
            ("SAMPLE_FEEDBACK", 0, "every ACK carries telemetry"),
        ] {
            if let Some(value) = config.word::<u32>(key, "a number")?
                && value != usual
            {
                self.draft.remark(format!("{key} {value}: {otherwise}"));
            }
        }
        for (key, is_so) in [("HAS_WIN", window), ("VAR_WIN", var_window)] {
            if !is_so {
                self.draft.remark(format!("{key} 0: a flow has a window, which HPCC sets"));
            }
        }
        self.draft.set("transport.congestion", table(&fields));
        Ok(())
    }

    fn timely(&mut self, window: bool) -> Result<(), Problem> {
        let mut fields = vec![("kind", quoted(&"timely"))];
        let step = self.config.rate("RATE_AI")?;
        let hyper = self.config.rate("RATE_HAI")?;
        if let (Some((step, _)), Some((hyper, _))) = (&step, &hyper)
            && *hyper != 5.0 * step
        {
            self.draft.remark("RATE_HAI: five steps in a row make the step five times RATE_AI");
        }
        fields.extend(step.map(|(_, rate)| ("step", rate)));
        fields.extend(self.config.rate("MIN_RATE")?.map(|(_, rate)| ("min_rate", rate)));
        if window {
            self.draft.remark("HAS_WIN 1: a rate alone bounds what TIMELY sends");
        }
        self.draft.set("transport.congestion", table(&fields));
        Ok(())
    }

    fn dctcp(&mut self) -> Result<(), Problem> {
        let mut fields = vec![("kind", quoted(&"dctcp"))];
        let gain = self.config.word::<f64>("EWMA_GAIN", "a number")?;
        fields.extend(gain.map(|gain| ("g", format!("{gain:?}"))));
        self.draft.set("transport.congestion", table(&fields));
        if let Some((rate, _)) = self.config.rate("DCTCP_RATE_AI")? {
            let rate = Rate(rate as u64);
            self.draft.remark(format!("DCTCP_RATE_AI {rate}: DCTCP has a window here, which a round trip makes a packet larger, and slow start"));
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

    /// Buffers, flow control, marks, priorities.
    fn switches(&mut self) -> Result<(), Problem> {
        // HPCC's has no switch for it.
        let pfc = !self.is_conweave || self.config.flag("ENABLE_PFC")?.unwrap_or(true);
        let megabytes: u64 = self.config.word("BUFFER_SIZE", "a number of MiB")?.unwrap_or(0);
        if megabytes == 0 {
            self.draft.remark("BUFFER_SIZE 0: the buffer is that of this simulator's default");
        }
        let buffer = Bytes(megabytes.saturating_mul(1 << 20));
        if pfc {
            let mut fields = vec![("kind", quoted(&"pfc-shared"))];
            if megabytes > 0 {
                fields.push(("buffer", quoted(&buffer)));
            }
            let (alpha, reserve) = if self.is_conweave { ("0.0625", "2096B") } else { ("0.125", "4KiB") };
            fields.extend([("alpha", alpha.to_owned()), ("reserve", quoted(&reserve))]);
            self.draft.set("fabric.flow_control", table(&fields));
            if !self.is_conweave {
                let rates: Vec<Rate> = (0..self.network.hosts()).map(|host| self.network.host_rate(host)).collect();
                if self.network.links().iter().any(|link| rates.iter().any(|&rate| link.rate > rate)) {
                    self.draft.remark("links faster than the NICs' have twice the share of the free buffer for every doubling there, here all have an eighth");
                }
            }
        } else if megabytes > 0 {
            // A queue alone takes as much as it leaves free.
            self.draft.text("fabric.buffer", Bytes(buffer.0 / 2));
            self.draft.remark(format!(
                "BUFFER_SIZE {megabytes}: an output queue may hold half of it, as one alone does there; there all of a switch share it"
            ));
        }
        if self.config.flag("USE_DYNAMIC_PFC_THRESHOLD")? == Some(false) && pfc {
            self.draft.remark("USE_DYNAMIC_PFC_THRESHOLD 0: the threshold is a share of the free buffer, as in that code whatever this says");
        }
        if pfc && let Some(time) = self.config.word::<f64>("PAUSE_TIME", "a number of microseconds")? {
            self.draft.remark(format!("PAUSE_TIME {time}: a pause lasts until it is ended"));
        }
        let high = self.config.flag("ACK_HIGH_PRIO")?.unwrap_or(self.is_conweave);
        self.draft.set("fabric.control_priority", high || self.is_conweave);
        self.marks()
    }

    /// Marking thresholds of the rates that links have.
    fn marks(&mut self) -> Result<(), Problem> {
        let maps = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"].map(|key| self.by_rate(key));
        let [kmin, kmax, pmax] = maps;
        let (kmin, kmax, pmax) = (kmin?, kmax?, pmax?);
        let mut rates: Vec<Rate> = self.network.links().iter().map(|link| link.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let of = |map: &[(Rate, f64)], key: &str, rate: Rate| {
            let value = map.iter().rev().find(|entry| entry.0 == rate).map(|entry| entry.1);
            let links = format!("expected a value for {rate}, the rate of some links of the topology, found none");
            value.ok_or_else(|| Problem::new(key, format!("{links} ({})", self.config.source.name())))
        };
        let marks = rates.into_iter().map(|rate| {
            let bytes = |kilobytes: f64| quoted(&Bytes((kilobytes * 1000.0).round() as u64));
            let fields = vec![
                ("kmin", bytes(of(&kmin, "KMIN_MAP", rate)?)),
                ("kmax", bytes(of(&kmax, "KMAX_MAP", rate)?)),
                ("pmax", format!("{:?}", of(&pmax, "PMAX_MAP", rate)?)),
            ];
            Ok((rate, fields))
        });
        let mut marks: Vec<(Rate, Vec<(&str, String)>)> = marks.collect::<Result<_, Problem>>()?;
        if self.config.flag("ENABLE_QCN")? == Some(false) {
            return Ok(());
        }
        // The last, the fastest, holds where nothing else is said.
        if let Some((_, all)) = marks.pop() {
            marks.retain(|(_, fields)| *fields != all);
            self.draft.set("fabric.ecn", table(&all));
        }
        if !marks.is_empty() {
            let tables = marks.into_iter().map(|(rate, mut fields)| {
                fields.insert(0, ("rate", quoted(&rate)));
                table(&fields)
            });
            self.draft.set("fabric.ecn_by_rate", format!("[{}]", tables.collect::<Vec<_>>().join(", ")));
        }
        Ok(())
    }

    /// How many, then a rate in bit/s and its value for each.
    fn by_rate(&self, key: &str) -> Result<Vec<(Rate, f64)>, Problem> {
        let Some(entry) = self.config.take(key) else { return Ok(Vec::new()) };
        let found = entry.words.len();
        let wrong = |word: &str| entry.wrong(format!("expected a number, found \"{word}\""));
        let count: usize = entry.words[0].parse().map_err(|_| wrong(&entry.words[0]))?;
        if Some(found - 1) != count.checked_mul(2) {
            return Err(entry.wrong(format!("expected {count} rates with their values, found {} words", found - 1)));
        }
        let pair = |pair: &[String]| {
            let rate = pair[0].parse().map_err(|_| wrong(&pair[0]))?;
            Ok((Rate(rate), pair[1].parse().map_err(|_| wrong(&pair[1]))?))
        };
        entry.words[1..].chunks(2).map(pair).collect()
    }

    /// Links that are cut or lose packets.
    fn faults(&mut self) -> Result<(), Problem> {
        let start: f64 = self.config.word("FLOWGEN_START_TIME", "a number of seconds")?.unwrap_or(2.0);
        let mut faults = Vec::new();
        if let Some(entry) = self.config.take("LINK_DOWN") {
            let numbers: Option<Vec<f64>> = entry.words.iter().map(|word| word.parse().ok()).collect();
            let Some([after, _, _]) = numbers.as_deref() else {
                return Err(entry.wrong("expected microseconds and the ids of two nodes, as in `LINK_DOWN 0 0 0` for none"));
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
                    ("share", "1.0".to_owned()),
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
        let stop = self.config.word::<f64>("FLOWGEN_STOP_TIME", "a number of seconds")?.map(|stop| stop + 10.0);
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
