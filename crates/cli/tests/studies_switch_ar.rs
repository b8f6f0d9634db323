//! The studies of the Switch AR paper hold their gates in their small forms.

use std::path::PathBuf;
use std::process::Command;

/// Runs a study's small form and expects every gate to hold.
fn holds(study: &str) {
    let studies = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies/switch-ar");
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_netloom"))
        .arg("study")
        .arg(studies.join(study).with_extension("toml"))
        .args(["--small", "--workers", "1", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    // A report that names a cell or metric that is not there would go unnoticed: it fails no gate.
    assert!(!text(&output.stdout).contains("not measured"), "{}", text(&output.stdout));
}

#[test]
fn fig_3_uniform_traffic() {
    holds("uniform");
}

#[test]
fn fig_7_permutations() {
    holds("permutations");
}

#[test]
fn fig_8_input_generated_hotspot() {
    holds("hotspot-input");
}

#[test]
fn onset_of_a_congestion_tree() {
    holds("hotspot-onset");
}

#[test]
fn fig_9_output_generated_hotspot() {
    holds("hotspot-output");
}

#[test]
fn fig_4_ets() {
    holds("ets");
}

#[test]
fn quantized_congestion_notification() {
    holds("qcn");
}
