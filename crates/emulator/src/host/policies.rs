//! Limits and speeds of policies, from what was asked for, the driver, the governor and the load.

use super::change::UnderWay;
use super::parts::HostPolicy;
use super::{CPU, Host};
use crate::tree::NodeKind;
use std::borrow::Cow;
use wattwise_hw::rules::{self, AttributeView, Relation};

/// What is set of a policy.
pub(super) struct PolicySetting {
    /// Levels that may be used now.
    levels: Vec<u32>,
    driver: String,
    governor: String,
}

impl Host {
    /// Lists, limits and speeds from what is set.
    pub(crate) fn refresh_all(&mut self) {
        self.refresh_lists(None);
        for i in 0..self.policies.len() {
            self.refresh_policy(i);
        }
    }

    /// What is set of a policy.
    pub(super) fn policy_setting(&self, policy: &HostPolicy) -> PolicySetting {
        let numbers = |name: &str| {
            let text = self.policy_text(policy, name);
            text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()
        };
        let mut levels = numbers("scaling_available_frequencies");
        if !levels.is_empty() {
            levels.extend(numbers("scaling_boost_frequencies"));
            levels.sort_unstable();
            levels.dedup();
        }
        let text = |name| self.policy_text(policy, name).into_owned();
        PolicySetting { levels, driver: text("scaling_driver"), governor: text("scaling_governor") }
    }

    /// What an attribute of a policy holds; empty where there is none.
    pub(super) fn policy_text(&self, policy: &HostPolicy, name: &str) -> Cow<'_, str> {
        let id = self.tree.find(&policy.folder, true).and_then(|folder| self.tree.child(folder, name));
        match id.and_then(|id| self.tree.file(id)).map(|f| &f.kind) {
            Some(NodeKind::Text(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text.trim()),
                Err(_) => Cow::Owned(String::from_utf8_lossy(bytes).trim().to_owned()),
            },
            _ => Cow::Borrowed(""),
        }
    }

    /// What the hardware may do now: turbo and boost switches count.
    pub(super) fn hardware_limits(&self, policy: &HostPolicy, driver: &str) -> (u32, u32) {
        let off = |path: &str, off: &str| self.text(path).is_some_and(|v| v == off);
        let no_turbo = driver.starts_with("intel_") && off(&format!("{CPU}/intel_pstate/no_turbo"), "1");
        // acpi-cpufreq's boost is the processor's own: its table and limits stay.
        let no_boost = driver != "acpi-cpufreq"
            && (off(&format!("{CPU}/cpufreq/boost"), "0") || self.own_boost_off(policy));
        let max = if no_turbo || no_boost { policy.nominal } else { policy.hw.1 };
        (policy.hw.0.min(max), max)
    }

    pub(super) fn own_boost_off(&self, policy: &HostPolicy) -> bool {
        let id = self.tree.find(&format!("{}/boost", policy.folder), true);
        matches!(id.and_then(|id| self.tree.file(id)).map(|f| &f.kind), Some(NodeKind::Text(t)) if t == b"0\n")
    }

    /// Limits and speed of a policy from what was asked and is set.
    pub(crate) fn refresh_policy(&mut self, index: usize) {
        let Some(policy) = self.policies.get(index).cloned() else { return };
        if policy.aside.is_some() || self.is_inactive(&policy) {
            return;
        }
        let PolicySetting { levels, driver, governor } = self.policy_setting(&policy);
        let hw = self.hardware_limits(&policy, &driver);
        let (min, max) = rules::limits(&levels, hw, policy.asked, self.release);
        let folder = &policy.folder;
        // Since 6.10 intel_pstate shows the lower limit here too; cpufreq's own boost always did.
        if !driver.starts_with("intel_") || self.release >= (6, 10) {
            self.update(&format!("{folder}/cpuinfo_max_freq"), hw.1);
        }
        self.update(&format!("{folder}/scaling_min_freq"), min);
        self.update(&format!("{folder}/scaling_max_freq"), max);
        let speed = self.speed_of(&policy, &levels, &driver, &governor, (min, max));
        self.change_speed(index, speed);
        if governor == "userspace" {
            self.update(&format!("{folder}/scaling_setspeed"), speed);
        } else {
            self.update(&format!("{folder}/scaling_setspeed"), "<unsupported>");
        }
    }

    /// The speed that driver and governor come to for the load there is.
    pub(super) fn speed_of(
        &self,
        policy: &HostPolicy,
        levels: &[u32],
        driver: &str,
        governor: &str,
        limits: (u32, u32),
    ) -> u32 {
        let (min, mut max) = limits;
        let mut low = min;
        if driver.starts_with("intel_") {
            let share = |name: &str, or: u64| {
                let pct = self.number(&format!("{CPU}/intel_pstate/{name}")).unwrap_or(or).min(100);
                (u64::from(policy.hw.1) * pct / 100) as u32
            };
            max = max.min(share("max_perf_pct", 100)).max(min);
            low = low.max(share("min_perf_pct", 0)).min(max);
        }
        let load = self
            .cpus
            .iter()
            .filter(|c| c.online && policy.related.contains(&c.id))
            .map(|c| c.load_permille)
            .max()
            .unwrap_or(0);
        let part = |of: u32, permille: u64| (u64::from(of) * permille / 1000) as u32;
        let step = rules::driver_step(driver);
        let (wanted, relation) = match governor {
            "performance" => (max, Relation::AtMost),
            "userspace" => (policy.setspeed, Relation::AtLeast),
            "ondemand" if load > 950 => (max, Relation::AtMost),
            "ondemand" => (low + part(max - low, u64::from(load)), Relation::Closest),
            "conservative" => match load {
                801.. => (max, Relation::AtMost),
                0..200 => (low, Relation::AtLeast),
                _ => (policy.cur, Relation::Closest),
            },
            "schedutil" => (part(policy.hw.1, u64::from(load) * 5 / 4), Relation::AtLeast),
            // intel_pstate and amd-pstate: the hardware's choice, in proportion to the load.
            "powersave" if rules::is_active_driver(driver) => {
                (low + part(max - low, u64::from(load)), Relation::AtLeast)
            }
            "powersave" => (low, Relation::AtLeast),
            _ => (policy.cur, Relation::Closest),
        };
        rules::resolve(levels, step, low, max, wanted, relation)
    }

    pub(super) fn change_speed(&mut self, index: usize, khz: u32) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        if policy.cur == khz {
            return;
        }
        let at = |khz: u32| policy.residency.iter().position(|r| r.0 == khz);
        if let (Some(from), Some(to)) = (at(policy.cur), at(khz)) {
            let cell = from * policy.residency.len() + to;
            if let Some(n) = policy.matrix.get_mut(cell) {
                *n = n.wrapping_add(1);
            }
            policy.transitions = policy.transitions.wrapping_add(1);
        }
        policy.under_way = UnderWay::begin(&self.physics.changes, policy.cur, khz, self.now_ns);
        policy.cur = khz;
    }

    /// The speed at which a policy's first CPU runs.
    pub(super) fn real_khz(&self, policy: &HostPolicy) -> u32 {
        let first = self.cpus.iter().position(|c| c.online && policy.related.contains(&c.id));
        let hardware = self.truth.is_some() || self.ceiling_khz.is_some();
        first.filter(|_| hardware).map_or_else(
            || policy.under_way.and_then(|change| change.still(self.now_ns)).unwrap_or(policy.cur),
            |index| self.granted_khz(index),
        )
    }
}
