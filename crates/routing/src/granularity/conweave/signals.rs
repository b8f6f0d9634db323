//! What switches write on packets and signal to each other under ConWeave, encoded in bits.

/// What the first switch writes on a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Label of its path.
    pub(super) label: u16,
    /// Its flow's epoch.
    pub(super) epoch: u8,
    /// The last switch is to reply.
    pub(super) asks: bool,
    /// The last packet of the old path.
    pub(super) is_tail: bool,
    /// On the new path, ahead of the tail perhaps.
    pub(super) is_rerouted: bool,
}

impl Stamp {
    const ASKS: u32 = 1 << 24;
    const TAIL: u32 = 1 << 25;
    const REROUTED: u32 = 1 << 26;

    /// As it is written in a packet.
    pub(super) fn bits(self) -> u32 {
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        u32::from(self.label)
            | u32::from(self.epoch) << 16
            | flag(self.asks, Self::ASKS)
            | flag(self.is_tail, Self::TAIL)
            | flag(self.is_rerouted, Self::REROUTED)
    }

    /// As it is read from a packet.
    #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
    pub(super) fn from_bits(bits: u32) -> Self {
        Stamp {
            label: bits as u16,
            epoch: (bits >> 16) as u8,
            asks: bits & Self::ASKS != 0,
            is_tail: bits & Self::TAIL != 0,
            is_rerouted: bits & Self::REROUTED != 0,
        }
    }
}

/// A signal of the last switch to the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The packet that asked has come.
    Reply,
    /// The tail has come.
    Clear,
    /// The path is busy.
    Busy,
}

impl Word {
    /// As it is written in a signal, with the stamp that it is about.
    pub(super) fn bits(self, stamp: Stamp) -> u32 {
        (self as u32) << 30 | u32::from(stamp.epoch) << 16 | u32::from(stamp.label)
    }

    /// As it is read from a signal: the word, the epoch, the label.
    #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
    pub(super) fn from_bits(bits: u32) -> (Word, u8, u16) {
        let word = match bits >> 30 {
            0 => Word::Reply,
            1 => Word::Clear,
            _ => Word::Busy,
        };
        (word, (bits >> 16) as u8, bits as u16)
    }
}
