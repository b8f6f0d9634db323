//! A scenario whose run is driven from outside: flows start and completions are reported while it runs.

use std::time::{Duration, Instant};

use netloom_record::{Performance, Records, Status, Summary};
use netloom_sim::{Completion, Driven, Finished, Order, Ticket};
use netloom_units::{Invalid, Time};
use netloom_workload::ScaleUpWiring;

use crate::document::{Node, apply_override};
use crate::run::{Ran, Run, RunError, prepare, summary_options, warned};
use crate::scenario::Scenario;
use crate::source::{Problem, Problems};

/// A run that is driven from outside, from its document to its records.
///
/// ```
/// use netloom_scenario::{DrivenRun, Node, Source};
/// use netloom_sim::Order;
/// use netloom_units::{Bytes, Time};
///
/// let text = "[topology]\nkind = \"fat-tree\"\nk = 4\n";
/// let mut run = DrivenRun::new(Node::parse(&Source::new("example.toml", text)).unwrap()).unwrap();
/// let order = Order { src: 0, dst: 9, bytes: Bytes(100_000), at: Time::ZERO, class: 0 };
/// let request = run.go(|run| run.start(order)).unwrap();
/// let done = run.go(|run| run.next_completion(Time::MAX, |_| true)).unwrap();
/// assert_eq!(done.ticket, request);
/// assert_eq!(run.finish().unwrap().ran.summary.flows.completed, 1);
/// ```
#[derive(Debug)]
pub struct DrivenRun {
    run: Driven,
    scenario: Scenario,
    warnings: Vec<String>,
    switches: u32,
    spent: Duration,
    /// How many of the next waits for a completion are assumed to last as long as the last one that was timed.
    untimed: u32,
}

/// A wait for a completion below this is short: reading the clock before and after it takes a noticeable share of it.
const SHORT_WAIT: Duration = Duration::from_micros(20);
/// How many waits after a short one are assumed to last as long, and are not timed.
const UNTIMED: u32 = 15;

/// What a driven run leaves.
#[derive(Debug)]
pub struct DrivenResult {
    /// The scenario with every default filled in.
    pub scenario: String,
    /// Summary and cost.
    pub ran: Ran,
    /// What was seen.
    pub records: Records,
}

impl DrivenRun {
    /// Makes the nodes; no time has passed yet. A scenario without a workload has none (`idle`).
    ///
    /// # Errors
    /// If the scenario is wrong, or says when the run ends: that is up to the program that drives it.
    pub fn new(mut document: Node) -> Result<Self, Problems> {
        if document.at(["workload"]).is_none() {
            apply_override(&mut document, "workload=\"idle\"")?;
        }
        let scenario = Scenario::read(&document)?;
        let scale_up = scenario.servers.as_ref().and_then(|servers| servers.scale_up);
        if scale_up.is_some_and(|scale_up| scale_up.wiring == ScaleUpWiring::Ideal) {
            let message = "expected \"switch\" or \"all-to-all\" in a run that is driven: an ideal scale-up network does not carry messages that the driver starts";
            let place = document.nearest_place(["servers", "scale_up"]);
            return Err(Problem::new("servers.scale_up.wiring", message).at(&place).into());
        }
        if scenario.measure.until.is_some() {
            let message = "expected none in a run that is driven: it goes as far as its driver lets it";
            let place = document.nearest_place(["measure", "until"]);
            return Err(Problem::new("measure.until", message).at(&place).into());
        }
        let ready = prepare(&scenario, &document)?;
        if ready.analytical.is_some() {
            let message =
                "expected \"packets\" in a run that is driven: an analytical network has no flows to start";
            let place = document.nearest_place(["workload", "network"]);
            return Err(Problem::new("workload.network", message).at(&place).into());
        }
        let Run::Packets(simulation) = ready.run else {
            let message = "expected \"packets\" in a run that is driven: its driver is told of completions while packets are under way";
            return Err(Problem::new("detail", message).at(&document.nearest_place(["detail"])).into());
        };
        let (warnings, switches) = (ready.warnings, ready.switches);
        let (run, spent) = (simulation.drive(), Duration::ZERO);
        Ok(DrivenRun { run, scenario, warnings, switches, spent, untimed: 0 })
    }

    /// The run as it stands.
    pub fn run(&self) -> &Driven {
        &self.run
    }

    /// Lets something happen in the run.
    pub fn go<T>(&mut self, step: impl FnOnce(&mut Driven) -> T) -> T {
        let started = Instant::now();
        let result = step(&mut self.run);
        self.spent += started.elapsed();
        result
    }

    // What programs call for every message is inlined into them, as this crate is not optimised.

    /// Starts a flow. That is so little work that the clock, which [`Self::go`] looks at twice, would take as long.
    ///
    /// # Errors
    /// As [`Driven::start`].
    #[inline]
    pub fn start(&mut self, order: Order) -> Result<Ticket, Invalid> {
        self.run.start(order)
    }

    /// The next completion before `until`, as [`Driven::next_completion`] has it.
    #[inline]
    pub fn next_completion(&mut self, until: Time) -> Option<Completion> {
        // Handing one on is no work either.
        if self.run.has_completion() {
            return self.run.next_completion(until, |_| true);
        }
        if let Some(left) = self.untimed.checked_sub(1) {
            self.untimed = left;
            return self.run.next_completion(until, |_| true);
        }
        let before = self.spent;
        let completion = self.go(|run| run.next_completion(until, |_| true));
        let wait = self.spent - before;
        if wait < SHORT_WAIT {
            self.spent += wait * UNTIMED;
            self.untimed = UNTIMED;
        }
        completion
    }

    /// Ends the run here and sums it up.
    ///
    /// # Errors
    /// If it comes to no good end, or a packet was lost track of.
    pub fn finish(self) -> Result<DrivenResult, RunError> {
        let DrivenRun { run, scenario, warnings, switches, spent, .. } = self;
        let Finished { records, skipped, .. } = run.finish()?;
        let summary = Summary::new(&records, &summary_options(&scenario), Status::Complete)?;
        let summary = warned(&scenario, warnings, switches, summary, &records);
        let hops = records.totals.packet_hops;
        let performance = Performance {
            skipped,
            ..Performance::new(env!("CARGO_PKG_VERSION"), 1, spent.as_secs_f64(), hops)
        };
        let scenario = scenario.to_toml().map_err(Problems::from)?;
        Ok(DrivenResult { scenario, ran: Ran { summary, performance }, records })
    }
}
