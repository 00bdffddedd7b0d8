//! How warm a package gets by what it draws: one pole, as the model has it, from the temperatures of all windows in turn.
//!
//! ```text
//! T(t) = ambient + resistance * (watts, smoothed over tau) + what it was off at first * exp(-t / tau)
//! ```
//!
//! For a given tau that is linear; tau itself is searched for.

use crate::window::Observation;
use wattwise_figure::linear::Triangle;
use wattwise_figure::verdict::quantile as student;

/// A figure and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatFigure {
    /// The figure.
    pub value: f64,
    /// The interval's ends.
    pub ends: (f64, f64),
}

/// The thermal model of a package.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heat {
    /// The temperature that it would have without drawing power, in degrees Celsius.
    pub ambient_c: HeatFigure,
    /// Degrees by which a watt makes it warmer.
    pub c_per_w: HeatFigure,
    /// Its time constant, in s.
    pub tau_s: HeatFigure,
}

/// A window's temperature, and what a package drew in it.
struct Warmth {
    start_s: f64,
    seconds: f64,
    watts: f64,
    celsius: f64,
}

/// After a longer gap between windows nobody knows what the machine did meanwhile.
const GAP_S: f64 = 30.0;
/// Time constants that are tried, in s, and in how many steps.
const TAU_S: (f64, f64) = (1.0, 300.0);
const TAU_STEPS: i32 = 48;
/// Halvings of what is open between two of them.
const NARROWINGS: usize = 40;
/// The least share of the temperatures' variance that the model has to explain.
const EXPLAINED: f64 = 0.9;
/// How far the resistance may be open: a share of it.
const OPEN: f64 = 0.25;
/// A heat sink has more than one pole, and while a window settles nothing is metered: no figure is surer than this (degrees, a
/// share of the resistance, of tau). An assumption; emulated machines with one pole are off by up to 2 %, tau by 12 %.
const LEAST: (f64, f64, f64) = (1.0, 0.05, 0.15);

impl Heat {
    /// Of a machine with so many packages; none where nothing meters them, or where their temperature follows something else.
    pub(crate) fn of(observations: &[Observation], packages: usize) -> Option<Heat> {
        let warmth = |o: &Observation| {
            let start_s = o.at_s - o.seconds / 2.0;
            let watts = o.package_w? / packages as f64;
            Some(Warmth { start_s, seconds: o.seconds, watts, celsius: o.celsius? })
        };
        let seen: Vec<Warmth> = observations.iter().filter_map(warmth).collect();
        let squares =
            |tau_s: f64| solved(&seen, tau_s).map_or(f64::INFINITY, |value| off(&seen, tau_s, &value));
        let step = (TAU_S.1 / TAU_S.0).powf(1.0 / f64::from(TAU_STEPS));
        let tried = (0..=TAU_STEPS).map(|n| TAU_S.0 * step.powi(n));
        let near = tried.min_by(|a, b| squares(*a).total_cmp(&squares(*b)))?;
        let tau_s = least(near / step, near * step, &squares);
        let value = solved(&seen, tau_s)?;
        let mean = seen.iter().map(|w| w.celsius).sum::<f64>() / seen.len() as f64;
        let all: f64 = seen.iter().map(|w| (w.celsius - mean).powi(2)).sum();
        let left = off(&seen, tau_s, &value);
        let heat = Heat::with_intervals(&seen, tau_s, &value, left)?;
        let r = heat.c_per_w;
        let narrow = r.value > 0.0 && r.ends.1 - r.value < OPEN * r.value;
        (narrow && left <= (1.0 - EXPLAINED) * all && heat.tau_s.ends.0 > 0.0).then_some(heat)
    }

    /// What tau leaves open, the others have to bear: how the temperatures change with it is one more column.
    fn with_intervals(seen: &[Warmth], tau_s: f64, value: &[f64], left: f64) -> Option<Heat> {
        let by = 1e-3 * tau_s;
        let of = |tau_s| predicted(&columns(seen, tau_s), value);
        let with_tau = of(tau_s + by).into_iter().zip(of(tau_s - by)).map(|(a, b)| (a - b) / (2.0 * by));
        let mut columns = columns(seen, tau_s);
        columns.push(with_tau.collect());
        let freedom = seen.len().checked_sub(columns.len() + 1)? as f64 + 1.0;
        let covariance = Triangle::of(columns.len(), products(&columns))?.inverse();
        let n = columns.len();
        let found = |at: usize, value: f64, least: f64| {
            let reach = student(0.975, freedom) * (covariance[at * n + at] * left / freedom).sqrt();
            let reach = reach.hypot(least);
            HeatFigure { value, ends: (value - reach, value + reach) }
        };
        Some(Heat {
            ambient_c: found(0, value[0], LEAST.0),
            c_per_w: found(1, value[1], LEAST.1 * value[1].abs()),
            tau_s: found(n - 1, tau_s, LEAST.2 * tau_s),
        })
    }
}

/// How each window's temperature changes with the ambient's, with the resistance, and with what the package was off by at the
/// start of each course of windows.
fn columns(seen: &[Warmth], tau_s: f64) -> Vec<Vec<f64>> {
    let keep = |seconds: f64| (-seconds / tau_s).exp();
    // The mean over so many seconds of what falls by `keep`.
    let mean_kept = |seconds: f64| tau_s / seconds * (1.0 - keep(seconds));
    let mut out = vec![vec![1.0; seen.len()], Vec::with_capacity(seen.len())];
    let (mut smooth, mut first, mut end_s) = (0.0, 0.0, f64::NEG_INFINITY);
    for (at, w) in seen.iter().enumerate() {
        let gap = w.start_s - end_s;
        if gap > GAP_S {
            (smooth, first) = (w.watts, w.start_s);
            out.push(vec![0.0; seen.len()]);
        } else {
            // The work of a window begins as soon as the one before has ended: it settles first.
            smooth = w.watts + (smooth - w.watts) * keep(gap.max(0.0));
        }
        out[1].push(w.watts + (smooth - w.watts) * mean_kept(w.seconds));
        let course = out.len() - 1;
        out[course][at] = keep(w.start_s - first) * mean_kept(w.seconds);
        smooth = w.watts + (smooth - w.watts) * keep(w.seconds);
        end_s = w.start_s + w.seconds;
    }
    out
}

fn predicted(columns: &[Vec<f64>], value: &[f64]) -> Vec<f64> {
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows).map(|row| columns.iter().zip(value).map(|(c, v)| c[row] * v).sum()).collect()
}

/// The columns' products with each other.
fn products(columns: &[Vec<f64>]) -> Vec<f64> {
    let dot = |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    columns.iter().flat_map(|a| columns.iter().map(move |b| dot(a, b))).collect()
}

/// The best ambient, resistance and starts for a time constant.
fn solved(seen: &[Warmth], tau_s: f64) -> Option<Vec<f64>> {
    let columns = columns(seen, tau_s);
    let against = |c: &Vec<f64>| c.iter().zip(seen).map(|(c, w)| c * w.celsius).sum::<f64>();
    let right: Vec<f64> = columns.iter().map(against).collect();
    Some(Triangle::of(columns.len(), products(&columns))?.solve(&right))
}

/// The sum of the squares by which the temperatures are off.
fn off(seen: &[Warmth], tau_s: f64, value: &[f64]) -> f64 {
    let predicted = predicted(&columns(seen, tau_s), value);
    predicted.iter().zip(seen).map(|(p, w)| (p - w.celsius).powi(2)).sum()
}

/// Where a function of one valley is least, by golden sections.
fn least(mut low: f64, mut high: f64, of: &dyn Fn(f64) -> f64) -> f64 {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..NARROWINGS {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        if of(a) < of(b) { high = b } else { low = a }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;
    use wattwise_figure::Random;

    /// Windows of 5 s after 2 s each, of a package of 0.8 C/W, 14 s and 31 C, stepped by 10 ms; `noise` in degrees.
    fn windows(noise: f64, seed: u64) -> Vec<Observation> {
        let (mut random, mut celsius, mut now_s) = (Random::new(seed), 55.0, 100.0);
        let mut stray = Random::new(seed + 1);
        let mut pass = |watts: f64, seconds: f64| {
            let steps = (seconds * 100.0).round() as usize;
            let mut sum = 0.0;
            for _ in 0..steps {
                celsius += (31.0 + 0.8 * watts - celsius) * 0.01 / 14.0;
                sum += celsius;
            }
            sum / steps as f64
        };
        (0..60)
            .map(|n| {
                let watts = 2.0 + 40.0 * random.unit();
                pass(watts, 2.0);
                let celsius = pass(watts, 5.0) + noise * (stray.unit() + stray.unit() - 1.0);
                // Half an hour of who knows what, once.
                now_s += if n == 30 { 1800.0 } else { 7.0 };
                Observation {
                    window: Window { parts: Vec::new() },
                    at_s: now_s - 2.5,
                    seconds: 5.0,
                    celsius: Some(celsius),
                    taken: Vec::new(),
                    awake: 1.0,
                    asleep: Vec::new(),
                    cores_w: None,
                    package_w: Some(2.0 * watts),
                    memory_w: None,
                    machine_w: None,
                    reached: Vec::new(),
                    own_s: 0.0,
                }
            })
            .collect()
    }

    #[test]
    fn a_package_that_is_known_is_found() {
        let exact = Heat::of(&windows(0.0, 3), 2).unwrap();
        for (found, truth) in [(exact.ambient_c, 31.0), (exact.c_per_w, 0.8), (exact.tau_s, 14.0)] {
            assert!((found.value / truth - 1.0).abs() < 2e-3, "{found:?} {truth}");
        }
        // Noise of degrees is in the intervals.
        let held = (0..20).map(|seed| Heat::of(&windows(2.0, 2 * seed), 2).unwrap()).filter(|h| {
            let holds = |f: HeatFigure, truth: f64| f.ends.0 <= truth && truth <= f.ends.1;
            holds(h.c_per_w, 0.8) && holds(h.tau_s, 14.0) && holds(h.ambient_c, 31.0)
        });
        assert!(held.count() >= 14);
    }

    #[test]
    fn a_temperature_that_follows_something_else_is_refused() {
        let mut other = windows(0.0, 3);
        let celsius: Vec<Option<f64>> = other.iter().map(|o| o.celsius).collect();
        other.iter_mut().zip(celsius.iter().rev()).for_each(|(o, celsius)| o.celsius = *celsius);
        assert_eq!(Heat::of(&other, 2), None);
        assert_eq!(Heat::of(&[], 2), None);
        let unmetered: Vec<_> =
            windows(0.0, 3).into_iter().map(|o| Observation { package_w: None, ..o }).collect();
        assert_eq!(Heat::of(&unmetered, 2), None);
    }
}
