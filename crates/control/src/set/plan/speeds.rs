//! Speeds: governors and their tunables, limits, one speed held, boost, the mode of the driver.

use super::planner::{CPUS, Planner};
use super::step::{PlanError, PlannedWrite, impossible, input, unknown};
use crate::set::target::Target;
use crate::set::transaction::Change;
use std::collections::{BTreeMap, BTreeSet};
use wattwise_figure::units::{Speed, share_of_khz, show_khz};
use wattwise_hw::rules;
use wattwise_hw::rules::AttributeView;
use wattwise_hw::states::cpufreq::{Cpufreq, CpufreqPolicy};
use wattwise_policy::speed::tunables::kernel_name;

impl Planner<'_> {
    pub(super) fn governor(&mut self, name: &str) -> Result<(), PlanError> {
        for policy in self.policies()? {
            if self.lists_governors() && !policy.governors.iter().any(|g| g == name) {
                return Err(unknown("--governor", name, &policy.governors, policy.name()));
            }
            self.write(
                format!("{}/scaling_governor", policy.path),
                format!("{} governor", policy.name()),
                name,
            )?;
        }
        Ok(())
    }

    /// Writes the end of the range that moves outwards first: neither may pass the other on the way.
    pub(super) fn limits(&mut self, min: Option<Speed>, max: Option<Speed>) -> Result<(), PlanError> {
        if let (Some(Speed::Percent(low)), Some(Speed::Percent(high))) = (min, max)
            && low > high
        {
            return Err(input(format!("--min {low}% is above --max {high}%; expected a range")));
        }
        let boosted = self.turns_boost_on() || self.coming.is_some_and(|c| !c.range_known);
        for policy in self.policies()? {
            let name = policy.name();
            if boosted {
                self.expect_boost(policy, max);
            }
            let now = |file: &str| {
                let text = self.overlay.text(&format!("{}/{file}", policy.path))?;
                text.parse::<u64>().ok()
            };
            let (Some(low), Some(high)) = (now("scaling_min_freq"), now("scaling_max_freq")) else {
                return Err(impossible(format!("{name} shows no limits of its speed")));
            };
            let resolve = |flag, speed: Option<Speed>, or| match speed {
                Some(speed) => resolve(policy, &self.inventory.cpufreq, flag, speed),
                None => Ok(or),
            };
            let (new_low, new_high) = (resolve("--min", min, low)?, resolve("--max", max, high)?);
            for (flag, khz) in [("--min", new_low), ("--max", new_high)] {
                if let Some((slowest, fastest)) = policy.hardware_khz
                    && !(slowest..=if boosted { u64::MAX } else { fastest }).contains(&khz)
                    && khz != low
                    && khz != high
                {
                    return Err(input(format!(
                        "{flag} {}: {name} runs from {} to {}; expected a speed within",
                        show_khz(khz),
                        show_khz(slowest),
                        show_khz(fastest)
                    )));
                }
            }
            if new_low > new_high {
                return Err(input(format!(
                    "--min {} is above {} {} of {name}; expected a range; give both ends",
                    show_khz(new_low),
                    if max.is_some() { "--max" } else { "the present maximum" },
                    show_khz(new_high),
                )));
            }
            self.say_share(policy, "--min", min, new_low);
            self.say_share(policy, "--max", max, new_high);
            let ends = [
                ("scaling_min_freq", "minimum", min, new_low),
                ("scaling_max_freq", "maximum", max, new_high),
            ];
            let order = if new_high >= low { [1, 0] } else { [0, 1] };
            for at in order {
                let (file, word, asked, khz) = ends[at];
                if asked.is_some() {
                    self.write(format!("{}/{file}", policy.path), format!("{name} {word}"), khz.to_string())?;
                }
            }
        }
        self.shares((min.is_some(), max.is_some()))
    }

    /// Says which speed a share came to, where the hardware has none that is exactly that.
    fn say_share(&mut self, policy: &CpufreqPolicy, flag: &str, asked: Option<Speed>, khz: u64) {
        let (Some(Speed::Percent(percent)), Some((_, fastest))) = (asked, policy.hardware_khz) else {
            return;
        };
        if (khz as f64 - fastest as f64 * percent / 100.0).abs() < 1.0 {
            return;
        }
        let note = format!(
            "{flag} {percent}% is {} here, not exactly {percent} % of {}",
            show_khz(khz),
            show_khz(fastest)
        );
        // Policies of one kind come to the same.
        if !self.plan.notes.contains(&note) {
            self.plan.notes.push(note);
        }
    }

    /// intel_pstate has limits for the whole machine beside those of each policy, in per cent of the highest speed. One that is
    /// inside what was asked for would hold in its place, and is lifted.
    pub(super) fn shares(&mut self, asked: (bool, bool)) -> Result<(), PlanError> {
        let ends = [
            (asked.1, "max_perf_pct", "highest share", "scaling_max_freq"),
            (asked.0, "min_perf_pct", "lowest share", "scaling_min_freq"),
        ];
        let policies = self.policies()?;
        for (_, file, what, own) in ends.into_iter().filter(|(asked, ..)| *asked) {
            let path = format!("{CPUS}/intel_pstate/{file}");
            let number =
                |path: &str| self.overlay.text(path).and_then(|text| text.trim().parse::<u64>().ok());
            let Some(percent) = number(&path) else { continue };
            let is_max = file == "max_perf_pct";
            // The lowest share that the driver takes is that of the hardware's lowest speed.
            let (mut holds, mut lifted) = (false, if is_max { 100 } else { percent });
            for policy in &policies {
                let Some((slowest, fastest)) = policy.hardware_khz.filter(|(_, fastest)| *fastest > 0) else {
                    continue;
                };
                let Some(khz) = number(&format!("{}/{own}", policy.path)) else { continue };
                let share = share_of_khz(fastest, percent.min(100) as f64).max(slowest);
                holds |= if is_max { share < khz } else { share > khz };
                lifted = if is_max { 100 } else { lifted.min(slowest * 100 / fastest) };
            }
            if !holds || lifted == percent {
                continue;
            }
            if policies.len() < self.inventory.cpufreq.policies().iter().filter(|p| !p.is_offline()).count() {
                self.plan.notes.push(format!(
                    "intel_pstate/{file} is {percent} for the whole machine and holds: without a choice of CPUs it is lifted"
                ));
                continue;
            }
            self.write(path, format!("intel_pstate {what}"), lifted.to_string())?;
        }
        Ok(())
    }

    /// Whether a step before turns boost on: then speeds can be had that the hardware's range does not show yet.
    pub(super) fn turns_boost_on(&self) -> bool {
        let on = |s: &PlannedWrite| match &s.change.target {
            Target::File(path) if path.ends_with("/boost") => s.change.value == "1",
            Target::File(path) if path.ends_with("/no_turbo") => s.change.value == "0",
            _ => false,
        };
        self.plan.steps.iter().any(|s| s.verdict.is_ok() && on(s))
    }

    /// The hardware's highest speed as it will be with boost: as the driver names it, else whatever is asked for.
    pub(super) fn expect_boost(&mut self, policy: &CpufreqPolicy, max: Option<Speed>) {
        let named = self.overlay.text(&format!("{}/amd_pstate_max_freq", policy.path));
        let asked = match max {
            Some(Speed::Khz(khz)) => policy.hardware_khz.map(|(_, fastest)| fastest.max(khz).to_string()),
            _ => None,
        };
        if let Some(fastest) = named.or(asked) {
            self.overlay.made.insert(format!("{}/cpuinfo_max_freq", policy.path), fastest);
        }
    }

    /// One speed held: the governor `userspace`, told that speed.
    pub(super) fn held_speed(&mut self, speed: Speed) -> Result<(), PlanError> {
        for policy in self.policies()? {
            let name = policy.name();
            if self.lists_governors() && !policy.governors.iter().any(|g| g == "userspace") {
                return Err(impossible(no_authority(policy, &self.inventory.cpufreq)));
            }
            let chosen = self.overlay.text(&format!("{}/scaling_governor", policy.path));
            let asked_other = self
                .plan
                .steps
                .iter()
                .any(|s| s.change.what == format!("{name} governor") && s.change.value != "userspace");
            if asked_other {
                return Err(input(format!(
                    "--freq holds one speed and needs the governor userspace, not {}; give one of the two",
                    chosen.unwrap_or_default()
                )));
            }
            let khz = resolve(policy, &self.inventory.cpufreq, "--freq", speed)?;
            let all: Vec<u64> = policy.levels_khz.iter().chain(&policy.boost_levels_khz).copied().collect();
            if !all.is_empty() && !all.contains(&khz) {
                let nearest = all.iter().copied().min_by_key(|l| l.abs_diff(khz)).unwrap_or(khz);
                let levels: Vec<String> = all.iter().map(|l| show_khz(*l)).collect();
                return Err(input(format!(
                    "--freq {} is no level of {name}; the nearest is {}; it has {}",
                    show_khz(khz),
                    show_khz(nearest),
                    levels.join(", ")
                )));
            }
            let limit = |file: &str| {
                self.overlay.text(&format!("{}/{file}", policy.path)).and_then(|t| t.parse::<u64>().ok())
            };
            if let (Some(low), Some(high)) = (limit("scaling_min_freq"), limit("scaling_max_freq"))
                && !(low..=high).contains(&khz)
            {
                return Err(input(format!(
                    "--freq {} is outside the limits of {name}, {} to {}; widen them with --min and --max",
                    show_khz(khz),
                    show_khz(low),
                    show_khz(high)
                )));
            }
            self.say_share(policy, "--freq", Some(speed), khz);
            self.write(format!("{}/scaling_governor", policy.path), format!("{name} governor"), "userspace")?;
            self.write(
                format!("{}/scaling_setspeed", policy.path),
                format!("{name} speed"),
                khz.to_string(),
            )?;
        }
        Ok(())
    }

    pub(super) fn boost(&mut self, on: bool) -> Result<(), PlanError> {
        let inventory = self.inventory;
        if let Some(boost) = &inventory.cpufreq.boost {
            if self.cpus.len() < inventory.topology.online.len() {
                self.plan.notes.push("boost is switched for the whole machine".to_owned());
            }
            return self.write(
                boost.path.clone(),
                "boost".to_owned(),
                if on != boost.inverted { "1" } else { "0" },
            );
        }
        let policies = self.policies()?;
        if policies.iter().all(|p| p.boost.is_none()) {
            return Err(impossible(
                "boost cannot be switched here: neither cpufreq/boost nor intel_pstate/no_turbo is there",
            ));
        }
        for policy in policies {
            self.write(
                format!("{}/boost", policy.path),
                format!("{} boost", policy.name()),
                if on { "1" } else { "0" },
            )?;
        }
        Ok(())
    }

    /// A tunable lies in the policy's folder, or in one for the whole machine; which of them is known once the governor
    /// is in force.
    pub(super) fn tunable(&mut self, name: &str, value: &str) -> Result<(), PlanError> {
        let mut known = BTreeSet::new();
        let mut paths = BTreeMap::new();
        let mut coming = Vec::new();
        for policy in self.policies()? {
            let setting = format!("{}/scaling_governor", policy.path);
            let governor = self.overlay.text(&setting).unwrap_or_default();
            // As `compare` names it, or as the kernel does.
            let name = kernel_name(&governor, name).unwrap_or(name);
            let folders = [
                (format!("{}/{governor}", policy.path), policy.name().to_owned()),
                (format!("{CPUS}/cpufreq/{governor}"), governor.clone()),
            ];
            let is_there = |folder: &str| self.overlay.root.list(folder).is_ok_and(|l| !l.is_empty());
            if self.overlay.made.contains_key(&setting) && !folders.iter().any(|(f, _)| is_there(f)) {
                known.extend(rules::tunables(&governor).map(str::to_owned));
                if known.contains(name) {
                    coming.push((folders, name.to_owned()));
                }
                continue;
            }
            for (folder, who) in folders {
                for file in self.overlay.list(&folder) {
                    if file == name {
                        paths.insert(format!("{folder}/{file}"), format!("{who} {name}"));
                    }
                    known.insert(file);
                }
            }
        }
        if paths.is_empty() && coming.is_empty() {
            let known: Vec<String> = known.into_iter().collect();
            return Err(match known.is_empty() {
                true => impossible("--tunable: the governor has none; give one that has with --governor"),
                false => unknown("--tunable", name, &known, "the governor"),
            });
        }
        for (path, what) in paths {
            self.write(path, what, value)?;
        }
        for ([(own, who), (common, whose)], name) in coming {
            let path = format!("{own}/{name}");
            self.overlay.coming.insert(own);
            let verdict = rules::judge(&self.overlay, &path, value);
            if let Ok(stored) = &verdict {
                self.overlay.made.insert(path.clone(), stored.clone());
            }
            let elsewhere = (Target::File(format!("{common}/{name}")), format!("{whose} {name}"));
            let change = Change {
                target: Target::File(path),
                what: format!("{who} {name}"),
                value: value.to_owned(),
                elsewhere: Some(elsewhere),
            };
            let (old, judged_later) = ("its default".to_owned(), false);
            self.plan.steps.push(PlannedWrite { change, old, verdict, judged_later });
        }
        Ok(())
    }

    pub(super) fn driver_mode(&mut self, mode: &str) -> Result<(), PlanError> {
        let Some(driver) = &self.inventory.cpufreq.driver else {
            return Err(impossible("--driver-mode: neither intel_pstate nor amd_pstate is loaded"));
        };
        let modes: &[&str] = match driver.name {
            "intel_pstate" => &["active", "passive", "off"],
            _ => &["active", "passive", "guided", "disable"],
        };
        if !modes.contains(&mode) {
            let modes: Vec<String> = modes.iter().map(|m| (*m).to_owned()).collect();
            return Err(unknown("--driver-mode", mode, &modes, driver.name));
        }
        let policies = self.inventory.cpufreq.policies().iter();
        let unread: Vec<&str> = policies.filter(|p| p.affected.is_empty()).map(CpufreqPolicy::name).collect();
        if !unread.is_empty() && driver.mode != mode {
            self.plan.notes.push(format!(
                "every CPU of {} is offline: what is set there cannot be read, is reset by the mode and does not come back",
                unread.join(", ")
            ));
        }
        self.write(format!("{CPUS}/{}/status", driver.name), format!("{} mode", driver.name), mode)
    }
}

/// A speed in kHz for one policy. Percentages go to the nearest level where there is a table.
fn resolve(policy: &CpufreqPolicy, cpufreq: &Cpufreq, flag: &str, speed: Speed) -> Result<u64, PlanError> {
    let missing = |what: &str| impossible(format!("{flag}: {} does not tell its {what}", policy.name()));
    let (slowest, fastest) = policy.hardware_khz.ok_or_else(|| missing("range"))?;
    let top_level = policy.levels_khz.last().copied();
    match speed {
        Speed::Khz(khz) => Ok(khz),
        Speed::Min => Ok(slowest),
        // acpi-cpufreq has no level for the boost above its highest: that one brings it.
        Speed::Max => {
            Ok(policy.levels_khz.iter().chain(&policy.boost_levels_khz).copied().max().unwrap_or(fastest))
        }
        Speed::Boost => Ok(policy.boost_levels_khz.last().copied().unwrap_or(fastest)),
        Speed::Base => match (policy.base_khz, top_level, &cpufreq.boost) {
            (Some(khz), ..) => Ok(khz),
            // A table without boost levels of its own, and no boost to be had: its top is the base.
            (None, Some(top), _) if !policy.boost_levels_khz.is_empty() => Ok(top),
            (None, Some(top), None) if policy.boost.is_none() => Ok(top),
            // acpi-cpufreq shows boost as a level 1 MHz above the base.
            (None, Some(top), Some(_)) if top % 10_000 == 1_000 && policy.levels_khz.len() > 1 => {
                Ok(policy.levels_khz[policy.levels_khz.len() - 2])
            }
            _ => Err(missing("speed without boost")),
        },
        Speed::Percent(percent) => {
            let levels: Vec<u64> =
                policy.levels_khz.iter().chain(&policy.boost_levels_khz).copied().collect();
            // A limit goes to the nearest level inside it, as the model has it; a speed to the nearest of all.
            let khz = share_of_khz(fastest, percent);
            let found = match flag {
                "--max" => {
                    levels.iter().copied().filter(|l| *l <= khz).max().or(levels.iter().copied().min())
                }
                "--min" => {
                    levels.iter().copied().filter(|l| *l >= khz).min().or(levels.iter().copied().max())
                }
                _ => {
                    let khz = (fastest as f64 * percent / 100.0).round() as u64;
                    levels.iter().copied().min_by_key(|l| l.abs_diff(khz))
                }
            };
            Ok(found.unwrap_or(khz.max(slowest).min(fastest)))
        }
    }
}

fn no_authority(policy: &CpufreqPolicy, cpufreq: &Cpufreq) -> String {
    match &cpufreq.driver {
        Some(driver) if driver.mode == "active" => format!(
            "--freq: {} in active mode lets the hardware choose the speed; bound it with --min and --max, or give --driver-mode passive with it",
            driver.name
        ),
        _ => format!(
            "--freq: {} has no governor userspace (it has {}); load cpufreq_userspace, or bound the speed with --min and --max",
            policy.name(),
            policy.governors.join(", ")
        ),
    }
}
