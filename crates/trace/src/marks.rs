//! What a replay that is written as text adds to the scheduler's events: the work itself, which no time on a CPU tells.
//!
//! A mark in the trace (`trace_marker`'s event, which other readers show or pass over) is written when a task begins a piece of
//! its work; what such a task does is then taken from its marks and from nothing else. In the head stands what our recorder
//! notes in perf.data:
//!
//! ```text
//! # wattwise: foreground=1000,1001 release_ns=5000000 clock_khz=2600000
//! cc1-1000 [000] ..... 5.000001: tracing_mark_write: wattwise pid=1000 cycles=1200000 stall_ns=0
//! ```

use crate::notes::Notes;

/// How a replay's text names its machine, before the number of its CPUs.
pub const REPLAYED: &str = "# replayed by wattwise on ";
const HEAD: &str = "# wattwise: ";
/// The event of a mark.
pub(crate) const EVENT: &str = "tracing_mark_write";
const MARK: &str = "wattwise pid=";

/// What a task has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedWork {
    /// Cycles of the clock that stands in the head.
    pub cycles: u64,
    /// Time that no clock shortens, in ns.
    pub stall_ns: u64,
}

/// Threads in a line of the head: readers bound a line.
const THREADS: usize = 100;

/// Lines of the head; none where there is nothing to note.
pub fn head(notes: &Notes) -> String {
    let mut lines = String::new();
    let mut say = |notes: &Notes| {
        let entries: Vec<String> =
            notes.entries().iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !entries.is_empty() {
            lines += &format!("{HEAD}{}\n", entries.join(" "));
        }
    };
    say(&Notes { foreground: Vec::new(), ..notes.clone() });
    for some in notes.foreground.chunks(THREADS) {
        say(&Notes { foreground: some.to_vec(), ..Notes::default() });
    }
    lines
}

/// An event's name and arguments: thread `tid` begins with this work.
pub fn line(tid: u32, work: MarkedWork) -> String {
    format!("{EVENT}: {MARK}{tid} cycles={} stall_ns={}", work.cycles, work.stall_ns)
}

/// Takes a line of the head; `None` if it is none of ours.
pub(crate) fn take_head(line: &str, notes: &mut Notes) -> Option<()> {
    let entries = line.strip_prefix(HEAD)?;
    entries
        .split_whitespace()
        .filter_map(|e| e.split_once('='))
        .for_each(|(name, value)| notes.take(name, value));
    Some(())
}

/// Whether a mark's text is ours.
pub(crate) fn is_mark(text: &str) -> bool {
    text.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_line_by_line() {
        let notes = Notes {
            foreground: (1000..1250).collect(),
            release_ns: Some(5_000_000),
            khz: Some(2_600_000),
            memory_unknown: true,
            ..Notes::default()
        };
        let (text, mut read) = (head(&notes), Notes::default());
        assert_eq!(text.lines().count(), 4, "a hundred threads a line");
        for line in text.lines() {
            take_head(line, &mut read).expect("one of ours");
        }
        assert_eq!(read, notes);
        assert_eq!(take_head("# tracer: nop", &mut read), None);
        assert_eq!(head(&Notes::default()), "");
    }
}
