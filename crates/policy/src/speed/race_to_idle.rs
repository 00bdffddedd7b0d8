//! `race-to-idle`: the critical speed, at which a cycle costs least when what is left over is slept.
//!
//! It follows S. Irani, S. Shukla, R. Gupta, "Algorithms for power savings" (ACM Transactions on Algorithms 3(4), 2007).
//! Below some speed a slower clock no longer saves: the core itself draws less, but for longer, and so does all
//! that must be awake with it. The 2010 FreeBSD study names the same speed in its introduction.
//!
//! It observes nothing; it computes once from the platform's figures and holds the result, as
//! `performance` does. The idle policy does the rest, and without a deep idle state there is nothing to
//! race to.
//!
//! 1. While a core is busy at a level the machine draws `busy + awake`: the core's own power there and the
//!    power of what stays on while any core is awake. Asleep, the core would draw `deepest`.
//! 2. A cycle at speed s takes 1/s; what it costs more than sleeping is (busy + awake - deepest)/s.
//! 3. The level with the least of that is the critical speed; of two alike the faster, which gives the
//!    same energy back sooner.
//!
//! The paper's rule is: never *below* the critical speed when the slack can be slept. Faster it must be
//! only for a deadline, and a policy here knows none, so it holds the critical speed. With no power figures
//! for every level there is nothing to compute, and it holds the highest speed, which is the old meaning of
//! the words; unknown idle and uncore powers count as zero.
//!
//! Left out: the paper's second half, an on-line schedule of jobs with deadlines; nobody states deadlines here.

use super::Speed;
use super::fixed::HeldSpeed;
use crate::{DomainInfo, Khz};

/// Steps 1 to 3, powers in microwatts.
fn critical_speed(domain: &DomainInfo, awake_uw: u32, deepest_uw: u32) -> Khz {
    let mut best: Option<(i64, Khz)> = None;
    for level in &domain.levels {
        let Some(busy_uw) = level.busy_uw else { return domain.fastest() };
        let extra = i64::from(busy_uw) + i64::from(awake_uw) - i64::from(deepest_uw);
        // a/b < c/d as a*d < c*b: both speeds are positive, and the products fit in 66 bits.
        let cheaper = best.is_none_or(|(best_extra, best_khz)| {
            i128::from(extra) * i128::from(best_khz.0) < i128::from(best_extra) * i128::from(level.khz.0)
        });
        if cheaper {
            best = Some((extra, level.khz));
        }
    }
    best.map_or(domain.fastest(), |(_, khz)| khz)
}

/// The critical speed.
pub(super) static RACE_TO_IDLE: Speed = Speed {
    name: "race-to-idle",
    summary: "the critical speed: least energy a cycle when the rest is slept (no power data: the highest)",
    follows: "S. Irani, S. Shukla, R. Gupta, Algorithms for power savings (ACM TALG 3(4), 2007)",
    source: include_str!("race_to_idle.rs"),
    params: &[],
    build: |p, _| {
        let (awake, deepest) = (p.awake_uw.unwrap_or(0), p.deepest_idle_uw.unwrap_or(0));
        HeldSpeed::boxed(p, |d| critical_speed(d, awake, deepest))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::speed::testing::{Rig, platform};
    use alloc::vec;

    /// MHz and watts: alone 2000 MHz costs 5.0 nJ a cycle, 1000 MHz 3.0 and 500 MHz 4.0.
    fn domain() -> DomainInfo {
        let mut d = platform(1, &[2000, 1000, 500]).domains.remove(0);
        d.levels = [(2000, 10), (1000, 3), (500, 2)]
            .map(|(mhz, w)| Level { khz: Khz(mhz * 1000), busy_uw: Some(w * 1_000_000) })
            .to_vec();
        d
    }

    #[test]
    fn a_table_by_hand() {
        let d = domain();
        let mhz = |awake_w: u32, deepest_w: u32| {
            critical_speed(&d, awake_w * 1_000_000, deepest_w * 1_000_000).0 / 1000
        };
        assert_eq!(mhz(0, 0), 1000, "3.0 is the least");
        assert_eq!(mhz(5, 0), 2000, "7.5 against 8.0 and 14.0: a costly surrounding wants speed");
        assert_eq!(mhz(4, 0), 2000, "7.0 against 7.0: the faster of equals");
        assert_eq!(mhz(3, 0), 1000, "6.5 against 6.0");
        assert_eq!(mhz(0, 2), 500, "nothing is saved by sleeping: 0.0 is the least");
        assert_eq!(mhz(0, 4), 500, "sleep dearer than work does not overflow");
    }

    #[test]
    fn without_figures_it_is_the_highest() {
        let mut d = domain();
        d.levels[2].busy_uw = None;
        assert_eq!(critical_speed(&d, 0, 0), d.fastest());
        let r = Rig::new(platform(1, &[2000, 1000]), &RACE_TO_IDLE, "", true);
        assert_eq!(r.domains[0].khz, Khz(2_000_000));
    }

    #[test]
    fn the_platform_is_asked() {
        let mut p = platform(1, &[2000]);
        p.domains = vec![domain()];
        p.awake_uw = Some(5_000_000);
        p.deepest_idle_uw = Some(0);
        let r = Rig::new(p, &RACE_TO_IDLE, "", true);
        assert_eq!(r.domains[0].khz, Khz(2_000_000));
    }
}
