//! A new task's CPU (`sched_balance_find_dst_cpu()`): down the domains, at each the idlest group, local if it is no worse.
//!
//! A group with an idle CPU "has spare" and is better than any without; of several the one with most idle CPUs. (The kernel
//! breaks a tie by utilization: here it is the next one after the parent's.)

use super::memory::IMBALANCE_PCT;
use super::{Seen, Topology};
use crate::sched::cpuset::CpuSet;

/// Two packages whose idle CPUs differ by no more are alike (`NUMA_IMBALANCE_MIN`).
const PAIR: usize = 2;

pub(super) fn select(topology: &Topology, from: usize, seen: &Seen<'_>) -> usize {
    let package = idlest_package(topology, from, seen);
    let llc = idlest_llc(topology, package, from, seen);
    let cpus = &topology.llcs[llc];
    idle_core(topology, cpus, from, seen)
        .or_else(|| CpuSet::first_from([cpus, seen.idle, seen.allowed], from))
        .or_else(|| least_loaded(cpus, seen))
        .or_else(|| least_loaded(seen.allowed, seen))
        .unwrap_or(from)
}

/// Idle CPUs of a group that the task may use.
fn idle(cpus: &CpuSet, seen: &Seen<'_>) -> usize {
    CpuSet::count([cpus, seen.idle, seen.allowed])
}

/// Of some groups, with `local` the parent's, the one with most idle CPUs; where none idles, with fewest tasks a CPU.
fn idlest<'t>(
    groups: impl Iterator<Item = (usize, &'t CpuSet)> + Clone,
    local: usize,
    seen: &Seen<'_>,
) -> Option<usize> {
    let usable = groups.filter(|(_, cpus)| CpuSet::count([cpus, seen.allowed]) > 0);
    // Local last: of equals the last is taken.
    let rank = |&(g, _): &(usize, &CpuSet)| g == local;
    let most = usable.clone().max_by_key(|g| (idle(g.1, seen), rank(g)))?;
    if idle(most.1, seen) > 0 {
        return Some(most.0);
    }
    let load = |cpus: &CpuSet| cpus.iter().map(|c| seen.queues.load(c)).sum::<u64>() / cpus.len() as u64;
    let least = usable.clone().min_by_key(|g| (load(g.1), !rank(g)))?;
    let here = usable.clone().find(rank).map_or(u64::MAX, |g| load(g.1));
    // As loads are compared everywhere: what is within the imbalance that a domain bears is alike.
    Some(if here.saturating_mul(100) <= load(least.1) * IMBALANCE_PCT { local } else { least.0 })
}

fn idlest_package(topology: &Topology, from: usize, seen: &Seen<'_>) -> usize {
    let local = topology.package_of(from);
    if topology.packages.len() == 1 {
        return local;
    }
    let Some(best) = idlest(topology.packages.iter().enumerate(), local, seen) else { return local };
    let cpus = &topology.packages[local];
    let (here, there) = (idle(cpus, seen), idle(&topology.packages[best], seen));
    if topology.keeps > 0 && here > 0 {
        // adjust_numa_imbalance(): memory is nearer here.
        let running: usize = cpus.iter().map(|c| seen.queues.runnable(c)).sum();
        if running < topology.keeps && there.saturating_sub(here) <= PAIR {
            return local;
        }
    }
    best
}

fn idlest_llc(topology: &Topology, package: usize, from: usize, seen: &Seen<'_>) -> usize {
    let llcs = &topology.llcs_of[package];
    if let [only] = llcs[..] {
        return usize::from(only);
    }
    let local = topology.llc_of(from);
    let groups = llcs.iter().map(|&l| (usize::from(l), &topology.llcs[usize::from(l)]));
    idlest(groups, local, seen).unwrap_or(local)
}

/// A core that idles as a whole: the parent's own, else of those with most threads the next one.
fn idle_core(topology: &Topology, cpus: &CpuSet, from: usize, seen: &Seen<'_>) -> Option<usize> {
    let free = if topology.smt { seen.idle_cores } else { seen.idle };
    let next = |threads| CpuSet::first_from([cpus, threads, free, seen.allowed], from);
    topology.by_threads.iter().find_map(next)
}

/// Of some CPUs the one with least load (`sched_balance_find_dst_group_cpu()`).
fn least_loaded(cpus: &CpuSet, seen: &Seen<'_>) -> Option<usize> {
    cpus.iter().filter(|&c| seen.allowed.contains(c)).min_by_key(|&c| seen.queues.load(c))
}
