//! What `info` and `set` say of machines that people reported, each made up here after its report.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

/// A machine of two CPUs as a tree of files, with more beside them: (path, content).
fn machine(more: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let common = [
        ("sys/devices/system/cpu/present", "0-1"),
        ("sys/devices/system/cpu/online", "0-1"),
        ("sys/devices/system/cpu/cpu0/topology/core_id", "0"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "1"),
    ];
    for (path, text) in common.iter().chain(more) {
        let path = folder.path().join("machine").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }
    folder
}

/// Files of one folder: `file=value`, separated by `;`.
fn folder<'a>(at: &str, files: &'a str) -> Vec<(String, &'a str)> {
    let files = files.split(';').filter_map(|f| f.trim().split_once('='));
    files.map(|(file, value)| (format!("{at}/{file}"), value)).collect()
}

fn of_folders(folders: &[(&str, &str)]) -> tempfile::TempDir {
    let files: Vec<(String, &str)> = folders.iter().flat_map(|(at, files)| folder(at, files)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    machine(&files)
}

fn wattwise(root: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    command.arg(args[0]).arg("--root").arg(root.join("machine")).args(&args[1..]);
    command.output().unwrap()
}

/// What `info` prints of a topic, with its JSON.
fn info(machine: &tempfile::TempDir, topic: &str) -> (String, serde_json::Value) {
    let page = wattwise(machine.path(), &["info", topic]);
    assert!(page.status.success(), "{}", String::from_utf8_lossy(&page.stderr));
    let json = wattwise(machine.path(), &["info", "--json"]);
    (String::from_utf8(page.stdout).unwrap(), serde_json::from_slice(&json.stdout).unwrap())
}

const PSY: &str = "sys/class/power_supply";

#[test]
fn what_a_machine_runs_on_is_said_with_the_reason() {
    let psy = |name: &str| format!("{PSY}/{name}");
    let discharging =
        "type=Battery; status=Discharging; energy_now=30000000; energy_full=58000000; power_now=-7500000";
    let full = "type=Battery; status=Full; capacity=100";
    for (supplies, source, mains, words) in [
        (
            vec![("usbc0", "type=USB; scope=System; online=0")],
            "mains",
            true,
            &["no battery", "no source"][..],
        ),
        (
            vec![
                ("ADP1", "type=Mains; online=0"),
                ("BAT0", discharging),
                ("sbs-charger", "type=Mains; online=1"),
            ],
            "battery",
            true,
            &["although sbs-charger", "7.5 W"],
        ),
        (
            vec![("usb", "type=USB_PD; online=1"), ("battery", discharging)],
            "mains",
            true,
            &["usb is online, although battery discharges", "connected (usb, USB_PD)", "52 %"],
        ),
        (
            vec![("usb", "type=USB_PD; online=1"), ("battery", full)],
            "mains",
            true,
            &["connected (usb, USB_PD)", "100 %"],
        ),
        (vec![("AC", "type=Mains; online=0"), ("BAT0", discharging)], "battery", false, &["not connected"]),
        (
            vec![("usbc1", "type=USB; online=1; status=Discharging"), ("BAT0", discharging)],
            "battery",
            false,
            &["gives power"],
        ),
        (
            vec![("BAT1", "type=Battery; present=0"), ("AC", "type=Mains; online=1")],
            "mains",
            true,
            &["AC is online"],
        ),
    ] {
        let folders: Vec<(String, &str)> = supplies.iter().map(|(name, files)| (psy(name), *files)).collect();
        let folders: Vec<(&str, &str)> = folders.iter().map(|(at, files)| (at.as_str(), *files)).collect();
        let (page, json) = info(&of_folders(&folders), "supply");
        assert!(page.contains(&format!("runs on         {source}")), "{page}");
        assert_eq!(
            (&json["supply"]["source"], &json["supply"]["mains"]),
            (&source.into(), &mains.into()),
            "{page}"
        );
        for word in words {
            assert!(page.contains(word), "no '{word}' in\n{page}");
        }
        assert!(!page.contains("BAT1"), "an empty bay is no battery:\n{page}");
    }
}

#[test]
fn a_gauge_of_percent_alone_has_its_percent_and_no_joules() {
    let at = format!("{PSY}/axp20x-battery");
    let files = "type=Battery; status=Discharging; capacity=63; current_now=410000; voltage_now=3900000; charge_full_design=3000000";
    let (page, _) = info(&of_folders(&[(&at, files)]), "supply");
    assert!(page.contains("Discharging: 63 %, joules unavailable") && page.contains("1.6 W"), "{page}");
}

#[test]
fn what_no_sensor_can_show_is_called_so_and_not_shown() {
    let hwmon = "sys/class/hwmon/hwmon2";
    let zone = |n: u32| format!("sys/class/thermal/thermal_zone{n}");
    let machine = of_folders(&[
        (&zone(0), "type=acpitz; temp=-273200"),
        (&zone(1), "type=iwlwifi_1; temp=-274000"),
        (&zone(2), "type=x86_pkg_temp; temp=47000"),
        (&zone(3), "type=INT3400; mode=disabled; temp=20000"),
        (
            hwmon,
            "name=nct6796; temp3_input=127000; temp3_fault=1; temp8_input=3892314000; temp8_label=PCH_CHIP_TEMP",
        ),
        ("sys/class/hwmon/hwmon3", "name=amdgpu; power1_average=23000000; power1_label=PPT"),
        ("sys/class/hwmon/hwmon4/device", "name=k10temp; temp1_input=43000"),
    ]);
    let (page, json) = info(&machine, "thermal");
    let temperatures: Vec<&str> = page.lines().filter(|l| l.ends_with(" C")).map(str::trim).collect();
    assert_eq!(temperatures, ["x86_pkg_temp    47 C", "k10temp temp1   43 C"], "{page}");
    assert_eq!(page.matches("implausible").count(), 3, "{page}");
    assert!(
        page.contains("disabled") && page.contains("broken") && page.contains("23 W on average"),
        "{page}"
    );
    assert_eq!(json["sensors"]["temperatures"].as_array().unwrap().len(), 2);
    let why = json["sensors"]["set_aside"].to_string();
    assert_eq!((why.matches("implausible").count(), why.matches("disabled").count()), (3, 1), "{why}");
}

#[test]
fn two_doors_to_a_package_are_both_shown_and_the_lower_limit_rules() {
    let zone = |uw: &str| {
        format!(
            "name=package-0; enabled=1; energy_uj=5; constraint_0_name=long_term; constraint_0_power_limit_uw={uw}"
        )
    };
    let (msr, mmio) = (zone("35000000"), zone("13500000"));
    let machine = of_folders(&[
        ("sys/class/powercap/intel-rapl:0", &msr),
        ("sys/class/powercap/intel-rapl-mmio:0", &mmio),
        (
            "sys/class/powercap/intel-rapl:1",
            "name=psys; enabled=0; constraint_0_name=long_term; constraint_0_power_limit_uw=0; constraint_0_time_window_us=0; energy_uj=5; max_energy_range_uj=0",
        ),
    ]);
    let (page, json) = info(&machine, "energy");
    for words in [
        "package-0 (msr)",
        "package-0 (mmio)",
        "13.5 W: in force, the lowest",
        "35 W: the lower one of mmio is in force",
    ] {
        assert!(page.contains(words), "no '{words}' in\n{page}");
    }
    assert!(
        page.contains("disabled") && page.contains("long_term: off, not set") && !page.contains("0 W"),
        "{page}"
    );
    assert!(!page.contains("wraps at 0"), "{page}");
    let rules: Vec<bool> = json["energy"]["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|z| z["limits"][0]["in_force"] == true)
        .collect();
    assert_eq!(rules, [true, false, false]);
    let out = wattwise(machine.path(), &["set", "--rapl", "35W", "--dry-run"]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && said.contains("13.5 W (mmio) is in force"), "{said}");
    assert!(said.contains("package-0 (mmio) long_term limit: 13500000 -> 35000000"), "{said}");
}

const POLICY: &str = "sys/devices/system/cpu/cpufreq/policy";

#[test]
fn an_offline_policy_and_odd_statistics_leave_no_blanks() {
    let running = "affected_cpus=0; related_cpus=0; scaling_driver=acpi-cpufreq; cpuinfo_min_freq=400000; cpuinfo_max_freq=4000000";
    let machine = of_folders(&[
        (&format!("{POLICY}0"), running),
        (
            &format!("{POLICY}0/stats"),
            "time_in_state=400000 0\n4000000 18446744073709551615; total_trans=12; trans_table=",
        ),
        (&format!("{POLICY}2"), "affected_cpus=; related_cpus=2; scaling_driver=acpi-cpufreq"),
        (&format!("{POLICY}3"), "affected_cpus=; related_cpus="),
    ]);
    let (page, _) = info(&machine, "speed");
    assert!(page.contains("policy2: offline, CPU 2 does not run"), "{page}");
    assert!(
        page.contains("policy3: offline, CPU 3 does not run") && page.contains("not readable until"),
        "{page}"
    );
    assert!(page.contains("no time is counted; 12 changes") && page.contains("implausible"), "{page}");
    assert!(page.contains("trans_table is empty") && !page.contains("100.00 %"), "{page}");
    assert!(page.lines().all(|l| !l.trim_end().ends_with("CPU") && !l.contains("CPU  ")), "{page}");
}

#[test]
fn turbo_that_the_firmware_locked_is_named_and_refused() {
    let info_of = |flags: &str| {
        let cpuinfo = format!("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu {flags} msr");
        machine(&[
            ("proc/cpuinfo", &cpuinfo),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
            ("sys/devices/system/cpu/intel_pstate/status", "active"),
            (&format!("{POLICY}0/affected_cpus"), "0"),
        ])
    };
    let locked = info_of("arat");
    let (page, _) = info(&locked, "speed");
    assert!(page.contains("off, locked by the firmware"), "{page}");
    let out = wattwise(locked.path(), &["set", "--boost", "on"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(2) && said.contains("turbo is disabled by the firmware"), "{said}");
    // Where the processor has turbo, a user may have switched it off.
    let switched = info_of("ida arat");
    let (page, _) = info(&switched, "speed");
    assert!(page.contains("switched off, or the firmware"), "{page}");
    assert!(wattwise(switched.path(), &["set", "--boost", "on"]).status.success());
}

#[test]
fn a_kernel_that_sets_the_preferences_itself_is_named() {
    let policy = "affected_cpus=0; related_cpus=0; scaling_driver=amd-pstate-epp; scaling_governor=powersave; scaling_available_governors=performance powersave; energy_performance_preference=performance; energy_performance_available_preferences=default performance balance_performance balance_power power";
    let machine = of_folders(&[
        (&format!("{POLICY}0"), policy),
        ("sys/devices/system/cpu/amd_pstate", "status=active; dynamic_epp=enabled"),
        ("proc/sys/kernel", "osrelease=7.1.8"),
    ]);
    let (page, _) = info(&machine, "speed");
    assert!(page.contains("set by the kernel itself"), "{page}");
    let out = wattwise(machine.path(), &["set", "--epp", "power"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(2) && said.contains("dynamic_epp"), "{said}");
}

/// A capture keeps what these are told by.
#[test]
fn a_capture_tells_the_same() {
    let machine = of_folders(&[
        (&format!("{PSY}/ucsi-source-psy-USBC000:001"), "type=USB; usb_type=[C] PD; scope=System; online=1"),
        (&format!("{PSY}/BAT1"), "type=Battery; present=0; status=Unknown"),
        (&format!("{PSY}/BAT0"), "type=Battery; status=Full; capacity=100; current_avg=-5"),
        ("sys/class/typec/port0", "power_role=[source] sink"),
        (
            "sys/class/hwmon/hwmon0",
            "name=power_meter; power1_average=184000000; power1_average_interval=1000; temp1_input=1; temp1_fault=1; temp2_input=2; temp2_enable=0",
        ),
        ("sys/class/hwmon/hwmon1/device", "name=k8temp; temp1_input=43000"),
        ("sys/class/thermal/thermal_zone0", "type=INT3400; mode=disabled; temp=20000"),
    ]);
    let file = machine.path().join("it.wattwise");
    let made = wattwise(machine.path(), &["capture", "-o", file.to_str().unwrap()]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let of_capture = |topic: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(["info", topic, "--root"])
            .arg(&file)
            .output()
            .unwrap();
        let page = String::from_utf8(out.stdout).unwrap();
        page.split_once('\n').unwrap().1.to_owned()
    };
    for (topic, facts) in [
        ("supply", &["gives power to what is plugged in", "USB (C)"][..]),
        (
            "thermal",
            &["184 W on average over 1 s", "k8temp temp1    43 C", "temp1_fault", "temp2_enable", "disabled"],
        ),
    ] {
        let (page, _) = info(&machine, topic);
        let captured = of_capture(topic);
        assert_eq!(captured, page.split_once('\n').unwrap().1, "{topic}");
        for fact in facts {
            assert!(captured.contains(fact), "no '{fact}' in\n{captured}");
        }
        assert!(!captured.contains("BAT1"), "{captured}");
    }
}

/// A board whose kernel sets the memory's clock: shown, set with its thresholds, put back.
#[test]
fn the_memory_s_clock_is_set_and_put_back() {
    let dmc = |file: &str| format!("sys/class/devfreq/dmc/{file}");
    let files = [
        ("governor", "dmc_ondemand"),
        ("available_governors", "dmc_ondemand performance"),
        ("available_frequencies", "528000000 2112000000"),
        ("cur_freq", "528000000"),
        ("upthreshold", "40"),
        ("downdifferential", "20"),
    ];
    let files = files.map(|(file, text)| (dmc(file), text));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let machine = machine(&files);
    let (page, json) = info(&machine, "memory");
    assert!(page.contains("dmc_ondemand up=40 down=20 (528 MHz, 2.11 GHz), now 528 MHz"), "{page}");
    assert_eq!(json["memory"]["value"][0]["governor"], "dmc_ondemand");
    let now = |file: &str| {
        let text = std::fs::read_to_string(machine.path().join("machine").join(dmc(file))).unwrap();
        text.trim().to_owned()
    };
    let done = wattwise(machine.path(), &["set", "--dram", "dmc_ondemand:up=25"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!([now("governor"), now("upthreshold"), now("downdifferential")], ["dmc_ondemand", "25", "20"]);
    let done = wattwise(machine.path(), &["set", "--dram", "performance"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(now("governor"), "performance");
    assert!(wattwise(machine.path(), &["restore"]).status.success());
    assert_eq!([now("governor"), now("upthreshold")], ["dmc_ondemand", "40"]);
}
