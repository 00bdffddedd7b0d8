//! Whatever a stranger on the bus sends, the daemon answers and lives on. `WATTWISE_DBUS_INPUTS` calls, 2000 unless said otherwise.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wattwise_figure::Random;
use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;
use zbus::message::Message;
use zbus::zvariant::{ObjectPath, Value};

#[path = "support/tree.rs"]
mod tree;

const PLACES: [(&str, &str); 2] = [
    ("org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles"),
    ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
];
const PROPERTIES: [&str; 10] = [
    "ActiveProfile",
    "PerformanceInhibited",
    "PerformanceDegraded",
    "Profiles",
    "Actions",
    "ActionsInfo",
    "ActiveProfileHolds",
    "Version",
    "BatteryAware",
    "Nothing",
];

/// What ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A text: one that means something, or none that anybody expects.
fn text(random: &mut Random) -> String {
    const KNOWN: [&str; 10] = [
        "performance",
        "balanced",
        "power-saver",
        "auto",
        "unknown",
        "",
        "../../etc/passwd",
        "a\nb\u{1b}[2J",
        "%s%n",
        "\u{202e}x",
    ];
    match random.bits() % 12 {
        at @ 0..10 => KNOWN[at as usize].to_owned(),
        10 => "x".repeat((random.bits() % 5000) as usize),
        _ => (0..random.bits() % 40)
            .filter_map(|_| char::from_u32((random.bits() % 0x2000) as u32))
            .filter(|c| *c != '\0')
            .collect(),
    }
}

fn value(random: &mut Random) -> Value<'static> {
    match random.bits() % 7 {
        0 => Value::from(text(random)),
        1 => Value::from(random.bits()),
        2 => Value::from(random.bits().is_multiple_of(2)),
        3 => Value::from(random.unit()),
        4 => Value::from(vec![text(random), text(random)]),
        5 => Value::from((text(random), random.bits() as i32)),
        _ => Value::Value(Box::new(Value::from(text(random)))),
    }
}

fn message(random: &mut Random) -> Message {
    let (interface, path) = PLACES[(random.bits() % 2) as usize];
    let strange = random.bits() % 20;
    let path = if strange == 0 { "/somewhere/else" } else { path };
    let call = |interface: &str, member: &str| {
        let to =
            Message::method_call(ObjectPath::try_from(path).expect("a path").to_owned(), member.to_owned())
                .expect("a member");
        let to = to.destination(PLACES[0].0.to_owned()).expect("a name");
        to.interface(interface.to_owned()).expect("an interface")
    };
    let other = if strange == 1 { "org.example.Nothing" } else { interface };
    let built = match random.bits() % 12 {
        0 | 1 => call(other, "HoldProfile").build(&(text(random), text(random), text(random))),
        2 => call(other, "ReleaseProfile").build(&(random.bits() as u32 % 40)),
        3 => call(other, "SetActionEnabled").build(&(text(random), true)),
        4 => call(other, "HoldProfile").build(&value(random)),
        5 => call(other, "ReleaseProfile").build(&text(random)),
        6..=8 => {
            let property = PROPERTIES[random.bits() as usize % PROPERTIES.len()];
            call("org.freedesktop.DBus.Properties", "Set").build(&(other, property, value(random)))
        }
        9 => call("org.freedesktop.DBus.Properties", "GetAll").build(&text(random)),
        10 => call("org.freedesktop.DBus.Introspectable", "Introspect").build(&()),
        _ => call(other, "Dance").build(&(value(random), random.bits())),
    };
    built.expect("a message")
}

fn send(address: &str, seed: u64, calls: u64) {
    let mut random = Random::new(seed);
    let connect = || Builder::address(address).expect("an address").build().expect("a bus");
    let mut connection: Connection = connect();
    for n in 0..calls {
        // Now and then one leaves with whatever it holds.
        if n % 500 == 499 {
            connection = connect();
        }
        let message = message(&mut random);
        // From before it is sent on: an answer that comes at once would be missed.
        let mut answers = zbus::blocking::MessageIterator::from(&connection);
        connection.send(&message).expect("sent");
        let answered = answers.find_map(|m| {
            let m = m.ok()?;
            (m.header().reply_serial() == Some(message.primary_header().serial_num())).then_some(())
        });
        assert!(answered.is_some(), "seed {seed}, call {n}: no answer");
    }
}

#[test]
fn whatever_strangers_send_on_the_bus_it_answers_and_lives_on() {
    let calls: u64 = std::env::var("WATTWISE_DBUS_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let folder = tempfile::tempdir().expect("a folder");
    let bus = format!("unix:path={}", folder.path().join("bus").display());
    let _bus = Ends(
        Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--address", &bus])
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon; 'make tools' installs it"),
    );
    tree::write("amd-laptop", &folder.path().join("tree"));
    let at = |name: &str| folder.path().join(name);
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_wattwised"));
    for (flag, name) in
        [("--root", "tree"), ("--journal", "journal"), ("--state", "state"), ("--socket", "socket")]
    {
        daemon.arg(flag).arg(at(name));
    }
    let begun = Instant::now();
    while !folder.path().join("bus").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no bus");
        std::thread::sleep(Duration::from_millis(10));
    }
    daemon.args(["--config", "/no/such", "--bus", &bus]).stderr(Stdio::null());
    let mut daemon = Ends(daemon.spawn().expect("runs"));
    let own: Connection = Builder::address(bus.as_str()).expect("an address").build().expect("a bus");
    let active = || {
        let (name, path) = PLACES[0];
        let properties = "org.freedesktop.DBus.Properties";
        let reply =
            own.call_method(Some(name), path, Some(properties), "Get", &(name, "ActiveProfile")).ok()?;
        let value: zbus::zvariant::OwnedValue = reply.body().deserialize().ok()?;
        String::try_from(value).ok()
    };
    while active().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not on the bus");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let bus = &bus;
            scope.spawn(move || send(bus, seed, calls / 4));
        }
    });
    assert!(daemon.0.try_wait().expect("asked").is_none(), "it has ended");
    let profile = active().expect("it answers");
    assert!(["performance", "balanced", "power-saver"].contains(&profile.as_str()), "{profile}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.0.id())).expect("it lives");
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("told");
    println!("{calls} calls; peak {}", peak.trim());
    let peak: u64 = peak.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("a number");
    assert!(peak < 64 * 1024, "{peak} KiB: the unit allows 64 MiB");
}
