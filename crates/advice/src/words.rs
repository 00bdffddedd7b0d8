//! Policies in words, for people who do not write them.

use wattwise_policy::limits::Bound;
use wattwise_replay::spec::{PolicySpec, dram_text};

/// What a policy is beside the reference, from their texts: `clock limited to 90 %` where only that differs, else
/// `schedutil, clock limited to 90 %`; `None` where a text is no policy, or words say no more than the text.
pub fn in_words(policy: &str, reference: &str) -> Option<String> {
    let (own, reference) = (PolicySpec::parse(policy).ok()?, PolicySpec::parse(reference).ok()?);
    let limits = limits(&own);
    let same = without_limits(&own) == without_limits(&reference);
    let words = match (same && reference.text == without_limits(&reference), limits.is_empty()) {
        (true, false) => limits.join(", "),
        (_, true) => speed(&own)?,
        (false, false) => {
            let speed = speed(&own).unwrap_or_else(|| without_limits(&own));
            format!("{speed}, {}", limits.join(", "))
        }
    };
    (words != policy).then_some(words)
}

/// What a policy's name is made of, where a line of it may end: each part but the first begins with `+` or `,`.
pub fn parts(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| ['+', ','].contains(c))
            .map_or(rest.len(), |(at, _)| at);
        let part;
        (part, rest) = rest.split_at(end);
        (!part.is_empty()).then_some(part)
    })
}

/// A policy's text without the user's limits.
fn without_limits(policy: &PolicySpec) -> String {
    policy.without_limits().text
}

/// The speed policy in words, where the text is none.
fn speed(policy: &PolicySpec) -> Option<String> {
    let text = without_limits(policy);
    let epp = |name: &str| {
        let rest = text.strip_prefix(name)?;
        match rest.strip_prefix(":epp=") {
            Some(epp) if !epp.contains(['+', ',']) => Some(format!("EPP {epp}")),
            None if rest.is_empty() => Some("EPP balance_performance".to_owned()),
            _ => None,
        }
    };
    match text.as_str() {
        "performance" => Some("performance governor".into()),
        "powersave" => Some("lowest speed".into()),
        name if ["schedutil", "ondemand", "conservative"].contains(&name) => Some(format!("{name} governor")),
        _ => epp("hwp").or_else(|| epp("amd-pstate-epp")),
    }
}

/// The user's limits, one phrase each.
fn limits(policy: &PolicySpec) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(max) = policy.limits.max {
        words.push(format!("clock limited to {}", bound(max)));
    }
    if let Some(min) = policy.limits.min {
        words.push(format!("clock at least {}", bound(min)));
    }
    if policy.limits.no_boost {
        words.push("no boost".into());
    }
    if let Some(deepest) = &policy.deepest {
        words.push(format!("no C-state deeper than {deepest}"));
    }
    if let Some(ns) = policy.latency_ns {
        words.push(format!("wake-ups within {} us", ns as f64 / 1e3));
    }
    if let Some(uw) = policy.limits.power_uw {
        words.push(format!("packages limited to {} W", uw as f64 / 1e6));
    }
    if let Some(dram) = &policy.dram {
        words.push(match dram.dram.name {
            "performance" => "memory at its highest clock".into(),
            "powersave" => "memory at its lowest clock".into(),
            _ => format!("memory governor {}", dram_text(dram)),
        });
    }
    words
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Share(0) => "its lowest".into(),
        Bound::Share(thousandths) => format!("{} %", f64::from(thousandths) / 1e3),
        Bound::Khz(khz) => format!("{} MHz", f64::from(khz.0) / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_told_beside_the_reference() {
        let of = |policy, reference| in_words(policy, reference);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("hwp:epp=102+max=90%", "hwp:epp=102"), some("clock limited to 90 %"));
        assert_eq!(of("schedutil+dram=performance", "schedutil"), some("memory at its highest clock"));
        assert_eq!(
            of("schedutil+max=80%+dram=dmc_ondemand:up=20", "schedutil"),
            some("clock limited to 80 %, memory governor dmc_ondemand:up=20")
        );
        assert_eq!(of("hwp:epp=102+power=15W", "hwp:epp=102"), some("packages limited to 15 W"));
        assert_eq!(of("hwp:epp=102", "hwp:epp=102"), some("EPP 102"));
        assert_eq!(of("hwp", "hwp:epp=102"), some("EPP balance_performance"));
        assert_eq!(of("performance+noboost", "hwp:epp=102"), some("performance governor, no boost"));
        assert_eq!(
            of("schedutil+max=2600MHz+cmax=C1E", "schedutil"),
            some("clock limited to 2600 MHz, no C-state deeper than C1E")
        );
        assert_eq!(
            of("schedutil+max=60%", "schedutil+max=80%"),
            some("schedutil governor, clock limited to 60 %")
        );
        assert_eq!(of("burst:busy=2", "schedutil"), None);
        assert_eq!(of("MyPolicy()", "schedutil"), None);
    }
}
