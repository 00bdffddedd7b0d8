//! One write after the other, each judged on top of those before it.

use super::overlay::Overlay;
use super::step::{ChangePlan, PlanError, PlannedWrite, impossible, unknown};
use crate::set::inventory::Inventory;
use crate::set::mode::Coming;
use crate::set::target::Target;
use crate::set::transaction::Change;
use wattwise_figure::setting::Plain;
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::msr::{MsrDevice, Register, RegisterError, Registers, Wake};
use wattwise_hw::probe::Probed;
use wattwise_hw::rules;
use wattwise_hw::rules::AttributeView;
use wattwise_hw::states::cpufreq::CpufreqPolicy;

pub(super) const CPUS: &str = "sys/devices/system/cpu";

pub(super) struct Planner<'r> {
    pub(super) overlay: Overlay<'r>,
    pub(super) inventory: &'r Inventory,
    pub(super) cpus: &'r CpuSet,
    pub(super) plan: ChangePlan,
    /// The mode of the driver that the steps from here on are for, if it is not in force.
    pub(super) coming: Option<&'r Coming>,
}

impl<'r> Planner<'r> {
    /// Adds a write of an attribute, judged on top of those before it. A value that stands already is no
    /// write.
    pub(super) fn write(
        &mut self,
        path: String,
        what: String,
        value: impl Into<String>,
    ) -> Result<(), PlanError> {
        let value = value.into();
        let old = match Target::File(path.clone()).read(self.overlay.root) {
            Ok(old) => old,
            Err(_) if self.comes_with_the_mode(&path) => "its default".to_owned(),
            Err(e) => {
                let why = wattwise_hw::probe::why(&e, &path, self.overlay.root);
                return Err(impossible(format!("{what}: {why}")));
            }
        };
        let current = self.overlay.made.get(&path).unwrap_or(&old);
        let judged_later = self.is_judged_later(&path);
        // A limit of the range with boost may come to the present one by chance, as long as that range is not shown.
        let may_differ = judged_later && self.coming.is_some_and(|c| c.is_boost);
        if *current == value && !may_differ {
            return Ok(());
        }
        let verdict = match judged_later {
            true => Ok(value.clone()),
            false => rules::judge(&self.overlay, &path, &value),
        };
        if let Ok(stored) = &verdict {
            self.overlay.made.insert(path.clone(), stored.clone());
        }
        self.plan.steps.push(PlannedWrite {
            change: Change { target: Target::File(path), what, value, elsewhere: None },
            old,
            verdict,
            judged_later,
        });
        Ok(())
    }

    /// One attribute of the machine.
    pub(super) fn plain(&mut self, of: &Plain, value: &str) -> Result<(), PlanError> {
        let listed = of.choices.map(|path| self.overlay.text(path).unwrap_or_default());
        let missing = match &listed {
            Some(list) => list.is_empty(),
            None => self.overlay.text(of.path).is_none(),
        };
        if missing {
            return Err(impossible(of.missing));
        }
        let choices: Option<Vec<String>> =
            listed.map(|list| list.split_whitespace().map(str::to_owned).collect());
        if let Some(choices) = choices.filter(|all| !all.iter().any(|choice| choice == value)) {
            return Err(unknown(&format!("--{}", of.name), value, &choices, of.whose));
        }
        self.write(of.path.to_owned(), of.what.to_owned(), value)
    }

    /// The policies that drive the chosen CPUs, or why there are none.
    pub(super) fn policies(&mut self) -> Result<Vec<&'r CpufreqPolicy>, PlanError> {
        let inventory = self.inventory;
        let Probed { value: Some(policies), .. } = &inventory.cpufreq.policies else {
            return Err(impossible(format!(
                "this machine's speed cannot be set: {}",
                inventory.cpufreq.policies.why_not()
            )));
        };
        let chosen: Vec<&CpufreqPolicy> =
            policies.iter().filter(|p| !p.affected.and(self.cpus).is_empty()).collect();
        for policy in &chosen {
            let more = policy.affected.without(self.cpus);
            if !more.is_empty() {
                let note = format!("{} also drives CPU {more}: its CPUs share one speed", policy.name());
                if !self.plan.notes.contains(&note) {
                    self.plan.notes.push(note);
                }
            }
        }
        match chosen.is_empty() {
            true => Err(impossible(format!("no cpufreq policy drives CPU {}", self.cpus))),
            false => Ok(chosen),
        }
    }

    /// Adds a change of some bits of a register, checked against the register's write mask.
    pub(super) fn register(
        &mut self,
        cpu: u32,
        facts: &CpuFacts,
        name: &str,
        what: String,
        change: impl FnOnce(&Register, u64) -> Result<u64, RegisterError>,
    ) -> Result<(), PlanError> {
        let refuse = |e: &dyn std::fmt::Display| impossible(format!("{what}: {e}"));
        let registers = Registers::for_cpu(facts);
        let register = registers.get(name).map_err(|e| refuse(&e))?;
        let mut device = MsrDevice::for_reading(self.overlay.root, registers.clone());
        let old = device.read(cpu, register, Wake::Yes).map_err(|e| refuse(&e))?;
        let new = change(register, old).map_err(|e| refuse(&e))?;
        registers.check_write(register.address, old, new).map_err(|e| refuse(&e))?;
        // Only the bits that change are ours, now and when they are put back.
        let mask = old ^ new;
        if mask == 0 {
            return Ok(());
        }
        let target = Target::Register { cpu, address: register.address, mask };
        let shown = |raw: u64| format!("{:#x}", raw & mask);
        self.plan.steps.push(PlannedWrite {
            change: Change { target, what, value: shown(new), elsewhere: None },
            old: shown(old),
            verdict: Ok(shown(new)),
            judged_later: false,
        });
        Ok(())
    }

    pub(super) fn comes_with_the_mode(&self, path: &str) -> bool {
        self.coming.is_some_and(|c| c.made.contains_key(path))
    }

    /// Whether nothing that is there now tells what the kernel will do with a write.
    pub(super) fn is_judged_later(&self, path: &str) -> bool {
        let Some(coming) = self.coming else { return false };
        match path.rsplit('/').next() {
            Some("scaling_governor") => !coming.governors_known,
            Some("scaling_min_freq" | "scaling_max_freq" | "scaling_setspeed") => !coming.range_known,
            _ => false,
        }
    }

    /// Whether the governors of these policies are known: those of a mode to come may not be.
    pub(super) fn lists_governors(&self) -> bool {
        self.coming.is_none_or(|c| c.governors_known)
    }
}
