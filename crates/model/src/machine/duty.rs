//! T-states as speeds, the way FreeBSD lists them.
//!
//! A T-state stops the clock for part of the time. FreeBSD's `cpufreq` offers every pair of a P-state
//! and a duty cycle as one more speed, less those that a better pair makes pointless
//! (`sys/kern/kern_cpu.c`, `cpufreq_expand_set` and `cpufreq_dup_set`):
//!
//! 1. P-states in turn, the slowest first, so that a low voltage is preferred to a low duty cycle.
//! 2. Of each, the duty cycles from the longest down.
//! 3. Find the slowest listed speed that is faster than the pair. If it belongs to a slower P-state,
//!    the pair is refused: that P-state does more work for less. So is a pair within 25 MHz of a
//!    listed speed (`CPUFREQ_CMP`).
//! 4. The first refusal ends a P-state's turn.
//!
//! Speeds are whole MHz, rounded down. Of a Pentium M's six P-states and eight duty cycles, 18 speeds remain.

use super::SpeedLevel;

/// Speeds closer than this are one to FreeBSD, in MHz.
const SAME_MHZ: u32 = 25;

/// The P-states (fastest first) with duty cycles in steps of `step` (0.125) mixed in, each doing
/// `loss` (0.02) less than its share.
///
/// While the clock stands, a core draws `stopped` watts (one figure a P-state): its first C-state's.
/// No speed draws less than a slower one: a duty cycle near the next P-state's speed costs at least that. Nor does it
/// do less, though a great loss may leave it nothing over.
pub(super) fn expand(pstates: &[SpeedLevel], stopped: &[f64], step: f64, loss: f64) -> Vec<SpeedLevel> {
    let duties = || (1..).map(|i| 1.0 - step * f64::from(i)).take_while(|duty| *duty > step * 0.5);
    // (P-state, level), fastest first.
    let mut listed: Vec<(usize, SpeedLevel)> = pstates.iter().copied().enumerate().collect();
    for (p, full) in pstates.iter().enumerate().rev() {
        for duty in duties() {
            let mhz = (f64::from(full.khz / 1000) * duty) as u32;
            let same = |l: &SpeedLevel| (l.khz / 1000).abs_diff(mhz) < SAME_MHZ;
            let above = listed.iter().rposition(|(_, l)| l.khz / 1000 > mhz).unwrap_or(0);
            if mhz == 0 || listed[above].0 > p || listed.iter().any(|(_, l)| same(l)) {
                break;
            }
            let power = |running: f64| running * duty + stopped[p] * (1.0 - duty);
            let level = SpeedLevel {
                khz: mhz * 1000,
                cycles_per_ns: full.cycles_per_ns * duty * (1.0 - loss),
                busy_w: power(full.busy_w),
                stall_w: power(full.stall_w),
                model_uw: 0,
                throttled: true,
            };
            listed.insert(above + 1, (p, level));
        }
    }
    let mut levels: Vec<SpeedLevel> = listed.into_iter().map(|(_, level)| level).collect();
    for i in (1..levels.len()).rev() {
        levels[i - 1].busy_w = levels[i - 1].busy_w.max(levels[i].busy_w);
        levels[i - 1].cycles_per_ns = levels[i - 1].cycles_per_ns.max(levels[i].cycles_per_ns);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mhz(pstates: &[u32], step: f64) -> Vec<u32> {
        let level = |&mhz: &u32| SpeedLevel {
            khz: mhz * 1000,
            cycles_per_ns: f64::from(mhz) * 1e-3,
            busy_w: f64::from(mhz) * 0.01,
            stall_w: f64::from(mhz) * 0.006,
            model_uw: 0,
            throttled: false,
        };
        let levels: Vec<SpeedLevel> = pstates.iter().map(level).collect();
        let stopped: Vec<f64> = levels.iter().map(|l| l.busy_w * 0.3).collect();
        let all = expand(&levels, &stopped, step, 0.02);
        assert!(all.windows(2).all(|w| w[0].khz > w[1].khz && w[0].busy_w >= w[1].busy_w));
        assert!(all.iter().all(|l| l.throttled != levels.iter().any(|p| p.khz == l.khz)));
        all.iter().map(|l| l.khz / 1000).collect()
    }

    #[test]
    fn a_pentium_m_has_the_speeds_that_freebsd_lists() {
        assert_eq!(
            mhz(&[1700, 1400, 1200, 1000, 800, 600], 0.125),
            [1700, 1487, 1400, 1225, 1200, 1050, 1000, 875, 800, 700, 600, 525, 450, 375, 300, 225, 150, 75]
        );
    }

    #[test]
    fn far_apart_p_states_are_filled_until_the_next() {
        assert_eq!(
            mhz(&[2000, 1000], 0.125),
            [2000, 1750, 1500, 1250, 1000, 875, 750, 625, 500, 375, 250, 125]
        );
    }

    #[test]
    fn neighbours_within_25_mhz_are_one_speed() {
        // 1100 x 7/8 = 962 is beside 950; 950 x 7/8 = 831 onwards stay.
        assert_eq!(mhz(&[1100, 950], 0.125)[..3], [1100, 950, 831]);
        // 160 x 15/16 = 150 is refused, and with it the rest.
        assert_eq!(mhz(&[160], 0.0625), [160]);
    }
}
