//! Where a run stands, on a terminal; nothing where standard error is no terminal.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use netloom_sim::RunProgress;
use netloom_study::{CellEvent, Plan};
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
        let bar = if quiet { ProgressBar::hidden() } else { spinner() };
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
        let share = progress.share(self.total_flows, self.until);
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

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// With a clock and a message.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// A spinner for work of unknown length. It disappears when this value is dropped.
#[derive(Debug)]
pub(crate) struct BusyLine(ProgressBar);

impl BusyLine {
    /// Shows `what` and a clock.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = spinner().with_message(what);
        bar.enable_steady_tick(2 * INTERVAL);
        BusyLine(bar)
    }
}

impl Drop for BusyLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The line of a study: which share of the work is done, by what hosts send in each cell.
#[derive(Debug)]
pub(crate) struct StudyProgress {
    bar: ProgressBar,
    names: Vec<String>,
    state: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    started: Instant,
    /// By cell.
    costs: Vec<f64>,
    /// By cell: which share of it is done.
    shares: Vec<f64>,
    /// Work that was done before the start.
    before: f64,
    cells_done: usize,
    running: usize,
}

impl StudyProgress {
    /// Thousandths are fine enough for a bar.
    const LENGTH: f64 = 1000.0;

    /// A line for a study; nothing if it is to be quiet.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(1000) };
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {percent}% of the work, {elapsed} {wide_msg}")
        {
            bar.set_style(style);
        }
        // A cell may take minutes; the clock shows that it goes on.
        bar.enable_steady_tick(Duration::from_millis(200));
        let state = Mutex::new(Work::new(plan.costs.clone()));
        StudyProgress { bar, names: plan.cells.iter().map(|cell| cell.point.name()).collect(), state }
    }

    /// Shows what has happened.
    pub(crate) fn update(&self, event: CellEvent<'_>) {
        let Ok(mut work) = self.state.lock() else { return };
        let name = work.add(event).map(|cell| show::visible(&self.names[cell]).into_owned());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
        self.bar.set_position((work.share() * Self::LENGTH) as u64);
        let left =
            work.left().map(|left| format!("about {} left, ", HumanDuration(left))).unwrap_or_default();
        if let Some(name) = name {
            let (done, all) = (work.cells_done, work.costs.len());
            self.bar.set_message(format!("{left}{done} of {all} cells, {name}"));
        }
    }

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Work {
    fn new(costs: Vec<f64>) -> Self {
        let shares = vec![0.0; costs.len()];
        Work { started: Instant::now(), costs, shares, before: 0.0, cells_done: 0, running: 0 }
    }

    /// Notes what has happened; returns the cell to name.
    fn add(&mut self, event: CellEvent<'_>) -> Option<usize> {
        match event {
            CellEvent::Started(cell) => {
                if self.running == 0 && self.shares.iter().all(|share| *share == 0.0 || *share == 1.0) {
                    self.started = Instant::now();
                    self.before = self.done();
                }
                self.running += 1;
                Some(cell)
            }
            CellEvent::Progress(cell, share) => {
                self.shares[cell] = share.clamp(0.0, 1.0);
                Some(cell)
            }
            CellEvent::Spared(cell) => {
                self.costs[cell] = 0.0;
                self.cells_done += 1;
                None
            }
            CellEvent::Ended(cell, report) => {
                self.shares[cell] = 1.0;
                self.cells_done += 1;
                if !report.reused {
                    self.running = self.running.saturating_sub(1);
                }
                Some(cell)
            }
        }
    }

    fn done(&self) -> f64 {
        self.costs.iter().zip(&self.shares).map(|(cost, share)| cost * share).sum()
    }

    /// Which share of all work is done.
    fn share(&self) -> f64 {
        self.done() / self.costs.iter().sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// How long the rest takes at the speed so far; `None` while that says little.
    fn left(&self) -> Option<Duration> {
        /// Before this share of the work the first cells say too little.
        const LITTLE: f64 = 0.02;
        let all: f64 = self.costs.iter().sum();
        let done = self.done() - self.before;
        let is_little = done < LITTLE * (all - self.before);
        let seconds = self.started.elapsed().as_secs_f64() * (all - self.done()).max(0.0) / done;
        if is_little || !seconds.is_finite() { None } else { Some(Duration::from_secs_f64(seconds)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_by_work_and_says_no_time_before_it_can() {
        let mut work = Work::new(vec![1.0, 98.0, 1.0, 50.0]);
        work.add(CellEvent::Spared(3));
        work.add(CellEvent::Started(0));
        assert_eq!((work.share(), work.left()), (0.0, None), "nothing is known at the start");
        work.add(CellEvent::Progress(0, 1.0));
        assert_eq!((work.share(), work.left()), (0.01, None), "one small cell of a large study");
        work.add(CellEvent::Progress(1, 0.5));
        std::thread::sleep(Duration::from_millis(5));
        let elapsed = work.started.elapsed();
        let left = work.left().unwrap();
        assert_eq!((work.share(), work.cells_done), (0.5, 1));
        assert!(left >= elapsed && left < 2 * work.started.elapsed(), "as long as until here");
    }
}
