//! Where a run stands, on a terminal; nothing where standard error is no terminal.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use netloom_sim::RunProgress;
use netloom_units::Time;

use crate::show;

/// The line of one run.
#[derive(Debug)]
pub(crate) struct RunLine {
    bar: ProgressBar,
    started: Instant,
    total_flows: Option<u64>,
    until: Option<Time>,
    shown: Option<Instant>,
}

/// Often enough to see it move, rarely enough to cost nothing.
const INTERVAL: Duration = Duration::from_millis(100);

impl RunLine {
    /// A line for a run of this many flows, or until a time; nothing if it is to be quiet.
    pub(crate) fn new(total_flows: Option<u64>, until: Option<Time>, quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        RunLine { bar, started: Instant::now(), total_flows, until, shown: None }
    }

    /// Shows where the run stands.
    pub(crate) fn update(&mut self, progress: RunProgress) {
        let now = Instant::now();
        if self.bar.is_hidden() || self.shown.is_some_and(|last| now - last < INTERVAL) {
            return;
        }
        self.shown = Some(now);
        let elapsed = (now - self.started).as_secs_f64();
        let speed = show::count(progress.packet_hops as f64 / elapsed.max(1e-9));
        let flows = match self.total_flows {
            Some(total) => format!("{} of {total} flows", progress.flows_done),
            None => format!("{} flows", progress.flows_done),
        };
        let share = self.share(progress);
        let eta = match share {
            Some(share) if share > 0.02 => {
                let left = Duration::from_secs_f64(elapsed * (1.0 - share).max(0.0) / share);
                format!(", about {} left", HumanDuration(left))
            }
            _ => String::new(),
        };
        let simulated = show::time(progress.time.as_secs_f64());
        self.bar.set_message(format!("{simulated} simulated, {flows}, {speed} packet-hops/s{eta}"));
        self.bar.tick();
    }

    /// Which share of the run is done, by flows or by time, whichever is further.
    fn share(&self, progress: RunProgress) -> Option<f64> {
        let by_flows = self.total_flows.map(|total| progress.flows_done as f64 / total.max(1) as f64);
        let by_time = self.until.map(|until| progress.time.as_secs_f64() / until.as_secs_f64());
        [by_flows, by_time].into_iter().flatten().reduce(f64::max)
    }

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
