//! NDP's path list: packets take each of a flow's paths once per pass, in an order drawn anew for each pass, and leave out those on which they fare
//! badly.

use netloom_transport::{Cause, Feedback};
use netloom_units::Invalid;
use rand::Rng;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::tag::Tag;

/// A path per packet: each of a list once, in a new random order for each pass (Handley et al., NDP, SIGCOMM'17, sec. 3.1; strategy `perm`
/// of csg-htsim, `sim/datacenter/main_ndp.cpp`). The list holds the paths between the flow's two ends, each once: the labels of a tree that
/// lead over different links, the layers that connect the two, their k shortest paths. Entropy values differ by their numbers alone, as a
/// NIC does not know where switches' hashes send them. A list is made when its flow begins. After a pass those paths are left out for the
/// next one of whose packets a larger share was trimmed than `penalty` times that of all paths, or of which more are unanswered than that
/// many times the mean and one (a link is slow, or cut). Each further penalty of the same path lasts twice as long as the one before, until
/// it fares no worse than the others. At the NIC.
///
/// The paper says that such outliers are left out temporarily, not how far out they have to be, nor how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathList {
    /// Most paths in the list: a random selection where there are more between the flow's two ends, all of them where there are fewer.
    pub paths: u32,
    /// How many times worse than the mean a path fares that is left out.
    pub penalty: f64,
}

impl Default for PathList {
    fn default() -> Self {
        PathList { paths: 64, penalty: 2.0 }
    }
}

/// Most paths of a list.
const MOST: u32 = 1024;

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
    /// The place of a path in the list. In it they stand by their numbers, mostly one after the other.
    fn find(&mut self, tag: Tag) -> Option<&mut Path> {
        let guess = tag.bits().wrapping_sub(self.paths.first()?.tag.bits()) as usize;
        let place = match self.paths.get(guess) {
            Some(path) if path.tag == tag => guess,
            _ => self.paths.iter().position(|path| path.tag == tag)?,
        };
        Some(&mut self.paths[place])
    }

    /// Looks how the paths have fared, and begins a pass over those that are not left out.
    fn begin_pass(&mut self, penalty: f64, random: &mut impl Rng) {
        let count = self.paths.len() as f64;
        let sum = |of: fn(&Path) -> f64| self.paths.iter().map(of).sum::<f64>();
        let (trimmed, whole) = (sum(|path| f64::from(path.trimmed)), sum(|path| f64::from(path.whole)));
        let share = trimmed / (trimmed + whole).max(1.0);
        let unanswered = sum(|path| f64::from(path.unanswered.max(0))) / count;
        let is_full = trimmed + whole > f64::from(MANY);
        for path in &mut self.paths {
            if path.out > 0 {
                path.out -= 1;
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
            } else if path.whole > 0 {
                path.penalty = 0;
            }
            if is_full {
                (path.trimmed, path.whole) = (path.trimmed / 2, path.whole / 2);
            }
        }
        // Not all are worse than the mean of all, but those that are not may be left out from before.
        let all_out = self.paths.iter().all(|path| path.out > 0);
        let is_in = |path: &Path| path.out == 0 || all_out;
        self.pass.extend((0u16..).zip(&self.paths).filter(|&(_, path)| is_in(path)).map(|(place, _)| place));
        self.pass.shuffle(random);
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
        memory.pass.pop().map(|place| memory.paths[usize::from(place)].tag)
    }

    fn takes(&self, memory: &mut Memory, tag: Tag) {
        if let Some(path) = memory.find(tag) {
            path.unanswered += 1;
        }
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
        let fits = (1..=MOST).contains(&self.paths);
        Invalid::unless(fits, "paths", format!("1 to {MOST}"), self.paths)?;
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
            let tag = self.list.again(&mut self.memory, &mut self.random).unwrap();
            self.list.takes(&mut self.memory, tag);
            tag.bits()
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
