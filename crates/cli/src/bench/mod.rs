//! `bench`: wattwise itself, and the power states of a machine.

pub(crate) mod locks;
mod sim;
mod throughput;
mod transition;
mod wake;

use crate::exit::Outcome;
use clap::Subcommand;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Events a second of the simulator: the bursts-v1 job, and one with everything switched on
    Sim(crate::bench::sim::Args),
    /// Locks and what their threads do while they wait: throughput, CPU time, fairness, waits, energy
    Locks(Box<crate::bench::locks::Args>),
    /// How long a change of speed takes, for every pair of speeds
    Transition(crate::bench::transition::Args),
    /// What each speed is worth: a command's figure at each, and the knee
    Throughput(crate::bench::throughput::Args),
    /// What waking up costs, by C-state: from a timer and from another CPU
    Wake(crate::bench::wake::Args),
}

pub(crate) fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Sim(args) => crate::bench::sim::run(args),
        What::Locks(args) => crate::bench::locks::run(args),
        What::Transition(args) => crate::bench::transition::run(args),
        What::Throughput(args) => crate::bench::throughput::run(args),
        What::Wake(args) => crate::bench::wake::run(args),
    }
}
