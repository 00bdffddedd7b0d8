//! What a machine's kernel says that a model needs: of this machine, a capture or an emulated one.

use std::collections::BTreeSet;
use wattwise_figure::units;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::{CoreKind, Cpu};
use wattwise_hw::info::Info;
use wattwise_hw::replaced::Replaced;
use wattwise_hw::root::{Root, number, text};
use wattwise_hw::states::cpufreq::{CpufreqPolicy, Driver};
use wattwise_hw::states::cpuidle::{CpuStates, CpuidleState};
use wattwise_hw::states::devfreq::MemoryController;
use wattwise_hw::states::power::Zone;
use wattwise_policy::dram::{self, DramSpec};
use wattwise_policy::speed::tunables;

const CPUS: &str = "sys/devices/system/cpu";

/// A machine as its kernel describes it. Speeds in kHz, times in us, powers in W.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenMachine {
    /// The processor's name.
    pub processor: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Whether a hypervisor is underneath that keeps the speeds to itself.
    pub guest: bool,
    /// Packages (sockets) with CPUs online.
    pub packages: usize,
    /// Kinds of core, the fastest first; never empty.
    pub kinds: Vec<SeenKind>,
    /// Cores of a package that share a last-level cache; none where the kernel does not tell.
    pub llc_cores: Option<usize>,
    /// The scaling driver.
    pub driver: Option<String>,
    /// The governors of the kernel; empty where the driver chooses speeds itself and names only its own.
    pub governors: Vec<String>,
    /// Whether the driver offers energy-performance preferences.
    pub epp: bool,
    /// The policy in force, as `--policy` takes it.
    pub policy: Option<String>,
    /// What wattwise has put another policy in the place of, the newest first.
    pub replaced: Vec<String>,
    /// The idle governor.
    pub idle_governor: Option<String>,
    /// What a package may draw for long by its maker's word, W; without it, by the limit in force.
    pub limit_w: Option<f64>,
    /// The power limits of a package, as they are without what wattwise has lowered.
    pub limits: Option<PowerLimits>,
    /// The memory's clock, where the kernel sets it.
    pub memory: Option<SeenMemory>,
    /// The temperature at which its hardware slows down, in degrees Celsius, where a driver tells.
    pub hottest_c: Option<f64>,
    /// Capacity of the battery, in Wh.
    pub battery_wh: Option<f64>,
    /// Memory, in GB.
    pub memory_gb: Option<f64>,
    /// Year of the firmware: the machine is hardly younger.
    pub year: Option<f64>,
    /// Whether the clock of a machine without cpufreq was measured.
    pub clock_measured: bool,
}

/// The power limits of a package, as they are in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLimits {
    /// What its mean over the window may be, uW.
    pub long_uw: u64,
    /// The window, us.
    pub window_us: u64,
    /// What it may draw until the mean is there, uW; none where nothing limits it.
    pub short_uw: Option<u64>,
}

/// A memory controller whose clock the kernel sets.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenMemory {
    /// Its clocks in kHz, fastest first; two at least.
    pub clocks_khz: Vec<u64>,
    /// Who sets the clock, as a policy's `+dram=` takes it.
    pub governor: String,
    /// Between two looks of that governor, ms.
    pub polling_ms: Option<u32>,
}

/// A kind of core.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenKind {
    /// `core`, `P`, `E` or `LP-E`.
    pub name: &'static str,
    /// Cores a package.
    pub cores: usize,
    /// Hardware threads a core.
    pub threads: usize,
    /// Cores that share a clock.
    pub clock_cores: usize,
    /// The range of its speeds.
    pub range_khz: Option<(u64, u64)>,
    /// Its highest speed without boost.
    pub base_khz: Option<u64>,
    /// The highest speed that its driver lists, where the hardware boosts from there by itself.
    pub listed_khz: Option<u64>,
    /// Its levels, ascending; empty where the driver has no table.
    pub levels_khz: Vec<u64>,
    /// The speed of the moment: all that is known of a guest's.
    pub now_khz: Option<u64>,
    /// Relative capacity of a CPU (1024 is the fastest).
    pub capacity: Option<u32>,
    /// C-states in which it is idle, shallowest first, without those that poll.
    pub idle: Vec<CpuidleState>,
}

impl SeenMachine {
    /// CPUs of the machine as the model will have them.
    pub fn cpus(&self) -> usize {
        self.packages * self.kinds.iter().map(|k| k.cores * k.threads).sum::<usize>()
    }

    /// The same where somebody has measured the clock: a machine without cpufreq shows the one that it was sold with.
    pub fn with_clock(mut self, khz: u64) -> SeenMachine {
        for kind in self.kinds.iter_mut().filter(|k| k.range_khz.is_none()) {
            kind.now_khz = Some(khz);
            self.clock_measured = true;
        }
        self
    }

    /// Reads a machine. `None` where its files list no CPU.
    pub fn read(root: &dyn Root) -> Option<SeenMachine> {
        let now = SeenMachine::of_the_moment(root)?;
        let layers = Replaced::layers(root).into_iter();
        let before: Vec<SeenMachine> =
            layers.filter_map(|layer| SeenMachine::of_the_moment(&layer.before(root))).collect();
        let all = || [&now].into_iter().chain(&before);
        let limits = all().filter_map(|seen| seen.limits).max_by_key(|limits| limits.long_uw);
        // As it was before wattwise changed anything.
        let memory = all().last().and_then(|seen| seen.memory.clone());
        let mut policies: Vec<String> = Vec::new();
        for policy in all().filter_map(|seen| seen.policy_under(limits, memory.as_ref())) {
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        let in_force = now.policy_under(limits, memory.as_ref());
        let replaced = policies.into_iter().filter(|policy| in_force.as_ref() != Some(policy)).collect();
        Some(SeenMachine { policy: in_force, replaced, limits, memory, ..now })
    }

    /// Its policy, with the limit of power where that is lower than the machine's own, and with the governor of the memory where
    /// that is another.
    fn policy_under(&self, own: Option<PowerLimits>, own_memory: Option<&SeenMemory>) -> Option<String> {
        let mut policy = self.policy.clone()?;
        if let (Some(now), Some(own)) = (self.limits, own)
            && now.long_uw < own.long_uw
        {
            policy += &format!("+power={}W", now.long_uw as f64 / 1e6);
        }
        if let (Some(now), Some(own)) = (&self.memory, own_memory)
            && now.governor != own.governor
        {
            policy += &format!("+dram={}", now.governor);
        }
        Some(policy)
    }

    fn of_the_moment(root: &dyn Root) -> Option<SeenMachine> {
        let info = Info::read(root);
        let online: Vec<&Cpu> = info.topology.cpus.iter().filter(|c| c.online).collect();
        let packages: BTreeSet<i32> = online.iter().map(|c| c.package.unwrap_or(0)).collect();
        let kinds: BTreeSet<CoreKind> =
            online.iter().map(|c| c.kind.unwrap_or(CoreKind::Performance)).collect();
        let of = |kind: CoreKind| -> Vec<&Cpu> {
            let own = |c: &&&Cpu| c.kind.unwrap_or(CoreKind::Performance) == kind;
            online.iter().filter(own).copied().collect()
        };
        let policies = info.cpufreq.policies.value.as_deref().unwrap_or_default();
        let now = clock_of_cpuinfo(root);
        let seen: Vec<SeenKind> = kinds
            .iter()
            .map(|&kind| SeenKind::read(root, &info, &of(kind), kinds.len() > 1, &packages, policies, now))
            .collect();
        if seen.is_empty() {
            return None;
        }
        let boost_off = boost_is_off(&info) && seen.iter().any(shows_boost);
        let first = policies.first();
        let cpuinfo = text(root, "proc/cpuinfo").unwrap_or_default();
        Some(SeenMachine {
            processor: info.topology.processor.clone(),
            kernel: info.kernel.clone(),
            // A guest whose kernel sets speeds sees a machine's.
            guest: seen.iter().all(|k| k.range_khz.is_none())
                && cpuinfo
                    .lines()
                    .any(|l| l.starts_with("flags") && l.split_whitespace().any(|f| f == "hypervisor")),
            packages: packages.len(),
            kinds: seen,
            llc_cores: llc_cores(root, &online),
            driver: first.and_then(|p| p.driver.clone()),
            governors: first.map_or_else(Vec::new, governors),
            epp: first.is_some_and(|p| !p.epps.is_empty() || p.epp.is_some()),
            policy: in_force(
                (policies, info.cpufreq.driver.as_ref()),
                &tops(root, policies, boost_off),
                boost_off,
                info.cpuidle.cpus().first(),
            ),
            replaced: Vec::new(),
            idle_governor: info.cpuidle.governor.clone(),
            limit_w: info.energy.value.as_deref().and_then(package_limit_w),
            limits: info.energy.value.as_deref().and_then(power_limits),
            memory: info.memory.value.as_deref().unwrap_or_default().iter().find_map(memory_clock),
            hottest_c: hottest_c(root),
            clock_measured: false,
            battery_wh: info.supply.batteries.iter().find_map(|b| b.full_wh),
            memory_gb: memory_gb(root),
            year: year_of_firmware(root),
        })
    }
}

impl SeenKind {
    fn read(
        root: &dyn Root,
        info: &Info,
        cpus: &[&Cpu],
        hybrid: bool,
        packages: &BTreeSet<i32>,
        policies: &[CpufreqPolicy],
        now_khz: Option<u64>,
    ) -> SeenKind {
        // Old trees list no cores: then each CPU is one.
        let cores_of = |of: &dyn Fn(&Cpu) -> bool| -> usize {
            let own = cpus.iter().filter(|c| of(c));
            own.map(|c| c.threads.first().unwrap_or(c.cpu)).collect::<BTreeSet<u32>>().len()
        };
        let cores = packages.iter().map(|p| cores_of(&|c| c.package.unwrap_or(0) == *p)).max().unwrap_or(1);
        let threads = cpus.iter().map(|c| c.threads.len()).max().unwrap_or(1);
        let first = cpus[0].cpu;
        let policy = policies.iter().find(|p| p.related.contains(first) || p.affected.contains(first));
        let together =
            |p: &CpufreqPolicy| cores_of(&|c| p.related.contains(c.cpu) || p.affected.contains(c.cpu));
        let mut levels: Vec<u64> =
            policy.iter().flat_map(|p| p.levels_khz.iter().chain(&p.boost_levels_khz)).copied().collect();
        levels.sort_unstable();
        levels.dedup();
        let idle = info.cpuidle.cpus().iter().find(|c| c.cpu == first);
        // acpi-cpufreq lists no boosted level where only the firmware's highest speed tells of one.
        let listed = policy.and_then(|p| p.levels_khz.iter().max().copied());
        let highest = policy.and_then(|p| Some(p.hardware_khz?.1));
        levels.extend(highest.filter(|h| levels.last().is_some_and(|top| top < h)));
        let boosted = levels.last().copied() > listed;
        // The kernel may hide the boost that is switched off; with it the model is of the same machine as before.
        let hidden = policy.filter(|_| boost_is_off(info)).and_then(|p| hidden_boost(root, first, p));
        let range_khz = policy.and_then(|p| p.hardware_khz);
        SeenKind {
            name: match cpus[0].kind {
                Some(CoreKind::Efficient) => "E",
                Some(CoreKind::LowPowerEfficient) => "LP-E",
                _ if hybrid => "P",
                _ => "core",
            },
            cores,
            threads,
            clock_cores: policy.map_or(cores, together).max(1),
            range_khz: range_khz.map(|(low, high)| (low, hidden.map_or(high, |khz| khz.max(high)))),
            // What is left of the range without boost.
            base_khz: policy.and_then(|p| p.base_khz).or(listed.filter(|_| boosted)).or(hidden.and(highest)),
            listed_khz: listed.filter(|_| boosted && policy.is_some_and(|p| p.boost_levels_khz.is_empty())),
            levels_khz: levels,
            now_khz: policy.and_then(|p| p.current_khz).or(now_khz),
            capacity: cpus.iter().find_map(|c| c.capacity),
            idle: idle.map_or(Vec::new(), |cpu| idle_states(cpu).collect()),
        }
    }
}

/// A memory's clock that a model can have: clocks to choose from, and a governor whose rule is known.
fn memory_clock(seen: &MemoryController) -> Option<SeenMemory> {
    let name = seen.governor.as_deref()?;
    dram::find(name)?;
    let percent = |word: &str, percent: Option<u32>| percent.map(|percent| format!("{word}={percent}"));
    let list = match (name, seen.current_khz) {
        // Rockchip's driver shows its thresholds, and hands them to either.
        ("dmc_ondemand" | "simple_ondemand", _) => {
            let both = [percent("up", seen.up_percent), percent("down", seen.down_percent)];
            both.into_iter().flatten().collect::<Vec<_>>().join(",")
        }
        ("userspace", Some(khz)) => format!("khz={khz}"),
        _ => String::new(),
    };
    let governor = if list.is_empty() { name.to_owned() } else { format!("{name}:{list}") };
    let clocks_khz: Vec<u64> = seen.clocks_khz.iter().rev().copied().collect();
    // Some devices list bandwidths in the place of clocks.
    let are_clocks = clocks_khz.len() > 1 && clocks_khz.iter().all(|khz| (1000..=100_000_000).contains(khz));
    let is_known = DramSpec::parse(&governor).is_ok();
    (are_clocks && is_known).then_some(SeenMemory { clocks_khz, governor, polling_ms: seen.polling_ms })
}

/// Whether a kind's boost is known. Where it is not, the model has none, and what is off stays off.
fn shows_boost(kind: &SeenKind) -> bool {
    kind.range_khz.zip(kind.base_khz).is_some_and(|((_, fastest), base)| fastest > base)
}

fn boost_is_off(info: &Info) -> bool {
    info.cpufreq.boost.as_ref().is_some_and(|b| !b.on)
}

/// The highest speed of a CPU with the boost that is off and not shown: as amd-pstate names it, else the firmware's highest
/// performance in steps of its nominal one, which is the speed without boost (`acpi_cppc`).
fn hidden_boost(root: &dyn Root, cpu: u32, policy: &CpufreqPolicy) -> Option<u64> {
    let fastest = policy.hardware_khz?.1;
    let named = number::<u64>(root, &format!("{}/amd_pstate_max_freq", policy.path));
    if let Some(khz) = named.filter(|khz| *khz > fastest) {
        return Some(khz);
    }
    let base = policy.base_khz?;
    let perf = |name: &str| number::<u64>(root, &format!("{CPUS}/cpu{cpu}/acpi_cppc/{name}"));
    let (highest, nominal) = (perf("highest_perf")?, perf("nominal_perf")?);
    let khz = base.checked_mul(highest)?.checked_div(nominal)? / 100_000 * 100_000;
    (fastest <= base && highest <= 255 && khz > base).then_some(khz)
}

/// The kernel's governors by names that a machine file may have. `powersave` and `performance` alone are a driver's own.
fn governors(p: &CpufreqPolicy) -> Vec<String> {
    match p.driver.as_deref() {
        Some("intel_pstate" | "amd-pstate-epp") => Vec::new(),
        _ => p.governors.iter().filter(|g| wattwise_figure::shell::is_name(g)).cloned().collect(),
    }
}

/// Of the processor's own sensors (coretemp: Tjmax; k10temp: the limit of its thermal control), else of a zone of its own.
fn hottest_c(root: &dyn Root) -> Option<f64> {
    const HWMON: &str = "sys/class/hwmon";
    const THERMAL: &str = "sys/class/thermal";
    let celsius = |path: &str| {
        let milli: f64 = number::<i64>(root, path)? as f64;
        Some(milli / 1e3).filter(|c| (60.0..=130.0).contains(c))
    };
    let called = |path: String, names: &[&str]| {
        text(root, &path).is_some_and(|name| names.iter().any(|n| name.trim().starts_with(n)))
    };
    let chips = root.list(HWMON).unwrap_or_default();
    let chips = chips.iter().filter(|chip| called(format!("{HWMON}/{chip}/name"), &["coretemp", "k10temp"]));
    let of_chips = chips.filter_map(|chip| celsius(&format!("{HWMON}/{chip}/temp1_crit"))).next();
    of_chips.or_else(|| {
        let zones = root.list(THERMAL).unwrap_or_default();
        let own = zones
            .iter()
            .filter(|zone| called(format!("{THERMAL}/{zone}/type"), &["x86_pkg_temp", "cpu", "soc"]));
        own.flat_map(|zone| (0..16).map(move |n| format!("{THERMAL}/{zone}/trip_point_{n}")))
            .find(|trip| called(format!("{trip}_type"), &["critical"]))
            .and_then(|trip| celsius(&format!("{trip}_temp")))
    })
}

/// `MemTotal`.
fn memory_gb(root: &dyn Root) -> Option<f64> {
    let meminfo = text(root, "proc/meminfo")?;
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    (kib.is_finite() && kib > 0.0).then_some(kib * 1024e-9)
}

/// From a date like 03/14/2022.
fn year_of_firmware(root: &dyn Root) -> Option<f64> {
    let date = text(root, "sys/devices/virtual/dmi/id/bios_date")?;
    let year: u16 = date.trim().rsplit('/').next()?.parse().ok()?;
    (1990..=2100).contains(&year).then(|| f64::from(year))
}

/// The clock that `/proc/cpuinfo` shows of the first CPU.
fn clock_of_cpuinfo(root: &dyn Root) -> Option<u64> {
    let cpuinfo = text(root, "proc/cpuinfo")?;
    let line = cpuinfo.lines().find(|l| l.starts_with("cpu MHz"))?;
    let mhz: f64 = line.split(':').nth(1)?.trim().parse().ok()?;
    (mhz.is_finite() && mhz > 0.0).then_some((mhz * 1e3) as u64)
}

/// Cores that share the first CPU's largest cache.
fn llc_cores(root: &dyn Root, online: &[&Cpu]) -> Option<usize> {
    let first = online.first()?;
    let at = format!("{CPUS}/cpu{}/cache", first.cpu);
    let caches = root.list(&at).unwrap_or_default();
    let shared = caches.iter().filter(|n| n.starts_with("index")).filter_map(|index| {
        let level: u32 = number(root, &format!("{at}/{index}/level"))?;
        let list = text(root, &format!("{at}/{index}/shared_cpu_list"))?;
        Some((level, CpuSet::parse(&list).ok()?))
    });
    let (_, set) = shared.max_by_key(|(level, _)| *level)?;
    let cores: BTreeSet<u32> =
        online.iter().filter(|c| set.contains(c.cpu)).map(|c| c.threads.first().unwrap_or(c.cpu)).collect();
    (!cores.is_empty()).then_some(cores.len())
}

/// The long-term limit of the first package, in W.
fn package_limit_w(zones: &[Zone]) -> Option<f64> {
    let package = zones.iter().find(|z| z.name.starts_with("package"))?;
    let limit = package.limits.iter().find(|l| l.name == "long_term")?;
    // The highest that may be asked for is the processor's own; the limit itself is a user's.
    let uw = limit.most_uw.filter(|uw| *uw > 0).or(limit.power_uw)?;
    (uw > 0).then_some(uw as f64 * 1e-6)
}

/// The limits that the first package keeps; of several doors to it the lowest.
fn power_limits(zones: &[Zone]) -> Option<PowerLimits> {
    let name = &zones.iter().find(|z| z.name.starts_with("package"))?.name;
    let in_force = |term: &str| {
        let limits = zones.iter().filter(|z| z.name == *name).flat_map(|z| &z.limits);
        limits.filter(|l| l.name == term && l.in_force).find_map(|l| Some((l.power_uw?, l.window_us)))
    };
    let (long_uw, window_us) = in_force("long_term")?;
    let short_uw = in_force("short_term").map(|(uw, _)| uw).filter(|uw| *uw >= long_uw);
    Some(PowerLimits { long_uw, window_us: window_us?, short_uw })
}

/// The policy in force, as `--policy` takes it, with the limits that are in force; none where the governor is nobody's that we know.
fn in_force(
    (policies, driver): (&[CpufreqPolicy], Option<&Driver>),
    tops: &[Option<u64>],
    boost_off: bool,
    idle: Option<&CpuStates>,
) -> Option<String> {
    let mut policy = rule_in_force(policies.first()?)?;
    let policies = &policies.iter().map(|p| within_shares(p, driver)).collect::<Vec<_>>()[..];
    if let Some(max) = common_end((policies, tops), true, cap) {
        policy.push_str(&format!("+max={max}"));
    }
    if let Some(min) = common_end((policies, tops), false, floor) {
        policy.push_str(&format!("+min={min}"));
    }
    if boost_off {
        policy.push_str("+noboost");
    }
    if let Some(deepest) = idle.and_then(deepest_allowed) {
        policy.push_str(&format!("+cmax={deepest}"));
    }
    if let Some(us) = idle.and_then(|cpu| cpu.latency_limit_us) {
        policy.push_str(&format!("+latency={us}us"));
    }
    Some(policy)
}

/// A policy with its limits as they are beside those of intel_pstate for the whole machine, in per cent of the highest speed.
fn within_shares(policy: &CpufreqPolicy, driver: Option<&Driver>) -> CpufreqPolicy {
    let percent = |name: &str| -> Option<f64> {
        let settings = &driver.filter(|d| d.name == "intel_pstate")?.settings;
        settings.iter().find(|(file, _)| file == name)?.1.trim().parse().ok()
    };
    let mut policy = policy.clone();
    if let (Some((low, high)), Some((lowest, highest))) = (policy.limits_khz, policy.hardware_khz) {
        let share =
            |name| percent(name).map(|p: f64| units::share_of_khz(highest, p.clamp(0.0, 100.0)).max(lowest));
        let high = share("max_perf_pct").map_or(high, |most| high.min(most));
        let low = share("min_perf_pct").map_or(low, |least| low.max(least).min(high));
        policy.limits_khz = Some((low, high));
    }
    policy
}

/// The rule for the speed.
fn rule_in_force(p: &CpufreqPolicy) -> Option<String> {
    let governor = p.governor.as_deref()?;
    let own = match p.driver.as_deref() {
        Some("intel_pstate") if p.epp.is_some() => Some("hwp"),
        Some("intel_pstate") => Some("intel_pstate"),
        Some("amd-pstate-epp") => Some("amd-pstate-epp"),
        _ => None,
    };
    Some(match (own, governor) {
        (Some("intel_pstate"), "powersave") => "intel_pstate".to_owned(),
        // Of a driver that chooses speeds itself this governor is the highest speed, whatever the preference was.
        (_, "performance") | (None, "powersave") => governor.to_owned(),
        (None, "ondemand" | "conservative" | "schedutil" | "burst") => {
            let chosen = tunables::chosen(governor, &p.tunables, p.transition_latency_ns);
            [governor]
                .into_iter()
                .map(str::to_owned)
                .chain(Some(chosen.join(",")).filter(|c| !c.is_empty()))
                .collect::<Vec<_>>()
                .join(":")
        }
        (None, "userspace") => format!("userspace:khz={}", p.setspeed_khz.or(p.current_khz)?),
        (Some(own), _) => match p.epp.as_deref() {
            // `dynamic`: the kernel's own choice by the power source.
            Some("default" | "dynamic") | None => own.to_owned(),
            Some(epp) => format!("{own}:epp={epp}"),
        },
        (None, _) => return None,
    })
}

/// The highest speed that a user allows, where that is below the hardware's. Of acpi-cpufreq the highest level that it
/// lists is no cap: the boost above it comes with that level.
fn cap(p: &CpufreqPolicy) -> Option<u64> {
    let (high, highest) = (p.limits_khz?.1, p.hardware_khz?.1);
    let listed = p.levels_khz.iter().chain(&p.boost_levels_khz).max();
    (high >= 1000 && high < highest && listed.is_none_or(|top| high < *top)).then_some(high)
}

/// The lowest speed that a user allows, where that is above the hardware's.
fn floor(p: &CpufreqPolicy) -> Option<u64> {
    let (low, lowest) = (p.limits_khz?.0, p.hardware_khz?.0);
    (low > lowest).then_some(low)
}

/// Each policy's highest speed in the model: with the boost that is off and not shown.
fn tops(root: &dyn Root, policies: &[CpufreqPolicy], boost_off: bool) -> Vec<Option<u64>> {
    let top = |p: &CpufreqPolicy| {
        let cpu = p.affected.iter().next().filter(|_| boost_off);
        cpu.and_then(|cpu| hidden_boost(root, cpu, p)).or(Some(p.hardware_khz?.1))
    };
    policies.iter().map(top).collect()
}

/// One end of the range as all policies have it: a speed where it is one, else the least whole share of each highest speed
/// that comes to it, as `set` and the model resolve shares ([`units::share_of_khz`]); else the first policy's that has one. It
/// must leave alone what no user has limited: a share of 95 % of a slow cluster's levels may be all of a fast one's.
fn common_end(
    (policies, tops): (&[CpufreqPolicy], &[Option<u64>]),
    is_max: bool,
    end: impl Fn(&CpufreqPolicy) -> Option<u64>,
) -> Option<String> {
    let levels =
        |p: &CpufreqPolicy| p.levels_khz.iter().chain(&p.boost_levels_khz).copied().collect::<Vec<_>>();
    // Its own end, where a user has set one; the end without; its highest speed.
    let ends: Vec<(Option<u64>, u64, &CpufreqPolicy, u64)> = policies
        .iter()
        .zip(tops)
        .filter_map(|(p, top)| {
            let (lowest, highest) = p.hardware_khz?;
            let whole = if is_max { levels(p).into_iter().max().unwrap_or(highest) } else { lowest };
            Some((end(p), whole, p, (*top)?))
        })
        .collect();
    let first = ends.iter().find_map(|(own, ..)| *own)?;
    let holds = |own: &Option<u64>, whole: &u64, khz: u64| match (own, is_max) {
        (Some(own), _) => khz == *own,
        (None, true) => khz >= *whole,
        (None, false) => khz <= *whole,
    };
    let mhz = format!("{}MHz", first / 1000);
    if ends.iter().all(|(own, whole, ..)| holds(own, whole, first)) {
        return Some(mhz);
    }
    // Of a driver's levels the next one inside the share.
    let comes_to = |p: &CpufreqPolicy, top: u64, percent: f64| {
        let share = units::share_of_khz(top, percent);
        let inside = match is_max {
            true => levels(p).into_iter().filter(|l| *l <= share).max(),
            false => levels(p).into_iter().filter(|l| *l >= share).min(),
        };
        inside.unwrap_or(share)
    };
    let is = |percent: &u32| {
        ends.iter().all(|(own, whole, p, top)| holds(own, whole, comes_to(p, *top, f64::from(*percent))))
    };
    // Of several that come to it the roundest.
    let round = [10, 5, 1].into_iter().find_map(|step| (1..100).filter(|p| p % step == 0).find(is));
    Some(round.map_or(mhz, |percent| format!("{percent}%")))
}

/// The deepest state that a user allows, where deeper ones are switched off and no shallower one is.
fn deepest_allowed(cpu: &CpuStates) -> Option<String> {
    let states: Vec<CpuidleState> = idle_states(cpu).collect();
    let allowed = states.iter().take_while(|s| !s.disabled).count();
    let rest_is_off = states[allowed..].iter().all(|s| s.disabled);
    (allowed > 0 && allowed < states.len() && rest_is_off).then(|| states[allowed - 1].name.clone())
}

/// The states in which a CPU is idle, shallowest first, by the names that a machine file has for them.
pub(crate) fn idle_states(cpu: &CpuStates) -> impl Iterator<Item = CpuidleState> + '_ {
    let named = |s: &CpuidleState| CpuidleState { name: s.plain_name(), ..s.clone() };
    cpu.states.iter().filter(|s| is_there(s)).map(named)
}

/// Whether a CPU is idle in this state, and the driver itself has not switched it off: then it is not there until a user
/// wants it.
pub(crate) fn is_there(state: &CpuidleState) -> bool {
    !(polls(state) || state.disabled && state.off_by_default)
}

/// Whether a CPU in this state still executes: the kernel's polling loop.
pub(crate) fn polls(state: &CpuidleState) -> bool {
    state.latency_us == 0 && state.name.to_ascii_uppercase().starts_with("POLL")
}
