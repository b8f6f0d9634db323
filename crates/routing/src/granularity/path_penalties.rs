//! Ultra Ethernet's paths in turn: those that were marked or trimmed sit out, and those that were not may be taken again first.

use std::collections::VecDeque;

use netloom_transport::{Cause, Feedback};
use netloom_units::Invalid;
use rand::{Rng, RngExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use super::listed::{check_paths, place_of};
use crate::header::Advice;
use crate::tag::Tag;

/// A path per packet: those of a flow's list in turn, in a new random order for each pass, as far as they have no *penalty*. A marked ACK gives
/// its path a penalty of `mark`, a packet trimmed before the last switch one of `trim` (one trimmed there counts as an ACK, as all paths lead there), a packet that met a cut link the largest, `most`. A path whose turn it is and that
/// has a penalty is passed over; the first one that is passed over for a packet loses 1 of it. If all have one, the packet takes the path whose
/// turn it is. With `mark` and `trim` of 0 and without `recycle`, feedback has no effect. With `recycle`, the oldest path whose ACK came back
/// unmarked, and that has not been taken again since, goes first. At the NIC;
/// needs a fabric that marks, or one that trims. Works with every transport that has ACKs; with one ACK for several packets
/// (`reliability = "pds"`) the ACK speaks for the path of the packet that caused it.
///
/// The load balancers of the public simulator of Ultra Ethernet, uet-htsim (commit 40ccb05, `uec_mp.cpp`): without `recycle` its `bitmap`, with it its
/// `mixed`, which is its default; without all three its `oblivious`. The list holds the paths between the flow's two ends, each once, as that of `path-list` does; uet-htsim's are
/// entropy values. One thing is different: there a timeout gives entropy value 0 a penalty of 15, as the path is not known, and here none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathPenalties {
    /// Maximum number of paths in the list: a random selection where there are more, all of them where there are fewer (uet-htsim: `-paths` 64).
    pub paths: u32,
    /// Whether paths whose ACKs came back unmarked go first.
    pub recycle: bool,
    /// Penalty of a marked ACK (uet-htsim: 1).
    pub mark: u8,
    /// Penalty of a trimmed packet (uet-htsim: 4).
    pub trim: u8,
    /// Largest penalty of a path (uet-htsim: 15).
    pub most: u8,
}

impl Default for PathPenalties {
    /// As in uet-htsim, `mixed`.
    fn default() -> Self {
        PathPenalties { paths: 64, recycle: true, mark: 1, trim: 4, most: 15 }
    }
}

/// What a flow remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    paths: Vec<Tag>,
    /// The penalties of the paths.
    penalties: Vec<u8>,
    /// How far the present pass is, and what turns that into an index: exclusive or with these bits. The next power of two above the number of paths
    /// is a pass, of which indices beyond the list are left out.
    step: u32,
    flip: Option<u32>,
    /// Paths whose ACKs came back unmarked, the oldest first.
    good: VecDeque<Tag>,
}

impl Memory {
    /// The steps of a pass, less one.
    #[expect(clippy::cast_possible_truncation, reason = "a list has at most 1,024 paths: check_paths")]
    fn mask(&self) -> u32 {
        (self.paths.len() as u32).next_power_of_two() - 1
    }

    /// The index of the path whose turn it is.
    fn current(&mut self, random: &mut impl Rng) -> usize {
        loop {
            let flip = *self.flip.get_or_insert_with(|| random.random());
            let index = ((self.step ^ flip) & self.mask()) as usize;
            if index < self.paths.len() {
                return index;
            }
            self.pass_on();
        }
    }

    /// It is the turn of the next one.
    fn pass_on(&mut self) {
        self.step += 1;
        if self.step > self.mask() {
            (self.step, self.flip) = (0, None);
        }
    }

    /// Takes the path whose turn it is.
    fn take(&mut self, random: &mut impl Rng) -> Option<Tag> {
        if self.paths.is_empty() {
            return None;
        }
        let mut index = self.current(random);
        if self.penalties[index] > 0 {
            self.penalties[index] -= 1;
            for _ in 0..self.paths.len() {
                self.pass_on();
                index = self.current(random);
                if self.penalties[index] == 0 {
                    break;
                }
            }
        }
        self.pass_on();
        Some(self.paths[index])
    }
}

impl PathPenalties {
    /// Whether what comes back matters.
    fn learns(&self) -> bool {
        self.recycle || self.mark > 0 || self.trim > 0
    }
}

impl GranularityConfig for PathPenalties {
    type Run = Memory;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::EveryPacket,
            remembers: true,
            acks: if self.learns() { Acks::MarksOrTrims } else { Acks::Unused },
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
    fn continues(&self, _: &mut Memory, _: netloom_units::Time, _: u32) -> bool {
        false
    }

    fn lists(&self) -> Option<u32> {
        Some(self.paths)
    }

    fn list(&self, memory: &mut Memory, tags: &[Tag]) {
        memory.paths = tags.to_vec();
        memory.penalties = vec![0; tags.len()];
    }

    fn again(&self, memory: &mut Memory, random: &mut impl Rng) -> Option<Tag> {
        memory.good.pop_front().or_else(|| memory.take(random))
    }

    fn on_feedback(&self, memory: &mut Memory, (): &mut (), feedback: &Feedback) -> Advice {
        let penalty = match feedback.cause {
            // All paths lead to the last switch: a packet trimmed there says of its path what its mark says.
            Cause::Trim if feedback.at_last_hop && !feedback.marked => 0,
            Cause::Trim if feedback.at_last_hop => self.mark,
            Cause::Ack if feedback.marked => self.mark,
            Cause::Ack => 0,
            Cause::Trim | Cause::Return => self.trim,
            Cause::Unreachable => self.most,
            // Of which path that was is not known.
            Cause::Nack | Cause::Loss | Cause::Timeout | Cause::Notification => return Advice::Continue,
        };
        let tag = Tag::from_bits(feedback.tag);
        let Some(index) = place_of(tag, &memory.paths, |&path| path) else {
            return Advice::Continue;
        };
        let worse = memory.penalties[index].saturating_add(penalty).min(self.most);
        memory.penalties[index] = worse;
        if penalty == 0 && self.recycle {
            memory.good.push_back(tag);
        }
        if feedback.cause == Cause::Unreachable {
            memory.good.retain(|good| *good != tag);
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        check_paths(self.paths)?;
        Invalid::at_least("most", self.most, 1)?;
        let most = self.most;
        Invalid::unless(self.mark <= most, "mark", format!("at most {most}, as most says"), self.mark)?;
        Invalid::unless(self.trim <= most, "trim", format!("at most {most}, as most says"), self.trim)
    }
}

#[cfg(test)]
mod tests {
    use netloom_units::Time;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;

    /// A flow with paths 10, 11, 12, …
    struct Flow {
        kind: PathPenalties,
        memory: Memory,
        random: Pcg64Mcg,
    }

    impl Flow {
        fn new(paths: u32, recycle: bool) -> Self {
            let kind = PathPenalties { paths, recycle, ..PathPenalties::default() };
            let mut memory = kind.open();
            kind.list(&mut memory, &(10..10 + paths).map(Tag::entropy).collect::<Vec<_>>());
            Flow { kind, memory, random: Pcg64Mcg::seed_from_u64(7) }
        }

        fn send(&mut self, packets: usize) -> Vec<u32> {
            let mut next = || self.kind.again(&mut self.memory, &mut self.random).unwrap().bits();
            (0..packets).map(|_| next()).collect()
        }

        fn learn(&mut self, tag: u32, cause: Cause, marked: bool) {
            let feedback = Feedback { tag, cause, marked, ..ack(Time(0), Time(1)) };
            self.kind.on_feedback(&mut self.memory, &mut (), &feedback);
        }
    }

    impl Flow {
        fn learn_trim(&mut self, tag: u32, at_last_hop: bool, marked: bool) {
            let cause = Cause::Trim;
            let feedback = Feedback { tag, cause, marked, at_last_hop, ..ack(Time(0), Time(1)) };
            self.kind.on_feedback(&mut self.memory, &mut (), &feedback);
        }
    }

    #[test]
    fn a_pass_takes_each_path_once_however_many_there_are() {
        for paths in [1, 2, 5, 8, 64] {
            let mut flow = Flow::new(paths, false);
            let passes: Vec<Vec<u32>> = (0..20).map(|_| flow.send(paths as usize)).collect();
            for pass in &passes {
                let mut sorted = pass.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (10..10 + paths).collect::<Vec<_>>());
            }
            assert!(paths < 5 || passes.windows(2).any(|two| two[0] != two[1]));
        }
    }

    #[test]
    fn a_path_sits_out_as_often_as_it_has_penalties() {
        for (cause, marked, penalty) in
            [(Cause::Ack, true, 1), (Cause::Trim, false, 4), (Cause::Unreachable, false, 15)]
        {
            let mut flow = Flow::new(4, false);
            flow.learn(12, cause, marked);
            let taken = flow.send(100);
            let first = taken.iter().position(|&tag| tag == 12).unwrap();
            // In each of those passes the three other paths take a packet.
            assert!((penalty * 3..penalty * 3 + 4).contains(&first), "{first} for {penalty}");
        }
    }

    #[test]
    fn penalties_add_up_to_the_most_and_only_the_first_path_passed_over_loses_one() {
        let mut flow = Flow::new(4, false);
        for _ in 0..20 {
            flow.learn(11, Cause::Trim, false);
        }
        assert_eq!(flow.memory.penalties, [0, 15, 0, 0]);
        for tag in 10..14 {
            flow.learn(tag, Cause::Trim, false);
        }
        let before: u32 = flow.memory.penalties.iter().map(|&penalty| u32::from(penalty)).sum();
        // All have one: a packet leaves all the same.
        assert_eq!(flow.send(3).len(), 3);
        let after: u32 = flow.memory.penalties.iter().map(|&penalty| u32::from(penalty)).sum();
        assert_eq!(before - after, 3);
    }

    #[test]
    fn what_came_back_unmarked_goes_first_in_its_order() {
        let mut flow = Flow::new(8, true);
        for (tag, marked) in [(12, false), (15, true), (11, false), (12, false)] {
            flow.learn(tag, Cause::Ack, marked);
        }
        assert_eq!(flow.send(3), [12, 11, 12]);
        assert!(flow.send(7).iter().all(|&tag| tag != 15), "it has a penalty");
        // A packet trimmed by the last switch counts as it is marked, one that is trimmed before as trimmed.
        flow.learn_trim(16, true, false);
        flow.learn_trim(17, true, true);
        flow.learn_trim(14, false, false);
        assert_eq!((flow.memory.penalties[4], flow.memory.penalties[6], flow.memory.penalties[7]), (4, 0, 1));
        assert_eq!(flow.send(1), [16]);
        // A timeout says nothing of a path, and what met a cut link is forgotten.
        flow.learn(0, Cause::Timeout, false);
        flow.learn(13, Cause::Ack, false);
        flow.learn(13, Cause::Unreachable, false);
        assert!(flow.memory.good.is_empty());
        let mut without = Flow::new(8, false);
        without.learn(12, Cause::Ack, false);
        assert!(without.memory.good.is_empty());
    }

    #[test]
    fn values_without_meaning_are_refused() {
        let refused = |kind: PathPenalties| kind.check().map_err(|error| error.field);
        assert_eq!(refused(PathPenalties::default()), Ok(()));
        assert_eq!(refused(PathPenalties { paths: 0, ..PathPenalties::default() }), Err("paths".into()));
        assert_eq!(refused(PathPenalties { most: 0, ..PathPenalties::default() }), Err("most".into()));
        assert_eq!(refused(PathPenalties { mark: 16, ..PathPenalties::default() }), Err("mark".into()));
        assert_eq!(refused(PathPenalties { trim: 16, ..PathPenalties::default() }), Err("trim".into()));
    }
}
