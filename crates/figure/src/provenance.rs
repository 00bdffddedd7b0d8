//! Where a figure comes from.

use serde::{Deserialize, Serialize};

/// How a figure came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Provenance {
    /// A meter showed it.
    Measured {
        /// By which mechanism.
        by: String,
    },
    /// A model says so.
    Modelled {
        /// Which.
        by: String,
    },
    /// There is no figure.
    Unavailable {
        /// Why.
        why: String,
    },
}

impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Provenance::Measured { by } => write!(f, "measured by {by}"),
            Provenance::Modelled { by } => write!(f, "modelled by {by}"),
            Provenance::Unavailable { why } => write!(f, "unavailable: {why}"),
        }
    }
}
