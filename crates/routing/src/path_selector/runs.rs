//! The flows that a switch remembers: the present run of each, and how many flowlets have begun.

use netloom_units::Time;

use crate::granularity::{Flows, Limits, each};
use crate::header::{FlowKey, FlowRef, Hop, View};
use crate::idle_timeout::{IdleTimeoutTable, LastSeen};
use crate::scheme::Routing;

/// The flows that a switch remembers.
#[derive(Clone, Debug)]
pub(crate) struct FlowRuns {
    flows: Flows,
    /// How many flowlets it has seen of which flow, at a switch that distinguishes flowlets.
    flowlets: Option<Box<IdleTimeoutTable<Begun>>>,
}

/// Flowlets of a flow that have begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    last: Time,
    flowlets: u32,
}

impl LastSeen for Begun {
    fn last(&self) -> Time {
        self.last
    }
}

/// Flows of which a switch always remembers how many flowlets have begun.
const FEW: usize = 1024;

/// How many times as long as a path is kept, as flows with one flowlet after the other are better counted on.
const PATIENCE: u64 = 4;

impl FlowRuns {
    /// At a switch that remembers none.
    pub(super) fn none() -> Self {
        FlowRuns { flows: Flows::None, flowlets: None }
    }

    /// None has passed yet.
    pub(super) fn new(scheme: &Routing, limits: Limits) -> Self {
        let table = |memory: Time| IdleTimeoutTable::new(FEW, Time(memory.0.saturating_mul(PATIENCE)));
        let flowlets = scheme.granularity.memory().map(|memory| Box::new(table(memory)));
        FlowRuns { flows: scheme.granularity.at_switch(limits), flowlets }
    }

    /// The runs are no more.
    pub(super) fn forget(&mut self, scheme: &Routing, limits: Limits) {
        if !matches!(self.flows, Flows::None) {
            self.flows = scheme.granularity.at_switch(limits);
        }
    }

    /// Whether it remembers any, or counts flowlets.
    #[inline(always)]
    pub(crate) fn keeps_any(&self) -> bool {
        !matches!(self.flows, Flows::None) || self.flowlets.is_some()
    }

    /// A packet of a flow passes: its hop, if it continues the present run.
    #[inline]
    pub(crate) fn kept(&mut self, flow: FlowRef, now: Time, payload: u32) -> Option<Hop> {
        each!(&mut self.flows, table => table.kept(flow, now, payload), None)
    }

    /// Whether a flow is remembered or can be.
    #[inline]
    pub(crate) fn has_room(&mut self, flow: FlowRef, now: Time) -> bool {
        each!(&mut self.flows, table => table.has_room(flow, now), true)
    }

    /// The hop of the run before, as a packet passes that does not continue it.
    pub(crate) fn before(&mut self, flow: FlowRef, now: Time) -> Option<Hop> {
        each!(&mut self.flows, table => table.before(flow, now), None)
    }

    /// A run of the flow's packets begins on this hop.
    pub(crate) fn keep(&mut self, flow: FlowRef, hop: Hop, payload: u32, view: &mut impl View) {
        let now = view.now();
        each!(&mut self.flows, table => table.keep(flow, hop, now, payload), ());
        if let Some(flowlets) = &mut self.flowlets {
            let silent = flowlets.make_room(flow.key, now);
            if !silent.is_empty() {
                view.flowlets(silent.into_iter().map(|(flow, begun)| (flow, begun.flowlets)).collect());
            }
            let begun = flowlets.get_or_insert_with(flow.key, || Begun { last: now, flowlets: 0 });
            *begun = Begun { last: now, flowlets: begun.flowlets + 1 };
        }
    }

    /// By flow, in no order, the flowlets that have begun and have not been passed to [`View::flowlets`]; none if flowlets are not distinguished
    /// here.
    pub(super) fn take_flowlets(&mut self) -> Option<Vec<(FlowKey, u32)>> {
        let flowlets = self.flowlets.as_mut()?;
        Some(flowlets.take_all().map(|(flow, begun)| (flow, begun.flowlets)).collect())
    }
}
