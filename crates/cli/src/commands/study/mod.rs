//! `netloom study`: what is measured, by simulation or by analysis, held against claims.

mod analysis;
mod columns;
mod simulation;

use std::io::Write;
use std::path::{Path, PathBuf};

use netloom_scenario::study::Verdict;
use netloom_scenario::{Node, Problem, Source};

use crate::args::StudyArgs;
use crate::failure::Failure;
use crate::files::write_file;
use crate::show;

/// Runs a study of either kind.
pub(crate) fn study(args: &StudyArgs) -> Result<(), Failure> {
    let document = Node::parse(&Source::read(&args.study)?)?;
    match Kind::of(&document)? {
        Kind::Simulation => simulation::study(args, &document),
        Kind::Analysis => analysis::study(args, &document),
    }
}

/// What a study does to find its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It runs a scenario over a grid of values.
    Simulation,
    /// It measures networks and their routing without a packet.
    Analysis,
}

impl Kind {
    /// A simulation study has a scenario, an analysis study has measurements.
    fn of(document: &Node) -> Result<Self, Problem> {
        match (document.at(["scenario"]), document.at(["measurement"])) {
            (Some(_), None) => Ok(Kind::Simulation),
            (None, Some(_)) => Ok(Kind::Analysis),
            (None, None) => {
                let message = "this is no study: it has neither a `scenario` nor a [[measurement]]";
                let place = document.nearest_place([]);
                Err(Problem::new("", message)
                    .at(&place)
                    .help("a simulation study names a `scenario`, an analysis study lists [[network]] and [[measurement]]"))
            }
            (Some(_), Some(_)) => {
                let message = "a study has either a `scenario` or measurements, not both";
                Err(Problem::new("measurement", message).at(&document.nearest_place(["measurement"])))
            }
        }
    }
}

/// What a study found, ready to be shown.
struct Findings<'a> {
    title: &'a str,
    verdicts: &'a [Verdict],
    /// The results for programs.
    results: serde_json::Value,
    /// The results for people.
    table: String,
    /// Where the files are.
    folder: &'a Path,
}

impl Findings<'_> {
    /// Prints tables, or JSON.
    fn show(&self, json: bool) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        if json {
            let value =
                serde_json::json!({ "title": self.title, "claims": self.verdicts, "results": self.results });
            writeln!(out, "{}", serde_json::to_string_pretty(&value).map_err(std::io::Error::from)?)?;
        } else {
            writeln!(out, "{}\n{}", self.title, self.table)?;
            if !self.verdicts.is_empty() {
                writeln!(out, "{}", claim_table(self.verdicts))?;
            }
            writeln!(out, "results in {}", self.folder.display())?;
        }
        Ok(())
    }

    /// Whether the gates hold.
    fn judgement(&self) -> Result<(), Failure> {
        if self.verdicts.iter().any(Verdict::fails) { Err(Failure::Gate) } else { Ok(()) }
    }
}

/// Where the study's files go.
fn folder(args: &StudyArgs) -> PathBuf {
    args.out.clone().unwrap_or_else(|| default_folder(&args.study, args.small))
}

fn default_folder(study: &Path, small: bool) -> PathBuf {
    let stem = study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // studies/flowcut/fig8.toml and studies/fatpaths/fig8.toml must not share a folder.
    let parent = study.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = match parent {
        Some(parent) => format!("{parent}-{stem}"),
        None => stem,
    };
    PathBuf::from("runs").join(if small { format!("{name}-small") } else { name })
}

fn claim_table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let mut rows =
        vec![["", "claim", "holds", "measured", "published", "source"].map(str::to_owned).to_vec()];
    for verdict in verdicts {
        let holds = match (verdict.holds, verdict.gate) {
            (Some(true), _) => "yes",
            (Some(false), true) => "NO (gate)",
            (Some(false), false) => "no",
            (None, true) => "FAILED (gate)",
            (None, false) => "not measured",
        };
        rows.push(vec![
            verdict.id.clone(),
            wrap(&verdict.text, 44),
            holds.to_owned(),
            wrap(&verdict.measured, 32),
            wrap(&verdict.published, 24),
            wrap(&verdict.source, 20),
        ]);
        if !verdict.note.is_empty() {
            text += &format!("{}: {}\n", verdict.id, verdict.note);
        }
    }
    format!("{}\n{text}", show::text_table(rows))
}

/// Breaks text at spaces into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Rows as CSV.
fn csv(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| {
        let fields: Vec<String> = row.iter().map(|field| quote(field)).collect();
        fields.join(",") + "\n"
    };
    rows.iter().map(line).collect()
}

/// A CSV field (RFC 4180).
fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn write_verdicts(folder: &Path, verdicts: &[Verdict]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(verdicts).map_err(|error| Failure::Bug(error.to_string()))?;
    write_file(&folder.join("claims.json"), text.as_bytes())
}
