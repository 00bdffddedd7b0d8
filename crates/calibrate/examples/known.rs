//! Calibrations of emulated machines whose watts are known: how often intervals hold the truth, how far mixes are off.
//!
//! `known [MACHINES] [cores|package|battery] [FIRST] [FOLDER]`: so many machines of four kinds, with the meters of that tier;
//! on the battery of the two kinds that have one. What was seen is kept in the folder, and a second run with the same folder
//! fits it again without measuring.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use wattwise_calibrate::calibration::plan::CalibrationPlan;
use wattwise_calibrate::calibration::{Calibration, CalibrationError, calibrate};
use wattwise_calibrate::fit::{Fit, Unknown};
use wattwise_calibrate::site::{Emulated, Site};
use wattwise_calibrate::truth::{USUAL, behind};
use wattwise_emulator::{Emulator, Fault, Truth, named};

/// A laptop of two kinds of core, one of a kind, a small desktop, a server.
const KINDS: [&str; 4] = ["hybrid-laptop", "amd-laptop", "core-i5-2gen", "skylake-server-passive"];
/// Those with a battery.
const LAPTOPS: usize = 2;

/// Errors of fitted figures, each as a share of half its interval's width: above 1 the interval misses.
#[derive(Default)]
struct Errors(Vec<f64>);

impl Errors {
    fn held(&self) -> usize {
        self.0.iter().filter(|e| **e <= 1.0).count()
    }

    /// What nineteen of twenty errors do not pass: 1 where the intervals are as wide as they have to be.
    fn wanted(&self) -> f64 {
        at(&self.0, 0.95)
    }
}

#[derive(Default)]
struct Tally {
    /// By what the figure is of, and by the kind of machine.
    by_figure: BTreeMap<&'static str, Errors>,
    by_machine: BTreeMap<String, Errors>,
    held: usize,
    fitted: usize,
    guesses: usize,
    guesses_held: usize,
    /// Of guesses, by figure and kind of machine: held, all.
    guessed: BTreeMap<(&'static str, String), (usize, usize)>,
    off: Vec<f64>,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let count: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(20);
    let tier = args.next().unwrap_or_else(|| "cores".into());
    let first: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let kinds = if tier == "battery" { &KINDS[..LAPTOPS] } else { &KINDS[..] };
    let folder = tempfile::tempdir().expect("a folder for the journals");
    let kept = args.next().map(std::path::PathBuf::from);
    if let Some(kept) = &kept {
        std::fs::create_dir_all(kept).expect("a folder for what is seen");
    }
    let mut all = Tally::default();
    let one = |seed: u64| -> (&str, Truth, Result<Calibration, CalibrationError>) {
        let name = kinds[seed as usize % kinds.len()];
        let emulator = named(name).expect("an emulated machine");
        without(&emulator, &tier);
        let Some(truth) = behind(&emulator, USUAL, seed + 1) else { panic!("{name} has no layout") };
        let plan = CalibrationPlan {
            name: "this".into(),
            budget_s: if tier == "battery" { 3600.0 } else { 600.0 },
            journal: folder.path().join(seed.to_string()),
            kept: kept.as_ref().map(|kept| kept.join(seed.to_string())),
            seed,
            clock_khz: None,
            state: Vec::new(),
        };
        let site = Emulated::new(emulator.clone());
        // Warm, as a machine is that was in use.
        _ = site.pass(Duration::from_secs(30));
        (name, truth, calibrate(&site, &plan, &mut |_| {}))
    };
    let done: Vec<_> = (first..first + count).into_par_iter().map(one).collect();
    for (seed, (name, truth, calibration)) in (first..).zip(done) {
        match calibration {
            Ok(calibration) => {
                let m = calibration.meters;
                let as_asked = match tier.as_str() {
                    "cores" => m.package,
                    "package" => m.package && !m.cores && !m.machine,
                    _ => m.machine && !m.cores && !m.package,
                };
                assert!(as_asked, "{name}: {m:?} are not the meters of this tier");
                judge(name, seed, &truth, &calibration, &mut all);
            }
            Err(e) => println!("{name} {seed}: {e}"),
        }
    }
    println!(
        "{count} machines, {tier}: 95 % intervals hold {} of {} fitted figures ({:.1} %), {} of {} guesses; mixes off by {:.2} % in \
         the middle, {:.2} % at the 95th percentile",
        all.held,
        all.fitted,
        all.held as f64 / all.fitted as f64 * 100.0,
        all.guesses_held,
        all.guesses,
        at(&all.off, 0.5) * 100.0,
        at(&all.off, 0.95) * 100.0
    );
    let tables = all.by_figure.iter().map(|(of, errors)| (*of, errors));
    for (of, errors) in tables.chain(all.by_machine.iter().map(|(of, errors)| (of.as_str(), errors))) {
        let (held, fitted) = (errors.held(), errors.0.len());
        let percent = held as f64 / fitted as f64 * 100.0;
        println!(
            "  {of:24} {held:5} of {fitted:5}  {percent:5.1} %   error at 95 %: {:.2} half-widths",
            errors.wanted()
        );
    }
    for ((of, machine), (held, guesses)) in &all.guessed {
        println!("  guesses: {of:24} {machine:24} {held:5} of {guesses:5}");
    }
}

/// The value that a share of them do not pass.
fn at(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().max(1) - 1)).copied().unwrap_or(f64::NAN)
}

fn word(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Busy(..) => "busy cores",
        Unknown::Idle(..) => "cores in a C-state",
        Unknown::Uncore => "packages awake",
        Unknown::Asleep(_) => "packages asleep",
        Unknown::MemoryRest | Unknown::MemoryBusy => "memory",
        Unknown::Platform => "platform",
        Unknown::AllThreads(_) | Unknown::ThreadsBySpeed(_) => "all threads",
        Unknown::Leakage => "leakage",
        Unknown::Drift(_) => "drift",
    }
}

/// Takes away the meters that a tier does not have.
fn without(emulator: &Emulator, tier: &str) {
    let gone: &[&str] = match tier {
        "cores" => &[],
        // Registers would tell of the cores as well.
        "package" => &["*:0:*", "*/msr"],
        _ => &["*powercap*", "*/msr"],
    };
    // The platform's zone, where there is no second package.
    let platform = (tier == "package" && !several(emulator)).then_some("*intel-rapl:1*");
    for pattern in gone.iter().copied().chain(platform) {
        emulator.inject(Fault::Vanish { pattern: pattern.to_owned(), after: 0 });
    }
    emulator.set_mains(tier != "battery");
}

fn several(emulator: &Emulator) -> bool {
    let name = "sys/class/powercap/intel-rapl:1/name";
    wattwise_hw::root::text(emulator, name).is_some_and(|n| n.starts_with("package"))
}

fn truth_of(truth: &Truth, unknown: Unknown) -> Option<f64> {
    let m = &truth.machine;
    Some(match unknown {
        Unknown::Busy(k, l) => m.kinds[k].levels[l].busy_w,
        Unknown::Idle(k, s) => m.kinds[k].idle[s].watts[0],
        Unknown::Uncore => m.packages[0].uncore_w,
        Unknown::Asleep(s) => m.packages[0].idle[s].watts,
        Unknown::MemoryRest => m.memory.rest_w,
        Unknown::MemoryBusy => m.memory.busy_w,
        Unknown::Platform => m.platform_w,
        Unknown::AllThreads(k) => *m.kinds[k].smt_power.last()?,
        Unknown::Leakage => truth.leakage_per_c,
        Unknown::ThreadsBySpeed(_) | Unknown::Drift(_) => return None,
    })
}

fn judge(name: &str, seed: u64, truth: &Truth, calibration: &Calibration, all: &mut Tally) {
    let Some(fit): Option<&Fit> = calibration.fit.as_ref() else {
        println!("{name} {seed}: nothing was fitted");
        return;
    };
    // What drifts is what it is in the middle of the calibration.
    let last = calibration.observations.last().map_or(0.0, |o| o.at_s);
    let middle = calibration.observations.first().map_or(0.0, |o| f64::midpoint(o.at_s, last));
    let drifted = 1.0 + truth.drift_per_h * middle / 3600.0;
    let (mut held, mut fitted) = (0, 0);
    let mut missed = Vec::new();
    for (at, unknown) in fit.unknowns.all.iter().enumerate() {
        let Some(mut true_value) = truth_of(truth, *unknown) else { continue };
        if matches!(unknown, Unknown::Uncore | Unknown::Asleep(_)) {
            true_value *= drifted;
        }
        let (low, high) = fit.interval(at, 0.95);
        let holds = low <= true_value && true_value <= high;
        if fit.fitted[at] {
            fitted += 1;
            held += usize::from(holds);
            let end = if true_value > fit.value[at] { high } else { low };
            let error = (true_value - fit.value[at]) / (end - fit.value[at]);
            all.by_figure.entry(word(*unknown)).or_default().0.push(error);
            all.by_machine.entry(name.to_owned()).or_default().0.push(error);
            if !holds {
                missed.push(format!("{unknown:?} {true_value:.4} not in {low:.4}..{high:.4}"));
            }
        } else {
            all.guesses += 1;
            all.guesses_held += usize::from(holds);
            let guess = all.guessed.entry((word(*unknown), name.to_owned())).or_default();
            guess.0 += usize::from(holds);
            guess.1 += 1;
        }
    }
    let (thermal, heat) = (truth.machine.packages[0].thermal, calibration.heat);
    let found = heat
        .map(|h| [(h.ambient_c, thermal.ambient_c), (h.c_per_w, thermal.c_per_w), (h.tau_s, thermal.tau_s)]);
    for (found, true_value) in found.into_iter().flatten() {
        // Its intervals are no statistics alone: it is told beside the fitted figures.
        let error = (true_value - found.value).abs() / (found.ends.1 - found.value);
        all.by_figure.entry("heat").or_default().0.push(error);
    }
    all.held += held;
    all.fitted += fitted;
    all.off.extend(calibration.check.off.iter().map(|o| o.abs()));
    let check = |p| calibration.check.quantile(p).unwrap_or(f64::NAN) * 100.0;
    println!(
        "{name:24} {seed:3}  {held} of {fitted} fitted figures held   {} windows   mixes {:.2} % {:.2} %   {}",
        calibration.windows,
        check(0.5),
        check(0.95),
        missed.first().map_or("", String::as_str)
    );
}
