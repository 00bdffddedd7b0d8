//! `wattwise tune`: a policy's settings for this work on this machine, tested on recordings that the search did not see.

use crate::args::budget::CommandBudget;
use crate::args::output::{OpenOutput, OutputPath, not_opened};
use crate::args::policy;
use crate::args::state;
use crate::exit::{Failure, Outcome, print, print_json};
use crate::model::cases::{Case, CasesAsked, cases};
use crate::model::compare::GoalWord;
use crate::model::machine;
use crate::model::recording::WhoseArgs;
use crate::model::stop::Stop;
use crate::show::screen::{self, Screen, note, say};
use crate::show::tune::text;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use wattwise_advice::compare::REPLICAS;
use wattwise_advice::rule::Rule;
use wattwise_figure::Budget;
use wattwise_figure::shell;
use wattwise_figure::units::duration_ns;
use wattwise_hw::identity::Identity;
use wattwise_model::workload::Workload;
use wattwise_policy::PowerSource;
use wattwise_replay::apply;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_trace::ImportOptions;
use wattwise_tune::conduct::{Hooks, SearchProgress, Spend, Stage};
use wattwise_tune::content::{of_machine, of_workload};
use wattwise_tune::field::FieldLimits;
use wattwise_tune::gain::LEAST_REPLICAS;
use wattwise_tune::log::{
    KnownTrials, Line, Log, PlannedCase, SCHEMA as LOG_SCHEMA, SearchPlan, TuneRead, has_no_plan_yet, read,
};
use wattwise_tune::result::{TuneResult, Used};
use wattwise_tune::search::Method;
use wattwise_tune::space::Space;
use wattwise_tune::split::sides;
use wattwise_tune::tune::{TuneError, TuneInput, Tuning, tune};

/// The policy file where none is named.
const USUAL_OUTPUT: &str = "wattwise-tuned.toml";

#[derive(clap::Args)]
#[command(
    after_help = "Half of the recordings are kept for the test, so give several: what was chosen by a recording looks better on it.\n\n  \
    wattwise tune monday.perf tuesday.perf build.perf -m this --space caps --budget 2min\n  \
    wattwise tune --space burst:busy=0..20,idle=0..40 --max-slowdown 3% -o burst.toml\n  \
    wattwise compare friday.perf -p burst.toml"
)]
pub(crate) struct TuneArgs {
    /// Recordings, workload files or bundled workloads, as 'compare' takes them [default: the bundled recordings]
    workload: Vec<String>,
    /// A machine, as 'compare' takes it; repeat for several [default: each recording's own]
    #[arg(long, short)]
    machine: Vec<String>,
    /// What is searched: a speed, idle or core policy with all its settings, or with those that have a range
    /// (burst:busy=0..20,down=step|proportional); 'caps', the highest speed allowed; several with commas; or a file
    #[arg(long, value_name = "SPACE", required_unless_present = "resume")]
    space: Option<String>,
    /// The most that the search may take: a time, a number of trials, or both; and the most that a replay may take,
    /// as in 'compare' (2min,trials=500,events=1e10) [default: trials=400]
    #[arg(long, value_name = "TIME|TRIALS,...", default_value = "", hide_default_value = true)]
    budget: TuneBudget,
    /// A recording for the test, which the search does not see; repeat for several [default: half of WORKLOAD]
    #[arg(long, value_name = "WORKLOAD")]
    test: Vec<String>,
    /// The policy that the others are compared with [default: what the machine's system does by default]
    #[arg(long, value_name = "POLICY")]
    reference: Option<String>,
    /// What to minimise
    #[arg(long, value_enum, default_value = "energy")]
    best: GoalWord,
    /// Policies slower than the reference by more than this are not taken: 10%, 1.1x, or 'any'
    #[arg(long, default_value = "10%", value_parser = wattwise_figure::increase)]
    max_slowdown: f64,
    /// Policies whose 99th percentile of wake-up latency is more than this above the reference's are not taken: 50%, 1.5x, or 'any'
    #[arg(long, value_name = "SHARE", default_value = "any", value_parser = wattwise_figure::increase)]
    max_p99: f64,
    /// Runs of the test with other phases, seeds and figures
    #[arg(long, default_value_t = REPLICAS, value_parser = clap::value_parser!(u64).range(LEAST_REPLICAS..=4096))]
    replicas: u64,
    /// Of the search, the split and the draws: the same seed and number of trials give the same result
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The policy file, written unless what was found is not worth it; with --resume that of the plan, unless another is named
    #[arg(long, short, value_name = "FILE", default_value = USUAL_OUTPUT)]
    output: OutputPath,
    /// Every trial, as JSON lines [default: tune-TIME-PID.jsonl in wattwise's state folder, $XDG_STATE_HOME/wattwise or
    /// ~/.local/state/wattwise; as root /var/lib/wattwise]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    log: Option<OutputPath>,
    /// Go on with the log of a search or a test that was broken off, by its own plan and budget, to the result that it would
    /// have had; another --budget is of the whole search, and can be given until the test has begun
    #[arg(long, value_name = "LOG", conflicts_with_all = ["workload", "machine", "space", "test", "reference", "best", "max_slowdown",
        "max_p99", "replicas", "seed", "foreground", "only_foreground", "recorded_khz"])]
    resume: Option<OutputPath>,
    /// Print the result as JSON (schema wattwise.tune/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whose: WhoseArgs,
}

/// What the search may take, and what a replay may.
#[derive(Clone, Debug, Default, PartialEq)]
struct TuneBudget {
    trials: Option<u64>,
    other: CommandBudget,
}

impl TuneBudget {
    fn spend(&self) -> Spend {
        Spend { trials: self.trials, time: self.other.time }
    }
}

impl FromStr for TuneBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<TuneBudget, String> {
        let mut budget = TuneBudget::default();
        let mut other: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let number = part.strip_prefix("trials=").unwrap_or(part);
            match number.parse() {
                Ok(0) => return Err(format!("'{part}': expected more than none")),
                Ok(trials) => budget.trials = Some(trials),
                Err(_) if number != part => return Err(format!("'{part}': expected trials=500")),
                Err(_) if !part.contains('=') && duration_ns(part, "").is_err() => {
                    return Err(format!("'{part}': expected a time such as 2min, or trials=500"));
                }
                Err(_) => other.push(part),
            }
        }
        if !other.is_empty() {
            budget.other = other.join(",").parse()?;
        }
        Ok(budget)
    }
}

pub(crate) fn run(args: &TuneArgs) -> Outcome {
    let earlier = args.resume.as_ref().map(|path| read(path.path())).transpose().map_err(Failure::input)?;
    let plan = match &earlier {
        Some(earlier) => earlier.plan.clone(),
        None => args.plan()?,
    };
    if let Some(log) = &args.resume {
        on_the_same_machines(&plan, log)?;
    }
    let asked = Loaded::new(&plan)?;
    let cases = asked.cases(&plan)?;
    let space = Space::parse(&plan.space, &cases[0].reference).map_err(Failure::input)?;
    let planned = asked.planned(&cases);
    let (plan, mut known) = match earlier.as_ref().zip(args.resume.as_ref()) {
        Some((earlier, log)) => goes_on(args, log, earlier, &planned)?,
        None => {
            (SearchPlan { space: space.text().to_owned(), cases: planned, ..plan }, KnownTrials::default())
        }
    };
    let limits = limits(&plan)?;
    let target = args.target(&plan);
    let output = open_policy(&target)?;
    let (mut log, log_path) = args.open_log(&plan, earlier.as_ref())?;
    if earlier.as_ref().is_some_and(|e| e.plan.budget != plan.budget) {
        log.line(&Line::Budget(plan.budget));
        (known.searched, known.done) = (None, false);
    }
    let jobs: Vec<ReplayJob<'_>> = cases.iter().map(|c| job(c, asked.budget)).collect();
    let inputs = asked.inputs(&cases, &jobs);
    let apply = apply::on(&cases[0].machine);
    let tuning = Tuning {
        inputs: &inputs,
        test: &asked.test,
        space: &space,
        limits,
        replicas: plan.replicas,
        seed: plan.seed,
        apply: &apply,
        method: Method::Evolution,
        spend: plan.budget,
    };
    let stop = Stop::follow();
    let hooks = Hooks { tell: &progress, warn: &|what: &str| say!("{what}"), stop: stop.flag() };
    let result = tune(&tuning, &hooks, (&mut log, &known));
    screen::progress("");
    let result = result.map_err(|e| match (e, &args.resume) {
        (e @ TuneError::Changed, Some(path)) => Failure::input(format!("--resume {}: {e}", path.display())),
        (e, _) => Failure::work(e),
    })?;
    if result.stopped {
        show(args, &result)?;
        say!("{}", stopped(&result, log_path.as_ref()));
        return Ok(stop.code());
    }
    if result.verdict.worth_it == Some(false) {
        // A policy file is there to be put in force, whatever a comment in it says.
        drop(output);
        show(args, &result)?;
        let path = target.display();
        note!(
            "{path}: no policy file was written, since nothing is to be changed (winner.file of --json has what was tried)"
        );
        return Ok(0);
    }
    write_policy(output, &result.winner.file)?;
    show(args, &result)?;
    if !args.json {
        let path = target.display();
        note!("policy file written: {path}; to try it: {}", tried(&plan, &target));
    }
    Ok(0)
}

fn show(args: &TuneArgs, result: &TuneResult) -> Result<(), Failure> {
    match args.json {
        true => print_json(result),
        false => print(&text(result, Screen::Out.colour())),
    }
}

/// The command that compares the policy file on the work and the machines that it is for.
fn tried(plan: &SearchPlan, target: &OutputPath) -> String {
    let works = plan.workloads.iter().chain(&plan.test).map(shell::file);
    let machines = plan.machines.iter().flat_map(|m| ["-m".to_owned(), shell::file(m)]);
    let policy = ["-p".to_owned(), shell::file(target)];
    let words =
        ["wattwise", "compare"].map(String::from).into_iter().chain(works).chain(machines).chain(policy);
    words.collect::<Vec<_>>().join(" ")
}

/// What is said of a search that was stopped: no policy file was written, and how it goes on.
fn stopped(result: &TuneResult, log: Option<&OutputPath>) -> String {
    let of = result.trials_asked.map_or_else(String::new, |n| format!(" of {n}"));
    let next = match log {
        Some(log) => format!("go on with it: wattwise tune --resume {}", shell::file(log)),
        None => "there is no log to go on with (--log FILE)".to_owned(),
    };
    format!("stopped after {}{of} trials, no policy file was written; {next}", result.spent.trials)
}

/// Refuses a plan for machines that are there as files, this one among them, where these are others now. One that is not there any
/// more is in the plan.
fn on_the_same_machines(plan: &SearchPlan, log: &OutputPath) -> Result<(), Failure> {
    for (name, then) in plan.machines.iter().zip(&plan.machine_identities) {
        let Some(then) = then.as_deref().and_then(|json| serde_json::from_str::<Identity>(json).ok()) else {
            continue;
        };
        if let Ok(Some(now)) = machine::identity(name)
            && let Some(why) = now.other_than(&then)
        {
            return Err(Failure::input(format!(
                "--resume {}: was begun for another machine than {name} is now: {why}; expected that machine, or a new search \
                 without --resume",
                log.display()
            )));
        }
    }
    Ok(())
}

/// The plan and what was seen of a search that was broken off, if its work is still the same.
fn goes_on(
    args: &TuneArgs,
    log: &OutputPath,
    earlier: &TuneRead,
    now: &[PlannedCase],
) -> Result<(SearchPlan, KnownTrials), Failure> {
    let refused = |why: String| Failure::input(format!("--resume {}: {why}", log.display()));
    if let Some(what) = earlier.plan.changed(now) {
        return Err(refused(format!("{what}; expected the same, or a new search without --resume")));
    }
    let mut plan = earlier.plan.clone();
    if args.budget.other.replay != Budget::default()
        && args.budget.other.replay.to_string() != plan.replay_budget
    {
        return Err(refused(
            "--budget NAME=NUMBER: its trials were made by other bounds of a replay; expected a time or a number of trials"
                .into(),
        ));
    }
    let spend = args.budget.spend();
    if spend != Spend::default() && spend != plan.budget {
        if let Some(winner) = &earlier.known.test {
            return Err(refused(format!(
                "its test set has been opened for {winner}, and another --budget would choose by it; give none, or start anew \
                 with another --seed or other recordings for --test"
            )));
        }
        plan.budget = spend;
    }
    if earlier.torn {
        note!("{}: its last line was cut short and is left out", log.display());
    }
    note!("{}: {}", log.display(), earlier.known.told());
    Ok((plan, earlier.known.clone()))
}

impl TuneArgs {
    fn plan(&self) -> Result<SearchPlan, Failure> {
        let bundled = || library::workloads().into_iter().filter(|b| b.recorded).map(|b| b.name.to_owned());
        let finite = |share: f64| share.is_finite().then_some(share);
        Ok(SearchPlan {
            schema: LOG_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            workloads: match self.workload.is_empty() {
                true => bundled().filter(|name| !self.test.contains(name)).collect(),
                false => self.workload.clone(),
            },
            machines: self.machine.clone(),
            machine_files: self
                .machine
                .iter()
                .map(|name| machine::file_of(name))
                .collect::<Result<_, _>>()?,
            machine_identities: self
                .machine
                .iter()
                .map(|name| Ok(machine::identity(name)?.and_then(|i| serde_json::to_string(&i).ok())))
                .collect::<Result<_, Failure>>()?,
            space: self.space.clone().unwrap_or_default(),
            reference: self
                .reference
                .as_deref()
                .map(|given| policy::text("--reference", given))
                .transpose()?,
            best: self.best.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned()),
            max_slowdown: finite(self.max_slowdown),
            max_p99: finite(self.max_p99),
            test: self.test.clone(),
            replicas: self.replicas,
            seed: self.seed,
            foreground: self.whose.foreground.clone(),
            only_foreground: self.whose.only_foreground,
            recorded_khz: self.whose.recorded_khz,
            replay_budget: self.budget.other.replay.to_string(),
            budget: self.budget.spend(),
            output: self.output.display().to_string(),
            cases: Vec::new(),
        })
    }

    /// Where the policy file goes.
    fn target(&self, plan: &SearchPlan) -> OutputPath {
        match self.resume.is_some() && self.output.path() == Path::new(USUAL_OUTPUT) {
            true => PathBuf::from(&plan.output).into(),
            false => self.output.clone(),
        }
    }

    /// The log, which is no other search's, and where it is if it can be gone on with.
    fn open_log(
        &self,
        plan: &SearchPlan,
        earlier: Option<&TuneRead>,
    ) -> Result<(Log, Option<OutputPath>), Failure> {
        if let (Some(path), Some(earlier)) = (&self.resume, earlier) {
            path.keep_apart();
            let log = Log::resume(path.path(), earlier)
                .map_err(|e| Failure::input(format!("--resume {}: {e}", path.display())))?;
            return Ok((log, Some(path.clone())));
        }
        let path = match &self.log {
            Some(path) => path.clone(),
            None => match state::lasting_log("tune", "--log") {
                Ok(path) => path.into(),
                // A search goes on without one: it cannot be resumed, and that is all.
                Err(why) => {
                    say!("the search is not logged: {}", why.message);
                    return Ok((Log::none(), None));
                }
            },
        };
        let name = format!("--log {}", path.display());
        // What is no file, such as /dev/null, holds nothing that could be lost.
        if path.is_file() && std::fs::metadata(path.path()).is_ok_and(|m| m.len() > 0) {
            match read(path.path()) {
                Err(_) if has_no_plan_yet(path.path()) => {}
                Err(_) => {
                    return Err(Failure::input(format!(
                        "{name}: there is such a file, and it is no log; expected a new one"
                    )));
                }
                Ok(there) if !there.known.done && !there.known.trials.is_empty() => {
                    return Err(Failure::input(format!(
                        "{name}: has a search that was broken off; name another log, remove it, or go on with it: wattwise tune --resume {}",
                        shell::file(&path)
                    )));
                }
                Ok(_) => {}
            }
        }
        path.keep_apart();
        let mut log = Log::create(path.path(), plan).map_err(|e| not_opened(&name, e))?;
        if let Some(problem) = log.problem() {
            return Err(Failure::work(format!("--log {problem}")));
        }
        let is_kept = path.is_file();
        Ok((log, is_kept.then_some(path)))
    }
}

fn limits(plan: &SearchPlan) -> Result<FieldLimits, Failure> {
    let best = GoalWord::from_str(&plan.best, false)
        .map_err(|_| Failure::input(format!("the plan's best '{}' is none; expected energy", plan.best)))?;
    let any = |share: Option<f64>| share.unwrap_or(f64::INFINITY);
    Ok(FieldLimits {
        rule: Rule { goal: best.goal(), max_slowdown: any(plan.max_slowdown) },
        max_p99: any(plan.max_p99),
    })
}

/// The recordings of a plan.
struct Loaded {
    works: Vec<Workload>,
    /// Which of them are the test set.
    test: Vec<bool>,
    budget: Budget,
}

impl Loaded {
    fn new(plan: &SearchPlan) -> Result<Loaded, Failure> {
        let names: Vec<&String> = plan.workloads.iter().chain(&plan.test).collect();
        let budget: Budget =
            plan.replay_budget.parse().map_err(|e| Failure::input(format!("--budget {e}")))?;
        let options = ImportOptions {
            khz: plan.recorded_khz,
            foreground: plan.foreground.clone(),
            only_foreground: plan.only_foreground,
            budget,
            ..ImportOptions::default()
        };
        let works: Vec<Workload> = names
            .iter()
            .map(|name| library::workload(name, &options).map_err(Failure::input))
            .collect::<Result<_, _>>()?;
        let named: Vec<(&str, &Workload)> = names.iter().map(|n| n.as_str()).zip(&works).collect();
        let test = sides(&named, plan.test.len(), plan.seed).map_err(Failure::input)?;
        Ok(Loaded { works, test, budget })
    }

    fn cases(&self, plan: &SearchPlan) -> Result<Vec<Case<'_>>, Failure> {
        let machine = |(name, file): (&String, &Option<String>)| match file {
            Some(text) => library::parsed(text, name).map_err(Failure::input),
            None => machine::machine(name),
        };
        let machines: Vec<_> =
            plan.machines.iter().zip(&plan.machine_files).map(machine).collect::<Result<_, _>>()?;
        let reference = plan.reference.as_deref();
        cases(
            &self.works,
            &CasesAsked { machines: &machines, policies: &[], reference, usual: &|_| Vec::new() },
        )
    }

    fn inputs<'c>(&self, cases: &'c [Case<'_>], jobs: &'c [ReplayJob<'c>]) -> Vec<TuneInput<'c>> {
        let input = |(case, job): (&'c Case<'_>, &'c ReplayJob<'c>)| TuneInput {
            job,
            reference: &case.reference,
            recording: self.number(case.workload),
        };
        cases.iter().zip(jobs).map(input).collect()
    }

    /// What the cases are, by name and by content.
    fn planned(&self, cases: &[Case<'_>]) -> Vec<PlannedCase> {
        let contents: Vec<String> = self.works.iter().map(of_workload).collect();
        let planned = |case: &Case<'_>| {
            let number = self.number(case.workload);
            PlannedCase {
                workload: case.workload.name.clone(),
                workload_content: contents[number].clone(),
                used: if self.test[number] { Used::Test } else { Used::Train },
                machine: case.machine.name.clone(),
                machine_content: of_machine(&case.machine),
                reference: case.reference.text.clone(),
            }
        };
        cases.iter().map(planned).collect()
    }

    /// The number of a case's recording.
    fn number(&self, workload: &Workload) -> usize {
        self.works.iter().position(|w| std::ptr::eq(w, workload)).unwrap_or(0)
    }
}

fn job<'c>(case: &'c Case<'_>, budget: Budget) -> ReplayJob<'c> {
    ReplayJob {
        machine: &case.machine,
        workload: case.workload,
        policies: &[],
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget,
    }
}

/// Opens the policy file.
fn open_policy(path: &OutputPath) -> Result<OpenOutput, Failure> {
    if path.is_file() && path.path().extension().is_none_or(|e| e != "toml") {
        return Err(Failure::input(format!(
            "--output {}: expected a name that ends in .toml, by which other commands know a policy file",
            path.display()
        )));
    }
    path.open("--output")
}

/// Writes the policy file. What was found is shown where that fails: it may have taken hours.
fn write_policy(output: OpenOutput, text: &str) -> Result<(), Failure> {
    output
        .write(text.as_bytes())
        .map_err(|f| Failure { message: format!("{}; what was found:\n{text}", f.message), ..f })
}

/// Progress on a terminal.
fn progress(p: &SearchProgress) {
    screen::progress(&match p.stage {
        Stage::Reference => "replaying the reference policy".into(),
        Stage::Confirm => format!("{} trials; the best once more", p.trials),
        Stage::Test => format!("{} trials; the test", p.trials),
        Stage::Search => {
            let of = p.of.map_or_else(String::new, |of| format!(" of {of}"));
            let best = p.best.map_or_else(
                || "none within the limits so far".into(),
                |r| format!("best so far {} %", wattwise_figure::signed((r - 1.0) * 100.0, 1)),
            );
            format!("trial {}{of}; {best}", p.trials)
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_budget_is_a_time_a_number_or_both() {
        let of = |text: &str| text.parse::<TuneBudget>().map(|b| (b.trials, b.other.time));
        let minutes = |n: u64| Some(Duration::from_secs(60 * n));
        assert_eq!(of("2m"), Ok((None, minutes(2))));
        assert_eq!(of("500"), Ok((Some(500), None)));
        assert_eq!(of("trials=500, 2min"), Ok((Some(500), minutes(2))));
        assert_eq!(of(""), Ok((None, None)));
        let with_events: TuneBudget = "2m,events=1e6".parse().unwrap();
        assert_eq!(with_events.other.replay, "events=1e6".parse().unwrap());
        for (wrong, told) in [
            ("0", "more than none"),
            ("0s", "more than none"),
            ("soon", "or trials=500"),
            ("trials=many", "expected trials=500"),
            ("-3", "expected a time"),
            ("years=3", "expected NAME=NUMBER"),
        ] {
            let error = wrong.parse::<TuneBudget>().unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
        assert_eq!(wattwise_tune::conduct::USUAL_TRIALS, 400, "what the help says");
    }
}
