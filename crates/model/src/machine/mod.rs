//! Machine models, ready to run: dense tables indexed by small integers.
//!
//! The file format (`machines/*.toml`), where every figure carries its source, is [`mod@file`]'s
//! business; what stands here has been validated and holds no strings that the engine would look
//! at. Powers are in watts, times in ns, speeds in kHz.

mod bounds;
pub mod builtin;
mod draw;
mod duty;
mod energy_model;
pub mod figures;
pub mod file;
mod memory_clock;
pub mod processors;
mod range;
mod tables;
mod uncore;

pub use draw::Drawn;
pub use memory_clock::MemoryClock;
pub use uncore::Uncore;

/// The package temperature to which a model's watts belong, in degrees Celsius.
pub const REFERENCE_C: f64 = 50.0;

/// A model of a computer.
#[derive(Clone, Debug)]
pub struct MachineModel {
    /// Its name, as in `--machine`.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// Logical CPUs.
    pub cpus: Vec<Cpu>,
    /// Physical cores.
    pub cores: Vec<Core>,
    /// Packages (sockets).
    pub packages: Vec<Package>,
    /// Frequency domains: cores that share one clock.
    pub domains: Vec<Domain>,
    /// Kinds of core (one on most machines; P and E on hybrids).
    pub kinds: Vec<CoreKind>,
    /// Power of everything outside the packages, always, in watts.
    pub platform_w: f64,
    /// Power of the memory; nothing where it is of the platform.
    pub memory: Memory,
    /// Its clock, where the kernel sets it.
    pub memory_clock: Option<MemoryClock>,
    /// Capacity of the battery in Wh, where there is one.
    pub battery_wh: Option<f64>,
    /// The periodic tick.
    pub tick: Tick,
    /// CPU time that a task pays to refill what it had cached when it moves within a last-level cache, in ns; between
    /// other distances in proportion to [`Apart::line_ns`].
    pub migration_ns: u64,
    /// What it costs that a waker and whom it wakes are apart.
    pub apart: Apart,
    /// CPU time of a timer's interrupt that wakes a task elsewhere, in ns at the highest speed; 0: interrupts are not
    /// modelled, and wake no CPU.
    pub interrupt_ns: u64,
    /// Idle policy of the machine's usual operating system (`"menu"`, `"fixed:depth=1"`).
    pub default_idle: String,
    /// Its usual operating system (`"linux"`, `"freebsd"`, `"openbsd"`).
    pub system: String,
    /// That system's driver of the speed (`"intel_pstate-hwp"`, `"acpi-cpufreq"`); empty where nothing says.
    pub driver: String,
    /// The governors that its kernel has; empty where nobody says.
    pub governors: Vec<String>,
    /// What that system does unless told otherwise, as a policy is written (`"hwp:epp=102"`).
    pub default_policy: String,
    /// What wattwise has put that in the place of, the newest first.
    pub replaced_policies: Vec<String>,
    /// How its hardware chooses where it chooses by itself.
    pub autonomous: Autonomous,
    /// Whether the scheduler's load counts work, whatever the speed (Linux: where APERF and MPERF tell
    /// the real speed), or just time. Models have it; virtual machines do not.
    pub load_invariant: bool,
    /// Parts of processors' names, such as `i7-4510U`, that this machine is a model of.
    pub cpu_names: Vec<String>,
    /// What held while its figures were measured, such as `kernel 6.12.0` or `on mains`.
    pub state: Vec<String>,
    /// What whoever reads an answer for it should know, a sentence each.
    pub notes: Vec<String>,
    /// Where each figure comes from, in the order of the file.
    pub provenance: Vec<Figure>,
    /// The file behind the tables, for [`MachineModel::draw`]; nothing where a machine was made without one.
    pub written: figures::Written,
}

/// Whether a processor's name has this part as words of its own, in upper or lower case: `Silver 4210` is
/// in "Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz" and not in "... Silver 4210R ...".
pub fn is_part_of_name(part: &str, cpu_name: &str) -> bool {
    let (part, name) = (part.to_ascii_lowercase(), cpu_name.to_ascii_lowercase());
    let inner = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    !part.is_empty()
        && name.match_indices(&part).any(|(at, _)| {
            !inner(name[..at].chars().next_back()) && !inner(name[at + part.len()..].chars().next())
        })
}

/// One figure's origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is, as a path in the file (`kind.core.levels`).
    pub what: String,
    /// Where it was published or how it was obtained.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
    /// How far it may be off, where the file says so.
    pub range: Option<figures::Range>,
}

/// How a figure was obtained, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// A vendor's data sheet.
    Datasheet,
    /// A device tree.
    DeviceTree,
    /// A table in an operating system's source.
    KernelTable,
    /// Somebody's measurement.
    Measured,
    /// Chosen so that the model meets a measurement; says which in its source.
    Fitted,
    /// Nobody knows; a plausible value.
    Guess,
}

impl Confidence {
    /// As machine files write it.
    pub fn word(self) -> &'static str {
        match self {
            Confidence::Datasheet => "datasheet",
            Confidence::DeviceTree => "device-tree",
            Confidence::KernelTable => "kernel-table",
            Confidence::Measured => "measured",
            Confidence::Fitted => "fitted",
            Confidence::Guess => "guess",
        }
    }
}

/// A logical CPU (hardware thread).
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Its core.
    pub core: u16,
    /// Its package.
    pub package: u16,
    /// Its last-level cache, counted over the whole machine: CPUs with the same number share one.
    pub llc: u16,
    /// Its frequency domain.
    pub domain: u16,
    /// Its core's kind.
    pub kind: u8,
}

/// How far apart two CPUs are: what a cache line crosses from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// They are one.
    Same,
    /// Threads of a core.
    Core,
    /// Cores with a last-level cache in common.
    Llc,
    /// Caches of a package.
    Package,
    /// Packages.
    Machine,
}

impl Cpu {
    /// How far it is from another CPU of the machine that is not itself.
    #[inline]
    pub fn distance(&self, other: &Cpu) -> Distance {
        match (self.core == other.core, self.llc == other.llc, self.package == other.package) {
            (true, ..) => Distance::Core,
            (_, true, _) => Distance::Llc,
            (.., true) => Distance::Package,
            _ => Distance::Machine,
        }
    }
}

/// What it costs that two CPUs are apart: interrupts, and cache lines that cross. A switch of tasks costs the same
/// everywhere, and is part of the tasks' own runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// Interrupting another CPU that does not idle, until its handler is done, in ns.
    pub ipi_ns: u64,
    /// Cache lines that a woken task reads of what its waker has just written.
    pub lines: f64,
    /// Moving a cache line, in ns, by [`Distance`].
    pub line_ns: [f64; 5],
}

impl Apart {
    /// Nothing costs anything.
    pub const FREE: Apart = Apart { ipi_ns: 0, lines: 0.0, line_ns: [0.0; 5] };

    /// CPU time of a woken task for what it reads of its waker's, in ns.
    #[inline]
    pub fn read_ns(&self, distance: Distance) -> u64 {
        (self.lines * self.line_ns[distance as usize]) as u64
    }

    /// CPU time that a task pays when it moves so far, in ns, where a move within a last-level cache costs `near_ns`.
    pub fn refill_ns(&self, near_ns: u64, distance: Distance) -> u64 {
        let near = self.line_ns[Distance::Llc as usize];
        if near <= 0.0 {
            return near_ns;
        }
        (near_ns as f64 * self.line_ns[distance as usize] / near) as u64
    }
}

/// A physical core.
#[derive(Clone, Debug)]
pub struct Core {
    /// Its hardware threads, at most [`MAX_SMT`].
    pub cpus: Vec<u16>,
    /// Its package.
    pub package: u16,
    /// Its frequency domain.
    pub domain: u16,
    /// Its kind.
    pub kind: u8,
}

/// Hardware threads a core may have.
pub const MAX_SMT: usize = 4;
/// C-states a kind of core may have, and package states a package may have.
pub const MAX_IDLE_STATES: usize = 12;

impl MachineModel {
    /// Watts with every core in its deepest state, and with every CPU busy at the speed that this allows; platform
    /// included.
    pub fn rest_and_full_w(&self) -> (f64, f64) {
        let (mut rest, mut full) = (self.platform_w, self.platform_w);
        for p in &self.packages {
            let memory = self.memory;
            rest += p.idle.last().map_or(p.uncore_w, |s| s.watts - memory.asleep_less_w) + memory.rest_w;
            full += p.uncore_w + memory.rest_w + memory.high_w + memory.busy_w * p.cores.len() as f64;
            full += p.uncore.as_ref().map_or(0.0, |u| u.step_w + u.follow_w);
            for c in p.cores.iter().map(|&c| &self.cores[usize::from(c)]) {
                let (kind, boost) =
                    (&self.kinds[usize::from(c.kind)], &self.domains[usize::from(c.domain)].boost);
                let level = boost.get(p.cores.len()).or(boost.last()).map_or(0, |&b| usize::from(b));
                rest += kind.idle.last().map_or(0.0, |s| s.watts[kind.levels.len() - 1]);
                full += kind.levels[level].busy_w * kind.smt_power[c.cpus.len() - 1];
            }
        }
        (rest, full + self.memory_clock.as_ref().map_or(0.0, |clock| clock.top_w))
    }

    /// How far apart two CPUs are.
    #[inline]
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        if a == b { Distance::Same } else { self.cpus[a].distance(&self.cpus[b]) }
    }
}

/// Power of the memory, where it is known apart from the platform's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Of each package's memory at rest, in watts.
    pub rest_w: f64,
    /// More for each core at work, in watts.
    pub busy_w: f64,
    /// More of each package's while its uncore is at its high state, in watts.
    pub high_w: f64,
    /// Less of each package's while it is in an idle state, in watts: self-refresh.
    pub asleep_less_w: f64,
}

/// How hardware that chooses its own speed does so; what each means is said with the policy `hwp`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Autonomous {
    /// The period of its loop, of the published one.
    pub period: f64,
    /// Load that asks for the highest speed, at EPP 0 and at EPP 255.
    pub full_at: (f64, f64),
    /// Boundaries of the loop that a rise needs.
    pub rise: f64,
    /// Chance that a boundary at which a busy core sleeps drops its speed.
    pub drop: f64,
    /// Where that ends, of the highest speed.
    pub drop_to: f64,
    /// Boundaries from there to the highest speed.
    pub climb: f64,
    /// None: the highest speed is reached under any preference.
    pub epp_ceiling: Option<EppCeiling>,
}

/// How the highest speed that a busy core reaches falls with the preference (EPP): in a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EppCeiling {
    /// The EPP from which it falls.
    pub from: f64,
    /// What is left of it at EPP 255.
    pub at_255: f64,
}

impl EppCeiling {
    /// Straight lines through what is known of four mobile processors of Intel (`docs/notes/hardware-mechanisms.md`): a middle one.
    pub const MOBILE: EppCeiling = EppCeiling { from: 110.0, at_255: 0.33 };
    /// Between which `from` and `at_255` of those lie.
    pub const MOBILE_RANGES: [[f64; 2]; 2] = [[80.0, 180.0], [0.13, 0.53]];
    /// What they rest on, in words.
    pub const MOBILE_SOURCE: &str =
        "straight lines through what four mobile processors of Intel are left of their highest speed";
}

impl Default for Autonomous {
    fn default() -> Autonomous {
        Autonomous {
            period: 1.0,
            full_at: (0.6, 0.95),
            rise: 1.0,
            drop: 0.16,
            drop_to: 0.45,
            climb: 7.0,
            epp_ceiling: None,
        }
    }
}

/// A package.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its cores.
    pub cores: Vec<u16>,
    /// Its frequency domains.
    pub domains: Vec<u16>,
    /// Whether any of them has a boost table.
    pub boosts: bool,
    /// Power while some core is awake, beside the cores' own, in watts.
    pub uncore_w: f64,
    /// Package idle states, shallowest first; empty where it has none.
    pub idle: Vec<PackageState>,
    /// Thermal behaviour.
    pub thermal: Thermal,
    /// What of it follows its fastest core.
    pub uncore: Option<Uncore>,
    /// Its power limits.
    pub limit: Option<PowerLimit>,
}

/// Power limits of a package, in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLimit {
    /// What a mean over the window may be: PL1, PPT.
    pub long_w: f64,
    /// The window in seconds; 0: the limit holds at once.
    pub tau_s: f64,
    /// What may be drawn until the mean is there: PL2; infinite without one.
    pub short_w: f64,
}

/// A package idle state: entered when every core of the package is deep enough.
#[derive(Clone, Debug)]
pub struct PackageState {
    /// Its name (`PC6`).
    pub name: String,
    /// Every core must be in a C-state of at least this index.
    pub needs: u8,
    /// Power instead of [`Package::uncore_w`], in watts.
    pub watts: f64,
    /// Added to the exit latency of the core that ends it, in ns.
    pub exit_ns: u64,
    /// It also takes every other package: any busy core of any socket keeps it out.
    pub every_package: bool,
}

/// A one-pole thermal model: power times resistance above ambient, approached with one time constant.
#[derive(Clone, Copy, Debug)]
pub struct Thermal {
    /// Temperature at no power, in degrees Celsius.
    pub ambient_c: f64,
    /// Degrees per watt in the steady state.
    pub c_per_w: f64,
    /// Time constant in seconds.
    pub tau_s: f64,
    /// Temperature at which the hardware holds the lowest speed, in degrees Celsius.
    pub critical_c: f64,
    /// By what share the cores' watts grow with a degree above [`REFERENCE_C`], for which the model's watts are: leakage.
    pub leakage_per_c: f64,
}

/// A frequency domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Its cores.
    pub cores: Vec<u16>,
    /// The kind of its cores: one kind a domain.
    pub kind: u8,
    /// What a change of speed costs.
    pub transition: Transition,
    /// Highest level by the number of awake cores in the package: entry `n` is the level index that
    /// `n` awake cores may use at most (the last entry holds for more). Empty: no limit.
    pub boost: Vec<u8>,
}

/// Cost of a change of speed.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The domain's cores do nothing for this long, in ns: `stall_ns[from * levels + to]`.
    pub stall_ns: Vec<u64>,
    /// Before the stall, time during which the old speed is still in force, in ns (request to effect).
    pub delay_ns: u64,
    /// What happens to a request that comes while another is under way.
    pub overlap: Overlap,
}

/// A request during a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// It waits until the change is done.
    Defer,
    /// It replaces the one under way.
    Preempt,
}

/// A kind of core and its states.
#[derive(Clone, Debug)]
pub struct CoreKind {
    /// Its name (`core`, `P`, `E`).
    pub name: String,
    /// Cycles of work done per clock cycle, relative to the machine's reference kind (1.0).
    pub ipc: f64,
    /// Throughput of each thread when `n + 1` threads of a core are busy, of one thread's alone.
    /// `[1.0]` without SMT, for example `[1.0, 0.62]` with two threads.
    pub smt_throughput: Vec<f64>,
    /// Power of the core when `n + 1` threads are busy, of its power with one.
    pub smt_power: Vec<f64>,
    /// P-states and throttled states, **fastest first**.
    pub levels: Vec<SpeedLevel>,
    /// The highest speed without boost, in kHz; need not be a level. The highest level where there is no boost.
    pub base_khz: u32,
    /// The speed at which the scheduler's load takes a busy CPU for fully loaded, in kHz; above it too. See `platform.load_full_cores`.
    pub load_full_khz: u32,
    /// The levels that the driver can ask for, fastest first, where the hardware has more; empty: each. With the fastest of them comes
    /// what boost there is.
    pub asked_khz: Vec<u32>,
    /// C-states, shallowest first; never empty.
    pub idle: Vec<CState>,
}

/// A speed and its costs.
#[derive(Clone, Copy, Debug)]
pub struct SpeedLevel {
    /// The name that policies see: the clock, or clock times duty for a T-state.
    pub khz: u32,
    /// Cycles really executed per ns with one thread busy: the clock in GHz, times the duty and its loss for a T-state.
    pub cycles_per_ns: f64,
    /// Power of a core with one busy thread, in watts.
    pub busy_w: f64,
    /// Power of a core that is awake without executing (stalled in a transition, leaving a C-state), in watts.
    pub stall_w: f64,
    /// What the kernel's energy model says that a busy core draws here, in uW: no leakage, nothing but the core, and the same in every
    /// draw of the machine.
    pub model_uw: u32,
    /// True for a T-state: a clock that is stopped part of the time.
    pub throttled: bool,
}

/// A core C-state.
#[derive(Clone, Debug)]
pub struct CState {
    /// Its name (`C6`).
    pub name: String,
    /// Time to enter; a wake-up in between waits for it, in ns.
    pub entry_ns: u64,
    /// Time to leave, in ns, by level of the domain (same order as [`CoreKind::levels`]).
    pub exit_ns: Vec<u64>,
    /// Shortest stay that is worth it, as the operating system's table says, in ns.
    pub target_ns: u64,
    /// Worst-case exit latency as the operating system's table says, in ns.
    pub latency_ns: u64,
    /// Power of the core in watts, by level (deep states: the same for all).
    pub watts: Vec<f64>,
}

impl CoreKind {
    /// The hardware's first C-state: the one that a polling state may come before.
    pub fn halted(&self) -> Option<&CState> {
        self.idle.iter().find(|s| !s.polls())
    }

    /// Whether the driver can ask for a level. It always can for the highest: with the fastest that it names, where that is another.
    pub fn can_be_asked(&self, khz: u32) -> bool {
        self.asked_khz.is_empty() || khz == self.levels[0].khz || self.asked_khz.contains(&khz)
    }

    /// The share that the scheduler's load counts of a busy CPU at a level.
    pub fn load_share(&self, level: &SpeedLevel) -> f64 {
        let share = level.cycles_per_ns / self.levels[0].cycles_per_ns;
        (share * f64::from(self.levels[0].khz) / f64::from(self.load_full_khz)).min(1.0)
    }

    /// The level that brings the boost when it is asked for; `None` where each level is asked for by itself.
    pub fn boosting_khz(&self) -> Option<u32> {
        self.asked_khz.first().copied().filter(|khz| *khz < self.levels[0].khz)
    }
}

impl CState {
    /// Whether it is no state of the hardware but a loop of the kernel that looks for work. Linux names it `POLL`.
    pub fn polls(&self) -> bool {
        self.name == "POLL"
    }
}

/// The scheduler's periodic tick.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// Its period in ns.
    pub period_ns: u64,
    /// Whether an idle CPU can do without it.
    pub tickless: bool,
    /// CPU time of one tick at the highest speed, in ns.
    pub cost_ns: u64,
    /// CPU time that a CPU spends on its way out of idle where its tick was stopped, at the highest speed, in ns: the clock device
    /// is programmed again (Linux: `tick_nohz_restart_sched_tick()`; T. Gleixner, "Prevent pointless NOHZ transitions in
    /// default_idle_call()", 2026).
    pub restart_ns: u64,
}
