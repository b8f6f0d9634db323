//! What a switch does: packets, output ports, queues, marking, dropping, and flow control.
//!
//! A [`Ports`] is the output side of one node, switch or host. Its ports have no events of their own: a port is
//! *advanced* to an instant when something touches it and to the end of its node's turn, and every packet whose
//! transmission has started by then is handed on with the exact time of its arrival at the other end. What waits when a transmission
//! ends at `t` starts before anything that reaches the port at `t` is handled, so nothing depends on how often a port is advanced.
//!
//! Flow control works the same way. Whatever can pause a port (a PAUSE frame, a lack of credits) or resume it happens at its node, so
//! ports stay without events. The one thing that couples two ports of a switch is a departure that ends the pause of an input
//! buffer: from then on a PAUSE frame takes its turn at the port towards the upstream neighbour. While some input buffer of a switch is paused,
//! and only then, its ports are therefore advanced together, in order of time.
//!
//! A full queue drops what comes, or trims it to its header, see [`queue`]; the header goes on, or back.
//!
//! A port has several queues: PAUSE frames go before control packets before data, and data in one queue per traffic class and virtual
//! channel, see [`Rules`].

#![warn(clippy::cast_possible_truncation)]

mod buffers;
mod config;
mod estimator;
mod faults;
pub mod flow_control;
mod inputs;
mod pace;
mod packet;
mod port;
mod ports;
mod qcn;
pub mod queue;
mod queues;
mod returns;
mod round_robin;
mod rules;
mod telemetry;

pub use buffers::check_switch;
pub use config::{Ecn, EcnAtRate, Fabric, FabricOptions, Mark, TrafficClass};
pub use faults::{ChannelFaults, DropCause, Dropped, LossInterval, apart};
pub use flow_control::FlowControl;
pub use packet::{ByKind, Flags, NO_INGRESS, Number, NumbersOf, Packet, PacketKind, Trail, flow_number};
pub use port::{Credit, Departure, Fate, LAST_RANK, Port, PortQueue, PortSpec, PortStats, Wire, ring_rank};
pub use ports::{At, Ports};
pub use qcn::{CongestionPoint, Qcn, QcnPreset, Sampling};
pub use queue::Queue;
pub use round_robin::RoundRobin;
pub use rules::{
    Accounting, Anything, CreditsOfChannels, Known, KnownRules, PacedPfc, PacedPfcShared, PlainCredits,
    PlainPfc, PlainPfcShared, Rules,
};
pub use telemetry::{Stamp, Telemetry};
