//! One measured run, as a result file and for people.

use serde::{Deserialize, Serialize};
use std::fmt::Write;
use wattwise_figure::{Provenance, fixed, shell};
use wattwise_live::run::Measured;

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
            "{} s   user {} s   system {} s   ({} % of one CPU)",
            fixed(m.wall_s, 3),
            fixed(m.user_s, 3),
            fixed(m.system_s, 3),
            fixed(100.0 * m.cpu_s() / m.wall_s.max(1e-9), 0)
        ),
    );
    match (&o.energy, o.joules) {
        (Some(provenance), Some(joules)) => {
            let word = if matches!(provenance, Provenance::Measured { .. }) { "" } else { "≈ " };
            let mean = m.mean_w().unwrap_or(0.0);
            line("energy", format!("{word}{} J   mean {} W", fixed(joules, 3), fixed(mean, 2)));
            line("", provenance.to_string());
        }
        (Some(provenance), None) => line("energy", provenance.to_string()),
        (None, _) => {}
    }
    for (name, joules) in &o.domains {
        line(&format!("  {name}"), format!("{} J", fixed(*joules, 3)));
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
        line("asleep", format!("{} CPU-seconds{joint}{states}", fixed(asleep, 3)));
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
    // Linux counts in what the process had before it became the command: that is wattwise's own.
    let at_most = if own_peak_kib().is_some_and(|own| m.peak_memory_kib <= own) { "at most " } else { "" };
    line("peak memory", format!("{at_most}{} KiB", m.peak_memory_kib));
    for reason in &o.disturbed {
        line("disturbed", reason.clone());
    }
    out
}
/// The most memory that this process has had.
fn own_peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
