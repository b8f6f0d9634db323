//! `netloom list`: everything a user may write, by name or by a word to search for.

mod search;

use std::io::Write;

use netloom_routing::preset as routing;
use netloom_scenario::{Chapter, Problem, reference};
use netloom_transport::preset as transport;
use netloom_units::kind::{FieldInfo, Kind, KindInfo, ValueInfo};
use netloom_units::names::{nearest, shorten};
use netloom_workload::clusters;

use crate::args::ListArgs;
use crate::failure::Failure;

/// Shows all axes in short, or one thing in full: an axis, a kind, a preset, a field, or a word that is a field's value.
pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    if let Some(folder) = &args.markdown {
        return super::reference::write_pages(folder);
    }
    let chapters = chapters();
    let Some(name) = args.name.as_deref() else {
        return match args.json {
            true => print_json(&entries(&chapters, |_, _| true)),
            false => print_overview(&chapters),
        };
    };
    let places = places(&chapters);
    let found = match find(name, &chapters, &places) {
        Ok(found) => found,
        Err(unknown) => {
            let hits = search::search(name, &chapters, &places);
            if hits.is_empty() {
                return Err(unknown.into());
            }
            return if args.json { search::print_json(&hits) } else { search::print(&hits, name) };
        }
    };
    match (found, args.json) {
        (Found::Everything, false) => print_overview(&chapters),
        (Found::Everything, true) => print_json(&entries(&chapters, |_, _| true)),
        (Found::Entries(found), false) => print_full(&found),
        (Found::Entries(found), true) => print_json(&found),
        (Found::Fields(found), false) => print_fields(&found, name),
        (Found::Fields(found), true) => print_fields_json(&found),
    }
}

/// What a word stands for.
enum Found<'a> {
    /// Something of every axis.
    Everything,
    Entries(Vec<Entry<'a>>),
    Fields(Vec<&'a Place<'a>>),
}

/// An entry, and where it belongs.
type Entry<'a> = (&'a Chapter, &'a KindInfo);

fn entries(chapters: &[Chapter], is_wanted: impl Fn(&Chapter, &KindInfo) -> bool) -> Vec<Entry<'_>> {
    let all = chapters.iter().flat_map(|chapter| chapter.entries.iter().map(move |entry| (chapter, entry)));
    all.filter(|(chapter, entry)| is_wanted(chapter, entry)).collect()
}

/// Looks a word up: names first, then the paths of tables, then fields, then values of fields.
fn find<'a>(name: &str, chapters: &'a [Chapter], places: &'a [Place<'a>]) -> Result<Found<'a>, Problem> {
    if name == "kind" {
        return Ok(Found::Everything);
    }
    let named = entries(chapters, |chapter, entry| entry.name == name || chapter.name == name);
    if !named.is_empty() {
        return Ok(Found::Entries(named));
    }
    let below = entries(chapters, |chapter, _| chapter.path == name);
    if !below.is_empty() {
        return Ok(Found::Entries(below));
    }
    let is_asked = |place: &&Place| {
        place.path == name || place.field.name == name || place.path.ends_with(&format!(".{name}"))
    };
    let fields: Vec<&Place> = places.iter().filter(is_asked).collect();
    if !fields.is_empty() {
        return Ok(Found::Fields(fields));
    }
    let has_value = |place: &&Place| place.field.values.iter().any(|value| value.name == name);
    let fields: Vec<&Place> = places.iter().filter(has_value).collect();
    if fields.is_empty() { Err(unknown(name, chapters, places)) } else { Ok(Found::Fields(fields)) }
}

/// The reference of scenarios and studies, and the kinds that only options of commands take, in plain text.
pub(super) fn chapters() -> Vec<Chapter> {
    fn plain_field(field: &mut FieldInfo) {
        field.doc = plain(&field.doc);
        field.values.iter_mut().for_each(|value| value.doc = plain(&value.doc));
        field.fields.iter_mut().for_each(plain_field);
    }
    let mut chapters = written_chapters();
    for entry in chapters.iter_mut().flat_map(|chapter| &mut chapter.entries) {
        entry.doc = plain(&entry.doc);
        entry.fields.iter_mut().for_each(plain_field);
    }
    chapters
}

/// A text without the links of Rust's documentation: of `[text](target)` the text, of `[Target]` in backquotes its last word.
fn plain(doc: &str) -> String {
    let mut text = String::with_capacity(doc.len());
    let mut rest = doc;
    while let Some(start) = rest.find('[') {
        text += &rest[..start];
        let inner = &rest[start + 1..];
        let (label, is_code) = match inner.strip_prefix('`') {
            Some(code) => (code.split_once("`]"), true),
            None => (inner.split_once("]("), false),
        };
        match label {
            Some((label, after)) if is_code && !label.contains(['`', ' ']) => {
                let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
                text += &format!("`{}`", label.rsplit("::").next().unwrap_or(label));
                rest = target.map_or(after, |(_, after)| after);
            }
            Some((label, after)) if !is_code && !label.contains(['[', '\n']) && after.contains(')') => {
                text += label;
                rest = after.split_once(')').map_or("", |(_, after)| after);
            }
            _ => {
                text.push('[');
                rest = inner;
            }
        }
    }
    text + rest
}

fn written_chapters() -> Vec<Chapter> {
    fn option<K: Kind>(name: &'static str, path: &'static str, doc: &'static str) -> Chapter {
        Chapter { file: "options", name, path, doc, choice: Some("kind"), entries: K::kinds() }
    }
    let mut chapters = reference();
    chapters.extend(netloom_study::reference());
    let doc = "Which paths the traffic may take, for `netloom throughput` and studies of networks.";
    chapters.push(option::<netloom_throughput::Routing>("throughput --routing", "--routing", doc));
    let doc = "The traffic that a network carries, for `netloom throughput` and studies of networks.";
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
            let dot = if above.is_empty() { "" } else { "." };
            let path = format!("{above}{dot}{}", field.name);
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
    let names = names.filter(|name| !name.is_empty());
    let fields = places.iter().map(|place| place.field.name.as_str());
    let values = places.iter().flat_map(|place| place.field.values.iter().map(|value| value.name.as_str()));
    let problem = Problem::new(
        "",
        format!("no kind, preset, field or value has the name `{}` or mentions it", shorten(name)),
    );
    // There are hundreds of names: too many to list.
    match nearest(name, names.chain(fields).chain(values)) {
        Some(nearest) => {
            problem.help(format!("did you mean `{nearest}`? `netloom list` alone shows all kinds"))
        }
        None => problem.help("`netloom list` alone shows all kinds"),
    }
}

/// Shows fields in full, those that are alike (the same field of several kinds) once.
fn print_fields(fields: &[&Place], name: &str) -> Result<(), Failure> {
    let mut out = crate::show::out();
    let mut alike: Vec<(&FieldInfo, Vec<String>)> = Vec::new();
    for place in fields {
        let kind = match place.chapter.choice {
            Some(choice) => format!(" with {choice} = {:?}", place.entry.name),
            None if place.chapter.file == "study" => " in a study".to_owned(),
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
    writeln!(crate::show::out(), "{text}")?;
    Ok(())
}

fn print_overview(chapters: &[Chapter]) -> Result<(), Failure> {
    let mut out = crate::show::out();
    let mut file = "scenario";
    for chapter in chapters {
        if chapter.file == "study" && file != "study" {
            writeln!(out, "In a study:\n")?;
        }
        file = chapter.file;
        match chapter.path {
            "" => writeln!(out, "{}", crate::show::wrap(chapter.doc, 0))?,
            path => writeln!(out, "{}", crate::show::wrap(&format!("[{path}] {}", chapter.doc), 2))?,
        }
        for entry in &chapter.entries {
            match chapter.choice {
                Some(choice) => {
                    let name = format!("  {choice} = {:<22} ", format!("{:?}", entry.name));
                    let hang = name.chars().count();
                    writeln!(
                        out,
                        "{}",
                        crate::show::wrap(&format!("{name}{}", first_sentence(&entry.doc)), hang)
                    )?;
                }
                None => {
                    let names: Vec<&str> = entry.fields.iter().map(|field| field.name.as_str()).collect();
                    writeln!(out, "{}", crate::show::wrap(&format!("  fields: {}", names.join(", ")), 10))?;
                }
            }
        }
        writeln!(out)?;
    }
    let more = "netloom list NAME explains an axis, a kind, a preset, a field or a value; any other word is searched for.";
    writeln!(out, "{}", crate::show::wrap(more, 0))?;
    Ok(())
}

fn print_full(entries: &[Entry]) -> Result<(), Failure> {
    let mut out = crate::show::out();
    for (chapter, entry) in entries {
        match (chapter.choice, chapter.path) {
            (Some(choice), path) => writeln!(out, "[{path}] {choice} = {:?}", entry.name)?,
            (None, "") => {}
            (None, path) => writeln!(out, "[{path}]")?,
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
    Ok(())
}

/// What a preset expands to.
pub(super) fn point(chapter: &Chapter, entry: &KindInfo) -> Result<Option<String>, Failure> {
    let point = match (chapter.choice, chapter.path) {
        (Some("preset"), "routing") => {
            routing::find(entry.name).map(|preset| toml::to_string(&preset.routing()))
        }
        (Some("preset"), "transport") => {
            transport::find(entry.name).map(|preset| toml::to_string(&preset.transport()))
        }
        (Some("preset"), "cluster") => {
            clusters::find(entry.name).map(|preset| toml::to_string(&preset.expand()))
        }
        _ => None,
    };
    point.transpose().map_err(|error| Failure::Bug(error.to_string()))
}

fn print_json(entries: &[Entry]) -> Result<(), Failure> {
    let json = |(chapter, entry): &Entry| {
        serde_json::json!({
            "file": chapter.file,
            "axis": chapter.name,
            "path": chapter.path,
            "name": entry.name,
            "doc": entry.doc,
            "fields": entry.fields.iter().map(field_json).collect::<Vec<_>>(),
        })
    };
    print(&entries.iter().map(json).collect::<Vec<_>>())
}

/// What stands before the first full stop that ends a sentence: outside brackets, and not after an initial.
pub(super) fn first_sentence(doc: &str) -> String {
    let flat = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = flat.match_indices(". ").map(|(end, _)| end);
    let is_end = |&end: &usize| {
        let before = &flat[..end];
        let word = before.rsplit(' ').next().unwrap_or_default();
        before.matches('(').count() == before.matches(')').count() && word.chars().count() > 1
    };
    let end = ends.into_iter().find(is_end);
    end.map_or(flat.clone(), |end| flat[..=end].to_owned())
}

/// A text behind some spaces; on a terminal its paragraphs are as wide as that allows.
fn indent(text: &str, spaces: usize) -> String {
    match crate::show::width() {
        Some(width) => indent_within(text, spaces, width),
        None => indent_lines(text, spaces),
    }
}

fn indent_within(text: &str, spaces: usize, width: usize) -> String {
    let mut paragraphs: Vec<String> = vec![String::new()];
    let mut is_example = false;
    for line in text.trim_end().lines() {
        if line.starts_with("```") {
            is_example = !is_example;
            continue;
        }
        if is_example {
            paragraphs.push(format!("  {line}"));
            continue;
        }
        // Lists, tables and indented text keep their lines.
        let begins =
            line.trim().is_empty() || line.starts_with([' ', '-', '|', '*', '[']) || line.contains(" = ");
        match paragraphs.last_mut() {
            Some(last) if !begins && !last.trim().is_empty() => {
                last.push(' ');
                last.push_str(line);
            }
            _ => paragraphs.push(line.to_owned()),
        }
    }
    let wrapped = paragraphs.iter().skip_while(|paragraph| paragraph.is_empty()).map(|paragraph| {
        let line = indent_lines(paragraph, spaces);
        crate::show::wrap_within(&line, width, spaces)
    });
    wrapped.collect::<Vec<_>>().join("\n")
}

fn indent_lines(text: &str, spaces: usize) -> String {
    let indented = |line: &str| if line.is_empty() { String::new() } else { format!("{:spaces$}{line}", "") };
    let lines: Vec<String> = text.trim_end().lines().map(indented).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The names of fields and the words that a schema allows.
    fn words(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(table) => {
                let fields = table.get("properties").and_then(Value::as_object);
                found.extend(fields.into_iter().flat_map(|fields| fields.keys().cloned()));
                let choices = table.get("enum").and_then(Value::as_array).into_iter().flatten();
                found.extend(choices.chain(table.get("const")).filter_map(Value::as_str).map(str::to_owned));
                table.values().for_each(|inner| words(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| words(inner, found)),
            _ => {}
        }
    }

    #[test]
    fn a_sentence_ends_outside_brackets() {
        let doc = "Trees (SPAIN, sec.\n4, by J. Mudigonda). Others. More.";
        assert_eq!(first_sentence(doc), "Trees (SPAIN, sec. 4, by J. Mudigonda).");
        assert_eq!(first_sentence("By J. Yen, one. Two."), "By J. Yen, one.");
        assert_eq!(first_sentence("No stop"), "No stop");
    }

    /// Texts are written for Rust's documentation, too; people read them without its syntax.
    #[test]
    fn texts_are_plain() {
        fn texts<'a>(field: &'a FieldInfo, found: &mut Vec<(&'a str, &'a str)>) {
            found.push((&field.name, &field.doc));
            found.extend(field.values.iter().map(|value| (value.name.as_str(), value.doc.as_str())));
            field.fields.iter().for_each(|inner| texts(inner, found));
        }
        let chapters = chapters();
        let mut all = Vec::new();
        for chapter in &chapters {
            all.push((chapter.name, chapter.doc));
            for entry in &chapter.entries {
                all.push((entry.name, entry.doc.as_str()));
                entry.fields.iter().for_each(|field| texts(field, &mut all));
            }
        }
        assert!(all.len() > 700, "{}", all.len());
        for (name, text) in all {
            // Public C++ code is cited with its scopes, functions of studies with their calls; the fences of examples are not printed.
            for syntax in ["[`", "](", "Self::", "crate::", "super::", "u32::", "u16::", "u64::"] {
                assert!(!text.contains(syntax), "{name}: {syntax} in {text}");
            }
        }
        assert_eq!(
            plain("See [`Map::Random`], [the page](a.md) and [`x`](super::x); a[3] `[b]`."),
            "See `Random`, the page and `x`; a[3] `[b]`."
        );
    }

    #[test]
    fn examples_keep_their_lines_without_their_fences() {
        let text = "Such as:\n\n```toml\n[a]\nb = 1\n```\n\nAnd\nso on.";
        assert_eq!(indent_within(text, 2, 20), "  Such as:\n\n    [a]\n    b = 1\n\n  And so on.");
    }

    #[test]
    fn paragraphs_are_as_wide_as_the_terminal() {
        let text = "One two three\nfour five.\n\nSix:\n- a list\n- of two";
        let expected = "  One two three four\n  five.\n\n  Six:\n  - a list\n  - of two";
        assert_eq!(indent_within(text, 2, 20), expected);
    }

    /// What an editor completes, `netloom list` explains.
    #[test]
    fn every_word_of_scenarios_and_studies_is_found() {
        let chapters = chapters();
        let places = places(&chapters);
        let mut all = Vec::new();
        words(&netloom_scenario::schema(), &mut all);
        words(&netloom_study::schema(), &mut all);
        all.sort();
        all.dedup();
        assert!(all.len() > 400, "{}", all.len());
        let missing: Vec<&String> =
            all.iter().filter(|word| find(word, &chapters, &places).is_err()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
