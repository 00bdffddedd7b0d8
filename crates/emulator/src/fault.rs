//! What can be made to go wrong.

use rustix::io::Errno;

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Opening.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Listing a folder.
    List,
    /// Any of them.
    Any,
}

/// Something that goes wrong. Patterns are paths from the root in which `*` stands for anything.
#[derive(Debug, Clone)]
pub enum Fault {
    /// An operation fails.
    Errno {
        /// Which files.
        pattern: String,
        /// Which operation.
        op: Op,
        /// Which of the matching operations, counted from 1; 0 is every one.
        nth: u64,
        /// With what it fails.
        errno: Errno,
    },
    /// A CPU is unplugged after so many more operations of any kind, as if by another program.
    Unplug {
        /// The CPU.
        cpu: u32,
        /// Operations from now on until it happens; 0 is at once.
        after: u64,
    },
    /// Counters are put just before their wrap, which the next advance of time brings: energies at
    /// their range, `time` and `usage` of idle states at 64 bits.
    Wrap {
        /// Which counters.
        pattern: String,
    },
    /// The machine is suspended and resumed: CPUs go and come, no counter but the clock moves,
    /// the processor's own energy and cycle counters start afresh.
    Suspend {
        /// For how long.
        ns: u64,
    },
    /// The driver takes the write and does nothing.
    Ignore {
        /// Which files.
        pattern: String,
    },
    /// Files disappear after so many more operations, as when a module is unloaded.
    Vanish {
        /// Which files or folders.
        pattern: String,
        /// Operations from now on until it happens; 0 is at once.
        after: u64,
    },
}

/// A fault that waits for its moment.
#[derive(Debug, Clone)]
pub(crate) struct Armed {
    pub(crate) fault: Fault,
    pub(crate) seen: u64,
}

/// Whether a path fits a pattern in which `*` stands for anything, `/` too.
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_start_matches('/');
    let mut pieces = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        assert!(fits("a/b", "a/b") && !fits("a/b", "a/bc"));
        assert!(fits("*/scaling_*_freq", "sys/x/scaling_max_freq"));
        assert!(fits("*", "anything") && fits("a*b*c", "axxbyyc") && !fits("a*b*c", "axxc"));
        assert!(fits("/sys/*", "sys/x"));
    }
}
