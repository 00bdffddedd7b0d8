//! Core idling by systemd's slices, against a stand-in for systemd on a bus of the test's own.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use zbus::blocking::{Connection, connection};
use zbus::fdo;
use zbus::zvariant::{OwnedObjectPath, OwnedValue};

/// Masks of units.
type Masks = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// What systemd's manager is asked for.
struct Manager(Masks);

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn get_unit(&self, name: &str) -> fdo::Result<OwnedObjectPath> {
        match self.0.lock().expect("unpoisoned").contains_key(name) {
            true => OwnedObjectPath::try_from(path(name)).map_err(|e| fdo::Error::Failed(e.to_string())),
            false => Err(fdo::Error::Failed(format!("Unit {name} not loaded."))),
        }
    }

    fn set_unit_properties(
        &self,
        name: &str,
        runtime: bool,
        properties: Vec<(String, OwnedValue)>,
    ) -> fdo::Result<()> {
        let failed = |what: &str| fdo::Error::Failed(what.to_owned());
        if !runtime {
            return Err(failed("it would be kept for ever"));
        }
        let properties: HashMap<String, OwnedValue> = properties.into_iter().collect();
        let mask = properties.get("AllowedCPUs").ok_or_else(|| failed("no AllowedCPUs"))?;
        let mask: Vec<u8> =
            mask.try_clone().ok().and_then(|m| m.try_into().ok()).ok_or_else(|| failed("no bytes"))?;
        match self.0.lock().expect("unpoisoned").get_mut(name) {
            Some(unit) => *unit = mask,
            None => return Err(failed("Unit not loaded.")),
        }
        Ok(())
    }
}

/// A unit, by its name.
struct Slice(String, Masks);

#[zbus::interface(name = "org.freedesktop.systemd1.Slice")]
impl Slice {
    #[zbus(property, name = "AllowedCPUs")]
    fn allowed_cpus(&self) -> Vec<u8> {
        self.1.lock().expect("unpoisoned").get(&self.0).cloned().unwrap_or_default()
    }
}

fn path(unit: &str) -> String {
    format!("/org/freedesktop/systemd1/unit/{}", unit.replace('.', "_2e"))
}

/// A bus with the stand-in on it.
struct Bus {
    daemon: Child,
    address: String,
    masks: Masks,
    journal: tempfile::TempDir,
    _systemd: Connection,
}

impl Bus {
    fn new(units: &[(&str, &[u8])]) -> Bus {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon; 'make tools' installs it");
        let mut address = String::new();
        let mut out = BufReader::new(daemon.stdout.take().expect("piped"));
        out.read_line(&mut address).expect("an address");
        let address = address.trim().to_owned();
        let masks: Masks =
            Arc::new(Mutex::new(units.iter().map(|(u, m)| ((*u).to_owned(), m.to_vec())).collect()));
        let mut builder = connection::Builder::address(address.as_str()).expect("an address");
        builder = builder.serve_at("/org/freedesktop/systemd1", Manager(masks.clone())).expect("served");
        for (unit, _) in units {
            builder = builder.serve_at(path(unit), Slice((*unit).to_owned(), masks.clone())).expect("served");
        }
        let systemd = builder.name("org.freedesktop.systemd1").expect("free").build().expect("on the bus");
        Bus { daemon, address, masks, journal: tempfile::tempdir().expect("a folder"), _systemd: systemd }
    }

    fn coreidle(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command.env("DBUS_SYSTEM_BUS_ADDRESS", &self.address);
        command.args(["coreidle", "--journal"]).arg(self.journal.path()).args(args).output().expect("runs")
    }

    fn masks(&self) -> Vec<(String, Vec<u8>)> {
        self.masks.lock().expect("unpoisoned").clone().into_iter().collect()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        _ = self.daemon.kill();
        _ = self.daemon.wait();
    }
}

#[test]
fn units_are_confined_and_get_their_own_masks_back() {
    // One unit has a mask of its own; machine.slice and init.scope are missing.
    let bus = Bus::new(&[("system.slice", &[]), ("user.slice", &[0b11])]);
    let before = bus.masks();
    let out = bus.coreidle(&["set", "0", "--mechanism", "slices"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(bus.masks().iter().all(|(_, mask)| *mask == [1]), "{:?}", bus.masks());
    let status = String::from_utf8(bus.coreidle(&["status"]).stdout).expect("text");
    assert!(status.contains("kept: CPU 0 ") && status.contains("by systemd's slices"), "{status}");
    // Another process puts back what this one noted.
    let out = bus.coreidle(&["off"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(bus.masks(), before);
}

#[test]
fn a_bus_without_systemd_is_no_way() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    command.env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/no/such/bus");
    let journal = tempfile::tempdir().expect("a folder");
    command.args(["coreidle", "set", "0", "--mechanism", "slices", "--journal"]).arg(journal.path());
    let out = command.output().expect("runs");
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(3), "{why}");
    assert!(why.contains("no system bus") && why.lines().count() == 1, "{why}");
}
