//! The studies of a paper hold their gates in their small forms.

use std::path::PathBuf;
use std::process::Command;

/// The studies of a paper.
pub(crate) fn folder(paper: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(paper)
}

/// Runs a study's small form and expects every gate to hold. On all cores, as one study may take longer than all others of its paper.
pub(crate) fn holds(paper: &str, study: &str) {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_netloom"))
        .arg("study")
        .arg(folder(paper).join(study).with_extension("toml"))
        .args(["--small", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    // A report that names a cell or metric that is not there would go unnoticed: it fails no gate.
    assert!(!text(&output.stdout).contains("not measured"), "{}", text(&output.stdout));
}

/// One test per study of a paper, so that they run side by side.
macro_rules! studies {
    ($paper:literal: $($test:ident: $study:literal),* $(,)?) => {
        $(#[test] fn $test() { common::holds($paper, $study); })*

        #[test]
        fn every_study_has_a_test() {
            let tested = [$($study),*];
            for entry in std::fs::read_dir(common::folder($paper)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_none_or(|extension| extension != "toml") {
                    // Flow lists and the like.
                    continue;
                }
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                assert!(tested.contains(&name.as_str()), "{}", path.display());
            }
        }
    };
}
