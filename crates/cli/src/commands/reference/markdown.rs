//! From doc comments and JSON to Markdown and TOML.

use serde_json::Value;

/// The folder of the repository whose pages doc comments name, e.g. `docs/speed.md`.
const DOCS: &str = "docs/";

/// A text as a paragraph: what reads as HTML is escaped outside of code.
pub(super) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let escaped =
        parts.map(|(at, part)| if at % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() });
    escaped.collect::<Vec<_>>().join("`")
}

/// A text as a cell of a table or an entry of a list: one line, with bars escaped.
pub(super) fn cell(text: &str) -> String {
    prose(&text.split_whitespace().collect::<Vec<_>>().join(" ")).replace('|', "\\|")
}

/// A text as paragraphs in which pages of the documentation, written as code, are links. `above` is how many folders the documentation
/// lies above the page.
pub(super) fn linked(text: &str, above: usize) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match part.strip_prefix(DOCS) {
        Some(page) if at % 2 == 1 && page.ends_with(".md") && !page.contains(' ') => {
            let name = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".md");
            format!("\u{0}[{}]({}{page})\u{0}", name.replace('-', " "), "../".repeat(above))
        }
        _ => part.to_owned(),
    });
    // A link is no code: the marks around it go.
    prose(&parts.collect::<Vec<_>>().join("`").replace("`\u{0}", "").replace("\u{0}`", ""))
}

/// A JSON value as TOML in one line; none for what TOML cannot say.
pub(super) fn toml_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(toml_value).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Value::Object(table) => {
            let fields =
                table.iter().filter_map(|(key, value)| Some(format!("{key} = {}", toml_value(value)?)));
            let fields: Vec<String> = fields.collect();
            Some(if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) })
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn markup_is_escaped_outside_of_code() {
        assert_eq!(prose("a < b, `c < d`"), "a &lt; b, `c < d`");
        assert_eq!(cell("a |\n b"), "a \\| b");
        assert_eq!(linked("see `docs/speed.md`, `x`", 2), "see [speed](../../speed.md), `x`");
        assert_eq!(linked("`docs/tutorial/own-scheme.md`", 1), "[own scheme](../tutorial/own-scheme.md)");
    }

    #[test]
    fn defaults_are_toml() {
        let value = json!({ "kind": "hash", "values": [1, 2.5], "absent": null });
        let text = toml_value(&value).unwrap();
        let read: toml::Value = toml::from_str::<toml::Table>(&format!("x = {text}")).unwrap()["x"].clone();
        assert_eq!(read["values"][1].as_float(), Some(2.5));
        assert_eq!(toml_value(&Value::Null), None);
    }
}
