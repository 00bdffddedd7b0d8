//! The policies at work, and what each needs between decisions. Three parts, which know nothing of each other:
//!
//! | file | part | answers |
//! |---|---|---|
//! | `idle.rs` | Idlers | which C-state a CPU enters, and whether it keeps its tick |
//! | `speed.rs` | SpeedGovernor | which level each domain should have |
//! | `cores.rs` | CoreGovernor | which CPUs are kept for work |
//! | `rcu.rs` | | who keeps its tick after a task's end, for the first |

pub(crate) mod cores;
pub(crate) mod idle;
mod rcu;
pub(crate) mod speed;
