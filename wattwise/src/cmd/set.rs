//! `set`: changes power states, shows what came of it, and can hold them while something else runs.

use super::{Failure, Outcome, hardware, print, print_json};
use crate::hw::plan::{Inventory, Plan, PlanError, Setting, plan};
use crate::hw::root::Root;
use crate::hw::select::Selector;
use crate::hw::transaction::{self, Change, Transaction, TransactionError};
use crate::hw::units::{Speed, duration_ns, power_uw, speed};
use crate::hw::writers;
use serde::Serialize;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(
    after_help = "Speeds: 500MHz, 1.2G, a number of kHz, 60% of the highest, or min, max, base, boost.\n\
    'wattwise restore' puts back what was there before."
)]
pub(super) struct Args {
    #[command(flatten)]
    selector: Selector,
    /// Governor of the speed
    #[arg(short, long, value_name = "NAME")]
    governor: Option<String>,
    /// Lowest speed that it may choose
    #[arg(long, value_name = "SPEED")]
    min: Option<String>,
    /// Highest speed that it may choose
    #[arg(long, value_name = "SPEED")]
    max: Option<String>,
    /// Hold one speed (governor userspace)
    #[arg(short, long, value_name = "SPEED")]
    freq: Option<String>,
    /// Energy-performance preference: a word, or 0 (performance) to 255 (power)
    #[arg(long, value_name = "PREFERENCE")]
    epp: Option<String>,
    /// Energy-performance bias: a word, or 0 (performance) to 15 (power)
    #[arg(long, value_name = "BIAS")]
    epb: Option<String>,
    /// Boost (turbo) on or off
    #[arg(long, value_name = "on|off")]
    boost: Option<Switch>,
    /// Allow or forbid a C-state, such as C6=off
    #[arg(long, value_name = "STATE=on|off")]
    cstate: Vec<String>,
    /// Longest wake-up of an idle CPU, such as 20us; 0 keeps it polling; none lifts the limit
    #[arg(long, value_name = "DURATION")]
    latency: Option<String>,
    /// Governor of the C-states
    #[arg(long, value_name = "NAME")]
    idle_governor: Option<String>,
    /// Clock modulation: the share of the clock that is let through, such as 50%; 100% is none
    #[arg(long, value_name = "PERCENT")]
    tstate: Option<String>,
    /// Power limit: 15W for each package, or ZONE=15W, or ZONE/LIMIT=15W (dram=5W, package-0/short_term=28W)
    #[arg(long, value_name = "LIMIT")]
    rapl: Vec<String>,
    /// Lowest speed of the uncore
    #[arg(long, value_name = "SPEED")]
    uncore_min: Option<String>,
    /// Highest speed of the uncore
    #[arg(long, value_name = "SPEED")]
    uncore_max: Option<String>,
    /// A tunable of the governor in force, such as up_threshold=90
    #[arg(long, value_name = "NAME=VALUE")]
    tunable: Vec<String>,
    /// The firmware's platform profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Mode of intel_pstate or amd-pstate: active, passive, guided, off
    #[arg(long, value_name = "MODE")]
    driver_mode: Option<String>,
    /// Take the CPUs online or offline
    #[arg(long, value_name = "on|off")]
    online: Option<Switch>,
    /// Show each write, old and new value and the rule that refuses it, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Hold the settings until a time has passed (10min), a process has ended (pid:1234) or Ctrl-C (forever)
    #[arg(long, value_name = "UNTIL", conflicts_with = "hold_for")]
    until: Option<String>,
    /// Hold the settings while the command after it runs
    #[arg(long = "for", id = "hold_for", num_args = 1.., value_name = "COMMAND", allow_hyphen_values = true)]
    hold_for: Vec<String>,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// Print as JSON (schema wattwise.set/1)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

/// How long settings stay.
pub(super) enum Hold<'a> {
    /// For good, until `restore`.
    Kept,
    /// While a command runs.
    Command(&'a [String]),
    /// For a time.
    Time(Duration),
    /// While a process lives.
    Process(i32),
}

#[derive(Serialize)]
struct Row<'a> {
    what: &'a str,
    target: String,
    old: &'a str,
    asked: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    dry_run: bool,
    changes: Vec<Row<'a>>,
    notes: &'a [String],
}

pub(super) fn run(args: &Args) -> Outcome {
    let settings = args.settings()?;
    if settings.is_empty() {
        return Err(Failure::input(
            "set: nothing to set; expected a setting such as --governor powersave; see 'wattwise set --help'",
        ));
    }
    let hold = args.hold()?;
    let root = args.root.open()?;
    let inventory = Inventory::read(&*root);
    let all = settings.iter().any(|s| matches!(s, Setting::Online(_)));
    let cpus = args.selector.resolve(&inventory.topology, all).map_err(Failure::input)?;
    let plan = plan(&*root, &inventory, &cpus, &settings).map_err(not_planned)?;
    if args.dry_run {
        return dry_run(args, &plan);
    }
    apply(&*root, &args.root.journal(), &plan, &hold, args.json)
}

/// A wish that cannot be fulfilled, with its exit code.
pub(super) fn not_planned(error: PlanError) -> Failure {
    match error {
        PlanError::Input(m) => Failure::input(m),
        PlanError::Impossible(m) => Failure::impossible(m),
    }
}

impl Args {
    /// The wishes, in no particular order.
    fn settings(&self) -> Result<Vec<Setting>, Failure> {
        fn flag<T, E: std::fmt::Display>(name: &str, value: Result<T, E>) -> Result<T, Failure> {
            value.map_err(|e| Failure::input(format!("--{name} {e}")))
        }
        fn speed_of(name: &str, given: &Option<String>) -> Result<Option<Speed>, Failure> {
            given.as_deref().map(|g| flag(name, speed(g))).transpose()
        }
        let mut settings = Vec::new();
        settings.extend(self.governor.clone().map(Setting::Governor));
        let (min, max) = (speed_of("min", &self.min)?, speed_of("max", &self.max)?);
        if min.is_some() || max.is_some() {
            settings.push(Setting::Limits(min, max));
        }
        settings.extend(speed_of("freq", &self.freq)?.map(Setting::Freq));
        settings.extend(self.epp.clone().map(Setting::Epp));
        settings.extend(self.epb.clone().map(Setting::Epb));
        settings.extend(self.boost.map(|s| Setting::Boost(s == Switch::On)));
        for given in &self.cstate {
            let bad = || {
                Failure::input(format!("--cstate '{given}'; expected a state and on or off, such as C6=off"))
            };
            let (name, switch) = given.split_once('=').ok_or_else(bad)?;
            let on = match switch {
                "on" => true,
                "off" => false,
                _ => return Err(bad()),
            };
            settings.push(Setting::CState(name.to_owned(), on));
        }
        if let Some(given) = &self.latency {
            let limit = if given == "none" { None } else { Some(flag("latency", duration_ns(given, "us"))?) };
            settings.push(Setting::Latency(limit));
        }
        settings.extend(self.idle_governor.clone().map(Setting::IdleGovernor));
        if let Some(given) = &self.tstate {
            let percent =
                given.trim_end_matches('%').parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
            let bad = || Failure::input(format!("--tstate '{given}'; expected a percentage such as 50%"));
            settings.push(Setting::TState(percent.ok_or_else(bad)?));
        }
        for given in &self.rapl {
            let (place, power) = given.split_once('=').map_or((None, given.as_str()), |(p, w)| (Some(p), w));
            let (zone, constraint) = match place.map(|p| p.split_once('/').ok_or(p)) {
                None => (None, None),
                Some(Ok((zone, limit))) => (Some(zone.to_owned()), Some(limit.to_owned())),
                Some(Err(zone)) => (Some(zone.to_owned()), None),
            };
            settings.push(Setting::PowerLimit { zone, constraint, power_uw: flag("rapl", power_uw(power))? });
        }
        let (min, max) =
            (speed_of("uncore-min", &self.uncore_min)?, speed_of("uncore-max", &self.uncore_max)?);
        if min.is_some() || max.is_some() {
            settings.push(Setting::Uncore(min, max));
        }
        for given in &self.tunable {
            let (name, value) = given.split_once('=').ok_or_else(|| {
                Failure::input(format!("--tunable '{given}'; expected NAME=VALUE, such as up_threshold=90"))
            })?;
            settings.push(Setting::Tunable(name.to_owned(), value.to_owned()));
        }
        settings.extend(self.profile.clone().map(Setting::Profile));
        settings.extend(self.driver_mode.clone().map(Setting::DriverMode));
        settings.extend(self.online.map(|s| Setting::Online(s == Switch::On)));
        Ok(settings)
    }

    fn hold(&self) -> Result<Hold<'_>, Failure> {
        if !self.hold_for.is_empty() {
            return Ok(Hold::Command(&self.hold_for));
        }
        let Some(until) = &self.until else { return Ok(Hold::Kept) };
        if until == "forever" {
            return Ok(Hold::Time(Duration::MAX));
        }
        if let Some(pid) = until.strip_prefix("pid:") {
            let alive = |pid: &i32| *pid > 0 && Path::new(&format!("/proc/{pid}")).exists();
            return match pid.parse().ok().filter(alive) {
                Some(pid) => Ok(Hold::Process(pid)),
                None => Err(Failure::input(format!("--until {until}: no such process"))),
            };
        }
        let time = duration_ns(until, "s")
            .map_err(|e| Failure::input(format!("--until {e}, pid:NUMBER or forever")))?;
        Ok(Hold::Time(Duration::from_nanos(time)))
    }
}

/// Shows the writes. A refusal is an answer here, and its exit code says so.
fn dry_run(args: &Args, plan: &Plan) -> Outcome {
    let refused = |step: &crate::hw::plan::Step| {
        step.verdict.as_ref().err().map(|r| format!("{} ({})", r.rule, r.errno))
    };
    let rows: Vec<Row> = plan
        .steps
        .iter()
        .map(|step| Row {
            what: &step.change.what,
            target: step.change.target.to_string(),
            old: &step.old,
            asked: &step.change.value,
            got: step.verdict.as_deref().ok(),
            refused: refused(step),
        })
        .collect();
    let code = if rows.iter().any(|r| r.refused.is_some()) { 2 } else { 0 };
    if args.json {
        print_json(&Report { schema: "wattwise.set/1", dry_run: true, changes: rows, notes: &plan.notes })?;
        return Ok(code);
    }
    let mut out = notes(plan);
    if rows.is_empty() {
        out += "nothing would change: all is as asked\n";
    }
    for row in rows {
        _ = write!(out, "{}: {} -> {}", row.what, row.old, row.asked);
        match (&row.refused, row.got) {
            (Some(why), _) => _ = write!(out, "  REFUSED: {why}"),
            (None, Some(got)) if got != row.asked => _ = write!(out, "  (will show {got})"),
            _ => {}
        }
        _ = writeln!(out, "\n    {}", row.target);
    }
    print(&out)?;
    Ok(code)
}

fn notes(plan: &Plan) -> String {
    plan.notes.iter().map(|n| format!("note: {n}\n")).collect()
}

/// Makes a plan's changes and says what came of each.
pub(super) fn apply(root: &dyn Root, journal: &Path, plan: &Plan, hold: &Hold, json: bool) -> Outcome {
    if let Some((step, refusal)) = plan.steps.iter().find_map(|s| s.verdict.as_ref().err().map(|r| (s, r))) {
        return Err(Failure::input(format!(
            "{} cannot become '{}': {}; nothing was changed",
            step.change.what, step.change.value, refusal.rule
        )));
    }
    let signals = Signals::catch().map_err(Failure::work)?;
    let changes: Vec<Change> = plan.steps.iter().map(|s| s.change.clone()).collect();
    let stop = || signals.caught().map(|s| format!("signal {s} came"));
    let command = command_line();
    let mut held = if changes.is_empty() {
        None
    } else {
        let made = Transaction::apply(root, journal, &command, &changes, &plan.beside, &stop);
        Some(made.map_err(|e| match e {
            TransactionError::Journal { .. } => Failure::impossible(e),
            other => Failure::work(other),
        })?)
    };
    let outcomes = held.as_ref().map(|t| t.outcomes().to_vec()).unwrap_or_default();
    if json {
        let rows = outcomes.iter().map(|o| Row {
            what: &o.what,
            target: o.target.clone(),
            old: &o.old,
            asked: &o.asked,
            got: Some(&o.got),
            refused: None,
        });
        print_json(&Report {
            schema: "wattwise.set/1",
            dry_run: false,
            changes: rows.collect(),
            notes: &plan.notes,
        })?;
    } else {
        // While a command is held for, standard output is the command's.
        let text = notes(plan) + &asked_and_got(root, &outcomes);
        if matches!(hold, Hold::Command(_)) { eprint!("{text}") } else { print(&text)? }
    }
    // Not taking effect is a failure of the work: a script must not go on as if it had.
    let ignored = outcomes.iter().any(|o| o.got == o.old && o.asked != o.old);
    let code = match hold {
        Hold::Kept => {
            if let Some(transaction) = held.take() {
                transaction.keep();
            }
            return Ok(u8::from(ignored));
        }
        Hold::Command(command) => run_command(command, &signals)?,
        Hold::Time(time) => wait(*time, &signals, || true),
        Hold::Process(pid) => wait(Duration::MAX, &signals, || Path::new(&format!("/proc/{pid}")).exists()),
    };
    if let Some(mut transaction) = held {
        let restored = transaction.undo();
        if !restored.failed.is_empty() || !restored.foreign.is_empty() {
            eprintln!("wattwise: {restored}");
        }
        if !restored.failed.is_empty() {
            return Ok(1);
        }
    }
    Ok(code)
}

/// The command as given, for whoever finds the journal.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// Equal outcomes on many CPUs are one line.
fn asked_and_got(root: &dyn Root, outcomes: &[transaction::Outcome]) -> String {
    let mut out = String::new();
    let mut folded: Vec<(String, Vec<&transaction::Outcome>)> = Vec::new();
    for outcome in outcomes {
        let kind = outcome.what.trim_start_matches(|c: char| c != ' ').to_owned();
        let same = |(k, members): &&mut (String, Vec<&transaction::Outcome>)| {
            let first = members[0];
            *k == kind
                && (&first.old, &first.asked, &first.got) == (&outcome.old, &outcome.asked, &outcome.got)
        };
        match folded.iter_mut().find(same) {
            Some((_, members)) => members.push(outcome),
            None => folded.push((kind, vec![outcome])),
        }
    }
    if outcomes.is_empty() {
        out += "nothing to change: all is as asked\n";
    }
    let mut wrong = false;
    for (_, members) in &folded {
        let (first, last) = (members[0], members[members.len() - 1]);
        let who = match members.len() {
            1 => first.what.clone(),
            n => format!("{} … {} ({n})", first.what, last.what),
        };
        _ = write!(out, "{who}: was {}, asked {}, got {}", first.old, first.asked, first.got);
        if first.got == first.old && first.asked != first.old {
            wrong = true;
            out += "  IGNORED: the driver took the write and did nothing";
        } else if first.got != first.asked {
            wrong = true;
            out += "  (not as asked: rounded or bounded by the driver, or changed by another)";
        }
        out.push('\n');
    }
    if wrong {
        _ = writeln!(out, "{}", writers::suspects(root));
    }
    out
}

/// The signals that would end us before we have put things back.
struct Signals {
    caught: Arc<AtomicUsize>,
}

impl Signals {
    const ALL: [i32; 4] = [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGQUIT,
    ];

    fn catch() -> std::io::Result<Signals> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in Signals::ALL {
            signal_hook::flag::register_usize(signal, Arc::clone(&caught), signal as usize)?;
        }
        Ok(Signals { caught })
    }

    fn caught(&self) -> Option<i32> {
        match self.caught.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}

/// Runs a command to its end and passes signals and the exit status on.
fn run_command(command: &[String], signals: &Signals) -> Result<u8, Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| Failure::input("--for: no command"))?;
    let mut child = Command::new(program).args(arguments).spawn().map_err(|e| {
        Failure::work(format!("--for {program}: {e}; expected a command; the settings are put back"))
    })?;
    let mut passed = None;
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdin());
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Failure::work)? {
            break status;
        }
        // What is typed at a terminal has gone to the whole process group already.
        let typed =
            |s: i32| [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT].contains(&s) && terminal;
        if let Some(signal) = signals.caught()
            && passed != Some(signal)
            && !typed(signal)
        {
            passed = Some(signal);
            if let (Some(pid), Some(signal)) = (
                rustix::process::Pid::from_raw(child.id() as i32),
                rustix::process::Signal::from_named_raw(signal),
            ) {
                // It may have ended meanwhile: then the next round sees it.
                _ = rustix::process::kill_process(pid, signal);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Waits while `alive`, for a time, or until a signal comes. A signal is the ordinary way to end it.
fn wait(time: Duration, signals: &Signals, alive: impl Fn() -> bool) -> u8 {
    let start = Instant::now();
    while signals.caught().is_none() && start.elapsed() < time && alive() {
        std::thread::sleep(Duration::from_millis(50).min(time));
    }
    0
}
