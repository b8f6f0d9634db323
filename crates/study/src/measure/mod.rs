//! The measurements that a cell may take of a network. None simulates a packet.

mod collisions;
mod diversity;
mod layers;
mod memory;
mod structure;
mod throughput;

use netloom_units::kinds;

use crate::analysis::Subject;

pub use collisions::{Collisions, Conflicts};
pub use diversity::Diversity;
pub use layers::{LayerCounts, LayerPaths};
pub use memory::FlowcutMemory;
pub use structure::Structure;
pub use throughput::ThroughputOf;

kinds! {
    /// What is measured of a network.
    pub enum Measurement: "measurement" {
        "structure" => Structure(Structure),
        "diversity" => Diversity(Diversity),
        "collisions" => Collisions(Collisions),
        "conflicts" => Conflicts(Conflicts),
        "layer-paths" => LayerPaths(LayerPaths),
        "layer-counts" => LayerCounts(LayerCounts),
        "throughput" => Throughput(ThroughputOf),
        "flowcut-memory" => FlowcutMemory(FlowcutMemory),
    }
}

/// Named results.
pub(crate) type Quantities = Vec<(String, f64)>;

impl Measurement {
    /// Takes the measurement; everything that is drawn is a function of the seed.
    pub(crate) fn take(&self, subject: &Subject, seed: u64) -> Result<Quantities, String> {
        match self {
            Measurement::Structure(config) => config.take(subject),
            Measurement::Diversity(config) => config.take(subject, seed),
            Measurement::Collisions(config) => Ok(config.take(subject, seed)),
            Measurement::Conflicts(config) => Ok(config.take(subject, seed)),
            Measurement::LayerPaths(config) => config.take(subject, seed),
            Measurement::LayerCounts(config) => config.take(subject, seed),
            Measurement::Throughput(config) => config.take(subject, seed),
            Measurement::FlowcutMemory(config) => config.take(subject),
        }
    }

    /// Every quantity that the measurement may give on a network; a test holds [`take`](Self::take) to it.
    pub(crate) fn quantities(&self) -> Vec<String> {
        let names: &[&str] = match self {
            Measurement::Structure(_) => {
                let shares = (1..=MOST_HOPS).map(|hops| format!("share_at_{hops}"));
                return structure::QUANTITIES.iter().map(|&name| name.to_owned()).chain(shares).collect();
            }
            Measurement::Diversity(_) => &diversity::QUANTITIES,
            Measurement::FlowcutMemory(_) => &memory::QUANTITIES,
            Measurement::Collisions(_) => &["mean", "share_2_up", "share_4_up", "share_9_up"],
            Measurement::Conflicts(_) => &["collisions", "overlaps"],
            Measurement::LayerPaths(_) => &["disjoint_mean", "share_three", "hops_mean", "hops_longest"],
            Measurement::LayerCounts(_) => {
                &["spain", "spain_trees", "past", "fatpaths", "half_radix", "routers"]
            }
            Measurement::Throughput(_) => &[
                "theta",
                "theta_lower",
                "theta_upper",
                "theta_friendliest",
                "gap",
                "layers",
                "length_bound",
                "hosts_at_saturation",
            ],
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }
}

/// The largest distance whose share a claim may name before the network is measured.
const MOST_HOPS: u32 = 64;

fn named<const N: usize>(quantities: [(&str, f64); N]) -> Quantities {
    quantities.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_scenario::{Node, Source, read};
    use netloom_units::kind::Kind;

    #[test]
    fn every_measurement_gives_what_it_says_and_has_its_words() {
        let network = Node::parse(&Source::new("n", "kind = 'slim-fly'\nq = 5")).unwrap();
        let subject = Subject::build(&read(&network, "topology").unwrap(), 1).unwrap();
        for info in Measurement::kinds() {
            assert!(
                !info.doc.is_empty() && info.fields.iter().all(|field| !field.doc.is_empty()),
                "{info:?}"
            );
            let text = format!("kind = '{}'", info.name);
            let node = Node::parse(&Source::new("m", text)).unwrap();
            let measurement: Measurement = read(&node, "measurement").unwrap();
            let known = measurement.quantities();
            for (name, value) in measurement.take(&subject, 1).unwrap() {
                assert!(known.contains(&name), "{}: {name}", info.name);
                assert!(value.is_finite(), "{}: {name} = {value}", info.name);
            }
        }
    }
}
