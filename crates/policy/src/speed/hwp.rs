//! `hwp`: an Intel processor that chooses its own speed (Speed Shift), told only a preference.
//!
//! **This is an approximation.** How the hardware chooses by its preference is not published. The rule and why it has
//! this form are in `autonomous.rs`; it follows this project, after figures of others:
//!
//! - What Linux writes, from Linux 6.12, `drivers/cpufreq/intel_pstate.c`, intel_pstate_hwp_set: the limits, no desired speed,
//!   and the preference (EPP): performance 0, balance_performance 128, balance_power 192, power 255. Some
//!   processors have another number for balance_performance (Alder Lake mobile 102, Sapphire Rapids 32): give
//!   `epp=102`. Nothing is written periodically, so it costs no CPU time.
//! - How often it looks at a core and which share of short sleeps drops its speed: measured by D. Smythies on a Core i5-9600K and a
//!   Core i5-6200U (linux-pm, 2020-06-30 and 2020-07-08). From idle to the highest speed a Core i5-12600 takes just over 5 ms under full
//!   load (chipsandcheese.com, 2022-09-15; its preference is not stated): one to two of the loop's periods here, which are 5 ms at EPP 128.
//! - Head-room of a quarter at EPP 128: what the driver's own rule takes without HWP (`intel_pstate`).
//!
//! What is not certain of this is drawn in each replica: the machine's `[autonomous]`.
//!
//! Unknown, and so assumed: that load alone decides (hardware may count stalls, and share a power budget between
//! cores); that the preference moves the load of full speed, and from some preference on the highest speed, in straight lines. How far the
//! highest speed of a mobile processor falls is known of a few (the machine's `[epp_ceiling]`); other machines are taken to reach theirs
//! under any preference. A result that hangs on the preference should be measured:
//! `wattwise ab` does.
//!
//! `epp=performance` is the preference alone. The driver's policy `performance` also raises the lower limit to the
//! upper: that is the policy `performance` here.
//!
//! Left out: the boost for I/O (hwp_dynamic_boost), off but on some servers.

use super::Speed;
use super::autonomous::{Autonomous, FULL_AT, epp, reaction};

/// What rests on what.
pub(super) const APPROXIMATION: &str = "how hardware chooses by EPP is not published; the model uses a loop and drops of the clock measured on a Core i5-9600K, and assumes that the load at which it asks for full speed is linear in the EPP";

/// Hardware-controlled performance states.
pub(super) static HWP: Speed = Speed {
    name: "hwp",
    summary: "Linux on Intel with HWP, active mode: the hardware chooses by EPP (an approximation)",
    follows: "an approximation by this project: Linux 6.12, drivers/cpufreq/intel_pstate.c for what is written; loop and drops by D. Smythies, linux-pm, July 2020",
    source: include_str!("hwp.rs"),
    params: &[
        epp(&[("performance", 0), ("balance_performance", 128), ("balance_power", 192), ("power", 255)]),
        reaction(0.0),
        FULL_AT,
    ],
    build: Autonomous::boxed,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};
    use crate::{CpuSample, Khz, MS};

    /// 4000 to 400 MHz in steps of 100; no drops.
    fn rig(spec: &str) -> Rig {
        rig_with(spec, (255, 1000))
    }
    fn rig_with(spec: &str, ceiling: (u32, u32)) -> Rig {
        let levels: alloc::vec::Vec<u32> = (4..=40).rev().map(|s| s * 100).collect();
        let mut p = platform(1, &levels);
        (p.autonomy.drop, p.autonomy.ceiling) = (0, ceiling);
        Rig::new(p, &HWP, spec, true)
    }
    fn busy(us: u64) -> CpuSample {
        CpuSample { busy_ns: us * 1000, runnable: 1, ..CpuSample::default() }
    }
    fn idle(us: u64) -> CpuSample {
        CpuSample { idle_ns: us * 1000, ..CpuSample::default() }
    }

    /// What is left of 4000 MHz at 255 is a fifth.
    #[test]
    fn a_busy_core_of_a_mobile_processor_stays_below_the_ceiling() {
        let at = |spec: &str, ceiling: (u32, u32)| rig_with(spec, ceiling).cpu(0, busy(100_000));
        let mobile = (105, 200);
        assert_eq!(["epp=0", "epp=105"].map(|epp| at(epp, mobile)), [4000; 2]);
        assert_eq!(at("epp=180", mobile), 2400, "half of the way down");
        assert_eq!(at("epp=power", mobile), 800);
        assert_eq!(at("epp=power", (255, 1000)), 4000, "it has none");
    }

    /// Half of the time busy in pieces of 0.1 ms: a load of 0.5, without drops.
    #[test]
    fn the_preference_biases_the_speed() {
        let at = |spec: &str| {
            let mut r = rig(spec);
            let mut seen: alloc::vec::Vec<u32> = alloc::vec::Vec::new();
            for _ in 0..400 {
                r.cpu(0, idle(100));
                seen.push(r.cpu(0, busy(100)));
            }
            seen.sort_unstable();
            seen[200]
        };
        // 4000 x 0.5 / 0.8, / 0.9, / 1.0, rounded up to a level.
        assert_eq!(at(""), 2500);
        assert_eq!(at("epp=balance_power"), 2300);
        assert_eq!(at("epp=power"), 2000);
        assert_eq!(at("full_at=50"), 4000);
    }

    /// Smythies' steps and the Core i5-12600: between one and two periods, which are 5 ms at EPP 128 and 9 at 255.
    #[test]
    fn a_busy_core_has_its_highest_speed_after_one_or_two_periods() {
        let at = |spec: &str| {
            let mut r = rig(spec);
            (1..400).find(|_| r.cpu(0, busy(100)) == 4000).unwrap_or_default()
        };
        assert!((50..=101).contains(&at("full_at=100")), "{} tenths of a ms", at("full_at=100"));
        assert!((40..=101).contains(&at("")), "{} tenths of a ms", at(""));
        assert!((90..=181).contains(&at("epp=255")), "{} tenths of a ms", at("epp=255"));
        assert!((67..=135).contains(&at("reaction=10,full_at=100")), "loops of 6.7 ms");
    }

    #[test]
    fn it_falls_with_the_load() {
        let mut r = rig("");
        assert_eq!(r.cpu(0, busy(20_000)), 4000);
        assert_eq!(r.cpu(0, idle(100_000)), 400);
    }

    #[test]
    fn without_boost_the_base_is_the_highest() {
        let mut p = platform(1, &[4000, 2000, 1600, 1200, 400]);
        (p.boost, p.domains[0].base) = (false, Khz(2_000_000));
        assert_eq!(Rig::new(p, &HWP, "", true).cpu(0, busy(20_000)), 2000);
    }

    #[test]
    fn a_shared_clock_follows_the_busiest() {
        let mut r = Rig::new(platform(2, &[4000, 3000, 2000, 1000]), &HWP, "", true);
        assert_eq!(r.cpu(0, busy(20_000)), 4000);
        r.cpus[1] = idle(20_000);
        assert_eq!(r.observe(crate::SampleScope::Cpu(1), 0), 4000, "the first is busy still");
        r.cpus[0] = idle(0);
        r.observe(crate::SampleScope::Cpu(0), 0);
        r.cpus[1] = idle(20_000);
        assert_eq!(r.observe(crate::SampleScope::Cpu(1), 20 * MS), 1000, "and sleeps now");
    }
}
