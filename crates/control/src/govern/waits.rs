//! How long tasks wait for a CPU, as the kernel adds it up.
//!
//! | file | what it counts | what it leaves out |
//! |---|---|---|
//! | `/proc/pressure/cpu` | time in which at least one task waited | how many did, and how long each: no single one waited longer |
//! | `/proc/schedstat` | each CPU's waits in ns, and turns of tasks: together the mean wait of a turn | the time to leave a C-state, which is over when a task is queued; the longest wait |
//!
//! Neither gives a percentile. Timing each wake-up does (`wattwise record`, by the scheduler's trace points), and costs
//! an event for each on a machine that may have 100,000 a second: a governor that is there to save energy has no use
//! for that.

use wattwise_hw::cpus::proc_stat::whole;
use wattwise_hw::root::{Access, Node, Root};

/// What passed between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuWaits {
    /// No task waited longer, ns; none where the kernel keeps no pressure.
    pub longest_ns: Option<u64>,
    /// Mean wait of a task's turn on a CPU, ns: after it woke, or after it had to let others go. None where the kernel
    /// adds none up (`CONFIG_SCHEDSTATS`); 0 where there was no turn.
    pub mean_ns: Option<u64>,
}

/// A counter file, held open.
struct WaitCounter<T> {
    node: Box<dyn Node>,
    bytes: Vec<u8>,
    then: T,
    parse: fn(&str) -> Option<T>,
}

impl<T: Copy> WaitCounter<T> {
    fn open(root: &dyn Root, path: &str, parse: fn(&str) -> Option<T>) -> Option<WaitCounter<T>> {
        let mut node = root.open(path, Access::Read).ok()?;
        let mut bytes = vec![0; 4096];
        let then = parse(&whole(&mut *node, &mut bytes).ok()?)?;
        Some(WaitCounter { node, bytes, then, parse })
    }

    /// The counter now and at the last look.
    fn look(&mut self) -> Option<(T, T)> {
        let now = (self.parse)(&whole(&mut *self.node, &mut self.bytes).ok()?)?;
        Some((now, std::mem::replace(&mut self.then, now)))
    }
}

/// Both files.
pub struct WaitCounters {
    pressure: Option<WaitCounter<u64>>,
    turns: Option<WaitCounter<Turns>>,
}

impl WaitCounters {
    /// Those that this kernel has.
    pub fn open(root: &dyn Root) -> WaitCounters {
        WaitCounters {
            pressure: WaitCounter::open(root, "proc/pressure/cpu", some_us),
            turns: WaitCounter::open(root, "proc/schedstat", Turns::parse),
        }
    }

    /// What passed since the last look.
    pub fn since(&mut self) -> CpuWaits {
        let pressure = self.pressure.as_mut().and_then(WaitCounter::look);
        let turns = self.turns.as_mut().and_then(WaitCounter::look);
        CpuWaits {
            longest_ns: pressure.map(|(now, then)| now.saturating_sub(then) * 1000),
            mean_ns: turns.map(|(now, then)| now.mean_since(then)),
        }
    }
}

/// Time in which some task waited, us.
fn some_us(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|l| l.strip_prefix("some "))?;
    some.split(' ').find_map(|w| w.strip_prefix("total="))?.trim().parse().ok()
}

/// Turns of tasks on all CPUs, and what they waited for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turns {
    waited_ns: u64,
    turns: u64,
}

impl Turns {
    /// From the file's text: the last two of a CPU's nine fields. A CPU that is offline has no line.
    fn parse(text: &str) -> Option<Turns> {
        let mut sum = Turns { waited_ns: 0, turns: 0 };
        let lines = text.lines().filter(|l| l.starts_with("cpu"));
        let mut any = false;
        for line in lines {
            let mut fields = line.split_ascii_whitespace().skip(8);
            sum.waited_ns = sum.waited_ns.wrapping_add(fields.next()?.parse().ok()?);
            sum.turns = sum.turns.wrapping_add(fields.next()?.parse().ok()?);
            any = true;
        }
        any.then_some(sum)
    }

    /// Where a CPU went offline the sums go back: no wait is known then.
    fn mean_since(self, then: Turns) -> u64 {
        let waited = self.waited_ns.checked_sub(then.waited_ns);
        let turns = self.turns.checked_sub(then.turns);
        waited.zip(turns).and_then(|(ns, turns)| ns.checked_div(turns)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.1, four CPUs, two of them shown; domains as they stand between.
    const SCHEDSTAT: &str = "version 15\n\
        timestamp 4294937851\n\
        cpu0 0 0 0 0 0 0 1500000000 42000000 8000\n\
        domain0 f 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
        cpu1 0 0 0 0 0 0 900000000 18000000 2000\n";

    #[test]
    fn the_mean_is_over_the_turns_on_all_cpus() {
        let then = Turns::parse(SCHEDSTAT).expect("readable");
        assert_eq!(then, Turns { waited_ns: 60_000_000, turns: 10_000 });
        let now = Turns { waited_ns: 60_900_000, turns: 10_030 };
        assert_eq!(now.mean_since(then), 30_000);
        assert_eq!(then.mean_since(then), 0, "no turn");
        assert_eq!(then.mean_since(now), 0, "a CPU went");
        assert_eq!(Turns::parse("version 15\n"), None);
        assert_eq!(Turns::parse("cpu0 1 2\n"), None);
    }

    #[test]
    fn pressure_is_the_time_of_some() {
        let text = "some avg10=0.00 avg60=0.12 avg300=0.05 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(some_us(text), Some(123_456));
        assert_eq!(some_us("full total=9\n"), None);
    }
}
