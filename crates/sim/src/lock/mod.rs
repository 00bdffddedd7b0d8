//! The second model: a queue lock (MCS) under load, what its waiters do with their cores, and what that costs.
//!
//! This is not a part of the engine and shares no code with it but the machine's tables: it has a clock, phases and
//! sums of energy of its own, in `f64`. The engine's tasks know locks that park; here a waiter may also spin, with
//! its core's speed or duty cycle lowered, or stop in a C-state by MWAIT: study 004's experiment. One thread a CPU,
//! bound to it, as there; so no scheduler is needed and every thread is in one phase:
//!
//! ```text
//!                    free                                             own turn
//! outside ---ask---------------------------------------------------> inside ---release---> outside
//!            |  taken                                                  ^
//!            v                                                         |
//!          [lower] -> spin --------------------- line seen -------> [restore]
//!                      |  budget over                                  ^
//!                      v                                               |
//!                    enter -> asleep -- woken --> leave -> return -----+
//! ```
//!
//! 1. **Work** is in ns at the fastest level and goes on at the core's rate: its level's clock, times the duty
//!    cycle, times what a busy sibling leaves. Calls, returns and the look at the line are work too: on a core at
//!    an eighth of its clock they take eight times as long, and the restoring call is on the path of every
//!    hand-over. That is why lowering loses with short sections.
//! 2. **Turns** are in order of asking. A releaser that must wake a sleeper pays for the call.
//! 3. **Spin-then-park** counts iterations, as the study's library does: its budget is work, so a lowered core
//!    spins for longer before it sleeps.
//! 4. **A duty cycle** changes at once. **A speed** changes at the next point of a grid of twice the model's mean
//!    delay, to whatever is asked for then, and stalls the core.
//! 5. **Energy** is the packages', as RAPL shows it: cores by level, duty and phase, and the uncore, which idles
//!    when all cores are deep enough.
//!
//! Between two events all rates are constant. Same inputs, same bits.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | what to run, and what comes out |
//! | `world.rs` | threads and cores, from event to event |
//! | `rates.rs` | what a core is doing: its rate, its level, its C-state |
//! | `power.rs` | watts between two events |
//! | `phases.rs` | what follows when a thread's phase is over |

mod phases;
mod power;
mod rates;
mod world;

use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Dist;
use world::{LockStep, World};

/// What a waiter does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waiting {
    /// PAUSE and look.
    Spin,
    /// Sleep by futex at once.
    Park,
    /// Spin for [`Costs::budget_ns`] of work, then sleep.
    SpinThenPark,
    /// MWAIT by a device, in the C-state of this index.
    Mwait(usize),
}

/// What it lowers before that, and restores once it has the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lowered {
    /// Nothing.
    Nothing,
    /// The duty cycle, to this share.
    Duty(f64),
    /// The speed, to the level of this index.
    Level(usize),
}

/// What a machine file does not tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// From the release to the next waiter's seeing it.
    pub handover_ns: f64,
    /// A call that changes a state.
    pub call_ns: f64,
    /// A call into the device that waits, and as much back.
    pub device_ns: f64,
    /// The releaser's call that wakes a sleeper.
    pub wake_ns: f64,
    /// From the sleeper's core being awake to the sleeper's running.
    pub schedule_ns: f64,
    /// What spin-then-park spins.
    pub budget_ns: f64,
    /// Power of a spinning thread, of a working one's above the core's first C-state.
    pub spin_power: f64,
    /// Rate that a spinning sibling leaves.
    pub spin_sibling: f64,
    /// Exit from a C-state that MWAIT entered, where it differs from the machine's.
    pub mwait_exit_ns: Option<f64>,
    /// Power of a core in its first C-state in W, where it differs from the machine's.
    pub halted_w: Option<f64>,
    /// Whether packages reach their idle states between the waits: other work on the machine may keep them up.
    pub package_idle: bool,
    /// What a package's uncore saves when its awake cores run below a speed: `(kHz, share when all do)`.
    pub slow_uncore: Option<(u32, f64)>,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct LockSetup<'a> {
    /// On what.
    pub machine: &'a MachineModel,
    /// Its other figures.
    pub costs: Costs,
    /// How many, at most one a CPU; packages in turn, and cores before siblings: as Linux numbers them.
    pub threads: usize,
    /// Inside, ns at the fastest level.
    pub cs: Dist,
    /// Outside, ns at the fastest level.
    pub ncs: Dist,
    /// What waiters do.
    pub waiting: Waiting,
    /// On which core.
    pub lowered: Lowered,
    /// Acquisitions counted, after a tenth that is not.
    pub acquisitions: u64,
    /// No core is faster than the level of this index, whatever was asked for: what a power limit leaves.
    pub cap: usize,
    /// Of the lengths.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct LockOutcome {
    /// Length of what was counted.
    pub elapsed_s: f64,
    /// Acquisitions of each thread.
    pub acquired: Vec<u64>,
    /// Energy of the packages.
    pub energy_j: f64,
    /// CPU time, spinning included, sleeping and MWAIT not.
    pub cpu_s: f64,
    /// Every wait, rising, ns.
    pub waits_ns: Vec<f64>,
}

/// Runs.
///
/// # Panics
/// With no thread, or more threads than the machine has CPUs.
pub fn run(setup: &LockSetup<'_>) -> LockOutcome {
    let mut world = World::new(setup);
    let warm = (setup.acquisitions / 10).max(1);
    let total = |w: &World<'_>| w.threads.iter().map(|t| t.acquired).sum::<u64>();
    while total(&world) < warm {
        world.step();
    }
    let (from, first) = (world.now, world.threads.iter().map(|t| t.acquired).collect::<Vec<_>>());
    world.waits.clear();
    let (mut energy_j, mut cpu_ns) = (0.0, 0.0);
    while total(&world) < warm + setup.acquisitions {
        let LockStep { ns, watts, awake } = world.step();
        energy_j += watts * ns * 1e-9;
        cpu_ns += awake as f64 * ns;
    }
    let mut waits_ns = std::mem::take(&mut world.waits);
    waits_ns.sort_unstable_by(f64::total_cmp);
    LockOutcome {
        elapsed_s: (world.now - from) * 1e-9,
        acquired: world.threads.iter().zip(first).map(|(t, f)| t.acquired - f).collect(),
        energy_j,
        cpu_s: cpu_ns * 1e-9,
        waits_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::machine::{builtin, file};

    const COSTS: Costs = Costs {
        halted_w: None,
        handover_ns: 100.0,
        call_ns: 1000.0,
        device_ns: 300.0,
        wake_ns: 2000.0,
        schedule_ns: 3000.0,
        budget_ns: 50_000.0,
        spin_power: 0.5,
        spin_sibling: 0.9,
        mwait_exit_ns: None,
        package_idle: true,
        slow_uncore: None,
    };

    fn outcome(threads: usize, ns: (u64, u64), waiting: Waiting, lowered: Lowered) -> LockOutcome {
        let machine = file::parse(builtin::text("xeon-4210").expect("bundled"), "xeon-4210").expect("valid");
        run(&LockSetup {
            machine: &machine,
            costs: COSTS,
            threads,
            cs: Dist::Fixed(ns.0),
            ncs: Dist::Fixed(ns.1),
            waiting,
            lowered,
            cap: 0,
            acquisitions: 2000,
            seed: 1,
        })
    }

    fn per_acquisition_ns(o: &LockOutcome) -> f64 {
        o.elapsed_s * 1e9 / o.acquired.iter().sum::<u64>() as f64
    }

    /// Closed forms: what is on the path of each hand-over.
    #[test]
    fn hand_overs_take_what_is_on_their_path() {
        let cases = [
            (1, Waiting::Spin, Lowered::Nothing, 3000.0),
            (4, Waiting::Spin, Lowered::Nothing, 1000.0 + 100.0),
            // Seeing the line and restoring go at an eighth.
            (4, Waiting::Spin, Lowered::Duty(0.125), 1000.0 + (100.0 + 1000.0) * 8.0),
            (4, Waiting::Mwait(0), Lowered::Nothing, 1000.0 + 1600.0 + 300.0),
        ];
        for (threads, waiting, lowered, want) in cases {
            let got = per_acquisition_ns(&outcome(threads, (1000, 2000), waiting, lowered));
            assert!(
                (got / want - 1.0).abs() < 1e-6,
                "{threads} {waiting:?} {lowered:?}: {got}, expected {want}"
            );
        }
    }

    #[test]
    fn turns_are_fair_and_runs_repeat() {
        for waiting in [Waiting::Spin, Waiting::Park, Waiting::SpinThenPark, Waiting::Mwait(1)] {
            let one = outcome(20, (1000, 500), waiting, Lowered::Level(3));
            assert_eq!(one, outcome(20, (1000, 500), waiting, Lowered::Level(3)));
            let (least, most) = (one.acquired.iter().min(), one.acquired.iter().max());
            assert!(most.zip(least).is_some_and(|(m, l)| m - l <= 3), "{waiting:?}: {:?}", one.acquired);
        }
    }

    /// One thread alone: its core works all the time, the rest is as deep as it goes.
    #[test]
    fn energy_is_the_states_times_their_watts() {
        let machine = file::parse(builtin::text("xeon-4210").expect("bundled"), "xeon-4210").expect("valid");
        let o = outcome(1, (1000, 2000), Waiting::Spin, Lowered::Nothing);
        let kind = &machine.kinds[0];
        let deep = kind.idle.last().expect("C-states").watts[0];
        let want = kind.levels[0].busy_w
            + 19.0 * deep
            + machine.packages[0].uncore_w
            + machine.packages[0].uncore.as_ref().map_or(0.0, |u| u.step_w + u.follow_w)
            + machine.packages[1].idle[0].watts;
        assert!((o.energy_j / o.elapsed_s / want - 1.0).abs() < 1e-9, "{} {want}", o.energy_j / o.elapsed_s);
        assert!((o.cpu_s / o.elapsed_s - 1.0).abs() < 1e-9);
    }

    #[test]
    fn sleeping_takes_less_cpu_time_than_spinning() {
        let spin = outcome(8, (100_000, 1000), Waiting::Spin, Lowered::Nothing);
        let park = outcome(8, (100_000, 1000), Waiting::Park, Lowered::Nothing);
        let both = outcome(8, (100_000, 1000), Waiting::SpinThenPark, Lowered::Nothing);
        let cpus = |o: &LockOutcome| o.cpu_s / o.elapsed_s;
        assert!((cpus(&spin) - 8.0).abs() < 1e-9);
        assert!(cpus(&park) < 1.2 && cpus(&park) < cpus(&both) && cpus(&both) < 8.0);
        assert!(per_acquisition_ns(&spin) < per_acquisition_ns(&park));
        assert!(park.energy_j / park.elapsed_s < spin.energy_j / spin.elapsed_s);
    }
}
