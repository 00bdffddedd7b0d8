//! What an uncertain figure is, in words: `kind.P.speeds.capacitance_nf` is the switched capacitance of the P cores.

use crate::measurable::FigurePath;
use crate::replicas;

/// A figure's words: of those whose path begins with `room`, goes through `table` and ends in `key`.
struct Named {
    room: &'static str,
    table: &'static str,
    key: &'static str,
    words: &'static str,
}

const fn named(room: &'static str, table: &'static str, key: &'static str, words: &'static str) -> Named {
    Named { room, table, key, words }
}

/// The first that fits counts.
const NAMES: &[Named] = &[
    named("kind", "", "ipc", "instructions a cycle"),
    named("kind", "", "smt_throughput", "throughput with several threads"),
    named("kind", "", "smt_power", "power with several threads"),
    named("kind", "speeds", "busy_w", "power while busy"),
    named("kind", "speeds", "volts", "voltage"),
    named("kind", "speeds", "capacitance_nf", "switched capacitance"),
    named("kind", "speeds", "leak_a", "leakage current"),
    named("kind", "speeds", "flat_mhz", "clock below which the voltage falls no further"),
    named("kind", "speeds", "turbo_volts", "voltage at the highest clock"),
    named("kind", "speeds", "effective_min_mhz", "lowest clock in effect"),
    named("kind", "speeds", "stall_share", "power while waiting for memory"),
    named("kind", "tstates", "loss_percent", "throughput lost in T-states"),
    named("kind", "tstates", "delay_us", "delay of a T-state"),
    named("kind", "transition", "delay_us", "delay of a change of speed"),
    named("kind", "transition", "stall_us", "stall while the speed changes"),
    named("kind", "idle", "watts", "power in C-states"),
    named("kind", "idle", "entry_us", "entry time of C-states"),
    named("kind", "idle", "latency_us", "exit latency of C-states"),
    named("kind", "idle", "exit_us", "exit latency of C-states"),
    named("package", "", "uncore_w", "power of the uncore"),
    named("package", "", "watts", "power in package C-states"),
    named("package", "", "exit_us", "exit latency of package C-states"),
    named("thermal", "", "ambient_c", "ambient temperature"),
    named("thermal", "", "c_per_w", "thermal resistance"),
    named("thermal", "", "tau_s", "thermal time constant"),
    named("thermal", "", "critical_c", "critical temperature"),
    named("thermal", "", "leakage_per_c", "leakage a degree"),
    named("memory", "", "watts", "power of the memory at rest"),
    named("memory", "", "busy_w", "power of the memory for each core at work"),
    named("memory", "", "high_w", "power of the memory while the uncore is fast"),
    named("memory", "", "self_refresh_w", "power of the memory in self-refresh"),
    named("uncore", "", "follow_w", "power of the uncore that follows the fastest core"),
    named("uncore", "", "step_w", "power of the uncore while it is fast"),
    named("uncore", "", "step_mhz", "core clock at which the uncore speeds up"),
    named("uncore", "", "delay_us", "delay of the uncore's clock"),
    named("uncore", "", "hold_us", "time for which the uncore's clock is held"),
    named("autonomous", "", "period", "the processor's own choice of clock: its period"),
    named("autonomous", "", "full_at_0", "the processor's own choice of clock: load for full speed at EPP 0"),
    named(
        "autonomous",
        "",
        "full_at_255",
        "the processor's own choice of clock: load for full speed at EPP 255",
    ),
    named("autonomous", "", "rise", "the processor's own choice of clock: periods before a rise"),
    named("autonomous", "", "drop", "the processor's own choice of clock: chance that a pause drops it"),
    named("autonomous", "", "drop_to", "the processor's own choice of clock: where a drop ends"),
    named("autonomous", "", "climb", "the processor's own choice of clock: periods back to the highest"),
    named("epp_ceiling", "", "from", "the EPP from which the highest clock falls"),
    named("epp_ceiling", "", "at_255", "the highest clock that is left at EPP 255"),
    named("power_limit", "", "long_w", "long-term power limit"),
    named("power_limit", "", "tau_s", "time window of the power limit"),
    named("power_limit", "", "short_w", "short-term power limit"),
    named("platform", "", "watts", "power of the rest of the machine"),
    named("platform", "", "migration_us", "cost of a migration"),
    named("platform", "", "interrupt_us", "cost of an interrupt"),
    named("tick", "", "cost_us", "cost of a scheduler tick"),
];

/// The figure of this path in words; none for what has none.
pub fn in_words(what: &str) -> Option<String> {
    if let Some(words) = replicas::in_words(what) {
        return Some(words.to_owned());
    }
    let path = FigurePath::new(what);
    let words = NAMES.iter().find(|n| path.is(n.room, n.table, &[n.key]))?.words;
    let cores = path.kind.map_or_else(String::new, |kind| format!(" of the {kind} cores"));
    // One speed's or one state's own figure.
    let entry = match path.inner[..] {
        ["speeds", mhz, _] => format!(", at {mhz} MHz"),
        ["idle", state, _] => format!(", {state}"),
        _ => String::new(),
    };
    Some(format!("{words}{cores}{entry}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure that is drawn can decide, and is then named on a page.
    #[test]
    fn every_figure_that_is_drawn_has_words() {
        for name in wattwise_model::machine::builtin::names() {
            let machine = wattwise_replay::library::machine(name).expect("bundled");
            for f in machine.figures() {
                assert!(in_words(&f.what).is_some(), "{name}: {}", f.what);
            }
        }
    }

    #[test]
    fn a_path_says_whose_it_is() {
        let said = |what| in_words(what).unwrap_or_default();
        assert_eq!(said("kind.P.speeds.capacitance_nf"), "switched capacitance of the P cores");
        assert_eq!(said("kind.idle.speeds.2900.busy_w"), "power while busy of the idle cores, at 2900 MHz");
        assert_eq!(said("kind.E.idle.C6.watts"), "power in C-states of the E cores, C6");
        assert_eq!(said("package.idle.watts"), "power in package C-states");
        assert_eq!(said("workload.memory_bound"), "memory-bound share of the work");
        assert_eq!(in_words("platform.driver"), None);
        assert_eq!(in_words(""), None);
    }
}
