//! The level of detail of a run.

use std::fmt;

use netloom_workload::Region;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The level of detail of a run. Written as `"packets"`, `"flow"` or `{ packets = { … } }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Detail {
    /// Packet by packet.
    #[default]
    Packets,
    /// Flow by flow at max-min fair rates: no queues, no losses, no congestion control.
    Flow,
    /// A region packet by packet, all else flow by flow.
    Region(Region),
}

const NAMES: &[&str] = &["packets", "flow"];

impl Detail {
    pub(crate) fn is_default(&self) -> bool {
        *self == Detail::default()
    }
}

/// The table of a region.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct InPackets {
    packets: Region,
}

impl Serialize for Detail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Detail::Packets => serializer.serialize_str(NAMES[0]),
            Detail::Flow => serializer.serialize_str(NAMES[1]),
            Detail::Region(region) => InPackets { packets: region.clone() }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = Detail;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"packets\", \"flow\", or a table such as { packets = { jobs = [\"a\"] } }")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Detail, E> {
                match name {
                    "packets" => Ok(Detail::Packets),
                    "flow" => Ok(Detail::Flow),
                    _ => Err(E::unknown_variant(name, NAMES)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Detail, A::Error> {
                let InPackets { packets } = InPackets::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Detail::Region(packets))
            }
        }
        deserializer.deserialize_struct("Detail", &["packets"], Written)
    }
}
