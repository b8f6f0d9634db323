//! What a switch does with each kind of packet. That is settled when its path selector is made: where a scheme leaves the choice to the header's
//! hash, nothing else is looked at.

use crate::header::Carries;
use crate::scheme::{Placement, Routing};
use crate::selector::Choice;

/// What a switch does with a kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The header's hash says the port.
    Hash,
    /// A digit of the packet's path label does.
    Label,
    /// The selector does, and always the same for a flow.
    Static,
    /// A random port, which counts as no decision.
    Scatter,
    /// A random port per packet: what `Packet` does with a uniform selector, without asking it.
    Spray,
    /// The selector says a port per packet.
    Packet,
    /// The selector says a port per run of a flow's packets.
    Run,
    /// As `Packet` at a packet's first switch, as `Hash` later.
    PacketAtFirst,
    /// As `Run` at a packet's first switch, as `Hash` later.
    RunAtFirst,
}

/// How a switch chooses ports, as far as that can be done before a packet is handled: for all but data by the header's hash, and for data as follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// By the hash, in any order of packets.
    Hash,
    /// By the label of the path, in any order of packets.
    Label,
    /// A draw among several ports, in the order of packets.
    Spray,
    /// A decision among several ports when the packet is handled, on each packet.
    Decide,
    /// The same on each run of a flow's packets.
    Run,
    /// A packet's role decides among several ports when the packet is handled.
    ByRole,
    /// By the layer or the path that it names, in any order of packets: beyond minimal ports, as [`SwitchPathSelector::named`] says.
    ///
    /// [`SwitchPathSelector::named`]: super::SwitchPathSelector::named
    Named,
    /// The same for data that name an intermediate switch, unless this switch decides when the packet is handled, as a packet's first one does; for all others by the hash.
    Detour,
    /// Nothing is known before: a packet's role decides.
    None,
}

impl FastPath {
    /// Whether all but data go by their hash among minimal ports.
    pub fn hashes_others(self) -> bool {
        !matches!(self, FastPath::Named | FastPath::Detour | FastPath::None)
    }
}

impl Routing {
    /// Whether a switch may send packets of a flow by the port of the ones before without looking whether that leads to their destination.
    pub fn switches_keep_ports(&self) -> bool {
        Role::of_data(self, true).keeps_runs()
    }

    /// Whether what a switch does to a packet depends on the packet alone.
    pub fn switches_go_by_packets(&self) -> bool {
        [true, false].into_iter().all(|has_hosts| Roles::new(self, has_hosts).are_fixed())
    }

    /// Whether all is known to [recur](netloom_units::recurrence) by which switches choose among several ports: the packet alone, what is drawn, or whose turn it is.
    pub fn choices_recur(&self) -> bool {
        [true, false].into_iter().all(|has_hosts| {
            let roles = Roles::new(self, has_hosts);
            let takes_turns = roles.0.iter().all(|role| matches!(role, Role::Packet | Role::Hash))
                && self.selector.facts().choice == Choice::InTurn;
            roles.are_fixed() || takes_turns || roles.fast_path(self.ecmp_every.is_some()) == FastPath::Spray
        })
    }
}

/// What is done with data, with control packets and with congestion notifications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roles([Role; 3]);

impl Roles {
    /// Those at a switch; `has_hosts`: it can be a packet's first one.
    pub(super) fn new(scheme: &Routing, has_hosts: bool) -> Self {
        let decides_control = scheme.granularity.facts().decides_control;
        let data = Role::of_data(scheme, has_hosts);
        let control = if data == Role::Static || decides_control { data } else { Role::Hash };
        // Switch AR's notifications report the congestion to the switches on all paths.
        let notification = if scheme.selector.uncongested().is_some() { Role::Scatter } else { control };
        Roles([data, control, notification])
    }

    /// The role of packets that carry this.
    #[inline]
    pub(super) fn of(self, carries: Carries) -> Role {
        self.0[carries as usize]
    }

    /// Whether packets of all kinds go by what they carry alone.
    pub(super) fn are_fixed(self) -> bool {
        self.0.iter().all(|role| matches!(role, Role::Hash | Role::Label | Role::Static))
    }

    /// `leaves_out`: data of some sources go by their hash instead.
    pub(super) fn fast_path(self, leaves_out: bool) -> FastPath {
        match self.0 {
            [Role::Hash, Role::Hash, Role::Hash] => FastPath::Hash,
            [Role::Label, Role::Hash, Role::Hash] => FastPath::Label,
            [Role::Spray, Role::Hash, Role::Hash] => FastPath::Spray,
            [Role::Packet, Role::Hash, Role::Hash] if !leaves_out => FastPath::Decide,
            [Role::Run, Role::Hash, Role::Hash] if !leaves_out => FastPath::Run,
            [Role::Packet | Role::Run | Role::PacketAtFirst | Role::RunAtFirst, Role::Hash, Role::Hash] => {
                FastPath::ByRole
            }
            _ => FastPath::None,
        }
    }
}

impl Role {
    fn of_data(scheme: &Routing, has_hosts: bool) -> Self {
        let (granularity, choice) = (&scheme.granularity, scheme.selector.facts().choice);
        let (per_packet, controls) = (granularity.is_per_packet(), granularity.facts().decides_control);
        if scheme.labels_at_nic() || scheme.labels_at_first() {
            return Role::Label;
        }
        match (scheme.placement, choice) {
            (Placement::Nic, _) | (_, Choice::Hash) => Role::Hash,
            (Placement::Ingress, _) if !has_hosts => Role::Hash,
            (Placement::Ingress, _) if per_packet => Role::PacketAtFirst,
            (Placement::Ingress, _) => Role::RunAtFirst,
            (Placement::Switch, Choice::Static) => Role::Static,
            (Placement::Switch, Choice::Uniform)
                if per_packet && !controls && scheme.ecmp_every.is_none() =>
            {
                Role::Spray
            }
            (Placement::Switch, _) if per_packet => Role::Packet,
            (Placement::Switch, _) => Role::Run,
        }
    }

    /// Whether it takes decisions, which count.
    pub(super) fn decides(self) -> bool {
        !matches!(self, Role::Hash | Role::Label | Role::Static)
    }

    /// Whether it keeps the port of a run of a flow's packets.
    pub(super) fn keeps_runs(self) -> bool {
        matches!(self, Role::Run | Role::RunAtFirst)
    }
}
