//! Schedules in GOAL.

mod binary;
mod rank;
mod text;

use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use netloom_units::memory::Meter;
use netloom_units::{Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::rank::{Block, Schedule};
use self::text::{Statements, is_binary, open};
use crate::WorkloadError;
use crate::plan::{Plan, Setting};
use crate::program::{CheckedRank, Program, RankBuilder, check};

/// A schedule in GOAL (Hoefler, Siebert, Lumsdaine, ICPP 2009; as LogGOPSim and ATLAHS read it). Either the binary form that LogGOPSim's
/// `txt2bin` writes, recognised by its first bytes, or the text that it is made from, plain or compressed by gzip: `num_ranks N`, then for
/// every rank `rank R { … }` with one statement per line, `[LABEL:] send SIZEb to RANK`, `[LABEL:] recv SIZEb from RANK`, `[LABEL:] calc
/// TIME`, `LABEL requires LABEL` (starts after it has finished) or `LABEL irequires LABEL` (after it has started). Messages may have a `tag
/// T` (0 if not given); a receive from -1 or with tag -1 takes any. Calculations occupy their `cpu C`, one at a time. Messages leave by `nic N` if `nics` says so.
/// Messages match as in MPI. Refused are schedules that could never end. A file is read rank by rank; labels are kept with `measure.operations` only, whose table shows them (the binary form has none).
///
/// A program, as `collective` describes it. Refused before the run: dependencies in a cycle, messages that are never received, ranks that
/// wait for one another for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The file; relative names start from the scenario's folder.
    pub file: PathBuf,
    /// How long `calc 1` takes; the simulators that read GOAL take nanoseconds.
    #[serde(default = "nanosecond")]
    pub time_unit: Time,
    /// CPU time of every send and receive, on the operation's `cpu`: LogGP's o. The other parameters of LogGP are the network. If not given, that of the `preset`, else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Time>,
    /// The parameters that ATLAHS passes to LogGOPSim for its traces, as far as they concern hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<GoalPreset>,
    /// Who chooses the NIC of a message, where servers have several.
    #[serde(default)]
    pub nics: NicChoice,
}

/// Parameters with which ATLAHS (Shen et al., SC 2025) runs LogGOPSim (`scripts/configs/lgs_ai_config.yaml` and `lgs_hpc_config.yaml` at 8837294). The latency L and the time per byte G are the network: a
/// `crossbar` whose links each have half of L, at 1/G. `-like`, as the gap between messages (g) is that of packets, and nothing waits for the receiver (S).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GoalPreset {
    /// Training: o = 200 ns. Its network: L = 3.7 us, G = 0.04 ns per byte (200 Gbit/s), g = 5 ns.
    AtlahsAiLike,
    /// HPC: o = 8 us. Its network: L = 3 us, G = 0.18 ns per byte (44.4 Gbit/s); messages of more than S = 256,000 bytes wait for their receive there.
    AtlahsHpcLike,
}

impl GoalPreset {
    fn overhead(self) -> Time {
        match self {
            GoalPreset::AtlahsAiLike => Time::from_ns(200),
            GoalPreset::AtlahsHpcLike => Time::from_ns(8000),
        }
    }
}

/// Who chooses the NIC of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicChoice {
    /// The servers, by `servers.nic_selection`; `nic` is read and not used.
    #[default]
    Servers,
    /// The schedule: a message leaves by port `nic` of its server, and arrives at the same port of the other one.
    Schedule,
}

fn nanosecond() -> Time {
    Time::from_ns(1)
}

/// How operations are read.
#[derive(Clone, Copy, Debug)]
struct How {
    time_unit: Time,
    /// How many NICs a rank has, where the schedule chooses among them.
    nics: Option<u32>,
    keeps_labels: bool,
}

impl How {
    /// Lets a send leave by its NIC, if the schedule chooses it.
    fn put_on_nic(self, builder: &mut RankBuilder, op: u32, nic: u32) -> Result<(), String> {
        match (self.nics, u8::try_from(nic)) {
            (None, _) => {}
            (Some(count), Ok(small)) if nic < count => builder.on_nic(op, small),
            (Some(count), _) => {
                let last = count.min(1 << u8::BITS) - 1;
                return Err(format!("nic: expected one of the rank's NICs, 0 to {last}, found {nic}"));
            }
        }
        Ok(())
    }
}

impl Goal {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let (nics, keeps_labels) = (self.count_nics(setting)?, setting.context.keeps_labels);
        let how = How { time_unit: self.time_unit, nics, keeps_labels };
        let program = match is_binary(&file)? {
            true => self.read_binary(&file, setting.ranks(), how)?,
            false => self.read(open(&file)?, &file, setting.ranks(), how)?,
        };
        Ok(setting.run(if how.nics.is_some() { program.with_given_nics() } else { program }))
    }

    /// How many NICs a rank has, where the schedule chooses among them.
    fn count_nics(&self, setting: &Setting) -> Result<Option<u32>, WorkloadError> {
        let expected = match (self.nics, setting.endpoints.rails) {
            (NicChoice::Servers, _) => return Ok(None),
            (NicChoice::Schedule, Some(rails)) if !rails.has_scale_up() => {
                return Ok(Some(narrow::<u32>(rails.outside().len())));
            }
            (NicChoice::Schedule, Some(_)) => {
                "\"servers\": with a scale-up network messages inside a server leave by that"
            }
            (NicChoice::Schedule, None) => "\"servers\", as a host without `[servers]` has one NIC",
        };
        Err(WorkloadError::parameter("nics", expected, "\"schedule\""))
    }

    fn read_binary(&self, file: &Path, most: u32, how: How) -> Result<Program, WorkloadError> {
        let unreadable = |source| WorkloadError::Read { file: file.to_owned(), source };
        let mut open = File::open(file).map_err(unreadable)?;
        let length = open.metadata().map_err(unreadable)?.len();
        let ranks = binary::read(&mut open, length, most, how);
        self.program(ranks.map_err(|problem| WorkloadError::file(file, problem))?, file)
    }

    /// Reads a schedule of at most `most` ranks; `file` is its name in errors.
    fn read(&self, reader: impl BufRead, file: &Path, most: u32, how: How) -> Result<Program, WorkloadError> {
        let mut statements = Statements::new(reader, file);
        let count = ranks(&mut statements, file, most)?;
        let mut ranks: Vec<_> = (0..count).map(|_| None).collect();
        let mut memory = Meter::default();
        while statements.advance()? {
            let block = Block::read(&mut statements, Schedule { ranks: count, how }, &mut memory)?;
            let rank = &mut ranks[block.rank as usize];
            if rank.is_some() {
                return Err(
                    statements.fail(format!("expected one block of rank {}, found a second", block.rank))
                );
            }
            *rank = Some(block.build(file)?);
        }
        if let Some(rank) = ranks.iter().position(Option::is_none) {
            let problem = format!("expected blocks of {count} ranks, but there is none of rank {rank}");
            return Err(WorkloadError::file(file, problem));
        }
        self.program(ranks.into_iter().flatten().collect(), file)
    }

    fn program(&self, ranks: Vec<CheckedRank>, file: &Path) -> Result<Program, WorkloadError> {
        let of_preset = || self.preset.map_or(Time::ZERO, GoalPreset::overhead);
        let program = check(ranks, 1, self.overhead.unwrap_or_else(of_preset)).and_then(Program::ending);
        program.map_err(|problem| WorkloadError::file(file, problem))
    }
}

/// Reads `num_ranks N`.
fn ranks<R: BufRead>(statements: &mut Statements<R>, file: &Path, most: u32) -> Result<u32, WorkloadError> {
    if !statements.advance()? {
        return Err(WorkloadError::file(file, "expected `num_ranks N`, found nothing"));
    }
    let mut words = statements.words();
    let count = match (words.next(), words.next(), words.next()) {
        (Some("num_ranks"), Some(count), None) => count.parse().ok().filter(|&count| count > 0),
        _ => None,
    };
    match count {
        Some(count) if count <= most => Ok(count),
        Some(count) => Err(statements.fail(format!("the schedule has {count} ranks, the workload {most}"))),
        None => {
            let found: Vec<_> = statements.words().take(4).collect();
            Err(statements.fail(format!("expected `num_ranks N`, found `{}`", found.join(" "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::binary::tests::{Operation, pack};
    use super::*;
    use crate::pattern::tests::{network, plan};
    use crate::program::testing::sends;
    use crate::{Options, Pattern, PlanContext, Workload};
    use netloom_units::Bytes;
    use proptest::prelude::*;
    use std::io::Write;

    const HOW: How = How { time_unit: Time(1000), nics: None, keeps_labels: false };

    fn goal(file: &Path) -> Goal {
        Goal {
            file: file.into(),
            time_unit: nanosecond(),
            overhead: None,
            preset: None,
            nics: NicChoice::Servers,
        }
    }

    fn built(goal: Goal, hosts: u32) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::Goal(goal)), &network(hosts, hosts), 1)
    }

    fn read(text: impl AsRef<[u8]>) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.goal");
        std::fs::write(&file, text).unwrap();
        built(goal(&file), 4)
    }

    const PING_PONG: &str = "\
/* two ranks,
   one ball */
num_ranks 2

rank 0 {
l1: calc 100 cpu 0     // serve
l2: send 10b to 1 tag 5 cpu 0 nic 0
l2 requires l1
l3: recv 20b from 1 tag 6
}
rank 1 {
  back: send 20b to 0 tag 6
  back requires ball /* known below */
  ball: recv 10b from 0 tag 5 }
";

    #[test]
    fn operations_follow_their_dependencies() {
        let plan = read(PING_PONG).unwrap();
        assert_eq!(plan.total_messages, Some(2));
        let served = Time::from_ns(100);
        assert_eq!(sends(plan), (vec![(served, 0, 1, Bytes(10)), (served, 1, 0, Bytes(20))], served));
    }

    /// What LogGOPSim's Schedgen (76451de) makes of liballprof's traces of four ranks: `MPI_Isend` and `MPI_Irecv` of 8 KiB around a ring 0.8 ms after `MPI_Init`, `MPI_Waitall`, an `MPI_Allreduce` of
    /// 4 KiB 4 ms later, and an `MPI_Barrier` 2.1 ms and `MPI_Finalize` 0.9 ms after what was before. Its times are nanoseconds.
    #[test]
    fn traces_of_mpi_come_by_way_of_schedgen() {
        let plan = read(include_bytes!("schedgen/four-ranks.goal")).unwrap();
        assert_eq!(plan.total_messages, Some(4 * (1 + 2 + 2)));
        let (sent, end) = sends(plan);
        // Each call took 10 us before the next one, and messages take no time here.
        let us = |us: u64| Time::from_us(us);
        assert_eq!(end, us(800 + 20 + 4000 + 2100 + 900));
        let of_rank_0: Vec<_> = sent.into_iter().filter(|sent| sent.1 == 0).collect();
        let (reduced, met) = (us(800 + 20 + 4000), us(800 + 20 + 4000 + 2100));
        let expected = [(us(810), 1, 8192), (reduced, 1, 4096), (reduced, 2, 4096), (met, 1, 1), (met, 2, 1)];
        assert_eq!(of_rank_0, expected.map(|(at, dst, bytes)| (at, 0, dst, Bytes(bytes))));
    }

    #[test]
    fn labels_are_kept_where_they_are_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.goal");
        std::fs::write(&file, PING_PONG.replace("l2 requires l1", "").replace("l1: ", "")).unwrap();
        let labels = |keeps_labels| {
            let context = PlanContext { keeps_labels, ..PlanContext::new(1) };
            let plan = Workload::new(Pattern::Goal(goal(&file))).plan(&network(4, 4), &context).unwrap();
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
                .map(|(rank, op)| plan.jobs[0].label(rank, op).to_string())
        };
        assert_eq!(labels(true), ["", "l2", "l3", "back", "ball"]);
        assert_eq!(labels(false), [""; 5]);
    }

    #[test]
    fn a_compressed_schedule_is_the_same() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(PING_PONG.as_bytes()).unwrap();
        assert_eq!(sends(read(gzip.finish().unwrap()).unwrap()), sends(read(PING_PONG).unwrap()));
    }

    #[test]
    fn a_binary_schedule_is_the_same() {
        let op = |kind, peer, size, tag, later| Operation {
            kind,
            peer,
            size,
            tag,
            cpu: 0,
            nic: 0,
            later: [later, &[]],
        };
        let file = pack(&[
            &[op(3, 0, 100, 0, &[1]), op(1, 1, 10, 5, &[]), op(2, 1, 20, 6, &[])],
            &[op(1, 0, 20, 6, &[]), op(2, 0, 10, 5, &[0])],
        ]);
        assert_eq!(sends(read(&file).unwrap()), sends(read(PING_PONG).unwrap()));
        let error = read(&file[..file.len() - 1]).unwrap_err().to_string();
        assert!(error.ends_with("a.goal: the file ends before byte 269 of rank 1"), "{error}");
    }

    #[test]
    fn a_cpu_calculates_one_thing_at_a_time_and_cpus_work_side_by_side() {
        let block =
            |second: &str| format!("num_ranks 1\nrank 0 {{\ncalc 10 cpu 7\ncalc 20 cpu {second}\n}}\n");
        assert_eq!(sends(read(block("7")).unwrap()).1, Time::from_ns(30));
        assert_eq!(sends(read(block("3")).unwrap()).1, Time::from_ns(20));
    }

    #[test]
    fn irequires_waits_for_the_start_only() {
        let block = |verb: &str| {
            format!(
                "num_ranks 2\nrank 0 {{\na: calc 10\nb: send 1b to 1\nb {verb} a\n}}\nrank 1 {{ recv 1b from 0 }}\n"
            )
        };
        for (verb, start) in [("requires", 10), ("irequires", 0)] {
            let text = block(verb).replace("{ recv", "{\nrecv");
            assert_eq!(sends(read(text).unwrap()).0, [(Time::from_ns(start), 0, 1, Bytes(1))]);
        }
    }

    #[test]
    fn units_and_overheads_scale_what_the_cpu_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.goal");
        std::fs::write(&file, PING_PONG).unwrap();
        let goal = Goal { time_unit: Time(500), overhead: Some(Time(7)), ..goal(&file) };
        let (sent, end) = sends(built(goal, 4).unwrap());
        assert_eq!(sent[0].0, Time(50_007));
        // The other rank receives and sends, then this one receives.
        assert_eq!((sent[1].0, end), (Time(50_021), Time(50_028)));
    }

    #[test]
    fn presets_give_overheads_that_fields_replace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.goal");
        std::fs::write(&file, PING_PONG).unwrap();
        for (preset, overhead, expected) in [
            (GoalPreset::AtlahsAiLike, None, 100 + 200),
            (GoalPreset::AtlahsHpcLike, None, 100 + 8000),
            (GoalPreset::AtlahsHpcLike, Some(Time::from_ns(1)), 100 + 1),
        ] {
            let (sent, _) = sends(built(Goal { preset: Some(preset), overhead, ..goal(&file) }, 4).unwrap());
            assert_eq!(sent[0].0, Time::from_ns(expected));
        }
    }

    #[test]
    fn a_cpu_serves_in_the_order_of_becoming_ready() {
        // The send to itself occupies the CPU for 10 ns; the calculation has waited longer than the receive.
        let text = "num_ranks 2\nrank 0 {\nsend 1b to 0\nwork: calc 5\nrecv 1b from 0\nout: send 1b to 1 cpu 1\n\
                    out requires work\n}\nrank 1 {\nrecv 1b from 0\n}\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.goal");
        std::fs::write(&file, text).unwrap();
        let (sent, _) = sends(built(Goal { overhead: Some(Time::from_ns(10)), ..goal(&file) }, 4).unwrap());
        assert_eq!(sent[0].0, Time::from_ns(10 + 5 + 10));
    }

    #[test]
    fn messages_to_oneself_stay_at_home() {
        let plan =
            read("num_ranks 1\nrank 0 {\na: send 9b to 0\nb: recv 9b from 0\nc: calc 3\nc requires b\n}\n")
                .unwrap();
        assert_eq!(plan.total_messages, Some(0));
        assert_eq!(sends(plan), (vec![], Time::from_ns(3)));
    }

    #[test]
    fn ranks_follow_the_placement_and_others_idle() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.goal");
        std::fs::write(&file, PING_PONG).unwrap();
        let options = Options { placement: crate::Placement::Random, ..Default::default() };
        let workload = Workload { pattern: Pattern::Goal(goal(&file)), options };
        let (network, mut pairs) = (network(9, 9), std::collections::BTreeSet::new());
        for seed in 0..50 {
            let plan = plan(workload.clone(), &network, seed).unwrap();
            assert_eq!(plan.hosts.iter().filter(|host| host.is_program()).count(), 2);
            let (sent, _) = sends(plan);
            assert_eq!((sent[0].1, sent[0].2), (sent[1].2, sent[1].1));
            pairs.insert((sent[0].1, sent[0].2));
        }
        assert!(pairs.len() > 20);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, expected) in [
            ("", "a.goal: expected `num_ranks N`, found nothing"),
            ("num_rank 2", "a.goal:1: expected `num_ranks N`, found `num_rank 2`"),
            ("num_ranks 0", "a.goal:1: expected `num_ranks N`"),
            ("num_ranks 5", "a.goal:1: the schedule has 5 ranks, the workload 4"),
            (
                "num_ranks 1\n\nrnak 0 {\n}",
                "a.goal:3: expected `rank R {`, found `rnak 0 {` (did you mean `rank`?)",
            ),
            ("num_ranks 1\nrank 1 {\n}", "a.goal:2: expected a rank from 0 to 0, found `1`"),
            (
                "num_ranks 1\nrank 0 {\n}\nrank 0 {\n}",
                "a.goal:5: expected one block of rank 0, found a second",
            ),
            ("num_ranks 2\nrank 1 {\n}", "a.goal: expected blocks of 2 ranks, but there is none of rank 0"),
            ("num_ranks 1\nrank 0 {\ncalc 1\n", "a.goal:3: expected `}` at the end of rank 0"),
            ("num_ranks 1\nrank 0 {\n} calc 1\n", "a.goal:3: expected the end of the line after `}`"),
            ("num_ranks 1\nrank 0 {\nsned 5b to 0\n}", "found `sned` (did you mean `send`?)"),
            ("num_ranks 1\nrank 0 {\na: calc 1\na require a\n}", "found `a` (did you mean `requires`?)"),
            (
                "num_ranks 1\nrank 0 {\nsend 5 to 0\n}",
                "a.goal:3: expected a number of bytes such as `1024b`, found `5`",
            ),
            ("num_ranks 1\nrank 0 {\nsend 5b from 0\n}", "a.goal:3: expected `send SIZEb to RANK`"),
            ("num_ranks 1\nrank 0 {\nrecv 5b to 0\n}", "a.goal:3: expected `recv SIZEb from RANK`"),
            ("num_ranks 1\nrank 0 {\ncalc\n}", "a.goal:3: expected `calc TIME`"),
            (
                "num_ranks 1\nrank 0 {\ncalc 1.5\n}",
                "a.goal:3: expected a whole number of units of time, found `1.5`",
            ),
            (
                "num_ranks 1\nrank 0 {\ncalc 18446744073709551615\n}",
                "a.goal:3: calc 18446744073709551615: longer than",
            ),
            ("num_ranks 1\nrank 0 {\nsend 5b to 9\n}", "a.goal:3: expected a rank from 0 to 0, found `9`"),
            (
                "num_ranks 1\nrank 0 {\nsend 5b to 0 tag -1\n}",
                "a.goal:3: expected a tag below 4294967295, found `-1`",
            ),
            (
                "num_ranks 1\nrank 0 {\nsend 5b to 0 tagg 1\n}",
                "a.goal:3: expected tag, cpu, nic, found `tagg` (did you mean `tag`?)",
            ),
            ("num_ranks 1\nrank 0 {\ncalc 5 tag 1\n}", "a.goal:3: expected cpu, found `tag`"),
            ("num_ranks 1\nrank 0 {\ncalc 5 cpu\n}", "a.goal:3: expected a value after `cpu`"),
            ("num_ranks 1\nrank 0 {\ncalc 5 cpu x\n}", "a.goal:3: expected the number of a CPU, found `x`"),
            ("num_ranks 1\nrank 0 {\na:\n}", "a.goal:3: expected send, recv or calc after the label"),
            (
                "num_ranks 1\nrank 0 {\na:calc 1\na : calc 2\n}",
                "a.goal:4: the label `a` is that of line 3 already",
            ),
            ("num_ranks 1\nrank 0 {\na: calc 1\na requires\n}", "a.goal:4: expected `LABEL requires LABEL`"),
            (
                "num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}",
                "a.goal:4: expected a label of rank 0, found `b`",
            ),
            (
                "num_ranks 1\nrank 0 {\nstep1: calc 1\nstep2: calc 1\nstep2 requires stp1\n}",
                "a.goal:5: expected a label of rank 0, found `stp1` (did you mean `step1`?)",
            ),
            (
                "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\nb requires a,\n}",
                "a.goal:5: expected a label of rank 0, found `a,` (did you mean `a`? Labels are not followed by commas)",
            ),
            (
                "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\nb requires a,c\n}",
                "a.goal:5: expected a label of rank 0, found `a,c` (several labels are required by a line for each)",
            ),
            (
                "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\nb requires a, c\n}",
                "a.goal:5: expected `LABEL requires LABEL`, found `b requires a, c` (a line `b requires LABEL` for each label)",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}\n{expected}");
        }
        let error = read(b"num_ranks 1\nrank 0 {\n\xff\n}").unwrap_err().to_string();
        assert!(error.ends_with("a.goal:3: expected text in UTF-8"), "{error}");
        let long = format!("num_ranks 1\nrank 0 {{\n{}", "x ".repeat(40_000));
        let error = read(long).unwrap_err().to_string();
        assert!(error.ends_with("a.goal:3: expected a line of less than 65536 bytes"), "{error}");
        assert!(built(goal(Path::new("/nowhere.goal")), 4).unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn schedules_that_never_end_are_refused() {
        let two = |first: &str, second: &str| {
            format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n")
        };
        for (text, expected) in [
            (
                two("a: calc 1\nb: calc 1\na requires b\nc: calc 1\nc requires a\nb irequires a", ""),
                "waits for itself",
            ),
            (two("a: calc 1\na requires a", ""), "a.goal:3: this operation waits for itself"),
            (two("send 1b to 1", ""), "rank 1 does not receive 1 messages that rank 0 sends it with tag 0"),
            (
                two("send 1b to 1 tag 2", "recv 1b from 0 tag 3"),
                "rank 1 receives more messages from rank 0 with tag 3",
            ),
            (two("", "recv 1b from -1"), "rank 1 has 1 receives with a wildcard for 0 messages"),
            (
                two("send 1b to 1\nsend 1b to 1", "recv 1b from -1"),
                "rank 1 has 1 receives with a wildcard, too few for 2",
            ),
            (
                two(
                    "r: recv 1b from 1\ns: send 1b to 1\ns requires r",
                    "r: recv 1b from 0\ns: send 1b to 0\ns requires r",
                ),
                "a.goal: the ranks wait for one another for ever: 2 of 2 ranks have not finished: rank 0 waits for a message of rank 1 with \
                 tag 0, which has not sent it, as rank 1 waits for a message of rank 0 with tag 0, which has not sent it, as it waits itself: \
                 a cycle",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}\n{expected}");
        }
    }

    /// Schedules as they might be written, right and wrong.
    fn statement() -> impl Strategy<Value = String> {
        let word = prop::sample::select(vec![
            "rank",
            "num_ranks",
            "send",
            "recv",
            "calc",
            "to",
            "from",
            "tag",
            "cpu",
            "nic",
            "requires",
            "irequires",
            "{",
            "}",
            ":",
            "a:",
            "b:",
            "a",
            "b",
            "-1",
            "0",
            "1",
            "2",
            "5b",
            "0b",
            "/*",
            "*/",
            "//",
            "\n",
            "é",
            "18446744073709551615",
            "99999999999999999999b",
        ]);
        let right = prop::sample::select(vec![
            "a: send 5b to 1 tag 1",
            "b: recv 5b from 1 tag -1",
            "recv 1b from -1",
            "calc 3 cpu 1",
            "a requires b",
            "b irequires a",
            "send 0b to 0",
            "recv 0b from 0",
            "}",
            "rank 1 {",
        ]);
        prop_oneof![
            prop::collection::vec(word, 0..8).prop_map(|words| words.join(" ")),
            right.prop_map(str::to_owned)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_text_panics(lines in prop::collection::vec(statement(), 0..12)) {
            let text = format!("num_ranks 2\nrank 0 {{\n{}\n}}\n", lines.join("\n"));
            for text in [text.clone(), text + "rank 1 {\n}\n", lines.join("\n")] {
                let file = Path::new("a.goal");
                if let Ok(program) = goal(file).read(text.as_bytes(), file, 4, HOW) {
                    prop_assert!(program.ranks() <= 4);
                }
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let file = Path::new("a.goal");
            prop_assert!(goal(file).read(&bytes[..], file, 4, HOW).is_err());
        }
    }
}
