//! Whether `compare`'s answers hold, on every bundled workload and machine:
//!
//! ```text
//! cargo run --release --example holds -- [same | winners | others] [DRAWS]
//! ```
//!
//! - `same`: every policy does the same work, and none is faster than `performance` by more than their intervals.
//! - `winners`: where a winner is named, how often another draw of figures, phase and seed has another one.
//! - `others`: a policy that cannot win is added: no other row and no winner may change.
//!
//! Prints a line a case that fails, and the counts.

use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{Options, compare, draws};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Rule;
use wattwise_advice::ties::SURE;
use wattwise_advice::time::TimeKind;
use wattwise_model::machine::builtin;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::{ReplayJob, reference_policy};
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

/// One workload on one machine.
struct Case {
    machine: wattwise_model::machine::Machine,
    workload: wattwise_model::workload::Workload,
    policies: Vec<PolicySpec>,
    reference: PolicySpec,
}

impl Case {
    fn new(machine: &str, workload: &str) -> Case {
        let machine = library::machine(machine).expect("bundled");
        let workload = library::workload(workload, &Default::default()).expect("bundled");
        let policies = default_policies(&machine, System::find(&machine.system));
        let reference = reference_policy(&machine).expect("bundled");
        Case { machine, workload, policies, reference }
    }

    fn name(&self) -> String {
        format!("{} on {}", self.workload.name, self.machine.name)
    }

    fn job<'a>(&'a self, policies: &'a [PolicySpec]) -> ReplayJob<'a> {
        ReplayJob {
            machine: &self.machine,
            workload: &self.workload,
            policies,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
        }
    }

    fn compare(&self, policies: &[PolicySpec], replicas: u64) -> Result<Comparison, String> {
        self.with(replicas, |options| {
            compare(&self.job(policies), options).map(|(c, _)| c).map_err(|e| e.to_string())
        })
    }

    fn with<T>(&self, replicas: u64, run: impl FnOnce(&Options<'_>) -> T) -> T {
        run(&Options {
            rule: Rule::default(),
            replicas,
            reference: &self.reference,
            apply: &|_| Err("nothing is applied".into()),
            done: &|_| {},
            stop: &AtomicBool::new(false),
        })
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let workloads: Vec<&str> = library::workloads().iter().map(|w| w.name).collect();
    let machines: Vec<&str> = builtin::names().collect();
    workloads.into_iter().flat_map(move |w| machines.clone().into_iter().map(move |m| Case::new(m, w)))
}

fn same() {
    let (mut all, mut bad) = (0, 0);
    for case in cases() {
        let c = match case.compare(&case.policies, 16) {
            Ok(c) => c,
            Err(e) => {
                bad += 1;
                println!("{}: {e}", case.name());
                continue;
            }
        };
        let fastest = c.results.iter().find(|r| r.policy == "performance").expect("always compared");
        for r in &c.results {
            all += 1;
            if c.judged.kind != TimeKind::Deadlines && r.uncertain.time.high < fastest.uncertain.time.low {
                bad += 1;
                println!("{}: {} is faster than performance", case.name(), r.policy);
            }
        }
    }
    println!("same: {bad} of {all} fail");
}

fn winners(count: u64) {
    let machines =
        ["alderlake-p-laptop", "i7-4510u", "core-i5-2gen", "xeon-4210", "thinkpad-r51", "openbsd-laptop"];
    let workloads = ["build", "tbench", "nuttcp", "python-loop", "idle-browse", "desktop", "burst"];
    let (mut named, mut wrong, mut worst) = (0, 0, 0.0_f64);
    for workload in workloads {
        for machine in machines {
            let case = Case::new(machine, workload);
            let Ok(c) = case.compare(&case.policies, 64) else { continue };
            let Some(winner) = c.answer.winner else { continue };
            named += 1;
            let others = case.with(count, |o| draws(&case.job(&case.policies), o, 1000));
            let others = others.expect("it ran before");
            let changed = others.iter().filter(|best| **best != winner).count() as f64 / others.len() as f64;
            worst = worst.max(changed);
            let fails = changed > 1.0 - SURE;
            wrong += usize::from(fails);
            println!("{}{}: {winner}: {:.1} %", if fails { "! " } else { "" }, case.name(), changed * 100.0);
        }
    }
    println!(
        "winners: {named} of {} named, {wrong} change in more than 5 %, the worst in {:.1} %",
        42,
        worst * 100.0
    );
}

fn others() {
    let hopeless = PolicySpec::parse("userspace:khz=1").expect("the slowest speed");
    let (mut all, mut bad) = (0, 0);
    for case in cases() {
        let mut more = case.policies.clone();
        more.push(hopeless.clone());
        let (Ok(without), Ok(with)) = (case.compare(&case.policies, 8), case.compare(&more, 8)) else {
            continue;
        };
        all += 1;
        let rows = |c: &Comparison| {
            let energy = c.results.iter().filter(|r| r.policy != hopeless.text);
            let rows = energy.map(|r| (r.policy.clone(), r.uncertain.energy_j, r.uncertain.time));
            (rows.collect::<Vec<_>>(), c.answer.winner.clone(), c.answer.recommended.clone())
        };
        if rows(&without) != rows(&with) {
            bad += 1;
            println!("{}: changed", case.name());
        }
    }
    println!("others: {bad} of {all} change");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    match args.first().map(String::as_str) {
        Some("same") => same(),
        Some("winners") => winners(count),
        Some("others") => others(),
        _ => eprintln!("expected same, winners or others"),
    }
}
