//! The studies of applications under Switch AR run in their small forms.

use std::path::PathBuf;
use std::process::Command;

fn runs(study: &str) {
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
    // All claims are reports: one that names a cell that is not there would fail nothing.
    assert!(!text(&output.stdout).contains("not measured"), "{}", text(&output.stdout));
}

#[test]
fn fig_10_applications_on_an_idle_network() {
    runs("traces-empty");
}

#[test]
fn fig_11_applications_with_a_slow_link() {
    runs("traces-degraded");
}

#[test]
fn table_ii_applications_with_enlarged_messages() {
    runs("traces-scaled");
}
