//! `menu`: the next timer, corrected by experience, unless the last sleeps show a pattern.
//!
//! It follows Linux 6.12 (as of 6.12.117), `drivers/cpuidle/governors/menu.c`; with `linux=6.1` the same file of Linux
//! 6.1 (as of 6.1.192).
//!
//! It observes, when a CPU runs out of work, how far the next timer and the next tick are and whether the tick is
//! stopped; and after each sleep how long it was and whether the tick ended it. It keeps the last 8 sleeps, and for each
//! order of magnitude of the timer's distance a correction factor.
//!
//! Choosing:
//! 1. Typical sleep. Mean and variance of the last 8 sleeps in us. The mean is typical when the variance is at most 400
//!    us^2 (all within some 20 us: a device at work), or when it is over six standard deviations and at least 6 sleeps
//!    are left. Else what is as long as the longest is dropped, and again; when 6 or fewer show nothing there is no
//!    typical sleep. Only the upper end is dropped: long pauses between rows of short sleeps are what a load that
//!    waits for its user looks like.
//! 2. Timer. Its distance times the factor of its bucket: under 10 us, 100 us, 1 ms, 10 ms, 100 ms, and beyond.
//!    A CPU that other things wake long before its far timers may still be woken punctually by near ones,
//!    hence a factor for each decade.
//! 3. The prediction is the less of both. With the tick stopped already and less than a tick predicted, the
//!    timer's distance is taken: should the prediction be wrong, no tick would correct it.
//! 4. A typical sleep of at most 15 us is believed without a look at the timers, which costs more than it could
//!    save, unless the tick is stopped. The timer then counts as endless, and the tick as half a tick away.
//! 5. The deepest enabled state whose target residency is within the prediction and whose exit
//!    latency is within the limit.
//! 6. The tick stays on when less than a tick is predicted, as the net for a wrong guess. It also stays
//!    where more is predicted, but not enough for the next deeper state, and the state taken pays within a tick: there, waking
//!    early costs little. With the tick stopped already it is the other way round: the deeper state, if the timer is far enough.
//! 7. A tick that stays wakes the CPU anyway, and a state that pays only after it is too deep.
//!
//! Learning:
//! 8. The sleep is what was measured less the exit latency, or half of it when the latency is most of it, and at most the
//!    timer's distance. A sleep that only the tick ended would have gone on for long: 45 ms.
//! 9. The bucket's factor loses an eighth and gains an eighth of measured/distance, or of 1 from 50 ms on,
//!    where no state could be deeper and the error no longer matters. After step 4 that is the last bucket's,
//!    and it gains nothing.
//!
//! A CPU begins as after the kernel's start: eight sleeps of 0, which are no pattern, and factors of 1.
//!
//! In Linux 6.1, instead:
//! - There are 12 buckets: six for when tasks of this CPU wait for I/O, six for when none does.
//! - The exit latency must also be within the prediction, divided by 1 + 10 for each of those tasks, while the tick goes on: what
//!   waits for a device is held up by every wake-up. 10 is Linux's figure, found by experiment.
//! - Step 4 is missing. Sleeps that are all at least as long as the timer's prediction are no pattern, but eight of 0 are.
//! - Of a state that is both too deep for the prediction and too slow for the limit, the first counts (step 6).
//!
//! Polling: on x86 the kernel's table begins with a state that polls, and models have none. The rule is the kernel's with that
//! state in its place; what would poll takes state 0, with the tick on. On machines without it (most of Arm) the
//! kernel asks to stop the tick where a timer is due before the second state pays, and then keeps it because of the timer.
//!
//! Left out: a poll that ran into its time limit; a driver that refuses the state.

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState, first_physical};
use crate::{Param, ParamKind, Settings};
use alloc::boxed::Box;

/// Sleeps remembered.
const INTERVALS: usize = 8;
/// Fewest sleeps whose mean counts by its standard deviations; at this number nothing more is dropped.
const LEAST: u64 = 6;
/// Variance in us^2 up to which sleeps are alike whatever their mean.
const TIGHT_US2: u64 = 400;
/// Square of the number of standard deviations that the mean must exceed: 6.
const SIGMAS_SQUARED: u64 = 36;
/// Longest sleep remembered, in us (18 minutes): its square times 8 still fits 64 bits.
const LONGEST_US: u32 = 1 << 30;
/// Longest timer distance reckoned with, in ns (13 days): times a factor it still fits 64 bits.
const LONGEST_NS: u64 = 1 << 50;
/// Typical sleeps up to this are believed without a look at the timers, in ns (`RESIDENCY_THRESHOLD_NS`).
const SHORT_NS: u64 = 15_000;

/// Decades of the timer's distance.
const DECADES: usize = 6;
/// Upper ends of all decades but the last, in ns.
const ENDS_NS: [u64; DECADES - 1] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Factors: one a decade, without and with tasks that wait for I/O.
const BUCKETS: usize = 2 * DECADES;
/// A gain of 1 in a factor.
const RESOLUTION: u32 = 1024;
/// A factor forgets one part in this.
const DECAY: u32 = 8;
/// A factor of 1, which is where gain and loss balance.
const UNITY: u32 = RESOLUTION * DECAY;
/// Sleeps from here on count as predicted, in ns.
const MAX_INTERESTING_NS: u64 = 50_000_000;
/// What a sleep that the tick cut short is taken for, in ns.
const CUT_BY_TICK_NS: u64 = MAX_INTERESTING_NS / 10 * 9;
/// What each task that waits for I/O adds to the divisor of the prediction (6.1).
const WAITER: u64 = 10;

/// Whose rule, in the order of the parameter's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linux {
    V6_12,
    V6_1,
}

/// Index of the decade of a timer's distance.
fn decade(timer_ns: u64) -> usize {
    ENDS_NS.iter().take_while(|&&end| timer_ns >= end).count()
}

/// Step 1: the typical sleep in us, where there is one. `useless`: whether the shortest and longest of those left say
/// that no mean of theirs could be of use.
fn typical(us: &[u32; INTERVALS], useless: impl Fn(u32, u32) -> bool) -> Option<u32> {
    let (mut n, mut sum, mut squares, mut shortest, mut longest) = (INTERVALS as u64, 0, 0, u32::MAX, 0);
    for &x in us {
        sum += u64::from(x);
        squares += u64::from(x).pow(2);
        (shortest, longest) = (shortest.min(x), longest.max(x));
    }
    loop {
        if useless(shortest, longest) {
            return None;
        }
        let mean = divided(sum, n);
        // The sum of (x - mean)^2, modulo 2^64: single terms may overflow, the result does not.
        let apart = squares.wrapping_add(n * mean * mean).wrapping_sub((2 * mean).wrapping_mul(sum));
        let variance = divided(apart, n);
        let alike = n >= LEAST && mean * mean > variance.saturating_mul(SIGMAS_SQUARED);
        if alike || variance <= TIGHT_US2 {
            return Some(mean as u32);
        }
        if n <= LEAST {
            return None;
        }
        let (mut equal, mut next) = (0, 0);
        for &x in us {
            equal += u64::from(x == longest);
            next = next.max(if x < longest { x } else { 0 });
        }
        n -= equal;
        sum -= equal * u64::from(longest);
        squares -= equal * u64::from(longest).pow(2);
        longest = next;
    }
}

/// A sum over a number of sleeps. The usual numbers by themselves: dividing by a constant is a multiplication.
fn divided(sum: u64, n: u64) -> u64 {
    const USUAL: u64 = INTERVALS as u64;
    match n {
        USUAL => sum / USUAL,
        7 => sum / 7,
        6 => sum / 6,
        n => sum / n,
    }
}

/// Step 9. It never comes to 0: below 8 it loses nothing.
fn corrected(factor: u32, timer_ns: u64, slept_ns: u64) -> u32 {
    let gain = if timer_ns > 0 && slept_ns < MAX_INTERESTING_NS {
        // At most 1: no sleep is taken for longer than the timer's distance.
        (u64::from(RESOLUTION) * slept_ns / timer_ns) as u32
    } else {
        RESOLUTION
    };
    factor - factor / DECAY + gain
}

/// What steps 1 to 4 say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prediction {
    ns: u64,
    /// To what wakes the CPU at the latest if the tick stays, in ns.
    event_ns: u64,
    /// Longest exit latency, in ns.
    latency_ns: u64,
}

/// One CPU.
struct Menu {
    linux: Linux,
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
    fn new(linux: Linux, tick_ns: u64) -> Menu {
        Menu {
            linux,
            tick_ns,
            slept_us: [0; INTERVALS],
            at: 0,
            factors: [UNITY; BUCKETS],
            timer_ns: 0,
            bucket: 0,
        }
    }

    /// Step 2, in us.
    fn by_timer_us(&self) -> u64 {
        const UNITY_US: u64 = UNITY as u64 * 1000;
        (self.timer_ns * u64::from(self.factors[self.bucket]) + UNITY_US / 2) / UNITY_US
    }

    /// Steps 1 to 4.
    fn predict(&mut self, query: &IdleQuery<'_>) -> Prediction {
        let timer_ns = query.next_timer_ns.min(LONGEST_NS);
        let event_ns = if query.tick_stopped { timer_ns } else { timer_ns.min(query.next_tick_ns) };
        let latency_ns = query.latency_limit_ns;
        let ns = |us: Option<u32>| us.map_or(u64::MAX, |us| u64::from(us) * 1000);
        match self.linux {
            Linux::V6_12 => {
                let typical_ns = ns(typical(&self.slept_us, |_, longest| longest == 0));
                if typical_ns <= SHORT_NS && !query.tick_stopped {
                    (self.timer_ns, self.bucket) = (LONGEST_NS, DECADES - 1);
                    return Prediction { ns: typical_ns, event_ns: self.tick_ns / 2, latency_ns };
                }
                (self.timer_ns, self.bucket) = (timer_ns, decade(timer_ns));
                let ns = self.trusted(typical_ns.min(self.by_timer_us() * 1000), query);
                Prediction { ns, event_ns, latency_ns }
            }
            Linux::V6_1 => {
                let waits = query.iowaiters > 0;
                (self.timer_ns, self.bucket) = (timer_ns, decade(timer_ns) + if waits { DECADES } else { 0 });
                let by_timer_us = self.by_timer_us();
                let typical_ns =
                    ns(typical(&self.slept_us, |shortest, _| u64::from(shortest) >= by_timer_us));
                let predicted_ns = typical_ns.min(by_timer_us * 1000);
                let endurable_ns = if query.tick_stopped {
                    u64::MAX
                } else {
                    predicted_ns / (1 + WAITER * u64::from(query.iowaiters))
                };
                let ns = self.trusted(predicted_ns, query);
                Prediction { ns, event_ns, latency_ns: latency_ns.min(endurable_ns) }
            }
        }
    }

    /// Step 3's second half.
    fn trusted(&self, ns: u64, query: &IdleQuery<'_>) -> u64 {
        if query.tick_stopped && ns < self.tick_ns { self.timer_ns } else { ns }
    }

    /// Steps 5 and 6: the state, none where the kernel would poll, and whether the tick may stop.
    fn deepest(&self, query: &IdleQuery<'_>, p: &Prediction) -> (Option<usize>, bool) {
        let mut best: Option<usize> = None;
        for (i, state) in query.states.iter().enumerate().filter(|(_, s)| s.enabled && !s.polls) {
            let too_deep = state.target_ns > p.ns;
            let too_slow = state.exit_ns > p.latency_ns;
            if too_deep && !(too_slow && self.linux == Linux::V6_12) {
                let Some(b) = best else { break };
                let best_ns = query.states[b].target_ns;
                if p.ns < self.tick_ns {
                    break;
                }
                if query.tick_stopped && best_ns < self.tick_ns && state.target_ns <= p.event_ns {
                    best = Some(i);
                }
                return (best, query.tick_stopped || best_ns >= self.tick_ns);
            }
            if too_slow {
                break;
            }
            best = Some(i);
        }
        (best, query.tick_stopped || (best.is_some() && p.ns >= self.tick_ns))
    }
}

/// The hardware's first enabled state, however short the sleep; where there is none, polling.
fn shallowest(query: &IdleQuery<'_>) -> usize {
    let fits = |s: &IdleState| s.enabled && !s.polls && s.exit_ns <= query.latency_limit_ns;
    query.states.iter().position(fits).unwrap_or(0)
}

/// Step 7: the deepest enabled state up to `from` that pays within `ns`.
fn shallower(states: &[IdleState], from: usize, ns: u64) -> usize {
    (0..=from).rev().find(|&i| states[i].enabled && states[i].target_ns <= ns).unwrap_or(0)
}

impl IdlePolicy for Menu {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        let prediction = self.predict(query);
        // Nothing but polling would do: too near a timer or too strict a limit for the first state.
        let first = &query.states[first_physical(query.states)];
        if self.timer_ns < first.target_ns || query.latency_limit_ns < first.exit_ns.max(1) {
            return IdleChoice { state: 0, stop_tick: query.tick_stopped };
        }
        let (state, stop_tick) = self.deepest(query, &prediction);
        let mut state = state.unwrap_or_else(|| shallowest(query));
        if !stop_tick {
            state = shallower(query.states, state, prediction.event_ns);
        }
        IdleChoice { state: state as u8, stop_tick }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        let exit_ns = states.get(usize::from(outcome.state)).map_or(0, |s| s.exit_ns);
        let slept_ns = if outcome.by_tick && self.timer_ns > self.tick_ns {
            CUT_BY_TICK_NS
        } else if outcome.poll_ended {
            self.timer_ns
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
    follows: "Linux 6.12, drivers/cpuidle/governors/menu.c; with linux=6.1 that of 6.1",
    source: include_str!("menu.rs"),
    params: &[Param {
        name: "linux",
        help: "whose rule: that of Linux 6.12, or of 6.1, which goes by the tasks that wait for I/O too",
        kind: ParamKind::Choice(&["6.12", "6.1"]),
    }],
    build: |_, tick_ns, s: &Settings| {
        let linux = if s.count("linux") == 1 { Linux::V6_1 } else { Linux::V6_12 };
        Box::new(Menu::new(linux, tick_ns))
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, POLLED, STATES, US, outcome, query};
    use super::*;
    use alloc::vec::Vec;

    fn menu() -> Menu {
        Menu::new(Linux::V6_12, 4 * MS)
    }

    fn typical_of(us: [u32; INTERVALS]) -> Option<u32> {
        typical(&us, |_, longest| longest == 0)
    }

    /// Lives through sleeps of these lengths in state 0, whose exit takes 1 us, under a timer 100 ms away.
    fn live(m: &mut Menu, sleeps: &[u64]) {
        for &ns in sleeps {
            m.select(&query(100 * MS, &STATES));
            m.reflect(&outcome(0, ns + US), &STATES);
        }
    }

    /// A fifth state that pays for 5 ms only, more than a tick.
    fn five_states() -> [IdleState; 5] {
        let [a, b, c, d] = STATES;
        [a, b, c, d, IdleState { exit_ns: 2 * MS, target_ns: 5 * MS, enabled: true, polls: false }]
    }

    /// 7 x 300 and 9000: mean 11100 / 8 = 1387, variance (7 x 1087^2 + 7613^2) / 8 = 8 278 594; 1387^2 = 1 923 769 is less than
    /// 36 times that. Without the 9000 the mean is 300 and the variance 0.
    #[test]
    fn one_long_sleep_among_the_typical_is_dropped() {
        assert_eq!(typical_of([300, 300, 300, 9000, 300, 300, 300, 300]), Some(300));
        // And so are two that differ, for 6 are left; with a third different one nothing is left to say.
        assert_eq!(typical_of([300, 300, 300, 9000, 300, 5000, 300, 300]), Some(300));
        assert_eq!(typical_of([300, 300, 7000, 9000, 300, 5000, 300, 300]), None);
    }

    /// Met in a ping-pong of two CPUs. All: mean 1262 / 8 = 157, variance 15696 / 8 = 1962; 157^2 = 24 649 < 36 x 1962.
    /// Without 183: mean 154, variance 2137, 23 716 < 76 932. Without 176: mean 150, variance 2401, 22 500 < 86 436. That
    /// it is the 41 which does not belong is not found (by Linux from 6.15 on it is).
    #[test]
    fn one_short_sleep_among_the_typical_stays() {
        assert_eq!(typical_of([172, 174, 171, 176, 175, 170, 183, 41]), None);
        assert_eq!(typical_of([172, 174, 171, 176, 175, 170, 183, 172]), Some(174));
    }

    /// The mean of 0 and 40 is 20, the variance 400; of 0 and 60 the variance is 900, and without the 60s all are 0.
    #[test]
    fn the_variance_that_is_tight() {
        assert_eq!(typical_of([0, 40, 0, 40, 0, 40, 0, 40]), Some(20));
        assert_eq!(typical_of([0, 60, 0, 60, 0, 60, 0, 60]), None);
        assert_eq!(
            typical(&[0, 60, 0, 60, 0, 60, 0, 60], |_, _| false),
            Some(0),
            "6.1 takes zeros for a pattern"
        );
        assert_eq!(
            typical(&[290; INTERVALS], |shortest, _| shortest >= 290),
            None,
            "6.1: the timer is as near"
        );
        assert_eq!(typical_of([LONGEST_US; INTERVALS]), Some(LONGEST_US));
    }

    /// As the kernel writes it, sleep by sleep: the sums taken together come to the same, up to the longest sleeps.
    #[test]
    fn sums_find_what_single_sleeps_do() {
        let by_sleep = |us: &[u32; INTERVALS]| {
            let mut most = LONGEST_US;
            loop {
                let left: Vec<u64> = us.iter().filter(|x| **x <= most).map(|x| u64::from(*x)).collect();
                let n = left.len() as u64;
                let mean = left.iter().sum::<u64>() / n;
                let variance = left.iter().map(|x| x.abs_diff(mean).pow(2)).sum::<u64>() / n;
                if variance <= TIGHT_US2 || (n >= LEAST && mean * mean > variance.saturating_mul(36)) {
                    return Some(mean as u32);
                }
                if n <= LEAST {
                    return None;
                }
                most = *left.iter().max()? as u32 - 1;
            }
        };
        let (mut x, mut found) = (88172645463325252u64, 0);
        for n in 0..200_000u32 {
            let us = [(); INTERVALS].map(|()| {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                // Some near each other, some far apart, some alike, some the longest.
                match (n % 4, x % 16) {
                    (0, _) => 300 + (x >> 8) as u32 % 200,
                    (1, 0) => LONGEST_US,
                    (1, _) => LONGEST_US / 2 + (x >> 8) as u32 % 1000,
                    (2, _) => (x >> 8) as u32 % 3 * 40,
                    (_, shift) => ((x >> 8) as u32 & (LONGEST_US - 1)) >> (2 * shift),
                }
            });
            let typical = typical(&us, |_, _| false);
            assert_eq!(typical, by_sleep(&us), "{us:?}");
            found += u32::from(typical.is_some());
        }
        assert!((20_000..180_000).contains(&found), "{found}");
    }

    /// What is as long as the longest goes at once, and few that are tight are enough.
    #[test]
    fn all_of_the_longest_go_together() {
        assert_eq!(typical_of([45_000, 45_000, 45_000, 300, 45_000, 45_000, 45_000, 45_000]), Some(300));
        assert_eq!(typical_of([300, 10, 300, 10, 300, 10, 300, 10]), Some(10));
    }

    /// 8192 less an eighth is 7168, and 2 of 8 ms gain 1024 x 2 / 8 = 256; then 7424 - 928 + 1024.
    #[test]
    fn a_factor_forgets_an_eighth() {
        assert_eq!(corrected(UNITY, 8 * MS, 2 * MS), 7424);
        assert_eq!(corrected(7424, 8 * MS, 8 * MS), 7520);
        // From 50 ms on as predicted, whatever the distance; and 7 / 8 is 0.
        assert_eq!(corrected(UNITY, 200 * MS, 50 * MS), UNITY);
        assert_eq!(corrected(UNITY, 200 * MS, 50 * MS - 1), 7168 + 255);
        assert_eq!(corrected(7, LONGEST_NS, US), 7);
    }

    /// 8000 us x 7424 / 8192 = 7250 us; the next decade has learnt nothing.
    #[test]
    fn a_decade_has_its_factor() {
        let mut m = menu();
        m.select(&query(8 * MS, &STATES));
        m.reflect(&outcome(0, 2 * MS + US), &STATES);
        assert_eq!(m.predict(&query(8 * MS, &STATES)).ns, 7250 * US);
        assert_eq!(m.predict(&query(80 * MS, &STATES)).ns, 80 * MS);
    }

    #[test]
    fn the_timer_alone_at_first() {
        let mut m = menu();
        let pick = |m: &mut Menu, ns| m.select(&query(ns, &STATES));
        assert_eq!(pick(&mut m, 100 * MS), IdleChoice { state: 3, stop_tick: true });
        assert_eq!(pick(&mut m, 5 * MS), IdleChoice { state: 3, stop_tick: true });
        assert_eq!(pick(&mut m, 90 * US), IdleChoice { state: 2, stop_tick: false });
        assert_eq!(pick(&mut m, US), IdleChoice { state: 0, stop_tick: false });
        assert_eq!(pick(&mut m, 0), IdleChoice { state: 0, stop_tick: false });
        assert_eq!(pick(&mut m, u64::MAX), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn a_typical_sleep_beats_the_timer() {
        let mut m = menu();
        live(&mut m, &[30 * US; 8]);
        assert_eq!(m.select(&query(100 * MS, &STATES)), IdleChoice { state: 1, stop_tick: false });
        assert_eq!(m.bucket, 5, "100 ms are in the last bucket");
        assert_eq!(m.timer_ns, 100 * MS);
    }

    /// 10 us are typical: no look at the timer. 8 sleeps under 100 ms gained 1024 x 10 / 100 000 = 0 each, and so do
    /// those under a timer that is not known: an eighth is lost. 16 us are looked at.
    #[test]
    fn a_very_short_one_is_believed_without_the_timer() {
        let mut m = menu();
        live(&mut m, &[10 * US; 8]);
        let before = m.factors[5];
        assert_eq!(m.select(&query(500 * US, &STATES)), IdleChoice { state: 0, stop_tick: false });
        assert_eq!((m.timer_ns, m.bucket), (LONGEST_NS, 5));
        m.reflect(&outcome(0, 11 * US), &STATES);
        assert_eq!(m.factors[5], before - before / 8);
        assert_eq!(m.factors[2], UNITY, "where the timer was");
        let stopped = IdleQuery { tick_stopped: true, ..query(500 * US, &STATES) };
        assert_eq!(m.select(&stopped), IdleChoice { state: 3, stop_tick: true });
        let mut m = menu();
        live(&mut m, &[16 * US; 8]);
        m.select(&query(500 * US, &STATES));
        assert_eq!((m.timer_ns, m.bucket), (500 * US, 2));
    }

    #[test]
    fn with_the_tick_stopped_a_short_guess_is_not_trusted() {
        let mut m = menu();
        live(&mut m, &[30 * US; 8]);
        let q = IdleQuery { tick_stopped: true, ..query(100 * MS, &STATES) };
        assert_eq!(m.select(&q), IdleChoice { state: 3, stop_tick: true });
    }

    /// 4 ms and more are predicted: the tick may stop. With a deeper state that 4.5 ms are too short for, it stays.
    #[test]
    fn the_tick_stays_for_the_next_deeper_state() {
        let mut m = menu();
        assert!(!m.select(&query(4 * MS - US, &STATES)).stop_tick);
        assert!(m.select(&query(4 * MS, &STATES)).stop_tick);
        assert!(m.select(&query(4500 * US, &STATES)).stop_tick);
        let states = five_states();
        assert_eq!(m.select(&query(4500 * US, &states)), IdleChoice { state: 3, stop_tick: false });
        assert_eq!(m.select(&query(5 * MS, &states)), IdleChoice { state: 4, stop_tick: true });
    }

    /// 4.5 ms are typical, and more than a tick is trusted though it is stopped; but 6 ms to the timer pay for the fifth state.
    #[test]
    fn with_the_tick_stopped_the_next_deeper_state_if_the_timer_is_far() {
        let mut m = menu();
        live(&mut m, &[4500 * US; 8]);
        let states = five_states();
        let stopped = |ns| IdleQuery { tick_stopped: true, ..query(ns, &states) };
        assert_eq!(m.select(&stopped(6 * MS)), IdleChoice { state: 4, stop_tick: true });
        assert_eq!(m.select(&stopped(4800 * US)), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn a_kept_tick_bounds_the_depth() {
        let mut m = menu();
        let q = IdleQuery { next_tick_ns: 50 * US, ..query(3 * MS, &STATES) };
        assert_eq!(m.select(&q), IdleChoice { state: 1, stop_tick: false });
        // And so does the half tick that is taken for granted without a look: 2 ms.
        live(&mut m, &[10 * US; 8]);
        assert_eq!(m.predict(&q).event_ns, 2 * MS);
    }

    #[test]
    fn limits_and_disabled_states() {
        let mut m = menu();
        let q = IdleQuery { latency_limit_ns: 20 * US, ..query(100 * MS, &STATES) };
        assert_eq!(m.select(&q), IdleChoice { state: 1, stop_tick: true });
        let q = IdleQuery { latency_limit_ns: 0, ..q };
        assert_eq!(m.select(&q), IdleChoice { state: 0, stop_tick: false }, "the kernel would poll");
        let mut states = STATES;
        states[3].enabled = false;
        assert_eq!(m.select(&query(100 * MS, &states)).state, 2);
    }

    /// 1000 us / (1 + 10 x 1) = 90 us: the exit of 40 us will do and that of 130 us will not. With two, 47 us.
    #[test]
    fn linux_6_1_is_quick_for_who_waits_for_io() {
        let waiting = |iowaiters| IdleQuery { iowaiters, ..query(MS, &STATES) };
        let pick = |linux, q: &IdleQuery<'_>| {
            Menu { slept_us: [45_000; 8], ..Menu::new(linux, 4 * MS) }.select(q).state
        };
        assert_eq!([0, 1, 2, 3].map(|n| pick(Linux::V6_1, &waiting(n))), [3, 2, 2, 1]);
        assert_eq!(pick(Linux::V6_12, &waiting(3)), 3);
        let stopped = IdleQuery { tick_stopped: true, ..waiting(3) };
        assert_eq!(pick(Linux::V6_1, &stopped), 3, "not with the tick stopped");
    }

    #[test]
    fn linux_6_1_learns_apart_for_who_waits_for_io() {
        let mut m = Menu::new(Linux::V6_1, 4 * MS);
        m.select(&IdleQuery { iowaiters: 1, ..query(8 * MS, &STATES) });
        m.reflect(&outcome(0, 2 * MS + US), &STATES);
        assert_eq!((m.factors[3], m.factors[9]), (UNITY, 7424));
    }

    /// The fifth state is too deep for 4.5 ms and too slow for 1 ms at once. 6.1 sees the first and keeps the tick, 6.12 the second.
    #[test]
    fn too_deep_and_too_slow() {
        let states = five_states();
        let q = IdleQuery { latency_limit_ns: MS, ..query(4500 * US, &states) };
        let pick = |linux| Menu { slept_us: [45_000; 8], ..Menu::new(linux, 4 * MS) }.select(&q);
        assert_eq!(pick(Linux::V6_1), IdleChoice { state: 3, stop_tick: false });
        assert_eq!(pick(Linux::V6_12), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn a_sleep_ended_by_the_tick_counts_as_long() {
        let mut m = menu();
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

    /// A halted state however short the sleep is thought to be; polling where a timer, a limit or the user leaves nothing else.
    #[test]
    fn polls_for_a_timer_and_not_for_a_pattern() {
        let mut m = menu();
        live(&mut m, &[0, 0, 0, US, 0, 0, 0, 0]);
        let pick = |m: &mut Menu, q: IdleQuery<'_>| m.select(&q).state;
        assert_eq!(pick(&mut m, query(100 * MS, &POLLED)), 1);
        let mut m = menu();
        assert_eq!(pick(&mut m, query(US - 1, &POLLED)), 0);
        assert_eq!(pick(&mut m, query(US, &POLLED)), 1);
        assert_eq!(pick(&mut m, query(90 * US, &POLLED)), 3);
        assert_eq!(pick(&mut m, IdleQuery { latency_limit_ns: 0, ..query(100 * MS, &POLLED) }), 0);
        let off = POLLED.map(|s| IdleState { enabled: s.polls, ..s });
        assert_eq!(pick(&mut m, query(100 * MS, &off)), 0);
    }

    /// A poll that ended by its limit was wrong by any distance: it counts as if the timer had ended it.
    #[test]
    fn a_poll_that_ran_out_counts_as_the_timer() {
        let mut m = menu();
        m.select(&query(2 * MS, &POLLED));
        m.reflect(&IdleOutcome { poll_ended: true, ..outcome(0, 20 * US) }, &POLLED);
        assert_eq!(m.slept_us[0], 2000);
    }
}
