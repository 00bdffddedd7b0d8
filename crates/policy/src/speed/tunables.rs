//! What the kernel's governors call the parameters of ours: either name is taken wherever a parameter is given.

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

#[cfg(test)]
mod tests {
    use super::*;

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
