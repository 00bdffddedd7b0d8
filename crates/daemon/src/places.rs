//! Where a daemon's files are.

use std::path::PathBuf;

/// Where things are.
#[derive(Debug, Clone)]
pub struct Places {
    /// Files of profiles, each over those before it.
    pub config: Vec<PathBuf>,
    /// What is remembered.
    pub state: PathBuf,
    /// Journals, and the lock of the one daemon.
    pub journal: PathBuf,
    /// The socket; none without.
    pub socket: Option<PathBuf>,
    /// The bus: `system`, or an address; none without.
    pub bus: Option<String>,
}
