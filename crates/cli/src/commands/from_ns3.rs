//! `netloom from-ns3`: the configuration of an HPCC or ConWeave ns-3 simulation as a scenario.

use crate::args::FromNs3Args;
use crate::convert::ns3;
use crate::failure::Failure;

/// Prints the scenario.
pub(crate) fn from_ns3(args: &FromNs3Args) -> Result<(), Failure> {
    ns3::convert(&args.config)?.print()
}
