//! What is timed, not metered, on one core of each kind: how long changes take, and how much a core does in a cycle.

pub mod delays;
pub mod pace;
