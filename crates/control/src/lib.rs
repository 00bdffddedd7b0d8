//! Every change of a machine, and its way back.
//!
//! ```text
//! set      settings: planned by the kernel's rules, journalled, written, read back, put back
//! cores    which CPUs are kept for work: mechanisms, who holds them, what a killed one left
//! govern   policies followed on the live machine
//! delays   how long a change of speed and a wake-up take, timed
//! hold     both together, while something runs
//! private  the folder of journals and locks: ours alone
//! powerctl a thread's own power states, through the kernel module
//! ```
//!
//! It reads through `hw` and `meter`, asks `policy`, and knows no model.

pub mod cores;
pub mod delays;
pub mod govern;
pub mod hold;
pub mod powerctl;
pub mod private;
pub mod problem;
pub mod set;
