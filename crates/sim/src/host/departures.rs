//! When a flow's packets leave, where that matters: gaps are counted, and stretched.

use netloom_record::GapRecord;
use netloom_routing::FlowKey;
use netloom_transport::Transport;
use netloom_transport::shaping::hf2t::{Hf2t, Stretcher, Training};
use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use crate::observe::intervals::Intervals;
use crate::world::World;

/// What a host knows of its flows' departures.
#[derive(Debug)]
pub(crate) struct Departed {
    /// What it has learnt of its gaps, where they are stretched.
    pub(crate) training: Option<Training>,
    /// The gaps of flows that ended and have not been handed in, if they are counted.
    pub(crate) records: Vec<GapRecord>,
}

impl Recur for Departed {
    fn recur(&mut self, walk: &mut Walk) {
        let Departed { training, records } = self;
        if training.is_some() {
            walk.refuse("gaps between packets that hosts stretch");
        }
        walk.count(records.len());
    }
}

impl Recur for Departures {
    fn recur(&mut self, walk: &mut Walk) {
        let Departures { intervals, stretcher } = self;
        intervals.recur(walk);
        if stretcher.is_some() {
            walk.refuse("gaps between packets that hosts stretch");
        }
    }
}

impl Departed {
    pub(crate) fn new(transport: &Transport) -> Box<Self> {
        let training = transport.shaping.facts().stretching.map(Training::new);
        Box::new(Departed { training, records: Vec::new() })
    }
}

/// The departures of one flow.
#[derive(Debug)]
pub(crate) struct Departures {
    intervals: Intervals,
    stretcher: Option<Stretcher>,
}

impl Departures {
    /// Those of a flow that has sent nothing; `None` if nobody wants to know.
    pub(crate) fn begin(world: &World, base_rtt: Time) -> Option<Box<Self>> {
        let stretcher = world.transport.shaping.facts().stretching.map(Stretcher::new);
        let gaps = &world.gaps;
        let is_wanted = gaps.are_counted || gaps.flowlet.is_some() || stretcher.is_some();
        let departures = Departures { intervals: Intervals::new(base_rtt), stretcher };
        is_wanted.then(|| Box::new(departures))
    }

    /// Runs of packets that gaps separate.
    pub(crate) fn flowlets(&self) -> u32 {
        self.intervals.flowlets
    }

    /// Gaps that were stretched.
    pub(crate) fn stretched(&self) -> u32 {
        self.stretcher.as_ref().map_or(0, |stretcher| stretcher.stretched)
    }

    /// The next packet could leave at `now`; returns when it shall.
    pub(crate) fn leaves_at(&mut self, (config, host): (&Hf2t, &Training), now: Time) -> Time {
        match (&mut self.stretcher, self.intervals.last()) {
            (Some(stretcher), Some(last)) => stretcher.leaves_at(config, host, last, now),
            _ => now,
        }
    }

    /// A packet leaves at `now`; the host learns from it if it stretches gaps.
    #[inline(never)]
    pub(crate) fn on_sent(&mut self, world: &World, host: Option<&mut Training>, now: Time) {
        let gaps = &world.gaps;
        let gap = self.intervals.pass(now, gaps.flowlet.as_ref(), gaps.are_counted);
        if let (Some(stretcher), Some(config), Some(host)) =
            (&mut self.stretcher, world.transport.shaping.facts().stretching, host)
        {
            stretcher.on_sent(config, host, gap, now);
        }
    }

    /// The gaps as rows of a table.
    pub(crate) fn records(&self, src: u32, flow: u32) -> impl Iterator<Item = GapRecord> + '_ {
        self.intervals.records(FlowKey { src, flow })
    }
}
