//! The machine file format.
//!
//! ```toml
//! name = "example"
//! summary = "one core of two speeds"
//!
//! [topology]                      # per machine
//! packages = 1
//! clocks = "core"                 # whose clock is its own: "core", "kind" (in a package) or "package"
//! source = "its data sheet"       # every table of figures names its source ...
//! confidence = "datasheet"        # ... and how far to trust it
//!
//! [[kind]]                        # one table a kind of core
//! name = "core"
//! cores = 1                       # in each package
//! source = "..."
//! confidence = "datasheet"
//!
//! [kind.speeds]                   # fastest first
//! mhz = [2000, 1000]
//! busy_w = [8.0, 3.0]             # or volts, with capacitance_nf and leak_a: C V^2 f + I V
//! source = "..."
//! confidence = "guess"
//!
//! [kind.transition]
//! stall_us = 20                   # or a from-to matrix
//! source = "..."
//! confidence = "measured"
//!
//! [kind.idle]                     # shallowest first
//! states = [{ name = "C1", latency_us = 2, target_us = 4, watts = 0.8 }]
//! source = "..."
//! confidence = "kernel-table"
//!
//! [package]
//! uncore_w = 2.0
//! source = "..."
//! confidence = "guess"
//!
//! [platform]
//! watts = 5.0
//! source = "..."
//! confidence = "guess"
//! ```
//!
//! A file with `base = "NAME"` takes that bundled machine and replaces what it says anew, table by table.

use super::{
    CState, Confidence, Core, CoreKind, Cpu, Domain, Figure, MAX_IDLE_STATES, MAX_SMT, Machine, Overlap,
    Package, PackageState, SpeedLevel, Thermal, Tick, Transition, builtin,
};
use serde::Deserialize;

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

/// Where a table's figures come from.
#[derive(Clone, Deserialize)]
struct Origin {
    source: String,
    confidence: Trust,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Trust {
    Datasheet,
    DeviceTree,
    KernelTable,
    Measured,
    Fitted,
    Guess,
}

impl From<Trust> for Confidence {
    fn from(t: Trust) -> Confidence {
        match t {
            Trust::Datasheet => Confidence::Datasheet,
            Trust::DeviceTree => Confidence::DeviceTree,
            Trust::KernelTable => Confidence::KernelTable,
            Trust::Measured => Confidence::Measured,
            Trust::Fitted => Confidence::Fitted,
            Trust::Guess => Confidence::Guess,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    summary: String,
    topology: TopologyTable,
    kind: Vec<KindTable>,
    package: PackageTable,
    #[serde(default)]
    thermal: Option<ThermalTable>,
    platform: PlatformTable,
    #[serde(default)]
    tick: Option<TickTable>,
}

/// `serde` cannot both flatten and deny unknown fields, so each table repeats the two.
macro_rules! table {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field:meta])* $key:ident : $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            $($(#[$field])* $key: $ty,)*
            source: String,
            confidence: Trust,
        }
        impl $name {
            fn origin(&self) -> Origin {
                Origin { source: self.source.clone(), confidence: self.confidence }
            }
        }
    };
}

table! {
    struct TopologyTable {
        packages: usize,
        clocks: Clocks,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Clocks {
    Core,
    Kind,
    Package,
}

table! {
    struct KindTable {
        name: String,
        cores: usize,
        #[serde(default = "one_usize")]
        threads: usize,
        #[serde(default = "one")]
        ipc: f64,
        #[serde(default)]
        smt_throughput: Vec<f64>,
        #[serde(default)]
        smt_power: Vec<f64>,
        speeds: SpeedsTable,
        #[serde(default)]
        tstates: Option<TstatesTable>,
        #[serde(default)]
        transition: Option<TransitionTable>,
        #[serde(default)]
        boost: Option<BoostTable>,
        idle: IdleTable,
    }
}

fn one_usize() -> usize {
    1
}
fn one() -> f64 {
    1.0
}

table! {
    struct SpeedsTable {
        mhz: Vec<f64>,
        #[serde(default)]
        busy_w: Vec<f64>,
        #[serde(default)]
        volts: Vec<f64>,
        #[serde(default)]
        capacitance_nf: f64,
        #[serde(default)]
        leak_a: f64,
        /// Share of the busy power that an awake core draws while it executes nothing.
        #[serde(default = "stall_share")]
        stall_share: f64,
    }
}

/// A core that waits with its clock running draws some 60 % of its busy power (the clock tree and the
/// front end): between the 44 % of a loop of PAUSE and the full power of a spin loop.
fn stall_share() -> f64 {
    0.6
}

table! {
    struct TstatesTable {
        step_percent: f64,
        /// Work lost beyond the duty cycle's own share, of the nominal.
        loss_percent: f64,
        /// Whether the speeds appear in the table that policies see.
        in_speed_table: bool,
    }
}

table! {
    struct TransitionTable {
        #[serde(default)]
        delay_us: f64,
        #[serde(default)]
        stall_us: Option<Stall>,
        #[serde(default = "defer")]
        overlap: OverlapWord,
    }
}

fn defer() -> OverlapWord {
    OverlapWord::Defer
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Stall {
    Same(f64),
    Matrix(Vec<Vec<f64>>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OverlapWord {
    Defer,
    Preempt,
}

table! {
    struct BoostTable {
        /// Highest speed with 1, 2, ... awake cores; the last entry holds for more.
        max_mhz: Vec<f64>,
    }
}

table! {
    struct IdleTable {
        states: Vec<StateTable>,
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    name: String,
    latency_us: f64,
    target_us: f64,
    #[serde(default)]
    entry_us: f64,
    /// Real time to leave where it differs from the table's worst case.
    exit_us: Option<f64>,
    /// At the highest level.
    watts: f64,
    /// At the lowest level, where the state keeps the core's voltage; between in proportion to the busy power.
    lowest_watts: Option<f64>,
}

table! {
    struct PackageTable {
        uncore_w: f64,
        #[serde(default)]
        idle: Vec<PackageStateTable>,
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageStateTable {
    name: String,
    /// The C-state that every core must have reached.
    needs: String,
    watts: f64,
    exit_us: f64,
}

table! {
    struct ThermalTable {
        ambient_c: f64,
        c_per_w: f64,
        tau_s: f64,
        critical_c: f64,
    }
}

table! {
    struct PlatformTable {
        watts: f64,
        battery_wh: Option<f64>,
        #[serde(default = "menu")]
        idle_policy: String,
        #[serde(default = "migration")]
        migration_us: f64,
    }
}

fn menu() -> String {
    "menu".into()
}
/// A task that finds another core's cache reloads some tens of kilobytes.
fn migration() -> f64 {
    5.0
}

table! {
    struct TickTable {
        hz: f64,
        tickless: bool,
        cost_us: f64,
    }
}

/// Reads a machine file; `origin` names it in errors.
///
/// # Errors
/// One line that names the place, what was expected and what to do.
pub fn parse(text: &str, origin: &str) -> Result<Machine, MachineError> {
    let fail = |problem: String| MachineError { origin: origin.into(), problem };
    let table = resolve(text, 0).map_err(&fail)?;
    // Errors should name a line, which only the text has: it is parsed as it stands unless it builds on another.
    let file: File = if table.1 {
        File::deserialize(table.0).map_err(|e| fail(e.message().replace('\n', " ")))?
    } else {
        toml::from_str(text).map_err(|e| fail(place(text, &e)))?
    };
    build(&file).map_err(fail)
}

fn place(text: &str, e: &toml::de::Error) -> String {
    let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
    format!("line {line}: {}", e.message().replace('\n', " "))
}

/// The file's table, laid over its base's; whether there was one.
fn resolve(text: &str, depth: usize) -> Result<(toml::Table, bool), String> {
    let mut table: toml::Table = text.parse().map_err(|e| place(text, &e))?;
    let Some(base) = table.remove("base") else { return Ok((table, false)) };
    let name = base.as_str().ok_or("base: expected the name of a bundled machine")?;
    if depth >= MAX_BASES {
        return Err(format!("base = '{name}': more than {MAX_BASES} files build on each other"));
    }
    let under =
        builtin::text(name).ok_or_else(|| format!("base = '{name}': no bundled machine of that name"))?;
    let mut result = resolve(under, depth + 1)?.0;
    for (key, value) in table {
        lay_over(&mut result, key, value);
    }
    Ok((result, true))
}

/// Tables are merged; everything else replaces. A list of kinds is merged in order.
fn lay_over(under: &mut toml::Table, key: String, value: toml::Value) {
    match (under.get_mut(&key), value) {
        (Some(toml::Value::Table(old)), toml::Value::Table(new)) => {
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

/// A figure within bounds, or a sentence.
fn within(what: &str, value: f64, low: f64, high: f64, unit: &str) -> Result<f64, String> {
    if value.is_finite() && (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(format!("{what} = {value}: expected {low} to {high}{}{unit}", if unit.is_empty() { "" } else { " " }))
}

fn watts(what: &str, value: f64) -> Result<f64, String> {
    within(what, value, 0.0, 10_000.0, "W")
}

/// Microseconds to ns.
fn us(what: &str, value: f64) -> Result<u64, String> {
    within(what, value, 0.0, 1e7, "us").map(|v| (v * 1e3).round() as u64)
}

fn build(file: &File) -> Result<Machine, String> {
    let mut provenance = Vec::new();
    let mut note = |what: String, o: Origin| -> Result<(), String> {
        if o.source.trim().is_empty() {
            return Err(format!("{what}.source is empty: name where its figures come from"));
        }
        provenance.push(Figure { what, source: o.source, confidence: o.confidence.into() });
        Ok(())
    };
    if file.name.trim().is_empty() {
        return Err("name is empty".into());
    }
    note("topology".into(), file.topology.origin())?;
    let mut kinds = Vec::new();
    let mut transitions = Vec::new();
    let mut boosts = Vec::new();
    if file.kind.is_empty() || file.kind.len() > 8 {
        return Err(format!("{} kinds of core: expected 1 to 8", file.kind.len()));
    }
    for k in &file.kind {
        let here = format!("kind.{}", k.name);
        note(here.clone(), k.origin())?;
        note(format!("{here}.speeds"), k.speeds.origin())?;
        note(format!("{here}.idle"), k.idle.origin())?;
        if let Some(t) = &k.tstates {
            note(format!("{here}.tstates"), t.origin())?;
        }
        let kind = core_kind(k).map_err(|e| format!("{here}: {e}"))?;
        if let Some(t) = &k.transition {
            note(format!("{here}.transition"), t.origin())?;
        }
        transitions.push(transition(k, &kind).map_err(|e| format!("{here}.transition: {e}"))?);
        if let Some(b) = &k.boost {
            note(format!("{here}.boost"), b.origin())?;
        }
        boosts.push(boost(k, &kind).map_err(|e| format!("{here}.boost: {e}"))?);
        kinds.push(kind);
    }
    note("package".into(), file.package.origin())?;
    note("platform".into(), file.platform.origin())?;
    let thermal = match &file.thermal {
        // Without figures nothing ever gets hot.
        None => Thermal { ambient_c: 25.0, c_per_w: 0.0, tau_s: 1.0, critical_c: 1000.0 },
        Some(t) => {
            note("thermal".into(), t.origin())?;
            Thermal {
                ambient_c: within("thermal.ambient_c", t.ambient_c, -60.0, 100.0, "C")?,
                c_per_w: within("thermal.c_per_w", t.c_per_w, 0.0, 1000.0, "C/W")?,
                tau_s: within("thermal.tau_s", t.tau_s, 0.001, 1e6, "s")?,
                critical_c: within("thermal.critical_c", t.critical_c, t.ambient_c + 1.0, 1000.0, "C")?,
            }
        }
    };
    let tick = match &file.tick {
        // A current Linux distribution: 250 Hz, stopped while idle, about a microsecond of work.
        None => Tick { period_ns: 4_000_000, tickless: true, cost_ns: 1_000 },
        Some(t) => {
            note("tick".into(), t.origin())?;
            Tick {
                period_ns: (1e9 / within("tick.hz", t.hz, 1.0, 10_000.0, "Hz")?).round() as u64,
                tickless: t.tickless,
                cost_ns: us("tick.cost_us", t.cost_us)?,
            }
        }
    };
    let mut machine = Machine {
        name: file.name.clone(),
        summary: file.summary.clone(),
        cpus: Vec::new(),
        cores: Vec::new(),
        packages: Vec::new(),
        domains: Vec::new(),
        kinds,
        platform_w: watts("platform.watts", file.platform.watts)?,
        battery_wh: match file.platform.battery_wh {
            None => None,
            Some(wh) => Some(within("platform.battery_wh", wh, 0.1, 1e5, "Wh")?),
        },
        tick,
        migration_ns: us("platform.migration_us", file.platform.migration_us)?,
        default_idle: file.platform.idle_policy.clone(),
        provenance: Vec::new(),
    };
    lay_out(file, &mut machine, &transitions, &boosts, thermal)?;
    machine.provenance = provenance;
    Ok(machine)
}

/// Cores, CPUs, packages and domains.
fn lay_out(
    file: &File,
    m: &mut Machine,
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
    for p in 0..file.topology.packages {
        let mut package = Package {
            cores: Vec::new(),
            domains: Vec::new(),
            boosts: boosts.iter().any(|b| !b.is_empty()),
            uncore_w: watts("package.uncore_w", file.package.uncore_w)?,
            idle: idle.clone(),
            thermal,
        };
        for (k, kind) in file.kind.iter().enumerate() {
            for c in 0..kind.cores {
                let core = m.cores.len() as u16;
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
                m.cpus.extend(cpus.iter().map(|_| Cpu { core, package: p as u16, domain, kind: k as u8 }));
                m.cores.push(Core { cpus, package: p as u16, domain, kind: k as u8 });
                m.domains[usize::from(domain)].cores.push(core);
                package.cores.push(core);
            }
        }
        m.packages.push(package);
    }
    Ok(())
}

fn package_states(file: &File, kinds: &[CoreKind]) -> Result<Vec<PackageState>, String> {
    let mut states: Vec<PackageState> = Vec::new();
    if file.package.idle.len() > MAX_IDLE_STATES {
        return Err(format!("package.idle: expected at most {MAX_IDLE_STATES} states"));
    }
    for s in &file.package.idle {
        // The names are the first kind's; other kinds count by depth.
        let needs = kinds[0].idle.iter().position(|c| c.name == s.needs).ok_or_else(|| {
            format!("package.idle {}: needs = '{}': no such C-state of the first kind", s.name, s.needs)
        })? as u8;
        let state = PackageState {
            name: s.name.clone(),
            needs,
            watts: watts("package.idle.watts", s.watts)?,
            exit_ns: us("package.idle.exit_us", s.exit_us)?,
        };
        let above = states.last().map_or(file.package.uncore_w, |p| p.watts);
        if state.watts > above || states.last().is_some_and(|p| p.needs > state.needs) {
            return Err(format!(
                "package.idle {}: deeper states come later, need no less and draw no more",
                s.name
            ));
        }
        states.push(state);
    }
    Ok(states)
}

fn core_kind(k: &KindTable) -> Result<CoreKind, String> {
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
    let levels = levels(k)?;
    Ok(CoreKind {
        name: k.name.clone(),
        ipc: k.ipc,
        smt_throughput: smt("smt_throughput", &k.smt_throughput, 0.1, 1.0)?,
        smt_power: smt("smt_power", &k.smt_power, 1.0, 4.0)?,
        idle: idle_states(k, &levels)?,
        levels,
    })
}

fn levels(k: &KindTable) -> Result<Vec<SpeedLevel>, String> {
    let s = &k.speeds;
    if !(1..=MAX_LEVELS).contains(&s.mhz.len()) {
        return Err(format!("speeds.mhz: expected 1 to {MAX_LEVELS} speeds"));
    }
    within("speeds.stall_share", s.stall_share, 0.0, 1.0, "")?;
    let busy_w: Vec<f64> = match (s.busy_w.len(), s.volts.len()) {
        (n, 0) if n == s.mhz.len() => s.busy_w.clone(),
        (0, n) if n == s.mhz.len() => {
            within("speeds.capacitance_nf", s.capacitance_nf, 0.001, 1000.0, "nF")?;
            within("speeds.leak_a", s.leak_a, 0.0, 1000.0, "A")?;
            s.volts.iter().try_for_each(|&v| within("speeds.volts", v, 0.1, 5.0, "V").map(drop))?;
            if s.volts.windows(2).any(|v| v[1] > v[0]) {
                return Err("speeds.volts: a slower speed never needs more volts".into());
            }
            let watts = |(v, mhz): (&f64, &f64)| s.capacitance_nf * 1e-3 * v * v * mhz + s.leak_a * v;
            s.volts.iter().zip(&s.mhz).map(watts).collect()
        }
        _ => {
            return Err(format!(
                "speeds: expected busy_w or volts (with capacitance_nf), {} figures of the one, none of the other",
                s.mhz.len()
            ));
        }
    };
    let mut levels: Vec<SpeedLevel> = Vec::new();
    for (&mhz, &busy) in s.mhz.iter().zip(&busy_w) {
        within("speeds.mhz", mhz, 1.0, 10_000.0, "MHz")?;
        watts("speeds.busy_w", busy)?;
        let level = SpeedLevel {
            khz: (mhz * 1e3).round() as u32,
            cycles_per_ns: mhz * 1e-3,
            busy_w: busy,
            stall_w: busy * s.stall_share,
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
        levels = throttled(&levels, t, halted)?;
    }
    Ok(levels)
}

/// Speeds with T-states mixed in, as FreeBSD's cpufreq lists them: below the lowest P-state every
/// duty cycle; above it only those that are slower than their P-state and faster than the next one,
/// the shallowest where several would fit.
///
/// A core whose clock is stopped draws what its first C-state draws.
fn throttled(
    pstates: &[SpeedLevel],
    t: &TstatesTable,
    halted: &StateTable,
) -> Result<Vec<SpeedLevel>, String> {
    let stopped = idle_watts(halted, pstates);
    let step = within("tstates.step_percent", t.step_percent, 6.25, 50.0, "%")? / 100.0;
    let loss = within("tstates.loss_percent", t.loss_percent, 0.0, 50.0, "%")? / 100.0;
    let duties: Vec<f64> = (1..).map(|i| 1.0 - step * f64::from(i)).take_while(|d| *d > step * 0.5).collect();
    let mut levels = Vec::new();
    for (i, p) in pstates.iter().enumerate() {
        levels.push(*p);
        let next = pstates.get(i + 1).map_or(0, |n| n.khz);
        let slower = duties.iter().map(|&d| SpeedLevel {
            khz: (f64::from(p.khz) * d).round() as u32 / 1000 * 1000,
            cycles_per_ns: p.cycles_per_ns * d * (1.0 - loss),
            busy_w: p.busy_w * d + stopped[i] * (1.0 - d),
            stall_w: p.stall_w * d + stopped[i] * (1.0 - d),
            throttled: true,
        });
        let fits: Vec<SpeedLevel> = slower.filter(|l| l.khz > next).collect();
        let floor = pstates.get(i + 1).map_or(0.0, |n| n.busy_w);
        if next == 0 {
            levels.extend(fits);
        } else if let Some(l) = fits.first() {
            levels.push(SpeedLevel { busy_w: l.busy_w.max(floor), ..*l });
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

fn idle_states(k: &KindTable, levels: &[SpeedLevel]) -> Result<Vec<CState>, String> {
    let given = &k.idle.states;
    if !(1..=MAX_IDLE_STATES).contains(&given.len()) {
        return Err(format!("idle.states: expected 1 to {MAX_IDLE_STATES} states"));
    }
    let mut states: Vec<CState> = Vec::new();
    for s in given {
        let name = &s.name;
        let latency_ns = us(&format!("idle {name}.latency_us"), s.latency_us)?;
        let target_ns = us(&format!("idle {name}.target_us"), s.target_us)?;
        let entry_ns = us(&format!("idle {name}.entry_us"), s.entry_us)?;
        let exit_ns = match s.exit_us {
            Some(x) => us(&format!("idle {name}.exit_us"), x)?,
            None => latency_ns.saturating_sub(entry_ns),
        };
        if target_ns < exit_ns {
            return Err(format!("idle {name}: target_us {} is under its exit time", s.target_us));
        }
        let high = watts(&format!("idle {name}.watts"), s.watts)?;
        let low = watts(&format!("idle {name}.lowest_watts"), s.lowest_watts.unwrap_or(high))?;
        if low > high {
            return Err(format!("idle {name}: lowest_watts {low} is over watts {high}"));
        }
        let state = CState {
            name: name.clone(),
            entry_ns,
            exit_ns: vec![exit_ns; levels.len()],
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

fn transition(k: &KindTable, kind: &CoreKind) -> Result<Transition, String> {
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
            // A throttled speed changes as its P-state does; throttling itself is quick.
            let base = |l: usize| pstates.iter().rposition(|&p| p <= l).unwrap_or(0);
            for from in 0..n {
                for to in 0..n {
                    flat[from * n + to] = us("stall_us", rows[base(from)][base(to)])?;
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
mod tests {
    use super::*;

    /// A sound file with one line replaced.
    fn with(from: &str, to: &str) -> Result<Machine, MachineError> {
        let text = "name = 'x'\nsummary = 'y'\n\
            [topology]\npackages = 2\nclocks = 'core'\nsource = 's'\nconfidence = 'guess'\n\
            [[kind]]\nname = 'core'\ncores = 2\nthreads = 2\nsmt_throughput = [1.0, 0.6]\nsmt_power = [1.0, 1.2]\nsource = 's'\nconfidence = 'guess'\n\
            [kind.speeds]\nmhz = [2000, 1000]\nbusy_w = [8.0, 3.0]\nsource = 's'\nconfidence = 'fitted'\n\
            [kind.transition]\nstall_us = [[0, 5], [7, 0]]\ndelay_us = 3\nsource = 's'\nconfidence = 'measured'\n\
            [kind.boost]\nmax_mhz = [2000, 1000]\nsource = 's'\nconfidence = 'guess'\n\
            [kind.idle]\nstates = [{ name = 'C1', latency_us = 2, target_us = 4, watts = 2.0, lowest_watts = 1.0 }, { name = 'C6', latency_us = 100, entry_us = 30, target_us = 400, watts = 0.2 }]\nsource = 's'\nconfidence = 'kernel-table'\n\
            [package]\nuncore_w = 2.0\nidle = [{ name = 'PC6', needs = 'C6', watts = 0.5, exit_us = 50 }]\nsource = 's'\nconfidence = 'guess'\n\
            [thermal]\nambient_c = 25\nc_per_w = 2\ntau_s = 10\ncritical_c = 90\nsource = 's'\nconfidence = 'guess'\n\
            [platform]\nwatts = 5.0\nsource = 's'\nconfidence = 'guess'\n";
        assert!(from.is_empty() || text.contains(from), "{from}");
        parse(&text.replacen(from, to, 1), "m.toml")
    }

    #[test]
    fn a_file_becomes_a_machine() {
        let m = with("", "").unwrap();
        assert_eq!((m.cpus.len(), m.cores.len(), m.packages.len(), m.domains.len()), (8, 4, 2, 4));
        assert_eq!(m.cores[3].cpus, [6, 7]);
        assert_eq!(m.packages[1].domains, [2, 3]);
        assert_eq!(m.domains[0].transition.stall_ns, [0, 5000, 7000, 0]);
        assert_eq!(m.domains[0].boost, [0, 0, 1]);
        let k = &m.kinds[0];
        assert_eq!(k.idle[0].watts, [2.0, 1.0]);
        assert_eq!((k.idle[1].entry_ns, k.idle[1].exit_ns[0]), (30_000, 70_000));
        assert_eq!(m.provenance.len(), 9);
        assert!(
            m.provenance.iter().any(|f| f.what == "kind.core.speeds" && f.confidence == Confidence::Fitted)
        );
    }

    #[test]
    fn volts_make_watts() {
        let m =
            with("busy_w = [8.0, 3.0]", "volts = [1.5, 1.0]\ncapacitance_nf = 2.0\nleak_a = 1.0").unwrap();
        // 2 nF x 1.5^2 x 2 GHz + 1 A x 1.5 V.
        assert!((m.kinds[0].levels[0].busy_w - 10.5).abs() < 1e-12);
    }

    #[test]
    fn duty_cycles_become_speeds() {
        let t = "[kind.tstates]\nstep_percent = 12.5\nloss_percent = 2\nin_speed_table = true\nsource = 's'\nconfidence = 'guess'\n[kind.transition]\nstall_us = [[0, 5], [7, 0]]";
        let m = with("[kind.transition]\nstall_us = [[0, 5], [7, 0]]", t).unwrap();
        let khz: Vec<u32> = m.kinds[0].levels.iter().map(|l| l.khz / 1000).collect();
        assert_eq!(khz, [2000, 1750, 1000, 875, 750, 625, 500, 375, 250, 125]);
        let n = khz.len();
        assert_eq!(m.domains[0].transition.stall_ns[n + 2], 5000);
        assert_eq!(m.domains[0].transition.stall_ns[3 * n + 9], 0);
        assert!((m.kinds[0].levels[1].cycles_per_ns - 1.75 * 0.98).abs() < 1e-12);
    }

    #[test]
    fn impossible_figures_are_refused_in_one_line() {
        for (from, to, part) in [
            ("mhz = [2000, 1000]", "mhz = [1000, 2000]", "fastest first"),
            ("mhz = [2000, 1000]", "mhz = [2000, nan]", "speeds.mhz"),
            ("busy_w = [8.0, 3.0]", "busy_w = [-8.0, 3.0]", "busy_w"),
            ("busy_w = [8.0, 3.0]", "busy_w = [2.0, 3.0]", "draws more"),
            ("busy_w = [8.0, 3.0]", "busy_w = [8.0]", "expected busy_w or volts"),
            (
                "latency_us = 100, entry_us = 30, target_us = 400",
                "latency_us = 100, target_us = 50",
                "under its exit time",
            ),
            ("watts = 0.2", "watts = 3.2", "deeper states"),
            ("[[0, 5], [7, 0]]", "[[0, 5]]", "2 rows of 2"),
            ("packages = 2", "packages = 1000", "CPUs"),
            ("packages = 2", "packages = 0", "CPUs"),
            ("cores = 2", "cores = 0", "cores"),
            ("threads = 2", "threads = 9", "threads"),
            ("smt_power = [1.0, 1.2]", "smt_power = [1.0]", "smt_power"),
            ("needs = 'C6'", "needs = 'C9'", "no such C-state"),
            ("max_mhz = [2000, 1000]", "max_mhz = [2000, 1500]", "not one of the speeds"),
            ("max_mhz = [2000, 1000]", "max_mhz = [1000, 2000]", "never allow"),
            ("tau_s = 10", "tau_s = 0", "tau_s"),
            ("confidence = 'guess'\n", "", "confidence"),
            ("source = 's'", "source = ' '", "source is empty"),
            ("confidence = 'guess'", "confidence = 'hope'", "unknown variant"),
            ("uncore_w = 2.0", "uncore_watts = 2.0", "uncore_watts"),
            ("summary = 'y'", "summary = 'y'\nbase = 'nobody'", "no bundled machine"),
            ("name = 'x'", "name = ", "line 1"),
        ] {
            let message = with(from, to).unwrap_err().to_string();
            assert!(message.starts_with("m.toml: ") && message.contains(part), "{to}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
