//! wattwise: which power policy does this work on the least energy?
//!
//! The library behind the binaries. `cmd` parses and prints; `experiment` runs policies; `report`
//! draws; `trace` reads recordings. Dependencies point that way only.

pub mod experiment;
pub mod report;
pub mod trace;
