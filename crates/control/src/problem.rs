//! Why something cannot be put in force on this machine: whose it is to mend, and with it the exit code.

use std::io;
use std::path::Path;

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// What was asked for makes no sense here: the user's to mend.
    #[error("{0}")]
    Input(String),
    /// This machine has no way.
    #[error("{0}")]
    Impossible(String),
    /// The kernel refused on the way, or somebody else interferes; what was begun was undone.
    #[error("{0}")]
    Failed(String),
}

impl Problem {
    /// A file or folder of ours that cannot be used; without the rights to it nothing is possible here.
    pub fn of_place(path: &Path, e: &io::Error) -> Problem {
        let told = format!("{}: {e}; run as root or give --journal FOLDER", path.display());
        match e.kind() {
            io::ErrorKind::PermissionDenied => Problem::Impossible(told),
            _ => Problem::Failed(told),
        }
    }

    /// The same, of something that has a name.
    #[must_use]
    pub fn of(self, name: &str) -> Problem {
        match self {
            Problem::Input(m) => Problem::Input(format!("{name}: {m}")),
            Problem::Impossible(m) => Problem::Impossible(format!("{name}: {m}")),
            Problem::Failed(m) => Problem::Failed(format!("{name}: {m}")),
        }
    }
}
