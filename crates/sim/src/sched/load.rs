//! A task's load as the scheduler measures it, and what it expects of the task when it wakes.
//!
//! Sources: Linux `kernel/sched/pelt.c` for the signal, `util_est_update()` in `kernel/sched/fair.c` for the
//! expectation. A task that worked hard before it slept will do so again, and its signal, which faded while
//! it slept, would take tens of ms to tell.
//!
//! ```text
//!   queued     runs      queued   runs    sleeps        wakes
//!  |----------|=========|--------|=======|-------------|
//!   fades      grows     fades    grows   fades         expected: what it was at the last sleep,
//!                                         ^ estimate    or the mean of those before, if that is more
//! ```

use wattwise_policy::pelt::{FULL, PERIOD_NS, Pelt};

/// Estimates nearer to each other than this are the same; of 1024 (`UTIL_EST_MARGIN`).
const MARGIN: u32 = FULL as u32 / 100;

/// One task's. Times are on the clock at whose multiples the signal's periods begin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskLoad {
    signal: Pelt,
    /// Up to when the signal tells.
    told_ns: u64,
    /// The signal at its last sleep that counted, and the mean of such, that of one in four.
    last: u32,
    mean: u32,
    /// The period in which that was.
    period: u64,
}

impl TaskLoad {
    /// A new task's: `util` of 1024, its credit.
    pub(crate) fn credited(util: u64, now: u64) -> TaskLoad {
        TaskLoad { signal: Pelt::at(util, now), told_ns: now, ..TaskLoad::default() }
    }

    /// It slept or waited until now.
    #[inline]
    pub(crate) fn rest(&mut self, now: u64) {
        self.signal.idle(now - self.told_ns);
        self.told_ns = now;
    }

    /// It ran until now, at `pace` of 1024 of the highest speed.
    #[inline]
    pub(crate) fn work(&mut self, now: u64, pace: u64) {
        self.signal.run(now - self.told_ns, pace);
        self.told_ns = now;
    }

    /// It goes to sleep: the estimate follows its signal, up at once and down by a quarter of the difference.
    /// The signal is not read twice within a period.
    pub(crate) fn sleep(&mut self) {
        let period = self.told_ns / PERIOD_NS;
        if std::mem::replace(&mut self.period, period) == period {
            return;
        }
        let util = self.util();
        if util > self.mean {
            self.mean = util;
        } else if self.mean - util >= MARGIN {
            self.mean = (3 * self.mean + util) / 4;
        } else if self.last.abs_diff(util) < MARGIN {
            return;
        }
        self.last = util;
    }

    /// Its signal, of 1024.
    #[inline]
    pub(crate) fn util(&self) -> u32 {
        self.signal.util().min(FULL) as u32
    }

    /// What it is expected to need, of 1024.
    #[inline]
    pub(crate) fn expected(&self) -> u32 {
        self.last.max(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A task that works for so long, then sleeps.
    fn works(load: &mut TaskLoad, ms: u64, slept_ms: u64) {
        load.rest(load.told_ns + slept_ms * MS);
        load.work(load.told_ns + ms * MS, FULL);
        load.sleep();
    }

    #[test]
    fn it_is_expected_to_work_as_before() {
        let mut load = TaskLoad::default();
        works(&mut load, 100, 0);
        let (util, expected) = (load.util(), load.expected());
        assert!(util > 850 && expected == util);
        load.rest(load.told_ns + 1000 * MS);
        assert_eq!((load.util(), load.expected()), (0, expected));
    }

    #[test]
    fn less_work_is_believed_by_quarters() {
        let mut load = TaskLoad::default();
        works(&mut load, 100, 0);
        let before = load.mean;
        works(&mut load, 2, 1000);
        let util = load.util();
        assert_eq!(load.expected(), (3 * before + util) / 4);
    }

    /// A parent that its child wakes eight times in a millisecond has slept once.
    #[test]
    fn sleeps_within_a_period_are_one() {
        let mut load = TaskLoad::default();
        works(&mut load, 100, 0);
        load.rest(load.told_ns + 200 * MS);
        load.told_ns = load.told_ns.next_multiple_of(PERIOD_NS);
        let expected = load.expected();
        for _ in 0..8 {
            load.work(load.told_ns + 20_000, FULL);
            load.sleep();
            load.rest(load.told_ns + 50_000);
        }
        assert!(load.expected() >= 3 * expected / 4, "one quarter off and no more: {}", load.expected());
    }

    #[test]
    fn waiting_fades_and_a_credit_is_the_first_signal() {
        let mut load = TaskLoad::credited(512, 3 * MS);
        assert!(load.util().abs_diff(512) <= 1);
        load.rest(3 * MS + 32 * PERIOD_NS);
        assert!(load.util().abs_diff(256) <= 2, "{}", load.util());
        assert_eq!(load.expected(), 0, "it has not slept yet");
    }
}
