//! Who shares a core, a last-level cache, a package: the scheduler's domains as sets.

use crate::sched::cpuset::CpuSet;
use wattwise_model::machine::Cpu;

/// The domains of a machine.
#[derive(Clone, Debug)]
pub struct SchedTopology {
    cpus: Vec<Cpu>,
    /// Whether some core has several threads.
    pub(super) smt: bool,
    pub(super) cores: Vec<CpuSet>,
    pub(super) llcs: Vec<CpuSet>,
    pub(super) packages: Vec<CpuSet>,
    /// CPUs in each cache.
    sizes: Vec<usize>,
    /// Caches by package.
    pub(super) llcs_of: Vec<Vec<u16>>,
    /// CPUs by the threads of their core, most first: such a core counts as more idle CPUs.
    pub(super) by_threads: Vec<CpuSet>,
    /// A package with this many tasks or fewer keeps a new one, though another has some more idle CPUs
    /// (`imb_numa_nr`, where packages are NUMA nodes).
    pub(super) keeps: usize,
}

impl SchedTopology {
    /// Of these CPUs; `nodes`: each package has memory of its own, as servers' have.
    pub fn new(cpus: &[Cpu], nodes: bool) -> SchedTopology {
        let sets = |number: fn(&Cpu) -> u16| -> Vec<CpuSet> {
            let count = cpus.iter().map(|c| number(c) + 1).max().unwrap_or(0);
            (0..count).map(|n| CpuSet::of(cpus.len(), |c| number(&cpus[c]) == n)).collect()
        };
        let (cores, llcs, packages) = (sets(|c| c.core), sets(|c| c.llc), sets(|c| c.package));
        let threads = |c: usize| cores[usize::from(cpus[c].core)].len();
        let most = (0..cpus.len()).map(threads).max().unwrap_or(1);
        let by_threads = (1..=most).rev().map(|n| CpuSet::of(cpus.len(), |c| threads(c) == n));
        let in_package = |p: usize| {
            let within = |l: &u16| cpus.iter().any(|c| usize::from(c.package) == p && c.llc == *l);
            (0..llcs.len() as u16).filter(within).collect::<Vec<u16>>()
        };
        let llcs_of: Vec<Vec<u16>> = (0..packages.len()).map(in_package).collect();
        // build_sched_domains(): an eighth of the CPUs of a node of one cache, else one for each cache.
        let allowance = |caches: usize, cpus: usize| if caches == 1 { cpus / 8 } else { caches };
        let first = packages.first().map_or(0, CpuSet::len);
        let keeps = allowance(llcs_of.first().map_or(1, Vec::len), first).max(1);
        SchedTopology {
            cpus: cpus.to_vec(),
            smt: most > 1,
            sizes: llcs.iter().map(CpuSet::len).collect(),
            llcs_of,
            by_threads: by_threads.filter(|s| !s.is_empty()).collect(),
            keeps: if nodes { keeps } else { 0 },
            cores,
            llcs,
            packages,
        }
    }

    /// How many CPUs.
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether it has no CPU.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    #[inline]
    pub(super) fn llc_of(&self, cpu: usize) -> usize {
        usize::from(self.cpus[cpu].llc)
    }

    #[inline]
    pub(super) fn package_of(&self, cpu: usize) -> usize {
        usize::from(self.cpus[cpu].package)
    }

    /// `cpus_share_cache()`
    #[inline]
    pub(super) fn share_cache(&self, a: usize, b: usize) -> bool {
        self.cpus[a].llc == self.cpus[b].llc
    }

    /// CPUs of a CPU's core, itself included.
    #[inline]
    pub fn core(&self, cpu: usize) -> &CpuSet {
        &self.cores[usize::from(self.cpus[cpu].core)]
    }

    /// CPUs of a CPU's last-level cache, and how many (`sd_llc_size`).
    #[inline]
    pub(super) fn llc_cpus(&self, cpu: usize) -> (&CpuSet, usize) {
        let llc = self.llc_of(cpu);
        (&self.llcs[llc], self.sizes[llc])
    }

    /// CPUs that each domain around a CPU has beyond the one within: core, cache, package, machine.
    pub(crate) fn sizes_around(&self, cpu: usize) -> [usize; 4] {
        let package = &self.packages[self.package_of(cpu)];
        let sizes = [self.core(cpu).len(), self.llc_cpus(cpu).1, package.len(), self.len()];
        // A domain looks at all of its CPUs, those of the one within too.
        let mut within = 1;
        sizes.map(|size| if std::mem::replace(&mut within, size) == size { 0 } else { size })
    }

    /// CPUs of the largest last-level cache.
    pub(crate) fn largest_llc(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(1)
    }
}
