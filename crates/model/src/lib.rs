//! What a replay runs on, and what it runs: a [`machine::MachineModel`] says what hardware can do and what each state
//! costs; a [`workload::Workload`] says what its tasks want.
//!
//! Both are files for people (TOML, each figure with its source) and dense tables for an engine. This room reads no
//! file but text it is handed, and knows no policy and no hardware: of wattwise's crates it uses `figure` alone.
#![forbid(unsafe_code)]

pub mod estimate;
pub mod machine;
pub mod residency;
pub mod workload;
