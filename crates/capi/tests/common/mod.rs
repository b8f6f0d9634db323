//! Programs in C and C++ that are linked with the library that cargo has built beside a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of this crate.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a command has printed, if it has done what it was to do.
#[track_caller]
pub(crate) fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Compiles a program of these sources, whose paths and those in `flags` begin in this crate's folder, with all warnings.
pub(crate) fn compile(program: &Path, compiler: &str, flags: &[&str], sources: &[&str]) -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let library = built.parent().unwrap();
    let output = Command::new(compiler)
        .current_dir(here())
        .args(flags)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-Iinclude"])
        .args(sources)
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lnetloom", "-o"])
        .arg(program)
        .output()
        .unwrap_or_else(|error| panic!("this test needs a C or C++ compiler called {compiler}: {error}"));
    succeeded(&output);
    program.to_owned()
}
