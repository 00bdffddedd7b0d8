//! A speed policy followed on the machine: `/proc/stat` in, speeds out.
//!
//! 1. The policy is the very object that the model runs. A period of it is no shorter than five ticks of `/proc/stat` (10 ms
//!    each), so that a share of it means something; one that counts ticks (`burst`) is asked at each.
//! 2. It sees what a program sees ([`wattwise_policy::ticks`]): not the scheduler's load, wake-ups after I/O, nor stopped ticks. Policies
//!    that need those are the kernel's ([`crate::actuator`]). A model of the same sight (`compare -p powerd+ticks`) decides alike, to the
//!    last decision: `tests/decisions.rs`.
//! 3. What it wants goes to the driver by [`Authority`]: `scaling_setspeed`, or both limits, or a cap below which the hardware
//!    chooses. Nothing is written that stands, and each file stays open.

use crate::actuator::{Authority, platform};
use crate::profile::SpeedChoice;
use crate::witness::{Decided, Witness, ticks, word};
use std::path::Path;
use wattwise_control::set::target::Target;
use wattwise_control::set::transaction::Change;
use wattwise_hw::cpus::proc_stat::{Stat, StatFile};
use wattwise_hw::root::Root;
use wattwise_hw::states::cpufreq::{Cpufreq, CpufreqPolicy};
use wattwise_policy::ticks::sample;
use wattwise_policy::{
    Cadence, CpuSample, DomainInfo, DomainSample, Intent, Khz, Level, Observation, Platform, PowerSource,
    SampleScope, SpeedPolicy,
};

/// Ticks in the shortest time between two polls.
const LEAST_TICKS: u64 = 5;
/// Levels of a driver without a table, kHz.
const STEP_KHZ: u32 = 100_000;

/// A domain and the files by which its speed is asked for.
struct FollowedDomain {
    files: Vec<(Target, String)>,
    authority: Authority,
    /// The speed in force, as far as we know.
    khz: Khz,
    /// The range within which it may choose: the profile's, else what was there before.
    low: Khz,
    high: Khz,
}

/// A policy at work.
pub struct LivePolicy {
    /// As it was written.
    pub text: String,
    /// Decisions so far.
    pub decisions: u64,
    policy: Box<dyn SpeedPolicy>,
    platform: Platform,
    domains: Vec<FollowedDomain>,
    stat: StatFile,
    then: Stat,
    tick_ns: u64,
    period_ns: Option<u64>,
    by_ticks: bool,
    due_ns: u64,
    samples: Vec<CpuSample>,
    intent: Intent,
    witness: Witness,
}

/// A domain as policies see it; none where its range is not known.
fn info(policy: &CpufreqPolicy) -> Option<DomainInfo> {
    let (low, high) = policy.hardware_khz?;
    let mut khz: Vec<u32> = policy
        .levels_khz
        .iter()
        .chain(&policy.boost_levels_khz)
        .filter_map(|k| u32::try_from(*k).ok())
        .collect();
    if khz.is_empty() {
        let (low, high) = (u32::try_from(low).ok()?, u32::try_from(high).ok()?);
        khz.extend((low..high).step_by(STEP_KHZ as usize));
        khz.push(high);
    }
    khz.sort_unstable_by(|a, b| b.cmp(a));
    khz.dedup();
    let base = policy.base_khz.and_then(|k| u32::try_from(k).ok()).map_or(Khz(*khz.first()?), Khz);
    let load_full = Khz(*khz.first()?);
    Some(DomainInfo {
        cpus: policy.affected.iter().filter_map(|c| u16::try_from(c).ok()).collect(),
        levels: khz.into_iter().map(|k| Level { khz: Khz(k), busy_uw: None }).collect(),
        transition_ns: policy.transition_latency_ns.unwrap_or(0),
        base,
        // The hardware itself does it.
        boost_with: None,
        load_full,
        capacity: 1024,
    })
}

/// The range that the profile's own settings leave a domain, else the one that was in force before it.
fn limits(policy: &CpufreqPolicy, beside: &[Change], info: &DomainInfo) -> (Khz, Khz) {
    let of = |file: &str| {
        let path = Target::File(format!("{}/{file}", policy.path));
        beside.iter().rev().find(|c| c.target == path).and_then(|c| c.value.parse::<u32>().ok()).map(Khz)
    };
    let then = policy.limits_khz.and_then(|(l, h)| Some((u32::try_from(l).ok()?, u32::try_from(h).ok()?)));
    let (low, high) = then.map_or((info.slowest(), info.fastest()), |(l, h)| (Khz(l), Khz(h)));
    let (low, high) = (of("scaling_min_freq").unwrap_or(low), of("scaling_max_freq").unwrap_or(high));
    (low.min(high), high)
}

fn files(policy: &CpufreqPolicy, authority: Authority) -> Vec<(Target, String)> {
    let names: &[(&str, &str)] = match authority {
        Authority::Userspace => &[("scaling_setspeed", "speed")],
        Authority::Limits => &[("scaling_max_freq", "maximum"), ("scaling_min_freq", "minimum")],
        Authority::Cap => &[("scaling_max_freq", "maximum")],
    };
    let of = |(file, word): &(&str, &str)| {
        (Target::File(format!("{}/{file}", policy.path)), format!("{} {word}", policy.name()))
    };
    names.iter().map(of).collect()
}

/// Every domain that runs, as policies see it and as it is told.
fn domains(
    cpufreq: &Cpufreq,
    authority: Authority,
    beside: &[Change],
) -> Result<(Vec<DomainInfo>, Vec<FollowedDomain>), String> {
    let (mut infos, mut domains) = (Vec::new(), Vec::new());
    for policy in cpufreq.policies().iter().filter(|p| !p.is_offline()) {
        let info = info(policy).ok_or_else(|| format!("{} shows no range of its speed", policy.name()))?;
        let now = policy.current_khz.and_then(|k| u32::try_from(k).ok()).map_or(info.fastest(), Khz);
        let (low, high) = limits(policy, beside, &info);
        domains.push(FollowedDomain { files: files(policy, authority), authority, khz: now, low, high });
        infos.push(info);
    }
    match domains.is_empty() {
        true => Err("no CPU's speed can be set here".to_owned()),
        false => Ok((infos, domains)),
    }
}

/// When to ask first, how often after that, and whether at each tick.
fn pace(cadence: Cadence, tick_ns: u64) -> Result<(u64, Option<u64>, bool), String> {
    match cadence {
        Cadence::Once => Ok((0, None, false)),
        Cadence::Daemon { first_ns, period_ns } | Cadence::KernelTimer { first_ns, period_ns } => {
            let least = tick_ns * LEAST_TICKS;
            Ok((first_ns.max(least), Some(period_ns.max(least)), false))
        }
        Cadence::Tick => Ok((tick_ns, Some(tick_ns), true)),
        Cadence::Scheduler { .. } => Err("needs the scheduler's own hooks".to_owned()),
    }
}

fn millicelsius(celsius: Option<f64>) -> Option<i32> {
    celsius.map(|c| (c * 1000.0) as i32)
}

impl LivePolicy {
    /// A policy for a machine, and the first values of its files; nothing is written yet.
    ///
    /// # Errors
    /// One line: what of the machine it cannot see.
    pub fn begin(
        root: &dyn Root,
        cpufreq: &Cpufreq,
        (choice, authority): (&SpeedChoice, Authority),
        beside: &[Change],
        (now_ns, source, celsius): (u64, PowerSource, Option<f64>),
        record: Option<&Path>,
    ) -> Result<(LivePolicy, Vec<Change>), String> {
        let seen = |e: std::io::Error| format!("/proc/stat: {e}; a policy that is followed needs it");
        let mut stat = StatFile::open(root).map_err(seen)?;
        let then = stat.look().map_err(seen)?;
        let (infos, domains) = domains(cpufreq, authority, beside)?;
        // CPUs that are offline keep their numbers.
        let most = infos.iter().flat_map(|d| &d.cpus).max().copied().unwrap_or(0);
        let platform = platform(infos, most + 1);
        let policy = (choice.speed.build)(&platform, &choice.settings);
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let (first_ns, period_ns, by_ticks) = pace(policy.cadence(), tick_ns)?;
        let limits: Vec<_> = domains.iter().map(|d| (d.low.0, d.high.0)).collect();
        let witness = Witness::begin(record, &choice.text, tick_ns, &platform, &limits);
        let mut live = LivePolicy {
            witness,
            text: choice.text.clone(),
            decisions: 0,
            policy,
            intent: Intent::neutral(domains.len()),
            samples: vec![CpuSample::default(); usize::from(platform.cpus)],
            platform,
            domains,
            stat,
            then,
            tick_ns,
            period_ns,
            by_ticks,
            due_ns: now_ns.saturating_add(first_ns),
        };
        live.ask(now_ns, SampleScope::All, source, millicelsius(celsius), true);
        let before = live.khz();
        let first = live.wanted();
        live.tell(now_ns, source, celsius, (true, before));
        let first =
            first.into_iter().map(|(target, what, value)| Change { target, what, value, elsewhere: None });
        let first = first.collect();
        Ok((live, first))
    }

    /// When it wants to be asked next; never, where it has said all at its start.
    pub fn due_ns(&self) -> u64 {
        self.period_ns.map_or(u64::MAX, |_| self.due_ns)
    }

    fn ask(&mut self, now_ns: u64, scope: SampleScope, source: PowerSource, mc: Option<i32>, start: bool) {
        let domains: Vec<DomainSample> =
            self.domains.iter().map(|d| DomainSample { khz: d.khz, min: d.low, max: d.high }).collect();
        self.intent.next_ns = None;
        let obs = Observation {
            now_ns,
            asks: true,
            scope,
            cpus: &self.samples,
            domains: &domains,
            source,
            temperature_mc: mc,
        };
        match start {
            true => self.policy.start(&obs, &mut self.intent),
            false => self.policy.observe(&obs, &mut self.intent),
        }
    }

    /// A look and a decision where it is due: the writes that follow, in their order.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn step(
        &mut self,
        now_ns: u64,
        source: PowerSource,
        celsius: Option<f64>,
    ) -> Result<Vec<(Target, String)>, String> {
        if now_ns < self.due_ns() {
            return Ok(Vec::new());
        }
        let now = self.stat.look().map_err(|e| format!("/proc/stat: {e}"))?;
        let then = std::mem::replace(&mut self.then, now);
        for (cpu, seen) in (0..).zip(&mut self.samples) {
            let passed = self.then.cpu(cpu).zip(then.cpu(cpu)).map(|(now, then)| now.since(then));
            let passed = passed.unwrap_or_default();
            *seen = sample(passed.busy, passed.idle, passed.iowait, self.tick_ns);
        }
        let mc = millicelsius(celsius);
        if self.by_ticks {
            for cpu in 0..self.platform.cpus {
                self.ask(now_ns, SampleScope::Cpu(cpu), source, mc, false);
            }
        } else {
            self.ask(now_ns, SampleScope::All, source, mc, false);
        }
        self.decisions += 1;
        let period = self.intent.next_ns.or(self.period_ns).unwrap_or(u64::MAX);
        self.due_ns = now_ns.saturating_add(period.max(self.tick_ns));
        let before = self.khz();
        let wanted = self.wanted();
        self.tell(now_ns, source, celsius, (false, before));
        Ok(wanted.into_iter().map(|(target, _, value)| (target, value)).collect())
    }

    /// The speeds in force, for a recording; nothing without one.
    fn khz(&self) -> Vec<u32> {
        if !self.witness.records() {
            return Vec::new();
        }
        self.domains.iter().map(|d| d.khz.0).collect()
    }

    fn tell(
        &mut self,
        at_ns: u64,
        source: PowerSource,
        celsius: Option<f64>,
        (start, before): (bool, Vec<u32>),
    ) {
        let (khz, cpus) = (self.khz(), self.platform.cpus);
        let (witness, stat) = (&mut self.witness, &self.then);
        let source = word(source);
        witness.line(|| Decided { at_ns, start, source, celsius, ticks: ticks(stat, cpus), before, khz });
    }

    /// What is to stand in each file; the end of a range that moves outwards comes first.
    fn wanted(&mut self) -> Vec<(Target, String, String)> {
        let mut out = Vec::new();
        for ((domain, info), intent) in
            self.domains.iter_mut().zip(&self.platform.domains).zip(&self.intent.domains)
        {
            let high = if intent.max.0 == 0 { info.fastest() } else { info.at_most(intent.max) };
            let low = if intent.min.0 == 0 { info.slowest() } else { info.at_least(intent.min) };
            let desired = if intent.desired.0 == 0 { high } else { info.at_least(intent.desired) };
            let khz = desired.min(high).max(low.min(high)).clamp(domain.low, domain.high);
            let rising = khz > domain.khz;
            domain.khz = khz;
            let mut files: Vec<_> =
                domain.files.iter().map(|(t, w)| (t.clone(), w.clone(), khz.0.to_string())).collect();
            if !rising && domain.authority == Authority::Limits {
                files.reverse();
            }
            out.extend(files);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use wattwise_policy::{DomainIntent, Settings, Speed};

    thread_local! {
        static WANTED: Cell<DomainIntent> = const { Cell::new(DomainIntent { min: Khz(0), max: Khz(0), desired: Khz(0) }) };
    }

    /// A policy that wants what the test says.
    struct Told;

    impl SpeedPolicy for Told {
        fn cadence(&self) -> Cadence {
            Cadence::Once
        }
        fn cost_ns(&self) -> u64 {
            0
        }
        fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
            out.domains.fill(WANTED.get());
        }
        fn observe(&mut self, _: &Observation<'_>, _: &mut Intent) {}
    }

    static TOLD: Speed = Speed {
        name: "told",
        summary: "",
        follows: "this test",
        source: "",
        params: &[],
        build: |_, _| Box::new(Told),
    };

    /// What an intent says of itself: never slower than its minimum, never faster than its maximum, the slowest level that is at least the
    /// speed wanted. All three may lie between two levels.
    #[test]
    fn limits_between_two_levels_are_kept() {
        let machine = wattwise_emulator::named("core-i5-2gen").expect("bundled");
        let cpufreq = Cpufreq::read(&machine);
        let levels = info(&cpufreq.policies()[0]).expect("a range").levels;
        let level = |n: usize| levels[n].khz.0;
        let (high, low) = (level(0), level(levels.len() - 1));
        // Between the third and the second from above.
        let between = level(2) + 1;
        assert!(between < level(1) && levels.len() > 4);
        let settings = Settings::parse(&[], "").expect("none");
        let choice = SpeedChoice { speed: &TOLD, settings, text: "told".to_owned() };
        for (what, [min, max, desired], khz) in [
            ("a speed", [0, 0, between], level(1)),
            ("no opinion", [0, 0, 0], high),
            ("a maximum", [0, between, high], level(2)),
            ("a maximum alone", [0, between, 0], level(2)),
            ("a minimum", [between, 0, low], level(1)),
            ("both, and the maximum counts", [high, between, low], level(2)),
        ] {
            WANTED.set(DomainIntent { min: Khz(min), max: Khz(max), desired: Khz(desired) });
            let seen = (0, PowerSource::Mains, None);
            let policy = (&choice, Authority::Userspace);
            let (_, first) = LivePolicy::begin(&machine, &cpufreq, policy, &[], seen, None).expect("begins");
            assert!(!first.is_empty());
            assert!(first.iter().all(|c| c.value == khz.to_string()), "{what}: {khz}, not {first:?}");
        }
    }
}
