//! `htsim_uec`, Ultra Ethernet in uet-htsim (commit 40ccb05, `datacenter/main_uec.cpp`).

use netloom_scenario::Problem;
use netloom_units::names::{shorten, suggest};

use super::{Converter, HEADER, Packet, Tree, quoted, table};

/// Which ends control congestion, and how the sender does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    Sender,
    Receiver,
    Both,
    /// A window that stays as it is.
    Constant,
}

impl Converter {
    pub(super) fn uec(&mut self, packet: Packet, tree: Option<Tree>) -> Result<(), Problem> {
        let control = self.control()?;
        if let Some(planes) = self.flags.number::<u32>("-planes")?.filter(|&planes| planes != 1) {
            let message =
                format!("expected 1, found {planes}: with several planes the program stops on an assertion");
            let help = "here a scenario has planes: `nics = 1`, `planes` and `bond` in [servers]";
            return Err(Problem::new("-planes", message).help(help));
        }
        let trims = !self.flags.has("-disable_trim");
        if trims {
            let header = self.flags.number::<u64>("-trimsize")?.unwrap_or(HEADER);
            self.trimming(packet, header)?;
        } else {
            self.dropping_whole(packet)?;
        }
        if control != Control::Constant {
            self.marks(packet, tree, control)?;
        }
        self.flags.take("-ecn");
        self.packets_of_uec(packet, tree, control)?;
        self.failed(tree)?;
        for unused in
            ["-force_disable_oversubscribed_cc", "-ar_sticky_delta", "-ar_method", "-ar_granularity"]
        {
            self.flags.take(unused);
        }
        Ok(())
    }

    /// Who controls congestion.
    fn control(&self) -> Result<Control, Problem> {
        let algorithm = self.flags.take("-sender_cc_algo").map(|words| words[0].clone());
        let [receiver_only, sender_only, receiver, sender] =
            ["-receiver_cc_only", "-sender_cc_only", "-receiver_cc", "-sender_cc"]
                .map(|flag| self.flags.has(flag));
        if receiver_only && (sender_only || sender || algorithm.is_some()) {
            let message = "expected no -sender_cc, -sender_cc_only or -sender_cc_algo beside it: of these the program takes the last one";
            return Err(Problem::new("-receiver_cc_only", message));
        }
        if sender_only && receiver {
            let message = "expected no -receiver_cc beside it: of these the program takes the last one";
            return Err(Problem::new("-sender_cc_only", message));
        }
        match (algorithm.as_deref().unwrap_or("nscc"), receiver_only, receiver) {
            (_, true, _) => Ok(Control::Receiver),
            ("nscc", _, true) => Ok(Control::Both),
            ("nscc", _, false) => Ok(Control::Sender),
            ("constant", _, false) => Ok(Control::Constant),
            ("constant", _, true) => {
                let message = "expected nscc with -receiver_cc, found \"constant\": a constant window beside credit has no counterpart here";
                Err(Problem::new("-sender_cc_algo", message))
            }
            ("dctcp", ..) => {
                let message = "expected nscc or constant, found \"dctcp\": its DCTCP with trimmed packets has no counterpart here";
                Err(Problem::new("-sender_cc_algo", message))
            }
            (other, ..) => {
                let message = format!("expected nscc or constant, found \"{}\"", shorten(other));
                Err(Problem::new("-sender_cc_algo", message).help(suggest(other, ["nscc", "constant"])))
            }
        }
    }

    /// Without trimming: what does not fit is dropped, and control packets have a queue of their own.
    fn dropping_whole(&mut self, packet: Packet) -> Result<(), Problem> {
        let (_, waiting) = self.waiting(packet)?;
        self.draft.text("fabric.buffer", format!("{waiting}B"));
        self.draft.set("fabric.queue", table(&[("kind", quoted(&"tail-drop"))]));
        self.draft.remark("-disable_trim: a full queue drops the packet that arrives; there, one time in two the last one in the queue instead");
        self.flags.take("-trimsize");
        Ok(())
    }

    /// Marks by the length of the queue as a packet leaves it, not for hosts where the receiver grants credit.
    fn marks(&mut self, packet: Packet, tree: Option<Tree>, control: Control) -> Result<(), Problem> {
        let given = self.flags.take("-ecn");
        let threshold = |at: usize, share: f64| match (&given, tree) {
            (Some(words), _) => words[at].parse().map_err(|_| {
                Problem::new(
                    "-ecn",
                    format!("expected two numbers of packets, found \"{}\"", shorten(&words[at])),
                )
            }),
            (None, Some(tree)) => Ok(share_of(tree.product(packet), share)),
            (None, None) => Err(Problem::new(
                "-ecn",
                "expected two numbers of packets beside -topo, found none: by default they follow from a round-trip time that only the program knows",
            )),
        };
        let (low, high) = (threshold(0, 0.2)?, threshold(1, 0.8)?);
        if low > high || high > self.queue {
            let message = format!(
                "expected the lower one first and the upper one within a queue of {} packets, found {low} and {high}: the program stops",
                self.queue
            );
            return Err(Problem::new("-ecn", message));
        }
        // There the queue is looked at when the packet has left, here as it starts to.
        let bytes = |packets: u64| quoted(&format!("{}B", packets.saturating_sub(1) * packet.mtu));
        let fields = [("kmin", bytes(low)), ("kmax", bytes(high)), ("pmax", "1.0".to_owned())];
        self.draft.set("fabric.ecn", table(&fields));
        if control != Control::Sender {
            self.draft.set("fabric.ecn_last_hop", false);
        }
        Ok(())
    }

    /// Packets, their timeout, ACKs and congestion control.
    fn packets_of_uec(
        &mut self,
        packet: Packet,
        tree: Option<Tree>,
        control: Control,
    ) -> Result<(), Problem> {
        let preset = match control {
            Control::Sender | Control::Constant => "uet-nscc",
            Control::Receiver => "uet-rccc",
            Control::Both => "uet-nscc-rccc",
        };
        self.sizes(preset, packet, HEADER);
        let bytes = self.flags.number::<u64>("-sack_threshold")?;
        let bytes = bytes.map(|bytes| ("ack_bytes", quoted(&format!("{bytes}B"))));
        let sleek = matches!(control, Control::Sender) && self.flags.has("-sleek");
        let fields: Vec<_> = bytes.into_iter().chain(sleek.then(|| ("sleek", "{}".to_owned()))).collect();
        if !fields.is_empty() {
            let fields = [vec![("kind", quoted(&"pds"))], fields].concat();
            self.draft.set("transport.reliability", table(&fields));
        }
        match tree {
            Some(tree) => self.timeout(15.0 + self.emptying(packet, tree.rate)),
            None => self.draft.remark(
                "-topo: the timeout is that of 100 Gb/s and 43 packets of queue (set transport.rto_min, rto_initial and rto_max), and round-trip times are those of each flow's path; there it follows from -linkspeed and -q, and all flows have the longest",
            ),
        }
        let window = self.flags.number::<u64>("-cwnd")?.filter(|&window| window > 0);
        let rtt = tree.map(|tree| ("network_rtt", quoted(&format!("{}us", tree.rtt(packet)))));
        let congestion = match control {
            Control::Constant => {
                let window = match (window, tree) {
                    (Some(window), _) => ("bytes", quoted(&format!("{}B", window * packet.payload))),
                    (None, Some(tree)) => {
                        ("bytes", quoted(&format!("{}B", tree.window(packet) * packet.payload)))
                    }
                    (None, None) => ("bdp", "1.5".to_owned()),
                };
                vec![("kind", quoted(&"fixed-window")), window]
            }
            Control::Sender => {
                [("kind", quoted(&"nscc"))].into_iter().chain(rtt).chain(self.nscc(window)?).collect()
            }
            Control::Receiver => {
                [("kind", quoted(&"rccc"))].into_iter().chain(rtt).chain(self.rccc()?).collect()
            }
            Control::Both => {
                // The round-trip time of credit holds for both.
                let (credit, nscc) = (self.rccc()?, self.nscc(window)?);
                let nscc = ("nscc", table(&nscc));
                [("kind", quoted(&"rccc"))].into_iter().chain(rtt).chain(credit).chain([nscc]).collect()
            }
        };
        self.draft.set("transport.congestion", table(&congestion));
        Ok(())
    }

    fn nscc(&self, window: Option<u64>) -> Result<Vec<(&'static str, String)>, Problem> {
        let delay = self.flags.number::<f64>("-target_q_delay")?.filter(|&delay| delay > 0.0);
        let gate = self.flags.number::<f64>("-qa_gate")?.filter(|&gate| gate >= 0.0);
        let delay = delay.map(|delay| ("target_delay", quoted(&format!("{delay}us"))));
        let gate = gate.map(|gate| ("quick_adapt_gate", gate.trunc().to_string()));
        let window = window.map(|window| ("initial_window", window.to_string()));
        Ok([delay, gate, window].into_iter().flatten().collect())
    }

    fn rccc(&self) -> Result<Vec<(&'static str, String)>, Problem> {
        let mut fields = Vec::new();
        let names = [("-Ai", "increase"), ("-Md", "decrease"), ("-alpha", "weight")];
        let mut slower = Vec::new();
        for (flag, field) in names {
            slower.extend(self.flags.number::<f64>(flag)?.map(|value| (field, value.to_string())));
        }
        if self.flags.has("-oversubscribed_cc") {
            // Of a tree that is not oversubscribed, the only one that is made here.
            slower.push(("ratio", "1".to_owned()));
            fields.push(("oversubscribed", table(&slower)));
        }
        if let Some(rate) = self.flags.number::<f64>("-pcie")? {
            fields.push(("pcie", table(&[("rate", rate.to_string())])));
        }
        Ok(fields)
    }

    /// `-failed`: links of a quarter of the rate. In three tiers those from cores to the first aggregation switches, in two those of the first spines, both ways.
    fn failed(&mut self, tree: Option<Tree>) -> Result<(), Problem> {
        let Some(failed) = self.flags.number::<u64>("-failed")?.filter(|&failed| failed > 0) else {
            return Ok(());
        };
        let Some(tree) = tree else {
            self.draft
                .remark(format!("-failed {failed}: which links those of the file in -topo are is not known"));
            return Ok(());
        };
        let half = tree.k / 2;
        let link = |from: u64, to: u64| {
            table(&[("from", quoted(&format!("s{from}"))), ("to", quoted(&format!("s{to}")))])
        };
        let (most, channels): (u64, Vec<String>) = if tree.links == 6 {
            let link_down = |number: u64| {
                let (aggregation, core) = (number / half, number % half);
                let core = tree.k * tree.k + aggregation % half * half + core;
                link(core, tree.k * tree.k / 2 + aggregation)
            };
            let most = tree.k * tree.k / 2 * half;
            (most, (0..failed.min(most)).map(link_down).collect())
        } else {
            let both = |spine: u64, leaf: u64| [link(tree.k + spine, leaf), link(leaf, tree.k + spine)];
            let of = |spine: u64| (0..tree.k).flat_map(move |leaf| both(spine, leaf));
            (half, (0..failed.min(half)).flat_map(of).collect())
        };
        if failed > most {
            let message = format!("expected at most {most}, found {failed}");
            return Err(Problem::new("-failed", message));
        }
        let fields = [
            ("kind", quoted(&"degrade")),
            ("rate_factor", "0.25".to_owned()),
            ("channels", format!("[{}]", channels.join(", "))),
        ];
        self.draft.set("faults", format!("[{}]", table(&fields)));
        self.draft.remark(format!(
            "-failed {failed}: slow ports keep their queue and thresholds, which there are a quarter as well"
        ));
        Ok(())
    }

    /// `-load_balancing_algo`: how hosts choose entropy values.
    pub(super) fn entropies(&mut self, paths: u64) -> Result<(), Problem> {
        let algorithm = self.flags.word("-load_balancing_algo", "mixed");
        let preset = match algorithm.as_str() {
            "mixed" => "uet-mixed",
            "bitmap" => "uet-bitmap",
            "oblivious" => "uet-oblivious",
            "reps" => {
                let granularity = table(&[("spare_last_hop", "true".to_owned())]);
                let fields = [
                    ("preset", quoted(&"reps")),
                    ("entropy_values", paths.to_string()),
                    ("granularity", granularity),
                ];
                self.draft.set("routing", table(&fields));
                return Ok(());
            }
            "reps_legacy" => {
                let message = "expected mixed, bitmap, oblivious or reps, found \"reps_legacy\": the older rule has no counterpart here";
                return Err(Problem::new("-load_balancing_algo", message));
            }
            other => {
                let message =
                    format!("expected mixed, bitmap, oblivious or reps, found \"{}\"", shorten(other));
                let names = ["mixed", "bitmap", "oblivious", "reps"];
                return Err(Problem::new("-load_balancing_algo", message).help(suggest(other, names)));
            }
        };
        if !paths.is_power_of_two() {
            return Err(Problem::new(
                "-paths",
                format!("expected a power of two, found {paths}: the program stops"),
            ));
        }
        let granularity = table(&[("paths", paths.to_string())]);
        self.draft.set("routing", table(&[("preset", quoted(&preset)), ("granularity", granularity)]));
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
fn share_of(packets: u64, share: f64) -> u64 {
    (packets as f64 * share).ceil() as u64
}
