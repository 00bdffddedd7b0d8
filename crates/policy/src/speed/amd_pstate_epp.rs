//! `amd-pstate-epp`: an AMD processor that chooses its own speed (CPPC), told only a preference.
//!
//! **This is an approximation**, as `hwp` is, and by the same rule (`autonomous.rs`); it follows this project, after figures
//! of others:
//!
//! - What Linux writes, from Linux 6.12, `drivers/cpufreq/amd-pstate.c` in active mode, its default on laptops and desktops
//!   from Zen 2 on: the limits, no desired speed, and the preference (EPP): performance 0,
//!   balance_performance 128, balance_power 191, power 255.
//! - From idle to the highest speed under full load a mobile Zen 2 takes 9 ms, a desktop Zen 2 16 to 17 ms
//!   (chipsandcheese.com, 2022-10-26; the preference is not stated). `reaction` has the mobile part's; give 16.5 for a desktop.
//!
//! Unknown, and so assumed: the same as for `hwp`. A result that hangs on the preference should be measured:
//! `wattwise ab` does.
//!
//! Left out: passive and guided mode, where Linux's governor (`schedutil`) asks for the speed and no more
//! than the lowest limit differs: the lowest nonlinear speed, `schedutil+min=...`.

use super::Speed;
use super::autonomous::{Autonomous, FULL_AT, epp, reaction};

/// What rests on what.
pub(super) const APPROXIMATION: &str = "how hardware chooses by EPP is not published; the model uses a reaction time of 9 ms (mobile Zen 2) and drops of the clock measured on Intel, and assumes that the load at which it asks for full speed is linear in the EPP";

/// AMD's autonomous mode.
pub(super) static AMD_PSTATE_EPP: Speed = Speed {
    name: "amd-pstate-epp",
    summary: "Linux on AMD, active mode: the hardware chooses by EPP (an approximation)",
    follows: "an approximation by this project: Linux 6.12, drivers/cpufreq/amd-pstate.c for what is written; reaction time by chipsandcheese.com, 2022-10-26",
    source: include_str!("amd_pstate_epp.rs"),
    params: &[
        epp(&[("performance", 0), ("balance_performance", 128), ("balance_power", 191), ("power", 255)]),
        reaction(9.0),
        FULL_AT,
    ],
    build: Autonomous::boxed,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuSample;
    use crate::Settings;
    use crate::speed::testing::{Rig, platform};

    #[test]
    fn amds_words_have_amds_numbers() {
        let epp = |word: &str| {
            let given = alloc::format!("epp={word}");
            Settings::parse(AMD_PSTATE_EPP.params, &given).map(|s| s.count("epp"))
        };
        let all = ["performance", "balance_performance", "balance_power", "power"];
        assert_eq!(all.map(epp), [Ok(0), Ok(128), Ok(191), Ok(255)]);
    }

    /// Loops of 6 ms: 6 to 12 ms from idle, 9 on average.
    #[test]
    fn nine_ms_to_the_highest_speed_on_average() {
        let levels: alloc::vec::Vec<u32> = (4..=40).rev().map(|s| s * 100).collect();
        let tenths = |start: u64| {
            let mut r = Rig::new(platform(1, &levels), &AMD_PSTATE_EPP, "full_at=100", true);
            r.now_ns = start;
            r.restart();
            let busy = CpuSample { busy_ns: 100_000, runnable: 1, ..CpuSample::default() };
            (1..300).find(|_| r.cpu(0, busy) == 4000).unwrap_or_default()
        };
        let all: alloc::vec::Vec<i32> = (1..200).map(|start| tenths(start * 777_777)).collect();
        assert!(all.iter().all(|t| (59..=121).contains(t)), "{all:?}");
        assert!((85..=95).contains(&(all.iter().sum::<i32>() / 199)), "{all:?}");
    }
}
