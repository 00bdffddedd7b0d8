//! The tasks own where each is in its program, the workload's locks and job counters, and what waits for a device or
//! comes from outside. They answer what a task's next step is ([`TaskStep`]), whether a wake-up makes one runnable, and who is due.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | programs, steps, wake-ups, devices |
//! | `timers.rs` | sleepers of one CPU |
//! | `locks.rs` | the workload's locks |
//! | `work.rs` | the foreground's progress: makespan, critical path, episodes |

mod locks;
pub(crate) mod timers;
pub(crate) mod work;

use crate::NONE;
use crate::calendar::NEVER;
use locks::LockState;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wattwise_model::workload::pattern::{Pattern, PatternCursor};
use wattwise_model::workload::{Op, Program, Script, ScriptPosition, TaskId, Workload};
use work::{WorkOutcome, WorkProgress};

/// Where a task is in its program.
enum Cursor<'a> {
    Recorded(ReplayCursor<'a>),
    Pattern(PatternCursor),
    /// The speed policy's own process: sleep, decide, and so on.
    Daemon,
}

/// A place in a recorded program, and by how much its times are later than recorded.
struct ReplayCursor<'a> {
    script: &'a Script,
    at: ScriptPosition,
    /// Whole spans gone through before, and the phase of this replay, in ns.
    offset: u64,
}

impl ReplayCursor<'_> {
    #[inline(always)]
    fn step(&mut self, script: &Script) -> Option<Op> {
        Some(match script.step(&mut self.at)? {
            Op::SleepUntil(at) => Op::SleepUntil(at.saturating_add(self.offset)),
            Op::OnCpu { cpu, at_ns } => Op::OnCpu { cpu, at_ns: at_ns.saturating_add(self.offset) },
            op => op,
        })
    }
}

/// Where a task's steps come from.
#[derive(Clone, Copy)]
pub(crate) enum Steps<'a> {
    Recorded(&'a Script),
    Generated,
    Daemon,
}

/// A task as it runs: a cache line, and one for where it is in its program.
#[repr(C, align(64))]
struct TaskState<'a> {
    /// What is left of the current piece.
    left_cycles: f64,
    left_stall: f64,
    /// Time to add to the next piece, in ns: a migration, interrupts.
    overhead: f64,
    /// The piece's cycles, credited when it is done.
    piece_cycles: f64,
    /// When it became runnable; [`NEVER`] while that latency is of no interest.
    woken_at: u64,
    /// How its recorded run time divides, where its program does not say.
    share: Option<Box<RunShare>>,
    /// Wake-ups that came before their block.
    tokens: u32,
    /// Who started it: the first to wake it, where that was within the run.
    parent: u32,
    /// A lock to win before going on.
    wants: u32,
    state: RunState,
    /// It has not been on any CPU: its first placement is no migration.
    fresh: bool,
    /// Started within the run: it gets a credit.
    born: bool,
    /// After its program's last step it goes through it again.
    again: bool,
    cursor: Cursor<'a>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<TaskState<'_>>() == 2 * 64);

/// How recorded run time divides into cycles and time that no clock shortens.
#[derive(Clone, Copy, Debug)]
struct RunShare {
    /// Cycles for each recorded one.
    cycles: f64,
    /// Time for each recorded cycle, in ns.
    stall_ns: f64,
}

/// Whether a task runs, or what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunState {
    /// Running or queued.
    Runnable,
    Sleeping,
    /// On a device: (the CPU whose I/O wait it is).
    Device,
    /// Until a wake-up.
    Blocked,
    Ended,
}

/// A task that is given a CPU.
pub(crate) struct Resumed<'a> {
    /// For how long it waited, where that is of interest.
    pub(crate) waited: Option<u64>,
    /// It has to win a lock before it goes on.
    pub(crate) wants_lock: bool,
    /// Something is left of its piece.
    pub(crate) has_work: bool,
    pub(crate) steps: Steps<'a>,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStep {
    /// Work for the CPU.
    Works,
    /// Nothing that takes time.
    Nothing,
    /// Sleep on a timer, until then.
    Sleeps(u64),
    /// Waiting for a device.
    WaitsForDevice,
    /// Waiting for a wake-up or a lock.
    Waits,
    /// The program is over.
    Ends,
    /// It wakes another task.
    Wakes(u32),
    /// From here on it runs on another CPU or at another time, as recorded.
    IsOn {
        /// The CPU.
        cpu: u32,
        /// When it began to run there, in ns.
        at_ns: u64,
    },
    /// It has given a lock back, for which this task waits.
    HandsTo(u32),
}

/// Something that is due and belongs to no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A device has finished a task's I/O.
    Io(u32),
    /// A task that was put off has been found.
    Found(u32),
    /// An interrupt from outside.
    Interrupt(Interrupt),
}

/// All tasks.
pub(crate) struct Tasks<'a> {
    tasks: Vec<TaskState<'a>>,
    /// Jobs left in each shared counter.
    jobs: Vec<u64>,
    locks: Vec<LockState>,
    /// Tasks that wait for a device, or to be found by an idle CPU.
    devices: BinaryHeap<Reverse<(u64, u32)>>,
    /// Interrupts still to come.
    interrupts: &'a [Interrupt],
    /// Tasks of the workload that run, could run, or sleep on a timer or a device.
    active: usize,
    done_at: Option<u64>,
    /// The foreground's progress, where somebody asks.
    work: Option<Box<WorkProgress>>,
    /// Length of a recording, after which its background begins anew, in ns.
    span_ns: u64,
    /// By task, where somebody watches: its piece as its program has it, in cycles and ns of stall.
    pieces: Option<Box<[(u64, u64)]>>,
    /// How many times as long a stall takes as at the memory's highest clock.
    slowness: f64,
    /// Its inverse: what of a time that no clock changes is booked as a stall.
    quickness: f64,
    /// Stalls of all pieces that were begun, in ns at that clock.
    stalls_begun: f64,
}

/// An interrupt from outside the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Time since the work's start, in ns.
    pub at_ns: u64,
    /// The CPU.
    pub cpu: u16,
    /// What it takes at the highest speed, in ns.
    pub ns: u64,
    /// A kernel thread bound to the CPU does it: to the scheduler an idle CPU is busy meanwhile.
    pub thread: bool,
}

/// How the tasks' programs are to be carried out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replaying<'a> {
    /// Follow the foreground's progress, and let the background go on for as long as somebody looks.
    pub(crate) follow_work: bool,
    /// Delay of the recorded background against the recording, in ns.
    pub(crate) background_shift_ns: u64,
    /// Memory-bound share of each task's recorded run time; empty: none.
    pub(crate) memory: &'a [f64],
    /// The clock at which the recording was made, in kHz, where it is another than its cycles were counted with; else 0.
    pub(crate) recorded_khz: f64,
}

impl Replaying<'_> {
    /// How the run time of task number `t` divides, whose cycles were counted with a clock of `khz`.
    fn share(&self, t: usize, khz: u32) -> Option<RunShare> {
        let khz = f64::from(khz.max(1));
        let real = if self.recorded_khz > 0.0 { self.recorded_khz } else { khz };
        let memory = self.memory.get(t).copied().unwrap_or(0.0);
        let share = RunShare { cycles: (1.0 - memory) * real / khz, stall_ns: memory * 1e6 / khz };
        (memory > 0.0 || real != khz).then_some(share)
    }
}

impl<'a> TaskState<'a> {
    fn new(cursor: Cursor<'a>, born: bool) -> TaskState<'a> {
        TaskState {
            cursor,
            left_cycles: 0.0,
            left_stall: 0.0,
            overhead: 0.0,
            piece_cycles: 0.0,
            fresh: true,
            woken_at: NEVER,
            tokens: 0,
            parent: NONE,
            born,
            again: false,
            share: None,
            state: RunState::Runnable,
            wants: NONE,
        }
    }

    /// Divides the run time of a recorded piece.
    #[inline(never)]
    fn divide(&mut self) {
        if let Some(share) = &self.share {
            self.left_stall += self.left_cycles * share.stall_ns;
            self.left_cycles *= share.cycles;
        }
    }

    /// Where its steps come from.
    #[inline(always)]
    fn steps(&self) -> Steps<'a> {
        match self.cursor {
            Cursor::Recorded(ReplayCursor { script, .. }) => Steps::Recorded(script),
            Cursor::Pattern(_) => Steps::Generated,
            Cursor::Daemon => Steps::Daemon,
        }
    }

    /// A piece of which nothing is left counts until its end has been seen. None of the three is negative.
    #[inline]
    fn has_work(&self) -> bool {
        self.left_cycles + self.left_stall + self.piece_cycles > 0.0
    }
}

/// A length, of 292 years at most: the processor has no conversion of unsigned integers.
#[inline(always)]
fn float(x: u64) -> f64 {
    x.min(i64::MAX as u64) as i64 as f64
}

impl<'a> Tasks<'a> {
    /// All at the start of their programs; with `daemon` one more, the speed policy's process.
    pub(crate) fn new(
        workload: &'a Workload,
        interrupts: &'a [Interrupt],
        daemon: bool,
        how: Replaying<'_>,
    ) -> Tasks<'a> {
        let khz = workload.recorded.as_ref().map_or(0, |r| r.khz);
        // Tasks of one kind stand one after the other.
        let mut before: Option<(&Pattern, PatternCursor)> = None;
        let mut pattern = |p: &'a Pattern| {
            let cursor = match &before {
                Some((like, cursor)) if like.steps == p.steps => PatternCursor::sharing_steps(p, cursor),
                _ => PatternCursor::new(p),
            };
            before = Some((p, cursor.clone()));
            Cursor::Pattern(cursor)
        };
        let state = |(t, task): (usize, &'a wattwise_model::workload::Task)| {
            let repeats = how.follow_work && task.repeats;
            let offset = if repeats { how.background_shift_ns } else { 0 };
            let (cursor, share) = match &task.program {
                Program::Recorded(script) => {
                    let replay = ReplayCursor { script, at: ScriptPosition::default(), offset };
                    (Cursor::Recorded(replay), how.share(t, khz).map(Box::new))
                }
                Program::Pattern(p) => (pattern(p), None),
            };
            TaskState { again: repeats, share, ..TaskState::new(cursor, task.born) }
        };
        let of_workload = workload.tasks.iter().enumerate().map(state);
        let process =
            daemon.then(|| TaskState { state: RunState::Sleeping, ..TaskState::new(Cursor::Daemon, false) });
        Tasks {
            tasks: of_workload.chain(process).collect(),
            jobs: workload.jobs.clone(),
            locks: (0..workload.locks).map(|_| LockState::default()).collect(),
            devices: BinaryHeap::new(),
            interrupts,
            active: workload.tasks.len(),
            done_at: None,
            work: how.follow_work.then(|| Box::new(WorkProgress::new(workload))),
            span_ns: workload.span_ns,
            pieces: None,
            slowness: 1.0,
            quickness: 1.0,
            stalls_begun: 0.0,
        }
    }

    /// From here on what each task's piece is in its program is kept, too.
    pub(crate) fn keep_pieces(&mut self) {
        self.pieces = Some(vec![(0, 0); self.tasks.len()].into_boxed_slice());
    }

    /// A task's piece as its program has it, in cycles and ns of stall; nothing where none is kept.
    pub(crate) fn piece(&self, t: u32) -> (u64, u64) {
        self.pieces.as_ref().map_or((0, 0), |pieces| pieces[t as usize])
    }

    /// The foreground's progress, where it is followed.
    pub(crate) fn work(&self) -> WorkOutcome {
        self.work.as_ref().map_or_else(WorkOutcome::default, |w| w.outcome())
    }

    #[inline]
    fn task(&self, t: u32) -> &TaskState<'a> {
        &self.tasks[t as usize]
    }

    #[inline]
    fn task_mut(&mut self, t: u32) -> &mut TaskState<'a> {
        &mut self.tasks[t as usize]
    }

    #[inline]
    pub(crate) fn state(&self, t: u32) -> RunState {
        self.task(t).state
    }

    /// Whether it has not been on any CPU.
    #[inline]
    pub(crate) fn is_fresh(&self, t: u32) -> bool {
        self.task(t).fresh
    }

    /// Whether it was started within the run.
    #[inline]
    pub(crate) fn is_born(&self, t: u32) -> bool {
        self.task(t).born
    }

    /// It is on a CPU; whether that is its first.
    #[inline]
    pub(crate) fn arrives(&mut self, t: u32) -> bool {
        std::mem::take(&mut self.task_mut(t).fresh)
    }

    /// Who started it, where that was within the run.
    pub(crate) fn parent(&self, t: u32) -> Option<u32> {
        Some(self.task(t).parent).filter(|&p| p != NONE)
    }

    /// Keeps this share of what is left of a task's piece.
    #[inline]
    pub(crate) fn shrink(&mut self, t: u32, share: f64) {
        let task = self.task_mut(t);
        task.left_cycles *= share;
        task.left_stall *= share;
    }

    /// Time for what is left of a task's piece, in ns.
    #[inline]
    pub(crate) fn need(&self, t: u32, ns_per_cycle: f64) -> f64 {
        let task = self.task(t);
        task.left_cycles * ns_per_cycle + task.left_stall * self.slowness
    }

    /// Adds time that no clock shortens.
    #[inline]
    pub(crate) fn charge(&mut self, t: u32, ns: u64) {
        let quickness = self.quickness;
        let task = self.task_mut(t);
        if task.has_work() {
            task.left_stall += ns as f64 * quickness;
        } else {
            task.overhead += ns as f64;
        }
    }

    /// From here on stalls take so many times as long as at the memory's highest clock. Running pieces are to be timed anew.
    pub(crate) fn slow_stalls(&mut self, slowness: f64) {
        (self.slowness, self.quickness) = (slowness, 1.0 / slowness);
    }

    /// Stalls that all pieces have behind them, in ns at the memory's highest clock; running pieces must have been stopped.
    pub(crate) fn stalls_done(&self) -> f64 {
        self.stalls_begun - self.tasks.iter().map(|task| task.left_stall).sum::<f64>()
    }

    /// A task's piece is done; returns its cycles, and where its steps come from.
    #[inline]
    pub(crate) fn finish_piece(&mut self, t: u32) -> (f64, Steps<'a>) {
        let task = self.task_mut(t);
        task.left_cycles = 0.0;
        task.left_stall = 0.0;
        let done = (std::mem::take(&mut task.piece_cycles), task.steps());
        if let Some(work) = &mut self.work {
            work.worked(t, done.0);
        }
        done
    }

    /// A task is given a CPU.
    #[inline(always)]
    pub(crate) fn resume(&mut self, t: u32, now: u64) -> Resumed<'a> {
        let task = self.task_mut(t);
        let woken_at = std::mem::replace(&mut task.woken_at, NEVER);
        Resumed {
            waited: (woken_at != NEVER).then(|| now - woken_at),
            wants_lock: task.wants != NONE,
            has_work: task.has_work(),
            steps: task.steps(),
        }
    }

    /// Reads the recorded CPU of a task's coming run, and when that began, where the script says one.
    #[inline]
    pub(crate) fn take_hint(&mut self, t: u32) -> Option<(u32, u64)> {
        let Cursor::Recorded(replay) = &mut self.task_mut(t).cursor else { return None };
        let mut hint = None;
        while let Some((cpu, at_ns)) = replay.script.on_cpu(&mut replay.at) {
            hint = Some((u32::from(cpu), at_ns.saturating_add(replay.offset)));
        }
        hint
    }

    /// A task whose recorded program begins with a wait takes that step: it needs no CPU for it.
    pub(crate) fn begin_waiting(&mut self, t: u32, forked: bool) -> Option<TaskStep> {
        let replay = match &mut self.tasks[t as usize].cursor {
            Cursor::Recorded(replay) => replay,
            Cursor::Pattern(at) if forked => {
                // Its first step is to wait, as the file format says.
                at.next(0, &mut self.jobs);
                self.wait(t, 0);
                return Some(TaskStep::Waits);
            }
            _ => return None,
        };
        let before = replay.at;
        let step = match replay.step(replay.script)? {
            Op::Block => TaskStep::Waits,
            Op::SleepUntil(at) => TaskStep::Sleeps(at),
            _ => {
                replay.at = before;
                return None;
            }
        };
        match step {
            TaskStep::Sleeps(at) => {
                self.task_mut(t).state = RunState::Sleeping;
                if let Some(work) = &mut self.work {
                    work.sleeps(t, 0, at, true);
                }
            }
            _ => self.wait(t, 0),
        }
        Some(step)
    }

    /// Takes the next step of a task with a recorded program.
    #[inline(always)]
    pub(crate) fn recorded_step(&mut self, t: u32, now: u64, script: &Script) -> TaskStep {
        self.step(t, now, |task, _, _| match &mut task.cursor {
            Cursor::Recorded(replay) => replay.step(script),
            _ => None,
        })
    }

    /// Takes the next step of a task with a generated program.
    #[inline(always)]
    pub(crate) fn generated_step(&mut self, t: u32, now: u64) -> TaskStep {
        self.step(t, now, |task, now, jobs| match &mut task.cursor {
            Cursor::Pattern(at) => at.next(now, jobs),
            _ => None,
        })
    }

    /// Takes the step that `next` reads from the task's program; without one the task ends.
    #[inline(always)]
    fn step(
        &mut self,
        t: u32,
        now: u64,
        next: impl Fn(&mut TaskState<'a>, u64, &mut [u64]) -> Option<Op>,
    ) -> TaskStep {
        let task = &mut self.tasks[t as usize];
        let Some(op) = next(task, now, &mut self.jobs) else { return self.program_is_over(t, now) };
        match op {
            Op::Run { cycles, stall_ns } => {
                if let Some(pieces) = &mut self.pieces {
                    pieces[t as usize] = (cycles, stall_ns);
                }
                task.left_cycles = float(cycles);
                task.left_stall = float(stall_ns);
                if task.share.is_some() {
                    task.divide();
                }
                task.piece_cycles = task.left_cycles;
                self.stalls_begun += task.left_stall;
                task.left_stall += std::mem::take(&mut task.overhead) * self.quickness;
                if task.has_work() { TaskStep::Works } else { TaskStep::Nothing }
            }
            Op::SleepFor(ns) => {
                let due = now.saturating_add(ns.max(1));
                self.tell_sleep(t, now, due, true);
                self.sleep(t, due)
            }
            Op::SleepUntil(at) => {
                if let Some(work) = &mut self.work {
                    work.period(t, now, at);
                }
                self.tell_sleep(t, now, at, true);
                if at <= now { TaskStep::Nothing } else { self.sleep(t, at) }
            }
            Op::Io(ns) => {
                task.state = RunState::Device;
                let due = now.saturating_add(ns.max(1));
                self.devices.push(Reverse((due, t)));
                self.tell_sleep(t, now, due, false);
                TaskStep::WaitsForDevice
            }
            Op::Block if task.tokens > 0 => {
                task.tokens -= 1;
                if let Some(work) = &mut self.work {
                    work.passes(t, now);
                }
                TaskStep::Nothing
            }
            Op::Block => {
                self.wait(t, now);
                TaskStep::Waits
            }
            Op::Wake(TaskId(other)) => TaskStep::Wakes(other),
            Op::OnCpu { cpu, at_ns } => TaskStep::IsOn { cpu: u32::from(cpu), at_ns },
            Op::Lock(l) => {
                task.wants = l;
                if self.try_lock(t) { TaskStep::Nothing } else { TaskStep::Waits }
            }
            Op::Unlock(l) => match self.locks[l as usize].give_back() {
                None => TaskStep::Nothing,
                Some(next) => {
                    self.active += 1;
                    TaskStep::HandsTo(next)
                }
            },
        }
    }

    /// A task sleeps on a timer.
    #[inline(always)]
    fn sleep(&mut self, t: u32, due: u64) -> TaskStep {
        self.task_mut(t).state = RunState::Sleeping;
        TaskStep::Sleeps(due)
    }

    #[inline(always)]
    fn tell_sleep(&mut self, t: u32, now: u64, due: u64, timer: bool) {
        if let Some(work) = &mut self.work {
            work.sleeps(t, now, due, timer);
        }
    }

    /// A task has taken its program's last step.
    #[inline(never)]
    fn program_is_over(&mut self, t: u32, now: u64) -> TaskStep {
        let span_ns = self.span_ns.max(1);
        let task = self.task_mut(t);
        match &mut task.cursor {
            Cursor::Recorded(replay) if task.again => {
                // Whole spans later, and not before the span in which it is late has passed.
                let spans = (now.saturating_sub(replay.offset) / span_ns).max(1);
                replay.offset = replay.offset.saturating_add(spans.saturating_mul(span_ns));
                replay.at = ScriptPosition::default();
                let due = replay.offset;
                if let Some(work) = &mut self.work {
                    work.repeats(t, now);
                }
                self.tell_sleep(t, now, due, true);
                if due <= now { TaskStep::Nothing } else { self.sleep(t, due) }
            }
            _ => {
                task.state = RunState::Ended;
                self.active -= 1;
                if let Some(work) = &mut self.work {
                    work.ends(t, now);
                }
                TaskStep::Ends
            }
        }
    }

    /// A task blocks until another wakes it. A recording's last block is nobody's to end: the program is over with it.
    fn wait(&mut self, t: u32, now: u64) {
        self.block(t);
        if let Some(work) = &mut self.work {
            match &self.tasks[t as usize].cursor {
                Cursor::Recorded(replay) if replay.script.is_over(replay.at) => work.ends(t, now),
                _ => work.blocks(t, now),
            }
        }
    }

    /// Takes the wanted lock, or joins those who wait for it.
    pub(crate) fn try_lock(&mut self, t: u32) -> bool {
        let want = self.task(t).wants;
        let taken = self.locks[want as usize].take(t);
        if taken {
            self.task_mut(t).wants = NONE;
        } else {
            self.block(t);
        }
        taken
    }

    /// Until a wake-up: such a task alone keeps nothing going.
    fn block(&mut self, t: u32) {
        self.task_mut(t).state = RunState::Blocked;
        self.active -= 1;
    }

    /// A task wakes another, `t`; true when that becomes runnable. A wake-up that comes before its block waits for it.
    pub(crate) fn wake(&mut self, t: u32, waker: u32, now: u64) -> bool {
        let Some(task) = self.tasks.get_mut(t as usize) else { return false };
        if task.fresh & task.born {
            task.parent = waker;
        }
        // A lock's waiter is woken by whoever unlocks, no one else.
        let wakes = task.state == RunState::Blocked && task.wants == NONE;
        self.active += usize::from(wakes);
        task.tokens += u32::from(!wakes);
        if let Some(work) = &mut self.work {
            if wakes {
                work.woken(t, waker, now);
            } else {
                work.woken_early(t, waker);
            }
        }
        wakes
    }

    /// A task is runnable again since `woken_at`; [`NEVER`] where that latency is of no interest.
    #[inline]
    pub(crate) fn runnable(&mut self, t: u32, woken_at: u64) {
        let task = self.task_mut(t);
        task.state = RunState::Runnable;
        task.woken_at = woken_at;
    }

    /// The speed policy's process works for so long.
    pub(crate) fn works(&mut self, t: u32, ns: f64) {
        // It computes: the memory's clock does not slow it.
        let quickness = self.quickness;
        self.task_mut(t).left_stall += ns * quickness;
    }

    /// The speed policy's process sleeps.
    pub(crate) fn sleeps(&mut self, t: u32) {
        self.task_mut(t).state = RunState::Sleeping;
    }

    /// A task that could run waits for an idle CPU to find it then.
    pub(crate) fn put_off(&mut self, t: u32, at: u64) {
        self.devices.push(Reverse((at, t)));
    }

    /// What is due now and belongs to no CPU: first devices, then interrupts from outside.
    pub(crate) fn due(&mut self, now: u64) -> Option<Due> {
        if let Some(&Reverse((at, t))) = self.devices.peek()
            && at <= now
        {
            self.devices.pop();
            let found = self.task(t).state == RunState::Runnable;
            return Some(if found { Due::Found(t) } else { Due::Io(t) });
        }
        let (first, rest) = self.interrupts.split_first().filter(|(i, _)| i.at_ns <= now)?;
        self.interrupts = rest;
        Some(Due::Interrupt(*first))
    }

    /// When something is due next that belongs to no CPU.
    pub(crate) fn next_due(&self, now: u64) -> u64 {
        let next = self.devices.peek().map_or(NEVER, |r| r.0.0);
        self.interrupts.first().map_or(next, |i| i.at_ns.max(now).min(next))
    }

    /// The workload is done when no task of it runs, could run, or will by itself.
    #[inline]
    pub(crate) fn check_done(&mut self, now: u64) {
        if self.active == 0 && self.done_at.is_none() {
            self.done_at = Some(now);
        }
    }

    /// When the work was done.
    #[inline]
    pub(crate) fn done_at(&self) -> Option<u64> {
        self.done_at
    }

    /// The tasks that are left, where all of them wait to be woken by another; none where any does something.
    pub(crate) fn waiting(&self) -> Vec<usize> {
        let is_left = |t: usize| {
            self.tasks[t].state != RunState::Ended && self.work.as_ref().is_none_or(|w| w.is_unfinished(t))
        };
        let waits = |t: &usize| self.tasks[*t].state == RunState::Blocked && self.tasks[*t].wants == NONE;
        let left: Vec<usize> = (0..self.tasks.len()).filter(|&t| is_left(t)).collect();
        if left.iter().all(waits) { left } else { Vec::new() }
    }

    /// Whether all of the work has been carried out: the foreground's where that is followed, else everybody's.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        match &self.work {
            None => self.done_at.is_some(),
            Some(work) => work.is_done(),
        }
    }

    /// Whether the last of the foreground that ends has ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        match &self.work {
            None => self.done_at.is_some(),
            Some(work) => work.has_ended(),
        }
    }
}
