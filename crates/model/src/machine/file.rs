//! The machine file format.
//!
//! ```toml
//! name = "example"
//! summary = "one core of two speeds"
//! cpu_names = ["i9-9999X"]        # parts of processors' names: recordings made on one are replayed on this machine
//! state = ["kernel 6.12.0"]       # what held while its figures were measured
//! notes = ["..."]                 # told with every answer for this machine, a sentence each
//!
//! [topology]                      # per machine
//! packages = 1
//! clocks = "core"                 # whose clock is its own: "core", "kind" (in a package) or "package"
//! llc = "package"                 # who shares the last-level cache: a "package", or so many cores; "core": nobody
//! source = "its data sheet"       # every table of figures names its source ...
//! confidence = "datasheet"        # ... and how far to trust it: datasheet, device-tree, kernel-table, measured, fitted or guess
//!
//! [[kind]]                        # one table a kind of core
//! name = "core"
//! cores = 1                       # in each package
//! # threads = 2                   # a core
//! # smt_throughput = [1.0, 0.62]  # with 1, 2, ... threads busy: the rate of each, as a share of one that is alone, ...
//! # smt_power = [1.0, 1.15]       # ... and the core's watts, likewise
//! # ipc = 0.6                     # work a cycle, as a share of the strongest kind's
//! source = "..."
//! confidence = "datasheet"
//!
//! [kind.speeds]                   # fastest first
//! mhz = [2000, 1000]
//! busy_w = [8.0, 3.0]             # or volts, with capacitance_nf and leak_a: C V^2 f + I V
//! base_mhz = 1000                 # the highest without boost; else what the boost table leaves to all cores
//! # asked_mhz = [1000]            # the driver can ask for these alone, and the fastest brings the boost (acpi-cpufreq on AMD's)
//! # flat_mhz = 1200               # with volts: below this the voltage falls no more
//! # turbo_volts = 0.08            # with volts: more at each speed above base_mhz
//! # dynamic_power_coefficient = 310 # with volts: the device tree's, in uW/MHz/V^2; what energy-aware placement goes by
//! # effective_min_mhz = 800       # slower speeds are taken and not honoured: the clock stays here
//! # stall_share = 0.6             # of the busy power: what an awake core draws that executes nothing
//! source = "..."
//! confidence = "guess"
//!
//! [kind.transition]
//! stall_us = 20                   # or a from-to matrix: nothing is executed for so long
//! # delay_us = 10                 # from the request to the change
//! # overlap = "defer"             # a request during a change waits for its end; "preempt": it takes its place
//! source = "..."
//! confidence = "measured"
//!
//! # [kind.boost]
//! # max_mhz = [4600, 4500, 4400]  # the highest speed with 1, 2, ... cores awake; the last holds for more
//!
//! # [kind.tstates]                # the clock skips cycles: FreeBSD's relative speeds, powerctl
//! # step_percent = 12.5
//! # loss_percent = 1.0            # work lost beside the share of the skipped cycles
//! # in_speed_table = true         # whether speed policies see them
//! # delay_us = 0
//!
//! [kind.idle]                     # shallowest first; the latency and the residency that pays are the kernel's table
//! states = [{ name = "C1", latency_us = 2, target_us = 4, watts = 0.8 }]
//! # more of a state: entry_us; exit_us, what leaving really takes, and lowest_exit_us, at the lowest speed; lowest_watts, at the lowest
//! # speed where the state keeps the core's voltage
//! source = "..."
//! confidence = "kernel-table"
//!
//! sources.watts = { source = "...", confidence = "guess" }    # one figure of the table from elsewhere
//!
//! [package]
//! uncore_w = 2.0
//! source = "..."
//! confidence = "guess"
//!
//! [platform]
//! watts = 5.0
//! system = "linux"                # its usual one: "linux", "freebsd", "openbsd" ...
//! driver = "intel_pstate-hwp"     # ... that system's driver of the speed ...
//! governors = ["schedutil"]       # ... the governors that its kernel has, where somebody has looked ...
//! default_policy = "hwp:epp=102"  # ... and what it does unless told otherwise, as --policy takes it
//! replaced_policies = ["performance"]   # optional: what wattwise has put that in the place of, the newest first
//! # idle_policy = "menu"
//! # battery_wh = 50
//! # migration_us = 5              # CPU time that a task loses which moves to another core's caches
//! # interrupt_us = 2              # CPU time of a timer's interrupt that wakes a task elsewhere
//! source = "..."
//! confidence = "guess"
//! ```
//!
//! A package's idle state (`idle = [{ name = "PC6", needs = "C6", watts = 1.0, exit_us = 50 }]`) is entered when each of its cores is in
//! the C-state `needs` or deeper; with `every_package = true` when each core of the whole machine is. A kind's first C-state may be called
//! `POLL`: the kernel's loop that looks for work, as Linux has it on x86 (`latency_us = 0`, `target_us = 0`).
//!
//! All other tables are optional:
//!
//! ```toml
//! [wakeup]                        # what it costs that a waker and whom it wakes are apart
//! ipi_us = 0.55                   # an interrupt to another CPU
//! lines = 32                      # cache lines that the woken task reads of what its waker wrote
//! line_ns = [5, 40, 85, 134]      # ... each between threads of a core, cores of a last-level cache, caches of a package, packages
//! source = "..."
//! confidence = "guess"
//!
//! [thermal]                       # of each package
//! ambient_c = 25
//! c_per_w = 0.8                   # degrees above that a watt, in the long run
//! tau_s = 8                       # in which 63 % of a change are there
//! critical_c = 95                 # at which the lowest speed is forced
//! leakage_per_c = 0.004           # share by which cores' watts, given for 50 degrees Celsius, grow with a degree
//! source = "..."
//! confidence = "guess"
//!
//! [uncore]                        # what of a package follows the clock of its fastest core, beside package.uncore_w
//! follow_w = 2.0                  # with that core at its highest speed; in proportion to its clock below
//! step_w = 5.8                    # more while a core runs at step_mhz or faster, ...
//! step_mhz = 2000
//! delay_us = 10000                # ... from so long after the first one does ...
//! hold_us = 20000                 # ... until so long after the last one did
//! votes = "C1"                    # the deepest C-state in which a core's clock still counts; without it the first that is not POLL
//! source = "..."
//! confidence = "fitted"
//!
//! [memory]
//! # modules = 6                   # a package; then the figures are one module's
//! watts = 0.16                    # at rest; without the table the memory is of the platform
//! busy_w = 0.2                    # more for each core at work
//! high_w = 0.36                   # more while the uncore's step is in force
//! self_refresh_w = 0.05           # in the place of watts while the package is in an idle state
//! source = "..."
//! confidence = "fitted"
//!
//! [memory_clock]                  # a memory controller whose clock the kernel sets (devfreq)
//! mhz = [2112, 1560, 1068, 528]   # fastest first
//! watts = 0.6                     # more of the memory at the highest clock than at the lowest; between in proportion
//! follows = 0.7                   # the share of a wait for memory, at the highest clock, that follows the clock
//! core_share = 0.06               # of the highest clock's cycles, those that a core uses which does nothing but wait for memory
//! # poll_ms = 50                  # between two looks of the governor
//! governor = "dmc_ondemand"       # in force unless a policy has another (+dram=performance)
//! source = "..."
//! confidence = "guess"
//!
//! [tick]                          # of the scheduler; without the table 250 Hz, stopped while idle
//! hz = 1000
//! tickless = true
//! cost_us = 1                     # CPU time of each, at the highest speed
//! restart_us = 0.4                # CPU time on the way out of idle where it was stopped: the clock device is programmed again
//! source = "..."
//! confidence = "guess"
//!
//! [autonomous]                    # how hardware that chooses its own speed does so (policies hwp, amd-pstate-epp)
//! period = 1.0                    # of its loop, of the one that is published by EPP
//! full_at_0 = 0.6                 # load that asks for the highest speed, at EPP 0 ...
//! full_at_255 = 0.95              # ... and at EPP 255
//! rise = 1                        # boundaries of the loop that a rise needs
//! drop = 0.16                     # chance that a boundary at which a busy core sleeps drops its speed, ...
//! drop_to = 0.45                  # ... to this share of the highest, ...
//! climb = 7                       # ... from where it takes so many boundaries back
//! source = "..."                  # without the table, these with what is published of two processors
//! confidence = "guess"
//!
//! [epp_ceiling]                   # where a busy core does not reach its highest speed under every preference (policy hwp)
//! from = 102                      # the EPP from which the highest falls, in a straight line, ...
//! at_255 = 0.35                   # ... to this share of it at EPP 255; without the table it does not fall
//! source = "..."
//! confidence = "guess"
//!
//! [power_limit]                   # of each package
//! long_w = 28                     # what the mean over the window may be: Intel's PL1; AMD's PPT, with tau_s = 0
//! tau_s = 28                      # the window; 0: the limit holds at once
//! short_w = 64                    # what may be drawn until the mean is there: PL2; without it anything
//! source = "..."
//! confidence = "datasheet"
//! ```
//!
//! `platform.load_invariant = false`: the scheduler's load counts time alone, not work (Linux before 5.7 on x86).
//!
//! `platform.load_full_cores = 4`: a CPU that is busy at the speed which the boost allows that many cores, or above, counts as fully
//! loaded. Left out it is as Linux 6.12 has it (`arch/x86/kernel/cpu/aperfmperf.c`, `acpi/cppc.c`, `acpi-cpufreq.c`): the boost of four
//! cores on Intel's processors; on AMD's, midway between the highest speed and that without boost; that without boost under
//! acpi-cpufreq on others; elsewhere the highest.
//!
//! Names of kinds, C-states and package states reach command lines (`wattwise set --cstate C6=off`): they are letters, digits and
//! `_.+-`, and do not begin with `-`.
//!
//! Every table of figures has a `source` and a `confidence`. Where some of its figures come from
//! elsewhere, `sources` names them: by key (`watts`), by speed in MHz (`800`), by state (`C3`), or by both
//! (`"C3.watts"`). A
//! figure that the file leaves to its default is listed in [`MachineModel::provenance`] as a guess.
//!
//! No figure is certain. How far it may be off follows from its confidence ([`mod@super::figures`]), unless the
//! file knows better and says so with `range`, in a table or in one of its `sources`:
//!
//! ```toml
//! sources.watts = { source = "a meter of 2 %", confidence = "measured", range = "+-2%" }
//! sources.leak_a = { source = "...", confidence = "fitted", range = [0.5, 0.9] }  # in the figure's own unit
//! ```
//!
//! A range holds 19 of 20 draws. `[low, high]` is for a figure of one value; `"+-0%"` is for a figure that is so by
//! definition and is never drawn.
//!
//! Figures that one measurement has told together hang together: `draws` lists machines that it allows, each by what
//! its figures are multiplied. A draw is then one of these, and what they leave out is drawn apart.
//!
//! ```toml
//! [draws]
//! figures = ["kind.core.idle.C1.watts", "package.uncore_w"]
//! factors = [[1.1, 0.93], [0.95, 1.04]]
//! ```
//!
//! A file with `base = "NAME"` takes that bundled machine and replaces what it says anew, table by table. So does one with a
//! `[sheet]`, a data sheet's few figures ([`mod@crate::estimate::sheet`]), with the machine that they tell of.

use super::bounds::{us, watts, within};
use super::figures::Written;
use super::tables::*;
use super::{
    Apart, Autonomous, CState, Core, CoreKind, Cpu, Domain, EppCeiling, Figure, MAX_IDLE_STATES, MAX_SMT,
    MachineModel, Memory, Overlap, Package, PackageState, PowerLimit, SpeedLevel, Thermal, Tick, Transition,
    builtin, duty, energy_model,
};
use crate::estimate::processor;
use crate::estimate::sheet::Sheet;
use serde::Deserialize;
use std::collections::BTreeSet;
use wattwise_figure::{mistake, one_line, shell, suggest};

/// Logical CPUs that a machine may have.
pub const MAX_CPUS: usize = 1024;
/// Files that may build on each other.
const MAX_BASES: usize = 4;
/// Levels that a kind of core may have.
const MAX_LEVELS: usize = 128;

/// A machine file that cannot be used: one line, naming the file, the place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct MachineError {
    origin: String,
    problem: String,
}

impl MachineError {
    /// What is wrong with the file that `origin` names: for checks that need to know more than machines.
    pub fn new(origin: &str, problem: String) -> MachineError {
        MachineError { origin: origin.into(), problem }
    }
}

/// Reads a machine file; `origin` names it in errors.
///
/// # Errors
/// One line that names the place, what was expected and what to do.
pub fn parse(text: &str, origin: &str) -> Result<MachineModel, MachineError> {
    let fail = |problem: String| MachineError { origin: origin.into(), problem };
    let table = resolve(text, 0).map_err(&fail)?;
    // Only the table knows the path of what is wrong, only the text its line, and that only where
    // nothing came from a base.
    let file = File::deserialize(table.0).map_err(|e| {
        let line = if table.1 { None } else { toml::from_str::<File>(text).err() };
        let line = line
            .and_then(|e| e.span())
            .map_or_else(String::new, |at| format!("line {}: ", mistake::line(text, at.start)));
        let whole = e.to_string();
        let path = whole.rsplit_once("\nin `").and_then(|(_, p)| p.split('`').next()).unwrap_or_default();
        fail(format!(
            "{line}{path}{}{}",
            if path.is_empty() { "" } else { ": " },
            mistake::sentence(e.message())
        ))
    })?;
    // Drawn with the rest, so that an answer names what of it decides.
    let mut file = file;
    if AUTONOMOUS.contains(&file.platform.driver.as_str()) {
        file.autonomous.get_or_insert_with(AutonomousTable::published);
    }
    let mut machine = build(&file).map_err(&fail)?;
    machine.written = Written::new(file, &machine.provenance).map_err(&fail)?;
    Ok(machine)
}

/// What is wrong with a text that is not TOML.
fn place(text: &str, e: &toml::de::Error) -> String {
    mistake::at_line(text, e.span().map(|at| at.start), e.message())
}

/// The file's table, laid over its base's; whether there was one.
fn resolve(text: &str, depth: usize) -> Result<(toml::Table, bool), String> {
    let mut table: toml::Table = text.parse().map_err(|e| place(text, &e))?;
    if let Some(sheet) = table.remove("sheet") {
        return Ok((from_sheet(sheet, table)?, true));
    }
    let Some(base) = table.remove("base") else { return Ok((table, false)) };
    let name = base.as_str().ok_or("base: expected the name of a bundled machine")?;
    if depth >= MAX_BASES {
        return Err(format!("base = '{name}': more than {MAX_BASES} files build on each other"));
    }
    let under = builtin::text(name).ok_or_else(|| {
        format!("base = '{name}': no bundled machine of that name{}", suggest(name, builtin::names()))
    })?;
    let mut result = resolve(under, depth + 1)?.0;
    for (key, value) in table {
        lay_over(&mut result, key, value);
    }
    Ok((result, true))
}

/// A data sheet's machine, with what else the file says laid over.
fn from_sheet(sheet: toml::Value, over: toml::Table) -> Result<toml::Table, String> {
    let toml::Value::Table(sheet) = sheet else { return Err("sheet: expected a table".into()) };
    let text = Sheet::read(sheet).map_err(|e| e.to_string())?.machine_text();
    let mut table: toml::Table = text.parse().map_err(|e| place(&text, &e))?;
    over.into_iter().for_each(|(key, value)| lay_over(&mut table, key, value));
    Ok(table)
}

/// Tables are merged; everything else replaces. A list of kinds is merged in order.
fn lay_over(under: &mut toml::Table, key: String, value: toml::Value) {
    match (under.get_mut(&key), value) {
        (Some(toml::Value::Table(old)), toml::Value::Table(new)) => {
            // A range belongs to its source: another source does not inherit it.
            if new.contains_key("source") {
                old.remove("range");
            }
            new.into_iter().for_each(|(k, v)| lay_over(old, k, v));
        }
        (Some(toml::Value::Array(old)), toml::Value::Array(new))
            if key == "kind" && old.len() == new.len() =>
        {
            for (o, n) in old.iter_mut().zip(new) {
                if let (toml::Value::Table(o), toml::Value::Table(n)) = (o, n) {
                    n.into_iter().for_each(|(k, v)| lay_over(o, k, v));
                }
            }
        }
        (_, value) => {
            under.insert(key, value);
        }
    }
}

fn build(file: &File) -> Result<MachineModel, String> {
    let mut provenance = Vec::new();
    let from = &mut provenance;
    if file.name.trim().is_empty() {
        return Err("name is empty".into());
    }
    file.topology.note("topology", &[], from)?;
    if file.topology.llc.is_none() {
        note_default(from, "topology.llc".into(), "one last-level cache a package");
    }
    let FileKinds { mut kinds, transitions, boosts } = kinds(file, from)?;
    let states: Vec<String> = file.package.idle.iter().map(|s| s.name.clone()).collect();
    file.package.note("package", &states, from)?;
    file.platform.note("platform", &[], from)?;
    let platform = &file.platform;
    let mut or_default = |given: Option<f64>, what: &str, default: f64, reason: &str| {
        given.unwrap_or_else(|| {
            note_default(from, what.into(), reason);
            default
        })
    };
    let migration_us = or_default(
        platform.migration_us,
        "platform.migration_us",
        MIGRATION_US,
        "5 us, some tens of kilobytes of cache loaded anew",
    );
    let interrupt_us = or_default(
        platform.interrupt_us,
        "platform.interrupt_us",
        INTERRUPT_US,
        "2 us, a hard interrupt and a wake-up by another on the recording machine",
    );
    let default_policy = platform.default_policy.clone().unwrap_or_else(|| {
        note_default(from, "platform.default_policy".into(), "schedutil, most Linux distributions' governor");
        DEFAULT_POLICY.into()
    });
    base_speeds(file, &mut kinds, &boosts, from)?;
    full_loads(file, &mut kinds, &boosts)?;
    let apart = apart(file, from)?;
    let thermal = thermal(file, from)?;
    let memory = memory(file, from)?;
    if let Some(t) = &file.memory_clock {
        t.note("memory_clock", &[], from)?;
    }
    if let Some(t) = &file.uncore {
        t.note("uncore", &[], from)?;
    }
    if let Some(t) = &file.autonomous {
        t.note("autonomous", &[], from)?;
    }
    if let Some(t) = &file.epp_ceiling {
        t.note("epp_ceiling", &[], from)?;
    }
    if let Some(t) = &file.power_limit {
        t.note("power_limit", &[], from)?;
    }
    let tick = tick(file, from)?;
    let mut machine = MachineModel {
        name: one_line(&file.name),
        summary: one_line(&file.summary),
        cpus: Vec::new(),
        cores: Vec::new(),
        packages: Vec::new(),
        domains: Vec::new(),
        kinds,
        memory,
        memory_clock: super::memory_clock::of(file)?,
        platform_w: watts("platform.watts", file.platform.watts)?,
        battery_wh: match file.platform.battery_wh {
            None => None,
            Some(wh) => Some(within("platform.battery_wh", wh, 0.1, 1e5, "Wh")?),
        },
        tick,
        migration_ns: us("platform.migration_us", migration_us)?,
        apart,
        interrupt_ns: us("platform.interrupt_us", interrupt_us)?,
        default_idle: file.platform.idle_policy.clone(),
        system: file.platform.system.clone(),
        driver: file.platform.driver.clone(),
        governors: file.platform.governors.clone(),
        default_policy,
        replaced_policies: file.platform.replaced_policies.clone(),
        load_invariant: file.platform.load_invariant.unwrap_or(true),
        autonomous: autonomous(file)?,
        cpu_names: file.cpu_names.clone(),
        state: file.state.iter().map(|s| one_line(s)).collect(),
        notes: file.notes.iter().map(|s| one_line(s)).collect(),
        provenance: Vec::new(),
        written: Written::default(),
    };
    lay_out(file, &mut machine, &transitions, &boosts, thermal)?;
    machine.provenance = provenance;
    Ok(machine)
}

/// The highest speed of each kind without boost: the file's figure, else what the boost table leaves when every core is
/// awake.
fn base_speeds(
    file: &File,
    kinds: &mut [CoreKind],
    boosts: &[Vec<u8>],
    from: &mut Vec<Figure>,
) -> Result<(), String> {
    let cores: usize = file.kind.iter().fold(0, |n, k| n.saturating_add(k.cores));
    for ((k, kind), boost) in file.kind.iter().zip(kinds).zip(boosts) {
        let (fastest, slowest) = (kind.levels[0].khz, kind.levels[kind.levels.len() - 1].khz);
        let what = format!("kind.{}.speeds.base_mhz", k.name);
        kind.base_khz = match (k.speeds.base_mhz, boost.get(cores).or(boost.last())) {
            (Some(mhz), _) => {
                let (low, high) = (f64::from(slowest) / 1e3, f64::from(fastest) / 1e3);
                (within(&what, mhz, low, high, "MHz")? * 1e3).round() as u32
            }
            (None, Some(&level)) => {
                note_default(from, what, "the speed that the boost table leaves with every core awake");
                kind.levels[usize::from(level)].khz
            }
            (None, None) => fastest,
        };
    }
    Ok(())
}

/// At which speed the scheduler's load takes a busy CPU of each kind for fully loaded.
fn full_loads(file: &File, kinds: &mut [CoreKind], boosts: &[Vec<u8>]) -> Result<(), String> {
    let cores = match file.platform.load_full_cores {
        Some(0) => return Err("platform.load_full_cores = 0: expected 1 or more cores at work".into()),
        given => given,
    };
    let driver = file.platform.driver.as_str();
    let names = || file.cpu_names.iter().chain([&file.name]);
    let is_amd = driver.starts_with("amd") || names().any(|name| processor::is_amd(name));
    for (kind, boost) in kinds.iter_mut().zip(boosts) {
        let with = |cores: usize| boost.get(cores).or(boost.last()).map(|&l| kind.levels[usize::from(l)].khz);
        let fastest = kind.levels[0].khz;
        let load_full = match (cores, driver) {
            (Some(cores), _) => with(cores),
            (None, _) if is_amd => Some(u32::midpoint(kind.base_khz, fastest)),
            (None, "acpi-cpufreq") => Some(kind.base_khz),
            (None, driver) if driver.starts_with("intel") => with(4),
            (None, _) => None,
        };
        kind.load_full_khz = load_full.unwrap_or(fastest);
    }
    Ok(())
}

/// What distance costs a wake-up, and where its figures come from.
fn apart(file: &File, from: &mut Vec<Figure>) -> Result<Apart, String> {
    let given = file.wakeup.as_ref();
    if let Some(t) = given {
        t.note("wakeup", &[], from)?;
    }
    let mut missing = |what: &str, is_given: bool, reason: &str| {
        if !is_given {
            note_default(from, format!("wakeup.{what}"), reason);
        }
    };
    let ipi_us = given.and_then(|t| t.ipi_us);
    missing(
        "ipi_us",
        ipi_us.is_some(),
        "0.55 us, 1600 cycles at 2.9 GHz (LKML, February 2012: 1200 to 2000 on Westmere)",
    );
    let lines = given.and_then(|t| t.lines);
    missing("lines", lines.is_some(), "32: a message, its queue, fields of both tasks and of the run queue");
    let line_ns = given.and_then(|t| t.line_ns);
    let measured = "5, 40, 85 and 134 ns (nviennot, core-to-core-latency: threads of a core 4 to 8, one cache 17 to 51, \
                    two caches 80 to 107, two sockets 108 to 197)";
    missing("line_ns", line_ns.is_some(), measured);
    let line_ns = line_ns.unwrap_or(LINE_NS);
    if line_ns.windows(2).any(|w| w[1] < w[0]) {
        return Err("wakeup.line_ns: what is farther takes no less time".into());
    }
    line_ns.iter().try_for_each(|&ns| within("wakeup.line_ns", ns, 0.0, 10_000.0, "ns").map(drop))?;
    Ok(Apart {
        ipi_ns: us("wakeup.ipi_us", ipi_us.unwrap_or(IPI_US))?,
        lines: within("wakeup.lines", lines.unwrap_or(LINES), 0.0, 1e6, "")?,
        line_ns: [0.0, line_ns[0], line_ns[1], line_ns[2], line_ns[3]],
    })
}

/// Power of the memory, and where its figures come from.
pub(super) fn memory(file: &File, from: &mut Vec<Figure>) -> Result<Memory, String> {
    let Some(m) = &file.memory else { return Ok(Memory::default()) };
    m.note("memory", &[], from)?;
    let modules = within("memory.modules", m.modules.unwrap_or(1.0), 1.0, 1024.0, "")?;
    let each = |what: &str, w: f64| watts(what, w).map(|w| w * modules);
    let asleep = m.self_refresh_w.unwrap_or(m.watts);
    if asleep > m.watts {
        return Err(format!("memory.self_refresh_w = {asleep}: expected at most watts = {}", m.watts));
    }
    if m.high_w > 0.0 && file.uncore.as_ref().is_none_or(|u| u.step_mhz.is_none()) {
        return Err("memory.high_w: the memory follows the uncore's step: give [uncore] with step_mhz".into());
    }
    Ok(Memory {
        rest_w: each("memory.watts", m.watts)?,
        busy_w: watts("memory.busy_w", m.busy_w)?,
        high_w: each("memory.high_w", m.high_w)?,
        asleep_less_w: each("memory.self_refresh_w", m.watts - asleep)?,
    })
}

/// The thermal model, and where its figures come from.
pub(super) fn thermal(file: &File, from: &mut Vec<Figure>) -> Result<Thermal, String> {
    Ok(match &file.thermal {
        // Without figures nothing ever gets hot.
        None => Thermal { ambient_c: 25.0, c_per_w: 0.0, tau_s: 1.0, critical_c: 1000.0, leakage_per_c: 0.0 },
        Some(t) => {
            t.note("thermal", &[], from)?;
            Thermal {
                ambient_c: within("thermal.ambient_c", t.ambient_c, -60.0, 100.0, "C")?,
                c_per_w: within("thermal.c_per_w", t.c_per_w, 0.0, 1000.0, "C/W")?,
                tau_s: within("thermal.tau_s", t.tau_s, 0.001, 1e6, "s")?,
                critical_c: within("thermal.critical_c", t.critical_c, t.ambient_c + 1.0, 1000.0, "C")?,
                leakage_per_c: within("thermal.leakage_per_c", t.leakage_per_c, 0.0, 0.05, "a degree")?,
            }
        }
    })
}

/// How its hardware chooses its own speed.
pub(super) fn autonomous(file: &File) -> Result<Autonomous, String> {
    let epp_ceiling = match &file.epp_ceiling {
        None => None,
        Some(t) => Some(EppCeiling {
            from: within("epp_ceiling.from", t.from, 0.0, 254.0, "")?,
            at_255: within("epp_ceiling.at_255", t.at_255, 0.05, 1.0, "")?,
        }),
    };
    let Some(t) = &file.autonomous else { return Ok(Autonomous { epp_ceiling, ..Autonomous::default() }) };
    let share = |what: &str, value: f64| within(&format!("autonomous.{what}"), value, 0.0, 1.0, "");
    let full_at = (share("full_at_0", t.full_at_0)?, share("full_at_255", t.full_at_255)?);
    Ok(Autonomous {
        period: within("autonomous.period", t.period, 0.05, 20.0, "")?,
        full_at: (full_at.0.max(0.05), full_at.1.max(0.05)),
        rise: within("autonomous.rise", t.rise, 0.5, 20.0, "")?,
        drop: share("drop", t.drop)?,
        drop_to: share("drop_to", t.drop_to)?,
        climb: within("autonomous.climb", t.climb, 0.5, 200.0, "")?,
        epp_ceiling,
    })
}

/// A package's power limits.
pub(super) fn power_limit(file: &File) -> Result<Option<PowerLimit>, String> {
    let Some(t) = &file.power_limit else { return Ok(None) };
    let long_w = within("power_limit.long_w", t.long_w, 0.1, 10_000.0, "W")?;
    let short_w = match t.short_w {
        None => f64::INFINITY,
        Some(w) => within("power_limit.short_w", w, long_w, 10_000.0, "W (long_w is the lower end)")?,
    };
    Ok(Some(PowerLimit { long_w, tau_s: within("power_limit.tau_s", t.tau_s, 0.0, 1000.0, "s")?, short_w }))
}

/// The periodic tick, and where its figures come from.
pub(super) fn tick(file: &File, from: &mut Vec<Figure>) -> Result<Tick, String> {
    Ok(match &file.tick {
        None => {
            let linux = "a current Linux distribution: 250 Hz, stopped while idle, 1 us of work";
            note_default(from, "tick".into(), linux);
            Tick { period_ns: 4_000_000, tickless: true, cost_ns: 1_000, restart_ns: 0 }
        }
        Some(t) => {
            t.note("tick", &[], from)?;
            Tick {
                period_ns: (1e9 / within("tick.hz", t.hz, 1.0, 10_000.0, "Hz")?).round() as u64,
                tickless: t.tickless,
                cost_ns: us("tick.cost_us", t.cost_us)?,
                restart_ns: us("tick.restart_us", t.restart_us.unwrap_or(0.0))?,
            }
        }
    })
}

/// The kinds of core, and what goes with each.
struct FileKinds {
    kinds: Vec<CoreKind>,
    transitions: Vec<Transition>,
    boosts: Vec<Vec<u8>>,
}

fn kinds(file: &File, from: &mut Vec<Figure>) -> Result<FileKinds, String> {
    if file.kind.is_empty() || file.kind.len() > 8 {
        return Err(format!("{} kinds of core: expected 1 to 8", file.kind.len()));
    }
    unique("kind", file.kind.iter().map(|k| &k.name))?;
    let mut all = FileKinds { kinds: Vec::new(), transitions: Vec::new(), boosts: Vec::new() };
    for k in &file.kind {
        note_kind(k, from)?;
        let here = format!("kind.{}", k.name);
        let kind = core_kind(k).map_err(|e| format!("{here}: {e}"))?;
        all.transitions.push(transition(k, &kind).map_err(|e| format!("{here}.transition: {e}"))?);
        all.boosts.push(boost(k, &kind).map_err(|e| format!("{here}.boost: {e}"))?);
        all.kinds.push(kind);
    }
    Ok(all)
}

/// Where a kind's figures come from.
fn note_kind(k: &KindTable, from: &mut Vec<Figure>) -> Result<(), String> {
    let here = format!("kind.{}", k.name);
    k.note(&here, &[], from)?;
    let speeds: Vec<String> = k.speeds.mhz.iter().map(f64::to_string).collect();
    k.speeds.note(&format!("{here}.speeds"), &speeds, from)?;
    if k.speeds.stall_share.is_none() {
        let reason = "0.6, between a loop of PAUSE and a spin loop";
        note_default(from, format!("{here}.speeds.stall_share"), reason);
    }
    if let Some(t) = &k.tstates {
        t.note(&format!("{here}.tstates"), &[], from)?;
    }
    match &k.transition {
        Some(t) => t.note(&format!("{here}.transition"), &[], from)?,
        None if k.speeds.mhz.len() > 1 => {
            note_default(from, format!("{here}.transition"), "changes of speed cost nothing");
        }
        None => {}
    }
    if let Some(b) = &k.boost {
        b.note(&format!("{here}.boost"), &[], from)?;
    }
    let figures =
        ["latency_us", "target_us", "entry_us", "exit_us", "lowest_exit_us", "watts", "lowest_watts"];
    let states = k.idle.states.iter().map(|s| s.name.clone());
    let known: Vec<String> = figures.map(String::from).into_iter().chain(states).collect();
    k.idle.note(&format!("{here}.idle"), &known, from)
}

/// Names that differ, and that a command line takes as they are: policies (`+cmax=C6`) and `wattwise set --cstate` name them.
fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.trim().is_empty() {
            return Err(format!("{what}: a name is empty: give each one a name"));
        }
        if !shell::is_name(name) {
            return Err(format!("{what}: name = '{name}': expected {}", shell::NAME));
        }
        if !seen.insert(name) {
            return Err(format!("{what} {name}: twice: give each a name of its own"));
        }
    }
    Ok(())
}

/// Cores, CPUs, packages and domains.
fn lay_out(
    file: &File,
    m: &mut MachineModel,
    transitions: &[Transition],
    boosts: &[Vec<u8>],
    thermal: Thermal,
) -> Result<(), String> {
    let per_package: usize =
        file.kind.iter().fold(0, |n, k| n.saturating_add(k.cores.saturating_mul(k.threads)));
    let total = per_package.saturating_mul(file.topology.packages);
    if !(1..=MAX_CPUS).contains(&total) {
        return Err(format!("topology: {total} CPUs: expected 1 to {MAX_CPUS}"));
    }
    if file.topology.clocks == Clocks::Package && file.kind.len() > 1 {
        return Err(
            "topology.clocks = \"package\": cores of several kinds cannot share a clock; use \"kind\"".into(),
        );
    }
    let idle = package_states(file, &m.kinds)?;
    let uncore = super::uncore::of(file, &m.kinds)?;
    let limit = power_limit(file)?;
    let cores_a_package: usize = file.kind.iter().map(|k| k.cores).sum();
    let sharing = match file.topology.llc {
        None | Some(Llc::Named(LlcWord::Package)) => cores_a_package,
        Some(Llc::Named(LlcWord::Core)) => 1,
        Some(Llc::Cores(n)) if (1..=cores_a_package).contains(&n) => n,
        Some(Llc::Cores(n)) => {
            return Err(format!(
                "topology.llc = {n}: expected 1 to {cores_a_package} cores, \"core\" or \"package\""
            ));
        }
    };
    for p in 0..file.topology.packages {
        let mut package = Package {
            cores: Vec::new(),
            domains: Vec::new(),
            boosts: boosts.iter().any(|b| !b.is_empty()),
            uncore_w: watts("package.uncore_w", file.package.uncore_w)?,
            idle: idle.clone(),
            thermal,
            uncore: uncore.clone(),
            limit,
        };
        let first_llc = p * cores_a_package.div_ceil(sharing);
        for (k, kind) in file.kind.iter().enumerate() {
            for c in 0..kind.cores {
                let core = m.cores.len() as u16;
                let llc = (first_llc + package.cores.len() / sharing) as u16;
                if c == 0 || file.topology.clocks == Clocks::Core {
                    package.domains.push(m.domains.len() as u16);
                    m.domains.push(Domain {
                        cores: Vec::new(),
                        kind: k as u8,
                        transition: transitions[k].clone(),
                        boost: boosts[k].clone(),
                    });
                }
                let domain = m.domains.len() as u16 - 1;
                let first = m.cpus.len() as u16;
                let cpus: Vec<u16> = (first..first + kind.threads as u16).collect();
                let cpu = Cpu { core, package: p as u16, llc, domain, kind: k as u8 };
                m.cpus.extend(cpus.iter().map(|_| cpu));
                m.cores.push(Core { cpus, package: p as u16, domain, kind: k as u8 });
                m.domains[usize::from(domain)].cores.push(core);
                package.cores.push(core);
            }
        }
        m.packages.push(package);
    }
    Ok(())
}

pub(super) fn package_states(file: &File, kinds: &[CoreKind]) -> Result<Vec<PackageState>, String> {
    let mut states: Vec<PackageState> = Vec::new();
    if file.package.idle.len() > MAX_IDLE_STATES {
        return Err(format!("package.idle: expected at most {MAX_IDLE_STATES} states"));
    }
    unique("package.idle", file.package.idle.iter().map(|s| &s.name))?;
    for s in &file.package.idle {
        // The names are the first kind's; other kinds count by depth.
        let needs = kinds[0].idle.iter().position(|c| c.name == s.needs).ok_or_else(|| {
            format!("package.idle {}: needs = '{}': no such C-state of the first kind", s.name, s.needs)
        })? as u8;
        if let Some(shallow) = kinds.iter().find(|k| k.idle.len() <= usize::from(needs)) {
            return Err(format!(
                "package.idle {}: needs = '{}', state {needs} of its kind: kind {} has only {}, so that it is never reached",
                s.name,
                s.needs,
                shallow.name,
                shallow.idle.len()
            ));
        }
        let state = PackageState {
            name: s.name.clone(),
            needs,
            watts: watts("package.idle.watts", s.watts)?,
            exit_ns: us("package.idle.exit_us", s.exit_us)?,
            every_package: s.every_package,
        };
        let above = states.last().map_or(file.package.uncore_w, |p| p.watts);
        let shallower = |p: &PackageState| p.needs > state.needs || p.exit_ns > state.exit_ns;
        if state.watts > above || states.last().is_some_and(shallower) {
            return Err(format!(
                "package.idle {}: deeper states come later, need no less, take no less time to leave and draw no more",
                s.name
            ));
        }
        states.push(state);
    }
    Ok(states)
}

pub(super) fn core_kind(k: &KindTable) -> Result<CoreKind, String> {
    if !(1..=MAX_SMT).contains(&k.threads) {
        return Err(format!("threads = {}: expected 1 to {MAX_SMT}", k.threads));
    }
    if k.cores == 0 {
        return Err("cores = 0: expected at least 1".into());
    }
    within("ipc", k.ipc, 0.01, 100.0, "")?;
    let smt = |name: &str, given: &[f64], low: f64, high: f64| {
        if k.threads == 1 && given.is_empty() {
            return Ok(vec![1.0]);
        }
        if given.len() != k.threads || given[0] != 1.0 {
            return Err(format!("{name}: expected {} figures, the first 1.0", k.threads));
        }
        given.iter().try_for_each(|&v| within(name, v, low, high, "").map(drop))?;
        Ok(given.to_vec())
    };
    let mut levels = levels(k)?;
    let idle = idle_states(k, &levels)?;
    energy_model::fill(&k.speeds, &mut levels, &idle)?;
    Ok(CoreKind {
        name: k.name.clone(),
        ipc: k.ipc,
        smt_throughput: smt("smt_throughput", &k.smt_throughput, 0.1, 1.0)?,
        smt_power: smt("smt_power", &k.smt_power, 1.0, 4.0)?,
        idle,
        base_khz: levels[0].khz,
        load_full_khz: levels[0].khz,
        asked_khz: asked_khz(&k.speeds, &levels)?,
        levels,
    })
}

/// The levels that a driver can ask for.
fn asked_khz(s: &SpeedsTable, levels: &[SpeedLevel]) -> Result<Vec<u32>, String> {
    if s.asked_mhz.windows(2).any(|m| m[1] >= m[0]) {
        return Err("speeds.asked_mhz: expected the fastest first".into());
    }
    let khz = |mhz: &f64| {
        let khz = (mhz * 1e3).round() as u32;
        let is_level = levels.iter().any(|l| l.khz == khz);
        is_level.then_some(khz).ok_or_else(|| format!("speeds.asked_mhz {mhz}: not one of the speeds"))
    };
    s.asked_mhz.iter().map(khz).collect()
}

/// Power of a busy core at each of the file's speeds, in watts: as given, or by its voltage.
pub(super) fn busy_w(s: &SpeedsTable) -> Result<Vec<f64>, String> {
    if s.volts.is_empty() && (s.capacitance_nf != 0.0 || s.leak_a != 0.0) {
        return Err("speeds: capacitance_nf and leak_a go with volts: give volts, or busy_w alone".into());
    }
    match (s.busy_w.len(), s.volts.len()) {
        (n, 0) if n == s.mhz.len() => Ok(s.busy_w.clone()),
        (0, n) if n == s.mhz.len() => {
            within("speeds.capacitance_nf", s.capacitance_nf, 0.001, 1000.0, "nF")?;
            within("speeds.leak_a", s.leak_a, 0.0, 1000.0, "A")?;
            s.volts.iter().try_for_each(|&v| within("speeds.volts", v, 0.1, 5.0, "V").map(drop))?;
            if s.volts.windows(2).any(|v| v[1] > v[0]) {
                return Err("speeds.volts: a slower speed never needs more volts".into());
            }
            let volts = volts(s)?;
            let watts = |(v, mhz): (&f64, &f64)| s.capacitance_nf * 1e-3 * v * v * mhz + s.leak_a * v;
            Ok(volts.iter().zip(&s.mhz).map(watts).collect())
        }
        _ => Err(format!(
            "speeds: expected busy_w or volts (with capacitance_nf), {} figures of the one, none of the other",
            s.mhz.len()
        )),
    }
}

/// A figure at a speed between the file's, in a straight line; at the ends the end's.
fn between(mhz: &[f64], values: &[f64], at: f64) -> f64 {
    match mhz.iter().position(|&m| m <= at) {
        None => values.last().copied().unwrap_or_default(),
        Some(0) => values[0],
        Some(i) => values[i] + (values[i - 1] - values[i]) * (at - mhz[i]) / (mhz[i - 1] - mhz[i]),
    }
}

/// The voltage at each speed: as given, with its flat end and what turbo adds. Measured tables have both: a voltage that no longer
/// falls from some speed on, and a cliff above the nominal speed (Feum/nornir, the voltages of a Xeon by speed and busy cores).
fn volts(s: &SpeedsTable) -> Result<Vec<f64>, String> {
    let turbo = within("speeds.turbo_volts", s.turbo_volts, 0.0, 1.0, "V")?;
    if turbo > 0.0 && s.base_mhz.is_none() {
        return Err(
            "speeds.turbo_volts: expected base_mhz beside it, the speed above which it is added".into()
        );
    }
    let base = s.base_mhz.unwrap_or(f64::MAX);
    let flat = s.flat_mhz.map(|mhz| within("speeds.flat_mhz", mhz, 1.0, 10_000.0, "MHz")).transpose()?;
    let least = flat.map_or(0.0, |mhz| between(&s.mhz, &s.volts, mhz));
    let of = |(&v, &mhz): (&f64, &f64)| v.max(least) + if mhz > base { turbo } else { 0.0 };
    Ok(s.volts.iter().zip(&s.mhz).map(of).collect())
}

fn levels(k: &KindTable) -> Result<Vec<SpeedLevel>, String> {
    let s = &k.speeds;
    if !(1..=MAX_LEVELS).contains(&s.mhz.len()) {
        return Err(format!("speeds.mhz: expected 1 to {MAX_LEVELS} speeds"));
    }
    let stall_share = within("speeds.stall_share", s.stall_share.unwrap_or(STALL_SHARE), 0.0, 1.0, "")?;
    let mut busy_w = busy_w(s)?;
    let least = s.effective_min_mhz.map(|mhz| within("speeds.effective_min_mhz", mhz, 1.0, 10_000.0, "MHz"));
    let least = least.transpose()?.unwrap_or(0.0).min(s.mhz[0]);
    let held_w = between(&s.mhz, &busy_w, least);
    busy_w.iter_mut().zip(&s.mhz).filter(|(_, mhz)| **mhz < least).for_each(|(w, _)| *w = held_w);
    let mut levels: Vec<SpeedLevel> = Vec::new();
    for (&mhz, &busy) in s.mhz.iter().zip(&busy_w) {
        within("speeds.mhz", mhz, 1.0, 10_000.0, "MHz")?;
        watts("speeds.busy_w", busy)?;
        let level = SpeedLevel {
            khz: (mhz * 1e3).round() as u32,
            cycles_per_ns: mhz.max(least) * 1e-3,
            busy_w: busy,
            stall_w: busy * stall_share,
            model_uw: 0,
            throttled: false,
        };
        if let Some(last) = levels.last() {
            if level.khz >= last.khz {
                return Err(format!(
                    "speeds.mhz: {mhz} after {}: fastest first, none twice",
                    last.khz / 1000
                ));
            }
            if level.busy_w > last.busy_w {
                return Err(format!("speeds: {mhz} MHz draws more than {} MHz", last.khz / 1000));
            }
        }
        levels.push(level);
    }
    if let Some(t) = &k.tstates
        && t.in_speed_table
    {
        let halted = k.idle.states.first().ok_or("idle.states: expected at least one state")?;
        let stopped = idle_watts(halted, &levels);
        if ![6.25, 12.5].contains(&t.step_percent) {
            return Err(format!("tstates.step_percent = {}: hardware has 12.5 or 6.25", t.step_percent));
        }
        let loss = within("tstates.loss_percent", t.loss_percent, 0.0, 50.0, "%")? / 100.0;
        levels = duty::expand(&levels, &stopped, t.step_percent / 100.0, loss);
        if levels.len() > MAX_LEVELS {
            return Err(format!("tstates: {} speeds with them: expected at most {MAX_LEVELS}", levels.len()));
        }
    }
    Ok(levels)
}

/// A C-state's power at each level: it follows the P-state's voltage, of which the busy power tells
/// enough; throttling leaves the voltage as it is.
fn idle_watts(s: &StateTable, levels: &[SpeedLevel]) -> Vec<f64> {
    let (high, low) = (s.watts, s.lowest_watts.unwrap_or(s.watts));
    let pstates = || levels.iter().filter(|l| !l.throttled).map(|l| l.busy_w);
    let (top, bottom) = (pstates().fold(f64::MIN, f64::max), pstates().fold(f64::MAX, f64::min));
    let mut now = high;
    let follow = |l: &SpeedLevel| {
        if !l.throttled {
            let share = if top > bottom { (l.busy_w - bottom) / (top - bottom) } else { 1.0 };
            now = low + (high - low) * share;
        }
        now
    };
    levels.iter().map(follow).collect()
}

/// Time to leave a C-state at each level, in ns: what the core executes on its way out takes longer
/// on a slow clock, so that between the two ends it goes with the clock's period.
fn exit_ns(high: u64, low: u64, levels: &[SpeedLevel]) -> Vec<u64> {
    let pstates = || levels.iter().filter(|l| !l.throttled).map(|l| 1.0 / f64::from(l.khz));
    let (short, long) = (pstates().fold(f64::MAX, f64::min), pstates().fold(f64::MIN, f64::max));
    let mut now = high;
    let follow = |l: &SpeedLevel| {
        if !l.throttled && long > short {
            let share = (1.0 / f64::from(l.khz) - short) / (long - short);
            now = high + ((low - high) as f64 * share).round() as u64;
        }
        now
    };
    levels.iter().map(follow).collect()
}

fn idle_states(k: &KindTable, levels: &[SpeedLevel]) -> Result<Vec<CState>, String> {
    let given = &k.idle.states;
    if !(1..=MAX_IDLE_STATES).contains(&given.len()) {
        return Err(format!("idle.states: expected 1 to {MAX_IDLE_STATES} states"));
    }
    unique("idle", given.iter().map(|s| &s.name))?;
    let mut states: Vec<CState> = Vec::new();
    for s in given {
        let name = &s.name;
        let latency_ns = us(&format!("idle {name}.latency_us"), s.latency_us)?;
        let target_ns = us(&format!("idle {name}.target_us"), s.target_us)?;
        let entry_ns = us(&format!("idle {name}.entry_us"), s.entry_us)?;
        let fast = match s.exit_us {
            Some(x) => us(&format!("idle {name}.exit_us"), x)?,
            None => latency_ns.saturating_sub(entry_ns),
        };
        let slow = match s.lowest_exit_us {
            Some(x) => us(&format!("idle {name}.lowest_exit_us"), x)?,
            None => fast,
        };
        if slow < fast {
            return Err(format!(
                "idle {name}: lowest_exit_us is under the exit at the highest speed: a slow clock is not quicker"
            ));
        }
        if target_ns < slow {
            return Err(format!(
                "idle {name}: target_us {} is under its exit time: less is never worth it",
                s.target_us
            ));
        }
        let high = watts(&format!("idle {name}.watts"), s.watts)?;
        let low = watts(&format!("idle {name}.lowest_watts"), s.lowest_watts.unwrap_or(high))?;
        if low > high {
            return Err(format!("idle {name}: lowest_watts {low} is over watts {high}"));
        }
        let state = CState {
            name: name.clone(),
            entry_ns,
            exit_ns: exit_ns(fast, slow, levels),
            target_ns,
            latency_ns,
            watts: idle_watts(s, levels),
        };
        if let Some(last) = states.last() {
            let deeper = state.latency_ns >= last.latency_ns
                && state.target_ns >= last.target_ns
                && state.watts.iter().zip(&last.watts).all(|(a, b)| a <= b);
            if !deeper {
                return Err(format!(
                    "idle {name}: deeper states come later, take no less time and draw no more than {}",
                    last.name
                ));
            }
        } else if state.watts.iter().zip(levels).any(|(w, l)| *w > l.busy_w) {
            return Err(format!("idle {name}: draws more than a busy core"));
        }
        states.push(state);
    }
    Ok(states)
}

pub(super) fn transition(k: &KindTable, kind: &CoreKind) -> Result<Transition, String> {
    let n = kind.levels.len();
    let Some(t) = &k.transition else {
        return Ok(Transition { stall_ns: vec![0; n * n], delay_ns: 0, overlap: Overlap::Defer });
    };
    let stall_ns = match &t.stall_us {
        None => vec![0; n * n],
        Some(Stall::Same(x)) => {
            let ns = us("stall_us", *x)?;
            (0..n * n).map(|i| if i / n == i % n { 0 } else { ns }).collect()
        }
        Some(Stall::Matrix(rows)) => {
            let pstates: Vec<usize> = (0..n).filter(|&l| !kind.levels[l].throttled).collect();
            if rows.len() != pstates.len() || rows.iter().any(|r| r.len() != rows.len()) {
                return Err(format!(
                    "stall_us: expected {0} rows of {0} figures, from and to, fastest first",
                    pstates.len()
                ));
            }
            let mut flat = vec![0; n * n];
            // A throttled speed changes as its P-state does; throttling itself has a delay of its own.
            if (0..rows.len()).any(|i| rows[i][i] != 0.0) {
                return Err(
                    "stall_us: from a speed to itself nothing changes: write 0 on the diagonal".into()
                );
            }
            let base = |l: usize| pstates.iter().rposition(|&p| p <= l).unwrap_or(0);
            let throttle = us("tstates.delay_us", k.tstates.as_ref().map_or(0.0, |t| t.delay_us))?;
            for from in 0..n {
                for to in 0..n {
                    let same = base(from) == base(to) && from != to;
                    let matrix = us("stall_us", rows[base(from)][base(to)])?;
                    flat[from * n + to] = if same { throttle } else { matrix };
                }
            }
            flat
        }
    };
    Ok(Transition {
        stall_ns,
        delay_ns: us("delay_us", t.delay_us)?,
        overlap: match t.overlap {
            OverlapWord::Defer => Overlap::Defer,
            OverlapWord::Preempt => Overlap::Preempt,
        },
    })
}

fn boost(k: &KindTable, kind: &CoreKind) -> Result<Vec<u8>, String> {
    let Some(b) = &k.boost else { return Ok(Vec::new()) };
    if b.max_mhz.is_empty() {
        return Err("max_mhz is empty".into());
    }
    if b.max_mhz.windows(2).any(|m| m[1] > m[0]) {
        return Err("max_mhz: more awake cores never allow a higher speed".into());
    }
    let index = |mhz: &f64| {
        let khz = (mhz * 1e3).round() as u32;
        kind.levels
            .iter()
            .position(|l| l.khz == khz)
            .map(|i| i as u8)
            .ok_or_else(|| format!("max_mhz {mhz}: not one of the speeds"))
    };
    // Entry 0: no core awake, the same as one.
    std::iter::once(&b.max_mhz[0]).chain(&b.max_mhz).map(index).collect()
}

#[cfg(test)]
mod tests;
