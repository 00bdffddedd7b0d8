//! Power limits, the uncore's speed, and the memory's clock.

use super::planner::Planner;
use super::step::{PlanError, impossible, input, unknown};
use std::collections::BTreeSet;
use wattwise_figure::units::{Speed, show_khz, show_uw};
use wattwise_hw::rules;
use wattwise_hw::states::devfreq;
use wattwise_hw::states::power;
use wattwise_hw::states::power::{Limit, Zone};
use wattwise_policy::{Settings, dram};

impl Planner<'_> {
    pub(super) fn power_limit(
        &mut self,
        zone: Option<&str>,
        constraint: Option<&str>,
        power_uw: u64,
    ) -> Result<(), PlanError> {
        let zones = power::zones(self.overlay.root);
        let Some(top) = &zones.value else {
            return Err(impossible(format!("no power limit can be set here: {}", zones.why_not())));
        };
        let wanted = zone.unwrap_or("package");
        let twins = zones_meant(top, wanted);
        if twins.is_empty() {
            let names: Vec<String> = top.iter().flat_map(Zone::walk).map(|z| z.name.clone()).collect();
            return Err(unknown("--rapl", wanted, &names, "this machine"));
        }
        if power_uw > rules::HIGHEST_LIMIT_UW {
            return Err(input(format!(
                "--rapl {}: expected at most {}, the most that a limit's register holds",
                show_uw(power_uw),
                show_uw(rules::HIGHEST_LIMIT_UW)
            )));
        }
        for twins in twins {
            self.limit_of_zone(&twins, constraint, power_uw)?;
        }
        Ok(())
    }

    /// Limits one zone, shown by one door or by several: the lowest of their limits is in force, so that one is set, and
    /// those that would be lower then. Limits that are off stay as they are, unless there is no other.
    pub(super) fn limit_of_zone(
        &mut self,
        twins: &[&Zone],
        constraint: Option<&str>,
        power_uw: u64,
    ) -> Result<(), PlanError> {
        let first = twins[0];
        let limits: Vec<(&Zone, &Limit)> =
            twins.iter().filter_map(|z| Some((*z, z.limit(constraint)?))).collect();
        let Some((_, limit)) = limits.first() else {
            let names: Vec<String> = first.limits.iter().map(|l| l.name.clone()).collect();
            return Err(match constraint {
                Some(name) if !names.is_empty() => unknown("--rapl", name, &names, &first.name),
                _ => impossible(format!("--rapl: {} has no limit that can be set", first.name)),
            });
        };
        let name = limit.name.clone();
        let mut limits: Vec<(&Zone, &Limit)> = limits.into_iter().filter(|(_, l)| l.name == name).collect();
        limits.sort_by_key(|(z, _)| z.holds_uw(&name).unwrap_or(u64::MAX));
        if let [(ruler, _), rest @ ..] = limits.as_slice()
            && !rest.is_empty()
        {
            self.plan.notes.push(twins_note(&name, ruler, rest));
        }
        for (at, (zone, limit)) in limits.iter().enumerate() {
            if at > 0 && zone.holds_uw(&name).is_none_or(|uw| uw >= power_uw) {
                continue;
            }
            if let Some(most) = limit.most_uw.filter(|most| *most > 0 && power_uw > *most) {
                self.plan.notes.push(format!(
                    "{} is above the {} that {} names as its highest (max_power_uw): the kernel takes it, the processor may not use it",
                    show_uw(power_uw), show_uw(most), zone.name
                ));
            }
            if zone.enabled == Some(false) {
                self.plan.notes.push(format!("the limits of {} are not enforced (enabled is 0)", zone.name));
            }
            let door = if limits.len() > 1 { format!(" ({})", zone.door) } else { String::new() };
            self.write(
                format!("{}/constraint_{}_power_limit_uw", zone.path, limit.index),
                format!("{}{door} {name} limit", zone.name),
                power_uw.to_string(),
            )?;
        }
        Ok(())
    }

    pub(super) fn uncore(&mut self, min: Option<Speed>, max: Option<Speed>) -> Result<(), PlanError> {
        let uncores = power::uncores(self.overlay.root);
        let Some(found) = &uncores.value else {
            return Err(impossible(format!("the uncore's speed cannot be set here: {}", uncores.why_not())));
        };
        for uncore in found {
            let (Some((low, high)), Some((slowest, fastest))) =
                (uncore.limits_khz, uncore.initial_khz.or(uncore.limits_khz))
            else {
                return Err(impossible(format!("{} shows no limits", uncore.name)));
            };
            let end = |flag: &str, speed: Option<Speed>, or: u64| -> Result<u64, PlanError> {
                let khz = match speed {
                    None => return Ok(or),
                    Some(Speed::Khz(khz)) => khz,
                    Some(Speed::Min) => slowest,
                    Some(Speed::Max | Speed::Boost | Speed::Base) => fastest,
                    Some(Speed::Percent(percent)) => {
                        (fastest as f64 * percent / 100e5).round() as u64 * 100_000
                    }
                };
                match (slowest..=fastest).contains(&khz) {
                    true => Ok(khz),
                    false => Err(input(format!(
                        "{flag} {}: {} runs from {} to {}",
                        show_khz(khz),
                        uncore.name,
                        show_khz(slowest),
                        show_khz(fastest)
                    ))),
                }
            };
            let (new_low, new_high) = (end("--uncore-min", min, low)?, end("--uncore-max", max, high)?);
            if new_low > new_high {
                return Err(input(format!(
                    "--uncore-min {} is above the maximum {}; give both ends",
                    show_khz(new_low),
                    show_khz(new_high)
                )));
            }
            let mut ends = [("max_freq_khz", "maximum", new_high), ("min_freq_khz", "minimum", new_low)];
            if new_high < low {
                ends.reverse();
            }
            for (file, word, khz) in ends {
                self.write(
                    format!("{}/{file}", uncore.path),
                    format!("{} {word}", uncore.name),
                    khz.to_string(),
                )?;
            }
        }
        Ok(())
    }
}

impl Planner<'_> {
    /// The governor of every memory controller, and its thresholds where they are given.
    pub(super) fn dram(
        &mut self,
        governor: &str,
        up: Option<u32>,
        down: Option<u32>,
    ) -> Result<(), PlanError> {
        let found = devfreq::memory_controllers(self.overlay.root);
        let Some(memories) = &found.value else {
            return Err(impossible(format!(
                "--dram: the memory's clock cannot be set here: {}",
                found.why_not()
            )));
        };
        for memory in memories {
            if !memory.governors.iter().any(|g| g == governor) {
                return Err(unknown("--dram", governor, &memory.governors, &memory.name));
            }
            let (new_up, new_down) = (up.or(memory.up_percent), down.or(memory.down_percent));
            if let (Some(up), Some(down)) = (new_up, new_down)
                && down > up
                && dram::find(governor).is_none_or(|known| !known.params.is_empty())
            {
                return Err(input(format!(
                    "--dram {governor}: down={down} is above up={up}, with which the clock would never change"
                )));
            }
            let path = &memory.path;
            self.write(format!("{path}/governor"), format!("{} governor", memory.name), governor)?;
            for (file, word, percent, shown) in [
                ("upthreshold", "up", up, memory.up_percent),
                ("downdifferential", "down", down, memory.down_percent),
            ] {
                match (percent, shown) {
                    (Some(percent), Some(_)) => {
                        self.write(
                            format!("{path}/{file}"),
                            format!("{} {word}", memory.name),
                            percent.to_string(),
                        )?;
                    }
                    // Mainline's simple_ondemand has its own thresholds and shows none.
                    (Some(percent), None) if usual(governor, word) == Some(percent) => {}
                    (Some(_), None) => {
                        return Err(impossible(format!(
                            "--dram {governor}:{word}=..: the kernel shows no thresholds of {}; expected the governor alone",
                            memory.name
                        )));
                    }
                    (None, _) => {}
                }
            }
        }
        Ok(())
    }
}

/// A governor's threshold where nothing else is said.
fn usual(governor: &str, word: &str) -> Option<u32> {
    let params = dram::find(governor)?.params;
    let defaults = Settings::defaults(params);
    params.iter().any(|p| p.name == word).then(|| defaults.number(word) as u32)
}

/// The zones that a name means, each with its twins: an outermost zone can be shown by several doors, under one name. The
/// registers' door comes first; inner zones are taken from there.
fn zones_meant<'z>(top: &'z [Zone], wanted: &str) -> Vec<Vec<&'z Zone>> {
    let mut doors: Vec<&Zone> = top.iter().collect();
    doors.sort_by_key(|z| z.door != "msr");
    let mut meant: Vec<Vec<&Zone>> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for zone in doors {
        let is_twin = !seen.insert(&zone.name);
        if zone.is_meant_by(wanted) {
            match meant.iter_mut().find(|twins| is_twin && twins[0].name == zone.name) {
                Some(twins) => twins.push(zone),
                None => meant.push(vec![zone]),
            }
        }
        let inner = zone.walk().into_iter().skip(1).filter(|z| !is_twin && z.is_meant_by(wanted));
        meant.extend(inner.map(|z| vec![z]));
    }
    meant
}

/// Which of several limits is in force.
fn twins_note(name: &str, ruler: &Zone, rest: &[(&Zone, &Limit)]) -> String {
    let shown = |z: &Zone| match z.holds_uw(name) {
        Some(uw) => format!("{} ({})", show_uw(uw), z.door),
        None => format!("none ({})", z.door),
    };
    let others: Vec<String> = rest.iter().map(|(z, _)| shown(z)).collect();
    format!(
        "{} has several {name} limits: {} is in force, the lowest; the other is {}",
        ruler.name,
        shown(ruler),
        others.join(", ")
    )
}
