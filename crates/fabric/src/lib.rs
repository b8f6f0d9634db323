//! What a switch does: packets, output ports, queues, marking and dropping.
//!
//! A [`Ports`] is the output side of one node, switch or host. Its ports have no events of their own: a port is
//! *advanced* to an instant when something touches it and to the end of its node's turn, and every packet whose
//! transmission has started by then is handed on with the exact time of its arrival at the other end. A packet
//! that starts at `t` is chosen after everything that reached the port at `t`, so nothing depends on how often a
//! port is advanced.
//!
//! Ports serve two strict-priority classes, store and forward: control (ACKs) above data.

mod config;
mod packet;
mod port;
mod qcn;

pub use config::{Ecn, Fabric, FabricError};
pub use packet::{Class, Packet, PacketKind};
pub use port::{Departure, Fate, Moment, Port, PortSpec, PortStats, Ports, Wire};
pub use qcn::{CongestionPoint, Qcn, QcnPreset, Sampling};
