//! The table.

use super::ask::{LATER, decimal, kernel_number, scanned};
use super::attribute::Attribute;
use super::decide::{cpus, frequency_limit, governor, preference, sampling_rate, setspeed, uncore};
use super::kernel::{
    BIASES, DYNAMIC_EPP, LIMIT_UNIT_UW, LIMIT_UNITS, has_flag, time_window_us, turbo_is_locked,
};
use super::refusal::*;
use crate::cpus::set::CpuSet;

const FREQ: &[Refusal] = &[NOT_A_NUMBER, TOO_LARGE, MIN_OVER_MAX, INACTIVE, INACTIVE_OLD, ABSENT];
const SMALL: &[Refusal] = &[NOT_A_NUMBER, OUT_OF_RANGE, INACTIVE, INACTIVE_OLD, ABSENT];
const SWITCH: &[Refusal] = &[NOT_A_SWITCH, ABSENT];
const NUMBER: &[Refusal] = &[NOT_A_NUMBER, TOO_LARGE, INACTIVE, INACTIVE_OLD, ABSENT];

macro_rules! policy {
    ($name:literal) => {
        concat!("sys/devices/system/cpu/cpufreq/policy*/", $name)
    };
}
macro_rules! old_policy {
    ($name:literal) => {
        &[concat!("sys/devices/system/cpu/cpu*/cpufreq/", $name)]
    };
}
macro_rules! tunable {
    ($name:literal) => {
        concat!("sys/devices/system/cpu/cpufreq/", $name)
    };
}
macro_rules! own_tunable {
    ($name:literal) => {
        &[
            concat!("sys/devices/system/cpu/cpufreq/policy*/", $name),
            concat!("sys/devices/system/cpu/cpu*/cpufreq/", $name),
        ]
    };
}
macro_rules! zone {
    ($name:literal) => {
        concat!("sys/class/powercap/*/", $name)
    };
}
macro_rules! zone_device {
    ($name:literal) => {
        &[
            concat!("sys/devices/virtual/powercap/*/*/", $name),
            concat!("sys/devices/virtual/powercap/*/*/*/", $name),
        ]
    };
}
macro_rules! thermal {
    ($name:literal) => {
        &[concat!("sys/devices/virtual/thermal/", $name)]
    };
}

/// In the order of the docs.
pub(super) static TABLE: &[Attribute] = &[
    Attribute {
        pattern: policy!("scaling_governor"),
        also: old_policy!("scaling_governor"),
        what: "the speed policy of a frequency domain",
        unit: "",
        values: "a word of scaling_available_governors; drivers that choose speeds themselves take performance and powersave",
        refusals: &[UNKNOWN_GOVERNOR, ACTIVE_GOVERNOR, GOVERNOR_DYNAMIC, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: governor,
    },
    Attribute {
        pattern: policy!("scaling_min_freq"),
        also: old_policy!("scaling_min_freq"),
        what: "the lowest speed that may be chosen",
        unit: "kHz",
        values: "any number; cut to the hardware's limits and to the maximum, rounded up to a level. Before Linux 5.3 more than the maximum is refused",
        refusals: FREQ,
        read_only: false,
        decide: frequency_limit,
    },
    Attribute {
        pattern: policy!("scaling_max_freq"),
        also: old_policy!("scaling_max_freq"),
        what: "the highest speed that may be chosen",
        unit: "kHz",
        values: "any number; cut to the hardware's limits, rounded down to a level; the minimum gives way. Before Linux 5.3 less than the minimum is refused",
        refusals: FREQ,
        read_only: false,
        decide: frequency_limit,
    },
    Attribute {
        pattern: policy!("scaling_setspeed"),
        also: old_policy!("scaling_setspeed"),
        what: "the speed itself, while the governor is userspace",
        unit: "kHz",
        values: "any number; cut to the limits, then the lowest level at or above it. Reads <unsupported> under other governors",
        refusals: &[NOT_USERSPACE, NOT_A_NUMBER, TOO_LARGE, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: setspeed,
    },
    Attribute {
        pattern: policy!("energy_performance_preference"),
        also: old_policy!("energy_performance_preference"),
        what: "what the hardware's own speed choice leans to",
        unit: "",
        values: "a word of energy_performance_available_preferences; intel_pstate also takes 0 (performance) to 255 (power)",
        refusals: &[EPP_PERFORMANCE, EPP_DYNAMIC, EPP_WORD, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: preference,
    },
    Attribute {
        pattern: policy!("boost"),
        also: old_policy!("boost"),
        what: "speeds over the nominal one, for one frequency domain (Linux 6.11)",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_SWITCH, NO_BOOST, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: |ask| {
            let on = ask.switch()?;
            // drivers/cpufreq/cpufreq.c, store_local_boost
            if ask.view.text("sys/devices/system/cpu/cpufreq/boost").is_some_and(|b| b == "0") {
                return Err(NO_BOOST);
            }
            ask.as_is(u8::from(on))
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpufreq/boost",
        also: &[],
        what: "speeds over the nominal one, for the whole machine; off lowers the hardware's and the set maxima",
        unit: "",
        values: "0 or 1",
        refusals: SWITCH,
        read_only: false,
        decide: |ask| ask.as_is(u8::from(ask.switch()?)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/status",
        also: &[],
        what: "who chooses the speeds: the driver (active), a governor (passive), nobody (off)",
        unit: "",
        values: "active, passive or off",
        refusals: &[STATUS_WORD, HWP_ON, ABSENT],
        read_only: false,
        decide: |ask| match ask.value {
            // drivers/cpufreq/intel_pstate.c, intel_pstate_update_status
            "off" if has_flag(ask.view, "hwp") => Err(HWP_ON),
            "off" if ask.here("status").is_some_and(|s| s == "off") => Err(STATUS_WORD),
            "active" | "passive" | "off" => ask.as_is(ask.value),
            _ => Err(STATUS_WORD),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/no_turbo",
        also: &[],
        what: "1 keeps the whole machine out of turbo",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_NUMBER, NO_TURBO, ABSENT],
        read_only: false,
        decide: |ask| {
            let on = ask.leading()?.min(1);
            if turbo_is_locked(ask.view) {
                return Err(NO_TURBO);
            }
            ask.as_is(on)
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/max_perf_pct",
        also: &[],
        what: "the highest speed of the whole machine, as a share of the highest turbo speed",
        unit: "%",
        values: "0 to 100, cut to at least min_perf_pct",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            let low = ask.number("min_perf_pct").unwrap_or(0).min(100);
            ask.changed(ask.leading()?.clamp(low, 100), "cut to min_perf_pct and 100")
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/min_perf_pct",
        also: &[],
        what: "the lowest speed of the whole machine, as a share of the highest turbo speed",
        unit: "%",
        values: "0 to 100, cut to what the hardware's lowest speed is and to max_perf_pct",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            let high = ask.number("max_perf_pct").unwrap_or(100).min(100);
            let cpu0 = |name: &str| {
                let text = ask.view.text(&format!("sys/devices/system/cpu/cpu0/cpufreq/{name}"))?;
                text.parse::<u64>().ok()
            };
            let low = match (cpu0("cpuinfo_min_freq"), cpu0("cpuinfo_max_freq")) {
                (Some(min), Some(max)) if max > 0 => (100 * min / max) as u32,
                _ => 0,
            };
            let cut = ask.leading()?.clamp(low.min(high), high);
            ask.changed(cut, "cut to the hardware's lowest speed and max_perf_pct")
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/hwp_dynamic_boost",
        also: &[],
        what: "whether the hardware's minimum is raised for a moment after waiting for I/O",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| ask.as_is(ask.whole()?.min(1)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/amd_pstate/status",
        also: &[],
        what: "who chooses the speeds: the hardware (active), a governor (passive), both (guided), nobody (disable)",
        unit: "",
        values: "active, passive, guided or disable",
        refusals: &[STATUS_WORD, ABSENT],
        read_only: false,
        decide: |ask| match ask.value {
            // drivers/cpufreq/amd-pstate.c, amd_pstate_update_status
            "active" | "passive" | "guided" | "disable" => ask.as_is(ask.value),
            _ => Err(STATUS_WORD),
        },
    },
    Attribute {
        pattern: DYNAMIC_EPP,
        also: &[],
        what: "whether the kernel itself sets the preferences by the power source (Linux 7.1 and 7.2)",
        unit: "",
        values: "enabled or disabled, or 0 or 1; not what it is already",
        refusals: &[NOT_A_SWITCH, DYNAMIC_SAME, ABSENT],
        read_only: false,
        decide: |ask| match (ask.switch()?, ask.here(ask.name).as_deref()) {
            (true, Some("enabled")) | (false, Some("disabled")) => Err(DYNAMIC_SAME),
            (on, _) => ask.as_is(if on { "enabled" } else { "disabled" }),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/amd_pstate/prefcore",
        also: &[],
        what: "whether the scheduler knows the better cores",
        unit: "",
        values: "enabled or disabled, at boot (amd_prefcore=)",
        refusals: &[READ_ONLY, ABSENT],
        read_only: true,
        decide: |_| Err(READ_ONLY),
    },
    Attribute {
        pattern: tunable!("ondemand/up_threshold"),
        also: own_tunable!("ondemand/up_threshold"),
        what: "load over which ondemand goes to the highest speed",
        unit: "%",
        values: "1 to 100 (11 to 100 before Linux 3.11)",
        refusals: SMALL,
        read_only: false,
        decide: |ask| ask.within(if ask.release() < (3, 11) { 11 } else { 1 }, 100),
    },
    Attribute {
        pattern: tunable!("ondemand/sampling_rate"),
        also: own_tunable!("ondemand/sampling_rate"),
        what: "how often ondemand looks at the load",
        unit: "us",
        values: "any number from two ticks of the kernel on; not below sampling_rate_min where that exists",
        refusals: &[NOT_A_NUMBER, INTERVAL, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: sampling_rate,
    },
    Attribute {
        pattern: tunable!("ondemand/sampling_down_factor"),
        also: own_tunable!("ondemand/sampling_down_factor"),
        what: "how many times longer ondemand stays at the highest speed",
        unit: "",
        values: "1 to 100000",
        refusals: SMALL,
        read_only: false,
        decide: |ask| ask.within(1, 100_000),
    },
    Attribute {
        pattern: tunable!("ondemand/powersave_bias"),
        also: own_tunable!("ondemand/powersave_bias"),
        what: "by how much ondemand aims below the speed it found",
        unit: "per mille",
        values: "0 to 1000, larger numbers are cut",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.changed(ask.leading()?.min(1000), "cut to 1000"),
    },
    Attribute {
        pattern: tunable!("ondemand/ignore_nice_load"),
        also: own_tunable!("ondemand/ignore_nice_load"),
        what: "whether nice processes count as no load",
        unit: "",
        values: "0 or 1",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.as_is(ask.leading()?.min(1)),
    },
    Attribute {
        pattern: tunable!("ondemand/io_is_busy"),
        also: own_tunable!("ondemand/io_is_busy"),
        what: "whether waiting for I/O counts as load",
        unit: "",
        values: "0 or 1",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.as_is(ask.leading()?.min(1)),
    },
    Attribute {
        pattern: tunable!("conservative/up_threshold"),
        also: own_tunable!("conservative/up_threshold"),
        what: "load over which conservative goes one step up",
        unit: "%",
        values: "over down_threshold, at most 100",
        refusals: &[NOT_A_NUMBER, THRESHOLDS, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: |ask| match ask.conservative().map_err(|_| THRESHOLDS)? {
            // drivers/cpufreq/cpufreq_conservative.c, up_threshold_store
            n if n > 100 || n <= ask.number("down_threshold").unwrap_or(0) => Err(THRESHOLDS),
            n => ask.as_is(n),
        },
    },
    Attribute {
        pattern: tunable!("conservative/down_threshold"),
        also: own_tunable!("conservative/down_threshold"),
        what: "load under which conservative goes one step down",
        unit: "%",
        values: "1 to 99, under up_threshold",
        refusals: &[NOT_A_NUMBER, THRESHOLDS, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: |ask| match ask.conservative().map_err(|_| THRESHOLDS)? {
            n if n == 0 || n >= ask.number("up_threshold").unwrap_or(101) || n > 100 => Err(THRESHOLDS),
            n => ask.as_is(n),
        },
    },
    Attribute {
        pattern: tunable!("conservative/freq_step"),
        also: own_tunable!("conservative/freq_step"),
        what: "how large conservative's steps are, as a share of the highest speed",
        unit: "%",
        values: "0 to 100, larger numbers are cut; 0 never moves",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.changed(ask.conservative()?.min(100), "cut to 100"),
    },
    Attribute {
        pattern: tunable!("conservative/sampling_down_factor"),
        also: own_tunable!("conservative/sampling_down_factor"),
        what: "on every how many samples conservative may go down",
        unit: "",
        values: "1 to 10",
        refusals: SMALL,
        read_only: false,
        decide: |ask| match ask.conservative().map_err(|_| OUT_OF_RANGE)? {
            n @ 1..=10 => ask.as_is(n),
            _ => Err(OUT_OF_RANGE),
        },
    },
    Attribute {
        pattern: tunable!("conservative/sampling_rate"),
        also: own_tunable!("conservative/sampling_rate"),
        what: "how often conservative looks at the load",
        unit: "us",
        values: "any number from two ticks of the kernel on; not below sampling_rate_min where that exists",
        refusals: &[NOT_A_NUMBER, INTERVAL, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: sampling_rate,
    },
    Attribute {
        pattern: tunable!("conservative/ignore_nice_load"),
        also: own_tunable!("conservative/ignore_nice_load"),
        what: "whether nice processes count as no load",
        unit: "",
        values: "0 or 1",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.as_is(ask.conservative()?.min(1)),
    },
    Attribute {
        pattern: tunable!("schedutil/rate_limit_us"),
        also: own_tunable!("schedutil/rate_limit_us"),
        what: "the shortest time between two changes of speed under schedutil",
        unit: "us",
        values: "any number",
        refusals: NUMBER,
        read_only: false,
        // kernel/sched/cpufreq_schedutil.c, rate_limit_us_store: base 10, and one error for all.
        decide: |ask| match decimal(ask.raw) {
            Ok(n) if n <= u64::from(u32::MAX) => ask.as_is(n),
            _ => Err(NOT_A_NUMBER),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/power/energy_perf_bias",
        also: &[],
        what: "what an Intel core leans to where it decides for itself (EPB)",
        unit: "",
        values: "0 (performance) to 15 (power), or performance, balance-performance, normal, balance-power, power",
        refusals: &[BIAS, ABSENT],
        read_only: false,
        decide: |ask| match BIASES.iter().find(|b| b.0 == ask.value) {
            Some(word) => ask.as_is(word.1),
            None => match kernel_number(ask.value) {
                Ok(n) if n <= 15 => ask.as_is(n),
                _ => Err(BIAS),
            },
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
        also: &[],
        what: "the longest wake-up time that idle states of this CPU may have",
        unit: "us",
        values: "a number; 0 for no limit; n/a for no latency at all",
        refusals: &[LATENCY, ABSENT],
        read_only: false,
        decide: |ask| match kernel_number(ask.raw) {
            // drivers/base/power/sysfs.c; the largest number means "no limit" inside and is refused.
            Ok(n) if n < i32::MAX as u64 => ask.as_is(n),
            Err(_) if ask.value == "n/a" => ask.as_is("n/a"),
            _ => Err(LATENCY),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
        also: &[],
        what: "1 keeps the CPU out of an idle state",
        unit: "",
        values: "0 or 1 (any other number counts as 1)",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| ask.as_is(ask.whole()?.min(1)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpuidle/current_governor",
        also: &[],
        what: "the policy that chooses idle states",
        unit: "",
        values: "a word of cpuidle/available_governors",
        refusals: &[UNKNOWN_IDLE_GOVERNOR, ABSENT],
        read_only: false,
        decide: |ask| match ask.word_of("available_governors") {
            Some(word) => ask.as_is(word),
            None => Err(UNKNOWN_IDLE_GOVERNOR),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/online",
        also: &[],
        what: "whether the CPU runs at all; the boot CPU mostly has no such file",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_SWITCH, LAST_CPU, ABSENT],
        read_only: false,
        decide: |ask| {
            let on = ask.switch()?;
            // kernel/cpu.c, _cpu_down: num_online_cpus() == 1
            let online = ask.view.text("sys/devices/system/cpu/online").unwrap_or_default();
            let alone = !online.contains([',', '-']);
            if !on && alone && ask.here(ask.name).is_some_and(|now| now == "1") {
                return Err(LAST_CPU);
            }
            ask.as_is(u8::from(on))
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/smt/control",
        also: &[],
        what: "whether sibling threads run; off takes all but one of each core offline",
        unit: "",
        values: "on, off, or forceoff (until the next boot)",
        refusals: &[SMT_WORD, SMT_FORCED, SMT_NONE, ABSENT],
        read_only: false,
        decide: |ask| {
            // kernel/cpu.c, __store_smt_control
            if !["on", "off", "forceoff"].contains(&ask.value) {
                return Err(SMT_WORD);
            }
            match ask.here("control").unwrap_or_default().as_str() {
                "forceoff" => Err(SMT_FORCED),
                "notsupported" | "notimplemented" => Err(SMT_NONE),
                _ => ask.as_is(ask.value),
            }
        },
    },
    Attribute {
        pattern: zone!("constraint_*_power_limit_uw"),
        also: zone_device!("constraint_*_power_limit_uw"),
        what: "a limit of a RAPL domain's mean power; the firmware may have locked it (EACCES)",
        unit: "uW",
        values: "any number, rounded down to the register's unit of 125000; not bounded by max_power_uw. What has more than the register's 15 bits loses the upper ones",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            // drivers/powercap/intel_rapl_common.c, rapl_write_data_raw: shifted, then masked.
            let units = kernel_number(ask.value)? / LIMIT_UNIT_UW;
            let note = match units > LIMIT_UNITS {
                true => "more than the register holds: its upper bits are lost",
                false => "rounded down to the register's unit, 1/8 W",
            };
            ask.changed((units & LIMIT_UNITS) * LIMIT_UNIT_UW, note)
        },
    },
    Attribute {
        pattern: zone!("constraint_*_time_window_us"),
        also: zone_device!("constraint_*_time_window_us"),
        what: "the time over which a RAPL limit is averaged",
        unit: "us",
        values: "any number, rounded down to what the register can say: 976 us times 2^y * (1 + z/4)",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            let us = kernel_number(ask.value)?;
            ask.changed(time_window_us(us), "rounded down to what the register can say")
        },
    },
    Attribute {
        pattern: zone!("enabled"),
        also: zone_device!("enabled"),
        what: "whether a RAPL domain's limits apply",
        unit: "",
        values: "0 or 1",
        refusals: SWITCH,
        read_only: false,
        decide: |ask| ask.as_is(u8::from(ask.switch()?)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
        also: &[],
        what: "the lowest speed of a package's uncore",
        unit: "kHz",
        values: "100000 to 12700000, rounded down to 100000",
        refusals: &[RATIO, ABSENT],
        read_only: false,
        decide: uncore,
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz",
        also: &[],
        what: "the highest speed of a package's uncore",
        unit: "kHz",
        values: "100000 to 12700000, rounded down to 100000",
        refusals: &[RATIO, ABSENT],
        read_only: false,
        decide: uncore,
    },
    Attribute {
        pattern: "sys/class/devfreq/*/governor",
        also: &[],
        what: "the policy that chooses a device's clock, such as the memory's",
        unit: "",
        values: "a word of available_governors beside it",
        refusals: &[UNKNOWN_DEVFREQ_GOVERNOR, ABSENT],
        read_only: false,
        // drivers/devfreq/devfreq.c, governor_store
        decide: |ask| match ask.word_of("available_governors") {
            Some(word) => ask.as_is(word),
            None => Err(UNKNOWN_DEVFREQ_GOVERNOR),
        },
    },
    Attribute {
        pattern: "sys/class/devfreq/*/upthreshold",
        also: &[],
        what: "Rockchip's dmc_ondemand: load of the memory above which it takes the highest clock",
        unit: "%",
        values: "any number; the governor leaves the clock alone where it is above 100 or below downdifferential",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| ask.as_is(ask.whole()?),
    },
    Attribute {
        pattern: "sys/class/devfreq/*/downdifferential",
        also: &[],
        what: "Rockchip's dmc_ondemand: how far below upthreshold the load must be before the clock falls",
        unit: "%",
        values: "any number; the governor leaves the clock alone where it is above upthreshold",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| ask.as_is(ask.whole()?),
    },
    Attribute {
        pattern: "sys/firmware/acpi/platform_profile",
        also: &[],
        what: "the firmware's own choice between power and performance",
        unit: "",
        values: "a word of platform_profile_choices",
        refusals: &[PROFILE_WORD, PROFILE_UNSUPPORTED, ABSENT],
        read_only: false,
        decide: |ask| {
            // drivers/acpi/platform_profile.c, profile_names
            const KNOWN: [&str; 8] = [
                "low-power",
                "cool",
                "quiet",
                "balanced",
                "balanced-performance",
                "performance",
                "max-power",
                "custom",
            ];
            match ask.word_of("platform_profile_choices") {
                Some(word) => ask.as_is(word),
                None if KNOWN.contains(&ask.value) => Err(PROFILE_UNSUPPORTED),
                None => Err(PROFILE_WORD),
            }
        },
    },
    Attribute {
        pattern: "sys/class/thermal/thermal_zone*/policy",
        also: thermal!("thermal_zone*/policy"),
        what: "what the kernel does when a zone gets hot",
        unit: "",
        values: "a word of available_policies",
        refusals: &[UNKNOWN_THERMAL, ABSENT],
        read_only: false,
        decide: |ask| match ask.word_of("available_policies") {
            Some(word) => ask.as_is(word),
            // drivers/thermal/thermal_core.c, __find_governor: no name is the kernel's default, mostly this one.
            None if ask.value.is_empty() => ask.changed("step_wise", "the kernel's default"),
            None => Err(UNKNOWN_THERMAL),
        },
    },
    Attribute {
        pattern: "sys/class/thermal/thermal_zone*/mode",
        also: thermal!("thermal_zone*/mode"),
        what: "whether the kernel acts on a zone's temperature",
        unit: "",
        values: "enabled or disabled",
        refusals: &[THERMAL_MODE, ABSENT],
        read_only: false,
        decide: |ask| match ask.value {
            "enabled" | "disabled" => ask.as_is(ask.value),
            _ => Err(THERMAL_MODE),
        },
    },
    Attribute {
        pattern: "sys/class/thermal/cooling_device*/cur_state",
        also: thermal!("cooling_device*/cur_state"),
        what: "how far a cooling device (fan, throttle) is turned up",
        unit: "",
        values: "0 to max_state",
        refusals: &[NOT_A_NUMBER, OUT_OF_RANGE, TOO_LARGE, ABSENT],
        read_only: false,
        // drivers/thermal/thermal_sysfs.c, cur_state_store: sscanf "%ld" in 6.12, kstrtol with base 10 in 7.2.
        decide: |ask| match if ask.release() >= LATER {
            decimal(ask.raw)
        } else {
            scanned(ask.raw, ask.release())
        }? {
            n if ask.release() >= LATER && n > i64::MAX as u64 => Err(TOO_LARGE),
            n if n > u64::from(ask.number("max_state").unwrap_or(0)) => Err(OUT_OF_RANGE),
            n => ask.as_is(n),
        },
    },
    Attribute {
        pattern: "proc/irq/*/smp_affinity_list",
        also: &[],
        what: "which CPUs may serve an interrupt",
        unit: "",
        values: "a list of CPUs, one of them online",
        refusals: &[CPUS, CPUS_OFFLINE, ABSENT],
        read_only: false,
        decide: |ask| cpus(ask, CpuSet::parse(ask.value).ok()),
    },
    Attribute {
        pattern: "proc/irq/default_smp_affinity",
        also: &["sys/devices/virtual/workqueue/cpumask"],
        what: "which CPUs serve interrupts to come, or kernel work that is bound to none",
        unit: "",
        values: "a mask of CPUs in hexadecimal, words of 32 bits with commas between, one of them online",
        refusals: &[CPUS, CPUS_OFFLINE, ABSENT],
        read_only: false,
        decide: |ask| cpus(ask, CpuSet::parse_mask(ask.value)),
    },
];
