//! Linux 3.1's balance for CPUs that idle without a tick: who is kicked, and what is moved ([`crate::sched::nohz`]).

use super::Simulation;
use crate::clock::Source;
use crate::cpu::Phase;
use crate::sched::nohz::{CoreLoad, Next, NohzBalance};
use std::cmp::Reverse;
use wattwise_model::machine::Distance;

/// What a kicked CPU does to look, in ns: a guess, some 20 looks at a queue.
const LOOK_NS: u64 = 2_000;

impl Simulation<'_> {
    /// A tick, or the look of the CPU that was kicked at one.
    pub(super) fn balance_by_kicks(&mut self, nohz: &mut NohzBalance) {
        if nohz.take_kick() {
            self.look_for_idle(nohz);
        } else if let Some(c) = self.to_be_kicked(nohz) {
            nohz.kick();
            self.interrupt(c, LOOK_NS);
            let (s, now) = (&self.cpus[c], self.clock.now());
            let awake = if s.phase == Phase::Exiting { s.ready_at } else { now };
            return self.clock.set(Source::Balance, awake);
        }
        self.even_out();
        self.await_tick();
    }

    /// The balance looks at the next tick.
    pub(super) fn await_tick(&mut self) {
        let tick = self.clock.tick();
        self.clock.set(Source::Balance, tick);
    }

    /// The first CPU that idles, where two run something or one has a queue.
    fn to_be_kicked(&self, nohz: &NohzBalance) -> Option<usize> {
        let running = self.cpus.iter().filter(|s| s.runner().is_some()).take(2).count();
        let asks = (running == 2 || self.sched.is_crowded()) && nohz.is_due(self.clock.now());
        asks.then(|| self.cpus.iter().position(|s| s.phase == Phase::Idle)).flatten()
    }

    /// Idle threads take what waits in their core, and idle cores relieve others.
    fn look_for_idle(&mut self, nohz: &mut NohzBalance) {
        for c in self.sched.idle_cpus(usize::MAX) {
            if let Some(t) = self.steal(c, Distance::Core) {
                self.enqueue(c, t, true);
            }
        }
        let now = self.clock.now();
        for core in 0..self.hardware.machine().cores.len() {
            let load = self.core_load(core);
            if load.runnable > 0 || !nohz.looks(core, now) {
                continue;
            }
            let target = self.hardware.threads_of(core).find(|&c| self.sched.is_allowed(c));
            match target.zip(self.busiest_core(core, load)) {
                None => nohz.is_balanced(core, now),
                Some((target, busiest)) => self.relieve(nohz, (core, target), busiest),
            }
        }
    }

    /// CPU `target` of an idle core takes a task from a busier one.
    fn relieve(&mut self, nohz: &mut NohzBalance, (core, target): (usize, usize), busiest: usize) {
        let now = self.clock.now();
        if let Some(t) = self.steal(target, Distance::Machine) {
            nohz.has_pulled(core, now);
            return self.enqueue(target, t, true);
        }
        if nohz.has_failed(core, now) == Next::Wait {
            return;
        }
        let runs = |c: &usize| self.cpus[*c].runner().is_some_and(|t| self.sched.may_use(t, target));
        let victim = self.hardware.threads_of(busiest).find(runs);
        if let Some(victim) = victim
            && let Some(t) = self.stop_running(victim)
        {
            self.move_over(t, victim, target);
        }
    }

    /// Of the cores of its package that an idle core is to relieve, the one with the most to run.
    fn busiest_core(&self, core: usize, load: CoreLoad) -> Option<usize> {
        let machine = self.hardware.machine();
        let package = |core: usize| machine.cpus[self.hardware.threads_of(core).start].package;
        let others = (0..machine.cores.len()).filter(|&k| k != core && package(k) == package(core));
        let loads = others.map(|k| (k, self.core_load(k))).filter(|(_, other)| other.is_busier_than(load));
        loads.max_by_key(|&(k, other)| (other.runnable, Reverse(k))).map(|(k, _)| k)
    }

    fn core_load(&self, core: usize) -> CoreLoad {
        let threads = self.hardware.threads_of(core);
        let mut load = CoreLoad { threads: threads.len(), ..CoreLoad::default() };
        for c in threads {
            let runs = self.cpus[c].runner().is_some();
            load.idle += usize::from(!runs);
            load.runnable += usize::from(runs) + self.sched.waiting(c);
        }
        load
    }
}
