//! What may be asked of an import.

use wattwise_figure::Budget;

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The workload's name; by default the source's.
    pub name: Option<String>,
    /// Clock of the recording machine where no cpu_frequency event tells it, in kHz. By default what the
    /// recorder measured, else what is known of the recorded processor, else [`DEFAULT_KHZ`](crate::DEFAULT_KHZ) with a warning.
    pub khz: Option<u32>,
    /// Share of run time that no clock shortens (memory), 0 to 1. Most recordings do not tell it.
    pub memory_share: Option<f64>,
    /// The tasks that are the work, by name or by process or thread id, with their descendants. By default
    /// the recorded command, else all programs.
    pub foreground: Vec<String>,
    /// Whether the other programs are left out: their tasks get no program. Kernel threads stay.
    pub only_foreground: bool,
    /// Every timer rings at its recorded moment: for a replay whose work takes as long as recorded, so
    /// that what follows what stays as it was. By default a sleep *for* a time begins when its task gets to it.
    pub keep_moments: bool,
    /// What the time is charged with that the machine was suspended, in W. By default it is in no account.
    pub suspend_w: Option<f64>,
    /// Threads to leave out, such as the recorder's own.
    pub exclude_tids: Vec<u32>,
    /// Names of tasks to leave out; a task counts from when it takes another name.
    pub exclude_comms: Vec<String>,
    /// What the recording may take; a `.zst` is unpacked into a nameless temporary file beyond 32 MiB.
    pub budget: Budget,
}
