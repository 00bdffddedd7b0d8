//! What `wattwise calibrate` found in the guest, against the figures that vpower was given.
//!
//! vpower meters without noise, so what differs is the calibration's own doing: windows whose work is not what was asked for,
//! C-states that were not taken, a fit that leans on its estimate.

use crate::files::read;
use crate::guest::Returned;
use crate::verdict::JudgeTold;
use serde_json::Value;
use std::path::Path;

/// Microwatts of a busy CPU, by speed in kHz.
const BUSY: [(u32, u32); 5] = [
    (2_400_000, 6_000_000),
    (2_000_000, 4_300_000),
    (1_600_000, 3_000_000),
    (1_200_000, 2_050_000),
    (800_000, 1_400_000),
];
/// Microwatts of a CPU in each C-state, with its latency and target in us.
const IDLE: [(&str, u32, u32, u32); 3] =
    [("C1", 900_000, 2, 2), ("C3", 420_000, 80, 250), ("C6", 150_000, 200, 800)];
/// Microwatts of the package beside its CPUs, awake and asleep.
const PACKAGE: (u32, u32) = (2_500_000, 800_000);
/// A figure may be so far off.
const OFF_PERCENT: f64 = 3.0;
/// Guest time that it may take.
const LONGEST_S: f64 = 600.0;

/// For `insmod vpower.ko`.
pub(crate) fn parameters() -> String {
    let list = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>().join(",");
    format!(
        "khz={} busy_uw={} idle={} idle_uw={} idle_latency_us={} idle_target_us={} uncore_uw={} asleep_uw={}",
        list(&mut BUSY.iter().map(|(khz, _)| khz.to_string())),
        list(&mut BUSY.iter().map(|(_, uw)| uw.to_string())),
        list(&mut IDLE.iter().map(|s| s.0.to_owned())),
        list(&mut IDLE.iter().map(|s| s.1.to_string())),
        list(&mut IDLE.iter().map(|s| s.2.to_string())),
        list(&mut IDLE.iter().map(|s| s.3.to_string())),
        PACKAGE.0,
        PACKAGE.1,
    )
}

/// The machine file's names of all that vpower was given, with the watts.
fn given() -> Vec<(String, f64)> {
    let busy = BUSY.iter().map(|(khz, uw)| (format!("kind.core.speeds.{}.busy_w", khz / 1000), *uw));
    let idle = IDLE.iter().map(|s| (format!("kind.core.idle.{}.watts", s.0), s.1));
    let package = [("package.uncore_w".to_owned(), PACKAGE.0), ("package.PC6.watts".to_owned(), PACKAGE.1)];
    busy.chain(idle).chain(package).map(|(what, uw)| (what, f64::from(uw) * 1e-6)).collect()
}

pub(crate) fn judge(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let text = read(&returned.folder.join("calibrated.json"))?;
    let found: Value = serde_json::from_str(&text).map_err(|e| format!("calibrated.json: {e}"))?;
    let took = returned.lines.iter().find_map(|l| l.get("took_s")?.as_f64());
    let took = took.ok_or("how long it took is not told")?;
    if took > LONGEST_S {
        return Err(format!("it took {took:.0} s of the guest's time, {LONGEST_S:.0} are allowed"));
    }
    let mut told = JudgeTold::default();
    told.figures.push(format!("{} windows in {took:.0} s of the guest's time", found["windows"]));
    told.checks.push(format!("within {LONGEST_S:.0} s"));
    let mut off = Vec::new();
    for (what, watts) in given() {
        let percent = judged(&found, &what, watts)?;
        told.figures.push(format!("{what}: {watts:.3} W, off by {percent:+.2} %"));
        if percent.abs() > OFF_PERCENT {
            off.push(format!("{what} is off by {percent:+.2} %"));
        }
        told.checks.push(what);
    }
    if off.is_empty() { Ok(told) } else { Err(off.join("; ")) }
}

/// By how much a fitted figure is off, in per cent.
fn judged(found: &Value, what: &str, watts: f64) -> Result<f64, String> {
    let figures = found["figures"].as_array().ok_or("calibrated.json has no figures")?;
    let figure = figures.iter().find(|f| f["figure"] == what);
    let figure = figure.ok_or_else(|| format!("{what} was not found"))?;
    if figure["standing"] != "fitted" {
        return Err(format!("{what} is a {}, not fitted", figure["standing"]));
    }
    let value = figure["value"].as_f64().ok_or_else(|| format!("{what} has no value"))?;
    Ok((value / watts - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged() {
        let found = serde_json::json!({"figures": [
            {"figure": "package.uncore_w", "value": 2.6, "standing": "fitted"},
            {"figure": "kind.core.idle.C1.watts", "value": 0.9, "standing": "guess"},
        ]});
        assert!((judged(&found, "package.uncore_w", 2.5).expect("fitted") - 4.0).abs() < 1e-9);
        assert!(judged(&found, "kind.core.idle.C1.watts", 0.9).is_err_and(|e| e.contains("guess")));
        assert!(judged(&found, "kind.core.idle.C3.watts", 0.9).is_err());
    }
}
