//! `cpufreq-info` and `cpufreq-set` as the bc10's study (003) used them: the same options, the same
//! facts; and, as that study missed, a set says whether it worked.

use crate::args::root as hardware;
use crate::exit::{Failure, Outcome, print};
use crate::machine::set::{HoldTime, apply, not_planned};
use std::fmt::Write;
use wattwise_control::set::plan::{Inventory, Setting, plan};
use wattwise_figure::units::{show_khz, show_ns, speed};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::{Root, text};
use wattwise_hw::states::cpufreq::{Cpufreq, CpufreqPolicy};

#[derive(clap::Args)]
#[group(multiple = true)]
pub(crate) struct CpufreqInfoArgs {
    /// CPU number [default: all]
    #[arg(short, long, value_name = "CPU")]
    cpu: Option<u32>,
    /// Everything (the default)
    #[arg(short = 'e', long)]
    debug: bool,
    /// Current speed, as the kernel believes
    #[arg(short, long)]
    freq: bool,
    /// Current speed, as the hardware reports
    #[arg(short = 'w', long)]
    hwfreq: bool,
    /// Lowest and highest speed of the hardware
    #[arg(short = 'l', long)]
    hwlimits: bool,
    /// Driver
    #[arg(short, long)]
    driver: bool,
    /// Limits and governor
    #[arg(short, long)]
    policy: bool,
    /// Governors that may be chosen
    #[arg(short, long)]
    governors: bool,
    /// CPUs that share the clock in hardware
    #[arg(short, long)]
    related_cpus: bool,
    /// CPUs that software switches together
    #[arg(short, long)]
    affected_cpus: bool,
    /// Time at each speed
    #[arg(short, long)]
    stats: bool,
    /// Longest change of speed
    #[arg(short = 'y', long)]
    latency: bool,
    /// Limits and governor of all CPUs as a table
    #[arg(short = 'o', long)]
    proc: bool,
    /// Units for people with the options above
    #[arg(short = 'm', long)]
    human: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
}

#[derive(clap::Args)]
#[command(
    after_help = "A speed is in Hz, kHz (default), MHz, GHz or THz by its unit. Without -c, CPU 0 is meant. \
    -f goes with -c and -r only."
)]
pub(crate) struct CpufreqSetArgs {
    /// CPU number
    #[arg(short, long, value_name = "CPU", default_value_t = 0)]
    cpu: u32,
    /// Lowest speed that the governor may choose
    #[arg(short = 'd', long, value_name = "FREQ")]
    min: Option<String>,
    /// Highest speed that the governor may choose
    #[arg(short = 'u', long, value_name = "FREQ")]
    max: Option<String>,
    /// Governor
    #[arg(short, long, value_name = "GOV")]
    governor: Option<String>,
    /// Speed to hold (governor userspace)
    #[arg(short, long, value_name = "FREQ", conflicts_with_all = ["min", "max", "governor"])]
    freq: Option<String>,
    /// All CPUs that share the clock in hardware
    #[arg(short, long)]
    related: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
}

pub(crate) fn set(args: &CpufreqSetArgs) -> Outcome {
    let of = |flag: &str, given: &Option<String>| {
        let parsed = given.as_deref().map(speed).transpose();
        parsed.map_err(|e| Failure::input(format!("--{flag} {e}")))
    };
    let (min, max, freq) = (of("min", &args.min)?, of("max", &args.max)?, of("freq", &args.freq)?);
    let mut settings = Vec::new();
    settings.extend(args.governor.clone().map(Setting::Governor));
    if min.is_some() || max.is_some() {
        settings.push(Setting::Limits(min, max));
    }
    settings.extend(freq.map(Setting::Freq));
    if settings.is_empty() {
        return Err(Failure::input("cpufreq-set: nothing to set; expected -d, -u, -g or -f"));
    }
    let root = args.root.open_to_change()?;
    let inventory = Inventory::read(&*root);
    let mut cpus = CpuSet::from_iter([args.cpu]);
    if !inventory.topology.online.contains(args.cpu) {
        return Err(Failure::input(format!(
            "-c {}: no such CPU, or it is offline; online are {}",
            args.cpu, inventory.topology.online
        )));
    }
    if args.related
        && let Some(policy) = inventory.cpufreq.of(args.cpu)
    {
        cpus = policy.related.and(&inventory.topology.online);
    }
    let plan = plan(&*root, &inventory, &cpus, &settings).map_err(not_planned)?;
    apply(&*root, &args.root.journal()?, &plan, &HoldTime::Kept, false)
}

pub(crate) fn info(args: &CpufreqInfoArgs) -> Outcome {
    let root = args.root.open()?;
    let cpufreq = Cpufreq::read(&*root);
    if cpufreq.policies.value.is_none() {
        return Err(Failure::impossible(format!("cpufreq-info: {}", cpufreq.policies.why_not())));
    }
    let mut out = String::new();
    if args.proc {
        _ = writeln!(out, "          minimum CPU frequency  -  maximum CPU frequency  -  governor");
    }
    let cpus: Vec<u32> = match args.cpu {
        Some(cpu) => vec![cpu],
        None => {
            let all: CpuSet = cpufreq.policies().iter().flat_map(|p| p.affected.iter()).collect();
            all.iter().collect()
        }
    };
    for cpu in cpus {
        let policy = cpufreq.of(cpu).ok_or_else(|| {
            Failure::input(format!("-c {cpu}: no such CPU, or no cpufreq policy drives it"))
        })?;
        match args.proc {
            true => out += &proc_line(cpu, policy),
            false => out += &facts(args, &*root, cpu, policy),
        }
    }
    print(&out)?;
    Ok(0)
}

fn proc_line(cpu: u32, p: &CpufreqPolicy) -> String {
    let (low, high) = p.limits_khz.unwrap_or_default();
    let share = |khz: u64| p.hardware_khz.filter(|(_, top)| *top > 0).map_or(0, |(_, top)| khz * 100 / top);
    let governor = p.governor.as_deref().unwrap_or("?");
    format!(
        "CPU{cpu:3}    {low:9} kHz ({:3} %)  -  {high:9} kHz ({:3} %)  -  {governor}\n",
        share(low),
        share(high)
    )
}

/// What was asked for, bare, or the whole listing.
fn facts(args: &CpufreqInfoArgs, root: &dyn Root, cpu: u32, p: &CpufreqPolicy) -> String {
    let khz = |khz: u64| if args.human { show_khz(khz) } else { khz.to_string() };
    let spaced = |set: &CpuSet| set.iter().map(|c| c.to_string()).collect::<Vec<_>>().join(" ");
    let pair = |(low, high): (u64, u64)| format!("{} {}", khz(low), khz(high));
    let unknown = || "unknown".to_owned();
    let chosen = [
        (args.freq, p.current_khz.map_or_else(unknown, khz)),
        (args.hwfreq, p.hardware_current_khz.map_or_else(unknown, khz)),
        (args.hwlimits, p.hardware_khz.map_or_else(unknown, pair)),
        (args.driver, p.driver.clone().unwrap_or_else(unknown)),
        (
            args.policy,
            format!(
                "{} {}",
                p.limits_khz.map_or_else(unknown, pair),
                p.governor.clone().unwrap_or_else(unknown)
            ),
        ),
        (args.governors, p.governors.join(" ")),
        (args.related_cpus, spaced(&p.related)),
        (args.affected_cpus, spaced(&p.affected)),
        (args.stats, stats(p, args.human)),
        (
            args.latency,
            p.transition_latency_ns
                .map_or_else(unknown, |ns| if args.human { show_ns(ns) } else { ns.to_string() }),
        ),
    ];
    if chosen.iter().any(|(asked, _)| *asked) && !args.debug {
        return chosen.iter().filter(|(asked, _)| *asked).map(|(_, fact)| format!("{fact}\n")).collect();
    }
    listing(root, cpu, p)
}

fn stats(p: &CpufreqPolicy, human: bool) -> String {
    let Some(stats) = &p.stats else { return "no statistics".to_owned() };
    let whole: f64 = stats.time_in_state.iter().map(|(_, s)| s).sum();
    let one = |(khz, s): &(u64, f64)| match human {
        true => format!("{}:{:.2}%", show_khz(*khz), if whole > 0.0 { s / whole * 100.0 } else { 0.0 }),
        // The kernel's own unit.
        false => format!("{khz}:{}", (s * 100.0).round()),
    };
    let mut line = stats.time_in_state.iter().map(one).collect::<Vec<_>>().join(", ");
    if let Some(total) = stats.total_transitions {
        _ = write!(line, "  ({total})");
    }
    if human && !stats.left_out.is_empty() {
        _ = write!(line, "  left out: {}", stats.left_out.join("; "));
    }
    line
}

/// The whole listing for one CPU.
fn listing(root: &dyn Root, cpu: u32, p: &CpufreqPolicy) -> String {
    let mut out = format!("analyzing CPU {cpu}:\n");
    let range = |(low, high): (u64, u64), word: &str| format!("{} {word} {}", show_khz(low), show_khz(high));
    let list = |l: &[u64]| l.iter().map(|k| show_khz(*k)).collect::<Vec<_>>().join(", ");
    _ = writeln!(out, "  driver: {}", p.driver.as_deref().unwrap_or("unknown"));
    _ = writeln!(out, "  CPUs which run at the same hardware frequency: {}", p.related);
    _ = writeln!(out, "  CPUs which need to have their frequency coordinated by software: {}", p.affected);
    if let Some(ns) = p.transition_latency_ns {
        _ = writeln!(out, "  maximum transition latency: {}.", show_ns(ns));
    }
    if let Some(limits) = p.hardware_khz {
        _ = writeln!(out, "  hardware limits: {}", range(limits, "-"));
    }
    if !p.levels_khz.is_empty() {
        _ = writeln!(out, "  available frequency steps: {}", list(&p.levels_khz));
    }
    if !p.governors.is_empty() {
        _ = writeln!(out, "  available cpufreq governors: {}", p.governors.join(", "));
    }
    if let Some(limits) = p.limits_khz {
        _ = writeln!(out, "  current policy: frequency should be within {}.", range(limits, "and"));
    }
    if let Some(governor) = &p.governor {
        _ = writeln!(
            out,
            "                  The governor \"{governor}\" may decide which speed to use within this range."
        );
    }
    match (p.hardware_current_khz, p.current_khz) {
        (Some(khz), _) => {
            _ = writeln!(out, "  current CPU frequency is {} (asserted by call to hardware).", show_khz(khz));
        }
        (None, Some(khz)) => _ = writeln!(out, "  current CPU frequency is {}.", show_khz(khz)),
        (None, None) => {}
    }
    if p.stats.is_some() {
        _ = writeln!(out, "  cpufreq stats: {}", stats(p, true));
    }
    // The study's second check of a speed.
    let bogomips = text(root, "proc/cpuinfo").and_then(|info| {
        let of: Vec<String> = info
            .lines()
            .filter_map(|l| l.split_once(':').filter(|(k, _)| k.trim().eq_ignore_ascii_case("bogomips")))
            .map(|(_, v)| v.trim().to_owned())
            .collect();
        of.get(cpu as usize).or(of.first()).cloned()
    });
    if let Some(bogomips) = bogomips {
        _ = writeln!(out, "  BogoMIPS: {bogomips}");
    }
    out
}
