//! Study 000's table 1, three times: as published, in the lab, in the model of the lab's machine.
//!
//! Published and lab differ in more than the place: the R51's tick came at 100 Hz and its changes of speed
//! took up to 3 ms, so the burst governor's four busy ticks take 30 to 40 ms there and 12 to 16 ms here.
//! The model is given the lab's machine; so lab and model must agree, and only the order of the published.

use crate::guest::Returned;
use crate::machine;
use crate::verdict::JudgeTold;
use serde_json::Value;
use std::path::Path;
use wattwise_figure::mean_sd;
use wattwise_study::thomson;

/// In `lab/`, without its `.toml`.
pub(crate) const MACHINE: &str = "thinkpad";
/// The job at the highest speed.
pub(crate) const JOB_US: u64 = (thomson::JOB_MS * 1000.0) as u64;
/// Lab and model may be this far apart in their means.
const APART_PERCENT: f64 = 5.0;

/// Name in the guest, the model's policy, the published row.
const CASES: &[(&str, &str, Option<&str>)] = &[
    ("performance", "performance", Some("performance")),
    ("burst", "burst", Some("burst")),
    ("powerd-hiadaptive", "powerd:mode=hiadaptive", Some("powerd")),
    ("powerd-printed", "powerd-2010", Some("powerd")),
];

pub(crate) fn judge(root: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let mut told = JudgeTold::default();
    let mut lab = Vec::new();
    for &(name, policy, row) in CASES {
        let of = |l: &Value| {
            (l.get("policy")?.as_str()? == name).then_some(())?;
            Some(l.get("ns")?.as_f64()? / 1e6)
        };
        let times: Vec<f64> = returned.lines.iter().filter_map(of).collect();
        if times.len() < 10 {
            return Err(format!("{name}: only {} trials", times.len()));
        }
        let model =
            thomson::run_times(machine::described(root, MACHINE)?, policy).map_err(|e| e.to_string())?;
        let (mean, sd) = mean_sd(&times);
        let (model_mean, model_sd) = mean_sd(&model);
        let published = row.and_then(thomson::published).map_or(String::new(), |(mean, sd)| {
            format!("; published, on another machine, {mean:.1} +- {sd:.1}")
        });
        told.figures.push(format!(
            "{name}: lab {mean:.1} +- {sd:.1} ms, model {model_mean:.1} +- {model_sd:.1}{published}"
        ));
        if (mean / model_mean - 1.0).abs() * 100.0 > APART_PERCENT {
            return Err(format!("{name}: {mean:.1} ms in the lab, {model_mean:.1} ms in the model"));
        }
        told.checks.push(format!("{name}: lab and model within {APART_PERCENT} %"));
        lab.push((name, mean, sd));
    }
    for pair in lab.windows(2) {
        if pair[0].1 >= pair[1].1 {
            return Err(format!("{} is no faster than {}", pair[0].0, pair[1].0));
        }
    }
    told.checks.push("the published order".into());
    if lab[1].2 >= lab[2].2.min(lab[3].2) {
        return Err("burst's times spread as far as powerd's".into());
    }
    told.checks.push("burst spreads less than powerd".into());
    Ok(told)
}
