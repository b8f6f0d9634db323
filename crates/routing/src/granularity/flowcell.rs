//! Flowcells: fixed amounts of a flow's bytes.

use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new decision every `size` bytes of a flow. Presto, He et al., SIGCOMM'15, §3.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowcell {
    /// Bytes of a flow that stay on one path.
    pub size: Bytes,
}

impl Default for Flowcell {
    /// 64 KiB, the largest TSO segment, as in the paper.
    fn default() -> Self {
        Flowcell { size: Bytes(64 << 10) }
    }
}

impl Flowcell {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.size == Bytes(0) {
            Err("flowcell.size: expected at least 1 byte, found 0".into())
        } else {
            Ok(())
        }
    }

    /// Whether a packet begins a new flowcell; `sent` counts the bytes of the present one and is updated.
    #[inline]
    pub fn is_new(&self, sent: &mut u64, bytes: u64) -> bool {
        let full = *sent + bytes > self.size.0 && *sent > 0;
        *sent = if full { bytes } else { *sent + bytes };
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_packets_of_4_kib_fill_a_cell() {
        let cell = Flowcell::default();
        let mut sent = 0;
        let starts: Vec<u32> = (0..40).filter(|_| cell.is_new(&mut sent, 4096)).collect();
        assert_eq!(starts, [16, 32]);
    }
}
