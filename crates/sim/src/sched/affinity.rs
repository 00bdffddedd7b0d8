//! Tasks that may use some CPUs alone, as `taskset` and cpusets bind them.
//!
//! A bound task is placed by the same rules as any other, among its own CPUs: while it is placed they are all that may be used. CPUs
//! that a core policy keeps idle are left out where that leaves any, as with the kernel's masks. The balance takes it to none but
//! its own.

use super::Scheduler;
use super::cpuset::CpuSet;
use super::placement::{CoreUse, Waking};

/// The CPUs of each bound task, by its number; without any, nothing is asked.
#[derive(Default)]
pub(super) struct BoundTasks(Vec<Option<CpuSet>>);

impl BoundTasks {
    #[inline]
    fn cpus_of(&self, t: u32) -> Option<&CpuSet> {
        self.0.get(t as usize)?.as_ref()
    }

    /// Whether a task may use a CPU.
    #[inline]
    pub(super) fn allow(&self, t: u32, c: usize) -> bool {
        self.cpus_of(t).is_none_or(|cpus| cpus.contains(c))
    }

    #[inline]
    pub(super) fn is_bound(&self, t: u32) -> bool {
        self.cpus_of(t).is_some()
    }
}

impl Scheduler<'_> {
    /// From now on a task may use these CPUs alone. A set without any binds nothing.
    pub(crate) fn bind(&mut self, t: u32, cpus: CpuSet) {
        let Some(first) = cpus.iter().next() else { return };
        let bound = &mut self.bound.0;
        bound.resize(bound.len().max(t as usize + 1), None);
        bound[t as usize] = Some(cpus);
        self.set_cpu(t, first);
    }

    /// Whether a task may use a CPU.
    #[inline]
    pub(crate) fn may_use(&self, t: u32, c: usize) -> bool {
        self.bound.allow(t, c)
    }

    /// As the placement chooses among a bound task's CPUs; the first of those where it does not heed what may be used.
    #[inline(never)]
    pub(super) fn choose_bound(&mut self, w: &Waking, cores: &dyn CoreUse) -> usize {
        let Some(own) = self.bound.cpus_of(w.task) else { return w.last };
        let used = self.allowed.and(own);
        let among = if used.is_empty() { own.clone() } else { used };
        let others = std::mem::replace(&mut self.allowed, among);
        let chosen = (self.placement.choose)(self, w, cores);
        let among = std::mem::replace(&mut self.allowed, others);
        if among.contains(chosen) { chosen } else { among.iter().next().unwrap_or(w.last) }
    }
}
