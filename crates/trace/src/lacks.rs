//! What a recording's dress cannot tell, whatever was recorded.
//!
//! The same trace may come as perf.data, as what `perf script` prints of it, or as a trace.dat. What they all tell gives the same
//! work to the bit; what one of them does not tell is named by `wattwise trace`, so that two answers that differ can be understood.

use serde::{Deserialize, Serialize};

/// Something that a recording does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// In whose time an event was written: the flags of interrupts. Wake-ups by interrupts on a busy CPU count as its task's.
    Interrupts,
    /// Times below a microsecond. They are those of the trace, cut off or rounded.
    Nanoseconds,
    /// Who started whom before the recording, which threads are one process, which task runs a new program. The work is then told by
    /// names and by the forks in the recording.
    Kinship,
    /// The processor's name: the machine is to be named with -m.
    Processor,
}

impl Lack {
    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            Lack::Interrupts => "flags of interrupts",
            Lack::Nanoseconds => "times below 1 us",
            Lack::Kinship => "tasks' parents and processes",
            Lack::Processor => "the processor's name",
        }
    }
}

/// Several of them in words.
pub fn list(lacks: &[Lack]) -> String {
    lacks.iter().map(|lack| lack.what()).collect::<Vec<_>>().join(", ")
}
