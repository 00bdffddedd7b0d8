//! Waking CPUs, so that what the kernel counts of their sleep is up to date.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Has this thread visit CPUs, those of them that it may run on. A sleep is counted in its C-state when it ends: a CPU that
/// sleeps on shows nothing of it yet, and stays in a state that was switched off meanwhile.
pub fn wake(cpus: impl IntoIterator<Item = u32>) {
    let Ok(ours) = sched_getaffinity(None) else { return };
    let before = rustix::thread::sched_getcpu();
    // Home again at the end: who looks at counters does so where it was.
    let visits = cpus.into_iter().map(|cpu| cpu as usize).chain([before]);
    for cpu in visits.filter(|cpu| *cpu < CpuSet::MAX_CPU && ours.is_set(*cpu)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        // One that has gone meanwhile sleeps no more.
        _ = sched_setaffinity(None, &one);
    }
    // It was allowed a moment ago; where it no longer is, the kernel has chosen for us.
    _ = sched_setaffinity(None, &ours);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a thread may run is afterwards as it was before, be it one CPU or all.
    #[test]
    fn visits_leave_a_threads_cpus_as_they_were() {
        let ours = sched_getaffinity(None).unwrap();
        let cpus = || (0..CpuSet::MAX_CPU as u32).filter(|cpu| ours.is_set(*cpu as usize));
        for home in cpus() {
            let mut one = CpuSet::new();
            one.set(home as usize);
            sched_setaffinity(None, &one).unwrap();
            // Of the CPUs that it may run on, that is the only one.
            wake([home, 1 << 20]);
            assert_eq!(rustix::thread::sched_getcpu(), home as usize);
            assert_eq!(sched_getaffinity(None).unwrap(), one);
            sched_setaffinity(None, &ours).unwrap();
            wake(cpus());
            assert_eq!(sched_getaffinity(None).unwrap(), ours);
        }
    }
}
