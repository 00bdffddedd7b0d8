//! wattwise: which power policy does this work on the least energy?
//!
//! The library behind the binaries. `cmd` parses and prints; `experiment` runs policies; `report`
//! draws; `trace` reads and makes recordings; `library` knows what is bundled. Dependencies point
//! that way only.

pub mod cmd;
pub mod coreidle;
pub mod experiment;
pub mod hw;
pub mod library;
pub mod meter;
pub mod report;
#[cfg(test)]
mod schema;
pub mod study;
pub mod trace;
