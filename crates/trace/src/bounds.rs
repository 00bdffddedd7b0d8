//! How large a number a recording may name.

/// Greatest number of CPUs: a larger CPU number is damage. (Linux: `NR_CPUS` is at most 8192.)
pub(crate) const MAX_CPUS: u16 = 8192;

/// Greatest thread id, exclusive. (Linux: `PID_MAX_LIMIT`, 4 Mi.)
pub(crate) const MAX_TID: u32 = 4 << 20;
