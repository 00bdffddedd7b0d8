//! Workloads times machines: what is compared, one case each. Everything about a case that can be wrong is found before
//! the first one runs.

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
        let reference = match reference {
            Some(text) => PolicySpec::parse(text).map_err(CaseError::Reference)?,
            None => reference_policy(&machine)?,
        };
        for policy in policies.iter().chain([&reference]) {
            fits(policy, &machine)?;
        }
        Ok(Case { workload, machine, policies, reference })
    }
}
