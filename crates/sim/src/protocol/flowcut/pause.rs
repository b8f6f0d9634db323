//! The signals of switches to a flow: to pause, and to resume.

use netloom_units::Time;

use crate::protocol::state::HostState;

/// The signals that a flow has got from switches.
#[derive(Debug)]
pub(crate) struct FlowPause {
    /// Packets that it may still send; `u32::MAX` where it may send what it likes.
    pub(crate) credit: u32,
    /// Since when it is stopped, and until when at the longest.
    pub(crate) span: Option<(Time, Time)>,
    /// By which switches of its path.
    pub(crate) by: Vec<u32>,
    /// Until everything before the second packet is acknowledged, it runs at most the first number ahead.
    pub(crate) ahead: Option<(u32, u32)>,
    /// It has got an odd number of signals to run ahead.
    pub(crate) is_turned: bool,
    pub(crate) stops: u32,
    pub(crate) stopped_for: Time,
}

/// How long a source waits for the signal to resume.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PauseLimit {
    /// A flow that its first switch has stopped.
    Flow { slot: u32, flow: u32 },
    /// A traffic class.
    Class { class: u8 },
}

/// Why traffic classes are stopped.
#[derive(Debug, Default)]
pub(crate) struct PausedClasses(pub(crate) Vec<PausedClass>);

impl HostState for PausedClasses {
    fn recurs(&self) -> bool {
        self.0.is_empty()
    }
}

/// A flow because of which its traffic class is stopped.
#[derive(Debug)]
pub(crate) struct PausedClass {
    pub(crate) class: u8,
    pub(crate) flow: u32,
    pub(crate) until: Time,
}

impl FlowPause {
    pub(crate) fn new() -> Self {
        let (span, ahead, stopped_for) = (None, None, Time::ZERO);
        FlowPause { credit: u32::MAX, span, by: Vec::new(), ahead, is_turned: false, stops: 0, stopped_for }
    }

    /// Whether a flow may send packet `next` while `oldest` is the oldest one not acknowledged.
    pub(crate) fn may_send(&self, next: u32, oldest: u32) -> bool {
        let is_near = |(most, end)| oldest >= end || next - oldest <= most;
        self.credit > 0 && self.ahead.is_none_or(is_near)
    }

    /// A packet of the flow leaves.
    pub(crate) fn on_sent(&mut self) {
        if self.span.is_some() && self.credit != u32::MAX {
            self.credit -= 1;
        }
    }

    /// A switch stops it: the one that is `by` channels from the source.
    pub(crate) fn stop(&mut self, now: Time, until: Time, credit: u32, by: u32) {
        self.stops += u32::from(self.span.is_none());
        let since = self.span.map_or(now, |(since, _)| since);
        (self.span, self.credit) = (Some((since, until)), self.credit.min(credit));
        if !self.by.contains(&by) {
            self.by.push(by);
        }
    }

    /// A switch lets it go on. Whether all have.
    pub(crate) fn release(&mut self, now: Time, by: u32) -> bool {
        self.by.retain(|&other| other != by);
        if self.by.is_empty() {
            self.go_on(now);
        }
        self.by.is_empty()
    }

    pub(crate) fn go_on(&mut self, now: Time) {
        if let Some((since, _)) = self.span.take() {
            self.stopped_for += now - since;
        }
        self.credit = u32::MAX;
        self.by.clear();
    }

    /// From packet `next` on it runs ahead of what is in flight, by at most `most` packets.
    pub(crate) fn run_ahead(&mut self, most: u32, next: u32) {
        (self.ahead, self.is_turned) = (Some((most, next)), !self.is_turned);
    }

    /// How often it was stopped, and for how long in all; a stop that lasts counts if it is known until when.
    pub(crate) fn counts(&self, now: Option<Time>) -> (u32, Time) {
        let lasting = self.span.zip(now).map_or(Time::ZERO, |((since, _), now)| now - since);
        (self.stops, self.stopped_for + lasting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_flow_has_its_credit_and_counts_the_time_until_it_goes_on() {
        let mut pause = FlowPause::new();
        pause.on_sent();
        assert_eq!(pause.credit, u32::MAX);
        pause.stop(Time(10), Time(1000), 2, 1);
        pause.on_sent();
        assert_eq!(pause.credit, 1);
        // A repeated signal starts no second pause.
        pause.stop(Time(20), Time(1010), 0, 1);
        assert_eq!((pause.credit, pause.counts(Some(Time(50)))), (0, (1, Time(40))));
        pause.go_on(Time(110));
        assert_eq!((pause.credit, pause.counts(None)), (u32::MAX, (1, Time(100))));
    }
    #[test]
    fn a_flow_goes_on_when_every_switch_that_has_stopped_it_says_so() {
        let mut pause = FlowPause::new();
        pause.stop(Time(10), Time(1000), 0, 1);
        pause.stop(Time(20), Time(1010), 0, 3);
        assert!(!pause.release(Time(30), 1) && !pause.may_send(5, 0));
        assert!(pause.release(Time(40), 3) && pause.may_send(5, 0));
        assert_eq!(pause.counts(None), (1, Time(30)));
    }

    #[test]
    fn a_flow_runs_ahead_of_what_is_in_flight_by_so_much_only() {
        let mut pause = FlowPause::new();
        pause.stop(Time(10), Time(1000), 0, 1);
        pause.run_ahead(3, 20);
        assert!(pause.is_turned && pause.release(Time(30), 1));
        assert!(pause.may_send(20, 17) && !pause.may_send(21, 17));
        assert!(pause.may_send(90, 20), "what was in flight then has arrived");
    }
}
