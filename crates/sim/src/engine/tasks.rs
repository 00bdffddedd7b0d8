//! A task's steps.

use super::load::TaskLoad;
use super::{CpuState, NEVER, NONE, Phase, Simulation, Source};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use wattwise_model::workload::{Op, Program, Script, ScriptPosition, TaskId, pattern::PatternCursor};

/// Where a task is in its program.
enum Cursor<'a> {
    Recorded(&'a Script, ScriptPosition),
    Pattern(PatternCursor),
    /// The speed policy's own process: sleep, decide, and so on.
    Daemon,
}

/// Where a task's steps come from.
#[derive(Clone, Copy)]
pub(super) enum Steps<'a> {
    Recorded(&'a Script),
    Generated,
    Daemon,
}

/// A task as it runs.
pub(super) struct TaskState<'a> {
    cursor: Cursor<'a>,
    /// What is left of the current piece.
    left_cycles: f64,
    left_stall: f64,
    /// Time to add to the next piece, in ns: a migration, interrupts.
    overhead: f64,
    /// The piece's cycles, credited when it is done.
    piece_cycles: f64,
    /// CPU of its last run, and of its timers.
    pub(super) cpu: u32,
    /// CPU of its next run as recorded.
    pub(super) hint: u32,
    /// When that run began as recorded, in ns.
    pub(super) order: u64,
    /// Fair share: weighted run time.
    pub(super) vruntime: u64,
    /// `1024 * 1024 / weight`: weighted run time per 1024 ns.
    pub(super) inverse_weight: u32,
    pub(super) realtime: bool,
    /// It has not been on any CPU: its first placement is no migration.
    pub(super) fresh: bool,
    /// When it became runnable; [`NEVER`] while that latency is of no interest.
    pub(super) woken_at: u64,
    /// When it was queued.
    pub(super) queued_at: u64,
    /// Wake-ups that came before their block.
    tokens: u32,
    /// Who started it: the first to wake it, where that was within the run.
    pub(super) parent: u32,
    /// Where a policy follows it.
    pub(super) load: TaskLoad,
    /// Started within the run: it gets a credit.
    pub(super) born: bool,
    pub(super) state: State,
    /// A lock to win before going on.
    wants: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Running or queued.
    Runnable,
    Sleeping,
    /// On a device: (the CPU whose I/O wait it is).
    Device,
    /// Until a wake-up.
    Blocked,
    Ended,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Work for the CPU.
    Works,
    /// A wait, or the task's end.
    Waits,
    /// Nothing that takes time.
    Nothing,
}

/// Steps until one takes time; true when that is work.
#[inline(always)]
fn until_it_counts(mut step: impl FnMut() -> Taken) -> bool {
    loop {
        match step() {
            Taken::Works => return true,
            Taken::Waits => return false,
            Taken::Nothing => {}
        }
    }
}

/// A lock.
#[derive(Default)]
pub(super) struct LockState {
    held: bool,
    waiters: VecDeque<u32>,
}

/// The tasks that sleep on a CPU's timers: a few in slots, in no order, and the rest in a heap. Most CPUs have few.
/// Where one belongs among those cannot be foreseen; the first of eight numbers is found without a branch.
pub(super) struct Timers {
    /// The first; [`Timer::NONE`] without any.
    first: Timer,
    slots: [Timer; Timers::SLOTS],
    /// A bit for each slot without a timer.
    free: u8,
    /// Those for which there was no slot.
    more: BinaryHeap<Reverse<Timer>>,
}

/// When a timer fires, whose it is, and in which slot it is kept: one number, the least is the first to fire and of
/// those at the same time the one of the lowest task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer(u128);

impl Timer {
    /// Never fires.
    const NONE: Timer = Timer(u128::MAX);

    #[inline(always)]
    fn new(at: u64, t: u32, slot: u32) -> Timer {
        Timer(u128::from(at) << 64 | u128::from(t) << 32 | u128::from(slot))
    }

    #[inline(always)]
    fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline(always)]
    fn task(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn slot(self) -> usize {
        self.0 as u32 as usize
    }
}

impl Timers {
    const SLOTS: usize = 8;

    pub(super) fn new() -> Timers {
        let slots = [Timer::NONE; Timers::SLOTS];
        Timers { first: Timer::NONE, slots, free: u8::MAX, more: BinaryHeap::new() }
    }

    /// When the first one fires; [`NEVER`] without any.
    #[inline]
    pub(super) fn first_at(&self) -> u64 {
        self.first.at()
    }

    #[inline]
    fn push(&mut self, at: u64, t: u32) {
        // `SLOTS` when none is free.
        let slot = self.free.trailing_zeros();
        let timer = Timer::new(at, t, slot);
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = timer,
            None => self.more.push(Reverse(timer)),
        }
        self.free &= self.free.wrapping_sub(1);
        self.first = self.first.min(timer);
    }

    /// The task whose timer is the first of those that are due.
    #[inline]
    fn pop_due(&mut self, now: u64) -> Option<u32> {
        if self.first.at() > now {
            return None;
        }
        let due = self.first;
        match self.slots.get_mut(due.slot()) {
            Some(place) => {
                *place = Timer::NONE;
                self.free |= 1 << due.slot();
            }
            None => _ = self.more.pop(),
        }
        // In pairs and pairs of pairs: one after the other, each would wait for the one before.
        let pair = |i: usize| self.slots[i].min(self.slots[i + 1]);
        self.first = pair(0).min(pair(2)).min(pair(4).min(pair(6)));
        if let Some(Reverse(next)) = self.more.peek() {
            self.first = self.first.min(*next);
        }
        Some(due.task())
    }
}

impl<'a> TaskState<'a> {
    fn new(cursor: Cursor<'a>, cpu: u32, nice: i8, realtime: bool, born: bool) -> TaskState<'a> {
        TaskState {
            cursor,
            left_cycles: 0.0,
            left_stall: 0.0,
            overhead: 0.0,
            piece_cycles: 0.0,
            cpu,
            hint: NONE,
            order: 0,
            vruntime: 0,
            inverse_weight: inverse_weight(nice),
            realtime,
            fresh: true,
            woken_at: NEVER,
            queued_at: 0,
            tokens: 0,
            parent: NONE,
            load: TaskLoad::default(),
            born,
            state: State::Runnable,
            wants: NONE,
        }
    }

    /// Keeps this share of what is left.
    #[inline]
    pub(super) fn shrink(&mut self, share: f64) {
        self.left_cycles *= share;
        self.left_stall *= share;
    }

    /// Time for what is left, in ns.
    #[inline]
    pub(super) fn need(&self, ns_per_cycle: f64) -> f64 {
        self.left_cycles * ns_per_cycle + self.left_stall
    }

    /// Adds time that no clock shortens.
    #[inline]
    pub(super) fn charge(&mut self, ns: u64) {
        if self.has_work() {
            self.left_stall += ns as f64;
        } else {
            self.overhead += ns as f64;
        }
    }

    /// The piece is done; returns its cycles.
    #[inline]
    pub(super) fn finish_piece(&mut self) -> f64 {
        self.left_cycles = 0.0;
        self.left_stall = 0.0;
        std::mem::take(&mut self.piece_cycles)
    }

    #[inline]
    pub(super) fn wants_lock(&self) -> bool {
        self.wants != NONE
    }

    #[inline(always)]
    pub(super) fn steps(&self) -> Steps<'a> {
        match self.cursor {
            Cursor::Recorded(script, _) => Steps::Recorded(script),
            Cursor::Pattern(_) => Steps::Generated,
            Cursor::Daemon => Steps::Daemon,
        }
    }

    /// A piece of which nothing is left counts until its end has been seen. None of the three is negative.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.left_cycles + self.left_stall + self.piece_cycles > 0.0
    }
}

/// A length, of 292 years at most: the processor has no conversion of unsigned integers.
#[inline(always)]
fn float(x: u64) -> f64 {
    x.min(i64::MAX as u64) as i64 as f64
}

/// CPU shares halve about every three nice levels: 1.25 times less each, as POSIX systems do it.
fn inverse_weight(nice: i8) -> u32 {
    let mut weight = 1024.0f64;
    for _ in 0..nice.unsigned_abs().min(20) {
        weight = if nice > 0 { weight / 1.25 } else { weight * 1.25 };
    }
    (1024.0 * 1024.0 / weight) as u32
}

impl<'a> Simulation<'a> {
    /// Lets every task take its first steps at time 0.
    pub(super) fn start_tasks(&mut self) {
        let workload = self.workload;
        let cpus = self.cpus.len() as u32;
        for (t, task) in workload.tasks.iter().enumerate() {
            let cursor = match &task.program {
                Program::Recorded(s) => Cursor::Recorded(s, ScriptPosition::default()),
                Program::Pattern(p) => Cursor::Pattern(PatternCursor::new(p)),
            };
            self.tasks.push(TaskState::new(cursor, t as u32 % cpus, task.nice, task.realtime, task.born));
        }
        self.active = workload.tasks.len();
        if let Some(first) = self.governor.daemon_first_ns() {
            let mut daemon = TaskState::new(Cursor::Daemon, 0, 0, false, false);
            daemon.state = State::Sleeping;
            self.tasks.push(daemon);
            self.sleep_on(0, self.governor.daemon, first);
        }
        // Whoever begins by waiting must be found waiting by those who run at once.
        let ready: Vec<u32> = (0..workload.tasks.len() as u32).filter(|&t| !self.begins_waiting(t)).collect();
        for t in ready {
            self.make_runnable(t, 0);
        }
        self.check_done();
    }

    /// A task whose first step is to wait needs no CPU for it; true when it was one.
    fn begins_waiting(&mut self, t: u32) -> bool {
        match self.peek_wait(t) {
            Some(Op::Block) => {
                self.skip_op(t);
                self.block(t);
            }
            Some(Op::SleepUntil(at)) => {
                self.skip_op(t);
                let cpus = self.cpus.len();
                let task = &mut self.tasks[t as usize];
                task.state = State::Sleeping;
                if (task.hint as usize) < cpus {
                    task.cpu = task.hint;
                }
                let cpu = task.cpu as usize;
                self.sleep_on(cpu, t, at);
            }
            _ => return false,
        }
        true
    }

    /// The first op of a recorded program, placement hints taken.
    fn peek_wait(&mut self, t: u32) -> Option<Op> {
        self.take_hint(t);
        let Cursor::Recorded(script, at) = self.tasks[t as usize].cursor else { return None };
        script.step(&mut { at })
    }

    /// Passes over the op that [`Simulation::peek_wait`] has shown.
    fn skip_op(&mut self, t: u32) {
        if let Cursor::Recorded(script, at) = &mut self.tasks[t as usize].cursor {
            script.step(at);
        }
    }

    /// Reads the recorded CPU of the coming run, where the script says one.
    #[inline]
    pub(super) fn take_hint(&mut self, t: u32) {
        let task = &mut self.tasks[t as usize];
        let Cursor::Recorded(script, at) = &mut task.cursor else { return };
        while let Some((cpu, at_ns)) = script.on_cpu(at) {
            task.hint = u32::from(cpu);
            task.order = at_ns;
        }
    }

    /// Takes the lock that a task wants and goes on with it; true when that is work for CPU `c`.
    #[inline(never)]
    pub(super) fn lock_and_go_on(&mut self, t: u32, c: usize) -> bool {
        let task = &self.tasks[t as usize];
        let (works, steps) = (task.has_work(), task.steps());
        self.try_lock(t) && (works || self.go_further(t, c, steps))
    }

    /// Takes the steps of a task that has done its piece and wants no lock, until one of them takes time; true when that
    /// is work for CPU `c`.
    #[inline(always)]
    pub(super) fn go_further(&mut self, t: u32, c: usize, steps: Steps<'a>) -> bool {
        match steps {
            Steps::Recorded(script) => self.take_recorded_steps(t, c, script),
            Steps::Generated => self.take_generated_steps(t, c),
            Steps::Daemon => self.daemon_step(c),
        }
    }

    #[inline(never)]
    fn take_recorded_steps(&mut self, t: u32, c: usize, script: &Script) -> bool {
        until_it_counts(|| {
            self.take_step(t, c, |task, _, _| match &mut task.cursor {
                Cursor::Recorded(_, at) => script.step(at),
                _ => None,
            })
        })
    }

    #[inline(always)]
    fn take_generated_steps(&mut self, t: u32, c: usize) -> bool {
        until_it_counts(|| self.take_generated_step(t, c))
    }

    // Out of line and without the loop: most steps take time, and a loop would set up its constants for each.
    #[inline(never)]
    fn take_generated_step(&mut self, t: u32, c: usize) -> Taken {
        self.take_step(t, c, |task, now, jobs| match &mut task.cursor {
            Cursor::Pattern(at) => at.next(now, jobs),
            _ => None,
        })
    }

    /// Takes the step that `next` reads from the task's program; without one the task ends.
    #[inline(always)]
    fn take_step(
        &mut self,
        t: u32,
        c: usize,
        next: impl Fn(&mut TaskState<'a>, u64, &mut [u64]) -> Option<Op>,
    ) -> Taken {
        let task = &mut self.tasks[t as usize];
        let Some(op) = next(task, self.now, &mut self.jobs) else {
            task.state = State::Ended;
            self.active -= 1;
            self.let_go_of(t, c);
            return Taken::Waits;
        };
        match op {
            Op::Run { cycles, stall_ns } => {
                task.left_cycles = float(cycles);
                task.left_stall = float(stall_ns) + std::mem::take(&mut task.overhead);
                task.piece_cycles = task.left_cycles;
                return if task.has_work() { Taken::Works } else { Taken::Nothing };
            }
            Op::SleepFor(ns) => {
                task.state = State::Sleeping;
                task.cpu = c as u32;
                self.sleep_on(c, t, self.now.saturating_add(ns.max(1)));
                return Taken::Waits;
            }
            Op::SleepUntil(at) if at <= self.now => {}
            Op::SleepUntil(at) => {
                task.state = State::Sleeping;
                task.cpu = c as u32;
                self.sleep_on(c, t, at);
                return Taken::Waits;
            }
            Op::Io(ns) => {
                task.state = State::Device;
                self.cpus[c].idle.iowaiters += 1;
                self.devices.push(Reverse((self.now.saturating_add(ns.max(1)), t)));
                self.arm_devices();
                return Taken::Waits;
            }
            Op::Block if task.tokens > 0 => task.tokens -= 1,
            Op::Block => {
                self.block(t);
                return Taken::Waits;
            }
            Op::Wake(TaskId(other)) => self.wake_from(other, t, c),
            Op::OnCpu { cpu, at_ns } => {
                task.hint = u32::from(cpu);
                task.order = at_ns;
                if self.yields(t, c) {
                    // It waits its turn: who looks at the queue now must not find it twice.
                    if self.cpus[c].current == t {
                        self.cpus[c].current = NONE;
                    }
                    self.put_off(t, c);
                    return Taken::Waits;
                }
            }
            Op::Lock(l) => {
                task.wants = l;
                if !self.try_lock(t) {
                    return Taken::Waits;
                }
            }
            Op::Unlock(l) => {
                self.locks[l as usize].held = false;
                if let Some(next) = self.locks[l as usize].waiters.pop_front() {
                    self.active += 1;
                    self.make_runnable(next, c);
                }
            }
        }
        Taken::Nothing
    }

    /// The policy's process: having slept it works, having worked it decides, having decided it sleeps.
    fn daemon_step(&mut self, c: usize) -> bool {
        if self.governor.daemon_woke {
            self.governor.daemon_woke = false;
            let ns = self.governor.cost_ns() as f64 * self.slowest_factor(c);
            self.tasks[self.governor.daemon as usize].left_stall += ns.max(1.0);
            return true;
        }
        let again = self.poll_governor();
        let daemon = self.governor.daemon;
        let task = &mut self.tasks[daemon as usize];
        task.state = State::Sleeping;
        task.cpu = c as u32;
        self.governor.daemon_woke = true;
        self.sleep_on(c, daemon, self.now + again);
        false
    }

    /// Takes the wanted lock, or joins those who wait for it.
    fn try_lock(&mut self, t: u32) -> bool {
        let want = self.tasks[t as usize].wants;
        let lock = &mut self.locks[want as usize];
        if lock.held {
            lock.waiters.push_back(t);
            self.block(t);
            return false;
        }
        lock.held = true;
        self.tasks[t as usize].wants = NONE;
        true
    }

    /// Until a wake-up: such a task alone keeps nothing going.
    fn block(&mut self, t: u32) {
        self.tasks[t as usize].state = State::Blocked;
        self.active -= 1;
    }

    /// A task sleeps on a timer of its CPU.
    #[inline(always)]
    fn sleep_on(&mut self, c: usize, t: u32, at: u64) {
        let s: &mut CpuState = &mut self.cpus[c];
        s.timers.push(at, t);
        if s.phase != Phase::Switching {
            self.arm(c);
        }
    }

    /// A task wakes another, `t`, from CPU `c`. A wake-up that comes before its block waits for it.
    fn wake_from(&mut self, t: u32, waker: u32, c: usize) {
        let Some(task) = self.tasks.get_mut(t as usize) else { return };
        if task.fresh & task.born {
            task.parent = waker;
        }
        // A lock's waiter is woken by whoever unlocks, no one else.
        if task.state == State::Blocked && task.wants == NONE {
            self.active += 1;
            self.make_runnable(t, c);
        } else {
            task.tokens += 1;
        }
    }

    /// Timers of CPU `c` that are due.
    pub(super) fn timers_fire(&mut self, c: usize) {
        // The CPU that holds a timer takes its interrupt, wherever the task goes.
        while let Some(t) = self.cpus[c].timers.pop_due(self.now) {
            self.make_runnable(t, c);
            let ns = self.machine.interrupt_ns;
            if ns > 0 && self.cpus[c].phase == Phase::Idle {
                self.interrupt(c, ns);
            }
        }
    }

    /// Devices that are done.
    pub(super) fn devices_done(&mut self) {
        while let Some(&Reverse((at, t))) = self.devices.peek() {
            if at > self.now {
                break;
            }
            self.devices.pop();
            let c = self.tasks[t as usize].cpu as usize;
            if self.tasks[t as usize].state == State::Runnable {
                self.move_on(t, c);
                continue;
            }
            self.cpus[c].idle.iowaiters -= 1;
            self.cpus[c].idle.io_wake = true;
            self.cpus[c].moved = true;
            self.make_runnable(t, c);
        }
        while let Some((first, rest)) = self.interrupts.split_first().filter(|(i, _)| i.at_ns <= self.now) {
            self.interrupts = rest;
            let c = usize::from(first.cpu);
            if self.cpus.get(c).is_some_and(|s| s.phase == Phase::Idle) {
                self.interrupt(c, first.ns);
            }
        }
        self.arm_devices();
    }

    pub(super) fn arm_devices(&mut self) {
        let next = self.devices.peek().map_or(NEVER, |r| r.0.0);
        let next = self.interrupts.first().map_or(next, |i| i.at_ns.max(self.now).min(next));
        let source = self.source(Source::Devices);
        self.calendar.set(source, next);
    }

    /// Puts a task on a run queue.
    fn make_runnable(&mut self, t: u32, from: usize) {
        let task = &mut self.tasks[t as usize];
        task.state = State::Runnable;
        if t != self.governor.daemon {
            task.woken_at = self.now;
            self.wakeups += 1;
            if self.governor.follows_tasks() {
                self.follow(from, t, false);
            }
        }
        self.place(t, from);
    }

    /// The workload is done when no task of it runs, could run, or will by itself.
    #[inline]
    pub(super) fn check_done(&mut self) {
        if self.active == 0 && self.done_at.is_none() {
            self.done_at = Some(self.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_of_time_then_task() {
        let mut timers = Timers::new();
        let mut plain: Vec<(u64, u32)> = Vec::new();
        let mut x = 88172645463325252u64;
        let mut now = 0;
        for t in 0..20_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let (at, t) = (now + x % 512, t % 97);
            timers.push(at, t);
            plain.push((at, t));
            // From none to some forty timers at once and back.
            now += (x >> 20) % 16 * u64::from(t % 50 < 25);
            plain.sort_unstable();
            while let Some(t) = timers.pop_due(now) {
                let first = plain.remove(0);
                assert!(first.0 <= now);
                assert_eq!(t, first.1);
            }
            assert_eq!(timers.first_at(), plain.first().map_or(NEVER, |p| p.0));
        }
    }
}
