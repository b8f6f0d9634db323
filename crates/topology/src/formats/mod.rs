//! Networks in files, one file per format.

mod edge_list;
mod graph_file;

pub use edge_list::EdgeList;
pub(crate) use graph_file::{GraphFile, Reader, Reading};
