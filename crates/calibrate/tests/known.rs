//! Calibrations of emulated machines whose watts are known, and what may happen meanwhile.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use wattwise_calibrate::calibration::{Calibration, CalibrationError, calibrate};
use wattwise_calibrate::fit::Unknown;
use wattwise_calibrate::pace::Pace;
use wattwise_calibrate::plan::CalibrationPlan;
use wattwise_calibrate::site::{Emulated, Site};
use wattwise_calibrate::truth::{USUAL, behind};
use wattwise_emulator::{Emulator, Fault, Truth, named};
use wattwise_hw::clock::Moment;
use wattwise_hw::root::{Access, Node, Root};

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
    site: Emulated,
    root: Option<&'a dyn Root>,
    loading: &'a dyn Fn(&Loads),
    /// Told the emulated clock, in s.
    passing: &'a dyn Fn(f64),
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
        (self.passing)(self.moment().monotonic_s);
        self.site.pass(time)
    }
    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Pace>>, String> {
        self.site.pace(cpus, each)
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
    disturbed_at("core-i5-2gen", 12.3, folder, what)
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
    };
    let site =
        Beside { site: Emulated::new(emulator.clone()), root: None, loading: &|_| (), passing: &passing };
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
    let estimated = wattwise_calibrate::gather::Seen::read(&emulator)
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
    let estimated = wattwise_calibrate::gather::Seen::read(&emulator).unwrap();
    let estimated = wattwise_calibrate::estimate::estimate(&estimated, "this").text;
    let estimated = wattwise_model::machine::file::parse(&estimated, "this").unwrap();
    assert!(c.machine.platform_w < 0.9 * estimated.platform_w);
    assert!(!calibrated(&machine("core-i5-2gen").0).text.contains("[memory]"));
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
        let site = Beside { site, root: Some(&root), loading: &loading, passing: &|_| () };
        calibrate(&site, &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
        let opened = root.opened.lock().unwrap();
        let asleep: Vec<u32> = opened.iter().filter(|(_, awake)| !awake).map(|(cpu, _)| *cpu).collect();
        assert!(opened.iter().any(|(cpu, _)| *cpu != own), "{name}: busy CPUs are looked at");
        assert!(asleep.is_empty(), "{name}: registers of idle CPUs: {asleep:?}");
    }
}

/// With the package's meter alone the split between cores and package cannot be had, and is called a guess.
#[test]
fn what_no_meter_tells_is_called_a_guess() {
    let folder = tempfile::tempdir().unwrap();
    let (emulator, _) = machine("core-i5-2gen");
    emulator.inject(Fault::Vanish { pattern: "*:0:*".into(), after: 0 });
    let c = calibrate(&Emulated::new(emulator), &plan(folder.path(), 60.0), &mut |_| {}).unwrap();
    assert!(c.meters.package && !c.meters.cores);
    assert!(
        c.notes.iter().any(|n| n.contains("cannot be told from what their package draws")),
        "{:?}",
        c.notes
    );
    let fit = c.fit.unwrap();
    let uncore = fit.unknowns.at(Unknown::Uncore).unwrap();
    assert!(!fit.fitted[uncore]);
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
    let c = calibrate(&Emulated::new(emulator), &plan(folder.path(), 40.0), &mut |p| {
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
    // The first look ends at 0.3 s, and the timing of a core and its threads at 2.1 s; then each window settles for 0.4 s and
    // lasts 1 s.
    for at_s in [0.1, 0.4, 1.3, 2.2, 2.6, 3.4, 6.4] {
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

/// Killed at some moment: its journal puts the machine back, and the same command goes on with what was kept.
#[test]
fn what_kill_9_leaves_is_put_back_and_gone_on_with() {
    let quiet = named("core-i5-2gen").unwrap().snapshot();
    let mut left_changed = 0;
    // The self-test of the meters is the first wait, six time the core; each window has one to settle and four looks.
    for after in [0, 1, 6, 7, 8, 11, 12, 29, 67] {
        let folder = tempfile::tempdir().unwrap();
        let (emulator, _) = machine("core-i5-2gen");
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
            };
            let site =
                Beside { site: Emulated::new(theirs), root: None, loading: &|_| (), passing: &passing };
            calibrate(&site, &plan_of, &mut |_| {})
        });
        died.recv().unwrap();
        emulator.set_loads(&[(0, 0), (1, 0), (2, 0), (3, 0)]);
        left_changed += usize::from(emulator.snapshot() != quiet);
        // A dead process holds no lock on its journal; the thread that stands for it does, on the first of two copies.
        let copy = folder.path().join("copy");
        copied(&folder.path().join("journal"), &copy);
        let listing = wattwise_control::set::journal::list(&copy).unwrap();
        assert!(listing.unreadable.is_empty(), "after {after}: {:?}", listing.unreadable);
        let restored = wattwise_control::set::original::put_back_all(
            &emulator,
            listing.journals.iter().map(|j| j.layer()),
        );
        assert!(restored.iter().all(|r| r.failed.is_empty()), "after {after}: {restored:?}");
        assert_eq!(emulator.snapshot(), quiet, "after {after}");
        // The next run has the journal's folder to itself.
        let kept = std::fs::read_to_string(folder.path().join("kept")).map_or(0, |t| t.lines().count());
        let again = CalibrationPlan { journal: copy, ..plan(folder.path(), 40.0) };
        let first = Cell::new(None);
        let c = calibrate(&Emulated::new(emulator.clone()), &again, &mut |p| {
            first.set(first.get().or(Some(p.done)));
        });
        // The file's first line is its head; the first that is told is one more than what was kept.
        assert_eq!((c.is_ok(), first.get()), (true, Some(kept.max(1))), "after {after}");
        assert_eq!(emulator.snapshot(), quiet, "after {after}");
    }
    assert!(left_changed >= 5, "only {left_changed} kills left anything to put back");
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
