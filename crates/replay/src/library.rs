//! What wattwise brings along, and how a name on the command line becomes a machine or a workload.

use std::path::{Path, PathBuf};
use wattwise_figure::nearest;
use wattwise_figure::suggest;
use wattwise_model::machine::file::MachineError;
use wattwise_model::machine::{self, Machine};
use wattwise_model::workload::{self, Workload};
use wattwise_policy::{Settings, idle};
use wattwise_trace::{ImportOptions, Source};

/// The machine of `compare` when none is named: a laptop with two cores, as the recordings' machine has two CPUs.
pub const DEFAULT_MACHINE: &str = "i7-4510u";
/// The workload of `compare` when none is named.
pub const DEFAULT_WORKLOAD: &str = "build";

/// A name or file that cannot be used, in one line.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Neither bundled nor a file.
    #[error(
        "{flag} {given}: neither bundled nor a file; did you mean '{nearest}'? ('wattwise {list}' lists them)"
    )]
    Unknown {
        /// The argument.
        flag: &'static str,
        /// What was written.
        given: String,
        /// The most similar name.
        nearest: String,
        /// The command that lists the names.
        list: &'static str,
    },
    /// A file that cannot be read.
    #[error("{path}: {problem}; expected a readable file")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        problem: std::io::Error,
    },
    /// A machine model that is wrong.
    #[error(transparent)]
    Machine(#[from] machine::file::MachineError),
    /// A workload file that is wrong.
    #[error(transparent)]
    Workload(#[from] workload::file::WorkloadError),
    /// A recording that cannot be used.
    #[error(transparent)]
    Trace(#[from] wattwise_trace::TraceError),
}

/// A bundled workload.
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub summary: String,
    /// True for a recording of real work.
    pub recorded: bool,
    /// The file as bundled.
    pub bytes: &'static [u8],
}

/// Generated workloads: name and file.
const GENERATED: &[(&str, &str)] = &[
    ("burst", include_str!("../../../workloads/burst.toml")),
    ("periodic", include_str!("../../../workloads/periodic.toml")),
    ("ping-pong", include_str!("../../../workloads/ping-pong.toml")),
    ("stream", include_str!("../../../workloads/stream.toml")),
    ("parallel-build", include_str!("../../../workloads/parallel-build.toml")),
    ("lock-bench", include_str!("../../../workloads/lock-bench.toml")),
    ("desktop", include_str!("../../../workloads/desktop.toml")),
    ("bursts-v1", include_str!("../../../workloads/bursts-v1.toml")),
];

/// Recordings: name, title, file. `workloads/record.sh` says how each was made.
const RECORDED: &[(&str, &str, &[u8])] = &[
    (
        "build",
        "a C library (zstd) compiled by make -j2 on a 2-CPU cloud guest, 4 s",
        include_bytes!("../../../workloads/build.perf.zst"),
    ),
    (
        "python-loop",
        "a python loop of 100 000 iterations, started eight times on a machine at rest (study 000's job), 7 s",
        include_bytes!("../../../workloads/python-loop.perf.zst"),
    ),
    (
        "cyclictest",
        "cyclictest --policy=other -t 30 -i 200 (study 002's first test), 2 s, timer starts included",
        include_bytes!("../../../workloads/cyclictest.perf.zst"),
    ),
    (
        "tbench",
        "tbench with one client on loopback (study 002's second test), 1 s",
        include_bytes!("../../../workloads/tbench.perf.zst"),
    ),
    (
        "nuttcp",
        "nuttcp on loopback (study 003's test), 1 s",
        include_bytes!("../../../workloads/nuttcp.perf.zst"),
    ),
    (
        "idle-browse",
        "a headless browser that lays out and scrolls a page every four seconds, and otherwise idles, 20 s",
        include_bytes!("../../../workloads/idle-browse.perf.zst"),
    ),
];

/// Everything bundled, recordings first.
pub fn workloads() -> Vec<Bundled> {
    let recorded = RECORDED.iter().map(|&(name, title, bytes)| Bundled {
        name,
        summary: title.to_owned(),
        recorded: true,
        bytes,
    });
    let generated = GENERATED.iter().map(|&(name, text)| Bundled {
        name,
        summary: summary_of(text),
        recorded: false,
        bytes: text.as_bytes(),
    });
    recorded.chain(generated).collect()
}

/// The `summary` of a workload file.
fn summary_of(text: &str) -> String {
    let table: toml::Table = text.parse().unwrap_or_default();
    table.get("summary").and_then(|s| s.as_str()).unwrap_or_default().to_owned()
}

/// A machine by name or file.
///
/// # Errors
/// One line: an unknown name with the nearest, or what is wrong with the file.
pub fn machine(given: &str) -> Result<Machine, LibraryError> {
    if let Some(text) = machine::builtin::text(given) {
        return known(machine::file::parse(text, given)?, given);
    }
    let path = Path::new(given);
    if !path.exists() {
        return Err(LibraryError::Unknown {
            flag: "--machine",
            given: given.to_owned(),
            nearest: nearest(given, machine::builtin::names()),
            list: "machines",
        });
    }
    let text = read_text(path)?;
    known(machine::file::parse(&text, given)?, given)
}

/// The machine, if its default idle policy exists and takes those parameters.
fn known(machine: Machine, given: &str) -> Result<Machine, LibraryError> {
    let spec = &machine.default_idle;
    let (name, list) = spec.split_once(':').unwrap_or((spec, ""));
    let problem = match idle::find(name) {
        None => format!("'{name}': no such idle policy{}", suggest(name, idle::ALL.iter().map(|p| p.name))),
        Some(found) => match Settings::parse(found.params, list) {
            Ok(_) => return Ok(machine),
            Err(e) => e.to_string(),
        },
    };
    Err(MachineError::new(given, format!("platform.idle_policy: {problem}")).into())
}

fn read_text(path: &Path) -> Result<String, LibraryError> {
    std::fs::read_to_string(path).map_err(|problem| LibraryError::Read { path: path.to_owned(), problem })
}

/// A workload by name or file: bundled, a workload file (`*.toml`), or a recording in any known format.
///
/// # Errors
/// One line: an unknown name with the nearest, or what is wrong with the file.
pub fn workload(given: &str, options: &ImportOptions) -> Result<Workload, LibraryError> {
    if let Some(b) = workloads().into_iter().find(|b| b.name == given) {
        if b.recorded {
            let source = Source::Static { name: given.to_owned(), data: b.bytes };
            let mut workload = wattwise_trace::import(source, options)?;
            workload.name = given.to_owned();
            workload.source = format!("recorded: {}", b.summary);
            return Ok(workload);
        }
        let text = String::from_utf8_lossy(b.bytes);
        return Ok(workload::file::parse(&text, given)?);
    }
    let path = Path::new(given);
    if !path.exists() {
        let all = workloads();
        return Err(LibraryError::Unknown {
            flag: "WORKLOAD",
            given: given.to_owned(),
            nearest: nearest(given, all.iter().map(|b| b.name)),
            list: "workloads",
        });
    }
    if path.extension().is_some_and(|e| e == "toml") {
        return Ok(workload::file::parse(&read_text(path)?, given)?);
    }
    Ok(wattwise_trace::import(Source::Path(path.to_owned()), options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machines_idle_policy_exists_or_is_named_in_one_line() {
        for name in machine::builtin::names() {
            super::machine(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let text = machine::builtin::text("bursts-v1").expect("bundled");
        for (idle, told) in [("menue", "did you mean \"menu\"?"), ("fixed:dept=0", "platform.idle_policy")] {
            let mut parsed = machine::file::parse(text, "bursts-v1").expect("sound");
            parsed.default_idle = idle.to_owned();
            let error = known(parsed, "mine.toml").expect_err("no such policy").to_string();
            assert!(error.starts_with("mine.toml: platform.idle_policy") && error.contains(told), "{error}");
        }
    }
}
