//! What a judge says.

/// What a judge says of a run.
#[derive(Debug, Default)]
pub(crate) struct JudgeTold {
    /// Checks that held, beside those of the guest.
    pub(crate) checks: Vec<String>,
    /// Lines for people.
    pub(crate) figures: Vec<String>,
}
