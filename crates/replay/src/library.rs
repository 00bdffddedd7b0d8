//! What wattwise brings along, and how a name on the command line becomes a machine or a workload.

use crate::apply::{self, Driver};
use crate::job::{fits, reference_policy};
use std::path::{Path, PathBuf};
use wattwise_figure::nearest;
use wattwise_figure::suggest;
use wattwise_model::machine::file::MachineError;
use wattwise_model::machine::{self, MachineModel};
use wattwise_model::workload::{self, ClockOrigin, Workload};
use wattwise_policy::{Settings, System, idle};
use wattwise_trace::{ImportOptions, Source};

/// The machine of `compare` when none is named: a current laptop.
pub const DEFAULT_MACHINE: &str = "alderlake-p-laptop";
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
    MachineModel(#[from] machine::file::MachineError),
    /// A workload file that is wrong.
    #[error(transparent)]
    Workload(#[from] workload::file::WorkloadError),
    /// A recording that cannot be used.
    #[error(transparent)]
    Trace(#[from] wattwise_trace::TraceError),
    /// A recording on a machine of which there is no model.
    #[error(
        "{name}: no model of {processor} with {cpus} CPUs; name a machine with -m: nearest in number of CPUs are {near} \
         ('wattwise machines' lists them)"
    )]
    NoMachine {
        /// The recording.
        name: String,
        /// Its CPUs.
        cpus: u16,
        /// Its processor, or that it is not known.
        processor: String,
        /// Two machines with their CPUs.
        near: String,
    },
    /// A recording of which nothing tells the clock.
    #[error(
        "{name}: nothing tells the clock at which it was recorded, and the best policy depends on it; give it with \
         --recorded-khz, or record with `wattwise record -o FILE -- COMMAND`, which measures it"
    )]
    UnknownClock {
        /// The recording.
        name: String,
    },
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
pub fn machine(given: &str) -> Result<MachineModel, LibraryError> {
    if let Some(text) = machine::builtin::text(given) {
        return parsed(text, given);
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
    parsed(&read_text(path)?, given)
}

/// The machine of a file's text; `given` is for errors.
///
/// # Errors
/// One line: what is wrong with it.
pub fn parsed(text: &str, given: &str) -> Result<MachineModel, LibraryError> {
    known(machine::file::parse(text, given)?, given)
}

/// The machine, if its idle policy, its system, that system's driver and its default policy exist.
fn known(machine: MachineModel, given: &str) -> Result<MachineModel, LibraryError> {
    let fail = |what: &str, problem: String| {
        Err(MachineError::new(given, format!("platform.{what}: {problem}")).into())
    };
    if let Err(problem) = idle_exists(&machine.default_idle) {
        return fail("idle_policy", problem);
    }
    let system = &machine.system;
    if System::find(system).is_none() {
        let words = System::ALL.map(System::word);
        let problem =
            format!("'{system}': expected {}{}", words.join(", "), suggest(system, words.into_iter()));
        return fail("system", problem);
    }
    let driver = &machine.driver;
    if !driver.is_empty() && Driver::find(driver).is_none() {
        let words = || apply::DRIVERS.iter().map(|d| d.name);
        let all: Vec<&str> = words().collect();
        let problem = format!("'{driver}': expected {}{}", all.join(", "), suggest(driver, words()));
        return fail("driver", problem);
    }
    match reference_policy(&machine).and_then(|p| fits(&p, &machine)) {
        Ok(()) => Ok(machine),
        Err(e) => fail("default_policy", e.problem()),
    }
}

/// Whether words name an idle policy and parameters that it takes.
fn idle_exists(spec: &str) -> Result<(), String> {
    let (name, list) = spec.split_once(':').unwrap_or((spec, ""));
    let Some(found) = idle::find(name) else {
        return Err(format!(
            "'{name}': no such idle policy{}",
            suggest(name, idle::ALL.iter().map(|p| p.name))
        ));
    };
    Settings::parse(found.params, list).map(drop).map_err(|e| e.to_string())
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
            workload.source = bundled_source(&b.summary);
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

/// Whether policies can be ranked by this work: of a recording something must tell the clock.
///
/// # Errors
/// One line that says what to give.
pub fn rankable(workload: &Workload) -> Result<(), LibraryError> {
    match &workload.recorded {
        Some(r) if r.clock == ClockOrigin::Unknown => {
            Err(LibraryError::UnknownClock { name: workload.name.clone() })
        }
        _ => Ok(()),
    }
}

/// The machine for a workload when none is named: the model of the recorded processor; for bundled and for
/// generated workloads [`DEFAULT_MACHINE`].
///
/// # Errors
/// One line: the processor is not known, or no model has it.
pub fn machine_for(workload: &Workload) -> Result<MachineModel, LibraryError> {
    match &workload.recorded {
        Some(r) if !is_bundled(workload) => machine_of(&workload.name, r.cpu_name.as_deref(), r.cpus),
        _ => machine(DEFAULT_MACHINE),
    }
}

/// The model of a processor that has so many CPUs here; `name` is for errors.
///
/// A model with more than twice the CPUs, or with fewer, is of another machine: of a guest's host, or without SMT.
///
/// # Errors
/// One line that names the two models nearest in number of CPUs.
pub fn machine_of(name: &str, cpu_name: Option<&str>, cpus: u16) -> Result<MachineModel, LibraryError> {
    let fits = |m: &MachineModel| (usize::from(cpus)..=2 * usize::from(cpus)).contains(&m.cpus.len());
    if let Some(found) = cpu_name.and_then(machine::processors::of_processor).filter(fits) {
        return Ok(found);
    }
    let mut all: Vec<(usize, &str)> =
        machine::builtin::names().filter_map(|n| Some((machine(n).ok()?.cpus.len(), n))).collect();
    all.sort_by_key(|(n, name)| (n.abs_diff(usize::from(cpus)), *name));
    let near: Vec<String> = all.iter().take(2).map(|(n, name)| format!("{name} ({n})")).collect();
    Err(LibraryError::NoMachine {
        name: name.to_owned(),
        cpus,
        processor: cpu_name
            .map_or_else(|| "its processor, which it does not name,".into(), |c| format!("'{c}'")),
        near: near.join(" and "),
    })
}

/// Whether it is one of ours, as [`workload()`] gives them.
pub fn is_bundled(workload: &Workload) -> bool {
    RECORDED.iter().any(|(name, title, _)| workload.name == *name && workload.source == bundled_source(title))
}

fn bundled_source(title: &str) -> String {
    format!("recorded: {title}")
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

    fn recorded(cpu_name: Option<&str>, cpus: u16) -> Workload {
        let mut w = Workload::new("mine.perf", "perf.data (mine.perf)", Vec::new(), 1);
        let cpu_name = cpu_name.map(String::from);
        w.recorded = Some(workload::Recorded { cpu_name, ..workload::Recorded::new(cpus, 1_000_000) });
        w
    }

    #[test]
    fn a_recordings_machine_is_its_processors_model() {
        let name = |cpu: &str, cpus| machine_for(&recorded(Some(cpu), cpus)).map(|m| m.name);
        assert_eq!(name("Intel(R) Core(TM) i7-4510U CPU @ 2.00GHz", 4).expect("a model"), "i7-4510u");
        assert_eq!(name("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz", 20).expect("a model"), "xeon-4210");
        assert_eq!(
            machine_for(&Workload::new("x", "", Vec::new(), 1)).expect("generated").name,
            DEFAULT_MACHINE
        );
        let bundled = workload("tbench", &ImportOptions::default()).expect("bundled");
        assert_eq!(machine_for(&bundled).expect("bundled").name, DEFAULT_MACHINE);
        // A guest of two CPUs is not its host, another processor is not its neighbour.
        for (cpu, cpus) in [
            (Some("Intel(R) Xeon(R) Platinum 8480+"), 2),
            (Some("Intel(R) Xeon(R) Silver 4210R CPU @ 2.40GHz"), 20),
            (None, 2),
        ] {
            let error = machine_for(&recorded(cpu, cpus)).expect_err("no model").to_string();
            assert!(error.contains("-m") && error.contains(") and ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_unknown_clock_cannot_be_ranked() {
        let mut w = recorded(None, 2);
        let error = rankable(&w).expect_err("unknown").to_string();
        assert!(error.starts_with("mine.perf: ") && error.contains("--recorded-khz"), "{error}");
        if let Some(r) = &mut w.recorded {
            r.clock = ClockOrigin::Measured;
        }
        assert!(rankable(&w).is_ok());
        assert!(rankable(&Workload::new("x", "", Vec::new(), 1)).is_ok());
    }

    #[test]
    fn a_machines_system_driver_and_policy_exist_or_are_named_in_one_line() {
        let text = machine::builtin::text("bursts-v1").expect("bundled");
        let with = |change: &dyn Fn(&mut MachineModel)| {
            let mut parsed = machine::file::parse(text, "bursts-v1").expect("sound");
            change(&mut parsed);
            known(parsed, "mine.toml").map(drop).map_err(|e| e.to_string())
        };
        assert_eq!(with(&|m| m.default_policy = "hwp:epp=102+max=60%".into()), Ok(()));
        assert_eq!(with(&|m| m.driver = "acpi-cpufreq".into()), Ok(()));
        for (error, told) in [
            (
                with(&|m| m.default_policy = "shedutil".into()),
                "platform.default_policy: 'shedutil': no policy of that name; did you mean 'schedutil'?",
            ),
            (
                with(&|m| m.default_policy = "hwp:epp=999".into()),
                "platform.default_policy: 'hwp:epp=999': epp=999: expected",
            ),
            (
                with(&|m| m.default_policy = "schedutil+cmax=C9".into()),
                "platform.default_policy: 'schedutil+cmax=C9': cmax=C9: expected one of bursts-v1's",
            ),
            (
                with(&|m| m.system = "linx".into()),
                "platform.system: 'linx': expected linux, freebsd, openbsd; did you mean \"linux\"?",
            ),
            (with(&|m| m.driver = "intel-pstate-hwp".into()), "did you mean \"intel_pstate-hwp\"?"),
        ] {
            let error = error.expect_err(told);
            assert!(
                error.starts_with("mine.toml: platform.") && error.contains(told) && !error.contains('\n'),
                "{error}"
            );
        }
    }
}
