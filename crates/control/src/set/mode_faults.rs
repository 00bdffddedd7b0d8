//! A mode of the driver, a governor and a limit in one transaction, with every operation refused in turn, and with the
//! process killed before and after every operation: `restore` brings back what was there before.

use crate::private::fault::{FaultPlan, Mode, arm, disarm};
use crate::set::faults::{Failing, folder, restore};
use crate::set::plan::{Inventory, Setting, plan};
use std::collections::BTreeMap;
use wattwise_figure::units::Speed;
use wattwise_hw::root::Root;

const CPU: &str = "sys/devices/system/cpu";

/// A machine in active mode, its owner's choices, and at which operations it fails: every one would take too long on the
/// server.
const MACHINES: [(&str, &str, usize); 3] = [
    ("hybrid-laptop", "intel_pstate/no_turbo=1 cpufreq/policy1/scaling_governor=performance", 1),
    ("skylake-server-active", "cpufreq/policy0/scaling_min_freq=1500000", 97),
    ("amd-laptop", "cpufreq/boost=0 cpufreq/policy1/energy_performance_preference=power", 1),
];

fn machine(name: &str, choices: &str) -> Failing {
    let machine = wattwise_emulator::named(name).expect(name);
    for (file, value) in choices.split(' ').filter_map(|c| c.split_once('=')) {
        machine.write(&format!("{CPU}/{file}"), value.as_bytes()).expect("taken");
    }
    Failing { machine, boot: "this one" }
}

fn settings() -> [Setting; 3] {
    [
        Setting::DriverMode("passive".into()),
        Setting::Governor("ondemand".into()),
        Setting::Limits(None, Some(Speed::Percent(60.0))),
    ]
}

fn differing(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let all = before.keys().chain(after.keys());
    all.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// A fault point; false: there are no more.
fn check((name, choices, _): (&str, &str, usize), fault: FaultPlan) -> bool {
    let case = format!("{name} {fault:?}");
    let (root, folder) = (machine(name, choices), folder());
    let before = root.machine.snapshot();
    let inventory = Inventory::read(&root);
    let planned = plan(&root, &inventory, &inventory.topology.online, &settings()).expect("planned");
    arm(fault);
    let made = planned.apply(&root, folder.path(), "set", &|| None);
    match made {
        Ok(made) => made.expect("something changes").keep(),
        Err(_) if fault.mode == Mode::Refused => {
            assert_eq!(differing(&before, &root.machine.snapshot()), [""; 0], "{case}: not undone at once");
        }
        Err(_) => {}
    }
    let points = disarm();
    assert_eq!(restore(&root, folder.path()), [], "{case}");
    assert_eq!(differing(&before, &root.machine.snapshot()), [""; 0], "{case}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0, "{case}: a journal is left");
    points >= fault.nth
}

fn sweep(step: impl Fn(usize) -> usize) -> usize {
    let mut done = 0;
    for machine in MACHINES {
        for mode in [Mode::Refused, Mode::DiesBefore, Mode::DiesAfter] {
            let points = (1..)
                .step_by(step(machine.2))
                .take_while(|nth| check(machine, FaultPlan { nth: *nth, mode }));
            done += points.count();
        }
    }
    done
}

#[test]
fn a_mode_with_its_governor_survives_faults() {
    let points = sweep(|step| step * 67);
    assert!(points > 50, "only {points} points");
}

/// One read that is refused as the values are noted at the end: what the mode moved must not look like somebody else's.
#[test]
fn a_value_that_cannot_be_read_at_the_end_is_put_back() {
    for nth in (3300..3460).step_by(2) {
        check(MACHINES[0], FaultPlan { nth, mode: Mode::Refused });
    }
}

#[test]
#[ignore = "long: WATTWISE_ALL_POINTS=1 tries every point, else every 11th"]
fn a_mode_with_its_governor_survives_a_fault_at_every_point() {
    let every = if std::env::var_os("WATTWISE_ALL_POINTS").is_some() { 1 } else { 11 };
    println!("{} points of failure", sweep(|step| step * every));
}
