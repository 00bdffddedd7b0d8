//! Entering and leaving C-states, interrupts and ticks.

use super::Simulation;
use crate::calendar::NEVER;
use crate::cpu::Phase;
use crate::govern::idle::Cause;
use crate::hardware::ThreadState;
use crate::tasks::Interrupt;

impl Simulation<'_> {
    /// A CPU has nothing to do: it enters the C-state that its policy chooses.
    pub(super) fn enter_idle(&mut self, c: usize) {
        self.choose_state(c);
        self.sched.idles(c, self.clock.now());
        self.arm_unshare(c);
        self.arm(c);
    }

    /// An idle CPU's policy is asked, for the first time or after a poll that brought nothing.
    #[inline(always)]
    fn choose_state(&mut self, c: usize) {
        let (now, next_tick) = (self.clock.now(), self.clock.tick());
        self.note_tick(c, next_tick);
        let s = &mut self.cpus[c];
        let follows = self.governor.follows_tasks();
        let entered = self.idlers.enter(c, s.kind, now, next_tick, s.timers.first_at(), follows);
        s.tick_at = entered.tick_at;
        s.phase = Phase::Idle;
        s.in_idle_loop = false;
        if self.hardware.set_plain(now, s.core, ThreadState::Idle(entered.state)).is_none() {
            self.set_thread(c, ThreadState::Idle(entered.state));
        }
        self.tell_enters(c, entered.state);
    }

    /// Tells the idle policy's keeper what the last tick found, where that was since the CPU's last tasks began: Linux's load of a
    /// CPU (`cpu_load`) is that of its last tick, and a CPU whose tick is stopped keeps it.
    #[inline]
    fn note_tick(&mut self, c: usize, next_tick: u64) {
        let Some(&(from, to)) = self.ran.get(c) else { return };
        let last = next_tick.saturating_sub(self.hardware.machine().tick.period_ns);
        if last >= from {
            self.idlers.ticked(c, last < to);
        }
    }

    /// A task begins to run on a CPU, or leaves it.
    #[inline]
    pub(super) fn note_run(&mut self, c: usize, begins: bool) {
        let now = self.clock.now();
        let Some((from, to)) = self.ran.get_mut(c) else { return };
        match begins {
            true if *to != now => *from = now,
            true => {}
            false => *to = now,
        }
    }

    /// An idle CPU is wanted: it is awake when the C-state, and the package's, have been left.
    #[inline(always)]
    pub(super) fn leave_idle(&mut self, c: usize, cause: Cause) {
        let now = self.clock.now();
        self.record.idle_exits += 1;
        self.tell_leaves(c);
        // One that only an interrupt wants stays in the idle loop.
        if self.idle_work.enter_ns > 0 && cause != Cause::Work {
            self.cpus[c].in_idle_loop = true;
        } else {
            self.sched.wakes(c, now);
        }
        let (choice, since) = self.idlers.stay(c);
        let s = &self.cpus[c];
        let ready = self.hardware.awake_at(now, s.core, s.domain, choice, since);
        let next_tick = self.next_busy_tick(c);
        let s = &mut self.cpus[c];
        s.phase = Phase::Exiting;
        s.kernel_ns += self.idle_work.leave_ns;
        s.enters_by_work = self.idle_work.enter_ns > 0;
        s.tick_at = next_tick;
        let tick_was_stopped = self.idlers.leave(c, s.kind, now, ready, cause);
        if tick_was_stopped {
            self.cpus[c].kernel_ns += self.hardware.machine().tick.restart_ns;
            if self.governor.ticks() {
                self.report_missed_ticks(c);
            }
        }
        if ready == now {
            self.idlers.end_stay(c, now);
            self.tell_is_awake(c);
            self.dispatch(c);
        } else {
            self.cpus[c].ready_at = ready;
            self.set_thread(c, ThreadState::Stall);
        }
        self.arm(c);
    }

    /// The C-state has been left.
    pub(super) fn ready(&mut self, c: usize) {
        self.cpus[c].ready_at = NEVER;
        self.idlers.end_stay(c, self.clock.now());
        self.tell_is_awake(c);
        self.dispatch(c);
    }

    /// Work in interrupt context, in ns at the highest speed: wakes the CPU, or delays its task.
    pub(super) fn interrupt(&mut self, c: usize, ns: u64) {
        self.interrupt_for(c, ns, Cause::Interrupt);
    }

    /// An interrupt from outside the workload.
    pub(super) fn outside(&mut self, c: usize, interrupt: Interrupt) {
        let thread = interrupt.thread && self.cpus[c].phase == Phase::Idle;
        self.cpus[c].in_thread |= thread;
        self.interrupt_for(c, interrupt.ns, if thread { Cause::Work } else { Cause::Interrupt });
    }

    fn interrupt_for(&mut self, c: usize, ns: u64, cause: Cause) {
        match self.cpus[c].phase {
            Phase::Idle => {
                self.cpus[c].kernel_ns += ns;
                self.leave_idle(c, cause);
            }
            Phase::Task => {
                let slow = (ns as f64 * self.hardware.slowness(self.cpus[c].domain)) as u64;
                self.bank(c);
                self.tasks.charge(self.cpus[c].current, slow);
                self.time_run(c);
                self.arm(c);
            }
            Phase::Kernel => {
                self.bank(c);
                self.cpus[c].kernel_ns += ns;
                self.time_run(c);
                self.arm(c);
            }
            Phase::Exiting | Phase::Switching => self.cpus[c].kernel_ns += ns,
        }
    }

    /// Work that rides along with whatever the CPU does next; never wakes it.
    #[inline]
    pub(super) fn charge_hook(&mut self, c: usize, ns: u64) {
        if self.cpus[c].phase == Phase::Task {
            self.interrupt(c, ns);
        } else {
            self.cpus[c].kernel_ns += ns;
        }
    }

    /// The periodic tick of a CPU.
    pub(super) fn tick(&mut self, c: usize) {
        let idle = self.cpus[c].phase == Phase::Idle;
        if idle && self.idlers.has_polled(c, self.cpus[c].kind, self.clock.now()) {
            return self.poll_anew(c);
        }
        self.cpus[c].tick_at = NEVER;
        self.observe_tick(c);
        if idle && self.cpus[c].phase == Phase::Idle {
            // A recorded run contains its ticks; an idle CPU has to be woken for one.
            self.interrupt_for(c, self.hardware.machine().tick.cost_ns, Cause::Tick);
        } else {
            self.cpus[c].tick_at = self.next_busy_tick(c);
        }
    }

    /// An idle CPU has polled for long enough.
    #[inline(never)]
    fn poll_anew(&mut self, c: usize) {
        self.tell_leaves(c);
        self.tell_is_awake(c);
        self.choose_state(c);
        self.arm(c);
    }

    /// When a CPU that is awake is to be looked at next: at its tick, or when its hardware does so by itself.
    #[inline]
    fn next_busy_tick(&mut self, c: usize) -> u64 {
        match self.governor.busy_ticks() {
            false => NEVER,
            true => self.governor.looks_at(c, self.clock.now()).unwrap_or_else(|| self.clock.tick()),
        }
    }
}
