//! What an emulated machine really draws: a machine model, and what a model leaves out.
//!
//! A described machine's watts are rough: load times speed squared, and a flat rest. With a [`Truth`] they follow from
//! the speed of each core, the threads at work on it, the C-state in which it waits, the sleep of the package, the
//! temperature, and a drift and a noise that nobody knows. So a calibration has something to be held against.

use std::collections::BTreeMap;
use wattwise_figure::{Random, normal};
use wattwise_model::machine::{Core, CoreKind, MachineModel};

/// A machine model behind an emulated machine, and what no model has.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Watts of cores, packages and platform.
    pub machine: MachineModel,
    /// The model's core of each CPU.
    pub core_of: BTreeMap<u32, u16>,
    /// The model's C-state of each of a CPU's cpuidle states; none polls.
    pub state_of: BTreeMap<u32, Vec<Option<usize>>>,
    /// By what share a core's watts grow with a degree above [`REFERENCE_C`](wattwise_model::machine::REFERENCE_C).
    pub leakage_per_c: f64,
    /// Standard deviation of what wavers, of the power itself.
    pub noise_share: f64,
    /// The same in watts, beside it.
    pub noise_w: f64,
    /// How long it wavers one way, in s.
    pub noise_tau_s: f64,
    /// By what share the packages without their cores draw more with each hour.
    pub drift_per_h: f64,
    /// Which course the noise takes: two machines with the same one are off by the same at each moment.
    pub noise_seed: u64,
}

/// How far the parts of the machine are off at the moment, in standard deviations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wavering {
    pub(super) cores: [f64; 2],
    pub(super) rest: [f64; 2],
    pub(super) platform: [f64; 2],
}

impl Wavering {
    pub(super) fn step(&mut self, seconds: f64, tau_s: f64, random: &mut Random) {
        let keep = (-seconds / tau_s.max(1e-9)).exp();
        let fresh = (1.0 - keep * keep).sqrt();
        let all = self.cores.iter_mut().chain(&mut self.rest).chain(&mut self.platform);
        all.for_each(|x| *x = keep * *x + fresh * normal::quantile(chance(random)));
    }
}

/// In (0, 1): never an end.
fn chance(random: &mut Random) -> f64 {
    ((random.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Watts of a package, of its memory beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackageWatts {
    pub(super) cores: f64,
    pub(super) rest: f64,
    pub(super) dram: f64,
}

/// At this temperature a package slows its cores, in degrees Celsius.
pub(super) const HOTTEST_C: f64 = 95.0;

impl Truth {
    pub(super) fn wavering(&self, watts: f64, by: [f64; 2]) -> f64 {
        (watts * (1.0 + self.noise_share * by[0]) + self.noise_w * by[1]).max(0.0)
    }

    /// The speed that the hardware lets a core have, in kHz, where `asked` is asked for and so many cores are awake.
    pub(super) fn granted(&self, core: &Core, awake: usize, asked: u32) -> u32 {
        let domain = &self.machine.domains[usize::from(core.domain)];
        let most = domain.boost.get(awake).or(domain.boost.last());
        most.map_or(asked, |l| {
            asked.min(self.machine.kinds[usize::from(core.kind)].levels[usize::from(*l)].khz)
        })
    }
}

/// A busy core's watts at any speed: in proportion between its levels.
pub(super) fn busy_w(kind: &CoreKind, khz: u32) -> f64 {
    let at = |l: usize| (f64::from(kind.levels[l].khz), kind.levels[l].busy_w);
    let khz = f64::from(khz);
    let last = kind.levels.len() - 1;
    let above = (0..=last).rev().find(|l| at(*l).0 >= khz).unwrap_or(0);
    if above == last {
        return at(last).1;
    }
    let ((low, low_w), (high, high_w)) = (at(above + 1), at(above));
    low_w + (high_w - low_w) * ((khz - low) / (high - low)).min(1.0)
}
