//! `netloom from-ns3`: the configuration of an HPCC or ConWeave ns-3 simulation as a scenario.
//!
//! Such a file has a word and its values per line. What has a counterpart here becomes a field; every other line becomes a comment, so that
//! nothing is dropped in silence.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use netloom_scenario::Problem;
use netloom_topology::{BuildContext, Ns3, Topology};
use netloom_units::{Bytes, Rate};

use crate::args::FromNs3Args;
use crate::failure::Failure;

/// Prints the scenario.
pub(crate) fn from_ns3(args: &FromNs3Args) -> Result<(), Failure> {
    let path = &args.config;
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Output(format!("cannot read {}: {error}", path.display())))?;
    let config = Config::read(&text).map_err(|(line, message)| {
        Problem::new("", message).help(format!("{}, line {line}", path.display()))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    std::io::stdout().lock().write_all(config.scenario(folder).as_bytes())?;
    Ok(())
}

/// Thresholds in kilobytes, or a probability, by rate.
type ByRate = Vec<(Rate, f64)>;

#[derive(Debug, Default)]
struct Config {
    topology: Option<String>,
    flows: Option<String>,
    payload: Option<u64>,
    has_pfc: bool,
    transport: Option<&'static str>,
    kmin: ByRate,
    kmax: ByRate,
    pmax: ByRate,
    /// Lines without a counterpart.
    others: Vec<String>,
}

impl Config {
    /// # Errors
    /// The line, and what is wrong there.
    fn read(text: &str) -> Result<Self, (usize, String)> {
        let mut config = Config::default();
        let lines = (1..).zip(text.lines().map(str::trim));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = |message| (number, message);
            match words[..] {
                ["TOPOLOGY_FILE", file] => config.topology = Some(file.to_owned()),
                ["FLOW_FILE", file] => config.flows = Some(file.to_owned()),
                ["PACKET_PAYLOAD_SIZE", bytes] => config.payload = Some(parse(bytes).map_err(at)?),
                ["ENABLE_PFC", flag] => config.has_pfc = parse::<u8>(flag).map_err(at)? != 0,
                ["CC_MODE", "1"] => config.transport = Some("roce"),
                ["CC_MODE", "3"] => config.transport = Some("hpcc"),
                ["CC_MODE", "8"] => config.transport = Some("dctcp"),
                ["KMIN_MAP", ref map @ ..] => config.kmin = by_rate(map).map_err(at)?,
                ["KMAX_MAP", ref map @ ..] => config.kmax = by_rate(map).map_err(at)?,
                ["PMAX_MAP", ref map @ ..] => config.pmax = by_rate(map).map_err(at)?,
                _ => config.others.push(words.join(" ")),
            }
        }
        let rates = |map: &ByRate| map.iter().map(|entry| entry.0).collect::<Vec<_>>();
        for (name, map) in [("KMAX_MAP", &config.kmax), ("PMAX_MAP", &config.pmax)] {
            if rates(map) != rates(&config.kmin) {
                return Err((0, format!("{name}: expected the same rates in the same order as in KMIN_MAP")));
            }
        }
        Ok(config)
    }

    /// The scenario, for a file in the current folder. Files are looked for beside the configuration, in `folder`, and in the current folder.
    fn scenario(&self, folder: &Path) -> String {
        let find = |name: &String| {
            let beside = folder.join(name);
            if beside.exists() { beside } else { PathBuf::from(name) }
        };
        let mut text = String::new();
        let mut line = |words: String| writeln!(text, "{words}").expect("writing to a string");
        let quoted = |path: &Path| toml::Value::from(path.display().to_string()).to_string();
        let topology = self.topology.as_ref().map(find);
        if let Some(path) = &topology {
            line(format!("topology = {{ kind = \"ns3-topology\", path = {} }}", quoted(path)));
        }
        if let Some(flows) = &self.flows {
            line(format!("workload = {{ kind = \"ns3-flows\", file = {} }}", quoted(&find(flows))));
        }
        if let Some(preset) = self.transport {
            line(format!("transport.preset = \"{preset}\""));
        }
        if let Some(payload) = self.payload {
            line(format!("transport.mtu = \"{}\"", Bytes(payload)));
        }
        if self.has_pfc {
            line("fabric.flow_control = \"pfc-shared\"".to_owned());
        }
        let marking = self.marking(topology.as_deref().and_then(rates_of));
        // The last, the fastest, holds where nothing else is said.
        if let Some(((_, all), others)) = marking.split_last() {
            line(format!("fabric.ecn = {{ {all} }}"));
            let others: Vec<String> =
                others.iter().map(|(rate, ecn)| format!("{{ rate = \"{rate}\", {ecn} }}")).collect();
            if !others.is_empty() {
                line(format!("fabric.ecn_by_rate = [{}]", others.join(", ")));
            }
        }
        for other in &self.others {
            line(format!("# not carried over: {other}"));
        }
        text
    }

    /// Thresholds by rate, slowest first; of the network's rates only, where they are known.
    fn marking(&self, known: Option<Vec<Rate>>) -> Vec<(Rate, String)> {
        let entries = self.kmin.iter().zip(&self.kmax).zip(&self.pmax);
        let bytes = |kilobytes: f64| Bytes((kilobytes * 1000.0).round() as u64);
        let mut marking: Vec<_> = entries
            .filter(|((kmin, _), _)| known.as_ref().is_none_or(|known| known.contains(&kmin.0)))
            .map(|((&(rate, kmin), &(_, kmax)), &(_, pmax))| {
                let (kmin, kmax) = (bytes(kmin), bytes(kmax));
                (rate, format!("kmin = \"{kmin}\", kmax = \"{kmax}\", pmax = {pmax:?}"))
            })
            .collect();
        marking.sort();
        marking
    }
}

/// The rates of a network's links, if it can be read.
fn rates_of(path: &Path) -> Option<Vec<Rate>> {
    let topology = Topology::Ns3(Ns3 { path: path.to_owned(), parallel_links: true, nics: 1 });
    let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).ok()?;
    Some(network.links().iter().map(|link| link.rate).collect())
}

/// How many, then a rate in bit/s and its value for each.
fn by_rate(words: &[&str]) -> Result<ByRate, String> {
    let [count, entries @ ..] = words else { return Err("expected a number of rates, found nothing".into()) };
    let count: usize = parse(count)?;
    if entries.len() != 2 * count {
        return Err(format!("expected {count} rates with their values, found {} words", entries.len()));
    }
    entries.chunks(2).map(|entry| Ok((Rate(parse(entry[0])?), parse(entry[1])?))).collect()
}

fn parse<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("expected a number, found \"{word}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_scenario::{Node, Scenario, Source};

    /// As it comes with HPCC, shortened; its switch's id lies among those of the hosts.
    const CONFIG: &str = "ENABLE_PFC 1\nPACKET_PAYLOAD_SIZE 1000\n\nTOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nCC_MODE 3\nRATE_AI 50Mb/s\n\
        KMAX_MAP 3 25000000000 400 50000000000 800 100000000000 1600\nKMIN_MAP 3 25000000000 100 50000000000 200 100000000000 400\n\
        PMAX_MAP 3 25000000000 0.2 50000000000 0.2 100000000000 0.25\n";

    #[test]
    fn maps_become_thresholds_of_the_networks_rates_and_the_scenario_runs() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("topology.txt", "4 1 3\n1\n0 1 25Gbps 1us 0\n2 1 100Gbps 1us 0\n3 1 100Gbps 1us 0\n");
        write("flow.txt", "2\n0 2 3 100 5000 0\n3 0 3 100 7000 0.000001\n");
        let text = Config::read(CONFIG).unwrap().scenario(folder.path());
        assert!(text.contains("fabric.ecn = { kmin = \"400KB\", kmax = \"1.6MB\", pmax = 0.25 }"), "{text}");
        let others =
            "fabric.ecn_by_rate = [{ rate = \"25Gbps\", kmin = \"100KB\", kmax = \"400KB\", pmax = 0.2 }]\n";
        assert!(text.contains(others), "{text}");
        assert!(text.ends_with("# not carried over: RATE_AI 50Mb/s\n"), "{text}");
        let document = Node::parse(&Source::new("s.toml", text)).unwrap();
        let scenario = Scenario::read(&document).unwrap();
        assert_eq!(scenario.fabric.ecn_at(Rate::from_gbps(25)).unwrap().kmin, Bytes(100_000));
        assert_eq!(scenario.fabric.ecn_at(Rate::from_gbps(100)), None);
        let ready = netloom_scenario::prepare(&scenario, &document).unwrap();
        assert_eq!(ready.simulation.network().hosts(), 3);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, expected) in [
            ("ENABLE_PFC x", "expected a number, found \"x\""),
            ("CC_MODE 3\nKMIN_MAP 2 100 1", "expected 2 rates with their values, found 2 words"),
            ("KMIN_MAP 1 100 1\nKMAX_MAP 1 200 1\nPMAX_MAP 1 100 1", "KMAX_MAP: expected the same rates"),
        ] {
            let (_, message) = Config::read(text).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
