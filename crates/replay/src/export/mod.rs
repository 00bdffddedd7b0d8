//! A replay's events, written for other programs.
//!
//! | file | who reads it |
//! |---|---|
//! | `perfetto.rs` | ui.perfetto.dev and its trace processor: several replays side by side |
//! | `ftrace.rs` | trace-cmd's friends, and our own importer: a recording of a machine that does not exist |
//! | `protobuf.rs` | the wire format that the first needs |

pub mod ftrace;
pub mod perfetto;
mod protobuf;

pub use ftrace::Ftrace;
pub use perfetto::{ExportCounts, Perfetto};

use wattwise_model::workload::Workload;

/// A task's name; one more than the last task is the speed policy's own process.
fn task_name(workload: &Workload, task: u32) -> &str {
    workload.tasks.get(task as usize).map_or("speed policy", |t| t.name.as_str())
}

/// An output whose first error is kept until somebody can be told: a watcher returns nothing.
struct KeptError<W> {
    out: W,
    error: Option<std::io::Error>,
}

impl<W: std::io::Write> KeptError<W> {
    fn new(out: W) -> KeptError<W> {
        KeptError { out, error: None }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
    }

    /// Flushes, and tells the first error; else gives the output back.
    fn finish(mut self) -> std::io::Result<W> {
        self.error.take().map_or_else(|| self.out.flush(), Err)?;
        Ok(self.out)
    }
}
