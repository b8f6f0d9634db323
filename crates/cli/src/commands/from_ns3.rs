//! `netloom from-ns3` and `netloom from-simai`: the configuration of an HPCC, ConWeave or SimAI ns-3 simulation as a scenario.

use crate::args::{FromNs3Args, FromSimaiArgs};
use crate::convert::ns3;
use crate::failure::Failure;

/// Prints the scenario.
pub(crate) fn from_ns3(args: &FromNs3Args) -> Result<(), Failure> {
    ns3::convert(&args.config)?.print()
}

/// Prints the scenario.
pub(crate) fn from_simai(args: &FromSimaiArgs) -> Result<(), Failure> {
    ns3::convert_simai(&args.config, &args.topology, &args.workload)?.print()
}
