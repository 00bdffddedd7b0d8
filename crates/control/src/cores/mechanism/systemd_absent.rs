//! In the place of `systemd` in a build without D-Bus: it says so, and nothing is put in force behind systemd's back.

use crate::cores::mechanism::way::{Mechanism, MechanismKind, Moved, Notes};
use crate::problem::Problem;
use std::path::Path;
use wattwise_hw::cpus::set::CpuSet;

const ABSENT: &str = "this wattwise is built without D-Bus; install it with --features dbus";

/// Never made.
pub(super) enum Slices {}

/// Why systemd cannot be asked.
pub(super) fn why_not() -> Option<String> {
    Some(ABSENT.to_owned())
}

/// Whether systemd runs here, owns the tree of cgroups and cannot be asked.
pub(super) fn unasked() -> Option<String> {
    Path::new("/run/systemd/system")
        .exists()
        .then(|| format!("systemd owns the cgroups here, and {ABSENT}; or choose another way by --mechanism"))
}

impl Slices {
    /// Cannot be taken up.
    pub(super) fn open(_: CpuSet, _: &Notes) -> Result<Slices, Problem> {
        Err(Problem::Impossible(ABSENT.to_owned()))
    }
}

impl Mechanism for Slices {
    fn kind(&self) -> MechanismKind {
        MechanismKind::Slices
    }
    fn keep(&mut self, _: &CpuSet) -> Result<Moved, Problem> {
        match *self {}
    }
    fn kept(&self) -> Result<CpuSet, Problem> {
        match *self {}
    }
    fn release(&mut self) -> Vec<String> {
        match *self {}
    }
}
