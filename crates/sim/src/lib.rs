//! A discrete-event model of a computer's power states.
//!
//! The engine replays a [`Workload`](wattwise_model::workload::Workload) on a
//! [`MachineModel`](wattwise_model::machine::MachineModel) under the policies of `wattwise-policy`, in integer
//! nanoseconds, and accounts for time and energy. Same inputs, same bits out, on every platform.
//!
//! It uses `model`, `policy` and `figure`, and nothing of the machine wing: no file, no clock, no hardware.
//!
//! # Rooms
//!
//! The engine is made of parts. A part owns its fields, knows no other part, and answers with values; [`Simulation`]
//! asks one part and tells the others what follows. `tests/parts.rs` checks it.
//!
//! | room | part | knows |
//! |---|---|---|
//! | `clock`, `calendar` | Clock | the time, and when each source's next event is |
//! | `hardware/` | Hardware | cores, packages and frequency domains: time in states, speeds, heat |
//! | `sched/` | Scheduler | who waits where, who goes next, which CPUs idle; one file a placement |
//! | `tasks/` | Tasks | where each task is in its program; locks, devices, interrupts |
//! | `govern/` | Idlers, SpeedGovernor, CoreGovernor | the policies, and what they have seen |
//! | `record/` | Record | counts, latencies, the timeline, who watches |
//! | `cpu` | | what a CPU is doing; only `simulation` uses it |
//! | `simulation/` | Simulation | the events: it alone uses all of the above |
//!
//! `setup` is what goes in, [`outcome`] what comes out, `platform` what a policy may know of a machine.
//! [`lock`] is a second, separate model: waiters of one lock and their cores.
#![forbid(unsafe_code)]

mod calendar;
mod clock;
mod cpu;
mod govern;
mod hardware;
pub mod lock;
pub mod outcome;
mod platform;
mod record;
mod sched;
mod setup;
mod simulation;
mod tasks;

pub use platform::{core_powers, platform};
pub use record::{Event, Waker, Watcher, Why};
pub use sched::placement::{self, Placement};
pub use setup::{IdleWork, MakeIdle, Setup};
pub use simulation::{RunError, Simulation};
pub use tasks::Interrupt;

/// "No task", "no CPU".
const NONE: u32 = u32::MAX;
