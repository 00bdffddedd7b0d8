//! `info`: a machine's power states, on one screen or by topic; what is the same is folded together.

mod brief;
mod power;
mod speed;

use crate::args::root as hardware;
use crate::args::select::SelectorArgs;
use crate::exit::{Failure, Outcome, print, print_json};
use clap::ValueEnum;
use std::fmt::Write;
use wattwise_figure::units::{show_khz, trim};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::info::Info;
use wattwise_hw::probe::Probed;

#[derive(clap::Args)]
pub(crate) struct InfoArgs {
    /// Topics in full; none is one screen of what is in force
    #[arg(value_enum)]
    topics: Vec<Topic>,
    #[command(flatten)]
    selector: SelectorArgs,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// All topics in full
    #[arg(long, conflicts_with = "topics")]
    all: bool,
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
    /// The memory's clock and its governor
    Memory,
    /// The graphics' clock and rest
    Graphics,
    /// Temperatures, fans, power sensors
    Thermal,
    /// Battery and mains
    Supply,
    /// Other programs that write these settings
    Writers,
}

pub(crate) fn run(args: &InfoArgs) -> Outcome {
    let root = args.root.open()?;
    args.root.tell_left(&*root)?;
    let mut info = Info::read(&*root);
    if info.topology.present.is_empty() {
        return Err(Failure::impossible(
            "info: no CPU below /sys/devices/system/cpu: sysfs is not mounted or hidden here",
        ));
    }
    if !args.selector.selector().is_all() {
        let cpus = args.selector.selector().resolve(&info.topology, true).map_err(Failure::input)?;
        info = info.only(&cpus);
    }
    if args.json {
        print_json(&info)?;
        return Ok(0);
    }
    let text = match args.topics.is_empty() && !args.all {
        true => brief::page(&info, &heading(&info)),
        false => page(&info, &args.topics),
    };
    print(&text)?;
    Ok(0)
}

/// Which machine, which processor, which kernel.
fn heading(info: &Info) -> String {
    let name = info.topology.processor.as_deref().unwrap_or("processor without a name");
    let kernel = info.kernel.as_ref().map(|k| format!(", Linux {k}")).unwrap_or_default();
    format!("{}: {name}{kernel}", info.machine)
}

/// The page of some topics, or of all.
fn page(info: &Info, topics: &[Topic]) -> String {
    let mut out = heading(info) + "\n";
    for topic in Topic::value_variants() {
        if !topics.is_empty() && !topics.contains(topic) {
            continue;
        }
        let (title, body) = match topic {
            Topic::Cpus => ("CPUs", cpus(info)),
            Topic::Speed => ("Speed (P-states)", speed::speed(info)),
            Topic::Idle => ("Idle (C-states)", idle(info)),
            Topic::Registers => ("Registers and firmware (T-states, HWP, thermal logs)", registers(info)),
            Topic::Energy => ("Energy and power limits", power::energy(info)),
            Topic::Uncore => ("Uncore", uncore(info)),
            Topic::Memory => ("Memory clock", memory(info)),
            Topic::Graphics => ("Graphics", graphics(info)),
            Topic::Thermal => ("Temperature and sensors", power::thermal(info)),
            Topic::Supply => ("Battery and mains", power::supply(info)),
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

fn memory(info: &Info) -> String {
    let Some(controllers) = &info.memory.value else { return missing(&info.memory) };
    let mut out = String::new();
    for m in controllers {
        let clocks: Vec<String> = m.clocks_khz.iter().map(|&khz| show_khz(khz)).collect();
        let now = m.current_khz.map(|k| format!(", now {}", show_khz(k))).unwrap_or_default();
        let percent = |word: &str, p: Option<u32>| p.map(|p| format!(" {word}={p}")).unwrap_or_default();
        let governor = m.governor.as_deref().unwrap_or("?");
        let thresholds = format!("{}{}", percent("up", m.up_percent), percent("down", m.down_percent));
        line(&mut out, &m.name, format!("{governor}{thresholds} ({}){now}", clocks.join(", ")));
        line(&mut out, "  governors", m.governors.join(", "));
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
