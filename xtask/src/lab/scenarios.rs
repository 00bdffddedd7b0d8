//! The table of scenarios.

use super::guest::{Accel, Returned};
use std::path::Path;

/// What a judge says of a run.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Checks that held, beside those of the guest.
    pub(crate) checks: Vec<String>,
    /// Lines for people.
    pub(crate) figures: Vec<String>,
}

/// Values for the script's environment.
type Environment = fn(&Path) -> Result<Vec<(String, String)>, String>;
type Judge = fn(&Path, &Returned) -> Result<Told, String>;

/// One boot and its judge.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    /// Part of a plain `lab`.
    pub(crate) usual: bool,
    /// QEMU's -smp.
    pub(crate) cpus: &'static str,
    pub(crate) accel: Accel,
    /// More for the kernel's command line.
    pub(crate) append: &'static str,
    pub(crate) limit_s: u64,
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

fn guest_only(_: &Path, _: &Returned) -> Result<Told, String> {
    Ok(Told::default())
}

/// Every scenario.
pub(crate) static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "vpower",
        summary: "the virtual hardware: every governor and sysfs file, faults, unloading",
        usual: true,
        cpus: "4,cores=2,threads=2",
        accel: Accel::Tcg,
        append: "",
        limit_s: 90,
        environment: nothing,
        judge: guest_only,
    },
    Scenario {
        name: "burst",
        summary: "the burst governor's decisions against policy::burst's, idle CPUs, tunables, limits",
        usual: true,
        cpus: "4",
        accel: Accel::Tcg,
        append: "",
        limit_s: 150,
        environment: burst_machine,
        judge: super::burst::judge,
    },
];
