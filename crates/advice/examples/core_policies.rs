//! Every core policy on every bundled workload and machine model with more than one CPU: energy over an equal window,
//! 99th percentile of wake-up latency, slowdown; and whether `consolidate` is on the front of energy and latency.
//!
//! ```text
//! cargo run --release --example core_policies -- [--csv] [MACHINE...]
//! ```
//!
//! Prints the tables of `docs/notes/coreidle.md`, or every single figure with `--csv`. Every policy of
//! [`wattwise_policy::cores::ALL`] takes part; `crates/advice/tests/core_table.rs` holds the page against that list. A workload is cut off after
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
use wattwise_model::machine::{MachineModel, builtin};
use wattwise_model::workload::Workload;
use wattwise_policy::{IdleState, cores};
use wattwise_replay::job::machine_idle;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::{Setup, Simulation, platform};
use wattwise_trace::ImportOptions;

/// The scheduler as it comes, and the placements that gather by themselves.
const PLACEMENTS: [&str; 3] = ["spread", "sched_mc", "pack"];
/// The core policy whose table this is.
const OURS: &str = "consolidate";
/// What a user fixes and no policy decides.
const FIXED: [&str; 3] = ["sched_mc", "pack", "coreidle-userspace"];

/// The placements, then every core policy; the default is the first, `consolidate` the last.
pub(crate) fn policies() -> Vec<String> {
    let others = cores::ALL.iter().map(|c| c.name).filter(|name| *name != OURS);
    let cores = others.chain([OURS]).map(|name| format!("spread+{name}"));
    PLACEMENTS.iter().map(|p| (*p).to_owned()).chain(cores).collect()
}

/// When the tick and the core policy's clock begin, ns: anywhere within a tick of 4 ms, at no even distance.
const PHASES: [u64; 4] = [0, 370_000, 1_410_000, 2_830_000];

/// Less than this share of the energy is no difference.
const SAME_ENERGY: f64 = 0.002;
/// A latency's histogram has steps of 1.6 %.
const SAME_LATENCY: f64 = 0.016;
/// The greatest 99th percentile that is allowed, of the default's.
const GUARD: f64 = 1.5;
/// Time over the default's beyond which a policy is called slower.
const SLOWER: f64 = 1.1;

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
pub(crate) struct Seen {
    joules: f64,
    p99_us: f64,
    slowdown: f64,
}

/// A [`Seen`] for each policy.
pub(crate) fn see(
    machine: &MachineModel,
    workload: &Workload,
    policies: &[String],
) -> Result<Vec<Seen>, Box<dyn std::error::Error + Send + Sync>> {
    let policies: Vec<PolicySpec> =
        policies.iter().map(|p| PolicySpec::parse(&format!("performance+{p}"))).collect::<Result<_, _>>()?;
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

/// One workload on one machine: a [`Seen`] for each policy, in the order of [`policies`].
pub(crate) struct Cell<'a> {
    pub(crate) machine: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) runs: Vec<Seen>,
}

impl Cell<'_> {
    /// A policy's p99 over the default's.
    fn ratio(&self, policy: usize) -> f64 {
        let first = self.runs[0].p99_us;
        if first > 0.0 { self.runs[policy].p99_us / first } else { 1.0 }
    }

    /// A policy's energy against the default's, in %.
    fn change(&self, policy: usize) -> f64 {
        (self.runs[policy].joules / self.runs[0].joules - 1.0) * 100.0
    }

    /// Those that dominate a policy.
    fn above(&self, policy: usize) -> Vec<usize> {
        (0..self.runs.len())
            .filter(|&p| p != policy && dominates(&self.runs[p], &self.runs[policy]))
            .collect()
    }

    fn guarded(&self, policy: usize) -> bool {
        self.ratio(policy) <= GUARD
    }

    fn slower(&self, policy: usize) -> bool {
        self.runs[policy].slowdown > SLOWER
    }
}

fn print_csv(cell: &Cell<'_>, policies: &[String]) {
    for (p, s) in policies.iter().zip(&cell.runs) {
        println!(
            "{},{},{},{:.4},{:.1},{:.4}",
            cell.machine,
            cell.workload,
            word(p),
            s.joules,
            s.p99_us,
            s.slowdown
        );
    }
}

fn print_machine(machine: &str, cells: &[Cell<'_>], policies: &[String]) {
    println!("\n### {machine}\n");
    println!(
        "| workload | default J | p99 us | consolidate, J | its p99 | slower | least J of the others | on the front |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---|");
    cells.iter().for_each(|cell| println!("{}", row(cell, policies)));
}

/// A workload's row in its machine's table.
pub(crate) fn row(cell: &Cell<'_>, policies: &[String]) -> String {
    let ours = policies.len() - 1;
    let best = (1..ours)
        .filter(|&p| cell.guarded(p) && !cell.slower(p))
        .min_by(|&a, &b| cell.runs[a].joules.total_cmp(&cell.runs[b].joules));
    let above: Vec<&str> = cell.above(ours).into_iter().map(|p| word(&policies[p])).collect();
    format!(
        "| {} | {:.3} | {:.1} | {:+.1} % | x {:.2} | x {:.2} | {} | {} |",
        cell.workload,
        cell.runs[0].joules,
        cell.runs[0].p99_us,
        cell.change(ours),
        cell.ratio(ours),
        cell.runs[ours].slowdown,
        best.map_or(String::new(), |p| format!("{} {:+.1} %", word(&policies[p]), cell.change(p))),
        if above.is_empty() { "yes".to_owned() } else { format!("no: {}", above.join(", ")) },
    )
}

/// Every policy over all cells.
fn print_all(cells: &[Cell<'_>], policies: &[String]) {
    let count = |which: &dyn Fn(&Cell<'_>) -> bool| cells.iter().filter(|c| which(c)).count();
    println!(
        "\n| policy | energy, mean change | p99 at most x {GUARD} | over a tenth slower | on the front |"
    );
    println!("|---|---:|---:|---:|---:|");
    for (p, name) in policies.iter().enumerate() {
        let mean = cells.iter().map(|c| c.change(p)).sum::<f64>() / cells.len() as f64;
        println!(
            "| {} | {mean:+.1} % | {} | {} | {} |",
            word(name),
            count(&|c| c.guarded(p)),
            count(&|c| c.slower(p)),
            count(&|c| c.above(p).is_empty()),
        );
    }
    let ours = policies.len() - 1;
    let all = cells.len();
    let chosen = count(&|c| c.above(ours).iter().all(|&p| FIXED.contains(&word(&policies[p]))));
    println!(
        "\nOn the front of all: {} of {all}; of the default and the policies that choose CPUs by themselves: \
         {chosen} of {all}.",
        count(&|c| c.above(ours).is_empty())
    );
    println!("\np99 at most {GUARD} times the default's: {} of {all}.", count(&|c| c.guarded(ours)));
    let exceptions: Vec<String> = cells
        .iter()
        .filter(|c| !c.above(ours).is_empty() || !c.guarded(ours))
        .map(|c| format!("{} on {}", c.workload, c.machine))
        .collect();
    println!("\nExceptions: {}.", exceptions.join("; "));
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let csv = flags.iter().any(|f| f == "--csv");
    let machines: Vec<MachineModel> = builtin::written()
        .filter(|n| wanted.is_empty() || wanted.iter().any(|w| w == n))
        .map(library::machine)
        .collect::<Result<_, _>>()?;
    let workloads: Vec<Workload> = library::workloads()
        .iter()
        .filter(|b| b.development)
        .map(|b| library::workload(b.name, &ImportOptions::default()))
        .collect::<Result<_, _>>()?;
    let policies = policies();
    if csv {
        println!("machine,workload,policy,joules,p99_us,slowdown");
    }
    let mut all: Vec<Cell<'_>> = Vec::new();
    for machine in machines.iter().filter(|m| m.cpus.len() > 1) {
        let cell = |w| {
            let workload: &Workload = w;
            see(machine, workload, &policies).map(|runs| Cell {
                machine: &machine.name,
                workload: &workload.name,
                runs,
            })
        };
        let cells: Vec<Cell<'_>> = workloads.par_iter().map(cell).collect::<Result<_, _>>()?;
        if csv {
            cells.iter().for_each(|c| print_csv(c, &policies));
        } else {
            print_machine(&machine.name, &cells, &policies);
        }
        all.extend(cells);
    }
    if !csv {
        print_all(&all, &policies);
    }
    Ok(())
}
