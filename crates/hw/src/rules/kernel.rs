//! What the kernel makes of a machine: its release, its speeds and limits, its words.

use crate::root;
use crate::root::Root;

/// What a decision may look at: a machine's attributes, as text.
pub trait AttributeView {
    /// An attribute without the white space around it; `None` when it is not there or unreadable.
    fn text(&self, path: &str) -> Option<String>;
    /// The names in a folder; empty when there is none.
    fn list(&self, path: &str) -> Vec<String>;
}

impl AttributeView for &dyn Root {
    fn text(&self, path: &str) -> Option<String> {
        root::text(*self, path)
    }
    fn list(&self, path: &str) -> Vec<String> {
        Root::list(*self, path).unwrap_or_default()
    }
}

/// The kernel's release as (major, minor); current kernels when the tree does not say.
pub fn release(view: &dyn AttributeView) -> (u32, u32) {
    let text = view.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>());
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (u32::MAX, 0),
    }
}

/// Which level a driver takes for a speed that its table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The lowest level at or above (CPUFREQ_RELATION_L), else the highest there is.
    AtLeast,
    /// The highest level at or below (CPUFREQ_RELATION_H), else the lowest there is.
    AtMost,
    /// The nearest (CPUFREQ_RELATION_C).
    Closest,
}

/// The speed that a driver sets when `khz` is wanted within `min` and `max`.
///
/// `levels` is empty for drivers without a table; then `step` (0: none) is what they round to.
/// After `cpufreq_frequency_table_target` and `intel_cpufreq_target`.
pub fn resolve(levels: &[u32], step: u32, min: u32, max: u32, khz: u32, relation: Relation) -> u32 {
    let wanted = khz.max(min).min(max);
    let allowed = || levels.iter().copied().filter(|&l| min <= l && l <= max);
    if levels.is_empty() {
        let rounded = match (step, relation) {
            (0, _) => wanted,
            (_, Relation::AtLeast) => wanted.div_ceil(step).saturating_mul(step),
            (_, Relation::AtMost) => wanted / step * step,
            (_, Relation::Closest) => (wanted + step / 2) / step * step,
        };
        return rounded.max(min).min(max);
    }
    let above = allowed().filter(|&l| l >= wanted).min();
    let below = allowed().filter(|&l| l <= wanted).max();
    let found = match relation {
        Relation::AtLeast => above.or(below),
        Relation::AtMost => below.or(above),
        Relation::Closest => match (above, below) {
            (Some(a), Some(b)) if a - wanted < wanted - b => Some(a),
            (Some(_), Some(b)) => Some(b),
            (a, b) => a.or(b),
        },
    };
    // No level within the limits: the nearest outside, first above.
    let above = || levels.iter().copied().filter(|&l| l >= min).min();
    found.or_else(above).or_else(|| levels.iter().copied().max()).unwrap_or(max)
}

/// A policy's limits from what was asked for, as the kernel computes them since 5.3:
/// cut to what the hardware has, the minimum cut to the maximum, and at least one level between.
/// Since 5.18 both are rounded to levels.
pub fn limits(levels: &[u32], hw: (u32, u32), asked: (u32, u32), release: (u32, u32)) -> (u32, u32) {
    let (hw_min, hw_max) = hw;
    let mut max = asked.1.min(hw_max).max(hw_min);
    let mut min = asked.0.max(hw_min).min(max);
    let usable: Vec<u32> = levels.iter().copied().filter(|&l| l <= hw_max).collect();
    let Some(&highest) = usable.iter().max() else { return (min, max) };
    // drivers/cpufreq/freq_table.c: with no level between them, the maximum goes up to the next; in 6.12 down again.
    if !usable.iter().any(|&l| min <= l && l <= max) {
        let above = usable.iter().copied().filter(|&l| l > max).min();
        let below = usable.iter().copied().filter(|&l| l <= max && release >= (6, 12)).max();
        max = below.or(above).unwrap_or(highest);
        min = min.min(max);
    }
    if release >= (5, 18) {
        let (low, high) = (min, max);
        min = resolve(&usable, 0, low, high, low, Relation::AtLeast);
        max = resolve(&usable, 0, min, high, high, Relation::AtMost);
    }
    (min, max)
}

/// Whether the driver decides the speeds itself (`setpolicy`) instead of a governor.
pub fn is_active_driver(driver: &str) -> bool {
    matches!(driver, "intel_pstate" | "amd-pstate-epp" | "amd_pstate_epp" | "longrun")
}

/// What a driver without a table rounds speeds to, in kHz. Intel's ratio is of 100 MHz.
pub fn driver_step(driver: &str) -> u32 {
    if driver.starts_with("intel_") { 100_000 } else { 0 }
}

/// The preferences that the kernel knows by name, with the register's value.
/// drivers/cpufreq/intel_pstate.c and amd-pstate.c, `epp_values`.
pub const PREFERENCES: [(&str, u8); 4] =
    [("performance", 0), ("balance_performance", 0x80), ("balance_power", 0xc0), ("power", 0xff)];

/// The bias's words with the register's value: arch/x86/kernel/cpu/intel_epb.c.
pub const BIASES: [(&str, u8); 5] =
    [("performance", 0), ("balance-performance", 4), ("normal", 6), ("balance-power", 8), ("power", 15)];

/// The unit of RAPL's power limits on almost every processor, uW.
pub(super) const LIMIT_UNIT_UW: u64 = 125_000;

/// A limit's field has 15 bits.
pub(super) const LIMIT_UNITS: u64 = 0x7fff;

/// The highest limit that a RAPL register can hold, uW.
pub const HIGHEST_LIMIT_UW: u64 = LIMIT_UNITS * LIMIT_UNIT_UW;

/// Where amd-pstate says that it sets the preferences itself.
pub const DYNAMIC_EPP: &str = "sys/devices/system/cpu/amd_pstate/dynamic_epp";

/// Whether amd-pstate sets the preferences itself and takes none.
pub fn owns_preferences(view: &dyn AttributeView) -> bool {
    view.text(DYNAMIC_EPP).is_some_and(|on| matches!(on.as_str(), "enabled" | "1"))
}

/// The preferences that the policy in a folder can have under the governor that it has in this view: what
/// `energy_performance_available_preferences` lists. amd-pstate narrows its list with the governor, so the list that
/// is there need not be the one that will be.
pub fn preferences(view: &dyn AttributeView, folder: &str) -> Vec<String> {
    let here = |name: &str| view.text(&format!("{folder}/{name}")).unwrap_or_default();
    let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let listed = words(&here("energy_performance_available_preferences"));
    let narrows = here("scaling_driver").starts_with("amd") && release(view) >= (6, 7);
    if listed.is_empty() || !narrows {
        return listed;
    }
    match (here("scaling_governor") == "performance", listed.as_slice()) {
        (true, _) => words("performance"),
        (false, [only]) if only == "performance" => {
            let default = ["default"].into_iter().filter(|_| release(view) >= (6, 11));
            default.chain(PREFERENCES.iter().map(|p| p.0)).map(str::to_owned).collect()
        }
        (false, _) => listed,
    }
}

/// Whether turbo is off and nobody but the firmware can turn it on: `no_turbo` reads 1 and the processor says that it has
/// no turbo (CPUID's `ida` is the firmware's bit 38 of IA32_MISC_ENABLE), or it has no speed above the nominal.
/// drivers/cpufreq/intel_pstate.c, `turbo_is_disabled` and `store_no_turbo`.
pub fn turbo_is_locked(view: &dyn AttributeView) -> bool {
    let number = |name: &str| view.text(&format!("sys/devices/system/cpu/intel_pstate/{name}"));
    if number("no_turbo").as_deref() != Some("1") {
        return false;
    }
    let flags = flags(view);
    number("turbo_pct").as_deref() == Some("0")
        || (!flags.is_empty() && !flags.split_whitespace().any(|f| f == "ida"))
}

/// A RAPL time window as the register can hold it: 2^y * (1 + z/4) units, the largest not above.
/// drivers/powercap/intel_rapl_common.c, `rapl_compute_time_window_core`; unit 976 us.
pub fn time_window_us(us: u64) -> u64 {
    const UNIT_US: u64 = 976;
    let units = us / UNIT_US;
    if units == 0 {
        return UNIT_US;
    }
    let y = units.ilog2().min(31);
    let z = ((units >> y.saturating_sub(2)) & 3).min(3) * u64::from(y >= 2);
    (1_u64 << y) * (4 + z) * UNIT_US / 4
}

/// The levels of the policy in a folder, with those of boost while it is on.
pub fn levels(view: &dyn AttributeView, folder: &str) -> Vec<u32> {
    let numbers = |name: &str| -> Vec<u32> {
        let text = view.text(&format!("{folder}/{name}")).unwrap_or_default();
        text.split_whitespace().filter_map(|n| n.parse().ok()).collect()
    };
    let mut levels = numbers("scaling_available_frequencies");
    if !levels.is_empty() {
        levels.extend(numbers("scaling_boost_frequencies"));
        levels.sort_unstable();
        levels.dedup();
    }
    levels
}

pub(super) fn has_flag(view: &dyn AttributeView, flag: &str) -> bool {
    flags(view).split_whitespace().any(|f| f == flag)
}

/// What the first processor says that it has.
pub(super) fn flags(view: &dyn AttributeView) -> String {
    let info = view.text("proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find_map(|l| l.strip_prefix("flags")?.trim_start().strip_prefix(':'));
    flags.unwrap_or("").trim().to_owned()
}
