//! What comes to an engine from outside, and what it tells.

use crate::brain::{Client, Hold};
use crate::config::Config;

/// What a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    pub kind: Kind,
    /// The line.
    pub text: String,
}

/// What came from outside.
#[derive(Debug, Clone)]
pub enum Input {
    /// The kernel said that a supply changed.
    Supply,
    /// A CPU came or went.
    Cpus,
    /// The machine woke from a suspend.
    Resumed,
    /// Somebody chose a profile.
    Choose(String),
    /// A client holds one.
    Hold(Hold),
    /// A hold ends.
    Release(u32),
    /// A client is gone.
    Gone(Client),
    /// A measurement wants the machine as it was.
    Pause(Client, String),
    /// Another configuration.
    Config(Box<Config>),
    /// Whether profiles follow the battery.
    BatteryAware(bool),
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
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
