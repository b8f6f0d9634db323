//! How much a flow may have in flight, or how fast it may send.
//!
//! Each kind is whole in its file: its parameters with their defaults, what it declares ([`Facts`]), and what it does to a flow's gate. A new one is such a file
//! and a line in the list below.

pub mod bolt;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
mod delay_window;
pub mod fixed_window;
pub mod hpcc;
mod kind;
mod median;
pub mod mp_rdma;
pub mod newreno;
pub mod none;
pub mod nscc;
pub mod powertcp;
pub mod pulls;
pub mod qcn;
pub mod rccc;
mod reno;
pub mod smartt;
pub mod strack_like;
pub mod swift;
mod telemetry;
pub mod timely;
mod window;

use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Invalid, Time, kinds};

use crate::config::Transport;
use crate::feedback::{Feedback, LinkState};
use crate::gate::Gate;
use crate::sender::{PathFacts, Queueing};
pub use kind::{Asking, Facts, Limit, Marks, Signal, SlowedBy, TargetDelay};
pub(crate) use kind::{CongestionConfig, CongestionControl, REACTS, Start, Still};

/// Declares the kinds: what a user writes, and the kind at work on one flow.
macro_rules! congestions {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// How much a flow may have in flight, or how fast it may send.
            pub enum Congestion: "congestion" {
                $($name => $Kind($Config),)+
            }
        }

        /// The congestion control of one flow: what moves its gate.
        #[derive(Clone, Debug)]
        pub(crate) enum Control {
            $($Kind(Box<<$Config as CongestionConfig>::State>),)+
        }

        impl Congestion {
            /// What it needs, limits and reacts to.
            #[inline]
            pub fn facts(&self) -> Facts<'_> {
                match self {
                    $(Congestion::$Kind(config) => config.facts(),)+
                }
            }

            /// Whether it chooses the entropy values of packets.
            #[inline]
            pub(crate) fn chooses_paths(&self) -> bool {
                match self {
                    $(Congestion::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::CHOOSES_PATHS,)+
                }
            }

            /// Whether [`Control::queueing`] knows something.
            pub(crate) fn knows_queueing(&self) -> bool {
                match self {
                    $(Congestion::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::KNOWS_QUEUEING,)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Congestion::$Kind(config) => config.check(),)+
                }
            }

            /// Refuses parameter values that need ACKs.
            pub(crate) fn check_without_acks(&self) -> Result<(), Invalid> {
                match self {
                    $(Congestion::$Kind(config) => config.check_without_acks(),)+
                }
            }

            /// The round-trip time of the network, where one holds for all flows: `None` inside if it is not said, which stands for that of the longest path between hosts.
            pub fn network_rtt(&mut self) -> Option<&mut Option<Time>> {
                match self {
                    $(Congestion::$Kind(config) => config.network_rtt(),)+
                }
            }

            /// What a flow may have in flight when it begins, in bytes on the wire, and the field that says so; `None`: nothing but its rate limits it.
            pub(crate) fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
                match self {
                    $(Congestion::$Kind(config) => config.first_window(packet, path),)+
                }
            }

            /// Every kind with its defaults.
            pub(crate) fn every() -> Vec<Self> {
                vec![$(Congestion::$Kind(<$Config>::default()),)+]
            }
        }

        impl Control {
            /// The control of a flow that begins at `now`, and its gate.
            pub(crate) fn begin(transport: &Transport, path: PathFacts, now: Time) -> (Self, Gate) {
                let mut gate = Gate::new(now);
                let start = Start { path, packet: transport.packet_size(), payload: transport.options.mtu, now };
                let control = match &transport.congestion {
                    $(Congestion::$Kind(config) => Control::$Kind(Box::new(config.begin(start, &mut gate))),)+
                };
                (control, gate)
            }

            /// Whether what comes back can change anything.
            pub(crate) fn learns(&self) -> bool {
                match self {
                    $(Control::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::LEARNS,)+
                }
            }

            /// Whether an ACK moves it.
            #[inline]
            pub(crate) fn reacts_to_acks(&self) -> bool {
                match self {
                    $(Control::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::REACTS_TO_ACKS,)+
                }
            }

            /// Whether its window can shrink below a packet, so that round-trip times matter.
            #[inline]
            pub(crate) fn shrinks_below_a_packet(&self) -> bool {
                match self {
                    $(Control::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::SHRINKS_BELOW_A_PACKET,)+
                }
            }

            /// Whether [`Self::path`] may know one.
            #[inline(always)]
            pub(crate) fn chooses_paths(&self) -> bool {
                match self {
                    $(Control::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::CHOOSES_PATHS,)+
                }
            }

            /// The sender learnt something. Returns whether that cuts the window or the rate.
            #[inline]
            pub(crate) fn on_feedback(&mut self, transport: &Transport, feedback: &Feedback, gate: &mut Gate) -> bool {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.on_feedback(config, feedback, gate),)+
                    _ => false,
                }
            }

            /// [Recurs](netloom_units::recurrence).
            pub(crate) fn recur(&mut self, transport: &Transport, flow: u64, walk: &mut Walk) {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.recur(config, flow, walk),)+
                    _ => walk.refuse(REACTS),
                }
            }

            /// Whether [`Self::due`] may say something.
            #[inline(always)]
            pub(crate) fn has_timers(&self) -> bool {
                match self {
                    $(Control::$Kind(_) =>
                        <<$Config as CongestionConfig>::State as CongestionControl>::HAS_TIMERS,)+
                }
            }

            /// When to call [`Self::on_timer`].
            #[inline]
            pub(crate) fn due(&self, transport: &Transport) -> Option<Time> {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.due(config),)+
                    _ => None,
                }
            }

            /// A timer may be due. Returns whether that cuts the rate.
            pub(crate) fn on_timer(&mut self, transport: &Transport, now: Time, gate: &mut Gate) -> bool {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.on_timer(config, now, gate),)+
                    _ => false,
                }
            }

            /// The path of the packet that has just left, where the control knows it; `toss` returns true with the given probability.
            #[inline]
            pub(crate) fn path(&mut self, transport: &Transport, toss: impl FnOnce(f64) -> bool) -> Option<u32> {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.path(config, toss),)+
                    _ => None,
                }
            }

            /// How long the next message of a stream waits after the last packet of the one before.
            #[inline]
            pub(crate) fn between_messages(&self, transport: &Transport) -> Option<Time> {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.between_messages(config),)+
                    _ => None,
                }
            }

            /// A packet of that many bytes on the wire leaves.
            #[inline]
            pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate) {
                match self {
                    $(Control::$Kind(state) => state.on_sent(now, bytes, gate),)+
                }
            }

            /// The SYN got lost: a window that adapts begins with a single packet.
            pub(crate) fn begin_with_one(&mut self, gate: &mut Gate) {
                match self {
                    $(Control::$Kind(state) => state.begin_with_one(gate),)+
                }
            }

            /// Beyond slow start its window grows by at most that many bytes per byte acknowledged.
            pub(crate) fn couple(&mut self, per_byte: f64) {
                match self {
                    $(Control::$Kind(state) => state.couple(per_byte),)+
                }
            }

            /// An ACK is about to arrive that brings what the links of its packet's path wrote.
            pub(crate) fn on_telemetry(&mut self, links: impl Iterator<Item = LinkState>) {
                match self {
                    $(Control::$Kind(state) => state.on_telemetry(links),)+
                }
            }

            /// A PULL arrived, with its number.
            #[inline]
            pub(crate) fn on_pull(&mut self, count: u32, gate: &mut Gate) {
                match self {
                    $(Control::$Kind(state) => state.on_pull(count, gate),)+
                }
            }

            /// How far the receiver should grant credit, where senders say so.
            #[inline]
            pub(crate) fn pull_target(&mut self, demand: rccc::Demand) -> Option<u32> {
                match self {
                    $(Control::$Kind(state) => state.pull_target(demand),)+
                }
            }

            /// Whether the receiver has been asked for more credit than it has granted.
            pub(crate) fn awaits_credit(&self) -> bool {
                match self {
                    $(Control::$Kind(state) => state.awaits_credit(),)+
                }
            }

            /// What it knows of the queues on the flow's path, if it goes by these.
            pub(crate) fn queueing(&self) -> Option<Queueing> {
                match self {
                    $(Control::$Kind(state) => state.queueing(),)+
                }
            }

            /// What a packet claims, where packets do, that leaves while so much is unsent.
            #[inline]
            pub(crate) fn claim(&self, unsent: Bytes) -> bolt::Claim {
                match self {
                    $(Control::$Kind(state) => state.claim(unsent),)+
                }
            }

            /// A switch notifies of congestion. Returns whether that cuts the window.
            pub(crate) fn on_source_notice(&mut self, transport: &Transport, now: Time, notice: bolt::SourceNotice, gate: &mut Gate) -> bool {
                match (self, &transport.congestion) {
                    $((Control::$Kind(state), Congestion::$Kind(config)) => state.on_source_notice(config, now, notice, gate),)+
                    _ => false,
                }
            }

            /// That many packets have arrived that no ACK of their own acknowledges.
            pub(crate) fn on_arrivals(&mut self, packets: u32) {
                match self {
                    $(Control::$Kind(state) => state.on_arrivals(packets),)+
                }
            }

            /// A notification of congestion arrived, in a packet of its own or with an answer. Returns whether that cuts the rate at once.
            pub(crate) fn on_cnp(&mut self, now: Time, gate: &mut Gate) -> bool {
                match self {
                    $(Control::$Kind(state) => state.on_cnp(now, gate),)+
                }
            }
        }
    };
}

/// The list of kinds.
macro_rules! list {
    ($($more:tt)*) => {
        congestions! {
            "fixed-window" => FixedWindow(fixed_window::FixedWindow),
            "newreno" => NewReno(newreno::NewReno),
            "cubic" => Cubic(cubic::Cubic),
            "dctcp" => Dctcp(dctcp::Dctcp),
            "none" => None(none::None),
            "qcn" => Qcn(qcn::Qcn),
            "dcqcn" => Dcqcn(dcqcn::Dcqcn),
            "hpcc" => Hpcc(hpcc::Hpcc),
            "powertcp" => PowerTcp(powertcp::PowerTcp),
            "theta-powertcp" => ThetaPowerTcp(powertcp::theta::ThetaPowerTcp),
            "timely" => Timely(timely::Timely),
            "swift" => Swift(swift::Swift),
            "pulls" => Pulls(pulls::Pulls),
            "mp-rdma" => MpRdma(mp_rdma::MpRdma),
            "nscc" => Nscc(nscc::Nscc),
            "smartt" => Smartt(smartt::Smartt),
            "strack-like" => StrackLike(strack_like::StrackLike),
            "rccc" => Rccc(rccc::Rccc),
            "bolt" => Bolt(bolt::Bolt),
            $($more)*
        }
    };
}

#[cfg(not(test))]
list! {}

impl Congestion {
    /// What switches and senders do with Bolt, if this is that.
    #[inline]
    pub fn bolt(&self) -> Option<&bolt::Bolt> {
        match self {
            Congestion::Bolt(bolt) => Some(bolt),
            _ => None,
        }
    }
}

// The tests add a kind: one file and one line.
#[cfg(test)]
mod aimd;
#[cfg(test)]
list! {
    "aimd" => Aimd(aimd::Aimd),
}

#[cfg(test)]
mod tests;
