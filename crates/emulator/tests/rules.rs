//! The rules and the emulated machines: what one refuses, the other refuses with the same error.
//!
//! This is no proof of the rules: the emulator asks the same table, so a wrong row is wrong in both. It shows that
//! the emulator applies the table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use wattwise_emulator::Emulator;
use wattwise_hw::root;
use wattwise_hw::root::Root;
use wattwise_hw::rules::*;

const CPU: &str = "sys/devices/system/cpu";

fn machine(name: &str) -> Emulator {
    wattwise_emulator::named(name).unwrap()
}

fn judge_on(m: &Emulator, path: &str, value: &str) -> Result<String, &'static str> {
    let root: &dyn Root = m;
    judge(&root, path, value).map_err(|r| r.id)
}

#[test]
fn patterns() {
    let covers = |path: &str| attribute(path).map(|a| a.pattern);
    assert!(covers("sys/devices/system/cpu/cpufreq/policy12/scaling_governor").is_some());
    assert_eq!(
        covers("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        covers("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor")
    );
    assert!(covers("sys/devices/system/cpu/cpufreq/policyX/scaling_governor").is_none());
    assert!(covers("sys/devices/system/cpu/cpufreq/ondemand/up_threshold").is_some());
    assert!(covers("sys/devices/system/cpu/cpufreq/policy4/schedutil/rate_limit_us").is_some());
    assert!(covers("sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw").is_some());
    assert!(
        covers(
            "sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:1/constraint_0_time_window_us"
        )
        .is_some()
    );
    assert!(covers("sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/max_freq_khz").is_some());
    assert!(covers("sys/devices/system/cpu/online").is_none());
    assert!(covers("sys/devices/system/cpu/cpu1/online").is_some());
    assert!(covers("sys/devices/system/cpu/cpu1/cpuidle/state2/disable").is_some());
    assert!(covers("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq").is_none());
}

#[test]
fn rows_are_complete_and_refusals_speak() {
    for a in table() {
        assert!(!a.what.is_empty() && !a.values.is_empty() && !a.refusals.is_empty(), "{a:?}");
        for r in a.refusals {
            assert!(REFUSALS.contains(r), "{a:?}: {r:?}");
        }
        for p in std::iter::once(&a.pattern).chain(a.also) {
            let path = p.replace('*', "0");
            assert!(attribute(&path).is_some_and(|found| found.pattern == a.pattern), "{p}");
        }
    }
    for r in REFUSALS {
        assert!(r.rule.len() > 15 && !r.rule.contains('\n') && !r.id.contains(' '), "{r:?}");
    }
}

#[test]
fn limits_on_an_old_kernel_are_refused_and_on_a_new_one_cut() {
    let old = machine("bc10");
    let file = |name: &str| format!("{CPU}/cpu0/cpufreq/{name}");
    old.write(&file("scaling_max_freq"), b"500000").unwrap();
    assert_eq!(judge_on(&old, &file("scaling_min_freq"), "550000"), Err("min-over-max"));
    old.write(&file("scaling_min_freq"), b"250000").unwrap();
    assert_eq!(judge_on(&old, &file("scaling_max_freq"), "125000"), Err("min-over-max"));
    assert_eq!(judge_on(&old, &file("scaling_max_freq"), "9999999"), Ok("600000".into()));

    let new = machine("skylake-server-active");
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    new.write(&file("scaling_max_freq"), b"2000000").unwrap();
    assert_eq!(judge_on(&new, &file("scaling_min_freq"), "2500000"), Ok("2000000".into()));
    new.write(&file("scaling_min_freq"), b"2500000").unwrap();
    let shown = |name: &str| root::text(&new, &file(name)).unwrap();
    assert_eq!(shown("scaling_min_freq"), "2000000");
    // The request stays: a higher maximum lets it come true (kernel/power/qos.c).
    new.write(&file("scaling_max_freq"), b"3000000").unwrap();
    assert_eq!((shown("scaling_min_freq"), shown("scaling_max_freq")), ("2500000".into(), "3000000".into()));
}

#[test]
fn limits_round_to_levels() {
    let levels = [3_000_000, 1_900_000, 1_500_000];
    let now = (6, 1);
    assert_eq!(limits(&levels, (1_500_000, 3_729_000), (0, 3_729_000), now), (1_500_000, 3_000_000));
    assert_eq!(limits(&levels, (1_500_000, 3_729_000), (1_600_000, 2_500_000), now), (1_900_000, 1_900_000));
    // No level between: the maximum goes up to the next one.
    assert_eq!(limits(&levels, (1_500_000, 3_729_000), (2_000_000, 2_500_000), now), (3_000_000, 3_000_000));
    assert_eq!(
        limits(&levels, (1_500_000, 3_729_000), (1_600_000, 2_500_000), (5, 10)),
        (1_600_000, 2_500_000)
    );
    assert_eq!(limits(&[], (400, 5000), (6000, 100), now), (400, 400));
    assert_eq!(limits(&[], (400, 5000), (600, 9000), now), (600, 5000));
}

#[test]
fn speeds_round_as_the_driver_does() {
    let bc10 = [125_000, 250_000, 500_000, 550_000, 600_000];
    let at = |khz, relation| resolve(&bc10, 0, 125_000, 600_000, khz, relation);
    assert_eq!(at(510_000, Relation::AtLeast), 550_000);
    assert_eq!(at(510_000, Relation::AtMost), 500_000);
    assert_eq!(at(510_000, Relation::Closest), 500_000);
    assert_eq!(at(540_000, Relation::Closest), 550_000);
    assert_eq!(at(1, Relation::AtLeast), 125_000);
    assert_eq!(resolve(&bc10, 0, 125_000, 520_000, 600_000, Relation::AtLeast), 500_000);
    assert_eq!(resolve(&[], 100_000, 1_000_000, 3_700_000, 1_234_000, Relation::AtLeast), 1_300_000);
}

#[test]
fn speed_only_under_userspace() {
    let m = machine("core-i5-2gen");
    let file = |name: &str| format!("{CPU}/cpufreq/policy1/{name}");
    assert_eq!(root::text(&m, &file("scaling_setspeed")).unwrap(), "<unsupported>");
    assert_eq!(judge_on(&m, &file("scaling_setspeed"), "800000"), Err("not-userspace"));
    m.write(&file("scaling_governor"), b"userspace\n").unwrap();
    assert_eq!(judge_on(&m, &file("scaling_setspeed"), "900000"), Ok("1000000".into()));
    assert_eq!(judge_on(&m, &file("scaling_setspeed"), "fast"), Err("not-a-number"));
}

#[test]
fn governors() {
    let active = machine("skylake-server-active");
    let path = format!("{CPU}/cpufreq/policy3/scaling_governor");
    assert_eq!(judge_on(&active, &path, "ondemand"), Err("active-driver-governor"));
    assert_eq!(judge_on(&active, &path, "PERFORMANCE\n"), Ok("performance".into()));
    let passive = machine("skylake-server-passive");
    assert_eq!(judge_on(&passive, &path, "ondemand"), Ok("ondemand".into()));
    assert_eq!(judge_on(&passive, &path, "interactive"), Err("unknown-governor"));
    assert_eq!(judge_on(&passive, &path, ""), Err("unknown-governor"));
}

/// auto-cpufreq 724: amd-pstate names `performance` alone while that is the governor, and all of them again after it.
#[test]
fn amd_pstate_lists_the_preferences_that_the_governor_leaves() {
    let m = machine("amd-laptop");
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    let list = || root::text(&m, &file("energy_performance_available_preferences")).unwrap();
    let all = list();
    assert!(all.contains("balance_power"));
    m.write(&file("scaling_governor"), b"performance").unwrap();
    assert_eq!(list(), "performance");
    m.write(&file("scaling_governor"), b"powersave").unwrap();
    assert_eq!(list(), all);
    // intel_pstate's list stays.
    let m = machine("hybrid-laptop");
    m.write(&file("scaling_governor"), b"performance").unwrap();
    assert!(root::text(&m, &file("energy_performance_available_preferences")).unwrap().contains("power"));
}

/// Linux 7.1, commit e30ca6dd: while amd-pstate follows the power source, it takes neither a preference nor performance.
#[test]
fn a_kernel_that_owns_the_preferences_takes_none() {
    let text = wattwise_emulator::text("amd-laptop").unwrap();
    let text = text
        .replace("6.12.0-1-amd64", "7.1.8")
        .replace("prefcore =", "dynamic_epp = \"disabled\"\nprefcore =");
    let m = wattwise_emulator::from_text("dynamic", &text).unwrap();
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    let epp = file("energy_performance_preference");
    let switch = format!("{CPU}/amd_pstate/dynamic_epp");
    assert_eq!(judge_on(&m, &epp, "power"), Ok("power".into()));
    assert_eq!(judge_on(&m, &switch, "disabled"), Err("dynamic-epp-same"));
    m.set_mains(false);
    m.write(&switch, b"enabled").unwrap();
    assert_eq!(root::text(&m, &epp).unwrap(), "balance_performance");
    m.set_mains(true);
    assert_eq!(root::text(&m, &epp).unwrap(), "performance");
    assert_eq!(judge_on(&m, &epp, "power"), Err("epp-dynamic"));
    assert_eq!(judge_on(&m, &file("scaling_governor"), "performance"), Err("governor-dynamic-epp"));
    let busy = Some(rustix::io::Errno::BUSY.raw_os_error());
    assert_eq!(m.write(&epp, b"power").unwrap_err().raw_os_error(), busy);
    m.write(&switch, b"0").unwrap();
    m.write(&epp, b"power").unwrap();
    assert_eq!(root::text(&m, &epp).unwrap(), "power");
}

/// thermald 293: the kernel bounds no power limit by max_power_uw, and masks what has more bits than the field.
#[test]
fn a_power_limit_is_not_bounded_by_the_highest_that_is_named() {
    let m = machine("hybrid-laptop");
    let limit = "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw";
    assert_eq!(root::text(&m, &limit.replace("power_limit", "max_power")).unwrap(), "28000000");
    assert_eq!(judge_on(&m, limit, "35000000"), Ok("35000000".into()));
    m.write(limit, b"35000000").unwrap();
    assert_eq!(root::text(&m, limit).unwrap(), "35000000");
    // 15 bits of 1/8 W: 4096 W is 0.
    assert_eq!(judge_on(&m, limit, "4096000000"), Ok("0".into()));
}

#[test]
fn preferences_under_performance_are_busy() {
    for name in ["skylake-server-active", "hybrid-laptop", "amd-laptop"] {
        let m = machine(name);
        let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
        let epp = file("energy_performance_preference");
        assert_eq!(judge_on(&m, &epp, "power"), Ok("power".into()));
        assert_eq!(judge_on(&m, &epp, "powr"), Err("epp-unknown"));
        m.write(&epp, b"balance_power").unwrap();
        m.write(&file("scaling_governor"), b"performance").unwrap();
        assert_eq!(root::text(&m, &epp).unwrap(), "performance");
        assert_eq!(judge_on(&m, &epp, "power"), Err("epp-performance-governor"));
        assert_eq!(judge_on(&m, &epp, "performance"), Ok("performance".into()));
        let error = m.write(&epp, b"power").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::BUSY.raw_os_error()));
        m.write(&file("scaling_governor"), b"powersave").unwrap();
        assert_eq!(root::text(&m, &epp).unwrap(), "balance_power");
    }
    let intel = machine("skylake-server-active");
    let epp = format!("{CPU}/cpufreq/policy0/energy_performance_preference");
    assert_eq!(judge_on(&intel, &epp, "128"), Ok("balance_performance".into()));
    assert_eq!(judge_on(&intel, &epp, "77"), Ok("77".into()));
    assert_eq!(judge_on(&intel, &epp, "256"), Err("epp-unknown"));
    assert_eq!(judge_on(&machine("amd-laptop"), &epp, "128"), Err("epp-unknown"));
    // A governor of its own chooses under the passive driver: nothing is busy.
    let passive = machine("skylake-server-passive");
    passive.write(&format!("{CPU}/cpufreq/policy0/scaling_governor"), b"performance").unwrap();
    assert_eq!(judge_on(&passive, &epp, "power"), Ok("power".into()));
}

#[test]
fn the_other_attributes() {
    let m = machine("skylake-server-active");
    let cases: &[(&str, &str, Result<&str, &str>)] = &[
        ("intel_pstate/status", "passive", Ok("passive")),
        ("intel_pstate/status", "off", Err("hwp-stays-on")),
        ("intel_pstate/status", "maybe", Err("unknown-status")),
        ("intel_pstate/no_turbo", "7", Ok("1")),
        ("intel_pstate/no_turbo", "x", Err("not-a-number")),
        ("intel_pstate/max_perf_pct", "150", Ok("100")),
        ("intel_pstate/max_perf_pct", "10", Ok("27")),
        ("intel_pstate/min_perf_pct", "5", Ok("27")),
        ("intel_pstate/min_perf_pct", "60", Ok("60")),
        ("intel_pstate/hwp_dynamic_boost", "1", Ok("1")),
        ("cpu0/power/energy_perf_bias", "balance-power", Ok("8")),
        ("cpu0/power/energy_perf_bias", "15", Ok("15")),
        ("cpu0/power/energy_perf_bias", "16", Err("epb-range")),
        ("cpu0/power/pm_qos_resume_latency_us", "n/a", Ok("n/a")),
        ("cpu0/power/pm_qos_resume_latency_us", "0", Ok("0")),
        ("cpu0/power/pm_qos_resume_latency_us", "-1", Err("latency-form")),
        ("cpu0/power/pm_qos_resume_latency_us", "2147483647", Err("latency-form")),
        ("cpu0/online", "0", Err("absent")),
        ("cpu1/online", "0", Ok("0")),
        ("cpu1/online", "maybe", Err("not-a-switch")),
        ("cpu0/cpuidle/state3/disable", "1", Ok("1")),
        ("cpu0/cpuidle/state3/disable", "9", Ok("1")),
        ("cpu0/cpuidle/state9/disable", "1", Err("absent")),
        ("cpuidle/current_governor", "teo", Ok("teo")),
        ("cpuidle/current_governor", "best", Err("unknown-idle-governor")),
        ("smt/control", "off", Ok("off")),
        ("smt/control", "half", Err("smt-word")),
        ("intel_uncore_frequency/package_00_die_00/max_freq_khz", "1850000", Ok("1800000")),
        ("intel_uncore_frequency/package_00_die_00/max_freq_khz", "99999", Err("uncore-ratio")),
        ("intel_uncore_frequency/package_00_die_00/max_freq_khz", "12800000", Err("uncore-ratio")),
        ("cpufreq/boost", "1", Err("absent")),
        ("online", "0", Err("unknown-attribute")),
    ];
    for (path, value, expected) in cases {
        let got = judge_on(&m, &format!("{CPU}/{path}"), value);
        assert_eq!(got.as_deref().map_err(|e| *e), *expected, "{path} = {value}");
    }
    let zone = "sys/class/powercap/intel-rapl:0";
    assert_eq!(
        judge_on(&m, &format!("{zone}/constraint_0_power_limit_uw"), "100100000"),
        Ok("100000000".into())
    );
    assert_eq!(judge_on(&m, &format!("{zone}/constraint_0_power_limit_uw"), "-1"), Err("not-a-number"));
    assert_eq!(judge_on(&m, &format!("{zone}/constraint_0_time_window_us"), "999424"), Ok("999424".into()));
    assert_eq!(judge_on(&m, &format!("{zone}/enabled"), "0"), Ok("0".into()));

    let laptop = machine("hybrid-laptop");
    let profile = "sys/firmware/acpi/platform_profile";
    assert_eq!(judge_on(&laptop, profile, "performance"), Ok("performance".into()));
    assert_eq!(judge_on(&laptop, profile, "quiet"), Err("profile-unsupported"));
    assert_eq!(judge_on(&laptop, profile, "fast"), Err("profile-unknown"));
    let amd = machine("amd-laptop");
    assert_eq!(judge_on(&amd, &format!("{CPU}/amd_pstate/prefcore"), "disabled"), Err("read-only"));
    assert_eq!(judge_on(&amd, &format!("{CPU}/amd_pstate/status"), "guided"), Ok("guided".into()));
    assert_eq!(judge_on(&amd, &format!("{CPU}/amd_pstate/status"), "off"), Err("unknown-status"));
    let own = format!("{CPU}/cpufreq/policy0/boost");
    assert_eq!(judge_on(&amd, &own, "0"), Ok("0".into()));
    amd.write(&format!("{CPU}/cpufreq/boost"), b"0").unwrap();
    assert_eq!(judge_on(&amd, &own, "1"), Err("boost-off-globally"));
    let vm = machine("vm-2cpu");
    assert_eq!(judge_on(&vm, &format!("{CPU}/smt/control"), "off"), Err("smt-none"));
    vm.write(&format!("{CPU}/cpu1/online"), b"0").unwrap();
    assert_eq!(judge_on(&vm, &format!("{CPU}/cpu1/online"), "1"), Ok("1".into()));
}

#[test]
fn tunables() {
    let m = machine("core-i5-2gen");
    let at = |name: &str, value: &str| judge_on(&m, &format!("{CPU}/cpufreq/{name}"), value);
    assert_eq!(at("ondemand/up_threshold", "101"), Err("out-of-range"));
    assert_eq!(at("ondemand/up_threshold", "0"), Err("out-of-range"));
    assert_eq!(at("ondemand/up_threshold", "40"), Ok("40".into()));
    assert_eq!(at("ondemand/powersave_bias", "2000"), Ok("1000".into()));
    assert_eq!(at("ondemand/sampling_down_factor", "100001"), Err("out-of-range"));
    assert_eq!(at("conservative/freq_step", "5"), Err("absent"));
    for cpu in 0..4 {
        m.write(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"), b"conservative").unwrap();
    }
    assert_eq!(at("ondemand/up_threshold", "40"), Err("absent"));
    assert_eq!(at("conservative/freq_step", "500"), Ok("100".into()));
    assert_eq!(at("conservative/up_threshold", "20"), Err("threshold-order"));
    assert_eq!(at("conservative/down_threshold", "80"), Err("threshold-order"));
    assert_eq!(at("conservative/down_threshold", "79"), Ok("79".into()));
    assert_eq!(at("conservative/sampling_down_factor", "11"), Err("out-of-range"));
}

#[test]
fn turbo_that_the_firmware_disabled() {
    let text = wattwise_emulator::text("skylake-server-active").unwrap();
    let text = text
        .replace("nominal_khz = 2600000", "nominal_khz = 3700000")
        .replace("status = \"active\"", "status = \"active\"\nno_turbo = true");
    let m = wattwise_emulator::from_text("test", &text).unwrap();
    assert_eq!(judge_on(&m, &format!("{CPU}/intel_pstate/no_turbo"), "0"), Err("turbo-disabled"));
}

#[test]
fn time_windows() {
    assert_eq!(time_window_us(976), 976);
    assert_eq!(time_window_us(0), 976);
    assert_eq!(time_window_us(27_983_872), 27_983_872);
    assert_eq!(time_window_us(1_000_000), 999_424);
    // 3 units are 2 * (1 + 2/4), which two bits of z can say from y = 1 on.
    assert!(time_window_us(3 * 976) <= 3 * 976);
}

/// Every attribute that can be set, on every machine, with good and odd values: what the table
/// foretells is what the emulator does, and every refusal is one that the row lists.
#[test]
fn the_table_foretells_what_happens() {
    const ODD: &[&str] = &[
        "0",
        "1",
        "2",
        "-1",
        "",
        " ",
        "x",
        "50",
        "100",
        "1000",
        "400000",
        "1500000",
        "2600000",
        "99999999",
        "18446744073709551616",
        "0x10",
        "007",
        "1e6",
        "performance",
        "powersave",
        "userspace",
        "power",
        "balanced",
        "on",
        "off",
        "n/a",
        "active",
        "passive",
        "enabled",
        "\u{0}",
        "ö",
    ];
    for name in wattwise_emulator::names().filter(|n| !n.contains("256")) {
        let fresh = machine(name).snapshot();
        let mut rows = std::collections::BTreeSet::new();
        let mut m = machine(name);
        for path in fresh.keys() {
            let row = attribute(path).unwrap();
            // One of a kind is enough on the large machines, two on the others.
            let second = fresh.len() < 1000 && path.contains('0');
            if !rows.insert((row.pattern, second)) {
                continue;
            }
            // The large machines are made slowly: a part of the values for each.
            let step = if fresh.len() < 500 { 1 } else { 7 };
            for value in ODD.iter().skip(rows.len() % step).step_by(step) {
                let root: &dyn Root = &m;
                let foretold = explain(&root, path, value);
                let done = m.write(path, value.as_bytes());
                match foretold {
                    Ok(taken) => {
                        done.unwrap_or_else(|e| panic!("{name} {path} '{value}': {e}"));
                        // A CPU that is gone takes files along; a driver that is gone, too.
                        if let Some(shown) = root::text(&m, path) {
                            assert_eq!(shown, taken.shows, "{name} {path} '{value}'");
                        }
                        m = machine(name);
                    }
                    Err(refusal) => {
                        let error = done.expect_err(path);
                        assert_eq!(error.raw_os_error(), Some(refusal.errno.raw_os_error()));
                        assert!(row.refusals.contains(&refusal), "{path} '{value}': {refusal:?}");
                        assert!(m.snapshot() == fresh, "{path} '{value}' was refused");
                    }
                }
            }
        }
    }
}
