//! Sound comparisons: arms in random order within blocks, a verdict with an interval that means what it
//! says. `conduct` orders the runs, `judge` decides; what runs an arm is behind `conduct::Bench`.

pub mod conduct;
pub mod judge;
pub mod random;
#[cfg(test)]
mod tests;
