//! What wattwise brings along, and how a name on the command line becomes a machine or a workload.

use crate::driver::{DRIVERS, SpeedDriver};
use crate::job::{fits, reference_policy};
use crate::spec::PolicySpec;
use crate::spec::dram_governor;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use wattwise_figure::nearest;
use wattwise_figure::suggest;
use wattwise_model::machine::file::MachineError;
use wattwise_model::machine::{self, MachineModel};
use wattwise_model::workload::{self, ClockOrigin, Known, Workload};
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
    /// A file with nothing in it.
    #[error(
        "{path}: is empty; expected the text of a machine or a workload, such as 'wattwise machines show NAME --file' prints"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A machine model that is wrong.
    #[error(transparent)]
    MachineModel(#[from] machine::file::MachineError),
    /// A workload file that is wrong.
    #[error(transparent)]
    Workload(#[from] workload::file::WorkloadError),
    /// Parameters of a generator that are wrong.
    #[error(transparent)]
    Generate(#[from] workload::generate::GenerateError),
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
    /// True where it was looked at while wattwise was made: what is chosen by it should be tested on others.
    pub development: bool,
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

/// A recording: name, title, file. `workloads/recipes/NAME.sh` makes it anew.
type Recorded = (&'static str, &'static str, &'static [u8]);

macro_rules! recorded {
    ($($name:literal: $title:literal,)*) => {
        &[$(($name, $title, include_bytes!(concat!("../../../workloads/", $name, ".perf.zst")))),*]
    };
}

/// Recordings that were looked at while wattwise was made: its rules and defaults may suit them better than others.
const DEVELOPMENT: &[Recorded] = recorded! {
    "build": "a C library (zstd) compiled by make -j2 on a 2-CPU cloud guest",
    "python-loop": "a python loop of 100 000 iterations, started eight times on a machine at rest (study 000's job), 7 s",
    "cyclictest": "cyclictest --policy=other -t 30 -i 200 (study 002's first test), 2 s, timer starts included",
    "tbench": "tbench with one client on loopback (study 002's second test), 1 s",
    "nuttcp": "nuttcp on loopback (study 003's test), 1 s",
    "idle-browse": "a headless browser that lays out and scrolls a page every four seconds, and otherwise idles, 20 s",
};

/// Recordings that were made when the rules and defaults were there.
const OTHERS: &[Recorded] = recorded! {
    "cxx": "four C++ files full of templates, compiled by make -j2 with optimisation, 8 s",
    "rust": "a Rust program compiled with optimisation by rustc, 4 s",
    "typescript": "the TypeScript compiler on twelve modules, in Node.js, 2 s",
    "java": "javac compiles a program that makes much garbage, and java runs it, 1 s",
    "data": "pandas reads, groups, joins and writes a table of a million rows, 1 s",
    "ml-vision": "a small convolutional network on eight pictures a second (ONNX Runtime, two threads), 6 s",
    "sqlite": "SQLite on disk: 1200 small transactions, then queries over all rows, 2 s",
    "postgres": "PostgreSQL, with four clients that start 150 of pgbench's transfers a second, 5 s",
    "redis": "Redis, with ten clients that set and get without a pause, 1 s",
    "nginx": "nginx with two workers that pack what sixteen connections ask for, 2 s",
    "node-http": "a Node.js server that renders 150 pages a second, and its client, 6 s",
    "containers": "twelve containers, started one after the other with a pause (runc), 4 s",
    "backup": "restic backs up 30 MB, and then the same files again, 2 s",
    "sync": "rsync copies a tree of files, and then finds that nothing changed, 1 s",
    "archive": "tar into gzip, 2 s",
    "compress": "zstd with two threads, 1 s",
    "sort": "GNU sort with two threads on four million lines, 2 s",
    "search": "ripgrep looks for three patterns with two threads and waits for its reader in between, 2 s",
    "git-tests": "five scripts of git's own tests, one after the other: short programs that shells start, 5 s",
    "thumbnails": "24 pictures made small by ImageMagick, two at a time, 2 s",
    "video-encode": "five seconds of picture and sound encoded as H.264 and AAC (ffmpeg), 1 s",
    "video-play": "a film decoded in real time at 30 pictures a second (ffmpeg), 8 s",
    "browse-app": "a headless browser with a web application that works every 700 ms, 12 s",
    "browse-canvas": "a headless browser that draws a moving picture at the screen's rate, 6 s",
    "idle-desktop": "a desktop at rest: X server, window manager, a clock with seconds, a terminal with top, 20 s",
    "idle-server": "a server at rest: PostgreSQL, Redis and nginx without clients, looked at each second, 19 s",
};

/// Everything bundled, recordings first.
pub fn workloads() -> Vec<Bundled> {
    let recorded = |all: &'static [Recorded], development: bool| {
        all.iter().map(move |&(name, title, bytes)| Bundled {
            name,
            summary: title.to_owned(),
            recorded: true,
            development,
            bytes,
        })
    };
    let generated = GENERATED.iter().map(|&(name, text)| Bundled {
        name,
        summary: summary_of(text),
        recorded: false,
        development: true,
        bytes: text.as_bytes(),
    });
    recorded(DEVELOPMENT, true).chain(recorded(OTHERS, false)).chain(generated).collect()
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
    parsed(&machine_text(given)?, given)
}

/// The text of a machine's file, by name or file.
///
/// # Errors
/// One line: an unknown name with the nearest, or why the file cannot be read.
pub fn machine_text(given: &str) -> Result<Cow<'static, str>, LibraryError> {
    if let Some(text) = machine::builtin::text(given) {
        return Ok(text.into());
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
    read_text(path).map(Cow::from)
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
    if let Some(clock) = &machine.memory_clock
        && let Err(problem) = dram_governor(&clock.governor)
    {
        return Err(MachineError::new(
            given,
            format!("memory_clock.governor = '{}': {problem}", clock.governor),
        )
        .into());
    }
    let system = &machine.system;
    if System::find(system).is_none() {
        let words = System::ALL.map(System::word);
        let problem =
            format!("'{system}': expected {}{}", words.join(", "), suggest(system, words.into_iter()));
        return fail("system", problem);
    }
    let driver = &machine.driver;
    if !driver.is_empty() && SpeedDriver::find(driver).is_none() {
        let words = || DRIVERS.iter().map(|d| d.name);
        let all: Vec<&str> = words().collect();
        let problem = format!("'{driver}': expected {}{}", all.join(", "), suggest(driver, words()));
        return fail("driver", problem);
    }
    if let Err(e) = reference_policy(&machine).and_then(|p| fits(&p, &machine)) {
        return fail("default_policy", e.problem());
    }
    let fit = |text: &String| fits(&PolicySpec::parse(text)?, &machine);
    if let Err(e) = machine.replaced_policies.iter().try_for_each(fit) {
        return fail("replaced_policies", e.problem());
    }
    Ok(machine)
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
    let text = wattwise_figure::budget::read_text(path)
        .map_err(|problem| LibraryError::Read { path: path.to_owned(), problem })?;
    if text.trim().is_empty() { Err(LibraryError::Empty { path: path.to_owned() }) } else { Ok(text) }
}

/// A workload by name or file: bundled, a workload file (`*.toml`, or rt-app's `*.json`), or a recording in any known format.
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
        return Ok(stated(workload::file::parse(&text, given)?, options));
    }
    let path = Path::new(given);
    if !path.exists()
        && let Some(made) = workload::generate::workload(given)
    {
        return Ok(stated(made?, options));
    }
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
        return Ok(stated(workload::file::parse(&read_text(path)?, given)?, options));
    }
    // What is larger than a file that people write is some trace as JSON.
    if path.extension().is_some_and(|e| e == "json")
        && let Ok(text) = read_text(path)
        && let Some(work) = workload::rtapp::parse(&text, given)
    {
        return Ok(stated(work?, options));
    }
    Ok(wattwise_trace::import(Source::Path(path.to_owned()), options)?)
}

/// Scripted work of whose run time the user has stated the memory-bound share.
fn stated(mut work: Workload, options: &ImportOptions) -> Workload {
    if let (Some(share), Some(scripted)) = (options.memory_share, &mut work.scripted) {
        scripted.memory = Known::Between(share, share);
        work.share_memory(0.5);
    }
    work
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
    let is = |(name, title, _): &Recorded| workload.name == *name && workload.source == bundled_source(title);
    DEVELOPMENT.iter().chain(OTHERS).any(is)
}

fn bundled_source(title: &str) -> String {
    format!("recorded: {title}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that make it again, and what they need.
    #[test]
    fn every_recording_has_its_recipe() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/recipes");
        for w in workloads().into_iter().filter(|w| w.recorded) {
            let recipe = std::fs::read_to_string(folder.join(format!("{}.sh", w.name)));
            let recipe = recipe.unwrap_or_else(|e| panic!("{}: {e}", w.name));
            assert!(recipe.starts_with("# "), "{}", w.name);
            assert!(recipe.contains("\n# needs: ") && recipe.contains("\nrecord "), "{}", w.name);
        }
    }

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

    #[test]
    fn json_with_tasks_is_rt_apps_and_other_json_no_recording() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            workload(&path.display().to_string(), &ImportOptions::default()).map_err(|e| e.to_string())
        };
        let work =
            read("a.json", "/* mine */ {\"tasks\": {\"a\": {\"loop\": 2, \"run\": 5}}}").expect("sound");
        assert_eq!((work.name.as_str(), work.tasks.len()), ("a.json", 1));
        for (text, told) in [
            ("{\"tasks\": {\"a\": {\"loop\": 2, \"fork\": \"b\"}}}", "a.json: task 'a': 'fork': not among"),
            ("{\"tasks\": [1]}", "JSON, no recording that wattwise reads"),
            ("{\"ph\": 1}", "Chrome"),
        ] {
            let error = read("a.json", text).expect_err(told);
            assert!(error.contains(told) && !error.contains('\n'), "{error}");
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
                with(&|m| m.replaced_policies = vec!["schedutil+cmax=C9".into()]),
                "platform.replaced_policies: 'schedutil+cmax=C9': cmax=C9: expected one of bursts-v1's",
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
