//! Flags that say how a recording is to be understood, for all commands that read one.

use wattwise_figure::Budget;
use wattwise_trace::ImportOptions;

#[derive(clap::Args)]
pub(crate) struct RecordingArgs {
    #[command(flatten)]
    whose: WhoseArgs,
    /// Power that the recorded machine drew while it was suspended, in watts [default: that time is left out]
    #[arg(long, value_name = "WATTS", value_parser = watts, help_heading = "Input")]
    suspend_watts: Option<f64>,
}

/// For commands that read a recording and replay nothing.
#[derive(clap::Args)]
pub(crate) struct ReadingLimits {
    /// Limits on what is read, against broken or hostile files, such as tasks=1e6,disk=1e10: tasks, CPUs, bytes after unpacking
    /// (disk) and in memory; parts that are not named keep their default
    #[arg(long, value_name = "PART=NUMBER,...", default_value_t = Budget::default(), help_heading = "Limits")]
    pub(crate) budget: Budget,
}

/// Of a machine that sleeps: less than it has awake.
fn watts(text: &str) -> Result<f64, String> {
    let watts = text.trim().trim_end_matches('W').trim_end().parse().ok();
    watts
        .filter(|w| (0.0..=10_000.0).contains(w))
        .ok_or_else(|| format!("'{text}': expected watts from 0 to 10000, such as 0.5"))
}

/// Whose work it is, and at which clock it was recorded.
#[derive(clap::Args)]
pub(crate) struct WhoseArgs {
    /// The tasks to measure, by name or process id, with all that they start; repeat for several
    /// [default: the recorded command, else all programs]
    #[arg(long, value_name = "NAME|PID", help_heading = "Input")]
    pub(crate) foreground: Vec<String>,
    /// Leave out what other programs did while the recording was made
    #[arg(long, help_heading = "Input")]
    pub(crate) only_foreground: bool,
    /// CPU clock of the recording, if the recording does not say it: 2.6GHz, or a number of kHz
    #[arg(long, value_name = "KHZ", value_parser = crate::args::clock_khz, help_heading = "Input")]
    pub(crate) recorded_khz: Option<u32>,
}

impl RecordingArgs {
    /// The same for the importer.
    pub(crate) fn options(&self, budget: Budget) -> ImportOptions {
        ImportOptions {
            khz: self.whose.recorded_khz,
            foreground: self.whose.foreground.clone(),
            only_foreground: self.whose.only_foreground,
            suspend_w: self.suspend_watts,
            budget,
            ..ImportOptions::default()
        }
    }
}
