//! What must hold for every machine, workload and policy.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use proptest::prelude::*;
use wattwise_model::machine::{MachineModel, Memory, Overlap, PackageState, Uncore};
use wattwise_model::workload::*;
use wattwise_policy::Khz;
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Placement, Setup, Simulation, placement};

/// Machines with and without SMT, boost, package states, stalls, delays, ticks.
fn machines() -> impl Strategy<Value = MachineModel> {
    (1usize..5, 1usize..3, any::<[bool; 6]>()).prop_map(
        |(cores, threads, [boost, package, stall, delay, tickless, uncore])| {
            let mut m = machine(cores, &[3_000_000, 2_000_000, 1_000_000, 500_000]);
            m.tick.tickless = tickless;
            m.memory = Memory {
                rest_w: if stall { 1.5 } else { 0.0 },
                busy_w: if boost { 0.3 } else { 0.0 },
                ..Memory::default()
            };
            m.packages[0].uncore = uncore.then(|| Uncore {
                follow_w: 1.0,
                step_w: 3.0,
                delay_ns: 2_000_000,
                hold_ns: 5_000_000,
                votes: 0,
                khz: vec![3_000_000, 2_000_000, 1_000_000, 500_000],
                fast: 2,
                at: vec![vec![0, 1, 2, 3]],
            });
            if uncore {
                (m.memory.high_w, m.memory.asleep_less_w) = (0.5, m.memory.rest_w / 2.0);
            }
            if threads == 2 {
                m.kinds[0].smt_throughput = vec![1.0, 0.6];
                m.kinds[0].smt_power = vec![1.0, 1.2];
                for (c, core) in m.cores.iter_mut().enumerate() {
                    core.cpus = vec![2 * c as u16, 2 * c as u16 + 1];
                }
                let one = m.cpus.clone();
                m.cpus = one.iter().flat_map(|&c| [c, c]).collect();
            }
            if boost {
                m.packages[0].boosts = true;
                m.domains[0].boost = vec![0, 0, 1, 1, 2];
            }
            if package {
                m.packages[0].idle = vec![
                    PackageState {
                        name: "PC3".into(),
                        needs: 1,
                        watts: 2.0,
                        exit_ns: 20_000,
                        every_package: false,
                    },
                    PackageState {
                        name: "PC6".into(),
                        needs: 2,
                        watts: 0.5,
                        exit_ns: 60_000,
                        every_package: false,
                    },
                ];
            }
            if stall {
                m.domains[0].transition.stall_ns = (0..16).map(|i| 10_000 * (i % 5)).collect();
            }
            if delay {
                m.domains[0].transition.delay_ns = 300_000;
                m.domains[0].transition.overlap = Overlap::Preempt;
            }
            m
        },
    )
}

/// A few tasks of every kind, of bounded length.
fn workloads() -> impl Strategy<Value = Workload> {
    let free =
        (1u64..400, 0u64..2_000_000, 1u64..40, 0.0f64..0.9).prop_map(|(run_us, sleep_ns, rounds, mem)| {
            let steps = vec![
                Step::Run(Dist::Uniform(1000, run_us * 3000)),
                Step::Sleep(Dist::Uniform(0, sleep_ns + 1)),
            ];
            Pattern { rounds, memory_share: mem, ..pattern(run_us, steps) }
        });
    // One kind of job: whoever takes it, it must be the same work.
    let jobs = (1u64..300).prop_map(|seed| {
        let steps = vec![
            Step::Take(0),
            Step::Io(Dist::Uniform(1, 50_000)),
            Step::Run(Dist::LogUniform(3000, 300_000)),
        ];
        pattern(seed, steps)
    });
    let locks = (1u64..20, 1u64..60).prop_map(|(rounds, us)| {
        let run = |us: u64| Step::Run(Dist::Uniform(0, us * 3000));
        Pattern { rounds, ..pattern(us, vec![Step::Lock(0), run(us), Step::Unlock(0), run(2 * us)]) }
    });
    let any = prop_oneof![free, jobs, locks];
    (prop::collection::vec(any, 1..9), 0u64..60, 0u64..30).prop_map(|(patterns, jobs, pairs)| {
        let mut tasks: Vec<Task> = patterns
            .into_iter()
            .enumerate()
            .map(|(i, p)| {
                let mut t = task(&format!("t{i}"), Program::Pattern(Pattern { seed: i as u64 + 1, ..p }));
                t.nice = (i % 3) as i8 * 5 - 5;
                t.realtime = i % 7 == 6;
                t
            })
            .collect();
        // Two recorded tasks that wake each other.
        let (a, b) = (tasks.len() as u32, tasks.len() as u32 + 1);
        let script = |me_first: bool, other: u32| {
            let mut s = ScriptBuilder::new();
            for i in 0..pairs {
                let run = Op::Run { cycles: 30_000 + 1000 * i, stall_ns: 2000 };
                let ops = if me_first {
                    [run, Op::Wake(TaskId(other)), Op::Block]
                } else {
                    [Op::Block, run, Op::Wake(TaskId(other))]
                };
                ops.into_iter().for_each(|o| s.push(o));
            }
            s.finish()
        };
        tasks.push(task("ping", Program::Recorded(script(true, b))));
        tasks.push(task("pong", Program::Recorded(script(false, a))));
        Workload { jobs: vec![jobs], locks: 1, ..workload(tasks, 1_000_000) }
    })
}

fn kept<'a>(m: &'a MachineModel, w: &'a Workload, cores: &str) -> Simulation<'a> {
    kept_by(m, w, cores, &placement::SPREAD)
}

fn kept_by<'a>(
    m: &'a MachineModel,
    w: &'a Workload,
    cores: &str,
    placement: &'static Placement,
) -> Simulation<'a> {
    let make = idle_maker("menu");
    Simulation::new(Setup {
        placement,
        cores: Some(core_policy(m, cores)),
        ..Setup::new(m, w, speed_policy(m, "performance"), &make)
    })
}

fn run_kept(m: &MachineModel, w: &Workload, cores: &str) -> Outcome {
    kept(m, w, cores).run_to_completion(u64::MAX / 4).unwrap()
}

const SPEEDS: [&str; 4] = ["performance", "powersave", "schedutil", "powerd"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Energy is the sum of its parts, and residencies sum to the time, whatever happens.
    #[test]
    fn accounts_add_up(m in machines(), w in workloads(), speed in 0usize..4, pack in any::<bool>()) {
        let placement = if pack { &placement::PACK } else { &placement::LINUX };
        let o = run_placed(&m, &w, SPEEDS[speed], "menu", placement);
        for c in &o.cpus {
            let awake: u64 = c.speed.iter().map(|s| s.1).sum();
            let idle: u64 = c.idle.iter().map(|s| s.1).sum();
            prop_assert_eq!(awake, c.busy_ns + c.stall_ns);
            prop_assert_eq!(awake + idle, o.elapsed_ns);
        }
        for p in &o.packages {
            prop_assert_eq!(p.iter().sum::<u64>(), o.elapsed_ns);
        }
        let parts: f64 = o.energy.package_j.iter().sum::<f64>() + o.energy.memory_j + o.energy.platform_j;
        prop_assert!((o.energy.total_j() - parts).abs() <= 1e-9 * parts.max(1.0));
        prop_assert!(o.energy.busy_j >= 0.0 && o.energy.stall_j >= 0.0 && o.energy.uncore_j >= 0.0);
    }

    /// The work done is the same under every policy and placement, and so is each repetition, bit for bit.
    #[test]
    fn work_is_the_same_under_every_policy(m in machines(), w in workloads()) {
        let first = run_placed(&m, &w, "performance", "fixed:depth=0", &placement::SPREAD);
        for speed in SPEEDS {
            for (idle, placement) in [("menu", &placement::LINUX), ("menu", &placement::SPREAD), ("teo", &placement::PACK), ("fixed", &placement::FIFO)] {
                let o = run_placed(&m, &w, speed, idle, placement);
                prop_assert!((o.cycles - first.cycles).abs() <= 1e-9 * first.cycles, "{} {}", o.cycles, first.cycles);
                prop_assert_eq!(&o, &run_placed(&m, &w, speed, idle, placement));
            }
        }
    }

    /// Whatever the core policy, the work is done, and is the same; the accounts add up; it repeats bit for bit.
    #[test]
    fn work_is_the_same_on_few_cpus(m in machines(), w in workloads(), which in 0usize..5) {
        let cores = ["coreidle-ondemand:period=3", "coreidle-userspace:keep=2", "dragonfly:poll=10", "lpmd", "consolidate:period=1"][which];
        let first = run_placed(&m, &w, "performance", "menu", &placement::SPREAD);
        let o = run_kept(&m, &w, cores);
        prop_assert!((o.cycles - first.cycles).abs() <= 1e-9 * first.cycles, "{cores}: {} {}", o.cycles, first.cycles);
        for c in &o.cpus {
            let awake: u64 = c.speed.iter().map(|s| s.1).sum();
            prop_assert_eq!(awake + c.idle.iter().map(|s| s.1).sum::<u64>(), o.elapsed_ns);
        }
        // A core alone sleeps as its thread does; one with several is awake for as long as any of them works.
        for (core, idle) in m.cores.iter().zip(&o.cores) {
            let threads = || core.cpus.iter().map(|&c| &o.cpus[usize::from(c)]);
            let total = idle.iter().sum::<u64>();
            prop_assert!(threads().all(|t| total + t.busy_ns <= o.elapsed_ns), "{idle:?}");
            if core.cpus.len() == 1 {
                prop_assert!(threads().all(|t| t.idle.iter().map(|s| s.1).eq(idle.iter().copied())), "{idle:?}");
            }
        }
        prop_assert_eq!(&o, &run_kept(&m, &w, cores));
    }

    /// CPUs that are not kept execute nothing at all.
    #[test]
    fn nothing_runs_on_cpus_that_are_not_kept(m in machines(), w in workloads(), keep in 1usize..4) {
        let cores = format!("coreidle-userspace:keep={keep}");
        for placement in [&placement::SPREAD, &placement::LINUX] {
        let o = kept_by(&m, &w, &cores, placement).run_to_completion(u64::MAX / 4).unwrap();
        // Threads of a core are neighbours here: the order of keeping is that of the CPUs.
        for (c, cpu) in o.cpus.iter().enumerate().skip(keep) {
            prop_assert!(cpu.busy_ns == 0 || !m.tick.tickless, "CPU {c} of {keep} kept was busy for {} ns", cpu.busy_ns);
        }
        }
    }

    /// No policy beats the bound that the work itself sets: all of it at full speed on all cores, and
    /// each task alone on one.
    #[test]
    fn nobody_beats_the_bound(m in machines(), w in workloads(), speed in 0usize..4) {
        let o = run_placed(&m, &w, SPEEDS[speed], "fixed:depth=0", &placement::SPREAD);
        let smt = m.kinds[0].smt_throughput.len() as f64 * m.kinds[0].smt_throughput.last().unwrap();
        let capacity = m.cores.len() as f64 * 3.0 * smt.max(1.0);
        prop_assert!(o.elapsed_ns as f64 >= o.cycles / capacity - 1.0);
        for t in &w.tasks {
            let Program::Recorded(s) = &t.program else { continue };
            let alone: f64 = s.reader().map(|op| match op {
                Op::Run { cycles, stall_ns } => cycles as f64 / 3.0 + stall_ns as f64,
                Op::SleepFor(ns) | Op::Io(ns) => ns as f64,
                _ => 0.0,
            }).sum();
            prop_assert!(o.elapsed_ns as f64 >= alone - 1.0);
        }
    }

    /// A fixed speed's energy has a closed form: one busy core for the work's length, the others idle.
    #[test]
    fn fixed_speed_meets_the_closed_form(cycles in 1_000_000u64..1_000_000_000, level in 0usize..4, cores in 1usize..5) {
        let khz = [3_000_000u32, 2_000_000, 1_000_000, 500_000];
        let m = machine(cores, &khz);
        let p = Pattern { rounds: 1, ..pattern(1, vec![Step::Run(Dist::Fixed(cycles))]) };
        let w = workload(vec![task("t", Program::Pattern(p))], 0);
        let o = run(&m, &w, &format!("userspace:khz={}", khz[level]), "fixed:depth=0");
        // The CPU that takes the work leaves C1 first, whose exit is 2 us.
        let busy_s = (cycles as f64 / (f64::from(khz[level]) * 1e-6)).ceil() * 1e-9;
        let k = &m.kinds[0];
        let exit_s = 2e-6;
        let expected = busy_s * k.levels[level].busy_w
            + exit_s * k.levels[level].stall_w
            + (busy_s + exit_s) * ((cores - 1) as f64 * k.idle[0].watts[level] + 4.0 + 6.0);
        prop_assert!((o.energy.total_j() - expected).abs() <= 1e-9 * expected, "{} {}", o.energy.total_j(), expected);
        prop_assert_eq!(o.elapsed_ns, (busy_s * 1e9).round() as u64 + 2000);
    }

    /// More speed never lengthens a CPU-bound job.
    #[test]
    fn more_speed_never_lengthens(cycles in prop::collection::vec(1_000_000u64..100_000_000, 1..9), cores in 1usize..5) {
        let khz = [3_000_000u32, 2_000_000, 1_000_000, 500_000];
        let m = machine(cores, &khz);
        let tasks = cycles.iter().enumerate().map(|(i, &c)| {
            let p = Pattern { rounds: 1, ..pattern(i as u64 + 1, vec![Step::Run(Dist::Fixed(c))]) };
            task(&format!("t{i}"), Program::Pattern(p))
        }).collect();
        let w = workload(tasks, 0);
        let times: Vec<u64> = khz.iter()
            .map(|k| run_placed(&m, &w, &format!("userspace:khz={k}"), "fixed:depth=0", &placement::FIFO).elapsed_ns)
            .collect();
        prop_assert!(times.windows(2).all(|w| w[0] <= w[1]), "{:?}", times);
    }

    /// A policy that is asked for speeds off the table still runs at levels of the table.
    #[test]
    fn speeds_are_levels(khz in 1u32..5_000_000) {
        let m = machine(2, &[3_000_000, 2_000_000, 1_000_000]);
        let p = Pattern { rounds: 1, ..pattern(1, vec![Step::Run(Dist::Fixed(3_000_000))]) };
        let w = workload(vec![task("t", Program::Pattern(p))], 0);
        let o = run(&m, &w, &format!("userspace:khz={khz}"), "fixed");
        let want = wattwise_sim::platform(&m).domains[0].at_least(Khz(khz)).0;
        let used: Vec<u32> = o.cpus.iter().flat_map(|c| &c.speed).filter(|s| s.1 > 0).map(|s| s.0).collect();
        prop_assert!(used.iter().all(|&k| k == want), "{used:?} {want}");
    }
}

/// `bursts-v1` with 64 tasks keeps the machine at its highest speed: 58.0 W in every engine that has run it.
#[test]
fn crowded_bursts_draw_58_watts() {
    let (m, w) = (bursts_machine(), bursts(64, 20));
    let o = run_placed(&m, &w, "performance", "fixed", &placement::FIFO);
    let watts = o.energy.total_j() / (o.elapsed_ns as f64 * 1e-9);
    assert!((watts - 58.0).abs() < 0.3, "{watts}");
}

/// Light load is gathered on one core, and a burst of work that fills the machine has all CPUs within two periods.
#[test]
fn a_burst_on_a_gathered_machine_gets_all_cores() {
    let m = machine(4, &[3_000_000]);
    // Sleepers that wake often enough for gathering to pay, and at 2 s four tasks of 900 ms of work each.
    let light = |seed| {
        let steps = vec![Step::Run(Dist::Fixed(15_000)), Step::Sleep(Dist::Uniform(300_000, 500_000))];
        Pattern { until_ns: 3_000_000_000, ..pattern(seed, steps) }
    };
    let burst = |seed| {
        let steps = vec![Step::Sleep(Dist::Fixed(2_000_000_000)), Step::Run(Dist::Fixed(2_700_000_000))];
        Pattern { rounds: 1, ..pattern(seed, steps) }
    };
    let mut tasks: Vec<Task> = (10..14).map(|seed| task("light", Program::Pattern(light(seed)))).collect();
    tasks.extend((2..6).map(|seed| task("burst", Program::Pattern(burst(seed)))));
    let w = workload(tasks, 0);
    for (cores, period_ns) in [("consolidate", 20_000_000_u64), ("coreidle-ondemand", 250_000_000)] {
        let mut sim = kept(&m, &w, cores);
        let busy = |o: &Outcome| o.cpus.iter().map(|c| c.busy_ns).collect::<Vec<u64>>();
        let before = busy(&sim.run_until(1_500_000_000));
        let gathered = busy(&sim.run_until(1_999_000_000));
        let ran: Vec<u64> = before.iter().zip(&gathered).map(|(before, after)| after - before).collect();
        // Now and then a look falls into the time in which the one CPU wakes while two tasks wait for it; each that
        // waits asks for a CPU of its own, so that a second one is kept for some looks.
        let elsewhere: u64 = ran[1..].iter().sum();
        assert!(elsewhere < ran[0] / 10, "{cores} has gathered the light load by then: {ran:?}");
        // Two periods on all four have a CPU each: what is left of 900 ms is done side by side.
        let opened = busy(&sim.run_until(2_000_000_000 + 2 * period_ns));
        let after = busy(&sim.run_until(2_010_000_000 + 2 * period_ns));
        for c in 0..4 {
            assert!(
                after[c] - opened[c] > 9_900_000,
                "{cores}: CPU {c} was busy for {}",
                after[c] - opened[c]
            );
        }
    }
    // The bound: with one CPU kept for good the others do nothing.
    let o = run_kept(&m, &w, "coreidle-userspace:keep=1");
    assert!(o.cpus[1..].iter().all(|c| c.busy_ns == 0));
}

/// Tasks that wake together would queue on one CPU: `consolidate` keeps the 99th percentile of their waits within one and
/// a half times of what it is on all, where one CPU kept for good makes it many times that.
#[test]
fn gathering_is_given_up_where_it_makes_tasks_wait() {
    let m = machine(4, &[3_000_000]);
    let together = |seed| {
        let steps = vec![Step::Period(1_000_000), Step::Run(Dist::Fixed(150_000))];
        task("together", Program::Pattern(Pattern { until_ns: 8_000_000_000, ..pattern(seed, steps) }))
    };
    let w = workload((1..5).map(together).collect(), 0);
    let p99 = |o: Outcome| o.wake_latency.quantile(0.99) as f64;
    let open = p99(run_placed(&m, &w, "performance", "menu", &placement::SPREAD));
    let one = p99(run_kept(&m, &w, "coreidle-userspace:keep=1"));
    let ours = p99(run_kept(&m, &w, "consolidate"));
    assert!(one > 1.5 * open, "{one} {open}: the load is one that suffers");
    assert!(ours <= 1.5 * open, "{ours} {open}");
}

/// What runs on a CPU that is given up goes on at once on one that is kept.
#[test]
fn a_running_task_leaves_a_cpu_that_is_given_up() {
    let m = machine(4, &[3_000_000]);
    let once = |seed, cycles| {
        Program::Pattern(Pattern { rounds: 1, ..pattern(seed, vec![Step::Run(Dist::Fixed(cycles))]) })
    };
    // The short one has the first CPU when they start, so the long one begins on another.
    let w = workload(vec![task("short", once(1, 30_000_000)), task("long", once(2, 6_000_000_000))], 0);
    let o = run_kept(&m, &w, "coreidle-ondemand:period=50,memory=0,full=100");
    let busy: Vec<u64> = o.cpus.iter().map(|c| c.busy_ns).collect();
    assert!(busy[1] > 10_000_000 && busy[1] < 150_000_000, "it began on CPU 1 and left it: {busy:?}");
    assert!(busy[0] > 1_850_000_000, "{busy:?}");
    assert!(o.elapsed_ns < 2_010_000_000, "moving costs next to nothing: {} ns", o.elapsed_ns);
}
