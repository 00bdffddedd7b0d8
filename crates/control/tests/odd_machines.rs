//! Plans, and what is put back, on machines that people reported: two doors to one package, several dies in one, preferences
//! that come with the governor.
#![allow(clippy::unwrap_used)]

use wattwise_control::set::plan::{ChangePlan, Inventory, PlanError, Setting, plan};
use wattwise_control::set::transaction::{Change, Transaction};
use wattwise_emulator::{Emulator, TreeEntry, named};
use wattwise_figure::units::Speed;
use wattwise_hw::root;
use wattwise_hw::root::Root;

const CPU: &str = "sys/devices/system/cpu";
const POWERCAP: &str = "sys/class/powercap";

fn machine(files: &[(String, &str)]) -> Emulator {
    let one_cpu =
        [(format!("{CPU}/present"), "0"), (format!("{CPU}/online"), "0"), (format!("{CPU}/cpu0/uevent"), "")];
    let all = one_cpu.iter().chain(files);
    Emulator::from_files(
        "test",
        all.map(|(path, text)| TreeEntry::File(path.clone(), format!("{text}\n").into_bytes())),
    )
}

/// A zone with a long-term limit.
fn zone<'a>(folder: &str, name: &'a str, uw: &'a str) -> Vec<(String, &'a str)> {
    let at = |file: &str| format!("{POWERCAP}/{folder}/{file}");
    vec![
        (at("name"), name),
        (at("enabled"), "1"),
        (at("energy_uj"), "1"),
        (at("max_energy_range_uj"), "262143328850"),
        (at("constraint_0_name"), "long_term"),
        (at("constraint_0_power_limit_uw"), uw),
        (at("constraint_0_max_power_uw"), "28000000"),
    ]
}

fn planned(m: &dyn Root, settings: &[Setting]) -> Result<ChangePlan, PlanError> {
    let inventory = Inventory::read(m);
    plan(m, &inventory, &inventory.topology.online, settings)
}

fn rapl(zone: Option<&str>, power_uw: u64) -> Setting {
    Setting::PowerLimit { zone: zone.map(str::to_owned), constraint: None, power_uw }
}

/// What a plan writes: (folder of the zone or policy, value).
fn writes(plan: &ChangePlan) -> Vec<(String, String)> {
    let folder = |path: String| path.rsplit('/').nth(1).unwrap().to_owned();
    plan.steps
        .iter()
        .map(|s| {
            assert!(s.verdict.is_ok(), "{s:?}");
            (folder(s.change.target.path()), s.change.value.clone())
        })
        .collect()
}

fn apply<'m>(m: &'m Emulator, plan: &ChangePlan, journal: &std::path::Path) -> Transaction<'m> {
    let changes: Vec<Change> = plan.steps.iter().map(|s| s.change.clone()).collect();
    Transaction::apply(m, journal, "test", &changes, &plan.beside, &|| None).unwrap()
}

/// The lower of two limits holds: to limit a package is to set that one, and whichever would be lower then.
#[test]
fn of_two_doors_to_a_package_what_rules_is_set_and_both_come_back() {
    let [msr, mmio] =
        ["intel-rapl:0", "intel-rapl-mmio:0"].map(|z| format!("{POWERCAP}/{z}/constraint_0_power_limit_uw"));
    for (asked, written) in [
        (35_000_000, vec![("intel-rapl-mmio:0", "35000000")]),
        (10_000_000, vec![("intel-rapl-mmio:0", "10000000")]),
        (50_000_000, vec![("intel-rapl-mmio:0", "50000000"), ("intel-rapl:0", "50000000")]),
    ] {
        let m = machine(
            &[
                zone("intel-rapl:0", "package-0", "35000000"),
                zone("intel-rapl-mmio:0", "package-0", "13500000"),
            ]
            .concat(),
        );
        let before = m.snapshot();
        let plan = planned(&m, &[rapl(None, asked)]).unwrap();
        let expected: Vec<_> = written.into_iter().map(|(z, uw)| (z.to_owned(), uw.to_owned())).collect();
        assert_eq!(writes(&plan), expected);
        assert!(plan.notes.iter().any(|n| n.contains("13.5 W (mmio) is in force")), "{:?}", plan.notes);
        let journal = tempfile::tempdir().unwrap();
        let mut transaction = apply(&m, &plan, journal.path());
        let now = [&msr, &mmio].map(|file| root::text(&m, file).unwrap().parse::<u64>().unwrap());
        assert_eq!(now.iter().min(), Some(&asked), "{now:?}");
        let restored = transaction.undo();
        assert!(restored.failed.is_empty() && restored.foreign.is_empty(), "{restored:?}");
        assert_eq!(m.snapshot(), before);
    }
    // A door that is off, or was never set, rules nothing.
    for uw in ["0", "13500000"] {
        let mut files =
            [zone("intel-rapl:0", "package-0", "35000000"), zone("intel-rapl-mmio:0", "package-0", uw)]
                .concat();
        if uw != "0" {
            files.push((format!("{POWERCAP}/intel-rapl-mmio:0/enabled"), "0"));
        }
        let plan = planned(&machine(&files), &[rapl(Some("package-0"), 20_000_000)]).unwrap();
        assert_eq!(writes(&plan), [("intel-rapl:0".to_owned(), "20000000".to_owned())], "{uw}");
    }
}

#[test]
fn a_limit_above_the_highest_that_is_named_is_taken_and_noted() {
    let m = machine(&zone("intel-rapl:0", "package-0", "15000000"));
    let plan = planned(&m, &[rapl(None, 35_000_000)]).unwrap();
    assert_eq!(writes(&plan), [("intel-rapl:0".to_owned(), "35000000".to_owned())]);
    assert!(plan.notes.iter().any(|n| n.contains("max_power_uw") && n.contains("28 W")), "{:?}", plan.notes);
    // More than the register's 15 bits would become something else.
    let error = planned(&m, &[rapl(None, 5_000_000_000)]).unwrap_err();
    assert!(matches!(&error, PlanError::Input(m) if m.contains("register")), "{error}");
}

#[test]
fn dies_of_a_package_are_meant_by_its_name() {
    let m = machine(
        &[
            zone("intel-rapl:0", "package-0-die-0", "200000000"),
            zone("intel-rapl:1", "package-0-die-1", "200000000"),
            zone("intel-rapl:2", "package-1-die-0", "200000000"),
            zone("intel-rapl:3", "package-10-die-0", "200000000"),
        ]
        .concat(),
    );
    let zones = |name: Option<&str>| {
        let plan = planned(&m, &[rapl(name, 150_000_000)]).unwrap();
        writes(&plan).into_iter().map(|w| w.0).collect::<Vec<_>>()
    };
    assert_eq!(zones(None).len(), 4);
    assert_eq!(zones(Some("package-0")), ["intel-rapl:0", "intel-rapl:1"]);
    assert_eq!(zones(Some("package-1")), ["intel-rapl:2"]);
    assert_eq!(zones(Some("package-0-die-1")), ["intel-rapl:1"]);
    assert!(planned(&m, &[rapl(Some("package-2"), 1_000_000)]).is_err());
}

fn epp(word: &str) -> Setting {
    Setting::Epp(word.into())
}

/// auto-cpufreq 724, 751: under performance amd-pstate lists `performance` alone; the plan leaves that governor first.
#[test]
fn a_preference_is_judged_after_the_governor_that_comes_with_it() {
    let governor = |name: &str| Setting::Governor(name.into());
    for name in ["amd-laptop", "hybrid-laptop"] {
        let m = named(name).unwrap();
        let journal = tempfile::tempdir().unwrap();
        apply(&m, &planned(&m, &[governor("performance")]).unwrap(), journal.path()).keep();
        let under_performance = m.snapshot();
        for order in [[governor("powersave"), epp("power")], [epp("power"), governor("powersave")]] {
            let plan = planned(&m, &order).unwrap();
            assert!(plan.steps.iter().all(|s| s.verdict.is_ok()), "{name}");
            let mut transaction = apply(&m, &plan, journal.path());
            let now = root::text(&m, &format!("{CPU}/cpufreq/policy0/energy_performance_preference"));
            assert_eq!(now.as_deref(), Some("power"), "{name}");
            assert!(transaction.undo().failed.is_empty());
            assert_eq!(m.snapshot(), under_performance, "{name}");
        }
        // Alone it is refused by the kernel's rule, in its words; a word that no kernel knows by ours.
        let plan = planned(&m, &[epp("power")]).unwrap();
        assert_eq!(plan.steps[0].verdict.as_ref().unwrap_err().id, "epp-performance-governor", "{name}");
        assert!(planned(&m, &[epp("powr")]).unwrap_err().to_string().contains("did you mean"), "{name}");
    }
    // The other way round: performance with its own preference.
    let m = named("amd-laptop").unwrap();
    let plan = planned(&m, &[governor("performance"), epp("performance")]).unwrap();
    assert!(plan.steps.iter().all(|s| s.verdict.is_ok()));
    let plan = planned(&m, &[governor("performance"), epp("balance_power")]).unwrap();
    assert!(plan.steps.iter().any(|s| s.verdict.is_err()));
}

#[test]
fn a_driver_that_is_off_names_the_way_to_start_it() {
    let m = machine(&[(format!("{CPU}/intel_pstate/status"), "off"), (format!("{CPU}/cpufreq/x"), "")]);
    let error = planned(&m, &[Setting::Governor("powersave".into())]).unwrap_err();
    assert!(matches!(&error, PlanError::Impossible(m) if m.contains("--driver-mode active")), "{error}");
    assert_eq!(writes(&planned(&m, &[Setting::DriverMode("active".into())]).unwrap()).len(), 1);
}

/// The range that is shown is that without boost until the step before has turned it on.
#[test]
fn a_limit_is_judged_after_the_boost_that_comes_with_it() {
    let limits = |khz| Setting::Limits(None, Some(Speed::Khz(khz)));
    for (name, khz) in [("amd-laptop", 5_000_000), ("hybrid-laptop", 3_000_000)] {
        let m = named(name).unwrap();
        let journal = tempfile::tempdir().unwrap();
        apply(&m, &planned(&m, &[Setting::Boost(false)]).unwrap(), journal.path()).keep();
        let without = m.snapshot();
        assert!(planned(&m, &[limits(khz)]).unwrap_err().to_string().contains("runs from"), "{name}");
        let plan = planned(&m, &[limits(khz), Setting::Boost(true)]).unwrap();
        let last = plan.steps.last().unwrap();
        assert_eq!(last.verdict.as_deref().ok(), Some(khz.to_string().as_str()), "{name}");
        let mut transaction = apply(&m, &plan, journal.path());
        let now = root::text(&m, &format!("{CPU}/cpufreq/policy0/scaling_max_freq"));
        assert_eq!(now, Some(khz.to_string()), "{name}");
        assert!(transaction.undo().failed.is_empty());
        assert_eq!(m.snapshot(), without, "{name}");
    }
}
