//! Two policies over the days of a machine, by random turns: [`wattwise_proof`] says what that is; here it is carried out by a program
//! of its own, which holds each policy for its block.

pub mod machine;
pub use wattwise_proof::{block, conclude, guards, hours, judge, log, probe, result, say};
