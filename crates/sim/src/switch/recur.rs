//! How the state of a switch recurs: what each field of it means to the [walk](netloom_units::recurrence).

use netloom_units::Time;
use netloom_units::recurrence::Walk;

use crate::protocol::numbers_of;
use crate::switch::Switch;

impl Switch {
    /// The switch must have come to `now`.
    pub(crate) fn recur(&mut self, now: Time, walk: &mut Walk) {
        let Switch {
            ports,
            path_selector,
            draws,
            row: _,
            // They save time only.
            next_hops: _,
            epoch,
            random,
            protocols,
            control_sent,
            control_received,
            duties: _,
            sampler,
            gap_monitor,
            last_event,
            // It stays as it is.
            last_event_before: _,
        } = self;
        ports.recur(now, numbers_of, walk);
        // As long as there are no choices, unless these recur: the search sees to that.
        path_selector.recur(walk);
        walk.stream(draws);
        walk.count(*epoch);
        walk.stream(random);
        if !protocols.recurs() {
            walk.refuse("a protocol that keeps something at switches");
        }
        walk.sum(control_sent);
        walk.sum(control_received);
        if sampler.is_some() || gap_monitor.is_some() {
            walk.refuse("samples, traces, and gaps that are measured at switches");
        }
        walk.last(last_event);
    }
}
