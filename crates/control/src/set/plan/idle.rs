//! Idle: C-states, the limit of the latency.

use super::planner::{CPUS, Planner};
use super::step::{PlanError, impossible, unknown};
use wattwise_figure::units::show_ns;

impl Planner<'_> {
    pub(super) fn cstate(&mut self, name: &str, on: bool) -> Result<(), PlanError> {
        let inventory = self.inventory;
        let mut found = false;
        for cpu in inventory.cpuidle.cpus().iter().filter(|c| self.cpus.contains(c.cpu)) {
            for state in cpu.states.iter().filter(|s| s.is_called(name)) {
                found = true;
                let path = format!("{CPUS}/cpu{}/cpuidle/state{}/disable", cpu.cpu, state.index);
                self.write(path, format!("cpu{} {}", cpu.cpu, state.name), if on { "0" } else { "1" })?;
            }
        }
        if found {
            return Ok(());
        }
        match inventory.cpuidle.cpus().first() {
            None => Err(impossible(format!(
                "no C-state can be switched here: {}",
                inventory.cpuidle.cpus.why_not()
            ))),
            Some(cpu) => {
                let names: Vec<String> = cpu.states.iter().map(|s| s.name.clone()).collect();
                Err(no_state(name, &names))
            }
        }
    }

    pub(super) fn latency(&mut self, limit_ns: Option<u64>) -> Result<(), PlanError> {
        // The kernel's file: "n/a" allows no delay at all, 0 any.
        let value = match limit_ns {
            None => "0".to_owned(),
            Some(ns) if ns < 1000 => "n/a".to_owned(),
            Some(ns) => (ns / 1000).to_string(),
        };
        if let Some(ns) = limit_ns
            && ns >= 1000
            && let Some(cpu) = self.inventory.cpuidle.cpus().iter().find(|c| self.cpus.contains(c.cpu))
        {
            let allowed: Vec<&str> =
                cpu.states.iter().filter(|s| s.latency_us * 1000 <= ns).map(|s| s.name.as_str()).collect();
            self.plan.notes.push(format!(
                "within {} a CPU can wake from {}",
                show_ns(ns),
                allowed.join(", ")
            ));
        }
        let cpus = self.cpus;
        for cpu in cpus.iter() {
            let path = format!("{CPUS}/cpu{cpu}/power/pm_qos_resume_latency_us");
            self.write(path, format!("cpu{cpu} latency limit"), value.clone())?;
        }
        Ok(())
    }
}

/// A C-state that others have is missing here; any other name is a slip of the pen.
fn no_state(name: &str, names: &[String]) -> PlanError {
    let is_state = name.strip_prefix('C').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    match is_state {
        true => PlanError::Impossible(format!(
            "--cstate '{name}': these CPUs have no such C-state; they have {}",
            names.join(", ")
        )),
        false => unknown("--cstate", name, names, "these CPUs"),
    }
}
