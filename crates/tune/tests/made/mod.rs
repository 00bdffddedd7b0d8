//! Searches whose right answer is known beforehand, for tests and for `examples/shows.rs`.
//!
//! **Planted.** One core of 100 speeds and eight C-states, one task that works and sleeps in rounds. In speed f and state d
//! a round takes c/f + s + l(d), and the energy over the window W is
//!
//! ```text
//! E = N (c/f P(f) + l(d) q P(f)) + (W - N (c/f + l(d))) w(d) + W p
//! ```
//!
//! with N rounds of c cycles and sleeps s, exit latency l, P watts busy and q P stalled, w idle and p the platform. The best of the
//! 800 policies follows from that alone, without a simulation.
//!
//! **Null.** The one free setting is a governor's period, 10.001 to 10.05 ms; the reference has 10. It changes when the governor
//! looks, so each run by a little, and nothing in the mean: a look costs nothing here.
#![allow(dead_code, clippy::unwrap_used, reason = "used in parts; a fault here is a failed test")]

use std::sync::atomic::AtomicBool;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::Random;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, Workload, file};
use wattwise_policy::PowerSource;
use wattwise_replay::apply::Commands;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_tune::conduct::{Hooks, SearchOutcome, Spend, search};
use wattwise_tune::field::{Field, FieldJob, FieldLimits};
use wattwise_tune::log::{KnownTrials, Log};
use wattwise_tune::result::TuneResult;
use wattwise_tune::search::Method;
use wattwise_tune::space::Space;
use wattwise_tune::split::split;
use wattwise_tune::tune::{TuneError, TuneInput, Tuning, tune};

/// Rounds, their work in cycles and sleep in s, the platform's watts, the share of busy power while stalled.
const ROUNDS: f64 = 50.0;
const CYCLES: f64 = 6e6;
const SLEEP_S: f64 = 2e-3;
const PLATFORM_W: f64 = 3.0;
const STALLED: f64 = 0.6;
/// How much slower than the highest speed is allowed.
const SLOWER: f64 = 1.0;

/// Speeds in MHz, fastest first.
fn speeds() -> Vec<f64> {
    (0..100).map(|i| 2400.0 - 20.0 * f64::from(i)).collect()
}

fn busy_w(mhz: f64) -> f64 {
    1.0 + 9.0 * (mhz / 2400.0).powi(3)
}

/// C-states: exit latency in us, watts.
const STATES: [(f64, f64); 8] = [
    (1.0, 0.99),
    (5.0, 0.9),
    (20.0, 0.75),
    (60.0, 0.55),
    (150.0, 0.4),
    (400.0, 0.3),
    (900.0, 0.22),
    (1900.0, 0.2),
];

fn planted_machine() -> MachineModel {
    let list = |values: Vec<String>| values.join(", ");
    let mhz = list(speeds().iter().map(f64::to_string).collect());
    let watts = list(speeds().iter().map(|f| format!("{:.9}", busy_w(*f))).collect());
    let state = |(i, (us, w)): (usize, &(f64, f64))| {
        format!("{{ name = \"C{}\", latency_us = {us:?}, target_us = {us:?}, watts = {w:?} }}", i + 1)
    };
    let states = list(STATES.iter().enumerate().map(state).collect());
    let source = "source = \"a test\"\nconfidence = \"datasheet\"\n";
    let exact = format!("{source}range = \"+-0%\"\n");
    let text = format!(
        "name = \"planted\"\nsummary = \"one core, made for a test\"\n[topology]\npackages = 1\nclocks = \"core\"\n{source}\
         [[kind]]\nname = \"core\"\ncores = 1\n{source}[kind.speeds]\nmhz = [{mhz}]\nbusy_w = [{watts}]\nstall_share = {STALLED}\n{exact}\
         [kind.idle]\nstates = [{states}]\n{exact}[package]\nuncore_w = 0.0\n{source}\
         [platform]\nwatts = {PLATFORM_W:?}\nidle_policy = \"fixed\"\nsystem = \"linux\"\ndriver = \"none\"\n\
         default_policy = \"performance\"\nmigration_us = 0.0\ninterrupt_us = 0.0\n{exact}\
         [tick]\nhz = 100\ntickless = true\ncost_us = 0.0\n{source}"
    );
    library::parsed(&text, "planted").unwrap()
}

fn planted_work() -> Workload {
    let (run, sleep) = (CYCLES / 1e3, SLEEP_S * 1e6);
    let text = format!(
        "name = 'planted'\nsummary = 'rounds'\nreference_khz = 1000000\nmemory_share = [0, 0]\nipc_factor = [1, 1]\n[[task]]\nname = 'work'\nrounds = {ROUNDS}\n\
         steps = [{{ run_us = {run} }}, {{ sleep_us = {sleep} }}]\n"
    );
    file::parse(&text, "planted.toml").unwrap()
}

/// The best speed in MHz and C-state by the formula alone.
pub(crate) fn planted_best() -> (f64, usize) {
    let takes = |mhz: f64, d: usize| ROUNDS * (CYCLES / (mhz * 1e6) + SLEEP_S + STATES[d].0 * 1e-6);
    // The reference: the highest speed and the deepest state.
    let reference_s = takes(2400.0, 7);
    let window_s = reference_s * (1.0 + SLOWER);
    let energy = |mhz: f64, d: usize| {
        let (run_s, wake_s, (_, idle_w)) = (CYCLES / (mhz * 1e6), STATES[d].0 * 1e-6, STATES[d]);
        ROUNDS * (run_s + STALLED * wake_s) * busy_w(mhz) + (window_s - ROUNDS * (run_s + wake_s)) * idle_w
    };
    let all = speeds().into_iter().flat_map(|f| (0..8).map(move |d| (f, d)));
    all.filter(|&(f, d)| takes(f, d) <= reference_s * (1.0 + SLOWER))
        .min_by(|a, b| energy(a.0, a.1).total_cmp(&energy(b.0, b.1)))
        .unwrap()
}

/// The speed in MHz and the C-state that a policy of the planted space means.
fn meant(policy: &PolicySpec) -> (f64, usize) {
    let khz = policy.speed_settings.number("khz");
    let mhz = speeds().into_iter().rev().find(|f| f * 1e3 >= khz).unwrap_or(2400.0);
    let mhz = if khz == 0.0 { 2400.0 } else { mhz };
    let depth = policy.idle.as_ref().map_or(255.0, |i| i.settings.number("depth"));
    (mhz, (depth as usize).min(7))
}

/// After how many trials the planted best was looked at first; and whether it is the best of the search in the end.
pub(crate) fn planted(seed: u64, method: Method, trials: u64) -> (Option<usize>, bool) {
    let (machine, work) = (planted_machine(), planted_work());
    let reference = PolicySpec::parse("performance").unwrap();
    let job = job(&machine, &work);
    let limits =
        FieldLimits { rule: Rule { goal: Goal::Energy, max_slowdown: SLOWER }, max_p99: f64::INFINITY };
    let (field, unusable) =
        Field::new(&[FieldJob { number: 0, job: &job, reference: &reference }], limits, (1, 1));
    assert!(unusable.is_empty(), "{}", unusable[0].1);
    let space = Space::parse("userspace:khz=400..2400MHz,fixed:depth=0..7", &reference).unwrap();
    let spend = Spend { trials: Some(trials), time: None };
    let found: SearchOutcome = search(
        (&field, &space),
        (seed, method),
        spend,
        &quiet(),
        (&mut Log::none(), &KnownTrials::default()),
    );
    let best = planted_best();
    let first = found.trials.iter().position(|t| meant(&t.policy) == best).map(|at| at + 1);
    (first, meant(&found.trials[found.best[0]].policy) == best)
}

static NEVER: AtomicBool = AtomicBool::new(false);

fn quiet() -> Hooks<'static> {
    Hooks { tell: &|_| {}, warn: &|_| {}, stop: &NEVER }
}

fn job<'a>(machine: &'a MachineModel, workload: &'a Workload) -> ReplayJob<'a> {
    ReplayJob {
        machine,
        workload,
        policies: &[],
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    }
}

/// Some tasks that compute and sleep until so much is done.
fn any_work(random: &mut Random) -> Workload {
    let task = |random: &mut Random| {
        let run = (1 << (18 + random.below(7))) as u64;
        let sleep = (1 << (20 + random.below(5))) as u64;
        let pattern = Pattern {
            steps: vec![Step::Run(Dist::Uniform(run, 3 * run)), Step::Sleep(Dist::Uniform(sleep / 4, sleep))],
            start: Dist::Uniform(0, sleep),
            rounds: 2_000_000_000 / (sleep + run) + 1,
            until_ns: u64::MAX,
            seed: random.bits() | 1,
            reference_khz: 2_000_000,
            memory_share: 0.0,
        };
        Task::new("t", Program::Pattern(pattern))
    };
    let tasks = (0..1 + random.below(4)).map(|_| task(random)).collect();
    Workload::new("made up", "random tasks", tasks, 0)
}

/// Every policy that has settings, at random points of what its table allows, on some work: how many came through it.
pub(crate) fn points_that_ran(seed: u64, each: usize) -> usize {
    let mut random = Random::new(seed);
    let machine = library::machine("core-i5-2gen").unwrap();
    let work = any_work(&mut random);
    let job = job(&machine, &work);
    let reference = PolicySpec::parse("performance").unwrap();
    let limits = FieldLimits {
        rule: Rule { goal: Goal::Energy, max_slowdown: f64::INFINITY },
        max_p99: f64::INFINITY,
    };
    let (field, _) = Field::new(&[FieldJob { number: 0, job: &job, reference: &reference }], limits, (1, 1));
    let speeds = wattwise_policy::speed::ALL.iter().map(|p| p.name);
    let cores = wattwise_policy::cores::ALL.iter().map(|p| p.name);
    let mut ran = 0;
    for name in speeds.chain(cores) {
        let Ok(space) = Space::parse(name, &reference) else { continue };
        for _ in 0..each {
            let at: Vec<f64> = (0..space.dimensions()).map(|_| random.unit()).collect();
            ran += usize::from(field.look(0, &space.policy(&at)).is_ok());
        }
    }
    ran
}

/// Machines whose model is small enough for thousands of searches.
const MACHINES: [&str; 4] = ["i7-4510u", "core-i5-2gen", "thinkpad-r51", "openbsd-laptop"];

/// A search among settings that are all the same in the mean, over eight made-up recordings; none where no setting was
/// within the limits.
pub(crate) fn null(seed: u64, trials: u64) -> Option<TuneResult> {
    let mut random = Random::new(seed);
    let machine = library::machine(MACHINES[random.below(MACHINES.len())]).unwrap();
    let works: Vec<Workload> = (0..8).map(|_| any_work(&mut random)).collect();
    let jobs: Vec<ReplayJob<'_>> = works.iter().map(|w| job(&machine, w)).collect();
    let reference = PolicySpec::parse("ondemand:rate=10ms,cost=0").unwrap();
    let input = |(recording, job)| TuneInput { job, reference: &reference, recording };
    let inputs: Vec<TuneInput<'_>> = jobs.iter().enumerate().map(input).collect();
    let space = Space::parse("ondemand:rate=10.001..10.05ms,cost=0", &reference).unwrap();
    let tuning = Tuning {
        inputs: &inputs,
        test: &split(works.len(), seed),
        space: &space,
        limits: FieldLimits { rule: Rule::default(), max_p99: f64::INFINITY },
        replicas: 64,
        seed,
        apply: &|_| Ok(Commands::System(vec![vec!["the".into(), "line".into()]])),
        method: Method::Evolution,
        spend: Spend { trials: Some(trials), time: None },
    };
    match tune(&tuning, &quiet(), (&mut Log::none(), &KnownTrials::default())) {
        Ok(result) => Some(result),
        Err(TuneError::NoneAdmissible { .. }) => None,
        Err(e) => panic!("{e}"),
    }
}
