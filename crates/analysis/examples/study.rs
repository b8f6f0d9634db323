//! Runs study files and prints their claims: `cargo run --release -p netloom-analysis --example study -- [--small] FILE…`

use std::path::Path;
use std::time::Instant;

use netloom_analysis::{Scale, Study};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scale = Scale::Full;
    let mut gates_hold = true;
    for argument in std::env::args().skip(1) {
        if argument == "--small" {
            scale = Scale::Small;
            continue;
        }
        let path = Path::new(&argument);
        let clock = Instant::now();
        let study = Study::load(path)?;
        let outcome = study.run(scale, path.parent().unwrap_or(Path::new(".")), |step| {
            eprintln!("{:8.1} s  {step}", clock.elapsed().as_secs_f64());
        })?;
        println!("{} ({:.1} s)", outcome.title, clock.elapsed().as_secs_f64());
        for table in outcome.tables() {
            println!("{table}");
        }
        gates_hold &= outcome.gates_hold();
    }
    if gates_hold { Ok(()) } else { Err("a gate does not hold".into()) }
}
