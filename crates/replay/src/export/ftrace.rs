//! A replay as ftrace text: the scheduler's events that a Linux kernel would have written.
//!
//! Anything that reads `trace-cmd report -t` or tracefs's `trace` reads it, our importer first. Times are in ns. Task
//! number `n` is thread [`FIRST_TID`]` + n`.
//!
//! What the engine tells and ftrace words differently:
//!
//! - A CPU's stop and its next start are one `sched_switch`. A stop is held back until the CPU's next start, until
//!   time goes on, or until somebody is about to use the same task.
//! - What a timer or a device wakes is woken in a hardware interrupt, by whoever the CPU ran.
//! - A task's first wake-up by its parent is `sched_wakeup_new`.
//!
//! As any recording it does not tell cycles from waits for memory, nor interrupts from the task that they delay, nor by how
//! much a sibling on the same core slows a task down. So two things are added that our importer takes and others pass
//! over ([`wattwise_trace::marks`]): what a task has to do, as a mark in the trace where it begins with it; and in the head the
//! foreground's threads, when it was released, and the clock of the cycles.

use super::{KeptError, task_name};
use std::io::{Result, Write};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{MemoryShare, Role, Workload};
use wattwise_sim::{Event, Waker, Watcher, Why};
use wattwise_trace::{Notes, marks};

/// The thread id of the first task.
pub const FIRST_TID: u32 = 1000;
/// Bytes of a task's name in the kernel, without its end.
const COMM: usize = 15;
/// Who is current on a CPU that runs no task.
const IDLE: Option<u32> = None;

/// A trace in the making: whoever watches the replay.
pub struct Ftrace<'w, W> {
    out: KeptError<W>,
    workload: &'w Workload,
    machine: &'w MachineModel,
    /// By task; the speed policy's process is the last.
    comms: Vec<String>,
    /// By CPU: who runs.
    current: Vec<Option<u32>>,
    /// Stops that are held back: the CPU, and why; whoever stopped is still `current`.
    stopped: Vec<(u16, Why)>,
    /// When they were.
    stopped_at: u64,
    /// By task: whether it has been woken before.
    seen: Vec<bool>,
    lines: u64,
}

/// A name as the kernel has it: short, and without what would break a line.
fn comm(name: &str) -> String {
    let mut comm = String::new();
    for c in name.chars().map(|c| if c.is_control() { '?' } else { c }) {
        if comm.len() + c.len_utf8() > COMM {
            break;
        }
        comm.push(c);
    }
    let comm = comm.trim().to_owned();
    if comm.is_empty() { "?".into() } else { comm }
}

/// What no event tells of the work.
fn notes(workload: &Workload) -> Notes {
    let tasks = (FIRST_TID..).zip(&workload.tasks);
    // Tasks of which none ends are all foreground wherever none is marked.
    let marked = workload.tasks.iter().any(|t| t.ends || t.role == Role::Background);
    let foreground = tasks.filter(|(_, t)| marked && t.role == Role::Foreground).map(|(tid, _)| tid);
    let recorded = workload.recorded.as_ref();
    Notes {
        foreground: foreground.collect(),
        release_ns: Some(workload.release_ns).filter(|ns| *ns > 0),
        khz: recorded.map(|r| r.khz),
        memory_unknown: recorded.is_some_and(|r| r.memory == MemoryShare::Unknown),
        ..Notes::default()
    }
}

impl<'w, W: Write> Ftrace<'w, W> {
    /// A trace of a machine's replay of some work.
    pub fn new(out: W, machine: &'w MachineModel, workload: &'w Workload) -> Ftrace<'w, W> {
        let tasks = workload.tasks.len() as u32 + 1;
        let cpus = machine.cpus.len();
        let mut out = KeptError::new(out);
        let head = format!(
            "# tracer: nop\n#\n{}{}   #P:{cpus}\n#\n\
             {}#\n\
             #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n",
            marks::REPLAYED,
            comm(&machine.name),
            marks::head(&notes(workload))
        );
        out.write(head.as_bytes());
        Ftrace {
            out,
            workload,
            machine,
            comms: (0..tasks).map(|t| comm(task_name(workload, t))).collect(),
            current: vec![IDLE; cpus],
            stopped: Vec::new(),
            stopped_at: 0,
            seen: vec![false; tasks as usize],
            lines: 0,
        }
    }

    /// Ends the trace; how many events it has.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(self) -> Result<u64> {
        self.into_output().map(|(lines, _)| lines)
    }

    /// Ends the trace; how many events it has, and where it went.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn into_output(mut self) -> Result<(u64, W)> {
        self.let_go(|_| true);
        Ok((self.lines, self.out.finish()?))
    }

    fn comm(&self, task: Option<u32>, cpu: u16) -> String {
        match task {
            Some(t) => self.comms[t as usize].clone(),
            None => format!("swapper/{cpu}"),
        }
    }

    fn tid(task: Option<u32>) -> u32 {
        task.map_or(0, |t| FIRST_TID + t)
    }

    /// The kernel's priority: under 100 is real-time, else nice + 120.
    fn prio(&self, task: Option<u32>) -> i16 {
        match task.and_then(|t| self.workload.tasks.get(t as usize)) {
            Some(t) if t.realtime => 98,
            Some(t) => 120 + i16::from(t.nice),
            None => 120,
        }
    }

    fn line(&mut self, at_ns: u64, cpu: u16, flags: &str, event: &str) {
        let current = self.current[usize::from(cpu)];
        let comm = if current == IDLE { "<idle>".to_owned() } else { self.comm(current, cpu) };
        let tid = Self::tid(current);
        let (s, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        let line = format!("{comm:>16}-{tid:<7} [{cpu:03}] {flags} {s:5}.{ns:09}: {event}\n");
        self.out.write(line.as_bytes());
        self.lines += 1;
    }

    /// A CPU goes over from one task to another, or to none.
    fn switch(&mut self, at_ns: u64, cpu: u16, why: Why, next: Option<u32>) {
        let prev = self.current[usize::from(cpu)];
        if prev == next {
            return;
        }
        let left = match (prev, why) {
            (None, _) | (_, Why::Preempted) => "R",
            (_, Why::Sleeps | Why::Blocks) => "S",
            (_, Why::Device) => "D",
            (_, Why::Ends) => "X",
        };
        let (prev_comm, next_comm) = (self.comm(prev, cpu), self.comm(next, cpu));
        let (prev_tid, next_tid) = (Self::tid(prev), Self::tid(next));
        let (prev_prio, next_prio) = (self.prio(prev), self.prio(next));
        if left == "X" {
            let exit = format!("sched_process_exit: comm={prev_comm} pid={prev_tid} prio={prev_prio}");
            self.line(at_ns, cpu, ".....", &exit);
        }
        let event = format!(
            "sched_switch: prev_comm={prev_comm} prev_pid={prev_tid} prev_prio={prev_prio} prev_state={left} \
             ==> next_comm={next_comm} next_pid={next_tid} next_prio={next_prio}"
        );
        self.line(at_ns, cpu, "d..2.", &event);
        self.current[usize::from(cpu)] = next;
    }

    /// Writes those of the stops that are held back for which `which` says so: their CPUs run nothing now.
    fn let_go(&mut self, which: impl Fn(&(u16, Why)) -> bool) {
        let (go, keep): (Vec<_>, Vec<_>) = std::mem::take(&mut self.stopped).into_iter().partition(which);
        self.stopped = keep;
        for (cpu, why) in go {
            self.switch(self.stopped_at, cpu, why, IDLE);
        }
    }

    /// The same for the CPU on which a task has just stopped.
    fn let_go_of(&mut self, task: u32, but: Option<u16>) {
        let on = self.current.iter().position(|t| *t == Some(task)).map(|c| c as u16);
        self.let_go(|(cpu, _)| Some(*cpu) == on && Some(*cpu) != but);
    }

    fn runs(&mut self, at_ns: u64, cpu: u16, task: u32) {
        if !self.stopped.is_empty() {
            self.let_go_of(task, Some(cpu));
        }
        let held = self.stopped.iter().position(|(c, _)| *c == cpu);
        let why = held.map_or(Why::Preempted, |at| self.stopped.remove(at).1);
        self.switch(at_ns, cpu, why, Some(task));
    }

    fn wakes(&mut self, at_ns: u64, task: u32, by: Waker, (from, to): (u16, u16)) {
        if !self.stopped.is_empty() {
            self.let_go_of(task, None);
        }
        let first = !std::mem::replace(&mut self.seen[task as usize], true);
        let born = first && self.workload.tasks.get(task as usize).is_some_and(|t| t.born);
        let (name, flags) = match by {
            Waker::Task(_) if born => ("sched_wakeup_new", "d..2."),
            Waker::Task(_) => ("sched_waking", "d..2."),
            Waker::Start | Waker::Timer | Waker::Device => ("sched_waking", "d.h2."),
        };
        let (comm, prio) = (self.comm(Some(task), to), self.prio(Some(task)));
        let tid = Self::tid(Some(task));
        let event = format!("{name}: comm={comm} pid={tid} prio={prio} target_cpu={to:03}");
        self.line(at_ns, from, flags, &event);
    }

    fn works(&mut self, at_ns: u64, task: u32, work: marks::MarkedWork) {
        let cpu = self.current.iter().position(|t| *t == Some(task)).unwrap_or(0);
        self.line(at_ns, cpu as u16, ".....", &marks::line(Self::tid(Some(task)), work));
    }

    fn speed(&mut self, at_ns: u64, domain: u16, khz: u32) {
        let machine = self.machine;
        for cpu in (0..machine.cpus.len() as u16).filter(|c| machine.cpus[usize::from(*c)].domain == domain) {
            self.line(at_ns, cpu, "d..2.", &format!("cpu_frequency: state={khz} cpu_id={cpu}"));
        }
    }
}

impl<W: Write> Watcher for Ftrace<'_, W> {
    fn event(&mut self, at_ns: u64, event: &Event) {
        if at_ns > self.stopped_at && !self.stopped.is_empty() {
            self.let_go(|_| true);
        }
        match *event {
            Event::Wakes { task, by, from, to } => self.wakes(at_ns, task, by, (from, to)),
            Event::Runs { cpu, task } => self.runs(at_ns, cpu, task),
            Event::Stops { cpu, why, .. } => {
                self.stopped_at = at_ns;
                self.stopped.push((cpu, why));
            }
            Event::Enters { cpu, state } => {
                self.let_go(|(c, _)| *c == cpu);
                self.line(at_ns, cpu, "d..1.", &format!("cpu_idle: state={state} cpu_id={cpu}"));
            }
            Event::Leaves { .. } => {}
            // The kernel writes the state's end once it runs again.
            Event::IsAwake { cpu } => {
                self.line(at_ns, cpu, "d..1.", &format!("cpu_idle: state={} cpu_id={cpu}", u32::MAX));
            }
            Event::Speed { domain, khz } => self.speed(at_ns, domain, khz),
            Event::Works { task, cycles, stall_ns } => {
                self.works(at_ns, task, marks::MarkedWork { cycles, stall_ns })
            }
            Event::Energy { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_kernels() {
        assert_eq!(comm("cc1"), "cc1");
        assert_eq!(comm("a name of more than fifteen bytes"), "a name of more");
        assert_eq!(comm("größergrößergr"), "größergröße");
        assert_eq!(comm("two\nlines"), "two?lines");
        assert_eq!(comm(""), "?");
    }
}
