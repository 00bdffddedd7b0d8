//! `prove`: two policies over days of a machine in use, by random turns.

use crate::args::output::{self, OutputPath};
use crate::args::policy::Results;
use crate::args::root as hardware;
use crate::args::settings::ArmArgs;
use crate::args::{duration, some_time, state};
use crate::exit::{Failure, Outcome, print, print_json, print_json_as};
use crate::machine::ab::machine_here;
use crate::machine::step_back::step_back;
use crate::show::screen::{self, note, say};
use serde::Serialize;
use std::time::Duration;
use wattwise_control::hold::{Wishes, possible};
use wattwise_figure::verdict::Aim;
use wattwise_figure::{Provenance, share, shell};
use wattwise_hw::identity::Identity;
use wattwise_hw::root::Root;
use wattwise_hw::states::supply::{SupplySource, supply};
use wattwise_hw::states::writers;
use wattwise_live::ab::conduct::{Budget, Design, End};
use wattwise_live::prove::block::{Block, pairs};
use wattwise_live::prove::hours::{self, Hours};
use wattwise_live::prove::judge::RatioInterval;
use wattwise_live::prove::log::{self as file, Header, Predicted, Side};
use wattwise_live::prove::machine::{Parts, Prover};
use wattwise_live::prove::{conclude, judge, probe, say as words};
use wattwise_live::run::child::Signals;
use wattwise_live::run::observe::Observer;

/// Of what `--plan` prints.
pub(crate) const PLAN_SCHEMA: &str = "wattwise.prove-plan/1";

#[derive(clap::Args)]
#[command(
    after_help = "Each policy is as 'ab' takes it: current, a governor, settings such as governor=powersave,max=60%, a policy, or a .toml.\n\
    The machine is used as usual meanwhile; Ctrl-C ends it in good order, and --resume goes on.\n\n  \
    wattwise prove --plan current epp=balance_power          how many hours would it take here?\n  \
    wattwise prove current epp=balance_power --duration 1w   A, then B, in random turns of a minute\n  \
    wattwise prove --from result.json --report proof.html\n  \
    wattwise report prove-*.jsonl                            what a running one has so far"
)]
pub(crate) struct ProveArgs {
    /// The two policies: B is compared with A
    #[arg(value_names = ["A", "B"], num_args = 0..=2)]
    policies: Vec<String>,
    /// A file of results (compare --json, tune --json): its recommended policy against its reference, and what it had predicted
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    from: Option<String>,
    /// How long the machine runs under them, such as 2h, 3d or 1w; time asleep does not count
    #[arg(long, alias = "for", value_name = "DURATION", default_value = "1w", value_parser = some_time)]
    duration: Duration,
    /// Say how many hours a precision takes here, and change nothing
    #[arg(long, conflicts_with_all = ["resume", "report", "output"])]
    plan: bool,
    /// With --plan: how long the machine is watched as it is
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = some_time)]
    watch: Duration,
    /// With --plan: half of the interval that is wanted
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    precision: f64,
    /// How much slower B may be before its saving is called bought
    #[arg(long, alias = "limit", value_name = "SHARE", default_value = "10%", value_parser = share)]
    max_slowdown: f64,
    /// How sure the interval is
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = share)]
    confidence: f64,
    /// The battery's gauge is the meter: blocks of ten minutes
    #[arg(long)]
    battery: bool,
    /// Length of a block [default: 60s; with --battery 10min]
    #[arg(long, value_name = "DURATION", value_parser = some_time, hide_short_help = true)]
    block: Option<Duration>,
    /// Not counted at the start of a block [default: 5s, a twelfth of a shorter block]
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    settle: Option<Duration>,
    /// Of the order of turns [default: from the clock, and kept in the file]
    #[arg(long)]
    seed: Option<u64>,
    /// Everything that happens, as JSON lines [default: prove-TIME-PID.jsonl in wattwise's state folder,
    /// $XDG_STATE_HOME/wattwise or ~/.local/state/wattwise; as root /var/lib/wattwise]
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
    /// Go on with a proof's file: its plan counts, not these arguments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policies", "output"])]
    resume: Option<OutputPath>,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Print the judged result as JSON (schema wattwise.prove-result/1; with --plan wattwise.prove-plan/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
}

/// What a precision takes here, said beforehand.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanOutput {
    /// A and B.
    sides: [Side; 2],
    /// Processor, CPUs, kernel.
    machine: String,
    /// How energy comes about.
    energy: String,
    /// Hours that the machine was watched.
    watched_h: f64,
    /// What the precision takes; none where the machine was watched for too short a time, or nothing moved.
    hours: Option<Hours>,
}

pub(crate) fn run(args: &ProveArgs) -> Outcome {
    let earlier =
        args.resume.as_ref().map(|path| file::read(path.path()).map_err(Failure::input)).transpose()?;
    // A plan has its machine with it.
    let asked = args.root.or(earlier.as_ref().and_then(|read| read.header.root.as_deref()));
    let running = asked.open_running("prove")?;
    let root = &*running.root;
    let header = match (&args.resume, &earlier) {
        (Some(path), Some(read)) => {
            same_machine(path, &read.header, root)?;
            read.header.clone()
        }
        _ => args.header(root)?,
    };
    let wishes = ready(root, &header)?;
    let observer = observer(root, header.battery)?;
    if args.plan {
        return args.planned(root, &asked, header, wishes, observer);
    }
    let report = output::open("--report", args.report.as_ref())?;
    let (path, log) = match (&args.resume, &earlier) {
        (Some(path), Some(read)) => (path.clone(), file::resume(path.path(), read).map_err(Failure::work)?),
        _ => {
            let path = match &args.output {
                Some(path) => path.clone(),
                None => state::lasting_log("prove", "--output")?.into(),
            };
            (path.clone(), file::create(path.path(), &header).map_err(output::not_begun)?)
        }
    };
    path.keep_apart();
    pre_flight(root, &path, &header);
    let _paused = step_back(root, "wattwise prove")?;
    let signals = Signals::catch().map_err(Failure::work)?;
    let journal = asked.journal()?;
    let told = header.clone();
    let mut prover = Prover::new(Parts {
        root,
        journal: &journal,
        header: &header,
        wishes,
        observer,
        signals: &signals,
        file: Some(log),
        tell: Box::new(move |blocks| screen::progress(&progress(&told, blocks))),
    });
    let end = prover.conduct(earlier.as_ref()).map_err(Failure::work)?;
    let log = prover.into_file().ok_or_else(|| Failure::work("the log is gone"))?;
    screen::progress("");
    let read = log.read(file::parse).map_err(Failure::work)?;
    let proof = conclude::of(&read);
    if let Some(report) = report {
        report.write(wattwise_report::prove_html(&read, &proof).as_bytes())?;
    }
    match args.json {
        true => print_json(&proof)?,
        false => print(&words::text(&proof))?,
    }
    if let End::Stopped(why) = end {
        say!("{why}; to go on with the same plan: wattwise prove --resume {}", shell::file(&path));
        return Ok(signals.caught().map_or(1, |signal| 128 + signal as u8));
    }
    if proof.pairs == 0 {
        return Err(Failure::work(format!("prove: no pair counts; {}", proof.line)));
    }
    Ok(0)
}

/// Refuses to go on with a plan on another machine than the one that it was begun on, as `ab` does.
fn same_machine(path: &OutputPath, header: &Header, root: &dyn Root) -> Result<(), Failure> {
    let now = Identity::read(root);
    if let Some(why) = now.other_than(&header.identity) {
        return Err(Failure::input(format!(
            "--resume {}: was begun on another machine: {why}; expected that machine, or a new proof without --resume",
            path.display()
        )));
    }
    if now.boot != header.identity.boot {
        note!("{}: the machine was started anew since; what was measured before it counts", path.display());
    }
    Ok(())
}

fn observer(root: &dyn Root, battery: bool) -> Result<Observer<'_>, Failure> {
    match battery {
        true => Observer::open_on_battery(root).map_err(|e| Failure::impossible(format!("--battery: {e}"))),
        false => Ok(Observer::open(root, None)),
    }
}

/// Both policies, checked: what cannot be set is known before the first block.
fn ready(root: &dyn Root, header: &Header) -> Result<[Wishes; 2], Failure> {
    let words = ArmArgs { root };
    let one = |side: &Side| {
        let wishes = words.wishes(&side.policy)?;
        possible(root, &wishes).map_err(|e| Failure::from(e.of(&side.name)))?;
        Ok::<Wishes, Failure>(wishes)
    };
    let [a, b] = &header.sides;
    Ok([one(a)?, one(b)?])
}

/// What a reader should know before waiting for a week.
fn pre_flight(root: &dyn Root, path: &OutputPath, header: &Header) {
    note!(
        "writing to {}; {} pairs of {} and {}, {} in all; energy {}",
        path.display(),
        header.pairs(),
        header.sides[0].name,
        header.sides[1].name,
        words::time(header.pairs() as f64 * 2.0 * header.block_s / 3600.0),
        header.energy
    );
    for writer in writers::running(root) {
        note!("{} is running and may change {}; pause it with: {}", writer.name, writer.writes, writer.pause);
    }
    if supply(root).source == SupplySource::Battery && !header.battery {
        note!("the machine runs on its battery: pairs in which mains comes or goes are left out");
    }
}

/// Progress, on a terminal only: by the interval that holds whenever it is looked at.
fn progress(header: &Header, blocks: &[Block]) -> String {
    let sorted = pairs(blocks, header.block_s);
    let outcome = judge::outcome(&sorted.counted, header.plan.aim.confidence, header.pairs());
    let left: f64 = sorted.left_out.iter().map(|(_, s)| s / 3600.0).sum();
    let figure = match outcome.at_any_time {
        Some(RatioInterval { ratio, low, high }) => {
            let change = |x: f64| wattwise_figure::signed((x - 1.0) * 100.0, 1);
            format!("{} % [{}, {}] so far", change(ratio), change(low), change(high))
        }
        None => "no figure before 30 pairs".to_owned(),
    };
    let left = if left > 0.0 { format!(", {} left out", words::time(left)) } else { String::new() };
    format!("{} of {} pairs{left}; {figure}", sorted.counted.len(), header.pairs())
}

impl ProveArgs {
    /// A, B, and what was predicted of them.
    fn sides(&self) -> Result<([String; 2], Option<Predicted>), Failure> {
        let of_result = self.from.as_deref().map(|path| Results::read("--from", path)).transpose()?;
        match (&self.policies[..], of_result) {
            ([], Some(results)) => Ok((results.arms("--from")?, results.predicted)),
            ([a, b], None) => Ok(([a.clone(), b.clone()], None)),
            ([a, b], Some(results)) => {
                // Its prediction is of its own two.
                let same = results.arms("--from").is_ok_and(|arms| arms == [a.clone(), b.clone()]);
                Ok(([a.clone(), b.clone()], results.predicted.filter(|_| same)))
            }
            _ => Err(Failure::input(
                "prove: expected two policies, such as 'wattwise prove current epp=balance_power', or --from FILE",
            )),
        }
    }

    /// The plan as these arguments say it.
    fn header(&self, root: &dyn Root) -> Result<Header, Failure> {
        let ([a, b], predicted) = self.sides()?;
        let side = |policy: String| Side { name: policy.clone(), policy };
        let block = self.block.unwrap_or(Duration::from_secs(if self.battery { 600 } else { 60 }));
        let settle = self.settle.unwrap_or(Duration::from_secs(5).min(block / 12));
        let of_time = self.duration.as_nanos() as f64 / (2 * block.as_nanos()).max(1) as f64;
        if !(of_time >= 3.0 && block >= Duration::from_millis(200)) {
            return Err(Failure::input(format!(
                "--duration {}: has no room for three pairs of blocks of {} s; expected more, such as 2h",
                words::time(self.duration.as_secs_f64() / 3600.0),
                block.as_secs_f64()
            )));
        }
        let plan = Design {
            arms: 2,
            aim: Aim { confidence: self.confidence, pilot: 3, ..Aim::default() },
            budget: Budget { blocks: of_time as usize, seconds: self.duration.as_secs_f64(), warm_up: 0 },
            seed: self.seed.unwrap_or_else(|| state::now() ^ u64::from(std::process::id()) << 32),
        };
        let header = Header {
            schema: file::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan,
            sides: [side(a), side(b)],
            block_s: block.as_secs_f64(),
            settle_s: settle.as_secs_f64(),
            limit: self.max_slowdown,
            probe_loops: if root.is_this_machine() { probe::calibrated() } else { 0 },
            battery: self.battery,
            energy: observer(root, self.battery)?.energy_comes_from(),
            machine: machine_here(root),
            root: self.root.absolute(),
            identity: Identity::read(root),
            started: state::now(),
            predicted,
        };
        header.check().map_err(|e| Failure::input(format!("prove: {e}")))?;
        match &header.energy {
            Provenance::Measured { .. } => Ok(header),
            other => Err(Failure::impossible(format!(
                "prove: nothing here meters energy: {other}; 'wattwise compare' asks a model, --battery the gauge of a \
                 machine that runs on it"
            ))),
        }
    }

    /// Watches the machine as it is, and says what the precision takes.
    fn planned(
        &self,
        root: &dyn Root,
        asked: &hardware::RootArgs,
        header: Header,
        wishes: [Wishes; 2],
        observer: Observer<'_>,
    ) -> Outcome {
        let blocks = (self.watch.as_secs_f64() / header.block_s) as usize;
        if blocks < 12 {
            return Err(Failure::input(format!(
                "--watch {}: has fewer than 12 blocks of {} s; expected more, such as 1h",
                words::time(self.watch.as_secs_f64() / 3600.0),
                header.block_s
            )));
        }
        note!(
            "watching the machine as it is for {}; use it as usual",
            words::time(self.watch.as_secs_f64() / 3600.0)
        );
        let signals = Signals::catch().map_err(Failure::work)?;
        let journal = asked.journal()?;
        let tell =
            Box::new(move |seen: &[Block]| screen::progress(&format!("block {} of {blocks}", seen.len())));
        let parts = Parts {
            root,
            journal: &journal,
            header: &header,
            wishes,
            observer,
            signals: &signals,
            file: None,
            tell,
        };
        let seen = Prover::new(parts).watch(blocks);
        screen::progress("");
        let lost = seen.iter().filter(|b| b.left_out.is_some()).count() as f64 / seen.len().max(1) as f64;
        let hours = hours::needed(
            &hours::differences(&seen),
            true,
            (self.precision, self.confidence),
            header.block_s,
            lost.min(0.9),
        );
        let told = PlanOutput {
            sides: header.sides.clone(),
            machine: header.machine.clone(),
            energy: header.energy.to_string(),
            watched_h: seen.len() as f64 * header.block_s / 3600.0,
            hours,
        };
        match self.json {
            true => print_json_as(PLAN_SCHEMA, &told)?,
            false => print(&plan_text(&told))?,
        }
        Ok(signals.caught().map_or(0, |signal| 128 + signal as u8))
    }
}

fn plan_text(p: &PlanOutput) -> String {
    let [a, b] = [&p.sides[0].name, &p.sides[1].name];
    let watched = words::time(p.watched_h);
    match &p.hours {
        Some(h) => format!(
            "{b} against {a}: {}\n\n  {} pairs; two minutes that follow each other differ by {:.1} % here (watched for {watched})\n  energy: {}\n",
            words::hours(h),
            h.pairs,
            h.spread * 100.0,
            p.energy
        ),
        None => format!(
            "{b} against {a}: cannot be said: within {watched} fewer than ten blocks followed each other, or nothing moved\n"
        ),
    }
}
