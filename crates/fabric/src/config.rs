//! The fabric as the user writes it.

use netloom_units::kind::Kind;
use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow_control::FlowControl;
use crate::qcn::Qcn;
use crate::queue::Queue;
use crate::queue::tail_drop::TailDrop;
use crate::queue::trimming::Trimming;

/// What a switch does: queues, classes, marking, and how a full buffer holds its upstream neighbour back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fabric {
    /// Queues, classes and marking.
    #[serde(flatten)]
    pub options: FabricOptions,
    /// What becomes of a packet that finds its output queue full.
    pub queue: Queue,
    /// What happens when buffers fill.
    pub flow_control: FlowControl,
}

/// Output-queued switches: control packets above data at every port, traffic classes with strict priority or shares, and
/// byte-limited data queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FabricOptions {
    /// Bytes that may wait in one output queue (of one port, class and virtual channel), the packet being sent not counted. Absent: unlimited,
    /// and with trimming eight of the largest packets. In a lossy fabric `queue` determines what happens to data that does not fit. In a lossless one
    /// a packet that does not fit waits at its input (one queue per input port, traffic class and virtual channel) and blocks those behind it; when
    /// there is room, the packet that arrived first continues.
    pub buffer: Option<Bytes>,
    /// Whether ACKs and congestion notifications overtake data at every port. Off: they are queued with the data of their class, and flow control
    /// also applies to them.
    pub control_priority: bool,
    /// Time a switch takes to forward a packet, in addition to its serialisation and the link's latency.
    pub switch_latency: Time,
    /// Cut-through: a switch forwards a packet once this many bytes of it have arrived. A packet that arrives more slowly than the switch's fastest
    /// link could forward it is stored first.
    /// Absent: store and forward.
    pub cut_through: Option<Bytes>,
    /// Traffic classes, numbered from 0 in this order. Absent: one class.
    pub classes: Vec<TrafficClass>,
    /// ECN marking of data packets; absent: none.
    pub ecn: Option<Ecn>,
    /// Other thresholds than `ecn` for channels of certain nominal rates: tables with `rate`, `kmin`, `kmax` and `pmax`.
    pub ecn_by_rate: Vec<EcnAtRate>,
    /// Whether switches also mark packets that wait for a host. Where receivers grant credit (`transport.congestion = "rccc"`), the credit controls
    /// the last hop, and uet-htsim does not mark there.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub ecn_last_hop: bool,
    /// QCN congestion points at every output queue of a switch, which notify sources of congestion; absent: none.
    pub qcn: Option<Qcn>,
}

impl Default for FabricOptions {
    fn default() -> Self {
        FabricOptions {
            buffer: None,
            control_priority: true,
            switch_latency: Time::ZERO,
            cut_through: None,
            classes: Vec::new(),
            ecn: None,
            ecn_by_rate: Vec::new(),
            ecn_last_hop: true,
            qcn: None,
        }
    }
}

impl Default for Fabric {
    fn default() -> Self {
        Fabric {
            options: FabricOptions::default(),
            queue: Queue::TailDrop(Default::default()),
            flow_control: FlowControl::Lossy(Default::default()),
        }
    }
}

/// How a port serves a traffic class (enhanced transmission selection, IEEE 802.1Qaz).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrafficClass {
    /// Weight of the class among the classes with a share, by deficit round robin; bandwidth that a class does not use is shared by the others.
    /// Absent: strict priority, above all shares and above the strict classes listed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
}

/// RED-like marking on the instantaneous queue: never at or below `kmin`, with a probability that grows linearly to `pmax` at `kmax`, always
/// above. `kmin = kmax` is DCTCP's step (Alizadeh et al., SIGCOMM'10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ecn {
    /// Queued data bytes up to which nothing is marked.
    pub kmin: Bytes,
    /// Queued data bytes above which everything is marked.
    pub kmax: Bytes,
    /// Marking probability at `kmax`.
    #[serde(default = "one")]
    pub pmax: f64,
    /// When the queue is measured; also for `ecn_by_rate`.
    #[serde(default)]
    pub mark: Mark,
}

/// When it is decided whether a packet is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// When its transmission starts, by the bytes that remain in its queue. The public simulators of HPCC and ConWeave do the same; those of the
    /// htsim family measure when the transmission ends.
    #[default]
    Departure,
    /// When it enters its queue, by the bytes that wait there, the packet being sent not counted: the signal is older by the packet's time in the queue.
    Arrival,
}

/// [`Ecn`] on the channels of one rate: faster links usually have proportionally higher thresholds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EcnAtRate {
    /// The channels' nominal rate.
    pub rate: Rate,
    /// Queued data bytes up to which nothing is marked.
    pub kmin: Bytes,
    /// Queued data bytes above which everything is marked.
    pub kmax: Bytes,
    /// Marking probability at `kmax`.
    #[serde(default = "one")]
    pub pmax: f64,
}

impl EcnAtRate {
    fn ecn(&self, mark: Mark) -> Ecn {
        Ecn { kmin: self.kmin, kmax: self.kmax, pmax: self.pmax, mark }
    }
}

fn one() -> f64 {
    1.0
}

/// Most traffic classes, and most queues of a PFC fabric (IEEE 802.1Qbb has eight priorities).
pub(crate) const MOST_CLASSES: usize = 8;

impl Fabric {
    /// Whether a data packet can be lost.
    pub fn is_lossy(&self) -> bool {
        !self.is_lossless() && (self.options.buffer.is_some() || self.queue.trims())
    }

    /// Whether flow control keeps data packets from being lost.
    pub fn is_lossless(&self) -> bool {
        !matches!(self.flow_control, FlowControl::Lossy(_))
    }

    /// How the channels of a rate mark, from a switch to a host or others, where that is not how all others do.
    pub fn ecn_at(&self, rate: Rate, is_last_hop: bool) -> Option<Ecn> {
        let mark = self.options.ecn.as_ref().map_or_else(Mark::default, |ecn| ecn.mark);
        if is_last_hop && !self.options.ecn_last_hop {
            return Some(Ecn { kmin: Bytes(u64::MAX), kmax: Bytes(u64::MAX), pmax: 0.0, mark });
        }
        self.options.ecn_by_rate.iter().find(|own| own.rate == rate).map(|own| own.ecn(mark))
    }

    /// The bytes in an output queue up to which no channel marks.
    pub(crate) fn least_kmin(&self) -> Bytes {
        let FabricOptions { ecn, ecn_by_rate, .. } = &self.options;
        let all = ecn.iter().map(|ecn| ecn.kmin).chain(ecn_by_rate.iter().map(|own| own.kmin));
        all.min().unwrap_or(Bytes(u64::MAX))
    }

    /// Data bytes that may wait in one output queue where `packet` is the largest packet on the wire; absent: as many as come.
    pub fn queue_room(&self, packet: Bytes) -> Option<Bytes> {
        let packets = self.queue.trims().then_some(Bytes(Trimming::PACKETS * packet.0));
        self.options.buffer.or(packets)
    }

    /// Number of traffic classes.
    pub fn classes(&self) -> usize {
        self.options.classes.len().max(1)
    }

    /// Refuses values without meaning. `packet` is the largest packet on the wire.
    ///
    /// # Errors
    /// Names the field to change, from the fabric's table on.
    pub fn check(&self, packet: Bytes) -> Result<(), Invalid> {
        let options = &self.options;
        if let Some(buffer) = options.buffer {
            let room = format!("room for a packet of {packet}");
            Invalid::unless(buffer >= packet, "buffer", room, buffer)?;
        }
        if let Some(head) = options.cut_through {
            Invalid::at_least("cut_through", head, Bytes(1))?;
        }
        let classes = options.classes.len();
        Invalid::unless(classes <= MOST_CLASSES, "classes", format!("at most {MOST_CLASSES}"), classes)?;
        for (class, TrafficClass { share }) in options.classes.iter().enumerate() {
            if let Some(share) = *share {
                Invalid::at_least(format!("classes.{class}.share"), share, 1)?;
            }
        }
        if let Some(ecn) = &options.ecn {
            ecn.check().map_err(|invalid| invalid.within("ecn"))?;
        }
        for (i, own) in options.ecn_by_rate.iter().enumerate() {
            let within = |error: Invalid| error.within(&format!("ecn_by_rate.{i}"));
            own.ecn(Mark::default()).check().map_err(within)?;
            let is_new = options.ecn_by_rate[..i].iter().all(|before| before.rate != own.rate);
            Invalid::unless(is_new, "rate", "a rate that is not listed before", own.rate).map_err(within)?;
        }
        let has_others = options.ecn.is_some() || options.ecn_by_rate.is_empty();
        let expected = "nothing without `ecn`, which holds for all other rates";
        Invalid::unless(has_others, "ecn_by_rate", expected, options.ecn_by_rate.len())?;
        let expected = "true without `ecn`: nothing is marked at any hop";
        Invalid::unless(options.ecn.is_some() || options.ecn_last_hop, "ecn_last_hop", expected, false)?;
        if let Some(qcn) = &options.qcn {
            qcn.check().map_err(|invalid| invalid.within("qcn"))?;
        }
        self.queue.check().map_err(|invalid| invalid.within("queue"))?;
        if let Queue::TailDrop(TailDrop { random: Some(_) }) = &self.queue {
            let expected = "none where nothing bounds the queues: give a `buffer`, and no flow control";
            let is_bounded = options.buffer.is_some() && !self.is_lossless();
            Invalid::unless(is_bounded, "queue.random", expected, "a table")?;
        }
        let expected = "\"tail-drop\" where flow control keeps packets from being lost";
        let fits = !(self.queue.trims() && self.is_lossless());
        Invalid::unless(fits, "queue", expected, format!("\"{}\"", self.queue.name()))?;
        self.flow_control.check(packet, self.classes()).map_err(|invalid| invalid.within("flow_control"))
    }
}

impl Ecn {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.kmin <= self.kmax, "kmin", format!("at most kmax = {}", self.kmax), self.kmin)?;
        Invalid::unless((0.0..=1.0).contains(&self.pmax), "pmax", "a probability from 0 to 1", self.pmax)
    }

    /// Whether to mark a packet that finds, or leaves behind, `queued` data bytes.
    #[inline(never)]
    pub(crate) fn decide(&self, queued: u64, random: &mut impl rand::Rng) -> bool {
        self.probability(queued).comes_true(|| random.next_u32())
    }

    /// Probability of marking a packet that finds, or leaves behind, `queued` data bytes.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a share of CERTAIN")]
    pub(crate) fn probability(&self, queued: u64) -> Probability {
        Probability(if queued <= self.kmin.0 {
            0
        } else if queued > self.kmax.0 {
            Probability::CERTAIN
        } else {
            // What waits is below 2⁶³: as a signed number it takes an instruction to convert, as an unsigned one six. So does what comes out.
            let above = (queued - self.kmin.0).cast_signed() as f64;
            let share = above / (self.kmax.0 - self.kmin.0) as f64;
            (self.pmax * share * Probability::CERTAIN as f64) as i64
        })
    }
}

/// A probability in units of 2⁻³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probability(i64);

impl Probability {
    const CERTAIN: i64 = 1 << 32;

    /// Whether it comes true; nothing is drawn where that is certain.
    #[inline(always)]
    pub(crate) fn comes_true(self, draw: impl FnOnce() -> u32) -> bool {
        match self.0 {
            0 => false,
            Probability::CERTAIN => true,
            share => i64::from(draw()) < share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marking_grows_linearly_between_the_thresholds() {
        let ecn = Ecn { kmin: Bytes(100), kmax: Bytes(300), pmax: 0.5, mark: Mark::default() };
        let share = |queued| ecn.probability(queued).0 as f64 / (1u64 << 32) as f64;
        assert_eq!([share(100), share(200), share(300), share(301)], [0.0, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn a_step_marks_above_it_only() {
        let ecn = Ecn { kmin: Bytes(100), kmax: Bytes(100), pmax: 1.0, mark: Mark::default() };
        assert_eq!((ecn.probability(100).0, ecn.probability(101).0), (0, 1 << 32));
    }

    #[test]
    fn trimming_is_refused_where_flow_control_keeps_queues_from_filling() {
        let queue = Queue::Trimming(Default::default());
        let pfc = FlowControl::Pfc(Default::default());
        let error =
            Fabric { queue: queue.clone(), flow_control: pfc, ..Fabric::default() }.check(Bytes(4160));
        assert!(error.unwrap_err().to_string().starts_with("queue: expected \"tail-drop\" where"));
        assert_eq!(Fabric { queue, ..Fabric::default() }.check(Bytes(4160)), Ok(()));
        let small =
            crate::queue::trimming::Trimming { control_buffer: Some(Bytes(63)), ..Default::default() };
        let fabric = Fabric { queue: Queue::Trimming(small), ..Fabric::default() };
        assert_eq!(fabric.check(Bytes(4160)).unwrap_err().field, "queue.control_buffer");
    }

    #[test]
    fn senseless_values_name_their_field() {
        let check = |options| {
            let fabric = Fabric { options, ..Fabric::default() };
            fabric.check(Bytes(4160)).unwrap_err().field
        };
        let ecn = |kmin, pmax| {
            let ecn = Some(Ecn { kmin: Bytes(kmin), kmax: Bytes(1), pmax, mark: Mark::default() });
            FabricOptions { ecn, ..FabricOptions::default() }
        };
        assert_eq!(check(ecn(2, 1.0)), "ecn.kmin");
        assert_eq!(check(ecn(1, f64::NAN)), "ecn.pmax");
        let at = |rate, kmin| EcnAtRate {
            rate: Rate::from_gbps(rate),
            kmin: Bytes(kmin),
            kmax: Bytes(9),
            pmax: 1.0,
        };
        let by_rate = |ecn_by_rate| FabricOptions { ecn_by_rate, ..ecn(1, 1.0) };
        assert_eq!(check(by_rate(vec![at(1, 9), at(2, 10)])), "ecn_by_rate.1.kmin");
        assert_eq!(check(by_rate(vec![at(1, 9), at(1, 8)])), "ecn_by_rate.1.rate");
        assert_eq!(check(FabricOptions { ecn: None, ..by_rate(vec![at(1, 9)]) }), "ecn_by_rate");
        assert_eq!(check(FabricOptions { ecn_last_hop: false, ..Default::default() }), "ecn_last_hop");
        assert_eq!(check(FabricOptions { buffer: Some(Bytes(4159)), ..Default::default() }), "buffer");
        assert_eq!(check(FabricOptions { cut_through: Some(Bytes(0)), ..Default::default() }), "cut_through");
        let classes = vec![TrafficClass { share: Some(0) }];
        assert_eq!(check(FabricOptions { classes, ..Default::default() }), "classes.0.share");
    }
}
