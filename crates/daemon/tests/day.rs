//! A notebook's day in virtual time, and policies that are followed.

mod support;

use support::{CPU, Day, SECOND, Scene};
use wattwise_daemon::config::Config;
use wattwise_daemon::engine::{KernelInput, LogKind};
use wattwise_emulator::Fault;

/// What happens, at which second: made up of what notebooks meet, no recording; the idle hours between are short.
const DAY: &[(u64, Happens)] = &[
    (5, Happens::Load(300)),
    (60, Happens::Mains(true)),
    (61, Happens::Mains(false)),
    (62, Happens::Mains(true)),
    (300, Happens::Load(900)),
    (420, Happens::Load(50)),
    (600, Happens::Mains(false)),
    (700, Happens::Suspend(1800)),
    (720, Happens::UsbC(true)),
    (900, Happens::Load(600)),
    (960, Happens::UsbC(false)),
    (1000, Happens::Cpu(3, false)),
    (1010, Happens::Cpu(2, false)),
    (1100, Happens::Cpu(3, true)),
    (1101, Happens::Cpu(2, true)),
    (1200, Happens::Phone),
    (1300, Happens::Suspend(7200)),
    (1310, Happens::Mains(true)),
    (1320, Happens::Charge(15)),
    (1330, Happens::Mains(false)),
    (1400, Happens::Load(0)),
    (1500, Happens::Mains(true)),
];
const END: u64 = 1600;

#[derive(Clone, Copy)]
enum Happens {
    Mains(bool),
    /// A charger at a port that sends no event.
    UsbC(bool),
    /// A phone is charged from a port.
    Phone,
    /// For so many seconds.
    Suspend(u64),
    Cpu(u32, bool),
    /// In thousandths, on every CPU.
    Load(u32),
    Charge(u32),
}

fn happen(scene: &Scene, day: &mut Day<'_>, what: Happens) {
    let ucsi = "ucsi-source-psy-USBC000:001";
    match what {
        Happens::Mains(online) => {
            scene.plug(online);
            (0..3).for_each(|_| day.input(KernelInput::Supply));
        }
        Happens::UsbC(online) => {
            scene.supply(ucsi, &[("type", "USB"), ("online", if online { "1" } else { "0" })]);
            let status = if online { "Charging" } else { "Discharging" };
            scene.supply("BAT0", &[("status", status)]);
        }
        Happens::Phone => {
            scene.supply(ucsi, &[("type", "USB"), ("online", "1"), ("status", "Discharging")]);
            day.input(KernelInput::Supply);
        }
        Happens::Suspend(s) => {
            scene.machine.inject(Fault::Suspend { ns: s * SECOND });
            day.now += s * SECOND;
            day.input(KernelInput::Resumed);
        }
        Happens::Cpu(cpu, online) => {
            scene.machine.plug(cpu, online);
            day.input(KernelInput::Cpus);
        }
        Happens::Load(permille) => {
            let loads: Vec<(u32, u32)> = scene.machine.online().iter().map(|c| (*c, permille)).collect();
            scene.machine.set_loads(&loads);
        }
        Happens::Charge(percent) => _ = scene.supply("BAT0", &[("capacity", &percent.to_string())]),
    }
}

#[test]
fn a_notebooks_day_under_every_profile_has_no_fault_and_ends_as_it_began() {
    for name in ["amd-laptop", "hybrid-laptop", "core-i5-2gen"] {
        for profile in Config::builtin().profiles.keys() {
            let scene = Scene::notebook(name);
            let before = scene.machine.snapshot();
            let mut day = Day::remembered(&scene, "", Some(profile));
            let mut at = 0;
            for (second, what) in DAY {
                day.pass((second - at) * SECOND);
                at = *second;
                happen(&scene, &mut day, *what);
            }
            day.pass((END - at) * SECOND);
            let followed = ["auto", "powersaving"].contains(&profile.as_str());
            assert_eq!(day.engine.counts().failed, 0, "{name} {profile}: {:?}", day.lines(LogKind::Refused));
            assert_eq!(
                day.lines(LogKind::Foreign),
                Vec::<&str>::new(),
                "{name} {profile}: nobody else wrote"
            );
            // Each change has a line that says why; those of a followed policy are counted.
            let writes = scene.machine.writes().len() as u64;
            let told = day.lines(LogKind::Wrote).len() as u64;
            assert_eq!(day.engine.counts().writes, writes, "{name} {profile}");
            assert!(
                if followed { told <= writes } else { told == writes },
                "{name} {profile}: {told} of {writes}"
            );
            assert!(day.lines(LogKind::Wrote).iter().all(|line| line.contains('(')), "{name} {profile}");
            let refused = scene.machine.refused();
            assert!(refused.is_empty(), "{name} {profile}: {refused:?}");
            let restored = day.end();
            assert!(restored.failed.is_empty(), "{name} {profile}: {restored}");
            let after = scene.machine.snapshot();
            let differ: Vec<_> = before.iter().filter(|(path, v)| after.get(*path) != Some(v)).collect();
            assert!(differ.is_empty(), "{name} {profile}: {differ:?}");
        }
    }
}

/// FreeBSD's rule by its published step response: with one busy core from the lowest level to the highest, adaptive needs
/// 0.5 s up and 2.75 s down on its levels; here: up at once where it is busy, down in steps where it is not.
#[test]
fn a_followed_powerd_goes_up_under_load_and_down_without() {
    let scene = Scene::of("core-i5-2gen");
    let config = "[profile.p]\nspeed = \"powerd\"\n";
    let mut day = Day::remembered(&scene, config, Some("p"));
    assert_eq!(day.engine.followed(), Some("powerd"), "{:?}", day.log);
    let speed = |file: &str| scene.text(&format!("{CPU}/cpufreq/policy0/{file}")).parse::<u32>().unwrap_or(0);
    let asked = || {
        if scene.governor(0) == "userspace" { speed("scaling_setspeed") } else { speed("scaling_max_freq") }
    };
    let (lowest, highest) = (speed("cpuinfo_min_freq"), speed("cpuinfo_max_freq"));
    let all = |permille| scene.machine.online().iter().map(|c| (*c, permille)).collect::<Vec<_>>();
    scene.machine.set_loads(&all(0));
    day.pass(60 * SECOND);
    assert_eq!(asked(), lowest);
    scene.machine.set_loads(&all(1000));
    day.pass(SECOND);
    assert_eq!(asked(), highest);
    scene.machine.set_loads(&all(0));
    day.pass(SECOND);
    day.pass(60 * SECOND);
    assert_eq!(asked(), lowest);
    let restored = day.end();
    assert!(restored.failed.is_empty() && scene.governor(0) != "userspace", "{restored}");
}

/// A limit beside a followed policy is the policy's range, whatever it would like.
#[test]
fn a_followed_policy_keeps_to_the_limits_beside_it() {
    for machine in ["core-i5-2gen", "hybrid-laptop"] {
        let scene = Scene::of(machine);
        let config = "[profile.p]\nspeed = \"powerd\"\nsettings = [\"max=60%\"]\n";
        let mut day = Day::remembered(&scene, config, Some("p"));
        let loads: Vec<(u32, u32)> = scene.machine.online().iter().map(|c| (*c, 1000)).collect();
        scene.machine.set_loads(&loads);
        day.pass(10 * SECOND);
        let khz =
            |file: &str| scene.text(&format!("{CPU}/cpufreq/policy0/{file}")).parse::<f64>().unwrap_or(0.0);
        let share = khz("scaling_max_freq") / khz("cpuinfo_max_freq");
        assert!((0.5..=0.63).contains(&share), "{machine}: {share} {:?}", day.log);
        assert!(khz("scaling_cur_freq") <= khz("scaling_max_freq"), "{machine}");
        assert_eq!(day.engine.counts().failed, 0, "{machine}: {:?}", day.lines(LogKind::Refused));
    }
}

/// A policy that counts ticks is asked at each.
#[test]
fn burst_is_asked_at_each_tick_and_stays_within_the_range() {
    let scene = Scene::of("core-i5-2gen");
    let mut day = Day::remembered(&scene, "[profile.b]\nspeed = \"burst\"\n", Some("b"));
    assert_eq!(day.engine.followed(), Some("burst"), "{:?}", day.log);
    let loads: Vec<(u32, u32)> = scene.machine.online().iter().map(|c| (*c, 1000)).collect();
    scene.machine.set_loads(&loads);
    day.pass(SECOND);
    let highest = scene.text(&format!("{CPU}/cpufreq/policy0/cpuinfo_max_freq"));
    let asked =
        ["scaling_setspeed", "scaling_max_freq"].map(|f| scene.text(&format!("{CPU}/cpufreq/policy0/{f}")));
    assert!(asked.contains(&highest), "{asked:?}");
}

/// Policies that only the kernel can run are its governors, or are refused with what puts them in force.
#[test]
fn policies_with_the_schedulers_hooks_are_the_kernels() {
    for (machine, policy, governor) in [
        ("skylake-server-passive", "schedutil", Some("schedutil")),
        ("core-i5-2gen", "ondemand:up=90", Some("ondemand")),
        ("amd-laptop", "schedutil", None),
        ("core-i5-2gen", "hwp", None),
        ("amd-laptop", "amd-pstate-epp:epp=power", Some("powersave")),
    ] {
        let scene = Scene::of(machine);
        let day = Day::remembered(&scene, &format!("[profile.x]\nspeed = \"{policy}\"\n"), Some("x"));
        assert_eq!(day.engine.followed(), None, "{machine} {policy}");
        let refused = day.lines(LogKind::Refused);
        match governor {
            Some(governor) => {
                assert_eq!(scene.governor(0), governor, "{machine} {policy}: {refused:?}");
                assert_eq!(refused, Vec::<&str>::new(), "{machine} {policy}");
            }
            None => assert!(refused[0].contains("wattwise set --"), "{machine} {policy}: {refused:?}"),
        }
    }
    let scene = Scene::of("core-i5-2gen");
    let day = Day::remembered(&scene, "[profile.x]\nspeed = \"ondemand:up=90\"\n", Some("x"));
    let tunable = |at: &str| scene.text(&format!("{CPU}/{at}/ondemand/up_threshold"));
    assert!([tunable("cpufreq"), tunable("cpufreq/policy0")].contains(&"90".to_owned()), "{:?}", day.log);
}

/// What no hardware here listens to is said, with the reason, and the rest is done.
#[test]
fn no_authority_is_said_and_the_rest_done() {
    let scene = Scene::of("core-i5-2gen");
    let config = "[profile.x]\nsettings = [\"epp=power\", \"latency=100us\"]\n";
    let day = Day::remembered(&scene, config, Some("x"));
    let refused = day.lines(LogKind::Refused);
    assert!(refused.len() == 1 && refused[0].contains("no authority"), "{refused:?}");
    assert_eq!(scene.text(&format!("{CPU}/cpu0/power/pm_qos_resume_latency_us")), "100");
}

/// Two wishes for one thing: a governor would take the word from the policy that is followed.
#[test]
fn a_governor_beside_a_followed_policy_is_refused_and_said() {
    let scene = Scene::of("core-i5-2gen");
    let config = "[profile.p]\nspeed = \"powerd\"\nsettings = [\"governor=performance\", \"max=60%\"]\n";
    let day = Day::remembered(&scene, config, Some("p"));
    assert_eq!((scene.governor(0).as_str(), day.engine.followed()), ("userspace", Some("powerd")));
    let refused = day.lines(LogKind::Refused);
    assert!(
        refused.len() == 1 && refused[0].starts_with("governor performance: powerd is followed"),
        "{refused:?}"
    );
}
