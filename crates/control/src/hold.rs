//! Settings and kept CPUs, held while something runs and put back after it.

use crate::cores::hold::HoldOptions;
use crate::govern::cores::Following;
use crate::problem::Problem;
use crate::set::original::Restored;
use crate::set::plan::{ChangePlan, Inventory, Setting, plan};
use crate::set::transaction::Transaction;
use std::path::Path;
use wattwise_hw::cpus::select::Selector;
use wattwise_hw::root::Root;
use wattwise_policy::chosen::CoresSpec;

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
pub struct HeldSettings<'r> {
    settings: Option<Transaction<'r>>,
    cores: Option<Following>,
}

impl HeldSettings<'_> {
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

/// Puts settings in force, as long as `stop` names no reason against it, and follows a core policy until the value ends; none where nothing would change.
pub fn hold<'r>(
    root: &'r dyn Root,
    journal: &Path,
    why: &str,
    wishes: &Wishes,
    stop: &dyn Fn() -> Option<String>,
) -> Result<Option<HeldSettings<'r>>, Problem> {
    let settings = hold_settings(root, journal, why, wishes, stop)?;
    let cores = match &wishes.cores {
        None => None,
        Some(_) if !root.is_this_machine() => {
            return Err(Problem::Impossible("a core policy can be followed on this machine alone".into()));
        }
        Some(spec) => {
            let name = spec.cores.name;
            let following = Following::begin(spec, name, journal.to_owned(), HoldOptions::default());
            Some(following.map_err(|e| e.of(name))?)
        }
    };
    Ok((settings.is_some() || cores.is_some()).then_some(HeldSettings { settings, cores }))
}

fn hold_settings<'r>(
    root: &'r dyn Root,
    journal: &Path,
    why: &str,
    wishes: &Wishes,
    stop: &dyn Fn() -> Option<String>,
) -> Result<Option<Transaction<'r>>, Problem> {
    let Some(plan) = planned(root, wishes)? else { return Ok(None) };
    let held = plan.apply(root, journal, why, stop).map_err(|e| match e {
        // Nothing was changed, and somebody with the right to could have.
        e if e.is_impossible() => Problem::Impossible(e.to_string()),
        e => Problem::Failed(e.to_string()),
    })?;
    let Some(held) = held else { return Ok(None) };
    if let Some(o) = held.outcomes().iter().find(|o| o.got == o.old && o.asked != o.old) {
        return Err(Problem::Failed(format!(
            "{} was asked to be '{}' and stays '{}': the driver took the write and did nothing",
            o.what, o.asked, o.got
        )));
    }
    Ok(Some(held))
}

/// Whether settings can be held here, as far as the kernel's rules tell before a write.
///
/// # Errors
/// What the machine has not, or a rule refuses.
pub fn possible(root: &dyn Root, wishes: &Wishes) -> Result<(), Problem> {
    planned(root, wishes).map(|_| ())
}

/// The writes; none where nothing is wished for.
fn planned(root: &dyn Root, wishes: &Wishes) -> Result<Option<ChangePlan>, Problem> {
    if wishes.settings.is_empty() {
        return Ok(None);
    }
    let inventory = Inventory::read(root);
    let offline_too = wishes.settings.iter().any(|s| matches!(s, Setting::Online(_)));
    let cpus = wishes
        .selector
        .resolve(&inventory.topology, offline_too)
        .map_err(|e| Problem::Input(e.to_string()))?;
    let plan = plan(root, &inventory, &cpus, &wishes.settings)?;
    if let Some((step, refusal)) = plan.refused() {
        let (what, value) = (&step.change.what, &step.change.value);
        return Err(Problem::Input(format!("{what} cannot become '{value}': {}", refusal.rule)));
    }
    Ok(Some(plan))
}
