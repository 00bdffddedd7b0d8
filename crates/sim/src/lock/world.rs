//! Threads, cores and the lock, from one event to the next.

use super::LockSetup;
use std::collections::VecDeque;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Dist;
use wattwise_model::workload::pattern::Rng;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LockPhase {
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

pub(super) struct Thread {
    pub(super) core: usize,
    pub(super) phase: LockPhase,
    /// Work, or ns where the phase is no work; infinite: until something happens.
    pub(super) left: f64,
    pub(super) granted: bool,
    pub(super) lowered: bool,
    /// C-state asked for while asleep.
    pub(super) state: usize,
    pub(super) asked_at: f64,
    pub(super) slept_at: f64,
    /// Its last sleep: what the idle policy expects of the next.
    pub(super) last_sleep: f64,
    pub(super) rng: Rng,
    pub(super) acquired: u64,
}

pub(super) struct LockCore {
    pub(super) package: usize,
    pub(super) threads: Vec<usize>,
    pub(super) level: usize,
    pub(super) wanted: usize,
    /// Next point of the grid.
    pub(super) grid: f64,
    pub(super) stall: f64,
}

pub(super) struct World<'a> {
    pub(super) setup: &'a LockSetup<'a>,
    pub(super) now: f64,
    pub(super) threads: Vec<Thread>,
    pub(super) cores: Vec<LockCore>,
    pub(super) queue: VecDeque<usize>,
    pub(super) owner: Option<usize>,
    pub(super) waits: Vec<f64>,
}

/// A length.
pub(super) fn draw(dist: Dist, rng: &mut Rng) -> f64 {
    match dist {
        Dist::Fixed(ns) => ns as f64,
        Dist::Uniform(low, high) | Dist::LogUniform(low, high) => {
            low as f64 + (high - low) as f64 * rng.unit()
        }
    }
}

impl Thread {
    fn new(setup: &LockSetup<'_>, index: usize, core: usize) -> Thread {
        let mut rng = Rng::new(setup.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index as u64 + 1));
        Thread {
            core,
            phase: LockPhase::Outside,
            left: draw(setup.ncs, &mut rng),
            granted: false,
            lowered: false,
            state: 0,
            asked_at: 0.0,
            slept_at: 0.0,
            last_sleep: 0.0,
            rng,
            acquired: 0,
        }
    }
}

impl LockCore {
    fn new(m: &MachineModel, index: usize) -> LockCore {
        let core = &m.cores[index];
        let delay = m.domains[usize::from(core.domain)].transition.delay_ns as f64;
        // Each core has a phase of its own on the grid.
        let phase = index as f64 / m.cores.len() as f64;
        LockCore {
            package: usize::from(core.package),
            threads: Vec::new(),
            level: 0,
            wanted: 0,
            grid: 2.0 * delay * phase,
            stall: 0.0,
        }
    }
}

/// CPUs in the order in which threads are bound to them: packages in turn, and cores before siblings.
fn in_turn(m: &MachineModel) -> Vec<usize> {
    let sibling = |cpu: usize| {
        let cpus = &m.cores[usize::from(m.cpus[cpu].core)].cpus;
        cpus.iter().position(|c| usize::from(*c) == cpu).unwrap_or(0)
    };
    // How many cores of the same package come before.
    let turn = |cpu: usize| {
        let package = m.cpus[cpu].package;
        (0..cpu).filter(|&c| m.cpus[c].package == package && sibling(c) == sibling(cpu)).count()
    };
    let mut cpus: Vec<usize> = (0..m.cpus.len()).collect();
    cpus.sort_by_key(|&cpu| (sibling(cpu), turn(cpu), cpu));
    cpus
}

/// From one event to the next.
pub(super) struct LockStep {
    /// How long that is.
    pub(super) ns: f64,
    /// The power meanwhile.
    pub(super) watts: f64,
    /// How many threads were awake.
    pub(super) awake: usize,
}

impl<'a> World<'a> {
    pub(super) fn new(setup: &'a LockSetup<'a>) -> Self {
        let m = setup.machine;
        assert!((1..=m.cpus.len()).contains(&setup.threads), "threads: 1 to {}", m.cpus.len());
        let mut cores: Vec<LockCore> = (0..m.cores.len()).map(|core| LockCore::new(m, core)).collect();
        let mut threads = Vec::with_capacity(setup.threads);
        for (i, cpu) in in_turn(m).into_iter().take(setup.threads).enumerate() {
            let core = usize::from(m.cpus[cpu].core);
            cores[core].threads.push(i);
            threads.push(Thread::new(setup, i, core));
        }
        World { setup, now: 0.0, threads, cores, queue: VecDeque::new(), owner: None, waits: Vec::new() }
    }

    /// Up to the next event.
    pub(super) fn step(&mut self) -> LockStep {
        let awake = self.awake();
        let rates: Vec<f64> = (0..self.threads.len())
            .map(|t| match self.threads[t].phase {
                LockPhase::Leaving => 1.0,
                LockPhase::Asleep => 0.0,
                _ => self.rate(t, &awake),
            })
            .collect();
        let ends = |t: usize| if rates[t] > 0.0 { self.threads[t].left / rates[t] } else { f64::INFINITY };
        let ns = (0..self.threads.len()).map(ends).fold(f64::INFINITY, f64::min).min(self.next_change());
        let watts = self.watts(&awake);
        let busy = (0..self.threads.len()).filter(|&t| self.executes(t)).count();
        let due: Vec<usize> = (0..self.threads.len()).filter(|&t| ends(t) <= ns).collect();
        self.now += ns;
        for (t, rate) in rates.iter().enumerate() {
            self.threads[t].left = (self.threads[t].left - ns * rate).max(0.0);
        }
        self.pass(ns);
        for t in due {
            self.advance(t);
        }
        LockStep { ns, watts, awake: busy }
    }

    /// Time to the next change of a core's clock: a stall's end, or a point of the grid.
    fn next_change(&self) -> f64 {
        let mut ns = f64::INFINITY;
        for c in &self.cores {
            if c.stall > 0.0 {
                ns = ns.min(c.stall);
            }
            if c.level != c.wanted {
                ns = ns.min((c.grid - self.now).max(0.0));
            }
        }
        ns
    }

    /// Moves the cores' clocks on by what has passed.
    fn pass(&mut self, ns: f64) {
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
    }
}
