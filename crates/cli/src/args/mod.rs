//! What several commands take.

pub(crate) mod budget;
pub(crate) mod guard;
pub(crate) mod output;
pub(crate) mod policy;
pub(crate) mod root;
pub(crate) mod select;
pub(crate) mod settings;
pub(crate) mod state;

use std::time::Duration;
use wattwise_figure::shell;
use wattwise_figure::units::{Speed, duration_ns, speed};

/// This very call, as a shell takes it: to be run again, and for those who find a journal.
pub(crate) fn command_line() -> String {
    shell::line(std::iter::once("wattwise".into()).chain(std::env::args_os().skip(1)))
}

/// A length of time: `30s`, `10min`, `300us`; seconds where it has no unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration_ns(text, "s").map(Duration::from_nanos).map_err(|e| e.to_string())
}

/// A length of time above 0.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.is_zero() => Err("expected more than 0, such as 30s or 10min".to_owned()),
        time => Ok(time),
    }
}

/// How long something is recorded: a time that passes, and whose nanoseconds can be counted.
pub(crate) fn recorded(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.is_zero() || time.as_secs() >= 1_000_000 => {
            Err("expected more than 0 and less than 1000000s".to_owned())
        }
        time => Ok(time),
    }
}

/// A latency above 0: `250us`, `1ms`; microseconds where it has no unit. In ns.
pub(crate) fn latency_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text, "us") {
        Ok(ns) if ns > 0 => Ok(ns),
        _ => Err("expected a time above 0, such as 100us or 1ms".into()),
    }
}

/// A processor's clock: `2.6GHz`, `2600MHz`; kHz where it has no unit.
pub(crate) fn clock_khz(text: &str) -> Result<u32, String> {
    match speed(text) {
        Ok(Speed::Khz(khz)) if (1_000..=100_000_000).contains(&khz) => Ok(khz as u32),
        _ => Err("expected a clock from 1000 to 100000000 kHz, such as 2600000 or 2.6GHz".into()),
    }
}
