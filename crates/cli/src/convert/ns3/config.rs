//! The configuration files of HPCC's, ConWeave's and SimAI's ns-3 simulators: a key and its values per line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::str::FromStr;

use netloom_scenario::{Place, Problem, Source};
use netloom_units::names::{shorten, suggest};

/// Keys that say something of the experiment, whatever its congestion control.
const KEYS: [&str; 33] = [
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "PACKET_PAYLOAD_SIZE",
    "BUFFER_SIZE",
    "CC_MODE",
    "LB_MODE",
    "ENABLE_PFC",
    "ENABLE_IRN",
    "ENABLE_QCN",
    "USE_DYNAMIC_PFC_THRESHOLD",
    "PAUSE_TIME",
    "CONWEAVE_TX_EXPIRY_TIME",
    "CONWEAVE_REPLY_TIMEOUT_EXTRA",
    "CONWEAVE_PATH_PAUSE_TIME",
    "CONWEAVE_EXTRA_VOQ_FLUSH_TIME",
    "CONWEAVE_DEFAULT_VOQ_WAITING_TIME",
    "ERROR_RATE_PER_LINK",
    "L2_CHUNK_SIZE",
    "L2_ACK_INTERVAL",
    "L2_BACK_TO_ZERO",
    "HAS_WIN",
    "GLOBAL_T",
    "VAR_WIN",
    "RATE_BOUND",
    "ACK_HIGH_PRIO",
    "LINK_DOWN",
    "KMAX_MAP",
    "KMIN_MAP",
    "PMAX_MAP",
    "SIMULATOR_STOP_TIME",
    "FLOWGEN_START_TIME",
    "FLOWGEN_STOP_TIME",
    "RANDOM_SEED",
];

/// Keys of single congestion controls, which have no effect under the others.
pub(super) const KEYS_OF_CONTROLS: [&str; 18] = [
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
];

/// Keys that change nothing that is simulated: what is written, and where; numbers that are only printed.
const OUTPUTS: [&str; 29] = [
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "CNP_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "UPLINK_MON_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "ENABLE_TRACE",
    "FLOW_INPUT_FILE",
    "VOQ_MON_FILE",
    "VOQ_MON_DETAIL_FILE",
    "CONN_MON_FILE",
    "EST_ERROR_MON_FILE",
    "EST_ERROR_OUTPUT_FILE",
    "SW_MONITORING_INTERVAL",
    "LOAD",
    "DATA_RATE",
    "LINK_DELAY",
    "BW_MON_FILE",
    "RATE_MON_FILE",
    "CNP_MON_FILE",
    "MON_START",
    "MON_END",
    "QP_MON_INTERVAL",
    "QLEN_MON_INTERVAL",
    "BW_MON_INTERVAL",
    "NIC_TOTAL_PAUSE_TIME",
];

/// A configuration, from which entries are taken one by one.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) source: Source,
    /// By key: where its line is, and the words behind it.
    entries: RefCell<BTreeMap<String, Entry>>,
}

/// What stands behind a key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    key: String,
    place: Place,
    pub(crate) words: Vec<String>,
}

impl Config {
    /// Reads the lines. Of a key that stands there twice the last holds, as in those simulators.
    ///
    /// # Errors
    /// A key that is nearly one that is known, or has no value.
    pub(crate) fn read(source: Source) -> Result<Self, Problem> {
        let mut entries = BTreeMap::new();
        let mut at = 0;
        for line in source.text().split_inclusive('\n') {
            let start = at + (line.len() - line.trim_start().len());
            at += line.len();
            let mut words = line.split_whitespace().map(str::to_owned);
            let Some(key) = words.next().filter(|key| !key.starts_with('#')) else { continue };
            let place = Place { source: source.clone(), span: start..start + line.trim().len() };
            let known = || KEYS.into_iter().chain(KEYS_OF_CONTROLS).chain(OUTPUTS);
            if !known().any(|known| known == key) {
                let help = suggest(&key, known());
                if help.starts_with("did you mean") {
                    let message = format!(
                        "expected a key of HPCC's, ConWeave's or SimAI's simulator, found \"{}\"",
                        shorten(&key)
                    );
                    return Err(Problem::new("", message).at(&place).help(help));
                }
            }
            let entry = Entry { key: key.clone(), place, words: words.collect() };
            if entry.words.is_empty() {
                return Err(entry.wrong("expected a value, found none"));
            }
            entries.insert(key, entry);
        }
        Ok(Config { source, entries: RefCell::new(entries) })
    }

    /// Takes the keys that change nothing that is simulated.
    pub(crate) fn outputs(&self) -> Vec<&'static str> {
        OUTPUTS.into_iter().filter(|key| self.take(key).is_some()).collect()
    }

    /// Whether a key is there and has not been taken.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.borrow().contains_key(key)
    }

    /// Takes a key's entry.
    pub(crate) fn take(&self, key: &str) -> Option<Entry> {
        self.entries.borrow_mut().remove(key)
    }

    /// Takes a key's only word.
    pub(crate) fn word<T: FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>, Problem> {
        self.take(key).map(|entry| entry.value(expected)).transpose()
    }

    /// Takes a number of microseconds, as a time that scenarios can say.
    pub(crate) fn microseconds(&self, key: &str) -> Result<Option<String>, Problem> {
        let time = self.word::<f64>(key, "a number of microseconds")?;
        Ok(time.map(|time| format!("\"{time}us\"")))
    }

    /// Takes a rate such as `50Mb/s`, as one that scenarios can say.
    pub(crate) fn rate(&self, key: &str) -> Result<Option<(f64, String)>, Problem> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let expected = "a rate such as 50Mb/s";
        let word = entry.value::<String>(expected)?;
        let wrong = || entry.wrong(format!("expected {expected}, found \"{}\"", shorten(&word)));
        let digits = word.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
        let (number, unit) = word.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let (prefix, unit) = unit.split_at(unit.find(['b', 'B']).ok_or_else(wrong)?);
        let times = match prefix {
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            _ => return Err(wrong()),
        };
        let bits = match unit {
            "b/s" | "bps" => 1.0,
            "B/s" | "Bps" => 8.0,
            _ => return Err(wrong()),
        };
        Ok(Some((number * times * bits, format!("\"{}bps\"", number * times * bits))))
    }

    /// Takes a switch, 0 or another number.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Problem> {
        Ok(self.word::<u32>(key, "0 or 1")?.map(|flag| flag != 0))
    }

    /// What has not been taken, as it stands in the file.
    pub(crate) fn rest(&self) -> Vec<String> {
        let mut rest: Vec<Entry> = self.entries.borrow().values().cloned().collect();
        rest.sort_by_key(|entry| entry.place.span.start);
        rest.iter().map(|entry| format!("{} {}", entry.key, shorten(&entry.words.join(" ")))).collect()
    }
}

impl Entry {
    /// The only word.
    pub(crate) fn value<T: FromStr>(&self, expected: &str) -> Result<T, Problem> {
        let value = match &self.words[..] {
            [word] => word.parse().ok(),
            _ => None,
        };
        value.ok_or_else(|| {
            self.wrong(format!("expected {expected}, found \"{}\"", shorten(&self.words.join(" "))))
        })
    }

    /// A problem of the entry.
    pub(crate) fn wrong(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.key.clone(), message).at(&self.place)
    }
}
