//! What a recording holds, in a page.

use crate::clock::TraceClock;
use crate::events::{Comm, Comms, Event, EventKind, Left, Sink};
use crate::lacks::{self, Lack};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use wattwise_figure::Histogram;

/// Tasks listed at most.
const TOP: usize = 15;
/// Programs listed at most.
const PROGRAMS: usize = 8;

/// What a recording holds. Times in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The recording.
    pub name: String,
    /// Its format in words.
    pub format: String,
    /// The processor's name, where the recording has it.
    pub cpu_name: Option<String>,
    /// From the first event to the last, without the time that was taken out.
    pub span_s: f64,
    /// Of the time taken out, that in which the machine was suspended.
    pub suspended_s: f64,
    /// All events, other tracepoints included.
    pub events: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// Events by kind.
    pub by_kind: BTreeMap<String, u64>,
    /// Each CPU.
    pub cpus: Vec<CpuSummary>,
    /// Wake-ups a second (sched_waking, or sched_wakeup where that is missing).
    pub wakeups_per_s: f64,
    /// Tasks seen.
    pub tasks: u64,
    /// Lengths of runs, from switch-in to switch-out.
    pub runs: Lengths,
    /// Lengths of sleeps, from switch-out to waking.
    pub sleeps: Lengths,
    /// The tasks with the most CPU time, most first.
    pub top: Vec<TaskSummary>,
    /// The programs with the most CPU time, most first: tasks of one name up to a `/` or `:`.
    #[serde(default)]
    pub programs: Vec<ProgramSummary>,
    /// What the format cannot tell, of whatever was recorded.
    pub lacks: Vec<Lack>,
    /// What could not be used, a sentence each.
    pub warnings: Vec<String>,
}

/// One CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuSummary {
    /// Time with a task.
    pub busy_s: f64,
    /// The same as a share of the span.
    pub busy_share: f64,
    /// Entries into idle states: state number and times.
    #[serde(deserialize_with = "by_number")]
    pub idle_entries: BTreeMap<u32, u64>,
}

/// JSON's keys are texts, also where they are numbers; a flattened table is read without knowing which.
fn by_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u32, u64>, D::Error> {
    let entries = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let number = |text: &str| text.parse().map_err(|_| format!("idle state '{text}': expected its number"));
    let read: Result<_, String> = entries.iter().map(|(state, n)| Ok((number(state)?, *n))).collect();
    read.map_err(serde::de::Error::custom)
}

/// A distribution of times.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lengths {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Longest.
    pub max_s: f64,
    /// `(upper bound in s, count)` of each decade in use.
    pub decades: Vec<(f64, u64)>,
}

impl From<&Histogram> for Lengths {
    fn from(h: &Histogram) -> Lengths {
        let mut decades: BTreeMap<u32, u64> = BTreeMap::new();
        for (least, n) in h.iter() {
            *decades.entry(least.max(1).ilog10() + 1).or_default() += n;
        }
        let s = |ns: u64| ns as f64 / 1e9;
        Lengths {
            count: h.count(),
            p50_s: s(h.quantile(0.5)),
            p99_s: s(h.quantile(0.99)),
            max_s: s(h.max()),
            decades: decades.into_iter().map(|(d, n)| (10f64.powi(d as i32 - 9), n)).collect(),
        }
    }
}

/// One task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSummary {
    /// Its name.
    pub name: String,
    /// Its thread id.
    pub tid: u32,
    /// Time on CPUs.
    pub busy_s: f64,
    /// Times that it was switched to.
    pub runs: u64,
}

/// The tasks of one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramSummary {
    /// Their name, up to a `/` or `:`.
    pub name: String,
    /// How many they are.
    pub tasks: u64,
    /// Time on CPUs, of all together.
    pub busy_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct TaskSeen {
    comm: Comm,
    busy: u64,
    runs: u64,
    asleep: Option<u64>,
    seen: bool,
    /// Woken and not yet seen to run: for switches from idle that are missing.
    woken: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct CpuSeen {
    /// Thread id and since when; 0 is idle.
    current: Option<(u32, u64)>,
    busy: u64,
    idle: BTreeMap<u32, u64>,
}

/// Adds events up.
#[derive(Debug, Default)]
pub(super) struct SummaryCounter {
    clock: TraceClock,
    /// When the recording last lost events.
    lost_at: Option<u64>,
    kinds: BTreeMap<&'static str, u64>,
    cpus: Vec<CpuSeen>,
    tasks: BTreeMap<u32, TaskSeen>,
    runs: Histogram,
    sleeps: Histogram,
}

/// Longer times are damage, and beyond the histogram's last octave but one.
const LONGEST: u64 = 1 << 62;

/// Idle states beyond this number are damage; drivers have ten at most.
const MOST_STATES: u32 = 64;

impl SummaryCounter {
    pub(super) fn switches(&self) -> u64 {
        self.kinds.get("sched_switch").copied().unwrap_or(0)
    }

    fn ran(&mut self, cpu: usize, until: u64) -> Option<u32> {
        let (tid, since) = self.cpus[cpu].current?;
        let ns = until.saturating_sub(since);
        if tid != 0 {
            self.cpus[cpu].busy = self.cpus[cpu].busy.saturating_add(ns);
            self.runs.record(ns.min(LONGEST));
            let task = self.tasks.entry(tid).or_default();
            task.busy = task.busy.saturating_add(ns);
            task.runs += 1;
        }
        Some(tid)
    }

    /// Brings a CPU's books in line with who is current, as the lifter does (see there, "Gaps").
    fn present(&mut self, cpu: usize, tid: u32, at: u64, start: u64) {
        let task = self.tasks.entry(tid).or_default();
        let (woken, seen) = (task.woken.take(), task.seen);
        let since = match self.cpus[cpu].current {
            Some((current, _)) if current == tid => return,
            None => woken.unwrap_or(if seen { at } else { start }),
            // Idle follows at an unknown moment.
            Some(_) if tid == 0 => at,
            Some((known, began)) if known != 0 && self.lost_at.is_some_and(|lost| lost >= began) => at,
            Some((_, began)) => woken.unwrap_or(at).max(began),
        };
        self.cpus[cpu].current = Some((tid, since));
        let task = self.tasks.entry(tid).or_default();
        task.seen = true;
        // However it was woken: its sleep has no recorded end.
        task.asleep = None;
    }

    fn woken(&mut self, tid: u32, at: u64) {
        let task = self.tasks.entry(tid).or_default();
        if !task.seen {
            task.seen = true;
            task.woken = Some(at);
        }
        if let Some(since) = task.asleep.take() {
            task.woken = Some(at);
            self.sleeps.record(at.saturating_sub(since).min(LONGEST));
        }
    }

    pub(super) fn finish(mut self, comms: &Comms, read: crate::events::TraceRead, name: &str) -> Summary {
        for cpu in 0..self.cpus.len() {
            self.ran(cpu, self.clock.now());
        }
        let span = self.clock.now() - self.clock.start();
        let span_s = span as f64 / 1e9;
        let mut cpus: Vec<CpuSummary> = self
            .cpus
            .into_iter()
            .map(|c| CpuSummary {
                busy_s: c.busy as f64 / 1e9,
                busy_share: c.busy as f64 / span.max(1) as f64,
                idle_entries: c.idle,
            })
            .collect();
        cpus.resize_with(cpus.len().max(usize::from(read.cpus.unwrap_or(0))), CpuSummary::default);
        let kind = |k| self.kinds.get(k).copied().unwrap_or(0);
        let wakeups = match kind("sched_waking") {
            0 => kind("sched_wakeup"),
            n => n,
        };
        let tasks = self.tasks.iter().filter(|(tid, _)| **tid != 0);
        let mut top: Vec<(u32, TaskSeen)> = tasks.map(|(tid, seen)| (*tid, *seen)).collect();
        let tasks = top.len() as u64;
        let programs = programs(&top, comms);
        top.sort_by_key(|(tid, seen)| (std::cmp::Reverse(seen.busy), *tid));
        top.truncate(TOP);
        Summary {
            name: wattwise_figure::one_line(name),
            format: read.format.to_owned(),
            cpu_name: read.cpu_name.as_deref().map(wattwise_figure::one_line),
            span_s,
            suspended_s: read.suspended_ns as f64 / 1e9,
            events: read.events,
            lost: read.lost,
            by_kind: self.kinds.into_iter().map(|(k, n)| (k.to_owned(), n)).collect(),
            cpus,
            wakeups_per_s: if span > 0 { wakeups as f64 / span_s } else { 0.0 },
            tasks,
            runs: Lengths::from(&self.runs),
            sleeps: Lengths::from(&self.sleeps),
            top: top
                .into_iter()
                .map(|(tid, seen)| TaskSummary {
                    name: comms.name(seen.comm).to_owned(),
                    tid,
                    busy_s: seen.busy as f64 / 1e9,
                    runs: seen.runs,
                })
                .collect(),
            programs,
            lacks: read.lacks,
            warnings: read.warnings.into_iter().chain(self.clock.warnings()).collect(),
        }
    }
}

/// The programs that were longest on the CPUs.
fn programs(tasks: &[(u32, TaskSeen)], comms: &Comms) -> Vec<ProgramSummary> {
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (_, seen) in tasks {
        let name = comms.name(seen.comm);
        let name = name.split(['/', ':']).next().unwrap_or(name);
        let (count, busy) = by_name.entry(name).or_default();
        *count += 1;
        *busy = busy.saturating_add(seen.busy);
    }
    let mut programs: Vec<_> = by_name.into_iter().filter(|(_, (_, busy))| *busy > 0).collect();
    programs.sort_by_key(|(name, (_, busy))| (std::cmp::Reverse(*busy), *name));
    programs.truncate(PROGRAMS);
    let summary = |(name, (tasks, busy)): (&str, (u64, u64))| ProgramSummary {
        name: name.to_owned(),
        tasks,
        busy_s: busy as f64 / 1e9,
    };
    programs.into_iter().map(summary).collect()
}

impl Sink for SummaryCounter {
    fn event(&mut self, event: &Event, _: &Comms) {
        if event.kind.is_side() {
            return;
        }
        let Some(at) = self.clock.admit(event.time_ns) else { return };
        let start = self.clock.start();
        *self.kinds.entry(event.kind.name()).or_default() += 1;
        let cpu = match event.kind {
            EventKind::CpuIdle { cpu, .. } => cpu,
            _ => event.cpu,
        };
        let cpu = usize::from(cpu);
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, CpuSeen::default);
        }
        match event.kind {
            EventKind::Switch(s) => {
                self.present(cpu, s.prev_tid, at, start);
                self.ran(cpu, at);
                self.cpus[cpu].current = Some((s.next_tid, at));
                let prev = self.tasks.entry(s.prev_tid).or_default();
                prev.comm = s.prev_comm;
                prev.woken = None;
                prev.asleep = (s.left != Left::Runnable && s.left != Left::Dead).then_some(at);
                if s.left == Left::Runnable {
                    prev.woken = Some(at);
                }
                let next = self.tasks.entry(s.next_tid).or_default();
                next.seen = true;
                next.comm = s.next_comm;
                next.asleep = None;
                next.woken = None;
            }
            EventKind::Waking(t) => {
                self.present(cpu, event.current, at, start);
                self.woken(t.tid, at);
            }
            EventKind::WakeupNew(t) => {
                self.present(cpu, event.current, at, start);
                self.tasks.entry(t.tid).or_default().woken = Some(at);
            }
            EventKind::Wakeup(t) => self.woken(t.tid, at),
            EventKind::Lost(_) => self.lost_at = Some(at),
            EventKind::HrtimerStart { .. } => self.present(cpu, event.current, at, start),
            EventKind::CpuIdle { state: Some(state), .. } if state < MOST_STATES => {
                *self.cpus[cpu].idle.entry(state).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// A time in words, with a fitting unit.
pub fn time(s: f64) -> String {
    match s {
        _ if s < 1e-3 => format!("{:.1} us", s * 1e6),
        _ if s < 1.0 => format!("{:.1} ms", s * 1e3),
        _ => format!("{s:.2} s"),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.format)?;
        if let Some(cpu) = &self.cpu_name {
            writeln!(f, "processor   {cpu}")?;
        }
        writeln!(f, "span        {:.3} s, {} CPUs, {} tasks", self.span_s, self.cpus.len(), self.tasks)?;
        writeln!(f, "events      {}, {} lost", self.events, self.lost)?;
        for (kind, n) in &self.by_kind {
            writeln!(f, "  {kind:<20} {n:>12}")?;
        }
        match self.wakeups_per_s {
            // A busy machine without wake-ups is a recording without their events.
            0.0 => writeln!(f, "wake-ups    not recorded (sched_waking)")?,
            rate => writeln!(f, "wake-ups    {rate:.1} /s")?,
        }
        for (n, cpu) in self.cpus.iter().enumerate() {
            write!(f, "CPU {n:<4}    {:>5.1} % busy ({})", cpu.busy_share * 100.0, time(cpu.busy_s))?;
            let entries = cpu.idle_entries.iter().map(|(state, n)| format!("{state}: {n}"));
            let entries = entries.collect::<Vec<_>>().join(", ");
            writeln!(f, "{}{entries}", if entries.is_empty() { "" } else { ", idle entries " })?;
        }
        for (what, l) in [("runs", &self.runs), ("sleeps", &self.sleeps)] {
            writeln!(
                f,
                "{what:<11} {}, half up to {}, 99 % up to {}, longest {}",
                l.count,
                time(l.p50_s),
                time(l.p99_s),
                time(l.max_s)
            )?;
            for (below, n) in &l.decades {
                let bar = "#".repeat((40 * n).div_ceil(l.count.max(1)) as usize);
                writeln!(f, "  under {:<10} {n:>12} {bar}", time(*below))?;
            }
        }
        writeln!(f, "top tasks")?;
        for t in &self.top {
            writeln!(f, "  {:<16} {:>8} {:>12} {:>10} runs", t.name, t.tid, time(t.busy_s), t.runs)?;
        }
        if !self.lacks.is_empty() {
            writeln!(f, "not told    {}", lacks::list(&self.lacks))?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}
