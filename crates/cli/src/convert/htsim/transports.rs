//! Queues and transports of the main programs.

use netloom_scenario::Problem;
use netloom_units::names::shorten;

use super::{Converter, HEADER, Packet, Tree, no_tree, quoted, table, whole_picoseconds};

impl Converter {
    /// A queue of `-q` packets by `-mtu`, the one that is being sent counted in: what may wait beside it.
    pub(super) fn waiting(&self, packet: Packet) -> Result<(u64, u64), Problem> {
        let bytes = self.queue.saturating_mul(packet.mtu);
        match (bytes / packet.wire()).checked_sub(1) {
            Some(packets) if packets > 0 => Ok((bytes, packets * packet.wire())),
            _ => Err(Problem::new(
                "-q",
                format!("expected room for two packets of {} bytes, found {bytes} bytes", packet.wire()),
            )),
        }
    }

    /// Queues that trim, headers before data.
    pub(super) fn trimming(&mut self, packet: Packet, header: u64) -> Result<(), Problem> {
        let kind = self.flags.word("-queue_type", "composite");
        if kind != "composite" {
            let message = format!("expected composite (queues that trim), found \"{}\"", shorten(&kind));
            return Err(Problem::new("-queue_type", message));
        }
        let (bytes, waiting) = self.waiting(packet)?;
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        let fields = [
            ("kind", quoted(&"trimming")),
            ("control_weight", "100000".to_owned()),
            ("header_size", quoted(&format!("{header}B"))),
            ("control_buffer", quoted(&format!("{}B", 2 * bytes))),
            ("return_to_sender", "false".to_owned()),
        ];
        self.draft.set("fabric.queue", table(&fields));
        Ok(())
    }

    pub(super) fn sizes(&mut self, preset: &str, packet: Packet, ack: u64) {
        self.draft.text("transport.preset", preset);
        self.draft.text("transport.mtu", format!("{}B", packet.payload));
        self.draft.text("transport.header", format!("{}B", packet.header));
        self.draft.text("transport.ack_size", format!("{ack}B"));
    }

    /// A timeout in microseconds that follows no round-trip times.
    pub(super) fn timeout(&mut self, microseconds: f64) {
        let microseconds = whole_picoseconds(microseconds);
        for field in ["rto_min", "rto_initial", "rto_max"] {
            self.draft.text(&format!("transport.{field}"), format!("{microseconds}us"));
        }
    }

    /// Receivers that ask for packets, at 99% of their link's rate.
    pub(super) fn ndp(&mut self, packet: Packet) -> Result<(), Problem> {
        self.trimming(packet, HEADER)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(15);
        let mut fields = vec![
            ("kind", quoted(&"pulls")),
            ("initial_window", window.to_string()),
            ("pace", "0.99".to_owned()),
        ];
        if self.flags.has("-rts") {
            fields.push(("request_to_send", "true".to_owned()));
        }
        self.draft.set("transport.congestion", table(&fields));
        if self.flags.has("-oversubscribed_cc") {
            self.draft
                .remark("-oversubscribed_cc: receivers ask for a packet per packet, whatever is trimmed");
        }
        self.draft.remark("sizes of the matrix: htsim_ndp rounds them up to whole packets");
        // Only for strategies and queues that have no counterpart.
        for unused in ["-ecn_thresh", "-pfc_thresholds", "-ar_sticky_delta", "-ar_method", "-ar_granularity"]
        {
            self.flags.take(unused);
        }
        Ok(())
    }

    /// Receivers that grant credit: what each PULL grants, and when, is in the preset.
    pub(super) fn eqds(&mut self, packet: Packet, tree: Option<Tree>) -> Result<(), Problem> {
        self.trimming(packet, HEADER)?;
        self.sizes("eqds", packet, HEADER);
        let packets = self.flags.number::<u64>("-cwnd")?.unwrap_or(50);
        // Mb/s, and microseconds: their product is a number of bits.
        let (rate, rtt) = tree.map_or((100_000.0, 12.0), |tree| (tree.rate, tree.rtt(packet)));
        if tree.is_none() {
            self.draft.remark("-topo: the first window and the timeout are those of links of 100 Gb/s (set transport.congestion.max_window, rto_min, rto_initial and rto_max); there they follow from -linkspeed");
        }
        // Half a byte more, as whole bytes of it count.
        let window = (packets.saturating_mul(packet.mtu) as f64 + 0.5) * 8.0 / (rate * rtt);
        let fields = [("network_rtt", quoted(&format!("{rtt}us"))), ("max_window", format!("{window:?}"))];
        self.draft.set("transport.congestion", table(&fields));
        self.timeout(150.0 + self.emptying(packet, rate));
        self.draft.remark(
            "EQDS: receivers grant credit by the rules of RCCC, which comes from it; there senders of trimmed packets are served before others, and the timeout follows round-trip times that exceed it",
        );
        Ok(())
    }

    /// What six full queues take to empty, in microseconds.
    pub(super) fn emptying(&self, packet: Packet, rate: f64) -> f64 {
        (self.queue * packet.mtu) as f64 * 6.0 * 8.0 / rate
    }

    /// Queues for data and ACKs together that drop a tenth of what comes into their last three packets.
    fn dropping(&mut self, waiting: u64) {
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        self.draft.set("fabric.control_priority", false);
        let random = table(&[("probability", "0.1".to_owned()), ("packets", "3".to_owned())]);
        self.draft.set("fabric.queue", table(&[("kind", quoted(&"tail-drop")), ("random", random)]));
        self.draft.set("transport.reliability.sack", false);
    }

    pub(super) fn roce(&mut self, packet: Packet) -> Result<(), Problem> {
        let kind = self.flags.word("-queue_type", "lossless_input");
        if kind != "lossless_input" {
            let message =
                format!("expected lossless_input (PFC at the inputs), found \"{}\"", shorten(&kind));
            return Err(Problem::new("-queue_type", message));
        }
        let thresholds = self.flags.take("-pfc_thresholds");
        let threshold = |at: usize, default: u64| match &thresholds {
            None => Ok(default),
            Some(words) => words[at].parse().map_err(|_| {
                Problem::new(
                    "-pfc_thresholds",
                    format!("expected two numbers of packets, found \"{}\"", shorten(&words[at])),
                )
            }),
        };
        let (low, high) = (threshold(0, 12)?, threshold(1, 15)?);
        if low >= high {
            return Err(Problem::new(
                "-pfc_thresholds",
                format!("expected the lower one first, found {low} and {high}"),
            ));
        }
        // What may come after a pause has been asked for; there inputs hold whatever does.
        const HEADROOM: u64 = 1 << 20;
        let fields = [
            ("kind", quoted(&"pfc")),
            ("buffer", quoted(&format!("{}B", high * packet.mtu + HEADROOM))),
            ("headroom", quoted(&format!("{HEADROOM}B"))),
            ("resume", quoted(&format!("{}B", (high - low) * packet.mtu))),
        ];
        self.draft.set("fabric.flow_control", table(&fields));
        self.sizes("roce", packet, HEADER);
        self.draft.text("transport.congestion", "none");
        Ok(())
    }

    /// A path that is drawn for every flow, or paths that differ for its subflows, and whether they leave it.
    pub(super) fn paths_of_swift(&mut self) -> Result<(), Problem> {
        let subflows = self.flags.number::<u64>("-subflows")?;
        if let Some(subflows) = subflows {
            self.draft.set("transport.subflows", subflows);
        }
        let plb = self.flags.word("-plb", "off");
        match plb.as_str() {
            "off" if subflows.is_some_and(|subflows| subflows > 1) => {
                let labels = [("preset", quoted(&"path-list")), ("granularity", quoted(&"flow"))];
                self.draft.set("routing", table(&labels));
            }
            "off" => self.draft.text("routing.preset", "ecmp"),
            "on" => {
                self.draft.text("routing.preset", "plb-htsim");
                self.draft.remark(
                    "-plb on: a flow takes its paths in turn; there in random order, and one that has taken all of them stops the program",
                );
            }
            _ => {
                return Err(Problem::new("-plb", format!("expected on or off, found \"{}\"", shorten(&plb))));
            }
        }
        Ok(())
    }

    pub(super) fn swift(&mut self, packet: Packet) -> Result<(), Problem> {
        let (_, waiting) = self.waiting(packet)?;
        self.sizes("tcp", packet, 40);
        self.dropping(waiting);
        self.draft.text("transport.rto_min", "100us");
        self.draft.text("transport.rto_initial", "1ms");
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(15);
        // Its copies of a route count no hops, and its windows of less than two packets count as one.
        let fields = [
            ("kind", quoted(&"swift")),
            ("initial_window", window.to_string()),
            ("hop_delay", quoted(&"0ps")),
            ("fs_whole_packets", "true".to_owned()),
        ];
        self.draft.set("transport.congestion", table(&fields));
        if let Some(packets) = self.flags.number::<u64>("-flowsize")? {
            let bytes = (packets + 1) * packet.payload;
            self.draft.remark(format!(
                "-flowsize {packets}: sizes are those of the matrix; htsim_swift sends {bytes} bytes for each"
            ));
        }
        Ok(())
    }

    pub(super) fn tcp(&mut self) -> Result<(), Problem> {
        let nodes = self.flags.number::<u64>("-nodes")?.unwrap_or(16);
        let k = (2u64..).step_by(2).find(|k| k.pow(3) / 4 >= nodes).unwrap_or(2);
        if k.pow(3) / 4 != nodes {
            return Err(no_tree("k³/4 hosts: 16, 54, 128, 250, 432, 686, 1024, …", nodes));
        }
        let tree = [
            ("kind", quoted(&"fat-tree")),
            ("k", k.to_string()),
            ("rate", quoted(&"100Gbps")),
            ("latency", quoted(&"1us")),
        ];
        self.draft.set("topology", table(&tree));
        // Endless flows of its own permutation, for four seconds.
        self.draft.set("workload", table(&[("kind", quoted(&"permutation")), ("size", quoted(&"1000GB"))]));
        self.draft.text("measure.until", "4s");
        self.draft.text("routing.preset", "ecmp");
        // A SYN has a byte, and is a header here.
        let packet = Packet { mtu: 1500, payload: 1499, header: 1 };
        self.sizes("tcp", packet, 40);
        self.dropping(7 * packet.wire());
        self.draft.set("transport.congestion.initial_ssthresh", 100);
        self.draft.text("transport.rto_min", "250ms");
        self.draft.text("transport.rto_initial", "3s");
        self.draft.remark("the way of ACKs: they go by the network; there they arrive at once");
        let subflows = self.flags.number::<u64>("-sub")?.unwrap_or(1);
        if subflows > 1 {
            self.draft.set("transport.subflows", subflows);
            self.draft.remark("the SYN of every subflow: subflows begin without");
        } else {
            self.draft.set("transport.handshake", true);
        }
        let couplings =
            ["COUPLED_INC", "FULLY_COUPLED", "COUPLED_TCP", "COUPLED_SCALABLE_TCP", "COUPLED_EPSILON"];
        let coupling = couplings.into_iter().find(|flag| self.flags.has(flag));
        self.flags.take("UNCOUPLED");
        if let Some(coupling) = coupling
            && subflows > 1
        {
            self.draft.set("transport.congestion.coupled", true);
            if coupling != "COUPLED_INC" {
                self.draft.remark(format!("{coupling}: subflows are coupled by LIA (RFC 6356)"));
            }
        }
        self.flags.take("-conns");
        Ok(())
    }
}
