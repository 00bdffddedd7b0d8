//! Chores of the repository: charts bundle, generated documents, fixtures.
//!
//! Each chore is a module with one `run`; its line in [`main`] is all that makes it reachable.

use std::process::ExitCode;

mod charts;
mod lab;

const USAGE: &str = "usage: cargo run -p xtask -- CHORE
  charts [--check]   bundle the reports' chart library from xtask/charts/package-lock.json (needs npm)
  lab [SCENARIO...]  stock kernels in QEMU with our modules and virtual power hardware (lab --list)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["charts"] => charts::run(false),
        ["charts", "--check"] => charts::run(true),
        ["lab", rest @ ..] => lab::run(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
