//! What a kernel knows of the watts of a core: its energy model, by which energy-aware scheduling places tasks.
//!
//! On Arm it is made of the device tree (`drivers/opp/of.c`): `dynamic-power-coefficient` (in uW/MHz/V^2) x MHz x V^2, in whole uW.
//! Leakage, caches, memory and idle states are not in it. What a core really draws is another thing, and is billed by the model's
//! watts: a scheduler that knew those would see more than it can.
//!
//! A machine file says the coefficient (`speeds.dynamic_power_coefficient`, with volts). Without it:
//! - with volts, `capacitance_nf` stands for it (1 nF is 1000 uW/MHz/V^2), and `leak_a` is left out;
//! - with `busy_w` alone, the busy watts less those of the shallowest C-state at that speed: what clocks and work add to a core that
//!   waits.
//!
//! The kernel's table does not change when the model's figures are drawn: a drawn machine keeps the nominal one's.

use super::bounds::within;
use super::tables::SpeedsTable;
use super::{CState, MachineModel, SpeedLevel};

/// Fills in what the kernel's energy model says of each level.
pub(super) fn fill(s: &SpeedsTable, levels: &mut [SpeedLevel], idle: &[CState]) -> Result<(), String> {
    if s.dynamic_power_coefficient.is_some() && s.volts.is_empty() {
        return Err("speeds: dynamic_power_coefficient goes with volts: give volts, or leave it out".into());
    }
    let coefficient = match s.dynamic_power_coefficient {
        Some(c) => within("speeds.dynamic_power_coefficient", c, 1.0, 100_000.0, "uW/MHz/V^2")?,
        None => s.capacitance_nf * 1e3,
    };
    for (i, level) in levels.iter_mut().enumerate() {
        // Throttled levels lie between the file's speeds.
        let at = s.mhz.iter().position(|mhz| (mhz * 1e3).round() as u32 == level.khz && !level.throttled);
        let uw = match at.and_then(|at| s.volts.get(at)) {
            Some(volts) => coefficient * volts * volts * f64::from(level.khz) * 1e-3,
            None => {
                (level.busy_w - idle.iter().find(|s| !s.polls()).map_or(0.0, |state| state.watts[i])) * 1e6
            }
        };
        level.model_uw = uw.clamp(0.0, f64::from(u32::MAX)) as u32;
    }
    Ok(())
}

impl MachineModel {
    /// A core's capacity as Linux's scheduler takes it: [`MachineModel::capacity`], but where a core has several threads all are alike,
    /// since what a thread can do is then not known (6.12, `intel_pstate.c`: no capacity scaling while SMT is active).
    pub fn scheduler_capacity(&self, kind: usize) -> u16 {
        if self.cores.len() < self.cpus.len() { 1024 } else { self.capacity(kind) }
    }

    /// Work a core of a kind does at its highest speed, where the machine's strongest does 1024.
    pub fn capacity(&self, kind: usize) -> u16 {
        let strength = |k: &super::CoreKind| k.levels[0].cycles_per_ns * k.ipc;
        let strongest = self.kinds.iter().map(strength).fold(f64::MIN, f64::max);
        (1024.0 * strength(&self.kinds[kind]) / strongest) as u16
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::{MachineModel, builtin, file};

    fn with(speeds: &str) -> Result<MachineModel, String> {
        let text = format!(
            "name = 'm'\nsummary = 's'\n[topology]\npackages = 1\nclocks = 'kind'\nsource = 's'\nconfidence = 'guess'\n[[kind]]\nname = 'core'\ncores = 1\n\
             source = 's'\nconfidence = 'guess'\n[kind.speeds]\nmhz = [2000, 1000]\n{speeds}\nsource = 's'\nconfidence = 'guess'\n\
             [kind.transition]\nstall_us = 1\nsource = 's'\nconfidence = 'guess'\n\
             [kind.idle]\nstates = [{{ name = 'WFI', latency_us = 1, target_us = 1, watts = 0.2, lowest_watts = 0.1 }}]\n\
             source = 's'\nconfidence = 'guess'\n[package]\nuncore_w = 0\nsource = 's'\nconfidence = 'guess'\n\
             [platform]\nwatts = 1\nsource = 's'\nconfidence = 'guess'"
        );
        file::parse(&text, "m.toml").map_err(|e| e.to_string())
    }

    fn table(m: &MachineModel) -> Vec<u32> {
        m.kinds[0].levels.iter().map(|l| l.model_uw).collect()
    }

    #[test]
    fn it_is_the_device_tree_s_coefficient_and_knows_no_leakage() {
        // 310 uW/MHz/V^2 x 1.25 V^2 x 2000 MHz, and 0.9 V at 1000 MHz; what is billed has the capacitance and the leakage.
        let given =
            "volts = [1.25, 0.9]\ncapacitance_nf = 0.5\nleak_a = 0.3\ndynamic_power_coefficient = 310";
        let m = with(given).unwrap();
        assert_eq!(table(&m), [968_750, 251_100]);
        assert!((m.kinds[0].levels[0].busy_w - (0.5 * 1.25 * 1.25 * 2.0 + 0.3 * 1.25)).abs() < 1e-12);
        // Odroid-XU3, from its kernel's debugfs: 310 mW at 1 GHz and 1 V, 372 at 1.2 GHz (LKML 20200127215453.15144-3).
        let m = with("volts = [1.0, 1.0]\ncapacitance_nf = 0.31").unwrap();
        assert_eq!(table(&m), [620_000, 310_000]);
        let e = with("busy_w = [2.0, 1.0]\ndynamic_power_coefficient = 310").unwrap_err();
        assert!(e.contains("goes with volts"), "{e}");
        let e =
            with("volts = [1.0, 1.0]\ncapacitance_nf = 0.31\ndynamic_power_coefficient = -3").unwrap_err();
        assert!(e.contains("dynamic_power_coefficient = -3"), "{e}");
    }

    #[test]
    fn without_volts_it_is_what_work_adds_to_a_core_that_waits() {
        // WFI draws 0.2 W at the highest and 0.1 W at the lowest speed.
        assert_eq!(table(&with("busy_w = [2.0, 1.0]").unwrap()), [1_800_000, 900_000]);
    }

    #[test]
    fn a_drawn_machine_s_kernel_has_the_nominal_table() {
        let m = file::parse(builtin::text("sdm845").unwrap(), "sdm845").unwrap();
        let (drawn, _) = m.draw(7);
        assert_ne!(m.kinds[1].levels[0].busy_w.to_bits(), drawn.kinds[1].levels[0].busy_w.to_bits());
        let of = |m: &MachineModel| -> Vec<u32> {
            m.kinds.iter().flat_map(|k| k.levels.iter().map(|l| l.model_uw)).collect()
        };
        assert_eq!(of(&m), of(&drawn));
    }

    #[test]
    fn capacity_is_of_the_strongest_core() {
        let m = file::parse(builtin::text("sdm845").unwrap(), "sdm845").unwrap();
        // 0.5973 x 1766.4 MHz of 2803.2 MHz.
        assert_eq!((m.capacity(0), m.capacity(1)), (385, 1024));
        assert_eq!((m.scheduler_capacity(0), m.scheduler_capacity(1)), (385, 1024));
        let smt = file::parse(builtin::text("alderlake-p-laptop").unwrap(), "alderlake-p-laptop").unwrap();
        assert!(smt.capacity(1) < 1000);
        assert_eq!((smt.scheduler_capacity(0), smt.scheduler_capacity(1)), (1024, 1024));
    }
}
