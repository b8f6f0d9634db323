//! The cut links of a switch of which it notifies sources.

use netloom_fabric::Ports;
use netloom_topology::{NodeId, PortId};
use netloom_units::Time;

use crate::protocol::state::SwitchState;
use crate::world::World;

/// The ports of whose cut links a switch notifies sources.
#[derive(Debug)]
pub(crate) struct NotifiedCuts {
    /// Port, from, until; in order of `from`.
    cuts: Box<[(PortId, Time, Time)]>,
    /// How many of them have come.
    met: usize,
}

impl SwitchState for NotifiedCuts {
    fn recurs(&self) -> bool {
        self.cuts.is_empty()
    }

    fn new(world: &World, id: NodeId) -> Self {
        let mut cuts = world.wiring.faults.signals(&world.network, id);
        cuts.sort_unstable_by_key(|&(port, from, _)| (from, port));
        NotifiedCuts { cuts, met: 0 }
    }
}

impl NotifiedCuts {
    /// Whether it never notifies a source.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    pub(crate) fn is_cut(&self, port: PortId, now: Time) -> bool {
        self.cuts.iter().any(|&(of, from, until)| of == port && from <= now && now < until)
    }

    /// The next cut, if it comes by `now`.
    pub(crate) fn take_next(&mut self, now: Time) -> Option<(PortId, Time)> {
        let &(port, from, _) = self.cuts.get(self.met)?;
        (from <= now).then(|| {
            self.met += 1;
            (port, from)
        })
    }

    /// Whether what waits at a port whose link is cut from this instant on goes back to its sources.
    pub(crate) fn begins(&self, port: PortId, cut: Time) -> bool {
        self.cuts.iter().any(|&(of, from, _)| (of, from) == (port, cut))
    }

    /// When the next cut comes for which something waits; `Time::MAX` if none does.
    pub(crate) fn next_at(&self, ports: &Ports) -> Time {
        let mut to_come = self.cuts[self.met..].iter();
        to_come.find(|&&(port, ..)| ports.queued(port) > 0).map_or(Time::MAX, |&(_, from, _)| from)
    }
}
