//! Switches: buffers, flow control, marks, priorities.

use netloom_scenario::Problem;
use netloom_topology::Network;
use netloom_units::{Bytes, Rate};

use super::{Converter, quoted, table};

/// By component, whether it is that of an NVSwitch: one switch, which joins fewer hosts than another component does.
fn inner_components(network: &Network) -> Vec<bool> {
    let count = network.components() as usize;
    let (mut hosts, mut switches) = (vec![0u32; count], vec![0u32; count]);
    for node in 0..network.nodes() {
        let of = if network.is_host(node) { &mut hosts } else { &mut switches };
        of[network.component(node) as usize] += 1;
    }
    let most = hosts.iter().copied().max().unwrap_or(0);
    hosts.iter().zip(switches).map(|(&hosts, switches)| switches == 1 && hosts < most).collect()
}

impl Converter {
    /// Buffers, flow control, marks, priorities.
    pub(super) fn switches(&mut self) -> Result<(), Problem> {
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
                let rates: Vec<Rate> =
                    (0..self.network.hosts()).map(|host| self.network.host_rate(host)).collect();
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
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "by_rate refuses what is negative or no number, and Bytes what is too large"
    )]
    fn marks(&mut self) -> Result<(), Problem> {
        let maps = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"].map(|key| self.by_rate(key));
        let [kmin, kmax, pmax] = maps;
        let (kmin, kmax, pmax) = (kmin?, kmax?, pmax?);
        let inside = inner_components(&self.network);
        let (mut unmarked, mut rates) = (Vec::new(), Vec::new());
        for link in self.network.links() {
            let is_inside = inside[self.network.component(link.b) as usize];
            let list: &mut Vec<Rate> = if is_inside { &mut unmarked } else { &mut rates };
            list.push(link.rate);
        }
        for list in [&mut rates, &mut unmarked] {
            list.sort_unstable();
            list.dedup();
        }
        let of = |map: &[(Rate, f64)], key: &str, rate: Rate| {
            let value = map.iter().rev().find(|entry| entry.0 == rate).map(|entry| entry.1);
            let links =
                format!("expected a value for {rate}, the rate of some links of the topology, found none");
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
        let both = unmarked.iter().copied().find(|rate| marks.iter().any(|(marked, _)| marked == rate));
        if let Some(rate) = both {
            let what = "links of NVSwitches and of switches have it: NVSwitches, which mark nothing there, mark here";
            self.draft.remark(format!("KMIN_MAP at {rate}: {what}"));
        }
        if !self.marks {
            return Ok(());
        }
        // The last, the fastest, holds where nothing else is said.
        if let Some((_, all)) = marks.pop() {
            marks.retain(|(_, fields)| *fields != all);
            self.draft.set("fabric.ecn", table(&all));
        }
        // NVSwitches mark nothing: their thresholds are above any buffer.
        unmarked.retain(|&rate| Some(rate) != both);
        for rate in unmarked {
            let never = quoted(&Bytes(1 << 40));
            marks.push((rate, vec![("kmin", never.clone()), ("kmax", never), ("pmax", "0.0".to_owned())]));
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
        let wrong = |word: &str| entry.wrong(format!("expected a number of at least 0, found \"{word}\""));
        let count: usize = entry.words[0].parse().map_err(|_| wrong(&entry.words[0]))?;
        if Some(found - 1) != count.checked_mul(2) {
            return Err(
                entry.wrong(format!("expected {count} rates with their values, found {} words", found - 1))
            );
        }
        let pair = |pair: &[String]| {
            let rate = pair[0].parse().map_err(|_| wrong(&pair[0]))?;
            let value = pair[1].parse().ok().filter(|value: &f64| *value >= 0.0 && value.is_finite());
            Ok((Rate(rate), value.ok_or_else(|| wrong(&pair[1]))?))
        };
        entry.words[1..].chunks(2).map(pair).collect()
    }
}
