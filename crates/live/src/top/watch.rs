//! Samples of a machine: everything that moves is opened once and read once a look.

use crate::top::sample::{CpuSample, DomainSample, InForce, Sample};
use crate::top::tasks::Tasks;
use std::time::Duration;
use wattwise_hw::clock::{Moment, now};
use wattwise_hw::cpus::proc_stat::{Stat, StatFile};
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::{Access, Node, Root, label};
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_hw::states::sensors::{celsius, sensors};
use wattwise_hw::states::supply::supply;
use wattwise_meter::Meter;

/// How long a counter of energy has for its first move.
const PATIENCE: Duration = Duration::from_millis(200);
/// Settings, supplies and the list of CPUs change seldom and cost most: read again every so many looks.
const SELDOM: u64 = 5;

/// The files of one CPU.
struct CpuFiles {
    cpu: u32,
    kind: Option<String>,
    speed: Option<Box<dyn Node>>,
    states: Vec<StateFiles>,
}

/// The files of one C-state of a CPU.
struct StateFiles {
    /// Its place among the machine's states.
    state: usize,
    time: Box<dyn Node>,
    usage: Option<Box<dyn Node>>,
}

/// What a look saw.
#[derive(Default, Clone)]
struct TopLook {
    at: Moment,
    stat: Stat,
    /// By CPU: each state's time, µs, and all states' usage.
    idle: Vec<(Vec<Option<u64>>, Option<u64>)>,
    own_s: f64,
}

/// Watches a machine.
pub struct TopWatch<'r> {
    root: &'r dyn Root,
    meter: Meter,
    machine: String,
    states: Vec<String>,
    files: Vec<CpuFiles>,
    stat: Option<StatFile>,
    temperatures: Vec<Box<dyn Node>>,
    tasks: Option<Tasks>,
    policy: InForce,
    power_from: String,
    charge: Option<f64>,
    first: Moment,
    last: TopLook,
    looks: u64,
}

impl<'r> TopWatch<'r> {
    /// Opens what there is. `at` is the time of the first look; a capture has its own. Where the machine is not this one,
    /// there are no programs to watch.
    pub fn open(root: &'r dyn Root, at: Moment) -> TopWatch<'r> {
        let mut meter = Meter::open(root);
        // In a capture nothing moves by itself.
        if root.is_this_machine() {
            meter.self_test(PATIENCE, std::thread::sleep);
        }
        let topology = Topology::read(root);
        let machine = topology.processor.clone().unwrap_or_else(|| "processor without a name".to_owned());
        let open = |path: &str| root.open(path, Access::Read).ok();
        let temperatures = sensors(root).temperatures.iter().filter_map(|t| open(&t.path)).collect();
        let mut watch = TopWatch {
            root,
            meter,
            machine,
            states: Vec::new(),
            files: Vec::new(),
            stat: StatFile::open(root).ok(),
            temperatures,
            tasks: root.is_this_machine().then(Tasks::default),
            policy: InForce::default(),
            power_from: String::new(),
            charge: None,
            first: at,
            last: TopLook::default(),
            looks: 0,
        };
        watch.open_cpus(&topology);
        watch.seldom();
        watch.meter.begin(at);
        if let Some(tasks) = &mut watch.tasks {
            tasks.look(1.0);
        }
        watch.last = watch.look(at);
        watch
    }

    fn open_cpus(&mut self, topology: &Topology) {
        let root = self.root;
        let (cpufreq, idle) = (Cpufreq::read(root), Cpuidle::read(root, topology));
        let open = |path: String| root.open(&path, Access::Read).ok();
        let hybrid = topology.kinds().len() > 1;
        for cpu in topology.online.iter() {
            let speed = cpufreq.of(cpu).and_then(|p| open(format!("{}/scaling_cur_freq", p.path)));
            let mut states = Vec::new();
            for state in idle.cpus().iter().filter(|c| c.cpu == cpu).flat_map(|c| &c.states) {
                let name = state.plain_name();
                let at = self.states.iter().position(|s| *s == name).unwrap_or_else(|| {
                    self.states.push(name);
                    self.states.len() - 1
                });
                let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}", state.index);
                if let Some(time) = open(format!("{folder}/time")) {
                    states.push(StateFiles { state: at, time, usage: open(format!("{folder}/usage")) });
                }
            }
            let kind = topology.cpu(cpu).and_then(|c| c.kind).map(|k| k.to_string()).filter(|_| hybrid);
            self.files.push(CpuFiles { cpu, kind, speed, states });
        }
    }

    /// What changes seldom.
    fn seldom(&mut self) {
        let root = self.root;
        let cpufreq = Cpufreq::read(root);
        let distinct = |of: &dyn Fn(&wattwise_hw::states::cpufreq::CpufreqPolicy) -> Option<String>| {
            let mut all: Vec<String> = cpufreq.policies().iter().filter_map(of).collect();
            all.sort();
            all.dedup();
            all
        };
        let ends: Vec<(u64, u64)> = cpufreq.policies().iter().filter_map(|p| p.limits_khz).collect();
        let least = ends.iter().map(|e| e.0).min();
        self.policy = InForce {
            driver: cpufreq.policies().first().and_then(|p| p.driver.clone()),
            governors: distinct(&|p| p.governor.clone()),
            epps: distinct(&|p| p.epp.clone()),
            limits_khz: least.zip(ends.iter().map(|e| e.1).max()),
            boost: cpufreq.boost.as_ref().map(|b| b.on),
            profile: label(root, "sys/firmware/acpi/platform_profile"),
            idle_governor: label(root, "sys/devices/system/cpu/cpuidle/current_governor")
                .or_else(|| label(root, "sys/devices/system/cpu/cpuidle/current_governor_ro")),
            why: None,
        };
        let supply = supply(root);
        self.power_from = supply.source.to_string();
        let charges: Vec<f64> = supply
            .batteries
            .iter()
            .filter_map(|b| b.capacity_percent)
            .map(|p| f64::from(p) / 100.0)
            .collect();
        self.charge = (!charges.is_empty()).then(|| charges.iter().sum::<f64>() / charges.len() as f64);
    }

    fn look(&mut self, at: Moment) -> TopLook {
        let idle = self
            .files
            .iter_mut()
            .map(|f| {
                let usage: Option<u64> =
                    f.states.iter_mut().map(|s| s.usage.as_mut().and_then(|u| number::<u64>(&mut **u))).sum();
                (f.states.iter_mut().map(|s| number(&mut *s.time)).collect(), usage)
            })
            .collect();
        let stat = self.stat.as_mut().and_then(|s| s.look().ok()).unwrap_or_default();
        TopLook { at, stat, idle, own_s: own_s() }
    }

    /// A sample since the last one; `at` is now, or the time of a capture's moment.
    pub fn sample(&mut self, at: Moment) -> Sample {
        self.looks += 1;
        if self.looks.is_multiple_of(SELDOM) {
            self.seldom();
        }
        let next = self.look(at);
        let then = std::mem::replace(&mut self.last, next.clone());
        let window_s = (at.monotonic_s - then.at.monotonic_s).max(1e-3);
        self.meter.sample(at);
        let energy = self.meter.energy();
        self.meter.begin(at);
        let tasks = self.tasks.as_mut().map(|t| t.look(window_s));
        let domains = energy
            .domains
            .iter()
            .map(|d| DomainSample { name: d.domain.to_string(), watts: d.total.joules / window_s });
        Sample {
            machine: self.machine.clone(),
            at_s: at.monotonic_s - self.first.monotonic_s,
            window_s,
            policy: self.policy.clone(),
            watts: energy.joules.map(|j| j / window_s),
            energy: energy.provenance.to_string(),
            domains: domains.collect(),
            celsius: self.temperature(),
            power_from: self.power_from.clone(),
            charge: self.charge,
            states: self.states.clone(),
            cpus: self.cpus(&then, &next, window_s),
            tasks: tasks.unwrap_or_default(),
            tasks_missing: self
                .tasks
                .is_none()
                .then(|| "only this machine's own programs can be watched".to_owned()),
            own: self.root.is_this_machine().then(|| (next.own_s - then.own_s) / window_s),
        }
    }

    fn cpus(&mut self, then: &TopLook, next: &TopLook, window_s: f64) -> Vec<CpuSample> {
        let states = self.states.len();
        let since: Vec<_> = next.stat.since(&then.stat).collect();
        let mut out = Vec::new();
        for (at, f) in self.files.iter_mut().enumerate() {
            let (Some(before), Some(after)) = (then.idle.get(at), next.idle.get(at)) else { continue };
            let mut idle = vec![0.0; states];
            for ((a, b), files) in before.0.iter().zip(&after.0).zip(&f.states) {
                let time_us = a.zip(*b).map_or(0, |(a, b)| b.saturating_sub(a));
                idle[files.state] = (time_us as f64 / 1e6 / window_s).clamp(0.0, 1.0);
            }
            let ticks = since.iter().find(|t| t.cpu == f.cpu);
            let busy = ticks.filter(|t| t.busy + t.idle + t.iowait > 0);
            let wakeups = before.1.zip(after.1).filter(|_| !f.states.is_empty());
            out.push(CpuSample {
                cpu: f.cpu,
                kind: f.kind.clone(),
                khz: f.speed.as_mut().and_then(|n| number(&mut **n)),
                busy: busy.map(|t| t.busy as f64 / (t.busy + t.idle + t.iowait) as f64),
                idle,
                wakeups: wakeups.map(|(a, b)| b.saturating_sub(a) as f64 / window_s),
            });
        }
        out
    }

    fn temperature(&mut self) -> Option<f64> {
        let read = |n: &mut Box<dyn Node>| number::<i64>(&mut **n).and_then(celsius);
        self.temperatures.iter_mut().filter_map(read).reduce(f64::max)
    }
}

/// The time of a look at a machine whose time runs.
pub fn moment() -> Moment {
    now()
}

fn number<T: std::str::FromStr>(node: &mut dyn Node) -> Option<T> {
    let mut page = [0; 64];
    let n = node.read_at(0, &mut page).ok()?;
    std::str::from_utf8(&page[..n]).ok()?.trim().parse().ok()
}

/// CPU time that this process has used, s.
fn own_s() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
