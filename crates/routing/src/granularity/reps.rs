//! REPS: every packet takes another path, and the paths whose ACKs came back unmarked are taken again.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::tag::Tag;

/// A path per packet: the oldest path whose ACK came back unmarked and that has not been used since, otherwise one that the selector draws.
/// After a retransmission timeout the flow *freezes*: it uses the paths that it remembers in turn, even if they were used since, and explores no others until
/// `freeze` has passed; then it forgets them and explores with `explore` packets. Bonato et al., REPS (Recycled Entropies), arXiv
/// 2407.21625. At the NIC; needs a fabric that marks, or one that trims: a packet that loses its payload is not acknowledged, so its path is not
/// taken again. A timeout is taken as a failed link, so congestion should not cause timeouts: use trimming or PFC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reps {
    /// Paths that a flow remembers.
    pub buffer: u32,
    /// How long it stays frozen.
    pub freeze: Time,
    /// Number of packets that explore after that.
    pub explore: u32,
    /// A packet trimmed by the switch before its receiver, to which all paths lead, counts as one that arrived, as in uet-htsim. Not so in the authors' simulator.
    #[serde(skip_serializing_if = "is_unset")]
    pub spare_last_hop: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
fn is_unset(flag: &bool) -> bool {
    !flag
}

impl Default for Reps {
    /// As in the paper and the public simulator of Ultra Ethernet.
    fn default() -> Self {
        Reps { buffer: 8, freeze: Time::from_ms(10), explore: 16, spare_last_hop: false }
    }
}

/// Most paths that a flow remembers.
const MOST: u32 = 1024;

/// What a flow remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// A ring of paths; the latest `fresh` of them have not been taken again.
    ring: Vec<Tag>,
    /// Where the next one goes.
    head: usize,
    fresh: usize,
    /// Packets still to explore with.
    explore: u32,
    /// Until when it is frozen.
    frozen: Option<Time>,
}

impl Memory {
    fn push(&mut self, tag: Tag, most: usize) {
        match self.ring.get_mut(self.head) {
            Some(place) => *place = tag,
            None => self.ring.push(tag),
        }
        self.head = (self.head + 1) % most;
        self.fresh = (self.fresh + 1).min(most);
    }

    /// The oldest fresh path.
    fn take(&mut self, most: usize) -> Option<Tag> {
        let place = (self.head + most - self.fresh) % most;
        self.fresh = self.fresh.checked_sub(1)?;
        self.ring.get(place).copied()
    }

    /// The next path in turn, fresh or not.
    fn turn(&mut self) -> Option<Tag> {
        let tag = *self.ring.get(self.head % self.ring.len().max(1))?;
        self.head = (self.head + 1) % self.ring.len();
        Some(tag)
    }
}

impl GranularityConfig for Reps {
    type Run = Memory;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::EveryPacket,
            remembers: true,
            acks: Acks::MarksOrTrims,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Memory {
        Memory::default()
    }

    /// Every packet is a run.
    fn continues(&self, memory: &mut Memory, now: Time, _: u32) -> bool {
        if memory.frozen.is_some_and(|until| until <= now) {
            *memory = Memory { explore: self.explore, ..Memory::default() };
        }
        false
    }

    fn again(&self, memory: &mut Memory, _: &mut impl Rng) -> Option<Tag> {
        if memory.explore > 0 {
            memory.explore -= 1;
            return None;
        }
        let fresh = memory.take(self.buffer as usize);
        fresh.or_else(|| memory.frozen.and_then(|_| memory.turn()))
    }

    fn on_feedback(&self, memory: &mut Memory, (): &mut (), feedback: &Feedback) -> Advice {
        let arrives = match feedback.cause {
            Cause::Ack => true,
            Cause::Trim => self.spare_last_hop && feedback.at_last_hop,
            _ => false,
        };
        match feedback.cause {
            _ if arrives && !feedback.marked => {
                memory.push(Tag::from_bits(feedback.tag), self.buffer as usize)
            }
            Cause::Timeout if memory.frozen.is_none() && memory.explore == 0 => {
                memory.frozen = Some(feedback.now + self.freeze);
            }
            _ => {}
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        let fits = (1..=MOST).contains(&self.buffer);
        Invalid::unless(fits, "buffer", format!("1 to {MOST}"), self.buffer)?;
        Invalid::unless(self.freeze > Time::ZERO, "freeze", "more than 0", self.freeze)
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;

    struct Flow(Reps, Memory);

    impl Flow {
        fn new(buffer: u32) -> Self {
            let config = Reps { buffer, freeze: Time(1000), explore: 3, ..Reps::default() };
            Flow(config.clone(), config.open())
        }

        fn acks(&mut self, tags: &[u32], marked: bool) {
            for &tag in tags {
                let feedback = Feedback { tag, marked, ..ack(Time(0), Time(10)) };
                self.0.on_feedback(&mut self.1, &mut (), &feedback);
            }
        }

        fn timeout(&mut self, now: u64) {
            let feedback = Feedback { cause: Cause::Timeout, tag: 77, ..ack(Time(0), Time(now)) };
            self.0.on_feedback(&mut self.1, &mut (), &feedback);
        }

        /// The paths of this many packets; none where one is drawn.
        fn send(&mut self, count: usize, now: u64) -> Vec<Option<u32>> {
            let mut next = || {
                assert!(!self.0.continues(&mut self.1, Time(now), 4096));
                self.0.again(&mut self.1, &mut Pcg64Mcg::new(1)).map(Tag::bits)
            };
            (0..count).map(|_| next()).collect()
        }
    }

    #[test]
    fn unmarked_paths_are_taken_again_once_and_oldest_first() {
        let mut flow = Flow::new(8);
        assert_eq!(flow.send(2, 0), [None, None]);
        flow.acks(&[5, 6], false);
        flow.acks(&[7], true);
        flow.acks(&[8], false);
        assert_eq!(flow.send(4, 20), [Some(5), Some(6), Some(8), None]);
        flow.acks(&[9], false);
        assert_eq!(flow.send(2, 30), [Some(9), None]);
    }

    #[test]
    fn a_full_memory_forgets_the_oldest() {
        let mut flow = Flow::new(3);
        flow.acks(&[1, 2, 3, 4, 5], false);
        assert_eq!(flow.send(4, 0), [Some(3), Some(4), Some(5), None]);
        flow.acks(&[6, 7], false);
        assert_eq!(flow.send(1, 0), [Some(6)]);
        flow.acks(&[8, 9], false);
        assert_eq!(flow.send(4, 0), [Some(7), Some(8), Some(9), None]);
    }

    #[test]
    fn a_timeout_freezes_what_is_remembered_and_then_all_is_explored_anew() {
        let mut flow = Flow::new(3);
        flow.acks(&[1, 2, 3], false);
        assert_eq!(flow.send(1, 0), [Some(1)]);
        flow.timeout(100);
        // What is fresh goes first, then all in turn.
        assert_eq!(flow.send(6, 200), [Some(2), Some(3), Some(1), Some(2), Some(3), Some(1)]);
        // A timeout of the frozen flow changes nothing: it thaws at 1100.
        flow.timeout(900);
        assert_eq!(flow.send(1, 1099), [Some(2)]);
        assert_eq!(flow.send(1, 1100), [None]);
        flow.acks(&[4, 5], false);
        // Nor does one of a flow that explores.
        flow.timeout(1200);
        assert_eq!(flow.send(5, 1300), [None, None, Some(4), Some(5), None]);
    }

    #[test]
    fn a_flow_that_remembers_nothing_draws_though_it_is_frozen() {
        let mut flow = Flow::new(3);
        flow.timeout(0);
        assert_eq!(flow.send(2, 10), [None, None]);
        flow.acks(&[4], false);
        assert_eq!(flow.send(3, 20), [Some(4), Some(4), Some(4)]);
    }

    #[test]
    fn a_packet_trimmed_at_the_last_hop_tells_of_its_path_where_that_is_asked_for() {
        for (spare_last_hop, at_last_hop, marked, next) in [
            (false, true, false, None),
            (true, false, false, None),
            (true, true, true, None),
            (true, true, false, Some(9)),
        ] {
            let mut flow = Flow::new(8);
            flow.0.spare_last_hop = spare_last_hop;
            let trim = Feedback { cause: Cause::Trim, tag: 9, at_last_hop, marked, ..ack(Time(0), Time(10)) };
            flow.0.on_feedback(&mut flow.1, &mut (), &trim);
            assert_eq!(flow.send(1, 20), [next]);
        }
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: Reps| config.check().unwrap_err().to_string();
        assert!(refusal(Reps { buffer: 0, ..Reps::default() }).starts_with("buffer: expected 1 to 1024"));
        assert!(refusal(Reps { freeze: Time::ZERO, ..Reps::default() }).starts_with("freeze"));
    }
}
