//! Ctrl-C: the first asks to finish what can be finished, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::complain;

/// A flag that the first Ctrl-C sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let installed = ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        complain("interrupted: writing what is complete; press Ctrl-C again to stop at once\n");
    });
    if let Err(error) = installed {
        complain(&format!("warning: Ctrl-C will stop at once and write nothing: {error}\n"));
    }
    stop
}
