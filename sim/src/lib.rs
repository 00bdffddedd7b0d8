//! A discrete-event model of a computer's power states.
//!
//! A [`machine::Machine`] says what the hardware can do and what each state costs; a
//! [`workload::Workload`] says what its tasks want; the engine replays the one on the other under
//! the policies of `wattwise-policy`, in integer nanoseconds, and accounts for time and energy.
//! Same inputs, same bits out, on every platform.
#![forbid(unsafe_code)]

mod calendar;
pub mod engine;
pub mod locks;
pub mod machine;
pub mod outcome;
pub mod workload;

pub use engine::{Placement, RunError, Setup, Simulation, core_powers, platform};
