//! The model's placement `linux` against a stock kernel's: at every wake-up of a recording, where did the kernel put the
//! task, and where would the rule?
//!
//! ```text
//! sched_waking   pid, the CPU of its last run   --> the rule is asked, with the CPUs as the events so far leave them
//! sched_wakeup   pid, the CPU that was chosen   --> compared, and that is where the task is from the waking on
//! ```
//!
//! The state is the recording's own after each decision, so that one miss is no reason for the next. What cannot be
//! seen is guessed: a wake-up by a user's task in its own time is taken as synchronous (the loads talk through pipes),
//! unless that task is exiting; all others are not. Tasks that may not run everywhere, of the real-time classes, and
//! those that had not left their CPU yet when they were woken (the kernel does not place these) are left out.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use wattwise_model::machine::Cpu;
use wattwise_sim::placement::CpuSet;
use wattwise_sim::placement::linux::{
    ChoiceRule, Chooser, CpusSeen, EndedTask, Queues, SchedTopology, Wakeup,
};

/// CPUs of the guests.
const CPUS: usize = 4;
/// Of the wake-ups of each load so many must be where the rule has them, in %.
const LEAST_AGREEMENT: f64 = 90.0;

/// One socket of two cores with two threads.
pub(crate) fn judge_threads(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    judge(returned, &[(0, 0), (0, 0), (1, 0), (1, 0)])
}

/// Two sockets of two cores.
pub(crate) fn judge_sockets(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    judge(returned, &[(0, 0), (1, 0), (2, 1), (3, 1)])
}

/// One socket of four cores.
pub(crate) fn judge_cores(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    judge(returned, &[(0, 0), (1, 0), (2, 0), (3, 0)])
}

/// What a line of the trace says.
#[derive(Debug, PartialEq)]
enum LineKind {
    /// From `prev` to `next`; whether `prev` could go on.
    Switch {
        prev: u32,
        runnable: bool,
        next: u32,
    },
    /// In the waker's own time, no interrupt's.
    Waking {
        pid: u32,
        prio: i32,
        prev: usize,
        by_task: bool,
    },
    Wakeup {
        pid: u32,
        cpu: usize,
    },
    New {
        pid: u32,
        cpu: usize,
    },
    Moves {
        pid: u32,
        to: usize,
    },
    Exits {
        pid: u32,
    },
}

/// A line of the trace.
#[derive(Debug, PartialEq)]
struct TraceLine {
    at: u64,
    cpu: usize,
    what: LineKind,
}

/// `key=value`, the last one: a name may hold anything.
fn last<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let at = text.rfind(key)? + key.len();
    text[at..].split_whitespace().next()?.parse().ok()
}

fn line(text: &str) -> Option<TraceLine> {
    // `comm-PID [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: ARGUMENTS`, where a comm may hold brackets.
    let (head, rest) = [
        "sched_switch: ",
        "sched_waking: ",
        "sched_wakeup: ",
        "sched_wakeup_new: ",
        "sched_migrate_task: ",
        "sched_process_exit: ",
    ]
    .iter()
    .find_map(|event| {
        let at = text.find(&format!(": {event}"))?;
        Some((&text[..at], &text[at + 2..]))
    })?;
    let mut words = head.rsplit(' ');
    let (seconds, micros) = words.next()?.split_once('.')?;
    let flags = words.find(|w| !w.is_empty())?;
    let cpu = words.find(|w| !w.is_empty())?.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
    let at = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (event, args) = rest.split_once(": ")?;
    let pid = || last(args, " pid=");
    let what = match event {
        "sched_switch" => {
            let (from, to) = args.split_once(" ==> ")?;
            let runnable = last::<String>(from, "prev_state=")?.starts_with('R');
            LineKind::Switch { prev: last(from, "prev_pid=")?, runnable, next: last(to, "next_pid=")? }
        }
        "sched_waking" => {
            let by_task = !matches!(flags.as_bytes().get(2), Some(b'h' | b'H' | b's' | b'z' | b'Z'));
            LineKind::Waking {
                pid: pid()?,
                prio: last(args, " prio=")?,
                prev: last(args, "target_cpu=")?,
                by_task,
            }
        }
        "sched_wakeup" => LineKind::Wakeup { pid: pid()?, cpu: last(args, "target_cpu=")? },
        "sched_wakeup_new" => LineKind::New { pid: pid()?, cpu: last(args, "target_cpu=")? },
        "sched_migrate_task" => LineKind::Moves { pid: pid()?, to: last(args, "dest_cpu=")? },
        _ => LineKind::Exits { pid: pid()? },
    };
    Some(TraceLine { at: at * 1000, cpu, what })
}

/// What is known of a task.
#[derive(Clone, Copy, Default)]
struct PlacedTask {
    /// Its number for the rules.
    number: u32,
    /// It has left its CPU to sleep.
    sleeps: bool,
    /// Where it runs or waits, while it does.
    on: Option<usize>,
    exiting: bool,
    ran_ns: u64,
}

/// The guest as the events leave it.
struct Guest {
    chooser: Chooser,
    tasks: HashMap<u32, PlacedTask>,
    current: [u32; CPUS],
    since: [u64; CPUS],
    busy_ns: [u64; CPUS],
    /// Of that, what ended tasks ran; and the last of them, if nothing ran there since.
    ended_ns: [u64; CPUS],
    ended_last: [Option<EndedTask>; CPUS],
    now: u64,
}

/// How often something was as the kernel had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PlacementScore {
    all: u64,
    ours: u64,
    previous: u64,
}

/// What became of a recording's wake-ups.
#[derive(Default)]
struct Scores {
    wakeups: PlacementScore,
    forks: PlacementScore,
    /// Misses by our rule and by what the kernel chose.
    misses: BTreeMap<(ChoiceRule, &'static str), u64>,
}

impl Queues for Guest {
    fn runnable(&self, cpu: usize) -> usize {
        self.tasks.values().filter(|t| t.on == Some(cpu)).count()
    }
    fn load(&self, cpu: usize) -> u64 {
        self.runnable(cpu) as u64 * 1024
    }
    fn busy_ns(&self, cpu: usize) -> u64 {
        let running = if self.current[cpu] == 0 { 0 } else { self.now - self.since[cpu] };
        self.busy_ns[cpu] + running
    }
    fn ended_ns(&self, cpu: usize) -> u64 {
        self.ended_ns[cpu]
    }
    fn ended_last(&self, cpu: usize) -> Option<EndedTask> {
        self.ended_last[cpu]
    }
}

impl Guest {
    fn new(topology: SchedTopology, now: u64) -> Guest {
        Guest {
            chooser: Chooser::new(topology),
            tasks: HashMap::new(),
            current: [0; CPUS],
            since: [now; CPUS],
            busy_ns: [0; CPUS],
            ended_ns: [0; CPUS],
            ended_last: [None; CPUS],
            now,
        }
    }

    fn task(&mut self, pid: u32) -> &mut PlacedTask {
        let number = self.tasks.len() as u32;
        self.tasks.entry(pid).or_insert_with(|| {
            self.chooser.add_task();
            PlacedTask { number, ..PlacedTask::default() }
        })
    }

    fn is_idle(&self, cpu: usize) -> bool {
        self.current[cpu] == 0 && self.runnable(cpu) == 0
    }

    /// Asks the rules with the CPUs as they are.
    fn ask<R>(&mut self, ask: impl FnOnce(&mut Chooser, &CpusSeen<'_>) -> R) -> R {
        let mut chooser = std::mem::replace(&mut self.chooser, Chooser::new(SchedTopology::new(&[], false)));
        let idle = CpuSet::of(CPUS, |c| self.is_idle(c));
        let idle_cores = CpuSet::of(CPUS, |c| chooser.topology().core(c).iter().all(|s| idle.contains(s)));
        let allowed = CpuSet::of(CPUS, |_| true);
        let answer = ask(
            &mut chooser,
            &CpusSeen { idle: &idle, idle_cores: &idle_cores, allowed: &allowed, queues: self },
        );
        self.chooser = chooser;
        answer
    }

    fn switch(&mut self, cpu: usize, prev: u32, runnable: bool, next: u32) {
        let ran = self.now - std::mem::replace(&mut self.since[cpu], self.now);
        if prev != 0 {
            self.busy_ns[cpu] += ran;
            let task = self.task(prev);
            task.ran_ns += ran;
            // One that was woken between its block and this switch goes on waiting where it was put.
            if !runnable && task.on == Some(cpu) {
                task.on = None;
                task.sleeps = true;
            }
            let ended = task.exiting && !runnable;
            let ran_ns = task.ran_ns;
            self.ended_last[cpu] = ended.then_some(EndedTask { at: self.now, ran_ns });
            self.ended_ns[cpu] += if ended { ran_ns } else { 0 };
        }
        self.current[cpu] = next;
        if next != 0 {
            let task = self.task(next);
            (task.on, task.sleeps) = (Some(cpu), false);
        } else if self.chooser.topology().core(cpu).iter().all(|s| self.is_idle(s)) {
            self.chooser.core_idles(cpu);
        }
    }

    /// The rules' answer to a wake-up on `from`.
    fn wake(&mut self, pid: u32, prev: usize, from: usize, by_task: bool) -> (usize, ChoiceRule) {
        let (running, now) = (self.current[from], self.now);
        let waker = (running != 0).then(|| *self.task(running));
        let woken = *self.task(pid);
        let sync = by_task && waker.is_some_and(|w| !w.exiting);
        let choice = self.ask(|chooser, seen| {
            let load = chooser.load_of(woken.number, woken.ran_ns, now);
            let waker = waker.map(|w| w.number);
            chooser.wake(&Wakeup { task: woken.number, prev, from, waker, sync, load, now }, seen)
        });
        (choice.cpu, choice.rule)
    }
}

/// Tasks that may run on every CPU, as far as is known, by the guest's own list: pid, mask, k or u, name.
struct Free<'a> {
    bound: Vec<u32>,
    kernel: Vec<(u32, &'a str)>,
}

impl Free<'_> {
    fn read(text: &str) -> Free<'_> {
        let mut free = Free { bound: Vec::new(), kernel: Vec::new() };
        for l in text.lines() {
            let mut words = l.split_whitespace();
            let (Some(pid), Some(mask)) = (words.next().and_then(|p| p.parse().ok()), words.next()) else {
                continue;
            };
            if u64::from_str_radix(mask, 16).is_ok_and(|m| m & 0xf != 0xf) {
                free.bound.push(pid);
            }
            if let (Some("k"), Some(name)) = (words.next(), words.next()) {
                free.kernel.push((pid, name));
            }
        }
        free
    }

    fn is_kernel(&self, pid: u32) -> bool {
        self.kernel.iter().any(|k| k.0 == pid)
    }
}

/// Where the kernel's choice lies, as the task sees it.
fn whereabouts(topology: &SchedTopology, kernel: usize, prev: usize, from: usize) -> &'static str {
    if kernel == prev {
        "its last CPU"
    } else if kernel == from {
        "its waker's CPU"
    } else if topology.core(prev).contains(kernel) {
        "a sibling of its last CPU"
    } else if topology.core(from).contains(kernel) {
        "a sibling of its waker's CPU"
    } else {
        "another CPU"
    }
}

/// Where each waking's task was put: by the place of its line.
fn chosen(lines: &[TraceLine]) -> HashMap<usize, usize> {
    let mut waking = HashMap::new();
    let mut chosen = HashMap::new();
    for (i, l) in lines.iter().enumerate() {
        match l.what {
            LineKind::Waking { pid, .. } => {
                waking.insert(pid, i);
            }
            LineKind::Wakeup { pid, cpu } => {
                if let Some(at) = waking.remove(&pid) {
                    chosen.insert(at, cpu);
                }
            }
            _ => {}
        }
    }
    chosen
}

/// Holds the rules against a recording.
fn compare(trace: &str, affinities: &str, topology: &SchedTopology) -> Scores {
    let mut lines: Vec<TraceLine> = trace.lines().filter_map(line).collect();
    lines.sort_by_key(|l| l.at);
    let (chosen, free) = (chosen(&lines), Free::read(affinities));
    let mut guest = Guest::new(topology.clone(), lines.first().map_or(0, |l| l.at));
    let mut scores = Scores::default();
    for (i, l) in lines.iter().enumerate() {
        guest.now = l.at;
        match l.what {
            LineKind::Switch { prev, runnable, next } => guest.switch(l.cpu, prev, runnable, next),
            LineKind::Moves { pid, to } => {
                let task = guest.task(pid);
                task.on = task.on.map(|_| to);
            }
            LineKind::Exits { pid } => guest.task(pid).exiting = true,
            LineKind::New { pid, cpu } => {
                let ours = guest.ask(|chooser, seen| chooser.fork(l.cpu, l.at, seen));
                if !free.bound.contains(&pid) {
                    scores.forks.count(cpu, ours, l.cpu);
                }
                guest.task(pid).on = Some(cpu);
            }
            LineKind::Waking { pid, prio, prev, by_task } => {
                let Some(&kernel) = chosen.get(&i) else { continue };
                if !guest.task(pid).sleeps || prev >= CPUS {
                    continue;
                }
                let both_users = !free.is_kernel(pid) && !free.is_kernel(guest.current[l.cpu]);
                let (ours, rule) = guest.wake(pid, prev, l.cpu, by_task && both_users);
                if prio >= 100 && !free.bound.contains(&pid) {
                    scores.wakeups.count(kernel, ours, prev);
                    if kernel != ours {
                        let place = whereabouts(topology, kernel, prev, l.cpu);
                        *scores.misses.entry((rule, place)).or_default() += 1;
                    }
                }
                let task = guest.task(pid);
                (task.on, task.sleeps) = (Some(kernel), false);
            }
            LineKind::Wakeup { .. } => {}
        }
    }
    scores
}

impl PlacementScore {
    fn count(&mut self, kernel: usize, ours: usize, previous: usize) {
        self.all += 1;
        self.ours += u64::from(kernel == ours);
        self.previous += u64::from(kernel == previous);
    }

    fn add(&mut self, other: PlacementScore) {
        self.all += other.all;
        self.ours += other.ours;
        self.previous += other.previous;
    }

    fn percent(self, of: u64) -> f64 {
        100.0 * of as f64 / self.all.max(1) as f64
    }
}

fn judge(returned: &Returned, places: &[(u16, u16)]) -> Result<JudgeTold, String> {
    let cpu = |&(core, package): &(u16, u16)| Cpu { core, package, llc: package, domain: 0, kind: 0 };
    let cpus: Vec<Cpu> = places.iter().map(cpu).collect();
    // QEMU's sockets share one memory.
    let topology = SchedTopology::new(&cpus, false);
    let mut told = JudgeTold::default();
    let (mut wakeups, mut forks) = (PlacementScore::default(), PlacementScore::default());
    let mut misses: BTreeMap<(ChoiceRule, &'static str), u64> = BTreeMap::new();
    told.figures.push("load        wake-ups  as linux  last CPU     forks  as linux  parent's CPU".into());
    let mut row = |name: &str, w: PlacementScore, f: PlacementScore| {
        let mut text = String::new();
        let _ = write!(
            text,
            "{name:<10} {:>9} {:>7.1} % {:>7.1} %",
            w.all,
            w.percent(w.ours),
            w.percent(w.previous)
        );
        let _ = write!(text, " {:>9} {:>7.1} % {:>11.1} %", f.all, f.percent(f.ours), f.percent(f.previous));
        told.figures.push(text);
    };
    let loads = returned.lines.iter().filter_map(|l| l.get("load")?.as_str());
    for load in loads {
        let text = |ending: &str| read(&returned.folder.join(format!("{load}.{ending}")));
        let scores = compare(&text("trace")?, &text("affinities")?, &topology);
        row(load, scores.wakeups, scores.forks);
        wakeups.add(scores.wakeups);
        forks.add(scores.forks);
        for (kind, n) in scores.misses {
            *misses.entry(kind).or_default() += n;
        }
    }
    row("all", wakeups, forks);
    let mut kinds: Vec<_> = misses.into_iter().collect();
    kinds.sort_by_key(|k| std::cmp::Reverse(k.1));
    for ((rule, place), n) in kinds {
        let share = wakeups.percent(n);
        told.figures.push(format!("miss {share:>5.2} %: by {rule:?}, where the kernel took {place}"));
    }
    let (ours, previous) = (wakeups.percent(wakeups.ours), wakeups.percent(wakeups.previous));
    if ours < LEAST_AGREEMENT || ours <= previous {
        return Err(format!(
            "{ours:.1} % of {} wake-ups are where the rule has them, {previous:.1} % on their last CPU; expected at \
             least {LEAST_AGREEMENT} %, and more than on the last CPU:\n{}",
            wakeups.all,
            told.figures.join("\n")
        ));
    }
    told.checks.push("wake-ups are where the rule has them".into());
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
          <idle>-0       [001] d..2.    10.000100: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=50 next_prio=120
               a-50      [001] d..2.    10.000200: sched_switch: prev_comm=a prev_pid=50 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.    10.000300: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b [x] next_pid=51 next_prio=120
         b [x]-51        [000] d..2.    10.000400: sched_waking: comm=a pid=50 prio=120 target_cpu=001
         b [x]-51        [000] dN.4.    10.000401: sched_wakeup: comm=a pid=50 prio=120 target_cpu=001
          <idle>-0       [001] d..2.    10.000500: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=50 next_prio=120
               a-50      [001] d.h2.    10.000600: sched_waking: comm=b pid=51 prio=120 target_cpu=000
               a-50      [001] d..2.    10.000700: sched_wakeup_new: comm=c pid=52 prio=120 target_cpu=002
";

    #[test]
    fn lines_are_taken_apart() {
        let lines: Vec<TraceLine> = TRACE.lines().filter_map(line).collect();
        assert_eq!(lines.len(), 8);
        let waking = LineKind::Waking { pid: 50, prio: 120, prev: 1, by_task: true };
        assert_eq!(lines[3], TraceLine { at: 10_000_400_000, cpu: 0, what: waking });
        assert_eq!(lines[1].what, LineKind::Switch { prev: 50, runnable: false, next: 0 });
        assert_eq!(lines[6].what, LineKind::Waking { pid: 51, prio: 120, prev: 0, by_task: false });
        assert_eq!(lines[7].what, LineKind::New { pid: 52, cpu: 2 });
        assert_eq!(chosen(&lines), HashMap::from([(3, 1)]));
    }

    #[test]
    fn a_wake_up_is_held_against_the_rule() {
        let cpus = [(0, 0), (0, 0), (1, 0), (1, 0)];
        let cpu = |(core, llc)| Cpu { core, package: 0, llc, domain: 0, kind: 0 };
        let topology = SchedTopology::new(&cpus.map(cpu), false);
        let right = compare(TRACE, "50 f u a\n51 f u b\n", &topology);
        assert_eq!(right.wakeups, PlacementScore { all: 1, ours: 1, previous: 1 });
        assert_eq!(right.forks, PlacementScore { all: 1, ours: 1, previous: 0 });
        let wrong = compare(
            &TRACE.replace(
                "pid=50 prio=120 target_cpu=001\n          <idle>",
                "pid=50 prio=120 target_cpu=003\n          <idle>",
            ),
            "",
            &topology,
        );
        assert_eq!(wrong.wakeups, PlacementScore { all: 1, ours: 0, previous: 0 });
        assert_eq!(wrong.misses, BTreeMap::from([((ChoiceRule::Previous, "another CPU"), 1)]));
        // A task that may not run everywhere is no wake-up to judge.
        assert_eq!(compare(TRACE, "50 2 u a\n", &topology).wakeups, PlacementScore::default());
    }
}
