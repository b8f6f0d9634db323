//! When a scheme may decide anew: which runs of a flow's packets stay on one path.

pub mod flow;
pub mod flowcell;
pub mod flowcut;
pub mod flowlet;
pub mod packet;

use netloom_units::kinds;

kinds! {
    /// When a scheme may decide anew.
    pub enum Granularity: "granularity" {
        "flow" => Flow(flow::Flow),
        "flowlet" => Flowlet(flowlet::Flowlet),
        "flowcell" => Flowcell(flowcell::Flowcell),
        "packet" => Packet(packet::Packet),
        "flowcut" => Flowcut(flowcut::Flowcut),
    }
}

impl Granularity {
    /// Refuses parameter values without meaning.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Granularity::Flowcut(flowcut) => flowcut.check(),
            Granularity::Flowcell(cell) => cell.check(),
            _ => Ok(()),
        }
    }
}
