//! What happens in a run, told as it happens.
//!
//! Whoever watches is told by reference and keeps what it wants: the engine stores nothing. A run that nobody watches
//! pays for one test of a pointer at each of these points.

use crate::NONE;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A task becomes runnable, on the queue of a CPU.
    Wakes {
        /// The task's number in the workload; one more than the last is the speed policy's own process.
        task: u32,
        /// Who woke it.
        by: Waker,
        /// The CPU on which the wake-up happened.
        from: u16,
        /// The CPU that it was sent to.
        to: u16,
    },
    /// A task begins to run.
    Runs {
        /// The CPU.
        cpu: u16,
        /// The task.
        task: u32,
    },
    /// A task stops running.
    Stops {
        /// The CPU.
        cpu: u16,
        /// The task.
        task: u32,
        /// Why.
        why: Why,
    },
    /// A running task begins a piece of its work, as its program has it.
    Works {
        /// The task.
        task: u32,
        /// Cycles of the clock that they were counted with.
        cycles: u64,
        /// Time that no clock shortens, in ns.
        stall_ns: u64,
    },
    /// A CPU enters a C-state.
    Enters {
        /// The CPU.
        cpu: u16,
        /// The state's index in the table of its kind of core, 0 the shallowest.
        state: u8,
    },
    /// A CPU begins to leave its C-state.
    Leaves {
        /// The CPU.
        cpu: u16,
    },
    /// A CPU is awake: the time that leaving takes is over.
    IsAwake {
        /// The CPU.
        cpu: u16,
    },
    /// A frequency domain runs at another speed. Each domain's first speed is told at time 0.
    Speed {
        /// The domain.
        domain: u16,
        /// The speed.
        khz: u32,
    },
    /// What the machine has used since the run's start; told at the end of each bin of time.
    Energy {
        /// In joules.
        joules: f64,
    },
}

/// Who woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// Nobody: its program begins.
    Start,
    /// Another task.
    Task(u32),
    /// A timer.
    Timer,
    /// A device.
    Device,
}

/// Why a task stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Others are to run, or it goes on elsewhere.
    Preempted,
    /// It sleeps on a timer.
    Sleeps,
    /// It waits for a device.
    Device,
    /// It waits for a wake-up or a lock.
    Blocks,
    /// Its program is over.
    Ends,
}

/// Somebody who is told what happens.
pub trait Watcher {
    /// Called in order of time; what happens at the same time comes in the order of cause and effect.
    fn event(&mut self, at_ns: u64, event: &Event);
}

impl<W: Watcher + ?Sized> Watcher for &mut W {
    fn event(&mut self, at_ns: u64, event: &Event) {
        (**self).event(at_ns, event);
    }
}

impl Watcher for Vec<(u64, Event)> {
    fn event(&mut self, at_ns: u64, event: &Event) {
        self.push((at_ns, *event));
    }
}

/// A wake-up under way.
#[derive(Clone, Copy)]
struct WakeUp {
    task: u32,
    by: Waker,
    from: u16,
}

/// A watcher, and what it has been told: nothing is told twice.
pub(crate) struct WatchedRun<'a> {
    watcher: Box<dyn Watcher + 'a>,
    /// By CPU: the task that was last told to run there.
    running: Vec<u32>,
    /// By domain, in kHz.
    speed: Vec<u32>,
    /// Told when its CPU is chosen.
    waking: Option<WakeUp>,
}

impl<'a> WatchedRun<'a> {
    pub(super) fn new(watcher: Box<dyn Watcher + 'a>, cpus: usize, domains: usize) -> WatchedRun<'a> {
        WatchedRun { watcher, running: vec![NONE; cpus], speed: vec![0; domains], waking: None }
    }

    /// A task is being woken; its CPU is not chosen yet.
    pub(crate) fn waking(&mut self, task: u32, by: Waker, from: usize) {
        self.waking = Some(WakeUp { task, by, from: from as u16 });
    }

    /// A task is put on the queue of a CPU, perhaps because it was woken.
    pub(crate) fn queued(&mut self, now: u64, task: u32, cpu: usize) {
        if let Some(WakeUp { by, from, .. }) = self.waking.take_if(|w| w.task == task) {
            self.watcher.event(now, &Event::Wakes { task, by, from, to: cpu as u16 });
        }
    }

    pub(crate) fn runs(&mut self, now: u64, cpu: usize, task: u32) {
        if std::mem::replace(&mut self.running[cpu], task) != task {
            self.watcher.event(now, &Event::Runs { cpu: cpu as u16, task });
        }
    }

    pub(crate) fn stops(&mut self, now: u64, cpu: usize, task: u32, why: Why) {
        if self.running[cpu] == task {
            self.running[cpu] = NONE;
            self.watcher.event(now, &Event::Stops { cpu: cpu as u16, task, why });
        }
    }

    pub(crate) fn works(&mut self, now: u64, task: u32, (cycles, stall_ns): (u64, u64)) {
        self.watcher.event(now, &Event::Works { task, cycles, stall_ns });
    }

    pub(crate) fn enters(&mut self, now: u64, cpu: usize, state: u8) {
        self.watcher.event(now, &Event::Enters { cpu: cpu as u16, state });
    }

    pub(crate) fn leaves(&mut self, now: u64, cpu: usize) {
        self.watcher.event(now, &Event::Leaves { cpu: cpu as u16 });
    }

    pub(crate) fn is_awake(&mut self, now: u64, cpu: usize) {
        self.watcher.event(now, &Event::IsAwake { cpu: cpu as u16 });
    }

    pub(crate) fn speed(&mut self, now: u64, domain: usize, khz: u32) {
        if std::mem::replace(&mut self.speed[domain], khz) != khz {
            self.watcher.event(now, &Event::Speed { domain: domain as u16, khz });
        }
    }

    pub(super) fn energy(&mut self, now: u64, joules: f64) {
        self.watcher.event(now, &Event::Energy { joules });
    }
}
