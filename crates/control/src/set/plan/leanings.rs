//! What hardware leans to: preference and bias.

use super::planner::{CPUS, Planner};
use super::step::{PlanError, impossible, unknown};
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::root::text;
use wattwise_hw::rules;

impl Planner<'_> {
    pub(super) fn preference(&mut self, value: &str) -> Result<(), PlanError> {
        for policy in self.policies()? {
            if policy.epp.is_none() {
                return Err(impossible(format!(
                    "{} has no energy-performance preference: driver {} keeps none",
                    policy.name(),
                    policy.driver.as_deref().unwrap_or("(unknown)")
                )));
            }
            // As they are under the governor that the plan has set by now: drivers narrow the list with it. A word that
            // the kernel knows is left to its rules, which say why not.
            let raw = value.parse::<u8>().is_ok();
            let epps = rules::preferences(&self.overlay, &policy.path);
            let known = rules::PREFERENCES.iter().any(|(word, _)| *word == value) || value == "default";
            if !raw && !known && !epps.iter().any(|e| e == value) {
                return Err(unknown("--epp", value, &epps, policy.name()));
            }
            self.write(
                format!("{}/energy_performance_preference", policy.path),
                format!("{} preference", policy.name()),
                value,
            )?;
        }
        Ok(())
    }

    pub(super) fn bias(&mut self, value: &str) -> Result<(), PlanError> {
        // The kernel's words, with the numbers that it stores for them.
        const WORDS: [(&str, &str); 5] = [
            ("performance", "0"),
            ("balance-performance", "4"),
            ("normal", "6"),
            ("balance-power", "8"),
            ("power", "15"),
        ];
        let number = WORDS.iter().find(|(word, _)| *word == value).map_or(value, |(_, number)| number);
        if !number.parse::<u8>().is_ok_and(|n| n <= 15) {
            let words: Vec<String> = WORDS.iter().map(|(w, _)| (*w).to_owned()).collect();
            return Err(unknown("--epb", value, &words, "the bias (or 0 to 15)"));
        }
        let cpus = self.cpus;
        for cpu in cpus.iter() {
            let path = format!("{CPUS}/cpu{cpu}/power/energy_perf_bias");
            if text(self.overlay.root, &path).is_none() {
                // The kernel hides it: its register is the next mechanism in order.
                let facts = CpuFacts::read(self.overlay.root, cpu).map_err(|e| {
                    impossible(format!("--epb: CPU {cpu}: no file power/energy_perf_bias, and {e}"))
                })?;
                let bias = number.parse::<u64>().unwrap_or_default();
                let what = format!("cpu{cpu} bias (no file power/energy_perf_bias)");
                self.register(cpu, &facts, "IA32_ENERGY_PERF_BIAS", what, |r, raw| {
                    r.field("bias")?.set(raw, bias)
                })?;
                continue;
            }
            self.write(path, format!("cpu{cpu} bias"), number)?;
        }
        Ok(())
    }
}
