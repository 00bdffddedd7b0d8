//! Entering and leaving C-states, interrupts and ticks.

use super::accounts::ThreadState;
use super::grace::LetGo;
use super::{NEVER, Phase, Simulation};
use wattwise_policy::{IdleOutcome, IdleQuery};

/// Why a CPU leaves its C-state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A task was queued.
    Work,
    /// The tick that the idle policy had kept.
    Tick,
    /// Another interrupt.
    Interrupt,
}

/// A CPU's idle bookkeeping as the operating system sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleSide {
    /// Start of the present or last stay.
    since: u64,
    /// The state chosen for it.
    choice: u8,
    /// When the announced timer fires.
    due: u64,
    tick_stopped: bool,
    /// For what the kernel wants the tick itself.
    pub(super) let_go: LetGo,
    /// It has been stopped for a sleep since the last sample.
    pub(super) tickless: bool,
    /// Whether the present stay counts as I/O wait.
    io: bool,
    /// Sum of ended stays, and of those that were I/O wait.
    idle_total: u64,
    io_total: u64,
    /// Tasks of this CPU on a device.
    pub(super) iowaiters: u32,
    /// A task that had waited for a device woke here since the last sample.
    pub(super) io_wake: bool,
}

impl IdleSide {
    /// Books a stay that is over.
    #[inline]
    fn end_stay(&mut self, now: u64) {
        let total = if self.io { &mut self.io_total } else { &mut self.idle_total };
        *total += now - self.since;
    }

    /// `(idle, I/O wait)` so far, in ns, as the kernel's counters would say.
    #[inline]
    pub(super) fn totals(&self, phase: Phase, now: u64) -> (u64, u64) {
        let open = if matches!(phase, Phase::Idle | Phase::Exiting) { now - self.since } else { 0 };
        if self.io {
            (self.idle_total, self.io_total + open)
        } else {
            (self.idle_total + open, self.io_total)
        }
    }
}

impl Simulation<'_> {
    /// A CPU has nothing to do: it enters the C-state that its policy chooses.
    pub(super) fn enter_idle(&mut self, c: usize) {
        let now = self.now;
        let next_tick = self.next_tick();
        let kind = usize::from(self.cpus[c].kind);
        let s = &mut self.cpus[c];
        let tickless = self.machine.tick.tickless;
        // A tick that is stopped already stays so.
        let tick_wanted = tickless & s.idle.let_go.waits(&mut self.grace, now) & !s.idle.tick_stopped;
        let timer_at = s.timers.first_at();
        let timer_at = if tick_wanted { timer_at.min(next_tick) } else { timer_at };
        let query = IdleQuery {
            now_ns: now,
            next_timer_ns: if timer_at == NEVER { NEVER } else { timer_at.saturating_sub(now) },
            next_tick_ns: next_tick - now,
            tick_stopped: s.idle.tick_stopped,
            latency_limit_ns: self.latency_limit_ns,
            iowaiters: s.idle.iowaiters,
            states: &self.idle_tables[kind],
        };
        let choice = self.idlers[c].select(&query);
        let state = choice.state.min(query.states.len() as u8 - 1);
        let asked = tickless && choice.stop_tick;
        let stop = asked && !tick_wanted;
        s.idle.since = now;
        s.idle.choice = state;
        s.idle.due = timer_at;
        s.idle.io = s.idle.iowaiters > 0;
        s.idle.tick_stopped = stop;
        s.tick_at = if stop { NEVER } else { next_tick };
        s.phase = Phase::Idle;
        if self.governor.follows_tasks() {
            // Linux counts what the idle policy asks for.
            s.idle.tickless |= asked;
        }
        let core = &mut self.cores[usize::from(s.core)];
        if core.is_plain() {
            core.set_plain(now, ThreadState::Idle(state));
        } else {
            self.set_thread(c, ThreadState::Idle(state));
        }
        self.idle_set.insert(c);
        if self.smt && self.core_is_idle(c) {
            for t in self.threads_of(usize::from(self.cpus[c].core)) {
                self.idle_cores.insert(t);
            }
        }
        self.arm_unshare(c);
        self.arm(c);
    }

    /// An idle CPU is wanted: it is awake when the C-state, and the package's, have been left.
    #[inline(always)]
    pub(super) fn leave_idle(&mut self, c: usize, cause: Cause) {
        let now = self.now;
        self.idle_exits += 1;
        self.idle_set.remove(c);
        if self.smt {
            for t in self.threads_of(usize::from(self.cpus[c].core)) {
                self.idle_cores.remove(t);
            }
        }
        let ready = self.awake_at(c);
        let next_tick = if self.governor.busy_ticks() { self.next_tick() } else { NEVER };
        let s = &mut self.cpus[c];
        let outcome = IdleOutcome {
            state: s.idle.choice,
            measured_ns: ready - s.idle.since,
            by_timer: cause != Cause::Tick && s.idle.due <= now,
            by_tick: cause == Cause::Tick,
        };
        let missed_ticks = s.idle.tick_stopped && self.governor.ticks();
        s.phase = Phase::Exiting;
        s.tick_at = next_tick;
        if cause == Cause::Work {
            s.idle.tick_stopped = false;
        }
        self.idlers[c].reflect(&outcome, &self.idle_tables[usize::from(s.kind)]);
        if missed_ticks {
            self.report_missed_ticks(c);
        }
        let s = &mut self.cpus[c];
        if ready == now {
            s.idle.end_stay(now);
            self.dispatch(c);
        } else {
            s.ready_at = ready;
            self.set_thread(c, ThreadState::Stall);
        }
        self.arm(c);
    }

    /// When a CPU that is wanted now will have left its C-state.
    #[inline(always)]
    fn awake_at(&self, c: usize) -> u64 {
        let s = &self.cpus[c];
        let d = &self.domains[usize::from(s.domain)];
        let core = &self.cores[usize::from(s.core)];
        if core.wakes_at_once {
            return self.now.max(d.stalled_until());
        }
        // The hardware is only as deep as the core's shallowest thread.
        let depth = core.depth().unwrap_or(0).min(usize::from(s.idle.choice));
        let state = &self.machine.kinds[usize::from(s.kind)].idle[depth];
        let package = usize::from(s.package);
        let package_exit =
            self.packages[package].idle_state().map_or(0, |i| self.machine.packages[package].idle[i].exit_ns);
        // A state that is being entered cannot be left before it has been reached.
        let reached = self.now.max(s.idle.since + state.entry_ns);
        (reached + state.exit_ns[d.level()] + package_exit).max(d.stalled_until())
    }

    /// The C-state has been left.
    pub(super) fn ready(&mut self, c: usize) {
        let now = self.now;
        let s = &mut self.cpus[c];
        s.ready_at = NEVER;
        s.idle.end_stay(now);
        self.dispatch(c);
    }

    /// Work in interrupt context, in ns at the highest speed: wakes the CPU, or delays its task.
    pub(super) fn interrupt(&mut self, c: usize, ns: u64) {
        self.interrupt_for(c, ns, Cause::Interrupt);
    }

    fn interrupt_for(&mut self, c: usize, ns: u64, cause: Cause) {
        match self.cpus[c].phase {
            Phase::Idle => {
                self.cpus[c].kernel_ns += ns;
                self.leave_idle(c, cause);
            }
            Phase::Task => {
                let slow = (ns as f64 * self.slowest_factor(c)) as u64;
                self.bank(c);
                let t = self.cpus[c].current as usize;
                self.tasks[t].charge(slow);
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

    /// The first tick after the present.
    #[inline]
    pub(super) fn next_tick(&mut self) -> u64 {
        if self.next_tick <= self.now {
            // Ticks are far apart against events: one division a tick, not one an event.
            let period = self.machine.tick.period_ns;
            let since = self.now + period - self.phase_ns;
            self.next_tick = self.now + period - since % period;
        }
        self.next_tick
    }

    /// The periodic tick of a CPU.
    pub(super) fn tick(&mut self, c: usize) {
        let idle = self.cpus[c].phase == Phase::Idle;
        self.cpus[c].tick_at = NEVER;
        self.observe_tick(c);
        if idle && self.cpus[c].phase == Phase::Idle {
            // A recorded run contains its ticks; an idle CPU has to be woken for one.
            self.interrupt_for(c, self.machine.tick.cost_ns, Cause::Tick);
        } else if self.governor.busy_ticks() {
            self.cpus[c].tick_at = self.next_tick();
        }
    }
}
