//! Who chooses a packet's path: a path selector at a NIC, and one at a switch.
//!
//! A path selector is a scheme at work at one place: its granularity with the present runs of the flows that pass there, and, at a switch, its
//! selector with what that remembers. Its steps are pure. It is called with packets, with feedback, with notifications that pass and when flows end, and
//! it answers with a port, a tag, or what a sender should do.
//!
//! | file | holds |
//! | --- | --- |
//! | `nic.rs` | [`NicPathSelector`]: the tags of packets that leave a host |
//! | `switch.rs` | [`SwitchPathSelector`]: the ports of packets, among minimal ones |
//! | `roles.rs` | what a switch does with each kind of packet, settled when its path selector is made |
//! | `detours.rs` | its ports on paths beyond minimal ones |
//! | `runs.rs` | the flows that a switch remembers |
//! | `machines.rs` | the list of schemes with a state machine of their own at switches |
//! | `edges.rs` | what schemes do whose first and last switches work together |
//! | `counts.rs` | the decisions of a switch, by flow |
//! | `words.rs` | what `netloom route` says of a choice |

mod counts;
mod detours;
pub mod edges;
mod machines;
mod nic;
mod roles;
mod runs;
mod switch;
#[cfg(test)]
mod tests;
mod words;

pub use counts::Decided;
pub use detours::{OnDetours, PacketContext};
pub(crate) use machines::{Machine, SwitchPlace};
pub use nic::NicPathSelector;
pub use roles::FastPath;
pub use switch::SwitchPathSelector;
