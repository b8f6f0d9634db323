//! The published flow-size distributions, one data file each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! tables {
    ($($name:literal => $Table:ident),+ $(,)?) => {
        /// A published flow-size distribution.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Table {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $Table,
            )+
        }

        impl Table {
            /// Every table.
            pub const ALL: &'static [Table] = &[$(Table::$Table),+];

            /// The name a user writes.
            pub fn name(self) -> &'static str {
                match self {
                    $(Table::$Table => $name,)+
                }
            }

            pub(super) fn text(self) -> &'static str {
                match self {
                    $(Table::$Table => include_str!(concat!("../../data/", $name, ".csv")),)+
                }
            }
        }
    };
}

tables! {
    "web-search" => WebSearch,
    "web-search-ns2" => WebSearchNs2,
    "fb-hadoop" => FbHadoop,
    "fb-hadoop-2015" => FbHadoop2015,
    "ali-storage-2019" => AliStorage2019,
    "google-rpc-2008" => GoogleRpc2008,
    "solar-2022" => Solar2022,
    "data-mining" => DataMining,
    "data-mining-ns2" => DataMiningNs2,
    "vl2" => Vl2,
    "hadoop-hkust" => HadoopHkust,
    "cache-follower" => CacheFollower,
    "web-server" => WebServer,
}

impl Table {
    /// What was measured, and where it was published.
    pub fn source(self) -> &'static str {
        self.text().lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}
