//! What may go wrong while a machine is looked at.

/// Why a window gave nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Spoiled {
    /// It may be tried again.
    #[error("{0}")]
    Again(String),
    /// Nothing more can be done: a signal, a setting that the machine refuses.
    #[error("{0}")]
    End(String),
}
