//! What users of power daemons have complained about, each a scene of the emulator. A test is named after its complaint:
//! project and number of the issue.

mod support;

use support::{CPU, Day, SECOND, SUPPLY, Scene};
use wattwise_daemon::brain::{BrainEvent, Client};
use wattwise_daemon::config::Config;
use wattwise_daemon::engine::{KernelInput, LogKind};
use wattwise_daemon::run::conflicts;
use wattwise_daemon::state::RememberedProfile;
use wattwise_emulator::{Fault, Op};
use wattwise_hw::root::Root as _;

const REASSERT: &str = "[daemon]\nforeign = \"reassert\"\n";
const WARN: &str = "[daemon]\nforeign = \"warn\"\n";

/// One `boost` that is EINVAL stopped PPD's start: the rest is done, and the file is named.
#[test]
fn omarchy_12805_one_file_that_fails_is_named_and_the_rest_is_done() {
    let scene = Scene::notebook("amd-laptop");
    let pattern = "*/policy11/boost".to_owned();
    scene.machine.inject(Fault::Errno { pattern, op: Op::Write, nth: 0, errno: rustix::io::Errno::INVAL });
    // Without a switch for all, each policy has its own.
    scene.machine.inject(Fault::Vanish { pattern: format!("{CPU}/cpufreq/boost"), after: 0 });
    let day = Day::remembered(&scene, "", Some("power-saver"));
    let refused = day.lines(LogKind::Refused);
    assert!(refused.iter().any(|r| r.contains("policy11/boost")), "{refused:?}");
    assert_eq!(refused.iter().filter(|r| r.contains("boost")).count(), 1, "{refused:?}");
    let boost = |p: u32| scene.text(&format!("{CPU}/cpufreq/policy{p}/boost"));
    assert_eq!((boost(10), boost(11), boost(12)), ("0".into(), "1".into(), "0".into()));
    assert_eq!((scene.epp(11), scene.epp(15)), ("power".into(), "power".into()));
}

/// Booted on battery: the battery's wishes never came.
#[test]
fn omarchy_12734_a_boot_on_battery_has_the_battery_profile() {
    let scene = Scene::notebook("amd-laptop");
    let day = Day::begin(&scene, "");
    assert_eq!(scene.epp(0), "balance_power");
    drop(day);
    // The battery's driver is loaded after the daemon has begun, and its event was missed.
    let scene = Scene::of("amd-laptop");
    scene.no_supplies();
    let mut day = Day::begin(&scene, "");
    assert_eq!(scene.epp(0), "balance_performance");
    scene.supply("BAT0", &[("type", "Battery"), ("status", "Discharging"), ("capacity", "50")]);
    day.pass(2 * SECOND);
    assert_eq!(scene.epp(0), "balance_power");
}

/// A crash at boot on a CPU that it did not know.
#[test]
fn lpmd_124_a_cpu_that_nobody_knows_is_no_reason_to_fail() {
    let scene = Scene::notebook("hybrid-laptop");
    let cpuinfo = scene.text("proc/cpuinfo").replace("154", "999").replace("GenuineIntel", "GenuineNovel");
    scene.put("proc/cpuinfo", &cpuinfo);
    let day = Day::remembered(&scene, "", Some("power-saver"));
    assert_eq!((scene.epp(0), scene.epp(15)), ("power".into(), "power".into()));
    assert_eq!(day.lines(LogKind::Refused), Vec::<&str>::new());
}

/// It took low-power efficient cores for efficient ones. The kernel has a list of each.
#[test]
fn lpmd_124_low_power_efficient_cores_are_no_efficient_ones() {
    use wattwise_hw::cpus::topology::{CoreKind, Topology};
    let scene = Scene::notebook("hybrid-laptop");
    scene.put("sys/devices/cpu_atom/cpus", "8-13\n");
    scene.put("sys/devices/cpu_lowpower/cpus", "14-15\n");
    let topology = Topology::read(&scene);
    let kind = |cpu: usize| topology.cpus[cpu].kind;
    for (cpu, expected) in [
        (0, CoreKind::Performance),
        (8, CoreKind::Efficient),
        (13, CoreKind::Efficient),
        (14, CoreKind::LowPowerEfficient),
        (15, CoreKind::LowPowerEfficient),
    ] {
        assert_eq!(kind(cpu), Some(expected), "CPU {cpu}");
    }
    let day = Day::remembered(&scene, "", Some("power-saver"));
    assert_eq!([0, 13, 15].map(|cpu| scene.epp(cpu)), ["power"; 3].map(String::from));
    assert_eq!(day.lines(LogKind::Refused), Vec::<&str>::new());
}

/// A silent fight with PPD.
#[test]
fn asusctl_205_a_fight_is_named_at_the_start_and_never_silent() {
    let scene = Scene::notebook("amd-laptop");
    scene.put("sys/fs/cgroup/system.slice/power-profiles-daemon.service/cgroup.procs", "7");
    let found = conflicts(&scene);
    assert_eq!(found.iter().map(|c| c.what.as_str()).collect::<Vec<_>>(), ["power-profiles-daemon"]);
    assert!(found[0].why.contains("systemctl stop power-profiles-daemon"), "{}", found[0].why);
    let mut day = Day::begin(&scene, REASSERT);
    // It writes again whenever we do.
    let mut rounds = 0;
    for _ in 0..600 {
        if scene.epp(0) != "performance" {
            scene.set_epp(0, "performance");
            rounds += 1;
        }
        day.pass(SECOND);
    }
    assert!((2..=12).contains(&rounds), "with growing pauses: {rounds} in 10 minutes");
    assert!(
        day.lines(LogKind::Foreign)[0]
            .contains("policy0 preference was 'balance_power' and is 'performance'")
    );
}

/// Does not work on Asahi's battery.
#[test]
fn watt_93_a_battery_with_odd_files_is_a_battery() {
    let scene = Scene::of("amd-laptop");
    scene.no_supplies();
    scene.supply("macsmc-ac", &[("type", "Mains"), ("online", "0")]);
    let files = [
        ("type", "Battery"),
        ("status", "Discharging"),
        ("health", "Unspecified failure"),
        ("charge_now", ""),
    ];
    scene.supply("macsmc-battery", &files);
    let _day = Day::begin(&scene, "");
    assert_eq!(scene.epp(0), "balance_power");
}

/// A trip at -274 C: the power limit became 0 W.
#[test]
fn thermald_550_a_sensor_that_cannot_be_is_no_heat_and_no_limit_is_written() {
    let scene = Scene::notebook("amd-laptop");
    scene.put("sys/class/thermal/thermal_zone9/type", "acpitz");
    scene.put("sys/class/thermal/thermal_zone9/temp", "-274000");
    scene.put("sys/class/thermal/thermal_zone8/type", "x86_pkg_temp");
    scene.put("sys/class/thermal/thermal_zone8/temp", "4294967295");
    let config = "[profile.cool]\n[[profile.cool.when]]\nhotter_than = 90.0\nbias = \"power\"\n";
    let mut day = Day::remembered(&scene, config, Some("cool"));
    day.pass(60 * SECOND);
    assert_eq!(scene.epp(0), "balance_performance", "nothing is hot");
    assert!(scene.machine.writes().iter().all(|(path, _)| !path.contains("power_limit")));
}

/// A port that feeds a phone counted as mains.
#[test]
fn omarchy_5966_a_port_that_feeds_a_phone_is_no_mains() {
    let scene = Scene::notebook("amd-laptop");
    scene.supply(
        "ucsi-source-psy-USBC000:001",
        &[("type", "USB"), ("online", "1"), ("scope", "Unknown"), ("status", "Discharging")],
    );
    let _day = Day::begin(&scene, "");
    assert_eq!(scene.epp(0), "balance_power");
}

/// The battery's profile was in force on mains after a re-plug: the battery says "Discharging" a while longer.
#[test]
fn tlp_887_a_replug_ends_on_mains() {
    let scene = Scene::notebook("amd-laptop");
    scene.plug(true);
    let mut day = Day::begin(&scene, "");
    for online in [false, true] {
        scene.plug(online);
        scene.supply("BAT0", &[("status", "Discharging")]);
        day.input(KernelInput::Supply);
        day.pass(SECOND / 10);
    }
    day.pass(10 * SECOND);
    assert_eq!(scene.epp(0), "balance_performance");
    scene.supply("BAT0", &[("status", "Charging")]);
    day.pass(60 * SECOND);
    assert_eq!(scene.epp(0), "balance_performance");
}

/// Three or four events within a second, and sysfs lags behind them.
#[test]
fn omarchy_5898_a_storm_is_waited_out_and_sysfs_read_again() {
    let scene = Scene::notebook("amd-laptop");
    let mut day = Day::begin(&scene, "");
    day.pass(25 * SECOND);
    let (looks, transitions) = (day.engine.counts().looks, day.engine.counts().writes);
    for _ in 0..4 {
        day.input(KernelInput::Supply);
        day.pass(SECOND / 5);
    }
    // Only now does the file say what the events were about.
    scene.plug(true);
    assert_eq!(day.engine.counts().looks - looks, 0, "not before the storm has ended");
    day.pass(3 * SECOND);
    assert_eq!(scene.epp(0), "balance_performance");
    assert_eq!(day.engine.counts().writes - transitions, 16, "once each");
}

/// Plugging in sends no event.
#[test]
fn omarchy_5412_mains_without_an_event_is_seen_within_half_a_minute() {
    let scene = Scene::notebook("amd-laptop");
    let mut day = Day::begin(&scene, "");
    day.pass(60 * SECOND);
    scene.plug(true);
    day.pass(31 * SECOND);
    assert_eq!(scene.epp(0), "balance_performance");
}

/// A file rewritten at every hint.
#[test]
fn lpmd_116_what_stands_is_not_written_again() {
    let scene = Scene::notebook("amd-laptop");
    let twin = "[profile.twin]\nbias = \"balanced-power\"\nsettings = [\"latency=50us\"]\n";
    let mut day = Day::begin(&scene, twin);
    day.pass(SECOND);
    let before = scene.machine.writes().len();
    for _ in 0..50 {
        day.input(KernelInput::Supply);
        day.pass(10 * SECOND);
    }
    day.event(BrainEvent::Choose("balanced".into()));
    assert_eq!(scene.machine.writes().len(), before);
    // Of a profile that wants the same and more, only what is more.
    day.event(BrainEvent::Choose("twin".into()));
    let since = scene.machine.writes()[before..].to_vec();
    assert!(since.len() == 16 && since.iter().all(|(path, _)| path.ends_with("latency_us")), "{since:?}");
}

/// The preference was lost on CPU 1 to 7 over a suspend, and "balanced" was said all the same.
#[test]
fn steamos_2383_tuned_789_after_a_resume_every_cpu_is_verified() {
    let scene = Scene::notebook("amd-laptop");
    let mut day = Day::begin(&scene, "");
    day.pass(SECOND);
    scene.machine.inject(Fault::Suspend { ns: 600 * SECOND });
    (1..8).for_each(|cpu| scene.set_epp(cpu, "performance"));
    day.now += 600 * SECOND;
    day.input(KernelInput::Resumed);
    let now: Vec<String> = (0..16).map(|cpu| scene.epp(cpu)).collect();
    assert_eq!(now, vec!["balance_power"; 16]);
    assert_eq!(day.lines(LogKind::Foreign), Vec::<&str>::new(), "nobody took them");
}

/// The profile was forgotten at a reboot.
#[test]
fn cosmic_epoch_3370_pop_3739_the_profile_is_remembered_over_a_boot() {
    let folder = tempfile::tempdir().expect("a folder");
    RememberedProfile::new(&folder.path().join("wattwise")).remember("power-saver").expect("written");
    let scene = Scene::notebook("amd-laptop");
    let remembered = RememberedProfile::new(&folder.path().join("wattwise")).profile();
    let mut day = Day::remembered(&scene, "", remembered.as_deref());
    assert_eq!((scene.epp(3).as_str(), day.engine.brain().chosen()), ("power", "power-saver"));
}

/// The governor performance overwrites the preference, and leaves it behind.
#[test]
fn gamemode_419_the_preference_returns_with_the_governor() {
    let scene = Scene::notebook("amd-laptop");
    let mut day = Day::begin(&scene, "");
    day.pass(SECOND);
    let governor = format!("{CPU}/cpufreq/policy0/scaling_governor");
    scene.write(&governor, b"performance").expect("taken");
    assert_eq!(scene.epp(0), "performance", "the kernel's own doing");
    day.pass(60 * SECOND);
    scene.write(&governor, b"powersave").expect("taken");
    // amd-pstate puts its own default there; other kernels leave performance.
    scene.set_epp(0, "performance");
    day.pass(60 * SECOND);
    assert_eq!(scene.epp(0), "balance_power");
}

/// A charger that is always online.
#[test]
fn tlp_283_a_discharging_battery_beside_an_offline_mains_is_battery() {
    let scene = Scene::notebook("amd-laptop");
    scene.supply("wireless", &[("type", "Wireless"), ("online", "1")]);
    let _day = Day::begin(&scene, "");
    assert_eq!(scene.epp(0), "balance_power");
}

/// "Not charging" was taken for battery: the charge's limit is reached.
#[test]
fn power_profile_switcher_4_not_charging_is_mains() {
    let scene = Scene::notebook("amd-laptop");
    scene.supply("AC", &[("online", "1")]).supply("BAT0", &[("status", "Not charging")]);
    let _day = Day::begin(&scene, "");
    assert_eq!(scene.epp(0), "balance_performance");
}

/// A watch on a file of sysfs dies when the kernel drops its inode: a new CPU is followed all the same.
#[test]
fn tuned_753_a_cpu_that_goes_and_comes_back_is_followed() {
    let scene = Scene::notebook("amd-laptop");
    let mut day = Day::begin(&scene, WARN);
    day.pass(SECOND);
    let path = format!("{CPU}/cpufreq/policy5/energy_performance_preference");
    day.pass(120 * SECOND);
    let opens = scene.machine.opens(&path);
    day.pass(600 * SECOND);
    assert_eq!(scene.machine.opens(&path), opens, "descriptors stay open");
    scene.machine.plug(5, false);
    day.input(KernelInput::Cpus);
    day.pass(60 * SECOND);
    scene.machine.plug(5, true);
    scene.set_epp(5, "performance");
    day.input(KernelInput::Cpus);
    assert_eq!(scene.epp(5), "balance_power", "lost while it was away");
    day.pass(60 * SECOND);
    scene.set_epp(5, "power");
    day.pass(60 * SECOND);
    assert_eq!(day.lines(LogKind::Foreign).len(), 1, "{:?}", day.log);
}

/// Dynamic preferences of amd-pstate: the kernel owns the file, and it is said.
#[test]
fn amd_pstate_dynamic_epp_is_owned_by_the_kernel() {
    let text = wattwise_emulator::text("amd-laptop").expect("bundled");
    let text = text.replace("prefcore = \"enabled\"", "prefcore = \"enabled\"\ndynamic_epp = \"enabled\"");
    let machine = wattwise_emulator::from_text("dynamic.toml", &text).expect("a machine");
    let scene = Scene { machine, ..Scene::notebook("amd-laptop") };
    let day = Day::remembered(&scene, "", Some("power-saver"));
    let refused = day.lines(LogKind::Refused);
    assert!(refused.iter().any(|r| r.contains("owned by the kernel")), "{refused:?}");
    assert_eq!(refused.len(), 1, "said once, not for each CPU: {refused:?}");
    assert_eq!(scene.text(&format!("{CPU}/cpufreq/policy0/boost")), "0", "the rest is done");
}

/// A user's own write stays until the profile changes; at the end it stays as well.
#[test]
fn a_foreign_write_is_yielded_to() {
    let scene = Scene::notebook("amd-laptop");
    let mut day = Day::begin(&scene, "");
    scene.set_epp(3, "performance");
    day.pass(60 * SECOND);
    assert_eq!((scene.epp(3), day.lines(LogKind::Foreign).len()), ("performance".into(), 1));
    day.end();
    assert_eq!((scene.epp(3), scene.epp(4)), ("performance".into(), "balance_performance".into()));
}

/// sysfs turned read-only: named, and no end.
#[test]
fn a_read_only_sysfs_is_named_and_no_reason_to_end() {
    let scene = Scene::notebook("amd-laptop");
    let errno = rustix::io::Errno::ROFS;
    scene.machine.inject(Fault::Errno { pattern: "sys/*".into(), op: Op::Write, nth: 0, errno });
    let mut day = Day::begin(&scene, "");
    day.pass(120 * SECOND);
    assert!(day.lines(LogKind::Refused).iter().any(|r| r.contains("policy0")), "{:?}", day.log);
    // Whoever asks what is in force is told as well, for as long as it is so.
    assert!(
        day.engine.refused().iter().any(|(what, _)| what.contains("policy0")),
        "{:?}",
        day.engine.refused()
    );
    assert_eq!(day.engine.decision().profile, "balanced");
}

/// A measurement has the machine as it was, and its end puts the profile back in force.
#[test]
fn a_measurement_holds_the_daemon_off() {
    let scene = Scene::notebook("amd-laptop");
    let before = scene.machine.snapshot();
    let mut day = Day::remembered(&scene, "", Some("power-saver"));
    assert_ne!(scene.machine.snapshot(), before);
    day.event(BrainEvent::Pause(Client::Socket(1), "wattwise ab".into()));
    assert_eq!(scene.machine.snapshot(), before);
    day.pass(120 * SECOND);
    assert_eq!(scene.machine.snapshot(), before);
    day.event(BrainEvent::Gone(Client::Socket(1)));
    assert_eq!(scene.epp(0), "power");
}

/// Another configuration comes into force without a gap: what both want is not written.
#[test]
fn a_reload_has_no_gap() {
    let scene = Scene::notebook("amd-laptop");
    let with = |epp: &str| format!("[profile.mine]\nsettings = [\"epp={epp}\", \"latency=50us\"]\n");
    let mut day = Day::remembered(&scene, &with("power"), Some("mine"));
    let before = scene.machine.writes().len();
    let config = Config::from_text("t", &with("balance_power")).expect("no mistake");
    day.event(BrainEvent::Config(Box::new(config)));
    let since = scene.machine.writes()[before..].to_vec();
    assert!(since.iter().all(|(_, value)| value == "balance_power") && since.len() == 16, "{since:?}");
}

/// Every built-in profile on every emulated machine: no fault, and the originals come back.
#[test]
fn every_profile_on_every_machine_leaves_what_it_found() {
    for name in wattwise_emulator::names().filter(|n| *n != "server-256") {
        for profile in Config::builtin().profiles.keys() {
            let scene = Scene::of(name);
            let before = scene.machine.snapshot();
            let mut day = Day::remembered(&scene, "", Some(profile));
            day.pass(2 * SECOND);
            scene.machine.set_mains(true);
            day.input(KernelInput::Supply);
            day.pass(10 * SECOND);
            let restored = day.end();
            assert!(restored.failed.is_empty(), "{name} {profile}: {restored}");
            let after = scene.machine.snapshot();
            let differ: Vec<_> =
                before.iter().filter(|(path, value)| after.get(*path) != Some(value)).collect();
            assert!(differ.is_empty(), "{name} {profile}: {differ:?}");
        }
    }
}

#[test]
fn the_supply_folder_of_scenes_is_their_own() {
    let scene = Scene::notebook("amd-laptop");
    assert_eq!(scene.list(SUPPLY).expect("a folder"), ["AC", "BAT0"]);
}
