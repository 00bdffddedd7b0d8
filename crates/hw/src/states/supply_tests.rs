//! Each case is made up after the report that is named with it; what is right is UPower's rule or the kernel's ABI.

use super::*;
use crate::root::tree::{Tree, TreeRoot};

/// A machine with some supplies: (folder, `file=value …`, separated by `;`).
fn machine(supplies: &[(&str, &str)]) -> Supply {
    read(&(&of_files(supplies) as &dyn Root))
}

fn of_files(supplies: &[(&str, &str)]) -> TreeRoot {
    let mut tree = Tree::default();
    for (folder, files) in supplies {
        for (file, value) in files.split(';').filter_map(|f| f.trim().split_once('=')) {
            let at = if folder.starts_with("port") { TYPEC } else { AT };
            tree.files.insert(format!("{at}/{folder}/{file}"), format!("{value}\n").into_bytes());
        }
    }
    TreeRoot::new(tree, "test")
}

const DISCHARGING: &str = "type=Battery; status=Discharging; energy_now=30000000; energy_full=58000000";

/// Whether it runs on mains, by its supplies.
fn on_mains(supplies: &[(&str, &str)]) -> bool {
    machine(supplies).source == SupplySource::Mains
}

#[test]
fn a_desktop_runs_on_mains_whatever_its_ports_do() {
    // TLP 768: a port that is offline; a mouse's battery; nothing at all.
    assert!(on_mains(&[("ucsi-source-psy-USBC000:001", "type=USB; scope=System; online=0")]));
    assert!(on_mains(&[("hidpp_battery_0", "type=Battery; scope=Device; status=Discharging; capacity=50")]));
    assert!(on_mains(&[]));
    // An empty bay is no battery (a ThinkPad's second).
    let empty = machine(&[("BAT1", "type=Battery; present=0; status=Unknown")]);
    assert!(empty.source == SupplySource::Mains && empty.mains && empty.batteries.is_empty());
}

#[test]
fn an_adapter_that_is_online_is_mains_beside_a_battery_that_discharges() {
    // UPower's OnBattery: a battery discharges, and no adapter is online. A phone at a weak charger; a gauge that is late.
    let phone = machine(&[
        ("usb", "type=USB_PD; online=1"),
        ("dc", "type=Wireless; online=0"),
        ("battery", "type=Battery; status=Discharging; capacity=63"),
    ]);
    assert_eq!(phone.source, SupplySource::Mains);
    assert!(phone.why.starts_with("usb is online, although battery discharges"), "{}", phone.why);
    assert!(on_mains(&[("AC", "type=Mains; online=1"), ("BAT0", DISCHARGING)]));
    assert!(!on_mains(&[("usb", "type=USB; online=0"), ("BAT0", DISCHARGING)]));
    // The second battery of two.
    assert!(!on_mains(&[("BAT0", "type=Battery; status=Unknown"), ("BAT1", DISCHARGING)]));
}

/// Here UPower is wrong, as its users report.
#[test]
fn a_port_that_stays_online_does_not_outweigh_mains_that_are_off() {
    // TLP 283: a MacBook's sbs-charger. AsahiLinux 626: a port of which the charger was pulled.
    for (mains, port) in [
        ("ADP1", ("sbs-charger", "type=Mains; online=1")),
        ("macsmc-ac", ("tps6598x-source-psy-0-0038", "type=USB; online=1")),
    ] {
        let mac = machine(&[(mains, "type=Mains; online=0"), ("BAT0", DISCHARGING), port]);
        assert_eq!(mac.source, SupplySource::Battery);
        assert_eq!(
            mac.why,
            format!("BAT0 discharges and {mains} is offline, although {} says that it is online", port.0)
        );
        // Nothing discharges: it is the port that feeds.
        let full = ("BAT0", "type=Battery; status=Full");
        assert!(on_mains(&[(mains, "type=Mains; online=0"), full, port]));
    }
}

#[test]
fn a_battery_that_does_not_charge_is_not_one_that_feeds() {
    // power-profile-switcher 4: held at its threshold on mains.
    for status in ["Not charging", "Full", "Charging"] {
        let battery = format!("type=Battery; status={status}; capacity=80");
        assert!(on_mains(&[("AC", "type=Mains; online=1"), ("BAT0", &battery)]), "{status}");
        // laptop-mode-tools 191: no adapter is listed; UPower's OnBattery is false.
        assert!(on_mains(&[("BAT0", &battery)]), "{status}");
    }
    // A gauge that says nothing: the adapters decide, as in UPower.
    for (online, mains) in [("1", true), ("0", false)] {
        let ac = format!("type=Mains; online={online}");
        assert_eq!(on_mains(&[("AC", &ac), ("BAT0", "type=Battery; status=Unknown; capacity=50")]), mains);
    }
    assert!(!on_mains(&[("BAT0", "type=Battery; capacity=50")]));
}

#[test]
fn every_kind_of_charger_is_mains() {
    for kind in
        ["Mains", "USB", "USB_DCP", "USB_CDP", "USB_C", "USB_PD", "USB_PD_DRP", "USB_HVDCP", "Wireless"]
    {
        let charger = format!("type={kind}; online=1");
        let found = machine(&[("usb", &charger), ("battery", "type=Battery; status=Charging; capacity=63")]);
        assert!(found.mains && found.source == SupplySource::Mains, "{kind}");
    }
    // 2 is a programmable supply (PPS).
    assert!(machine(&[("usb", "type=USB; online=2"), ("b", "type=Battery; status=Full")]).mains);
    for part in ["BMS", "Main", "Parallel", "Unknown"] {
        let part = format!("type={part}; online=1");
        assert!(!machine(&[("part", &part), ("b", "type=Battery; status=Full")]).mains, "{part}");
    }
}

#[test]
fn a_port_that_feeds_a_phone_is_no_source() {
    // omarchy 5966, by each of the signs that kernels show.
    let port = |more: &str| format!("type=USB; online=1; usb_type=[C] PD PD_PPS; {more}");
    let (name, full) = ("ucsi-source-psy-USBC000:002", ("BAT0", "type=Battery; status=Full"));
    for (sign, typec) in [
        ("status=Discharging", None),
        ("scope=Device", None),
        ("scope=System", Some(("port1", "power_role=[source] sink"))),
        ("scope=System", Some(("port1", "power_role=source"))),
    ] {
        let port = port(sign);
        let other = ("port0", "power_role=source [sink]");
        let mut all = vec![(name, port.as_str()), full, other];
        all.extend(typec);
        let found = machine(&all);
        assert_eq!((found.mains, found.adapters[0].feeds), (false, Feeds::Other), "{sign}");
    }
    // The same port as a sink, and beside another that feeds a phone.
    let port = port("scope=System; status=Charging");
    let sink = machine(&[
        (name, &port),
        full,
        ("port0", "power_role=[source] sink"),
        ("port1", "power_role=source [sink]"),
    ]);
    assert!(sink.mains);
    assert_eq!(sink.adapters[0].usb_type.as_deref(), Some("C"));
}

fn battery(files: &str) -> Battery {
    let files = format!("type=Battery; {files}");
    machine(&[("BAT0", &files)]).batteries.remove(0)
}

#[test]
fn gauges_of_either_sign_show_how_much_flows() {
    // powertop PR 173 (Qualcomm): negative while it discharges; Waybar PR 3942: current alone.
    let watts = |files: &str| battery(files).power_w;
    assert_eq!(watts("status=Discharging; power_now=-7500000; voltage_now=11500000"), Some(7.5));
    assert_eq!(watts("status=Discharging; current_now=-652000; voltage_now=11500000"), Some(7.498));
    assert_eq!(watts("status=Charging; current_now=-1000000; voltage_now=12000000"), Some(12.0));
    // Power stays at 0, the current is told.
    assert_eq!(watts("power_now=0; current_now=1000000; voltage_now=12000000"), Some(12.0));
    assert_eq!(watts("power_now=0; current_now=0; voltage_now=12000000"), Some(0.0));
    // No voltage: no power.
    assert_eq!(watts("current_now=1000000; voltage_now=0"), None);
    let silly = battery("power_now=-2147483648");
    assert_eq!((silly.power_w, silly.implausible), (None, vec!["power_now -2147483648".to_owned()]));
}

#[test]
fn what_a_gauge_does_not_count_is_not_made_up() {
    let percent_only = battery("status=Discharging; capacity=63; current_now=410000; voltage_now=3900000");
    assert_eq!((percent_only.energy_wh, percent_only.capacity_percent), (None, Some(63)));
    // voltage_min_design of 0: the voltage now takes its place.
    let by_charge =
        battery("charge_now=2000000; charge_full=4000000; voltage_min_design=0; voltage_now=10000000");
    assert_eq!(
        (by_charge.energy_wh, by_charge.full_wh, by_charge.capacity_percent),
        (Some(20.0), Some(40.0), Some(50))
    );
    assert_eq!(battery("charge_now=2000000; voltage_min_design=0; voltage_now=0").energy_wh, None);
    for (files, wrong) in [("capacity=255", "capacity 255"), ("energy_now=-1", "energy_now -1")] {
        let b = battery(files);
        assert_eq!((b.energy_wh, b.capacity_percent, b.implausible), (None, None, vec![wrong.to_owned()]));
    }
}
