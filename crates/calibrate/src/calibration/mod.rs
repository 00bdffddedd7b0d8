//! A calibration from its first look to its machine file.
//!
//! ```text
//! skeleton  what the kernel says, over the nearest bundled model      gather, estimate
//! pace      work a clock cycle of each kind of core, and of threads    pace
//! delays    of changes of speed, of the ways out of C-states             delays
//! windows   chosen one at a time, for what is still open              design
//! observe   each for some seconds, the machine restored after it      window, look
//! fit       watts, by what the machine really did; how warm it gets   fit, heat
//! check     on mixes of work that the fit has not seen
//! write     the machine file, its intervals, and drawn machines       made
//! ```

mod made;
pub mod pages;
pub mod plan;

use crate::calibration::made::{MadeMachine, leakage, machine_file, timed};
use crate::calibration::plan::CalibrationPlan;
use crate::estimate::estimate;
use crate::fit::Fit;
use crate::fit::check::Check;
use crate::fit::design::{Meters, WindowDesign, mixes};
use crate::fit::heat::Heat;
use crate::gather::SeenMachine;
use crate::layout::Layout;
use crate::site::Site;
use crate::timed::delays::{Delays, delays};
use crate::timed::pace::{KindPace, paces};
use crate::window::obeyed::not_obeyed;
use crate::window::spoiled::Spoiled;
use crate::window::{Observation, Observer, Times, Window};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::time::Duration;
use wattwise_hw::identity::Identity;
use wattwise_hw::root::Root;
use wattwise_meter::battery::Gauge;
use wattwise_meter::domain::Domain;
use wattwise_model::machine::{MachineModel, file};
use wattwise_output::Log;

/// Why a calibration gives no machine.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// Not on this machine.
    #[error("{0}")]
    Impossible(String),
    /// It ended before its time.
    #[error("{0}")]
    Ended(String),
    /// Too little time.
    #[error("{0}")]
    Input(String),
}

/// Where it is.
#[derive(Clone, Debug)]
pub struct CalibrationProgress<'a> {
    /// Windows done, and all.
    pub done: usize,
    /// All windows.
    pub all: usize,
    /// Seconds left.
    pub left_s: f64,
    /// What has just happened, where something did.
    pub note: Option<&'a str>,
}

/// A calibrated machine.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The machine file.
    pub text: String,
    /// The same, parsed.
    pub machine: MachineModel,
    /// The fit; none where nothing meters the machine.
    pub fit: Option<Fit>,
    /// How warm a package gets; none where that was not found.
    pub heat: Option<Heat>,
    /// What there was to measure with.
    pub meters: Meters,
    /// What was seen, windows and mixes.
    pub observations: Vec<Observation>,
    /// How many of these are windows of the fit; the others are mixes.
    pub windows: usize,
    /// What the fit says of the mixes.
    pub check: Check,
    /// What its user should know, a sentence each.
    pub notes: Vec<String>,
}

impl Calibration {
    /// Whether an observation is of a mix that the fit has not seen.
    pub fn is_mix(&self, at: usize) -> bool {
        is_mix(at)
    }
}

/// A mix after every few windows: what drifts is as it was in the windows around it.
fn is_mix(at: usize) -> bool {
    at % CHECKS == CHECKS - 1
}

/// Seconds of a window by a meter of the processor, and by the gauge of a battery.
const WINDOW_S: (f64, f64) = (5.0, 120.0);
/// Before each.
const SETTLE_S: (f64, f64) = (2.0, 10.0);
/// Between two looks at the meters.
const LOOK_S: f64 = 0.5;
/// Windows of a fit that leaves no more open for more of them.
const MOST_WINDOWS: usize = 100;
/// No window is shorter, by a meter of the processor.
const LEAST_WINDOW_S: f64 = 1.0;
/// Of all windows, one in so many is a mix to check the fit with.
const CHECKS: usize = 8;
/// Times that a spoiled window is tried again.
const TRIES: usize = 3;
/// Machines that are drawn from the fit.
const DRAWS: usize = 64;

/// What a machine has to measure with.
fn meters(observer: &mut Observer<'_>, site: &dyn Site) -> (Meters, bool, Vec<String>) {
    observer.meter().self_test(Duration::from_millis(300), |t| _ = site.pass(t));
    let found: Vec<Domain> = observer.meter().energy().domains.iter().map(|d| d.domain).collect();
    let has = |test: fn(&Domain) -> bool| found.iter().any(test);
    let mut meters = Meters {
        cores: has(|d| matches!(d, Domain::Core { .. })),
        package: has(|d| matches!(d, Domain::Package { .. })),
        memory: found.iter().filter(|d| matches!(d, Domain::Dram { .. })).count()
            == observer.layout.packages.len(),
        machine: has(|d| *d == Domain::Psys),
    };
    let why: Vec<String> =
        observer.meter().unavailable.iter().map(|u| format!("{}: {}", u.what, u.why)).collect();
    let mut on_battery = false;
    if meters.is_empty() && Gauge::default().look(site.root(), 0.0).is_ok() {
        (on_battery, meters.machine) = (true, true);
    }
    (meters, on_battery, why)
}

/// How many windows fit into the time, and how long they are.
fn times(budget_s: f64, on_battery: bool) -> (usize, Times) {
    let (window_s, settle_s) = if on_battery { (WINDOW_S.1, SETTLE_S.1) } else { (WINDOW_S.0, SETTLE_S.0) };
    let whole = MOST_WINDOWS as f64 * (window_s + settle_s);
    // Shorter windows before fewer, but on a battery, whose gauge needs its time.
    let shrink = if on_battery { 1.0 } else { (budget_s / whole).clamp(LEAST_WINDOW_S / window_s, 1.0) };
    let (window_s, settle_s) = (window_s * shrink, settle_s * shrink);
    let count = (budget_s / (window_s + settle_s)) as usize;
    (count.min(MOST_WINDOWS), Times { settle_s, window_s, look_s: LOOK_S.min(window_s / 4.0) })
}

/// Calibrates a machine. `tell` is called after each window.
///
/// # Errors
/// What [`CalibrationError`] lists; the machine is as it was before.
pub fn calibrate(
    site: &dyn Site,
    plan: &CalibrationPlan,
    tell: &mut dyn FnMut(&CalibrationProgress<'_>),
) -> Result<Calibration, CalibrationError> {
    let root = site.root();
    let seen = SeenMachine::read(root)
        .ok_or_else(|| CalibrationError::Impossible("the machine's files list no CPU".into()))?;
    let seen = match plan.clock_khz {
        Some(khz) => seen.with_clock(khz),
        None => seen,
    };
    let skeleton = estimate(&seen, &plan.name);
    let base =
        file::parse(&skeleton.text, &plan.name).map_err(|e| CalibrationError::Impossible(e.to_string()))?;
    let layout = Layout::of(root, &base).ok_or_else(|| {
        CalibrationError::Impossible(
            "the machine's packages differ in their cores or C-states: no model of one kind of package fits it".into(),
        )
    })?;
    let none = Times { settle_s: 0.0, window_s: 1.0, look_s: 1.0 };
    let mut observer = Observer::new(root, &base, &layout, &plan.journal, none, false);
    let (meters, on_battery, why) = meters(&mut observer, site);
    let ended = |e: Spoiled| CalibrationError::Ended(format!("{e}; the same command goes on from here"));
    let pace = paces(&observer, site).map_err(ended)?;
    if meters.is_empty() {
        let delays = delays(&observer, site, plan.budget_s).map_err(ended)?;
        return without_meters(&seen, pace.as_deref(), delays, meters, &why, plan);
    }
    let (count, times) = times(plan.budget_s, on_battery);
    let checks = count / CHECKS;
    if count < CHECKS {
        let least = (CHECKS as f64 * (times.settle_s + times.window_s)).ceil();
        return Err(CalibrationError::Input(format!(
            "--budget {:.0}s: expected at least {least:.0}s, for {CHECKS} windows",
            plan.budget_s
        )));
    }
    let delays = delays(&observer, site, plan.budget_s).map_err(ended)?;
    observer.set_times(times, on_battery);
    let mut design = WindowDesign::new(&base, &layout, meters, times.window_s);
    let mixes = mixes(&base, &layout, checks, plan.seed);
    let windows_of = |seen: &[Observation]| -> Vec<Observation> {
        seen.iter().enumerate().filter(|(at, _)| !is_mix(*at)).map(|(_, o)| o.clone()).collect()
    };
    let mut next = |seen: &[Observation]| match seen.len() {
        at if is_mix(at) => mixes.get(at / CHECKS).cloned(),
        _ => design.next(&windows_of(seen)),
    };
    let (observations, mut notes) = observe_all(&mut observer, site, count, &mut next, plan, tell)?;
    notes.extend(delays.notes);
    notes.extend(not_obeyed(&base, &observations));
    notes.extend(looking(&observations));
    let learnt = windows_of(&observations);
    let held_out: Vec<Observation> =
        observations.iter().enumerate().filter(|(at, _)| is_mix(*at)).map(|(_, o)| o.clone()).collect();
    let windows = learnt.len();
    let fit = Fit::of(&base, &learnt)
        .ok_or_else(|| CalibrationError::Ended("no window gave a power: nothing can be fitted".into()))?;
    let check = Check::of(&fit, &held_out);
    if count < MOST_WINDOWS {
        notes.push(format!(
            "The budget had room for {count} windows of {MOST_WINDOWS}, so the intervals are wider."
        ));
    }
    notes.extend(fit.unknown_directions.iter().cloned());
    let heat = Heat::of(&observations, base.packages.len());
    notes.extend(leakage(&fit, heat.as_ref()));
    let made = MadeMachine {
        seen: &seen,
        base: &base,
        fit: &fit,
        heat,
        pace: pace.as_deref().unwrap_or_default(),
        delays: &delays.kinds,
        check: &check,
        plan,
        meters,
        draws: fit.draws(DRAWS, plan.seed),
    };
    let (text, more) = machine_file(&made);
    notes.extend(more);
    let machine = file::parse(&text, &plan.name)
        .map_err(|e| CalibrationError::Ended(format!("the fitted machine file is invalid: {e}")))?;
    Ok(Calibration { text, machine, fit: Some(fit), heat, meters, observations, windows, check, notes })
}

/// What the meters themselves cost: it is in every window, the idle ones as well.
fn looking(observations: &[Observation]) -> Option<String> {
    let (own, all) = observations.iter().fold((0.0, 0.0), |(own, all), o| (own + o.own_s, all + o.seconds));
    (own > 0.0).then(|| format!("Looking at the meters took {:.2} % of a CPU.", own / all * 100.0))
}

/// The estimate, where nothing can be measured but times.
fn without_meters(
    seen: &SeenMachine,
    pace: Option<&[KindPace]>,
    delays: Delays,
    meters: Meters,
    why: &[String],
    plan: &CalibrationPlan,
) -> Result<Calibration, CalibrationError> {
    let text = timed(seen, pace.unwrap_or_default(), &delays.kinds, plan);
    let machine = file::parse(&text, &plan.name).map_err(|e| CalibrationError::Impossible(e.to_string()))?;
    let mut notes =
        vec!["Nothing meters energy here: the watts are an estimate, with its wide intervals.".to_owned()];
    notes.extend(why.iter().map(|w| format!("{w}.")));
    notes.extend(delays.notes);
    if plan.clock_khz.is_some() {
        notes.push("The clock was measured by a timed loop.".to_owned());
    }
    Ok(Calibration {
        text,
        machine,
        fit: None,
        heat: None,
        meters,
        observations: Vec::new(),
        windows: 0,
        check: Check::default(),
        notes,
    })
}

/// A file of observations: a line each, the first says of what.
#[derive(Serialize, Deserialize)]
struct Head {
    calibration: u32,
    machine: String,
    windows: usize,
    seed: u64,
    /// Which machine; none in files of older versions.
    #[serde(default)]
    identity: Option<Identity>,
}

impl Head {
    /// What makes the machine of `now` another one than this file's, a few words.
    fn other_machine(&self, now: &Head) -> Option<String> {
        now.identity.as_ref()?.other_than(self.identity.as_ref()?)
    }

    /// Whether windows of this file are of the calibration of `now`, whichever start of the machine they are of.
    fn is_of(&self, now: &Head) -> bool {
        let key = |head: &Head| (head.calibration, head.machine.clone(), head.windows, head.seed);
        key(self) == key(now)
    }
}

/// Windows one after the other; those that somebody spoiled again, at most a few times each.
///
/// A machine that begins anew with each process ([`Site::begins_anew`]) does the windows that were kept once more, in its own
/// time, so that it is as warm and its meters stand as they did: what follows is what would have followed without a
/// kill. The figures are then those of a calibration that was not broken off.
fn observe_all(
    observer: &mut Observer<'_>,
    site: &dyn Site,
    all: usize,
    next: &mut dyn FnMut(&[Observation]) -> Option<Window>,
    plan: &CalibrationPlan,
    tell: &mut dyn FnMut(&CalibrationProgress<'_>),
) -> Result<(Vec<Observation>, Vec<String>), CalibrationError> {
    let head = Head {
        calibration: 1,
        machine: plan.name.clone(),
        windows: all,
        seed: plan.seed,
        identity: Some(Identity::read(site.root())),
    };
    let mut done = Vec::new();
    let mut kept = None;
    if let Some(path) = &plan.kept {
        let (windows, observations) = KeptWindows::read(path, &head)?;
        (kept, done) = (Some(windows), observations);
    }
    let mut again: VecDeque<Observation> =
        if site.begins_anew() { std::mem::take(&mut done).into() } else { VecDeque::new() };
    let mut notes: Vec<String> = Vec::new();
    let started = site.moment().monotonic_s;
    let before = done.len();
    while done.len() < all {
        let Some(window) = next(&done) else { break };
        let mut tries = 0;
        let observation = loop {
            match observer.observe(site, &window) {
                Ok(observation) => break Some(observation),
                Err(Spoiled::End(why)) => {
                    return Err(CalibrationError::Ended(format!(
                        "{why}; the same command goes on from here"
                    )));
                }
                Err(Spoiled::Again(why)) => {
                    tries += 1;
                    let note = format!("A window was dropped: {why}.");
                    tell(&CalibrationProgress { done: done.len(), all, left_s: 0.0, note: Some(&note) });
                    notes.push(note);
                    if tries == TRIES {
                        break None;
                    }
                }
            }
        };
        let Some(observation) = observation else {
            return Err(CalibrationError::Ended(format!(
                "{} windows in a row were spoiled; the last: {}",
                TRIES,
                notes.last().map_or("", String::as_str)
            )));
        };
        if let Some(kept) = &mut kept {
            notes.extend(kept.keep_or_hold(&mut again, done.len(), &observation)?);
        }
        done.push(observation);
        let each = (site.moment().monotonic_s - started) / (done.len() - before) as f64;
        let left_s = each * (all - done.len()) as f64;
        tell(&CalibrationProgress { done: done.len(), all, left_s, note: None });
    }
    notes.dedup();
    Ok((done, notes))
}

fn failed(path: &Path, e: impl std::fmt::Display) -> CalibrationError {
    CalibrationError::Input(format!(
        "{}: {e}; expected the observations of this calibration, or no file",
        path.display()
    ))
}

/// The windows that are kept while a calibration runs, so that the next start goes on.
struct KeptWindows<'p> {
    path: &'p Path,
    head: &'p Head,
    /// Bytes up to the end of the last whole line; 0: nothing is kept yet.
    whole: u64,
    /// Bytes up to the end of each whole line, the head's first.
    ends: Vec<u64>,
    /// Opened with the first window.
    log: Option<Log>,
}

impl<'p> KeptWindows<'p> {
    /// What an earlier run kept; nothing where there is none. A line that a crash cut short is written over, and its window
    /// measured again.
    fn read(path: &'p Path, head: &'p Head) -> Result<(KeptWindows<'p>, Vec<Observation>), CalibrationError> {
        let mut kept = KeptWindows { path, head, whole: 0, ends: Vec::new(), log: None };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((kept, Vec::new())),
            Err(e) => return Err(failed(path, e)),
        };
        if !text.contains('\n') {
            // The head itself was cut short.
            return Ok((kept, Vec::new()));
        }
        let first: Option<Head> = text.lines().next().and_then(|l| serde_json::from_str(l).ok());
        match first {
            Some(first) if first.other_machine(head).is_some() => {
                let why = first.other_machine(head).unwrap_or_default();
                return Err(failed(path, format!("is of another machine: {why}")));
            }
            Some(first) if first.is_of(head) => {}
            Some(_) => return Err(failed(path, "it is of another machine, budget or seed")),
            None => return Err(failed(path, "the first line is not a calibration header")),
        }
        let whole = |l: &&str| l.ends_with('\n');
        let mut observations = Vec::new();
        for line in text.split_inclusive('\n').take_while(whole).take(1 + head.windows) {
            // The first is the head.
            match (kept.whole, serde_json::from_str(line)) {
                (0, _) => {}
                (_, Ok(observation)) => observations.push(observation),
                (_, Err(_)) => break,
            }
            kept.whole += line.len() as u64;
            kept.ends.push(kept.whole);
        }
        Ok((kept, observations))
    }

    /// Keeps a window, the `at`-th, unless it is one that was kept before and is `again` what it was. From the first on that is
    /// not, all are of this run, which is told.
    fn keep_or_hold(
        &mut self,
        again: &mut VecDeque<Observation>,
        at: usize,
        observation: &Observation,
    ) -> Result<Option<String>, CalibrationError> {
        let differs = match again.pop_front() {
            Some(before) if before == *observation => return Ok(None),
            before => before.is_some(),
        };
        if differs {
            again.clear();
            self.cut(at);
        }
        self.keep(observation)?;
        Ok(differs.then(|| {
            format!(
                "Window {} came to something else than before the calibration was broken off (another version of wattwise, \
                 or of the machine's description): it and those after it are of this run.",
                at + 1
            )
        }))
    }

    /// Only the first so many windows are still true; nothing has been written since they were read.
    fn cut(&mut self, windows: usize) {
        self.whole = self.ends.get(windows).copied().unwrap_or(0);
    }

    fn keep(&mut self, observation: &Observation) -> Result<(), CalibrationError> {
        self.written(observation).map_err(|e| {
            CalibrationError::Ended(format!(
                "{}: {e}; the windows before it are kept, and the same command goes on from here",
                self.path.display()
            ))
        })
    }

    fn written(&mut self, observation: &Observation) -> std::io::Result<()> {
        let mut log = match self.log.take() {
            Some(log) => log,
            None if self.whole > 0 => Log::resume(self.path, self.whole)?,
            None => {
                let mut log = Log::create(self.path)?;
                log.append(format!("{}\n", serde_json::to_string(self.head)?).as_bytes())?;
                log
            }
        };
        log.append(format!("{}\n", serde_json::to_string(observation)?).as_bytes())?;
        self.log = Some(log);
        Ok(())
    }
}

/// The state of a machine that its figures hold for: kernel, driver, microcode, firmware, speeds of the uncore, supply.
pub fn state_of(root: &dyn Root) -> Vec<String> {
    let text = |path: &str| wattwise_hw::root::text(root, path).filter(|t| !t.is_empty());
    let mut out = Vec::new();
    let mut say = |what: &str, value: Option<String>| out.extend(value.map(|v| format!("{what} {v}")));
    say("kernel", text("proc/sys/kernel/osrelease"));
    say("driver", text("sys/devices/system/cpu/cpufreq/policy0/scaling_driver"));
    say("microcode", text("sys/devices/system/cpu/cpu0/microcode/version"));
    say("firmware", text("sys/class/dmi/id/bios_version"));
    let uncores = wattwise_hw::states::power::uncores(root).value.unwrap_or_default();
    let limits: BTreeSet<(u64, u64)> = uncores.iter().filter_map(|u| u.limits_khz).collect();
    for (low, high) in limits {
        say("uncore", Some(format!("{} to {} MHz", low / 1000, high / 1000)));
    }
    let supply = wattwise_hw::states::supply::supply(root);
    say("on", supply.is_listed().then(|| supply.source.to_string()));
    out
}
