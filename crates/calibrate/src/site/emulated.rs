//! An emulated machine as a site: of this process, in its own time, or mounted, by its console.

use super::changes::{Ask, Changes, try_changes};
use super::{Pace, Paced, Site};
use crate::site::clock::shown_khz;
use std::time::Duration;
use wattwise_control::delays::transition;
use wattwise_emulator::Emulator;
use wattwise_emulator::console::{CpuTimes, LOAD, PASS_NS, TIMES, Times};
use wattwise_figure::{Random, normal};
use wattwise_hw::clock::Moment;
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::{Access, Node, Root, number, text};
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// An emulated machine that can be put to work.
trait Controls {
    fn root(&self) -> &dyn Root;
    fn now_ns(&self) -> u64;
    fn advance(&self, ns: u64) -> Result<(), String>;
    fn online(&self) -> Vec<u32>;
    /// Thousandths of their time, by CPU.
    fn set_loads(&self, loads: &[(u32, u32)]) -> Result<(), String>;
    /// What takes time on it, where that is known.
    fn times(&self) -> Option<Times>;
    /// Whether it begins with this process.
    fn is_new(&self) -> bool;
}

impl Controls for Emulator {
    fn root(&self) -> &dyn Root {
        self
    }

    fn now_ns(&self) -> u64 {
        Emulator::now_ns(self)
    }

    fn advance(&self, ns: u64) -> Result<(), String> {
        Emulator::advance(self, ns);
        Ok(())
    }

    fn online(&self) -> Vec<u32> {
        Emulator::online(self)
    }

    fn set_loads(&self, loads: &[(u32, u32)]) -> Result<(), String> {
        Emulator::set_loads(self, loads);
        Ok(())
    }

    fn times(&self) -> Option<Times> {
        Some(Times::of(&*self.truth()?))
    }

    fn is_new(&self) -> bool {
        true
    }
}

/// A machine that another process has mounted.
struct Mounted<'r>(&'r dyn Root);

impl Mounted<'_> {
    fn write(&self, path: &str, value: &str) -> Result<(), String> {
        self.0.write(path, value.as_bytes()).map_err(|e| format!("{}/{path}: {e}", self.0.describe()))
    }
}

impl Controls for Mounted<'_> {
    fn root(&self) -> &dyn Root {
        self.0
    }

    fn now_ns(&self) -> u64 {
        number(self.0, PASS_NS).unwrap_or(0)
    }

    fn advance(&self, ns: u64) -> Result<(), String> {
        self.write(PASS_NS, &ns.to_string())
    }

    fn online(&self) -> Vec<u32> {
        Topology::read(self.0).online.iter().collect()
    }

    fn set_loads(&self, loads: &[(u32, u32)]) -> Result<(), String> {
        // A write is a page at most.
        for some in loads.chunks(256) {
            let lines: String = some.iter().map(|(cpu, permille)| format!("{cpu} {permille}\n")).collect();
            self.write(LOAD, &lines)?;
        }
        Ok(())
    }

    fn times(&self) -> Option<Times> {
        Times::parse(&format!("{}\n", text(self.0, TIMES)?))
    }

    fn is_new(&self) -> bool {
        false
    }
}

/// An emulated machine, in its own time.
pub struct Emulated<'a> {
    machine: Box<dyn Controls + 'a>,
    times: Option<Times>,
    stop: &'a dyn Fn() -> Option<String>,
}

impl<'a> Emulated<'a> {
    /// On a machine that nobody else uses.
    pub fn new(machine: Emulator) -> Emulated<'static> {
        Emulated { times: machine.times(), machine: Box::new(machine), stop: &|| None }
    }

    /// On one that `wattwise emulate` has mounted, whose time may run with the clock beside; none where the files are those of
    /// no such machine.
    pub fn mounted(root: &'a dyn Root) -> Option<Emulated<'a>> {
        text(root, PASS_NS)?;
        let machine = Mounted(root);
        Some(Emulated { times: machine.times(), machine: Box::new(machine), stop: &|| None })
    }

    /// The same, which asks now and then why to stop.
    pub fn stopped_by(self, stop: &'a dyn Fn() -> Option<String>) -> Emulated<'a> {
        Emulated { stop, ..self }
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
    machine: &'a dyn Controls,
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
        // One that is gone fails the next request.
        _ = self.machine.advance(ns);
    }
}

impl Emulated<'_> {
    /// What takes time on a CPU, with the seed of what jitters.
    fn times_of(&self, cpu: u32) -> Option<(u64, &CpuTimes)> {
        let times = self.times.as_ref()?;
        Some((times.seed, times.cpus.get(&cpu)?))
    }

    /// The counters of how often a CPU has entered each of its states, opened once: a mounted one's way to a file is long.
    fn counters(&self, cpu: u32, states: usize) -> Vec<Option<Box<dyn Node>>> {
        let file = |s: usize| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{s}/usage");
        (0..states).map(|s| self.root().open(&file(s), Access::Read).ok()).collect()
    }
}

/// What a counter's file shows now.
fn count(node: &mut dyn Node) -> u64 {
    let mut bytes = [0; 32];
    let read = node.read_at(0, &mut bytes).unwrap_or(0);
    std::str::from_utf8(&bytes[..read]).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

impl Site for Emulated<'_> {
    fn begins_anew(&self) -> bool {
        self.machine.is_new()
    }

    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String> {
        let Some((seed, times)) = self.times_of(cpu) else { return Ok(None) };
        let path = format!("{}/scaling_setspeed", policy.path);
        let setspeed = self.root().open(&path, Access::Write).map_err(|e| format!("/{path}: {e}"))?;
        let mut stage = EmulatedStage {
            machine: &*self.machine,
            setspeed,
            change_us: times.change_ns as f64 * 1e-3,
            now_ns: self.machine.now_ns(),
            in_force_khz: 0,
            asked: (0, 0),
            random: Random::new(seed ^ self.machine.now_ns()),
        };
        try_changes(&mut stage, 0.0, ask).map(Some)
    }

    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String> {
        let Some((seed, own)) = self.times_of(cpu).filter(|(_, own)| !own.exit_ns.is_empty()) else {
            return Ok(None);
        };
        let mut random = Random::new(seed ^ self.machine.now_ns());
        let sleep_ns = u64::try_from(sleep.as_nanos()).unwrap_or(u64::MAX);
        let states = own.exit_ns.len();
        let mut counters = self.counters(cpu, states);
        let mut entered =
            || counters.iter_mut().map(|c| c.as_mut().map_or(0, |node| count(&mut **node))).collect();
        let mut before: Vec<u64> = entered();
        let mut one = || {
            self.machine.advance(sleep_ns)?;
            let after: Vec<u64> = entered();
            let taken = (0..states).max_by_key(|s| after[*s].wrapping_sub(before[*s]));
            before = after;
            let exit_us = taken.and_then(|s| own.exit_ns[s]).map_or(0.0, |ns| ns as f64 * 1e-3);
            Ok((AWAKE_US + jittered(exit_us, &mut random)).max(0.0))
        };
        (0..times).map(|_| one()).collect::<Result<_, String>>().map(Some)
    }

    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String> {
        let Some(times) = &self.times else { return Ok(None) };
        self.load(&cpus.iter().map(|cpu| (*cpu, 1.0)).collect::<Vec<_>>())?;
        self.pass(each * WORK.len() as u32)?;
        let of = |cpu: &u32| {
            let own = times.cpus.get(cpu)?;
            let at = usize::from(own.kind);
            let busy = cpus.iter().filter(|c| times.cpus.get(c).is_some_and(|t| t.core == own.core)).count();
            let khz = shown_khz(self.root(), *cpu)?;
            let one = khz * own.ipc * own.threads.get(busy - 1).or(own.threads.last())?;
            // Kinds of core are good at different work: what one kind does, the next one does with another.
            let work = std::array::from_fn(|work| one * WORK[(work + at) % WORK.len()]);
            Some(Paced { work, khz: Some(khz) })
        };
        let all = cpus.iter().map(of).collect();
        self.load(&[])?;
        Ok(all)
    }

    fn root(&self) -> &dyn Root {
        self.machine.root()
    }

    fn load(&self, cpus: &[(u32, f64)]) -> Result<(), String> {
        let share = |cpu: &u32| cpus.iter().find(|(c, _)| c == cpu).map_or(0.0, |(_, share)| *share);
        let loads: Vec<(u32, u32)> =
            self.machine.online().iter().map(|cpu| (*cpu, (share(cpu) * 1000.0).round() as u32)).collect();
        self.machine.set_loads(&loads)
    }

    fn pass(&self, time: Duration) -> Result<(), String> {
        // What the packages draw and how warm they get decide each other: in one long step a machine would get
        // hotter than its limits of power and heat let it.
        const STEP: Duration = Duration::from_millis(500);
        let mut left = time;
        while !left.is_zero() {
            (self.stop)().map_or(Ok(()), Err)?;
            let step = left.min(STEP);
            self.machine.advance(u64::try_from(step.as_nanos()).unwrap_or(u64::MAX))?;
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
