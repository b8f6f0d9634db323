//! Which port of a node begins its next transmission first, while ports are advanced in order.

use netloom_units::Time;

/// Ports that are compared with each other first.
const GROUP: usize = 8;

/// The next departure of every port in order of (time, port): the first one of each group of ports is kept, so that of what changes at a port only
/// its group is looked at, and the first one of all, for which is asked far more often.
#[derive(Clone, Debug)]
pub(super) struct Departures {
    /// By group: when its ports begin to send next, [`Time::MAX`] for those that have nothing ready.
    groups: Vec<[Time; GROUP]>,
    /// By group: its first departure and the port's place in the group.
    firsts: Vec<(Time, usize)>,
    /// The first departure of all, and its port.
    first: (Time, usize),
}

impl Departures {
    /// Of ports that begin to send at these instants.
    pub(super) fn new(ports: impl ExactSizeIterator<Item = Time>) -> Self {
        let mut departures = Departures {
            groups: vec![[Time::MAX; GROUP]; ports.len().div_ceil(GROUP)],
            firsts: vec![(Time::MAX, 0); ports.len().div_ceil(GROUP)],
            first: (Time::MAX, 0),
        };
        departures.set_all(ports);
        departures
    }

    /// All ports begin to send at these instants.
    pub(super) fn set_all(&mut self, ports: impl Iterator<Item = Time>) {
        for (port, at) in ports.enumerate() {
            self.groups[port / GROUP][port % GROUP] = at;
        }
        for (first, group) in self.firsts.iter_mut().zip(&self.groups) {
            *first = first_of(group);
        }
        self.find_first();
    }

    /// A port begins to send next at an instant, [`Time::MAX`] if it has nothing ready.
    #[inline(always)]
    pub(super) fn set(&mut self, port: usize, at: Time) {
        let group = &mut self.groups[port / GROUP];
        group[port % GROUP] = at;
        self.firsts[port / GROUP] = first_of(group);
        self.find_first();
    }

    /// The port that begins to send first, if that is before `until`.
    #[inline(always)]
    pub(super) fn first_before(&self, until: Time) -> Option<usize> {
        (self.first.0 < until).then_some(self.first.1)
    }

    /// Looks for the first one of the groups' first departures.
    #[inline(always)]
    fn find_first(&mut self) {
        self.first = (Time::MAX, 0);
        for (group, &(at, place)) in self.firsts.iter().enumerate() {
            if at < self.first.0 {
                self.first = (at, group * GROUP + place);
            }
        }
    }
}

/// The first departure of a group and its place there; of several at one instant the first place.
#[inline(always)]
fn first_of(group: &[Time; GROUP]) -> (Time, usize) {
    let mut first = (group[0], 0);
    for (place, &at) in group.iter().enumerate().skip(1) {
        if at < first.0 {
            first = (at, place);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The first one in order of (time, port), whatever has changed before.
        #[test]
        fn the_first_departure_is_that_of_the_least_time_and_port(
            ports in 1usize..70,
            changes in prop::collection::vec((0usize..70, 0u64..6), 0..60),
            until in 0u64..7,
        ) {
            let mut expected = vec![Time::MAX; ports];
            let mut departures = Departures::new(expected.iter().copied());
            for (port, at) in changes {
                // 5: nothing is ready.
                let at = if at == 5 { Time::MAX } else { Time(at) };
                departures.set(port % ports, at);
                expected[port % ports] = at;
                let first = (0..ports).map(|port| (expected[port], port)).min().unwrap();
                let first = (first.0 < Time(until)).then_some(first.1);
                prop_assert_eq!(departures.first_before(Time(until)), first);
            }
            let mut rebuilt = Departures::new((0..ports).map(|_| Time(1)));
            rebuilt.set_all(expected.iter().copied());
            prop_assert_eq!(rebuilt.first_before(Time(until)), departures.first_before(Time(until)));
        }
    }
}
