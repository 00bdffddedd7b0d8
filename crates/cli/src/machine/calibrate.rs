//! `calibrate`: this machine as a model, by its own meters.

use crate::args::duration;
use crate::args::output;
use crate::args::output::OutputPath;
use crate::args::root as hardware;
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::machine::step_back::step_back;
use crate::show::screen::{note, progress};
use crate::show::table::{cell, drawn};
use comfy_table::{ContentArrangement, Table, presets};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wattwise_calibrate::calibration::pages::sections;
use wattwise_calibrate::calibration::plan::CalibrationPlan;
use wattwise_calibrate::calibration::{
    Calibration, CalibrationError, CalibrationProgress, calibrate, state_of,
};
use wattwise_calibrate::fit::check::Check;
use wattwise_calibrate::site::{Emulated, LiveSite, Site};
use wattwise_calibrate::truth;
use wattwise_figure::{fixed, shell};
use wattwise_hw::root::{DirRoot, Root, text as text_of};
use wattwise_live::run::child::Signals;
use wattwise_model::machine::Confidence;
use wattwise_trace::record;

#[derive(clap::Args)]
#[command(
    after_help = "Keep the machine on its usual supply and leave it alone meanwhile. Settings are put back after each window,\n\
    and by 'wattwise restore' if this is killed; the same command then goes on where it was."
)]
pub(crate) struct CalibrateArgs {
    /// How long it may take (90s, 10min); on a battery an hour tells more
    #[arg(long, value_name = "DURATION", default_value = "10min", value_parser = duration)]
    budget: Duration,
    /// The machine file to write [default: where '--machine this' finds it; this.toml for another root]
    #[arg(short, long, value_name = "FILE")]
    output: Option<OutputPath>,
    /// Write the machine file even if the fit misses its own check
    #[arg(long)]
    keep_bad: bool,
    /// Which mixes of work the fit is checked with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a page of power against load, speed and C-state, measured next to fitted
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Schema of the result.
pub(crate) const SCHEMA: &str = "wattwise.calibration/1";

/// What a calibration found.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Calibrated {
    /// The machine file.
    file: PathBuf,
    /// It is where `--machine this` finds it.
    default: bool,
    /// Whether it was written.
    #[serde(default)]
    written: bool,
    /// What was metered, largest part first; empty where nothing was.
    meters: Vec<String>,
    /// Windows that the fit is of.
    windows: usize,
    /// By how much the fit is off on mixes of work that it has not seen, in per cent: the middle one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    check_median_percent: Option<f64>,
    /// The same, which 19 of 20 do not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    check_p95_percent: Option<f64>,
    /// Mixes of work that it was checked on.
    #[serde(default)]
    mixes: usize,
    /// What was found.
    figures: Vec<FittedFigure>,
    /// What its user should know, a sentence each.
    notes: Vec<String>,
}

/// One figure.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FittedFigure {
    /// Its path in the machine file.
    figure: String,
    /// Its value.
    value: f64,
    /// 19 of 20 such intervals hold the truth: this one's lower end.
    low: f64,
    /// Its upper end.
    high: f64,
    /// Its unit; empty for a ratio.
    unit: String,
    /// `fitted` to the meters, `measured` by a clock, or `guess` where nothing could tell it.
    standing: String,
}

pub(crate) fn run(args: &CalibrateArgs) -> Outcome {
    let root = args.root.open_to_hold()?;
    if args.root.emulated()?.is_none() && !is_measurable(&*root) {
        return Err(not_put_to_work(&args.root, &*root));
    }
    let output = match &args.output {
        Some(path) => path.clone(),
        None if root.is_this_machine() => crate::model::own::to_write()?.into(),
        None => PathBuf::from("this.toml").into(),
    };
    // Ten minutes of work are not to end with a folder that is not there.
    let file = output.open("--output")?;
    let report = output::open("--report", args.report.as_ref())?;
    let kept = output.is_file().then(|| output.path().with_extension("windows.jsonl"));
    let stem = output.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let signals = Signals::catch().map_err(Failure::work)?;
    let sleep = |time: Duration| {
        signals.sleep(time);
        signals.reason()
    };
    let stop = || signals.reason();
    let emulated = args.root.emulated()?;
    let _paused = step_back(&*root, "wattwise calibrate")?;
    let site: Box<dyn Site> = match emulated {
        Some(machine) => {
            // Its description has no C-state's watts: a truth is made up behind it.
            _ = truth::behind(&machine, truth::USUAL, args.seed);
            Box::new(Emulated::new(machine).stopped_by(&stop))
        }
        None if root.is_this_machine() || is_this_one(&*root) => Box::new(LiveSite::new(&*root, &sleep)),
        None => match Emulated::mounted(&*root) {
            Some(site) => Box::new(site.stopped_by(&stop)),
            None => return Err(not_put_to_work(&args.root, &*root)),
        },
    };
    let plan = CalibrationPlan {
        name: stem,
        budget_s: args.budget.as_secs_f64(),
        journal: args.root.journal()?,
        kept: kept.clone(),
        seed: args.seed,
        clock_khz: root.is_this_machine().then(record::clock_khz).flatten().map(u64::from),
        state: state_of(site.root()),
    };
    let calibration = calibrate(&*site, &plan, &mut |p| told(p));
    progress("");
    let calibration = calibration.map_err(|e| match (&e, signals.caught()) {
        (CalibrationError::Ended(why), Some(signal)) => {
            Failure { code: 128 + signal as u8, message: why.clone() }
        }
        _ => failure(e),
    })?;
    if let Some(report) = report {
        let page = wattwise_page::page("calibrate", "This machine, calibrated", &sections(&calibration));
        report.write(page.as_bytes())?;
    }
    let passed = calibration.check.quantile(0.95).is_none_or(|p95| p95 <= Check::limit(calibration.meters));
    // Without meters it is the estimate, which 'this' is without a file.
    let is_wanted = !calibration.meters.is_empty() || args.output.is_some();
    if (passed || args.keep_bad) && is_wanted {
        file.write(calibration.text.as_bytes())?;
        kept.iter().for_each(|kept| _ = std::fs::remove_file(kept));
    }
    let found = found(
        output.path(),
        (args.output.is_none() && root.is_this_machine(), is_wanted && (passed || args.keep_bad)),
        &calibration,
    );
    if args.json {
        print_json_as(SCHEMA, &found)?;
    } else {
        print(&text(&found))?;
    }
    if !is_wanted {
        return Err(Failure::impossible(
            "nothing meters energy here, so no machine file was written; --output FILE writes the estimate with what was timed",
        ));
    }
    if !passed && !args.keep_bad {
        let p95 = calibration.check.quantile(0.95).unwrap_or(0.0) * 100.0;
        return Err(Failure::work(format!(
            "the fit is off by {p95:.1} % on mixes that it has not seen, {:.0} % are allowed: no file was written; give a \
             larger --budget, a quieter machine, or --keep-bad",
            Check::limit(calibration.meters) * 100.0
        )));
    }
    Ok(0)
}

/// Whether a machine's meters may move.
fn is_measurable(root: &dyn Root) -> bool {
    root.is_this_machine() || is_this_one(root) || Emulated::mounted(root).is_some()
}

/// Whether a tree holds the files of the machine that we run on (`/host` in a container): then it can be put to work from here.
fn is_this_one(root: &dyn Root) -> bool {
    let own = DirRoot::this_machine();
    let boot = |root: &dyn Root| text_of(root, "proc/sys/kernel/random/boot_id");
    // A copy of its files has the same name of this start, and another time.
    let up_s = |root: &dyn Root| text_of(root, "proc/uptime")?.split_whitespace().next()?.parse::<f64>().ok();
    let near = up_s(root).zip(up_s(&own)).is_some_and(|(theirs, ours)| (theirs - ours).abs() < 1.0);
    near && boot(root).is_some() && boot(root) == boot(&own)
}

/// A tree or a capture of another machine: its meters stand still.
fn not_put_to_work(args: &hardware::RootArgs, root: &dyn Root) -> Failure {
    let given = args.given().unwrap_or_default();
    Failure::impossible(format!(
        "calibrate --root {given}: {} stands still, so nothing can be measured over it; expected this machine, emulated:NAME, or \
         an emulated machine that is mounted ('wattwise emulate {} DIR')",
        root.describe(),
        shell::file(given)
    ))
}

fn failure(e: CalibrationError) -> Failure {
    match e {
        CalibrationError::Impossible(why) => Failure::impossible(why),
        CalibrationError::Ended(why) => Failure::work(why),
        CalibrationError::Input(why) => Failure::input(why),
    }
}

fn told(p: &CalibrationProgress<'_>) {
    if let Some(note) = p.note {
        note!("{note}");
    } else {
        let minutes = p.left_s / 60.0;
        progress(&format!("window {} of {}, {minutes:.1} min left", p.done, p.all));
    }
}

fn found(file: &Path, (default, written): (bool, bool), calibration: &Calibration) -> Calibrated {
    let m = calibration.meters;
    let meters = [(m.machine, "machine"), (m.package, "packages"), (m.cores, "cores")];
    let percent = |p: f64| calibration.check.quantile(p).map(|off| off * 100.0);
    let inputs = calibration.machine.inputs();
    let mut figures: Vec<FittedFigure> = inputs.iter().filter_map(found_of).collect();
    figures.sort_by_key(|f| numbers(&f.figure));
    Calibrated {
        file: file.to_owned(),
        default,
        written,
        meters: meters.into_iter().filter(|(there, _)| *there).map(|(_, word)| word.into()).collect(),
        windows: calibration.windows,
        check_median_percent: percent(0.5),
        check_p95_percent: percent(0.95),
        mixes: calibration.check.off.len(),
        figures,
        notes: calibration.notes.clone(),
    }
}

/// A figure of the machine file that was fitted, measured or guessed.
fn found_of(input: &wattwise_model::machine::figures::MachineInput<'_>) -> Option<FittedFigure> {
    let v = input.value?;
    let standing = match input.confidence {
        Confidence::Fitted => "fitted",
        Confidence::Measured => "measured",
        Confidence::Guess => "guess",
        _ => return None,
    };
    let (value, low, high) = (v.nominal, v.low, v.high);
    Some(FittedFigure {
        figure: input.what.to_owned(),
        value,
        low,
        high,
        unit: v.unit.into(),
        standing: standing.into(),
    })
}

/// A path whose numbers sort as numbers, by the table that it is in.
fn numbers(path: &str) -> (String, u64, String) {
    let number = path.split('.').find_map(|part| part.parse::<u64>().ok());
    let before =
        path.split('.').take_while(|part| part.parse::<u64>().is_err()).collect::<Vec<_>>().join(".");
    (before, number.unwrap_or(0), path.to_owned())
}

/// For people: the check first, then the figures.
pub(crate) fn text(found: &Calibrated) -> String {
    let mut out = String::new();
    let file = found.file.display();
    match (found.check_median_percent, found.check_p95_percent) {
        (Some(half), Some(p95)) => {
            _ = writeln!(
                out,
                "Calibrated in {} windows by meters of the {}. On {} mixes of work that the fit had not seen, power was\n\
                 off by {} % in the middle, and by {} % at most of 19 in 20.",
                found.windows,
                found.meters.join(" and the "),
                found.mixes,
                fixed(half, 1),
                fixed(p95, 1)
            );
        }
        _ => _ = writeln!(out, "Estimated, not measured."),
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["figure", "value", "95 % interval", "basis"]);
    for f in &found.figures {
        let unit = if f.unit.is_empty() { String::new() } else { format!(" {}", f.unit) };
        table.add_row(
            [
                f.figure.clone(),
                format!("{}{unit}", fixed(f.value, 3)),
                format!("{} to {}", fixed(f.low, 3), fixed(f.high, 3)),
                f.standing.clone(),
            ]
            .map(cell),
        );
    }
    if !found.meters.is_empty() {
        _ = writeln!(out, "\n{}", drawn(table, false));
    }
    for note in &found.notes {
        _ = writeln!(out, "Note: {note}");
    }
    if found.written {
        let flag = if found.default { String::new() } else { format!("-m {} ", shell::file(&found.file)) };
        _ = writeln!(out, "\n{file}: written. Use it: wattwise compare {flag}-- COMMAND");
    }
    out
}
