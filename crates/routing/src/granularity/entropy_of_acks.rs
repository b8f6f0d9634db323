//! MP-RDMA's choice of paths beside another window: packets that an ACK lets out take its path.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Bytes, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::tag::Tag;

/// A path per packet: that of the latest ACK, if this ACK let a packet out, otherwise one that the selector draws. An ACK lets a packet out if it made the window grow by nearly a packet, or if nearly
/// a packet more than what is in flight fits into the window after it; `slack` says what nearly is. The report of a trimmed packet changes the path in the same way, by the ACK before it. Marks play no
/// part, as in MP-RDMA, where they act on the window alone (Lu et al., NSDI'18). At the NIC; works with every transport that has ACKs. Without a window every ACK lets packets out.
///
/// The load balancer `mprdma` of the public simulator of REPS (tommasobo/REPS_EuroSys_Artifact, commit b751588, `uec.cpp`), there for any congestion control. MP-RDMA itself, whose ACKs each release one
/// packet or two and remember their path for these, is `transport.preset = "mp-rdma"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EntropyOfAcks {
    /// A packet fits, or the window has grown by a packet, if no more than this is missing.
    pub slack: Bytes,
}

impl Default for EntropyOfAcks {
    /// Less than 66 bytes, as in the simulator.
    fn default() -> Self {
        EntropyOfAcks { slack: Bytes(65) }
    }
}

/// What a flow remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// The path of the latest ACK that let a packet out, or of a trimmed packet reported since.
    path: Option<Tag>,
    /// Whether the latest ACK did.
    lets_out: bool,
}

impl EntropyOfAcks {
    /// Whether an ACK lets a packet out.
    fn lets_out(&self, ack: &Feedback) -> bool {
        let nearly = ack.packet.0.saturating_sub(self.slack.0);
        let grown = ack.window.saturating_sub(ack.window_before);
        let room = ack.window.saturating_sub(u64::from(ack.in_flight) * ack.packet.0);
        grown >= nearly || room >= nearly
    }
}

impl GranularityConfig for EntropyOfAcks {
    type Run = Memory;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::EveryPacket,
            remembers: true,
            acks: Acks::Any,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Memory {
        Memory::default()
    }

    /// Every packet is a run.
    fn continues(&self, _: &mut Memory, _: Time, _: u32) -> bool {
        false
    }

    fn again(&self, memory: &mut Memory, _: &mut impl Rng) -> Option<Tag> {
        memory.path.filter(|_| memory.lets_out)
    }

    fn on_feedback(&self, memory: &mut Memory, (): &mut (), feedback: &Feedback) -> Advice {
        let tag = Tag::from_bits(feedback.tag);
        match feedback.cause {
            Cause::Ack => memory.lets_out = self.lets_out(feedback),
            Cause::Trim | Cause::Return => {}
            Cause::Unreachable => {
                memory.path.take_if(|path| *path == tag);
                return Advice::Continue;
            }
            // Of which path that was is not known.
            Cause::Nack | Cause::Loss | Cause::Timeout | Cause::Notification => return Advice::Continue,
        }
        if memory.lets_out {
            memory.path = Some(tag);
        }
        Advice::Continue
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;

    /// The path of the next packet of 4160 B after feedback on a packet that took path `tag`; none: one is drawn.
    fn next(memory: &mut Memory, cause: Cause, tag: u32, windows: [u64; 2], in_flight: u32) -> Option<u32> {
        let [window_before, window] = windows;
        let packet = Bytes(4160);
        let feedback =
            Feedback { cause, tag, window_before, window, in_flight, packet, ..ack(Time(0), Time(10)) };
        let kind = EntropyOfAcks::default();
        kind.on_feedback(memory, &mut (), &feedback);
        assert!(!kind.continues(memory, Time(20), 4096));
        kind.again(memory, &mut Pcg64Mcg::new(1)).map(Tag::bits)
    }

    #[test]
    fn packets_take_the_path_of_the_ack_that_lets_them_out() {
        let kind = EntropyOfAcks::default();
        let memory = &mut kind.open();
        assert_eq!(kind.again(memory, &mut Pcg64Mcg::new(1)), None, "the first window is drawn");
        // 4094 B of room would be too little: 4160 - 66, and more.
        assert_eq!(next(memory, Cause::Ack, 5, [12_000, 12_000], 2), None);
        assert_eq!(next(memory, Cause::Ack, 6, [12_414, 12_414], 2), None);
        assert_eq!(next(memory, Cause::Ack, 7, [12_415, 12_415], 2), Some(7));
        // Grown by as much, though nothing fits.
        assert_eq!(next(memory, Cause::Ack, 8, [12_415, 16_509], 9), None);
        assert_eq!(next(memory, Cause::Ack, 9, [12_415, 16_510], 9), Some(9));
        // All packets until the next ACK take it.
        assert_eq!(kind.again(memory, &mut Pcg64Mcg::new(1)), Some(Tag::from_bits(9)));
        // Marks do not matter, and a window that shrinks lets nothing out.
        assert_eq!(next(memory, Cause::Ack, 10, [16_510, 8_000], 3), None);
    }

    #[test]
    fn a_trimmed_packet_counts_by_the_ack_before_it() {
        let memory = &mut Memory::default();
        assert_eq!(next(memory, Cause::Trim, 4, [90_000, 80_000], 2), None);
        assert_eq!(next(memory, Cause::Ack, 5, [90_000, 90_000], 2), Some(5));
        assert_eq!(next(memory, Cause::Trim, 6, [4160, 4160], 9), Some(6));
        // What does not say which path it is about changes nothing.
        for cause in [Cause::Timeout, Cause::Loss, Cause::Nack, Cause::Notification] {
            assert_eq!(next(memory, cause, 0, [90_000, 4160], 0), Some(6), "{cause:?}");
        }
        // A path that is cut is not taken again.
        assert_eq!(next(memory, Cause::Unreachable, 7, [90_000, 90_000], 0), Some(6));
        assert_eq!(next(memory, Cause::Unreachable, 6, [90_000, 90_000], 0), None);
    }

    #[test]
    fn without_a_window_every_ack_lets_packets_out() {
        assert_eq!(next(&mut Memory::default(), Cause::Ack, 3, [u64::MAX; 2], 1 << 20), Some(3));
    }
}
