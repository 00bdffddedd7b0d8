//! What can make a recording unusable, a line each: the file, what was expected, what to do.

use crate::read::foreign;
use std::path::PathBuf;

/// A recording that cannot be used at all. A damaged one that still gives something is a warning instead.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("{path}: {error}; expected a readable recording (perf.data, trace.dat or ftrace text, also packed)", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The content is of no known format.
    #[error(
        "{name}: not a recording that wattwise knows (starts with {start}); expected perf.data, trace.dat or \
         ftrace text, also as .zst, .gz or .xz; make one with `wattwise record -o FILE -- COMMAND`"
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

impl TraceError {
    /// What starts like no recording.
    pub(crate) fn unknown(name: &str, start: &[u8]) -> TraceError {
        if start.is_empty() {
            return TraceError::Unusable {
                name: name.to_owned(),
                what: "is empty".into(),
                remedy: "expected perf.data, trace.dat or ftrace text, also as .zst; make one with `wattwise record -o FILE -- COMMAND`".into(),
            };
        }
        if let Some(kind) = foreign::of(start) {
            let what = format!("{}, no recording that wattwise reads", kind.what);
            return TraceError::Unusable {
                name: name.to_owned(),
                what,
                remedy: kind.remedy.replace("FILE", &wattwise_figure::shell::file(name)),
            };
        }
        if String::from_utf8_lossy(start).contains("sched_switch:") {
            return TraceError::Unusable {
                name: name.to_owned(),
                what: "text of the scheduler's events without the CPU and the time of each, expected both"
                    .into(),
                remedy:
                    "print it anew: `perf script -F comm,tid,cpu,time,event,trace`, or take tracefs's `trace`"
                        .into(),
            };
        }
        let start = start.iter().take(16).flat_map(|b| b.escape_ascii()).map(char::from).collect();
        TraceError::Unknown { name: name.to_owned(), start }
    }
}
