//! `wattwise bench sim`: how fast the engine is here.

use crate::exit::{Failure, Outcome, print, print_json};
use serde::Serialize;
use std::time::Instant;
use wattwise_model::machine::Machine;
use wattwise_model::workload::Workload;
use wattwise_policy::{Settings, SpeedPolicy, speed};
use wattwise_replay::bursts;
use wattwise_replay::job::machine_idle;
use wattwise_replay::library;
use wattwise_sim::engine::MakeIdle;
use wattwise_sim::{Placement, Setup, Simulation, platform};
use wattwise_trace::ImportOptions;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Simulated seconds of bursts-v1, which ends after 1000
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seconds: u64,
    /// Runs of each job; the fastest counts, since everything that disturbs a run slows it
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// One job's figures.
#[derive(Serialize)]
struct Figures {
    job: &'static str,
    /// Bursts begun and ended, and governor ticks, as the job defines them; engine events for the full job.
    events: u64,
    wall_s: f64,
    events_per_s: f64,
    simulated_s_per_wall_s: f64,
    energy_j: f64,
    /// High-water mark of this process's memory, all jobs so far included.
    peak_memory_kib: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let figures = [bursts_v1(args)?, full(args)?];
    if args.json {
        print_json(&figures)?;
        return Ok(0);
    }
    for f in &figures {
        print(&format!(
            "{:10} {:6.2} M events/s  {:8.0} simulated s per s  {} events in {:.3} s, {:.1} J{}\n",
            f.job,
            f.events_per_s * 1e-6,
            f.simulated_s_per_wall_s,
            f.events,
            f.wall_s,
            f.energy_j,
            f.peak_memory_kib
                .map_or(String::new(), |k| format!(", peak memory {:.1} MiB", k as f64 / 1024.0)),
        ))?;
    }
    Ok(0)
}

/// `VmHWM` of this process.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

/// What to run.
struct Job<'a> {
    name: &'static str,
    machine: &'a Machine,
    workload: &'a Workload,
    speed: &'a dyn Fn() -> Box<dyn SpeedPolicy>,
    idle: MakeIdle<'a>,
    placement: Placement,
    until_ns: u64,
}

fn best_of(runs: u32, job: &Job<'_>) -> Figures {
    let mut best: Option<Figures> = None;
    for _ in 0..runs {
        let setup = Setup {
            placement: job.placement,
            ..Setup::new(job.machine, job.workload, (job.speed)(), job.idle)
        };
        let start = Instant::now();
        let o = Simulation::new(setup).run_until(job.until_ns);
        let wall_s = start.elapsed().as_secs_f64();
        let events = match job.name {
            "bursts-v1" => 2 * o.wakeups + o.decisions,
            _ => o.events,
        };
        if best.as_ref().is_none_or(|b| wall_s < b.wall_s) {
            best = Some(Figures {
                job: job.name,
                events,
                wall_s,
                events_per_s: events as f64 / wall_s,
                simulated_s_per_wall_s: job.until_ns as f64 * 1e-9 / wall_s,
                energy_j: o.energy.total_j(),
                peak_memory_kib: peak_memory_kib(),
            });
        }
    }
    best.expect("at least one run")
}

fn bursts_v1(args: &Args) -> Result<Figures, Failure> {
    let machine = library::machine("bursts-v1").map_err(Failure::work)?;
    let workload = library::workload("bursts-v1", &ImportOptions::default()).map_err(Failure::work)?;
    let idle = machine_idle(&machine).map_err(Failure::work)?;
    Ok(best_of(
        args.runs,
        &Job {
            name: "bursts-v1",
            machine: &machine,
            workload: &workload,
            speed: &|| Box::new(bursts::BurstsV1),
            idle: &|states, tick| idle.build(states, tick),
            placement: Placement::Fifo,
            until_ns: args.seconds * 1_000_000_000,
        },
    ))
}

/// Everything switched on: SMT, C-states with menu, package states, transition delays, schedutil at
/// every scheduling event, and tasks that wake each other.
fn full(args: &Args) -> Result<Figures, Failure> {
    let machine = library::machine("core-i5-2gen").map_err(Failure::work)?;
    let mut workload = library::workload("bursts-v1", &ImportOptions::default()).map_err(Failure::work)?;
    let pairs = library::workload("ping-pong", &ImportOptions::default()).map_err(Failure::work)?;
    let first = workload.tasks.len() as u32;
    for mut task in pairs.tasks {
        if let wattwise_model::workload::Program::Pattern(p) = &mut task.program {
            p.rounds = u64::MAX;
            for step in &mut p.steps {
                if let wattwise_model::workload::Step::Wake(t) = step {
                    t.0 += first;
                }
            }
        }
        workload.tasks.push(task);
    }
    let schedutil = speed::find("schedutil").ok_or_else(|| Failure::work("no schedutil"))?;
    let menu = wattwise_policy::idle::find("menu").ok_or_else(|| Failure::work("no menu"))?;
    Ok(best_of(
        args.runs,
        &Job {
            name: "full",
            machine: &machine,
            workload: &workload,
            speed: &|| (schedutil.build)(&platform(&machine), &Settings::defaults(schedutil.params)),
            idle: &|states, tick| (menu.build)(states, tick, &Settings::defaults(menu.params)),
            placement: Placement::Spread,
            until_ns: (args.seconds * 1_000_000_000).div_ceil(20),
        },
    ))
}
