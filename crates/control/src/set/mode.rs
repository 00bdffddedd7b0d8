//! What a change of the driver's mode does to everything else, foreseen.
//!
//! intel_pstate and amd-pstate are several drivers in one. A write to `status` takes the policies of the driver in force
//! away and registers another one, whose policies start from its defaults: governor, limits, boost, and the shares of the
//! whole machine (drivers/cpufreq/intel_pstate.c, `intel_pstate_register_driver`; amd-pstate.c, `mode_state_machine`, and
//! `amd_pstate_init_boost_support`). Two modes of one driver, amd-pstate's passive and guided, leave all as it is.
//!
//! So settings that come with a mode are planned twice. `Coming` is the machine as it will be, as far as its files tell
//! now: by it a dry run judges, and what it names is journalled. Once the mode is in force the settings are planned again
//! ([`Then`]) with what is really there. What cannot be known before is the list of governors: a driver that chooses
//! speeds itself names its own two, and cpufreq's appear with the mode.

use crate::set::inventory::Inventory;
use std::collections::{BTreeMap, BTreeSet};
use wattwise_figure::setting::Setting;
use wattwise_figure::units::Speed;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::probe::{Mechanism, Probed};
use wattwise_hw::root::{Root, text};
use wattwise_hw::rules;
use wattwise_hw::states::cpufreq::{Cpufreq, CpufreqPolicy, driver_in_mode};

const CPUS: &str = "sys/devices/system/cpu";

/// The attributes of the whole machine that a newly registered driver resets, and what they are for people.
pub(super) const RESET: [(&str, &str); 5] = [
    ("intel_pstate/no_turbo", "boost"),
    ("intel_pstate/max_perf_pct", "highest share"),
    ("intel_pstate/min_perf_pct", "lowest share"),
    ("intel_pstate/hwp_dynamic_boost", "boost after I/O"),
    ("cpufreq/boost", "boost"),
];

/// Settings that wait for a mode of the driver, or for boost: since Linux 6.10 intel_pstate shows the range with turbo only
/// while that is on, so that what a share of the highest speed is cannot be told before.
#[derive(Debug, Clone)]
pub struct Then {
    /// The flag of what they wait for: the driver's mode, or boost.
    pub flag: String,
    /// How many of the plan's steps come before: up to the mode's own.
    pub first: usize,
    pub(super) cpus: CpuSet,
    pub(super) settings: Vec<Setting>,
}

/// The machine in a mode that is not in force yet.
pub(super) struct Coming {
    pub(super) inventory: Inventory,
    /// Attributes as they will be.
    pub(super) made: BTreeMap<String, String>,
    /// Attributes that will be gone.
    pub(super) hidden: BTreeSet<String>,
    /// Whether the governors of the mode are known.
    pub(super) governors_known: bool,
    /// Whether the highest speed of the mode is known; it is not where boost comes back with the mode and only then is shown.
    pub(super) range_known: bool,
    /// Whether the driver is off now, so that no policies are shown to plan for.
    pub(super) unseen: bool,
    /// Whether it is boost that comes, and no mode.
    pub(super) is_boost: bool,
}

impl Coming {
    /// What there will be when the driver has this mode; none where it registers no other driver for it.
    pub(super) fn of(root: &dyn Root, now: &Inventory, mode: &str) -> Option<Coming> {
        let driver = now.cpufreq.driver.as_ref().filter(|d| d.mode != mode)?;
        let governed = |mode: &str| matches!(mode, "passive" | "guided");
        if governed(&driver.mode) && governed(mode) {
            return None;
        }
        let intel = driver.name == "intel_pstate";
        let is_off = |mode: &str| matches!(mode, "off" | "disable");
        let unseen = is_off(&driver.mode) && now.cpufreq.policies().is_empty();
        let mut cpufreq = now.cpufreq.clone();
        if let Some(driver) = &mut cpufreq.driver {
            driver.mode = mode.to_owned();
        }
        let mut coming = Coming {
            inventory: Inventory {
                topology: now.topology.clone(),
                cpuidle: now.cpuidle.clone(),
                cpufreq: Cpufreq { policies: Probed::no(Mechanism::Sysfs, String::new()), ..cpufreq },
            },
            made: BTreeMap::new(),
            hidden: BTreeSet::new(),
            governors_known: mode == "active",
            range_known: true,
            unseen,
            is_boost: false,
        };
        coming.machine_wide(root);
        let policies: Vec<CpufreqPolicy> =
            now.cpufreq.policies().iter().map(|p| coming.policy(p, intel, mode)).collect();
        coming.inventory.cpufreq.policies = match is_off(mode) {
            true => Probed::no(Mechanism::Sysfs, format!("--driver-mode {mode} leaves it without a driver")),
            false => Probed::yes(policies, Mechanism::Sysfs),
        };
        Some(coming)
    }

    /// The machine with boost on, where that is off now and limits among the settings are told by its range.
    pub(super) fn with_boost(now: &Inventory, settings: &[Setting]) -> Option<Coming> {
        let is_off = now.cpufreq.boost.as_ref().is_some_and(|b| !b.on)
            || now.cpufreq.policies().iter().any(|p| p.boost == Some(false));
        let turned_on = settings.contains(&Setting::Boost(true));
        let of_range = |end: &Option<Speed>| end.is_some_and(|s| !matches!(s, Speed::Khz(_)));
        let waits = settings
            .iter()
            .any(|s| matches!(s, Setting::Limits(low, high) if of_range(low) || of_range(high)));
        (is_off && turned_on && waits).then(|| Coming {
            inventory: Inventory {
                topology: now.topology.clone(),
                cpuidle: now.cpuidle.clone(),
                cpufreq: now.cpufreq.clone(),
            },
            made: BTreeMap::new(),
            hidden: BTreeSet::new(),
            governors_known: true,
            range_known: false,
            unseen: false,
            is_boost: true,
        })
    }

    fn machine_wide(&mut self, root: &dyn Root) {
        let turbo_stays_off = rules::turbo_is_locked(&root);
        for (file, value) in
            [("intel_pstate/no_turbo", "0"), ("intel_pstate/max_perf_pct", "100"), ("cpufreq/boost", "1")]
        {
            let path = format!("{CPUS}/{file}");
            match text(root, &path) {
                Some(now) if now != value && !(file.ends_with("no_turbo") && turbo_stays_off) => {
                    self.range_known &= file.ends_with("max_perf_pct");
                    self.made.insert(path, value.to_owned());
                }
                _ => {}
            }
        }
    }

    /// A policy as its new driver makes it.
    fn policy(&mut self, now: &CpufreqPolicy, intel: bool, mode: &str) -> CpufreqPolicy {
        let active = mode == "active";
        let mut policy = now.clone();
        let driver = driver_in_mode(intel, active);
        let own = ["performance", "powersave"];
        policy.driver = Some(driver.to_owned());
        policy.governors = own.iter().filter(|_| active).map(|g| (*g).to_owned()).collect();
        // Which governor cpufreq starts with is the kernel's configuration.
        policy.governor = active.then(|| "powersave".to_owned());
        policy.limits_khz = policy.hardware_khz;
        let mut make = |file: &str, value: String| self.made.insert(format!("{}/{file}", now.path), value);
        make("scaling_driver", driver.to_owned());
        make("scaling_governor", policy.governor.clone().unwrap_or_default());
        make("scaling_available_governors", policy.governors.join(" "));
        if let Some((slowest, fastest)) = policy.hardware_khz {
            make("scaling_min_freq", slowest.to_string());
            make("scaling_max_freq", fastest.to_string());
        }
        if policy.boost.is_some() {
            make("boost", "1".to_owned());
        }
        let (preference, list) =
            ("energy_performance_preference", "energy_performance_available_preferences");
        match (intel, active) {
            (false, true) => {
                policy.epps = rules::PREFERENCES.iter().map(|p| p.0.to_owned()).collect();
                policy.epp = Some("balance_performance".to_owned());
                make(preference, "balance_performance".to_owned());
                make(list, policy.epps.join(" "));
            }
            (false, false) => {
                (policy.epp, policy.epps) = (None, Vec::new());
                self.hidden.extend([preference, list].map(|file| format!("{}/{file}", now.path)));
            }
            // Under the governor performance the preference was the governor's, and the one from before comes back.
            (true, _) if now.governor.as_deref() == Some("performance") && now.epp.is_some() => {
                make(preference, String::new());
            }
            (true, _) => {}
        }
        policy
    }
}
