//! Outcomes in the formats of other programs: captures for Wireshark ([`pcapng`]) and timelines for Perfetto ([`perfetto`]).

mod pcapng;
mod perfetto;

pub use pcapng::{PcapngError, pcapng};
pub use perfetto::{Timeline, perfetto};
