//! What a calibration is asked to do.

use std::path::PathBuf;

/// How a calibration is to be done.
#[derive(Clone, Debug)]
pub struct CalibrationPlan {
    /// The machine's name in its file.
    pub name: String,
    /// How long it may take, in s.
    pub budget_s: f64,
    /// Where changes are journalled.
    pub journal: PathBuf,
    /// Where observations are kept as they come; one that is there is gone on with.
    pub kept: Option<PathBuf>,
    /// Which order and which mixes.
    pub seed: u64,
    /// The clock of a machine whose kernel does not tell, in kHz.
    pub clock_khz: Option<u64>,
    /// What is said of the time and the state of the machine: kernel, microcode, mains.
    pub state: Vec<String>,
}
