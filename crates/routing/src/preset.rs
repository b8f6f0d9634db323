//! Schemes by the names their papers gave them: data that expand to a point of the product.

use netloom_paths::routes::{KShortest, RandomLayers};
use netloom_units::{Bytes, Time};

use crate::granularity::{
    conweave, entropy_of_acks, flow, flowbender, flowcell, flowcut, flowlet, flowlet_by_acks, hopper, packet,
    path_list, path_penalties, plb, plb_delay, reps, spritz,
};
use crate::hash::HashFunction;
use crate::scheme::{Placement, Routing};
use crate::selector::{
    conga, dimension_order, drill, estimator, hash, k_shortest, layer, least_loaded, mod_k, next_entropy,
    random, round_robin, switch_ar, switch_ar_fractional, switch_ar_stable, ugal, valiant, weighted,
};
use crate::{Granularity, Selector};

/// A named scheme.
pub struct Preset {
    /// The name a user writes as `preset = "…"`.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub doc: &'static str,
    expand: fn() -> Routing,
}

impl Preset {
    /// The point of the product it names.
    pub fn routing(&self) -> Routing {
        (self.expand)()
    }
}

/// The preset of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

fn scheme(placement: Placement, granularity: Granularity, selector: Selector) -> Routing {
    Routing {
        placement,
        hash: HashFunction::default(),
        salt: true,
        entropy_values: 256,
        flow_timeout: Time::from_ms(1000),
        max_flow_entries: None,
        ecmp_every: None,
        granularity,
        selector,
    }
}

fn letflow(gap: Time) -> Routing {
    let granularity = Granularity::Flowlet(flowlet::Flowlet { gap, age_bit: false });
    scheme(Placement::Switch, granularity, Selector::Random(random::Random {}))
}

fn flowcut_nic(config: flowcut::Flowcut) -> Routing {
    scheme(Placement::Nic, Granularity::Flowcut(config), Selector::Random(random::Random {}))
}

/// Paths are entropy values, 64 of 65,536 per flow.
fn by_penalties(penalties: path_penalties::PathPenalties) -> Routing {
    by_entropy(Granularity::PathPenalties(penalties))
}

/// A sender that draws among 65,536 entropy values.
fn by_entropy(granularity: Granularity) -> Routing {
    let selector = Selector::Random(random::Random {});
    Routing { entropy_values: 1 << 16, ..scheme(Placement::Nic, granularity, selector) }
}

fn conweave(config: conweave::ConWeave) -> Routing {
    scheme(Placement::Ingress, Granularity::ConWeave(config), Selector::Random(random::Random {}))
}

fn conga(gap: Time, config: conga::Conga) -> Routing {
    let granularity = Granularity::Flowlet(flowlet::Flowlet { gap, age_bit: false });
    scheme(Placement::Ingress, granularity, Selector::Conga(config))
}

fn flowcut(placement: Placement) -> Routing {
    let granularity = Granularity::Flowcut(flowcut::Flowcut::default());
    scheme(placement, granularity, Selector::LeastLoaded(least_loaded::LeastLoaded::default()))
}

fn fatpaths(layers: u32) -> Routing {
    let random = RandomLayers { layers, ..RandomLayers::default() };
    let granularity = Granularity::Flowlet(flowlet::Flowlet { gap: Time::from_us(50), age_bit: false });
    let construction = layer::Construction::RandomLayers(random);
    scheme(
        Placement::Nic,
        granularity,
        Selector::Layer(Box::new(layer::Layer { construction, ..Default::default() })),
    )
}

fn ugal(config: ugal::Ugal) -> Routing {
    scheme(Placement::Ingress, PACKET, Selector::Ugal(config))
}

const FLOW: Granularity = Granularity::Flow(flow::Flow {});
const PACKET: Granularity = Granularity::Packet(packet::Packet { control: false });

/// KiB between the eight levels of queues that count as alike: ours.
const GRADES: [u64; 7] = [4, 8, 16, 32, 64, 128, 256];

/// Spritz over the 16 shortest paths.
fn spritz(policy: spritz::Policy) -> Routing {
    let granularity = Granularity::Spritz(spritz::Spritz { policy, ..spritz::Spritz::default() });
    let paths = KShortest { k: 16, ..k_shortest::JELLYFISH };
    scheme(Placement::Nic, granularity, Selector::KShortest(paths))
}

/// Every preset, in the order in which `netloom list` shows them.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "ecmp",
        doc: "Equal-cost multi-path: every switch hashes the header (RFC 2992).",
        expand: || scheme(Placement::Switch, FLOW, Selector::Hash(hash::Hash {})),
    },
    Preset {
        name: "wcmp",
        doc: "ECMP weighted by link rates (Zhou et al., EuroSys'14).",
        expand: || scheme(Placement::Switch, FLOW, Selector::Weighted(weighted::Weighted {})),
    },
    Preset {
        name: "d-mod-k",
        doc: "Deterministic by the destination's digits (Gómez et al., IPDPS'07).",
        expand: || scheme(Placement::Switch, FLOW, Selector::DModK(mod_k::DModK::default())),
    },
    Preset {
        name: "s-mod-k",
        doc: "Deterministic by the source's digits.",
        expand: || scheme(Placement::Switch, FLOW, Selector::SModK(mod_k::SModK::default())),
    },
    Preset {
        name: "dimension-order",
        doc: "Dimension-order (e-cube) routing on a torus, mesh or HyperX, with datelines in lossless fabrics (Dally and Seitz, IEEE Trans. Computers 1987).",
        expand: || {
            scheme(Placement::Switch, FLOW, Selector::DimensionOrder(dimension_order::DimensionOrder {}))
        },
    },
    Preset {
        name: "spray",
        doc: "Random packet spraying: every switch draws a port per packet (Dixit et al., INFOCOM'13).",
        expand: || scheme(Placement::Switch, PACKET, Selector::Random(random::Random {})),
    },
    Preset {
        name: "spray-round-robin",
        doc: "Packet spraying in turn: every switch takes the next port per packet, ACKs included, in a random order that is redrawn every five rounds: csg-htsim's ecmp_rr.",
        expand: || {
            let in_turn = round_robin::RoundRobin { reshuffle: Some(5) };
            let packets = Granularity::Packet(packet::Packet { control: true });
            scheme(Placement::Switch, packets, Selector::RoundRobin(in_turn))
        },
    },
    Preset {
        name: "spray-nic",
        doc: "Packet spraying from the NIC: a random entropy value per packet.",
        expand: || scheme(Placement::Nic, PACKET, Selector::Random(random::Random {})),
    },
    Preset {
        name: "spray-paths",
        doc: "Packet spraying from the NIC over path labels in turn, which visit every path of a tree: NDP's spraying by the source (Handley et al., \
              SIGCOMM'17).",
        expand: || scheme(Placement::Nic, PACKET, Selector::RoundRobin(round_robin::RoundRobin::default())),
    },
    Preset {
        name: "path-list",
        doc: "NDP's path list: a flow's packets take each of its paths, up to 64, once per pass, in a new random order for each pass, and leave out those that trim or lose more than others \
              (Handley et al., SIGCOMM'17). Path labels of a tree.",
        expand: || {
            let granularity = Granularity::PathList(path_list::PathList::default());
            scheme(Placement::Nic, granularity, Selector::RoundRobin(round_robin::RoundRobin::default()))
        },
    },
    Preset {
        name: "adaptive",
        doc: "Adaptive routing: every switch takes the least loaded port per packet.",
        expand: || {
            scheme(Placement::Switch, PACKET, Selector::LeastLoaded(least_loaded::LeastLoaded::default()))
        },
    },
    Preset {
        name: "drill",
        doc: "DRILL(2, 1): least loaded of two samples and one remembered port, per packet (Ghorbani et al., SIGCOMM'17); memory per destination and \
              the bytes that wait as load, as in ConWeave's public code.",
        expand: || scheme(Placement::Switch, PACKET, Selector::Drill(drill::Drill::default())),
    },
    Preset {
        name: "switch-ar",
        doc: "Switch AR: per packet, the port with the least congestion by notifications (Crisan et al.). Needs QCN.",
        expand: || scheme(Placement::Switch, PACKET, Selector::SwitchAr(switch_ar::SwitchAr::default())),
    },
    Preset {
        name: "switch-ar-fractional",
        doc: "Switch AR that divides a destination's packets among ports by shares that move with the notifications. Needs QCN.",
        expand: || {
            let fractional = switch_ar_fractional::SwitchArFractional::default();
            scheme(Placement::Switch, PACKET, Selector::SwitchArFractional(fractional))
        },
    },
    Preset {
        name: "switch-ar-stable",
        doc: "Switch AR with a hold time and a margin against oscillation. Needs QCN.",
        expand: || {
            let stable = switch_ar_stable::SwitchArStable::default();
            scheme(Placement::Switch, PACKET, Selector::SwitchArStable(stable))
        },
    },
    Preset {
        name: "left",
        doc: "LEFT's multipath: every switch draws a port per packet. Meant for NICs with a reorder buffer: transport \"left\".",
        expand: || scheme(Placement::Switch, PACKET, Selector::Random(random::Random {})),
    },
    Preset {
        name: "random-nca",
        doc: "A random nearest common ancestor per packet: on a tree, an independent uniform up port at every level (Crisan et al.).",
        expand: || scheme(Placement::Switch, PACKET, Selector::Random(random::Random {})),
    },
    Preset {
        name: "hashed",
        doc: "One nearest common ancestor per flow, by hash (Crisan et al.): ECMP on a tree.",
        expand: || scheme(Placement::Switch, FLOW, Selector::Hash(hash::Hash {})),
    },
    Preset {
        name: "valiant",
        doc: "Valiant: per packet over a random intermediate switch, minimal to it and from it (STOC'81).",
        expand: || scheme(Placement::Ingress, PACKET, Selector::Valiant(valiant::Valiant::default())),
    },
    Preset {
        name: "valiant-group",
        doc: "Valiant on a Dragonfly: per packet over a random group (Kim et al., ISCA'08).",
        expand: || {
            let valiant = valiant::Valiant { intermediate: valiant::Intermediate::Group };
            scheme(Placement::Ingress, PACKET, Selector::Valiant(valiant))
        },
    },
    Preset {
        name: "ugal-l",
        doc: "UGAL-L: per packet minimally or over a random group or switch, by the queues at the first switch (Kim et al., ISCA'08).",
        expand: || ugal(ugal::Ugal::default()),
    },
    Preset {
        name: "ugal-g",
        doc: "UGAL-G: as UGAL-L, by the queues of the group's global channels, as its switches last reported them. Dragonflies only.",
        expand: || {
            ugal(ugal::Ugal { queue: ugal::Queue::Global(ugal::Global::default()), ..ugal::Ugal::default() })
        },
    },
    Preset {
        name: "par",
        doc: "Progressive adaptive routing: UGAL-L whose decision later switches of the source's group may revise (Jiang et al., ISCA'09). Dragonflies only.",
        expand: || ugal(ugal::Ugal { progressive: true, ..ugal::Ugal::default() }),
    },
    Preset {
        name: "ugal-artefact-df",
        doc: "UGAL of the Flowcut authors' Dragonfly simulator (SST's merlin): all links to the destination's and to one random group, q against 2 q + 3200 B.",
        expand: || {
            ugal(ugal::Ugal {
                decision: ugal::Decision::Ratio(ugal::Ratio::default()),
                minimal: 16,
                non_minimal: 16,
                one_group: true,
                ..ugal::Ugal::default()
            })
        },
    },
    Preset {
        name: "letflow",
        doc: "LetFlow: a random port per flowlet at every switch (Vanini et al., NSDI'17), 100 us gap.",
        expand: || letflow(Time::from_us(100)),
    },
    Preset {
        name: "letflow-50us",
        doc: "LetFlow with the 50 us gap of FatPaths (Besta et al., SC'20).",
        expand: || letflow(Time::from_us(50)),
    },
    Preset {
        name: "flowlet-adaptive",
        doc: "Flowlets to the least loaded port at every switch.",
        expand: || {
            let granularity = Granularity::Flowlet(flowlet::Flowlet::default());
            scheme(
                Placement::Switch,
                granularity,
                Selector::LeastLoaded(least_loaded::LeastLoaded::default()),
            )
        },
    },
    Preset {
        name: "presto",
        doc: "Presto: 64 KiB flowcells over path labels in turn, at the NIC (He et al., SIGCOMM'15).",
        expand: || {
            let granularity = Granularity::Flowcell(flowcell::Flowcell::default());
            scheme(Placement::Nic, granularity, Selector::RoundRobin(round_robin::RoundRobin::default()))
        },
    },
    Preset {
        name: "flowbender",
        doc: "FlowBender: the next of 8 entropy values when more than 5% of a round trip's ACKs are marked, or after a timeout (Kabbani et al., CoNEXT'14). \
              Needs ECN.",
        expand: || {
            let granularity = Granularity::FlowBender(flowbender::FlowBender::default());
            let selector = Selector::NextEntropy(next_entropy::NextEntropy {});
            Routing { entropy_values: 8, ..scheme(Placement::Nic, granularity, selector) }
        },
    },
    Preset {
        name: "plb",
        doc: "PLB with the defaults of Linux: another flow label when half of the packets of each of 12 round trips in a row were marked, or of 3 when nothing is in flight, \
              or after a timeout (Qureshi et al., SIGCOMM'22). Needs ECN.",
        expand: || by_entropy(Granularity::Plb(plb::Plb::default())),
    },
    Preset {
        name: "plb-reps-artefact",
        doc: "PLB as the REPS authors' public simulator has it: another entropy value after two idle round-trip times in a row with any mark, or after a timeout. Needs ECN.",
        expand: || by_entropy(Granularity::Plb(plb::Plb::REPS_ARTEFACT)),
    },
    Preset {
        name: "mp-rdma-reps-artefact",
        doc: "MP-RDMA's entropy values as the REPS authors' public simulator has them (mprdma), beside any window: that of the latest ACK if it lets a packet out, otherwise one of 65,536.",
        expand: || by_entropy(Granularity::EntropyOfAcks(entropy_of_acks::EntropyOfAcks::default())),
    },
    Preset {
        name: "flowlet-reps-artefact",
        doc: "Flowlets as the REPS authors' public simulator has them: another entropy value when nothing has come back for half an idle round-trip time, at most every 100 us.",
        expand: || by_entropy(Granularity::FlowletByAcks(flowlet_by_acks::FlowletByAcks::default())),
    },
    Preset {
        name: "plb-htsim",
        doc: "PLB of csg-htsim's Swift (-plb on): the next path when no ACK has come within the target delay for five to seven round-trip times. Path labels of a tree.",
        expand: || {
            let granularity = Granularity::PlbDelay(plb_delay::PlbDelay::default());
            scheme(Placement::Nic, granularity, Selector::RoundRobin(round_robin::RoundRobin::default()))
        },
    },
    Preset {
        name: "hopper",
        doc: "Hopper (Nosrati and Ghaderi, arXiv 2506.08132): a flow whose round trips take 1.5 times those of an idle path probes two of 65,536 entropy values, and moves to one whose round trip takes less \
              than 0.8 of its own. Meant for transport \"irn\". Needs fabric.control_priority = false.",
        expand: || by_entropy(Granularity::Hopper(hopper::Hopper::default())),
    },
    Preset {
        name: "reps",
        doc: "REPS: per packet an entropy value whose ACK came back unmarked, otherwise one of 65,536 (Bonato et al., arXiv 2407.21625). Needs ECN.",
        expand: || by_entropy(Granularity::Reps(reps::Reps::default())),
    },
    Preset {
        name: "uet-oblivious",
        doc: "uet-htsim's oblivious balancer (-load_balancing_algo oblivious): each packet the next of 64 entropy values, in a new random order for each pass.",
        expand: || {
            by_penalties(path_penalties::PathPenalties {
                recycle: false,
                mark: 0,
                trim: 0,
                ..Default::default()
            })
        },
    },
    Preset {
        name: "uet-bitmap",
        doc: "uet-htsim's bitmap (-load_balancing_algo bitmap): each packet the next of 64 entropy values, of which those that were marked or trimmed are skipped for some passes. Needs ECN or \
              trimming.",
        expand: || by_penalties(path_penalties::PathPenalties { recycle: false, ..Default::default() }),
    },
    Preset {
        name: "uet-mixed",
        doc: "uet-htsim's mixed, its default: first the entropy values whose ACKs came back unmarked, each once, else as uet-bitmap. Needs ECN or trimming.",
        expand: || by_penalties(path_penalties::PathPenalties::default()),
    },
    Preset {
        name: "spritz-scout",
        doc: "Spritz-Scout (Bonato et al., arXiv 2602.19567): a sender draws among its 16 shortest paths, detours with less weight, and keeps to a good one until it is marked, trimmed or lost. \
              Sizes and weights are ours, as they are not published. Meant for Slim Fly and Dragonfly. Needs ECN or trimming.",
        expand: || spritz(spritz::Policy::Scout),
    },
    Preset {
        name: "spritz-spray",
        doc: "Spritz-Spray: as spritz-scout, but packets take up to eight good paths in turn.",
        expand: || spritz(spritz::Policy::Spray),
    },
    Preset {
        name: "flicr-like",
        doc: "A sender that re-routes flowlets over the paths of spritz-scout, as Flicr beside which Spritz is measured; its rules are ours. Needs ECN or trimming.",
        expand: || spritz(spritz::Policy::FlicrLike),
    },
    Preset {
        name: "spectrum-x-like",
        doc: "Adaptive routing after NVIDIA's Spectrum-X, whose grading of queues is not public: every switch takes one of the least loaded ports per packet, by eight levels of queued bytes, at random \
              among equals. Meant for hosts that take packets in any order (transport \"spectrum-x-like\") and a fabric with PFC.",
        expand: || {
            let levels = GRADES.map(|kib| Bytes(kib << 10)).to_vec();
            let graded = least_loaded::LeastLoaded { levels, ..least_loaded::LeastLoaded::default() };
            scheme(Placement::Switch, PACKET, Selector::LeastLoaded(graded))
        },
    },
    Preset {
        name: "conga",
        doc: "CONGA: a flowlet of a 500 us gap takes the least congested path, known by feedback between leaf switches (Alizadeh et al., SIGCOMM'14).",
        expand: || conga(Time::from_us(500), conga::Conga::default()),
    },
    Preset {
        name: "conga-rdma",
        doc: "CONGA as ConWeave's public code has it: flowlets of 100 us, estimators of 250 us that count data as it is routed, without a cap; feedback counts for 500 us and is carried by data only; four of the paths are compared.",
        expand: || {
            let config = conga::Conga {
                estimator: estimator::Estimator { period: Time::from_us(50), discount: 0.2 },
                ageing: Time::from_us(500),
                counts: conga::Counts::Routed,
                capped: false,
                feedback: conga::Feedback::Data,
                order: conga::Order::Random,
                candidates: Some(4),
                keeps: false,
                ..conga::Conga::default()
            };
            conga(Time::from_us(100), config)
        },
    },
    Preset {
        name: "conweave",
        doc: "ConWeave: the first switch re-routes a flow whose probe is late, the last one restores the order (Song et al., SIGCOMM'23). Needs ECN.",
        expand: || conweave(conweave::ConWeave::default()),
    },
    Preset {
        name: "conweave-3tier",
        doc: "ConWeave with its public code's waits for lossless fabrics of three tiers.",
        expand: || {
            conweave(conweave::ConWeave {
                flush_slack: Time::from_us(64),
                flush_default: Time::from_us(600),
                inactive: Time::from_ms(1),
                ..conweave::ConWeave::default()
            })
        },
    },
    Preset {
        name: "flowcut",
        doc: "Flowcut Switching at every switch: the least loaded port per flowcut, wherever nothing of the flow is in flight beyond that switch.",
        expand: || flowcut(Placement::Switch),
    },
    Preset {
        name: "flowcut-ingress",
        doc: "Flowcut Switching at a flow's first switch: its least loaded port and a new entropy value per flowcut.",
        expand: || flowcut(Placement::Ingress),
    },
    Preset {
        name: "flowcut-nic",
        doc: "Flowcut Switching, NIC-only: drain when the RTT indicates congestion, then a new random entropy value.",
        expand: || flowcut_nic(flowcut::Flowcut::default()),
    },
    Preset {
        name: "flowcut-artefact-ft",
        doc: "Flowcut with the constants of its authors' fat-tree simulator: alpha 0.12, average kept, the minimum RTT per flow from that of the idle path \
              on, tails drained too. Its hosts are transport \"flowcut-artefact-ft\".",
        expand: || {
            flowcut_nic(flowcut::Flowcut {
                alpha: 0.12,
                reset: false,
                rtt_min_per_flow: true,
                rtt_min_start: flowcut::RttMinStart::Analytic,
                drain_tail: true,
                ..flowcut::Flowcut::default()
            })
        },
    },
    Preset {
        name: "flowcut-artefact-df",
        doc: "Flowcut with the constants of its authors' Dragonfly simulator: alpha 0.7, threshold 6, 20 kB left.",
        expand: || {
            flowcut_nic(flowcut::Flowcut {
                alpha: 0.7,
                threshold: 6.0,
                min_remaining: Bytes(20_000),
                ..flowcut::Flowcut::default()
            })
        },
    },
    Preset {
        name: "k-shortest",
        doc: "One of the k = 8 shortest paths per flow, drawn by the NIC (Jellyfish: Singla et al., NSDI'12).",
        expand: || scheme(Placement::Nic, FLOW, Selector::KShortest(k_shortest::JELLYFISH)),
    },
    Preset {
        name: "fatpaths",
        doc: "FatPaths: flowlets of a 50 us gap over nine layers, minimal first, at the NIC (Besta et al., SC'20).",
        expand: || fatpaths(9),
    },
    Preset {
        name: "fatpaths-tcp",
        doc: "FatPaths with the four layers, rho 0.6, of its TCP runs on Slim Fly and Dragonfly.",
        expand: || fatpaths(4),
    },
];
