//! The commands of the `wattwise` program.
//!
//! ```text
//! cli      the commands, one line each          exit   how they end
//! model    compare, tune, trace, lists, studies: what needs no machine
//! machine  info, set, run, ab, record ...: what works on this one
//! bench    benchmarks                           args   what several commands take
//! show     tables and result files              manual completions and man pages
//! ```
//!
//! It parses, calls the crates and prints; what it knows of policies, machines and statistics is theirs.
#![deny(clippy::print_stdout, clippy::print_stderr, reason = "what is printed goes through show::screen")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the help of an argument writes optional parts as [X]")]

mod args;
mod bench;
mod cli;
mod dashes;
mod exit;
mod machine;
mod manual;
mod model;
#[cfg(test)]
mod schema;
mod show;

/// Runs the command line that the process was given; its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    wattwise_threads::on_enough_stack(cli::main).unwrap_or_else(|why| {
        show::screen::say!("{why}");
        std::process::ExitCode::from(3)
    })
}
