//! Networks that the tests share.

use netloom_topology::{BuildContext, Network, Topology};
use serde_json::Value;

/// The network of a kind with some parameters.
pub(crate) fn network(kind: &str, mut parameters: Value) -> Network {
    parameters["kind"] = kind.into();
    let topology: Topology = serde_json::from_value(parameters).unwrap();
    topology.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap()
}
