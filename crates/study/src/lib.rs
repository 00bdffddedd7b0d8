//! Published studies, rerun on models of their machines.
//!
//! Each sets its predictions beside what was published and says what the model had been fitted to.
//! A difference is explained where it can be, and stays a difference.

pub mod bc10;
pub mod coreidle;
pub mod external;
pub mod hardware;
pub mod open;
pub mod openbsd;
pub mod powerctl;
pub mod printed;
pub mod table;
pub mod thomson;

use printed::{List, MissCause, OurFigures, PrintedFigure, Score};
use serde::Serialize;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, Workload};
use wattwise_page::{Section, Table};
use wattwise_policy::idle::demotion::{self, Demotion};
use wattwise_replay::job::{IdleError, machine_idle, place};
use wattwise_replay::library;
use wattwise_replay::library::LibraryError;
use wattwise_replay::spec::{PolicyError, PolicySpec};
use wattwise_sim::{RunError, Setup, Simulation, platform};

/// A rerun study.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Every figure that the study prints, in the order of its text, with ours beside it.
    pub figures: Vec<PrintedFigure>,
    /// What they come to.
    pub score: Score,
    /// What was worked out, figures that the study does not print among them.
    pub results: Vec<Figure>,
    /// Tables beside them, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// Charts that the study prints as pictures alone, as the model's curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<powerctl::Chart>,
    /// What the model was fitted to, a sentence each.
    pub fitted: Vec<String>,
    /// What differs and why, a sentence each.
    pub differences: Vec<String>,
    /// What the author left open, tried.
    pub open: Vec<open::Open>,
    /// The page: tables and plots.
    #[serde(skip)]
    pub page: Vec<Section>,
}

/// One figure, as published and as predicted.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// As published; `None`: planned or mentioned, no number printed.
    pub published: Option<f64>,
    /// Spread of the published figure (one standard deviation).
    pub published_sd: Option<f64>,
    /// What the model says.
    pub modelled: f64,
    /// Spread of that over the start phases (one standard deviation).
    pub modelled_sd: Option<f64>,
    /// How the modelled figure came about.
    pub basis: Basis,
}

/// How a modelled figure came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Basis {
    /// The model was fitted to this very figure: agreement means nothing.
    Fitted,
    /// Follows from the definition of the job.
    Construction,
    /// A prediction.
    Predicted,
}

impl Basis {
    /// As in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Construction => "construction",
            Basis::Predicted => "predicted",
        }
    }
}

/// Why a study could not be rerun.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// Its machine is missing or wrong.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A policy is missing or wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The machine's idle policy is.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// A lock's name is wrong.
    #[error("lock {0}")]
    Lock(String),
    /// The work did not end.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Figure {
    /// Modelled over published, less one.
    pub fn deviation(&self) -> Option<f64> {
        self.published.filter(|p| *p != 0.0).map(|p| self.modelled / p - 1.0).filter(|d| d.is_finite())
    }

    /// How far the model is off, in words: per cent of a quantity, points of a change.
    pub fn off(&self) -> String {
        // A change may have been published as near 0: a share of that says nothing.
        match (self.deviation(), self.published) {
            (_, Some(p)) if self.unit == "%" && (self.modelled - p).is_finite() => {
                format!("{} points", wattwise_figure::signed(self.modelled - p, 1))
            }
            (Some(d), _) => format!("{} %", wattwise_figure::signed(d * 100.0, 1)),
            _ => String::new(),
        }
    }
}

impl Study {
    /// How well the model does, in a sentence: on what it was not fitted to.
    pub fn verdict(&self) -> String {
        self.score.verdict()
    }
}

/// A study's list with ours beside it, and what that comes to; `orders` are keys as published, the lesser first.
fn beside(
    list: &List,
    ours: &OurFigures,
    causes: &[MissCause],
    orders: &[(&str, &str)],
) -> (Vec<PrintedFigure>, Score) {
    let figures = list.beside(ours, causes);
    let score = list.score(&figures, ours, orders);
    (figures, score)
}

/// Rows of a published table: comments and head left out.
fn rows(csv: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    csv.lines().filter(|l| !l.starts_with('#')).skip(1).map(|l| l.split(',').map(str::trim).collect())
}

/// A cell of a published table as a number.
fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or(f64::NAN)
}

/// A machine of the library with its usual idle policy, and policies by name.
struct StudyBench {
    machine: MachineModel,
    idle: wattwise_policy::chosen::IdleSpec,
    /// What the processor makes of requests for deep states.
    demotion: Option<Demotion>,
}

impl StudyBench {
    fn new(machine: &str) -> Result<StudyBench, StudyError> {
        StudyBench::on(library::machine(machine)?)
    }

    /// On a machine that is in no file.
    fn on(machine: MachineModel) -> Result<StudyBench, StudyError> {
        let idle = machine_idle(&machine)?;
        Ok(StudyBench { machine, idle, demotion: None })
    }

    /// A run of `workload` under `policy`; `adjust` may change the set-up.
    fn simulation<'a>(
        &'a self,
        workload: &'a Workload,
        policy: &str,
        adjust: impl FnOnce(&mut Setup<'a, '_>),
    ) -> Result<Simulation<'a>, StudyError> {
        let spec = PolicySpec::parse(policy)?;
        let speed = spec.build_speed(&platform(&self.machine));
        let make = |states: &[wattwise_policy::IdleState], tick: u64| {
            let idle = spec.build_idle(&self.idle, None, states, tick);
            match self.demotion {
                Some(rule) => demotion::demoted(rule, idle),
                None => idle,
            }
        };
        let mut setup = Setup::new(&self.machine, workload, speed, &make);
        place(&spec, &mut setup);
        adjust(&mut setup);
        Ok(Simulation::new(setup))
    }
}

/// A workload of a study: tasks with a start, each going through its steps a number of times.
fn workload(name: &str, khz: u32, tasks: Vec<(u64, u64, Vec<Step>)>) -> Workload {
    let task = |(i, (start_ns, rounds, steps)): (usize, (u64, u64, Vec<Step>))| {
        let pattern = Pattern {
            steps,
            start: Dist::Fixed(start_ns),
            rounds,
            until_ns: u64::MAX,
            seed: i as u64 + 1,
            reference_khz: khz,
            memory_share: 0.0,
        };
        Task::new(format!("{name}-{i}"), Program::Pattern(pattern))
    };
    Workload::new(name, "a study's job", tasks.into_iter().enumerate().map(task).collect(), 0)
}

/// Published and modelled, side by side.
fn figure_table(figures: &[Figure]) -> Section {
    let value = |v: f64, sd: Option<f64>| match sd {
        Some(sd) => format!("{v:.1} +- {sd:.1}"),
        None => format!("{v:.2}"),
    };
    let row = |f: &Figure| {
        vec![
            f.what.clone(),
            f.unit.to_owned(),
            f.published.map_or("not printed".into(), |p| value(p, f.published_sd)),
            value(f.modelled, f.modelled_sd),
            f.off(),
            f.basis.word().to_owned(),
        ]
    };
    Section::Table(Table {
        title: "Published and modelled".into(),
        head: ["figure", "unit", "published", "modelled", "deviation", "basis"].map(String::from).to_vec(),
        rows: figures.iter().map(row).collect(),
        note: "Basis: fitted (the model was set to this figure), construction (follows from the job's definition), \
               predicted."
            .into(),
    })
}
