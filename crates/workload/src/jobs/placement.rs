//! Where the ranks of a job sit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use netloom_topology::HostId;
use netloom_units::narrow;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::pattern::lines::Lines;
use crate::random::{Stream, shuffle};
use crate::servers::Endpoints;

/// Where the ranks of a job sit, one to a host: a name, `{ hosts = […] }` or `{ file = "…" }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JobPlacement {
    /// On the hosts of the lowest numbers.
    #[default]
    Packed,
    /// On hosts drawn uniformly from the scenario's seed.
    Random,
    /// On one host of every leaf switch in turn.
    RoundRobinLeaves,
    /// On one host of every leaf switch of a pod in turn, pod after pod.
    ByRail,
    /// On these, rank by rank.
    Hosts(Vec<HostName>),
    /// On those of a file.
    File(PathBuf),
}

/// A host as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// Its number.
    Number(u32),
    /// Its name in the network.
    Name(String),
}

const NAMES: &[&str] = &["packed", "random", "round-robin-leaves", "by-rail"];
const FIELDS: &[&str] = &["hosts", "file"];

impl JobPlacement {
    fn name(&self) -> &'static str {
        match self {
            JobPlacement::Packed => NAMES[0],
            JobPlacement::Random => NAMES[1],
            JobPlacement::RoundRobinLeaves => NAMES[2],
            JobPlacement::ByRail => NAMES[3],
            JobPlacement::Hosts(_) => FIELDS[0],
            JobPlacement::File(_) => FIELDS[1],
        }
    }

    /// The hosts that it lists, where it does.
    pub(super) fn listed(
        &self,
        endpoints: &Endpoints,
        base: impl Fn(&std::path::Path) -> PathBuf,
    ) -> Result<Option<Vec<HostId>>, WorkloadError> {
        let hosts = match self {
            JobPlacement::Hosts(hosts) => {
                let find = |(at, host): (usize, &HostName)| {
                    let wrong = |(expected, found): (String, String)| {
                        WorkloadError::parameter(format!("placement.hosts.{at}"), expected, found)
                    };
                    host.find(endpoints).map_err(wrong)
                };
                hosts.iter().enumerate().map(find).collect::<Result<Vec<HostId>, _>>()?
            }
            JobPlacement::File(file) => {
                let file = base(file);
                let mut lines = Lines::open(&file)?;
                let mut hosts = Vec::new();
                while let Some((line, text)) = lines.next()? {
                    let host =
                        text.parse().map_or_else(|_| HostName::Name(text.to_owned()), HostName::Number);
                    let wrong = |(expected, found): (String, String)| {
                        WorkloadError::line(&file, line, format!("expected {expected}, found {found}"))
                    };
                    hosts.push(host.find(endpoints).map_err(wrong)?);
                }
                hosts
            }
            _ => return Ok(None),
        };
        let mut ranks = BTreeMap::new();
        for (rank, &host) in hosts.iter().enumerate() {
            if let Some(before) = ranks.insert(host, rank) {
                let expected = "every host once, as a rank has a host of its own";
                let found = format!("{} at ranks {before} and {rank}", endpoints.name(host));
                return Err(WorkloadError::parameter(format!("placement.{}", self.name()), expected, found));
            }
        }
        Ok(Some(hosts))
    }

    /// The hosts in the order in which ranks take them, of those that are `free`, in ascending order.
    pub(super) fn order(
        &self,
        free: Vec<HostId>,
        endpoints: &Endpoints,
        stream: &mut Stream,
    ) -> Result<Vec<HostId>, WorkloadError> {
        match self {
            JobPlacement::Random => {
                let mut order = free;
                shuffle(&mut order, stream);
                Ok(order)
            }
            JobPlacement::RoundRobinLeaves => Ok(in_turn(&free, endpoints)),
            JobPlacement::ByRail => by_rail(&free, endpoints),
            JobPlacement::Packed | JobPlacement::Hosts(_) | JobPlacement::File(_) => Ok(free),
        }
    }
}

/// One host of every leaf switch in turn.
fn in_turn(hosts: &[HostId], endpoints: &Endpoints) -> Vec<HostId> {
    let mut leaves: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    for &host in hosts {
        leaves.entry(endpoints.edge_switch(host)).or_default().push(host);
    }
    let most = leaves.values().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(|at| leaves.values().filter_map(move |leaf| leaf.get(at).copied())).collect()
}

/// The same within every pod: a pod's leaf switches are its rails.
fn by_rail(hosts: &[HostId], endpoints: &Endpoints) -> Result<Vec<HostId>, WorkloadError> {
    let refused = |why: &str| {
        let expected = format!("another placement, as {why}");
        Err(WorkloadError::parameter("placement", expected, "\"by-rail\""))
    };
    if !endpoints.have_names() {
        return refused("each server of `[servers]` has a NIC on every rail");
    }
    let pod = |switch: u32| endpoints.network.pod(switch);
    let mut leaves: BTreeMap<u32, std::collections::BTreeSet<u32>> = BTreeMap::new();
    for host in 0..endpoints.count() {
        let leaf = endpoints.edge_switch(host);
        leaves.entry(pod(leaf)).or_default().insert(leaf);
    }
    if leaves.values().all(|leaves| leaves.len() < 2) {
        return refused("rails are the leaf switches of a pod, and no pod of this network has several");
    }
    let mut pods: BTreeMap<u32, Vec<HostId>> = BTreeMap::new();
    for &host in hosts {
        pods.entry(pod(endpoints.edge_switch(host))).or_default().push(host);
    }
    Ok(pods.values().flat_map(|hosts| in_turn(hosts, endpoints)).collect())
}

impl HostName {
    /// The host; else what was expected and what was found.
    pub(crate) fn find(&self, endpoints: &Endpoints) -> Result<HostId, (String, String)> {
        let (count, word) = (endpoints.count(), endpoints.word());
        let expected = || format!("one of the {count} {word}, by its number from 0 to {}", count - 1);
        match self {
            HostName::Number(number) if *number < count => Ok(*number),
            HostName::Number(number) => Err((expected(), number.to_string())),
            HostName::Name(name) if !endpoints.have_names() => Err((expected(), format!("\"{name}\""))),
            HostName::Name(name) => match endpoints.network.find_node(name) {
                Ok(node) if endpoints.network.is_host(node) => Ok(node),
                Ok(_) => Err(("a host".to_owned(), format!("the switch \"{name}\""))),
                Err(invalid) => Err((invalid.expected, invalid.found)),
            },
        }
    }
}

impl Serialize for JobPlacement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            JobPlacement::Hosts(hosts) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(self.name(), hosts)?;
                map.end()
            }
            JobPlacement::File(file) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(self.name(), file)?;
                map.end()
            }
            _ => serializer.serialize_str(self.name()),
        }
    }
}

impl<'de> Deserialize<'de> for JobPlacement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(field_identifier, rename_all = "kebab-case")]
        enum Field {
            Hosts,
            File,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = JobPlacement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "a placement: \"packed\", \"random\", \"round-robin-leaves\", \"by-rail\", {{ hosts = […] }} or {{ file = \"…\" }}"
                )
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<JobPlacement, E> {
                match NAMES.iter().position(|known| *known == name) {
                    Some(0) => Ok(JobPlacement::Packed),
                    Some(1) => Ok(JobPlacement::Random),
                    Some(2) => Ok(JobPlacement::RoundRobinLeaves),
                    Some(_) => Ok(JobPlacement::ByRail),
                    None => Err(E::unknown_variant(name, NAMES)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JobPlacement, A::Error> {
                let mut found = None;
                // Its errors name the key where it is written.
                while let Some(field) = map.next_key::<Field>()? {
                    if found.is_some() {
                        return Err(de::Error::custom("expected either `hosts` or `file`, found both"));
                    }
                    found = Some(match field {
                        Field::Hosts => JobPlacement::Hosts(map.next_value()?),
                        Field::File => JobPlacement::File(map.next_value()?),
                    });
                }
                found.ok_or_else(|| de::Error::missing_field(FIELDS[0]))
            }
        }
        deserializer.deserialize_struct("Placement", FIELDS, Reader)
    }
}

impl JsonSchema for JobPlacement {
    fn schema_name() -> Cow<'static, str> {
        "JobPlacement".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut hosts = generator.subschema_for::<Vec<HostName>>();
        hosts.insert("description".to_owned(), "Hosts by number or name, in the order of the ranks.".into());
        json_schema!({
            "description": "Where the ranks of a job sit, one to a host.",
            "anyOf": [
                { "enum": NAMES },
                { "type": "object", "properties": { "hosts": hosts }, "required": ["hosts"], "additionalProperties": false },
                {
                    "type": "object",
                    "properties": {
                        "file": {
                            "type": "string",
                            "description": "A file with a host per line, by number or name, in the order of the ranks."
                        }
                    },
                    "required": ["file"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

impl Serialize for HostName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HostName::Number(number) => number.serialize(serializer),
            HostName::Name(name) => name.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = HostName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a host: its number, or its name such as \"h0\"")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<HostName, E> {
                Ok(HostName::Name(name.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<HostName, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                u32::try_from(number).map(HostName::Number).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<HostName, E> {
                // No network has as many hosts.
                Ok(HostName::Number(narrow::<u32>(number.min(u32::MAX.into()))))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for HostName {
    fn schema_name() -> Cow<'static, str> {
        "HostName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": u32::MAX }, { "type": "string" }] })
    }
}
