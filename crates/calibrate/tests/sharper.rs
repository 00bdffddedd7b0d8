//! A calibrated machine is never known worse than by its estimate without saying where: by figure, and by what an answer on it
//! leaves open.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, compare};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Rule;
use wattwise_calibrate::calibration::calibrate;
use wattwise_calibrate::calibration::plan::CalibrationPlan;
use wattwise_calibrate::estimate::estimate;
use wattwise_calibrate::gather::SeenMachine;
use wattwise_calibrate::site::Emulated;
use wattwise_calibrate::truth::{USUAL, behind};
use wattwise_model::machine::MachineModel;
use wattwise_policy::PowerSource;
use wattwise_replay::job::{ReplayJob, reference_policy};
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

/// The machine as its kernel describes it, and as it is calibrated; none where nothing meters it.
fn models(name: &str) -> Option<(MachineModel, MachineModel)> {
    let emulator = wattwise_emulator::named(name).unwrap();
    behind(&emulator, USUAL, 1)?;
    let seen = SeenMachine::read(&emulator).unwrap();
    let estimated = library::parsed(&estimate(&seen, "this").text, "this").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plan = CalibrationPlan {
        name: "this".into(),
        budget_s: 120.0,
        journal: folder.path().join("journal"),
        kept: None,
        seed: 1,
        clock_khz: None,
        state: Vec::new(),
    };
    let found = calibrate(&Emulated::new(emulator), &plan, &mut |_| {}).unwrap();
    (!found.meters.is_empty()).then_some((estimated, found.machine))
}

/// How far a figure is open, as a share of it, by its path.
fn open(m: &MachineModel, path: &str) -> Option<f64> {
    let inputs = m.inputs();
    let value = inputs.iter().find(|i| i.what == path)?.value?;
    (value.nominal != 0.0).then(|| (value.high - value.low) / value.nominal.abs())
}

/// A figure's path without the level or the state that it is of: an estimate draws those together.
fn of_all(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    match parts[..] {
        ["kind", kind, table @ ("speeds" | "idle"), _, figure] => format!("kind.{kind}.{table}.{figure}"),
        ["package", _, figure] => format!("package.idle.{figure}"),
        _ => path.to_owned(),
    }
}

/// What the calibrated machine's notes call open.
fn told(m: &MachineModel) -> String {
    m.notes.iter().filter(|n| n.starts_with("Still open: ")).map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn answer(machine: &MachineModel) -> Comparison {
    let workload = library::workload("burst", &Default::default()).unwrap();
    let parse = |text: &str| PolicySpec::parse(text).unwrap();
    let reference = reference_policy(machine).unwrap();
    let policies =
        [reference.clone(), parse("performance"), parse("performance+max=80%"), parse("performance+max=60%")];
    let job = ReplayJob {
        machine,
        workload: &workload,
        policies: &policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    };
    let options = CompareOptions {
        rule: Rule::default(),
        replicas: 64,
        reference: &reference,
        standards: &[],
        apply: &|_: &PolicySpec| Err("nothing is applied".into()),
        done: &|_| {},
        stop: &AtomicBool::new(false),
    };
    compare(&job, &options).unwrap().0
}

#[test]
fn what_is_no_sharper_than_the_estimate_is_said() {
    let (mut sharper, mut wider) = (0, 0);
    for name in wattwise_emulator::names().filter(|name| !name.starts_with("server-")) {
        let Some((estimated, calibrated)) = models(name) else { continue };
        let open_still = told(&calibrated);
        for input in calibrated.inputs() {
            let Some(now) = open(&calibrated, input.what).filter(|now| *now > 0.0) else { continue };
            let Some(before) = open(&estimated, input.what).or_else(|| open(&estimated, &of_all(input.what)))
            else {
                continue;
            };
            let is_told = open_still.contains(input.what) || open_still.contains(" more; ");
            assert!(
                now <= before * 1.02 || is_told,
                "{name}: {}: {before:.2} -> {now:.2}; {open_still}",
                input.what
            );
            sharper += usize::from(now < 0.5 * before);
        }
        let (before, now) = (answer(&estimated), answer(&calibrated));
        for (before, now) in before.results.iter().zip(&now.results) {
            let width = |r: &wattwise_advice::result::PolicyResult| {
                r.uncertain.energy_ratio.high - r.uncertain.energy_ratio.low
            };
            // What 64 replicas leave of an interval's ends to chance.
            let is_wider = width(now) > 1.2 * width(before) + 0.005;
            wider += usize::from(is_wider);
            let figures = open_still.contains("busy_w")
                || open_still.contains("idle.")
                || open_still.contains("package.");
            assert!(
                !is_wider || figures,
                "{name}: {}: {} -> {}; {open_still}",
                now.policy,
                width(before),
                width(now)
            );
        }
    }
    assert!(sharper > 50, "{sharper} figures are known twice as well");
    println!("{sharper} figures are known twice as well; {wider} answers are wider");
}
