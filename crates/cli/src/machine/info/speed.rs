//! What `info` says of P-states.

use super::{line, missing};
use std::fmt::Write;
use wattwise_figure::units::{show_khz, show_ns, trim};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::info::Info;
use wattwise_hw::states::cpufreq::{Boost, CpufreqPolicy, CpufreqStats};

pub(super) fn speed(info: &Info) -> String {
    let mut out = String::new();
    if let Some(driver) = &info.cpufreq.driver {
        let settings: Vec<String> =
            driver.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        line(&mut out, driver.name, format!("{} mode; {}", driver.mode, settings.join(", ")));
    }
    if let Some(owner) = owner_of_preferences(info) {
        line(&mut out, "EPP", owner);
    }
    if let Some(boost) = &info.cpufreq.boost {
        line(&mut out, "boost", boost_line(boost));
    }
    if info.cpufreq.policies.value.is_none() {
        return out + &missing(&info.cpufreq.policies);
    }
    let mut groups: Vec<((bool, CpufreqPolicy), Vec<&CpufreqPolicy>)> = Vec::new();
    for policy in info.cpufreq.policies() {
        let settings = (policy.is_offline(), settings(policy));
        match groups.iter_mut().find(|(key, _)| *key == settings) {
            Some((_, members)) => members.push(policy),
            None => groups.push((settings, vec![policy])),
        }
    }
    for (_, members) in &groups {
        out += &policies(members);
    }
    if let Some(groups) = &info.energy_performance_bias.value {
        for (cpus, bias) in groups {
            line(&mut out, "bias (EPB)", format!("{bias} on CPUs {cpus} (0 performance to 15 power)"));
        }
    }
    if let Some((now, choices)) = &info.platform_profile {
        line(&mut out, "profile", format!("{now} (of {})", choices.join(", ")));
    }
    out
}

/// Whether boost is on, and who can switch it.
fn boost_line(boost: &Boost) -> String {
    let path = &boost.path;
    match (boost.on, boost.locked, boost.inverted) {
        (true, ..) => format!("on (/{path})"),
        (false, true, _) => {
            format!("off, locked by the firmware: turbo can only be enabled in its setup (/{path} reads 1)")
        }
        (false, false, true) => {
            format!("off (/{path} reads 1: switched off, or the firmware keeps it so and refuses a write)")
        }
        (false, false, false) => format!("off (/{path})"),
    }
}

/// That the kernel itself sets the energy-performance preferences, where it does.
fn owner_of_preferences(info: &Info) -> Option<&'static str> {
    let dynamic = |(name, value): &(String, String)| name == "dynamic_epp" && value == "enabled";
    if info.cpufreq.driver.as_ref().is_some_and(|d| d.settings.iter().any(dynamic)) {
        return Some(
            "set by the kernel itself, by the power source (dynamic_epp is enabled): it takes none from others",
        );
    }
    let asked = info.cpufreq.policies().iter().any(|p| p.epp.as_deref() == Some("dynamic"));
    asked.then_some("set by the kernel itself, by the power source (the preference is dynamic)")
}

/// What is set, without what differs between equal policies.
fn settings(policy: &CpufreqPolicy) -> CpufreqPolicy {
    CpufreqPolicy {
        path: String::new(),
        affected: CpuSet::new(),
        related: CpuSet::new(),
        current_khz: policy.current_khz.map(|_| 0),
        hardware_current_khz: policy.hardware_current_khz.map(|_| 0),
        stats: None,
        ..policy.clone()
    }
}

/// Policies with equal settings, as one block.
fn policies(members: &[&CpufreqPolicy]) -> String {
    let mut out = String::new();
    let Some(first) = members.first() else { return out };
    _ = writeln!(out, "  {}", heading(members));
    match (members, first.is_offline()) {
        (_, true) if first.driver.is_none() && first.governor.is_none() => {
            line(&mut out, "  settings", "not readable until one of its CPUs runs (set --online on)");
            return out;
        }
        ([one], false) => {
            let (related, affected) = (&one.related, &one.affected);
            let text = format!("CPU {related} in hardware; CPU {affected} switched by software");
            line(&mut out, "  same clock", text);
        }
        _ => {}
    }
    hardware(&mut out, first);
    in_force(&mut out, first);
    now_and_so_far(&mut out, members);
    out
}

/// Which policies, and which CPUs they drive.
fn heading(members: &[&CpufreqPolicy]) -> String {
    let all = |set: fn(&CpufreqPolicy) -> &CpuSet| -> CpuSet {
        members.iter().flat_map(|p| set(p).iter()).collect()
    };
    let affected = all(|p| &p.affected);
    match members {
        _ if members.iter().all(|p| p.is_offline()) => {
            let names: Vec<&str> = members.iter().map(|p| p.name()).collect();
            format!("{}: offline, CPU {} does not run", names.join(", "), all(|p| &p.related))
        }
        [one] => format!("{}: CPU {affected}", one.name()),
        _ if members.iter().all(|p| p.affected.len() == 1) => {
            format!("{} policies, one a CPU: CPUs {affected}", members.len())
        }
        _ => {
            let sets: Vec<String> = members.iter().map(|p| p.affected.to_string()).collect();
            format!("{} policies: CPUs {}", members.len(), sets.join(" | "))
        }
    }
}

fn range((low, high): (u64, u64)) -> String {
    format!("{} to {}", show_khz(low), show_khz(high))
}

/// What may be chosen, where that is listed.
fn of(choices: &[String]) -> String {
    if choices.is_empty() { String::new() } else { format!(" (of {})", choices.join(", ")) }
}

/// What there is.
fn hardware(out: &mut String, policy: &CpufreqPolicy) {
    let driver = policy.driver.as_deref().unwrap_or("(none named)");
    let latency = match policy.transition_latency_ns {
        Some(ns) if ns > 0 => format!("a change of speed takes at most {}", show_ns(ns)),
        _ => "how long a change of speed takes is not told".to_owned(),
    };
    line(out, "  driver", format!("{driver}; {latency}"));
    if let Some(limits) = policy.hardware_khz {
        let base = policy.base_khz.map(|b| format!(", {} without boost", show_khz(b))).unwrap_or_default();
        line(out, "  hardware", format!("{}{base}", range(limits)));
    }
    let list = |levels: &[u64]| levels.iter().map(|l| show_khz(*l)).collect::<Vec<_>>().join(", ");
    if !policy.levels_khz.is_empty() {
        line(out, "  levels", list(&policy.levels_khz));
    }
    if !policy.boost_levels_khz.is_empty() {
        line(out, "  boost levels", list(&policy.boost_levels_khz));
    }
}

/// What is set.
fn in_force(out: &mut String, policy: &CpufreqPolicy) {
    if let Some(limits) = policy.limits_khz {
        let bios = policy.bios_limit_khz.filter(|b| policy.hardware_khz.is_some_and(|(_, top)| *b < top));
        let bios = bios.map(|b| format!("; the firmware allows {}", show_khz(b))).unwrap_or_default();
        line(out, "  limits", format!("{}{bios}", range(limits)));
    }
    if let Some(governor) = &policy.governor {
        let told = policy.setspeed_khz.map(|s| format!(", told {}", show_khz(s))).unwrap_or_default();
        line(out, "  governor", format!("{governor}{told}{}", of(&policy.governors)));
    }
    if !policy.tunables.is_empty() {
        let tunables: Vec<String> = policy.tunables.iter().map(|(k, v)| format!("{k} {v}")).collect();
        line(out, "  tunables", tunables.join(", "));
    }
    if let Some(epp) = &policy.epp {
        line(out, "  preference", format!("{epp}{}", of(&policy.epps)));
    }
    if let Some(on) = policy.boost {
        line(out, "  boost", if on { "on" } else { "off" });
    }
}

/// The speeds at this moment, and the time at each since the counters began.
fn now_and_so_far(out: &mut String, members: &[&CpufreqPolicy]) {
    let spread = |speed: fn(&CpufreqPolicy) -> Option<u64>| {
        let speeds: Vec<u64> = members.iter().filter_map(|p| speed(p)).collect();
        let (low, high) = (speeds.iter().min()?, speeds.iter().max()?);
        Some(if low == high { show_khz(*low) } else { range((*low, *high)) })
    };
    let now: Vec<String> = [
        spread(|p| p.hardware_current_khz).map(|s| format!("{s} by the hardware")),
        spread(|p| p.current_khz).map(|s| format!("{s} by the kernel")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !now.is_empty() {
        line(out, "  now", now.join("; "));
    }
    if let Some(stats) = total(members) {
        let whole: f64 = stats.time_in_state.iter().map(|(_, s)| s).sum();
        // A share of a whole of which a part is unknown says nothing: then it is seconds.
        let part = stats.left_out.iter().any(|what| what.starts_with("time_in_state"));
        let time = |(khz, s): &(u64, f64)| match part {
            true => format!("{} {} s", show_khz(*khz), trim(*s, 2)),
            false => format!("{} {:.2} %", show_khz(*khz), s / whole * 100.0),
        };
        let times: Vec<String> = stats.time_in_state.iter().map(time).collect();
        let shares = if whole > 0.0 { times.join(", ") } else { "no time is counted".to_owned() };
        let changes = stats.total_transitions.map(|n| format!("; {n} changes")).unwrap_or_default();
        line(out, "  time at", format!("{shares}{changes}"));
        for what in &stats.left_out {
            line(out, "  left out", what);
        }
    }
}

/// The statistics of some policies together.
fn total(members: &[&CpufreqPolicy]) -> Option<CpufreqStats> {
    let mut sum: Option<CpufreqStats> = None;
    for stats in members.iter().filter_map(|p| p.stats.as_ref()) {
        let Some(sum) = &mut sum else {
            sum = Some(stats.clone());
            continue;
        };
        for (khz, s) in &stats.time_in_state {
            match sum.time_in_state.iter_mut().find(|(k, _)| k == khz) {
                Some((_, total)) => *total += s,
                None => sum.time_in_state.push((*khz, *s)),
            }
        }
        sum.total_transitions = sum.total_transitions.zip(stats.total_transitions).map(|(a, b)| a + b);
        let new = stats.left_out.iter().filter(|what| !sum.left_out.contains(what)).cloned();
        let new: Vec<String> = new.collect();
        sum.left_out.extend(new);
    }
    if let Some(sum) = &mut sum {
        sum.time_in_state.sort_unstable_by_key(|(khz, _)| *khz);
    }
    sum
}
