//! What is asked, as a study.

use std::path::Path;

use netloom_scenario::{Node, Problem, Source, split_fields};
use netloom_study::recommend::SCHEME;
use netloom_study::{Form, Plan, Study};
use toml::{Table, Value};

use crate::args::RecommendArgs;
use crate::failure::Failure;

/// What is compared where nothing is said.
const USUAL: [&str; 10] =
    ["ecmp", "spray", "letflow", "drill", "adaptive", "conga", "plb", "reps", "flowcut-nic", "flowcut"];

/// Parts of a scenario whose fields a scheme may set by their full names.
const PARTS: [&str; 6] = ["transport", "fabric", "servers", "topology", "workload", "measure"];

/// The scenario, the schemes and what is varied.
pub(super) struct Question {
    /// As TOML, all but the schemes and the seeds.
    base: Table,
    /// Every scheme with what it sets.
    pub(super) schemes: Vec<(String, Table)>,
    /// Schemes that are not asked for and that the scenario refuses, and why.
    pub(super) refused: Vec<(String, String)>,
    /// How many circumstances are varied.
    pub(super) circumstances: usize,
}

impl Question {
    /// Reads the command line. Without `--among`, schemes that the scenario refuses are left out.
    pub(super) fn of(args: &RecommendArgs) -> Result<Self, Failure> {
        let path = std::fs::canonicalize(&args.scenario)
            .map_err(|error| Problem::new("", format!("cannot read {}: {error}", args.scenario.display())))?;
        let mut axes = Vec::new();
        if !args.set.is_empty() {
            let mut set = Table::new();
            for change in &args.set {
                let (field, value) = split(change, "--set")?;
                not_routing(field, "--set")?;
                set.insert(field.to_owned(), value_of(value));
            }
            axes.push(axis("as asked", [("set".to_owned(), set)]));
        }
        let mut circumstances = 1;
        for what in args.vary.iter().flat_map(|vary| names(vary)) {
            if what == "seeds" {
                continue;
            }
            let axis = varied(&what)?;
            if axes.iter().any(|other: &Table| other.get("name") == axis.get("name")) {
                return Err(Problem::new("--vary", format!("`{what}` is varied twice")).into());
            }
            circumstances *= axis.get("cases").and_then(Value::as_array).map_or(1, Vec::len);
            axes.push(axis);
        }
        let name = args.scenario.file_stem().unwrap_or_default().to_string_lossy();
        let base = Table::from_iter([
            ("title".to_owned(), format!("Routing schemes for {name}").into()),
            ("scenario".to_owned(), path.display().to_string().into()),
            ("axis".to_owned(), Value::Array(axes.into_iter().map(Value::Table).collect())),
        ]);
        let mut question = Question { base, schemes: Vec::new(), refused: Vec::new(), circumstances };
        match &args.among {
            Some(among) => {
                for word in names(among) {
                    let scheme = scheme(&word)?;
                    if question.schemes.contains(&scheme) {
                        return Err(Problem::new("--among", format!("`{word}` is there twice")).into());
                    }
                    question.schemes.push(scheme);
                }
                // What is wrong with them is found with all of them.
                question.plan(question.schemes.iter().map(|(name, _)| name.as_str()), 1)?;
            }
            None => question.take_usual()?,
        }
        match question.schemes.len() {
            0 | 1 => {
                let found = question.schemes.len();
                let why = question.refused.first().map(|(name, why)| format!("{name}: {why}"));
                let problem = Problem::new("--among", format!("expected two schemes or more, found {found}"));
                Err(why.map_or(problem.clone(), |why| problem.help(why)).into())
            }
            _ => Ok(question),
        }
    }

    /// Takes those of the usual schemes that the scenario allows. What is wrong without any of them is an error.
    fn take_usual(&mut self) -> Result<(), Failure> {
        let mut first = None;
        for name in USUAL {
            let scheme = scheme(name)?;
            let study = self.read(&[&scheme], 1)?;
            match study.plan() {
                Ok(_) => self.schemes.push(scheme),
                Err(problems) => {
                    let why = problems.0.first().map_or_else(String::new, |problem| problem.message.clone());
                    self.refused.push((name.to_owned(), why));
                    first.get_or_insert(problems);
                }
            }
        }
        match (self.schemes.is_empty(), first) {
            (true, Some(problems)) => Err(problems.into()),
            _ => Ok(()),
        }
    }

    /// The study of some of the schemes.
    pub(super) fn plan<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        seeds: u32,
    ) -> Result<Plan, Failure> {
        let wanted: Vec<&str> = names.into_iter().collect();
        let schemes: Vec<&(String, Table)> =
            self.schemes.iter().filter(|(name, _)| wanted.contains(&name.as_str())).collect();
        Ok(self.read(&schemes, seeds)?.plan()?)
    }

    fn read(&self, schemes: &[&(String, Table)], seeds: u32) -> Result<Study, Failure> {
        let text = self.text(schemes, seeds);
        Ok(Study::read(
            &Node::parse(&Source::new("the study made of --among, --vary and --set", text))?,
            Form::Middle,
        )?)
    }

    /// The study of all schemes, as a file.
    pub(super) fn file(&self, seeds: u32) -> String {
        self.text(&self.schemes.iter().collect::<Vec<_>>(), seeds)
    }

    fn text(&self, schemes: &[&(String, Table)], seeds: u32) -> String {
        let mut study = self.base.clone();
        study.insert("repetitions".to_owned(), i64::from(seeds).into());
        if let Some(axes) = study.get_mut("axis").and_then(Value::as_array_mut) {
            axes.insert(0, Value::Table(axis(SCHEME, schemes.iter().map(|&scheme| scheme.clone()))));
        }
        study.to_string()
    }
}

/// The folder's name: that of the scenario and what is asked of it.
pub(super) fn folder_name(scenario: &Path) -> String {
    format!("{}-recommend", scenario.file_stem().unwrap_or_default().to_string_lossy())
}

/// Names with commas between them. A name may be followed by a colon and fields, whose commas belong to it.
fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let has_empty_end = text.is_empty() || text.ends_with(',');
    for part in split_fields(text).into_iter().chain(has_empty_end.then_some("")) {
        match names.last_mut() {
            Some(last) if last.contains([':', '=']) && part.contains('=') && !part.contains(':') => {
                *last = format!("{last},{part}");
            }
            _ => names.push(part.trim().to_owned()),
        }
    }
    names
}

/// `letflow:granularity.gap=50us`: a preset and what is changed of it.
fn scheme(word: &str) -> Result<(String, Table), Problem> {
    let (preset, fields) = word.split_once(':').unwrap_or((word, ""));
    if preset.is_empty() {
        return Err(Problem::new(
            "--among",
            "expected names of routing presets with commas between them, found an empty one",
        ));
    }
    let mut routing = Table::from_iter([("preset".to_owned(), preset.into())]);
    let mut set = Table::new();
    for field in split_fields(fields).into_iter().filter(|field| !field.is_empty()) {
        let (path, value) = split(field, "--among")?;
        let part = path.split('.').next().unwrap_or_default();
        let path = path.strip_prefix("routing.").unwrap_or(path);
        match PARTS.contains(&part) {
            true => drop(set.insert(path.to_owned(), value_of(value))),
            false => insert(&mut routing, path, value_of(value)),
        }
    }
    set.insert("routing".to_owned(), Value::Table(routing));
    Ok((word.to_owned(), set))
}

/// Puts a value at a path of a table.
fn insert(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(table.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Table::new().into());
            // A kind alone becomes a table of it.
            if let Value::String(kind) = inner {
                *inner = Table::from_iter([("kind".to_owned(), kind.clone().into())]).into();
            }
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The axis of `faults`, or of `FIELD=VALUE|VALUE`.
fn varied(what: &str) -> Result<Table, Problem> {
    if what == "faults" {
        let cut = Table::from_iter([("kind".to_owned(), "cut".into()), ("links".to_owned(), 1.into())]);
        let one = Table::from_iter([("faults".to_owned(), Value::Array(vec![cut.into()]))]);
        return Ok(axis("faults", [("as it is".to_owned(), Table::new()), ("a link cut".to_owned(), one)]));
    }
    let Some((field, values)) = what.split_once('=') else {
        let message = format!("expected `faults` or FIELD=VALUE|VALUE, found `{what}`");
        return Err(Problem::new("--vary", message));
    };
    not_routing(field, "--vary")?;
    if field == "seed" {
        let message = "seeds are varied for all schemes; --seeds says how many at most";
        return Err(Problem::new("--vary", message));
    }
    let case = |value: &str| (value.to_owned(), Table::from_iter([(field.to_owned(), value_of(value))]));
    Ok(axis(field, values.split('|').map(case)))
}

/// The schemes are what is compared: what else set them would be without effect.
fn not_routing(field: &str, option: &str) -> Result<(), Problem> {
    match field == "routing" || field.starts_with("routing.") {
        true => Err(Problem::new(
            option,
            format!("`{field}` is what is compared; --among has schemes and their fields"),
        )),
        false => Ok(()),
    }
}

fn axis(name: &str, cases: impl IntoIterator<Item = (String, Table)>) -> Table {
    let case = |(label, set): (String, Table)| {
        Value::Table(Table::from_iter([("label".to_owned(), label.into()), ("set".to_owned(), set.into())]))
    };
    Table::from_iter([
        ("name".to_owned(), name.into()),
        ("cases".to_owned(), Value::Array(cases.into_iter().map(case).collect())),
    ])
}

fn split<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str), Problem> {
    text.split_once('=').ok_or_else(|| Problem::new(option, format!("expected FIELD=VALUE, found `{text}`")))
}

/// A value as `--set` reads it: TOML, or else a text.
fn value_of(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    parsed.and_then(|mut table| table.remove("value")).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_fields_belong_to_their_name() {
        assert_eq!(
            names("ecmp,letflow:granularity.gap=50us,selector=random, reps,spray:transport.reorder=buffer"),
            [
                "ecmp",
                "letflow:granularity.gap=50us,selector=random",
                "reps",
                "spray:transport.reorder=buffer"
            ]
        );
        assert_eq!(names("seeds,faults"), ["seeds", "faults"]);
        assert_eq!(names("adaptive:selector.levels=[1,2],ecmp"), ["adaptive:selector.levels=[1,2]", "ecmp"]);
        assert_eq!([names(""), names("ecmp,")], [vec![""], vec!["ecmp", ""]]);
    }

    #[test]
    fn fields_are_those_of_routing_unless_they_name_another_part() {
        let (name, set) =
            scheme("letflow:granularity.gap=50us,transport.reorder=buffer,routing.salt=false").unwrap();
        assert_eq!(name, "letflow:granularity.gap=50us,transport.reorder=buffer,routing.salt=false");
        let expected = r#"
            "transport.reorder" = "buffer"
            routing = { preset = "letflow", granularity = { gap = "50us" }, salt = false }
        "#;
        assert_eq!(set, expected.parse::<Table>().unwrap());
        assert!(scheme("letflow:gap").unwrap_err().message.contains("expected FIELD=VALUE"));
    }

    #[test]
    fn values_of_a_field_are_an_axis() {
        let load = varied("workload.load=0.3|0.6").unwrap();
        assert_eq!(load["cases"][1]["set"]["workload.load"].as_float(), Some(0.6));
        assert!(varied("loads").unwrap_err().message.contains("FIELD=VALUE|VALUE"));
    }
}
