//! Networks in files, one file per format.

mod astra_sim;
mod dot;
mod edge_list;
mod export;
mod graph_file;
mod graphml;
mod htsim;
mod infragraph;
mod json;
mod ns3;
mod reader;
mod simai;
mod yaml;

pub use astra_sim::{AstraSimNetwork, Block, NetworkDimension, NetworkFile};
pub use dot::Dot;
pub use edge_list::EdgeList;
pub use export::ExportFormat;
pub(crate) use graph_file::Reading;
pub use graphml::GraphMl;
pub use htsim::HtsimTopo;
pub use infragraph::InfraGraph;
pub use json::Json;
pub use ns3::Ns3;
pub(crate) use reader::Reader;
pub use simai::SimAi;
