//! Measurements of a run: samples of ports, meters of flows, gaps between packets, traces.

pub(crate) mod flow_meter;
pub(crate) mod gap_monitor;
pub(crate) mod gaps;
pub(crate) mod intervals;
pub(crate) mod level;
pub(crate) mod measure;
pub(crate) mod packet_trace;
pub(crate) mod recorder;
pub(crate) mod sampler;
pub(crate) mod sender_meter;
