//! The little of YAML that ASTRA-sim's files need: keys with values or lists of values.

/// The keys in order, each with its values: `key: value`, `key: [a, b]`, or a key with lines `- value` below it.
pub(crate) fn entries(text: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        let fail = |expected: &str| format!("line {number}: expected {expected}, found `{line}`");
        if line.is_empty() || line == "---" {
            continue;
        }
        if let Some(value) = line.strip_prefix("- ") {
            let (_, values) = entries.last_mut().ok_or_else(|| fail("a key"))?;
            values.push(plain(value));
            continue;
        }
        let (key, value) = line.split_once(':').ok_or_else(|| fail("`KEY: VALUE`"))?;
        let value = value.trim();
        let values = match value.strip_prefix('[') {
            None if value.is_empty() => Vec::new(),
            None => vec![plain(value)],
            Some(list) => {
                let list = list.strip_suffix(']').ok_or_else(|| fail("a list in brackets on one line"))?;
                list.split(',').map(plain).filter(|value| !value.is_empty()).collect()
            }
        };
        entries.push((plain(key), values));
    }
    Ok(entries)
}

fn plain(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}
