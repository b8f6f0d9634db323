use super::*;
use crate::congestion::dcqcn::{Dcqcn, DcqcnPreset};
use crate::nic::NicQueue;
use crate::preset::PRESETS;
use crate::reliability::go_back_n::GoBackN;
use netloom_units::Rate;

#[test]
fn what_does_not_go_with_subflows_names_its_field() {
    type Change = fn(&mut Transport);
    let with = |change: Change| {
        let mut transport = Transport::default();
        transport.options.subflows = 4;
        change(&mut transport);
        transport.check().map_err(|error| error.to_string())
    };
    assert_eq!(with(|_| {}), Ok(()));
    let refused: [(Change, &str); 8] = [
        (|transport| transport.options.subflows = 0, "subflows: expected 1 to 64, found 0"),
        (|transport| transport.options.subflows = 65, "subflows: expected 1 to 64, found 65"),
        (|transport| transport.options.handshake = true, "handshake: expected false with subflows"),
        (|transport| transport.options.ack_every = 2, "ack_every: expected 1, as each subflow"),
        (
            |transport| transport.reliability = Reliability::GoBackN(Default::default()),
            "subflows: expected 1 with reliability \"go-back-n\", as packets of subflows overtake each other, which \"selective-repeat\" or \"trimmed\" allow, found 4",
        ),
        (
            |transport| *transport = Transport { options: transport.options.clone(), ..preset("uet") },
            "subflows: expected 1 with reliability \"pds\"",
        ),
        (
            |transport| transport.congestion = Congestion::Pulls(Default::default()),
            "subflows: expected 1 with \"pulls\", whose signals are those of the flow as a whole, found 4",
        ),
        (
            |transport| transport.congestion = Congestion::Dcqcn(Default::default()),
            "subflows: expected 1 with \"dcqcn\", whose signals are those of the flow as a whole, found 4",
        ),
    ];
    for (change, expected) in refused {
        let error = with(change).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

fn preset(name: &str) -> Transport {
    crate::preset::find(name).unwrap().transport()
}

#[test]
fn what_needs_acks_is_refused_without_them() {
    let check = |congestion, paced| {
        let shaping = match paced {
            true => Shaping::Paced(Default::default()),
            false => Shaping::None(Default::default()),
        };
        let reliability = Reliability::None(Default::default());
        Transport { reliability, congestion, shaping, ..Transport::default() }.check()
    };
    for congestion in [
        Congestion::FixedWindow(Default::default()),
        Congestion::NewReno(Default::default()),
        Congestion::Cubic(Default::default()),
        Congestion::Dctcp(Default::default()),
        Congestion::Hpcc(Default::default()),
        Congestion::PowerTcp(Default::default()),
        Congestion::Bolt(Default::default()),
        Congestion::ThetaPowerTcp(Default::default()),
        Congestion::Timely(Default::default()),
        Congestion::Swift(Default::default()),
        Congestion::Smartt(Default::default()),
        Congestion::StrackLike(Default::default()),
    ] {
        let name = congestion.name();
        let error = check(congestion, false).unwrap_err().to_string();
        assert!(
            error.starts_with("congestion: expected \"none\", \"qcn\", \"dcqcn\" or \"pulls\" with"),
            "{error}"
        );
        assert!(error.ends_with(&format!("found \"{name}\"")), "{error}");
    }
    for congestion in [
        Congestion::None(Default::default()),
        Congestion::Qcn(Default::default()),
        Congestion::Dcqcn(Default::default()),
    ] {
        assert_eq!(check(congestion.clone(), false), Ok(()));
        assert_eq!(check(congestion, true).unwrap_err().field, "shaping");
    }
    let many_paths = Congestion::MpRdma(Default::default());
    assert_eq!(check(many_paths.clone(), false).unwrap_err().field, "congestion");
    let go_back_n = Reliability::GoBackN(Default::default());
    let transport = Transport { congestion: many_paths, reliability: go_back_n, ..Transport::default() };
    assert_eq!(transport.check().unwrap_err().field, "reliability");
    let options = TransportOptions { ack_every: 2, ..TransportOptions::default() };
    assert_eq!(Transport { options, ..preset("mp-rdma") }.check().unwrap_err().field, "ack_every");
    let windowed = crate::congestion::dcqcn::Dcqcn { window_bdp: Some(1.0), ..Default::default() };
    assert_eq!(check(Congestion::Dcqcn(windowed), false).unwrap_err().field, "congestion.window_bdp");
}

/// The presets of which something is so.
fn those(is_so: impl Fn(&Transport) -> bool) -> Vec<&'static str> {
    PRESETS.iter().filter(|preset| is_so(&preset.transport())).map(|preset| preset.name).collect()
}

#[test]
fn presets_declare_what_they_need() {
    assert_eq!(
        those(Transport::pulls),
        ["flowcut-artefact-ft", "ndp", "purified", "uet-rccc", "eqds", "uet-nscc-rccc"]
    );
    assert_eq!(those(|transport| transport.credit().is_some()), ["uet-rccc", "eqds", "uet-nscc-rccc"]);
    assert_eq!(those(Transport::is_coupled), ["mptcp", "mptcp-ecn"]);
    assert_eq!(those(Transport::chooses_paths), ["mp-rdma", "entropy-reuse"]);
    let refusing = ["roce", "hpcc", "powertcp", "theta-powertcp", "bolt", "roce-conweave", "left", "mp-rdma"];
    assert_eq!(those(Transport::refuses), refusing);
    assert_eq!(those(Transport::hurries), ["purified"]);
    let growing = ["tcp", "cubic", "dctcp", "mptcp", "mptcp-ecn", "bolt", "mp-rdma", "entropy-reuse"];
    let growing =
        [&growing[..], &["mswift", "strack-like", "uet-nscc", "uet", "mnscc", "smartt", "uet-nscc-rccc"]]
            .concat();
    assert_eq!(those(Transport::grows), growing);
    assert_eq!(those(|transport| transport.telemetry() == Some(Bytes(42))), ["hpcc", "powertcp"]);
    assert_eq!(those(|transport| transport.telemetry().is_none()).len(), PRESETS.len() - 2);
    assert_eq!(
        those(|transport| transport.cnp_interval().is_some()),
        ["roce", "left", "irn", "spectrum-x-like"]
    );
    assert_eq!(those(|transport| !transport.has_acks()), [""; 0]);
    let of_ultra_ethernet = ["uet-nscc", "uet", "uet-rccc", "eqds", "uet-nscc-rccc"];
    assert_eq!(those(|transport| !transport.acknowledges_each()), of_ultra_ethernet);
}

#[test]
fn telemetry_is_a_part_of_headers_and_acks() {
    let hpcc = preset("hpcc");
    let wire = hpcc.clone().on_the_wire();
    assert_eq!((hpcc.packet_size(), wire.packet_size()), (Bytes(1048), Bytes(1090)));
    assert_eq!(wire.options.ack_size, Bytes(hpcc.options.ack_size.0 + 42));
    assert_eq!(preset("roce").on_the_wire(), preset("roce"));
    // All must fit the 16 bits of a packet's size.
    let with = |telemetry| {
        let hpcc = crate::congestion::hpcc::Hpcc { telemetry: Bytes(telemetry), ..Default::default() };
        Transport { congestion: Congestion::Hpcc(hpcc), ..Transport::default() }.check()
    };
    assert_eq!(with(65_535 - 4160), Ok(()));
    assert_eq!(with(65_535 - 4159).unwrap_err().field, "congestion.telemetry");
}

#[test]
fn the_largest_message_leaves_a_number_for_the_syn() {
    let mut transport = Transport::default();
    assert_eq!(transport.largest_message(), Bytes(4096 * u64::from(u32::MAX)));
    transport.options.handshake = true;
    assert_eq!(transport.largest_message(), Bytes(4096 * u64::from(u32::MAX - 1)));
}

/// As in ConWeave's public simulator, where no notification is a packet of its own.
#[test]
fn answers_notify_where_no_packet_of_its_own_does() {
    let echoes = |transport: &Transport| {
        [(false, false), (true, false), (false, true), (true, true)]
            .map(|(is_marked, is_nack)| transport.echoes(is_marked, is_nack))
    };
    assert_eq!(echoes(&preset("roce-conweave")), [false, true, true, true]);
    let marks_only =
        Transport { reliability: Reliability::GoBackN(GoBackN::default()), ..preset("roce-conweave") };
    assert_eq!(echoes(&marks_only), [false, true, false, true]);
    assert_eq!(echoes(&preset("roce")), [false; 4], "its receivers send CNPs");
    assert_eq!(echoes(&Transport::default()), [false; 4]);
}

#[test]
fn nacks_notify_only_what_reacts_to_notifications() {
    let nacks = Reliability::GoBackN(GoBackN { nack_congestion: true, ..GoBackN::default() });
    assert_eq!(Transport { reliability: nacks.clone(), ..preset("roce") }.check(), Ok(()));
    let error = Transport { reliability: nacks, ..Transport::default() }.check().unwrap_err().to_string();
    assert!(
        error.starts_with("reliability.nack_congestion: expected false with \"fixed-window\""),
        "{error}"
    );
}

#[test]
fn a_queue_at_the_nic_needs_something_that_limits_flows_before_it() {
    let check = |congestion, reliability| {
        let options = TransportOptions { nic_queue: NicQueue::Fair, ..TransportOptions::default() };
        let transport = Transport { options, congestion, reliability, ..Transport::default() };
        transport.check().map_err(|error| error.to_string())
    };
    let acks = || Reliability::SelectiveRepeat(Default::default());
    let none = || Reliability::None(Default::default());
    assert_eq!(check(Congestion::FixedWindow(Default::default()), acks()), Ok(()));
    assert_eq!(check(Congestion::Dcqcn(Default::default()), acks()), Ok(()));
    for congestion in [Congestion::None(Default::default()), Congestion::Qcn(Default::default())] {
        let error = check(congestion, acks()).unwrap_err();
        assert!(
            error.starts_with("nic_queue: expected \"none\" with a congestion that limits nothing"),
            "{error}"
        );
    }
    let error = check(Congestion::Dcqcn(Default::default()), none()).unwrap_err();
    assert!(error.starts_with("nic_queue: expected \"none\" with a reliability that ends flows"), "{error}");
}

#[test]
fn a_handshake_goes_before_the_first_window() {
    let check = |name: &str| {
        let mut transport = preset(name);
        transport.options.handshake = true;
        transport.check().map_err(|error| error.field)
    };
    assert_eq!([check("tcp"), check("roce")], [Ok(()), Ok(())]);
    for name in ["ndp", "mp-rdma", "mptcp"] {
        assert_eq!(check(name).unwrap_err(), "handshake", "{name}");
    }
    let mut transport = Transport {
        reliability: Reliability::None(Default::default()),
        congestion: Congestion::None(Default::default()),
        ..Transport::default()
    };
    assert_eq!(transport.check(), Ok(()));
    transport.options.handshake = true;
    assert_eq!(transport.check().unwrap_err().field, "handshake");
    let mut bare = preset("tcp");
    (bare.options.handshake, bare.options.header) = (true, Bytes(1));
    assert_eq!(bare.check(), Ok(()));
    bare.options.header = Bytes(0);
    assert_eq!(bare.check().unwrap_err().field, "header");
    bare.options.handshake = false;
    assert_eq!(bare.check(), Ok(()));
}

/// Refusals name the kinds that are able.
#[test]
fn refusals_list_the_kinds_that_would_do() {
    let go_back_n = || Reliability::GoBackN(Default::default());
    let many_paths = Transport { reliability: go_back_n(), ..preset("mp-rdma") };
    let expected = "reliability: expected \"selective-repeat\", \"trimmed\" or \"bitmap\" with \"mp-rdma\", found \"go-back-n\"";
    assert_eq!(many_paths.check().unwrap_err().to_string(), expected);
    for reliability in
        [Reliability::Trimmed(Default::default()), Reliability::SelectiveRepeat(Default::default())]
    {
        assert_eq!(Transport { reliability, ..preset("mp-rdma") }.check(), Ok(()));
    }
    let paced = Transport { shaping: Shaping::Paced(Default::default()), ..preset("roce") };
    let error = paced.check().unwrap_err().to_string();
    let expected = "shaping: expected a congestion with a window to spread: \"fixed-window\", \"newreno\", \"cubic\", \"dctcp\"";
    assert!(error.starts_with(expected) && error.ends_with("found \"paced\" with \"dcqcn\""), "{error}");
    let kinds = Reliability::every();
    assert_eq!(names(kinds[..1].iter()), "\"selective-repeat\"");
    assert_eq!(names(kinds[..2].iter()), "\"selective-repeat\" or \"go-back-n\"");
    assert_eq!(names(kinds[..3].iter()), "\"selective-repeat\", \"go-back-n\" or \"trimmed\"");
}

#[test]
fn times_without_meaning_name_their_field() {
    type Change = fn(&mut TransportOptions);
    let field = |change: Change| {
        let mut options = TransportOptions::default();
        change(&mut options);
        options.check().map_err(|error| error.field)
    };
    let refused: [(Change, &str); 11] = [
        (|options| options.mtu = Bytes(0), "mtu"),
        (|options| options.mtu = Bytes(65_536 - 64), "mtu"),
        (|options| options.ack_size = Bytes(0), "ack_size"),
        (|options| options.ack_size = Bytes(65_536), "ack_size"),
        (|options| options.ack_every = 0, "ack_every"),
        (|options| options.interrupt_interval = Some(Time::ZERO), "interrupt_interval"),
        (|options| options.ack_delay = Time::ZERO, "ack_delay"),
        (|options| options.rto_min = Time::ZERO, "rto_min"),
        (|options| options.rto_initial = Time::ZERO, "rto_initial"),
        (|options| options.rto_max = Some(Time(options.rto_initial.0 - 1)), "rto_max"),
        (
            |options| (options.rto_min, options.rto_max) = (Time::from_ms(20), Some(Time::from_ms(19))),
            "rto_max",
        ),
    ];
    for (change, name) in refused {
        assert_eq!(field(change), Err(name.into()));
    }
    let taken: [Change; 6] = [
        |options| options.mtu = Bytes(65_535 - 64),
        |options| options.ack_size = Bytes(65_535),
        |options| options.interrupt_interval = Some(Time(1)),
        |options| options.ack_every = 2,
        |options| options.rto_max = Some(options.rto_initial),
        |options| options.subflows = 64,
    ];
    for change in taken {
        assert_eq!(field(change), Ok(()));
    }
}

/// What DCQCN must do without where there are no ACKs.
#[test]
fn without_acks_no_window_and_no_echo() {
    let check = |dcqcn| {
        let congestion = Congestion::Dcqcn(dcqcn);
        let reliability = Reliability::None(Default::default());
        Transport { congestion, reliability, ..Transport::default() }.check().map_err(|error| error.field)
    };
    assert_eq!(check(Dcqcn::default()), Ok(()));
    let echoed = Dcqcn { preset: DcqcnPreset::Conweave, ..Dcqcn::default() };
    assert_eq!(check(echoed.clone()), Err("congestion.cnp_interval".into()));
    assert_eq!(check(Dcqcn { cnp_interval: Some(Time(1)), ..echoed }), Ok(()));
}

/// A first window of all subflows together, in whole packets.
#[test]
fn the_first_window_names_its_field() {
    let path = PathFacts {
        base_rtt: Time::from_us(10),
        rate: Rate::from_gbps(100),
        lossy: true,
        reorders: false,
        trims: false,
    };
    assert_eq!(path.bdp(), Bytes(125_000));
    let first = |name: &str| preset(name).first_window(path);
    // 150,000 B are 36 packets of 4160 B.
    assert_eq!(first("flowcut-evaluation"), Some(("bdp", Bytes(36 * 4160))));
    assert_eq!(first("tcp"), Some(("initial_window", Bytes(15_000))));
    assert_eq!(first("mptcp"), Some(("initial_window", Bytes(8 * 15_000))));
    assert_eq!(first("ndp"), Some(("initial_window", Bytes(30 * 9000))));
    assert_eq!(first("flowcut-artefact-ft"), Some(("initial_bdp", Bytes(37 * 4160))));
    // 125,000 B are 119 packets and a part, so that 120 are as many as they take.
    assert_eq!(first("irn"), Some(("window_bdp", Bytes(120 * 1048))));
    assert_eq!([first("roce"), first("hpcc"), first("mp-rdma")], [None; 3]);
    let mut small = preset("tcp");
    let window = crate::congestion::newreno::NewReno { max_window: Some(Bytes(4000)), ..Default::default() };
    small.congestion = Congestion::NewReno(window);
    assert_eq!(small.first_window(path), Some(("max_window", Bytes(3000))));
}
