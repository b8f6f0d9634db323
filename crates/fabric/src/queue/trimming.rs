//! A full queue keeps the header of what comes.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_packet_size;

/// Trimming as in NDP (Handley et al., SIGCOMM'17, section 3.1): where a data packet does not fit, a fair coin decides whether it or the last
/// one in the queue loses its payload. The header goes on in the control queue, so its receiver learns of the loss before later data could show it.
/// The data queue holds `fabric.buffer`; absent: eight of the largest packets. A NIC keeps no queue of data, and trims nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trimming {
    /// While both wait, this many control packets go before each data packet: a full control queue cannot starve data.
    pub control_weight: u32,
    /// Bytes of headers, ACKs and other control packets that may wait at one port; an empty queue takes one packet of any size. Absent: twice
    /// what the data queue holds.
    pub control_buffer: Option<Bytes>,
    /// Size of a trimmed packet.
    pub header_size: Bytes,
    /// Whether a header for which the control queue has no room goes back to its sender, once; it is dropped otherwise, and on its way back.
    pub return_to_sender: bool,
}

impl Default for Trimming {
    fn default() -> Self {
        Trimming { control_weight: 10, control_buffer: None, header_size: Bytes(64), return_to_sender: true }
    }
}

impl Trimming {
    /// Packets that the data queue holds where nothing else is written.
    pub(crate) const PACKETS: u64 = 8;

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("control_weight", self.control_weight, 1)?;
        check_packet_size("header_size", self.header_size)?;
        let room = self.control_buffer.unwrap_or(Bytes(u64::MAX));
        let expected = format!("room for a header of {}", self.header_size);
        Invalid::unless(room >= self.header_size, "control_buffer", expected, room)
    }
}
