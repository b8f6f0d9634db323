//! When a flow's packets leave, where somebody asks: gaps are counted, and stretched.

use netloom_record::GapRecord;
use netloom_routing::Granularity;
use netloom_transport::shaping::hf2t::{Hf2t, Stretcher, Training};
use netloom_transport::{Shaping, Transport};
use netloom_units::{Histogram, Time};

use crate::model::World;

/// What a run wants to know of departures.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// A gap of this length begins a new flowlet.
    pub(crate) flowlet: Option<Time>,
    /// Whether gaps are counted by their length.
    pub(crate) are_counted: bool,
}

impl Gaps {
    /// The least gap behind which routing, or else the host, sees a new flowlet.
    pub(crate) fn new(granularity: &Granularity, transport: &Transport, are_counted: bool) -> Self {
        let flowlet = match (granularity, &transport.shaping) {
            (Granularity::Flowlet(flowlet), _) => Some(flowlet.longest_kept() + Time(1)),
            (_, Shaping::Hf2t(hf2t)) => hf2t.flowlet,
            _ => None,
        };
        Gaps { flowlet, are_counted }
    }
}

/// What a host knows of its flows' departures.
#[derive(Debug)]
pub(crate) struct Departed {
    /// What it has learnt of its gaps, where they are stretched.
    pub(super) training: Option<Training>,
    /// The gaps of flows that ended, if they are counted.
    pub(crate) records: Vec<GapRecord>,
}

impl Departed {
    pub(super) fn new(transport: &Transport) -> Box<Self> {
        let training = match &transport.shaping {
            Shaping::Hf2t(config) => Some(Training::new(config)),
            Shaping::None(_) | Shaping::Paced(_) => None,
        };
        Box::new(Departed { training, records: Vec::new() })
    }
}

/// The departures of one flow.
#[derive(Debug)]
pub(super) struct Departures {
    last: Option<Time>,
    pub(super) flowlets: u32,
    base_rtt: Time,
    /// By whole base round-trip times, and within them by length.
    counted: Vec<(u32, Histogram<4>)>,
    stretcher: Option<Stretcher>,
}

impl Departures {
    /// Those of a flow that has sent nothing; `None` if nobody wants to know.
    pub(super) fn begin(world: &World, base_rtt: Time) -> Option<Box<Self>> {
        let stretcher = match &world.transport.shaping {
            Shaping::Hf2t(config) => Some(Stretcher::new(config)),
            Shaping::None(_) | Shaping::Paced(_) => None,
        };
        let gaps = world.gaps;
        let is_wanted = gaps.are_counted || gaps.flowlet.is_some() || stretcher.is_some();
        let departures = Departures { last: None, flowlets: 0, base_rtt, counted: Vec::new(), stretcher };
        is_wanted.then(|| Box::new(departures))
    }

    /// Gaps that were stretched.
    pub(super) fn stretched(&self) -> u32 {
        self.stretcher.as_ref().map_or(0, |stretcher| stretcher.stretched)
    }

    /// The next packet could leave at `now`; returns when it shall.
    pub(super) fn leaves_at(&mut self, (config, host): (&Hf2t, &Training), now: Time) -> Time {
        match (&mut self.stretcher, self.last) {
            (Some(stretcher), Some(last)) => stretcher.leaves_at(config, host, last, now),
            _ => now,
        }
    }

    /// A packet leaves at `now`; the host learns from it if it stretches gaps.
    #[inline(never)]
    pub(super) fn on_sent(&mut self, world: &World, host: Option<&mut Training>, now: Time) {
        let gaps = world.gaps;
        let gap = self.last.replace(now).map(|last| now - last);
        // The first packet begins the first flowlet.
        let begins = gaps.flowlet.is_some_and(|least| gap.is_none_or(|gap| gap >= least));
        self.flowlets += u32::from(begins);
        if let Some(gap) = gap.filter(|_| gaps.are_counted) {
            self.count(gap);
        }
        if let (Some(stretcher), Shaping::Hf2t(config), Some(host)) =
            (&mut self.stretcher, &world.transport.shaping, host)
        {
            stretcher.on_sent(config, host, gap, now);
        }
    }

    fn count(&mut self, gap: Time) {
        let rtts = (gap.0 / self.base_rtt.0.max(1)).min(u64::from(u32::MAX)) as u32;
        let at = match self.counted.binary_search_by_key(&rtts, |&(rtts, _)| rtts) {
            Ok(at) => at,
            Err(at) => {
                self.counted.insert(at, (rtts, Histogram::default()));
                at
            }
        };
        self.counted[at].1.add(gap.0);
    }

    /// The gaps as rows of a table.
    pub(super) fn records(&self, src: u32, flow: u32) -> impl Iterator<Item = GapRecord> + '_ {
        self.counted.iter().flat_map(move |(base_rtts, gaps)| {
            gaps.bins().map(move |(range, count)| GapRecord {
                src,
                flow,
                from: Time(range.start),
                until: Time(range.end),
                base_rtt: self.base_rtt,
                base_rtts: *base_rtts,
                count,
            })
        })
    }
}
