//! A task's steps and what each leads to: sleeps, wake-ups, moves, ends. Timers and devices that are due.

use super::Simulation;
use crate::NONE;
use crate::calendar::NEVER;
use crate::clock::Source;
use crate::cpu::Phase;
use crate::record::Waker;
use crate::tasks::{Due, Resumed, Steps, TaskStep};
use wattwise_model::workload::Script;

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

impl<'a> Simulation<'a> {
    /// A task whose first step is to wait needs no CPU for it; true when it was one.
    pub(super) fn begins_waiting(&mut self, t: u32, forked: bool) -> bool {
        self.take_hint(t);
        match self.tasks.begin_waiting(t, forked) {
            None => return false,
            Some(TaskStep::Sleeps(at)) => {
                if let Some(hint) = self.sched.hint(t) {
                    self.sched.set_cpu(t, hint);
                }
                self.sleep_on(self.sched.cpu_of(t), t, at);
            }
            Some(_) => {}
        }
        true
    }

    /// Takes the lock that a task wants and goes on with it; true when that is work for CPU `c`.
    #[inline(never)]
    pub(super) fn lock_and_go_on(&mut self, t: u32, c: usize, task: &Resumed<'a>) -> bool {
        self.tasks.try_lock(t) && (task.has_work || self.go_further(t, c, task.steps))
    }

    /// Takes the steps of a task that has done its piece and wants no lock, until one of them takes time; true when that
    /// is work for CPU `c`.
    #[inline(always)]
    pub(super) fn go_further(&mut self, t: u32, c: usize, steps: Steps<'a>) -> bool {
        match steps {
            Steps::Recorded(script) => self.take_recorded_steps(t, c, script),
            Steps::Generated => until_it_counts(|| self.take_generated_step(t, c)),
            Steps::Daemon => self.daemon_step(c),
        }
    }

    #[inline(never)]
    fn take_recorded_steps(&mut self, t: u32, c: usize, script: &Script) -> bool {
        until_it_counts(|| {
            let step = self.tasks.recorded_step(t, self.clock.now(), script);
            self.follow_step(t, c, step)
        })
    }

    // Out of line and without the loop: most steps take time, and a loop would set up its constants for each.
    #[inline(never)]
    fn take_generated_step(&mut self, t: u32, c: usize) -> Taken {
        let step = self.tasks.generated_step(t, self.clock.now());
        self.follow_step(t, c, step)
    }

    /// What a task's step on CPU `c` leads to.
    #[inline(always)]
    fn follow_step(&mut self, t: u32, c: usize, step: TaskStep) -> Taken {
        match step {
            TaskStep::Works => {
                self.tell_works(t);
                return Taken::Works;
            }
            TaskStep::Nothing => return Taken::Nothing,
            TaskStep::Waits => {}
            TaskStep::Sleeps(at) => {
                self.sched.set_cpu(t, c);
                self.sleep_on(c, t, at);
            }
            TaskStep::WaitsForDevice => {
                self.idlers.io_begins(c);
                self.arm_devices();
            }
            TaskStep::Ends => {
                let parent = self.tasks.parent(t).map(|p| self.sched.cpu_of(p));
                self.idlers.task_ended(self.clock.tick(), c, parent);
            }
            TaskStep::Wakes(other) => {
                if self.tasks.wake(other, t, self.clock.now()) {
                    self.sched.wakes_another(t);
                    self.make_runnable(other, c, Waker::Task(t));
                }
                return Taken::Nothing;
            }
            TaskStep::IsOn { cpu, at_ns } => return self.is_on(t, c, (cpu, at_ns)),
            TaskStep::HandsTo(next) => {
                self.sched.wakes_another(t);
                self.make_runnable(next, c, Waker::Task(t));
                return Taken::Nothing;
            }
        }
        Taken::Waits
    }

    /// A task ran on from here on another CPU or at another time, as recorded.
    #[inline(never)]
    fn is_on(&mut self, t: u32, c: usize, hint: (u32, u64)) -> Taken {
        self.sched.set_hint(t, hint);
        if !self.sched.yields(t, c) {
            return Taken::Nothing;
        }
        self.tell_stops(c, t);
        // It waits its turn: who looks at the queue now must not find it twice.
        if self.cpus[c].current == t {
            self.cpus[c].current = NONE;
        }
        self.put_off(t, c);
        Taken::Waits
    }

    /// The policy's process: having slept it works, having worked it decides, having decided it sleeps.
    fn daemon_step(&mut self, c: usize) -> bool {
        let daemon = self.governor.daemon();
        if self.governor.daemon_goes_on() {
            let ns = self.governor.cost_ns() as f64 * self.hardware.slowness(self.cpus[c].domain);
            self.tasks.works(daemon, ns.max(1.0));
            return true;
        }
        let again = self.poll_governor();
        self.tasks.sleeps(daemon);
        self.sched.set_cpu(daemon, c);
        self.sleep_on(c, daemon, self.clock.now() + again);
        false
    }

    /// A task sleeps on a timer of its CPU.
    #[inline(always)]
    pub(super) fn sleep_on(&mut self, c: usize, t: u32, at: u64) {
        let s = &mut self.cpus[c];
        s.timers.push(at, t);
        if s.phase != Phase::Switching {
            self.arm(c);
        }
    }

    /// Timers of CPU `c` that are due.
    pub(super) fn timers_fire(&mut self, c: usize) {
        // The CPU that holds a timer takes its interrupt, wherever the task goes.
        while let Some(t) = self.cpus[c].timers.pop_due(self.clock.now()) {
            self.make_runnable(t, c, Waker::Timer);
            let ns = self.hardware.machine().interrupt_ns;
            if ns > 0 && self.cpus[c].phase == Phase::Idle {
                self.interrupt(c, ns);
            }
        }
    }

    /// Devices that are done, and interrupts from outside.
    pub(super) fn devices_due(&mut self) {
        while let Some(due) = self.tasks.due(self.clock.now()) {
            match due {
                Due::Found(t) => self.move_on(t, self.sched.cpu_of(t)),
                Due::Io(t) => {
                    let c = self.sched.cpu_of(t);
                    self.idlers.io_ends(c);
                    self.governor.task_moved(c);
                    self.make_runnable(t, c, Waker::Device);
                }
                Due::Interrupt(interrupt) => {
                    let c = usize::from(interrupt.cpu);
                    if self.cpus.get(c).is_some_and(|s| s.phase == Phase::Idle) {
                        self.outside(c, interrupt);
                    }
                }
            }
        }
        self.arm_devices();
    }

    /// Tells the calendar when something is due next that belongs to no CPU.
    pub(super) fn arm_devices(&mut self) {
        self.clock.set(Source::Devices, self.tasks.next_due(self.clock.now()));
    }

    /// Puts a task on a run queue.
    pub(super) fn make_runnable(&mut self, t: u32, from: usize, by: Waker) {
        self.tell_waking(t, by, from);
        let of_workload = t != self.governor.daemon();
        self.tasks.runnable(t, if of_workload { self.clock.now() } else { NEVER });
        if of_workload {
            self.record.wakeups += 1;
            if self.governor.follows_tasks() {
                self.follow(from, t, false);
            }
        }
        self.place(t, from);
    }
}
