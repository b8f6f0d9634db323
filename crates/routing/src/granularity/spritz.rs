//! Spritz: the sender knows its paths, short ones and detours, and keeps those that work.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use rand::{Rng, RngExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use super::listed::{check_paths, place_of};
use crate::header::Advice;
use crate::scheme::Routing;
use crate::tag::Tag;

/// A path out of the sender's own table of minimal paths and detours, which it draws by weights and of which it keeps those whose ACKs come back unmarked: Spritz (Bonato et al., arXiv
/// 2602.19567), for low-diameter networks. `policy = "scout"` keeps to one good path until it is marked, trimmed or lost; `"spray"` takes another one of a cache of good paths with
/// each packet. At the NIC; needs a fabric that marks, or one that trims.
///
/// The table is that of the selector `k-shortest`, whose paths differ in length; with other selectors all paths weigh the same (`bias = 0`). The abstract says what the two policies go by
/// (marks, trimming, timeouts) and that they cache; sizes, weights and times are not published as far as we know, so all of them are parameters, and their defaults are ours. A timeout does
/// not say of which path: `scout` then leaves its present one, and `spray` none.
///
/// `policy = "flicr-like"` is compared with them in that paper: a sender that re-routes flowlets. A path that was marked is left at the next pause of at least `gap`, or at once after a
/// loss; its rules are ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spritz {
    /// What is done with good paths.
    pub policy: Policy,
    /// Most paths in the table: a random selection where there are more.
    pub paths: u32,
    /// A path of h hops between switches is drawn in proportion to h to the power of −`bias`: the larger, the more minimal paths. 0: all alike.
    pub bias: f64,
    /// `scout` and `spray`: most good paths that a flow remembers.
    pub cache: u32,
    /// `spray`: share of packets that explore, which means that their path is drawn from the table. The others take the paths of the cache in turn; while it is
    /// empty all packets explore.
    pub explore: f64,
    /// For how long a path is neither drawn nor remembered after a packet on it was trimmed or met a cut link, or (not with `spray`, where a timeout does not say of
    /// which path) was lost.
    pub avoid: Time,
    /// `flicr-like`: a pause of a flow after which it may change its path in order.
    pub gap: Time,
}

/// What Spritz does with good paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Keeps to one.
    #[default]
    Scout,
    /// Takes another one for each packet.
    Spray,
    /// Keeps to one, and leaves it between flowlets.
    FlicrLike,
}

impl Default for Spritz {
    fn default() -> Self {
        Spritz {
            policy: Policy::Scout,
            paths: 64,
            bias: 2.0,
            cache: 8,
            explore: 0.0,
            avoid: Time::from_us(100),
            gap: Time::from_us(10),
        }
    }
}

/// Most good paths that a flow remembers.
const MOST: u32 = 1024;

/// What a flow remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The table: its paths, what they weigh, and until when each is avoided.
    paths: Vec<Tag>,
    weights: Vec<f64>,
    avoided: Vec<Time>,
    /// Good paths by their places, the one used the longest ago first.
    good: Vec<usize>,
    /// The path to which the flow keeps.
    kept: Option<usize>,
    /// `flicr-like`: the kept path was marked since it was taken.
    is_marked: bool,
    /// When the last packet left.
    last: Time,
    now: Time,
}

impl Memory {
    /// A path out of the table by weight; where all are avoided, as if none were.
    fn draw(&self, random: &mut impl Rng) -> Option<usize> {
        let is_free = |place: usize| self.avoided[place] <= self.now;
        let all = 0..self.paths.len();
        let any = all.clone().any(is_free);
        let weight = |place: usize| if is_free(place) || !any { self.weights[place] } else { 0.0 };
        let total: f64 = all.clone().map(weight).sum();
        let mut point = random.random::<f64>() * total;
        for place in all.clone() {
            point -= weight(place);
            if point < 0.0 {
                return Some(place);
            }
        }
        // What rounding has left over.
        all.rev().find(|&place| weight(place) > 0.0)
    }

    /// A path has turned out bad: it is forgotten, and avoided for that long.
    fn leave(&mut self, place: usize, avoid: Time) {
        self.good.retain(|&good| good != place);
        self.kept.take_if(|kept| *kept == place);
        self.avoided[place] = self.avoided[place].max(self.now.saturating_add(avoid));
    }
}

impl Spritz {
    /// The path of the next packet.
    fn next(&self, memory: &mut Memory, random: &mut impl Rng) -> Option<usize> {
        match self.policy {
            Policy::Scout => {
                if memory.kept.is_none() && !memory.good.is_empty() {
                    memory.kept = Some(memory.good.remove(0));
                }
                memory.kept.or_else(|| memory.draw(random))
            }
            Policy::Spray => {
                let explores = self.explore > 0.0 && random.random::<f64>() < self.explore;
                if explores || memory.good.is_empty() {
                    return memory.draw(random);
                }
                memory.good.rotate_left(1);
                memory.good.last().copied()
            }
            Policy::FlicrLike => {
                if memory.kept.is_none() {
                    memory.kept = memory.draw(random);
                    memory.is_marked = false;
                }
                memory.kept
            }
        }
    }

    /// An ACK came for a packet of this path.
    fn on_ack(&self, memory: &mut Memory, place: usize, marked: bool) {
        match (self.policy, marked) {
            (Policy::FlicrLike, _) => memory.is_marked |= marked && memory.kept == Some(place),
            (Policy::Scout | Policy::Spray, true) => memory.leave(place, Time::ZERO),
            // What was sent before it turned out bad says nothing of it now.
            (Policy::Scout | Policy::Spray, false) if memory.avoided[place] > memory.now => {}
            (Policy::Scout, false) if memory.kept.is_none() => {
                memory.kept = Some(place);
                memory.good.retain(|&good| good != place);
            }
            (Policy::Scout, false) if memory.kept == Some(place) => {}
            (Policy::Scout | Policy::Spray, false) => {
                if memory.good.len() < self.cache as usize && !memory.good.contains(&place) {
                    memory.good.push(place);
                }
            }
        }
    }
}

impl GranularityConfig for Spritz {
    type Run = Memory;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            // While it looks for a path, a scout's packets take several, too.
            ends: if self.policy == Policy::FlicrLike { Ends::InMidFlow } else { Ends::EveryPacket },
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

    /// Every packet asks for its path.
    fn continues(&self, memory: &mut Memory, now: Time, _: u32) -> bool {
        memory.now = now;
        if self.policy == Policy::FlicrLike && memory.is_marked && now.saturating_sub(memory.last) >= self.gap
        {
            memory.kept = None;
        }
        memory.last = now;
        false
    }

    fn lists(&self) -> Option<u32> {
        Some(self.paths)
    }

    fn list(&self, memory: &mut Memory, tags: &[Tag]) {
        memory.paths = tags.to_vec();
        memory.avoided = vec![Time::ZERO; tags.len()];
        memory.weights = vec![1.0; tags.len()];
    }

    fn weighs(&self) -> bool {
        self.bias > 0.0
    }

    fn weigh(&self, memory: &mut Memory, hops: &[u32]) {
        memory.weights = hops.iter().map(|&hops| weight(hops, self.bias)).collect();
    }

    fn again(&self, memory: &mut Memory, random: &mut impl Rng) -> Option<Tag> {
        let place = self.next(memory, random)?;
        Some(memory.paths[place])
    }

    fn on_feedback(&self, memory: &mut Memory, (): &mut (), feedback: &Feedback) -> Advice {
        memory.now = feedback.now;
        let tag = Tag::from_bits(feedback.tag);
        let place = place_of(tag, &memory.paths, |&path| path);
        match (feedback.cause, place) {
            (Cause::Ack, Some(place)) => self.on_ack(memory, place, feedback.marked),
            (Cause::Trim | Cause::Return | Cause::Unreachable, Some(place)) => {
                memory.leave(place, self.avoid)
            }
            // Of which path that was is not known: the present one is the best guess.
            (Cause::Loss | Cause::Timeout, _) => {
                let present = match self.policy {
                    Policy::Scout | Policy::FlicrLike => memory.kept,
                    Policy::Spray => None,
                };
                if let Some(place) = present {
                    memory.leave(place, self.avoid);
                }
            }
            _ => {}
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        check_paths(self.paths)?;
        let is_valid = self.bias >= 0.0 && self.bias <= MOST_BIAS;
        Invalid::unless(is_valid, "bias", format!("0 to {MOST_BIAS}"), self.bias)?;
        let is_valid = (1..=MOST).contains(&self.cache);
        Invalid::unless(is_valid, "cache", format!("1 to {MOST}"), self.cache)?;
        Invalid::unless((0.0..=1.0).contains(&self.explore), "explore", "0 to 1", self.explore)?;
        let default = Spritz::default();
        let explores = self.policy == Policy::Spray || self.explore == default.explore;
        Invalid::unless(explores, "explore", "0 unless policy is \"spray\"", self.explore)?;
        let caches = self.policy != Policy::FlicrLike || self.cache == default.cache;
        let expected =
            format!("{}, the default, with policy \"flicr-like\", which keeps to one path", default.cache);
        Invalid::unless(caches, "cache", expected, self.cache)?;
        let has_gaps = self.policy == Policy::FlicrLike || self.gap == default.gap;
        let expected = format!("{}, the default, unless policy is \"flicr-like\"", default.gap);
        Invalid::unless(has_gaps, "gap", expected, self.gap)
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let fits = self.bias == 0.0 || scheme.selector.facts().has_lengths();
        let expected = "\"k-shortest\", whose paths have different lengths, or granularity.bias = 0";
        Invalid::unless(fits, "selector", expected, format!("\"{}\"", scheme.selector_name()))
    }
}

/// Largest exponent: beyond it detours would weigh nothing at all.
const MOST_BIAS: f64 = 32.0;

/// The weight of a path of this many hops; the ends of a path of no hops are at the same switch. `powf` differs between processors, so whole powers are multiplied and values
/// between two of them are interpolated.
fn weight(hops: u32, bias: f64) -> f64 {
    let inverse = 1.0 / f64::from(hops.max(1));
    let mut weight = 1.0;
    let mut left = bias;
    while left >= 1.0 {
        weight *= inverse;
        left -= 1.0;
    }
    weight * (1.0 - left + left * inverse)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;
    use crate::{Granularity, Selector};

    /// A flow with paths 10, 11, 12, …: the first two of two hops, the others of four.
    struct Flow {
        kind: Spritz,
        memory: Memory,
        random: Pcg64Mcg,
        now: u64,
    }

    impl Flow {
        fn new(kind: Spritz, paths: u32) -> Self {
            let mut memory = kind.open();
            kind.list(&mut memory, &(10..10 + paths).map(Tag::path).collect::<Vec<_>>());
            kind.weigh(
                &mut memory,
                &(0..paths).map(|place| if place < 2 { 2 } else { 4 }).collect::<Vec<_>>(),
            );
            Flow { kind, memory, random: Pcg64Mcg::seed_from_u64(3), now: 0 }
        }

        fn of(policy: Policy) -> Self {
            Flow::new(Spritz { policy, ..Spritz::default() }, 6)
        }

        fn send(&mut self, packets: usize) -> Vec<u32> {
            let mut next = || {
                assert!(!self.kind.continues(&mut self.memory, Time(self.now), 4096));
                self.kind.again(&mut self.memory, &mut self.random).unwrap().bits()
            };
            (0..packets).map(|_| next()).collect()
        }

        fn learn(&mut self, tag: u32, cause: Cause, marked: bool) {
            let feedback = Feedback { tag, cause, marked, ..ack(Time(self.now), Time(self.now)) };
            self.kind.on_feedback(&mut self.memory, &mut (), &feedback);
        }
    }

    #[test]
    fn paths_are_drawn_in_proportion_to_their_weights() {
        assert_eq!(
            [weight(0, 2.0), weight(1, 3.0), weight(2, 2.0), weight(4, 2.0)],
            [1.0, 1.0, 0.25, 0.0625]
        );
        assert_eq!([weight(4, 0.0), weight(4, 1.5)], [1.0, 0.25 * 0.625]);
        // 2 · 1/4 + 4 · 1/16 = 3/4: a short path gets a third of the packets, a long one a twelfth.
        let mut flow = Flow::of(Policy::Spray);
        let taken = flow.send(24_000);
        for tag in 10..16 {
            let count = taken.iter().filter(|&&taken| taken == tag).count();
            let expected = if tag < 12 { 8000 } else { 2000 };
            // Six standard deviations.
            assert!(count.abs_diff(expected) < 440, "{tag}: {count}");
        }
    }

    #[test]
    fn a_scout_keeps_to_the_first_good_path_until_it_is_marked() {
        let mut flow = Flow::of(Policy::Scout);
        flow.learn(13, Cause::Ack, false);
        assert_eq!(flow.send(3), [13, 13, 13]);
        // What was sent before on other paths fills the cache.
        for tag in [11, 15, 11] {
            flow.learn(tag, Cause::Ack, false);
        }
        flow.learn(13, Cause::Ack, false);
        assert_eq!(flow.send(1), [13]);
        flow.learn(13, Cause::Ack, true);
        assert_eq!(flow.send(2), [11, 11]);
        flow.learn(11, Cause::Timeout, false);
        assert_eq!(flow.send(2), [15, 15]);
        // A mark of a path that it has left, or never took, changes nothing.
        flow.learn(13, Cause::Ack, true);
        flow.learn(99, Cause::Ack, true);
        assert_eq!(flow.send(1), [15]);
    }

    #[test]
    fn a_bad_path_is_avoided_for_a_while() {
        for (cause, policy) in [
            (Cause::Trim, Policy::Scout),
            (Cause::Return, Policy::Spray),
            (Cause::Unreachable, Policy::Scout),
        ] {
            let mut flow = Flow::of(policy);
            flow.learn(10, cause, false);
            flow.now = flow.kind.avoid.0 - 1;
            assert!(flow.send(200).iter().all(|&tag| tag != 10), "{cause:?}");
            flow.now += 1;
            assert!(flow.send(200).contains(&10), "{cause:?}");
        }
        // Where all are avoided, as if none were.
        let mut flow = Flow::of(Policy::Scout);
        (10..16).for_each(|tag| flow.learn(tag, Cause::Trim, false));
        assert!(flow.send(50).iter().any(|&tag| tag < 12));
    }

    #[test]
    fn a_spray_takes_the_cached_paths_in_turn() {
        let mut flow = Flow::new(Spritz { policy: Policy::Spray, cache: 3, ..Spritz::default() }, 6);
        for tag in [12, 10, 15, 11] {
            flow.learn(tag, Cause::Ack, false);
        }
        // The fourth finds the cache full.
        assert_eq!(flow.send(5), [12, 10, 15, 12, 10]);
        flow.learn(15, Cause::Ack, true);
        assert_eq!(flow.send(4), [12, 10, 12, 10]);
        // A timeout does not say of which path.
        flow.learn(0, Cause::Timeout, false);
        flow.learn(12, Cause::Trim, false);
        assert_eq!(flow.send(2), [10, 10]);
        // Nor is it remembered while it is avoided, whatever comes back of what was sent before.
        flow.learn(12, Cause::Ack, false);
        assert_eq!(flow.send(2), [10, 10]);
        flow.now = flow.kind.avoid.0;
        flow.send(1);
        flow.learn(12, Cause::Ack, false);
        assert_eq!(flow.send(2), [10, 12]);
        // The cache has room for more, and all packets may explore.
        let mut explores =
            Flow::new(Spritz { policy: Policy::Spray, cache: 3, explore: 0.5, ..Spritz::default() }, 6);
        explores.learn(15, Cause::Ack, false);
        let others = explores.send(1000).iter().filter(|&&tag| tag != 15).count();
        assert!((350..600).contains(&others), "{others}");
    }

    #[test]
    fn flowlets_leave_a_marked_path_in_a_pause_and_a_lost_one_at_once() {
        let mut flow = Flow::of(Policy::FlicrLike);
        flow.now = 1_000_000;
        let first = flow.send(5);
        assert!(first.iter().all(|&tag| tag == first[0]));
        flow.learn(first[0], Cause::Ack, true);
        flow.now += flow.kind.gap.0 - 1;
        assert_eq!(flow.send(1), first[..1], "no pause");
        let moved = (0..20).any(|_| {
            flow.now += flow.kind.gap.0;
            let next = flow.send(1)[0];
            flow.learn(next, Cause::Ack, true);
            next != first[0]
        });
        assert!(moved);
        // Unmarked it stays, whatever the pause.
        let mut flow = Flow::of(Policy::FlicrLike);
        let first = flow.send(1)[0];
        flow.now = 1_000_000_000;
        assert_eq!(flow.send(1), [first]);
        flow.learn(0, Cause::Timeout, false);
        assert_ne!(flow.send(1), [first], "it is avoided");
    }

    #[test]
    fn weights_need_paths_of_different_lengths() {
        let mut scheme = crate::preset::find("spritz-spray").unwrap().routing();
        assert_eq!(scheme.check(), Ok(()));
        scheme.selector = Selector::Random(Default::default());
        let error = scheme.check().unwrap_err();
        assert_eq!((&*error.field, error.found), ("selector", "\"random\"".to_owned()));
        scheme.granularity = Granularity::Spritz(Spritz { bias: 0.0, ..Spritz::default() });
        assert_eq!(scheme.check(), Ok(()));
    }

    #[test]
    fn values_without_meaning_are_refused() {
        let refused = |kind: Spritz| kind.check().map_err(|error| error.field);
        let kind = Spritz::default;
        assert_eq!(refused(kind()), Ok(()));
        assert_eq!(refused(Spritz { paths: 0, ..kind() }), Err("paths".into()));
        assert_eq!(refused(Spritz { bias: -1.0, ..kind() }), Err("bias".into()));
        assert_eq!(refused(Spritz { bias: f64::NAN, ..kind() }), Err("bias".into()));
        assert_eq!(refused(Spritz { cache: 0, ..kind() }), Err("cache".into()));
        assert_eq!(refused(Spritz { cache: 9, policy: Policy::FlicrLike, ..kind() }), Err("cache".into()));
        assert_eq!(refused(Spritz { explore: 0.5, ..kind() }), Err("explore".into()));
        assert_eq!(refused(Spritz { gap: Time(5), ..kind() }), Err("gap".into()));
        assert_eq!(refused(Spritz { gap: Time(5), policy: Policy::FlicrLike, ..kind() }), Ok(()));
    }
}
