//! `netloom list`: everything a user may write.

use std::io::Write;

use netloom_routing::preset as routing;
use netloom_scenario::{Chapter, Problem, reference, suggest};
use netloom_transport::preset as transport;
use netloom_units::kind::{FieldInfo, Kind, KindInfo, ValueInfo};
use netloom_units::names::shorten;

use crate::args::ListArgs;
use crate::failure::Failure;

/// Shows all axes in short, or one thing in full: an axis, a kind, a preset, a field, or a word that is a field's value.
pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let chapters = chapters();
    let Some(name) = args.name.as_deref() else {
        return match args.json {
            true => print_json(&chapters, |_, _| true),
            false => print_overview(&chapters),
        };
    };
    // A path such as `workload` is asked for only where nothing is called so, a field only where no path is, and so on.
    let entries = || chapters.iter().flat_map(|c| c.entries.iter().map(move |entry| (c, entry)));
    let wanted = |chapter: &Chapter, entry: &KindInfo| entry.name == name || chapter.name == name;
    if entries().any(|(chapter, entry)| wanted(chapter, entry)) {
        return match args.json {
            true => print_json(&chapters, wanted),
            false => print_full(&chapters, wanted),
        };
    }
    let below = |chapter: &Chapter, _: &KindInfo| chapter.path == name;
    if entries().any(|(chapter, entry)| below(chapter, entry)) {
        return match args.json {
            true => print_json(&chapters, below),
            false => print_full(&chapters, below),
        };
    }
    let places = places(&chapters);
    let is_asked = |place: &Place| {
        place.path == name || place.field.name == name || place.path.ends_with(&format!(".{name}"))
    };
    let mut fields: Vec<&Place> = places.iter().filter(|place| is_asked(place)).collect();
    if fields.is_empty() {
        fields =
            places.iter().filter(|place| place.field.values.iter().any(|value| value.name == name)).collect();
    }
    if fields.is_empty() {
        return Err(unknown(name, &chapters, &places).into());
    }
    match args.json {
        true => print_fields_json(&fields),
        false => print_fields(&fields, name),
    }
}

/// The reference of scenarios, and the kinds that only options of commands take.
fn chapters() -> Vec<Chapter> {
    fn option<K: Kind>(name: &'static str, path: &'static str, doc: &'static str) -> Chapter {
        Chapter { name, path, doc, choice: Some("kind"), entries: K::kinds() }
    }
    let mut chapters = reference();
    let doc = "Which paths the traffic may take, for `netloom throughput` and studies of networks.";
    chapters.push(option::<netloom_throughput::Routing>("throughput --routing", "--routing", doc));
    let doc = "The traffic a network is asked to carry, for `netloom throughput` and studies of networks.";
    chapters.push(option::<netloom_throughput::Traffic>("throughput --traffic", "--traffic", doc));
    chapters
}

/// Where a field is written.
struct Place<'a> {
    chapter: &'a Chapter,
    entry: &'a KindInfo,
    /// Its dotted path in a scenario, e.g. `fabric.ecn.kmin`.
    path: String,
    field: &'a FieldInfo,
}

/// Every field of the reference, those of tables within tables too.
fn places(chapters: &[Chapter]) -> Vec<Place<'_>> {
    fn add<'a>(
        places: &mut Vec<Place<'a>>,
        (chapter, entry): (&'a Chapter, &'a KindInfo),
        above: &str,
        fields: &'a [FieldInfo],
    ) {
        for field in fields {
            let path = format!("{above}.{}", field.name);
            add(places, (chapter, entry), &path, &field.fields);
            places.push(Place { chapter, entry, path, field });
        }
    }
    let mut places = Vec::new();
    for chapter in chapters {
        for entry in &chapter.entries {
            add(&mut places, (chapter, entry), chapter.path, &entry.fields);
        }
    }
    places
}

fn unknown(name: &str, chapters: &[Chapter], places: &[Place]) -> Problem {
    let entries = chapters.iter().flat_map(|chapter| chapter.entries.iter().map(|entry| entry.name));
    let names = chapters.iter().flat_map(|chapter| [chapter.name, chapter.path]).chain(entries);
    let fields = places.iter().map(|place| place.field.name.as_str());
    let values = places.iter().flat_map(|place| place.field.values.iter().map(|value| value.name.as_str()));
    let problem = Problem::new("", format!("nothing that can be written is called `{}`", shorten(name)));
    problem.help(suggest(name, names.chain(fields).chain(values)))
}

/// Shows fields in full, those that are alike (the same field of several kinds) once.
fn print_fields(fields: &[&Place], name: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let mut alike: Vec<(&FieldInfo, Vec<String>)> = Vec::new();
    for place in fields {
        let kind = match place.chapter.choice {
            Some(choice) => format!(" with {choice} = {:?}", place.entry.name),
            None => String::new(),
        };
        let whereabouts = format!("{}{kind}", place.path);
        match alike.iter_mut().find(|(field, _)| *field == place.field) {
            Some((_, all)) => all.push(whereabouts),
            None => alike.push((place.field, vec![whereabouts])),
        }
    }
    for (field, whereabouts) in alike {
        for whereabouts in whereabouts {
            writeln!(out, "{whereabouts}")?;
        }
        print_field(&mut out, field, 2)?;
        if let Some(value) = field.values.iter().find(|value| value.name == name) {
            writeln!(
                out,
                "\n  {:?} means: {}",
                value.name,
                if value.doc.is_empty() { "see above" } else { &value.doc }
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A field with its default, its words and the fields of its table.
fn print_field(out: &mut impl Write, field: &FieldInfo, spaces: usize) -> std::io::Result<()> {
    let default = match field.default.as_str() {
        "" => String::new(),
        default => format!(" = {default}"),
    };
    writeln!(out, "\n{:spaces$}{}{default}\n{}", "", field.name, indent(&field.doc, spaces + 4))?;
    let explained = field.values.iter().filter(|value| !value.doc.is_empty());
    for value in explained {
        writeln!(out, "{}", indent(&format!("{:?}: {}", value.name, value.doc), spaces + 6))?;
    }
    let bare: Vec<String> = field
        .values
        .iter()
        .filter(|value| value.doc.is_empty())
        .map(|value| format!("{:?}", value.name))
        .collect();
    if !bare.is_empty() {
        writeln!(out, "{}", indent(&format!("one of {}", bare.join(", ")), spaces + 6))?;
    }
    field.fields.iter().try_for_each(|inner| print_field(out, inner, spaces + 4))
}

fn print_fields_json(fields: &[&Place]) -> Result<(), Failure> {
    let place = |place: &&Place| {
        let mut json = field_json(place.field);
        json["path"] = place.path.clone().into();
        json["axis"] = place.chapter.name.into();
        json["of"] = place.entry.name.into();
        json
    };
    print(&fields.iter().map(place).collect::<Vec<_>>())
}

fn field_json(field: &FieldInfo) -> serde_json::Value {
    let default: Option<serde_json::Value> = serde_json::from_str(&field.default).ok();
    let value = |value: &ValueInfo| serde_json::json!({ "name": value.name, "doc": value.doc });
    serde_json::json!({
        "name": field.name,
        "doc": field.doc,
        "default": default,
        "values": field.values.iter().map(value).collect::<Vec<_>>(),
        "fields": field.fields.iter().map(field_json).collect::<Vec<_>>(),
    })
}

fn print(json: &[serde_json::Value]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(json).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
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
        "netloom list NAME shows the parameters, defaults and sources of an axis, a kind, a preset, a field or a value."
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
                print_field(&mut out, field, 2)?;
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
                "fields": entry.fields.iter().map(field_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    print(&entries)
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
