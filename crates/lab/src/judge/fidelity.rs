//! The kernel's governors against the model's policies, on the load that the lab recorded.
//!
//! ```text
//! guest: load under a governor --> trace (who ran, cpu_frequency, cpu_idle), tunables
//!    lab side     speeds and idle states as the kernel's events tell them
//!    model side   the same trace lifted to a workload, replayed under the policy of that name
//! ```
//!
//! vpower's speeds are not felt, so the replay's work does not depend on the speed either (all of it is
//! "memory"): what is compared is decisions alone.

use crate::files::{read, write};
use crate::guest::Returned;
use crate::judge::agreement::{self, AgreementCell, AgreementLimits};
use crate::machine;
use crate::verdict::JudgeTold;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use wattwise_model::machine::MachineModel;
use wattwise_policy::pelt::PERIOD_NS;
use wattwise_policy::{
    Cadence, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState, Intent, Observation, Settings,
    SpeedPolicy, idle, speed,
};
use wattwise_sim::{Interrupt, Setup, Simulation, placement, platform};
use wattwise_trace::{ImportOptions, Source, import};

/// Shorter sleeps are not compared. The guest takes 13 to 17 us from an interrupt to the first instruction of the task that it
/// woke, the model none. So a replay is ahead by as much, and where the kernel is woken up to 9 us after the last task has left,
/// before it has gone to sleep, the replay sleeps for the sum of both.
const SHORTEST_NS: u64 = 30_000;

/// The speed that `userspace` is told to hold.
pub(crate) const USERSPACE_KHZ: u32 = 1_650_000;

/// A change of a domain's speed: when (ns), which domain, to what (kHz).
type Change = (u64, usize, u32);

/// What either side did between the markers.
#[derive(Debug, Default)]
struct FidelitySide {
    /// By domain and level: share of the time.
    shares: Vec<Vec<f64>>,
    /// By domain.
    transitions: Vec<u64>,
    /// The levels gone to, by domain, in order.
    sequence: Vec<Vec<(u64, u32)>>,
    /// By idle state, all CPUs.
    idle: Vec<u64>,
}

/// One run under one governor.
struct GovernorRun {
    name: String,
    governor: String,
    idle: String,
    load: String,
}

/// One line of the table.
struct Agreement {
    run: GovernorRun,
    lab: FidelitySide,
    model: FidelitySide,
}

/// Shares and transitions out of changes; everything is at `first` at the window's start.
fn side(khz: &[u32], domains: usize, first: u32, changes: &[Change], from: u64, to: u64) -> FidelitySide {
    let mut side = FidelitySide {
        shares: vec![vec![0.0; khz.len()]; domains],
        transitions: vec![0; domains],
        sequence: vec![Vec::new(); domains],
        idle: Vec::new(),
    };
    let mut now: Vec<(u64, u32)> = vec![(from, first); domains];
    let book = |d: usize, until: u64, (since, speed): (u64, u32), side: &mut FidelitySide| {
        if let Some(level) = khz.iter().position(|&k| k == speed) {
            side.shares[d][level] += until.saturating_sub(since) as f64 / (to - from) as f64;
        }
    };
    for &(at, d, speed) in changes.iter().filter(|(at, d, _)| *at <= to && *d < domains) {
        if speed == now[d].1 {
            continue;
        }
        if at > from {
            book(d, at, now[d], &mut side);
            side.transitions[d] += 1;
            side.sequence[d].push((at - from, speed));
        }
        now[d] = (at.max(from), speed);
    }
    for (d, state) in now.into_iter().enumerate() {
        book(d, to, state, &mut side);
    }
    side
}

/// What the kernel's own events say; times in ns of the trace's clock.
struct Events {
    first: u64,
    begin: u64,
    end: u64,
    changes: Vec<Change>,
    /// Sleeps between the markers, by state.
    idle: Vec<u64>,
    /// Other CPUs' interrupts that woke one, which went back to sleep without having run a task, in time's order.
    interrupts: Vec<Interrupt>,
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (s, us) = text.trim_end_matches(':').split_once('.')?;
    Some(s.parse::<u64>().ok()? * 1_000_000_000 + us.parse::<u64>().ok()? * 10u64.pow(9 - us.len() as u32))
}

/// The scheduler's clock less the trace's, in ns: `clocks` holds both, in ms, the trace's first.
fn scheduler_ahead(clocks: &str) -> Option<i64> {
    // As nanoseconds(): so many thousandths.
    let ns = |ms: &str| nanoseconds(ms).and_then(|n| i64::try_from(n / 1000).ok());
    let (trace, scheduler) = clocks.trim().split_once(' ')?;
    Some(ns(scheduler)? - ns(trace)?)
}

/// `key=value` of a line.
fn field(line: &str, key: &str) -> Option<u64> {
    let at = line.find(key)? + key.len();
    line[at..].split_whitespace().next()?.parse().ok()
}

/// The CPU on which an event was written.
fn written_on(line: &str) -> Option<usize> {
    line.split_once('[')?.1.split_once(']')?.0.parse().ok()
}

/// Interrupts by which one CPU calls another: `kick_ilb()`'s, beside those that bring a task.
const CALLS: [&str; 3] = [" reschedule_entry: ", " call_function_entry: ", " call_function_single_entry: "];

fn events(text: &str, states: usize) -> Result<Events, String> {
    let mut asleep: Vec<Option<(u64, usize)>> = Vec::new();
    // When another CPU's interrupt came to one that has run no task since.
    let mut called: Vec<Option<u64>> = Vec::new();
    let mut e = Events {
        first: 0,
        begin: 0,
        end: 0,
        changes: Vec::new(),
        idle: vec![0; states],
        interrupts: Vec::new(),
    };
    for line in text.lines() {
        if line.starts_with('#') {
            continue;
        }
        if line.contains("LOST") {
            return Err("events are lost: a larger buffer is needed".into());
        }
        let Some(time) =
            line.split_whitespace().find(|w| w.ends_with(':') && w.contains('.')).and_then(nanoseconds)
        else {
            continue;
        };
        if e.first == 0 {
            e.first = time;
        }
        if line.contains(" sched_switch: ") {
            if let Some(called) = written_on(line).and_then(|cpu| called.get_mut(cpu)) {
                *called = None;
            }
        } else if CALLS.iter().any(|call| line.contains(call)) {
            if let Some(cpu) = written_on(line)
                && let (Some(Some(_)), Some(called)) = (asleep.get(cpu), called.get_mut(cpu))
            {
                *called = Some(time);
            }
        } else if line.contains("tracing_mark_write: begin") {
            e.begin = time;
        } else if line.contains("tracing_mark_write: end") {
            e.end = time;
        } else if line.contains(" cpu_frequency: ")
            && let (Some(khz), Some(cpu)) = (field(line, "state="), field(line, "cpu_id="))
        {
            e.changes.push((time, cpu as usize, khz as u32));
        } else if line.contains(" cpu_idle: ")
            && let Some(state) = field(line, "state=")
            && let Some(cpu) = field(line, "cpu_id=")
        {
            let cpu = cpu as usize;
            // The kernel's own polling is its state 0; the model has none, and goes no less deep than C1.
            let state = if state < u64::from(u32::MAX) { state.saturating_sub(1) } else { state };
            asleep.resize(asleep.len().max(cpu + 1), None);
            called.resize(asleep.len(), None);
            let entered = asleep[cpu].take();
            if (state as usize) < states {
                asleep[cpu] = Some((time, state as usize));
                if let Some(at_ns) = called[cpu].take() {
                    e.interrupts.push(Interrupt { at_ns, cpu: cpu as u16, ns: time - at_ns, thread: false });
                }
            } else if let Some((since, state)) = entered
                && since >= e.begin
                && e.begin > 0
                && e.end == 0
                && time - since >= SHORTEST_NS
            {
                e.idle[state] += 1;
            }
        }
    }
    e.interrupts.sort_by_key(|i| i.at_ns);
    if e.begin == 0 || e.end <= e.begin {
        return Err("the markers `begin` and `end` are missing".into());
    }
    Ok(e)
}

/// A speed policy that writes down what it asks for.
struct Noted {
    policy: Box<dyn SpeedPolicy>,
    notes: Arc<Mutex<Vec<Change>>>,
    last: Vec<u32>,
    /// The policy's clock at the work's start.
    since_ns: u64,
}

impl Noted {
    fn note(&mut self, now_ns: u64, out: &Intent, machine_level: impl Fn(u32) -> u32) {
        for (d, intent) in out.domains.iter().enumerate() {
            let khz = intent.desired.0;
            if khz > 0 && self.last.get(d) != Some(&khz) {
                self.last.resize(self.last.len().max(d + 1), 0);
                self.last[d] = khz;
                if let Ok(mut notes) = self.notes.lock() {
                    notes.push((now_ns - self.since_ns, d, machine_level(khz)));
                }
            }
        }
    }
}

impl SpeedPolicy for Noted {
    fn cadence(&self) -> Cadence {
        self.policy.cadence()
    }
    fn cost_ns(&self) -> u64 {
        self.policy.cost_ns()
    }
    fn followed_util(&self, cpu: usize) -> Option<u64> {
        self.policy.followed_util(cpu)
    }
    fn followed_util_at(&self, cpu: usize, at_ns: u64) -> Option<u64> {
        self.policy.followed_util_at(cpu, at_ns)
    }
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.since_ns = obs.now_ns;
        self.policy.start(obs, out);
        self.note(obs.now_ns, out, |khz| khz);
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.policy.observe(obs, out);
        self.note(obs.now_ns, out, |khz| khz);
    }
}

/// An idle policy that counts what it chose between two times.
struct Counted {
    policy: Box<dyn IdlePolicy>,
    counts: Arc<Mutex<Vec<u64>>>,
    from: u64,
    to: u64,
    /// The present sleep began between them.
    counted: bool,
}

impl IdlePolicy for Counted {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        self.counted = (self.from..self.to).contains(&query.now_ns);
        self.policy.select(query)
    }
    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        // The recording did not have it: the policy does not learn of it either.
        if outcome.measured_ns < SHORTEST_NS {
            return;
        }
        if self.counted
            && let Ok(mut counts) = self.counts.lock()
        {
            counts[usize::from(outcome.state)] += 1;
        }
        self.policy.reflect(outcome, states);
    }
}

/// The kernel's governor has seen the guest rest before the recording begins: four long sleeps a state, with
/// room, lead `ladder` down to the deepest.
fn rested(policy: &mut dyn IdlePolicy, states: &[IdleState]) {
    const LONG_NS: u64 = 50_000_000;
    for n in 0..5 * states.len() as u64 {
        // None like another: `menu` would take equal ones for a pattern, and drop them all at the first short one.
        let long_ns = LONG_NS * (n % 7 + 1);
        let query = IdleQuery {
            now_ns: 0,
            next_timer_ns: long_ns,
            next_tick_ns: long_ns,
            tick_stopped: false,
            latency_limit_ns: u64::MAX,
            iowaiters: 0,
            ran_at_tick: 0,
            states,
        };
        let state = policy.select(&query).state;
        policy.reflect(
            &IdleOutcome { state, measured_ns: long_ns, by_timer: true, by_tick: false, poll_ended: false },
            states,
        );
    }
}

/// The policy's settings, from the governor's own tunables.
fn settings(governor: &str, tunables: &str) -> String {
    let known: HashMap<&str, &str> = tunables.lines().filter_map(|l| l.split_once('=')).collect();
    let map: &[(&str, &str)] = match governor {
        "ondemand" => {
            &[("rate", "sampling_rate"), ("up", "up_threshold"), ("down_factor", "sampling_down_factor")]
        }
        "conservative" => &[
            ("rate", "sampling_rate"),
            ("up", "up_threshold"),
            ("down", "down_threshold"),
            ("step", "freq_step"),
            ("down_factor", "sampling_down_factor"),
        ],
        "schedutil" => &[("rate_limit", "rate_limit_us")],
        "userspace" => return format!("khz={USERSPACE_KHZ}"),
        _ => return String::new(),
    };
    let mut text = String::from("cost=0");
    for (ours, theirs) in map {
        if let Some(value) = known.get(theirs) {
            let _ = write!(text, ",{ours}={value}");
        }
    }
    if governor == "ondemand" && known.get("io_is_busy") == Some(&"1") {
        text += ",io_is_busy=yes";
    }
    text
}

/// The idle policy's settings: the lab's kernel is 6.1.
fn idle_settings(governor: &str) -> &'static str {
    if governor == "menu" { "linux=6.1" } else { "" }
}

/// The machine's first CPUs alone.
fn first_cpus(mut machine: MachineModel, cpus: usize) -> MachineModel {
    machine.cpus.truncate(cpus);
    machine.cores.truncate(cpus);
    machine.domains.truncate(cpus);
    for package in &mut machine.packages {
        package.cores.truncate(cpus);
        package.domains.truncate(cpus);
    }
    machine
}

/// One recording, and what the kernel did in it.
struct Recording {
    machine: MachineModel,
    khz: Vec<u32>,
    text: String,
    /// Of the trace's first event, in ns of its clock.
    first: u64,
    /// Of the markers, in ns since then.
    from: u64,
    to: u64,
    /// Interrupts that woke a CPU and brought no task, at their times since the first event.
    interrupts: Vec<Interrupt>,
    lab: FidelitySide,
}

fn recorded(root: &Path, folder: &Path, run: &str, cpus: usize) -> Result<Recording, String> {
    let machine = first_cpus(machine::lab(root)?, cpus);
    let khz: Vec<u32> = machine.kinds[0].levels.iter().map(|l| l.khz).collect();
    let text = read(&folder.join(format!("{run}.trace")))?;
    let events = events(&text, machine.kinds[0].idle.len()).map_err(|e| format!("{run}: {e}"))?;
    let (first, from, to) = (events.first, events.begin - events.first, events.end - events.first);
    let changes: Vec<Change> = events.changes.iter().map(|&(t, d, k)| (t - first, d, k)).collect();
    let mut lab = side(&khz, cpus, khz[khz.len() - 1], &changes, from, to);
    lab.idle = events.idle;
    let since = |i: &Interrupt| Interrupt { at_ns: i.at_ns - first, ..*i };
    let interrupts = events.interrupts.iter().map(since).collect();
    Ok(Recording { machine, khz, text, first, from, to, interrupts, lab })
}

fn compare(
    root: &Path,
    folder: &Path,
    run: GovernorRun,
    cpus: usize,
    tick_ns: u64,
) -> Result<Agreement, String> {
    let Recording { machine, khz, text, first, from, to, interrupts, lab } =
        recorded(root, folder, &run.name, cpus)?;
    let lowest = khz[khz.len() - 1];
    let states = machine.kinds[0].idle.len();
    let options = ImportOptions {
        memory_share: Some(1.0),
        keep_moments: true,
        khz: Some(khz[0]),
        ..ImportOptions::default()
    };
    let source = Source::Bytes { name: run.name.clone(), data: text.into_bytes().into() };
    let workload = import(source, &options).map_err(|e| e.to_string())?;
    let find = speed::find(&run.governor).ok_or_else(|| format!("no policy `{}`", run.governor))?;
    let tunables = read(&folder.join(format!("{}.tunables", run.name)))?;
    let parsed =
        Settings::parse(find.params, &settings(&run.governor, &tunables)).map_err(|e| e.to_string())?;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let policy = Noted {
        policy: (find.build)(&platform(&machine), &parsed),
        notes: notes.clone(),
        last: Vec::new(),
        since_ns: 0,
    };
    let counts = Arc::new(Mutex::new(vec![0; states]));
    let idler = idle::find(&run.idle).ok_or_else(|| format!("no policy `{}`", run.idle))?;
    let as_lab = Settings::parse(idler.params, idle_settings(&run.idle)).map_err(|e| e.to_string())?;
    let make = |table: &[IdleState], tick: u64| -> Box<dyn IdlePolicy> {
        let mut policy = (idler.build)(table, tick, &as_lab);
        rested(&mut *policy, table);
        Box::new(Counted { policy, counts: counts.clone(), from, to, counted: false })
    };
    let mut setup = Setup::new(&machine, &workload, Box::new(policy), &make);
    // Decisions about speeds and states are compared: tasks run where and when they did.
    setup.placement = &placement::RECORDED;
    setup.initial_khz = lowest;
    let period = machine.tick.period_ns;
    let clocks = read(&folder.join(format!("{}.clocks", run.name)))?;
    let ahead =
        scheduler_ahead(&clocks).ok_or_else(|| format!("{}.clocks: two times in ms, expected", run.name))?;
    setup.load_phase_ns = (first as i64 + ahead).rem_euclid(PERIOD_NS as i64) as u64;
    setup.phase_ns = (tick_ns % period + period - first % period) % period;
    setup.interrupts = &interrupts;
    Simulation::new(setup).run_until(to);
    let notes = notes.lock().map_err(|e| e.to_string())?;
    // A request between two levels is the slowest level that is at least that.
    let granted: Vec<Change> = notes
        .iter()
        .map(|&(t, d, k)| (t, d, khz.iter().rev().copied().find(|&l| l >= k).unwrap_or(khz[0])))
        .collect();
    let mut model = side(&khz, cpus, lowest, &granted, from, to);
    model.idle = counts.lock().map_err(|e| e.to_string())?.clone();
    Ok(Agreement { run, lab, model })
}

/// Largest difference of a level's share in any domain, in points.
fn worst_share(row: &Agreement) -> f64 {
    let pairs = row.lab.shares.iter().flatten().zip(row.model.shares.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs() * 100.0).fold(0.0, f64::max)
}

/// Mean of the largest difference in each domain, in points.
fn mean_share(row: &Agreement) -> f64 {
    let worst = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        a.iter().zip(b).map(|(x, y)| (x - y).abs() * 100.0).fold(0.0, f64::max)
    };
    row.lab.shares.iter().zip(&row.model.shares).map(worst).sum::<f64>() / row.lab.shares.len() as f64
}

fn total(side: &FidelitySide) -> u64 {
    side.transitions.iter().sum()
}

/// Largest difference of an idle state's share of all choices, in points; no number where neither side slept.
fn idle_difference(row: &Agreement) -> f64 {
    if row.lab.idle.iter().chain(&row.model.idle).all(|&n| n == 0) {
        return f64::NAN;
    }
    let sum = |v: &[u64]| v.iter().sum::<u64>().max(1) as f64;
    let (a, b) = (sum(&row.lab.idle), sum(&row.model.idle));
    row.lab
        .idle
        .iter()
        .zip(&row.model.idle)
        .map(|(&x, &y)| (x as f64 / a - y as f64 / b).abs() * 100.0)
        .fold(0.0, f64::max)
}

/// In how many domains the same levels were chosen in the same order.
fn same_order(row: &Agreement) -> usize {
    let levels = |s: &[(u64, u32)]| s.iter().map(|&(_, k)| k).collect::<Vec<_>>();
    row.lab.sequence.iter().zip(&row.model.sequence).filter(|(a, b)| levels(a) == levels(b)).count()
}

fn shares(side: &[f64]) -> String {
    side.iter().map(|s| format!("{:.0}", s * 100.0)).collect::<Vec<_>>().join(" ")
}

fn table(rows: &[Agreement]) -> String {
    let mut text = String::from(
        "| governor | idle | load | time at a level: worst, mean of CPUs (points) | changes: lab, model | same sequence | idle choices: lab, model | worst (points) |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let list = |v: &[u64]| v.iter().map(u64::to_string).collect::<Vec<_>>().join("/");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1}, {:.1} | {}, {} | {} | {}, {} | {:.1} |",
            row.run.governor,
            row.run.idle,
            row.run.load,
            worst_share(row),
            mean_share(row),
            total(&row.lab),
            total(&row.model),
            match (same_order(row), row.lab.sequence.len()) {
                (same, all) if same == all => "yes".to_owned(),
                (0, 1) => "no".to_owned(),
                (same, all) => format!("{same} of {all} CPUs"),
            },
            list(&row.lab.idle),
            list(&row.model.idle),
            idle_difference(row),
        );
    }
    text
}

/// The table as a page of the docs.
pub(crate) fn page(scenario: &str, release: &str, table: &str) -> String {
    format!(
        "# Kernel and model: `{scenario}`\n\nMade by `cargo lab {scenario} --bless` on {release}; \
         what the columns mean and why some differ: [the lab](lab.md).\n\n{table}"
    )
}

fn details(rows: &[Agreement]) -> String {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{}", row.run.name);
        for d in 0..row.lab.shares.len() {
            let _ = writeln!(
                text,
                "  CPU {d}: lab {} ({} changes), model {} ({} changes)",
                shares(&row.lab.shares[d]),
                row.lab.transitions[d],
                shares(&row.model.shares[d]),
                row.model.transitions[d]
            );
            let told = |sequence: &[(u64, u32)]| {
                let each =
                    sequence.iter().take(40).map(|(t, k)| format!("{:.1}:{}", *t as f64 / 1e6, k / 1000));
                each.collect::<Vec<_>>().join(" ")
            };
            let _ = writeln!(text, "    lab   {}", told(&row.lab.sequence[d]));
            let _ = writeln!(text, "    model {}", told(&row.model.sequence[d]));
        }
    }
    text
}

/// Results kept from an earlier boot, to be judged again: for work on the policies.
pub(crate) fn kept(folder: &Path) -> Result<Returned, String> {
    let text = read(&folder.join("results.jsonl"))?;
    let lines = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    Ok(Returned { lines, folder: folder.to_owned(), seconds: 0.0, accel: "kept" })
}

fn runs(returned: &Returned) -> Vec<GovernorRun> {
    let get = |line: &Value, key: &str| line.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lines = returned.lines.iter().filter(|l| l.get("run").is_some());
    lines
        .map(|l| GovernorRun {
            name: get(l, "run"),
            governor: get(l, "governor"),
            idle: get(l, "idle"),
            load: get(l, "load"),
        })
        .collect()
}

/// Two boots of the same: the kernel against itself, by what the model is judged by. Where the kernel
/// does not repeat itself no model can follow.
pub(crate) fn repeated(root: &Path, once: &Path, twice: &Path, cpus: usize) -> Result<Vec<String>, String> {
    let mut rows = Vec::new();
    for run in runs(&kept(twice)?) {
        let lab = recorded(root, once, &run.name, cpus)?.lab;
        let model = recorded(root, twice, &run.name, cpus)?.lab;
        rows.push(Agreement { run, lab, model });
    }
    write(&twice.join("repeated.md"), &table(&rows))?;
    Ok(agreement::figures(&cells(&rows)))
}

fn rows(root: &Path, returned: &Returned, cpus: usize) -> Result<Vec<Agreement>, String> {
    let mut rows = Vec::new();
    let tick_ns = returned.lines.iter().find_map(|l| l.get("tick_ns")?.as_u64()).unwrap_or(0);
    for run in runs(returned) {
        rows.push(compare(root, &returned.folder, run, cpus, tick_ns)?);
    }
    write(&returned.folder.join("details.txt"), &details(&rows))?;
    write(&returned.folder.join("table.md"), &table(&rows))?;
    Ok(rows)
}

/// Four CPUs.
pub(crate) fn judge_four(root: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    judged(root, returned, 4, &agreement::FOUR)
}

/// One CPU under `menu`.
pub(crate) fn judge_menu(root: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    judged(root, returned, 1, &agreement::MENU)
}

/// One CPU under `ladder`.
pub(crate) fn judge_ladder(root: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    judged(root, returned, 1, &agreement::LADDER)
}

fn judged(
    root: &Path,
    returned: &Returned,
    cpus: usize,
    limits: &AgreementLimits,
) -> Result<JudgeTold, String> {
    agreement::judge(&cells(&rows(root, returned, cpus)?), limits)
}

/// What is judged of each run.
fn cells(rows: &[Agreement]) -> Vec<AgreementCell> {
    let cell = |row: &Agreement| AgreementCell {
        name: row.run.name.clone(),
        governor: row.run.governor.clone(),
        load: row.run.load.clone(),
        levels_points: worst_share(row),
        changes: (total(&row.lab), total(&row.model)),
        same_order: same_order(row),
        domains: row.lab.sequence.len(),
        idle_points: idle_difference(row),
    };
    rows.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_changes() {
        let s =
            side(&[3, 2, 1], 2, 1, &[(5, 0, 2), (20, 0, 3), (20, 0, 3), (60, 1, 2), (200, 0, 1)], 10, 110);
        assert_eq!(s.shares, [vec![0.9, 0.1, 0.0], vec![0.0, 0.5, 0.5]]);
        assert_eq!((s.transitions, s.sequence), (vec![1, 1], vec![vec![(10, 3)], vec![(50, 2)]]));
    }

    #[test]
    fn tunables_become_settings() {
        let text = "io_is_busy=1\nsampling_rate=10000\nup_threshold=95\nsampling_down_factor=1\n";
        assert_eq!(settings("ondemand", text), "cost=0,rate=10000,up=95,down_factor=1,io_is_busy=yes");
        assert_eq!(settings("performance", text), "");
    }

    #[test]
    fn idle_policies_are_as_in_the_labs_kernel() {
        assert_eq!(["menu", "ladder"].map(idle_settings), ["linux=6.1", ""]);
        for name in ["menu", "ladder"] {
            let item = idle::find(name).expect("a policy");
            assert!(Settings::parse(item.params, idle_settings(name)).is_ok(), "{name}");
        }
    }

    /// Then one short sleep is no pattern, and the timer decides: 100 ms are the deepest state.
    #[test]
    fn who_has_rested_expects_no_short_sleep() {
        let state =
            |us: u64| IdleState { exit_ns: us * 1000, target_ns: us * 3000, enabled: true, polls: false };
        let states = [state(1), state(50), state(200)];
        let menu = idle::find("menu").expect("a policy");
        let settings = Settings::parse(menu.params, idle_settings("menu")).expect("valid");
        let mut policy = (menu.build)(&states, 4_000_000, &settings);
        rested(&mut *policy, &states);
        let query = IdleQuery {
            now_ns: 0,
            next_timer_ns: 100_000_000,
            next_tick_ns: 4_000_000,
            tick_stopped: false,
            latency_limit_ns: u64::MAX,
            iowaiters: 0,
            ran_at_tick: 0,
            states: &states,
        };
        policy.select(&query);
        policy.reflect(
            &IdleOutcome {
                state: 0,
                measured_ns: 30_000,
                by_timer: false,
                by_tick: false,
                poll_ended: false,
            },
            &states,
        );
        assert_eq!(policy.select(&query).state, 2);
    }

    #[test]
    fn clocks_are_read() {
        assert_eq!(scheduler_ahead("12.000500 12.001750\n"), Some(1250));
        assert_eq!(scheduler_ahead("12.000500 11.0\n"), Some(-1_000_500));
        assert_eq!(scheduler_ahead("12.000500"), None);
    }

    #[test]
    fn a_call_that_brings_a_task_is_no_interrupt() {
        let line = |at: u32, what: &str| format!(" <idle>-0 [001] d..1. 5.{at:06}: {what}\n");
        let (sleeps, wakes) = ("cpu_idle: state=2 cpu_id=1", "cpu_idle: state=4294967295 cpu_id=1");
        let call = "call_function_single_entry: vector=251";
        let text = [
            " sh-1 [000] ..... 5.000000: tracing_mark_write: begin\n".to_owned(),
            // Awake: the call interrupts work.
            line(50, call),
            line(100, sleeps),
            line(200, call),
            line(201, wakes),
            line(207, sleeps),
            // The tick, and a call that brings a task.
            line(300, wakes),
            line(301, sleeps),
            line(400, call),
            line(401, wakes),
            line(402, "sched_switch: prev_comm=swapper/1 prev_pid=0 ==> next_comm=t next_pid=7"),
            line(500, sleeps),
            " sh-1 [000] ..... 6.5: tracing_mark_write: end\n".to_owned(),
        ]
        .concat();
        let found = events(&text, 3).expect("valid").interrupts;
        assert_eq!(found, [Interrupt { at_ns: 5_000_200_000, cpu: 1, ns: 7_000, thread: false }]);
    }

    #[test]
    fn a_trace_is_read() {
        let text = "# tracer: nop\n sh-1 [000] ..... 5.000000: tracing_mark_write: begin\n <idle>-0 [001] d..1. 5.000100: cpu_idle: state=2 cpu_id=1\n <idle>-0 [001] d..1. 5.000150: cpu_idle: state=4294967295 cpu_id=1\n x-1 [001] d..1. 5.000200: cpu_frequency: state=800000 cpu_id=1\n sh-1 [000] ..... 6.5: tracing_mark_write: end\n";
        let e = events(text, 3).expect("valid");
        assert_eq!(
            (e.begin, e.end, e.changes, e.idle),
            (5_000_000_000, 6_500_000_000, vec![(5_000_200_000, 1, 800_000)], vec![0, 1, 0])
        );
    }
}
