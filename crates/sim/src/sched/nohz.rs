//! The balance of Linux 3.1 for CPUs that idle without a tick (`kernel/sched_fair.c`: `nohz_kick_needed()`, `nohz_idle_balance()`,
//! `find_busiest_group()`, `need_active_balance()`).
//!
//! 1. **Kick.** At a tick, where two CPUs run something or one has a queue, an idle CPU is woken.
//! 2. **Look.** It looks for all that idle. A core that idles as a whole finds another *busiest* where fewer threads idle there, by two
//!    or more, or where more tasks are runnable than it has threads.
//! 3. **Pull.** A task that waits there goes over, if it has not just run.
//! 4. **Push.** If none does, the look has failed. After more than three such looks in a row a task that runs there is stopped and
//!    goes over.
//!
//! While looks find nothing they become rarer, from one in 1 ms to one in 4.

use super::balance::TRIES;

/// Between two looks (`SD_MC_INIT`: `min_interval`, `max_interval`).
const SHORTEST_NS: u64 = 1_000_000;
const LONGEST_NS: u64 = 4_000_000;
/// What is left of the failed looks after a push: `cache_nice_tries` + 1.
const AFTER_PUSH: u32 = 2;

/// What a core is to do after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for the next look.
    Wait,
    /// Stop a task that runs on the busiest core, and take it.
    Push,
}

/// What a core has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreLoad {
    /// Its threads that run nothing.
    pub(crate) idle: usize,
    /// Tasks that run or wait there.
    pub(crate) runnable: usize,
    pub(crate) threads: usize,
}

impl CoreLoad {
    /// Whether a core that idles as a whole is to relieve it.
    pub(crate) fn is_busier_than(self, idle: CoreLoad) -> bool {
        self.runnable > 0 && (idle.idle > self.idle + 1 || self.runnable > self.threads)
    }
}

/// The state of one core's looks.
#[derive(Clone, Copy, Debug)]
struct Looks {
    failed: u32,
    interval_ns: u64,
    next_ns: u64,
}

/// When idle cores look, and how often in a row they could do nothing.
#[derive(Debug)]
pub(crate) struct NohzBalance {
    looks: Vec<Looks>,
    /// A CPU has been kicked, and is about to look.
    kicked: bool,
}

impl NohzBalance {
    pub(crate) fn new(cores: usize) -> NohzBalance {
        let fresh = Looks { failed: 0, interval_ns: SHORTEST_NS, next_ns: 0 };
        NohzBalance { looks: vec![fresh; cores], kicked: false }
    }

    pub(crate) fn kick(&mut self) {
        self.kicked = true;
    }

    /// Whether a CPU has been kicked and not looked yet; it is asked once.
    pub(crate) fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.kicked)
    }

    /// Whether the time of some core's next look has come.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.looks.iter().any(|look| look.next_ns <= now)
    }

    /// Whether it is time for this core to look.
    pub(crate) fn looks(&self, core: usize, now: u64) -> bool {
        self.looks[core].next_ns <= now
    }

    /// A core has looked and found nothing to relieve.
    pub(crate) fn is_balanced(&mut self, core: usize, now: u64) {
        let look = &mut self.looks[core];
        look.failed = 0;
        look.interval_ns = (2 * look.interval_ns).min(LONGEST_NS);
        look.next_ns = now + look.interval_ns;
    }

    /// A core has taken a waiting task.
    pub(crate) fn has_pulled(&mut self, core: usize, now: u64) {
        let look = &mut self.looks[core];
        *look = Looks { failed: 0, interval_ns: SHORTEST_NS, next_ns: now + SHORTEST_NS };
    }

    /// A core has found another busier, and nothing there that it may take.
    pub(crate) fn has_failed(&mut self, core: usize, now: u64) -> Next {
        let look = &mut self.looks[core];
        look.failed += 1;
        let push = u64::from(look.failed) > TRIES;
        if push {
            look.failed = AFTER_PUSH;
            look.interval_ns = (2 * look.interval_ns).min(LONGEST_NS);
        } else {
            look.interval_ns = SHORTEST_NS;
        }
        look.next_ns = now + look.interval_ns;
        if push { Next::Push } else { Next::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_core_relieves_one_whose_threads_all_run() {
        let idle = CoreLoad { idle: 2, runnable: 0, threads: 2 };
        let load = |idle, runnable| CoreLoad { idle, runnable, threads: 2 };
        assert!(!load(1, 1).is_busier_than(idle), "each core can have one");
        assert!(!load(1, 2).is_busier_than(idle), "the sibling takes what waits");
        assert!(load(0, 2).is_busier_than(idle));
        assert!(load(1, 3).is_busier_than(idle));
        let single = |idle, runnable| CoreLoad { idle, runnable, threads: 1 };
        assert!(!single(0, 1).is_busier_than(single(1, 0)), "it runs there as well");
        assert!(single(0, 2).is_busier_than(single(1, 0)));
    }

    #[test]
    fn the_fourth_failure_in_a_row_pushes_and_then_every_second() {
        let mut balance = NohzBalance::new(1);
        let fails =
            |balance: &mut NohzBalance| (0..8).map(|i| balance.has_failed(0, i * MS)).collect::<Vec<_>>();
        use Next::{Push, Wait};
        assert_eq!(fails(&mut balance), [Wait, Wait, Wait, Push, Wait, Push, Wait, Push]);
        balance.is_balanced(0, 8 * MS);
        assert_eq!(fails(&mut balance)[..4], [Wait, Wait, Wait, Push], "counted anew");
    }

    #[test]
    fn looks_that_find_nothing_become_rarer() {
        let mut balance = NohzBalance::new(2);
        assert!(balance.is_due(0) && balance.looks(0, 0));
        (0..2).for_each(|core| balance.is_balanced(core, 0));
        assert!(!balance.is_due(2 * MS - 1) && balance.is_due(2 * MS));
        (0..3).for_each(|_| balance.is_balanced(0, 2 * MS));
        assert!(!balance.looks(0, 6 * MS - 1) && balance.looks(0, 6 * MS));
        balance.has_pulled(0, 6 * MS);
        assert!(balance.looks(0, 7 * MS));
    }

    #[test]
    fn a_kick_is_for_one_look() {
        let mut balance = NohzBalance::new(1);
        balance.kick();
        assert!(balance.take_kick() && !balance.take_kick());
    }
}
