//! What presets expand to, written down field by field: presets are data, and a value that changes or is left out shows here.

mod common;

use std::collections::BTreeMap;

use common::assert_written_down;
use netloom_routing::preset::PRESETS;

#[test]
fn presets_are_what_is_written_down() {
    let presets: BTreeMap<_, _> = PRESETS.iter().map(|preset| (preset.name, preset.routing())).collect();
    assert_written_down("presets.json", &presets);
}
