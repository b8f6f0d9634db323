//! Which way a packet goes: placement × granularity × selector.
//!
//! A scheme of the literature is a point of a product: **who** decides ([`Placement`]), **when** it may choose another path
//! ([`Granularity`]) and **what** it decides ([`Selector`]) among the candidate ports of a [`RouteTable`]. Names from
//! papers are [presets](preset::PRESETS) that expand to such a point.
//!
//! The parts know nothing of engines, ports or packets: a selector sees the candidate ports and a way to ask how loaded one is,
//! a granularity sees a flow's packets go by. [`Forwarding`] lays out the paths among which a scheme decides, and a path selector puts all of
//! it to work at one place: a [`NicPathSelector`] at a host, a [`SwitchPathSelector`] at a switch.
//!
//! ```
//! use netloom_routing::{Granularity, Placement, Selector, preset};
//! use netloom_units::kind::Kind;
//!
//! let flowcut = preset::find("flowcut-nic").unwrap().routing();
//! assert_eq!(flowcut.placement, Placement::Nic);
//! assert_eq!(flowcut.granularity.name(), "flowcut");
//! flowcut.check().unwrap();
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod forwarding;
pub mod granularity;
pub mod hash;
mod header;
mod idle_timeout;
mod path_selector;
pub mod preset;
mod scheme;
pub mod selector;
mod tag;
#[cfg(test)]
mod testing;

pub use forwarding::{
    Forwarding, ForwardingError, InRow, Intermediates, Layers, Place, RouteTable, Row, TagSpace, Unreachable,
    channels, dependency,
};
pub use granularity::Granularity;
pub use hash::hash_in_words;
pub use header::{
    Advice, Arrival, Candidates, Carries, Decisions, FlowCounts, FlowKey, FlowRef, Header, Hop, Notice,
    Occupancy, Receipt, Signal, View,
};
pub use idle_timeout::{IdleTimeoutTable, LastSeen};
pub use path_selector::edges;
pub use path_selector::{Decided, FastPath, NicPathSelector, OnDetours, PacketContext, SwitchPathSelector};
pub use scheme::{Placement, Routing, Spread};
pub use selector::Selector;
pub use tag::{Phase, Tag};
