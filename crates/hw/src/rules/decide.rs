//! Decisions that need more than a line of the table.

use super::ask::{Ask, LATER, Limit, TakenWrite, kernel_number, limit_khz};
use super::kernel::{
    PREFERENCES, Relation, driver_step, is_active_driver, levels, limits, owns_preferences, resolve,
};
use super::refusal::*;
use crate::cpus::set::CpuSet;

/// CPUs as an interrupt's affinity: kernel/irq/proc.c, `write_irq_affinity`.
pub(super) fn cpus(ask: &Ask, cpus: Option<CpuSet>) -> Result<TakenWrite, Refusal> {
    let cpus = cpus.ok_or(CPUS)?;
    let online = ask.view.text("sys/devices/system/cpu/online");
    match online.and_then(|list| CpuSet::parse(&list).ok()) {
        Some(online) if !cpus.iter().any(|cpu| online.contains(cpu)) => Err(CPUS_OFFLINE),
        _ => ask.as_is(ask.value),
    }
}

pub(super) fn governor(ask: &Ask) -> Result<TakenWrite, Refusal> {
    // drivers/cpufreq/cpufreq.c, store_scaling_governor: sscanf "%15s", then strncasecmp.
    let word: String = ask.value.split_whitespace().next().unwrap_or("").chars().take(15).collect();
    let word = word.to_ascii_lowercase();
    let driver = ask.here("scaling_driver").unwrap_or_default();
    if is_active_driver(&driver) {
        return match word.as_str() {
            // amd_pstate_epp_set_policy
            "performance" if owns_preferences(ask.view) && driver.starts_with("amd") => Err(GOVERNOR_DYNAMIC),
            "performance" | "powersave" => ask.as_is(word),
            _ => Err(ACTIVE_GOVERNOR),
        };
    }
    let available = ask.here("scaling_available_governors").unwrap_or_default();
    if word.is_empty() || !available.split_whitespace().any(|g| g == word) {
        return Err(UNKNOWN_GOVERNOR);
    }
    ask.as_is(word)
}

pub(super) fn frequency_limit(ask: &Ask) -> Result<TakenWrite, Refusal> {
    let release = ask.release();
    let limit = if ask.name == "scaling_min_freq" { Limit::Min } else { Limit::Max };
    let is_min = limit == Limit::Min;
    let asked = limit_khz(ask.raw, limit, release)?;
    let number = |name, or| ask.number(name).unwrap_or(or);
    let (min, max) = (number("scaling_min_freq", 0), number("scaling_max_freq", u32::MAX));
    // drivers/cpufreq/cpufreq.c up to 5.2, cpufreq_set_policy: compared before anything is cut.
    if release < (5, 3) && if is_min { asked > max } else { asked < min } {
        return Err(MIN_OVER_MAX);
    }
    let wanted = if is_min { (asked, max) } else { (min, asked) };
    let hw = (number("cpuinfo_min_freq", 0), number("cpuinfo_max_freq", u32::MAX));
    let (new_min, new_max) = limits(&levels(ask.view, ask.folder), hw, wanted, release);
    let note = match () {
        () if is_min && asked > max => "the minimum cannot be over the maximum: cut to it",
        () if asked < hw.0 || asked > hw.1 => "cut to what the hardware has",
        () => "rounded to a level of the driver's table",
    };
    ask.changed(if is_min { new_min } else { new_max }, note)
}

pub(super) fn setspeed(ask: &Ask) -> Result<TakenWrite, Refusal> {
    if ask.here("scaling_governor").is_none_or(|g| g != "userspace") {
        return Err(NOT_USERSPACE);
    }
    // drivers/cpufreq/cpufreq_userspace.c shows the speed that there is, in later kernels the one that was asked for.
    if ask.release() >= LATER {
        return ask.as_is(ask.whole()?);
    }
    let khz = ask.leading()?;
    let levels = levels(ask.view, ask.folder);
    let min = ask.number("scaling_min_freq").unwrap_or(0);
    let max = ask.number("scaling_max_freq").unwrap_or(u32::MAX);
    let step = driver_step(&ask.here("scaling_driver").unwrap_or_default());
    let set = resolve(&levels, step, min, max, khz, Relation::AtLeast);
    ask.changed(
        set,
        if khz < min || khz > max { "cut to the limits" } else { "the next level of the driver's table" },
    )
}

pub(super) fn preference(ask: &Ask) -> Result<TakenWrite, Refusal> {
    // drivers/cpufreq/intel_pstate.c and amd-pstate.c, store_energy_performance_preference
    let word = ask.value.split_whitespace().next().unwrap_or("");
    let driver = ask.here("scaling_driver").unwrap_or_default();
    let raw = kernel_number(word).ok().filter(|n| *n <= 255 && driver.starts_with("intel_"));
    let named = PREFERENCES.iter().find(|p| p.0 == word);
    let default = word == "default" && (driver.starts_with("intel_") || ask.release() >= (6, 11));
    if driver.starts_with("amd") && owns_preferences(ask.view) {
        return Err(EPP_DYNAMIC);
    }
    // A preference of its own, in place of dynamic_epp since 7.3.
    if word == "dynamic" && ask.word_of("energy_performance_available_preferences").is_some() {
        return ask.as_is(word);
    }
    if named.is_none() && raw.is_none() && !default {
        return Err(EPP_WORD);
    }
    let performance =
        is_active_driver(&driver) && ask.here("scaling_governor").is_some_and(|g| g == "performance");
    let value = named.map(|p| u64::from(p.1)).or(raw);
    if performance && value != Some(0) {
        return Err(EPP_PERFORMANCE);
    }
    match value {
        // Since boot the firmware's own value, which is balance_performance almost everywhere.
        None => ask.changed("balance_performance", "the firmware's default"),
        Some(n) => match PREFERENCES.iter().find(|p| u64::from(p.1) == n) {
            Some(p) => ask.changed(p.0, "shown by its name"),
            None => ask.as_is(n),
        },
    }
}

pub(super) fn sampling_rate(ask: &Ask) -> Result<TakenWrite, Refusal> {
    /// Two ticks of a kernel that ticks a thousand times a second; which one this is, no file tells.
    const TWO_TICKS_US: u32 = 2000;
    let asked = ask.leading()?;
    // drivers/cpufreq/cpufreq_governor.c, sampling_rate_store: CPUFREQ_DBS_MIN_SAMPLING_INTERVAL.
    if ask.release() >= (4, 15) && asked < TWO_TICKS_US {
        return Err(INTERVAL);
    }
    let least = ask.number("sampling_rate_min").unwrap_or(0);
    ask.changed(asked.max(least), "raised to sampling_rate_min")
}

pub(super) fn uncore(ask: &Ask) -> Result<TakenWrite, Refusal> {
    // drivers/platform/x86/intel/uncore-frequency: a ratio of 7 bits; the order is not checked.
    match ask.whole().map_err(|_| RATIO)? / 100_000 {
        0 | 128.. => Err(RATIO),
        ratio => ask.changed(ratio * 100_000, "rounded down to 100 MHz"),
    }
}
