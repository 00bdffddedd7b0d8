//! `wattwise reproduce`: published studies, rerun on models of their machines.

use crate::exit::{Failure, Outcome, print, print_json};
use clap::ValueEnum;
use std::path::PathBuf;
use wattwise_study::{Study, StudyError};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The study; all of them when none is named
    study: Option<Name>,
    /// Write a page with the tables and plots: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// FreeBSD speed states (2010)
    Thomson,
    /// OpenBSD battery policies (2021)
    Openbsd,
    /// Locks whose waiters lower their cores (Powerctl)
    Powerctl,
    /// Few cores kept for light load (COREIDLE)
    Coreidle,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let one: &[fn() -> Result<Study, StudyError>] = match args.study {
        Some(Name::Thomson) => &[wattwise_study::thomson::run],
        Some(Name::Openbsd) => &[wattwise_study::openbsd::run],
        Some(Name::Powerctl) => &[wattwise_study::powerctl::run],
        Some(Name::Coreidle) => &[wattwise_study::coreidle::run],
        None => &[
            wattwise_study::thomson::run,
            wattwise_study::openbsd::run,
            wattwise_study::powerctl::run,
            wattwise_study::coreidle::run,
        ],
    };
    let studies: Vec<Study> = one.iter().map(|s| s()).collect::<Result<_, _>>().map_err(Failure::work)?;
    if let Some(path) = &args.report {
        let sections: Vec<_> = studies.iter().flat_map(|s| s.page.clone()).collect();
        let title = studies.iter().map(|s| s.title).collect::<Vec<_>>().join("; ");
        std::fs::write(path, wattwise_page::page("reproduce", &title, &sections)).map_err(|e| {
            Failure::input(format!("--report {}: {e}; expected a file that can be written", path.display()))
        })?;
        eprintln!("wattwise: report written to {}", path.display());
    }
    if args.json {
        print_json(&studies)?;
        return Ok(0);
    }
    for s in &studies {
        print(&format!("{s}\n"))?;
    }
    Ok(0)
}
