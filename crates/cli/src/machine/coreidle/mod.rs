//! `coreidle`: keeps work on few CPUs of this machine, and says what is in force.

mod cost;
mod tune;

use crate::args::root::{PASSING, RootArgs};
use crate::args::select::mechanism;
use crate::exit::{Failure, Outcome, print, print_json};
use crate::machine::step_back::step_back;
use crate::show::screen::{note, say};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wattwise_control::cores::check_mask;
use wattwise_control::cores::held as state;
use wattwise_control::cores::held::{HeldMask, Holder};
use wattwise_control::cores::hold::{Force, HoldOptions, Released, clean};
use wattwise_control::cores::mechanism::{Cgroups, MechanismKind, open};
use wattwise_control::cores::steer::Steerable;
use wattwise_control::cores::tasks::{Pinned, pinned_outside};
use wattwise_control::govern::cores::{GovernorSummary, follow};
use wattwise_control::set::original::boot_id;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::Root;
use wattwise_live::run::child::Signals;
use wattwise_policy::chosen::CoresSpec;
use wattwise_replay::spec::{cores_spec, is_cores};

#[derive(clap::Args)]
#[command(
    after_help = "Core idling is off until it is asked for. Whether it helps this machine at all, 'tune' finds out.\n\n  \
    wattwise coreidle governor ondemand 250     follow COREIDLE's governor every 250 ms, until Ctrl-C\n  \
    wattwise coreidle set 0-3                   keep work on CPUs 0 to 3\n  \
    wattwise coreidle off                       everything everywhere again"
)]
pub(crate) struct CoreidleArgs {
    #[command(subcommand)]
    command: CoreidleCommand,
    #[command(flatten)]
    root: RootArgs,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum CoreidleCommand {
    /// What is in force, by what, for whom; which ways this machine has
    Status,
    /// Keep work on these CPUs until `off`
    Set {
        /// The CPUs, such as 0-3 or 0,2
        #[arg(value_name = "CPUS")]
        cpus: String,
        #[command(flatten)]
        how: How,
    },
    /// Follow a core policy until a signal comes
    Governor {
        /// A core policy with its parameters, such as ondemand, consolidate or dragonfly:poll=500
        policy: String,
        /// Its period, ms
        period: Option<u64>,
        #[command(flatten)]
        how: How,
    },
    /// End whatever is in force
    Off,
    /// What a change of the mask costs, by each way that this machine has: it changes it some forty times
    Cost(crate::machine::coreidle::cost::CoreidleCostArgs),
    /// Try policies on your own work, and turn one on only where it gains and stalls nothing
    Tune(Box<crate::machine::coreidle::tune::CoreidleTuneArgs>),
}

#[derive(clap::Args, Clone, Default)]
struct How {
    /// By what [default: the best that there is]
    #[arg(long, value_parser = mechanism())]
    mechanism: Option<MechanismKind>,
    /// Confine the tasks of this cgroup alone (a folder of the v1 cpuset hierarchy)
    #[arg(long, value_name = "CGROUP")]
    within: Option<PathBuf>,
    /// Steer interrupts and unbound kernel work to the kept CPUs too
    #[arg(long)]
    steer: bool,
    /// Confine tasks that are pinned to some CPUs too; their affinity returns afterwards (Linux 6.2 or later)
    #[arg(long)]
    pinned_too: bool,
}

impl How {
    fn options(&self) -> HoldOptions {
        let within = self.within.clone().unwrap_or_default();
        // As a path within the hierarchy, however it was written.
        let within = within.strip_prefix("/").map(PathBuf::from).unwrap_or(within);
        HoldOptions { mechanism: self.mechanism, within, steer: self.steer, pinned_too: self.pinned_too }
    }
}

pub(crate) fn run(args: &CoreidleArgs) -> Outcome {
    match &args.command {
        CoreidleCommand::Status => status(&*args.root.open()?, &args.root.journal()?, args),
        command => changed(command, args),
    }
}

/// What puts a mask in force or ends it: on a machine that can change, and whose time runs, as a governor looks at it.
fn changed(command: &CoreidleCommand, args: &CoreidleArgs) -> Outcome {
    // 'off' ends what a killed one left by itself, and says what it was.
    let running = match command {
        CoreidleCommand::Off => args.root.open_watched("coreidle")?,
        // It leaves its mask in force.
        CoreidleCommand::Set { .. } => {
            let running = args.root.open_watched("coreidle")?;
            args.root.put_back(&*running.root)?;
            running
        }
        _ => args.root.open_running("coreidle")?,
    };
    let root = &*running.root;
    let folder = args.root.journal()?;
    match command {
        CoreidleCommand::Status => status(root, &folder, args),
        CoreidleCommand::Set { cpus, how } => set(root, &folder, args, cpus, how),
        CoreidleCommand::Governor { policy, period, how } => {
            let (spec, name) = spec(policy, *period)?;
            govern(root, &folder, args.json, (&spec, &name), how)
        }
        CoreidleCommand::Off => off(root, &folder),
        CoreidleCommand::Cost(cost) => cost::run(root, &folder, args.json, cost),
        CoreidleCommand::Tune(_) if !root.is_this_machine() => Err(Failure::impossible(format!(
            "coreidle tune --root {}: your work runs on this machine, and so would not be seen there; 'compare -m' tries \
             policies on another machine",
            args.root.given().unwrap_or_default()
        ))),
        CoreidleCommand::Tune(tune) => tune::run(&folder, args.json, tune),
    }
}

/// A policy's spec as people write it here: `ondemand` is `coreidle-ondemand`, a number is the period.
fn spec(policy: &str, period: Option<u64>) -> Result<(CoresSpec, String), Failure> {
    let long = format!("coreidle-{policy}");
    let mut text = if is_cores(&long) { long } else { policy.to_owned() };
    if let Some(ms) = period {
        let known = cores_spec(&text).map_err(Failure::input)?;
        let key = known.cores.params.iter().find(|p| ["period", "poll"].contains(&p.name));
        let key = key.ok_or_else(|| {
            Failure::input(format!(
                "coreidle governor {policy} {ms}: {} has no fixed period",
                known.cores.name
            ))
        })?;
        text += &format!("{}{}={ms}", if text.contains(':') { "," } else { ":" }, key.name);
    }
    Ok((cores_spec(&text).map_err(Failure::input)?, text))
}

/// What `status` says.
#[derive(Serialize)]
struct CoreidleStatus {
    schema: &'static str,
    /// As noted; none if nothing is in force.
    state: Option<HeldMask>,
    /// Whether the holder lives.
    alive: bool,
    /// CPUs that work is kept on, as the kernel says.
    kept: Option<String>,
    /// What keeps the two from agreeing.
    problem: Option<String>,
    /// User tasks that are pinned to CPUs outside the mask.
    pinned_outside: Vec<Pinned>,
    /// The ways of this machine: (which, why not).
    mechanisms: Vec<(MechanismKind, Option<String>)>,
    /// What `--steer` would try to move: which of them stay, only trying tells.
    steerable: usize,
}

fn status(root: &dyn Root, folder: &Path, args: &CoreidleArgs) -> Outcome {
    let cgroups = Cgroups::find(root);
    let mut status = CoreidleStatus {
        schema: "wattwise.coreidle-status/1",
        state: state::read(folder)?.filter(|s| s.boot_id == boot_id(root)),
        alive: false,
        kept: None,
        problem: None,
        pinned_outside: Vec::new(),
        mechanisms: MechanismKind::ALL.map(|k| (k, cgroups.why_not(k))).to_vec(),
        steerable: Steerable::look(root).count(),
    };
    if let Some(state) = &status.state {
        status.alive = match state.holder {
            Holder::User => true,
            Holder::Process { .. } => state::somebody_is_in_charge(folder)?,
        };
        let kept = open(root, state.mechanism, &cgroups, state.terms()).and_then(|m| m.kept());
        match kept {
            Ok(kept) => {
                status.pinned_outside = pinned(root, &kept);
                status.kept = Some(kept.to_string());
            }
            Err(e) => status.problem = Some(e.to_string()),
        }
    }
    match args.json {
        true => print_json(&status)?,
        false => print(&status_text(&status))?,
    }
    Ok(0)
}

fn status_text(s: &CoreidleStatus) -> String {
    let mut out = String::new();
    match &s.state {
        None => out += "off: work may run on every CPU\n",
        Some(state) => {
            let who = match (&state.holder, s.alive) {
                (Holder::User, _) => "set by hand".to_owned(),
                (Holder::Process { pid, policy }, true) => format!("{policy}, process {pid}"),
                (Holder::Process { pid, policy }, false) => {
                    format!(
                        "left by '{policy}', process {pid}, which is gone; 'wattwise coreidle off' ends it"
                    )
                }
            };
            let kept = s.kept.clone().unwrap_or_else(|| format!("{} (as noted)", state.kept));
            _ = writeln!(out, "kept: CPU {kept} of {}   {who}   by {}", state.online, state.mechanism);
            if !state.within.as_os_str().is_empty() {
                _ = writeln!(out, "  only tasks of cgroup {}", state.within.display());
            }
            if let Some(problem) = &s.problem {
                _ = writeln!(out, "  not as noted: {problem}");
            }
            out += &pinned_text(&s.pinned_outside);
        }
    }
    for (kind, why_not) in &s.mechanisms {
        _ = writeln!(out, "  {kind}: {}", why_not.as_deref().unwrap_or("available"));
    }
    _ = writeln!(out, "  interrupts and kernel work that --steer tries to move: {}", s.steerable);
    out
}

fn pinned_text(pinned: &[Pinned]) -> String {
    /// Enough to see who it is.
    const MOST: usize = 10;
    let mut out = String::new();
    for p in pinned.iter().take(MOST) {
        _ = writeln!(out, "  {} ({}) is pinned to CPU {}, outside the mask", p.name, p.tid, p.cpus);
    }
    if pinned.len() > MOST {
        _ = writeln!(out, "  and {} more", pinned.len() - MOST);
    }
    out
}

/// Tasks of this machine that are pinned outside; another's are not known.
fn pinned(root: &dyn Root, kept: &CpuSet) -> Vec<Pinned> {
    match root.is_this_machine() {
        true => pinned_outside(Path::new("/proc"), kept),
        false => Vec::new(),
    }
}

/// The CPUs as they are but for a mask in force, which a new one takes the place of.
fn without_mask(root: &dyn Root, folder: &Path) -> Result<Topology, Failure> {
    let mut topology = Topology::read(root);
    let held = state::read(folder)?.filter(|s| s.boot_id == boot_id(root));
    if let Some(held) = held.filter(|s| s.mechanism == MechanismKind::Hotplug) {
        topology.online.extend(CpuSet::parse(&held.online).unwrap_or_default().iter());
    }
    Ok(topology)
}

fn set(root: &dyn Root, folder: &Path, args: &CoreidleArgs, cpus: &str, how: &How) -> Outcome {
    let kept = CpuSet::parse(cpus).map_err(|e| Failure::input(format!("coreidle set {e}")))?;
    check_mask(&kept, &without_mask(root, folder)?)?;
    if args.root.is_passing() {
        note!("{PASSING}");
    }
    let mut force = Force::begin(root, folder, Holder::User, &how.options())?;
    let moved = force.keep(&kept)?;
    let outside = pinned(root, &kept);
    let kind = force.kind();
    let fixed = force.steering().map(|steered| steered.fixed.clone()).unwrap_or_default();
    force.leave();
    if args.json {
        #[derive(Serialize)]
        struct Set<'a> {
            schema: &'static str,
            kept: String,
            mechanism: MechanismKind,
            moved: usize,
            stayed: usize,
            pinned_outside: &'a [Pinned],
            /// Interrupts that `--steer` could not move.
            fixed_interrupts: &'a [String],
        }
        let set = Set {
            schema: "wattwise.coreidle-set/1",
            kept: kept.to_string(),
            mechanism: kind,
            moved: moved.moved,
            stayed: moved.stayed,
            pinned_outside: &outside,
            fixed_interrupts: &fixed,
        };
        print_json(&set)?;
        return Ok(0);
    }
    let mut text = format!("work is kept on CPU {kept}, by {kind}");
    if kind == MechanismKind::Group {
        text += &format!(": {} tasks moved, {} pinned or the kernel's own stayed", moved.moved, moved.stayed);
    }
    if !fixed.is_empty() {
        text += &format!("\n  interrupts that stay: {}", fixed.join(", "));
    }
    print(&format!("{text}\n{}", pinned_text(&outside)))?;
    Ok(0)
}

fn govern(
    root: &dyn Root,
    folder: &Path,
    json: bool,
    (spec, name): (&CoresSpec, &str),
    how: &How,
) -> Outcome {
    let signals = Signals::catch().map_err(Failure::work)?;
    let begun = Instant::now();
    let mut pause = |time: Duration| {
        signals.sleep(time);
        signals.caught().is_none()
    };
    let mut told = |force: &Force<'_>, kept: &CpuSet| {
        note!("following {name} by {}; CPU {kept} kept at first; Ctrl-C ends it", force.kind());
    };
    let _paused = step_back(root, "wattwise coreidle")?;
    let summary = follow(root, spec, name, folder, &how.options(), &mut pause, &mut told)?;
    if json {
        print_json(&Followed::of(name, &summary, begun.elapsed()))?;
    } else {
        print(&summary_text(&summary, begun.elapsed()))?;
    }
    for line in &summary.left {
        say!("{line}; 'wattwise coreidle off' tries again");
    }
    Ok(u8::from(!summary.left.is_empty()))
}

/// What a governor did, as JSON.
#[derive(Serialize)]
struct Followed<'a> {
    schema: &'static str,
    policy: &'a str,
    elapsed_s: f64,
    cpu_s: f64,
    looks: u64,
    changes: u64,
    moved: u64,
    kept_s: &'a [f64],
}

impl<'a> Followed<'a> {
    fn of(policy: &'a str, s: &'a GovernorSummary, elapsed: Duration) -> Followed<'a> {
        Followed {
            schema: "wattwise.coreidle-governor/1",
            policy,
            elapsed_s: elapsed.as_secs_f64(),
            cpu_s: own_cpu_s(),
            looks: s.looks,
            changes: s.changes,
            moved: s.moved,
            kept_s: &s.kept_s,
        }
    }
}

/// CPU time of this process, s.
fn own_cpu_s() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn summary_text(s: &GovernorSummary, elapsed: Duration) -> String {
    let all: f64 = s.kept_s.iter().sum();
    let mut out = format!(
        "{:.1} s, {} looks, {} changes of the mask, {:.2} % of one CPU\n",
        elapsed.as_secs_f64(),
        s.looks,
        s.changes,
        100.0 * own_cpu_s() / elapsed.as_secs_f64().max(1e-9)
    );
    for (at, kept_s) in s.kept_s.iter().enumerate().filter(|(_, kept_s)| **kept_s > 0.0) {
        _ = writeln!(out, "  {} CPUs kept: {:.1} %", at + 1, 100.0 * kept_s / all.max(1e-9));
    }
    out
}

fn off(root: &dyn Root, folder: &Path) -> Outcome {
    /// A governor releases within milliseconds of its signal.
    const PATIENCE: Duration = Duration::from_secs(5);
    let begun = Instant::now();
    let mut asked = false;
    loop {
        match clean(root, folder, true)? {
            Released::Nothing => {
                print(if asked {
                    "the governor ended: work may run on every CPU\n"
                } else {
                    "nothing was in force\n"
                })?;
                return Ok(0);
            }
            Released::State(state) => {
                print(&format!("released: CPU {} of {} had been kept\n", state.kept, state.online))?;
                return Ok(0);
            }
            Released::Held(pid) if begun.elapsed() < PATIENCE => {
                if !asked && let Some(pid) = pid.and_then(|p| rustix::process::Pid::from_raw(p as i32)) {
                    rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|e| {
                        Failure::work(format!("coreidle off: process {}: {e}", pid.as_raw_nonzero()))
                    })?;
                }
                asked = true;
                std::thread::sleep(Duration::from_millis(20));
            }
            Released::Held(pid) => {
                let who = pid.map_or("another wattwise".to_owned(), |p| format!("process {p}"));
                return Err(Failure::work(format!(
                    "coreidle off: {who} is in charge and does not end; kill it and try again"
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_and_a_period() {
        let text = |p, ms| spec(p, ms).map(|(_, t)| t).map_err(|e| e.message);
        assert_eq!(text("ondemand", Some(250)), Ok("coreidle-ondemand:period=250".to_owned()));
        assert_eq!(text("dragonfly:up=30", Some(500)), Ok("dragonfly:up=30,poll=500".to_owned()));
        assert_eq!(text("consolidate", None), Ok("consolidate".to_owned()));
        assert!(text("userspace", Some(5)).is_err_and(|e| e.contains("no fixed period")));
        assert!(text("ondemnd", None).is_err_and(|e| e.contains("did you mean")));
    }
}
