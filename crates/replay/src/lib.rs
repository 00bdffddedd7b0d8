//! From names and files to a replay that can run: the library of machines and workloads, policies as people write them,
//! and the jobs made of both.
//!
//! It puts `model`, `policy`, `sim` and `trace` together, and says nothing of which policy is better.
#![forbid(unsafe_code)]

pub mod apply;
pub mod bursts;
pub mod cases;
pub mod defaults;
pub mod driver;
pub mod export;
pub mod job;
pub mod library;
pub mod locks;
pub mod mixes;
mod scan;
pub mod spec;
