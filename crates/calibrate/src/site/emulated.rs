//! An emulated machine as a site.

use super::changes::{Ask, Changes, try_changes};
use super::{Pace, Paced, Site};
use crate::clock::shown_khz;
use std::time::Duration;
use wattwise_control::delays::transition;
use wattwise_emulator::{Emulator, Truth};
use wattwise_figure::{Random, normal};
use wattwise_hw::clock::Moment;
use wattwise_hw::root::{Access, Node, Root, number};
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// An emulated machine, in its own time.
pub struct Emulated<'a> {
    machine: Emulator,
    stop: &'a dyn Fn() -> Option<String>,
}

impl Emulated<'_> {
    /// On a machine that nobody else uses.
    pub fn new(machine: Emulator) -> Emulated<'static> {
        Emulated { machine, stop: &|| None }
    }

    /// The same, which asks now and then why to stop.
    pub fn stopped_by(self, stop: &dyn Fn() -> Option<String>) -> Emulated<'_> {
        Emulated { machine: self.machine, stop }
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

impl Emulated<'_> {
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

impl Site for Emulated<'_> {
    fn begins_anew(&self) -> bool {
        true
    }

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
            (self.stop)().map_or(Ok(()), Err)?;
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
