//! What came out, to be looked at: a network as a picture.
//!
//! [`draw`] makes an SVG of a network.
//!
//! ```
//! use netloom_topology::{BuildContext, FatTree, Topology};
//!
//! let topology = Topology::FatTree(FatTree { k: 4, ..Default::default() });
//! let network = topology.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
//! let svg = netloom_report::draw(&network).unwrap();
//! assert!(svg.starts_with("<svg") && svg.contains("<title>s0</title>"));
//! ```

mod layout;
mod picture;
#[cfg(test)]
mod testing;

pub use picture::{TooLarge, draw};
