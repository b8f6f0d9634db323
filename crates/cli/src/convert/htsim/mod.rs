//! The command line of a main program of htsim as a scenario: of csg-htsim (`htsim_ndp`, `htsim_roce`, `htsim_eqds`, `htsim_swift`, `htsim_tcp`), of uet-htsim
//! (`htsim_uec`), and of the Flowcut artefact (`htsim_ndp_entry_modern`).
//!
//! What the programs do whatever the command says (headers, thresholds, who paces what) becomes a field, too; what is not given has the program's default.

mod artefact;
mod flags;
mod strategy;
mod transports;
mod uec;

use std::path::Path;

use netloom_scenario::Problem;

use self::flags::{Flags, Program};
use super::{Draft, find_file, quoted, table};

/// Headers of NDP, RoCE, EQDS and UEC, and the size of what they trim to.
const HEADER: u64 = 64;

/// Reads a command: the name of a program and its flags.
///
/// # Errors
/// What the command says that makes no sense or has no counterpart.
pub(crate) fn convert(command: &[String]) -> Result<Draft, Problem> {
    let (name, words) = command
        .split_first()
        .ok_or_else(|| Problem::new("", "expected a command of htsim, found nothing"))?;
    let program = Program::named(name)?;
    let flags = Flags::read(program, words)?;
    let mut converter = Converter { program, flags, draft: Draft::default(), queue: 0 };
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

/// A tree that is made from the number of its hosts.
#[derive(Clone, Copy)]
struct Tree {
    /// Paths between two pods, or leaves.
    paths: u64,
    /// Links of such a path.
    links: u64,
    /// Ports of a switch.
    k: u64,
    /// Latency of a link and of a switch, in microseconds.
    hop: f64,
    switch: f64,
    /// Mb/s.
    rate: f64,
}

impl Tree {
    /// The longest round-trip time in microseconds, as UEC computes it: there and back, a packet and an ACK on every link.
    fn rtt(self, packet: Packet) -> f64 {
        let links = self.links as f64;
        let latency = 2.0 * (links * self.hop + (links - 1.0) * self.switch);
        let bits = 8.0 * (packet.wire() + HEADER) as f64 * links;
        whole_picoseconds(latency + bits / self.rate)
    }

    /// The bandwidth-delay product of that time in packets.
    fn packets(self, packet: Packet) -> f64 {
        self.rtt(packet) * self.rate / 8.0 / packet.wire() as f64
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn product(self, packet: Packet) -> u64 {
        self.packets(packet).ceil() as u64
    }

    /// Whole packets in UEC's largest window, 1.5 bandwidth-delay products.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn window(self, packet: Packet) -> u64 {
        (1.5 * self.packets(packet)).floor() as u64
    }
}

/// A time in microseconds that is written without more digits than picoseconds have.
fn whole_picoseconds(microseconds: f64) -> f64 {
    (microseconds * 1e6).round() / 1e6
}

struct Converter {
    program: Program,
    flags: Flags,
    draft: Draft,
    /// What `-q` says or stands for, in packets by `-mtu`.
    queue: u64,
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
        let tree = self.network(nodes)?;
        self.matrix("ps")?;
        self.queue = self.queue(packet, tree)?;
        self.balancer(packet, tree)?;
        match self.program {
            Program::Ndp => self.ndp(packet)?,
            Program::Roce => self.roce(packet)?,
            Program::Eqds => self.eqds(packet, tree)?,
            Program::Swift => self.swift(packet)?,
            _ => self.uec(packet, tree)?,
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

    /// The length of a queue in packets.
    fn queue(&mut self, packet: Packet, tree: Option<Tree>) -> Result<u64, Problem> {
        // Without trimming queues are longer.
        let usual = if self.flags.peek("-disable_trim").is_some() { 5 } else { 1 };
        let products =
            self.flags.number::<u64>("-queue_size_bdp_factor")?.filter(|&factor| factor > 0).unwrap_or(usual);
        let default = match self.program {
            Program::Eqds => 35,
            Program::Swift => 8,
            // Of a tree in a file only the program knows the round-trip time.
            Program::Uec => tree.map_or(0, |tree| products.saturating_mul(tree.product(packet))),
            _ => 15,
        };
        let given = self.flags.number("-q")?;
        if given.is_some() && self.program == Program::Roce {
            self.draft.remark("-q: with PFC at the inputs outputs have no limit");
        }
        Ok(given.unwrap_or(default))
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

    /// The network: a file's, or a tree without oversubscription, of which more is known.
    fn network(&mut self, default: u64) -> Result<Option<Tree>, Problem> {
        let nodes = match self.flags.number("-nodes")? {
            Some(nodes) => nodes,
            None if self.program == Program::Uec => self.nodes_of_matrix()?.unwrap_or(default),
            None => default,
        };
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
        let (paths, links, k) = match tiers {
            3 => {
                let k = (2u64..).step_by(2).find(|k| k.pow(3) / 4 >= nodes).unwrap_or(2);
                if k.pow(3) / 4 != nodes {
                    return Err(no_tree("k³/4 hosts: 16, 54, 128, 250, 432, 686, 1024, …", nodes));
                }
                fields.extend([("kind", quoted(&"fat-tree")), ("k", k.to_string())]);
                (k * k / 4, 6, k)
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
                (k / 2, 4, k)
            }
            _ => return Err(Problem::new("-tiers", format!("expected 2 or 3, found {tiers}"))),
        };
        fields.extend([("rate", format!("\"{rate}Mbps\"")), ("latency", format!("\"{hop}{unit}\""))]);
        self.draft.set("topology", table(&fields));
        if switch > 0.0 {
            self.draft.text("fabric.switch_latency", format!("{switch}{unit}"));
        }
        Ok(Some(Tree { paths, links, k, hop, switch, rate }))
    }

    /// The number of hosts that a connection matrix begins with, `Nodes N`.
    fn nodes_of_matrix(&self) -> Result<Option<u64>, Problem> {
        let Some(name) = self.flags.peek("-tm") else { return Ok(None) };
        let unreadable = |problem: String| Problem::new("-tm", problem);
        let path = find_file(&name, Path::new("")).map_err(|problem| unreadable(problem.message))?;
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(format!("{name}: {error}")))?;
        let mut words = text.split_whitespace();
        let is_first = words.next().is_some_and(|word| word.eq_ignore_ascii_case("nodes"));
        Ok(words.next().filter(|_| is_first).and_then(|number| number.parse().ok()))
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
        let absent = || {
            Problem::new(
                "-tm",
                "expected a connection matrix in a file, found none: standard input cannot be read again",
            )
        };
        let mut fields = vec![("kind", quoted(&"htsim-matrix")), ("file", file.ok_or_else(absent)?)];
        if unit != "ps" {
            fields.push(("start_unit", quoted(&unit)));
        }
        self.draft.set("workload", table(&fields));
        Ok(())
    }
}

fn no_tree(expected: &str, nodes: u64) -> Problem {
    Problem::new(
        "-nodes",
        format!("expected as many hosts as a tree without oversubscription has, {expected}, found {nodes}"),
    )
}
