//! `info`: every power state of a machine, by topic, what is the same folded together.

use crate::args::root as hardware;
use crate::args::select::SelectorArgs;
use crate::exit::{Failure, Outcome, print, print_json};
use clap::ValueEnum;
use std::fmt::Write;
use wattwise_figure::units::{show_khz, show_ns, show_uw, trim};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::info::Info;
use wattwise_hw::probe::Probed;
use wattwise_hw::states::cpufreq::{Boost, CpufreqPolicy, Stats};
use wattwise_hw::states::power::{Limit, Zone};
use wattwise_hw::states::supply::{Adapter, Battery, Feeds, Source, Supply};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Topics; all where none is named
    #[arg(value_enum)]
    topics: Vec<Topic>,
    #[command(flatten)]
    selector: SelectorArgs,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// Print as JSON (schema wattwise.info/1)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Topic {
    /// Packages, cores, threads, kinds of core
    Cpus,
    /// P-states: drivers, governors, limits, levels, boost, preferences
    Speed,
    /// C-states and latency limits
    Idle,
    /// What registers and firmware tell: T-states, HWP, thermal logs, P-state control values
    Registers,
    /// Energy counters and power limits
    Energy,
    /// The speed around the cores
    Uncore,
    /// The graphics' clock and rest
    Graphics,
    /// Temperatures, fans, power sensors
    Thermal,
    /// Battery and mains
    Supply,
    /// Other programs that write these settings
    Writers,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let root = args.root.open()?;
    let mut info = Info::read(&*root);
    if info.topology.present.is_empty() {
        return Err(Failure::input(format!(
            "--root {}: no CPU below sys/devices/system/cpu; expected /, a tree of a machine, or a capture",
            info.machine
        )));
    }
    if !args.selector.selector().is_all() {
        let cpus = args.selector.selector().resolve(&info.topology, true).map_err(Failure::input)?;
        info = info.only(&cpus);
    }
    if args.json {
        print_json(&info)?;
        return Ok(0);
    }
    print(&page(&info, &args.topics))?;
    Ok(0)
}

/// The page of some topics, or of all.
fn page(info: &Info, topics: &[Topic]) -> String {
    let mut out = String::new();
    let name = info.topology.processor.as_deref().unwrap_or("processor without a name");
    let kernel = info.kernel.as_ref().map(|k| format!(", Linux {k}")).unwrap_or_default();
    _ = writeln!(out, "{}: {name}{kernel}", info.machine);
    for topic in Topic::value_variants() {
        if !topics.is_empty() && !topics.contains(topic) {
            continue;
        }
        let (title, body) = match topic {
            Topic::Cpus => ("CPUs", cpus(info)),
            Topic::Speed => ("Speed (P-states)", speed(info)),
            Topic::Idle => ("Idle (C-states)", idle(info)),
            Topic::Registers => ("Registers and firmware (T-states, HWP, thermal logs)", registers(info)),
            Topic::Energy => ("Energy and power limits", energy(info)),
            Topic::Uncore => ("Uncore", uncore(info)),
            Topic::Graphics => ("Graphics", graphics(info)),
            Topic::Thermal => ("Temperature and sensors", thermal(info)),
            Topic::Supply => ("Battery and mains", supply(info)),
            Topic::Writers => ("Other programs that write these settings", others(info)),
        };
        _ = write!(out, "\n{title}\n{body}");
    }
    out
}

/// A line of a block: a name of its own width, then the text.
fn line(out: &mut String, name: &str, text: impl AsRef<str>) {
    _ = writeln!(out, "  {name:<15} {}", text.as_ref());
}

/// Why a thing is missing, as the body of its topic.
fn missing<T>(found: &Probed<T>) -> String {
    let mut out = String::new();
    for passed in &found.passed_over {
        _ = writeln!(out, "  not available by {}: {}", passed.mechanism, passed.why);
    }
    out
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn cpus(info: &Info) -> String {
    let t = &info.topology;
    let mut out = String::new();
    let offline = t.present.without(&t.online);
    let mut online = format!("{} ({})", t.online, many(t.online.len(), "CPU", "CPUs"));
    if !offline.is_empty() {
        _ = write!(online, "; offline: {offline}");
    }
    line(&mut out, "online", online);
    let packages = t.count(|c| c.package);
    if packages > 0 {
        let dies = t.count(|c| c.package.zip(c.die));
        let dies = if dies > packages { format!(", {dies} dies") } else { String::new() };
        let nodes = t.nodes.len();
        let nodes = if nodes > 0 {
            format!(", {}", many(nodes, "memory node", "memory nodes"))
        } else {
            String::new()
        };
        let cores = many(t.count(|c| c.core), "core", "cores");
        line(&mut out, "made of", format!("{}{dies}, {cores}{nodes}", many(packages, "package", "packages")));
    }
    if let Some(smt) = &t.smt {
        line(&mut out, "SMT", smt);
    }
    if t.kinds().len() > 1 {
        for (kind, cpus) in t.kinds() {
            line(&mut out, &format!("{kind} cores"), cpus.to_string());
        }
    }
    if packages > 1 {
        for package in t.cpus.iter().filter_map(|c| c.package).collect::<std::collections::BTreeSet<i32>>() {
            let cpus: CpuSet = t.cpus.iter().filter(|c| c.package == Some(package)).map(|c| c.cpu).collect();
            line(&mut out, &format!("package {package}"), format!("CPUs {cpus}"));
        }
    }
    out
}

fn speed(info: &Info) -> String {
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
    let all = |set: fn(&CpufreqPolicy) -> &CpuSet| -> CpuSet {
        members.iter().flat_map(|p| set(p).iter()).collect()
    };
    let (affected, related) = (all(|p| &p.affected), all(|p| &p.related));
    let offline = first.is_offline();
    let heading = match members {
        _ if offline => {
            let names: Vec<&str> = members.iter().map(|p| p.name()).collect();
            format!("{}: offline, CPU {related} does not run", names.join(", "))
        }
        [one] => format!("{}: CPU {}", one.name(), affected),
        _ if members.iter().all(|p| p.affected.len() == 1) => {
            format!("{} policies, one a CPU: CPUs {affected}", members.len())
        }
        _ => {
            let sets: Vec<String> = members.iter().map(|p| p.affected.to_string()).collect();
            format!("{} policies: CPUs {}", members.len(), sets.join(" | "))
        }
    };
    _ = writeln!(out, "  {heading}");
    if offline && first.driver.is_none() && first.governor.is_none() {
        line(&mut out, "  settings", "not readable until one of its CPUs runs (set --online on)");
        return out;
    }
    if members.len() == 1 && !offline {
        line(
            &mut out,
            "  same clock",
            format!("CPU {related} in hardware; CPU {affected} switched by software"),
        );
    }
    let driver = first.driver.as_deref().unwrap_or("(none named)");
    let latency = match first.transition_latency_ns {
        Some(ns) if ns > 0 => format!("a change of speed takes at most {}", show_ns(ns)),
        _ => "how long a change of speed takes is not told".to_owned(),
    };
    line(&mut out, "  driver", format!("{driver}; {latency}"));
    let range = |(low, high): (u64, u64)| format!("{} to {}", show_khz(low), show_khz(high));
    if let Some(limits) = first.hardware_khz {
        let base = first.base_khz.map(|b| format!(", {} without boost", show_khz(b))).unwrap_or_default();
        line(&mut out, "  hardware", format!("{}{base}", range(limits)));
    }
    let list = |levels: &[u64]| levels.iter().map(|l| show_khz(*l)).collect::<Vec<_>>().join(", ");
    if !first.levels_khz.is_empty() {
        line(&mut out, "  levels", list(&first.levels_khz));
    }
    if !first.boost_levels_khz.is_empty() {
        line(&mut out, "  boost levels", list(&first.boost_levels_khz));
    }
    if let Some(limits) = first.limits_khz {
        let bios = first.bios_limit_khz.filter(|b| first.hardware_khz.is_some_and(|(_, top)| *b < top));
        let bios = bios.map(|b| format!("; the firmware allows {}", show_khz(b))).unwrap_or_default();
        line(&mut out, "  limits", format!("{}{bios}", range(limits)));
    }
    if let Some(governor) = &first.governor {
        let told = first.setspeed_khz.map(|s| format!(", told {}", show_khz(s))).unwrap_or_default();
        line(&mut out, "  governor", format!("{governor}{told} (of {})", first.governors.join(", ")));
    }
    if !first.tunables.is_empty() {
        let tunables: Vec<String> = first.tunables.iter().map(|(k, v)| format!("{k} {v}")).collect();
        line(&mut out, "  tunables", tunables.join(", "));
    }
    if let Some(epp) = &first.epp {
        line(&mut out, "  preference", format!("{epp} (of {})", first.epps.join(", ")));
    }
    if let Some(on) = first.boost {
        line(&mut out, "  boost", if on { "on" } else { "off" });
    }
    now_and_so_far(&mut out, members);
    out
}

/// The speeds at this moment, and the time at each since the counters began.
fn now_and_so_far(out: &mut String, members: &[&CpufreqPolicy]) {
    let range = |(low, high): (u64, u64)| format!("{} to {}", show_khz(low), show_khz(high));
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
        let shares: Vec<String> = stats
            .time_in_state
            .iter()
            .map(|(khz, s)| format!("{} {:.2} %", show_khz(*khz), s / whole * 100.0))
            .collect();
        let shares = if whole > 0.0 { shares.join(", ") } else { "no time is counted".to_owned() };
        let changes = stats.total_transitions.map(|n| format!("; {n} changes")).unwrap_or_default();
        line(out, "  time at", format!("{shares}{changes}"));
        for what in &stats.left_out {
            line(out, "  left out", what);
        }
    }
}

/// The statistics of some policies together.
fn total(members: &[&CpufreqPolicy]) -> Option<Stats> {
    let mut sum: Option<Stats> = None;
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

fn idle(info: &Info) -> String {
    let i = &info.cpuidle;
    let mut out = String::new();
    if let Some(driver) = &i.driver {
        line(&mut out, "driver", driver);
    }
    if let Some(governor) = &i.governor {
        let of =
            if i.governors.is_empty() { String::new() } else { format!(" (of {})", i.governors.join(", ")) };
        line(&mut out, "governor", format!("{governor}{of}"));
    }
    let system = &info.system_idle;
    if let Some(on) = system.c1_demotion {
        line(
            &mut out,
            "C1 demotion",
            if on { "on: deeper requests become C1 when they did not pay" } else { "off" },
        );
    }
    for (name, residency) in [("package C10", system.cpu_residency_us), ("S0ix", system.system_residency_us)]
    {
        if let Some(us) = residency {
            line(&mut out, name, format!("{} s since the start", trim(us as f64 / 1e6, 2)));
        }
    }
    if i.cpus.value.is_none() {
        return out + &missing(&i.cpus);
    }
    for (cpus, example) in i.folded() {
        let limit = match example.latency_limit_us {
            None => "no latency limit".to_owned(),
            Some(0) => "no delay allowed".to_owned(),
            Some(us) => format!("wakes within {us} us"),
        };
        _ = writeln!(out, "  CPUs {cpus}: {limit}");
        _ = writeln!(
            out,
            "    {:<12} {:>10} {:>12} {:>14} {:>12}  state",
            "name", "exit us", "pays from us", "entered", "time s"
        );
        for (at, state) in example.states.iter().enumerate() {
            let sum = |count: fn(&wattwise_hw::states::cpuidle::CpuidleState) -> u64| -> u64 {
                i.cpus()
                    .iter()
                    .filter(|c| cpus.contains(c.cpu))
                    .filter_map(|c| c.states.get(at))
                    .map(count)
                    .sum()
            };
            let status = match (state.disabled, state.off_by_default) {
                (true, _) => "off",
                (false, true) => "on, off by default",
                (false, false) => "on",
            };
            _ = writeln!(
                out,
                "    {:<12} {:>10} {:>12} {:>14} {:>12.2}  {status}{}",
                state.name,
                state.latency_us,
                state.residency_us,
                sum(|s| s.usage),
                sum(|s| s.time_us) as f64 / 1e6,
                if state.description.is_empty() || state.description == state.name {
                    String::new()
                } else {
                    format!(" ({})", state.description)
                },
            );
        }
    }
    out
}

fn registers(info: &Info) -> String {
    let mut out = match &info.registers.value {
        None => missing(&info.registers),
        Some(view) => {
            let mut out = String::new();
            let duty = view.clock_percent.map_or("not told".to_owned(), |p| match p {
                100.0 => "not modulated (100 %)".to_owned(),
                p => format!("{p} % of it is let through"),
            });
            line(
                &mut out,
                "clock",
                format!("{duty}, CPU {} (the others are not woken to be asked)", view.cpu),
            );
            for f in &view.fields {
                let value = match (f.scaled, &f.unit) {
                    (Some(scaled), Some(unit)) => format!("{} {unit}", trim(scaled, 3)),
                    _ => f.value.to_string(),
                };
                _ = writeln!(out, "    {:<26} {:<24} {:>10}  {}", f.register, f.field, value, f.meaning);
            }
            out
        }
    };
    match &info.firmware.value {
        Some(summary) => line(&mut out, "P-states (ACPI)", summary),
        None => out += &missing(&info.firmware),
    }
    out
}

fn energy(info: &Info) -> String {
    let Some(zones) = &info.energy.value else { return missing(&info.energy) };
    let mut out = String::new();
    for zone in zones {
        let twins: Vec<&Zone> = zones.iter().filter(|z| z.name == zone.name).collect();
        show_zone(&mut out, zone, &twins, 0);
    }
    out
}

/// A zone, those inside it, and its limits beside those of the same zone's other doors.
fn show_zone(out: &mut String, zone: &Zone, twins: &[&Zone], depth: usize) {
    let energy = match zone.energy_uj.value {
        Some(uj) => format!("{} J counted", trim(uj as f64 / 1e6, 3)),
        None => format!("energy unavailable: {}", zone.energy_uj.why_not()),
    };
    let wraps = match zone.max_energy_uj {
        Some(m) => format!(", wraps at {} J", trim(m as f64 / 1e6, 0)),
        None => ", where it wraps is not told".to_owned(),
    };
    let enabled = if zone.enabled == Some(false) { "; disabled: its limits do not hold" } else { "" };
    let door = if twins.len() > 1 { format!(" ({})", zone.door) } else { String::new() };
    line(out, &format!("{}{}{door}", "  ".repeat(depth), zone.name), format!("{energy}{wraps}{enabled}"));
    for limit in &zone.limits {
        let text = format!("{}{}: {}", "  ".repeat(depth), limit.name, limit_line(zone, limit, twins));
        line(out, "", text);
    }
    for inside in &zone.inside {
        show_zone(out, inside, &[inside], depth + 1);
    }
}

fn limit_line(zone: &Zone, limit: &Limit, twins: &[&Zone]) -> String {
    let set = limit.power_uw.filter(|uw| *uw > 0);
    let window = limit.window_us.filter(|us| *us > 0);
    let window = window.map(|us| format!(" over {}", show_ns(us * 1000))).unwrap_or_default();
    let most =
        limit.most_uw.filter(|m| *m > 0).map(|m| format!(" (up to {})", show_uw(m))).unwrap_or_default();
    let power = match set {
        Some(uw) => format!("at most {}{window}{most}", show_uw(uw)),
        None => format!("not set{most}"),
    };
    if zone.enabled == Some(false) {
        return format!("off, {power}");
    }
    // Only where the same limit is set at another door, too, is it a question which holds.
    let others: Vec<&&Zone> = twins.iter().filter(|z| z.path != zone.path).collect();
    let holder = others.iter().find(|z| z.limit(Some(&limit.name)).is_some_and(|l| l.in_force));
    match (set.is_some() && limit.in_force, holder) {
        (true, _) if others.iter().any(|z| z.holds_uw(&limit.name).is_some()) => {
            format!("{power}: in force, the lowest")
        }
        (false, Some(other)) => format!("{power}: the lower one of {} is in force", other.door),
        _ => power,
    }
}

fn uncore(info: &Info) -> String {
    let Some(uncores) = &info.uncore.value else { return missing(&info.uncore) };
    let mut out = String::new();
    for u in uncores {
        let range = |r: Option<(u64, u64)>| {
            r.map_or("?".into(), |(l, h)| format!("{} to {}", show_khz(l), show_khz(h)))
        };
        let now = u.current_khz.map(|k| format!(", now {}", show_khz(k))).unwrap_or_default();
        line(
            &mut out,
            &u.name,
            format!("{} (at the start {}){now}", range(u.limits_khz), range(u.initial_khz)),
        );
        if let Some(elc) = &u.elc {
            let percent = |p: Option<u32>| p.map_or("?".to_owned(), |p| format!("{p} %"));
            let high = match elc.high_on {
                Some(false) => "off".to_owned(),
                _ => format!("from {} use up at once", percent(elc.high_percent)),
            };
            let low = percent(elc.low_percent);
            line(&mut out, "  ELC", format!("at least {} below {low} use; {high}", show_khz(elc.floor_khz)));
        }
    }
    out
}

fn graphics(info: &Info) -> String {
    let mut out = String::new();
    for g in &info.graphics {
        let mhz = |value: Option<u32>| value.map_or("?".to_owned(), |mhz| format!("{mhz} MHz"));
        let range = g.limits_mhz.map(|(l, h)| format!(" ({l} to {h} MHz)")).unwrap_or_default();
        let wanted = g.wanted_mhz.map(|mhz| format!(", {mhz} MHz wanted")).unwrap_or_default();
        let idle =
            g.idle_ms.map(|ms| format!("; at rest for {} s", trim(ms as f64 / 1e3, 1))).unwrap_or_default();
        line(&mut out, &g.name, format!("{}{range}{wanted}{idle}", mhz(g.current_mhz)));
    }
    if out.is_empty() {
        out = "  not available: no graphics whose driver (i915, xe) tells of its power\n".to_owned();
    }
    out
}

fn thermal(info: &Info) -> String {
    let mut out = String::new();
    for t in &info.sensors.temperatures {
        line(&mut out, &t.name, format!("{} C", trim(t.celsius, 1)));
    }
    for p in &info.sensors.power {
        let average = match (p.average, p.interval_s) {
            (false, _) => String::new(),
            (true, Some(s)) => format!(" on average over {}", show_ns((s * 1e9) as u64)),
            (true, None) => " on average (over how long is not told)".to_owned(),
        };
        let watts = p.watts.map(|w| format!("{} W{average}", trim(w, 3)));
        let joules = p.joules.map(|j| format!("{} J counted", trim(j, 3)));
        line(&mut out, &p.name, watts.or(joules).unwrap_or_default());
    }
    for (name, rpm) in &info.sensors.fans {
        line(&mut out, name, format!("{rpm} rpm"));
    }
    for s in &info.sensors.set_aside {
        line(&mut out, &s.name, &s.why);
    }
    if out.is_empty() {
        out = "  not available by sysfs: no thermal zone and no hwmon sensor is listed (a virtual machine has none)\n".into();
    }
    out
}

fn supply(info: &Info) -> String {
    let supply = &info.supply;
    let mut out = String::new();
    if !supply.is_listed() {
        return "  not available by sysfs: neither battery nor adapter is listed; such a machine runs on mains\n".into();
    }
    line(&mut out, "runs on", format!("{}: {}", supply.source, supply.why));
    line(&mut out, "mains", mains(supply));
    for adapter in supply.adapters.iter().filter(|a| a.feeds != Feeds::Machine) {
        let why = adapter.why.as_deref().unwrap_or_default();
        line(&mut out, &adapter.name, format!("{}, {why}: no source", kind(adapter)));
    }
    for b in &supply.batteries {
        line(&mut out, &b.name, battery(b));
    }
    out
}

/// What an adapter calls itself.
fn kind(adapter: &Adapter) -> String {
    let agreed = adapter.usb_type.as_ref().map(|t| format!(" ({t})")).unwrap_or_default();
    format!("{}{agreed}", adapter.kind)
}

fn mains(supply: &Supply) -> String {
    let feeding = supply.adapters.iter().filter(|a| a.feeds == Feeds::Machine);
    let feeding: Vec<String> = feeding.map(|a| format!("{}, {}", a.name, kind(a))).collect();
    match (supply.source, feeding.is_empty()) {
        (Source::Battery, false) => {
            format!("connected ({}), yet the battery discharges: the machine runs on it", feeding.join("; "))
        }
        (_, false) => format!("connected ({})", feeding.join("; ")),
        (_, true) if supply.mains => "connected (a machine without a battery has no other source)".to_owned(),
        (Source::Mains, true) => "no adapter says so, and no battery discharges".to_owned(),
        (Source::Battery, true) => "not connected".to_owned(),
    }
}

fn battery(b: &Battery) -> String {
    let wh = |v: Option<f64>| v.map(|v| format!("{} Wh", trim(v, 2)));
    let mut facts: Vec<String> = b.capacity_percent.map(|p| format!("{p} %")).into_iter().collect();
    let new = wh(b.design_wh).map(|w| format!(" (new {w})")).unwrap_or_default();
    facts.push(match (wh(b.energy_wh), wh(b.full_wh)) {
        (Some(left), Some(full)) => format!("{left} of {full}{new}"),
        (Some(left), None) => format!("{left}{new}"),
        (None, full) => {
            let holds = full.map(|f| format!("; holds {f}{new}")).unwrap_or(new);
            format!("joules unavailable: its gauge counts neither energy nor charge{holds}")
        }
    });
    facts.extend(b.power_w.map(|w| format!("{} W", trim(w, 2))));
    facts.extend(b.implausible.iter().map(|what| format!("implausible: {what}")));
    format!("{}: {}", b.status, facts.join(", "))
}

fn others(info: &Info) -> String {
    let mut out = String::new();
    for w in &info.writers {
        line(&mut out, w.name, format!("{}: writes {}; pause it with {}", w.seen, w.writes, w.pause));
    }
    if out.is_empty() {
        out = "  none that we know is running\n".into();
    }
    out
}
