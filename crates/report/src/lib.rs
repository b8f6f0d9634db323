//! What came out, to be looked at: outcomes and studies as one page, networks as pictures.
//!
//! [`Report::read`] reads any number of outcomes and studies and reduces their flows, channels and series to what a page shows;
//! [`Report::html`] is that page: one file that needs no server and no network. [`Report::figure`] is one chart of it as SVG. [`draw`] makes an SVG of a network.
//!
//! ```text
//! folders    which runs there are, and how they are labelled       folders.rs
//! runs       what one point of a study (a scheme at a load, …) did  point.rs: curve.rs, sizes.rs, series.rs, links.rs
//! report     all points, what differs between them, the claims     report.rs
//! page       the same as HTML, with the chart library              page.rs, page/
//! figure     one chart as SVG, for a paper                         figure/
//! ```
//!
//! ```
//! use netloom_topology::{BuildContext, FatTree, Topology};
//!
//! let topology = Topology::FatTree(FatTree { k: Some(4), ..Default::default() });
//! let network = topology.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
//! let svg = netloom_report::draw(&network);
//! assert!(svg.starts_with("<svg") && svg.contains("<title>s0</title>"));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod critical;
mod curve;
mod differences;
mod figure;
mod folders;
mod groups;
mod layout;
mod links;
mod page;
mod picture;
mod point;
mod report;
mod series;
mod sizes;
mod style;
#[cfg(test)]
mod testing;

pub use figure::{FigureError, figures};
pub use folders::{ReportError, hint};
pub use picture::{draw, draw_planes};
pub use report::Report;
