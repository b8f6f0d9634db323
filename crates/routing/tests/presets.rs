//! What presets expand to, written down field by field: presets are data, and a value that changes or is left out shows here.

use std::collections::BTreeMap;
use std::path::Path;

use netloom_routing::preset::PRESETS;

#[test]
fn presets_are_what_is_written_down() {
    let presets: BTreeMap<_, _> = PRESETS.iter().map(|preset| (preset.name, preset.routing())).collect();
    let found = serde_json::to_string_pretty(&presets).unwrap() + "\n";
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/presets.json");
    let changed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("routing-presets.json");
    std::fs::write(&changed, &found).unwrap();
    let same = std::fs::read_to_string(&expected).is_ok_and(|expected| expected == found);
    assert!(
        same,
        "{} is another one than {}: if that is meant, copy it there",
        changed.display(),
        expected.display()
    );
}
