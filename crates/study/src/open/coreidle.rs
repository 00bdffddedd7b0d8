//! Study 002 had no meter for the whole machine, and quotes a range for what hotplug costs.

use super::Open;

/// What a notebook of 2011 draws beside its processor, in W: display, memory, disk.
const REST_W: [f64; 3] = [6.0, 12.0, 20.0];
/// What taking a CPU off line or bringing it back costs, in s: the study's range.
const HOTPLUG_S: [f64; 2] = [0.1, 1.0];
/// The governor's period in the study, in s.
const PERIOD_S: f64 = 0.25;
/// CPUs of the machine that a light load leaves idle.
const IDLED: f64 = 3.0;

/// `watts`: for each load's name and seed the processor's power under the default scheduler and under coreidle.
pub(crate) fn questions(watts: &[(&'static str, f64, f64)]) -> Vec<Open> {
    let saved = |load: &str| -> Vec<f64> {
        let of = watts.iter().filter(|w| w.0 == load);
        of.flat_map(|w| REST_W.map(|rest| (w.1 - w.2) / (w.1 + rest) * 100.0)).collect()
    };
    let rest = "The processor's saving by the study's formula, over eight runs and 6, 12 and 20 W for display, memory and disk.";
    let unplugged: Vec<f64> = HOTPLUG_S.iter().map(|s| s * IDLED).collect();
    let periods: Vec<f64> = HOTPLUG_S.iter().map(|s| s * IDLED / PERIOD_S).collect();
    vec![
        Open::tried(
            "What of the whole machine's power does coreidle save under cyclictest?",
            rest,
            "%",
            &saved("cyclictest"),
        ),
        Open::tried(
            "What of the whole machine's power does coreidle save under tbench?",
            rest,
            "%",
            &saved("tbench"),
        ),
        Open::tried(
            "What would hotplug cost in the place of the mask?",
            "Three CPUs taken off line, one after the other, at the study's 100 ms to 1 s each.",
            "s until the mask's effect is there",
            &unplugged,
        ),
        Open::tried(
            "How often does the governor decide meanwhile?",
            "The same time over the study's period of 250 ms: it is to decide once.",
            "decisions",
            &periods,
        ),
    ]
}
