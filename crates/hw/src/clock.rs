//! The two clocks by which time that passed and time asleep are told apart.

/// When a reading was taken: two clocks, of which one stands still in a suspend.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moment {
    /// Awake time, s.
    pub monotonic_s: f64,
    /// Awake and suspended time, s.
    pub boot_s: f64,
}

/// The clock that gaps are told by.
pub fn now() -> Moment {
    let read = |id| {
        let t = rustix::time::clock_gettime(id);
        t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
    };
    Moment {
        monotonic_s: read(rustix::time::ClockId::Monotonic),
        boot_s: read(rustix::time::ClockId::Boottime),
    }
}
