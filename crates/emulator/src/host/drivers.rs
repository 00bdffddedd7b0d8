//! The modes of intel_pstate and amd-pstate: which driver is registered, and what it brings.

use super::parts::HostPolicy;
use super::{CPU, Host};
use wattwise_hw::rules::{self, AttributeView};

impl Host {
    /// intel_pstate's and amd_pstate's modes: which driver is registered.
    pub(super) fn set_status(&mut self, folder: &str, mode: &str) {
        let path = format!("{folder}/status");
        let Some(before) = self.text(&path).filter(|now| now != mode) else { return };
        self.set(&path, mode);
        let governed = |mode: &str| matches!(mode, "passive" | "guided");
        if governed(&before) && governed(mode) {
            // One driver for both: amd_pstate_change_mode_without_dvr_change.
            return;
        }
        let intel = folder.ends_with("intel_pstate");
        let off = matches!(mode, "off" | "disable");
        for i in 0..self.policies.len() {
            match off {
                true => self.unregister_policy(i),
                false => self.register_policy(i, intel, mode),
            }
        }
        match (intel, off) {
            (true, false) => self.register_intel_pstate(folder, mode),
            (true, true) => {}
            (false, off) => self.register_boost(off),
        }
        self.refresh_tunables();
        self.refresh_all();
    }

    pub(super) fn unregister_policy(&mut self, index: usize) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        policy.aside = self.tree.detach(&policy.folder);
    }

    /// A policy of a driver that is registered anew: everything starts from the driver's defaults.
    pub(super) fn register_policy(&mut self, index: usize, intel: bool, mode: &str) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        let (folder, kept) = (policy.folder.clone(), policy.preference.take());
        policy.asked = policy.hw;
        if let Some(id) = policy.aside.take() {
            self.tree.attach(&folder, id);
        }
        let file = |name: &str| format!("{folder}/{name}");
        let (driver, governor, governors) = match (intel, mode) {
            (true, "active") => ("intel_pstate", "powersave", "performance powersave"),
            (true, _) => ("intel_cpufreq", "schedutil", PASSIVE_GOVERNORS),
            (false, "active") => ("amd-pstate-epp", "powersave", "performance powersave"),
            (false, _) => ("amd-pstate", "schedutil", PASSIVE_GOVERNORS),
        };
        self.set(&file("scaling_driver"), driver);
        self.set(&file("scaling_available_governors"), governors);
        self.set(&file("scaling_governor"), governor);
        let (preference, list) =
            (file("energy_performance_preference"), file("energy_performance_available_preferences"));
        match (intel, mode) {
            // intel_pstate_hwp_offline: the governor performance had set its preference for a time; the one from before
            // stays in the register over a change of the driver.
            (true, _) => kept.iter().for_each(|kept| self.update(&preference, kept)),
            // amd-pstate has preferences in active mode only.
            (false, "active") => {
                self.set(&preference, "balance_performance");
                self.set(&list, "default performance balance_performance balance_power power");
            }
            (false, _) => {
                self.tree.detach(&preference);
                self.tree.detach(&list);
            }
        }
    }

    /// intel_pstate_register_driver: turbo and the shares of the whole machine are reset. The boost after I/O is a static of
    /// the driver's, which its file shows in active mode.
    pub(super) fn register_intel_pstate(&mut self, folder: &str, mode: &str) {
        if !rules::turbo_is_locked(self) {
            self.update(&format!("{folder}/no_turbo"), 0);
        }
        self.update(&format!("{folder}/max_perf_pct"), 100);
        let hw = self.policies.first().map(|p| p.hw);
        if let Some((min, max)) = hw.filter(|(_, max)| *max > 0) {
            self.update(&format!("{folder}/min_perf_pct"), u64::from(min) * 100 / u64::from(max));
        }
        let boost = format!("{folder}/hwp_dynamic_boost");
        if mode != "active" {
            self.hwp_boost = self.tree.detach(&boost).or(self.hwp_boost);
            return;
        }
        match self.hwp_boost.take() {
            Some(id) => self.tree.attach(&boost, id),
            None if self.tree.find(&boost, true).is_none() && self.has_preferences() => self.set(&boost, 0),
            None => {}
        }
    }

    pub(super) fn has_preferences(&self) -> bool {
        let path = |p: &HostPolicy| format!("{}/energy_performance_preference", p.folder);
        self.policies.first().is_some_and(|p| self.tree.find(&path(p), true).is_some())
    }

    /// amd_pstate_init_boost_support: the switch is the driver's, goes with it and comes back on.
    pub(super) fn register_boost(&mut self, off: bool) {
        let switch = format!("{CPU}/cpufreq/boost");
        if off {
            self.boost_aside = self.tree.detach(&switch).or(self.boost_aside);
            return;
        }
        if let Some(id) = self.boost_aside.take() {
            self.tree.attach(&switch, id);
        }
        self.update(&switch, 1);
        for i in 0..self.policies.len() {
            let own = format!("{}/boost", self.policies[i].folder);
            self.update(&own, 1);
        }
    }
}

const PASSIVE_GOVERNORS: &str = "conservative ondemand userspace powersave performance schedutil";
