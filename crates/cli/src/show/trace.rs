//! A recording on one screen: whose work it is, how busy the CPUs were, which programs ran, and what to do next.

use crate::show::table::wrapped_after;
use serde::{Deserialize, Serialize};
use wattwise_figure::{fixed, shell};
use wattwise_model::workload::{ClockOrigin, ForegroundOrigin, Recorded, Strangers, Workload};
use wattwise_trace::{Summary, time};

/// What of a recording is the work, and how its clock is known.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Work {
    /// Whose work it is, in words.
    pub(crate) foreground: String,
    /// Tasks of it that ran.
    pub(crate) foreground_tasks: usize,
    /// Share of the busy time that other programs had.
    pub(crate) strangers_share: f64,
    /// The program with the most of it.
    pub(crate) greatest_stranger: Option<String>,
    /// The clock, in words.
    pub(crate) clock: String,
}

impl Work {
    pub(crate) fn new(w: &Workload) -> Work {
        let (mut foreground, mut clock) = (String::new(), String::new());
        let mut strangers = Strangers::default();
        if let Some(r) = &w.recorded {
            foreground = match &r.foreground {
                ForegroundOrigin::Command { name } => format!("the command {name}"),
                ForegroundOrigin::Replayed => "as the replay had it that was written down".to_owned(),
                ForegroundOrigin::Named(names) => format!("as named: {names}"),
                ForegroundOrigin::Unmarked => "all programs (no command is marked)".into(),
            };
            clock = clock_in_words(r);
            strangers = r.strangers.clone();
        }
        Work {
            foreground,
            foreground_tasks: w.tasks.iter().filter(|t| t.is_foreground()).count(),
            strangers_share: strangers.share(),
            greatest_stranger: strangers.greatest.map(|(name, _)| name),
            clock,
        }
    }

    pub(crate) fn lines(&self) -> String {
        let most =
            self.greatest_stranger.as_ref().map_or_else(String::new, |name| format!(", most of it {name}"));
        format!(
            "foreground  {}, {} tasks; other programs had {} % of the CPU time{most}\nclock       {}\n",
            self.foreground,
            self.foreground_tasks,
            fixed(self.strangers_share * 100.0, 1),
            self.clock,
        )
    }
}

fn clock_in_words(r: &Recorded) -> String {
    let ghz = |khz: u32| format!("{:.3} GHz", f64::from(khz) * 1e-6);
    match r.clock {
        ClockOrigin::Stated => format!("{}, as stated", ghz(r.khz)),
        ClockOrigin::Measured => format!("{}, measured", ghz(r.khz)),
        ClockOrigin::Events => "by cpu_frequency events".into(),
        ClockOrigin::Described { base_khz, top_khz } if base_khz == top_khz => {
            format!("{}, by the processor's name", ghz(base_khz))
        }
        ClockOrigin::Described { base_khz, top_khz } => {
            format!("{} to {}, by the processor's name", ghz(base_khz), ghz(top_khz))
        }
        ClockOrigin::Unknown => "not known: give --recorded-khz".into(),
    }
}

/// CPUs that are named one by one; of more, the least and the most busy.
const CPUS: usize = 8;
/// Warnings that are shown.
const WARNINGS: usize = 2;

/// One line of facts, wrapped below its own beginning.
fn fact(out: &mut String, name: &str, text: &str) {
    *out += &wrapped_after(&format!("{name:<11} "), text, &" ".repeat(12));
    out.push('\n');
}

pub(crate) fn text(summary: &Summary, work: &Work) -> String {
    let mut out = String::new();
    let processor = summary.cpu_name.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
    let heading = format!(
        "{}: {} of {} on {} CPUs{processor}",
        summary.name,
        summary.format,
        time(summary.span_s),
        summary.cpus.len()
    );
    out += &wrapped_after("", &heading, "  ");
    out.push('\n');
    let named = work.greatest_stranger.as_ref().filter(|_| work.strangers_share >= 0.001);
    let most = named.map_or_else(String::new, |name| format!(", most of it {name}"));
    let strangers = fixed(work.strangers_share * 100.0, 1);
    let others = format!("other programs had {strangers} % of the CPU time{most}");
    fact(&mut out, "work", &format!("{}, {} tasks; {others}", work.foreground, work.foreground_tasks));
    fact(&mut out, "clock", &work.clock);
    fact(&mut out, "busy", &busy(summary));
    let wakeups = match summary.wakeups_per_s {
        0.0 => "not recorded (sched_waking)".to_owned(),
        rate => format!("{} a second", fixed(rate, 0)),
    };
    fact(&mut out, "wake-ups", &wakeups);
    for (name, lengths) in [("runs", &summary.runs), ("sleeps", &summary.sleeps)] {
        let (half, most) = (time(lengths.p50_s), time(lengths.p99_s));
        fact(&mut out, name, &format!("{}: median {half}, 99th percentile {most}", lengths.count));
    }
    fact(&mut out, "programs", &programs(summary));
    let lost = if summary.lost > 0 { format!("; {} were lost", summary.lost) } else { String::new() };
    fact(&mut out, "events", &format!("{}{lost}", summary.events));
    if !summary.lacks.is_empty() {
        fact(&mut out, "not told", &wattwise_trace::lacks::list(&summary.lacks));
    }
    for warning in summary.warnings.iter().take(WARNINGS) {
        fact(&mut out, "warning", warning);
    }
    let more = summary.warnings.len().saturating_sub(WARNINGS);
    let more = if more > 0 { format!(" and {more} more warnings") } else { String::new() };
    let next = format!(
        "Each CPU, distributions, tasks{more}: --all\nUnder other policies: wattwise compare {}\n",
        shell::file(&summary.name)
    );
    out + &next
}

/// The share of the CPU time with a task: of all, and of each CPU or of the extremes.
fn busy(summary: &Summary) -> String {
    let share = |s: f64| format!("{} %", fixed(s * 100.0, 1));
    let all = summary.cpus.iter().map(|c| c.busy_share).sum::<f64>() / summary.cpus.len().max(1) as f64;
    let mut each: Vec<(usize, f64)> = summary.cpus.iter().map(|c| c.busy_share).enumerate().collect();
    if each.len() > CPUS {
        each.sort_by(|a, b| a.1.total_cmp(&b.1));
        each = [each.first(), each.last()].into_iter().flatten().copied().collect();
    }
    let each: Vec<String> = each.iter().map(|(n, s)| format!("CPU {n} {}", share(*s))).collect();
    let word = if summary.cpus.len() > CPUS { "from " } else { "" };
    let joint = if summary.cpus.len() > CPUS { " to " } else { ", " };
    format!("{} of the CPU time: {word}{}", share(all), each.join(joint))
}

fn programs(summary: &Summary) -> String {
    let program = |p: &wattwise_trace::ProgramSummary| {
        let tasks = if p.tasks > 1 { format!(" ({} tasks)", p.tasks) } else { String::new() };
        format!("{} {}{tasks}", p.name, time(p.busy_s))
    };
    summary.programs.iter().map(program).collect::<Vec<_>>().join(", ")
}
