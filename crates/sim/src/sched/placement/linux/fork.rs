//! A new task's CPU (`sched_balance_find_dst_cpu()`): down the domains, at each the idlest group, local if it is no worse.
//!
//! A group with an idle CPU "has spare" and is better than any without; of several the one with most idle CPUs, then the one
//! that was least busy lately, with tasks that still live. A task that has ended takes its part along, but an idle CPU is looked
//! after only now and then: so short programs that are started one after the other go from core to core, and none of these is busy
//! for long.

use super::memory::{IMBALANCE_PCT, PlacementMemory};
use super::{CpusSeen, SchedTopology};
use crate::sched::cpuset::CpuSet;

/// Two packages whose idle CPUs differ by no more are alike (`NUMA_IMBALANCE_MIN`).
const PAIR: usize = 2;

/// A task begins.
pub(super) struct Fork<'f, 'a> {
    pub(super) topology: &'f SchedTopology,
    /// The parent's CPU.
    pub(super) from: usize,
    /// When, in ns.
    pub(super) now: u64,
    pub(super) seen: &'f CpusSeen<'a>,
}

impl Fork<'_, '_> {
    pub(super) fn select(&self, memory: &mut PlacementMemory) -> usize {
        let package = self.idlest_package(memory);
        let cpus = &self.topology.llcs[self.idlest_llc(memory, package)];
        let allowed = self.seen.allowed;
        self.idle_core(memory, cpus)
            .or_else(|| self.idlest_core(memory, [cpus, self.seen.idle, allowed]))
            .or_else(|| self.least_loaded(cpus))
            .or_else(|| self.least_loaded(allowed))
            .unwrap_or(self.from)
    }

    /// Idle CPUs of a group that the task may use.
    fn idle(&self, cpus: &CpuSet) -> usize {
        CpuSet::count([cpus, self.seen.idle, self.seen.allowed])
    }

    /// Of some groups, with `local` the parent's, the one with most idle CPUs and, of equals, the one that was least busy lately;
    /// where none idles, with fewest tasks a CPU.
    fn idlest<'t>(
        &self,
        memory: &mut PlacementMemory,
        groups: impl Iterator<Item = (usize, &'t CpuSet)> + Clone,
        local: usize,
    ) -> Option<usize> {
        let usable = groups.filter(|(_, cpus)| CpuSet::count([cpus, self.seen.allowed]) > 0);
        let most = usable.clone().map(|g| self.idle(g.1)).max()?;
        if most > 0 {
            let mut best = usable.filter(|g| self.idle(g.1) == most);
            if best.clone().any(|g| g.0 == local) {
                return Some(local);
            }
            let first = best.next()?;
            if best.clone().next().is_none() {
                return Some(first.0);
            }
            let mut lately = |cpus: &CpuSet| memory.busy_lately(cpus, self.now, self.seen.queues);
            return std::iter::once(first).chain(best).min_by_key(|g| lately(g.1)).map(|g| g.0);
        }
        let load =
            |cpus: &CpuSet| cpus.iter().map(|c| self.seen.queues.load(c)).sum::<u64>() / cpus.len() as u64;
        let rank = |&(g, _): &(usize, &CpuSet)| g == local;
        let least = usable.clone().min_by_key(|g| (load(g.1), !rank(g)))?;
        let here = usable.clone().find(rank).map_or(u64::MAX, |g| load(g.1));
        // As loads are compared everywhere: what is within the imbalance that a domain bears is alike.
        Some(if here.saturating_mul(100) <= load(least.1) * IMBALANCE_PCT { local } else { least.0 })
    }

    fn idlest_package(&self, memory: &mut PlacementMemory) -> usize {
        let topology = self.topology;
        let local = topology.package_of(self.from);
        if topology.packages.len() == 1 {
            return local;
        }
        let groups = topology.packages.iter().enumerate();
        let Some(best) = self.idlest(memory, groups, local) else { return local };
        let cpus = &topology.packages[local];
        let (here, there) = (self.idle(cpus), self.idle(&topology.packages[best]));
        if topology.keeps > 0 && here > 0 {
            // adjust_numa_imbalance(): memory is nearer here.
            let running: usize = cpus.iter().map(|c| self.seen.queues.runnable(c)).sum();
            if running < topology.keeps && there.saturating_sub(here) <= PAIR {
                return local;
            }
        }
        best
    }

    fn idlest_llc(&self, memory: &mut PlacementMemory, package: usize) -> usize {
        let llcs = &self.topology.llcs_of[package];
        if let [only] = llcs[..] {
            return usize::from(only);
        }
        let local = self.topology.llc_of(self.from);
        let groups = llcs.iter().map(|&l| (usize::from(l), &self.topology.llcs[usize::from(l)]));
        self.idlest(memory, groups, local).unwrap_or(local)
    }

    /// A core that idles as a whole, of those with most threads.
    fn idle_core(&self, memory: &mut PlacementMemory, cpus: &CpuSet) -> Option<usize> {
        let free = if self.topology.smt { self.seen.idle_cores } else { self.seen.idle };
        let allowed = self.seen.allowed;
        self.topology
            .by_threads
            .iter()
            .find_map(|threads| self.idlest_core(memory, [cpus, threads, free, allowed]))
    }

    /// Of the CPUs that are in all of these one of the parent's own core, else one of the core that was least busy lately, of equals
    /// the next.
    fn idlest_core<const N: usize>(&self, memory: &mut PlacementMemory, sets: [&CpuSet; N]) -> Option<usize> {
        let first = CpuSet::first_from(sets, self.from)?;
        let usable = |c: &usize| sets.iter().all(|set| set.contains(*c));
        let own = self.topology.core(self.from);
        if own.contains(first) {
            return Some(first);
        }
        let own = own.iter().find(usable);
        own.or_else(|| {
            let mut lately = |c: usize| memory.busy_lately(self.topology.core(c), self.now, self.seen.queues);
            let cpus = self.topology.len();
            let all = (0..cpus).map(|step| (first + step) % cpus).filter(usable);
            all.min_by_key(|&c| lately(c))
        })
    }

    /// Of some CPUs the one with least load (`sched_balance_find_dst_group_cpu()`).
    fn least_loaded(&self, cpus: &CpuSet) -> Option<usize> {
        let allowed = |c: &usize| self.seen.allowed.contains(*c);
        cpus.iter().filter(allowed).min_by_key(|&c| self.seen.queues.load(c))
    }
}
