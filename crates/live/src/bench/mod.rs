//! Benchmarks of a machine's power states: how long a change of speed takes (`transition`), what a speed is
//! worth (`throughput`), what waking up costs (`wake`).

pub mod link;
pub mod locks;
pub mod peer;
pub mod throughput;
pub mod transition;
pub mod wake;
