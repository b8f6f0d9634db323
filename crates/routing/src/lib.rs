//! Which way a packet goes: placement × granularity × selector.
//!
//! A scheme of the literature is a point of a product: **who** decides ([`Placement`]), **when** it may decide anew
//! ([`Granularity`]) and **what** it decides ([`Selector`]) among the candidate ports of a [`RouteTable`]. Names from
//! papers are [presets](preset::PRESETS) that expand to such a point.
//!
//! The parts know nothing of engines, ports or packets: a selector sees the candidate ports and a way to ask how loaded one is,
//! a granularity sees a flow's packets go by. [`SwitchRouter`] puts them together at a switch, [`NicRouter`] and
//! [`NicFlow`] at a host's NIC.
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

pub mod dependency;
pub mod granularity;
pub mod hash;
mod layers;
mod nic;
pub mod preset;
mod scheme;
pub mod selector;
mod steering;
mod switch;
mod table;

pub use granularity::Granularity;
pub use layers::{Layers, NO_LAYER};
pub use nic::{AckSample, NicFlow, NicRouter, NicShared};
pub use scheme::{Placement, Routing, RoutingError};
pub use selector::Selector;
pub use selector::congestion::Notice;
pub use selector::valiant::Intermediates;
pub use switch::{Crossing, Decisions, FlowKey, Header, Hop, SwitchRouter};
pub use table::RouteTable;
