//! The engine's own rate on a sweep's cases: a plain loop on one thread, against which `wattwise.sweep` is held
//! (docs/notes/sweeps.md).
//!
//! ```text
//! cargo run --release --example sweep_rate -- WORKLOAD MACHINE POLICIES DRAWS
//! ```
//!
//! POLICIES is one text, a scan perhaps. Prints cases, seconds of this thread's CPU time, and cases a second of it: on a machine
//! that others use too, time on the wall says little.

use std::process::ExitCode;
use wattwise_advice::each::Each;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::Budget;
use wattwise_policy::PowerSource;
use wattwise_replay::job::{ReplayJob, reference_policy};
use wattwise_replay::library;
use wattwise_replay::spec::expand;
use wattwise_trace::ImportOptions;

/// CPU time of this process in s, user and system, as the kernel tells it (`/proc/self/schedstat` counts ns on a CPU).
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

fn run(workload: &str, machine: &str, policies: &str, draws: u64) -> Result<(), Box<dyn std::error::Error>> {
    let workload = library::workload(workload, &ImportOptions::default())?;
    let machine = library::machine(machine)?;
    let policies = expand(policies)?;
    let reference = reference_policy(&machine)?;
    let job = ReplayJob {
        machine: &machine,
        workload: &workload,
        policies: &[],
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: Budget::default(),
    };
    let rule = Rule { goal: Goal::Energy, max_slowdown: 0.1 };
    let before = cpu_s().ok_or("no /proc/self/schedstat")?;
    let each = Each::new(&job, rule, &reference, None)?;
    let (mut cases, mut joules) = (0_u64, 0.0);
    for number in 1..=draws {
        let draw = each.draw(number)?;
        for policy in &policies {
            joules += each.run(&draw, policy)?.window_energy_j;
            cases += 1;
        }
    }
    let taken = cpu_s().ok_or("no /proc/self/schedstat")? - before;
    println!(
        "{cases} cases, {taken:.2} s of CPU time, {:.0} a second; {joules} J in all",
        cases as f64 / taken
    );
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &args[..] {
        [workload, machine, policies, draws] => {
            draws.parse().ok().map(|draws| (workload, machine, policies, draws))
        }
        _ => None,
    };
    let Some((workload, machine, policies, draws)) = parsed else {
        eprintln!("sweep_rate: expected WORKLOAD MACHINE POLICIES DRAWS");
        return ExitCode::from(2);
    };
    match run(workload, machine, policies, draws) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("sweep_rate: {e}");
            ExitCode::from(1)
        }
    }
}
