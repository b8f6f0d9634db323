//! What every kind of selector says and does.

use netloom_units::{Invalid, Time};
use rand::Rng;

use super::congestion::Uncongested;
use crate::header::{Candidates, Header, Notice, View};

/// A kind of selector: its parameters, and what they say of it.
pub(crate) trait Kindred {
    /// The kind at work at one switch.
    type State: Choose;

    /// It at a switch where it remembers nothing yet.
    fn state(&self, place: Place) -> Self::State;

    /// What it needs and is able to do.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// What a kind of selector needs and is able to do. By default it adapts at switches of any network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// A NIC can use it to choose among tags.
    pub(crate) works_at_nic: bool,
    /// Its choice is one that only the sender can make.
    pub(crate) at_nic_only: bool,
    /// It is a function of the header alone, so that it decides alike for all packets of a flow, and for ACKs as for data.
    pub(crate) is_static: bool,
    /// It reads digits of numbers as up ports, which exist on trees only.
    pub(crate) needs_tree: bool,
    /// It reads digits of the index of hosts' leaf switches.
    pub(crate) counts_leaves: bool,
    /// It decides at a packet's first switch only.
    pub(crate) at_first_switch: bool,
    /// It sends packets over intermediate switches, on which their first switch decides; later ones decide on ports.
    pub(crate) detours: bool,
    /// It listens to congestion notifications, and takes this port while there are none.
    pub(crate) uncongested: Option<Uncongested>,
}

impl Facts {
    /// Those of a kind of Switch AR.
    pub(crate) fn listening(uncongested: Uncongested) -> Self {
        let needs_tree = uncongested == Uncongested::DModK;
        Facts { uncongested: Some(uncongested), needs_tree, ..Facts::default() }
    }
}

/// A selector at work at one switch: its parameters and what it remembers there.
pub(crate) trait Choose {
    /// The position of the port that a packet takes.
    fn pick(&mut self, question: Question<'_>, view: &mut impl View, random: &mut impl Rng) -> usize;

    /// A congestion notification was made here or passes by.
    fn notice(&mut self, _: &Notice, _: Situation) {}

    /// Why a data packet takes its port while nothing has been learnt; none if there is no more to say than the kind's name.
    fn words(&self, _: &Header, _ports: usize) -> Option<String> {
        None
    }
}

/// What a selector knows of its switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Divisor of D-mod-k and S-mod-k.
    pub(crate) stride: u32,
}

/// A packet that asks for one of several ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) header: &'a Header,
    pub(crate) candidates: Candidates<'a>,
    /// Hash of the header at this switch.
    pub(crate) hash: u32,
    /// Position of the port that it would take without adaptation.
    pub(crate) home: usize,
    pub(crate) now: Time,
}

/// The ports that a notification is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Position of the congested port.
    pub(crate) place: usize,
    /// Number of ports that lead to the destination.
    pub(crate) ports: usize,
    /// Position of the uncongested choice, if all packets to the destination have the same.
    pub(crate) home: Option<usize>,
    pub(crate) now: Time,
}
