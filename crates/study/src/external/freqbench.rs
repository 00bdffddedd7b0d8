//! freqbench: what is between a cluster's two ends, against CoreMark at every frequency.

use super::{Group, Held, LeftOut, PowerPair, ScoreError, groups};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use wattwise_figure::ridge::quantile;
use wattwise_model::estimate::cluster::{Cluster, Estimator, read};
use wattwise_model::estimate::data;

/// The cluster estimator against a table. The errors are those of watts between the ends.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FreqbenchScore {
    /// The table.
    pub file: String,
    /// Rows whose watts were predicted: those between the ends of their clusters.
    pub rows: usize,
    /// Rows of which they were not.
    pub left_out: Vec<LeftOut>,
    /// Over all of them.
    #[serde(flatten)]
    pub held: Held,
    /// How a row is predicted.
    pub method: &'static str,
    /// Rates between the ends.
    pub time_law: TimeLaw,
    /// The level at which work takes least energy.
    pub lowest_energy: LowestEnergy,
    /// Watts by SoC.
    pub socs: Vec<Group>,
}

/// How well the law of time holds: a piece of work takes cycles over frequency and a part that is always the same.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeLaw {
    /// Clusters with a level between the ends.
    pub clusters: usize,
    /// The greatest error of time in a cluster: half of the clusters have no more.
    pub median_cluster_error: f64,
    /// Nine of ten clusters have no more.
    pub p90_cluster_error: f64,
    /// Over all rows between the ends.
    pub median_row_error: f64,
}

/// How well the level of least energy is told.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LowestEnergy {
    /// Clusters with power at both ends.
    pub clusters: usize,
    /// Share of them in which the level told is within one of the measured one.
    pub within_one_share: f64,
    /// Share in which it is that very level.
    pub exact_share: f64,
    /// Energy at the level told over that at the measured one, in half of the clusters no more.
    pub median_energy_ratio: f64,
    /// The constant level that would be within one most often; 0 is the lowest.
    pub best_constant_level: usize,
    /// How often it is.
    pub best_constant_share: f64,
    /// Clusters without power at their ends: not counted above.
    pub clusters_without_power: usize,
}

const METHOD: &str = "from the cluster's frequencies and its rate and watts at the lowest and the highest alone, by a fit to the \
                      library's results without the row's SoC";

/// One cluster's predictions.
struct ClusterTold<'t> {
    cluster: &'t Cluster,
    /// Errors of time between the ends.
    time: Vec<f64>,
    watts: Vec<PowerPair>,
    /// Level told and level measured.
    least: Option<(usize, usize)>,
    /// Rows between the ends without a power to hold against.
    dark: Vec<u64>,
}

fn tell<'t>(cluster: &'t Cluster, fit: &Estimator) -> ClusterTold<'t> {
    let told = fit.predict(&cluster.ends());
    let mut out = ClusterTold { cluster, time: Vec::new(), watts: Vec::new(), least: None, dark: Vec::new() };
    for (at, level) in cluster.levels.iter().enumerate().skip(1) {
        if at + 1 == cluster.levels.len() {
            break;
        }
        out.time.push((level.rate / told.rate[at] - 1.0).abs());
        match (&told.watts, level.watts.filter(|w| *w > 0.0)) {
            (Some(watts), Some(measured)) => out.watts.push(PowerPair { predicted: watts[at], measured }),
            _ => out.dark.push(level.row),
        }
    }
    out.least = told.least_energy.zip(cluster.least_energy());
    out
}

/// Holds the estimator against a table; `file` names it.
///
/// # Errors
/// The table cannot be read, or no row of it can be predicted.
pub fn score(file: &str, bytes: &[u8]) -> Result<FreqbenchScore, ScoreError> {
    let clusters = read(file, bytes)?;
    let library = read("the library's own", data::FREQBENCH.as_bytes())?;
    let socs: BTreeSet<&str> = clusters.iter().map(|c| c.soc.as_str()).collect();
    let known = |soc: &str| library.iter().any(|c| c.soc == soc);
    let mut needed: BTreeSet<&str> = socs.iter().filter(|s| known(s)).copied().collect();
    if needed.len() < socs.len() {
        needed.insert("");
    }
    let without =
        |soc: &str| Estimator::without(&library, soc).ok_or_else(|| ScoreError::Fit(soc.to_owned()));
    let fits: BTreeMap<&str, Estimator> =
        wattwise_threads::map::<_, _, _, Result<_, ScoreError>>(needed, |soc| Ok((soc, without(soc)?)))?;
    let fit = |soc: &str| fits.get(soc).or_else(|| fits.get(""));
    let told: Vec<ClusterTold<'_>> = clusters.iter().filter_map(|c| Some(tell(c, fit(&c.soc)?))).collect();
    let held = Held::of(told.iter().flat_map(|t| &t.watts)).ok_or_else(|| {
        super::TableError::of_file(file, "no cluster has power at both ends and between: expected some")
    })?;
    let rows_of = |t: &dyn Fn(&ClusterTold<'_>) -> Vec<u64>| told.iter().flat_map(t).collect::<Vec<u64>>();
    let ends = rows_of(&|t| {
        let levels = &t.cluster.levels;
        let last = if levels.len() > 1 { levels.last() } else { None };
        levels.first().into_iter().chain(last).map(|l| l.row).collect()
    });
    let dark = rows_of(&|t| t.dark.clone());
    let left_out = [
        LeftOut::of("it is an end, from which the others are predicted", &ends),
        LeftOut::of("no power was measured there or at an end", &dark),
    ];
    let socs = groups(told.iter().flat_map(|t| t.watts.iter().map(|pair| (t.cluster.soc.as_str(), pair))));
    Ok(FreqbenchScore {
        file: file.to_owned(),
        rows: held.predictions,
        left_out: left_out.into_iter().flatten().collect(),
        held,
        method: METHOD,
        time_law: time_law(&told),
        lowest_energy: lowest_energy(&told),
        socs,
    })
}

fn time_law(told: &[ClusterTold<'_>]) -> TimeLaw {
    let greatest = |t: &ClusterTold<'_>| t.time.iter().copied().max_by(f64::total_cmp);
    let clusters: Vec<(f64, f64)> = told.iter().filter_map(greatest).map(|e| (e, 1.0)).collect();
    let rows = told.iter().flat_map(|t| &t.time).map(|e| (*e, 1.0));
    let at = |p: f64| quantile(clusters.iter().copied(), p).unwrap_or(0.0);
    TimeLaw {
        clusters: clusters.len(),
        median_cluster_error: at(0.5),
        p90_cluster_error: at(0.9),
        median_row_error: quantile(rows, 0.5).unwrap_or(0.0),
    }
}

fn lowest_energy(told: &[ClusterTold<'_>]) -> LowestEnergy {
    let least: Vec<(usize, usize, f64)> = told
        .iter()
        .filter_map(|t| {
            let (told, measured) = t.least?;
            let energy = |at: usize| {
                let l = &t.cluster.levels[at];
                l.watts.filter(|w| *w > 0.0).map_or(f64::NAN, |w| w / l.rate)
            };
            Some((told, measured, energy(told) / energy(measured)))
        })
        .collect();
    let share = |is: &dyn Fn(usize, usize) -> bool| {
        least.iter().filter(|(told, measured, _)| is(*told, *measured)).count() as f64
            / least.len().max(1) as f64
    };
    let levels = told.iter().map(|t| t.cluster.levels.len()).max().unwrap_or(1);
    let constants = (0..levels).map(|level| (share(&|_, measured| measured.abs_diff(level) <= 1), level));
    // Of equals the lowest.
    let (best_constant_share, best_constant_level) =
        constants.rev().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0));
    LowestEnergy {
        clusters: least.len(),
        within_one_share: share(&|told, measured| told.abs_diff(measured) <= 1),
        exact_share: share(&|told, measured| told == measured),
        median_energy_ratio: quantile(least.iter().map(|l| (l.2, 1.0)), 0.5).unwrap_or(1.0),
        best_constant_level,
        best_constant_share,
        clusters_without_power: told.len() - least.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socs_left_out_are_predicted_as_told() {
        let score = score("given", data::FREQBENCH.as_bytes()).expect("sound");
        println!("{score:#?}");
        let left_out: usize = score.left_out.iter().map(|l| l.rows).sum();
        assert_eq!(score.rows + left_out, 1048);
        assert!(score.time_law.median_cluster_error < 0.01, "{:?}", score.time_law);
        assert!(score.lowest_energy.within_one_share >= 0.78, "{:?}", score.lowest_energy);
        assert!(score.lowest_energy.best_constant_share < 0.6, "{:?}", score.lowest_energy);
        assert!((0.85..=0.95).contains(&score.held.coverage_90), "{:?}", score.held);
    }

    /// Whatever stands between a cluster's ends, the same is told of it.
    #[test]
    fn a_cluster_is_predicted_from_its_ends_alone() {
        let head = wattwise_model::estimate::cluster::COLUMNS.join(",");
        let with = |inner: &str| {
            let rows = format!("{head}\nnew,main,0,500000,2000,50,\n{inner}\nnew,main,0,2000000,8000,900,\n");
            score("t.csv", rows.as_bytes()).expect("sound")
        };
        let (a, b) = (with("new,main,0,1000000,4000,200,"), with("new,main,0,1000000,4000,400,"));
        let told =
            |s: &FreqbenchScore, measured: f64, sign: f64| measured * (1.0 + sign * s.held.median_abs_error);
        let all: Vec<f64> = [-1.0, 1.0].map(|sign| told(&a, 200.0, sign)).to_vec();
        let same =
            [-1.0, 1.0].iter().any(|sign| all.iter().any(|t| (t - told(&b, 400.0, *sign)).abs() < 1e-6));
        assert!(same, "{a:?} {b:?}");
        assert_eq!((a.rows, a.lowest_energy.clusters), (1, 1));
    }
}
