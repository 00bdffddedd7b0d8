//! `hwp`: an Intel processor that chooses its own speed (Speed Shift), told only a preference.
//!
//! **This is an approximation.** How the hardware chooses by its preference is not published. The rule and why it has
//! this form are in `autonomous.rs`; it follows this project, after figures of others:
//!
//! - What Linux writes, from Linux 6.12, `drivers/cpufreq/intel_pstate.c`, intel_pstate_hwp_set: the limits, no desired speed,
//!   and the preference (EPP): performance 0, balance_performance 128, balance_power 192, power 255. Some
//!   processors have another number for balance_performance (Alder Lake mobile 102, Sapphire Rapids 32): give
//!   `epp=102`. Nothing is written periodically, so it costs no CPU time.
//! - From idle to the highest speed a Core i5-12600 takes just over 5 ms under full load (chipsandcheese.com, 2022-09-15;
//!   its preference is not stated). Hence `reaction`.
//! - Head-room of a quarter at EPP 128: what the driver's own rule takes without HWP (`intel_pstate`).
//!
//! Unknown, and so assumed: that load alone decides (hardware may count stalls, and share a power budget between
//! cores); that the preference moves the load of full speed in a straight line; how fast the speed falls; that a
//! busy core reaches its highest speed under any preference. A result that hangs on the preference should be measured:
//! `wattwise ab` does.
//!
//! `epp=performance` is the preference alone. The driver's policy `performance` also raises the lower limit to the
//! upper: that is the policy `performance` here.
//!
//! Left out: the boost for I/O (hwp_dynamic_boost), off but on some servers.

use super::Speed;
use super::autonomous::{Autonomous, FULL_AT, epp, reaction};

/// What rests on what.
pub(super) const APPROXIMATION: &str = "how hardware chooses by EPP is not published; rests on a reaction time of 5 ms (Core i5-12600) and a straight line of head-room through EPP 128";

/// Hardware-controlled performance states.
pub(super) static HWP: Speed = Speed {
    name: "hwp",
    summary: "Linux on Intel with HWP, active mode: the hardware chooses by EPP (an approximation)",
    follows: "an approximation by this project: Linux 6.12, drivers/cpufreq/intel_pstate.c for what is written; reaction time by chipsandcheese.com, 2022-09-15",
    source: include_str!("hwp.rs"),
    params: &[
        epp(&[("performance", 0), ("balance_performance", 128), ("balance_power", 192), ("power", 255)]),
        reaction(5.0),
        FULL_AT,
    ],
    build: Autonomous::boxed,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};
    use crate::{CpuSample, Khz, MS};

    /// 4000 to 400 MHz in steps of 100.
    fn rig(spec: &str) -> Rig {
        let levels: alloc::vec::Vec<u32> = (4..=40).rev().map(|s| s * 100).collect();
        Rig::new(platform(1, &levels), &HWP, spec, true)
    }
    fn busy(us: u64) -> CpuSample {
        CpuSample { busy_ns: us * 1000, runnable: 1, ..CpuSample::default() }
    }
    fn idle(us: u64) -> CpuSample {
        CpuSample { idle_ns: us * 1000, ..CpuSample::default() }
    }

    /// Half of a window of 3.125 ms busy: a load of 0.5.
    #[test]
    fn the_preference_biases_the_speed() {
        let at = |spec: &str| rig(spec).cpu(0, busy(1563));
        // 4000 x 0.5 / 0.6, / 0.8, / 0.9, / 1.0, rounded up to a level.
        assert_eq!(at("epp=performance"), 3400);
        assert_eq!(at(""), 2600, "0.50016 / 0.8");
        assert_eq!(at("epp=balance_power"), 2300);
        assert_eq!(at("epp=power"), 2100);
        assert_eq!(at("full_at=50"), 4000);
    }

    #[test]
    fn a_busy_core_has_its_highest_speed_after_the_reaction_time() {
        let mut r = rig("");
        let looks = (1..100).find(|_| r.cpu(0, busy(100)) == 4000);
        // 80 % are passed after 5 ms, and the level below the highest ends at 78 %.
        assert!(looks.is_some_and(|n| (46..=52).contains(&n)), "{looks:?} tenths of a ms");
        let mut r = rig("reaction=10");
        let looks = (1..200).find(|_| r.cpu(0, busy(100)) == 4000);
        assert!(looks.is_some_and(|n| (92..=103).contains(&n)), "{looks:?} tenths of a ms");
    }

    #[test]
    fn it_falls_with_the_load() {
        let mut r = rig("");
        assert_eq!(r.cpu(0, busy(10_000)), 4000);
        assert_eq!(r.cpu(0, idle(1_563)), 2500, "half a window: 4000 x 0.49984 / 0.8");
        assert_eq!(r.cpu(0, idle(100_000)), 400);
    }

    #[test]
    fn without_boost_the_base_is_the_highest() {
        let mut p = platform(1, &[4000, 2000, 1600, 1200, 400]);
        (p.boost, p.domains[0].base) = (false, Khz(2_000_000));
        // 2000 x 0.5 / 0.8 = 1250.
        assert_eq!(Rig::new(p.clone(), &HWP, "", true).cpu(0, busy(1563)), 1600);
        assert_eq!(Rig::new(p, &HWP, "", true).cpu(0, busy(10_000)), 2000);
    }

    #[test]
    fn a_shared_clock_follows_the_busiest() {
        let mut r = Rig::new(platform(2, &[4000, 3000, 2000, 1000]), &HWP, "", true);
        assert_eq!(r.cpu(0, busy(10_000)), 4000);
        r.cpus[1] = idle(10_000);
        assert_eq!(r.observe(crate::Scope::Cpu(1), 0), 4000, "the first is busy still");
        r.cpus[0] = idle(0);
        r.observe(crate::Scope::Cpu(0), 0);
        assert_eq!(r.observe(crate::Scope::Cpu(1), 10 * MS), 1000, "and sleeps now");
    }
}
