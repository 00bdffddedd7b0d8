//! A mode of the driver and what comes with it, as one transaction on emulated machines: it is put in force in the kernel's
//! order, judged before, and all of it comes back.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use wattwise_control::set::journal;
use wattwise_control::set::original::put_back_all;
use wattwise_control::set::plan::{ChangePlan, Inventory, PlanError, Setting, plan};
use wattwise_control::set::transaction::Transaction;
use wattwise_emulator::{Emulator, Fault, Op, named};
use wattwise_figure::units::Speed;
use wattwise_hw::root;
use wattwise_hw::root::Root;

const CPU: &str = "sys/devices/system/cpu";
const POLICY: &str = "sys/devices/system/cpu/cpufreq/policy0";

type Snapshot = BTreeMap<String, Vec<u8>>;

fn mode(mode: &str) -> Setting {
    Setting::DriverMode(mode.into())
}
fn governor(name: &str) -> Setting {
    Setting::Governor(name.into())
}
fn max(percent: f64) -> Setting {
    Setting::Limits(None, Some(Speed::Percent(percent)))
}

fn planned(m: &dyn Root, settings: &[Setting]) -> Result<ChangePlan, PlanError> {
    let inventory = Inventory::read(m);
    plan(m, &inventory, &inventory.topology.online, settings)
}

fn set<'m>(m: &'m Emulator, journal: &Path, settings: &[Setting]) -> Result<Transaction<'m>, String> {
    let plan = planned(m, settings).map_err(|e| e.to_string())?;
    if let Some((step, refusal)) = plan.refused() {
        return Err(format!("{}: {refusal}", step.change.what));
    }
    let made = plan.apply(m, journal, "test", &|| None).map_err(|e| e.to_string())?;
    Ok(made.expect("something changes"))
}

/// What `restore` does.
fn restore(m: &Emulator, folder: &Path) {
    let listing = journal::list(folder).unwrap();
    assert_eq!((listing.journals.len(), listing.unreadable.len()), (1, 0), "one journal for all of it");
    let all = put_back_all(m, listing.journals.iter().map(|j| j.layer()));
    for (found, restored) in listing.journals.into_iter().zip(&all) {
        assert!(restored.failed.is_empty() && restored.foreign.is_empty(), "{restored}");
        found.finish(restored).unwrap();
    }
}

#[track_caller]
fn same(before: &Snapshot, after: &Snapshot, case: &str) {
    let text = |s: &Snapshot, path: &str| s.get(path).map(|b| String::from_utf8_lossy(b).trim().to_owned());
    for path in before.keys().chain(after.keys()) {
        assert_eq!(text(before, path), text(after, path), "{case}: {path}");
    }
}

fn show(m: &dyn Root, file: &str) -> Option<String> {
    root::text(m, &format!("{POLICY}/{file}"))
}

/// Machines, the mode they are switched to, a governor of it and the driver that it brings.
const CASES: [(&str, &str, &str, &str); 7] = [
    ("hybrid-laptop", "passive", "schedutil", "intel_cpufreq"),
    ("hybrid-laptop", "passive", "performance", "intel_cpufreq"),
    ("skylake-server-active", "passive", "ondemand", "intel_cpufreq"),
    ("skylake-server-passive", "active", "performance", "intel_pstate"),
    ("amd-laptop", "passive", "schedutil", "amd-pstate"),
    ("amd-laptop", "guided", "conservative", "amd-pstate"),
    ("amd-laptop", "passive", "powersave", "amd-pstate"),
];

/// What its owner had chosen before: nothing of it is the driver's default.
fn with_choices(name: &str) -> Emulator {
    let m = named(name).unwrap();
    let inventory = Inventory::read(&m);
    for policy in inventory.cpufreq.policies() {
        let write = |file: &str, value: &str| {
            _ = m.write(&format!("{}/{file}", policy.path), value.as_bytes());
        };
        let (low, high) = policy.hardware_khz.unwrap();
        write("energy_performance_preference", "balance_power");
        write("scaling_max_freq", &(high - 400_000).to_string());
        write("scaling_min_freq", &(low + 200_000).to_string());
        if policy.path.ends_with('1') {
            write("scaling_governor", "performance");
        }
        write("ondemand/up_threshold", "77");
    }
    for (file, value) in [
        ("intel_pstate/no_turbo", "1"),
        ("intel_pstate/max_perf_pct", "80"),
        ("intel_pstate/min_perf_pct", "30"),
        ("intel_pstate/hwp_dynamic_boost", "1"),
        ("cpufreq/boost", "0"),
        ("cpufreq/ondemand/up_threshold", "77"),
    ] {
        _ = m.write(&format!("{CPU}/{file}"), value.as_bytes());
    }
    m
}

#[test]
fn a_mode_a_governor_and_a_limit_are_one_transaction() {
    for (name, to, with, driver) in CASES {
        for m in [named(name).unwrap(), with_choices(name)] {
            let case = format!("{name} {to} {with}");
            let folder = tempfile::tempdir().unwrap();
            let before = m.snapshot();
            // In any order.
            let made = set(&m, folder.path(), &[max(60.0), governor(with), mode(to)])
                .unwrap_or_else(|e| panic!("{case}: {e}"));
            for outcome in made.outcomes() {
                assert_eq!(outcome.got, outcome.asked, "{case}: {outcome:?}");
            }
            made.keep();
            assert_eq!(show(&m, "scaling_driver").as_deref(), Some(driver), "{case}");
            for policy in Inventory::read(&m).cpufreq.policies() {
                assert_eq!(policy.governor.as_deref(), Some(with), "{case}");
                let (_, fastest) = policy.hardware_khz.unwrap();
                let (_, limit) = policy.limits_khz.unwrap();
                assert!(limit * 10 < fastest * 7, "{case}: {limit} of {fastest}");
            }
            restore(&m, folder.path());
            same(&before, &m.snapshot(), &case);
            // And by the one who holds it.
            let mut held = set(&m, folder.path(), &[mode(to), governor(with), max(60.0)]).unwrap();
            assert!(held.undo().failed.is_empty());
            same(&before, &m.snapshot(), &case);
        }
    }
}

#[test]
fn a_failing_write_undoes_the_mode_too() {
    for (name, to, with, _) in CASES.into_iter().filter(|c| !c.0.starts_with("skylake")) {
        let writes = {
            let folder = tempfile::tempdir().unwrap();
            let m = with_choices(name);
            let already = m.writes().len();
            set(&m, folder.path(), &[mode(to), governor(with), max(60.0)]).unwrap().keep();
            (m.writes().len() - already) as u64
        };
        assert!(writes > 10, "{writes}");
        for nth in (1..=4).chain([writes / 2, writes - 1, writes]) {
            let folder = tempfile::tempdir().unwrap();
            let m = with_choices(name);
            let before = m.snapshot();
            let errno = rustix::io::Errno::IO;
            m.inject(Fault::Errno { pattern: "sys/*".into(), op: Op::Write, nth, errno });
            let error = set(&m, folder.path(), &[mode(to), governor(with), max(60.0)]).err().unwrap();
            assert!(!error.contains("NOT put back"), "{error}");
            same(&before, &m.snapshot(), &format!("{name} {to}: write {nth}"));
            assert!(journal::list(folder.path()).unwrap().journals.is_empty(), "nothing is left to restore");
        }
    }
}

/// SIGTERM between any two writes.
#[test]
fn a_signal_undoes_the_mode_too() {
    for after in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let m = with_choices("amd-laptop");
        let before = m.snapshot();
        let plan = planned(&m, &[mode("passive"), governor("ondemand")]).unwrap();
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            (asked.get() > after).then(|| "signal 15".to_owned())
        };
        let error = plan.apply(&m, folder.path(), "test", &stop).err().unwrap();
        assert!(error.to_string().contains("signal 15"), "{error}");
        same(&before, &m.snapshot(), &format!("after {after}"));
    }
}

#[test]
fn a_governor_that_the_mode_does_not_have_fails_and_all_comes_back() {
    for name in ["hybrid-laptop", "amd-laptop"] {
        let folder = tempfile::tempdir().unwrap();
        let m = with_choices(name);
        let before = m.snapshot();
        // The list of this mode is not there before, so the plan does not pretend to know.
        let plan = planned(&m, &[mode("passive"), governor("interactive")]).unwrap();
        assert!(plan.refused().is_none() && plan.steps[1].judged_later, "{name}: {:?}", plan.steps[1]);
        assert_eq!(m.snapshot(), before, "planning writes nothing");
        let error = set(&m, folder.path(), &[mode("passive"), governor("interactive")]).err().unwrap();
        assert!(error.contains("'interactive'") && error.contains("schedutil"), "{name}: {error}");
        assert!(error.contains("put back"), "{error}");
        same(&before, &m.snapshot(), name);
        assert!(journal::list(folder.path()).unwrap().journals.is_empty());
    }
}

/// What is foreseen is what the kernel then does.
#[test]
fn later_settings_are_judged_by_the_rules_of_the_mode_to_come() {
    for (name, to, with, _) in CASES {
        let m = named(name).unwrap();
        let settings = [mode(to), governor(with), max(60.0)];
        let plan = planned(&m, &settings).unwrap();
        let foreseen: Vec<(String, String)> =
            plan.steps.iter().map(|s| (s.change.target.to_string(), s.verdict.clone().unwrap())).collect();
        let judged_later = plan.steps.iter().filter(|s| s.judged_later).count();
        assert_eq!(judged_later > 0, to != "active", "{name}: active mode's two governors are known");
        let folder = tempfile::tempdir().unwrap();
        let made = plan.apply(&m, folder.path(), "test", &|| None).unwrap().unwrap();
        let done: Vec<(String, String)> =
            made.outcomes().iter().map(|o| (o.target.clone(), o.got.clone())).collect();
        // A governor that cpufreq starts with is no write, and is told all the same.
        let missing: Vec<_> = foreseen.iter().filter(|f| !done.contains(f)).collect();
        assert!(missing.is_empty() && done.len() == foreseen.len(), "{name}: {missing:?}");
    }
}

#[test]
fn what_the_mode_to_come_does_not_have_is_refused_before_the_first_write() {
    let refused = |name: &str, settings: &[Setting], words: &str| {
        let m = named(name).unwrap();
        let before = m.writes().len();
        let folder = tempfile::tempdir().unwrap();
        let error = set(&m, folder.path(), settings).err().unwrap();
        assert!(error.contains(words), "{name}: {error}");
        assert_eq!(m.writes().len(), before, "{name}: nothing was written");
    };
    let epp = |word: &str| Setting::Epp(word.into());
    refused("amd-laptop", &[mode("passive"), epp("power")], "driver amd-pstate keeps none");
    refused(
        "amd-laptop",
        &[mode("disable"), governor("schedutil")],
        "--driver-mode disable leaves it without a driver",
    );
    refused("hybrid-laptop", &[mode("off"), governor("schedutil")], "would be left without a driver");
    refused("hybrid-laptop", &[mode("passiv"), governor("schedutil")], "did you mean 'passive'");
    refused("skylake-server-passive", &[mode("active"), governor("schedutil")], "did you mean");
    refused(
        "skylake-server-passive",
        &[mode("active"), Setting::Freq(Speed::Min)],
        "lets the hardware choose",
    );
    let performance = [mode("active"), governor("performance"), epp("power")];
    refused("skylake-server-passive", &performance, "fixed at performance");
    refused("bc10", &[mode("passive"), governor("ondemand")], "neither");
}

#[test]
fn a_cpu_that_is_offline_is_told_of() {
    let m = named("hybrid-laptop").unwrap();
    m.plug(3, false);
    let notes = planned(&m, &[mode("passive"), governor("schedutil")]).unwrap().notes;
    assert!(notes.iter().any(|n| n.contains("every CPU of policy3 is offline")), "{notes:?}");
    let inventory = Inventory::read(&m);
    let cpus = [3].into_iter().collect();
    let settings = [mode("passive"), governor("schedutil"), Setting::Online(true)];
    let error = plan(&m, &inventory, &cpus, &settings).unwrap_err();
    assert!(error.to_string().contains("bring the CPUs online first"), "{error}");
}

/// Tunables and preferences that are there only in the new mode; a held speed; another driver that is asleep.
#[test]
fn what_appears_with_the_mode_is_set_and_goes_with_it() {
    let tunable = |name: &str, value: &str| Setting::Tunable(name.into(), value.into());
    let cases: [(&str, Vec<Setting>, &str, &str); 4] = [
        (
            "hybrid-laptop",
            vec![mode("passive"), governor("ondemand"), tunable("up_threshold", "77")],
            "cpufreq/ondemand/up_threshold",
            "77",
        ),
        (
            "hybrid-laptop",
            vec![mode("passive"), Setting::Freq(Speed::Khz(1_500_000))],
            "cpufreq/policy0/scaling_setspeed",
            "1500000",
        ),
        ("amd-laptop", vec![mode("guided"), Setting::Boost(false), max(50.0)], "cpufreq/boost", "0"),
        (
            "hybrid-laptop",
            vec![mode("passive"), Setting::Epp("power".into()), Setting::CState("1".into(), false)],
            "cpufreq/policy0/energy_performance_preference",
            "power",
        ),
    ];
    for (name, settings, file, value) in cases {
        let folder = tempfile::tempdir().unwrap();
        let m = with_choices(name);
        let before = m.snapshot();
        set(&m, folder.path(), &settings).unwrap_or_else(|e| panic!("{name} {settings:?}: {e}")).keep();
        assert_eq!(root::text(&m, &format!("{CPU}/{file}")).as_deref(), Some(value), "{name} {file}");
        restore(&m, folder.path());
        same(&before, &m.snapshot(), &format!("{name} {settings:?}"));
    }
    // From passive to active a preference appears; from off all of it does.
    for from in ["passive", "disable"] {
        let m = named("amd-laptop").unwrap();
        m.write(&format!("{CPU}/amd_pstate/status"), from.as_bytes()).unwrap();
        let before = m.snapshot();
        let folder = tempfile::tempdir().unwrap();
        let settings = [mode("active"), Setting::Epp("power".into()), max(50.0)];
        let plan = planned(&m, &settings).unwrap();
        assert_eq!(from == "disable", plan.notes.iter().any(|n| n.contains("--epp is judged when")));
        set(&m, folder.path(), &settings).unwrap().keep();
        assert_eq!(show(&m, "energy_performance_preference").as_deref(), Some("power"));
        restore(&m, folder.path());
        same(&before, &m.snapshot(), from);
    }
}

/// The mode alone resets what its owner had chosen, and `restore` brings that back as well.
#[test]
fn a_mode_alone_comes_back_with_all_that_it_reset() {
    for (name, to) in [
        ("hybrid-laptop", "passive"),
        ("skylake-server-passive", "active"),
        ("amd-laptop", "passive"),
        ("amd-laptop", "guided"),
        ("amd-laptop", "disable"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let m = with_choices(name);
        let before = m.snapshot();
        set(&m, folder.path(), &[mode(to)]).unwrap().keep();
        assert_ne!(m.snapshot(), before, "{name} {to}");
        restore(&m, folder.path());
        same(&before, &m.snapshot(), &format!("{name} {to}"));
    }
}

/// Settings before a mode, kept, are under it: they come back one after the other.
#[test]
fn a_mode_over_older_settings_comes_back_to_them() {
    let (older, newer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let m = with_choices("hybrid-laptop");
    let before = m.snapshot();
    set(&m, older.path(), &[max(40.0), governor("performance")]).unwrap().keep();
    let between = m.snapshot();
    set(&m, newer.path(), &[mode("passive"), governor("schedutil")]).unwrap().keep();
    restore(&m, newer.path());
    same(&between, &m.snapshot(), "newer");
    restore(&m, older.path());
    same(&before, &m.snapshot(), "older");
}
