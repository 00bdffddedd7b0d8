//! What our recorder knows and no event tells: which task is the command, how it ended, what the clock was.
//!
//! It goes into perf.data's feature 31 (`PMU_CAPS`), which holds names and values for each of several
//! counting devices, as the device `wattwise`. Every perf since 5.19 shows it (`perf report --header-only`:
//! `# wattwise pmu capabilities: command=4711, ...`), older ones pass over it.
//!
//! | name | value |
//! |---|---|
//! | `command` | process id of the recorded command, from its fork on |
//! | `exit_code` | its exit code; 128 + the signal's number where one ended it |
//! | `stopped` | `1`: the recorder stopped it, when the time was over or by request |
//! | `clock_khz` | the clock, measured by a timed loop while the recording was made |
//! | `foreground` | of a replay that was written down: the foreground's thread ids, with commas |
//! | `release_ns` | the same: when the foreground was released, in ns since the start |
//! | `memory` | the same: `unknown` where nobody knows how much of the work waits for memory |
//! | `incomplete` | `1`: written at the beginning; what the recorder writes at the end has it no more |
//! | `cpuN_khz` | the clock of CPU N when the recording began, as cpufreq has it |

use crate::bounds::{MAX_CPUS, MAX_TID};

/// Its number among perf.data's features.
#[cfg(feature = "record")]
pub(crate) const FEATURE: u32 = 31;

/// The device's name.
const DEVICE: &str = "wattwise";

/// Devices and entries beyond this number are damage.
const MOST_ENTRIES: u32 = 1 << 14;

/// What the recorder noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Process id of the recorded command.
    pub command: Option<u32>,
    /// Its exit code; 128 + the signal's number where one ended it.
    pub exit_code: Option<i32>,
    /// The recorder stopped the command: it did not come to its own end.
    pub stopped: bool,
    /// The clock as measured while the recording was made, in kHz.
    pub khz: Option<u32>,
    /// The clock of some CPUs at the beginning, in kHz.
    pub cpu_khz: Vec<(u16, u32)>,
    /// The recorder did not come to its end: it was killed, or the power failed.
    pub incomplete: bool,
    /// Of a replay that was written down: the foreground's thread ids.
    pub foreground: Vec<u32>,
    /// The same: when the foreground was released, in ns since the start.
    pub release_ns: Option<u64>,
    /// The same: how much of the work waits for memory is not known.
    pub memory_unknown: bool,
}

/// Clocks beyond these are damage.
fn clock(text: &str) -> Option<u32> {
    text.parse().ok().filter(|khz| (1_000..=100_000_000).contains(khz))
}

fn thread(text: &str) -> Option<u32> {
    text.parse().ok().filter(|tid| (1..MAX_TID).contains(tid))
}

impl Notes {
    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            all.extend(value.map(|v| (name.to_owned(), v)));
        };
        add("command", self.command.map(|c| c.to_string()));
        add("exit_code", self.exit_code.map(|c| c.to_string()));
        add("stopped", self.stopped.then(|| "1".into()));
        add("incomplete", self.incomplete.then(|| "1".into()));
        add("clock_khz", self.khz.map(|k| k.to_string()));
        let foreground: Vec<String> = self.foreground.iter().map(u32::to_string).collect();
        add("foreground", Some(foreground.join(",")).filter(|f| !f.is_empty()));
        add("release_ns", self.release_ns.map(|ns| ns.to_string()));
        add("memory", self.memory_unknown.then(|| "unknown".into()));
        all.extend(self.cpu_khz.iter().map(|(cpu, khz)| (format!("cpu{cpu}_khz"), khz.to_string())));
        all
    }

    pub(crate) fn take(&mut self, name: &str, value: &str) {
        match name {
            "command" => self.command = value.parse().ok().filter(|c| *c > 0),
            "exit_code" => self.exit_code = value.parse().ok(),
            "stopped" => self.stopped = value == "1",
            "incomplete" => self.incomplete = value == "1",
            "clock_khz" => self.khz = clock(value),
            "foreground" => self.foreground.extend(value.split(',').filter_map(thread)),
            "release_ns" => self.release_ns = value.parse().ok(),
            "memory" => self.memory_unknown = value == "unknown",
            _ => {
                let cpu = name.strip_prefix("cpu").and_then(|n| n.strip_suffix("_khz"));
                let cpu = cpu.and_then(|n| n.parse().ok()).filter(|n| *n < MAX_CPUS);
                if let (Some(cpu), Some(khz)) = (cpu, clock(value)) {
                    self.cpu_khz.push((cpu, khz));
                }
            }
        }
    }

    /// The feature's content; `None` where there is nothing to say.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let entries = self.entries();
        if entries.is_empty() {
            return None;
        }
        let mut out = 1u32.to_le_bytes().to_vec();
        out.extend((entries.len() as u32).to_le_bytes());
        for (name, value) in &entries {
            out.extend(perf_string(name));
            out.extend(perf_string(value));
        }
        out.extend(perf_string(DEVICE));
        Some(out)
    }

    /// Reads the feature, which may hold other devices too; whatever makes no sense is passed over.
    pub(crate) fn decode(mut take: crate::take::Take<'_>) -> Notes {
        let mut notes = Notes::default();
        let mut left = MOST_ENTRIES;
        for _ in 0..take.u32().unwrap_or(0).min(MOST_ENTRIES) {
            let (Some(n), mut entries) = (take.u32(), Vec::new()) else { break };
            if n > left {
                break;
            }
            left -= n;
            for _ in 0..n {
                let (Some(name), Some(value)) = (take.perf_string(), take.perf_string()) else {
                    return notes;
                };
                entries.push((name, value));
            }
            let Some(device) = take.perf_string() else { break };
            if device == DEVICE {
                entries.iter().for_each(|(name, value)| notes.take(name, value));
            }
        }
        notes
    }
}

/// perf's strings: padded length, bytes, zeros.
pub(crate) fn perf_string(text: &str) -> Vec<u8> {
    let padded = (text.len() + 1).next_multiple_of(64);
    let mut out = (padded as u32).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out.resize(4 + padded, 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::take::{ByteOrder, Take};

    fn decode(bytes: &[u8]) -> Notes {
        Notes::decode(Take { rest: bytes, order: ByteOrder::Little })
    }

    #[test]
    fn what_is_noted_is_read_back() {
        let notes = Notes {
            command: Some(4711),
            exit_code: Some(130),
            stopped: true,
            khz: Some(2_600_000),
            cpu_khz: vec![(0, 800_000), (17, 3_100_000)],
            foreground: vec![4711, 4712],
            release_ns: Some(5_000_000),
            memory_unknown: true,
            incomplete: true,
        };
        let bytes = notes.encode().unwrap_or_default();
        assert_eq!(decode(&bytes), notes);
        for n in 0..bytes.len() {
            decode(&bytes[..n]);
        }
        assert_eq!(Notes::default().encode(), None);
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        let mut notes = Notes::default();
        for (name, value) in [
            ("command", "-1"),
            ("clock_khz", "3"),
            ("foreground", "0,x,-1"),
            ("cpu9999_khz", "1000000"),
            ("cpux_khz", "1"),
            ("new", "x"),
        ] {
            notes.take(name, value);
        }
        assert_eq!(notes, Notes::default());
    }
}
