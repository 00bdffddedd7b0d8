//! What `/proc/stat` says of each CPU, as the kernel counts it: in ticks.
//!
//! Every CPU's line counts, and a CPU is told by the number in its name, not by its place in the file: intel-lpmd's
//! published form took the last line for the whole system and saw one CPU's work alone.

use crate::root::{Access, Node, Root};
use std::io;

/// A CPU's ticks since the start of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Which CPU.
    pub cpu: u32,
    /// At work: user, nice, system, interrupts, soft interrupts, stolen by a hypervisor. Guests' time is within user
    /// and nice.
    pub busy: u64,
    /// Idle with nothing outstanding.
    pub idle: u64,
    /// Idle with I/O outstanding.
    pub iowait: u64,
}

impl Ticks {
    /// From a CPU's line; none for the sum of all, and for every other line.
    fn parse(line: &str) -> Option<Ticks> {
        let rest = line.strip_prefix("cpu")?;
        // `cpu  123 ...`, the sum of all, has a space where the number is.
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let mut words = rest.split_ascii_whitespace();
        let mut ticks = Ticks { cpu: words.next()?.parse().ok()?, ..Ticks::default() };
        for (i, word) in words.take(8).enumerate() {
            let n: u64 = word.parse().ok()?;
            let sum = match i {
                3 => &mut ticks.idle,
                4 => &mut ticks.iowait,
                _ => &mut ticks.busy,
            };
            *sum = sum.wrapping_add(n);
        }
        Some(ticks)
    }

    /// What passed since an earlier look. The kernel lets a CPU's idle time go back by a tick now and then, and a
    /// CPU that was taken out begins anew: no time passed then.
    pub fn since(&self, then: &Ticks) -> Ticks {
        Ticks {
            cpu: self.cpu,
            busy: self.busy.saturating_sub(then.busy),
            idle: self.idle.saturating_sub(then.idle),
            iowait: self.iowait.saturating_sub(then.iowait),
        }
    }
}

/// One look at `/proc/stat`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    /// Each CPU that is online, ascending.
    pub cpus: Vec<Ticks>,
    /// Tasks that run or could run now.
    pub running: u32,
    /// Context switches since the start of the machine, on all CPUs; those to and from the idle task are among them.
    pub switches: u64,
}

impl Stat {
    /// From the file's text.
    pub fn parse(text: &str) -> Stat {
        let mut stat = Stat::default();
        for line in text.lines() {
            if let Some(ticks) = Ticks::parse(line) {
                stat.cpus.push(ticks);
            } else if let Some(n) = line.strip_prefix("procs_running ") {
                stat.running = n.trim().parse().unwrap_or(0);
            } else if let Some(n) = line.strip_prefix("ctxt ") {
                stat.switches = n.trim().parse().unwrap_or(0);
            }
        }
        stat.cpus.sort_unstable_by_key(|t| t.cpu);
        stat
    }

    /// A CPU's ticks.
    pub fn cpu(&self, cpu: u32) -> Option<&Ticks> {
        self.cpus.binary_search_by_key(&cpu, |t| t.cpu).ok().map(|at| &self.cpus[at])
    }

    /// What passed on each CPU that is in both looks.
    pub fn since<'s>(&'s self, then: &'s Stat) -> impl Iterator<Item = Ticks> + 's {
        self.cpus.iter().filter_map(|now| Some(now.since(then.cpu(now.cpu)?)))
    }
}

/// `/proc/stat`, held open.
pub struct StatFile {
    node: Box<dyn Node>,
    bytes: Vec<u8>,
}

impl StatFile {
    /// Opens it.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn open(root: &dyn Root) -> io::Result<StatFile> {
        Ok(StatFile { node: root.open("proc/stat", Access::Read)?, bytes: vec![0; 4096] })
    }

    /// Takes a look.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn look(&mut self) -> io::Result<Stat> {
        Ok(Stat::parse(&whole(&mut *self.node, &mut self.bytes)?))
    }
}

/// A whole file of `/proc`, into a buffer that is kept.
pub fn whole<'b>(node: &mut dyn Node, bytes: &'b mut Vec<u8>) -> io::Result<std::borrow::Cow<'b, str>> {
    let mut used = 0;
    loop {
        if used == bytes.len() {
            bytes.resize((used * 2).max(64), 0);
        }
        match node.read_at(used as u64, &mut bytes[used..])? {
            0 => return Ok(String::from_utf8_lossy(&bytes[..used])),
            n => used += n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_stat() {
        let ticks = Ticks { cpu: 12, busy: 27, idle: 4, iowait: 5 };
        assert_eq!(Ticks::parse("cpu12 1 2 3 4 5 6 7 8 9 10"), Some(ticks));
        assert_eq!(Ticks::parse("cpu  1 2 3 4"), None);
        assert_eq!(Ticks::parse("cpu1 1 x"), None);
        assert_eq!(Ticks::parse("ctxt 1"), None);
        assert_eq!(ticks.since(&Ticks { cpu: 12, busy: 20, idle: 5, iowait: 5 }).busy, 7);
    }

    #[test]
    fn cpus_are_told_by_their_names() {
        let stat =
            Stat::parse("cpu  9 9\ncpu10 1 0 0 2 0\ncpu2 5 0 0 1 0\nintr 1\nctxt 77\nprocs_running 3\n");
        assert_eq!(stat.cpu(2).map(|t| t.busy), Some(5));
        assert_eq!(stat.cpu(10).map(|t| t.busy), Some(1));
        assert_eq!((stat.cpu(0), stat.running, stat.switches), (None, 3, 77));
    }
}
