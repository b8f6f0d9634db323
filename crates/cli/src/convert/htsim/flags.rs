//! The command lines of htsim's main programs: flags and how many words follow each.

use std::cell::RefCell;
use std::str::FromStr;

use netloom_scenario::Problem;
use netloom_units::names::{shorten, suggest};

/// A main program of htsim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Ndp,
    Roce,
    Eqds,
    Swift,
    Tcp,
    Uec,
    /// The one of the Flowcut artefact.
    Flowcut,
}

/// The programs by the names of their files.
const PROGRAMS: [(&str, Program); 7] = [
    ("htsim_ndp", Program::Ndp),
    ("htsim_roce", Program::Roce),
    ("htsim_eqds", Program::Eqds),
    ("htsim_swift", Program::Swift),
    ("htsim_tcp", Program::Tcp),
    ("htsim_uec", Program::Uec),
    ("htsim_ndp_entry_modern", Program::Flowcut),
];

/// Flags of all but TCP's and Swift's.
const COMMON: [(&str, usize); 18] = [
    ("-nodes", 1),
    ("-tiers", 1),
    ("-tm", 1),
    ("-topo", 1),
    ("-q", 1),
    ("-mtu", 1),
    ("-linkspeed", 1),
    ("-hop_latency", 1),
    ("-switch_latency", 1),
    ("-paths", 1),
    ("-strat", 1),
    ("-seed", 1),
    ("-end", 1),
    ("-conns", 1),
    ("-queue_type", 1),
    ("-host_queue_type", 1),
    ("-ar_sticky_delta", 1),
    ("-ar_method", 1),
];

const NDP: [(&str, usize); 7] = [
    ("-cwnd", 1),
    ("-rts", 0),
    ("-oversubscribed_cc", 0),
    ("-ecn_thresh", 1),
    ("-path_burst", 1),
    ("-ar_granularity", 1),
    ("-pfc_thresholds", 2),
];

const ROCE: [(&str, usize); 2] = [("-start_delta", 1), ("-pfc_thresholds", 2)];

const EQDS: [(&str, usize); 4] =
    [("-cwnd", 1), ("-ecn_thresh", 1), ("-path_burst", 1), ("-ar_granularity", 1)];

const SWIFT: [(&str, usize); 11] = [
    ("-conns", 1),
    ("-nodes", 1),
    ("-tm", 1),
    ("-topo", 1),
    ("-cwnd", 1),
    ("-flowsize", 1),
    ("-linkspeed", 1),
    ("-end", 1),
    ("-q", 1),
    ("-mtu", 1),
    ("-subflows", 1),
];

const SWIFT_MORE: [(&str, usize); 1] = [("-plb", 1)];

/// Words without a dash are flags here.
const TCP: [(&str, usize); 9] = [
    ("-sub", 1),
    ("-conns", 1),
    ("-nodes", 1),
    ("UNCOUPLED", 0),
    ("COUPLED_INC", 0),
    ("FULLY_COUPLED", 0),
    ("COUPLED_TCP", 0),
    ("COUPLED_SCALABLE_TCP", 0),
    ("COUPLED_EPSILON", 0),
];

const UEC: [(&str, usize); 26] = [
    ("-cwnd", 1),
    ("-conn_reuse", 0),
    ("-planes", 1),
    ("-receiver_cc_only", 0),
    ("-sender_cc_only", 0),
    ("-sender_cc_algo", 1),
    ("-sender_cc", 0),
    ("-receiver_cc", 0),
    ("-qa_gate", 1),
    ("-target_q_delay", 1),
    ("-queue_size_bdp_factor", 1),
    ("-load_balancing_algo", 1),
    ("-sack_threshold", 1),
    ("-oversubscribed_cc", 0),
    ("-Ai", 1),
    ("-Md", 1),
    ("-alpha", 1),
    ("-force_disable_oversubscribed_cc", 0),
    ("-enable_accurate_base_rtt", 0),
    ("-disable_base_rtt_update_on_nack", 0),
    ("-sleek", 0),
    ("-ecn", 2),
    ("-disable_trim", 0),
    ("-trimsize", 1),
    ("-failed", 1),
    ("-pcie", 1),
];

const UEC_MORE: [(&str, usize); 1] = [("-ar_granularity", 1)];

const FLOWCUT: [(&str, usize); 27] = [
    ("-sub", 1),
    ("-conns", 1),
    ("-nodes", 1),
    ("-goal", 1),
    ("-os_border", 1),
    ("-interdc_delay", 1),
    ("-max_queue_size", 1),
    ("-rtt_ratio", 1),
    ("-alpha_flowcut", 1),
    ("-flowlet_value", 1),
    ("-failure_link", 1),
    ("-number_entropies", 1),
    ("-kmax", 1),
    ("-kmin", 1),
    ("-topology", 1),
    ("-cwnd", 1),
    ("-flowsize", 1),
    ("-topo", 1),
    ("-ratio_os_stage_1", 1),
    ("-linkspeed", 1),
    ("-k", 1),
    ("-mtu", 1),
    ("-flowcut_mode", 1),
    ("-switch_latency", 1),
    ("-hop_latency", 1),
    ("-tm", 1),
    ("-seed", 1),
];

const FLOWCUT_MORE: [(&str, usize); 3] = [("-routing_sc", 1), ("-q", 1), ("-strat", 1)];

/// What is written, and where.
const OUTPUTS: [(&str, usize); 7] = [
    ("-o", 1),
    ("-log", 1),
    ("-logtime", 1),
    ("-logtime_us", 1),
    ("-tsample", 1),
    ("-collect_data", 1),
    ("-debug", 0),
];

impl Program {
    /// The program that a command begins with.
    pub(super) fn named(word: &str) -> Result<Self, Problem> {
        let name = word.rsplit('/').next().unwrap_or(word);
        let found = PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, program)| *program);
        found.ok_or_else(|| {
            let message =
                format!("expected the name of a main program of htsim, found \"{}\"", shorten(name));
            Problem::new("", message).help(suggest(name, PROGRAMS.iter().map(|(known, _)| *known)))
        })
    }

    fn flags(self) -> Vec<(&'static str, usize)> {
        let own: &[&[(&str, usize)]] = match self {
            Program::Ndp => &[&COMMON, &NDP],
            Program::Roce => &[&COMMON, &ROCE],
            Program::Eqds => &[&COMMON, &EQDS],
            Program::Swift => &[&SWIFT, &SWIFT_MORE],
            Program::Tcp => &[&TCP],
            Program::Uec => &[&COMMON, &UEC, &UEC_MORE],
            Program::Flowcut => &[&FLOWCUT, &FLOWCUT_MORE],
        };
        own.concat()
    }
}

/// The flags of a command, from which they are taken one by one. Of a flag that stands there twice the last holds, as in htsim.
#[derive(Debug)]
pub(super) struct Flags {
    given: RefCell<Vec<(&'static str, Vec<String>)>>,
    /// Those that say what is written.
    pub(super) outputs: Vec<&'static str>,
}

impl Flags {
    /// Reads what stands behind the name of a program.
    ///
    /// # Errors
    /// A flag that the program does not have, or that lacks words.
    pub(super) fn read(program: Program, words: &[String]) -> Result<Self, Problem> {
        let (flags, mut outputs) = (program.flags(), Vec::new());
        let mut given: Vec<(&'static str, Vec<String>)> = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let known = || flags.iter().chain(&OUTPUTS);
            let Some(&(flag, count)) = known().find(|(flag, _)| flag == word) else {
                let message = format!("expected a flag of the program, found \"{}\"", shorten(word));
                return Err(Problem::new("", message).help(suggest(word, known().map(|(flag, _)| *flag))));
            };
            let values: Vec<String> = words.by_ref().take(count).cloned().collect();
            if values.len() < count {
                return Err(Problem::new(
                    flag,
                    format!("expected {count} values behind it, found {}", values.len()),
                ));
            }
            if OUTPUTS.iter().any(|(output, _)| *output == flag) {
                outputs.push(flag);
                continue;
            }
            given.retain(|(before, _)| *before != flag);
            given.push((flag, values));
        }
        Ok(Flags { given: RefCell::new(given), outputs })
    }

    /// Takes a flag; the words behind it.
    pub(super) fn take(&self, flag: &str) -> Option<Vec<String>> {
        let mut given = self.given.borrow_mut();
        let at = given.iter().position(|(known, _)| *known == flag)?;
        Some(given.remove(at).1)
    }

    /// The first word behind a flag, which stays; empty if it has none.
    pub(super) fn peek(&self, flag: &str) -> Option<String> {
        let given = self.given.borrow();
        let (_, words) = given.iter().find(|(known, _)| *known == flag)?;
        Some(words.first().cloned().unwrap_or_default())
    }

    /// Whether a flag is there; it is taken.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.take(flag).is_some()
    }

    /// Takes a flag with one word; what is not given is `default`.
    pub(super) fn word(&self, flag: &str, default: &str) -> String {
        self.take(flag).and_then(|words| words.into_iter().next()).unwrap_or_else(|| default.to_owned())
    }

    /// Takes a flag with one number.
    pub(super) fn number<T: FromStr>(&self, flag: &'static str) -> Result<Option<T>, Problem> {
        let Some(words) = self.take(flag) else { return Ok(None) };
        let [word] = &words[..] else { return Ok(None) };
        let wrong = |_| Problem::new(flag, format!("expected a number, found \"{}\"", shorten(word)));
        word.parse().map(Some).map_err(wrong)
    }

    /// What has not been taken, as it was written.
    pub(super) fn rest(&self) -> Vec<String> {
        let given = self.given.borrow();
        given.iter().map(|(flag, words)| [&[(*flag).to_owned()], &words[..]].concat().join(" ")).collect()
    }
}
