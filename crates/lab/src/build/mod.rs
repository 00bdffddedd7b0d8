//! What a guest runs: kernels, our modules and programs.

pub(crate) mod kernels;
pub(crate) mod modules;
