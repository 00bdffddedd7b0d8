//! A core policy followed on the live machine.
//!
//! Every period it reads `/proc/stat` (each CPU's busy and idle ticks, tasks that could run, context switches) and how
//! long tasks waited for a CPU ([`crate::govern::waits`]), asks the policy, and puts the mask in force.
//!
//! 1. A tick is 10 ms: fewer than five would see CPUs that are either idle or full. Each time between two looks is
//!    lengthened to that, and the policy is told.
//! 2. Pressure says how long *any* task waited: no single one waited longer. Where the kernel keeps no pressure,
//!    the governor's own lateness stands in: it runs on the kept CPUs like everybody. A percentile nobody knows; the
//!    mean where the kernel adds waits up.
//! 3. Wake-ups are half of the context switches: a task that wakes on an idle CPU and sleeps again is two. Where tasks
//!    follow each other without rest up to twice as many woke; a policy asks how often idle CPUs are woken, and those
//!    are never more. The governor's own wake-up is one of them.
//! 4. The policy learns where each CPU is and the stay that its deepest C-state needs, as the kernel says. What they draw
//!    no kernel says: cheaper cores are not told from others. Under a hypervisor (`haltpoll`) the C-states are the
//!    host's, and not known.
//! 5. A CPU that is unplugged or comes back changes what there is to keep: the policy begins anew, within a second.
//! 6. After a suspend the sample that spans it is dropped.

use crate::cores::held::Holder;
use crate::cores::hold::{Force, HoldOptions};
use crate::govern::waits::WaitCounters;
use crate::problem::Problem;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wattwise_hw::clock::{self, Moment};
use wattwise_hw::cpus::proc_stat::{Stat, StatFile, whole};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::{Cpu, Topology};
use wattwise_hw::root::{Access, DirRoot, Node, Root};
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_policy::chosen::CoresSpec;
use wattwise_policy::cores::CpuPlace;
use wattwise_policy::{CoreObservation, CorePolicy, CorePower, CpuSample, MS, ParamKind, Settings};

const ONLINE: &str = "sys/devices/system/cpu/online";
/// Ticks in the shortest time between two looks.
const LEAST_TICKS: u64 = 5;
/// Parameters that are such a time.
const LOOKS: [&str; 4] = ["period", "poll", "trial", "note"];
/// Tasks that have come since are taken up at least so often.
const TEND: Duration = Duration::from_secs(1);
/// More time asleep than this between two looks is a suspend, s.
const SUSPEND_S: f64 = 0.1;

/// A policy and what it is shown.
pub struct CoreLoop<'r> {
    root: &'r dyn Root,
    spec: CoresSpec,
    policy: Box<dyn CorePolicy>,
    /// CPUs in the order in which they are kept.
    order: Vec<u32>,
    /// What is known of each: one that is offline does not tell.
    known: BTreeMap<u32, CorePower>,
    stat: StatFile,
    then: Stat,
    /// The list of CPUs that are online, held open.
    online: Box<dyn Node>,
    bytes: Vec<u8>,
    waits: WaitCounters,
    tick_ns: u64,
    begun: Instant,
    at: Moment,
    due: Instant,
}

impl<'r> CoreLoop<'r> {
    /// A governor of this machine.
    ///
    /// # Errors
    /// No `/proc/stat`, or no CPU.
    pub fn new(root: &'r dyn Root, spec: &CoresSpec) -> Result<CoreLoop<'r>, Problem> {
        let mut stat = StatFile::open(root).map_err(|e| Problem::Impossible(format!("/proc/stat: {e}")))?;
        let then = stat.look().map_err(|e| Problem::Impossible(format!("/proc/stat: {e}")))?;
        let online =
            root.open(ONLINE, Access::Read).map_err(|e| Problem::Impossible(format!("/{ONLINE}: {e}")))?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let mut spec = spec.clone();
        spec.settings = for_ticks(&spec, tick_ns);
        let known = known(root);
        if known.is_empty() {
            return Err(Problem::Impossible("the kernel lists no CPU".to_owned()));
        }
        let (policy, order) = taught(&spec, &known);
        Ok(CoreLoop {
            root,
            spec,
            policy,
            order,
            known,
            stat,
            then,
            online,
            bytes: vec![0; 256],
            waits: WaitCounters::open(root),
            tick_ns,
            begun: Instant::now(),
            at: clock::now(),
            due: Instant::now(),
        })
    }

    /// What to keep at first.
    pub fn start(&mut self) -> CpuSet {
        let keep = self.policy.start();
        self.due = Instant::now() + self.period();
        self.first(keep)
    }

    /// Time from one look to the next.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.policy.period_ns().max(self.tick_ns * LEAST_TICKS))
    }

    /// Time until there is something to do.
    fn wait(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now()).min(TEND)
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// What to keep if CPUs were unplugged or came back; `parked` are those that we took offline ourselves.
    fn plugged(&mut self, parked: &CpuSet) -> Option<CpuSet> {
        let list = whole(&mut *self.online, &mut self.bytes).ok()?;
        let online = CpuSet::parse(list.trim()).ok()?;
        let there = |cpu: u32| online.contains(cpu) || parked.contains(cpu);
        if online.iter().all(|cpu| self.order.contains(&cpu)) && self.order.iter().all(|&cpu| there(cpu)) {
            return None;
        }
        self.known.extend(known(self.root));
        let known = self.known.iter().filter(|(cpu, _)| there(**cpu)).map(|(c, p)| (*c, *p)).collect();
        (self.policy, self.order) = taught(&self.spec, &known);
        Some(self.start())
    }

    /// A look and a decision: what to keep from now on.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn look(&mut self) -> Result<CpuSet, Problem> {
        let now = self.stat.look().map_err(|e| Problem::Failed(format!("/proc/stat: {e}")))?;
        let at = clock::now();
        let asleep_s = (at.boot_s - self.at.boot_s) - (at.monotonic_s - self.at.monotonic_s);
        let late = Instant::now().saturating_duration_since(self.due);
        let waits = self.waits.since();
        let then = std::mem::replace(&mut self.then, now);
        self.at = at;
        self.due = Instant::now() + self.period();
        if asleep_s > SUSPEND_S {
            return Ok(self.start());
        }
        let cpus = samples(&self.then, &then, &self.order, self.tick_ns);
        let obs = CoreObservation {
            // In whole ticks, as the samples are: a look that comes a little late is no longer one.
            now_ns: self.begun.elapsed().as_nanos() as u64 / self.tick_ns * self.tick_ns,
            cpus: &cpus,
            worst_wait_ns: waits.longest_ns.unwrap_or(late.as_nanos() as u64),
            wait_p99_ns: None,
            wait_mean_ns: waits.mean_ns,
            wakeups: Some(wakeups(&self.then, &then)),
        };
        let keep = self.policy.observe(&obs);
        self.due = Instant::now() + self.period();
        Ok(self.first(keep))
    }

    fn first(&self, keep: usize) -> CpuSet {
        self.order.iter().take(keep.max(1)).copied().collect()
    }
}

/// The policy's parameters, with no time between two looks in which too few ticks pass.
fn for_ticks(spec: &CoresSpec, tick_ns: u64) -> Settings {
    let mut settings = spec.settings.clone();
    let least_ms = (tick_ns * LEAST_TICKS).div_ceil(MS);
    for param in spec.cores.params.iter().filter(|p| LOOKS.contains(&p.name)) {
        let in_ms = matches!(param.kind, ParamKind::Number { unit: "ms", .. });
        if in_ms && settings.ms(param.name) < tick_ns * LEAST_TICKS {
            // Beyond the parameter's range it is left as it was; `period` still holds.
            let _ = settings.set(spec.cores.params, param.name, &least_ms.to_string());
        }
    }
    settings
}

/// What the kernel knows of the CPUs that are online.
fn known(root: &dyn Root) -> BTreeMap<u32, CorePower> {
    let topology = Topology::read(root);
    let idle = Cpuidle::read(root, &topology);
    // A guest's halt leaves it to the host how deeply the CPU sleeps.
    let of_host = idle.driver.as_deref() == Some("haltpoll");
    let deep_stay_us = |cpu: u32| {
        let states = idle.cpus().iter().find(|c| c.cpu == cpu).map_or(&[][..], |c| &c.states);
        states.iter().filter(|s| !s.disabled && !of_host).map(|s| s.residency_us).max().unwrap_or(0)
    };
    let of = |c: &Cpu| CorePower {
        place: CpuPlace {
            core: c.core.unwrap_or(c.cpu) as u16,
            package: c.package.and_then(|p| u16::try_from(p).ok()).unwrap_or(0),
        },
        deep_stay_ns: deep_stay_us(c.cpu).saturating_mul(1000),
        draw: None,
    };
    topology.cpus.iter().filter(|c| c.online).map(|c| (c.cpu, of(c))).collect()
}

/// A policy that knows these CPUs, and the order in which it keeps them.
fn taught(spec: &CoresSpec, known: &BTreeMap<u32, CorePower>) -> (Box<dyn CorePolicy>, Vec<u32>) {
    let (cpus, known): (Vec<u32>, Vec<CorePower>) = known.iter().unzip();
    let places: Vec<CpuPlace> = known.iter().map(|k| k.place).collect();
    let mut policy = (spec.cores.build)(cpus.len(), &spec.settings);
    policy.learn(&known);
    let order = policy.order(&places).into_iter().map(|at| cpus[usize::from(at)]).collect();
    (policy, order)
}

/// What passed between two looks, in the order of `cpus`. The kernel says how many tasks could run, not where:
/// those beyond one for each busy CPU wait behind the first.
pub fn samples(now: &Stat, then: &Stat, cpus: &[u32], tick_ns: u64) -> Vec<CpuSample> {
    let mut samples: Vec<CpuSample> = cpus
        .iter()
        .map(|&cpu| {
            let passed = now.cpu(cpu).zip(then.cpu(cpu)).map(|(n, t)| n.since(t)).unwrap_or_default();
            CpuSample {
                busy_ns: passed.busy * tick_ns,
                idle_ns: passed.idle * tick_ns,
                iowait_ns: passed.iowait * tick_ns,
                runnable: u32::from(passed.busy > 0),
                ..CpuSample::default()
            }
        })
        .collect();
    // One of the running tasks is the one that asks.
    let running = now.running.saturating_sub(1);
    let busy: u32 = samples.iter().map(|s| s.runnable).sum();
    if let Some(first) = samples.first_mut() {
        first.runnable += running.saturating_sub(busy);
    }
    samples
}

/// Tasks that woke between two looks, at least as far as idle CPUs were woken for them; see the module's head.
fn wakeups(now: &Stat, then: &Stat) -> u64 {
    now.switches.saturating_sub(then.switches) / 2
}

/// How a governor spent its time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GovernorSummary {
    /// Looks.
    pub looks: u64,
    /// Changes of the mask.
    pub changes: u64,
    /// Tasks that were moved.
    pub moved: u64,
    /// Seconds with each number of CPUs kept, from 1.
    pub kept_s: Vec<f64>,
    /// What was not put back at the end, one line each.
    pub left: Vec<String>,
}

/// Follows a policy until `pause` says that it is enough. `told` is called once all is in force.
///
/// # Errors
/// The mask cannot be put in force or kept; then everything is released.
pub fn follow(
    root: &dyn Root,
    spec: &CoresSpec,
    policy: &str,
    folder: &Path,
    options: &HoldOptions,
    pause: &mut dyn FnMut(Duration) -> bool,
    told: &mut dyn FnMut(&Force<'_>, &CpuSet),
) -> Result<GovernorSummary, Problem> {
    let mut governor = CoreLoop::new(root, spec)?;
    let holder = Holder::Process { pid: std::process::id(), policy: policy.to_owned() };
    let mut force = Force::begin(root, folder, holder, options)?;
    let mut summary =
        GovernorSummary { kept_s: vec![0.0; governor.order.len()], ..GovernorSummary::default() };
    let mut kept = governor.start();
    summary.moved += force.keep(&kept)?.moved as u64;
    told(&force, &kept);
    let mut tended = Instant::now();
    let mut since = Instant::now();
    let mut charge = |kept: &CpuSet| {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut since, now)).as_secs_f64();
        if let Some(s) = kept.len().checked_sub(1).and_then(|at| summary.kept_s.get_mut(at)) {
            *s += passed;
        }
    };
    loop {
        let more = pause(governor.wait());
        charge(&kept);
        if !more {
            break;
        }
        // Between two decisions too, tasks that have come since are taken up.
        let next = match governor.plugged(&force.parked()) {
            None if governor.is_due() => {
                summary.looks += 1;
                Some(governor.look()?)
            }
            next => next,
        };
        let changed = next.as_ref().is_some_and(|next| *next != kept);
        kept = next.unwrap_or(kept);
        summary.changes += u64::from(changed);
        if changed || tended.elapsed() >= TEND {
            summary.moved += force.keep(&kept)?.moved as u64;
            tended = Instant::now();
        }
    }
    summary.left = force.release();
    Ok(summary)
}

/// A policy that is followed on this machine by a thread, while something else runs.
pub struct Following {
    /// Dropped to end it.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Result<GovernorSummary, Problem>>>,
}

impl Following {
    /// Begins; returns when the mask is in force.
    ///
    /// # Errors
    /// As [`follow`].
    pub fn begin(
        spec: &CoresSpec,
        policy: &str,
        folder: PathBuf,
        options: HoldOptions,
    ) -> Result<Following, Problem> {
        let (stop, stopped) = mpsc::channel::<()>();
        let (ready, begun) = mpsc::channel::<()>();
        let (spec, policy) = (spec.clone(), policy.to_owned());
        let thread = wattwise_threads::named("coreidle")
            .spawn(move || {
                let mut pause =
                    |time| matches!(stopped.recv_timeout(time), Err(mpsc::RecvTimeoutError::Timeout));
                let root = DirRoot::this_machine();
                let mut told = |_: &Force<'_>, _: &CpuSet| _ = ready.send(());
                follow(&root, &spec, &policy, &folder, &options, &mut pause, &mut told)
            })
            .map_err(|e| Problem::Failed(format!("no thread can be started: {e}")))?;
        let mut following = Following { stop: Some(stop), thread: Some(thread) };
        if begun.recv().is_err() {
            // It ended before anything was in force.
            return following
                .end()
                .and_then(|_| Err(Problem::Failed("the governor ended at once".to_owned())));
        }
        Ok(following)
    }

    /// Ends it and releases everything.
    ///
    /// # Errors
    /// What kept it from going on, if anything did.
    pub fn end(&mut self) -> Result<GovernorSummary, Problem> {
        self.stop = None;
        match self.thread.take().map(std::thread::JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => {
                Err(Problem::Failed("the governor panicked; 'wattwise coreidle off' cleans up".into()))
            }
            None => Ok(GovernorSummary::default()),
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if self.thread.is_some()
            && let Err(e) = self.end()
        {
            eprintln!("wattwise: {}", wattwise_figure::one_line(&e.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 10 * MS;

    /// CPUs that a policy keeps of four that are nearly idle, after 50 looks in which waits are short.
    fn kept_at_rest(spec: &CoresSpec) -> usize {
        let mut policy = (spec.cores.build)(4, &spec.settings);
        let mut kept = policy.start();
        let mut now_ns = 0;
        for _ in 0..50 {
            now_ns += policy.period_ns().max(TICK_NS * LEAST_TICKS);
            let cpu = CpuSample { busy_ns: TICK_NS, idle_ns: 4 * TICK_NS, ..CpuSample::default() };
            let obs = CoreObservation {
                now_ns,
                cpus: &[cpu; 4],
                worst_wait_ns: 100_000,
                wait_p99_ns: None,
                wait_mean_ns: None,
                wakeups: None,
            };
            kept = policy.observe(&obs);
        }
        kept
    }

    #[test]
    fn a_policy_that_is_told_of_the_longer_looks_gathers() {
        let mut spec: CoresSpec = CoresSpec::parse("consolidate:bound=5000").expect("a policy");
        assert_eq!(kept_at_rest(&spec), 4, "its own looks are shorter than any that it is given");
        spec.settings = for_ticks(&spec, TICK_NS);
        assert_eq!(kept_at_rest(&spec), 1);
        assert_eq!((spec.settings.ms("trial"), spec.settings.us("bound")), (50 * MS, 5 * MS));
    }

    /// A machine of two cores with two threads each, numbered as Linux does, and the stay that its second state needs.
    fn machine(driver: &str, residency_us: u32, disabled: bool) -> (tempfile::TempDir, DirRoot) {
        let folder = tempfile::tempdir().expect("a folder");
        let cpus = folder.path().join("sys/devices/system/cpu");
        let put = |path: &str, text: &str| {
            let path = cpus.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            std::fs::write(path, text).expect("writable");
        };
        put("online", "0-3\n");
        put("present", "0-3\n");
        put("cpuidle/current_driver", driver);
        for cpu in 0..4 {
            put(&format!("cpu{cpu}/topology/core_id"), &(cpu % 2).to_string());
            put(&format!("cpu{cpu}/topology/physical_package_id"), "0");
            for (state, us, disabled) in [(0, 2, false), (1, residency_us, disabled)] {
                for (file, text) in [
                    ("name", format!("C{state}")),
                    ("latency", "1".into()),
                    ("residency", us.to_string()),
                    ("disable", u32::from(disabled).to_string()),
                ] {
                    put(&format!("cpu{cpu}/cpuidle/state{state}/{file}"), &text);
                }
            }
        }
        let root = DirRoot::new(folder.path());
        (folder, root)
    }

    #[test]
    fn a_policy_learns_what_the_kernel_knows() {
        let stays = |driver, us, disabled| -> Vec<u64> {
            let (_folder, root) = machine(driver, us, disabled);
            known(&root).values().map(|k| k.deep_stay_ns).collect()
        };
        assert_eq!(stays("intel_idle", 400, false), [400_000; 4]);
        assert_eq!(stays("intel_idle", 400, true), [2_000; 4], "switched off by a user");
        assert_eq!(stays("haltpoll", 400, false), [0; 4], "the host's");
        let (_folder, root) = machine("intel_idle", 400, false);
        let spec = CoresSpec::parse("consolidate").expect("a policy");
        assert_eq!(taught(&spec, &known(&root)).1, [0, 2, 1, 3], "whole cores first");
    }

    #[test]
    fn a_wake_up_is_two_switches() {
        let [then, now] = [1_000, 1_251].map(|n| Stat::parse(&format!("cpu0 1 0 0 9\nctxt {n}\n")));
        assert_eq!((wakeups(&now, &then), wakeups(&then, &now)), (125, 0));
    }

    #[test]
    fn only_what_is_too_short_is_lengthened() {
        for (given, param, ms) in
            [("coreidle-ondemand:period=10", "period", 50), ("dragonfly:poll=500", "poll", 500)]
        {
            let spec = CoresSpec::parse(given).expect("a policy");
            assert_eq!(for_ticks(&spec, TICK_NS).ms(param), ms * MS, "{given}");
        }
        let keep = CoresSpec::parse("coreidle-userspace:keep=2").expect("a policy");
        assert_eq!(for_ticks(&keep, TICK_NS), keep.settings);
    }
}
