//! `wattwise bench`: how fast things are here.

mod locks;
mod sim;

use super::Outcome;
use clap::Subcommand;

#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Events a second of the simulator: the bursts-v1 job, and one with everything switched on
    Sim(sim::Args),
    /// Locks and what their threads do while they wait: throughput, CPU time, fairness, waits, energy
    Locks(Box<locks::Args>),
}

pub(super) fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Sim(args) => sim::run(args),
        What::Locks(args) => locks::run(args),
    }
}
