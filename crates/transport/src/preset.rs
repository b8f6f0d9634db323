//! Transports by the names of the stacks or the evaluations that they come from: data that expand to a point of the product.

use netloom_units::{Bytes, Time};

use crate::config::{Transport, TransportOptions};
use crate::congestion::Congestion;
use crate::congestion::bolt::Bolt;
use crate::congestion::dcqcn::{Dcqcn, DcqcnPreset};
use crate::congestion::dctcp::Dctcp;
use crate::congestion::mp_rdma::MpRdma;
use crate::congestion::newreno::NewReno;
use crate::congestion::nscc::Nscc;
use crate::congestion::pulls::Pulls;
use crate::congestion::rccc::Rccc;
use crate::congestion::swift::Swift;
use crate::nic::NicQueue;
use crate::reliability::Reliability;
use crate::reliability::go_back_n::GoBackN;
use crate::reliability::pds::Pds;
use crate::reliability::selective_repeat::SelectiveRepeat;
use crate::reliability::trimmed::Trimmed;
use crate::reorder::Reorder;
use crate::reorder::buffer::Buffer;
use crate::shaping::Shaping;

/// A named transport.
pub struct Preset {
    /// The name a user writes as `preset = "…"`.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub doc: &'static str,
    expand: fn() -> Transport,
}

impl Preset {
    /// The point of the product it names.
    pub fn transport(&self) -> Transport {
        (self.expand)()
    }
}

/// The preset of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Default for Transport {
    /// The Flowcut evaluation's transport: an ideal reorder buffer and a fixed window of 1.2 bandwidth-delay products.
    fn default() -> Self {
        Transport {
            options: TransportOptions::default(),
            reliability: Reliability::SelectiveRepeat(Default::default()),
            congestion: Congestion::FixedWindow(Default::default()),
            shaping: Shaping::None(Default::default()),
        }
    }
}

/// 1500-byte packets, three later packets for a fast retransmission, timeouts of at least 200 us: the TCP runs of FatPaths (Besta et al.,
/// SC'20, section VII).
fn tcp(congestion: Congestion) -> Transport {
    Transport {
        options: TransportOptions {
            mtu: Bytes(1460),
            header: Bytes(40),
            rto_min: Time::from_us(200),
            ..TransportOptions::default()
        },
        reliability: Reliability::SelectiveRepeat(SelectiveRepeat {
            reorder_threshold: 3,
            rack: false,
            sack: true,
        }),
        congestion,
        shaping: Shaping::None(Default::default()),
    }
}

/// Eight subflows, as the evaluation of MPTCP in data centres finds enough (Raiciu et al., SIGCOMM'11, section 4).
fn mptcp(congestion: Congestion) -> Transport {
    let mut transport = tcp(congestion);
    transport.options.subflows = 8;
    transport
}

/// Packets of 1000 B and an ACK for each, as the public simulators of RDMA fabrics (those of HPCC and ConWeave), and DCQCN.
fn rdma(reliability: Reliability, window_bdp: Option<f64>, rto_min: Time, rto_initial: Time) -> Transport {
    Transport {
        options: TransportOptions {
            mtu: Bytes(1000),
            header: Bytes(48),
            rto_min,
            rto_initial,
            ..TransportOptions::default()
        },
        reliability,
        congestion: Congestion::Dcqcn(Dcqcn { window_bdp, ..Dcqcn::default() }),
        shaping: Shaping::None(Default::default()),
    }
}

/// The hosts of HPCC's public simulator and of those that grew out of it, PowerTCP's among them.
fn beside_hpcc(congestion: Congestion) -> Transport {
    let timeout = Time::from_ns(4_194_304);
    let go_back_n = GoBackN { nack_interval: Time::from_us(500), ..GoBackN::default() };
    Transport { congestion, ..rdma(Reliability::GoBackN(go_back_n), None, timeout, timeout) }
}

/// NDP's packets of 9 KB, and its timeouts as its public simulator has them.
fn ndp(reliability: Trimmed, initial_window: u32) -> Transport {
    Transport {
        options: TransportOptions {
            mtu: Bytes(8936),
            header: Bytes(64),
            rto_min: Time::from_ms(5),
            rto_initial: Time::from_ms(20),
            ..TransportOptions::default()
        },
        reliability: Reliability::Trimmed(reliability),
        congestion: Congestion::Pulls(Pulls { initial_window, ..Pulls::default() }),
        shaping: Shaping::None(Default::default()),
    }
}

/// csg-htsim multiplies the time between two PULLs by 0.99, where it means the rate: 4096 B of credit in 0.99 times what a packet of 4160 B takes with preamble and gap of Ethernet, 4198 B.
const EQDS_PACE: f64 = 4096.0 / (0.99 * 4198.0);

/// Most ACKs of a median: ours, as the paper's number is not known to us.
const MEDIAN_OF: u32 = 31;

/// The packets of Ultra Ethernet's public simulator, uet-htsim: 4150 B with headers. Its timeout is 15 us and six times what a full queue takes to empty; the queue holds the
/// bandwidth-delay product of its standard network, 43 packets at 100 Gb/s.
fn uet(congestion: Congestion) -> Transport {
    let timeout = Time::from_us(101);
    Transport {
        options: TransportOptions {
            mtu: Bytes(4086),
            header: Bytes(64),
            ack_size: Bytes(64),
            rto_min: timeout,
            rto_initial: timeout,
            rto_max: Some(timeout),
            ..TransportOptions::default()
        },
        reliability: Reliability::Pds(Default::default()),
        congestion,
        shaping: Shaping::None(Default::default()),
    }
}

/// Every preset, in the order in which `netloom list` shows them. The first holds where none is named.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "flowcut-evaluation",
        doc: "4 KiB packets, an ideal reorder buffer, a fixed window of 1.2 bandwidth-delay products: the transport of the Flowcut \
              evaluation, and the default.",
        expand: Transport::default,
    },
    Preset {
        name: "flowcut-artefact-ft",
        doc: "The hosts of the Flowcut authors' fat-tree simulator: a first window of 1.2 bandwidth-delay products, then a packet \
              per PULL of the receiver at 99% of its link's rate, and a queue at the NIC that is fair between flows. For fabrics that lose nothing, as theirs.",
        expand: || Transport {
            options: TransportOptions { nic_queue: NicQueue::Fair, ..TransportOptions::default() },
            congestion: Congestion::Pulls(Pulls { initial_bdp: Some(1.2), pace: 0.99, ..Pulls::default() }),
            ..Transport::default()
        },
    },
    Preset {
        name: "tcp",
        doc: "TCP NewReno with selective ACKs in 1500-byte packets, timeouts of at least 200 us: the TCP runs of FatPaths (Besta et al., SC'20).",
        expand: || tcp(Congestion::NewReno(Default::default())),
    },
    Preset {
        name: "cubic",
        doc: "TCP CUBIC (RFC 9438), the default of most operating systems; losses are found by time as well as by counting (RACK-TLP, RFC 8985); sizes and timeouts as tcp.",
        expand: || Transport {
            reliability: Reliability::SelectiveRepeat(SelectiveRepeat {
                reorder_threshold: 3,
                rack: true,
                sack: true,
            }),
            ..tcp(Congestion::Cubic(Default::default()))
        },
    },
    Preset {
        name: "dctcp",
        doc: "DCTCP (Alizadeh et al., SIGCOMM'10; RFC 8257) in 1500-byte packets, timeouts of at least 200 us. Needs a fabric with ECN.",
        expand: || tcp(Congestion::Dctcp(Default::default())),
    },
    Preset {
        name: "mptcp",
        doc: "MPTCP (Raiciu et al., SIGCOMM'11; RFC 8684) with eight subflows whose windows grow together (LIA, RFC 6356), otherwise as tcp: a path per \
              subflow, by the hash, the entropy value, the layer or whatever the scheme chooses.",
        expand: || mptcp(Congestion::NewReno(NewReno { coupled: true, ..NewReno::default() })),
    },
    Preset {
        name: "mptcp-ecn",
        doc: "As mptcp, but marks cut a subflow's window as DCTCP does: the ECN-based MPTCP of FatPaths (Besta et al., SC'20), whose decrease is not given \
              there. Needs a fabric with ECN.",
        expand: || mptcp(Congestion::Dctcp(Dctcp { coupled: true, ..Dctcp::default() })),
    },
    Preset {
        name: "roce",
        doc: "RoCEv2 with DCQCN (Zhu et al., SIGCOMM'15): 1000-byte packets, go-back-N, a rate per flow that starts at the line's, timeouts of \
              InfiniBand's 4.096 us x 2^10. Needs a fabric with ECN; meant for one with PFC.",
        expand: || {
            let timeout = Time::from_ns(4_194_304);
            rdma(Reliability::GoBackN(Default::default()), None, timeout, timeout)
        },
    },
    Preset {
        name: "hpcc",
        doc: "HPCC (Li et al., SIGCOMM'19): as roce, but a window per flow that keeps the fullest link of its path at 95%, as the switches report by \
              in-band telemetry, 42 B in every packet and ACK. Needs no ECN, but paths that a flow keeps for a while.",
        expand: || beside_hpcc(Congestion::Hpcc(Default::default())),
    },
    Preset {
        name: "powertcp",
        doc: "PowerTCP (Addanki et al., NSDI'22): as hpcc, but the window follows the power of the fullest link of the path, its arrival rate times what it holds. Needs no \
              ECN, but paths that a flow keeps for a while.",
        expand: || beside_hpcc(Congestion::PowerTcp(Default::default())),
    },
    Preset {
        name: "theta-powertcp",
        doc: "θ-PowerTCP (Addanki et al., NSDI'22): as powertcp, but from round-trip times, without telemetry. Meant for paths that a flow keeps for a while.",
        expand: || beside_hpcc(Congestion::ThetaPowerTcp(Default::default())),
    },
    Preset {
        name: "bolt",
        doc: "Bolt (Arslan et al., NSDI'23) with the hosts of its public simulator: packets of 5000 B of which 41 B are headers, ACKs and notices of 41 B, go-back-N, timeouts of 10 ms. \
              Switches notify senders of queues; needs no ECN.",
        expand: || Transport {
            options: TransportOptions {
                mtu: Bytes(4959),
                header: Bytes(41),
                ack_size: Bytes(41),
                rto_min: Time::from_ms(10),
                rto_initial: Time::from_ms(10),
                rto_max: Some(Time::from_ms(10)),
                ..TransportOptions::default()
            },
            reliability: Reliability::GoBackN(GoBackN::default()),
            congestion: Congestion::Bolt(Bolt::default()),
            shaping: Shaping::None(Default::default()),
        },
    },
    Preset {
        name: "roce-conweave",
        doc: "The hosts of ConWeave's public simulator (Song et al., SIGCOMM'23): as roce with DCQCN's preset conweave, NACKs that count as congestion, ACKs \
              of 60 B, and a timeout of 4 ms that does not grow. Needs a fabric with ECN; meant for one with PFC.",
        expand: || {
            let go_back_n = GoBackN { nack_congestion: true, ..GoBackN::default() };
            let timeout = Time::from_ms(4);
            let mut roce = rdma(Reliability::GoBackN(go_back_n), None, timeout, timeout);
            roce.options.ack_size = Bytes(60);
            roce.options.rto_max = Some(timeout);
            let dcqcn = Dcqcn { preset: DcqcnPreset::Conweave, ..Dcqcn::default() };
            Transport { congestion: Congestion::Dcqcn(dcqcn), ..roce }
        },
    },
    Preset {
        name: "left",
        doc: "RoCEv2 with a reorder buffer in the NIC, for packets that are sprayed (routing \"left\"): as roce, but early packets wait for those before \
              them while there is room. Needs a fabric with ECN; meant for one with PFC.",
        expand: || {
            let timeout = Time::from_ns(4_194_304);
            let mut left = rdma(Reliability::GoBackN(Default::default()), None, timeout, timeout);
            left.options.reorder = Reorder::Buffer(Buffer::default());
            left
        },
    },
    Preset {
        name: "irn",
        doc: "IRN (Mittal et al., SIGCOMM'18) with DCQCN: as roce, but selective repeat, at most one bandwidth-delay product in flight, and a loss \
              assumed as soon as a later packet has arrived: the ACK of a packet behind a hole is IRN's NACK. Timeouts of its RTO_high, 320 us. \
              Needs a fabric with ECN, and none with PFC.",
        expand: || {
            let reliability = SelectiveRepeat { reorder_threshold: 1, rack: false, sack: true };
            let timeout = Time::from_us(320);
            rdma(Reliability::SelectiveRepeat(reliability), Some(1.0), timeout, timeout)
        },
    },
    Preset {
        name: "spectrum-x-like",
        doc: "Hosts after NVIDIA's Spectrum-X, of which little is public: as roce with DCQCN, but a receiver places packets in whatever order they come (direct data placement), so that routing \
              \"spectrum-x-like\" may send each its own way. Needs a fabric with ECN; meant for one with PFC.",
        expand: || {
            let timeout = Time::from_ns(4_194_304);
            rdma(Reliability::SelectiveRepeat(Default::default()), None, timeout, timeout)
        },
    },
    Preset {
        name: "mp-rdma",
        doc: "MP-RDMA (Lu et al., NSDI'18): one window for all paths, packets follow the path of the ACK that releases them, slow paths are pruned, a \
              receiver remembers 64 packets. Needs a fabric with ECN and routing \"spray-nic\", whose entropy values are its paths.",
        expand: || Transport {
            reliability: Reliability::Bitmap(Default::default()),
            congestion: Congestion::MpRdma(MpRdma::default()),
            ..Transport::default()
        },
    },
    Preset {
        name: "entropy-reuse",
        doc: "What the Flowcut authors' simulator runs instead of MP-RDMA: the entropy values of ACKs without marks are used again, a mark draws another one, \
              and the window moves with every ACK. It has 1024 entropy values (routing.entropy_values) and marks between 2% and 80% of its queues. Needs a \
              fabric with ECN and routing \"spray-nic\".",
        expand: || Transport {
            congestion: Congestion::MpRdma(MpRdma {
                delta: 0,
                probe: 0.0,
                reuse_marked: false,
                ..MpRdma::default()
            }),
            ..Transport::default()
        },
    },
    Preset {
        name: "ndp",
        doc: "NDP (Handley et al., SIGCOMM'17): 9 KB packets, a first window of 30 at the line's rate, then a packet per PULL of the receiver. Needs a \
              fabric with fabric.queue = \"trimming\"; meant for sprayed packets.",
        expand: || ndp(Trimmed::default(), 30),
    },
    Preset {
        name: "purified",
        doc: "FatPaths' purified transport (Besta et al., SC'20): as ndp with a first window of 8 packets, retransmissions go before other data, \
              and a trimmed packet asks for another path. Needs a fabric with fabric.queue = \"trimming\"; meant for layers.",
        expand: || ndp(Trimmed { priority: true, reroute: true, ..Trimmed::default() }, 8),
    },
    Preset {
        name: "mswift",
        doc: "MSwift (Gerstein et al., arXiv 2509.07907): Swift that goes by the median delay of the latest ACKs, at most 31, over an ideal reorder buffer in 4 KiB packets. Meant for sprayed \
              packets of which some meet congested paths. Set `congestion.base_delay` to your network.",
        expand: || Transport {
            congestion: Congestion::Swift(Swift { median_of: Some(MEDIAN_OF), ..Swift::default() }),
            ..Transport::default()
        },
    },
    Preset {
        name: "strack-like",
        doc: "After STrack (Le et al., arXiv 2407.15266), as far as csg-htsim has it, with constants that are guesses: a window by delay over an ideal reorder buffer in 4 KiB packets. Set \
              `congestion.base_delay` to your network.",
        expand: || Transport {
            congestion: Congestion::StrackLike(Default::default()),
            ..Transport::default()
        },
    },
    Preset {
        name: "uet-nscc",
        doc: "Ultra Ethernet (UEC specification 1.0) with congestion control at the sender, NSCC, as its public simulator uet-htsim has it: 4150-byte packets, \
              one ACK for four of them with a bitmap, a first window of 1.5 bandwidth-delay products, a timeout of 101 us (15 us and six full queues of a \
              bandwidth-delay product at 100 Gb/s) that does not grow: set `rto_min`, `rto_initial` and `rto_max` to yours. Needs a fabric with ECN; meant for one with \
              fabric.queue = \"trimming\" and sprayed packets.",
        expand: || uet(Congestion::Nscc(Default::default())),
    },
    Preset {
        name: "uet",
        doc: "The default of uet-htsim: uet-nscc. Its balancer is routing.preset = \"uet-mixed\", its queues trim.",
        expand: || uet(Congestion::Nscc(Default::default())),
    },
    Preset {
        name: "mnscc",
        doc: "MNSCC (Gerstein et al., arXiv 2509.07907): uet-nscc that goes by the median of the delays and marks of the latest ACKs, at most 31, one for each packet. Needs a fabric with \
              ECN; meant for sprayed packets of which some meet congested paths.",
        expand: || {
            let nscc = Nscc { median_of: Some(MEDIAN_OF), ..Nscc::default() };
            let each = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: None });
            Transport { reliability: each, ..uet(Congestion::Nscc(nscc)) }
        },
    },
    Preset {
        name: "smartt",
        doc: "SMaRTT (Bonato et al., arXiv 2404.01630), NSCC's ancestor, in the packets of uet-nscc, with an ACK for each as REPS has it. Needs a fabric with ECN; meant for one with \
              fabric.queue = \"trimming\" and sprayed packets, of routing \"reps\" in the paper.",
        expand: || {
            let each = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: None });
            Transport { reliability: each, ..uet(Congestion::Smartt(Default::default())) }
        },
    },
    Preset {
        name: "uet-rccc",
        doc: "Ultra Ethernet with congestion control at the receiver, RCCC (uet-htsim: -receiver_cc_only): as uet-nscc, but a window of 1.5 bandwidth-delay products at \
              once and then credit that the receiver grants at 99% of its link's rate. Needs no ECN; meant for a fabric with fabric.queue = \"trimming\" and sprayed \
              packets.",
        expand: || uet(Congestion::Rccc(Default::default())),
    },
    Preset {
        name: "eqds",
        doc: "EQDS (Olteanu et al., NSDI'22) as csg-htsim's htsim_eqds has it, by RCCC, which comes from it: a window of 50 packets of 4160 B at once, which are 1.4 bandwidth-delay products \
              at 12 us and 100 Gb/s, then credit of 4 KiB in 0.99 times the time of such a packet with preamble and gap of Ethernet (4198 B). Meant for a fabric with fabric.queue = \"trimming\" and sprayed packets.",
        expand: || {
            let credit = Rccc { max_window: 1.4, pull: Bytes(4096), pace: EQDS_PACE, ..Rccc::default() };
            let mut eqds = uet(Congestion::Rccc(credit));
            eqds.options.mtu = Bytes(4096);
            eqds
        },
    },
    Preset {
        name: "uet-nscc-rccc",
        doc: "Ultra Ethernet with congestion control at both ends (uet-htsim: -sender_cc -receiver_cc): as uet-rccc, and NSCC's window holds as well. Needs a fabric with ECN, \
              which uet-htsim leaves out at the last hop (fabric.ecn_last_hop = false).",
        expand: || uet(Congestion::Rccc(Rccc { nscc: Some(Default::default()), ..Rccc::default() })),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_used() {
        for preset in PRESETS {
            assert_eq!(preset.transport().check(), Ok(()), "{}", preset.name);
            assert!(std::ptr::eq(find(preset.name).unwrap(), preset));
        }
    }
}
