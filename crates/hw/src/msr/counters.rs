//! Counters that many parts read, by address (Intel SDM volume 4, chapter 2; AMD64 APM volume 2 for the first three).

/// Time-stamp counter.
pub const TSC: u32 = 0x10;
/// Counts at a constant rate while its CPU is in C0.
pub const MPERF: u32 = 0xe7;
/// Counts at the CPU's real speed while it is in C0.
pub const APERF: u32 = 0xe8;
/// Time in each package C-state, in ticks of the TSC, and the state's name.
pub const PACKAGE_STATES: [(u32, &str); 7] = [
    (0x60d, "PC2"),
    (0x3f8, "PC3"),
    (0x3f9, "PC6"),
    (0x3fa, "PC7"),
    (0x630, "PC8"),
    (0x631, "PC9"),
    (0x632, "PC10"),
];
