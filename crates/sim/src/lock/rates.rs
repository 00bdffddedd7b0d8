//! What a core is doing: whether its threads execute, at which level and rate, and how deep it sleeps.

use super::Lowered;
use super::world::{LockPhase, World};

/// A C-state of at least this latency lets the other cores boost: C3 and deeper, not C1 and C1E.
const DEEP_NS: u64 = 15_000;

impl<'a> World<'a> {
    pub(super) fn kind(&self, core: usize) -> &'a wattwise_model::machine::CoreKind {
        &self.setup.machine.kinds[usize::from(self.setup.machine.cores[core].kind)]
    }

    pub(super) fn executes(&self, thread: usize) -> bool {
        !matches!(self.threads[thread].phase, LockPhase::Asleep | LockPhase::Leaving)
    }

    pub(super) fn duty(&self, core: usize) -> f64 {
        let Lowered::Duty(share) = self.setup.lowered else { return 1.0 };
        // Siblings that ask for different duty cycles get the longer.
        let full = self.cores[core].threads.iter().any(|&t| !self.threads[t].lowered);
        if full || self.cores[core].threads.is_empty() { 1.0 } else { share }
    }

    /// The level in force: what was asked for, what boost leaves with so many cores awake, or what the power limit leaves.
    pub(super) fn level(&self, core: usize, awake: &[usize]) -> usize {
        let m = self.setup.machine;
        let boost = &m.domains[usize::from(m.cores[core].domain)].boost;
        let most = boost.get(awake[self.cores[core].package]).or(boost.last()).copied().unwrap_or(0);
        self.cores[core].level.max(usize::from(most)).max(self.setup.cap)
    }

    /// Cores of each package that boost counts: those in C1 too, whose voltage is up.
    pub(super) fn awake(&self) -> Vec<usize> {
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
    pub(super) fn package_state(&self, package: usize) -> Option<&'a wattwise_model::machine::PackageState> {
        let cores = self.cores.iter().enumerate().filter(|(_, c)| c.package == package);
        let depth = cores.map(|(at, _)| self.depth(at)).min().unwrap_or(0);
        let states = &self.setup.machine.packages[package].idle;
        let unused = !self.cores.iter().any(|c| c.package == package && !c.threads.is_empty());
        (self.setup.costs.package_idle || unused)
            .then(|| states.iter().rev().find(|s| usize::from(s.needs) < depth))
            .flatten()
    }

    /// Work a ns of a thread that executes.
    pub(super) fn rate(&self, thread: usize, awake: &[usize]) -> f64 {
        let core = self.threads[thread].core;
        if self.cores[core].stall > 0.0 {
            return 0.0;
        }
        let kind = self.kind(core);
        let clock = kind.levels[self.level(core, awake)].cycles_per_ns / kind.levels[0].cycles_per_ns;
        let mut working = 0;
        let mut share = 1.0;
        for &t in self.cores[core].threads.iter().filter(|&&t| t != thread && self.executes(t)) {
            if self.threads[t].phase == LockPhase::Spinning {
                share *= self.setup.costs.spin_sibling;
            } else {
                working += 1;
            }
        }
        let siblings = kind.smt_throughput[working.min(kind.smt_throughput.len() - 1)];
        clock * self.duty(core) * siblings * share
    }

    /// 0 awake, else the core's C-state's index plus 1: the shallowest of its threads'. A core without
    /// threads is in its deepest.
    pub(super) fn depth(&self, core: usize) -> usize {
        let deepest = self.kind(core).idle.len();
        let of = |&t: &usize| match self.threads[t].phase {
            LockPhase::Asleep => self.threads[t].state + 1,
            _ => 0,
        };
        self.cores[core].threads.iter().map(of).min().unwrap_or(deepest)
    }
}
