//! From observations to a machine's watts.
//!
//! A window's power is a sum over what the machine really did (residency taken, not asked for):
//!
//! ```text
//! cores    = (1 + leakage * (T - 50 C)) * (sum of cores at a level * its watts + cores in a C-state * its watts)
//! package  = cores + packages awake * uncore + packages asleep * the state's watts
//! machine  = package + platform
//! ```
//!
//! A core with all threads at work draws a factor more. The unknowns are found by weighted least squares with the
//! estimated machine as a prior: wide where the data speak, all that there is where they do not. Cores, the rest of the
//! packages and the platform each drift on their own, in proportion to the time. Residuals far out weigh less (Huber).
//! What is still as wide as the prior afterwards is called a guess.

pub mod check;
pub(crate) mod design;
pub mod heat;
mod unknowns;

pub use unknowns::{MeteredPart, Unknown, Unknowns};

use crate::window::Observation;
use wattwise_figure::linear::Triangle;
use wattwise_figure::verdict::quantile as student;
use wattwise_figure::{Random, normal};
use wattwise_model::machine::MachineModel;

/// A figure is a guess where a shift that no meter tells makes up this share of its interval.
const SHIFTED: f64 = 0.5;
/// What a meter and a quiet machine waver by at first sight: a share, and W beside it; over a window of so many seconds, and less
/// over a longer one.
const NOISE: (f64, f64) = (0.01, 0.015);
const NOISE_S: f64 = 5.0;
/// What no longer window averages out: a share, an assumption.
const LASTING: f64 = 0.002;
/// This counts as so many observations of the noise.
const ASSUMED: f64 = 3.0;
/// Residuals beyond so many standard deviations weigh less.
const HUBER: f64 = 2.5;
/// Rounds of linearising, of weights and of noise: all have settled by then.
const ROUNDS: usize = 12;
/// A figure whose variance the data brought below this share of the prior's is fitted; any other is a guess.
const LEARNT: f64 = 0.1;

/// A value of an observation, and the part of the machine that it is of.
#[derive(Clone, Debug)]
struct FitRow<'a> {
    of: &'a Observation,
    part: MeteredPart,
    watts: f64,
    /// From -0.5 at the start of the calibration to 0.5 at its end.
    time: f64,
}

/// A part that is metered: what the fit says of it in a window, and what the meter said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedPart {
    /// Which.
    pub part: MeteredPart,
    /// By the fit, W.
    pub predicted_w: f64,
    /// By its meter, W.
    pub metered_w: f64,
}

/// A fitted machine.
#[derive(Clone, Debug)]
pub struct Fit {
    /// What was sought.
    pub unknowns: Unknowns,
    /// Each unknown's value.
    pub value: Vec<f64>,
    /// Their covariance, row by row.
    covariance: Vec<f64>,
    /// Whether the data told of it.
    pub fitted: Vec<bool>,
    /// Degrees of freedom that the noise is known with.
    pub freedom: f64,
    /// The same of each unknown's interval: more where the prior and no noise decides it.
    own_freedom: Vec<f64>,
    /// Directions that no meter here can tell, a sentence each.
    pub unknown_directions: Vec<String>,
}

/// The rows of all observations, and the time that they span, in s.
fn rows(observations: &[Observation]) -> (Vec<FitRow<'_>>, f64) {
    let (first, last) = observations
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), o| (a.min(o.at_s), b.max(o.at_s)));
    let span_s = (last - first).max(1.0);
    let time = |o: &Observation| (o.at_s - first) / span_s - 0.5;
    let rows = observations
        .iter()
        .flat_map(|of| {
            parts(of).into_iter().map(move |(part, watts)| FitRow { of, part, watts, time: time(of) })
        })
        .collect();
    (rows, span_s)
}

/// The parts of the machine that the meters tell apart.
pub(crate) fn parts(o: &Observation) -> Vec<(MeteredPart, f64)> {
    let mut out = Vec::new();
    match (o.cores_w, o.package_w) {
        (Some(cores), Some(package)) => {
            out.extend([(MeteredPart::Cores, cores), (MeteredPart::Rest, package - cores)])
        }
        (None, Some(package)) => out.push((MeteredPart::Package, package)),
        _ => {}
    }
    out.extend(o.memory_w.map(|memory| (MeteredPart::Memory, memory)));
    match (o.machine_w, o.package_w) {
        (Some(machine), Some(package)) => {
            out.push((MeteredPart::Platform, machine - package - o.memory_w.unwrap_or(0.0)));
        }
        (Some(machine), None) => out.push((MeteredPart::Machine, machine)),
        _ => {}
    }
    out
}

/// The parts that an observation has meters for.
pub(crate) fn parts_metered(o: &Observation) -> impl Iterator<Item = MeteredPart> {
    parts(o).into_iter().map(|(part, _)| part)
}

impl Fit {
    /// From observations, with a machine's figures as the prior; none where there is no metered observation.
    pub fn of(machine: &MachineModel, observations: &[Observation]) -> Option<Fit> {
        let (rows, span_s) = rows(observations);
        if rows.is_empty() {
            return None;
        }
        let unknowns = Unknowns::of(machine, span_s, rows.iter().any(|r| r.part == MeteredPart::Memory));
        let n = unknowns.len();
        let spread = unknowns.prior_spread();
        let prior = Triangle::of(n, spread.clone())?.inverse();
        let mut value = unknowns.prior.clone();
        let mut noise = vec![1.0_f64; MeteredPart::ALL.len()];
        let mut far = vec![1.0_f64; rows.len()];
        let (mut triangle, mut freedom) = (None, 1.0);
        for _ in 0..ROUNDS {
            let lines: Vec<(f64, Vec<f64>)> =
                rows.iter().map(|r| unknowns.predict(r.of, r.part, r.time, &value)).collect();
            let weight: Vec<f64> = rows
                .iter()
                .zip(&lines)
                .zip(&far)
                .map(|((r, line), far)| far / (noise[r.part as usize] * variance(line.0, r.of.seconds)))
                .collect();
            let (a, b) = equations(&unknowns, &prior, &value, &rows, &lines, &weight);
            let solved = Triangle::of(n, a)?;
            let step = solved.solve(&b);
            for (i, (value, step)) in value.iter_mut().zip(&step).enumerate() {
                // A power stays positive: it changes by a factor, a few times at most at once.
                if unknowns.is_power(i) {
                    *value *= (step / *value).clamp(-1.0, 1.0).exp()
                } else {
                    *value += step
                }
            }
            let leverage = leverages(&solved, &lines, &weight);
            let lines: Vec<f64> =
                rows.iter().map(|r| unknowns.predict(r.of, r.part, r.time, &value).0).collect();
            freedom = update_noise(&rows, &lines, &leverage, &far, &mut noise);
            for ((far, r), predicted) in far.iter_mut().zip(&rows).zip(&lines) {
                let off = (r.watts - predicted).abs()
                    / (noise[r.part as usize] * variance(*predicted, r.of.seconds)).sqrt();
                *far = (HUBER / off.max(HUBER)).max(0.01);
            }
            triangle = Some(solved);
        }
        let covariance = triangle?.inverse();
        let learnt = |i: usize| {
            let unit = unknowns.unit(i, value[i]);
            covariance[i * n + i] < LEARNT * spread[i * n + i] * unit * unit
        };
        let fitted = (0..n).map(learnt).collect();
        let own_freedom = (0..n)
            .map(|i| {
                let of_noise =
                    1.0 - of_prior(&unknowns, &prior, &value, &covariance, i) / covariance[i * n + i];
                // Satterthwaite's: a variance of which only a part is known from so many degrees of freedom.
                freedom / of_noise.clamp(1e-3, 1.0).powi(2)
            })
            .collect();
        let unknown_directions = Vec::new();
        let mut fit = Fit { unknowns, value, covariance, fitted, freedom, own_freedom, unknown_directions };
        fit.directions(&rows)?;
        Some(fit)
    }

    /// The interval that holds an unknown with this chance.
    pub fn interval(&self, unknown: usize, chance: f64) -> (f64, f64) {
        let sd = self.covariance[unknown * self.value.len() + unknown].sqrt();
        let reach = student(0.5 + chance / 2.0, self.own_freedom[unknown]) * sd;
        (self.away(unknown, -reach), self.away(unknown, reach))
    }

    /// A figure so far from its value; a power by the factor that this is near its value.
    fn away(&self, unknown: usize, by: f64) -> f64 {
        let value = self.value[unknown];
        if self.unknowns.is_power(unknown) { value * (by / value).exp() } else { value + by }
    }

    /// What the fit says of a window's power, by the parts that `o` has meters for, beside what they said.
    pub fn predicted(&self, o: &Observation) -> Vec<PredictedPart> {
        let predict = |(part, metered_w)| PredictedPart {
            part,
            predicted_w: self.unknowns.predict(o, part, 0.0, &self.value).0,
            metered_w,
        };
        parts(o).into_iter().map(predict).collect()
    }

    /// So many machines that the data allow: each the values of all unknowns.
    pub fn draws(&self, count: usize, seed: u64) -> Vec<Vec<f64>> {
        let n = self.value.len();
        let Some(triangle) = Triangle::of(n, self.covariance.clone()) else { return Vec::new() };
        let mut random = Random::new(seed);
        let mut score = || normal::quantile(((random.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64);
        (0..count)
            .map(|_| {
                let z: Vec<f64> = (0..n).map(|_| score()).collect();
                // Student's t, as the noise itself is known from so many residuals only: chi squared by Wilson and
                // Hilferty.
                let ninth = 2.0 / (9.0 * self.freedom);
                let chi = (1.0 - ninth + score() * ninth.sqrt()).max(0.1).powi(3);
                let off = triangle.times(&z);
                off.iter().enumerate().map(|(i, off)| self.away(i, off / chi.sqrt())).collect()
            })
            .collect()
    }

    /// Shifts between figures that leave every metered power as it is, a sentence each; a figure whose interval is
    /// to a large part that of such a shift is a guess.
    fn directions(&mut self, rows: &[FitRow<'_>]) -> Option<()> {
        let spread = self.unknowns.prior_covariance(&self.value);
        let prior = Triangle::of(self.value.len(), spread.clone())?.inverse();
        let metered = |p: MeteredPart| rows.iter().any(|r| r.part == p);
        let candidates = [
            (
                self.unknowns.cores_against_package(),
                "What all cores draw in common cannot be told from what their package draws: only their sum is metered, and \
                 the split is the estimate's.",
            ),
            (
                self.unknowns.package_against_platform(),
                "What the package draws cannot be told from what the rest of the machine draws: only their sum is metered, \
                 and the split is the estimate's.",
            ),
        ];
        let n = self.value.len();
        for (direction, sentence) in candidates {
            let known: f64 = rows.iter().map(|r| self.told_of(r, &direction)).sum();
            let thought: f64 = (0..n)
                .map(|i| (0..n).map(|j| direction[i] * prior[i * n + j] * direction[j]).sum::<f64>())
                .sum();
            if known > thought || thought <= 0.0 {
                continue;
            }
            self.unknown_directions.push(sentence.to_owned());
            // What the shape of a curve is thought to be may hold a shift back; no meter does.
            let apart: f64 = (0..n).map(|i| direction[i].powi(2) / spread[i * n + i]).sum();
            for (i, (fitted, by)) in self.fitted.iter_mut().zip(&direction).enumerate() {
                *fitted &= by * by / apart < SHIFTED * SHIFTED * self.covariance[i * n + i];
            }
        }
        if !metered(MeteredPart::Platform) && !metered(MeteredPart::Machine) {
            self.unknown_directions.push(
                "Nothing meters the machine outside of its packages: the platform's watts are the estimate's.".to_owned(),
            );
        }
        Some(())
    }

    /// How much a row tells of a shift, at one temperature and with one thread a core. That leakage is the same share of every core's
    /// power, and what threads add the same at all speeds, are rules of ours, and no meter.
    fn told_of(&self, row: &FitRow<'_>, direction: &[f64]) -> f64 {
        let mut tepid = Observation { celsius: None, ..row.of.clone() };
        for taken in &mut tepid.taken {
            taken.one.iter_mut().zip(&mut taken.all).for_each(|(one, all)| *one += std::mem::take(all));
        }
        let (watts, slope) = self.unknowns.predict(&tepid, row.part, row.time, &self.value);
        let along: f64 = slope.iter().zip(direction).map(|(s, d)| s * d).sum();
        along * along / variance(watts, row.of.seconds)
    }
}

/// Variance of a power of so many watts, as the mean of a window, before the noise is known.
pub(crate) fn variance(watts: f64, seconds: f64) -> f64 {
    let averaged = (NOISE_S / seconds).min(1.0);
    let wavers = (NOISE.0 * watts).powi(2) + NOISE.1 * NOISE.1;
    wavers * averaged + (LASTING * watts).powi(2)
}

/// The normal equations of a step from `value`.
fn equations(
    unknowns: &Unknowns,
    prior: &[f64],
    value: &[f64],
    rows: &[FitRow<'_>],
    lines: &[(f64, Vec<f64>)],
    weight: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let n = value.len();
    let (mut a, mut b) = (vec![0.0; n * n], vec![0.0; n]);
    let unit: Vec<f64> = (0..n).map(|i| unknowns.unit(i, value[i])).collect();
    for i in 0..n {
        let pull: f64 = (0..n).map(|j| prior[i * n + j] * unknowns.off(j, value[j])).sum();
        b[i] = -pull / unit[i];
        for j in 0..=i {
            a[i * n + j] = prior[i * n + j] / (unit[i] * unit[j]);
        }
    }
    for ((row, (predicted, slope)), w) in rows.iter().zip(lines).zip(weight) {
        for i in (0..n).filter(|i| slope[*i] != 0.0) {
            b[i] += w * slope[i] * (row.watts - predicted);
            for j in 0..=i {
                a[i * n + j] += w * slope[i] * slope[j];
            }
        }
    }
    (a, b)
}

/// The part of an unknown's variance that is the prior's: what would be left of it without any noise of the meters.
fn of_prior(unknowns: &Unknowns, prior: &[f64], value: &[f64], covariance: &[f64], unknown: usize) -> f64 {
    let n = value.len();
    let own: Vec<f64> = (0..n).map(|i| covariance[unknown * n + i] / unknowns.unit(i, value[i])).collect();
    (0..n).map(|i| own[i] * (0..n).map(|j| prior[i * n + j] * own[j]).sum::<f64>()).sum()
}

/// How far each observation decides its own prediction.
fn leverages(solved: &Triangle, lines: &[(f64, Vec<f64>)], weight: &[f64]) -> Vec<f64> {
    let of = |((_, slope), w): (&(f64, Vec<f64>), &f64)| {
        let x = solved.solve(slope);
        w * slope.iter().zip(&x).map(|(a, b)| a * b).sum::<f64>()
    };
    lines.iter().zip(weight).map(of).collect()
}

/// The noise of each part from its residuals; the degrees of freedom of all.
fn update_noise(
    rows: &[FitRow<'_>],
    predicted: &[f64],
    leverage: &[f64],
    far: &[f64],
    noise: &mut [f64],
) -> f64 {
    let mut freedom = 0.0;
    for part in MeteredPart::ALL {
        let (mut sum, mut free) = (0.0, 0.0);
        for (i, row) in rows.iter().enumerate().filter(|(_, r)| r.part == part) {
            sum += far[i] * (row.watts - predicted[i]).powi(2) / variance(predicted[i], row.of.seconds);
            free += (1.0 - leverage[i]).max(0.0);
        }
        if free > 0.5 {
            // Nobody's meter is perfect: where few residuals are, what was assumed has its say.
            let trust = free / (free + ASSUMED);
            noise[part as usize] = trust * (sum / free) + (1.0 - trust) * 1.0;
        }
        freedom += free;
    }
    freedom + ASSUMED
}
