//! From the command line to a document: a file, or a network in one word, with overrides.

use std::path::Path;

use netloom_record::Outcome;
use netloom_scenario::{
    Node, Problems, Scenario, Source, apply_option, left_out, load_network as read_network, one_word, read,
};
use netloom_units::kind::Kind;

use crate::args::Changes;
use crate::failure::{Failure, complain};

/// A checked scenario with the document that says where each field was written.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) document: Node,
    pub(crate) scenario: Scenario,
}

impl Loaded {
    fn read(document: Node) -> Result<Self, Failure> {
        let scenario = Scenario::read(&document)?;
        Ok(Loaded { document, scenario })
    }

    /// Names the fields that were left out, where no summary will.
    pub(crate) fn warn(self) -> Self {
        left_out(&self.document).iter().for_each(|field| complain(&format!("warning: {field}\n")));
        self
    }
}

/// Reads a scenario file and applies the overrides.
pub(crate) fn load(file: &Path, changes: &Changes) -> Result<Loaded, Failure> {
    let document = netloom_scenario::load(file, &changes.set)?;
    with_seed(document, changes.seed.as_deref())
}

/// The scenario of an outcome.
pub(crate) fn scenario_of(dir: &Path, outcome: &Outcome) -> Result<Loaded, Failure> {
    let file = dir.join("scenario.toml").display().to_string();
    Loaded::read(Node::parse(&Source::new(file, outcome.scenario.clone()))?)
}

/// Reads what describes a network: a scenario file, or `kind:field=value,…`.
pub(crate) fn load_network(spec: &str, seed: Option<&str>) -> Result<Loaded, Failure> {
    with_seed(read_network(spec, &[])?, seed)
}

/// The same with overrides.
pub(crate) fn load_spec(spec: &str, changes: &Changes) -> Result<Loaded, Failure> {
    with_seed(read_network(spec, &changes.set)?, changes.seed.as_deref()).map(Loaded::warn)
}

fn with_seed(mut document: Node, seed: Option<&str>) -> Result<Loaded, Failure> {
    if let Some(seed) = seed {
        apply_option(&mut document, "--seed", "seed", seed)?;
    }
    Loaded::read(document)
}

/// Reads a kind from one word of the command line, e.g. `worst-case:intensity=0.55`.
pub(crate) fn kind_in_one_word<K: Kind>(option: &str, text: &str) -> Result<K, Failure> {
    read(&one_word(option, text)?, option).map_err(|problems| Failure::Input(Problems(problems)))
}
