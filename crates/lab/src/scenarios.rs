//! The table of scenarios.

use crate::guest::{Accel, Returned};
use crate::verdict::JudgeTold;
use std::path::Path;

/// Values for the script's environment.
type Environment = fn(&Path) -> Result<Vec<(String, String)>, String>;
type Judge = fn(&Path, &Returned) -> Result<JudgeTold, String>;

/// What some scenarios bring along.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brings {
    Nothing,
    /// The sched_ext scheduler of `bpf/`.
    Scheduler,
    /// wattwise itself.
    Product,
    /// wattwise, and systemd as the first process, with the units of our package.
    Systemd,
}

/// One boot and its judge.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// In `lab/scenarios`, without its `.sh`.
    pub(crate) script: &'static str,
    pub(crate) summary: &'static str,
    /// Part of a plain `lab`.
    pub(crate) usual: bool,
    /// What it needs beside our modules and the guest's programs.
    pub(crate) brings: Brings,
    /// QEMU's -smp.
    pub(crate) cpus: &'static str,
    pub(crate) accel: Accel,
    /// More for the kernel's command line.
    pub(crate) append: &'static str,
    pub(crate) limit_s: u64,
    /// It fails if so many boots in a row do: more than one where the moment at which a boot begins its loads moves the figures.
    pub(crate) boots: u32,
    pub(crate) environment: Environment,
    pub(crate) judge: Judge,
}

fn nothing(_: &Path) -> Result<Vec<(String, String)>, String> {
    Ok(Vec::new())
}

/// vpower's own levels: the judge knows them.
fn burst_machine(_: &Path) -> Result<Vec<(String, String)>, String> {
    Ok(vec![("VPOWER".into(), "latency_ns=10000".into())])
}

/// What a comparison of governors wants to know.
fn fidelity(root: &Path, cpus: usize, settings: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
    let machine = crate::machine::lab(root)?;
    // Where any CPU sets any clock, one that balances for the others takes the governor's samples for them too,
    // when it happens to: no policy's doing.
    let parameters = crate::machine::vpower(&machine, cpus) + " any_cpu=0";
    let mut environment = vec![("VPOWER".to_owned(), parameters)];
    environment.push(("USERSPACE_KHZ".to_owned(), crate::judge::fidelity::USERSPACE_KHZ.to_string()));
    environment.extend(settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    Ok(environment)
}

/// Under every governor; a load's commas are its spaces.
pub(crate) const GOVERNORS: &str = "ondemand conservative schedutil userspace powersave performance";
pub(crate) const LOADS: &str = "steady,share=10 steady,share=30 steady,share=60 steady,share=90 burst,busy_ms=5,idle_ms=45 \
     burst,busy_ms=50,idle_ms=150 cyclic,period_us=1000,busy_us=100 build";
fn four_menu(root: &Path) -> Result<Vec<(String, String)>, String> {
    fidelity_four(root, "menu")
}

fn four_ladder(root: &Path) -> Result<Vec<(String, String)>, String> {
    fidelity_four(root, "ladder")
}

fn fidelity_four(root: &Path, idle: &str) -> Result<Vec<(String, String)>, String> {
    fidelity(
        root,
        4,
        &[
            ("GOVERNORS", GOVERNORS),
            ("LOADS", LOADS),
            ("IDLE", idle),
            ("MS", "1000"),
            ("BUSY", "halt=1"),
            ("BUFFER_KB", "16384"),
        ],
    )
}

fn fidelity_menu(root: &Path) -> Result<Vec<(String, String)>, String> {
    fidelity_icount(root, "menu")
}

fn fidelity_ladder(root: &Path) -> Result<Vec<(String, String)>, String> {
    fidelity_icount(root, "ladder")
}

fn fidelity_icount(root: &Path, idle: &str) -> Result<Vec<(String, String)>, String> {
    fidelity(
        root,
        1,
        &[
            ("GOVERNORS", GOVERNORS),
            ("LOADS", LOADS),
            ("IDLE", idle),
            ("MS", "1500"),
            ("BUSY", ""),
            ("BUFFER_KB", "16384"),
        ],
    )
}

fn thomson(root: &Path) -> Result<Vec<(String, String)>, String> {
    let machine = crate::machine::described(root, crate::judge::thomson::MACHINE)?;
    Ok(vec![
        ("VPOWER".into(), crate::machine::vpower(&machine, 1)),
        ("JOB_US".into(), crate::judge::thomson::JOB_US.to_string()),
    ])
}

/// The topology that the scenario expects to find, and how long each load lasts.
fn placement(siblings: &str, package: &str, llc: &str) -> Result<Vec<(String, String)>, String> {
    let values = [("SIBLINGS", siblings), ("PACKAGE", package), ("LLC", llc), ("MS", "2000")];
    Ok(values.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec())
}

fn placement_threads(_: &Path) -> Result<Vec<(String, String)>, String> {
    placement("0-1", "0", "0-3")
}

fn placement_sockets(_: &Path) -> Result<Vec<(String, String)>, String> {
    placement("0", "1", "0-1")
}

fn placement_cores(_: &Path) -> Result<Vec<(String, String)>, String> {
    placement("0", "0", "0-3")
}

/// vpower's parameters, which the judge holds the calibration against.
fn calibrated(_: &Path) -> Result<Vec<(String, String)>, String> {
    Ok(vec![("VPOWER".into(), crate::judge::calibrate::parameters())])
}

fn guest_only(_: &Path, _: &Returned) -> Result<JudgeTold, String> {
    Ok(JudgeTold::default())
}

/// The guest has checked everything and has figures to tell.
fn guest_tells(_: &Path, returned: &Returned) -> Result<JudgeTold, String> {
    let figures = returned.lines.iter().filter_map(|l| l.get("figure")?.as_str().map(str::to_owned));
    Ok(JudgeTold { figures: figures.collect(), ..JudgeTold::default() })
}

/// Seconds after which a boot is given up. Each takes 15 to 60 on an idle host; one with many other things to do
/// takes several times as long, and is no reason to fail.
const LIMIT_S: u64 = 900;

/// What most scenarios are.
const USUAL: Scenario = Scenario {
    name: "",
    script: "",
    summary: "",
    usual: true,
    brings: Brings::Nothing,
    cpus: "4",
    accel: Accel::Tcg,
    append: "",
    limit_s: LIMIT_S,
    boots: 1,
    environment: nothing,
    judge: guest_only,
};

/// Every scenario.
pub(crate) static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "vpower",
        script: "vpower",
        summary: "the virtual hardware: every governor and sysfs file, faults, unloading",
        cpus: "4,cores=2,threads=2",
        ..USUAL
    },
    Scenario {
        name: "rules",
        script: "rules",
        summary: "what the kernel answers to odd values of every attribute, against hw::rules",
        cpus: "4,cores=2,threads=2",
        append: "tsc=unstable",
        judge: crate::judge::rules::judge,
        ..USUAL
    },
    Scenario {
        name: "burst",
        script: "burst",
        summary: "the burst governor's decisions against policy::burst's, idle CPUs, tunables, limits",
        environment: burst_machine,
        judge: crate::judge::burst::judge,
        ..USUAL
    },
    Scenario {
        name: "powerctl",
        script: "powerctl",
        summary: "profiles of threads: 200 threads, faults, SIGKILL, hotplug, suspend, waiting, costs",
        brings: Brings::Product,
        cpus: "4,cores=2,threads=2",
        judge: crate::judge::powerctl::judge,
        ..USUAL
    },
    Scenario {
        name: "daemon",
        script: "daemon",
        summary: "wattwised: profiles follow vpower's mains, powerd and burst decide as the model, kill -9 and the restorer",
        brings: Brings::Product,
        cpus: "4,cores=2,threads=2",
        judge: crate::judge::daemon::judge,
        ..USUAL
    },
    Scenario {
        name: "daemon-systemd",
        script: "daemon-systemd",
        summary: "wattwised under systemd with the package's own units: 20 x kill -9, restart, too many failures, stop, reload",
        brings: Brings::Systemd,
        cpus: "4,cores=2,threads=2",
        append: "systemd.unit=lab.service systemd.log_target=console systemd.journald.forward_to_console=1 systemd.show_status=0",
        boots: 2,
        judge: crate::judge::daemon::judge_systemd,
        ..USUAL
    },
    Scenario {
        name: "powerctl-msr",
        script: "powerctl-msr",
        summary: "powerctl's back end for registers: siblings, HWP, governors and drivers, failed writes, firmware, suspend",
        cpus: "4,cores=2,threads=2",
        ..USUAL
    },
    Scenario {
        name: "cost",
        script: "cost",
        summary: "what powerctl's hook and a request cost, on the instruction clock",
        cpus: "1",
        accel: Accel::Icount,
        judge: crate::judge::powerctl::judge_cost,
        ..USUAL
    },
    Scenario {
        name: "thomson",
        script: "thomson",
        summary: "study 000's job under powerd's rule, burst and performance, beside its table and the model",
        cpus: "1",
        accel: Accel::Icount,
        environment: thomson,
        judge: crate::judge::thomson::judge,
        ..USUAL
    },
    Scenario {
        name: "icount",
        script: "fidelity",
        summary: "the kernel's governors against the model's policies, on one CPU whose clock follows its instructions",
        cpus: "1",
        accel: Accel::Icount,
        boots: 3,
        environment: fidelity_menu,
        judge: crate::judge::fidelity::judge_menu,
        ..USUAL
    },
    Scenario {
        name: "ladder",
        script: "fidelity",
        summary: "as icount, under the idle governor ladder",
        usual: false,
        cpus: "1",
        accel: Accel::Icount,
        boots: 2,
        environment: fidelity_ladder,
        judge: crate::judge::fidelity::judge_ladder,
        ..USUAL
    },
    Scenario {
        name: "4cpu",
        script: "fidelity",
        summary: "as icount, on four CPUs whose loads halt instead of working",
        usual: false,
        accel: Accel::Icount,
        limit_s: 4 * LIMIT_S,
        boots: 2,
        environment: four_menu,
        judge: crate::judge::fidelity::judge_four,
        ..USUAL
    },
    Scenario {
        name: "4cpu-ladder",
        script: "fidelity",
        summary: "as 4cpu, under the idle governor ladder",
        usual: false,
        accel: Accel::Icount,
        limit_s: 4 * LIMIT_S,
        boots: 2,
        environment: four_ladder,
        judge: crate::judge::fidelity::judge_four,
        ..USUAL
    },
    Scenario {
        name: "placement",
        script: "placement",
        summary: "where the kernel puts woken tasks against the placement `linux`, on two cores of two threads",
        usual: false,
        cpus: "4,sockets=1,cores=2,threads=2",
        environment: placement_threads,
        judge: crate::judge::placement::judge_threads,
        ..USUAL
    },
    Scenario {
        name: "placement-sockets",
        script: "placement",
        summary: "as placement, on two sockets of two cores",
        usual: false,
        cpus: "4,sockets=2,cores=2,threads=1",
        environment: placement_sockets,
        judge: crate::judge::placement::judge_sockets,
        ..USUAL
    },
    Scenario {
        name: "placement-cores",
        script: "placement",
        summary: "as placement, on one socket of four cores",
        usual: false,
        cpus: "4,sockets=1,cores=4,threads=1",
        environment: placement_cores,
        judge: crate::judge::placement::judge_cores,
        ..USUAL
    },
    Scenario {
        name: "calibrate",
        script: "calibrate",
        summary: "wattwise calibrate itself: what it finds against vpower's own parameters, kill -9 and restore",
        usual: false,
        brings: Brings::Product,
        limit_s: 2 * LIMIT_S,
        environment: calibrated,
        judge: crate::judge::calibrate::judge,
        ..USUAL
    },
    Scenario {
        name: "coreidle",
        script: "coreidle",
        summary: "wattwise coreidle itself, by a cpuset partition: set, governor, kill, hotplug, another manager",
        brings: Brings::Product,
        judge: guest_tells,
        ..USUAL
    },
    Scenario {
        name: "coreidle-cpuset",
        script: "coreidle-cpuset",
        summary: "the rules of a cpuset that core idling relies on: a storm, pinned tasks, changes, hotplug, removal",
        judge: crate::judge::coreidle::judge_cpuset,
        ..USUAL
    },
    Scenario {
        name: "coreidle-scx",
        script: "coreidle-scx",
        summary: "core idling as a sched_ext scheduler, on --kernel 7.2: the same, faults, the way back",
        usual: false,
        brings: Brings::Scheduler,
        judge: crate::judge::coreidle::judge_scx,
        ..USUAL
    },
];
