//! `set`: changes power states, shows what came of it, and can hold them while something else runs.

use crate::args::policy::Results;
use crate::args::root as hardware;
use crate::args::settings::{ArmArgs, SettingArgs};
use crate::exit::{Failure, Outcome, print, print_json};
use crate::show::screen::{go_on_without_a_reader, note, say, tell};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use wattwise_control::set::plan::{ChangePlan, Inventory, PlanError, Setting, plan};
use wattwise_control::set::transaction;
use wattwise_figure::units::duration_ns;
use wattwise_hw::root::Root;
use wattwise_hw::states::writers;
use wattwise_live::run::child;
use wattwise_live::run::child::{CommandJob, Signals};

#[derive(clap::Args)]
#[command(
    after_help = "Speeds: 500MHz, 1.2G, a number of kHz, 60% of the highest, or min, max, base, boost.\n\
    'wattwise restore' puts back what was there before."
)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    wishes: SettingArgs,
    /// A policy, as 'compare' prints it (hwp:epp=power+max=60%), a policy file or @RESULT; with --from one of its policies, or
    /// 'recommended'. Settings given as flags replace its own
    #[arg(short, long, value_name = "POLICY")]
    policy: Option<String>,
    /// A file of results (compare --json, tune --json): the policy that it recommends, or the one that --policy names
    #[arg(long, value_name = "FILE")]
    from: Option<String>,
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

/// How long settings stay.
pub(crate) enum HoldTime<'a> {
    /// For good, until `restore`.
    Kept,
    /// While a command runs.
    Command(&'a [String]),
    /// For a time.
    Time(Duration),
    /// While a process lives.
    Process(i32),
}

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.set/1";

/// One write.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlannedWrite<'a> {
    /// What is changed.
    what: &'a str,
    /// The file or register.
    target: String,
    /// Its value before.
    old: &'a str,
    /// What was to be written.
    asked: &'a str,
    /// What it holds after the write, read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<&'a str>,
    /// The rule that refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Whether it is judged only once the driver's mode, changed before it, is in force.
    judged_later: bool,
}

/// What was changed, or would be.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetOutput<'a> {
    schema: &'static str,
    /// Nothing was written.
    dry_run: bool,
    /// The writes, in order.
    changes: Vec<PlannedWrite<'a>>,
    /// What there is to know beside them, a sentence each.
    notes: &'a [String],
}

pub(crate) fn run(args: &SetArgs) -> Outcome {
    let own = args.wishes.settings()?;
    let policy = args.policy()?;
    if own.is_empty() && policy.is_none() {
        return Err(Failure::input(
            "set: nothing to set; expected a setting such as --governor powersave, or --policy; see 'wattwise set --help'",
        ));
    }
    let hold = args.hold()?;
    let root = match hold {
        _ if args.dry_run => args.root.open()?,
        HoldTime::Kept => args.root.open_to_change()?,
        _ => args.root.open_to_hold()?,
    };
    let settings = match &policy {
        Some(policy) => beside(of_policy(&*root, policy)?, own),
        None => own,
    };
    let inventory = Inventory::read(&*root);
    let all = settings.iter().any(|s| matches!(s, Setting::Online(_)));
    let cpus = args.wishes.selector.selector().resolve(&inventory.topology, all).map_err(Failure::input)?;
    let plan = plan(&*root, &inventory, &cpus, &settings).map_err(not_planned)?;
    if args.dry_run {
        args.root.tell_left(&*root)?;
        return dry_run(args, &plan);
    }
    if args.root.is_passing() && matches!(hold, HoldTime::Kept) {
        note!("{}", hardware::PASSING);
    }
    apply(&*root, &args.root.journal()?, &plan, &hold, args.json)
}

/// The settings of a policy.
fn of_policy(root: &dyn Root, policy: &str) -> Result<Vec<Setting>, Failure> {
    let wishes = ArmArgs { root }.wishes(policy)?;
    match wishes.cores {
        None => Ok(wishes.settings),
        Some(cores) => Err(Failure::input(format!(
            "--policy {policy}: {} needs a process that stays: 'wattwise coreidle', 'wattwise run -p' or 'wattwise ab' runs it",
            cores.cores.name
        ))),
    }
}

/// A policy's settings, without those that are given beside it, and these.
fn beside(policys: Vec<Setting>, own: Vec<Setting>) -> Vec<Setting> {
    let one_of_many = |s: &Setting| matches!(s, Setting::CState(..) | Setting::Tunable(..));
    let is_given = |s: &Setting| {
        own.iter().any(|o| std::mem::discriminant(o) == std::mem::discriminant(s) && !one_of_many(s))
    };
    policys.into_iter().filter(|s| !is_given(s)).chain(own.iter().cloned()).collect()
}

/// A wish that cannot be fulfilled, with its exit code.
pub(crate) fn not_planned(error: PlanError) -> Failure {
    match error {
        PlanError::Input(m) => Failure::input(m),
        PlanError::Impossible(m) => Failure::impossible(m),
    }
}

impl SetArgs {
    /// The policy that is named, of a result where one is.
    fn policy(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.from else { return Ok(self.policy.clone()) };
        let name = self.policy.as_deref().unwrap_or("recommended");
        Results::read("--from", file)?.policy("--from", name).map(Some)
    }

    fn hold(&self) -> Result<HoldTime<'_>, Failure> {
        if !self.hold_for.is_empty() {
            return Ok(HoldTime::Command(&self.hold_for));
        }
        let Some(until) = &self.until else { return Ok(HoldTime::Kept) };
        if until == "forever" {
            return Ok(HoldTime::Time(Duration::MAX));
        }
        if let Some(pid) = until.strip_prefix("pid:") {
            let alive = |pid: &i32| *pid > 0 && Path::new(&format!("/proc/{pid}")).exists();
            return match pid.parse().ok().filter(alive) {
                Some(pid) => Ok(HoldTime::Process(pid)),
                None => Err(Failure::input(format!("--until {until}: no such process"))),
            };
        }
        let time = duration_ns(until, "s")
            .map_err(|e| Failure::input(format!("--until {e}, pid:NUMBER or forever")))?;
        Ok(HoldTime::Time(Duration::from_nanos(time)))
    }
}

/// Shows the writes. A refusal is an answer here, and its exit code says so.
fn dry_run(args: &SetArgs, plan: &ChangePlan) -> Outcome {
    let refused = |step: &wattwise_control::set::plan::PlannedWrite| {
        step.verdict.as_ref().err().map(|r| format!("{} ({})", r.rule, r.errno))
    };
    let rows: Vec<PlannedWrite> = plan
        .steps
        .iter()
        .map(|step| PlannedWrite {
            what: &step.change.what,
            target: step.change.target.to_string(),
            old: &step.old,
            asked: &step.change.value,
            got: step.verdict.as_deref().ok().filter(|_| !step.judged_later),
            refused: refused(step),
            judged_later: step.judged_later,
        })
        .collect();
    let code = if rows.iter().any(|r| r.refused.is_some()) { 2 } else { 0 };
    if args.json {
        print_json(&SetOutput { schema: SCHEMA, dry_run: true, changes: rows, notes: &plan.notes })?;
        return Ok(code);
    }
    let mut out = notes(plan);
    if rows.is_empty() {
        out += "nothing would change: all is as asked\n";
    }
    for row in rows {
        let shown = |value| shown(&row.target, value);
        _ = write!(out, "{}: {} -> {}", row.what, shown(row.old), shown(row.asked));
        match (&row.refused, row.got) {
            (Some(why), _) => _ = write!(out, "  REFUSED: {why}"),
            (None, Some(got)) if got != row.asked => _ = write!(out, "  (will show {})", shown(got)),
            (None, None) => out += "  (judged when the mode is in force)",
            _ => {}
        }
        _ = writeln!(out, "\n    {}", row.target);
    }
    print(&out)?;
    Ok(code)
}

/// A value as people mean it: intel_pstate's file says whether turbo is off, and what is shown whether boost is on; speeds are in kHz.
fn shown<'v>(target: &str, value: &'v str) -> Cow<'v, str> {
    let is_speed = ["_freq", "_freq_khz", "_setspeed"].iter().any(|end| target.ends_with(end));
    match value {
        "0" if target.ends_with("/no_turbo") => "1".into(),
        "1" if target.ends_with("/no_turbo") => "0".into(),
        khz if is_speed && khz.bytes().all(|b| b.is_ascii_digit()) => format!("{khz} kHz").into(),
        value => value.into(),
    }
}

fn notes(plan: &ChangePlan) -> String {
    plan.notes.iter().map(|n| format!("note: {n}\n")).collect()
}

/// Makes a plan's changes and says what came of each.
pub(crate) fn apply(
    root: &dyn Root,
    journal: &Path,
    plan: &ChangePlan,
    hold: &HoldTime,
    json: bool,
) -> Outcome {
    if let Some((step, refusal)) = plan.refused() {
        return Err(Failure::input(format!(
            "{} cannot become '{}': {}; nothing was changed",
            step.change.what, step.change.value, refusal.rule
        )));
    }
    let signals = Signals::catch().map_err(Failure::work)?;
    let stop = || signals.reason();
    let command = crate::args::command_line();
    let mut held = plan.apply(root, journal, &command, &stop).map_err(|e| match e {
        e if e.is_impossible() => Failure::impossible(e),
        e => Failure::work(e).by_signal(signals.caught()),
    })?;
    go_on_without_a_reader();
    let outcomes = held.as_ref().map(|t| t.outcomes().to_vec()).unwrap_or_default();
    if json {
        let rows = outcomes.iter().map(|o| PlannedWrite {
            what: &o.what,
            target: o.target.clone(),
            old: &o.old,
            asked: &o.asked,
            got: Some(&o.got),
            refused: None,
            judged_later: false,
        });
        print_json(&SetOutput {
            schema: SCHEMA,
            dry_run: false,
            changes: rows.collect(),
            notes: &plan.notes,
        })?;
    } else {
        // While a command is held for, standard output is the command's.
        let text = notes(plan) + &asked_and_got(root, &outcomes);
        if matches!(hold, HoldTime::Command(_)) { tell(&text) } else { print(&text)? }
    }
    // Not taking effect is a failure of the work: a script must not go on as if it had.
    let ignored = outcomes.iter().any(|o| o.got == o.old && o.asked != o.old);
    let code = match hold {
        HoldTime::Kept => {
            if let Some(transaction) = held.take() {
                transaction.keep();
            }
            return Ok(u8::from(ignored));
        }
        HoldTime::Command(command) => {
            let job = CommandJob { command: command.to_vec(), ..CommandJob::default() };
            let ended = child::run(&job, &signals, None, &mut || {}).map_err(|e| Failure {
                code: e.code(),
                message: format!("--for {e}; the settings are put back"),
            })?;
            ended.code()
        }
        HoldTime::Time(time) => wait(*time, &signals, || true),
        HoldTime::Process(pid) => {
            wait(Duration::MAX, &signals, || Path::new(&format!("/proc/{pid}")).exists())
        }
    };
    if let Some(mut transaction) = held {
        let restored = transaction.undo();
        if !restored.failed.is_empty() || !restored.foreign.is_empty() {
            say!("{restored}");
        }
        if !restored.failed.is_empty() {
            return Ok(1);
        }
    }
    Ok(code)
}

/// Equal outcomes on many CPUs are one line.
fn asked_and_got(root: &dyn Root, outcomes: &[transaction::WriteOutcome]) -> String {
    let mut out = String::new();
    let mut folded: Vec<(String, Vec<&transaction::WriteOutcome>)> = Vec::new();
    for outcome in outcomes {
        let kind = outcome.what.trim_start_matches(|c: char| c != ' ').to_owned();
        let same = |(k, members): &&mut (String, Vec<&transaction::WriteOutcome>)| {
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
        let shown = |value| shown(&first.target, value);
        let (was, asked, got) = (shown(&first.old), shown(&first.asked), shown(&first.got));
        _ = write!(out, "{who}: was {was}, asked {asked}, got {got}");
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

/// Waits while `alive`, for a time, or until a signal comes. A signal is the ordinary way to end it.
fn wait(time: Duration, signals: &Signals, alive: impl Fn() -> bool) -> u8 {
    let start = Instant::now();
    while signals.caught().is_none() && start.elapsed() < time && alive() {
        signals.sleep(Duration::from_millis(50).min(time));
    }
    0
}
