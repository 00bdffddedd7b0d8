//! Desktops' side on a bus of the test's own: Debian's client of power-profiles-daemon unchanged, `busctl` for the new name.
//! Tests are named after the complaints that they answer.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

#[path = "support/tree.rs"]
mod tree;

const NEW: [&str; 3] = [
    "org.freedesktop.UPower.PowerProfiles",
    "/org/freedesktop/UPower/PowerProfiles",
    "org.freedesktop.UPower.PowerProfiles",
];
const OLD: [&str; 3] = ["net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "net.hadess.PowerProfiles"];

/// A bus, a machine of files, a daemon.
struct Desktop {
    bus: Child,
    address: String,
    daemon: Child,
    folder: tempfile::TempDir,
}

impl Desktop {
    fn begin(args: &[&str]) -> Desktop {
        Desktop::on("amd-laptop", &[], args)
    }

    /// On a machine with more files in `/sys/class/power_supply`: supply, file, content.
    fn on(machine: &str, supplies: &[[&str; 3]], args: &[&str]) -> Desktop {
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon; 'make tools' installs it");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().expect("piped")).read_line(&mut address).expect("an address");
        let address = address.trim().to_owned();
        let folder = tempfile::tempdir().expect("a folder");
        tree::write(machine, &folder.path().join("tree"));
        for [supply, file, content] in supplies {
            let supply = folder.path().join("tree/sys/class/power_supply").join(supply);
            std::fs::create_dir_all(&supply).expect("made");
            std::fs::write(supply.join(file), content).expect("written");
        }
        let daemon = daemon(folder.path(), &address, args);
        let desktop = Desktop { bus, address, daemon, folder };
        desktop.until("the daemon is on the bus", || desktop.get(NEW, "Version").contains("0.30"));
        desktop.until("under its old name too", || desktop.get(OLD, "Version").contains("0.30"));
        desktop
    }

    fn epp(&self) -> String {
        let file = "tree/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference";
        std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default().trim().to_owned()
    }

    fn until(&self, what: &str, is: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn busctl(&self, args: &[&str]) -> Output {
        let address = format!("--address={}", self.address);
        Command::new("busctl").arg(address).args(args).output().expect("busctl; systemd has it")
    }

    fn get(&self, [name, path, interface]: [&str; 3], property: &str) -> String {
        let out = self.busctl(&["get-property", name, path, interface, property]);
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn client(&self, args: &[&str]) -> Command {
        let mut command = Command::new("powerprofilesctl");
        command.env("DBUS_SYSTEM_BUS_ADDRESS", &self.address).args(args);
        command
    }

    fn ctl(&self, args: &[&str]) -> String {
        let out = self
            .client(args)
            .output()
            .expect("powerprofilesctl; 'make tools' installs power-profiles-daemon");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
        text
    }
}

fn daemon(folder: &Path, address: &str, args: &[&str]) -> Child {
    let at = |name: &str| -> PathBuf { folder.join(name) };
    Command::new(env!("CARGO_BIN_EXE_wattwised"))
        .arg("--root")
        .arg(at("tree"))
        .arg("--journal")
        .arg(at("journal"))
        .arg("--state")
        .arg(at("state"))
        .arg("--socket")
        .arg(at("socket"))
        .args(["--config", "/no/such/file", "--bus", address])
        .args(args)
        .stderr(Stdio::null())
        .spawn()
        .expect("runs")
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in [&mut self.daemon, &mut self.bus] {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Plasma 6.3 says "not supported" without a daemon that answers: three profiles, under both names.
#[test]
fn tlp_832_three_profiles_under_both_names() {
    let desktop = Desktop::begin(&[]);
    for at in [NEW, OLD] {
        let profiles = desktop.get(at, "Profiles");
        for name in ["power-saver", "balanced", "performance"] {
            assert!(profiles.contains(&format!("\"Profile\" s \"{name}\"")), "{profiles}");
        }
        assert_eq!(desktop.get(at, "ActiveProfile"), "s \"balanced\"");
    }
    let list = desktop.ctl(&["list"]);
    assert!(
        list.contains("* balanced:") && list.contains("performance:") && list.contains("power-saver:"),
        "{list}"
    );
}

/// Booted on battery: the battery's wishes never came, and desktops were not told that the profile heeds it.
#[test]
fn omarchy_12734_a_boot_on_battery_has_the_battery_profile() {
    let on_battery = [
        ["AC", "type", "Mains\n"],
        ["AC", "online", "0\n"],
        ["BAT0", "type", "Battery\n"],
        ["BAT0", "present", "1\n"],
        ["BAT0", "status", "Discharging\n"],
        ["BAT0", "capacity", "80\n"],
    ];
    let desktop = Desktop::on("amd-laptop", &on_battery, &[]);
    for at in [NEW, OLD] {
        assert_eq!(desktop.get(at, "ActiveProfile"), "s \"balanced\"");
        assert_eq!(desktop.get(at, "BatteryAware"), "b true");
    }
    assert_eq!(desktop.epp(), "balance_power");
    let mains = on_battery.map(|[supply, file, content]| match (supply, file) {
        ("AC", "online") => [supply, file, "1\n"],
        ("BAT0", "status") => [supply, file, "Charging\n"],
        _ => [supply, file, content],
    });
    assert_eq!(Desktop::on("amd-laptop", &mains, &[]).epp(), "balance_performance");
}

/// PPD's own client sets, and the machine follows; the other name tells it too.
#[test]
fn debians_client_chooses_a_profile() {
    let desktop = Desktop::begin(&[]);
    desktop.ctl(&["set", "power-saver"]);
    assert_eq!(desktop.ctl(&["get"]).trim(), "power-saver");
    assert_eq!(desktop.epp(), "power");
    assert_eq!(desktop.get(NEW, "ActiveProfile"), "s \"power-saver\"");
    let [name, path, interface] = NEW;
    let out = desktop.busctl(&["set-property", name, path, interface, "ActiveProfile", "s", "fast"]);
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("no profile 'fast'"), "{out:?}");
}

/// The interface of 0.30: every property and method with its signature, as its description has them.
#[test]
fn the_interface_is_that_of_0_30() {
    let desktop = Desktop::begin(&[]);
    for [name, path, interface] in [NEW, OLD] {
        let out = desktop.busctl(&["introspect", "--no-legend", name, path, interface]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut rows: Vec<String> = text
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words[..3].join(" ")
            })
            .collect();
        rows.sort();
        let mut expected = vec![
            ".HoldProfile method sss",
            ".ReleaseProfile method u",
            ".SetActionEnabled method sb",
            ".ActiveProfile property s",
            ".PerformanceInhibited property s",
            ".PerformanceDegraded property s",
            ".Profiles property aa{sv}",
            ".Actions property as",
            ".ActionsInfo property aa{sv}",
            ".ActiveProfileHolds property aa{sv}",
            ".Version property s",
            ".BatteryAware property b",
            ".ProfileReleased signal u",
        ];
        expected.sort_unstable();
        assert_eq!(rows, expected);
    }
}

/// A scheduler that follows the profile's signal.
#[test]
fn scx_loader_67_a_change_is_told_by_a_signal() {
    let desktop = Desktop::begin(&[]);
    let address = format!("--address={}", desktop.address);
    let mut monitor = Command::new("busctl")
        .args([&address, "monitor", "--json=short", NEW[0]])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("busctl");
    let mut lines = BufReader::new(monitor.stdout.take().expect("piped")).lines();
    // The monitor has begun when it sees what we ask again and again.
    let (seen, heard) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while let Some(Ok(line)) = lines.next() {
            if seen.send(line).is_err() {
                break;
            }
        }
    });
    let begun = Instant::now();
    let mut profile = ["performance", "power-saver"].into_iter().cycle();
    let told = loop {
        desktop.ctl(&["set", profile.next().expect("endless")]);
        let line = heard.try_iter().find(|l| l.contains("PropertiesChanged") && l.contains("ActiveProfile"));
        match line {
            Some(line) => break line,
            None => assert!(begun.elapsed() < Duration::from_secs(60), "no signal"),
        }
    };
    _ = monitor.kill();
    _ = monitor.wait();
    drop(heard);
    _ = reader.join();
    assert!(told.contains("performance") || told.contains("power-saver"), "{told}");
}

/// A hold of a client that vanished stays for ever elsewhere; a hold does not change what was chosen.
#[test]
fn tlp_894_noctalia_3111_a_hold_ends_with_its_client_and_the_choice_is_back() {
    let desktop = Desktop::begin(&["--profile", "power-saver"]);
    let mut launch =
        desktop.client(&["launch", "--profile", "performance", "--reason", "a game", "--", "sleep", "600"]);
    let mut client = launch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs");
    desktop.until("held", || desktop.get(OLD, "ActiveProfileHolds").contains("a game"));
    // As in power-profiles-daemon a hold on performance goes before what was chosen.
    desktop.until("in force", || desktop.epp() == "performance");
    assert!(desktop.ctl(&["list-holds"]).contains("a game"));
    client.kill().expect("ours");
    _ = client.wait();
    desktop.until("released", || desktop.get(OLD, "ActiveProfileHolds") == "aa{sv} 0");
    desktop.until("back", || desktop.epp() == "power");
    assert_eq!(desktop.get(NEW, "ActiveProfile"), "s \"power-saver\"");
}

/// The profile was not set at the start, and forgotten by the next.
#[test]
fn cachyos_1536_the_chosen_profile_is_in_force_after_the_next_start() {
    let mut desktop = Desktop::begin(&[]);
    desktop.ctl(&["set", "power-saver"]);
    desktop.daemon.kill().expect("ours");
    _ = desktop.daemon.wait();
    desktop.daemon = daemon(desktop.folder.path(), &desktop.address, &[]);
    desktop.until("back on the bus", || desktop.get(OLD, "ActiveProfile") == "s \"power-saver\"");
    assert_eq!(desktop.epp(), "power");
}

/// A client panicked on "unknown": an own profile is one of the three to desktops.
#[test]
fn cosmic_applets_787_never_unknown() {
    for profile in ["auto", "powersaving"] {
        let desktop = Desktop::begin(&["--profile", profile]);
        let told = desktop.get(NEW, "ActiveProfile");
        let three = ["power-saver", "balanced", "performance"].map(|p| format!("s \"{p}\""));
        assert!(three.contains(&told), "{profile}: {told}");
    }
}

/// Holds are refused for what cannot be held, and numbers that nobody has.
#[test]
fn a_hold_has_a_number_that_ends_it() {
    let desktop = Desktop::begin(&[]);
    let [name, path, interface] = NEW;
    let call = |args: &[&str]| desktop.busctl(&[&["call", name, path, interface][..], args].concat());
    assert!(!call(&["HoldProfile", "sss", "balanced", "x", "y"]).status.success());
    assert!(!call(&["ReleaseProfile", "u", "77"]).status.success());
    assert!(!call(&["SetActionEnabled", "sb", "trickle_charge", "true"]).status.success());
    // The call's own client is gone with the call, and its hold with it.
    let out = call(&["HoldProfile", "sss", "performance", "x", "y"]);
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "u 1", "{out:?}");
    desktop.until("released", || desktop.get(NEW, "ActiveProfileHolds") == "aa{sv} 0");
}
