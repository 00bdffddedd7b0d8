//! `wattwise compare`: the main job.

use crate::args::output::{self, OpenOutput, OutputPath, written};
use crate::args::state;
use crate::exit::{Failure, Outcome};
use crate::model::cases::{Asked as CasesAsked, Case, cases};
use crate::model::machine;
use crate::model::output::{Asked, OutputArgs};
use crate::model::recording::RecordingArgs;
use crate::model::stop::Stop;
use crate::show::screen::{self, detail, note, say};
use clap::ValueEnum;
use std::path::Path;
use wattwise_advice::compare::{CompareError, Options, PolicyDetail, compare};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::shell;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_output::Scratch;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::apply;
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::library::DEFAULT_WORKLOAD;
use wattwise_replay::spec::{PolicySpec, expand};
use wattwise_trace::{ImportOptions, record};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A bundled workload ('wattwise workloads'), a recording (perf.data, trace.dat, ftrace text) or a workload file;
    /// several are compared one by one and summed up
    workload: Vec<String>,
    /// A machine model ('wattwise machines'), a model's file, 'this' for an estimate of this machine, or a capture
    /// ('wattwise capture') for one of another; again for each more [default: a model of the processor that the
    /// recording names, else 'this' where it was made here; alderlake-p-laptop for bundled workloads and workload files]
    #[arg(long, short)]
    machine: Vec<String>,
    /// A policy, SPEED[:key=value,...][+IDLE][+PLACEMENT][+CORES][+max=60%][+min=1.2GHz][+noboost][+cmax=C1E], or a policy
    /// file; a value may be a scan (rate_limit=1ms..20ms:n5, max=50%..100%:by10%); again for each more
    #[arg(long, short)]
    policy: Vec<String>,
    /// Without --policy: the policies that this system offers; the machine's own if not given
    #[arg(long = "for", value_enum, value_name = "SYSTEM", conflicts_with = "policy")]
    system: Option<SystemWord>,
    #[command(flatten)]
    output: OutputArgs,
    /// What the best policy has least of
    #[arg(long, value_enum, default_value = "energy")]
    best: GoalWord,
    /// Policies slower than the reference by more than this are not recommended: 10%, 1.1x, or 'any'
    #[arg(long, default_value = "10%", value_parser = wattwise_figure::increase)]
    max_slowdown: f64,
    /// The policy that the others are held against; by default what the machine does unless told otherwise
    #[arg(long, value_name = "POLICY")]
    reference: Option<String>,
    /// Runs of the whole comparison with other phases, seeds and figures: what the answer's certainty rests on
    #[arg(long, default_value = "64", value_parser = clap::value_parser!(u64).range(8..=4096))]
    replicas: u64,
    /// One run of the nominal model, without intervals
    #[arg(long, conflicts_with = "replicas")]
    exact: bool,
    /// Power source, for policies that ask
    #[arg(long, value_enum, default_value = "unknown")]
    power: PowerWord,
    /// Longest C-state exit latency to tolerate: 100us, 1ms; a bare number is microseconds
    #[arg(long, value_name = "LATENCY", value_parser = crate::args::latency_ns)]
    latency_limit: Option<u64>,
    /// Share of recorded run time that does not scale with the clock (memory-bound), such as 20%
    #[arg(long, value_parser = wattwise_figure::share)]
    memory_bound: Option<f64>,
    #[command(flatten)]
    recording: RecordingArgs,
    /// With '-- COMMAND': use the bundled recording if this machine does not permit recording
    #[arg(long)]
    or_bundled: bool,
    /// With '-- COMMAND': rank the policies even if the command failed
    #[arg(long)]
    even_if_failed: bool,
    /// With '-- COMMAND': where the recording is kept [default: compare-TIME.perf in $XDG_STATE_HOME/wattwise or
    /// ~/.local/state/wattwise, as root in /run/wattwise; the last eight stay]
    #[arg(long, value_name = "FILE", requires = "command")]
    keep: Option<OutputPath>,
    /// Record this command first, then replay it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum GoalWord {
    /// Energy over the equal window: the machine stays on afterwards
    Energy,
    /// Energy over the run's own duration: it is switched off afterwards
    OwnEnergy,
    /// Energy times time
    Edp,
    /// Time
    Time,
}

impl GoalWord {
    pub(crate) fn goal(self) -> Goal {
        match self {
            GoalWord::Energy => Goal::Energy,
            GoalWord::OwnEnergy => Goal::OwnEnergy,
            GoalWord::Edp => Goal::Edp,
            GoalWord::Time => Goal::Time,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum SystemWord {
    Linux,
    Freebsd,
    Openbsd,
    /// Every policy there is
    Any,
}

#[derive(Clone, Copy, ValueEnum)]
enum PowerWord {
    Unknown,
    Mains,
    Battery,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let mut policies = Vec::new();
    for text in &args.policy {
        policies.extend(expand(text).map_err(Failure::input)?);
    }
    let named = named_machines(args)?;
    let asked = Asked {
        several: args.workload.len() > 1 || named.len() > 1,
        policies: policies.len(),
        scan: args.policy.len() == 1 && policies.len() > 1,
    };
    let mut outputs = args.output.open(asked)?;
    let options = ImportOptions { memory_share: args.memory_bound, ..args.recording.options() };
    let Works { works, code: work_code, kept } = workloads(args, &options)?;
    let cases = cases(
        &works,
        &CasesAsked {
            machines: &named,
            policies: &policies,
            reference: args.reference.as_deref(),
            usual: &|machine| usual_policies(args, machine),
        },
    )?;
    if let (Some(kept), [only]) = (&kept, &cases[..])
        && only.policies.len() < 2
        && args.policy.is_empty()
    {
        note!(
            "this machine offers one policy only, so there is nothing to choose; the same work on a model that has more ('wattwise \
             machines' lists them): wattwise compare {kept} -m {}",
            library::DEFAULT_MACHINE
        );
    }
    let replicas = if args.exact { 0 } else { args.replicas };
    let stop = Stop::follow();
    let mut done: Vec<Comparison> = Vec::new();
    for case in &cases {
        let job = args.job(case);
        detail!(
            "{} ({}) on {}: {}; {} policies against {}, {replicas} replicas",
            case.workload.name,
            case.workload.source,
            case.machine.name,
            case.machine.summary,
            case.policies.len(),
            case.reference.text
        );
        let (comparison, details) = conduct(&job, args.rule(), replicas, &case.reference, &stop)?;
        outputs.one(case, &job, (&comparison, &details), &crate::args::command_line())?;
        done.push(comparison);
        if stop.came() {
            break;
        }
    }
    let stopped = done.len() < cases.len() || done.iter().any(|c| c.stopped);
    if let (true, Some(last)) = (stopped, done.last()) {
        let (whole, all) = (done.iter().filter(|c| !c.stopped).count(), cases.len());
        say!("stopped after {} of {replicas} replicas ({whole} of {all} works)", last.replicas);
    }
    outputs.end(done, (cases.len(), args.rule().goal))?;
    Ok(if stopped { stop.code() } else { work_code })
}

impl Args {
    fn rule(&self) -> Rule {
        Rule { goal: self.best.goal(), max_slowdown: self.max_slowdown }
    }

    fn job<'c>(&self, case: &'c Case<'_>) -> ReplayJob<'c> {
        ReplayJob {
            machine: &case.machine,
            workload: case.workload,
            policies: &case.policies,
            source: match self.power {
                PowerWord::Unknown => PowerSource::Unknown,
                PowerWord::Mains => PowerSource::Mains,
                PowerWord::Battery => PowerSource::Battery,
            },
            latency_limit_ns: self.latency_limit.unwrap_or(u64::MAX),
            detail: self.output.has_report(),
            budget: self.recording.budget,
        }
    }
}

/// Carries out a comparison, with progress on a terminal. A first Ctrl-C ends it with what there is by then.
pub(crate) fn conduct(
    job: &ReplayJob<'_>,
    rule: Rule,
    replicas: u64,
    reference: &PolicySpec,
    stop: &Stop,
) -> Result<(Comparison, Vec<PolicyDetail>), Failure> {
    let apply = apply::on(job.machine);
    let mut options = Options { rule, replicas, reference, apply: &apply, done: &|_| {}, stop: stop.flag() };
    let progress = Progress::new(options.runs(job.policies.len()));
    let tell = |n: usize| progress.tell(n);
    options.done = &tell;
    let result = compare(job, &options);
    progress.end();
    result.map_err(|e| match e {
        CompareError::NoForeground { .. } => Failure::input(e),
        e => Failure::work(e),
    })
}

/// The policies that the system offers on this machine.
fn usual_policies(args: &Args, machine: &MachineModel) -> Vec<PolicySpec> {
    let system = match args.system {
        None => System::find(&machine.system),
        Some(SystemWord::Linux) => Some(System::Linux),
        Some(SystemWord::Freebsd) => Some(System::FreeBsd),
        Some(SystemWord::Openbsd) => Some(System::OpenBsd),
        Some(SystemWord::Any) => None,
    };
    default_policies(machine, system)
}

/// The machines that are known before the workloads are; none: each recording names its own.
fn named_machines(args: &Args) -> Result<Vec<MachineModel>, Failure> {
    if !args.machine.is_empty() {
        return args.machine.iter().map(|name| machine::machine(name)).collect();
    }
    if args.command.is_empty() || args.or_bundled {
        return Ok(Vec::new());
    }
    // Better known before the command runs than after it.
    Ok(vec![machine::here()?])
}

/// The work.
struct Works {
    works: Vec<Workload>,
    /// The exit code of the command, where one was recorded.
    code: u8,
    /// Where its recording is kept, as a shell takes it.
    kept: Option<String>,
}

impl Works {
    fn read(works: Vec<Workload>) -> Works {
        Works { works, code: 0, kept: None }
    }
}

fn workloads(args: &Args, options: &ImportOptions) -> Result<Works, Failure> {
    if let (Some(w), true) = (args.workload.first(), !args.command.is_empty()) {
        return Err(Failure::input(format!("WORKLOAD {w} and -- COMMAND: expected one of the two")));
    }
    if !args.command.is_empty() {
        return recorded(args, options);
    }
    let read = |name: &str| {
        library::workload(name, options)
            .map_err(|e| Failure::input(format!("{e}{}", crate::cli::without_dashes())))
    };
    match &args.workload[..] {
        [] => Ok(Works::read(vec![read(DEFAULT_WORKLOAD)?])),
        names => Ok(Works::read(names.iter().map(|name| read(name)).collect::<Result<_, _>>()?)),
    }
}

/// The command, recorded just now.
fn recorded(args: &Args, options: &ImportOptions) -> Result<Works, Failure> {
    let keep = output::open("--keep", args.keep.as_ref())?;
    let scratch =
        || Scratch::new().map_err(|e| Failure::work(format!("a temporary folder: {e}; set TMPDIR")));
    let passing = keep.as_ref().map(|_| scratch()).transpose()?;
    let file = match &passing {
        Some(folder) => folder.path().join("recording.perf"),
        None => state::recording("--keep")?,
    };
    let recorded = crate::machine::record::watched(&record::RecordOptions::new(&file, args.command.clone()));
    match recorded {
        Ok(report) => {
            let name = shell::line(&args.command);
            let code = report.exit_code().unwrap_or(0);
            let kept = match (keep, &args.keep) {
                (Some(keep), Some(path)) => {
                    copied(&file, keep)?;
                    shell::file(path)
                }
                _ => shell::file(&file),
            };
            note!(
                "{} events in {:.3} s recorded; kept, to be compared again: wattwise compare {kept}",
                report.events,
                report.duration_s
            );
            if code != 0 && !args.even_if_failed {
                let message = format!(
                    "{name}: the command failed (exit code {code}), so nothing is ranked; mend it, or give --even-if-failed"
                );
                return Err(Failure { code, message });
            }
            let mut workload =
                library::workload(&file.display().to_string(), options).map_err(Failure::work)?;
            workload.source = format!("recorded just now: {name}");
            detail!(
                "read {}: {} tasks, {:.3} s",
                file.display(),
                workload.tasks.len(),
                workload.span_ns as f64 * 1e-9
            );
            workload.name = name;
            Ok(Works { works: vec![workload], code, kept: Some(kept) })
        }
        Err(e) if e.is_impossible() && args.or_bundled => {
            say!("{e}");
            say!("replaying the bundled recording '{DEFAULT_WORKLOAD}' instead, as asked");
            Ok(Works::read(vec![library::workload(DEFAULT_WORKLOAD, options).map_err(Failure::work)?]))
        }
        Err(e) if e.is_impossible() => {
            Err(Failure::impossible(format!("{e}; --or-bundled would replay a bundled recording instead")))
        }
        Err(e) => Err(crate::machine::record::not_recorded(e)),
    }
}

/// A recording into an output that the user named.
fn copied(file: &Path, mut keep: OpenOutput) -> Result<(), Failure> {
    let copied = std::fs::File::open(file).and_then(|mut from| std::io::copy(&mut from, &mut keep.out));
    written(&keep.name, copied.and_then(|_| keep.out.finish()))
}

/// Progress on a terminal; nothing elsewhere.
struct Progress(Option<indicatif::ProgressBar>);

impl Progress {
    fn new(steps: usize) -> Progress {
        if !screen::shows_progress() {
            return Progress(None);
        }
        let style = indicatif::ProgressStyle::with_template("replaying {bar:30} {pos}/{len} {elapsed}");
        let bar = indicatif::ProgressBar::new(steps as u64);
        Progress(Some(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }))
    }
    fn tell(&self, n: usize) {
        if let Some(bar) = &self.0 {
            bar.set_position(n as u64);
        }
    }
    fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
