//! What a run cost: what `performance.json` holds.

use serde::{Deserialize, Serialize};

/// What of a run was skipped: as it was known to be the same as what came before, or as it was [steady](crate::SteadySkipped).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// How often something was skipped.
    pub jumps: u64,
    /// Simulated time, in picoseconds; where [components](Self::components) were run one by one, that of the one of which most was skipped.
    pub time_ps: u64,
    /// Packets times the channels they crossed meanwhile.
    pub packet_hops: u64,
    /// What kept all else from being skipped, if something of the scenario did.
    pub obstacle: Option<String>,
    /// How many components that share no link were run one by one, so that each could be skipped by itself; 1 where all were run at once.
    #[serde(default = "one")]
    pub components: u64,
    /// How many repetitions of a program were skipped as a whole; where several are repeated, those of one of them.
    #[serde(default)]
    pub repetitions: u64,
}

fn one() -> u64 {
    1
}

impl Default for Skipped {
    fn default() -> Self {
        Skipped { jumps: 0, time_ps: 0, packet_hops: 0, obstacle: None, components: 1, repetitions: 0 }
    }
}

/// How the work of a run was divided among its threads. It depends on the scenario and on the number of threads alone, not on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Division {
    /// How often all threads met.
    pub epochs: u64,
    /// Events handled and batches begun, by all threads.
    pub work: u64,
    /// Those of the thread that had most of them between two meetings, summed over all of these. `work` divided by it is how many times as fast as
    /// one thread so many threads could be at most.
    pub longest: u64,
}

/// What a run cost. It differs from run to run, so it lies apart from the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Performance {
    /// Version of netloom.
    pub version: String,
    /// Worker threads.
    pub threads: u32,
    /// Wall-clock time of the simulation in seconds, with that of writing the table of flows.
    pub wall_s: f64,
    /// Packets times the channels they crossed.
    pub packet_hops: u64,
    /// Packet-hops per second of wall-clock time; `null` if the run took no measurable time.
    pub packet_hops_per_s: Option<f64>,
    /// Largest resident memory of the process so far, in bytes; `null` where the system does not say.
    pub peak_memory_bytes: Option<u64>,
    /// What was skipped, in a run that may skip what recurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// How the work was divided, if several threads shared it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
}

impl Performance {
    /// The cost of a run that ends now.
    pub fn new(version: &str, threads: u32, wall_s: f64, packet_hops: u64) -> Self {
        Performance {
            version: version.to_owned(),
            threads,
            wall_s,
            packet_hops,
            packet_hops_per_s: (wall_s > 0.0).then(|| packet_hops as f64 / wall_s),
            peak_memory_bytes: peak_memory(),
            skipped: None,
            division: None,
        }
    }
}

/// The peak resident set size of this process, from Linux's `/proc/self/status`; `None` elsewhere.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_hops_over_time() {
        assert_eq!(Performance::new("1.0.0", 2, 0.5, 100).packet_hops_per_s, Some(200.0));
        assert_eq!(Performance::new("1.0.0", 2, 0.0, 100).packet_hops_per_s, None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn peak_memory_sees_what_is_touched() {
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak_memory().unwrap() >= block.len() as u64);
    }
}
