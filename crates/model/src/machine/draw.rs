//! One machine within the figures of another.
//!
//! The file is scaled and its tables are built anew by what builds those of any file, so that a drawn machine keeps
//! every rule that a written one does. Where two figures drawn apart would break one, the figure that can give way
//! does ([`settle`]); a draw that no rule helps is moved towards the nominal machine, half the way each time.

use super::tables::{File, KindTable};
use super::{MachineModel, Thermal, Tick};
use super::{bounds, file};
use wattwise_figure::Random;

/// Scores beyond this are cut, whoever asks.
const FARTHEST: f64 = 6.0;
/// Times that a draw is moved half the way to the nominal machine.
const MOVES: usize = 8;
/// What gives way goes this share further, so that rounding in the tables does not bring it back.
const SLACK: f64 = 1e-9;

/// One figure's draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its path in the file.
    pub what: String,
    /// By what the figure was multiplied (of what threads share: the part that they take or add).
    pub factor: f64,
    /// Standard deviations from the nominal figure ([`super::figures::Spread::factor`]).
    pub z: f64,
}

impl MachineModel {
    /// One machine within this one's figures. The same seed gives the same bits on every platform, and a figure's
    /// draw does not depend on what other figures there are.
    pub fn draw(&self, seed: u64) -> (MachineModel, Vec<Drawn>) {
        self.draw_at(&self.scores(seed))
    }

    /// The scores of [`MachineModel::draw`], one for each of [`MachineModel::figures`]. Figures that the file has drawn together
    /// come from one of its machines.
    pub fn scores(&self, seed: u64) -> Vec<f64> {
        let together = self.written.together(seed);
        let score = |f: &super::figures::Uncertain| {
            let own = together.get(f.what.as_str()).copied();
            own.unwrap_or_else(|| f.spread.score(chance(seed, &f.what)))
        };
        self.figures().iter().map(score).collect()
    }

    /// The scores at which each of [`MachineModel::figures`] has the share of its draws below: for designs that fill the
    /// space better than chance does. Half of them is not the nominal machine where a figure is a worst case.
    pub fn scores_at(&self, shares: &[f64]) -> Vec<f64> {
        self.figures().iter().zip(shares).map(|(f, p)| f.spread.score(*p)).collect()
    }

    /// The machine at one score for each of [`MachineModel::figures`]; 0 for what is missing or no number. All 0 gives
    /// this very machine.
    pub fn draw_at(&self, scores: &[f64]) -> (MachineModel, Vec<Drawn>) {
        let Some(written) = self.written.file() else { return (self.clone(), Vec::new()) };
        let mut z: Vec<f64> = (0..self.figures().len())
            .map(|i| scores.get(i).copied().filter(|z| !z.is_nan()).unwrap_or(0.0).clamp(-FARTHEST, FARTHEST))
            .collect();
        for _ in 0..MOVES {
            let (drawn, file) = self.scaled(written, &z);
            if let Ok(machine) = self.rebuilt(&file) {
                return (machine, drawn);
            }
            z.iter_mut().for_each(|z| *z /= 2.0);
        }
        (self.clone(), self.scaled(written, &[]).0)
    }

    /// The file with its figures at these scores, and how each was drawn.
    fn scaled(&self, written: &File, z: &[f64]) -> (Vec<Drawn>, File) {
        let mut file = written.clone();
        let mut drawn = Vec::with_capacity(self.figures().len());
        for (i, figure) in self.figures().iter().enumerate() {
            let z = z.get(i).copied().unwrap_or(0.0);
            let factor = figure.spread.factor(z);
            figure.scale(&mut file, factor);
            drawn.push(Drawn { what: figure.what.clone(), factor, z });
        }
        settle(&mut file);
        (drawn, file)
    }

    /// This machine's layout with the file's figures.
    fn rebuilt(&self, file: &File) -> Result<MachineModel, String> {
        let mut kinds = file.kind.iter().map(file::core_kind).collect::<Result<Vec<_>, _>>()?;
        if kinds.len() != self.kinds.len() {
            return Err("the machine has other kinds of core than its file".into());
        }
        // The base clock is the product's name for a level, not a figure that may be off; what the scheduler's load takes for full
        // follows from it; and what the kernel's energy model says
        // is the same on every board.
        for (kind, nominal) in kinds.iter_mut().zip(&self.kinds) {
            (kind.base_khz, kind.load_full_khz) = (nominal.base_khz, nominal.load_full_khz);
            for (level, known) in kind.levels.iter_mut().zip(&nominal.levels) {
                level.model_uw = known.model_uw;
            }
        }
        let transitions = file
            .kind
            .iter()
            .zip(&kinds)
            .map(|(table, kind)| file::transition(table, kind))
            .collect::<Result<Vec<_>, _>>()?;
        let states = file::package_states(file, &kinds)?;
        let uncore = super::uncore::of(file, &kinds)?;
        let limit = file::power_limit(file)?;
        let thermal: Thermal = file::thermal(file, &mut Vec::new())?;
        let tick: Tick = file::tick(file, &mut Vec::new())?;
        let mut machine = self.clone();
        for domain in &mut machine.domains {
            let drawn = &transitions[usize::from(domain.kind)];
            domain.transition.delay_ns = drawn.delay_ns;
            domain.transition.stall_ns.clone_from(&drawn.stall_ns);
        }
        for package in &mut machine.packages {
            package.uncore_w = bounds::watts("package.uncore_w", file.package.uncore_w)?;
            package.idle.clone_from(&states);
            package.thermal = thermal;
            package.uncore.clone_from(&uncore);
            package.limit = limit;
        }
        let cost = |what: &str, us: Option<f64>, now: u64| us.map_or(Ok(now), |us| bounds::us(what, us));
        machine.kinds = kinds;
        machine.autonomous = file::autonomous(file)?;
        machine.memory = file::memory(file, &mut Vec::new())?;
        machine.memory_clock = super::memory_clock::of(file)?;
        machine.platform_w = bounds::watts("platform.watts", file.platform.watts)?;
        machine.migration_ns = cost("migration_us", file.platform.migration_us, machine.migration_ns)?;
        machine.interrupt_ns = cost("interrupt_us", file.platform.interrupt_us, machine.interrupt_ns)?;
        machine.tick = Tick { period_ns: machine.tick.period_ns, tickless: machine.tick.tickless, ..tick };
        Ok(machine)
    }
}

/// A chance in (0, 1) for a figure: a stream for each path (FNV-1a), so that one more figure moves no other's draw.
fn chance(seed: u64, what: &str) -> f64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let path = what.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    let start = Random::new(seed).bits() ^ path;
    let mut stream = Random::new(start);
    stream.bits();
    // The middle of one of 2^52 steps: never 0 nor 1.
    ((stream.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Makes figures that were drawn apart agree: what a machine file may not say is moved to the nearest that it may.
/// A file that says it already stays as it is.
fn settle(file: &mut File) {
    for kind in &mut file.kind {
        if let Some(share) = &mut kind.speeds.stall_share {
            *share = share.min(1.0);
        }
        if let Some(t) = &mut kind.tstates {
            t.loss_percent = t.loss_percent.min(50.0);
        }
        settle_powers(kind);
        for s in &mut kind.idle.states {
            // A state that takes longer to leave than it is worth is never worth it.
            let most = |us: &mut f64| *us = us.min(s.target_us);
            s.exit_us.iter_mut().chain(&mut s.lowest_exit_us).for_each(most);
        }
    }
    let (mut watts, mut exit_us) = (file.package.uncore_w, 0.0_f64);
    for s in &mut file.package.idle {
        s.watts = s.watts.min(watts);
        s.exit_us = s.exit_us.max(exit_us);
        (watts, exit_us) = (s.watts, s.exit_us);
    }
    if let Some(a) = &mut file.autonomous {
        for share in [&mut a.full_at_0, &mut a.full_at_255, &mut a.drop, &mut a.drop_to] {
            *share = share.min(1.0);
        }
    }
    if let Some(c) = &mut file.epp_ceiling {
        (c.from, c.at_255) = (c.from.min(254.0), c.at_255.clamp(0.05, 1.0));
    }
    if let Some(l) = &mut file.power_limit
        && let Some(short) = &mut l.short_w
    {
        *short = short.max(l.long_w);
    }
    if let Some(m) = &mut file.memory
        && let Some(asleep) = &mut m.self_refresh_w
    {
        *asleep = asleep.min(m.watts);
    }
    if let Some(c) = &mut file.memory_clock {
        for share in [&mut c.follows, &mut c.core_share] {
            *share = share.min(1.0);
        }
    }
    if let Some(t) = &mut file.thermal {
        // Room for a degree of heating, as a file must leave.
        t.ambient_c = t.ambient_c.min(t.critical_c - 1.0);
    }
}

/// Faster never draws less than slower, running never less than halted, a deeper state never more than a shallower.
///
/// Where busy power is given speed by speed, it gives way to the halted core's, of which more is usually known;
/// where it follows from voltages, the halted core's gives way.
fn settle_powers(kind: &mut KindTable) {
    let halted = kind.idle.states.first().map(|s| (s.watts, s.lowest_watts.unwrap_or(s.watts)));
    let (high, low) = halted.unwrap_or_default();
    let busy = &mut kind.speeds.busy_w;
    if let Some(slowest) = busy.last_mut() {
        at_least(slowest, low);
        at_least(&mut busy[0], high);
        for i in (1..busy.len()).rev() {
            busy[i - 1] = busy[i - 1].max(busy[i]);
        }
    }
    let Ok(busy) = file::busy_w(&kind.speeds) else { return };
    let (Some(&(mut high)), Some(&(mut low))) = (busy.first(), busy.last()) else { return };
    for s in &mut kind.idle.states {
        at_most(&mut s.watts, if s.lowest_watts.is_some() { high } else { low });
        if let Some(w) = &mut s.lowest_watts {
            at_most(w, low.min(s.watts));
        }
        (high, low) = (s.watts, s.lowest_watts.unwrap_or(s.watts));
    }
}

fn at_least(value: &mut f64, least: f64) {
    if *value < least {
        *value = least * (1.0 + SLACK);
    }
}

fn at_most(value: &mut f64, most: f64) {
    if *value > most {
        *value = most * (1.0 - SLACK);
    }
}

#[cfg(test)]
mod tests;
