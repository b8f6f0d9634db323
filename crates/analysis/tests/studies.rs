//! The study files of the repository run, in their small form, and mistakes in study files are found before anything runs.

use std::path::Path;

use netloom_analysis::{Scale, Study, StudyError, Verdict};

#[test]
fn every_analysis_study_runs_small_and_measures_what_its_claims_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/fatpaths");
    let mut studies = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        // Studies that simulate are another room's.
        if !text.contains("[[measurement]]") {
            continue;
        }
        let outcome = Study::load(&path).unwrap().run(Scale::Small, Path::new("."), |_| ()).unwrap();
        assert!(!outcome.claims.is_empty(), "{path:?}");
        for claim in &outcome.claims {
            assert!(claim.measured.is_finite(), "{path:?}: {} = {}", claim.id, claim.measured);
        }
        studies += 1;
    }
    assert_eq!(studies, 10);
}

const STUDY: &str = r#"
title = "clique"
[[network]]
id = "clique"
topology = { kind = "complete", switches = 9 }
[[measurement]]
kind = "diversity"
max_length = 2
"#;

fn claim(lines: &str) -> String {
    let claim = "[[claim]]\nid = \"c\"\nstatement = \"s\"\nuse = \"gate\"\nsource = \"none\"\n";
    format!("{STUDY}{claim}{lines}")
}

fn run(text: &str) -> Result<netloom_analysis::Outcome, StudyError> {
    Study::parse(text)?.run(Scale::Full, Path::new("."), |_| ())
}

#[test]
fn expectations_are_judged() {
    let verdict = |lines: &str| {
        let metric = "metric = \"clique.diversity.cdp_mean\"\n";
        let outcome = run(&claim(&format!("{metric}{lines}"))).unwrap();
        assert_eq!(outcome.gates_hold(), outcome.claims[0].verdict == Verdict::Holds);
        outcome.claims[0].verdict
    };
    assert_eq!(verdict("equals = 1.01\ntolerance = 0.01"), Verdict::Holds);
    assert_eq!(verdict("equals = 1.01\ntolerance = 0.009"), Verdict::Fails);
    assert_eq!(verdict("at_least = 1"), Verdict::Holds);
    assert_eq!(verdict("at_most = 0.9"), Verdict::Fails);
    assert_eq!(verdict("at_least = 0.9\nat_most = 1.1"), Verdict::Holds);
    assert_eq!(verdict("more_than = \"clique.diversity.pi_mean\""), Verdict::Holds);
    assert_eq!(verdict("more_than = \"clique.diversity.pi_mean\"\nfactor = 9"), Verdict::Fails);
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let error = |text: &str| Study::parse(text).unwrap_err().to_string();
    assert!(error(&claim("metric = \"sf.diversity.cdp_mean\"\nat_least = 1")).contains("nothing measures"));
    assert!(
        error(&claim("metric = \"cdp_mean\"\nat_least = 1")).contains("<network>.<measurement>.<quantity>")
    );
    assert!(error(&claim("metric = \"clique.diversity.cdp_mean\"\nequals = 1")).contains("`tolerance`"));
    assert!(error(&STUDY.replace("diversity", "divers")).contains("no kind \"divers\""));
    assert!(error(&STUDY.replace("max_length", "max_lenght")).contains("max_lenght"));
    assert!(error(&STUDY.replace("switches", "swiches")).contains("swiches"));
    assert!(error(&format!("{STUDY}networks = [\"x\"]")).contains("no network \"x\""));
    assert!(Study::load(Path::new("/nowhere.toml")).unwrap_err().to_string().contains("/nowhere.toml"));
}

#[test]
fn what_cannot_be_measured_is_an_error_and_not_a_number() {
    let unknown = run(&claim("metric = \"clique.diversity.nonsense\"\nat_least = 1")).unwrap_err();
    assert!(unknown.to_string().contains("the measurement gives no clique.diversity.nonsense"));
    let lonely = run(&STUDY.replace("\"complete\", switches = 9", "\"crossbar\", hosts = 4")).unwrap_err();
    assert!(lonely.to_string().contains("at least two routers"), "{lonely}");
}
