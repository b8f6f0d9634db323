//! NDP's path list: packets take each of a flow's paths once per pass, in an order drawn anew for each pass, and leave out those on which they fare
//! badly.

use netloom_transport::{Cause, Feedback};
use netloom_units::Invalid;
use rand::Rng;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use super::listed::{check_paths, place_of};
use crate::header::Advice;
use crate::tag::Tag;

/// A path per packet: each of a list once, in a new random order for each pass (Handley et al., NDP, SIGCOMM'17, sec. 3.1; strategy `perm`
/// of csg-htsim, `sim/datacenter/main_ndp.cpp`). The list holds the paths between the flow's two ends, each once: the labels of a tree that
/// lead over different links, the layers that connect the two, their k shortest paths. Different entropy values count as different paths, because a
/// NIC does not know where switches' hashes send them.
/// A list is made when its flow begins. A path is left out of the next pass if the trimmed share of its packets is more than `penalty` times that of
/// all paths, or if more of its packets are unanswered than `penalty` times the mean plus one (a link is slow, or cut).
/// Each further penalty of the same path lasts twice as long as the one before, until it is no worse than the others.
/// At the NIC.
///
/// The paper says that such outliers are left out temporarily, but neither how far out they have to be nor for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathList {
    /// Maximum number of paths in the list: a random selection where there are more between the flow's two ends, all of them where there are fewer.
    pub paths: u32,
    /// A path is left out if it is this many times worse than the mean.
    pub penalty: f64,
}

impl Default for PathList {
    fn default() -> Self {
        PathList { paths: 64, penalty: 2.0 }
    }
}

/// Most passes for which a path is left out at once.
const LONGEST: u32 = 64;

/// Answers to all packets together from which on the older ones count half.
const MANY: u32 = 1024;

/// A path and how packets have fared there.
#[derive(Clone, Debug)]
struct Path {
    tag: Tag,
    /// Packets that came whole, and headers without their payload, wherever they ended.
    whole: u32,
    trimmed: u32,
    /// Packets that were sent less those that were answered.
    unanswered: i32,
    /// Passes for which it is still left out, and for how many it was last.
    out: u32,
    penalty: u32,
}

/// What a flow remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    paths: Vec<Path>,
    /// The present pass: indices of paths, the next one last.
    pass: Vec<u16>,
}

impl Memory {
    /// A path by its tag.
    fn find(&mut self, tag: Tag) -> Option<&mut Path> {
        let place = place_of(tag, &self.paths, |path| path.tag)?;
        Some(&mut self.paths[place])
    }

    /// Looks how the paths have fared, and begins a pass over those that are not left out.
    fn begin_pass(&mut self, penalty: f64, random: &mut impl Rng) {
        let count = self.paths.len() as f64;
        let (mut trimmed, mut whole, mut unanswered) = (0, 0, 0);
        for path in &self.paths {
            trimmed += u64::from(path.trimmed);
            whole += u64::from(path.whole);
            unanswered += u64::from(path.unanswered.max(0).unsigned_abs());
        }
        let is_full = trimmed + whole > u64::from(MANY);
        let share = trimmed as f64 / (trimmed + whole).max(1) as f64;
        let unanswered = unanswered as f64 / count;
        let Memory { paths, pass } = self;
        for (place, path) in (0u16..).zip(&mut *paths) {
            if path.out > 0 {
                path.out -= 1;
                if path.out == 0 {
                    pass.push(place);
                }
                continue;
            }
            let own = f64::from(path.trimmed) / f64::from(path.trimmed + path.whole).max(1.0);
            // One packet trimmed says little.
            let is_trimmed = path.trimmed > 1 && own > penalty * share;
            let is_silent = f64::from(path.unanswered) > penalty * unanswered + 1.0;
            if is_trimmed || is_silent {
                path.penalty = (2 * path.penalty).clamp(1, LONGEST);
                path.out = path.penalty;
                (path.trimmed, path.whole, path.unanswered) = (0, 0, 0);
            } else {
                pass.push(place);
                if path.whole > 0 {
                    path.penalty = 0;
                }
            }
            if is_full {
                (path.trimmed, path.whole) = (path.trimmed / 2, path.whole / 2);
            }
        }
        // Not all are worse than the mean of all, but those that are not may be left out from before.
        if pass.is_empty() {
            pass.extend((0u16..).zip(paths).map(|(place, _)| place));
        }
        pass.shuffle(random);
    }
}

impl GranularityConfig for PathList {
    type Run = Memory;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::EveryPacket,
            remembers: true,
            acks: Acks::Any,
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
        let path = |&tag| Path { tag, whole: 0, trimmed: 0, unanswered: 0, out: 0, penalty: 0 };
        memory.paths = tags.iter().map(path).collect();
    }

    fn again(&self, memory: &mut Memory, random: &mut impl Rng) -> Option<Tag> {
        if memory.pass.is_empty() && !memory.paths.is_empty() {
            memory.begin_pass(self.penalty, random);
        }
        let path = &mut memory.paths[usize::from(memory.pass.pop()?)];
        path.unanswered += 1;
        Some(path.tag)
    }

    fn on_feedback(&self, memory: &mut Memory, (): &mut (), feedback: &Feedback) -> Advice {
        let is_whole = feedback.cause == Cause::Ack;
        if (is_whole || matches!(feedback.cause, Cause::Trim | Cause::Return | Cause::Unreachable))
            && let Some(path) = memory.find(Tag::from_bits(feedback.tag))
        {
            path.unanswered -= 1;
            *if is_whole { &mut path.whole } else { &mut path.trimmed } += 1;
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        check_paths(self.paths)?;
        Invalid::unless(self.penalty >= 1.0, "penalty", "1 or more", self.penalty)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;
    use netloom_units::Time;

    /// A flow with paths 10, 11, 12, …
    struct Flow {
        list: PathList,
        memory: Memory,
        random: Pcg64Mcg,
    }

    impl Flow {
        fn new(paths: u32) -> Self {
            let list = PathList { paths, ..PathList::default() };
            let mut memory = list.open();
            list.list(&mut memory, &(10..10 + paths).map(Tag::label).collect::<Vec<_>>());
            Flow { memory, list, random: Pcg64Mcg::seed_from_u64(7) }
        }

        fn send(&mut self) -> u32 {
            self.list.again(&mut self.memory, &mut self.random).unwrap().bits()
        }

        fn on_feedback(&mut self, tag: u32, cause: Cause) {
            let feedback = Feedback { tag, cause, ..ack(Time(0), Time(1)) };
            self.list.on_feedback(&mut self.memory, &mut (), &feedback);
        }

        /// Sends this many packets, each answered before the next; a path of `bad` says `cause`, or nothing. Returns the paths.
        fn run(&mut self, packets: usize, bad: u32, cause: Option<Cause>) -> Vec<u32> {
            let mut taken = Vec::new();
            for _ in 0..packets {
                let tag = self.send();
                match cause {
                    Some(cause) if tag == bad => self.on_feedback(tag, cause),
                    None if tag == bad => {}
                    _ => self.on_feedback(tag, Cause::Ack),
                }
                taken.push(tag);
            }
            taken
        }
    }

    #[test]
    fn each_pass_takes_every_path_once_in_another_order() {
        let mut flow = Flow::new(8);
        let passes: Vec<Vec<u32>> = (0..4).map(|_| flow.run(8, 0, None)).collect();
        let in_order: Vec<_> = (10..18).collect();
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, in_order);
        }
        assert!(passes[0] != in_order, "the first pass is in random order, too");
        assert!(passes.windows(2).all(|two| two[0] != two[1]));
    }

    #[test]
    fn a_path_that_trims_is_left_out_for_longer_and_longer() {
        let mut flow = Flow::new(4);
        let taken = flow.run(4 * 64, 12, Some(Cause::Trim));
        let uses: Vec<usize> = (0..taken.len()).filter(|&at| taken[at] == 12).collect();
        // Twice trimmed, it is out for 1 pass of three packets, then for 2, 4, 8, 16, 32: the seventh pair begins after 6 · 8 + 63 · 3 = 237.
        assert_eq!(uses.len(), 14, "{uses:?}");
        assert!((237..245).contains(&uses[12]) && (237..245).contains(&uses[13]));
        let gaps: Vec<usize> = uses
            .chunks(2)
            .map(|two| two[1])
            .zip(uses[2..].chunks(2))
            .map(|(last, next)| next[0] - last)
            .collect();
        assert!(gaps.windows(2).all(|pair| pair[1] > pair[0]), "{gaps:?}");
        assert!(flow.memory.find(Tag::label(10)).unwrap().penalty == 0);
    }

    #[test]
    fn a_path_that_says_nothing_is_left_out() {
        let mut flow = Flow::new(4);
        let taken = flow.run(4 * 64, 12, None);
        // u of four paths' packets unanswered on one: u > 2 · u / 4 + 1 from the third on. The seventh three begin after 6 · 12 + 63 · 3 = 261.
        assert_eq!(taken.iter().filter(|&&tag| tag == 12).count(), 18);
        // It answers again: once its time is over it is one of the others.
        flow.run(4 * 64, 0, None);
        let taken = flow.run(64, 0, None);
        // Sixteen passes, of which the first and the last may be cut.
        assert!((15..=17).contains(&taken.iter().filter(|&&tag| tag == 12).count()));
    }

    #[test]
    fn what_all_paths_suffer_is_no_penalty() {
        let mut flow = Flow::new(4);
        for cause in [Cause::Trim, Cause::Ack].repeat(50) {
            let tag = flow.send();
            flow.on_feedback(tag, cause);
        }
        assert!(flow.memory.paths.iter().all(|path| path.penalty == 0));
    }

    /// How the paths of a list fare: packets that came whole, that were trimmed, that are unanswered, passes to be left out, last penalty.
    type Fare = (u32, u32, i32, u32, u32);

    /// Begins a pass over such paths, 10, 11, 12, …: how they stand then, and which of them are in the pass.
    fn begin_pass(penalty: f64, paths: &[Fare]) -> (Vec<Fare>, Vec<u16>) {
        let path = |(tag, &(whole, trimmed, unanswered, out, penalty)): (u32, &Fare)| {
            let tag = Tag::label(tag);
            Path { tag, whole, trimmed, unanswered, out, penalty }
        };
        let mut memory = Memory { paths: (10..).zip(paths).map(path).collect(), pass: Vec::new() };
        memory.begin_pass(penalty, &mut Pcg64Mcg::seed_from_u64(7));
        let mut pass = memory.pass;
        pass.sort_unstable();
        let fare = |path: &Path| (path.whole, path.trimmed, path.unanswered, path.out, path.penalty);
        (memory.paths.iter().map(fare).collect(), pass)
    }

    #[test]
    fn a_path_is_left_out_whose_share_of_trimmed_packets_is_more_than_so_many_times_that_of_all() {
        // A quarter of all 40 is trimmed. Half of a path's is just twice that, and a little more than half is more.
        let (fares, pass) = begin_pass(2.0, &[(5, 5, 0, 0, 0), (5, 5, 0, 0, 0), (20, 0, 0, 0, 0)]);
        assert_eq!((fares, pass), (vec![(5, 5, 0, 0, 0), (5, 5, 0, 0, 0), (20, 0, 0, 0, 0)], vec![0, 1, 2]));
        let (fares, pass) = begin_pass(2.0, &[(4, 6, 0, 0, 0), (6, 4, 0, 0, 3), (20, 0, 0, 0, 5)]);
        // What it was is forgotten, and a path that fares well begins at the shortest penalty again.
        assert_eq!((fares, pass), (vec![(0, 0, 0, 1, 1), (6, 4, 0, 0, 0), (20, 0, 0, 0, 0)], vec![1, 2]));
        // 10 of 40 are 1/4, and 8 of 11 more than 2.5 times as much; 3 of 5 are not.
        let (fares, pass) = begin_pass(2.5, &[(3, 8, 0, 0, 0), (2, 2, 0, 0, 0), (25, 0, 0, 0, 0)]);
        assert_eq!((fares, pass), (vec![(0, 0, 0, 1, 1), (2, 2, 0, 0, 0), (25, 0, 0, 0, 0)], vec![1, 2]));
    }

    #[test]
    fn one_trimmed_packet_says_little() {
        let (fares, pass) = begin_pass(2.0, &[(0, 1, 0, 0, 4), (9, 0, 0, 0, 0)]);
        assert_eq!((fares, pass), (vec![(0, 1, 0, 0, 4), (9, 0, 0, 0, 0)], vec![0, 1]));
        let (fares, pass) = begin_pass(2.0, &[(0, 2, 0, 0, 4), (9, 0, 0, 0, 0)]);
        assert_eq!((fares, pass), (vec![(0, 0, 0, 8, 8), (9, 0, 0, 0, 0)], vec![1]));
    }

    #[test]
    fn a_path_is_left_out_of_whose_packets_more_than_so_many_times_the_mean_and_one_are_unanswered() {
        // The mean of four paths is 3: 7 are twice that and one, 8 are more. What has been answered twice counts as nothing.
        let (fares, pass) =
            begin_pass(2.0, &[(9, 0, 7, 0, 0), (9, 0, 5, 0, 0), (9, 0, 0, 0, 0), (9, 0, -6, 0, 0)]);
        assert_eq!(fares, [(9, 0, 7, 0, 0), (9, 0, 5, 0, 0), (9, 0, 0, 0, 0), (9, 0, -6, 0, 0)]);
        assert_eq!(pass, [0, 1, 2, 3]);
        let (fares, pass) =
            begin_pass(2.0, &[(9, 0, 8, 0, 0), (9, 0, 4, 0, 0), (9, 0, 0, 0, 0), (9, 0, -6, 0, 0)]);
        assert_eq!(fares, [(0, 0, 0, 1, 1), (9, 0, 4, 0, 0), (9, 0, 0, 0, 0), (9, 0, -6, 0, 0)]);
        assert_eq!(pass, [1, 2, 3]);
        // With 3 times: 9 and one of a mean of 3.
        let fares = |worst: i32, other: i32| {
            begin_pass(3.0, &[(9, 0, worst, 0, 0), (9, 0, other, 0, 0), (9, 0, 0, 0, 0), (9, 0, 0, 0, 0)]).1
        };
        assert_eq!((fares(10, 2), fares(11, 1)), (vec![0, 1, 2, 3], vec![1, 2, 3]));
    }

    #[test]
    fn a_path_that_is_left_out_comes_back_when_its_passes_are_over() {
        let left_out = |out| begin_pass(2.0, &[(0, 0, 0, out, 8), (9, 0, 0, 0, 0)]);
        assert_eq!(left_out(3), (vec![(0, 0, 0, 2, 8), (9, 0, 0, 0, 0)], vec![1]));
        assert_eq!(left_out(1), (vec![(0, 0, 0, 0, 8), (9, 0, 0, 0, 0)], vec![0, 1]));
        // Nothing has come on it yet: whether it fares well again is not known.
        assert_eq!(left_out(0), (vec![(0, 0, 0, 0, 8), (9, 0, 0, 0, 0)], vec![0, 1]));
        // Of 64 passes at most.
        let longest = |penalty| begin_pass(2.0, &[(0, 5, 0, 0, penalty), (90, 0, 0, 0, 0)]).0[0];
        assert_eq!([0, 1, 31, 33, 64].map(longest).map(|fare| fare.3), [1, 2, 62, 64, 64]);
    }

    #[test]
    fn where_all_are_left_out_all_are_taken() {
        let (fares, pass) = begin_pass(2.0, &[(0, 0, 0, 5, 8), (0, 0, 0, 4, 4)]);
        assert_eq!((fares, pass), (vec![(0, 0, 0, 4, 8), (0, 0, 0, 3, 4)], vec![0, 1]));
    }

    #[test]
    fn from_1024_answers_on_the_older_ones_count_half() {
        let (fares, _) = begin_pass(2.0, &[(500, 24, 0, 0, 0), (480, 20, 0, 0, 0)]);
        assert_eq!(fares, [(500, 24, 0, 0, 0), (480, 20, 0, 0, 0)], "1,024 in all");
        let (fares, _) = begin_pass(2.0, &[(500, 25, 0, 0, 0), (481, 20, 0, 0, 0)]);
        assert_eq!(fares, [(250, 12, 0, 0, 0), (240, 10, 0, 0, 0)]);
    }

    #[test]
    fn a_path_is_found_by_its_tag_wherever_it_stands() {
        let tags = [10, 11, 12, 14, 40];
        let list = PathList::default();
        let mut memory = list.open();
        list.list(&mut memory, &tags.map(Tag::label));
        for tag in tags {
            assert_eq!(memory.find(Tag::label(tag)).map(|path| path.tag), Some(Tag::label(tag)));
        }
        assert!([9, 13, 15, 41].iter().all(|&tag| memory.find(Tag::label(tag)).is_none()));
        assert!(list.open().find(Tag::label(10)).is_none());
        assert_eq!(
            (list.lists(), list.again(&mut list.open(), &mut Pcg64Mcg::seed_from_u64(7))),
            (Some(64), None)
        );
    }

    #[test]
    fn what_is_sent_is_unanswered_until_it_is_answered_whole_or_not() {
        let mut flow = Flow::new(1);
        let fare = |flow: &mut Flow| {
            let path = flow.memory.find(Tag::label(10)).unwrap();
            (path.whole, path.trimmed, path.unanswered)
        };
        (0..5).for_each(|_| assert_eq!(flow.send(), 10));
        assert_eq!(fare(&mut flow), (0, 0, 5));
        for (cause, expected) in [
            (Cause::Ack, (1, 0, 4)),
            (Cause::Trim, (1, 1, 3)),
            (Cause::Return, (1, 2, 2)),
            (Cause::Unreachable, (1, 3, 1)),
            (Cause::Timeout, (1, 3, 1)),
            (Cause::Nack, (1, 3, 1)),
        ] {
            flow.on_feedback(10, cause);
            assert_eq!(fare(&mut flow), expected, "{cause:?}");
        }
        flow.on_feedback(99, Cause::Ack);
        assert_eq!(fare(&mut flow), (1, 3, 1));
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: PathList| config.check().unwrap_err().to_string();
        assert!(
            refusal(PathList { paths: 0, ..PathList::default() }).starts_with("paths: expected 1 to 1024")
        );
        assert!(refusal(PathList { penalty: 0.5, ..PathList::default() }).starts_with("penalty"));
        assert!(refusal(PathList { penalty: f64::NAN, ..PathList::default() }).starts_with("penalty"));
    }
}
