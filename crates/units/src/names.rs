//! Words in messages: the nearest valid name, and long input cut short.

use std::borrow::Cow;

/// Names that a message lists at most.
const MOST_NAMES: usize = 10;

/// Characters of the user's input that a message repeats at most.
const MOST_CHARACTERS: usize = 60;

/// How alike two names must be (Jaro–Winkler, 0 to 1) for one to be suggested for the other.
const ALIKE: f64 = 0.75;

/// Names of fields, values and columns that were others until a release: the old one and the present one.
const RENAMED: [(&str, &str); 13] = [
    ("ageing", "flow_timeout"),
    ("entries", "max_flow_entries"),
    ("spread", "nic_selection"),
    ("share", "link_fraction"),
    ("fraction", "rate_factor"),
    ("signal", "notify-source"),
    ("measures", "measured_at"),
    ("stops", "pauses"),
    ("draw", "variant"),
    ("idle_fct_ps", "ideal_fct_ps"),
    ("deviations", "non_default_decisions"),
    ("deviated", "non_default"),
    ("returns", "returned_to_sender"),
];

/// Advice for a name that does not exist: what it is called now, or the nearest valid one, and the others, the nearest ten if there are more.
///
/// ```
/// use netloom_units::names::suggest;
/// assert_eq!(suggest("draw", ["intensity", "variant"]), "`draw` is called `variant` now");
/// assert_eq!(suggest("gapp", ["gap", "count"]), "did you mean `gap`? valid here: gap, count");
/// assert_eq!(suggest("x", ["gap", "count"]), "valid here: gap, count");
/// ```
pub fn suggest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    let found = shorten(found).to_lowercase();
    let mut ranked: Vec<(f64, &str)> = Vec::new();
    for name in valid {
        if RENAMED.contains(&(found.as_str(), name)) {
            return format!("`{found}` is called `{name}` now");
        }
        if !ranked.iter().any(|&(_, known)| known == name) {
            ranked.push((likeness(&found, name), name));
        }
    }
    let Some(&(score, nearest)) = ranked.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return "nothing can be written here".to_owned();
    };
    let more = ranked.len().saturating_sub(MOST_NAMES);
    if more > 0 {
        // The sort keeps the order of equally near names.
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.truncate(MOST_NAMES);
    }
    let list = ranked.iter().map(|&(_, name)| name).collect::<Vec<_>>().join(", ");
    let list = if more > 0 { format!("{list} and {more} more") } else { list };
    match score > ALIKE {
        true => format!("did you mean `{nearest}`? valid here: {list}"),
        false => format!("valid here: {list}"),
    }
}

/// How alike a name and a lower-case one are, 0 to 1.
fn likeness(found: &str, name: &str) -> f64 {
    strsim::jaro_winkler(found, &name.to_lowercase())
}

/// The valid name that is most like another one, if any is like enough.
pub fn nearest<'a>(found: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = shorten(found).to_lowercase();
    let scored = valid.into_iter().map(|name| (likeness(&found, name), name));
    let (score, name) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > ALIKE).then_some(name)
}

/// Input as a message repeats it: cut where it is long, with what is left out counted.
///
/// ```
/// use netloom_units::names::shorten;
/// assert_eq!(shorten("8 parsecs"), "8 parsecs");
/// assert!(shorten(&"x".repeat(1_000_000)).ends_with("x… (999940 more characters)"));
/// ```
pub fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_CHARACTERS) {
        // A few characters more say no less than their number.
        Some((end, _)) if text[end..].chars().nth(20).is_some() => {
            format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()).into()
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_names_at_most_are_listed_the_nearest_first() {
        let names: Vec<String> = (0..200).map(|i| format!("name-{i}")).collect();
        let advice = suggest("name-77x", names.iter().map(String::as_str));
        assert!(advice.starts_with("did you mean `name-77`? valid here: name-77, "), "{advice}");
        assert!(advice.ends_with(" and 190 more") && advice.matches(", ").count() == 9, "{advice}");
    }

    #[test]
    fn a_name_is_listed_once() {
        assert_eq!(suggest("", ["a", "b", "a"]), "valid here: a, b");
        assert_eq!(suggest("a", []), "nothing can be written here");
    }
}
