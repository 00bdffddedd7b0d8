//! `wattwise compare`: the main job.

use crate::exit::{Failure, Outcome, print, print_json};
use crate::show::table;
use clap::ValueEnum;
use std::io::IsTerminal;
use std::path::PathBuf;
use wattwise_advice::compare::compare;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_model::workload::Workload;
use wattwise_policy::PowerSource;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::library::{DEFAULT_MACHINE, DEFAULT_WORKLOAD};
use wattwise_replay::spec::PolicySpec;
use wattwise_trace::{ImportOptions, record};

/// The policies of a comparison when none is named.
const DEFAULT_POLICIES: &[&str] = &[
    "performance",
    "race-to-idle",
    "schedutil",
    "schedutil+teo",
    "ondemand",
    "conservative",
    "powerd",
    "powerd:mode=adaptive",
    "powerd-2010",
    "powerd++",
    "burst",
    "openbsd-auto:mains=auto",
    "openbsd-auto:version=2021,mains=auto",
    "obsdfreqd",
    "powersaving:on=always,mains=auto",
    "powersave",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A bundled workload ('wattwise workloads'), a recording (perf.data, trace.dat, ftrace text) or a workload file
    workload: Option<String>,
    /// A machine model ('wattwise machines') or a model's file
    #[arg(long, short, default_value = DEFAULT_MACHINE)]
    machine: String,
    /// A policy, SPEED[:key=value,...][+IDLE][+PLACEMENT][+CORES] or a policy file; again for each more
    #[arg(long, short)]
    policy: Vec<String>,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the result as JSON (schema wattwise-compare-1)
    #[arg(long)]
    json: bool,
    /// What the best policy has least of
    #[arg(long, value_enum, default_value = "energy")]
    best: GoalWord,
    /// Policies slower than the fastest by more than this do not count: 10%, or 'any'
    #[arg(long, default_value = "10%", value_parser = slowdown)]
    max_slowdown: f64,
    /// Power source, for policies that ask
    #[arg(long, value_enum, default_value = "unknown")]
    power: PowerWord,
    /// Longest C-state exit latency to tolerate, in microseconds
    #[arg(long, value_name = "US")]
    latency_limit: Option<f64>,
    /// Share of recorded run time that does not scale with the clock (memory-bound), such as 20%
    #[arg(long, default_value = "0%", value_parser = share)]
    memory_bound: f64,
    /// Clock at which the recording was made, where it does not say
    #[arg(long, value_name = "KHZ")]
    recorded_khz: Option<u32>,
    /// With '-- COMMAND': use the bundled recording if this machine does not permit recording
    #[arg(long)]
    or_bundled: bool,
    /// Record this command first, then replay it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum GoalWord {
    /// Energy over the equal window: the machine stays on afterwards
    Energy,
    /// Energy over the run's own duration: it is switched off afterwards
    OwnEnergy,
    /// Energy times time
    Edp,
    /// Time
    Time,
}

#[derive(Clone, Copy, ValueEnum)]
enum PowerWord {
    Unknown,
    Mains,
    Battery,
}

/// A share, as `20%` or `0.2`.
fn share(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|v| v / 100.0),
        None => text.parse(),
    };
    match value {
        Ok(v) if (0.0..=1.0).contains(&v) => Ok(v),
        _ => Err("expected a share such as 20% or 0.2".into()),
    }
}

fn slowdown(text: &str) -> Result<f64, String> {
    if text == "any" {
        return Ok(f64::INFINITY);
    }
    let value = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match value {
        Ok(v) if v >= 0.0 && v.is_finite() => Ok(if text.ends_with('%') { v / 100.0 } else { v }),
        _ => Err("expected a share such as 3%, or 'any'".into()),
    }
}

pub(crate) fn run(args: &Args) -> Outcome {
    let names: Vec<&str> = if args.policy.is_empty() {
        DEFAULT_POLICIES.to_vec()
    } else {
        args.policy.iter().map(String::as_str).collect()
    };
    let policies: Vec<PolicySpec> =
        names.iter().map(|p| PolicySpec::parse(p)).collect::<Result<_, _>>().map_err(Failure::input)?;
    let machine = library::machine(&args.machine).map_err(Failure::input)?;
    // A report that cannot be written is better known before the work than after it.
    let report_file = match &args.report {
        None => None,
        Some(path) => Some(std::fs::File::create(path).map_err(|e| {
            Failure::input(format!("--report {}: {e}; expected a file that can be written", path.display()))
        })?),
    };
    let options =
        ImportOptions { memory_share: args.memory_bound, khz: args.recorded_khz, ..ImportOptions::default() };
    let (workload, work_code) = workload(args, &options)?;
    let rule = Rule {
        goal: match args.best {
            GoalWord::Energy => Goal::Energy,
            GoalWord::OwnEnergy => Goal::OwnEnergy,
            GoalWord::Edp => Goal::Edp,
            GoalWord::Time => Goal::Time,
        },
        max_slowdown: args.max_slowdown,
    };
    let job = ReplayJob {
        machine: &machine,
        workload: &workload,
        policies: &policies,
        source: match args.power {
            PowerWord::Unknown => PowerSource::Unknown,
            PowerWord::Mains => PowerSource::Mains,
            PowerWord::Battery => PowerSource::Battery,
        },
        latency_limit_ns: args.latency_limit.map_or(u64::MAX, |us| (us.max(0.0) * 1e3) as u64),
        detail: args.report.is_some(),
    };
    let progress = Progress::new(policies.len() * 2);
    let result = compare(&job, rule, &|n| progress.tell(n));
    progress.end();
    let (comparison, details) = result.map_err(Failure::work)?;
    if let (Some(mut file), Some(path)) = (report_file, &args.report) {
        use std::io::Write;
        let html = wattwise_report::compare_html(&comparison, &details, &command_line());
        file.write_all(html.as_bytes())
            .map_err(|e| Failure::work(format!("--report {}: {e}", path.display())))?;
        eprintln!("wattwise: report written to {}", path.display());
    }
    if args.json {
        print_json(&comparison)?;
    } else {
        print(&table::comparison(&comparison, std::io::stdout().is_terminal()))?;
    }
    Ok(work_code)
}

/// This very call, to be shown as the way to run it again.
fn command_line() -> String {
    let quote = |a: String| {
        let plain = !a.is_empty() && a.chars().all(|c| c.is_ascii_alphanumeric() || "-_=+:,./%".contains(c));
        if plain { a } else { format!("'{}'", a.replace('\'', "'\\''")) }
    };
    let rest: Vec<String> = std::env::args().skip(1).map(quote).collect();
    format!("wattwise {}", rest.join(" "))
}

/// The work, and the exit code of the command where one was recorded.
fn workload(args: &Args, options: &ImportOptions) -> Result<(Workload, u8), Failure> {
    if args.command.is_empty() {
        let name = args.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD);
        return Ok((library::workload(name, options).map_err(Failure::input)?, 0));
    }
    if let Some(w) = &args.workload {
        return Err(Failure::input(format!("WORKLOAD {w} and -- COMMAND: expected one of the two")));
    }
    let folder = tempfile::tempdir().map_err(Failure::work)?;
    let file = folder.path().join("recording.perf");
    let recorded = record::run(&record::RecordOptions::new(&file, args.command.clone()));
    match recorded {
        Ok(report) => {
            let name = args.command.join(" ");
            let mut workload =
                library::workload(&file.display().to_string(), options).map_err(Failure::work)?;
            workload.source = format!("recorded just now: {name}");
            workload.name = name;
            Ok((workload, if report.exit_code() == Some(0) { 0 } else { 1 }))
        }
        Err(e) if e.is_impossible() && args.or_bundled => {
            eprintln!("wattwise: {e}");
            eprintln!("wattwise: replaying the bundled recording '{DEFAULT_WORKLOAD}' instead, as asked");
            Ok((library::workload(DEFAULT_WORKLOAD, options).map_err(Failure::work)?, 0))
        }
        Err(e) if e.is_impossible() => {
            Err(Failure::impossible(format!("{e}; --or-bundled would replay a bundled recording instead")))
        }
        Err(e) => Err(Failure::work(e)),
    }
}

/// Progress on a terminal; nothing elsewhere.
struct Progress(Option<indicatif::ProgressBar>);

impl Progress {
    fn new(steps: usize) -> Progress {
        if !std::io::stderr().is_terminal() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_slowdowns() {
        assert_eq!(share("20%"), Ok(0.2));
        assert_eq!(share("0.2"), Ok(0.2));
        assert!(share("120%").is_err() && share("x").is_err());
        assert_eq!(slowdown("3%"), Ok(0.03));
        assert_eq!(slowdown("any"), Ok(f64::INFINITY));
        assert!(slowdown("-1%").is_err() && slowdown("nan").is_err());
    }

    #[test]
    fn default_policies_exist() {
        let unique: std::collections::BTreeSet<_> = DEFAULT_POLICIES.iter().collect();
        assert!(unique.len() >= 12);
        for p in DEFAULT_POLICIES {
            assert_eq!(PolicySpec::parse(p).unwrap().text, *p);
        }
    }
}
