//! Why the kernel does not take a value: every refusal, with its error and what to do.

use rustix::io::Errno;

/// Why the kernel does not take a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What the write fails with.
    pub errno: Errno,
    /// In words: why, and what to do.
    pub rule: &'static str,
    /// A short name that stays the same.
    pub id: &'static str,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.rule)
    }
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $errno:ident, $id:literal, $rule:literal;)*) => {
        $($(#[$doc])* pub(super) const $name: Refusal = Refusal { errno: Errno::$errno, rule: $rule, id: $id };)*
        /// Every refusal of the table.
        pub const REFUSALS: &[Refusal] = &[$($name),*];
    };
}

refusals! {
    UNKNOWN = ACCESS, "unknown-attribute",
        "this is not an attribute whose rules wattwise knows; nothing is written to it";
    ABSENT = NOENT, "absent",
        "this machine does not have the attribute: its driver, kernel or hardware lacks it, or the CPU is offline";
    READ_ONLY = ACCESS, "read-only",
        "the attribute can only be read; it is chosen at boot or by the firmware";
    INACTIVE = BUSY, "policy-inactive",
        "every CPU of this frequency domain is offline; bring one online first (set --online)";
    INACTIVE_OLD = INVAL, "policy-inactive",
        "every CPU of this frequency domain is offline; bring one online first (set --online)";
    NOT_A_NUMBER = INVAL, "not-a-number",
        "a whole number is expected";
    TOO_LARGE = RANGE, "too-large",
        "the number has more digits than the kernel takes";
    INTERVAL = INVAL, "sampling-rate",
        "two ticks of the kernel at least: 8000 us where it ticks 250 times a second";
    NOT_A_SWITCH = INVAL, "not-a-switch",
        "0 or 1 is expected";
    OUT_OF_RANGE = INVAL, "out-of-range",
        "the number is outside the range that the kernel takes";
    UNKNOWN_GOVERNOR = INVAL, "unknown-governor",
        "the kernel has no such governor; scaling_available_governors lists what it has (a module may need loading)";
    ACTIVE_GOVERNOR = INVAL, "active-driver-governor",
        "this driver chooses speeds itself and knows only performance and powersave; set its status to passive for the others";
    MIN_OVER_MAX = INVAL, "min-over-max",
        "the minimum would be over the maximum; raise the maximum first, or lower the minimum first";
    NOT_USERSPACE = INVAL, "not-userspace",
        "a speed can only be set while the governor is userspace; set that governor first";
    NO_BOOST = INVAL, "boost-off-globally",
        "boost is off for the whole machine; write 1 to cpufreq/boost first";
    EPP_PERFORMANCE = BUSY, "epp-performance-governor",
        "under the performance governor the preference is fixed at performance; set the governor to powersave first";
    EPP_DYNAMIC = BUSY, "epp-dynamic",
        "the kernel itself sets the preference by the power source (amd_pstate/dynamic_epp is enabled) and takes none; write 'disabled' to /sys/devices/system/cpu/amd_pstate/dynamic_epp first";
    GOVERNOR_DYNAMIC = BUSY, "governor-dynamic-epp",
        "while the kernel itself sets the preference (amd_pstate/dynamic_epp is enabled) it does not take the governor performance; write 'disabled' to /sys/devices/system/cpu/amd_pstate/dynamic_epp first";
    DYNAMIC_SAME = INVAL, "dynamic-epp-same",
        "dynamic_epp is what it was asked to become; the kernel refuses that";
    EPP_WORD = INVAL, "epp-unknown",
        "no such preference; energy_performance_available_preferences lists the words, and some drivers take 0 to 255";
    HWP_ON = BUSY, "hwp-stays-on",
        "the hardware keeps choosing speeds (HWP) and would be left without a driver; choose passive instead of off";
    STATUS_WORD = INVAL, "unknown-status",
        "the driver knows no such mode (intel_pstate: active, passive, off; amd_pstate: active, passive, guided, disable)";
    NO_TURBO = PERM, "turbo-disabled",
        "turbo is disabled by the firmware or the processor has none; it can only be enabled in the firmware's setup";
    THRESHOLDS = INVAL, "threshold-order",
        "up_threshold must stay above down_threshold, and both within 1 to 100";
    CPUS = INVAL, "cpus",
        "CPUs are expected: a list such as 0-3,8, or a mask such as 0000010f, as the attribute shows them";
    CPUS_OFFLINE = INVAL, "cpus-offline",
        "none of these CPUs is online";
    BIAS = INVAL, "epb-range",
        "0 (performance) to 15 (power), or performance, balance-performance, normal, balance-power, power";
    UNKNOWN_IDLE_GOVERNOR = INVAL, "unknown-idle-governor",
        "the kernel has no such idle governor; cpuidle/available_governors lists what it has";
    UNKNOWN_DEVFREQ_GOVERNOR = INVAL, "unknown-devfreq-governor",
        "the kernel has no such governor of this device; available_governors lists what it has";
    LATENCY = INVAL, "latency-form",
        "a latency of up to 2147483646 us (35 minutes), 0 for no limit, or n/a for no latency at all (polling)";
    LAST_CPU = BUSY, "last-cpu",
        "the last CPU that can run cannot be taken offline";
    RATIO = INVAL, "uncore-ratio",
        "100000 to 12700000 kHz, in steps of 100000";
    PROFILE_WORD = INVAL, "profile-unknown",
        "no such platform profile; platform_profile_choices lists what the firmware offers";
    PROFILE_UNSUPPORTED = OPNOTSUPP, "profile-unsupported",
        "the firmware does not offer this platform profile; platform_profile_choices lists what it offers";
    UNKNOWN_THERMAL = INVAL, "thermal-policy-unknown",
        "no such thermal governor; available_policies lists what the kernel has";
    THERMAL_MODE = INVAL, "thermal-mode",
        "enabled or disabled is expected";
    SMT_WORD = INVAL, "smt-word",
        "on, off or forceoff is expected";
    SMT_FORCED = PERM, "smt-forced-off",
        "sibling threads were switched off for good (forceoff); only a restart brings them back";
    SMT_NONE = NODEV, "smt-none",
        "the processor has no sibling threads, or the kernel cannot switch them";
}
