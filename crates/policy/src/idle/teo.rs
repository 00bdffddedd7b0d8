//! `teo`: timers are the usual waker; how often was something else earlier?
//!
//! It follows Linux 6.1, `drivers/cpuidle/governors/teo.c` (timer events oriented), in a simpler form.
//!
//! The states' target residencies cut time into bins, one a state: bin i holds the sleeps for which state i is
//! the deepest that pays. It observes the distance of the next timer and how long the sleep was. It keeps
//! two numbers a bin: *hits*, sleeps that ended by the timer or in the timer's own bin, and *intercepts*,
//! sleeps that something else ended in an earlier bin.
//!
//! Learning:
//! 1. Measured = the time slept less half the exit latency (on average a wake-up does not meet the
//!    worst case). A sleep ended by the timer is as long as announced, and so is one that
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
//!    With the tick stopped, a bin that ends before a tick has passed is not trusted: nothing would
//!    correct a guess that is too shallow.
//! 5. The latency limit, and then the timer: the deepest state no deeper than that which pays within its distance.
//! 6. The tick stays on when a wake-up is expected within a tick: by the timer, or in the chosen bin. It then
//!    wakes the CPU anyway, so a state that pays only after it is too deep.
//!
//! Left out: the count of intercepts among the last 9 sleeps.

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState, allowed};
use alloc::{boxed::Box, vec, vec::Vec};

/// What one sleep adds to its bin.
const PULSE: u32 = 1024;
/// Each sleep takes 1/2^this from every bin: an eighth.
const DECAY_SHIFT: u32 = 3;

/// Sleeps that ended in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    hits: u32,
    intercepts: u32,
}

/// The bin of a sleep: the deepest state that pays for it.
fn bin_of(states: &[IdleState], ns: u64) -> usize {
    states.iter().rposition(|s| s.target_ns <= ns).unwrap_or(0)
}

/// The deepest enabled state from `from` on down that pays within `ns`; state 0 when none does.
fn shallower(states: &[IdleState], from: usize, ns: u64) -> usize {
    (0..=from).rev().find(|&i| states[i].enabled && states[i].target_ns <= ns).unwrap_or(0)
}

/// Step 4: the bin in which the middle of the early sleeps fell, if they are the majority.
fn intercepted(bins: &[Bin], total: u32, candidate: usize) -> Option<usize> {
    let early = &bins[..candidate];
    let sum = |of: fn(&Bin) -> u32| early.iter().map(of).sum::<u32>();
    let (intercepts, hits) = (sum(|b| b.intercepts), sum(|b| b.hits));
    if 2 * intercepts <= total.saturating_sub(hits) {
        return None;
    }
    let mut passed = 0;
    (0..candidate).rev().find(|&i| {
        passed += bins[i].intercepts;
        2 * passed > intercepts
    })
}

/// One CPU.
struct Teo {
    tick_ns: u64,
    bins: Vec<Bin>,
    /// Sum over all bins.
    total: u32,
    /// The timer's distance at the last choice.
    sleep_ns: u64,
}

impl Teo {
    fn new(states: usize, tick_ns: u64) -> Teo {
        Teo { tick_ns, bins: vec![Bin::default(); states], total: 0, sleep_ns: u64::MAX }
    }
}

impl IdlePolicy for Teo {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        self.sleep_ns = query.next_timer_ns;
        // A table that has grown since construction is used as far as there are bins.
        let states = &query.states[..query.states.len().min(self.bins.len())];
        let candidate = states.iter().rposition(|s| s.enabled).unwrap_or(0);

        let mut state = candidate;
        let mut expected_ns = self.sleep_ns;
        if let Some(bin) = intercepted(&self.bins, self.total, candidate) {
            let end_ns = states[bin + 1].target_ns;
            if !query.tick_stopped || end_ns >= self.tick_ns {
                state = bin;
                expected_ns = expected_ns.min(end_ns);
            }
        }
        state = usize::from(allowed(query, state));
        state = shallower(states, state, self.sleep_ns);

        let stop_tick = query.tick_stopped || expected_ns >= self.tick_ns;
        if !stop_tick {
            state = shallower(states, state, query.next_tick_ns);
        }
        IdleChoice { state: state as u8, stop_tick }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        let states = &states[..states.len().min(self.bins.len())];
        let by_timer = bin_of(states, self.sleep_ns);
        let measured = if outcome.by_timer || outcome.by_tick {
            by_timer
        } else {
            let exit_ns = states.get(usize::from(outcome.state)).map_or(0, |s| s.exit_ns);
            let ns = outcome.measured_ns;
            let slept_ns = if ns >= exit_ns { ns - exit_ns / 2 } else { ns / 2 };
            bin_of(states, slept_ns).min(by_timer)
        };
        self.total = 0;
        for bin in &mut self.bins {
            bin.hits -= bin.hits >> DECAY_SHIFT;
            bin.intercepts -= bin.intercepts >> DECAY_SHIFT;
            self.total += bin.hits + bin.intercepts;
        }
        if let Some(bin) = self.bins.get_mut(measured) {
            *(if measured == by_timer { &mut bin.hits } else { &mut bin.intercepts }) += PULSE;
            self.total += PULSE;
        }
    }
}

/// Linux's teo.
pub(super) static TEO: Idle = Idle {
    name: "teo",
    summary: "Linux: the next timer, unless something else has mostly been earlier",
    follows: "Linux 6.1, drivers/cpuidle/governors/teo.c",
    source: include_str!("teo.rs"),
    params: &[],
    build: |states, tick_ns, _| Box::new(Teo::new(states.len(), tick_ns)),
};

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, STATES, US, outcome, query};
    use super::*;

    fn teo() -> Teo {
        Teo::new(STATES.len(), 4 * MS)
    }

    /// Lives through sleeps of these lengths under a timer 100 ms away.
    fn live(t: &mut Teo, sleeps: &[u64]) {
        for &ns in sleeps {
            t.select(&query(100 * MS, &STATES));
            t.reflect(&outcome(0, ns), &STATES);
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
    fn intercepts_go_shallower() {
        let mut t = teo();
        live(&mut t, &[30 * US; 5]);
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 1, stop_tick: false });
        // The timer's own sleeps win back trust.
        for _ in 0..20 {
            t.select(&query(100 * MS, &STATES));
            t.reflect(&IdleOutcome { by_timer: true, ..outcome(3, 100 * MS) }, &STATES);
        }
        assert_eq!(t.select(&query(100 * MS, &STATES)), IdleChoice { state: 3, stop_tick: true });
    }

    #[test]
    fn the_middle_of_the_early_sleeps_decides() {
        let bins = |i: [u32; 4]| i.map(|intercepts| Bin { hits: 0, intercepts });
        assert_eq!(intercepted(&bins([1, 2, 4, 0]), 7, 3), Some(2));
        assert_eq!(intercepted(&bins([1, 4, 2, 0]), 7, 3), Some(1));
        assert_eq!(intercepted(&bins([5, 2, 2, 0]), 9, 3), Some(0));
        assert_eq!(intercepted(&bins([1, 2, 4, 7]), 14, 3), None, "half is not the majority");
        assert_eq!(intercepted(&bins([1, 2, 4, 6]), 13, 3), Some(2));
        // Hits of shallower bins say nothing about a timer this far away.
        let mut with_hits = bins([1, 2, 4, 7]);
        with_hits[1].hits = 1;
        assert_eq!(intercepted(&with_hits, 15, 3), None);
        assert_eq!(intercepted(&with_hits, 14, 3), Some(2));
    }

    #[test]
    fn hits_and_intercepts_go_to_their_bins() {
        let mut t = teo();
        live(&mut t, &[90 * US]);
        assert_eq!(t.bins[2], Bin { hits: 0, intercepts: PULSE });
        t.select(&query(90 * US, &STATES));
        t.reflect(&IdleOutcome { by_timer: true, ..outcome(2, 95 * US) }, &STATES);
        assert_eq!(t.bins[2], Bin { hits: PULSE, intercepts: PULSE - PULSE / 8 });
        assert_eq!(t.total, 2 * PULSE - PULSE / 8);
        // Half of the exit latency comes off: 90 us in state 2 are 70, a bin less.
        t.select(&query(100 * MS, &STATES));
        t.reflect(&outcome(2, 90 * US), &STATES);
        assert_eq!(t.bins[1].intercepts, PULSE);
        // The tick as a net says nothing against the timer.
        t.select(&query(100 * MS, &STATES));
        t.reflect(&IdleOutcome { by_tick: true, ..outcome(1, 30 * US) }, &STATES);
        assert_eq!(t.bins[3].hits, PULSE);
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
}
