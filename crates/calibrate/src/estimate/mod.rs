//! A machine that nobody has measured, as a model: what its kernel says, over the nearest bundled model.
//!
//! Watts are the bundled model's, taken at the same share of the highest speed and scaled:
//!
//! | known | scale of a core's watts |
//! |---|---|
//! | a server, and its firmware's year | busy and at rest it draws what published servers like it do (`server.rs`) |
//! | long-term limit of the package, and the speed without boost | all cores at that speed, with the uncore, draw the limit |
//! | else | in proportion to the highest speed |
//!
//! The ranges are wide: nothing has been measured. A server's are those of the published results. The others are ours: the 25
//! bundled and published machines that we have spread over a factor of two in watts of a core at the same speed, so a
//! core's watts are +-50 %, what hangs on the rest of the machine +-60 %.

mod server;
pub(crate) mod write;

use crate::estimate::server::{Sums, Wall};
use crate::estimate::write::{
    MachineFile, Package, PackageState, PowerLimit, Sourced, Speeds, WrittenBoost, WrittenEppCeiling,
    WrittenIdle, WrittenIdleState, WrittenKind, WrittenMemoryClock, WrittenOrigin, WrittenPlatform,
    WrittenRange, WrittenThermal, WrittenTopology, WrittenTransition,
};
use crate::gather::{SeenKind, SeenMachine, SeenMemory};
use wattwise_hw::states::cpuidle::CpuidleState;
use wattwise_model::machine::{
    CoreKind, EppCeiling, MachineModel, SpeedLevel, Thermal as ModelThermal, builtin, file,
};

/// How far a core's watts may be off, in per cent.
const CORE_PERCENT: u32 = 50;
/// How far the watts of C-states and of what is not a core may be off, in per cent.
pub(crate) const REST_PERCENT: u32 = 60;
/// No laptop or server of the last fifteen years has a lower highest speed.
const EMBEDDED_KHZ: u64 = 2_000_000;
/// Levels that a driver without a table is given.
const LEVELS: usize = 12;
/// A core that takes longer to wake has its power gated, and lets the package sleep.
const DEEP_US: f64 = 50.0;
/// Speeds of a guest are its host's affair: one level, at this clock where not even that is shown, in MHz.
const UNKNOWN_MHZ: f64 = 2000.0;

/// An estimated machine.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The machine file.
    pub text: String,
    /// The bundled model whose watts it has.
    pub base: &'static str,
}

/// The bundled model that is nearest in kind: a guest, a laptop, an embedded board, a server.
pub fn base_of(seen: &SeenMachine) -> &'static str {
    let cores: usize = seen.kinds.iter().map(|k| k.cores).sum();
    let top_khz = seen.kinds.iter().filter_map(|k| Some(k.range_khz?.1)).max();
    let embedded = top_khz.is_some_and(|khz| khz <= EMBEDDED_KHZ) && seen.limit_w.is_none();
    match () {
        () if seen.guest => "recording-vm",
        () if embedded => "omap3530",
        () if seen.packages > 1 || cores > 24 => {
            if cores > 28 {
                "sapphire-rapids-server"
            } else {
                "xeon-4210"
            }
        }
        () if seen.kinds.len() > 1 || has_cppc(seen) => "alderlake-p-laptop",
        () => "i7-4510u",
    }
}

/// Whether its hardware takes a preference: amd-pstate shows none in its other modes.
fn has_cppc(seen: &SeenMachine) -> bool {
    seen.epp || seen.driver.as_deref().is_some_and(|driver| driver.starts_with("amd-pstate"))
}

/// The file of a machine's model by that name.
pub fn estimate(seen: &SeenMachine, name: &str) -> Estimate {
    let (file, base) = tables(seen, name);
    Estimate { text: written(&file), base }
}

/// A machine file's text.
pub(crate) fn written(file: &MachineFile) -> String {
    toml::to_string(file).unwrap_or_else(|e| unreachable!("plain tables are TOML: {e}"))
}

/// The tables of that file, and the bundled model whose watts it has.
pub(crate) fn tables(seen: &SeenMachine, name: &str) -> (MachineFile, &'static str) {
    let base_name = base_of(seen);
    let base = builtin::text(base_name).and_then(|text| file::parse(text, base_name).ok());
    let base = base.unwrap_or_else(|| unreachable!("{base_name} is bundled and sound, as its test says"));
    let wall = server::wall(seen);
    let scale = WattScale::of(seen, &base, wall.as_ref());
    let packages = seen.packages.max(1);
    let from = format!("{base_name}'s, scaled; nothing here was measured");
    let kinds: Vec<_> = seen.kinds.iter().map(|k| kind(seen, k, &base, scale, &from)).collect();
    let cores: usize = seen.kinds.iter().map(|k| k.cores).sum();
    let clocks = match seen.kinds.iter().map(|k| k.clock_cores).max() {
        Some(1) => "core",
        _ if seen.kinds.len() > 1 => "kind",
        _ => "package",
    };
    let topology = WrittenTopology { packages, clocks, llc: seen.llc_cores.filter(|n| *n < cores) };
    let thermal = base.packages[0].thermal;
    let file = MachineFile {
        name: name.to_owned(),
        summary: summary(seen, base_name),
        cpu_names: seen.processor.iter().cloned().collect(),
        state: Vec::new(),
        notes: unknown(seen, scale, wall.as_ref()),
        topology: Sourced::new(
            topology,
            WrittenOrigin::kernel("sysfs: CPUs online, their cores, packages, clocks and caches"),
        ),
        kind: kinds,
        package: package(seen, &base, scale, &from),
        memory: None,
        memory_clock: seen.memory.as_ref().map(memory_clock),
        thermal: heat(seen, &thermal, &from),
        platform: platform(seen, &base, scale, &from),
        power_limit: power_limit(seen),
        epp_ceiling: epp_ceiling(seen),
        draws: None,
    };
    (file, base_name)
}

/// The package's thermal model: the base model's, but for the temperature that this machine's own driver tells.
fn heat(seen: &SeenMachine, base: &ModelThermal, from: &str) -> Sourced<WrittenThermal> {
    let table = WrittenThermal {
        ambient_c: base.ambient_c,
        c_per_w: base.c_per_w,
        tau_s: base.tau_s,
        critical_c: seen.hottest_c.unwrap_or(base.critical_c),
        leakage_per_c: base.leakage_per_c,
    };
    let heat = Sourced::new(table, WrittenOrigin::word(from));
    match seen.hottest_c {
        None => heat,
        // Firmware begins to slow a package some degrees below or at it.
        Some(_) => heat.but(
            "critical_c",
            WrittenOrigin {
                range: Some(WrittenRange::Percent("+-5%".into())),
                ..WrittenOrigin::kernel("hwmon or a thermal zone: the processor's critical temperature")
            },
        ),
    }
}

/// By what the base model's watts are multiplied.
#[derive(Clone, Copy)]
struct WattScale {
    core: f64,
    /// What is in a package and is no core.
    uncore: f64,
    platform: f64,
    by: By,
    /// How far a core's watts, and those of C-states and of what is no core, may be off, in per cent.
    percent: (u32, u32),
}

/// What the scale comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Servers,
    Limit,
    Speed,
}

impl WattScale {
    fn of(seen: &SeenMachine, base: &MachineModel, wall: Option<&Wall>) -> WattScale {
        let percent = (CORE_PERCENT, REST_PERCENT);
        if let Some((wall, sums)) = wall.zip(sums(seen, base))
            && let Some((core, rest)) = wall.scale(sums)
        {
            let off = wall.percent(sums, (core, rest));
            return WattScale { core, uncore: rest, platform: rest, by: By::Servers, percent: (off, off) };
        }
        let cores = |counts: &mut dyn Iterator<Item = usize>| counts.sum::<usize>().max(1) as f64;
        let here = cores(&mut seen.kinds.iter().map(|k| k.cores));
        let there = base.packages[0].cores.len().max(1) as f64;
        // A package of more cores has more around them, though not twice as much of twice as many.
        let uncore = if seen.guest { here / there } else { (here / there).sqrt() };
        let platform = if seen.guest { seen.cpus() as f64 / base.cpus.len() as f64 } else { 1.0 };
        if let Some(limit_w) = seen.limit_w {
            let sum: Option<f64> = seen.kinds.iter().map(|k| full_w(k, base)).sum();
            let uncore_w = base.packages[0].uncore_w * uncore;
            if let Some(sum) = sum.filter(|w| *w > 0.0 && limit_w > 1.5 * uncore_w) {
                let core = (limit_w - uncore_w) / sum;
                return WattScale { core, uncore, platform, by: By::Limit, percent };
            }
        }
        let top = |k: &SeenKind| mhz(k).first().copied().unwrap_or(UNKNOWN_MHZ);
        let there = f64::from(base.kinds[0].levels[0].khz) * 1e-3;
        let core = seen.kinds.first().map_or(1.0, |k| top(k) / there);
        WattScale { core: if seen.guest { 1.0 } else { core }, uncore, platform, by: By::Speed, percent }
    }
}

/// What the base model's watts add up to on this machine, unscaled.
fn sums(seen: &SeenMachine, base: &MachineModel) -> Option<Sums> {
    let packages = seen.packages.max(1) as f64;
    let own = &base.packages[0];
    let mut sums = Sums {
        cores_full: 0.0,
        cores_rest: 0.0,
        others_full: base.platform_w + packages * own.uncore_w,
        others_rest: base.platform_w + packages * asleep_w(seen, base).unwrap_or(own.uncore_w),
    };
    for k in &seen.kinds {
        let model = kind_of(k, base);
        let threads = model.smt_power.get(k.threads - 1).or(model.smt_power.last()).copied().unwrap_or(1.0);
        let top = mhz(k).first().copied()?;
        let share = k.base_khz.map_or(1.0, |khz| khz as f64 * 1e-3 / top);
        let deepest_us = k.idle.iter().map(|s| s.latency_us).max().unwrap_or(0);
        let cores = packages * k.cores as f64;
        sums.cores_full += cores * busy_w(model, share) * threads;
        sums.cores_rest += cores * idle_w(model, deepest_us as f64);
    }
    Some(sums)
}

/// The base model's package asleep, where this machine's sleeps.
fn asleep_w(seen: &SeenMachine, base: &MachineModel) -> Option<f64> {
    gating(seen).and(base.packages[0].idle.last()).map(|state| state.watts)
}

/// The C-state that every kind of core has and that lets the package sleep: the deepest of all.
fn gating(seen: &SeenMachine) -> Option<&str> {
    let deep = |s: &&CpuidleState| s.latency_us as f64 >= DEEP_US;
    let names: Option<Vec<&str>> =
        seen.kinds.iter().map(|k| k.idle.iter().rfind(deep).map(|s| s.name.as_str())).collect();
    names.filter(|n| n.windows(2).all(|w| w[0] == w[1])).and_then(|n| n.first().copied())
}

/// All cores of a kind in a package, busy at the highest speed without boost, with the base model's watts.
fn full_w(seen: &SeenKind, base: &MachineModel) -> Option<f64> {
    let top = mhz(seen).first().copied()?;
    let share = seen.base_khz? as f64 * 1e-3 / top;
    Some(seen.cores as f64 * busy_w(kind_of(seen, base), share))
}

/// The base model's kind of that name, or its first.
fn kind_of<'m>(seen: &SeenKind, base: &'m MachineModel) -> &'m CoreKind {
    let name = if seen.name == "LP-E" { "E" } else { seen.name };
    base.kinds.iter().find(|k| k.name == name).unwrap_or(&base.kinds[0])
}

/// A busy core's watts at a share of the highest speed: between neighbouring levels in proportion, below the lowest in
/// proportion to the speed.
fn busy_w(kind: &CoreKind, share: f64) -> f64 {
    let levels: Vec<&SpeedLevel> = kind.levels.iter().filter(|l| !l.throttled).collect();
    let top = f64::from(levels[0].khz);
    let at = |l: &SpeedLevel| f64::from(l.khz) / top;
    for pair in levels.windows(2) {
        let (high, low) = (pair[0], pair[1]);
        if share >= at(low) {
            let part = ((share - at(low)) / (at(high) - at(low))).min(1.0);
            return low.busy_w + part * (high.busy_w - low.busy_w);
        }
    }
    let lowest = levels[levels.len() - 1];
    lowest.busy_w * (share / at(lowest)).min(1.0)
}

/// Its speeds in MHz, fastest first; never empty.
fn mhz(seen: &SeenKind) -> Vec<f64> {
    let whole = |khz: u64| (khz as f64 * 1e-3).round();
    let mut all: Vec<f64> = match (seen.range_khz, seen.levels_khz.is_empty()) {
        (_, false) => seen.levels_khz.iter().map(|khz| whole(*khz)).collect(),
        (Some((low, high)), true) if high > low => {
            // Steps of 100 MHz where so few do, else as many steps as fit.
            let (low, high) = (whole(low), whole(high));
            let step = ((high - low) / (LEVELS - 1) as f64 / 100.0).ceil().max(1.0) * 100.0;
            let mut all: Vec<f64> =
                (0..LEVELS).map(|n| high - step * n as f64).filter(|mhz| *mhz > low).collect();
            all.extend(seen.base_khz.map(whole).filter(|mhz| *mhz > low && *mhz < high));
            all.push(low);
            all
        }
        (Some((_, high)), true) => vec![whole(high)],
        (None, true) => vec![seen.now_khz.map_or(UNKNOWN_MHZ, whole)],
    };
    all.retain(|mhz| *mhz >= 1.0);
    all.sort_by(|a, b| b.total_cmp(a));
    all.dedup();
    if all.is_empty() { vec![UNKNOWN_MHZ] } else { all }
}

/// Of its speeds what its driver can ask for, where that is not each.
fn asked_mhz(seen: &SeenKind) -> Vec<f64> {
    let Some(listed) = seen.listed_khz else { return Vec::new() };
    let mut all = mhz(seen);
    all.retain(|mhz| *mhz <= (listed as f64 * 1e-3).round());
    all
}

fn kind(
    seen: &SeenMachine,
    k: &SeenKind,
    base: &MachineModel,
    scale: WattScale,
    from: &str,
) -> Sourced<WrittenKind> {
    let model = kind_of(k, base);
    let mhz = mhz(k);
    let busy: Vec<f64> = mhz.iter().map(|f| rounded(busy_w(model, f / mhz[0]) * scale.core)).collect();
    let boosts = k.base_khz.map(|khz| (khz as f64 * 1e-3).round()).filter(|b| *b < mhz[0]);
    let by = match scale.by {
        By::Servers => {
            "scaled so that the machine draws what published servers like it do; nothing here was measured"
        }
        By::Limit => {
            "scaled so that all cores at the speed without boost draw the package's limit; nothing here was measured"
        }
        By::Speed => "scaled with the highest speed; nothing here was measured",
    };
    let speeds = Sourced::new(
        Speeds { mhz: mhz.clone(), busy_w: busy.clone(), base_mhz: boosts, asked_mhz: asked_mhz(k) },
        match k.range_khz {
            Some(_) => WrittenOrigin::kernel(
                "cpufreq: the levels, or steps of the range where the driver has no table",
            ),
            None if seen.clock_measured => WrittenOrigin {
                source: "no cpufreq: one level, by a timed loop".into(),
                confidence: "measured",
                range: None,
            },
            None => WrittenOrigin::word("no cpufreq: one level, at the clock that /proc/cpuinfo shows"),
        },
    )
    .but(
        "busy_w",
        WrittenOrigin::guess(
            format!("{}'s at the same share of the highest speed, {by}", base.name),
            scale.percent.0,
        ),
    );
    let smt = k.threads > 1;
    let like_base = |list: &[f64], other: [f64; 2]| -> Vec<f64> {
        match smt {
            true if list.len() == k.threads => list.to_vec(),
            true => {
                (0..k.threads).map(|t| 1.0 + (other[1] - 1.0) * t as f64 / (k.threads - 1) as f64).collect()
            }
            false => Vec::new(),
        }
    };
    let mut kind = Sourced::new(
        WrittenKind {
            name: k.name,
            cores: k.cores,
            threads: k.threads,
            ipc: ipc(seen, k, model),
            smt_throughput: like_base(&model.smt_throughput, [1.0, 0.62]),
            smt_power: like_base(&model.smt_power, [1.0, 1.15]),
            speeds,
            boost: boosts.and_then(|b| boost(seen, &mhz, b, base)),
            transition: (k.range_khz.is_some()).then(|| transition(base)),
            idle: idle(k, model, scale, busy.last().copied().unwrap_or(0.1)),
        },
        WrittenOrigin::kernel("sysfs: cores and threads online"),
    );
    if seen.kinds.first().is_some_and(|first| first.name != k.name) {
        kind = kind.but(
            "ipc",
            WrittenOrigin::guess("relative capacity of its CPUs, else the base model's".into(), 20),
        );
    }
    if smt {
        kind =
            kind.but("smt_throughput", WrittenOrigin::word(from)).but("smt_power", WrittenOrigin::word(from));
    }
    kind
}

/// Work a clock cycle, of the first kind's.
fn ipc(seen: &SeenMachine, k: &SeenKind, model: &CoreKind) -> f64 {
    let Some(first) = seen.kinds.first().filter(|first| first.name != k.name) else { return 1.0 };
    let per_clock = |k: &SeenKind| Some(f64::from(k.capacity?) / k.range_khz?.1 as f64);
    let ratio = per_clock(k).zip(per_clock(first)).map_or(model.ipc, |(own, first)| own / first);
    rounded(ratio.clamp(0.1, 2.0))
}

/// The highest speed by the number of awake cores, falling as the base model's does between its two ends.
fn boost(
    seen: &SeenMachine,
    mhz: &[f64],
    base_mhz: f64,
    base: &MachineModel,
) -> Option<Sourced<WrittenBoost>> {
    let domain = base.domains.iter().find(|d| !d.boost.is_empty())?;
    let levels = &base.kinds[usize::from(domain.kind)].levels;
    let at = |level: u8| f64::from(levels[usize::from(level)].khz);
    let (top, low) = (at(domain.boost[0]), f64::from(base.kinds[usize::from(domain.kind)].base_khz));
    let cores: usize = seen.kinds.iter().map(|k| k.cores).sum();
    let of = |n: usize| {
        let there = domain.boost.len() * n / cores.max(1);
        let share = (at(domain.boost[there.min(domain.boost.len() - 1)]) - low) / (top - low).max(1.0);
        let wanted = base_mhz + share.clamp(0.0, 1.0) * (mhz[0] - base_mhz);
        mhz.iter().copied().filter(|m| *m >= wanted).fold(mhz[0], f64::min)
    };
    let table = WrittenBoost { max_mhz: (0..cores).map(of).collect() };
    Some(Sourced::new(
        table,
        WrittenOrigin::word(&format!("falls with the number of awake cores as {}'s does", base.name)),
    ))
}

fn transition(base: &MachineModel) -> Sourced<WrittenTransition> {
    let own = &base.domains[0].transition;
    let stall_ns = own.stall_ns.iter().copied().max().unwrap_or(0);
    let table = WrittenTransition {
        delay_us: own.delay_ns as f64 * 1e-3,
        stall_us: stall_ns as f64 * 1e-3,
        overlap: "preempt",
    };
    Sourced::new(table, WrittenOrigin::guess(format!("{}'s", base.name), REST_PERCENT))
}

/// A core's watts after so long a way out, of those of its slowest busy level: the base model's states in order of latency.
fn idle_w(model: &CoreKind, latency_us: f64) -> f64 {
    let w = |s: &wattwise_model::machine::CState| s.watts[0];
    let us = |s: &wattwise_model::machine::CState| s.latency_ns as f64 * 1e-3;
    let deeper = model.idle.iter().take_while(|s| us(s) <= latency_us).last();
    deeper.map_or_else(|| w(&model.idle[0]), w)
}

fn idle(k: &SeenKind, model: &CoreKind, scale: WattScale, least_busy_w: f64) -> Sourced<WrittenIdle> {
    let mut states: Vec<WrittenIdleState> = Vec::new();
    let mut last = (0.0_f64, 0.0_f64, least_busy_w);
    for s in &k.idle {
        let (latency, residency) = (s.latency_us as f64, s.residency_us as f64);
        // A deeper state takes no less time and draws no more, whatever a driver's table says.
        last = (
            last.0.max(latency),
            last.1.max(residency).max(latency),
            last.2.min(rounded(idle_w(model, latency) * scale.core)),
        );
        states.push(WrittenIdleState {
            name: s.name.clone(),
            latency_us: last.0,
            target_us: last.1,
            exit_us: None,
            watts: last.2,
        });
    }
    states.truncate(wattwise_model::machine::MAX_IDLE_STATES);
    let mut names = std::collections::BTreeSet::new();
    states.retain(|s| !s.name.is_empty() && names.insert(s.name.clone()));
    let listed = !states.is_empty();
    if !listed {
        let watts = least_busy_w.min(rounded(model.idle[0].watts[0] * scale.core));
        states.push(WrittenIdleState {
            name: "HLT".into(),
            latency_us: 0.0,
            target_us: 0.0,
            exit_us: None,
            watts,
        });
    }
    let origin = match listed {
        true => WrittenOrigin::kernel("cpuidle: latency and residency of each state"),
        false => WrittenOrigin::word("no cpuidle: an idle CPU halts"),
    };
    let source = format!("{}'s of the same latency, scaled as the busy watts", model.name);
    Sourced::new(WrittenIdle { states }, origin).but("watts", WrittenOrigin::guess(source, scale.percent.1))
}

fn package(seen: &SeenMachine, base: &MachineModel, scale: WattScale, from: &str) -> Sourced<Package> {
    let own = &base.packages[0];
    let idle = own.idle.last().zip(gating(seen)).map(|(state, needs)| PackageState {
        name: format!("P{needs}"),
        needs: needs.to_owned(),
        watts: rounded(state.watts * scale.uncore),
        exit_us: state.exit_ns as f64 * 1e-3,
    });
    let table = Package { uncore_w: rounded(own.uncore_w * scale.uncore), idle: idle.into_iter().collect() };
    Sourced::new(table, WrittenOrigin::guess(from.to_owned(), scale.percent.1))
}

/// The package's own limits; none that no processor reaches, by which firmware says that there is none.
fn power_limit(seen: &SeenMachine) -> Option<Sourced<PowerLimit>> {
    const MOST_W: f64 = 2000.0;
    const LONGEST_S: f64 = 500.0;
    let limits = seen.limits?;
    let table = PowerLimit {
        long_w: limits.long_uw as f64 / 1e6,
        tau_s: limits.window_us as f64 / 1e6,
        short_w: limits.short_uw.map(|uw| uw as f64 / 1e6).filter(|w| *w < MOST_W),
    };
    let is_one = (0.1..MOST_W).contains(&table.long_w) && table.tau_s <= LONGEST_S;
    is_one.then(|| Sourced::new(table, WrittenOrigin::kernel("powercap: the package's limits in force")))
}

/// How the highest speed falls with the preference, of a mobile processor of Intel.
fn epp_ceiling(seen: &SeenMachine) -> Option<Sourced<WrittenEppCeiling>> {
    let intel = seen.driver.as_deref().is_some_and(|driver| driver.starts_with("intel_"));
    if !(intel && seen.epp && is_mobile(seen)) {
        return None;
    }
    let EppCeiling { from, at_255 } = EppCeiling::MOBILE;
    let source = EppCeiling::MOBILE_SOURCE;
    let [from_range, at_255_range] =
        EppCeiling::MOBILE_RANGES.map(|[low, high]| WrittenOrigin::between(source, low, high));
    let table = Sourced::new(WrittenEppCeiling { from, at_255 }, WrittenOrigin::word(source));
    Some(table.but("from", from_range).but("at_255", at_255_range))
}

/// Whether the machine has a battery, or its processor the letters of a mobile one behind its number (`i7-1260P`, `125H`, `1135G7`).
fn is_mobile(seen: &SeenMachine) -> bool {
    let letters = |word: &str| {
        let tail = word.trim_start_matches(|c: char| c != '-').trim_start_matches('-');
        let number = if tail.is_empty() { word } else { tail };
        let letters = number.trim_start_matches(|c: char| c.is_ascii_digit());
        (letters.len() < number.len())
            .then(|| letters.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
    };
    let mobile =
        |letters: String| ["U", "Y", "P", "H", "HX", "HK", "HQ", "V", "G"].contains(&letters.as_str());
    let by_name = |name: &String| name.split_whitespace().filter_map(letters).any(mobile);
    seen.battery_wh.is_some() || seen.processor.as_ref().is_some_and(by_name)
}

/// The memory's clock as the kernel lists it; what it does and draws is what other boards' does and draws.
fn memory_clock(seen: &SeenMemory) -> Sourced<WrittenMemoryClock> {
    let table = WrittenMemoryClock {
        mhz: seen.clocks_khz.iter().map(|&khz| khz as f64 / 1e3).collect(),
        watts: 0.3,
        follows: 0.65,
        core_share: 0.04,
        poll_ms: seen.polling_ms.filter(|ms| (1..=10_000).contains(ms)),
        governor: seen.governor.clone(),
    };
    let boards = "between the lowest and the highest clock: 0.08 W on an RK3566 board, 0.6 on an RK3399's, 0.64 on an RK3588's";
    let reads =
        "reading follows the clock by 0.65 on an RK3326 and by 0.86 on a CIX P1; latency alone by less";
    let lines = "one to four lines of 64 bytes at a time, and their write-backs";
    Sourced::new(table, WrittenOrigin::kernel("devfreq: the clocks and the governor in force"))
        .but("watts", WrittenOrigin::between(boards, 0.08, 0.64))
        .but("follows", WrittenOrigin::between(reads, 0.4, 0.9))
        .but("core_share", WrittenOrigin::between(lines, 0.016, 0.1))
}

fn platform(
    seen: &SeenMachine,
    base: &MachineModel,
    scale: WattScale,
    from: &str,
) -> Sourced<WrittenPlatform> {
    let halts = seen.kinds.iter().all(|k| k.idle.is_empty());
    let idle_policy = match seen.idle_governor.as_deref() {
        _ if halts => "fixed:depth=0",
        Some("teo") => "teo",
        Some("ladder") => "ladder",
        _ => "menu",
    };
    let driver = match seen.driver.as_deref() {
        None => Some("none".to_owned()),
        Some(name @ ("intel_pstate" | "intel_cpufreq")) if seen.epp => Some(format!("{name}-hwp")),
        Some(
            name @ ("intel_pstate" | "intel_cpufreq" | "amd-pstate-epp" | "amd-pstate" | "acpi-cpufreq"
            | "cpufreq-dt" | "speedstep-centrino"),
        ) => Some(name.to_owned()),
        Some("scmi") => Some("scmi-cpufreq".to_owned()),
        Some(_) => None,
    };
    let one_speed = seen.kinds.iter().all(|k| mhz(k).len() == 1);
    let table = WrittenPlatform {
        watts: rounded(base.platform_w * scale.platform),
        battery_wh: seen.battery_wh.map(rounded),
        idle_policy: idle_policy.to_owned(),
        system: "linux",
        driver,
        governors: seen.governors.clone(),
        default_policy: if one_speed { Some("performance".into()) } else { seen.policy.clone() },
        replaced_policies: seen.replaced.clone(),
    };
    Sourced::new(table, WrittenOrigin::word(from))
        .but("watts", WrittenOrigin::guess(from.to_owned(), scale.percent.1))
        .but("driver", WrittenOrigin::kernel("cpufreq"))
        .but("governors", WrittenOrigin::kernel("cpufreq"))
        .but(
            "default_policy",
            WrittenOrigin::kernel("cpufreq: the governor, the preference and the limits in force"),
        )
        .but("idle_policy", WrittenOrigin::kernel("cpuidle: the governor in force"))
}

fn summary(seen: &SeenMachine, base: &str) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let kinds: Vec<String> = seen
        .kinds
        .iter()
        .map(|k| {
            let word = if k.name == "core" { "core".to_owned() } else { format!("{}-core", k.name) };
            let threads = if k.threads > 1 { format!(" x {} threads", k.threads) } else { String::new() };
            format!("{}{threads}", count(k.cores * seen.packages, &word))
        })
        .collect();
    let processor = seen.processor.as_deref().unwrap_or("an unnamed processor");
    let guest = if seen.guest { ", a virtual machine" } else { "" };
    format!("estimated: {processor}, {}{guest}; watts after {base}", kinds.join(" and "))
}

/// What its user should know, a sentence each.
fn unknown(seen: &SeenMachine, scale: WattScale, wall: Option<&Wall>) -> Vec<String> {
    let mut out = Vec::new();
    if seen.guest {
        out.push(
            "A virtual machine: power, clocks and C-states are its host's, and a guest sees none of them."
                .to_owned(),
        );
    }
    if seen.kinds.iter().all(|k| k.range_khz.is_none()) {
        out.push(
            "Its kernel has no cpufreq: no speed can be chosen, and the model has a single one.".to_owned(),
        );
    }
    if seen.kinds.iter().all(|k| k.idle.is_empty()) {
        out.push("Its kernel has no cpuidle: the model has one idle state.".to_owned());
    }
    let (core, rest) = scale.percent;
    out.push(match wall.filter(|_| scale.by == By::Servers) {
        Some(wall) => format!(
            "Watts of this machine were not measured: at the wall {:.0} W with all busy (90 %: {:.0} to {:.0}) and {:.0} W at \
             rest ({:.0} to {:.0}), after {} published results of servers (SPECpower_ssj2008), which their vendors have tuned.",
            wall.full.median, wall.full.low, wall.full.high, wall.rest.median, wall.rest.low, wall.rest.high, wall.results
        ),
        None => format!(
            "Watts of this machine were not measured: a core's may be off by {core} %, the rest by {rest} %."
        ),
    });
    out
}

/// To three significant digits.
pub(crate) fn rounded(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 10f64.powi(2 - value.log10().floor() as i32);
    (value * digits).round() / digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_replay::library;

    fn seen(name: &str) -> SeenMachine {
        SeenMachine::read(&wattwise_emulator::named(name).expect("an emulated machine")).expect("CPUs")
    }

    fn parsed(seen: &SeenMachine) -> MachineModel {
        let e = estimate(seen, "this");
        library::parsed(&e.text, "this").unwrap_or_else(|why| panic!("{why}\n{}", e.text))
    }

    /// The memory's clock is of the model, with the governor that was there before wattwise set another.
    /// A battery, or the letters behind the number; and only where the processor takes a preference.
    #[test]
    fn a_mobile_processor_of_intel_has_a_ceiling_by_preference() {
        let mut machine = seen("hybrid-laptop");
        let of = |machine: &SeenMachine| parsed(machine).autonomous.epp_ceiling;
        assert_eq!(of(&machine), Some(EppCeiling::MOBILE));
        machine.battery_wh = None;
        for (name, is_mobile) in [
            ("12th Gen Intel(R) Core(TM) i7-1260P", true),
            ("Intel(R) Core(TM) Ultra 5 125H", true),
            ("11th Gen Intel(R) Core(TM) i5-1135G7 @ 2.40GHz", true),
            ("12th Gen Intel(R) Core(TM) i9-12900K", false),
            ("Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", false),
            ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", false),
        ] {
            machine.processor = Some(name.into());
            assert_eq!(of(&machine).is_some(), is_mobile, "{name}");
        }
        (machine.battery_wh, machine.epp) = (Some(50.0), false);
        assert_eq!(of(&machine), None, "no preference");
    }

    #[test]
    fn a_board_has_its_memory_s_clock() {
        use wattwise_hw::replaced;
        use wattwise_hw::root::over::OverRoot;
        let machine = wattwise_emulator::named("arm-big-little").expect("bundled");
        let at = |file: &str| format!("sys/class/devfreq/dmc/{file}");
        let read = |governor: &str, note: &str| {
            let files = [
                (at("governor"), governor.to_owned()),
                (at("available_governors"), "dmc_ondemand performance".into()),
                (at("available_frequencies"), "528000000 1068000000 2112000000".into()),
                (at("cur_freq"), "528000000".into()),
                (at("upthreshold"), "25".into()),
                (at("downdifferential"), "20".into()),
                (replaced::PATH.to_owned(), note.to_owned()),
            ];
            SeenMachine::read(&OverRoot::new(&machine, files.into())).expect("CPUs")
        };
        let seen = read("dmc_ondemand", "");
        let clock = parsed(&seen).memory_clock.expect("a clock");
        assert_eq!(
            (&clock.khz[..], clock.governor.as_str()),
            (&[2_112_000, 1_068_000, 528_000][..], "dmc_ondemand:up=25,down=20")
        );
        let own = seen.policy.expect("a policy");
        let pinned = read("performance", &format!("{} dmc_ondemand\n", at("governor")));
        assert_eq!(pinned.policy, Some(format!("{own}+dram=performance")));
        assert_eq!(parsed(&pinned).memory_clock, Some(clock));
        assert!(parsed(&read("npu_ondemand", "")).memory_clock.is_none(), "no rule that is known");
    }

    /// The model that is written draws what the fit says of servers like it, within the rounding of its figures.
    #[test]
    fn a_server_draws_what_published_servers_do() {
        let xeon = SeenMachine {
            processor: Some("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz".into()),
            year: Some(2019.0),
            memory_gb: Some(768.0),
            guest: false,
            ..seen("server-64")
        };
        let wall = server::wall(&xeon).expect("a server");
        let (rest, full) = parsed(&xeon).rest_and_full_w();
        assert!((full / wall.full.median - 1.0).abs() < 0.03, "{full} W, {:?}", wall.full);
        assert!((rest / wall.rest.median - 1.0).abs() < 0.03, "{rest} W, {:?}", wall.rest);
        let notes = parsed(&xeon).notes;
        assert!(notes.iter().any(|n| n.contains("published results of servers")), "{notes:?}");
        for no_server in [
            SeenMachine { guest: true, ..xeon.clone() },
            SeenMachine { year: None, ..xeon.clone() },
            SeenMachine { processor: Some("Intel(R) Core(TM) i7-4510U".into()), ..xeon.clone() },
        ] {
            assert!(server::wall(&no_server).is_none());
        }
    }

    /// Every emulated machine becomes a model that the engine takes, with its CPUs, levels and C-states.
    #[test]
    fn every_emulated_machine_has_an_estimate() {
        for name in wattwise_emulator::names() {
            let seen = seen(name);
            let m = parsed(&seen);
            assert_eq!(m.cpus.len(), seen.cpus(), "{name}");
            for (k, s) in m.kinds.iter().zip(&seen.kinds) {
                let (low, high) = s.range_khz.map_or((0, 0), |(low, high)| (low / 1000, high / 1000));
                if high > 0 {
                    assert_eq!(u64::from(k.levels[0].khz) / 1000, high, "{name}");
                    assert_eq!(u64::from(k.levels[k.levels.len() - 1].khz) / 1000, low, "{name}");
                }
            }
        }
    }

    /// What is in force and what the watts are taken from, of machines whose trees are real ones'.
    #[test]
    fn the_policy_in_force_is_the_reference() {
        for (name, base, policy) in [
            ("amd-laptop", "alderlake-p-laptop", "amd-pstate-epp:epp=balance_performance"),
            // The highest level that acpi-cpufreq lists brings the boost above it: no cap.
            ("amd-server", "xeon-4210", "schedutil"),
            ("arm-big-little", "omap3530", "schedutil"),
            ("bc10", "omap3530", "userspace:khz=600000"),
            ("core-i5-2gen", "i7-4510u", "ondemand"),
            ("hybrid-laptop", "alderlake-p-laptop", "hwp:epp=balance_performance"),
            ("skylake-server-passive", "xeon-4210", "schedutil"),
            ("vm-2cpu", "recording-vm", "performance"),
        ] {
            let seen = seen(name);
            assert_eq!((base_of(&seen), parsed(&seen).default_policy.as_str()), (base, policy), "{name}");
        }
    }

    /// acpi-cpufreq lists three P-states there; the boost above is the hardware's. Other drivers ask for each speed by itself, and
    /// Intel's table has a speed of its own for the boost.
    #[test]
    fn boost_comes_with_the_highest_listed_speed_where_it_is_not_listed() {
        let of = |name: &str| parsed(&seen(name)).kinds[0].clone();
        let server = of("amd-server");
        assert_eq!(server.asked_khz, [3_000_000, 1_900_000, 1_500_000]);
        assert_eq!((server.base_khz, server.levels[0].khz), (3_000_000, 3_729_000));
        for other in ["amd-laptop", "core-i5-2gen", "hybrid-laptop", "skylake-server-passive", "bc10"] {
            assert!(of(other).asked_khz.is_empty(), "{other}");
        }
    }

    /// All cores at the speed without boost, and the uncore, draw the package's limit.
    #[test]
    fn watts_meet_the_limit_of_the_package() {
        for name in ["hybrid-laptop", "skylake-server-active"] {
            let seen = seen(name);
            let m = parsed(&seen);
            let full: f64 = m
                .kinds
                .iter()
                .zip(&seen.kinds)
                .map(|(k, s)| {
                    let share = f64::from(k.base_khz) / f64::from(k.levels[0].khz);
                    s.cores as f64 * busy_w(k, share)
                })
                .sum();
            let limit = seen.limit_w.expect("it has one");
            let off = (full + m.packages[0].uncore_w) / limit - 1.0;
            assert!(off.abs() < 0.02, "{name}: {off:+.3} of {limit} W");
        }
    }

    /// A clock that somebody measured stands for the one that a guest shows.
    #[test]
    fn a_guests_clock_is_the_measured_one() {
        let m = parsed(&seen("vm-2cpu").with_clock(3_588_000));
        assert_eq!(m.kinds[0].levels.iter().map(|l| l.khz).collect::<Vec<_>>(), [3_588_000]);
        assert!(m.notes.iter().any(|n| n.contains("virtual machine")), "{:?}", m.notes);
    }

    #[test]
    fn rounding_keeps_three_digits() {
        assert_eq!(
            (rounded(12.345), rounded(0.012345), rounded(1234.5), rounded(0.0)),
            (12.3, 0.0123, 1230.0, 0.0)
        );
    }

    /// A share may be inside one cluster's levels and no limit of another's: the fast one is not thought to be limited to the slow
    /// one's speed.
    #[test]
    fn a_share_that_limits_one_cluster_alone_is_a_share() {
        use wattwise_hw::root::Root as _;
        let machine = wattwise_emulator::named("arm-big-little").expect("bundled");
        let max = |policy: u32, khz: &str| {
            let path = format!("sys/devices/system/cpu/cpufreq/policy{policy}/scaling_max_freq");
            machine.write(&path, khz.as_bytes()).expect("it is taken");
        };
        let policy = || SeenMachine::read(&machine).and_then(|seen| seen.policy);
        max(0, "1200000");
        assert_eq!(policy().as_deref(), Some("schedutil+max=95%"));
        // A speed above all of the slow one's levels.
        max(0, "1416000");
        max(4, "1608000");
        assert_eq!(policy().as_deref(), Some("schedutil+max=1608MHz"));
    }

    /// intel_pstate's limits for the whole machine, the longest wake-up and a governor's tunables are in force, too.
    #[test]
    fn limits_of_every_kind_are_parts_of_the_policy_in_force() {
        use wattwise_hw::root::Root as _;
        let cpus = "sys/devices/system/cpu";
        for (name, writes, policy) in [
            (
                "hybrid-laptop",
                &[("intel_pstate/max_perf_pct", "40")][..],
                "hwp:epp=balance_performance+max=40%",
            ),
            // The stricter of two holds.
            (
                "skylake-server-active",
                &[("intel_pstate/max_perf_pct", "60"), ("intel_pstate/min_perf_pct", "50")],
                "hwp:epp=balance_performance+max=2300MHz+min=1900MHz",
            ),
            (
                "skylake-server-passive",
                &[("intel_pstate/max_perf_pct", "60"), ("cpufreq/schedutil/rate_limit_us", "12345")],
                "schedutil:rate_limit=12345+max=2300MHz",
            ),
            (
                "core-i5-2gen",
                &[("cpufreq/ondemand/up_threshold", "70"), ("cpufreq/ondemand/sampling_rate", "150000")],
                "ondemand:up=70,rate=150000",
            ),
            (
                "amd-laptop",
                &[("cpu0/power/pm_qos_resume_latency_us", "50")],
                "amd-pstate-epp:epp=balance_performance+latency=50us",
            ),
            ("amd-server", &[("cpu0/power/pm_qos_resume_latency_us", "n/a")], "schedutil+latency=0us"),
        ] {
            let machine = wattwise_emulator::named(name).expect("bundled");
            for (path, value) in writes {
                machine.write(&format!("{cpus}/{path}"), value.as_bytes()).expect(path);
            }
            assert_eq!(
                SeenMachine::read(&machine).and_then(|seen| seen.policy).as_deref(),
                Some(policy),
                "{name}"
            );
        }
    }

    /// A limit of power that wattwise has lowered is a part of the policy in force; anybody else's is the machine's own.
    #[test]
    fn a_lowered_limit_of_power_is_whoevers_it_is() {
        use wattwise_hw::replaced;
        use wattwise_hw::root::Root as _;
        use wattwise_hw::root::over::OverRoot;
        let machine = wattwise_emulator::named("hybrid-laptop").expect("bundled");
        let limit = "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw";
        let read = |note: &str| {
            let noted = [(replaced::PATH.to_owned(), note.to_owned())];
            let seen = SeenMachine::read(&OverRoot::new(&machine, noted.into())).expect("CPUs");
            let model = parsed(&seen);
            let power = model.packages[0].limit.expect("a limit");
            (seen.policy.clone().expect("a policy"), seen.replaced.clone(), power.long_w, power.short_w)
        };
        let own = read("");
        assert_eq!(own, ("hwp:epp=balance_performance".to_owned(), Vec::new(), 28.0, 64.0));
        machine.write(limit, b"15000000").expect("it is taken");
        assert_eq!(read(""), (own.0.clone(), Vec::new(), 15.0, 64.0));
        let lowered = format!("{}+power=15W", own.0);
        assert_eq!(read(&format!("{limit} 28000000\n")), (lowered, vec![own.0.clone()], 28.0, 64.0));
        machine.write(limit, b"4095000000").expect("it is taken");
        assert!(parsed(&SeenMachine::read(&machine).expect("CPUs")).packages[0].limit.is_none());
    }

    /// The mode of the driver is a setting: the machine stays the same.
    #[test]
    fn a_machine_is_the_same_in_each_mode_of_its_driver() {
        use wattwise_hw::root::Root as _;
        let mut tried = 0;
        for (name, switch) in [("amd-laptop", "amd_pstate"), ("hybrid-laptop", "intel_pstate")] {
            let machine = wattwise_emulator::named(name).expect("bundled");
            let read = || SeenMachine::read(&machine).expect("CPUs");
            let active = read();
            for mode in ["passive", "guided"] {
                let switch = format!("sys/devices/system/cpu/{switch}/status");
                if machine.write(&switch, mode.as_bytes()).is_err() {
                    continue;
                }
                let (mut same, other) = (tables(&active, name).0, tables(&read(), name).0);
                assert_ne!(written(&same), written(&other), "{name}: the policy is another");
                same.platform.table.driver.clone_from(&other.platform.table.driver);
                same.platform.table.governors.clone_from(&other.platform.table.governors);
                same.platform.table.default_policy.clone_from(&other.platform.table.default_policy);
                assert_eq!(written(&same), written(&other), "{name} {mode}");
                tried += 1;
            }
        }
        assert!(tried >= 3, "{tried}");
    }

    /// What a user limits is a part of the policy in force, by kind of core as one share.
    #[test]
    fn limits_are_parts_of_the_policy_in_force() {
        use wattwise_hw::root::Root as _;
        let machine = wattwise_emulator::named("hybrid-laptop").expect("bundled");
        let cpus = "sys/devices/system/cpu";
        let write =
            |path: &str, value: &str| machine.write(&format!("{cpus}/{path}"), value.as_bytes()).expect(path);
        let policy = || SeenMachine::read(&machine).and_then(|seen| seen.policy).expect("a policy");
        let own = policy();
        for cpu in 0..16 {
            let khz = if cpu < 8 { "1500000" } else { "1100000" };
            write(&format!("cpufreq/policy{cpu}/scaling_max_freq"), khz);
        }
        assert_eq!(policy(), format!("{own}+max=30%"));
        for cpu in 0..16 {
            for state in [2, 3, 4] {
                write(&format!("cpu{cpu}/cpuidle/state{state}/disable"), "1");
            }
        }
        assert_eq!(policy(), format!("{own}+max=30%+cmax=C1E"));
        // Since Linux 6.10 the range is shown without the boost that is off: the model still has it, from CPPC.
        let speeds = || {
            parsed(&SeenMachine::read(&machine).expect("CPUs"))
                .kinds
                .iter()
                .map(|k| k.levels[0].khz)
                .collect::<Vec<_>>()
        };
        let with = speeds();
        write("intel_pstate/no_turbo", "1");
        assert_eq!(
            machine.read(&format!("{cpus}/cpufreq/policy0/cpuinfo_max_freq")).expect("read"),
            b"2100000\n"
        );
        assert_eq!((speeds(), policy()), (with, format!("{own}+max=30%+noboost+cmax=C1E")));
    }
}
