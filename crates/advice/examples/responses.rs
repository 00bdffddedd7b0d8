//! Whether the rule of responses sees what is slow, and nothing else, by another reckoning than its own:
//!
//! ```text
//! cargo run --release -p wattwise-advice --example responses -- [WORKLOAD ...]
//! ```
//!
//! For each interactive workload, machine and policy the work runs once more in 16 replicas of this program's own (the nominal
//! machine, other seeds and phases), and each task's waiting is added up. A policy is *slow* if some task waits at least 1.25
//! times as long and 1 ms an episode more than under the reference policy, and *not slow* if every task waits at most 1.05
//! times as long. Tried is everything bundled that is judged by its responses. A kind that *doubles* its median or 95th percentile (over 20 ms) counts by the task's responses alone. The
//! verdict of `compare` with 16 replicas is held against that, and the reference policy against itself in other replicas.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, compare};
use wattwise_advice::itself::itself;
use wattwise_advice::result::PolicyResult;
use wattwise_advice::rule::Rule;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_policy::PowerSource;
use wattwise_replay::job::{Circumstances, ReplayJob, limit_ns, machine_idle, reference_policy, simulate};
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

const MACHINES: [&str; 3] = ["alderlake-p-laptop", "t8103", "i7-4510u"];
const REPLICAS: u64 = 16;
/// Longer than any phase that is drawn, in ns.
const PHASES_NS: u64 = 20_000_000;

/// The responses of each task, in s, over all replicas.
type Responses = BTreeMap<String, Vec<f64>>;

struct Case {
    machine: MachineModel,
    workload: Workload,
    reference: PolicySpec,
}

impl Case {
    fn job<'a>(&'a self, policies: &'a [PolicySpec]) -> ReplayJob<'a> {
        ReplayJob {
            machine: &self.machine,
            workload: &self.workload,
            policies,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: wattwise_figure::Budget::default(),
        }
    }

    /// What one policy makes each task wait.
    fn waits(&self, policy: &PolicySpec) -> Result<Responses, String> {
        let job = self.job(&[]);
        let idle = machine_idle(&self.machine).map_err(|e| e.to_string())?;
        let mut all = Responses::new();
        let mut labelled = self.workload.clone();
        labelled.label_episodes();
        for number in 0..REPLICAS {
            let workload = labelled.replica(1000 + number).map_err(|e| e.to_string())?;
            let with = Circumstances {
                machine: &self.machine,
                workload: &workload,
                memory: &[],
                recorded_khz: 0.0,
                phase_ns: number * PHASES_NS / REPLICAS,
                load_phase_ns: 0,
                background_shift_ns: number * 7 * PHASES_NS / REPLICAS % PHASES_NS,
            };
            let mut sim = simulate(&job, &with, policy, &idle, false);
            let own = sim.run_to_completion(limit_ns(&job, &workload)).map_err(|e| e.to_string())?;
            for (task, episodes) in workload.tasks.iter().zip(&own.work.episodes) {
                if task.is_foreground() {
                    let responses = episodes.iter().filter_map(|e| e.response_ns(own.elapsed_ns));
                    all.entry(task.name.clone()).or_default().extend(responses.map(|ns| ns as f64 * 1e-9));
                }
            }
        }
        Ok(all)
    }
}

/// What the reckoning of this program says of a policy.
#[derive(Clone, PartialEq, Eq)]
enum Truth {
    Doubles(String),
    Slow(String),
    Between,
    NotSlow,
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted.get(((sorted.len().max(1) - 1) as f64 * q) as usize).copied().unwrap_or_default()
}

fn truth(own: &Responses, reference: &Responses) -> Truth {
    let total = |of: &Responses| of.values().flatten().sum::<f64>();
    let (all_own, all_reference) = (total(own), total(reference));
    let (mut doubles, mut slow, mut same) = (None, None, true);
    for (task, waits) in own {
        let Some(base) = reference.get(task).filter(|b| !b.is_empty()) else { continue };
        let (sum, sum_base) = (waits.iter().sum::<f64>(), base.iter().sum::<f64>());
        let (share, share_base) = (sum / all_own, sum_base / all_reference);
        if sum >= 1.25 * sum_base && (sum - sum_base) / base.len() as f64 >= 1e-3 {
            slow.get_or_insert(format!(
                "{task} waits {:.2} times as long, {:.1} % of all waiting, {} episodes",
                sum / sum_base,
                100.0 * share.max(share_base),
                base.len() / REPLICAS as usize
            ));
        }
        same &= sum <= 1.05 * sum_base;
        let counts = share >= 0.05 || share_base >= 0.05;
        let sorted = |of: &[f64]| {
            let mut of = of.to_vec();
            of.sort_by(f64::total_cmp);
            of
        };
        let (waits, base) = (sorted(waits), sorted(base));
        for q in [0.5, 0.95] {
            let enough = base.len() as f64 * (1.0 - q) >= 3.0 * REPLICAS as f64;
            let (now, then) = (quantile(&waits, q), quantile(&base, q));
            if counts && enough && now > 0.02 && now >= 2.0 * then {
                doubles =
                    Some(format!("{task}: {:.0} % of {:.1} -> {:.1} ms", 100.0 * q, then * 1e3, now * 1e3));
            }
        }
    }
    match (doubles, slow, same) {
        (Some(what), ..) => Truth::Doubles(what),
        (None, Some(what), _) => Truth::Slow(what),
        (None, None, true) => Truth::NotSlow,
        (None, None, false) => Truth::Between,
    }
}

/// What `compare` saw of the kinds that wait most.
fn seen(kinds: &[wattwise_advice::result::KindResponses]) -> String {
    let ratio = |r: Option<f64>| r.map_or("-".to_owned(), |r| format!("{r:.2}"));
    let one = |k: &wattwise_advice::result::KindResponses| {
        let (mean, p95) = (ratio(k.mean_ratio), ratio(k.p95_ratio));
        format!(
            "{} x{:.1}: {:.2} -> {:.2} s, mean {mean}, p95 {p95}",
            k.kind, k.episodes, k.reference_waiting_s, k.waiting_s
        )
    };
    kinds.iter().take(3).map(one).collect::<Vec<_>>().join("; ")
}

/// Policies as they can be had on the machine, the reference's near-equals first.
fn policies(reference: &PolicySpec) -> (Vec<PolicySpec>, usize) {
    let near: Vec<String> = match reference.text.split_once("epp=") {
        Some((head, epp)) => match epp.parse::<i32>() {
            Ok(epp) => [epp - 1, epp + 1].map(|e| format!("{head}epp={e}")).to_vec(),
            Err(_) => Vec::new(),
        },
        None => Vec::new(),
    };
    let others = [
        "performance",
        "performance+noboost",
        "powersave",
        "schedutil",
        "ondemand",
        "conservative",
        "hwp:epp=power",
        "schedutil+max=60%",
    ];
    let count = near.len();
    let all = near.into_iter().chain(others.map(String::from));
    (all.filter_map(|t| PolicySpec::parse(&t).ok()).collect(), count)
}

#[derive(Default)]
struct Tally(BTreeMap<&'static str, (usize, usize)>);

impl Tally {
    fn count(&mut self, row: &'static str, slower: bool) {
        let entry = self.0.entry(row).or_default();
        entry.0 += usize::from(slower);
        entry.1 += 1;
    }
}

fn slower(r: &PolicyResult) -> bool {
    r.responses.as_ref().is_some_and(|r| r.slower) || r.missed_by_task.iter().any(|m| m.slower)
}

fn one(case: &Case, tally: &mut Tally) -> Result<(), String> {
    let (policies, near) = policies(&case.reference);
    let name = format!("{} on {}", case.workload.name, case.machine.name);
    for n in 0..4 {
        let first = [1 + 100 * n, 1051 + 100 * n];
        let own = itself(&case.job(&[]), Rule::default(), &case.reference, first, REPLICAS)
            .map_err(|e| e.to_string())?;
        tally.count("reference against itself", own.slower);
        if own.slower {
            println!("false alarm: {name}, the reference against itself: {}", seen(&own.kinds));
        }
    }
    let stop = AtomicBool::new(false);
    let options = CompareOptions {
        rule: Rule::default(),
        replicas: REPLICAS,
        reference: &case.reference,
        standards: &[],
        apply: &|_| Err(String::new()),
        done: &|_| {},
        stop: &stop,
    };
    let (c, _) = compare(&case.job(&policies), &options).map_err(|e| e.to_string())?;
    let reference = case.waits(&case.reference)?;
    for (i, policy) in policies.iter().enumerate() {
        let Some(r) = c.results.iter().find(|r| r.policy == policy.text) else { continue };
        let Some(responses) = &r.responses else { return Err("judged by its makespan".to_owned()) };
        let truth = truth(&case.waits(policy)?, &reference);
        let slower = slower(r);
        let of = format!("{name}, {}", r.policy);
        let seen = seen(&responses.kinds);
        match &truth {
            _ if i < near => tally.count("near-equals (EPP +-1)", slower),
            Truth::Doubles(_) => tally.count("doubles p50 or p95 over 20 ms", slower),
            Truth::Slow(_) => tally.count("slow", slower),
            Truth::NotSlow => tally.count("not slow", slower),
            Truth::Between => {}
        }
        match truth {
            Truth::Doubles(what) | Truth::Slow(what) if !slower => {
                println!("missed: {of}: {what}. Judged: {seen}")
            }
            Truth::NotSlow if slower => println!("false alarm: {of}. Judged: {seen}"),
            _ => {}
        }
    }
    Ok(())
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let bundled = || library::workloads().iter().map(|w| w.name.to_owned()).collect();
    let names: Vec<String> = if asked.is_empty() { bundled() } else { asked };
    let mut tally = Tally::default();
    for workload in &names {
        for machine in MACHINES {
            let (Ok(machine), Ok(workload)) =
                (library::machine(machine), library::workload(workload, &Default::default()))
            else {
                println!("left out: {workload} on {machine}: not bundled");
                continue;
            };
            let Ok(reference) = reference_policy(&machine) else { continue };
            let case = Case { machine, workload, reference };
            if let Err(why) = one(&case, &mut tally) {
                println!("left out: {} on {}: {why}", case.workload.name, case.machine.name);
            }
        }
    }
    for (row, (slower, of)) in tally.0 {
        println!("{row}: judged slower {slower} of {of} ({:.1} %)", 100.0 * slower as f64 / of.max(1) as f64);
    }
}
