//! What a guest runs: kernels, our modules and programs, systemd.

pub(crate) mod kernels;
pub(crate) mod modules;
mod packages;
pub(crate) mod systemd;
