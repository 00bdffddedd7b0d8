//! Calibrations of emulated machines whose watts are known, and what may happen meanwhile.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use wattwise_calibrate::calibration::plan::CalibrationPlan;
use wattwise_calibrate::calibration::{Calibration, CalibrationError, calibrate};
use wattwise_calibrate::fit::Unknown;
use wattwise_calibrate::site::{Ask, Changes, Emulated, Paced, Site};
use wattwise_calibrate::truth::{USUAL, behind};
use wattwise_emulator::{Emulator, Fault, Truth, named};
use wattwise_hw::clock::Moment;
use wattwise_hw::root::{Access, Node, Root};
use wattwise_hw::states::cpufreq::CpufreqPolicy;
use wattwise_model::machine::figures::Uncertain;
use wattwise_model::machine::{Confidence, MachineModel};

fn plan(folder: &Path, budget_s: f64) -> CalibrationPlan {
    CalibrationPlan {
        name: "this".into(),
        budget_s,
        journal: folder.join("journal"),
        kept: Some(folder.join("kept")),
        seed: 7,
        clock_khz: None,
        state: vec!["a test".into()],
    }
}

fn machine(name: &str) -> (Emulator, Truth) {
    let emulator = named(name).unwrap();
    let truth = behind(&emulator, USUAL, 3).unwrap();
    (emulator, truth)
}

/// CPUs, and the share of the time for which each is busy.
type Loads = [(u32, f64)];

/// An emulated machine, and what is done beside: before its time passes, and when it is given work.
struct Beside<'a> {
    site: Emulated<'static>,
    root: Option<&'a dyn Root>,
    loading: &'a dyn Fn(&Loads),
    /// Told the emulated clock, in s; says why to stop.
    passing: &'a dyn Fn(f64) -> Result<(), String>,
    /// Told which CPUs are woken.
    waking: &'a dyn Fn(&[u32]),
}

impl Beside<'_> {
    /// A machine that nothing is done beside; like a real one, and unlike an emulated one, it does not begin anew with each process.
    fn of(site: Emulated<'static>) -> Self {
        Beside { site, root: None, loading: &|_| (), passing: &|_| Ok(()), waking: &|_| () }
    }
}

impl Site for Beside<'_> {
    fn root(&self) -> &dyn Root {
        self.root.unwrap_or_else(|| self.site.root())
    }
    fn load(&self, cpus: &Loads) -> Result<(), String> {
        (self.loading)(cpus);
        self.site.load(cpus)
    }
    fn pass(&self, time: Duration) -> Result<(), String> {
        (self.passing)(self.moment().monotonic_s)?;
        self.site.pass(time)
    }
    fn wake(&self, cpus: &[u32]) {
        (self.waking)(cpus);
    }
    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String> {
        self.site.pace(cpus, each)
    }
    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String> {
        self.site.changes(policy, cpu, ask)
    }
    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String> {
        self.site.late(cpu, sleep, times)
    }
    fn moment(&self) -> Moment {
        self.site.moment()
    }
    fn own_cpu(&self) -> u32 {
        self.site.own_cpu()
    }
}

fn disturbed(
    folder: &Path,
    what: &dyn Fn(&Emulator),
) -> (Emulator, Result<Calibration, CalibrationError>, Vec<String>) {
    disturbed_at("core-i5-2gen", 13.3, folder, what)
}

/// Its name, and what it does to the machine.
type Happening<'a> = (&'a str, &'a dyn Fn(&Emulator));

fn disturbed_at(
    name: &str,
    at_s: f64,
    folder: &Path,
    what: &dyn Fn(&Emulator),
) -> (Emulator, Result<Calibration, CalibrationError>, Vec<String>) {
    let (emulator, _) = machine(name);
    let done = Cell::new(false);
    let passing = |now_s: f64| {
        if now_s >= at_s && !done.replace(true) {
            what(&emulator);
        }
        Ok(())
    };
    let site = Beside { passing: &passing, ..Beside::of(Emulated::new(emulator.clone())) };
    let mut told = Vec::new();
    let got = calibrate(&site, &plan(folder, 40.0), &mut |p| told.extend(p.note.map(str::to_owned)));
    (emulator, got, told)
}

/// Intervals hold the truth as often as they say, mixes are foretold, the machine is as it was.
#[test]
fn a_known_machine_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (emulator, truth) = machine("core-i5-2gen");
    let before = emulator.snapshot();
    let site = Emulated::new(emulator.clone());
    let c = calibrate(&site, &plan(folder.path(), 600.0), &mut |_| {}).unwrap();
    assert_eq!(emulator.snapshot(), before, "settings are back");
    let fit = c.fit.as_ref().unwrap();
    let true_value = |u: Unknown| match u {
        Unknown::Busy(k, l) => Some(truth.machine.kinds[k].levels[l].busy_w),
        Unknown::Idle(k, s) => Some(truth.machine.kinds[k].idle[s].watts[0]),
        Unknown::AllThreads(k) => truth.machine.kinds[k].smt_power.last().copied(),
        Unknown::Leakage => Some(truth.leakage_per_c),
        _ => None,
    };
    let fitted = fit.unknowns.all.iter().enumerate().filter(|(at, _)| fit.fitted[*at]);
    let held: Vec<bool> = fitted
        .filter_map(|(at, u)| {
            let (low, high) = fit.interval(at, 0.999);
            Some((low..=high).contains(&true_value(*u)?))
        })
        .collect();
    assert!(held.len() >= 12 && held.iter().all(|h| *h), "{held:?}");
    let p95 = c.check.quantile(0.95).unwrap();
    assert!(c.check.off.len() >= 10 && p95 < 0.04, "{p95}");
    // The file says what was fitted, and its drawn machines are machines.
    let (drawn, how) = c.machine.draw(5);
    assert!(how.iter().any(|d| d.what.ends_with("busy_w") && d.z != 0.0), "{how:?}");
    assert!((drawn.kinds[0].levels[0].busy_w / truth.machine.kinds[0].levels[0].busy_w - 1.0).abs() < 0.05);
}

/// How fast its kinds of core are, and what threads do beside each other, are timed; the figures say so.
#[test]
fn the_pace_of_a_known_machine_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (emulator, truth) = machine("hybrid-laptop");
    let before = emulator.snapshot();
    let c = calibrate(&Emulated::new(emulator.clone()), &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
    assert_eq!(emulator.snapshot(), before);
    let estimated = wattwise_calibrate::gather::SeenMachine::read(&emulator)
        .map(|seen| wattwise_calibrate::estimate::estimate(&seen, "this"))
        .and_then(|e| wattwise_model::machine::file::parse(&e.text, "this").ok())
        .unwrap();
    let kinds = |m: &wattwise_model::machine::MachineModel| {
        m.kinds.iter().flat_map(|k| [k.ipc, *k.smt_throughput.last().unwrap()]).collect::<Vec<f64>>()
    };
    let off =
        |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
    assert!(off(kinds(&estimated), kinds(&truth.machine)) > 0.03, "there is something to find");
    assert!(off(kinds(&c.machine), kinds(&truth.machine)) < 0.01);
    let ipc = c.machine.figures().iter().find(|f| f.what == "kind.E.ipc").unwrap();
    assert!(ipc.low < 0.95 * ipc.nominal && ipc.high > 1.05 * ipc.nominal, "{ipc:?}");
}

/// Work is counted by the cycle that was run, not by the one that was asked for: a limit of power that slows a kind of core to a
/// part of its speed does not make the other kind better.
#[test]
fn a_limit_of_power_does_not_change_what_a_cycle_does() {
    for registers in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let emulator = named("hybrid-laptop").unwrap();
        if !registers {
            emulator.inject(Fault::Vanish { pattern: "*/msr".to_owned(), after: 0 });
        }
        let mut truth = behind(&emulator, USUAL, 3).unwrap();
        let limit_w = emulator.limits_w()[0];
        let levels = &mut truth.machine.kinds[0].levels;
        let top = f64::from(levels[0].khz);
        levels.iter_mut().for_each(|l| l.busy_w = limit_w * (0.5 + f64::from(l.khz) / top));
        emulator.set_truth(truth.clone());
        let c = calibrate(&Emulated::new(emulator), &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
        let slowed = c.observations.iter().filter(|o| !o.reached[0]).count();
        assert!(slowed > 3, "{slowed}");
        let (found, truly) = (&c.machine.kinds, &truth.machine.kinds);
        for (found, truly) in found.iter().zip(truly) {
            assert!((found.ipc / truly.ipc - 1.0).abs() < 0.01, "{registers}: {} {}", found.ipc, truly.ipc);
            let beside = |k: &wattwise_model::machine::CoreKind| *k.smt_throughput.last().unwrap();
            assert!((beside(found) / beside(truly) - 1.0).abs() < 0.01);
        }
    }
}

/// The memory's watts are told apart from the platform's where they are metered, and nowhere else.
#[test]
fn the_memory_of_a_known_machine_is_found() {
    let calibrated = |emulator: &Emulator| {
        let folder = tempfile::tempdir().unwrap();
        calibrate(&Emulated::new(emulator.clone()), &plan(folder.path(), 60.0), &mut |_| {}).unwrap()
    };
    let (emulator, truth) = machine("skylake-server-passive");
    let c = calibrated(&emulator);
    let truly = truth.machine.memory;
    assert!(truly.rest_w > 1.0 && truly.busy_w > 0.05, "{truly:?}");
    for (what, true_value) in [("memory.watts", truly.rest_w), ("memory.busy_w", truly.busy_w)] {
        let found = c.machine.figures().iter().find(|f| f.what == what).unwrap();
        assert!((found.low..=found.high).contains(&true_value), "{found:?}, truly {true_value}");
        assert!(found.high < 1.2 * found.low, "{found:?}");
    }
    assert!(c.text.contains("[memory]") && c.notes.iter().all(|n| !n.contains("NaN")));
    // The estimate has it among the platform, which no meter tells here.
    let estimated = wattwise_calibrate::gather::SeenMachine::read(&emulator).unwrap();
    let estimated = wattwise_calibrate::estimate::estimate(&estimated, "this").text;
    let estimated = wattwise_model::machine::file::parse(&estimated, "this").unwrap();
    assert!(c.machine.platform_w < 0.9 * estimated.platform_w);
    assert!(!calibrated(&machine("core-i5-2gen").0).text.contains("[memory]"));
}

/// What the file says of a figure.
fn figure<'m>(m: &'m MachineModel, what: &str) -> Option<&'m Uncertain> {
    m.figures().iter().find(|f| f.what == what)
}

/// Delays of changes of speed and of the ways out of C-states are timed, and hold the truth within their ranges. Whose they are is
/// said: a C-state that differs from none only by chance keeps the kernel's.
#[test]
fn the_delays_of_a_known_machine_are_found() {
    for name in ["core-i5-2gen", "skylake-server-passive", "arm-big-little", "bc10", "amd-server"] {
        let folder = tempfile::tempdir().unwrap();
        let (emulator, truth) = machine(name);
        let before = emulator.snapshot();
        let c = calibrate(&Emulated::new(emulator.clone()), &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
        assert_eq!(emulator.snapshot(), before, "{name}");
        let measured = |what: &str| {
            let f = figure(&c.machine, what)?;
            let origin = &c.machine.provenance[f.origin];
            let by_time =
                origin.confidence == Confidence::Measured && origin.source.ends_with("(a test), timed");
            by_time.then_some((f.low, f.nominal, f.high))
        };
        for (k, kind) in truth.machine.kinds.iter().enumerate() {
            let domain = truth.machine.domains.iter().find(|d| usize::from(d.kind) == k).unwrap();
            let stall_us = *domain.transition.stall_ns.iter().max().unwrap() as f64 * 1e-3;
            let delay_us = domain.transition.delay_ns as f64 * 1e-3;
            // Where the estimate has a stall alone, that is what was timed.
            let (what, true_us) =
                if delay_us > 0.0 { ("delay_us", delay_us) } else { ("stall_us", stall_us) };
            let (low, us, high) = measured(&format!("kind.{}.transition.{what}", kind.name)).unwrap();
            assert!((low..=high).contains(&true_us), "{name} {what}: {true_us} not in {low} to {high}");
            assert!((us / true_us - 1.0).abs() < 0.2 && high < 1.5 * low, "{name} {what}: {us}, {true_us}");
            let mut found = 0;
            for state in &kind.idle {
                let what = format!("kind.{}.idle.{}.exit_us", kind.name, state.name);
                let Some((low, us, high)) = measured(&what) else { continue };
                let true_us = state.exit_ns[0] as f64 * 1e-3;
                assert!((low..=high).contains(&true_us), "{name} {what}: {true_us} not in {low} to {high}");
                assert!(true_us < 10.0 || (us / true_us - 1.0).abs() < 0.1, "{name} {what}: {us}, {true_us}");
                found += 1;
            }
            assert!(found > 0 || kind.idle.len() == 1, "{name}: none of {} C-states", kind.idle.len());
        }
    }
}

/// Where the hardware chooses the speed or the kernel has neither cpufreq nor cpuidle, the estimate's figures stay, and it is said.
#[test]
fn what_cannot_be_timed_is_said() {
    for (name, gone, speeds, sleeps) in [
        ("hybrid-laptop", None, Some("the hardware chooses the speed"), None),
        ("vm-2cpu", Some("*/cpuidle"), Some("the kernel has no cpufreq"), Some("the kernel has no cpuidle")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (emulator, _) = machine(name);
        if let Some(pattern) = gone {
            emulator.inject(Fault::Vanish { pattern: pattern.into(), after: 0 });
        }
        let c = calibrate(&Emulated::new(emulator.clone()), &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
        let said = |what: &str| c.notes.iter().find(|n| n.starts_with(what)).cloned();
        for (what, why) in [("Changes of speed were not timed", speeds), ("Wake-ups were not timed", sleeps)]
        {
            let note = said(what);
            assert_eq!(note.is_some(), why.is_some(), "{name}: {:?}", c.notes);
            assert!(why.is_none_or(|why| note.is_some_and(|n| n.contains(why))), "{name}: {:?}", c.notes);
        }
        let timed = |f: &&Uncertain| c.machine.provenance[f.origin].source.ends_with(", timed");
        let timed: Vec<&str> = c.machine.figures().iter().filter(timed).map(|f| f.what.as_str()).collect();
        assert_eq!(timed.iter().any(|f| f.contains("transition")), speeds.is_none(), "{name}: {timed:?}");
        assert_eq!(timed.iter().any(|f| f.ends_with("exit_us")), sleeps.is_none(), "{name}: {timed:?}");
    }
}

/// A machine that notes whose registers are opened.
struct Noted {
    machine: Emulator,
    own: u32,
    /// CPUs that are kept busy.
    busy: Mutex<Vec<u32>>,
    /// CPUs whose registers were opened, and whether each was awake.
    opened: Mutex<Vec<(u32, bool)>>,
}

impl Root for Noted {
    fn open(&self, path: &str, access: Access) -> std::io::Result<Box<dyn Node>> {
        let cpu = path.strip_prefix("dev/cpu/").and_then(|p| p.strip_suffix("/msr")?.parse().ok());
        if let Some(cpu) = cpu {
            let awake = cpu == self.own || self.busy.lock().unwrap().contains(&cpu);
            self.opened.lock().unwrap().push((cpu, awake));
        }
        self.machine.open(path, access)
    }
    fn list(&self, path: &str) -> std::io::Result<Vec<String>> {
        self.machine.list(path)
    }
    fn describe(&self) -> String {
        self.machine.describe()
    }
}

/// An idle CPU is woken by a read of its registers, so that what it draws asleep could not be seen.
#[test]
fn no_register_of_an_idle_cpu_is_read() {
    for name in ["core-i5-2gen", "hybrid-laptop"] {
        let folder = tempfile::tempdir().unwrap();
        let (machine, _) = machine(name);
        let site = Emulated::new(machine.clone());
        let own = site.own_cpu();
        let root = Noted { machine, own, busy: Mutex::default(), opened: Mutex::default() };
        let loading = |cpus: &Loads| {
            let busy = cpus.iter().filter(|(_, share)| *share > 0.0).map(|(cpu, _)| *cpu);
            *root.busy.lock().unwrap() = busy.collect();
        };
        let site = Beside { root: Some(&root), loading: &loading, ..Beside::of(site) };
        calibrate(&site, &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
        let opened = root.opened.lock().unwrap();
        let asleep: Vec<u32> = opened.iter().filter(|(_, awake)| !awake).map(|(cpu, _)| *cpu).collect();
        assert!(opened.iter().any(|(cpu, _)| *cpu != own), "{name}: busy CPUs are looked at");
        assert!(asleep.is_empty(), "{name}: registers of idle CPUs: {asleep:?}");
    }
}

/// With the package's meter alone the split between cores and package cannot be had, and is called a guess; also where windows
/// with all threads at work seem to tell it, since what threads add is taken to be the same at all speeds.
#[test]
fn what_no_meter_tells_is_called_a_guess() {
    for (name, seed, budget_s) in [("core-i5-2gen", 3, 60.0), ("skylake-server-passive", 824, 600.0)] {
        let folder = tempfile::tempdir().unwrap();
        let emulator = named(name).unwrap();
        behind(&emulator, USUAL, seed).unwrap();
        emulator.inject(Fault::Vanish { pattern: "*:0:*".into(), after: 0 });
        let c = calibrate(&Emulated::new(emulator), &plan(folder.path(), budget_s), &mut |_| {}).unwrap();
        assert!(c.meters.package && !c.meters.cores);
        let is_told = |n: &String| n.contains("cannot be told from what their package draws");
        assert!(c.notes.iter().any(is_told), "{name}: {:?}", c.notes);
        let fit = c.fit.unwrap();
        let uncore = fit.unknowns.at(Unknown::Uncore).unwrap();
        assert!(!fit.fitted[uncore], "{name}");
    }
}

/// Without a meter it is the estimate, and says so.
#[test]
fn without_a_meter_it_is_the_estimate() {
    let folder = tempfile::tempdir().unwrap();
    let site = Emulated::new(named("vm-2cpu").unwrap());
    let c = calibrate(&site, &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
    assert!(c.fit.is_none() && c.observations.is_empty());
    assert!(c.notes[0].starts_with("Nothing meters energy here"), "{:?}", c.notes);
    let too_short =
        calibrate(&Emulated::new(machine("core-i5-2gen").0), &plan(folder.path(), 1.0), &mut |_| {});
    assert!(
        matches!(too_short, Err(CalibrationError::Input(why)) if why.starts_with("--budget 1s: expected at least"))
    );
}

/// What spoils a window drops it, is named, and changes nothing else; originals are back each time.
#[test]
fn what_spoils_a_window_drops_it() {
    let quiet = named("core-i5-2gen").unwrap().snapshot();
    let suspend = |m: &Emulator| m.inject(Fault::Suspend { ns: 60_000_000_000 });
    let busy = |m: &Emulator| m.set_load(3, 500);
    let blind = |m: &Emulator| {
        m.inject(Fault::Errno {
            pattern: "*energy_uj".into(),
            op: wattwise_emulator::Op::Read,
            nth: 1,
            errno: rustix::io::Errno::IO,
        });
    };
    let what: [&dyn Fn(&Emulator); 3] = [&suspend, &busy, &blind];
    let why = ["could not be followed", "another program kept CPU 3 busy for", "could not be followed"];
    for (what, why) in what.into_iter().zip(why) {
        let folder = tempfile::tempdir().unwrap();
        let (emulator, got, told) = disturbed(folder.path(), what);
        let c = got.unwrap();
        assert!(
            told.iter().any(|t| t.starts_with("A window was dropped:") && t.contains(why)),
            "{why}: {told:?}"
        );
        assert!(told.len() <= 2, "{told:?}");
        assert!(c.notes.iter().any(|n| n.contains(why)), "{:?}", c.notes);
        assert_eq!(emulator.snapshot(), quiet, "{why}");
    }
    // A counter that passes its end spoils nothing.
    let folder = tempfile::tempdir().unwrap();
    let (emulator, _) = machine("core-i5-2gen");
    emulator.inject(Fault::Wrap { pattern: "*".into() });
    let mut told = Vec::new();
    let got = calibrate(&Emulated::new(emulator), &plan(folder.path(), 40.0), &mut |p| {
        told.extend(p.note.map(str::to_owned));
    });
    assert!(got.is_ok() && told.is_empty(), "{told:?}");
}

/// A CPU that goes for good ends it; what was seen is kept, and the same command goes on from there.
#[test]
fn an_interrupted_calibration_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (_, got, told) = disturbed(folder.path(), &|m| m.plug(3, false));
    let Err(CalibrationError::Ended(why)) = got else { panic!("{got:?}") };
    assert!(why.contains("CPU 3 went offline") && told.len() == 3, "{why} {told:?}");
    let lines = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap().lines().count();
    let kept = lines("kept");
    assert!(kept > 3, "{kept}");
    let (emulator, _) = machine("core-i5-2gen");
    let first = Cell::new(None);
    let c = calibrate(&Beside::of(Emulated::new(emulator)), &plan(folder.path(), 40.0), &mut |p| {
        first.set(first.get().or(Some(p.done)));
    });
    assert_eq!((c.is_ok(), first.get()), (true, Some(kept)));
    // Observations of something else are refused.
    let other = CalibrationPlan { seed: 8, ..plan(folder.path(), 40.0) };
    let got = calibrate(&Emulated::new(machine("core-i5-2gen").0), &other, &mut |_| {});
    assert!(
        matches!(got, Err(CalibrationError::Input(why)) if why.contains("another machine, budget or seed"))
    );
}

/// A laptop whose only meter is its battery's gauge, renewed every so many seconds.
fn on_battery(renewed_s: u32) -> Emulator {
    let text = wattwise_emulator::text("amd-laptop").unwrap();
    let text = text.replace("update_s = 10", &format!("update_s = {renewed_s}"));
    let emulator = wattwise_emulator::from_text("amd-laptop", &text).unwrap();
    behind(&emulator, USUAL, 3).unwrap();
    for pattern in ["*powercap*", "*/msr"] {
        emulator.inject(Fault::Vanish { pattern: pattern.into(), after: 0 });
    }
    emulator.set_mains(false);
    emulator
}

/// A battery is not drained to its end, where a gauge says anything.
#[test]
fn an_empty_battery_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let emulator = on_battery(10);
    emulator.online().into_iter().for_each(|cpu| emulator.set_load(cpu, 1000));
    let site = Emulated::new(emulator);
    site.pass(Duration::from_secs(6 * 3600)).unwrap();
    let got = calibrate(&site, &plan(folder.path(), 1300.0), &mut |_| {});
    let Err(CalibrationError::Ended(why)) = got else { panic!("{got:?}") };
    assert!(why.starts_with("the battery is down to") && why.contains("goes on from here"), "{why}");
}

/// A gauge that moves once a minute is waited for.
#[test]
fn a_slow_gauge_makes_windows_longer() {
    let seconds = |renewed_s: u32| -> Vec<f64> {
        let folder = tempfile::tempdir().unwrap();
        let site = Emulated::new(on_battery(renewed_s));
        let c = calibrate(&site, &plan(folder.path(), 1100.0), &mut |_| {}).unwrap();
        c.observations.iter().map(|o| o.seconds).collect()
    };
    let (usual, slow) = (seconds(10), seconds(60));
    assert!(usual.len() > 3 && usual.iter().all(|s| (119.0..122.0).contains(s)), "{usual:?}");
    // Four moves are three or four minutes apart.
    assert!(slow.len() > 3 && slow.iter().all(|s| (180.0..242.0).contains(s)), "{slow:?}");
}

/// Whatever comes, in whatever step (the first look, settling, a window, its end): the machine is as it was, and a window that
/// was spoiled is named.
#[test]
fn a_fault_in_any_step_leaves_the_machine_as_it_was() {
    let quiet = named("core-i5-2gen").unwrap().snapshot();
    let suspend = |m: &Emulator| m.inject(Fault::Suspend { ns: 60_000_000_000 });
    let wrap = |m: &Emulator| m.inject(Fault::Wrap { pattern: "*".into() });
    let burst = |m: &Emulator| m.set_load(2, 900);
    let away = |m: &Emulator| {
        m.plug(3, false);
        m.plug(3, true);
    };
    let fails = |m: &Emulator, op| {
        m.inject(Fault::Errno { pattern: "*cpu*".into(), op, nth: 5, errno: rustix::io::Errno::IO });
    };
    let unread = |m: &Emulator| fails(m, wattwise_emulator::Op::Read);
    let unwritten = |m: &Emulator| fails(m, wattwise_emulator::Op::Write);
    let all: [Happening<'_>; 6] = [
        ("suspend", &suspend),
        ("wrap", &wrap),
        ("burst", &burst),
        ("unplug", &away),
        ("read", &unread),
        ("write", &unwritten),
    ];
    // The first look ends at 0 or 0.3 s, and the timing of a core and its threads 1.8 s later; that of changes of speed takes 0.3 s,
    // that of wake-ups 0.8 s. Then each window settles for 0.4 s and lasts 1 s.
    for at_s in [0.0, 0.4, 1.3, 1.9, 2.2, 2.8, 3.1, 3.5, 4.4, 7.4] {
        for (name, what) in all {
            let folder = tempfile::tempdir().unwrap();
            let (emulator, got, told) = disturbed_at("core-i5-2gen", at_s, folder.path(), what);
            emulator.set_loads(&[(0, 0), (1, 0), (2, 0), (3, 0)]);
            assert_eq!(emulator.snapshot(), quiet, "{name} at {at_s} s");
            match got {
                Ok(c) => {
                    assert!(told.iter().all(|t| c.notes.contains(t)), "{name} at {at_s} s: {:?}", c.notes)
                }
                Err(e) => assert!(
                    e.to_string().contains("the same command goes on from here"),
                    "{name} at {at_s} s: {e}"
                ),
            }
        }
    }
}

/// On mains a machine may run by other rules than on its battery: that it was plugged in is told, and it ends if that stays so.
#[test]
fn mains_that_are_plugged_in_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let plug = |m: &Emulator| m.set_mains(true);
    let (_, got, told) = disturbed_at("amd-laptop", 5.0, folder.path(), &plug);
    let Err(CalibrationError::Ended(why)) = got else { panic!("{got:?}") };
    assert!(why.contains("the mains were plugged in") && told.len() == 3, "{why} {told:?}");
}

/// A speed that a limit keeps from the cores is told of, and no window is lost for it.
#[test]
fn a_limit_in_the_middle_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let slow = |m: &Emulator| m.set_ceiling(Some(1_700_000));
    let (_, got, told) = disturbed_at("core-i5-2gen", 15.0, folder.path(), &slow);
    let c = got.unwrap();
    assert!(
        told.is_empty() && c.notes.iter().any(|n| n.contains("did not reach the speed")),
        "{:?}",
        c.notes
    );
}

/// A calibration that a signal ends in the middle of a timing, be it of a change of speed or of a wake-up, has put everything back.
#[test]
fn a_signal_while_delays_are_timed_leaves_nothing() {
    let (mut changed, mut ends) = (0, 0);
    for name in ["core-i5-2gen", "bc10"] {
        let quiet = named(name).unwrap().snapshot();
        for after in (0..160).step_by(7) {
            let folder = tempfile::tempdir().unwrap();
            let (emulator, _) = machine(name);
            let left: Cell<u32> = Cell::new(after);
            let during = Cell::new(false);
            let passing = |_| match left.replace(left.get().saturating_sub(1)) {
                0 => {
                    during.set(during.get() || emulator.snapshot() != quiet);
                    Err("signal 2 came".to_owned())
                }
                _ => Ok(()),
            };
            let site = Beside { passing: &passing, ..Beside::of(Emulated::new(emulator.clone())) };
            let got = calibrate(&site, &plan(folder.path(), 40.0), &mut |_| {});
            assert_eq!(emulator.snapshot(), quiet, "{name} after {after}");
            let ended = matches!(&got, Err(CalibrationError::Ended(why)) if why.contains("signal 2 came"));
            assert!(ended || left.get() > 0 || after == 0, "{name} after {after}: {got:?}");
            (changed, ends) = (changed + u32::from(during.get()), ends + u32::from(ended));
        }
    }
    assert!(changed >= 30 && ends >= 30, "{changed} of {ends}");
}

/// A machine whose calibration was killed at some moment.
struct Killed {
    emulator: Emulator,
    /// Its files; the journal is in `copy`.
    folder: tempfile::TempDir,
    /// Whether something was left to put back.
    changed: bool,
}

/// Kills a calibration after so many waits, and puts the machine back by its journal.
fn killed(name: &str, after: u32) -> Killed {
    let quiet = named(name).unwrap().snapshot();
    let folder = tempfile::tempdir().unwrap();
    let (emulator, _) = machine(name);
    let (dead, died) = std::sync::mpsc::channel();
    let (theirs, plan_of) = (emulator.clone(), plan(folder.path(), 40.0));
    std::thread::spawn(move || {
        // Time stands still at some moment, as for a process that is killed then: it does nothing any more.
        let left: Cell<u32> = Cell::new(after);
        let passing = |_| {
            if left.replace(left.get().saturating_sub(1)) == 0 {
                dead.send(()).unwrap();
                loop {
                    std::thread::park();
                }
            }
            Ok(())
        };
        let site = Beside { passing: &passing, ..Beside::of(Emulated::new(theirs)) };
        calibrate(&site, &plan_of, &mut |_| {})
    });
    died.recv().unwrap();
    emulator.set_loads(&[(0, 0), (1, 0), (2, 0), (3, 0)]);
    let changed = emulator.snapshot() != quiet;
    // A dead process holds no lock on its journal; the thread that stands for it does, on the first of two copies.
    let copy = folder.path().join("copy");
    copied(&folder.path().join("journal"), &copy);
    let listing = wattwise_control::set::journal::list(&copy).unwrap();
    assert!(listing.unreadable.is_empty(), "{name} after {after}: {:?}", listing.unreadable);
    let restored =
        wattwise_control::set::original::put_back_all(&emulator, listing.journals.iter().map(|j| j.layer()));
    assert!(restored.iter().all(|r| r.failed.is_empty()), "{name} after {after}: {restored:?}");
    assert_eq!(emulator.snapshot(), quiet, "{name} after {after}");
    Killed { emulator, folder, changed }
}

/// Killed at some moment: its journal puts the machine back, and the same command goes on with what was kept.
#[test]
fn what_kill_9_leaves_is_put_back_and_gone_on_with() {
    let quiet = named("core-i5-2gen").unwrap().snapshot();
    let mut left_changed = 0;
    // The self-test of the meters is the first wait, six time the core, 120 changes of speed and 20 sleeps; each window has one to
    // settle and four looks.
    for after in [0, 1, 6, 7, 60, 126, 127, 135, 146, 147, 148, 151, 152, 169, 207] {
        let Killed { emulator, folder, changed } = killed("core-i5-2gen", after);
        left_changed += usize::from(changed);
        // The next run has the journal's folder to itself.
        let kept = std::fs::read_to_string(folder.path().join("kept")).map_or(0, |t| t.lines().count());
        let again = CalibrationPlan { journal: folder.path().join("copy"), ..plan(folder.path(), 40.0) };
        let first = Cell::new(None);
        let c = calibrate(&Beside::of(Emulated::new(emulator.clone())), &again, &mut |p| {
            first.set(first.get().or(Some(p.done)));
        });
        // The file's first line is its head; the first that is told is one more than what was kept.
        assert_eq!((c.is_ok(), first.get()), (true, Some(kept.max(1))), "after {after}");
        assert_eq!(emulator.snapshot(), quiet, "after {after}");
    }
    assert!(left_changed >= 12, "only {left_changed} kills left anything to put back");
}

/// A speed that a killed timing has asked for is known to be ours: where the governor was `userspace` before, it has its speed back.
#[test]
fn a_killed_timing_leaves_no_speed_behind() {
    let changed = (3..60).step_by(8).filter(|after| killed("bc10", *after).changed).count();
    assert!(changed >= 7, "only {changed} kills left anything to put back");
}

fn copied(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o700)).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// What a window does, in turn.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Load(Vec<u32>),
    Wake(Vec<u32>),
    Time,
}

/// The kernel books a sleep when it ends: CPUs without work are woken once the C-states are set, and where counters are read.
#[test]
fn cpus_at_rest_are_woken_before_a_window_and_at_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (emulator, _) = machine("core-i5-2gen");
    let steps = RefCell::new(Vec::new());
    let site = Beside {
        loading: &|loads| steps.borrow_mut().push(Step::Load(loads.iter().map(|(cpu, _)| *cpu).collect())),
        waking: &|cpus| steps.borrow_mut().push(Step::Wake(cpus.to_vec())),
        passing: &|_| {
            let mut steps = steps.borrow_mut();
            if steps.last() != Some(&Step::Time) {
                steps.push(Step::Time);
            }
            Ok(())
        },
        ..Beside::of(Emulated::new(emulator))
    };
    let c = calibrate(&site, &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
    let steps = steps.into_inner();
    let mut windows = 0;
    for own in steps.split_inclusive(|step| matches!(step, Step::Load(_))).collect::<Vec<_>>().windows(2) {
        let (Some(Step::Load(busy)), [first, Step::Time, middle, Step::Time, last, ..]) =
            (own[0].last(), own[1])
        else {
            continue;
        };
        let resting: Vec<u32> = (0..4).filter(|cpu| !busy.contains(cpu)).collect();
        for woken in [first, middle, last] {
            assert_eq!(*woken, Step::Wake(resting.clone()), "beside {busy:?}");
        }
        windows += 1;
    }
    assert_eq!(windows, c.observations.len());
}
