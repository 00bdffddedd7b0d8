//! What can make a recording unusable, a line each: the file, what was expected, what to do.

use std::path::PathBuf;

/// Recordings that are read, and what they may be packed in.
pub(crate) const FORMATS: &str = "perf.data, trace.dat, ftrace text or a Perfetto trace";
pub(crate) const PACKED: &str = ".zst, .gz, .xz or .bz2";

/// A recording that cannot be used at all. A damaged one that still gives something is a warning instead.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("{path}: {error}; expected a readable recording ({formats}, also packed)", path = path.display(), formats = FORMATS)]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The content is of no known format.
    #[error(
        "{name}: not a recording that wattwise knows (starts with {start}); expected {formats}, also as {packed}; \
         make one with `wattwise record -o FILE -- COMMAND`",
        formats = FORMATS,
        packed = PACKED
    )]
    Unknown {
        /// The recording.
        name: String,
        /// Its first bytes, printable.
        start: String,
    },
    /// It takes more than it may.
    #[error("{name}: {over}")]
    OverBudget {
        /// The source.
        name: String,
        /// More than what.
        over: wattwise_figure::OverBudget,
    },
    /// The format is known, and the file is too damaged, cut short or of a variant that is not read.
    #[error("{name}: {what}; {remedy}")]
    Unusable {
        /// The recording.
        name: String,
        /// What was expected and found.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The recording is sound and holds no scheduler events.
    #[error(
        "{name}: no sched_switch event among {events} events; expected a scheduler recording; record with \
         `-e sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,power:cpu_idle -a`"
    )]
    NoSwitches {
        /// The recording.
        name: String,
        /// Events that it does hold.
        events: u64,
    },
    /// `--foreground` names a task that the recording does not have.
    #[error(
        "{name}: --foreground {given}: no task of that name or id; did you mean '{nearest}'? ('wattwise trace {name}' lists them)"
    )]
    NoSuchTask {
        /// The recording.
        name: String,
        /// What was written.
        given: String,
        /// The most similar name.
        nearest: String,
    },
    /// The recording's foreground has no work.
    #[error(
        "{name}: {what}; expected work to compare; name the tasks that are the work with --foreground NAME"
    )]
    NoForeground {
        /// The recording.
        name: String,
        /// What is missing.
        what: String,
    },
}
