//! Grace periods: why Linux keeps a CPU's tick for a while after a task has ended.
//!
//! What somebody may still be reading (a closed file, an ended task, its credentials) is freed once every CPU has
//! been seen where it reads nothing. Until that grace period is over, and the CPU that let go has noticed, it
//! wants its tick, whatever the idle policy says (`rcu_needs_cpu()`). Sources: Linux `kernel/rcu/tree.c`
//! (`rcu_pending()`, `rcu_gp_fqs_loop()`) and who calls `call_rcu()` at a task's end.
//!
//! ```text
//!   lets go   asks        period over   noticed, where there are several CPUs
//!  ----x-------|------|--------|-------------|----  ticks
//! ```
//!
//! There is one period at a time for the whole machine, and who asks during one has to wait for the next.
//!
//! | who | lets go of | periods |
//! |---|---|---|
//! | the CPU on which a task ends | its files, its stack | 1 |
//! | its parent's CPU, if that is in the run | the task, and when that is gone its credentials | 2 |

use wattwise_model::machine::MachineModel;

/// A period's least length: CPUs that idle are looked for at the timer wheel's next tick but one.
const PERIOD_TICKS: u64 = 2;

/// The present or last period, or the one that will follow it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grace {
    tick_ns: u64,
    begins: u64,
    ends: u64,
    /// From a period's end to where a CPU that asked sees it.
    notice_ns: u64,
}

impl Grace {
    pub(super) fn new(m: &MachineModel) -> Grace {
        let tick_ns = m.tick.period_ns;
        // One CPU ends the period itself.
        Grace { tick_ns, notice_ns: if m.cpus.len() > 1 { tick_ns } else { 0 }, ..Grace::default() }
    }

    /// A CPU asks at one of its ticks; returns the tick at which it has no more to wait for.
    pub(super) fn asked(&mut self, tick: u64) -> u64 {
        if tick > self.begins {
            self.begins = tick.max(self.ends);
            self.ends = self.begins + PERIOD_TICKS * self.tick_ns;
        }
        self.ends + self.notice_ns
    }
}

/// What a CPU has let go of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LetGo {
    /// When it has noticed the end of the period that it waits for.
    until: u64,
    /// What is freed then lets go of more.
    more: bool,
}

impl LetGo {
    /// It lets go of something for which a period ends at a tick; `more`: what is freed then lets go of more.
    pub(super) fn wait_until(&mut self, tick: u64, more: bool) {
        self.until = self.until.max(tick);
        self.more |= more;
    }

    /// Whether there is something that a period must pass for.
    #[inline]
    pub(super) fn waits(&mut self, grace: &mut Grace, now: u64) -> bool {
        if self.more & (now >= self.until) {
            self.go_on(grace, now);
        }
        now < self.until
    }

    #[inline(never)]
    fn go_on(&mut self, grace: &mut Grace, now: u64) {
        self.more = false;
        // A CPU that was busy meanwhile has asked at its own tick.
        if now < self.until + (1 + 2 * PERIOD_TICKS) * grace.tick_ns {
            self.until = grace.asked(self.until + grace.tick_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;

    /// As the lab's kernel on one CPU: asked at the next tick, over at the third.
    #[test]
    fn a_period_takes_two_ticks() {
        let mut one = Grace { tick_ns: TICK, ..Grace::default() };
        assert_eq!(one.asked(TICK), 3 * TICK);
        assert_eq!(one.asked(4 * TICK), 6 * TICK);
    }

    #[test]
    fn what_is_freed_may_free_more() {
        let mut one = Grace { tick_ns: TICK, ..Grace::default() };
        let mut task = LetGo { until: one.asked(TICK), more: true };
        assert!(task.waits(&mut one, 3 * TICK - 1));
        assert!(task.waits(&mut one, 3 * TICK + 1), "its credentials");
        assert!(task.waits(&mut one, 6 * TICK - 1));
        assert!(!task.waits(&mut one, 6 * TICK));
        let mut busy = LetGo { until: 3 * TICK, more: true };
        assert!(!busy.waits(&mut one, 9 * TICK), "both periods have passed while it worked");
    }

    #[test]
    fn who_asks_during_a_period_waits_for_the_next() {
        let mut four = Grace { tick_ns: TICK, notice_ns: TICK, ..Grace::default() };
        assert_eq!(four.asked(10 * TICK), 13 * TICK);
        assert_eq!(four.asked(10 * TICK), 13 * TICK, "it has not begun yet");
        assert_eq!(four.asked(11 * TICK), 15 * TICK);
        assert_eq!(four.asked(12 * TICK), 15 * TICK, "the next has not begun yet");
        assert_eq!(four.asked(13 * TICK), 17 * TICK);
        assert_eq!(four.asked(40 * TICK), 43 * TICK, "and none is under way");
    }
}
