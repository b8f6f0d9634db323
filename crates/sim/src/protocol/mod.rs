//! Protocols: whatever has packets of its own. Each is one folder: what others must know of it (its
//! [declaration](declaration::Protocol)), [what it keeps](state::ProtocolState), and what it does at [hosts](at_hosts::HostProtocol) and at
//! [switches](at_switches::SwitchProtocol). A new one is a folder and an entry in the list below.

/// Hands every protocol to a macro: its folder, its name, its control packets and, after a bar, the fabric's own packets that are its business. Where several
/// protocols have a say in something, they have it in this order.
macro_rules! for_all_protocols {
    ($generate:ident) => {
        $generate! {
            end_to_end::EndToEnd: ACK, NACK, CNP | Data;
            trimming::Trimming: | Header, Returned;
            pulls::Pulls: PULL, REQUEST;
            unreachable::Unreachable: UNREACHABLE_ACK, UNREACHABLE_NACK, UNREACHABLE_PULL, UNREACHABLE_CNP, UNREACHABLE_UET_ACK | Unreachable;
            uet::Uet: UET_ACK, PROBE, PROBE_ANSWER;
            path_probes::PathProbes: PATH_PROBE, PATH_PROBE_ANSWER;
            qcn::Qcn: CNM;
            bolt::Bolt: SOURCE_NOTICE;
            flowcut::Flowcut: FLOW_ACK, XOFF, XON;
            edge_signals::EdgeSignals: SIGNAL;
            conga::Conga: ;
            telemetry::Telemetry: ;
            link::Link: | Pause, Credit, Missed;
            reports::LoadReports: | Report;
        }
    };
}

pub(crate) mod at_hosts;
pub(crate) mod at_switches;
pub(crate) mod bolt;
pub(crate) mod conga;
pub(crate) mod declaration;
pub(crate) mod edge_signals;
pub(crate) mod end_to_end;
pub(crate) mod flowcut;
pub(crate) mod link;
pub(crate) mod path_probes;
pub(crate) mod pulls;
pub(crate) mod qcn;
pub(crate) mod reports;
pub(crate) mod state;
pub(crate) mod telemetry;
pub(crate) mod trimming;
pub(crate) mod uet;
pub(crate) mod unreachable;

use netloom_fabric::{Number, PacketKind};
use netloom_units::Bytes;

use crate::protocol::declaration::{Origin, PacketFacts, Parts, Protocol, WireSize, facts_in};

macro_rules! declare {
    ($($module:ident::$Protocol:ident: $($kind:ident),* $(| $($own:ident),+)?;)*) => {
        /// The control packets of all protocols.
        pub(crate) mod packets {
            use netloom_fabric::PacketKind;

            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names of the constants")]
            enum Number {
                $($($kind,)*)*
            }

            $($(pub(crate) const $kind: PacketKind = PacketKind::control(Number::$kind as usize);)*)*
        }

        /// All kinds of packets, with the number of those that their protocols declare.
        const ALL: (&[PacketKind], usize) = (
            &[$($(packets::$kind,)* $($(PacketKind::$own,)+)?)*],
            0 $(+ <$module::$Protocol as Protocol>::PACKETS.len())*,
        );

        /// What is known of packets of a kind.
        #[inline]
        pub(crate) const fn facts(kind: PacketKind) -> &'static PacketFacts {
            match kind {
                $(
                    $(packets::$kind => const { facts_in(<$module::$Protocol as Protocol>::PACKETS, packets::$kind) },)*
                    $($(PacketKind::$own => const {
                        facts_in(<$module::$Protocol as Protocol>::PACKETS, PacketKind::$own)
                    },)+)?
                )*
                _ => panic!("the list has all kinds of packets"),
            }
        }

        /// The sizes on the wire of all that is sent in a run.
        fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
            [$(<$module::$Protocol as Protocol>::wire_sizes(parts)),*].concat()
        }

        /// A timer of a protocol.
        #[expect(dead_code, reason = "there are no timers of protocols that set none")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Timer {
            $($Protocol(<$module::$Protocol as Protocol>::Timer),)*
        }
    };
}

for_all_protocols!(declare);

/// Declares questions about kinds of packets whose answers are bits of a constant.
macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident: |$facts:ident| $answer:expr;)+) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name(kind: PacketKind) -> bool {
                const KINDS: u64 = {
                    let (mut bits, mut place) = (0, 0);
                    while place < ALL.0.len() {
                        let (kind, $facts) = (ALL.0[place], facts(ALL.0[place]));
                        bits |= ($answer as u64) << kind.index();
                        place += 1;
                    }
                    bits
                };
                KINDS >> kind.index() & 1 != 0
            }
        )+
    };
}

questions! {
    /// Whether hosts make packets of a kind.
    is_of_host: |facts| matches!(facts.origin, Origin::Host);
    /// Whether packets of a kind concern flows that come to the host where they end, so that their slot is one of another host.
    concerns_arrivals: |facts| facts.concerns_arrivals;
}

/// Which number of its flow a control packet says besides that of the data packet that it answers, where it is known how that recurs.
pub(crate) fn numbers_of(kind: PacketKind) -> Option<Number> {
    match kind {
        packets::ACK | packets::NACK | packets::CNP => Some(Number::Seq),
        packets::PULL => Some(Number::Pulls),
        packets::REQUEST => Some(Number::None),
        _ => None,
    }
}

/// The kind of which something is left that turned back at a cut link, by the kind of what is left.
pub(crate) fn before_turning(kind: PacketKind) -> Option<PacketKind> {
    ALL.0.iter().copied().find(|&before| facts(before).turned_back == Some(kind))
}

/// The smallest that crosses a channel in a run.
pub(crate) fn smallest(parts: Parts<'_>) -> Bytes {
    wire_sizes(parts).into_iter().map(|size| size.bytes).fold(Bytes(u64::MAX), Ord::min)
}

/// The largest for which queues and input buffers must have room in a run.
pub(crate) fn largest_queued(parts: Parts<'_>) -> Bytes {
    let queued = wire_sizes(parts).into_iter().filter(|size| size.is_queued);
    queued.map(|size| size.bytes).fold(Bytes(0), Ord::max)
}

#[cfg(test)]
mod tests {
    use netloom_fabric::Packet;

    use super::*;
    use crate::protocol::declaration::{Account, Origin};

    #[test]
    fn every_kind_is_declared_once_and_accounted_for_as_the_fabric_does() {
        let (kinds, declared) = ALL;
        assert_eq!(kinds.len(), declared, "a protocol declares kinds that the list does not give it");
        for &kind in kinds {
            let (facts, packet) = (facts(kind), Packet { kind, ..Packet::EMPTY });
            assert_eq!(facts.account == Account::Data, packet.data_source().is_some(), "{kind:?}");
            assert_eq!(facts.account == Account::None, packet.is_of_the_link(), "{kind:?}");
            assert_eq!(facts.origin == Origin::Link, packet.is_of_the_link(), "{kind:?}");
            assert_eq!(facts.name.is_none(), kind.is_beside_data(), "{kind:?}");
        }
    }

    #[test]
    fn what_turns_back_is_known_for_what_it_was() {
        for &kind in ALL.0.iter().filter(|&&kind| kind != PacketKind::Header) {
            if let Some(turned) = facts(kind).turned_back {
                assert_eq!(before_turning(turned), Some(kind), "two kinds turn into {turned:?}");
                assert_eq!(facts(turned).account, facts(kind).account);
                assert_eq!(facts(turned).turned_back, None, "what has turned back does so once");
            }
        }
    }
}
