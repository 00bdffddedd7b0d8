//! Speed, power and the level of least energy of a cluster of cores, from what is known at its two ends.
//!
//! **Data**: freqbench (`machines/data/freqbench.csv`): CoreMark on one core of each cluster of a SoC at every frequency;
//! the rate, and the power above the idle machine's.
//!
//! **Time**: a piece of work takes `a / f + m`: cycles and a part that does not scale with the clock. The two ends give both;
//! where they give less than nothing for one of them, it is 0, and the upper end gives the other (the clock of a lowest level is often not
//! what it is said to be).
//!
//! **Power**: between the ends its logarithm goes straight with frequency, plus a bow that is fitted:
//! `x (1 - x) (b0 + b1 r + (x - 1/2) (b2 + b3 r))` with `x` the place between the ends and `r` the logarithm of their ratio.
//!
//! **Least energy**: energy is power over rate. Where its least lies hangs on how much more energy the upper end takes than the
//! lower, `l`, and on how big the core is, `p`, the upper end's power (both logarithms). The place, as a share of the
//! levels, is fitted to `l, l^2, p, l p`. It is a fit of its own: near the least the curve is flat, and the bow's
//! small errors move it by several levels. The lowest and the highest level are never said where there are three or
//! more: one inside is as good a guess, and better within one level.
//!
//! Every SoC counts the same, whatever the number of its clusters and runs. Both fits are ridge regressions
//! ([`wattwise_figure::ridge`]), their penalties chosen by leaving one SoC out in turn; the width of the power's interval too.

use super::Watts;
use super::table::{Expected, MeasurementTable, TableError};
use std::collections::BTreeMap;
use wattwise_figure::ridge::{self, ColumnScale, Points};

/// Columns that a table must have.
pub const COLUMNS: &[&str] =
    &["soc", "run", "first_cpu_of_cluster", "khz", "coremarks_per_s", "power_mw", "idle_baseline_mw"];
/// What the bow's penalty is chosen from.
const BOW_PENALTIES: [f64; 4] = [1e-5, 1e-4, 1e-3, 1e-2];
/// What the least-energy fit's penalty is chosen from: columns of unit variance.
const LEAST_PENALTIES: [f64; 4] = [3e-3, 1e-2, 3e-2, 1e-1];
/// Share of residuals of SoCs left out that an interval holds.
const HELD: f64 = 0.9;
/// A measured power below this share of the upper end's is noise about 0: it is raised to it, so that its logarithm is no outlier.
const LEAST_POWER: f64 = 1e-3;
/// Levels that a cluster may have: ten times what any has.
const MAX_LEVELS: usize = 1024;
/// SoCs below which nothing is left out in turn.
const LEAST_SOCS: usize = 3;

/// A frequency and what was measured there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterLevel {
    /// Its row in the table.
    pub row: u64,
    /// The frequency that was set, in kHz.
    pub khz: f64,
    /// CoreMarks per second of one core.
    pub rate: f64,
    /// Power above the idle machine's, in watts; nothing where it is empty or 0, negative where noise is greater.
    pub watts: Option<f64>,
}

/// A cluster in one run of the benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The SoC.
    pub soc: String,
    /// The run's name.
    pub run: String,
    /// A CPU of the cluster.
    pub cpu: u32,
    /// Rising by frequency, at least one.
    pub levels: Vec<ClusterLevel>,
    /// What the idle machine drew, in watts.
    pub idle_w: Option<f64>,
}

/// What is known of a cluster before its levels are measured: its frequencies and its two ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// All frequencies, rising, in kHz.
    pub khz: Vec<f64>,
    /// CoreMarks per second at the lowest and the highest.
    pub rate: [f64; 2],
    /// Watts at the lowest and the highest; nothing unless both are above 0.
    pub watts: Option<[f64; 2]>,
}

impl Cluster {
    /// What a prediction may see of it.
    pub fn ends(&self) -> Ends {
        let (low, high) = (self.levels[0], self.levels[self.levels.len() - 1]);
        let watts = low.watts.zip(high.watts).filter(|(l, h)| *l > 0.0 && *h > 0.0);
        Ends {
            khz: self.levels.iter().map(|l| l.khz).collect(),
            rate: [low.rate, high.rate],
            watts: watts.map(|(l, h)| [l, h]),
        }
    }

    /// The level at which a piece of work takes least energy, as measured. `None` where no power was.
    pub fn least_energy(&self) -> Option<usize> {
        let energy = |l: &ClusterLevel| l.watts.filter(|w| *w > 0.0).map(|w| w / l.rate);
        let known = self.levels.iter().enumerate().filter_map(|(at, l)| Some((at, energy(l)?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
    }
}

/// Reads a table of freqbench results; `file` names it in errors. Clusters come in the order of their names.
///
/// # Errors
/// One line: a column is missing, a cell is no number that makes sense, a level is there twice.
pub fn read(file: &str, bytes: &[u8]) -> Result<Vec<Cluster>, TableError> {
    let table = MeasurementTable::read(file, bytes, COLUMNS)?;
    let mut clusters: BTreeMap<(String, String, u32), Cluster> = BTreeMap::new();
    for row in &table.rows {
        let number =
            |column: &str, range, unit: &'static str| table.number(row, column, &Expected { range, unit });
        let needed = |column: &str, high: f64, unit: &'static str| {
            let value = number(column, f64::MIN_POSITIVE..=high, unit)?;
            value.ok_or_else(|| table.wrong(row, format!("{column} is empty: expected a figure in {unit}")))
        };
        let cpu = number("first_cpu_of_cluster", 0.0..=4095.0, "(a CPU's number)")?
            .ok_or_else(|| table.wrong(row, "first_cpu_of_cluster is empty: expected a CPU's number"))?;
        let (khz, rate) = (needed("khz", 1e8, "kHz")?, needed("coremarks_per_s", 1e9, "CoreMarks/s")?);
        let idle_mw = number("idle_baseline_mw", 0.0..=1e7, "mW")?;
        // A difference of two powers: noise may take it below 0, but never below what the idle machine drew.
        let milliwatts = number("power_mw", -idle_mw.unwrap_or(0.0)..=1e7, "mW (above the idle machine's)")?;
        let watts = milliwatts.filter(|mw| *mw != 0.0).map(|mw| mw / 1e3);
        let key = (table.text(row, "soc").to_owned(), table.text(row, "run").to_owned(), cpu as u32);
        let cluster = clusters.entry(key.clone()).or_insert_with(|| Cluster {
            soc: key.0,
            run: key.1,
            cpu: key.2,
            levels: Vec::new(),
            idle_w: idle_mw.map(|mw| mw / 1e3),
        });
        let at = cluster.levels.partition_point(|l| l.khz < khz);
        if cluster.levels.get(at).is_some_and(|l| l.khz == khz) {
            return Err(table.wrong(
                row,
                format!(
                    "khz {khz}: the cluster has it in row {} already: expected each level once",
                    cluster.levels[at].row
                ),
            ));
        }
        if cluster.levels.len() == MAX_LEVELS {
            return Err(table.wrong(row, format!("the cluster's levels: expected at most {MAX_LEVELS}")));
        }
        cluster.levels.insert(at, ClusterLevel { row: row.number, khz, rate, watts });
    }
    Ok(clusters.into_values().collect())
}

/// CoreMarks per second at all frequencies, by the law of time.
pub fn rates(ends: &Ends) -> Vec<f64> {
    let last = ends.khz.len() - 1;
    let (low, high) = (ends.khz[0], ends.khz[last]);
    let [slow, fast] = [1.0 / ends.rate[0], 1.0 / ends.rate[1]];
    let cycles = if last == 0 { high * fast } else { (slow - fast) / (1.0 / low - 1.0 / high) };
    // Neither part can be below nothing.
    let cycles = cycles.clamp(0.0, high * fast);
    let memory = fast - cycles / high;
    ends.khz.iter().map(|f| 1.0 / (cycles / f + memory)).collect()
}

/// Columns of the bow; it has no constant, and the first bears no penalty.
const BOW: usize = 4;
/// Columns of the least-energy fit, with the constant.
const LEAST: usize = 5;

/// The place between the ends, and the bow's columns there.
fn bow(ends: &Ends, khz: f64) -> (f64, [f64; BOW]) {
    let (low, high) = (ends.khz[0], ends.khz[ends.khz.len() - 1]);
    let x = if high > low { (khz - low) / (high - low) } else { 0.0 };
    let (r, b, s) = ((high / low).ln() - 1.5, x * (1.0 - x), x - 0.5);
    (x, [b, b * r, b * s, b * s * r])
}

/// The logarithm of power on the straight line between the ends.
fn chord(watts: [f64; 2], x: f64) -> f64 {
    watts[0].ln() * (1.0 - x) + watts[1].ln() * x
}

/// How the error of a power grows from the ends, where it is known, inwards.
fn inward(x: f64) -> f64 {
    (x * (1.0 - x)).sqrt()
}

/// What the least-energy fit sees; the constant left out. `None` without power or with one level.
fn least_columns(ends: &Ends) -> Option<[f64; LEAST - 1]> {
    let [low, high] = ends.watts.filter(|_| ends.khz.len() > 1)?;
    let l = (high / ends.rate[1]).ln() - (low / ends.rate[0]).ln();
    let p = high.ln();
    Some([l, l * l, p, l * p])
}

/// A fit: from a cluster's ends to what is between.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimator {
    /// SoCs that it was fitted to.
    pub socs: usize,
    /// The penalties that were chosen: of the bow, of the place of least energy.
    pub penalties: [f64; 2],
    bow: Vec<f64>,
    /// Half of the 90 % interval's width where [`inward`] is 1, in logarithms of watts.
    half_width: f64,
    scales: Vec<ColumnScale>,
    least: Vec<f64>,
}

/// What is predicted of a cluster, level by level.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// CoreMarks per second.
    pub rate: Vec<f64>,
    /// Power above the idle machine's; nothing where the ends do not have it.
    pub watts: Option<Vec<Watts>>,
    /// The level of least energy; nothing where the ends have no power.
    pub least_energy: Option<usize>,
}

/// Rows of a fit with the SoC that each is of, by number.
#[derive(Default)]
struct Rows {
    x: Vec<f64>,
    y: Vec<f64>,
    weight: Vec<f64>,
    soc: Vec<usize>,
    /// Of the bow: [`inward`] of each.
    inward: Vec<f64>,
}

impl Rows {
    fn points<'a>(&'a self, columns: usize, weight: &'a [f64]) -> Points<'a> {
        Points { columns, x: &self.x, y: &self.y, weight }
    }

    /// Absolute residuals of each SoC when it is left out, by row.
    fn left_out(
        &self,
        columns: usize,
        socs: usize,
        fit: impl Fn(Points<'_>) -> Option<Vec<f64>>,
    ) -> Vec<f64> {
        let mut off = vec![f64::NAN; self.y.len()];
        for left_out in 0..socs {
            let keep = |(w, s): (&f64, &usize)| if *s == left_out { 0.0 } else { *w };
            let weight: Vec<f64> = self.weight.iter().zip(&self.soc).map(keep).collect();
            let Some(line) = fit(self.points(columns, &weight)) else { continue };
            for (at, x) in
                self.x.chunks_exact(columns).enumerate().filter(|(at, _)| self.soc[*at] == left_out)
            {
                off[at] = (self.y[at] - ridge::dot(x, &line)).abs();
            }
        }
        off
    }

    /// The penalty with the least mean of `cost` over SoCs left out.
    fn penalty(
        &self,
        columns: usize,
        socs: usize,
        among: [f64; 4],
        robust: bool,
        cost: fn(f64) -> f64,
    ) -> f64 {
        let fit =
            |p: Points<'_>, penalty| if robust { ridge::robust(p, penalty) } else { ridge::fit(p, penalty) };
        let mean = |penalty: f64| {
            let off = self.left_out(columns, socs, |p| fit(p, penalty));
            off.iter()
                .zip(&self.weight)
                .filter(|(o, _)| o.is_finite())
                .map(|(o, w)| cost(*o) * w)
                .sum::<f64>()
        };
        among
            .into_iter()
            .map(|p| (mean(p), p))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(among[0], |best| best.1)
    }
}

impl Estimator {
    /// Fits to measured clusters. `None` with fewer than three SoCs with power.
    pub fn of(clusters: &[&Cluster]) -> Option<Estimator> {
        let with_power: Vec<(&Cluster, Ends, [f64; 2])> = clusters
            .iter()
            .filter(|c| c.levels.len() > 2)
            .filter_map(|c| c.ends().watts.map(|w| (*c, c.ends(), w)))
            .collect();
        let mut members: BTreeMap<&str, f64> = BTreeMap::new();
        with_power.iter().for_each(|(c, ..)| *members.entry(&c.soc).or_default() += 1.0);
        let socs = members.len();
        if socs < LEAST_SOCS {
            return None;
        }
        let number = |c: &Cluster| members.keys().position(|s| *s == c.soc).unwrap_or(0);
        let mut bows = Rows::default();
        let mut places: Vec<[f64; LEAST - 1]> = Vec::new();
        let mut least = Rows::default();
        for (c, ends, watts) in &with_power {
            let share = 1.0 / members[c.soc.as_str()];
            let inner = &c.levels[1..c.levels.len() - 1];
            for level in inner {
                let Some(w) = level.watts else { continue };
                let (x, columns) = bow(ends, level.khz);
                bows.x.extend(columns);
                bows.y.push(w.max(LEAST_POWER * watts[1]).ln() - chord(*watts, x));
                bows.weight.push(share / inner.len() as f64);
                bows.soc.push(number(c));
                bows.inward.push(inward(x));
            }
            if let (Some(columns), Some(at)) = (least_columns(ends), c.least_energy()) {
                places.push(columns);
                least.y.push(at as f64 / (c.levels.len() - 1) as f64);
                least.weight.push(share);
                least.soc.push(number(c));
            }
        }
        let column = |i: usize| places.iter().map(|p| p[i]).collect::<Vec<f64>>();
        let scales: Vec<ColumnScale> =
            (0..LEAST - 1).map(|i| ColumnScale::of(&column(i), &least.weight)).collect();
        least.x = places.iter().flat_map(|p| scaled(p, &scales)).collect();

        let bow_penalty = bows.penalty(BOW, socs, BOW_PENALTIES, true, |off| off);
        let off = bows.left_out(BOW, socs, |p| ridge::robust(p, bow_penalty));
        let relative = off.iter().zip(&bows.inward).map(|(o, i)| o / i).zip(bows.weight.iter().copied());
        let half_width = ridge::quantile(relative, HELD)?;
        let least_penalty = least.penalty(LEAST, socs, LEAST_PENALTIES, false, |off| off * off);
        Some(Estimator {
            socs,
            penalties: [bow_penalty, least_penalty],
            bow: ridge::robust(bows.points(BOW, &bows.weight), bow_penalty)?,
            half_width,
            scales,
            least: ridge::fit(least.points(LEAST, &least.weight), least_penalty)?,
        })
    }

    /// Fits to all of the bundled data but one SoC; to all of it where it has none of that name.
    pub fn without(clusters: &[Cluster], soc: &str) -> Option<Estimator> {
        Estimator::of(&clusters.iter().filter(|c| c.soc != soc).collect::<Vec<_>>())
    }

    /// What is between the ends.
    pub fn predict(&self, ends: &Ends) -> Predicted {
        let watts = ends.watts.map(|known| {
            let at = |khz: &f64| {
                let (x, columns) = bow(ends, *khz);
                Watts::around(chord(known, x) + ridge::dot(&columns, &self.bow), self.half_width * inward(x))
            };
            ends.khz.iter().map(at).collect()
        });
        Predicted { rate: rates(ends), watts, least_energy: self.least_energy(ends) }
    }

    fn least_energy(&self, ends: &Ends) -> Option<usize> {
        let last = ends.khz.len() - 1;
        if last == 0 {
            return ends.watts.map(|_| 0);
        }
        let columns = least_columns(ends)?;
        let row: Vec<f64> = scaled(&columns, &self.scales).collect();
        let place = (ridge::dot(&row, &self.least) * last as f64).round();
        if last == 1 {
            // No level inside: the end that takes less.
            return Some(usize::from(columns[0] < 0.0));
        }
        Some((place.max(1.0) as usize).min(last - 1))
    }
}

/// The constant, then the scaled columns.
fn scaled<'a>(columns: &'a [f64], scales: &'a [ColumnScale]) -> impl Iterator<Item = f64> + 'a {
    std::iter::once(1.0).chain(columns.iter().zip(scales).map(|(v, s)| s.apply(*v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> Vec<Cluster> {
        read("freqbench.csv", super::super::data::FREQBENCH.as_bytes()).expect("sound")
    }

    fn ends(khz: &[f64], rate: [f64; 2], watts: Option<[f64; 2]>) -> Ends {
        Ends { khz: khz.to_vec(), rate, watts }
    }

    #[test]
    fn time_has_a_part_by_the_clock_and_one_beside_it() {
        // 1 s of cycles at 1 GHz and 1 s of memory.
        let told = rates(&ends(&[0.5e6, 1e6, 2e6], [1.0 / 3.0, 1.0 / 1.5], None));
        assert!((told[1] - 0.5).abs() < 1e-12, "{told:?}");
        // Less than nothing for memory: the upper end counts.
        let told = rates(&ends(&[0.5e6, 1e6, 2e6], [0.1, 2.0], None));
        assert!((told[1] - 1.0).abs() < 1e-12 && (told[2] - 2.0).abs() < 1e-12, "{told:?}");
        // A higher clock that is slower: all of it is memory.
        assert!(rates(&ends(&[1e6, 2e6], [2.0, 1.0], None)).iter().all(|r| (r - 1.0).abs() < 1e-12));
        assert_eq!(rates(&ends(&[1e6], [5.0, 5.0], None)).len(), 1);
    }

    #[test]
    fn what_is_predicted_keeps_the_ends_and_has_intervals_between() {
        let clusters = given();
        let fit = Estimator::of(&clusters.iter().collect::<Vec<_>>()).expect("enough");
        let c = clusters.iter().find(|c| c.soc == "gs101" && c.cpu == 6).expect("given");
        let told = fit.predict(&c.ends());
        let watts = told.watts.expect("power");
        let last = watts.len() - 1;
        for (at, level) in [(0, c.levels[0]), (last, c.levels[last])] {
            assert!((watts[at].median / level.watts.unwrap() - 1.0).abs() < 1e-9);
            assert!((told.rate[at] / level.rate - 1.0).abs() < 1e-2);
            assert_eq!(watts[at].low, watts[at].high);
        }
        assert!(watts[1..last].iter().all(|w| w.low < w.median && w.median < w.high));
        assert_eq!((c.least_energy(), told.least_energy), (Some(0), Some(1)));
    }

    #[test]
    fn clusters_of_few_levels_and_without_power_are_predicted_as_far_as_can_be() {
        let fit = Estimator::of(&given().iter().collect::<Vec<_>>()).expect("enough");
        assert_eq!(fit.predict(&ends(&[1e6], [1.0, 1.0], Some([1.0, 1.0]))).least_energy, Some(0));
        assert_eq!(fit.predict(&ends(&[1e6, 2e6], [1.0, 2.0], Some([1.0, 1.5]))).least_energy, Some(1));
        assert_eq!(fit.predict(&ends(&[1e6, 2e6], [1.0, 2.0], Some([1.0, 3.0]))).least_energy, Some(0));
        let dark = fit.predict(&ends(&[1e6, 2e6, 3e6], [1.0, 3.0], None));
        assert_eq!((dark.watts, dark.least_energy), (None, None));
        // Far from anything seen it still is a level.
        let wild = fit.predict(&ends(&[1.0, 2.0, 1e8], [1e-300, 1e9], Some([1e-300, 1e4])));
        assert!(wild.least_energy.is_some_and(|l| l < 3), "{wild:?}");
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        let head = COLUMNS.join(",");
        let with =
            |rows: &str| read("f.csv", format!("{head}\n{rows}").as_bytes()).map_err(|e| e.to_string());
        let noise = with("a,main,0,1000,5,-3,10\n").unwrap();
        assert_eq!((noise[0].levels[0].watts, noise[0].least_energy()), (Some(-0.003), None));
        for (rows, part) in [
            ("a,main,0,1000,5,-30,10\n", "row 2: power_mw '-30': expected -10 to"),
            ("a,main,0,0,5,3,10\n", "row 2: khz '0'"),
            ("a,main,0,1000,,3,10\n", "row 2: coremarks_per_s is empty"),
            (
                "a,main,0,1000,5,3,\na,main,0,1000,5,3,\n",
                "row 3: khz 1000: the cluster has it in row 2 already",
            ),
            ("a,main,-1,1000,5,3,\n", "first_cpu_of_cluster '-1'"),
        ] {
            let e = with(rows).unwrap_err();
            assert!(e.starts_with("f.csv: ") && e.contains(part), "{e}");
        }
    }
}
