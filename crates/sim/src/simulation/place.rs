//! Where a runnable task goes, and what it takes with it when it moves.

use super::Simulation;
use crate::NONE;
use crate::cpu::{CpuState, Phase};
use crate::govern::speed::SpeedGovernor;
use crate::hardware::Hardware;
use crate::sched::placement::CoreUse;
use crate::sched::{Scheduler, WokenBy};
use wattwise_model::machine::Distance;

/// Cores and CPUs as a placement may see them.
pub(super) struct CoresNow<'s, 'a> {
    hardware: &'s Hardware<'a>,
    governor: &'s SpeedGovernor,
    cpus: &'s [CpuState],
    now: u64,
}

impl CoreUse for CoresNow<'_, '_> {
    fn busy_threads(&self, core: usize) -> usize {
        self.hardware.busy_threads(core)
    }
    fn is_awake(&self, core: usize) -> bool {
        self.hardware.is_awake(core)
    }
    fn load(&self, cpu: usize) -> Option<u64> {
        self.governor.load_now(cpu, self.now).filter(|_| self.governor.follows_tasks())
    }
    fn running(&self, cpu: usize) -> Option<u32> {
        Some(self.cpus[cpu].current).filter(|&t| t != NONE)
    }
}

impl<'a> Simulation<'a> {
    /// The scheduler, and what it may see of the cores.
    #[inline]
    pub(super) fn cores_now(&mut self) -> (&mut Scheduler<'a>, CoresNow<'_, 'a>) {
        let cores = CoresNow {
            hardware: &self.hardware,
            governor: &self.governor,
            cpus: &self.cpus,
            now: self.clock.now(),
        };
        (&mut self.sched, cores)
    }

    /// The CPU for a runnable task. `from` is where the wake-up happens.
    #[inline]
    pub(super) fn choose_cpu(&mut self, t: u32, from: usize) -> usize {
        let by = WokenBy { from, current: self.cpus[from].current, waker: None };
        let (fresh, now) = (self.tasks.is_fresh(t), self.clock.now());
        let (sched, cores) = self.cores_now();
        sched.choose(t, by, fresh, now, &cores)
    }

    /// Reads the recorded CPU of a task's coming run, where its script says one.
    #[inline]
    pub(super) fn take_hint(&mut self, t: u32) {
        if let Some(hint) = self.tasks.take_hint(t) {
            self.sched.set_hint(t, hint);
        }
    }

    /// Chooses a CPU for a runnable task and queues it there. `from` is where the wake-up happens.
    pub(super) fn place(&mut self, t: u32, from: usize) {
        let tasks = &mut self.tasks;
        let was = self.sched.note_recorded_run(t, || tasks.take_hint(t));
        let fresh = self.tasks.arrives(t);
        let waker = self.sched.take_waker();
        let by = WokenBy { from, current: self.cpus[from].current, waker };
        let now = self.clock.now();
        let (sched, cores) = self.cores_now();
        let target = sched.choose(t, by, fresh, now, &cores);
        let here = if fresh {
            self.place_first(t, from, target)
        } else {
            // Whether it moves cannot be foreseen: where that costs nothing, it is not asked.
            let moves = target != self.sched.cpu_of(t);
            let matters = self.governor.is_told() | (self.hardware.machine().migration_ns > 0);
            if moves & matters {
                self.charge_move(t, target, was);
            }
            if moves {
                self.sched.wakes_elsewhere(t, target);
            }
            self.sched.set_cpu(t, target);
            self.record.migrations += u64::from(moves);
            true
        };
        if let Some(waker) = waker {
            self.charge_wakeup(t, waker, from, target);
        }
        self.enqueue(target, t, here);
        if self.sched.pulls_misfits() {
            self.arm_balance();
        }
    }

    /// What a woken task pays for its waker's being elsewhere: it reads what that has just written, and a CPU that does not
    /// idle has to be interrupted. A recorded run holds what its own wake-up cost, so that only greater distance counts.
    #[inline]
    fn charge_wakeup(&mut self, t: u32, waker: u32, from: usize, target: usize) {
        let machine = self.hardware.machine();
        let apart = &machine.apart;
        if target == from || apart.lines <= 0.0 {
            return;
        }
        let interrupt = |busy: bool| if busy { apart.ipi_ns } else { 0 };
        let cost =
            apart.read_ns(machine.distance(from, target)) + interrupt(self.cpus[target].phase == Phase::Task);
        let recorded = match (self.sched.hint(waker), self.sched.hint(t)) {
            (Some(a), Some(b)) => apart.read_ns(machine.distance(a, b)),
            _ => 0,
        };
        self.tasks.charge(t, self.sched.distance_ns(cost, recorded));
    }

    /// The first placement of a task; false where another domain's CPU queues it.
    fn place_first(&mut self, t: u32, from: usize, target: usize) -> bool {
        self.sched.set_cpu(t, target);
        if !self.tasks.is_born(t) {
            return true;
        }
        self.governor.task_moved(target);
        if self.governor.follows_tasks() {
            let clock_ns = self.governor.load_clock(self.clock.now());
            let capacity = self.hardware.capacity(self.cpus[target].domain);
            let credit = self.sched.credit(t, clock_ns, capacity, self.governor.known_load(target));
            self.governor.load_moved(target, credit as i32);
        }
        // A new task is queued by its parent's CPU; a woken one's own CPU is called.
        self.cpus[from].domain == self.cpus[target].domain
    }

    /// A task that could run on, but goes on elsewhere or after others, as recorded. An idle CPU finds it when the recorded one
    /// did, at the latest at its next tick.
    pub(super) fn put_off(&mut self, t: u32, c: usize) {
        self.take_hint(t);
        let target = self.choose_cpu(t, c);
        let found = self.sched.recorded_at(t).min(self.clock.tick());
        if target != c && self.cpus[target].phase == Phase::Idle && found > self.clock.now() {
            self.tasks.put_off(t, found);
            self.arm_devices();
        } else {
            self.move_on(t, c);
        }
    }

    /// Such a task has been found, or is waited for by a busy CPU, which takes it when it has the time: until then its load
    /// stays where it was.
    pub(super) fn move_on(&mut self, t: u32, c: usize) {
        let target = self.choose_cpu(t, c);
        if target == c || self.cpus[target].phase == Phase::Idle {
            return self.place(t, c);
        }
        self.sched.enqueue_from_afar(target, t, self.clock.now());
        if self.cpus[target].phase == Phase::Task {
            self.waits_behind(target, t);
        }
    }

    /// A task is on another CPU from now on.
    pub(super) fn migrate(&mut self, t: u32, target: usize) {
        self.charge_move(t, target, None);
        self.sched.set_cpu(t, target);
        self.record.migrations += 1;
    }

    /// What a task takes with it to another CPU, and what that costs; `was` is where it was as recorded. A recorded run
    /// holds what its own move cost, as if made on the CPUs of the same numbers here.
    fn charge_move(&mut self, t: u32, target: usize, was: Option<usize>) {
        let last = self.sched.cpu_of(t);
        self.governor.task_moved(last);
        self.governor.task_moved(target);
        if self.governor.follows_tasks() {
            // What waited faded meanwhile.
            self.follow(last, t, false);
            let util = self.sched.load(t).util() as i32;
            self.governor.load_moved(last, -util);
            self.governor.load_moved(target, util);
        }
        if t != self.governor.daemon() {
            let machine = self.hardware.machine();
            let cost = |d: Distance| machine.apart.refill_ns(machine.migration_ns, d);
            let recorded = match (was, self.sched.hint(t)) {
                (Some(a), Some(b)) if a != b => cost(machine.distance(a, b)),
                _ => 0,
            };
            let cost = cost(machine.distance(last, target));
            self.tasks.charge(t, self.sched.distance_ns(cost, recorded));
        }
    }

    /// Queues a task that waited or ran on one CPU on another, as far behind as it was.
    pub(super) fn move_over(&mut self, t: u32, from: usize, to: usize) {
        self.sched.carry_over(t, from, to);
        self.migrate(t, to);
        self.enqueue(to, t, true);
    }

    /// A task's load, brought up to now; `ran`: it ran meanwhile.
    // Out of line: few policies follow tasks.
    #[inline(never)]
    pub(super) fn follow(&mut self, c: usize, t: u32, ran: bool) {
        let clock = self.governor.load_clock(self.clock.now());
        // The pace at which the load of a CPU's task grows, of 1024 on the strongest CPU at its highest speed.
        let (invariant, domain) = (self.hardware.machine().load_invariant, self.cpus[c].domain);
        let pace = if invariant { self.hardware.pace(domain) } else { self.hardware.capacity(domain) };
        let load = self.sched.load(t);
        if ran { load.work(clock, pace) } else { load.rest(clock) }
    }

    /// The running task's load, told that it ran until now.
    #[inline(always)]
    pub(super) fn tell_work(&mut self, c: usize, t: u32) {
        if self.governor.follows_tasks() {
            self.follow(c, t, true);
        }
    }
}
