//! Values that are written down as JSON beside the tests.
#![allow(unreachable_pub, reason = "several test files use it")]

use std::path::Path;

use serde::Serialize;

/// Compares a value with the file of that name beside the tests; where they differ, the new text is left where the message says.
pub fn assert_written_down(name: &str, found: &impl Serialize) {
    let found = serde_json::to_string_pretty(found).unwrap() + "\n";
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let changed = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("routing-{name}"));
    std::fs::write(&changed, &found).unwrap();
    let same = std::fs::read_to_string(&expected).is_ok_and(|expected| expected == found);
    assert!(
        same,
        "{} is another one than {}: if that is meant, copy it there",
        changed.display(),
        expected.display()
    );
}
