//! `bench`: wattwise itself, and the power states of a machine.

mod in_its_time;
pub(crate) mod locks;
mod sim;
mod throughput;
mod transition;
mod wake;

use crate::exit::Outcome;
use clap::Subcommand;

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Events a second of the simulator: the bursts-v1 job, and one with everything switched on
    Sim(crate::bench::sim::SimBenchArgs),
    /// Locks and what their threads do while they wait: throughput, CPU time, fairness, waits, energy
    Locks(Box<crate::bench::locks::LockBenchArgs>),
    /// How long a change of speed takes, for every pair of speeds
    Transition(crate::bench::transition::TransitionArgs),
    /// What each speed is worth: a command's figure at each, and the knee
    Throughput(crate::bench::throughput::ThroughputArgs),
    /// What waking up costs, by C-state: from a timer and from another CPU
    Wake(crate::bench::wake::WakeArgs),
}

pub(crate) fn run(args: &BenchArgs) -> Outcome {
    match &args.what {
        BenchCommand::Sim(args) => crate::bench::sim::run(args),
        BenchCommand::Locks(args) => crate::bench::locks::run(args),
        BenchCommand::Transition(args) => crate::bench::transition::run(args),
        BenchCommand::Throughput(args) => crate::bench::throughput::run(args),
        BenchCommand::Wake(args) => crate::bench::wake::run(args),
    }
}
