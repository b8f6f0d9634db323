//! The block of one rank: statements, labels, dependencies.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use netloom_units::memory::Meter;
use netloom_units::{Bytes, Time, narrow};

use super::How;
use super::text::Statements;
use crate::WorkloadError;
use crate::program::{Accept, CheckedRank, MAX_OPS, RankBuilder};

/// The statements of one rank. Labels are known within their block only.
pub(super) struct Block {
    pub(super) rank: u32,
    builder: RankBuilder,
    /// The line of every operation.
    lines: Vec<u64>,
    labels: HashMap<Box<str>, u32>,
    /// Per label: its operation, if that has come already, and the line where the label was first seen.
    labelled: Vec<(Option<u32>, u64)>,
    dependencies: Vec<Dependency>,
    /// The CPUs as they are numbered in the file.
    cpus: HashMap<u32, u16>,
}

/// `later requires earlier`, or `irequires`; both by label.
struct Dependency {
    later: u32,
    earlier: u32,
    on_start: bool,
}

/// Memory for a statement while its rank is read: an operation or a dependency, its line, a label and its entry or the label where it is kept; all lists may be
/// growing.
const BYTES_PER_STATEMENT: u64 = 128;

/// What every block of a schedule shares.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    pub(super) ranks: u32,
    pub(super) how: How,
}

impl Block {
    /// Reads a block, the first line of which is the one that was read last.
    pub(super) fn read<R: BufRead>(
        statements: &mut Statements<R>,
        schedule: Schedule,
        memory: &mut Meter,
    ) -> Result<Self, WorkloadError> {
        let first: Vec<&str> = statements.words().collect();
        let rank = header(&first, schedule).map_err(|problem| statements.fail(problem))?;
        let mut block = Block {
            rank,
            builder: RankBuilder::default(),
            lines: Vec::new(),
            labels: HashMap::new(),
            labelled: Vec::new(),
            dependencies: Vec::new(),
            // Operations that name none are on CPU 0.
            cpus: HashMap::from([(0, 0)]),
        };
        // `rank R {` is three words.
        let mut skipped = 3;
        loop {
            let words: Vec<&str> = statements.words().skip(std::mem::take(&mut skipped)).collect();
            let end = words.iter().position(|&word| word == "}");
            let statement = &words[..end.unwrap_or(words.len())];
            let mut read = Ok(());
            if !statement.is_empty() {
                memory.take(BYTES_PER_STATEMENT).map_err(|error| statements.fail(error))?;
                read = block.statement(statement, statements.line(), schedule);
            }
            if end.is_some_and(|end| end + 1 < words.len()) {
                read = read.and(Err("expected the end of the line after `}`".to_owned()));
            }
            read.map_err(|problem| statements.fail(problem))?;
            if end.is_some() {
                return Ok(block);
            }
            if !statements.advance()? {
                return Err(statements.fail(format!("expected `}}` at the end of rank {rank}")));
            }
        }
    }

    fn statement(&mut self, words: &[&str], line: u64, schedule: Schedule) -> Result<(), String> {
        match *words {
            [later, verb @ ("requires" | "irequires"), earlier] => {
                let (later, earlier) = (self.label(later, line), self.label(earlier, line));
                self.dependencies.push(Dependency { later, earlier, on_start: verb == "irequires" });
                Ok(())
            }
            [later, verb @ ("requires" | "irequires"), _, _, ..] => {
                let hint = format!("a line `{later} {verb} LABEL` for each label");
                Err(format!("expected `LABEL {verb} LABEL`, found `{}` ({hint})", words.join(" ")))
            }
            [_, verb @ ("requires" | "irequires"), ..] => Err(format!("expected `LABEL {verb} LABEL`")),
            [label, ":", ref operation @ ..] => self.labelled(label, operation, line, schedule),
            [first, ref rest @ ..] => match first.split_once(':') {
                Some((label, "")) => self.labelled(label, rest, line, schedule),
                // No space after the colon.
                Some((label, verb)) => self.labelled(label, &[&[verb], rest].concat(), line, schedule),
                None => self.operation(words, line, schedule).map(drop),
            },
            [] => Ok(()),
        }
    }

    fn labelled(
        &mut self,
        label: &str,
        operation: &[&str],
        line: u64,
        schedule: Schedule,
    ) -> Result<(), String> {
        let op = self.operation(operation, line, schedule)?;
        if schedule.how.keeps_labels {
            self.builder.label(op, label);
        }
        let id = self.label(label, line) as usize;
        match self.labelled[id].0.replace(op) {
            None => Ok(()),
            Some(other) => {
                Err(format!("the label `{label}` is that of line {} already", self.lines[other as usize]))
            }
        }
    }

    /// The index of a label.
    fn label(&mut self, label: &str, line: u64) -> u32 {
        if let Some(&id) = self.labels.get(label) {
            return id;
        }
        let id = narrow::<u32>(self.labelled.len());
        self.labels.insert(label.into(), id);
        self.labelled.push((None, line));
        id
    }

    /// Adds an operation.
    fn operation(&mut self, words: &[&str], line: u64, schedule: Schedule) -> Result<u32, String> {
        if self.lines.len() == MAX_OPS || self.dependencies.len() == MAX_OPS {
            return Err(format!("expected at most {MAX_OPS} operations per rank"));
        }
        let (op, options) = match *words {
            ["send", size, "to", peer, ref options @ ..] => {
                let dst = rank(peer, schedule.ranks)?;
                (self.builder.send(dst, bytes(size)?, number(tag(options))?), options)
            }
            ["recv", size, "from", peer, ref options @ ..] => {
                let src = if peer == "-1" { Accept::Any } else { Accept::Only(rank(peer, schedule.ranks)?) };
                bytes(size)?;
                let tag = match tag(options) {
                    "-1" => Accept::Any,
                    tag => Accept::Only(number(tag)?),
                };
                (self.builder.recv(src, tag), options)
            }
            ["calc", time, ref options @ ..] => {
                let units = time.parse().map_err(|_| expected("a whole number of units of time", time))?;
                let time = schedule.how.time_unit.0.checked_mul(units);
                let time = time.ok_or_else(|| format!("calc {units}: longer than any run can be"))?;
                (self.builder.calc(Time(time)), options)
            }
            ["send", ..] => return Err("expected `send SIZEb to RANK`".to_owned()),
            ["recv", ..] => return Err("expected `recv SIZEb from RANK`".to_owned()),
            ["calc"] => return Err("expected `calc TIME`".to_owned()),
            [found, ..] => {
                let verbs = ["send", "recv", "calc", "requires", "irequires"];
                let hint = words.iter().find_map(|word| nearest(word, &verbs)).unwrap_or_default();
                return Err(format!(
                    "expected send, recv, calc or `LABEL requires LABEL`, found `{found}`{hint}"
                ));
            }
            [] => return Err("expected send, recv or calc after the label".to_owned()),
        };
        self.lines.push(line);
        for pair in options.chunks(2) {
            let &[key, value] = pair else {
                return Err(format!("expected a value after `{}`", pair[0]));
            };
            match key {
                "cpu" => {
                    let cpu = value.parse().map_err(|_| expected("the number of a CPU", value))?;
                    let next = self.cpus.len();
                    let known = *self.cpus.entry(cpu).or_insert(narrow::<u16>(next));
                    if next > usize::from(u16::MAX) - 1 {
                        return Err("expected fewer CPUs than 65535".to_owned());
                    }
                    self.builder.on_cpu(op, known);
                }
                "tag" if words[0] != "calc" => {}
                "nic" if words[0] != "calc" => {
                    let nic = value.parse().map_err(|_| expected("the number of a NIC", value))?;
                    if words[0] == "send" {
                        schedule.how.put_on_nic(&mut self.builder, op, nic)?;
                    }
                }
                _ => {
                    let keys: &[&str] = if words[0] == "calc" { &["cpu"] } else { &["tag", "cpu", "nic"] };
                    let nearest = nearest(key, keys).unwrap_or_default();
                    return Err(format!("expected {}, found `{key}`{nearest}", keys.join(", ")));
                }
            }
        }
        Ok(op)
    }

    /// Resolves the labels and checks that no operation waits for itself.
    pub(super) fn build(mut self, file: &Path) -> Result<CheckedRank, WorkloadError> {
        let unknown = (0..).zip(&self.labelled).find(|(_, (op, _))| op.is_none());
        if let Some((id, &(_, line))) = unknown {
            let label = self.labels.iter().find(|&(_, &label)| label == id).map_or("", |(label, _)| label);
            let hint = self.meant(label).unwrap_or_default();
            let problem = format!("expected a label of rank {}, found `{label}`{hint}", self.rank);
            return Err(WorkloadError::line(file, line, problem));
        }
        let op = |label: u32| self.labelled[label as usize].0.unwrap_or_default();
        for &Dependency { later, earlier, on_start } in &self.dependencies {
            match on_start {
                true => self.builder.irequires(op(later), op(earlier)),
                false => self.builder.requires(op(later), op(earlier)),
            }
        }
        self.builder.build().map_err(|op| {
            let problem = "this operation waits for itself, by way of those that it requires";
            WorkloadError::line(file, self.lines[op as usize], problem)
        })
    }
}

impl Block {
    /// A remark on a label that no operation has: on a comma in it, or about the label that is closest.
    fn meant(&self, found: &str) -> Option<String> {
        // In order of the file, so that of equally close ones it is always the same.
        let mut known: Vec<_> = self.labels.iter().map(|(label, &id)| (id, &**label)).collect();
        known.retain(|&(id, _)| self.labelled[id as usize].0.is_some());
        known.sort_unstable();
        let known: Vec<&str> = known.into_iter().map(|(_, label)| label).collect();
        match found.split_once(',') {
            Some((label, "")) if known.contains(&label) => {
                Some(format!(" (did you mean `{label}`? Labels are not followed by commas)"))
            }
            Some(_) => Some(" (several labels are required by a line for each)".to_owned()),
            None => nearest(found, &known),
        }
    }
}

/// Reads `rank R {`.
fn header(words: &[&str], schedule: Schedule) -> Result<u32, String> {
    match *words {
        ["rank", found, "{", ..] => rank(found, schedule.ranks),
        [first, ..] => {
            let hint = if first == "rank" { None } else { nearest(first, &["rank"]) };
            Err(format!("expected `rank R {{`, found `{}`{}", words.join(" "), hint.unwrap_or_default()))
        }
        [] => Err("expected `rank R {`".to_owned()),
    }
}

fn rank(text: &str, ranks: u32) -> Result<u32, String> {
    let rank = text.parse().ok().filter(|&rank| rank < ranks);
    rank.ok_or_else(|| expected(&format!("a rank from 0 to {}", ranks - 1), text))
}

fn bytes(text: &str) -> Result<Bytes, String> {
    let bytes = text.strip_suffix('b').and_then(|digits| digits.parse().ok());
    bytes.map(Bytes).ok_or_else(|| expected("a number of bytes such as `1024b`", text))
}

/// The tag among the options.
fn tag<'a>(options: &[&'a str]) -> &'a str {
    options.chunks_exact(2).find(|pair| pair[0] == "tag").map_or("0", |pair| pair[1])
}

/// Reads a tag.
fn number(tag: &str) -> Result<u32, String> {
    let number = tag.parse().ok().filter(|&tag| tag < u32::MAX);
    number.ok_or_else(|| expected(&format!("a tag below {}", u32::MAX), tag))
}

fn expected(what: &str, found: &str) -> String {
    format!("expected {what}, found `{found}`")
}

/// A question about the valid word that is closest to what was found, if one is close.
fn nearest(found: &str, valid: &[&str]) -> Option<String> {
    let scored = valid.iter().map(|&word| (strsim::jaro_winkler(&found.to_lowercase(), word), word));
    let (score, word) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.75).then(|| format!(" (did you mean `{word}`?)"))
}
