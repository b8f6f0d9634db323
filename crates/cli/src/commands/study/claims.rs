//! The table of claims.

use netloom_study::Verdict;

use crate::show;

/// Every claim with what was measured and what is published, and the notes below.
pub(super) fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let mut rows =
        vec![["", "claim", "holds", "measured", "published", "source"].map(str::to_owned).to_vec()];
    for verdict in verdicts {
        let holds = match (verdict.holds, verdict.gate) {
            (Some(true), _) => "yes",
            (Some(false), true) => "NO (gate)",
            (Some(false), false) => "no",
            (None, true) => "FAILED (gate)",
            (None, false) => "not measured",
        };
        rows.push(vec![
            verdict.id.clone(),
            wrap(&verdict.text, 44),
            holds.to_owned(),
            wrap(&verdict.measured, 32),
            wrap(&verdict.published, 24),
            wrap(&verdict.source, 20),
        ]);
        if !verdict.note.is_empty() {
            text += &format!("{}: {}\n", verdict.id, verdict.note);
        }
    }
    format!("{}\n{text}", show::text_table(rows))
}

/// Breaks text at spaces into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
