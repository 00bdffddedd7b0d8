use crate::*;
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::time::Instant;
use wattwise_hw::root;
use wattwise_hw::root::{Access, Root, number};
use wattwise_hw::rules;

const CPU: &str = "sys/devices/system/cpu";
const SECOND: u64 = 1_000_000_000;

fn show(m: &Emulator, path: &str) -> String {
    root::text(m, path).unwrap_or_else(|| panic!("{path} is missing"))
}

fn refused(result: io::Result<()>, errno: Errno) {
    assert_eq!(result.unwrap_err().raw_os_error(), Some(errno.raw_os_error()));
}

#[test]
fn every_bundled_machine_is_whole() {
    for name in names() {
        let m = named(name).unwrap();
        check(&m).unwrap_or_else(|e| panic!("{name}: {e}"));
        for file in ["online", "present", "possible"] {
            assert!(!show(&m, &format!("{CPU}/{file}")).is_empty(), "{name}");
        }
        assert!(show(&m, "proc/stat").starts_with("cpu "), "{name}");
        assert!(show(&m, "proc/cpuinfo").contains("rocessor"), "{name}");
        assert!(!m.snapshot().is_empty() || name == "vm-2cpu", "{name}");
    }
    assert!(named("bc1").is_err_and(|e| e.to_string().contains("bc10")));
}

/// Study 003's cpufreq-info listing, figure by figure.
#[test]
fn bc10_shows_what_the_study_printed() {
    let m = named("bc10").unwrap();
    let file = |name: &str| show(&m, &format!("{CPU}/cpu0/cpufreq/{name}"));
    assert_eq!(file("scaling_driver"), "omap");
    assert_eq!(file("related_cpus"), "0");
    assert_eq!(file("affected_cpus"), "0");
    assert_eq!(file("cpuinfo_transition_latency"), "300000");
    assert_eq!((file("cpuinfo_min_freq"), file("cpuinfo_max_freq")), ("125000".into(), "600000".into()));
    assert_eq!(file("scaling_available_frequencies"), "125000 250000 500000 550000 600000");
    assert_eq!(file("scaling_available_governors"), "conservative ondemand powersave userspace performance");
    assert_eq!(file("scaling_governor"), "userspace");
    assert_eq!(file("cpuinfo_cur_freq"), "600000");
    assert_eq!(file("stats/time_in_state"), "125000 0\n250000 0\n500000 0\n550000 0\n600000 360000");
    assert!(show(&m, "proc/cpuinfo").contains("BogoMIPS\t: 581.89"));
    // Its folder's names are those of the study's `ls`.
    let mut names = m.list(&format!("{CPU}/cpu0/cpufreq")).unwrap();
    names.sort();
    assert_eq!(
        names.join(" "),
        "affected_cpus cpuinfo_cur_freq cpuinfo_max_freq cpuinfo_min_freq cpuinfo_transition_latency \
         related_cpus scaling_available_frequencies scaling_available_governors scaling_cur_freq \
         scaling_driver scaling_governor scaling_max_freq scaling_min_freq scaling_setspeed stats"
    );
    // cpufreq-set -f 500MHz; the study then shows 3.51 % at 500 MHz and another BogoMIPS.
    m.write(&format!("{CPU}/cpu0/cpufreq/scaling_setspeed"), b"500000\n").unwrap();
    assert_eq!(file("cpuinfo_cur_freq"), "500000");
    m.advance(131 * SECOND);
    assert_eq!(file("stats/time_in_state"), "125000 0\n250000 0\n500000 13100\n550000 0\n600000 360000");
    assert_eq!(file("stats/total_trans"), "1");
    assert!(show(&m, "proc/cpuinfo").contains("BogoMIPS\t: 484.74"));
}

#[test]
fn speed_follows_governor_load_and_limits() {
    let m = named("core-i5-2gen").unwrap();
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    let speed = || show(&m, &file("scaling_cur_freq"));
    let set = |name: &str, value: &str| m.write(&file(name), value.as_bytes()).unwrap();
    assert_eq!(speed(), "800000");
    m.set_load(0, 1000);
    assert_eq!(speed(), "2501000");
    m.set_load(0, 500);
    assert_eq!(speed(), "1600000");
    set("scaling_governor", "performance");
    assert_eq!(speed(), "2501000");
    set("scaling_max_freq", "2300000");
    assert_eq!(speed(), "2200000");
    set("scaling_governor", "powersave");
    assert_eq!(speed(), "800000");
    set("scaling_min_freq", "1100000");
    assert_eq!(speed(), "1200000");
    set("scaling_governor", "userspace");
    set("scaling_setspeed", "2000000");
    assert_eq!(speed(), "2000000");
    // The user's speed is kept aside while the limits forbid it.
    set("scaling_max_freq", "1400000");
    assert_eq!(speed(), "1400000");
    set("scaling_max_freq", "2501000");
    assert_eq!(speed(), "2000000");
}

#[test]
fn boost_and_turbo_lower_the_limits() {
    let m = named("amd-laptop").unwrap();
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    m.write(&format!("{CPU}/cpufreq/boost"), b"0").unwrap();
    assert_eq!(show(&m, &file("cpuinfo_max_freq")), "3301000");
    assert_eq!(show(&m, &file("scaling_max_freq")), "3301000");
    assert_eq!(show(&m, &file("boost")), "0");
    m.write(&format!("{CPU}/cpufreq/boost"), b"1").unwrap();
    assert_eq!(show(&m, &file("scaling_max_freq")), "5132000");

    let m = named("skylake-server-active").unwrap();
    m.write(&format!("{CPU}/intel_pstate/no_turbo"), b"1").unwrap();
    assert_eq!(show(&m, &file("scaling_max_freq")), "2600000");
    assert_eq!(show(&m, &file("cpuinfo_max_freq")), "3700000", "shown unchanged before 6.10");
    let m = named("hybrid-laptop").unwrap();
    m.write(&format!("{CPU}/intel_pstate/no_turbo"), b"1").unwrap();
    assert_eq!(show(&m, &file("cpuinfo_max_freq")), "2100000");
}

#[test]
fn a_driver_changes_its_mode() {
    let m = named("skylake-server-active").unwrap();
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    let status = format!("{CPU}/intel_pstate/status");
    m.write(&status, b"passive").unwrap();
    assert_eq!(show(&m, &file("scaling_driver")), "intel_cpufreq");
    assert_eq!(show(&m, &file("scaling_governor")), "schedutil");
    assert!(m.list(&format!("{CPU}/cpufreq/schedutil")).is_ok());
    assert!(root::text(&m, &format!("{CPU}/intel_pstate/hwp_dynamic_boost")).is_none());
    m.write(&file("scaling_governor"), b"userspace").unwrap();
    m.write(&file("scaling_setspeed"), b"2000001").unwrap();
    assert_eq!(show(&m, &file("scaling_cur_freq")), "2100000");
    m.write(&status, b"active").unwrap();
    assert_eq!(show(&m, &file("scaling_available_governors")), "performance powersave");
    assert!(m.list(&format!("{CPU}/cpufreq/schedutil")).is_err());

    let m = named("amd-laptop").unwrap();
    m.write(&format!("{CPU}/amd_pstate/status"), b"passive").unwrap();
    assert!(root::text(&m, &file("energy_performance_preference")).is_none());
    m.write(&format!("{CPU}/amd_pstate/status"), b"disable").unwrap();
    assert!(m.list(&format!("{CPU}/cpufreq/policy0")).is_err());
    m.write(&format!("{CPU}/amd_pstate/status"), b"active").unwrap();
    assert_eq!(show(&m, &file("energy_performance_preference")), "balance_performance");
    check(&m).unwrap();
}

/// drivers/cpufreq/intel_pstate.c, intel_pstate_register_driver and intel_pstate_hwp_offline; drivers/cpufreq/amd-pstate.c,
/// mode_state_machine and amd_pstate_init_boost_support.
#[test]
fn a_driver_that_is_registered_anew_starts_from_its_defaults() {
    let m = named("hybrid-laptop").unwrap();
    let (pstate, policy) = (format!("{CPU}/intel_pstate"), format!("{CPU}/cpufreq/policy0"));
    let set = |m: &Emulator, path: &str, value: &str| m.write(path, value.as_bytes()).unwrap();
    let top = show(&m, &format!("{policy}/scaling_max_freq"));
    for (file, value) in
        [("no_turbo", "1"), ("max_perf_pct", "60"), ("min_perf_pct", "40"), ("hwp_dynamic_boost", "1")]
    {
        set(&m, &format!("{pstate}/{file}"), value);
    }
    set(&m, &format!("{policy}/energy_performance_preference"), "balance_power");
    set(&m, &format!("{policy}/scaling_governor"), "performance");
    set(&m, &format!("{policy}/scaling_max_freq"), "1000000");
    set(&m, &format!("{pstate}/status"), "passive");
    assert_eq!(show(&m, &format!("{pstate}/no_turbo")), "0");
    assert_eq!(show(&m, &format!("{pstate}/max_perf_pct")), "100");
    assert_ne!(show(&m, &format!("{pstate}/min_perf_pct")), "40");
    assert_eq!(show(&m, &format!("{policy}/scaling_max_freq")), top);
    assert_eq!(show(&m, &format!("{policy}/energy_performance_preference")), "balance_power");
    assert!(root::text(&m, &format!("{pstate}/hwp_dynamic_boost")).is_none());
    set(&m, &format!("{pstate}/status"), "active");
    assert_eq!(show(&m, &format!("{pstate}/hwp_dynamic_boost")), "1");
    assert_eq!(show(&m, &format!("{policy}/scaling_governor")), "powersave");

    let m = named("amd-laptop").unwrap();
    let status = format!("{CPU}/amd_pstate/status");
    set(&m, &status, "passive");
    set(&m, &format!("{policy}/scaling_governor"), "ondemand");
    set(&m, &format!("{policy}/scaling_max_freq"), "2000000");
    set(&m, &status, "guided");
    assert_eq!(show(&m, &format!("{policy}/scaling_governor")), "ondemand", "the same driver stays");
    assert_eq!(show(&m, &format!("{policy}/scaling_max_freq")), "2000000");
    set(&m, &format!("{CPU}/cpufreq/boost"), "0");
    set(&m, &status, "disable");
    assert!(root::text(&m, &format!("{CPU}/cpufreq/boost")).is_none());
    set(&m, &status, "active");
    assert_eq!(show(&m, &format!("{CPU}/cpufreq/boost")), "1");
    check(&m).unwrap();
}

#[test]
fn a_cpu_leaves_and_returns() {
    let m = named("skylake-server-active").unwrap();
    let mut idle = m.open(&format!("{CPU}/cpu1/topology/core_id"), Access::Read).unwrap();
    let mut register = m.open("dev/cpu/1/msr", Access::Read).unwrap();
    m.write(&format!("{CPU}/cpufreq/policy1/scaling_max_freq"), b"2000000").unwrap();
    m.write(&format!("{CPU}/cpu1/online"), b"0\n").unwrap();
    assert_eq!(show(&m, &format!("{CPU}/online")), "0,2-63");
    assert_eq!(show(&m, &format!("{CPU}/offline")), "1");
    assert_eq!(show(&m, &format!("{CPU}/cpu0/topology/package_cpus_list")), "0,2-15,32-47");
    assert_eq!(show(&m, &format!("{CPU}/cpu33/topology/thread_siblings_list")), "33");
    assert_eq!(show(&m, "sys/devices/system/node/node0/cpulist"), "0,2-15,32-47");
    assert!(!show(&m, "proc/cpuinfo").contains("processor\t: 1\n"));
    assert!(!show(&m, "proc/stat").contains("cpu1 "));
    assert!(m.list(&format!("{CPU}/cpu1/topology")).is_err());
    let error = idle.read_at(0, &mut [0; 16]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::NODEV.raw_os_error()));
    let error = register.read_at(0xce, &mut [0; 8]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::NXIO.raw_os_error()));
    let governor = format!("{CPU}/cpufreq/policy1/scaling_governor");
    refused(m.write(&governor, b"performance"), Errno::BUSY);
    assert_eq!(m.read(&governor).unwrap_err().raw_os_error(), Some(Errno::BUSY.raw_os_error()));
    m.write(&format!("{CPU}/cpu1/online"), b"1").unwrap();
    assert_eq!(show(&m, &format!("{CPU}/online")), "0-63");
    assert_eq!(show(&m, &format!("{CPU}/cpufreq/policy1/scaling_max_freq")), "2000000");
    assert_eq!(idle.read_at(0, &mut [0; 16]).unwrap(), 2);
    check(&m).unwrap();
}

#[test]
fn idle_states_that_are_registered_anew_are_fresh() {
    let m = named("vm-2cpu").unwrap();
    let file = |name: &str| format!("{CPU}/cpu1/cpuidle/state1/{name}");
    m.write(&file("disable"), b"1").unwrap();
    m.advance(SECOND);
    m.plug(1, false);
    assert!(m.list(&format!("{CPU}/cpu1/cpuidle")).is_err());
    m.plug(1, true);
    assert_eq!(show(&m, &file("disable")), "0");
    refused(m.write(&format!("{CPU}/cpu0/online"), b"0"), Errno::NOENT);
    m.plug(1, false);
    m.plug(0, false);
    assert_eq!(m.online(), [0], "the last CPU stays");
}

#[test]
fn siblings_go_with_smt() {
    let m = named("hybrid-laptop").unwrap();
    m.write(&format!("{CPU}/smt/control"), b"off").unwrap();
    assert_eq!(show(&m, &format!("{CPU}/online")), "0,2,4,6,8-15");
    assert_eq!(show(&m, &format!("{CPU}/smt/active")), "0");
    assert_eq!(show(&m, "sys/devices/cpu_core/cpus"), "0,2,4,6");
    assert_eq!(show(&m, "sys/devices/cpu_atom/cpus"), "8-15");
    m.write(&format!("{CPU}/smt/control"), b"on").unwrap();
    assert_eq!(show(&m, "sys/devices/cpu_core/cpus"), "0-7");
    assert_eq!(show(&m, &format!("{CPU}/smt/active")), "1");
}

#[test]
fn counters_move_and_wrap() {
    let m = named("hybrid-laptop").unwrap();
    for cpu in 0..16 {
        m.set_load(cpu, 250);
    }
    let before = m.zone_power_uw();
    let energy = |m: &Emulator| -> u64 { number(m, "sys/class/powercap/intel-rapl:0/energy_uj").unwrap() };
    m.advance(10 * SECOND);
    assert_eq!(energy(&m), before[0] * 10);
    m.inject(Fault::Wrap { pattern: "*intel-rapl:0/energy_uj".into() });
    let last = energy(&m);
    m.advance(SECOND);
    assert!(energy(&m) < last, "wrapped");
    assert_eq!(m.zone_total_uj()[0], u128::from(before[0]) * 11);
    assert_eq!(number(&m, &format!("{CPU}/cpu0/cpuidle/state4/time")), Some(8_250_000_u64));
    m.inject(Fault::Wrap { pattern: "*/cpu0/cpuidle/state4/time".into() });
    assert_eq!(number(&m, &format!("{CPU}/cpu0/cpuidle/state4/time")), Some(u64::MAX));
    m.advance(SECOND);
    assert_eq!(number(&m, &format!("{CPU}/cpu0/cpuidle/state4/time")), Some(749_999_u64));
    // The limit holds the package.
    m.write("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", b"2000000").unwrap();
    m.write("sys/class/powercap/intel-rapl:0/enabled", b"1").unwrap();
    assert_eq!(m.zone_power_uw()[0], 2_000_000);
    // Idle time goes to the deepest state that is allowed.
    let time = |state: u32| -> u64 { number(&m, &format!("{CPU}/cpu0/cpuidle/state{state}/time")).unwrap() };
    let deep = time(4);
    assert!(deep > 0);
    m.write(&format!("{CPU}/cpu0/cpuidle/state4/disable"), b"1").unwrap();
    m.write(&format!("{CPU}/cpu0/power/pm_qos_resume_latency_us"), b"180").unwrap();
    let (c6, c8) = (time(2), time(3));
    m.advance(SECOND);
    assert_eq!((time(4), time(3)), (deep, c8));
    assert_eq!(time(2), c6 + 750_000);
}

#[test]
fn the_battery_is_slow() {
    let m = named("hybrid-laptop").unwrap();
    let file = |name: &str| show(&m, &format!("sys/class/power_supply/BAT0/{name}"));
    let start: u64 = file("energy_now").parse().unwrap();
    assert_eq!(file("status"), "Discharging");
    m.advance(9 * SECOND);
    assert_eq!(file("energy_now"), start.to_string(), "renewed every ten seconds");
    m.advance(SECOND);
    let power: u64 = file("power_now").parse().unwrap();
    let now: u64 = file("energy_now").parse().unwrap();
    let drawn = power * 10 / 3600;
    assert!(start - now >= drawn && start - now <= drawn + 1, "{start} {now} {power}");
    m.set_mains(true);
    assert_eq!(show(&m, "sys/class/power_supply/AC/online"), "1");
    m.advance(36_000 * SECOND);
    assert_eq!((file("status"), file("capacity")), ("Full".into(), "100".into()));
    m.set_mains(false);
    m.advance(u64::MAX / 2);
    assert_eq!(file("energy_now"), "0");
}

#[test]
fn registers_follow_the_machine() {
    let m = named("skylake-server-active").unwrap();
    let mut node = m.open("dev/cpu/3/msr", Access::Write).unwrap();
    let mut read = |address: u32| root::read_register(&mut *node, address).unwrap();
    assert_eq!(read(0x1b0), 6);
    assert_eq!(read(0xe8), 0);
    m.write(&format!("{CPU}/cpu3/power/energy_perf_bias"), b"power").unwrap();
    assert_eq!(read(0x1b0), 15);
    m.set_load(3, 1000);
    m.write(&format!("{CPU}/cpufreq/policy3/scaling_governor"), b"performance").unwrap();
    m.advance(SECOND);
    // Turbo over nominal: APERF outruns MPERF.
    assert_eq!((read(0xe8), read(0xe7)), (3_700_000_000, 2_600_000_000));
    assert_eq!(read(0x198) >> 8 & 0xff, 37);
    node.write_at(0x1b0, &4_u64.to_le_bytes()).unwrap();
    assert_eq!(show(&m, &format!("{CPU}/cpu3/power/energy_perf_bias")), "4");
    refused(node.write_at(0x123, &[0; 8]), Errno::IO);
    assert!(root::read_register(&mut *node, 0x123).is_err());
    assert_eq!(m.writes().last().unwrap().1, "0x1b0=0x4");
}

#[test]
fn faults_happen() {
    let m = named("amd-server").unwrap();
    let governor = |i: u32| format!("{CPU}/cpufreq/policy{i}/scaling_governor");
    m.inject(Fault::Errno { pattern: "*scaling_governor".into(), op: Op::Write, nth: 2, errno: Errno::BUSY });
    m.write(&governor(0), b"performance").unwrap();
    refused(m.write(&governor(1), b"performance"), Errno::BUSY);
    m.write(&governor(2), b"performance").unwrap();
    m.clear_faults();
    m.inject(Fault::Errno { pattern: "*/energy_uj".into(), op: Op::Read, nth: 0, errno: Errno::IO });
    assert!(m.read("sys/class/powercap/intel-rapl:0/energy_uj").is_err());
    m.clear_faults();
    // Gone between list and read.
    m.inject(Fault::Unplug { cpu: 5, after: 1 });
    assert!(m.list(CPU).unwrap().contains(&"cpu5".to_owned()));
    assert!(m.read(&format!("{CPU}/cpu5/topology/core_id")).is_err());
    m.inject(Fault::Ignore { pattern: "*policy3/*".into() });
    m.write(&governor(3), b"powersave").unwrap();
    assert_eq!(show(&m, &governor(3)), "schedutil");
    assert_eq!(m.writes().len(), 3);
    m.inject(Fault::Vanish { pattern: "*/cpufreq/policy7".into(), after: 0 });
    assert!(m.read(&governor(7)).is_err());
    m.advance(SECOND);
    m.inject(Fault::Suspend { ns: 3600 * SECOND });
    assert_eq!(m.now_ns(), 3601 * SECOND);
    assert_eq!(m.online().len(), 63, "all but the unplugged one are back");
    refused(m.write(&format!("{CPU}/present"), b"0"), Errno::ACCESS);
    refused(m.write(&governor(0), &[b'x'; 5000]), Errno::INVAL);
}

#[test]
fn opens_are_counted_and_nodes_stay_open() {
    let m = named("arm-big-little").unwrap();
    let path = format!("{CPU}/cpu5/cpufreq/scaling_cur_freq");
    let mut node = m.open(&path, Access::Read).unwrap();
    for _ in 0..5 {
        assert!(node.read_at(0, &mut [0; 64]).unwrap() > 0);
    }
    assert_eq!(m.opens(&path), 1);
    assert_eq!(m.opens(&format!("{CPU}/cpufreq/policy4/scaling_cur_freq")), 1);
    assert!(m.open(&format!("{CPU}/cpu5"), Access::Read).is_err());
    assert!(node.write_at(0, b"1").is_err());
}

#[test]
fn any_tree_of_files_is_a_machine() {
    let m = named("hybrid-laptop").unwrap();
    m.advance(5 * SECOND);
    let copy = Emulator::from_files("copy", m.files());
    assert_eq!(copy.snapshot(), m.snapshot());
    for (a, b) in copy.files().iter().zip(m.files()) {
        assert_eq!(*a, b);
    }
    copy.advance(SECOND);
    m.advance(SECOND);
    let usage = format!("{CPU}/cpu0/cpuidle/state4/time");
    assert_eq!(show(&copy, &usage), show(&m, &usage));
    copy.write(&format!("{CPU}/cpu3/online"), b"0").unwrap();
    assert_eq!(show(&copy, &format!("{CPU}/cpu2/topology/core_cpus_list")), "2");
    check(&copy).unwrap();
    // And an empty one is a machine without anything.
    let empty = Emulator::from_files("empty", []);
    empty.advance(SECOND);
    empty.plug(0, false);
    assert!(empty.snapshot().is_empty());
}

#[test]
fn a_folder_of_files_is_a_machine() {
    let m = named("arm-big-little").unwrap();
    let folder = tempfile::tempdir().unwrap();
    for entry in m.files() {
        let (TreeEntry::File(path, _) | TreeEntry::Link(path, _)) = &entry;
        let at = folder.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        match &entry {
            TreeEntry::File(_, bytes) => std::fs::write(at, bytes).unwrap(),
            TreeEntry::Link(path, to) => {
                let up = "../".repeat(path.matches('/').count());
                std::os::unix::fs::symlink(format!("{up}{to}"), at).unwrap();
            }
        }
    }
    let copy = Emulator::from_dir(folder.path()).unwrap();
    assert_eq!(copy.files(), m.files());
    copy.write(&format!("{CPU}/cpu4/cpufreq/scaling_governor"), b"performance").unwrap();
    assert_eq!(show(&copy, &format!("{CPU}/cpu5/cpufreq/scaling_cur_freq")), "1800000");
    check(&copy).unwrap();
    assert!(Emulator::from_dir(Path::new("/nowhere/at/all")).is_err());
}

#[test]
fn the_same_steps_give_the_same_bytes() {
    let run = || {
        let m = named("hybrid-laptop").unwrap();
        for i in 0..50 {
            m.set_load(i % 16, (i * 37) % 1001);
            m.advance(u64::from(i) * 12_345_678);
        }
        m.files()
    };
    assert_eq!(run(), run());
}

#[test]
fn impossible_descriptions_are_refused_in_one_line() {
    let good = text("hybrid-laptop").unwrap();
    let cases = [
        ("min_khz = 400000", "min_khz = 9400000", "core[0].min_khz"),
        ("nominal_khz = 2100000", "nominal_khz = 1", "core[0].nominal_khz"),
        ("count = 4\n", "count = 0\n", "core[0].count"),
        ("count = 4\n", "count = 4000\n", "core[0].count"),
        ("threads = 2", "threads = 99", "core[0].threads"),
        ("packages = 1", "packages = 4000", "topology.packages"),
        ("kernel = \"6.12", "kernel = \"new", "kernel"),
        ("governor = \"powersave\"", "governor = \"ondemand\"", "cpufreq.governor"),
        ("now = 43000000", "now = 143000000", "battery.now"),
        ("now = \"balanced\"", "now = \"warp\"", "platform_profile.now"),
        ("max_energy_range_uj = 262143328850", "max_energy_range_uj = 0", "rapl[0].max_energy_range_uj"),
        ("0x1b0 = \"0x6\"", "0x1b0 = \"six\"", "msr.registers.0x1b0"),
        ("count = 8", "count = -8", "line"),
        ("[battery]", "[batery]", "line"),
    ];
    for (from, to, key) in cases {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error =
            from_text("here.toml", &text).err().unwrap_or_else(|| panic!("{to} was taken")).to_string();
        assert!(error.starts_with("here.toml: ") && error.contains(key), "{to}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n.max(1)
    }
    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// Descriptions with letters and figures changed: refused in one line or a machine that runs.
#[test]
#[ignore = "long: make test runs it"]
fn damaged_descriptions_never_panic() {
    let mut random = Random(0xdead);
    for _ in 0..600 {
        let name = *random.of(&["bc10", "vm-2cpu", "arm-big-little", "core-i5-2gen", "amd-laptop"]);
        let mut bytes = text(name).unwrap().as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => _ = bytes.remove(at),
                1 => bytes.insert(at, *random.of(b"0919-\"[]=x\n")),
                2 => bytes[at] = *random.of(b"0919-\"[]=x\n"),
                // Another number.
                _ => {
                    if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                        bytes[at + digit] = b'0' + random.below(10) as u8;
                    }
                }
            }
        }
        match from_text("damaged.toml", &String::from_utf8_lossy(&bytes)) {
            Err(e) => assert_eq!(e.to_string().lines().count(), 1, "{e}"),
            Ok(m) => {
                m.advance(SECOND);
                check(&m).unwrap_or_else(|e| panic!("{e}\n{}", String::from_utf8_lossy(&bytes)));
            }
        }
    }
}

/// What must hold whatever was done. Files that a fault took away are not looked for.
fn check(m: &Emulator) -> Result<(), String> {
    let text = |path: &str| root::text(m, path);
    let list = |path: &str| text(path).map(|t| crate::cpulist::parse(&t));
    let online = m.online();
    let mut every: Vec<u32> = online.iter().copied().chain(m.offline()).collect();
    every.sort_unstable();
    let same = |what: &str, a: Option<Vec<u32>>, b: &[u32]| match a {
        Some(a) if a != b => Err(format!("{what}: {a:?} instead of {b:?}")),
        _ => Ok(()),
    };
    same("online", list(&format!("{CPU}/online")), &online)?;
    same("offline", list(&format!("{CPU}/offline")), &m.offline())?;
    same("present", list(&format!("{CPU}/present")), &every)?;
    let nodes: Option<Vec<u32>> = m.list("sys/devices/system/node").ok().map(|names| {
        let lists = names.iter().filter_map(|n| list(&format!("sys/devices/system/node/{n}/cpulist")));
        let mut all: Vec<u32> = lists.flatten().collect();
        all.sort_unstable();
        all
    });
    if nodes.as_ref().is_some_and(|n| !n.is_empty()) {
        same("nodes", nodes, &online)?;
    }
    let release = rules::release(&(m as &dyn Root));
    let mut folders: Vec<String> = Vec::new();
    for name in m.list(&format!("{CPU}/cpufreq")).unwrap_or_default() {
        if name.starts_with("policy") {
            folders.push(format!("{CPU}/cpufreq/{name}"));
        }
    }
    folders.push(format!("{CPU}/cpu0/cpufreq"));
    for folder in folders {
        let number = |name: &str| -> Option<u32> { number(m, &format!("{folder}/{name}")) };
        let related = list(&format!("{folder}/related_cpus")).unwrap_or_default();
        let alive: Vec<u32> = related.iter().copied().filter(|c| online.contains(c)).collect();
        if alive.is_empty() {
            if release >= (5, 18) && text(&format!("{folder}/scaling_governor")).is_some() {
                return Err(format!("{folder}: readable without an online CPU"));
            }
            continue;
        }
        same(&format!("{folder}: affected_cpus"), list(&format!("{folder}/affected_cpus")), &alive)?;
        let names = [
            "cpuinfo_min_freq",
            "scaling_min_freq",
            "scaling_cur_freq",
            "scaling_max_freq",
            "cpuinfo_max_freq",
        ];
        let speeds: Vec<u32> = names.iter().filter_map(|n| number(n)).collect();
        if !speeds.is_sorted() {
            return Err(format!("{folder}: {names:?} are {speeds:?}"));
        }
        let levels = rules::levels(&(m as &dyn Root), &folder);
        if let Some(cur) = number("scaling_cur_freq")
            && !levels.is_empty()
            && !levels.contains(&cur)
        {
            return Err(format!("{folder}: {cur} is not a level of {levels:?}"));
        }
        let governor = text(&format!("{folder}/scaling_governor"));
        let governors = text(&format!("{folder}/scaling_available_governors"));
        if let (Some(governor), Some(governors)) = (governor, governors)
            && !governors.split_whitespace().any(|g| g == governor)
        {
            return Err(format!("{folder}: governor {governor} is none of {governors}"));
        }
    }
    for &cpu in &online {
        let siblings = list(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"));
        if siblings.is_some_and(|s| !s.contains(&cpu)) {
            return Err(format!("cpu{cpu} is not its own sibling"));
        }
    }
    let stat = text("proc/stat").unwrap_or_default();
    let lines = stat.lines().filter(|l| l.starts_with("cpu") && !l.starts_with("cpu ")).count();
    if !stat.is_empty() && lines != online.len() {
        return Err(format!("proc/stat has {lines} CPUs of {}", online.len()));
    }
    Ok(())
}

/// A small machine of any kind.
fn random_machine(random: &mut Random) -> String {
    let (mut packages, mut count, threads) = (1 + random.below(2), 1 + random.below(2), 1 + random.below(2));
    let kernel = *random.of(&["3.3.7", "4.9.0", "5.4.0", "5.15.0", "6.1.0", "6.12.0"]);
    let driver = *random.of(&[
        "acpi-cpufreq",
        "intel_pstate",
        "intel_cpufreq",
        "amd-pstate-epp",
        "amd-pstate",
        "cpufreq-dt",
        "none",
    ]);
    if kernel == "3.3.7" {
        (packages, count) = (1, 1);
    }
    let min = 100_000 * (1 + random.below(12));
    let max = min + 100_000 * random.below(30);
    let table = has_table(driver);
    let levels = random_levels(random, min, max);
    let nominal = match table {
        true => *random.of(&levels),
        false => min + (max - min) * random.below(11) / 10,
    };
    let mut out = format!(
        "name = \"random\"\nsummary = \"x\"\nkernel = \"{kernel}\"\narch = \"x86_64\"\nsource = \"x\"\nseed = {}\n\
         uptime_s = {}\n[topology]\npackages = {packages}\nnumbering = \"{}\"\nfirst_cpu_leaves = {}\nsource = \"x\"\n\
         [[core]]\ncount = {count}\nthreads = {threads}\nmin_khz = {min}\nmax_khz = {max}\nnominal_khz = {nominal}\nsource = \"x\"\n",
        random.below(1 << 40),
        random.below(100_000),
        random.of(&["threads-last", "threads-adjacent"]),
        random.below(2) == 0,
    );
    if table {
        out += &format!("levels_khz = {levels:?}\n");
    }
    out += &random_idle(random);
    out += "[cpuinfo]\nvendor = \"GenuineIntel\"\nflags = \"est hwp\"\nsource = \"x\"\n";
    if driver != "none" {
        out += &random_cpufreq(random, driver);
    }
    out += &driver_section(driver, min);
    out += &random_meters(random);
    out
}

fn random_levels(random: &mut Random, min: u64, max: u64) -> Vec<u64> {
    let mut levels = vec![min, max];
    for _ in 0..random.below(6) {
        levels.push(min + random.below(max - min + 1));
    }
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// The end of `[[core]]`, and `[cpuidle]`.
fn random_idle(random: &mut Random) -> String {
    let mut out = String::from("idle = [\n");
    for i in 0..random.below(4) {
        let (latency, residency) = (i * random.below(200), i * random.below(900));
        out += &format!(
            "{{ name = \"C{i}\", desc = \"x\", latency_us = {latency}, residency_us = {residency} }},\n"
        );
    }
    let driver = random.of(&["haltpoll", "intel_idle"]);
    out += &format!(
        "]\n[cpuidle]\ndriver = \"{driver}\"\ngovernor = \"menu\"\ngovernors = [\"menu\", \"teo\"]\nsource = \"x\"\n"
    );
    out
}

/// `[cpufreq]`.
fn random_cpufreq(random: &mut Random, driver: &str) -> String {
    let active = rules::is_active_driver(driver);
    let governors = match active {
        true => "[\"performance\", \"powersave\"]",
        false => {
            "[\"conservative\", \"ondemand\", \"userspace\", \"powersave\", \"performance\", \"schedutil\"]"
        }
    };
    let stats = has_table(driver);
    let domain = random.of(&["cpu", "core", "kind", "package"]);
    let mut out = format!(
        "[cpufreq]\ndriver = \"{driver}\"\ngovernor = \"powersave\"\ngovernors = {governors}\ndomain = \"{domain}\"\n\
         latency_ns = 1\nstats = {stats}\nhardware_speed = true\nsource = \"x\"\n"
    );
    if random.below(2) == 0 && !driver.starts_with("intel") {
        out += "boost = true\nown_boost = true\n";
    }
    if active || driver.starts_with("intel") {
        out += "preference = \"power\"\npreferences = [\"default\", \"power\"]\n";
    }
    out
}

/// Whether a driver has a table of levels.
fn has_table(driver: &str) -> bool {
    matches!(driver, "acpi-cpufreq" | "cpufreq-dt")
}

/// `[intel_pstate]` or `[amd_pstate]`.
fn driver_section(driver: &str, min_khz: u64) -> String {
    let status = if rules::is_active_driver(driver) { "active" } else { "passive" };
    if driver.starts_with("intel") {
        format!("[intel_pstate]\nstatus = \"{status}\"\nbias = 6\nsource = \"x\"\n")
    } else if driver.starts_with("amd") {
        format!(
            "[amd_pstate]\nstatus = \"{status}\"\ncppc = [200, 150, 50, 20]\nlowest_nonlinear_khz = {min_khz}\nsource = \"x\"\n"
        )
    } else {
        String::new()
    }
}

/// `[[rapl]]` and `[battery]`.
fn random_meters(random: &mut Random) -> String {
    let mut out = String::new();
    if random.below(2) == 0 {
        let range = 2 + random.below(1 << 40);
        out += &format!("[[rapl]]\nname = \"package\"\nmax_energy_range_uj = {range}\nsource = \"x\"\n");
        out += "limits = [{ name = \"long_term\", uw = 35000000, window_us = 976 }]\n";
        out += "[[rapl]]\nname = \"dram\"\nmax_energy_range_uj = 65532610987\nsource = \"x\"\n";
    }
    if random.below(3) == 0 {
        out += "[battery]\ndesign = 5000\nfull = 4000\nnow = 3000\nvoltage_uv = 12000000\nupdate_s = 5\nsource = \"x\"\n";
    }
    out
}

/// Right somewhere, or nowhere.
const VALUES: &[&str] = &[
    "0",
    "1",
    "performance",
    "powersave",
    "userspace",
    "ondemand",
    "conservative",
    "schedutil",
    "power",
    "balance_performance",
    "active",
    "passive",
    "off",
    "on",
    "disable",
    "guided",
    "forceoff",
    "n/a",
    "",
    "-5",
    "300000",
    "700000",
    "1234567",
    "99999999999999",
    "default",
    "teo",
    "enabled",
    "128",
    "30",
    "x",
];
const OPS: &[Op] = &[Op::Open, Op::Read, Op::Write, Op::List, Op::Any];

/// A write, a hotplug, some time or a fault; what it was.
fn disturb(m: &Emulator, cpus: u64, paths: &[String], random: &mut Random) -> String {
    let path = match paths.is_empty() {
        true => String::from("sys"),
        false => random.of(paths).clone(),
    };
    let cpu = random.below(cpus + 1) as u32;
    match random.below(20) {
        0..10 => {
            let value = random.of(VALUES);
            let result = m.write(&path, value.as_bytes());
            format!("{path} = '{value}': {result:?}")
        }
        10 | 11 => {
            let on = random.below(2) == 0;
            m.plug(cpu, on);
            format!("plug {cpu} {on}")
        }
        12 | 13 => {
            m.set_load(cpu, random.below(1100) as u32);
            let bits = 1 + random.below(45);
            let ns = random.below(1 << bits);
            m.advance(ns);
            format!("advance {ns}")
        }
        14 => {
            m.set_mains(random.below(2) == 0);
            "mains".into()
        }
        15 => {
            let op = *random.of(OPS);
            let nth = random.below(4);
            m.inject(Fault::Errno { pattern: "*freq*".into(), op, nth, errno: Errno::IO });
            "errno".into()
        }
        16 => {
            let after = random.below(5);
            m.inject(Fault::Unplug { cpu, after });
            format!("unplug {cpu} after {after}")
        }
        17 => {
            m.inject(Fault::Suspend { ns: random.below(1 << 40) });
            m.inject(Fault::Wrap { pattern: "*".into() });
            "suspend".into()
        }
        18 if random.below(40) == 0 => {
            m.inject(Fault::Vanish { pattern: path.clone(), after: random.below(3) });
            format!("vanish {path}")
        }
        _ => {
            m.inject(Fault::Ignore { pattern: path.clone() });
            format!("ignore {path}")
        }
    }
}

/// 10,000 sequences of writes, hotplug, time and faults on random machines: no panic, and the
/// tree holds together after every step.
#[test]
#[ignore = "long: make test runs it"]
fn ten_thousand_random_sequences() {
    let mut random = Random(20_260_101);
    for machine in 0..500 {
        let text = random_machine(&mut random);
        let m = from_text("random", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        check(&m).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let cpus = m.online().len() as u64;
        let mut log = Vec::new();
        for _ in 0..20 {
            let paths: Vec<String> = m.snapshot().into_keys().collect();
            for _ in 0..2 + random.below(6) {
                log.push(disturb(&m, cpus, &paths, &mut random));
            }
            m.clear_faults();
            check(&m).unwrap_or_else(|e| panic!("machine {machine}: {e}\n{text}\n{}", log.join("\n")));
        }
    }
}

/// However time is cut: every nanosecond of an online CPU is busy or idle, each policy's is at one
/// level, every zone's energy is the sum of power times time.
#[test]
fn counters_add_up_to_virtual_time() {
    let mut random = Random(7);
    for name in ["core-i5-2gen", "amd-server", "arm-big-little", "hybrid-laptop"] {
        let m = named(name).unwrap();
        let cpus = m.online().len() as u64;
        let mut work: Vec<u128> = vec![0; m.zone_power_uw().len()];
        for _ in 0..60 {
            m.set_load(random.below(cpus) as u32, random.below(1001) as u32);
            let ns = random.below(3 * SECOND);
            for (sum, uw) in work.iter_mut().zip(m.zone_power_uw()) {
                *sum += u128::from(uw) * u128::from(ns);
            }
            m.advance(ns);
        }
        let now = m.now_ns();
        for OnlineTimes { cpu, busy_ns, idle_ns } in m.cpu_times() {
            assert_eq!(busy_ns + idle_ns, now, "{name} cpu{cpu}");
        }
        for (policy, levels) in m.residency_ns() {
            if !levels.is_empty() {
                assert_eq!(levels.iter().map(|l| l.1).sum::<u64>(), now, "{name} policy{policy}");
            }
        }
        for (sum, uj) in work.iter().zip(m.zone_total_uj()) {
            assert_eq!(sum / 1_000_000_000, uj, "{name}");
        }
    }
}

#[test]
fn a_large_machine_is_made_and_read_quickly() {
    let start = Instant::now();
    let m = named("server-256").unwrap();
    let made = start.elapsed();
    let start = Instant::now();
    let mut bytes = 0;
    for cpu in m.list(CPU).unwrap().iter().filter(|n| n.starts_with("cpu") && n[3..].parse::<u32>().is_ok()) {
        for file in [
            "cpufreq/scaling_governor",
            "cpufreq/scaling_min_freq",
            "topology/core_id",
            "cpuidle/state1/time",
        ] {
            bytes += m.read(&format!("{CPU}/{cpu}/{file}")).unwrap().len();
        }
    }
    println!("made in {made:?}, {bytes} bytes read in {:?}", start.elapsed());
    assert!(bytes > 5000);
}

/// A package whose dies the kernel meters one by one, and which registers and memory both limit.
#[test]
fn dies_share_their_package_and_the_lowest_limit_holds() {
    let zone = |folder: &str, name: &str, uw: &str| {
        let at = format!("sys/class/powercap/{folder}");
        [
            (format!("{at}/name"), name.to_owned()),
            (format!("{at}/enabled"), "1".to_owned()),
            (format!("{at}/energy_uj"), "0".to_owned()),
            (format!("{at}/max_energy_range_uj"), "262143328850".to_owned()),
            (format!("{at}/constraint_0_power_limit_uw"), uw.to_owned()),
            (format!("{at}/constraint_0_max_power_uw"), "50000000".to_owned()),
        ]
    };
    let machine = |zones: &[[(String, String); 6]]| {
        let cpu = [(format!("{CPU}/present"), "0".to_owned()), (format!("{CPU}/cpu0/uevent"), String::new())];
        let files = zones.iter().flatten().cloned().chain(cpu);
        Emulator::from_files("test", files.map(|(path, text)| TreeEntry::File(path, text.into_bytes())))
    };
    let one = machine(&[zone("intel-rapl:0", "package-0", "0")]);
    let dies = machine(&[
        zone("intel-rapl:0", "package-0-die-0", "0"),
        zone("intel-rapl:1", "package-0-die-1", "0"),
    ]);
    for m in [&one, &dies] {
        m.set_load(0, 1000);
    }
    assert_eq!(one.zone_power_uw(), [dies.zone_power_uw().iter().sum::<u64>()]);
    let twins = machine(&[
        zone("intel-rapl:0", "package-0", "35000000"),
        zone("intel-rapl-mmio:0", "package-0", "13500000"),
    ]);
    twins.set_load(0, 1000);
    assert_eq!(twins.zone_power_uw(), [13_500_000, 13_500_000]);
}

/// A gauge keeps its sign and its units while time passes; only the adapter that fed the machine goes with the mains.
#[test]
fn gauges_keep_their_signs_and_ports_their_state() {
    let psy = "sys/class/power_supply";
    let files = [
        ("AC/type", "Mains"),
        ("AC/online", "1"),
        ("port/type", "USB"),
        ("port/online", "0"),
        ("BAT0/type", "Battery"),
        ("BAT0/status", "Charging"),
        ("BAT0/energy_now", "30000000"),
        ("BAT0/energy_full", "58000000"),
        ("BAT0/power_now", "7500000"),
        ("BAT0/current_now", "652000"),
        ("BAT0/voltage_now", "11500000"),
    ];
    let machine = |status: &str, online: &str, power: &str| {
        let cpu = [TreeEntry::File(format!("{CPU}/cpu0/uevent"), Vec::new())];
        let files = files.iter().map(|(path, text)| {
            let text = match *path {
                "BAT0/status" => status,
                "AC/online" => online,
                "BAT0/power_now" => power,
                _ => text,
            };
            TreeEntry::File(format!("{psy}/{path}"), text.as_bytes().to_vec())
        });
        Emulator::from_files("test", files.chain(cpu))
    };
    let file = |m: &Emulator, name: &str| show(m, &format!("{psy}/{name}"));
    let m = machine("Charging", "1", "7500000");
    assert_eq!((file(&m, "AC/online"), file(&m, "port/online")), ("1".into(), "0".into()));
    m.set_mains(false);
    assert_eq!((file(&m, "AC/online"), file(&m, "port/online")), ("0".into(), "0".into()));
    // Qualcomm's gauge: what is drawn is negative. Power and current are of one flow.
    let m = machine("Discharging", "0", "-7500000");
    m.advance(20 * SECOND);
    let (power, current): (i64, i64) =
        (file(&m, "BAT0/power_now").parse().unwrap(), file(&m, "BAT0/current_now").parse().unwrap());
    assert!(power < 0 && (power as f64 / 11.5 - current as f64).abs() < 2.0, "{power} {current}");
    m.set_mains(true);
    m.advance(20 * SECOND);
    assert!(file(&m, "BAT0/power_now").parse::<i64>().unwrap() > 0);
}

/// The hardware shows the old speed until a change is in force, by the table of its own machine.
#[test]
fn a_change_of_speed_takes_its_time() {
    let m = named("thinkpad-r51").unwrap();
    let file = |name: &str| format!("{CPU}/cpufreq/policy0/{name}");
    let shows = || show(&m, &file("cpuinfo_cur_freq"));
    m.write(&file("scaling_governor"), b"userspace").unwrap();
    m.write(&file("scaling_setspeed"), b"600000").unwrap();
    m.advance(2_891_000);
    assert_eq!(shows(), "1700000", "1700 to 600 MHz: 2892 us");
    m.advance(1_000);
    assert_eq!(shows(), "600000");
    m.write(&file("scaling_setspeed"), b"800000").unwrap();
    m.advance(831_999);
    assert_eq!(shows(), "600000", "600 to 800 MHz: 832 us");
    m.advance(1);
    assert_eq!(shows(), "800000");
    // Asked for what it runs at: nothing changes.
    m.write(&file("scaling_setspeed"), b"800000").unwrap();
    assert_eq!(shows(), "800000");
}

#[test]
fn a_table_of_changes_has_a_row_and_a_column_for_each_speed() {
    let text = text("thinkpad-r51").unwrap().replace("[735, 680, 692, 727, 832, 0],\n", "");
    assert!(from_text("x.toml", &text).is_err_and(|e| e.to_string().contains("cpufreq.change_us")));
}
