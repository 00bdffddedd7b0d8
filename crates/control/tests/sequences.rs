//! Settings on emulated machines: what is refused, what is undone, and that originals always come back.

use std::path::Path;
use wattwise_control::set::journal;
use wattwise_control::set::journal::OpenJournal;
use wattwise_control::set::original::Restored;
use wattwise_control::set::original::put_back_all;
use wattwise_control::set::plan::{Inventory, PlanError, Setting, plan};
use wattwise_control::set::transaction::{Change, Transaction, TransactionError};
use wattwise_emulator::{Emulator, Fault, Op};
use wattwise_figure::Random;
use wattwise_figure::setting::{IDLE_GOVERNOR, PROFILE};
use wattwise_figure::units::Speed;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::Root;

fn machine(name: &str) -> Emulator {
    wattwise_emulator::named(name).expect(name)
}

/// Plans and applies; leaves it in force.
fn set(m: &Emulator, journal: &Path, cpus: &CpuSet, settings: &[Setting]) -> Result<(), String> {
    let inventory = Inventory::read(m);
    let plan = plan(m, &inventory, cpus, settings).map_err(|e| e.to_string())?;
    if let Some(refused) = plan.steps.iter().find_map(|s| s.verdict.as_ref().err()) {
        return Err(refused.rule.to_owned());
    }
    let changes: Vec<Change> = plan.steps.iter().map(|s| s.change.clone()).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let made = plan.apply(m, journal, "test", &|| None).map_err(|e| e.to_string())?.expect("changes");
    // What is reported done is in force.
    for outcome in made.outcomes() {
        let places = |c: &Change| {
            std::iter::once(c.target.clone())
                .chain(c.elsewhere.clone().map(|(target, _)| target))
                .find(|t| t.to_string() == outcome.target)
        };
        let target = changes.iter().find_map(places).expect("asked for");
        // A CPU that the same set took offline has no files any more.
        if let Ok(now) = target.read(m) {
            assert_eq!(now, outcome.got, "{outcome:?}");
        }
    }
    made.keep();
    Ok(())
}

/// What `restore` does.
fn restore(m: &Emulator, journal: &Path) -> Vec<Restored> {
    let listing = journal::list(journal).expect("a folder of journals");
    assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
    let all = put_back_all(m, listing.journals.iter().map(OpenJournal::layer));
    for (found, restored) in listing.journals.into_iter().filter(|f| !f.held).zip(&all) {
        found.finish(restored).expect("writable");
    }
    all
}

fn all(m: &Emulator) -> CpuSet {
    m.online().into_iter().collect()
}

#[test]
fn one_failing_write_undoes_those_before_it() {
    let journal = tempfile::tempdir().expect("a folder");
    let settings = [
        Setting::Governor("powersave".into()),
        Setting::Limits(Some(Speed::Percent(40.0)), Some(Speed::Percent(60.0))),
    ];
    let clean = machine("core-i5-2gen");
    set(&clean, journal.path(), &all(&clean), &settings).expect("applies");
    let writes = clean.writes().len() as u64;
    assert!(writes >= 4, "{writes}");
    restore(&clean, journal.path());
    for nth in 1..=writes {
        for errno in [rustix::io::Errno::BUSY, rustix::io::Errno::IO, rustix::io::Errno::ACCESS] {
            let m = machine("core-i5-2gen");
            let before = m.snapshot();
            m.inject(Fault::Errno { pattern: "sys/*".into(), op: Op::Write, nth, errno });
            let error = set(&m, journal.path(), &all(&m), &settings).expect_err("a write fails");
            assert!(error.contains("put back") || nth == 1, "{error}");
            assert_eq!(
                differing(&before, &m.snapshot()),
                Vec::<String>::new(),
                "write {nth} failed with {errno:?}"
            );
            assert!(
                journal::list(journal.path()).expect("folder").journals.is_empty(),
                "nothing is left to restore"
            );
        }
    }
}

/// One set puts a governor in force and sets its tunables, which are not there before.
#[test]
fn a_governor_comes_with_its_tunables_and_goes_with_them() {
    let journal = tempfile::tempdir().expect("a folder");
    let settings = |value: &str| {
        [Setting::Governor("ondemand".into()), Setting::Tunable("up_threshold".into(), value.into())]
    };
    let shown = |m: &Emulator| -> Vec<String> {
        let snapshot = m.snapshot();
        let files = snapshot.iter().filter(|(path, _)| path.ends_with("ondemand/up_threshold"));
        files.map(|(_, text)| String::from_utf8_lossy(text).trim().to_owned()).collect()
    };
    // Two drivers keep them once for all policies, the third for each of its two.
    for (name, folders) in [("bc10", 1), ("skylake-server-passive", 1), ("arm-big-little", 2)] {
        let clean = machine(name);
        let before = clean.snapshot();
        assert!(shown(&clean).is_empty(), "{name} begins without ondemand");
        set(&clean, journal.path(), &all(&clean), &settings("77")).expect("applies");
        assert_eq!(shown(&clean), vec!["77"; folders], "{name}");
        let restored = restore(&clean, journal.path());
        assert!(restored[0].failed.is_empty() && restored[0].foreign.is_empty(), "{name}: {restored:?}");
        assert_eq!(differing(&before, &clean.snapshot()), Vec::<String>::new(), "{name}");

        let error = set(&clean, journal.path(), &all(&clean), &settings("177")).expect_err("out of range");
        assert!(error.contains("outside the range"), "{error}");
        assert_eq!(differing(&before, &clean.snapshot()), Vec::<String>::new(), "{name}");

        for nth in 1..=clean.writes().len() as u64 {
            let m = machine(name);
            m.inject(Fault::Errno {
                pattern: "sys/*".into(),
                op: Op::Write,
                nth,
                errno: rustix::io::Errno::IO,
            });
            if set(&m, journal.path(), &all(&m), &settings("77")).is_ok() {
                // The write that fails is one of `restore`, which tries again.
                restore(&m, journal.path());
                restore(&m, journal.path());
            }
            assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new(), "{name}: write {nth}");
        }
    }
}

/// The tunables of the governor that was in force go with it: they come back with it, as they were.
#[test]
fn a_governor_comes_back_with_its_tunables() {
    let journal = tempfile::tempdir().expect("a folder");
    for name in ["bc10", "skylake-server-passive", "arm-big-little"] {
        let m = machine(name);
        let governor = |g: &str| [Setting::Governor(g.into())];
        set(&m, journal.path(), &all(&m), &governor("ondemand")).expect("applies");
        let path = m.snapshot().into_keys().find(|p| p.ends_with("ondemand/up_threshold")).expect("in force");
        m.write(&path, b"60").expect("its owner's choice");
        let before = m.snapshot();
        let own = tempfile::tempdir().expect("a folder");
        set(&m, own.path(), &all(&m), &governor("powersave")).expect("applies");
        assert!(!m.snapshot().contains_key(&path), "{name}: powersave has no tunables");
        restore(&m, own.path());
        assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new(), "{name}");
        restore(&m, journal.path());
    }
}

#[test]
fn what_cannot_be_put_back_is_named_and_the_rest_is() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("skylake-server-passive");
    let before = m.snapshot();
    set(&m, journal.path(), &all(&m), &[Setting::Governor("powersave".into())]).expect("applies");
    let stuck = "sys/devices/system/cpu/cpufreq/policy7/scaling_governor";
    m.inject(Fault::Errno { pattern: stuck.into(), op: Op::Write, nth: 0, errno: rustix::io::Errno::IO });
    let restored = restore(&m, journal.path());
    assert_eq!(restored[0].failed.len(), 1, "{restored:?}");
    assert!(restored[0].failed[0].0.contains("policy7") && restored[0].failed[0].1.contains("EIO"));
    let now = m.snapshot();
    let stayed: Vec<&String> = before.keys().filter(|k| before[*k] != now[*k]).collect();
    assert_eq!(stayed, [stuck]);
    // The journal stays, and a later restore ends the work.
    m.clear_faults();
    assert!(restore(&m, journal.path())[0].failed.is_empty());
    assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new());
}

#[test]
fn a_value_that_somebody_else_changed_stays_theirs() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("core-i5-2gen");
    set(&m, journal.path(), &all(&m), &[Setting::Governor("powersave".into())]).expect("applies");
    let theirs = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    m.write(theirs, b"conservative").expect("another program writes");
    let restored = restore(&m, journal.path());
    assert_eq!(restored[0].foreign, [("policy0 governor".to_owned(), "conservative".to_owned())]);
    assert_eq!(wattwise_hw::root::text(&m, theirs).as_deref(), Some("conservative"));
}

/// A preference that a newer transaction could not yet put
/// back looked like somebody else's to the older one, which gave up its original.
#[test]
fn an_older_original_waits_for_a_newer_failure() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("amd-laptop");
    let before = m.snapshot();
    set(&m, journal.path(), &all(&m), &[Setting::Epp("balance_power".into())]).expect("applies");
    set(&m, journal.path(), &all(&m), &[Setting::Governor("performance".into())]).expect("applies");
    m.inject(Fault::Errno { pattern: "sys/*".into(), op: Op::Write, nth: 0, errno: rustix::io::Errno::BUSY });
    assert!(restore(&m, journal.path()).iter().all(|r| r.foreign.is_empty() && !r.failed.is_empty()));
    m.clear_faults();
    restore(&m, journal.path());
    assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new());
}

/// Found by the random sequences (amd-laptop, seed 1512): of two transactions the newer one waits for a CPU to come
/// back, the older one is put back and done; the newer one's next try must not bring values of the time between.
#[test]
fn a_value_between_two_transactions_does_not_return() {
    let journal = tempfile::tempdir().expect("a folder");
    let (m, twin) = (machine("amd-laptop"), machine("amd-laptop"));
    let even: CpuSet = all(&m).iter().filter(|c| c % 2 == 0).collect();
    set(&m, journal.path(), &even, &[Setting::Epp("balance_power".into())]).expect("applies");
    set(&m, journal.path(), &all(&m), &[Setting::Limits(Some(Speed::Percent(67.0)), None)]).expect("applies");
    m.plug(15, false);
    twin.plug(15, false);
    for _ in 0..3 {
        restore(&m, journal.path());
    }
    assert_eq!(differing(&twin.snapshot(), &m.snapshot()), Vec::<String>::new());
}

#[test]
fn a_panic_puts_everything_back() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("amd-server");
    let before = m.snapshot();
    let inventory = Inventory::read(&m);
    let cpus = all(&m);
    let governor = inventory.cpufreq.policies()[0].governor.clone().expect("a governor");
    let other =
        inventory.cpufreq.policies()[0].governors.iter().find(|g| **g != governor).expect("another").clone();
    let steps = plan(&m, &inventory, &cpus, &[Setting::Governor(other.clone())]).expect("plans");
    let changes: Vec<Change> = steps.steps.iter().map(|s| s.change.clone()).collect();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = Transaction::apply(&m, journal.path(), "test", &changes, &steps.beside, &|| None)
            .expect("applies");
        let now = Inventory::read(&m);
        assert!(
            now.cpufreq.policies().iter().all(|p| p.governor.as_ref() == Some(&other)),
            "{other} is in force"
        );
        std::panic::resume_unwind(Box::new("something else goes wrong"));
    }));
    assert!(panicked.is_err());
    assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new());
}

#[test]
fn a_driver_that_ignores_a_write_is_seen() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("core-i5-2gen");
    m.inject(Fault::Ignore { pattern: "*/scaling_max_freq".into() });
    let inventory = Inventory::read(&m);
    let cpus = all(&m);
    let steps = plan(&m, &inventory, &cpus, &[Setting::Limits(None, Some(Speed::Min))]).expect("plans");
    let changes: Vec<Change> = steps.steps.iter().map(|s| s.change.clone()).collect();
    let made =
        Transaction::apply(&m, journal.path(), "test", &changes, &steps.beside, &|| None).expect("no error");
    assert!(made.outcomes().iter().all(|o| o.got == o.old && o.got != o.asked), "{:?}", made.outcomes());
}

#[test]
fn an_original_that_cannot_be_read_stops_everything() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("core-i5-2gen");
    let inventory = Inventory::read(&m);
    let cpus = all(&m);
    let steps = plan(&m, &inventory, &cpus, &[Setting::Governor("powersave".into())]).expect("plans");
    let changes: Vec<Change> = steps.steps.iter().map(|s| s.change.clone()).collect();
    m.inject(Fault::Unplug { cpu: 1, after: 0 });
    m.inject(Fault::Vanish { pattern: "sys/devices/system/cpu/cpufreq/policy1*".into(), after: 0 });
    let writes = m.writes().len();
    let error = Transaction::apply(&m, journal.path(), "test", &changes, &steps.beside, &|| None).err();
    assert!(matches!(error, Some(TransactionError::Original { .. })), "{:?}", error.map(|e| e.to_string()));
    assert_eq!(m.writes().len(), writes);
}

#[test]
fn wishes_that_cannot_be_fulfilled_are_refused_in_words() {
    let m = machine("bc10");
    let refuse = |m: &Emulator, setting: Setting| -> PlanError {
        plan(m, &Inventory::read(m), &all(m), &[setting]).expect_err("refused")
    };
    for (setting, words) in [
        (Setting::Governor("ondemnd".into()), "did you mean 'ondemand'"),
        (Setting::Freq(Speed::Khz(510_000)), "the nearest is 500 MHz"),
        (Setting::Limits(Some(Speed::Khz(550_000)), Some(Speed::Khz(250_000))), "above"),
        (Setting::Limits(Some(Speed::Khz(900_000)), None), "runs from 125 MHz to 600 MHz"),
        (Setting::Boost(true), "boost cannot be switched"),
        (Setting::Epp("power".into()), "no energy-performance preference"),
        (Setting::CState("C6".into(), false), "no C-state can be switched"),
        (Setting::PowerLimit { zone: None, constraint: None, power_uw: 1_000_000 }, "no power limit"),
        (Setting::Online(false), "at least one CPU must stay"),
        (Setting::Plain(&PROFILE, "quiet".into()), "platform_profile"),
        (Setting::DriverMode("passive".into()), "neither"),
    ] {
        let message = refuse(&m, setting.clone()).to_string();
        assert!(message.contains(words), "{setting:?}: {message}");
        assert_eq!(message.lines().count(), 1);
    }
    let hwp = machine("skylake-server-active");
    let message = refuse(&hwp, Setting::Freq(Speed::Khz(2_000_000))).to_string();
    assert!(message.contains("active mode lets the hardware choose"), "{message}");
    // The kernel refuses a preference under the performance governor: judged before the first write.
    let settings = [Setting::Governor("performance".into()), Setting::Epp("power".into())];
    let steps = plan(&hwp, &Inventory::read(&hwp), &all(&hwp), &settings).expect("plans").steps;
    assert!(steps.iter().any(|s| s.verdict.is_err()), "EBUSY is foreseen");
}

#[test]
fn every_machine_takes_every_setting_or_says_why_and_comes_back() {
    // server-256 is server-64 four times over, and has a test of its own.
    for name in wattwise_emulator::names().filter(|n| *n != "server-256") {
        let m = machine(name);
        let before = m.snapshot();
        let journal = tempfile::tempdir().expect("a folder");
        let policies = Inventory::read(&m).cpufreq.policies().to_vec();
        let governors: Vec<String> = policies.iter().flat_map(|p| p.governors.clone()).collect();
        let mut settings: Vec<Setting> = governors.into_iter().map(Setting::Governor).collect();
        settings.dedup();
        settings.extend([
            Setting::Limits(Some(Speed::Percent(50.0)), Some(Speed::Percent(70.0))),
            Setting::Limits(Some(Speed::Max), Some(Speed::Max)),
            Setting::Limits(Some(Speed::Min), Some(Speed::Min)),
            Setting::Limits(None, Some(Speed::Base)),
            Setting::Freq(Speed::Min),
            Setting::Epp("power".into()),
            Setting::Epb("power".into()),
            Setting::Boost(false),
            Setting::Boost(true),
            Setting::CState("1".into(), false),
            Setting::Latency(Some(20_000)),
            Setting::Latency(None),
            Setting::Plain(&IDLE_GOVERNOR, "menu".into()),
            Setting::Plain(&IDLE_GOVERNOR, "teo".into()),
            Setting::PowerLimit { zone: None, constraint: None, power_uw: 10_000_000 },
            Setting::Uncore(None, Some(Speed::Min)),
            Setting::Dram { governor: "performance".into(), up: None, down: None },
            Setting::Plain(&PROFILE, "low-power".into()),
        ]);
        // Of the largest machines a part: the emulator's price for a write grows with their policies.
        let some: CpuSet = all(&m).iter().take(16).collect();
        for setting in &settings {
            if let Err(why) = set(&m, journal.path(), &some, std::slice::from_ref(setting)) {
                assert!(!why.is_empty() && why.lines().count() == 1, "{name} {setting:?}: {why}");
            }
        }
        // Half the CPUs off, and on again.
        let staying = some.len() as u32 / 2;
        let off: CpuSet = some.iter().filter(|c| *c >= staying.max(1)).collect();
        if !off.is_empty() {
            let done = set(&m, journal.path(), &off, &[Setting::Online(false)]);
            assert!(done.is_ok(), "{name}: {done:?}");
        }
        for restored in restore(&m, journal.path()) {
            assert!(restored.failed.is_empty() && restored.foreign.is_empty(), "{name}: {restored}");
        }
        assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_large_machine_is_set_and_comes_back() {
    let journal = tempfile::tempdir().expect("a folder");
    let m = machine("server-256");
    let before = m.snapshot();
    let cpus: CpuSet = (0..256).step_by(8).collect();
    set(
        &m,
        journal.path(),
        &cpus,
        &[Setting::Governor("powersave".into()), Setting::Limits(None, Some(Speed::Percent(50.0)))],
    )
    .expect("applies");
    assert!(m.writes().len() >= 64, "{}", m.writes().len());
    restore(&m, journal.path());
    assert_eq!(differing(&before, &m.snapshot()), Vec::<String>::new());
}

fn differing(
    before: &std::collections::BTreeMap<String, Vec<u8>>,
    after: &std::collections::BTreeMap<String, Vec<u8>>,
) -> Vec<String> {
    let show =
        |b: Option<&Vec<u8>>| b.map_or("gone".into(), |b| String::from_utf8_lossy(b).trim().to_owned());
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter(|k| before.get(*k) != after.get(*k))
        .map(|k| format!("{k}: {} -> {}", show(before.get(k)), show(after.get(k))))
        .collect()
}

/// Random sets, hotplug by others, faults and restores, beside a twin that sees only the hotplug: in the end
/// both machines are alike. `make soak` runs ten thousand (`WATTWISE_SEQUENCES`), `make test` 200.
#[test]
fn random_sequences_always_come_back() {
    let names = ["core-i5-2gen", "amd-laptop", "arm-big-little", "bc10", "vm-2cpu", "hybrid-laptop"];
    let sequences: u64 =
        std::env::var("WATTWISE_SEQUENCES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_500);
    let (mut done, mut refused) = (0, 0);
    for seed in 0..sequences {
        let mut random = Random::new(seed);
        let name = names[random.below(names.len())];
        let (m, twin) = (machine(name), machine(name));
        let journal = tempfile::tempdir().expect("a folder");
        for _ in 0..1 + random.below(5) {
            match random.below(10) {
                0 => {
                    let cpu = random.below(m.online().len() + m.offline().len()) as u32;
                    let on = random.below(2) == 0;
                    // The last CPU stays: with some of ours off, only the twin might lose it.
                    if m.online() == twin.online() {
                        m.plug(cpu, on);
                        twin.plug(cpu, on);
                    }
                }
                1 => {
                    let nth = 1 + random.below(12) as u64;
                    let errno = [rustix::io::Errno::BUSY, rustix::io::Errno::IO][random.below(2)];
                    m.inject(Fault::Errno { pattern: "sys/*".into(), op: Op::Write, nth, errno });
                }
                2 => {
                    m.advance(1_000_000_000);
                    twin.advance(1_000_000_000);
                }
                3 => {
                    restore(&m, journal.path());
                }
                _ => {
                    let settings = random_settings(&m, &mut random);
                    let cpus: CpuSet = match random.below(3) {
                        0 => all(&m),
                        _ => m.online().into_iter().filter(|c| c % 2 == seed as u32 % 2).collect(),
                    };
                    match set(&m, journal.path(), &cpus, &settings) {
                        Ok(()) => done += 1,
                        Err(_) => refused += 1,
                    }
                }
            }
        }
        m.clear_faults();
        // A journal may have to wait for one of another CPU: restore goes on until nothing is left.
        for _ in 0..3 {
            restore(&m, journal.path());
        }
        let left = journal::list(journal.path()).expect("folder").journals;
        // What hotplug by others has taken away cannot come back: only then may something be left.
        assert!(left.is_empty() || !m.offline().is_empty(), "{name} seed {seed}: {left:?}");
        assert_eq!(differing(&twin.snapshot(), &m.snapshot()), Vec::<String>::new(), "{name} seed {seed}");
    }
    assert!(
        done * 4 > refused && done as u64 > sequences,
        "too little was really done: {done} of {}",
        done + refused
    );
}

fn random_settings(m: &Emulator, random: &mut Random) -> Vec<Setting> {
    let inventory = Inventory::read(m);
    let policy = inventory.cpufreq.policies().first();
    let speed = |random: &mut Random| match random.below(4) {
        0 => Speed::Min,
        1 => Speed::Max,
        _ => Speed::Percent(30.0 + random.below(70) as f64),
    };
    let mut settings = Vec::new();
    for _ in 0..1 + random.below(3) {
        let setting = match random.below(11) {
            0 | 1 => match policy.filter(|p| !p.governors.is_empty()) {
                Some(p) => Setting::Governor(p.governors[random.below(p.governors.len())].clone()),
                None => Setting::Latency(Some(10_000)),
            },
            2 | 3 => Setting::Limits(Some(speed(random)), Some(Speed::Max)),
            4 => Setting::Limits(None, Some(speed(random))),
            5 => Setting::Freq(speed(random)),
            6 => match policy.filter(|p| !p.epps.is_empty()) {
                Some(p) => Setting::Epp(p.epps[random.below(p.epps.len())].clone()),
                None => Setting::Latency(None),
            },
            7 => Setting::Boost(random.below(2) == 0),
            8 => Setting::Online(random.below(2) == 0),
            9 if inventory.cpufreq.driver.is_some() => {
                Setting::DriverMode(["active", "passive", "guided"][random.below(3)].into())
            }
            _ => Setting::CState("1".into(), random.below(2) == 0),
        };
        settings.push(setting);
    }
    settings
}

/// Since Linux 6.10 the range with turbo is shown only while that is on: a share of it is written once it is there, and all goes
/// back.
#[test]
fn a_share_of_the_range_with_boost_waits_for_boost() {
    let m = machine("hybrid-laptop");
    let journal = tempfile::tempdir().expect("a folder");
    m.write("sys/devices/system/cpu/intel_pstate/no_turbo", b"1").expect("it can be switched");
    let before = m.snapshot();
    let limits = Setting::Limits(None, Some(Speed::Percent(90.0)));
    set(&m, journal.path(), &all(&m), &[Setting::Boost(true), limits]).expect("the kernel takes it");
    let max = |policy: u32| {
        let path = format!("sys/devices/system/cpu/cpufreq/policy{policy}/scaling_max_freq");
        String::from_utf8(m.read(&path).expect("it is there")).expect("digits")
    };
    // 47 and 34 steps of 100 MHz.
    assert_eq!((max(0).trim(), max(8).trim()), ("4300000", "3100000"));
    restore(&m, journal.path());
    assert_eq!(m.snapshot(), before);
}

/// A limit is a level inside it, as the model takes it: not the nearest level.
#[test]
fn a_share_is_never_above_itself() {
    let m = machine("amd-server");
    let journal = tempfile::tempdir().expect("a folder");
    let max = |share: f64| {
        set(&m, journal.path(), &all(&m), &[Setting::Limits(None, Some(Speed::Percent(share)))])
            .expect("the kernel takes it");
        let path = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq";
        String::from_utf8(m.read(path).expect("there")).expect("digits")
    };
    // Levels of 3.0, 1.9 and 1.5 GHz below a boost to 3.7.
    let found = [max(70.0), max(90.0), max(45.0)];
    assert_eq!(found.map(|khz| khz.trim().to_owned()), ["1900000", "3000000", "1500000"]);
}
