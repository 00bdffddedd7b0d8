//! From measurements to what can be said of a lock.
//!
//! Per cell and metric, one lock over another is the mean of ln(ratio) over the repeats, each ratio within one
//! repeat, with Student's interval: what lies within the interval is noise. One interval in 20 misses by chance, so
//! of hundreds some do: beside each exception stands whether it holds among all comparisons (Bonferroni's bound, which
//! keeps the chance of a single false one under 5 %). With few repeats little does.

use crate::{Place, Record};
use serde::{Deserialize, Serialize};
use wattwise_figure::mean_sd;
use wattwise_figure::verdict::{below, quantile};

/// Of the intervals.
const CONFIDENCE: f64 = 0.95;

/// What a lock may be worse by beyond the noise: 5 %.
const TOLERANCE: f64 = 0.05;

/// A lock in a place, over the repeats.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The lock with its waiting policy.
    pub lock: String,
    /// Where in the table.
    #[serde(flatten)]
    pub place: Place,
    /// Throughput: geometric mean.
    pub acquisitions_per_s: f64,
    /// Half of its interval over it; none with one repeat, and where the repeats spread so far that it would be
    /// more than all of it.
    pub noise: Option<f64>,
    /// CPUs used: mean.
    pub cpus: f64,
    /// CPU time for one acquisition, s: geometric mean.
    pub cpu_s_per_acquisition: f64,
    /// Jain's index: mean.
    pub jain: f64,
    /// Median of the medians, us.
    pub wait_p50_us: f64,
    /// Median over the repeats, us.
    pub wait_p99_us: f64,
    /// Median over the repeats, us.
    pub wait_p999_us: f64,
    /// The longest of all, us.
    pub wait_max_us: f64,
    /// Power, W: mean.
    pub watts: Option<f64>,
    /// Acquisitions a joule: geometric mean.
    pub acquisitions_per_j: Option<f64>,
}

/// Its name and its value in a record.
type Metric = (&'static str, fn(&Record) -> f64);

/// What is compared; more is better in each.
const METRICS: [Metric; 3] = [
    ("throughput", |r| r.acquisitions_per_s),
    ("CPU time for an acquisition", |r| 1.0 / r.cpu_s_per_acquisition),
    ("fairness", |r| r.jain),
];

/// What holds of one lock against the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Of which.
    pub lock: String,
    /// Places in the table.
    pub places: usize,
    /// Places where no other lock is at least as good in throughput, CPU time for an acquisition and fairness
    /// at once, and better in one of them beyond the noise.
    pub on_front: usize,
    /// Places where no other lock's throughput is higher beyond the noise.
    pub at_best: usize,
    /// Places where it is worse than glibc in none of the three by more than the noise and 5 %.
    pub no_worse_than_glibc: usize,
    /// Each exception.
    pub exceptions: Vec<String>,
    /// How many comparisons of a lock and a metric in a place there were.
    pub comparisons: usize,
    /// Those of the exceptions that are not one of so many comparisons by chance, at 95 % (Bonferroni).
    pub beyond_chance: Vec<String>,
}

/// The places, in the order of the table.
fn places(records: &[Record]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for r in records {
        if !places.contains(&r.place) {
            places.push(r.place);
        }
    }
    let key = |p: &Place| (p.threads as f64, p.cs_us.mean(), p.ncs_us.mean());
    places.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    places
}

fn locks(records: &[Record]) -> Vec<&str> {
    let mut locks: Vec<&str> = Vec::new();
    for r in records {
        if !locks.contains(&r.lock.as_str()) {
            locks.push(&r.lock);
        }
    }
    locks.sort_unstable();
    locks
}

fn of<'a>(records: &'a [Record], place: &Place, lock: &str) -> Vec<&'a Record> {
    let mut found: Vec<&Record> = records.iter().filter(|r| r.place == *place && r.lock == lock).collect();
    found.sort_by_key(|r| r.repeat);
    found
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Mean and half-width of the interval of a sample of logarithms; no interval from one value.
fn interval(logs: &[f64]) -> (f64, Option<f64>) {
    let n = logs.len() as f64;
    if logs.len() < 2 {
        return (logs.iter().sum::<f64>() / n, None);
    }
    let (mean, sd) = mean_sd(logs);
    (mean, Some(quantile(0.5 + CONFIDENCE / 2.0, n - 1.0) * sd / n.sqrt()))
}

/// Each lock in each place.
pub fn cells(records: &[Record]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for place in places(records) {
        for lock in locks(records) {
            let runs = of(records, &place, lock);
            if runs.is_empty() {
                continue;
            }
            let all = |f: fn(&Record) -> f64| runs.iter().map(|r| f(r)).collect::<Vec<f64>>();
            let mean = |f: fn(&Record) -> f64| all(f).iter().sum::<f64>() / runs.len() as f64;
            let log = |f: fn(&Record) -> f64| interval(&all(f).iter().map(|v| v.ln()).collect::<Vec<_>>());
            let (throughput, noise) = log(|r| r.acquisitions_per_s);
            let metered = runs.iter().all(|r| r.energy_j.is_some());
            cells.push(Cell {
                lock: lock.to_owned(),
                place,
                acquisitions_per_s: throughput.exp(),
                noise: noise.map(f64::exp_m1).filter(|n| *n <= 1.0),
                cpus: mean(|r| r.cpus),
                cpu_s_per_acquisition: log(|r| r.cpu_s_per_acquisition).0.exp(),
                jain: mean(|r| r.jain),
                wait_p50_us: median(all(|r| r.wait_p50_us)),
                wait_p99_us: median(all(|r| r.wait_p99_us)),
                wait_p999_us: median(all(|r| r.wait_p999_us)),
                wait_max_us: all(|r| r.wait_max_us).into_iter().fold(0.0, f64::max),
                watts: metered.then(|| mean(|r| r.energy_j.unwrap_or(f64::NAN) / r.window_s)),
                acquisitions_per_j: metered
                    .then(|| log(|r| r.acquisitions_per_j.unwrap_or(f64::NAN)).0.exp()),
            });
        }
    }
    cells
}

/// ln(b/a) of a metric in a place.
#[derive(Clone, Copy)]
struct Gain {
    log: f64,
    /// Half-width of its interval; infinite from one repeat.
    half: f64,
    /// Degrees of freedom.
    freedom: f64,
}

impl Gain {
    fn of(a: &[&Record], b: &[&Record], metric: fn(&Record) -> f64) -> Gain {
        let logs: Vec<f64> = a
            .iter()
            .filter_map(|x| b.iter().find(|y| y.repeat == x.repeat).map(|y| (metric(y) / metric(x)).ln()))
            .collect();
        let (log, half) = interval(&logs);
        Gain { log, half: half.unwrap_or(f64::INFINITY), freedom: logs.len() as f64 - 1.0 }
    }

    /// Beyond the noise, and by more than `tolerance` besides.
    fn exceeds(self, tolerance: f64) -> bool {
        self.log - self.half > (1.0 + tolerance).ln()
    }

    /// How likely so much more than `tolerance` is by chance, in either direction.
    fn chance(self, tolerance: f64) -> f64 {
        let error = self.half / quantile(0.5 + CONFIDENCE / 2.0, self.freedom);
        let t = (self.log - (1.0 + tolerance).ln()) / error;
        // No spread at all: fairness of one thread, or a test.
        if t.is_nan() { 1.0 } else { 2.0 * below(-t.abs(), self.freedom) }
    }

    /// `12.3 %`, with its sign; of what is more than three times as much, the multiple.
    fn change(self) -> String {
        let change = self.log.exp_m1();
        match change {
            _ if !change.is_finite() => "beyond measure".to_owned(),
            _ if change > 2.0 => format!("{:.1} times as much", change + 1.0),
            _ => format!("{} %", wattwise_figure::signed(change * 100.0, 1)),
        }
    }

    fn noise(self) -> String {
        let noise = self.half.exp_m1();
        if noise <= 1.0 {
            format!("noise {:.1} %", noise * 100.0)
        } else {
            "too few repeats for its noise".to_owned()
        }
    }
}

/// Bonferroni's bound: which of these have so small a chance that among so many comparisons none of them is expected.
fn beyond_chance(exceptions: Vec<(f64, String)>, comparisons: usize) -> Vec<String> {
    let most = (1.0 - CONFIDENCE) / comparisons as f64;
    exceptions.into_iter().filter(|e| e.0 <= most).map(|e| e.1).collect()
}

/// Judges `lock` against all others.
pub fn verdict(records: &[Record], lock: &str) -> Option<Verdict> {
    let others: Vec<&str> = locks(records).into_iter().filter(|l| *l != lock).collect();
    let places = places(records);
    if others.is_empty() || !records.iter().any(|r| r.lock == lock) {
        return None;
    }
    let mut verdict = Verdict {
        lock: lock.to_owned(),
        places: places.len(),
        on_front: 0,
        at_best: 0,
        no_worse_than_glibc: 0,
        exceptions: Vec::new(),
        comparisons: places.len() * others.len() * METRICS.len(),
        beyond_chance: Vec::new(),
    };
    let mut exceptions: Vec<(f64, String)> = Vec::new();
    for place in &places {
        let own = of(records, place, lock);
        let at = format!("{} threads, {}/{} us", place.threads, place.cs_us, place.ncs_us);
        let (mut front, mut best) = (true, true);
        for other in &others {
            let theirs = of(records, place, other);
            let gains = METRICS.map(|(_, metric)| Gain::of(&own, &theirs, metric));
            if gains.iter().all(|gain| gain.log >= 0.0) && gains.iter().any(|gain| gain.exceeds(0.0)) {
                front = false;
                let by: Vec<String> =
                    METRICS.iter().zip(gains).map(|(m, g)| format!("{} {}", m.0, g.change())).collect();
                let chance = gains.iter().map(|gain| gain.chance(0.0)).fold(1.0, f64::min);
                exceptions.push((chance, format!("{at}: {other} dominates ({})", by.join(", "))));
            }
            let throughput = gains[0];
            if throughput.exceeds(0.0) {
                best = false;
                let what = format!(
                    "{at}: {other} is better in throughput: {} ({})",
                    throughput.change(),
                    throughput.noise()
                );
                exceptions.push((throughput.chance(0.0), what));
            }
            if *other == "glibc" {
                let mut fine = true;
                for ((name, _), gain) in METRICS.iter().zip(gains) {
                    // Infinite noise of one repeat excuses nothing: then there is nothing to say.
                    if gain.exceeds(TOLERANCE) {
                        fine = false;
                        let what =
                            format!("{at}: glibc is better in {name}: {} ({})", gain.change(), gain.noise());
                        exceptions.push((gain.chance(TOLERANCE), what));
                    }
                }
                verdict.no_worse_than_glibc += usize::from(fine);
            }
        }
        verdict.on_front += usize::from(front);
        verdict.at_best += usize::from(best);
    }
    verdict.exceptions = exceptions.iter().map(|e| e.1.clone()).collect();
    verdict.beyond_chance = beyond_chance(exceptions, verdict.comparisons);
    Some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;

    fn records(lock: &str, runs: &[(f64, f64, f64)]) -> Vec<Record> {
        let place = Place { threads: 2, cs_us: Section::Fixed(0.0), ncs_us: Section::Fixed(0.0) };
        let record = |(repeat, &(per_s, cpus, jain)): (usize, &(f64, f64, f64))| Record {
            repeat,
            lock: lock.to_owned(),
            place,
            window_s: 1.0,
            acquisitions_per_s: per_s,
            cpus,
            cpu_s_per_acquisition: cpus / per_s,
            jain,
            wait_p50_us: 1.0,
            wait_p99_us: 2.0,
            wait_p999_us: 3.0,
            wait_max_us: 4.0,
            energy_j: Some(10.0),
            acquisitions_per_j: Some(per_s / 10.0),
        };
        runs.iter().enumerate().map(record).collect()
    }

    #[test]
    fn better_in_everything_dominates_and_noise_does_not() {
        let own = records("adaptive", &[(100.0, 2.0, 0.9), (101.0, 2.0, 0.9), (99.0, 2.0, 0.9)]);
        let clear = records("glibc", &[(120.0, 2.0, 0.95), (121.0, 2.0, 0.95), (119.0, 2.0, 0.95)]);
        let all = [own.clone(), clear].concat();
        let v = verdict(&all, "adaptive").expect("two locks");
        assert_eq!((v.places, v.on_front, v.at_best, v.no_worse_than_glibc), (1, 0, 0, 0), "{v:?}");
        let v = verdict(&all, "glibc").expect("two locks");
        assert_eq!((v.on_front, v.at_best), (1, 1), "{v:?}");

        let noisy = records("glibc", &[(60.0, 2.0, 0.9), (200.0, 2.0, 0.9), (110.0, 2.0, 0.9)]);
        let v = verdict(&[own.clone(), noisy].concat(), "adaptive").expect("two locks");
        assert_eq!((v.on_front, v.at_best, v.no_worse_than_glibc), (1, 1, 1), "{v:?}");

        // Better in two and worse in the third is another place on the front.
        let other = records("glibc", &[(120.0, 2.0, 0.5), (121.0, 2.0, 0.5), (119.0, 2.0, 0.5)]);
        let v = verdict(&[own, other].concat(), "adaptive").expect("two locks");
        assert_eq!((v.on_front, v.at_best, v.no_worse_than_glibc), (1, 0, 0), "{v:?}");
        assert!(v.exceptions.iter().any(|e| e.contains("throughput")), "{v:?}");
    }

    #[test]
    fn noise_that_says_nothing_is_none() {
        let wild = records("glibc", &[(1.0, 2.0, 0.9), (1e9, 2.0, 0.9)]);
        let still = records("std", &[(100.0, 2.0, 0.9), (101.0, 2.0, 0.9)]);
        let cells = cells(&[wild.clone(), still.clone()].concat());
        assert!(cells[0].noise.is_none() && cells[1].noise.is_some(), "{cells:?}");
        let fast = records("glibc", &[(1e12, 2.0, 0.9), (1e12, 2.0, 0.9), (1e12, 2.0, 0.9)]);
        let own = records("std", &[(1.0, 2.0, 0.9), (1.0, 2.0, 0.9), (1.0, 2.0, 0.9)]);
        for all in [[wild, still].concat(), [fast, own].concat()] {
            let said = verdict(&all, "std").expect("two locks").exceptions.join("\n");
            assert!(!["inf", "NaN", "99999999999 %"].iter().any(|w| said.contains(w)), "{said}");
        }
    }

    #[test]
    fn chance_is_told_from_what_holds_among_many_comparisons() {
        let chances = |p: &[f64]| p.iter().map(|p| (*p, p.to_string())).collect::<Vec<_>>();
        assert_eq!(beyond_chance(chances(&[0.001, 0.0006, 0.0004]), 100), ["0.0004"]);
        assert!(beyond_chance(chances(&[0.01, 0.02]), 100).is_empty());
        assert_eq!(beyond_chance(chances(&[0.01, 0.02]), 4).len(), 1);

        // Three repeats 20 % apart, with a spread of 1 %: t of some 30 with two degrees of freedom.
        let own = records("adaptive", &[(100.0, 2.0, 0.9), (101.0, 2.0, 0.9), (99.0, 2.0, 0.9)]);
        let other = records("glibc", &[(120.0, 2.0, 0.9), (120.0, 2.0, 0.9), (120.0, 2.0, 0.9)]);
        let v = verdict(&[own, other].concat(), "adaptive").expect("two locks");
        assert_eq!((v.comparisons, v.exceptions.len()), (3, 4), "{v:?}");
        let gain = Gain { log: 0.2, half: 0.1, freedom: 4.0 };
        assert!((gain.chance(0.0) - 0.00515).abs() < 1e-4, "{}", gain.chance(0.0));
        assert_eq!(gain.exceeds(0.0), gain.chance(0.0) < 0.05);
        let at_the_edge = Gain { log: 0.1, ..gain };
        assert!((at_the_edge.chance(0.0) - 0.05).abs() < 1e-9);
        assert_eq!(Gain { log: 0.0, half: 0.0, freedom: 4.0 }.chance(0.0), 1.0);
    }

    #[test]
    fn cells_have_the_geometric_mean_and_its_noise() {
        let runs = [(190.0, 1.0, 1.0), (200.0, 1.0, 0.75), (40_000.0 / 190.0, 1.0, 0.5)];
        let cells = cells(&records("std", &runs));
        assert_eq!(cells.len(), 1);
        assert!((cells[0].acquisitions_per_s - 200.0).abs() < 1e-9);
        assert!((cells[0].jain - 0.75).abs() < 1e-9);
        assert!((cells[0].noise.expect("three repeats") - 0.136).abs() < 1e-3, "{cells:?}");
        assert_eq!(super::cells(&records("std", &[(100.0, 1.0, 1.0)]))[0].noise, None);
    }
}
