//! `ladder`: one rung at a time, by how the last sleeps went.
//!
//! It follows Linux 6.12, `drivers/cpuidle/governors/ladder.c`, the governor for machines with a periodic tick, whose
//! sleeps are so much alike that the last one tells the next.
//!
//! It observes how long each sleep was and nothing of timers. It keeps the rung and how many
//! sleeps in a row were long.
//!
//! 1. Slept = what was measured less the exit latency of the state it was in.
//!    Linux compares that without a sign since 5.5: a sleep shorter than the exit latency itself comes out as
//!    a very long one. Kernels do so, and so does this.
//! 2. Slept longer than that exit latency 4 times in a row: one state deeper, if the next is enabled
//!    and within the latency limit. 4 is Linux's count: long sleeps must prove themselves.
//! 3. Slept less than that once: one state shallower. A state that is left too early has cost more than
//!    it saved, so one is enough. On the lowest rung there is nowhere to go, and Linux goes on counting.
//! 4. A state that is disabled or over the latency limit is left for the deepest shallower one that is not.
//!
//! The tick is stopped always: the governor has no prediction by which to keep it.
//!
//! A state that polls is below the lowest rung: the kernel's ladder never stays on it by itself.
//!
//! Left out: a latency limit of one CPU alone (`power/pm_qos_resume_latency_us`).

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState, allowed, first_physical};
use alloc::boxed::Box;

/// Long sleeps in a row before a deeper state.
const PROMOTIONS: u32 = 4;

/// How the last sleep went, against the exit latency of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Long,
    Short,
    /// Exactly as long, or none yet.
    Even,
}

/// One CPU.
struct Ladder {
    rung: usize,
    /// Long sleeps in a row.
    long: u32,
    last: Last,
}

impl IdlePolicy for Ladder {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        let states = query.states;
        let lowest = first_physical(states);
        let rung = self.rung.clamp(lowest, states.len() - 1);
        let fits = |i: usize| states.get(i).is_some_and(|s| s.enabled && s.exit_ns <= query.latency_limit_ns);
        self.rung = match core::mem::replace(&mut self.last, Last::Even) {
            Last::Long if fits(rung + 1) => {
                self.long += 1;
                if self.long >= PROMOTIONS {
                    self.long = 0;
                    rung + 1
                } else {
                    rung
                }
            }
            Last::Short if rung > lowest => {
                self.long = 0;
                rung - 1
            }
            Last::Long | Last::Short | Last::Even => rung,
        };
        self.rung = usize::from(allowed(query, self.rung));
        IdleChoice { state: self.rung as u8, stop_tick: true }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        let exit_ns = states.get(usize::from(outcome.state)).map_or(0, |s| s.exit_ns);
        let slept_ns = outcome.measured_ns.wrapping_sub(exit_ns);
        self.last = match slept_ns.cmp(&exit_ns) {
            core::cmp::Ordering::Greater => Last::Long,
            core::cmp::Ordering::Less => Last::Short,
            core::cmp::Ordering::Equal => Last::Even,
        };
    }
}

/// Linux's ladder.
pub(super) static LADDER: Idle = Idle {
    name: "ladder",
    summary: "Linux: one state deeper after 4 long sleeps, one shallower after a short one",
    follows: "Linux 6.12, drivers/cpuidle/governors/ladder.c",
    source: include_str!("ladder.rs"),
    params: &[],
    build: |_, _, _| Box::new(Ladder { rung: 0, long: 0, last: Last::Even }),
};

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, POLLED, STATES, US, outcome, query};
    use super::*;

    fn sleep(l: &mut Ladder, ns: u64) -> u8 {
        let choice = l.select(&query(MS, &STATES));
        l.reflect(&outcome(choice.state, ns), &STATES);
        choice.state
    }

    fn ladder() -> Ladder {
        Ladder { rung: 0, long: 0, last: Last::Even }
    }

    #[test]
    fn four_long_sleeps_a_rung() {
        let mut l = ladder();
        let rungs: [u8; 14] = core::array::from_fn(|_| sleep(&mut l, MS));
        assert_eq!(rungs, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn one_short_sleep_takes_one_rung() {
        let mut l = ladder();
        (0..13).for_each(|_| {
            sleep(&mut l, MS);
        });
        assert_eq!(sleep(&mut l, 259 * US), 3, "129 us after the exit latency of 130");
        assert_eq!(sleep(&mut l, MS), 2);
        // And the count began anew.
        let rungs: [u8; 4] = core::array::from_fn(|_| sleep(&mut l, MS));
        assert_eq!(rungs, [2, 2, 2, 3]);
    }

    #[test]
    fn a_short_sleep_interrupts_the_row_but_not_on_the_lowest_rung() {
        let mut l = ladder();
        for ns in [MS, MS, MS, US, MS] {
            assert_eq!(sleep(&mut l, ns), 0);
        }
        for ns in [MS, MS, MS, 19 * US] {
            assert_eq!(sleep(&mut l, ns), 1);
        }
        let rungs: [u8; 5] = core::array::from_fn(|_| sleep(&mut l, MS));
        assert_eq!(rungs, [0, 0, 0, 0, 1], "left and come back to: the count began anew");
    }

    #[test]
    fn shorter_than_the_exit_counts_as_long() {
        let mut l = ladder();
        let rungs: [u8; 6] = core::array::from_fn(|i| sleep(&mut l, if i < 4 { MS } else { 9 * US }));
        assert_eq!(rungs, [0, 0, 0, 0, 1, 1], "9 us in a state whose exit takes 10");
        let rungs: [u8; 3] = core::array::from_fn(|_| sleep(&mut l, 9 * US));
        assert_eq!(rungs, [1, 1, 2]);
    }

    #[test]
    fn limits_hold() {
        let mut l = ladder();
        let tight = IdleQuery { latency_limit_ns: 20 * US, ..query(MS, &STATES) };
        for _ in 0..20 {
            let state = l.select(&tight).state;
            assert!(state <= 1);
            l.reflect(&outcome(state, MS), &STATES);
        }
        (0..20).for_each(|_| {
            sleep(&mut l, MS);
        });
        assert_eq!(l.select(&tight).state, 1, "leaves a rung that is no longer allowed");
    }

    #[test]
    fn never_steps_down_to_polling() {
        let mut l = ladder();
        let rungs: [u8; 6] = core::array::from_fn(|_| {
            let choice = l.select(&query(MS, &POLLED));
            l.reflect(&outcome(choice.state, US), &POLLED);
            choice.state
        });
        assert_eq!(rungs[0], 1);
        assert!(rungs.iter().all(|&r| r > 0), "{rungs:?}");
        let strict = IdleQuery { latency_limit_ns: 0, ..query(MS, &POLLED) };
        assert_eq!(l.select(&strict).state, 0);
    }
}
