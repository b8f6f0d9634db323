//! Finds the chart library, Apache ECharts, in the sources of the crate `charming`, so that the page can hold it.
//!
//! Cargo has fetched and checked them like every other dependency.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    let library = echarts(&charming());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    fs::copy(&library, out.join("echarts.js")).expect("the chart library can be copied");
}

/// The folder of the crate's sources.
fn charming() -> PathBuf {
    // Cargo describes the whole workspace or nothing. Who builds a part of it may have no sources of the rest yet; they are fetched then.
    let mut output = metadata(&["--offline"]);
    if !output.status.success() {
        output = metadata(&[]);
    }
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let package =
        packages.iter().find(|package| package["name"] == "charming").expect("charming is a dependency");
    let manifest = Path::new(package["manifest_path"].as_str().expect("a package has a manifest"));
    manifest.parent().expect("a manifest has a folder").to_owned()
}

/// What Cargo says of the workspace.
fn metadata(options: &[&str]) -> Output {
    Command::new(env::var_os("CARGO").expect("Cargo sets CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--features=sources-of-charts",
            "--filter-platform",
        ])
        .arg(env::var_os("TARGET").expect("Cargo sets TARGET"))
        .args(options)
        .current_dir(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata can be run")
}

/// The one minified ECharts in there.
fn echarts(crate_folder: &Path) -> PathBuf {
    let assets = crate_folder.join("src").join("asset");
    let entries = fs::read_dir(&assets).unwrap_or_else(|error| panic!("{}: {error}", assets.display()));
    let mut found = entries.map(|entry| entry.expect("the folder can be read").path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("echarts-") && name.ends_with(".min.js")
    });
    found.next().unwrap_or_else(|| panic!("{} holds no echarts-*.min.js", assets.display()))
}
