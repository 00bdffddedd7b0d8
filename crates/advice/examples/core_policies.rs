//! Every core policy on every bundled workload and machine model with more than one CPU: energy over an equal window,
//! 99th percentile of wake-up latency, slowdown; and whether `consolidate` is on the front of energy and latency.
//!
//! ```text
//! cargo run --release --example core_policies -- [--csv] [MACHINE...]
//! ```
//!
//! Prints the tables of `docs/notes/coreidle.md`, or every single figure with `--csv`. A workload is cut off after
//! [`window_s`]: a run that is not done by then counts as slowed down by the work that it lacks.
//!
//! Where tasks end up is chaotic, and a percentile may stand at an edge that a handful of wake-ups decide: each figure is
//! of [`PHASES`] runs that differ in when the tick comes, wake-ups of all of them together.

//!
//! The policies see more here than under the live governor (`crates/control/src/govern/cores.rs`), so that the figures
//! are those of a governor with better senses:
//!
//! - `wait_p99_ns` is exact; live it is `None`, and `wait_mean_ns` stands in where the kernel adds waits up.
//! - `worst_wait_ns` is one task's wait; live it is pressure, or the governor's own lateness.
//! - `wakeups` are counted; live they are half of the context switches.
//! - Times in `cpus` are exact; live they are whole ticks.
//! - What each CPU draws (`CorePower`) is the model's; live no kernel tells it.

use rayon::prelude::*;
use wattwise_figure::Histogram;
use wattwise_model::machine::{Machine, builtin};
use wattwise_model::workload::Workload;
use wattwise_policy::IdleState;
use wattwise_replay::job::machine_idle;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::{Setup, Simulation, platform};
use wattwise_trace::ImportOptions;

/// The scheduler as it comes first; `consolidate` last.
const POLICIES: [&str; 8] = [
    "spread",
    "sched_mc",
    "pack",
    "spread+coreidle-ondemand",
    "spread+coreidle-userspace",
    "spread+dragonfly",
    "spread+lpmd",
    "spread+consolidate",
];

/// When the tick and the core policy's clock begin, ns: anywhere within a tick of 4 ms, at no even distance.
const PHASES: [u64; 4] = [0, 370_000, 1_410_000, 2_830_000];

/// Less than this share of the energy is no difference.
const SAME_ENERGY: f64 = 0.002;
/// A latency's histogram has steps of 6.25 %.
const SAME_LATENCY: f64 = 0.0625;
/// The greatest 99th percentile that is allowed, of the default's.
const GUARD: f64 = 1.5;

/// Seconds of a workload that are looked at.
fn window_s(workload: &str) -> u64 {
    match workload {
        // Its job begins after 40 s of rest.
        "burst" => 42,
        "desktop" => 60,
        "idle-browse" => 20,
        "python-loop" => 8,
        _ => 5,
    }
}

#[derive(Clone)]
struct Seen {
    joules: f64,
    p99_us: f64,
    slowdown: f64,
}

fn see(
    machine: &Machine,
    workload: &Workload,
) -> Result<Vec<Seen>, Box<dyn std::error::Error + Send + Sync>> {
    let policies: Vec<PolicySpec> =
        POLICIES.iter().map(|p| PolicySpec::parse(&format!("performance+{p}"))).collect::<Result<_, _>>()?;
    let idle = machine_idle(machine)?;
    let limit = window_s(&workload.name) * 1_000_000_000;
    let make = |states: &[IdleState], tick: u64| idle.build(states, tick);
    let begin = |policy: &PolicySpec, phase_ns: u64| {
        let speed = (policy.speed.build)(&platform(machine), &policy.speed_settings);
        let mut setup = Setup::new(machine, workload, speed, &make);
        setup.placement = policy.placement.unwrap_or(setup.placement);
        setup.cores = policy.cores.as_ref().map(|c| (c.cores.build)(machine.cpus.len(), &c.settings));
        setup.phase_ns = phase_ns;
        let mut sim = Simulation::new(setup);
        let done = sim.run_to_completion(limit).map(|o| o.elapsed_ns).unwrap_or(limit);
        (sim, done)
    };
    let mut runs: Vec<Vec<_>> =
        policies.iter().map(|p| PHASES.iter().map(|&phase| begin(p, phase)).collect()).collect();
    let window = runs.iter().flatten().map(|r| r.1).max().unwrap_or(limit);
    // Of the default's runs: when it was done, and the work that it did.
    let mut first: Vec<(u64, f64)> = Vec::new();
    let mut out = Vec::new();
    let share = 1.0 / PHASES.len() as f64;
    for of_policy in &mut runs {
        let mut waits = Histogram::default();
        let mut seen = Seen { joules: 0.0, p99_us: 0.0, slowdown: 0.0 };
        for (i, (sim, done)) in of_policy.iter_mut().enumerate() {
            let o = sim.run_until(window);
            if i == first.len() {
                first.push((*done, o.cycles));
            }
            let (first_done, first_cycles) = first[i];
            let lacks = if o.cycles > 0.0 { first_cycles / o.cycles } else { 1.0 };
            seen.joules += o.energy.total_j() * share;
            seen.slowdown += lacks.max(*done as f64 / first_done as f64) * share;
            waits.merge(&o.wake_latency);
        }
        seen.p99_us = waits.quantile(0.99) as f64 * 1e-3;
        out.push(seen);
    }
    Ok(out)
}

/// Whether `a` is better than `b` in one and not worse in the other.
fn dominates(a: &Seen, b: &Seen) -> bool {
    let better = a.joules < b.joules * (1.0 - SAME_ENERGY) || a.p99_us < b.p99_us * (1.0 - SAME_LATENCY);
    let worse = a.joules > b.joules * (1.0 + SAME_ENERGY) || a.p99_us > b.p99_us * (1.0 + SAME_LATENCY);
    better && !worse
}

fn word(policy: &str) -> &str {
    policy.trim_start_matches("spread+")
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let csv = flags.iter().any(|f| f == "--csv");
    let machines: Vec<Machine> = builtin::names()
        .filter(|n| wanted.is_empty() || wanted.iter().any(|w| w == n))
        .map(library::machine)
        .collect::<Result<_, _>>()?;
    let workloads: Vec<Workload> = library::workloads()
        .iter()
        .map(|b| library::workload(b.name, &ImportOptions::default()))
        .collect::<Result<_, _>>()?;
    if csv {
        println!("machine,workload,policy,joules,p99_us,slowdown");
    }
    let (mut front, mut chosen, mut guarded, mut all) = (0, 0, 0, 0);
    let mut exceptions = Vec::new();
    for machine in machines.iter().filter(|m| m.cpus.len() > 1) {
        let seen: Vec<Vec<Seen>> = workloads.par_iter().map(|w| see(machine, w)).collect::<Result<_, _>>()?;
        if !csv {
            println!("\n## {}\n", machine.name);
            println!(
                "| workload | default J | p99 us | consolidate J | p99 | slower | others: least J at p99 <= 1.5 | on the front |"
            );
            println!("|---|---:|---:|---:|---:|---:|---|---|");
        }
        for (w, runs) in workloads.iter().zip(&seen) {
            if csv {
                for (p, s) in POLICIES.iter().zip(runs) {
                    println!(
                        "{},{},{},{:.4},{:.1},{:.4}",
                        machine.name,
                        w.name,
                        word(p),
                        s.joules,
                        s.p99_us,
                        s.slowdown
                    );
                }
                continue;
            }
            let (first, ours) = (&runs[0], &runs[runs.len() - 1]);
            let ratio = |s: &Seen| if first.p99_us > 0.0 { s.p99_us / first.p99_us } else { 1.0 };
            let others = || POLICIES.iter().zip(runs).take(runs.len() - 1);
            let best = others()
                .skip(1)
                .filter(|(_, s)| ratio(s) <= GUARD && s.slowdown <= 1.1)
                .min_by(|a, b| a.1.joules.total_cmp(&b.1.joules));
            let above: Vec<&str> =
                others().filter(|(_, s)| dominates(s, ours)).map(|(p, _)| word(p)).collect();
            let change = |s: &Seen| (s.joules / first.joules - 1.0) * 100.0;
            println!(
                "| {} | {:.3} | {:.1} | {:+.1} % | x {:.2} | x {:.2} | {} | {} |",
                w.name,
                first.joules,
                first.p99_us,
                change(ours),
                ratio(ours),
                ours.slowdown,
                best.map_or(String::new(), |(p, s)| format!("{} {:+.1} %", word(p), change(s))),
                if above.is_empty() { "yes".to_owned() } else { format!("no: {}", above.join(", ")) },
            );
            all += 1;
            chosen +=
                usize::from(!above.iter().any(|p| !["sched_mc", "pack", "coreidle-userspace"].contains(p)));
            front += usize::from(above.is_empty());
            guarded += usize::from(ratio(ours) <= GUARD);
            if !above.is_empty() || ratio(ours) > GUARD {
                exceptions.push(format!("{} on {}", w.name, machine.name));
            }
        }
    }
    if !csv {
        println!(
            "\nOn the front of all: {front} of {all}; of the default and the policies that choose CPUs by themselves: \
             {chosen} of {all}."
        );
        println!("p99 at most {GUARD} times the default's: {guarded} of {all}.");
        println!("Exceptions: {}.", exceptions.join("; "));
    }
    Ok(())
}
