//! Workloads times machines: what is compared, one case each. Everything about a case that can be wrong is found before
//! the first one runs.

use crate::driver::SpeedDriver;
use crate::job::{fits, reference_policy};
use crate::spec::{PolicyError, PolicySpec};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;

/// One comparison to be made.
pub struct Case<'w> {
    /// The work.
    pub workload: &'w Workload,
    /// The hardware.
    pub machine: MachineModel,
    /// What is compared.
    pub policies: Vec<PolicySpec>,
    /// What the others are held against.
    pub reference: PolicySpec,
    /// What words mean on this machine that could be taken for something else, a sentence each.
    pub notes: Vec<String>,
}

/// Why a case cannot be: one line.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The reference that was named is no policy.
    #[error("--reference: {0}")]
    Reference(PolicyError),
    /// A policy does not fit the machine.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl<'w> Case<'w> {
    /// One workload on one machine under these policies; without a named reference, against what the machine does unless
    /// told otherwise.
    ///
    /// # Errors
    /// The reference is no policy, or a policy speaks of what the machine does not have.
    pub fn new(
        workload: &'w Workload,
        machine: MachineModel,
        policies: Vec<PolicySpec>,
        reference: Option<&str>,
    ) -> Result<Case<'w>, CaseError> {
        let here = Here::of(&machine)?;
        let mut notes = Vec::new();
        let mut meant = |policy: &PolicySpec| -> Result<PolicySpec, PolicyError> {
            let (policy, note) = here.meant(policy)?;
            notes.extend(note.filter(|note| !notes.contains(note)));
            fits(&policy, &machine)?;
            Ok(policy)
        };
        let reference = match reference {
            Some(text) => {
                let named = PolicySpec::parse(text).and_then(|policy| meant(&policy));
                named.map_err(CaseError::Reference)?
            }
            None => meant(&here.in_force)?,
        };
        let mut all: Vec<PolicySpec> = Vec::new();
        for policy in &policies {
            let policy = meant(policy)?;
            // Two words for one policy are one row; what was asked for twice stays two.
            if !all.iter().any(|p| p.text == policy.text) || policies.iter().any(|p| p.text == policy.text) {
                all.push(policy);
            }
        }
        Ok(Case { workload, machine, policies: all, reference, notes })
    }
}

/// What decides what a policy's words mean on a machine.
struct Here {
    driver: Option<&'static SpeedDriver>,
    in_force: PolicySpec,
}

impl Here {
    fn of(machine: &MachineModel) -> Result<Here, PolicyError> {
        Ok(Here { driver: SpeedDriver::find(&machine.driver), in_force: reference_policy(machine)? })
    }

    fn meant(&self, policy: &PolicySpec) -> Result<(PolicySpec, Option<String>), PolicyError> {
        policy.in_place(self.driver, Some(&self.in_force))
    }
}

/// A policy as a machine understands it, and a line where a word may be taken for something else.
///
/// # Errors
/// One line, where it speaks of what the machine does not have.
pub fn on_machine(
    policy: &PolicySpec,
    machine: &MachineModel,
) -> Result<(PolicySpec, Option<String>), PolicyError> {
    let (policy, note) = Here::of(machine)?.meant(policy)?;
    fits(&policy, machine)?;
    Ok((policy, note))
}
