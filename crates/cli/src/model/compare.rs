//! `wattwise compare`: the main job.

use crate::args::budget::CommandBudget;
use crate::args::output::{self, OpenOutput, OutputPath, written};
use crate::args::policy;
use crate::args::state;
use crate::exit::{Failure, Outcome};
use crate::model::cases::{Case, CasesAsked, cases};
use crate::model::machine;
use crate::model::recording::RecordingArgs;
use crate::model::sinks::{FinishedComparison, OutputArgs, Outputs, OutputsAsked};
use crate::model::stop::Stop;
use crate::show::screen::{self, detail, note, say};
use clap::ValueEnum;
use std::path::Path;
use wattwise_advice::compare::{CompareError, CompareOptions, PolicyDetail, REPLICAS, compare, search_best};
use wattwise_advice::mix::{Mix, MixWork, compare_mix};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::shell;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_output::Scratch;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::apply;
use wattwise_replay::defaults::{self, default_policies};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::library::DEFAULT_WORKLOAD;
use wattwise_replay::mixes;
use wattwise_replay::spec::PolicySpec;
use wattwise_trace::{ImportOptions, record};

/// Headings of the flags.
mod heading {
    pub(super) const INPUT: &str = "Input";
    pub(super) const POLICIES: &str = "Policies";
    pub(super) const JUDGEMENT: &str = "Judgement";
    pub(super) const LIMITS: &str = "Limits";
}

const EXAMPLES: &str = "\
Examples:
  sudo wattwise compare -- make -j2                which settings are best for this work on this machine?
  wattwise compare build -p schedutil -p 'performance+max=50%..100%:by10%'
  wattwise compare laptop-day --max-slowdown 15%   a mixed day, on the model of a laptop";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// A bundled workload or mix ('wattwise workloads'), a recording (perf.data, trace.dat, ftrace text, a Perfetto trace) or a
    /// workload file.
    /// Several are one day's mix and give one answer: 'desktop=3 build' gives desktop three times the hours. With several -m each
    /// workload is compared on each machine by itself, with a summary
    workload: Vec<String>,
    /// The machine to replay on: a model ('wattwise machines') or its file, 'this' for this machine, as calibrated or estimated, a
    /// capture ('wattwise capture'), a copied tree of /sys and /proc, or emulated:NAME; repeat for several.
    ///
    /// The default for bundled workloads and workload files is the model alderlake-p-laptop, not this machine; for a recording it is
    /// the model of the processor named in it, or 'this' if it was recorded here
    #[arg(long, short, help_heading = heading::INPUT)]
    machine: Vec<String>,
    /// A policy to try, such as schedutil, hwp:epp=power or performance+max=90% ('wattwise policies' lists them); repeat for several
    ///
    /// A name is GOVERNOR[:KEY=VALUE,...][+IDLE][+PLACEMENT][+CORES]: what chooses the clock, the idle governor (teo), where woken
    /// tasks go, and the core policy (consolidate).
    ///
    /// Limits follow: +max=60% and +min=1.2GHz (clock), +noboost, +cmax=C1E (deepest C-state), +latency=50us (longest C-state exit
    /// latency), +power=15W (package), +dram=performance (governor of the memory's clock, where the kernel sets it). +ticks: the
    /// policy sees CPU time in whole ticks of 10 ms only, as a daemon that reads /proc/stat does.
    ///
    /// A range makes a sweep: schedutil:rate_limit=1ms..20ms:n5 (five values), performance+max=50%..100%:by10% (steps of 10 %).
    ///
    /// 'current' is what the machine does now. Also a policy file, or @FILE for the policy that a saved --json result recommends
    #[arg(long, short, help_heading = heading::POLICIES)]
    policy: Vec<String>,
    /// Without --policy: try the policies of this operating system against the reference, instead of those of the machine's own
    #[arg(long, alias = "for", value_enum, value_name = "SYSTEM", conflicts_with = "policy", help_heading = heading::POLICIES)]
    system: Option<SystemWord>,
    #[command(flatten)]
    output: OutputArgs,
    /// What to minimise
    #[arg(long, value_enum, default_value = "energy", help_heading = heading::JUDGEMENT)]
    best: GoalWord,
    /// The time limit: how much slower than the reference a recommended policy may be: 10%, 1.1x, or 'any'. Work that ends by
    /// itself must keep it in 95 % of the replicas
    #[arg(long, default_value = "10%", value_parser = wattwise_figure::increase, help_heading = heading::JUDGEMENT)]
    max_slowdown: f64,
    /// The policy that the others are compared with [default: the policy in force, or what the machine's system does by default]
    #[arg(long, value_name = "POLICY", help_heading = heading::POLICIES)]
    reference: Option<String>,
    /// Number of replicas (Monte Carlo runs): the comparison is repeated with random values of all that is uncertain
    #[arg(long, default_value_t = REPLICAS, value_parser = clap::value_parser!(u64).range(8..=4096), help_heading = heading::JUDGEMENT)]
    replicas: u64,
    /// One run with nominal values: faster, but says nothing about uncertainty and searches no limits (+max=, +power=)
    #[arg(long, conflicts_with = "replicas", help_heading = heading::JUDGEMENT)]
    exact: bool,
    /// Power source to assume, for policies that depend on it
    #[arg(long, value_enum, default_value = "unknown", help_heading = heading::POLICIES)]
    power: PowerWord,
    /// Use no C-state with a longer exit latency than this: 100us, 1ms; a bare number is microseconds
    #[arg(long, value_name = "LATENCY", value_parser = crate::args::latency_ns, help_heading = heading::POLICIES)]
    latency_limit: Option<u64>,
    /// Share of recorded run time that does not scale with the clock (memory-bound), such as 20% [default: at random, 0 to
    /// 40 %, in each replica]
    #[arg(long, value_parser = wattwise_figure::share, help_heading = heading::INPUT)]
    memory_bound: Option<f64>,
    #[command(flatten)]
    recording: RecordingArgs,
    /// How long the comparison may take, such as 2min, once its input is read: what is done by then is answered, with fewer
    /// replicas. The reference's first run of each work is made in any case, and so are short ones: of long work that takes
    /// some seconds more. And limits on the size of a replay, against broken or hostile files,
    /// such as tasks=1e6,events=1e10: simulated seconds, engine events, tasks, CPUs, bytes after unpacking (disk), in memory
    /// and beside the events of a recording in text; parts that are not named keep their default
    #[arg(long, value_name = "TIME|PART=NUMBER,...", default_value_t = CommandBudget::default(), help_heading = heading::LIMITS)]
    budget: CommandBudget,
    /// With '-- COMMAND': use the bundled recording if this machine does not permit recording
    #[arg(long, help_heading = heading::INPUT)]
    or_bundled: bool,
    /// With '-- COMMAND': rank the policies even if the command failed
    #[arg(long, help_heading = heading::INPUT)]
    even_if_failed: bool,
    /// With '-- COMMAND': where the recording is kept [default: compare-TIME.perf in $XDG_STATE_HOME/wattwise or
    /// ~/.local/state/wattwise, as root in /run/wattwise; only the last eight are kept]
    #[arg(long, value_name = "FILE", requires = "command", help_heading = heading::INPUT)]
    keep: Option<OutputPath>,
    /// Record this command first, then replay it; it runs as the user who calls wattwise, so under sudo as root
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum GoalWord {
    /// Energy over the window: the same time for all policies, with the idle time after the work
    Energy,
    /// Energy until the work is done, as if the machine were switched off then
    OwnEnergy,
    /// Energy-delay product: energy times time
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
    /// All policies
    Any,
}

#[derive(Clone, Copy, ValueEnum)]
enum PowerWord {
    Unknown,
    Mains,
    Battery,
}

pub(crate) fn run(args: &CompareArgs) -> Outcome {
    let mut policies = Vec::new();
    for text in &args.policy {
        policies.extend(policy::expanded(text)?);
    }
    let reference = args.reference.as_deref().map(|given| policy::text("--reference", given)).transpose()?;
    let named = named_machines(args)?;
    let asked = asked_works(args)?;
    let is_mix = asked.len() > 1 && named.len() <= 1 && args.best.goal() == Goal::Energy;
    if !is_mix && asked.iter().any(|(_, weight)| *weight != 1.0) {
        return Err(Failure::input(
            "weights, also those of a mix, are for two workloads or more on one machine with --best energy, such as 'compare desktop=3 build'",
        ));
    }
    let mut outputs = args.output.open(OutputsAsked {
        several: asked.len() > 1 || named.len() > 1,
        mix: is_mix,
        policies: policies.len(),
        scan: args.policy.len() == 1 && policies.len() > 1,
    })?;
    let options =
        ImportOptions { memory_share: args.memory_bound, ..args.recording.options(args.budget.replay) };
    let Works { works, code: work_code, kept } = workloads(args, &asked, &options)?;
    let cases = cases(
        &works,
        &CasesAsked {
            machines: &named,
            policies: &policies,
            reference: reference.as_deref(),
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
    for case in &cases {
        case.notes.iter().for_each(|told| note!("{told}"));
        detail!(
            "{} ({}) on {}: {}; {} policies against {}, {} replicas",
            case.workload.name,
            case.workload.source,
            case.machine.name,
            case.machine.summary,
            case.policies.len(),
            case.reference.text,
            args.asked_replicas()
        );
    }
    let is_mix = is_mix && cases.iter().all(|c| c.machine.name == cases[0].machine.name);
    let stop = Stop::follow().within(args.budget.time);
    let weights: Vec<f64> = asked.iter().map(|(_, weight)| *weight).collect();
    let (done, mix) = match is_mix {
        true => args.mixed(&cases, &weights, &mut outputs, &stop)?,
        false => (args.one_by_one(&cases, &mut outputs, &stop)?, None),
    };
    let stopped = done.len() < cases.len() || done.iter().any(|c| c.stopped);
    if let (true, Some(last)) = (stopped, done.last()) {
        let (whole, all) = (done.iter().filter(|c| !c.stopped).count(), cases.len());
        let replicas = args.asked_replicas();
        let why = if stop.by_time() { "stopped by --budget" } else { "stopped" };
        let of_all = if all > 1 { format!(" ({whole} of {all} comparisons)") } else { String::new() };
        say!("{why} after {} of {replicas} replicas{of_all}", last.replicas);
    }
    // The same policy on each machine, as that machine is told it.
    let command = |number: usize, policy: &str| -> Result<String, String> {
        let spec = PolicySpec::parse(policy).map_err(|e| e.problem())?;
        apply::on(&cases[number].machine)(&spec).map(|commands| commands.to_string())
    };
    outputs.end(done, mix, (cases.len(), args.rule().goal), &command)?;
    Ok(if stopped && !stop.by_time() { stop.code() } else { work_code })
}

/// The workloads that are named, with their weights; a mix's name stands for its works.
fn asked_works(args: &CompareArgs) -> Result<Vec<(String, f64)>, Failure> {
    let mut all = Vec::new();
    for given in &args.workload {
        let (name, weight) = mixes::weighted(given).map_err(Failure::input)?;
        match mixes::find(name) {
            Some(mix) => {
                let hours: f64 = mix.works.iter().map(|(_, w)| w).sum();
                all.extend(mix.works.iter().map(|(n, w)| ((*n).to_owned(), w * weight / hours)));
            }
            None => all.push((name.to_owned(), weight)),
        }
    }
    Ok(all)
}

impl CompareArgs {
    /// Whether a machine is the one of who asks: this one, or one that is there as files.
    fn is_own(&self, model: &MachineModel) -> bool {
        let is_here = !self.command.is_empty() && self.machine.is_empty() && !self.or_bundled;
        is_here || model.name == machine::THIS || self.machine.iter().any(|given| machine::is_as_files(given))
    }

    /// Where the answer can be set, if that is not this machine.
    fn root_of(&self, model: &MachineModel) -> Option<String> {
        let names = machine::apart(&self.machine);
        let given = self.machine.iter().zip(names).find(|(_, name)| *name == model.name)?.0;
        machine::can_be_set(given).then(|| given.clone())
    }

    /// Whether limits are tried beside the policies: those of every system are for looking at what there is.
    fn searches(&self) -> bool {
        !matches!(self.system, Some(SystemWord::Any))
    }

    fn rule(&self) -> Rule {
        Rule { goal: self.best.goal(), max_slowdown: self.max_slowdown }
    }

    /// What the limit of time counts from beside a reference that nobody named.
    fn standards(&self, case: &Case<'_>) -> Vec<PolicySpec> {
        match &self.reference {
            None => defaults::standards(&case.machine),
            Some(_) => Vec::new(),
        }
    }

    fn asked_replicas(&self) -> u64 {
        if self.exact { 0 } else { self.replicas }
    }

    fn how(&self) -> How {
        if self.policy.is_empty() && self.searches() { How::Search } else { How::AsAsked }
    }

    /// Each case by itself, until somebody says stop.
    fn one_by_one(
        &self,
        cases: &[Case<'_>],
        outputs: &mut Outputs,
        stop: &Stop,
    ) -> Result<Vec<Comparison>, Failure> {
        let mut done: Vec<Comparison> = Vec::new();
        for case in cases {
            let job = self.job(case);
            let how = (self.rule(), self.how());
            let against = HeldAgainst { reference: &case.reference, standards: &self.standards(case) };
            let conducted = conduct(&job, how, self.asked_replicas(), &against, stop);
            let (mut comparison, details) = match conducted {
                // Nothing of this one, but what is whole is the answer.
                Err(CompareError::Stopped) if !done.is_empty() => break,
                other => other.map_err(|e| failed(e, stop))?,
            };
            comparison.inputs.own_machine = self.is_own(&case.machine);
            comparison.inputs.root = self.root_of(&case.machine);
            outputs.one(&FinishedComparison {
                case,
                job: &job,
                comparison: &comparison,
                details: &details,
                command: &crate::args::command_line(),
            })?;
            done.push(comparison);
            if stop.came() {
                break;
            }
        }
        Ok(done)
    }

    /// All cases as one mix.
    fn mixed(
        &self,
        cases: &[Case<'_>],
        weights: &[f64],
        outputs: &mut Outputs,
        stop: &Stop,
    ) -> Result<(Vec<Comparison>, Option<Mix>), Failure> {
        let jobs: Vec<ReplayJob<'_>> = cases.iter().map(|case| self.job(case)).collect();
        let works: Vec<MixWork<'_, '_>> =
            jobs.iter().zip(weights).map(|(job, &weight)| MixWork { job, weight }).collect();
        let (case, replicas) = (&cases[0], self.asked_replicas());
        let apply = apply::on(&case.machine);
        let searched = self.how() == How::Search;
        let standards = self.standards(case);
        let mut options = CompareOptions {
            rule: self.rule(),
            replicas,
            reference: &case.reference,
            standards: &standards,
            apply: &apply,
            done: &|_| {},
            stop: stop.flag(),
        };
        let policies = case.policies.len();
        let each = if searched { options.runs_of_search(policies) } else { options.runs(policies) };
        let progress = CompareProgress::new(each * cases.len());
        let tell = |n: usize| progress.tell(n);
        options.done = &tell;
        let result = compare_mix(&works, &options, searched);
        progress.end();
        let (all, mix) = result.map_err(|e| failed(e, stop))?;
        let mut done = Vec::new();
        for ((case, job), (mut comparison, details)) in cases.iter().zip(&jobs).zip(all) {
            comparison.inputs.own_machine = self.is_own(&case.machine);
            comparison.inputs.root = self.root_of(&case.machine);
            outputs.one(&FinishedComparison {
                case,
                job,
                comparison: &comparison,
                details: &details,
                command: &crate::args::command_line(),
            })?;
            done.push(comparison);
        }
        Ok((done, mix))
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
            budget: self.budget.replay,
        }
    }
}

/// Which policies are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The job's.
    AsAsked,
    /// The job's, and limits around those near the best.
    Search,
}

/// What policies are held against.
pub(crate) struct HeldAgainst<'a> {
    pub(crate) reference: &'a PolicySpec,
    /// Of a search ([`CompareOptions::standards`]).
    pub(crate) standards: &'a [PolicySpec],
}

impl<'a> HeldAgainst<'a> {
    /// The reference alone.
    pub(crate) fn by(reference: &'a PolicySpec) -> HeldAgainst<'a> {
        HeldAgainst { reference, standards: &[] }
    }
}

/// Carries out a comparison, with progress on a terminal. A first Ctrl-C ends it with what there is by then.
pub(crate) fn conduct(
    job: &ReplayJob<'_>,
    (rule, how): (Rule, How),
    replicas: u64,
    against: &HeldAgainst<'_>,
    stop: &Stop,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let apply = apply::on(job.machine);
    let mut options = CompareOptions {
        rule,
        replicas,
        reference: against.reference,
        standards: against.standards,
        apply: &apply,
        done: &|_| {},
        stop: stop.flag(),
    };
    let policies = job.policies.len();
    let progress = CompareProgress::new(match how {
        How::AsAsked => options.runs(policies),
        How::Search => options.runs_of_search(policies),
    });
    let tell = |n: usize| progress.tell(n);
    options.done = &tell;
    let result = match how {
        How::AsAsked => compare(job, &options),
        How::Search => search_best(job, &options, 1),
    };
    progress.end();
    result
}

/// Why there is no comparison.
pub(crate) fn failed(error: CompareError, stop: &Stop) -> Failure {
    match error {
        CompareError::Stopped if stop.by_time() => {
            Failure::work("the time of --budget was over before anything had run; give it more")
        }
        CompareError::Stopped if stop.came() => Failure { code: stop.code(), message: error.to_string() },
        CompareError::NoForeground { .. } | CompareError::NoCpu { .. } | CompareError::Work(_) => {
            Failure::input(error)
        }
        error => Failure::work(error),
    }
}

/// The policies that the system offers on this machine.
fn usual_policies(args: &CompareArgs, machine: &MachineModel) -> Vec<PolicySpec> {
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
fn named_machines(args: &CompareArgs) -> Result<Vec<MachineModel>, Failure> {
    if !args.machine.is_empty() {
        let names = machine::apart(&args.machine);
        let named = |(given, name): (&String, String)| {
            let model = machine::machine(given)?;
            Ok(match machine::is_as_files(given) {
                true => MachineModel { name, ..model },
                false => model,
            })
        };
        return args.machine.iter().zip(names).map(named).collect();
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

fn workloads(args: &CompareArgs, asked: &[(String, f64)], options: &ImportOptions) -> Result<Works, Failure> {
    if let (Some(w), true) = (args.workload.first(), !args.command.is_empty()) {
        return Err(Failure::input(format!("WORKLOAD {w} and -- COMMAND: expected one of the two")));
    }
    if !args.command.is_empty() {
        return recorded(args, options);
    }
    let read = |name: &str| library::workload(name, options).map_err(Failure::input);
    match asked {
        [] => Ok(Works::read(vec![read(DEFAULT_WORKLOAD)?])),
        names => Ok(Works::read(names.iter().map(|(name, _)| read(name)).collect::<Result<_, _>>()?)),
    }
}

/// The command, recorded just now.
fn recorded(args: &CompareArgs, options: &ImportOptions) -> Result<Works, Failure> {
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
                "{} events in {:.3} s recorded; kept, to be compared again: wattwise compare {kept}{}",
                report.events,
                report.duration_s,
                args.machine.iter().map(|m| format!(" -m {}", shell::file(m))).collect::<String>()
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
struct CompareProgress(Option<indicatif::ProgressBar>);

impl CompareProgress {
    fn new(steps: usize) -> CompareProgress {
        if !screen::shows_progress() {
            return CompareProgress(None);
        }
        let style = indicatif::ProgressStyle::with_template("replaying {bar:30} {pos}/{len} {elapsed}");
        let bar = indicatif::ProgressBar::new(steps as u64);
        CompareProgress(Some(match style {
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
