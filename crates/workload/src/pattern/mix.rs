//! Several workloads in one run.

use netloom_units::narrow;
use std::borrow::Cow;
use std::collections::BTreeSet;

use netloom_topology::HostId;
use netloom_units::kind::{self, Beside, Kind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize};

use crate::plan::{HostWork, JobPlan, Overlap, Plan, Setting, build};
use crate::random::Work;
use crate::{Options, Pattern, PlanContext, WorkloadError};

/// Several workloads at once, each with its own kind, fields, options and name. The name becomes the part's group, by which its flows are
/// reported apart; a closed loop goes on when a message of its own part completes. The parts draw from different random streams, except
/// that a random placement puts rank r on the same host in all of them.
///
/// ```toml
/// [workload]
/// kind = "mix"
/// parts = [
///   { kind = "all-to-all", ranks = 16, class = 1, name = "shuffle" },
///   { kind = "bernoulli", load = 0.2, until = "5ms", name = "background" },
/// ]
/// ```
///
/// Two parts of one kind need names. Parts may be programs, several of them too, on the same hosts or beside open-loop traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The workloads, each a table such as `{ kind = "incast", class = 3, name = "storage" }`: a `kind` with its fields, the
    /// options of every workload, and a `name`, by default that of the kind. A part with groups of its own gives `NAME/GROUP`,
    /// without a name `GROUP`.
    pub parts: Vec<Part>,
}

/// One of the workloads of a [`Mix`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// What its group is called; by default as its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which host sends to which, and by what rule.
    #[serde(flatten)]
    pub pattern: Pattern,
    /// Participants, placement, jitter, traffic class.
    #[serde(flatten)]
    pub options: Options,
}

impl Mix {
    pub(crate) fn highest_class(&self) -> u8 {
        let class = |part: &Part| match &part.pattern {
            Pattern::Mix(mix) => mix.highest_class(),
            _ => part.options.class,
        };
        self.parts.iter().map(class).max().unwrap_or(0)
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        refuse_options(setting.options)?;
        if self.parts.is_empty() {
            return Err(WorkloadError::parameter("parts", "at least one workload", "none"));
        }
        let mut works: Vec<Vec<(u16, HostWork)>> = vec![Vec::new(); setting.endpoints.count() as usize];
        let mut groups: Vec<String> = Vec::new();
        let (mut cuts, mut overlaps, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut jobs, mut outline) = (Vec::new(), Vec::new());
        let mut occupied: Vec<BTreeSet<HostId>> = Vec::new();
        let mut total_messages = Some(0u64);
        let mut units = Plan::of_hosts(Vec::new(), None);
        let count = narrow::<u32>(self.parts.len());
        for (i, part) in (0..).zip(&self.parts) {
            let mut plan = part.build(setting, i).map_err(|error| error.within(&format!("parts.{i}")))?;
            if plan.analytical.is_some() {
                let field = format!("parts.{i}.network");
                let expected =
                    "\"packets\" beside other traffic, of which an analytical network knows nothing";
                return Err(WorkloadError::parameter(field, expected, "an analytical one"));
            }
            for program in plan.hosts.iter().flat_map(HostWork::programs) {
                if program.numbers() * u64::from(count) > u64::from(u32::MAX) {
                    let expected = "programs with fewer messages and operations per host, or fewer parts";
                    return Err(WorkloadError::parameter("parts", expected, count));
                }
            }
            plan.hosts.iter_mut().for_each(|work| work.share_numbers(i, count));
            let first = narrow::<u16>(groups.len().min(usize::from(u16::MAX)));
            for name in part.groups(&plan.groups) {
                if name.is_empty() || groups.contains(&name) {
                    let expected = "a name that no other part has";
                    return Err(WorkloadError::parameter(
                        format!("parts.{i}.name"),
                        expected,
                        format!("`{name}`"),
                    ));
                }
                groups.push(name);
            }
            if groups.len() > 1 << u16::BITS {
                return Err(WorkloadError::parameter("parts", "at most 65536 groups", groups.len()));
            }
            cuts.append(&mut plan.cuts);
            if !plan.outline.is_empty() {
                outline.push(format!("parts.{i}"));
                outline.append(&mut plan.outline);
            }
            plan.hosts.iter_mut().for_each(|work| work.shift_jobs(narrow::<u16>(jobs.len())));
            jobs.extend(plan.jobs.drain(..).map(|job| JobPlan {
                name: part.name_of_job(&job.name),
                groups: first.saturating_add(job.groups.start)..first.saturating_add(job.groups.end),
                ..job
            }));
            notes.append(&mut plan.notes);
            let within = |part: &String| format!("parts.{i}.{part}");
            overlaps.extend(
                plan.overlaps
                    .drain(..)
                    .map(|inner| Overlap { parts: inner.parts.each_ref().map(within), ..inner }),
            );
            let hosts = part.occupies(setting, &plan)?;
            for (earlier, of_earlier) in occupied.iter().enumerate() {
                let shared = of_earlier.intersection(&hosts).count();
                if shared > 0 {
                    let parts = [format!("parts.{earlier}"), format!("parts.{i}")];
                    overlaps
                        .push(Overlap { parts, shared: format!("{shared} {}", setting.endpoints.word()) });
                }
            }
            occupied.push(hosts);
            units.share_units(plan.units).map_err(|error| error.within(&format!("parts.{i}")))?;
            works.resize(works.len().max(plan.hosts.len()), Vec::new());
            for (of_host, work) in works.iter_mut().zip(plan.hosts) {
                of_host.push((first, work));
            }
            total_messages = total_messages.zip(plan.total_messages).and_then(|(sum, n)| sum.checked_add(n));
        }
        let hosts = works.into_iter().map(HostWork::merge).collect();
        let plan = Plan::of_hosts(hosts, None);
        let units = units.units;
        Ok(Plan { total_messages, groups, cuts, overlaps, jobs, outline, notes, units, ..plan })
    }
}

impl Part {
    /// The hosts that this part has for its ranks: those of a program, and those of a pattern among some of the network. Traffic between all
    /// hosts is a background for others.
    fn occupies(&self, setting: &Setting, plan: &Plan) -> Result<BTreeSet<HostId>, WorkloadError> {
        let hosts = (0..setting.endpoints.count()).zip(&plan.hosts);
        let of_programs: BTreeSet<HostId> =
            hosts.filter(|(_, work)| work.is_program()).map(|(host, _)| host).collect();
        if !of_programs.is_empty() || self.options.ranks.is_none() {
            return Ok(of_programs);
        }
        let placed = self.options.place(&setting.endpoints, setting.placement_seed)?;
        Ok(placed.into_iter().collect())
    }

    fn build(&self, setting: &Setting, index: u32) -> Result<Plan, WorkloadError> {
        let seed = Work::Part.seed(setting.context.seed, index);
        let context = PlanContext { seed, ..setting.context.clone() };
        build(&self.pattern, &self.options, setting.network, &context, setting.placement_seed)
    }

    /// What a job of its plan is called in that of the mix.
    fn name_of_job(&self, own: &str) -> String {
        match (&self.name, &self.pattern) {
            (None, _) => own.to_owned(),
            (Some(name), Pattern::Mix(_)) => format!("{name}/{own}"),
            (Some(name), _) => name.clone(),
        }
    }

    /// What the groups of its plan are called in that of the mix.
    fn groups(&self, own: &[String]) -> Vec<String> {
        match (&self.name, own) {
            (None, [_]) => vec![self.pattern.name().to_owned()],
            (Some(name), [_]) => vec![name.clone()],
            (None, own) => own.to_vec(),
            (Some(name), own) => own.iter().map(|group| format!("{name}/{group}")).collect(),
        }
    }
}

/// An option beside the parts would hold for none of them.
fn refuse_options(options: &Options) -> Result<(), WorkloadError> {
    let default = Options::default();
    let set = [
        ("ranks", options.ranks != default.ranks),
        ("placement", options.placement != default.placement),
        ("start_jitter", options.start_jitter != default.start_jitter),
        ("class", options.class != default.class),
    ];
    match set.into_iter().find(|&(_, is_set)| is_set) {
        Some((field, _)) => Err(WorkloadError::parameter(
            field,
            "it in the parts of a mix, each of which has its own",
            "it beside them",
        )),
        None => Ok(()),
    }
}

/// A kind, its fields, the options and the name share one table.
impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default)]
        struct BesidePattern {
            name: Option<String>,
            options: Options,
        }
        impl Beside for BesidePattern {
            const FIELDS: &'static [&'static str] = &["name", "ranks", "placement", "start_jitter", "class"];
            fn read<'de, A: MapAccess<'de>>(
                &mut self,
                field: &'static str,
                map: &mut A,
            ) -> Result<(), A::Error> {
                match field {
                    "name" => self.name = Some(map.next_value()?),
                    option => self.options.read(option, map)?,
                }
                Ok(())
            }
        }
        let mut beside = BesidePattern::default();
        let pattern = kind::deserialize_beside(deserializer, &mut beside)?;
        Ok(Part { name: beside.name, pattern, options: beside.options })
    }
}

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        "Part".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = json_schema!({ "properties": { "name": generator.subschema_for::<String>() } });
        let options = Options::json_schema(generator);
        kind::schema_beside::<Pattern>(generator, &[name, options])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::program::testing::{Event, execute};
    use crate::{
        Algorithm, Bernoulli, Collective, Hotspot, Incast, Permutation, Placement, Uniform, Workload,
    };
    use netloom_units::{Bytes, Time};

    fn part(name: &str, pattern: Pattern) -> Part {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Part { name, pattern, options: Options::default() }
    }

    fn mix(parts: Vec<Part>) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::Mix(Mix { parts })), &network(16, 4), 5)
    }

    fn uniform(bytes: u64, messages: u64) -> Pattern {
        let (size, messages_per_host) = (Bytes(bytes).into(), Some(messages));
        Pattern::Uniform(Uniform { size, messages_per_host, ..Default::default() })
    }

    fn bernoulli() -> Pattern {
        Pattern::Bernoulli(Bernoulli { until: Time::from_us(50), ..Default::default() })
    }

    #[test]
    fn a_closed_loop_goes_on_when_a_message_of_its_own_completes() {
        let mut plan = mix(vec![
            part("frames", bernoulli()),
            part("small", uniform(10, 3)),
            part("large", uniform(10_000, 2)),
        ])
        .unwrap();
        assert_eq!(plan.groups, ["frames", "small", "large"]);
        let host = &mut plan.hosts[3];
        let now = Time::from_us(9);
        assert_eq!(host.next_closed(now, 0), None);
        for (group, bytes, more) in [(2, 10_000, 1), (1, 10, 2)] {
            for _ in 0..more {
                let next = host.next_closed(now, group).unwrap();
                assert_eq!((next.group, next.bytes, next.start), (group, Bytes(bytes), now));
            }
        }
        // The first message of each is still to come by the clock.
        let timed: Vec<_> = std::iter::from_fn(|| host.next_timed()).filter(|m| m.group > 0).collect();
        assert_eq!(
            timed.iter().map(|m| (m.group, m.start)).collect::<Vec<_>>(),
            [(1, Time::ZERO), (2, Time::ZERO)]
        );
        assert_eq!((host.next_closed(now, 1), host.next_closed(now, 2)), (None, None));
    }

    #[test]
    fn parts_with_ranks_on_the_same_hosts_are_told() {
        let overlaps = |parts: Vec<Part>| -> Vec<(String, String)> {
            let plan = mix(parts).unwrap();
            plan.overlaps.into_iter().map(|it| (it.parts.join("+"), it.shared)).collect()
        };
        let ranked = |mut part: Part, ranks, placement| {
            part.options = Options { ranks, placement, ..Options::default() };
            part
        };
        let program = |name| part(name, Pattern::Collective(Collective::default()));
        let both = |a: &str, hosts: &str| vec![(a.to_owned(), hosts.to_owned())];
        for placement in [Placement::Linear, Placement::Random] {
            let two = ["a", "b"].map(|name| ranked(program(name), Some(8), placement));
            assert_eq!(overlaps(two.to_vec()), both("parts.0+parts.1", "8 hosts"), "{placement:?}");
        }
        assert_eq!(
            overlaps(vec![
                part("all", bernoulli()),
                program("a"),
                ranked(part("some", uniform(10, 1)), Some(4), Placement::Linear)
            ]),
            both("parts.1+parts.2", "4 hosts")
        );
        let inner = Mix { parts: ["a", "b"].map(program).to_vec() };
        assert_eq!(
            overlaps(vec![part("all", bernoulli()), part("x", Pattern::Mix(inner))]),
            both("parts.1.parts.0+parts.1.parts.1", "16 hosts")
        );
        // Background traffic shares hosts with all others.
        assert!(
            overlaps(vec![part("all", bernoulli()), program("a"), part("more", uniform(10, 1))]).is_empty()
        );
    }

    #[test]
    fn the_parts_are_told_apart_by_class_and_group() {
        let mut storage = part("storage", Pattern::Incast(Incast { receiver: 2, ..Default::default() }));
        storage.options.class = 5;
        let mut plan =
            mix(vec![part("", Pattern::Hotspot(Hotspot::default())), storage, part("web", bernoulli())])
                .unwrap();
        assert_eq!(plan.groups, ["hot", "cold", "victim", "storage", "web"]);
        let sent = timed(&mut plan);
        assert!(sent.is_sorted_by_key(|&(src, message)| (src, message.start)));
        for group in [0, 2, 3, 4] {
            assert!(sent.iter().any(|(_, message)| message.group == group), "{group}");
        }
        for (src, message) in sent {
            assert_eq!(message.class == 5, message.group == 3);
            assert_eq!(message.stream, message.group != 3);
            assert!(message.group != 3 || (message.dst == 2 && src != 2));
        }
    }

    #[test]
    fn programs_run_side_by_side() {
        let collective = |algorithm, ranks, class, name: &str| {
            let collective = Collective { algorithm, repeat: 3, compute: Time(5), ..Default::default() };
            let options =
                Options { ranks: Some(ranks), class, start_jitter: Time(2000), ..Default::default() };
            Part { name: Some(name.to_owned()), pattern: Pattern::Collective(collective), options }
        };
        let inner = Mix {
            parts: vec![
                collective(Algorithm::DisseminationBarrier, 8, 3, "c"),
                collective(Algorithm::PairwiseAllToAll, 9, 4, "d"),
            ],
        };
        let mut plan = mix(vec![
            part("frames", bernoulli()),
            collective(Algorithm::RingAllreduce, 4, 1, "a"),
            collective(Algorithm::BruckAllToAll, 7, 2, "b"),
            part("inner", Pattern::Mix(inner)),
        ])
        .unwrap();
        assert_eq!(plan.groups, ["frames", "a", "b", "inner/c", "inner/d"]);
        let (mut sent, mut numbers) = ([0; 5], std::collections::BTreeSet::new());
        execute(&mut plan, 3, Time(1000), |_, _, event| {
            if let Event::Sent { src, number, class, group, .. } = event {
                assert_eq!(u16::from(class), group);
                assert!(numbers.insert((src, number)));
                sent[usize::from(group)] += 1;
            }
        });
        assert_eq!(sent, [0, 3 * 4 * 6, 3 * 7 * 3, 3 * 8 * 3, 3 * 9 * 8]);
        assert!(plan.hosts.iter().all(|host| host.is_finished()));
        assert!(plan.hosts[8].is_program() && !plan.hosts[9].is_program());
    }

    #[test]
    fn a_named_part_gives_its_groups_its_name() {
        let hotspot = || Pattern::Hotspot(Hotspot::default());
        let plan = mix(vec![part("a", hotspot()), part("b", hotspot()), part("", bernoulli())]).unwrap();
        assert_eq!(plan.groups, ["a/hot", "a/cold", "a/victim", "b/hot", "b/cold", "b/victim", "bernoulli"]);
    }

    #[test]
    fn parts_of_one_kind_draw_apart() {
        let mut both = mix(vec![part("a", bernoulli()), part("b", bernoulli())]).unwrap();
        let both = timed(&mut both);
        let of = |group| {
            both.iter()
                .filter(|(_, m)| m.group == group)
                .map(|(src, m)| (*src, m.dst, m.start))
                .collect::<Vec<_>>()
        };
        assert_ne!(of(0), of(1));
    }

    #[test]
    fn hosts_may_be_asked_in_any_order() {
        let build = || {
            let hotspot = Hotspot { from: Time::ZERO, duration: Time::from_ms(1), ..Default::default() };
            mix(vec![part("", Pattern::Hotspot(hotspot)), part("web", bernoulli())]).unwrap()
        };
        let (forth, mut plan) = (timed(&mut build()), build());
        let mut back: Vec<_> = (0..16u32)
            .rev()
            .map(|host| {
                std::iter::from_fn(|| Some((host, plan.hosts[host as usize].next_timed()?))).collect()
            })
            .collect::<Vec<Vec<_>>>();
        back.reverse();
        assert_eq!(forth, back.concat());
    }

    #[test]
    fn ranks_sit_on_the_same_hosts_in_all_parts() {
        let random = |receiver| {
            let mut part = part(
                if receiver == 0 { "a" } else { "b" },
                Pattern::Incast(Incast { receiver, ..Default::default() }),
            );
            part.options.placement = Placement::Random;
            part.options.ranks = Some(2);
            part
        };
        let sent = timed(&mut mix(vec![random(0), random(1)]).unwrap());
        let [(a, to_b), (b, to_a)] = sent[..] else { panic!("{sent:?}") };
        assert_eq!((to_b.dst, to_a.dst), (b, a));
    }

    #[test]
    fn the_number_of_messages_is_known_if_that_of_every_part_is() {
        assert_eq!(
            mix(vec![part("a", uniform(1, 3)), part("b", uniform(1, 4))]).unwrap().total_messages,
            Some(112)
        );
        assert_eq!(mix(vec![part("a", uniform(1, 3)), part("b", bernoulli())]).unwrap().total_messages, None);
    }

    #[test]
    fn mixes_that_make_no_sense_are_refused() {
        let bad = Pattern::Bernoulli(Bernoulli { load: 3.0, ..Default::default() });
        let permutation = || Pattern::Permutation(Permutation::default());
        for (parts, expected) in [
            (vec![], "parts: expected at least one"),
            (vec![part("a", bernoulli()), part("b", bad)], "parts.1.load: expected a number above 0"),
            (
                vec![part("a", bernoulli()), part("a", permutation())],
                "parts.1.name: expected a name that no other",
            ),
            (vec![part("", permutation()), part("", permutation())], "parts.1.name: "),
        ] {
            let error = mix(parts).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let mut workload = Workload::new(Pattern::Mix(Mix { parts: vec![part("a", bernoulli())] }));
        workload.options.class = 2;
        let error = plan(workload, &network(16, 4), 1).unwrap_err().to_string();
        assert!(error.starts_with("class: expected it in the parts"), "{error}");
    }

    #[test]
    fn a_part_is_one_table() {
        let text = "[[parts]]\nname = \"x\"\nkind = \"incast\"\nsenders = 3\nclass = 2\n[[parts]]\nkind = \"poisson\"\n";
        let mix: Mix = toml::from_str(text).unwrap();
        let incast = Pattern::Incast(Incast { senders: Some(3), ..Default::default() });
        let options = Options { class: 2, ..Default::default() };
        assert_eq!(mix.parts[0], Part { name: Some("x".to_owned()), pattern: incast, options });
        assert_eq!((&mix.parts[1].name, mix.parts[1].pattern.name()), (&None, "poisson"));
        for (wrong, expected) in [
            ("[[parts]]\nkind = \"incats\"\n", "incats"),
            ("[[parts]]\nkind = \"incast\"\nsender = 2\n", "unknown field `sender`"),
            ("[[parts]]\nname = \"x\"\n", "`kind` is missing; expected one of permutation, "),
            ("[[parts]]\nkind = \"incast\"\nclass = \"x\"\n", "u8"),
        ] {
            let error = toml::from_str::<Mix>(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
