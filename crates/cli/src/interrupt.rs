//! Being asked to stop: by Ctrl-C, by a batch system (SIGTERM), by a terminal that goes away (SIGHUP). The first asks to finish what
//! can be finished, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::complain;

/// The exit code of a command that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// A flag that the first signal sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut wanted = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    match Signals::new(wanted) {
        Ok(signals) => watch(signals, Arc::clone(&stop)),
        Err(error) => {
            complain(&format!("warning: an interruption will stop at once and write nothing: {error}\n"));
        }
    }
    stop
}

fn watch(mut signals: Signals, stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if stop.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
            complain("interrupted: writing what is complete; once more (Ctrl-C) to stop at once\n");
        }
    });
}

/// Whether the process that started this one wants it to ignore a signal, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    // Only Linux tells without unsafe code.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask >> (signal - 1) & 1 == 1)
}
