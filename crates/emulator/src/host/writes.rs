//! What follows from a write that the rules took.

use super::{CPU, Host, digits};
use std::collections::BTreeSet;
use wattwise_hw::rules::{self, AttributeView, Limit};

impl Host {
    /// Everything that follows from a write that the rules took.
    ///
    /// `path` is the attribute's own path, `shows` what the rules say it shows from now on.
    pub(crate) fn apply(&mut self, path: &str, value: &str, shows: &str) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let policy = self.policies.iter().position(|p| p.folder == folder);
        match (name, policy) {
            ("scaling_min_freq" | "scaling_max_freq", Some(i)) => {
                let limit = if name == "scaling_min_freq" { Limit::Min } else { Limit::Max };
                let asked = rules::limit_khz(value, limit, self.release);
                if let (Some(p), Ok(asked)) = (self.policies.get_mut(i), asked) {
                    let place = if limit == Limit::Min { &mut p.asked.0 } else { &mut p.asked.1 };
                    *place = asked;
                }
                self.refresh_policy(i);
            }
            ("scaling_setspeed", Some(i)) => {
                if let (Some(p), Ok(khz)) = (self.policies.get_mut(i), shows.parse()) {
                    p.setspeed = khz;
                }
                self.refresh_policy(i);
            }
            ("scaling_governor", Some(i)) => self.set_governor(i, shows),
            ("online", _) => {
                if let Some(id) = folder.rsplit('/').next().and_then(|n| digits(n, "cpu")) {
                    self.plug(id, shows == "1");
                }
            }
            ("dynamic_epp", _) => {
                self.set(path, shows);
                // The driver is registered anew: powersave, and the preferences as on loading.
                for i in 0..self.policies.len() {
                    self.set_governor(i, "powersave");
                    let preference = format!("{}/energy_performance_preference", self.policies[i].folder);
                    self.update(&preference, "balance_performance");
                }
                self.follow_source();
            }
            ("status", _) => self.set_status(folder, shows),
            ("control", _) if folder.ends_with("/smt") => {
                self.set(path, shows);
                self.set_smt(shows == "on");
            }
            ("boost", _) => {
                self.set(path, shows);
                if policy.is_none() {
                    // Every policy follows the global switch (cpufreq_boost_trigger_state).
                    for i in 0..self.policies.len() {
                        let own = self.policies.get(i).map(|p| format!("{}/boost", p.folder));
                        if let Some(own) = own {
                            self.update(&own, shows);
                        }
                    }
                }
                self.refresh_all();
            }
            ("no_turbo" | "max_perf_pct" | "min_perf_pct", _) => {
                self.set(path, shows);
                self.refresh_all();
            }
            _ => self.set(path, shows),
        }
    }

    pub(super) fn set_governor(&mut self, index: usize, governor: &str) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        let folder = policy.folder.clone();
        policy.setspeed = policy.cur;
        let old = self.text(&format!("{folder}/scaling_governor")).unwrap_or_default();
        self.set(&format!("{folder}/scaling_governor"), governor);
        let driver = self.text(&format!("{folder}/scaling_driver")).unwrap_or_default();
        let preference = format!("{folder}/energy_performance_preference");
        if rules::is_active_driver(&driver) && old != governor && self.tree.find(&preference, true).is_some()
        {
            // intel_pstate_hwp_set: performance fixes the preference, leaving it brings the old one back.
            if governor == "performance" {
                let now = self.text(&preference);
                if let Some(p) = self.policies.get_mut(index) {
                    p.preference = now;
                }
                self.set(&preference, "performance");
            } else if let Some(before) = self.policies.get_mut(index).and_then(|p| p.preference.take()) {
                self.set(&preference, before);
            }
        }
        let list = format!("{folder}/energy_performance_available_preferences");
        if self.tree.find(&list, true).is_some() {
            // amd-pstate names one preference alone under performance: show_energy_performance_available_preferences.
            let preferences = rules::preferences(self, &folder).join(" ");
            self.set(&list, preferences);
        }
        self.refresh_tunables();
        self.refresh_policy(index);
    }

    /// The kernel's own preferences by the power source, while it owns them: amd_pstate_get_balanced_epp.
    pub(super) fn follow_source(&mut self) {
        if !rules::owns_preferences(self) {
            return;
        }
        let preference = if self.mains { "performance" } else { "balance_performance" };
        for i in 0..self.policies.len() {
            let path = format!("{}/energy_performance_preference", self.policies[i].folder);
            self.update(&path, preference);
        }
    }

    /// Plugs the charger in or out.
    pub(crate) fn set_mains(&mut self, online: bool) {
        self.mains = online;
        self.follow_source();
    }

    /// A governor's folder is there while a policy uses it, with fresh values each time.
    pub(super) fn refresh_tunables(&mut self) {
        let mut used: BTreeSet<&'static str> = BTreeSet::new();
        let per_policy = self.policies.iter().any(|p| {
            let folder = self.tree.find(&p.folder, true);
            folder.is_some_and(|f| TUNABLES.iter().any(|(g, _)| self.tree.child(f, g).is_some()))
        }) || (self.policies.len() > 1
            && self.policies.first().is_some_and(|p| self.policy_text(p, "scaling_driver") == "cpufreq-dt"));
        let mut folders: Vec<(String, &'static str, bool)> = Vec::new();
        for policy in &self.policies {
            if policy.aside.is_some() || rules::is_active_driver(&self.policy_text(policy, "scaling_driver"))
            {
                continue;
            }
            let governor = self.policy_text(policy, "scaling_governor");
            for (name, _) in TUNABLES {
                if *name == governor && !self.is_inactive(policy) {
                    used.insert(name);
                }
                if per_policy {
                    folders.push((format!("{}/{name}", policy.folder), name, *name == governor));
                }
            }
        }
        if !per_policy {
            for (name, _) in TUNABLES {
                folders.push((format!("{CPU}/cpufreq/{name}"), name, used.contains(name)));
            }
        }
        for (folder, governor, wanted) in folders {
            let there = self.tree.find(&folder, true).is_some();
            if wanted && !there {
                let defaults = TUNABLES.iter().find(|t| t.0 == governor).map_or(&[][..], |t| t.1);
                for (name, value) in defaults {
                    self.set(&format!("{folder}/{name}"), value);
                }
            } else if !wanted && there {
                self.tree.detach(&folder);
            }
        }
    }
}

/// The governors' files with their defaults: drivers/cpufreq/cpufreq_ondemand.c,
/// cpufreq_conservative.c, kernel/sched/cpufreq_schedutil.c; the rates for a 10 us transition.
const TUNABLES: &[(&str, &[(&str, &str)])] = &[
    (
        "ondemand",
        &[
            ("sampling_rate", "10000"),
            ("io_is_busy", "0"),
            ("up_threshold", "95"),
            ("sampling_down_factor", "1"),
            ("ignore_nice_load", "0"),
            ("powersave_bias", "0"),
        ],
    ),
    (
        "conservative",
        &[
            ("sampling_rate", "10000"),
            ("up_threshold", "80"),
            ("down_threshold", "20"),
            ("sampling_down_factor", "1"),
            ("ignore_nice_load", "0"),
            ("freq_step", "5"),
        ],
    ),
    ("schedutil", &[("rate_limit_us", "1000")]),
];
