//! As `affine`, with `sched_mc_power_savings=1` or `sched_smt_power_savings=1`. That level leaves wake-ups
//! as they are; the balance no longer pulls running tasks apart. (Linux also pulls tasks together that keep
//! running, which is not modelled.)

use super::{FAIR, Placement, affine};

/// `sched_mc`
pub static SCHED_MC: Placement = Placement {
    name: "sched_mc",
    summary: "as affine, but the balance leaves running tasks together (sched_mc_power_savings=1)",
    // Level 1 of either does the same to the balance.
    aliases: &[("sched_smt", "as sched_mc (sched_smt_power_savings=1)")],
    choose: affine::choose,
    ..FAIR
};
