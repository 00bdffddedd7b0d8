//! What a machine gives: by which mechanism it was had, and why those before it were not used.
//!
//! Each thing has mechanisms in order, sysfs before registers: the kernel's own interface keeps its
//! books right, a register is what remains where the kernel offers none. A reader is never told
//! "n/a": either a value and its mechanism, or each mechanism's reason.

use crate::root::Root;
use serde::Serialize;
use std::io;

/// By which way a thing is read or set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// A file of sysfs or procfs.
    Sysfs,
    /// A model-specific register through `/dev/cpu/N/msr`.
    Msr,
    /// The firmware's ACPI tables.
    Acpi,
}

impl std::fmt::Display for Mechanism {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Mechanism::Sysfs => "sysfs",
            Mechanism::Msr => "register",
            Mechanism::Acpi => "ACPI",
        })
    }
}

/// A mechanism that was tried or could not be, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Which.
    pub mechanism: Mechanism,
    /// Why, in a sentence's part.
    pub why: String,
}

/// A thing, or the reasons for its absence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probed<T> {
    /// What was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<T>,
    /// By which mechanism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<Mechanism>,
    /// Those before it in order, or all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

impl<T> Probed<T> {
    /// Had at the first try.
    pub fn yes(value: T, via: Mechanism) -> Probed<T> {
        Probed { value: Some(value), via: Some(via), passed_over: Vec::new() }
    }

    /// Not to be had.
    pub fn no(mechanism: Mechanism, why: impl Into<String>) -> Probed<T> {
        Probed { value: None, via: None, passed_over: vec![PassedOver { mechanism, why: why.into() }] }
    }

    /// The next mechanism in order, where this one had nothing.
    pub fn or_else(self, next: impl FnOnce() -> Probed<T>) -> Probed<T> {
        if self.value.is_some() {
            return self;
        }
        let mut next = next();
        let mut passed_over = self.passed_over;
        passed_over.append(&mut next.passed_over);
        Probed { passed_over, ..next }
    }

    /// Why there is nothing, in one line.
    pub fn why_not(&self) -> String {
        let reasons: Vec<String> =
            self.passed_over.iter().map(|p| format!("{}: {}", p.mechanism, p.why)).collect();
        reasons.join("; ")
    }
}

/// Why a file could not be read or written, with the narrowest remedy.
pub fn why(error: &io::Error, path: &str, root: &dyn Root) -> String {
    if error.raw_os_error().is_none() {
        return error.to_string();
    }
    let reason = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => remedy(path),
        Some(libc::ENOENT) => "is not there".to_owned(),
        Some(libc::EROFS) => {
            "is on a read-only mount; in a container, run on the host or remount it read-write".to_owned()
        }
        Some(libc::EBUSY) => "is held by the kernel or its driver (EBUSY)".to_owned(),
        Some(libc::ENXIO | libc::ENODEV) => "belongs to a CPU or device that is offline or gone".to_owned(),
        Some(libc::EIO) => "was refused by the hardware (EIO)".to_owned(),
        Some(libc::EINVAL) => "does not take that value (EINVAL)".to_owned(),
        _ => error.to_string(),
    };
    let place = if root.is_this_machine() { "/" } else { "" };
    format!("{place}{path} {reason}")
}

/// Whether rights are missing, or the place is one where nobody writes.
pub fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::EROFS))
}

/// The narrowest grant that lets a user at a file.
fn remedy(path: &str) -> String {
    let grant = match path {
        p if p.starts_with("dev/cpu/") => {
            "the group of the device (udev: KERNEL==\"msr*\", GROUP=…) and CAP_SYS_RAWIO"
        }
        p if p.contains("powercap") => "a udev rule that gives your group read on energy_uj",
        p if p.starts_with("sys/") => "root, or a udev rule that gives your group write on this one file",
        _ => "root",
    };
    format!("is not permitted; needs {grant}")
}
