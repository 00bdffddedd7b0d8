//! What follows when a thread's phase is over.

use super::world::{LockPhase, World, draw};
use super::{Lowered, Waiting};

impl World<'_> {
    fn enter(&mut self, t: usize, phase: LockPhase, left: f64) {
        self.threads[t].phase = phase;
        self.threads[t].left = left;
    }

    /// Asks for a level; it takes force on the grid.
    fn want(&mut self, core: usize, level: usize) {
        let m = self.setup.machine;
        let period = 2.0 * m.domains[usize::from(m.cores[core].domain)].transition.delay_ns as f64;
        let c = &mut self.cores[core];
        c.wanted = level;
        while c.grid <= self.now && period > 0.0 {
            c.grid += period;
        }
    }

    fn wait(&mut self, t: usize) {
        let costs = self.setup.costs;
        match self.setup.waiting {
            _ if self.threads[t].granted => self.enter(t, LockPhase::Seeing, costs.handover_ns),
            Waiting::Spin => self.enter(t, LockPhase::Spinning, f64::INFINITY),
            Waiting::SpinThenPark => self.enter(t, LockPhase::Spinning, costs.budget_ns),
            Waiting::Park => self.enter(t, LockPhase::Entering, costs.wake_ns),
            Waiting::Mwait(_) => self.enter(t, LockPhase::Entering, costs.device_ns),
        }
    }

    /// A phase is over.
    pub(super) fn advance(&mut self, t: usize) {
        let costs = self.setup.costs;
        let core = self.threads[t].core;
        match self.threads[t].phase {
            LockPhase::Outside => self.ask(t),
            LockPhase::Lowering => {
                self.threads[t].lowered = true;
                if let Lowered::Level(level) = self.setup.lowered {
                    self.want(core, level);
                }
                self.wait(t);
            }
            LockPhase::Spinning => {
                let enter =
                    if self.setup.waiting == Waiting::SpinThenPark { costs.wake_ns } else { costs.device_ns };
                self.enter(t, LockPhase::Entering, enter);
            }
            LockPhase::Entering if self.threads[t].granted => self.enter(t, LockPhase::Returning, 0.0),
            LockPhase::Entering => self.sleep(t),
            LockPhase::Leaving => {
                let back = match self.setup.waiting {
                    Waiting::Mwait(_) => costs.device_ns,
                    _ => costs.schedule_ns,
                };
                self.enter(t, LockPhase::Returning, back);
            }
            LockPhase::Returning | LockPhase::Seeing if self.threads[t].lowered => {
                self.enter(t, LockPhase::Restoring, costs.call_ns);
            }
            LockPhase::Returning | LockPhase::Seeing => self.inside(t),
            LockPhase::Restoring => {
                self.threads[t].lowered = false;
                if let Lowered::Level(_) = self.setup.lowered {
                    self.want(core, 0);
                }
                self.inside(t);
            }
            LockPhase::Inside => self.release(t),
            LockPhase::Waking => self.outside(t),
            // Its end is the grant.
            LockPhase::Asleep => {}
        }
    }

    /// Takes the lock if it is free, else its place in the queue.
    fn ask(&mut self, t: usize) {
        self.threads[t].asked_at = self.now;
        if self.owner.is_none() {
            self.owner = Some(t);
            self.inside(t);
            return;
        }
        self.queue.push_back(t);
        match self.setup.lowered {
            Lowered::Nothing => self.wait(t),
            _ => self.enter(t, LockPhase::Lowering, self.setup.costs.call_ns),
        }
    }

    /// Asleep, in the C-state that was asked for or that the last sleep suggests.
    fn sleep(&mut self, t: usize) {
        let expected = self.threads[t].last_sleep;
        let idle = &self.kind(self.threads[t].core).idle;
        self.threads[t].state = match self.setup.waiting {
            Waiting::Mwait(state) => state,
            _ => idle.iter().rposition(|s| (s.target_ns as f64) < expected).unwrap_or(0),
        };
        self.threads[t].slept_at = self.now;
        self.enter(t, LockPhase::Asleep, f64::INFINITY);
    }

    /// Hands the lock to the next in the queue, who may have to be woken by a call.
    fn release(&mut self, t: usize) {
        self.threads[t].acquired += 1;
        self.owner = self.queue.pop_front();
        let sleeper = self.owner.is_some_and(|next| self.grant(next));
        let parks = !matches!(self.setup.waiting, Waiting::Mwait(_));
        match sleeper && parks {
            true => self.enter(t, LockPhase::Waking, self.setup.costs.wake_ns),
            false => self.outside(t),
        }
    }

    fn inside(&mut self, t: usize) {
        self.waits.push(self.now - self.threads[t].asked_at);
        self.threads[t].granted = false;
        let left = draw(self.setup.cs, &mut self.threads[t].rng);
        self.enter(t, LockPhase::Inside, left);
    }

    fn outside(&mut self, t: usize) {
        let left = draw(self.setup.ncs, &mut self.threads[t].rng);
        self.enter(t, LockPhase::Outside, left);
    }

    /// The lock is this waiter's now. Whether it slept.
    fn grant(&mut self, t: usize) -> bool {
        self.threads[t].granted = true;
        match self.threads[t].phase {
            LockPhase::Spinning => self.enter(t, LockPhase::Seeing, self.setup.costs.handover_ns),
            LockPhase::Asleep => {
                self.threads[t].last_sleep = self.now - self.threads[t].slept_at;
                let core = self.threads[t].core;
                let depth = self.depth(core);
                let exits = &self.kind(core).idle[depth.max(1) - 1].exit_ns;
                let own = exits[self.cores[core].level.min(exits.len() - 1)] as f64;
                let exit = match self.setup.waiting {
                    Waiting::Mwait(_) => self.setup.costs.mwait_exit_ns.unwrap_or(own),
                    _ => own + self.package_state(self.cores[core].package).map_or(0.0, |s| s.exit_ns as f64),
                };
                self.enter(t, LockPhase::Leaving, exit);
                return true;
            }
            // In a call: it will see the grant at the call's end.
            _ => {}
        }
        false
    }
}
