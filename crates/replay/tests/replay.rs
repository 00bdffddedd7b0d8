//! Recordings, replayed on a model of the machine that made them, give back what was recorded.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use wattwise_model::workload::Workload;
use wattwise_policy::IdleState;
use wattwise_replay::job::machine_idle;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Setup, Simulation, placement, platform};
use wattwise_trace::{ImportOptions, Source, import, record};

fn replay(workload: &Workload) -> Outcome {
    let machine = library::machine("recording-vm").unwrap();
    let idle = machine_idle(&machine).unwrap();
    let make = |states: &[IdleState], tick: u64| idle.build(states, tick);
    let spec = PolicySpec::parse("performance").unwrap();
    let speed = spec.build_speed(&platform(&machine));
    let setup = Setup { placement: &placement::RECORDED, ..Setup::new(&machine, workload, speed, &make) };
    Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap()
}

/// Busy time of each CPU and the makespan within 2 %. A CPU's busy time is compared with 2 % of the
/// recorded figure, or of a hundredth of the span where it was busy for less than that.
fn assert_same(name: &str, workload: &Workload) {
    let recorded = workload.recorded.as_ref().unwrap();
    let o = replay(workload);
    let within = |what: &str, got: u64, want: u64, floor: u64| {
        let error = got.abs_diff(want) as f64 / want.max(floor) as f64;
        println!(
            "{name}: {what} {:.6} s of {:.6} s, off by {:.2} %",
            got as f64 * 1e-9,
            want as f64 * 1e-9,
            error * 100.0
        );
        assert!(error <= 0.02, "{name}: {what}: {got} ns replayed, {want} ns recorded");
    };
    for (cpu, &want) in recorded.busy_ns.iter().enumerate() {
        within(&format!("CPU {cpu} busy"), o.cpus[cpu].busy_ns, want, workload.span_ns / 100);
    }
    within("makespan", o.elapsed_ns, workload.span_ns, 0);
}

#[test]
fn bundled_recordings_give_back_their_times() {
    let recorded: Vec<_> = library::workloads().into_iter().filter(|b| b.recorded).collect();
    assert!(recorded.len() >= 24);
    // Each in cycles of the model's clock: the processor's own, as measured, was up to 7 % slower in some.
    let options = ImportOptions { khz: Some(3_670_000), ..ImportOptions::default() };
    for b in recorded {
        assert_same(b.name, &library::workload(b.name, &options).unwrap());
    }
}

/// Something that depends on the moment, and long enough that one tick for which the recorded scheduler left a task
/// waiting beside an idle CPU is less than half of 1 %.
const FRESH: &str =
    "for i in 1 2 3; do (i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done) & sleep 0.05; done; wait";

/// A file that was recorded just now gives back its times at the clock of the model.
fn assert_fresh(name: &str, file: &Path) {
    let options = ImportOptions { khz: Some(3_670_000), ..ImportOptions::default() };
    let workload = import(Source::Path(file.into()), &options).unwrap();
    if workload.recorded.as_ref().is_some_and(|r| r.cpus != 2) {
        println!("skipped: the model has two CPUs, this machine has not");
        return;
    }
    assert_same(name, &workload);
}

/// A recording that nobody has seen before: made now. It says all that a comparison needs.
#[test]
fn a_fresh_recording_gives_back_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fresh.perf");
    let command = ["sh", "-c", FRESH].map(String::from).to_vec();
    match record::run(&record::RecordOptions::new(&file, command)) {
        Err(e) if e.is_impossible() && std::env::var_os("CI").is_none() => {
            println!("skipped: {e}");
        }
        Err(e) => panic!("{e}"),
        Ok(report) => {
            assert_eq!(report.exit_code, Some(0));
            library::workload(file.to_str().unwrap(), &ImportOptions::default()).unwrap();
            assert_fresh("fresh", &file);
        }
    }
}

/// One by plain `perf record` does as well, once somebody says its clock; until then it is refused.
#[test]
fn a_recording_by_perf_gives_back_its_times_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new";
    let mut perf = std::process::Command::new("perf");
    perf.args(["record", "-q", "-a", "-e", events, "-o"]).arg(&file).args(["--", "sh", "-c", FRESH]);
    match perf.output() {
        Ok(out) if out.status.success() => {}
        Ok(out) => return println!("skipped: perf: {}", String::from_utf8_lossy(&out.stderr)),
        Err(e) => return println!("skipped: perf: {e}"),
    }
    let usual = library::workload(file.to_str().unwrap(), &ImportOptions::default());
    if let Err(e) = usual {
        assert!(e.to_string().contains("--recorded-khz"), "{e}");
    }
    assert_fresh("by perf", &file);
}
