//! Where windows take place: a machine whose CPUs can be kept busy for a time.

use crate::delays::{Ask, Changes, try_changes};
use crate::look::shown_khz;
use crate::pace::{Pace, Paced};
use std::cell::RefCell;
use std::time::Duration;
use wattwise_control::delays::{transition, wake};
use wattwise_emulator::{Emulator, Truth};
use wattwise_figure::{Random, normal};
use wattwise_hw::clock::{Moment, now};
use wattwise_hw::root::{Access, Node, Root, number};
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// A machine that can be put to work.
pub trait Site {
    /// Its files.
    fn root(&self) -> &dyn Root;

    /// Keeps CPUs busy for a share of the time (0 to 1) from now on, and no others.
    ///
    /// # Errors
    /// The work cannot be started there.
    fn load(&self, cpus: &[(u32, f64)]) -> Result<(), String>;

    /// Lets a time pass.
    ///
    /// # Errors
    /// Why to stop: a signal.
    fn pass(&self, time: Duration) -> Result<(), String>;

    /// Wakes CPUs for a moment: the kernel counts a sleep when it ends, and a C-state that is switched off keeps a CPU that is
    /// in it.
    fn wake(&self, _cpus: &[u32]) {}

    /// Runs each kind of work for so long on all of these CPUs at once: what each CPU did; none where no work is really done.
    ///
    /// # Errors
    /// The work cannot be kept there.
    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String>;

    /// Tries changes of speed of a policy, which has the governor `userspace`, seen from one of its CPUs; none where no change
    /// really takes time.
    ///
    /// # Errors
    /// Why they cannot be told, or why to stop.
    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String>;

    /// How late so many sleeps of a length end on a CPU, in us; none where nothing really sleeps.
    ///
    /// # Errors
    /// The CPU cannot be used.
    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String>;

    /// Its clock.
    fn moment(&self) -> Moment;

    /// A CPU that is awake while we look, whose registers wake nobody.
    fn own_cpu(&self) -> u32;

    /// CPU time that the load of a CPU has taken so far, in s: where a host keeps it waiting, more than was asked for.
    fn load_s(&self, _cpu: u32) -> f64 {
        0.0
    }

    /// CPU time that looking has taken so far, in s: what keeps a CPU busy and is nobody else's.
    fn own_s(&self) -> f64 {
        0.0
    }
}

/// An emulated machine, in its own time.
pub struct Emulated {
    machine: Emulator,
}

impl Emulated {
    /// On a machine that nobody else uses.
    pub fn new(machine: Emulator) -> Emulated {
        Emulated { machine }
    }
}

/// By how much kinds of work differ on an emulated core.
const WORK: Pace = [0.9, 1.0, 1.0 / 0.9];

/// From the request to the driver, and what a sleep on an emulated machine is late without any C-state: the timer's slack and the
/// way to the thread. In us.
const PATH_US: f64 = 3.0;
const AWAKE_US: f64 = 55.0;
/// Standard deviation of what is timed: a share of it, and us beside it.
const JITTER: (f64, f64) = (0.03, 0.5);

/// A time with its jitter.
fn jittered(us: f64, random: &mut Random) -> f64 {
    let chance = ((random.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
    us + (JITTER.0 * us + JITTER.1) * normal::quantile(chance)
}

/// A policy of an emulated machine: what is asked for takes the time that its truth says.
struct EmulatedStage<'a> {
    machine: &'a Emulator,
    setspeed: Box<dyn Node>,
    /// Delay and stall together, in us.
    change_us: f64,
    now_ns: u64,
    in_force_khz: u64,
    /// The speed that was asked for last, and when it is in force.
    asked: (u64, u64),
    random: Random,
}

impl transition::Stage for EmulatedStage<'_> {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn request(&mut self, khz: u64) -> Result<(), String> {
        let asked = self.setspeed.write_at(0, khz.to_string().as_bytes());
        asked.map_err(|e| format!("scaling_setspeed: {e}"))?;
        self.now_ns += (jittered(PATH_US, &mut self.random).max(0.0) * 1e3) as u64;
        if khz != self.asked.0 {
            let us = jittered(self.change_us, &mut self.random).max(0.0);
            self.asked = (khz, self.now_ns + (us * 1e3) as u64);
        }
        Ok(())
    }

    fn in_force(&mut self, _: u64, to_khz: u64) -> Result<bool, String> {
        // What a look takes.
        self.now_ns += 200;
        if self.now_ns >= self.asked.1 {
            self.in_force_khz = self.asked.0;
        }
        Ok(self.in_force_khz == to_khz)
    }

    fn rest(&mut self, ns: u64) {
        self.now_ns += ns;
        self.machine.advance(ns);
    }
}

impl Emulated {
    /// Its truth, and the model's core of a CPU.
    fn truth_of(&self, cpu: u32) -> Option<(std::sync::Arc<Truth>, wattwise_model::machine::Core)> {
        let truth = self.machine.truth()?;
        let core = truth.machine.cores.get(usize::from(*truth.core_of.get(&cpu)?))?.clone();
        Some((truth, core))
    }

    /// How often a CPU has entered each of its states.
    fn entered(&self, cpu: u32, states: usize) -> Vec<u64> {
        let file = |s: usize| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{s}/usage");
        (0..states).map(|s| number(&self.machine, &file(s)).unwrap_or(0)).collect()
    }
}

impl Site for Emulated {
    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String> {
        let Some((truth, core)) = self.truth_of(cpu) else { return Ok(None) };
        let transition = &truth.machine.domains[usize::from(core.domain)].transition;
        let ns = transition.delay_ns + transition.stall_ns.iter().max().copied().unwrap_or(0);
        let path = format!("{}/scaling_setspeed", policy.path);
        let setspeed = self.machine.open(&path, Access::Write).map_err(|e| format!("/{path}: {e}"))?;
        let mut stage = EmulatedStage {
            machine: &self.machine,
            setspeed,
            change_us: ns as f64 * 1e-3,
            now_ns: self.machine.now_ns(),
            in_force_khz: 0,
            asked: (0, 0),
            random: Random::new(truth.noise_seed ^ self.machine.now_ns()),
        };
        try_changes(&mut stage, 0.0, ask).map(Some)
    }

    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String> {
        let Some((truth, core)) = self.truth_of(cpu) else { return Ok(None) };
        let Some(states) = truth.state_of.get(&cpu) else { return Ok(None) };
        let kind = &truth.machine.kinds[usize::from(core.kind)];
        let mut random = Random::new(truth.noise_seed ^ self.machine.now_ns());
        let sleep_ns = u64::try_from(sleep.as_nanos()).unwrap_or(u64::MAX);
        let mut before = self.entered(cpu, states.len());
        let mut one = || {
            self.machine.advance(sleep_ns);
            let after = self.entered(cpu, states.len());
            let taken = (0..states.len()).max_by_key(|s| after[*s].wrapping_sub(before[*s]));
            before = after;
            let exit_us =
                taken.and_then(|s| states[s]).map_or(0.0, |s| kind.idle[s].exit_ns[0] as f64 * 1e-3);
            (AWAKE_US + jittered(exit_us, &mut random)).max(0.0)
        };
        Ok(Some((0..times).map(|_| one()).collect()))
    }

    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String> {
        let Some(truth) = self.machine.truth() else { return Ok(None) };
        self.load(&cpus.iter().map(|cpu| (*cpu, 1.0)).collect::<Vec<_>>())?;
        self.pass(each * WORK.len() as u32)?;
        let of = |cpu: &u32| {
            let core = truth.core_of.get(cpu)?;
            let at = usize::from(truth.machine.cores[usize::from(*core)].kind);
            let kind = &truth.machine.kinds[at];
            let busy = cpus.iter().filter(|c| truth.core_of.get(c) == Some(core)).count();
            let khz = shown_khz(&self.machine, *cpu)?;
            let one = khz * kind.ipc * kind.smt_throughput[(busy - 1).min(kind.smt_throughput.len() - 1)];
            // Kinds of core are good at different work: what one kind does, the next one does with another.
            let work = std::array::from_fn(|work| one * WORK[(work + at) % WORK.len()]);
            Some(Paced { work, khz: Some(khz) })
        };
        let all = cpus.iter().map(of).collect();
        self.load(&[])?;
        Ok(all)
    }

    fn root(&self) -> &dyn Root {
        &self.machine
    }

    fn load(&self, cpus: &[(u32, f64)]) -> Result<(), String> {
        let share = |cpu: &u32| cpus.iter().find(|(c, _)| c == cpu).map_or(0.0, |(_, share)| *share);
        let loads: Vec<(u32, u32)> =
            self.machine.online().iter().map(|cpu| (*cpu, (share(cpu) * 1000.0).round() as u32)).collect();
        self.machine.set_loads(&loads);
        Ok(())
    }

    fn pass(&self, time: Duration) -> Result<(), String> {
        // What the packages draw and how warm they get decide each other: in one long step a machine would get
        // hotter than its limits of power and heat let it.
        const STEP: Duration = Duration::from_millis(500);
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP);
            self.machine.advance(u64::try_from(step.as_nanos()).unwrap_or(u64::MAX));
            left -= step;
        }
        Ok(())
    }

    fn moment(&self) -> Moment {
        let s = self.machine.now_ns() as f64 * 1e-9;
        Moment { monotonic_s: s, boot_s: s }
    }

    fn own_cpu(&self) -> u32 {
        self.machine.online().first().copied().unwrap_or(0)
    }
}

/// This machine: a thread on each busy CPU.
pub struct Live<'a> {
    root: &'a dyn Root,
    burners: RefCell<Vec<Burner>>,
    stop: &'a dyn Fn(Duration) -> Option<String>,
}

struct Burner {
    cpu: u32,
    /// Its CPU time so far, in ns.
    used_ns: std::sync::Arc<std::sync::atomic::AtomicU64>,
    end: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.end.store(true, std::sync::atomic::Ordering::Relaxed);
        // A thread that computes cannot panic; if it has, it has ended.
        _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// The rhythm of a CPU that is busy for part of the time.
const PERIOD: Duration = Duration::from_millis(20);

impl<'a> Live<'a> {
    /// On this machine. `sleep` waits for a time, and says why to stop where there is a reason.
    pub fn new(root: &'a dyn Root, sleep: &'a dyn Fn(Duration) -> Option<String>) -> Live<'a> {
        Live { root, burners: RefCell::default(), stop: sleep }
    }
}

impl Live<'_> {
    /// Tries changes of speed from the CPU that this thread runs on.
    fn changes_here(&self, policy: &CpufreqPolicy, ask: &Ask<'_>) -> Result<Changes, String> {
        let mut levels_khz = ask.levels_khz;
        let mut stage = loop {
            match transition::Live::open(self.root, policy, levels_khz) {
                Ok(stage) => break stage,
                // The highest may be a boost that the hardware does not give: then it cannot be told from the next one.
                Err(_) if levels_khz.len() > 2 => levels_khz = &levels_khz[1..],
                Err(why) => return Err(why),
            }
        };
        let within_us = stage.within_us();
        try_changes(&mut stage, within_us, &Ask { levels_khz, ..*ask })
    }
}

impl Site for Live<'_> {
    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String> {
        let before = rustix::thread::sched_getaffinity(None).map_err(|e| e.to_string())?;
        // A timed loop has to feel the speed.
        wake::pin(cpu as usize)?;
        let tried = self.changes_here(policy, ask);
        rustix::thread::sched_setaffinity(None, &before).map_err(|e| e.to_string())?;
        tried.map(Some)
    }

    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String> {
        wake::timer(cpu as usize, sleep, times).map(Some)
    }

    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String> {
        crate::pace::run(self.root, cpus, each).map(Some)
    }

    fn root(&self) -> &dyn Root {
        self.root
    }

    fn load(&self, cpus: &[(u32, f64)]) -> Result<(), String> {
        self.burners.borrow_mut().clear();
        let started = cpus.iter().filter(|(_, share)| *share > 0.0).map(|(cpu, share)| burner(*cpu, *share));
        *self.burners.borrow_mut() = started.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn pass(&self, time: Duration) -> Result<(), String> {
        (self.stop)(time).map_or(Ok(()), Err)
    }

    fn wake(&self, cpus: &[u32]) {
        wattwise_hw::cpus::wake::wake(cpus.iter().copied());
    }

    fn moment(&self) -> Moment {
        now()
    }

    fn own_cpu(&self) -> u32 {
        rustix::thread::sched_getcpu() as u32
    }

    fn load_s(&self, cpu: u32) -> f64 {
        let burners = self.burners.borrow();
        let of_cpu = burners.iter().find(|b| b.cpu == cpu);
        of_cpu.map_or(0.0, |b| b.used_ns.load(std::sync::atomic::Ordering::Relaxed) as f64 * 1e-9)
    }

    fn own_s(&self) -> f64 {
        thread_ns() as f64 * 1e-9
    }
}

/// CPU time of this thread.
fn thread_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A thread that is busy on a CPU for a share of the time, until the value ends.
fn burner(cpu: u32, share: f64) -> Result<Burner, String> {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let end = std::sync::Arc::new(AtomicBool::new(false));
    let used_ns = std::sync::Arc::new(AtomicU64::new(0));
    let used = std::sync::Arc::clone(&used_ns);
    let (ended, (tell, told)) = (std::sync::Arc::clone(&end), std::sync::mpsc::channel());
    let thread = std::thread::Builder::new().name(format!("burn-{cpu}")).spawn(move || {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu as usize);
        let pinned = rustix::thread::sched_setaffinity(None, &set);
        let failed = pinned.is_err();
        _ = tell.send(pinned);
        let mut state = u64::from(cpu) | 1;
        while !failed && !ended.load(Ordering::Relaxed) {
            let begun = std::time::Instant::now();
            while begun.elapsed() < PERIOD.mul_f64(share) && !ended.load(Ordering::Relaxed) {
                for _ in 0..4096 {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                }
                std::hint::black_box(state);
            }
            used.store(thread_ns(), Ordering::Relaxed);
            if share < 1.0 {
                std::thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
            }
        }
    });
    let thread = Some(thread.map_err(|e| format!("no thread for CPU {cpu}: {e}"))?);
    let burner = Burner { cpu, used_ns, end, thread };
    match told.recv() {
        Ok(Ok(())) => Ok(burner),
        Ok(Err(e)) => Err(format!("no work can be kept on CPU {cpu}: {e}")),
        Err(_) => Err(format!("the work on CPU {cpu} ended at once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load says what CPU time it took: some, and no more than has passed.
    #[test]
    fn a_load_says_what_it_took() {
        let cpu = rustix::thread::sched_getcpu() as u32;
        let root = wattwise_hw::root::DirRoot::new("/");
        let sleep = |time| {
            std::thread::sleep(time);
            None
        };
        let site = Live::new(&root, &sleep);
        let begun = std::time::Instant::now();
        site.load(&[(cpu, 0.5)]).unwrap();
        let waits = (0..1000).take_while(|_| site.load_s(cpu) == 0.0);
        waits.for_each(|_| site.pass(PERIOD).unwrap());
        let took = site.load_s(cpu);
        assert!(took > 0.0 && took <= begun.elapsed().as_secs_f64(), "{took}");
        assert_eq!(site.load_s(cpu + 1), 0.0);
        site.load(&[]).unwrap();
        assert_eq!(site.load_s(cpu), 0.0);
    }

    /// A policy that cannot be opened is an error, and the thread may run afterwards where it could before.
    #[test]
    fn a_timing_that_fails_leaves_the_thread_where_it_was() {
        let emulated = wattwise_emulator::named("core-i5-2gen").unwrap();
        let cpufreq = wattwise_hw::states::cpufreq::Cpufreq::read(&emulated);
        let folder = tempfile::tempdir().unwrap();
        let root = wattwise_hw::root::DirRoot::new(folder.path());
        let sleep = |_| None;
        let site = Live::new(&root, &sleep);
        let ours = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = rustix::thread::sched_getcpu() as u32;
        let ask = Ask { levels_khz: &[2, 1], most: Duration::from_secs(1), stop: &|| None };
        let got = site.changes(&cpufreq.policies()[0], cpu, &ask);
        assert!(got.is_err_and(|why| why.contains("scaling_setspeed")));
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), ours);
    }
}
