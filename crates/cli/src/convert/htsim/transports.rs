//! Queues and transports of the main programs.

use netloom_scenario::Problem;
use netloom_units::names::shorten;

use super::{Converter, HEADER, Packet, Tree, no_tree, quoted, table};

impl Converter {
    /// A queue of `-q` packets by `-mtu`, the one that is being sent counted in: what may wait beside it.
    fn waiting(&mut self, packet: Packet, default: u64) -> Result<(u64, u64), Problem> {
        let queue = self.flags.number::<u64>("-q")?.unwrap_or(default);
        let bytes = queue.saturating_mul(packet.mtu);
        match (bytes / packet.wire()).checked_sub(1) {
            Some(packets) if packets > 0 => Ok((bytes, packets * packet.wire())),
            _ => Err(Problem::new(
                "-q",
                format!("expected room for two packets of {} bytes, found {bytes} bytes", packet.wire()),
            )),
        }
    }

    /// Queues that trim, headers before data.
    fn trimming(&mut self, packet: Packet, default: u64) -> Result<(), Problem> {
        let kind = self.flags.word("-queue_type", "composite");
        if kind != "composite" {
            let message = format!("expected composite (queues that trim), found \"{}\"", shorten(&kind));
            return Err(Problem::new("-queue_type", message));
        }
        let (bytes, waiting) = self.waiting(packet, default)?;
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        let fields = [
            ("kind", quoted(&"trimming")),
            ("control_weight", "100000".to_owned()),
            ("header_size", quoted(&format!("{HEADER}B"))),
            ("control_buffer", quoted(&format!("{}B", 2 * bytes))),
            ("return_to_sender", "false".to_owned()),
        ];
        self.draft.set("fabric.queue", table(&fields));
        Ok(())
    }

    fn sizes(&mut self, preset: &str, packet: Packet, ack: u64) {
        self.draft.text("transport.preset", preset);
        self.draft.text("transport.mtu", format!("{}B", packet.payload));
        self.draft.text("transport.header", format!("{}B", packet.header));
        self.draft.text("transport.ack_size", format!("{ack}B"));
    }

    pub(super) fn ndp(&mut self, packet: Packet) -> Result<(), Problem> {
        self.trimming(packet, 15)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(15);
        self.draft.set(
            "transport.congestion",
            table(&[("kind", quoted(&"pulls")), ("initial_window", window.to_string())]),
        );
        self.draft.remark("sizes of the matrix: htsim_ndp rounds them up to whole packets");
        if self.flags.has("-oversubscribed_cc") {
            self.draft
                .remark("-oversubscribed_cc: receivers ask for a packet per packet, whatever is trimmed");
        }
        // Only for strategies and queues that have no counterpart.
        for unused in ["-ecn_thresh", "-pfc_thresholds", "-ar_sticky_delta", "-ar_method", "-ar_granularity"]
        {
            self.flags.take(unused);
        }
        Ok(())
    }

    pub(super) fn eqds(&mut self, packet: Packet) -> Result<(), Problem> {
        self.trimming(packet, 35)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(50);
        self.draft.set(
            "transport.congestion",
            table(&[("kind", quoted(&"pulls")), ("initial_window", window.to_string())]),
        );
        self.draft.remark("EQDS: receivers ask for packets as NDP's do; there they give credit by bytes, and one ACK answers up to 16,384 bytes");
        if self.flags.has("-oversubscribed_cc") {
            self.draft
                .remark("-oversubscribed_cc: receivers ask for a packet per packet, whatever is trimmed");
        }
        Ok(())
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
        if self.flags.take("-q").is_some() {
            self.draft.remark("-q: with PFC at the inputs outputs have no limit");
        }
        Ok(())
    }

    pub(super) fn swift(&mut self, packet: Packet) -> Result<(), Problem> {
        let (_, waiting) = self.waiting(packet, 8)?;
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        self.draft.remark("queues drop their tail; there a packet in ten of those that meet the last three places is dropped, too");
        self.sizes("tcp", packet, 40);
        self.draft.text("transport.rto_min", "100us");
        let window = self.flags.number::<u64>("-cwnd")?.unwrap_or(15);
        self.draft.set(
            "transport.congestion",
            table(&[("kind", quoted(&"swift")), ("initial_window", window.to_string())]),
        );
        if let Some(subflows) = self.flags.number::<u64>("-subflows")? {
            self.draft.set("transport.subflows", subflows);
        }
        if let Some(packets) = self.flags.number::<u64>("-flowsize")? {
            let bytes = (packets + 1) * packet.payload;
            self.draft.remark(format!(
                "-flowsize {packets}: sizes are those of the matrix; htsim_swift sends {bytes} bytes for each"
            ));
        }
        let plb = self.flags.word("-plb", "off");
        match plb.as_str() {
            "off" => {}
            "on" => self.draft.remark("-plb on: a flow keeps its path"),
            _ => {
                return Err(Problem::new("-plb", format!("expected on or off, found \"{}\"", shorten(&plb))));
            }
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
        let packet = Packet { mtu: 1500, payload: 1500, header: 0 };
        self.draft.text("fabric.buffer", format!("{}B", 7 * packet.wire()));
        self.draft.remark("queues drop their tail; there a packet in ten of those that meet the last three places is dropped, too");
        self.sizes("tcp", packet, 40);
        self.draft.set("transport.handshake", true);
        self.draft.text("transport.rto_min", "250ms");
        self.draft.text("transport.rto_initial", "3s");
        self.draft.remark("the way of ACKs: they go by the network; there they arrive at once");
        let subflows = self.flags.number::<u64>("-sub")?.unwrap_or(1);
        if subflows > 1 {
            self.draft.set("transport.subflows", subflows);
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

    pub(super) fn uec(&mut self, packet: Packet, tree: Option<Tree>) -> Result<(), Problem> {
        if self.flags.has("-disable_trim") {
            return Err(Problem::new(
                "-disable_trim",
                "a fabric that marks and drops has no counterpart of UEC's loss recovery here",
            ));
        }
        let receiver_only = self.flags.has("-receiver_cc_only");
        let algorithm = self.flags.word("-sender_cc_algo", "nscc");
        if !receiver_only && algorithm != "constant" {
            let message = format!(
                "expected -receiver_cc_only, or -sender_cc_algo constant: {} has no counterpart here",
                if algorithm == "dctcp" { "a DCTCP that is told of trimmed packets" } else { "NSCC" }
            );
            return Err(Problem::new("-sender_cc_algo", message));
        }
        let products =
            self.flags.number::<u64>("-queue_size_bdp_factor")?.filter(|&factor| factor > 0).unwrap_or(1);
        // Of a tree in a file only the program knows the round-trip time.
        let queue = tree.map_or(0, |tree| products * tree.product(packet));
        self.trimming(packet, queue)?;
        self.sizes("ndp", packet, HEADER);
        let window = self.flags.number::<u64>("-cwnd")?.filter(|&window| window > 0);
        let congestion = match (receiver_only, window) {
            (true, Some(window)) => {
                table(&[("kind", quoted(&"pulls")), ("initial_window", window.to_string())])
            }
            (true, None) => table(&[("kind", quoted(&"pulls")), ("initial_bdp", "1.5".to_owned())]),
            (false, Some(window)) => table(&[
                ("kind", quoted(&"fixed-window")),
                ("bytes", quoted(&format!("{}B", window * packet.payload))),
            ]),
            (false, None) => table(&[("kind", quoted(&"fixed-window")), ("bdp", "1.5".to_owned())]),
        };
        self.draft.set("transport.congestion", congestion);
        let balancing = self.flags.word("-load_balancing_algo", "mixed");
        if balancing != "oblivious" {
            self.draft.remark(format!(
                "-load_balancing_algo {balancing}: labels are drawn at random, as with oblivious"
            ));
        }
        for unused in ["-sender_cc_only", "-sender_cc", "-receiver_cc"] {
            self.flags.take(unused);
        }
        Ok(())
    }
}
