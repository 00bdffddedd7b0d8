//! What follows from the steps and is put back with them.

use super::planner::{CPUS, Planner};
use crate::set::mode::RESET;
use crate::set::target::Target;
use crate::set::transaction::Change;
use std::collections::BTreeSet;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::text;
use wattwise_hw::rules;

impl Planner<'_> {
    /// What follows from the steps and must come back with them: a governor's change touches the held speed
    /// and the preference, boost the limits, hotplug and a driver's mode all of a policy.
    pub(super) fn beside(&mut self) {
        let mut policies: BTreeSet<&str> = BTreeSet::new();
        let mut cpus = CpuSet::new();
        for step in &self.plan.steps {
            let Target::File(path) = &step.change.target else { continue };
            let wide = ["cpufreq/boost", "no_turbo", "_pstate/status", "max_perf_pct", "min_perf_pct"];
            let hotplug =
                path.strip_suffix("/online").and_then(|p| p.rsplit("/cpu").next()?.parse::<u32>().ok());
            cpus.extend(hotplug);
            for policy in self.inventory.cpufreq.policies() {
                let own = path.starts_with(&format!("{}/", policy.path));
                let unplugged =
                    hotplug.is_some_and(|cpu| policy.related.contains(cpu) || policy.affected.contains(cpu));
                if own || unplugged || wide.iter().any(|w| path.ends_with(w)) {
                    policies.insert(&policy.path);
                }
            }
        }
        let mut beside = Vec::new();
        let mut watch = |path: String, what: String| {
            // Only what can be written back: `<unsupported>` is no speed.
            if let Some(value) = text(self.overlay.root, &path).filter(|v| !v.starts_with('<')) {
                beside.push(Change { target: Target::File(path), what, value, elsewhere: None });
            }
        };
        if self.plan.steps.iter().any(|s| s.change.target.path().ends_with("_pstate/status")) {
            for (file, what) in RESET {
                watch(format!("{CPUS}/{file}"), what.to_owned());
            }
        }
        for path in policies {
            // A governor's tunables go with it, and come back with their defaults.
            let governor = text(self.overlay.root, &format!("{path}/scaling_governor")).unwrap_or_default();
            for folder in [format!("{path}/{governor}"), format!("{CPUS}/cpufreq/{governor}")] {
                for file in rules::tunables(&governor) {
                    watch(format!("{folder}/{file}"), format!("{governor} {file}"));
                }
            }
            let name = path.strip_suffix("/cpufreq").unwrap_or(path).rsplit('/').next().unwrap_or(path);
            for (file, word) in [
                ("boost", "boost"),
                ("scaling_governor", "governor"),
                ("scaling_min_freq", "minimum"),
                ("scaling_max_freq", "maximum"),
                ("scaling_setspeed", "speed"),
                ("energy_performance_preference", "preference"),
            ] {
                watch(format!("{path}/{file}"), format!("{name} {word}"));
            }
        }
        for cpu in cpus.iter() {
            watch(
                format!("{CPUS}/cpu{cpu}/power/pm_qos_resume_latency_us"),
                format!("cpu{cpu} latency limit"),
            );
            watch(format!("{CPUS}/cpu{cpu}/power/energy_perf_bias"), format!("cpu{cpu} bias"));
            for state in self.inventory.cpuidle.cpus().iter().filter(|c| c.cpu == cpu).flat_map(|c| &c.states)
            {
                let path = format!("{CPUS}/cpu{cpu}/cpuidle/state{}/disable", state.index);
                watch(path, format!("cpu{cpu} {}", state.name));
            }
        }
        self.plan.beside = beside;
    }
}
