//! `menu`: the next timer, corrected by experience, unless the last sleeps show a pattern.
//!
//! It follows Linux 6.1, `drivers/cpuidle/governors/menu.c`, in a simpler form.
//!
//! It observes, when a CPU runs out of work, how far the next timer is; and after each sleep how long it was. It keeps
//! the last 8 sleeps, and for each order of magnitude of the timer's distance a correction factor.
//!
//! Choosing:
//! 1. Pattern. Mean and variance of the last 8 sleeps in us. They are a pattern when the variance
//!    is at most 400 us^2 (all within some 20 us: a device at work), or the mean is over six standard deviations
//!    with at least 6 of the 8 left. Else the one furthest out is dropped, and again; when 6 are not a
//!    pattern either there is none. Two strays among eight is what an interrupt now and then looks like.
//! 2. Timer. Its distance times the factor of its bucket: under 10 us, 100 us, 1 ms, 10 ms, 100 ms, and beyond.
//!    A CPU that other things wake long before its far timers may still be woken punctually by near ones,
//!    hence a factor for each decade.
//! 3. The prediction is the less of both. With the tick stopped already and less than a tick
//!    predicted, the timer's distance is taken: should the prediction be wrong, no tick would correct it.
//! 4. The deepest enabled state whose target residency is within the prediction and whose exit
//!    latency is within the limit.
//! 5. The tick stays on when less than a tick is predicted, as the net for a wrong guess. It then
//!    wakes the CPU anyway, and a state that pays only after it is too deep.
//!
//! Learning:
//! 6. The sleep is what was measured less the exit latency, or half of it when the latency is most of it, and at most the
//!    timer's distance. A sleep that only the tick ended would have gone on for long: 45 ms.
//! 7. The bucket's factor loses an eighth and gains an eighth of measured/distance, or of 1 from 50 ms on,
//!    where no state could be deeper and the error no longer matters.
//!
//! A CPU begins with 8 long sleeps, so that it is no pattern of zeros.
//!
//! Left out: factors of their own for times when tasks wait for I/O, and the shorter exit latency that the
//! kernel then demands. Different: the kernel drops the longest of the 8 sleeps, not the one furthest out.

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState};
use alloc::boxed::Box;

/// Sleeps remembered.
const INTERVALS: usize = 8;
/// Fewest sleeps that make a pattern.
const LEAST: usize = 6;
/// Variance in us^2 up to which sleeps are alike whatever their mean.
const TIGHT_US2: u64 = 400;
/// Square of the number of standard deviations that the mean must exceed: 6.
const SIGMAS_SQUARED: u64 = 36;
/// Longest sleep remembered, in us (18 minutes): its square times 8 still fits 64 bits.
const LONGEST_US: u32 = 1 << 30;
/// Longest timer distance reckoned with, in ns (13 days): times a factor it still fits 64 bits.
const LONGEST_NS: u64 = 1 << 50;

/// Decades of the timer's distance.
const BUCKETS: usize = 6;
/// Upper ends of all buckets but the last, in ns.
const ENDS_NS: [u64; BUCKETS - 1] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// A gain of 1 in a factor.
const RESOLUTION: u32 = 1024;
/// A factor forgets one part in this.
const DECAY: u32 = 8;
/// Bits of a factor of 1, which is where gain and loss balance: 1024 x 8.
const UNITY_SHIFT: u32 = 13;
/// Sleeps from here on count as predicted, in ns.
const MAX_INTERESTING_NS: u64 = 50_000_000;
/// What a sleep that the tick cut short is taken for, in ns.
const CUT_BY_TICK_NS: u64 = MAX_INTERESTING_NS / 10 * 9;

/// Index of the decade of a timer's distance.
fn bucket(timer_ns: u64) -> usize {
    ENDS_NS.iter().take_while(|&&end| timer_ns >= end).count()
}

/// `sum / n` for the few n that occur: each is a division by a constant.
fn divide(sum: u64, n: usize) -> u64 {
    match n {
        8 => sum / 8,
        7 => sum / 7,
        _ => sum / 6,
    }
}

/// Step 1: the typical sleep in us, where there is one.
fn pattern(mut us: [u32; INTERVALS]) -> Option<u32> {
    let mut n = INTERVALS;
    loop {
        let left = &mut us[..n];
        let mean = divide(left.iter().map(|&x| u64::from(x)).sum(), n);
        let square = |x: &u32| u64::from(*x).abs_diff(mean).pow(2);
        let variance = divide(left.iter().map(square).sum(), n);
        if variance <= TIGHT_US2 || mean * mean > variance.saturating_mul(SIGMAS_SQUARED) {
            return Some(mean as u32);
        }
        if n == LEAST {
            return None;
        }
        let out = (0..n).max_by_key(|&i| u64::from(left[i]).abs_diff(mean)).unwrap_or(0);
        left.swap(out, n - 1);
        n -= 1;
    }
}

/// Step 7.
fn corrected(factor: u32, timer_ns: u64, slept_ns: u64) -> u32 {
    let gain = if timer_ns > 0 && slept_ns < MAX_INTERESTING_NS {
        (u64::from(RESOLUTION) * slept_ns / timer_ns).min(u64::from(RESOLUTION)) as u32
    } else {
        RESOLUTION
    };
    // Never 0: a factor of 0 could not tell near from far.
    (factor - factor / DECAY + gain).max(1)
}

/// One CPU.
struct Menu {
    tick_ns: u64,
    /// The last sleeps in us, in any order.
    slept_us: [u32; INTERVALS],
    /// The next to be replaced.
    at: usize,
    factors: [u32; BUCKETS],
    /// The timer's distance at the last choice.
    timer_ns: u64,
    /// Its bucket.
    bucket: usize,
}

impl Menu {
    fn new(tick_ns: u64) -> Menu {
        Menu {
            tick_ns,
            slept_us: [LONGEST_US; INTERVALS],
            at: 0,
            factors: [1 << UNITY_SHIFT; BUCKETS],
            timer_ns: 0,
            bucket: 0,
        }
    }

    /// Steps 1 to 3.
    fn predict(&self, tick_stopped: bool) -> u64 {
        let by_pattern = pattern(self.slept_us).map_or(u64::MAX, |us| u64::from(us) * 1000);
        let by_timer = (self.timer_ns * u64::from(self.factors[self.bucket])) >> UNITY_SHIFT;
        let predicted = by_pattern.min(by_timer);
        if tick_stopped && predicted < self.tick_ns { self.timer_ns } else { predicted }
    }
}

/// Step 4, and the second half of step 5: the deepest state that fits into `ns`.
fn deepest(query: &IdleQuery<'_>, ns: u64) -> usize {
    let mut best = 0;
    for (i, state) in query.states.iter().enumerate() {
        if !state.enabled {
            continue;
        }
        // States are ordered: what is deeper fits even less.
        if state.target_ns > ns || state.exit_ns > query.latency_limit_ns {
            break;
        }
        best = i;
    }
    best
}

impl IdlePolicy for Menu {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        self.timer_ns = query.next_timer_ns.min(LONGEST_NS);
        self.bucket = bucket(self.timer_ns);
        let predicted = self.predict(query.tick_stopped);
        let stop_tick = query.tick_stopped || predicted >= self.tick_ns;
        let room = if stop_tick { predicted } else { predicted.min(query.next_tick_ns) };
        IdleChoice { state: deepest(query, room) as u8, stop_tick }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        let exit_ns = states.get(usize::from(outcome.state)).map_or(0, |s| s.exit_ns);
        let slept_ns = if outcome.by_tick && self.timer_ns > self.tick_ns {
            CUT_BY_TICK_NS
        } else if outcome.measured_ns > exit_ns.saturating_mul(2) {
            outcome.measured_ns - exit_ns
        } else {
            outcome.measured_ns / 2
        };
        let slept_ns = slept_ns.min(self.timer_ns);
        self.factors[self.bucket] = corrected(self.factors[self.bucket], self.timer_ns, slept_ns);
        self.slept_us[self.at] = (slept_ns / 1000).min(u64::from(LONGEST_US)) as u32;
        self.at = (self.at + 1) % INTERVALS;
    }
}

/// Linux's menu.
pub(super) static MENU: Idle = Idle {
    name: "menu",
    summary: "Linux: the next timer corrected by experience, or the pattern of the last sleeps",
    follows: "Linux 6.1, drivers/cpuidle/governors/menu.c",
    source: include_str!("menu.rs"),
    params: &[],
    build: |_, tick_ns, _| Box::new(Menu::new(tick_ns)),
};

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, STATES, US, outcome, query};
    use super::*;

    #[test]
    fn constant_intervals_are_a_pattern() {
        assert_eq!(pattern([300; 8]), Some(300));
        assert_eq!(pattern([290, 310, 300, 305, 295, 300, 308, 292]), Some(300));
        // Two strays on either side are dropped, a third is too much.
        assert_eq!(pattern([300, 300, 9000, 300, 300, 1, 300, 300]), Some(300));
        assert_eq!(pattern([300, 300, 9000, 300, 5000, 1, 300, 300]), None);
        assert_eq!(pattern([1, 500, 2000, 40, 9000, 100, 700, 3000]), None);
        assert_eq!(pattern([0, 40, 0, 40, 0, 40, 0, 40]), Some(20), "a variance of 400 is tight");
        assert_eq!(pattern([0, 60, 0, 60, 0, 60, 0, 60]), None, "900 is not, nor what six of them leave");
        assert_eq!(pattern([LONGEST_US; 8]), Some(LONGEST_US));
    }

    #[test]
    fn the_timer_alone_at_first() {
        let mut m = Menu::new(4 * MS);
        let pick = |m: &mut Menu, ns| m.select(&query(ns, &STATES));
        assert_eq!(pick(&mut m, 100 * MS), IdleChoice { state: 3, stop_tick: true });
        assert_eq!(pick(&mut m, 5 * MS), IdleChoice { state: 3, stop_tick: true });
        assert_eq!(pick(&mut m, 90 * US), IdleChoice { state: 2, stop_tick: false });
        assert_eq!(pick(&mut m, US), IdleChoice { state: 0, stop_tick: false });
        assert_eq!(pick(&mut m, u64::MAX), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn a_pattern_beats_the_timer() {
        let mut m = Menu::new(4 * MS);
        for _ in 0..8 {
            m.select(&query(100 * MS, &STATES));
            m.reflect(&outcome(0, 30 * US), &STATES);
        }
        assert_eq!(m.select(&query(100 * MS, &STATES)), IdleChoice { state: 1, stop_tick: false });
    }

    #[test]
    fn factors_learn_by_decade() {
        let mut m = Menu::new(4 * MS);
        for i in 0..100 {
            m.select(&query(8 * MS, &STATES));
            // Between a quarter and three quarters of the timer: no pattern, half on average.
            m.reflect(&outcome(0, if i % 2 == 0 { 2 * MS } else { 6 * MS }), &STATES);
        }
        let unity = 1 << UNITY_SHIFT;
        assert!(m.factors[3].abs_diff(unity / 2) < unity / 20, "{:?}", m.factors);
        assert_eq!(m.factors[4], unity, "the next decade has learnt nothing");
        m.timer_ns = 8 * MS;
        m.bucket = 3;
        assert!(m.predict(false).abs_diff(4 * MS) < MS / 2);
    }

    #[test]
    fn with_the_tick_stopped_a_short_guess_is_not_trusted() {
        let mut m = Menu::new(4 * MS);
        for _ in 0..8 {
            m.select(&query(100 * MS, &STATES));
            m.reflect(&outcome(0, 30 * US), &STATES);
        }
        let q = IdleQuery { tick_stopped: true, ..query(100 * MS, &STATES) };
        assert_eq!(m.select(&q), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn a_kept_tick_bounds_the_depth() {
        let mut m = Menu::new(4 * MS);
        let q = IdleQuery { next_tick_ns: 50 * US, ..query(3 * MS, &STATES) };
        assert_eq!(m.select(&q), IdleChoice { state: 1, stop_tick: false });
    }

    #[test]
    fn limits_and_disabled_states() {
        let mut m = Menu::new(4 * MS);
        let q = IdleQuery { latency_limit_ns: 20 * US, ..query(100 * MS, &STATES) };
        assert_eq!(m.select(&q).state, 1);
        let mut states = STATES;
        states[3].enabled = false;
        assert_eq!(m.select(&query(100 * MS, &states)).state, 2);
    }

    #[test]
    fn a_sleep_ended_by_the_tick_counts_as_long() {
        let mut m = Menu::new(4 * MS);
        m.select(&query(100 * MS, &STATES));
        m.reflect(&IdleOutcome { by_tick: true, ..outcome(0, 3 * MS) }, &STATES);
        assert_eq!(m.slept_us[0], 45_000);
        m.select(&query(2 * MS, &STATES));
        m.reflect(&outcome(2, 50 * US), &STATES);
        assert_eq!(m.slept_us[1], 25, "mostly exit latency: half of it");
        m.select(&query(2 * MS, &STATES));
        m.reflect(&outcome(2, 500 * US), &STATES);
        assert_eq!(m.slept_us[2], 460);
    }
}
