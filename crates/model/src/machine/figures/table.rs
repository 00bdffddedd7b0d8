//! Which figures of a file are drawn: where each stands, what it is in, and which part of it a factor scales.

use super::super::tables::{File, INTERRUPT_US, MIGRATION_US, STALL_SHARE, Stall};

/// What kind of quantity a figure is, as far as its confidence means something else for each.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quantity {
    Power,
    Latency,
    Voltage,
    Other,
}

/// Which part of a figure its factor scales.
#[derive(Clone, Copy)]
pub(super) enum FigurePart {
    Whole,
    /// What it lacks to 1: throughput that threads take from each other.
    BelowOne,
    /// What it has over 1: power that threads add to each other's.
    AboveOne,
}

impl FigurePart {
    pub(super) fn of(self, value: f64) -> f64 {
        match self {
            FigurePart::Whole => value,
            FigurePart::BelowOne => 1.0 - value,
            FigurePart::AboveOne => value - 1.0,
        }
    }

    /// A value with this part multiplied, within what a file may say.
    pub(super) fn scaled(self, value: f64, factor: f64) -> f64 {
        match self {
            // Not 1 - (1 - value), which need not be the value.
            _ if factor == 1.0 => value,
            FigurePart::Whole => value * factor,
            FigurePart::BelowOne => (1.0 - (1.0 - value) * factor).clamp(0.1, 1.0),
            FigurePart::AboveOne => (1.0 + (value - 1.0) * factor).clamp(1.0, 4.0),
        }
    }
}

/// A table of the file.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum FileTable {
    Kind,
    Speeds,
    Tstates,
    Transition,
    Idle,
    Package,
    Thermal,
    Memory,
    MemoryClock,
    Uncore,
    PowerLimit,
    Autonomous,
    EppCeiling,
    Platform,
    Tick,
}

impl FileTable {
    pub(super) fn of_kind(self) -> bool {
        matches!(
            self,
            FileTable::Kind
                | FileTable::Speeds
                | FileTable::Tstates
                | FileTable::Transition
                | FileTable::Idle
        )
    }

    pub(super) fn path(self, file: &File, kind: usize) -> String {
        let of_kind = |tail: &str| format!("kind.{}{tail}", file.kind[kind].name);
        match self {
            FileTable::Kind => of_kind(""),
            FileTable::Speeds => of_kind(".speeds"),
            FileTable::Tstates => of_kind(".tstates"),
            FileTable::Transition => of_kind(".transition"),
            FileTable::Idle => of_kind(".idle"),
            FileTable::Package => "package".into(),
            FileTable::Thermal => "thermal".into(),
            FileTable::Memory => "memory".into(),
            FileTable::MemoryClock => "memory_clock".into(),
            FileTable::Uncore => "uncore".into(),
            FileTable::PowerLimit => "power_limit".into(),
            FileTable::Autonomous => "autonomous".into(),
            FileTable::EppCeiling => "epp_ceiling".into(),
            FileTable::Platform => "platform".into(),
            FileTable::Tick => "tick".into(),
        }
    }
}

/// Values in a file, each with the index of its speed or state (0 where there is but one).
pub(super) type Slots<'a> = Vec<(usize, &'a mut f64)>;

/// A line of the table of what is drawn.
pub(super) struct FigureRow {
    pub(super) table: FileTable,
    /// Its key in the table; a list's name and its key.
    pub(super) key: &'static str,
    pub(super) unit: &'static str,
    pub(super) quantity: Quantity,
    pub(super) part: FigurePart,
    /// Names of the entries, which may have sources of their own.
    pub(super) names: fn(&File, usize) -> Vec<String>,
    /// Where its values are.
    pub(super) slots: for<'a> fn(&'a mut File, usize) -> Slots<'a>,
}

impl FigureRow {
    /// Under which keys `sources` may speak of it.
    pub(super) fn source_key(&self) -> &'static str {
        self.key.split('.').next().unwrap_or(self.key)
    }
}

fn no_names(_: &File, _: usize) -> Vec<String> {
    Vec::new()
}

fn speeds(file: &File, kind: usize) -> Vec<String> {
    file.kind[kind].speeds.mhz.iter().map(f64::to_string).collect()
}

fn states(file: &File, kind: usize) -> Vec<String> {
    file.kind[kind].idle.states.iter().map(|s| s.name.clone()).collect()
}

fn package_states(file: &File, _: usize) -> Vec<String> {
    file.package.idle.iter().map(|s| s.name.clone()).collect()
}

fn one(value: &mut f64) -> Slots<'_> {
    vec![(0, value)]
}

fn some<'a>(value: impl IntoIterator<Item = &'a mut f64>) -> Slots<'a> {
    value.into_iter().map(|v| (0, v)).collect()
}

fn each(values: &mut [f64]) -> Slots<'_> {
    values.iter_mut().enumerate().collect()
}

fn watts(file: &mut File, kind: usize) -> Slots<'_> {
    let states = file.kind[kind].idle.states.iter_mut().enumerate();
    states
        .flat_map(|(i, s)| {
            [Some(&mut s.watts), s.lowest_watts.as_mut()].into_iter().flatten().map(move |v| (i, v))
        })
        .collect()
}

/// Exit times of the states whose latency stands for them, or of the others.
fn exits(file: &mut File, kind: usize, by_latency: bool) -> Slots<'_> {
    let states = file.kind[kind].idle.states.iter_mut().enumerate();
    states
        .filter(|(_, s)| s.exit_by_latency == by_latency)
        .flat_map(|(i, s)| {
            [s.exit_us.as_mut(), s.lowest_exit_us.as_mut()].into_iter().flatten().map(move |v| (i, v))
        })
        .collect()
}

fn stalls(file: &mut File, kind: usize) -> Slots<'_> {
    match file.kind[kind].transition.as_mut().and_then(|t| t.stall_us.as_mut()) {
        None => Vec::new(),
        Some(Stall::Same(x)) => one(x),
        Some(Stall::Matrix(rows)) => some(rows.iter_mut().flatten()),
    }
}

/// A line of [`ROWS`]; names only where entries may have sources of their own.
macro_rules! row {
    ($table:ident, $key:literal, $unit:literal, $quantity:ident, $slots:expr) => {
        row!($table, $key, $unit, $quantity, Whole, no_names, $slots)
    };
    ($table:ident, $key:literal, $unit:literal, $quantity:ident, $part:ident, $names:ident, $slots:expr) => {
        FigureRow {
            table: FileTable::$table,
            key: $key,
            unit: $unit,
            quantity: Quantity::$quantity,
            part: FigurePart::$part,
            names: $names,
            slots: $slots,
        }
    };
}

/// What is drawn: to draw one more figure, add its line.
pub(super) static ROWS: &[FigureRow] = &[
    row!(Kind, "ipc", "", Other, |f, k| one(&mut f.kind[k].ipc)),
    row!(Kind, "smt_throughput", "", Other, BelowOne, no_names, |f, k| each(&mut f.kind[k].smt_throughput)),
    row!(Kind, "smt_power", "", Power, AboveOne, no_names, |f, k| each(&mut f.kind[k].smt_power)),
    row!(Speeds, "busy_w", "W", Power, Whole, speeds, |f, k| each(&mut f.kind[k].speeds.busy_w)),
    row!(Speeds, "volts", "V", Voltage, |f, k| each(&mut f.kind[k].speeds.volts)),
    row!(Speeds, "capacitance_nf", "nF", Power, |f, k| one(&mut f.kind[k].speeds.capacitance_nf)),
    row!(Speeds, "leak_a", "A", Power, |f, k| one(&mut f.kind[k].speeds.leak_a)),
    row!(Speeds, "flat_mhz", "MHz", Other, |f, k| some(&mut f.kind[k].speeds.flat_mhz)),
    row!(Speeds, "turbo_volts", "V", Power, |f, k| one(&mut f.kind[k].speeds.turbo_volts)),
    row!(Speeds, "effective_min_mhz", "MHz", Other, |f, k| { some(&mut f.kind[k].speeds.effective_min_mhz) }),
    row!(Speeds, "stall_share", "", Power, |f, k| some(&mut f.kind[k].speeds.stall_share)),
    row!(Tstates, "loss_percent", "%", Other, |f, k| {
        some(f.kind[k].tstates.as_mut().map(|t| &mut t.loss_percent))
    }),
    row!(Tstates, "delay_us", "us", Latency, |f, k| some(
        f.kind[k].tstates.as_mut().map(|t| &mut t.delay_us)
    )),
    row!(Transition, "delay_us", "us", Latency, |f, k| {
        some(f.kind[k].transition.as_mut().map(|t| &mut t.delay_us))
    }),
    row!(Transition, "stall_us", "us", Latency, stalls),
    row!(Idle, "watts", "W", Power, Whole, states, watts),
    row!(Idle, "entry_us", "us", Latency, Whole, states, |f, k| {
        f.kind[k].idle.states.iter_mut().map(|s| &mut s.entry_us).enumerate().collect()
    }),
    // The time that the hardware takes where the file has but the table's worst case.
    row!(Idle, "latency_us", "us", Latency, Whole, states, |f, k| exits(f, k, true)),
    row!(Idle, "exit_us", "us", Latency, Whole, states, |f, k| exits(f, k, false)),
    row!(Package, "uncore_w", "W", Power, |f, _| one(&mut f.package.uncore_w)),
    row!(Package, "idle.watts", "W", Power, Whole, package_states, |f, _| {
        f.package.idle.iter_mut().map(|s| &mut s.watts).enumerate().collect()
    }),
    row!(Package, "idle.exit_us", "us", Latency, Whole, package_states, |f, _| {
        f.package.idle.iter_mut().map(|s| &mut s.exit_us).enumerate().collect()
    }),
    row!(Thermal, "ambient_c", "C", Other, |f, _| some(f.thermal.as_mut().map(|t| &mut t.ambient_c))),
    row!(Thermal, "c_per_w", "C/W", Other, |f, _| some(f.thermal.as_mut().map(|t| &mut t.c_per_w))),
    row!(Thermal, "tau_s", "s", Other, |f, _| some(f.thermal.as_mut().map(|t| &mut t.tau_s))),
    row!(Thermal, "critical_c", "C", Other, |f, _| some(f.thermal.as_mut().map(|t| &mut t.critical_c))),
    row!(Thermal, "leakage_per_c", "1/C", Other, |f, _| some(
        f.thermal.as_mut().map(|t| &mut t.leakage_per_c)
    )),
    row!(Memory, "watts", "W", Power, |f, _| some(f.memory.as_mut().map(|m| &mut m.watts))),
    row!(Memory, "busy_w", "W", Power, |f, _| some(f.memory.as_mut().map(|m| &mut m.busy_w))),
    row!(Memory, "high_w", "W", Power, |f, _| some(f.memory.as_mut().map(|m| &mut m.high_w))),
    row!(Memory, "self_refresh_w", "W", Power, |f, _| {
        some(f.memory.as_mut().and_then(|m| m.self_refresh_w.as_mut()))
    }),
    row!(MemoryClock, "watts", "W", Power, |f, _| { some(f.memory_clock.as_mut().map(|c| &mut c.watts)) }),
    row!(MemoryClock, "follows", "", Other, |f, _| { some(f.memory_clock.as_mut().map(|c| &mut c.follows)) }),
    row!(MemoryClock, "core_share", "", Other, |f, _| {
        some(f.memory_clock.as_mut().map(|c| &mut c.core_share))
    }),
    row!(Uncore, "follow_w", "W", Power, |f, _| some(f.uncore.as_mut().map(|u| &mut u.follow_w))),
    row!(Uncore, "step_w", "W", Power, |f, _| some(f.uncore.as_mut().map(|u| &mut u.step_w))),
    row!(Uncore, "step_mhz", "MHz", Other, |f, _| {
        some(f.uncore.as_mut().and_then(|u| u.step_mhz.as_mut()))
    }),
    row!(Uncore, "delay_us", "us", Other, |f, _| some(f.uncore.as_mut().map(|u| &mut u.delay_us))),
    row!(Uncore, "hold_us", "us", Other, |f, _| some(f.uncore.as_mut().map(|u| &mut u.hold_us))),
    row!(PowerLimit, "long_w", "W", Other, |f, _| some(f.power_limit.as_mut().map(|l| &mut l.long_w))),
    row!(PowerLimit, "tau_s", "s", Other, |f, _| some(f.power_limit.as_mut().map(|l| &mut l.tau_s))),
    row!(PowerLimit, "short_w", "W", Other, |f, _| {
        some(f.power_limit.as_mut().and_then(|l| l.short_w.as_mut()))
    }),
    row!(Autonomous, "period", "", Other, |f, _| some(f.autonomous.as_mut().map(|a| &mut a.period))),
    row!(Autonomous, "full_at_0", "", Other, |f, _| some(f.autonomous.as_mut().map(|a| &mut a.full_at_0))),
    row!(Autonomous, "full_at_255", "", Other, |f, _| some(
        f.autonomous.as_mut().map(|a| &mut a.full_at_255)
    )),
    row!(Autonomous, "rise", "", Other, |f, _| some(f.autonomous.as_mut().map(|a| &mut a.rise))),
    row!(Autonomous, "drop", "", Other, |f, _| some(f.autonomous.as_mut().map(|a| &mut a.drop))),
    row!(Autonomous, "drop_to", "", Other, |f, _| some(f.autonomous.as_mut().map(|a| &mut a.drop_to))),
    row!(Autonomous, "climb", "", Other, |f, _| some(f.autonomous.as_mut().map(|a| &mut a.climb))),
    row!(EppCeiling, "from", "", Other, |f, _| some(f.epp_ceiling.as_mut().map(|c| &mut c.from))),
    row!(EppCeiling, "at_255", "", Other, |f, _| some(f.epp_ceiling.as_mut().map(|c| &mut c.at_255))),
    row!(Platform, "watts", "W", Power, |f, _| one(&mut f.platform.watts)),
    row!(Platform, "migration_us", "us", Other, |f, _| some(&mut f.platform.migration_us)),
    row!(Platform, "interrupt_us", "us", Other, |f, _| some(&mut f.platform.interrupt_us)),
    row!(Tick, "cost_us", "us", Other, |f, _| some(f.tick.as_mut().map(|t| &mut t.cost_us))),
    row!(Tick, "restart_us", "us", Other, |f, _| {
        some(f.tick.as_mut().and_then(|t| t.restart_us.as_mut()))
    }),
];

/// Writes down what a file leaves to its defaults, so that it can be scaled.
pub(super) fn spell_out(file: &mut File) {
    for kind in &mut file.kind {
        kind.speeds.stall_share.get_or_insert(STALL_SHARE);
        for s in &mut kind.idle.states {
            // In whole ns, as the tables have it.
            let ns = |us: f64| (us * 1e3).round();
            s.exit_by_latency = s.exit_us.is_none();
            s.exit_us.get_or_insert((ns(s.latency_us) - ns(s.entry_us)).max(0.0) / 1e3);
        }
    }
    file.platform.migration_us.get_or_insert(MIGRATION_US);
    file.platform.interrupt_us.get_or_insert(INTERRUPT_US);
}
