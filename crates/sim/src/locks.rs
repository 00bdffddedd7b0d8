//! A queue lock (MCS) under load on a machine model: what its waiters do with their cores, and what that costs.
//!
//! The engine proper knows locks that park. Here a waiter may also spin, with its core's speed or duty cycle
//! lowered, or stop in a C-state by MWAIT: study 004's experiment. One thread a CPU, bound to it, as there; so no
//! scheduler is needed and every thread is in one phase:
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

use wattwise_model::machine::Machine;
use wattwise_model::workload::Dist;
use wattwise_model::workload::pattern::Rng;

/// A C-state of at least this latency lets the other cores boost: C3 and deeper, not C1 and C1E.
const DEEP_NS: u64 = 15_000;

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
    /// Whether packages reach their idle states between the waits: other work on the machine may keep them up.
    pub package_idle: bool,
    /// What a package's uncore saves when its awake cores run below a speed: `(kHz, share when all do)`.
    pub slow_uncore: Option<(u32, f64)>,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct LockSetup<'a> {
    /// On what.
    pub machine: &'a Machine,
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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Outside,
    Lowering,
    Spinning,
    Entering,
    Asleep,
    Leaving,
    Returning,
    Seeing,
    Restoring,
    Inside,
    /// The release has to wake a sleeper.
    Waking,
}

struct Thread {
    core: usize,
    phase: Phase,
    /// Work, or ns where the phase is no work; infinite: until something happens.
    left: f64,
    granted: bool,
    lowered: bool,
    /// C-state asked for while asleep.
    state: usize,
    asked_at: f64,
    slept_at: f64,
    /// Its last sleep: what the idle policy expects of the next.
    last_sleep: f64,
    rng: Rng,
    acquired: u64,
}

struct Core {
    package: usize,
    threads: Vec<usize>,
    level: usize,
    wanted: usize,
    /// Next point of the grid.
    grid: f64,
    stall: f64,
}

struct World<'a> {
    setup: &'a LockSetup<'a>,
    now: f64,
    threads: Vec<Thread>,
    cores: Vec<Core>,
    queue: std::collections::VecDeque<usize>,
    owner: Option<usize>,
    waits: Vec<f64>,
}

fn draw(dist: Dist, rng: &mut Rng) -> f64 {
    match dist {
        Dist::Fixed(ns) => ns as f64,
        Dist::Uniform(low, high) | Dist::LogUniform(low, high) => {
            low as f64 + (high - low) as f64 * rng.unit()
        }
    }
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
        let (ns, watts, awake) = world.step();
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

impl<'a> World<'a> {
    fn new(setup: &'a LockSetup<'a>) -> Self {
        let m = setup.machine;
        assert!((1..=m.cpus.len()).contains(&setup.threads), "threads: 1 to {}", m.cpus.len());
        let sibling = |cpu: usize| {
            m.cores[usize::from(m.cpus[cpu].core)]
                .cpus
                .iter()
                .position(|c| usize::from(*c) == cpu)
                .unwrap_or(0)
        };
        let mut cpus: Vec<usize> = (0..m.cpus.len()).collect();
        // How many cores of the same package come before.
        let turn = |cpu: usize| {
            let package = m.cpus[cpu].package;
            (0..cpu).filter(|&c| m.cpus[c].package == package && sibling(c) == sibling(cpu)).count()
        };
        cpus.sort_by_key(|&cpu| (sibling(cpu), turn(cpu), cpu));
        let mut cores: Vec<Core> = m
            .cores
            .iter()
            .enumerate()
            .map(|(i, c)| {
                // Each core has a phase of its own on the grid.
                let delay = m.domains[usize::from(c.domain)].transition.delay_ns as f64;
                let phase = i as f64 / m.cores.len() as f64;
                let package = usize::from(c.package);
                Core {
                    package,
                    threads: Vec::new(),
                    level: 0,
                    wanted: 0,
                    grid: 2.0 * delay * phase,
                    stall: 0.0,
                }
            })
            .collect();
        let mut threads = Vec::with_capacity(setup.threads);
        for (i, &cpu) in cpus.iter().take(setup.threads).enumerate() {
            let core = usize::from(m.cpus[cpu].core);
            cores[core].threads.push(i);
            let mut rng = Rng::new(setup.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i as u64 + 1));
            let left = draw(setup.ncs, &mut rng);
            threads.push(Thread {
                core,
                phase: Phase::Outside,
                left,
                granted: false,
                lowered: false,
                state: 0,
                asked_at: 0.0,
                slept_at: 0.0,
                last_sleep: 0.0,
                rng,
                acquired: 0,
            });
        }
        World {
            setup,
            now: 0.0,
            threads,
            cores,
            queue: std::collections::VecDeque::new(),
            owner: None,
            waits: Vec::new(),
        }
    }

    fn kind(&self, core: usize) -> &'a wattwise_model::machine::CoreKind {
        &self.setup.machine.kinds[usize::from(self.setup.machine.cores[core].kind)]
    }

    fn executes(&self, thread: usize) -> bool {
        !matches!(self.threads[thread].phase, Phase::Asleep | Phase::Leaving)
    }

    fn duty(&self, core: usize) -> f64 {
        let Lowered::Duty(share) = self.setup.lowered else { return 1.0 };
        // Siblings that ask for different duty cycles get the longer.
        let full = self.cores[core].threads.iter().any(|&t| !self.threads[t].lowered);
        if full || self.cores[core].threads.is_empty() { 1.0 } else { share }
    }

    /// The level in force: what was asked for, or what boost leaves with so many cores awake.
    fn level(&self, core: usize, awake: &[usize]) -> usize {
        let m = self.setup.machine;
        let boost = &m.domains[usize::from(m.cores[core].domain)].boost;
        let most = boost.get(awake[self.cores[core].package]).or(boost.last()).copied().unwrap_or(0);
        self.cores[core].level.max(usize::from(most))
    }

    /// Cores of each package that boost counts: those in C1 too, whose voltage is up.
    fn awake(&self) -> Vec<usize> {
        let mut awake = vec![0; self.setup.machine.packages.len()];
        for (at, c) in self.cores.iter().enumerate() {
            let depth = self.depth(at);
            if depth == 0 || self.kind(at).idle[depth - 1].latency_ns < DEEP_NS {
                awake[c.package] += 1;
            }
        }
        awake
    }

    /// The idle state that a package is in.
    fn package_state(&self, package: usize) -> Option<&'a wattwise_model::machine::PackageState> {
        let cores = self.cores.iter().enumerate().filter(|(_, c)| c.package == package);
        let depth = cores.map(|(at, _)| self.depth(at)).min().unwrap_or(0);
        let states = &self.setup.machine.packages[package].idle;
        let unused = !self.cores.iter().any(|c| c.package == package && !c.threads.is_empty());
        (self.setup.costs.package_idle || unused)
            .then(|| states.iter().rev().find(|s| usize::from(s.needs) < depth))
            .flatten()
    }

    /// Work a ns of a thread that executes.
    fn rate(&self, thread: usize, awake: &[usize]) -> f64 {
        let core = self.threads[thread].core;
        if self.cores[core].stall > 0.0 {
            return 0.0;
        }
        let kind = self.kind(core);
        let clock = kind.levels[self.level(core, awake)].cycles_per_ns / kind.levels[0].cycles_per_ns;
        let mut working = 0;
        let mut share = 1.0;
        for &t in self.cores[core].threads.iter().filter(|&&t| t != thread && self.executes(t)) {
            if self.threads[t].phase == Phase::Spinning {
                share *= self.setup.costs.spin_sibling;
            } else {
                working += 1;
            }
        }
        let siblings = kind.smt_throughput[working.min(kind.smt_throughput.len() - 1)];
        clock * self.duty(core) * siblings * share
    }

    fn watts(&self, awake: &[usize]) -> f64 {
        let m = self.setup.machine;
        let mut watts = 0.0;
        for (i, p) in m.packages.iter().enumerate() {
            let cores = || self.cores.iter().enumerate().filter(|(_, c)| c.package == i);
            watts += self.package_state(i).map_or_else(
                || {
                    let Some((khz, saves)) = self.setup.costs.slow_uncore else { return p.uncore_w };
                    let up = || cores().filter(|(at, _)| self.depth(*at) == 0);
                    let slow = |at: usize| self.kind(at).levels[self.level(at, awake)].khz < khz;
                    let share = up().filter(|(at, _)| slow(*at)).count() as f64 / up().count().max(1) as f64;
                    p.uncore_w * (1.0 - saves * share)
                },
                |s| s.watts,
            );
        }
        for (at, core) in self.cores.iter().enumerate() {
            let kind = self.kind(at);
            let level = self.level(at, awake);
            let idle = |state: usize| {
                let watts = &kind.idle[state].watts;
                watts[level.min(watts.len() - 1)]
            };
            let l = &kind.levels[level];
            let executing: Vec<usize> = core.threads.iter().copied().filter(|&t| self.executes(t)).collect();
            watts += if executing.is_empty() {
                match (self.depth(at), self.setup.waiting) {
                    // Waking by the monitor is mostly waiting for its signal.
                    (0, Waiting::Mwait(state)) => idle(state),
                    (0, _) => l.stall_w,
                    (depth, _) => idle(depth - 1),
                }
            } else if core.stall > 0.0 {
                l.stall_w
            } else {
                let smt = kind.smt_power[(executing.len() - 1).min(kind.smt_power.len() - 1)];
                let activity = executing
                    .iter()
                    .map(|&t| match self.threads[t].phase {
                        Phase::Spinning => self.setup.costs.spin_power,
                        _ => 1.0,
                    })
                    .sum::<f64>()
                    / executing.len() as f64;
                let stopped = idle(0);
                let running = stopped + (l.busy_w * smt - stopped) * activity;
                let duty = self.duty(at);
                running * duty + stopped * (1.0 - duty)
            };
        }
        watts
    }

    /// 0 awake, else the core's C-state's index plus 1: the shallowest of its threads'. A core without
    /// threads is in its deepest.
    fn depth(&self, core: usize) -> usize {
        let deepest = self.kind(core).idle.len();
        let of = |&t: &usize| match self.threads[t].phase {
            Phase::Asleep => self.threads[t].state + 1,
            _ => 0,
        };
        self.cores[core].threads.iter().map(of).min().unwrap_or(deepest)
    }

    /// Up to the next event: its length, the power meanwhile, and how many threads were awake.
    fn step(&mut self) -> (f64, f64, usize) {
        let awake = self.awake();
        let rates: Vec<f64> = (0..self.threads.len())
            .map(|t| match self.threads[t].phase {
                Phase::Leaving => 1.0,
                Phase::Asleep => 0.0,
                _ => self.rate(t, &awake),
            })
            .collect();
        let ends = |t: usize| if rates[t] > 0.0 { self.threads[t].left / rates[t] } else { f64::INFINITY };
        let mut ns = (0..self.threads.len()).map(ends).fold(f64::INFINITY, f64::min);
        for c in &self.cores {
            if c.stall > 0.0 {
                ns = ns.min(c.stall);
            }
            if c.level != c.wanted {
                ns = ns.min((c.grid - self.now).max(0.0));
            }
        }
        let watts = self.watts(&awake);
        let busy = (0..self.threads.len()).filter(|&t| self.executes(t)).count();
        let due: Vec<usize> = (0..self.threads.len()).filter(|&t| ends(t) <= ns).collect();
        self.now += ns;
        for (t, rate) in rates.iter().enumerate() {
            self.threads[t].left = (self.threads[t].left - ns * rate).max(0.0);
        }
        for at in 0..self.cores.len() {
            let domain = usize::from(self.setup.machine.cores[at].domain);
            let transition = &self.setup.machine.domains[domain].transition;
            let levels = self.kind(at).levels.len();
            let c = &mut self.cores[at];
            c.stall = (c.stall - ns).max(0.0);
            if c.level != c.wanted && self.now >= c.grid {
                c.stall = transition.stall_ns[c.level * levels + c.wanted] as f64;
                c.level = c.wanted;
            }
        }
        for t in due {
            self.advance(t);
        }
        (ns, watts, busy)
    }

    fn enter(&mut self, t: usize, phase: Phase, left: f64) {
        self.threads[t].phase = phase;
        self.threads[t].left = left;
    }

    /// Asks for a level; it takes force on the grid.
    fn want(&mut self, core: usize, level: usize) {
        let m = self.setup.machine;
        let period = 2.0 * m.domains[usize::from(m.cores[core].domain)].transition.delay_ns as f64;
        let c = &mut self.cores[core];
        c.wanted = level;
        while c.grid <= self.now && period > 0.0 {
            c.grid += period;
        }
    }

    fn wait(&mut self, t: usize) {
        let costs = self.setup.costs;
        match self.setup.waiting {
            _ if self.threads[t].granted => self.enter(t, Phase::Seeing, costs.handover_ns),
            Waiting::Spin => self.enter(t, Phase::Spinning, f64::INFINITY),
            Waiting::SpinThenPark => self.enter(t, Phase::Spinning, costs.budget_ns),
            Waiting::Park => self.enter(t, Phase::Entering, costs.wake_ns),
            Waiting::Mwait(_) => self.enter(t, Phase::Entering, costs.device_ns),
        }
    }

    /// A phase is over.
    fn advance(&mut self, t: usize) {
        let costs = self.setup.costs;
        let core = self.threads[t].core;
        match self.threads[t].phase {
            Phase::Outside => {
                self.threads[t].asked_at = self.now;
                if self.owner.is_none() {
                    self.owner = Some(t);
                    self.inside(t);
                    return;
                }
                self.queue.push_back(t);
                match self.setup.lowered {
                    Lowered::Nothing => self.wait(t),
                    _ => self.enter(t, Phase::Lowering, costs.call_ns),
                }
            }
            Phase::Lowering => {
                self.threads[t].lowered = true;
                if let Lowered::Level(level) = self.setup.lowered {
                    self.want(core, level);
                }
                self.wait(t);
            }
            Phase::Spinning => {
                let enter =
                    if self.setup.waiting == Waiting::SpinThenPark { costs.wake_ns } else { costs.device_ns };
                self.enter(t, Phase::Entering, enter);
            }
            Phase::Entering if self.threads[t].granted => self.enter(t, Phase::Returning, 0.0),
            Phase::Entering => {
                let kind = self.kind(core);
                let expected = self.threads[t].last_sleep;
                self.threads[t].state = match self.setup.waiting {
                    Waiting::Mwait(state) => state,
                    _ => kind.idle.iter().rposition(|s| (s.target_ns as f64) < expected).unwrap_or(0),
                };
                self.threads[t].slept_at = self.now;
                self.enter(t, Phase::Asleep, f64::INFINITY);
            }
            Phase::Leaving => {
                let back = match self.setup.waiting {
                    Waiting::Mwait(_) => costs.device_ns,
                    _ => costs.schedule_ns,
                };
                self.enter(t, Phase::Returning, back);
            }
            Phase::Returning | Phase::Seeing if self.threads[t].lowered => {
                self.enter(t, Phase::Restoring, costs.call_ns);
            }
            Phase::Returning | Phase::Seeing => self.inside(t),
            Phase::Restoring => {
                self.threads[t].lowered = false;
                if let Lowered::Level(_) = self.setup.lowered {
                    self.want(core, 0);
                }
                self.inside(t);
            }
            Phase::Inside => {
                self.threads[t].acquired += 1;
                self.owner = self.queue.pop_front();
                let sleeper = self.owner.is_some_and(|next| self.grant(next));
                let parks = !matches!(self.setup.waiting, Waiting::Mwait(_));
                match sleeper && parks {
                    true => self.enter(t, Phase::Waking, costs.wake_ns),
                    false => self.outside(t),
                }
            }
            Phase::Waking => self.outside(t),
            // Its end is the grant.
            Phase::Asleep => {}
        }
    }

    fn inside(&mut self, t: usize) {
        self.waits.push(self.now - self.threads[t].asked_at);
        self.threads[t].granted = false;
        let left = draw(self.setup.cs, &mut self.threads[t].rng);
        self.enter(t, Phase::Inside, left);
    }

    fn outside(&mut self, t: usize) {
        let left = draw(self.setup.ncs, &mut self.threads[t].rng);
        self.enter(t, Phase::Outside, left);
    }

    /// The lock is this waiter's now. Whether it slept.
    fn grant(&mut self, t: usize) -> bool {
        self.threads[t].granted = true;
        match self.threads[t].phase {
            Phase::Spinning => self.enter(t, Phase::Seeing, self.setup.costs.handover_ns),
            Phase::Asleep => {
                self.threads[t].last_sleep = self.now - self.threads[t].slept_at;
                let core = self.threads[t].core;
                let depth = self.depth(core);
                let exits = &self.kind(core).idle[depth.max(1) - 1].exit_ns;
                let own = exits[self.cores[core].level.min(exits.len() - 1)] as f64;
                let exit = match self.setup.waiting {
                    Waiting::Mwait(_) => self.setup.costs.mwait_exit_ns.unwrap_or(own),
                    _ => own + self.package_state(self.cores[core].package).map_or(0.0, |s| s.exit_ns as f64),
                };
                self.enter(t, Phase::Leaving, exit);
                return true;
            }
            // In a call: it will see the grant at the call's end.
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::machine::{builtin, file};

    const COSTS: Costs = Costs {
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
