//! Totals of a run.

use std::collections::BTreeMap;

use netloom_units::Time;
use serde::{Deserialize, Serialize};

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Simulated time.
    #[serde(rename = "simulated_ps", with = "picoseconds")]
    pub simulated: Time,
    /// When the last source stopped offering load, after which the run drained; `None` if the load lasted as long as the run.
    #[serde(rename = "load_until_ps", with = "picoseconds::option", default)]
    pub load_until: Option<Time>,
    /// When all work was done: the last byte of the last flow had been delivered, and the last calculation of a program had ended. `None` where something was left undone, where there is a stream, which is
    /// never done, or nothing to do.
    #[serde(rename = "makespan_ps", with = "picoseconds::option", default)]
    pub makespan: Option<Time>,
    /// When the first flow started; `None` if none did.
    #[serde(rename = "active_from_ps", with = "picoseconds::option", default)]
    pub active_from: Option<Time>,
    /// When the last packet arrived or the last calculation ended; the end of the run if something was under way then.
    #[serde(rename = "active_until_ps", with = "picoseconds", default)]
    pub active_until: Time,
    /// Packets of all kinds times the channels they crossed.
    pub packet_hops: u64,
    /// Data packets.
    pub data: PacketCounts,
    /// ACKs and other control packets.
    pub control: PacketCounts,
    /// Decisions by the name of the selector that took them.
    pub decisions: BTreeMap<String, DecisionCount>,
    /// Flows that switches kept an entry for, where they count flowcuts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flowcut_entries: Option<EntryCount>,
    /// What ConWeave did, where it is the granularity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conweave: Option<ConWeaveCount>,
    /// What receivers made of packets that did not come in order.
    #[serde(default)]
    pub reordering: ReorderingCount,
}

impl Totals {
    /// When the load ended: with the run, if it did not drain.
    pub fn load_end(&self) -> Time {
        self.load_until.unwrap_or(self.simulated)
    }

    /// How much of the time under load something was active: from the first start to the last activity.
    pub fn active(&self) -> Time {
        let until = self.load_end().min(self.active_until);
        self.active_from.map_or(Time::ZERO, |from| until.saturating_sub(from))
    }
}

/// What packets that do not come in order cost their receivers. A mean is one over time and over the hosts that ever held something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderingCount {
    /// NACKs that receivers sent.
    pub nacks: u64,
    /// Data packets that came although they had come before.
    pub duplicates: u64,
    /// Data packets that came early to a receiver that discards them (go-back-N, a bitmap that is too short).
    pub refused: u64,
    /// Most packets at a host, of all its flows, that its receivers had taken and that waited for one with a lower number.
    pub resequencing_packets_peak: u64,
    /// Their mean number.
    pub resequencing_packets_mean: f64,
    /// Most bytes that a host held back from its transport (`transport.reorder`).
    pub buffer_bytes_peak: u64,
    /// Their mean number.
    pub buffer_bytes_mean: f64,
    /// Early packets for which there was no room there.
    pub overflows: u64,
    /// Holds that ended because they had lasted for long enough.
    pub timeouts: u64,
}

/// What ConWeave did at all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConWeaveCount {
    /// Epochs whose reply was late.
    pub late_replies: u64,
    /// Of these, those in which the flow took another path.
    pub reroutes: u64,
    /// Queues of held packets that were released by their timer, before the tail had come.
    pub flushes: u64,
    /// Most bytes that a switch held back at a time.
    pub held_bytes_peak: u64,
    /// Mean number of bytes held, over time and over the switches that ever held something.
    #[serde(default)]
    pub held_bytes_mean: f64,
}

/// How many flows the switches kept an entry for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryCount {
    /// Switches that had an entry at some time.
    pub switches: u64,
    /// Most entries of a switch at a time.
    pub peak: u64,
    /// Mean over time and over those switches.
    pub mean: f64,
}

/// Where packets went: `sent = delivered + trimmed + dropped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketCounts {
    /// Sent by hosts.
    pub sent: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped before they arrived.
    pub dropped: u64,
    /// In flight when the run ended.
    pub in_flight: u64,
    /// Those of `dropped` that a fault took: on a link that was cut, at random, or because cuts left no route.
    #[serde(default)]
    pub lost: u64,
    /// Data packets of which a host received the header only: at the receiver, or back at the sender.
    #[serde(default)]
    pub trimmed: u64,
}

/// What a selector did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionCount {
    /// Decisions taken.
    pub taken: u64,
    /// Decisions that differed from the selector's default.
    pub non_default: u64,
}

/// Times as whole picoseconds in JSON, under names that end in `_ps`.
pub(crate) mod picoseconds {
    use netloom_units::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        u64::deserialize(deserializer).map(Time)
    }

    /// The same where there may be no time.
    pub(crate) mod option {
        use super::{Deserialize, Deserializer, Serialize, Serializer, Time};

        pub(crate) fn serialize<S: Serializer>(
            time: &Option<Time>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            time.map(|time| time.0).serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Time>, D::Error> {
            Ok(Option::<u64>::deserialize(deserializer)?.map(Time))
        }
    }
}
