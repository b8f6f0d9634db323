//! YAML, and JSON as a part of it, into typed fields.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, Location, Spanned, budget, options};

use crate::error::NetworkError;
use crate::formats::reader::Reader;

/// Reads the whole file as one value; what does not fit is an error at its line.
pub(crate) fn read<T: DeserializeOwned>(reader: &Reader) -> Result<T, NetworkError> {
    // Memory is guarded by the size of the file, from which aliases may not grow without end.
    const MOST: usize = 100_000_000;
    let options = options! { budget: budget! { max_events: MOST, max_nodes: MOST } };
    serde_saphyr::from_str_with_options(&reader.text, options).map_err(|error| {
        let error: &Error = error.without_snippet();
        let line = error.location().map_or(0, line_of);
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default();
        // The place is said already.
        let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
        reader.error(line, in_words(text))
    })
}

/// The line at which a value stands.
pub(crate) fn line<T>(value: &Spanned<T>) -> usize {
    line_of(value.referenced)
}

fn line_of(location: Location) -> usize {
    usize::try_from(location.line()).unwrap_or(0)
}

/// What is wrong in the words of users instead of those of types.
fn in_words(text: &str) -> String {
    match text {
        "expected sequence start" => "expected a list".to_owned(),
        "expected mapping start" => "expected fields, each with a name and a value".to_owned(),
        _ => match text.strip_prefix("invalid ") {
            Some("u32") => "expected a whole number from 0 to 4294967295".to_owned(),
            Some("f64") => "expected a number".to_owned(),
            _ => text.to_owned(),
        },
    }
}
