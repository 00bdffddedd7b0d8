//! A policy that somebody chose: the item with the settings it is to be built with.

use crate::{Cores, Idle, IdlePolicy, IdleState, Settings, SpecError, cores};
use alloc::boxed::Box;

/// A chosen idle policy.
#[derive(Clone)]
pub struct IdleSpec {
    /// The governor of C-states.
    pub idle: &'static Idle,
    /// Its parameters.
    pub settings: Settings,
}

impl IdleSpec {
    /// Makes the policy for one CPU.
    pub fn build(&self, states: &[IdleState], tick_ns: u64) -> Box<dyn IdlePolicy> {
        (self.idle.build)(states, tick_ns, &self.settings)
    }
}

/// A chosen core policy.
#[derive(Clone)]
pub struct CoresSpec {
    /// Which CPUs are kept.
    pub cores: &'static Cores,
    /// Its parameters.
    pub settings: Settings,
}

/// Why words name no policy.
#[derive(Clone, Debug, PartialEq)]
pub enum ChoiceError {
    /// No policy has that name.
    Unknown,
    /// It does not take those parameters.
    Settings(SpecError),
}

impl CoresSpec {
    /// Reads `NAME[:key=value,...]`.
    ///
    /// # Errors
    /// When there is no core policy of that name or it takes no such parameter.
    pub fn parse(text: &str) -> Result<CoresSpec, ChoiceError> {
        let (name, list) = text.split_once(':').unwrap_or((text, ""));
        let cores = cores::find(name).ok_or(ChoiceError::Unknown)?;
        let settings = Settings::parse(cores.params, list).map_err(ChoiceError::Settings)?;
        Ok(CoresSpec { cores, settings })
    }
}
