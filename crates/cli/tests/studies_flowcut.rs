//! The studies of the Flowcut paper hold their gates in their small forms.

use std::path::PathBuf;
use std::process::Command;

/// Runs a study's small form and expects every gate to hold.
fn holds(study: &str) {
    let studies = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies/flowcut");
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

/// One test per study, so that they run side by side.
macro_rules! studies {
    ($($test:ident: $study:literal),* $(,)?) => {
        $(#[test] fn $test() { holds($study); })*

        #[test]
        fn every_study_has_a_test() {
            let tested = [$($study),*];
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies/flowcut");
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                assert!(tested.contains(&name.as_str()), "{}", path.display());
            }
        }
    };
}

studies! {
    fig_1_flowlet_gap: "flowlet-gap",
    fig_7_threshold_and_alpha: "threshold-alpha",
    fig_8_permutation: "permutation",
    fig_9_permutation_with_failures: "permutation-failures",
    fig_10_all_to_all: "all-to-all",
    fig_11_tapered_tree: "tapered",
}
