//! `netloom from-htsim`: the command line of a main program of htsim as a scenario.

use crate::args::FromHtsimArgs;
use crate::convert::htsim;
use crate::failure::Failure;

/// Prints the scenario.
pub(crate) fn from_htsim(args: &FromHtsimArgs) -> Result<(), Failure> {
    htsim::convert(&args.command)?.print()
}
