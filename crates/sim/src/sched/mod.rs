//! The scheduler owns the run queues, the tasks' virtual times and loads, and the sets of CPUs that idle, are crowded or
//! may be used. It answers where a task goes ([`Scheduler::choose`]), whether it preempts, who is picked next, and who is
//! stolen from whom.
//!
//! Each CPU shares its time fairly: of the waiting tasks the one with the least weighted run time
//! (virtual time) goes next, for a slice of [`SLICE_NS`]; a task that wakes is put at most half a
//! slice behind the queue's clock, so that sleeping is not saved up, and preempts the running one when it
//! is owed more than [`WAKE_GRANULARITY_NS`]. Real-time tasks come first, in order of arrival. A placement may
//! order its tasks in another way ([`order::QueueOrder`]).
//!
//! Placement and balance are separate: a waking task is *placed* on a CPU; a CPU that runs out of
//! work, and a periodic balance, *steal* tasks that wait elsewhere.
//!
//! | file | holds |
//! |---|---|
//! | `queue.rs` | a run queue, and what is known of a task |
//! | `load.rs` | a task's load as the scheduler measures it |
//! | `cpuset.rs` | sets of CPUs |
//! | `placement/` | where a waking task goes, one file each |
//! | `order.rs` | in which order waiting tasks go |
//! | `affinity.rs` | tasks that may use some CPUs alone |
//! | `balance.rs` | who is stolen from whom |

mod affinity;
mod balance;
pub(crate) mod cpuset;
pub(crate) mod load;
pub(crate) mod nohz;
mod order;
pub mod placement;
mod queue;

pub(crate) use balance::{Pulled, Stolen};
pub(crate) use order::Contest;

use crate::NONE;
use crate::calendar::NEVER;
use affinity::BoundTasks;
use balance::IdleStay;
use cpuset::CpuSet;
use load::TaskLoad;
use placement::eas::{self, Eas};
use placement::linux::{Chooser, CpusSeen, EndedTask, Queues, SchedTopology};
use placement::{CoreUse, Placement, Waking};
use queue::{Entity, Queue};
use wattwise_model::machine::MachineModel;
use wattwise_policy::pelt::FULL;

/// How long a task runs while others wait: the usual 3 ms of Linux's fair class.
const SLICE_NS: u64 = 3_000_000;
/// How much a waking task must be owed to take over at once.
const WAKE_GRANULARITY_NS: u64 = 1_000_000;
/// How far ahead of a queue's clock a task may arrive: a slice at the lightest weight (nice 19).
const MOST_AHEAD_NS: u64 = 70 * SLICE_NS;

/// Where a wake-up happens, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct WokenBy {
    pub(crate) from: usize,
    /// Who runs there, or [`NONE`].
    pub(crate) current: u32,
    /// Who wakes, where that is a task and no interrupt.
    pub(crate) waker: Option<u32>,
}

/// Run queues and sets of CPUs.
pub(crate) struct Scheduler<'a> {
    machine: &'a MachineModel,
    placement: &'static Placement,
    /// A queue a CPU.
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    /// By CPU.
    ended: Vec<EndedTasks>,
    /// Each task's load, where a policy follows it.
    loads: Vec<TaskLoad>,
    idle_set: CpuSet,
    /// Of those, the ones on cores that idle as a whole; kept where a core has several threads.
    idle_cores: CpuSet,
    smt: bool,
    /// CPUs on which some task waits behind another.
    crowded: CpuSet,
    allowed: CpuSet,
    bound: BoundTasks,
    /// Each package's CPUs.
    packages: Vec<CpuSet>,
    /// For each package the sets to search for an idle CPU, best first.
    search: Vec<Vec<CpuSet>>,
    /// Linux's rules, and what they remember.
    chooser: Chooser,
    /// Who is waking another, or [`NONE`]: then it is an interrupt.
    waker: u32,
    /// How long each CPU idles; none where nothing asks.
    stays: Vec<IdleStay>,
    /// Since when a core is shared while another idles; [`NEVER`] while that is not so.
    shared_since: u64,
    /// What is known of energy, where the placement goes by it.
    eas: Option<Box<Eas>>,
    /// Stronger cores pull only tasks that do not fit a weaker one.
    pulls_misfits: bool,
}

/// Tasks that ended on a CPU.
#[derive(Clone, Copy, Default)]
struct EndedTasks {
    /// What they ran, in ns.
    ns: u64,
    last: EndedTask,
}

/// The queues as a wake-up may know them.
struct QueuesNow<'a> {
    queues: &'a [Queue],
    ended: &'a [EndedTasks],
    entities: &'a [Entity],
    idle: &'a CpuSet,
    now: u64,
}

impl Queues for QueuesNow<'_> {
    fn runnable(&self, cpu: usize) -> usize {
        self.queues[cpu].len() + usize::from(!self.idle.contains(cpu))
    }

    fn load(&self, cpu: usize) -> u64 {
        // Who runs is not known here: as if of nice level 0.
        let running = if self.idle.contains(cpu) { 0 } else { 1024 };
        let waiting = self.queues[cpu].fair.iter().map(|&t| self.entities[t as usize].weight());
        running + waiting.sum::<u64>()
    }

    fn busy_ns(&self, cpu: usize) -> u64 {
        let queue = &self.queues[cpu];
        let running = if self.idle.contains(cpu) { 0 } else { self.now.saturating_sub(queue.charged_at) };
        queue.busy_ns + running
    }

    fn ended_ns(&self, cpu: usize) -> u64 {
        self.ended[cpu].ns
    }

    fn ended_last(&self, cpu: usize) -> Option<EndedTask> {
        let ended = self.ended[cpu];
        (ended.ns > 0 && ended.last.at == self.queues[cpu].charged_at).then_some(ended.last)
    }
}

/// The CPU on which a task's run began as recorded, and when, in ns.
type RecordedRun = (u32, u64);

impl<'a> Scheduler<'a> {
    /// Empty queues; tasks recorded there aside, none is placed on the CPUs of the mask `idle_cpus`.
    pub(crate) fn new(
        machine: &'a MachineModel,
        placement: &'static Placement,
        idle_cpus: &[u64],
    ) -> Scheduler<'a> {
        let cpus = machine.cpus.len();
        let eas = (placement.energy)(machine);
        Scheduler {
            machine,
            placement,
            queues: (0..cpus).map(|_| Queue::default()).collect(),
            ended: vec![EndedTasks::default(); cpus],
            entities: Vec::new(),
            loads: Vec::new(),
            idle_set: CpuSet::new(cpus),
            idle_cores: CpuSet::new(cpus),
            smt: machine.cores.len() < cpus,
            crowded: CpuSet::new(cpus),
            packages: (0..machine.packages.len())
                .map(|p| CpuSet::of(cpus, |c| usize::from(machine.cpus[c].package) == p))
                .collect(),
            allowed: CpuSet::without(cpus, idle_cpus),
            bound: BoundTasks::default(),
            search: cpuset::search_order(machine),
            // Packages have memory of their own wherever there are several.
            chooser: Chooser::new(SchedTopology::new(&machine.cpus, true)),
            waker: NONE,
            stays: vec![IdleStay::LONG; if placement.steal.follows_stays() { cpus } else { 0 }],
            shared_since: NEVER,
            pulls_misfits: eas.is_some() || placement.steal.pulls_only_misfits(machine),
            eas,
        }
    }

    /// A new task, whose CPU is `cpu` until it is placed.
    pub(crate) fn add(&mut self, cpu: u32, nice: i8, realtime: bool) {
        let goes_first = realtime && self.placement.order.realtime_first();
        self.entities.push(Entity::new(cpu, nice, realtime, goes_first));
        self.loads.push(TaskLoad::default());
        self.chooser.add_task();
    }

    #[inline]
    fn entity(&self, t: u32) -> &Entity {
        &self.entities[t as usize]
    }

    /// CPU of a task's last run, and of its timers.
    #[inline]
    pub(crate) fn cpu_of(&self, t: u32) -> usize {
        self.entity(t).cpu as usize
    }

    #[inline]
    pub(crate) fn set_cpu(&mut self, t: u32, c: usize) {
        self.entities[t as usize].cpu = c as u32;
    }

    /// Takes note of where and when a task's coming run began as recorded, if that is of interest; `next` reads it. The recorded CPU
    /// of its last run, where that was read.
    #[inline]
    pub(crate) fn note_recorded_run(
        &mut self,
        t: u32,
        next: impl FnOnce() -> Option<RecordedRun>,
    ) -> Option<usize> {
        if !self.placement.reads_recorded_runs {
            return None;
        }
        let last = self.hint(t);
        if let Some(run) = next() {
            self.set_hint(t, run);
        }
        last
    }

    /// The recorded CPU of a task's coming run, and when that began.
    #[inline]
    pub(crate) fn set_hint(&mut self, t: u32, (cpu, at_ns): RecordedRun) {
        let entity = &mut self.entities[t as usize];
        (entity.hint, entity.order) = (cpu, at_ns);
    }

    /// The recorded CPU of a task's coming run, where this machine has it.
    #[inline]
    pub(crate) fn hint(&self, t: u32) -> Option<usize> {
        Some(self.entity(t).hint as usize).filter(|&c| c < self.queues.len())
    }

    /// When the coming run began as recorded.
    #[inline]
    pub(crate) fn recorded_at(&self, t: u32) -> u64 {
        self.entity(t).order
    }

    /// A task's load.
    #[inline]
    pub(crate) fn load(&mut self, t: u32) -> &mut TaskLoad {
        &mut self.loads[t as usize]
    }

    /// A new task's credit, of 1024: half of what a CPU of this capacity with this load has free.
    pub(crate) fn credit(&mut self, t: u32, clock_ns: u64, capacity: u64, load: i64) -> u64 {
        let credit = ((capacity as i64 - load).clamp(0, FULL as i64) / 2) as u64;
        *self.load(t) = TaskLoad::credited(credit, clock_ns);
        credit
    }

    /// What is expected of the tasks on a CPU, of 1024; `running` is the one that is not queued.
    pub(crate) fn expected_of(&self, c: usize, running: Option<u32>) -> u32 {
        let waiting = self.queues[c].realtime.iter().chain(&self.queues[c].fair);
        let here = waiting.copied().chain(running).filter(|&t| self.cpu_of(t) == c);
        here.map(|t| self.loads[t as usize].expected()).sum()
    }

    /// Whether the balance is to leave tasks where they are.
    #[inline]
    pub(crate) fn holds_balance(&self) -> bool {
        self.eas.as_ref().is_some_and(|eas| eas.holds())
    }

    /// Whether stronger cores pull only tasks that do not fit a weaker one. It is for whoever asks to keep running tasks' loads up
    /// to date then, if the speed policy follows them at all.
    #[inline]
    pub(crate) fn pulls_misfits(&self) -> bool {
        self.pulls_misfits
    }

    /// Whether a running task no longer fits its CPU (`task_fits_cpu()`).
    pub(crate) fn is_misfit(&self, t: u32, c: usize) -> bool {
        let load = &self.loads[t as usize];
        let need = u64::from(load.util().max(load.expected()));
        !eas::fits(need, u64::from(self.machine.scheduler_capacity(usize::from(self.machine.cpus[c].kind))))
    }

    /// A CPU idles.
    #[inline]
    pub(crate) fn idles(&mut self, c: usize, now: u64) {
        self.idle_set.insert(c);
        if self.smt {
            let siblings = self.siblings(c);
            if siblings.clone().all(|t| self.idle_set.contains(t)) {
                siblings.for_each(|t| self.idle_cores.insert(t));
                self.chooser.core_idles(c);
            }
        }
        if let Some(stay) = self.stays.get_mut(c) {
            stay.begins(now);
        }
    }

    /// A CPU is wanted.
    #[inline(always)]
    pub(crate) fn wakes(&mut self, c: usize, now: u64) {
        self.idle_set.remove(c);
        if self.smt {
            self.siblings(c).for_each(|t| self.idle_cores.remove(t));
        }
        if let Some(stay) = self.stays.get_mut(c) {
            stay.ends(now);
        }
    }

    /// The coming wake-up is by a task.
    #[inline]
    pub(crate) fn wakes_another(&mut self, waker: u32) {
        self.waker = waker;
    }

    /// Who is waking another, where that is a task; it is asked once.
    #[inline]
    pub(crate) fn take_waker(&mut self) -> Option<u32> {
        Some(std::mem::replace(&mut self.waker, NONE)).filter(|&t| t != NONE)
    }

    /// CPUs of the core of `c`, itself included.
    #[inline]
    fn siblings(&self, c: usize) -> std::ops::Range<usize> {
        let cpus = &self.machine.cores[usize::from(self.machine.cpus[c].core)].cpus;
        let first = usize::from(cpus[0]);
        first..first + cpus.len()
    }

    /// CPUs on cores that idle as a whole.
    #[inline]
    pub(crate) fn idle_cores(&self) -> &CpuSet {
        if self.smt { &self.idle_cores } else { &self.idle_set }
    }

    /// The first `most` CPUs that idle and may be used.
    pub(crate) fn idle_cpus(&self, most: usize) -> Vec<usize> {
        self.idle_set.iter().filter(|&c| self.allowed.contains(c)).take(most).collect()
    }

    /// Only these CPUs may be used from now on.
    pub(crate) fn allow(&mut self, cpus: impl Iterator<Item = usize>) {
        self.allowed = CpuSet::new(self.queues.len());
        cpus.for_each(|c| self.allowed.insert(c));
    }

    /// The CPU for a runnable task. `from` is where the wake-up happens, `current` who runs there, `waker` who wakes it if
    /// that is a task; `fresh`: it has not been on any.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        t: u32,
        by: WokenBy,
        fresh: bool,
        now: u64,
        cores: &dyn CoreUse,
    ) -> usize {
        let waking = Waking {
            task: t,
            last: self.cpu_of(t),
            hint: self.entity(t).hint,
            from: by.from,
            waker: by.waker.unwrap_or(by.current),
            by_task: by.waker.is_some(),
            fresh,
            now,
        };
        if self.bound.is_bound(t) {
            return self.choose_bound(&waking, cores);
        }
        (self.placement.choose)(self, &waking, cores)
    }

    /// Asks Linux's rules about the CPUs as they are, and how long tasks have run.
    fn with_linux<R>(
        &mut self,
        now: u64,
        ask: impl FnOnce(&mut Chooser, &CpusSeen<'_>, &dyn Fn(u32) -> u64) -> R,
    ) -> R {
        let idle = &self.idle_set;
        let queues =
            QueuesNow { queues: &self.queues, ended: &self.ended, entities: &self.entities, idle, now };
        let idle_cores = if self.smt { &self.idle_cores } else { idle };
        let seen = CpusSeen { idle, idle_cores, allowed: &self.allowed, queues: &queues };
        ask(&mut self.chooser, &seen, &|t| self.entities[t as usize].ran_ns)
    }

    /// A task has ended on a CPU.
    pub(crate) fn ends(&mut self, t: u32, c: usize) {
        let ended = &mut self.ended[c];
        ended.last = EndedTask { at: self.queues[c].charged_at, ran_ns: self.entities[t as usize].ran_ns };
        ended.ns += ended.last.ran_ns;
    }

    /// Of the CPUs that may be used, the one for which fewest wait.
    fn least_queued(&self) -> Option<usize> {
        self.allowed.iter().min_by_key(|&c| self.queues[c].len())
    }

    /// Whether a task that the recorded scheduler put on a CPU anew has to leave this one, or to let others go first.
    pub(crate) fn yields(&self, t: u32, c: usize) -> bool {
        self.placement.order.yields(self, t, c)
    }

    /// Whether a task that CPU `c` has picked moves there only now.
    #[inline]
    pub(crate) fn arrives(&self, t: u32, c: usize) -> bool {
        self.placement.reads_recorded_runs && self.placement.order.arrives(self.entity(t), c)
    }

    /// What a task pays for distance, of what that costs and what its recorded run already holds, in ns.
    #[inline]
    pub(crate) fn distance_ns(&self, cost: u64, recorded: u64) -> u64 {
        (self.placement.distance_ns)(cost, recorded)
    }

    /// How many wait for a CPU.
    #[inline]
    pub(crate) fn waiting(&self, c: usize) -> usize {
        self.queues[c].len()
    }

    #[inline]
    pub(crate) fn nobody_waits(&self, c: usize) -> bool {
        self.queues[c].is_empty()
    }

    /// Whether a CPU is kept for work.
    pub(crate) fn is_allowed(&self, c: usize) -> bool {
        self.allowed.contains(c)
    }

    #[inline]
    pub(crate) fn is_realtime(&self, t: u32) -> bool {
        self.entity(t).realtime
    }

    /// Queues a task on a CPU.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, c: usize, t: u32, now: u64) {
        let entity = &mut self.entities[t as usize];
        entity.queued_at = now;
        let queue = &mut self.queues[c];
        self.placement.order.joins(queue, entity);
        if entity.goes_first {
            queue.realtime.push_back(t);
        } else {
            queue.fair.push_back(t);
        }
    }

    /// Queues a task that is waited for by a busy CPU: it still belongs to the CPU where it was.
    pub(crate) fn enqueue_from_afar(&mut self, c: usize, t: u32, now: u64) {
        self.entities[t as usize].queued_at = now;
        self.queues[c].fair.push_back(t);
    }

    /// Puts a task that ran back on its queue.
    pub(crate) fn requeue(&mut self, c: usize, t: u32, now: u64) {
        let entity = &mut self.entities[t as usize];
        entity.queued_at = now;
        let queue = &mut self.queues[c];
        if entity.goes_first {
            queue.realtime.push_front(t);
        } else {
            queue.fair.push_back(t);
        }
    }

    /// Takes off its queue a task that has just been put back there.
    pub(crate) fn dequeue_last(&mut self, c: usize, t: u32) -> Option<u32> {
        let queue = &mut self.queues[c];
        if self.entities[t as usize].goes_first { queue.realtime.pop_front() } else { queue.fair.pop_back() }
    }

    /// Takes some waiting task off a queue.
    pub(crate) fn dequeue_any(&mut self, c: usize) -> Option<u32> {
        let queue = &mut self.queues[c];
        let t = queue.realtime.pop_front().or_else(|| queue.fair.pop_back())?;
        if queue.is_empty() {
            self.uncrowd(c);
        }
        Some(t)
    }

    /// A task begins to run on a CPU; true when others wait there.
    #[inline]
    pub(crate) fn starts(&mut self, c: usize, now: u64) -> bool {
        let queue = &mut self.queues[c];
        queue.charged_at = now;
        !queue.is_empty()
    }

    /// Charges the running task `t` for its time since the last charge, and moves the queue's clock.
    #[inline(always)]
    pub(crate) fn charge(&mut self, c: usize, t: u32, now: u64) {
        let ran = now - std::mem::replace(&mut self.queues[c].charged_at, now);
        self.placement.order.charge(self, c, t, ran, now);
    }

    /// What becomes of task `t`, which has been queued on a CPU where `running` runs.
    pub(crate) fn contest(&mut self, c: usize, t: u32, running: u32, now: u64) -> Contest {
        self.placement.order.contest(self, c, t, running, now)
    }

    /// Others wait while `t` runs on a CPU: when its slice ends, which was to end at `slice_end`; none where nobody shares.
    pub(crate) fn share(&mut self, c: usize, t: u32, now: u64, slice_end: u64) -> Option<u64> {
        let end = self.placement.order.slice_end(&self.queues[c], self.entity(t), now, slice_end)?;
        self.crowded.insert(c);
        Some(end)
    }

    /// Takes the next task off a queue.
    #[inline(always)]
    pub(crate) fn pick(&mut self, c: usize) -> Option<u32> {
        let queue = &mut self.queues[c];
        if queue.len() > 1 {
            return self.pick_among(c);
        }
        let t = queue.fair.pop_back().or_else(|| queue.realtime.pop_front())?;
        self.uncrowd(c);
        Some(t)
    }

    /// [`Scheduler::pick`] where several wait.
    #[inline(never)]
    fn pick_among(&mut self, c: usize) -> Option<u32> {
        let queue = &self.queues[c];
        if !queue.realtime.is_empty() {
            return self.queues[c].realtime.pop_front();
        }
        let at = self.placement.order.next(self, queue);
        let fair = &mut self.queues[c].fair;
        if at == 0 { fair.pop_front() } else { fair.remove(at) }
    }

    /// Nobody waits on a CPU any more.
    #[inline(always)]
    pub(crate) fn uncrowd(&mut self, c: usize) {
        if !self.crowded.is_empty() {
            self.leave_crowded(c);
        }
    }

    // Out of line: the set's bit would be reckoned for every task that is picked.
    #[inline(never)]
    fn leave_crowded(&mut self, c: usize) {
        self.crowded.remove(c);
    }

    /// Whether some task waits behind another.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// Brings a task's virtual time from one queue's clock to another's: it stays as far ahead as it was.
    pub(crate) fn carry_over(&mut self, t: u32, from: usize, to: usize) {
        let ahead = self.entity(t).vruntime.saturating_sub(self.queues[from].clock);
        self.entities[t as usize].vruntime = self.queues[to].clock + ahead.min(MOST_AHEAD_NS);
    }

    /// [`Scheduler::carry_over`] for a task that wakes on another CPU than it slept on. It has no credit there for its
    /// sleep: that is with the queue it left.
    #[inline]
    pub(crate) fn wakes_elsewhere(&mut self, t: u32, to: usize) {
        self.placement.order.wakes_elsewhere(self, t, to);
    }
}
