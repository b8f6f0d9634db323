//! What happens when buffers fill.
//!
//! | kind | a full buffer | the upstream port is signalled by |
//! | --- | --- | --- |
//! | [`lossy`] | drops what comes | – |
//! | [`pfc`] | must not happen | PAUSE frames at fixed thresholds of an input buffer per port |
//! | [`pfc_shared`] | must not happen | PAUSE frames at a threshold that moves with the switch's free memory |
//! | [`credits`] | cannot happen | credits, returned as packets leave |
//!
//! Lossless kinds account for data packets by the *input* port through which they came, although they wait in output
//! queues: a packet that waits for a slow output keeps room at its input, and so holds back packets for other outputs
//! (head-of-line blocking between switches). A packet leaves its input buffer when its transmission starts.

pub mod credits;
pub mod lossy;
pub mod pfc;
pub mod pfc_shared;

use netloom_units::{Bytes, Invalid, Rate, Time, kinds};

kinds! {
    /// What happens when buffers fill.
    pub enum FlowControl: "flow_control" {
        "lossy" => Lossy(lossy::Lossy),
        "pfc" => Pfc(pfc::Pfc),
        "pfc-shared" => PfcShared(pfc_shared::PfcShared),
        "credits" => Credits(credits::Credits),
    }
}

/// Most virtual channels of a link under credits.
const MOST_VCS: u8 = 24;
/// Number of priorities of IEEE 802.1Qbb.
const MOST_PRIORITIES: u8 = 8;

impl FlowControl {
    /// Virtual channels per class, if the user fixes their number; `None` leaves it to the routes.
    pub fn vcs(&self) -> Option<u8> {
        match self {
            FlowControl::Lossy(_) => Some(1),
            FlowControl::Pfc(pfc) => pfc.vcs,
            FlowControl::PfcShared(pfc) => pfc.vcs,
            FlowControl::Credits(credits) => credits.vcs,
        }
    }

    /// Whether a scenario may run although its channel dependencies form a cycle.
    pub fn may_deadlock(&self) -> bool {
        match self {
            FlowControl::Lossy(_) => true,
            FlowControl::Pfc(pfc) => pfc.allow_deadlock,
            FlowControl::PfcShared(pfc) => pfc.allow_deadlock,
            FlowControl::Credits(credits) => credits.allow_deadlock,
        }
    }

    /// The most virtual channels that its queues allow with this many classes.
    pub fn most_vcs(&self, classes: usize) -> u8 {
        match self {
            // A port serves the virtual channels of one class in turn, and classes by priority or share.
            _ if classes > 1 => 1,
            FlowControl::Lossy(_) => 1,
            FlowControl::Pfc(_) | FlowControl::PfcShared(_) => MOST_PRIORITIES,
            FlowControl::Credits(_) => MOST_VCS,
        }
    }

    /// Refuses values without meaning. `packet` is the largest packet on the wire.
    pub(crate) fn check(&self, packet: Bytes, classes: usize) -> Result<(), Invalid> {
        if let Some(vcs) = self.vcs() {
            let most = self.most_vcs(classes);
            let why = if classes > 1 { " (with several traffic classes every class has one)" } else { "" };
            Invalid::unless((1..=most).contains(&vcs), "vcs", format!("1 to {most}{why}"), vcs)?;
        }
        match self {
            FlowControl::Lossy(_) => Ok(()),
            FlowControl::Pfc(pfc) => pfc.check(packet),
            FlowControl::PfcShared(pfc) => pfc.check(packet),
            FlowControl::Credits(credits) => credits.check(packet),
        }
    }
}

/// A buffer that holds a packet of the largest size.
fn check_buffer(buffer: Bytes, packet: Bytes) -> Result<(), Invalid> {
    Invalid::unless(buffer >= packet, "buffer", format!("room for a packet of {packet}"), buffer)
}

/// What decides how much may still arrive after a port has asked its upstream neighbour to pause.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    /// Delay of both directions together.
    pub round_trip: Time,
    /// Highest rate towards the port that pauses.
    pub inward: Rate,
    /// Lowest rate of the direction that carries the PAUSE frame.
    pub outward: Rate,
}

impl Cable {
    /// The least headroom above the pause threshold with which nothing is ever lost: bytes that can arrive at most once the threshold
    /// has been reached.
    ///
    /// The packet that crosses the threshold may start at it (one packet). The PAUSE frame may find the largest packet just begun; it takes
    /// that packet's time, its own, the cable's delay and the response time until the neighbour stops, which by then has a packet just begun
    /// (one more packet). What is on its way when the threshold is reached adds the cable's delay once more.
    pub fn headroom(&self, packet: Bytes, pause: Bytes, response: Time) -> Bytes {
        let waits = self.outward.serialize(packet).saturating_sub(Time(1));
        let blind = self.round_trip + response + waits + self.outward.serialize(pause);
        // Packets that began strictly before the neighbour stopped.
        let begun = self.inward.bytes_in(blind.saturating_sub(Time(1)));
        Bytes(2 * packet.0 + begun.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_classes_have_one_virtual_channel_each() {
        let most = |flow_control: FlowControl| [1, 2].map(|classes| flow_control.most_vcs(classes));
        assert_eq!(most(FlowControl::Lossy(Default::default())), [1, 1]);
        assert_eq!(most(FlowControl::Pfc(Default::default())), [MOST_PRIORITIES, 1]);
        assert_eq!(most(FlowControl::PfcShared(Default::default())), [MOST_PRIORITIES, 1]);
        assert_eq!(most(FlowControl::Credits(Default::default())), [MOST_VCS, 1]);
    }
}
