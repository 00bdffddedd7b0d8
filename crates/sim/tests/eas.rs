//! Unequal cores: where tasks go, and what that costs, against closed forms.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::*;
use wattwise_model::machine::{MachineModel, file};
use wattwise_model::workload::*;
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Placement, Setup, Simulation, placement};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// CPUs 0 and 1 do half as much at their 1000 MHz as 2 and 3 at their 2000; each pair has a clock. Little at 500 MHz: 0.14 W.
fn machine(driver: &str) -> MachineModel {
    let kind = |name: &str, speeds: &str| {
        format!(
            "[[kind]]\nname = '{name}'\ncores = 2\nsource = 's'\nconfidence = 'guess'\n\
             [kind.speeds]\n{speeds}\nvolts = [1.0, 0.8]\nsource = 's'\nconfidence = 'guess'\n\
             [kind.transition]\nstall_us = 0\nsource = 's'\nconfidence = 'guess'\n\
             [kind.idle]\nstates = [{{ name = 'WFI', latency_us = 0, target_us = 0, watts = 0.0 }}]\n\
             source = 's'\nconfidence = 'guess'\n"
        )
    };
    let text = format!(
        "name = 'two-clusters'\nsummary = 's'\n[topology]\npackages = 1\nclocks = 'kind'\nsource = 's'\nconfidence = 'guess'\n{}{}\
         [package]\nuncore_w = 0\nsource = 's'\nconfidence = 'guess'\n\
         [platform]\nwatts = 0\nmigration_us = 0\ninterrupt_us = 0\n{driver}source = 's'\nconfidence = 'guess'\n\
         [tick]\nhz = 250\ntickless = true\ncost_us = 0\nsource = 's'\nconfidence = 'guess'",
        kind("little", "mhz = [1000, 500]\ncapacitance_nf = 0.3125\nleak_a = 0.05"),
        kind("big", "mhz = [2000, 1000]\ncapacitance_nf = 1.0\nleak_a = 0.1")
    );
    file::parse(&text, "two-clusters").unwrap()
}

fn arm() -> MachineModel {
    machine("driver = 'cpufreq-dt'\n")
}

/// `n` tasks that each need so many cycles every 10 ms or so.
fn small_tasks(n: u64, cycles: u64) -> Workload {
    let of = |i: u64| {
        let steps = vec![Step::Run(Dist::Fixed(cycles)), Step::Sleep(Dist::Fixed(10 * MS))];
        task(&format!("t{i}"), Program::Pattern(Pattern { until_ns: 4 * S, ..pattern(i + 1, steps) }))
    };
    workload((0..n).map(of).collect(), 4 * S)
}

fn run(m: &MachineModel, w: &Workload, speed: &str, placement: &'static Placement) -> Outcome {
    run_placed(m, w, speed, "fixed:depth=0", placement)
}

fn busy(o: &Outcome) -> [u64; 2] {
    let of = |c: usize| o.cpus[c].busy_ns;
    [of(0) + of(1), of(2) + of(3)]
}

#[test]
fn small_tasks_are_done_on_little_cores_at_the_energy_of_the_closed_form() {
    // 1e6 cycles: 2 ms at 500 MHz, a twelfth of the time; 1.25 times what that makes is served by 500 MHz.
    let (m, w) = (arm(), small_tasks(2, 1_000_000));
    let o = run(&m, &w, "schedutil:cost=0", &placement::EAS);
    let [little, big] = busy(&o);
    assert!(big < 20 * MS, "{big}: the first runs alone");
    // 4 s of rounds of 12 ms, 2 ms each at 0.3125 x 0.8^2 x 0.5 + 0.05 x 0.8 = 0.14 W, of two tasks.
    let rounds = 4.0 / 0.012;
    assert!((little as f64 / (2.0 * rounds * 2e6) - 1.0).abs() < 0.05, "{little}");
    assert!((o.energy.busy_j / (2.0 * rounds * 2e-3 * 0.14) - 1.0).abs() < 0.1, "{}", o.energy.busy_j);
}

/// A task that works a little, sleeps, and then needs 2e9 cycles: a second of a big core, two of a little one.
fn outgrows() -> Workload {
    let steps = vec![
        Step::Run(Dist::Fixed(100_000)),
        Step::Sleep(Dist::Fixed(10 * MS)),
        Step::Run(Dist::Fixed(100_000)),
        Step::Sleep(Dist::Fixed(10 * MS)),
        Step::Run(Dist::Fixed(2_000_000_000)),
    ];
    let hog = task("hog", Program::Pattern(Pattern { rounds: 1, ..pattern(2, steps) }));
    workload(vec![hog], 0)
}

#[test]
fn a_task_that_outgrows_its_little_core_moves_up_while_it_runs() {
    // Its signal reaches 0.8 x 512 = 410 of 1024 after 24 ms of work at the strongest core's pace: 47 ms at 1000 MHz, 95 at 500.
    for placement in [&placement::EAS, &placement::LINUX] {
        let o = run(&arm(), &outgrows(), "schedutil:cost=0", placement);
        let [little, big] = busy(&o);
        assert!((20 * MS..110 * MS).contains(&little), "{placement:?}: {little} before it moved");
        assert!((900 * MS..S).contains(&big), "{placement:?}: {big}");
    }
}

#[test]
fn while_no_cpu_is_overutilized_a_task_waits_on_a_little_core_beside_idle_big_ones() {
    // Four tasks of a tenth of the strongest core each: two to a little core.
    let o = run(&arm(), &small_tasks(4, 2_500_000), "schedutil:cost=0", &placement::EAS);
    let [little, big] = busy(&o);
    assert!(big * 20 < little, "{little} {big}");
}

#[test]
fn what_a_cpu_did_before_it_slept_fades() {
    // The first task makes its big core look overutilized when it falls asleep for good: some tens of ms later the others may be placed
    // by energy, as above.
    let steps = vec![
        Step::Run(Dist::Fixed(100_000)),
        Step::Sleep(Dist::Fixed(10 * MS)),
        Step::Run(Dist::Fixed(600_000_000)),
        Step::Sleep(Dist::Fixed(5 * S)),
    ];
    let hog = task("hog", Program::Pattern(Pattern { rounds: 1, ..pattern(2, steps) }));
    // Together 0.64 of a little core: all on one, they do not make it overutilized themselves (0.8 would).
    let mut w = small_tasks(4, 2_000_000);
    w.tasks.push(hog);
    let o = run(&arm(), &w, "schedutil:cost=0", &placement::EAS);
    // By energy each goes where there is most to spare; Linux's rule leaves them where they are.
    let [a, b] = [o.cpus[0].busy_ns, o.cpus[1].busy_ns].map(|ns| ns as f64);
    assert!((a / b - 1.0).abs() < 0.2, "{a} {b}");
}

#[test]
fn cores_that_no_driver_ranks_pull_no_task_that_fits() {
    // Two tasks out of step, so that one runs when the other's end brings the balance.
    let mut w = small_tasks(2, 3_000_000);
    w.tasks.extend(small_tasks(1, 2_300_000).tasks);
    w.tasks.remove(0);
    let of = |m: &MachineModel| busy(&run(m, &w, "schedutil:cost=0", &placement::LINUX));
    let [little, big] = of(&arm());
    assert!(big == 0 && little > S, "{little} {big}");
    let [_, big] = of(&machine(""));
    assert!(big > 500 * MS, "{big}: what is not known to lack ranks has them");
}

#[test]
fn a_task_s_load_counts_on_the_strongest_core_s_scale() {
    // 2.5e6 cycles of 12.5e6 that a little core does in 12.5 ms: a fifth of its capacity, which 500 MHz serve with room to spare. On a
    // scale of its own core's speed it would be twice that, and ask for 1000 MHz.
    let m = arm();
    let w = small_tasks(1, 2_500_000);
    let make = idle_maker("fixed:depth=0");
    let setup = Setup {
        placement: &placement::EAS,
        idle_cpus: vec![0b1110],
        ..Setup::new(&m, &w, speed_policy(&m, "schedutil:cost=0"), &make)
    };
    let o = Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap();
    let [(1_000_000, fast), (500_000, slow)] = o.cpus[0].speed[..] else { panic!("{:?}", o.cpus[0].speed) };
    assert!(fast * 20 < slow, "{fast} ns at 1000 MHz, {slow} at 500");
}

#[test]
fn it_is_linux_where_nobody_follows_the_loads_or_cores_are_equal() {
    let w = small_tasks(6, 2_000_000);
    let m = arm();
    let of = |m: &MachineModel, speed: &str, p| run(m, &w, speed, p);
    assert_eq!(of(&m, "performance", &placement::EAS), of(&m, "performance", &placement::LINUX));
    let equal = common::machine(4, &[2_000_000, 1_000_000]);
    assert_eq!(of(&equal, "schedutil", &placement::EAS), of(&equal, "schedutil", &placement::LINUX));
    assert_ne!(of(&m, "schedutil", &placement::EAS), of(&m, "schedutil", &placement::LINUX));
}
