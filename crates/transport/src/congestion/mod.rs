//! How much a flow may have in flight, or how fast it may send.

pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
pub mod fixed_window;
pub mod hpcc;
pub mod mp_rdma;
pub mod newreno;
pub mod none;
pub mod pulls;
pub mod qcn;
mod reno;
pub mod swift;
pub mod timely;

use netloom_units::{Bytes, Invalid, Time};

use crate::config::{Congestion, Transport};
use crate::congestion::dcqcn::Gap;
use crate::feedback::Feedback;
use crate::gate::Gate;
use crate::sender::PathFacts;

/// The congestion control of one flow: what moves its gate.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// Nothing does.
    Still,
    NewReno(Box<newreno::State>),
    Cubic(Box<cubic::State>),
    Dctcp(Box<dctcp::State>),
    Dcqcn(Box<dcqcn::State>),
    Hpcc(Box<hpcc::State>),
    Timely(Box<timely::State>),
    Swift(Box<swift::State>),
    Pulls(Box<pulls::State>),
    MpRdma(Box<mp_rdma::State>),
}

impl Control {
    /// The control of a flow that begins at `now`, and its gate.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the first window, which came from 32 bits"
    )]
    pub(crate) fn begin(transport: &Transport, path: PathFacts, now: Time) -> (Self, Gate) {
        let packet = transport.packet_size();
        let mut gate = Gate::new(now);
        let control = match &transport.congestion {
            Congestion::None(_) | Congestion::Qcn(_) => Control::Still,
            Congestion::FixedWindow(config) => {
                gate.set_window(config.bytes(path.bdp(), packet).0);
                Control::Still
            }
            Congestion::NewReno(config) => {
                let state = config.begin(packet);
                gate.set_window(state.window());
                Control::NewReno(Box::new(state))
            }
            Congestion::Cubic(config) => {
                let state = config.begin(packet);
                gate.set_window(state.window());
                Control::Cubic(Box::new(state))
            }
            Congestion::Dctcp(config) => {
                let state = config.begin(packet);
                gate.set_window(state.window());
                Control::Dctcp(Box::new(state))
            }
            Congestion::Pulls(config) => {
                let window = config.window(path.bdp(), packet);
                gate.set_credit(if config.request_to_send { 0 } else { window });
                Control::Pulls(Box::default())
            }
            Congestion::MpRdma(config) => {
                let state = config.begin(path.bdp(), packet, path.base_rtt, now);
                gate.set_credit(state.window() as u32);
                Control::MpRdma(Box::new(state))
            }
            Congestion::Dcqcn(config) => {
                if let Some(times) = config.window_bdp {
                    gate.set_window(products(times, path.bdp(), packet).0);
                }
                let state = dcqcn::State::new(config, path.rate);
                match config.gap() {
                    Gap::Paid => gate.set_rate(now, state.rate()),
                    Gap::Fixed => gate.space_by_rate(state.rate()),
                }
                Control::Dcqcn(Box::new(state))
            }
            Congestion::Hpcc(config) => {
                let state = hpcc::State::new(config, path.rate, path.base_rtt);
                open(&mut gate, &state, packet, now);
                Control::Hpcc(Box::new(state))
            }
            Congestion::Timely(_) => {
                gate.set_rate(now, path.rate);
                Control::Timely(Box::new(timely::State::new(path.rate)))
            }
            Congestion::Swift(config) => {
                let state = swift::State::new(config, packet);
                gate.set_window(state.window());
                Control::Swift(Box::new(state))
            }
        };
        (control, gate)
    }

    /// Whether what comes back can change anything.
    pub(crate) fn learns(&self) -> bool {
        !matches!(self, Control::Still)
    }

    /// Whether its window can shrink below a packet, so that round-trip times matter.
    #[inline]
    pub(crate) fn is_adaptive(&self) -> bool {
        matches!(self, Control::NewReno(_) | Control::Cubic(_) | Control::Dctcp(_) | Control::Swift(_))
    }

    /// When to call [`Self::on_timer`].
    #[inline]
    pub(crate) fn due(&self, transport: &Transport) -> Option<Time> {
        match (self, &transport.congestion) {
            (Control::Dcqcn(state), _) => state.due(),
            (Control::MpRdma(state), Congestion::MpRdma(config)) => state.due(config),
            _ => None,
        }
    }

    /// A timer may be due. Returns whether that cuts the rate.
    pub(crate) fn on_timer(&mut self, transport: &Transport, now: Time, gate: &mut Gate) -> bool {
        match (self, &transport.congestion) {
            (Control::Dcqcn(state), _) => {
                let is_cut = state.on_timer(now);
                gate.set_rate(now, state.rate());
                is_cut
            }
            (Control::MpRdma(state), Congestion::MpRdma(config)) => {
                state.on_timer(config, now, gate);
                false
            }
            _ => false,
        }
    }

    /// Whether [`Self::path`] may know one.
    #[inline(always)]
    pub(crate) fn knows_paths(&self) -> bool {
        matches!(self, Control::MpRdma(_))
    }

    /// The path of the packet that has just left, where the control knows it; `toss` says whether something of that probability comes true.
    #[inline]
    pub(crate) fn path(&mut self, transport: &Transport, toss: impl FnOnce(f64) -> bool) -> Option<u32> {
        match (self, &transport.congestion) {
            (Control::MpRdma(state), Congestion::MpRdma(config)) => state.path(config, toss),
            _ => None,
        }
    }

    /// How long the next message of a stream waits after the last packet of the one before.
    pub(crate) fn between_messages(&self, transport: &Transport) -> Option<Time> {
        match (self, &transport.congestion) {
            (Control::MpRdma(state), Congestion::MpRdma(config)) => state.between_messages(config),
            _ => None,
        }
    }

    /// A packet of so many bytes (on the wire) leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate) {
        match self {
            Control::Still
            | Control::NewReno(_)
            | Control::Cubic(_)
            | Control::Dctcp(_)
            | Control::Swift(_) => {}
            Control::Timely(_) | Control::Hpcc(_) => gate.on_sent(now, bytes),
            Control::Dcqcn(state) => {
                gate.on_sent(now, bytes);
                if state.on_sent(bytes) {
                    gate.set_rate(now, state.rate());
                }
            }
            Control::Pulls(_) => gate.spend(),
            Control::MpRdma(state) => state.on_sent(gate),
        }
    }

    /// A window that is learnt begins with a single packet after all.
    pub(crate) fn begin_with_one(&mut self, gate: &mut Gate) {
        let window = match self {
            Control::NewReno(state) => state.begin_with_one(),
            Control::Cubic(state) => state.begin_with_one(),
            Control::Dctcp(state) => state.begin_with_one(),
            Control::Swift(state) => state.begin_with_one(),
            _ => return,
        };
        gate.set_window(window);
    }

    /// Beyond slow start its window grows by at most so many bytes per byte acknowledged.
    pub(crate) fn couple(&mut self, per_byte: f64) {
        match self {
            Control::NewReno(state) => state.couple(per_byte),
            Control::Dctcp(state) => state.couple(per_byte),
            _ => {}
        }
    }

    /// An ACK is about to be told of; this is what the links of its packet's way have written on it.
    pub(crate) fn hear(&mut self, links: impl Iterator<Item = hpcc::LinkState>) {
        if let Control::Hpcc(state) = self {
            state.hear(links);
        }
    }

    /// A PULL arrived, which counts itself and those before.
    pub(crate) fn on_pull(&mut self, count: u32, gate: &mut Gate) {
        if let Control::Pulls(state) = self {
            state.on_pull(count, gate);
        }
    }

    /// So many packets have come of which no ACK of their own tells.
    pub(crate) fn arrived(&mut self, packets: u32) {
        if let Control::Pulls(state) = self {
            state.arrived(packets);
        }
    }

    /// A notification of congestion arrived, in a packet of its own or with an answer. Returns whether that cuts the rate at once.
    pub(crate) fn on_cnp(&mut self, now: Time, gate: &mut Gate) -> bool {
        let Control::Dcqcn(state) = self else { return false };
        let is_cut = state.on_cnp(now);
        gate.set_rate(now, state.rate());
        is_cut
    }

    /// The sender learnt something. Returns whether that cuts the window.
    #[inline]
    pub(crate) fn on_feedback(
        &mut self,
        transport: &Transport,
        feedback: &Feedback,
        gate: &mut Gate,
    ) -> bool {
        match (self, &transport.congestion) {
            (Control::NewReno(state), Congestion::NewReno(config)) => {
                let is_cut = state.on_feedback(config, feedback);
                gate.set_window(state.window());
                is_cut
            }
            (Control::Cubic(state), Congestion::Cubic(config)) => {
                let is_cut = state.on_feedback(config, feedback);
                gate.set_window(state.window());
                is_cut
            }
            (Control::Dctcp(state), Congestion::Dctcp(config)) => {
                let is_cut = state.on_feedback(config, feedback);
                gate.set_window(state.window());
                is_cut
            }
            (Control::MpRdma(state), Congestion::MpRdma(config)) => state.on_feedback(config, feedback, gate),
            (Control::Pulls(state), _) => {
                state.on_feedback(feedback, gate);
                false
            }
            (Control::Hpcc(state), Congestion::Hpcc(config)) => {
                let before = state.window();
                let is_cut = state.on_feedback(config, feedback);
                if state.window() != before {
                    open(gate, state, transport.packet_size(), feedback.now);
                }
                is_cut
            }
            (Control::Timely(state), Congestion::Timely(config)) => {
                let before = state.rate();
                let is_cut = state.on_feedback(config, feedback);
                if state.rate() != before {
                    gate.set_rate(feedback.now, state.rate());
                }
                is_cut
            }
            (Control::Swift(state), Congestion::Swift(config)) => {
                let is_cut = state.on_feedback(config, feedback);
                gate.set_window(state.window());
                is_cut
            }
            _ => false,
        }
    }
}

/// Opens the gate as far as HPCC says: while less than the window is under way, as its public simulator has it, a packet may begin that ends beyond. Below one packet the
/// rate alone limits.
fn open(gate: &mut Gate, state: &hpcc::State, packet: Bytes, now: Time) {
    gate.set_window(state.window().max(1).next_multiple_of(packet.0));
    gate.set_rate(now, state.rate());
}

/// A window of so many bandwidth-delay products. Only whole packets can be under way, and a window of one product or more holds at least as many as one product takes; a smaller
/// one as many as it takes itself. Otherwise a flow of few large packets would be slower than its window says: two packets of which 2.4 are a product.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
fn products(times: f64, bdp: Bytes, packet: Bytes) -> Bytes {
    let bytes = |times: f64| bdp.0 as f64 * times;
    let least = (bytes(times.min(1.0)) / packet.0 as f64).ceil() as u64;
    Bytes((bytes(times).round() as u64).max(least.max(1).saturating_mul(packet.0)))
}

impl Congestion {
    /// What a flow may have under way when it begins, in bytes on the wire, and the field that says so; `None`: nothing but its rate limits it.
    pub(crate) fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let packets = |count: u32| Bytes(packet.0.saturating_mul(count.into()));
        let whole = |bytes: Bytes| Bytes(bytes.0 / packet.0 * packet.0);
        let learnt = |initial: u32, most: Option<Bytes>| match most.map(whole) {
            Some(most) if most < packets(initial) => ("max_window", most),
            _ => ("initial_window", packets(initial)),
        };
        match self {
            Congestion::FixedWindow(config) => {
                let field = if config.bytes.is_some() { "bytes" } else { "bdp" };
                Some((field, whole(config.bytes(path.bdp(), packet))))
            }
            Congestion::NewReno(config) => Some(learnt(config.initial_window, config.max_window)),
            Congestion::Cubic(config) => Some(learnt(config.initial_window, config.max_window)),
            Congestion::Dctcp(config) => Some(learnt(config.initial_window, config.max_window)),
            Congestion::Swift(config) => Some(learnt(config.initial_window, config.max_window)),
            // What it asks for waits for the receiver.
            Congestion::Pulls(config) if config.request_to_send => None,
            Congestion::Pulls(config) => {
                let field = if config.initial_bdp.is_some() { "initial_bdp" } else { "initial_window" };
                Some((field, packets(config.window(path.bdp(), packet))))
            }
            Congestion::MpRdma(config) => {
                config.initial_window.map(|count| ("initial_window", packets(count)))
            }
            Congestion::Dcqcn(config) => {
                let window = |times| whole(products(times, path.bdp(), packet));
                config.window_bdp.map(|times| ("window_bdp", window(times)))
            }
            Congestion::Hpcc(config) => {
                let window = |rtt| Bytes(path.rate.bytes_in(rtt).0.next_multiple_of(packet.0));
                config.base_rtt.map(|rtt| ("base_rtt", window(rtt)))
            }
            Congestion::None(_) | Congestion::Qcn(_) | Congestion::Timely(_) => None,
        }
    }
}

/// Refuses windows that could never send anything.
fn check_windows(initial: u32, ssthresh: Option<u32>, least: f64) -> Result<(), Invalid> {
    Invalid::at_least("initial_window", initial, 1)?;
    Invalid::at_least("initial_ssthresh", ssthresh.unwrap_or(1), 1)?;
    let is_valid = least > 0.0 && least <= f64::from(initial);
    Invalid::unless(is_valid, "min_window", "a number above 0, at most the initial window", least)
}
