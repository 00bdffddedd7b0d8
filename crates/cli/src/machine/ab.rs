//! `ab`: a sound comparison on the live machine, or an exact one on a model.

use crate::args::output;
use crate::args::output::OutputPath;
use crate::args::policy::{self, Results};
use crate::args::root as hardware;
use crate::args::settings::ArmArgs;
use crate::args::state;
use crate::args::{duration, some_time};
use crate::exit::{Failure, Outcome, print, print_json};
use crate::machine::step_back::step_back;
use crate::model::compare::{self, HeldAgainst, How};
use crate::model::{machine, stop::Stop};
use crate::show::answer::{self, ShownParts};
use crate::show::screen::{self, Screen, note, say};
use crate::show::table::PolicyOrder;
use regex_lite::Regex;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wattwise_advice::compare::REPLICAS;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::verdict::Aim;
use wattwise_figure::{Provenance, share, shell};
use wattwise_hw::identity::Identity;
use wattwise_hw::root::{Root, text};
use wattwise_hw::states::supply::SupplySource;
use wattwise_hw::states::writers;
use wattwise_live::ab::arm::{Arm, LiveBench, Parts};
use wattwise_live::ab::conduct::{Bench, Budget, Design, ExperimentProgress, conduct};
use wattwise_live::ab::log as file;
use wattwise_live::ab::log::{AbLogWriter, AbRead, ArmText, Header, Line, Of};
use wattwise_live::ab::result;
use wattwise_live::run::child::{CommandJob, Signals};
use wattwise_live::run::observe::Observer;
use wattwise_live::run::preset;
use wattwise_policy::PowerSource;
use wattwise_replay::cases::Case;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_trace::ImportOptions;

#[derive(clap::Args)]
#[command(
    after_help = "With a command after --, each ARM is what the machine is set to meanwhile: current, a governor,\n\
    settings such as governor=powersave,max=60%, or the .toml of a policy (of 'tune') or a profile. Without one, each ARM is a command of its own.\n\n  \
    wattwise ab governor=schedutil governor=powersave -- make\n  \
    wattwise ab --of time 'gzip -9 < file > /dev/null' 'zstd < file > /dev/null'\n  \
    wattwise ab --same -- ./work        does this machine tell equal things apart? (it must not)\n  \
    wattwise ab --machine xeon-4210 schedutil burst --workload parallel-build"
)]
pub(crate) struct AbArgs {
    /// The arms; the first is what the others are compared with
    arms: Vec<String>,
    /// A file of results (compare --json, tune --json): its recommended policy against its reference
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arms", "same", "resume"])]
    from: Option<String>,
    /// What is compared
    #[arg(long, value_enum, default_value = "energy")]
    of: OfWord,
    /// The command's own figure: a pattern whose first group is the number, or nuttcp, iperf3, tbench, cyclictest,
    /// stress-ng
    #[arg(long, value_name = "REGEX")]
    metric: Option<String>,
    /// Compare the arm, or the machine as it is, with itself: the self-test
    #[arg(long)]
    same: bool,
    /// Compare on this machine model instead ('wattwise machines'): modelled, so no run and no rights are needed
    #[arg(long, short, alias = "model", value_name = "MACHINE", conflicts_with_all = ["same", "resume", "battery", "metric"])]
    machine: Option<String>,
    /// With --machine: the work
    #[arg(long, value_name = "WORKLOAD", requires = "machine")]
    workload: Option<String>,
    /// The battery's gauge is the meter: same work, same end time, Wh before, after and at the end (wants --window)
    #[arg(long, requires = "window")]
    battery: bool,
    /// The smallest difference that matters
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = part)]
    effect: f64,
    /// The chance to find it
    #[arg(long, alias = "power", value_name = "SHARE", default_value = "90%", value_parser = part)]
    chance: f64,
    /// How sure the interval is
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = part)]
    confidence: f64,
    /// Pairs from which the number of pairs follows
    #[arg(long, value_name = "PAIRS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(3..=1000))]
    pilot: u64,
    /// Most pairs
    #[arg(long, value_name = "PAIRS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(3..=1_000_000))]
    pairs: u64,
    /// Most time
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = some_time)]
    budget: Duration,
    /// Most warm-up runs
    #[arg(long, value_name = "RUNS", default_value_t = 20)]
    warm_up: usize,
    /// Charge the energy of every run over this time [default: 1.1 times the warm-up's longest run, at least 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    window: Option<Duration>,
    /// Watch the idle machine for so long first; 0 leaves it out
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    idle_floor: Duration,
    /// Start a run only within this many °C of the first one's temperature
    #[arg(long, value_name = "CELSIUS", default_value = "2", value_parser = degrees)]
    temperature: f64,
    /// A pair is dropped when other programs use more than this of all CPUs
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share)]
    others: f64,
    /// Of the order of runs [default: from the clock, and kept in the file]
    #[arg(long)]
    seed: Option<u64>,
    /// Where nothing meters energy, the machine model whose watts stand in; 'this' is the machine itself, as calibrated, else
    /// estimated
    #[arg(long, value_name = "MACHINE", default_value = machine::THIS)]
    watts_of: String,
    /// Everything that happens, as JSON lines [default: ab-TIME-PID.jsonl in the folder of
    /// states, $XDG_STATE_HOME/wattwise or ~/.local/state/wattwise; as root /run/wattwise]
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
    /// Go on with an interrupted experiment's file: its plan counts, not these arguments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arms", "output"])]
    resume: Option<OutputPath>,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Print the judged result as JSON (schema wattwise.ab-result/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OfWord {
    /// Energy of the machine over equal windows
    Energy,
    /// Time from start to end
    Time,
    /// CPU time
    Cpu,
}

/// A share that is neither nothing nor all: a chance that is certain, or a difference of nothing, takes for ever.
fn part(text: &str) -> Result<f64, String> {
    match share(text) {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        Ok(_) => Err(format!("'{text}'; expected more than 0% and less than 100%, such as 2%")),
        Err(e) => Err(e.to_string()),
    }
}

pub(crate) fn run(args: &AbArgs) -> Outcome {
    conducted(args).map(|(code, _)| code)
}

/// Runs the comparison: the exit code, and what the log has; none on a model.
pub(crate) fn conducted(args: &AbArgs) -> Result<(u8, Option<AbRead>), Failure> {
    let of_result =
        args.from.as_deref().map(|file| Results::read("--from", file)?.arms("--from")).transpose()?;
    let arms = of_result.map_or_else(|| args.arms.clone(), Vec::from);
    if let Some(machine) = &args.machine {
        return on_a_model(args, &arms, machine).map(|code| (code, None));
    }
    let earlier = match &args.resume {
        Some(path) => Some(file::read(path.path()).map_err(Failure::input)?),
        None => None,
    };
    // A plan has its machine with it.
    let asked = args.root.or(earlier.as_ref().and_then(|read| read.header.root.as_deref()));
    let root = asked.open_running("ab")?;
    let root = &root.root;
    let (path, header) = match (&args.resume, &earlier) {
        (Some(path), Some(read)) => {
            same_machine(path, &read.header, &**root)?;
            (path.clone(), read.header.clone())
        }
        _ => (args.output.clone().map_or_else(default_file, Ok)?, args.header(&**root, &arms)?),
    };
    let metric = header.metric.as_deref().map(pattern).transpose()?;
    let arms = ready(&**root, &header)?;
    let observer = observer(&**root, &header)?;
    let report = output::open("--report", args.report.as_ref())?;
    let file = match &earlier {
        Some(read) => AbLogWriter::resume(path.path(), read).map_err(Failure::work)?,
        None => AbLogWriter::create(path.path(), &header).map_err(output::not_begun)?,
    };
    path.keep_apart();
    let signals = Signals::catch().map_err(Failure::work)?;
    let journal = asked.journal()?;
    let _paused = step_back(&**root, "wattwise ab")?;
    let mut live = LiveBench::new(Parts {
        root: &**root,
        journal: &journal,
        header: &header,
        arms,
        observer,
        signals: &signals,
        file,
        window_s: earlier.as_ref().and_then(|r| r.window_s),
        metric,
        tell: Box::new(tell),
    });
    pre_flight(&**root, path.path(), &header);
    if !args.idle_floor.is_zero() && earlier.as_ref().is_none_or(|r| r.floor_w.is_none()) {
        live.floor(args.idle_floor).map_err(Failure::work)?;
    }
    let done = earlier.as_ref().map(AbRead::done).unwrap_or_default();
    let conducted =
        conduct(&header.plan, &mut live, done).map_err(|message| Failure { code: live.code(), message })?;
    let stopped = live.stop();
    let mut file = live.into_file();
    file.line(&Line::End { why: conducted.end, warm: conducted.warm }).map_err(Failure::work)?;
    screen::progress("");
    let read = file.read().map_err(Failure::work)?;
    let judged = result::of(&read);
    if let Some(report) = report {
        report.write(wattwise_report::ab_html(&read, &judged).as_bytes())?;
    }
    if args.json {
        print_json(&judged)?;
    } else {
        print(&result::text(&judged))?;
    }
    if let Some(why) = stopped {
        say!("{why}; to go on with the same plan: wattwise ab --resume {}", shell::file(&path));
        return Ok((signals.caught().map_or(1, |signal| 128 + signal as u8), Some(read)));
    }
    if judged.pairs == 0 {
        let why = judged.dropped.last().map_or(String::new(), |(_, why)| format!(", the last because {why}"));
        return Err(Failure::work(format!("ab: no pair counts{why}; nothing was compared")));
    }
    Ok((0, Some(read)))
}

/// Refuses to go on with a plan on another machine than the one that it was begun on.
fn same_machine(path: &OutputPath, header: &Header, root: &dyn Root) -> Result<(), Failure> {
    let Some(then) = &header.identity else { return Ok(()) };
    let now = Identity::read(root);
    if let Some(why) = now.other_than(then) {
        return Err(Failure::input(format!(
            "--resume {}: was begun on another machine: {why}; expected that machine, or a new experiment without --resume",
            path.display()
        )));
    }
    if now.boot != then.boot {
        note!("{}: the machine was started anew since; what was measured before it counts", path.display());
    }
    Ok(())
}

fn default_file() -> Result<OutputPath, Failure> {
    Ok(state::log("ab", "--output")?.into())
}

/// A metric's pattern: a preset's or one's own.
pub(crate) fn pattern(given: &str) -> Result<Regex, Failure> {
    let text = preset::find(given).map_or(given, |p| p.pattern);
    Regex::new(text).map_err(|e| {
        Failure::input(format!(
            "--metric '{given}': {e}; expected a regular expression whose first group is the number"
        ))
    })
}

/// A difference of temperatures.
fn degrees(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|d| (0.0..=200.0).contains(d)).ok_or_else(|| "expected 0 to 200".to_owned())
}

impl AbArgs {
    /// The plan as these arguments say it.
    fn header(&self, root: &dyn Root, arms: &[String]) -> Result<Header, Failure> {
        let arms = self.arm_texts(arms)?;
        let plan = Design {
            arms: arms.len(),
            aim: Aim {
                confidence: self.confidence,
                effect: self.effect,
                power: self.chance,
                pilot: self.pilot.min(self.pairs) as usize,
            },
            budget: Budget {
                blocks: self.pairs as usize,
                seconds: self.budget.as_secs_f64(),
                warm_up: self.warm_up,
            },
            seed: self.seed.unwrap_or_else(|| {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
            }),
        };
        plan.check(arms.len()).map_err(Failure::input)?;
        let of = match (self.of, &self.metric) {
            (_, Some(_)) => Of::Metric,
            (OfWord::Energy, None) => Of::Energy,
            (OfWord::Time, None) => Of::Time,
            (OfWord::Cpu, None) => Of::Cpu,
        };
        let mut header = Header {
            schema: file::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan,
            arms,
            of,
            metric: self.metric.clone(),
            window_s: self.window.map(|w| w.as_secs_f64()),
            energy: Provenance::Unavailable { why: String::new() },
            watts_of: self.watts_of.clone(),
            battery: self.battery,
            temperature_c: self.temperature,
            others: self.others,
            machine: machine_here(root),
            root: self.root.absolute(),
            identity: Some(Identity::read(root)),
            started: state::now(),
        };
        header.energy = observer(root, &header)?.energy_comes_from();
        if let (Of::Energy, Provenance::Unavailable { why }) = (of, &header.energy) {
            return Err(Failure::impossible(format!("energy cannot be compared here: {why}; --of time can")));
        }
        Ok(header)
    }

    fn arm_texts(&self, given: &[String]) -> Result<Vec<ArmText>, Failure> {
        let with_command = !self.command.is_empty();
        if self.from.is_some() && !with_command {
            return Err(Failure::input(
                "ab --from: expected a command after --, such as 'wattwise ab --from r.json -- make'",
            ));
        }
        let mut arms: Vec<ArmText> = given
            .iter()
            .map(|arm| match with_command {
                true => {
                    ArmText { name: arm.clone(), policy: Some(arm.clone()), command: self.command.clone() }
                }
                false => {
                    let shell = ["sh", "-c", arm].map(str::to_owned).to_vec();
                    ArmText { name: arm.clone(), policy: None, command: shell }
                }
            })
            .collect();
        if self.same {
            let first = match (arms.len(), with_command) {
                (0, true) => ArmText { name: "current".into(), policy: None, command: self.command.clone() },
                (1, _) => arms.remove(0),
                _ => return Err(Failure::input("--same: expected one ARM, or a command after --")),
            };
            let again = ArmText { name: format!("{} again", first.name), ..first.clone() };
            arms = vec![first, again];
        }
        if arms.len() < 2 {
            return Err(Failure::input(
                "ab: expected two ARMs or more, such as 'wattwise ab schedutil powersave -- make'; --same compares one with itself",
            ));
        }
        Ok(arms)
    }
}

/// Processor, CPUs, kernel: what tells whether two results are of one machine.
pub(crate) fn machine_here(root: &dyn Root) -> String {
    let topology = wattwise_hw::cpus::topology::Topology::read(root);
    let kernel = text(root, "proc/sys/kernel/osrelease").unwrap_or_default();
    let processor = topology.processor.clone().unwrap_or_else(|| "unknown processor".to_owned());
    format!("{processor}, {} CPUs, kernel {kernel}", topology.online.iter().count())
}

fn observer<'r>(root: &'r dyn Root, header: &Header) -> Result<Observer<'r>, Failure> {
    if header.battery {
        return Observer::open_on_battery(root).map_err(|e| Failure::impossible(format!("--battery: {e}")));
    }
    let prices = machine::prices(&header.watts_of, root)?;
    Ok(Observer::open(root, prices.as_ref()))
}

/// The arms of a plan, checked: what cannot be set is known before the first run.
fn ready(root: &dyn Root, header: &Header) -> Result<Vec<Arm>, Failure> {
    let words = ArmArgs { root };
    header
        .arms
        .iter()
        .map(|arm| {
            Ok(Arm {
                wishes: words.wishes(arm.policy.as_deref().unwrap_or("current"))?,
                job: CommandJob {
                    command: arm.command.clone(),
                    capture: true,
                    leave_nothing: true,
                    ..CommandJob::default()
                },
            })
        })
        .collect()
}

/// What a reader should know before waiting for an hour.
fn pre_flight(root: &dyn Root, path: &Path, header: &Header) {
    note!("writing to {}; energy {}", path.display(), header.energy);
    for writer in writers::running(root) {
        note!("{} is running and may change {}; pause it with: {}", writer.name, writer.writes, writer.pause);
    }
    let supply = wattwise_hw::states::supply::supply(root);
    if supply.source == SupplySource::Battery && !header.battery {
        note!("the machine runs on its battery ({}): it may slow down as that empties", supply.why);
    }
}

/// Progress, on a terminal only.
fn tell(p: &ExperimentProgress) {
    screen::progress(&progress(p));
}

fn progress(p: &ExperimentProgress) -> String {
    let wanted = match p.wanted {
        Some(wanted) => format!("pair {} of {wanted}", p.blocks),
        None => format!("pair {} of a pilot of {}", p.blocks, p.pilot),
    };
    match (p.left_s, p.wanted) {
        (Some(s), Some(_)) if s >= 1.0 => format!("{wanted}; about {} left", left(s)),
        (Some(s), None) if s >= 1.0 => format!("{wanted}; at least {} left", left(s)),
        _ => wanted,
    }
}

/// A rough time: nobody waits by the millisecond.
fn left(s: f64) -> String {
    match s {
        _ if s < 90.0 => format!("{s:.0} s"),
        _ if s < 5400.0 => format!("{:.0} min", s / 60.0),
        _ => format!("{:.1} h", s / 3600.0),
    }
}

/// The same question asked of a model.
fn on_a_model(args: &AbArgs, arms: &[String], machine: &str) -> Outcome {
    let name = args.workload.as_deref().unwrap_or(library::DEFAULT_WORKLOAD);
    if arms.len() < 2 || !args.command.is_empty() {
        return Err(Failure::input(
            "ab --machine: expected two policies or more, and --workload instead of a command",
        ));
    }
    let mut policies = Vec::new();
    for arm in arms {
        policies.extend(policy::expanded(arm)?);
    }
    let machine = machine::machine(machine)?;
    let workload = library::workload(name, &ImportOptions::default()).map_err(Failure::input)?;
    let goal = match args.of {
        OfWord::Energy => Goal::Energy,
        OfWord::Time => Goal::Time,
        OfWord::Cpu => return Err(Failure::input("ab --machine: expected --of energy or --of time")),
    };
    let case = Case::new(&workload, machine, policies, None).map_err(Failure::input)?;
    case.notes.iter().for_each(|told| note!("{told}"));
    let policies = &case.policies;
    let job = ReplayJob {
        machine: &case.machine,
        workload: &workload,
        policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: args.report.is_some(),
        budget: wattwise_figure::Budget::default(),
    };
    let report = output::open("--report", args.report.as_ref())?;
    let rule = Rule { goal, max_slowdown: f64::INFINITY };
    let [reference, ..] = &policies[..] else { return Err(Failure::input("ab --machine: no policy")) };
    let stop = Stop::follow();
    let against = HeldAgainst::by(reference);
    let (comparison, details) = compare::conduct(&job, (rule, How::AsAsked), REPLICAS, &against, &stop)
        .map_err(|e| compare::failed(e, &stop))?;
    if let Some(report) = report {
        let html = wattwise_report::compare_html(&comparison, &details, &crate::args::command_line());
        report.write(html.as_bytes())?;
    }
    match args.json {
        true => print_json(&comparison)?,
        false => print(&answer::comparison(
            &comparison,
            Screen::Out.look(),
            PolicyOrder::Best,
            ShownParts::default(),
        ))?,
    }
    Ok(if comparison.stopped { stop.code() } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_the_time_left_once_it_is_known() {
        let at = |blocks, wanted, left_s| progress(&ExperimentProgress { blocks, wanted, pilot: 10, left_s });
        assert_eq!(at(0, None, None), "pair 0 of a pilot of 10");
        assert_eq!(at(3, None, Some(70.0)), "pair 3 of a pilot of 10; at least 70 s left");
        assert_eq!(at(12, Some(20), Some(755.0)), "pair 12 of 20; about 13 min left");
        assert_eq!(at(19, Some(20), Some(42.4)), "pair 19 of 20; about 42 s left");
        assert_eq!(at(20, Some(20), Some(0.0)), "pair 20 of 20");
        assert_eq!(left(9000.0), "2.5 h");
    }
}
