//! Chores of the repository: charts bundle, generated documents, fixtures.
//!
//! Each chore is a module with one `run`; its line in [`main`] is all that makes it reachable.

use std::process::ExitCode;

mod arrows;
mod charts;
mod files;
mod machines;
mod writers;

const USAGE: &str = "usage: cargo xtask CHORE
  arrows             no crate uses one that stands above it
  charts [--check]   bundle the reports' chart library from crates/xtask/charts/package-lock.json (needs npm)
  files [--check]    docs/files.md, from the modules that read the files that people write
  machines [--check] the server estimator, the measured machines and the table of models, from machines/data
  writers            files are written by the crate 'output' alone";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["arrows"] => arrows::run(),
        ["charts"] => charts::run(false),
        ["charts", "--check"] => charts::run(true),
        ["files"] => files::run(false),
        ["files", "--check"] => files::run(true),
        ["machines"] => machines::run(false),
        ["machines", "--check"] => machines::run(true),
        ["writers"] => writers::run(),
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
