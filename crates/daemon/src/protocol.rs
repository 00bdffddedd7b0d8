//! What the socket speaks: one request a line, one reply a line, both JSON.
//!
//! Anybody may ask what is in force. To change it is root's, and of whoever the daemon runs as; desktops go by D-Bus, where
//! polkit decides. Holds and pauses last as long as their connection.

use crate::brain::ProfileHold;
use serde::{Deserialize, Serialize};

/// The most that a request has, with its end of line.
pub const MOST_BYTES: usize = 4096;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What is in force, and why.
    Status,
    /// The profiles.
    List,
    /// Chooses a profile.
    Set {
        /// Its name.
        profile: String,
    },
    /// Holds one, until the connection ends or it is released.
    Hold {
        /// Its name.
        profile: String,
        /// Why.
        #[serde(default)]
        reason: String,
        /// Who, for people.
        #[serde(default)]
        application: String,
    },
    /// Ends a hold.
    Release {
        /// Its number.
        cookie: u32,
    },
    /// Has the machine as it was, until the connection ends.
    Pause {
        /// For what.
        why: String,
    },
    /// Reads the configuration again.
    Reload,
    /// What Prometheus reads.
    Metrics,
    /// Whether profiles follow the battery.
    BatteryAware {
        /// Whether.
        on: bool,
    },
}

impl Request {
    /// Whether it changes something.
    pub fn changes(&self) -> bool {
        !matches!(self, Request::Status | Request::List | Request::Metrics)
    }
}

/// A hold, as it is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// Its number.
    pub cookie: u32,
    /// The profile.
    pub profile: String,
    /// Why.
    pub reason: String,
    /// Who.
    pub application: String,
}

impl From<&ProfileHold> for Held {
    fn from(hold: &ProfileHold) -> Held {
        Held {
            cookie: hold.cookie,
            profile: hold.profile.clone(),
            reason: hold.reason.clone(),
            application: hold.application.clone(),
        }
    }
}

/// A profile, as it is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Which of the three of power-profiles-daemon it is to desktops.
    pub ppd: String,
    /// What it wants in any case.
    pub wants: String,
    /// What it wants beside, and when: (conditions, wishes).
    pub cases: Vec<(String, String)>,
}

/// Something that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// What was wanted.
    pub what: String,
    /// Why it cannot be had.
    pub why: String,
}

/// What the profile saves, as far as it is proved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// Against what: `untouched`, or a profile.
    pub baseline: String,
    /// The profile.
    pub profile: String,
    /// `3.1 % (2.0 to 4.2), 41 h measured, 6 h left out: suspend`.
    pub line: String,
    /// In a sentence.
    pub words: String,
    /// The share that is saved, and the ends of its interval; none where nothing can be said yet.
    pub saving: Option<[f64; 3]>,
    /// Hours that count.
    pub measured_h: f64,
    /// Hours that do not.
    pub left_out_h: f64,
    /// Pairs of turns that count.
    pub pairs: u64,
    /// Pairs that are planned.
    pub planned: u64,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The profile in force.
    pub profile: String,
    /// Its word for desktops: power-saver, balanced or performance.
    pub ppd: String,
    /// Why it is in force, and which of its conditions hold.
    pub why: String,
    /// The profile that was chosen, and is remembered.
    pub chosen: String,
    /// What is wanted of the machine now.
    pub wants: String,
    /// Nothing is wanted, for a measurement.
    pub paused: bool,
    /// What feeds the machine: mains or battery.
    pub source: String,
    /// Whether profiles follow the battery.
    pub battery_aware: bool,
    /// Who holds which profile.
    pub holds: Vec<Held>,
    /// The speed policy that the daemon follows itself, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<String>,
    /// What cannot be had here.
    pub refused: Vec<Missing>,
    /// Programs that set the same things.
    pub conflicts: Vec<Missing>,
    /// How many values stand.
    pub values: u64,
    /// Writes since the daemon began.
    pub writes: u64,
    /// Changes of the profile since then.
    pub transitions: u64,
    /// Others' writes since then.
    pub foreign_writes: u64,
    /// What the profile saves, where the configuration has that proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// Why not, with the exit code that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<(u8, String)>,
    /// Of `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Of `list`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Listed>,
    /// Of `hold`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<u32>,
    /// Of `metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Reply {
    /// Why not.
    pub fn refused(code: u8, why: impl Into<String>) -> Reply {
        Reply { error: Some((code, why.into())), ..Reply::default() }
    }
}

/// Reads a request. Whatever a stranger sends, the answer is a request or one line.
///
/// # Errors
/// What was expected.
pub fn request(line: &[u8]) -> Result<Request, String> {
    if line.len() > MOST_BYTES {
        return Err(format!("a request has more than {MOST_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|e| {
        let why = wattwise_figure::one_line(&e.to_string());
        format!("no request ({why}); expected a line such as {{\"do\":\"status\"}}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_lines_of_json() {
        assert_eq!(request(br#"{"do":"status"}"#), Ok(Request::Status));
        let hold = request(br#"{"do":"hold","profile":"performance"}"#).expect("a request");
        assert!(matches!(&hold, Request::Hold { profile, .. } if profile == "performance") && hold.changes());
        for bad in [&b"{}"[..], b"", b"\xff\xfe", b"{\"do\":\"set\"}", &[b'['; 5000]] {
            let why = request(bad).expect_err("no request");
            assert!(!why.contains('\n'), "{why}");
        }
    }
}
