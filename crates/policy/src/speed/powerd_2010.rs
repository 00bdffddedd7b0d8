//! `powerd-2010`: the simplified powerd that the FreeBSD speed-state study prints.
//!
//! It follows B. J. Thomson, "Improved Power Management for FreeBSD" (2010), figure 3. The study's reasoning and its
//! comparison rest on this form, so it is kept beside today's `powerd`: the study is
//! reproduced with the rule it describes.
//!
//! It observes the load over the last 250 ms and keeps nothing but the level in force.
//!
//! 1. Load over 95 %: four times the speed. Few CPUs span more than 4:1, so this is the highest level.
//! 2. Else over 75 %: one level up.
//! 3. Else under 50 %: one level down.
//!
//! 95, 75 and 50 % and 250 ms are the study's figures. They give its worst case: work that begins
//! 187.5 ms before a poll makes that window just 75 % busy, which is not *over* 75, and a
//! whole further window passes before the speed rises: 437.5 ms at full load and low speed.
//!
//! The load of several CPUs is their sum as in FreeBSD; the study's machine had one.
//!
//! Left out: nothing that the figure shows.

use super::poll::{DAEMON_POLL_COST_US, Fold, LOAD, cost, percent, poll};
use super::{Cadence, Speed, SpeedPolicy};
use crate::{DomainInfo, Intent, Khz, Observation, Settings};
use alloc::{boxed::Box, vec::Vec};

/// Step 1 multiplies the speed by this.
const JUMP: u32 = 4;

/// Thresholds in percent.
#[derive(Clone, Copy, Debug)]
struct Marks {
    jump: u64,
    up: u64,
    down: u64,
}

/// The speed after one look at the load.
fn next_speed(domain: &DomainInfo, current: Khz, load: u64, marks: Marks) -> Khz {
    let levels = &domain.levels;
    let at = levels.iter().rposition(|l| l.khz >= current).unwrap_or(0);
    if load > marks.jump {
        domain.at_least(Khz(current.0.saturating_mul(JUMP)))
    } else if load > marks.up {
        levels[at.saturating_sub(1)].khz
    } else if load < marks.down {
        levels[(at + 1).min(levels.len() - 1)].khz
    } else {
        levels[at].khz
    }
}

/// The daemon.
struct Powerd2010 {
    fold: Fold,
    marks: Marks,
    poll_ns: u64,
    cost_ns: u64,
    domains: Vec<DomainInfo>,
}

impl SpeedPolicy for Powerd2010 {
    fn cadence(&self) -> Cadence {
        Cadence::Daemon { first_ns: self.poll_ns, period_ns: self.poll_ns }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// The speed that it finds stays, until the first poll.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        for (d, (domain, now)) in self.domains.iter().zip(obs.domains).enumerate() {
            out.set_speed(d, domain.at_least(now.khz));
        }
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let load = self.fold.load(obs.cpus);
        for (d, (domain, now)) in self.domains.iter().zip(obs.domains).enumerate() {
            out.set_speed(d, next_speed(domain, now.khz, load, self.marks));
        }
    }
}

/// The study's powerd.
pub(super) static POWERD_2010: Speed = Speed {
    name: "powerd-2010",
    summary: "powerd as the FreeBSD study of 2010 prints it",
    follows: "B. J. Thomson, Improved Power Management for FreeBSD (2010), figure 3",
    source: include_str!("powerd_2010.rs"),
    params: &[
        LOAD,
        poll(250.0),
        percent("jump", "load above which the speed is multiplied by 4", 95.0),
        percent("up", "load above which the speed rises by one level", 75.0),
        percent("down", "load below which the speed falls by one level", 50.0),
        cost(DAEMON_POLL_COST_US),
    ],
    build: |p, s: &Settings| {
        Box::new(Powerd2010 {
            fold: Fold::from_choice(s.count("load")),
            marks: Marks { jump: s.count("jump"), up: s.count("up"), down: s.count("down") },
            poll_ns: s.ms("poll"),
            cost_ns: s.us("cost"),
            domains: p.domains.clone(),
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;
    use crate::speed::testing::{Rig, platform};

    const POLL: u64 = 250 * MS;
    const LEVELS: &[u32] = &[1700, 1400, 1000, 600];

    /// 2.1 of the study: 187.5 ms of the first window and all of the second.
    #[test]
    fn the_worst_case_is_437_ms_and_a_half() {
        let mut r = Rig::new(platform(1, LEVELS), &POWERD_2010, "", true);
        assert_eq!(r.poll(POLL, &[750]), 600, "75 % is not over 75 %");
        assert_eq!(r.poll(POLL, &[1000]), 1700);
        let worst_ns = POLL / 1000 * 750 + POLL;
        assert_eq!(worst_ns, 437_500_000);

        let mut r = Rig::new(platform(1, LEVELS), &POWERD_2010, "", true);
        assert_eq!(r.poll(POLL, &[760]), 1000, "a little earlier and a step is taken at once");
    }

    #[test]
    fn one_level_at_a_time_between_the_ends() {
        let mut r = Rig::new(platform(1, LEVELS), &POWERD_2010, "", false);
        let down: Vec<_> = (0..5).map(|_| r.poll(POLL, &[400])).collect();
        assert_eq!(down, [1400, 1000, 600, 600, 600]);
        assert_eq!(r.poll(POLL, &[600]), 600, "between the marks nothing happens");
        let up: Vec<_> = (0..4).map(|_| r.poll(POLL, &[900])).collect();
        assert_eq!(up, [1000, 1400, 1700, 1700]);
    }

    #[test]
    fn four_times_is_not_always_the_highest() {
        let mut r = Rig::new(platform(1, &[1700, 600, 300, 75]), &POWERD_2010, "", true);
        assert_eq!(r.poll(POLL, &[1000]), 300);
        assert_eq!(r.poll(POLL, &[1000]), 1700);
    }
}
