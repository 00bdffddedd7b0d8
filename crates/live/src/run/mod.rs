//! Work on the live machine: a command is run and watched.

pub mod child;
pub mod observe;
pub mod preset;
pub mod priced;

use crate::run::child::{CommandError, CommandJob, EndedCommand, Signals};
use crate::run::observe::{Observed, Observer};
use serde::{Deserialize, Serialize};

/// One measured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        self.machine.joules.filter(|_| self.machine.window_s > 0.0).map(|j| j / self.machine.window_s)
    }

    pub(crate) fn of(ended: &EndedCommand, machine: Observed) -> Measured {
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
pub fn measure(
    observer: &mut Observer,
    job: &CommandJob,
    signals: &Signals,
) -> Result<(Measured, EndedCommand), CommandError> {
    let pace = observer.pace();
    observer.begin();
    let ended = crate::run::child::run(job, signals, pace, &mut || observer.beat())?;
    let machine = observer.end(ended.user_s + ended.system_s);
    Ok((Measured::of(&ended, machine), ended))
}
