//! Work on the live machine: a command is run and watched while settings are held.

pub mod child;
pub mod observe;
pub mod preset;

use crate::coreidle::Problem;
use crate::coreidle::force::Options;
use crate::coreidle::governor::Following;
use crate::experiment::spec::CoresSpec;
use crate::hw::plan::{Inventory, PlanError, Setting, plan};
use crate::hw::root::Root;
use crate::hw::select::Selector;
use crate::hw::transaction::{Change, Restored, Transaction};
use child::{Ended, Job, RunError, Signals};
use observe::{Observed, Observer};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Settings to be held while something runs; none leaves the machine as it is.
#[derive(Clone, Default)]
pub struct Wishes {
    /// What.
    pub settings: Vec<Setting>,
    /// Where.
    pub selector: Selector,
    /// Which CPUs are kept for work; none keeps all.
    pub cores: Option<CoresSpec>,
}

/// Settings in force, and a core policy that is followed.
pub struct Held<'r> {
    settings: Option<Transaction<'r>>,
    cores: Option<Following>,
}

impl Held<'_> {
    /// Everything goes back.
    pub fn undo(&mut self) -> Restored {
        let cores = self.cores.take().map(|mut following| following.end());
        let mut restored = self.settings.as_mut().map(Transaction::undo).unwrap_or_default();
        let left = match cores {
            None => Vec::new(),
            Some(Ok(summary)) => summary.left,
            Some(Err(e)) => vec![e.to_string()],
        };
        restored.failed.extend(left.into_iter().map(|why| ("kept CPUs".to_owned(), why)));
        restored
    }
}

/// Why settings are not in force.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// They make no sense here: the user's to mend.
    #[error("{0}")]
    Input(String),
    /// This machine cannot.
    #[error("{0}")]
    Impossible(String),
    /// They failed on the way and were undone.
    #[error("{0}")]
    Failed(String),
}

/// Puts settings in force and follows a core policy until the value ends; none where nothing would change.
pub fn hold<'r>(
    root: &'r dyn Root,
    journal: &Path,
    why: &str,
    wishes: &Wishes,
    signals: &Signals,
) -> Result<Option<Held<'r>>, HoldError> {
    let settings = hold_settings(root, journal, why, wishes, signals)?;
    let cores = match &wishes.cores {
        None => None,
        Some(_) if root.describe() != "this machine" => {
            return Err(HoldError::Impossible("a core policy can be followed on this machine alone".into()));
        }
        Some(spec) => {
            let name = spec.cores.name;
            let following = Following::begin(spec, name, journal.to_owned(), Options::default());
            Some(following.map_err(|e| match e {
                Problem::Input(m) => HoldError::Input(m),
                Problem::Impossible(m) => HoldError::Impossible(format!("{name}: {m}")),
                Problem::Failed(m) => HoldError::Failed(format!("{name}: {m}")),
            })?)
        }
    };
    Ok((settings.is_some() || cores.is_some()).then_some(Held { settings, cores }))
}

fn hold_settings<'r>(
    root: &'r dyn Root,
    journal: &Path,
    why: &str,
    wishes: &Wishes,
    signals: &Signals,
) -> Result<Option<Transaction<'r>>, HoldError> {
    if wishes.settings.is_empty() {
        return Ok(None);
    }
    let inventory = Inventory::read(root);
    let offline_too = wishes.settings.iter().any(|s| matches!(s, Setting::Online(_)));
    let cpus = wishes
        .selector
        .resolve(&inventory.topology, offline_too)
        .map_err(|e| HoldError::Input(e.to_string()))?;
    let plan = plan(root, &inventory, &cpus, &wishes.settings).map_err(|e| match e {
        PlanError::Input(m) => HoldError::Input(m),
        PlanError::Impossible(m) => HoldError::Impossible(m),
    })?;
    if let Some((step, refusal)) = plan.steps.iter().find_map(|s| s.verdict.as_ref().err().map(|r| (s, r))) {
        let (what, value) = (&step.change.what, &step.change.value);
        return Err(HoldError::Input(format!("{what} cannot become '{value}': {}", refusal.rule)));
    }
    let changes: Vec<Change> = plan.steps.iter().map(|s| s.change.clone()).collect();
    if changes.is_empty() {
        return Ok(None);
    }
    let stop = || signals.caught().map(|s| format!("signal {s} came"));
    let held = Transaction::apply(root, journal, why, &changes, &plan.beside, &stop)
        .map_err(|e| HoldError::Failed(e.to_string()))?;
    if let Some(o) = held.outcomes().iter().find(|o| o.got == o.old && o.asked != o.old) {
        return Err(HoldError::Failed(format!(
            "{} was asked to be '{}' and stays '{}': the driver took the write and did nothing",
            o.what, o.asked, o.got
        )));
    }
    Ok(Some(held))
}

/// One measured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measured {
    /// From start to end, s.
    pub wall_s: f64,
    /// CPU time in user mode, s.
    pub user_s: f64,
    /// CPU time in the kernel, s.
    pub system_s: f64,
    /// Times that the command gave a CPU up itself, and was woken again.
    pub voluntary_switches: u64,
    /// Times that it was preempted.
    pub involuntary_switches: u64,
    /// Largest resident memory of any one process, KiB.
    pub peak_memory_kib: u64,
    /// Exit code; 128 + the signal's number where one ended it.
    pub exit_code: u8,
    /// Why that end is no success.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<String>,
    /// The machine, from just before the start to just after the end.
    pub machine: Observed,
}

impl Measured {
    /// CPU time, s.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Mean power of the machine over its window, W.
    pub fn mean_w(&self) -> Option<f64> {
        self.machine.joules.map(|j| j / self.machine.window_s)
    }

    pub(crate) fn of(ended: &Ended, machine: Observed) -> Measured {
        Measured {
            wall_s: ended.wall_s,
            user_s: ended.user_s,
            system_s: ended.system_s,
            voluntary_switches: ended.voluntary_switches,
            involuntary_switches: ended.involuntary_switches,
            peak_memory_kib: ended.peak_memory_kib,
            exit_code: ended.code(),
            failure: ended.failure(),
            machine,
        }
    }
}

/// Runs a command once and watches the machine meanwhile.
pub fn measure(observer: &mut Observer, job: &Job, signals: &Signals) -> Result<(Measured, Ended), RunError> {
    let pace = observer.pace();
    observer.begin();
    let ended = child::run(job, signals, pace, &mut || observer.beat())?;
    let machine = observer.end(ended.user_s + ended.system_s);
    Ok((Measured::of(&ended, machine), ended))
}
