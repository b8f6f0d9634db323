//! What `netloom route` says of a choice.

use super::SwitchPathSelector;
use super::roles::Role;
use crate::hash::hash_in_words;
use crate::header::{Carries, Header};
use crate::scheme::Routing;
use crate::selector::congestion::Uncongested;
use crate::selector::{PathSet, PortSelector};

impl SwitchPathSelector {
    /// Why a data packet takes the port that it takes among several minimal ones, if nothing has been learnt yet.
    pub fn explain(&self, scheme: &Routing, header: &Header, ports: usize) -> String {
        match self.roles.of(Carries::Data) {
            Role::Hash => hash_in_words(header),
            Role::Label => format!("digit of path label {}", header.tag.bits()),
            Role::PacketAtFirst | Role::RunAtFirst if !header.is_first() => hash_in_words(header),
            Role::Static
            | Role::Scatter
            | Role::Spray
            | Role::Packet
            | Role::Run
            | Role::PacketAtFirst
            | Role::RunAtFirst => self.selector.words(header, ports).unwrap_or_else(|| {
                let (selector, run) = (scheme.selector_name(), scheme.granularity_name());
                match self.uncongested {
                    None => format!("{selector}, chosen for each {run}"),
                    Some(uncongested) => {
                        format!(
                            "{selector}, no congestion known: {}",
                            self.home_in_words(uncongested, header, ports)
                        )
                    }
                }
            }),
        }
    }

    /// By what a data packet takes one of several ports on a path that has been decided on, if nothing has been learnt yet.
    pub fn explain_port(&self, scheme: &Routing, header: &Header) -> String {
        match scheme.selector.facts().paths {
            PathSet::Weighed(_) if self.decides_ports && !header.is_first() => "least load".into(),
            _ if self.decides_ports && !header.is_first() => "switch's draw".into(),
            _ => hash_in_words(header),
        }
    }

    fn home_in_words(&self, uncongested: Uncongested, header: &Header, ports: usize) -> String {
        match uncongested {
            Uncongested::DModK => {
                format!("d-mod-k: destination {} / {} mod {ports}", header.dst, self.stride)
            }
            Uncongested::Lowest => "the first port".into(),
            Uncongested::Hash => hash_in_words(header),
        }
    }
}
