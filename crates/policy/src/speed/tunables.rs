//! What the kernel's governors call the parameters of ours: either name is taken wherever a parameter is given.

use super::governor::sampling_ns;
use crate::{DomainInfo, Param, ParamKind, Platform, Settings};
use alloc::{format, string::String, vec::Vec};

/// Governor, our name, the kernel's name.
const NAMES: &[(&str, &str, &str)] = &[
    ("schedutil", "rate_limit", "rate_limit_us"),
    ("ondemand", "up", "up_threshold"),
    ("ondemand", "rate", "sampling_rate"),
    ("ondemand", "down_factor", "sampling_down_factor"),
    ("ondemand", "io_is_busy", "io_is_busy"),
    ("ondemand", "bias", "powersave_bias"),
    ("conservative", "up", "up_threshold"),
    ("conservative", "down", "down_threshold"),
    ("conservative", "step", "freq_step"),
    ("conservative", "rate", "sampling_rate"),
    ("conservative", "down_factor", "sampling_down_factor"),
    ("burst", "busy", "busy"),
    ("burst", "idle", "idle"),
];

/// The kernel's name of a parameter; none where the kernel has no such tunable.
pub fn kernel_name(governor: &str, param: &str) -> Option<&'static str> {
    NAMES.iter().find(|(g, ours, kernel)| *g == governor && (*ours == param || *kernel == param)).map(|n| n.2)
}

/// Our name of a kernel's tunable.
pub fn our_name(governor: &str, tunable: &str) -> Option<&'static str> {
    NAMES.iter().find(|(g, _, kernel)| *g == governor && *kernel == tunable).map(|n| n.1)
}

/// What the kernel chooses for a tunable where nobody has, for a parameter of ours whose default says no more than that: in us.
pub fn kernels_choice_us(governor: &str, param: &str, platform: &Platform) -> Option<f64> {
    let delays = platform.domains.iter().map(DomainInfo::transition_delay_ns);
    match (governor, param) {
        ("schedutil", "rate_limit") => Some(delays.max()? as f64 * 1e-3),
        ("ondemand" | "conservative", "rate") => Some(sampling_ns(platform, 0) as f64 * 1e-3),
        _ => None,
    }
}

/// Sampling periods that kernels choose where their driver states no latency or a delay of its own: half a millisecond to ten
/// (`cpufreq_policy_transition_delay_us` of Linux 4.14 to 6.12, intel_pstate, amd-pstate), two ticks of 1000 to 100 Hz, ten of 250 Hz.
const CHOSEN_US: [u64; 11] = [500, 1000, 2000, 4000, 5000, 6666, 8000, 10_000, 20_000, 40_000, 80_000];

/// Whether a kernel may have chosen this rate by itself, for a driver that states this latency: half as much again (since 6.8), or a
/// thousand times it and at most 10 ms (before).
pub fn is_kernels_rate(us: u64, latency_ns: Option<u64>) -> bool {
    let stated = latency_ns.unwrap_or(0);
    let by_latency = [(stated + stated / 2) / 1000, stated, stated.min(10_000)];
    CHOSEN_US.contains(&us) || (stated > 0 && by_latency.contains(&us))
}

/// A governor's tunables as parameters of ours, `up=90`: those that are not as the kernel has them where nobody has chosen.
/// `tunables` are names and values of the kernel's files, `latency_ns` what the driver states. A rate that a kernel may have
/// chosen by itself is not told from one that a user has.
pub fn chosen(governor: &str, tunables: &[(String, String)], latency_ns: Option<u64>) -> Vec<String> {
    let Some(speed) = super::find(governor) else { return Vec::new() };
    let usual = Settings::defaults(speed.params);
    let one = |param: &Param| {
        let kernels = kernel_name(governor, param.name)?;
        let value = tunables.iter().find(|(name, _)| name == kernels)?.1.trim();
        // What ours does not take, ours does not do.
        let pair = format!("{}={}", param.name, number(param, value)?);
        let set = Settings::parse(speed.params, &pair).ok()?;
        let is_rate = matches!(param.name, "rate" | "rate_limit");
        let kernels_own = is_rate && value.parse().is_ok_and(|us| is_kernels_rate(us, latency_ns));
        (set.number(param.name) != usual.number(param.name) && !kernels_own).then_some(pair)
    };
    speed.params.iter().filter_map(one).collect()
}

/// A kernel's number as a parameter's value: of a choice its word.
fn number<'v>(param: &Param, value: &'v str) -> Option<&'v str> {
    match param.kind {
        ParamKind::Choice(words) => words.get(value.parse::<usize>().ok()?).copied(),
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_has_chosen_is_told() {
        let files = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let usual = [
            ("sampling_rate", "10000"),
            ("up_threshold", "95"),
            ("io_is_busy", "0"),
            ("ignore_nice_load", "1"),
        ];
        assert_eq!(chosen("ondemand", &files(&usual), Some(10_000)), [] as [&str; 0]);
        let own = [
            ("sampling_rate", "123456"),
            ("up_threshold", "70"),
            ("io_is_busy", "1"),
            ("powersave_bias", "-5"),
        ];
        assert_eq!(
            chosen("ondemand", &files(&own), Some(10_000)),
            ["up=70", "rate=123456", "io_is_busy=yes"]
        );
        let limit = |us: &str, latency| chosen("schedutil", &files(&[("rate_limit_us", us)]), latency);
        // 1.5 times 20 us; a thousand times 7 us.
        assert_eq!((limit("30", Some(20_000)), limit("7000", Some(7_000))), (Vec::new(), Vec::new()));
        assert_eq!(limit("30", None), ["rate_limit=30"]);
    }

    #[test]
    fn our_names_are_those_of_parameters() {
        for (governor, ours, _) in NAMES {
            let policy = crate::speed::find(governor).expect("a policy");
            assert!(policy.params.iter().any(|p| p.name == *ours), "{governor}:{ours}");
        }
        assert_eq!(
            (kernel_name("ondemand", "up"), our_name("ondemand", "up_threshold")),
            (Some("up_threshold"), Some("up"))
        );
        assert_eq!(kernel_name("ondemand", "up_threshold"), Some("up_threshold"));
        assert_eq!(
            (kernel_name("ondemand", "cost"), our_name("conservative", "powersave_bias")),
            (None, None)
        );
    }
}
