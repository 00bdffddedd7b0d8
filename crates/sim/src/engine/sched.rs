//! Run queues, placement and balance.
//!
//! Each CPU shares its time fairly: of the waiting tasks the one with the least weighted run time
//! (virtual time) goes next, for a slice of [`SLICE_NS`]; a task that wakes is put at most half a
//! slice behind the queue's clock, so that sleeping is not saved up, and takes the CPU over when it
//! is owed more than [`WAKE_GRANULARITY_NS`]. Real-time tasks come first, in order of arrival.
//!
//! Placement and balance are separate: a waking task is *placed* on a CPU; a CPU that runs out of
//! work, and a periodic balance, *pull* tasks that wait elsewhere. The balance also *unshares*: a task
//! that shares its core with another, or runs on a weaker kind of core, moves to an idle better one, as
//! Linux's active balance does.

use super::load::TaskLoad;
use super::tasks::State;
use super::{NEVER, NONE, Phase, Simulation, Source, idle};
use std::cmp::Reverse;
use std::collections::VecDeque;
use wattwise_model::machine::Machine;
use wattwise_policy::pelt::FULL;

/// How long a task runs while others wait: the usual 3 ms of Linux's fair class.
const SLICE_NS: u64 = 3_000_000;
/// How much a waking task must be owed to take over at once.
const WAKE_GRANULARITY_NS: u64 = 1_000_000;
/// Period of the balance while tasks wait and CPUs idle: one tick of a 250 Hz kernel.
const BALANCE_NS: u64 = 4_000_000;
/// A task that has waited for less is still warm in its CPU's cache and stays (Linux's migration cost).
const WARM_NS: u64 = 500_000;

/// In a recorded placement a task that has waited for this much longer than it did, one tick of a 250 Hz kernel, is
/// not where the recording machine's balance would have left it.
const LATE_NS: u64 = 4_000_000;

/// How far ahead of a queue's clock a task may arrive: a slice at the lightest weight (nice 19).
const MOST_AHEAD_NS: u64 = 70 * SLICE_NS;
/// How much stronger an idle core must be for a task to move there.
const WEAKER: f64 = 1.05;

/// Which CPU a waking task goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The CPU on which it ran when recorded (same number of CPUs only), in the order in which the
    /// recorded scheduler served the tasks: whoever is furthest behind the recording goes first. At the
    /// recorded speed that repeats the recording's own decisions; at another, all fall back evenly. A
    /// task that waits for 4 ms longer than it did while a CPU idles is moved all the same.
    Recorded,
    /// Its last CPU when that is idle, else an idle core, else an idle thread, else the last CPU.
    Spread,
    /// An idle thread of the fullest package and core: few cores awake (`sched_mc_power_savings`).
    Pack,
    /// Near whoever wakes it, as Linux 3.1 does: the waker's CPU when that idles, else an idle thread of its core, else
    /// of its package. Timers wake tasks where they slept.
    Affine,
    /// [`Placement::Affine`] with `sched_mc_power_savings=1` or `sched_smt_power_savings=1`. That level leaves wake-ups
    /// as they are; the balance no longer pulls running tasks apart. (Linux also pulls tasks together that keep
    /// running, which is not modelled.)
    SchedMc,
    /// One first-come first-served queue for all CPUs, no preemption: the textbook station.
    Fifo,
}

impl Placement {
    /// Whether virtual time decides who goes next.
    #[inline]
    fn shares_fairly(self) -> bool {
        !matches!(self, Placement::Recorded | Placement::Fifo)
    }
}

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuSet(Vec<u64>);

impl CpuSet {
    pub(super) fn new(cpus: usize) -> CpuSet {
        CpuSet(vec![0; cpus.div_ceil(64)])
    }

    /// All CPUs but those of a mask; all of them when the mask would leave none.
    pub(super) fn without(cpus: usize, mask: &[u64]) -> CpuSet {
        let mut set = CpuSet::new(cpus);
        let masked = |c: usize| mask.get(c / 64).is_some_and(|w| w >> (c % 64) & 1 == 1);
        let none_left = (0..cpus).all(masked);
        (0..cpus).filter(|&c| none_left || !masked(c)).for_each(|c| set.insert(c));
        set
    }

    #[inline]
    pub(super) fn insert(&mut self, c: usize) {
        self.0[c / 64] |= 1 << (c % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, c: usize) {
        self.0[c / 64] &= !(1 << (c % 64));
    }

    #[inline]
    pub(super) fn contains(&self, c: usize) -> bool {
        self.0[c / 64] >> (c % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }

    /// The lowest CPU that is in all three.
    #[inline]
    pub(super) fn first_in(&self, b: &CpuSet, c: &CpuSet) -> Option<usize> {
        let words = self.0.iter().zip(&b.0).zip(&c.0).map(|((a, b), c)| a & b & c);
        words.enumerate().find_map(|(i, w)| (w != 0).then(|| i * 64 + w.trailing_zeros() as usize))
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &w)| {
            let mut left = w;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(i * 64 + bit)
            })
        })
    }
}

/// For each package the sets to search for an idle CPU, best first: its own cores by capacity, then
/// the other packages'.
pub(super) fn search_order(m: &Machine) -> Vec<Vec<CpuSet>> {
    let speed = |k: u8| {
        let kind = &m.kinds[usize::from(k)];
        kind.levels[0].cycles_per_ns * kind.ipc
    };
    let mut kinds: Vec<u8> = (0..m.kinds.len() as u8).collect();
    kinds.sort_by(|&a, &b| speed(b).total_cmp(&speed(a)));
    let set = |p: usize, k: u8| {
        let mut s = CpuSet::new(m.cpus.len());
        let member = |c: &wattwise_model::machine::Cpu| usize::from(c.package) == p && c.kind == k;
        (0..m.cpus.len()).filter(|&c| member(&m.cpus[c])).for_each(|c| s.insert(c));
        s
    };
    (0..m.packages.len())
        .map(|own| {
            let others = (0..m.packages.len()).filter(|&p| p != own);
            std::iter::once(own)
                .chain(others)
                .flat_map(|p| kinds.iter().map(move |&k| (p, k)))
                .map(|(p, k)| set(p, k))
                .filter(|s| !s.is_empty())
                .collect()
        })
        .collect()
}

/// Tasks that wait for one CPU.
#[derive(Default)]
pub(super) struct Queue {
    realtime: VecDeque<u32>,
    fair: Vec<u32>,
    /// The queue's clock: virtual time of the task that is furthest behind, never goes back.
    clock: u64,
    /// When the running task was last charged.
    charged_at: u64,
}

impl Queue {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.realtime.len() + self.fair.len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.fair.is_empty() && self.realtime.is_empty()
    }
}

impl Simulation<'_> {
    /// What is expected of the tasks on a CPU, of 1024.
    pub(super) fn expected_of(&self, c: usize) -> u32 {
        let s = &self.cpus[c];
        let waiting = s.queue.realtime.iter().chain(&s.queue.fair);
        let running = (s.current != NONE).then_some(&s.current);
        let here = waiting.chain(running).map(|&t| &self.tasks[t as usize]).filter(|t| t.cpu as usize == c);
        here.map(|t| t.load.expected()).sum()
    }

    /// A new task's credit: half of what its CPU has free.
    fn credit(&mut self, t: u32, c: usize) {
        let load = self.governor.followed_util(c) as i64 + i64::from(self.cpus[c].moved_util);
        let credit = (FULL as i64 - load).clamp(0, FULL as i64) / 2;
        self.tasks[t as usize].load = TaskLoad::credited(credit as u64, self.load_clock());
        self.cpus[c].moved_util += credit as i32;
    }

    /// Chooses a CPU for a runnable task and queues it there. `from` is where the wake-up happens.
    pub(super) fn place(&mut self, t: u32, from: usize) {
        if self.placement == Placement::Recorded {
            self.take_hint(t);
        }
        let target = self.choose_cpu(t, from);
        let mut here = true;
        let task = &mut self.tasks[t as usize];
        if std::mem::take(&mut task.fresh) {
            task.cpu = target as u32;
            self.cpus[target].moved |= task.born;
            // A new task is queued by its parent's CPU; a woken one's own CPU is called.
            here = !task.born || self.cpus[from].domain == self.cpus[target].domain;
            if self.governor.follows_tasks() && task.born {
                self.credit(t, target);
            }
        } else {
            // Whether it moves cannot be foreseen: where that costs nothing, it is not asked.
            let moves = target != task.cpu as usize;
            if moves & (self.governor.is_told() | (self.machine.migration_ns > 0)) {
                self.charge_move(t, target);
            }
            self.tasks[t as usize].cpu = target as u32;
            self.migrations += u64::from(moves);
        }
        self.enqueue(target, t, here);
    }

    /// A task that could run on, but goes on elsewhere or after others, as recorded. An idle CPU finds it when the recorded one
    /// did, at the latest at its next tick.
    pub(super) fn put_off(&mut self, t: u32, c: usize) {
        self.take_hint(t);
        let target = self.choose_cpu(t, c);
        let found = self.tasks[t as usize].order.min(self.next_tick());
        if target != c && self.cpus[target].phase == Phase::Idle && found > self.now {
            self.devices.push(Reverse((found, t)));
            self.arm_devices();
        } else {
            self.move_on(t, c);
        }
    }

    /// Such a task has been found, or is waited for by a busy CPU, which takes it when it has the time: until then its load
    /// stays where it was.
    pub(super) fn move_on(&mut self, t: u32, c: usize) {
        let target = self.choose_cpu(t, c);
        if target == c || self.cpus[target].phase == Phase::Idle {
            return self.place(t, c);
        }
        self.tasks[t as usize].queued_at = self.now;
        self.cpus[target].queue.fair.push(t);
        if self.cpus[target].phase == Phase::Task {
            self.crowd(target, t);
        }
    }

    fn migrate(&mut self, t: u32, target: usize) {
        self.charge_move(t, target);
        self.tasks[t as usize].cpu = target as u32;
        self.migrations += 1;
    }

    /// What a task takes with it to another CPU, and what that costs.
    fn charge_move(&mut self, t: u32, target: usize) {
        let last = self.tasks[t as usize].cpu as usize;
        (self.cpus[last].moved, self.cpus[target].moved) = (true, true);
        if self.governor.follows_tasks() {
            // What waited faded meanwhile.
            self.follow(last, t, false);
            let util = self.tasks[t as usize].load.util();
            self.cpus[last].moved_util -= util as i32;
            self.cpus[target].moved_util += util as i32;
        }
        if self.placement != Placement::Recorded && t != self.governor.daemon {
            self.tasks[t as usize].charge(self.machine.migration_ns);
        }
    }

    #[inline(always)]
    pub(super) fn choose_cpu(&self, t: u32, from: usize) -> usize {
        let task = &self.tasks[t as usize];
        let last = task.cpu as usize;
        match self.placement {
            Placement::Recorded if (task.hint as usize) < self.cpus.len() => task.hint as usize,
            Placement::Recorded => last,
            Placement::Fifo => self.idle_set.first_in(&self.allowed, &self.allowed).unwrap_or(0),
            Placement::Spread => self.choose_spread(last, from),
            Placement::Pack => self.choose_packed(last),
            // A new task goes where most is free.
            Placement::Affine | Placement::SchedMc if task.fresh => self.choose_spread(last, from),
            Placement::Affine | Placement::SchedMc => self.choose_affine(last, from),
        }
    }

    #[inline(never)]
    fn choose_spread(&self, last: usize, from: usize) -> usize {
        let ok = |c: usize| self.allowed.contains(c);
        if ok(last) && self.idle_cores().contains(last) {
            return last;
        }
        let package = usize::from(self.cpus[last].package);
        let order = &self.search[package];
        let idle_core = order.iter().find_map(|s| self.idle_cores().first_in(s, &self.allowed));
        if let Some(c) = idle_core {
            return c;
        }
        if ok(last) && self.idle_set.contains(last) {
            return last;
        }
        if let Some(c) = order.iter().find_map(|s| self.idle_set.first_in(s, &self.allowed)) {
            return c;
        }
        // Nobody idles: the shorter of two queues that are warm for this task.
        let load = |c: usize| self.cpus[c].queue.len();
        match (ok(last), ok(from)) {
            (true, true) if load(from) < load(last) => from,
            (true, _) => last,
            (false, true) => from,
            (false, false) => self.allowed.iter().min_by_key(|&c| load(c)).unwrap_or(last),
        }
    }

    fn choose_affine(&self, last: usize, from: usize) -> usize {
        let ok = |c: usize| self.allowed.contains(c);
        let idle = |c: &usize| ok(*c) && self.idle_set.contains(*c);
        let target = match (ok(from), ok(last)) {
            (true, _) => from,
            (false, true) => last,
            (false, false) => self.allowed.iter().min_by_key(|&c| self.cpus[c].queue.len()).unwrap_or(last),
        };
        let siblings = self.threads_of(usize::from(self.cpus[target].core));
        if idle(&target) {
            return target;
        }
        let order = &self.search[usize::from(self.cpus[target].package)];
        let package = || order.iter().find_map(|s| self.idle_set.first_in(s, &self.allowed));
        siblings.into_iter().find(idle).or_else(package).unwrap_or(target)
    }

    /// CPUs on cores that idle as a whole.
    #[inline]
    pub(super) fn idle_cores(&self) -> &CpuSet {
        if self.smt { &self.idle_cores } else { &self.idle_set }
    }

    /// The idle thread in the package with most busy CPUs, there in the core with most.
    #[inline(never)]
    fn choose_packed(&self, last: usize) -> usize {
        let busy_core = |c: usize| self.cores[usize::from(self.cpus[c].core)].busy_threads();
        let awake = |core: &&u16| self.cores[usize::from(**core)].depth().is_none();
        let busy_package = |c: usize| {
            self.machine.packages[usize::from(self.cpus[c].package)].cores.iter().filter(awake).count()
        };
        let candidates = self.idle_set.iter().filter(|&c| self.allowed.contains(c));
        let best = candidates.max_by_key(|&c| (busy_package(c), busy_core(c), Reverse(c)));
        match best {
            Some(c) => c,
            None if self.allowed.contains(last) => last,
            None => self.allowed.iter().min_by_key(|&c| self.cpus[c].queue.len()).unwrap_or(last),
        }
    }

    /// Whether a task that the recorded scheduler put on a CPU anew has to leave this one, or to let others go first.
    pub(super) fn yields(&self, t: u32, c: usize) -> bool {
        if self.placement != Placement::Recorded {
            return false;
        }
        let task = &self.tasks[t as usize];
        let elsewhere = task.hint as usize != c && (task.hint as usize) < self.cpus.len();
        elsewhere || self.cpus[c].queue.fair.iter().any(|&q| self.tasks[q as usize].order < task.order)
    }

    #[inline(always)]
    fn enqueue(&mut self, c: usize, t: u32, here: bool) {
        let task = &mut self.tasks[t as usize];
        task.queued_at = self.now;
        let s = &mut self.cpus[c];
        if task.realtime && self.placement != Placement::Recorded {
            s.queue.realtime.push_back(t);
        } else {
            s.queue.fair.push(t);
        }
        if self.placement.shares_fairly() {
            // Virtual times are the queue's own: bring the task to this one's clock, at most half a slice
            // behind, and not so far ahead as another queue's clock may have been.
            let clock = s.queue.clock;
            task.vruntime = task.vruntime.clamp(clock.saturating_sub(SLICE_NS / 2), clock + MOST_AHEAD_NS);
        }
        if s.phase == Phase::Idle {
            self.leave_idle(c, idle::Cause::Work);
        } else if s.phase == Phase::Task {
            self.crowd(c, t);
        }
        self.hook_from(c, here);
    }

    /// A task waits behind a running one: it takes over, or the running one gets a slice.
    fn crowd(&mut self, c: usize, t: u32) {
        if self.placement == Placement::Fifo {
            return;
        }
        self.charge_current(c);
        let current = self.cpus[c].current as usize;
        let (new, old) = (&self.tasks[t as usize], &self.tasks[current]);
        let preempts = if self.placement == Placement::Recorded {
            new.order < old.order
        } else if new.realtime || old.realtime {
            new.realtime && !old.realtime
        } else {
            new.vruntime + WAKE_GRANULARITY_NS < old.vruntime
        };
        if preempts {
            self.bank(c);
            self.requeue_current(c);
            self.dispatch(c);
        } else {
            self.share(c);
        }
        self.arm(c);
    }

    /// While others wait, a running task has a slice, and somebody looks for a better place for them.
    #[inline(always)]
    fn share(&mut self, c: usize) {
        if !self.cpus[c].queue.is_empty() && self.placement != Placement::Fifo {
            self.share_with_waiting(c);
        }
    }

    fn share_with_waiting(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        if self.placement == Placement::Recorded {
            // The recorded runs are the slices.
        } else if !s.queue.realtime.is_empty() && !self.tasks[s.current as usize].realtime {
            s.slice_end = self.now;
        } else if s.slice_end == NEVER {
            s.slice_end = self.now + SLICE_NS;
        }
        self.crowded.insert(c);
        self.arm_balance();
    }

    /// Nobody waits on a CPU any more.
    #[inline(always)]
    fn uncrowd(&mut self, c: usize) {
        if !self.crowded.is_empty() {
            self.leave_crowded(c);
        }
    }

    // Out of line: the set's bit would be reckoned for every task that is picked.
    #[inline(never)]
    fn leave_crowded(&mut self, c: usize) {
        self.crowded.remove(c);
    }

    /// Charges the running task for its time since the last charge, and moves the queue's clock.
    #[inline(always)]
    fn charge_current(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let ran = self.now - s.queue.charged_at;
        s.queue.charged_at = self.now;
        if self.placement.shares_fairly() {
            self.charge_fairly(c, ran);
        }
    }

    fn charge_fairly(&mut self, c: usize, ran: u64) {
        let s = &self.cpus[c];
        let task = &mut self.tasks[s.current as usize];
        task.vruntime += ran * u64::from(task.inverse_weight) / 1024;
        let mut least = task.vruntime;
        if !s.queue.fair.is_empty() {
            let waiting = s.queue.fair.iter().map(|&t| self.tasks[t as usize].vruntime).min();
            least = least.min(waiting.unwrap_or(least));
        }
        let queue = &mut self.cpus[c].queue;
        queue.clock = queue.clock.max(least);
    }

    /// The running task's load, told that it ran until now.
    #[inline(always)]
    fn tell_work(&mut self, c: usize, t: u32) {
        if self.governor.follows_tasks() {
            self.follow(c, t, true);
        }
    }

    /// A task's load, brought up to now.
    // Out of line: few policies follow tasks.
    #[inline(never)]
    pub(super) fn follow(&mut self, c: usize, t: u32, ran: bool) {
        let clock = self.load_clock();
        let pace = self.load_pace(c);
        let load = &mut self.tasks[t as usize].load;
        if ran { load.work(clock, pace) } else { load.rest(clock) }
    }

    fn requeue_current(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let t = std::mem::replace(&mut s.current, NONE);
        s.phase = Phase::Switching;
        s.slice_end = NEVER;
        self.tell_work(c, t);
        let s = &mut self.cpus[c];
        let task = &mut self.tasks[t as usize];
        task.queued_at = self.now;
        if task.realtime && self.placement != Placement::Recorded {
            s.queue.realtime.push_front(t);
        } else {
            s.queue.fair.push(t);
        }
    }

    /// Takes the next task off a queue.
    #[inline(always)]
    fn pick(&mut self, c: usize) -> Option<u32> {
        let queue = &mut self.cpus[c].queue;
        if queue.len() > 1 {
            return self.pick_among(c);
        }
        let t = queue.fair.pop().or_else(|| queue.realtime.pop_front())?;
        self.uncrowd(c);
        Some(t)
    }

    /// [`Simulation::pick`] where several wait.
    #[inline(never)]
    fn pick_among(&mut self, c: usize) -> Option<u32> {
        let queue = &mut self.cpus[c].queue;
        if !queue.realtime.is_empty() {
            return queue.realtime.pop_front();
        }
        let at = match queue.fair.len() {
            _ if self.placement == Placement::Fifo => 0,
            n if self.placement == Placement::Recorded => {
                (0..n).min_by_key(|&i| (self.tasks[queue.fair[i] as usize].order, i)).unwrap_or(0)
            }
            n => (0..n).min_by_key(|&i| (self.tasks[queue.fair[i] as usize].vruntime, i)).unwrap_or(0),
        };
        Some(queue.fair.remove(at))
    }

    /// Gives a CPU something to do: interrupt work, then a queued task, then one waiting elsewhere; else it idles.
    pub(super) fn dispatch(&mut self, c: usize) {
        self.cpus[c].phase = Phase::Switching;
        while let Some(t) = self.pick(c).or_else(|| self.pull(c)) {
            if self.go_on(c, t) {
                return;
            }
        }
        let s = &mut self.cpus[c];
        if s.kernel_ns > 0 {
            s.phase = Phase::Kernel;
            return self.begin_run(c);
        }
        self.enter_idle(c);
    }

    /// Lets a task go on from where it was; false when it has nothing to compute.
    #[inline]
    fn go_on(&mut self, c: usize, t: u32) -> bool {
        // One that has been put off comes from where it was; one queue for all is nobody's.
        let moves = self.tasks[t as usize].cpu as usize != c;
        let arrives = self.placement == Placement::Recorded && moves;
        if arrives {
            self.migrate(t, c);
        }
        let task = &mut self.tasks[t as usize];
        task.cpu = c as u32;
        if task.woken_at != NEVER {
            let waited = self.now - task.woken_at;
            task.woken_at = NEVER;
            self.wake_latency.record(waited);
            if let Some(keeper) = &mut self.keeper {
                keeper.waits.record(waited);
            }
        }
        let works = if task.wants_lock() {
            self.lock_and_go_on(t, c)
        } else {
            let steps = task.steps();
            task.has_work() || self.go_further(t, c, steps)
        };
        if !works {
            self.check_done();
            return false;
        }
        let s = &mut self.cpus[c];
        let kernel = std::mem::take(&mut s.kernel_ns);
        if kernel > 0 {
            self.tasks[t as usize].charge(kernel);
        }
        if self.governor.follows_tasks() {
            self.follow(c, t, false);
        }
        let s = &mut self.cpus[c];
        s.current = t;
        s.phase = Phase::Task;
        s.queue.charged_at = self.now;
        s.slice_end = NEVER;
        let others_wait = !s.queue.is_empty();
        self.begin_run(c);
        if others_wait {
            self.share(c);
        }
        if arrives {
            self.hook(c);
        }
        true
    }

    /// The running piece is done.
    #[inline]
    pub(super) fn run_ended(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        s.run_end = NEVER;
        if s.phase == Phase::Kernel {
            s.kernel_ns = 0;
            return self.dispatch(c);
        }
        s.phase = Phase::Switching;
        let t = s.current;
        let ran = self.now - std::mem::replace(&mut s.queue.charged_at, self.now);
        let task = &mut self.tasks[t as usize];
        let steps = task.steps();
        self.cycles += task.finish_piece();
        self.tell_work(c, t);
        if self.placement.shares_fairly() {
            self.charge_fairly(c, ran);
        }
        if self.go_further(t, c, steps) {
            self.cpus[c].phase = Phase::Task;
            self.share(c);
            return self.time_run(c);
        }
        if self.governor.follows_tasks() {
            self.leave_off(c, t);
        }
        let s = &mut self.cpus[c];
        s.current = NONE;
        s.slice_end = NEVER;
        self.check_done();
        if self.governor.is_told() {
            self.hook(c);
            self.cpus[c].moved |= self.tasks[t as usize].state == State::Ended;
        }
        self.dispatch(c);
    }

    /// What a task that runs no further leaves to its CPU's load.
    #[inline(never)]
    fn leave_off(&mut self, c: usize, t: u32) {
        let task = &mut self.tasks[t as usize];
        match task.state {
            // Whoever only lets another go first has not slept: nothing new is expected of it.
            State::Runnable => {}
            State::Ended => self.cpus[c].moved_util -= task.load.util() as i32,
            _ => task.load.sleep(),
        }
    }

    /// The slice is over: whoever is furthest behind goes next.
    pub(super) fn slice_ended(&mut self, c: usize) {
        self.charge_current(c);
        self.cpus[c].slice_end = NEVER;
        if self.cpus[c].queue.is_empty() {
            self.uncrowd(c);
            return;
        }
        self.bank(c);
        self.requeue_current(c);
        self.dispatch(c);
    }

    /// A task that waits on another CPU, for one that would otherwise idle.
    fn pull(&mut self, c: usize) -> Option<u32> {
        match self.placement {
            // The first CPU keeps the queue. That it asks itself, and in vain, is cheaper than a branch nobody can foresee.
            Placement::Fifo => return self.pick(0),
            Placement::Recorded
            | Placement::Spread
            | Placement::Pack
            | Placement::Affine
            | Placement::SchedMc => {}
        }
        if self.crowded.is_empty() || !self.allowed.contains(c) {
            return None;
        }
        self.steal(c, if self.placement == Placement::Recorded { LATE_NS } else { 0 })
    }

    /// Since when a queued task waits; in a recorded placement, since when it waits longer than it did.
    #[inline]
    fn waits_since(&self, t: u32) -> u64 {
        let task = &self.tasks[t as usize];
        if self.placement == Placement::Recorded { task.queued_at.max(task.order) } else { task.queued_at }
    }

    /// The task that has waited longest (at least `least_ns`) on the most crowded CPU, own package first.
    fn steal(&mut self, c: usize, least_ns: u64) -> Option<u32> {
        let package = self.cpus[c].package;
        let now = self.now;
        let longest = |s: &Self, v: usize| {
            let queue = s.cpus[v].queue.fair.iter().enumerate();
            queue.min_by_key(|&(i, &t)| (s.waits_since(t), i)).map(|(i, &t)| (i, t))
        };
        let waits = |s: &Self, v: &usize| {
            longest(s, *v).is_some_and(|(_, t)| now.saturating_sub(s.waits_since(t)) >= least_ns)
        };
        let rank = |s: &Self, v: usize| (s.cpus[v].package == package, s.cpus[v].queue.len(), Reverse(v));
        let victim = self
            .crowded
            .iter()
            .filter(|&v| v != c && self.cpus[v].phase == Phase::Task)
            .filter(|v| waits(self, v))
            .max_by_key(|&v| rank(self, v))?;
        let (at, t) = longest(self, victim)?;
        self.cpus[victim].queue.fair.remove(at);
        if self.cpus[victim].queue.is_empty() {
            self.uncrowd(victim);
            self.charge_current(victim);
            self.cpus[victim].slice_end = NEVER;
            self.arm(victim);
        }
        // Keep how far behind the task is, on the new queue's clock.
        let ahead = self.tasks[t as usize].vruntime.saturating_sub(self.cpus[victim].queue.clock);
        self.tasks[t as usize].vruntime = self.cpus[c].queue.clock + ahead.min(MOST_AHEAD_NS);
        self.migrate(t, c);
        Some(t)
    }

    /// Sees to it that somebody looks again while tasks wait.
    fn arm_balance(&mut self) {
        let source = self.source(Source::Balance);
        if self.placement != Placement::Fifo && self.calendar.at(source) == NEVER {
            self.calendar.set(source, self.now + BALANCE_NS);
        }
    }

    /// Idle CPUs take tasks that wait; long queues shed to short ones.
    pub(super) fn balance(&mut self) {
        let source = self.source(Source::Balance);
        self.calendar.set(source, NEVER);
        let idle: Vec<usize> = self.idle_set.iter().filter(|&c| self.allowed.contains(c)).take(64).collect();
        let least_ns = if self.placement == Placement::Recorded { LATE_NS } else { WARM_NS };
        for c in idle {
            if self.cpus[c].phase != Phase::Idle {
                continue;
            }
            match self.steal(c, least_ns) {
                Some(t) => self.enqueue(c, t, true),
                None => break,
            }
        }
        if self.idle_set.is_empty() && self.placement != Placement::Recorded {
            self.even_out();
        }
        if self.pulls_apart() {
            self.unshare();
        }
        if !self.crowded.is_empty() {
            self.arm_balance();
        }
    }

    /// Whether the balance moves running tasks to better cores.
    #[inline]
    fn pulls_apart(&self) -> bool {
        matches!(self.placement, Placement::Spread | Placement::Affine)
    }

    /// Running tasks that share a core, or run on a weaker kind, move to cores that idle.
    fn unshare(&mut self) {
        for _ in 0..self.cores.len() {
            let order = &self.search[0];
            let Some(target) = order.iter().find_map(|s| self.idle_cores().first_in(s, &self.allowed)) else {
                return;
            };
            let Some(victim) = self.worse_placed(target) else { return };
            let Some(t) = self.stop_running(victim) else { return };
            self.move_over(t, victim, target);
        }
    }

    /// Takes the running task off its CPU, which goes on with its next or idles.
    pub(super) fn stop_running(&mut self, c: usize) -> Option<u32> {
        self.charge_current(c);
        self.bank(c);
        let realtime = self.tasks[self.cpus[c].current as usize].realtime;
        self.requeue_current(c);
        let queue = &mut self.cpus[c].queue;
        let t = if realtime { queue.realtime.pop_front() } else { queue.fair.pop() }?;
        self.dispatch(c);
        self.arm(c);
        Some(t)
    }

    /// Queues a task that waited or ran on one CPU on another, as far behind as it was.
    pub(super) fn move_over(&mut self, t: u32, from: usize, to: usize) {
        let ahead = self.tasks[t as usize].vruntime.saturating_sub(self.cpus[from].queue.clock);
        self.tasks[t as usize].vruntime = self.cpus[to].queue.clock + ahead.min(MOST_AHEAD_NS);
        self.migrate(t, to);
        self.enqueue(to, t, true);
    }

    /// Takes a waiting task off a queue.
    pub(super) fn take_waiting(&mut self, c: usize) -> Option<u32> {
        let queue = &mut self.cpus[c].queue;
        let t = queue.realtime.pop_front().or_else(|| queue.fair.pop())?;
        if queue.is_empty() {
            self.uncrowd(c);
            self.cpus[c].slice_end = NEVER;
        }
        Some(t)
    }

    /// A CPU whose running task would be better off on the idle core of `target`.
    fn worse_placed(&self, target: usize) -> Option<usize> {
        let runs = |c: &usize| {
            let s = &self.cpus[*c];
            s.phase == Phase::Task && !self.tasks[s.current as usize].realtime
        };
        if self.shared_cores > 0 {
            let shared = self.cores.iter().position(|c| c.busy_threads() > 1)?;
            return self.threads_of(shared).rev().find(runs);
        }
        let strength = |c: usize| 1.0 / self.inverse_speed[usize::from(self.cpus[c].kind)][0];
        let weaker = |c: &usize| runs(c) && strength(*c) * WEAKER < strength(target);
        (0..self.cpus.len()).find(weaker)
    }

    /// Sees to it that somebody looks whether tasks could be better placed, now that a CPU idles, if its core does.
    #[inline]
    pub(super) fn arm_unshare(&mut self, c: usize) {
        if self.pulls_apart()
            && (self.shared_cores > 0 || self.machine.kinds.len() > 1)
            && self.idle_cores().contains(c)
        {
            self.arm_balance();
        }
    }

    /// Moves one task from the longest queue to the shortest when that makes them more alike.
    fn even_out(&mut self) {
        let busy = |c: &usize| self.allowed.contains(*c) && self.cpus[*c].phase == Phase::Task;
        let shortest = (0..self.cpus.len()).filter(busy).min_by_key(|&c| self.cpus[c].queue.len());
        let longest = self.crowded.iter().map(|v| self.cpus[v].queue.len()).max();
        if let (Some(c), Some(most)) = (shortest, longest)
            && most >= self.cpus[c].queue.len() + 2
            && let Some(t) = self.steal(c, WARM_NS)
        {
            self.enqueue(c, t, true);
        }
    }
}
