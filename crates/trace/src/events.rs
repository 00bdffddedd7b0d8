//! The events that every format is reduced to, and the names of tasks.
//!
//! An event is a small `Copy` value: readers make millions of them and keep none. A reader hands them
//! on in order of time as far as its recording allows; whoever consumes them must bear a step back.

use crate::lacks::Lack;
use crate::marks::MarkedWork;
use crate::notes::Notes;
use crate::plan::PlanNeeds;
use std::collections::HashMap;

/// Names beyond this number are all shown as the first: only a damaged file has so many.
const MAX_NAMES: usize = 1 << 20;

/// A task's name (`comm`) by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Comm(pub u32);

/// In whose time the kernel was when it wrote an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelContext {
    /// The current task itself, in a system call or fault.
    #[default]
    Task,
    /// A softirq on top of the current task.
    Softirq,
    /// A hardware interrupt or NMI on top of it.
    Hardirq,
}

/// Why a task left its CPU: the kernel's task states, by their letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Left {
    /// `R`, `R+`: it could go on; it was preempted or yielded.
    #[default]
    Runnable,
    /// `S`: sleeps, a signal may wake it.
    Sleep,
    /// `D`: sleeps, mostly for a device.
    Disk,
    /// `I`, `P`, `K`, `W`, `N`: a kernel thread without work, or parked.
    Idle,
    /// `T`, `t`: stopped by a signal or tracer.
    Stopped,
    /// `X`, `Z`, `x`: it is gone.
    Dead,
}

impl Left {
    /// The state that a letter of `prev_state=` stands for.
    pub fn from_letter(letter: u8) -> Option<Left> {
        Some(match letter {
            b'R' | b'+' => Left::Runnable,
            b'S' => Left::Sleep,
            b'D' => Left::Disk,
            b'I' | b'P' | b'K' | b'W' | b'N' => Left::Idle,
            b'T' | b't' => Left::Stopped,
            b'X' | b'Z' | b'x' => Left::Dead,
            _ => return None,
        })
    }

    /// As a number, as tracefs's option `raw` and old recorders print it. The low bits have had the same meaning always;
    /// 64 was a dead task's before Linux 4.14 and is a parked kernel thread's since, which comes with hotplug alone.
    pub fn from_bits(state: u64) -> Left {
        match state.trailing_zeros() {
            0 => Left::Sleep,
            1 => Left::Disk,
            2 | 3 => Left::Stopped,
            4..=6 => Left::Dead,
            7 => Left::Idle,
            _ => Left::Runnable,
        }
    }
}

/// A switch of tasks; thread 0 is the idle task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Who leaves.
    pub prev_tid: u32,
    /// Its kernel priority: under 100 is real-time, else nice + 120.
    pub prev_prio: i16,
    /// Why.
    pub left: Left,
    /// Its name.
    pub prev_comm: Comm,
    /// Who comes.
    pub next_tid: u32,
    /// Its priority.
    pub next_prio: i16,
    /// Its name.
    pub next_comm: Comm,
}

/// A wake-up's target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeTarget {
    /// Who is woken.
    pub tid: u32,
    /// Its priority.
    pub prio: i16,
    /// Its name.
    pub comm: Comm,
    /// Where it shall run.
    pub cpu: u16,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// `sched_switch`.
    Switch(Switch),
    /// `sched_waking`: the waker's own moment and context.
    Waking(WakeTarget),
    /// `sched_wakeup`: the task became runnable, perhaps reported by its own CPU.
    Wakeup(WakeTarget),
    /// `sched_wakeup_new`: a new task's first.
    WakeupNew(WakeTarget),
    /// `sched_process_fork`.
    Fork {
        /// Who forked.
        parent: u32,
        /// The new task.
        child: u32,
        /// Its name.
        comm: Comm,
    },
    /// `sched_process_exit`.
    Exit {
        /// Who.
        tid: u32,
    },
    /// `cpu_idle`: entry into a state, or `None` for the exit.
    CpuIdle {
        /// Which CPU.
        cpu: u16,
        /// The driver's state number.
        state: Option<u32>,
    },
    /// `cpu_frequency`: the clock from here on.
    CpuFrequency {
        /// Which CPU.
        cpu: u16,
        /// In kHz.
        khz: u32,
    },
    /// `hrtimer_start`.
    HrtimerStart {
        /// Whether for an absolute time (`HRTIMER_MODE_ABS`).
        absolute: bool,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Who.
        tid: u32,
        /// To which CPU.
        to: u16,
    },
    /// `suspend_resume`: a step of a suspend or of the way back.
    SuspendResume {
        /// `machine_suspend`: whether the machine is suspended from here on. `None` for every other step.
        suspended: Option<bool>,
    },
    /// What the monotonic clock shows at this time of the recording's own.
    ClockSync {
        /// In ns.
        monotonic_ns: u64,
    },
    /// The recorder lost so many events about here.
    Lost(u64),
    /// A task's name and process. At time 0: the task is older than the recording.
    Named {
        /// Which task.
        tid: u32,
        /// Its process; 0 where that is not known.
        pid: u32,
        /// The name.
        comm: Comm,
        /// It took the name because it now runs another program.
        exec: bool,
    },
    /// Who started a task: beside [`EventKind::Fork`], or without it. At time 0: long ago.
    Parent {
        /// Who forked.
        parent: u32,
        /// The new task.
        child: u32,
        /// The new task's process.
        pid: u32,
    },
    /// A task is gone: beside [`EventKind::Exit`], or without it.
    Ended {
        /// Which task.
        tid: u32,
    },
    /// What this CPU's counters show at the switch that follows; they count from some moment on.
    Counted {
        /// Cycles with the clock running.
        cycles: u64,
        /// Instructions; 0 where they are not counted.
        instructions: u64,
        /// Accesses that missed the last cache; 0 where they are not counted.
        misses: u64,
    },
    /// A task begins with so much work: a replay's mark ([`crate::marks`]).
    Work {
        /// Which task.
        tid: u32,
        /// What it has to do.
        work: MarkedWork,
    },
}

impl EventKind {
    /// The kernel's name for it.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Switch(_) => "sched_switch",
            EventKind::Waking(_) => "sched_waking",
            EventKind::Wakeup(_) => "sched_wakeup",
            EventKind::WakeupNew(_) => "sched_wakeup_new",
            EventKind::Fork { .. } => "sched_process_fork",
            EventKind::Exit { .. } => "sched_process_exit",
            EventKind::CpuIdle { .. } => "cpu_idle",
            EventKind::CpuFrequency { .. } => "cpu_frequency",
            EventKind::HrtimerStart { .. } => "hrtimer_start",
            EventKind::Migrate { .. } => "sched_migrate_task",
            EventKind::SuspendResume { .. } => "suspend_resume",
            EventKind::ClockSync { .. } => "clock_sync",
            EventKind::Lost(_) => "lost",
            EventKind::Named { .. } => "name",
            EventKind::Parent { .. } => "parent",
            EventKind::Ended { .. } => "end",
            EventKind::Counted { .. } => "counters",
            EventKind::Work { .. } => "work",
        }
    }

    /// Whether it tells of tasks and counters rather than of the scheduler: no event of the recording's own.
    pub fn is_side(&self) -> bool {
        matches!(
            self,
            EventKind::Named { .. }
                | EventKind::Parent { .. }
                | EventKind::Ended { .. }
                | EventKind::Counted { .. }
                | EventKind::ClockSync { .. }
                | EventKind::Work { .. }
        )
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// On the recording's own clock, in ns.
    pub time_ns: u64,
    /// Where it was written.
    pub cpu: u16,
    /// In whose time.
    pub level: KernelContext,
    /// The task that was current there.
    pub current: u32,
    /// What happened.
    pub kind: EventKind,
}

/// Takes events as they are read.
pub trait Sink {
    /// What the file's header says; comes before all events, if the format has one.
    fn header(&mut self, _read: &TraceRead) {}

    /// One event; `comms` holds the names met so far.
    fn event(&mut self, event: &Event, comms: &Comms);
}

/// What a reader knows at the end beside the events themselves.
#[derive(Clone, Debug, Default)]
pub struct TraceRead {
    /// The format in words.
    pub format: &'static str,
    /// All events of the recording, those of no use to us included.
    pub events: u64,
    /// Those which the recorder says it lost.
    pub lost: u64,
    /// CPUs of the machine, as the file's header has it.
    pub cpus: Option<u16>,
    /// The processor's name, as the file's header has it.
    pub cpu_name: Option<String>,
    /// What wattwise's own recorder noted.
    pub notes: Notes,
    /// From the first event to the last, in ns, without what is taken out of the times.
    pub span_ns: u64,
    /// Time that the machine was suspended, in ns: it is taken out of the events' times.
    pub suspended_ns: u64,
    /// What the format cannot tell.
    pub lacks: Vec<Lack>,
    /// What could not be used, a sentence each.
    pub warnings: Vec<String>,
    /// What asks for another reading.
    pub(crate) found: PlanNeeds,
}

/// Task names, each kept once.
#[derive(Debug)]
pub struct Comms {
    names: Vec<Box<str>>,
    numbers: HashMap<[u8; 16], Comm>,
    /// Recent names by a cheap hash: a busy trace repeats a few dozen names millions of times.
    recent: Box<[([u8; 16], Comm); 256]>,
}

impl Default for Comms {
    fn default() -> Comms {
        let mut comms =
            Comms { names: Vec::new(), numbers: HashMap::new(), recent: Box::new([([0; 16], Comm(0)); 256]) };
        comms.add([0; 16]);
        comms
    }
}

impl Comms {
    /// The number of a name, which ends at its first zero byte; the kernel's names have at most 15 bytes.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> Comm {
        let mut key = [0u8; 16];
        match name.first_chunk() {
            Some(whole) => key = *whole,
            None => key[..name.len()].copy_from_slice(name),
        }
        let word = up_to_zero(u128::from_le_bytes(key));
        let key = word.to_le_bytes();
        let folded = (word as u64) ^ ((word >> 64) as u64).rotate_left(29);
        // Fibonacci hashing: 2^64 / golden ratio.
        let slot = (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize;
        let (known, comm) = self.recent[slot];
        if known == key {
            return comm;
        }
        let comm = match self.numbers.get(&key) {
            Some(&comm) => comm,
            None if self.names.len() >= MAX_NAMES => return Comm(0),
            None => self.add(key),
        };
        self.recent[slot] = (key, comm);
        comm
    }

    /// All names, by number.
    pub(super) fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Takes over the next name of another's [`Comms::names`], under the same number.
    pub(super) fn learn(&mut self, name: Box<str>) {
        self.names.push(name);
    }

    fn add(&mut self, key: [u8; 16]) -> Comm {
        let comm = Comm(self.names.len() as u32);
        let end = key.iter().position(|&b| b == 0).unwrap_or(16);
        // A program names its threads as it likes (PR_SET_NAME), with a line break too.
        self.names.push(wattwise_figure::one_line(&String::from_utf8_lossy(&key[..end])).into());
        self.numbers.insert(key, comm);
        comm
    }

    /// A number's name; empty where none was recorded.
    pub fn name(&self, comm: Comm) -> &str {
        self.names.get(comm.0 as usize).map_or("", |n| n)
    }
}

/// Clears what follows the first zero byte, from the low end: it is left over from longer names.
#[inline]
fn up_to_zero(word: u128) -> u128 {
    const ONES: u128 = u128::MAX / 0xff;
    // The usual trick: the lowest bit that is set is the top bit of the first byte that is zero.
    let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
    // Everything below that bit, and nothing above; all bits where there is no zero.
    word & (zeros & zeros.wrapping_neg()).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_their_first_zero() {
        for (name, ends) in [
            (*b"abcdefghijklmnop", 16),
            (*b"abcdefghijklmno\0", 15),
            (*b"abcdefgh\0jklmnop", 8),
            (*b"abcdefg\0\x01jklmnop", 7),
            (*b"\0\x01cdefghijklmno\0", 0),
            (*b"\x80\xff\0\x01\0\x80ghijklmnop", 2),
        ] {
            let mut expected = [0; 16];
            expected[..ends].copy_from_slice(&name[..ends]);
            assert_eq!(up_to_zero(u128::from_le_bytes(name)).to_le_bytes(), expected, "{name:?}");
        }
    }

    #[test]
    fn a_name_has_one_number_whatever_follows_it() {
        let mut comms = Comms::default();
        let a = comms.number(b"perf\0-exec\0\0\0\0\0\0");
        assert_eq!(a, comms.number(b"perf"));
        assert_ne!(a, comms.number(b"perf-exec"));
        assert_eq!(comms.name(a), "perf");
        let none = comms.number(b"");
        assert_eq!(comms.name(none), "");
    }

    #[test]
    fn events_stay_small() {
        assert!(size_of::<Event>() <= 56, "{}", size_of::<Event>());
    }
}
