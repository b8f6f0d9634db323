//! The accounts of a node's input buffers: what flow control knows.
//!
//! Packets wait in output queues; an account says how much of an input buffer they hold. [`Buffers`] answers three questions: may
//! this packet come in, must the upstream port pause (or go on), and may a port send.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Invalid, Time};

use crate::flow_control::credits::Credits;
use crate::flow_control::pfc::Pfc;
use crate::flow_control::pfc_shared::PfcShared;
use crate::flow_control::{Cable, FlowControl};
use crate::packet::NO_INGRESS;
use crate::port::{Credit, PortSpec};
use crate::queue::wire_size;
use crate::returns::Returns;
use crate::rules::{Accounting, Rules};

/// The flow control of one node.
#[derive(Clone, Debug)]
pub(crate) enum Buffers {
    /// Nothing is counted: a lossy fabric, or the input of a host.
    Uncounted,
    Fixed(Box<Fixed>),
    Shared(Box<Shared>),
    Credits(Box<Accounts>),
}

/// A quick look at a packet that wants into an input buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// It has been charged, and nothing follows from it.
    Fits,
    /// Nothing has been charged: something may follow, which is for [`Buffers::charge_settled`] to say.
    ReachesThreshold,
}

/// What follows from a packet that wants into an input buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    /// There is no room for it.
    pub(crate) is_lost: bool,
    /// The upstream port must pause the queue.
    pub(crate) pauses: bool,
}

/// What follows from a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// The queue must pause: its credit may not suffice for another packet.
    OutOfCredit,
    /// The upstream neighbour behind this port may go on.
    Resumes(u16),
    /// The packet is lost on its channel, and what waits may go, too. Only without flow control.
    Lost,
}

const LOST: Admission = Admission { is_lost: true, pauses: false };

/// Some ports of a node, one bit for those of each number modulo 64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Concerned(pub(crate) u64);

impl Concerned {
    #[inline(always)]
    fn only(port: u16) -> u64 {
        1 << (port % 64)
    }
}

/// Fixed thresholds.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    queues: usize,
    pause_size: u16,
    /// The largest packet.
    packet: u64,
    /// Per port.
    thresholds: Vec<Thresholds>,
    /// Per port and queue.
    buffered: Vec<FixedAccount>,
    /// Paused queues.
    paused: Vec<Paused>,
}

/// A queue of a port that is paused.
#[derive(Clone, Copy, Debug)]
struct Paused {
    ingress: u16,
    /// Its place among the accounts.
    account: usize,
}

/// A queue's account: what is asked with every packet is one comparison.
#[derive(Clone, Copy, Debug)]
struct FixedAccount {
    /// Bytes buffered.
    bytes: u64,
    /// More than this has consequences: a pause or, while the queue is paused, a loss.
    most: u64,
    /// Less than this ends a pause: 0 while there is none.
    resumes_below: u64,
    /// Where what has come since nothing was buffered leaves, as in [`Concerned`].
    leaves_by: u64,
}

impl FixedAccount {
    #[inline(always)]
    fn note_port(&mut self, port: u16) {
        let before = if self.bytes == 0 { 0 } else { self.leaves_by };
        self.leaves_by = before | Concerned::only(port);
    }

    fn is_paused(&self) -> bool {
        self.resumes_below > 0
    }
}

/// The thresholds of one port.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    pause: u64,
    resume: u64,
    limit: u64,
    /// What comes in.
    inflow: Inflow,
}

/// How fast bytes come in by a port at most, in 2⁻⁵⁶ bytes per picosecond.
#[derive(Clone, Copy, Debug)]
struct Inflow(u64);

impl Inflow {
    fn of(spec: &PortSpec) -> Self {
        let (_, rate) = spec.inward;
        let per_picosecond = (u128::from(rate.0) << 56).div_ceil(8_000_000_000_000);
        Inflow(u64::try_from(per_picosecond).unwrap_or(u64::MAX))
    }

    /// The most bytes that can arrive within `time`, in packets of at most `packet` bytes: one may be on its way already, and of another only the head may have arrived.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "what comes while a port is busy")]
    fn within(self, time: Time, packet: u64) -> u64 {
        let bytes = (u128::from(self.0) * u128::from(time.0)) >> 56;
        (bytes as u64).saturating_add(1 + 2 * packet)
    }
}

/// Thresholds that move with the free memory.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    queues: usize,
    pause_size: u16,
    /// In 2⁻²⁰.
    alpha: u64,
    reserve: u64,
    resume: u64,
    /// Shared memory, and how much of it is used.
    pool: u64,
    used: u64,
    /// The largest packet.
    packet: u64,
    /// Per port.
    headroom: Vec<u64>,
    /// Per port: what comes in.
    inflow: Vec<Inflow>,
    /// What comes in by all ports.
    inflow_of_all: Inflow,
    brief: Brief,
    buffered: Vec<SharedAccount>,
    /// Paused queues.
    paused: u32,
}

/// The time that a packet takes at the slowest port, in which little can come in.
#[derive(Clone, Copy, Debug, Default)]
struct Brief {
    /// Zero where more might come in within it than the pool holds.
    time: Time,
    /// As long as no more of the pool is used, what may come in by all ports has room there. What is left up to that is what will be left of the pool.
    used: u64,
}

#[derive(Clone, Copy, Debug)]
struct SharedAccount {
    /// Bytes in the reserve and in the pool.
    bytes: u64,
    /// Bytes in the headroom.
    headroom: u64,
    /// Up to this much the pool is not asked: the reserve, or nothing while the queue is paused.
    unasked: u64,
    /// The most bytes that come in by the port within a [brief](Brief) time.
    briefly: u32,
    is_paused: bool,
}

impl SharedAccount {
    /// An empty one.
    fn new(reserve: u64, briefly: u64) -> Self {
        let briefly = u32::try_from(briefly).unwrap_or(u32::MAX);
        SharedAccount { bytes: 0, headroom: 0, unasked: reserve, briefly, is_paused: false }
    }

    fn pause(&mut self) {
        (self.is_paused, self.unasked) = (true, 0);
    }

    fn resume(&mut self, reserve: u64) {
        (self.is_paused, self.unasked) = (false, reserve);
    }
}

/// Credits of every output port, and the way back of those it owes.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    queues: usize,
    credits: Vec<u32>,
    /// What each began with.
    buffer: u32,
    /// The largest packet: with less credit a queue stops.
    packet: u32,
    /// Per port: the time that a credit takes to the other end.
    pub(crate) delay: Vec<Time>,
    pub(crate) returns: Returns,
}

impl Recur for Buffers {
    fn recur(&mut self, walk: &mut Walk) {
        match self {
            Buffers::Uncounted => {}
            Buffers::Fixed(fixed) => {
                let Fixed { queues: _, pause_size: _, packet: _, thresholds: _, buffered, paused } = &**fixed;
                walk.count(paused.len());
                for &FixedAccount { bytes, most, resumes_below, leaves_by: _ } in buffered {
                    [bytes, most, resumes_below].into_iter().for_each(|bytes| walk.exact(bytes));
                }
            }
            Buffers::Shared(shared) => {
                let Shared {
                    queues: _,
                    pause_size: _,
                    alpha: _,
                    reserve: _,
                    resume: _,
                    pool: _,
                    used,
                    packet: _,
                    headroom: _,
                    inflow: _,
                    inflow_of_all: _,
                    brief: _,
                    buffered,
                    paused,
                } = &**shared;
                walk.exact(*used);
                walk.exact(*paused);
                for &SharedAccount { bytes, headroom, unasked: _, briefly: _, is_paused } in buffered {
                    [bytes, headroom].into_iter().for_each(|bytes| walk.exact(bytes));
                    walk.exact(is_paused);
                }
            }
            Buffers::Credits(accounts) => {
                let Accounts { queues: _, credits, buffer: _, packet: _, delay: _, returns } =
                    &mut **accounts;
                credits.iter().for_each(|&bytes| walk.exact(bytes));
                returns.recur(walk);
            }
        }
    }
}

/// Whether buffers of which this is known may count so.
#[inline(always)]
fn may_be(accounting: Accounting, known: Option<Accounting>) -> bool {
    known.is_none_or(|known| known == accounting)
}

impl Buffers {
    /// Empty buffers behind the ports of a node.
    pub(crate) fn new(specs: &[PortSpec], rules: &Rules, is_host: bool) -> Self {
        match &rules.flow_control {
            FlowControl::Credits(config) => Buffers::Credits(Box::new(Accounts::new(config, specs, rules))),
            FlowControl::Pfc(config) if !is_host => {
                Buffers::Fixed(Box::new(Fixed::new(config, specs, rules)))
            }
            FlowControl::PfcShared(config) if !is_host => {
                Buffers::Shared(Box::new(Shared::new(config, specs, rules)))
            }
            _ => Buffers::Uncounted,
        }
    }

    /// Whether some input buffer is paused, so that a departure at one port may cause something at another.
    #[inline(always)]
    pub(crate) fn is_paused(&self) -> bool {
        match self {
            Buffers::Fixed(fixed) => !fixed.paused.is_empty(),
            Buffers::Shared(shared) => shared.paused > 0,
            Buffers::Uncounted | Buffers::Credits(_) => false,
        }
    }

    /// The ports by which packets leave that are in buffers which are paused, and those by which these resume.
    pub(crate) fn concerned_by_pauses(&self) -> Concerned {
        let Buffers::Fixed(fixed) = self else { return Concerned(u64::MAX) };
        let ports = fixed
            .paused
            .iter()
            .map(|&Paused { ingress, account }| fixed.buffered[account].leaves_by | Concerned::only(ingress));
        Concerned(ports.fold(0, |all, ports| all | ports))
    }

    /// Calls `each` for every buffer that is paused with the ports by which its packets leave, and how many bytes have to leave, of those that it holds now, until it resumes.
    pub(crate) fn for_each_paused(&self, mut each: impl FnMut(Concerned, u64)) {
        match self {
            Buffers::Fixed(fixed) => {
                for &Paused { account, .. } in &fixed.paused {
                    let FixedAccount { bytes, resumes_below, leaves_by, .. } = fixed.buffered[account];
                    each(Concerned(leaves_by), bytes + 1 - resumes_below);
                }
            }
            // The threshold moves with what leaves other buffers, and any departure may end a pause.
            Buffers::Shared(_) => each(Concerned(u64::MAX), 0),
            Buffers::Uncounted | Buffers::Credits(_) => {}
        }
    }

    /// Whether a port surely makes no PAUSE frame within some time from now on: none of its queues, of which it has one, is paused, and what may come in until then does not begin a pause.
    #[inline(always)]
    pub(crate) fn stays_quiet(&self, known: Option<Accounting>, port: usize, time: Time) -> bool {
        if may_be(Accounting::Fixed, known)
            && let Buffers::Fixed(fixed) = self
        {
            fixed.stays_quiet(port, time)
        } else if may_be(Accounting::Shared, known)
            && let Buffers::Shared(shared) = self
        {
            shared.stays_quiet(port, time)
        } else {
            true
        }
    }

    /// Charges a packet, which leaves by a port, if that is all there is to it. Of one that `passes`, as it leaves at once, it is only said whether it could be charged: what would be counted would be taken off again.
    // The commonest first, one after the other: a jump by a table takes more.
    #[inline(always)]
    pub(crate) fn charge(
        &mut self,
        known: Option<Accounting>,
        (ingress, queue): (u16, usize),
        (size, to): (u16, u16),
        passes: bool,
    ) -> Charge {
        if may_be(Accounting::Fixed, known)
            && let Buffers::Fixed(fixed) = self
        {
            fixed.charge((ingress, queue), size, to, passes)
        } else if may_be(Accounting::Shared, known)
            && let Buffers::Shared(shared) = self
        {
            shared.charge(ingress, queue, size, passes)
        } else {
            Charge::Fits
        }
    }

    /// Charges a packet after all departures before it have been released.
    pub(crate) fn charge_settled(&mut self, (ingress, queue): (u16, usize), size: u16, to: u16) -> Admission {
        match self {
            Buffers::Fixed(fixed) => fixed.charge_settled((ingress, queue), size, to),
            Buffers::Shared(shared) => shared.charge_settled(ingress, queue, size),
            Buffers::Uncounted | Buffers::Credits(_) => Admission { is_lost: false, pauses: false },
        }
    }

    /// A data packet leaves through a port and data queue, and with that the input buffer of the port and data queue `from` which it came, if its port is not [`NO_INGRESS`]: it is
    /// paid for downstream, after [its room has been noted](Self::note_left) under credits, or ends the upstream port's pause unless it only [`passes`](Self::charge).
    // No `Option`, which would be made for packets that only pass, too.
    #[inline(always)]
    pub(crate) fn on_departure(
        &mut self,
        known: Option<Accounting>,
        size: u16,
        passes: bool,
        (ingress, queue): (u16, usize),
        to: (u16, usize),
    ) -> Effect {
        if may_be(Accounting::Credits, known)
            && let Buffers::Credits(accounts) = self
        {
            let ((port, queue), packet) = (to, accounts.packet);
            let credits = accounts.of(port, queue);
            *credits -= u32::from(size);
            return if *credits < packet { Effect::OutOfCredit } else { Effect::None };
        }
        if passes || ingress == NO_INGRESS {
            return Effect::None;
        }
        let resumes = if may_be(Accounting::Fixed, known)
            && let Buffers::Fixed(fixed) = self
        {
            fixed.release(ingress, queue, size)
        } else if may_be(Accounting::Shared, known)
            && let Buffers::Shared(shared) = self
        {
            shared.release(ingress, queue, size)
        } else {
            false
        };
        if resumes { Effect::Resumes(ingress) } else { Effect::None }
    }

    /// A packet leaves the input buffer of a port and data queue at `at`, whether its channel takes it or a fault does: under credits its room will go back. That is noted before it is sent, which writes over where it came from.
    #[inline(always)]
    pub(crate) fn note_left(
        &mut self,
        known: Option<Accounting>,
        (at, size): (Time, u16),
        (ingress, queue): (u16, usize),
    ) {
        if may_be(Accounting::Credits, known)
            && let Buffers::Credits(accounts) = self
            && ingress != NO_INGRESS
        {
            accounts.returns.note(ingress, queue, at, u32::from(size));
        }
    }

    /// A packet leaves the input buffer of a port and data queue at `at` without going on, as a fault takes it.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave(&mut self, at: Time, size: u16, (ingress, queue): (u16, usize)) -> Effect {
        let resumes = match self {
            Buffers::Fixed(fixed) => fixed.release(ingress, queue, size),
            Buffers::Shared(shared) => shared.release(ingress, queue, size),
            Buffers::Credits(accounts) => {
                accounts.returns.note(ingress, queue, at, u32::from(size));
                false
            }
            Buffers::Uncounted => false,
        };
        if resumes { Effect::Resumes(ingress) } else { Effect::None }
    }

    /// The credits of every port; `None` where there are none.
    #[inline(always)]
    pub(crate) fn accounts(&mut self) -> Option<&mut Accounts> {
        match self {
            Buffers::Credits(accounts) => Some(accounts),
            _ => None,
        }
    }

    /// Whether a queue that a credit is for will not [run out](Effect::OutOfCredit) by sending this many bytes, even without the credit.
    #[inline(always)]
    pub(crate) fn suffice(&mut self, credit: Credit, bytes: u64) -> bool {
        let Buffers::Credits(accounts) = self else { return false };
        u64::from(*accounts.of(credit.port, credit.queue.into())) >= u64::from(accounts.packet) + bytes
    }

    /// A credit has come back. Returns whether the queue, paused before, may go on.
    #[inline(always)]
    pub(crate) fn earn(&mut self, credit: Credit) -> bool {
        let Buffers::Credits(accounts) = self else { return false };
        let packet = accounts.packet;
        let credits = accounts.of(credit.port, usize::from(credit.queue));
        let was_stopped = *credits < packet;
        *credits += credit.bytes;
        was_stopped && *credits >= packet
    }

    /// Bytes that have left the buffer of an input port and queue without their credit having gone back.
    pub(crate) fn owed(&self, ingress: u16, queue: usize) -> u64 {
        match self {
            Buffers::Credits(accounts) => accounts.returns.owed(ingress, queue),
            _ => 0,
        }
    }

    /// Bytes that a port has sent and for which no credit has come back.
    pub(crate) fn unreturned(&self, port: u16) -> u64 {
        let Buffers::Credits(accounts) = self else { return 0 };
        let first = usize::from(port) * accounts.queues;
        let left = &accounts.credits[first..first + accounts.queues];
        left.iter().map(|&credits| u64::from(accounts.buffer - credits)).sum()
    }

    pub(crate) fn credits(&self, port: u16, queue: usize) -> Option<u64> {
        match self {
            Buffers::Credits(accounts) => {
                Some(u64::from(accounts.credits[usize::from(port) * accounts.queues + queue]))
            }
            _ => None,
        }
    }

    /// The queues of an input port that its upstream neighbour must pause, as bits.
    pub(crate) fn paused_queues(&self, port: u16) -> u32 {
        let bits = |queues: usize, is_paused: &dyn Fn(usize) -> bool| {
            let first = usize::from(port) * queues;
            (0..queues).map(|queue| u32::from(is_paused(first + queue)) << queue).sum()
        };
        match self {
            Buffers::Fixed(fixed) => bits(fixed.queues, &|index| fixed.buffered[index].is_paused()),
            Buffers::Shared(shared) => bits(shared.queues, &|index| shared.buffered[index].is_paused),
            Buffers::Uncounted | Buffers::Credits(_) => 0,
        }
    }

    /// Size of a PAUSE frame.
    pub(crate) fn pause_size(&self) -> u16 {
        match self {
            Buffers::Fixed(fixed) => fixed.pause_size,
            Buffers::Shared(shared) => shared.pause_size,
            Buffers::Uncounted | Buffers::Credits(_) => 0,
        }
    }
}

/// Whether the buffers of a switch with these ports can hold what flow control promises.
///
/// # Errors
/// Says what would have to be larger.
pub fn check_switch(specs: &[PortSpec], rules: &Rules) -> Result<(), Invalid> {
    let refuse_unless =
        |valid, expected, found: Bytes| Invalid::unless(valid, "flow_control.buffer", expected, found);
    match &rules.flow_control {
        FlowControl::Lossy(_) | FlowControl::Credits(_) => Ok(()),
        FlowControl::Pfc(config) => {
            let headroom = |spec| headroom(config.headroom, config.pause_size, spec, rules);
            let most = Bytes(specs.iter().map(headroom).max().unwrap_or(0));
            let expected = format!("more than the headroom of {most} that a cable needs");
            refuse_unless(most <= config.buffer, expected, config.buffer)
        }
        FlowControl::PfcShared(config) => {
            let taken = Bytes(Shared::taken(config, specs, rules));
            let expected = format!("more than {taken}, the reserves and headrooms of a switch");
            refuse_unless(taken < config.buffer, expected, config.buffer)
        }
    }
}

fn headroom(written: Option<Bytes>, pause_size: Bytes, spec: &PortSpec, rules: &Rules) -> u64 {
    let outward = spec.changes.iter().map(|&(_, rate)| rate).fold(spec.rate, Ord::min);
    let (latency, inward) = spec.inward;
    let cable = Cable { round_trip: spec.latency + latency, inward, outward };
    written.unwrap_or_else(|| cable.headroom(Bytes(rules.packet), pause_size, rules.response)).0
}

fn resume_offset(written: Option<Bytes>, rules: &Rules) -> u64 {
    written.map_or(2 * rules.packet, |resume| resume.0)
}

impl Fixed {
    fn new(config: &Pfc, specs: &[PortSpec], rules: &Rules) -> Self {
        let thresholds = specs.iter().map(|spec| {
            let headroom = headroom(config.headroom, config.pause_size, spec, rules);
            let pause = config.buffer.0.saturating_sub(headroom);
            let resume = pause.saturating_sub(resume_offset(config.resume, rules));
            Thresholds { pause, resume, limit: config.buffer.0, inflow: Inflow::of(spec) }
        });
        let (queues, thresholds) = (rules.data_queues(), thresholds.collect::<Vec<_>>());
        let empty =
            |port: &Thresholds| FixedAccount { bytes: 0, most: port.pause, resumes_below: 0, leaves_by: 0 };
        Fixed {
            queues,
            pause_size: wire_size(config.pause_size),
            packet: rules.packet,
            buffered: thresholds.iter().flat_map(|port| std::iter::repeat_n(empty(port), queues)).collect(),
            thresholds,
            paused: Vec::new(),
        }
    }

    #[inline(always)]
    fn stays_quiet(&self, port: usize, time: Time) -> bool {
        let FixedAccount { bytes, most, resumes_below, .. } = self.buffered[port];
        let more = self.thresholds[port].inflow.within(time, self.packet);
        resumes_below == 0 && bytes.saturating_add(more) <= most
    }

    #[inline(always)]
    fn charge(&mut self, (ingress, queue): (u16, usize), size: u16, to: u16, passes: bool) -> Charge {
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        let after = buffered.bytes + u64::from(size);
        if after > buffered.most {
            return Charge::ReachesThreshold;
        }
        if !passes {
            buffered.note_port(to);
            buffered.bytes = after;
        }
        Charge::Fits
    }

    fn charge_settled(&mut self, (ingress, queue): (u16, usize), size: u16, to: u16) -> Admission {
        let Thresholds { pause, resume, limit, .. } = self.thresholds[usize::from(ingress)];
        let account = usize::from(ingress) * self.queues + queue;
        let buffered = &mut self.buffered[account];
        let after = buffered.bytes + u64::from(size);
        if after > limit {
            return LOST;
        }
        buffered.note_port(to);
        buffered.bytes = after;
        let pauses = after > pause && !buffered.is_paused();
        if pauses {
            (buffered.most, buffered.resumes_below) = (limit, resume + 1);
            self.paused.push(Paused { ingress, account });
        }
        Admission { is_lost: false, pauses }
    }

    #[inline(always)]
    fn release(&mut self, ingress: u16, queue: usize, size: u16) -> bool {
        let account = usize::from(ingress) * self.queues + queue;
        let buffered = &mut self.buffered[account];
        buffered.bytes -= u64::from(size);
        let resumes = buffered.bytes < buffered.resumes_below;
        if resumes {
            (buffered.most, buffered.resumes_below) = (self.thresholds[usize::from(ingress)].pause, 0);
            self.paused.retain(|paused| paused.account != account);
        }
        resumes
    }
}

/// A factor in 2⁻²⁰.
#[expect(clippy::cast_possible_truncation, reason = "one that is checked to be small")]
fn in_parts(alpha: f64) -> u64 {
    (alpha * f64::from(1 << 20)).round() as u64
}

impl Shared {
    /// Memory of a switch that is not shared.
    fn taken(config: &PfcShared, specs: &[PortSpec], rules: &Rules) -> u64 {
        let queues = rules.data_queues() as u64;
        let headroom = |spec| headroom(config.headroom, config.pause_size, spec, rules);
        specs.iter().map(|spec| (headroom(spec) + config.reserve.0) * queues).sum()
    }

    fn new(config: &PfcShared, specs: &[PortSpec], rules: &Rules) -> Self {
        let queues = rules.data_queues();
        let pool = config.buffer.0.saturating_sub(Self::taken(config, specs, rules));
        let inflow: Vec<_> = specs.iter().map(Inflow::of).collect();
        let inflow_of_all = Inflow(inflow.iter().map(|port| port.0).fold(0, u64::saturating_add));
        let slowest = specs.iter().map(|spec| spec.rate).min();
        let time = slowest.map_or(Time::ZERO, |rate| rate.serialize(Bytes(rules.packet)));
        let brief = pool
            .checked_sub(inflow_of_all.within(time, rules.packet * inflow.len() as u64))
            .map_or(Brief::default(), |used| Brief { time, used });
        let account = |port: &Inflow| SharedAccount::new(config.reserve.0, port.within(time, rules.packet));
        Shared {
            queues,
            pause_size: wire_size(config.pause_size),
            alpha: in_parts(config.alpha),
            reserve: config.reserve.0,
            resume: resume_offset(config.resume, rules),
            pool,
            used: 0,
            packet: rules.packet,
            buffered: inflow.iter().flat_map(|port| std::iter::repeat_n(account(port), queues)).collect(),
            inflow,
            inflow_of_all,
            brief,
            headroom: specs
                .iter()
                .map(|spec| headroom(config.headroom, config.pause_size, spec, rules))
                .collect(),
            paused: 0,
        }
    }

    /// What a queue may take from the pool when so much of it is used.
    fn threshold(&self, used: u64) -> u64 {
        ((self.pool - used) * self.alpha) >> 20
    }

    // Mostly a few comparisons say so.
    #[inline(always)]
    fn stays_quiet(&self, port: usize, time: Time) -> bool {
        let SharedAccount { bytes, unasked, briefly, is_paused, .. } = self.buffered[port];
        // If that time passes, and all that may come in by then. What is not paused has nothing in its headroom.
        let (bytes, left) = (bytes + u64::from(briefly), self.brief.used.checked_sub(self.used));
        let stays_below =
            |left: u64| bytes <= unasked || !is_paused && bytes - self.reserve < (left * self.alpha) >> 20;
        time < self.brief.time && left.is_some_and(stays_below) || self.stays_quiet_exactly(port, time)
    }

    #[inline(never)]
    fn stays_quiet_exactly(&self, port: usize, time: Time) -> bool {
        let SharedAccount { bytes, headroom, is_paused, .. } = self.buffered[port];
        let bytes = bytes.saturating_add(self.inflow[port].within(time, self.packet));
        let shared = bytes.saturating_sub(self.reserve);
        let packets = self.packet * self.inflow.len() as u64;
        let used = self.used.saturating_add(self.inflow_of_all.within(time, packets));
        !is_paused && headroom == 0 && used <= self.pool && (shared == 0 || shared < self.threshold(used))
    }

    /// Charges a packet that stays below the threshold even if nothing has left since the ports were last advanced. In that case the
    /// account does not depend on whether it has: without headroom in use, shared memory is what the queues hold above their reserves.
    #[inline(always)]
    fn charge(&mut self, ingress: u16, queue: usize, size: u16, passes: bool) -> Charge {
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        let bytes = buffered.bytes + u64::from(size);
        // Most packets find that little: one comparison.
        if bytes <= buffered.unasked {
            if !passes {
                buffered.bytes = bytes;
            }
            return Charge::Fits;
        }
        let shared = bytes.saturating_sub(self.reserve);
        let used = self.used + shared.min(u64::from(size));
        if buffered.is_paused || used > self.pool || shared > 0 && shared >= self.threshold(used) {
            return Charge::ReachesThreshold;
        }
        if !passes {
            self.buffered[usize::from(ingress) * self.queues + queue].bytes = bytes;
            self.used = used;
        }
        Charge::Fits
    }

    fn charge_settled(&mut self, ingress: u16, queue: usize, size: u16) -> Admission {
        let (size, threshold) = (u64::from(size), self.threshold(self.used));
        let (pool, reserve, headroom) = (self.pool, self.reserve, self.headroom[usize::from(ingress)]);
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        let shared = (buffered.bytes + size).saturating_sub(reserve);
        let more = shared.min(size);
        // What has begun to fill the headroom goes on there, or it would slip back under a threshold that grows.
        if shared > 0 && (buffered.headroom > 0 || shared > threshold || self.used + more > pool) {
            if buffered.headroom + size > headroom {
                return LOST;
            }
            buffered.headroom += size;
        } else {
            buffered.bytes += size;
            self.used += more;
        }
        let (shared, is_in_headroom) = (buffered.bytes.saturating_sub(reserve), buffered.headroom > 0);
        let threshold = self.threshold(self.used);
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        let pauses = !buffered.is_paused && (is_in_headroom || shared > 0 && shared >= threshold);
        if pauses {
            buffered.pause();
        }
        self.paused += u32::from(pauses);
        Admission { is_lost: false, pauses }
    }

    #[inline(always)]
    fn release(&mut self, ingress: u16, queue: usize, size: u16) -> bool {
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        if buffered.is_paused {
            return self.release_paused(ingress, queue, size);
        }
        // Only a paused queue is in its headroom.
        let from_pool = buffered.bytes.saturating_sub(self.reserve).min(u64::from(size));
        buffered.bytes -= u64::from(size);
        self.used -= from_pool;
        false
    }

    #[inline(never)]
    fn release_paused(&mut self, ingress: u16, queue: usize, size: u16) -> bool {
        let size = u64::from(size);
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        let from_headroom = buffered.headroom.min(size);
        buffered.headroom -= from_headroom;
        let rest = size - from_headroom;
        let from_pool = buffered.bytes.saturating_sub(self.reserve).min(rest);
        buffered.bytes -= rest;
        self.used -= from_pool;
        let threshold = self.threshold(self.used);
        let buffered = &mut self.buffered[usize::from(ingress) * self.queues + queue];
        let shared = buffered.bytes.saturating_sub(self.reserve);
        let resumes = buffered.headroom == 0 && (shared == 0 || shared + self.resume <= threshold);
        if resumes {
            buffered.resume(self.reserve);
        }
        self.paused -= u32::from(resumes);
        resumes
    }
}

impl Accounts {
    fn new(config: &Credits, specs: &[PortSpec], rules: &Rules) -> Self {
        let queues = rules.data_queues();
        Accounts {
            queues,
            credits: vec![config.buffer(); specs.len() * queues],
            buffer: config.buffer(),
            packet: rules.packet_size(),
            returns: Returns::new(specs.len(), queues, config.batch(rules.packet)),
            delay: specs.iter().map(|spec| spec.latency + spec.rate.serialize(config.credit_size)).collect(),
        }
    }

    #[inline(always)]
    fn of(&mut self, port: u16, queue: usize) -> &mut u32 {
        &mut self.credits[usize::from(port) * self.queues + queue]
    }

    /// The link of a port is cut: credits of both directions are forgotten. `buffered`: the bytes that each queue's input buffer holds.
    #[cold]
    pub(crate) fn cut(&mut self, port: u16, buffered: &[u32]) {
        let first = usize::from(port) * self.queues;
        self.credits[first..first + self.queues].fill(0);
        let buffer = self.buffer;
        self.returns.cut(port, buffered.iter().map(|&buffered| buffer - buffered));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory of 3000 bytes for packets of 600, with one queue that has this reserve and may take half of what is left above it.
    fn shared_by_one_queue(reserve: u64, account: SharedAccount) -> Shared {
        Shared {
            queues: 1,
            pause_size: 64,
            alpha: 1 << 19,
            reserve,
            resume: 0,
            pool: 3000,
            used: 0,
            packet: 600,
            headroom: vec![0],
            inflow: vec![Inflow(0)],
            inflow_of_all: Inflow(0),
            brief: Brief::default(),
            buffered: vec![account],
            paused: 0,
        }
    }

    #[test]
    fn of_what_passes_it_is_said_whether_it_fits_and_nothing_is_counted() {
        let fixed = Fixed {
            queues: 1,
            pause_size: 64,
            packet: 600,
            thresholds: vec![Thresholds { pause: 1000, resume: 500, limit: 2000, inflow: Inflow(0) }],
            buffered: vec![FixedAccount { bytes: 0, most: 1000, resumes_below: 0, leaves_by: 0 }],
            paused: Vec::new(),
        };
        // Above its reserve of 100 a queue may take half of what is left of 3000: 1000 at most.
        let shared = shared_by_one_queue(100, SharedAccount::new(100, 0));
        for mut buffers in [Buffers::Fixed(Box::new(fixed)), Buffers::Shared(Box::new(shared))] {
            let fits = [true, true, false, true].map(|passes| buffers.charge(None, (0, 0), (600, 1), passes));
            assert_eq!(fits, [Charge::Fits, Charge::Fits, Charge::Fits, Charge::ReachesThreshold]);
            // It leaves the account as it was, and another packet of 400 fits.
            assert_eq!(buffers.on_departure(None, 600, true, (0, 0), (1, 0)), Effect::None);
            assert_eq!(buffers.charge(None, (0, 0), (400, 1), false), Charge::Fits);
            assert_eq!(buffers.charge(None, (0, 0), (200, 1), false), Charge::ReachesThreshold);
            // One that has been counted makes room.
            assert_eq!(buffers.on_departure(None, 600, false, (0, 0), (1, 0)), Effect::None);
            assert_eq!(buffers.charge(None, (0, 0), (200, 1), false), Charge::Fits);
        }
    }

    #[test]
    fn a_paused_queue_resumes_as_far_below_its_threshold_as_is_configured() {
        let resumes = |shared: u64| {
            // Of 100,000 bytes 39,000 are used when the packet has left: half of the rest is the threshold, 30,500.
            let mut account = SharedAccount { bytes: 1000 + shared + 1000, ..SharedAccount::new(1000, 0) };
            account.pause();
            let mut memory = Shared {
                resume: 2000,
                pool: 100_000,
                used: 40_000,
                packet: 1000,
                paused: 1,
                ..shared_by_one_queue(1000, account)
            };
            let resumes = memory.release_paused(0, 0, 1000);
            assert_eq!((memory.used, memory.paused), (39_000, u32::from(!resumes)));
            resumes
        };
        assert_eq!([28_500, 28_501].map(resumes), [true, false]);
    }

    #[test]
    fn a_paused_queue_is_asked_for_room_even_within_its_reserve() {
        let account = SharedAccount { bytes: 400, ..SharedAccount::new(1000, 0) };
        let memory = shared_by_one_queue(1000, account);
        let charge = |account: SharedAccount| {
            Shared { buffered: vec![account], ..memory.clone() }.charge(0, 0, 600, false)
        };
        let mut paused = account;
        paused.pause();
        let mut resumed = paused;
        resumed.resume(1000);
        let expected = [Charge::Fits, Charge::ReachesThreshold, Charge::Fits];
        assert_eq!([account, paused, resumed].map(charge), expected);
    }

    #[test]
    fn a_port_stays_quiet_for_a_brief_time_where_it_does_by_the_exact_look() {
        // In 100 ps 100 bytes come, beside 1,201 that may be on their way: 1,301 in all.
        let inflow = Inflow(1 << 56);
        let quiet = |reserve: u64, bytes: u64, used: u64, time: u64| {
            let account = SharedAccount { bytes, ..SharedAccount::new(reserve, 1301) };
            let memory = Shared {
                used,
                inflow: vec![inflow],
                inflow_of_all: inflow,
                brief: Brief { time: Time(100), used: 3000 - 1301 },
                ..shared_by_one_queue(reserve, account)
            };
            let is_quiet = memory.stays_quiet(0, Time(time));
            assert_eq!(is_quiet, memory.stays_quiet_exactly(0, Time(time)), "{bytes} {used} {time}");
            is_quiet
        };
        assert_eq!([699, 700, 701].map(|bytes| quiet(2000, bytes, 1699, 99)), [true, true, false]);
        // Above the reserve by less than the threshold, which is half of what is left of the pool, 849; and for longer, or with more in use, which the exact look says.
        assert_eq!([1547, 1548, 1549].map(|bytes| quiet(2000, bytes, 0, 99)), [true, true, true]);
        assert_eq!(
            [(1000, 0, 99), (699, 0, 5000), (699, 1700, 99)].map(|(b, u, t)| quiet(2000, b, u, t)),
            [true, false, true]
        );
        assert!(!quiet(2000, 699, 2000, 99), "no room in the pool");
    }
}
