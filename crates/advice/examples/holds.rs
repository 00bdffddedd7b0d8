//! Whether `compare`'s answers hold, on every bundled workload and machine:
//!
//! ```text
//! cargo run --release --example holds -- same | winners | others [WORKLOAD] [REPLICAS] [measured]
//! ```
//!
//! - `same`: every policy does the same work, and none is faster than `performance` by more than their intervals. Where
//!   one is, it says whether that is so with the shallowest idle state as well (a faster clock lets a machine sleep more
//!   deeply), and whether each is the slower of the two where the other is the reference.
//! - `winners`: where a winner is named, how often another draw of figures, phase and seed changes it: the winner is too
//!   slow (but for responses, which one draw does not judge), or another admissible policy needs noticeably less. 192
//!   draws a case, or REPLICAS.
//! - `others`: a policy that cannot win is added, and those that never win, tie with nobody and are not the reference are
//!   removed: no other row and no answer may change, in any figure.
//!
//! Prints a line a case that fails, and the counts; the cases of one workload where one is given (`all`: of each). 0
//! replicas are the nominal run alone. `measured`: on the machines that were made from others' measurements.

use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, OneDraw, compare, draws};
use wattwise_advice::result::{Comparison, PolicyResult};
use wattwise_advice::rule::Rule;
use wattwise_advice::ties::NOTICEABLE;
use wattwise_advice::time::TimeKind;
use wattwise_model::machine::builtin;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::{ReplayJob, reference_policy};
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

/// One workload on one machine.
struct Case {
    machine: wattwise_model::machine::MachineModel,
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
            budget: wattwise_figure::Budget::default(),
        }
    }

    fn compare(&self, policies: &[PolicySpec], replicas: u64) -> Result<Comparison, String> {
        self.with(replicas, |options| {
            compare(&self.job(policies), options).map(|(c, _)| c).map_err(|e| e.to_string())
        })
    }

    /// Whether a policy is faster than `performance` where no CPU sleeps more deeply than in its first idle state, too.
    fn faster_awake(&self, policy: &str) -> Option<bool> {
        let awake = |text: &str| PolicySpec::parse(&format!("{text}+fixed:depth=0")).ok();
        let policies = [awake("performance")?, awake(policy)?];
        let stop = AtomicBool::new(false);
        let (c, _) = compare(&self.job(&policies), &options(&policies[0], 16, &stop)).ok()?;
        c.results.iter().find(|r| r.policy == policies[1].text).map(faster)
    }

    /// Whether each of the two is the slower one where the other is the reference: tasks meet in another order then, and
    /// responses differ both ways.
    fn mutual(&self, policy: &str) -> Option<bool> {
        let [fastest, policy] = ["performance", policy].map(|text| PolicySpec::parse(text).ok());
        let (fastest, policy) = (fastest?, policy?);
        let stop = AtomicBool::new(false);
        let slower = |own: &PolicySpec, reference: &PolicySpec| {
            let policies = [own.clone(), reference.clone()];
            let (c, _) = compare(&self.job(&policies), &options(reference, 16, &stop)).ok()?;
            Some(c.results.iter().find(|r| r.policy == own.text)?.uncertain.time_ratio.low > 1.0)
        };
        Some(slower(&fastest, &policy)? && slower(&policy, &fastest)?)
    }

    fn with<T>(&self, replicas: u64, run: impl FnOnce(&CompareOptions<'_>) -> T) -> T {
        run(&options(&self.reference, replicas, &AtomicBool::new(false)))
    }
}

fn options<'a>(reference: &'a PolicySpec, replicas: u64, stop: &'a AtomicBool) -> CompareOptions<'a> {
    CompareOptions {
        rule: Rule::default(),
        replicas,
        reference,
        standards: &[],
        apply: &|_| Err("nothing is applied".into()),
        done: &|_| {},
        stop,
    }
}

/// What is asked for on the command line.
struct Asked {
    workload: Option<String>,
    replicas: Option<u64>,
    measured: bool,
}

impl Asked {
    fn read(args: &[String]) -> Asked {
        let workload = args.first().filter(|w| *w != "all").cloned();
        let replicas = args.get(1).and_then(|n| n.parse().ok());
        Asked { workload, replicas, measured: args.get(2).is_some_and(|word| word == "measured") }
    }

    fn workload(&self, name: &str) -> bool {
        self.workload.as_deref().is_none_or(|only| only == name)
    }
}

/// Every bundled workload, or the one that is asked for, on every bundled machine of the kind that is asked for.
fn cases(asked: &Asked) -> impl Iterator<Item = Case> {
    let bundled = library::workloads();
    let workloads: Vec<&str> = bundled.iter().map(|w| w.name).filter(|w| asked.workload(w)).collect();
    let machines: Vec<&str> =
        if asked.measured { builtin::measured().collect() } else { builtin::written().collect() };
    workloads.into_iter().flat_map(move |w| machines.clone().into_iter().map(move |m| Case::new(m, w)))
}

/// Whether a policy is faster than the reference in all of its interval. Which responses are noticed depends on both of two
/// policies, so seconds of waiting are compared with the reference's alone.
fn faster(one: &PolicyResult) -> bool {
    one.uncertain.time_ratio.high < 1.0
}

fn same(asked: &Asked) {
    let (mut all, mut bad) = (0, 0);
    let performance = PolicySpec::parse("performance").expect("a policy");
    for mut case in cases(asked) {
        case.reference = performance.clone();
        let c = match case.compare(&case.policies, asked.replicas.unwrap_or(16)) {
            Ok(c) => c,
            Err(e) => {
                bad += 1;
                println!("{}: {e}", case.name());
                continue;
            }
        };
        for r in &c.results {
            all += 1;
            if c.judged.kind == TimeKind::Deadlines || !faster(r) {
                continue;
            }
            let still = case.faster_awake(&r.policy).unwrap_or(true);
            bad += 1;
            let mutual = c.judged.kind == TimeKind::Response && case.mutual(&r.policy).unwrap_or(false);
            let why = match (still, mutual) {
                (_, true) => ", and the reverse where they change places: another order of tasks",
                (false, false) => ", but for the exit latencies of its idle states",
                (true, false) => "",
            };
            println!("{}: {} is faster than performance{why}", case.name(), r.policy);
        }
    }
    println!("same: {bad} of {all} fail");
}

/// Draws a case, unless another number is asked for.
const DRAWS: u64 = 192;

/// Whether the winner is too slow in a draw, and whether a rival needs noticeably less.
fn changes(draw: &[OneDraw], winner: &str, admissible: &[&str], kind: TimeKind) -> (bool, bool) {
    let own = draw.iter().find(|d| d.policy == winner).expect("it was compared");
    // Responses are judged over all draws together, against what chance does: one draw's say nothing.
    let within = |d: &OneDraw| d.within || kind == TimeKind::Response;
    let better = |d: &&OneDraw| admissible.contains(&d.policy.as_str()) && within(d);
    let rival = draw.iter().filter(better).map(|d| d.cost).fold(f64::INFINITY, f64::min);
    (!within(own), rival < own.cost * (1.0 - NOTICEABLE))
}

fn winners(asked: &Asked) {
    let machines =
        ["alderlake-p-laptop", "i7-4510u", "core-i5-2gen", "xeon-4210", "thinkpad-r51", "openbsd-laptop"];
    let workloads = ["build", "tbench", "nuttcp", "python-loop", "idle-browse", "desktop", "burst"];
    let (mut cases, mut named, mut drawn, mut changed) = (0, 0, 0, 0);
    let draws_a_case = asked.replicas.unwrap_or(DRAWS);
    for workload in workloads.into_iter().filter(|w| asked.workload(w)) {
        for machine in machines {
            let case = Case::new(machine, workload);
            cases += 1;
            let Ok(c) = case.compare(&case.policies, 64) else { continue };
            let Some(winner) = c.answer.winner else { continue };
            named += 1;
            let other = case.with(draws_a_case, |o| draws(&case.job(&case.policies), o, 1000));
            let other = other.expect("it ran before");
            let admissible: Vec<&str> =
                c.results.iter().filter(|r| r.admissible).map(|r| r.policy.as_str()).collect();
            let each: Vec<(bool, bool)> =
                other.iter().map(|draw| changes(draw, &winner, &admissible, c.judged.kind)).collect();
            let count = |is: fn(&(bool, bool)) -> bool| each.iter().filter(|d| is(d)).count();
            let others = count(|d| d.0 || d.1);
            (drawn, changed) = (drawn + each.len(), changed + others);
            println!(
                "{}: {winner}, another in {others} of {draws_a_case}: too slow in {}, a rival needs less in {}",
                case.name(),
                count(|d| d.0),
                count(|d| d.1)
            );
        }
    }
    let share = 100.0 * changed as f64 / drawn.max(1) as f64;
    println!("winners: {named} of {cases} named; another in {changed} of {drawn} draws, {share:.1} %");
}

/// The rows but for those of some policies, with all figures, and what follows from them.
fn told(c: &Comparison, but: &[String]) -> (Vec<String>, Option<String>, String, Vec<String>) {
    let rows = c.results.iter().filter(|r| !but.contains(&r.policy)).map(|r| format!("{r:?}"));
    let a = &c.answer;
    (rows.collect(), a.winner.clone(), a.recommended.clone(), a.tied.clone())
}

fn others(asked: &Asked) {
    let hopeless = PolicySpec::parse("userspace:khz=1").expect("the slowest speed");
    let added = [hopeless.text.clone()];
    let replicas = asked.replicas.unwrap_or(8);
    let (mut all, mut bad, mut could, mut gone) = (0, 0, 0, 0);
    // Where there is one speed the slowest is not hopeless.
    for case in cases(asked).filter(|c| c.machine.kinds.iter().any(|k| k.levels.len() > 1)) {
        let Ok(usual) = case.compare(&case.policies, replicas) else { continue };
        let of_usual = |text: &str| usual.results.iter().find(|r| r.policy == text).expect("compared");
        let never = |p: &PolicySpec| {
            let row = of_usual(&p.text);
            p.text != usual.reference && row.best_share == 0.0 && !row.tied
        };
        let (less, more): (Vec<PolicySpec>, Vec<PolicySpec>) = (
            case.policies.iter().filter(|p| !never(p)).cloned().collect(),
            case.policies.iter().chain([&hopeless]).cloned().collect(),
        );
        let removed: Vec<String> =
            case.policies.iter().filter(|p| never(p)).map(|p| p.text.clone()).collect();
        let (Ok(more), Ok(less)) = (case.compare(&more, replicas), case.compare(&less, replicas)) else {
            bad += 1;
            println!("{}: no comparison", case.name());
            continue;
        };
        all += 1;
        gone += removed.len();
        let row = more.results.iter().find(|r| r.policy == hopeless.text).expect("added");
        if row.best_share > 0.0 || row.tied {
            // Nothing is too slow for this work.
            could += 1;
        } else if told(&usual, &added) != told(&more, &added) {
            bad += 1;
            println!("{}: changed by another", case.name());
        }
        if told(&usual, &removed) != told(&less, &removed) {
            bad += 1;
            println!("{}: changed by removing {}", case.name(), removed.join(", "));
        }
    }
    let added = all - could;
    println!(
        "others: {bad} of {all} change; a policy added to {added} (it can win in the others), {gone} removed"
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = Asked::read(args.get(1..).unwrap_or_default());
    match args.first().map(String::as_str) {
        Some("same") => same(&asked),
        Some("winners") => winners(&asked),
        Some("others") => others(&asked),
        _ => eprintln!("expected same, winners or others"),
    }
}
