//! One command, one file.

pub(crate) mod compare;
pub(crate) mod cost;
pub(crate) mod critical_path;
pub(crate) mod explain;
pub(crate) mod fct;
pub(crate) mod from_htsim;
pub(crate) mod from_ns3;
pub(crate) mod init;
pub(crate) mod layers;
pub(crate) mod list;
pub(crate) mod manual;
pub(crate) mod paths;
pub(crate) mod pcapng;
pub(crate) mod perfetto;
pub(crate) mod recommend;
mod reference;
pub(crate) mod report;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod study;
pub(crate) mod throughput;
pub(crate) mod topology;
