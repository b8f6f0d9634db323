//! The transport as the user writes it.

use netloom_units::kind::Kind;
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::congestion::bolt::Bolt;
use crate::congestion::rccc::Rccc;
use crate::congestion::{Congestion, Limit};
use crate::nic::NicQueue;
use crate::reliability::{Reliability, Takes};
use crate::reorder::Reorder;
use crate::sender::PathFacts;
use crate::shaping::{Shaping, Spacing};

/// A host's transport: reliability × congestion control × shaping, and the sizes of what goes on the wire.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transport {
    /// Sizes, acknowledgement and timeouts.
    #[serde(flatten)]
    pub options: TransportOptions,
    /// How losses and reordering are dealt with.
    pub reliability: Reliability,
    /// How much a flow may have in flight, or how fast it may send.
    pub congestion: Congestion,
    /// How packets that may leave are spread over time.
    pub shaping: Shaping,
}

/// Sizes on the wire, acknowledgement and timeouts; common to all transports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TransportOptions {
    /// Largest payload of a data packet.
    pub mtu: Bytes,
    /// Headers of a data packet, on the wire in addition to the payload.
    pub header: Bytes,
    /// Size of an ACK or NACK on the wire.
    pub ack_size: Bytes,
    /// One ACK per this many packets. Last and out-of-order packets are acknowledged at once, and when marks begin or end, the packets before
    /// that are (RFC 8257, section 3.2).
    pub ack_every: u32,
    /// A packet is acknowledged after this long even if too few have come since; matters only if `ack_every` is above 1.
    pub ack_delay: Time,
    /// Minimum retransmission timeout. The timeout follows RFC 6298 and counts from the departure of the oldest packet in flight. It is armed
    /// only where the fabric can lose packets, a go-back-N receiver may discard them, or one ACK answers several packets in any order (`pds`).
    pub rto_min: Time,
    /// Retransmission timeout before the first round-trip time is known.
    pub rto_initial: Time,
    /// Largest retransmission timeout, after any number of timeouts in a row; absent: 64 times the first one. RFC 6298 (2.5) requires 60 s or
    /// more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_max: Option<Time>,
    /// How many subflows send a flow together (MPTCP, RFC 8684), each with a window, a timer and a path of its own; 1: the flow itself
    /// does. A subflow with room in its window sends the flow's next packet, and the receiver puts them in order. Beyond 1 every packet has
    /// its ACK (`ack_every = 1`).
    ///
    /// Each subflow takes turns at the NIC like a flow. Under a hash its path follows from its own number; otherwise entropy values,
    /// labels, layers and paths are given out in turn from the first one on, so that they differ as long as there are enough. `ooo_packets`
    /// and `max_resequencing` are those of the flow's reorder buffer. After a timeout the other subflows send what the silent one had in
    /// flight, and it gets nothing new until an ACK arrives for it. Works with selective repeat and every congestion control except `pulls` and `dcqcn`.
    /// All tables count the flow, not its subflows. ACKs carry no data-level window, and there is no handshake.
    pub subflows: u32,
    /// Whether a flow begins with a handshake, as TCP does: a packet without payload, and nothing else until its ACK has come. Its timeout
    /// is `rto_initial`, doubled for every further one.
    ///
    /// The ideal completion time includes this round trip, and `packets` counts the SYN. If the SYN or its ACK was lost, the first window
    /// is one packet. Refused with `subflows`, with the congestion controls `pulls` and `mp-rdma`, and without ACKs.
    pub handshake: bool,
    /// A host handles arrivals at most once in this time (interrupt throttling): what arrives earlier waits, ACKs too. Absent: at once.
    ///
    /// Times of arrival are then the times at which the host handles the packets; the ideal completion time does not include the wait. FatPaths' TCP runs
    /// have 10 us.
    pub interrupt_interval: Option<Time>,
    /// What a receiving NIC takes from the arrival of a data packet until the ACK or NACK that it causes waits for the link. Absent: none. ACKs of different packets are processed at the same
    /// time. Round-trip times include it, idle ones too, and so do windows of bandwidth-delay products. Refused without ACKs. Vendors publish no value; that of a NIC is the measured round trip of
    /// a small message less the links' and switches' part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_processing: Option<Time>,
    /// The same for notifications of congestion (CNPs), which only receivers for `dcqcn` with a `cnp_interval` send; with others it is refused. Between two CNPs of a flow there is that interval.
    /// Users of Alibaba's ns-3 have measured about 55 us in a testbed (github.com/aliyun/ns-3-alibabacloud, issue 12).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_processing: Option<Time>,
    /// Whether packets wait in a queue of the NIC, and in which order they leave it. With a queue the transport hands over at once what
    /// windows, rates and PULLs allow. A packet's time and path, and the gaps of flowlets, are then those of the hand-over, and round-trip times
    /// include the wait, as in htsim and its descendants.
    ///
    /// A queue of the NIC is not a queue of the fabric: it is unlimited, marks, trims and drops nothing, and is not in `links.parquet`. An
    /// XOFF for a flow stops the hand-over; a pause of a class or of the port stops the queue. No two packets of a host are handed over in
    /// the same instant: each comes a picosecond after the one before. Refused with the congestion controls `none` and `qcn`, which would
    /// hand over whole flows at once, and without ACKs.
    pub nic_queue: NicQueue,
    /// What a host does with packets that arrive out of order, before the transport sees them.
    pub reorder: Reorder,
}

/// With this many a host still has 33 million numbers for its flows.
const MOST_SUBFLOWS: u32 = 64;

impl Default for TransportOptions {
    /// 4096 B of payload in 4160 B packets and an ACK for every packet, as the Flowcut evaluation's simulator.
    fn default() -> Self {
        TransportOptions {
            mtu: Bytes(4096),
            header: Bytes(64),
            ack_size: Bytes(64),
            ack_every: 1,
            ack_delay: Time::from_us(20),
            rto_min: Time::from_ms(1),
            rto_initial: Time::from_ms(10),
            rto_max: None,
            subflows: 1,
            handshake: false,
            interrupt_interval: None,
            ack_processing: None,
            cnp_processing: None,
            nic_queue: NicQueue::None,
            reorder: Reorder::default(),
        }
    }
}

impl Transport {
    /// Size of a full data packet on the wire.
    pub fn packet_size(&self) -> Bytes {
        Bytes(self.options.mtu.0 + self.options.header.0)
    }

    /// The largest message whose packets have numbers of their own, of 32 bits. A SYN takes one of these.
    pub fn largest_message(&self) -> Bytes {
        let packets = u32::MAX - u32::from(self.options.handshake);
        Bytes(self.options.mtu.0.saturating_mul(packets.into()))
    }

    /// Whether receivers acknowledge what they get.
    #[inline]
    pub fn has_acks(&self) -> bool {
        self.reliability.facts().has_acks
    }

    /// Whether an ACK answers several packets in any order, by a bitmap.
    #[inline]
    pub fn has_sacks(&self) -> bool {
        self.reliability.facts().sack_bytes.is_some()
    }

    /// Whether receivers ask for packets.
    #[inline]
    pub fn pulls(&self) -> bool {
        self.congestion.facts().pulls.is_some()
    }

    /// Whether they do so packet by packet.
    fn asks_for_packets(&self) -> bool {
        self.congestion.facts().pulls.is_some_and(|asking| asking.packets().is_some())
    }

    /// How receivers grant credit to senders, if they do.
    #[inline]
    pub fn credit(&self) -> Option<&Rccc> {
        self.congestion.facts().pulls.and_then(|asking| asking.credit())
    }

    /// What switches do for congestion control, if that is Bolt.
    #[inline]
    pub fn bolt(&self) -> Option<&Bolt> {
        self.congestion.bolt()
    }

    /// Whether packets say something else in the header field of the serialisation delay.
    pub fn replaces_serialisation(&self) -> bool {
        self.credit().is_some() || self.bolt().is_some()
    }

    /// Whether the windows of a flow's subflows grow together.
    #[inline]
    pub fn is_coupled(&self) -> bool {
        self.congestion.facts().coupled
    }

    /// Whether the sender says along which path, by its entropy value, a packet goes.
    #[inline]
    pub fn chooses_paths(&self) -> bool {
        self.congestion.chooses_paths()
    }

    /// Whether a receiver may refuse packets that have come, so that a sender must look for losses where the fabric has none.
    pub fn refuses(&self) -> bool {
        self.reliability.facts().takes != Takes::Any
    }

    /// Whether packets that are sent again go before others in switches that trim.
    pub fn hurries(&self) -> bool {
        self.reliability.facts().urgent_repeats
    }

    /// Least time between two notifications of a flow that its receiver sends when packets are marked; `None`: it sends none.
    #[inline]
    pub(crate) fn cnp_interval(&self) -> Option<Time> {
        self.congestion.facts().cnp_interval.filter(|&interval| interval > Time::ZERO)
    }

    /// Whether an ACK, or a NACK, notifies of congestion by itself.
    pub(crate) fn echoes(&self, is_marked: bool, is_nack: bool) -> bool {
        (is_marked || is_nack && self.reliability.facts().nack_congestion)
            && self.congestion.facts().cnp_interval == Some(Time::ZERO)
    }

    /// Refuses values without meaning, and parts that do not fit together.
    ///
    /// # Errors
    /// Names the field to change.
    pub fn check(&self) -> Result<(), Invalid> {
        self.options.check()?;
        self.reliability.check().map_err(|error| error.within("reliability"))?;
        self.congestion.check().map_err(|error| error.within("congestion"))?;
        self.shaping.check().map_err(|error| error.within("shaping"))?;
        self.check_parts()
    }

    /// What congestion control has switches write on data packets and receivers on ACKs, if it does: bytes on the wire.
    pub fn telemetry(&self) -> Option<Bytes> {
        self.congestion.facts().telemetry
    }

    /// The same with the sizes that packets really have: telemetry is a part of headers and ACKs.
    #[must_use]
    pub fn on_the_wire(mut self) -> Self {
        let telemetry = self.telemetry().unwrap_or(Bytes(0));
        self.options.header.0 += telemetry.0;
        self.options.ack_size.0 += telemetry.0;
        self
    }

    /// Refuses parts that do not fit together.
    fn check_parts(&self) -> Result<(), Invalid> {
        let name = self.congestion.name();
        let (facts, reliability) = (self.congestion.facts(), self.reliability.facts());
        if let Some(telemetry) = self.telemetry() {
            let largest = self.packet_size().max(self.options.ack_size).0;
            let limit = u64::from(u16::MAX) - largest;
            let expected = format!("at most {limit} bytes in packets of {largest}");
            Invalid::unless(telemetry.0 <= limit, "congestion.telemetry", expected, telemetry)?;
        }
        if reliability.sack_bytes.is_some() {
            self.check_sacks()?;
        }
        if self.credit().is_some() {
            let says_targets = |kind: &Reliability| kind.facts().sack_bytes.is_some();
            let able = names(Reliability::every().iter().filter(|kind| says_targets(kind)));
            let expected =
                format!("{able} with \"{name}\", whose packets say how much credit they could use");
            let found = format!("\"{}\"", self.reliability.name());
            Invalid::unless(says_targets(&self.reliability), "reliability", expected, found)?;
        }
        if self.bolt().is_some() {
            self.check_claims()?;
        }
        if self.reliability.sleek().is_some() {
            let able = names(Congestion::every().iter().filter(|kind| kind.knows_queueing()));
            let expected = format!("none with \"{name}\": it goes by the target delay of {able}");
            Invalid::unless(self.congestion.knows_queueing(), "reliability.sleek", expected, "a table")?;
        }
        if self.options.subflows > 1 {
            let takes_any = |kind: &Reliability| {
                let facts = kind.facts();
                facts.has_acks && facts.takes == Takes::Any && facts.sack_bytes.is_none()
            };
            let selective = takes_any(&self.reliability);
            let able = names(Reliability::every().iter().filter(|kind| takes_any(kind)));
            let expected = format!(
                "1 with reliability \"{}\", as packets of subflows overtake each other, which {able} allow",
                self.reliability.name()
            );
            Invalid::unless(selective, "subflows", expected, self.options.subflows)?;
            // PULLs, CNPs, notices of switches and entropy values are those of the flow as a whole.
            let notified = facts.cnp_interval.is_some() || self.bolt().is_some();
            let each = facts.pulls.is_none() && !notified && !self.chooses_paths();
            let expected = format!("1 with \"{name}\", whose signals are those of the flow as a whole");
            Invalid::unless(each, "subflows", expected, self.options.subflows)?;
        }
        if reliability.nack_congestion {
            let expected = format!("false with \"{name}\", which knows no notifications of congestion");
            let reacts = facts.cnp_interval.is_some();
            Invalid::unless(reacts, "reliability.nack_congestion", expected, true)?;
        }
        let is_unlimited = matches!(facts.limit, Limit::None | Limit::DestinationRate);
        if self.options.nic_queue.exists() && (is_unlimited || !self.has_acks()) {
            let (expected, found) = match is_unlimited {
                true => ("\"none\" with a congestion that limits nothing before the NIC", name),
                false => {
                    ("\"none\" with a reliability that ends flows when they leave", self.reliability.name())
                }
            };
            return Err(Invalid::new("nic_queue", expected, format!("a queue with \"{found}\"")));
        }
        let processing = self.options.ack_processing.filter(|_| !self.has_acks());
        if let Some(found) = processing {
            let expected = "none with reliability \"none\", which has no ACKs";
            return Err(Invalid::new("ack_processing", expected, found));
        }
        let processing = self.options.cnp_processing.filter(|_| self.cnp_interval().is_none());
        if let Some(found) = processing {
            let expected = "none unless receivers send notifications: for \"dcqcn\" with a `congestion.cnp_interval` above 0; with others ACKs say what was marked (`ack_processing`)";
            return Err(Invalid::new("cnp_processing", expected, found));
        }
        if self.options.handshake {
            let expected = "false with subflows, which begin without";
            Invalid::unless(self.options.subflows == 1, "handshake", expected, true)?;
            let begins_at_once = self.pulls() || self.chooses_paths();
            let expected = format!("false with \"{name}\", whose first window leaves at once");
            Invalid::unless(!begins_at_once, "handshake", expected, true)?;
            let expected = "false with reliability \"none\", which has no ACKs";
            Invalid::unless(self.has_acks(), "handshake", expected, true)?;
        }
        if !reliability.has_acks {
            self.congestion.check_without_acks().map_err(|error| error.within("congestion"))?;
            let able = names(Congestion::every().iter().filter(|kind| !kind.facts().needs_acks));
            let expected = format!("{able} with reliability \"none\", which has no ACKs");
            Invalid::unless(!facts.needs_acks, "congestion", expected, format!("\"{name}\""))?;
        }
        if self.chooses_paths() {
            let expected = format!("1 with \"{name}\", whose ACKs each let packets out");
            Invalid::unless(self.options.ack_every == 1, "ack_every", expected, self.options.ack_every)?;
            // Many paths reorder, and go-back-N takes nothing that does not come in order.
            let is_unfit = |kind: &Reliability| {
                let facts = kind.facts();
                facts.takes.is_in_order() || facts.sack_bytes.is_some()
            };
            let reorders = !is_unfit(&self.reliability);
            let mut able = Reliability::every();
            able.retain(|kind| kind.facts().has_acks && !is_unfit(kind));
            let expected = format!("{} with \"{name}\"", names(able.iter()));
            Invalid::unless(reorders, "reliability", expected, format!("\"{}\"", self.reliability.name()))?;
        }
        let spacing = self.shaping.facts().spacing;
        if let Spacing::Rate(_) = spacing {
            let sets_rates = matches!(facts.limit, Limit::Rate | Limit::DestinationRate);
            let expected = "none with a congestion that sets rates itself";
            Invalid::unless(!sets_rates, "shaping.rate", expected, format!("a rate with \"{name}\""))?;
        } else if spacing == Spacing::RoundTrip && facts.limit != Limit::Window {
            let able = names(Congestion::every().iter().filter(|kind| kind.facts().limit == Limit::Window));
            let expected = format!("a congestion with a window to spread: {able}");
            let found = format!("\"{}\" with \"{name}\"", self.shaping.name());
            return Err(Invalid::new("shaping", expected, found));
        }
        Ok(())
    }

    /// Refuses what does not go with ACKs that answer several packets in any order.
    fn check_sacks(&self) -> Result<(), Invalid> {
        let name = self.reliability.name();
        let expected = format!("1 with \"{name}\", which has its own measure (reliability.ack_bytes)");
        Invalid::unless(self.options.ack_every == 1, "ack_every", expected, self.options.ack_every)?;
        let expected = format!("false with \"{name}\", which begins without");
        Invalid::unless(!self.options.handshake, "handshake", expected, true)?;
        let expected = format!("\"none\" with \"{name}\", which takes packets in any order itself");
        let holds = self.options.reorder.holds();
        Invalid::unless(!holds, "reorder", expected, format!("\"{}\"", self.options.reorder.name()))?;
        let expected = format!(
            "a window, a rate or credit with \"{name}\", whose ACKs and NACKs let no single packets out"
        );
        let lets_out = self.asks_for_packets() || self.chooses_paths();
        Invalid::unless(!lets_out, "congestion", expected, format!("\"{}\"", self.congestion.name()))
    }

    /// Refuses what does not go with packets whose own ACKs let the window grow.
    fn check_claims(&self) -> Result<(), Invalid> {
        let name = self.congestion.name();
        let expected = format!("1 with \"{name}\", whose ACKs each say whether the window may grow");
        Invalid::unless(self.options.ack_every == 1, "ack_every", expected, self.options.ack_every)?;
        let shares = |kind: &Reliability| kind.facts().sack_bytes.is_some();
        let able = Reliability::every();
        let able = names(able.iter().filter(|kind| kind.facts().has_acks && !shares(kind)));
        let expected = format!("{able} with \"{name}\", whose packets each have an ACK of their own");
        let found = format!("\"{}\"", self.reliability.name());
        Invalid::unless(!shares(&self.reliability), "reliability", expected, found)
    }

    /// Whether every packet has an ACK of its own.
    pub fn acknowledges_each(&self) -> bool {
        let smallest = self.options.header.0 + 1;
        let bytes = self.reliability.facts().sack_bytes;
        self.options.ack_every == 1 && bytes.is_none_or(|bytes| bytes.0 <= smallest)
    }

    /// What a flow may have under way on a path when it begins, in bytes on the wire (all of its subflows together), and the field of the transport that says so;
    /// `None`: nothing but its rate limits it.
    pub fn first_window(&self, path: PathFacts) -> Option<(&'static str, Bytes)> {
        let (field, window) = self.congestion.first_window(self.packet_size(), path)?;
        Some((field, Bytes(window.0.saturating_mul(self.options.subflows.into()))))
    }

    /// Whether what a flow may have under way grows while all goes well.
    pub fn grows(&self) -> bool {
        self.congestion.facts().grows
    }
}

/// The names of kinds as a list: `"a", "b" or "c"`.
fn names<'a, K: Kind + 'a>(kinds: impl Iterator<Item = &'a K>) -> String {
    let names: Vec<String> = kinds.map(|kind| format!("\"{}\"", kind.name())).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

impl TransportOptions {
    fn check(&self) -> Result<(), Invalid> {
        let limit = u64::from(u16::MAX);
        Invalid::at_least("mtu", self.mtu, Bytes(1))?;
        let packet = self.mtu.0.saturating_add(self.header.0);
        Invalid::unless(packet <= limit, "mtu", format!("mtu + header of at most {limit} bytes"), packet)?;
        let is_valid = (1..=limit).contains(&self.ack_size.0);
        Invalid::unless(is_valid, "ack_size", format!("1 to {limit} bytes"), self.ack_size)?;
        Invalid::at_least("ack_every", self.ack_every, 1)?;
        let is_valid = !self.handshake || self.header.0 > 0;
        Invalid::unless(
            is_valid,
            "header",
            "at least 1B with a handshake, whose SYN is a header",
            self.header,
        )?;
        let is_valid = self.interrupt_interval.is_none_or(|interval| interval > Time::ZERO);
        Invalid::unless(is_valid, "interrupt_interval", "more than 0", Time::ZERO)?;
        let is_valid = (1..=MOST_SUBFLOWS).contains(&self.subflows);
        Invalid::unless(is_valid, "subflows", format!("1 to {MOST_SUBFLOWS}"), self.subflows)?;
        let is_valid = self.subflows == 1 || self.ack_every == 1;
        self.reorder.check()?;
        Invalid::unless(is_valid, "ack_every", "1, as each subflow has its own ACKs", self.ack_every)?;
        let times =
            [("ack_delay", self.ack_delay), ("rto_min", self.rto_min), ("rto_initial", self.rto_initial)];
        for (field, time) in times {
            Invalid::unless(time > Time::ZERO, field, "more than 0", time)?;
        }
        let first = self.rto_min.max(self.rto_initial);
        let fits = self.rto_max.is_none_or(|most| most >= first);
        let expected = || format!("at least {first}, the larger of rto_min and rto_initial");
        Invalid::unless(fits, "rto_max", expected(), self.rto_max.unwrap_or(first))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
