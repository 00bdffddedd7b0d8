//! The answer: the same work under several policies on a machine model, and which is best by which rule.
//!
//! `compare` runs and counts, `rule` decides, `result` is what is told. It uses `replay` and what that stands on.
#![forbid(unsafe_code)]

pub mod compare;
pub mod result;
pub mod rule;
