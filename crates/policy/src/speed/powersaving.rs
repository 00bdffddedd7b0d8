//! `powersaving`: the policy of the 2021 OpenBSD battery study, as far as it can be known.
//!
//! It follows Solene Rapenne, "Measuring power efficiency of a CPU frequency scheduler on OpenBSD" (2021). The article
//! measures a changed kernel and does not print the change. All that is known is its effect: the same
//! build takes 1123 s under it and 871 s under `auto`, and its idle draws the same power.
//!
//! **So this is a model, and its one number is fitted.** The rule is that of
//! `openbsd-auto` in its form of 2021 (any hot beat earns five beats of
//! hold, lowest speed when idle), with a ceiling on the highest speed. The ceiling is 77.6 % of
//! the highest level since 871 s / 1123 s = 0.776: a build on all cores is hot nearly all of
//! the time, and so its time is inverse to the speed at the ceiling. What takes part of its time in memory
//! or on the disk would need a lower ceiling for the same result; the article does not say.
//!
//! 1. Ceiling = the level nearest to `ceiling` x the highest. Nearest and not below: the
//!    share is a fitted mean and levels are coarse.
//! 2. On battery (or `on=always`) the ceiling replaces the highest speed.
//! 3. The rest is `openbsd-auto`.
//!
//! Left out: whatever else the changed kernel did; nobody outside knows it.

use super::openbsd_auto::{Auto, COST_US, MAINS, Version};
use super::poll::cost;
use super::{Speed, SpeedPolicy};
use crate::{DomainInfo, Khz, Param, ParamKind};
use alloc::boxed::Box;

/// Mean speed of the build against `auto`'s in %: 871 s / 1123 s. Fitted.
const CEILING_PERCENT: f64 = 77.6;

/// What rests on what.
pub(super) const APPROXIMATION: &str =
    "the changed kernel was not published; rests on two build times, 871 s and 1123 s";

/// Step 1, with the ceiling in thousandths.
fn ceiling(domain: &DomainInfo, thousandths: u64) -> Khz {
    domain.nearest(Khz((u64::from(domain.fastest().0) * thousandths / 1000) as u32))
}

/// A bounded auto.
pub(super) static POWERSAVING: Speed = Speed {
    name: "powersaving",
    summary: "openbsd-auto under a ceiling fitted to the 2021 battery study",
    follows: "S. Rapenne, Measuring power efficiency of a CPU frequency scheduler on OpenBSD (2021); a fitted model",
    source: include_str!("powersaving.rs"),
    params: &[
        Param {
            name: "ceiling",
            help: "highest speed while saving, of the machine's highest (the default is fitted)",
            kind: ParamKind::Number { unit: "%", min: 0.0, max: 100.0, default: CEILING_PERCENT },
        },
        Param { name: "on", help: "when the ceiling holds", kind: ParamKind::Choice(&["battery", "always"]) },
        MAINS,
        cost(COST_US),
    ],
    build: |p, s| -> Box<dyn SpeedPolicy> {
        let thousandths = (s.number("ceiling") * 10.0) as u64;
        let bounded = p.domains.iter().map(|d| ceiling(d, thousandths)).collect();
        let auto = Auto::new(p, s, Version::Of2021, bounded);
        Box::new(if s.count("on") == 0 { auto } else { auto.always_bounded() })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PowerSource;
    use crate::speed::openbsd_auto::BEAT_NS;
    use crate::speed::testing::{Rig, platform};

    const LEVELS: &[u32] = &[2400, 2100, 1800, 800];

    #[test]
    fn the_ceiling_holds_on_battery() {
        let mut r = Rig::new(platform(1, LEVELS), &POWERSAVING, "", true);
        r.source = PowerSource::Battery;
        assert_eq!(r.poll(BEAT_NS, &[1000]), 1800, "0.776 x 2400 = 1862");
        assert_eq!(r.polls_until(800, BEAT_NS, &[0]), 5);
        r.source = PowerSource::Mains;
        assert_eq!(r.poll(BEAT_NS, &[0]), 2400);
    }

    #[test]
    fn always_means_on_mains_too() {
        let mut r = Rig::new(platform(1, LEVELS), &POWERSAVING, "on=always,ceiling=90", true);
        r.source = PowerSource::Mains;
        assert_eq!(r.poll(BEAT_NS, &[0]), 2100);
    }

    #[test]
    fn ceilings_are_levels() {
        let domain = &platform(1, LEVELS).domains[0];
        assert_eq!(ceiling(domain, 776), Khz(1_800_000));
        assert_eq!(ceiling(domain, 0), Khz(800_000));
        assert_eq!(ceiling(domain, 1000), Khz(2_400_000));
    }
}
