//! `coreidle tune`: is core idling worth it, here, for this work?
//!
//! 1. `ab` of the machine as it is against each policy, over the user's own command: energy over equal windows.
//! 2. A policy passes only if its energy's interval lies below zero, its time's does not reach past `--slowdown`, and
//!    no run of it took three times the median of the runs without it (a stall).
//!    Modelled energy is no evidence unless `--modelled` says so.
//! 3. Those that pass run again beside a probe that sleeps for 1 ms at a time: its p99 lateness may be above what it is
//!    without the policy by at most `--bound`.
//!
//! Else the answer is *off*, which is the default everywhere.

use crate::args::output::OutputPath;
use crate::args::state;
use crate::machine::ab;
use crate::machine::coreidle::{Failure, How, Outcome, govern, print, print_json, spec};
use clap::Parser;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_control::cores::held;
use wattwise_control::cores::hold::HoldOptions;
use wattwise_control::govern::cores::Following;
use wattwise_figure::Provenance;
use wattwise_figure::shell;
use wattwise_figure::verdict::Answer;
use wattwise_hw::root::DirRoot;
use wattwise_live::ab::log::AbRead;
use wattwise_live::ab::result;
use wattwise_live::ab::result::Judgement;
use wattwise_live::run::child;
use wattwise_live::run::child::{CommandJob, Signals};

#[derive(clap::Args)]
pub(crate) struct CoreidleTuneArgs {
    /// A policy to try; may be given again [default: ondemand, dragonfly, lpmd, consolidate]
    #[arg(long, short, value_name = "POLICY")]
    policy: Vec<String>,
    /// Greatest p99 wake-up lateness, against what it is without: 1.5x, 50%, or 'any'
    #[arg(long, value_name = "SHARE", default_value = "1.5x", value_parser = wattwise_figure::increase)]
    bound: f64,
    /// Greatest slowdown: 5%, 1.05x, or 'any'
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = wattwise_figure::increase)]
    slowdown: f64,
    /// Most pairs of runs
    #[arg(long, value_name = "PAIRS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(3..=1_000_000))]
    pairs: u64,
    /// Most time for them
    #[arg(long, value_name = "DURATION", default_value = "30min")]
    budget: String,
    /// All runs, as JSON lines [default: coreidle-tune-TIME-PID.jsonl where 'ab' keeps its logs]
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
    /// Take modelled energy for evidence, where nothing meters it
    #[arg(long)]
    modelled: bool,
    /// Follow the best policy that passed, until a signal comes
    #[arg(long)]
    apply: bool,
    /// Your work: a command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

/// What became of a policy.
#[derive(Serialize)]
struct CoreidleTrial {
    policy: String,
    /// Change of energy and of time against the machine as it is: ratio and interval.
    energy: Option<[f64; 3]>,
    time: Option<[f64; 3]>,
    /// p99 of the probe's lateness over that without the policy.
    lateness: Option<f64>,
    /// None if it passed.
    refused: Option<String>,
}

#[derive(Serialize)]
struct TuneOutput {
    schema: &'static str,
    energy: String,
    trials: Vec<CoreidleTrial>,
    /// The policy to be used; none is off.
    verdict: Option<String>,
}

const DEFAULT: [&str; 4] = ["ondemand", "dragonfly", "lpmd", "consolidate"];

/// For parsing the flags of `ab`.
#[derive(Parser)]
struct Ab {
    #[command(flatten)]
    args: ab::AbArgs,
}

pub(crate) fn run(folder: &Path, json: bool, args: &CoreidleTuneArgs) -> Outcome {
    let policies: Vec<String> = match args.policy.is_empty() {
        true => DEFAULT.map(str::to_owned).to_vec(),
        false => args.policy.clone(),
    };
    let policies = policies.iter().map(|p| Ok(spec(p, None)?.1)).collect::<Result<Vec<_>, Failure>>()?;
    // Who may not keep work on few CPUs is told before the first run.
    held::read(folder)?;
    let read = experiment(folder, args, &policies)?;
    let judged = result::of(&read);
    let mut trials: Vec<CoreidleTrial> =
        policies.iter().enumerate().map(|(at, p)| trial(p, at + 1, &read, &judged, args)).collect();
    late(folder, args, &mut trials)?;
    let best = trials.iter().filter(|t| t.refused.is_none()).min_by(|a, b| {
        let energy = |t: &CoreidleTrial| t.energy.map_or(f64::INFINITY, |e| e[0]);
        energy(a).total_cmp(&energy(b))
    });
    let verdict = best.map(|t| t.policy.clone());
    let report =
        TuneOutput { schema: "wattwise.coreidle-tune/1", energy: judged.energy.clone(), trials, verdict };
    if json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    match &report.verdict {
        Some(policy) if args.apply => {
            let (cores, name) = spec(policy, None)?;
            govern(&DirRoot::this_machine(), folder, json, (&cores, &name), &How::default())
        }
        _ => Ok(0),
    }
}

/// Step 1, by `ab` itself.
fn experiment(folder: &Path, args: &CoreidleTuneArgs, policies: &[String]) -> Result<AbRead, Failure> {
    let output = match &args.output {
        Some(path) => path.path().to_owned(),
        None => state::log("coreidle-tune", "--output")?,
    };
    let mut words: Vec<String> = vec!["ab".into(), "current".into()];
    words.extend(policies.iter().cloned());
    words.extend([
        "--pairs".into(),
        args.pairs.to_string(),
        "--pilot".into(),
        args.pairs.min(10).to_string(),
    ]);
    words.extend(["--budget".into(), args.budget.clone(), "--output".into(), output.display().to_string()]);
    words.extend(["--journal".into(), folder.display().to_string(), "--".into()]);
    words.extend(args.command.iter().cloned());
    let parsed = Ab::try_parse_from(words).map_err(|e| {
        let reason = e.to_string();
        Failure::input(format!("coreidle tune: {}", reason.lines().next().unwrap_or_default()))
    })?;
    match ab::conducted(&parsed.args)? {
        (0, Some(read)) => Ok(read),
        _ => Err(Failure::work("coreidle tune: the comparison was interrupted; nothing is turned on")),
    }
}

/// Step 2.
fn trial(
    policy: &str,
    arm: usize,
    read: &AbRead,
    judged: &Judgement,
    args: &CoreidleTuneArgs,
) -> CoreidleTrial {
    let verdicts = judged.comparisons.iter().find(|c| c.arm == arm).map_or(&[][..], |c| &c.verdicts);
    let of = |what: &str| verdicts.iter().find(|v| v.what == what).map(|v| &v.verdict);
    let interval = |what: &str| of(what).map(|v| [v.ratio, v.low, v.high]);
    let mut trial = CoreidleTrial {
        policy: policy.to_owned(),
        energy: interval("energy"),
        time: interval("time"),
        lateness: None,
        refused: None,
    };
    let walls = |arm: usize| -> Vec<f64> {
        let mut walls: Vec<f64> = read.counted().iter().map(|block| block[arm].measured.wall_s).collect();
        walls.sort_unstable_by(f64::total_cmp);
        walls
    };
    let (off, on) = (walls(0), walls(arm));
    let usual = off.get(off.len() / 2).copied().unwrap_or(f64::INFINITY);
    trial.refused = match (&trial.energy, &trial.time) {
        (None, _) => Some("no energy was seen".to_owned()),
        (Some(_), _) if of("energy").is_some_and(|v| matches!(v.answer, Answer::NotMeasured(_))) => {
            Some("energy was not measured".to_owned())
        }
        _ if matches!(read.header.energy, Provenance::Modelled { .. }) && !args.modelled => {
            Some("energy is modelled here, which proves nothing; --modelled takes it for evidence".to_owned())
        }
        (Some([_, _, high]), _) if *high >= 1.0 => Some("no gain of energy outside the interval".to_owned()),
        (_, Some([_, _, high])) if *high - 1.0 > args.slowdown => {
            Some(format!("may slow the work down by {:.1} %", (high - 1.0) * 100.0))
        }
        _ => match on.last() {
            Some(worst) if *worst > 3.0 * usual => {
                Some(format!("stalled: one run took {worst:.2} s, {usual:.2} s is usual without"))
            }
            _ => None,
        },
    };
    trial
}

/// Step 3: the probe, in turns with and without.
fn late(folder: &Path, args: &CoreidleTuneArgs, trials: &mut [CoreidleTrial]) -> Result<(), Failure> {
    const TURNS: usize = 3;
    if trials.iter().all(|t| t.refused.is_some()) {
        return Ok(());
    }
    let signals = Signals::catch().map_err(Failure::work)?;
    let job = CommandJob { command: args.command.clone(), capture: true, ..CommandJob::default() };
    let passed: Vec<usize> = (0..trials.len()).filter(|&t| trials[t].refused.is_none()).collect();
    let mut lateness: Vec<Vec<f64>> = vec![Vec::new(); trials.len() + 1];
    for _ in 0..TURNS {
        for at in std::iter::once(None).chain(passed.iter().copied().map(Some)) {
            let _following = match at {
                None => None,
                Some(t) => {
                    let (cores, name) = spec(&trials[t].policy, None)?;
                    Some(Following::begin(&cores, &name, folder.to_owned(), HoldOptions::default())?)
                }
            };
            let samples = probed(&job, &signals)?;
            lateness[at.map_or(trials.len(), |t| t)].extend(samples);
            if signals.caught().is_some() {
                return Err(Failure::work("coreidle tune: interrupted; nothing is turned on"));
            }
        }
    }
    let p99 = |samples: &mut Vec<f64>| {
        samples.sort_unstable_by(f64::total_cmp);
        samples.get(samples.len() * 99 / 100).copied()
    };
    let off = lateness.last_mut().and_then(p99);
    for t in passed {
        let trial = &mut trials[t];
        trial.lateness = p99(&mut lateness[t]).zip(off).map(|(on, off)| on / off);
        trial.refused = match trial.lateness {
            None => Some("the work is too short for its wake-ups to be judged".to_owned()),
            Some(times) if times - 1.0 > args.bound => {
                Some(format!("wake-ups are late {times:.2} times as much (p99)"))
            }
            Some(_) => None,
        };
    }
    Ok(())
}

/// Runs the work beside a probe; how late its sleeps ended, us.
fn probed(job: &CommandJob, signals: &Signals) -> Result<Vec<f64>, Failure> {
    const NAP: Duration = Duration::from_millis(1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let naps = || {
            let mut late = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let due = Instant::now() + NAP;
                std::thread::sleep(NAP);
                late.push(due.elapsed().as_nanos() as f64 / 1e3);
            }
            late
        };
        let probe = wattwise_threads::named("probe").spawn_scoped(scope, naps).map_err(|e| {
            Failure::impossible(format!(
                "coreidle tune: no thread that measures lateness can be started: {e}"
            ))
        })?;
        let ended = child::run(job, signals, None, &mut || {});
        done.store(true, Ordering::Relaxed);
        let late = probe.join().unwrap_or_default();
        let ended = ended.map_err(Failure::work)?;
        match ended.failure() {
            Some(why) => Err(Failure::work(format!("coreidle tune: {} {why}", shell::line(&job.command)))),
            None => Ok(late),
        }
    })
}

fn text(r: &TuneOutput) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for t in &r.trials {
        let change = |i: Option<[f64; 3]>| match i {
            Some([ratio, low, high]) => {
                let p = |r: f64| wattwise_figure::signed((r - 1.0) * 100.0, 2);
                format!("{} % [{}, {}]", p(ratio), p(low), p(high))
            }
            None => "-".to_owned(),
        };
        let lateness = t.lateness.map_or(String::new(), |l| format!("   p99 lateness x {l:.2}"));
        let verdict = t.refused.as_deref().unwrap_or("passed");
        _ = writeln!(
            out,
            "{:<28} energy {}   time {}{lateness}   {verdict}",
            t.policy,
            change(t.energy),
            change(t.time)
        );
    }
    _ = writeln!(out, "energy: {}", r.energy);
    match &r.verdict {
        None => out += "verdict: off. No policy gained energy here within the bounds.\n",
        Some(policy) => {
            _ = writeln!(out, "verdict: {policy}. 'wattwise coreidle governor {policy}' follows it.")
        }
    }
    out
}
