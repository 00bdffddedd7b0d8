//! `menu-3.1`: the menu governor of Linux 3.1, as study 002 ran it.
//!
//! It follows Linux 3.1, `drivers/cpuidle/governors/menu.c`. What it observes and keeps is what `menu` does. Choosing:
//!
//! 1. The timer's distance times the factor of its bucket: 12 of them, six decades with and without tasks that wait for I/O.
//! 2. A pattern: the plain mean of the last 8 sleeps, where it is no longer than the timer's distance and their variance is below
//!    400 us^2. Nothing is dropped, and no deviations are counted.
//! 3. The deepest enabled state whose target residency is within the prediction, and whose exit latency times a multiplier is too.
//!    The multiplier is 1, 10 more for each task that waits for I/O, and 2 for each tenth of the load at the last tick (`cpu_load`).
//!    A task of nice level 0 counts as 5 tenths (`load`), so that after a tick that found one running the multiplier is 11. Where
//!    tasks are grouped (`CONFIG_SCHED_AUTOGROUP`) the group has one such weight on all CPUs together: a quarter of it is 1 tenth.
//! 4. The tick: the idle loop stopped it before it asked, whatever the answer.
//!
//! Learning: a factor loses a quarter (later kernels: an eighth) and gains as much of measured over distance.
//!
//! Left out: the weight of tasks that wait at the tick beside the one that runs, and of nice levels.

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState};
use crate::{Param, ParamKind, Settings};
use alloc::boxed::Box;

/// Sleeps remembered.
const INTERVALS: usize = 8;
/// Variance below which they are a pattern, in us^2 (`STDDEV_THRESH`).
const TIGHT_US2: u64 = 400;
/// Upper ends of the decades but the last, in us.
const ENDS_US: [u64; 5] = [10, 100, 1000, 10_000, 100_000];
/// Factors: a decade each, without and with tasks that wait.
const BUCKETS: usize = 12;
/// A gain of 1 in a factor.
const RESOLUTION: u64 = 1024;
/// A factor forgets one part in this (`DECAY`).
const DECAY: u64 = 4;
/// A factor of 1.
const UNITY: u64 = RESOLUTION * DECAY;
/// Sleeps from here on count as predicted, in us.
const MAX_INTERESTING_US: u64 = 50_000;
/// What each task that waits for I/O adds to the multiplier of the exit latency.
const WAITER: u64 = 10;
/// What each tenth of the load adds (`performance_multiplier()`).
const TENTH: u64 = 2;
/// Longest distance reckoned with, in us.
const LONGEST_US: u64 = 1 << 30;

struct Menu31 {
    /// Tenths that a task counts as.
    task_tenths: u64,
    slept_us: [u64; INTERVALS],
    at: usize,
    factors: [u64; BUCKETS],
    timer_us: u64,
    bucket: usize,
}

/// Step 2.
fn pattern(us: &[u64; INTERVALS], timer_us: u64) -> Option<u64> {
    let n = INTERVALS as u64;
    let mean = us.iter().sum::<u64>() / n;
    let variance = us.iter().map(|x| x.abs_diff(mean).pow(2)).sum::<u64>() / n;
    (mean <= timer_us && variance < TIGHT_US2).then_some(mean)
}

impl IdlePolicy for Menu31 {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        let timer_us = (query.next_timer_ns / 1000).min(LONGEST_US);
        let waits = if query.iowaiters > 0 { BUCKETS / 2 } else { 0 };
        (self.timer_us, self.bucket) =
            (timer_us, waits + ENDS_US.iter().take_while(|&&e| timer_us >= e).count());
        let by_timer = timer_us * self.factors[self.bucket] / UNITY;
        let predicted_ns = pattern(&self.slept_us, timer_us).unwrap_or(by_timer) * 1000;
        let multiplier =
            1 + TENTH * self.task_tenths * u64::from(query.ran_at_tick) + WAITER * u64::from(query.iowaiters);
        let fits = |s: &IdleState| {
            s.enabled
                && s.target_ns <= predicted_ns
                && s.exit_ns <= query.latency_limit_ns
                && s.exit_ns * multiplier <= predicted_ns
        };
        let state = query.states.iter().rposition(fits).unwrap_or(0);
        IdleChoice { state: state as u8, stop_tick: true }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        let exit_ns = states.get(usize::from(outcome.state)).map_or(0, |s| s.exit_ns);
        let slept_us = (outcome.measured_ns.saturating_sub(exit_ns) / 1000).min(self.timer_us);
        let factor = &mut self.factors[self.bucket];
        *factor -= *factor / DECAY;
        *factor += if self.timer_us > 0 && slept_us < MAX_INTERESTING_US {
            RESOLUTION * slept_us / self.timer_us
        } else {
            RESOLUTION
        };
        // "We don't want 0 as factor."
        *factor = (*factor).max(1);
        self.slept_us[self.at] = slept_us;
        self.at = (self.at + 1) % INTERVALS;
    }
}

/// Linux 3.1's menu.
pub(super) static MENU_3_1: Idle = Idle {
    name: "menu-3.1",
    summary: "Linux 3.1: the timer corrected by experience, or a plain mean of eight like sleeps",
    follows: "Linux 3.1, drivers/cpuidle/governors/menu.c",
    source: include_str!("menu_3_1.rs"),
    params: &[Param {
        name: "load",
        help: "tenths of a load that a task counts as which ran at the last tick; fewer where tasks are grouped",
        kind: ParamKind::Number { unit: "", min: 0.0, max: 10.0, default: 5.0 },
    }],
    build: |_, _, s: &Settings| {
        Box::new(Menu31 {
            task_tenths: s.count("load"),
            slept_us: [0; INTERVALS],
            at: 0,
            factors: [UNITY; BUCKETS],
            timer_us: 0,
            bucket: 0,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, STATES, US, outcome, query};
    use super::*;

    #[test]
    fn a_pattern_is_a_plain_mean_and_one_long_sleep_spoils_it() {
        assert_eq!(pattern(&[300; 8], 1000), Some(300));
        assert_eq!(pattern(&[300; 8], 299), None, "the timer is nearer");
        assert_eq!(pattern(&[300, 300, 300, 9000, 300, 300, 300, 300], 100_000), None);
        // 20 and 60: mean 40, variance 400, which is not below it.
        assert_eq!(pattern(&[20, 60, 20, 60, 20, 60, 20, 60], 1000), None);
    }

    /// 4096 less a quarter is 3072, and 2 of 8 ms gain 256: 8 ms are taken for 8 x 3328 / 4096 = 6.5.
    #[test]
    fn a_factor_forgets_a_quarter() {
        let mut m = (MENU_3_1.build)(&STATES, 4 * MS, &Settings::defaults(MENU_3_1.params));
        m.select(&query(8 * MS, &STATES));
        m.reflect(&outcome(0, 2 * MS + STATES[0].exit_ns), &STATES);
        let near = [
            IdleState { target_ns: 6_499 * US, ..STATES[0] },
            IdleState { target_ns: 6_501 * US, ..STATES[0] },
        ];
        let states = [STATES[0], near[0], near[1]];
        assert_eq!(m.select(&query(8 * MS, &states)), IdleChoice { state: 1, stop_tick: true });
    }

    #[test]
    fn who_waits_for_io_is_not_held_up() {
        let mut m = (MENU_3_1.build)(&STATES, 4 * MS, &Settings::defaults(MENU_3_1.params));
        // Eight sleeps of 0, with which it begins, are a pattern: one of 1 ms breaks it.
        m.select(&query(MS, &STATES));
        m.reflect(&outcome(0, MS + STATES[0].exit_ns), &STATES);
        let query = |iowaiters| IdleQuery { iowaiters, ..query(MS, &STATES) };
        let deep = m.select(&query(0)).state;
        assert!(m.select(&query(99)).state < deep);
    }

    /// C3 of study 002's machine leaves in 80 us: after a tick that found one task 880 us must be expected, after two 1680.
    #[test]
    fn the_load_at_the_last_tick_keeps_sleeps_shallow() {
        let states =
            [STATES[0], IdleState { exit_ns: 80 * US, target_ns: 211 * US, enabled: true, polls: false }];
        let chosen = |timer_us: u64, ran_at_tick: u32| {
            let mut m = (MENU_3_1.build)(&states, 4 * MS, &Settings::defaults(MENU_3_1.params));
            m.select(&query(MS, &states));
            m.reflect(&outcome(0, MS + STATES[0].exit_ns), &states);
            m.select(&IdleQuery { ran_at_tick, ..query(timer_us * US, &states) }).state
        };
        assert_eq!([chosen(211, 0), chosen(879, 1), chosen(880, 1)], [1, 0, 1]);
        assert_eq!([chosen(1679, 2), chosen(1680, 2)], [0, 1]);
    }
}
