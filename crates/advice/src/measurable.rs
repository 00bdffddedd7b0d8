//! How a figure of a machine model can be measured: what to tell the user whose answer hangs on it.

/// A way to measure figures: those whose path begins with `room`, goes through `table` and ends in one of `keys`.
struct Way {
    room: &'static str,
    table: &'static str,
    keys: &'static [&'static str],
    by: &'static str,
}

/// The first that fits counts.
const WAYS: &[Way] = &[
    Way {
        room: "kind",
        table: "speeds",
        keys: &["volts", "flat_mhz", "turbo_volts"],
        by: "the core's voltage while it is busy, at each speed: IA32_PERF_STATUS (0x198), bits 47 to 32, on Intel since Sandy Bridge",
    },
    Way {
        room: "kind",
        table: "speeds",
        keys: &["busy_w", "capacitance_nf", "leak_a"],
        by: "package energy (RAPL) with one core of this kind busy, at each speed, less that with the core idle",
    },
    Way {
        room: "kind",
        table: "speeds",
        keys: &["effective_min_mhz"],
        by: "the time of the same loop at each speed that can be asked for",
    },
    Way {
        room: "kind",
        table: "speeds",
        keys: &["stall_share"],
        by: "package energy (RAPL) with one core in the POLL state (the others disabled in cpuidle), against the same core busy",
    },
    Way {
        room: "kind",
        table: "tstates",
        keys: &["loss_percent"],
        by: "the time of the same loop at each duty cycle (IA32_CLOCK_MODULATION), against the full clock",
    },
    Way {
        room: "kind",
        table: "tstates",
        keys: &["delay_us"],
        by: "`wattwise bench transition` with the duty cycles in the speed table",
    },
    Way {
        room: "kind",
        table: "transition",
        keys: &["delay_us", "stall_us"],
        by: "`wattwise bench transition`",
    },
    Way {
        room: "kind",
        table: "idle",
        keys: &["watts"],
        by: "package energy (RAPL) at idle with the deeper states disabled in cpuidle, state by state; the core residency counters say which state was reached",
    },
    Way {
        room: "kind",
        table: "idle",
        keys: &["latency_us", "exit_us"],
        by: "`wattwise bench wake` with the deeper states disabled in cpuidle",
    },
    Way {
        room: "kind",
        table: "idle",
        keys: &["entry_us"],
        by: "wake-ups timed to fall just after the CPU went idle: how much longer than from a long stay they take",
    },
    Way {
        room: "kind",
        table: "",
        keys: &["ipc"],
        by: "the time of the same loop on a core of each kind, at the same clock",
    },
    Way {
        room: "kind",
        table: "",
        keys: &["smt_throughput"],
        by: "the rate of the work on one thread of a core, with the other threads idle and busy",
    },
    Way {
        room: "kind",
        table: "",
        keys: &["smt_power"],
        by: "package energy (RAPL) with one and with all threads of a core busy, at the same clock",
    },
    Way {
        room: "package",
        table: "",
        keys: &["uncore_w"],
        by: "package energy less core energy (RAPL's two domains) while one core is busy and the others sleep",
    },
    Way {
        room: "package",
        table: "",
        keys: &["watts"],
        by: "package energy (RAPL) at idle, where the package residency counters show this state",
    },
    Way {
        room: "package",
        table: "",
        keys: &["exit_us"],
        by: "`wattwise bench wake` with all other cores idle, against one of them kept awake",
    },
    Way {
        room: "thermal",
        table: "",
        keys: &["critical_c"],
        by: "the critical trip point of the thermal zone, or the target temperature in MSR 0x1a2",
    },
    Way {
        room: "thermal",
        table: "",
        keys: &["ambient_c", "c_per_w", "tau_s", "leakage_per_c"],
        by: "the package's temperature and energy (RAPL) over a step from idle to a steady load and back",
    },
    Way {
        room: "memory",
        table: "",
        keys: &["watts", "busy_w", "high_w", "self_refresh_w"],
        by: "the memory's energy (RAPL dram) at rest, with one core held fast, and with cores at work",
    },
    Way {
        room: "uncore",
        table: "",
        keys: &["step_w", "step_mhz", "follow_w", "delay_us", "hold_us"],
        by: "package energy (RAPL) with one lightly loaded core held at each speed in turn and the others at the lowest",
    },
    Way {
        room: "autonomous",
        table: "",
        keys: &["period", "full_at_0", "full_at_255", "rise", "drop", "drop_to", "climb"],
        by: "the clock (turbostat, or APERF over MPERF) in steps of a ms under a load that begins, and under one that pauses for a ms",
    },
    Way {
        room: "epp_ceiling",
        table: "",
        keys: &["from", "at_255"],
        by: "the clock of busy cores (turbostat) under the preferences 64, 128, 192 and 255, with watts to spare",
    },
    Way {
        room: "power_limit",
        table: "",
        keys: &["long_w", "tau_s", "short_w"],
        by: "the limits that `wattwise info` reads (RAPL), and package energy over the first minute of a full load",
    },
    Way {
        room: "platform",
        table: "",
        keys: &["watts"],
        by: "a wall meter, or the battery's discharge, less package energy (RAPL) over the same minutes at idle",
    },
    Way {
        room: "platform",
        table: "",
        keys: &["migration_us"],
        by: "a loop over data that fit a core's cache: its time when moved between cores, against staying",
    },
    Way {
        room: "platform",
        table: "",
        keys: &["interrupt_us"],
        by: "the tracepoints irq_vectors:local_timer_entry and local_timer_exit around a timer that wakes another CPU's task",
    },
    Way {
        room: "tick",
        table: "",
        keys: &["cost_us"],
        by: "the tracepoints irq_vectors:local_timer_entry and local_timer_exit on a busy CPU",
    },
];

/// A figure's path in parts: `kind.P.speeds.2900.busy_w`.
pub(crate) struct FigurePath<'a> {
    /// The first: `kind`, `package`.
    pub(crate) room: &'a str,
    /// The kind of core, where it is a kind's.
    pub(crate) kind: Option<&'a str>,
    /// What follows: `speeds`, `2900`, `busy_w`. A kind's name may be that of a table, so that it is not among them.
    pub(crate) inner: Vec<&'a str>,
}

impl<'a> FigurePath<'a> {
    pub(crate) fn new(what: &'a str) -> FigurePath<'a> {
        let mut parts = what.split('.');
        let room = parts.next().unwrap_or_default();
        let kind = if room == "kind" { parts.next() } else { None };
        FigurePath { room, kind, inner: parts.collect() }
    }

    /// Whether it is in this room and table (any table where none is named), and ends in one of the keys.
    pub(crate) fn is(&self, room: &str, table: &str, keys: &[&str]) -> bool {
        self.room == room
            && (table.is_empty() || self.inner.first() == Some(&table))
            && self.inner.last().is_some_and(|key| keys.contains(key))
    }
}

/// How the figure of this path can be measured; none for what is no figure of a machine.
pub fn measurable(what: &str) -> Option<&'static str> {
    let path = FigurePath::new(what);
    WAYS.iter().find(|w| path.is(w.room, w.table, w.keys)).map(|w| w.by)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure that is drawn can decide, and one that decides must be measurable.
    #[test]
    fn every_figure_that_is_drawn_can_be_measured() {
        for name in wattwise_model::machine::builtin::names() {
            let machine = wattwise_replay::library::machine(name).expect("bundled");
            for f in machine.figures() {
                assert!(measurable(&f.what).is_some(), "{name}: {}", f.what);
            }
        }
    }

    #[test]
    fn paths_find_their_own_way() {
        let by = |what| measurable(what).unwrap_or_default();
        assert!(by("kind.P.idle.C6.watts").contains("cpuidle"));
        assert!(by("package.PC6.watts").contains("residency"));
        assert!(by("platform.watts").contains("wall meter"));
        assert!(by("kind.idle.speeds.2900.busy_w").contains("at each speed"));
        assert_eq!(measurable("workload.memory_bound"), None);
        assert_eq!(measurable(""), None);
    }
}
