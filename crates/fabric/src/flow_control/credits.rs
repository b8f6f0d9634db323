//! Credit-based flow control.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Credit-based flow control: a port sends a packet on a virtual channel only if the buffer at the other end has room for a packet of the
/// largest size. Credits are returned as packets leave that buffer; they take the cable's delay and their own serialisation, but use no bandwidth of the data.
/// Default buffer: that of the Flowcut evaluation's Dragonfly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Credits {
    /// Input buffer of one port and virtual channel.
    pub buffer: Bytes,
    /// Virtual channels per class: a packet takes the next one on each hop between switches, on a Dragonfly on each hop but those from a
    /// local to a global link, under `dimension-order` behind each link that closes a ring; the last one serves all further hops. Absent: as many as the routes need to be free of deadlocks; on trees 1.
    pub vcs: Option<u8>,
    /// Credits are returned once this many bytes have left the buffer. Absent: a sixteenth of the buffer, or less where the buffer holds few
    /// packets; 0: with every packet.
    pub batch: Option<Bytes>,
    /// Size of a credit on the wire.
    pub credit_size: Bytes,
    /// Run even if the routes' channel dependencies form a cycle.
    pub allow_deadlock: bool,
}

impl Default for Credits {
    fn default() -> Self {
        Credits {
            buffer: Bytes(131_072),
            vcs: None,
            batch: None,
            credit_size: Bytes(8),
            allow_deadlock: false,
        }
    }
}

impl Credits {
    /// Bytes that go back together. As the batch and a packet fit the buffer, a sender always gets the credit for another packet.
    pub(crate) fn batch(&self, packet: u64) -> u32 {
        let default = (self.buffer.0 / 16).min(self.buffer.0.saturating_sub(packet));
        u32::try_from(self.batch.map_or(default, |batch| batch.0)).expect("a batch is part of the buffer")
    }

    /// Bytes of an input buffer.
    pub(crate) fn buffer(&self) -> u32 {
        u32::try_from(self.buffer.0).expect("it is checked that a buffer is less than 4 GiB")
    }

    pub(crate) fn check(&self, packet: Bytes) -> Result<(), Invalid> {
        let fits = self.buffer >= packet && self.buffer.0 <= u64::from(u32::MAX);
        Invalid::unless(fits, "buffer", format!("{packet} to 4 GiB"), self.buffer)?;
        let most = Bytes(self.buffer.0 - packet.0);
        if let Some(batch) = self.batch {
            let expected = format!("at most {most}, what the buffer holds beyond the largest packet");
            Invalid::unless(batch <= most, "batch", expected, batch)?;
        }
        Invalid::at_least("credit_size", self.credit_size, Bytes(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sixteenth_of_a_buffer_goes_back_together_unless_a_packet_needs_the_room() {
        let credits = |buffer: u64| Credits { buffer: Bytes(buffer), batch: None, ..Credits::default() };
        assert_eq!(credits(16_000).batch(4_000), 1_000);
        assert_eq!(credits(16_000).batch(15_500), 500);
        let stated = Credits { batch: Some(Bytes(123)), ..credits(16_000) };
        assert_eq!(stated.batch(4_000), 123);
    }
}
