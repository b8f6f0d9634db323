//! `netloom list`: everything a user may write.

use std::io::Write;

use netloom_routing::preset as routing;
use netloom_scenario::{Chapter, Problem, reference, suggest};
use netloom_transport::preset as transport;
use netloom_units::kind::KindInfo;

use crate::args::ListArgs;
use crate::failure::Failure;

/// Shows all axes in short, or one axis or kind in full.
pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let chapters = reference();
    let Some(name) = args.name.as_deref() else {
        return match args.json {
            true => print_json(&chapters, |_, _| true),
            false => print_overview(&chapters),
        };
    };
    // A path such as `workload` is asked for only where nothing is called so.
    let is_name = chapters
        .iter()
        .any(|chapter| chapter.name == name || chapter.entries.iter().any(|entry| entry.name == name));
    let wanted = |chapter: &Chapter, entry: &KindInfo| match is_name {
        true => entry.name == name || chapter.name == name,
        false => chapter.path == name,
    };
    let names = || {
        let entries = chapters.iter().flat_map(|chapter| chapter.entries.iter().map(|entry| entry.name));
        chapters.iter().flat_map(|chapter| [chapter.name, chapter.path]).chain(entries)
    };
    if !names().any(|known| known == name) {
        let problem = Problem::new("", format!("there is no axis, kind or preset `{name}`"));
        // A field's name serves several chapters.
        let mut known: Vec<&str> = names().collect();
        known.sort_unstable();
        known.dedup();
        return Err(problem.help(suggest(name, known)).into());
    }
    match args.json {
        true => print_json(&chapters, wanted),
        false => print_full(&chapters, wanted),
    }
}

fn print_overview(chapters: &[Chapter]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for chapter in chapters {
        writeln!(out, "[{}] {}", chapter.path, chapter.doc)?;
        for entry in &chapter.entries {
            match chapter.choice {
                Some(choice) => {
                    writeln!(
                        out,
                        "  {choice} = {:<22} {}",
                        format!("{:?}", entry.name),
                        first_sentence(&entry.doc)
                    )?;
                }
                None => {
                    let names: Vec<&str> = entry.fields.iter().map(|field| field.name.as_str()).collect();
                    writeln!(out, "  fields: {}", names.join(", "))?;
                }
            }
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "netloom list NAME shows the parameters, defaults and sources of an axis, a kind or a preset."
    )?;
    Ok(())
}

fn print_full(chapters: &[Chapter], wanted: impl Fn(&Chapter, &KindInfo) -> bool) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for chapter in chapters {
        for entry in chapter.entries.iter().filter(|entry| wanted(chapter, entry)) {
            match chapter.choice {
                Some(choice) => writeln!(out, "[{}] {choice} = {:?}", chapter.path, entry.name)?,
                None => writeln!(out, "[{}]", chapter.path)?,
            }
            writeln!(out, "{}", indent(&entry.doc, 2))?;
            for field in &entry.fields {
                let default = match field.default.as_str() {
                    "" => String::new(),
                    default => format!(" = {default}"),
                };
                writeln!(out, "\n  {}{default}\n{}", field.name, indent(&field.doc, 6))?;
            }
            if let Some(point) = point(chapter, entry)? {
                writeln!(out, "\n{}", indent(&point, 6))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// What a preset expands to.
fn point(chapter: &Chapter, entry: &KindInfo) -> Result<Option<String>, Failure> {
    let point = match (chapter.choice, chapter.path) {
        (Some("preset"), "routing") => {
            routing::find(entry.name).map(|preset| toml::to_string(&preset.routing()))
        }
        (Some("preset"), "transport") => {
            transport::find(entry.name).map(|preset| toml::to_string(&preset.transport()))
        }
        _ => None,
    };
    point.transpose().map_err(|error| Failure::Bug(error.to_string()))
}

fn print_json(chapters: &[Chapter], wanted: impl Fn(&Chapter, &KindInfo) -> bool) -> Result<(), Failure> {
    let field = |field: &netloom_units::kind::FieldInfo| {
        let default: Option<serde_json::Value> = serde_json::from_str(&field.default).ok();
        serde_json::json!({ "name": field.name, "doc": field.doc, "default": default })
    };
    let entries: Vec<serde_json::Value> = chapters
        .iter()
        .flat_map(|chapter| chapter.entries.iter().map(move |entry| (chapter, entry)))
        .filter(|(chapter, entry)| wanted(chapter, entry))
        .map(|(chapter, entry)| {
            serde_json::json!({
                "axis": chapter.name,
                "path": chapter.path,
                "name": entry.name,
                "doc": entry.doc,
                "fields": entry.fields.iter().map(field).collect::<Vec<_>>(),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&entries).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

fn first_sentence(doc: &str) -> String {
    let flat = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.find(". ") {
        Some(end) => flat[..=end].to_owned(),
        None => flat,
    }
}

fn indent(text: &str, spaces: usize) -> String {
    let indented = |line: &str| if line.is_empty() { String::new() } else { format!("{:spaces$}{line}", "") };
    let lines: Vec<String> = text.trim_end().lines().map(indented).collect();
    lines.join("\n")
}
