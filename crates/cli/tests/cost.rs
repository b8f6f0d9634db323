//! `netloom cost`: the paper's figures, and refusals by option.

use std::process::Command;

fn cost(args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_netloom")).args(["cost", "flowcut"]).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_model_says_what_the_paper_quotes() {
    let (code, out, _) = cost(&["--hosts", "1024,32768", "--rate", "200Gbps,800Gbps", "--rtt", "5us,50us"]);
    assert_eq!(code, 0);
    // 1,024 hosts at 200 Gb/s and 50 us: 6.56 MiB; 32,768 at 800 Gb/s and 5 us: 83.9 MiB.
    assert!(out.contains("6875000"), "{out}");
    assert!(out.contains("88000000"), "{out}");
    assert_eq!(out.matches("2048").count(), 8 + 5, "eight networks and five schemes:\n{out}");
}

#[test]
fn mistakes_name_the_option() {
    for (args, option) in [
        (["--rtt", "soon"], "--rtt"),
        (["--packet", "0B"], "--packet"),
        (["--hosts", "10"], "--hosts-per-switch"),
        (["--flows-per-host", "0"], "--flows-per-host"),
    ] {
        let (code, _, message) = cost(&args);
        assert_ne!(code, 0);
        assert!(message.contains(option), "{message}");
    }
}

#[test]
fn the_table_is_written_as_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cost.parquet");
    let (code, _, message) = cost(&["--out", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{message}");
    assert!(std::fs::read(&path).unwrap().starts_with(b"PAR1"));
}
