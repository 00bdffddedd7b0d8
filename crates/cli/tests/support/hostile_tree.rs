//! A machine whose every text is a stranger's.

use std::path::Path;

/// A machine as a stranger's capture has it: every text that its kernel would have written.
pub(crate) fn tree(folder: &Path, names: &[String]) {
    let at = |path: &str, text: &str| {
        let path = folder.join("sys").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mut names = names.iter().cycle();
    let mut name = || names.next().unwrap().clone();
    let cpu = "devices/system/cpu";
    for list in ["online", "present", "possible"] {
        at(&format!("{cpu}/{list}"), "0-1\n");
    }
    at(&format!("{cpu}/cpuidle/current_driver"), &name());
    at(&format!("{cpu}/cpuidle/current_governor"), &name());
    at(&format!("{cpu}/cpuidle/available_governors"), &name());
    for n in 0..2 {
        for (file, text) in [
            ("core_id", n.to_string()),
            ("physical_package_id", "0".into()),
            ("thread_siblings_list", n.to_string()),
        ] {
            at(&format!("{cpu}/cpu{n}/topology/{file}"), &text);
        }
        for state in 0..3 {
            let here = format!("{cpu}/cpu{n}/cpuidle/state{state}");
            at(&format!("{here}/name"), &name());
            at(&format!("{here}/desc"), &name());
            for (file, number) in [
                ("latency", 10 * state),
                ("residency", 30 * state),
                ("usage", 5),
                ("time", 7),
                ("disable", 0),
            ] {
                at(&format!("{here}/{file}"), &number.to_string());
            }
        }
        let policy = format!("{cpu}/cpufreq/policy{n}");
        for (file, text) in [
            ("affected_cpus", n.to_string()),
            ("related_cpus", n.to_string()),
            ("cpuinfo_min_freq", "800000".into()),
            ("cpuinfo_max_freq", "2000000".into()),
            ("scaling_min_freq", "800000".into()),
            ("scaling_max_freq", "2000000".into()),
            ("scaling_cur_freq", "1000000".into()),
            ("scaling_governor", name()),
            ("scaling_driver", name()),
            ("scaling_available_governors", name()),
            ("energy_performance_preference", name()),
        ] {
            at(&format!("{policy}/{file}"), &text);
        }
    }
    at("class/thermal/thermal_zone0/type", &name());
    at("class/thermal/thermal_zone0/temp", "42000");
    at("class/hwmon/hwmon0/name", &name());
    at("class/hwmon/hwmon0/temp1_label", &name());
    at("class/hwmon/hwmon0/temp1_input", "41000");
    at("class/powercap/intel-rapl:0/name", &name());
    at("class/powercap/intel-rapl:0/energy_uj", "100");
    at("firmware/acpi/platform_profile", &name());
    at("firmware/acpi/platform_profile_choices", &name());
    let proc = folder.join("proc");
    std::fs::create_dir_all(proc.join("sys/kernel")).unwrap();
    std::fs::write(proc.join("sys/kernel/osrelease"), name()).unwrap();
    std::fs::write(
        proc.join("cpuinfo"),
        format!("processor\t: 0\nmodel name\t: {}\n", name().replace('\n', " ")),
    )
    .unwrap();
}
