//! `fixed`: one C-state, however long the sleep.
//!
//! It predicts nothing. `depth` names the state by its index in the machine's table (0 is the
//! shallowest); a depth beyond the table means the deepest state. The latency limit and disabled
//! states still hold: then the next shallower one that is allowed is taken. With `depth=0` it shows
//! what waiting at full readiness costs, with a large depth what sleeping at any price does to
//! latency; every predicting policy should lie between the two.
//!
//! The tick is stopped always: a machine without tickless idle ignores that.
//!
//! It follows nobody's source: it is a bound to compare with.

use super::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState, allowed};
use crate::{Param, ParamKind};
use alloc::boxed::Box;

/// The wanted index.
struct Fixed(usize);

impl IdlePolicy for Fixed {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        IdleChoice { state: allowed(query, self.0), stop_tick: true }
    }
    fn reflect(&mut self, _: &IdleOutcome, _: &[IdleState]) {}
}

/// A fixed depth.
pub(super) static FIXED: Idle = Idle {
    name: "fixed",
    summary: "always the same C-state",
    follows: "this project: a bound for comparison",
    source: include_str!("fixed.rs"),
    params: &[Param {
        name: "depth",
        help: "index of the state, 0 the shallowest; beyond the table: the deepest",
        kind: ParamKind::Number { unit: "", min: 0.0, max: 255.0, default: 255.0 },
    }],
    build: |_, _, s| Box::new(Fixed(s.count("depth") as usize)),
};
