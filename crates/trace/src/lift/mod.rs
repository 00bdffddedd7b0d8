//! From scheduler events to a workload: what each task wanted, free of how fast it was served.
//!
//! # What a task's time becomes
//!
//! | recorded | replayed as |
//! |---|---|
//! | on a CPU | `Run`: time times the clock of that CPU at that moment, minus the share that is memory; or the cycles counted |
//! | preempted (`R`) | nothing: the replay's own scheduler makes its own delays |
//! | a wake-up by another task | `Block` here, `Wake` there, at that very point of the waker's run |
//! | `D`, ended by an interrupt | `Io`, as long as it took |
//! | `S` and others, ended by an interrupt | a timer: `SleepFor` its length, or `SleepUntil` its end |
//! | put on a CPU | `OnCpu`, where and when: a replay can keep the recorded order |
//! | alive at the recording's end | a last `Block`, which nobody ends; none where the task repeats |
//!
//! Sleeps last from the switch-out to the *waking*, not to the next switch-in: the difference is the
//! wake-up latency, which is the replayed machine's to produce.
//!
//! # Who woke whom
//!
//! sched_waking is written by the waker, on its CPU. If that was in a task's own context, the task is
//! the waker. In a hardware interrupt, or on an idle CPU, it is nobody: a timer or device.
//! A softirq on top of a (non-idle) task counts as that task. On loopback, pipes to network daemons and
//! every local socket, the sender's own system call ends in the softirq in which the receiver's work and
//! wake-up happen: the receiver cannot be earlier than the sender, which is just what an edge says. The
//! price: a timer-wheel timeout or a packet from outside that hits a busy CPU makes the task that ran
//! there a waker by chance. A `D` sleep ended in a softirq is the exception, for block devices complete
//! their requests there, upon whoever happens to run: that is I/O.
//!
//! sched_wakeup alone (old recordings) may be written by the sleeper's CPU upon an interrupt from the
//! waker's. Such wakers are guesses, and a warning says so.
//!
//! # Absolute or relative
//!
//! A periodic task that sleeps *until* its next period keeps its rhythm on a slow machine; one that
//! sleeps *for* a time drifts. hrtimer_start says which, in the mode's low bit, if it was recorded: the
//! last one that the task started itself before it went to sleep. Else the last [`RHYTHM`] timer sleeps
//! decide: the periods from waking to waking lie within 5 % of each other, and they vary less than half
//! as much as the sleeps. (A relative sleeper has it the other way round: equal sleeps, and periods that
//! vary with the work between. If neither varies, the two replay alike.)
//!
//! # Replays that were written down
//!
//! Text that wattwise wrote has each task's work as marks (see [`crate::marks`]), its foreground and its clock. What a marked
//! task runs is taken from there, whatever its time on a CPU was.
//!
//! # Races in the recording
//!
//! A waker writes sched_waking before it takes the sleeper's run-queue lock, so it may precede the
//! switch-out that it ends, or hit a task that is about to sleep and now will not. Such a waking is kept
//! as *early*. A sched_wakeup while the task still runs, or another waking during the sleep, shows that
//! it was used up; a switch-in without either shows that it had ended the sleep. The waker's `Wake` then
//! goes to its recorded place if the waker has not been accounted beyond it, else to where the waker is
//! by now. Ops are only ever appended in the order of events, and a `Block` and its `Wake` at the
//! same moment, both or neither; the last alone is nobody's. So the recorded order itself is one in which every block is met, and no
//! workload lifted here can deadlock, whatever the file says.
//!
//! # Gaps
//!
//! Every event names the task that was current on its CPU, which shows switches that are missing. Where
//! a CPU was thought idle, its task must have come in between: it counts as running from its waking on,
//! or from this event if no waking is known either. (That happens in sound recordings: on some virtual
//! machines nothing is recorded from a CPU's idle task, so all its switch-ins are missing.) Where the
//! CPU was thought to run another task, the recording may have lost events: the time since the last
//! known switch is assigned to no task. If it has lost none, that other task writes none (on the same
//! virtual machines some kernel threads do not), and the next task is taken to run as soon as it was
//! ready: a CPU does not idle beside a task that waits for it. A task that runs although we thought it asleep was
//! woken by a timer as far as we can know. All of these are counted and told in a warning.

pub(crate) mod clocks;
mod roles;

use crate::bounds::MAX_TID;
use crate::clock::TraceClock;
use crate::error::TraceError;
use crate::events::{Comm, Comms, Event, EventKind, KernelContext, Left, Sink, Switch, WakeTarget};
use crate::lift::clocks::{ClockCounts, Clocks};
use crate::lift::roles::{Cast, Fate, Roles};
use crate::options::ImportOptions;
use wattwise_figure::{BudgetPart, OverBudget};
use wattwise_model::workload::{MemoryShare, Op, Program, Recorded, ScriptBuilder, Task, TaskId, Workload};

/// Timer sleeps that an inferred rhythm rests on.
const RHYTHM: usize = 8;

/// The most bytes of a step: two numbers with their heads.
const STEP_BYTES: u64 = 18;

/// A CPU that is silent for longer from the start on is worth a warning.
const LONG_SILENCE_NS: u64 = 1_000_000_000;

/// Who ended a sleep: an index of a task, or nobody.
type Waker = Option<u32>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum LiftState {
    /// Never seen before.
    Unseen,
    Running {
        cpu: u16,
    },
    /// Could run, since then.
    Runnable {
        since: u64,
    },
    Asleep {
        since: u64,
        left: Left,
    },
    Dead,
}

/// The last timer sleeps: from waking to waking, and their own lengths.
#[derive(Clone, Debug, Default)]
struct Rhythm {
    last_wake: Option<u64>,
    periods: [u64; RHYTHM],
    sleeps: [u64; RHYTHM],
    n: usize,
}

impl Rhythm {
    fn record(&mut self, wake: u64, slept: u64) {
        if let Some(last) = self.last_wake.replace(wake) {
            self.periods[self.n % RHYTHM] = wake.saturating_sub(last);
            self.sleeps[self.n % RHYTHM] = slept;
            self.n += 1;
        }
    }

    fn periodic(&self) -> bool {
        if self.n < RHYTHM {
            return false;
        }
        let spread = |of: &[u64; RHYTHM]| {
            let (low, high) = of.iter().fold((u64::MAX, 0), |(l, h), &x| (l.min(x), h.max(x)));
            (high - low, high)
        };
        let (periods, longest) = spread(&self.periods);
        let (sleeps, _) = spread(&self.sleeps);
        periods <= longest / 20 && periods < sleeps / 2
    }
}

#[derive(Debug)]
struct Tracked {
    comm: Comm,
    /// Greatest priority number seen: priority inheritance only ever lowers it for a while.
    prio: Option<i16>,
    script: ScriptBuilder,
    state: LiftState,
    /// Up to when its time on the CPU is in the script.
    accounted: u64,
    /// Its work is told by marks: its time on a CPU tells nothing.
    marked: bool,
    /// A waking before the switch-out: when and by whom.
    early: Option<(u64, Waker)>,
    /// The last own hrtimer_start since the switch-in: whether absolute.
    timer: Option<bool>,
    rhythm: Option<Box<Rhythm>>,
    /// Its first wake-up is in the recording.
    born: bool,
    /// Not part of the workload (for now: a task's name may change).
    excluded: bool,
}

impl Tracked {
    /// The workload's task. Whoever was not seen to end waits on, and frees nothing.
    fn finish(mut self, fate: Fate, gone: bool, comms: &Comms) -> Task {
        let repeats = fate.repeats && !self.excluded && self.script.ops() > 0;
        // Do not mistake a final block with a waker for one without.
        let waits = self.excluded || !gone || self.script.ends_blocked();
        if waits && !repeats {
            self.script.push(Op::Block);
        }
        let prio = self.prio.unwrap_or(120);
        Task {
            nice: (prio - 120).clamp(-20, 19) as i8,
            realtime: prio < 100,
            born: self.born,
            role: fate.role,
            ends: fate.ends && !waits,
            repeats,
            ..Task::new(comms.name(self.comm), Program::Recorded(self.script.finish()))
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct LiftedCpu {
    /// `None`: not known; `Some(None)`: idle.
    current: Option<Option<u32>>,
    /// Since when the present occupant has been here, as far as `busy` is concerned.
    since: u64,
    busy: u64,
    khz: u32,
    /// What its counters showed at the last switch.
    counts: Option<ClockCounts>,
    /// Cycles since then that are in a script already.
    given: u64,
}

#[derive(Debug, Default)]
struct Trouble {
    gaps: u64,
    filled: u64,
    silent: u64,
    unexplained: u64,
    guessed: u64,
}

/// Builds a workload from events.
pub(super) struct Lifter<'o> {
    options: &'o ImportOptions,
    /// Tasks to leave out, by their number.
    left_out: Vec<bool>,
    clocks: Clocks,
    roles: Roles<'o>,
    tasks: Vec<Tracked>,
    /// By thread id: task index + 1, 0 for none.
    by_tid: Vec<u32>,
    cpus: Vec<LiftedCpu>,
    clock: TraceClock,
    /// When the recording last lost events, on whichever CPU.
    lost_at: Option<u64>,
    switches: u64,
    wakings: u64,
    pushed: u64,
    /// Whether work is told by marks, and what the head says of it.
    marked: bool,
    memory_unknown: bool,
    release_ns: Option<u64>,
    /// More than the recording may take: the rest is not looked at.
    over: Option<OverBudget>,
    late_cpus: Vec<u16>,
    trouble: Trouble,
}

impl<'o> Lifter<'o> {
    pub(super) fn new(options: &'o ImportOptions, left_out: Vec<bool>) -> Lifter<'o> {
        Lifter {
            options,
            left_out,
            clocks: Clocks::new(options),
            roles: Roles::new(options),
            tasks: Vec::new(),
            by_tid: Vec::new(),
            cpus: Vec::new(),
            clock: TraceClock::default(),
            lost_at: None,
            switches: 0,
            wakings: 0,
            pushed: 0,
            marked: false,
            memory_unknown: false,
            release_ns: None,
            over: None,
            late_cpus: Vec::new(),
            trouble: Trouble::default(),
        }
    }

    pub(super) fn switches(&self) -> u64 {
        self.switches
    }

    /// What the recording has more of than the budget allows; nothing was read from there on.
    pub(super) fn over(&self) -> Option<OverBudget> {
        self.over
    }

    fn cpu(&mut self, cpu: u16) -> &mut LiftedCpu {
        let i = usize::from(cpu);
        if self.cpus.len() <= i {
            let since = self.clock.start();
            for n in self.cpus.len()..=i {
                self.cpus.push(LiftedCpu { since, khz: self.clocks.first(n), ..LiftedCpu::default() });
            }
        }
        &mut self.cpus[i]
    }

    fn since_start(&self, time: u64) -> u64 {
        time.saturating_sub(self.clock.start())
    }

    /// The most that tasks and steps take so far.
    fn bytes(&self) -> u64 {
        self.pushed * STEP_BYTES + (self.tasks.len() * size_of::<Tracked>()) as u64
    }

    fn push(&mut self, task: u32, op: Op) {
        let t = &mut self.tasks[task as usize];
        if !t.excluded && t.state != LiftState::Dead {
            self.pushed += 1;
            t.script.push(op);
        }
    }

    /// The task of a thread id; `None` for the idle task and beyond the bounds.
    fn task(&mut self, tid: u32, comms: Option<(Comm, &Comms)>) -> Waker {
        if tid == 0 || tid >= MAX_TID {
            return None;
        }
        let i = tid as usize;
        if self.by_tid.len() <= i {
            self.by_tid.resize((i + 1).next_multiple_of(4096), 0);
        }
        if self.by_tid[i] == 0 {
            return self.born(tid, comms);
        }
        let id = self.by_tid[i] - 1;
        if let Some((comm, comms)) = comms
            && self.tasks[id as usize].comm != comm
        {
            self.rename(id, tid, comm, comms, self.clock.now());
        }
        Some(id)
    }

    /// A new task for a thread id, which may have belonged to another before.
    fn born(&mut self, tid: u32, comms: Option<(Comm, &Comms)>) -> Waker {
        if let Err(over) = self.options.budget.allows(BudgetPart::Tasks, self.tasks.len() as u64 + 1) {
            self.over = Some(over);
            return None;
        }
        let id = self.tasks.len() as u32;
        let i = tid as usize;
        if self.by_tid.len() <= i {
            self.by_tid.resize((i + 1).next_multiple_of(4096), 0);
        }
        self.by_tid[i] = id + 1;
        self.tasks.push(Tracked {
            comm: Comm::default(),
            prio: None,
            script: ScriptBuilder::new(),
            state: LiftState::Unseen,
            accounted: 0,
            marked: false,
            early: None,
            timer: None,
            rhythm: None,
            born: false,
            excluded: self.is_left_out(id, tid),
        });
        self.roles.add(tid);
        if let Some((comm, comms)) = comms {
            self.rename(id, tid, comm, comms, self.clock.now());
        }
        Some(id)
    }

    /// Whether a task is none of the workload, whatever its name.
    fn is_left_out(&self, id: u32, tid: u32) -> bool {
        self.options.exclude_tids.contains(&tid)
            || self.left_out.get(id as usize) == Some(&true)
            || self.roles.is_held(tid)
    }

    /// Takes note of a name. A task is left out as long as its name says so: a recorder's child bears
    /// the recorder's name until it execs what is to be recorded.
    fn rename(&mut self, id: u32, tid: u32, comm: Comm, comms: &Comms, at: u64) {
        let name = comms.name(comm);
        let excluded = self.is_left_out(id, tid) || self.options.exclude_comms.iter().any(|c| c == name);
        self.roles.named(id, comm, comms);
        let was = self.tasks[id as usize].excluded;
        if !was && excluded {
            self.account(id, at);
        }
        let begins = was && !excluded && self.tasks[id as usize].state != LiftState::Unseen;
        let t = &mut self.tasks[id as usize];
        t.comm = comm;
        t.excluded = excluded;
        if was != excluded {
            t.early = None;
        }
        if begins {
            t.accounted = t.accounted.max(at);
            if let LiftState::Asleep { since, .. } = &mut t.state {
                *since = at;
            }
            self.push(id, Op::SleepUntil(self.since_start(at)));
            if let LiftState::Running { cpu } = self.tasks[id as usize].state {
                self.on_cpu(id, cpu, at);
            }
        }
    }

    fn prio(&mut self, id: u32, prio: i16) {
        let t = &mut self.tasks[id as usize];
        t.prio = Some(t.prio.map_or(prio, |p| p.max(prio)));
    }

    fn on_cpu(&mut self, id: u32, cpu: u16, at: u64) {
        let at_ns = self.since_start(at);
        self.push(id, Op::OnCpu { cpu, at_ns });
    }

    /// Puts a running task's time up to `until` into its script.
    fn account(&mut self, id: u32, until: u64) {
        let t = &self.tasks[id as usize];
        let LiftState::Running { cpu } = t.state else { return };
        let Some(ns) = until.checked_sub(t.accounted).filter(|n| *n > 0) else { return };
        self.tasks[id as usize].accounted = until;
        if self.tasks[id as usize].marked {
            return;
        }
        let khz = self.cpu(cpu).khz;
        let stall_ns = (ns as f64 * self.options.memory_share.unwrap_or(0.0)) as u64;
        let stall_ns = stall_ns.min(ns);
        let cycles = cycles_in(ns - stall_ns, khz);
        let cpu = self.cpu(cpu);
        cpu.given = cpu.given.saturating_add(cycles);
        self.push(id, Op::Run { cycles, stall_ns });
    }

    /// A sleep's end: either the pair of block and wake, or an op that stands for itself.
    fn end_sleep(&mut self, id: u32, since: u64, left: Left, at: u64, waker: Waker) {
        let slept = at.saturating_sub(since);
        let edge = waker.filter(|w| {
            let w = &self.tasks[*w as usize];
            !w.excluded && w.state != LiftState::Dead && !self.tasks[id as usize].excluded
        });
        if let Some(waker) = edge.filter(|w| *w != id) {
            self.edge(id, waker, at);
        } else if left == Left::Disk {
            self.push(id, Op::Io(slept));
        } else {
            let until = self.since_start(at);
            let t = &mut self.tasks[id as usize];
            let rhythm = t.rhythm.get_or_insert_default();
            rhythm.record(at, slept);
            let absolute = self.options.keep_moments || t.timer.unwrap_or_else(|| rhythm.periodic());
            self.push(id, if absolute { Op::SleepUntil(until) } else { Op::SleepFor(slept) });
        }
    }

    fn edge(&mut self, sleeper: u32, waker: u32, at: u64) {
        self.account(waker, at);
        self.push(sleeper, Op::Block);
        self.push(waker, Op::Wake(TaskId(sleeper)));
        self.roles.join(sleeper, waker);
    }

    /// The task in whose context an event was written, if it can be a waker.
    fn waker(&mut self, event: &Event, target: u32) -> Waker {
        if event.level == KernelContext::Hardirq || event.current == 0 || event.current == target {
            return None;
        }
        self.task(event.current, None)
    }

    /// First sight of a task: until then it waited.
    fn begin(&mut self, id: u32, at: u64, waker: Waker) {
        let edge = waker.filter(|w| {
            let w = &self.tasks[*w as usize];
            !w.excluded && w.state != LiftState::Dead && !self.tasks[id as usize].excluded
        });
        match edge {
            Some(waker) => self.edge(id, waker, at),
            None if self.since_start(at) > 0 => self.push(id, Op::SleepUntil(self.since_start(at))),
            None => {}
        }
    }

    fn runs(&mut self, id: u32, cpu: u16, since: u64) {
        let t = &mut self.tasks[id as usize];
        t.state = LiftState::Running { cpu };
        t.accounted = since;
        t.early = None;
        t.timer = None;
        self.on_cpu(id, cpu, since);
    }

    /// Ends whatever kept a task from running, for it now runs.
    fn awake(&mut self, id: u32, cpu: u16, at: u64) {
        match self.tasks[id as usize].state {
            LiftState::Unseen => self.begin(id, at, None),
            LiftState::Asleep { since, left } => {
                if self.tasks[id as usize].early.is_some() {
                    self.end_early(id, since, left);
                } else {
                    self.trouble.unexplained += 1;
                    self.end_sleep(id, since, left, at, None);
                }
            }
            LiftState::Running { cpu: other } if other != cpu => {
                self.trouble.gaps += 1;
                self.cpu(other).current = Some(None);
                self.cpu(other).since = at;
            }
            _ => {}
        }
    }

    /// Brings a CPU's books in line with an event that says who is current there.
    fn present(&mut self, n: u16, who: Waker, at: u64) {
        let start = self.clock.start();
        let cpu = *self.cpu(n);
        if cpu.current == Some(who) {
            return;
        }
        // Whether switches away from the task that was thought to run here may have been lost.
        let lost = matches!(cpu.current, Some(Some(_))) && self.lost_at.is_some_and(|lost| lost >= cpu.since);
        // Since when the present task can have been here.
        let mut since = at;
        if let Some(id) = who {
            let state = self.tasks[id as usize].state;
            since = match (cpu.current, state) {
                // The first word of this CPU: its task has been here from the start.
                (None, LiftState::Unseen) => start,
                (_, LiftState::Runnable { since }) if !lost => since.max(cpu.since),
                _ => at,
            };
            if since > start || state != LiftState::Unseen {
                self.awake(id, n, at);
            }
            self.runs(id, n, since.min(at));
        }
        match cpu.current {
            None => {}
            Some(None) => self.trouble.filled += 1,
            Some(Some(gone)) => {
                if since < at {
                    self.trouble.silent += 1;
                } else {
                    self.trouble.gaps += 1;
                }
                if self.tasks[gone as usize].state == (LiftState::Running { cpu: n }) {
                    self.tasks[gone as usize].state = LiftState::Runnable { since: at };
                }
            }
        }
        let cpu = self.cpu(n);
        cpu.current = Some(who);
        cpu.since = since.min(at);
    }

    fn waking(&mut self, event: &Event, target: WakeTarget, comms: &Comms) {
        let Some(id) = self.task(target.tid, Some((target.comm, comms))) else { return };
        self.prio(id, target.prio);
        let waker = self.waker(event, target.tid);
        let at = event.time_ns;
        match self.tasks[id as usize].state {
            LiftState::Unseen => {
                self.begin(id, at, waker);
                self.tasks[id as usize].state = LiftState::Runnable { since: at };
            }
            LiftState::Asleep { since, left } => {
                self.tasks[id as usize].early = None;
                let waker = waker.filter(|_| left != Left::Disk || event.level == KernelContext::Task);
                self.end_sleep(id, since, left, at, waker);
                self.tasks[id as usize].state = LiftState::Runnable { since: at };
            }
            LiftState::Running { .. } => self.tasks[id as usize].early = Some((at, waker)),
            // Already awake, or a last signal to the dead.
            LiftState::Runnable { .. } | LiftState::Dead => {}
        }
    }

    fn wakeup(&mut self, event: &Event, target: WakeTarget, comms: &Comms) {
        let Some(id) = self.task(target.tid, Some((target.comm, comms))) else { return };
        match self.tasks[id as usize].state {
            LiftState::Running { .. } => self.tasks[id as usize].early = None,
            LiftState::Asleep { since, left } if self.tasks[id as usize].early.is_some() => {
                self.end_early(id, since, left);
            }
            LiftState::Asleep { .. } | LiftState::Unseen => {
                self.trouble.guessed += 1;
                self.waking(event, target, comms);
            }
            LiftState::Runnable { .. } | LiftState::Dead => {}
        }
    }

    /// The sleep was over before it began: its waking came first.
    fn end_early(&mut self, id: u32, since: u64, left: Left) {
        if let Some((at, Some(waker))) = self.tasks[id as usize].early.take() {
            self.end_sleep(id, since, left, at, Some(waker));
        }
        self.tasks[id as usize].state = LiftState::Runnable { since: self.clock.now() };
    }

    fn wakeup_new(&mut self, event: &Event, target: WakeTarget, comms: &Comms) {
        let tid = target.tid;
        let unseen = self.by_tid.get(tid as usize).filter(|i| **i > 0);
        let unseen = unseen.is_some_and(|i| self.tasks[(*i - 1) as usize].state == LiftState::Unseen);
        let name = Some((target.comm, comms));
        let id =
            if unseen || tid == 0 || tid >= MAX_TID { self.task(tid, name) } else { self.born(tid, name) };
        let Some(id) = id else { return };
        self.prio(id, target.prio);
        let waker = self.waker(event, tid);
        self.begin(id, event.time_ns, waker);
        self.tasks[id as usize].state = LiftState::Runnable { since: event.time_ns };
        self.tasks[id as usize].born = true;
    }

    fn switch(&mut self, event: &Event, s: Switch, comms: &Comms) {
        self.switches += 1;
        let (at, n) = (event.time_ns, event.cpu);
        let prev = self.task(s.prev_tid, Some((s.prev_comm, comms)));
        let start = self.clock.start();
        let cpu = *self.cpu(n);
        if cpu.current.is_none() && at - start.min(at) > LONG_SILENCE_NS && s.prev_tid != 0 {
            self.late_cpus.push(n);
        }
        self.present(n, prev, at);
        if let Some(prev) = prev {
            self.was_busy(n, prev, at);
            self.prio(prev, s.prev_prio);
            self.account(prev, at);
            self.tasks[prev as usize].state = match s.left {
                Left::Runnable => LiftState::Runnable { since: at },
                Left::Dead => {
                    self.roles.exited(prev, at);
                    LiftState::Dead
                }
                left => LiftState::Asleep { since: at, left },
            };
        }
        let mut next = self.task(s.next_tid, Some((s.next_comm, comms)));
        if next.is_some_and(|id| self.tasks[id as usize].state == LiftState::Dead) {
            next = self.born(s.next_tid, Some((s.next_comm, comms)));
        }
        if let Some(id) = next {
            self.prio(id, s.next_prio);
            self.awake(id, n, at);
            self.runs(id, n, at);
        }
        let cpu = self.cpu(n);
        cpu.current = Some(next);
        cpu.since = at;
    }

    /// Counts the time of a CPU with its present task, up to now.
    fn was_busy(&mut self, n: u16, task: u32, at: u64) {
        let cpu = self.cpu(n);
        let ns = at - cpu.since.min(at);
        cpu.busy = cpu.busy.saturating_add(ns);
        self.roles.ran(task, ns);
    }

    /// A new task of a thread id, which may have been another's before. Two kinds of events tell it.
    fn fork(&mut self, parent: u32, child: u32, comms: Option<(Comm, &Comms)>) -> Waker {
        let parent = self.task(parent, None);
        let known = self.by_tid.get(child as usize).and_then(|i| i.checked_sub(1));
        if let Some(id) = known.filter(|id| self.roles.is_fork_of(*id, parent)) {
            return Some(id);
        }
        if child == 0 || child >= MAX_TID {
            return None;
        }
        let id = self.born(child, comms)?;
        self.roles.forked(parent, id, self.clock.now());
        Some(id)
    }

    /// The counters at a switch: whoever leaves has run that many cycles since the last one, those at its
    /// wake-ups of others included.
    fn counted(&mut self, n: u16, now: ClockCounts) {
        let stated = self.options.memory_share;
        let cpu = self.cpu(n);
        let given = std::mem::take(&mut cpu.given);
        let (Some(before), Some(Some(id))) = (cpu.counts.replace(now), cpu.current) else { return };
        // Nothing counted while a task ran: the counters stand still, as some guests' do.
        let Some(stint) = now.since(&before).filter(|stint| stint.cycles > 0) else { return };
        let t = &self.tasks[id as usize];
        if t.state != (LiftState::Running { cpu: n }) || t.accounted > now.at {
            return;
        }
        self.clocks.counted(&stint);
        self.cpu(n).khz = stint.khz().unwrap_or(self.cpus[usize::from(n)].khz);
        let stall_ns = stated.map_or(stint.stall_ns(), |share| (stint.ns as f64 * share) as u64);
        let stalled = if stint.ns > 0 { stall_ns as f64 / stint.ns as f64 } else { 0.0 };
        let cycles = (stint.cycles as f64 * (1.0 - stalled)) as u64;
        self.tasks[id as usize].accounted = now.at;
        self.push(id, Op::Run { cycles: cycles.saturating_sub(given), stall_ns });
    }

    fn exit(&mut self, tid: u32, at: u64) {
        if let Some(id) = self.by_tid.get(tid as usize).and_then(|i| i.checked_sub(1)) {
            self.roles.exited(id, at);
        }
    }

    /// What is told of tasks beside the scheduler's events.
    fn side(&mut self, event: &Event, comms: &Comms) {
        let at = self.clock.beside(event.time_ns);
        match event.kind {
            EventKind::Named { tid, pid, comm, .. } if event.time_ns == 0 => {
                self.roles.old_name(tid, pid, comm)
            }
            EventKind::Parent { parent, child, pid } if event.time_ns == 0 => {
                self.roles.old_parent(parent, child, pid);
            }
            EventKind::Named { tid, pid, comm, exec } => {
                let Some(id) = self.task(tid, None) else { return };
                self.roles.process(id, pid);
                let mut before = self.tasks[id as usize].comm;
                if before == Comm::default() {
                    before = self.roles.first_name(tid).unwrap_or(before);
                }
                if exec {
                    self.roles.execs(id, before, comm, at, comms);
                }
                self.rename(id, tid, comm, comms, at);
            }
            EventKind::Parent { parent, child, pid } => {
                if let Some(id) = self.fork(parent, child, None) {
                    self.roles.process(id, pid);
                }
            }
            EventKind::Ended { tid } => self.exit(tid, at),
            EventKind::Counted { cycles, misses, .. } => {
                self.counted(event.cpu, ClockCounts { at, cycles, misses });
            }
            EventKind::Work { tid, work } => {
                let Some(id) = self.task(tid, None) else { return };
                self.tasks[id as usize].marked = true;
                self.marked = true;
                self.push(id, Op::Run { cycles: work.cycles, stall_ns: work.stall_ns });
            }
            _ => {}
        }
    }

    fn frequency(&mut self, cpu: u16, khz: u32) {
        if khz == 0 {
            return;
        }
        if let Some(Some(id)) = self.cpu(cpu).current {
            self.account(id, self.clock.now());
        }
        self.cpu(cpu).khz = khz;
        self.clocks.event();
    }

    /// The workload, at the end of all events, and which of its tasks are strangers'.
    pub(super) fn finish(
        mut self,
        comms: &Comms,
        read: crate::events::TraceRead,
        name: &str,
    ) -> Result<(Workload, Vec<bool>), TraceError> {
        let end = self.clock.now();
        let span = self.options.budget.allows(BudgetPart::Simulated, self.since_start(end) / 1_000_000_000);
        if let Some(over) = self.over.or(span.err()) {
            return Err(TraceError::OverBudget { name: name.to_owned(), over });
        }
        for n in 0..self.cpus.len() {
            if let Some(Some(id)) = self.cpus[n].current {
                self.account(id, end);
                self.was_busy(n as u16, id, end);
            }
        }
        let mut warnings = self.warnings(&read);
        let memory = self.memory_share();
        let cpus = read.cpus.unwrap_or(0).max(self.cpus.len() as u16);
        let mut busy_ns: Vec<u64> = self.cpus.iter().map(|c| c.busy).collect();
        busy_ns.resize(usize::from(cpus), 0);
        let span_ns = self.since_start(end);
        let gone: Vec<bool> = (0..self.tasks.len())
            .map(|t| self.tasks[t].state == LiftState::Dead || self.roles.has_exited(t as u32))
            .collect();
        let names: Vec<Comm> = self.tasks.iter().map(|t| t.comm).collect();
        let cast = self.roles.cast(&names, comms, name)?;
        warnings.extend(cast.warnings.iter().cloned());
        let released = cast.release.map_or(0, |at| at.saturating_sub(self.clock.start()));
        let release_ns = self.release_ns.unwrap_or(released);
        let Cast { fates, origin, strangers, .. } = cast;
        let left_out = fates.iter().map(|f| f.stranger).collect();
        // Task numbers are in the scripts: tasks left out keep theirs, with nothing to do.
        let tasks = self.tasks.into_iter().zip(fates).zip(gone);
        let tasks = tasks.map(|((task, fate), gone)| task.finish(fate, gone, comms)).collect();
        let workload = Workload {
            jobs: Vec::new(),
            locks: 0,
            name: name.to_owned(),
            source: format!("{} ({})", read.format, name),
            tasks,
            episodes: None,
            scripted: None,
            recorded: Some(Recorded {
                events: read.events,
                lost: read.lost,
                busy_ns,
                clock: self.clocks.origin(),
                memory,
                foreground: origin,
                cpu_name: read.cpu_name.clone(),
                strangers,
                suspended_ns: read.suspended_ns,
                suspended_w: self.options.suspend_w,
                warnings,
                ..Recorded::new(cpus, self.clocks.khz())
            }),
            release_ns,
            span_ns,
        };
        Ok((workload, left_out))
    }

    fn memory_share(&self) -> MemoryShare {
        match self.options.memory_share {
            Some(share) => MemoryShare::Stated(share),
            None if self.clocks.misses_counted() => MemoryShare::Counted,
            None if self.marked && !self.memory_unknown => MemoryShare::Counted,
            None => MemoryShare::Unknown,
        }
    }

    fn warnings(&self, read: &crate::events::TraceRead) -> Vec<String> {
        let mut warnings = read.warnings.clone();
        warnings.extend(self.clock.warnings());
        if let Some(w) = self.options.suspend_w.filter(|_| read.suspended_ns > 0) {
            warnings.push(format!(
                "The suspended time is charged to every policy with {w} W, {:.0} J in all.",
                w * read.suspended_ns as f64 * 1e-9
            ));
        }
        let mut say = |n: u64, what: &str| {
            if n > 0 {
                warnings.push(format!("{n} {what}"));
            }
        };
        let t = &self.trouble;
        say(read.lost, "events were lost in recording; what happened in the gaps is unknown.");
        say(
            t.filled,
            "switches from idle were not recorded; each such task is assumed to start at its wake-up.",
        );
        say(
            t.silent,
            "switches of tasks that write no events are missing; the next task is assumed to start as soon as it was ready.",
        );
        say(
            t.gaps,
            "switches contradict what their CPU was doing; the time before each is assigned to no task.",
        );
        say(t.unexplained, "sleeps ended without a recorded wake-up; a timer is assumed.");
        if self.wakings == 0 && t.guessed > 0 {
            warnings.push(format!(
                "No sched_waking events: the wakers of {} wake-ups are guesses; record with -e sched:sched_waking.",
                t.guessed
            ));
        } else if self.wakings == 0 && t.unexplained > 0 {
            warnings.push(
                "No sched_waking events: tasks do not wait for each other; record with -e sched:sched_waking."
                    .into(),
            );
        }
        warnings.extend(self.clocks.warning());
        if let Some(code) = read.notes.exit_code.filter(|code| *code != 0 && !read.notes.stopped) {
            warnings.push(format!("The recorded command failed (exit code {code})."));
        }
        for cpu in &self.late_cpus {
            warnings.push(format!(
                "CPU {cpu} was silent for more than a second; the task first found there counts as having run all the time."
            ));
        }
        warnings
    }
}

impl Sink for Lifter<'_> {
    fn header(&mut self, read: &crate::events::TraceRead) {
        self.clocks.header(read);
        self.roles.note(&read.notes);
        (self.release_ns, self.memory_unknown) = (read.notes.release_ns, read.notes.memory_unknown);
    }

    #[inline]
    fn event(&mut self, event: &Event, comms: &Comms) {
        if self.over.is_some() {
            return;
        }
        if event.kind.is_side() {
            return self.side(event, comms);
        }
        let budget = &self.options.budget;
        let cpus = budget.allows(BudgetPart::Cpus, u64::from(event.cpu) + 1);
        if let Err(over) = cpus.and_then(|()| budget.allows(BudgetPart::Memory, self.bytes())) {
            self.over = Some(over);
            return;
        }
        let Some(time_ns) = self.clock.admit(event.time_ns) else { return };
        let event = &Event { time_ns, ..*event };
        if let EventKind::Waking(_) | EventKind::WakeupNew(_) | EventKind::HrtimerStart { .. } = event.kind {
            let current = self.task(event.current, None);
            self.present(event.cpu, current, time_ns);
        }
        match event.kind {
            EventKind::Switch(s) => self.switch(event, s, comms),
            EventKind::Waking(t) => {
                self.wakings += 1;
                self.waking(event, t, comms);
            }
            EventKind::Wakeup(t) => self.wakeup(event, t, comms),
            EventKind::WakeupNew(t) => self.wakeup_new(event, t, comms),
            EventKind::Fork { parent, child, comm } => {
                self.fork(parent, child, Some((comm, comms)));
            }
            EventKind::Exit { tid } => self.exit(tid, time_ns),
            EventKind::CpuFrequency { cpu, khz } => self.frequency(cpu, khz),
            EventKind::HrtimerStart { absolute } if event.level == KernelContext::Task => {
                if let Some(id) = self.task(event.current, None) {
                    self.tasks[id as usize].timer = Some(absolute);
                }
            }
            EventKind::Lost(_) => self.lost_at = Some(time_ns),
            // Migrations show in the next switch.
            _ => {}
        }
    }
}

/// Cycles of a clock in so many ns.
#[inline]
fn cycles_in(ns: u64, khz: u32) -> u64 {
    match ns.checked_mul(u64::from(khz)) {
        Some(product) => product / 1_000_000,
        // A run of hours.
        None => u64::try_from(u128::from(ns) * u128::from(khz) / 1_000_000).unwrap_or(u64::MAX),
    }
}
