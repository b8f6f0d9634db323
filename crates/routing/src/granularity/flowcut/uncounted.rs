//! The packets in flight of flows for which a bounded table has no room.
//!
//! A counting filter: flows share places by their hash, so a place that is not empty says only that some packets of a flow *may* be in flight.

use netloom_topology::PortId;
use netloom_units::Time;

use crate::header::FlowRef;

/// Packets in flight that have no entry, by a hash of their flow.
#[derive(Clone, Debug)]
pub(crate) struct Uncounted {
    packets: Vec<u32>,
    /// The port by which they came, if it is the same one.
    back: Vec<Option<PortId>>,
    last: Vec<Option<Time>>,
    /// Where packets can be lost: how long one may be in flight.
    patience: Option<Time>,
}

impl Uncounted {
    const PLACES: usize = 1024;

    /// Nothing is in flight.
    pub(crate) fn new(patience: Option<Time>) -> Self {
        let (packets, back) = (vec![0; Self::PLACES], vec![None; Self::PLACES]);
        Uncounted { packets, back, last: vec![None; Self::PLACES], patience }
    }

    fn place(flow: FlowRef) -> usize {
        let mixed = (flow.key.name() ^ u64::from(flow.slot) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 54) as usize
    }

    /// One of them passes; it came by port `back`.
    pub(crate) fn count(&mut self, flow: FlowRef, back: PortId, now: Time) {
        let place = Self::place(flow);
        self.back[place] = Some(back).filter(|_| self.packets[place] == 0 || self.back[place] == Some(back));
        self.packets[place] += 1;
        self.last[place] = Some(now);
    }

    /// One of them has come so far; the port by which it came, if that is known.
    pub(crate) fn count_off(&mut self, flow: FlowRef) -> Option<PortId> {
        let place = Self::place(flow);
        self.packets[place] = self.packets[place].checked_sub(1)?;
        self.back[place]
    }

    /// Whether some of a flow may be in flight.
    pub(crate) fn may_hold(&self, flow: FlowRef, now: Time) -> bool {
        let place = Self::place(flow);
        match self.patience {
            None => self.packets[place] > 0,
            Some(patience) => self.last[place].is_some_and(|last| now.saturating_sub(last) <= patience),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::FlowKey;

    const FLOW: FlowRef = FlowRef { key: FlowKey { src: 1, flow: 7 }, slot: 2 };

    #[test]
    fn a_place_knows_the_port_by_which_all_its_packets_came() {
        let mut uncounted = Uncounted::new(None);
        uncounted.count(FLOW, 3, Time(1));
        uncounted.count(FLOW, 3, Time(2));
        assert_eq!(uncounted.count_off(FLOW), Some(3));
        uncounted.count(FLOW, 4, Time(3));
        assert_eq!(uncounted.count_off(FLOW), None, "one came by another port");
        assert!(uncounted.may_hold(FLOW, Time(3)));
        uncounted.count_off(FLOW);
        assert!(!uncounted.may_hold(FLOW, Time(4)));
        uncounted.count(FLOW, 5, Time(5));
        assert_eq!((uncounted.count_off(FLOW), uncounted.count_off(FLOW)), (Some(5), None));
    }

    #[test]
    fn where_packets_can_be_lost_patience_ends() {
        let mut uncounted = Uncounted::new(Some(Time(100)));
        uncounted.count(FLOW, 3, Time(10));
        assert!(uncounted.may_hold(FLOW, Time(110)) && !uncounted.may_hold(FLOW, Time(111)));
    }
}
