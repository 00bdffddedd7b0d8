//! The core policy: how many CPUs are kept, and moving work off the others.
//!
//! The policy looks by a kernel timer on the first CPU that is kept. What a CPU that is given up was running or had
//! queued moves at once; timers follow their tasks. A CPU that is opened takes tasks that wait.

use super::Simulation;
use crate::calendar::NEVER;
use crate::clock::Source;
use crate::cpu::Phase;

impl Simulation<'_> {
    /// The policy takes over, before the work begins.
    pub(super) fn start_keeper(&mut self, phase_ns: u64) {
        let Some(keeper) = &mut self.keeper else { return };
        let (kept, first) = keeper.start();
        self.keep(kept);
        self.clock.set(Source::Cores, first + phase_ns % self.hardware.machine().tick.period_ns);
    }

    /// The policy's timer: a look, a decision, and what follows from it.
    pub(super) fn keeper_timer(&mut self) {
        let now = self.clock.now();
        let Some(mut keeper) = self.keeper.take() else { return };
        for c in 0..self.cpus.len() {
            keeper.look_at(c, now, self.idle_totals(c), self.runnable(c));
        }
        let kept = keeper.observe(now, self.record.wakeups);
        let next = keeper.next_look();
        self.keeper = Some(keeper);
        self.keep(kept);
        self.clock.set(Source::Cores, now + next.in_ns);
        self.interrupt(next.cpu, next.cost_ns);
    }

    /// Keeps the first so many CPUs.
    fn keep(&mut self, kept: usize) {
        let Some(change) = self.keeper.as_mut().and_then(|keeper| keeper.keep(kept)) else { return };
        self.sched.allow(change.kept.into_iter());
        for c in change.given_up {
            while let Some(t) = self.take_waiting(c) {
                let target = self.choose_cpu(t, c);
                self.move_over(t, c, target);
            }
            if self.cpus[c].phase == Phase::Task
                && let Some(t) = self.stop_running(c)
            {
                let target = self.choose_cpu(t, c);
                self.move_over(t, c, target);
            }
        }
        if change.more && self.clock.at(Source::Balance) != NEVER {
            self.balance();
        }
    }

    /// Takes a waiting task off a queue.
    fn take_waiting(&mut self, c: usize) -> Option<u32> {
        let t = self.sched.dequeue_any(c)?;
        if self.sched.nobody_waits(c) {
            self.cpus[c].slice_end = NEVER;
        }
        Some(t)
    }
}
