//! Everything a simulation needs besides a network and a plan.

use std::borrow::Cow;
use std::fmt;

use netloom_fabric::Fabric;
use netloom_routing::{Routing, preset};
use netloom_transport::Transport;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fault::Fault;
use crate::observe::measure::Measure;

/// Fabric, routing, transport, faults, and what to measure.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Queues and marking.
    pub fabric: Fabric,
    /// Which path packets take.
    pub routing: Routing,
    /// What hosts do.
    pub transport: Transport,
    /// Slow and cut links.
    pub faults: Vec<Fault>,
    /// What to measure.
    pub measure: Measure,
    /// Seed of everything random in the run; the workload has its own.
    pub seed: u64,
    /// What is skipped.
    pub fast: Fast,
}

/// What of a run is skipped. Written as `"auto"`, `true`, `false` or the table of [`Steady`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fast {
    /// What recurs, in runs of programs, with the same outcome: there the search mostly pays.
    #[default]
    Auto,
    /// Nothing.
    Nothing,
    /// What recurs, with the same outcome.
    Recurring,
    /// Also what is steady, with an error that is measured.
    Steady(Steady),
}

/// Also what is steady is skipped, with an error that is measured in the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Steady {
    /// The largest error in the progress of flows, as a share: the mean over all flows of an audit. Once an audit shows more, nothing else is skipped for being steady.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub max_error: f64,
    /// By how much the progress of flows may differ between two successive windows for them to count as steady, as a share: the mean over all flows; four times as much for a single one. Absent: twice `max_error`, as
    /// the mean of two windows is half as wrong as they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub tolerance: Option<f64>,
    /// The share of steady stretches that is run in packets to measure the error: the first one, and one drawn at random from each group of 1 / `audits`.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub audits: f64,
    /// What happens once an audit shows more than `max_error` in a run of which parts have been skipped.
    pub beyond: Beyond,
}

/// What happens where the error is larger than it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beyond {
    /// The rest of the run is run in packets, and a warning says so.
    #[default]
    Packets,
    /// The run ends with an error.
    Fail,
}

impl Default for Steady {
    fn default() -> Self {
        Steady { max_error: 0.01, tolerance: None, audits: 0.25, beyond: Beyond::default() }
    }
}

impl Steady {
    /// By how much the progress of flows may differ between windows.
    pub(crate) fn tolerance(&self) -> f64 {
        self.tolerance.unwrap_or(2.0 * self.max_error)
    }

    fn check(&self) -> Result<(), String> {
        let Steady { max_error, tolerance, audits, beyond: _ } = *self;
        let tolerance = tolerance.unwrap_or(1.0);
        let fields = [("max_error", max_error), ("tolerance", tolerance), ("audits", audits)];
        match fields.into_iter().find(|&(_, share)| !(share > 0.0 && share <= 1.0)) {
            Some((field, share)) => {
                Err(format!("{field}: expected more than 0 and at most 1, found {share}"))
            }
            None => Ok(()),
        }
    }
}

impl Fast {
    /// Whether the user has asked for something to be skipped: a run that cannot do that says so.
    pub fn is_asked_for(self) -> bool {
        match self {
            Fast::Auto | Fast::Nothing => false,
            Fast::Recurring | Fast::Steady(_) => true,
        }
    }
}

/// How [`Fast::Auto`] is written.
const AUTO: &str = "auto";

impl Serialize for Fast {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Fast::Auto => serializer.serialize_str(AUTO),
            Fast::Nothing => serializer.serialize_bool(false),
            Fast::Recurring => serializer.serialize_bool(true),
            Fast::Steady(steady) => steady.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Fast {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = Fast;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\", true, false, or a table such as { max_error = 0.01 }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Fast, E> {
                match text {
                    AUTO => Ok(Fast::Auto),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_bool<E: de::Error>(self, is_fast: bool) -> Result<Fast, E> {
                Ok(if is_fast { Fast::Recurring } else { Fast::Nothing })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fast, A::Error> {
                let steady = Steady::deserialize(MapAccessDeserializer::new(map))?;
                steady.check().map_err(de::Error::custom)?;
                Ok(Fast::Steady(steady))
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for Fast {
    fn schema_name() -> Cow<'static, str> {
        "Fast".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": [AUTO] }, { "type": "boolean" }, generator.subschema_for::<Steady>()] })
    }
}

impl Default for SimConfig {
    /// ECMP under the default fabric and transport.
    fn default() -> Self {
        SimConfig {
            fabric: Fabric::default(),
            routing: preset::PRESETS[0].routing(),
            transport: Transport::default(),
            faults: Vec::new(),
            measure: Measure::default(),
            seed: 1,
            fast: Fast::default(),
        }
    }
}
