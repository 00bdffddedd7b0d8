//! Whether `compare` answers right on a calibrated machine: on emulated machines whose watts are known, the interval of each
//! saving against the true machine's saving, and the recommended policy against the truly best.
//!
//! `answers [MACHINES] [cores|package] [FIRST]`
//!
//! The interval is of worlds: the machine as it may be, a phase, a memory share. So the truth is such a world on the true
//! machine, drawn as a replica is; the mean of many would be easier to hold. Who is best is asked of the mean over many, since
//! that is what a policy costs in the end.

use rayon::prelude::*;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wattwise_advice::compare::{CompareOptions, OneDraw, compare, draws};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Rule;
use wattwise_calibrate::calibration::calibrate;
use wattwise_calibrate::calibration::plan::CalibrationPlan;
use wattwise_calibrate::site::{Emulated, Site};
use wattwise_calibrate::truth::{USUAL, behind};
use wattwise_emulator::{Fault, named};
use wattwise_model::machine::MachineModel;
use wattwise_model::machine::figures::Written;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::{ReplayJob, reference_policy};
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

const KINDS: [&str; 4] = ["hybrid-laptop", "amd-laptop", "core-i5-2gen", "skylake-server-passive"];
const WORKLOADS: [&str; 7] = ["build", "desktop", "tbench", "idle-browse", "python-loop", "nuttcp", "burst"];
/// Draws of phase and memory share on the true machine, of which a policy's cost is the mean.
const DRAWS: u64 = 16;

/// What came of one machine.
#[derive(Default)]
struct Tally {
    savings: usize,
    held: usize,
    /// Cost of the recommended policy over that of the truly best, of those within the limit of time.
    regret: Vec<f64>,
    failed: Vec<String>,
    /// Intervals that do not hold the truth, a line each.
    missed: Vec<String>,
    /// By kind of machine: how many savings, how many held.
    kind: String,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let count: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(20);
    let tier = args.next().unwrap_or_else(|| "cores".into());
    let first: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let folder = tempfile::tempdir().expect("a folder for the journals");
    let one = |seed: u64| case(seed, &tier, &folder.path().join(seed.to_string()));
    let all: Vec<Tally> = (first..first + count).into_par_iter().map(one).collect();
    let savings: usize = all.iter().map(|t| t.savings).sum();
    let held: usize = all.iter().map(|t| t.held).sum();
    let mut regret: Vec<f64> = all.iter().flat_map(|t| t.regret.iter().copied()).collect();
    regret.sort_by(f64::total_cmp);
    all.iter().flat_map(|t| &t.failed).for_each(|f| println!("{f}"));
    all.iter().flat_map(|t| &t.missed).for_each(|m| println!("missed: {m}"));
    for kind in KINDS {
        let of: Vec<&Tally> = all.iter().filter(|t| t.kind == kind).collect();
        let sum = |each: fn(&Tally) -> usize| of.iter().map(|t| each(t)).sum::<usize>();
        println!("  {kind}: {} of {}", sum(|t| t.held), sum(|t| t.savings));
    }
    let small = regret.iter().filter(|r| **r <= 1.01).count();
    println!(
        "{count} machines, {tier}: 90 % intervals hold {held} of {savings} true savings ({:.1} %); the recommended policy costs at \
         most 1 % more than the truly best in {small} of {} ({:.1} %), at most {:.1} % more in all",
        held as f64 / savings as f64 * 100.0,
        regret.len(),
        small as f64 / regret.len() as f64 * 100.0,
        (regret.last().copied().unwrap_or(f64::NAN) - 1.0) * 100.0
    );
}

fn case(seed: u64, tier: &str, journal: &std::path::Path) -> Tally {
    let mut tally = Tally::default();
    let name = KINDS[(seed % 4) as usize];
    tally.kind = name.to_owned();
    let emulator = named(name).expect("an emulated machine");
    if tier == "package" {
        for pattern in ["*:0:*", "*/msr"] {
            emulator.inject(Fault::Vanish { pattern: pattern.to_owned(), after: 0 });
        }
    }
    let truth = behind(&emulator, USUAL, seed + 1).expect("a layout");
    let plan = CalibrationPlan {
        name: "this".into(),
        budget_s: 600.0,
        journal: journal.to_owned(),
        kept: None,
        seed,
        clock_khz: None,
        state: Vec::new(),
    };
    let site = Emulated::new(emulator);
    _ = site.pass(Duration::from_secs(30));
    let calibrated = match calibrate(&site, &plan, &mut |_| {}) {
        Ok(c) => c.machine,
        Err(e) => {
            tally.failed.push(format!("{name} {seed}: {e}"));
            return tally;
        }
    };
    // The truth is one machine: none of its figures is drawn.
    let truth = MachineModel { written: Written::default(), ..truth.machine };
    let workload = WORKLOADS[(seed / 4 % 7) as usize];
    if let Err(e) = judge(&mut tally, &calibrated, &truth, workload, seed) {
        tally.failed.push(format!("{name} {seed} {workload}: {e}"));
    }
    tally
}

fn judge(
    tally: &mut Tally,
    calibrated: &MachineModel,
    truth: &MachineModel,
    workload: &str,
    seed: u64,
) -> Result<(), String> {
    let workload = library::workload(workload, &Default::default()).map_err(|e| e.to_string())?;
    let policies = default_policies(calibrated, System::find(&calibrated.system));
    let reference = reference_policy(calibrated).map_err(|e| e.to_string())?;
    let job = |machine| ReplayJob {
        machine,
        workload: &workload,
        policies: &policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    };
    let stop = AtomicBool::new(false);
    let options = |replicas| CompareOptions {
        rule: Rule::default(),
        replicas,
        reference: &reference,
        standards: &[],
        apply: &|_: &PolicySpec| Err("nothing is applied".into()),
        done: &|_| {},
        stop: &stop,
    };
    let (answer, _) = compare(&job(calibrated), &options(64)).map_err(|e| e.to_string())?;
    let true_draws = draws(&job(truth), &options(DRAWS), 10_000 + seed * DRAWS).map_err(|e| e.to_string())?;
    // One world: one memory share of the work, one phase. The interval is of such worlds.
    savings(tally, &answer, &true_draws[..1], &reference.text, &format!("{seed} {}", workload.name));
    regret(tally, &answer, &true_draws);
    Ok(())
}

fn mean_cost(all: &[Vec<OneDraw>], policy: &str) -> f64 {
    let own = all.iter().flatten().filter(|d| d.policy == policy).map(|d| d.cost);
    own.sum::<f64>() / all.len() as f64
}

fn savings(tally: &mut Tally, answer: &Comparison, all: &[Vec<OneDraw>], reference: &str, what: &str) {
    let base = mean_cost(all, reference);
    for r in answer.results.iter().filter(|r| r.policy != reference) {
        let truth = mean_cost(all, &r.policy) / base;
        tally.savings += 1;
        let (low, high) = (r.uncertain.energy_ratio.low, r.uncertain.energy_ratio.high);
        let holds = low <= truth && truth <= high;
        tally.held += usize::from(holds);
        if !holds {
            tally
                .missed
                .push(format!("{} {what} {}: {truth:.4} not in {low:.4}..{high:.4}", tally.kind, r.policy));
        }
    }
}

fn regret(tally: &mut Tally, answer: &Comparison, all: &[Vec<OneDraw>]) {
    let chosen = &answer.answer.recommended;
    let within = |policy: &str| {
        let own = all.iter().flatten().filter(|d| d.policy == policy);
        own.filter(|d| d.within).count() * 10 >= all.len() * 9
    };
    let best = answer
        .results
        .iter()
        .filter(|r| r.admissible && within(&r.policy))
        .map(|r| mean_cost(all, &r.policy))
        .fold(f64::INFINITY, f64::min);
    let cost = mean_cost(all, chosen);
    if best.is_finite() {
        tally.regret.push(cost / best);
        if cost > best * 1.01 {
            let winner = answer.answer.winner.as_deref().unwrap_or("none");
            tally.failed.push(format!(
                "{:.2} % more than the best: {chosen}, winner {winner}",
                (cost / best - 1.0) * 100.0
            ));
        }
    }
}
