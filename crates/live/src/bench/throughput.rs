//! What a speed is worth (003): a command with a figure, at each speed, several times in random order; and the
//! knee, the lowest speed whose figure is within noise of the best.

use serde::{Deserialize, Serialize};
use wattwise_figure::Spread;
use wattwise_figure::verdict::quantile;

/// Version of the result.
pub const SCHEMA: &str = "wattwise.bench-throughput/1";

/// One run at one speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// What the command printed.
    pub figure: f64,
    /// Busy share of all CPUs, percent (003's %CPU).
    pub cpu_percent: Option<f64>,
    /// Of the machine, J.
    pub joules: Option<f64>,
    /// From start to end, s.
    pub wall_s: f64,
    /// What else it printed, in the order of the result's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<Option<f64>>,
    /// Share of the time for which the command's other end was let run, where the speed is emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<f64>,
}

/// All runs at one speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// The speed, kHz; none is the machine as it is.
    pub khz: Option<u64>,
    /// In order.
    pub trials: Vec<Trial>,
    /// Of the figures.
    pub figure: Option<Spread>,
    /// Mean busy share, percent.
    pub cpu_percent: Option<f64>,
    /// Mean energy of a run, J.
    pub joules: Option<f64>,
    /// Of what else it printed, in the order of the result's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<Option<Spread>>,
}

/// The experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// [`SCHEMA`].
    pub schema: String,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// What was run.
    pub command: Vec<String>,
    /// Unit of the figure.
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// How energy came about.
    pub energy: String,
    /// By speed, falling.
    pub levels: Vec<Level>,
    /// Index of the knee among the levels.
    pub knee: Option<usize>,
    /// What else the command prints, by its own names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<String>,
    /// What lies between the command and its other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// How speeds came about that the processor does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<String>,
}

impl Level {
    /// From its runs.
    pub fn of(khz: Option<u64>, trials: Vec<Trial>) -> Level {
        let mean = |f: fn(&Trial) -> Option<f64>| {
            let all: Option<Vec<f64>> = trials.iter().map(f).collect();
            all.filter(|a| !a.is_empty()).map(|a| a.iter().sum::<f64>() / a.len() as f64)
        };
        let columns = trials.iter().map(|t| t.printed.len()).max().unwrap_or(0);
        let column = |at: usize| -> Option<Spread> {
            Spread::of(&trials.iter().filter_map(|t| *t.printed.get(at)?).collect::<Vec<_>>())
        };
        Level {
            khz,
            printed: (0..columns).map(column).collect(),
            figure: Spread::of(&trials.iter().map(|t| t.figure).collect::<Vec<_>>()),
            cpu_percent: mean(|t| t.cpu_percent),
            joules: mean(|t| t.joules),
            trials,
        }
    }
}

/// The lowest speed that is not shown to be worse than the best: the difference of the means is within Welch's
/// one-sided interval. At 95 % over all speeds together (Bonferroni): the best of many is best by luck, too.
pub fn knee(levels: &[Level], more_is_better: bool) -> Option<usize> {
    let sign = if more_is_better { 1.0 } else { -1.0 };
    let spreads: Vec<Spread> = levels.iter().map(|l| l.figure).collect::<Option<_>>()?;
    let best = spreads.iter().max_by(|a, b| (sign * a.mean).total_cmp(&(sign * b.mean)))?;
    let sure = 1.0 - 0.05 / (levels.len() as f64 - 1.0).max(1.0);
    let as_good = |s: &Spread| {
        let (va, vb) = (best.sd.powi(2) / best.n as f64, s.sd.powi(2) / s.n as f64);
        let worse = sign * (best.mean - s.mean);
        if worse <= 0.0 {
            return true;
        }
        let freedom = (va + vb).powi(2)
            / (va.powi(2) / (best.n as f64 - 1.0).max(1.0) + vb.powi(2) / (s.n as f64 - 1.0).max(1.0));
        freedom.is_finite() && worse <= quantile(sure, freedom) * (va + vb).sqrt()
    };
    (0..levels.len()).filter(|at| as_good(&spreads[*at])).min_by_key(|at| levels[*at].khz)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(khz: u64, figures: &[f64]) -> Level {
        let trial = |figure: &f64| Trial {
            figure: *figure,
            cpu_percent: Some(50.0),
            joules: None,
            wall_s: 1.0,
            printed: Vec::new(),
            ran: None,
        };
        Level::of(Some(khz), figures.iter().map(trial).collect())
    }

    /// 003's finding on the bc10: above a speed the network, not the CPU, is the limit.
    #[test]
    fn the_knee_is_where_more_speed_brings_no_more() {
        let levels = [
            level(720_000, &[94.1, 94.0, 94.2, 94.1]),
            level(600_000, &[94.2, 94.0, 94.1, 94.1]),
            level(550_000, &[94.0, 94.1, 94.2, 94.0]),
            level(500_000, &[86.0, 86.2, 85.9, 86.1]),
            level(250_000, &[41.0, 41.2, 41.1, 40.9]),
        ];
        assert_eq!(knee(&levels, true), Some(2));
        // A latency is better when it is less.
        let latency = [level(800, &[10.0, 10.1]), level(600, &[10.0, 10.2]), level(400, &[19.0, 19.5])];
        assert_eq!(knee(&latency, false), Some(1));
        assert_eq!(knee(&[], true), None);
        // One run each has no noise to be within.
        assert_eq!(knee(&[level(2, &[10.0]), level(1, &[9.9])], true), Some(0));
    }
}
