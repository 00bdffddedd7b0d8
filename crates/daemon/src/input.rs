//! What comes to an engine from outside, and what it tells.

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// A profile came into force.
    Profile,
    /// A value was written.
    Wrote,
    /// Something cannot be had.
    Refused,
    /// Another program's write.
    Foreign,
    /// Anything else to know.
    Told,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What about.
    pub kind: LogKind,
    /// The line.
    pub text: String,
}

/// What the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelInput {
    /// A supply changed.
    Supply,
    /// A CPU came or went.
    Cpus,
    /// The machine woke from a suspend.
    Resumed,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Values written, those of followed policies among them.
    pub writes: u64,
    /// Values found that another program had written.
    pub foreign: u64,
    /// Changes of the profile in force.
    pub transitions: u64,
    /// Writes that failed.
    pub failed: u64,
    /// Looks.
    pub looks: u64,
}
