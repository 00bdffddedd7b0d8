//! What a machine file may hold: its tables, as `serde` reads them. What they mean, and which values make sense, is
//! [`mod@super::file`]'s business.

use super::range::Range;
use super::{Confidence, Figure};
use serde::Deserialize;
use std::collections::BTreeMap;
use wattwise_figure::suggest;

/// Where a figure comes from that is not from where the rest of its table is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    pub(super) source: String,
    pub(super) confidence: Trust,
    #[serde(default)]
    pub(super) range: Option<Range>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trust {
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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) summary: String,
    #[serde(default)]
    pub(super) cpu_names: Vec<String>,
    #[serde(default)]
    pub(super) state: Vec<String>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) topology: TopologyTable,
    pub(super) kind: Vec<KindTable>,
    pub(super) package: PackageTable,
    #[serde(default)]
    pub(super) wakeup: Option<WakeupTable>,
    #[serde(default)]
    pub(super) thermal: Option<ThermalTable>,
    #[serde(default)]
    pub(super) memory: Option<MemoryTable>,
    #[serde(default)]
    pub(super) memory_clock: Option<MemoryClockTable>,
    #[serde(default)]
    pub(super) uncore: Option<UncoreTable>,
    #[serde(default)]
    pub(super) power_limit: Option<PowerLimitTable>,
    #[serde(default)]
    pub(super) autonomous: Option<AutonomousTable>,
    #[serde(default)]
    pub(super) epp_ceiling: Option<EppCeilingTable>,
    pub(super) platform: PlatformTable,
    #[serde(default)]
    pub(super) tick: Option<TickTable>,
    #[serde(default)]
    pub(super) draws: Option<DrawsTable>,
}

/// Machines that one measurement allows, whose figures hang together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DrawsTable {
    /// Paths of figures.
    pub(super) figures: Vec<String>,
    /// By what each is multiplied, a list for each machine.
    pub(super) factors: Vec<Vec<f64>>,
}

/// Figures of one speed or state that may have a source of their own.
const ENTRY_KEYS: [&str; 4] = ["busy_w", "watts", "exit_us", "latency_us"];

/// `serde` cannot both flatten and deny unknown fields, so each table repeats the two.
macro_rules! table {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field:meta])* $key:ident : $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$field])* pub(super) $key: $ty,)*
            pub(super) source: String,
            pub(super) confidence: Trust,
            #[serde(default)]
            pub(super) range: Option<Range>,
            #[serde(default)]
            pub(super) sources: BTreeMap<String, Origin>,
        }
        impl $name {
            /// Lists the table's origin and those of the figures that differ; `more` names what
            /// `sources` may speak of beside the table's own keys.
            pub(super) fn note(&self, here: &str, more: &[String], into: &mut Vec<Figure>) -> Result<(), String> {
                let mut known: Vec<&str> = vec![$(stringify!($key)),*];
                known.extend(more.iter().map(String::as_str));
                note(into, here.into(), &self.source, self.confidence, self.range)?;
                self.sources.iter().try_for_each(|(what, o)| {
                    // `C3`, or one figure of it: `C3.watts`.
                    let entry = what.split_once('.').filter(|(_, key)| ENTRY_KEYS.contains(key)).map_or(what.as_str(), |(n, _)| n);
                    if !known.contains(&what.as_str()) && !(more.iter().any(|m| m == entry)) {
                        return Err(format!(
                            "{here}.sources.{what}: no such figure in {here}{}",
                            suggest(what, known.iter().copied())
                        ));
                    }
                    note(into, format!("{here}.{what}"), &o.source, o.confidence, o.range)
                })
            }
        }
    };
}

table! {
    struct TopologyTable {
        packages: usize,
        clocks: Clocks,
        llc: Option<Llc>,
    }
}

/// Who shares a last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected \"core\", \"package\" or a number of cores")]
pub(super) enum Llc {
    Named(LlcWord),
    /// So many cores, in order.
    Cores(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LlcWord {
    Core,
    Package,
}

pub(super) fn note(
    into: &mut Vec<Figure>,
    what: String,
    source: &str,
    confidence: Trust,
    range: Option<Range>,
) -> Result<(), String> {
    if source.trim().is_empty() {
        return Err(format!("{what}.source is empty: name where its figures come from"));
    }
    into.push(Figure { what, source: source.into(), confidence: confidence.into(), range });
    Ok(())
}

/// Lists a figure that the file does not give.
pub(super) fn note_default(into: &mut Vec<Figure>, what: String, reason: &str) {
    let source = format!("not in the file; wattwise's default: {reason}");
    into.push(Figure { what, source, confidence: Confidence::Guess, range: None });
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Clocks {
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

pub(super) fn one_usize() -> usize {
    1
}
pub(super) fn one() -> f64 {
    1.0
}

table! {
    struct SpeedsTable {
        mhz: Vec<f64>,
        #[serde(default)]
        busy_w: Vec<f64>,
        /// The highest speed without boost.
        base_mhz: Option<f64>,
        /// What the driver can ask for, where the hardware has speeds besides; the fastest brings the boost.
        #[serde(default)]
        asked_mhz: Vec<f64>,
        #[serde(default)]
        volts: Vec<f64>,
        #[serde(default)]
        capacitance_nf: f64,
        #[serde(default)]
        leak_a: f64,
        /// Below this the voltage falls no more.
        flat_mhz: Option<f64>,
        /// More volts at each speed above `base_mhz`.
        #[serde(default)]
        turbo_volts: f64,
        /// The device tree's, in uW/MHz/V^2: what the kernel's energy model is made of. Never drawn.
        dynamic_power_coefficient: Option<f64>,
        /// Slower speeds are taken and not honoured: the clock stays at this.
        effective_min_mhz: Option<f64>,
        /// Share of the busy power that an awake core draws while it executes nothing.
        stall_share: Option<f64>,
    }
}

/// A core that waits with its clock running draws some 60 % of its busy power (the clock tree and the
/// front end): between the 44 % of a loop of PAUSE and the full power of a spin loop.
pub(super) const STALL_SHARE: f64 = 0.6;

table! {
    struct TstatesTable {
        step_percent: f64,
        /// Work lost beyond the duty cycle's own share, of the nominal.
        loss_percent: f64,
        /// Whether the speeds appear in the table that policies see.
        in_speed_table: bool,
        /// Time in which nothing is done when the duty cycle changes, in us.
        #[serde(default)]
        delay_us: f64,
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

pub(super) fn defer() -> OverlapWord {
    OverlapWord::Defer
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected microseconds, or a matrix of them")]
pub(super) enum Stall {
    Same(f64),
    Matrix(Vec<Vec<f64>>),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OverlapWord {
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

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateTable {
    pub(super) name: String,
    pub(super) latency_us: f64,
    pub(super) target_us: f64,
    #[serde(default)]
    pub(super) entry_us: f64,
    /// Real time to leave where it differs from the table's worst case; with `lowest_exit_us`, at the highest level.
    pub(super) exit_us: Option<f64>,
    /// At the lowest level, where a slow clock leaves slower; between in proportion to the clock's period.
    pub(super) lowest_exit_us: Option<f64>,
    /// Set where the file gives no exit time and the table's latency stands for it.
    #[serde(skip)]
    pub(super) exit_by_latency: bool,
    /// At the highest level.
    pub(super) watts: f64,
    /// At the lowest level, where the state keeps the core's voltage; between in proportion to the busy power.
    pub(super) lowest_watts: Option<f64>,
}

table! {
    struct PackageTable {
        uncore_w: f64,
        #[serde(default)]
        idle: Vec<PackageStateTable>,
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageStateTable {
    pub(super) name: String,
    /// The C-state that every core must have reached.
    pub(super) needs: String,
    pub(super) watts: f64,
    pub(super) exit_us: f64,
    /// Only while every other package's cores are as deep.
    #[serde(default)]
    pub(super) every_package: bool,
}

table! {
    struct ThermalTable {
        ambient_c: f64,
        c_per_w: f64,
        tau_s: f64,
        critical_c: f64,
        #[serde(default)]
        leakage_per_c: f64,
    }
}

table! {
    struct MemoryTable {
        /// Of each package, at rest.
        watts: f64,
        /// More for each core at work.
        #[serde(default)]
        busy_w: f64,
        /// So many modules a package: the other figures are one module's then.
        #[serde(default)]
        modules: Option<f64>,
        /// More while the uncore is at its high state (`[uncore]`).
        #[serde(default)]
        high_w: f64,
        /// In the place of `watts` while the package is in an idle state.
        #[serde(default)]
        self_refresh_w: Option<f64>,
    }
}

table! {
    /// A memory controller whose clock the kernel sets.
    struct MemoryClockTable {
        /// Fastest first.
        mhz: Vec<f64>,
        /// More at the highest clock than at the lowest; between in proportion to the clock.
        watts: f64,
        /// The share of a wait for memory that follows the clock, of a wait at the highest.
        follows: f64,
        /// The share of the highest clock's cycles in which data goes to a core that does nothing but wait for memory.
        core_share: f64,
        /// Between two looks of the governor.
        #[serde(default = "devfreq_poll_ms")]
        poll_ms: f64,
        /// The governor in force unless told otherwise, as `+dram=` takes it.
        governor: String,
    }
}

/// What devfreq's drivers ask for (Linux 6.12, `rk3399_dmc.c`; Rockchip's 5.10, `rockchip_dmc.c`).
fn devfreq_poll_ms() -> f64 {
    50.0
}

table! {
    /// How hardware that chooses its own speed does so.
    struct AutonomousTable {
        /// Of its loop, times the published one.
        #[serde(default = "one")]
        period: f64,
        /// Load that asks for the highest speed, at EPP 0 and 255.
        #[serde(default = "full_at_0")]
        full_at_0: f64,
        #[serde(default = "full_at_255")]
        full_at_255: f64,
        /// Boundaries of the loop that a rise needs.
        #[serde(default = "one")]
        rise: f64,
        /// Chance that a boundary at which a busy core sleeps drops its speed.
        #[serde(default = "drop_chance")]
        drop: f64,
        /// Where that ends, of the highest speed.
        #[serde(default = "drop_to")]
        drop_to: f64,
        /// Boundaries from there to the highest speed.
        #[serde(default = "climb")]
        climb: f64,
    }
}

table! {
    /// How the highest speed that a busy core reaches falls with the preference (EPP).
    struct EppCeilingTable {
        /// The EPP from which it falls.
        from: f64,
        /// What is left of it at EPP 255.
        at_255: f64,
    }
}

fn full_at_0() -> f64 {
    0.6
}
fn full_at_255() -> f64 {
    0.95
}
fn drop_chance() -> f64 {
    0.16
}
fn drop_to() -> f64 {
    0.45
}
fn climb() -> f64 {
    7.0
}

/// Drivers under which the hardware chooses.
pub(super) const AUTONOMOUS: [&str; 4] =
    ["intel_pstate-hwp", "intel_cpufreq-hwp", "amd-pstate-epp", "amd-pstate"];

impl AutonomousTable {
    /// What is known of any such hardware, each figure with what it rests on.
    pub(super) fn published() -> AutonomousTable {
        let origin = |source: &str, low: f64, high: f64| Origin {
            source: format!("not in the file; wattwise's default: {source}"),
            confidence: Trust::Guess,
            range: Some(Range::Ends(low, high)),
        };
        let smythies = "D. Smythies, linux-pm, June and July 2020, on a Core i5-9600K and a Core i5-6200U";
        let sources = [
            ("period", origin(&format!("the loop's period by EPP: {smythies}; others may differ"), 0.5, 2.0)),
            ("full_at_0", origin("no published figure", 0.4, 0.7)),
            ("full_at_255", origin("no published figure", 0.85, 1.0)),
            ("rise", origin(&format!("one or two: {smythies}"), 1.0, 2.0)),
            ("drop", origin(&format!("2.45 to 3.1 % of gaps of 0.84 ms: {smythies}"), 0.15, 0.18)),
            ("drop_to", origin("2 GHz of 4.6 meets Smythies' mean speed under a periodic load", 0.3, 0.7)),
            ("climb", origin("no published figure; 4 to 10 meet the same", 4.0, 10.0)),
        ];
        AutonomousTable {
            period: 1.0,
            full_at_0: full_at_0(),
            full_at_255: full_at_255(),
            rise: 1.0,
            drop: drop_chance(),
            drop_to: drop_to(),
            climb: climb(),
            source: "not in the file; wattwise's default: what is published of two Intel processors".into(),
            confidence: Trust::Guess,
            range: None,
            sources: sources.into_iter().map(|(key, origin)| (key.to_owned(), origin)).collect(),
        }
    }
}

table! {
    struct PowerLimitTable {
        /// A mean over the window: PL1, PPT.
        long_w: f64,
        /// The window; 0: at once.
        tau_s: f64,
        /// At any time: PL2.
        short_w: Option<f64>,
    }
}

table! {
    struct UncoreTable {
        /// More than `package.uncore_w` with the fastest core at its highest speed; below in proportion to its clock.
        #[serde(default)]
        follow_w: f64,
        /// More while some core runs at `step_mhz` or faster ...
        #[serde(default)]
        step_w: f64,
        #[serde(default)]
        step_mhz: Option<f64>,
        /// ... from so long after the first one does ...
        #[serde(default)]
        delay_us: f64,
        /// ... until so long after the last one did.
        #[serde(default)]
        hold_us: f64,
        /// The deepest C-state in which a core's clock still counts; the first where nothing is said.
        #[serde(default)]
        votes: Option<String>,
    }
}

table! {
    struct PlatformTable {
        watts: f64,
        battery_wh: Option<f64>,
        #[serde(default = "menu")]
        idle_policy: String,
        /// `linux`, `freebsd` or `openbsd`.
        #[serde(default = "linux")]
        system: String,
        /// The driver of the speed, such as `intel_pstate-hwp`.
        #[serde(default)]
        driver: String,
        /// The governors that its kernel has; empty where nobody says.
        #[serde(default)]
        governors: Vec<String>,
        /// What the system does unless told otherwise, as `--policy` takes it.
        default_policy: Option<String>,
        /// What wattwise has put that in the place of: answers hold the limit of time against each of these too.
        #[serde(default)]
        replaced_policies: Vec<String>,
        /// Whether the scheduler's load counts work, whatever the speed; false: just time (Linux before 5.7 on x86).
        load_invariant: Option<bool>,
        /// With whose boost a busy CPU counts as fully loaded: that of so many cores at work.
        load_full_cores: Option<usize>,
        migration_us: Option<f64>,
        interrupt_us: Option<f64>,
    }
}

pub(super) fn menu() -> String {
    "menu".into()
}
pub(super) fn linux() -> String {
    "linux".into()
}
/// Most current distributions build their kernel with it as the default governor.
pub(super) const DEFAULT_POLICY: &str = "schedutil";
/// A task that finds another core's cache reloads some tens of kilobytes.
pub(super) const MIGRATION_US: f64 = 5.0;
/// A timer's hard interrupt and the wake-up of another CPU, on the machine of the bundled recordings.
pub(super) const INTERRUPT_US: f64 = 2.0;

table! {
    struct WakeupTable {
        ipi_us: Option<f64>,
        lines: Option<f64>,
        /// Between threads of a core, cores of a last-level cache, caches of a package, packages.
        line_ns: Option<[f64; 4]>,
    }
}

/// An interrupt to another CPU and its handler: 1200 to 2000 cycles.
pub(super) const IPI_US: f64 = 0.55;
/// The message, its queue, both tasks' and the run queue's fields: 2 KiB.
pub(super) const LINES: f64 = 32.0;
/// The middle of what has been measured from thread to thread.
pub(super) const LINE_NS: [f64; 4] = [5.0, 40.0, 85.0, 134.0];

table! {
    struct TickTable {
        hz: f64,
        tickless: bool,
        cost_us: f64,
        restart_us: Option<f64>,
    }
}
