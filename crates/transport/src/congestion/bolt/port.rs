//! What Bolt does at a port of a switch.

use netloom_units::{Bytes, Rate, Time};

use super::{Bolt, Claim};

/// A picosecond at one bit per second, and what a byte is in it.
const BYTE: i128 = 8_000_000_000_000;

/// What a port remembers.
#[derive(Clone, Debug, Default)]
pub struct BoltPort {
    /// Packets of last windows, for which nothing has been let pass yet.
    pru_tokens: u32,
    /// What the link could have sent beyond what came, in units of 10⁻¹² bit: negative while more has come than it can send.
    supply: i128,
    /// When it was that.
    at: Time,
}

/// A port, and a packet that is about to enter its queue.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    /// When.
    pub now: Time,
    /// The packet's size on the wire.
    pub size: Bytes,
    /// What waits at the port, the packet being sent not counted.
    pub queued: Bytes,
    /// The link's rate.
    pub rate: Rate,
}

/// What a switch tells a packet's source of the port that the packet meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceNotice {
    /// When the packet left its source.
    pub sent: Time,
    /// How long the port takes to send what waits there, in whole nanoseconds.
    pub drain: Time,
}

impl BoltPort {
    /// A packet comes to the port, of whatever kind: it uses what the link can send.
    pub fn count(&mut self, config: &Bolt, full: Bytes, meeting: Meeting) {
        let elapsed = (meeting.now - self.at).0;
        self.at = meeting.now;
        let supply = i128::from(meeting.rate.0) * i128::from(elapsed);
        let most = i128::from(config.max_supply.unwrap_or(full).0) * BYTE;
        self.supply = (self.supply + supply - i128::from(meeting.size.0) * BYTE).min(most);
    }

    /// A data packet that has been [counted](Self::count) comes, with this claim; `full` is the size of a full one. Returns what is left of the claim and, if the packet's source is to be notified, how
    /// long the port takes to send what waits there.
    pub fn meet(
        &mut self,
        config: &Bolt,
        full: Bytes,
        meeting: Meeting,
        claim: Claim,
    ) -> (Claim, Option<Time>) {
        let threshold = config.threshold.unwrap_or(Bytes(2 * full.0));
        if meeting.queued >= threshold {
            let drain = u128::from(meeting.queued.0) * 8_000_000_000 / u128::from(meeting.rate.0.max(1));
            let drain = Time::from_ns(u64::try_from(drain).unwrap_or(u32::MAX.into()).min(u32::MAX.into()));
            return (claim.notified(), (!claim.is_notified()).then_some(drain));
        }
        let packet = i128::from(full.0) * BYTE;
        if config.proactive_ramp_up && claim.is_last() {
            self.pru_tokens = (self.pru_tokens + 1).min(config.max_pru_tokens);
            (claim, None)
        } else if config.proactive_ramp_up && claim.grows() && self.pru_tokens > 0 {
            self.pru_tokens -= 1;
            (claim, None)
        } else if config.supply_matching && claim.grows() && self.supply >= packet {
            self.supply -= packet;
            (claim, None)
        } else {
            (claim.without_growth(), None)
        }
    }
}
