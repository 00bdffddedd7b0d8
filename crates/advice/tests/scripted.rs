//! Work that a file scripts: what nobody knows of it is drawn, and its times carry an interval.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::AtomicBool;
use wattwise_advice::compare::{CompareOptions, compare};
use wattwise_advice::result::{Comparison, PolicyResult};
use wattwise_advice::rule::Rule;
use wattwise_model::workload::{Workload, file};
use wattwise_policy::PowerSource;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

const REPLICAS: u64 = 32;

/// Compares policies against the first of them.
fn compared(machine: &str, workload: &Workload, texts: &[&str]) -> Comparison {
    in_replicas(REPLICAS, machine, workload, texts)
}

fn in_replicas(replicas: u64, machine: &str, workload: &Workload, texts: &[&str]) -> Comparison {
    let machine = library::machine(machine).unwrap();
    let policies: Vec<_> = texts.iter().map(|t| PolicySpec::parse(t).unwrap()).collect();
    let job = ReplayJob {
        machine: &machine,
        workload,
        policies: &policies,
        source: PowerSource::Unknown,
        latency_limit_ns: u64::MAX,
        detail: false,
        budget: wattwise_figure::Budget::default(),
    };
    let options = CompareOptions {
        rule: Rule::default(),
        replicas,
        reference: &policies[0],
        standards: &[],
        apply: &|_| Err("a test".into()),
        done: &|_| {},
        stop: &AtomicBool::new(false),
    };
    compare(&job, &options).unwrap().0
}

fn row<'c>(c: &'c Comparison, policy: &str) -> &'c PolicyResult {
    c.results.iter().find(|r| r.policy == policy).unwrap()
}

/// One job of a tenth of a second at 2 GHz.
fn job(head: &str) -> Workload {
    let task = "[[task]]\nname = 'a'\nrounds = 1\nsteps = [{ run_us = 100000 }]\n";
    file::parse(&format!("name = 'x'\nsummary = 'y'\nreference_khz = 2000000\n{head}\n{task}"), "x.toml")
        .unwrap()
}

/// `burst` under a lower limit: nobody knows how much of its time waits for memory, so nobody knows by how much it is slower.
#[test]
fn a_lower_limit_costs_time_that_is_known_within_an_interval() {
    let burst = library::workload("burst", &wattwise_trace::ImportOptions::default()).unwrap();
    let c = compared("i7-4510u", &burst, &["schedutil", "schedutil+max=60%"]);
    let time = row(&c, "schedutil+max=60%").uncertain.time_ratio;
    // 3.1 GHz boosted against 1.7 GHz: between a work that never waits for memory and one that waits for 0.4 of its time.
    assert!(time.high - time.low > 0.1, "{time:?}");
    assert!(time.low > 1.1 && time.high < 3.1 / 1.7 + 0.05, "{time:?}");
    // The reference is in the same draw: against itself there is none.
    let same = row(&c, "schedutil").uncertain.time_ratio;
    assert_eq!((same.low, same.high), (1.0, 1.0));
}

/// The time at each of two clocks against the closed form: cycles over the clock, and a time that no clock shortens.
#[test]
fn a_stated_share_is_drawn_within_its_own_interval() {
    let ratio = |share: f64, ipc: f64| {
        let time = |ghz: f64| 2.0 / (ghz * ipc) * (1.0 - share) + share;
        time(1.0) / time(2.0)
    };
    let policies = ["userspace:khz=2000000", "userspace:khz=1000000"];
    let of = |head: &str| {
        let time = row(&compared("i7-4510u", &job(head), &policies), policies[1]).uncertain.time_ratio;
        [time.low, time.high]
    };
    // Within what the changes of speed at the beginning take.
    let near = |a: f64, b: f64| (a - b).abs() < 0.025 * b;
    let [low, high] = of("memory_share = 0");
    assert!(near(low, 2.0) && near(high, 2.0), "{low} {high}");
    let [low, high] = of("memory_share = [0.3, 0.3]\nipc_factor = [1, 1]");
    assert!(near(low, ratio(0.3, 1.0)) && near(high, ratio(0.3, 1.0)), "{low} {high}");
    let [low, high] = of("memory_share = [0.2, 0.6]\nipc_factor = [1, 1]");
    let (least, most) = (ratio(0.6, 1.0), ratio(0.2, 1.0));
    assert!(low > least * 0.975 && high < most * 1.01, "{low} {high}");
    assert!(high - low > 0.7 * (most - least), "32 draws span most of it: {low} {high}");
    // A guess is a guess of the share, and stays about it.
    let [low, high] = of("memory_share = 0.3\nipc_factor = [1, 1]");
    assert!(low > ratio(0.3 * 1.7, 1.0) && high < ratio(0.3 / 1.7, 1.0) && high - low > 0.05, "{low} {high}");
}

/// What is drawn of the work is listed among the inputs, and is among what can decide.
#[test]
fn what_is_drawn_of_the_work_is_listed() {
    let listed = |head: &str| {
        let c = compared("i7-4510u", &job(head), &["schedutil"]);
        c.inputs.uncertain.iter().map(|u| (u.what.clone(), u.nominal, u.low, u.high)).collect::<Vec<_>>()
    };
    let ipc = ("workload.ipc".to_owned(), 1.0, 0.6126, 1.6323);
    let near = |a: &[(String, f64, f64, f64)], b: &[(String, f64, f64, f64)]| {
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(a, b)| a.0 == b.0 && [a.1 - b.1, a.2 - b.2, a.3 - b.3].iter().all(|d| d.abs() < 1e-3))
    };
    let memory = |nominal, low, high| ("workload.memory_bound".to_owned(), nominal, low, high);
    for (head, expected) in [
        ("", vec![memory(0.2, 0.0, 0.4), ipc.clone()]),
        ("memory_share = [0.1, 0.5]", vec![memory(0.3, 0.1, 0.5), ipc.clone()]),
        ("memory_share = 0\nipc_factor = [1, 1]", vec![]),
    ] {
        let told = listed(head);
        assert!(near(&told, &expected), "{head}: {told:?}");
    }
}

/// One draw for all policies of a replica: each does the same work (else there is no comparison), and none hangs on which others there
/// are.
#[test]
fn policies_share_what_is_drawn_of_the_work() {
    for name in ["burst", "periodic", "parallel-build", "desktop"] {
        let work = library::workload(name, &wattwise_trace::ImportOptions::default()).unwrap();
        for machine in ["i7-4510u", "alderlake-p-laptop"] {
            let three = ["schedutil", "performance", "schedutil+max=60%"];
            let all = in_replicas(8, machine, &work, &three);
            let two = in_replicas(8, machine, &work, &[three[0], three[2]]);
            let figures = |c: &Comparison| {
                let u = &row(c, three[2]).uncertain;
                [u.time, u.time_ratio, u.energy_j, u.energy_ratio].map(|i| [i.low, i.median, i.high])
            };
            assert_eq!(figures(&all), figures(&two), "{name} on {machine}");
            assert_eq!(row(&all, three[0]).uncertain.energy_ratio.high, 1.0, "{name} on {machine}");
        }
    }
}
