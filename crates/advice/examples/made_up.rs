//! Whether `compare` names winners where there is none, and finds those that there are, on random work:
//!
//! ```text
//! cargo run --release --example made_up -- null | planted [CASES]
//! ```
//!
//! - `null`: policies that are the same but for the phase of their sampling (periods apart by a thousandth). None is better
//!   in the mean, and no two runs are the same. A winner is a false one.
//! - `planted`: a policy against the same with a floor under its speed, so that one of the two needs more for the same
//!   work. Where the gap in the nominal machine is 5 % or more the better one should be named.
//!
//! Prints the counts, and a line a case with a false winner.

use rayon::prelude::*;
use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, compare};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::Random;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, Workload};
use wattwise_policy::PowerSource;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

/// Machines whose model is small enough for thousands of comparisons.
const MACHINES: [&str; 5] =
    ["alderlake-p-laptop", "i7-4510u", "core-i5-2gen", "thinkpad-r51", "openbsd-laptop"];
const SECOND_NS: u64 = 1_000_000_000;

/// Some tasks that compute and sleep: for a while, or until so much is done.
fn work(random: &mut Random) -> Workload {
    let ends = random.below(2) == 0;
    let tasks = 1 + random.below(6);
    let task = |_| {
        let run = (1 << (17 + random.below(8))) as u64;
        let sleep = (1 << (20 + random.below(6))) as u64;
        let steps =
            vec![Step::Run(Dist::Uniform(run, 3 * run)), Step::Sleep(Dist::Uniform(sleep / 4, sleep))];
        let pattern = Pattern {
            steps,
            start: Dist::Uniform(0, sleep),
            rounds: if ends { 2 * SECOND_NS / (sleep + run) + 1 } else { u64::MAX },
            until_ns: if ends { u64::MAX } else { 3 * SECOND_NS },
            seed: random.bits() | 1,
            reference_khz: 2_000_000,
            memory_share: 0.0,
        };
        Task { ends, ..Task::new("t", Program::Pattern(pattern)) }
    };
    let tasks = (0..tasks).map(task).collect();
    Workload::new("made up", "random tasks", tasks, if ends { 0 } else { 3 * SECOND_NS })
}

fn compared(machine: &MachineModel, workload: &Workload, texts: &[String]) -> Option<Comparison> {
    let policies: Vec<PolicySpec> = texts.iter().map(|t| PolicySpec::parse(t).expect("sound")).collect();
    let job = ReplayJob {
        machine,
        workload,
        policies: &policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    };
    let options = CompareOptions {
        rule: Rule { goal: Goal::Energy, max_slowdown: f64::INFINITY },
        replicas: 64,
        reference: &policies[0],
        standards: &[],
        apply: &|_| Err("nothing is applied".into()),
        done: &|_| {},
        stop: &AtomicBool::new(false),
    };
    compare(&job, &options).ok().map(|(c, _)| c)
}

/// The same policy, sampling a thousandth more or less often.
fn equals(random: &mut Random) -> Vec<String> {
    let (name, key, period) = match random.below(3) {
        0 => ("ondemand", "rate", 8_000 + random.below(60_000)),
        1 => ("conservative", "rate", 8_000 + random.below(60_000)),
        _ => ("powerd", "poll", 1_000),
    };
    let count = 2 + random.below(4);
    (0..count).map(|n| format!("{name}:{key}={}", period + n * period / 1000)).collect()
}

fn null(cases: u64) {
    let one = |case: u64| {
        let random = &mut Random::new(case);
        let machine = library::machine(MACHINES[random.below(MACHINES.len())]).expect("bundled");
        let (workload, texts) = (work(random), equals(random));
        let c = compared(&machine, &workload, &texts)?;
        if let Some(winner) = &c.answer.winner {
            println!("case {case} on {}: {winner} of {}", machine.name, texts.join(", "));
        }
        Some(c.answer.winner.is_some())
    };
    let all: Vec<bool> = (0..cases).into_par_iter().filter_map(one).collect();
    let named = all.iter().filter(|n| **n).count();
    println!("null: a winner in {named} of {}", all.len());
}

/// A policy, and one that needs more for the same work.
fn better_and_worse(random: &mut Random, machine: &MachineModel) -> [String; 2] {
    let fastest = machine.kinds[0].levels[0].khz;
    let base = ["ondemand", "schedutil", "conservative", "powersave"][random.below(4)];
    let floor = fastest / 1000 * (30 + random.below(70) as u32) / 100;
    [base.to_owned(), format!("{base}+min={floor}MHz")]
}

fn planted(cases: u64) {
    let one = |case: u64| {
        let random = &mut Random::new(case);
        let machine = library::machine(MACHINES[random.below(MACHINES.len())]).expect("bundled");
        let (workload, texts) = (work(random), better_and_worse(random, &machine));
        let c = compared(&machine, &workload, &texts)?;
        let j = |at: usize| c.results[at].window_energy_j;
        let (best, gap) = if j(0) < j(1) { (0, j(1) / j(0) - 1.0) } else { (1, j(0) / j(1) - 1.0) };
        let right = c.answer.winner.as_ref() == Some(&c.results[best].policy);
        let wrong = c.answer.winner.is_some() && !right;
        Some((gap, right, wrong))
    };
    let all: Vec<(f64, bool, bool)> = (0..cases).into_par_iter().filter_map(one).collect();
    for (low, high) in [(0.0, 0.01), (0.01, 0.05), (0.05, 0.1), (0.1, f64::INFINITY)] {
        let of: Vec<_> = all.iter().filter(|(gap, ..)| (low..high).contains(gap)).collect();
        let count = |f: fn(&(f64, bool, bool)) -> bool| of.iter().filter(|c| f(c)).count();
        println!(
            "planted: gaps of {:.0} % and more: {} of {} named, {} wrongly",
            low * 100.0,
            count(|c| c.1),
            of.len(),
            count(|c| c.2)
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cases = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    match args.first().map(String::as_str) {
        Some("null") => null(cases),
        Some("planted") => planted(cases),
        _ => eprintln!("expected null or planted"),
    }
}
