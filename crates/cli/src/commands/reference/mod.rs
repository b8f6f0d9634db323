//! `netloom list --markdown DIR`: the reference as Markdown pages, one per axis and one per kind, for the documentation.

mod combinations;
mod markdown;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use netloom_scenario::Chapter;
use netloom_units::kind::{FieldInfo, KindInfo, ValueInfo};
use rayon::prelude::*;

use self::markdown::{cell, linked, prose, toml_value};
use super::list::{chapters, first_sentence, point};
use crate::failure::Failure;
use crate::files::unwritable;

/// Writes the pages to a folder, which is made if it is missing; pages of kinds lie in a folder named as their axis.
pub(crate) fn write_pages(folder: &Path) -> Result<(), Failure> {
    let chapters = chapters();
    let of_kinds = chapters.iter().filter(|chapter| chapter.choice.is_some());
    let kinds: Vec<_> =
        of_kinds.flat_map(|chapter| chapter.entries.iter().map(move |entry| (chapter, entry))).collect();
    let mut pages = vec![("index.md".to_owned(), index(&chapters))];
    pages.extend(chapters.iter().map(|chapter| (format!("{}.md", slug(chapter)), axis_page(chapter))));
    // On all cores, as a page tries hundreds of combinations.
    let of_kinds =
        kinds.par_iter().map(|(chapter, entry)| Ok((kind_file(chapter, entry), kind_page(chapter, entry)?)));
    pages.extend(of_kinds.collect::<Result<Vec<_>, Failure>>()?);
    for (name, text) in &pages {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
        // Hundreds of small files that can be made again: none is worth waiting for the disk.
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
    }
    let pages = pages.len();
    writeln!(crate::show::out(), "{pages} pages in {}", folder.display())?;
    Ok(())
}

/// The name of an axis in files and addresses: its path, e.g. `routing-selector`.
fn slug(chapter: &Chapter) -> String {
    let path = chapter.path.trim_start_matches("--").replace(['.', '_'], "-");
    match (chapter.file, chapter.choice, path.as_str()) {
        ("options", ..) => format!("option-{path}"),
        (_, Some("preset"), path) => format!("{path}-preset"),
        (_, Some("size"), path) => format!("{path}-size"),
        (_, _, "") => chapter.name.to_owned(),
        (_, None, _) if chapter.name == "workload-options" => chapter.name.to_owned(),
        (_, _, path) => path.to_owned(),
    }
}

/// The file of a kind's page, from the reference's folder.
fn kind_file(chapter: &Chapter, entry: &KindInfo) -> String {
    format!("{}/{}.md", slug(chapter), entry.name)
}

/// How an axis is titled.
fn title(chapter: &Chapter) -> String {
    match (chapter.file, chapter.choice, chapter.path) {
        ("options", ..) => format!("`{}`", chapter.name),
        (_, Some("preset"), path) => format!("`{path}.preset`"),
        (_, Some("size"), path) => format!("`{path}.size`"),
        (file, _, "") => format!("The head of a {file}"),
        (_, _, path) if chapter.name == "workload-options" => format!("`{path}`: fields of every kind"),
        (_, _, path) => format!("`{path}`"),
    }
}

fn index(chapters: &[Chapter]) -> String {
    let mut text = String::from(
        "# All fields and kinds\n\nEvery field of a scenario, a study and the options that take kinds, written by `netloom list --markdown` from \
         netloom itself. `netloom list NAME` shows the same in a terminal.\n",
    );
    let parts =
        [("scenario", "In a scenario"), ("study", "In a study"), ("options", "In options of commands")];
    for (file, heading) in parts {
        _ = write!(
            text,
            "\n## {heading}\n\n| table or field | what it decides | kinds |\n| --- | --- | --- |\n"
        );
        for chapter in chapters.iter().filter(|chapter| chapter.file == file) {
            let kinds: Vec<String> = match chapter.choice {
                Some(_) => (chapter.entries.iter())
                    .map(|entry| format!("[`{}`]({})", entry.name, kind_file(chapter, entry)))
                    .collect(),
                None => Vec::new(),
            };
            let (title, page) = (title(chapter), slug(chapter));
            _ = writeln!(text, "| [{title}]({page}.md) | {} | {} |", cell(chapter.doc), kinds.join(", "));
        }
    }
    text
}

fn axis_page(chapter: &Chapter) -> String {
    let mut text = format!("# {}\n\n{}\n", title(chapter), prose(chapter.doc));
    match chapter.choice {
        Some(choice) => {
            _ = write!(text, "\n| {choice} | |\n| --- | --- |\n");
            for entry in &chapter.entries {
                let page = kind_file(chapter, entry);
                _ = writeln!(text, "| [`{}`]({page}) | {} |", entry.name, cell(&first_sentence(&entry.doc)));
            }
        }
        None => {
            for entry in &chapter.entries {
                // The description of a table that has a chapter of its own repeats what the chapter says.
                if entry.doc != chapter.doc {
                    _ = write!(text, "\n{}\n", linked(&entry.doc, 1));
                }
                fields(&mut text, chapter, &entry.fields, 1);
            }
        }
    }
    text
}

fn kind_page(chapter: &Chapter, entry: &KindInfo) -> Result<String, Failure> {
    let mut text =
        format!("# `{}`\n\nA value of [{}](../{}.md).\n", entry.name, title(chapter), slug(chapter));
    _ = write!(text, "\n{}\n", linked(&entry.doc, 2));
    if let Some(point) = point(chapter, entry)? {
        _ = write!(text, "\n## What it stands for\n\n```toml\n[{}]\n{point}```\n", chapter.path);
    } else if let Some(written) = written(chapter, entry) {
        _ = write!(text, "\n## With its defaults\n\n```toml\n{written}```\n");
    }
    if !entry.fields.is_empty() {
        text.push_str("\n## Fields\n");
        fields(&mut text, chapter, &entry.fields, 2);
    }
    text.push_str(&combinations::section(chapter, entry));
    Ok(text)
}

/// A kind's table with its defaults; fields that are required or absent by default stand in a comment.
fn written(chapter: &Chapter, entry: &KindInfo) -> Option<String> {
    let choice = chapter.choice.filter(|&choice| choice == "kind" && chapter.file != "options")?;
    let brackets = if chapter.path == "faults" { ("[[", "]]") } else { ("[", "]") };
    let mut text = format!("{}{}{}\n{choice} = {:?}\n", brackets.0, chapter.path, brackets.1, entry.name);
    for field in &entry.fields {
        let default = serde_json::from_str::<serde_json::Value>(&field.default).ok();
        match default.as_ref().and_then(toml_value) {
            Some(value) => _ = writeln!(text, "{} = {value}", field.name),
            None if field.is_required => _ = writeln!(text, "# {} = …   (required)", field.name),
            None => _ = writeln!(text, "# {} = …   (absent)", field.name),
        }
    }
    Some(text)
}

/// Fields as sections: the default, what is accepted, what it means, its words and the fields of its table.
fn fields(text: &mut String, chapter: &Chapter, fields: &[FieldInfo], above: usize) {
    // Presets give the fields of `routing` and `transport` their defaults, and a whole schema calls them required.
    let says_required = chapter.choice.is_some() || chapter.path.starts_with("jobs");
    for field in fields {
        let default = match serde_json::from_str::<serde_json::Value>(&field.default).ok() {
            Some(value) => toml_value(&value).map(|value| format!("default `{value}`")),
            None if field.is_required && says_required => Some("required".to_owned()),
            None => None,
        };
        let accepts = Some(field.accepts.clone()).filter(|accepts| !accepts.is_empty());
        let facts: Vec<String> = [accepts, default].into_iter().flatten().collect();
        _ = write!(text, "\n### `{}`\n", field.name);
        if !facts.is_empty() {
            _ = write!(text, "\n*{}*\n", facts.join("; "));
        }
        _ = write!(text, "\n{}\n", linked(&field.doc, above));
        words(text, field, 0);
        inner(text, field, 0, above);
    }
}

/// The words of a field, as a list.
fn words(text: &mut String, field: &FieldInfo, depth: usize) {
    if field.values.is_empty() {
        return;
    }
    if depth == 0 {
        text.push('\n');
    }
    let spaces = "    ".repeat(depth);
    let is_bare = |value: &ValueInfo| value.doc.is_empty() || value.doc == format!("`{}`", value.name);
    let bare: Vec<String> = (field.values.iter())
        .filter(|value| is_bare(value))
        .map(|value| format!("`\"{}\"`", value.name))
        .collect();
    for value in field.values.iter().filter(|value| !is_bare(value)) {
        _ = writeln!(text, "{spaces}- `\"{}\"`: {}", value.name, cell(&value.doc));
    }
    if !bare.is_empty() {
        _ = writeln!(text, "{spaces}- one of {}", bare.join(", "));
    }
}

/// The fields of a field's table, as a list.
fn inner(text: &mut String, field: &FieldInfo, depth: usize, above: usize) {
    if depth == 0 && !field.fields.is_empty() {
        text.push('\n');
    }
    let spaces = "    ".repeat(depth);
    for inside in &field.fields {
        let default = match inside.default.as_str() {
            "" => String::new(),
            default => format!(" = `{default}`"),
        };
        let doc = linked(&inside.doc.replace('\n', " "), above);
        _ = writeln!(text, "{spaces}- `{}`{default}: {doc}", inside.name);
        if inside.values != field.values {
            words(text, inside, depth + 1);
        }
        inner(text, inside, depth + 1, above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_files_of_their_own() {
        let chapters = chapters();
        let mut slugs: Vec<String> = chapters.iter().map(slug).collect();
        slugs.sort();
        let all = slugs.len();
        slugs.dedup();
        assert_eq!(slugs.len(), all, "{slugs:?}");
        assert!(slugs.iter().all(|slug| slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    }

    #[test]
    fn a_page_holds_fields_defaults_units_and_words() {
        let chapters = chapters();
        let chapter = chapters.iter().find(|chapter| chapter.path == "routing.selector").unwrap();
        let drill = chapter.entries.iter().find(|entry| entry.name == "drill").unwrap();
        let page = kind_page(chapter, drill).unwrap();
        for part in [
            "# `drill`",
            "kind = \"drill\"\nsamples = 2\n",
            "### `memory`",
            "default `1`",
            "SIGCOMM",
            "- `\"queued\"`: ",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(index(&chapters).contains("| [`routing.selector`](routing-selector.md) |"));
        assert!(axis_page(chapter).contains("| [`drill`](routing-selector/drill.md) |"));
    }

    /// Links between pages lead somewhere, and nothing but Markdown is left of the comments' markup.
    #[test]
    fn pages_have_no_markup_of_rustdoc() {
        let chapters = chapters();
        for chapter in &chapters {
            for page in chapter.entries.iter().map(|entry| linked(&entry.doc, 2)).chain([axis_page(chapter)])
            {
                assert!(!page.contains("[`") || page.contains("]("), "{page}");
                assert!(!page.contains("crate::") && !page.contains("Self::"), "{page}");
            }
        }
    }
}
