//! Ports are advanced to an instant: every transmission that begins before it starts.

use netloom_units::{Time, prefetch_whole};

use super::{At, KnownOfPorts, Ports};
use crate::port::Wire;
use crate::rules::{CreditsOfChannels, Known, PlainCredits, Rules};

impl Ports {
    /// Starts every transmission of one port that begins before `until`.
    ///
    /// While an input buffer is paused or a packet waits at its input, [`Self::settle`] must have been called for that instant.
    #[inline(always)]
    pub fn advance_port(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        let state = &self.ports[usize::from(port)];
        if state.occupied == 0 || state.free_at >= until {
            return;
        }
        if rules.is_lossless {
            self.advance_port_lossless(port, until, rules, wire);
            return;
        }
        self.output(port, false, At::new(until, rules, wire)).start_all_before(until);
    }

    /// [`Self::advance_port`] under flow control.
    #[inline(always)]
    pub(super) fn advance_under_flow_control(
        &mut self,
        port: u16,
        until: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        if self.starts_before(port, until) {
            self.advance_port_lossless(port, until, rules, wire);
        }
    }

    /// Whether something starts at a port before `until`, of what waited when the port was last advanced.
    #[inline(always)]
    pub(super) fn starts_before(&self, port: u16, until: Time) -> bool {
        let state = &self.ports[usize::from(port)];
        state.ready() != 0 && state.free_at < until
    }

    /// [`Self::advance_port`] under flow control, by code for what is known.
    #[inline(always)]
    pub(super) fn advance_port_lossless(
        &mut self,
        port: u16,
        until: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) {
        match self.known {
            KnownOfPorts::PlainCredits => self.advance_known::<PlainCredits>(port, until, rules, wire),
            KnownOfPorts::CreditsOfChannels => {
                self.advance_known::<CreditsOfChannels>(port, until, rules, wire);
            }
            KnownOfPorts::Nothing => self.advance_anything(port, until, rules, wire),
        }
    }

    #[inline(never)]
    fn advance_known<K: Known>(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        debug_assert!(K::IS_NEVER_ENTANGLED && !self.is_ordered);
        let mut output = self.output(port, true, At::new(until, rules, wire));
        output.transmitter.know::<K>();
        output.start_all_before(until);
    }

    #[inline(never)]
    fn advance_anything(&mut self, port: u16, until: Time, rules: &Rules, wire: &mut impl Wire) {
        let index = usize::from(port);
        while self.is_ordered {
            let state = &self.ports[index];
            if state.ready() == 0 || state.free_at >= until {
                return;
            }
            self.start_unsettled(port, rules, wire);
        }
        self.output(port, true, At::new(until, rules, wire)).start_all_before(until);
    }

    /// [`Self::start_ordered`] where the other ports have not come to that instant: at hosts, which have no others.
    #[cold]
    #[inline(never)]
    fn start_unsettled(&mut self, port: u16, rules: &Rules, wire: &mut impl Wire) {
        self.start_ordered(port, rules, wire);
    }

    /// Starts every transmission of the node that begins before `until`; returns when the next one will begin.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub fn advance(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) -> Option<Time> {
        self.settle(until, rules, wire);
        let next = match self.known {
            KnownOfPorts::PlainCredits => self.advance_waiting_known::<PlainCredits>(until, rules, wire),
            KnownOfPorts::CreditsOfChannels => {
                self.advance_waiting_known::<CreditsOfChannels>(until, rules, wire)
            }
            KnownOfPorts::Nothing => {
                self.advance_waiting(|ports, index| ports.advance_port(index as u16, until, rules, wire))
            }
        };
        if rules.is_lossless && self.buffers.accounts().is_some_and(|accounts| accounts.returns.is_due()) {
            self.return_credits(until, wire);
        }
        (next != Time::MAX).then_some(next)
    }

    /// Advances every port at which something may be ready to go, each by a call of `advance`; returns when the next transmission will begin.
    #[inline(always)]
    fn advance_waiting(&mut self, mut advance: impl FnMut(&mut Self, usize)) -> Time {
        let mut next = Time::MAX;
        for word in 0..self.waiting.len() {
            let mut bits = self.waiting[word];
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                advance(self, index);
                let state = &self.ports[index];
                if state.ready() != 0 {
                    next = next.min(state.free_at);
                } else {
                    self.waiting[word] &= !(1 << (index % 64));
                }
            }
        }
        next
    }

    /// [`Self::advance_waiting`] by code for what is known, without a call for each port.
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn advance_waiting_known<K: Known>(&mut self, until: Time, rules: &Rules, wire: &mut impl Wire) -> Time {
        self.advance_waiting(|ports, index| {
            let mut output = ports.output(index as u16, true, At::new(until, rules, wire));
            output.transmitter.know::<K>();
            output.start_all_before(until);
        })
    }

    /// Prefetches all ports and where their queues are.
    #[inline]
    pub fn prefetch(&self) {
        self.ports.iter().for_each(prefetch_whole);
        self.queues.prefetch();
    }

    /// The same for the first port.
    #[inline]
    pub fn prefetch_first_port(&self) {
        self.ports.first().into_iter().for_each(prefetch_whole);
        self.queues.prefetch_first_fifo();
    }

    /// Prefetches the packet that each port sends next where one waits: it has long left the cache.
    #[inline]
    pub fn prefetch_first(&self) {
        for (&bits, ports) in self.waiting.iter().zip(self.ports.chunks(64)) {
            let mut bits = bits;
            while bits != 0 {
                if let Some(port) = ports.get(bits.trailing_zeros() as usize) {
                    self.queues.prefetch_first(port.number(port.first_occupied()));
                }
                bits &= bits - 1;
            }
        }
    }
}
