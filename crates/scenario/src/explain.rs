//! A scenario with nothing left unsaid: every default, and as comments the fields that have no value.

use netloom_units::kind::FieldInfo;
use netloom_workload::Pattern;

use crate::reference::{Chapter, reference};
use crate::scenario::Scenario;
use crate::source::Problem;

impl Scenario {
    /// The scenario as TOML with every default, and a comment for each field of its kinds that is not set: what its absence means, or what
    /// it is. Where a workload does what another simulator does, further comments say what is different.
    ///
    /// # Errors
    /// As [`to_toml`](Self::to_toml).
    pub fn explained(&self) -> Result<String, Problem> {
        let mut text = annotated(&self.to_toml()?, &reference());
        add_differences(&self.workload.pattern, &mut text);
        Ok(text)
    }
}

/// Says how a training job differs from what its files' own simulator makes of them.
fn add_differences(pattern: &Pattern, text: &mut String) {
    match pattern {
        Pattern::AstraSim(job) => {
            for difference in job.differences() {
                *text += &format!("# compared with ASTRA-sim: {difference}\n");
            }
        }
        Pattern::SimAi(job) => {
            for difference in job.differences() {
                *text += &format!("# compared with SimAI: {difference}\n");
            }
        }
        Pattern::Mix(mix) => mix.parts.iter().for_each(|part| add_differences(&part.pattern, text)),
        _ => {}
    }
}

/// A table of a written scenario: its path, its lines, and the names in it.
#[derive(Default)]
struct Written<'a> {
    path: String,
    lines: Vec<&'a str>,
    keys: Vec<&'a str>,
    /// Its `kind`.
    kind: Option<&'a str>,
}

fn annotated(text: &str, chapters: &[Chapter]) -> String {
    let mut tables = vec![Written::default()];
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            let path = header.trim_matches(['[', ']']).to_owned();
            tables.push(Written { path, lines: vec![line], ..Written::default() });
            continue;
        }
        let table = tables.last_mut().expect("there is a first");
        table.lines.push(line);
        // Items of lists that are written over several lines are indented.
        if let Some((key, value)) = line.split_once(" = ")
            && !line.starts_with([' ', '\t', '}', ']'])
        {
            table.keys.push(key);
            if key == "kind" {
                table.kind = Some(value.trim_matches('"'));
            }
        }
    }
    let paths: Vec<String> = tables.iter().map(|table| table.path.clone()).collect();
    let mut annotated = String::with_capacity(text.len() * 2);
    for table in &tables {
        let is_empty = |line: &&&str| line.is_empty();
        let blank = table.lines.iter().rev().take_while(is_empty).count();
        for line in &table.lines[..table.lines.len() - blank] {
            annotated += &format!("{line}\n");
        }
        for field in fields(table, chapters) {
            let below = if table.path.is_empty() {
                field.name.clone()
            } else {
                format!("{}.{}", table.path, field.name)
            };
            let is_written = table.keys.contains(&field.name.as_str())
                || paths.iter().any(|path| *path == below || path.starts_with(&format!("{below}.")));
            if !is_written {
                annotated += &format!("# {}: not set; {}\n", field.name, meaning(&field.doc));
            }
        }
        if !table.lines.is_empty() {
            annotated += &"\n".repeat(blank);
        }
    }
    annotated
}

/// The fields that a table may have: those of its kind, and those that all kinds have.
fn fields<'a>(table: &Written<'_>, chapters: &'a [Chapter]) -> Vec<&'a FieldInfo> {
    let mut found: Vec<&FieldInfo> = Vec::new();
    // A job's workload is of the same kinds, without the fields that a job has for itself.
    let is_of_job = table.path == "jobs.workload";
    let path = if is_of_job { "workload" } else { table.path.as_str() };
    for chapter in chapters.iter().filter(|chapter| chapter.path == path) {
        let entry = match chapter.choice {
            None if is_of_job => None,
            None => chapter.entries.first(),
            Some("kind") => chapter.entries.iter().find(|entry| Some(entry.name) == table.kind),
            Some(_) => None,
        };
        found.extend(entry.into_iter().flat_map(|entry| &entry.fields));
    }
    if found.is_empty()
        && let Some((above, name)) = table.path.rsplit_once('.')
    {
        // A table within a table, such as `fabric.ecn`.
        let plain = chapters.iter().filter(|chapter| chapter.path == above && chapter.choice.is_none());
        let outer = plain.flat_map(|chapter| &chapter.entries).flat_map(|entry| &entry.fields);
        found.extend(outer.filter(|field| field.name == name).flat_map(|field| &field.fields));
    }
    let mut names: Vec<&str> = Vec::new();
    found.retain(|field| {
        let is_new = !names.contains(&field.name.as_str());
        names.push(&field.name);
        is_new
    });
    found
}

/// The first sentence of a text, and what it says of a field's absence.
fn meaning(doc: &str) -> String {
    let flat = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentences: Vec<&str> = flat.split_inclusive(". ").map(str::trim).collect();
    let is_about_absence =
        |sentence: &&&str| ["bsent", "if not given"].iter().any(|word| sentence.contains(word));
    let first = sentences.first().copied();
    let about = sentences.iter().find(is_about_absence).copied().filter(|about| Some(*about) != first);
    let said: Vec<&str> = first.into_iter().chain(about).collect();
    said.join(" ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Node;
    use crate::source::Source;

    fn read(text: &str) -> Result<Scenario, String> {
        let document = Node::parse(&Source::new("s.toml", text)).map_err(|problems| problems.to_string())?;
        Scenario::read(&document).map_err(|problems| problems.to_string())
    }

    /// What a kind cannot be without.
    fn required(name: &str) -> &'static str {
        match name {
            "edge-list" | "graphml" | "dot" | "json" | "htsim-topo" | "ns3-topology"
            | "astra-sim-network" | "infragraph" | "simai-topology" => "path = \"net\"",
            "equivalent-jellyfish" => "of = { kind = \"complete\", switches = 5 }",
            "flow-list" | "htsim-matrix" | "ns3-flows" | "goal" | "simai" => "file = \"f\"",
            "chakra" => "files = \"f.{rank}\"",
            "astra-sim" => "traces = \"f\"\nsystem = \"f.json\"",
            "mix" => "parts = [{ kind = \"permutation\" }]",
            _ => "",
        }
    }

    /// Every kind of every axis that a scenario has, with all its fields: set, a table of their own, or a comment.
    #[test]
    fn every_field_of_every_kind_is_there_and_reads_back_the_same() {
        let chapters = reference();
        let (mut tried, mut left) = (0, Vec::new());
        for chapter in chapters.iter().filter(|chapter| chapter.choice == Some("kind")) {
            for entry in &chapter.entries {
                let header = if chapter.path == "faults" {
                    "[[faults]]".to_owned()
                } else {
                    format!("[{}]", chapter.path)
                };
                let topology =
                    if chapter.path == "topology" { "" } else { "[topology]\nkind = \"fat-tree\"\n" };
                // A selector's own axes need the selector.
                let selector = match chapter.path {
                    "routing.selector.construction" => "[routing.selector]\nkind = \"layer\"\n",
                    "routing.selector.decision" | "routing.selector.queue" => {
                        "[routing.selector]\nkind = \"ugal\"\n"
                    }
                    _ => "",
                };
                let text = format!(
                    "{topology}{selector}{header}\nkind = \"{}\"\n{}\n",
                    entry.name,
                    required(entry.name)
                );
                let scenario = match read(&text) {
                    Ok(scenario) => scenario,
                    Err(message) => {
                        left.push(format!("{} {}: {message}", chapter.path, entry.name));
                        continue;
                    }
                };
                tried += 1;
                let explained = scenario.explained().unwrap();
                let again = read(&explained).unwrap_or_else(|error| panic!("{error}\n{explained}"));
                assert_eq!(again.explained().unwrap(), explained, "{} {}", chapter.path, entry.name);
                assert_eq!(again.to_toml().unwrap(), scenario.to_toml().unwrap());
                // The part of the text from the table on to the next table that is not within it.
                let start =
                    explained.find(&format!("{header}\n")).unwrap_or_else(|| panic!("{header}\n{explained}"));
                for field in &entry.fields {
                    let name = &field.name;
                    let is_there = explained[start..].lines().any(|line| {
                        line.starts_with(&format!("{name} = "))
                            || line.starts_with(&format!("# {name}: not set; "))
                            || line.trim_matches(['[', ']']).starts_with(&format!("{}.{name}", chapter.path))
                    });
                    assert!(is_there, "{} {}: {name}\n{explained}", chapter.path, entry.name);
                }
            }
        }
        // The others need another placement or another part of the scenario, and are refused alone.
        assert!(tried >= 56 && left.len() <= 48, "{tried}: {left:#?}");
    }

    #[test]
    fn sizes_rates_and_latencies_of_default_networks_are_written() {
        for (text, expected) in [
            ("[topology]\nkind = \"fat-tree\"\n", "k = 16\nrate = \"200Gbps\"\nlatency = \"1us\"\n"),
            ("[topology]\nkind = \"slim-fly\"\n", "q = 19\n"),
            ("[topology]\nkind = \"slim-fly\"\nabout_hosts = 1000\n", "about_hosts = 1000\n"),
            ("[topology]\nkind = \"dragonfly\"\n", "hosts_per_switch = 8\n"),
            ("[topology]\nkind = \"hyperx\"\n", "rate = \"200Gbps\"\nlatency = \"1us\"\n"),
            (
                "[topology]\nkind = \"slim-fly\"\n",
                "# host_rate: not set; Rate of host links; `rate` if absent\n",
            ),
            ("[topology]\nkind = \"slim-fly\"\n", "# buffer: not set; Bytes that may wait"),
            ("[topology]\nkind = \"slim-fly\"\n", " Absent: unlimited, and with trimming"),
        ] {
            let explained = read(text).unwrap().explained().unwrap();
            assert!(explained.contains(expected), "{expected}\n{explained}");
        }
        // What a size is computed from stays what it is.
        let about = read("[topology]\nkind = \"slim-fly\"\nabout_hosts = 1000\n").unwrap().to_toml().unwrap();
        assert!(!about.contains("q = "));
    }
}
