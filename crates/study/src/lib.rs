//! Published studies, rerun on models of their machines.
//!
//! Each sets its predictions beside what was published and says what the model had been fitted to.
//! A difference is explained where it can be, and stays a difference.

pub mod coreidle;
pub mod openbsd;
pub mod powerctl;
pub mod thomson;

use serde::Serialize;
use wattwise_model::machine::Machine;
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, Workload};
use wattwise_page::{Section, Table};
use wattwise_replay::job::{IdleError, machine_idle, place};
use wattwise_replay::library;
use wattwise_replay::library::LibraryError;
use wattwise_replay::spec::{PolicyError, PolicySpec};
use wattwise_sim::{RunError, Setup, Simulation, platform};

/// A rerun study.
#[derive(Debug, Serialize)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Every published figure with what was predicted for it.
    pub figures: Vec<Figure>,
    /// Tables beside them, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// What the model was fitted to, a sentence each.
    pub fitted: Vec<String>,
    /// What differs and why, a sentence each.
    pub differences: Vec<String>,
    /// The page: tables and plots.
    #[serde(skip)]
    pub page: Vec<Section>,
}

/// One figure, as published and as predicted.
#[derive(Clone, Debug, Serialize)]
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
pub enum Basis {
    /// The model was fitted to this very figure: agreement means nothing.
    Fitted,
    /// Follows from the definition of the job.
    Construction,
    /// A prediction.
    Predicted,
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
        self.published.filter(|p| *p != 0.0).map(|p| self.modelled / p - 1.0)
    }
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
struct Bench {
    machine: Machine,
    idle: wattwise_policy::chosen::IdleSpec,
}

impl Bench {
    fn new(machine: &str) -> Result<Bench, StudyError> {
        let machine = library::machine(machine)?;
        let idle = machine_idle(&machine)?;
        Ok(Bench { machine, idle })
    }

    /// A run of `workload` under `policy`; `adjust` may change the set-up.
    fn simulation<'a>(
        &'a self,
        workload: &'a Workload,
        policy: &str,
        adjust: impl FnOnce(&mut Setup<'a, '_>),
    ) -> Result<Simulation<'a>, StudyError> {
        let spec = PolicySpec::parse(policy)?;
        let speed = (spec.speed.build)(&platform(&self.machine), &spec.speed_settings);
        let make = |states: &[wattwise_policy::IdleState], tick: u64| self.idle.build(states, tick);
        let mut setup = Setup::new(&self.machine, workload, speed, &make);
        place(&spec, &mut setup);
        adjust(&mut setup);
        Ok(Simulation::new(setup))
    }
}

/// A workload of a study: tasks with a start, each going through its steps a number of times.
fn workload(name: &str, khz: u32, tasks: Vec<(u64, u64, Vec<Step>)>) -> Workload {
    let task = |(i, (start_ns, rounds, steps)): (usize, (u64, u64, Vec<Step>))| Task {
        name: format!("{name}-{i}"),
        nice: 0,
        realtime: false,
        born: true,
        program: Program::Pattern(Pattern {
            steps,
            start: Dist::Fixed(start_ns),
            rounds,
            until_ns: u64::MAX,
            seed: i as u64 + 1,
            reference_khz: khz,
            memory_share: 0.0,
        }),
    };
    Workload {
        name: name.to_owned(),
        source: "a study's job".to_owned(),
        tasks: tasks.into_iter().enumerate().map(task).collect(),
        jobs: Vec::new(),
        locks: 0,
        recorded: None,
        span_ns: 0,
    }
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
            f.deviation().map_or(String::new(), |d| format!("{:+.1} %", d * 100.0)),
            format!("{:?}", f.basis).to_lowercase(),
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

impl std::fmt::Display for Study {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        let width = self.figures.iter().map(|x| x.what.len()).max().unwrap_or(0);
        writeln!(f, "{:width$}  {:>16}  {:>16}  {:>8}  basis", "", "published", "modelled", "")?;
        let value = |v: f64, sd: Option<f64>, unit: &str| match sd {
            Some(sd) => format!("{v:.1} +- {sd:.1} {unit}"),
            None => format!("{v:.2} {unit}"),
        };
        for x in &self.figures {
            writeln!(
                f,
                "{:width$}  {:>16}  {:>16}  {:>8}  {}",
                x.what,
                x.published.map_or("-".into(), |p| value(p, x.published_sd, x.unit)),
                value(x.modelled, x.modelled_sd, x.unit),
                x.deviation().map_or(String::new(), |d| format!("{:+.1} %", d * 100.0)),
                format!("{:?}", x.basis).to_lowercase(),
            )?;
        }
        for t in &self.tables {
            let wide =
                |i: usize| t.rows.iter().chain([&t.head]).map(|r| r[i].chars().count()).max().unwrap_or(0);
            let widths: Vec<usize> = (0..t.head.len()).map(wide).collect();
            writeln!(f, "\n{}", t.title)?;
            for row in std::iter::once(&t.head).chain(&t.rows) {
                let (name, cells) = (row[0].as_str(), row[1..].iter().zip(&widths[1..]));
                write!(f, "{name:0$}", widths[0])?;
                cells.into_iter().try_for_each(|(cell, wide)| write!(f, "  {cell:>wide$}"))?;
                writeln!(f)?;
            }
            writeln!(f, "{}", t.note)?;
        }
        for (title, lines) in [("Fitted", &self.fitted), ("What differs, and why", &self.differences)] {
            writeln!(f, "\n{title}")?;
            lines.iter().try_for_each(|l| writeln!(f, "- {l}"))?;
        }
        Ok(())
    }
}
