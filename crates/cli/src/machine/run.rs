//! `run`: one measured run of a command, under settings that are held meanwhile.

use crate::args::output;
use crate::args::output::{OutputPath, written};
use crate::args::root as hardware;
use crate::args::settings::ArmArgs;
use crate::exit::{Failure, Outcome, print_json};
use crate::machine::step_back::step_back;
use crate::model::machine;
use crate::show::screen::{detail, say, tell};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use wattwise_control::hold::hold;
use wattwise_control::powerctl::Profile;
use wattwise_figure::Provenance;
use wattwise_figure::shell;
use wattwise_live::run::child::{Job, Signals};
use wattwise_live::run::observe::Observer;
use wattwise_live::run::{Measured, measure};

#[derive(clap::Args)]
#[command(
    after_help = "The figures go to standard error (or to --output), so that the command's own output stays whole;\n\
    the exit status is the command's."
)]
pub(crate) struct Args {
    /// Hold meanwhile: a governor, settings (governor=powersave,max=60%), or the file of a policy (of 'tune') or a profile
    #[arg(long, short, value_name = "POLICY")]
    policy: Option<String>,
    /// Run its threads at a T-state, speed or preference of their own, by the powerctl module (kernel/powerctl):
    /// tstate=8,khz=1200000,epp=192
    #[arg(long, value_name = "PROFILE")]
    thread_profile: Option<String>,
    /// Where nothing meters energy, the machine model whose watts stand in; 'this' is the machine itself, as calibrated, else
    /// estimated
    #[arg(long, value_name = "MACHINE", default_value = machine::THIS)]
    watts_of: String,
    /// Write the figures to a file, as JSON (schema wattwise.run/1)
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
    /// Print the figures as JSON on standard output, after what the command prints
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

/// The result file.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunResult {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// As asked; none is the machine as it was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) policy: Option<String>,
    #[serde(flatten)]
    pub(crate) measured: Measured,
    /// Mean power of the machine over its window, W.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) mean_w: Option<f64>,
}

/// Schema of the result file.
pub(crate) const SCHEMA: &str = "wattwise.run/1";

pub(crate) fn run(args: &Args) -> Outcome {
    let running = args.root.open_running("run")?;
    let root = &running.root;
    let prices = machine::prices(&args.watts_of, &**root)?;
    let wishes = ArmArgs { root: &**root }.wishes(args.policy.as_deref().unwrap_or("current"))?;
    let profile = args.thread_profile.as_deref().map(str::parse::<Profile>).transpose();
    let profile = profile.map_err(|e| Failure::input(format!("--thread-profile {e}")))?;
    let file = output::open("--output", args.output.as_ref())?;
    let signals = Signals::catch().map_err(Failure::work)?;
    let mut observer = Observer::open(&**root, prices.as_ref());
    detail!("machine: {}; energy {}", root.describe(), observer.energy_comes_from());
    // A daemon that follows the mains would change what is measured.
    let changes = !wishes.settings.is_empty() || wishes.cores.is_some();
    let _paused = if changes { step_back(&**root, "wattwise run")? } else { None };
    let mut held =
        hold(&**root, &args.root.journal()?, &crate::args::command_line(), &wishes, &|| signals.reason())?;
    let job = Job { command: args.command.clone(), profile, ..Job::default() };
    let (measured, ended) = measure(&mut observer, &job, &signals)
        .map_err(|e| Failure { code: e.code(), message: e.to_string() })?;
    if ended.speeds_withdrawn {
        say!(
            "--thread-profile: a cpufreq governor or driver took the speeds meanwhile: the profile's was not in force all the time"
        );
    }
    let mut altered = false;
    if let Some(held) = &mut held {
        let restored = held.undo();
        altered = !restored.failed.is_empty();
        if altered || !restored.foreign.is_empty() {
            say!("{restored}");
        }
    }
    let report = RunResult {
        schema: SCHEMA.to_owned(),
        command: args.command.clone(),
        policy: args.policy.clone(),
        mean_w: measured.mean_w(),
        measured,
    };
    if let Some(mut file) = file {
        let text = serde_json::to_writer_pretty(&mut file.out, &report).map_err(std::io::Error::from);
        written(&file.name, text.and_then(|()| file.out.finish()))?;
    }
    if args.json {
        print_json(&report)?;
    } else if args.output.is_none() {
        tell(&text(&report));
    }
    // A machine left altered is a failure, whatever the command said.
    Ok(if altered { 1 } else { report.measured.exit_code })
}

/// For people.
pub(crate) fn text(report: &RunResult) -> String {
    let m = &report.measured;
    let o = &m.machine;
    let mut out = format!("\n{}", shell::line(&report.command));
    if let Some(policy) = &report.policy {
        _ = write!(out, "   under {policy}");
    }
    out.push('\n');
    let mut line = |name: &str, value: String| _ = writeln!(out, "  {name:<18}{value}");
    if let Some(failure) = &m.failure {
        line("end", failure.clone());
    }
    line(
        "time",
        format!(
            "{:.3} s   user {:.3} s   system {:.3} s   ({:.0} % of one CPU)",
            m.wall_s,
            m.user_s,
            m.system_s,
            100.0 * m.cpu_s() / m.wall_s.max(1e-9)
        ),
    );
    match (&o.energy, o.joules) {
        (Some(provenance), Some(joules)) => {
            let word = if matches!(provenance, Provenance::Measured { .. }) { "" } else { "≈ " };
            let mean = m.mean_w().unwrap_or(0.0);
            line("energy", format!("{word}{joules:.3} J   mean {mean:.2} W"));
            line("", provenance.to_string());
        }
        (Some(provenance), None) => line("energy", provenance.to_string()),
        (None, _) => {}
    }
    for (name, joules) in &o.domains {
        line(&format!("  {name}"), format!("{joules:.3} J"));
    }
    let shares = |parts: &[(String, f64)]| {
        let all: f64 = parts.iter().map(|p| p.1).sum();
        let word = |(name, s): &(String, f64)| format!("{name} {:.1} %", 100.0 * s / all.max(1e-9));
        parts.iter().filter(|p| p.1 > 0.0).map(word).collect::<Vec<_>>().join("   ")
    };
    if o.wakeups.is_some() {
        let asleep: f64 = o.idle.iter().map(|i| i.1).sum();
        let states = shares(&o.idle);
        let joint = if states.is_empty() { "" } else { ": " };
        line("asleep", format!("{asleep:.3} CPU-seconds{joint}{states}"));
    } else {
        line("asleep", "unavailable: the kernel counts no time in C-states here".to_owned());
    }
    let speeds: Vec<(String, f64)> =
        o.speeds.iter().map(|(khz, s)| (format!("{:.2} GHz", *khz as f64 / 1e6), *s)).collect();
    match speeds.iter().any(|(_, s)| *s > 0.0) {
        true => line("speeds", shares(&speeds)),
        false => line("speeds", "unavailable: the kernel keeps no time in each speed here".to_owned()),
    }
    line(
        "context switches",
        format!(
            "{} voluntary, {} involuntary{}",
            m.voluntary_switches,
            m.involuntary_switches,
            o.context_switches.map_or(String::new(), |n| format!("; the whole machine {n}"))
        ),
    );
    match o.wakeups {
        Some(n) => line("wake-ups of CPUs", format!("{n}")),
        None => line("wake-ups of CPUs", "unavailable: the kernel counts none here".to_owned()),
    }
    if let Some((start, end)) = o.celsius {
        line("temperature", format!("{start:.1} °C before, {end:.1} °C after"));
    }
    line("peak memory", format!("{} KiB", m.peak_memory_kib));
    for reason in &o.disturbed {
        line("disturbed", reason.clone());
    }
    out
}
