//! Machines whose watts are known, to hold a calibration against: emulated ones with a made-up truth behind them.

use crate::estimate::estimate;
use crate::gather::{SeenMachine, is_there};
use crate::layout::Layout;
use wattwise_emulator::{Emulator, Truth};
use wattwise_figure::{Random, normal};
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::{Root, text};
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_model::machine::{CoreKind, MachineModel, Memory, SpeedLevel, builtin, file};

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
    let seen = SeenMachine::read(emulator)?;
    let estimated = file::parse(&estimate(&seen, "truth").text, "truth").ok()?;
    // What is no power (latencies, what threads share, heat) is off as far as the estimate says.
    let (mut machine, _) = estimated.draw(seed);
    let layout = Layout::of(emulator, &machine)?;
    let mut random = Normal(Random::new(seed));
    distort(&mut machine, &estimated, &mut random);
    hold_lowest(&mut machine, &emulator.limits_w());
    if has_memory_zone(emulator) {
        let rest_w =
            estimated.platform_w * MEMORY.0 / machine.packages.len() as f64 * random.factor(MEMORY.2);
        machine.memory =
            Memory { rest_w, busy_w: rest_w * MEMORY.1 * random.factor(MEMORY.2), ..Memory::default() };
        machine.platform_w *= 1.0 - MEMORY.0;
    }
    let topology = Topology::read(emulator);
    let cpuidle = Cpuidle::read(emulator, &topology);
    let states = |own: &wattwise_hw::states::cpuidle::CpuStates| {
        let mut next = 0;
        let each = own.states.iter().map(|s| {
            if !is_there(s) {
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
        noise_seed: seed,
        machine,
    };
    emulator.set_truth(truth.clone());
    // Whoever replays work on the true machine has it get as warm as the emulated one.
    let thermal = emulator.cooling();
    truth.machine.packages.iter_mut().for_each(|p| p.thermal = thermal);
    Some(truth)
}

/// How far figures are off, as standard deviations of the logarithm of their watts: what those of a group have in common, and
/// each on its own. As far as a calibration expects of an estimate, or less (C-states); but for the shape of busy watts it is an
/// assumption.
const BUSY: f64 = 0.5;
const IDLE: (f64, f64) = (0.5, 0.4);
const PACKAGE: (f64, f64) = (0.6, 0.4);
const PLATFORM: f64 = 0.6;
/// Of a package's memory: a share of the platform's watts at rest, a share of these for each core at work, and how far each is
/// off.
const MEMORY: (f64, f64, f64) = (0.2, 0.1, 1.0);
/// Of a limit of power, with leakage in mind: this much is there for cores at their lowest speed.
const HELD: f64 = 0.8;
/// At least this share of a limit is for the cores, whatever the rest of the package draws.
const LEFT: f64 = 0.1;
/// A C-state draws at most so much of what the next shallower one draws.
const DEEPER: f64 = 0.95;
/// Levels that a cluster must have been measured at to show a shape.
const SHAPED: usize = 5;

/// Whether a counter tells of the memory.
fn has_memory_zone(root: &dyn Root) -> bool {
    const AT: &str = "sys/class/powercap";
    let zones = root.list(AT).unwrap_or_default();
    zones
        .iter()
        .any(|zone| text(root, &format!("{AT}/{zone}/name")).is_some_and(|name| name.trim() == "dram"))
}

/// Every figure of power is another. Busy watts fall with the speed as those of a cluster that somebody measured; C-states draw
/// a share of those at the lowest speed. What is of a kind is too high or too low together, and each a little on its own.
fn distort(machine: &mut MachineModel, estimated: &MachineModel, random: &mut Normal) {
    let shapes = shapes();
    for (kind, thought) in machine.kinds.iter_mut().zip(&estimated.kinds) {
        let shape = &shapes[random.0.below(shapes.len())];
        let top = (f64::from(kind.levels[0].khz), thought.levels[0].busy_w * random.factor(BUSY));
        for level in &mut kind.levels {
            let stall = level.stall_w / level.busy_w;
            level.busy_w = top.1 * along(shape, (f64::from(level.khz) / top.0).ln()).exp();
            level.stall_w = level.busy_w * stall;
        }
        // Faster never draws less.
        for l in (1..kind.levels.len()).rev() {
            kind.levels[l - 1].busy_w = kind.levels[l - 1].busy_w.max(kind.levels[l].busy_w * 1.01);
        }
        let lowest = kind.levels.len() - 1;
        let mut most = kind.levels[lowest].busy_w;
        let common = most / thought.levels[lowest].busy_w * random.factor(IDLE.0);
        for (state, thought) in kind.idle.iter_mut().zip(&thought.idle) {
            let watts = (thought.watts[0] * common * random.factor(IDLE.1)).min(most * DEEPER);
            state.watts.iter_mut().for_each(|w| *w = watts);
            most = watts;
        }
        let extra = 0.05 + 0.3 * random.chance();
        let threads = kind.smt_power.len();
        for (t, factor) in kind.smt_power.iter_mut().enumerate().skip(1) {
            *factor = 1.0 + extra * t as f64 / (threads - 1) as f64;
        }
    }
    let (common, platform) = (random.factor(PACKAGE.0), random.factor(PLATFORM));
    let thought = &estimated.packages[0];
    let mut most = thought.uncore_w * common * random.factor(PACKAGE.1);
    machine.packages.iter_mut().for_each(|p| p.uncore_w = most);
    for (s, thought) in thought.idle.iter().enumerate() {
        most = (thought.watts * common * random.factor(PACKAGE.1)).min(most * DEEPER);
        machine.packages.iter_mut().for_each(|p| p.idle[s].watts = most);
    }
    machine.platform_w = estimated.platform_w * platform;
}

/// Every machine can keep all of its cores at work at their lowest speed: where limits of power or heat would not let it, cores
/// draw less.
fn hold_lowest(machine: &mut MachineModel, limits_w: &[f64]) {
    for (package, limit_w) in machine.packages.iter().zip(limits_w) {
        let lowest = |core: &u16| {
            let kind = &machine.kinds[usize::from(machine.cores[usize::from(*core)].kind)];
            kind.levels[kind.levels.len() - 1].busy_w * kind.smt_power[kind.smt_power.len() - 1]
        };
        let all_w: f64 = package.cores.iter().map(lowest).sum();
        let by = HELD * (limit_w - package.uncore_w).max(LEFT * limit_w) / all_w;
        if by < 1.0 {
            for kind in &mut machine.kinds {
                kind.levels.iter_mut().for_each(|l| (l.busy_w, l.stall_w) = (l.busy_w * by, l.stall_w * by));
                kind.idle.iter_mut().flat_map(|s| &mut s.watts).for_each(|w| *w *= by);
            }
        }
    }
}

/// Busy watts of each measured cluster by speed, falling: logarithms of what they are of those at the highest speed.
fn shapes() -> Vec<Vec<(f64, f64)>> {
    let machines = builtin::measured().filter_map(|name| file::parse(builtin::text(name)?, name).ok());
    let of = |kind: &CoreKind| {
        let top = &kind.levels[0];
        let at =
            |l: &SpeedLevel| ((f64::from(l.khz) / f64::from(top.khz)).ln(), (l.busy_w / top.busy_w).ln());
        kind.levels.iter().map(at).collect()
    };
    machines.flat_map(|m| m.kinds).filter(|kind| kind.levels.len() >= SHAPED).map(|kind| of(&kind)).collect()
}

/// A shape at a speed: straight between its levels, and on beyond the lowest.
fn along(shape: &[(f64, f64)], speed: f64) -> f64 {
    let at = shape.windows(2).position(|pair| pair[1].0 <= speed).unwrap_or(shape.len() - 2);
    let ((high, high_w), (low, low_w)) = (shape[at], shape[at + 1]);
    high_w + (low_w - high_w) * (speed - high) / (low - high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a limit is too low for all cores at their lowest speed, all watts of cores fall by the same factor; else none does.
    #[test]
    fn all_cores_are_held_at_their_lowest_speed() {
        let named = |name: &str| file::parse(builtin::text(name).expect("a model"), name).expect("is sound");
        let (before, mut machine) = (named("xeon-4210"), named("xeon-4210"));
        hold_lowest(&mut machine, &[85.0, 85.0]);
        let busy = |m: &MachineModel| m.kinds[0].levels.iter().map(|l| l.busy_w).collect::<Vec<_>>();
        assert_eq!(busy(&machine), busy(&before));
        // Ten cores a package.
        let rest_w = machine.packages[0].uncore_w;
        let lowest_w = busy(&machine)[busy(&machine).len() - 1];
        let limit_w = rest_w + 10.0 * lowest_w * 0.5 / 0.8;
        hold_lowest(&mut machine, &[limit_w, limit_w]);
        for (now, then) in busy(&machine).iter().zip(busy(&before)) {
            assert!((now / then - 0.5).abs() < 1e-9, "{now} {then}");
        }
        let halted = |m: &MachineModel| m.kinds[0].idle[0].watts[0];
        assert!((halted(&machine) / halted(&before) - 0.5).abs() < 1e-9);
        // No limit takes all.
        hold_lowest(&mut machine, &[rest_w * 0.5, rest_w * 0.5]);
        assert!(busy(&machine).iter().all(|w| *w > 0.0));
    }

    #[test]
    fn a_shape_is_straight_between_its_levels_and_goes_on_below() {
        let shape = [(0.0, 0.0), (-1.0, -2.0), (-2.0, -2.5)];
        for (speed, wanted) in [(0.0, 0.0), (-0.5, -1.0), (-1.5, -2.25), (-2.0, -2.5), (-3.0, -3.0)] {
            assert!((along(&shape, speed) - wanted).abs() < 1e-12, "{speed}");
        }
        let shapes = shapes();
        assert!(shapes.len() > 30, "{}", shapes.len());
        assert!(shapes.iter().all(|s| s[0] == (0.0, 0.0) && s.windows(2).all(|p| p[1].0 < p[0].0)));
    }
}
