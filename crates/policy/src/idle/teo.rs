//! `teo`: timers are the usual waker; how often was something else earlier?
//!
//! It follows Linux 6.12 (as of 6.12.117), `drivers/cpuidle/governors/teo.c` (timer events oriented).
//!
//! The states' target residencies cut time into bins, one a state: bin i holds the sleeps for which state i is
//! the deepest that pays. The first bin is for what is too short for any: on x86 the kernel's own polling state. It observes
//! the distance of the next timer and how long the sleep was. It keeps
//! two numbers a bin: *hits*, sleeps that ended by the timer or in the timer's own bin, and *intercepts*,
//! sleeps that something else ended in an earlier bin. One more number counts the hits that were longer than a tick, where
//! the deepest state pays within one.
//!
//! Learning:
//! 1. Measured = the time slept less half the exit latency (on average a wake-up does not meet the
//!    worst case). A sleep that lasted up to the timer is as long as announced, and so is one that
//!    the tick ended, which was kept as a net: without it the CPU would have slept on.
//! 2. All numbers lose an eighth, so that some twenty sleeps are remembered. The measured bin gains
//!    1024: as a hit when it is the timer's bin as well, else as an intercept. 1024 gives room to decay in
//!    integers.
//!
//! Choosing:
//! 3. The candidate is the deepest enabled state.
//! 4. Over the shallower bins add up intercepts and hits. When twice the intercepts exceed the total less
//!    those hits, sleeps long enough for the candidate are the minority: go shallower, until the
//!    intercepts passed are more than half of them. So the middle of the early sleeps decides, not the worst.
//!    With the tick stopped, a state that pays within a tick is not trusted, since nothing would
//!    correct a guess that is too shallow: take the shallowest state already considered whose residency exceeds a tick.
//! 5. The latency limit.
//! 6. Below 15 us of residency that is the answer, and the tick stays: a look at the timers would cost more than it could
//!    save. The timer then counts as endless, but where step 4 came to polling: how often that was right is to be learnt.
//! 7. The timer: the deepest state no deeper than that which pays within its distance.
//! 8. The tick stays on when the timer is within a tick; and when the state pays within one and more than
//!    5/8 of all sleeps were intercepts. It then wakes the CPU anyway, so a state that pays only after it is too deep.
//!
//! Polling: where the machine's first state polls, as on x86, it is the first of these. Where a model has no such state, the rule
//! is the kernel's with that state in its place; what would poll takes state 0, with the tick on. A poll that lasted as long as it
//! may says nothing against the timer, as a sleep that the tick ended.
//!
//! Left out: that Arm's table has no polling state in front, so that the timer is always looked at there.

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState};
use alloc::{boxed::Box, vec, vec::Vec};

/// What one sleep adds to its bin.
const PULSE: u32 = 1024;
/// Each sleep takes 1/2^this from every number: an eighth.
const DECAY_SHIFT: u32 = 3;
/// States that pay for less are taken without a look at the timers, in ns (`RESIDENCY_THRESHOLD_NS`).
const SHORT_NS: u64 = 15_000;
/// The bin, and the state, below the table's first.
const POLLING: usize = 0;

/// Sleeps that ended in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    hits: u32,
    intercepts: u32,
}

/// The kernel's table: polling, then the machine's states, of which the first may be the one that polls.
#[derive(Clone, Copy)]
struct Table<'a> {
    states: &'a [IdleState],
    /// Where the machine's first state is: 0 where it polls.
    at: usize,
}

impl<'a> Table<'a> {
    fn new(states: &'a [IdleState]) -> Table<'a> {
        Table { states, at: polling_before(states) }
    }

    fn len(self) -> usize {
        self.states.len() + self.at
    }

    fn target_ns(self, i: usize) -> u64 {
        if i == POLLING { 0 } else { self.states[i - self.at].target_ns }
    }

    fn enabled(self, i: usize) -> bool {
        i == POLLING || self.states[i - self.at].enabled
    }

    fn deepest(self, fits: impl Fn(&IdleState) -> bool) -> usize {
        self.states.iter().rposition(|s| s.enabled && fits(s)).map_or(POLLING, |i| i + self.at)
    }

    /// The bin of a sleep: the deepest state that pays for it.
    fn bin_of(self, ns: u64) -> usize {
        self.states.iter().rposition(|s| s.target_ns <= ns).map_or(POLLING, |i| i + self.at)
    }

    /// The deepest enabled state from `from` on down that pays within `ns`.
    fn shallower(self, from: usize, ns: u64) -> usize {
        (0..=from).rev().find(|&i| self.enabled(i) && self.target_ns(i) <= ns).unwrap_or(POLLING)
    }
}

/// States of the kernel's table before the machine's: the one that polls, unless the machine's first does.
fn polling_before(states: &[IdleState]) -> usize {
    usize::from(!states.first().is_some_and(|s| s.polls))
}

/// Step 4: the state to which the intercepts lead from the `candidate`. `trusted`: whether a state pays for long enough.
fn intercepted(
    bins: &[Bin],
    total: u32,
    candidate: usize,
    enabled: impl Fn(usize) -> bool,
    trusted: impl Fn(usize) -> bool,
) -> usize {
    let early = &bins[..candidate];
    let sum = |of: fn(&Bin) -> u32| early.iter().map(of).sum::<u32>();
    let (intercepts, hits) = (sum(|b| b.intercepts), sum(|b| b.hits));
    if 2 * intercepts <= total.saturating_sub(hits) {
        return candidate;
    }
    let (mut passed, mut suitable) = (0, candidate);
    for i in (0..candidate).rev() {
        passed += bins[i].intercepts;
        if 2 * passed > intercepts {
            return if enabled(i) && trusted(i) { i } else { suitable };
        }
        if !enabled(i) {
            continue;
        }
        if trusted(i) {
            suitable = i;
        } else if suitable == candidate {
            break;
        }
    }
    candidate
}

/// One CPU.
struct Teo {
    tick_ns: u64,
    /// One a state, polling first.
    bins: Vec<Bin>,
    /// Hits longer than a tick.
    tick_hits: u32,
    /// Sum over all of these.
    total: u32,
    /// The timer's distance at the last choice, as far as it was looked at.
    sleep_ns: u64,
}

impl Teo {
    fn new(states: &[IdleState], tick_ns: u64) -> Teo {
        Teo {
            tick_ns,
            bins: vec![Bin::default(); Table::new(states).len()],
            tick_hits: 0,
            total: 0,
            sleep_ns: u64::MAX,
        }
    }

    /// The table as far as there are bins: it may have grown since construction.
    fn table<'a>(&self, states: &'a [IdleState]) -> Table<'a> {
        Table::new(&states[..states.len().min(self.bins.len() - polling_before(states))])
    }

    /// Steps 3 to 8: the state in the kernel's table, and whether the tick may stop.
    fn choose(&mut self, query: &IdleQuery<'_>) -> (usize, bool) {
        let table = self.table(query.states);
        self.sleep_ns = u64::MAX;
        let candidate = table.deepest(|_| true);
        if candidate == POLLING {
            return (POLLING, false);
        }
        let trusted = |i: usize| !query.tick_stopped || table.target_ns(i) >= self.tick_ns;
        let by_history = intercepted(&self.bins, self.total, candidate, |i| table.enabled(i), trusted);
        if by_history == POLLING {
            self.sleep_ns = query.next_timer_ns;
            return (POLLING, false);
        }
        let mut state = by_history.min(table.deepest(|s| s.exit_ns <= query.latency_limit_ns));
        if table.target_ns(state) < SHORT_NS {
            return (state, false);
        }
        self.sleep_ns = query.next_timer_ns;
        state = table.shallower(state, self.sleep_ns);
        let intercepts: u32 = self.bins.iter().map(|b| b.intercepts).sum();
        let woken_early =
            table.target_ns(state) < self.tick_ns && intercepts > self.total / 2 + self.total / 8;
        if query.tick_stopped || (state != POLLING && !woken_early && self.sleep_ns >= self.tick_ns) {
            return (state, true);
        }
        (table.shallower(state, query.next_timer_ns.min(query.next_tick_ns)), false)
    }
}

impl IdlePolicy for Teo {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        let (state, stop_tick) = self.choose(query);
        IdleChoice {
            state: state.saturating_sub(polling_before(query.states)) as u8,
            stop_tick: stop_tick || query.tick_stopped,
        }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        let table = self.table(states);
        let whole = outcome.measured_ns >= self.sleep_ns
            || outcome.poll_ended
            || (outcome.by_tick && self.sleep_ns > self.tick_ns);
        let measured_ns = if whole {
            u64::MAX
        } else {
            let exit_ns = states.get(usize::from(outcome.state)).map_or(0, |s| s.exit_ns);
            let ns = outcome.measured_ns;
            if ns >= exit_ns { ns - exit_ns / 2 } else { ns / 2 }
        };
        let decayed = |n: u32| n - (n >> DECAY_SHIFT);
        for bin in &mut self.bins {
            *bin = Bin { hits: decayed(bin.hits), intercepts: decayed(bin.intercepts) };
        }
        let beyond = table.target_ns(table.len() - 1) < self.tick_ns;
        if beyond {
            self.tick_hits = decayed(self.tick_hits);
        }
        let by_timer = table.bin_of(self.sleep_ns);
        let measured = table.bin_of(measured_ns).min(by_timer);
        // The hits beyond a tick are a bin of their own: a shorter sleep under such a timer is no hit.
        if beyond && self.sleep_ns >= self.tick_ns {
            if measured_ns >= self.tick_ns {
                self.tick_hits += PULSE;
            } else {
                self.bins[measured].intercepts += PULSE;
            }
        } else if measured == by_timer {
            self.bins[measured].hits += PULSE;
        } else {
            self.bins[measured].intercepts += PULSE;
        }
        self.total = self.bins.iter().map(|b| b.hits + b.intercepts).sum::<u32>() + self.tick_hits;
    }
}

/// Linux's teo.
pub(super) static TEO: Idle = Idle {
    name: "teo",
    summary: "Linux: the next timer, unless something else has mostly been earlier",
    follows: "Linux 6.12, drivers/cpuidle/governors/teo.c",
    source: include_str!("teo.rs"),
    params: &[],
    build: |states, tick_ns, _| Box::new(Teo::new(states, tick_ns)),
};

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, POLLED, STATES, US, outcome, query};
    use super::*;

    fn teo() -> Teo {
        Teo::new(&STATES, 4 * MS)
    }

    /// Lives through sleeps of these lengths under a timer 100 ms away; of state 0's exit of 1 us half comes off.
    fn live(t: &mut Teo, sleeps: &[u64]) {
        for &ns in sleeps {
            t.select(&query(100 * MS, &STATES));
            t.reflect(&outcome(0, ns), &STATES);
        }
    }

    /// Lives through sleeps that the timer ends.
    fn on_time(t: &mut Teo, times: usize, ns: u64) {
        for _ in 0..times {
            t.select(&query(ns, &STATES));
            t.reflect(&IdleOutcome { by_timer: true, ..outcome(3, ns) }, &STATES);
        }
    }

    #[test]
    fn the_timer_alone_at_first() {
        let mut t = teo();
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 3, stop_tick: true });
        assert_eq!(t.select(&query(90 * US, &STATES)), IdleChoice { state: 2, stop_tick: false });
        assert_eq!(t.select(&query(0, &STATES)), IdleChoice { state: 0, stop_tick: false });
    }

    #[test]
    fn intercepts_go_shallower_and_the_timers_own_sleeps_win_back_trust() {
        let mut t = teo();
        live(&mut t, &[30 * US; 5]);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 1, stop_tick: false });
        on_time(&mut t, 20, 100 * MS);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 3, stop_tick: true });
    }

    fn walk(i: [u32; 4], total: u32, enabled: [bool; 4], trusted: [bool; 4]) -> usize {
        let bins = i.map(|intercepts| Bin { hits: 0, intercepts });
        intercepted(&bins, total, 3, |i| enabled[i], |i| trusted[i])
    }
    const ALL: [bool; 4] = [true; 4];

    /// Below the candidate 3 lie 1 + 2 + 4 = 7 intercepts, and 2 x 7 > 7. From above: 4, and 2 x 4 > 7.
    /// Of 1, 4, 2: 2 x 2 < 7, 2 x (2 + 4) > 7. Of 5, 2, 2: 2 x 2 and 2 x 4 are not more than 9, 2 x 9 is.
    #[test]
    fn the_middle_of_the_early_sleeps_decides() {
        assert_eq!(walk([1, 2, 4, 0], 7, ALL, ALL), 2);
        assert_eq!(walk([1, 4, 2, 0], 7, ALL, ALL), 1);
        assert_eq!(walk([5, 2, 2, 0], 9, ALL, ALL), 0);
        assert_eq!(walk([1, 2, 4, 7], 14, ALL, ALL), 3, "2 x 7 = 14: half is not the majority");
        assert_eq!(walk([1, 2, 4, 6], 13, ALL, ALL), 2);
    }

    /// Hits of shallower bins say nothing about a timer this far away: 2 x 7 > 14 - 1.
    #[test]
    fn early_hits_do_not_count() {
        let mut bins = [1, 2, 4, 6].map(|intercepts| Bin { hits: 0, intercepts });
        bins[1].hits = 1;
        assert_eq!(intercepted(&bins, 15, 3, |_| true, |_| true), 3);
        assert_eq!(intercepted(&bins, 14, 3, |_| true, |_| true), 2);
    }

    /// The walk ends at 1, as above. That is disabled, or not to be trusted: the last good one on the way is 2, if it is one.
    #[test]
    fn a_state_that_will_not_do_gives_way_to_one_passed() {
        assert_eq!(walk([1, 4, 2, 0], 7, [true, false, true, true], ALL), 2);
        assert_eq!(walk([1, 4, 2, 0], 7, ALL, [false, false, true, true]), 2);
        assert_eq!(walk([1, 4, 2, 0], 7, ALL, [false, false, false, true]), 3);
        assert_eq!(walk([1, 4, 2, 0], 7, [true, false, false, true], ALL), 3);
    }

    #[test]
    fn hits_and_intercepts_go_to_their_bins() {
        let mut t = teo();
        live(&mut t, &[90 * US]);
        assert_eq!(t.bins[3], Bin { hits: 0, intercepts: PULSE }, "bin 3 is state 2's");
        t.select(&query(90 * US, &STATES));
        t.reflect(&IdleOutcome { by_timer: true, ..outcome(2, 95 * US) }, &STATES);
        // 1024 - 1024 / 8 = 896 are left.
        assert_eq!(t.bins[3], Bin { hits: PULSE, intercepts: 896 });
        assert_eq!(t.total, PULSE + 896);
        // Half of the exit latency comes off: 90 us in state 2 are 70, a bin less.
        t.select(&query(100 * MS, &STATES));
        t.reflect(&outcome(2, 90 * US), &STATES);
        assert_eq!(t.bins[2].intercepts, PULSE);
        // Mostly exit latency: 30 us in state 2 are 15, and too short for state 1.
        t.select(&query(100 * MS, &STATES));
        t.reflect(&outcome(2, 30 * US), &STATES);
        assert_eq!(t.bins[1].intercepts, PULSE);
    }

    /// The deepest state pays within a tick, so a timer beyond one has a bin of its own: 3 ms under 100 ms are an intercept.
    #[test]
    fn beyond_a_tick_is_a_bin() {
        let mut t = teo();
        live(&mut t, &[3 * MS]);
        assert_eq!(t.bins[4], Bin { hits: 0, intercepts: PULSE });
        live(&mut t, &[30 * MS]);
        assert_eq!((t.tick_hits, t.total), (PULSE, PULSE + 896));
        // The tick as a net says nothing against the timer; but where that is within a tick, it was no net.
        t.select(&query(100 * MS, &STATES));
        t.reflect(&IdleOutcome { by_tick: true, ..outcome(1, 30 * US) }, &STATES);
        assert_eq!(t.tick_hits, PULSE + 896);
        t.select(&query(3 * MS, &STATES));
        t.reflect(&IdleOutcome { by_tick: true, ..outcome(1, 30 * US) }, &STATES);
        assert_eq!(t.bins[2].intercepts, PULSE);
    }

    /// Intercepts of 1 and 3 ms fall into the deepest state's bin: no reason for a shallower one, but the tick stays when they are
    /// more than 5/8. Five hits: 1024 + 896 + 784 + 686 + 601 = 3991. After i intercepts of 1024 each the hits have lost i eighths:
    /// 4 leave some 2342 of them to 3390, 59 %; 5 some 2050 to 3991, 66 %, and 5/8 are 62.5 %.
    #[test]
    fn the_tick_stays_where_most_are_woken_early() {
        let mut t = teo();
        on_time(&mut t, 5, 100 * MS);
        live(&mut t, &[MS, 3 * MS, MS, 3 * MS]);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 3, stop_tick: true });
        live(&mut t, &[MS]);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 3, stop_tick: false });
        let soon = IdleQuery { next_tick_ns: 100 * US, ..query(100 * MS, &STATES) };
        assert_eq!(t.select(&soon), IdleChoice { state: 2, stop_tick: false }, "400 us do not pay any more");
    }

    /// State 0 pays from 1 us on: less than 15, so the timer is not looked at, however near. Sleeps shorter than that lead to
    /// polling, and there it is.
    #[test]
    fn a_shallow_state_does_without_the_timer() {
        let mut t = teo();
        live(&mut t, &[5 * US; 8]);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 0, stop_tick: false });
        assert_eq!(t.sleep_ns, u64::MAX);
        live(&mut t, &[US; 20]);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 0, stop_tick: false });
        assert_eq!(t.sleep_ns, 100 * MS);
    }

    #[test]
    fn with_the_tick_stopped_early_bins_are_not_trusted() {
        let mut t = teo();
        live(&mut t, &[30 * US; 8]);
        let q = IdleQuery { tick_stopped: true, ..query(100 * MS, &STATES) };
        assert_eq!(t.select(&q), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn limits_disabled_states_and_the_kept_tick() {
        let mut t = teo();
        let q = IdleQuery { latency_limit_ns: 20 * US, ..query(100 * MS, &STATES) };
        assert_eq!(t.select(&q).state, 1);
        let mut states = STATES;
        states[3].enabled = false;
        assert_eq!(t.select(&query(100 * MS, &states)).state, 2);
        let q = IdleQuery { next_tick_ns: 50 * US, ..query(3 * MS, &STATES) };
        assert_eq!(t.select(&q), IdleChoice { state: 1, stop_tick: false });
    }

    /// With the machine's own polling state the bins are those states; sleeps too short for the first halted one lead to it, and
    /// polls that ran out lead away.
    #[test]
    fn polls_while_sleeps_are_too_short_for_any_other() {
        let mut t = Teo::new(&POLLED, 4 * MS);
        assert_eq!(t.bins.len(), POLLED.len());
        let mut sleep = |outcome: IdleOutcome| {
            let state = t.select(&query(100 * MS, &POLLED)).state;
            t.reflect(&IdleOutcome { state, ..outcome }, &POLLED);
            state
        };
        assert_eq!(sleep(outcome(0, 100 * MS)), 4);
        let polled: Vec<u8> = (0..20).map(|_| sleep(outcome(0, US / 4))).collect();
        assert_eq!(polled[10..], [0; 10], "{polled:?}");
        let ended = IdleOutcome { poll_ended: true, ..outcome(0, 100 * US) };
        let after: Vec<u8> = (0..20).map(|_| sleep(ended)).collect();
        assert_eq!(after[19], 4, "{after:?}");
    }
}
