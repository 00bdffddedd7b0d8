//! Where Linux 3.1 puts a task (`kernel/sched_fair.c`: `select_task_rq_fair()`, `select_idle_sibling()`, `idle_balance()`).
//!
//! A **wake-up** goes from the waker's CPU, which `wake_affine()` prefers where it is about to be free: a timer's is the CPU on
//! which the task slept, and a task that wakes another over a socket says that it is about to sleep.
//!
//! 1. That CPU, if it idles.
//! 2. Else the domains around it, from near to far: the first idle CPU. The search ends with the domain that has both the waker's CPU
//!    and the task's last: a task that a timer, or another in its core, wakes stays in that core, whatever idles elsewhere.
//! 3. Else that CPU.
//!
//! A **new task** goes where most is free.
//!
//! **Balance.** A CPU that runs out of work takes a task that waits elsewhere and has not just run, if it idles for at least the
//! migration cost (500 us) on average: one that sleeps for short times takes none. CPUs that sleep without a tick are kicked by the
//! ticks of others, and a core that idles as a whole may then stop a task that runs on a core whose threads all run
//! ([`nohz`](crate::sched::nohz)). Study 002's table of tbench shows it: one core sleeps while a pair of tasks has the other, and
//! now and then the pair moves.
//!
//! Not as 3.1 has it: what a nearer domain finds is taken. In 3.1 a wider domain's find takes its place, the first idle CPU by number:
//! a pair that is torn apart would come together on the first core each time.

use super::{CoreUse, FAIR, Placement, Waking, spread};
use crate::sched::Scheduler;
use crate::sched::balance::{CacheCold, WARM_NS};

/// `affine`
pub(crate) static AFFINE: Placement = Placement {
    name: "affine",
    summary: "an idle thread of its waker's core, else of its package (Linux 3.1)",
    choose,
    steal: &CacheCold { idler_least_ns: WARM_NS },
    kicks_idle: true,
    ..FAIR
};

pub(super) fn choose(s: &mut Scheduler<'_>, w: &Waking, cores: &dyn CoreUse) -> usize {
    if w.fresh {
        return spread::choose(s, w, cores);
    }
    let ok = |c: usize| s.allowed.contains(c);
    let idle = |c: &usize| ok(*c) && s.idle_set.contains(*c);
    let target = match (ok(w.from), ok(w.last)) {
        (true, _) => w.from,
        (false, true) => w.last,
        (false, false) => s.least_queued().unwrap_or(w.last),
    };
    if idle(&target) {
        return target;
    }
    let in_core = s.siblings(target).find(idle);
    // The domain that has both ends the search.
    if s.siblings(target).contains(&w.last) {
        return in_core.unwrap_or(target);
    }
    let order = &s.search[usize::from(s.machine.cpus[target].package)];
    let package = || order.iter().find_map(|set| s.idle_set.first_in(set, &s.allowed));
    in_core.or_else(package).unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{CoreUse, WokenBy};
    use wattwise_model::machine::{MachineModel, builtin, file};

    /// Study 002's notebook: CPUs 0 and 1 are a core, 2 and 3 the other.
    fn notebook() -> MachineModel {
        let name = "core-i5-2gen";
        file::parse(builtin::text(name).expect("bundled"), name).expect("sound")
    }

    /// Cores of which nothing is known: this placement does not ask.
    struct Unseen;

    impl CoreUse for Unseen {
        fn busy_threads(&self, _: usize) -> usize {
            0
        }
        fn is_awake(&self, _: usize) -> bool {
            true
        }
    }

    /// Where task 0, which slept on CPU `last`, is sent from CPU 0 while these idle; by a timer, or by a task.
    fn sent(last: u32, idle: &[usize], by_task: bool) -> usize {
        let m = notebook();
        let mut s = Scheduler::new(&m, &AFFINE, &[]);
        s.add(last, 0, false);
        s.add(0, 0, false);
        idle.iter().for_each(|&c| s.idles(c, 0));
        let waker = by_task.then_some(1);
        s.choose(0, WokenBy { from: 0, current: 1, waker }, false, 0, &Unseen)
    }

    #[test]
    fn a_timer_s_task_stays_in_its_core_whatever_idles_elsewhere() {
        assert_eq!(sent(0, &[0, 1, 2, 3], false), 0, "the CPU itself");
        assert_eq!(sent(0, &[1, 2, 3], false), 1, "its sibling");
        assert_eq!(sent(0, &[2, 3], false), 0, "it waits");
    }

    #[test]
    fn a_task_s_wakee_goes_to_an_idle_cpu_of_its_waker_s_core_else_of_the_package() {
        assert_eq!(sent(2, &[1, 2, 3], true), 1);
        assert_eq!(sent(2, &[3], true), 3, "its waker's core is full");
        assert_eq!(sent(0, &[3], true), 0, "both have that core");
        assert_eq!(sent(2, &[], true), 0);
    }
}
