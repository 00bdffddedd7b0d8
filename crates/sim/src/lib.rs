//! A discrete-event model of a computer's power states.
//!
//! The engine replays a [`Workload`](wattwise_model::workload::Workload) on a
//! [`MachineModel`](wattwise_model::machine::Machine) under the policies of `wattwise-policy`, in integer
//! nanoseconds, and accounts for time and energy. Same inputs, same bits out, on every platform.
//!
//! It uses `model`, `policy` and `figure`, and nothing of the machine wing: no file, no clock, no hardware.
#![forbid(unsafe_code)]

mod calendar;
pub mod engine;
pub mod lock;
pub mod outcome;

pub use engine::{Placement, RunError, Setup, Simulation, core_powers, platform};
pub use lock as locks;
