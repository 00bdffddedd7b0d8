//! The thesis's sixteen charts of MCS (figures 4.1 to 4.16) as curves of the model: throughput, power and efficiency against threads, a
//! curve for each state of the waiting core.
//!
//! The thesis prints the charts as pictures, so no point of them stands beside ours: what its text says of them is in the claims.

use super::{C_STATES, Metric, SEEDS};
use crate::StudyError;
use serde::Serialize;
use wattwise_lockbench::Place;
use wattwise_lockbench::section::Section as Length;
use wattwise_page::{Axis, LineShape, Plot, Section, Series};
use wattwise_replay::library;
use wattwise_replay::locks as model;
use wattwise_replay::locks::WaitPolicy;

/// A chart of the study, as curves.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chart {
    /// As the study numbers it: `4.1`.
    pub figure: &'static str,
    /// The machine model.
    pub machine: &'static str,
    /// How threads wait: spin, spin-then-park, park, mwait.
    pub waiting: &'static str,
    /// Upper end of the critical sections' lengths, which are drawn evenly from 0 on, us.
    pub cs_us: f64,
    /// The same of what lies between them, us.
    pub ncs_us: f64,
    /// Across: numbers of threads.
    pub threads: Vec<usize>,
    /// A curve for each state of the waiting core.
    pub curves: Vec<Curve>,
}

/// One curve: what comes of each number of threads.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// The state of a core that waits: `full speed`, `T 12.5 %`, `P3`, `C2`.
    pub state: String,
    /// The lock and how it waits, as `bench locks` takes it.
    pub policy: String,
    /// Acquisitions a second.
    pub throughput_per_s: Vec<f64>,
    /// Power of the machine, W: over runs of equal length, energy.
    pub power_w: Vec<f64>,
    /// Acquisitions a joule.
    pub per_joule: Vec<f64>,
}

/// Which states a chart has.
#[derive(Clone, Copy)]
enum States {
    T,
    P,
    C,
}

/// Figure, waiting, upper ends of the critical and the other sections in us, states; from the captions.
const CHARTS: [(&str, &str, f64, f64, States); 16] = [
    ("4.1", "spin", 3.7, 3.7, States::T),
    ("4.2", "spin", 3.7, 366.0, States::T),
    ("4.3", "spin", 366.0, 3.7, States::T),
    ("4.4", "spin", 366.0, 366.0, States::T),
    ("4.5", "spin-then-park", 366.0, 3.7, States::T),
    ("4.6", "park", 366.0, 3.7, States::T),
    ("4.7", "spin", 3.7, 3.7, States::P),
    ("4.8", "spin", 3.7, 366.0, States::P),
    ("4.9", "spin", 366.0, 3.7, States::P),
    ("4.10", "spin", 366.0, 366.0, States::P),
    ("4.11", "spin-then-park", 366.0, 366.0, States::P),
    ("4.12", "park", 366.0, 3.7, States::P),
    ("4.13", "mwait", 3.7, 3.7, States::C),
    ("4.14", "mwait", 3.7, 366.0, States::C),
    ("4.15", "mwait", 366.0, 3.7, States::C),
    ("4.16", "mwait", 366.0, 366.0, States::C),
];

/// Duty cycles: all that there are.
const DUTIES: [&str; 7] = ["87.5", "75", "62.5", "50", "37.5", "25", "12.5"];
/// P-states: every other one, as in the study's text.
const P_STATES: [usize; 7] = [1, 3, 5, 7, 9, 11, 13];
/// Of the server's 20 cores, and of the laptop's four CPUs.
const SERVER: [usize; 7] = [1, 2, 4, 5, 10, 15, 20];
const LAPTOP: [usize; 4] = [1, 2, 3, 4];

impl States {
    /// The machine on which the study had them, and numbers of threads there.
    fn machine(self) -> (&'static str, &'static [usize]) {
        match self {
            States::T | States::P => ("xeon-4210", &SERVER),
            States::C => ("i7-4510u", &LAPTOP),
        }
    }

    /// Each state with its lock: first the waiting at full speed, which for MWAIT is spinning.
    fn policies(self, waiting: &str) -> Vec<(String, String)> {
        let full = |waiting: &str| ("full speed".to_owned(), format!("mcs:{waiting}"));
        let t = |d: &&str| (format!("T {d} %"), format!("mcs:tstate-{d}+{waiting}"));
        let p = |n: &usize| (format!("P{n}"), format!("mcs:pstate-{n}+{waiting}"));
        let c = |(name, hint): &(&str, &str)| ((*name).to_owned(), format!("mcs:mwait-{hint}"));
        match self {
            States::T => std::iter::once(full(waiting)).chain(DUTIES.iter().map(t)).collect(),
            States::P => std::iter::once(full(waiting)).chain(P_STATES.iter().map(p)).collect(),
            States::C => std::iter::once(full("spin")).chain(C_STATES.iter().map(c)).collect(),
        }
    }
}

/// All sixteen, each cell at one draw of the sections' lengths.
pub(super) fn charts() -> Result<Vec<Chart>, StudyError> {
    CHARTS
        .iter()
        .map(|&(figure, waiting, cs, ncs, states)| chart(figure, waiting, (cs, ncs), states))
        .collect()
}

fn chart(
    figure: &'static str,
    waiting: &'static str,
    (cs_us, ncs_us): (f64, f64),
    states: States,
) -> Result<Chart, StudyError> {
    let (name, threads) = states.machine();
    let machine = library::machine(name)?;
    let curve = |(state, policy): (String, String)| {
        let parsed = WaitPolicy::parse(&policy, &machine).map_err(StudyError::Lock)?;
        let (cs, ncs) = (Length::Uniform(0.0, cs_us), Length::Uniform(0.0, ncs_us));
        let cell = |&threads: &usize| {
            let o = model::cell(&machine, &parsed, Place { threads, cs_us: cs, ncs_us: ncs }, SEEDS[0]);
            (o.acquired.iter().sum::<u64>() as f64, o.elapsed_s, o.energy_j)
        };
        let cells = wattwise_threads::map::<_, _, _, Vec<(f64, f64, f64)>>(threads, cell);
        Ok::<_, StudyError>(Curve {
            state,
            policy,
            throughput_per_s: cells.iter().map(|(n, s, _)| n / s).collect(),
            power_w: cells.iter().map(|(_, s, j)| j / s).collect(),
            per_joule: cells.iter().map(|(n, _, j)| n / j).collect(),
        })
    };
    let curves = states.policies(waiting).into_iter().map(curve).collect::<Result<_, _>>()?;
    Ok(Chart { figure, machine: name, waiting, cs_us, ncs_us, threads: threads.to_vec(), curves })
}

impl Chart {
    /// In the words of its caption.
    fn title(&self) -> String {
        let Chart { figure, waiting, cs_us, ncs_us, machine, .. } = self;
        format!(
            "Figure {figure}: {waiting}, critical sections 0 to {cs_us} us, others 0 to {ncs_us} us ({machine})"
        )
    }

    /// Its three charts beside each other.
    fn section(&self) -> Section {
        let plot = |metric: Metric| {
            let (name, unit) = match metric {
                Metric::Throughput => ("acquisitions a second", ""),
                Metric::Power => ("power", "W"),
                Metric::Efficiency => ("acquisitions a joule", ""),
            };
            let values = |c: &Curve| match metric {
                Metric::Throughput => c.throughput_per_s.clone(),
                Metric::Power => c.power_w.clone(),
                Metric::Efficiency => c.per_joule.clone(),
            };
            let series = |c: &Curve| Series {
                name: c.state.clone(),
                shape: LineShape::Line,
                points: self.threads.iter().map(|n| *n as f64).zip(values(c)).map(Into::into).collect(),
            };
            Plot {
                title: name.to_owned(),
                x: Axis { name: "threads".to_owned(), whole: true, ..Axis::default() },
                y: Axis { name: name.to_owned(), unit: unit.to_owned(), ..Axis::default() },
                series: self.curves.iter().map(series).collect(),
                note: String::new(),
            }
        };
        let plots = [Metric::Throughput, Metric::Power, Metric::Efficiency].map(plot).to_vec();
        Section::Multiples { title: self.title(), plots, note: String::new() }
    }
}

/// The sections of the page.
pub(super) fn sections(charts: &[Chart]) -> Vec<Section> {
    let intro = Section::Text {
        title: "The sixteen charts".to_owned(),
        body: "The thesis prints these as pictures without numbers; here they are the model's, each point one run of it. T- and P-states on the \
               server, C-states (by MWAIT, beside spinning) on the laptop. Power stands for its energy, since its runs last equally long."
            .to_owned(),
    };
    std::iter::once(intro).chain(charts.iter().map(Chart::section)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cheap chart: the curves are those of the cells of the matrix, and one alone waits for nobody.
    #[test]
    fn a_chart_has_a_curve_for_each_state_and_a_point_for_each_number_of_threads() {
        let chart = chart("4.15", "mwait", (366.0, 3.7), States::C).expect("bundled");
        let states: Vec<&str> = chart.curves.iter().map(|c| c.state.as_str()).collect();
        assert_eq!(states, ["full speed", "C1", "C2", "C3", "C4"]);
        for curve in &chart.curves {
            for values in [&curve.throughput_per_s, &curve.power_w, &curve.per_joule] {
                assert_eq!(values.len(), LAPTOP.len(), "{}", curve.state);
                assert!(values.iter().all(|v| v.is_finite() && *v > 0.0), "{}: {values:?}", curve.state);
            }
            let product = |at: usize| curve.per_joule[at] * curve.power_w[at] / curve.throughput_per_s[at];
            assert!((0..4).all(|at| (product(at) - 1.0).abs() < 1e-9), "{}", curve.state);
            // Whoever never waits never lowers its core.
            assert!((curve.throughput_per_s[0] / chart.curves[0].throughput_per_s[0] - 1.0).abs() < 1e-6);
        }
        // What the text says of this figure: C2 and deeper gain with four threads.
        assert!(chart.curves[2].per_joule[3] > 1.2 * chart.curves[0].per_joule[3]);
    }

    #[test]
    fn there_are_sixteen_charts_whose_locks_exist() {
        assert_eq!(CHARTS.len(), 16);
        for (figure, waiting, _, _, states) in CHARTS {
            let machine = library::machine(states.machine().0).expect("bundled");
            for (state, policy) in states.policies(waiting) {
                assert!(WaitPolicy::parse(&policy, &machine).is_ok(), "{figure} {state}: {policy}");
            }
        }
    }
}
