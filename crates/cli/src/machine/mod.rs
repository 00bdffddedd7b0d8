//! Commands about this machine, or one that stands in for it.

pub(crate) mod ab;
pub(crate) mod calibrate;
pub(crate) mod capture;
pub(crate) mod coreidle;
pub(crate) mod cpufrequtils;
pub(crate) mod emulate;
pub(crate) mod info;
pub(crate) mod locks;
pub(crate) mod profile;
pub(crate) mod prove;
pub(crate) mod record;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod set;
pub(crate) mod step_back;
pub(crate) mod top;
