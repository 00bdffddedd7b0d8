//! Machines whose watts are known, to hold a calibration against: emulated ones with a made-up truth behind them.

use crate::estimate::estimate;
use crate::gather::{Seen, polls};
use crate::layout::Layout;
use wattwise_emulator::{Emulator, Truth};
use wattwise_figure::{Random, normal};
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_model::machine::{MachineModel, file};

/// How noisy and how changeable a made-up machine is.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Standard deviation of a power, of itself.
    pub noise_share: f64,
    /// The same in W, beside it.
    pub noise_w: f64,
    /// How long it wavers one way, in s.
    pub noise_tau_s: f64,
    /// The largest drift of the packages without their cores, a share an hour.
    pub drift_per_h: f64,
    /// The largest share by which a core's watts grow with a degree.
    pub leakage_per_c: f64,
}

/// As `reference/calibration` measured it: 1 % and 15 mW over a window of 5 s.
pub const USUAL: Weather =
    Weather { noise_share: 0.01, noise_w: 0.015, noise_tau_s: 2.0, drift_per_h: 0.2, leakage_per_c: 0.008 };

/// A chance variable that is normal.
struct Normal(Random);

impl Normal {
    fn next(&mut self) -> f64 {
        normal::quantile(self.chance())
    }

    fn chance(&mut self) -> f64 {
        ((self.0.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A factor whose logarithm has this standard deviation.
    fn factor(&mut self, sd: f64) -> f64 {
        (sd * self.next()).exp()
    }
}

/// Puts a made-up truth behind an emulated machine: its estimate, with every figure off. None where its files list no
/// CPU or its packages differ.
pub fn behind(emulator: &Emulator, weather: Weather, seed: u64) -> Option<Truth> {
    let seen = Seen::read(emulator)?;
    let estimated = file::parse(&estimate(&seen, "truth").text, "truth").ok()?;
    // What is no power (latencies, what threads share, heat) is off as far as the estimate says.
    let (mut machine, _) = estimated.draw(seed);
    let layout = Layout::of(emulator, &machine)?;
    let mut random = Normal(Random::new(seed));
    distort(&mut machine, &mut random);
    let topology = Topology::read(emulator);
    let cpuidle = Cpuidle::read(emulator, &topology);
    let states = |own: &wattwise_hw::states::cpuidle::CpuStates| {
        let mut next = 0;
        let each = own.states.iter().map(|s| {
            if polls(s) {
                return None;
            }
            next += 1;
            Some(next - 1)
        });
        (own.cpu, each.collect())
    };
    let mut truth = Truth {
        core_of: layout.core_of(&machine),
        state_of: cpuidle.cpus().iter().map(states).collect(),
        leakage_per_c: weather.leakage_per_c * random.chance(),
        noise_share: weather.noise_share,
        noise_w: weather.noise_w,
        noise_tau_s: weather.noise_tau_s,
        drift_per_h: weather.drift_per_h * (2.0 * random.chance() - 1.0),
        dram_w: 0.0,
        noise_seed: seed,
        machine,
    };
    emulator.set_truth(truth.clone());
    // Whoever replays work on the true machine has it get as warm as the emulated one.
    let thermal = emulator.cooling();
    truth.machine.packages.iter_mut().for_each(|p| p.thermal = thermal);
    Some(truth)
}

/// Every figure of power is another: those of a kind too high or too low together, each a little on its own.
fn distort(machine: &mut MachineModel, random: &mut Normal) {
    for kind in &mut machine.kinds {
        let (common, steeper) = (random.factor(0.3), 0.2 * random.next());
        let top = f64::from(kind.levels[0].khz);
        for level in &mut kind.levels {
            let own = (f64::from(level.khz) / top).powf(steeper) * random.factor(0.04);
            let stall = level.stall_w / level.busy_w;
            level.busy_w *= common * own;
            level.stall_w = level.busy_w * stall;
        }
        // Faster never draws less.
        for l in (1..kind.levels.len()).rev() {
            kind.levels[l - 1].busy_w = kind.levels[l - 1].busy_w.max(kind.levels[l].busy_w * 1.01);
        }
        let common = random.factor(0.4);
        let mut most = kind.levels[kind.levels.len() - 1].busy_w;
        for state in &mut kind.idle {
            let watts = (state.watts[0] * common * random.factor(0.3)).min(most * 0.95);
            state.watts.iter_mut().for_each(|w| *w = watts);
            most = watts;
        }
        let extra = 0.05 + 0.3 * random.chance();
        let threads = kind.smt_power.len();
        for (t, factor) in kind.smt_power.iter_mut().enumerate().skip(1) {
            *factor = 1.0 + extra * t as f64 / (threads - 1) as f64;
        }
    }
    let (common, platform) = (random.factor(0.4), random.factor(0.4));
    for package in &mut machine.packages {
        package.uncore_w *= common;
    }
    let mut most = machine.packages[0].uncore_w;
    for s in 0..machine.packages[0].idle.len() {
        let watts = (machine.packages[0].idle[s].watts * common * random.factor(0.3)).min(most * 0.95);
        machine.packages.iter_mut().for_each(|p| p.idle[s].watts = watts);
        most = watts;
    }
    machine.platform_w *= platform;
}
