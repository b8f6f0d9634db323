//! `netloom layers`: layers go to a file, and a scenario takes them from there.

use std::path::Path;
use std::process::Command;

fn netloom(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_netloom")).current_dir(folder).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_run_with_saved_layers_is_the_run_that_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, selector: &str| {
        let text = format!(
            "seed = 7\ntopology = {{ kind = \"slim-fly\", q = 5 }}\nworkload = {{ size = \"100KB\" }}\n\
             routing = {{ preset = \"fatpaths\", selector = {{ kind = \"layer\", {selector} }} }}\n"
        );
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    write("made.toml", "construction = { kind = \"fatpaths-random\", layers = 3 }");
    write("saved.toml", "construction = { kind = \"file\", file = \"sf.layers\" }");
    let (code, out, error) = netloom(folder.path(), &["layers", "made.toml", "--out", "sf.layers"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("3 layers of 50 switches"), "{out}");
    for name in ["made", "saved"] {
        let (code, _, error) = netloom(folder.path(), &["run", &format!("{name}.toml"), "--out", name]);
        assert_eq!(code, 0, "{error}");
    }
    let flows = |name: &str| std::fs::read(folder.path().join(name).join("flows.parquet")).unwrap();
    assert_eq!(flows("made"), flows("saved"));

    // The same, said on the command line.
    let spec = [
        "layers",
        "slim-fly:q=5",
        "--seed",
        "7",
        "--routing",
        "fatpaths-random:layers=3",
        "--out",
        "again.layers",
    ];
    assert_eq!(netloom(folder.path(), &spec).0, 0);
    let layers = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(layers("again.layers"), layers("sf.layers"));
}

#[test]
fn mistakes_name_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, error) = netloom(folder.path(), &["layers", "slim-fly:q=5", "--out", "x"]);
    assert!(code == 2 && error.contains("--routing: expected a construction of layers"), "{error}");
    let many = ["layers", "slim-fly:q=5", "--routing", "fatpaths-random:layers=70000", "--out", "x"];
    let (code, _, error) = netloom(folder.path(), &many);
    assert!(code == 2 && error.contains("layers"), "{error}");
    let elsewhere = ["layers", "slim-fly:q=5", "--routing", "minimal", "--out", "no/where"];
    let (code, _, error) = netloom(folder.path(), &elsewhere);
    assert!(code != 0 && error.contains("no/where"), "{error}");
    netloom(folder.path(), &["layers", "slim-fly:q=7", "--routing", "minimal", "--out", "sf7.layers"]);
    let text = "topology = { kind = \"slim-fly\", q = 5 }\n\
        routing = { preset = \"fatpaths\", selector = { kind = \"layer\", construction = { kind = \"file\", file = \"sf7.layers\" } } }\n";
    std::fs::write(folder.path().join("other.toml"), text).unwrap();
    let (code, _, error) = netloom(folder.path(), &["run", "other.toml"]);
    assert!(code == 2 && error.contains("construction.file") && error.contains("another network"), "{error}");
}
