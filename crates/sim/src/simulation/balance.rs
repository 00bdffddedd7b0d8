//! Balance: idle CPUs steal tasks that wait, long queues shed to short ones, and tasks that run badly placed move.

use super::Simulation;
use crate::calendar::NEVER;
use crate::clock::Source;
use crate::cpu::Phase;
use crate::sched::{Pulled, Stolen};
use wattwise_model::machine::Distance;

/// How much stronger an idle core must be for a task to move there.
const WEAKER: f64 = 1.05;
/// Most idle CPUs that one balance serves.
const MOST_SERVED: usize = 64;

impl Simulation<'_> {
    /// A task that waits elsewhere, for a CPU that would otherwise idle.
    pub(super) fn pull(&mut self, c: usize) -> Option<u32> {
        let cpus = &self.cpus;
        match self.sched.pull(c, self.clock.now(), |v| cpus[v].runner())? {
            Pulled::OwnQueue(t) => Some(t),
            Pulled::Stolen(stolen) => Some(self.bring(c, stolen)),
        }
    }

    /// A task for CPU `c` that has waited within reach for long enough.
    pub(super) fn steal(&mut self, c: usize, reach: Distance) -> Option<u32> {
        let cpus = &self.cpus;
        let stolen = self.sched.steal(c, self.clock.now(), reach, |v| cpus[v].runner())?;
        Some(self.bring(c, stolen))
    }

    /// Carries a stolen task over to CPU `c`.
    fn bring(&mut self, c: usize, stolen: Stolen) -> u32 {
        if stolen.emptied {
            self.cpus[stolen.from].slice_end = NEVER;
            self.arm(stolen.from);
        }
        self.migrate(stolen.task, c);
        stolen.task
    }

    /// Idle CPUs take tasks that wait; long queues shed to short ones.
    pub(super) fn balance(&mut self) {
        self.clock.set(Source::Balance, NEVER);
        if let Some(mut nohz) = self.nohz.take() {
            self.balance_by_kicks(&mut nohz);
            self.nohz = Some(nohz);
            return;
        }
        let misfits = self.sched.pulls_misfits() && self.governor.follows_tasks();
        if misfits {
            self.look_at_loads();
        }
        if !self.sched.holds_balance() {
            self.serve_idle();
            self.even_out();
        }
        self.unshare();
        if self.sched.is_crowded() || self.sched.has_shared() || (misfits && self.may_outgrow()) {
            self.arm_balance();
        }
    }

    /// Idle CPUs take tasks that have waited for long enough.
    fn serve_idle(&mut self) {
        if !self.sched.is_crowded() {
            return;
        }
        for c in self.sched.idle_cpus(MOST_SERVED) {
            if self.cpus[c].phase != Phase::Idle {
                continue;
            }
            match self.steal(c, Distance::Machine) {
                Some(t) => self.enqueue(c, t, true),
                None => break,
            }
        }
    }

    /// Looks at the loads of the tasks that run, and, where tasks are placed by energy, of CPUs.
    fn look_at_loads(&mut self) {
        for c in 0..self.cpus.len() {
            if let Some(t) = self.cpus[c].runner() {
                self.tell_work(c, t);
            }
        }
        let (sched, cores) = self.cores_now();
        sched.look_at_loads(&cores);
    }

    /// Whether some running task may become too big for its CPU, which nobody sees but the balance.
    fn may_outgrow(&self) -> bool {
        let strength = |c: usize| self.hardware.strength(self.cpus[c].kind);
        let strongest = (0..self.cpus.len()).map(strength).fold(0.0, f64::max);
        (0..self.cpus.len()).any(|c| self.cpus[c].runner().is_some() && strength(c) * WEAKER < strongest)
    }

    /// Running tasks that share a core, or run on a weaker kind, move to cores that idle.
    fn unshare(&mut self) {
        let shared = self.hardware.shared_cores() > 0 && self.sched.best_better_core().is_some();
        let apart = self.sched.pulls_apart(self.clock.now(), shared);
        for _ in 0..self.hardware.machine().cores.len() {
            let Some(target) = self.sched.best_better_core() else { return };
            let Some(victim) = self.worse_placed(target, apart) else { return };
            let Some(t) = self.stop_running(victim) else { return };
            self.move_over(t, victim, target);
        }
    }

    /// A CPU whose running task would be better off on the idle core of `target`; `apart`: also because it shares its own.
    ///
    /// That a stronger core pulls from a weaker one is Linux's `asym_packing` (ITMT), which asks for a whole idle core too. Where
    /// cores have no ranks, or tasks are placed by energy, it pulls only tasks that do not fit there (`misfit`).
    fn worse_placed(&self, target: usize, apart: bool) -> Option<usize> {
        let moves = |t: u32| !self.sched.is_realtime(t) && self.sched.may_use(t, target);
        let runs = |c: &usize| self.cpus[*c].runner().is_some_and(moves);
        if apart && self.hardware.shared_cores() > 0 {
            let shared = self.hardware.shared_core()?;
            return self.hardware.threads_of(shared).rev().find(runs);
        }
        let strength = |c: usize| self.hardware.strength(self.cpus[c].kind);
        let any = !self.sched.pulls_misfits() || !self.governor.follows_tasks();
        let may = |c: &usize| any || self.cpus[*c].runner().is_some_and(|t| self.sched.is_misfit(t, *c));
        let weaker = |c: &usize| runs(c) && strength(*c) * WEAKER < strength(target) && may(c);
        (0..self.cpus.len()).find(weaker)
    }

    /// Sees to it that somebody looks whether tasks could be better placed, now that a CPU idles, if its core does.
    #[inline]
    pub(super) fn arm_unshare(&mut self, c: usize) {
        if (self.hardware.shared_cores() > 0 || self.hardware.machine().kinds.len() > 1)
            && self.sched.is_better_core(c)
        {
            self.arm_balance();
        }
    }

    /// Moves one task from the longest queue to the shortest when that makes them more alike and no CPU idles.
    pub(super) fn even_out(&mut self) {
        let shortest = self.sched.uneven(|c| self.cpus[c].phase == Phase::Task);
        if let Some(c) = shortest
            && let Some(t) = self.steal(c, Distance::Machine)
        {
            self.enqueue(c, t, true);
        }
    }
}
