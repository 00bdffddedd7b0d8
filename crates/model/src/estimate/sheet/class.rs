//! What is assumed of a machine whose sheet alone is known: by class, and C-states by family.

/// Even between two ends.
pub(super) type Between = [f64; 2];

/// What is assumed of machines of a class: guesses, each an even interval.
pub(super) struct Class {
    /// Voltage at the lowest clock, of that at the highest.
    pub(super) v_low: Between,
    /// Share of the clocks' range below which the voltage is flat.
    pub(super) flat: Between,
    /// How the voltage rises from there: 1 evenly, more late.
    pub(super) bend: Between,
    /// Leakage's share of a busy core's watts at the base clock.
    pub(super) leak: Between,
    /// Watts of all cores at the base clock with common work, of the design power.
    pub(super) cores: Between,
    /// Watts of an awake package beside its cores, of the design power.
    pub(super) uncore: Between,
    /// Watts of a halted core, of a busy one's at the same clock.
    pub(super) halted: Between,
    /// Watts of a package all of whose cores sleep, of its `uncore`.
    pub(super) asleep: Between,
    /// Memory at rest, and more for each core at work, in W a package.
    pub(super) memory: (f64, f64),
    /// The rest of the machine, in W.
    pub(super) platform: f64,
}

pub(super) const LAPTOP: Class = Class {
    v_low: [0.50, 0.76],
    flat: [0.0, 0.4],
    bend: [1.0, 1.6],
    leak: [0.06, 0.20],
    cores: [0.45, 0.85],
    uncore: [0.06, 0.22],
    halted: [0.03, 0.25],
    asleep: [0.05, 0.5],
    memory: (0.5, 0.4),
    platform: 4.0,
};

pub(super) const DESKTOP: Class = Class {
    v_low: [0.45, 0.72],
    cores: [0.40, 0.80],
    uncore: [0.04, 0.16],
    asleep: [0.1, 0.65],
    memory: (0.9, 0.4),
    platform: 25.0,
    ..LAPTOP
};

pub(super) const SERVER: Class = Class {
    v_low: [0.62, 0.88],
    // A design power is what the hottest work needs: stress-ng on all threads of two E5-2620 v3 drew 0.4 of theirs in the cores, on
    // an EPYC 8024P under 0.2.
    cores: [0.2, 0.65],
    uncore: [0.12, 0.32],
    asleep: [0.3, 0.8],
    memory: (4.0, 0.4),
    platform: 60.0,
    ..LAPTOP
};

pub(super) const BOARD: Class = Class {
    v_low: [0.70, 0.95],
    flat: [0.0, 0.5],
    cores: [0.5, 0.9],
    uncore: [0.05, 0.3],
    asleep: [0.5, 1.0],
    memory: (0.15, 0.05),
    platform: 1.0,
    ..LAPTOP
};

/// A C-state: name, latency and target residency in us, and its watts as a share of the halted state's.
pub(super) type State = (&'static str, f64, f64, f64);

/// C-states by family, shallowest first. Intel: Linux intel_idle.c; AMD and Arm: what their firmware tables usually say.
pub(super) const IDLE: &[(&str, &[State])] = &[
    ("nehalem", &[("C1", 3.0, 6.0, 1.0), ("C3", 20.0, 80.0, 0.3), ("C6", 200.0, 800.0, 0.05)]),
    (
        "sandy-bridge",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 80.0, 211.0, 0.3),
            ("C6", 104.0, 345.0, 0.05),
        ],
    ),
    (
        "ivy-bridge",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 59.0, 156.0, 0.3),
            ("C6", 80.0, 300.0, 0.05),
        ],
    ),
    (
        "haswell",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 33.0, 100.0, 0.3),
            ("C6", 133.0, 400.0, 0.05),
        ],
    ),
    (
        "skylake",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 70.0, 100.0, 0.3),
            ("C6", 85.0, 200.0, 0.06),
            ("C7s", 124.0, 800.0, 0.05),
            ("C8", 200.0, 800.0, 0.05),
        ],
    ),
    ("comet-lake-acpi", &[("C1", 1.0, 1.0, 1.0), ("C2", 120.0, 360.0, 0.06), ("C3", 1034.0, 3102.0, 0.05)]),
    ("skylake-server", &[("C1", 2.0, 2.0, 1.0), ("C1E", 10.0, 20.0, 0.8), ("C6", 133.0, 600.0, 0.06)]),
    ("alder-lake", &[("C1E", 2.0, 4.0, 1.0), ("C6", 220.0, 600.0, 0.06), ("C8", 280.0, 800.0, 0.05)]),
    ("zen", &[("C1", 1.0, 2.0, 1.0), ("C2", 400.0, 800.0, 0.06)]),
    ("arm", &[("WFI", 1.0, 1.0, 1.0)]),
];
