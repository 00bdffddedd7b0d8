//! Each rule in a situation made for it.

use super::*;
use wattwise_model::machine::Cpu;

/// `packages` of so many cores of so many threads, `llc_cores` of them to a last-level cache.
fn machine(packages: usize, cores: usize, threads: usize, llc_cores: usize) -> Vec<Cpu> {
    let all = (0..packages).flat_map(|p| (0..cores).map(move |c| (p, c)));
    all.flat_map(|(p, c)| {
        let core = p * cores + c;
        let llc = p * cores.div_ceil(llc_cores) + c / llc_cores;
        let cpu = Cpu { core: core as u16, package: p as u16, llc: llc as u16, domain: 0, kind: 0 };
        std::iter::repeat_n(cpu, threads)
    })
    .collect()
}

/// A machine, who is busy on it with how many tasks, and the rules.
struct Scene {
    chooser: Chooser,
    tasks: Vec<usize>,
    allowed: CpuSet,
    busy_ns: u64,
    /// Beside that.
    busy_by_cpu: Vec<u64>,
    /// The one task that ended on a CPU.
    ended: Vec<Option<EndedTask>>,
}

impl Queues for Scene {
    fn runnable(&self, cpu: usize) -> usize {
        self.tasks[cpu]
    }
    fn load(&self, cpu: usize) -> u64 {
        self.tasks[cpu] as u64 * 1024
    }
    fn busy_ns(&self, cpu: usize) -> u64 {
        self.busy_ns + self.busy_by_cpu[cpu]
    }
    fn ended_ns(&self, cpu: usize) -> u64 {
        self.ended[cpu].map_or(0, |e| e.ran_ns)
    }
    fn ended_last(&self, cpu: usize) -> Option<EndedTask> {
        self.ended[cpu]
    }
}

impl Scene {
    /// On these CPUs, with one task on each of `busy`; 20 tasks are known.
    fn new(cpus: &[Cpu], busy: &[usize]) -> Scene {
        let mut chooser = Chooser::new(SchedTopology::new(cpus, true));
        (0..20).for_each(|_| chooser.add_task());
        let mut scene = Scene {
            chooser,
            tasks: vec![0; cpus.len()],
            allowed: CpuSet::of(cpus.len(), |_| true),
            busy_ns: 0,
            busy_by_cpu: vec![0; cpus.len()],
            ended: vec![None; cpus.len()],
        };
        busy.iter().for_each(|&c| scene.tasks[c] += 1);
        scene
    }

    fn ask<R>(&mut self, ask: impl FnOnce(&mut Chooser, &CpusSeen<'_>) -> R) -> R {
        let mut chooser = std::mem::replace(&mut self.chooser, Chooser::new(SchedTopology::new(&[], false)));
        let cpus = self.tasks.len();
        let idle = CpuSet::of(cpus, |c| self.tasks[c] == 0);
        let idle_cores = CpuSet::of(cpus, |c| chooser.topology().core(c).iter().all(|s| idle.contains(s)));
        let seen = CpusSeen { idle: &idle, idle_cores: &idle_cores, allowed: &self.allowed, queues: self };
        let answer = ask(&mut chooser, &seen);
        self.chooser = chooser;
        answer
    }

    /// Task 1, last on `prev`, is woken by task 0 on `from`.
    fn wake(&mut self, from: usize, prev: usize, sync: bool) -> (usize, ChoiceRule) {
        let waker = (self.tasks[from] > 0).then_some(0);
        self.wake_as(Wakeup { task: 1, prev, from, waker, sync, load: 100, now: 1_000_000 })
    }

    fn wake_as(&mut self, w: Wakeup) -> (usize, ChoiceRule) {
        let choice = self.ask(|chooser, seen| chooser.wake(&w, seen));
        (choice.cpu, choice.rule)
    }

    fn fork(&mut self, from: usize) -> usize {
        self.ask(|chooser, seen| chooser.fork(from, 1_000_000, seen))
    }
}

#[test]
fn an_idle_last_cpu_is_taken() {
    let cpus = machine(1, 4, 1, 4);
    // Not the waker's: that runs the waker, and its last CPU idles.
    assert_eq!(Scene::new(&cpus, &[0]).wake(0, 2, false), (2, ChoiceRule::Target));
    // A waker that is about to block makes its CPU the target; the last CPU comes second.
    assert_eq!(Scene::new(&cpus, &[0]).wake(0, 2, true), (2, ChoiceRule::Previous));
    // A timer on an idle CPU.
    assert_eq!(Scene::new(&cpus, &[]).wake(2, 2, false), (2, ChoiceRule::Target));
}

#[test]
fn an_interrupt_on_an_idle_cpu_takes_the_task_from_a_busy_one() {
    let cpus = machine(1, 4, 1, 4);
    assert_eq!(Scene::new(&cpus, &[2]).wake(1, 2, false), (1, ChoiceRule::Target));
    // In another cache it does not: the busy last CPU is left alone only if it is the heavier.
    let two = machine(2, 2, 1, 2);
    assert_eq!(Scene::new(&two, &[2]).wake(0, 3, false), (3, ChoiceRule::Target));
}

#[test]
fn a_blocking_waker_pulls_into_its_cache() {
    let two = machine(2, 2, 1, 2);
    let mut scene = Scene::new(&two, &[0]);
    assert_eq!(scene.wake(0, 3, false), (3, ChoiceRule::Target), "its last CPU idles");
    assert_eq!(scene.wake(0, 3, true), (1, ChoiceRule::Scan), "near its waker");
    // With another task on its CPU the waker's blocking frees nothing.
    let mut scene = Scene::new(&two, &[0, 0]);
    assert_eq!(scene.wake(0, 3, true), (3, ChoiceRule::Target));
}

#[test]
fn the_lighter_of_two_busy_cpus_is_the_target() {
    let two = machine(2, 2, 1, 2);
    let all = [0, 1, 2, 3];
    let mut scene = Scene::new(&two, &all);
    assert_eq!(scene.wake(0, 3, false), (3, ChoiceRule::Busy), "equal: it stays");
    let mut scene = Scene::new(&two, &[0, 1, 2, 3, 3, 3]);
    assert_eq!(scene.wake(0, 3, false), (0, ChoiceRule::Busy));
}

#[test]
fn the_cpu_before_its_last_comes_next() {
    let cpus = machine(1, 8, 1, 8);
    let mut scene = Scene::new(&cpus, &[0, 1, 2]);
    // It looks beyond its last CPU (1), which becomes the recent one.
    assert_eq!(scene.wake(0, 1, true), (3, ChoiceRule::Scan));
    scene.tasks[1] = 0;
    scene.tasks[3] = 1;
    assert_eq!(scene.wake(0, 3, true), (1, ChoiceRule::Recent));
    // A recent CPU in another cache is no use.
    let two = machine(2, 4, 1, 4);
    let mut scene = Scene::new(&two, &[0, 1]);
    assert_eq!(scene.wake(0, 1, true), (2, ChoiceRule::Scan));
    let mut scene = Scene { tasks: vec![0, 0, 0, 0, 1, 1, 0, 0], ..scene };
    assert_eq!(scene.wake(4, 5, true), (6, ChoiceRule::Scan));
}

#[test]
fn an_idle_core_goes_before_an_idle_thread() {
    let cpus = machine(1, 4, 2, 4);
    // Cores 0 and 1 are half busy; core 2 idles, and the search begins after the target.
    let mut scene = Scene::new(&cpus, &[0, 2]);
    assert_eq!(scene.wake(0, 2, true), (4, ChoiceRule::Core));
    // No core idles: the flag is out of date, the whole cache is looked at, and the flag goes.
    let mut scene = Scene::new(&cpus, &[0, 2, 4, 6]);
    assert_eq!(scene.wake(0, 2, true), (1, ChoiceRule::Scan));
    // Now a sibling of its last CPU is next.
    assert_eq!(scene.wake(0, 2, true), (3, ChoiceRule::Sibling));
    scene.chooser.core_idles(6);
    scene.tasks[6] = 0;
    assert_eq!(scene.wake(0, 2, true), (6, ChoiceRule::Core));
}

#[test]
fn a_loaded_cache_is_searched_less() {
    let cpus = machine(1, 16, 1, 16);
    let busy: Vec<usize> = (0..15).collect();
    let w = Wakeup { task: 1, prev: 1, from: 0, waker: Some(0), sync: true, load: 100, now: 0 };
    let mut scene = Scene::new(&cpus, &busy);
    assert_eq!(scene.wake_as(w), (15, ChoiceRule::Scan), "nothing is known of its load");
    // A second later all CPUs have been 60 % busy: 16 (1 - 0.70^2) = 8 CPUs are looked at.
    let later = Wakeup { now: 1_000_000_000, ..w };
    scene.busy_ns = 600_000_000;
    assert_eq!(scene.wake_as(later), (0, ChoiceRule::Busy));
    scene.tasks[8] = 0;
    assert_eq!(scene.wake_as(later), (8, ChoiceRule::Scan));
    // Over 85 % nobody looks.
    scene.busy_ns = 1_590_000_000;
    scene.tasks[1] = 1;
    scene.tasks[2] = 0;
    assert_eq!(scene.wake_as(Wakeup { now: 2_000_000_000, ..w }), (0, ChoiceRule::Busy));
}

#[test]
fn a_server_of_many_does_not_pull() {
    let cpus = machine(2, 2, 1, 2);
    let mut scene = Scene::new(&cpus, &[0, 3]);
    // Its workers each wake two others in turn.
    for round in 0..40u32 {
        for task in 1..9 {
            let now = u64::from(round) * 1_000;
            let wakes = |task, waker| Wakeup { task, prev: 2, from: 0, waker, sync: true, load: 0, now };
            scene.wake_as(wakes(task, Some(0)));
            scene.wake_as(wakes(10 + (round + task) % 2, Some(task)));
        }
    }
    assert_eq!(scene.wake(0, 3, true), (2, ChoiceRule::Recent), "the busy last CPU stays the target");
    // Seconds later that is forgotten.
    for halvings in 1..16 {
        let now = halvings * 2_000_000_000;
        let wakes = |task, waker| Wakeup { task, prev: 2, from: 0, waker, sync: true, load: 0, now };
        scene.wake_as(wakes(1, Some(0)));
        scene.wake_as(wakes(10, Some(1)));
    }
    let w = Wakeup { task: 1, prev: 3, from: 0, waker: Some(0), sync: true, load: 0, now: 32_000_000_000 };
    assert_eq!(scene.wake_as(w), (1, ChoiceRule::Scan), "near its waker");
}

#[test]
fn cpus_that_are_not_allowed_are_not_found() {
    let cpus = machine(1, 4, 1, 4);
    let mut scene = Scene::new(&cpus, &[0, 1]);
    scene.allowed = CpuSet::of(4, |c| c != 2);
    assert_eq!(scene.wake(0, 1, true), (3, ChoiceRule::Scan));
    scene.allowed = CpuSet::of(4, |c| c == 1);
    assert_eq!(scene.wake(0, 1, true), (1, ChoiceRule::Busy), "the waker's CPU is none for it");
}

#[test]
fn a_new_task_goes_to_the_idlest() {
    let two = machine(2, 8, 2, 8);
    // The parent alone: its package is as good, and a whole core there better than its sibling.
    assert_eq!(Scene::new(&two, &[0]).fork(0), 2);
    // An eighth of the package runs here: two idle CPUs more elsewhere do not count.
    assert_eq!(Scene::new(&two, &[0]).fork(0), 2);
    assert_eq!(Scene::new(&two, &[0, 2]).fork(0), 16, "beyond that they do");
    let flat = machine(2, 2, 1, 2);
    assert_eq!(Scene::new(&flat, &[0, 1]).fork(0), 2);
    // All are busy: the CPU with least to do.
    assert_eq!(Scene::new(&flat, &[0, 0, 1, 2, 3, 3]).fork(0), 1, "packages are alike");
    assert_eq!(Scene::new(&flat, &[0, 0, 1, 1, 2, 3]).fork(0), 2);
}

/// Four cores of two threads; the parent runs on the first. What a program has left where it ended makes the next one go
/// elsewhere: to the core where least was left, until somebody has looked after all of them.
#[test]
fn short_programs_go_from_core_to_core() {
    const MS: u64 = 1_000_000;
    let mut scene = Scene::new(&machine(1, 4, 2, 4), &[0]);
    let mut core_of_next = |at: u64, ran_ns: u64| {
        let cpu = scene.ask(|chooser, seen| chooser.fork(0, at, seen));
        scene.busy_by_cpu[cpu] = ran_ns;
        scene.ended[cpu] = Some(EndedTask { at: at + ran_ns, ran_ns });
        cpu / 2
    };
    let lengths = [(1, 2 * MS), (4, 5 * MS), (10, 3 * MS), (14, 4 * MS), (19, MS), (21, MS)];
    assert_eq!(lengths.map(|(at, ran)| core_of_next(at * MS, ran)), [1, 2, 3, 1, 3, 3]);
    assert_eq!(core_of_next(40 * MS, MS), 1, "looked after meanwhile");
}

/// A daemon's work on core 1 counts for as long as it is recent; what ended there does not.
#[test]
fn a_new_task_goes_where_least_was_done_lately() {
    const MS: u64 = 1_000_000;
    let after = |ended: Option<EndedTask>, at: u64| {
        let mut scene = Scene::new(&machine(1, 4, 2, 4), &[0]);
        scene.ask(|chooser, seen| chooser.fork(0, 40 * MS, seen));
        scene.busy_by_cpu[2] += 3 * MS;
        scene.ended[2] = ended;
        scene.ask(|chooser, seen| chooser.fork(0, at, seen)) / 2
    };
    assert_eq!(after(None, 80 * MS), 2);
    assert_eq!(after(None, 9000 * MS), 1, "long ago");
    assert_eq!(after(Some(EndedTask { at: 50 * MS, ran_ns: 3 * MS }), 80 * MS), 1, "it took its part along");
}

#[test]
fn a_new_task_prefers_cores_with_more_idle_threads_then_caches() {
    // Two cores of two threads, two of one.
    let mut hybrid = machine(1, 2, 2, 4);
    for core in 2..4 {
        hybrid.push(Cpu { core, package: 0, llc: 0, domain: 0, kind: 1 });
    }
    assert_eq!(Scene::new(&hybrid, &[4]).fork(4), 0);
    assert_eq!(Scene::new(&hybrid, &[0, 2]).fork(0), 4, "a core of its own before a busy one's sibling");
    assert_eq!(Scene::new(&hybrid, &[0, 2, 4, 5]).fork(0), 1);
    let clusters = machine(1, 8, 1, 4);
    assert_eq!(Scene::new(&clusters, &[0, 1]).fork(0), 4);
    assert_eq!(Scene::new(&clusters, &[0, 5]).fork(0), 1, "local where that is as good");
}
