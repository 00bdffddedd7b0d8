//! What a CPU runs next: queueing, preemption, slices, and the end of a run.

use super::Simulation;
use crate::NONE;
use crate::calendar::NEVER;
use crate::clock::Source;
use crate::cpu::Phase;
use crate::govern::idle::Cause;
use crate::sched::Contest;
use crate::tasks::RunState;

/// Period of the balance while tasks wait and CPUs idle: one tick of a 250 Hz kernel.
const BALANCE_NS: u64 = 4_000_000;

impl Simulation<'_> {
    /// Queues a task on a CPU. `here`: by a CPU that can set that one's clock.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, c: usize, t: u32, here: bool) {
        self.tell_queued(c, t);
        self.sched.enqueue(c, t, self.clock.now());
        match self.cpus[c].phase {
            Phase::Idle => self.leave_idle(c, Cause::Work),
            Phase::Task => self.waits_behind(c, t),
            _ => {}
        }
        self.hook_from(c, here);
    }

    /// A task waits behind a running one: it preempts that, or the running one gets a slice.
    pub(super) fn waits_behind(&mut self, c: usize, t: u32) {
        let contest = self.sched.contest(c, t, self.cpus[c].current, self.clock.now());
        if contest != Contest::WaitsInLine {
            self.gives_way(c, contest);
        }
    }

    /// The running task gives way to one that was queued, now or at the end of a slice.
    // Out of line: what only waits in line needs none of its registers.
    #[inline(never)]
    fn gives_way(&mut self, c: usize, contest: Contest) {
        match contest {
            Contest::Preempts => {
                self.bank(c);
                self.requeue_current(c);
                self.dispatch(c);
            }
            Contest::Shares => self.share(c),
            Contest::WaitsInLine => {}
        }
        self.arm(c);
    }

    /// While others wait, a running task has a slice, and somebody looks for a better place for them.
    #[inline(always)]
    fn share(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        if !self.sched.nobody_waits(c)
            && let Some(end) = self.sched.share(c, s.current, self.clock.now(), s.slice_end)
        {
            s.slice_end = end;
            self.arm_balance();
        }
    }

    /// Sees to it that somebody looks again while tasks wait.
    pub(super) fn arm_balance(&mut self) {
        if self.clock.at(Source::Balance) == NEVER {
            self.clock.set(Source::Balance, self.clock.now() + BALANCE_NS);
        }
    }

    /// Charges the running task for its time since the last charge.
    #[inline(always)]
    fn charge_current(&mut self, c: usize) {
        self.sched.charge(c, self.cpus[c].current, self.clock.now());
    }

    /// Puts the running task back on its queue; returns it.
    fn requeue_current(&mut self, c: usize) -> u32 {
        self.note_run(c, false);
        let s = &mut self.cpus[c];
        let t = std::mem::replace(&mut s.current, NONE);
        s.phase = Phase::Switching;
        s.slice_end = NEVER;
        self.tell_work(c, t);
        self.tell_stops(c, t);
        self.sched.requeue(c, t, self.clock.now());
        t
    }

    /// Takes the running task off its CPU, which goes on with its next or idles.
    pub(super) fn stop_running(&mut self, c: usize) -> Option<u32> {
        self.charge_current(c);
        self.bank(c);
        let t = self.requeue_current(c);
        let t = self.sched.dequeue_last(c, t)?;
        self.dispatch(c);
        self.arm(c);
        Some(t)
    }

    /// Gives a CPU something to do: a queued task, then one waiting elsewhere, then interrupt work; else it idles.
    pub(super) fn dispatch(&mut self, c: usize) {
        self.cpus[c].phase = Phase::Switching;
        while let Some(t) = self.sched.pick(c).or_else(|| self.pull(c)) {
            if self.go_on(c, t) {
                return;
            }
        }
        let s = &mut self.cpus[c];
        if std::mem::take(&mut s.enters_by_work) {
            s.kernel_ns += self.idle_work.enter_ns;
        }
        if s.kernel_ns > 0 {
            s.phase = Phase::Kernel;
            // Linux's idle_cpu() asks who runs, not what an interrupt does meanwhile.
            if self.idle_work.enter_ns > 0 && !s.in_thread && !std::mem::replace(&mut s.in_idle_loop, true) {
                self.sched.idles(c, self.clock.now());
            }
            return self.begin_run(c);
        }
        self.enter_idle(c);
    }

    /// Lets a task go on from where it was; false when it has nothing to compute.
    #[inline]
    fn go_on(&mut self, c: usize, t: u32) -> bool {
        let now = self.clock.now();
        let s = &mut self.cpus[c];
        s.in_thread = false;
        if std::mem::take(&mut s.in_idle_loop) {
            self.sched.wakes(c, now);
        }
        let arrives = self.sched.arrives(t, c);
        if arrives {
            self.migrate(t, c);
        }
        self.sched.set_cpu(t, c);
        self.tell_runs(c, t);
        let task = self.tasks.resume(t, now);
        if let Some(waited) = task.waited {
            self.record.wake_latency.record(waited);
            if let Some(keeper) = &mut self.keeper {
                keeper.waited(waited);
            }
        }
        let works = if task.wants_lock {
            self.lock_and_go_on(t, c, &task)
        } else {
            task.has_work || self.go_further(t, c, task.steps)
        };
        if !works {
            self.tell_stops(c, t);
            self.tasks.check_done(now);
            return false;
        }
        let s = &mut self.cpus[c];
        s.current = t;
        s.phase = Phase::Task;
        s.slice_end = NEVER;
        let kernel = std::mem::take(&mut s.kernel_ns);
        if kernel > 0 {
            self.tasks.charge(t, kernel);
        }
        if self.governor.follows_tasks() {
            self.follow(c, t, false);
        }
        self.note_run(c, true);
        let others_wait = self.sched.starts(c, now);
        self.begin_run(c);
        if others_wait {
            self.share(c);
        }
        if arrives {
            self.hook(c);
        }
        true
    }

    /// The running piece is done.
    #[inline]
    pub(super) fn run_ended(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        s.run_end = NEVER;
        if s.phase == Phase::Kernel {
            s.kernel_ns = 0;
            s.in_thread = false;
            return self.dispatch(c);
        }
        s.phase = Phase::Switching;
        let t = s.current;
        let (cycles, steps) = self.tasks.finish_piece(t);
        self.record.cycles += cycles;
        self.tell_work(c, t);
        self.charge_current(c);
        if self.go_further(t, c, steps) {
            self.cpus[c].phase = Phase::Task;
            self.share(c);
            return self.time_run(c);
        }
        self.tell_stops(c, t);
        if self.governor.follows_tasks() {
            self.leave_off(t);
        }
        let s = &mut self.cpus[c];
        s.current = NONE;
        s.slice_end = NEVER;
        self.note_run(c, false);
        self.tasks.check_done(self.clock.now());
        self.hook(c);
        if self.tasks.state(t) == RunState::Ended {
            self.leave_for_good(c, t);
        }
        self.dispatch(c);
    }

    /// What a task that runs no further leaves to its CPU's load.
    #[inline(never)]
    fn leave_off(&mut self, t: u32) {
        let load = self.sched.load(t);
        match self.tasks.state(t) {
            // Whoever only lets another go first has not slept: nothing new is expected of it.
            RunState::Runnable | RunState::Ended => {}
            _ => load.sleep(),
        }
    }

    /// A task that has ended takes its load along once it is off its CPU (`remove_entity_load_avg()`): the governor, which was
    /// asked when it was dequeued, still saw it.
    fn leave_for_good(&mut self, c: usize, t: u32) {
        self.sched.ends(t, c);
        self.governor.task_moved(c);
        if self.governor.follows_tasks() {
            self.governor.load_moved(c, -(self.sched.load(t).util() as i32));
            // At once: what goes now has not faded with what stays.
            self.tell_load(c);
        }
    }

    /// The slice is over: whoever is furthest behind goes next.
    pub(super) fn slice_ended(&mut self, c: usize) {
        self.charge_current(c);
        self.cpus[c].slice_end = NEVER;
        if self.sched.nobody_waits(c) {
            self.sched.uncrowd(c);
            return;
        }
        self.bank(c);
        self.requeue_current(c);
        self.dispatch(c);
    }
}
