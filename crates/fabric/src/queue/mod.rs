//! What becomes of a packet that finds its output queue full.
//!
//! | kind | a data packet without room | a control packet without room |
//! | --- | --- | --- |
//! | [`tail_drop`] | is dropped | there always is room |
//! | [`trimming`] | loses its payload: the header goes on in the control queue | a header goes back to its sender, others are dropped |

pub mod tail_drop;
pub mod trimming;

use netloom_units::{Bytes, Invalid, kinds};

kinds! {
    /// What becomes of a packet that finds its output queue full, where nothing keeps it from coming.
    pub enum Queue: "queue" {
        "tail-drop" => TailDrop(tail_drop::TailDrop),
        "trimming" => Trimming(trimming::Trimming),
    }
}

impl Queue {
    /// Refuses values without meaning.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        match self {
            Queue::TailDrop(tail_drop) => tail_drop.check(),
            Queue::Trimming(trimming) => trimming.check(),
        }
    }

    /// Whether packets that find no room lose their payload.
    pub fn trims(&self) -> bool {
        matches!(self, Queue::Trimming(_))
    }
}

/// Packets count their size in 16 bits.
pub(crate) fn check_packet_size(field: &'static str, size: Bytes) -> Result<(), Invalid> {
    Invalid::unless((1..=0xffff).contains(&size.0), field, "1 to 65535 bytes", size)
}

/// A size of which [`check_packet_size`] has been asked, as packets hold it.
pub(crate) fn wire_size(size: Bytes) -> u16 {
    u16::try_from(size.0).expect("the sizes of packets are checked before a run")
}
