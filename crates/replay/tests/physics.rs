//! What hardware does beside its cores, held against published measurements.
#![allow(clippy::unwrap_used)]

use wattwise_model::machine::{self, MachineModel};
use wattwise_model::workload::{self, Workload};
use wattwise_policy::IdleState;
use wattwise_replay::job::machine_idle;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Setup, Simulation, platform};

const S: u64 = 1_000_000_000;

/// A Xeon of the Skylake or Cascade Lake generation with 2 x 8 cores of two threads: 2.1 GHz, turbo 2.5 to 3.2 (GreenLab's server,
/// which names no model). Of the published rows only the level is fitted: `uncore_w`, `step_w` and the memory's two states, to
/// home_timeline at the low level; the cores' watts are those of such a part of 85 W.
const XEON: &str = r#"
name = "xeon-32"
summary = "2 x 8 cores x 2 threads"
[topology]
packages = 2
clocks = "core"
source = "EDChui/GreenLab, data/run_table.csv"
confidence = "measured"
[[kind]]
name = "core"
cores = 8
threads = 2
smt_throughput = [1.0, 0.63]
smt_power = [1.0, 1.12]
source = "the same"
confidence = "guess"
[kind.speeds]
mhz = [3200, 2800, 2500, 2100, 1900, 1700, 1500, 1400, 1200, 1000, 800]
volts = [1.02, 0.94, 0.89, 0.82, 0.79, 0.76, 0.735, 0.72, 0.69, 0.66, 0.64]
capacitance_nf = 2.2
leak_a = 0.5
base_mhz = 2100
source = "a usual slope"
confidence = "guess"
[kind.boost]
max_mhz = [3200, 3200, 2800, 2800, 2500]
source = "the ends are the data's"
confidence = "guess"
[kind.transition]
delay_us = 250
stall_us = 20
overlap = "preempt"
source = "as xeon-4210"
confidence = "guess"
[kind.idle]
states = [
  { name = "C1", latency_us = 2, target_us = 2, watts = 0.5, lowest_watts = 0.3 },
  { name = "C1E", latency_us = 10, target_us = 20, watts = 0.3 },
  { name = "C6", latency_us = 133, target_us = 600, watts = 0.05 },
]
source = "intel_idle.c"
confidence = "guess"
[package]
uncore_w = 20.5
idle = [{ name = "PC6", needs = "C6", watts = 17.0, exit_us = 60 }]
source = "the level of home_timeline, low"
confidence = "fitted"
[uncore]
step_w = 5.8
step_mhz = 2000
delay_us = 10000
hold_us = 20000
source = "one CPU of the package at 2500 MHz against none"
confidence = "fitted"
[memory]
modules = 6
watts = 0.16
high_w = 0.36
self_refresh_w = 0.1
source = "0.94 and 3.1 W a package with the memory's own unit of 15.3 uJ"
confidence = "fitted"
[platform]
watts = 100
driver = "intel_cpufreq"
source = "not measured"
confidence = "guess"
"#;

/// Requests that pass through a chain of services: bursts of a fraction of a ms on all CPUs, some 8 % busy at 800 MHz.
const REQUESTS: &str = r#"
name = "requests"
summary = "services of a social network at a low load"
reference_khz = 800_000
memory_share = 0.0
[[task]]
name = "service"
role = "background"
count = 96
rounds_within_s = 60
steps = [{ sleep_us = { log = [2000, 40_000] } }, { run_us = { log = [60, 700] } }]
[[task]]
name = "end"
rounds = 1
steps = [{ sleep_us = 10_000_000 }, { run_us = 10 }]
"#;

fn machine(text: &str) -> MachineModel {
    machine::file::parse(text, "test").unwrap()
}

fn work(text: &str) -> Workload {
    workload::file::parse(text, "test").unwrap()
}

fn run(machine: &MachineModel, workload: &Workload, policy: &str, until_ns: u64) -> Outcome {
    let idle = machine_idle(machine).unwrap();
    let make = |states: &[IdleState], tick: u64| idle.build(states, tick);
    let speed = PolicySpec::parse(policy).unwrap().build_speed(&platform(machine));
    Simulation::new(Setup::new(machine, workload, speed, &make)).run_until(until_ns)
}

/// EDChui/GreenLab, data/run_table.csv, home_timeline at the low level, 15 runs each, one package's meter: 22.8 W under
/// powersave, ondemand, conservative and schedutil (within 1 %), 30.5 under performance (+34 %); DRAM 3.35 times as much.
#[test]
fn one_fast_core_wakes_uncore_and_memory() {
    let (machine, work) = (machine(XEON), work(REQUESTS));
    let of = |policy: &str| {
        let o = run(&machine, &work, policy, 10 * S);
        let busy: u64 = o.cpus.iter().map(|c| c.busy_ns).sum();
        let (package, dram) = (o.energy.package_j[0] / 10.0, o.energy.memory_j / 20.0);
        println!(
            "{policy:14} {package:6.2} W {dram:5.2} W of memory, {:4.1} % busy",
            busy as f64 / (32.0 * 1e8)
        );
        (package, dram)
    };
    let (base, base_dram) = of("schedutil");
    for policy in ["powersave", "ondemand", "conservative"] {
        let (w, dram) = of(policy);
        assert!((w / base - 1.0).abs() < 0.02 && (dram / base_dram - 1.0).abs() < 0.1, "{policy}");
    }
    let (w, dram) = of("performance");
    assert!((1.25..1.40).contains(&(w / base)), "{w} against {base} W");
    assert!((2.0..4.0).contains(&(dram / base_dram)), "{dram} against {base_dram} W");
}

/// A cap of the power that the command line names is the machine's, and has its command.
#[test]
fn a_power_cap_is_a_policy() {
    use wattwise_replay::{apply, job, library};
    let machine = library::machine("alderlake-p-laptop").unwrap();
    let policy = PolicySpec::parse("hwp:epp=102+power=20W").unwrap();
    assert!(job::fits(&policy, &machine).is_ok());
    let line = apply::on(&machine)(&policy).unwrap().to_string();
    assert!(line.ends_with("--rapl 20W") && apply::is_ours(&line), "{line}");
    let none = library::machine("thinkpad-r51").unwrap();
    let error = job::fits(&policy, &none).unwrap_err().to_string();
    assert!(
        error.contains("power=20W: expected a machine with a [power_limit], which thinkpad-r51 has not"),
        "{error}"
    );
    for wrong in
        ["schedutil+power=", "schedutil+power=0W", "schedutil+power=15s", "schedutil+power=5W+power=6W"]
    {
        let error = PolicySpec::parse(wrong).err().unwrap().to_string();
        assert!(!error.contains('\n') && error.contains(wrong), "{error}");
    }
}
