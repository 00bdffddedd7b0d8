//! Work on the live machine: `run` a command and watch it, compare two ways soundly (`ab`), or two policies over the
//! days of a machine in use (`prove`), `bench` the machine's states and locks.
//!
//! It changes a machine through `control` alone and reads it through `meter` and `hw`. Of the model it knows the tables
//! that price what no meter shows.

pub mod ab;
pub mod bench;
pub mod prove;
pub mod run;
pub mod top;

pub use wattwise_proof::lines;
