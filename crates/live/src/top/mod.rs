//! What a machine does now: the samples that `wattwise top` shows.
//!
//! Files are opened once and read once a sample. Each figure is the difference of two looks over the time between them; what
//! a machine does not show is missing with its reason, never 0.

pub mod sample;
pub mod tasks;
pub mod watch;
