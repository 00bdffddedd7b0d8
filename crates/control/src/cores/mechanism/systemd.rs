//! systemd: `AllowedCPUs` of the units that hold everything, by D-Bus.
//!
//! Where systemd runs it owns the tree of cgroups: a value written beside it is overwritten when it next applies a
//! unit's settings. So it is asked: `SetUnitProperties` for the next to highest units, at run time alone, so that a
//! reboot forgets it. systemd writes each unit's `cpuset.cpus`; what a task's own affinity becomes is the kernel's rule
//! for a cpuset (since Linux 6.2 it returns afterwards).

use crate::cores::mechanism::way::{Mechanism, MechanismKind, Moved, Notes};
use crate::problem::Problem;
use std::collections::BTreeMap;
use wattwise_hw::cpus::set::CpuSet;
use zbus::blocking::Connection;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PATH: &str = "/org/freedesktop/systemd1";
const PROPERTY: &str = "AllowedCPUs";

/// What holds every process that is not the kernel's, each with its kind. Some machines have no `machine.slice`.
const UNITS: [(&str, &str); 4] = [
    ("system.slice", "org.freedesktop.systemd1.Slice"),
    ("user.slice", "org.freedesktop.systemd1.Slice"),
    ("machine.slice", "org.freedesktop.systemd1.Slice"),
    ("init.scope", "org.freedesktop.systemd1.Scope"),
];

pub(super) struct Slices {
    bus: Connection,
    online: CpuSet,
    /// Each unit's mask before.
    before: BTreeMap<String, Vec<u8>>,
}

/// The system bus with systemd on it.
///
/// # Errors
/// Why there is none.
fn bus() -> Result<Connection, String> {
    // One for the bus, one for its events, one for what blocks: without them the library tries for ever.
    wattwise_threads::can_start(3).map_err(|e| format!("no threads for the system bus: {e}"))?;
    let bus = Connection::system().map_err(|e| format!("no system bus: {e}"))?;
    let ping = bus.call_method(Some(SYSTEMD), PATH, Some("org.freedesktop.DBus.Peer"), "Ping", &());
    ping.map_err(|e| format!("systemd does not answer on the system bus: {e}"))?;
    Ok(bus)
}

/// Why systemd cannot be asked, if it cannot.
pub(super) fn why_not() -> Option<String> {
    bus().err()
}

/// Whether systemd runs here and cannot be asked: never, in a build with D-Bus.
pub(super) fn unasked() -> Option<String> {
    None
}

impl Slices {
    /// Takes it up; `notes` are those of an earlier process, if one began it.
    pub(super) fn open(online: CpuSet, notes: &Notes) -> Result<Slices, Problem> {
        let bus = bus().map_err(Problem::Impossible)?;
        let mut before = notes.allowed_cpus.clone();
        if before.is_empty() {
            before.extend(
                UNITS
                    .iter()
                    .filter_map(|(unit, kind)| Some(((*unit).to_owned(), allowed(&bus, unit, kind)?))),
            );
        }
        if before.is_empty() {
            return Err(Problem::Impossible(format!(
                "systemd has none of {}",
                UNITS.map(|u| u.0).join(", ")
            )));
        }
        Ok(Slices { bus, online, before })
    }

    fn set(&self, unit: &str, cpus: &[u8]) -> Result<(), Problem> {
        let properties = vec![(PROPERTY, Value::from(cpus.to_vec()))];
        // At run time: not kept for the next start.
        self.bus
            .call_method(Some(SYSTEMD), PATH, Some(MANAGER), "SetUnitProperties", &(unit, true, properties))
            .map(|_| ())
            .map_err(|e| Problem::Failed(format!("systemd: {unit} {PROPERTY}: {e}")))
    }
}

/// A unit's mask; none where there is no such unit.
fn allowed(bus: &Connection, unit: &str, kind: &str) -> Option<Vec<u8>> {
    let reply = bus.call_method(Some(SYSTEMD), PATH, Some(MANAGER), "GetUnit", &(unit,)).ok()?;
    let path: OwnedObjectPath = reply.body().deserialize().ok()?;
    let properties = "org.freedesktop.DBus.Properties";
    let reply = bus.call_method(Some(SYSTEMD), &path, Some(properties), "Get", &(kind, PROPERTY)).ok()?;
    let value: OwnedValue = reply.body().deserialize().ok()?;
    value.try_into().ok()
}

/// CPUs as systemd's bytes: CPU n is bit n % 8 of byte n / 8.
fn bytes(cpus: &CpuSet) -> Vec<u8> {
    let mut bytes = vec![0; cpus.iter().last().map_or(0, |last| last as usize / 8 + 1)];
    cpus.iter().for_each(|c| bytes[c as usize / 8] |= 1 << (c % 8));
    bytes
}

fn cpus(bytes: &[u8]) -> CpuSet {
    (0..bytes.len() as u32 * 8).filter(|c| bytes[*c as usize / 8] >> (c % 8) & 1 == 1).collect()
}

impl Mechanism for Slices {
    fn kind(&self) -> MechanismKind {
        MechanismKind::Slices
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        if self.kept()? != *kept {
            let mask = bytes(kept);
            self.before.keys().try_for_each(|unit| self.set(unit, &mask))?;
        }
        Ok(Moved::default())
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        let of = |unit: &String| {
            let kind = UNITS.iter().find(|u| u.0 == unit)?.1;
            allowed(&self.bus, unit, kind)
        };
        // A unit that another manager has changed makes the whole mask another one.
        let mut masks: Vec<CpuSet> = self.before.keys().filter_map(of).map(|m| cpus(&m)).collect();
        masks.dedup();
        match &masks[..] {
            [one] if !one.is_empty() => Ok(one.clone()),
            _ => Ok(self.online.clone()),
        }
    }

    fn release(&mut self) -> Vec<String> {
        // An empty mask is none.
        let failed = self.before.iter().filter_map(|(unit, mask)| self.set(unit, mask).err());
        failed.map(|e| e.to_string()).collect()
    }

    fn notes(&self) -> Notes {
        Notes { allowed_cpus: self.before.clone(), ..Notes::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_as_systemd_has_them() {
        let set = |t: &str| CpuSet::parse(t).expect("a list");
        assert_eq!(bytes(&set("0-1,9")), [0b11, 0b10]);
        assert_eq!(cpus(&[0b11, 0b10]), set("0-1,9"));
        assert_eq!(bytes(&CpuSet::new()), [0_u8; 0]);
    }
}
