//! How an ACK with a bitmap is written on a packet, and read.
//!
//! ```text
//!   seq       the packet that caused the ACK
//!   by_kind   high half: the next packet expected, less seq; low half: packets that have come beyond that
//!   sent      the bitmap, in place of a time
//!   flags     echoed: the mark, whether the packet asked for the ACK, whether it had been sent again
//! ```
//!
//! Where the bitmap begins follows from these. What does not fit into half a word, after more than 32,767 packets between a hole and the packet that
//! came, is said as far as it does; the sender then believes more in flight than is.

use netloom_fabric::{ByKind, Packet};
use netloom_transport::{Ack, Sack, sack_first};
use netloom_units::Time;

use crate::host::flow::echo;
use crate::protocol::packets::{PROBE_ANSWER, UET_ACK};

/// What an ACK says besides what it echoes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// The next packet expected.
    pub(crate) expected: u32,
    pub(crate) sack: Sack,
}

/// Whether the bitmap of an ACK begins with the packet that caused it.
pub(crate) fn is_direct(packet: &Packet) -> bool {
    packet.flags.is_marked() || packet.flags.asks_for_ack()
}

/// Writes a report on an answer to a packet.
#[expect(clippy::cast_sign_loss, reason = "the bits of a number below zero")]
pub(crate) fn write(answer: &mut Packet, report: Report) {
    let Report { expected, sack } = report;
    let (ahead, bits) = match i16::try_from(i64::from(expected) - i64::from(answer.seq)) {
        Ok(ahead) => (ahead, sack.bits),
        // A packet that came long ago stands for it, and there is no room for a bitmap.
        Err(_) => {
            answer.seq = expected.saturating_sub(i16::MAX as u32);
            (i16::try_from(expected - answer.seq).unwrap_or(i16::MAX), 0)
        }
    };
    let beyond = u16::try_from(sack.received - expected).unwrap_or(u16::MAX);
    answer.by_kind = ByKind::new(u32::from(ahead as u16) << 16 | u32::from(beyond));
    answer.sent = Time(bits);
}

/// Reads an ACK that has come.
#[expect(clippy::cast_possible_wrap, reason = "each half is read by itself")]
pub(crate) fn read(now: Time, packet: &Packet) -> (Ack, Sack) {
    let halves = packet.number_of(&[UET_ACK, PROBE_ANSWER]);
    let expected = packet.seq.wrapping_add_signed(i32::from((halves >> 16) as u16 as i16));
    let sack = Sack {
        received: expected + (halves & 0xffff),
        first: sack_first(packet.seq, expected, is_direct(packet)),
        bits: packet.sent.0,
        is_repeat: packet.flags.is_repeat(),
    };
    (echo(now, packet, expected), sack)
}

#[cfg(test)]
mod tests {
    use netloom_fabric::Flags;

    use super::*;

    fn answer(seq: u32, asks: bool) -> Packet {
        let mut flags = Flags::default();
        flags.set_asks_for_ack(asks);
        Packet { seq, kind: UET_ACK, flags, ..Packet::EMPTY }
    }

    #[test]
    fn what_is_written_is_read() {
        for (seq, expected, asks) in
            [(70, 5, false), (70, 5, true), (3, 900, false), (4, 5, true), (0, 1, false)]
        {
            let mut packet = answer(seq, asks);
            let first = sack_first(seq, expected, asks);
            let sack = Sack { received: expected + 17, first, bits: 0xdead_beef, is_repeat: false };
            write(&mut packet, Report { expected, sack });
            let (ack, read) = read(Time(9), &packet);
            assert_eq!((ack.seq, ack.cumulative, ack.now, read), (seq, expected, Time(9), sack));
        }
    }

    #[test]
    fn what_does_not_fit_is_said_as_far_as_it_does() {
        for (seq, expected) in [(90_000, 10), (10, 90_000)] {
            let mut packet = answer(seq, true);
            let sack = Sack { received: expected + 80_000, first: seq, bits: 1, is_repeat: false };
            write(&mut packet, Report { expected, sack });
            let (ack, read) = read(Time(9), &packet);
            assert_eq!((ack.cumulative, read.received, read.bits), (expected, expected + 65_535, 0));
            assert!(ack.seq < expected);
        }
    }
}
