//! What a host does: reliability × congestion control × shaping.
//!
//! Protocol logic is sans-I/O: a [`Sender`] is asked whether and what it may send and is given ACKs and timeouts; a [`Receiver`]
//! is given packets and says what to acknowledge. Neither knows of engines, ports or packets' other fields, so both are
//! tested as state machines.
//!
//! ```
//! use netloom_transport::{PathFacts, Sender, Transport};
//! use netloom_units::{Bytes, Rate, Time};
//!
//! let transport = Transport::default();
//! let path = PathFacts { base_rtt: Time::from_us(13), rate: Rate::from_gbps(200), lossy: false, reorders: false, trims: false };
//! let mut sender = Sender::new(&transport, Bytes(10_000), path, Time::ZERO);
//! let first = sender.take(&transport, Time::ZERO).unwrap();
//! assert_eq!((first.seq, first.payload, first.last), (0, 4096, false));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod config;
pub mod congestion;
mod connection;
mod content;
mod feedback;
mod gate;
mod nic;
pub mod preset;
mod receiver;
mod recovery;
pub mod reliability;
pub mod reorder;
mod rtt;
mod sender;
mod seq;
pub mod shaping;
mod stream;

pub use config::{Transport, TransportOptions};
pub use congestion::Congestion;
pub use congestion::bolt::{Bolt, BoltPort, Claim, Meeting, SourceNotice};
pub use congestion::pulls::{PullWindow, Pulls};
pub use congestion::qcn::ReactionPoint;
pub use congestion::rccc::{CreditQueue, Demand, Grant, HostBus, Rccc, ReceiverRate};
pub use connection::Connection;
pub use feedback::{Ack, Cause, Feedback, LinkState};
pub use nic::NicQueue;
pub use receiver::{Answer, Arrival, Receiver, Reply, SackAnswer, Seen, sack_first};
pub use reliability::Reliability;
pub use reorder::Reorder;
pub use sender::{Outgoing, PathFacts, Sack, SendCounts, Sender};
pub use seq::SeqSet;
pub use shaping::Shaping;
