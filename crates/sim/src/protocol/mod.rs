//! Protocols: whatever has packets of its own. Each is one folder: what others must know of it (its
//! [declaration](declaration::Protocol)), its state, and its part at hosts and at switches. A new one is a folder and an
//! entry in the list below, which does not compile as long as a kind of packet belongs to none.

pub(crate) mod conga;
pub(crate) mod conweave;
pub(crate) mod declaration;
pub(crate) mod end_to_end;
pub(crate) mod flowcut;
pub(crate) mod link;
pub(crate) mod pulls;
pub(crate) mod qcn;
pub(crate) mod reports;
pub(crate) mod telemetry;
pub(crate) mod trimming;
pub(crate) mod unreachable;

use netloom_fabric::PacketKind;
use netloom_units::Bytes;

use crate::protocol::declaration::{PacketFacts, Parts, Protocol, WireSize, facts_in};

/// Every protocol with the kinds of packets that it has.
macro_rules! protocols {
    ($($path:path: $($kind:ident),*;)*) => {
        /// What is known of packets of a kind.
        pub(crate) const fn facts(kind: PacketKind) -> &'static PacketFacts {
            match kind {
                $($(PacketKind::$kind => const { facts_in(<$path as Protocol>::PACKETS, PacketKind::$kind) },)*)*
            }
        }

        /// The sizes on the wire of all that is sent in a run.
        fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize> {
            [$(<$path as Protocol>::wire_sizes(parts)),*].concat()
        }

        /// All kinds of packets, with the number of those that their protocols declare.
        #[cfg(test)]
        const ALL: (&[PacketKind], usize) =
            (&[$($(PacketKind::$kind,)*)*], 0 $(+ <$path as Protocol>::PACKETS.len())*);
    };
}

protocols! {
    end_to_end::EndToEnd: Data, Ack, Nack, Cnp;
    trimming::Trimming: Header, Returned;
    pulls::Pulls: Pull, Request;
    unreachable::Unreachable: Unreachable, UnreachableAck, UnreachableNack, UnreachablePull, UnreachableCnp;
    qcn::Qcn: Cnm;
    flowcut::Flowcut: FlowAck, Xoff, Xon;
    conweave::ConWeave: Word;
    conga::Conga:;
    telemetry::Telemetry:;
    link::Link: Pause, Credit, Missed;
    reports::LoadReports: Report;
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
}
