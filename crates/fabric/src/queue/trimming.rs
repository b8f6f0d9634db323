//! A full queue keeps the header of what comes.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_packet_size;

/// Trimming as in NDP (Handley et al., SIGCOMM'17, section 3.1): where a data packet does not fit, with equal probability it or the last
/// packet in the queue loses its payload. The header is forwarded in the control queue, so the receiver learns of the loss before later data could reveal it.
/// The data queue holds `fabric.buffer`; absent: eight of the largest packets. A NIC keeps no queue of data, and trims nothing.
///
/// The receiver reports a header at once, and exactly that packet is sent again: windows treat it as a loss, but neither a timer nor counting is needed.
/// With go-back-N a header stands for a packet that the receiver asks for again. With `fabric.control_priority = false` headers
/// queue behind the data. The packet being sent is not counted in the data queue. Works with every transport that has ACKs. Refused in
/// lossless fabrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trimming {
    /// If both wait, this many control packets are sent before each data packet, so a full control queue cannot starve data.
    pub control_weight: u32,
    /// Bytes of headers, ACKs and other control packets that may wait at one port; an empty queue takes one packet of any size. Absent: twice
    /// what the data queue holds.
    pub control_buffer: Option<Bytes>,
    /// Size of a trimmed packet.
    pub header_size: Bytes,
    /// Whether a header for which the control queue has no room is returned to its sender, once. Otherwise it is dropped, and so is a returning
    /// header for which there is no room.
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
