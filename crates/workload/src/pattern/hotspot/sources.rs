//! Which ranks send hot traffic.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::WorkloadError;

/// Which ranks send hot traffic. A user writes `hot_sources = 4` or `hot_sources = [0, 5, 9]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum HotSources {
    /// This many: the first ranks beside the hot destination.
    Count(u32),
    /// These.
    List(Vec<u32>),
}

impl HotSources {
    /// The ranks, none of which is the hot destination unless the user lists it.
    pub(super) fn ranks(&self, hot_destination: u32) -> Vec<u32> {
        match self {
            HotSources::List(ranks) => ranks.clone(),
            &HotSources::Count(count) => {
                let others = (0..=count).filter(|&rank| rank != hot_destination);
                others.take(count as usize).collect()
            }
        }
    }

    /// The ranks in ascending order, if they are ranks at all, distinct, and none is the hot destination.
    pub(super) fn checked(&self, hot_destination: u32, ranks: u32) -> Result<Vec<u32>, WorkloadError> {
        let last = ranks - 1;
        let refuse = |expected, found: &dyn fmt::Display| {
            Err(WorkloadError::parameter("hot_sources", expected, found))
        };
        if let HotSources::Count(count) = self
            && !(1..=last).contains(count)
        {
            return refuse(format!("1 to {last}, the hosts beside the hot destination"), count);
        }
        let mut sources = self.ranks(hot_destination);
        sources.sort();
        if sources.is_empty() {
            return refuse("at least one rank".to_owned(), &"none");
        }
        if let Some(wrong) = sources.iter().find(|&&rank| rank > last || rank == hot_destination) {
            return refuse(format!("ranks from 0 to {last} without the hot destination"), wrong);
        }
        if let Some(twice) = sources.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse("every rank once".to_owned(), &format!("{} twice", twice[0]));
        }
        Ok(sources)
    }
}

impl<'de> Deserialize<'de> for HotSources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = HotSources;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of hosts or a list of ranks")
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<HotSources, E> {
                let count = u32::try_from(count);
                count.map(HotSources::Count).map_err(|_| E::custom("expected a number of hosts below 2^32"))
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<HotSources, E> {
                let found = de::Unexpected::Signed(count);
                let count = u32::try_from(count).map_err(|_| E::invalid_value(found, &self))?;
                Ok(HotSources::Count(count))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<HotSources, A::Error> {
                let mut ranks = Vec::new();
                while let Some(rank) = items.next_element()? {
                    ranks.push(rank);
                }
                Ok(HotSources::List(ranks))
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for HotSources {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HotSources".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [generator.subschema_for::<u32>(), generator.subschema_for::<Vec<u32>>()]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hotspot;

    #[test]
    fn a_count_leaves_the_destination_out() {
        assert_eq!(HotSources::Count(3).ranks(1), [0, 2, 3]);
        assert_eq!(HotSources::Count(3).ranks(3), [0, 1, 2]);
        assert_eq!(HotSources::Count(3).ranks(9), [0, 1, 2]);
    }

    #[test]
    fn sources_are_a_number_or_a_list() {
        let read = |text: &str| toml::from_str::<Hotspot>(text).map(|hotspot| hotspot.hot_sources);
        assert_eq!(read("hot_sources = 3"), Ok(HotSources::Count(3)));
        assert_eq!(read("hot_sources = [3, 1]"), Ok(HotSources::List(vec![3, 1])));
        for wrong in ["hot_sources = -1", "hot_sources = \"all\"", "hot_sources = 1.5"] {
            assert!(read(wrong).unwrap_err().to_string().contains("a list of ranks"), "{wrong}");
        }
    }
}
