//! The memory's clock against its closed form.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use wattwise_model::machine::{Apart, MachineModel, Memory, MemoryClock};
use wattwise_model::workload::*;
use wattwise_policy::dram::DramSpec;
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Setup, Simulation};

/// Waits for memory at half the highest clock take 1.75 times as long, at a quarter 3.25.
fn with_clock(cpus: usize, core_share: f64) -> MachineModel {
    let mut m = machine(cpus, &[3_000_000]);
    m.tick.cost_ns = 0;
    m.memory = Memory { rest_w: 0.5, ..Memory::default() };
    m.memory_clock = Some(MemoryClock {
        khz: vec![2_000_000, 1_000_000, 500_000],
        top_w: 0.6,
        follows: 0.75,
        core_share,
        poll_ns: 50_000_000,
        governor: "performance".into(),
    });
    m
}

/// Tasks that each take `rounds` times 2 ms at the highest clocks, half of it waiting for memory.
fn waiting(tasks: usize, rounds: u64) -> Workload {
    let of = |i: usize| {
        let steps = vec![Step::Run(Dist::Fixed(6_000_000))];
        let p = Pattern { rounds, memory_share: 0.5, ..pattern(i as u64 + 1, steps) };
        task("t", Program::Pattern(p))
    };
    workload((0..tasks).map(of).collect(), 0)
}

fn run_under(m: &MachineModel, w: &Workload, governor: Option<&str>) -> Outcome {
    let make = idle_maker("fixed");
    let dram = governor.map(|text| DramSpec::parse(text).unwrap_or_else(|_| panic!("{text}")));
    let setup = Setup { dram, ..Setup::new(m, w, speed_policy(m, "performance"), &make) };
    Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap()
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 2e-4, "{what}: {found} for {expected}");
}

#[test]
fn waits_take_as_long_as_the_clock_says() {
    let (m, w) = (with_clock(2, 0.1), waiting(2, 500));
    for (governor, ms) in [
        (None, 2.0),
        (Some("performance"), 2.0),
        (Some("userspace:khz=1GHz"), 2.75),
        (Some("powersave"), 4.25),
    ] {
        let outcome = run_under(&m, &w, governor);
        assert_near(outcome.elapsed_ns as f64 * 1e-6, 500.0 * ms, &format!("{governor:?}"));
        let fixed = outcome.memory.iter().filter(|(_, ns)| *ns > 0).count();
        assert_eq!(fixed, 1, "one clock: {:?}", outcome.memory);
    }
}

/// 0.5 W at rest, and 0.6, 0.2 and 0 W more at the three clocks.
#[test]
fn the_memory_draws_what_its_clock_says() {
    let (m, w) = (with_clock(2, 0.1), waiting(1, 100));
    for (governor, watts) in [("performance", 1.1), ("userspace:khz=1GHz", 0.7), ("powersave", 0.5)] {
        let outcome = run_under(&m, &w, Some(governor));
        assert_near(outcome.energy.memory_j / (outcome.elapsed_ns as f64 * 1e-9), watts, governor);
    }
}

/// Four cores that wait half of their time use 0.4 x 4 x 0.5 = 0.8 of the highest clock. From the lowest, where they wait 3.25 of
/// 4.25 ms and move as much as in 1 ms at the highest, the load is 0.4 x 4 x 4 / 4.25: more than all. So the second look finds
/// the highest clock, and 80 % keeps it there with `up` at 85; a single core, with 20 %, is not worth it.
#[test]
fn the_governor_follows_what_goes_over_the_wires() {
    let m = with_clock(4, 0.4);
    let busy = run_under(&m, &waiting(4, 500), Some("simple_ondemand:up=85,down=10"));
    let at = |o: &Outcome, i: usize| o.memory[i].1 as f64 * 1e-6;
    assert_eq!((at(&busy, 2), at(&busy, 1)), (50.0, 0.0), "until the first look");
    // In 50 ms at the lowest clock 50 / 4.25 rounds, then 2 ms each.
    assert_near(at(&busy, 0) + 50.0, 50.0 + (500.0 - 50.0 / 4.25) * 2.0, "the rest at the highest");

    // 0.4 x 4 / 4.25 = 38 % at the lowest, less than 85.
    let light = run_under(&m, &waiting(1, 500), Some("simple_ondemand:up=85,down=10"));
    assert_eq!((at(&light, 0), at(&light, 1)), (0.0, 0.0), "{:?}", light.memory);
    assert_near(light.elapsed_ns as f64 * 1e-6, 500.0 * 4.25, "every wait at the lowest clock");
}

#[test]
fn a_machine_without_such_a_clock_has_none() {
    let m = machine(2, &[3_000_000]);
    let outcome = run_under(&m, &waiting(1, 10), Some("powersave"));
    assert!(outcome.memory.is_empty());
    assert_eq!(outcome, run_under(&m, &waiting(1, 10), None));
}

/// What no clock changes is not the memory's either: ticks, wake-ups and moves take as long at each clock, and are no load.
#[test]
fn what_does_not_wait_for_memory_takes_as_long_at_each_clock() {
    let mut m = with_clock(2, 0.4);
    m.tick.cost_ns = 100_000;
    m.apart = Apart { ipi_ns: 2_000, lines: 32.0, line_ns: [0.0, 5.0, 40.0, 85.0, 134.0] };
    let rounds = 5_000;
    let hop = |other: u32| vec![Step::Block, Step::Run(Dist::Fixed(30_000)), Step::Wake(TaskId(other))];
    let of = |i: u32| {
        let first = if i == 0 {
            vec![Step::Run(Dist::Fixed(30_000)), Step::Wake(TaskId(1)), Step::Block]
        } else {
            hop(0)
        };
        task("t", Program::Pattern(Pattern { rounds, ..pattern(u64::from(i) + 1, first) }))
    };
    let w = workload((0..2).map(of).collect(), 0);
    let times = ["performance", "powersave", "simple_ondemand:up=2,down=1"].map(|governor| {
        let o = run_under(&m, &w, Some(governor));
        (o.elapsed_ns, o.memory.iter().filter(|(_, ns)| *ns > 0).count())
    });
    assert!(times.iter().all(|(ns, clocks)| ns.abs_diff(times[0].0) < 100 && *clocks == 1), "{times:?}");
}
