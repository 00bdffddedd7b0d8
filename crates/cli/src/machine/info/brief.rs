//! `info` on one screen: what is there, what is in force, what is metered; each line one topic.

use super::many;
use std::collections::BTreeSet;
use wattwise_figure::units::{show_khz, show_ns, show_uw, trim};
use wattwise_hw::info::Info;
use wattwise_hw::states::cpufreq::CpufreqPolicy;
use wattwise_hw::states::cpuidle::CpuStates;
use wattwise_hw::states::power::Zone;

use crate::show::table::wrapped_after;

/// Groups of CPUs with settings of their own that are shown.
const GROUPS: usize = 4;

/// The screen.
pub(super) fn page(info: &Info, heading: &str) -> String {
    let mut out = wrapped_after("", heading, "  ") + "\n\n";
    let facts = [
        ("CPUs", cpus(info)),
        ("speed", speed(info)),
        ("idle", idle(info)),
        ("power limits", limits(info)),
        ("meters", meters(info)),
        ("power from", supply(info)),
        ("temperature", temperature(info)),
        ("written by", writers(info)),
        ("missing", missing(info)),
    ];
    for (name, lines) in facts {
        for (at, text) in lines.iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            out += &wrapped_after(&format!("{name:<13} "), text, &" ".repeat(14));
            out.push('\n');
        }
    }
    out + "\nEverything, with registers: --all; one topic: info speed, info idle, ...\n"
}

fn cpus(info: &Info) -> Vec<String> {
    let t = &info.topology;
    let mut text = format!("{} online ({})", t.online.len(), t.online);
    let offline = t.present.without(&t.online);
    if !offline.is_empty() {
        text += &format!(", {offline} offline");
    }
    let (packages, cores) = (t.count(|c| c.package), t.count(|c| c.core));
    if packages > 0 {
        text += &format!("; {}, {}", many(packages, "package", "packages"), many(cores, "core", "cores"));
    }
    if let Some(smt) = &t.smt {
        text += &format!("; SMT {}", if smt == "notsupported" { "none" } else { smt });
    }
    if t.kinds().len() > 1 {
        let kinds: Vec<String> =
            t.kinds().iter().map(|(kind, cpus)| format!("{cpus} on {kind} cores")).collect();
        text += &format!("; {}", kinds.join(", "));
    }
    vec![text]
}

/// What of a cpufreq policy a reader wants to know: equal ones are said once.
#[derive(PartialEq, Eq)]
struct PolicyInForce {
    driver: Option<String>,
    governor: Option<String>,
    epp: Option<String>,
    limits_khz: Option<(u64, u64)>,
    hardware_khz: Option<(u64, u64)>,
    base_khz: Option<u64>,
    bios_limit_khz: Option<u64>,
}

impl PolicyInForce {
    fn of(policy: &CpufreqPolicy) -> PolicyInForce {
        PolicyInForce {
            driver: policy.driver.clone(),
            governor: policy.governor.clone(),
            epp: policy.epp.clone(),
            limits_khz: policy.limits_khz,
            hardware_khz: policy.hardware_khz,
            base_khz: policy.base_khz,
            bios_limit_khz: policy.bios_limit_khz,
        }
    }

    fn words(&self) -> String {
        let range = |(low, high): (u64, u64)| format!("{} to {}", show_khz(low), show_khz(high));
        let mut words = vec![format!("governor {}", self.governor.as_deref().unwrap_or("(none)"))];
        words.extend(self.epp.as_ref().map(|epp| format!("EPP {epp}")));
        match (self.limits_khz, self.hardware_khz) {
            (Some(limits), Some(hardware)) if limits != hardware => {
                words.push(format!("limited to {} of {}", range(limits), range(hardware)));
            }
            (Some(limits), _) => words.push(range(limits)),
            (None, _) => {}
        }
        let below_top = |khz: &u64| self.hardware_khz.is_none_or(|(_, top)| *khz < top);
        words.extend(self.base_khz.filter(below_top).map(|k| format!("{} without boost", show_khz(k))));
        words.extend(
            self.bios_limit_khz.filter(below_top).map(|k| format!("the firmware allows {}", show_khz(k))),
        );
        words.join(", ")
    }
}

fn speed(info: &Info) -> Vec<String> {
    let mut groups: Vec<(PolicyInForce, Vec<u32>)> = Vec::new();
    for policy in info.cpufreq.policies().iter().filter(|p| !p.is_offline()) {
        let now = PolicyInForce::of(policy);
        match groups.iter_mut().find(|(known, _)| *known == now) {
            Some((_, cpus)) => cpus.extend(policy.affected.iter()),
            None => groups.push((now, policy.affected.iter().collect())),
        }
    }
    let Some((first, _)) = groups.first() else { return vec![why_not(&info.cpufreq.policies)] };
    let mut head = match &info.cpufreq.driver {
        Some(driver) => format!("{}, {} mode", driver.name, driver.mode),
        None => first.driver.clone().unwrap_or_else(|| "a driver without a name".to_owned()),
    };
    if let Some(boost) = &info.cpufreq.boost {
        head += match (boost.on, boost.locked) {
            (true, _) => "; boost on",
            (false, true) => "; boost off, locked by the firmware",
            (false, false) => "; boost off",
        };
    }
    if let Some((profile, _)) = &info.platform_profile {
        head += &format!("; platform profile {profile}");
    }
    let mut lines = vec![head];
    for (now, cpus) in groups.iter().take(GROUPS) {
        let set: wattwise_hw::cpus::set::CpuSet = cpus.iter().copied().collect();
        let whose = if groups.len() > 1 { format!("CPUs {set}: ") } else { String::new() };
        lines.push(format!("{whose}{}", now.words()));
    }
    let more = groups.len().saturating_sub(GROUPS);
    if more > 0 {
        lines.push(format!("and {more} more groups of CPUs with settings of their own: info speed"));
    }
    lines
}

fn idle(info: &Info) -> Vec<String> {
    let i = &info.cpuidle;
    let groups = i.folded();
    if groups.is_empty() {
        return vec![why_not(&i.cpus)];
    }
    let word = |name: &Option<String>| name.clone().unwrap_or_else(|| "(none)".to_owned());
    let head = format!("{}, governor {}", word(&i.driver), word(&i.governor));
    if let [(_, all)] = &groups[..] {
        return vec![format!("{head}; {}", states(all))];
    }
    let each =
        groups.iter().take(GROUPS).map(|(cpus, states_of)| format!("CPUs {cpus}: {}", states(states_of)));
    std::iter::once(head).chain(each).collect()
}

/// The states of a CPU, those that are switched off, and its latency limit.
fn states(cpu: &CpuStates) -> String {
    let names = |off: bool| -> Vec<&str> {
        cpu.states.iter().filter(|s| s.disabled == off).map(|s| s.name.as_str()).collect()
    };
    let mut text = names(false).join(" ");
    if !names(true).is_empty() {
        text += &format!("; switched off: {}", names(true).join(" "));
    }
    if let Some(us) = cpu.latency_limit_us {
        text += &format!("; must wake within {us} us");
    }
    text
}

fn limits(info: &Info) -> Vec<String> {
    let zones = info.energy.value.as_deref().unwrap_or_default();
    let limit = |zone: &Zone| -> Option<String> {
        let set = zone.limits.iter().filter(|_| zone.enabled != Some(false));
        let words: Vec<String> = set
            .filter_map(|l| {
                let uw = l.power_uw.filter(|uw| *uw > 0)?;
                let window = l.window_us.filter(|us| *us > 0);
                let window = window.map(|us| format!(" over {}", show_ns(us * 1000))).unwrap_or_default();
                Some(format!("{}{window}", show_uw(uw)))
            })
            .collect();
        (!words.is_empty()).then(|| format!("{} {}", zone.name, words.join(", ")))
    };
    // A zone may be listed by two doors: its limits are said once.
    let mut seen = BTreeSet::new();
    let all: Vec<String> = zones.iter().filter_map(limit).filter(|text| seen.insert(text.clone())).collect();
    if all.is_empty() { Vec::new() } else { vec![all.join("; ")] }
}

fn meters(info: &Info) -> Vec<String> {
    let zones = info.energy.value.as_deref().unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for zone in zones.iter().flat_map(|z| z.walk()).filter(|z| z.energy_uj.value.is_some()) {
        if !names.contains(&zone.name) {
            names.push(zone.name.clone());
        }
    }
    let mut all = Vec::new();
    if !names.is_empty() {
        all.push(format!("energy counters of {}", names.join(", ")));
    }
    let sensors: Vec<&str> = info.sensors.power.iter().map(|p| p.name.as_str()).collect();
    if !sensors.is_empty() {
        all.push(format!("power sensors {}", sensors.join(", ")));
    }
    let gauges: Vec<&str> =
        info.supply.batteries.iter().filter(|b| b.energy_wh.is_some()).map(|b| b.name.as_str()).collect();
    if !gauges.is_empty() {
        all.push(format!("battery gauge {}", gauges.join(", ")));
    }
    match all.is_empty() {
        true => vec![
            "no meter: joules are modelled by this machine's watts, as estimated or calibrated".to_owned(),
        ],
        false => vec![all.join("; ")],
    }
}

fn supply(info: &Info) -> Vec<String> {
    let supply = &info.supply;
    if !supply.is_listed() {
        return Vec::new();
    }
    let batteries: Vec<String> = supply
        .batteries
        .iter()
        .map(|b| {
            let charge = b.capacity_percent.map(|p| format!(" {p} %")).unwrap_or_default();
            let power = b.power_w.filter(|w| *w > 0.0).map(|w| format!(", {} W", trim(w, 2)));
            format!("{}{charge}{}", b.name, power.unwrap_or_default())
        })
        .collect();
    let batteries = if batteries.is_empty() { String::new() } else { format!("; {}", batteries.join(", ")) };
    vec![format!("{}{batteries}", supply.source)]
}

fn temperature(info: &Info) -> Vec<String> {
    let hottest = info.sensors.temperatures.iter().max_by(|a, b| a.celsius.total_cmp(&b.celsius));
    hottest.map(|t| format!("{} C, the highest ({})", trim(t.celsius, 1), t.name)).into_iter().collect()
}

fn writers(info: &Info) -> Vec<String> {
    info.writers
        .iter()
        .map(|w| format!("{} too: writes {}; pause it with {}", w.name, w.writes, w.pause))
        .collect()
}

/// What this machine does not offer; the reasons stand with each topic.
fn missing(info: &Info) -> Vec<String> {
    let gone = [
        ("power limits and energy counters", info.energy.value.is_none()),
        ("uncore frequency", info.uncore.value.is_none()),
        ("registers", info.registers.value.is_none()),
        ("ACPI P-states", info.firmware.value.is_none()),
        ("graphics", info.graphics.is_empty()),
        ("temperatures", info.sensors.temperatures.is_empty()),
    ];
    let gone: Vec<&str> = gone.iter().filter(|(_, gone)| *gone).map(|(name, _)| *name).collect();
    if gone.is_empty() { Vec::new() } else { vec![format!("{} (why: info --all)", gone.join(", "))] }
}

/// Why a topic has nothing to show.
fn why_not<T>(found: &wattwise_hw::probe::Probed<T>) -> String {
    format!("not available: {}", found.why_not())
}
